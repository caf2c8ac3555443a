"""Coordinates of MuJoCo: what it computes from converted states, converted back, is what linkwise computes."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw

mujoco = pytest.importorskip("mujoco")
mujoco.set_mju_user_warning(lambda message: None)  # instead of a file MUJOCO_LOG.TXT in the present folder


def only_inertia(model):
    """Without constraints and what acts."""
    bits = mujoco.mjtDisableBit
    off = bits.mjDSBL_CONSTRAINT | bits.mjDSBL_CONTACT | bits.mjDSBL_SPRING | bits.mjDSBL_DAMPER | bits.mjDSBL_ACTUATION
    model.opt.disableflags |= int(off)
    return model


def assert_converts(mech: lw.Mechanism, model, tolerance: float = 1e-11) -> None:
    """Inverse dynamics, mass matrix and Jacobians by way of MuJoCo; and everything there and back."""
    model, tree = only_inertia(model), mech.spanning_tree
    there, rng, data = lw.interop.to_mujoco(mech, model), np.random.default_rng(0), mujoco.MjData(model)
    here = there.inverse
    q, v = lw.random_state(mech, rng, (3,))
    a = rng.normal(size=v.shape)
    qpos, qvel, qacc = there.q(q), there.v(q, v), there.a(q, v, a)
    forces = lw.compile("inverse_dynamics", tree, target="numpy")(q, v, a)
    masses = lw.compile("mass_matrix", tree, target="numpy")(q)
    link = mech.link_names[-1]
    jacobians = lw.compile("jacobian", tree, target="numpy", link=link, frame="world_aligned")(q)
    for k in range(3):
        data.qpos[:], data.qvel[:], data.qacc[:] = qpos[k], qvel[k], qacc[k]
        mujoco.mj_inverse(model, data)
        scale = max(1.0, np.abs(forces[k]).max())
        np.testing.assert_allclose(here.tau(qpos[k], data.qfrc_inverse), forces[k], rtol=0, atol=tolerance * scale)
        full = np.zeros((model.nv, model.nv))
        mujoco.mj_fullM(model, data, full)
        scale = np.abs(masses[k]).max()
        np.testing.assert_allclose(here.matrix(qpos[k], full), masses[k], rtol=0, atol=tolerance * scale)
        if (body := mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_BODY, link)) >= 0:
            rows = np.zeros((2, 3, model.nv))
            mujoco.mj_jacBody(model, data, rows[0], rows[1], body)
            np.testing.assert_allclose(here.jacobian(qpos[k], rows.reshape(6, -1)), jacobians[k], rtol=0, atol=1e-11)
    for ours, back in (
        (v, here.v(qpos, qvel)),
        (a, here.a(qpos, qvel, qacc)),
        (v, here.tau(qpos, there.tau(q, v))),
        (masses, here.matrix(qpos, there.matrix(q, masses))),
    ):
        np.testing.assert_allclose(back, ours, rtol=0, atol=1e-12 * max(1.0, np.abs(ours).max()))
    np.testing.assert_allclose(lw.difference(tree, q, here.q(qpos)), 0.0, atol=1e-12)


@pytest.mark.parametrize("seed, floating", [(0, False), (1, True)])
def test_exported_trees(seed, floating):
    """Hinges, slides, balls, and joints composed of them, on a base that is fixed or free, and placed anywhere."""
    kinds = ("revolute", "prismatic", "spherical", "universal", "planar", "cylindrical", "pin_in_slot", "helical")
    mech = lw.mechanisms.random_tree(8, seed, joints=kinds, floating_base=floating)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        assert_converts(mech, lw.interop.mujoco_model(mech))


MODEL = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="a" pos="1 2 3" euler="0.3 0.2 0.1"><freejoint/><geom size="0.1" pos="0.1 0.2 0"/>
    <body pos="0.3 0 0"><joint axis="0 1 0" ref="0.4" pos="0.1 0 0"/><geom size="0.1" pos="0.2 0 0.1"/>
      <body name="c" pos="0.3 0 0"><joint name="s" type="slide" axis="1 0 1"/><geom size="0.1"/></body></body>
    <body name="d" pos="0 0.5 0"><joint name="held"/><joint name="ball" type="ball"/>
      <geom size="0.2 0.1 0.3" type="box"/>
      <body name="e" pos="0 0.3 0"><joint name="tied"/><geom size="0.1"/></body></body></body>
  </worldbody><equality><joint joint1="held" polycoef="0.7 0 0 0 0"/>
  <joint joint1="tied" joint2="s" polycoef="0.2 -1.5 0 0 0"/></equality></mujoco>"""


def test_files_without_names_references_mimic_and_held_joints():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        mech = lw.load(MODEL)
    model = mujoco.MjModel.from_xml_string(MODEL)
    assert_converts(mech, model)
    there = lw.interop.to_mujoco(mech, model)
    q = np.array(mech.initial)
    expected = np.array(model.qpos0)
    expected[model.joint("held").qposadr[0]] = 0.7
    expected[model.joint("tied").qposadr[0]] = 0.2
    np.testing.assert_allclose(there.q(q), expected, atol=1e-15)
    np.testing.assert_allclose(lw.interop.from_mujoco(mech, model).q(expected), q, atol=1e-15)


def test_precision_is_kept():
    mech = lw.mechanisms.random_tree(3, 0, joints=("revolute",), floating_base=True)
    model = lw.interop.mujoco_model(mech)
    q, v = (x.astype(np.float32) for x in lw.random_state(mech, np.random.default_rng(0), (2,)))
    there = lw.interop.to_mujoco(mech, model)
    assert there.q(q).dtype == there.inverse.q(there.q(q)).dtype == np.float32


def test_derivatives_with_a_free_base():
    """Derivatives of accelerations and forces by q, v, tau and a, against differences of MuJoCo's own results along its
    own tangents; and back."""
    mech = lw.mechanisms.random_tree(4, 2, joints=("revolute", "spherical", "prismatic"), floating_base=True)
    model = only_inertia(lw.interop.mujoco_model(mech))
    there, data, rng = lw.interop.to_mujoco(mech, model), mujoco.MjData(model), np.random.default_rng(0)
    q, v = lw.random_state(mech, rng)
    tau = rng.normal(size=mech.nv)
    a = lw.forward_dynamics(mech, q, v, tau)
    state_there = there.q(q), there.v(q, v), there.a(q, v, a), there.tau(q, tau)

    def acceleration(qpos, qvel, qfrc):
        data.qpos[:], data.qvel[:], data.qfrc_applied[:] = qpos, qvel, qfrc
        mujoco.mj_forward(model, data)
        return data.qacc.copy()

    def force(qpos, qvel, qacc):
        data.qpos[:], data.qvel[:], data.qacc[:], data.qfrc_applied[:] = qpos, qvel, qacc, 0.0
        mujoco.mj_inverse(model, data)
        return data.qfrc_inverse.copy()

    def differences(function, at, which):
        columns = []
        for direction in np.eye(model.nv):
            ends = []
            for step in (1e-5, -1e-5):
                moved = [x.copy() for x in at]
                if which == 0:
                    mujoco.mj_integratePos(model, moved[0], direction, step)
                else:
                    moved[which] += step * direction
                ends.append(function(*moved))
            columns.append((ends[0] - ends[1]) / 2e-5)
        return np.array(columns).T

    qpos, qvel, qacc, qfrc = state_there
    of_a_there = [differences(acceleration, (qpos, qvel, qfrc), k) for k in range(3)]
    of_tau_there = [differences(force, (qpos, qvel, qacc), k) for k in range(3)]
    of_a = lw.forward_dynamics_derivatives(mech, q, v, tau)
    of_tau = lw.inverse_dynamics_derivatives(mech, q, v, a)
    for found, expected in (
        (there.acceleration_derivatives(q, v, a, tau, of_a), of_a_there),
        (there.force_derivatives(q, v, a, tau, of_tau), of_tau_there),
        (there.inverse.acceleration_derivatives(*state_there, of_a_there), of_a),
        (there.inverse.force_derivatives(*state_there, of_tau_there), of_tau),
    ):
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=0, atol=1e-6 * max(1.0, np.abs(other).max()))
