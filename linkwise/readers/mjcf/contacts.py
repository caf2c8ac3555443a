"""Contacts of geoms: with geoms fixed to the world, and of ``<pair>``.

Friction and margins are MuJoCo's.  Numbers of its own solver (solref, solimp) have no meaning for a compliant contact,
whose stiffness follows from weight and size; those that a file sets are noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from linkwise.mechanism import GROUND, ContactPair, Mechanism
from linkwise.mechanism.contact_defaults import Defaults
from linkwise.mechanism.shapes import can_touch, in_order
from linkwise.readers.mjcf import contact_notes
from linkwise.readers.mjcf.compiler import Compiled
from linkwise.readers.mjcf.geometry import Geom, Meeting, geoms_of
from linkwise.readers.mjcf.tree import Tree

_FRICTIONLESS = 1  # condim


def with_contacts(mechanism: Mechanism, tree: Tree) -> Mechanism:
    """The mechanism with shapes and contacts of its geoms; ignored ones are noted."""
    compiled, model = tree.compiled, tree.compiled.model
    if compiled.disables("constraint", "contact"):
        return mechanism
    sides = {pair: (int(model.pair_geom1[pair]), int(model.pair_geom2[pair])) for pair, _ in compiled.pairs}
    sides |= {pair: sides[pair][::-1] for pair, exchanged in compiled.pairs if exchanged}
    geoms = list(geoms_of(tree, {geom for pair in sides.values() for geom in pair}))
    excluded = list(_excluded(compiled))
    meeting = Meeting(tree, frozenset(map(frozenset, excluded)), compiled.disables("filterparent"))
    frames = [GROUND, *tree.frame_of[1:]]
    known = replace(
        mechanism.annotations,
        neighbours_touch=meeting.parents_and_children,
        kept_apart=tuple((frames[a], frames[b]) for a, b in excluded),
    )
    shapes = tuple(geom.shape for geom in geoms if geom.shape is not None)
    mechanism = replace(mechanism, shapes=shapes, annotations=known)
    contacts, by_index = _Contacts(mechanism, compiled), {geom.index: geom for geom in geoms}
    for pair, (a, b) in sides.items():
        first, other = by_index.get(a), by_index.get(b)
        acts = first is not None and other is not None and contacts.add(first, other, pair)
        contact_notes.note_pair(compiled, pair, acts)
    world = list(meeting.with_the_world(geoms))
    for moving, fixed in world:
        contacts.add(moving, fixed)
    contact_notes.note_geoms(mechanism, compiled, geoms, world, meeting)
    return replace(mechanism, contact_pairs=contacts.pairs())


def _excluded(compiled: Compiled) -> Iterator[tuple[int, int]]:
    """Pairs of bodies that do not touch."""
    for signature in compiled.model.exclude_signature:
        yield int(signature) >> 16, int(signature) & 0xFFFF


class _Contacts:
    """Names of shapes that touch, each pair with friction and margin."""

    def __init__(self, mechanism: Mechanism, compiled: Compiled) -> None:
        self._mechanism, self._compiled, self._model = mechanism, compiled, compiled.model
        self._numbers_of_pairs: dict[tuple[str, str], tuple[float, float]] = {}

    def pairs(self) -> tuple[ContactPair, ...]:
        """All contact pairs with default parameters."""
        defaults, pairs = Defaults(self._mechanism, self._numbers_of_pairs), []
        for names, (friction, margin) in self._numbers_of_pairs.items():
            made = defaults.pair(*names, friction)
            pairs.append(replace(made, law=replace(made.law, margin=max(0.0, margin))))
        return tuple(pairs)

    def add(self, first: Geom, other: Geom, pair: int | None = None) -> bool:
        """Add the contact of two geoms, with parameters of a ``<pair>`` if given; False if they cannot touch."""
        if first.shape is None or other.shape is None or first.mover == other.mover:
            return False
        a, b = in_order(self._mechanism, first.shape, other.shape)
        if not can_touch(self._mechanism, a, b):
            return False
        if not {(a.name, b.name), (b.name, a.name)} & self._numbers_of_pairs.keys():
            numbers = self._numbers(first, other) if pair is None else self._numbers_of(pair)
            self._numbers_of_pairs[a.name, b.name] = numbers
        return True

    def _numbers(self, first: Geom, other: Geom) -> tuple[float, float]:
        """Friction of the geom with higher priority or else the larger; sum of margins."""
        model, geoms = self._model, [first.index, other.index]
        highest = max(model.geom_priority[geoms])
        chosen = [geom for geom in geoms if model.geom_priority[geom] == highest]
        return self._overridden(
            int(max(model.geom_condim[chosen])),
            float(max(model.geom_friction[chosen, 0])),
            float(sum(model.geom_margin[geoms])),
        )

    def _numbers_of(self, pair: int) -> tuple[float, float]:
        model = self._model
        return self._overridden(
            int(model.pair_dim[pair]), float(model.pair_friction[pair, 0]), float(model.pair_margin[pair])
        )

    def _overridden(self, condim: int, friction: float, margin: float) -> tuple[float, float]:
        """Friction, none of contact with a normal force alone, and margin; both may be the same for all contacts."""
        if contact_notes.overrides(self._compiled):
            friction, margin = float(self._model.opt.o_friction[0]), float(self._model.opt.o_margin)
        return 0.0 if condim == _FRICTIONLESS else max(0.0, friction), margin
