"""The oracle's loops: how motions of the links change the loop constraints, from poses in the world (see ``dense.py``).

Nothing here is shared with the recursions: the gradient of each joint's closure is written out by hand, and both sides
of a loop are computed from the ground.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any

import numpy as np

from ...mechanism import Coupling, Loop, Mechanism
from ..contacts import Ball, Distance, KnifeEdge, Wheel
from ..joints import (
    Cylindrical,
    Fixed,
    Helical,
    LoopKind,
    PinInSlot,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)


@singledispatch
def closure_gradient(kind: LoopKind, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """(n_constraints, 6): derivatives of the closure's numbers per twist [omega; v] of side B relative to side A; then
    the rows of constraints on this twist itself.

    rotation, position   pose of B in A, both in the joint's canonical axes; twists are at B's origin along A's axes
    """
    raise TypeError(
        f"the dense operators do not know loops closed by {kind!r}: register the gradient of its closure with "
        "@closure_gradient.register of linkwise.mechanics.operators.dense_loops"
    )


@closure_gradient.register
def _(kind: Revolute, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.vstack([TRANSLATION, _tilt(rotation)])


@closure_gradient.register
def _(kind: Prismatic, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.vstack([TRANSLATION[:2], _rotation_error(rotation)])


@closure_gradient.register
def _(kind: Helical, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The last row: z without a pitch, else -pitch sin(angle - z / pitch)."""
    along = TRANSLATION[2]
    if kind.pitch:
        cosine = (rotation[0, 0] + rotation[1, 1]) / 2.0
        sine = (rotation[1, 0] - rotation[0, 1]) / 2.0
        screwed = position[2] / kind.pitch
        rates = [_cross(axis) @ rotation for axis in np.eye(3)]
        d_cosine = np.array([*((r[0, 0] + r[1, 1]) / 2.0 for r in rates), 0.0, 0.0, 0.0])
        d_sine = np.array([*((r[1, 0] - r[0, 1]) / 2.0 for r in rates), 0.0, 0.0, 0.0])
        along = kind.pitch * (np.sin(screwed) * d_cosine - np.cos(screwed) * d_sine)
        along = along + (np.cos(screwed) * cosine + np.sin(screwed) * sine) * TRANSLATION[2]
    return np.vstack([TRANSLATION[:2], _tilt(rotation), along])


@closure_gradient.register
def _(kind: Cylindrical, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.vstack([TRANSLATION[:2], _tilt(rotation)])


@closure_gradient.register
def _(kind: Universal, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The cosine between the axes, whose first stays with A."""
    first = np.array(kind.alignment).T @ kind.axis1
    return np.vstack([TRANSLATION, [*np.cross(rotation[:, 2], first), 0.0, 0.0, 0.0]])


@closure_gradient.register
def _(kind: PinInSlot, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    slot = np.array(kind.alignment).T @ kind.slide_axis
    return np.vstack([slot[0] * TRANSLATION[2] - slot[2] * TRANSLATION[0], TRANSLATION[1], _tilt(rotation)])


@closure_gradient.register
def _(kind: Planar, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.vstack([TRANSLATION[2:], _tilt(rotation)])


@closure_gradient.register
def _(kind: Spherical, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return TRANSLATION


@closure_gradient.register
def _(kind: Fixed, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.vstack([TRANSLATION, _rotation_error(rotation)])


@closure_gradient.register
def _(kind: Wheel, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """The material point in contact: on the ring of the wheel at its lowest point, and the crown below that."""
    axis, normal = rotation @ kind.axis, np.eye(3)[2]
    down = axis * axis[2] - normal
    touching = (kind.radius - kind.crown) * down / np.linalg.norm(down) - kind.crown * normal
    forward = np.cross(axis, normal) / np.linalg.norm(np.cross(axis, normal))
    rows = _point_velocity_rows(touching, (normal, forward, np.cross(normal, forward)))
    return rows[[kind.contact, kind.grip in ("full", "forward"), kind.grip in ("full", "lateral")]]


@closure_gradient.register
def _(kind: Ball, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return _point_velocity_rows(np.array([0.0, 0.0, -kind.radius]), np.eye(3)[[2, 0, 1]])[0 if kind.contact else 1 :]


@closure_gradient.register
def _(kind: Distance, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    return np.array([[0.0, 0.0, 0.0, *(position / np.linalg.norm(position))]])


@closure_gradient.register
def _(kind: KnifeEdge, rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    normal = np.eye(3)[2]
    across = np.cross(normal, rotation @ kind.direction)
    return _point_velocity_rows(np.zeros(3), (normal, across / np.linalg.norm(across)))[0 if kind.contact else 1 :]


def _point_velocity_rows(point: np.ndarray, directions: Any) -> np.ndarray:
    """(k, 6): components of the velocity of a point of B, given from B's origin."""
    return np.hstack([np.cross(point, np.array(directions)), np.array(directions)])


TRANSLATION = np.eye(6)[3:]  # B's origin along A's axes


def _tilt(rotation: np.ndarray) -> np.ndarray:
    """(2, 6): components x and y of B's axis z."""
    return np.hstack([-_cross(rotation[:, 2])[:2], np.zeros((2, 3))])


def _rotation_error(rotation: np.ndarray) -> np.ndarray:
    """(3, 6): sine times axis of the rotation, whose rate is (trace(R) I - R) omega / 2."""
    return np.hstack([(np.trace(rotation) * np.eye(3) - rotation) / 2.0, np.zeros((3, 3))])


def _cross(x: np.ndarray) -> np.ndarray:
    return np.cross(x, np.eye(3)).T


def loop_rows(mech: Mechanism, in_world: Sequence[np.ndarray], motions: Sequence[np.ndarray]) -> np.ndarray:
    """(m, 6 n_links): rates of the loop constraints per motion of each link in its own frame.

    in_world   (4, 4) for every link: its pose
    motions    (6, nv) for every joint: H*
    """
    blocks = [np.zeros((0, 6 * mech.n_links))]
    for loop in mech.loops:
        if isinstance(loop, Coupling):
            blocks.append(_coupling_row(loop, mech, in_world, motions))
            continue
        body_a, side_a = _side(mech, in_world, loop, loop.link_a, loop.pose_a)
        body_b, side_b = _side(mech, in_world, loop, loop.link_b, loop.pose_b)
        axes, apart = side_a[:3, :3], np.linalg.inv(side_a) @ side_b
        gradient = closure_gradient(loop.kind, apart[:3, :3], apart[:3, 3])
        rows = np.zeros((len(gradient), 6 * mech.n_links))
        for body, sense in ((body_a, -1.0), (body_b, 1.0)):
            if body >= 0:
                rotation = axes.T @ in_world[body][:3, :3]
                arm = axes.T @ (side_b[:3, 3] - in_world[body][:3, 3])
                to_b = np.block([[rotation, np.zeros((3, 3))], [-_cross(arm) @ rotation, rotation]])
                rows[:, 6 * body : 6 * body + 6] += sense * gradient @ to_b
        blocks.append(rows)
    return np.vstack(blocks)


def _coupling_row(
    coupling: Coupling, mech: Mechanism, in_world: Sequence[np.ndarray], motions: Sequence[np.ndarray]
) -> np.ndarray:
    """(1, 6 n_links): each joint's rate is the component along H* of the motion of its link relative to its parent."""
    if coupling.ratios_change:
        raise TypeError(f"the dense operators do not know coupling {coupling.name!r}, whose ratios are functions")
    row = np.zeros((1, 6 * mech.n_links))
    for joint, ratio in coupling.ratios:
        link = mech.body_index(joint)
        parent, picked = mech.tree.parents[link], ratio * np.linalg.pinv(motions[link])
        row[:, 6 * link : 6 * link + 6] += picked
        if parent >= 0:
            apart = np.linalg.inv(in_world[parent]) @ in_world[link]
            back = apart[:3, :3].T
            across = np.block([[back, np.zeros((3, 3))], [-back @ _cross(apart[:3, 3]), back]])
            row[:, 6 * parent : 6 * parent + 6] -= picked @ across
    return row


def _side(
    mech: Mechanism, in_world: Sequence[np.ndarray], loop: Loop, link: str, pose: tuple[np.ndarray, np.ndarray]
) -> tuple[int, np.ndarray]:
    """The body that carries a side of a loop, and the pose of that side in the world, in the joint's canonical axes."""
    frame = mech.frame(link)
    side = np.eye(4) if frame.body < 0 else in_world[frame.body]
    for rotation, position in ((frame.rotation, frame.position), pose, (np.array(loop.kind.alignment), np.zeros(3))):
        side = side @ np.block([[rotation, np.reshape(position, (3, 1))], [np.zeros((1, 3)), np.ones((1, 1))]])
    return frame.body, side
