"""Contact: shapes that touch (compliant contact), feet and hands that are held, bodies that roll, and impacts.

Shapes and pairs are data of a mechanism (``mech.with_contact``); ``hold_frames`` and ``hold_contacts`` make constraints
of frames; balls, wheels and knife edges roll without slip.
"""

from .constraints.reactions import impact, impact_impulses
from .dynamics.compliant_contact import ContactPoints, contact_energy, contact_points, contact_wrenches
from .dynamics.frames import delassus_matrix
from .dynamics.held_contacts import hold_contacts, hold_frames
from .dynamics.placing import place_on_ground
from .mechanics.contacts import *  # noqa: F403 - every kind of contact is public
from .mechanics.contacts import __all__ as _KINDS
from .mechanism import ContactLaw, ContactPair, PenetrationWarning, Shape

__all__ = [
    "ContactLaw",
    "ContactPair",
    "ContactPoints",
    "PenetrationWarning",
    "Shape",
    "contact_energy",
    "contact_points",
    "contact_wrenches",
    "delassus_matrix",
    "hold_contacts",
    "hold_frames",
    "impact",
    "impact_impulses",
    "place_on_ground",
]
__all__ += _KINDS
__all__.sort()
__dir__ = __all__.copy
