"""The same mechanism in other units: what is right in metres, kilograms and seconds is right in every system."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linkwise.mechanics.joints import LENGTH
from linkwise.mechanism import Body, Coupling, Frame, Limits, Loop, Mechanism


@dataclass(frozen=True)
class Units:
    """How many of its units make a metre, a kilogram and a second."""

    name: str
    length: float = 1.0
    mass: float = 1.0
    time: float = 1.0

    def __str__(self) -> str:
        return self.name

    @property
    def force(self) -> float:
        return self.mass * self.length / self.time**2

    @property
    def energy(self) -> float:
        return self.force * self.length

    # Arrays over the coordinates -------------------------------------------------------------------------------------

    def q(self, mech: Mechanism, q: Any) -> np.ndarray:
        """Configurations (..., nq) of ``mech``, which is in SI units."""
        return np.asarray(q) * np.where(lengths(mech, "q"), self.length, 1.0)

    def of_v(self, mech: Mechanism) -> np.ndarray:
        """(nv,): the factor of small changes of configurations: lengths or angles."""
        return np.where(lengths(mech, "v"), self.length, 1.0)

    def v(self, mech: Mechanism, v: Any) -> np.ndarray:
        """Velocities (..., nv)."""
        return np.asarray(v) * self.of_v(mech) / self.time

    def a(self, mech: Mechanism, a: Any) -> np.ndarray:
        """Accelerations (..., nv)."""
        return np.asarray(a) * self.of_v(mech) / self.time**2

    def tau(self, mech: Mechanism, tau: Any) -> np.ndarray:
        """Joint forces (..., nv)."""
        return np.asarray(tau) * self.energy / self.of_v(mech)

    def wrenches(self, wrenches: Any) -> np.ndarray:
        """Wrenches (..., 6): [moment; force]."""
        return np.asarray(wrenches) * self.force * np.repeat([self.length, 1.0], 3)

    def mass_matrix(self, mech: Mechanism, matrix: Any) -> np.ndarray:
        """(..., nv, nv): kinetic energy by velocities."""
        return np.asarray(matrix) * self.mass * self.length**2 / np.multiply.outer(self.of_v(mech), self.of_v(mech))

    # The mechanism ---------------------------------------------------------------------------------------------------

    def mechanism(self, mech: Mechanism) -> Mechanism:
        """A copy of ``mech``, which is in SI units, in these ones; drives, relations, actuators and tendons are
        refused, as functions and gains say nothing of their units."""
        assert not mech.elements and not mech.constraints.driven, "units of functions and gains are not known"
        copy = Mechanism(
            mech.name,
            tuple(self._body(body, mech.bodies) for body in mech.bodies),
            {name: self._frame(frame) for name, frame in mech.frames.items()},
            mech.gravity * self.length / self.time**2,
            tuple(self._loop(mech, loop) for loop in mech.loops),
            replace(mech.annotations, initial=(), postures=()),
            (),
            mech.switched_off,
            tuple(
                replace(shape, size=tuple(self.length * x for x in shape.size), pose=self._pose(shape.pose))
                for shape in mech.shapes
            ),
            tuple(
                replace(
                    pair,
                    mass=pair.mass * self.mass,
                    carried=pair.carried * self.mass,
                    load=pair.load * self.force,
                    law=self._contact_law(pair.law),
                )
                for pair in mech.contact_pairs
            ),
        )
        return copy.metadata.with_initial(self.q(mech, mech.initial)) if mech.annotations.initial else copy

    def _pose(self, pose: Any) -> Any:
        return pose[0], pose[1] * self.length

    def _frame(self, frame: Frame) -> Frame:
        return replace(frame, position=frame.position * self.length)

    def _kind(self, kind: Any) -> Any:
        lengths = {name: getattr(kind, name) * self.length for name in kind.lengths}
        return replace(kind, **lengths) if lengths else kind

    def _contact_law(self, law: Any) -> Any:
        speed = self.length / self.time
        return replace(
            law,
            stiffness=law.stiffness * self.force / self.length,
            dissipation=law.dissipation / speed,
            damping=law.damping * self.force / speed,
            slip_speed=law.slip_speed * speed,
            smoothing=law.smoothing * self.length,
            margin=law.margin * self.length,
        )

    def _body(self, body: Body, bodies: Sequence[Body]) -> Body:
        positions = np.where(_are_lengths(body.kind, "q"), self.length, 1.0)
        velocities = np.where(_are_lengths(body.kind, "v"), self.length, 1.0)
        stiffness = self.energy / velocities**2
        limits = body.limits
        scaled = Limits(
            np.array(limits.lower) * positions,
            np.array(limits.upper) * positions,
            np.array(limits.velocity) * velocities / self.time,
            np.array(limits.effort) * self.energy / velocities,
            None if limits.stiffness is None else np.array(limits.stiffness) * self.energy / positions**2,
            None if limits.damping is None else np.array(limits.damping) * self.energy * self.time / positions**2,
        )
        mimic = body.mimic
        if mimic is not None:
            leader = next(other.kind for other in bodies if other.joint == mimic.joint)
            of_leader = self.length if _are_lengths(leader, "q")[0] else 1.0
            own = float(positions[0])
            mimic = replace(mimic, ratio=mimic.ratio * own / of_leader, offset=mimic.offset * own)
        return replace(
            body,
            kind=self._kind(body.kind),
            position=body.position * self.length,
            mass=body.mass * self.mass,
            com=body.com * self.length,
            inertia=body.inertia * self.mass * self.length**2,
            armature=tuple(np.array(body.armature) * self.mass * self.length**2 / velocities**2),
            damping=tuple(np.array(body.damping) * stiffness * self.time),
            friction=tuple(np.array(body.friction) * self.energy / velocities),
            stiffness=tuple(np.array(body.stiffness) * stiffness),
            rest=None if body.rest is None else tuple(np.array(body.rest) * positions),
            limits=scaled,
            mimic=mimic,
        )

    def _loop(self, mech: Mechanism, loop: Any) -> Any:
        if isinstance(loop, Loop):
            return replace(
                loop, kind=self._kind(loop.kind), pose_a=self._pose(loop.pose_a), pose_b=self._pose(loop.pose_b)
            )
        assert isinstance(loop, Coupling) and loop.relation is None, "units of functions are not known"
        factors = [
            np.where(_are_lengths(mech.bodies[mech.body_index(j)].kind, "q"), self.length, 1.0)[0]
            for j, _ in loop.ratios
        ]
        ratios = {joint: ratio / factor for (joint, ratio), factor in zip(loop.ratios, factors, strict=True)}
        return replace(loop, ratios=ratios)


def _are_lengths(kind: Any, quantity: str) -> list[bool]:
    return [measure.of == LENGTH for measure in kind.measures(quantity)]


def lengths(mech: Mechanism, quantity: str) -> np.ndarray:
    """(nq,) or (nv,): which numbers of "q" or "v" are lengths."""
    kinds = (body.kind for body in mech.bodies if not body.mimic)
    return np.array([one for kind in kinds for one in _are_lengths(kind, quantity)], dtype=bool)


SI = Units("m kg s")
SYSTEMS = (
    SI,
    Units("mm g s", 1e3, 1e3, 1.0),
    Units("um ng ms", 1e6, 1e12, 1e3),
    Units("Mm Gg s", 1e-6, 1e-6, 1.0),
)
