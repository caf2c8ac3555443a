"""Single coordinates by name: of joints with several, of orientations; wherever states are given by joint."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.mechanism.naming import OF_OTHER_LIBRARIES


@pytest.fixture(scope="module")
def mech():
    builder = lw.Builder()
    for name in ("trunk", "arm", "hand", "cart", "finger"):
        builder.link(name, 1.0, inertia=(0.1, 0.1, 0.1))
    builder.joint("base", lw.Floating(), "ground", "trunk").joint("shoulder", lw.Universal(), "trunk", "arm")
    builder.joint("wrist", lw.Spherical(), "arm", "hand").joint("floor", lw.Planar(), "ground", "cart")
    builder.joint("grip", lw.Revolute(), "hand", "finger")
    return builder.build()


def test_names(mech):
    assert mech.q_names == (
        *(f"base.{name}" for name in ("qw", "qx", "qy", "qz", "x", "y", "z")),
        *("shoulder.1", "shoulder.2", "wrist.qw", "wrist.qx", "wrist.qy", "wrist.qz"),
        *("floor.x", "floor.y", "floor.angle", "grip"),
    )
    assert mech.v_names[:8] == (
        "base.wx",
        "base.wy",
        "base.wz",
        "base.vx",
        "base.vy",
        "base.vz",
        "shoulder.1",
        "shoulder.2",
    )
    assert mech.v_names[8:] == ("wrist.wx", "wrist.wy", "wrist.wz", "floor.x", "floor.y", "floor.angle", "grip")
    assert len(mech.q_names) == mech.nq and len(mech.v_names) == mech.nv
    assert lw.mechanisms.puma560().q_names == lw.mechanisms.puma560().joint_names


def test_states_take_them(mech):
    start = {"base.z": 0.7, "base.yaw": 0.3, "base.roll": -0.2, "shoulder.2": 0.4, "floor[1]": 2.0, "grip": 1.0}
    motion = lw.simulate(mech, start, {"base.vx": 0.5, "wrist.wz": -1.0, "floor.angle": 0.25}, 1e-3, method="rk4")
    q, v = motion.q[0], motion.v[0]
    turn = Rotation.from_euler("xyz", (-0.2, 0.0, 0.3)).as_quat()[[3, 0, 1, 2]]
    np.testing.assert_allclose(q[:7], [*turn, 0.0, 0.0, 0.7], atol=1e-15)
    assert (q[8], q[14], q[16]) == (0.4, 2.0, 1.0) and not q[[7, 13, 15]].any()
    assert {name: x for name, x in zip(mech.v_names, v, strict=True) if x} == {
        "base.vx": 0.5,
        "wrist.wz": -1.0,
        "floor.angle": 0.25,
    }
    once, _ = lw.rollout(mech, start, None, None, 1e-3, 1)
    np.testing.assert_array_equal(once[0], q)


def test_what_does_not_exist_is_told(mech):
    with pytest.raises(lw.MechanismError, match="joint 'base' has no coordinate 'jaw': did you mean 'yaw'"):
        lw.simulate(mech, {"base.jaw": 1.0}, None, 0.1)
    with pytest.raises(lw.MechanismError, match="for a batch use one of the methods"):  # several states
        lw.simulate(mech, {"base.z": [1.0, 2.0]}, None, 0.1)
    with pytest.raises(lw.MechanismError, match="'base.z' is one number, got"):
        lw.simulate(mech, {"base.z": [[1.0, 2.0]]}, None, 0.1)
    with pytest.raises(lw.MechanismError, match="has no moving joint 'bas.z'"):
        lw.simulate(mech, {"bas.z": 1.0}, None, 0.1)


def test_loops_are_closed_with_them_held():
    """One number of a universal joint or of a position stays as it is given."""
    platform = lw.mechanisms.stewart_platform()
    place = platform.q_names.index("leg1_joint.1")
    start = lw.constraints.assemble(platform, platform.initial)
    motion = lw.simulate(platform, {"leg1_joint.1": start[place] + 0.05}, None, 1e-3, method="rk4")
    assert motion.q[0, place] == pytest.approx(start[place] + 0.05, abs=1e-12)
    assert motion.constraint_error[0] < 1e-10
    lifted = lw.simulate(platform, {"platform_joint.z": 0.1}, None, 1e-3, method="rk4")
    assert lifted.q[0, platform.q_names.index("platform_joint.z")] == pytest.approx(0.1, abs=1e-12)
    assert lifted.constraint_error[0] < 1e-10


def test_attributes_that_are_called_otherwise_elsewhere_are_named():
    arm = lw.mechanisms.planar_arm(2)
    for name, here in (
        ("lowerPositionLimit", "here: limits.lower"),
        ("njoints", "here: n_links"),
        ("lower_limits", "here: limits.lower"),
        ("q_max", "here: limits.upper"),
        ("torque_limits", "here: limits.effort"),
        ("dof", "here: nv"),
        ("joint_limits", "here: limits.lower and limits.upper"),
        ("getFrameId", "functions take those of frames"),
        ("copy", "mechanisms do not change"),
    ):
        with pytest.raises(AttributeError, match=f"no attribute '{name}'; .*{here}"):
            getattr(arm, name)
    with pytest.raises(AttributeError, match="no attribute 'no_such_thing'$"):
        arm.no_such_thing  # noqa: B018
    assert not hasattr(arm, "createData") and copy.deepcopy(arm) == arm == pickle.loads(pickle.dumps(arm))
    known = {*dir(lw.Mechanism), *lw.Mechanism.__dataclass_fields__}
    assert not known & {*OF_OTHER_LIBRARIES}  # what is there needs no other name
