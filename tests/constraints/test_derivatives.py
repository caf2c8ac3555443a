"""Derivatives of closed accelerations against differences of order eight on the manifold, and against the reference by
singular values."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints.sizes import sizes
from linkwise.constraints.solver import compiled_dofs
from linkwise.constraints.variations import state_of, variations
from linkwise.control import rate_jacobian
from linkwise.linearization.local_form import _compiled_form, _reference
from linkwise.mechanism import MechanismError

from ..linearization.differences import Neighbourhood, close, slope
from ..oracle.random_closed import REGULAR, case
from .built_in import STRETCHED, built, every_mechanism, random_state


def by_differences(mech, q, v, tau, wrenches=None, step=2e-3):
    """(d_q, d_v, d_tau): accelerations along the manifold by differences, in coordinates R that take steps of q, and
    changes of v, to the nearest that keep loops closed, lengths in units of the loops' sizes."""
    null, weights = lw.constraints.null_space(mech, q), sizes(mech).columns ** -2.0
    rows = np.linalg.solve((null.T * weights) @ null, null.T * weights)
    near, n, p = Neighbourhood(mech, q, v, tau, rows, wrenches=wrenches), mech.nv, len(rows)
    origin = np.concatenate([np.zeros(p), rows @ v])

    def there(x):
        q1, v1 = near.state(x[:p], x[p:])
        return near.rates(q1, v1, tau)[n:]

    along = np.stack([slope(lambda s, e=e: there(origin + s * e), step) for e in np.eye(2 * p)], axis=1)
    forced = [slope(lambda s, e=e: near.rates(q, v, tau + s * e)[n:], 1.0) for e in np.eye(n)]
    return along[:, :p] @ rows, along[:, p:] @ rows, np.stack(forced, axis=1)


@every_mechanism
def test_they_are_those_of_projected_states(name):
    mech = built(name)
    q, v = random_state(name, 3)
    tau, h = np.random.default_rng(2).normal(size=mech.nv), 1e-6
    d_q, d_v, _ = lw.forward_dynamics_derivatives(mech, q, v, tau)
    change = np.random.default_rng(3).normal(size=(2, mech.nv))

    def acceleration(h):
        there = lw.constraints.project(mech, lw.integrate(mech, q, h * change[0], 1.0), v + h * change[1])
        return lw.forward_dynamics(mech, *there, tau)

    expected = (acceleration(h) - acceleration(-h)) / (2.0 * h)
    close(d_q @ change[0] + d_v @ change[1], expected, 1e-6)


def by_singular_values(mech, q, v, tau, wrenches=None):
    near = variations(state_of(mech, q, v, tau, wrenches, None))
    return projected(near), near.independent.basis @ near.response


def projected(near):
    """[Df] P: steps of q and changes of v go to the nearest that keep loops closed."""
    p = near.positions.rows.shape[-2]
    return np.hstack([near.rates[:, :p] @ near.positions.rows, near.rates[:, p:] @ near.independent.rows])


@pytest.mark.slow_cases("delta_robot", "stewart_platform")
@every_mechanism
def test_built_in_mechanisms_by_differences(name):
    mech = built(name)
    q, v = random_state(name, 3)
    tau = np.random.default_rng(2).normal(size=mech.nv)
    assert compiled_dofs(mech)
    for found, expected in zip(
        lw.forward_dynamics_derivatives(mech, q, v, tau), by_differences(mech, q, v, tau), strict=True
    ):
        close(found, expected, 1e-9)


@pytest.mark.parametrize("name", ["five_bar", "loader", "flyball_governor"])
def test_wrenches_by_differences(name):
    mech, rng = built(name), np.random.default_rng(4)
    q, v = random_state(name, 5)
    tau, wrenches = rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6))
    found = lw.forward_dynamics_derivatives(mech, q, v, tau, wrenches)
    for one, expected in zip(found, by_differences(mech, q, v, tau, wrenches), strict=True):
        close(one, expected, 1e-9)
    assert np.abs(found[0] - lw.forward_dynamics_derivatives(mech, q, v, tau)[0]).max() > 1e-3


@pytest.mark.slow_cases("[2-general]", "[0-general]", "[2-planar]", "[2-massless]")
@pytest.mark.parametrize("family", ["general", "planar", "massless"])
@pytest.mark.parametrize("seed", range(3))
def test_random_mechanisms(family, seed):
    """Every second one has a floating base; mimic joints, couplings, redundant loops and massless links are among
    them."""
    drawn = case(family, seed)
    for state in (one for one in drawn.states if one.label == REGULAR):
        mech, q, v, tau = drawn.mech, state.q, state.v, state.tau
        d_q, d_v, d_tau = lw.forward_dynamics_derivatives(mech, q, v, tau)
        whole, by_tau = by_singular_values(mech, q, v, tau)
        n = mech.nv
        close(np.hstack([d_q, d_v]), whole[n:], 1e-9)
        close(d_tau, by_tau, 1e-9)
        close(rate_jacobian(mech, q, v, tau), whole, 1e-9)
        model, reference = lw.linearize(mech, q, v, tau), _reference(state_of(mech, q, v, tau, None, None), None)
        if model.independent == reference.names:  # among equals, either may be chosen
            close(model.A, reference.a, 1e-9)
            close(model.B, reference.b, 1e-9)
            close(model.tangent, reference.tangent, 1e-9)


@pytest.mark.slow_cases("general-6")
@pytest.mark.parametrize("family, seed", [("general", 6), ("planar", 2), ("massless", 4), ("cranks", 4)])
def test_random_mechanisms_on_floating_bases_by_differences(family, seed):
    drawn = case(family, seed)
    label, q, v, tau = drawn.states[0]
    assert label == REGULAR and drawn.mech.nq > drawn.mech.nv and lw.constraints.degrees_of_freedom(drawn.mech, q) > 6
    found = lw.forward_dynamics_derivatives(drawn.mech, q, v, tau)
    for one, expected in zip(found, by_differences(drawn.mech, q, v, tau), strict=True):
        close(one, expected, 1e-9)


def test_compiled_and_reference_models_agree_with_all_options():
    mech, rng = built("loader"), np.random.default_rng(0)
    q, v = random_state("loader", 1)
    passive = lw.forces.Passive.dampers({mech.joint_names[0]: 2.0}) + lw.forces.Passive.springs(
        {mech.joint_names[1]: 30.0}
    )
    at = state_of(mech, q, v, rng.normal(size=mech.nv), rng.normal(size=(mech.n_links, 6)), passive)
    for wanted in (None, rng.normal(size=(2, mech.nv)), [mech.joint_names[0], mech.joint_names[4]]):
        compiled, reference = _compiled_form(at, wanted), _reference(at, wanted)
        assert compiled is not None and compiled.names == reference.names
        for found, expected in zip(compiled[1:7], reference[1:7], strict=True):
            close(found, expected, 1e-9)
        assert compiled[7:] == reference[7:] == (None, None)  # positions and velocities have the same coordinates


def test_batches_hold_what_single_calls_give():
    mech = built("five_bar")
    states = [random_state("five_bar", seed) for seed in range(6)]
    q, v = (np.array([state[k] for state in states]).reshape(2, 3, -1) for k in range(2))
    tau = np.arange(4.0)
    together = lw.forward_dynamics_derivatives(mech, q, v, tau)
    for found, alone in zip(together, lw.forward_dynamics_derivatives(mech, q[1, 2], v[1, 2], tau), strict=True):
        assert found.shape == (2, 3, 4, 4)
        close(found[1, 2], alone, 1e-12)


def test_states_that_elimination_cannot_be_relied_on_are_left_to_the_reference():
    """Close to the stretched position pivots of the five-bar are small; the batch has both kinds."""
    mech = built("five_bar")
    q, v = random_state("five_bar", 1)
    near = lw.constraints.assemble(mech, STRETCHED + np.array([1e-7, 0.0, 0.0, 0.0]))
    kernel = lw.compile("closed_forward_dynamics_derivatives", mech)
    assert not kernel(near, 0.0 * v, np.ones(4))[3] > 1.0
    assert kernel(q, v, np.ones(4))[3] > 1.0
    found = rate_jacobian(mech, np.stack([q, near]), np.stack([v, 0.0 * v]), np.ones(4), rank=2)
    at = state_of(mech, near, 0.0 * v, np.ones(4), None, None)
    expected = variations(at, rank=2)
    close(found[1], projected(expected), 1e-9)
    close(found[0], by_singular_values(mech, q, v, np.ones(4))[0], 1e-9)


def test_what_has_no_derivatives_says_why():
    mech = built("five_bar")
    q, v = random_state("five_bar", 1)
    with pytest.raises(MechanismError, match="is open by"):
        lw.forward_dynamics_derivatives(mech, q + 1e-4, v, np.zeros(4))
    with pytest.raises(MechanismError, match="violate the constraints"):
        lw.forward_dynamics_derivatives(mech, q, v + 0.1, np.zeros(4))
    with pytest.raises(MechanismError, match="singular position"):
        lw.forward_dynamics_derivatives(mech, STRETCHED, np.zeros(4), np.zeros(4))
    with pytest.raises(MechanismError, match="not finite"):
        lw.linearize(mech, q, v, np.full(4, np.nan))


def test_trees_have_those_of_forward_dynamics():
    arm = lw.mechanisms.planar_arm(2)
    state = (np.array([0.3, -0.4]), np.array([1.0, 2.0]), np.array([0.1, 0.2]))
    step = 1e-6 * np.eye(2)
    for k, found in enumerate(lw.forward_dynamics_derivatives(arm, *state)):
        ahead, behind = ([x + sign * step if i == k else x for i, x in enumerate(state)] for sign in (1, -1))
        differences = (lw.forward_dynamics(arm, *ahead) - lw.forward_dynamics(arm, *behind)) / 2e-6
        np.testing.assert_allclose(found, differences.T, rtol=1e-7, atol=1e-7)
