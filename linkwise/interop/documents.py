"""Mechanisms as text, for what reads text."""

from __future__ import annotations

import linkwise as lw
from linkwise.writers import text_of


def urdf_text(mech: lw.Mechanism, strict: bool = False) -> str:
    """What ``mech.save("robot.urdf")`` writes; ``strict`` makes what URDF cannot say an error instead of a warning."""
    return text_of(mech, ".urdf", strict=strict)


def mjcf_text(mech: lw.Mechanism, strict: bool = False) -> str:
    """What ``mech.save("robot.xml")`` writes; ``strict`` makes what MJCF cannot say an error instead of a warning."""
    return text_of(mech, ".xml", strict=strict)
