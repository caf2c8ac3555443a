"""Scalar coordinates of a mechanism by name: of joints, and positions and orientations of links in the world."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..dynamics import trees as tree
from ..mechanics.joints import LENGTH
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import names_of
from ..mechanism.coordinates import ANGLES
from .equations import velocity_rows
from .sizes import Units, random_configurations, units

TRIED = 4  # random configurations
CONSTANT = 1e-12  # rates per unit of velocity
AXES = "xyz"
DIFFERENCE = 1e-3  # step of differences: balances rounding and truncation
CHOICES = (
    "a joint of one coordinate, one number of a joint ('joint[k]', or its name in mech.q_names), the place of a link "
    "('link.x', '.y', '.z') or its orientation ('link.yaw', '.pitch', '.roll')"
)


@dataclass(frozen=True)
class NamedCoordinate:
    """A scalar function of q.

    number      (..., nq) -> (...): its value, up to whole turns if ``about`` is set
    rows        (..., nq) -> (..., nv): its rate is rows v
    is_length   whether it is a length; otherwise an angle or dimensionless
    turns       whether it is an angle of a link, periodic in a full turn
    about       middle of the returned values of an angle known up to whole turns; None for other coordinates
    """

    name: str
    number: Callable[[np.ndarray], np.ndarray]
    rows: Callable[[np.ndarray], np.ndarray]
    is_length: bool
    turns: bool = False
    about: float | None = None

    @property
    def is_wrapped(self) -> bool:
        return self.about is not None

    def value(self, q: np.ndarray) -> np.ndarray:
        """(...): values at configurations (..., nq)."""
        number = self.number(q)
        return number if self.about is None else self.about + wrapped(number - self.about)

    def change(self, q: np.ndarray, value: Any) -> np.ndarray:
        """(...): difference from a value to the value at q (..., nq), within half a turn for periodic angles."""
        return wrapped(self.number(q) - value) if self.is_wrapped else self.number(q) - value

    def unit(self, units: Units) -> float:
        """The unit of this coordinate."""
        return units.length if self.is_length else 1.0

    def centred(self, about: float) -> NamedCoordinate:
        """The coordinate with values within half a turn of ``about``, if it is periodic."""
        return replace(self, about=about) if self.is_wrapped else self

    def along(self, q: np.ndarray) -> np.ndarray:
        """(n,): values at neighbouring configurations (n, nq), unwrapped."""
        values = self.value(q)
        return np.unwrap(values) if self.is_wrapped and len(values) else values

    def dimensionless(self, units: Units) -> NamedCoordinate:
        """The coordinate in these units; its rate is rows times dimensionless velocities."""
        unit = self.unit(units)
        return replace(
            self,
            number=lambda q: self.number(q) / unit,
            rows=lambda q: self.rows(q) * (units.velocities / unit),
        )


def named_coordinate(mech: Mechanism, name: str) -> NamedCoordinate:
    """The coordinate called ``name``: a joint of one coordinate, ``joint[k]`` (number k of its q), or ``link.x``,
    ``link.y``, ``link.z`` (the origin of a link or frame in the world), ``link.yaw``, ``link.pitch``, ``link.roll``
    (its orientation there), or a name of ``q_names``, unless a link or frame has it."""
    if not isinstance(name, str):
        example = repr(next((body.joint for body in mech.bodies if body.kind.nq == 1), "joint"))
        raise MechanismError(
            f"a coordinate is given by its name, {CHOICES}, and comes before q, range_of_motion(mech, {example}, q); "
            f"not {name!r}"
        )
    joint, _, rest = name.partition("[")
    if name in mech.joint_names and mech.bodies[mech.body_index(name)].kind.nq == 1:
        return _joint_coordinate(mech, name, name, 0)
    if joint in mech.joint_names and rest[:-1].isdigit() and rest.endswith("]"):
        return _joint_coordinate(mech, name, joint, int(rest[:-1]))
    link, _, axis = name.rpartition(".")
    if link in mech.frames and axis in AXES and axis:
        return _link_coordinate(mech, name, link, AXES.index(axis))
    if link in mech.frames and axis in ANGLES:
        return _orientation(mech, name, link, axis)
    if name not in mech.joint_names and (index := mech.coordinates.index("q", name)) is not None:
        entry = mech.coordinates.joint_of(name)
        k = index - mech.q_index(entry).start
        return _joint_coordinate(mech, f"{entry}[{k}]", entry, k)
    if name in mech.joint_names:
        count = mech.bodies[mech.body_index(name)].kind.nq
        raise MechanismError(
            f"joint {name!r} has {count} coordinates: name one of them, {name}[0] to {name}[{count - 1}]"
        )
    if hint := mech.constraints.hint(name):
        raise MechanismError(f"mechanism {mech.name!r} has no coordinate {name!r}: {hint}")
    raise MechanismError(
        f"mechanism {mech.name!r} has no coordinate {name!r}: give {CHOICES}; joints: {', '.join(mech.joint_names)}; "
        f"links: {', '.join(mech.frames)}"
    )


def _joint_coordinate(mech: Mechanism, name: str, joint: str, k: int) -> NamedCoordinate:
    entry, kind = mech.coordinates.place(joint), mech.bodies[mech.body_index(joint)].kind
    if k >= kind.nq:
        raise MechanismError(f"joint {joint!r} has {kind.nq} coordinates, so there is no {name!r}")
    units = np.eye(mech.nv)

    def rows(q: np.ndarray) -> np.ndarray:
        if kind.rates_are_velocities:
            row = entry.ratio * units[entry.v_index][k]
            return np.broadcast_to(row, (*q.shape[:-1], mech.nv))
        return tree.coordinate_rates(mech, q[..., None, :], units)[..., entry.q_index.start + k]

    is_length = kind.measures("q")[k].of == LENGTH
    return NamedCoordinate(name, lambda q: entry.positions(q)[..., k], rows, is_length)


def _link_coordinate(mech: Mechanism, name: str, link: str, axis: int) -> NamedCoordinate:
    return NamedCoordinate(
        name,
        lambda q: tree.frame_pose(mech, q, link)[..., axis, 3],
        lambda q: tree.jacobian(mech, q, link, "world_aligned")[..., 3 + axis, :],
        is_length=True,
    )


def _orientation(mech: Mechanism, name: str, link: str, angle: str) -> NamedCoordinate:
    """An angle of a link or frame.  If joints turn it about this world axis only, as in planar mechanisms, it is the
    sum of their angles, and counts turns; otherwise it is roll, pitch or yaw, within a turn."""
    row = rates_about_one_axis(mech, link, angle)
    if row is None:
        return NamedCoordinate(
            name,
            lambda q: angle_of(tree.frame_pose(mech, q, link)[..., :3, :3], angle),
            lambda q: rates_of(
                tree.frame_pose(mech, q, link)[..., :3, :3],
                tree.jacobian(mech, q, link, "world_aligned")[..., :3, :],
                angle,
            ),
            is_length=False,
            turns=True,
            about=0.0,
        )
    start = mech.initial
    there = angle_about_one_axis(tree.frame_pose(mech, start, link)[:3, :3], angle)
    return NamedCoordinate(
        name,
        lambda q: there + tree.difference(mech, start, q) @ row,
        lambda q: np.broadcast_to(row, (*q.shape[:-1], mech.nv)),
        is_length=False,
        turns=True,
    )


def is_beside_velocities(mech: Mechanism, name: str) -> bool:
    """Whether the rate of a named coordinate is not an entry of v: of a link or frame, "platform.x", or of a joint with
    a quaternion, "base.x"."""
    if name in mech.joint_names:
        return False
    if mech.coordinates.index("q", name) is not None:
        return not mech.bodies[mech.body_index(mech.coordinates.joint_of(name))].kind.rates_are_velocities
    return is_of_link(mech, name)


def is_of_link(mech: Mechanism, name: str) -> bool:
    """Whether a name is a coordinate of a link or frame, not of a joint."""
    link, _, word = name.rpartition(".")
    of_joint = link in mech.joint_names or any(mech.coordinates.index(x, name) is not None for x in "qv")
    return not of_joint and link in mech.frames and word in (*AXES, *ANGLES)


def rates_of_inputs(mech: Mechanism, q: np.ndarray, names: Sequence[str], label: str) -> np.ndarray:
    """(..., p, nv) at q (..., nq), or (p, nv) for joints only: rows @ v are velocities of the named joints and rates of
    the named coordinates."""
    rows = [
        named_coordinate(mech, name).rows(q)[..., None, :]
        if is_beside_velocities(mech, name)
        else velocity_rows(mech, (name,), label)
        for name in names_of(names)
    ]
    batch = np.broadcast_shapes((), *(row.shape[:-2] for row in rows))
    return np.concatenate(
        [np.zeros((*batch, 0, mech.nv)), *(np.broadcast_to(row, (*batch, *row.shape[-2:])) for row in rows)], axis=-2
    )


def curvatures_of_inputs(mech: Mechanism, q: np.ndarray, v: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """(..., p): second derivatives of the inputs of ``rates_of_inputs`` at constant v, by fourth-order differences of
    the rates; zero for joints."""
    speed = np.maximum(np.abs(v).max(axis=-1, initial=0.0, keepdims=True), np.finfo(float).tiny)
    step = DIFFERENCE / speed[..., 0]

    def rates(steps: float) -> np.ndarray:
        there = tree.integrate(mech, q, v, steps * step)
        return (rates_of_inputs(mech, there, names, "inputs") @ v[..., None])[..., 0]

    return (8.0 * (rates(1.0) - rates(-1.0)) - (rates(2.0) - rates(-2.0))) / (12.0 * step[..., None])


def velocity_map(mech: Mechanism, names: Sequence[str], label: str) -> tuple[int, Callable[[np.ndarray], np.ndarray]]:
    """Number p of velocities of the names, and a function (..., nq) -> (..., p, nv) whose rows @ v are these
    velocities, dimensionless.  A joint has all its velocities, any other coordinate its rate."""
    scale = units(mech)
    parts: list[Callable[[np.ndarray], np.ndarray]] = []
    count = 0
    for name in names_of(names):
        if name in mech.joint_names:
            lengths = [measure.of == LENGTH for measure in mech.bodies[mech.body_index(name)].kind.measures("v")]
            unit = np.where(lengths, scale.length, 1.0)[:, None]
            constant = velocity_rows(mech, (name,), label) * scale.velocities / unit
            parts.append(lambda q, constant=constant: np.broadcast_to(constant, (*q.shape[:-1], *constant.shape)))  # type: ignore[misc]
            count += len(constant)
        else:
            coordinate = named_coordinate(mech, name).dimensionless(scale)
            parts.append(lambda q, coordinate=coordinate: coordinate.rows(q)[..., None, :])  # type: ignore[misc]
            count += 1

    def rows(q: np.ndarray) -> np.ndarray:
        nothing = np.zeros((*q.shape[:-1], 0, mech.nv))
        return np.concatenate([nothing, *(part(q) for part in parts)], axis=-2)

    return count, rows


class LimitSlack:
    """Dimensionless distances of a configuration from the limits of joints, mimic joints included."""

    def __init__(self, mech: Mechanism):
        self.names: list[str] = []
        self._sides: list[tuple[NamedCoordinate, float, float]] = []  # coordinate, bound, sign
        scale = units(mech)
        for body in mech.bodies:
            for bounds, sign in ((body.limits.lower, 1.0), (body.limits.upper, -1.0)):
                for k, bound in enumerate(bounds):
                    if math.isfinite(bound):
                        limited = named_coordinate(mech, f"{body.joint}[{k}]")
                        self._sides.append((limited.dimensionless(scale), bound / limited.unit(scale), sign))
                        self.names.append(body.joint)

    def __call__(self, q: np.ndarray) -> np.ndarray:
        """(..., count): distances in the order of ``names``; negative beyond a limit."""
        slacks = [sign * (limited.value(q) - bound) for limited, bound, sign in self._sides]
        return np.stack(slacks, axis=-1) if slacks else np.full((*q.shape[:-1], 0), np.inf)

    def coordinate(self, side: int) -> NamedCoordinate:
        """The coordinate of a limit."""
        return self._sides[side][0]

    def bound(self, side: int) -> float:
        """The value of a limit."""
        return self._sides[side][1]

    def inward(self, side: int, q: np.ndarray) -> np.ndarray:
        """(nv,): the gradient of the distance from a limit."""
        return self._sides[side][2] * self.coordinate(side).rows(q)


# -- angles of links -----------------------------------------------------------------------------------------------


def wrapped(angle: np.ndarray) -> np.ndarray:
    """The angle wrapped to -pi .. pi."""
    return np.asarray(angle - 2.0 * np.pi * np.round(angle / (2.0 * np.pi)))


def angle_of(rotation: np.ndarray, angle: str) -> np.ndarray:
    """(...): yaw, pitch or roll of rotations (..., 3, 3) = Rz(yaw) Ry(pitch) Rx(roll); pitch is within a quarter
    turn."""
    if angle == "roll":
        return np.arctan2(rotation[..., 2, 1], rotation[..., 2, 2])
    if angle == "yaw":
        return np.arctan2(rotation[..., 1, 0], rotation[..., 0, 0])
    return np.arctan2(-rotation[..., 2, 0], np.hypot(rotation[..., 0, 0], rotation[..., 1, 0]))


def angle_about_one_axis(rotation: np.ndarray, angle: str) -> float:
    """The angle of a rotation (3, 3) about its own axis; a yaw may follow rotations about other axes."""
    if angle == "pitch":
        return float(np.arctan2(-rotation[2, 0], rotation[2, 2]))
    return float(angle_of(rotation, angle))


def rates_of(rotation: np.ndarray, angular: np.ndarray, angle: str) -> np.ndarray:
    """(..., nv): the rate of the angle, with the angular velocity in the world (..., 3, nv)."""
    cosine, sine = rotation[..., 0, 0, None], rotation[..., 1, 0, None]  # of yaw, times the cosine of pitch
    level = np.hypot(cosine, sine)
    with np.errstate(divide="ignore", invalid="ignore"):  # upright, where roll and yaw are not unique
        ahead = (cosine * angular[..., 0, :] + sine * angular[..., 1, :]) / level
        if angle == "pitch":
            return (cosine * angular[..., 1, :] - sine * angular[..., 0, :]) / level
        if angle == "roll":
            return ahead / level
        return angular[..., 2, :] - rotation[..., 2, 0, None] / level * ahead


def rates_about_one_axis(mech: Mechanism, link: str, angle: str) -> np.ndarray | None:
    """(nv,): the rate of an angle per unit of v if it is constant, else None.  It is if joints turn the link about this
    world axis only, and the frame itself, except for yaw, too."""
    axis = ANGLES.index(angle)
    q = np.concatenate([mech.initial[None], random_configurations(mech, np.random.default_rng(0), TRIED)])
    angular = tree.jacobian(mech, q, link, "world_aligned")[..., :3, :]
    if np.abs(np.delete(angular, axis, axis=-2)).max(initial=0.0) > CONSTANT:
        return None
    rows = angular[:, axis]
    if np.abs(rows - rows[0]).max(initial=0.0) > CONSTANT or not rows[0].any():
        return None
    start = tree.frame_pose(mech, mech.initial, link)[:3, :3]
    about = start[:, axis] - np.eye(3)[axis]
    if angle != "yaw" and np.abs(about).max() > CONSTANT:
        return None
    return np.where(np.abs(rows[0]) > CONSTANT, rows[0], 0.0)
