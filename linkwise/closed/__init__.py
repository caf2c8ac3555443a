"""Closed mechanisms (spencer2004): loop constraints, assembly, dynamics that survives singular positions, projection.

q is (nq,), v, a and tau are (nv,), each with any leading batch shape unless a function says otherwise; m is the number
of loop constraints, ``mech.n_constraints``.
"""

from .assembly import AssemblyError, assemble, follow, generic_rank, project
from .charts import ChartError, Coordinates, LocalParametrization, local_parametrization, simulate_in_charts
from .constraints import constraint_bias, constraint_jacobian, degrees_of_freedom, position_error
from .dynamics import (
    constraint_forces,
    forward_dynamics,
    inverse_dynamics,
    loop_reactions,
    multipliers,
    null_space,
)
from .motion import Motion, simulate

__all__ = [
    "AssemblyError",
    "ChartError",
    "Coordinates",
    "LocalParametrization",
    "Motion",
    "assemble",
    "constraint_bias",
    "constraint_forces",
    "constraint_jacobian",
    "degrees_of_freedom",
    "follow",
    "forward_dynamics",
    "generic_rank",
    "inverse_dynamics",
    "local_parametrization",
    "loop_reactions",
    "multipliers",
    "null_space",
    "position_error",
    "project",
    "simulate",
    "simulate_in_charts",
]
