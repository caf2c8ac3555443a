"""Analysis of linkages: ranges of motion, workspaces, singular positions, transmission, instant centres, following a
branch, motions of driven joints.

q is (nq,), v is (nv,), each with any leading batch shape unless a function says otherwise; states may be given by
joint, as in ``linkwise.constraints``.
"""

from .closed.driven_motions import DrivenMotion, driven_motion
from .closed.following import follow, follow_path
from .closed.instant_centers import InstantCenters, instant_centers
from .closed.loop_joints import with_joint_of_loop
from .closed.paths import MotionPath
from .closed.ranges import RangeEnd, RangeOfMotion, range_of_motion
from .closed.singular_positions import SingularPosition, singular_positions
from .closed.transmission import mechanical_advantage, transmission_angle
from .closed.workspaces import SingularCurve, Workspace, workspace

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


def __dir__() -> list[str]:
    return __all__
