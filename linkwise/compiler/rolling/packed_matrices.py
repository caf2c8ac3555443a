"""Packed storage of matrix entries in cells, in the order of nested loops: from each degree of freedom through its
ancestors.

In a branched tree most entries are zero: they take no memory until results are written.  Entries written along one path
are contiguous, rather than a row and a column of a large matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

import numpy as np

from ...mechanism import Mechanism
from .values import Positions, starts_of_links

# Positions.  Of a link: the number of degrees of freedom on its path, and the start of its own pairs.  Of a degree of
# freedom: the start of its pairs with degrees of freedom on its path.
ANCESTOR_COUNT, AT_ONE_JOINT, OF_PAIRS = ("ancestors", 1), ("at one joint", 1), ("of pairs", 1)


class Packing:
    """Cells of matrix entries.  For each matrix: first the pairs at one joint, then the entries with the outer degree
    of freedom as row, and unless symmetric, those with it as column.

    symmetric    by matrix
    dof_starts   the first degree of freedom of each link
    ancestors    of each degree of freedom, the degrees of freedom on the path to its link
    of_pairs     of each degree of freedom, the start of its pairs with its ancestors
    """

    def __init__(self, mechanism: Mechanism, symmetric: Sequence[bool]):
        self.symmetric, self.dof_starts = symmetric, starts_of_links(mechanism, "nv")
        self._sizes = np.diff(self.dof_starts)
        self._to_link: list[np.ndarray] = []
        for parent in mechanism.tree.parents:
            inner = np.arange(*self.dof_starts[parent : parent + 2]) if parent >= 0 else np.zeros(0, int)
            self._to_link.append(np.concatenate([self._to_link[parent], inner]) if parent >= 0 else inner)
        self.ancestors = [path for path, size in zip(self._to_link, self._sizes, strict=True) for _ in range(size)]
        ends = np.cumsum([0, *map(len, self.ancestors)])
        self.of_pairs, self._pairs = ends[:-1], int(ends[-1])
        ends = np.cumsum([0, *self._sizes**2])
        self._at_one_joint, self._own = ends[:-1], int(ends[-1])

    def start(self, matrix: int) -> int:
        """The first cell of a matrix."""
        return sum(self._own + self._pairs * (1 if is_symmetric else 2) for is_symmetric in self.symmetric[:matrix])

    def rows(self, matrix: int) -> int:
        """The first cell of entries with the outer degree of freedom as row."""
        return self.start(matrix) + self._own

    def columns(self, matrix: int) -> int:
        """The first cell of entries with the outer degree of freedom as column."""
        return self.rows(matrix) + (0 if self.symmetric[matrix] else self._pairs)

    @property
    def cells(self) -> int:
        return self.start(len(self.symmetric))

    def numbers(self, positions: Positions) -> tuple[int, int, int]:
        """The positions ANCESTOR_COUNT, AT_ONE_JOINT and OF_PAIRS."""
        return (
            positions.number(ANCESTOR_COUNT, np.array([len(path) for path in self._to_link])),
            positions.number(AT_ONE_JOINT, self._at_one_joint),
            positions.number(OF_PAIRS, np.zeros(len(self._sizes), dtype=int)),
        )

    @cached_property
    def results(self) -> np.ndarray:
        """The cells of all entries, row by row; -1: zero."""
        n = len(self.ancestors)
        cells = np.full((len(self.symmetric), n, n), -1, dtype=np.int32)
        for matrix, indices in enumerate(cells):
            for diagonal, start, size in zip(self._at_one_joint, self.dof_starts, self._sizes, strict=False):
                block = self.start(matrix) + diagonal + np.arange(size * size).reshape(size, size)
                indices[start : start + size, start : start + size] = block
            for dof, path in enumerate(self.ancestors):
                pairs = self.of_pairs[dof] + np.arange(len(path))
                indices[dof, path] = self.rows(matrix) + pairs
                indices[path, dof] = self.columns(matrix) + pairs
        return cells.ravel()
