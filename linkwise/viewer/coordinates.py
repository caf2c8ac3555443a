"""Names and units of joint coordinates in pictures.  No matplotlib here."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

import linkwise as lw

ANGLE, LENGTH, QUATERNION, OTHER = "angle", "length", "quaternion", "other"  # the words of ``Joint.measures``
UNITS = {ANGLE: ("rad", "rad/s"), LENGTH: ("m", "m/s"), QUATERNION: ("", "rad/s"), OTHER: ("", "1/s")}
DEGREES = {ANGLE: ("deg", "deg/s"), QUATERNION: ("", "deg/s")}  # in place of these where degrees are asked for
FORCES = {ANGLE: "torque (N m)", LENGTH: "force (N)", QUATERNION: "torque (N m)", OTHER: "generalized force"}
LARGEST = 1e12  # limits beyond are none
RATES = {ANGLE: r"\omega", LENGTH: "v"}  # of joints whose velocities are no rates of coordinates, along the link's axes


@dataclass(frozen=True)
class Units:
    """Units of coordinates and velocities in a picture: angles in radians, or in ``degrees``."""

    degrees: bool = False

    def names(self, measures: str) -> tuple[str, str]:
        """Unit of a coordinate and of its rate, by what the coordinate measures; "" for numbers without a unit."""
        return DEGREES.get(measures, UNITS[measures]) if self.degrees else UNITS[measures]

    def position_factor(self, measures: str) -> float:
        """Unit of the picture per unit of the library (rad, m)."""
        return math.degrees(1.0) if self.degrees and measures == ANGLE else 1.0

    def rate_factor(self, measures: str) -> float:
        """Unit of the picture per unit of the library (rad/s, m/s); rates of quaternions are angular velocities."""
        return math.degrees(1.0) if self.degrees and measures in DEGREES else 1.0

    def label(self, name: str, measures: str) -> str:
        """A coordinate with its unit, for an axis of a picture."""
        unit = self.names(measures)[0]
        return f"{name} ({unit})" if unit else name


@dataclass(frozen=True)
class Series:
    """Numbers that are drawn as one curve over time.

    mech, joint   whose numbers they are
    name       for the legend
    measures   what a joint says of it: ANGLE, LENGTH, QUATERNION, OTHER
    q, v       indices in the coordinates and velocities of the joint; None if absent: a quaternion has no fourth rate
    rate       name of a velocity that is no rate of the coordinate, such as an angular velocity
    """

    mech: lw.Mechanism
    joint: str
    name: str
    measures: str
    q: int | None
    v: int | None
    rate: str = ""

    @property
    def label(self) -> str:
        return ", ".join(filter(None, (self.name, self.rate)))

    def positions(self, q: np.ndarray) -> np.ndarray:
        """(m,): the curve, from q (m, nq)."""
        return self.mech.coordinates.place(self.joint).positions(q)[:, self.q]

    def velocities(self, v: np.ndarray) -> np.ndarray:
        """(m,): its rate, from v (m, nv)."""
        return self.mech.coordinates.place(self.joint).velocities(v)[:, self.v]

    def forces(self, tau: np.ndarray) -> np.ndarray | None:
        """(m,): its force, from tau (m, nv); None for mimic joints and fourth numbers of quaternions."""
        body = self.mech.bodies[self.mech.body_index(self.joint)]
        return None if self.v is None or body.mimic else tau[:, self.mech.v_index(self.joint)][:, self.v]


def measure_of(mech: lw.Mechanism, name: str) -> str:
    """The measure of a coordinate of ``lw.linkages.range_of_motion``: ANGLE, LENGTH, ..."""
    joint, _, number = name.partition("[")
    if joint in mech.joint_names:
        return mech.bodies[mech.body_index(joint)].kind.measures("q")[int(number[:-1] or 0)].of
    index = mech.coordinates.index("q", name)
    if index is None:
        return LENGTH if name.endswith((".x", ".y", ".z")) else ANGLE
    return [measure.of for body in mech.bodies if not body.mimic for measure in body.kind.measures("q")][index]


def reach_of(mech: lw.Mechanism, index: int, measures: str, here: float, size: float) -> tuple[float, float]:
    """Bounds of a slider for q[index], which is ``here`` at first: its limits, or a usual range in a mechanism of some
    size (m)."""
    usual = math.pi if measures == ANGLE else max(size, 1e-3)
    low, high = (
        x if abs(x) < LARGEST else math.copysign(math.inf, x)
        for x in (mech.limits.lower[index], mech.limits.upper[index])
    )
    low = low if math.isfinite(low) else min(-usual, (high if math.isfinite(high) else usual) - 2.0 * usual, here)
    high = high if math.isfinite(high) else max(usual, low + usual, here)
    return float(low), float(max(high, low))


def series_of(mech: lw.Mechanism, joint: str) -> list[Series]:
    """The curves of one joint: a number of v is drawn beside the number of q with its name."""
    kind = mech.bodies[mech.body_index(joint)].kind
    positions, velocities = kind.measures("q"), kind.measures("v")
    rates = {number.name: k for k, number in enumerate(velocities)}

    def series(k: int | None, rate: int | None) -> Series:
        number = velocities[rate or 0] if k is None else positions[k]
        letter = ""
        if rate is not None and not kind.rates_are_velocities and velocities[rate].of in RATES:
            letter = f"${RATES[velocities[rate].of]}_{velocities[rate].name[-1]}$"  # its axis is the last letter
        return Series(mech, joint, f"{joint} {number.name}".strip(), number.of, k, rate, letter)

    curves = [series(k, rates.pop(number.name, None)) for k, number in enumerate(positions)]
    return curves + [series(None, rate) for rate in rates.values()]


def all_series(mech: lw.Mechanism, joints: Sequence[str] | None = None) -> list[Series]:
    """The curves of the named joints, by default of all that have coordinates of their own."""
    if joints is None:
        joints = [body.joint for body in mech.bodies if not body.mimic]
    names = (joints,) if isinstance(joints, str) else joints
    return [curve for name in names for curve in series_of(mech, name)]
