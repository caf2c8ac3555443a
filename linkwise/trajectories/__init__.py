"""Motions that are planned: laws of time, point to point, splines through configurations of any joints, and the
fastest way along a path that torques and velocities allow."""

from .laws import cycloid, quintic, trapezoid
from .motions import Motion, along, point_to_point, sampled
from .paths import Path, line, spline
from .time_optimal import InfeasiblePathError, time_optimal

__all__ = [
    "InfeasiblePathError",
    "Motion",
    "Path",
    "along",
    "cycloid",
    "line",
    "point_to_point",
    "quintic",
    "sampled",
    "spline",
    "time_optimal",
    "trapezoid",
]
__dir__ = __all__.copy
