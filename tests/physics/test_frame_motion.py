"""Velocity and acceleration of frames as three observers see them: from poses along a motion, and from Jacobians;
effective inertia and manipulability from their definitions."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.test_jacobian_rates import deepest, with_mimic_joints
from tests.physics.trees import Model, close, every_tree, large_trees_are_slow, rate, tree_of

pytestmark = large_trees_are_slow

FRAMES = ("link", "world", "world_aligned")


def times(matrix, vector):
    return np.einsum("...ij,...j->...i", matrix, vector)


def welded(mech: lw.Mechanism) -> str:
    """A frame that is not at its link's origin if there is one, else the deepest link."""
    away = [name for name, frame in mech.frames.items() if frame.body >= 0 and np.any(frame.position)]
    return away[-1] if away else deepest(mech)


def seen_from_poses(model: Model, name: str, q, v, a) -> dict[str, np.ndarray]:
    """World-aligned velocity, its derivative (the point's) and the frame's axes, from poses along q(t) alone."""

    def pose(t: float) -> np.ndarray:
        return model.frame_pose(model.integrate(q, v + a * (t / 2), t), link=name)

    def velocity(t: float) -> np.ndarray:
        change = rate(lambda s: pose(t + s))
        turning = change[..., :3, :3] @ np.swapaxes(pose(t)[..., :3, :3], -1, -2)
        omega = np.stack([turning[..., 2, 1], turning[..., 0, 2], turning[..., 1, 0]], axis=-1)
        return np.concatenate([omega, change[..., :3, 3]], axis=-1)

    return {"velocity": velocity(0.0), "acceleration": rate(velocity), "pose": pose(0.0)}


@every_tree
def test_against_poses_along_a_motion(tree):
    """Nothing but frame_pose and integrate is believed: a curve with velocity v and acceleration a at its start."""
    model = tree()
    q, v, a, _ = model.states(2)
    name = welded(model.mech)
    found = seen_from_poses(model, name, q, v, a)
    velocity, point, rotation = found["velocity"], found["acceleration"], found["pose"][..., :3, :3]
    back = np.swapaxes(rotation, -1, -2)
    close(model.frame_velocity(q, v, link=name, frame="world_aligned"), velocity, 1e-8)
    of = {"link": name, "frame": "world_aligned", "classical": True}
    close(model.frame_acceleration(q, v, a, **of), point, 2e-7)
    local = np.concatenate([times(back, point[:, :3]), times(back, point[:, 3:])], axis=-1)
    close(model.frame_acceleration(q, v, a, link=name, frame="link", classical=True), local, 2e-7)


@pytest.mark.quick_one_in(3)
@every_tree
@pytest.mark.parametrize("frame", FRAMES)
def test_against_jacobians(tree, frame):
    """J v, dJ/dt v, and J a + dJ/dt v, which is spatial but for the observer who moves with the point; classical
    accelerations have omega x v more."""
    model = tree()
    q, v, a, _ = model.states(3)
    for name in {welded(model.mech), deepest(model.mech), model.mech.link_names[0]}:
        of = {"link": name, "frame": frame}
        jacobian, change = model.jacobian(q, **of), times(model.jacobian_rate(q, v, **of), v)
        velocity, total = times(jacobian, v), times(jacobian, a) + change
        close(model.frame_velocity(q, v, **of), velocity, 1e-12)
        close(model.jacobian_rate_times_velocity(q, v, **of), change, 1e-10)
        more = np.concatenate([np.zeros((3, 3)), np.cross(velocity[:, :3], velocity[:, 3:])], axis=-1)
        spatial = total - more if frame == "world_aligned" else total
        close(model.frame_acceleration(q, v, a, **of), spatial, 1e-10)
        close(model.frame_acceleration(q, v, a, **of, classical=True), spatial + more, 1e-10)


@pytest.mark.parametrize("frame", FRAMES)
def test_mimic_joints_and_a_welded_tool(frame):
    model = Model(with_mimic_joints())
    q, v, a, _ = model.states(3)
    of = {"link": "tool", "frame": frame}
    close(model.frame_velocity(q, v, **of), times(model.jacobian(q, **of), v), 1e-12)
    close(model.jacobian_rate_times_velocity(q, v, **of), times(model.jacobian_rate(q, v, **of), v), 1e-11)


@every_tree
@pytest.mark.parametrize("frame", FRAMES)
def test_effective_inertia(tree, frame):
    model = tree()
    mech = model.mech
    if mech.parameters.singular_joints:
        return
    q, *_ = model.states(3)
    name, direction = welded(mech), np.random.default_rng(5).normal(size=6)
    jacobian = model.jacobian(q, link=name, frame=frame)
    mobility = jacobian @ np.linalg.solve(model.mass_matrix(q), np.swapaxes(jacobian, -1, -2))
    expected = np.einsum("i,sij,j->s", direction, mobility, direction)
    close(1.0 / model.effective_inertia(q, direction, link=name, frame=frame), expected, 1e-7, core=0)


@pytest.mark.parametrize("frame", FRAMES)
@pytest.mark.parametrize("rows", [None, "angular", "linear", (3,), (5, 0), (3, 4, 2)], ids=str)
def test_manipulability(frame, rows):
    mech = lw.mechanisms.random_tree(8, 12, floating_base=True)
    name = deepest(mech)
    q, _ = lw.random_state(mech, np.random.default_rng(0), (4,))
    chosen = {None: range(6), "angular": range(3), "linear": range(3, 6)}.get(rows, rows)
    jacobian = lw.jacobian(mech, q, name, frame)[:, list(chosen)]
    expected = np.prod(np.linalg.svd(jacobian, compute_uv=False), axis=-1)
    np.testing.assert_allclose(lw.kinematics.manipulability(mech, q, name, rows, frame), expected, rtol=1e-10)


def test_manipulability_of_a_planar_arm_and_where_it_is_zero():
    """l1 l2 |sin q2| of two rods (Yoshikawa); in the stretched arm nothing is left, and no nan."""
    mech = lw.mechanisms.planar_arm(2)
    tip = mech.frame("tip").position
    first = mech.bodies[1].position
    q = np.array([[0.3, 0.9], [1.0, -0.2], [0.4, 1e-9], [0.7, 0.0]])
    plane = [3 + int(k) for k in np.argsort(-np.abs(np.ptp(lw.jacobian(mech, q, "tip", "world")[:, 3:], (0, 2))))[:2]]
    found = lw.kinematics.manipulability(mech, q, "tip", plane, "world_aligned")
    lengths = np.linalg.norm(tip) * np.linalg.norm(first)
    np.testing.assert_allclose(found, lengths * np.abs(np.sin(q[:, 1])), rtol=1e-6, atol=1e-15)
    np.testing.assert_array_equal(lw.kinematics.manipulability(mech, q, "tip", (plane[0], 0)), 0.0 * q[:, 0])


def test_the_effective_mass_of_a_point_mass_and_of_what_does_not_move():
    builder = lw.Builder().link("bead", 2.5).joint("wire", lw.Prismatic((1, 0, 0)), "ground", "bead")
    bead = builder.build("bead")
    np.testing.assert_allclose(lw.control.effective_inertia(bead, [0.3], (1, 0, 0), "bead"), 2.5)
    np.testing.assert_allclose(lw.control.effective_inertia(bead, [0.3], (0, 0, 0, 2, 0, 0), "bead"), 2.5 / 4.0)
    with np.errstate(divide="ignore"):
        assert np.isinf(lw.control.effective_inertia(bead, [0.3], (0, 1, 0), "bead"))


def test_batches_machine_code_and_single_precision():
    mech = tree_of(5, 1, True).mech
    rng, name = np.random.default_rng(0), deepest(tree_of(5, 1, True).mech)
    q, v = lw.random_state(mech, rng, (3, 1))
    a, model = rng.normal(size=(4, mech.nv)), Model(mech)
    for frame in FRAMES:
        assert lw.frame_velocity(mech, q, v, name, frame).shape == (3, 1, 6)
        assert lw.kinematics.jacobian_rate_times_velocity(mech, q, v, name, frame).shape == (3, 1, 6)
        for classical in (False, True):
            found = lw.frame_acceleration(mech, q, v, a, name, frame, classical)
            assert found.shape == (3, 4, 6)
            of = {"link": name, "frame": frame, "classical": classical}
            expected = model.frame_acceleration(q + 0 * q[:1], v, a, **of)
            np.testing.assert_allclose(found, expected, atol=1e-11)
            narrow = lw.frame_acceleration(mech, *map(np.float32, (q, v, a)), name, frame, classical)
            assert narrow.dtype == np.float32
            np.testing.assert_allclose(narrow, found, atol=2e-3 * np.abs(found).max())
    direction = rng.normal(size=(4, 3))
    assert lw.control.effective_inertia(mech, q, direction, name).shape == (3, 4)
    narrow = lw.control.effective_inertia(mech, np.float32(q), np.float32(direction), name)
    assert narrow.dtype == np.float32
    assert lw.kinematics.manipulability(mech, np.float32(q), name, "linear").dtype == np.float32


@pytest.mark.parametrize("frame", FRAMES)
def test_the_ground_does_not_move(frame):
    mech = lw.mechanisms.planar_arm(2)
    q, v, a = [0.1, 0.2], [1.0, 2.0], [3.0, 4.0]
    assert not lw.frame_velocity(mech, q, v, "ground", frame).any()
    assert not lw.kinematics.jacobian_rate_times_velocity(mech, q, v, "ground", frame).any()
    for classical in (False, True):
        assert not lw.frame_acceleration(mech, q, v, a, "ground", frame, classical).any()


def test_another_word_for_link():
    mech = lw.mechanisms.planar_arm(2)
    q, v = [0.1, 0.2], [1.0, 2.0]
    np.testing.assert_array_equal(lw.frame_velocity(mech, q, v, name="tip"), lw.frame_velocity(mech, q, v, "tip"))
    named = lw.frame_acceleration(mech, q, v, v, name="tip", frame="world", classical=True)
    np.testing.assert_array_equal(named, lw.frame_acceleration(mech, q, v, v, "tip", "world", True))


def test_what_is_wrong_is_told():
    mech = lw.mechanisms.planar_arm(2)
    q = [0.1, 0.2]
    for call in (
        lambda: lw.frame_velocity(mech, q, q, "tip", "tool"),
        lambda: lw.frame_acceleration(mech, q, q, q, "tip", "tool"),
        lambda: lw.frame_acceleration(mech, q, q, q, "tip", "tool", True),
        lambda: lw.kinematics.jacobian_rate_times_velocity(mech, q, q, "tip", "tool"),
        lambda: lw.control.effective_inertia(mech, q, (1, 0, 0), "tip", "tool"),
        lambda: lw.kinematics.manipulability(mech, q, "tip", "linear", "tool"),
    ):
        with pytest.raises(ValueError, match="frame must be 'link', 'world' or 'world_aligned', got 'tool'"):
            call()
    for call in (
        lambda: lw.frame_velocity(mech, q, q, "tpi"),
        lambda: lw.frame_acceleration(mech, q, q, q, "tpi", classical=True),
        lambda: lw.control.effective_inertia(mech, q, (1, 0, 0), "tpi"),
        lambda: lw.kinematics.manipulability(mech, q, "tpi", (3,)),
    ):
        with pytest.raises(lw.MechanismError, match="no link or frame 'tpi'.*did you mean 'tip'"):
            call()
    with pytest.raises(TypeError, match="frame_velocity takes link or name.*: give one of them"):
        lw.frame_velocity(mech, q, q)
    with pytest.raises(lw.MechanismError, match="moves with 2 degrees of freedom: the manipulability of 6 rows"):
        lw.kinematics.manipulability(mech, q, "tip")
    for rows in ("lateral", (3, 3), (6,), (), (1.5,), 3):
        with pytest.raises(ValueError, match="rows must be 'angular', 'linear' or different numbers from 0 to 5"):
            lw.kinematics.manipulability(mech, q, "tip", rows)
    with pytest.raises(ValueError, match="direction must have shape"):
        lw.control.effective_inertia(mech, q, (1, 0), "tip")
    with pytest.raises(lw.MechanismError, match="'ground' is fixed to the ground: no force moves it"):
        lw.control.effective_inertia(mech, q, (1, 0, 0), "ground")
    loop = lw.mechanisms.four_bar()  # the inertia that its one motion has, seen along the turning of its crank
    basis = lw.constraints.null_space(loop, lw.neutral(loop))[:, 0]
    turning = lw.jacobian(loop, lw.neutral(loop), "crank")[2] @ basis
    expected = basis @ lw.mass_matrix(loop, lw.neutral(loop)) @ basis / turning**2
    found = lw.control.effective_inertia(loop, lw.neutral(loop), (0, 0, 1, 0, 0, 0), "crank")
    assert found == pytest.approx(expected, rel=1e-10)


@pytest.mark.parametrize("n", [6, 20])
def test_the_product_costs_less_than_the_matrix(n):
    """Seen from the world, it is that of the link, moved back joint by joint."""
    mech = lw.mechanisms.chain(n)

    def operations(name: str, frame: str) -> int:
        kernel = lw.compile(name, mech, target="numpy", link=mech.link_names[-1], frame=frame)
        return sum(kernel.op_counts.values())

    product = 6 * (2 * n - 1)
    for frame in ("link", "world_aligned"):
        assert operations("jacobian_rate_times_velocity", frame) < operations("jacobian_rate", frame) + product
    for name in ("frame_velocity", "jacobian_rate_times_velocity"):
        assert operations(name, "link") < operations(name, "world_aligned") < operations(name, "world")
