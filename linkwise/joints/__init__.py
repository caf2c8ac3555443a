"""Joint kinds, one file each, all speaking the protocol of ``protocol.py``."""

from .cylindrical import Cylindrical
from .fixed import Fixed
from .floating import Floating
from .helical import Helical
from .planar import Planar
from .prismatic import Prismatic
from .protocol import Joint
from .revolute import Revolute
from .spherical import Spherical
from .universal import Universal

__all__ = [
    "Cylindrical",
    "Fixed",
    "Floating",
    "Helical",
    "Joint",
    "Planar",
    "Prismatic",
    "Revolute",
    "Spherical",
    "Universal",
]
