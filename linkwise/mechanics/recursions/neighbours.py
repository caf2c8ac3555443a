"""Exchange of values between neighbouring links, the only path between links of a tree."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any, Protocol


class Neighbours(Protocol):
    """Access to values of neighbouring links by number; ``key`` names the exchanged quantity."""

    def has_parent(self, i: int) -> bool:
        """Whether the parent of link i is a link and not the ground."""

    def from_parent(self, i: int, key: Hashable, value: Callable[[int], Any]) -> Any:
        """``value(parent)``; None at the ground."""

    def from_children(self, i: int, key: Hashable, message: Callable[[int], Any], start: Any) -> Any:
        """``start`` plus the sum of ``message(child)`` over all children; None is an exact zero."""


class TreeNeighbours:
    """Neighbours in a tree whose links are all traced."""

    def __init__(self, parents: Sequence[int], children: Sequence[Sequence[int]]):
        self._parents, self._children = parents, children

    def has_parent(self, i: int) -> bool:
        return self._parents[i] >= 0

    def from_parent(self, i: int, key: Hashable, value: Callable[[int], Any]) -> Any:
        return value(self._parents[i]) if self._parents[i] >= 0 else None

    def from_children(self, i: int, key: Hashable, message: Callable[[int], Any], start: Any) -> Any:
        for c in self._children[i]:
            start = plus(start, message(c))
        return start


def plus(a: Any, b: Any) -> Any:
    """The sum of values at a link: forces, motions, inertias, lists of joint numbers or scalars."""
    if a is None or b is None:
        return b if a is None else a
    return [x + y for x, y in zip(a, b, strict=True)] if isinstance(a, list) else a + b
