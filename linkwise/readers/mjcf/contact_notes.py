"""Notes on ignored contact, with advice."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from linkwise.mechanism import Mechanism, Shape
from linkwise.mechanism.contact import BETWEEN_LINKS
from linkwise.mechanism.shapes import SIZES, WHAT_TOUCHES, can_touch, in_order
from linkwise.readers.mjcf.compiler import Compiled
from linkwise.readers.mjcf.geometry import Geom, Meeting
from linkwise.readers.mjcf.omissions import own_numbers
from linkwise.readers.protocol import Element, omit

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
        touch = _touch(mechanism, moving, fixed)
        for geom in (moving, fixed):
            met[id(geom)] = met.get(id(geom), False) or touch
        if moving.shape is not None and fixed.shape is not None and not touch:
            passing.append((moving, fixed))
    # Those of which both touch something, but not each other: for others it is told of the one that touches nothing.
    through = {id(a): b.kind for a, b in reversed(passing) if met[id(a)] and met[id(b)]}
    between = {id(geom): (feature, advice) for geom, feature, advice in _between_links(mechanism, geoms, meeting)}
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
    """Numbers of MuJoCo's solver that are not the format's own."""
    if names:
        omit(element, f"{feature} with {' and '.join(names)}", _SOFTNESS)


def _is_anisotropic(friction: Any) -> bool:
    return bool(friction[0] != friction[1])


# -- between moving links -------------------------------------------------------------------------------


def _between_links(mechanism: Mechanism, geoms: list[Geom], meeting: Meeting) -> Iterator[tuple[Geom, str, str]]:
    """Geoms that meet those of other moving links, with the note for each."""
    for geoms_of_kind, met in meeting.each_other(geoms):
        for geom in geoms_of_kind:
            if any(_touch(mechanism, geom, other[0]) for other in met):
                yield geom, "geom with contact between links", BETWEEN_LINKS
            else:
                kinds = ", ".join(dict.fromkeys(other[0].kind for other in met))
                yield geom, f"{geom.kind} with contact between links", _MEETS_ALONE.format(kinds=kinds)


def _touch(mechanism: Mechanism, geom: Geom, other: Geom) -> bool:
    """Whether a contact force between the two is available."""
    a: Shape | None = geom.shape
    b: Shape | None = other.shape
    return a is not None and b is not None and can_touch(mechanism, *in_order(mechanism, a, b))
