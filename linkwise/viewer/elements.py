"""Springs, dampers, cylinders, gears and rods without mass as lines in the world.  No matplotlib here.

Struts (``lw.forces.Passive``) are drawn between their points: springs as zigzags, dampers as pistons in cups, cylinders
as barrels with rods; springs at joints as spirals.  Joints on one link that gears tie together, mimic joints and
couplings of two, have pitch circles where their axes are parallel, a belt where they rotate the same way, and a dashed
line otherwise.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

if TYPE_CHECKING:
    from .skeleton import JointMark

PARALLEL = 1e-6
ROD = "rod"
COILS, SPIRAL_TURNS, CIRCLE = 7, 2.5, 61


@dataclass(frozen=True)
class ElementMark:
    """One element, in the world.

    kinds    of a strut: "spring", "damper", "cylinder", "rod", one or several; else "coil", "gear", "belt" or "tie"
    a, b     (3,): its points; of gears the centres
    links    by number, -1 the ground: those that carry a and b; twice the same of what is fixed to one link
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
        """Whether it stands for something at joints, and not between points of links."""
        return bool(self.name) and self.kinds != (ROD,)

    @property
    def points(self) -> np.ndarray:
        """(n, 3): what a picture must contain."""
        if self.axis is None or not any(self.radii):
            return np.array([self.a, self.b])
        directions = [side * way for way in _across(self.axis, self.b - self.a) for side in (-1.0, 1.0)]
        wheels = zip((self.a, self.b), self.radii, strict=True)
        return np.array([centre + radius * way for centre, radius in wheels for way in directions])


def element_marks(
    mech: lw.Mechanism, passive: Any, world: np.ndarray, joints: Sequence[JointMark]
) -> list[ElementMark]:
    """All elements of a mechanism and those given besides; ``world`` are poses of links, the ground's last."""
    marks = [_strut(mech, element, world) for element in getattr(passive, "elements", ()) if hasattr(element, "link_a")]
    by_joint = {mark.name: mark for mark in joints}
    at_joints = [element.joint for element in getattr(passive, "elements", ()) if type(element).__name__ == "Spring"]
    springs = at_joints if passive is not None else mech.forces.active.get("springs", ())
    marks += [_coil(by_joint[joint]) for joint in springs if by_joint[joint].kind.hinge]
    marks += [_along_guide(by_joint[joint]) for joint in springs if by_joint[joint].travel is not None]
    for a, b, ratio in _tied(mech):
        marks.append(_gear(by_joint[a], by_joint[b], ratio, mech.tree.parents[mech.body_index(a)]))
    return marks


def _strut(mech: lw.Mechanism, element: Any, world: np.ndarray) -> ElementMark:
    ends, frames = [], [mech.frame(link) for link in (element.link_a, element.link_b)]
    for frame, point in zip(frames, (element.point_a, element.point_b), strict=True):
        pose = world[frame.body]
        ends.append(pose[:3, :3] @ (frame.rotation @ np.array(point) + frame.position) + pose[:3, 3])
    return ElementMark(_kinds_of(element), ends[0], ends[1], (frames[0].body, frames[1].body))


def _kinds_of(strut: Any) -> tuple[str, ...]:
    """What a strut of ``lw.forces.Passive`` is drawn as: one, or several beside each other."""
    kinds = ["spring"] if strut.stiffness else []
    kinds += ["cylinder"] if strut.push else ["damper"] if strut.damping else []
    return tuple(kinds) or ("damper",)


def _coil(mark: JointMark) -> ElementMark:
    axis = mark.end[:3, :3] @ np.array(mark.kind.hinge)
    return ElementMark(("coil",), mark.origin, mark.origin, (mark.body, mark.body), axis, name=mark.name)


def _along_guide(mark: JointMark) -> ElementMark:
    """From the end of a guide to what slides on it."""
    return ElementMark(("spring",), mark.guide[0], mark.origin, (-1, mark.body), name=mark.name)


def _tied(mech: lw.Mechanism) -> Iterator[tuple[str, str, float]]:
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
    """Pitch circles touch where wheels rotate against each other, and have a belt where they rotate the same way."""
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
    """Polylines (k, 3) by how they are drawn: "solid" and "dashed"; ``normal`` points at the eye."""
    lines: dict[str, list[np.ndarray]] = {"solid": [], "dashed": []}
    for mark in marks:
        if mark.axis is not None or mark.kinds == ("tie",):
            kind = mark.kinds[0]
            lines["dashed" if kind != "coil" else "solid"] += _at_joints(mark, kind, size)
        else:
            lines["solid"] += _strut_lines(mark, size, normal)
    return lines


def _at_joints(mark: ElementMark, kind: str, size: float) -> list[np.ndarray]:
    if mark.axis is None:
        return [np.array([mark.a, mark.b])]
    x, y = _across(mark.axis, mark.b - mark.a)
    if kind == "coil":
        angles = np.linspace(0.0, 2.0 * np.pi * SPIRAL_TURNS, 24 * int(SPIRAL_TURNS) + 1)
        radii = size * np.linspace(1.3, 2.6, len(angles))
        return [mark.a + np.outer(radii * np.cos(angles), x) + np.outer(radii * np.sin(angles), y)]
    angles = np.linspace(0.0, 2.0 * np.pi, CIRCLE)
    ring = np.outer(np.cos(angles), x) + np.outer(np.sin(angles), y)
    second = mark.b - ((mark.b - mark.a) @ mark.axis) * mark.axis  # in the plane of the first
    lines = [mark.a + mark.radii[0] * ring, second + mark.radii[1] * ring]
    if kind == "belt":
        lean = (mark.radii[0] - mark.radii[1]) / float(np.linalg.norm(second - mark.a))
        for side in (-1.0, 1.0):
            way = lean * x + side * np.sqrt(1.0 - lean**2) * y
            lines.append(np.array([mark.a + mark.radii[0] * way, second + mark.radii[1] * way]))
    return lines


def _across(axis: np.ndarray, wanted: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Two directions across an axis, the first towards ``wanted`` if that is not along it."""
    for candidate in (wanted, *np.eye(3)):
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
        for along, beside in SHAPES[kind](size):
            line = mark.a + np.outer(along, way) + np.outer(beside, side)
            inner = (np.array(along) > 0.0) & (np.array(along) < 1.0)
            lines.append(line + np.outer(inner, offset))
    return lines


Path = tuple[Sequence[float], Sequence[float]]  # along the way, from 0 to 1, and beside it, metres


def _spring(size: float) -> list[Path]:
    turns = np.linspace(0.2, 0.8, 2 * COILS + 1)
    beside = [0.0, *(size * (-1.0) ** k for k in range(2 * COILS - 1)), 0.0]
    return [([0.0, *turns, 1.0], [0.0, *beside, 0.0])]


def _damper(size: float) -> list[Path]:
    cup = ([0.4, 0.62, 0.62, 0.4], [-size, -size, size, size])
    return [([0.0, 0.5], [0.0, 0.0]), ([0.5, 0.5], [-0.7 * size, 0.7 * size]), cup, ([0.62, 1.0], [0.0, 0.0])]


def _cylinder(size: float) -> list[Path]:
    barrel = ([0.1, 0.6, 0.6, 0.1, 0.1], [-size, -size, size, size, -size])
    piston = ([0.45, 0.45], [-size, size])
    return [([0.0, 0.1], [0.0, 0.0]), barrel, piston, ([0.45, 1.0], [0.0, 0.0])]


def _rod(size: float) -> list[Path]:
    return [([0.0, 1.0], [0.0, 0.0])]


SHAPES: dict[str, Callable[[float], list[Path]]] = {
    "spring": _spring,
    "damper": _damper,
    "cylinder": _cylinder,
    ROD: _rod,
}
