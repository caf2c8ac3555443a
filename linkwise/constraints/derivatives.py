"""Derivatives of the accelerations of closed mechanisms: compiled where loops can be eliminated, else by their singular
values (``variations.py``)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import compile_instead
from ..compiler.store import WRENCHES, float64_function, stored
from ..dynamics import derivatives as trees
from ..dynamics.states import ByJoint, Float64Array, checked_motion
from ..mechanism import Mechanism
from .elimination_orders import fronts
from .redundancy import redundancy
from .solver import RELIABLE, completed
from .variations import State, Variations, state_of, variations

LARGE = 1000  # numbers of K: beyond, straight-line code of derivatives takes too long to compile

Three = tuple[Float64Array, Float64Array, Float64Array]


@compile_instead("'closed_forward_dynamics_derivatives', which also says how far its results can be relied on")
def forward_dynamics_derivatives(
    mech: Mechanism, q: ByJoint, v: ByJoint | None, tau: ByJoint | None, wrenches: ArrayLike | None = None
) -> Three:
    """(d_q, d_v, d_tau), each (nv, nv): row i has the derivatives of acceleration i, all loops kept closed, along
    tangent directions of q, by v and by tau.

    Changes of q and v that loops do not allow are projected onto those that they do as ``project`` does it, q first:
    these are derivatives of ``forward_dynamics(mech, *project(mech, q, v), tau)``, the lower half of [Df] P
    (spencer2004 4.4), and depend on no unit.  d_tau is K (K* M K)^-1 K*.  The external ``wrenches`` (n_links, 6) stay
    as they are in their link frames.

    A ``MechanismError`` says where loops are open, velocities inconsistent with them or positions singular.
    """
    given: tuple[Any, Any, Any] = (q, v, tau)
    if any(x is None or isinstance(x, Mapping) for x in given):
        at_q, at_v, under = checked_motion(mech, q, v, tau)
        given = at_q, at_v, under
    if not mech.loops:
        return trees.forward_dynamics_derivatives(mech, *given, wrenches)
    if wrenches is None and compiled_dofs(mech):
        *three, _, consistency = float64_function(mech, "closed_forward_dynamics_derivatives")(*given)
        if consistency.min(initial=np.inf) > RELIABLE:
            return three[0], three[1], three[2]
    at = state_of(mech, *given, wrenches, None)
    return derivatives_at(at)


def derivatives_at(at: State, rank: int | None = None) -> Three:
    """``forward_dynamics_derivatives`` at a state that was checked; with ``rank`` (``constraints.generic_rank``) loops
    need not be exactly closed."""

    def reference(at: State, near: Variations) -> Sequence[np.ndarray]:
        n = at.mech.nv
        return *by_all(near, near.rates[..., n:, :]), near.independent.basis @ near.response

    d_q, d_v, d_tau = compiled_or("closed_forward_dynamics_derivatives", at, rank, reference)
    return d_q, d_v, d_tau


def by_all(near: Variations, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., k, nv) each: by steps of q and by changes of v, from those (..., k, 2 p) by independent coordinates that
    take them to the nearest which loops allow."""
    p = near.positions.rows.shape[-2]
    return rates[..., :p] @ near.positions.rows, rates[..., p:] @ near.independent.rows


def rate_jacobian_at(at: State, rank: int | None = None) -> Float64Array:
    """(2 nv, 2 nv): derivative of (rate of the step from q, acceleration) by (step, change of v): [Df] P (4.4), P the
    projection of ``project``."""

    def reference(at: State, near: Variations) -> Sequence[np.ndarray]:
        return (np.concatenate(by_all(near, near.rates), axis=-1),)

    (whole,) = compiled_or("closed_rate_jacobian", at, rank, reference)
    return whole


def compiled_or(name: str, at: State, rank: int | None, reference: Any, serves: bool = True) -> list[Float64Array]:
    """The results of a kernel, if it ``serves`` the mechanism, and of ``reference`` for states that it cannot be relied
    on for."""
    if at.passive is not None or not serves or not compiled_dofs(at.mech, rank):
        return list(reference(at, variations(at, rank=rank)))
    given = (at.q, at.v, at.tau) if at.wrenches is None else (at.q, at.v, at.tau, at.wrenches)
    request = name if at.wrenches is None else (name, WRENCHES)
    *found, reliability, consistency = float64_function(at.mech, request)(*given)
    fine = np.asarray((consistency if rank is None else reliability) > RELIABLE)
    if not fine.all():

        def exact(q: Any, v: Any, tau: Any, wrenches: Any) -> Sequence[np.ndarray]:
            rest = State(at.mech, q, v, tau, wrenches, at.passive)
            return reference(rest, variations(rest, rank=rank))

        completed(found, ~fine, exact, at.q, at.v, at.tau, wrenches=at.wrenches)
    return found


def compiled_dofs(mech: Mechanism, rank: int | None = None) -> int:
    """Degrees of freedom that the elimination leaves, 0 if it does not serve: without loops or degrees of freedom,
    where constraints are rounded or on velocities alone, where it would be too large, or where another ``rank`` is
    asked for."""
    dofs = stored(mech.constraints.structure, compiled_dofs, lambda: _compiled_dofs(mech))
    return dofs if rank is None or rank == mech.nv - dofs else 0


def _compiled_dofs(mech: Mechanism) -> int:
    if not mech.loops or mech.constraints.is_nonholonomic or redundancy(mech).blocks:
        return 0
    dofs = mech.nv - fronts(mech).pivots
    return dofs if dofs * mech.nv <= LARGE else 0
