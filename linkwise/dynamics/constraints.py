"""Constraints of a mechanism (loop closures, couplings, rolling, drives, held contacts; spencer2004): assembly,
projection, Jacobian and null space, rank and redundancy, reactions, impacts, charts.

Dynamics under constraints is that of ``linkwise`` itself (``lw.forward_dynamics``, ``lw.inverse_dynamics``, ...).  q is
(nq,), v, a and tau are (nv,), each with any leading batch shape unless a function says otherwise; m is the number of
constraints, ``mech.n_constraints``.  All of them may be given by joint, as in {"crank": 0.5}: q is then the initial
configuration with these coordinates, its loops closed; v has the least velocities of the other joints that keep them
closed; tau is zero elsewhere.
"""

from .closed.assembly import AssemblyError, assemble, generic_rank, project
from .closed.charts import LocalParametrization, local_parametrization
from .closed.constraints import constraint_bias, constraint_jacobian, degrees_of_freedom, position_error
from .closed.coordinates import ChartError, Coordinates, ImplicitCoordinates, implicit_coordinates
from .closed.dynamics import ALL_METHODS as ALL_METHODS
from .closed.dynamics import null_space
from .closed.force_derivatives import (
    constraint_forces_derivatives,
    loop_reactions_derivatives,
    multipliers_derivatives,
)
from .closed.loop_joints import with_joint_of_loop
from .closed.reactions import constraint_forces, impact, impact_impulses, loop_reactions, multipliers
from .closed.redundancy import ClusterRedundancy, Redundancy, redundancy
from .closed.singular import conditioning, time_to_singular
from .closed.singular import usual_conditioning as usual_conditioning

__all__ = [
    "AssemblyError",
    "ChartError",
    "ClusterRedundancy",
    "Coordinates",
    "ImplicitCoordinates",
    "LocalParametrization",
    "Redundancy",
    "assemble",
    "conditioning",
    "constraint_bias",
    "constraint_forces",
    "constraint_forces_derivatives",
    "constraint_jacobian",
    "degrees_of_freedom",
    "generic_rank",
    "impact",
    "impact_impulses",
    "implicit_coordinates",
    "local_parametrization",
    "loop_reactions",
    "loop_reactions_derivatives",
    "multipliers",
    "multipliers_derivatives",
    "null_space",
    "position_error",
    "project",
    "redundancy",
    "time_to_singular",
    "with_joint_of_loop",
]
