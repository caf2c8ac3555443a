"""Derivatives of multipliers and reactions, against differences along motions that the constraints allow."""

import numpy as np

import linkwise as lw
from linkwise.constraints.sizes import units

from .mechanisms import NAMES, Case, case
from .oracle import Terms, differentiate
from .product import Quantity, cells, check, given


def directions(mech: lw.Mechanism) -> np.ndarray:
    """(3, nv): a step of q, a change of v and one of tau."""
    return np.random.default_rng(8).normal(size=(3, mech.nv))


def nearby(this: Case, s: float, sizes: tuple[float, ...] = (1, 1, 1)) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The state at s along these directions, times ``sizes``, projected onto what the constraints that hold allow."""
    step, change, push = (size * x for size, x in zip(sizes, directions(this.mech), strict=True))
    q, v = lw.integrate(this.mech, this.q, step, s), this.v + s * change
    if this.mech.loops:
        q, v = projected(this, q, v)
    return q, v, this.tau + s * push


def projected(this: Case, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """What the constraints that hold allow: with a mask the nearest by the sizes that the whole mechanism has, which
    are those of schedules too."""
    if this.active is None:
        return lw.constraints.project(this.mech, q, v, aim=1e-16)
    held = this.mech.spanning_tree.with_loops(*(x for x, on in zip(this.mech.loops, this.active, strict=True) if on))
    width = units(this.mech).velocities
    for _ in range(8):
        jacobian = lw.constraints.constraint_jacobian(held, q) * width
        step = width * (np.linalg.pinv(jacobian, rcond=1e-9) @ lw.constraints.position_error(held, q))
        q = lw.integrate(this.mech, q, -step, 1.0)
    jacobian = lw.constraints.constraint_jacobian(held, q)
    return q, v - width * (np.linalg.pinv(jacobian * width, rcond=1e-9) @ (jacobian @ v))


def along(function, core: int):
    """The derivative along these directions, from the three matrices, whose results have so many axes."""

    def value(this: Case) -> np.ndarray:
        parts = function(this.mech, this.q, this.v, this.tau, **given(this))
        for part in parts:
            assert part.ndim == core + 1 and part.shape[-1] == this.mech.nv
        return sum(part @ direction for part, direction in zip(parts, directions(this.mech), strict=True))

    return value


def differences(function):
    """The same from values at projected states."""

    def oracle(terms: Terms) -> np.ndarray:
        this = next(case(name) for name in NAMES if case(name).mech is terms.mech and same(case(name), terms))
        return differentiate(lambda s: function(this, *nearby(this, s)), 1e-4)

    return oracle


def same(this: Case, terms: Terms) -> bool:
    return this.active is terms.active


def dense_forces(this: Case, q, v, tau) -> np.ndarray:
    near = Terms(this, q, v)
    return near.constraint_forces(tau)


def of(function):
    return lambda this, q, v, tau: function(this.mech, q, v, tau, **given(this))


def joint_wrenches(this: Case, q, v, tau) -> np.ndarray:
    return lw.joint_wrenches(this.mech, q, v, tau=tau, **given(this))


CONSTRAINED = NAMES[3:]
QUANTITIES = [
    Quantity(
        "constraint_forces_derivatives",
        along(lw.derivatives.constraint_forces_derivatives, 1),
        differences(dense_forces),
        1e-7,
        CONSTRAINED,
    ),
    Quantity(
        "multipliers_derivatives",
        along(lw.derivatives.multipliers_derivatives, 1),
        differences(of(lw.constraints.multipliers)),
        1e-7,
        CONSTRAINED,
    ),
    Quantity(
        "loop_reactions_derivatives",
        along(lw.derivatives.loop_reactions_derivatives, 2),
        differences(of(lw.constraints.loop_reactions)),
        1e-7,
        CONSTRAINED,
    ),
    Quantity(
        "loop_reactions_derivatives_in_the_world",
        along(lambda *a, **o: lw.derivatives.loop_reactions_derivatives(*a, **o, frame="world_aligned"), 2),
        differences(lambda c, *s: lw.constraints.loop_reactions(c.mech, *s, **given(c), frame="world_aligned")),
        1e-7,
        CONSTRAINED,
    ),
    Quantity(
        "joint_wrenches_derivatives",
        along(lw.derivatives.joint_wrenches_derivatives, 2),
        differences(joint_wrenches),
        1e-7,
    ),
]


@cells(QUANTITIES, long=("three loops", "held feet", "masked feet"))
def test_product(quantity, case_name):
    check(quantity, case(case_name))
