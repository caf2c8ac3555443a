"""Shapes of modes: how a mechanism moves in each of its natural motions."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from . import style
from .canvas import canvas, new_axes
from .drawing import Drawing
from .skeleton import Skeleton, bounds, symbol_size
from .views import view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REACH = 0.12  # of the mechanism's extent, by which the point that moves the most does
GHOSTS = (-1.0, -0.5, 0.5, 1.0)
COLUMNS = 3
CELL = 2.3  # inches


@style.styled
def plot_modes(
    model: Any,
    path: str | Path | None = None,
    count: int = 6,
    view: str = "auto",
    elevation: float = 20.0,
    azimuth: float = -60.0,
) -> Figure:
    """The slowest modes of a linear model: the mechanism at rest, and faintly its excursions to either side.

    model   a StateSpace, from lw.linearize
    count   number of modes at most, slowest first

    Amplitudes are large enough to be seen, and loops are closed.  If joints are not in step, the moment of the largest
    motion is shown.
    """
    if not (hasattr(model, "modes") and isinstance(getattr(model, "mechanism", None), lw.Mechanism)):
        raise TypeError(f"a StateSpace is needed, got {type(model).__name__}: make one with lw.linearize")
    if count < 1:
        raise ValueError(f"at least one mode is needed, not count = {count}")
    modes = model.modes()
    count = min(count, len(modes.eigenvalues))
    if count == 0:
        raise ValueError("the model has no modes: it has no states")
    mech, skeleton = model.mechanism, Skeleton(model.mechanism)
    moved = []
    for shape in modes.shapes[:, :count].T:
        way = _largest_moment(shape)
        amplitude = _amplitude(skeleton, model.q, way)
        shown = [lw.integrate(mech, model.q, share * amplitude * way, 1.0) for share in GHOSTS]
        moved.append([skeleton.at(_closed(mech, q)) for q in shown])
    here = skeleton.at(model.q)
    every = [here, *(sketch for sketches in moved for sketch in sketches)]
    box, size = bounds(every), symbol_size(here, bounds([here]))
    seen = view_of(mech, model.q, view, np.concatenate([sketch.points for sketch in every]), azimuth)
    rows, columns = -(-count // COLUMNS), min(count, COLUMNS)
    figure = style.figure(CELL * columns, (CELL + 0.25) * rows)
    for k in range(count):
        painted = canvas(new_axes(figure, seen, elevation, azimuth, (rows, columns, k + 1)), seen)
        drawing = Drawing(mech, painted, box, size)
        for painted.layer, sketch in enumerate([*moved[k], here]):
            painted.strength = 1.0 if sketch is here else 0.3
            drawing.paint(sketch, axes=False, masses=False)
        drawing.finish(False, mode_title(modes, k))
    return style.save(figure, path)


def excursion(model: Any, number: int, phases: np.ndarray) -> np.ndarray:
    """(k, nq): configurations of a mode at phases (k,) of its cycle, with a visible amplitude and closed loops."""
    shape = model.modes().shapes[:, number]
    phase = 0.5 * np.angle(np.sum(shape**2))
    skeleton = Skeleton(model.mechanism)
    amplitude = _amplitude(skeleton, model.q, _largest_moment(shape))
    moments = np.real(np.multiply.outer(np.exp(1j * np.asarray(phases)), shape * np.exp(-1j * phase)))
    return np.array(
        [_closed(model.mechanism, lw.integrate(model.mechanism, model.q, amplitude * way, 1.0)) for way in moments]
    )


def _amplitude(skeleton: Skeleton, q: np.ndarray, way: np.ndarray) -> float:
    """The factor of a displacement that makes it visible."""
    here, small = skeleton.at(q), 1e-4
    extent = np.ptp(here.points, axis=0).max() or 1.0
    there = skeleton.at(lw.integrate(skeleton.mech, q, small * way, 1.0))
    fastest = np.linalg.norm(there.points - here.points, axis=-1).max() / small
    return min(REACH * extent / fastest if fastest > 0.0 else 1.0, 1.0)


def _closed(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """The configuration with its loops closed; unchanged where they cannot be, so that the picture shows the gap."""
    try:
        return lw.constraints.project(mech, q, np.zeros(mech.nv), largest=np.inf)[0]
    except lw.constraints.AssemblyError:
        return q


def _largest_moment(shape: np.ndarray) -> np.ndarray:
    """(nv,): the real part of the shape at the phase at which it is largest."""
    phase = 0.5 * np.angle(np.sum(shape**2))
    return np.real(shape * np.exp(-1j * phase))


def mode_title(modes: Any, k: int) -> str:
    """How fast and how strongly damped."""
    value, frequency, ratio = modes.eigenvalues[k], modes.frequencies[k], modes.damping_ratios[k]
    if not np.isfinite(ratio):
        return "drifts freely"
    if abs(value.imag) > 1e-9 * frequency:
        hertz = f"{frequency / (2.0 * np.pi):.3g} Hz"
        return hertz if abs(ratio) < 1e-6 else f"{hertz}, damping {ratio:.2g}"
    return f"{'decays' if value.real < 0.0 else 'grows'} in {1.0 / abs(value.real):.3g} s"
