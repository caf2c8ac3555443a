"""Constraints (spencer2004): assembly, dynamics that survives singular positions, projection, linkages; what is public
of these is in ``constraints.py``, ``linkages.py`` and ``trees.py``.

q is (nq,), v, a and tau are (nv,), each with any leading batch shape unless a function says otherwise; m is the number
of loop constraints, ``mech.n_constraints``.  All of them may be given by joint, as in {"crank": 0.5}: q is then the
initial configuration with these coordinates, its loops closed; v has the least velocities of the other joints that keep
them closed; tau is zero elsewhere.
"""

from .assembly import AssemblyError as AssemblyError
from .assembly import assemble as assemble
from .assembly import generic_rank as generic_rank
from .assembly import project as project
from .charts import WORST_CONDITION as WORST_CONDITION
from .charts import LocalParametrization as LocalParametrization
from .charts import local_parametrization as local_parametrization
from .constraints import constraint_bias as constraint_bias
from .constraints import constraint_jacobian as constraint_jacobian
from .constraints import degrees_of_freedom as degrees_of_freedom
from .constraints import position_error as position_error
from .constraints import velocities_within_loops as velocities_within_loops
from .constraints import warn_if_open as warn_if_open
from .coordinates import ChartError as ChartError
from .coordinates import Coordinates as Coordinates
from .coordinates import ImplicitCoordinates as ImplicitCoordinates
from .coordinates import implicit_coordinates as implicit_coordinates
from .derivatives import forward_dynamics_derivatives as forward_dynamics_derivatives
from .driven_motions import DrivenMotion as DrivenMotion
from .driven_motions import driven_motion as driven_motion
from .dynamics import ALL_METHODS as ALL_METHODS
from .dynamics import accelerations as accelerations
from .dynamics import forward_dynamics as forward_dynamics
from .dynamics import null_space as null_space
from .following import follow as follow
from .following import follow_path as follow_path
from .force_derivatives import constraint_forces_derivatives as constraint_forces_derivatives
from .force_derivatives import loop_reactions_derivatives as loop_reactions_derivatives
from .force_derivatives import multipliers_derivatives as multipliers_derivatives
from .instant_centers import InstantCenters as InstantCenters
from .instant_centers import instant_centers as instant_centers
from .inverse import inverse_dynamics as inverse_dynamics
from .loop_joints import with_joint_of_loop as with_joint_of_loop
from .paths import MotionPath as MotionPath
from .ranges import RangeEnd as RangeEnd
from .ranges import RangeOfMotion as RangeOfMotion
from .ranges import range_of_motion as range_of_motion
from .reactions import constraint_forces as constraint_forces
from .reactions import impact as impact
from .reactions import impact_impulses as impact_impulses
from .reactions import joint_wrenches as joint_wrenches
from .reactions import loop_reactions as loop_reactions
from .reactions import multipliers as multipliers
from .reactions import wrenches_of_joints as wrenches_of_joints
from .redundancy import ClusterRedundancy as ClusterRedundancy
from .redundancy import Redundancy as Redundancy
from .redundancy import redundancy as redundancy
from .singular import conditioning as conditioning
from .singular import time_to_singular as time_to_singular
from .singular import usual_conditioning as usual_conditioning
from .singular_positions import SingularPosition as SingularPosition
from .singular_positions import singular_positions as singular_positions
from .tolerances import LOOPS as LOOPS
from .transmission import mechanical_advantage as mechanical_advantage
from .transmission import transmission_angle as transmission_angle
from .workspaces import SingularCurve as SingularCurve
from .workspaces import Workspace as Workspace
from .workspaces import workspace as workspace
