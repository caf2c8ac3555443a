"""What of contact does not act, with what can be done about it."""

from __future__ import annotations

from collections.abc import Iterator

from linkwise.mechanism import Mechanism, Shape
from linkwise.mechanism.contact import BETWEEN_LINKS
from linkwise.mechanism.shapes import SIZES, WHAT_TOUCHES, can_touch, in_order
from linkwise.readers.mjcf.document import Settings
from linkwise.readers.mjcf.geometry import Geom, Meeting
from linkwise.readers.mjcf.omissions import OF_SOLVER, nonzero, own_numbers
from linkwise.readers.protocol import Element, omit

_NO_SHAPE = "it passes through everything: shapes that act are " + ", ".join(kind for kind in SIZES)
_NO_PAIR = "nothing of the moving bodies touches it: " + WHAT_TOUCHES
_PASSES_THROUGH = "it passes through that: " + WHAT_TOUCHES
_MEETS_ALONE = "it passes through what it meets on other moving links ({kinds}): " + WHAT_TOUCHES
_SLIDING = 3.0  # condim of friction against sliding alone
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


def note_geoms(
    mechanism: Mechanism, geoms: list[Geom], world: list[tuple[Geom, Geom]], meeting: Meeting, settings: Settings
) -> None:
    """What geoms would do and do not; ``world`` are those that meet what is fixed to the world."""
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
    between = {id(geom): (what, advice) for geom, what, advice in _between_links(mechanism, geoms, meeting)}
    for geom in geoms:
        if geom.shape is None and (id(geom) in met or id(geom) in between):
            omit(geom.element, f"{geom.kind} with contact", _NO_SHAPE)
        elif geom.shape is not None and met.get(id(geom)) is False:
            omit(geom.element, f"{geom.kind} with contact", _NO_PAIR)
        if geom.shape is not None and id(geom) in through:
            omit(geom.element, f"{geom.kind} with no contact with a {through[id(geom)]}", _PASSES_THROUGH)
        if met.get(id(geom)):
            _note_numbers(geom, settings)
        _note_surface(geom.element)
        if geom.shape is not None and id(geom) in between:
            omit(geom.element, *between[id(geom)])
    if any(met.values()) and settings.override is not None:
        _note_solver(settings.override, "override of contacts", prefix="o_")
        if _is_anisotropic(settings.override, "o_friction"):
            omit(settings.override, "override of contacts with anisotropic friction", _ANISOTROPIC)


def note_pair(pair: Element, acts: bool, settings: Settings) -> None:
    """What a ``<pair>`` says and does not act, or all of it."""
    if not acts:
        omit(pair, "contact pair", "its geoms pass through each other: " + WHAT_TOUCHES)
        return
    if pair.number("condim", _SLIDING) > _SLIDING:
        omit(pair, "contact pair with torsional friction", _TORSIONAL)
    _note_surface(pair)
    if settings.override is None:
        _note_solver(pair, "contact pair")
        if pair.number("condim", _SLIDING) >= _SLIDING and _is_anisotropic(pair, "friction"):
            omit(pair, "contact pair with anisotropic friction", _ANISOTROPIC)
        if pair.number("margin", 0.0) < 0.0:
            omit(pair, "contact pair with a negative margin", _NEGATIVE)


def _note_numbers(geom: Geom, settings: Settings) -> None:
    """Of a geom that touches something."""
    if geom.number("condim", _SLIDING) > _SLIDING:
        omit(geom.element, "geom with torsional friction", _TORSIONAL)
    if settings.override is None:
        _note_solver(geom.element, "geom")
        if geom.number("margin", 0.0) < 0.0:
            omit(geom.element, "geom with a negative margin", _NEGATIVE)


def _note_solver(element: Element, what: str, prefix: str = "") -> None:
    """Numbers of MuJoCo's solver that are not the format's own."""
    given = [prefix + name for name in OF_SOLVER if own_numbers(element, prefix + name, OF_SOLVER[name])]
    given += ["solreffriction"] * nonzero(element, "solreffriction")
    if given:
        omit(element, f"{what} with {' and '.join(given)}", _SOFTNESS)


def _note_surface(element: Element) -> None:
    for attribute, advice in _OF_SURFACES.items():
        if nonzero(element, attribute):
            omit(element, f"{'contact pair' if element.tag == 'pair' else 'geom'} with {attribute}", advice)


def _is_anisotropic(element: Element, attribute: str) -> bool:
    given = element.numbers(attribute, 1, 5) if attribute in element.attributes else ()
    return len(given) > 0 and given[0] != (*given, 1.0)[1]


# -- between moving links -------------------------------------------------------------------------------


def _between_links(mechanism: Mechanism, geoms: list[Geom], meeting: Meeting) -> Iterator[tuple[Geom, str, str]]:
    """Geoms that meet those of other moving links, with what to say of each: whether any can touch it."""
    for own, met in meeting.each_other(geoms):
        for geom in own:
            if any(_touch(mechanism, geom, other[0]) for other in met):
                yield geom, "geom with contact between links", BETWEEN_LINKS
            else:
                kinds = ", ".join(dict.fromkeys(other[0].kind for other in met))
                yield geom, f"{geom.kind} with contact between links", _MEETS_ALONE.format(kinds=kinds)


def _touch(mechanism: Mechanism, one: Geom, other: Geom) -> bool:
    """Whether there is a contact force between the two."""
    a: Shape | None = one.shape
    b: Shape | None = other.shape
    return a is not None and b is not None and can_touch(mechanism, *in_order(mechanism, a, b))
