"""Derivatives of multipliers and reactions: kernels against singular values, batches, wrenches, and what is refused."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.constraints import solver

ALL = (
    lw.derivatives.multipliers_derivatives,
    lw.derivatives.constraint_forces_derivatives,
    lw.derivatives.loop_reactions_derivatives,
    lw.derivatives.joint_wrenches_derivatives,
)


def states(mech: lw.Mechanism, count: int, start: np.ndarray | None = None):
    """(count, ...) states near the initial one, closed."""
    rng = np.random.default_rng(0)
    start = lw.constraints.assemble(mech, mech.initial if start is None else start)
    basis = lw.constraints.null_space(mech, start)
    q = lw.integrate(mech, start, 0.1 * rng.normal(size=(count, basis.shape[1])) @ basis.T, 1.0)
    q, v = lw.constraints.project(mech, q, rng.normal(size=(count, mech.nv)))
    return q, v, rng.normal(size=v.shape)


def held_arm() -> tuple[lw.Mechanism, np.ndarray]:
    """An arm of skew joints that holds a point in space."""
    mech = lw.mechanisms.random_tree(4, 2, ("revolute", "universal"))
    q = lw.random_state(mech, np.random.default_rng(1))[0]
    return lw.contact.hold_frames(mech, [mech.link_names[-1]], q, points=True), q


def delta_robot() -> tuple[lw.Mechanism, np.ndarray]:
    mech = lw.mechanisms.delta_robot()
    return mech, mech.initial


@pytest.mark.parametrize("make", [held_arm, pytest.param(delta_robot, marks=pytest.mark.slow)])
def test_kernels_agree_with_singular_values(make, monkeypatch):
    mech, start = make()
    state = states(mech, 3, start)
    compiled = [function(mech, *state) for function in ALL]
    monkeypatch.setattr(solver, "serves", lambda mech, name, all_hold=True: False)
    for function, parts in zip(ALL, compiled, strict=True):
        for found, expected in zip(parts, function(mech, *state), strict=True):
            np.testing.assert_allclose(found, expected, atol=1e-8 * max(1.0, np.abs(expected).max()))


@pytest.mark.parametrize("function", ALL, ids=lambda f: f.__name__)
def test_batches(function):
    mech = lw.mechanisms.five_bar()
    q, v, tau = states(mech, 6)
    shape = (2, 1, 3)
    whole = function(mech, *(x.reshape(*shape, x.shape[-1]) for x in (q, v, tau)))
    single = function(mech, q[4], v[4], tau[4])
    mask = np.array([[True], [False], [True]])
    masked = function(mech, q[:3], v[:3], tau[:3], active=mask)
    for part, one, some in zip(whole, single, masked, strict=True):
        assert part.shape == (*shape, *one.shape)
        np.testing.assert_allclose(part[1, 0, 1], one, atol=1e-9 * max(1.0, np.abs(one).max()))
        assert some.shape == (3, *one.shape)
    for part, one in zip(masked, function(mech, q[2], v[2], tau[2]), strict=True):
        np.testing.assert_allclose(part[2], one, atol=1e-9 * max(1.0, np.abs(one).max()))
    if function is not lw.derivatives.joint_wrenches_derivatives:
        assert not any(part[1].any() for part in masked)
    empty = function(mech, np.tile(q[0], (2, 0, 3, 1)), v[0], tau[0])
    assert [x.shape for x in empty] == [(2, 0, 3, *x.shape) for x in single]


@pytest.mark.slow
def test_constraint_forces_follow_multipliers():
    """-G* lambda changes with both, and by joint forces alone by -G* dlambda."""
    mech = lw.mechanisms.stewart_platform()
    q, v, tau = (x[0] for x in states(mech, 1))
    jacobian = lw.constraints.constraint_jacobian(mech, q)
    by_tau = lw.derivatives.multipliers_derivatives(mech, q, v, tau)[2]
    forces = lw.derivatives.constraint_forces_derivatives(mech, q, v, tau)
    np.testing.assert_allclose(forces[2], -jacobian.T @ by_tau, atol=1e-9)
    d_a = lw.forward_dynamics_derivatives(mech, q, v, tau)
    np.testing.assert_allclose(lw.mass_matrix(mech, q) @ d_a[2], np.eye(mech.nv) + forces[2], atol=1e-8)


def test_wrenches_on_links_stay_in_link_axes():
    """Of a pendulum that is pushed along its rod, and of a four-bar: by differences."""
    for mech in (lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar()):
        rng = np.random.default_rng(3)
        q, v, tau = (x[0] for x in states(mech, 1)) if mech.loops else (rng.normal(size=mech.nv) for _ in range(3))
        wrenches, step = rng.normal(size=(mech.n_links, 6)), rng.normal(size=mech.nv)

        def value(s, mech=mech, q=q, v=v, tau=tau, wrenches=wrenches, step=step):
            moved = lw.integrate(mech, q, step, s)
            near = lw.constraints.project(mech, moved, v) if mech.loops else (moved, v)
            return lw.joint_wrenches(mech, *near, wrenches=wrenches, tau=tau)

        expected = (8 * (value(1e-4) - value(-1e-4)) - (value(2e-4) - value(-2e-4))) / 12e-4
        found = lw.derivatives.joint_wrenches_derivatives(mech, q, v, tau, wrenches)[0] @ step
        np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())


def test_closed_form_of_a_pendulum_on_a_rod():
    """A bead on a circle, x^2 + y^2 = 1, by a distance: lambda = v^2 - g y, and its derivatives."""
    builder = lw.Builder().link("cart").link("bead", 1.0, (0, 0, 0), (1, 1, 1))
    builder.joint("x", lw.Prismatic((1, 0, 0)), "ground", "cart").joint("y", lw.Prismatic((0, 1, 0)), "cart", "bead")
    mech = builder.loop("rod", lw.contact.Distance(1.0), "ground", None, "bead", None).build("pendulum", (0, -9.81, 0))
    q, speed = np.array([0.6, -0.8]), 1.3
    v = speed * np.array([0.8, 0.6])
    by_q, by_v, by_tau = lw.derivatives.constraint_forces_derivatives(mech, q, v, np.zeros(2))
    radial, along = q, np.array([0.8, 0.6])
    tension = speed**2 + 9.81 * 0.8  # towards the centre
    np.testing.assert_allclose(lw.constraints.constraint_forces(mech, q, v), -tension * radial, atol=1e-9)
    np.testing.assert_allclose(by_tau, -np.outer(radial, radial), atol=1e-9)
    np.testing.assert_allclose(by_v, -2.0 * speed * np.outer(radial, along), atol=1e-9)
    np.testing.assert_allclose(by_q @ radial, 0.0, atol=1e-9)
    np.testing.assert_allclose(by_q @ along, 9.81 * along[1] * radial - tension * along, atol=1e-9)


def test_what_is_refused():
    mech = lw.mechanisms.four_bar()
    q, v, tau = (x[0] for x in states(mech, 1))
    with pytest.raises(lw.MechanismError, match="is open by"):
        lw.derivatives.multipliers_derivatives(mech, q + 0.1, v, tau)
    with pytest.raises(lw.MechanismError, match="velocities violate"):
        lw.derivatives.constraint_forces_derivatives(mech, q, v + 1.0, tau)
    with pytest.raises(ValueError, match="unknown frame 'link'"):
        lw.derivatives.loop_reactions_derivatives(mech, q, v, tau, frame="link")
    with pytest.raises(lw.MechanismError, match="active"):
        lw.derivatives.joint_wrenches_derivatives(mech, q, v, tau, active=[1, 0])
