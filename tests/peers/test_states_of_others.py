"""The recipes of docs/conventions.md for states of a floating base, against the two libraries themselves."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.docs.test_docs import ROOT, blocks

PAGE = (ROOT / "docs" / "conventions.md").read_text(encoding="utf-8")
SNAKE = """<mujoco><worldbody><body name="a"><freejoint name="base"/><geom size="0.1" pos="0.1 0.2 0"/>
  <body name="b" pos="0.3 0 0"><joint name="h" axis="0 1 0"/><geom size="0.1" pos="0.2 0 0.1"/>
  <body name="c" pos="0.3 0 0"><joint name="s" type="slide" axis="1 0 1"/><geom size="0.1"/></body></body></body>
  </worldbody></mujoco>"""


def recipe(name: str):
    (block,) = (one for one in blocks(PAGE) if f"def {name}(" in one.code)
    names = {"np": np}
    exec(block.code, names)
    return names[name]


@pytest.fixture(scope="module")
def mech():
    with pytest.warns(lw.OmissionWarning):
        return lw.load(SNAKE)


def test_states_of_pinocchio(mech):
    pin = pytest.importorskip("pinocchio")
    from tests.peers.pinocchio_peer import mirrored

    model, convert = mirrored(mech).model, recipe("from_pinocchio")
    data, rng = model.createData(), np.random.default_rng(0)
    theirs = [(pin.randomConfiguration(model, -np.ones(9), np.ones(9)), rng.normal(size=8)) for _ in range(3)]
    q, v = convert(*map(np.array, zip(*theirs, strict=True)))
    for k, state in enumerate(theirs):
        np.testing.assert_array_equal(convert(*state)[0], q[k])
        pin.forwardKinematics(model, data, *state)
        last = model.njoints - 1
        np.testing.assert_allclose(lw.link_poses(mech, q[k])[-1], data.oMi[last].homogeneous, rtol=0, atol=1e-13)
        found = lw.link_velocities(mech, q[k], v[k])[-1]
        np.testing.assert_allclose(found, np.roll(data.v[last].vector, 3), rtol=0, atol=1e-12)


def test_states_of_mujoco(mech):
    mujoco = pytest.importorskip("mujoco")
    model, convert = mujoco.MjModel.from_xml_string(SNAKE), recipe("from_mujoco")
    data, rng = mujoco.MjData(model), np.random.default_rng(0)
    qpos, qvel = rng.normal(size=(3, model.nq)), rng.normal(size=(3, model.nv))
    qpos[:, 3:7] /= np.linalg.norm(qpos[:, 3:7], axis=1, keepdims=True)
    q, v = convert(qpos, qvel)
    for k in range(3):
        np.testing.assert_array_equal(convert(qpos[k], qvel[k])[0], q[k])
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos[k], qvel[k], 0.0
        model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_CONSTRAINT)
        mujoco.mj_forward(model, data)
        np.testing.assert_allclose(lw.frame_pose(mech, q[k], "c")[:3, 3], data.body("c").xpos, rtol=0, atol=1e-13)
        seen = np.zeros(6)
        mujoco.mj_objectVelocity(model, data, mujoco.mjtObj.mjOBJ_XBODY, data.body("c").id, seen, 1)
        np.testing.assert_allclose(lw.link_velocities(mech, q[k], v[k])[-1], seen, rtol=0, atol=1e-12)
        rotation = lw.frame_pose(mech, q[k], "a")[:3, :3]
        linear = rotation.T @ data.qacc[:3] - np.cross(v[k, :3], v[k, 3:6])
        expected = np.concatenate([data.qacc[3:6], linear, data.qacc[6:]])
        np.testing.assert_allclose(lw.forward_dynamics(mech, q[k], v[k], np.zeros(8)), expected, rtol=0, atol=1e-9)
