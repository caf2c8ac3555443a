"""The same constrained mechanism in other units, and in other sizes, has the same degrees of freedom, accelerations,
forces, configurations, derivatives and motions: no decision has a unit."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

import linkwise as lw
from tests.dynamics.closed.built_in import FREEDOMS, built, random_state
from tests.oracle.random_closed import FAMILIES, NEARLY, case
from tests.units import SYSTEMS, Units, lengths

TOLERANCE = 1e-9
OTHERS = SYSTEMS[1:]
#: The same mechanism so many times as large, in metres, under the same gravity.
SIZES = tuple(Units(f"size {size:g}", size, 1.0, size**0.5) for size in (1e-9, 1e-7, 1e6, 1e9))


class State(NamedTuple):
    """A mechanism in SI units with a state at which its loops are closed, or singular."""

    mech: lw.Mechanism
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


class In:
    """A state in other units; results come back in SI units."""

    def __init__(self, state: State, units: Units):
        si = state.mech
        self.si, self.units, self.mech = si, units, units.mechanism(si)
        self.q, self.v, self.tau = units.q(si, state.q), units.v(si, state.v), units.tau(si, state.tau)
        self.rng = np.random.default_rng(5)

    def a(self, a: Any) -> np.ndarray:
        return a / self.units.a(self.si, np.ones(self.si.nv))

    def forces(self, tau: Any) -> np.ndarray:
        return tau / self.units.tau(self.si, np.ones(self.si.nv))

    def velocities(self, v: Any) -> np.ndarray:
        return v / self.units.v(self.si, np.ones(self.si.nv))

    def positions(self, q: Any) -> np.ndarray:
        return q / self.units.q(self.si, np.ones(self.si.nq))

    def steps(self, v: Any) -> np.ndarray:
        return v / self.units.of_v(self.si)

    def wrenches(self, wrenches: Any) -> np.ndarray:
        return wrenches / self.units.wrenches(np.ones(6))


def _ranks(at: In) -> Any:
    return np.array([lw.closed.degrees_of_freedom(at.mech, at.q), lw.closed.generic_rank(at.mech, at.q)])


def _redundancy(at: In) -> Any:
    return np.array([[one.rank, one.constraints] for one in lw.closed.redundancy(at.mech).clusters])


def _by(method: str) -> Callable[[In], Any]:
    return lambda at: at.a(lw.closed.forward_dynamics(at.mech, at.q, at.v, at.tau, method=method))


def _baumgarte(at: In) -> Any:
    q = lw.integrate(at.mech, at.q, 1e-4 * at.units.of_v(at.si) * at.rng.normal(size=at.si.nv), 1.0)
    gains = (3.0 / at.units.time, 2.0 / at.units.time)
    return at.a(lw.closed.forward_dynamics(at.mech, q, at.v, at.tau, baumgarte=gains))


def _null_space(method: str) -> Callable[[In], Any]:
    """The projection on the motions that loops allow, along metres and radians."""

    def found(at: In) -> Any:
        basis = lw.closed.null_space(at.mech, at.q, method=method)
        np.testing.assert_allclose(basis.T @ basis, np.eye(basis.shape[1]), atol=1e-12)
        basis, _ = np.linalg.qr(at.steps(basis.T).T)
        return basis @ basis.T

    return found


def _reactions(at: In) -> Any:
    return at.wrenches(lw.closed.loop_reactions(at.mech, at.q, at.v, at.tau))


def _joint_wrenches(at: In) -> Any:
    return at.wrenches(lw.closed.joint_wrenches(at.mech, at.q, at.v, at.tau))


def _constraint_forces(at: In) -> Any:
    return at.forces(lw.closed.constraint_forces(at.mech, at.q, at.v, at.tau))


def _projection(at: In) -> Any:
    """Of a state that is a little off."""
    change = at.units.of_v(at.si) * at.rng.normal(size=(2, at.si.nv))
    q = lw.integrate(at.mech, at.q, 1e-4 * change[0], 1.0)
    q, v = lw.closed.project(at.mech, q, at.v + change[1] / at.units.time)
    return np.concatenate([at.positions(q), at.velocities(v)])


def _assembly(at: In) -> Any:
    """From a guess far away."""
    change = 0.3 * at.units.of_v(at.si) * at.rng.normal(size=at.si.nv)
    return at.positions(lw.closed.assemble(at.mech, lw.integrate(at.mech, at.q, change, 1.0)))


QUANTITIES: dict[str, Callable[[In], Any]] = {
    "ranks": _ranks,
    "redundancy": _redundancy,
    **{f"forward dynamics ({method})": _by(method) for method in lw.closed.ALL_METHODS},
    "stabilized": _baumgarte,
    "null space (svd)": _null_space("svd"),
    "null space (elimination)": _null_space("elimination"),
    "null space (differentiable)": _null_space("differentiable"),
    "reactions": _reactions,
    "joint wrenches": _joint_wrenches,
    "constraint forces": _constraint_forces,
    "projection": _projection,
    "assembly": _assembly,
}


def worst(state: State, units: Units, names=None) -> dict[str, Any]:
    here, there = In(state, SYSTEMS[0]), In(state, units)
    found = {}
    for name, quantity in QUANTITIES.items():
        if names and not any(n in name for n in names):
            continue
        try:
            here.rng=np.random.default_rng(5); there.rng=np.random.default_rng(5)
            expected = quantity(here)
        except Exception as e:
            found[name] = "SI " + repr(e)[:80]
            continue
        try:
            value = quantity(there)
            found[name] = float(np.abs(value - expected).max(initial=0.0) / max(np.abs(expected).max(initial=0.0), 1e-300)) if value.shape==expected.shape else "shape"
        except Exception as e:
            found[name] = repr(e)[:120]
    return found
