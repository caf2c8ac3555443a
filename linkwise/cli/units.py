"""Degrees in and out, and numbers that look like other units than radians and metres."""

from __future__ import annotations

import math
from collections.abc import Mapping

import click
import numpy as np

import linkwise as lw

#: Which coordinates of a joint are angles, and which are lengths; those of other joints are neither.
ANGLES: dict[type, tuple[int, ...]] = {
    lw.Revolute: (0,),
    lw.Helical: (0,),
    lw.Universal: (0, 1),
    lw.Cylindrical: (0,),
    lw.Planar: (2,),
}
LENGTHS: dict[type, tuple[int, ...]] = {lw.Prismatic: (0,), lw.Cylindrical: (1,), lw.Planar: (0, 1)}
MAX_ANGLE, MAX_LENGTH = 4.0 * math.pi, 50.0  # beyond these, numbers look like degrees and millimetres
DEGREE = math.pi / 180.0


def places(mech: lw.Mechanism, kinds: Mapping[type, tuple[int, ...]], quantity: str) -> list[int]:
    """Indices of the numbers of a quantity that are of ``kinds``."""
    index = mech.q_index if quantity == "q" else mech.v_index
    return [
        index(body.joint).start + k for body in mech.bodies if not body.mimic for k in kinds.get(type(body.kind), ())
    ]


def scaled(mech: lw.Mechanism, quantity: str, values: np.ndarray, factor: float) -> np.ndarray:
    """A copy of (..., n) with its angles, or rates of angles, multiplied by ``factor``."""
    values = np.array(values, dtype=float)
    values[..., places(mech, ANGLES, quantity)] *= factor
    return values


def check_units(source: str, mech: lw.Mechanism, q: np.ndarray) -> None:
    """Refuse positions (..., nq) that look like degrees or millimetres."""
    for kinds, limit, looks_like, remedy in (
        (ANGLES, MAX_ANGLE, "degrees", "radians are expected: use --degrees, or --trust-units if they are radians"),
        (LENGTHS, MAX_LENGTH, "millimetres", "metres are expected: --trust-units if they are metres"),
    ):
        for k in places(mech, kinds, "q"):
            largest = np.abs(q[..., k]).max()
            if largest > limit:
                raise click.UsageError(
                    f"{source}: q{k + 1} reaches {largest:g}, which looks like {looks_like}; {remedy}"
                )
