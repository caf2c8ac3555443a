"""spencer2004, Chapter 3: the singularity robust formulation, and what the text says of Figures 3.3 to 3.10."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from papers import spencer2004 as paper

from .built_in import STRETCHED, built, random_state
from .test_spencer2004_chapter2 import seed

MECH = built("five_bar")
Q, V = random_state("five_bar", 6)
TAU = np.array([1.0, -2.0, 0.5, 1.0])


def parts(q, v):
    """G, dG/dt v and the decomposition U, sigma, V* of the two planar constraints."""
    constraint, bias = lw.constraints.constraint_jacobian(MECH, q)[:2], lw.constraints.constraint_bias(MECH, q, v)[:2]
    return constraint, bias, np.linalg.svd(constraint)


@seed("3.1", "3.2", "3.3", "3.5a", "3.5b", "3.6", "3.7", "SVD null space formulation", by="library")
@seed("3.4a", "3.4b", "3.4c", by="model")
def test_the_singular_value_decomposition_does_both():
    constraint, bias, (u, sigma, vt) = parts(Q, V)
    v1, v2 = vt[:2].T, vt[2:].T
    np.testing.assert_allclose(constraint @ v2, 0.0, atol=1e-14)
    stacked = np.linalg.inv(np.vstack([v2.T, constraint]))  # y_q = V2* q (3.1)
    np.testing.assert_allclose(stacked[:, :2], v2, atol=1e-13)  # (3.2)
    inverse = v1 @ np.diag(1 / sigma) @ u.T  # (3.4)
    np.testing.assert_allclose(stacked[:, 2:], inverse, atol=1e-13)
    np.testing.assert_allclose(np.linalg.pinv(constraint), inverse, atol=1e-13)
    offset = -inverse @ bias  # (3.3)
    summed = -sum(np.outer(v1[:, i], u[:, i]) @ bias / sigma[i] for i in range(2))  # (3.6, 3.7)
    np.testing.assert_allclose(offset, summed, atol=1e-12)
    mass, force = lw.mass_matrix(MECH, Q), TAU - lw.bias_force(MECH, Q, V)
    reduced = np.linalg.inv(v2.T @ mass @ v2)
    printed = v2 @ reduced @ v2.T @ (force + mass @ inverse @ bias) - inverse @ bias  # (3.5b)
    np.testing.assert_allclose(lw.forward_dynamics(MECH, Q, V, TAU), printed, atol=1e-10)
    same = lw.constraints.null_space(MECH, Q)
    np.testing.assert_allclose(same @ same.T, v2 @ v2.T, atol=1e-12)
    # The same by the chart that has V2* q for coordinates: K = V2 (3.2), dK/dt dy/dt (3.3), (3.6), (3.7).
    chart = lw.kinematics.local_parametrization(MECH, Q, v2.T)  # (3.1)
    np.testing.assert_allclose(chart.derivative(Q), v2, atol=1e-12)
    np.testing.assert_allclose(chart.offset(Q, V), summed, atol=1e-11)
    y_acceleration = reduced @ v2.T @ (force - mass @ offset)
    np.testing.assert_allclose(chart.forward_dynamics(Q, V, TAU), y_acceleration, atol=1e-10)


def test_constraints_are_softened_by_damped_least_squares():
    """Section 3.3: the damped least-squares inverse in place of the pseudo-inverse in (3.5b)."""
    q = lw.constraints.assemble(MECH, STRETCHED + np.array([1e-2, 2e-2, 0.0, 0.0]))
    _, v = lw.constraints.project(MECH, q, 10.0 * V)
    constraint, bias, (_, sigma, vt) = parts(q, v)
    assert sigma[1] < 0.05 * sigma[0]
    v2, mass, force = vt[2:].T, lw.mass_matrix(MECH, q), TAU - lw.bias_force(MECH, q, v)
    largest = []
    for fraction in (1e-3, 1e-1, 1.0):
        damped = constraint.T @ np.linalg.inv(constraint @ constraint.T + (fraction * sigma[0]) ** 2 * np.eye(2))
        offset = -damped @ bias
        printed = v2 @ np.linalg.solve(v2.T @ mass @ v2, v2.T @ (force - mass @ offset)) + offset
        found = lw.forward_dynamics(MECH, q, v, TAU, method="svd", damping=fraction)
        np.testing.assert_allclose(found, printed, rtol=1e-9)
        largest.append(np.abs(offset).max())
    assert largest[0] > 10.0 * largest[1] > 10.0 * largest[2]
    with pytest.raises(lw.MechanismError, match="damping must be a positive fraction"):
        lw.forward_dynamics(MECH, q, v, TAU, damping=0.0)


@seed("3.9", by="library")
def test_stabilization_enters_the_offset():
    q, v = Q + 0.01, V + 0.1
    constraint, bias, (_, _, vt) = parts(q, v)
    v2, error = vt[2:].T, lw.constraints.position_error(MECH, q)[:2]
    offset = -np.linalg.pinv(constraint) @ (bias + 2 * 3.0 * constraint @ v + 4.0**2 * error)
    mass, force = lw.mass_matrix(MECH, q), TAU - lw.bias_force(MECH, q, v)
    printed = v2 @ np.linalg.solve(v2.T @ mass @ v2, v2.T @ (force - mass @ offset)) + offset
    found = lw.forward_dynamics(MECH, q, v, TAU, baumgarte=(3.0, 4.0))
    np.testing.assert_allclose(found, printed, atol=1e-10)


def test_evaluation_does_not_fail_at_the_singular_position():
    """1 / sigma_m is taken as 0; with G of rank 1 the mechanism has three degrees of freedom for the moment."""
    constraint, _, (_, sigma, vt) = parts(STRETCHED, np.zeros(4))
    assert sigma[1] < 1e-15 * sigma[0]
    v2 = vt[1:].T
    mass, force = lw.mass_matrix(MECH, STRETCHED), -lw.bias_force(MECH, STRETCHED, np.zeros(4))
    expected = v2 @ np.linalg.solve(v2.T @ mass @ v2, v2.T @ force)
    for method in ("svd", "lagrange", "tangent", "partitioning", "differentiable"):
        a = lw.forward_dynamics(MECH, STRETCHED, np.zeros(4), np.zeros(4), method=method)
        np.testing.assert_allclose(a, expected, atol=1e-9)
    assert constraint.any() and expected[1] == pytest.approx(expected[3])  # it falls symmetrically


@seed("Figure 3.3", by="library")
def test_the_printed_stretched_position_is_not_closed():
    assert np.abs(lw.constraints.position_error(MECH, [np.pi, 0.0, 0.0, np.pi])).max() > 2.9
    np.testing.assert_allclose(lw.constraints.position_error(MECH, STRETCHED), 0.0, atol=1e-15)


@seed("Figure 3.3", "Figure 3.4", "Figure 3.5", "Figure 3.6", by="library")
def test_first_example():
    """Released at rest where it is singular it falls, bobs and "returns to the original singular configuration (at
    2.82s) to repeat the motion over again"."""
    motion = paper.released_stretched()
    assert paper.return_time(motion) == pytest.approx(2.825, abs=1e-9)  # a multiple of the step: 2.82537 s
    back = round(paper.return_time(motion) / paper.STEP)
    np.testing.assert_allclose(motion.q[back], STRETCHED, atol=1e-5)
    assert np.abs(motion.v[back]).max() < 1e-3 * np.abs(motion.v).max()
    np.testing.assert_allclose(motion.q[back:], motion.q[: len(motion.t) - back], atol=0.005)  # half a step of time
    np.testing.assert_allclose(motion.q[:back, 1], motion.q[:back, 3], atol=1e-6)
    assert paper.asymmetry(motion) < 0.01
    height = -motion.q[:, 2]  # of the apex, in the sense that the middle angle opens downwards
    turns = np.flatnonzero(np.diff(np.sign(np.diff(height[10:2800]))))
    assert len(turns) == 3  # down, up (the bob), down, and up again
    numbers = paper.condition_numbers(motion)
    assert numbers[0] > 1e12 and numbers[2780:2850].max() > 1e5 and numbers[500:2400].max() < 20.0
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-6
    assert lw.kinetic_energy(MECH, motion.q, motion.v).max() > 100.0
    assert motion.constraint_error.max() < 1e-11
    assert 1e-11 < paper.released_stretched(stabilization=None).constraint_error.max() < 1e-5


@seed("Figure 3.7", "Figure 3.8", "Figure 3.9", "Figure 3.10", by="library")
@pytest.mark.slow
def test_second_example():
    """Through the singular position at speed: Baumgarte's terms and multipliers against the SVD form and projection."""
    baumgarte, projection = paper.with_baumgarte(), paper.with_projection()
    alike = baumgarte.t < paper.ALIKE
    np.testing.assert_allclose(baumgarte.q[alike], projection.q[alike], atol=1e-3)  # "similar"
    singular = paper.passages(baumgarte)
    assert len(singular) == 3  # "as many as three times"
    np.testing.assert_allclose(paper.passages(projection), singular, atol=0.002)
    np.testing.assert_allclose(projection.q[:, 1], projection.q[:, 3], atol=0.01)  # released symmetrically
    assert np.abs(baumgarte.q[:, 1] - baumgarte.q[:, 3]).max() > 0.5
    forces, drift = np.abs(paper.multipliers(baumgarte)).max(axis=1), baumgarte.constraint_error
    for quantity in (forces, drift):  # both "just before 4s"
        worst = baumgarte.t[np.argmax(quantity)]
        assert 3.8 < worst < 4.05 and 0.0 <= worst - singular[2] < 0.15
    assert (
        drift[baumgarte.t < 3.8].max() < 1e-3 * drift.max()
        and drift[baumgarte.t < singular[2]].max() < 1e-2 * drift.max()
    )
    near = np.min(np.abs(baumgarte.t[:, None] - singular), axis=1) < 0.005
    assert forces[near].max() > 20.0 * np.median(forces)
    spike = paper.spike_indicator(projection)
    for time in paper.passages(projection):
        around = np.abs(projection.t - time) < 0.1
        at = np.abs(projection.t - time) < 0.0015
        assert spike[at].min() < 0.001 * spike[around].max()
    assert projection.constraint_error.max() < 1e-11 < drift.max()  # Figure 3.8: (b) below (a)
    violated, kept = (np.abs(m.energy - m.energy[0]).max() for m in (baumgarte, projection))
    assert violated > 1.0 and kept < 1e-9
    without = paper.with_projection(keep_energy=False)
    assert np.abs(without.energy - without.energy[0]).max() < 1e-3 * violated


def test_second_example_up_to_the_first_passage():
    baumgarte, projection = paper.with_baumgarte(0.8), paper.with_projection(0.8)
    for motion in (baumgarte, projection):
        np.testing.assert_allclose(paper.passages(motion), [0.651], atol=0.002)
    assert np.abs(projection.energy - projection.energy[0]).max() < 1e-9
    np.testing.assert_allclose(baumgarte.q[-1], projection.q[-1], atol=1e-2)
