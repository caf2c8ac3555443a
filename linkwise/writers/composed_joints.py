"""Joints that a format lacks, composed of ones it has: exactly the same motions and coordinates.

A joint that is made of rotations and translations (``Joint.steps``) becomes one joint for each, with links without mass
in between: joint "u" has "u.1" and "u.2" in its place, in the order of its steps.  A screw is a rotation and an advance
that mimics it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Joint, Prismatic, Revolute, Step
from linkwise.mechanism import Body, Frame, Limits, Mechanism, Mimic
from linkwise.mechanism.annotation import Coordinates
from linkwise.writers.report import Report


def compose_joints(mech: Mechanism, word: str, report: Report) -> Mechanism:
    """The mechanism with only those joints that the format called ``word`` has; raises for joints that cannot be
    composed of them.
    """

    def has(kind: Joint) -> bool:
        return word in kind.formats and kind.formats[word].fits(kind)

    if all(has(body.kind) for body in mech.bodies):
        return mech
    names: dict[str, tuple[str, ...]] = {}
    bodies: list[Body] = []
    new_index = {-1: -1}  # of a body here -> there
    for index, body in enumerate(mech.bodies):
        made = [body] if has(body.kind) else _parts(body, report)
        for number, part in enumerate(made):
            parent = new_index[body.parent] if number == 0 else len(bodies) - 1
            bodies.append(replace(part, parent=parent))
        new_index[index] = len(bodies) - 1
        names[body.joint] = tuple(part.joint for part in made)
    for joint, parts in names.items():
        if len(parts) > 1:
            report.remark("joints composed of several", f"{joint} ({', '.join(parts)})")
    frames = {name: replace(frame, body=new_index[frame.body]) for name, frame in mech.frames.items()}
    for index, body in enumerate(bodies):
        frames.setdefault(body.link, Frame(body.link, index, np.eye(3), np.zeros(3)))
    return replace(
        mech,
        bodies=tuple(bodies),
        frames=frames,
        annotations=_renamed(mech, names),
        switched_off=tuple((kind, part) for kind, name in mech.switched_off for part in names.get(name, (name,))),
    )


def _parts(body: Body, report: Report) -> list[Body]:
    """Bodies in series that together move like this one; the last has its mass."""
    kind = body.kind
    if not kind.steps:
        raise report.refuse(
            f"{report.format_name} has no joint that moves as {body.joint!r} does, {kind!r}, nor can one be composed"
        )
    names = [_name(body, step) for step in kind.steps]
    leaders = {step.coordinate: name for name, step in zip(names, kind.steps, strict=True) if not step.name}
    made: list[Body] = []
    for joint, step in zip(names, kind.steps, strict=True):
        if step.name:
            if step.coordinate not in leaders:
                raise report.refuse(
                    f"step {step.name!r} of {kind!r} goes along with coordinate {step.coordinate}, which no step "
                    "without a name is: the step that is the coordinate itself has no name and the ratio 1"
                )
            rule = body.mimic or Mimic(leaders[step.coordinate])
            mimic = Mimic(rule.joint, step.ratio * rule.ratio, step.ratio * rule.offset)
            part = _moved_body(body, joint, step, mimic=mimic)
        else:
            part = _moved_body(body, joint, step, step.coordinate, mimic=body.mimic)
        if not made:
            part = replace(part, rotation=body.rotation, position=body.position)
        last = len(made) == len(names) - 1
        massless: dict[str, Any] = {"mass": 0.0, "com": np.zeros(3), "inertia": np.zeros((3, 3))}
        made.append(part if last else replace(part, link=f"{body.link}/{part.joint}", **massless))
    return made


def _name(body: Body, step: Step) -> str:
    """Name of the joint of a step: "joint.x" for coordinate x, the joint's own name if there is only one."""
    word = step.name or body.kind.measures("q")[step.coordinate].name
    return f"{body.joint}.{word}" if word else body.joint


def _moved_body(body: Body, joint: str, step: Step, k: int | None = None, mimic: Mimic | None = None) -> Body:
    """The body moved by one step, at the pose left by the step before; ``k`` is the coordinate whose numbers it takes,
    None for none.
    """

    def part(values: Any) -> tuple[float, ...]:
        return (0.0,) if k is None else (values[k],)

    limits = Limits()
    if k is not None:
        by_name = vars(body.limits)
        limits = Limits(**{name: None if values is None else (values[k],) for name, values in by_name.items()})
    return replace(
        body,
        joint=joint,
        kind=Revolute(step.axis) if step.turns else Prismatic(step.axis),
        rotation=np.eye(3),
        position=np.zeros(3),
        armature=part(body.armature),
        damping=part(body.damping),
        friction=part(body.friction),
        stiffness=part(body.stiffness),
        rest=part(body.rest),
        limits=limits,
        mimic=mimic,
    )


def _renamed(mech: Mechanism, names: dict[str, tuple[str, ...]]) -> Any:
    """Annotations with the names of the new joints."""
    known = mech.annotations

    def split(coordinates: Coordinates) -> Coordinates:
        split_values: list[tuple[str, tuple[float, ...]]] = []
        for joint, values in coordinates:
            parts = names.get(joint, (joint,))
            single = len(parts) == len(values) > 1
            split_values += (
                [(part, (x,)) for part, x in zip(parts, values, strict=True)] if single else [(joint, values)]
            )
        return tuple(split_values)

    def spread(joints: Sequence[str] | None) -> tuple[str, ...] | None:
        return None if joints is None else tuple(part for joint in joints for part in names.get(joint, (joint,)))

    return replace(
        known,
        initial=split(known.initial),
        postures=tuple((name, split(values)) for name, values in known.postures),
        keyframes=tuple((name, split(v), inputs, states) for name, v, inputs, states in known.keyframes),
        groups=tuple((name, spread(joints) or ()) for name, joints in known.groups),
        actuated=spread(known.actuated),
        independent=spread(known.independent),
    )
