"""Simulation in joint velocities, in nu and in xi, with one integrator for all."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.integrate import solve_ivp

import linkwise as lw


def simulate(
    mech: lw.Mechanism,
    q: np.ndarray,
    v: np.ndarray,
    times: np.ndarray,
    variables: str,
    control: Callable[..., np.ndarray] | None = None,
    tolerance: float = 1e-11,
) -> tuple[np.ndarray, np.ndarray]:
    """q and v at ``times``; ``variables`` is what is integrated besides q: "v", "nu" or "xi"."""
    normalized = variables == "nu"
    torque = control or (lambda t, q, v: np.zeros(mech.nv))

    def slope(t: float, state: np.ndarray) -> np.ndarray:
        q, rates = state[: mech.nq], state[mech.nq :]
        if variables == "v":
            change, v = lw.forward_dynamics(mech, q, rates, torque(t, q, rates)), rates
        elif control is None:
            change, v = lw.formulations.diagonal.motion(mech, q, rates, np.zeros(mech.nv), normalized=normalized)
        else:
            v = lw.formulations.diagonal.velocities(mech, q, rates, normalized=normalized)
            change = lw.formulations.diagonal.forward_dynamics(mech, q, rates, torque(t, q, v), normalized=normalized)
        return np.concatenate([lw.kinematics.coordinate_rates(mech, q, v), change])

    first = v if variables == "v" else lw.formulations.diagonal.rates(mech, q, v, normalized=normalized)
    start = np.concatenate([q, first])
    run = solve_ivp(slope, (times[0], times[-1]), start, "DOP853", times, rtol=tolerance, atol=tolerance)
    assert run.success, run.message
    q, rates = run.y.T[:, : mech.nq], run.y.T[:, mech.nq :]
    return q, rates if variables == "v" else lw.formulations.diagonal.velocities(mech, q, rates, normalized=normalized)
