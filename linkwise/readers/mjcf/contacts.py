"""Which geoms touch: those that meet what is fixed to the world, and those of a ``<pair>``.

Friction and margins are MuJoCo's.  Numbers of its own solver (solref, solimp) have no meaning for a compliant contact,
whose stiffness follows from weight and size; those that a file sets are noted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from linkwise.mechanism import ContactPair, Mechanism
from linkwise.mechanism.contact_defaults import Defaults
from linkwise.mechanism.shapes import can_touch, in_order
from linkwise.readers.mjcf import contact_notes
from linkwise.readers.mjcf.defaults import Defaults as Classes
from linkwise.readers.mjcf.document import Settings, check_attributes
from linkwise.readers.mjcf.geometry import Geom, Meeting, first, geoms_of
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import Element

_SIDES = ("geom1", "geom2")
_FRICTIONLESS = 1.0  # condim


def with_contacts(
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
    paired = {pair.attributes.get(key, "") for pair in pairs for key in _SIDES}
    geoms = list(geoms_of(bodies, frame_of, paired, settings))
    excluded = [(one.text("body1"), one.text("body2")) for one in _inside(root, "exclude")]
    meeting = Meeting(frozenset(map(frozenset, excluded)), not settings.has("filterparent"))
    known = replace(
        mechanism.annotations,
        neighbours_touch=meeting.parents_and_children,
        kept_apart=tuple((frame_of[a], frame_of[b]) for a, b in excluded if a in frame_of and b in frame_of),
    )
    shapes = tuple(geom.shape for geom in geoms if geom.shape is not None)
    mechanism = replace(mechanism, shapes=shapes, annotations=known)
    contacts, by_name = _Contacts(mechanism, settings), {geom.name: geom for geom in geoms}
    for pair in pairs:
        one, other = (by_name.get(pair.attributes.get(key, "")) for key in _SIDES)
        acts = one is not None and other is not None and contacts.add(one, other, pair)
        contact_notes.note_pair(pair, acts, settings)
    world = list(meeting.with_the_world(geoms))
    for moving, fixed in world:
        contacts.add(moving, fixed)
    contact_notes.note_geoms(mechanism, geoms, world, meeting, settings)
    return replace(mechanism, contact_pairs=contacts.pairs())


def _inside(root: Element, tag: str) -> Iterator[Element]:
    for one in (one for part in root.all("contact") for one in part.all(tag)):
        check_attributes(one)
        yield one


class _Contacts:
    """Names of shapes that touch, each pair with friction and margin."""

    def __init__(self, mechanism: Mechanism, settings: Settings) -> None:
        self._mechanism, self._override = mechanism, settings.override
        self._numbers_of_pairs: dict[tuple[str, str], tuple[float, float]] = {}

    def pairs(self) -> tuple[ContactPair, ...]:
        """All of them, with default numbers besides."""
        defaults, pairs = Defaults(self._mechanism, self._numbers_of_pairs), []
        for names, (friction, margin) in self._numbers_of_pairs.items():
            made = defaults.pair(*names, friction)
            pairs.append(replace(made, law=replace(made.law, margin=max(0.0, margin))))
        return tuple(pairs)

    def add(self, one: Geom, other: Geom, pair: Element | None = None) -> bool:
        """Whether they can touch, and then do; by the numbers of a ``<pair>`` if there is one."""
        if one.shape is None or other.shape is None or one.mover is other.mover:
            return False
        a, b = in_order(self._mechanism, one.shape, other.shape)
        if not can_touch(self._mechanism, a, b):
            return False
        if not {(a.name, b.name), (b.name, a.name)} & self._numbers_of_pairs.keys():
            numbers = self._numbers(one, other) if pair is None else self._numbers_of(pair)
            self._numbers_of_pairs[a.name, b.name] = numbers
        return True

    def _numbers(self, one: Geom, other: Geom) -> tuple[float, float]:
        """Friction, that of the geom of higher priority, else the larger; margin, the sum."""
        priorities = [geom.number("priority", 0.0) for geom in (one, other)]
        chosen = [geom for geom, own in zip((one, other), priorities, strict=True) if own == max(priorities)]
        return self._overridden(
            max(geom.number("condim", 3.0) for geom in chosen),
            max(geom.number("friction", 1.0) for geom in chosen),
            sum(geom.number("margin", 0.0) for geom in (one, other)),
        )

    def _numbers_of(self, pair: Element) -> tuple[float, float]:
        """Those of the pair, or the format's: numbers of its geoms do not count."""
        return self._overridden(pair.number("condim", 3.0), first(pair, "friction", 1.0), pair.number("margin", 0.0))

    def _overridden(self, condim: float, friction: float, margin: float) -> tuple[float, float]:
        """Friction, none of contact with a normal force alone, and margin; both may be the same for all contacts."""
        if self._override is not None:
            friction, margin = first(self._override, "o_friction", 1.0), self._override.number("o_margin", 0.0)
        return 0.0 if condim == _FRICTIONLESS else max(0.0, friction), margin
