"""Collision shapes fixed to links, contact pairs of them, and their contact law.

Contact between shapes is compliant: a force that follows from depth and velocity.  It is no constraint; links that are
held at the ground without giving way are loops (``lw.constraints``).
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanism import checks
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.parts import Constant, Pose
from linkwise.mechanism.poses import checked_pose
from linkwise.mechanism.welding import composed

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

PLANE = "plane"
#: What the numbers of ``size`` are.
SIZES = {
    PLANE: (),
    "sphere": ("radius",),
    "capsule": ("radius", "half length"),
    "cylinder": ("radius", "half length"),
    "box": ("half size along x", "half size along y", "half size along z"),
    "ellipsoid": ("half axis along x", "half axis along y", "half axis along z"),
}
ROUND = ("sphere", "capsule")  # shapes at a distance from a point or a line segment
FLAT = ("cylinder", "box")  # shapes with flat faces and edges, which would rest on each other by several points
WHAT_TOUCHES = (
    "contact acts between planes and other shapes, and among "
    + " and ".join(kind + "s" for kind in SIZES if kind not in (PLANE, *FLAT))
    + ", of these with "
    + " and ".join("cylinders" if kind == "cylinder" else kind + "es" for kind in FLAT)
    + ", and of boxes with boxes that are fixed to the ground"
)
EDGE = 0.002  # of a cylinder, the part of its radius by which its ends are domed and its edges rounded
STUDS, STUDS_AT = 3, 0.9  # points on each end of a cylinder, on which it rests, and how far out they are


@dataclass(frozen=True, eq=False)
class Shape(Constant):
    """A simple shape fixed to a link.

    link         a link or frame, "ground" included
    kind         "plane" (the half-space below z = 0 of its frame), "sphere", "capsule", "cylinder" (both along z),
                 "box", "ellipsoid"
    size         radius; radius and half length (of a capsule without its caps); three half sizes
    pose         of the shape's frame in that of the link
    friction     coefficient of Coulomb's friction; that of a pair is the larger of the two
    category, collides_with   bit masks: two shapes can touch if the category of one meets what the other collides with
                 (``contype`` and ``conaffinity`` of MJCF)
    """

    name: str
    link: str
    kind: str
    size: Any = ()
    pose: Any = None
    friction: float = 1.0
    category: int = 1
    collides_with: int = 1

    def __post_init__(self) -> None:
        label = f"shape {checks.checked_name('shape', self.name)!r}"
        checks.checked_name(f"link of {label}", self.link)
        checks.one_of("kind of shape", self.kind, SIZES)
        size = np.atleast_1d(np.asarray(self.size, dtype=object))
        named = SIZES[self.kind]
        if size.shape != (len(named),):
            needs = ", ".join(named) or "no numbers"
            raise MechanismError(f"the size of {label}, a {self.kind}, is {needs}, not {self.size!r}")
        numbers = checks.checked_array(f"the size of {label}", size, (len(named),))
        if (numbers <= 0.0).any():
            raise MechanismError(f"the size of {label} must be positive, got {self.size!r}")
        for attribute, value in (
            ("size", tuple(numbers.tolist())),
            ("pose", checked_pose(f"the pose of {label}", self.pose)),
            ("friction", _not_negative(f"the friction of {label}", self.friction)),
            ("category", int(self.category)),
            ("collides_with", int(self.collides_with)),
        ):
            object.__setattr__(self, attribute, value)

    def placed(self, mech: Mechanism) -> tuple[int, Pose]:
        """The body that carries the shape (-1: the ground), and the shape's pose in its link frame."""
        frame = mech.frame(self.link)
        return frame.body, composed((frame.rotation, frame.position), self.pose)

    def may_touch(self, other: Shape) -> bool:
        """Whether the collision masks allow contact."""
        return bool(self.category & other.collides_with or other.category & self.collides_with)


@dataclass(frozen=True)
class Bump:
    """A convex part of a shape that can touch a plane: an ellipsoid about ``centre``; points and balls are special
    cases.

    squares   (3, 3): A, so that it reaches sqrt(n . A n) beyond its centre along a unit vector n; the squares of its
              half axes if it lies along the axes
    """

    centre: NDArray[np.float64]
    squares: NDArray[np.float64]

    @property
    def radius(self) -> float | None:
        """Radius of a ball, zero for a point; None for other ellipsoids."""
        square = self.squares[0, 0]
        return math.sqrt(square) if np.array_equal(self.squares, square * np.eye(3)) else None


def bumps(shape: Shape, pose: Pose) -> list[Bump]:
    """The parts of a shape that meet planes, in the frame that its pose is given in: the two end balls of a capsule,
    the corners of a box; the ends of a cylinder as flat ellipsoids within it, on which it rolls, and points around each
    end within its edge, on which it stands."""
    rotation, position = pose
    if shape.kind == "box":
        signs = itertools.product((-1.0, 1.0), repeat=3)
        return [Bump(position + rotation @ (np.array(s) * shape.size), np.zeros((3, 3))) for s in signs]
    if shape.kind == "ellipsoid":
        return [Bump(position, _symmetric(rotation @ np.diag(np.square(shape.size)) @ rotation.T))]
    radius, half = shape.size if len(shape.size) == 2 else (shape.size[0], 0.0)
    if shape.kind == "cylinder":
        flat = min(EDGE * radius, half)
        squares = _symmetric(rotation @ np.diag([radius**2, radius**2, flat**2]) @ rotation.T)
        domes = [Bump(position + rotation[:, 2] * (sign * (half - flat)), squares) for sign in (-1.0, 1.0)]
        angles = 2.0 * np.pi * np.arange(STUDS) / STUDS
        ring = STUDS_AT * radius * np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=-1)
        feet = [rotation @ (foot + [0.0, 0.0, sign * half]) + position for sign in (-1.0, 1.0) for foot in ring]
        return [*domes, *(Bump(foot, np.zeros((3, 3))) for foot in feet)]
    ends = (-half, half) if half else (0.0,)
    return [Bump(position + rotation[:, 2] * end, radius**2 * np.eye(3)) for end in ends]


def _symmetric(matrix: np.ndarray) -> np.ndarray:
    return 0.5 * (matrix + matrix.T)


@dataclass(frozen=True)
class ContactLaw:
    """The force between two shapes at a depth p that grows at the rate u, while the touching points slide at w.

    Along the normal, never pulling (phi is p, rounded off to zero below ``smoothing``; psi(x) is 1 + x of Hunt and
    Crossley where the depth grows, (1 + x / 2)^2 where it shrinks down to zero, and zero beyond):

        f = stiffness phi psi(d u),    d = dissipation

    and along the surface, inside the cone of friction,

        -friction f w / sqrt(w . w + slip_speed^2 + (friction f / damping)^2)

    stiffness     N/m
    dissipation   s/m; zero for no loss along the normal
    damping       N s/m: the largest that friction comes to, however large the load, so that explicit methods can follow
                  it; infinite for none, which "semi_implicit" steps take.  Explicit steps of fixed length bound what
                  stiffness and dissipation come to as well (``ContactPair``)
    friction      coefficient of Coulomb
    slip_speed    m/s: friction is viscous well below, dry well above
    smoothing     m: depth below which the force sets in smoothly; zero for a kink
    margin        m: the distance at which shapes begin to push each other, as if they were so much larger
    """

    stiffness: float
    dissipation: float = 0.0
    damping: float = math.inf
    friction: float = 0.0
    slip_speed: float = 1e-2
    smoothing: float = 0.0
    margin: float = 0.0

    def __post_init__(self) -> None:
        for field in dataclasses.fields(self):
            name = f"the {field.name.replace('_', ' ')} of a contact"
            value = getattr(self, field.name)
            object.__setattr__(self, field.name, _not_negative(name, value, finite=field.name != "damping"))
        for name in ("stiffness", "damping", "slip_speed"):
            if not getattr(self, name) > 0.0:
                raise MechanismError(f"the {name.replace('_', ' ')} of a contact must be positive")


@dataclass(frozen=True)
class ContactPair:
    """Two shapes that push each other apart, by name; where one is a plane it is the second.

    mass      kg: about the least that the contact feels.  Explicit steps take a contact that is soft enough for it
              (``softened``)
    carried   kg: what may rest on the contact.  Implicit steps take a contact that is soft enough for it to settle
              (``settling``)
    load      N: the weight of that.  In explicit steps the spring grows no further from a few times of it on: such
              steps bound what dissipation comes to, and a deep spring would throw things up
    """

    shape_a: str
    shape_b: str
    law: ContactLaw
    mass: float = math.inf
    carried: float = math.inf
    load: float = math.inf

    @property
    def name(self) -> str:
        """By which the pair is switched (``mech.with_acting(contact=...)``)."""
        return f"{self.shape_a}/{self.shape_b}"

    @property
    def shapes(self) -> tuple[str, str]:
        """The two names."""
        return self.shape_a, self.shape_b

    @property
    def step(self) -> float:
        """The longest step in which explicit methods follow the law, in seconds: sqrt(mass / stiffness) / 2."""
        return 0.5 * math.sqrt(self.mass / self.law.stiffness)

    def softened(self, step: float) -> ContactPair:
        """The contact of explicit steps of this length: no stiffer than mass / (2 step)^2, and friction no steeper than
        a damper mass / step."""
        softer = self._no_stiffer(self.mass / (2.0 * step) ** 2)
        return replace(softer, law=replace(softer.law, damping=min(self.law.damping, self.mass / step)))

    def settling(self, step: float) -> ContactPair:
        """The contact of implicit steps of this length: no stiffer than carried / (1.5 step^2).  What rests on it alone
        is then at least three times as deep as it falls in a step; on a stiffer one it would rattle."""
        return self._no_stiffer(self.carried / (1.5 * step**2)) if step > 0.0 else self

    def _no_stiffer(self, most: float) -> ContactPair:
        if not self.law.stiffness > most:
            return self
        smoothing = self.law.smoothing * self.law.stiffness / most
        return replace(self, law=replace(self.law, stiffness=most, smoothing=smoothing))

    @property
    def without_bound(self) -> ContactPair:
        """A copy whose friction is not limited by what explicit methods can resolve: inside its cone it holds up to
        its slip speed.
        """
        return replace(self, law=replace(self.law, damping=math.inf))


def summands(shape: Shape) -> tuple[float, list[NDArray[np.float64]]]:
    """A bounded shape as the sum of a ball and ellipsoids: the radius, and the half axes (3, n) of each in its own
    frame; a disk has two, a line segment one."""
    if shape.kind in ("box", "ellipsoid"):
        axes = np.diag(shape.size)
        return 0.0, np.hsplit(axes, 3) if shape.kind == "box" else [axes]
    radius, *half = shape.size
    segment = [np.array([[0.0], [0.0], [length]]) for length in half]
    return (0.0, [radius * np.eye(3)[:, :2], *segment]) if shape.kind == "cylinder" else (radius, segment)


def is_implicit(mech: Mechanism, pair: ContactPair) -> bool:
    """Whether implicit steps treat a contact implicitly: contacts with what is fixed to the ground, except for those
    among spheres and capsules."""
    a, b = map(mech.contact.shape, pair.shapes)
    return (by_parts(b) or by_supports(a, b)) and b.placed(mech)[0] < 0


def can_touch(mech: Mechanism, a: Shape, b: Shape) -> bool:
    """Whether a contact force is available for two shapes, in the order of ``in_order``. Boxes touch by the corners of
    the first, which is incomplete if the second moves too.
    """
    if are_boxes(a, b):
        return b.placed(mech)[0] < 0
    return a.kind != PLANE and not (a.kind in FLAT and b.kind in FLAT)


def in_order(mech: Mechanism, a: Shape, b: Shape) -> tuple[Shape, Shape]:
    """The two shapes in the order that contacts use: a plane or box second; of two boxes, and of shapes that meet by
    their supports, the one on the ground."""
    if by_supports(a, b):
        return (b, a) if a.placed(mech)[0] < 0 else (a, b)
    on_a_box = a.kind == "box" and (b.kind in ROUND or (b.kind == "box" and a.placed(mech)[0] < 0))
    return (b, a) if a.kind == PLANE or on_a_box else (a, b)


def by_supports(a: Shape, b: Shape) -> bool:
    """Whether shapes touch at one point, found from their support functions (``mechanics/links/convex_distance.py``):
    ellipsoids and cylinders with all but planes."""
    return PLANE not in (a.kind, b.kind) and not {a.kind, b.kind} <= {*ROUND, "box"}


def by_parts(b: Shape) -> bool:
    """Whether elementary parts of a shape touch b separately."""
    return b.kind in (PLANE, "box")


def presses_back(a: Shape, b: Shape) -> bool:
    """Whether corners of box b can press into faces of box a: if the smallest face of b fits into a face of a."""
    return are_boxes(a, b) and all(x < y for x, y in zip(sorted(b.size)[:2], sorted(a.size)[1:], strict=True))


def are_boxes(a: Shape, b: Shape) -> bool:
    """Whether both shapes are boxes, whose edges pass through each other."""
    return a.kind == b.kind == "box"


def check_shapes(mech: Mechanism) -> None:
    """Refuse shapes and pairs that do not fit the mechanism."""
    known: dict[str, Shape] = {}
    for shape in mech.shapes:
        if shape.name in known:
            raise MechanismError(f"two shapes are named {shape.name!r}; names must be unique")
        if shape.link not in mech.frames:
            raise MechanismError(
                f"shape {shape.name!r}: there is no link or frame {shape.link!r}: "
                + checks.did_you_mean(shape.link, mech.frames)
            )
        known[shape.name] = shape
    seen: set[frozenset[str]] = set()
    for pair in mech.contact_pairs:
        label = f"contact between {pair.shape_a!r} and {pair.shape_b!r}"
        for name in pair.shapes:
            if name not in known:
                raise MechanismError(f"{label}: there is no shape {name!r}: " + checks.did_you_mean(name, known))
        a, b = (known[name] for name in pair.shapes)
        if not can_touch(mech, a, b):
            raise MechanismError(
                f"{label}: a {a.kind} and a {b.kind} do not touch: {WHAT_TOUCHES}; a plane or that box comes second"
            )
        if a.placed(mech)[0] == b.placed(mech)[0]:
            raise MechanismError(f"{label}: both are parts of the same rigid body")
        if frozenset(pair.shapes) in seen:
            raise MechanismError(f"{label} is given twice")
        seen.add(frozenset(pair.shapes))


def _not_negative(label: str, value: Any, finite: bool = True) -> float:
    number = math.inf if not finite and value == math.inf else checks.checked_number(label, value)
    if number < 0.0:
        raise MechanismError(f"{label} must not be negative, got {value!r}")
    return number
