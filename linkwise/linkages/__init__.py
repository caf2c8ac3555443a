"""Analysis of linkages: ranges of motion, workspaces, singular positions, transmission, instant centres, following a
branch, motions of driven joints.

q is (nq,), v is (nv,), each with any leading batch shape unless a function says otherwise; states may be given by
joint, as in ``linkwise.constraints``.
"""

from ..constraints.following import follow, follow_path
from .continuation import MotionPath
from .driven_motions import DrivenMotion, driven_motion
from .instant_centers import InstantCenters, instant_centers
from .loop_joints import with_joint_of_loop
from .ranges import RangeEnd, RangeOfMotion, range_of_motion
from .singular_positions import SingularPosition, singular_positions
from .transmission import mechanical_advantage, transmission_angle
from .workspaces import SingularCurve, Workspace, workspace

__all__ = [
    "DrivenMotion",
    "InstantCenters",
    "MotionPath",
    "RangeEnd",
    "RangeOfMotion",
    "SingularCurve",
    "SingularPosition",
    "Workspace",
    "driven_motion",
    "follow",
    "follow_path",
    "instant_centers",
    "mechanical_advantage",
    "range_of_motion",
    "singular_positions",
    "transmission_angle",
    "with_joint_of_loop",
    "workspace",
]
__dir__ = __all__.copy
