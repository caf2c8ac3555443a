"""Derivatives of constrained accelerations: compiled elimination, else singular values (``variations.py``)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import compile_instead
from ..dynamics import derivatives as trees
from ..dynamics.states import ByJoint, Float64Array, checked_motion
from ..mechanism import Mechanism
from .solver import Inputs, call_kernel, has_generic_rank, serves, solve
from .variations import State, Variations, state_of, variations

Three = tuple[Float64Array, Float64Array, Float64Array]
NAME = "closed_forward_dynamics_derivatives"


@compile_instead("'closed_forward_dynamics_derivatives', which also says how far its results can be relied on")
def forward_dynamics_derivatives(
    mech: Mechanism, q: ByJoint, v: ByJoint | None, tau: ByJoint | None, wrenches: ArrayLike | None = None
) -> Three:
    """``linkwise.forward_dynamics_derivatives`` under constraints."""
    inputs: tuple[Any, Any, Any] = (q, v, tau)
    if any(x is None or isinstance(x, Mapping) for x in inputs):
        at_q, at_v, under = checked_motion(mech, q, v, tau)
        inputs = at_q, at_v, under
    if not mech.loops:
        return trees.forward_dynamics_derivatives(mech, *inputs, wrenches)
    if wrenches is None and serves(mech, NAME):
        results = call_kernel(mech, NAME, *inputs)
        if results is not None:
            return results[0], results[1], results[2]
    return derivatives_at(state_of(mech, *inputs, wrenches))


def derivatives_at(at: State, rank: int | None = None) -> Three:
    """``forward_dynamics_derivatives`` at a checked state.  With ``rank`` (``constraints.generic_rank``), loops need
    not be exactly closed."""

    def reference(at: State, near: Variations) -> tuple[Float64Array, ...]:
        n = at.mech.nv
        return *joint_derivatives(near, near.rates[..., n:, :]), near.independent.basis @ near.response

    d_q, d_v, d_tau = compiled_or(NAME, at, rank, reference)
    return d_q, d_v, d_tau


def joint_derivatives(near: Variations, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(..., k, nv) each: derivatives by steps of q and changes of v, projected onto allowed ones, from derivatives
    (..., k, 2 p) by independent coordinates."""
    p = near.positions.rows.shape[-2]
    return rates[..., :p] @ near.positions.rows, rates[..., p:] @ near.independent.rows


def rate_jacobian_at(at: State, rank: int | None = None) -> Float64Array:
    """(2 nv, 2 nv): derivative of (rate of the step from q, acceleration) by (step, change of v): [Df] P (4.4), P the
    projection of ``project``."""

    def reference(at: State, near: Variations) -> Float64Array:
        return np.concatenate(joint_derivatives(near, near.rates), axis=-1)

    return compiled_or("closed_rate_jacobian", at, rank, reference)


def compiled_or(name: str, at: State, rank: int | None, reference: Any) -> Any:
    """The results of a kernel, with ``reference`` for states where it is unreliable."""

    def exact(q: Any, v: Any, tau: Any, active: Any, wrenches: Any) -> tuple[Float64Array, ...]:
        rest = State(at.mech, q, v, tau, wrenches, at.passive, active)
        return reference(rest, variations(rest, rank=rank))

    if at.passive is not None or not has_generic_rank(at.mech, rank, at.batch):
        return exact(at.q, at.v, at.tau, at.active, at.wrenches)
    inputs = Inputs((at.q, at.v, at.tau), at.active, at.wrenches)
    return solve(at.mech, name, inputs, exact, judged_by="consistency" if rank is None else "reliability")
