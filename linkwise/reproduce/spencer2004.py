"""Figures 3.3 to 3.10 of spencer2004: a five-bar mechanism through its singular position.

The stretched-out position is (pi, 0, pi, 0) in the interior angles of the second example; the printed (pi, 0, 0, pi)
is not closed in them.  Near it the motion branches and depends on the last digits of every number: what the text says
of the figures holds, their curves after the second passage need not be the printed ones.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

import linkwise as lw
from linkwise.closed import Motion

from .drawing import COLOURS, STYLES, pyplot, save

STRETCHED = (math.pi, 0.0, math.pi, 0.0)
SYMMETRIC = (
    2 * math.pi / 3,
    math.pi / 3 + math.acos(2 / 3),
    2 * math.asin(2 / 3),
    math.pi / 3 + math.acos(2 / 3),
)
DURATION, STEP = 5.0, 1e-3
PLANAR = (0, 1)  # of the five constraints of a revolute loop, those that a planar mechanism can violate
PASSAGE = 100.0  # condition number beyond which the mechanism passes its singular position


def released_stretched(duration: float = DURATION) -> Motion:
    """Example 1: from rest in the singular position, the SVD form (3.5) without stabilization."""
    return lw.closed.simulate(lw.mechanisms.five_bar(), STRETCHED, np.zeros(4), duration, step=STEP, stabilization=None)


def with_baumgarte(duration: float = DURATION) -> Motion:
    """Example 2: Lagrange multipliers (2.5) with Baumgarte's terms (3.8), alpha = beta = 10."""
    return lw.closed.simulate(
        lw.mechanisms.five_bar(),
        SYMMETRIC,
        np.zeros(4),
        duration,
        step=STEP,
        formulation="lagrange",
        stabilization="baumgarte",
        baumgarte=(10.0, 10.0),
    )


def with_projection(duration: float = DURATION, keep_energy: bool = True) -> Motion:
    """Example 2: the SVD form (3.5) with projection (3.10, 3.11) to 1e-3, onto the energy too if wanted."""
    return lw.closed.simulate(
        lw.mechanisms.five_bar(), SYMMETRIC, np.zeros(4), duration, step=STEP, tolerance=1e-3, keep_energy=keep_energy
    )


def return_time(motion: Motion) -> float:
    """When a motion from the stretched position is nearest to it again, after the first second."""
    later = np.flatnonzero(motion.t > 1.0)
    apart = np.abs(motion.q[later] - motion.q[0]).max(axis=1)
    return float(motion.t[later[np.argmin(apart)]])


def condition_numbers(motion: Motion) -> np.ndarray:
    """sigma_1 / sigma_m of the constraint Jacobian."""
    values = np.linalg.svd(_jacobian(motion), compute_uv=False)
    return values[:, 0] / np.maximum(values[:, -1], np.finfo(float).eps)


def passages(motion: Motion) -> np.ndarray:
    """Times at which the condition number peaks above ``PASSAGE``."""
    numbers = condition_numbers(motion)
    inside = np.flatnonzero((numbers[1:-1] > numbers[:-2]) & (numbers[1:-1] > numbers[2:]) & (numbers[1:-1] > PASSAGE))
    return motion.t[1 + inside]


def multipliers(motion: Motion) -> np.ndarray:
    """(steps, 2): Lagrange multipliers along a motion with Baumgarte's terms."""
    return lw.closed.multipliers(
        motion.mechanism, motion.q, motion.v, np.zeros(4), method="lagrange", baumgarte=(10.0, 10.0)
    )[:, PLANAR]


def spike_indicator(motion: Motion) -> np.ndarray:
    """(steps,): the size of v_m u_m* dG/dt v (3.7)."""
    u, _, _ = np.linalg.svd(_jacobian(motion))
    bias = lw.closed.constraint_bias(motion.mechanism, motion.q, motion.v)[:, PLANAR]
    return np.abs(np.einsum("ti,ti->t", u[:, :, -1], bias))


def _jacobian(motion: Motion) -> np.ndarray:
    """(steps, 2, 4): the rows of G that a planar mechanism can violate."""
    return lw.closed.constraint_jacobian(motion.mechanism, motion.q)[:, PLANAR, :]


# -- drawing ------------------------------------------------------------------------------------------


def reproduce(output: Path) -> Iterator[str]:
    """Draw the eight figures into ``output``; what they show, line by line."""
    yield from _first_example(output, released_stretched())
    yield from _second_example(output, with_baumgarte(), with_projection())


def _first_example(output: Path, motion: Motion) -> Iterator[str]:
    path = _panel(output / "figure_3.3.png", motion.t, [("joint angle (rad)", _joints(motion))])
    yield f"Figure 3.3: {path}"
    yield f"  back in the stretched position at {return_time(motion):.3f} s"
    numbers = condition_numbers(motion)
    path = _panel(output / "figure_3.4.png", motion.t, [("condition number", {"": numbers})], logarithmic=True)
    yield f"Figure 3.4: {path}"
    yield f"  {numbers[0]:.1e} at the start, {numbers[motion.t > 1.0].max():.1e} at the return"
    kinetic = lw.kinetic_energy(motion.mechanism, motion.q, motion.v)
    potential = lw.potential_energy(motion.mechanism, motion.q)
    change = motion.energy - motion.energy[0]
    both = [("energy (J)", {"kinetic": kinetic, "potential": potential}), ("change of energy (J)", {"": change})]
    yield f"Figure 3.5: {_panel(output / 'figure_3.5.png', motion.t, both)}"
    yield f"  energy kept to {np.abs(change).max():.1e} J of {kinetic.max():.3g} J"
    error = motion.constraint_error
    yield f"Figure 3.6: {_panel(output / 'figure_3.6.png', motion.t, [('constraint violation (m)', {'': error})])}"
    yield f"  at most {error.max():.1e} m"


def _second_example(output: Path, baumgarte: Motion, projection: Motion) -> Iterator[str]:
    t, pair = projection.t, (baumgarte, projection)
    both = [
        (f"joint angle (rad), {name}", _joints(m)) for name, m in zip(("Baumgarte", "projection"), pair, strict=True)
    ]
    yield f"Figure 3.7: {_panel(output / 'figure_3.7.png', t, both)}"
    yield "  singular at " + "; ".join(f"({', '.join(f'{x:.3f}' for x in passages(m))}) s" for m in pair)
    both = [("constraint violation (m)", {"": m.constraint_error}) for m in pair]
    yield f"Figure 3.8: {_panel(output / 'figure_3.8.png', t, both, logarithmic=True)}"
    drift = [m.constraint_error.max() for m in pair]
    yield f"  at most {drift[0]:.1e} m with Baumgarte, {drift[1]:.1e} m projected"
    forces = multipliers(baumgarte)
    both = [
        ("multipliers (N)", {"lambda_1": forces[:, 0], "lambda_2": forces[:, 1]}),
        ("|v_m u_m* dG/dt v|", {"": spike_indicator(projection)}),
    ]
    yield f"Figure 3.9: {_panel(output / 'figure_3.9.png', t, both)}"
    yield f"  multipliers up to {np.abs(forces).max():.1e} N"
    both = [("change of energy (J)", {"": m.energy - m.energy[0]}) for m in pair]
    yield f"Figure 3.10: {_panel(output / 'figure_3.10.png', t, both)}"
    drift = [np.abs(m.energy - m.energy[0]).max() for m in pair]
    yield f"  energy violated by {drift[0]:.1e} J with Baumgarte, {drift[1]:.1e} J with projection"


def _joints(motion: Motion) -> dict[str, np.ndarray]:
    return {f"q_{k + 1}": series for k, series in enumerate(motion.q.T)}


def _panel(
    path: Path, t: np.ndarray, panels: Sequence[tuple[str, dict[str, np.ndarray]]], logarithmic: bool = False
) -> Path:
    """One panel above the other, each with its named curves."""
    figure, grid = pyplot().subplots(
        len(panels), 1, figsize=(6.0, 0.8 + 2.7 * len(panels)), sharex=True, squeeze=False, layout="constrained"
    )
    for axes, (label, curves) in zip(grid.flat, panels, strict=True):
        for k, (name, series) in enumerate(curves.items()):
            axes.plot(t, series, STYLES[k], color=COLOURS[k], label=name)
        axes.set(ylabel=label, xlim=(t[0], t[-1]))
        axes.grid(alpha=0.3)
        if logarithmic:
            axes.set_yscale("log")
        if any(curves):
            axes.legend()
    grid[-1, 0].set_xlabel("time (s)")
    return save(figure, path)
