"""Planar linkages as they are drawn: points in a plane, and links that join them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanics.joints import PinInSlot, Revolute
from linkwise.mechanism import checks
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.model import GROUND

NORMAL = (0.0, 0.0, 1.0)
THICKNESS = 1e-4  # moments about axes in the plane are larger by this share: those of rods about themselves are not
#                   zero, which other programs refuse, and motions in the plane are the same
ON_A_LINE = 1e-9  # of their distance: points of a link that are as near to a line as this make it a single rod


@dataclass(frozen=True)
class Pin:
    """Two links that share a point, or a point of the first in a slot of the second."""

    name: str
    point: str
    links: tuple[str, str]
    slot: tuple[float, float, float] | None = None


class Linkage:
    """A linkage in the plane z = 0.  Links have their frames along the world's axes as it is drawn, at the pin that
    hangs them on the tree, and so all joints are zero there.

    points    name -> (x, y)
    links     name -> names of its points; "ground" has those that are fixed
    slots     point -> (link, direction): that the point slides in
    density   kilograms per metre of the thin rods that links are made of: between their points, all around;
              points on a line make a single one
    """

    def __init__(
        self, points: Mapping[str, Any], links: Mapping[str, Sequence[str]], slots: Mapping[str, Any], density: float
    ) -> None:
        self.points = {
            name: np.append(checks.checked_array(f"point {name!r} of the linkage", at, (2,)), 0.0)
            for name, at in points.items()
        }
        self.links = {name: tuple(own) for name, own in links.items()}
        self.density = checks.checked_number("the density of the linkage", density)
        for link, own in self.links.items():
            self._check_points(link, own)
        if GROUND not in self.links and not any(carrier == GROUND for carrier, _ in slots.values()):
            raise MechanismError('a linkage stands somewhere: give links a "ground" with the points that are fixed')
        self.pins = [*self._shared_points(), *(self._slot(point, *slot) for point, slot in slots.items())]
        unused = [name for name in self.points if not any(name in own for own in self.links.values())]
        if unused:
            raise MechanismError(f"no link of the linkage has point {unused[0]!r}")

    def _check_points(self, link: str, own: Sequence[str]) -> None:
        for point in own:
            if point not in self.points:
                told = checks.did_you_mean(point, list(self.points))
                raise MechanismError(f"link {link!r} of the linkage has a point {point!r} that is not given: {told}")
        if len(set(own)) < len(own):
            raise MechanismError(f"link {link!r} of the linkage has a point twice: {', '.join(own)}")
        if not own or len(own) == 1 and link != GROUND:
            raise MechanismError(
                f"link {link!r} of the linkage needs at least two points, got {', '.join(own) or 'none'}"
            )

    def _shared_points(self) -> list[Pin]:
        found = []
        for point in self.points:
            holders = [link for link, own in self.links.items() if point in own]
            holders.sort(key=lambda link: link != GROUND)
            for number, other in enumerate(holders[1:], start=1):
                found.append(Pin(point if number == 1 else f"{point}{number}", point, (holders[0], other)))
        return found

    def _slot(self, point: str, carrier: str, direction: Any) -> Pin:
        what = f"the slot of point {point!r} of the linkage"
        if carrier != GROUND and carrier not in self.links:
            raise MechanismError(
                f"{what}: there is no link {carrier!r}: {checks.did_you_mean(carrier, list(self.links))}"
            )
        holders = [link for link, own in self.links.items() if point in own]
        if len(holders) != 1 or holders[0] == carrier:
            told = " and ".join(map(repr, holders)) or "none"
            raise MechanismError(f"{what}: the point must belong to one other link, not to {told}")
        x, y = checks.checked_array(what, direction, (2,))
        return Pin(point, point, (carrier, holders[0]), (float(x), float(y), 0.0))

    def add_to(self, builder: Any) -> None:
        """Declare links, joints and loops: a tree from the ground on, and what closes it."""
        origins, depth, waiting = {GROUND: np.zeros(3)}, {GROUND: 0}, list(self.pins)
        while True:
            ready = [pin for pin in waiting if pin.slot is None and sum(link in origins for link in pin.links) == 1]
            if not ready:
                break
            # The nearest to the ground first, so that what is pinned to it moves by joints and not by loops.
            pin = min(ready, key=lambda pin: min(depth.get(link, len(depth)) for link in pin.links))
            parent, child = pin.links if pin.links[0] in origins else pin.links[::-1]
            origins[child], depth[child] = self.points[pin.point], depth[parent] + 1
            self._declare_link(builder, child, origins[child])
            builder.joint(pin.name, Revolute(NORMAL), parent, child, origins[child] - origins[parent])
            waiting.remove(pin)
        lost = [link for link in self.links if link not in origins and link != GROUND]
        if lost:
            raise MechanismError(f"no pins lead from the ground to link {lost[0]!r} of the linkage")
        for pin in waiting:
            at = self.points[pin.point]
            a, b = pin.links
            kind = Revolute(NORMAL) if pin.slot is None else PinInSlot(pin.slot, NORMAL)
            builder.loop(pin.name, kind, a, at - origins[a], b, at - origins[b])
        for point, at in self.points.items():
            link = next(link for link, own in self.links.items() if point in own)
            builder.frame(point, link, at - origins[link])

    def _declare_link(self, builder: Any, link: str, origin: np.ndarray) -> None:
        """A link of thin rods along its outline, of a single one where its points are on a line."""
        corners = _ends_of_line([self.points[point] - origin for point in self.links[link]])
        ends = list(zip(corners, corners[1:] + corners[:1], strict=True))[: 1 if len(corners) == 2 else None]
        masses = np.array([self.density * np.linalg.norm(b - a) for a, b in ends])
        middles = np.array([0.5 * (a + b) for a, b in ends])
        mass = float(masses.sum())
        com = masses @ middles / mass if mass > 0.0 else middles.mean(axis=0)
        inertia = np.zeros((3, 3))
        for rod, middle, (a, b) in zip(masses, middles, ends, strict=True):
            for weight, way in ((1.0 / 12.0, b - a), (1.0, middle - com)):
                inertia += rod * weight * (way @ way * np.eye(3) - np.outer(way, way))
        inertia[[0, 1], [0, 1]] += THICKNESS * inertia[2, 2]
        builder.link(link, mass, com, inertia)


def _ends_of_line(corners: list[np.ndarray]) -> list[np.ndarray]:
    """The two outermost points where all are on a line, all points where they are not."""
    away = np.array(corners) - corners[0]
    along = away[np.argmax(np.linalg.norm(away, axis=1))]
    size = float(np.linalg.norm(along))
    if len(corners) == 2 or np.abs(np.cross(away, along)).max() > ON_A_LINE * size**2:
        return corners
    places = away @ along
    return [corners[int(np.argmin(places))], corners[int(np.argmax(places))]]
