"""Geoms as shapes, and which of them meet: by their masks and not by ``<exclude>``, on bodies that are no parent and
child."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from linkwise.mechanism import PLANE, Pose, Shape
from linkwise.mechanism.shapes import SIZES
from linkwise.readers.mjcf.document import Settings, choice
from linkwise.readers.mjcf.masses import GEOM_TYPES, size_of
from linkwise.readers.mjcf.tree import Node, carrier, unused
from linkwise.readers.protocol import Element


@dataclass(frozen=True)
class Geom:
    """A geom that may touch others; ``shape`` is None where it has none that acts."""

    element: Element
    name: str
    body: Node
    shape: Shape | None

    def number(self, attribute: str, default: float) -> float:
        """The first number of an attribute."""
        return first(self.element, attribute, default)

    @property
    def masks(self) -> tuple[int, int]:
        """contype and conaffinity."""
        return int(self.number("contype", 1.0)), int(self.number("conaffinity", 1.0))

    @property
    def mover(self) -> Node:
        """The body with the joints that move it; the world if there are none."""
        return carrier(self.body)

    @property
    def fixed(self) -> bool:
        return self.mover.parent is None

    @property
    def kind(self) -> str:
        """What it is, whether it has a shape that acts or not."""
        return "mesh" if "mesh" in self.element.attributes else self.element.attributes.get("type", "sphere")


def first(element: Element, attribute: str, default: float) -> float:
    """The first number of a list."""
    return element.numbers(attribute, 1, 5)[0] if attribute in element.attributes else default


def geoms_of(bodies: list[Node], frame_of: Mapping[str, str], paired: set[str], settings: Settings) -> Iterator[Geom]:
    """All geoms with masks, or named by a pair."""
    taken = {geom.attributes.get("name", "") for body in bodies for geom, _ in body.geoms}
    for body in bodies:
        for number, (element, pose) in enumerate(body.geoms):
            name = element.attributes.get("name", "") or unused(f"{body.name}_geom{number}", taken)
            geom = Geom(element, name, body, None)
            if any(geom.masks) or name in paired:
                yield replace(geom, shape=_shape(geom, pose, frame_of[body.name], settings))


def _shape(geom: Geom, pose: Pose, frame: str, settings: Settings) -> Shape | None:
    kind = choice(geom.element, "type", GEOM_TYPES, "sphere")
    if kind not in SIZES or "mesh" in geom.element.attributes:
        return None
    size = () if kind == PLANE else tuple(size_of(geom.element, kind).tolist())
    category, collides_with = geom.masks
    override = settings.override
    friction = geom.number("friction", 1.0) if override is None else first(override, "o_friction", 1.0)
    return Shape(geom.name, frame, kind, size, pose, max(0.0, friction), category, collides_with)


@dataclass(frozen=True)
class Meeting:
    """Which geoms meet.

    excluded          pairs of bodies that do not
    parents_and_children   whether those of bodies that a joint connects do
    """

    excluded: frozenset[frozenset[str]]
    parents_and_children: bool

    def with_the_world(self, geoms: list[Geom]) -> Iterator[tuple[Geom, Geom]]:
        """Moving and fixed geoms that meet."""
        world = [geom for geom in geoms if geom.fixed]
        for geom in geoms:
            if not geom.fixed:
                yield from ((geom, other) for other in world if self._meet(geom, other))

    def each_other(self, geoms: list[Geom]) -> Iterator[tuple[list[Geom], list[list[Geom]]]]:
        """Moving geoms that are alike, and a group of each kind of alike ones on another moving body that they meet."""
        groups: dict[tuple[int, int, int, str, bool], list[Geom]] = {}
        for geom in geoms:
            if not geom.fixed:
                groups.setdefault((id(geom.body), *geom.masks, geom.kind, geom.shape is None), []).append(geom)
        kinds: dict[tuple[object, ...], list[list[Geom]]] = {}  # the bodies of one kind are alike for what is noted
        for (_, *kind), alike in groups.items():
            kinds.setdefault(tuple(kind), []).append(alike)
        for own in groups.values():
            first = (next((x for x in alike if self._may_meet(own[0], x[0])), None) for alike in kinds.values())
            met = [group for group in first if group is not None]
            if met:
                yield own, met

    def _meet(self, one: Geom, other: Geom) -> bool:
        (a, b), (c, d) = one.masks, other.masks
        return bool(a & d or c & b) and frozenset((one.body.name, other.body.name)) not in self.excluded

    def _may_meet(self, one: Geom, other: Geom) -> bool:
        movers = one.mover, other.mover
        related = not self.parents_and_children and any(_is_parent(*pair) for pair in (movers, movers[::-1]))
        return movers[0] is not movers[1] and not related and self._meet(one, other)


def _is_parent(one: Node, other: Node) -> bool:
    """Whether a moving body carries the other by its joints."""
    return other.parent is not None and carrier(other.parent) is one and one.parent is not None
