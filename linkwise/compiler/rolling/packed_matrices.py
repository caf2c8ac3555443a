"""Entries of matrices side by side in cells, as the paths to the root compute them: from each degree of freedom through
its ancestors.

Of a branched tree most entries are zero: they take no memory until results are delivered.  And what one path writes
lies in a row, not in a row and a column of a large matrix.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ...mechanism import Mechanism

# Positions: of a link, how many degrees of freedom there are on the path to it, and where pairs of its own begin; of a
# degree of freedom, where its pairs with those on the path to it begin.
ANCESTOR_COUNT, AT_ONE_JOINT, OF_PAIRS = ("ancestors", 1), ("at one joint", 1), ("of pairs", 1)


@dataclass(frozen=True)
class Packing:
    """Which cells the entries of matrices are in: of each matrix first those of pairs at one joint, then those with the
    outer degree of freedom as row, and those with it as column unless the matrix is symmetric.

    symmetric   by matrix
    ancestor_counts, at_one_joint   (links,)
    of_pairs    (degrees of freedom,)
    paths       of each degree of freedom, its ancestors: those on the path to it
    """

    symmetric: tuple[bool, ...]
    ancestor_counts: np.ndarray
    at_one_joint: np.ndarray
    of_pairs: np.ndarray
    paths: Sequence[np.ndarray]
    sizes: np.ndarray

    @staticmethod
    def of(mechanism: Mechanism, symmetric: Sequence[bool]) -> Packing:
        sizes = np.array([body.nv for body in mechanism.bodies])
        starts = np.concatenate([[0], np.cumsum(sizes)])
        to_link: list[np.ndarray] = []  # degrees of freedom on the path to it
        paths: list[np.ndarray] = []
        for i, parent in enumerate(mechanism.tree.parents):
            inner = np.arange(starts[parent], starts[parent + 1]) if parent >= 0 else np.zeros(0, int)
            to_link.append(np.concatenate([to_link[parent], inner]) if parent >= 0 else inner)
            paths += [to_link[i]] * int(sizes[i])
        lengths = np.array([len(path) for path in paths], dtype=int)
        return Packing(
            tuple(symmetric),
            np.array([len(path) for path in to_link]),
            np.concatenate([[0], np.cumsum(sizes**2)])[:-1],
            np.concatenate([[0], np.cumsum(lengths)])[:-1],
            paths,
            sizes,
        )

    @property
    def dof_starts(self) -> np.ndarray:
        """The first degree of freedom of each link."""
        return np.concatenate([[0], np.cumsum(self.sizes)])

    @property
    def _pairs(self) -> int:
        return sum(len(path) for path in self.paths)

    @property
    def _own(self) -> int:
        return int((self.sizes**2).sum())

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

    @property
    def positions(self) -> dict[tuple[str, int], np.ndarray]:
        """Of all links."""
        return {
            ANCESTOR_COUNT: self.ancestor_counts,
            AT_ONE_JOINT: self.at_one_joint,
            OF_PAIRS: np.zeros(len(self.sizes), dtype=int),
        }

    def results(self) -> np.ndarray:
        """The cells of all entries, row by row; -1: zero."""
        n = len(self.paths)
        cells = np.full((len(self.symmetric), n, n), -1, dtype=np.int32)
        starts = self.dof_starts
        for matrix, indices in enumerate(cells):
            for i, size in enumerate(self.sizes.tolist()):
                block = self.start(matrix) + self.at_one_joint[i] + np.arange(size * size).reshape(size, size)
                indices[starts[i] : starts[i + 1], starts[i] : starts[i + 1]] = block
            for dof, path in enumerate(self.paths):
                pairs = self.of_pairs[dof] + np.arange(len(path))
                indices[dof, path] = self.rows(matrix) + pairs
                indices[path, dof] = self.columns(matrix) + pairs
        return cells.ravel()
