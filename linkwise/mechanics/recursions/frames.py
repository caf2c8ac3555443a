"""Choice of internal link frames. A frame may be anywhere along its joint's axis and at any angle about it; the choice
minimises the numbers in the steps to the next link (modified Denavit-Hartenberg frames, saha1999 App. A).

With the canonical frame C (z along the joint axis) of a link, the internal frame is C Tz(slide) Rz(turn).  Its origin
is the foot of the common normal with the parent's axis, its x is along the common normal with the next axis. A child
whose axis is not nearly parallel to its parent's then has the pose T(a, 0, d) Rx(alpha): three numbers instead of six,
with one shift in the parent's own frame.  Its turn becomes an offset of its angle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...mechanism import Body, Mechanism
from ...mechanism.scales import scales

ROUND_OFF = 1e-14  # radians, or relative to the mechanism's length: larger than the noise of the frame computation
SKEW_ENOUGH = 0.3  # sine of the angle between axes below which the common normal may be far away
FAR = 3.0  # maximum slide of a frame, relative to the distance between its joint and the previous one


class Placement(NamedTuple):
    """The constant steps from the parent's internal frame to the parent side of a joint, and the joint's offsets."""

    first_shift: np.ndarray  # in parent axes
    rotation: np.ndarray
    second_shift: np.ndarray  # in the axes of the joint
    spin: float
    quarter_turns: int


@dataclass(frozen=True)
class FrameChoice:
    """Internal frame of one link relative to its canonical frame: C Tz(slide) Rz(turn)."""

    slide: float = 0.0
    turn: float = 0.0

    def matrices(self) -> tuple[np.ndarray, np.ndarray]:
        """Rotation and position of the internal frame in the canonical frame."""
        return _turn_z(self.turn), np.array([0.0, 0.0, self.slide])


Steps = tuple[np.ndarray, np.ndarray]  # rotations (n, 3, 3) and positions (n, 3)


def canonical_steps(mechanism: Mechanism) -> Steps:
    """Poses of the canonical frames of all bodies' joints (at zero) in the canonical frames of their parent bodies."""
    if not mechanism.bodies:
        return np.zeros((0, 3, 3)), np.zeros((0, 3))
    axes = np.array([body.kind.alignment for body in mechanism.bodies])
    parents = np.array(mechanism.tree.parents)
    before = np.where((parents >= 0)[:, None, None], axes[parents], np.eye(3)).transpose(0, 2, 1)
    rotations = np.array([body.rotation for body in mechanism.bodies]) @ axes
    positions = np.array([body.position for body in mechanism.bodies])
    return before @ rotations, (before @ positions[..., None])[..., 0]


def choose_frames(mechanism: Mechanism, movable: set[int], steps: Steps | None = None) -> list[FrameChoice]:
    """One choice per body. ``movable``: bodies for which their own pose and their children's poses are constants."""
    return chosen_and_placed(mechanism, movable, steps or canonical_steps(mechanism))[0]


def chosen_and_placed(
    mechanism: Mechanism, movable: set[int], steps: Steps
) -> tuple[list[FrameChoice], list[Placement]]:
    """One choice per body, and its placement (``place``)."""
    choices: list[FrameChoice] = []
    placements: list[Placement] = []
    sizes = [1] * len(mechanism.bodies)  # of the subtrees
    for i in reversed(range(len(sizes))):
        if mechanism.tree.parents[i] >= 0:
            sizes[mechanism.tree.parents[i]] += sizes[i]
    for i, body in enumerate(mechanism.bodies):
        if i not in movable or not body.kind.slides:
            choices.append(FrameChoice())
            placements.append(place(mechanism, i, choices, steps))
            continue
        children = mechanism.tree.children[i]
        main = max(children, key=lambda k: (sizes[k], -k)) if children else None
        turn = 0.0
        if body.kind.rotation_coordinate is not None or body.kind.only_slides:
            length = scales(mechanism).length
            turn = _turn_to_mass(body) if main is None else _turn_towards(steps[0][main], steps[1][main], length)
        choices.append(FrameChoice(turn=turn))
        placement = place(mechanism, i, choices, steps)
        choices[i] = FrameChoice(-float(placement.second_shift[2]), turn)
        first, rotation, _, spin, quarter_turns = placement
        placements.append(Placement(first, rotation, np.zeros(3), spin, quarter_turns))
    return choices, placements


def place(mechanism: Mechanism, i: int, choices: list[FrameChoice], steps: Steps | None = None) -> Placement:
    """Steps from the parent's internal frame to the joint of body ``i``, as few and as sparse as the frames allow."""
    body = mechanism.bodies[i]
    rotations, positions = steps or canonical_steps(mechanism)
    rotation, position = rotations[i], positions[i]
    if body.parent >= 0:
        turn, slide = choices[body.parent].matrices()
        rotation, position = turn.T @ rotation, turn.T @ (position - slide)
    choice = choices[i]
    spin = 0.0
    if (
        body.kind.rotation_coordinate is not None
    ):  # a turn about z on either side of the joint is an offset of its angle
        about_z = math.atan2(rotation[2, 0], rotation[2, 1]) if _is_skew(rotation) else _planar_angle(rotation)
        rotation = rotation @ _turn_z(-about_z)
        spin = about_z + choice.turn
    elif body.kind.slides:  # the joint commutes with a turn about z
        rotation = rotation @ _turn_z(choice.turn)
    length = scales(mechanism).length
    rotation, position = _clean(rotation, 1.0), _clean(position, length)
    reach = FAR * math.hypot(*body.position.tolist())
    first, along = _split_shift(rotation, position, reach, length) if body.kind.slides else (position, 0.0)
    quarter_turns = round(spin / (math.pi / 2))
    rest = spin - quarter_turns * (math.pi / 2)
    if abs(rest) < ROUND_OFF:
        rest = 0.0
    else:
        quarter_turns, rest = 0, spin
    second = _clean(np.array([0.0, 0.0, along + choice.slide]), max(length, abs(along)))
    return Placement(_clean(first, length), rotation, second, rest, quarter_turns % 4)


def _turn_towards(rotation: np.ndarray, position: np.ndarray, length: float) -> float:
    """The angle about z at which x is along the common normal with the next axis."""
    axis = rotation[:, 2]
    if math.hypot(axis[0], axis[1]) > ROUND_OFF:
        return _snap_turn(math.atan2(axis[0], -axis[1]))  # the next axis becomes (0, -sin, cos): a turn about x
    if math.hypot(position[0], position[1]) > ROUND_OFF * length:
        return _snap_turn(math.atan2(position[1], position[0]))
    return 0.0


def _turn_to_mass(body: Body) -> float:
    """Angle about z at which x points to a last link's centre of mass, if this saves numbers."""
    alignment = np.array(body.kind.alignment)

    def numbers(angle: float) -> tuple[int, float]:
        axes = alignment @ _turn_z(angle)
        com, inertia = axes.T @ body.com, axes.T @ body.inertia @ axes
        about_axis = inertia - body.mass * np.outer(com, com)
        products = about_axis[np.triu_indices(3, 1)]
        scale = max(np.abs(inertia).max(), body.mass * (com @ com))
        off_axis = np.count_nonzero(np.abs(com[:2]) > 1e-12 * np.linalg.norm(com))
        count = int(off_axis + np.count_nonzero(np.abs(products) > 1e-12 * scale))
        return count, abs(angle)

    com = alignment.T @ body.com
    return min((0.0, _snap_turn(math.atan2(com[1], com[0]))), key=numbers)


def _split_shift(rotation: np.ndarray, position: np.ndarray, reach: float, length: float) -> tuple[np.ndarray, float]:
    """position = first + along * z of the joint, with the fewest numbers in ``first`` and ``along`` within reach."""
    axis = rotation[:, 2]
    candidates = [(np.array(position), 0.0)]
    for k in range(3):
        if abs(axis[k]) > SKEW_ENOUGH:
            along = position[k] / axis[k]
            if abs(along) > reach:
                continue
            first = _clean(position - along * axis, max(length, abs(along)))
            first[k] = 0.0
            candidates.append((first, along))
    return min(candidates, key=lambda c: 2 * np.count_nonzero(c[0]) + (c[1] != 0.0))


def skew_axes(mechanism: Mechanism) -> np.ndarray:
    """Per body, whether its joint's axis is not parallel to its parent's (the world's z for the first)."""
    rotations, _ = canonical_steps(mechanism)
    return np.hypot(rotations[:, 2, 0], rotations[:, 2, 1]) > ROUND_OFF


def _is_skew(rotation: np.ndarray) -> bool:
    return math.hypot(rotation[2, 0], rotation[2, 1]) > ROUND_OFF


def _planar_angle(rotation: np.ndarray) -> float:
    """Angle b with rotation = diag(1, +-1, +-1) Rz(b), for an axis parallel or antiparallel to z."""
    return math.atan2(-rotation[0, 1], rotation[0, 0])


def _turn_z(angle: float) -> np.ndarray:
    quarter_turns = angle / (math.pi / 2)
    if abs(quarter_turns - round(quarter_turns)) < ROUND_OFF:
        c, s = ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[round(quarter_turns) % 4]
    else:
        c, s = math.cos(angle), math.sin(angle)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def _snap_turn(angle: float) -> float:
    quarter_turns = round(angle / (math.pi / 2))
    return quarter_turns * (math.pi / 2) if abs(angle - quarter_turns * (math.pi / 2)) < ROUND_OFF else angle


def _clean(values: np.ndarray, scale: float) -> np.ndarray:
    """Replace noise by an exact 0 (or an exact unit entry of a rotation)."""
    noise = ROUND_OFF * scale
    if values.ndim == 1:
        return np.array([0.0 if abs(x) < noise else x for x in values.tolist()])
    return np.array([[_rounded(x, noise) for x in row] for row in values.tolist()])


def _rounded(x: float, noise: float) -> float:
    size = abs(x)
    if size < noise:
        return 0.0
    return math.copysign(1.0, x) if abs(size - 1.0) < ROUND_OFF else x
