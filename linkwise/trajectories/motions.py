"""Motions: a path and a law of time along it."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics.by_joint import numbers_per_velocity
from ..dynamics.states import Float64Array, real_numbers
from ..dynamics.trees import inverse_dynamics
from ..mechanism import Mechanism, MechanismError
from .laws import LAWS, RAMP, Law, law_of, peaks, trapezoid
from .paths import Path, line, spline

LOOKED_AT = 401  # samples of a picture


@dataclass(frozen=True, eq=False)
class Motion:
    """A path over time: ``motion(t)`` returns q, v and a, each with the leading shape of t; at rest beyond its ends.

    law   from t (...,) to s, ds/dt and d2s/dt2 along the path; ``along`` makes it of a law such as "quintic"
    """

    path: Path
    duration: float
    law: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]

    def __post_init__(self) -> None:
        if isinstance(self.law, str) or self.law in LAWS.values():
            raise TypeError(
                "the law of a Motion is a function of t alone: linkwise.trajectories.along(path, duration, law) puts "
                "one such as quintic, of t and the duration, along a path"
            )

    @property
    def mechanism(self) -> Mechanism:
        return self.path.mechanism

    def __call__(self, t: ArrayLike) -> tuple[Float64Array, Float64Array, Float64Array]:
        s, rate, change = self.law(real_numbers("t", t))
        q, first, second = self.path(s)
        rate, change = np.asarray(rate)[..., None], np.asarray(change)[..., None]
        return q, first * rate, first * change + second * rate**2

    def sample(self, count: int = 201) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
        """t (count,), q, v, a at equal times from the start to the end."""
        t = np.linspace(0.0, self.duration, count)
        return t, *self(t)

    def torques(self, t: ArrayLike) -> Float64Array:
        """(..., nv): joint forces that the motion takes, by inverse dynamics."""
        return inverse_dynamics(self.mechanism, *self(t))

    def save(self, path: str | os.PathLike[str], count: int = 201) -> None:
        """Write ``sample(count)`` to a file that ``lw.files.load_motion`` reads: ``.csv`` for a table with columns t,
        q.elbow, ..., v.elbow, ..., a.elbow, ..., ``.npz`` for arrays t, q, v and a, with the mechanism.  ``pickle``
        keeps the motion itself."""
        from .files import save_motion

        save_motion(self, path, count)

    def plot(self, path: str | os.PathLike[str] | None = None, **options: Any) -> Any:
        """Curves of coordinates, velocities and, for trees, required joint forces; saved to ``path`` if there is one.
        Options as of ``lw.viewer.plot_trajectory``.
        """
        t, q, v, _ = self.sample(LOOKED_AT)
        forces = {} if self.mechanism.loops else {"tau": self.torques(t)}
        shown = SimpleNamespace(mechanism=self.mechanism, t=t, q=q, v=v, **forces)
        from ..viewer import plot_trajectory

        return plot_trajectory(shown, path if path is None else os.fspath(path), **{"energy": False, **options})

    def animate(self, path: str | os.PathLike[str], **options: Any) -> Any:
        """Write an animation, ``.gif`` or ``.mp4``, with the options of ``lw.viewer.animate``: trail, fps, speed."""
        from ..viewer import animate

        t, q, *_ = self.sample(LOOKED_AT)
        return animate(self.mechanism, q, t, os.fspath(path), **options)

    def show(self, **options: Any) -> Any:
        """An animated page, for a notebook or ``.save("motion.html")``; options: ``lw.viewer.page``."""
        from ..viewer import page

        t, q, *_ = self.sample(LOOKED_AT)
        return page(self.mechanism, q, t, **options)

    def view(self, **options: Any) -> Any:
        """Play the motion in the browser, with the options and result of ``lw.view``."""
        from ..viewer.browser import view

        t, q, *_ = self.sample(LOOKED_AT)
        return view(self.mechanism, q, t, **options)

    def __str__(self) -> str:
        return f"motion of {self.mechanism.name} over {self.duration:.4g} s"

    def __repr__(self) -> str:
        return f"<{self}>"


def along(path: Path, duration: float | None = None, law: Any = None) -> Motion:
    """A motion along a path: its parameter is the time, or is stretched to a ``duration``.

    law   None for a parameter at constant rate; or "cycloid", "quintic", "trapezoid" or a function ``law(t, duration)``
          that returns s, ds/dt and d2s/dt2, with s from 0 to 1 along the path
    """
    length = path.end - path.start
    total = length if duration is None else float(duration)
    if not 0.0 < total < np.inf:
        raise ValueError(f"duration must be a positive number of seconds, got {duration!r}")
    if law is not None:
        return Motion(path, total, partial(_stretched, law_of(law), path.start, length, total))
    return Motion(path, total, partial(_evenly, path.start, length / total, total))


def sampled(
    mech: Mechanism, t: ArrayLike, q: ArrayLike, v: ArrayLike | None = None, a: ArrayLike | None = None
) -> Motion:
    """A motion through samples, recorded or planned elsewhere, that starts at their first time.

    t         (n,): growing
    q, v, a   (n, nq), (n, nv), (n, nv): pieces between samples are of fifth degree, through all of these.  Without v a
              cubic spline, at rest at both ends; without a its accelerations are those of cubic pieces
    """
    times = real_numbers("t", t)
    if times.ndim != 1 or len(times) < 2:
        raise MechanismError(f"t must be two times or more, (n,), got shape {times.shape}")
    return along(spline(mech, q, times, v, a))


# Laws of motions are functions of modules with their numbers, not local ones: those cannot be pickled.


def _evenly(start: float, rate: float, duration: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    inside = np.where((t >= 0.0) & (t <= duration), 1.0, 0.0)
    return start + np.clip(t, 0.0, duration) * rate, inside * rate, np.zeros_like(inside)


def _stretched(
    law: Law, start: float, length: float, duration: float, t: np.ndarray
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    s, rate, change = law(t, duration)
    return start + length * s, length * rate, length * change


def _fixed_duration(law: Law, duration: float, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return law(t, duration)


def point_to_point(
    mech: Mechanism,
    q0: Any,
    q1: Any,
    duration: float | None = None,
    law: Any = "cycloid",
    acceleration: Any = None,
    ramp: float | None = None,
) -> Motion:
    """A motion from rest in q0 to rest in q1, all joints together.

    q0, q1         configurations (nq,), or {joint: coordinates}: the others are as in ``mech.initial``, and at q1 as
                   in q0; None for ``mech.initial``
    duration       seconds; None for the shortest in which no joint exceeds ``mech.limits.velocity`` or ``acceleration``
    law            "cycloid" (saha1999 38), "quintic" (of least jerk), "trapezoid", or a function ``law(t, duration)``
                   that gives s, ds/dt and d2s/dt2
    acceleration   bounds: one number, (nv,) or {joint: number}
    ramp           of "trapezoid": the part of the duration in which it accelerates, and in which it slows down, up to
                   0.5; None for that of the shortest motion within the bounds, a quarter where a duration is given or
                   accelerations have no bounds
    """
    path, chosen = line(mech, q0, q1), law_of(law)
    way = path.coefficients[0, 0]
    if ramp is not None and chosen is not trapezoid:
        raise MechanismError(f"ramp={ramp!r} is for law='trapezoid': other laws have none")
    if chosen is trapezoid:
        if ramp is None and duration is None:
            ramp = _shortest_ramp(*_needs(mech, way, acceleration))
        chosen = partial(trapezoid, ramp=RAMP if ramp is None else ramp)
    if duration is None:
        duration = _shortest(way, peaks(chosen), *_needs(mech, way, acceleration))
    total = float(duration)
    chosen(np.zeros(()), total)  # says what is wrong with the duration
    return Motion(path, total, partial(_fixed_duration, chosen, total))


def _needs(mech: Mechanism, way: np.ndarray, acceleration: Any) -> tuple[float, float]:
    """The largest ratios of path derivative to velocity bound, s, and to acceleration bound, s^2, over all joints;
    zero if unlimited.
    """
    bound = numbers_per_velocity(mech, "acceleration", np.inf if acceleration is None else acceleration, np.inf, True)
    blocked = way.astype(bool) & (mech.limits.velocity == 0.0)
    still = [body.joint for body in mech.bodies if body.mimic is None and blocked[mech.v_index(body.joint)].any()]
    if still:
        raise MechanismError(
            f"the velocity limit of joints that are to move is 0: {', '.join(still)}; where a file says 0 for what it "
            "does not know, give others, mech.with_limits(joint=lw.Limits(...)), or a duration"
        )
    speeds = np.where(mech.limits.velocity > 0.0, mech.limits.velocity, np.inf)  # of joints that stay
    return float(np.max(np.abs(way) / speeds, initial=0.0)), float(np.max(np.abs(way) / bound, initial=0.0))


def _shortest_ramp(velocity: float, acceleration: float) -> float:
    """Ramp of the shortest trapezoid: it reaches both bounds, or lasts half of the duration if it does not reach the
    velocity bound.
    """
    if not (0.0 < acceleration < np.inf and velocity < np.inf):
        return RAMP
    return min(0.5, acceleration / (acceleration + velocity**2))


def _shortest(way: np.ndarray, most: tuple[float, float], velocity: float, acceleration: float) -> float:
    duration = max(most[0] * velocity, np.sqrt(most[1] * acceleration))
    if not 0.0 < duration < np.inf:
        raise MechanismError(
            "no bound says how long the motion takes: give a duration, an acceleration=..., or velocity limits of the "
            "joints (mech.with_limits)"
            if duration == 0.0 and way.any()
            else "q0 and q1 are equal: give a duration"
        )
    return duration
