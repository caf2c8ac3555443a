"""What a viewer shows and how it answers: configurations from sliders, hands and clocks.  No browser here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

import linkwise as lw

from ..configurations import one_configuration
from ..scene import Scene, scene
from .dragging import Hand, Reached, closed, dragged, within_limits
from .sliders import Slider, sliders_of

NEAR_SINGULAR = 0.02  # conditioning of loops, relative to what it usually is


class Session:
    """A mechanism in one configuration, and what moves it.

    q, v      the state; v is zero unless a motion or a simulation sets it
    status    what is to be told: a target out of reach, loops that lock, a singular position; empty if nothing
    target    (3,): where the hand is wanted and does not get; None if it does
    """

    def __init__(self, mech: lw.Mechanism, q: Any = None, seen: Scene | None = None) -> None:
        self.mech = (
            mech.constraints.without_drives() if mech.constraints.waits_for_time else mech
        )  # hands move what drives would
        mech = self.mech
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

    # -- what is seen ---------------------------------------------------------------------------------

    @property
    def poses(self) -> np.ndarray:
        """(n_links, 4, 4)"""
        return lw.link_poses(self.mech, self.q)

    @property
    def values(self) -> dict[str, float]:
        """Where the sliders stand."""
        return {name: slider.value(self.q) for name, slider in self.sliders.items()}

    @property
    def gap(self) -> float:
        """By how much loops are open, the largest error (m, rad)."""
        return float(np.abs(lw.constraints.position_error(self.mech, self.q)).max(initial=0.0))

    @property
    def places(self) -> Mapping[str, np.ndarray]:
        """Named configurations: where it started, and postures of the mechanism."""
        return {"start": self._start, **self.mech.postures}

    # -- what moves it --------------------------------------------------------------------------------

    def move(self, name: str, value: float) -> None:
        """A slider is moved: of a closed mechanism the others follow, those of ``held`` joints stand still."""
        slider = self.sliders[name]
        wanted = slider.moved(self.q, value)
        self._settle()
        if not self.mech.loops:
            self.q = wanted
            return
        moved = name if slider.angle is None else slider.joint
        if slider.angle is None and not self._is_ordinary(slider):
            moved = slider.joint
        at = self.mech.q_index(slider.joint) if moved == slider.joint else slice(slider.place, slider.place + 1)
        targets = {moved: wanted[at]} | {
            joint: self.q[self.mech.q_index(joint)] for joint in self.held if joint != slider.joint
        }
        try:
            self.q = lw.linkages.follow(self.mech, self.q, targets)
        except lw.constraints.AssemblyError as error:
            self.q = error.q
            self.status = f"{name} does not get to {value:.4g} {slider.unit}: loop {error.loop!r} locks here"
        self._look_around()

    def _is_ordinary(self, slider: Slider) -> bool:
        return self.mech.bodies[self.mech.body_index(slider.joint)].kind.rates_are_velocities

    def drag(self, hand: Hand, position: Any, rotation: Any = None) -> Reached:
        """A point of a link is pulled to a place, and the link to an orientation if there is one."""
        goal = None if rotation is None else np.asarray(rotation, dtype=float)
        reached = dragged(self.mech, self.q, hand, np.asarray(position, dtype=float), goal, self.scene.size)
        self.q = reached.q
        self._settle()
        if reached.distance > 1e-3 * self.scene.size or reached.angle > 0.02:
            self.target = np.asarray(position, dtype=float)
            rotated = f" and {np.degrees(reached.angle):.1f}°" if reached.angle > 0.02 else ""
            self.status = f"out of reach: {hand.link} stays {reached.distance:.3g} m{rotated} away"
        self._look_around()
        return reached

    def go_to(self, name: str) -> None:
        """A named configuration."""
        self.show(self.places[name])

    def show(self, q: Any, v: Any = None) -> None:
        """A configuration that someone else computed."""
        self.q = np.array(q, dtype=float)
        self._settle()
        self.v = np.zeros(self.mech.nv) if v is None else np.array(v, dtype=float)

    def random(self, seed: int) -> None:
        """Any configuration within limits; of a closed mechanism one on the branch that it is on."""
        rng = np.random.default_rng(seed)
        if not self.mech.loops:
            self.show(within_limits(self.mech, lw.random_state(self.mech, rng)[0]))
            return
        for size in (0.6, 0.3, 0.1):
            there = closed(self.mech, lw.integrate(self.mech, self.q, size * rng.uniform(-1, 1, self.mech.nv), 1.0))
            if there is not None:
                self.show(there)
                return

    # -- what is to be told ---------------------------------------------------------------------------

    def _settle(self) -> None:
        self.status, self.target = "", None
        self.v = np.zeros(self.mech.nv)

    @property
    def conditioning(self) -> float:
        """Of the loops, relative to what it usually is: zero in a singular position; 1 without loops."""
        if self._usual is None:
            self._rank = lw.constraints.generic_rank(self.mech, self.q)
            self._usual = lw.constraints.usual_conditioning(self.mech, self.q) or 1.0
        return float(lw.constraints.conditioning(self.mech, self.q, self._rank)) / self._usual

    def _look_around(self) -> None:
        if self.conditioning < NEAR_SINGULAR:
            self.status += ("; " if self.status else "") + "singular position: loops do not say how it goes on"
