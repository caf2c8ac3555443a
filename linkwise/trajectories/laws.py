"""Time laws: the fraction of a path that is done at t, with first and second derivatives; constant beyond its ends."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.states import Float64Array, real_numbers
from ..mechanism import one_of

Law = Callable[[np.ndarray, float], tuple[Float64Array, Float64Array, Float64Array]]
RAMP = 0.25  # of the duration, by default


def cycloid(t: ArrayLike, duration: float) -> tuple[Float64Array, Float64Array, Float64Array]:
    """s = x - sin(2 pi x) / (2 pi) with x = t / duration (saha1999 38, whose joints turn by pi): s, ds/dt, d2s/dt2,
    each of the shape of t.  It starts and ends without acceleration."""
    x, inside = _share(t, duration)
    angle = 2.0 * np.pi * x
    s = x - np.sin(angle) / (2.0 * np.pi)
    return s, inside * (1.0 - np.cos(angle)) / duration, inside * 2.0 * np.pi * np.sin(angle) / duration**2


def quintic(t: ArrayLike, duration: float) -> tuple[Float64Array, Float64Array, Float64Array]:
    """s = 10 x^3 - 15 x^4 + 6 x^5: s, ds/dt, d2s/dt2; the polynomial that starts and ends at rest without
    acceleration, and of all such motions has the least integral of the squared jerk."""
    x, inside = _share(t, duration)
    s = x**3 * (10.0 - 15.0 * x + 6.0 * x**2)
    rate, change = 30.0 * x**2 * (1.0 - x) ** 2, 60.0 * x * (1.0 - x) * (1.0 - 2.0 * x)
    return s, inside * rate / duration, inside * change / duration**2


def trapezoid(t: ArrayLike, duration: float, ramp: float = RAMP) -> tuple[Float64Array, Float64Array, Float64Array]:
    """Constant acceleration for the part ``ramp`` of the duration, constant velocity, constant deceleration: s, ds/dt,
    d2s/dt2.  With ``ramp=0.5`` it is the fastest for bounded acceleration, with 0 the fastest for bounded velocity."""
    if not 0.0 < ramp <= 0.5:
        raise ValueError(f"ramp must be a part of the duration, above 0 and up to 0.5, got {ramp!r}")
    x, inside = _share(t, duration)
    fastest = 1.0 / (1.0 - ramp)
    s = np.where(
        x < ramp,
        0.5 * fastest / ramp * x**2,
        np.where(x > 1.0 - ramp, 1.0 - 0.5 * fastest / ramp * (1.0 - x) ** 2, fastest * (x - 0.5 * ramp)),
    )
    rate = fastest * np.minimum(1.0, np.minimum(x, 1.0 - x) / ramp)
    change = fastest / ramp * (np.where(x < ramp, 1.0, 0.0) - np.where(x > 1.0 - ramp, 1.0, 0.0))
    return s, inside * rate / duration, inside * change / duration**2


LAWS: dict[str, Law] = {"cycloid": cycloid, "quintic": quintic, "trapezoid": trapezoid}


def law_of(law: Any) -> Law:
    """A time law by name, or a function ``law(t, duration)`` that returns s, ds/dt and d2s/dt2."""
    return law if callable(law) else LAWS[one_of("law", law, LAWS)]


def peaks(law: Law) -> tuple[float, float]:
    """The largest rate, and change of rate, of a law of unit duration."""
    _, rate, change = law(np.linspace(0.0, 1.0, 2001), 1.0)
    return float(np.abs(rate).max()), float(np.abs(change).max())


def _share(t: ArrayLike, duration: float) -> tuple[Float64Array, Float64Array]:
    """t / duration, clipped to [0, 1], and whether t is within the duration."""
    if not (np.ndim(duration) == 0 and 0.0 < duration < np.inf):
        raise ValueError(f"duration must be a positive number of seconds, got {duration!r}")
    times = real_numbers("t", t)
    inside = np.where((times >= 0.0) & (times <= duration), 1.0, 0.0)
    return np.clip(times / duration, 0.0, 1.0), inside
