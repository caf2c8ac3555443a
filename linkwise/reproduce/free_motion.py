"""Motion under given joint forces from an initial state, by SciPy's Runge-Kutta method of order eight."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.integrate import solve_ivp

import linkwise as lw


@dataclass(frozen=True)
class Motion:
    """t (m,), q (m, nq), v (m, nv), a (m, nv) and the energies (m,) at the requested times."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    kinetic: np.ndarray
    potential: np.ndarray

    @property
    def energy(self) -> np.ndarray:
        return self.kinetic + self.potential


def simulate(
    mech: lw.Mechanism,
    q,
    v,
    times,
    tau: Callable[[float], np.ndarray] | None = None,
    tolerance: float = 1e-12,
) -> Motion:
    """The motion from (q, v) at ``times[0]``, seen at ``times``; joint forces ``tau(t)``, none for a free fall."""
    t = np.asarray(times, dtype=float)
    drive = tau or (lambda time: np.zeros(mech.nv))

    def rates(time: float, state: np.ndarray) -> np.ndarray:
        q, v = state[: mech.nq], state[mech.nq :]
        return np.concatenate([lw.coordinate_rates(mech, q, v), lw.forward_dynamics(mech, q, v, drive(time))])

    start = np.concatenate([np.asarray(q, dtype=float), np.asarray(v, dtype=float)])
    found = solve_ivp(rates, (t[0], t[-1]), start, method="DOP853", t_eval=t, rtol=tolerance, atol=tolerance)
    if not found.success:
        raise ArithmeticError(f"the motion could not be followed beyond t = {found.t[-1]:.6g} s: {found.message}")
    q, v = found.y[: mech.nq].T, found.y[mech.nq :].T
    a = lw.forward_dynamics(mech, q, v, np.array([drive(time) for time in t]))
    return Motion(t, q, v, a, lw.kinetic_energy(mech, q, v), lw.potential_energy(mech, q))
