"""The built-in closed mechanisms with assembled configurations and states away from singular positions."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import Mechanism

SYMMETRIC = np.array(
    [2 * np.pi / 3, np.pi / 3 + np.arccos(2 / 3), 2 * np.arcsin(2 / 3), np.pi / 3 + np.arccos(2 / 3)]
)  # of the five-bar
STRETCHED = np.array([np.pi, 0.0, np.pi, 0.0])

FREEDOMS = {
    "four_bar": 1,
    "slider_crank": 1,
    "five_bar": 2,
    "parallel_four_bar_robot": 2,
    "n_four_bar": 1,
    "loader": 2,
    "bricard": 1,
    "flyball_governor": 2,
    "stewart_platform": 6,
    "delta_robot": 3,
}
_built: dict[str, Mechanism] = {}

every_mechanism = pytest.mark.parametrize("name", FREEDOMS)


def built(name: str) -> Mechanism:
    """One copy of each, so that kernels are compiled once."""
    if name not in _built:
        _built[name] = getattr(lw.mechanisms, name)()
    return _built[name]


def assembled(name: str) -> np.ndarray:
    if name == "five_bar":
        return SYMMETRIC
    if name == "parallel_four_bar_robot":
        return np.array([1.0, 0.3, 0.7, -0.7 - np.pi])
    return lw.neutral(built(name))


def random_state(name: str, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """A closed configuration near the assembled one, reached along a freedom, and a velocity that keeps it closed."""
    mech, rng = built(name), np.random.default_rng(seed)
    q = assembled(name)
    basis = lw.constraints.null_space(mech, q)
    q = lw.integrate(mech, q, 0.1 * basis @ rng.normal(size=basis.shape[1]), 1.0)
    return lw.constraints.project(mech, q, rng.normal(size=mech.nv), largest=1.0)
