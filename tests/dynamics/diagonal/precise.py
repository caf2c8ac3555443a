"""Algorithms on numbers of fifty digits, where plain differences are exact for every purpose here."""

from __future__ import annotations

from collections.abc import Callable

import mpmath
import numpy as np

import linkwise as lw
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS
from linkwise.mechanics.recursions.tree import build_tree

DIGITS = 50
STEP = mpmath.mpf(10) ** -16  # error of a central difference: 1e-32 of truncation, 1e-34 of round-off


class Precise:
    """An mpmath number with the functions that linkwise.extend.scalar asks for."""

    def __init__(self, value):
        self.value = value.value if isinstance(value, Precise) else mpmath.mpf(value)

    def __add__(self, other):
        return Precise(self.value + Precise(other).value)

    def __sub__(self, other):
        return Precise(self.value - Precise(other).value)

    def __rsub__(self, other):
        return Precise(Precise(other).value - self.value)

    def __mul__(self, other):
        return Precise(self.value * Precise(other).value)

    def __truediv__(self, other):
        return Precise(self.value / Precise(other).value)

    def __rtruediv__(self, other):
        return Precise(Precise(other).value / self.value)

    __radd__, __rmul__ = __add__, __mul__

    def __neg__(self):
        return Precise(-self.value)

    def __lt__(self, other):
        return bool(self.value < Precise(other).value)

    def __gt__(self, other):
        return bool(self.value > Precise(other).value)

    def __float__(self):
        return float(self.value)

    def sin(self):
        return Precise(mpmath.sin(self.value))

    def cos(self):
        return Precise(mpmath.cos(self.value))

    def sqrt(self):
        return Precise(mpmath.sqrt(self.value))


def derivatives(mech: lw.Mechanism, algorithm: str, q: np.ndarray, **options) -> np.ndarray:
    """Of a function of q alone along every tangent direction (the last index), by central differences."""
    tree = build_tree(mech)

    def along(direction: np.ndarray) -> Callable[[mpmath.mpf], np.ndarray]:
        def at(t: mpmath.mpf) -> np.ndarray:
            start, unit = array(q), array(direction)
            moved = array(ALGORITHMS["integrate"].function(tree, start, unit, Precise(t)))
            return np.array(ALGORITHMS[algorithm].function(tree, moved, **options), dtype=object)

        return at

    with mpmath.workdps(DIGITS):
        slopes = []
        for direction in np.eye(mech.nv):
            function = along(direction)
            difference = function(STEP) - function(-STEP)
            slopes.append([float(Precise(x) / Precise(2 * STEP)) for x in difference.ravel()])
        return np.moveaxis(np.array(slopes).reshape(mech.nv, *difference.shape), 0, -1)


def array(values) -> np.ndarray:
    out = np.empty(len(values), dtype=object)
    out[:] = [Precise(x) for x in values]
    return out
