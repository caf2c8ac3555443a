"""Mechanisms as frozen data, and the builder that makes them."""

from linkwise.mechanism.annotation import Annotations, Note
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.checks import (
    InertiaWarning,
    LimitWarning,
    MechanismError,
    MechanismWarning,
    MissingConstraintWarning,
    OmissionWarning,
    PenetrationWarning,
    close_names,
    did_you_mean,
    one_of,
    snapped,
    warn_caller,
)
from linkwise.mechanism.dh import from_dh
from linkwise.mechanism.drives import Drive
from linkwise.mechanism.elements import Actuator, EffortRange, FluidForce, GravityCompensation, Tendon
from linkwise.mechanism.looks import Look
from linkwise.mechanism.model import GROUND, Mechanism, require_mechanism
from linkwise.mechanism.parts import Body, Constraint, Coupling, Frame, Limits, Loop, Mimic, Place, Pose
from linkwise.mechanism.plain_data import from_data, to_data, without_functions
from linkwise.mechanism.poses import pose
from linkwise.mechanism.shapes import PLANE, Bump, ContactLaw, ContactPair, Shape, bumps

__all__ = [
    "GROUND",
    "Actuator",
    "PLANE",
    "Annotations",
    "Body",
    "Builder",
    "Bump",
    "Constraint",
    "ContactLaw",
    "ContactPair",
    "Coupling",
    "Drive",
    "EffortRange",
    "Frame",
    "FluidForce",
    "GravityCompensation",
    "InertiaWarning",
    "Limits",
    "LimitWarning",
    "Look",
    "Loop",
    "Mechanism",
    "MechanismError",
    "MechanismWarning",
    "Mimic",
    "MissingConstraintWarning",
    "Note",
    "OmissionWarning",
    "PenetrationWarning",
    "Place",
    "Pose",
    "Tendon",
    "Shape",
    "bumps",
    "close_names",
    "did_you_mean",
    "from_data",
    "from_dh",
    "one_of",
    "pose",
    "require_mechanism",
    "snapped",
    "to_data",
    "warn_caller",
    "without_functions",
]
