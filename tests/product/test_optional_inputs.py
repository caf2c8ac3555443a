"""Masks of constraints and force elements where they are optional inputs: against differences, virtual work, formulas,
and mechanisms that lack the constraints which let go."""

from functools import cache

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import case

HELD = np.array([True, True, False, True])


@cache
def quadruped() -> lw.Mechanism:
    """A floating robot in a plane-free posture whose four feet are held."""
    return case("held feet").mech


@cache
def three_feet() -> lw.Mechanism:
    mech = quadruped()
    return mech.spanning_tree.with_loops(*(loop for loop, holds in zip(mech.loops, HELD, strict=True) if holds))


def state(seed: int = 0):
    """A state in which three feet stand and the fourth moves."""
    mech, rng = three_feet(), np.random.default_rng(seed)
    start = lw.integrate(mech, case("held feet").q, 0.02 * rng.normal(size=mech.nv), 1.0)
    q, v = lw.constraints.project(mech, start, 0.3 * rng.normal(size=mech.nv))
    return q, v, rng.normal(size=mech.nv)


def test_states_are_projected_onto_the_constraints_that_hold():
    mech, rng = quadruped(), np.random.default_rng(1)
    masks = np.array([HELD, [True] * 4, [False] * 4])
    start = lw.integrate(mech, case("held feet").q, 0.01 * rng.normal(size=(3, mech.nv)), 1.0)
    q, v = lw.constraints.project(mech, start, rng.normal(size=(3, mech.nv)), active=masks)
    errors, jacobian = lw.constraints.position_error(mech, q), lw.constraints.constraint_jacobian(mech, q)
    for k, mask in enumerate(masks):
        rows = np.repeat(mask, [loop.n_constraints for loop in mech.loops])
        assert np.abs(errors[k, rows]).max(initial=0.0) < 1e-10
        assert np.abs(jacobian[k, rows] @ v[k]).max(initial=0.0) < 1e-9
        assert np.all(np.abs(errors[k, ~rows]).reshape(-1, 3).max(axis=-1, initial=0.0) > 1e-5)  # these stay open
    np.testing.assert_allclose(q[2], start[2], atol=1e-15)
    with pytest.raises(lw.MechanismError, match="rank is that of all constraints"):
        lw.constraints.project(mech, q, v, rank=3, active=masks)


def test_energy_is_met_under_a_mask():
    mech, (q, v, _) = quadruped(), state()
    energy = 1.1 * lw.kinetic_energy(mech, q, v) + lw.potential_energy(mech, q)
    q, v = lw.constraints.project(mech, q, v, energy=energy, active=HELD)
    np.testing.assert_allclose(lw.kinetic_energy(mech, q, v) + lw.potential_energy(mech, q), energy, rtol=1e-10)


def test_rate_jacobian_under_a_mask_is_that_of_differences():
    mech, (q, v, tau), h = quadruped(), state(), 1e-5
    result, n = lw.control.rate_jacobian(mech, q, v, tau, active=HELD), mech.nv
    null = lw.constraints.null_space(mech, q, active=HELD)
    for k in range(null.shape[-1]):  # along motions that are allowed, of which projections are themselves

        def rates(s, step=null[:, k], moving=False):
            there = (
                (q, v + s * step)
                if moving
                else lw.constraints.project(mech, lw.integrate(mech, q, s * step, 1.0), v, active=HELD)
            )
            return lw.forward_dynamics(mech, *there, tau, active=HELD), there[1]

        ahead, behind = rates(h, moving=True), rates(-h, moving=True)
        np.testing.assert_allclose(result[n:, n:] @ null[:, k], (ahead[0] - behind[0]) / (2 * h), atol=2e-6)
        ahead, behind = rates(h), rates(-h)  # v changes too, to stay allowed
        change = result[n:, :n] @ null[:, k]
        np.testing.assert_allclose(change, (ahead[0] - behind[0]) / (2 * h), atol=1e-4 * (1.0 + np.abs(change).max()))


@pytest.mark.parametrize("form", ["local", "underlying"])
def test_linear_models_under_a_mask_are_those_without_the_other_constraints(form):
    (q, v, tau), joints = state(), lw.linearize(three_feet(), *state()).independent
    masked = lw.linearize(quadruped(), q, v, tau, joints, form=form, projection="independent", active=HELD)
    other = lw.linearize(three_feet(), q, v, tau, joints, form=form, projection="independent")
    for name in ("A", "B", "drift", "tangent", "acceleration"):
        expected = getattr(other, name)
        np.testing.assert_allclose(getattr(masked, name), expected, atol=1e-8 * (1.0 + np.abs(expected).max()))


def test_equilibria_under_a_mask_balance_by_virtual_work():
    mech, q = quadruped(), state()[0]
    with pytest.raises(lw.MechanismError, match="one state"):
        lw.find_equilibrium(mech, q, solve_for="tau", active=np.array([HELD]))
    motors = [joint for joint in mech.joint_names if mech.bodies[mech.body_index(joint)].kind.nv == 1]
    found = lw.find_equilibrium(mech, q, solve_for="tau", actuated=motors, active=HELD)
    null = lw.constraints.null_space(mech, found.q, active=HELD)
    work = null.T @ (found.tau - lw.gravity_force(mech, found.q))
    assert np.abs(work).max() < 1e-8 and found.multipliers.shape == (mech.n_constraints,)
    rows = np.repeat(HELD, [loop.n_constraints for loop in mech.loops])
    assert not found.multipliers[~rows].any()


@pytest.mark.parametrize("name", ["tree", "one loop", "masked feet", "rolling"])
def test_springs_and_dampers_act_on_momenta_and_total_rates(name):
    """Forces k (rest - q) - d v of hinges, as formulas have them."""
    at = case(name)
    mech, momenta, diagonal = at.mech, lw.formulations.momenta, lw.formulations.diagonal
    single = [b.joint for b in mech.bodies if b.kind.nv == b.kind.nq == 1 and not b.mimic]
    springs = lw.forces.Passive.springs(dict.fromkeys(single, 3.0))
    springs = springs + lw.forces.Passive.dampers(dict.fromkeys(single, 0.7))
    tau = at.tau.copy()
    for joint in single:
        tau[mech.v_index(joint)] -= 3.0 * at.q[mech.q_index(joint)] + 0.7 * at.v[mech.v_index(joint)]
    masks = {} if at.active is None else {"active": at.active}
    p = momenta.momenta(mech, at.q, at.v)
    pushed = momenta.motion(mech, at.q, p, at.tau, **masks, forces=springs)
    for one, other in zip(pushed, momenta.motion(mech, at.q, p, tau, **masks), strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9 * (1.0 + np.abs(other).max()))
    np.testing.assert_allclose(momenta.forward_dynamics(mech, at.q, p, at.tau, **masks, forces=springs), pushed[0])
    if at.active is None:
        nu = diagonal.rates(mech, at.q, at.v)
        rates = diagonal.motion(mech, at.q, nu, at.tau, forces=springs)
        for one, other in zip(rates, diagonal.motion(mech, at.q, nu, tau), strict=True):
            np.testing.assert_allclose(one, other, atol=1e-9 * (1.0 + np.abs(other).max()))
        np.testing.assert_allclose(diagonal.forward_dynamics(mech, at.q, nu, at.tau, forces=springs), rates[0])
