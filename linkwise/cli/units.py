"""Degrees in and out, and numbers that look like other units than radians and metres."""

from __future__ import annotations

import math
from collections.abc import Sequence

import click
import numpy as np

import linkwise as lw

ANGLE, LENGTH, OTHER = "angle", "length", "other"  # words of ``Joint.measures``
MAX_ANGLE, MAX_LENGTH = 4.0 * math.pi, 50.0  # beyond these, numbers look like degrees and millimetres
DEGREE = math.pi / 180.0
RADIANS, DEGREES = "radians", "degrees"


def unit(degrees: bool) -> float:
    """The unit of angles outside, in radians."""
    return DEGREE if degrees else 1.0


def places(mech: lw.Mechanism, measure: str, quantity: str) -> list[int]:
    """Indices of the numbers of a quantity (q, v or a) that are angles, lengths, ..., or rates of such."""
    index, of = (mech.q_index, "q") if quantity == "q" else (mech.v_index, "v")
    return [
        index(body.joint).start + k
        for body in mech.bodies
        if not body.mimic
        for k, number in enumerate(body.kind.measures(of))
        if number.of == measure
    ]


def units(mech: lw.Mechanism, degrees: bool = False) -> dict[str, str]:
    """The units of q, v and tau of a mechanism's joints, as heads of tables have them: "rad, m"."""
    measured = {number.of for body in mech.bodies for number in body.kind.measures("v")}
    angle = "degrees" if degrees else "rad"
    words = {ANGLE: (angle, f"{angle}/s", "N m"), LENGTH: ("m", "m/s", "N"), OTHER: ("own units",) * 3}
    return {
        quantity: ", ".join(words[measure][k] for measure in words if measure in measured)
        for k, quantity in enumerate(("q", "v", "tau"))
    }


def scaled(mech: lw.Mechanism, quantity: str, values: np.ndarray, factor: float) -> np.ndarray:
    """A copy of (..., n) with its angles, or rates of angles, multiplied by ``factor``."""
    if factor != 1.0:
        for joint in mech.joint_names:
            _refuse_unknown(mech, joint)
    return _multiplied(mech, quantity, values, factor)


def _multiplied(mech: lw.Mechanism, quantity: str, values: np.ndarray, factor: float) -> np.ndarray:
    values = np.array(values, dtype=float)
    values[..., places(mech, ANGLE, quantity)] *= factor
    return values


def angles_by_energy(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, kinetic: np.ndarray) -> str | None:
    """RADIANS or DEGREES: that of the two in which states q (m, nq), v (m, nv) have the kinetic energies (m,) that
    stand beside them; None where neither or both do, as for another mechanism or at rest."""
    row = int(np.argmax(kinetic))
    fitting = []
    for unit, factor in ((RADIANS, 1.0), (DEGREES, DEGREE)):
        state = (_multiplied(mech, "q", q[row], factor), _multiplied(mech, "v", v[row], factor))
        if kinetic[row] > 0.0 and np.isclose(lw.kinetic_energy(mech, *state), kinetic[row], rtol=1e-6, atol=0.0):
            fitting.append(unit)
    return fitting[0] if len(fitting) == 1 else None


def of_joint(mech: lw.Mechanism, joint: str, quantity: str, numbers: Sequence[float], factor: float) -> np.ndarray:
    """One joint's own numbers with its angles, or rates of angles, multiplied by ``factor``."""
    if factor != 1.0:
        _refuse_unknown(mech, joint)
    measures = mech.bodies[mech.body_index(joint)].kind.measures("q" if quantity == "q" else "v")
    return np.array([x * factor if m.of == ANGLE else x for x, m in zip(numbers, measures, strict=True)])


def _refuse_unknown(mech: lw.Mechanism, joint: str) -> None:
    kind = mech.bodies[mech.body_index(joint)].kind
    if any(number.of == OTHER for number in (*kind.measures("q"), *kind.measures("v"))):
        raise click.UsageError(
            f"--degrees: joint {joint!r} is a {type(kind).__name__} joint, which does not say which of its numbers are "
            "angles; give radians"
        )


def check_units(source: str, mech: lw.Mechanism, q: np.ndarray) -> None:
    """Refuse positions (..., nq) that look like degrees or millimetres."""
    for measure, limit, looks_like, remedy in (
        (ANGLE, MAX_ANGLE, "degrees", "radians are expected: use --degrees, or --trust-units if they are radians"),
        (LENGTH, MAX_LENGTH, "millimetres", "metres are expected: --trust-units if they are metres"),
    ):
        for k in places(mech, measure, "q"):
            largest = np.abs(q[..., k]).max()
            if largest > limit:
                number = f"q.{mech.coordinates.names('q')[k]}"
                raise click.UsageError(
                    f"{source}: {number} reaches {largest:g}, which looks like {looks_like}; {remedy}"
                )
