"""Contacts of geoms: with geoms fixed to the world, and of ``<pair>``.

Friction and margins are MuJoCo's.  Numbers of its own solver (solref, solimp) have no meaning for a compliant contact,
whose stiffness follows from weight and size; those that a file sets are noted.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from linkwise.mechanism import GROUND, ContactPair, Mechanism, Shape
from linkwise.mechanism.contact import BETWEEN_LINKS
from linkwise.mechanism.contact_defaults import Defaults
from linkwise.mechanism.shapes import SIZES, WHAT_TOUCHES, can_touch, in_order
from linkwise.readers.mjcf.compiler import Compiled
from linkwise.readers.mjcf.geometry import Geom, Meeting, geoms_of
from linkwise.readers.mjcf.omissions import own_numbers
from linkwise.readers.mjcf.tree import Tree
from linkwise.readers.protocol import Element, omit

_FRICTIONLESS = 1  # condim


def add_contacts(mechanism: Mechanism, tree: Tree) -> Mechanism:
    """The mechanism with shapes and contacts of its geoms; ignored contacts are noted."""
    compiled, model = tree.compiled, tree.compiled.model
    if compiled.disables("constraint", "contact"):
        return mechanism
    sides = {pair: (int(model.pair_geom1[pair]), int(model.pair_geom2[pair])) for pair, _ in compiled.pairs}
    sides |= {pair: sides[pair][::-1] for pair, exchanged in compiled.pairs if exchanged}
    geoms = list(geoms_of(tree, {geom for pair in sides.values() for geom in pair}))
    excluded = [(int(x) >> 16, int(x) & 0xFFFF) for x in model.exclude_signature]  # pairs of bodies
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
        note_pair(compiled, pair, acts)
    world = list(meeting.world_meetings(geoms))
    for moving, fixed in world:
        contacts.add(moving, fixed)
    note_geoms(mechanism, compiled, geoms, world, meeting)
    return replace(mechanism, contact_pairs=contacts.pairs())


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
        """Friction (zero for frictionless contact) and margin, replaced by the model's override if enabled."""
        if overrides(self._compiled):
            friction, margin = float(self._model.opt.o_friction[0]), float(self._model.opt.o_margin)
        return 0.0 if condim == _FRICTIONLESS else max(0.0, friction), margin


_NO_SHAPE = "it passes through everything: shapes that act are " + ", ".join(kind for kind in SIZES)
_NO_PAIR = "nothing of the moving bodies touches it: " + WHAT_TOUCHES
_PASSES_THROUGH = "it passes through that: " + WHAT_TOUCHES
_MEETS_ALONE = "it passes through what it meets on other moving links ({kinds}): " + WHAT_TOUCHES
_SLIDING = 3  # condim of friction against sliding alone
_TORSIONAL = "friction acts against sliding alone"
_SOFTNESS = (
    "stiffness and dissipation of contacts follow from masses and step: mech.with_contact(stiffness=..., "
    "dissipation=...) sets them, dissipation=0 for what bounces"
)
_ANISOTROPIC = "the first number acts in all directions (the second is 1 in the format where it is not given)"
_NEGATIVE = "shapes push as soon as they touch"
_OF_SURFACES = {
    "surfacevel": "surfaces do not move along their links: give what drives things along as wrenches",
    "adhesion": "contacts push and never pull: give what holds as wrenches",
}


def overrides(compiled: Compiled) -> bool:
    """Whether options override the parameters of all contacts."""
    return bool(compiled.model.opt.enableflags & compiled.library.mjtEnableBit.mjENBL_OVERRIDE)


def note_geoms(
    mechanism: Mechanism, compiled: Compiled, geoms: list[Geom], world: list[tuple[Geom, Geom]], meeting: Meeting
) -> None:
    """Note contact of geoms that is ignored; ``world`` are geoms that meet fixed ones."""
    met: dict[int, bool] = {}  # whether a geom that meets something touches any of it
    passing: list[tuple[Geom, Geom]] = []
    for moving, fixed in world:
        touch = _can_touch(mechanism, moving, fixed)
        for geom in (moving, fixed):
            met[id(geom)] = met.get(id(geom), False) or touch
        if moving.shape is not None and fixed.shape is not None and not touch:
            passing.append((moving, fixed))
    # Those of which both touch something, but not each other: for others it is told of the one that touches nothing.
    through = {id(a): b.kind for a, b in reversed(passing) if met[id(a)] and met[id(b)]}
    between = {id(geom): (feature, advice) for geom, feature, advice in _link_contacts(mechanism, geoms, meeting)}
    for geom in geoms:
        if geom.shape is None and (id(geom) in met or id(geom) in between):
            omit(geom.element, f"{geom.kind} with contact", _NO_SHAPE)
        elif geom.shape is not None and met.get(id(geom)) is False:
            omit(geom.element, f"{geom.kind} with contact", _NO_PAIR)
        if geom.shape is not None and id(geom) in through:
            omit(geom.element, f"{geom.kind} with no contact with a {through[id(geom)]}", _PASSES_THROUGH)
        if met.get(id(geom)):
            _note_numbers(geom, compiled)
        for word in _OF_SURFACES:
            if getattr(compiled.model, f"geom_{word}")[geom.index].any():
                omit(geom.element, f"geom with {word}", _OF_SURFACES[word])
        if geom.shape is not None and id(geom) in between:
            omit(geom.element, *between[id(geom)])
    if any(met.values()) and overrides(compiled):
        option, numbers = compiled.option, compiled.model.opt
        names = [f"o_{name}" for name in own_numbers(numbers.o_solref, numbers.o_solimp)]
        _note_solver(option, "override of contacts", names)
        if _is_anisotropic(numbers.o_friction):
            omit(option, "override of contacts with anisotropic friction", _ANISOTROPIC)


def note_pair(compiled: Compiled, pair: int, acts: bool) -> None:
    """Note ignored attributes of a ``<pair>``, or all of it."""
    model, element = compiled.model, compiled.element("pair", pair)
    if not acts:
        omit(element, "contact pair", "its geoms pass through each other: " + WHAT_TOUCHES)
        return
    if model.pair_dim[pair] > _SLIDING:
        omit(element, "contact pair with torsional friction", _TORSIONAL)
    if model.pair_adhesion[pair]:
        omit(element, "contact pair with adhesion", _OF_SURFACES["adhesion"])
    if not overrides(compiled):
        names = own_numbers(model.pair_solref[pair], model.pair_solimp[pair])
        names += ["solreffriction"] * bool(model.pair_solreffriction[pair].any())
        _note_solver(element, "contact pair", names)
        if model.pair_dim[pair] >= _SLIDING and _is_anisotropic(model.pair_friction[pair]):
            omit(element, "contact pair with anisotropic friction", _ANISOTROPIC)
        if model.pair_margin[pair] < 0.0:
            omit(element, "contact pair with a negative margin", _NEGATIVE)


def _note_numbers(geom: Geom, compiled: Compiled) -> None:
    """Note ignored parameters of a geom in contact."""
    model, index = compiled.model, geom.index
    if model.geom_condim[index] > _SLIDING:
        omit(geom.element, "geom with torsional friction", _TORSIONAL)
    if not overrides(compiled):
        _note_solver(geom.element, "geom", own_numbers(model.geom_solref[index], model.geom_solimp[index]))
        if model.geom_margin[index] < 0.0:
            omit(geom.element, "geom with a negative margin", _NEGATIVE)


def _note_solver(element: Element, feature: str, names: list[str]) -> None:
    """Note solver parameters that differ from the defaults."""
    if names:
        omit(element, f"{feature} with {' and '.join(names)}", _SOFTNESS)


def _is_anisotropic(friction: Any) -> bool:
    return bool(friction[0] != friction[1])


# -- between moving links -------------------------------------------------------------------------------


def _link_contacts(mechanism: Mechanism, geoms: list[Geom], meeting: Meeting) -> Iterator[tuple[Geom, str, str]]:
    """Geoms that meet those of other moving links, with the note for each."""
    for geoms_of_kind, met in meeting.each_other(geoms):
        for geom in geoms_of_kind:
            if any(_can_touch(mechanism, geom, other[0]) for other in met):
                yield geom, "geom with contact between links", BETWEEN_LINKS
            else:
                kinds = ", ".join(dict.fromkeys(other[0].kind for other in met))
                yield geom, f"{geom.kind} with contact between links", _MEETS_ALONE.format(kinds=kinds)


def _can_touch(mechanism: Mechanism, geom: Geom, other: Geom) -> bool:
    """Whether a contact force between the two is available."""
    a: Shape | None = geom.shape
    b: Shape | None = other.shape
    return a is not None and b is not None and can_touch(mechanism, *in_order(mechanism, a, b))
