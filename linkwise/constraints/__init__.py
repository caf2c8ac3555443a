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
from .accelerations import ALL_METHODS as ALL_METHODS
from .accelerations import null_space
from .assembly import AssemblyError, assemble, generic_rank, project
from .equations import constraint_bias, constraint_jacobian, degrees_of_freedom, position_error
from .reactions import constraint_forces, loop_reactions, multipliers
from .redundancy import ClusterRedundancy, Redundancy, redundancy
from .singular import conditioning
from .singular import usual_conditioning as usual_conditioning

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
__dir__ = __all__.copy
