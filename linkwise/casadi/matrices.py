"""Arrays as matrices of CasADi, which are stored by columns: indices of elements."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

import casadi
import numpy as np


def matrix_shape(shape: Sequence[int]) -> tuple[int, int]:
    """Shape of an array as a matrix: vectors are columns; higher arrays have their last axis as columns and all others
    as rows.
    """
    if len(shape) < 2:
        return math.prod(shape), 1
    return math.prod(shape[:-1]), shape[-1]


def positions(shape: Sequence[int]) -> np.ndarray:
    """Column-major position of each array element, in C order."""
    rows, columns = matrix_shape(shape)
    return np.arange(rows * columns).reshape(columns, rows).T.ravel()


def pattern(rows: int, columns: int, indices: np.ndarray) -> casadi.Sparsity:
    """The elements at these ascending places of a matrix that is read column by column."""
    return casadi.Sparsity.triplet(rows, columns, (indices % rows).tolist(), (indices // rows).tolist())


def identifier(name: str) -> str:
    """A name that CasADi accepts: letters, digits, and underscores one at a time."""
    return re.sub(r"_+", "_", re.sub(r"\W", "_", name)).strip("_")
