"""Joint kinds, one file each, by the protocol of ``protocol.py``. All names listed here are public."""

from .cylindrical import Cylindrical
from .fixed import Fixed
from .floating import Floating
from .helical import Helical
from .pin_in_slot import PinInSlot
from .planar import Planar
from .prismatic import Prismatic
from .protocol import ANGLE as ANGLE
from .protocol import KINDS as KINDS
from .protocol import LENGTH as LENGTH
from .protocol import OTHER as OTHER
from .protocol import QUATERNION as QUATERNION
from .protocol import FormatEntry as FormatEntry
from .protocol import Joint as Joint
from .protocol import LoopKind as LoopKind
from .protocol import Measure as Measure
from .protocol import Step as Step
from .protocol import kinds_of_format as kinds_of_format
from .revolute import Revolute
from .spherical import Spherical
from .universal import Universal

__all__ = [
    "Cylindrical",
    "Fixed",
    "Floating",
    "Helical",
    "PinInSlot",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
]
