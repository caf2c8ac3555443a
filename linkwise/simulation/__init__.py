"""Motion in time: one integrator for trees and closed mechanisms, in any of the library's coordinates."""

from .run import SimulationError, simulate
from .storage import load_trajectory
from .trajectory import Trajectory

__all__ = ["SimulationError", "Trajectory", "load_trajectory", "simulate"]
