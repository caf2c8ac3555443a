"""Second derivatives of forward dynamics: closed forms, programs differentiated twice, products against differences."""

import numpy as np
import pytest

import linkwise as lw
from linkwise.dynamics import derivatives, second_derivatives
from tests.product.mechanisms import SINGULAR, case


def test_a_pendulum_in_closed_form():
    """a = (tau - m g l sin q) / I, twice."""
    arm = lw.mechanisms.planar_arm(1)
    q = np.linspace(-2.0, 2.0, 5)[:, None]
    d_qq, d_vv, d_qv, d_tauq = lw.derivatives.forward_dynamics_second_derivatives(arm, q, 0.0 * q, 0.0 * q)
    gravity = lw.forward_dynamics(arm, q, 0.0 * q, 0.0 * q)
    np.testing.assert_allclose(d_qq[..., 0, 0], -gravity, atol=1e-12)
    assert not any(x.any() for x in (d_vv, d_qv, d_tauq))


@pytest.mark.parametrize(
    "mech",
    [
        lw.mechanisms.random_tree(3, 4, ("revolute", "prismatic", "helical")),
        lw.mechanisms.random_tree(1, 1, ("spherical",), True),
    ],
    ids=["joints", "floating"],
)
def test_programs_differentiated_twice(mech):
    """Order of directions included, where they do not commute."""
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng)
    tau = rng.normal(size=mech.nv)
    kernel, n = lw.compile("forward_dynamics", mech, target="numpy"), mech.nv
    twice = lw.jacobian_of(lw.jacobian_of(kernel, ("q", "v", "tau")), ("q", "v", "tau"))(q, v, tau)
    of = [slice(0, n), slice(n, 2 * n), slice(2 * n, 3 * n)]
    expected = [twice[:, of[i], of[j]] for i, j in ((0, 0), (1, 1), (0, 1), (2, 0))]
    for found, right in zip(lw.derivatives.forward_dynamics_second_derivatives(mech, q, v, tau), expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-9 * max(1.0, np.abs(right).max()))
    direction = rng.normal(size=3 * n)
    changes = lw.derivatives.forward_dynamics_second_derivatives(mech, q, v, tau, along=np.split(direction, 3))
    for k, found in enumerate(changes):
        right = twice[:, of[k]] @ direction
        np.testing.assert_allclose(found, right, atol=1e-9 * max(1.0, np.abs(right).max()))


@pytest.mark.parametrize("name", ["one loop", "driven"])
def test_products_against_differences(name, monkeypatch):
    """Two roads that share the first derivatives alone."""
    this = case(name)
    along = tuple(np.random.default_rng(1).normal(size=(3, this.mech.nv)))
    products = lw.derivatives.forward_dynamics_second_derivatives(this.mech, this.q, this.v, this.tau, along=along)
    monkeypatch.setattr(second_derivatives, "serves", lambda mech, name, all_hold: False)
    differences = lw.derivatives.forward_dynamics_second_derivatives(this.mech, this.q, this.v, this.tau, along=along)
    for found, right in zip(differences, products, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-7 * max(1.0, np.abs(right).max()))


@pytest.mark.parametrize("seed, floating_base", [(3, False), (4, True)])
def test_direction_by_direction(seed, floating_base, monkeypatch):
    """As the one program for all directions has it, whether these commute or not, with rotors and over batches."""
    mech = lw.mechanisms.random_tree(4, seed, floating_base=floating_base).parameters.with_armature(0.3)
    rng = np.random.default_rng(2)
    q, v = lw.random_state(mech, rng, (2,))
    a = rng.normal(size=v.shape)
    expected = lw.compile("inverse_dynamics_second_derivatives", mech, target="numpy")(q, v, a)
    monkeypatch.setattr(derivatives, "_needs_directions", lambda mech: True)
    for found, right in zip(lw.derivatives.inverse_dynamics_second_derivatives(mech, q, v, a), expected, strict=True):
        np.testing.assert_allclose(found, right, atol=1e-9 * max(1.0, np.abs(right).max()))


def test_long_chains():
    """Whose program for all directions would be too long: against differences of order eight of first derivatives."""
    mech = lw.mechanisms.chain(60)
    rng = np.random.default_rng(3)
    q, v = lw.random_state(mech, rng)
    force, direction = rng.normal(size=(2, mech.nv))
    direction /= np.linalg.norm(direction)
    weights, step = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}, 2e-3

    def change(first, *ways):
        q_way, v_way = ways

        def at(s):
            return np.stack(first(mech, lw.integrate(mech, q, q_way, s), v + s * v_way, force))

        return sum(weight * (at(k * step) - at(-k * step)) for k, weight in weights.items()) / step

    for first, second, tolerance in (
        (lw.inverse_dynamics_derivatives, lw.derivatives.inverse_dynamics_second_derivatives, 1e-9),
        (lw.forward_dynamics_derivatives, lw.derivatives.forward_dynamics_second_derivatives, 1e-7),
    ):
        d_qq, d_vv, d_qv, d_fq = second(mech, q, v, force)
        by_q, by_v = change(first, direction, 0.0 * v), change(first, 0.0 * q, direction)
        pairs = [(d_qq, by_q[0]), (np.swapaxes(d_qv, 1, 2), by_q[1]), (d_fq, by_q[2]), (d_qv, by_v[0]), (d_vv, by_v[1])]
        for found, right in pairs:
            np.testing.assert_allclose(found @ direction, right, atol=tolerance * np.abs(right).max())


def test_singular_positions_have_none():
    """A parallelogram in one line."""
    this = case(SINGULAR)
    with pytest.raises(lw.MechanismError, match="singular position"):
        lw.derivatives.forward_dynamics_second_derivatives(this.mech, this.q)
