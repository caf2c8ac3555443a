"""Motions of real robots against other libraries: Pinocchio's dynamics inside SciPy, and MuJoCo with tiny steps."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw

pin = pytest.importorskip("pinocchio")

from tests.peers.pinocchio_peer import mirrored  # noqa: E402
from tests.peers.robots import load, robot  # noqa: E402

ROBOTS = {
    "ur5": ("ur_description/urdf/ur5_robot.urdf", False),
    "panda": ("panda_description/urdf/panda.urdf", False),
    "solo12": ("solo_description/robots/solo12.urdf", True),
}
DURATION = 0.3
every_robot = pytest.mark.parametrize("name", ROBOTS)


def moving(name: str) -> tuple[lw.Mechanism, np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The robot with all joints free, a state, and gains for its hinges that suit the inertia they see."""
    path, floating = ROBOTS[name]
    mech = load(robot(path), floating).with_acting(False)
    mech = dataclasses.replace(mech, bodies=tuple(dataclasses.replace(body, mimic=None) for body in mech.bodies))
    rng = np.random.default_rng(4)
    q = lw.integrate(mech, lw.neutral(mech), 0.4 * rng.normal(size=mech.nv), 1.0)
    hinges = np.array([x for b in mech.bodies for x in [b.kind.nv == 1] * b.nv])
    inertia = np.diag(lw.mass_matrix(mech, q))
    return mech, q, 0.5 * rng.normal(size=mech.nv), 100.0 * inertia * hinges, 10.0 * inertia * hinges


@every_robot
def test_controlled_robots_against_pinocchio_in_scipy(name):
    mech, q, v, stiffness, damping = moving(name)
    peer, own = mirrored(mech), slice(mech.nq - mech.nv + np.count_nonzero(stiffness == 0), None)
    hinges = slice(np.count_nonzero(stiffness == 0), None)

    def control(t, q, v):
        tau = np.zeros(mech.nv)
        tau[hinges] = stiffness[hinges] * (0.3 * np.sin(4.0 * t) - q[own]) - damping[hinges] * v[hinges]
        return tau

    def rates(t, x):
        q, v = x[: mech.nq], x[mech.nq :]
        tie = peer.full_from_own
        full = pin.aba(peer.model, peer.data, peer.configuration(q), tie @ v, tie @ control(t, q, v))
        return np.concatenate([coordinate_rates(mech, q, v), tie.T @ full])

    start = np.concatenate([q, v])
    expected = solve_ivp(rates, (0.0, DURATION), start, "DOP853", rtol=1e-11, atol=1e-11).y[:, -1]
    for method, tolerance in (("dop853", 1e-10), ("rk45", 1e-8), ("lsoda", 1e-8)):
        found = lw.simulate(
            mech, q, v, DURATION, control, method=method, settings=lw.motion.Settings(rtol=tolerance, atol=tolerance)
        )
        apart = lw.difference(mech, expected[: mech.nq], found.q[-1])
        scale = max(1.0, np.abs(expected).max())
        assert np.abs(apart).max() < 100 * tolerance * scale
        assert np.abs(found.v[-1] - expected[mech.nq :]).max() < 1000 * tolerance * scale
    assert np.abs(found.q[-1] - q).max() > 0.05


def coordinate_rates(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """dq/dt of hinges, slides and a floating base, by quaternion arithmetic of its own."""
    if mech.nq == mech.nv:
        return v
    w, x, y, z = q[:4] / np.linalg.norm(q[:4])
    turn = 0.5 * np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]]) @ v[:3]
    rotation = pin.Quaternion(w, x, y, z).toRotationMatrix()
    return np.concatenate([turn, rotation @ v[3:6], v[6:]])


@every_robot
def test_passive_robots_against_mujoco(name):
    """Springs and dampers at all hinges; MuJoCo's own method of fourth order with steps of 0.1 ms, no contacts."""
    mujoco = pytest.importorskip("mujoco")
    from tests.peers.test_mujoco import Peer

    mech, q, v, stiffness, damping = moving(name)
    peer = Peer(mech)
    peer.model.opt.timestep, peer.model.opt.integrator = 1e-4, mujoco.mjtIntegrator.mjINT_RK4
    passive = lw.forces.Passive()
    for body in mech.bodies:
        if body.kind.nv == 1:
            i, joint = mech.v_index(body.joint).start, peer.model.joint(body.joint)
            passive += lw.forces.Passive.springs({body.joint: stiffness[i]}, {body.joint: 0.2})
            passive += lw.forces.Passive.dampers({body.joint: damping[i]})
            peer.model.jnt_stiffness[joint.id] = stiffness[i]
            peer.model.qpos_spring[joint.qposadr[0]] = 0.2
            peer.model.dof_damping[joint.dofadr[0]] = damping[i]
    peer.set(q, v, np.zeros(mech.nv))
    for _ in range(round(DURATION / 1e-4)):
        mujoco.mj_step(peer.model, peer.data)
    mujoco.mj_forward(peer.model, peer.data)
    found = lw.simulate(mech, q, v, DURATION, passive=passive, settings=lw.motion.Settings(rtol=1e-10, atol=1e-10))
    poses = lw.link_poses(mech, found.q[-1])
    for k, link in enumerate(mech.link_names):
        body = peer.data.body(link)
        np.testing.assert_allclose(poses[k, :3, 3], body.xpos, atol=2e-8)
        np.testing.assert_allclose(poses[k, :3, :3], body.xmat.reshape(3, 3), atol=2e-8)
    assert np.abs(found.q[-1] - q).max() > 0.05
