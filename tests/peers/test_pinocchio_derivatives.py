"""Derivatives of the dynamics against Pinocchio's analytic ones, robot by robot, to 1e-9."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.peers.robots import READABLE, load, pin, robot

from tests.peers.pinocchio_peer import ANGULAR_FIRST, Peer, from_file  # isort: skip (needs pinocchio)

STATES = 3
TOLERANCE = 1e-9
SAMPLE = [
    ("ur_description/urdf/ur5_robot.urdf", False),
    ("z1_description/urdf/z1.urdf", False),
    ("z1_description/urdf/z1.urdf", True),
    ("panda_description/urdf/panda.urdf", False),  # one finger mimics the other
    ("go2_description/urdf/go2.urdf", True),
    ("talos_data/robots/talos_reduced.urdf", True),
    ("double_pendulum_description/urdf/double_pendulum.urdf", False),
]
CASES = [
    pytest.param(file, floating_base, id=f"{file.stem}-{'floating' if floating_base else 'fixed'}")
    for file in READABLE
    for floating_base in (False, True)
]


def theirs(peer: Peer, q, v, u, wrenches) -> dict[str, list[np.ndarray]]:
    """Pinocchio's partial derivatives in our coordinates; those of forward dynamics unless joints follow others."""
    model, data, tie = peer.model, peer.data, peer.full_from_own
    external = pin.StdVec_Force()
    external.extend([pin.Force(np.zeros(6))] * model.njoints)
    for joint, wrench in zip(peer.joints, wrenches, strict=True):
        external[joint] = pin.Force(wrench[ANGULAR_FIRST])
    state = (peer.configuration(q), tie @ v, tie @ u)
    pin.computeRNEADerivatives(model, data, *state, external)
    mass = np.triu(data.M) + np.triu(data.M, 1).T
    found = {"inverse_dynamics": [tie.T @ x @ tie for x in (data.dtau_dq, data.dtau_dv, mass)]}
    if not peer.has_mimic and not peer.mech.parameters.singular_joints:
        pin.computeABADerivatives(model, data, *state, external)
        inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
        found["forward_dynamics"] = [tie.T @ x @ tie for x in (data.ddq_dq, data.ddq_dv, inverse)]
    return found


def compare(file, floating_base: bool, target: str) -> None:
    mech = load(file, floating_base)
    if mech.nv == 0:
        pytest.skip("nothing moves")
    peer = from_file(file, mech, floating_base)
    rng = np.random.default_rng(11)
    q, v = lw.random_state(mech, rng, (STATES,))
    u, wrenches = rng.normal(size=v.shape), rng.normal(size=(STATES, mech.n_links, 6))
    kernels: dict[str, lw.Kernel] = {}
    for i in range(STATES):
        for name, expected in theirs(peer, q[i], v[i], u[i], wrenches[i]).items():
            if name not in kernels:
                kernels[name] = lw.compile(f"{name}_derivatives", mech, ports="wrenches", target=target)
            found = kernels[name](q[i], v[i], u[i], wrenches[i])
            # Both sides solve with the same mass matrix, whose rounding moves the answer by this much.
            limit = TOLERANCE
            if name == "forward_dynamics":
                limit = max(limit, 10 * np.finfo(float).eps * np.linalg.cond(lw.mass_matrix(mech, q[i])))
            # What vanishes but for rounding (rotors that are round) is measured against what does not.
            floor = 1e-9 * max(1.0, *(np.linalg.norm(other) for other in expected))
            for own, other in zip(found, expected, strict=True):
                error = np.linalg.norm(own - other) / max(np.linalg.norm(other), floor)
                assert error <= limit, f"{name}: relative error {error:.1e}"


@pytest.mark.parametrize(("path", "floating_base"), SAMPLE)
def test_some_robots(path, floating_base):
    compare(robot(path), floating_base, target="numpy")


def test_machine_code_agrees():
    compare(robot("z1_description/urdf/z1.urdf"), True, target="cpu")


@pytest.mark.slow
@pytest.mark.parametrize(("file", "floating_base"), CASES)
def test_every_robot(file, floating_base):
    compare(file, floating_base, target="numpy")


@pytest.mark.slow
def test_constrained_derivatives_of_a_humanoid_on_two_feet():
    """On the motions that the feet allow, as Pinocchio leaves others as they are."""
    file = robot("talos_data/robots/talos_reduced.urdf")
    free = load(file, True)
    feet = ["left_sole_link", "right_sole_link"]
    rng = np.random.default_rng(0)
    mech = lw.contact.hold_frames(free, feet, lw.integrate(free, lw.neutral(free), 0.4 * rng.normal(size=free.nv), 1.0))
    q = lw.constraints.assemble(mech, lw.integrate(free, lw.neutral(free), 0.4 * rng.normal(size=free.nv), 1.0))
    v = lw.constraints.project(mech, q, rng.normal(size=mech.nv))[1]
    tau = 20.0 * rng.normal(size=mech.nv)

    peer = from_file(file, free, True)
    models, datas = pin.StdVec_RigidConstraintModel(), pin.StdVec_RigidConstraintData()
    for foot in feet:
        frame = peer.model.frames[peer.model.getFrameId(foot)]
        models.append(
            pin.RigidConstraintModel(
                pin.ContactType.CONTACT_6D, peer.model, frame.parentJoint, frame.placement, pin.ReferenceFrame.LOCAL
            )
        )
        datas.append(models[-1].createData())
    pin.initConstraintDynamics(peer.model, peer.data, models, datas)
    tie = peer.full_from_own
    a = pin.constraintDynamics(peer.model, peer.data, peer.configuration(q), tie @ v, tie @ tau, models, datas)
    pin.computeConstraintDynamicsDerivatives(peer.model, peer.data, models, datas)
    theirs = [tie.T @ x @ tie for x in (peer.data.ddq_dq, peer.data.ddq_dv, peer.data.ddq_dtau)]

    kernel = lw.compile("closed_forward_dynamics_derivatives", mech, target="numpy")
    assert sum(kernel.op_counts.values()) < 190_000
    d_q, d_v, d_tau, _, consistency = kernel(q, v, tau)
    assert consistency > 1.0
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, v, tau), tie.T @ a, atol=1e-9 * np.abs(a).max())
    basis = lw.constraints.null_space(mech, q)
    for ours, other in ((d_tau, theirs[2]), (d_v @ basis, theirs[1] @ basis)):
        np.testing.assert_allclose(ours, other, atol=1e-8 * np.abs(other).max())
    # Steps of q that the feet allow, with the least changes of v that keep them there.
    bending = lw.jacobian_of(lw.compile("constraint_motion", mech, target="numpy"), "q")
    still = np.zeros(mech.nv)
    along = bending(q, v, still, np.zeros(mech.n_constraints))[-mech.n_constraints :] @ basis
    change = -np.linalg.pinv(lw.constraints.constraint_jacobian(mech, q)) @ along
    expected = theirs[0] @ basis + theirs[1] @ change
    found = d_q @ basis + d_v @ change
    np.testing.assert_allclose(found, expected, atol=1e-8 * np.abs(expected).max())
