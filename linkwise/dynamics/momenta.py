"""Joint momenta p = M v in place of joint velocities: the canonical momenta of spencer2004 5.1.

    dp/dt = tau + 1/2 d(v* M v) - gravity_force,    v = M^-1 p

Without accelerations and inertial forces it needs fewer operations than forward dynamics.  d is the derivative
along the directions of the joints; where these do not commute (spherical and floating joints) their structure constants
add to it.  q is (nq,), v, p and tau are (nv,), with any leading batch shape.  Trees of any joints, fixed or floating,
with rotor inertias and mimic joints, and mechanisms with constraints: there p stays M v of all joints, and

    M v + G* mu = p,  G v = rates of the drives;    dp/dt = tau - G* lambda + 1/2 d(v* M v) - gravity_force

with the lambda of M a + h = tau - G* lambda.  mu is zero for the p = M v of velocities that keep the constraints; of
any other p only K* p has a part in v, K the motions that the constraints allow.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, compile_instead, register
from ..compiler.store import WRENCHES, kernel_function, match_precision, of_algorithm, stored
from ..constraints.accelerations import constrained_motion, least_norm_basis, null_space_accelerations, terms
from ..constraints.decomposition import times
from ..constraints.equations import warn_if_open
from ..constraints.masks import loop_mask, row_mask
from ..constraints.redundancy import closable_error
from ..constraints.solver import Inputs, solve
from ..mechanics.algorithms import momenta as forms
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.recursions.fixed_axes import rotates_in_a_plane
from ..mechanics.recursions.tree import build_tree
from ..mechanism import Mechanism, require_mechanism
from .force_elements import NONE, applied
from .states import ByJoint, Float64Array, checked_arrays
from .total_rates import constrained_total_rates
from .trees import coriolis_matrix, mass_matrix

MOST = 16  # degrees of freedom: above, articulated inertias cost less than the mass matrix, or counting is too slow

__all__ = ["forward_dynamics", "momenta", "motion", "motion_and_total_rates", "velocities"]
__dir__ = __all__.copy


@of_algorithm("joint_momenta")
def momenta(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nv,): p = M v, without the mass matrix."""
    return kernel_function(mech, "joint_momenta")(q, v)


@match_precision
def velocities(mech: Mechanism, q: ArrayLike, p: ArrayLike, active: ArrayLike | None = None) -> Float64Array:
    """(nv,): v = M^-1 p; with constraints the allowed v with the momenta K* p.

    active   (..., len(mech.loops)) booleans: active constraints; all if None
    """
    require_mechanism(mech)
    if not mech.loops:
        loop_mask(mech, active)
        return kernel_function(mech, "momentum_velocities")(q, p)
    q, p = checked_arrays(mech, q=q, p=p)
    mask = loop_mask(mech, active, q=q, p=p)
    warn_if_open(mech, closable_error(mech, q), mask)
    return solve(mech, "momentum_velocities", Inputs((q, p), mask), partial(_velocities, mech))


@match_precision
def motion(
    mech: Mechanism,
    q: ArrayLike,
    p: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    forces: Any = NONE,
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array]:
    """dp/dt and v, each (nv,), under joint forces, gravity, ``wrenches`` (n_links, 6) and constraint forces:
    the rates for an integrator of (q, p).

    active   (..., len(mech.loops)) booleans: active constraints; all if None
    forces, ctrl, activation   active force elements, as for ``lw.forward_dynamics``
    """
    require_mechanism(mech)
    elements = applied(mech, forces, ctrl, activation)
    if elements is not None:
        q, p, tau = checked_arrays(mech, q=q, p=p, tau=tau)
        tau = tau + elements.forces(q, velocities(mech, q, p, active))
    if not mech.loops:
        loop_mask(mech, active)
        if wrenches is None:
            return kernel_function(mech, "momentum_motion")(q, p, tau)
        return kernel_function(mech, ("momentum_motion", WRENCHES))(q, p, tau, wrenches)
    q, p, tau = checked_arrays(mech, wrenches, q=q, p=p, tau=tau)
    mask = loop_mask(mech, active, q=q, p=p, tau=tau)
    warn_if_open(mech, closable_error(mech, q), mask)
    changes, v = solve(mech, "momentum_motion", Inputs((q, p, tau), mask, wrenches), partial(_motion, mech))
    return changes, v


register(velocities, ArrayFunction("momentum_velocities"))
register(motion, ArrayFunction("momentum_motion"))


def _velocities(
    mech: Mechanism, q: Float64Array, p: Float64Array, active: Float64Array | None, _: Any = None
) -> Float64Array:
    """v = M^-1 p as a problem of accelerations at rest, with momenta as forces and drive rates as accelerations."""
    at = terms(mech, q, np.zeros(mech.nv), active=active)
    rates = mech.constraints.drive_rates if active is None else mech.constraints.drive_rates * row_mask(mech, active)
    return null_space_accelerations(mech, at, p, least_norm_basis(mech, at, -np.broadcast_to(rates, at.bias.shape)))


def _motion(
    mech: Mechanism,
    q: Float64Array,
    p: Float64Array,
    tau: Float64Array,
    active: Float64Array | None,
    wrenches: Float64Array | None,
) -> tuple[Float64Array, Float64Array]:
    """dp/dt = M a + dM/dt v, and v."""
    v = _velocities(mech, q, p, active)
    a = constrained_motion(mech, Inputs((q, v, tau), active, wrenches))[1]
    skew = coriolis_matrix(mech, q, v)
    return times(mass_matrix(mech, q), a) + times(skew + np.swapaxes(skew, -1, -2), v), v


@of_algorithm("momentum_motion_and_total_rates")
def _tree_motion(
    mech: Mechanism,
    q: ArrayLike,
    p: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    normalized: bool = True,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    if wrenches is not None:
        return kernel_function(mech, ("momentum_motion_and_total_rates", WRENCHES, ("normalized", normalized)))(
            q, p, tau, wrenches
        )
    return kernel_function(mech, ("momentum_motion_and_total_rates", ("normalized", normalized)))(q, p, tau)


def motion_and_total_rates(
    mech: Mechanism,
    q: ArrayLike,
    p: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    normalized: bool = True,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """(dp/dt, v, nu): the motion from (q, p), and the total joint rates nu = m* v of jain1995
    (``linkwise.formulations.diagonal``; xi with ``normalized=False``), a by-product of the filter from p to v.  With
    constraints nu are quasi-velocities."""
    require_mechanism(mech)
    if not mech.loops:
        return _tree_motion(mech, q, p, tau, wrenches, normalized)
    changes, v = motion(mech, q, p, tau, wrenches)
    return changes, v, constrained_total_rates("diagonal_rates", mech, (q, v), normalized)


register(motion_and_total_rates, ArrayFunction("momentum_motion_and_total_rates"))


@compile_instead("linkwise.formulations.momenta.motion, whose kernel gives dp/dt and v")
def forward_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    p: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    active: ArrayLike | None = None,
    forces: Any = NONE,
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
) -> Float64Array:
    """(nv,): dp/dt under joint forces, gravity, ``wrenches``, ``active`` constraints and the force elements of
    ``forces``."""
    return motion(mech, q, p, tau, wrenches, active, forces, ctrl, activation)[0]


def cheapest_form(mech: Mechanism) -> str:
    """The form of v = M^-1 p with the fewest instructions, counted once and stored with the mechanism."""
    return stored(mech, cheapest_form, lambda: _cheapest_form(mech))


def _cheapest_form(mech: Mechanism) -> str:
    in_a_plane = rotates_in_a_plane(build_tree(mech))
    if mech.nv > MOST:
        return forms.FIXED_AXES if in_a_plane else forms.FILTER
    candidates = (form for form in forms.FORMS if in_a_plane or form not in forms.IN_A_PLANE)
    return min(candidates, key=lambda form: _instructions(mech, form))


def _instructions(mech: Mechanism, form: str) -> int:
    """Number of operations, with a product and a sum counted as one (FMA)."""
    from ..compiler.passes import optimize
    from ..compiler.pipeline import trace_with_plan  # here, so that importing the package stays quick

    motion = partial(forms.motion, form=form)
    algorithm = Algorithm(form, ("q", "p", "tau"), ("p_rate", "v"), motion, reason=forms.REASON)
    program = optimize(trace_with_plan(algorithm, mech).program)
    assert not program.loops  # without loops over links
    return len([node for node in program.nodes if node.args])
