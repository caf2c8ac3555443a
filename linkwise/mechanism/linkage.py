"""Planar linkages from drawings: points in a plane, and links that join them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from linkwise.mechanics.joints import PinInSlot, Prismatic, Revolute
from linkwise.mechanism import checks
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.model import GROUND

NORMAL = (0.0, 0.0, 1.0)
THICKNESS = 1e-4  # moments about axes in the plane are larger by this share: those of rods about themselves are not
#                   zero, which other programs refuse, and motions in the plane are the same
NEGLIGIBLE = 1e-9  # of the size of a link: how far points are from lines that they are on, and from each other at one
#                    place


@dataclass(frozen=True)
class Guide:
    """The connection of two links: a pin at a common point, a point of the second in a slot of the first, or a slide
    of the second in the first without rotation.

    name   of the joint or loop
    at     (3,): as drawn
    """

    name: str
    at: np.ndarray
    links: tuple[str, str]
    kind: Revolute | Prismatic | PinInSlot

    @property
    def is_slot(self) -> bool:
        return self.kind.nv == 2


class Linkage:
    """A linkage in the plane z = 0. All joints are zero as drawn: the frame of a link has the world's axes and lies at
    the pin that connects the link to the tree, or at its first point.

    points    name -> (x, y)
    links     name -> names of its points; "ground" has the fixed points
    slots     point -> (link, direction): the slot in which the point slides
    slides    link -> (other link, direction), or several: the link slides along the direction without turning
    density   kilograms per metre of the thin rods along the convex outline of a link's points, in any order; points on
              a line make a single rod
    masses    link -> kilograms, instead of the mass by density
    """

    def __init__(
        self,
        points: Mapping[str, Any],
        links: Mapping[str, Sequence[str]],
        slots: Mapping[str, Any],
        slides: Mapping[str, Any],
        density: float,
        masses: Mapping[str, float],
    ) -> None:
        self.points = {
            name: np.append(checks.checked_array(f"point {name!r} of the linkage", at, (2,)), 0.0)
            for name, at in points.items()
        }
        self.links = {name: tuple(ends) for name, ends in links.items()}
        self.density = checks.checked_number("the density of the linkage", density)
        for link in (*slides, *masses):
            self._require_link(f"the {'slide' if link in slides else 'mass'} of link {link!r} of the linkage", link)
        self.masses = {link: checks.checked_number(f"the mass of link {link!r}", x) for link, x in masses.items()}
        for link, ends in self.links.items():
            self._check_points(link, links[link], ends, alone=link == GROUND or link in slides)
            self._warn_of_one_place(link, ends)
        bases = [carrier for carrier, _ in slots.values()] + [
            x for guides in slides.values() for x, _ in _guide_list(guides)
        ]
        if GROUND not in (*self.links, *bases):
            raise MechanismError('a linkage stands somewhere: give links a "ground" with the points that are fixed')
        self.guides = [
            *self._pins(),
            *(guide for link, several in slides.items() for guide in self._slides(link, several)),
            *(self._slot(point, *slot) for point, slot in slots.items()),
        ]
        unused = [name for name in self.points if not any(name in ends for ends in self.links.values())]
        if unused:
            raise MechanismError(f"no link of the linkage has point {unused[0]!r}")

    def _check_points(self, link: str, written: Sequence[str], points: Sequence[str], alone: bool) -> None:
        for point in points:
            if point not in self.points:
                hint = self._longer_names(written, point) or checks.did_you_mean(point, list(self.points))
                raise MechanismError(f"link {link!r} of the linkage has a point {point!r} that is not given: {hint}")
        if len(set(points)) < len(points):
            raise MechanismError(f"link {link!r} of the linkage has a point twice: {', '.join(points)}")
        if not points or len(points) == 1 and not alone:
            raise MechanismError(
                f"link {link!r} of the linkage needs at least two points, or one and a slide, got "
                f"{', '.join(points) or 'none'}"
            )

    def _longer_names(self, written: Sequence[str], letter: str) -> str:
        """Hint: how to write point names of several letters."""
        if not isinstance(written, str) or not any(letter in name for name in self.points):
            return ""
        names = re.findall("|".join(re.escape(name) for name in sorted(self.points, key=len, reverse=True)), written)
        meant = f": {tuple(names)}" if "".join(names) == written else ""
        return f"a string, {written!r}, names a point by each letter; give longer names as a tuple{meant}"

    def _warn_of_one_place(self, link: str, points: Sequence[str]) -> None:
        positions = np.array(list(self.points.values()))
        least = NEGLIGIBLE * float(np.linalg.norm(np.ptp(positions, axis=0)))
        for a, b in combinations(points, 2):
            if np.linalg.norm(self.points[a] - self.points[b]) <= least:
                checks.warn_caller(
                    f"points {a!r} and {b!r} of link {link!r} of the linkage are at one place, "
                    f"{tuple(self.points[a][:2].tolist())}: correct them, or give a pin that links share one name",
                    checks.MechanismWarning,
                )

    def _require_link(self, label: str, link: str) -> None:
        if link != GROUND and link not in self.links:
            raise MechanismError(f"{label}: there is no link {link!r}: {checks.did_you_mean(link, list(self.links))}")

    def _pins(self) -> list[Guide]:
        guides = []
        for point, at in self.points.items():
            holders = [link for link, points in self.links.items() if point in points]
            holders.sort(key=lambda link: link != GROUND)
            for number, other in enumerate(holders[1:], start=1):
                name = point if number == 1 else f"{point}{number}"
                guides.append(Guide(name, at, (holders[0], other), Revolute(NORMAL)))
        return guides

    def _slides(self, link: str, slides: Any) -> list[Guide]:
        label, guides = f"the slide of link {link!r} of the linkage", []
        for number, (other, direction) in enumerate(_guide_list(slides), start=1):
            self._require_link(label, other)
            if other == link:
                raise MechanismError(f"{label}: it slides in another link, not in itself")
            x, y = checks.checked_array(label, direction, (2,))
            name = f"{link}_slide" if number == 1 else f"{link}_slide{number}"
            guides.append(Guide(name, self.points[self.links[link][0]], (other, link), Prismatic((x, y, 0.0))))
        return guides

    def _slot(self, point: str, carrier: str, direction: Any) -> Guide:
        label = f"the slot of point {point!r} of the linkage"
        self._require_link(label, carrier)
        holders = [link for link, points in self.links.items() if point in points]
        if len(holders) != 1 or holders[0] == carrier:
            links = " and ".join(map(repr, holders)) or "none"
            raise MechanismError(f"{label}: the point must belong to one other link, not to {links}")
        x, y = checks.checked_array(label, direction, (2,))
        return Guide(point, self.points[point], (carrier, holders[0]), PinInSlot((float(x), float(y), 0.0), NORMAL))

    def add_to(self, builder: Any) -> None:
        """Declare links and joints as a tree from the ground on, and loops that close it."""
        origins, depth, waiting = {GROUND: np.zeros(3)}, {GROUND: 0}, list(self.guides)

        def order(guide: Guide) -> tuple[bool, bool, int]:
            # Slots last; then the nearest to the ground, so that what is pinned to it moves by joints and not by loops.
            from_point = guide.is_slot and guide.links[0] not in origins
            return guide.is_slot, from_point, min(depth.get(link, len(depth)) for link in guide.links)

        while ready := [guide for guide in waiting if sum(link in origins for link in guide.links) == 1]:
            guide = min(ready, key=order)
            parent, child = guide.links if guide.links[0] in origins else guide.links[::-1]
            depth[child] = depth[parent] + 1
            origins[child] = self._hang(builder, guide, parent, child, origins[parent])
            waiting.remove(guide)
        lost = [link for link in self.links if link not in origins and link != GROUND]
        if lost:
            raise MechanismError(f"no pins, slots or slides lead from the ground to link {lost[0]!r} of the linkage")
        for guide in waiting:
            a, b = guide.links
            builder.loop(guide.name, guide.kind, a, guide.at - origins[a], b, guide.at - origins[b])
        for point, at in self.points.items():
            holders = [link for link, points in self.links.items() if point in points]
            builder.frame(point, holders[0], at - origins[holders[0]])
            for link in holders if len(holders) > 1 else ():  # forces at a pin act on one of the links that share it
                builder.frame(f"{link}.{point}", link, at - origins[link])

    def _hang(self, builder: Any, guide: Guide, parent: str, child: str, origin: np.ndarray) -> np.ndarray:
        """Declare a link and the joint that moves it; returns the origin (3,) of its frame."""
        kind, name, at = guide.kind, guide.name, guide.at - origin
        if (
            guide.is_slot and parent == guide.links[1]
        ):  # a pin in a slot of the child: the block, which turns and slides
            block = f"{name}_block"
            builder.link(block, 0.0).joint(name, Revolute(NORMAL), parent, block, at)
            parent, kind, name, at = block, Prismatic(kind.steps[0].axis), f"{name}_slide", np.zeros(3)
        elif kind.slide and child != guide.links[1]:
            kind = Prismatic(tuple(-x for x in kind.slide))
        self._declare_link(builder, child, guide.at)
        builder.joint(name, kind, parent, child, at)
        return guide.at

    def _declare_link(self, builder: Any, link: str, origin: np.ndarray) -> None:
        """A link of thin rods along its outline, or a single rod if its points are collinear."""
        corners = _outline(np.array([self.points[point] - origin for point in self.links[link]]))
        ends = list(zip(corners, corners[1:] + corners[:1], strict=True))[: 1 if len(corners) <= 2 else None]
        masses = np.array([self.density * np.linalg.norm(b - a) for a, b in ends])
        middles = np.array([0.5 * (a + b) for a, b in ends])
        drawn = float(masses.sum())
        mass = self.masses.get(link, drawn)
        masses = masses * (mass / drawn) if drawn > 0.0 else masses
        com = masses @ middles / mass if drawn > 0.0 and mass > 0.0 else middles.mean(axis=0)
        inertia = np.zeros((3, 3))
        for rod, middle, (a, b) in zip(masses, middles, ends, strict=True):
            for weight, way in ((1.0 / 12.0, b - a), (1.0, middle - com)):
                inertia += rod * weight * (way @ way * np.eye(3) - np.outer(way, way))
        inertia[[0, 1], [0, 1]] += THICKNESS * inertia[2, 2]
        builder.link(link, mass, com, inertia)


def _guide_list(slides: Any) -> list[Any]:
    """(link, direction), one or several."""
    return [slides] if len(slides) == 2 and isinstance(slides[0], str) else list(slides)


def _outline(points: np.ndarray) -> list[np.ndarray]:
    """Corners of the convex hull of points (n, 3) of the plane, in order. Two, the outermost ones, where all points are
    on a line.
    """
    away = points - points[0]
    along = away[np.argmax(np.linalg.norm(away, axis=1))]
    least = NEGLIGIBLE * (along @ along)
    offsets = away @ along
    first, last = points[np.argmin(offsets)], points[np.argmax(offsets)]

    def corners_between(a: np.ndarray, b: np.ndarray) -> list[np.ndarray]:
        """From a on to b, by the points on the left of the way: the outermost is a corner, and so on on either side."""
        heights = np.cross(b - a, points - a)[:, 2]
        corner = points[np.argmax(heights)]
        return [*corners_between(a, corner), *corners_between(corner, b)] if heights.max() > least else [a]

    return [*corners_between(first, last), *corners_between(last, first)] if along.any() else [first]
