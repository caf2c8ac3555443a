"""Kinds of contacts, which constrain how links touch that joints move, one file each.  What is listed is public."""

from .ball import Ball
from .distance import Distance
from .knife_edge import KnifeEdge
from .protocol import CONTACTS as CONTACTS
from .protocol import Contact as Contact
from .wheel import Wheel

__all__ = ["Ball", "Distance", "KnifeEdge", "Wheel"]
