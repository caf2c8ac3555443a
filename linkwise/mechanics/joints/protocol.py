"""The joint protocol: everything that a joint kind supplies.

A joint is described in its canonical frame: the frame of the link it moves, rotated by ``alignment`` so that the
joint's axis is z.  At zero coordinates (``neutral``) the two sides of the joint coincide. Everything a joint computes
is written on scalars, so it can be traced.
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ..scalar import Scalar
from ..spatial import Force, Matrix3, Motion, RigidInertia, Transform, Vector3
from ..spatial.inertia import NO_INERTIA
from ..spatial.motion import NO_MOTION
from . import drawing

Coordinates = Sequence[Scalar]
Alignment = tuple[tuple[float, float, float], ...]  # rows of a 3x3 matrix whose columns are the canonical axes

#: Measure of a number of q; a number of v is the rate of such a measure (of a rotation, for quaternions).
ANGLE, LENGTH, QUATERNION, OTHER = "angle", "length", "quaternion", "other"

UNIT = 4e-16  # tolerance of the length of a normalised axis
IDENTITY_ALIGNMENT: Alignment = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0))


class Measure(NamedTuple):
    """One entry of q or v: its name after the joint's ("" if it is the only one), and its measure."""

    name: str
    of: str


class Step(NamedTuple):
    """A rotation about an axis through the joint's origin, or a translation along it, by ``ratio * q[coordinate]``.

    of      ANGLE or LENGTH
    axis    (3,) of unit length, in the link frame at zero
    name    of a step driven by the coordinate of another step; files without such a joint have it as a mimic joint
            "JOINT.name". "" for the step of the coordinate itself, whose ratio is 1
    """

    of: str
    axis: tuple[float, float, float]
    coordinate: int = 0
    ratio: float = 1.0
    name: str = ""

    @property
    def turns(self) -> bool:
        """Whether the step is a rotation."""
        return self.of == ANGLE


@dataclass(frozen=True)
class FormatEntry:
    """Description of a joint kind in a file format or another library.

    type        the format's word for a joint that moves a link; "" if it has none
    axes        names of the kind's fields that are directions, in the order of the format and of the kind
    numbers     further fields: (field, the format's word, unit of the format per unit of the field)
    unlimited   the word for a joint without limits, if the format has a separate one
    also        further words that are read as this kind
    loop        the word for a joint that closes a loop; "" if it has none
    extension   why other readers cannot read the entry, in words; "" if they can
    along_z     whether other readers always take z as its axis; other axes become several joints
    square      whether its two axes must be perpendicular; others become several joints

    >>> lw.extend.FormatEntry("revolute", ("axis",), unlimited="continuous").words
    ('revolute', 'continuous')
    """

    type: str
    axes: tuple[str, ...] = ()
    numbers: tuple[tuple[str, str, float], ...] = ()
    unlimited: str = ""
    also: tuple[str, ...] = ()
    loop: str = ""
    extension: str = ""
    along_z: bool = False
    square: bool = False

    @property
    def words(self) -> tuple[str, ...]:
        """All words read as this kind for joints that move links."""
        return tuple(word for word in (self.type, self.unlimited, *self.also) if word)

    def directions(self, kind: LoopKind) -> list[tuple[float, float, float]]:
        """The axes of a joint of the kind."""
        return [getattr(kind, name) for name in self.axes]

    def fits(self, kind: LoopKind) -> bool:
        """Whether the format can express this joint as one that moves a link."""
        if not self.type or (self.along_z and not np.array_equal(kind.alignment, IDENTITY_ALIGNMENT)):
            return False
        if not self.square:
            return True
        first, second = self.directions(kind)
        return abs(float(np.dot(first, second))) < 1e-15


def kinds_of_format(name: str) -> dict[str, type[Joint]]:
    """Joint kinds that a format can read, by its keyword: kinds with an axis first, rotations before others, then by
    degrees of freedom. A keyword shared by several kinds belongs to the one defined first.
    """
    entries = [
        (vars(kind)["formats"][name], kind)  # its own attribute: derived kinds may move differently
        for kind in KINDS.values()
        if name in vars(kind).get("formats", {})
    ]
    entries.sort(key=lambda pair: (not pair[0].axes, pair[1].nv, pair[1].rotation_coordinate is None))
    kinds: dict[str, type[Joint]] = {}
    for entry, kind in entries:
        for word in entry.words:
            kinds.setdefault(word, kind)
    return kinds


#: All joint kinds, by ``Joint.kind_name``; a kind defined again replaces the former.
KINDS: dict[str, type[Joint]] = {}


class LoopKind(ABC):
    """A constraint between two links of the tree: a joint that closes a loop, or a contact.

    Its constraints are those of ``closure``, on the pose of side B in side A, followed by those of ``sliding``, on the
    velocity of B relative to A.
    """

    #: Attributes that are lengths.
    lengths: ClassVar[tuple[str, ...]] = ()
    #: Formats of files and libraries -> their description of the kind: "urdf", "sdf", "mjcf", "pinocchio".
    formats: ClassVar[Mapping[str, FormatEntry]] = {}

    @classmethod
    def kind_name(cls) -> str:
        """Name of this kind in files: its class name, with the module's name for classes outside of linkwise."""
        is_built_in = cls.__module__.startswith("linkwise.mechanics.")
        return cls.__name__ if is_built_in else f"{cls.__module__}.{cls.__qualname__}"

    @property
    @abstractmethod
    def n_constraints(self) -> int:
        """Number of constraints of ``closure`` and ``sliding``."""

    @property
    def alignment(self) -> Alignment:
        """Axes of the canonical frame, as columns, in the link frame."""
        return IDENTITY_ALIGNMENT

    @abstractmethod
    def closure(self, rotation: Matrix3, position: Vector3) -> list[Scalar]:
        """Numbers that vanish if this pose of side B in side A is allowed.

        Both sides in canonical axes.  They are metres and sines of angles, smooth everywhere, and independent of each
        other to first order where they vanish.  They vanish at mirror images too: see ``loop_alignment``.
        """

    def sliding(self, rotation: Matrix3, position: Vector3) -> list[Force]:
        """Nonholonomic constraints, metres per second: rows whose product with the motion of B relative to A, at B's
        origin along A's axes, vanishes. They do not restrict positions."""
        return []

    def loop_alignment(self, rotation: Matrix3, position: Vector3) -> Scalar:
        """A number that distinguishes poses with vanishing ``closure``: positive for intended poses, negative for
        mirror images, back to back."""
        return 1.0


@dataclass(frozen=True)
class Joint(LoopKind):
    """One kind of joint.  ``q`` has ``nq`` numbers, the tangent vector ``v`` has ``nv``."""

    nq: ClassVar[int]
    nv: ClassVar[int]
    #: Measures of the numbers of q, for units, tables and pictures; "other" if unspecified.
    position_measures: ClassVar[tuple[Measure, ...]] = ()
    #: Measures of v, unless its numbers are the rates of those of q one by one; each has the name of the number of q
    #: beside which it is drawn.
    velocity_measures: ClassVar[tuple[Measure, ...]] = ()
    #: Rows 0..5 of a spatial vector that the motions span exactly, or None if they span no coordinate subspace.
    span: ClassVar[tuple[int, ...] | None] = None
    #: The joint's motion commutes with translations along the canonical z axis: the link frame may be moved along it.
    slides: ClassVar[bool] = False
    #: Index of a coordinate that is an angle about the canonical z axis, where rotating the link frame about z is the
    #: same as an offset of this coordinate: the joint commutes with such rotations and its H* does not change by them.
    rotation_coordinate: ClassVar[int | None] = None
    #: Attributes, numbers or tuples of numbers, that distinguish joints of the kind in the canonical frame; None if
    #: they differ in other ways.
    canonical_numbers: ClassVar[tuple[str, ...] | None] = None
    #: Indices in v of a linear velocity along axes that the other numbers, an angular velocity, rotate.
    transported: ClassVar[tuple[int, ...]] = ()
    #: Highest order of integration methods supported by ``step_rate`` if steps do not commute.
    step_order: ClassVar[int] = 5

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        KINDS[cls.kind_name()] = cls

    @property
    def n_constraints(self) -> int:
        """6 minus the degrees of freedom."""
        return 6 - self.nv

    @property
    def only_slides(self) -> bool:
        """Whether the joint is a pure translation along the canonical z axis."""
        return self.span == (5,)

    @property
    def only_rotates(self) -> bool:
        """Whether the joint is a pure rotation about the canonical z axis, by its coordinate."""
        return self.span == (2,) and self.rotation_coordinate == 0

    @property
    def steps(self) -> tuple[Step, ...]:
        """Rotations about and translations along axes through the joint's origin, from the parent side on, that compose
        its ``transform``.  Every coordinate has a step of its own, and may drive others.  Empty if there is no such
        decomposition, as for free rotations."""
        return ()

    @property
    def only_step(self) -> Step | None:
        """The only step of a hinge or a slide; None for other kinds."""
        return self.steps[0] if len(self.steps) == 1 and self.steps[0].ratio == 1.0 else None

    @property
    def hinge(self) -> tuple[float, float, float] | None:
        """The axis of a joint that only rotates about it; None for all others."""
        step = self.only_step
        return step.axis if step is not None and step.turns else None

    @property
    def slide(self) -> tuple[float, float, float] | None:
        """The axis of a joint that only slides along it; None for all others."""
        step = self.only_step
        return step.axis if step is not None and not step.turns else None

    @property
    def turning_axis(self) -> tuple[float, float, float] | None:
        """The axis of the joint's only rotation if no translation is coupled to it; else None."""
        turns = [step for step in self.steps if step.turns]
        alone = len(turns) == 1 and [step.coordinate for step in self.steps].count(turns[0].coordinate) == 1
        return turns[0].axis if alone else None

    @property
    def sliding_axis(self) -> tuple[float, float, float] | None:
        """The axis of the joint's only translation; None if it has none or several."""
        slides = [step for step in self.steps if not step.turns]
        return slides[0].axis if len(slides) == 1 else None

    @property
    def is_ball(self) -> bool:
        """Whether q is a unit quaternion [w, x, y, z] alone, and v an angular velocity: a free rotation."""
        return self.nv == 3 and [measure.of for measure in self.position_measures] == [QUATERNION] * 4

    @property
    def is_free(self) -> bool:
        """Whether q is a pose, a unit quaternion [w, x, y, z] and a position, and v the twist along the child's axes:
        an unrestricted motion without a motor."""
        measured = [measure.of for measure in self.position_measures]
        return self.nv == 6 and measured == [QUATERNION] * 4 + [LENGTH] * 3

    def symbol(self) -> drawing.Drawing:
        """Drawing of the joint: pins and rails along its steps, an octahedron without steps."""
        return drawn_by_steps(self.steps)

    def measures(self, quantity: str) -> tuple[Measure, ...]:
        """Measures (angle, length, ...) of the numbers of "q" or "v", one entry each."""
        count = self.nq if quantity == "q" else self.nv
        said = self.position_measures if quantity == "q" else self.velocity_measures or self.position_measures
        return said if len(said) == count else tuple(Measure(str(k + 1), OTHER) for k in range(count))

    @property
    def rates_are_velocities(self) -> bool:
        """Whether dq/dt = v: q is a set of ordinary coordinates. Otherwise H* must be constant: the motions of the
        joint form a group, and v is given along the axes of the moving frame."""
        return type(self).q_rate is Joint.q_rate

    @cached_property
    def structure_constants(self) -> np.ndarray:
        """(nv, nv, nv): c with [E_i, E_j] = sum over k of c[i, j, k] E_k, E the tangent directions. Zero for commuting
        directions, such as ordinary coordinates; for a group they follow from cross products of its motions."""
        constants = np.zeros((self.nv,) * 3)
        if self.rates_are_velocities:
            return constants
        motions = self.motion(self.neutral())
        basis = np.array([m.flat() for m in motions], dtype=float).T
        for i, motion in enumerate(motions):
            for j, other in enumerate(motions):
                bracket = np.array(motion.cross(other).flat(), dtype=float)
                constants[i, j] = np.linalg.lstsq(basis, bracket, rcond=None)[0]
        integers = np.round(constants)
        constants = np.where(
            np.abs(constants - integers) < 1e-12, integers, constants
        )  # without the noise of the solution
        constants.flags.writeable = False
        return constants

    @property
    def steps_commute(self) -> bool:
        """Whether two steps (``integrate``) commute."""
        return not self.structure_constants.any()

    @property
    def canonical_kind(self) -> Hashable:
        """A key, equal for joints that act alike in their canonical frames up to their ``canonical_numbers``."""
        return self if self.canonical_numbers is None else type(self)

    def with_canonical_numbers(self, values: Sequence[Any]) -> Joint:
        """A joint of the kind with other ``canonical_numbers``, which may be symbols."""
        twin = copy.copy(self)
        twin.__dict__.update(zip(self.canonical_numbers or (), values, strict=True))
        return twin

    @abstractmethod
    def transform(self, q: Coordinates) -> Transform:
        """The transform from the parent side of the joint to the child side."""

    @abstractmethod
    def motion(self, q: Coordinates) -> tuple[Motion, ...]:
        """The columns of H*: relative motion of the child per unit of each v, in the child frame."""

    def motion_rate(self, q: Coordinates, v: Coordinates) -> tuple[Motion, ...]:
        """Rates of change of the columns of H*, as components in the child frame; zero for joints with constant H."""
        return (NO_MOTION,) * self.nv

    def regroupable(self, inertia: RigidInertia) -> RigidInertia:
        """The part of a link's inertia that may be assigned to its parent: it does not resist the joint, and is
        constant in the parent at every position of the joint (the base parameters of identification)."""
        return NO_INERTIA

    def q_rate(self, q: Coordinates, v: Coordinates) -> list[Scalar]:
        """dq/dt = N(q) v."""
        return list(v)

    def neutral(self) -> tuple[float, ...]:
        return (0.0,) * self.nq

    def integrate(self, q: Coordinates, v: Coordinates, dt: Scalar) -> list[Scalar]:
        """The configuration reached from q by moving with constant v for dt; exact on the manifold."""
        return [a + b * dt for a, b in zip(q, v, strict=True)]

    def difference(self, q0: Coordinates, q1: Coordinates) -> list[Scalar]:
        """The constant v that takes q0 to q1 in unit time: integrate(q0, difference(q0, q1), 1) is q1."""
        return [b - a for a, b in zip(q0, q1, strict=True)]

    def kick_bias(self, v: Coordinates) -> list[Scalar]:
        """The rate of v along non-rotating axes, less dv/dt: zero except for ``transported`` numbers. Splitting methods
        change this vector, then ``drift`` turns the axes."""
        return [0.0] * self.nv

    def drift(self, q: Coordinates, v: Coordinates, dt: Scalar) -> tuple[list[Scalar], list[Scalar]]:
        """q and v after moving for dt without acceleration: v is constant except for ``transported`` numbers, the
        components of a constant vector along rotating axes."""
        return self.integrate(q, v, dt), list(v)

    def step_rate(self, step: Coordinates, v: Coordinates) -> list[Scalar]:
        """Rate of the step u(t) for which integrate(q0, u, 1) moves with v. It is v for commuting steps; otherwise the
        inverse derivative of the exponential (dexp^-1), v + [u, v] / 2 + [u, [u, v]] / 12, without the term -[u, [u,
        [u, [u, v]]]] / 720 and later ones. In a step of dt, u is v dt up to dt^2, so [u, v] is of order dt^2 and the
        omitted terms of order dt^5: methods of up to fifth order (``step_order``) keep their order."""
        if self.steps_commute:
            return list(v)
        bent = self._bracket(step, v)
        twice = self._bracket(step, bent)
        return [x + y * 0.5 + z * (1.0 / 12.0) for x, y, z in zip(v, bent, twice, strict=True)]

    def _bracket(self, a: Coordinates, b: Coordinates) -> list[Scalar]:
        """[a, b] of two tangent vectors."""
        total: list[Scalar] = [0.0] * self.nv
        for i, j, k in np.argwhere(self.structure_constants).tolist():
            total[k] = total[k] + a[i] * b[j] * float(self.structure_constants[i, j, k])
        return total

    @classmethod
    def drawn(cls, rng: np.random.Generator) -> Joint:
        """A joint of this kind with random parameters, for random trees."""
        return cls()

    def random(self, rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
        """Random coordinates of shape ``shape + (nq,)``."""
        return rng.uniform(-math.pi, math.pi, (*shape, self.nq))


def drawn_by_steps(steps: Sequence[Step]) -> drawing.Drawing:
    """A pin for every rotation, a slider for every translation."""
    if not steps:
        return drawing.Drawing((drawing.Octahedron(1.0),), colour=drawing.UNKNOWN)
    turns, slides = ([step.axis for step in steps if step.turns is turning] for turning in (True, False))
    pins = tuple(drawing.Cylinder(axis, 0.8, 2.6) for axis in turns)
    sliders = tuple(drawing.Box(axis, (0.9, 0.9, 1.9)) for axis in slides)
    return drawing.Drawing(
        pins or sliders,
        tuple(drawing.Rail(axis, 3.4) for axis in slides),
        centre_lines=tuple(drawing.CentreLine(axis, 3.4) for axis in turns),
        colour=drawing.SLIDING if slides else drawing.PLAIN,
    )


def rotation_error(rotation: Matrix3) -> list[Scalar]:
    """The sine of the angle times the axis of a rotation, three numbers: zero for the identity and for half a turn."""
    x, y, z = rotation
    return [0.5 * (z.y - y.z), 0.5 * (x.z - z.x), 0.5 * (y.x - x.y)]


def rotation_cosine(rotation: Matrix3) -> Scalar:
    """The cosine of the angle of a rotation."""
    return 0.5 * (rotation.x.x + rotation.y.y + rotation.z.z - 1.0)


def unit_axis(axis: Sequence[float], label: str) -> tuple[float, float, float]:
    """``axis`` as three floats of unit length; raises ValueError otherwise."""
    try:
        values = np.asarray(axis, dtype=float)
    except (TypeError, ValueError):
        raise ValueError(f"{label} must be 3 numbers such as (0, 0, 1), got {axis!r}") from None
    if values.shape != (3,):
        raise ValueError(f"{label} must be 3 numbers, got shape {values.shape}")
    length = float(np.linalg.norm(values))
    if not math.isfinite(length) or length == 0.0:
        raise ValueError(f"{label} must be finite and not zero, got {tuple(values.tolist())}")
    unit = values / length if abs(length - 1.0) > UNIT else values  # an axis that was normalised stays unchanged
    x, y, z = np.where(np.abs(unit) < 1e-15, 0.0, unit).tolist()  # noise of the caller's computation
    return (x, y, z)


def align_z(axis: Sequence[float]) -> Alignment:
    """A right-handed frame (columns) whose z is ``axis``; a signed permutation when ``axis`` is a coordinate axis."""
    return _aligned(tuple(axis))


@lru_cache(maxsize=1024)  # trees request it repeatedly
def _aligned(axis: tuple[float, ...]) -> Alignment:
    z1, z2, z3 = map(float, axis)
    sizes = [abs(z1), abs(z2), abs(z3)]
    x = [0.0, 0.0, 0.0]
    if sizes.count(0.0) == 2:  # a coordinate axis: permute the others
        x[(sizes.index(max(sizes)) + 1) % 3] = 1.0
    else:  # across the coordinate axis that is farthest from it
        k = sizes.index(min(sizes))
        across = [(i == k) - z * axis[k] for i, z in enumerate((z1, z2, z3))]
        length = math.hypot(*across)
        x = [value / length for value in across]
    x1, x2, x3 = x
    y1, y2, y3 = z2 * x3 - z3 * x2 + 0.0, z3 * x1 - z1 * x3 + 0.0, z1 * x2 - z2 * x1 + 0.0
    return (x1, y1, z1), (x2, y2, z2), (x3, y3, z3)


def align_xz(first: Sequence[float], second: Sequence[float]) -> tuple[Alignment, tuple[float, float, float]]:
    """For two unit axes that are not parallel: the frame (columns) whose z is ``second`` and whose x is in the plane of
    both, and ``first`` in it, (sin b, 0, cos b) with b the angle between them."""
    x_side, z = np.array(first), np.array(second)
    x = x_side - z * (x_side @ z)
    x = x / np.linalg.norm(x) + 0.0
    y = np.cross(z, x) + 0.0
    frame = tuple((float(a), float(b), float(c)) for a, b, c in zip(x, y, z, strict=True))
    along = float(x_side @ z)
    if abs(along) < UNIT:  # the rounding error of perpendicular axes
        return frame, (1.0, 0.0, 0.0)
    return frame, (float(np.linalg.norm(np.cross(first, second))), 0.0, along)
