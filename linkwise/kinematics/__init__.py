"""Kinematics: rotations and poses (``so3``, ``se3``), configurations that reach poses (inverse kinematics),
accelerations, and independent coordinates of constrained mechanisms.
"""

from ..constraints.charts import LocalParametrization, local_parametrization
from ..constraints.coordinates import ChartError, Coordinates, ImplicitCoordinates, implicit_coordinates
from ..constraints.singular import time_to_singular
from ..dynamics.frames import jacobian_rate_times_velocity, manipulability
from ..dynamics.trees import acceleration_parts, coordinate_rates, forward_link_accelerations, interpolate
from . import se3, so3
from .inverse import InverseKinematics, InverseKinematicsError, inverse_kinematics_branches
from .targets import CenterOfMassTarget, FrameTarget

__all__ = [
    "CenterOfMassTarget",
    "ChartError",
    "Coordinates",
    "FrameTarget",
    "ImplicitCoordinates",
    "InverseKinematics",
    "InverseKinematicsError",
    "LocalParametrization",
    "acceleration_parts",
    "coordinate_rates",
    "forward_link_accelerations",
    "implicit_coordinates",
    "interpolate",
    "inverse_kinematics_branches",
    "jacobian_rate_times_velocity",
    "local_parametrization",
    "manipulability",
    "se3",
    "so3",
    "time_to_singular",
]
__dir__ = __all__.copy
