"""Rich display in notebooks: small tables, pictures and formulas of mechanisms, kernels, motions, models and
expressions.

Classes do not depend on it: their ``_repr_mimebundle_`` is ``linkwise.display.mimebundle``, which asks ``bundle``.
Tables need nothing but a browser; pictures are there if matplotlib is.  A class gets a representation by a function
here that is entered under its name in ``WRITERS``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from . import tables

#: By the name of the class, so that showing one thing loads nothing of the others.
WRITERS: dict[str, Callable[[Any], dict[str, str]]] = {
    "Mechanism": tables.mechanism,
    "Kernel": tables.kernel,
    "Trajectory": tables.trajectory,
    "StateSpace": tables.state_space,
    "Modes": tables.modes,
    "Expression": tables.expression,
    "Proof": tables.proof,
    "Text": tables.text,
    "InverseKinematics": tables.inverse_kinematics,
    "RangeOfMotion": tables.range_of_motion,
    "Redundancy": tables.text,
    "BaseParameters": tables.text,
    "PayloadEstimate": tables.text,
}

__all__ = ["WRITERS", "bundle"]


def bundle(thing: Any) -> dict[str, str]:
    """Display data of an object besides its text: {MIME type: data}."""
    for kind in type(thing).__mro__:
        if kind.__name__ in WRITERS:
            return WRITERS[kind.__name__](thing)
    return {}
