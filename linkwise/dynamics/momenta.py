"""Joint momenta p = M v in place of joint velocities: the canonical momenta of spencer2004 5.1.

    dp/dt = tau + 1/2 d(v* M v) - gravity_force,    v = M^-1 p

No accelerations are needed, and no forces that they cause: fewer operations than forward dynamics.  d is the derivative
along the directions of the joints; where these do not commute (spherical and floating joints) their structure constants
add to it.  q is (nq,), v, p and tau are (nv,), with any leading batch shape.  Trees of any joints, fixed or floating,
with rotor inertias and mimic joints.  Loops are refused where v is solved for.
"""

from __future__ import annotations

from functools import partial

from numpy.typing import ArrayLike

from ..compiler.registry import compile_instead
from ..compiler.store import of_algorithm, stored
from ..mechanics.algorithms import momenta as forms
from ..mechanics.algorithms.algorithm import Algorithm
from ..mechanics.recursions.fixed_axes import rotates_in_a_plane
from ..mechanics.recursions.tree import build_tree
from ..mechanism import Mechanism
from .states import Float64Array

MOST = 16  # degrees of freedom: beyond, the mass matrix as a whole costs more than articulated inertias, or than to ask

__all__ = ["forward_dynamics", "momenta", "motion", "motion_and_total_rates", "velocities"]


@of_algorithm("joint_momenta")
def momenta(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nv,): p = M v, without the mass matrix."""
    ...


@of_algorithm("momentum_velocities")
def velocities(mech: Mechanism, q: ArrayLike, p: ArrayLike) -> Float64Array:
    """(nv,): v = M^-1 p."""
    ...


@of_algorithm("momentum_motion")
def motion(
    mech: Mechanism, q: ArrayLike, p: ArrayLike, tau: ArrayLike, wrenches: ArrayLike | None = None
) -> tuple[Float64Array, Float64Array]:
    """dp/dt and v, each (nv,), under joint forces, gravity and ``wrenches`` (n_links, 6): what an integrator of (q, p)
    needs, at once."""
    ...


@of_algorithm("momentum_motion_and_total_rates")
def motion_and_total_rates(
    mech: Mechanism,
    q: ArrayLike,
    p: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    normalized: bool = True,
) -> tuple[Float64Array, Float64Array, Float64Array]:
    """dp/dt, v, and the total joint rates nu = m* v of jain1995 (``linkwise.diagonal``; xi without normalization),
    which the filter from p to v finds on its way."""
    ...


@compile_instead("linkwise.momenta.motion, whose kernel gives dp/dt and v")
def forward_dynamics(
    mech: Mechanism, q: ArrayLike, p: ArrayLike, tau: ArrayLike, wrenches: ArrayLike | None = None
) -> Float64Array:
    """(nv,): dp/dt under joint forces, gravity and ``wrenches``."""
    return motion(mech, q, p, tau, wrenches)[0]


def cheapest_form(mech: Mechanism) -> str:
    """How the velocities of momenta are found in the fewest instructions, counted; kept with the mechanism."""
    return stored(mech, cheapest_form, lambda: _cheapest_form(mech))


def _cheapest_form(mech: Mechanism) -> str:
    in_a_plane = rotates_in_a_plane(build_tree(mech))
    if mech.nv > MOST:
        return forms.FIXED_AXES if in_a_plane else forms.FILTER
    candidates = (form for form in forms.FORMS if in_a_plane or form not in forms.IN_A_PLANE)
    return min(candidates, key=lambda form: _instructions(mech, form))


def _instructions(mech: Mechanism, form: str) -> int:
    """Operations where a product and a sum are one, as on the machine."""
    from ..compiler.pipeline import optimize, trace_with_plan  # here, so that importing the package stays quick

    algorithm = Algorithm(
        form, ("q", "p", "tau"), ("p_rate", "v"), partial(forms.motion, form=form), reason=forms.REASON
    )
    program = optimize(trace_with_plan(algorithm, mech).program)
    assert not program.loops  # without loops over links
    return len([node for node in program.nodes if node.args])
