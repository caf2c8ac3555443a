"""The configuration that a viewer shows, changed by sliders, hands and clocks.  No browser here.

Sliders are in degrees and metres, orientations in roll, pitch and yaw.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw

from ..configurations import one_configuration
from ..coordinates import reach_of
from ..scene import Scene, scene
from .dragging import Hand, Reached, clip_to_limits, closed, dragged

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
    def covering(cls, low: float, high: float) -> Scale:
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
    index      in q; for an angle of an orientation that of its quaternion
    angle      of an orientation: 0, 1, 2 for roll, pitch, yaw
    """

    name: str
    joint: str
    low: float
    high: float
    unit: str
    index: int
    angle: int | None = None

    @property
    def scale(self) -> float:
        """q per unit of the slider."""
        return np.pi / 180.0 if self.unit == DEGREE else 1.0

    def value(self, q: np.ndarray) -> float:
        """The value of the slider, in its unit."""
        if self.angle is None:
            return float(q[self.index]) / self.scale
        return float(_angles(q[self.index : self.index + 4])[self.angle])

    def moved(self, q: np.ndarray, value: float) -> np.ndarray:
        """q with this coordinate at a value; loops may open."""
        target = np.array(q, dtype=float)
        if self.angle is None:
            target[self.index] = value * self.scale
            return target
        angles = _angles(q[self.index : self.index + 4])
        angles[self.angle] = value
        x, y, z, w = Rotation.from_euler("xyz", angles, degrees=True).as_quat()
        target[self.index : self.index + 4] = w, x, y, z
        return target


def _angles(quaternion: np.ndarray) -> np.ndarray:
    w, x, y, z = quaternion
    with np.errstate(all="ignore"):
        return Rotation.from_quat([x, y, z, w]).as_euler("xyz", degrees=True)


def sliders_of(mech: lw.Mechanism, size: float) -> tuple[Slider, ...]:
    """One slider per coordinate that can be moved alone; ``size`` in metres is that of the mechanism."""
    sliders: list[Slider] = []
    bodies = [body for body in mech.bodies if not body.mimic]
    measures = [(body, k, measure) for body in bodies for k, measure in enumerate(body.kind.measures("q"))]
    for body, k, measure in measures:
        index = mech.q_index(body.joint).start + k
        if measure.of == "quaternion":
            if not any(slider.angle is not None and slider.joint == body.joint for slider in sliders):
                sliders += [
                    Slider(f"{body.joint}.{a}", body.joint, -180.0, 180.0, DEGREE, index, n)
                    for n, a in enumerate(ANGLES)
                ]
            continue
        unit = {"angle": DEGREE, "length": METRE}.get(measure.of, "")
        scale = np.pi / 180.0 if unit == DEGREE else 1.0
        low, high = (x / scale for x in reach_of(mech, index, measure.of, mech.initial[index], size))
        sliders.append(Slider(mech.q_names[index], body.joint, low, high, unit, index))
    return tuple(sliders)


NEAR_SINGULAR = 0.02  # conditioning of loops, relative to what it usually is


class Session:
    """A mechanism in one configuration, and its changes.

    q, v      the state; v is zero unless a motion or a simulation sets it
    status    message on a target out of reach, loops that lock or a singular position, or ""
    target    (3,): target of the hand that it does not reach, or None
    held      joints that stand still while sliders move others
    """

    def __init__(self, mech: lw.Mechanism, q: Any = None, seen: Scene | None = None) -> None:
        # Hands move what drives would.
        self.mech = mech = mech.constraints.without_drives() if mech.constraints.waits_for_time else mech
        self.q = np.array(one_configuration(mech, q), dtype=float)
        self.v = np.zeros(mech.nv)
        self.scene = scene(mech) if seen is None else seen
        self.sliders: dict[str, Slider] = {slider.name: slider for slider in sliders_of(mech, self.scene.size)}
        self.held: tuple[str, ...] = ()
        self.status = ""
        self.target: np.ndarray | None = None
        self._start = self.q.copy()
        self._usual: float | None = None
        self._rank: Any = None

    # -- state ----------------------------------------------------------------------------------------

    @property
    def poses(self) -> np.ndarray:
        """(n_links, 4, 4)"""
        return lw.link_poses(self.mech, self.q)

    @property
    def values(self) -> dict[str, float]:
        """Values of the sliders, by name."""
        return {name: slider.value(self.q) for name, slider in self.sliders.items()}

    @property
    def gap(self) -> float:
        """The largest error of loops (m, rad)."""
        return float(np.abs(lw.constraints.position_error(self.mech, self.q)).max(initial=0.0))

    @property
    def postures(self) -> Mapping[str, np.ndarray]:
        """Named configurations: the first one, and postures of the mechanism."""
        return {"start": self._start, **self.mech.postures}

    # -- changes --------------------------------------------------------------------------------------

    def move(self, name: str, value: float) -> None:
        """Move a slider; in a mechanism with loops other joints follow, except those that are ``held``."""
        slider = self.sliders[name]
        goal = slider.moved(self.q, value)
        self._settle()
        if not self.mech.loops:
            self.q = goal
            return
        is_scalar = self.mech.bodies[self.mech.body_index(slider.joint)].kind.rates_are_velocities
        moved = name if slider.angle is None and is_scalar else slider.joint
        at = self.mech.q_index(slider.joint) if moved == slider.joint else slice(slider.index, slider.index + 1)
        targets = {moved: goal[at]} | {
            joint: self.q[self.mech.q_index(joint)] for joint in self.held if joint != slider.joint
        }
        try:
            self.q = lw.linkages.follow(self.mech, self.q, targets)
        except lw.constraints.AssemblyError as error:
            self.q = error.q
            self.status = f"{name} does not get to {value:.4g} {slider.unit}: loop {error.loop!r} locks here"
        self._note_singularity()

    def drag(self, hand: Hand, position: Any, rotation: Any = None) -> Reached:
        """Pull a point of a link to a position, and the link to an orientation if one is given."""
        goal = None if rotation is None else np.asarray(rotation, dtype=float)
        reached = dragged(self.mech, self.q, hand, np.asarray(position, dtype=float), goal, self.scene.size)
        self.q = reached.q
        self._settle()
        if reached.distance > 1e-3 * self.scene.size or reached.angle > 0.02:
            self.target = np.asarray(position, dtype=float)
            rotated = f" and {np.degrees(reached.angle):.1f}°" if reached.angle > 0.02 else ""
            self.status = f"out of reach: {hand.link} stays {reached.distance:.3g} m{rotated} away"
        self._note_singularity()
        return reached

    def go_to(self, name: str) -> None:
        """A named configuration."""
        self.show(self.postures[name])

    def show(self, q: Any, v: Any = None) -> None:
        """Show a configuration."""
        self.q = np.array(q, dtype=float)
        self._settle()
        self.v = np.zeros(self.mech.nv) if v is None else np.array(v, dtype=float)

    def random(self, seed: int) -> None:
        """Show a random configuration within limits; with loops one on the present branch."""
        rng = np.random.default_rng(seed)
        if not self.mech.loops:
            self.show(clip_to_limits(self.mech, lw.random_state(self.mech, rng)[0]))
            return
        for size in (0.6, 0.3, 0.1):
            q = closed(self.mech, lw.integrate(self.mech, self.q, size * rng.uniform(-1, 1, self.mech.nv), 1.0))
            if q is not None:
                self.show(q)
                return

    # -- status ---------------------------------------------------------------------------------------

    def _settle(self) -> None:
        self.status, self.target = "", None
        self.v = np.zeros(self.mech.nv)

    @property
    def conditioning(self) -> float:
        """Conditioning of the loops relative to its usual value: 0 in a singular position, 1 without loops."""
        if self._usual is None:
            self._rank = lw.constraints.generic_rank(self.mech, self.q)
            self._usual = lw.constraints.usual_conditioning(self.mech, self.q) or 1.0
        return float(lw.constraints.conditioning(self.mech, self.q, self._rank)) / self._usual

    def _note_singularity(self) -> None:
        if self.conditioning < NEAR_SINGULAR:
            self.status += ("; " if self.status else "") + "singular position: loops do not say how it goes on"
