"""Springs, dampers, cylinders, gears and rods without mass as lines in the world.  No matplotlib here.

Struts (``lw.forces.Passive``) are drawn between their points: springs as zigzags, dampers as pistons in cups, cylinders
as barrels with rods; springs at joints as spirals.  Joints on one link that gears tie together, mimic joints and
couplings of two, have pitch circles where their axes are parallel, a belt where they rotate the same way, and a dashed
line otherwise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from .shapes import Mesh, join, tubes

if TYPE_CHECKING:
    from .skeleton import JointMark

PARALLEL = 1e-6
ROD = "rod"
COILS, SPIRAL_TURNS, CIRCLE = 7, 2.5, 61
#: Polylines of struts: along the way, from 0 to 1, and beside it, in units of the size of symbols.
SYMBOLS: dict[str, list[tuple[Sequence[float], Sequence[float]]]] = {
    ROD: [([0.0, 1.0], [0.0, 0.0])],
    "spring": [
        (
            [0.0, *np.linspace(0.2, 0.8, 2 * COILS + 1), 1.0],
            [0.0, 0.0, *((-1.0) ** k for k in range(2 * COILS - 1)), 0.0, 0.0],
        )
    ],
    "damper": [
        ([0.0, 0.5], [0.0, 0.0]),
        ([0.5, 0.5], [-0.7, 0.7]),
        ([0.4, 0.62, 0.62, 0.4], [-1.0, -1.0, 1.0, 1.0]),
        ([0.62, 1.0], [0.0, 0.0]),
    ],
    "cylinder": [
        ([0.0, 0.1], [0.0, 0.0]),
        ([0.1, 0.6, 0.6, 0.1, 0.1], [-1.0, -1.0, 1.0, 1.0, -1.0]),
        ([0.45, 0.45], [-1.0, 1.0]),
        ([0.45, 1.0], [0.0, 0.0]),
    ],
}


@dataclass(frozen=True)
class ElementMark:
    """One element, in the world.

    kinds    of a strut: "spring", "damper", "cylinder", "rod", one or several; else "coil", "gear", "belt" or "tie"
    a, b     (3,): its points; of gears the centres
    links    by number, -1 the ground: those that carry a and b; equal for marks fixed to one link
    axis     (3,): of coils and gears
    radii    of gears
    name     of the rod, or of the joint of a spring
    """

    kinds: tuple[str, ...]
    a: np.ndarray
    b: np.ndarray
    links: tuple[int, int] = (-1, -1)
    axis: np.ndarray | None = None
    radii: tuple[float, float] = (0.0, 0.0)
    name: str = ""

    @property
    def of_joints(self) -> bool:
        """Whether it shows springs or gears at joints, not a strut between points of links."""
        return bool(self.name) and self.kinds != (ROD,)

    @property
    def points(self) -> np.ndarray:
        """(n, 3): points that a picture must contain."""
        if self.axis is None or not any(self.radii):
            return np.array([self.a, self.b])
        directions = [side * way for way in _across(self.axis, self.b - self.a) for side in (-1.0, 1.0)]
        wheels = zip((self.a, self.b), self.radii, strict=True)
        return np.array([centre + radius * way for centre, radius in wheels for way in directions])


def element_marks(
    mech: lw.Mechanism, passive: Any, world: np.ndarray, joints: Sequence[JointMark]
) -> list[ElementMark]:
    """All elements of a mechanism and of ``passive``; ``world`` are poses of links, the ground's last."""
    marks, elements = [], getattr(passive, "elements", ())
    for element in elements:
        if not hasattr(element, "link_a"):
            continue
        ends, frames = [], [mech.frame(link) for link in (element.link_a, element.link_b)]
        for frame, point in zip(frames, (element.point_a, element.point_b), strict=True):
            pose = world[frame.body]
            ends.append(pose[:3, :3] @ (frame.rotation @ np.array(point) + frame.position) + pose[:3, 3])
        kinds: tuple[str, ...] = ("spring",) if element.stiffness else ()
        kinds += ("cylinder",) if element.push else ("damper",) if element.damping else ()
        marks.append(ElementMark(kinds or ("damper",), ends[0], ends[1], (frames[0].body, frames[1].body)))
    by_joint = {mark.name: mark for mark in joints}
    at_joints = [element.joint for element in elements if type(element).__name__ == "Spring"]
    springs = [by_joint[j] for j in (at_joints if passive is not None else mech.forces.active.get("springs", ()))]
    for mark in springs:
        if mark.kind.hinge:
            axis = mark.end[:3, :3] @ np.array(mark.kind.hinge)
            marks.append(ElementMark(("coil",), mark.origin, mark.origin, (mark.body,) * 2, axis, name=mark.name))
    for mark in springs:
        if mark.travel is not None:  # from the end of the guide to the slider
            marks.append(ElementMark(("spring",), mark.guide[0], mark.origin, (-1, mark.body), name=mark.name))
    for a, b, ratio in _tied_joints(mech):
        marks.append(_gear(by_joint[a], by_joint[b], ratio, mech.tree.parents[mech.body_index(a)]))
    return marks


def _tied_joints(mech: lw.Mechanism) -> Iterator[tuple[str, str, float]]:
    """(joint, joint, how much faster the second is) on one link: mimic joints, and couplings of two."""
    tied = [(body.mimic.joint, body.joint, body.mimic.ratio) for body in mech.bodies if body.mimic]
    couplings = [loop for loop in mech.loops if isinstance(loop, lw.constraints.Coupling) and not loop.ratios_change]
    for loop in (loop for loop in couplings if len(loop.ratios) == 2):
        (a, first), (b, second) = tuple(loop.ratios)
        tied.append((a, b, -first / second if second else 0.0))
    for a, b, ratio in tied:
        if ratio and mech.tree.parents[mech.body_index(a)] == mech.tree.parents[mech.body_index(b)]:
            yield a, b, ratio


def _gear(a: JointMark, b: JointMark, ratio: float, carrier: int) -> ElementMark:
    """Pitch circles that touch for opposite rotations, or have a belt for equal ones; otherwise a tie."""
    tie = ElementMark(("tie",), a.origin, b.origin, (a.body, b.body), name=a.name)
    axes = [m.end[:3, :3] @ np.array(m.kind.hinge) if m.kind.hinge else None for m in (a, b)]
    if axes[0] is None or axes[1] is None or np.linalg.norm(np.cross(axes[0], axes[1])) > PARALLEL:
        return tie
    speed = ratio * float(axes[0] @ axes[1])
    across = b.origin - a.origin
    across = across - (across @ axes[0]) * axes[0]
    distance = float(np.linalg.norm(across))
    if distance < PARALLEL:
        return tie
    share = abs(speed) / (1.0 + abs(speed))  # the faster wheel is the smaller one
    scale = distance if speed < 0.0 else 0.5 * distance
    kind = "gear" if speed < 0.0 else "belt"
    radii = share * scale, (1.0 - share) * scale
    return ElementMark((kind,), a.origin, b.origin, (carrier, carrier), axes[0], radii, name=a.name)


# -- lines -----------------------------------------------------------------------------------------------------


def element_lines(marks: Iterable[ElementMark], size: float, normal: np.ndarray) -> dict[str, list[np.ndarray]]:
    """Polylines (k, 3) by their style, "solid" or "dashed"; ``normal`` points at the eye."""
    lines: dict[str, list[np.ndarray]] = {"solid": [], "dashed": []}
    for mark in marks:
        if mark.kinds == ("tie",):
            lines["dashed"].append(np.array([mark.a, mark.b]))
        elif mark.axis is not None:
            lines["solid" if mark.kinds == ("coil",) else "dashed"] += _joint_lines(mark, mark.axis, size)
        else:
            lines["solid"] += _strut_lines(mark, size, normal)
    return lines


def _joint_lines(mark: ElementMark, axis: np.ndarray, size: float) -> list[np.ndarray]:
    """A spiral spring, two pitch circles, or two with a belt."""
    x, y = _across(axis, mark.b - mark.a)
    if mark.kinds == ("coil",):
        angles = np.linspace(0.0, 2.0 * np.pi * SPIRAL_TURNS, 24 * int(SPIRAL_TURNS) + 1)
        radii = size * np.linspace(1.3, 2.6, len(angles))
        return [mark.a + np.outer(radii * np.cos(angles), x) + np.outer(radii * np.sin(angles), y)]
    angles = np.linspace(0.0, 2.0 * np.pi, CIRCLE)
    ring = np.outer(np.cos(angles), x) + np.outer(np.sin(angles), y)
    second = mark.b - ((mark.b - mark.a) @ axis) * axis  # in the plane of the first
    lines = [mark.a + mark.radii[0] * ring, second + mark.radii[1] * ring]
    if mark.kinds == ("belt",):
        lean = (mark.radii[0] - mark.radii[1]) / float(np.linalg.norm(second - mark.a))
        for side in (-1.0, 1.0):
            way = lean * x + side * np.sqrt(1.0 - lean**2) * y
            lines.append(np.array([mark.a + mark.radii[0] * way, second + mark.radii[1] * way]))
    return lines


def _across(axis: np.ndarray, preferred: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two directions across an axis, the first towards ``preferred`` unless that is along it."""
    for candidate in (preferred, *np.eye(3)):
        x = candidate - (candidate @ axis) * axis
        if np.linalg.norm(x) > PARALLEL:
            x = x / np.linalg.norm(x)
            return x, np.cross(axis, x)
    raise AssertionError("three axes cannot all be along one")


def _strut_lines(mark: ElementMark, size: float, normal: np.ndarray) -> list[np.ndarray]:
    """Each kind of a strut beside the others, joined at their ends."""
    way = mark.b - mark.a
    length = float(np.linalg.norm(way))
    if length < PARALLEL:
        return []
    side, _ = _across(way / length, np.cross(way / length, normal))
    apart = 2.4 * size if len(mark.kinds) > 1 else 0.0
    lines = []
    for k, kind in enumerate(mark.kinds):
        offset = (k - 0.5 * (len(mark.kinds) - 1)) * apart * side
        for along, sideways in SYMBOLS[kind]:
            beside = size * np.array(sideways)
            line = mark.a + np.outer(along, way) + np.outer(beside, side)
            inner = (np.array(along) > 0.0) & (np.array(along) < 1.0)
            lines.append(line + np.outer(inner, offset))
    return lines


LINE, BAR = 0.1, 0.2  # radii, in units of the size of symbols
Ends = tuple[tuple[int, np.ndarray], tuple[int, np.ndarray]]  # links by number, -1 the ground, and points of them


@dataclass(frozen=True, eq=False)
class Strut:
    """Something between two points of links, stretched as they move.

    name     what it is called
    ends     two links, by number, -1 for the ground, with the points (3,) in their frames
    shape    along z, from the origin on
    length   metres: of the shape
    """

    name: str
    ends: Ends
    shape: Mesh
    length: float

    def placed(self, poses: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """(..., 4, 4): from the shape's frame into the world, which stretches it, for poses (..., n_links, 4, 4);
        x is square to ``beside`` (3,) where that is not along the way."""
        world = np.concatenate([poses, np.broadcast_to(np.eye(4), (*poses.shape[:-3], 1, 4, 4))], axis=-3)
        a, b = (world[..., k, :3, :3] @ point + world[..., k, :3, 3] for k, point in self.ends)
        way = b - a
        square = np.cross(way, beside)
        spare = np.cross(way, np.eye(3)[np.argmin(np.abs(beside))])
        square = np.where(np.linalg.norm(square, axis=-1, keepdims=True) > 1e-9, square, spare)
        square = square / np.maximum(np.linalg.norm(square, axis=-1, keepdims=True), 1e-300)
        third = np.cross(way, square) / np.maximum(np.linalg.norm(way, axis=-1, keepdims=True), 1e-300)
        transforms = np.zeros((*way.shape[:-1], 4, 4))
        transforms[..., :3, 0], transforms[..., :3, 1], transforms[..., :3, 2] = square, third, way / self.length
        transforms[..., :3, 3], transforms[..., 3, 3] = a, 1.0
        return transforms


@dataclass(frozen=True, eq=False)
class Fixture:
    """Something fixed to a link, by number, -1 for the ground: spiral springs, gears; in its frame."""

    name: str
    link: int
    shape: Mesh

    def placed(self, poses: np.ndarray, beside: np.ndarray) -> np.ndarray:
        """(..., 4, 4): the pose of its link, from whichever side it is seen."""
        return poses[..., self.link, :, :] if self.link >= 0 else np.eye(4)


def elements_between(
    marks: Iterable[ElementMark], poses: np.ndarray, pin: float
) -> tuple[tuple[Fixture, ...], tuple[Strut, ...]]:
    """Shapes of the elements of a sketch with poses (n_links, 4, 4): fixed to one link, and between two, as long as in
    the sketch.  ``pin`` is the size of symbols of joints in metres."""
    inverse = np.linalg.inv(np.concatenate([poses, np.eye(4)[None]]))
    fixtures, struts = [], []
    for mark in marks:
        kind = " and ".join(mark.kinds)
        name = f"{mark.name}_{kind}" if mark.of_joints else mark.name or kind
        a, b = (
            inverse[k, :3, :3] @ point + inverse[k, :3, 3]
            for k, point in zip(mark.links, (mark.a, mark.b), strict=True)
        )
        if mark.links[0] == mark.links[1]:
            axis = None if mark.axis is None else inverse[mark.links[0], :3, :3] @ mark.axis
            drawn = _tube(replace(mark, a=a, b=b, axis=axis), pin, LINE)
            fixtures.append(Fixture(name, mark.links[0], drawn))
        else:
            length = max(float(np.linalg.norm(mark.b - mark.a)), 1e-6)
            along_z = replace(mark, a=np.zeros(3), b=np.array([0.0, 0.0, length]))
            held = (mark.links[0], a), (mark.links[1], b)
            struts.append(Strut(name, held, _tube(along_z, pin, BAR if mark.kinds == (ROD,) else LINE), length))
    return tuple(fixtures), tuple(struts)


def _tube(mark: ElementMark, pin: float, thickness: float) -> Mesh:
    drawn = element_lines([mark], pin, np.array([0.0, 1.0, 0.0]))
    lines = [line for some in drawn.values() for line in some]
    segments = [np.stack([line[:-1], line[1:]], axis=1) for line in lines]
    return tubes(np.concatenate([np.zeros((0, 2, 3)), *segments]), thickness * pin)


def placed_together(things: Sequence[Fixture | Strut], poses: np.ndarray, beside: np.ndarray) -> Mesh:
    """Fixtures and struts as one mesh in the world, for poses (n_links, 4, 4)."""
    placed = ((thing.shape, thing.placed(poses, beside)) for thing in things)
    return join(Mesh(shape.vertices @ pose[:3, :3].T + pose[:3, 3], shape.faces) for shape, pose in placed)
