"""Figures 5, 6, 8 and 9 of saha1999: torques along given motions and free falls, of a planar arm and the Stanford arm.

Choices where the paper is silent: Figure 4 prints no dimensions, the planar arm has three rods of 1 m and 1 kg;
(38) and (39) end at pi as printed, here at the values the text gives (60 degrees, 0.1 m); the free falls last as long
as they are instructive.  Which way gravity acts along Z_1 of the Stanford arm is not printed either.  The text sees
joint 2 turn beyond 90 degrees in free fall, so it acts along +Z_1; along -Z_1 it would mirror theta_2 at 90 degrees.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

import linkwise as lw

from .drawing import COLOURS, STYLES, pyplot, save
from .free_motion import Motion, simulate

DURATION = 10.0  # T of (38) and (39)
PLANAR_FALL, STANFORD_FALL = 5.0, 1.5  # seconds
SAMPLES = 501
QUARTER, SIXTY_DEGREES = math.pi / 2.0, math.pi / 3.0
STANFORD_START = (0.0, QUARTER, 0.0, 0.0, 0.0, 0.0)
STANFORD_END = (SIXTY_DEGREES, SIXTY_DEGREES, 0.1, SIXTY_DEGREES, SIXTY_DEGREES, SIXTY_DEGREES)
SLIDING = 2  # joint 3 is prismatic


class Torques(NamedTuple):
    """t (m,), q, v, a of a prescribed motion and the joint torques and forces tau (m, n) that it takes."""

    t: np.ndarray
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray


def planar_arm() -> lw.Mechanism:
    return lw.mechanisms.planar_arm(3)


def stanford_arm() -> lw.Mechanism:
    """Table 3, with gravity along +Z_1."""
    arm = lw.mechanisms.stanford_arm()
    return arm.with_gravity(-arm.gravity)


def cycloid(start, end, duration: float, t) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a (m, n) of (38), (39) scaled to lead from ``start`` at t = 0 to ``end`` at ``duration``, at rest there."""
    start, way = np.asarray(start, dtype=float), np.asarray(end, dtype=float) - np.asarray(start, dtype=float)
    frequency = 2.0 * math.pi / duration
    phase = frequency * np.asarray(t, dtype=float)[:, None]
    share = way / (2.0 * math.pi)
    return (
        start + share * (phase - np.sin(phase)),
        share * frequency * (1.0 - np.cos(phase)),
        share * frequency**2 * np.sin(phase),
    )


def planar_torques() -> Torques:
    """Figure 5."""
    return _torques(planar_arm(), (0.0,) * 3, (SIXTY_DEGREES,) * 3)


def planar_fall() -> Motion:
    """Figure 6: released at rest, stretched out along X."""
    return simulate(planar_arm(), np.zeros(3), np.zeros(3), np.linspace(0.0, PLANAR_FALL, SAMPLES))


def stanford_torques() -> Torques:
    """Figure 8."""
    return _torques(stanford_arm(), STANFORD_START, STANFORD_END)


def stanford_fall() -> Motion:
    """Figure 9: released at rest with the sliding joint's axis level."""
    return simulate(stanford_arm(), STANFORD_START, np.zeros(6), np.linspace(0.0, STANFORD_FALL, SAMPLES))


def _torques(mech: lw.Mechanism, start: Sequence[float], end: Sequence[float]) -> Torques:
    t = np.linspace(0.0, DURATION, SAMPLES)
    q, v, a = cycloid(start, end, DURATION, t)
    return Torques(t, q, v, a, lw.denoc.inverse_dynamics(mech, q, v, a))


# -- drawing ------------------------------------------------------------------------------------------


def reproduce(output: Path) -> Iterator[str]:
    """Draw the four figures into ``output``; what they show, line by line."""
    torques, fall = planar_torques(), planar_fall()
    yield f"Figure 5: {_together(output / 'figure_5.png', torques.t, torques.tau, 'tau_{}', 'joint torque (N m)')}"
    yield f"  theta(T) = {_numbers(np.degrees(torques.q[-1]))} deg, tau(0) = {_numbers(torques.tau[0])} N m, " + (
        f"tau(T) = {_numbers(torques.tau[-1])} N m"
    )
    yield f"Figure 6: {_together(output / 'figure_6.png', fall.t, np.degrees(fall.q), 'th_{}', 'joint angle (deg)')}"
    yield f"  theta({PLANAR_FALL:g} s) = {_numbers(np.degrees(fall.q[-1]))} deg, {_drift(fall)}"
    torques, fall = stanford_torques(), stanford_fall()
    labels = ["force (N)" if k == SLIDING else "torque (N m)" for k in range(6)]
    yield f"Figure 8: {_panels(output / 'figure_8.png', torques.t, torques.tau, labels)} (gravity along +Z_1)"
    yield (
        f"  q(T) = {_numbers(_in_degrees(torques.q[-1]))} (deg, joint 3: m), tau(0) = {_numbers(torques.tau[0])}, "
        + (f"tau(T) = {_numbers(torques.tau[-1])} (N m, joint 3: N)")
    )
    labels = ["displacement (m)" if k == SLIDING else "angle (deg)" for k in range(6)]
    yield f"Figure 9: {_panels(output / 'figure_9.png', fall.t, _in_degrees(fall.q), labels)} (gravity along +Z_1)"
    yield f"  q({STANFORD_FALL:g} s) = {_numbers(_in_degrees(fall.q[-1]))} (deg, joint 3: m), {_drift(fall)}"


def _in_degrees(q: np.ndarray) -> np.ndarray:
    angles = np.degrees(q)
    angles[..., SLIDING] = q[..., SLIDING]
    return angles


def _numbers(values: np.ndarray) -> str:
    return f"({', '.join(f'{value:.4g}' for value in np.round(values, 9) + 0.0)})"


def _drift(motion: Motion) -> str:
    change = np.abs(motion.energy - motion.energy[0]).max() / motion.kinetic.max()
    return f"energy kept to {change:.1e} of the largest kinetic energy"


def _together(path: Path, t: np.ndarray, values: np.ndarray, name: str, label: str) -> Path:
    """All joints in one panel."""
    figure, axes = pyplot().subplots(figsize=(5.5, 3.8), layout="constrained")
    for k, series in enumerate(values.T):
        axes.plot(t, series, STYLES[k], color=COLOURS[k], label=name.format(k + 1))
    axes.set(xlabel="time (s)", ylabel=label, xlim=(t[0], t[-1]))
    axes.grid(alpha=0.3)
    axes.legend()
    return save(figure, path)


def _panels(path: Path, t: np.ndarray, values: np.ndarray, labels: Sequence[str]) -> Path:
    """One panel per joint, (a) to (f)."""
    figure, grid = pyplot().subplots(3, 2, figsize=(8.0, 8.5), sharex=True, layout="constrained")
    for k, axes in enumerate(grid.flat):
        axes.plot(t, values[:, k], color=COLOURS[0])
        axes.set(title=f"({'abcdef'[k]}) Joint {k + 1}", ylabel=labels[k], xlim=(t[0], t[-1]))
        axes.ticklabel_format(axis="y", scilimits=(-2, 4))
        axes.grid(alpha=0.3)
    for axes in grid[-1]:
        axes.set_xlabel("time (s)")
    return save(figure, path)
