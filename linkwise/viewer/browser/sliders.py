"""Coordinates of a mechanism as sliders have them: degrees and metres, orientations by roll, pitch and yaw; and the
numbers that a slider of the page may take."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw

from ..coordinates import reach_of

ANGLES = ("roll", "pitch", "yaw")
DEGREE, METRE = "°", "m"
STEPS = 400  # of a slider, at least
NARROWEST = 1e-6  # range of a slider, of its numbers or of 1


@dataclass(frozen=True)
class Scale:
    """Bounds and step of a slider, all with the digits of the step; ``nearest`` never leaves the bounds."""

    low: float
    high: float
    step: float

    @classmethod
    def around(cls, low: float, high: float) -> Scale:
        """The least scale that has both numbers between its bounds, up to rounding; its step is a power of ten."""
        width = max(high - low, NARROWEST * max(1.0, abs(low), abs(high)))
        step = 10.0 ** math.floor(math.log10(width / STEPS))
        first, last = math.floor(round(low / step, 6)), math.ceil(round(high / step, 6))
        return cls(_digits(first * step, step), _digits(max(last, first + 1) * step, step), step)

    def nearest(self, value: float) -> float:
        """The number of the slider for a value: with no more digits than the step has, within the bounds."""
        return min(max(_digits(value, self.step), self.low), self.high)


def _digits(value: float, step: float) -> float:
    """A number without the digits that are finer than the step, a power of ten."""
    return round(value, -round(math.log10(step)))


@dataclass(frozen=True)
class Slider:
    """One coordinate.

    name       of the coordinate: "elbow", "base.x", "base.yaw"
    joint      that it belongs to
    low, high  of the slider, in ``unit``: the limits of the joint, or a range that shows what it does
    unit       "°" of angles, "m" of lengths, "" of others
    place      in q; of angles of an orientation that of its quaternion
    angle      of an orientation: 0, 1, 2 for roll, pitch, yaw
    """

    name: str
    joint: str
    low: float
    high: float
    unit: str
    place: int
    angle: int | None = None

    @property
    def scale(self) -> float:
        """What one of its unit is in q."""
        return np.pi / 180.0 if self.unit == DEGREE else 1.0

    def value(self, q: np.ndarray) -> float:
        """Where it stands."""
        if self.angle is None:
            return float(q[self.place]) / self.scale
        return float(_angles(q[self.place : self.place + 4])[self.angle])

    def moved(self, q: np.ndarray, value: float) -> np.ndarray:
        """q with this coordinate there; loops are not looked at."""
        there = np.array(q, dtype=float)
        if self.angle is None:
            there[self.place] = value * self.scale
            return there
        angles = _angles(q[self.place : self.place + 4])
        angles[self.angle] = value
        x, y, z, w = Rotation.from_euler("xyz", angles, degrees=True).as_quat()
        there[self.place : self.place + 4] = w, x, y, z
        return there


def _angles(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion
    with np.errstate(all="ignore"):
        return Rotation.from_quat([x, y, z, w]).as_euler("xyz", degrees=True)


def sliders_of(mech: lw.Mechanism, size: float) -> tuple[Slider, ...]:
    """One slider per coordinate that can be moved alone; ``size`` in metres is that of the mechanism."""
    sliders: list[Slider] = []
    for body in mech.bodies:
        if not body.mimic:
            sliders += _of_joint(mech, body, size)
    return tuple(sliders)


def _of_joint(mech: lw.Mechanism, body: Any, size: float) -> list[Slider]:
    sliders: list[Slider] = []
    start = mech.q_index(body.joint).start
    for k, measure in enumerate(body.kind.measures("q")):
        index = start + k
        if measure.of == "quaternion":
            if not any(slider.angle is not None for slider in sliders):
                sliders += [
                    Slider(f"{body.joint}.{a}", body.joint, -180.0, 180.0, DEGREE, index, n)
                    for n, a in enumerate(ANGLES)
                ]
            continue
        unit = {"angle": DEGREE, "length": METRE}.get(measure.of, "")
        scale = np.pi / 180.0 if unit == DEGREE else 1.0
        low, high = (x / scale for x in reach_of(mech, index, measure.of, mech.initial[index], size))
        sliders.append(Slider(mech.q_names[index], body.joint, low, high, unit, index))
    return sliders
