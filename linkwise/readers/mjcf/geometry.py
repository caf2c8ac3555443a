"""Geoms as shapes, and which of them touch: by their masks, by ``<pair>`` and not by ``<exclude>``.

What acts is contact between moving bodies and what is fixed to the world, and that of pairs.  Numbers of MuJoCo's own
solver (solref, solimp) have no meaning for a compliant contact: its stiffness follows from masses and step.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from linkwise.mechanism import PLANE, ContactPair, Mechanism, Pose, Shape
from linkwise.mechanism.annotation import USUAL_TIMESTEP
from linkwise.mechanism.contact import BETWEEN_LINKS, STEP, Defaults
from linkwise.mechanism.shapes import SIZES, WHAT_TOUCHES, can_touch, in_order
from linkwise.readers.mjcf.document import Defaults as Classes
from linkwise.readers.mjcf.document import Settings, choice
from linkwise.readers.mjcf.masses import GEOM_TYPES, size_of
from linkwise.readers.mjcf.tree import Node, carrier, unused
from linkwise.readers.protocol import Element, omit

_NO_SHAPE = "it passes through everything: shapes that act are " + ", ".join(kind for kind in SIZES)
_NO_PAIR = "nothing of the moving bodies touches it: " + WHAT_TOUCHES
_PASSES_THROUGH = "it passes through that: " + WHAT_TOUCHES
_FRICTIONLESS, _SLIDING = 1.0, 3.0  # condim of contact without friction, and of friction against sliding alone


@dataclass(frozen=True)
class Geom:
    """A geom that may touch others; ``shape`` is None where it has none that acts."""

    element: Element
    name: str
    body: Node
    shape: Shape | None

    def number(self, attribute: str, default: float) -> float:
        """The first number of an attribute."""
        return self.element.numbers(attribute, 1, 5)[0] if attribute in self.element.attributes else default

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


def with_shapes(
    mechanism: Mechanism,
    root: Element,
    bodies: list[Node],
    settings: Settings,
    classes: Classes,
    frame_of: Mapping[str, str],
) -> Mechanism:
    """The mechanism with the shapes of its geoms and the contacts that act; what does not act is noted."""
    if not settings.has("contact"):
        return mechanism
    pairs = [classes.applied(pair) for pair in _inside(root, "pair")]
    geoms = list(_geoms(bodies, frame_of, {pair.attributes.get(key, "") for pair in pairs for key in _SIDES}))
    shapes = tuple(geom.shape for geom in geoms if geom.shape is not None)
    mechanism = replace(mechanism, shapes=shapes)
    contacts = _Contacts(mechanism, min(STEP, timestep_of(root)))
    excluded = {frozenset((one.text("body1"), one.text("body2"))) for one in _inside(root, "exclude")}
    by_name = {geom.name: geom for geom in geoms}
    for pair in pairs:
        _add_pair(contacts, pair, by_name)
    meeting = list(_meeting_the_world(geoms, excluded))
    for moving, fixed in meeting:
        contacts.add(moving, fixed)
    _note(mechanism, geoms, meeting, excluded)
    return replace(mechanism, contact_pairs=tuple(contacts.found.values()))


_SIDES = ("geom1", "geom2")


def _inside(root: Element, tag: str) -> Iterator[Element]:
    return (one for part in root.all("contact") for one in part.all(tag))


def timestep_of(root: Element) -> float:
    """The time step that the document gives, or the format's own, s."""
    given = [option.number("timestep") for option in root.all("option") if "timestep" in option.attributes]
    return given[-1] if given and given[-1] > 0.0 else USUAL_TIMESTEP


def _geoms(bodies: list[Node], frame_of: Mapping[str, str], paired: set[str]) -> Iterator[Geom]:
    """All geoms with masks, or named by a pair."""
    taken = {geom.attributes.get("name", "") for body in bodies for geom, _ in body.geoms}
    for body in bodies:
        for number, (element, pose) in enumerate(body.geoms):
            name = element.attributes.get("name", "") or unused(f"{body.name}_geom{number}", taken)
            geom = Geom(element, name, body, None)
            if any(geom.masks) or name in paired:
                yield replace(geom, shape=_shape(geom, pose, frame_of[body.name]))


def _shape(geom: Geom, pose: Pose, frame: str) -> Shape | None:
    kind = choice(geom.element, "type", GEOM_TYPES, "sphere")
    if kind not in SIZES or "mesh" in geom.element.attributes:
        return None
    size = () if kind == PLANE else tuple(size_of(geom.element, kind).tolist())
    category, collides_with = geom.masks
    friction = max(0.0, geom.number("friction", 1.0))
    return Shape(geom.name, frame, kind, size, pose, friction, category, collides_with)


class _Contacts:
    """Contacts found so far, by the names of their shapes."""

    def __init__(self, mechanism: Mechanism, step: float) -> None:
        self._mechanism, self._defaults, self._step = mechanism, Defaults(mechanism), step
        self.found: dict[frozenset[str], ContactPair] = {}

    def add(self, one: Geom, other: Geom, friction: float | None = None, margin: float | None = None) -> bool:
        """Whether they can touch, and then do."""
        if one.shape is None or other.shape is None or one.mover is other.mover:
            return False
        shapes = in_order(self._mechanism, one.shape, other.shape)
        a, b = (one, other) if shapes[0] is one.shape else (other, one)
        if not can_touch(self._mechanism, *shapes):
            return False
        key = frozenset((a.name, b.name))
        if key not in self.found:
            made = self._defaults.pair(a.name, b.name, self._step, _friction(a, b) if friction is None else friction)
            margin = max(g.number("margin", 0.0) - g.number("gap", 0.0) for g in (a, b)) if margin is None else margin
            self.found[key] = replace(made, law=replace(made.law, margin=max(0.0, margin)))
        return True


def _friction(a: Geom, b: Geom) -> float:
    """That of the geom of higher priority, else the larger; none where no geom has more than a normal force."""
    priorities = [geom.number("priority", 0.0) for geom in (a, b)]
    chosen = [geom for geom, own in zip((a, b), priorities, strict=True) if own == max(priorities)]
    if all(geom.number("condim", 3.0) == _FRICTIONLESS for geom in chosen):
        return 0.0
    return max(max(0.0, geom.number("friction", 1.0)) for geom in chosen)


def _add_pair(contacts: _Contacts, pair: Element, geoms: Mapping[str, Geom]) -> None:
    sides = [geoms.get(pair.attributes.get(key, "")) for key in _SIDES]
    friction = pair.numbers("friction", 1, 5)[0] if "friction" in pair.attributes else None
    if pair.number("condim", 3.0) == _FRICTIONLESS:
        friction = 0.0
    margin = pair.number("margin", 0.0) - pair.number("gap", 0.0) if "margin" in pair.attributes else None
    one, other = sides
    if one is None or other is None or not contacts.add(one, other, friction, margin):
        omit(pair, "contact pair", "its geoms pass through each other: " + WHAT_TOUCHES)


def _meeting_the_world(geoms: list[Geom], excluded: set[frozenset[str]]) -> Iterator[tuple[Geom, Geom]]:
    """Moving and fixed geoms that meet."""
    world = [geom for geom in geoms if geom.fixed]
    for geom in geoms:
        if not geom.fixed:
            yield from ((geom, other) for other in world if _meet(geom, other, excluded))


def _meet(one: Geom, other: Geom, excluded: set[frozenset[str]]) -> bool:
    (a, b), (c, d) = one.masks, other.masks
    return bool(a & d or c & b) and frozenset((one.body.name, other.body.name)) not in excluded


# -- what does not act ----------------------------------------------------------------------------------


def _note(
    mechanism: Mechanism, geoms: list[Geom], meeting: list[tuple[Geom, Geom]], excluded: set[frozenset[str]]
) -> None:
    met: dict[int, bool] = {}  # whether a geom that meets something touches any of it
    passing: list[tuple[Geom, Geom]] = []
    for moving, fixed in meeting:
        known = moving.shape is not None and fixed.shape is not None
        touch = known and _touches(mechanism, moving.shape, fixed.shape)
        for geom in (moving, fixed):
            met[id(geom)] = met.get(id(geom), False) or touch
        if known and not touch:
            passing.append((moving, fixed))
    # Those of which both touch something, but not each other: for others it is told of the one that touches nothing.
    through = {id(a): b.shape.kind for a, b in reversed(passing) if b.shape and met[id(a)] and met[id(b)]}
    between = {id(geom) for geom in _meeting_each_other(geoms, excluded)}
    for geom in geoms:
        if geom.shape is None and (id(geom) in met or id(geom) in between):
            kind = "mesh" if "mesh" in geom.element.attributes else geom.element.attributes.get("type")
            omit(geom.element, f"{kind} with contact", _NO_SHAPE)
        elif geom.shape is not None and met.get(id(geom)) is False:
            omit(geom.element, f"{geom.shape.kind} with contact", _NO_PAIR)
        if geom.shape is not None and id(geom) in through:
            omit(geom.element, f"{geom.shape.kind} with no contact with a {through[id(geom)]}", _PASSES_THROUGH)
        if met.get(id(geom)) and geom.number("condim", 3.0) > _SLIDING:
            omit(geom.element, "geom with torsional friction", "friction acts against sliding alone")
        if geom.shape is not None and id(geom) in between:
            omit(geom.element, "geom with contact between links", BETWEEN_LINKS)


def _touches(mechanism: Mechanism, a: Shape | None, b: Shape | None) -> bool:
    assert a is not None and b is not None
    return can_touch(mechanism, *in_order(mechanism, a, b))


def _meeting_each_other(geoms: list[Geom], excluded: set[frozenset[str]]) -> Iterator[Geom]:
    """Moving geoms that meet other moving ones: on bodies that are no parent and child."""
    groups: dict[tuple[int, int, int], list[Geom]] = {}
    for geom in geoms:
        if not geom.fixed:
            groups.setdefault((id(geom.mover), *geom.masks), []).append(geom)
    for own in groups.values():
        if any(_may_meet(own[0], other[0], excluded) for other in groups.values()):
            yield from own


def _may_meet(one: Geom, other: Geom, excluded: set[frozenset[str]]) -> bool:
    movers = one.mover, other.mover
    related = movers[0] is movers[1] or any(_is_parent(*pair) for pair in (movers, movers[::-1]))
    return not related and _meet(one, other, excluded)


def _is_parent(one: Node, other: Node) -> bool:
    """Whether a moving body carries the other by its joints: such neighbours do not touch."""
    return other.parent is not None and carrier(other.parent) is one and one.parent is not None
