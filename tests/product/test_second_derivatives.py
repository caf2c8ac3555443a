"""Second derivatives of forward dynamics, against differences of the first along motions that constraints allow."""

import numpy as np
import pytest

import linkwise as lw

from .mechanisms import NAMES, Case, case
from .oracle import differentiate
from .product import Quantity, cells, check, given
from .test_force_derivatives import directions, nearby


def product(this: Case) -> tuple[np.ndarray, ...]:
    """Changes of the three matrices along a direction."""
    along = tuple(directions(this.mech))
    return lw.derivatives.forward_dynamics_second_derivatives(
        this.mech, this.q, this.v, this.tau, along=along, **given(this)
    )


def whole(this: Case) -> tuple[np.ndarray, ...]:
    """The same of those along q, from all second derivatives and unit directions."""
    step, change, _ = directions(this.mech)
    d_qq, d_vv, d_qv, d_tauq = lw.derivatives.forward_dynamics_second_derivatives(
        this.mech, this.q, this.v, this.tau, **given(this)
    )
    n = this.mech.nv
    assert d_qq.shape == d_vv.shape == d_qv.shape == d_tauq.shape == (n, n, n)
    return d_qq @ step, d_vv @ change, d_qv @ change, d_tauq @ step


def differences(scales):
    """Of the first derivatives, along each of these multiples of the directions; which of the three matrices."""

    def oracle(terms):
        this = next(case(name) for name in NAMES if case(name).mech is terms.mech and case(name).active is terms.active)

        def first(s, sizes):
            state = nearby(this, s, sizes)
            return np.stack(lw.forward_dynamics_derivatives(this.mech, *state, **given(this)))

        found = []
        for sizes, which in scales:
            changes = differentiate(lambda s, sizes=sizes: first(s, sizes), 1e-4)
            found.extend(changes[k] for k in which)
        return tuple(found)

    return oracle


QUANTITIES = [
    Quantity("second_derivatives_times_a_direction", product, differences([((1, 1, 1), (0, 1, 2))]), 1e-6),
    Quantity(
        "forward_dynamics_second_derivatives",
        whole,
        differences([((1, 0, 0), (0,)), ((0, 1, 0), (1, 0)), ((1, 0, 0), (2,))]),
        1e-6,
    ),
]


@cells(QUANTITIES, long=("three loops", "held feet", "masked feet"))
def test_product(quantity, case_name):
    check(quantity, case(case_name))


@pytest.mark.parametrize("name", ["tree", "one loop"])
def test_batches(name):
    this = case(name)
    state = [np.tile(x, (2, 1, 3, 1)) for x in (this.q, this.v, this.tau)]
    along = np.random.default_rng(0).normal(size=(3, 2, 1, 3, this.mech.nv))
    for options in ({}, {"along": tuple(along)}):
        found = lw.derivatives.forward_dynamics_second_derivatives(this.mech, *state, **options)
        if options:
            options = {"along": tuple(along[:, 1, 0, 2])}
        single = lw.derivatives.forward_dynamics_second_derivatives(this.mech, this.q, this.v, this.tau, **options)
        for part, one in zip(found, single, strict=True):
            assert part.shape == (2, 1, 3, *one.shape)
            np.testing.assert_allclose(part[1, 0, 2], one, atol=1e-9 * max(1.0, np.abs(one).max()))
    empty = lw.derivatives.forward_dynamics_second_derivatives(
        this.mech, np.tile(this.q, (2, 0, 3, 1)), this.v, this.tau
    )
    assert {x.shape for x in empty} == {(2, 0, 3, *[this.mech.nv] * 3)}


def test_what_is_refused():
    this = case("one loop")
    with pytest.raises(lw.MechanismError, match="is open by"):
        lw.derivatives.forward_dynamics_second_derivatives(this.mech, this.q + 0.1, this.v, this.tau)
    for along in (1.0, (this.v, this.v), (this.v, this.v[:-1], this.v)):
        with pytest.raises(lw.MechanismError, match="along"):
            lw.derivatives.forward_dynamics_second_derivatives(this.mech, this.q, this.v, this.tau, along=along)
