"""Targets of inverse kinematics: poses, positions, rotations and directions of frames, and the centre of mass; parsed
from arguments and packed for compiled code.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.given_poses import checked_rotations, rotation_and_position
from ..dynamics.states import Float64Array, common_batch, real_numbers
from ..dynamics.trees import center_of_mass, frame_pose
from ..mechanics.algorithms.inverse_kinematics import CenterOfMassGoal, Goal
from ..mechanism import Mechanism, MechanismError
from ..mechanism.scales import scales

FORMS = "a pose (..., 4, 4) or (rotation, position), a position (..., 3) or a linkwise.kinematics.FrameTarget"
AXES = "xyz"
TOLERANCE = 1e-8  # of angles, and of the mechanism's length
Goals = tuple[Goal | CenterOfMassGoal, ...]


@dataclass(frozen=True, eq=False)
class FrameTarget:
    """Target of one frame: a position, a rotation, a direction, or a position with a rotation or direction.

    position          (..., 3): of the frame's origin in the world
    rotation          (..., 3, 3): its axes as columns, or a ``scipy.spatial.transform.Rotation``
    axis, direction   (3,) and (..., 3): an axis of the frame that is to point along a direction of the world; the frame
                      may turn about it
    position_weight, rotation_weight   how much an error of a metre, or a radian, counts; where all targets are reached
                      weights do not matter
    """

    position: Any = None
    rotation: Any = None
    axis: Any = None
    direction: Any = None
    position_weight: float = 1.0
    rotation_weight: float = 1.0

    def __post_init__(self) -> None:
        if (self.axis is None) != (self.direction is None):
            raise ValueError(
                "a FrameTarget takes axis and direction together: an axis of the frame, and where it points"
            )
        if self.axis is not None and self.rotation is not None:
            raise ValueError("a FrameTarget takes a rotation or an axis with its direction: a rotation says both")
        if self.position is None and self.rotation is None and self.axis is None:
            raise ValueError("a FrameTarget takes a position, a rotation, or an axis and its direction: none is given")
        for name in ("position_weight", "rotation_weight"):
            _check_weight(f"{name} of a FrameTarget", getattr(self, name))


@dataclass(frozen=True, eq=False)
class CenterOfMassTarget:
    """Target of the centre of mass of all moving links, along some axes of the world.

    position   (..., n): a coordinate for each of the axes; also a number for one axis
    axes       axes of the target: "xyz", "xy" (over a point of the ground), "z" (its height), ...
    weight     of an error of a metre; weights do not matter if all targets are reached
    """

    position: Any
    axes: str = AXES
    weight: float = 1.0

    def __post_init__(self) -> None:
        axes = self.axes
        if not (isinstance(axes, str) and axes and set(axes) <= set(AXES) and len(set(axes)) == len(axes)):
            raise ValueError(f'axes of a CenterOfMassTarget must be some of "x", "y", "z", such as "xy", got {axes!r}')
        _check_weight("weight of a CenterOfMassTarget", self.weight)


def _check_weight(name: str, weight: Any) -> None:
    if not (isinstance(weight, (int, float)) and 0.0 < weight < np.inf):
        raise ValueError(f"{name} must be a positive number, got {weight!r}")


def require_targets(mech: Mechanism, targets: Any) -> None:
    """Raise if the targets are no dictionary."""
    if isinstance(targets, Mapping):
        return
    frame = targets if isinstance(targets, str) else (mech.link_names or tuple(mech.frames))[-1]
    got = repr(targets) if isinstance(targets, str) else f"a {type(targets).__name__}"
    raise TypeError(
        f"targets must be a dictionary from names of frames to {FORMS}, {{{frame!r}: pose}}, q0 comes behind it: got "
        + got
    )


def goals_and_numbers(mech: Mechanism, targets: Any, mass_center: Any = None) -> tuple[Goals, Float64Array]:
    """The goals, and the numbers of their targets (..., n), of one batch shape."""
    if not targets and mass_center is None:
        raise TypeError(f"targets must be a dictionary from names of frames to {FORMS}, got {targets!r}")
    goals: list[Goal | CenterOfMassGoal] = []
    arrays, batches = [], {}
    for frame, target in targets.items():
        goal, parts = _goal(mech, frame, target)
        goals.append(goal)
        for label, array, core in parts:
            name = f"{label} of {frame!r}"
            arrays.append((array, core))
            batches[name] = array.shape[: array.ndim - core]
    if mass_center is not None:
        center, array = _center_of_mass_goal(mech, mass_center)
        goals.append(center)
        arrays.append((array, 1))
        batches["center_of_mass"] = array.shape[:-1]
    batch = common_batch(batches)
    flat = [np.broadcast_to(x, batch + x.shape[x.ndim - core :]).reshape(*batch, -1) for x, core in arrays]
    return tuple(goals), np.ascontiguousarray(np.concatenate(flat, axis=-1))


def plain_poses(targets: Any) -> tuple[str, Float64Array] | None:
    """The frame and the poses (..., 4, 4), unchecked, if the target is a single array of poses; else None."""
    if not (isinstance(targets, Mapping) and len(targets) == 1):
        return None
    ((frame, poses),) = targets.items()
    plain = type(poses) is np.ndarray and poses.dtype == np.float64 and poses.shape[-2:] == (4, 4)
    return (frame, poses) if plain else None


def goals_and_poses(mech: Mechanism, targets: Any) -> tuple[tuple[Goal, ...], Float64Array | None]:
    """The goals, and poses (..., 4, 4), or None if they are not all of one frame."""
    alone = plain_poses(targets)
    if alone is not None:
        return (_goal(mech, *alone)[0],), alone[1]
    all_goals, numbers = goals_and_numbers(mech, targets)
    goals = tuple(goal for goal in all_goals if isinstance(goal, Goal))
    is_single_pose = len(goals) == 1 and numbers.shape[-1] == 12
    return goals, unpack_poses(numbers) if is_single_pose else None


def tolerances(mech: Mechanism, tolerance: float | None) -> Float64Array:
    """(2,): tolerances of distances and angles; None means ``TOLERANCE`` in units of the mechanism."""
    return TOLERANCE * np.array([scales(mech).length, 1.0]) if tolerance is None else np.full(2, float(tolerance))


def unpack_poses(numbers: np.ndarray) -> Float64Array:
    """(..., 4, 4): the poses of the numbers (..., 12) of positions and rotations."""
    poses = np.zeros((*numbers.shape[:-1], 4, 4))
    poses[..., :3, 3], poses[..., :3, :3] = numbers[..., :3], numbers[..., 3:].reshape(*numbers.shape[:-1], 3, 3)
    poses[..., 3, 3] = 1.0
    return poses


def pack_poses(poses: np.ndarray) -> Float64Array:
    """(..., 12): the numbers of poses (..., 4, 4)."""
    rotation = poses[..., :3, :3]
    return np.concatenate([poses[..., :3, 3], rotation.reshape(*rotation.shape[:-2], 9)], axis=-1)


def numbers_at(mech: Mechanism, goals: Goals, q: np.ndarray) -> Float64Array:
    """(..., n): the target numbers reached at q."""
    parts = []
    for goal in goals:
        if isinstance(goal, CenterOfMassGoal):
            parts.append(center_of_mass(mech, q)[..., goal.axes])
            continue
        pose = frame_pose(mech, q, goal.frame)
        if goal.position > 0.0:
            parts.append(pose[..., :3, 3])
        if goal.rotation > 0.0:
            turned = pose[..., :3, :3]
            parts.append(turned.reshape(*turned.shape[:-2], 9) if goal.axis is None else turned @ np.array(goal.axis))
    return np.concatenate(parts, axis=-1)


def _goal(mech: Mechanism, frame: Any, value: Any) -> tuple[Goal, list[tuple[str, Float64Array, int]]]:
    """One goal, and its arrays with their names and numbers of core axes."""
    if mech.frame(frame).body < 0:
        raise MechanismError(f"the target of {frame!r} cannot be reached: the frame is fixed to the ground")
    target = value if isinstance(value, FrameTarget) else _target_of_array(frame, value)
    parts: list[tuple[str, Float64Array, int]] = []
    if target.position is not None:
        parts.append(("position", _vectors(f"the position of {frame!r}", target.position), 1))
    if target.rotation is not None:
        parts.append(("rotation", checked_rotations(f"the rotation of {frame!r}", target.rotation), 2))
    axis = None
    if target.axis is not None:
        direction = _units(f"the axis of {frame!r}", target.axis)
        if direction.ndim != 1:
            raise MechanismError(f"the axis of {frame!r} must be three numbers, got shape {direction.shape}")
        axis = (float(direction[0]), float(direction[1]), float(direction[2]))
        parts.append(("direction", _units(f"the direction of {frame!r}", target.direction), 1))
    position = float(target.position_weight) if target.position is not None else 0.0
    rotation = float(target.rotation_weight) if len(parts) > (target.position is not None) else 0.0
    return Goal(frame, position, rotation, axis), parts


def _center_of_mass_goal(mech: Mechanism, value: Any) -> tuple[CenterOfMassGoal, Float64Array]:
    target = value if isinstance(value, CenterOfMassTarget) else CenterOfMassTarget(value)
    position = real_numbers("center_of_mass", target.position)
    if len(target.axes) == 1 and position.ndim == 0:
        position = position[None]
    axes = tuple(AXES.index(axis) for axis in target.axes)
    if position.shape[-1:] != (len(axes),):
        hint = (
            "" if len(axes) < 3 else ": for some axes write linkwise.kinematics.CenterOfMassTarget(position, axes=...)"
        )
        raise MechanismError(
            f"the target of the centre of mass has axes {target.axes!r} and must have shape (..., {len(axes)}), "
            f"got {position.shape}{hint}"
        )
    if not np.isfinite(position).all():
        raise MechanismError(f"the target of the centre of mass must be finite, got {position}")
    if not mech.parameters.masses.any():
        raise MechanismError(f"no moving link of mechanism {mech.name!r} has mass: it has no centre of mass")
    return CenterOfMassGoal(axes, float(target.weight)), position


def _target_of_array(frame: str, value: Any) -> FrameTarget:
    pose = rotation_and_position(f"the target of {frame!r}", value)
    if pose is not None:
        rotation, position = pose
        return FrameTarget(position, rotation)
    array = real_numbers(f"the target of {frame!r}", value)
    if array.shape[-1:] == (3,) and array.shape[-2:] != (3, 3):
        return FrameTarget(array)
    hint = (
        ": for a rotation or three positions write linkwise.kinematics.FrameTarget"
        if array.shape[-2:] == (3, 3)
        else ""
    )
    raise MechanismError(f"the target of {frame!r} must be {FORMS}, got shape {array.shape}{hint}")


def _vectors(label: str, value: Any) -> Float64Array:
    array = real_numbers(label, value)
    if array.shape[-1:] != (3,):
        raise MechanismError(f"{label} must have shape (..., 3), got {array.shape}")
    if not np.isfinite(array).all():
        raise MechanismError(f"{label} must be finite")
    return array


def _units(label: str, value: Any) -> Float64Array:
    array = _vectors(label, value)
    length = np.linalg.norm(array, axis=-1, keepdims=True)
    if not (length > 0.0).all():
        raise MechanismError(f"{label} must not be zero")
    return array / length
