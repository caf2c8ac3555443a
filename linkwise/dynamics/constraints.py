"""Constraints of a mechanism (loop closures, couplings, rolling, drives, held contacts; spencer2004): assembly,
projection, Jacobian and null space, rank and redundancy, reactions.

Dynamics under constraints is that of ``linkwise`` itself (``lw.forward_dynamics``, ``lw.inverse_dynamics``, ...).  q is
(nq,), v, a and tau are (nv,), each with any leading batch shape unless a function says otherwise; m is the number of
constraints, ``mech.n_constraints``.  All of them may be given by joint, as in {"crank": 0.5}: q is then the initial
configuration with these coordinates, its loops closed; v has the least velocities of the other joints that keep them
closed; tau is zero elsewhere.
"""

from typing import TYPE_CHECKING

from ..former import moved_from
from ..mechanism import Coupling, Drive, Loop
from .closed.assembly import AssemblyError, assemble, generic_rank, project
from .closed.constraints import constraint_bias, constraint_jacobian, degrees_of_freedom, position_error
from .closed.dynamics import ALL_METHODS as ALL_METHODS
from .closed.dynamics import null_space
from .closed.reactions import constraint_forces, loop_reactions, multipliers
from .closed.redundancy import ClusterRedundancy, Redundancy, redundancy
from .closed.singular import conditioning
from .closed.singular import usual_conditioning as usual_conditioning

__all__ = [
    "AssemblyError",
    "ClusterRedundancy",
    "Coupling",
    "Drive",
    "Loop",
    "Redundancy",
    "assemble",
    "conditioning",
    "constraint_bias",
    "constraint_forces",
    "constraint_jacobian",
    "degrees_of_freedom",
    "generic_rank",
    "loop_reactions",
    "multipliers",
    "null_space",
    "position_error",
    "project",
    "redundancy",
]

if not TYPE_CHECKING:
    __getattr__ = moved_from("constraints")


def __dir__() -> list[str]:
    return __all__
