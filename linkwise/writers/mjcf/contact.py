"""Contacts as pairs of geoms, and masks that let nothing else touch."""

from __future__ import annotations

from dataclasses import replace
from xml.etree.ElementTree import Element

from linkwise.mechanism import Mechanism
from linkwise.mechanism.contact import contact_defaults
from linkwise.mechanism.shapes import can_touch, in_order
from linkwise.writers.mjcf.bodies import HERE, TOUCHES_NOTHING, Bodies
from linkwise.writers.report import Report
from linkwise.writers.xml import element


def write_contacts(root: Element, mech: Mechanism, bodies: Bodies, report: Report) -> None:
    """Write ``<pair>`` for each contact and ``<exclude>`` for links kept apart. Masks are kept if they lead to exactly
    these contacts.
    """
    if not mech.shapes:
        return
    acting = {frozenset(pair.shapes) for pair in mech.contact_pairs}
    if not _by_masks(mech) <= acting:
        for geom in root.iter("geom"):
            for word, mask in zip(("contype", "conaffinity"), TOUCHES_NOTHING, strict=True):
                geom.set(word, str(mask))
        if any((shape.category, shape.collides_with) != (1, 1) for shape in mech.shapes):
            report.omit("masks of shapes that are not to touch what they could")
    section = element(root, "contact") if mech.contact_pairs or mech.annotations.kept_apart else None
    for names in _kept_apart(mech, bodies, report):
        element(section, "exclude", body1=names[0], body2=names[1])
    defaults = contact_defaults(mech)
    for pair in mech.contact_pairs:
        law = pair.law
        sliding = law.friction
        element(
            section,
            "pair",
            geom1=pair.shape_a,
            geom2=pair.shape_b,
            condim=3 if sliding else 1,
            friction=(sliding, sliding, 0.005, 0.0001, 0.0001) if sliding else None,
            margin=law.margin,
        )
        again = defaults.pair(*pair.shapes, sliding).law
        if replace(again, margin=law.margin) != law:
            report.omit("numbers of contact (stiffness, dissipation, ...)", pair.name)


def _kept_apart(mech: Mechanism, bodies: Bodies, report: Report) -> list[tuple[str, ...]]:
    """Names of moving bodies without contact between any of their shapes."""
    apart = {frozenset(pair) for pair in mech.annotations.kept_apart}
    groups: dict[frozenset[int], tuple[str, ...]] = {}
    for pair in mech.annotations.kept_apart:
        moving = [mech.frame(name).body for name in pair if name in mech.frames]
        sides = [[shape.link for shape in mech.shapes if shape.placed(mech)[0] == body] for body in moving]
        if len(set(moving)) < 2 or min(moving) < 0 or not all(sides):
            continue
        if all(frozenset((a, b)) in apart for a in sides[0] for b in sides[1]):
            groups[frozenset(moving)] = tuple(bodies.inside(body, HERE)[0].get("name", "") for body in moving)
        else:
            report.omit("parts of links that are kept apart", " and ".join(pair))
    return list(groups.values())


def _by_masks(mech: Mechanism) -> set[frozenset[str]]:
    """Pairs of moving and fixed shapes that masks let touch."""
    placed = [(shape, shape.placed(mech)[0]) for shape in mech.shapes]
    moving = [shape for shape, body in placed if body >= 0]
    fixed = [shape for shape, body in placed if body < 0]
    pairs = set()
    for first in moving:
        for other in fixed:
            a, b = in_order(mech, first, other)
            if first.may_touch(other) and can_touch(mech, a, b):
                pairs.add(frozenset((first.name, other.name)))
    return pairs
