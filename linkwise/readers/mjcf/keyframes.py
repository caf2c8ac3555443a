"""Configurations that a model gives: the one it starts from, and those of its keyframes."""

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
    """MuJoCo's ``qpos0``: hinges and slides at their references, free bodies where the file has them.  A reference of
    zero is one too: the author has put the bodies so."""
    found: list[tuple[str, tuple[float, ...]]] = []
    for body in tree.bodies:
        for joint in tree.joints.get(body, []):
            if joint.kind.only_step:
                found.append((joint.name, (joint.reference,)))
            elif joint.kind.is_free:
                found.append((joint.name, _base(tree, body) if joint.index < 0 else _free(tree, joint)))
    return tuple(found)


def _free(tree: Tree, joint: BodyJoint) -> tuple[float, ...]:
    model = tree.compiled.model
    return _split(model.qpos0, joint, model.jnt_qposadr[joint.index])


def _base(tree: Tree, body: int) -> tuple[float, ...]:
    model = tree.compiled.model
    return (*model.body_quat[body].tolist(), *model.body_pos[body].tolist())


def _split(numbers: np.ndarray, joint: BodyJoint, start: int) -> tuple[float, ...]:
    """Coordinates of a joint; of free bodies the position comes first in MuJoCo, last here."""
    own = numbers[start : start + joint.kind.nq]
    own = np.concatenate([own[3:], own[:3]]) if joint.kind.is_free else np.array(own)
    if joint.kind.nq >= 4:
        length = float(np.linalg.norm(own[:4]))
        own[:4] = own[:4] / length if length else (1.0, 0.0, 0.0, 0.0)
    return tuple(own.tolist())


def keyframes_of(tree: Tree, driven: Sequence[Driven]) -> tuple[tuple[Any, ...], tuple[Any, ...]]:
    """Postures: ((name, configuration), ...), and what keyframes say besides: ((name, velocities, control inputs,
    activations), ...).  Those without names are ``key0``, ``key1``, ..."""
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


def _named(driven: Sequence[Driven], numbers: np.ndarray, what: str) -> Coordinates:
    """Numbers of actuators that are read, but for zeros."""
    found = ((one.record.name, float(numbers[i])) for one in driven if one.record for i in getattr(one, what))
    return tuple((name, (number,)) for name, number in found if number)


def _velocities(
    tree: Tree, joints: list[BodyJoint], numbers: np.ndarray, posture: dict[str, tuple[float, ...]]
) -> Coordinates:
    """Velocities joint by joint; those of free bodies are along the axes of the world in MuJoCo, of the body here."""
    found, model = [], tree.compiled.model
    for joint in joints if numbers.any() else ():
        start = int(model.jnt_dofadr[joint.index])
        own = numbers[start : start + joint.kind.nv].tolist()
        if joint.kind.is_free:
            rotation = np.array(rotation_matrix(posture[joint.name][:4]), dtype=float)
            own = [*own[3:], *(rotation.T @ own[:3]).tolist()]
        if any(own):
            found.append((joint.name, tuple(own)))
    return tuple(found)
