"""Velocities and accelerations from encoders: positions over time, smoothed, with covariances."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...mechanism import Mechanism, MechanismError, require_mechanism
from ..states import Float64Array, real_numbers

DENSITIES = 10.0 ** np.arange(-4.0, 13.0)  # (rad/s^3)^2 s, tried first
REFINED = 12  # further steps that narrow the logarithm
FAR = 1e3


@dataclass(frozen=True, eq=False)
class EncoderMotion:
    """Motion of the joints at the times of the measurements.

    t                (n,)
    q, v, a          (n, nv) positions, velocities, accelerations
    covariances      (n, nv, 3, 3) of the errors of each coordinate's position, velocity and acceleration
    jerk             (nv,) the square roots of the densities of the jerk that was assumed
    log_likelihood   (nv,) of each coordinate's measurements
    """

    t: Float64Array
    q: Float64Array
    v: Float64Array
    a: Float64Array
    covariances: Float64Array
    jerk: Float64Array
    log_likelihood: Float64Array

    @property
    def q_std(self) -> Float64Array:
        return np.sqrt(self.covariances[..., 0, 0])

    @property
    def v_std(self) -> Float64Array:
        return np.sqrt(self.covariances[..., 1, 1])

    @property
    def a_std(self) -> Float64Array:
        """(n, nv): what ``Noise.acceleration`` takes."""
        return np.sqrt(self.covariances[..., 2, 2])


def encoder_motion(
    mech: Mechanism, t: ArrayLike, q: ArrayLike, noise: ArrayLike, jerk: ArrayLike | None = None
) -> EncoderMotion:
    """Kalman's filter and Rauch, Tung and Striebel's smoother over time, for every coordinate of its own.

    t       (n,) rising times
    q       (n, nv) measured coordinates
    noise   standard deviation of each, a number or (nv,); positive
    jerk    how lively motions are: the jerk is white noise of density jerk**2, a number or (nv,); by default what makes
            the measurements most likely

    Errors of neighbouring times are correlated: ``covariances`` are of one time each.  Coordinates of joints that have
    quaternions are no numbers to differentiate; such mechanisms are refused.
    """
    require_mechanism(mech)
    for body in mech.bodies:
        if body.kind.nq != body.kind.nv:
            raise MechanismError(
                f"joint {body.joint!r} of mechanism {mech.name!r} has a quaternion: encoder_motion takes coordinates "
                "whose rates are the velocities"
            )
    times, positions = real_numbers("t", t), real_numbers("q", q)
    if times.ndim != 1 or len(times) < 4 or not (np.diff(times) > 0.0).all():
        raise MechanismError("t must be rising times (n,), at least four")
    if positions.shape != (len(times), mech.nq):
        raise MechanismError(f"q has shape {positions.shape}, expected ({len(times)}, {mech.nq}): one row per time")
    deviation = _positive("noise", noise, mech.nv)
    density = _liveliest(times, positions, deviation) if jerk is None else _positive("jerk", jerk, mech.nv) ** 2
    filtered = _filtered(times, positions, deviation, density)
    states, covariances = _smoothed(times, density, filtered)
    return EncoderMotion(
        times, states[..., 0], states[..., 1], states[..., 2], covariances, np.sqrt(density), filtered.log_likelihood
    )


def _positive(name: str, value: Any, size: int) -> Float64Array:
    values = real_numbers(name, value)
    if values.shape not in ((), (size,)) or not (np.isfinite(values) & (values > 0.0)).all():
        raise MechanismError(f"{name} must be a positive number or {size} of them, got {value!r}")
    return np.broadcast_to(values, (size,)).copy()


@dataclass
class _Filtered:
    states: list[Float64Array]
    covariances: list[Float64Array]
    predicted: list[tuple[Float64Array, Float64Array]]
    log_likelihood: Float64Array


def _step(dt: float, density: Float64Array) -> tuple[Float64Array, Float64Array]:
    """Transition (3, 3) and covariance (nv, 3, 3) of white jerk over a time."""
    transition = np.array([[1.0, dt, dt**2 / 2], [0.0, 1.0, dt], [0.0, 0.0, 1.0]])
    unit = np.array([[dt**5 / 20, dt**4 / 8, dt**3 / 6], [dt**4 / 8, dt**3 / 3, dt**2 / 2], [dt**3 / 6, dt**2 / 2, dt]])
    return transition, density[:, None, None] * unit


def _filtered(t: Float64Array, q: Float64Array, deviation: Float64Array, density: Float64Array) -> _Filtered:
    n = q.shape[1]
    # Nothing is known before: far beyond the first and second differences, yet not so far that digits are lost.
    steps = np.diff(t)[:, None]
    rates = np.diff(q, axis=0) / steps
    reach = np.stack([deviation, np.abs(rates).max(axis=0), np.abs(np.diff(rates, axis=0) / steps[1:]).max(axis=0)], -1)
    start = FAR * (reach + deviation[:, None] / steps.min() ** np.arange(3))
    state = np.column_stack([q[0], np.zeros((n, 2))])
    covariance = np.einsum("ni,ij->nij", start**2, np.eye(3))
    out = _Filtered([], [], [], np.zeros(n))
    for k, measured in enumerate(q):
        if k:
            transition, added = _step(t[k] - t[k - 1], density)
            state = state @ transition.T
            covariance = transition @ covariance @ transition.T + added
        out.predicted.append((state, covariance))
        variance = covariance[:, 0, 0] + deviation**2
        miss = measured - state[:, 0]
        gain = covariance[:, :, 0] / variance[:, None]
        state = state + gain * miss[:, None]
        rest = np.eye(3) - gain[:, :, None] * np.array([1.0, 0.0, 0.0])
        noise = gain[:, :, None] * gain[:, None, :] * (deviation**2)[:, None, None]
        covariance = rest @ covariance @ np.swapaxes(rest, -1, -2) + noise
        if k > 2:  # the first three say where it starts
            out.log_likelihood += -0.5 * (miss**2 / variance + np.log(2.0 * np.pi * variance))
        out.states.append(state)
        out.covariances.append(covariance)
    return out


def _smoothed(t: Float64Array, density: Float64Array, filtered: _Filtered) -> tuple[Float64Array, Float64Array]:
    states, covariances = [filtered.states[-1]], [filtered.covariances[-1]]
    for k in reversed(range(len(t) - 1)):
        transition, _ = _step(t[k + 1] - t[k], density)
        predicted, spread = filtered.predicted[k + 1]
        gain = np.swapaxes(np.linalg.solve(spread, transition @ filtered.covariances[k]), -1, -2)
        states.append(filtered.states[k] + np.einsum("nij,nj->ni", gain, states[-1] - predicted))
        change = gain @ (covariances[-1] - spread) @ np.swapaxes(gain, -1, -2)
        covariances.append(filtered.covariances[k] + change)
    return np.array(states[::-1]), np.array(covariances[::-1])


def _liveliest(t: Float64Array, q: Float64Array, deviation: Float64Array) -> Float64Array:
    """The jerk density of each coordinate with the largest likelihood: the best of a grid, refined."""

    def likelihood(logarithm: Float64Array) -> Float64Array:
        return _filtered(t, q, deviation, 10.0**logarithm).log_likelihood

    grid = np.log10(DENSITIES)
    scores = np.array([likelihood(np.full(q.shape[1], x)) for x in grid])
    best, width = grid[scores.argmax(axis=0)], 0.5
    for _ in range(REFINED):
        candidates = np.stack([best - width, best, best + width])
        scores = np.array([likelihood(x) for x in candidates])
        best = np.take_along_axis(candidates, scores.argmax(axis=0)[None], axis=0)[0]
        width *= 0.6
    return 10.0**best
