"""Coordinates of a mechanism as sliders have them: degrees and metres, orientations by roll, pitch and yaw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw

ANGLES = ("roll", "pitch", "yaw")
DEGREE, METRE = "°", "m"


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
    found: list[Slider] = []
    for body in mech.bodies:
        if not body.mimic:
            found += _of_joint(mech, body, size)
    return tuple(found)


def _of_joint(mech: lw.Mechanism, body: Any, size: float) -> list[Slider]:
    found: list[Slider] = []
    start = mech.q_index(body.joint).start
    for k, measure in enumerate(body.kind.measures("q")):
        place = start + k
        if measure.of == "quaternion":
            if not any(one.angle is not None for one in found):
                found += [
                    Slider(f"{body.joint}.{a}", body.joint, -180.0, 180.0, DEGREE, place, n)
                    for n, a in enumerate(ANGLES)
                ]
            continue
        unit = {"angle": DEGREE, "length": METRE}.get(measure.of, "")
        scale = np.pi / 180.0 if unit == DEGREE else 1.0
        usual = 180.0 if unit == DEGREE else max(size, 1e-3)
        low, high = mech.q_lower[place] / scale, mech.q_upper[place] / scale
        here = float(mech.initial[place]) / scale
        low = low if np.isfinite(low) else min(-usual, (high if np.isfinite(high) else usual) - 2.0 * usual, here)
        high = high if np.isfinite(high) else max(usual, low + usual, here)
        found.append(Slider(mech.q_names[place], body.joint, float(low), float(max(high, low)), unit, place))
    return found
