"""Pairs of degrees of freedom on one path: the entries of matrices over the joints.

A value of a degree of freedom is propagated inwards from link to link, and at every joint on its path gives entries
with the degrees of freedom there.  In a branched tree all other entries are zero.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from ..scalar import Matrix, Scalar

Dof = tuple[int, int]  # a link, and the index of a degree of freedom of its joint
OfColumns = Callable[[list[list[Scalar]]], list[list[list[Scalar]]]]  # from columns over all joints to columns by joint


class Inwards(Protocol):
    """Values propagated inwards during a sweep from tip to base."""

    def arriving(self, i: int) -> Sequence[tuple[Dof, Any]]:
        """Columns of degrees of freedom beyond link i, moved to link i."""

    def hand_on(self, i: int, values: Mapping[Dof, Any]) -> None:
        """Pass the columns of link i, arrived and its own, to its parent, in the parent's frame."""


class MatrixOfDofs(Protocol):
    """A matrix whose rows and columns are degrees of freedom."""

    def __setitem__(self, pair: tuple[Dof, Dof], value: Scalar) -> None: ...


class InwardsOnTree:
    """Columns propagated inwards on a tree whose links are all traced."""

    def __init__(self, parents: Sequence[int]):
        self._parents = parents
        self._arrived: list[list[tuple[Dof, Any]]] = [[] for _ in parents]

    def arriving(self, i: int) -> Sequence[tuple[Dof, Any]]:
        return self._arrived[i]

    def hand_on(self, i: int, values: Mapping[Dof, Any]) -> None:
        self._arrived[self._parents[i]] += values.items()
        self._arrived[i] = []


class DenseMatrixOfDofs:
    """A matrix over the joints of a tree whose links are all traced: ``rows`` of all joints, mimic joints included."""

    def __init__(self, starts: Sequence[int], size: int):
        self._starts = starts
        self.rows: Matrix = [[0.0] * size for _ in range(size)]

    def __setitem__(self, pair: tuple[Dof, Dof], value: Scalar) -> None:
        (i, k), (j, m) = pair
        self.rows[self._starts[i] + k][self._starts[j] + m] = value
