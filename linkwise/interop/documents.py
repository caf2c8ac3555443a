"""Mechanisms as text, for what reads text."""

from __future__ import annotations

import linkwise as lw
from linkwise.writers import text_of


def urdf_text(mech: lw.Mechanism, strict: bool = False) -> str:
    """The text that ``mech.save("robot.urdf")`` writes. ``strict`` raises for anything URDF cannot express instead of
    warning.
    """
    return text_of(mech, ".urdf", strict=strict)


def mjcf_text(mech: lw.Mechanism, strict: bool = False) -> str:
    """The text that ``mech.save("robot.xml")`` writes. ``strict`` raises for anything MJCF cannot express instead of
    warning.
    """
    return text_of(mech, ".xml", strict=strict)
