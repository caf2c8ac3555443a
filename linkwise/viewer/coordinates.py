"""Names and units of joint coordinates in pictures.  No matplotlib here."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import linkwise as lw

ANGLE, DISTANCE, ROTATION, OTHER = "angle", "distance", "rotation", "other"
UNITS = {ANGLE: ("rad", "rad/s"), DISTANCE: ("m", "m/s"), ROTATION: ("", "rad/s"), OTHER: ("", "1/s")}

#: Kind -> (name beside the joint's, what it measures) of each number of q; the numbers of v are named alike.
_SINGLE = {
    lw.Revolute: (("", ANGLE),),
    lw.Prismatic: (("", DISTANCE),),
    lw.Helical: (("", ANGLE),),
    lw.Universal: ((" 1", ANGLE), (" 2", ANGLE)),
    lw.Cylindrical: ((" angle", ANGLE), (" distance", DISTANCE)),
    lw.Planar: ((" x", DISTANCE), (" y", DISTANCE), (" angle", ANGLE)),
}
_POSITION = (" x", " y", " z")


@dataclass(frozen=True)
class Series:
    """Numbers that are drawn as one curve over time.

    name       for the legend
    measures   one of ANGLE, DISTANCE, ROTATION (a quaternion's number), OTHER
    q, v       places in q and in v; None where there is none: a quaternion has one number more than its rate
    """

    name: str
    measures: str
    q: int | None
    v: int | None


def series_of(mech: lw.Mechanism, joint: str) -> list[Series]:
    """The curves of one independent joint."""
    body = mech.bodies[mech.body_index(joint)]
    q, v = mech.q_index(joint).start, mech.v_index(joint).start
    kind = body.kind
    if isinstance(kind, (lw.Spherical, lw.Floating)):
        turns = [Series(f"{joint} q{axis}", ROTATION, q + 1 + i, v + i) for i, axis in enumerate("xyz")]
        found = [Series(f"{joint} qw", ROTATION, q, None), *turns]
        if isinstance(kind, lw.Floating):
            found += [Series(joint + axis, DISTANCE, q + 4 + i, v + 3 + i) for i, axis in enumerate(_POSITION)]
        return found
    for single, coordinates in _SINGLE.items():
        if isinstance(kind, single):
            return [Series(joint + suffix, what, q + i, v + i) for i, (suffix, what) in enumerate(coordinates)]
    return [
        Series(f"{joint} {i + 1}", OTHER, q + i if i < kind.nq else None, v + i if i < kind.nv else None)
        for i in range(max(kind.nq, kind.nv))
    ]


def all_series(mech: lw.Mechanism, joints: Sequence[str] | None = None) -> list[Series]:
    """The curves of the named joints, by default of all that have coordinates of their own."""
    if isinstance(joints, str):
        raise ValueError(f"joints must be a sequence of joint names, not the string {joints!r}")
    names = joints if joints is not None else [body.joint for body in mech.bodies if not body.mimic]
    return [one for name in names for one in series_of(mech, name)]
