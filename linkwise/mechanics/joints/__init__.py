"""Joint kinds, one file each, all speaking the protocol of ``protocol.py``."""

from .cylindrical import Cylindrical
from .fixed import Fixed
from .floating import Floating
from .helical import Helical
from .pin_in_slot import PinInSlot
from .planar import Planar
from .prismatic import Prismatic
from .protocol import ANGLE, KINDS, LENGTH, OTHER, QUATERNION, Joint, Measure
from .revolute import Revolute
from .spherical import Spherical
from .universal import Universal

__all__ = [
    "ANGLE",
    "KINDS",
    "LENGTH",
    "OTHER",
    "QUATERNION",
    "Cylindrical",
    "Fixed",
    "Floating",
    "Helical",
    "Joint",
    "Measure",
    "PinInSlot",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
]
