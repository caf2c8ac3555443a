"""The view ``mech.contact``: contact pairs of shapes, and edits of pairs and their parameters."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from linkwise.mechanism import checks
from linkwise.mechanism.annotation import Annotations, Note
from linkwise.mechanism.checks import MechanismError, MechanismWarning
from linkwise.mechanism.contact_defaults import Defaults
from linkwise.mechanism.shapes import (
    PLANE,
    WHAT_TOUCHES,
    ContactLaw,
    ContactPair,
    Shape,
    are_boxes,
    bumps,
    by_parts,
    by_supports,
    can_touch,
    in_order,
    presses_back,
)
from linkwise.mechanism.view import View, kept

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism

WITHOUT_GROUND = "link with collision geometry"  # notes of files that have no ground
BETWEEN_LINKS = (
    "moving links touch what is fixed to the ground alone, and pass through each other: mech.with_contact((a, b), ...) "
    "lets two shapes touch, mech.with_contact(*mech.contact.pairs_between_links) all that can"
)
NONE_BETWEEN_LINKS = "moving links pass through each other, and no two of their shapes could touch: " + WHAT_TOUCHES
EDGES = "pair of boxes with edges that do not touch"
BY_CORNERS = (
    "boxes touch by their corners, the fixed one by its own where one of its faces fits into one of the moving box: "
    "where neither has a corner in the other, as crossed beams or a sole across the edge of a step, they pass through "
    "each other; capsules along edges of the moving box, by mech.with_shape and mech.with_contact, hold them"
)
LAW = tuple(field.name for field in dataclasses.fields(ContactLaw))
OF_PAIR = ("mass", "carried", "load")


class ContactView(View):
    """Contact pairs and their parameters; ``mech.shapes`` and ``mech.contact_pairs`` are the records.

    ``mech.with_shape``, ``mech.with_ground`` and ``mech.with_contact`` add some.
    """

    __slots__ = ()

    def shape(self, name: str) -> Shape:
        """The named shape."""
        if name not in self._shapes:
            hint = checks.did_you_mean(name, self._shapes)
            raise MechanismError(f"mechanism {self._mech.name!r} has no shape {name!r}: {hint}")
        return self._shapes[name]

    @kept
    def _shapes(self) -> dict[str, Shape]:
        return {shape.name: shape for shape in self._mech.shapes}

    @property
    def step(self) -> float:
        """The longest step with which explicit methods resolve all contacts; infinite without contact. Longer steps
        make contacts softer, so that they stay stable.
        """
        return min((pair.step for pair in self._mech.contact_pairs), default=math.inf)

    @property
    def parts(self) -> tuple[ContactPair, ...]:
        """The pair of every elementary contact, in the order of ``lw.contact.contact_points``: against planes and boxes
        the parts of a shape (ends of capsules and cylinders, corners of boxes) count one by one; against a box those of
        a capsule are its halves, and corners of the box itself follow where they press into a larger one."""
        counts = ((pair, _number_of_parts(*map(self.shape, pair.shapes))) for pair in self._mech.contact_pairs)
        return tuple(pair for pair, count in counts for _ in range(count))

    @kept
    def scales(self) -> dict[str, tuple[float, float]]:
        """Name of each contact pair -> length L and time sqrt(L / g) that scale its motion."""
        defaults = contact_defaults(self._mech)
        return {pair.name: (defaults.length(pair), defaults.time(pair)) for pair in self._mech.contact_pairs}

    @property
    def pairs_between_links(self) -> tuple[tuple[str, str], ...]:
        """Pairs of names of shapes on different moving links that can touch. Pairs excluded by the file (``<exclude>``
        of MJCF) or by masks are left out, and so are links connected by a joint, unless ``filterparent`` is off.
        ``mech.with_contact(*these)`` adds contact to all of them.
        """
        moving = [(shape, body) for shape in self._mech.shapes if (body := shape.placed(self._mech)[0]) >= 0]
        carrying = {body for _, body in moving} | {i for i, body in enumerate(self._mech.bodies) if body.mass > 0.0}
        around = {body: _next_around(self._mech, body, carrying) for _, body in moving}
        known = self._mech.annotations
        apart = {frozenset(pair) for pair in known.kept_apart}
        return tuple(
            (a.name, b.name)
            for (a, body_a), (b, body_b) in itertools.combinations(moving, 2)
            if body_a != body_b and (known.neighbours_touch or (body_b != around[body_a] and body_a != around[body_b]))
            if a.may_touch(b)
            and frozenset((a.link, b.link)) not in apart
            and can_touch(self._mech, *in_order(self._mech, a, b))
        )

    def without(self, *shapes: str) -> Mechanism:
        """A copy in which these shapes touch nothing; without names, in which nothing touches."""
        for name in shapes:
            self.shape(name)
        kept = (pair for pair in self._mech.contact_pairs if shapes and not {*pair.shapes} & {*shapes})
        return replace(self._mech, contact_pairs=tuple(kept))


def contact_defaults(mech: Mechanism) -> Defaults:
    """Default parameters of the mechanism's contacts."""
    return Defaults(mech, [pair.shapes for pair in mech.contact_pairs])


def contact_notes(mech: Mechanism) -> tuple[Note, ...]:
    """Notes on contacts of the file that are ignored."""
    boxes = (pair.name for pair in mech.contact_pairs if are_boxes(*map(mech.contact.shape, pair.shapes)))
    by_corners = tuple(boxes)
    return (Note(EDGES, by_corners, BY_CORNERS),) if by_corners else ()


def with_ground(
    mech: Mechanism, plane: Shape, shapes: Iterable[str] | None, step: float | None, numbers: dict[str, float]
) -> Mechanism:
    """The mechanism on a plane that the named shapes touch, or all that are fixed to moving links."""
    standing = replace(mech, shapes=(*mech.shapes, plane), annotations=_on_the_ground(mech))
    if shapes is None:
        chosen = [x.name for x in mech.shapes if x.placed(mech)[0] >= 0 and can_touch(mech, x, plane)]
    else:
        chosen = list(checks.names_of(shapes))
    if not chosen:
        raise MechanismError(
            f"mechanism {mech.name!r} has no shapes on moving links that could touch a plane: add some with "
            "mech.with_shape(name, link, 'sphere', radius, position), or Builder.shape"
        )
    return with_contact(standing, [(name, plane.name) for name in chosen], step, numbers)


def with_shape(mech: Mechanism, shape: Shape) -> Mechanism:
    """The mechanism with a further shape, on the ground if all others are."""
    changed = replace(mech, shapes=(*mech.shapes, shape))
    if shape.placed(changed)[0] < 0:
        return changed
    changed = replace(changed, contact_pairs=tuple(_with_new_defaults(mech, contact_defaults(changed))))
    moving = [existing.name for existing in mech.shapes if existing.placed(mech)[0] >= 0]
    touching = {pair.shapes: pair for pair in mech.contact_pairs}
    for plane in (existing for existing in mech.shapes if existing.kind == PLANE and existing.placed(mech)[0] < 0):
        pairs = [
            touching.get((name, plane.name)) for name in moving if can_touch(mech, mech.contact.shape(name), plane)
        ]
        others = [pair for pair in pairs if pair is not None]
        if others and len(others) == len(pairs) and can_touch(changed, shape, plane):
            changed = with_contact(changed, [(shape.name, plane.name)], None, {})
        elif others:
            checks.warn_caller(
                f"shape {shape.name!r} does not touch {plane.name!r}, as some others do: mech.with_contact("
                f"({shape.name!r}, {plane.name!r})) lets it",
                MechanismWarning,
            )
    return changed


def _next_around(mech: Mechanism, body: int, carrying: set[int]) -> int:
    """The nearest ancestor among ``carrying``, -1 for the ground."""
    parent = mech.tree.parents[body]
    while parent >= 0 and parent not in carrying:
        parent = mech.tree.parents[parent]
    return parent


def _on_the_ground(mech: Mechanism) -> Annotations:
    """Annotations after shapes that had no contact so far were made to touch the ground."""
    known: Annotations = mech.annotations
    if all(note.what != WITHOUT_GROUND for note in known.notes):
        return known
    advice = BETWEEN_LINKS if mech.contact.pairs_between_links else NONE_BETWEEN_LINKS
    notes = (
        replace(note, what="link with contact between links", advice=advice) if note.what == WITHOUT_GROUND else note
        for note in known.notes
    )
    return replace(known, notes=tuple(notes))


def ground_plane(name: str, height: float, normal: Any) -> Shape:
    """A plane of the ground."""
    direction = checks.checked_array("the normal of the ground", normal, (3,))
    length = float(np.linalg.norm(direction))
    if length == 0.0:
        raise MechanismError("the normal of the ground has no direction: (0, 0, 1) is upwards")
    z = direction / length
    x = np.cross(np.eye(3)[int(np.argmin(np.abs(z)))], z)
    x /= np.linalg.norm(x)
    rotation = checks.snapped(np.column_stack([x, np.cross(z, x), z]))
    if np.array_equal(z, (0.0, 0.0, 1.0)):
        rotation = np.eye(3)
    position = checks.checked_number("the height of the ground", height) * z
    return Shape(name, "ground", PLANE, (), (rotation, position))


def with_contact(
    mech: Mechanism, pairs: Iterable[tuple[str, str]], step: float | None, numbers: dict[str, float]
) -> Mechanism:
    """A copy with contact pairs added or changed; without pairs all existing ones are changed."""
    pairs = list(pairs) or [pair.shapes for pair in mech.contact_pairs]
    if not pairs:
        raise MechanismError(
            f"nothing of mechanism {mech.name!r} touches yet: give it a floor with mech.with_ground(), or name "
            "pairs of shapes, with_contact(('foot', 'floor'))"
        )
    for name in numbers:
        checks.one_of("number of a contact", name, LAW)
    if step is not None and not checks.checked_number("the step of contacts", step) > 0.0:
        raise MechanismError(f"the step of contacts must be positive, not {step!r}")
    named = [_two_names(pair) for pair in pairs]
    asked = [in_order(mech, mech.contact.shape(a), mech.contact.shape(b)) for a, b in named]
    defaults = Defaults(mech, [*(pair.shapes for pair in mech.contact_pairs), *((a.name, b.name) for a, b in asked)])
    kept = {frozenset(pair.shapes): pair for pair in _with_new_defaults(mech, defaults)}
    for a, b in asked:
        key = frozenset((a.name, b.name))
        old = kept.get(key)
        if old is None or step is not None:
            margin, friction = (0.0, None) if old is None else (old.law.margin, old.law.friction)
            old = defaults.pair(a.name, b.name, numbers.get("friction", friction), step)
            old = replace(old, law=replace(old.law, margin=margin))
        law = replace(old.law, **numbers)
        if "stiffness" in numbers:  # it is meant, whatever the step
            old = replace(old, carried=math.inf)
        if {"stiffness", "damping"} <= numbers.keys():  # which say what mass they are made for
            old = replace(old, mass=law.damping**2 / (4.0 * law.stiffness))
        kept[key] = replace(old, law=law)
    return replace(mech, contact_pairs=tuple(kept.values()))


def _with_new_defaults(mech: Mechanism, defaults: Defaults) -> list[ContactPair]:
    """Contact pairs whose default parameters are recomputed: added shapes and pairs change the carried mass."""
    before, pairs = contact_defaults(mech), []
    for pair in mech.contact_pairs:
        old, new = (numbers_of.pair(*pair.shapes, pair.law.friction) for numbers_of in (before, defaults))
        changed = {name: getattr(new, name) for name in OF_PAIR if getattr(pair, name) == getattr(old, name)}
        numbers = {name: getattr(new.law, name) for name in LAW if getattr(pair.law, name) == getattr(old.law, name)}
        pairs.append(replace(pair, law=replace(pair.law, **numbers), **changed))
    return pairs


def _two_names(pair: Any) -> tuple[str, str]:
    if isinstance(pair, str) or len(tuple(pair)) != 2:
        raise MechanismError(f"a contact is a pair of names of shapes, ('foot', 'floor'), not {pair!r}")
    a, b = pair
    return a, b


def _number_of_parts(a: Shape, b: Shape) -> int:
    """Number of elementary contacts of a pair."""
    if by_supports(a, b) or not by_parts(b):
        return 1
    return len(bumps(a, a.pose)) + (len(bumps(b, b.pose)) if presses_back(a, b) else 0)
