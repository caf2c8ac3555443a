"""Joint momenta p = M v in place of joint velocities (the canonical momenta of spencer2004 5.1).

p_i = H_i h_i + R v_i, where h_i is the momentum of the subtree of link i; only forces change h_i, so that

    dp_i/dt = tau_i + H_i w_i + (dH_i*/dt + V_i x H_i*)* h_i

w_i is the weight of this subtree plus the wrenches on it.  The last term is half the derivative of v* M v along the
directions of the joint; where they do not commute (quaternions) their structure constants are in V_i x H_i*.
Accelerations and inertial forces are not needed.  The articulated-body recursion keeps its filter, from p to total
joint rates, and its smoother, from these to velocities,

    z = psi K p,    xi = D^-1 (p - H z),    v = xi - G* V+,    V = V+ + H* v

and momenta need no separate sweep, h = P V + z = P+ V+ + z+, as forces follow from accelerations.

Constraints apply to momenta as to velocities.  p stays M v, of all coordinates, and both left sides have one matrix:

    M v + G* mu = p,  G v = rates of the drives;    M a + G* lambda = tau - h,  G a = -bias

and -G* lambda is among the forces that change p.  No Hamiltonian is assumed: constraints may be nonholonomic.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...mechanism import Mechanism
from ..links.constraint_units import ConstraintUnits
from ..links.loop_elimination import Fronts
from ..operators.expression import Expression, Factored
from ..recursions.fixed_axes import FixedAxes, rotates_in_a_plane
from ..recursions.tree import Configuration, LazyConfiguration, Tree
from ..scalar import Scalar
from . import constrained_rates
from . import expressions as ex
from .algorithm import SOLVES_TREE, SOLVES_WITH_MULTIPLIERS, Algorithm, algorithm, expressed, register
from .constrained_rates import Names
from .contact_dynamics import HELD, MotionOfMomenta
from .momenta_by_pairs import FlowByPairs
from .momentum_flows import FlowByElimination, FlowOfMomenta, FlowWithinConstraints

REASON = "products of velocities and momenta, which no operator is linear in"

#: p = M v.
MOMENTA = ex.MASS_MATRIX @ ex.v


#: Methods for v from p, and for h from both; the one with the fewest operations depends on the mechanism.
FILTER, FILTER_AND_SWEEP, ELIMINATION = "filter", "filter_and_sweep", "elimination"
#: Where links rotate in one plane: the filter and the sweep in axes that do not rotate; elimination pair by pair.
IN_A_PLANE = FIXED_AXES, PAIRS = "fixed_axes", "pairs"
FORMS = (FILTER, FILTER_AND_SWEEP, ELIMINATION, *IN_A_PLANE)
FEW = 8  # number of links above which divisions overlap with other operations anyway


@expressed("joint_momenta", ("q", "v"), "p")
def _joint_momenta(mechanism: Mechanism) -> Expression:
    """(nv,): p = M v."""
    return MOMENTA


def velocities_of_tree(
    mechanism: Mechanism, form: str, units: ConstraintUnits | None = None, active: bool = False
) -> Expression:
    """v = M^-1 p: by the filter and the smoother, or by dense factorization of the mass matrix."""
    if form in (ELIMINATION, PAIRS) and not mechanism.coordinates.mimic_joints:
        return Factored(ex.H @ ex.phi @ ex.M @ ex.phi.T @ ex.H.T + ex.R) @ ex.joint_vector("p")
    return ex.MASS_MATRIX_INVERSE @ ex.coordinate_vector("p")


OPTIONS = ("form", "units")
register(Algorithm("momentum_velocities", ("q", "p"), "v", None, OPTIONS, velocities_of_tree, requires=SOLVES_TREE))


@algorithm(
    ("q", "p"),
    "v",
    name="momentum_velocities",
    within_constraints=True,
    options=("units",),
    reason=HELD,
    requires=SOLVES_WITH_MULTIPLIERS,
    ports=("active",),
)
def velocities(tree: Tree, q, p, active=None, *, units: ConstraintUnits) -> list[Scalar]:
    """(nv,): v of p under constraints."""
    return MotionOfMomenta(tree, q, p, active, units).velocities


def flow_of_tree(
    tree: Tree, q: Sequence[Scalar], p: Sequence[Scalar], form: str
) -> FlowOfMomenta | FlowByElimination | FlowByPairs:
    """The motion of a tree with momenta p, in the requested form. Mimic joints require elimination; forms for planar
    mechanisms are replaced if links no longer rotate in one plane, as with poses that are inputs.
    """
    if form not in FORMS:
        raise ValueError(f"unknown form {form!r}: known: {', '.join(FORMS)}")
    if form in IN_A_PLANE and not rotates_in_a_plane(tree):
        form = FILTER_AND_SWEEP if form == FIXED_AXES else ELIMINATION
    if form == ELIMINATION or tree.mechanism.coordinates.mimic_joints:
        return FlowByElimination(tree, q, p)
    if form == PAIRS:
        return FlowByPairs(tree, q, p)
    if form == FIXED_AXES:
        return FlowOfMomenta(FixedAxes(tree.regrouped if _is_solid_in_its_plane(tree.original) else tree, q), p, True)
    configuration = LazyConfiguration if len(tree.links) <= FEW else Configuration
    at = configuration(tree.regrouped if ex.is_solid(tree.original) else tree, q)
    return FlowOfMomenta(at, p, swept=form == FILTER_AND_SWEEP)


def _is_solid_in_its_plane(mechanism: Mechanism) -> bool:
    """Whether links resist rotation about the axes of their joints: see ``ex.tree_of_forward_dynamics``."""
    axes = np.array([np.array(body.kind.alignment)[:, 2] for body in mechanism.bodies])
    moments = np.einsum("ni,nij,nj->n", axes, np.array([body.inertia for body in mechanism.bodies]), axes)
    return bool(moments.min() > ex.SLENDER * moments.max())


@algorithm(
    ("q", "p", "tau"),
    ("p_rate", "v"),
    name="momentum_motion",
    options=("form",),
    reason=REASON,
    requires=SOLVES_TREE,
    ports=("wrenches",),
    sweeps=True,
)
def motion(tree: Tree, q, p, tau, wrenches=None, *, form: str) -> tuple[list[Scalar], list[Scalar]]:
    """(nv,) and (nv,): dp/dt and v, the rates of (q, p) for an integrator."""
    flow = flow_of_tree(tree, q, p, form)
    return flow.rates(tau, wrenches), flow.velocities


@algorithm(
    ("q", "p", "tau"),
    ("p_rate", "v"),
    name="momentum_motion",
    within_constraints=True,
    options=("units",),
    reason=HELD,
    requires=SOLVES_WITH_MULTIPLIERS,
    ports=("active", "wrenches"),
)
def motion_within_constraints(
    tree: Tree, q, p, tau, wrenches=None, active=None, *, units: ConstraintUnits
) -> tuple[list[Scalar], list[Scalar]]:
    """dp/dt and v under constraints."""
    v = MotionOfMomenta(tree, q, p, active, units).velocities
    return FlowWithinConstraints(tree, q, v, active, units, p).rates(tau, wrenches), v


@algorithm(
    ("q", "p", "tau"),
    ("p_rate", "v", "nu"),
    name="momentum_motion_and_total_rates",
    options=("normalized", "form"),
    reason=REASON,
    requires=SOLVES_TREE,
    ports=("wrenches",),
    sweeps=True,
)
def motion_and_total_rates(
    tree: Tree, q, p, tau, wrenches=None, *, normalized: bool = True, form: str
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """dp/dt, v, and (nv,): the total joint rates nu = m* v, or xi, intermediate results of the filter."""
    joints = tree.original.bodies
    if form in (ELIMINATION, PAIRS) and any(body.nv > 1 for body in joints):
        form = FILTER  # D^(1/2) has a block for each joint; elimination factors single coordinates
    flow = flow_of_tree(tree, q, p, form)
    return flow.rates(tau, wrenches), flow.velocities, flow.total_rates(normalized)


@algorithm(
    ("q", "p", "tau"),
    ("p_rate", "v", "nu"),
    name="momentum_motion_and_total_rates",
    within_constraints=True,
    options=("normalized", "units", "fronts", "independent_velocities"),
    reason=HELD,
    requires=SOLVES_WITH_MULTIPLIERS,
    ports=("wrenches",),
)
def motion_and_quasi_velocities(
    tree: Tree,
    q,
    p,
    tau,
    wrenches=None,
    *,
    normalized: bool = True,
    units: ConstraintUnits,
    fronts: Fronts,
    independent_velocities: Names = None,
) -> tuple[list[Scalar], list[Scalar], list[Scalar]]:
    """dp/dt, v, and (p,): the quasi-velocities nu, or xi, under constraints."""
    changes, v = motion_within_constraints(tree, q, p, tau, wrenches, units=units)
    nu = constrained_rates.rates(tree, q, v, normalized, fronts=fronts, independent_velocities=independent_velocities)
    return changes, v, nu
