"""Contour curves on a grid: the points where they cross edges, found by changes of sign, joined to chains."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence

import numpy as np

Edge = tuple[int, int, int]  # axis, i, j: from node (i, j) to the next one along the axis
ROOT = 1e-13  # of the interval in which a root is looked for
STEPS = 80


def joined(edges: Sequence[Edge]) -> list[tuple[list[int], bool]]:
    """Chains of places in ``edges``, and whether each is closed; neighbours cross edges of one cell."""
    number = {edge: k for k, edge in enumerate(edges)}
    neighbours: dict[int, list[int]] = defaultdict(list)
    for i, j in dict.fromkeys(cell for edge in edges for cell in _cells_beside(edge)):
        around = ((0, i, j), (1, i, j), (0, i, j + 1), (1, i + 1, j))  # neighbours share a corner
        crossed = [number[edge] for edge in around if edge in number]
        for a, b in zip(crossed[::2], crossed[1::2], strict=False):
            neighbours[a].append(b)
            neighbours[b].append(a)
    return _chains(neighbours)


def _cells_beside(edge: Edge) -> tuple[tuple[int, int], tuple[int, int]]:
    axis, i, j = edge
    return ((i, j), (i, j - 1)) if axis == 0 else ((i, j), (i - 1, j))


def _chains(neighbours: dict[int, list[int]]) -> list[tuple[list[int], bool]]:
    """Chains and closed curves through points that each have one or two neighbours. Open chains start at points with
    one.
    """
    seen: set[int] = set()
    chains = []
    for start in sorted(neighbours, key=lambda point: len(neighbours[point])):
        if start in seen:
            continue
        chain, here = [start], start
        seen.add(start)
        while ahead := [point for point in neighbours[here] if point not in seen]:
            here = ahead[0]
            seen.add(here)
            chain.append(here)
        chains.append((chain, len(chain) > 2 and start in neighbours[here]))
    return chains


def bracketed_roots(
    function: Callable[[np.ndarray, np.ndarray], np.ndarray],
    low: np.ndarray,
    high: np.ndarray,
    at_low: np.ndarray,
    at_high: np.ndarray,
) -> np.ndarray:
    """(n,): where functions that have values of different sign at low (n,) and high (n,) vanish, by Chandrupatla's
    method.

    function   ``function(x, which)`` gives the values (k,) at x (k,) of the functions with the numbers ``which`` (k,)
    """
    width = ROOT * np.abs(high - low)
    # The root is between a, the latest, and b; c is the one before.
    a, b, c = high.astype(float), low.astype(float), low.astype(float)
    fa, fb, fc = at_high.astype(float), at_low.astype(float), at_low.astype(float)
    share = np.full(len(a), 0.5)
    which = np.flatnonzero((fa != 0.0) & (fb != 0.0))
    for _ in range(STEPS):
        if not len(which):
            break
        x = a[which] + share[which] * (b - a)[which]
        value = function(x, which)
        same = (value < 0.0) == (fa[which] < 0.0)
        c[which], fc[which] = np.where(same, a[which], b[which]), np.where(same, fa[which], fb[which])
        b[which], fb[which] = np.where(same, b[which], a[which]), np.where(same, fb[which], fa[which])
        a[which], fa[which] = x, value
        least = width[which] / np.maximum(np.abs(b - a)[which], np.finfo(float).tiny)
        share[which] = np.clip(_next_share(*(y[which] for y in (a, b, c, fa, fb, fc))), least, 1.0 - least)
        which = which[(least < 0.5) & (value != 0.0)]
    return np.where(np.abs(fa) < np.abs(fb), a, b)


def _next_share(
    a: np.ndarray, b: np.ndarray, c: np.ndarray, fa: np.ndarray, fb: np.ndarray, fc: np.ndarray
) -> np.ndarray:
    """Fraction from a to b of the next root estimate: inverse quadratic interpolation where safe, else bisection."""
    with np.errstate(divide="ignore", invalid="ignore"):
        xi, phi = (a - b) / (c - b), (fa - fb) / (fc - fb)
        curved = fa / (fb - fa) * fc / (fb - fc) + (c - a) / (b - a) * fa / (fc - fa) * fb / (fc - fb)
        safe = (phi**2 < xi) & ((1.0 - phi) ** 2 < 1.0 - xi) & np.isfinite(curved)
    return np.where(safe, curved, 0.5)
