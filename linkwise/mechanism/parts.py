"""The parts of a mechanism as constant data: bodies with their joints, named frames, loops, couplings.

Everything here is immutable: arrays are read-only, changes give copies.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanics.contacts import Contact, Distance
from linkwise.mechanics.jet import Jet
from linkwise.mechanics.jet import parts as derivatives
from linkwise.mechanics.joints import Joint, LoopKind
from linkwise.mechanics.scalar import dot
from linkwise.mechanics.spatial import Matrix3, Vector3
from linkwise.mechanism import checks, resistance
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.drives import Drive, Instant
from linkwise.mechanism.poses import Pose, checked_pose
from linkwise.mechanism.relations import Formula

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

HELD = "held:"  # how names of loops begin that hold frames where they are


class Constant:
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
    """Limits of a joint: one number for all its coordinates or one per coordinate; infinite by default.

    lower, upper   bounds of q
    velocity       bound of ``|v|``
    effort         bound of the joint force or torque
    stiffness, damping   of the bounds of q (``Stop`` of ``lw.forces.Passive``); None: chosen for the inertia
    """

    lower: Any = -math.inf
    upper: Any = math.inf
    velocity: Any = math.inf
    effort: Any = math.inf
    stiffness: Any = None
    damping: Any = None

    def per_coordinate(self, what: str, nq: int, nv: int) -> Limits:
        """The limits as tuples: ``nq`` position limits, ``nv`` velocity and effort limits."""
        return Limits(
            lower=checks.per_coordinate(f"the lower limit of {what}", self.lower, nq, finite=False),
            upper=checks.per_coordinate(f"the upper limit of {what}", self.upper, nq, finite=False),
            velocity=checks.per_coordinate(f"the velocity limit of {what}", self.velocity, nv, finite=False),
            effort=checks.per_coordinate(f"the effort limit of {what}", self.effort, nv, finite=False),
            **{
                name: None if value is None else checks.per_coordinate(f"the {name} of limits of {what}", value, nq)
                for name, value in (("stiffness", self.stiffness), ("damping", self.damping))
            },
        )


@dataclass(frozen=True)
class Mimic:
    """A joint that follows another: ``q = ratio * q_of(joint) + offset``, like gears, but without a place where teeth
    mesh: the forces of teeth are not among the loads of bearings.
    """

    joint: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        checks.checked_name("joint to mimic", self.joint)
        object.__setattr__(self, "ratio", checks.checked_number("the ratio of a mimic joint", self.ratio))
        object.__setattr__(self, "offset", checks.checked_number("the offset of a mimic joint", self.offset))


class Place(NamedTuple):
    """Slices of a joint in q and v. Its own coordinates are ``ratio * q[..., q_index] + offset`` and ``ratio * v[...,
    v_index]``, with ratio 1 and offset 0 except for mimic joints.
    """

    joint: str
    q_index: slice
    v_index: slice
    ratio: float
    offset: float

    def positions(self, q: Any) -> Any:
        """(..., n): the joint's own coordinates."""
        return self.ratio * np.asarray(q)[..., self.q_index] + self.offset

    def velocities(self, v: Any) -> Any:
        """(..., n): the joint's own velocities."""
        return self.ratio * np.asarray(v)[..., self.v_index]

    def q_at(self, positions: Any) -> Any:
        """The numbers in q at ``q_index`` that bring the joint to ``positions``."""
        return (np.asarray(positions, dtype=float) - self.offset) / self._divisor

    def v_at(self, velocities: Any) -> Any:
        """The numbers in v at ``v_index`` that give the joint these ``velocities``."""
        return np.asarray(velocities, dtype=float) / self._divisor

    @property
    def _divisor(self) -> float:
        if self.ratio == 0.0:
            raise MechanismError(f"joint {self.joint!r} follows another with the ratio 0: nothing can move it")
        return self.ratio


@dataclass(frozen=True, eq=False)
class Body(Constant):
    """One moving link with everything welded to it, and the joint that moves it.

    link, joint          names
    kind                 the joint: what it can do
    parent               index of the parent body, -1 for the ground
    rotation, position   pose of the joint frame in the parent body's link frame; at zero coordinates the body's own
                         link frame coincides with it
    mass, com, inertia   of link and welded links; inertia about com, both along the axes of the link frame
    armature, damping, friction, stiffness   tuples of ``kind.nv`` numbers
    rest                 tuple of ``kind.nq`` numbers: where a spring of that stiffness is at rest
    limits               tuples of ``kind.nq`` (lower, upper) and ``kind.nv`` (velocity, effort) numbers
    mimic                the independent joint that this one follows, if it has no coordinate of its own
    """

    link: str
    joint: str
    kind: Joint
    parent: int
    rotation: NDArray[np.float64]
    position: NDArray[np.float64]
    mass: float
    com: NDArray[np.float64]
    inertia: NDArray[np.float64]
    armature: tuple[float, ...]
    damping: tuple[float, ...]
    friction: tuple[float, ...]
    limits: Limits
    mimic: Mimic | None = None
    stiffness: Any = 0.0
    rest: Any = None

    def __post_init__(self) -> None:
        label = f"link {self.link!r}"
        joint = f"joint {self.joint!r}"
        nv = self.kind.nv
        for attribute, value in (
            ("link", checks.checked_name("link", self.link)),
            ("joint", checks.checked_name("joint", self.joint)),
            ("parent", int(self.parent)),
            ("rotation", checks.checked_rotation(f"the rotation of {joint}", self.rotation)),
            ("position", checks.checked_array(f"the position of {joint}", self.position, (3,))),
            ("mass", checks.checked_number(f"the mass of {label}", self.mass)),
            ("com", checks.checked_array(f"the centre of mass of {label}", self.com, (3,))),
            ("inertia", checks.checked_inertia(f"the inertia of {label}", self.inertia)),
            ("armature", checks.per_coordinate(f"the armature of {joint}", self.armature, nv)),
            ("damping", checks.per_coordinate(f"the damping of {joint}", self.damping, nv)),
            ("friction", checks.per_coordinate(f"the friction of {joint}", self.friction, nv)),
            ("limits", self.limits.per_coordinate(joint, self.kind.nq, nv)),
            ("stiffness", checks.per_coordinate(f"the stiffness of {joint}", self.stiffness, nv)),
            ("rest", checks.rest_position(f"the rest of {joint}", self.rest, self.kind)),
        ):
            object.__setattr__(self, attribute, value)
        checks.require_finite_moments(label, self.mass, self.com, self.inertia)

    @property
    def pose(self) -> Pose:
        """Rotation and position of the joint's fixed side in the link frame of the parent."""
        return self.rotation, self.position

    @property
    def nq(self) -> int:
        """Number of own position coordinates: 0 for a joint that mimics another."""
        return 0 if self.mimic else self.kind.nq

    @property
    def nv(self) -> int:
        """Number of own velocity coordinates: 0 for a joint that mimics another."""
        return 0 if self.mimic else self.kind.nv

    @cached_property
    def resists_its_joint(self) -> bool:
        """Whether the inertia of this link alone, with the armature, resists every motion of its joint."""
        return resistance.resists_its_joint(self)


@dataclass(frozen=True, eq=False, repr=False)
class Frame(Constant):
    """A named frame fixed to a body: every link, moving or welded, and the ground.

    body                 index of its body, -1 for the ground
    rotation, position   its pose in that body's link frame
    link                 name of the moving link of the body, or "ground"; set by the mechanism
    """

    name: str
    body: int
    rotation: NDArray[np.float64]
    position: NDArray[np.float64]
    link: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        label = f"frame {self.name!r}"
        object.__setattr__(self, "rotation", checks.checked_rotation(f"the rotation of {label}", self.rotation))
        object.__setattr__(self, "position", checks.checked_array(f"the position of {label}", self.position, (3,)))

    @property
    def pose(self) -> Pose:
        """Rotation and position in the body's link frame."""
        return self.rotation, self.position

    def __repr__(self) -> str:
        turned = "" if (self.rotation == np.eye(3)).all() else f", rotation={self.rotation.tolist()}"
        carrier = self.link or f"body {self.body}"
        return f"<Frame {self.name!r} on {carrier!r}: position={tuple(self.position.tolist())}{turned}>"


@dataclass(frozen=True, eq=False)
class Loop(Constant):
    """A joint that closes a loop, or a contact: the frame ``pose_a`` on ``link_a`` is its fixed side, ``pose_b`` on
    ``link_b`` the moving one. Links are frame names, poses ``(rotation, position)`` in those frames.

    With a ``drive`` the one number of a closure, such as that of ``Distance``, follows a function of time.
    """

    name: str
    kind: LoopKind
    link_a: str
    pose_a: Pose
    link_b: str
    pose_b: Pose
    drive: Drive | Instant | None = field(default=None, repr=False)

    def __post_init__(self) -> None:
        checks.checked_name("loop", self.name)
        checks.checked_loop_kind(f"loop {self.name!r}", self.kind)
        if not self.kind.n_constraints:
            raise MechanismError(
                f"loop {self.name!r}: a joint with six degrees of freedom closes nothing; leave it out"
            )
        if self.drive is not None and self.n_constraints != 1:
            raise MechanismError(
                f"loop {self.name!r}: a drive moves one number, and this loop has {self.n_constraints} constraints: "
                "drive a Distance, or a joint with a coupling"
            )
        object.__setattr__(self, "drive", checked_drive(f"loop {self.name!r}", self.drive))
        object.__setattr__(self, "pose_a", checked_pose(f"pose_a of loop {self.name!r}", self.pose_a))
        object.__setattr__(self, "pose_b", checked_pose(f"pose_b of loop {self.name!r}", self.pose_b))

    @property
    def links(self) -> tuple[str, ...]:
        """Links or frames that it joins: those that carry sides A and B."""
        return self.link_a, self.link_b

    @property
    def is_linear(self) -> bool:
        """Whether its Jacobian is constant."""
        return False

    @property
    def holds_frame(self) -> bool:
        """Whether the loop holds a frame where it is (``hold_frames``, ``hold_contacts``)."""
        return self.name.startswith(HELD)

    @property
    def n_constraints(self) -> int:
        """Number of scalar constraints: 6 minus the degrees of freedom of a joint."""
        return self.kind.n_constraints

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """For each constraint whether it is on positions; constraints on velocities come last."""
        still = Matrix3(*(Vector3(*row) for row in np.eye(3).tolist())), Vector3(0.0, 0.0, 0.0)
        positions = len(self.kind.closure(*still))
        return (True,) * positions + (False,) * (self.n_constraints - positions)

    def bodies_within(self, mech: Mechanism) -> tuple[int, ...]:
        """Bodies whose joints move the two sides relative to each other, ascending: without common ancestors and side
        branches.
        """
        paths = (set(mech.tree.path(mech.frame(link).body)) for link in (self.link_a, self.link_b))
        return tuple(sorted(set.symmetric_difference(*paths)))

    def check(self, mech: Mechanism) -> None:
        """Raise if links of the loop are unknown or belong to one rigid body."""
        for link in (self.link_a, self.link_b):
            if link not in mech.frames:
                raise MechanismError(
                    f"loop {self.name!r}: there is no link or frame {link!r}: " + checks.did_you_mean(link, mech.frames)
                )
        if mech.frames[self.link_a].body == mech.frames[self.link_b].body:
            raise MechanismError(
                f"loop {self.name!r}: {self.link_a!r} and {self.link_b!r} are parts of the same rigid body, so "
                "there is no loop to close"
            )


@dataclass(frozen=True, eq=False)
class Coupling(Constant):
    """Joints that gears, belts or cams tie together: the sum of ratio times coordinate over ``ratios``, or a
    ``relation`` of the coordinates, equals ``offset``.

    ratios   {joint name: ratio}, kept as ((joint, ratio), ...); each joint has one coordinate whose rate is its
             velocity, own coordinates of mimic joints count.  A ratio may be a function of {joint name: coordinate}
             of these joints, written with ``linkwise.mechanics.scalar``: then only velocities are constrained: the sum
             of ratio times velocity is zero, or the velocity of the drive

    drive    a function of time: the sum equals ``offset`` plus its position, or the rate of the sum its velocity
    keeps_position   whether positions are constrained; not if a drive has only a velocity
    relation   instead of the sum, a function of {joint name: coordinate} written in the same way, or text: cams,
               gears that are not round, curves.  ``ratios`` are then names of joints; kept as its partial derivatives

    It is one constraint, among the loops in ``mech.loops``. ``Mimic`` lets one joint follow one other without a
    constraint.
    """

    name: str
    ratios: Any
    offset: float = 0.0
    drive: Drive | Instant | None = field(default=None, repr=False)
    keeps_position: bool = field(default=True, repr=False)
    relation: Any = field(default=None, repr=False)

    def __post_init__(self) -> None:
        label = f"coupling {checks.checked_name('coupling', self.name)!r}"
        if isinstance(self.relation, (str, list, tuple)):
            object.__setattr__(self, "relation", Formula(self.relation))
        if self.relation is not None:
            object.__setattr__(self, "ratios", self._derivatives(label, self.relation))
        try:
            items = tuple(self.ratios.items() if isinstance(self.ratios, Mapping) else self.ratios)
            ratios = tuple(
                (joint, ratio if callable(ratio) else checks.checked_number(f"a ratio of {label}", ratio))
                for joint, ratio in items
            )
        except (TypeError, ValueError) as error:
            if isinstance(error, MechanismError):
                raise
            raise MechanismError(f"{label}: ratios are {{joint name: ratio}}, not {self.ratios!r}") from None
        joints = [checks.checked_name(f"joint of {label}", joint) for joint, _ in ratios]
        if len(set(joints)) < len(joints) or not any(ratio for _, ratio in ratios):
            raise MechanismError(f"{label} needs a ratio for each of its joints, one of them not zero: {self.ratios!r}")
        object.__setattr__(self, "ratios", ratios)
        object.__setattr__(self, "offset", checks.checked_number(f"the offset of {label}", self.offset))
        object.__setattr__(self, "drive", checked_drive(label, self.drive))
        of_velocities = self.ratios_change and self.relation is None
        if of_velocities and isinstance(self.drive, Drive) and self.drive.position is not None:
            raise MechanismError(f"{label} has ratios that change, and follows no position: give its drive a velocity")
        if of_velocities or (isinstance(self.drive, Drive) and self.drive.position is None):
            object.__setattr__(self, "keeps_position", False)

    def _derivatives(self, label: str, relation: Any) -> tuple[tuple[str, Any], ...]:
        """The partial derivatives of the relation as ratios."""
        if not callable(relation):
            raise MechanismError(f"{label}: a relation is a function of {{joint name: coordinate}}, not {relation!r}")
        items = checks.names_of(self.ratios) if isinstance(self.ratios, str) else tuple(self.ratios)
        joints = [item if isinstance(item, str) else item[0] for item in items]
        return tuple((joint, PartialDerivative(relation, joint)) for joint in joints)

    @property
    def n_constraints(self) -> int:
        """Number of scalar constraints: one."""
        return 1

    @property
    def links(self) -> tuple[str, ...]:
        """Links or frames that it joins: none, as it acts on joints."""
        return ()

    @property
    def is_linear(self) -> bool:
        """Whether its Jacobian is constant."""
        return not self.ratios_change

    @property
    def ratios_change(self) -> bool:
        """Whether the ratios depend on coordinates."""
        return any(callable(ratio) for _, ratio in self.ratios)

    def ratios_at(self, coordinates: Sequence[Any]) -> list[Any]:
        """Ratios at these joint coordinates; numbers of any type."""
        named = self._named(coordinates)
        return [ratio(named) if callable(ratio) else ratio for _, ratio in self.ratios]

    def value_at(self, coordinates: Sequence[Any]) -> Any:
        """Value of the sum, or of the relation, at these joint coordinates."""
        if self.relation is not None:
            return evaluated(self.relation, self._named(coordinates))
        return dot((ratio for _, ratio in self.ratios), coordinates)

    def _named(self, coordinates: Sequence[Any]) -> dict[str, Any]:
        return {joint: x for (joint, _), x in zip(self.ratios, coordinates, strict=True)}

    @property
    def holonomic(self) -> tuple[bool, ...]:
        """Whether the coupling is on positions: False if only its rate is given."""
        return (self.keeps_position,)

    def bodies_within(self, mech: Mechanism) -> tuple[int, ...]:
        """Bodies whose joints it ties together, ascending."""
        return tuple(sorted(mech.body_index(joint) for joint, ratio in self.ratios if ratio))

    def check(self, mech: Mechanism) -> None:
        """Raise if joints of the coupling are unknown, have several coordinates, or cancel."""
        row = np.zeros(mech.nq)
        for joint, ratio in self.ratios:
            try:
                kind, entry = mech.bodies[mech.body_index(joint)].kind, mech.coordinates.place(joint)
            except MechanismError as error:
                raise MechanismError(f"coupling {self.name!r}: {error}") from None
            if kind.nv != 1 or not kind.rates_are_velocities:
                raise MechanismError(
                    f"coupling {self.name!r}: joint {joint!r} needs one coordinate whose rate is its velocity, and is "
                    f"{kind!r}"
                )
            row[entry.q_index] += 1.0 if callable(ratio) else ratio * entry.ratio
        if not row.any():
            raise MechanismError(
                f"coupling {self.name!r} of {', '.join(repr(joint) for joint, _ in self.ratios)} constrains nothing: "
                "by mimic joints its ratios cancel; leave it out"
            )


@dataclass(frozen=True)
class PartialDerivative:
    """Partial derivative of a relation by one joint coordinate, a function of {joint name: coordinate}."""

    relation: Callable[[dict[str, Any]], Any]
    joint: str

    def __call__(self, named: Mapping[str, Any]) -> Any:
        moving = {**named, self.joint: Jet(named[self.joint], 1.0)}
        return derivatives(evaluated(self.relation, moving))[1]


@dataclass(frozen=True)
class RelationWithLocked:
    """A relation some of whose joints have fixed coordinates."""

    relation: Callable[[dict[str, Any]], Any]
    locked: tuple[tuple[str, float], ...]

    def __call__(self, named: Mapping[str, Any]) -> Any:
        return self.relation({**named, **dict(self.locked)})


def evaluated(relation: Callable[[dict[str, Any]], Any], named: Mapping[str, Any]) -> Any:
    """A relation at coordinates of any kind: numbers, symbols, jets."""
    try:
        return relation(dict(named))
    except MechanismError:
        raise
    except Exception as error:
        raise MechanismError(
            f"a relation of {', '.join(map(repr, named))} could not be evaluated ({type(error).__name__}: {error}): it "
            "takes {joint name: coordinate}, and is made of plain arithmetic and functions of linkwise.extend.scalar "
            "(sin, "
            "cos, sqrt, atan2, select), so that it can be compiled and differentiated"
        ) from error


Constraint = Loop | Coupling


def checked_drive(label: str, drive: Any) -> Drive | Instant | None:
    """``drive`` if it can be one; functions of time become drives."""
    if drive is None or isinstance(drive, (Drive, Instant)):
        return drive
    if callable(drive):
        return Drive(drive)
    raise MechanismError(
        f"{label}: a drive is a function of time or lw.constraints.Drive(position, velocity), not {drive!r}"
    )


def counted_parts(mech: Mechanism) -> str:
    """Numbers of bodies, joints, constraints and contact pairs in words."""
    counts = [f"{mech.n_links} moving link" + "s" * (mech.n_links != 1), f"nq={mech.nq}", f"nv={mech.nv}"]
    tied = [_called(loop) for loop in mech.loops]
    for count, noun in (
        (len(mech.coordinates.mimic_joints), "mimic joint"),
        *((tied.count(noun), noun) for noun in ("loop", "distance rod", "contact", "coupling", "drive")),
        (len(mech.contact_pairs), "contact pair"),
    ):
        if count:
            counts.append(f"{count} {noun}" + "s" * (count > 1))
    return ", ".join([*counts, f"{len(mech.frames)} frames"])


def _called(loop: Constraint) -> str:
    """Noun under which a constraint is counted."""
    if loop.drive is not None:
        return "drive"
    if isinstance(loop, Coupling):
        return "coupling"
    if isinstance(loop.kind, Distance):
        return "distance rod"
    return "contact" if isinstance(loop.kind, Contact) else "loop"
