"""Closed mechanisms (spencer2004): loop constraints, assembly, dynamics that survives singular positions, projection.

q is (nq,), v, a and tau are (nv,), each with any leading batch shape unless a function says otherwise; m is the number
of loop constraints, ``mech.n_constraints``.  All of them may be given by joint, as in {"crank": 0.5}: q is then the
initial configuration with these coordinates, its loops closed; v has the least velocities of the other joints that keep
them closed; tau is zero elsewhere.
"""

from .assembly import AssemblyError, assemble, generic_rank, project
from .charts import WORST_CONDITION as WORST_CONDITION
from .charts import LocalParametrization, local_parametrization
from .constraints import constraint_bias, constraint_jacobian, degrees_of_freedom, position_error
from .constraints import velocities_within_loops as velocities_within_loops
from .constraints import warn_if_open as warn_if_open
from .coordinates import ChartError, Coordinates, ImplicitCoordinates, implicit_coordinates
from .derivatives import forward_dynamics_derivatives
from .driven_motions import DrivenMotion, driven_motion
from .dynamics import ALL_METHODS as ALL_METHODS
from .dynamics import accelerations as accelerations
from .dynamics import forward_dynamics, null_space
from .following import follow, follow_path
from .force_derivatives import (
    constraint_forces_derivatives,
    loop_reactions_derivatives,
    multipliers_derivatives,
)
from .former import inverse_dynamics, static_forces
from .instant_centers import InstantCenters, instant_centers
from .loop_joints import with_joint_of_loop
from .paths import MotionPath
from .ranges import RangeEnd, RangeOfMotion, range_of_motion
from .reactions import constraint_forces, impact, impact_impulses, joint_wrenches, loop_reactions, multipliers
from .reactions import wrenches_of_joints as wrenches_of_joints
from .redundancy import ClusterRedundancy, Redundancy, redundancy
from .singular import conditioning, time_to_singular
from .singular import usual_conditioning as usual_conditioning
from .singular_positions import SingularPosition, singular_positions
from .tolerances import LOOPS as LOOPS
from .transmission import mechanical_advantage, transmission_angle
from .workspaces import SingularCurve, Workspace, workspace

__all__ = [
    "AssemblyError",
    "ChartError",
    "ClusterRedundancy",
    "Coordinates",
    "DrivenMotion",
    "ImplicitCoordinates",
    "InstantCenters",
    "LocalParametrization",
    "assemble",
    "conditioning",
    "constraint_bias",
    "constraint_forces",
    "constraint_forces_derivatives",
    "constraint_jacobian",
    "degrees_of_freedom",
    "driven_motion",
    "follow",
    "follow_path",
    "forward_dynamics",
    "forward_dynamics_derivatives",
    "generic_rank",
    "impact",
    "impact_impulses",
    "implicit_coordinates",
    "instant_centers",
    "inverse_dynamics",
    "mechanical_advantage",
    "transmission_angle",
    "joint_wrenches",
    "local_parametrization",
    "loop_reactions",
    "loop_reactions_derivatives",
    "multipliers",
    "multipliers_derivatives",
    "null_space",
    "position_error",
    "project",
    "Redundancy",
    "redundancy",
    "time_to_singular",
    "MotionPath",
    "RangeEnd",
    "RangeOfMotion",
    "SingularCurve",
    "SingularPosition",
    "Workspace",
    "range_of_motion",
    "singular_positions",
    "static_forces",
    "with_joint_of_loop",
    "workspace",
]
