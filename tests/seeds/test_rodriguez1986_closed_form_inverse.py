"""rodriguez1986, Sections 10 and 11: the inverse of the inertia matrix in closed form, and the joint accelerations by
cause: joint moments, bias forces, bias accelerations.

Accelerations are body-fixed and gravity is an external force, as in ``tests/seeds/rodriguez1986.py``; the share of the
bias accelerations belongs to that convention (the sum of the shares to none).
"""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.ir.program import Array, Program
from linkwise.compiler.targets import numpy_reference
from linkwise.compiler.trace import trace
from linkwise.mechanics import scalar
from tests.seeds.rodriguez1986 import ARMS, Case, ClosedForm, biases, moving_arm, scale
from tests.seeds.tip_to_base import TipToBase, close, differ, random_chain, reversed_both, tilde, to_base


@ARMS
@pytest.mark.seed("rodriguez1986", "Section 10", by="library")
@pytest.mark.seed("rodriguez1986", "10.1", by="library")
@pytest.mark.seed("rodriguez1986", "10.2", by="library")
@pytest.mark.seed("rodriguez1986", "10.3", by="library")
def test_inverse_of_the_inertia_matrix(which):
    case = moving_arm(*which)
    form = ClosedForm.of(case.arm)
    inverse = form.inverse()
    close(inverse, reversed_both(lw.mass_matrix_inverse(case.mech, case.q)))
    close(inverse @ reversed_both(lw.mass_matrix(case.mech, case.q)), np.eye(case.arm.n))
    close(form.split(case.tau, *biases(case))[0], inverse @ case.tau[1:])


@ARMS
@pytest.mark.seed("rodriguez1986", "Section 10", by="library")
@pytest.mark.seed("rodriguez1986", "10.1", by="library")
@pytest.mark.seed("rodriguez1986", "10.2", by="library")
@pytest.mark.seed("rodriguez1986", "10.3", by="library")
def test_accelerations_by_cause(which):
    """Each share against dense algebra, and what linkwise can separate (moments, rest) against linkwise.

    Printed alpha2 has Lambda(i) without a sign; Lambda-(i) is meant, Lambda+(i) gives another answer.
    """
    case = moving_arm(*which)
    arm, n = case.arm, case.arm.n
    xi, eta = biases(case)
    form = ClosedForm.of(arm)
    alpha = form.split(case.tau, xi, eta)
    phi, M, H = arm.stacked_phi, arm.diagonal(arm.M), arm.diagonal(arm.H)
    inertia = H @ phi @ M @ phi.T @ H.T
    close(alpha[0], np.linalg.solve(inertia, case.tau[1:]))
    close(alpha[1], -np.linalg.solve(inertia, H @ phi @ xi[1:].ravel()))
    close(alpha[2], -np.linalg.solve(inertia, H @ phi @ M @ phi.T @ eta[1:].ravel()))
    close(alpha.sum(axis=0), case.u_ddot[1:])  # (10.1)
    v = to_base(case.u_dot)
    drift = lw.forward_dynamics(case.mech, case.q, v, np.zeros(n), case.wrenches)
    close(alpha[1] + alpha[2], drift[::-1])
    driven = lw.forward_dynamics(case.mech, case.q, v, to_base(case.tau), case.wrenches)
    close(alpha[0], (driven - drift)[::-1])
    close(alpha[0], lw.kinematics.acceleration_parts(case.mech, case.q, v, to_base(case.tau))[0][::-1])
    if n > 1:
        form.Lambda_minus = form.Lambda_plus
        differ(form.split(case.tau, xi, eta)[1], alpha[1])


def test_shares_of_an_arm_at_rest_are_the_librarys():
    """Without velocities, bias forces are gravity and the forces on the links, and bias accelerations vanish."""
    case = moving_arm(6, 1, "world", "R", True)
    alpha = ClosedForm.of(case.arm).split(case.tau, *biases(case))
    at_rest = np.zeros(6)
    close(alpha[1], lw.forward_dynamics(case.mech, case.q, at_rest, at_rest, case.wrenches)[::-1])
    close(alpha[2], at_rest)


@ARMS
@pytest.mark.seed("rodriguez1986", "10.29", by="library")
@pytest.mark.seed("rodriguez1986", "10.30", by="library")
@pytest.mark.seed("rodriguez1986", "10.31", by="library")
def test_co_state_covariances_are_operational(which):
    """Lambda-(k) is J M^-1 J^T of link k at joint k, Lambda+(k) that of link k+1 there: by linkwise's Jacobians.

    Printed (10.29) has D(k)^-1 inside the sum; D(i)^-1 is meant.
    """
    case = moving_arm(*which)
    arm, N = case.arm, case.arm.n
    form = ClosedForm.of(arm)
    inverse = lw.mass_matrix_inverse(case.mech, case.q)
    frame = "world_aligned" if arm.axes == "world" else "link"
    for k in case.links:
        J = lw.jacobian(case.mech, case.q, case.mech.link_names[N - k], frame)
        close(form.Lambda_minus[k], J @ inverse @ J.T)  # (10.30), (10.31)
        inner = range(k + 1, N + 1)
        if k < N:
            J = lw.jacobian(case.mech, case.q, case.mech.link_names[N - k - 1], frame)
            J = arm.phi(k + 1, k).T @ J
        expected = J @ inverse @ J.T if k < N else np.zeros((6, 6))
        close(form.Lambda_plus[k], expected)
        rows = {i: arm.H[i][0] @ form.psi(i, k) for i in inner}
        summed = sum((np.outer(rows[i], rows[i]) * form.D_inverse[i] for i in inner), np.zeros((6, 6)))
        close(summed, expected)  # (10.29)
        if k < N:
            differ(sum(np.outer(rows[i], rows[i]) * form.D_inverse[k] for i in inner), expected)  # as printed
    if N == 6:
        tip = lw.control.operational_inertia(case.mech, case.q, case.mech.link_names[-1])
        rot = arm.rotation[1] if arm.axes == "world" else np.eye(3)
        rot = np.kron(np.eye(2), rot)
        close(np.linalg.inv(form.Lambda_minus[1]), rot @ tip @ rot.T, 1e-9)


# Section 11 -----------------------------------------------------------------------------------------------------------


def explicit_form(mech: lw.Mechanism, q, mass, com, inertia) -> ClosedForm:
    """The closed form of a revolute arm, in link axes, on any scalars; arguments are base to tip."""
    phi, H, M = [], [], []
    for i, body in enumerate(mech.bodies):
        a, s, c = np.array(body.kind.axis), scale(scalar.sin(q[i])), scale(scalar.cos(q[i]))
        rotation = c * (np.eye(3) - np.outer(a, a)) + s * tilde(a) + np.outer(a, a)
        rot = body.rotation @ rotation  # from link i to its parent
        phi.append(np.block([[rot, tilde(body.position) @ rot], [np.zeros((3, 3)), rot]]))
        H.append(np.concatenate([a, np.zeros(3)]))
        m, p = scale(mass[i]), tilde(com[i])
        M.append(np.block([[inertia[i] - m * p @ p, m * p], [m * -p, m * np.eye(3)]]))
    # Counted from the tip, phi(k, k-1) is across the joint of link k-1.
    return ClosedForm([None, None, *phi[:0:-1]], [None, *H[::-1]], [None, *M[::-1]])


def traced(mech: lw.Mechanism, parameters: bool) -> Program:
    """Scalar expressions of the inverse and of the three accelerations in terms of the joint angles, of what drives
    the arm and, with ``parameters``, of masses, mass centres and inertias as well."""
    n = mech.n_links
    inputs = [Array("q", (n,)), Array("tau", (n + 1,)), Array("xi", (n + 1, 6)), Array("eta", (n + 1, 6))]
    constants = (mech.parameters.masses, mech.parameters.coms, mech.parameters.inertias)
    if parameters:
        inputs += [Array("mass", (n,)), Array("com", (n, 3)), Array("inertia", (n, 3, 3))]

    def run(q, tau, xi, eta, *given):
        form = explicit_form(mech, q, *(given or constants))
        return form.inverse(), form.split(tau, xi, eta)

    return trace(run, inputs, ["inverse", "accelerations"])


def drive(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    xi, eta = biases(case)
    return tuple(np.nan_to_num(values) for values in (case.tau, xi, eta))  # row 0 is not used


@pytest.mark.seed("rodriguez1986", "Section 11", by="library")
def test_scalar_elements_of_the_inverse_as_explicit_expressions():
    """(10.1) carried out symbolically: expressions in angles, masses, mass centres and inertias, found once and good
    for any arm of that geometry, with one division per joint and no numerical inversion."""
    n, cases = 4, [moving_arm(4, seed, "link") for seed in (11, 12, 13)]
    pattern = cases[0].mech
    program = traced(pattern, parameters=True)
    assert program.op_counts["div"] == n
    for other in cases:
        heavier = with_masses_of(pattern, other.mech)
        inputs = (
            other.q,
            *drive(other),
            heavier.parameters.masses,
            heavier.parameters.coms,
            heavier.parameters.inertias,
        )
        inverse, accelerations = numpy_reference.evaluate(program, inputs, "float64")
        close(inverse, reversed_both(lw.mass_matrix_inverse(heavier, other.q)))
        close(inverse, np.linalg.inv(reversed_both(lw.mass_matrix(heavier, other.q))))
        form = ClosedForm.of(TipToBase(heavier, other.q, "link"))
        close(accelerations, form.split(*drive(other)))


def with_masses_of(pattern: lw.Mechanism, other: lw.Mechanism) -> lw.Mechanism:
    """The geometry of one arm with the masses of another."""
    builder = lw.Builder()
    for i, (body, heavy) in enumerate(zip(pattern.bodies, other.bodies, strict=True)):
        builder.link(body.link, heavy.mass, heavy.com, heavy.inertia)
        parent = pattern.bodies[i - 1].link if i else "ground"
        builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position))
    return builder.build(gravity=pattern.gravity)


@pytest.mark.seed("rodriguez1986", "Section 11", by="library")
def test_terms_without_joint_angles_are_computed_once():
    """With the arm's numbers known, what does not depend on the angles is folded: fewer operations, same values."""
    case = moving_arm(4, 11, "link")
    general, folded = traced(case.mech, parameters=True), traced(case.mech, parameters=False)
    assert sum(folded.op_counts.values()) < sum(general.op_counts.values())
    q = np.random.default_rng(0).uniform(-3.0, 3.0, (20, 4))
    inverse, _ = numpy_reference.evaluate(folded, (q, *drive(case)), "float64")
    expected = lw.mass_matrix_inverse(case.mech, q)[:, ::-1, ::-1]
    close(inverse, expected)
    # Of an arm of one link, nothing depends on the angle: the inverse is a number, not an expression.
    single = traced(random_chain(1, 3), parameters=False)
    assert single.op_counts.get("div", 0) == 0 and single.op_counts.get("sincos", 0) == 0
