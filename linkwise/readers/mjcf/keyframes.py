"""Configurations that a model gives: the one it starts from, and those of its keyframes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.readers.mjcf.joints import BodyJoint, quaternion_of
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import FLOATING_BASE, Element, omit

Coordinates = tuple[tuple[str, tuple[float, ...]], ...]


def initial_of(bodies: list[Node], joints: Mapping[str, list[BodyJoint]]) -> Coordinates:
    """MuJoCo's ``qpos0``: hinges and slides at their references, free bodies where the file has them.  A reference of
    zero is one too: the author has put the bodies so."""
    found = []
    for body in bodies:
        for joint in joints.get(body.name, []):
            if joint.kind.only_step:
                found.append((joint.name, (joint.reference,)))
            elif joint.kind.is_free:
                rotation, position = body.world_pose
                found.append((joint.name, (*quaternion_of(rotation), *position.tolist())))
    return tuple(found)


def postures_of(root: Element, joints: Iterable[BodyJoint]) -> tuple[tuple[str, Coordinates], ...]:
    """The configurations of keyframes by their names, ``key0``, ``key1``, ... where they have none."""
    own = [joint for joint in joints if joint.name != FLOATING_BASE]
    postures: dict[str, Coordinates] = {}
    for name, key in _keys(root):
        also = [word for word in ("mpos", "mquat") if key.attributes.get(word, "").strip()]
        if also:
            omit(key, f"keyframe with {', '.join(also)}", "poses of mocap bodies are not read")
        numbers = _numbers(key, "qpos", sum(joint.kind.nq for joint in own))
        if numbers is not None:
            postures[name] = _split(own, numbers)
    return tuple(postures.items())


def states_of(
    root: Element, joints: Iterable[BodyJoint], postures: Sequence[tuple[str, Coordinates]], elements: Sequence[Any]
) -> tuple[Any, ...]:
    """What keyframes say besides ``postures``: (name, velocities, control inputs, activations), ...; ``elements`` are
    names of the document's actuators, each with whether it has an activation, and None for its name if it is not
    read."""
    own, found = [joint for joint in joints if joint.name != FLOATING_BASE], []
    for name, key in _keys(root):
        numbers = _numbers(key, "qvel", sum(joint.kind.nv for joint in own)) or ()
        velocities = _velocities(own, numbers, dict(postures).get(name, ()))
        states = [actuator for actuator, has_activation in elements if has_activation]
        inputs = _named(_numbers(key, "ctrl", len(elements)), [actuator for actuator, _ in elements])
        activations = _named(_numbers(key, "act", len(states)), states)
        if velocities or inputs or activations:
            found.append((name, velocities, inputs, activations))
    return tuple(found)


def _keys(root: Element) -> list[tuple[str, Element]]:
    keys = [one for section in root.all("keyframe") for one in section.all("key")]
    return [(key.attributes.get("name") or f"key{number}", key) for number, key in enumerate(keys)]


def _numbers(key: Element, attribute: str, size: int) -> tuple[float, ...] | None:
    """The numbers of an attribute, none if it is not there; None, and a note, if they are not so many."""
    words = key.attributes.get(attribute, "").split()
    if words and len(words) != size:
        what = {"qpos": "the joints have", "qvel": "the joints have"}.get(attribute, "the actuators have")
        omit(key, "keyframe", f"not read: {attribute} has {len(words)} numbers where {what} {size}")
        return None
    return key.numbers(attribute, size) if words else ()


def _named(numbers: tuple[float, ...] | None, names: Sequence[str | None]) -> Coordinates:
    return tuple((name, (float(x),)) for name, x in zip(names, numbers or (), strict=False) if name and x)


def _velocities(joints: list[BodyJoint], numbers: tuple[float, ...], posture: Coordinates) -> Coordinates:
    """Velocities joint by joint; those of free bodies are along the axes of the world in MuJoCo, of the body here."""
    found, start, at = [], 0, dict(posture)
    for joint in joints if any(numbers) else ():
        own, start = numbers[start : start + joint.kind.nv], start + joint.kind.nv
        if joint.kind.is_free:
            quaternion = at.get(joint.name, joint.kind.neutral())[:4]
            rotation = np.array(rotation_matrix(quaternion), dtype=float)
            own = (*own[3:], *(rotation.T @ own[:3]).tolist())
        if any(own):
            found.append((joint.name, tuple(map(float, own))))
    return tuple(found)


def _split(joints: list[BodyJoint], numbers: tuple[float, ...]) -> Coordinates:
    """Numbers as MuJoCo has them, joint by joint; of free bodies the position comes first there, last here."""
    found, start = [], 0
    for joint in joints if numbers else ():
        own, start = numbers[start : start + joint.kind.nq], start + joint.kind.nq
        if joint.kind.is_free:
            own = own[3:] + own[:3]
        if joint.kind.nq >= 4:
            length = float(np.linalg.norm(own[:4]))
            own = (*(np.array(own[:4]) / length if length else (1.0, 0.0, 0.0, 0.0)), *own[4:])
        found.append((joint.name, tuple(map(float, own))))
    return tuple(found)
