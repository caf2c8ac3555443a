"""Configurations that a model gives: the one it starts from, and those of its keyframes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from linkwise.mechanics.joints import Floating, Prismatic, Revolute
from linkwise.readers.mjcf.joints import BodyJoint, quaternion_of
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import FLOATING_BASE, Element, omit

Coordinates = tuple[tuple[str, tuple[float, ...]], ...]


def initial_of(bodies: list[Node], joints: Mapping[str, list[BodyJoint]]) -> Coordinates:
    """MuJoCo's ``qpos0``: hinges and slides at their references, free bodies where the file has them."""
    found = []
    for body in bodies:
        for joint in joints.get(body.name, []):
            if isinstance(joint.kind, (Revolute, Prismatic)) and joint.reference:
                found.append((joint.name, (joint.reference,)))
            elif isinstance(joint.kind, Floating):
                rotation, position = body.world_pose
                found.append((joint.name, (*quaternion_of(rotation), *position.tolist())))
    return tuple(found)


def postures_of(root: Element, joints: Iterable[BodyJoint]) -> tuple[tuple[str, Coordinates], ...]:
    """The configurations of keyframes by their names, ``key0``, ``key1``, ... where they have none."""
    own = [joint for joint in joints if joint.name != FLOATING_BASE]
    postures: dict[str, Coordinates] = {}
    for number, key in enumerate(one for section in root.all("keyframe") for one in section.all("key")):
        also = [name for name in ("qvel", "act", "ctrl", "mpos", "mquat") if key.attributes.get(name, "").strip()]
        if also:
            omit(key, f"keyframe with {', '.join(also)}", "qpos is in mech.postures, the rest is not read")
        words = key.attributes.get("qpos", "").split()
        size = sum(joint.kind.nq for joint in own)
        if words and len(words) != size:
            omit(key, "keyframe", f"not read: qpos has {len(words)} numbers where the joints have {size}")
            continue
        numbers = key.numbers("qpos", size) if words else ()
        postures[key.attributes.get("name") or f"key{number}"] = _split(own, numbers)
    return tuple(postures.items())


def _split(joints: list[BodyJoint], numbers: tuple[float, ...]) -> Coordinates:
    """Numbers as MuJoCo has them, joint by joint; of free bodies the position comes first there, last here."""
    found, start = [], 0
    for joint in joints if numbers else ():
        own, start = numbers[start : start + joint.kind.nq], start + joint.kind.nq
        if isinstance(joint.kind, Floating):
            own = own[3:] + own[:3]
        if joint.kind.nq >= 4:
            length = float(np.linalg.norm(own[:4]))
            own = (*(np.array(own[:4]) / length if length else (1.0, 0.0, 0.0, 0.0)), *own[4:])
        found.append((joint.name, tuple(map(float, own))))
    return tuple(found)
