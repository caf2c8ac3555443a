"""Closed forms of inverse kinematics: every branch reaches its pose, none is missing, limits and guesses choose among
them; singular poses, poses out of reach, and arms that are only nearly of a geometry."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.kinematics.closed_form import closed_form, why_not
from linkwise.mechanics.algorithms.closed_form import SOLUTIONS, branches

WHOLE = 2 * np.pi
#: DH parameters (a, alpha, d) of the UR5, of its data sheet.
UR5 = (
    (0, np.pi / 2, 0.089159),
    (-0.425, 0, 0),
    (-0.39225, 0, 0),
    (0, np.pi / 2, 0.10915),
    (0, -np.pi / 2, 0.09465),
    (0, 0, 0.0823),
)


def motion(axis: np.ndarray, point: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """(..., 4, 4): rotation about an axis through a point, by Rodrigues' formula."""
    cross = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    angle = np.asarray(angle)[..., None, None]
    turn = np.eye(3) + np.sin(angle) * cross + (1 - np.cos(angle)) * cross @ cross
    pose = np.zeros((*turn.shape[:-2], 4, 4))
    pose[..., :3, :3], pose[..., :3, 3], pose[..., 3, 3] = turn, point - turn @ point, 1.0
    return pose


class Arm:
    """Six axes (6, 3), points on them (6, 3) and the hand's pose at zero, with kinematics of its own."""

    def __init__(self, axes, points, hand):
        self.axes, self.points, self.hand = axes, points, hand

    def motions(self, q: np.ndarray) -> list[np.ndarray]:
        """(..., 4, 4): of all joints up to each."""
        found = [np.eye(4)]
        for k in range(6):
            found.append(found[-1] @ motion(self.axes[k], self.points[k], q[..., k]))
        return found[1:]

    def pose(self, q: np.ndarray) -> np.ndarray:
        return self.motions(q)[-1] @ self.hand

    def mechanism(self, name: str = "arm") -> lw.Mechanism:
        builder, before = lw.Builder(), np.zeros(3)
        for k in range(6):
            builder.link(f"link{k}", 1.0, (0, 0, 0), (1, 1, 1))
            parent = f"link{k - 1}" if k else "ground"
            builder.joint(f"joint{k}", lw.Revolute(self.axes[k]), parent, f"link{k}", (None, self.points[k] - before))
            before = self.points[k]
        last = self.hand[:3, 3] - before
        return builder.frame("hand", "link5", lw.pose(last, matrix=self.hand[:3, :3])).build(name)

    def all_by_newton(self, pose: np.ndarray, starts: int, rng: np.random.Generator) -> np.ndarray:
        """(n, 6): the different configurations that damped Newton iterations from many starts lead to."""
        q = rng.uniform(-np.pi, np.pi, (starts, 6))
        for _ in range(60):
            error, jacobian = self._error(q, pose)
            damping = (0.02 * np.sum(error**2, axis=-1) + 1e-14)[:, None, None] * np.eye(6)
            transposed = np.swapaxes(jacobian, -1, -2)
            step = transposed @ np.linalg.solve(jacobian @ transposed + damping, error[..., None])
            q = q + np.clip(step[..., 0], -1.0, 1.0)
        q = q[np.abs(self._error(q, pose)[0]).max(axis=-1) < 1e-9]
        different: list[np.ndarray] = []
        for one in q:
            if all(np.abs(off(one - other)).max() > 1e-4 for other in different):
                different.append(one)
        return np.array(different)

    def _error(self, q: np.ndarray, pose: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        motions = self.motions(q)
        reached = motions[-1] @ self.hand
        turn = pose[:3, :3] @ np.swapaxes(reached[..., :3, :3], -1, -2)
        skew = turn - np.swapaxes(turn, -1, -2)
        rotation = 0.5 * np.stack([skew[..., 2, 1], skew[..., 0, 2], skew[..., 1, 0]], axis=-1)
        at = reached[..., :3, 3]
        columns = []
        for k, m in enumerate(motions):
            axis = m[..., :3, :3] @ self.axes[k]
            point = m[..., :3, :3] @ self.points[k] + m[..., :3, 3]
            columns.append(np.concatenate([axis, np.cross(axis, at - point)], axis=-1))
        return np.concatenate([rotation, pose[:3, 3] - at], axis=-1), np.stack(columns, axis=-1)


def off(angles: np.ndarray) -> np.ndarray:
    """Angles without whole rotations."""
    return angles - WHOLE * np.rint(angles / WHOLE)


def unit(x: np.ndarray) -> np.ndarray:
    return x / np.linalg.norm(x)


def random_pose(rng: np.random.Generator) -> np.ndarray:
    return lw.kinematics.se3.exp(rng.uniform(-0.8, 0.8, 6))


def random_arm(kind: str, backwards: bool, seed: int) -> Arm:
    """Axes in any direction through any points, but for what the kind asks for."""
    rng, wanted = np.random.default_rng(seed), SOLUTIONS[kind]
    axes = np.array([unit(rng.normal(size=3)) for _ in range(6)])
    points = rng.uniform(-0.5, 0.5, (6, 3))
    for group in wanted.parallel:
        for joint in group[1:]:
            axes[joint] = rng.choice([-1.0, 1.0]) * axes[group[0]]
    for group in (wanted.meet, wanted.touching):
        for joint in group[1:]:
            points[joint] = points[group[0]] + rng.uniform(-0.3, 0.3) * axes[joint]
    if backwards:
        axes, points = axes[::-1], points[::-1]
    return Arm(axes, points, random_pose(rng))


@pytest.fixture(scope="module")
def ur5() -> Arm:
    """Its axes at zero, from the DH table."""
    pose, axes, points = np.eye(4), [], []
    for a, alpha, d in UR5:
        axes.append(pose[:3, 2].copy())
        points.append(pose[:3, 3].copy())
        pose = pose @ lw.pose((a, 0, d), rpy=(alpha, 0, 0))
    return Arm(np.round(axes, 12), np.array(points), pose)


@pytest.fixture(scope="module")
def puma() -> lw.Mechanism:
    arm = lw.mechanisms.puma560()
    return arm.with_limits({name: lw.Limits(-2.6, 2.6) for name in arm.joint_names})


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("kind", SOLUTIONS)
def test_arms_of_all_kinds(kind, backwards):
    """In floating-point numbers, without a compiler."""
    for seed in range(2):
        arm = random_arm(kind, backwards, seed)
        form = closed_form(arm.mechanism(), "hand")
        assert form is not None and form.exact
        assert (form.geometry.kind, form.geometry.backwards) == (kind, backwards)
        for q in np.random.default_rng(seed).uniform(-np.pi, np.pi, (10, 6)):
            pose = arm.pose(q)
            found = branches(form.geometry, pose.tolist())
            angles = np.array([branch.angles for branch in found if branch.room > -1e-12])
            assert 1 <= len(angles) <= 8
            np.testing.assert_allclose(arm.pose(angles), np.broadcast_to(pose, (len(angles), 4, 4)), atol=3e-10)
            assert np.abs(off(angles - q)).max(axis=1).min() < 1e-6


def test_no_branch_is_missing(ur5, puma):
    """Of the UR5, and of the Puma, against what iterations from many starts lead to."""
    rng = np.random.default_rng(5)
    zero = lw.link_poses(puma, np.zeros(6))
    own = Arm(zero[:, :3, 2], zero[:, :3, 3], zero[5])
    counts = []
    for arm, mech, frame in ((ur5, ur5.mechanism(), "hand"), (own, puma, "link6")):
        for pose in (arm.pose(rng.uniform(-np.pi, np.pi, 6)) for _ in range(4)):
            found = lw.kinematics.inverse_kinematics_branches(mech, {frame: pose})
            assert found.shape == (8, 6)
            found = found[np.isfinite(found).all(axis=1)]
            others = arm.all_by_newton(pose, 300, rng)
            assert len(found) == len(others)
            counts.append(len(found))
            assert max(np.abs(off(found - other)).max(axis=1).min() for other in others) < 1e-6
    assert min(counts) < max(counts) == 8


def test_every_branch_reaches_its_pose(ur5):
    mech = ur5.mechanism()
    q = np.random.default_rng(1).uniform(-np.pi, np.pi, (5, 100, 6))
    poses = ur5.pose(q)
    found = lw.kinematics.inverse_kinematics_branches(mech, {"hand": poses})
    there = np.isfinite(found).all(axis=-1)
    assert found.shape == (5, 100, 8, 6) and np.isnan(found[~there]).all() and (np.abs(found[there]) <= np.pi).all()
    errors = np.abs(ur5.pose(found) - poses[..., None, :, :]).max(axis=(-2, -1))[there]
    assert errors.max() < 1e-11 and np.quantile(errors, 0.99) < 1e-13
    assert np.nanmin(np.abs(off(found - q[..., None, :])).max(axis=-1), axis=-1).max() < 1e-6
    whole = lw.kinematics.FrameTarget(position=poses[0, 0, :3, 3], rotation=poses[0, 0, :3, :3])
    np.testing.assert_array_equal(lw.kinematics.inverse_kinematics_branches(mech, {"hand": whole}), found[0, 0])
    away = poses.copy()
    away[..., :3, 3] *= 100.0
    assert np.isnan(lw.kinematics.inverse_kinematics_branches(mech, {"hand": away})).all()


def test_the_nearest_branch_within_limits_is_chosen(ur5, puma):
    """Against all branches, at all whole rotations that limits allow."""
    rng = np.random.default_rng(2)
    wide = ur5.mechanism().with_limits({f"joint{k}": lw.Limits(-6.0, 6.1) for k in range(6)})
    for mech, frame in ((wide, "hand"), (puma, "link6")):
        q = lw.random_state(mech, rng, (60,), within_limits=True)[0]
        guess = q + rng.uniform(-1.0, 1.0, q.shape)
        poses = lw.frame_pose(mech, q, frame)
        bounds = np.array([mech.limits.lower, mech.limits.upper])
        for options, near in (({"q0": guess}, np.clip(guess, *bounds)), ({}, bounds.mean(axis=0) * np.ones((60, 1)))):
            found = lw.inverse_kinematics(mech, {frame: poses}, **options)
            assert found.converged.all() and (found.iterations == 0).all() and (found.attempts == 1).all()
            assert np.abs(lw.frame_pose(mech, found.q, frame) - poses).max() < 1e-10
            angles = lw.kinematics.inverse_kinematics_branches(mech, {frame: poses})[..., None] + WHOLE * np.arange(
                -2, 3
            )
            allowed = (angles >= mech.limits.lower[:, None]) & (angles <= mech.limits.upper[:, None])
            squares = np.where(allowed, (angles - near[:, None, :, None]) ** 2, np.inf).min(axis=-1).sum(axis=-1)
            np.testing.assert_allclose(np.sum((found.q - near) ** 2, axis=-1), squares.min(axis=-1), atol=1e-7)
    within = lw.kinematics.inverse_kinematics_branches(puma, {"link6": poses}, limits=True)
    there = np.isfinite(within[..., 0])
    allowed = (np.abs(lw.kinematics.inverse_kinematics_branches(puma, {"link6": poses})) <= 2.6).all(axis=-1)
    np.testing.assert_array_equal(there, allowed)
    assert there.any(axis=1).all() and not there.all()


@pytest.mark.parametrize(
    "q",
    [
        np.zeros(6),  # wrist straight, arm at a limit of its reach
        (0.4, 0.3, -0.2, 1.0, 0.0, 0.5),  # axes 4 and 6 in line
        (0.4, 0.3, np.arctan2(0.0203, 0.4318) + np.pi / 2, 0.2, 0.7, 0.1),  # elbow stretched
        (0.4, 0.3, np.arctan2(0.0203, 0.4318) - np.pi / 2, 0.2, 0.7, 0.1),  # elbow folded
    ],
)
def test_singular_poses(puma, q):
    pose = lw.frame_pose(puma, q, "link6")
    found = lw.kinematics.inverse_kinematics_branches(puma, {"link6": pose})
    there = np.isfinite(found).all(axis=-1)
    assert there.sum() >= 4
    assert np.abs(lw.frame_pose(puma, found[there], "link6") - pose).max() < 1e-10
    assert lw.inverse_kinematics(puma, {"link6": pose}, q, limits=False).error < 1e-10


def test_what_is_out_of_reach_is_left_to_iterations(puma):
    poses = lw.frame_pose(puma, np.array([[0.3, 0.2, 0.4, 0.5, 0.6, 0.7], [1.0, 0.5, -0.4, 0.5, 0.6, 0.7]]), "link6")
    poses[0, :3, 3] *= 5.0
    found = lw.inverse_kinematics(puma, {"link6": poses}, attempts=20)
    assert found.converged.tolist() == [False, True]
    target = lw.kinematics.FrameTarget(poses[0, :3, 3], poses[0, :3, :3], position_weight=1e3)
    arm = np.linalg.norm([0.4318, 0.0203, 0.15005]) + 0.4318
    gap = np.linalg.norm(poses[0, :3, 3]) - arm
    nearest = lw.inverse_kinematics(puma, {"link6": target}, attempts=20)
    assert 0.9 * gap < nearest.error < gap + 0.1
    narrow = lw.inverse_kinematics(puma, {"link6": poses[1]}, limits=(np.full(6, -0.3), np.full(6, 0.3)), attempts=3)
    assert not narrow.converged and (np.abs(narrow.q) <= 0.3).all()


def test_arms_that_are_nearly_of_a_kind(ur5):
    """A calibrated arm: no two axes are quite parallel or meet."""
    rng = np.random.default_rng(3)
    axes = np.array([unit(axis + 1e-3 * rng.normal(size=3)) for axis in ur5.axes])
    arm = Arm(axes, ur5.points + 1e-3 * rng.normal(size=(6, 3)), ur5.hand)
    mech = arm.mechanism()
    form = closed_form(mech, "hand")
    assert form is not None and not form.exact and 1e-4 < form.deviation < 1e-2
    q = rng.uniform(-np.pi, np.pi, (100, 6))
    poses = arm.pose(q)
    found = lw.inverse_kinematics(mech, {"hand": poses})
    assert found.converged.all() and np.abs(arm.pose(found.q) - poses).max() < 2e-8
    assert (found.attempts == 1).mean() > 0.9 and np.median(found.iterations) <= 4
    every = lw.kinematics.inverse_kinematics_branches(mech, {"hand": poses})
    there = np.isfinite(every).all(axis=-1)
    assert there.sum() > 500 and np.abs(arm.pose(every) - poses[:, None])[there].max() < 1e-9
    again = (np.abs(off(every - q[:, None])).max(axis=-1) < 1e-6).any(axis=-1)
    assert again.mean() > 0.9  # those whose formulas have a solution, which are not all at the edges of reach


def test_other_joints_stay_and_may_stand_between(ur5):
    """A gripper's finger, and one whose joint mimics it."""
    builder = lw.Builder().link("door", 1.0, (0, 0, 0), (1, 1, 1)).joint("hinge", lw.Revolute(), "ground", "door")
    before = np.zeros(3)
    for k in range(6):
        builder.link(f"link{k}", 1.0, (0, 0, 0), (1, 1, 1))
        place = (None, ur5.points[k] - before)
        builder.joint(f"joint{k}", lw.Revolute(ur5.axes[k]), f"link{k - 1}" if k else "ground", f"link{k}", place)
        before = ur5.points[k]
        if k == 2:
            builder.link("cover", 1.0, (0, 0, 0), (1, 1, 1)).joint("lid", lw.Prismatic(), "link2", "cover")
    builder.link("finger", 1.0, (0, 0, 0), (1, 1, 1)).joint("grip", lw.Revolute(), "link5", "finger")
    builder.link("other", 1.0, (0, 0, 0), (1, 1, 1))
    mech = builder.joint("mimic", lw.Revolute(), "link5", "other", mimic=lw.Mimic("grip", -1.0)).build()
    q = np.random.default_rng(0).uniform(-3, 3, (20, mech.nq))
    poses = lw.frame_pose(mech, q, "link5")
    found = lw.inverse_kinematics(mech, {"link5": poses}, q)
    assert (found.iterations == 0).all()
    np.testing.assert_allclose(found.q, q, atol=1e-7)
    every = lw.kinematics.inverse_kinematics_branches(mech, {"link5": poses})
    assert every.shape == (20, 8, mech.nq)
    np.testing.assert_array_equal(np.nan_to_num(every[..., mech.q_index("lid")]), 0.0)


def test_what_has_no_formulas_says_why(ur5, puma):
    with pytest.raises(lw.MechanismError, match="2 joints carry the frame, not six; linkwise.inverse_kinematics"):
        lw.kinematics.inverse_kinematics_branches(lw.mechanisms.planar_arm(2), {"tip": np.eye(4)})
    with pytest.raises(lw.MechanismError, match="one pose of one frame"):
        lw.kinematics.inverse_kinematics_branches(puma, {"link6": np.zeros(3)})
    assert "not revolute" in why_not(lw.mechanisms.stanford_arm(), "link6")
    assert "loops" in why_not(lw.mechanisms.five_bar(), "link3")
    general = Arm(np.array([unit(x) for x in np.random.default_rng(0).normal(size=(6, 3))]), ur5.points, ur5.hand)
    assert closed_form(general.mechanism(), "hand") is None
    assert "neither" in why_not(general.mechanism(), "hand")
    flat = Arm(np.tile([0.0, 0.0, 1.0], (6, 1)), ur5.points, ur5.hand)
    assert closed_form(flat.mechanism(), "hand") is None
    no_pose = np.eye(4)
    no_pose[3, 0] = 0.1
    with pytest.raises(lw.MechanismError, match="last row"):
        lw.inverse_kinematics(puma, {"link6": no_pose})
    with pytest.raises(lw.MechanismError, match="no rotation"):
        lw.inverse_kinematics(puma, {"link6": np.diag([1.0, 1.0, -1.0, 1.0])})
