"""A mechanism as constant data: bodies in tree order, named frames, loops, gravity.

A *body* is a moving link together with all links welded to it; it moves by one joint. Bodies are numbered parents
before children. The ground is body -1. Everything here is immutable: arrays are read-only, changes give copies.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from types import MappingProxyType
from typing import Any

import numpy as np

from linkwise.joints import Joint
from linkwise.mechanism import checks
from linkwise.mechanism.checks import MechanismError

GROUND = "ground"
Pose = tuple[np.ndarray, np.ndarray]  # rotation (3, 3), position (3,)


class _Constant:
    """Equality, hashing and pickling by content for frozen dataclasses that hold arrays."""

    def _content(self) -> tuple[Any, ...]:
        return tuple(_hashable(getattr(self, f.name)) for f in dataclasses.fields(self) if f.compare)  # type: ignore[arg-type]

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return self is other or self._content() == other._content()

    def __hash__(self) -> int:
        return hash(self._content())

    def __reduce__(self) -> tuple[Any, ...]:
        # Rebuilding through the constructor keeps arrays read-only and leaves compiled kernels behind.
        values = (getattr(self, f.name) for f in dataclasses.fields(self) if f.init)  # type: ignore[arg-type]
        return type(self), tuple(tuple(v.values()) if isinstance(v, Mapping) else v for v in values)


def _hashable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return tuple(value.ravel().tolist())
    if isinstance(value, Mapping):
        return tuple(value.values())
    if isinstance(value, tuple):
        return tuple(map(_hashable, value))
    return value


@dataclass(frozen=True)
class Limits:
    """Bounds of a joint: a number for all its coordinates or one per coordinate; infinite where there is none.

    lower, upper   bounds of q
    velocity       bound of ``|v|``
    effort         bound of the joint force or torque
    """

    lower: Any = -math.inf
    upper: Any = math.inf
    velocity: Any = math.inf
    effort: Any = math.inf

    def per_coordinate(self, what: str, nq: int, nv: int) -> Limits:
        """The same limits as tuples: ``nq`` numbers each for the positions, ``nv`` for velocity and effort."""
        return Limits(
            lower=checks.per_coordinate(f"the lower limit of {what}", self.lower, nq, finite=False),
            upper=checks.per_coordinate(f"the upper limit of {what}", self.upper, nq, finite=False),
            velocity=checks.per_coordinate(f"the velocity limit of {what}", self.velocity, nv, finite=False),
            effort=checks.per_coordinate(f"the effort limit of {what}", self.effort, nv, finite=False),
        )


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``q = ratio * q_of(joint) + offset``."""

    joint: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        checks.checked_name("joint to mimic", self.joint)
        object.__setattr__(self, "ratio", checks.checked_number("the ratio of a mimic joint", self.ratio))
        object.__setattr__(self, "offset", checks.checked_number("the offset of a mimic joint", self.offset))


@dataclass(frozen=True, eq=False)
class Body(_Constant):
    """One moving link with everything welded to it, and the joint that moves it.

    link, joint          names
    kind                 the joint: what it can do
    parent               index of the parent body, -1 for the ground
    rotation, position   pose of the joint frame in the parent body's link frame; at zero coordinates the body's own
                         link frame coincides with it
    mass, com, inertia   of link and welded links; inertia about com, both along the axes of the link frame
    armature, damping, friction   tuples of ``kind.nv`` numbers
    limits               tuples of ``kind.nq`` (lower, upper) and ``kind.nv`` (velocity, effort) numbers
    mimic                the independent joint that this one follows, if it has no coordinate of its own
    """

    link: str
    joint: str
    kind: Joint
    parent: int
    rotation: np.ndarray
    position: np.ndarray
    mass: float
    com: np.ndarray
    inertia: np.ndarray
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    limits: Limits
    mimic: Mimic | None = None

    def __post_init__(self) -> None:
        what = f"link {self.link!r}"
        joint = f"joint {self.joint!r}"
        nv = self.kind.nv
        for attribute, value in (
            ("link", checks.checked_name("link", self.link)),
            ("joint", checks.checked_name("joint", self.joint)),
            ("parent", int(self.parent)),
            ("rotation", checks.checked_rotation(f"the rotation of {joint}", self.rotation)),
            ("position", checks.checked_array(f"the position of {joint}", self.position, (3,))),
            ("mass", checks.checked_number(f"the mass of {what}", self.mass)),
            ("com", checks.checked_array(f"the centre of mass of {what}", self.com, (3,))),
            ("inertia", checks.checked_inertia(f"the inertia of {what}", self.inertia)),
            ("armature", checks.per_coordinate(f"the armature of {joint}", self.armature, nv)),
            ("damping", checks.per_coordinate(f"the damping of {joint}", self.damping, nv)),
            ("friction", checks.per_coordinate(f"the friction of {joint}", self.friction, nv)),
            ("limits", self.limits.per_coordinate(joint, self.kind.nq, nv)),
        ):
            object.__setattr__(self, attribute, value)

    @property
    def nq(self) -> int:
        """Number of own position coordinates: 0 for a joint that mimics another."""
        return 0 if self.mimic else self.kind.nq

    @property
    def nv(self) -> int:
        """Number of own velocity coordinates: 0 for a joint that mimics another."""
        return 0 if self.mimic else self.kind.nv


@dataclass(frozen=True, eq=False)
class Frame(_Constant):
    """A named frame fixed to a body: every link, moving or welded, and the ground.

    body                 index of the body that carries it, -1 for the ground
    rotation, position   its pose in that body's link frame
    """

    name: str
    body: int
    rotation: np.ndarray
    position: np.ndarray

    def __post_init__(self) -> None:
        what = f"frame {self.name!r}"
        object.__setattr__(self, "rotation", checks.checked_rotation(f"the rotation of {what}", self.rotation))
        object.__setattr__(self, "position", checks.checked_array(f"the position of {what}", self.position, (3,)))


@dataclass(frozen=True, eq=False)
class Loop(_Constant):
    """A joint that closes a loop: the frame ``pose_a`` on ``link_a`` is its fixed side, ``pose_b`` on ``link_b`` the
    moving one. Links are frame names, poses ``(rotation, position)`` in those frames."""

    name: str
    kind: Joint
    link_a: str
    pose_a: Pose
    link_b: str
    pose_b: Pose

    def __post_init__(self) -> None:
        object.__setattr__(self, "pose_a", checks.checked_pose(f"pose_a of loop {self.name!r}", self.pose_a))
        object.__setattr__(self, "pose_b", checks.checked_pose(f"pose_b of loop {self.name!r}", self.pose_b))


@dataclass(frozen=True, eq=False, repr=False)
class Mechanism(_Constant):
    """A tree of bodies with optional loops. Build one with ``Builder``, a reader or ``linkwise.mechanisms``.

    name      for messages and generated code
    bodies    moving bodies, parents before children
    frames    name -> Frame: every link name and "ground"
    gravity   (3,) in the ground frame
    loops     joints that close loops of the tree
    """

    name: str
    bodies: tuple[Body, ...]
    frames: Mapping[str, Frame]
    gravity: np.ndarray
    loops: tuple[Loop, ...] = ()
    _kernels: dict[Any, Any] = field(default_factory=dict, init=False, compare=False)

    def __post_init__(self) -> None:
        frames = self.frames.values() if isinstance(self.frames, Mapping) else self.frames
        object.__setattr__(self, "name", checks.checked_name("mechanism", self.name))
        object.__setattr__(self, "bodies", tuple(self.bodies))
        object.__setattr__(self, "frames", MappingProxyType({frame.name: frame for frame in frames}))
        object.__setattr__(self, "gravity", checks.checked_array("gravity", self.gravity, (3,)))
        object.__setattr__(self, "loops", tuple(self.loops))
        self._check_references()

    def _check_references(self) -> None:
        """Every index and name that one part uses for another leads somewhere sensible."""
        if len(self._body_of_joint) != len(self.bodies):
            raise MechanismError("two moving joints have the same name")
        for index, body in enumerate(self.bodies):
            if not -1 <= body.parent < index:
                raise MechanismError(f"body {body.link!r} must come after its parent (index {body.parent})")
            if body.mimic:
                leader = self.bodies[self.body_index(body.mimic.joint)]
                if leader.mimic or leader.kind.nv != 1 or body.kind.nv != 1:
                    raise MechanismError(
                        f"joint {body.joint!r} cannot mimic {leader.joint!r}: both need one coordinate, "
                        "and the one that leads must be independent"
                    )
        for name in (GROUND, *self.link_names, *(link for loop in self.loops for link in (loop.link_a, loop.link_b))):
            self.frame(name)
        names = [loop.name for loop in self.loops]
        if len(set(names)) < len(names):
            raise MechanismError(f"two loops have the same name: {names}")
        for frame in self.frames.values():
            if not -1 <= frame.body < len(self.bodies):
                raise MechanismError(f"frame {frame.name!r} is fixed to body {frame.body}, which does not exist")

    # Sizes and names -----------------------------------------------------------------------------------------------

    @cached_property
    def nq(self) -> int:
        """Number of position coordinates."""
        return sum(body.nq for body in self.bodies)

    @cached_property
    def nv(self) -> int:
        """Number of velocity coordinates."""
        return sum(body.nv for body in self.bodies)

    @property
    def n_links(self) -> int:
        """Number of moving links, one per moving joint."""
        return len(self.bodies)

    @cached_property
    def n_constraints(self) -> int:
        """Number of scalar loop constraints: 6 minus the freedoms of the joint, for every loop."""
        return sum(6 - loop.kind.nv for loop in self.loops)

    def constraint_index(self, loop: str) -> slice:
        """Where the named loop's constraints are among all."""
        start = 0
        for one in self.loops:
            rows = 6 - one.kind.nv
            if one.name == loop:
                return slice(start, start + rows)
            start += rows
        raise MechanismError(
            f"mechanism {self.name!r} has no loop {loop!r}: "
            + checks.did_you_mean(loop, [one.name for one in self.loops])
        )

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Moving joints in body order, those that mimic others included."""
        return tuple(body.joint for body in self.bodies)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Moving links, one per moving joint, in body order."""
        return tuple(body.link for body in self.bodies)

    @property
    def frame_names(self) -> tuple[str, ...]:
        """Every name that a ``link`` argument accepts: the ground, moving links and links welded to either."""
        return tuple(self.frames)

    # Tree ----------------------------------------------------------------------------------------------------------

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """Index of each body's parent, -1 for the ground."""
        return tuple(body.parent for body in self.bodies)

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each body's children."""
        children: list[list[int]] = [[] for _ in self.bodies]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(index)
        return tuple(map(tuple, children))

    def subtree(self, index: int) -> tuple[int, ...]:
        """Body ``index`` and everything it carries, ascending."""
        inside = {index}
        for i in range(index + 1, len(self.bodies)):
            if self.parents[i] in inside:
                inside.add(i)
        return tuple(sorted(inside))

    def path(self, index: int) -> tuple[int, ...]:
        """Bodies from the one next to the ground out to ``index``, both included; empty for the ground (-1)."""
        path = []
        while index >= 0:
            path.append(index)
            index = self.parents[index]
        return tuple(reversed(path))

    # Lookup by name ------------------------------------------------------------------------------------------------

    @cached_property
    def _body_of_joint(self) -> dict[str, int]:
        return {body.joint: index for index, body in enumerate(self.bodies)}

    @cached_property
    def _slices(self) -> tuple[tuple[slice, slice], ...]:
        """Each body's place in q and in v; that of its leader for a joint that mimics another."""
        slices, q, v = [], 0, 0
        for body in self.bodies:
            slices.append((slice(q, q + body.nq), slice(v, v + body.nv)))
            q, v = q + body.nq, v + body.nv
        leaders = (self._body_of_joint[b.mimic.joint] if b.mimic else i for i, b in enumerate(self.bodies))
        return tuple(slices[leader] for leader in leaders)

    def body_index(self, joint: str) -> int:
        """Index of the body that the named joint moves."""
        if joint not in self._body_of_joint:
            raise MechanismError(f"mechanism {self.name!r} has no moving joint {joint!r}: {self._joint_hint(joint)}")
        return self._body_of_joint[joint]

    def _joint_hint(self, name: str) -> str:
        """What may have been meant where a joint was asked for."""
        if name not in self.frames:
            return checks.did_you_mean(name, self._body_of_joint)
        body = self.frames[name].body
        mover = "which no joint moves" if body < 0 else f"which joint {self.bodies[body].joint!r} moves"
        return f"that is a link, {mover}; give the name of a joint"

    def q_index(self, joint: str) -> slice:
        """Where the named joint's position coordinates are in q; for a mimic joint those of the joint it follows."""
        return self._slices[self.body_index(joint)][0]

    def v_index(self, joint: str) -> slice:
        """Where the named joint's velocity coordinates are in v; for a mimic joint those of the joint it follows."""
        return self._slices[self.body_index(joint)][1]

    def frame(self, name: str) -> Frame:
        """The named frame: a link, moving or welded, or "ground"."""
        if not isinstance(name, str):
            raise TypeError(f"a link is named by a string, got {name!r}")
        if name not in self.frames:
            raise MechanismError(
                f"mechanism {self.name!r} has no link or frame {name!r}: " + checks.did_you_mean(name, self.frames)
            )
        return self.frames[name]

    # Parameters ----------------------------------------------------------------------------------------------------

    @cached_property
    def masses(self) -> np.ndarray:
        """(n_links,) mass of each body."""
        return _read_only(np.array([body.mass for body in self.bodies], dtype=float))

    @cached_property
    def coms(self) -> np.ndarray:
        """(n_links, 3) centre of mass of each body in its link frame."""
        return _read_only(np.array([body.com for body in self.bodies], dtype=float).reshape(-1, 3))

    @cached_property
    def inertias(self) -> np.ndarray:
        """(n_links, 3, 3) inertia of each body about its centre of mass, along the axes of its link frame."""
        return _read_only(np.array([body.inertia for body in self.bodies], dtype=float).reshape(-1, 3, 3))

    @cached_property
    def singular_joints(self) -> tuple[str, ...]:
        """Independent joints that move nothing with inertia: no force law gives them an acceleration.

        A body is judged when nothing it carries has mass; joints further in then see its inertia alone. A joint that
        others mimic is singular only if they are too.
        """
        massive_beyond = [False] * len(self.bodies)
        resists = [False] * len(self.bodies)
        for index in reversed(range(len(self.bodies))):
            body = self.bodies[index]
            massless = body.mass == 0.0 and not body.inertia.any()
            if body.parent >= 0 and (massive_beyond[index] or not massless):
                massive_beyond[body.parent] = True
            resists[index] = massive_beyond[index] or not checks.joint_inertia_is_singular(
                body.kind, body.mass, body.com, body.inertia, body.armature
            )
        followed = {b.mimic.joint for i, b in enumerate(self.bodies) if b.mimic and b.mimic.ratio and resists[i]}
        return tuple(
            body.joint
            for index, body in enumerate(self.bodies)
            if not (resists[index] or body.mimic or body.joint in followed)
        )

    # Variants ------------------------------------------------------------------------------------------------------

    def with_gravity(self, gravity: Any) -> Mechanism:
        """A copy in another field of gravity, (3,) in the ground frame."""
        return dataclasses.replace(self, gravity=gravity)

    def with_loops(self, *loops: Loop) -> Mechanism:
        """A copy with these loops added; files such as URDF have no way to write them."""
        return dataclasses.replace(self, loops=(*self.loops, *loops))

    @cached_property
    def spanning_tree(self) -> Mechanism:
        """The same mechanism without its loops."""
        return dataclasses.replace(self, loops=()) if self.loops else self

    def __repr__(self) -> str:
        counts = [f"{self.n_links} moving link" + "s" * (self.n_links != 1), f"nq={self.nq}", f"nv={self.nv}"]
        followers = sum(body.mimic is not None for body in self.bodies)
        if followers:
            counts.append(f"{followers} mimic joint" + "s" * (followers > 1))
        if self.loops:
            counts.append(f"{len(self.loops)} loop" + "s" * (len(self.loops) > 1))
        counts.append(f"{len(self.frames)} frames")
        return f"<Mechanism {self.name!r}: {', '.join(counts)}, gravity={tuple(self.gravity.tolist())}>"


def _read_only(array: np.ndarray) -> np.ndarray:
    array.flags.writeable = False
    return array


def require_mechanism(mech: Any) -> None:
    if not isinstance(mech, Mechanism):
        raise TypeError(f"a Mechanism is needed, got {type(mech).__name__}: make one with linkwise.load or Builder")
