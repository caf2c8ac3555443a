"""Link classes: links with the same computation and different numbers.

Two links are in one class if their joints are of one kind, if their numbers vanish at the same places, so that the same
operations fold away, and if their positions in the tree are alike: on the ground or not, carrying others or not.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Hashable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from ..links.link import Link
from ..scalar import Scalar
from ..spatial import Transform, Translation
from ..spatial.factors import Orientation

FEW = 64  # maximum number of links for which a separate class is too rare
Standing = tuple[bool, bool, bool]  # on the ground, carries others, first to pass something on
Form = Any  # structure of a value: what ``assembled`` needs besides its numbers


def taken_apart(value: Any) -> tuple[Form, list[Scalar]]:
    """The structure of a nested value, and its numbers."""
    numbers: list[Scalar] = []

    def form_of(part: Any) -> Form:
        if isinstance(part, (tuple, list)):
            return type(part), tuple(map(form_of, part))
        if part is None or isinstance(part, int):  # the axis of a rotation
            return part
        numbers.append(part)
        return _NUMBER

    return form_of(value), numbers


def assembled(form: Form, numbers: Sequence[Scalar]) -> Any:
    """The value with this form and these numbers."""
    rest = iter(numbers)

    def value_of(part: Form) -> Any:
        if part is _NUMBER:
            return next(rest)
        if not isinstance(part, tuple):
            return part
        kind, parts = part
        values = map(value_of, parts)
        return kind._make(values) if hasattr(kind, "_make") else kind(values)

    return value_of(form)


_NUMBER = "number"


@dataclass(frozen=True)
class LinkClass:
    """Links of one class.

    links      their numbers in the tree, ascending
    example    the first of them
    table      (links, numbers): the numbers of ``example``, for all of them
    grounded   whether they are on the ground
    carries    whether they carry other links
    first      whether their message is the first that their parents receive, in a sweep from tip to base
    """

    links: tuple[int, ...]
    example: Link
    table: np.ndarray
    grounded: bool
    carries: bool
    first: bool

    @cached_property
    def varies(self) -> np.ndarray:
        """Whether each number differs among the links. A link alone in its class is compiled like a member of a larger
        one, so that variants of a mechanism share the code."""
        if len(self.links) == 1:
            return np.array([_folding(number) is None for number in self.table[0].tolist()], bool)
        return (self.table != self.table[0]).any(axis=0)

    def link(self, numbers: Sequence[Scalar]) -> Link:
        """The link with the given ``numbers`` for varying entries."""
        (form, values), rest = taken_apart(_numbers(self.example)), iter(numbers)
        values = [next(rest) if varies else value for value, varies in zip(values, self.varies, strict=True)]
        of_joint, transform, spin, inertia, regrouped, armature, user = assembled(form, values)
        return dataclasses.replace(
            self.example,
            joint=self.example.joint.with_canonical_numbers(of_joint) if of_joint else self.example.joint,
            place=transform,
            spin=spin,
            inertia=inertia,
            regrouped=regrouped,
            armature=armature,
            user=user,
        )


def classify_links(links: Sequence[Link], marked: Collection[int] = ()) -> list[LinkClass]:
    """The link classes of a tree, in order of their first links.  ``marked`` links and those on the paths to them get
    classes of their own.

    A link with a rare class is generalized to one in a general position, in which nothing folds away; if its class is
    still rare, also to one with an armature.  A link without any others of its class is not generalized.
    """
    few = max(2, len(links) // FEW)
    last_child = {link.parent: i for i, link in enumerate(links)}
    standing = [(link.parent < 0, i in last_child, last_child[link.parent] == i) for i, link in enumerate(links)]
    marks = _marks(links, marked)
    link_classes: list[LinkClass] = []
    left, special = list(range(len(links))), len(LEVELS) - 1
    for level, (form_of, folds) in enumerate(LEVELS):
        groups: dict[tuple[Hashable, Hashable, Standing], list[tuple[int, Link, list[float]]]] = {}
        for i in left:
            link = form_of(links[i])
            key, numbers = _outline(link, folds)
            groups.setdefault((key, marks[i], standing[i]), []).append((i, link, numbers))
        left = []
        for (_, _, stands), members in groups.items():
            numbers_of_links = tuple(i for i, _, _ in members)
            if level == special and len(members) == 1:
                (i,) = numbers_of_links
                link_classes.append(LinkClass((i,), links[i], np.array([_plain_numbers(links[i])]), *stands))
            elif level == special or len(members) >= few:
                table = np.array([numbers for _, _, numbers in members])
                link_classes.append(LinkClass(numbers_of_links, members[0][1], table, *stands))
            else:
                left += numbers_of_links
        left.sort()
    return sorted(link_classes, key=lambda link_class: link_class.links)


def _marks(links: Sequence[Link], marked: Collection[int]) -> list[Hashable]:
    """For every link, the marked links in its subtree, including itself."""
    carried: list[set[int]] = [{i} if i in marked else set() for i in range(len(links))]
    for i in reversed(range(len(links))):
        if links[i].parent >= 0 and carried[i]:
            carried[links[i].parent] |= carried[i]
    return [(frozenset(beyond), i if i in marked else None) for i, beyond in enumerate(carried)]


def _numbers(link: Link) -> tuple[Any, ...]:
    of_joint = tuple(getattr(link.joint, name) for name in link.joint.canonical_numbers or ())
    return (of_joint, link.place, link.spin, link.inertia, link.regrouped, link.armature, link.user)


def _outline(link: Link, folds: Callable[[Link], list[float]]) -> tuple[Hashable, list[float]]:
    """Class key of a link, and its numbers, as ``taken_apart`` returns them."""
    form = tuple((type(step), getattr(step, "axis", None)) for step in (*link.place.factors, None, *link.user.factors))
    key = link.joint.canonical_kind, link.quarter_turns, form, *map(_folding, folds(link))
    return key, _plain_numbers(link)


def _plain_numbers(link: Link) -> list[float]:
    """The numbers that ``taken_apart`` returns, computed faster: it is called for every link."""
    numbers = _joint_numbers(link) if link.joint.canonical_numbers else []
    for step in link.place.factors:
        numbers += step.numbers
    numbers += (link.spin, *link.inertia.numbers, *link.regrouped.numbers, *link.armature)
    for step in link.user.factors:
        numbers += step.numbers
    return numbers


def _general(link: Link) -> Link:
    """A copy of the link with its placement in the most general form."""
    angle = link.joint.rotation_coordinate
    return dataclasses.replace(
        link,
        place=_general_transform(link.place),
        spin=link.spin if angle is None else link.spin + link.quarter_turns * (math.pi / 2),
        quarter_turns=0,
        user=_general_transform(link.user),
    )


def _general_transform(transform: Transform) -> Transform:
    return Transform((Translation(transform.position()), Orientation(transform.rotation())))


def _joint_numbers(link: Link) -> list[float]:
    return taken_apart([getattr(link.joint, name) for name in link.joint.canonical_numbers or ()])[1]


#: Forms of a link and the numbers that must fold away alike, from special classes to general ones.
LEVELS: tuple[tuple[Callable[[Link], Link], Callable[[Link], list[float]]], ...] = (
    (lambda link: link, _plain_numbers),
    (_general, lambda link: [*_joint_numbers(link), *link.armature]),
    (_general, _joint_numbers),
)


def _folding(number: float) -> float | None:
    """The number, if operations with it fold away; otherwise None."""
    return number if number in (0.0, 1.0, -1.0) else None


def outward(link_classes: Sequence[LinkClass], parents: Sequence[int]) -> Iterator[int]:
    """The classes ordered so that the parent of each, unless on the ground, is of an earlier class."""
    depth = [0] * len(parents)
    for i, parent in enumerate(parents):
        depth[i] = depth[parent] + 1 if parent >= 0 else 0
    return iter(sorted(range(len(link_classes)), key=lambda k: min(depth[i] for i in link_classes[k].links)))


def inward(link_classes: Sequence[LinkClass], parents: Sequence[int]) -> Iterator[int]:
    """The classes in an order in which each but the last links has a child of a class before it."""
    height = [0] * len(parents)
    for i in reversed(range(len(parents))):
        if parents[i] >= 0:
            height[parents[i]] = max(height[parents[i]], height[i] + 1)
    return iter(sorted(range(len(link_classes)), key=lambda k: min(height[i] for i in link_classes[k].links)))
