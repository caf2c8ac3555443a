"""Mechanisms as frozen data, and the builder that makes them."""

from linkwise.mechanism.builder import Builder
from linkwise.mechanism.checks import InertiaWarning, LimitWarning, MechanismError, MechanismWarning, snapped
from linkwise.mechanism.dh import from_dh
from linkwise.mechanism.model import GROUND, Mechanism, require_mechanism
from linkwise.mechanism.parts import Body, Frame, Limits, Loop, Mimic, Pose

__all__ = [
    "GROUND",
    "Body",
    "Builder",
    "Frame",
    "InertiaWarning",
    "Limits",
    "LimitWarning",
    "Loop",
    "Mechanism",
    "MechanismError",
    "MechanismWarning",
    "Mimic",
    "Pose",
    "from_dh",
    "require_mechanism",
    "snapped",
]
