"""Motions of closed mechanisms: the underlying ODE (2.5, 2.43, 3.5), integrated with loops kept closed by projection
after every accepted step (3.1.3), by Baumgarte's terms (3.8), or not at all."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.integrate

from .. import tree_dynamics as tree
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import did_you_mean
from .assembly import CLOSED, generic_rank, project
from .constraints import constraint_jacobian, position_error
from .dynamics import forward_dynamics

ADAPTIVE = {
    "rk45": scipy.integrate.RK45,
    "dop853": scipy.integrate.DOP853,
    "radau": scipy.integrate.Radau,
    "bdf": scipy.integrate.BDF,
    "lsoda": scipy.integrate.LSODA,
}
ONE_STEP = ("rk45", "dop853", "radau")  # they keep nothing of earlier steps, so a step's result may be corrected
STABILIZATIONS = ("projection", "baumgarte", None)
Control = Callable[[float, np.ndarray, np.ndarray], Any]


@dataclass(frozen=True)
class Motion:
    """States at the times ``t`` (steps,): q (steps, ..., nq) and v (steps, ..., nv)."""

    mechanism: Mechanism
    t: np.ndarray
    q: np.ndarray
    v: np.ndarray

    @property
    def energy(self) -> np.ndarray:
        """Kinetic and potential energy together."""
        return tree.kinetic_energy(self.mechanism, self.q, self.v) + tree.potential_energy(self.mechanism, self.q)

    @property
    def constraint_error(self) -> np.ndarray:
        """Norm of g(q)."""
        return np.linalg.norm(position_error(self.mechanism, self.q), axis=-1)

    @property
    def slip(self) -> np.ndarray:
        """Norm of G v."""
        jacobian = constraint_jacobian(self.mechanism, self.q)
        return np.linalg.norm((jacobian @ self.v[..., None])[..., 0], axis=-1)


def simulate(
    mech: Mechanism,
    q0,
    v0,
    duration: float,
    control: Control | None = None,
    method: str = "rk4",
    step: float | None = None,
    formulation: str = "svd",
    stabilization: str | None = "projection",
    baumgarte: tuple[float, float] = (10.0, 10.0),
    keep_energy: bool = False,
    rtol: float = 1e-9,
    atol: float = 1e-9,
    tolerance: float = CLOSED,
) -> Motion:
    """The motion from (q0, v0) under ``control(t, q, v) -> tau`` (none: tau = 0).

    method          "rk4" with the fixed ``step`` (default 1 ms; batches of states allowed), or one of SciPy's adaptive
                    ones, "rk45", "dop853", "radau", "bdf", "lsoda" with ``rtol`` and ``atol``, its steps no longer
                    than ``step`` if that is given
    formulation     method of ``forward_dynamics``
    stabilization   "projection" (onto loops and velocities, to ``tolerance``), "baumgarte" (alpha, beta), or None
    keep_energy     project onto the initial energy too; for conservative systems
    """
    _check(method, stabilization, keep_energy)
    q, v = _states(mech, q0, v0, method)
    rank = generic_rank(mech, q.reshape(-1, mech.nq)[0])
    dynamics = _Dynamics(mech, control, formulation, baumgarte if stabilization == "baumgarte" else None, rank)
    if stabilization == "projection":
        q, v = project(mech, q, v, tolerance=tolerance, rank=rank)
    energy = tree.kinetic_energy(mech, q, v) + tree.potential_energy(mech, q) if keep_energy else None

    def corrected(q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        if stabilization != "projection":
            return q, v
        return project(mech, q, v, energy, tolerance=tolerance, rank=rank)

    if method == "rk4":
        return _fixed_steps(dynamics, q, v, duration, step or 1e-3, corrected)
    limit = np.inf if step is None else step
    return _adaptive_steps(dynamics, q, v, duration, method, corrected, rtol=rtol, atol=atol, max_step=limit)


@dataclass(frozen=True)
class _Dynamics:
    """The right-hand side of the underlying ODE."""

    mech: Mechanism
    control: Control | None
    formulation: str
    baumgarte: tuple[float, float] | None
    rank: int

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        tau = np.zeros(self.mech.nv) if self.control is None else np.asarray(self.control(t, q, v), dtype=float)
        a = forward_dynamics(self.mech, q, v, tau, self.formulation, self.baumgarte, rank=self.rank)
        return tree.coordinate_rates(self.mech, q, v), a


def _fixed_steps(dynamics: _Dynamics, q, v, duration: float, step: float, corrected) -> Motion:
    """The classical Runge-Kutta method of fourth order, as in the paper."""
    count = round(duration / step)
    if count < 1:
        raise MechanismError(f"a motion of {duration:g} s needs at least one step of {step:g} s")
    times, states = np.linspace(0.0, duration, count + 1), [(q, v)]
    h = duration / count
    for t in times[:-1]:
        k1 = dynamics(t, q, v)
        k2 = dynamics(t + h / 2, q + h / 2 * k1[0], v + h / 2 * k1[1])
        k3 = dynamics(t + h / 2, q + h / 2 * k2[0], v + h / 2 * k2[1])
        k4 = dynamics(t + h, q + h * k3[0], v + h * k3[1])
        q, v = (x + h / 6 * (a + 2 * b + 2 * c + d) for x, a, b, c, d in zip((q, v), k1, k2, k3, k4, strict=True))
        q, v = corrected(q, v)
        states.append((q, v))
    return Motion(dynamics.mech, times, *(np.array(x) for x in zip(*states, strict=True)))


def _adaptive_steps(dynamics: _Dynamics, q, v, duration: float, method: str, corrected, **options) -> Motion:
    """SciPy's integrators, stepped by hand so that every accepted step can be corrected."""
    nq = dynamics.mech.nq

    def rate(t: float, x: np.ndarray) -> np.ndarray:
        return np.concatenate(dynamics(t, x[:nq], x[nq:]))

    solver = ADAPTIVE[method](rate, 0.0, np.concatenate([q, v]), duration, **options)
    times, states = [0.0], [(q, v)]
    while solver.status == "running":
        message = solver.step()
        if solver.status == "failed":
            raise MechanismError(f"{method} failed at t = {solver.t:.6g} s: {message}")
        q, v = solver.y[:nq], solver.y[nq:]
        if method in ONE_STEP:
            q, v = corrected(q, v)
            solver.y = np.concatenate([q, v])
            solver.f = rate(solver.t, solver.y)
        times.append(solver.t)
        states.append((q, v))
    return Motion(dynamics.mech, np.array(times), *(np.array(x) for x in zip(*states, strict=True)))


def _states(mech: Mechanism, q0, v0, method: str) -> tuple[np.ndarray, np.ndarray]:
    """Initial positions and velocities with one batch shape."""
    q, v = np.asarray(q0, dtype=float), np.asarray(v0, dtype=float)
    if q.shape[-1:] != (mech.nq,) or v.shape[-1:] != (mech.nv,):
        raise MechanismError(
            f"mechanism {mech.name!r} has nq = {mech.nq}, nv = {mech.nv}, but q0 has shape {q.shape} and v0 {v.shape}"
        )
    batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
    if batch and method != "rk4":
        raise MechanismError(f"{method} integrates one state at a time; use method='rk4' for batches")
    return np.broadcast_to(q, (*batch, mech.nq)).copy(), np.broadcast_to(v, (*batch, mech.nv)).copy()


def _check(method: str, stabilization: str | None, keep_energy: bool) -> None:
    if method not in ("rk4", *ADAPTIVE):
        raise ValueError(f"unknown method {method!r}: " + did_you_mean(method, ("rk4", *ADAPTIVE)))
    if stabilization not in STABILIZATIONS:
        raise ValueError(f"stabilization must be 'projection', 'baumgarte' or None, not {stabilization!r}")
    if stabilization == "projection" and method not in ("rk4", *ONE_STEP):
        raise ValueError(
            f"{method} works with values of earlier steps, which projection would falsify: use 'baumgarte' or None, or "
            f"one of {', '.join(('rk4', *ONE_STEP))}"
        )
    if keep_energy and stabilization != "projection":
        raise ValueError("keep_energy needs stabilization='projection'")
