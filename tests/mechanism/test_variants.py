"""Locked joints, payloads, armatures and limits, against Pinocchio, against constraints and against builders."""

from __future__ import annotations

import dataclasses
import json
import pickle
import tracemalloc

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError, from_data, to_data

EVERY_KIND = (
    lw.Revolute((0.3, -1.0, 0.4)),
    lw.Prismatic((0.0, -1.0, 0.0)),
    lw.Helical((0.2, 0.1, 1.0), 0.3),
    lw.Cylindrical((1.0, -1.0, 0.5)),
    lw.Universal((1.0, 0.2, 0.0), (0.3, 1.0, 0.5)),
    lw.PinInSlot((1.0, 0.2, 0.0), (0.3, 1.0, 0.5)),
    lw.Planar((0.5, 0.5, 1.0)),
    lw.Spherical(),
    lw.Floating(),
)


def rest_of(mech: lw.Mechanism, locked: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:
    """Places of the coordinates that a mechanism with locked joints keeps, in q and in v."""
    names = [b.joint for b in locked.bodies if not b.mimic]
    q = np.concatenate([np.arange(mech.nq)[mech.q_index(name)] for name in names])
    return q, np.concatenate([np.arange(mech.nv)[mech.v_index(name)] for name in names])


def check_locked(mech: lw.Mechanism, names: list[str], seed: int) -> None:
    """Frames, forces and mass matrix are those of the whole mechanism with these joints held still."""
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng)
    q = 0.5 * q if all(b.kind.nq == b.kind.nv for b in mech.bodies) else q
    locked = mech.with_locked({name: q[mech.q_index(name)] for name in names})
    in_q, in_v = rest_of(mech, locked)
    assert set(locked.frames) == set(mech.frames)
    assert locked.nv == mech.nv - sum(mech.bodies[mech.body_index(name)].kind.nv for name in names)
    a = rng.normal(size=mech.nv)
    held = np.setdiff1d(np.arange(mech.nv), in_v)
    v[held] = a[held] = 0.0
    for frame in mech.frames:
        np.testing.assert_allclose(
            lw.frame_pose(locked, q[in_q], frame), lw.frame_pose(mech, q, frame), atol=1e-12, err_msg=frame
        )
    np.testing.assert_allclose(lw.mass_matrix(locked, q[in_q]), lw.mass_matrix(mech, q)[np.ix_(in_v, in_v)], atol=1e-10)
    np.testing.assert_allclose(
        lw.inverse_dynamics(locked, q[in_q], v[in_v], a[in_v]), lw.inverse_dynamics(mech, q, v, a)[in_v], atol=1e-9
    )


@pytest.mark.parametrize("seed", range(3))
def test_locked_joints_of_random_trees(seed):
    mech = lw.mechanisms.random_tree(8, seed)
    names = list(np.random.default_rng(seed).choice(mech.joint_names, size=3, replace=False))
    check_locked(mech, names, seed)


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("number", range(len(EVERY_KIND)), ids=lambda number: type(EVERY_KIND[number]).__name__)
def test_every_kind_of_joint_can_be_locked(number):
    kind, where = EVERY_KIND[number], ("first", "middle", "last")[number % 3]
    builder = lw.Builder()
    for name in ("a", "b", "c"):
        builder.link(name, 1.0, (0.1, 0.2, -0.3), (0.2, 0.3, 0.4))
    kinds = dict.fromkeys(("first", "middle", "last"), lw.Revolute((0, 1, 1))) | {where: kind}
    pose = (np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]]), (0.3, 0.1, 0.2))
    builder.link("tool", 0.5).joint("weld", lw.Fixed(), "c", "tool", (None, (0, 0, 0.4)))
    for joint, parent, child in (("first", "ground", "a"), ("middle", "a", "b"), ("last", "b", "c")):
        builder.joint(joint, kinds[joint], parent, child, pose, armature=0.1)
    check_locked(builder.build(), [where], 0)


def test_a_reduced_model_of_pinocchio():
    """The same URDF with three joints of five locked: masses, frames, biases and mass matrices agree."""
    pinocchio = pytest.importorskip("pinocchio")
    urdf = """<robot name="r">
      <link name="base"/>"""
    rng = np.random.default_rng(0)
    for i in range(5):
        x, y, z = rng.normal(size=3).round(3)
        urdf += f"""
      <link name="l{i}"><inertial><origin xyz="{x} {y} {z}"/><mass value="{1 + i}"/>
        <inertia ixx="0.3" iyy="0.4" izz="0.5" ixy="0.01" ixz="0.02" iyz="0.03"/></inertial></link>
      <joint name="j{i}" type="{"prismatic" if i == 3 else "revolute"}">
        <parent link="{"base" if i == 0 else f"l{i - 1}"}"/><child link="l{i}"/>
        <origin xyz="{z} {x} {y}" rpy="{x} {y} {z}"/><axis xyz="{["1 0 0", "0 1 0", "0 0 1"][i % 3]}"/>
        <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>"""
    urdf += "</robot>"
    mech, model = lw.load(urdf), pinocchio.buildModelFromXML(urdf)
    q = np.array([0.3, -0.4, 0.5, 0.2, -0.7])
    names = ("j0", "j2", "j3")
    locked = mech.with_locked({name: q[mech.q_index(name)][0] for name in names})
    reduced = pinocchio.buildReducedModel(model, [model.getJointId(name) for name in names], q)
    data = reduced.createData()
    left, v = q[[1, 4]], np.array([0.6, -0.8])
    pinocchio.crba(reduced, data, left)
    expected = np.triu(data.M) + np.triu(data.M, 1).T
    np.testing.assert_allclose(lw.mass_matrix(locked, left), expected, atol=1e-12)
    np.testing.assert_allclose(
        lw.bias_force(locked, left, v), pinocchio.nonLinearEffects(reduced, data, left, v), atol=1e-11
    )
    np.testing.assert_allclose(locked.parameters.masses, [inertia.mass for inertia in reduced.inertias][1:], rtol=1e-14)
    pinocchio.framesForwardKinematics(reduced, data, left)
    for link in ("l0", "l2", "l3", "l4"):
        expected = data.oMf[reduced.getFrameId(link)].homogeneous
        np.testing.assert_allclose(lw.frame_pose(locked, left, link), expected, atol=1e-12)


def hand() -> lw.Mechanism:
    """Three fingers' joints in a row, the outer two following the first."""
    builder = lw.Builder()
    for name in ("a", "b", "c"):
        builder.link(name, 1.0, (0.3, 0.1, 0.0), (0.1, 0.1, 0.1))
    z = lw.Revolute((0, 0, 1))
    builder.joint("lead", z, "ground", "a").joint("free", z, "a", "b", (None, (0.5, 0, 0)))
    builder.joint("follow", z, "b", "c", (None, (0.5, 0, 0)), mimic=lw.Mimic("lead", -2.0, 0.3))
    return builder.build()


def test_mimic_joints_are_locked_with_those_they_mimic():
    mech = hand()
    locked = mech.with_locked({"lead": 0.4})
    assert locked.joint_names == ("free",) and locked.q_index("free") == slice(0, 1)
    for frame in mech.frames:
        np.testing.assert_allclose(
            lw.frame_pose(locked, [0.7], frame), lw.frame_pose(mech, [0.4, 0.7], frame), atol=1e-14
        )
    with pytest.raises(MechanismError, match="mimics 'lead': lock that one"):
        mech.with_locked({"follow": 0.1})
    assert [b.joint for b in mech.with_locked({"free": 0.2}).bodies] == ["lead", "follow"]
    check = mech.with_locked({"free": 0.2})
    np.testing.assert_allclose(lw.mass_matrix(check, [0.3]), lw.mass_matrix(mech, [0.3, 0.2])[:1, :1], atol=1e-12)


def test_loops_survive_locked_joints():
    mech = lw.mechanisms.five_bar()
    q = np.array([2 * np.pi / 3, np.pi / 3 + np.arccos(2 / 3), 2 * np.arcsin(2 / 3), np.pi / 3 + np.arccos(2 / 3)])
    locked = mech.with_locked({"joint1": q[0]})
    assert lw.constraints.degrees_of_freedom(locked, q[1:]) == 1
    np.testing.assert_allclose(
        lw.constraints.position_error(locked, q[1:]), lw.constraints.position_error(mech, q), atol=1e-14
    )
    # As if a strong motor held the joint: the force on it is the one that keeps it still.
    v = np.r_[0.0, lw.constraints.null_space(locked, q[1:])[:, 0]]
    a = lw.forward_dynamics(locked, q[1:], v[1:], np.zeros(3))
    stiff = mech.parameters.with_armature({"joint1": 1e9})
    np.testing.assert_allclose(lw.forward_dynamics(stiff, q, v, np.zeros(4)), np.r_[0.0, a], atol=1e-5)
    with pytest.raises(MechanismError, match="both sides of loop 'support' parts of one rigid body"):
        mech.with_locked(dict(zip(mech.joint_names, q, strict=True)))


def test_payloads():
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(1)
    q, v = lw.random_state(mech, rng)
    a, com, inertia = rng.normal(size=6), np.array([0.1, -0.2, 0.3]), np.diag([0.1, 0.2, 0.25])
    link = mech.link_names[-1]
    loaded = mech.with_payload(link, 2.0, com, inertia)
    np.testing.assert_allclose(loaded.parameters.masses.sum(), mech.parameters.masses.sum() + 2.0)
    # The payload's weight and inertia as a wrench on the arm without it.
    omega, _ = np.split(lw.link_velocities(mech, q, v)[-1], 2)
    alpha, linear = np.split(lw.link_accelerations(mech, q, v, a)[-1], 2)
    pose = lw.link_poses(mech, q)[-1]
    at_origin = linear + np.cross(omega, lw.link_velocities(mech, q, v)[-1][3:])
    at_com = at_origin + np.cross(alpha, com) + np.cross(omega, np.cross(omega, com))
    force = 2.0 * (at_com - pose[:3, :3].T @ mech.gravity)
    moment = inertia @ alpha + np.cross(omega, inertia @ omega) + np.cross(com, force)
    wrenches = np.zeros((6, 6))
    wrenches[-1] = -np.r_[moment, force]
    np.testing.assert_allclose(
        lw.inverse_dynamics(loaded, q, v, a), lw.inverse_dynamics(mech, q, v, a, wrenches), atol=1e-10
    )
    arm = lw.mechanisms.planar_arm(2)  # on a welded frame: seen from there
    assert arm.with_payload("tip", 1.0).parameters.coms[-1] == pytest.approx(
        (arm.parameters.masses[-1] * arm.parameters.coms[-1] + arm.frame("tip").position)
        / (arm.parameters.masses[-1] + 1.0)
    )
    with pytest.raises(MechanismError, match="fixed to the ground"):
        mech.with_payload("ground", 1.0)
    with pytest.raises(MechanismError, match="triangle inequality"):
        mech.with_payload(link, 1.0, com, (1.0, 1.0, 3.0))
    with pytest.raises(MechanismError, match=f"the payload of '{link}': its mass -2 is negative; fix the sign"):
        mech.with_payload(link, -2.0)
    with pytest.raises(MechanismError, match="did you mean"):
        mech.with_payload(link + "x", 1.0)


def test_armature_and_limits():
    mech = lw.mechanisms.planar_arm(3)
    q = np.array([0.1, 0.2, 0.3])
    second = mech.joint_names[1]
    changed = mech.parameters.with_armature({second: 0.7})
    np.testing.assert_allclose(lw.mass_matrix(changed, q) - lw.mass_matrix(mech, q), np.diag([0, 0.7, 0]), atol=1e-14)
    assert changed != mech and changed.parameters.with_armature({second: mech.bodies[1].armature}) == mech
    limited = mech.with_limits({second: lw.Limits(lower=-1.0, upper=2.0, effort=5.0)})
    assert limited.bodies[1].limits.upper == (2.0,) and limited.bodies[0] == mech.bodies[0]
    with pytest.raises(MechanismError, match="negative"):
        mech.parameters.with_armature({second: -1.0})
    with pytest.raises(MechanismError, match="exceeds its upper limit"):
        mech.with_limits({second: lw.Limits(lower=2.0, upper=1.0)})
    with pytest.raises(MechanismError, match="limits are Limits"):
        mech.with_limits({second: (1.0, 2.0)})
    with pytest.raises(MechanismError, match="has no moving joint"):
        mech.parameters.with_armature({"nothing": 1.0})
    with pytest.raises(TypeError, match="joint name: value"):
        mech.parameters.with_armature([0.1])
    with pytest.raises(TypeError, match="given twice"):
        mech.parameters.with_armature({second: 0.1}, **{second: 0.1})


def test_limits_as_arrays():
    mech = hand().with_limits(lead=lw.Limits(-1.0, 2.0, 3.0, 4.0), follow=lw.Limits(-9.0, 9.0, 9.0, 9.0))
    np.testing.assert_array_equal(mech.limits.lower, [-1.0, -np.inf])
    np.testing.assert_array_equal(mech.limits.upper, [2.0, np.inf])
    np.testing.assert_array_equal(mech.limits.velocity, [3.0, np.inf])
    np.testing.assert_array_equal(mech.limits.effort, [4.0, np.inf])
    with pytest.raises(ValueError, match="read-only"):
        mech.limits.lower[0] = 0.0
    for tree in (lw.mechanisms.random_tree(6, 1), mech.with_locked(lead=0.0, free=0.0)):
        assert tree.limits.lower.shape == tree.limits.upper.shape == (tree.nq,)
        assert tree.limits.velocity.shape == tree.limits.effort.shape == (tree.nv,)


def test_random_states_within_limits():
    builder = lw.Builder()
    limits = {
        "narrow": lw.Limits(5.0, 5.5, 0.25),
        "above": lw.Limits(lower=1.0),
        "below": lw.Limits(upper=-4.0),
        "free": lw.Limits(),
    }
    for name, limit in limits.items():
        builder.link(name, 1.0, inertia=(1, 1, 1)).joint(f"{name}_joint", lw.Revolute(), "ground", name, limits=limit)
    mech = builder.build()
    q, v = lw.random_state(mech, np.random.default_rng(0), (500,), within_limits=True)
    assert q.shape == v.shape == (500, 4)
    assert (
        (q >= mech.limits.lower).all() and (q <= mech.limits.upper).all() and (np.abs(v) <= mech.limits.velocity).all()
    )
    # The whole range is drawn from, and what has no limit is as it was.
    assert np.ptp(q[:, 0]) > 0.45 and np.ptp(v[:, 0]) > 0.45
    plain_q, plain_v = lw.random_state(mech, np.random.default_rng(0), (500,))
    np.testing.assert_array_equal(q[:, 3], plain_q[:, 3])
    np.testing.assert_array_equal(v[:, 1:], plain_v[:, 1:])
    assert lw.random_state(mech, np.random.default_rng(0), within_limits=True)[0].shape == (4,)
    ball = lw.Builder().link("a", 1.0, inertia=(1, 1, 1)).joint("ball", lw.Spherical(), "ground", "a")
    with pytest.raises(MechanismError, match="number of a quaternion"):
        limited = ball.build().with_limits(ball=lw.Limits(-1.0, 1.0))
        lw.random_state(limited, np.random.default_rng(0), within_limits=True)


def test_frames_are_added_and_survive_other_changes():
    rotation = np.array([[0.0, -1, 0], [1, 0, 0], [0, 0, 1]])
    mech = lw.mechanisms.planar_arm(3).with_frame("tool", "tip", (rotation, (0.0, 0.2, 0.1)))
    mech = mech.with_frame("camera", "ground", (None, (1.0, 2.0, 3.0))).parameters.with_damping(joint2=0.5)
    q = np.array([0.3, -0.2, 0.9])
    step = np.eye(4)
    step[:3, :3], step[:3, 3] = rotation, (0.0, 0.2, 0.1)
    expected = lw.frame_pose(mech, q, "tip") @ step
    np.testing.assert_allclose(lw.frame_pose(mech, q, "tool"), expected, atol=1e-14)
    np.testing.assert_allclose(lw.frame_pose(mech, q, "camera")[:3, 3], [1.0, 2.0, 3.0])
    assert lw.jacobian(mech, q, "tool").shape == (6, 3)
    assert mech.with_payload("tool", 1.0).parameters.masses[2] == mech.parameters.masses[2] + 1.0
    for variant in (
        pickle.loads(pickle.dumps(mech)),
        from_data(json.loads(json.dumps(to_data(mech)))),
        mech.with_payload("link1", 1.0)
        .with_gravity((0, 0, -1))
        .parameters.with_armature(joint1=0.1)
        .with_limits(joint1=lw.Limits()),
    ):
        np.testing.assert_allclose(lw.frame_pose(variant, q, "tool"), expected, atol=1e-14)
        assert variant.bodies[1].damping == (0.5,)
    locked = mech.with_locked(joint2=q[1])
    np.testing.assert_allclose(lw.frame_pose(locked, q[[0, 2]], "tool"), expected, atol=1e-14)
    with pytest.raises(MechanismError, match="'tip' already"):
        mech.with_frame("tip", "link1")
    with pytest.raises(MechanismError, match="did you mean 'link1'"):
        mech.with_frame("new", "lnk1")
    with pytest.raises(MechanismError, match="damping -1 is negative"):
        mech.parameters.with_damping(joint1=-1.0)


def test_numbers_for_all_joints_and_joints_locked_where_they_are():
    mech = lw.load(
        """<mujoco><worldbody><body name="a"><freejoint name="base"/><geom type="sphere" size="0.1" contype="0"/>
        <body name="b"><joint name="elbow" ref="30"/><geom type="sphere" size="0.1" contype="0"/>
        <body name="c"><joint name="ball" type="ball"/><geom type="sphere" size="0.1" contype="0"/></body></body></body>
        </worldbody></mujoco>"""
    )
    np.testing.assert_array_equal(mech.parameters.with_damping(1.5).parameters.damping, [0.0] * 6 + [1.5] * 4)
    np.testing.assert_array_equal(
        mech.parameters.with_armature(
            0.5,
        ).parameters.armature,
        [0.0] * 6 + [0.5] * 4,
    )
    assert mech.parameters.with_damping(np.float64(2.0)).forces.active == {"damping": ("elbow", "ball")}
    at = mech.initial[mech.q_index("elbow")][0]
    assert at != 0.0
    assert mech.with_locked(["elbow", "ball"]) == mech.with_locked({"elbow": at, "ball": [1.0, 0.0, 0.0, 0.0]})
    assert mech.with_locked("elbow") == mech.with_locked(["elbow"]) == mech.with_locked(elbow=at)
    assert mech.with_locked(["elbow"], ball=[1.0, 0.0, 0.0, 0.0]) == mech.with_locked(["elbow", "ball"])


def test_what_cannot_be_locked():
    mech = lw.Builder().link("a", 1.0, inertia=(1, 1, 1)).joint("ball", lw.Spherical(), "ground", "a").build()
    with pytest.raises(MechanismError, match="coordinates of joint 'ball' must have shape"):
        mech.with_locked({"ball": 1.0})
    with pytest.raises(MechanismError, match="quaternion is zero"):
        mech.with_locked({"ball": np.zeros(4)})
    with pytest.raises(MechanismError, match="must be finite"):
        mech.with_locked({"ball": [1.0, np.nan, 0.0, 0.0]})
    with pytest.raises(MechanismError, match="did you mean 'ball'"):
        mech.with_locked({"bal": 1.0})
    with pytest.raises(TypeError, match="coordinates of joints: give"):
        mech.with_locked(1.0)
    with pytest.raises(MechanismError, match="did you mean 'ball'"):
        mech.with_locked(["bal"])
    everything = mech.with_locked({"ball": [2.0, 0.0, 0.0, 0.0]})
    assert everything.nv == 0 and everything.frame("a").body == -1
    np.testing.assert_allclose(everything.frame("a").rotation, np.eye(3), atol=1e-15)
    assert dataclasses.replace(everything) == everything


def test_loops_are_given_one_by_one():
    mech = lw.mechanisms.chain(3)
    with pytest.raises(
        lw.MechanismError, match="takes linkwise.constraints.Loop and Coupling objects one by one, got a list"
    ):
        mech.with_loops([])


def test_variants_of_long_chains_take_little_memory():
    mech = lw.mechanisms.chain(1000)
    tracemalloc.start()
    try:
        mech.with_gravity((0.0, 0.0, -1.0)).with_payload(mech.link_names[-1], 1.0)
        assert tracemalloc.get_traced_memory()[1] < 20_000 * mech.nv
    finally:
        tracemalloc.stop()
