"""Joints of a mechanism and of a model found by their names."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np

import linkwise as lw

from .conversion import Pairing, Tie
from .joints import Same

FLOATING_BASE = "floating_base"  # the joint that readers add between the ground and a root link that is to move


class Foreign(NamedTuple):
    """A joint of the other library: its slices of q and v, whether it is a free joint, and whether its parent is the
    ground.
    """

    q: list[int]
    v: list[int]
    free: bool
    kind: str
    root: bool = False


Chart = Callable[[Any, Foreign], Same]  # of one of our bodies and the joint there


def paired(
    mech: lw.Mechanism,
    library: str,
    there: Mapping[str, Foreign],
    chart: Chart,
    q_start: np.ndarray,
    nv: int,
    others: Iterable[str],
) -> Pairing:
    """The joints of both sides by their names.

    there    joints of the other library that have coordinates
    others   names of those that the mechanism does not have, which keep ``q_start``

    A joint that has been composed of several there is found by the names of its coordinates, "joint.x"; a floating
    joint that is left over on either side meets the other, and so does the joint of ``floating_base=`` of ``lw.load``
    the root joint there.
    """
    left, ties = dict(there), []
    for body in mech.bodies:
        names = _found(mech, body, left)
        entry = mech.coordinates.place(body.joint)
        if names is None and body.mimic:  # which it does there as well
            continue
        if names is None:
            raise lw.MechanismError(
                f"joint {body.joint!r} of mechanism {mech.name!r} is not in the model of {library}, whose joints are "
                f"{', '.join(there) or 'none'}"
            )
        parts = [left.pop(name) for name in names]
        foreign = parts[0]
        if len(parts) > 1:
            foreign = Foreign([k for p in parts for k in p.q], [k for p in parts for k in p.v], False, "")
        made = chart(body, foreign)
        fits = len(foreign.q) == len(made.q_there(np.array(body.kind.neutral()))) and len(foreign.v) == body.kind.nv
        if not fits:
            raise lw.MechanismError(
                f"joint {body.joint!r} is {body.kind!r} here, and {foreign.kind or 'another'} with {len(foreign.q)} "
                f"coordinates and {len(foreign.v)} velocities in {library}: the two are not the same mechanism"
            )
        ties.append(Tie(made, entry, foreign.q, foreign.v, body.mimic is not None, body.joint))
        for step in body.kind.steps:  # a screw may be a hinge and a slide there
            if step.name and (advance := left.pop(f"{body.joint}.{step.name}", None)):
                q, v = (slice(at.start + step.coordinate, at.start + step.coordinate + 1) for at in entry[1:3])
                along = entry._replace(q_index=q, v_index=v, ratio=step.ratio * entry.ratio)
                along = along._replace(offset=step.ratio * entry.offset)
                ties.append(Tie(Same(), along, advance.q, advance.v, True, body.joint))
    unknown = [name for name in left if name not in others]
    if unknown:
        raise lw.MechanismError(
            f"the model of {library} has joints that mechanism {mech.name!r} has not: {', '.join(unknown)}; where they "
            "are locked here, name them in others="
        )
    return Pairing(mech, library, tuple(ties), np.array(q_start, dtype=float), nv)


def _found(mech: lw.Mechanism, body: Any, there: Mapping[str, Foreign]) -> list[str] | None:
    if body.joint in there:
        return [body.joint]
    composed = [f"{body.joint}.{measure.name}" for measure in body.kind.measures("q")]
    if all(name in there for name in composed):
        return composed
    others = {name: joint for name, joint in there.items() if name not in mech.joint_names}
    if body.kind.is_free:
        left = [name for name, joint in others.items() if joint.free]
    elif body.joint == FLOATING_BASE:
        left = [name for name, joint in others.items() if joint.root]
    else:
        return None
    return left if len(left) == 1 else None
