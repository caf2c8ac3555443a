"""Derivatives of the inverse dynamics of constrained mechanisms.

Least joint forces tau = W y at the actuated joints, W = S D^-2 S* with S their columns and D their units, solve

    W y - G* lambda = load,    G y = 0,    load = M a + h,

so that y = K (K* W K)^-1 K* load.  Differentiated, with K = K(q) a basis of the null space of G and L = G^+,

    dy = K dz - L dG y,    K* W K dz = K* (dload + dG* lambda + W L dG y).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics import trees as tree
from ..dynamics.states import ByJoint, Float64Array
from ..mechanism import Mechanism, MechanismError
from .accelerations import terms
from .decomposition import times, transposed_times
from .equations import decomposed_jacobian, driven_by
from .force_units import velocity_units
from .inverse import inverse_dynamics
from .variations import (
    Motion,
    State,
    along_null_space,
    bias_by_v,
    constraint_derivatives,
    filled,
    force_derivatives,
    refuse_open,
    state_of,
    step_rate_jacobian,
)

DRIVEN = 1e-10  # of unit forces: smaller leverages on the degrees of freedom count as none


def derivatives_of_inverse_dynamics(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None,
    a: ByJoint | None,
    wrenches: ArrayLike | None,
    actuated: Sequence[str] | None,
    elements: Any,
    active: ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(d_q, d_v, d_a), each (nv, nv): of ``inverse_dynamics`` at the projected state (as ``project`` does it) and the
    nearest accelerations that the constraints, those that are ``active``, allow there; ``elements`` are force
    elements."""
    at = state_of(mech, q, v, a, wrenches, None, elements=elements, active=active)
    a, at = at.tau, at._replace(tau=np.zeros(at.tau.shape))
    besides = None if elements is None else elements.forces(at.q, at.v)
    driven = np.arange(mech.nv) if actuated is None else driven_by(mech, actuated, "actuated")
    weights, holds = velocity_units(mech)[driven] ** 2, None if at.active is None else at.active > 0.0
    tau = inverse_dynamics(mech, at.q, at.v, a, actuated, weights, at.wrenches, active=holds, besides=besides)

    equations = terms(mech, at.q, at.v, active=at.active)
    refuse_open(at, equations)
    svd = decomposed_jacobian(mech, equations.jacobian)
    independent = along_null_space(mech, svd)
    basis, closing, rows = independent.basis, independent.closing, independent.rows
    load = tree.inverse_dynamics(mech.spanning_tree, at.q, at.v, a, at.wrenches)
    load = load if besides is None else load - besides
    multipliers = transposed_times(closing, tau - load)
    here = Motion(independent, np.zeros((0, mech.nv)), a, multipliers)
    reaction_by_q, bias_by_q, velocity_by_q = constraint_derivatives(at, svd, here, True)

    # Steps that constraints allow, by steps of q, by changes of v and of a.
    onto = basis @ rows
    onto_positions = onto
    if mech.constraints.is_nonholonomic:
        holonomic = equations.jacobian * mech.constraints.holonomic_rows[:, None]
        positions = along_null_space(mech, decomposed_jacobian(mech, holonomic))
        onto_positions = positions.basis @ positions.rows
        bias_of_v = bias_by_v(at, here)
    else:
        bias_of_v = 2.0 * (velocity_by_q - equations.jacobian @ step_rate_jacobian(at))
    v_by_q = -closing @ (velocity_by_q @ onto_positions)
    a_by_q = -closing @ (bias_by_q @ onto_positions + bias_of_v @ v_by_q)
    a_by_v = -closing @ (bias_of_v @ onto)

    load_by_q, load_by_v = force_derivatives(at, a)
    d_load = np.concatenate(
        [
            (load_by_q + reaction_by_q) @ onto_positions + load_by_v @ v_by_q + equations.mass @ a_by_q,
            load_by_v @ onto + equations.mass @ a_by_v,
            equations.mass @ onto,
        ],
        axis=-1,
    )

    leverage = np.zeros(mech.nv)
    leverage[driven] = 1.0 / weights
    across = np.swapaxes(basis, -1, -2)
    reach = filled((across * leverage) @ basis, basis)
    _require_driven(mech, reach)
    y = times(basis, np.linalg.solve(reach, times(across, load)[..., None])[..., 0])
    bent = closing @ (_constraint_rate(at, y, here, svd) @ onto_positions)
    bent = np.concatenate([bent, np.zeros((*bent.shape[:-1], 2 * mech.nv))], axis=-1)
    dz = np.linalg.solve(reach, across @ (d_load + leverage[:, None] * bent))
    d_tau = leverage[:, None] * (basis @ dz - bent)
    d_q, d_v, d_a = np.split(d_tau, 3, axis=-1)
    return d_q, d_v, d_a


def _constraint_rate(at: State, y: np.ndarray, here: Motion, svd: Any) -> np.ndarray:
    """(m, nv): of G y along q, y fixed."""
    return constraint_derivatives(at._replace(v=np.broadcast_to(y, at.v.shape)), svd, here, False)[2]


def _require_driven(mech: Mechanism, reach: np.ndarray) -> None:
    """The actuated joints drive all degrees of freedom; ``reach`` (..., p, p) is K* W K."""
    if not reach.size:
        return
    values = np.linalg.eigvalsh(reach)
    if np.any(values[..., 0] < DRIVEN * values[..., -1]):
        raise MechanismError(
            f"the actuated joints of mechanism {mech.name!r} do not drive all of its degrees of freedom: they produce "
            "no other accelerations nearby, and derivatives of their forces do not exist; name more joints as actuated"
        )
