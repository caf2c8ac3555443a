"""Initial configuration and keyframes of a model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.readers.mjcf.forces import Driven
from linkwise.readers.mjcf.tree import BodyJoint, Tree
from linkwise.readers.protocol import FLOATING_BASE, omit

Coordinates = tuple[tuple[str, tuple[float, ...]], ...]


def initial_of(tree: Tree) -> Coordinates:
    """MuJoCo's ``qpos0``: hinges and slides at their references (zero included), free bodies at their pose in the
    file.
    """
    values: list[tuple[str, tuple[float, ...]]] = []
    for body in tree.bodies:
        for joint in tree.joints.get(body, []):
            if joint.kind.only_step:
                values.append((joint.name, (joint.reference,)))
            elif joint.kind.is_free:
                values.append((joint.name, _base(tree, body) if joint.index < 0 else _free(tree, joint)))
    return tuple(values)


def _free(tree: Tree, joint: BodyJoint) -> tuple[float, ...]:
    model = tree.compiled.model
    return _split(model.qpos0, joint, model.jnt_qposadr[joint.index])


def _base(tree: Tree, body: int) -> tuple[float, ...]:
    model = tree.compiled.model
    return (*model.body_quat[body].tolist(), *model.body_pos[body].tolist())


def _split(numbers: np.ndarray, joint: BodyJoint, start: int) -> tuple[float, ...]:
    """Coordinates of a joint; of free bodies the position comes first in MuJoCo, last here."""
    coordinates = numbers[start : start + joint.kind.nq]
    coordinates = np.concatenate([coordinates[3:], coordinates[:3]]) if joint.kind.is_free else np.array(coordinates)
    if joint.kind.nq >= 4:
        length = float(np.linalg.norm(coordinates[:4]))
        coordinates[:4] = coordinates[:4] / length if length else (1.0, 0.0, 0.0, 0.0)
    return tuple(coordinates.tolist())


def keyframes_of(tree: Tree, driven: Sequence[Driven]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Postures ((name, configuration), ...) and the rest of the keyframes ((name, velocities, control inputs,
    activations), ...). Unnamed ones are ``key0``, ``key1``, ...
    """
    model, postures, states = tree.compiled.model, dict[str, Coordinates](), list[tuple[Any, ...]]()
    joints = [joint for joint in tree.all_joints if joint.name != FLOATING_BASE]
    for key, name in enumerate(tree.compiled.names("key", model.nkey)):
        name = name or f"key{key}"
        element = tree.compiled.element("key", key)
        also = [word for word in ("mpos", "mquat") if element.attributes.get(word, "").strip()]
        if also:
            omit(element, f"keyframe with {', '.join(also)}", "poses of mocap bodies are not read")
        postures[name] = tuple(
            (joint.name, _split(model.key_qpos[key], joint, int(model.jnt_qposadr[joint.index]))) for joint in joints
        )
        velocities = _velocities(tree, joints, model.key_qvel[key], dict(postures[name]))
        inputs = _named(driven, model.key_ctrl[key], "controls")
        activations = _named(driven, model.key_act[key], "activations")
        if velocities or inputs or activations:
            states.append((name, velocities, inputs, activations))
    return tuple(postures.items()), tuple(states)


def _named(driven: Sequence[Driven], numbers: np.ndarray, quantity: str) -> Coordinates:
    """Numbers of actuators that are read, but for zeros."""
    pairs = (
        (actuator.record.name, float(numbers[i]))
        for actuator in driven
        if actuator.record
        for i in getattr(actuator, quantity)
    )
    return tuple((name, (number,)) for name, number in pairs if number)


def _velocities(
    tree: Tree, joints: list[BodyJoint], numbers: np.ndarray, posture: dict[str, tuple[float, ...]]
) -> Coordinates:
    """Velocities by joint; those of free bodies are converted from world axes to body axes."""
    velocities, model = [], tree.compiled.model
    for joint in joints if numbers.any() else ():
        start = int(model.jnt_dofadr[joint.index])
        rates = numbers[start : start + joint.kind.nv].tolist()
        if joint.kind.is_free:
            rotation = np.array(rotation_matrix(posture[joint.name][:4]), dtype=float)
            rates = [*rates[3:], *(rotation.T @ rates[:3]).tolist()]
        if any(rates):
            velocities.append((joint.name, tuple(rates)))
    return tuple(velocities)
