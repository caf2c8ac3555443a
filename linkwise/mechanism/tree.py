"""The tree of a mechanism: which body hangs on which."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property


@dataclass(frozen=True)
class Tree:
    """Bodies by their indices, parents before children.

    parents   index of each body's parent, -1 for the ground
    """

    parents: tuple[int, ...]

    @cached_property
    def children(self) -> tuple[tuple[int, ...], ...]:
        """Indices of each body's children."""
        children: list[list[int]] = [[] for _ in self.parents]
        for index, parent in enumerate(self.parents):
            if parent >= 0:
                children[parent].append(index)
        return tuple(map(tuple, children))

    def subtree(self, index: int) -> tuple[int, ...]:
        """Body ``index`` and everything it carries, ascending."""
        inside = {index}
        for i in range(index + 1, len(self.parents)):
            if self.parents[i] in inside:
                inside.add(i)
        return tuple(sorted(inside))

    def path(self, index: int) -> tuple[int, ...]:
        """Bodies from the one next to the ground out to ``index``, both included; empty for the ground (-1)."""
        path = []
        while index >= 0:
            path.append(index)
            index = self.parents[index]
        return tuple(reversed(path))
