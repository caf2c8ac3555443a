"""The tree of links in internal frames: a mechanism's numbers, each a constant or a traced parameter."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import Any

import numpy as np

from ..links.link import Crossing, Link
from ..mechanism import Mechanism
from ..scalar import Scalar, is_constant
from ..spatial import Matrix3, Motion, RigidInertia, Symmetric3, Transform, Translation, Vector3, orientation
from ..spatial.three import ZERO
from .frames import FrameChoice, choose_frames, place

Parameters = Mapping[
    tuple[str, int], Any
]  # ("mass", body) -> traced value in the shape of the constant; body -1: world


@dataclass(frozen=True)
class Tree:
    """Links parents first, gravity in the ground frame, and where each link's coordinates are."""

    mechanism: Mechanism
    links: tuple[Link, ...]
    gravity: Vector3

    def coordinates(self, q: Sequence[Scalar]) -> list[list[Scalar]]:
        """Each joint's own coordinates; a follower's are its leader's, scaled and shifted."""
        parts = []
        for body in self.mechanism.bodies:
            part = list(q[self.mechanism.q_index(body.joint)])
            parts.append([part[0] * body.mimic.ratio + body.mimic.offset] if body.mimic else part)
        return parts

    def velocities(self, v: Sequence[Scalar]) -> list[list[Scalar]]:
        """Each joint's own part of a tangent vector (velocity or acceleration)."""
        parts = []
        for body in self.mechanism.bodies:
            part = list(v[self.mechanism.v_index(body.joint)])
            parts.append([part[0] * body.mimic.ratio] if body.mimic else part)
        return parts

    def collect(self, parts: Sequence[Sequence[Scalar]]) -> list[Scalar]:
        """Joint forces of all joints as a vector over the independent coordinates: followers act on their leaders."""
        total: list[Scalar] = [0.0] * self.mechanism.nv
        for body, part in zip(self.mechanism.bodies, parts, strict=True):
            start = self.mechanism.v_index(body.joint).start
            ratio = body.mimic.ratio if body.mimic else 1.0
            for k, value in enumerate(part):
                total[start + k] = total[start + k] + value * ratio
        return total

    def cross(self, q: Sequence[Scalar]) -> list[Crossing]:
        """Every joint at its coordinates."""
        return [link.cross(part) for link, part in zip(self.links, self.coordinates(q), strict=True)]

    @cached_property
    def freedom_starts(self) -> tuple[int, ...]:
        """Where each joint's freedoms begin in a vector over all joints, followers included."""
        return (0, *accumulate(link.joint.nv for link in self.links))[:-1]

    @property
    def freedoms(self) -> int:
        """Length of a vector over all joints, followers included."""
        return sum(link.joint.nv for link in self.links)

    @property
    def base_acceleration(self) -> Motion:
        """The ground accelerates upwards instead of gravity pulling down."""
        return Motion(ZERO, -self.gravity)


def plant(mechanism: Mechanism, parameters: Parameters | None = None, at_user_origins: bool = False) -> Tree:
    """The tree of a mechanism.  Numbers named in ``parameters`` replace the mechanism's own.

    ``at_user_origins`` keeps every link's internal frame at the user's origin, for results that depend on it.
    """
    given = parameters or {}
    bodies = range(len(mechanism.bodies))
    held = {i for i in bodies if at_user_origins or ("pose", i) in given}
    held |= {mechanism.parents[i] for i in held}
    choices = choose_frames(mechanism, set(bodies) - held)
    links = _lumped([_link(mechanism, i, choices, given) for i in bodies])
    return Tree(mechanism, links, _vector(given.get(("gravity", -1), mechanism.gravity)))


def _lumped(links: list[Link]) -> tuple[Link, ...]:
    """Hand inertia on from tip to base where all numbers are constants; what reaches the ground is felt by no joint."""
    inertias = [link.inertia for link in links]
    constant = [all(map(is_constant, inertia.numbers)) for inertia in inertias]
    for i in reversed(range(len(links))):
        parent, place = links[i].parent, links[i].place
        if not constant[i] or (parent >= 0 and not (constant[parent] and place.is_constant)):
            continue
        handed = links[i].joint.handed_on(inertias[i])
        inertias[i] = inertias[i] - handed
        if parent >= 0:
            inertias[parent] = inertias[parent] + place.inertia_back(handed)
    return tuple(dataclasses.replace(link, lumped=inertia) for link, inertia in zip(links, inertias, strict=True))


def _link(mechanism: Mechanism, i: int, choices: list[FrameChoice], given: Parameters) -> Link:
    body = mechanism.bodies[i]
    spin, quarters = 0.0, 0
    if ("pose", i) in given:
        step = _traced_place(mechanism, i, choices, np.asarray(given["pose", i]))
    else:
        placement = place(mechanism, i, choices)
        step = Transform(
            (
                *_shift(placement.first_shift),
                *orientation(_matrix(placement.rotation)),
                *_shift(placement.second_shift),
            )
        )
        spin, quarters = placement.spin, placement.quarters
    user = _internal_to_user(mechanism, i, choices[i])
    inertia = RigidInertia.about_com(
        _scalar(given.get(("mass", i), body.mass)),
        _vector(given.get(("com", i), body.com)),
        Symmetric3.from_rows(np.asarray(given.get(("inertia", i), body.inertia)).tolist()),
    )
    armature = tuple(np.atleast_1d(np.asarray(given.get(("armature", i), body.armature))).tolist())
    internal = _without_noise(user.inertia_back(inertia))
    return Link(body.link, body.parent, body.kind, step, spin, quarters, internal, internal, armature, user)


def _without_noise(inertia: RigidInertia) -> RigidInertia:
    """Constants that are only the rounding error of a change of frame become exact zeros."""

    def clean(numbers: Sequence[Scalar]) -> list[Scalar]:
        size = max((abs(x) for x in numbers if is_constant(x)), default=0.0)
        return [0.0 if is_constant(x) and abs(x) < 1e-15 * size else x for x in numbers]

    return RigidInertia(inertia.mass, Vector3(*clean(inertia.h)), Symmetric3(*clean(inertia.moment)))


def _internal_to_user(mechanism: Mechanism, i: int, choice: FrameChoice) -> Transform:
    """From the internal frame to the user's link frame: undo C Tz(slide) Rz(turn)."""
    turn, slide = choice.matrices()
    alignment = np.array(mechanism.bodies[i].kind.alignment)
    return Transform((*_shift(-(turn.T @ slide)), *orientation(_matrix((alignment @ turn).T))))


def _traced_place(mechanism: Mechanism, i: int, choices: list[FrameChoice], pose: np.ndarray) -> Transform:
    """The place of a joint whose pose is an input: the user's frames are kept as they are on both sides."""
    body = mechanism.bodies[i]
    steps = Transform()
    if body.parent >= 0:
        steps = _internal_to_user(mechanism, body.parent, choices[body.parent])
    steps = steps.then(Transform.from_pose(_matrix(pose[:3, :3]), _vector(pose[:3, 3])))
    return steps.then(Transform(orientation(_matrix(np.array(body.kind.alignment)))))


def _shift(values: np.ndarray) -> tuple[Translation, ...]:
    return (Translation(_vector(values)),) if np.any(values) else ()


def _scalar(value: Any) -> Scalar:
    return value.item() if isinstance(value, (np.ndarray, np.generic)) else value


def _vector(values: Any) -> Vector3:
    return Vector3(*np.asarray(values).tolist())


def _matrix(values: np.ndarray) -> Matrix3:
    return Matrix3.from_rows(values.tolist())
