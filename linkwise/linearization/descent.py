"""Descent of the energy on the closed mechanism, where all that acts derives from one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..constraints.variations import State
from ..dynamics.trees import difference, potential_energy
from .balance import LARGEST_STEP, Balance, Search, balance, moved, stiffness

LEVEL = 1e-13  # relative: differences of energy below are round-off
SMALLEST_STEP = 1e-9  # in unit steps: where not even so short a step leads down, no way does
FLAT = 1e-12  # relative to the largest curvature: one below is none


def has_potential(at: State, search: Search) -> bool:
    """Whether all applied forces derive from a potential. Wrenches that rotate with their links, constant forces on
    spherical and floating joints, and actuators do not.
    """
    if at.wrenches is not None and at.wrenches.any() or not getattr(at.passive, "has_potential", True):
        return False
    rotating = [at.mech.v_index(body.joint) for body in at.mech.bodies if not body.kind.rates_are_velocities]
    acting = at.tau != 0.0
    return not any(acting[rates][np.isin(np.arange(at.mech.nv)[rates], search.free)].any() for rates in rotating)


def _energy(at: State, search: Search, origin: np.ndarray) -> float:
    """The energy of gravity, springs, stops, and joint forces (from ``origin``), in units of ``search.energy``."""
    energy = potential_energy(at.mech, at.q) - at.tau @ difference(at.mech, origin, at.q)
    if at.passive is not None:
        energy = energy + at.passive.energy(at.q)
    return float(energy) / search.energy


def descent(at: State, search: Search, max_steps: int) -> list[Balance]:
    """A path of decreasing energy to a minimum; every step lowers the energy.

    Steps are those of a trust region: they lead to the lowest point, no further than a radius, of the energy to second
    order on the closed mechanism, whose curvature is exact.  A saddle or a maximum is left along its lowest curvature.
    """
    here, level = balance(at, search), _energy(at, search, at.q)
    way, radius = [here], LARGEST_STEP
    for _ in range(max_steps):
        if search.strayed(here.at):
            break
        dofs = here.dofs
        slope, curvature = dofs.T @ here.forces, dofs.T @ stiffness(here) @ dofs
        curvature = 0.5 * (curvature + curvature.T)
        step = _lowest_within(radius, slope, curvature)
        expected = -(slope @ step + 0.5 * step @ curvature @ step)
        if expected <= LEVEL * (1.0 + abs(level)):
            break
        length = float(np.linalg.norm(step))
        there = moved(here, dofs @ step)
        below = np.inf if there is None else _energy(there, search, at.q)
        share = (level - below) / expected
        if share < 0.25:
            radius = 0.25 * length
        elif share > 0.75 and length > 0.9 * radius:
            radius = min(2.0 * radius, LARGEST_STEP)
        if there is not None and share > 0.1:
            here, level = balance(there, search), below
            way.append(here)
        elif radius < SMALLEST_STEP:
            break
    return way


def drop(way: Sequence[Balance]) -> float:
    """Energy lost along a path."""
    first, last = way[0].at, way[-1].at
    search = way[0].search
    return search.energy * (_energy(first, search, first.q) - _energy(last, search, first.q))


def _lowest_within(radius: float, slope: np.ndarray, curvature: np.ndarray) -> np.ndarray:
    """(p,): the lowest point of slope x + x curvature x / 2 with |x| <= radius: x = -(curvature + shift)^-1 slope."""
    if not len(slope):
        return slope
    values, vectors = np.linalg.eigh(curvature)
    along = vectors.T @ slope
    size = float(np.linalg.norm(slope))
    flat = FLAT * max(float(np.abs(values).max()), size / radius) or 1.0
    shift = max(0.0, flat - values[0])
    step = -along / (values + shift)
    if np.linalg.norm(step) > radius:
        low, high = shift, shift + size / radius
        for _ in range(60):
            shift = 0.5 * (low + high)
            step = -along / (values + shift)
            low, high = (shift, high) if np.linalg.norm(step) > radius else (low, shift)
    elif values[0] < -flat:  # no slope along the lowest curvature: either side is down
        step[0] += np.copysign(np.sqrt(radius**2 - step @ step), step[0])
    return vectors @ step
