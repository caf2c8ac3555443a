"""Groups of links: iterations that process several links of a chain at once.

Values between the links of an iteration stay in registers if possible, and never pass through memory of other
iterations.  A group is a chain of links of one class, each the only child of the one before.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..ir.program import Body, For, Place

IN_A_ROW = 2  # maximum links per iteration: more gained 1 % and took longer to compile
MANY = 16  # minimum iterations of a class that justify the longer code


class Group(NamedTuple):
    """The links of an iteration, from base to tip: each except the first is the only child of the one before."""

    links: tuple[int, ...]
    link_classes: tuple[int, ...]


def grouped(parents: Sequence[int], class_of: Sequence[int]) -> list[Group]:
    """All links in groups, parents first."""
    children = Counter(parents)
    rows: list[list[int]] = []  # chains of links of one class, each the only child
    row_of: list[list[int]] = []
    for i, parent in enumerate(parents):
        follows = parent >= 0 and children[parent] == 1 and class_of[parent] == class_of[i]
        row = row_of[parent] if follows else []
        if not follows:
            rows.append(row)
        row.append(i)
        row_of.append(row)
    full = Counter({link_class: 0 for link_class in class_of})
    for row in rows:
        full[class_of[row[0]]] += len(row) // IN_A_ROW
    groups = []
    for row in rows:
        link_class = class_of[row[0]]
        size = IN_A_ROW if full[link_class] >= MANY else 1
        ends = len(row) // size * size
        parts = [row[k : k + size] for k in range(0, ends, size)] + [[i] for i in row[ends:]]
        groups += [Group(tuple(part), (link_class,) * len(part)) for part in parts]
    return sorted(groups)


def group_parents(groups: Sequence[Group], parents: Sequence[int]) -> list[int]:
    """The parent group of each group; -1 for the ground."""
    group_of = {link: number for number, group in enumerate(groups) for link in group.links}
    return [group_of.get(parents[group.links[0]], -1) for group in groups]


def drop_redundant_positions(loop: For) -> For:
    """The loop without redundant positions: a position at a constant distance from an earlier one is replaced by it,
    since each position occupies an address register."""
    bodies = (_drop_redundant_positions(body, loop.bases[loop.which == k]) for k, body in enumerate(loop.bodies))
    return replace(loop, bodies=tuple(bodies))


def _drop_redundant_positions(body: Body, bases: np.ndarray) -> Body:
    if len(bases) < 2:
        return body
    used = sorted({place.base for place in (*body.reads, *body.writes) if place.base is not None})
    before: dict[int, tuple[int, int]] = {}  # by position, its substitute and the distance to it
    for k, base in enumerate(used):
        apart = bases[:, [base]] - bases[:, used[:k]]
        starts = [first for first, same in zip(used, (apart == apart[0]).all(axis=0), strict=False) if same]
        first = min(starts, default=base)
        before[base] = first, int(bases[0, base] - bases[0, first])

    def moved(place: Place) -> Place:
        if place.base is None:
            return place
        first, apart = before[place.base]
        return place._replace(base=first, offset=place.offset + apart)

    return replace(body, reads=tuple(map(moved, body.reads)), writes=tuple(map(moved, body.writes)))
