"""Actuators: control inputs to forces, by gain, bias and activation, through joints, tendons and frames.

All actuators of a mechanism are one law, since what they give a joint together may be bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ...mechanism import Actuator, Mechanism, Tendon
from ..scalar import Scalar, is_constant, is_zero, select
from ..spatial import Force, Vector3
from ..spatial import quaternion as quat
from .at_joints import at_least, at_most, one_if, positive
from .law import ForceLaw, Situation

SLOWING = 0.1  # of a velocity limit


@dataclass(frozen=True)
class Actuation(ForceLaw):
    """Actuators with their tendons, total effort bounds of joints (joint, lower, upper), and speed limits (joint,
    limit). Over the last ``SLOWING`` of the range to a speed limit the driving force fades linearly.
    """

    actuators: tuple[Actuator, ...]
    tendons: tuple[Tendon, ...] = ()
    bounds: tuple[tuple[str, float, float], ...] = ()
    speeds: tuple[tuple[str, float], ...] = ()

    @property
    def n_ctrl(self) -> int:  # type: ignore[override]
        return len(self.actuators)

    @property
    def n_activation(self) -> int:  # type: ignore[override]
        return sum(actuator.has_activation for actuator in self.actuators)

    def frames(self) -> tuple[str, ...]:
        return tuple(actuator.target for actuator in self.actuators if actuator.transmission == "site")

    def act(self, at: Situation, ctrl: Sequence[Scalar], activation: Sequence[Scalar]) -> Sequence[Scalar]:
        at_joints: dict[str, list[Scalar]] = {}
        slopes: dict[str, Scalar] = {}
        rates: list[Scalar] = []
        for actuator, through, force, falling, rate in self.driven(at, ctrl, activation):
            rates += rate
            reach = through.reach
            for joint, arms in through.arms.items():
                known = at_joints.get(joint, [0.0] * len(arms))
                at_joints[joint] = [x + arm * force for x, arm in zip(known, arms, strict=True)]
                if at.step is not None and reach and not is_zero(falling):  # at least what couples joints of a tendon
                    slopes[joint] = slopes.get(joint, 0.0) + falling * (abs(arms[0]) * reach)
            if actuator.transmission == "site":
                push, moment = Vector3(*actuator.gear[:3]), Vector3(*actuator.gear[3:])
                at.push_frame(actuator.target, Force(moment * force, push * force))
        bounds, speeds = {joint: (lower, upper) for joint, lower, upper in self.bounds}, dict(self.speeds)
        for joint, forces in at_joints.items():
            slope = slopes.get(joint, 0.0) * _inside(forces[0], bounds.get(joint))
            forces = [clipped(force, bounds.get(joint)) for force in forces]
            if joint in speeds:
                force, fading = _slowed(forces[0], at.velocities(joint)[0], speeds[joint])
                forces, slope = [force], slope + fading
            at.push_joint(joint, forces)
            if not is_zero(slope):
                at.resist_joint(joint, [slope])
        return rates

    def driven(self, at: Situation, ctrl: Sequence[Scalar], activation: Sequence[Scalar]) -> Iterator[_Driven]:
        """Each actuator with its force, before the total effort of a joint is bounded."""
        tendons, states = {tendon.name: tendon for tendon in self.tendons}, iter(activation)
        for actuator, control in zip(self.actuators, ctrl, strict=True):
            control, rate = clipped(control, actuator.ctrl_range), list[Scalar]()
            if actuator.has_activation:
                state = next(states)
                rate = [_rate(actuator, control, state)]
                control = clipped(state, actuator.activation_range)
            through = _transmission(at, actuator, tendons)
            total = _affine(actuator.gain, through) * control + _affine(actuator.bias, through)
            yield _Driven(
                actuator, through, clipped(total, actuator.force_range), _falling(actuator, control, total), rate
            )

    def add_linear(self, mech: Mechanism, stiffness: np.ndarray, damping: np.ndarray) -> None:
        """Add stiffness and damping of servos: their biases' slopes by length and rate."""
        tendons = {tendon.name: tendon.joints for tendon in self.tendons}
        for actuator in self.actuators:
            joints = (
                tendons.get(actuator.target, ()) if actuator.transmission == "tendon" else ((actuator.target, 1.0),)
            )
            if actuator.transmission == "site" or any(mech.bodies[mech.body_index(j)].kind.nv != 1 for j, _ in joints):
                continue
            arms = actuator.gear[0] * moment_arms(mech, joints)
            stiffness += max(0.0, -actuator.bias[1]) * np.outer(arms, arms)
            damping += max(0.0, -actuator.bias[2]) * np.outer(arms, arms)


def moment_arms(mech: Mechanism, joints: Sequence[tuple[str, float]]) -> np.ndarray:
    """(nv,): the rate of a tendon's length by the velocities."""
    arms = np.zeros(mech.nv)
    for joint, arm in joints:
        entry = mech.coordinates.place(joint)
        arms[entry.v_index] += entry.ratio * arm
    return arms


class _Driven(NamedTuple):
    """An actuator at one state: transmission, force, slope of the force by the rate of length (sign changed), and the
    rate of its activation if it has one.
    """

    actuator: Actuator
    through: _Through
    force: Scalar
    falling: Scalar
    rate: list[Scalar]


@dataclass(frozen=True)
class _Through:
    """A transmission at one state: gear times length, its rate, and joint forces per unit of force."""

    length: Scalar
    rate: Scalar
    arms: Mapping[str, Sequence[Scalar]]

    @property
    def reach(self) -> float:
        """Sum of the absolute arms if they are constant and each at one coordinate, else zero."""
        arms = [entries[0] for entries in self.arms.values() if len(entries) == 1 and is_constant(entries[0])]
        return sum(map(abs, arms)) if len(arms) == len(self.arms) else 0.0


def _transmission(at: Situation, actuator: Actuator, tendons: Mapping[str, Tendon]) -> _Through:
    gear = actuator.gear[0]
    if actuator.transmission == "site":
        return _through_frame(at, actuator)
    if actuator.transmission == "tendon":
        length, rate = along(at, tendons[actuator.target])
        return _Through(length * gear, rate * gear, {j: [arm * gear] for j, arm in tendons[actuator.target].joints})
    mech: Mechanism = at.tree.mechanism
    kind = mech.bodies[mech.body_index(actuator.target)].kind
    q, v = at.positions(actuator.target), at.velocities(actuator.target)
    if kind.is_ball:
        rotation, axis = quat.logarithm(quat.normalized(q)), Vector3(*actuator.gear[:3])
        if actuator.transmission == "jointinparent":
            axis = quat.rotation_matrix(q).T @ axis
        return _Through(Vector3(*actuator.gear[:3]).dot(rotation), axis.dot(Vector3(*v)), {actuator.target: [*axis]})
    if kind.is_free:  # MuJoCo: translation first, along the axes of the world
        to_body = quat.rotation_matrix(q[:4]).T
        moment, force = Vector3(*actuator.gear[3:]), to_body @ Vector3(*actuator.gear[:3])
        if actuator.transmission == "jointinparent":
            moment = to_body @ moment
        arms = [*moment, *force]
        return _Through(0.0, sum((a * x for a, x in zip(arms, v, strict=True)), 0.0), {actuator.target: arms})
    return _Through(q[0] * gear, v[0] * gear, {actuator.target: [gear]})


def _through_frame(at: Situation, actuator: Actuator) -> _Through:
    """A wrench on a frame: its length is zero and its rate the frame's motion along the gear."""
    if not (actuator.gain[2] or actuator.bias[2]):
        return _Through(0.0, 0.0, {})
    motion = at.velocity(actuator.target)
    rate = Vector3(*actuator.gear[:3]).dot(motion.linear) + Vector3(*actuator.gear[3:]).dot(motion.angular)
    return _Through(0.0, rate, {})


def along(at: Situation, tendon: Tendon) -> tuple[Scalar, Scalar]:
    """Length of a tendon and its rate."""
    length: Scalar = tendon.offset
    rate: Scalar = 0.0
    for joint, arm in tendon.joints:
        length = length + at.positions(joint)[0] * arm
        rate = rate + at.velocities(joint)[0] * arm
    return length, rate


def _affine(prm: Sequence[float], through: _Through) -> Scalar:
    return prm[0] + prm[1] * through.length + prm[2] * through.rate


def _rate(actuator: Actuator, control: Scalar, activation: Scalar) -> Scalar:
    rate = control if actuator.dynamics == "integrator" else (control - activation) * (1.0 / actuator.time_constant)
    if actuator.activation_range is None:
        return rate
    low, high = actuator.activation_range  # at its bounds an activation does not move outwards
    if math.isfinite(high):
        rate = select(activation < high, rate, at_most(rate, 0.0))
    return select(low < activation, rate, at_least(rate, 0.0)) if math.isfinite(low) else rate


def _slowed(force: Scalar, velocity: Scalar, limit: float) -> tuple[Scalar, Scalar]:
    """The force after the speed limit: reduced near the limit and zero beyond, with its slope by velocity (sign
    changed).
    """
    speed = select(0.0 < velocity, velocity, -velocity)
    left = (limit - speed) * (1.0 / (SLOWING * limit))
    driving = 0.0 < force * velocity
    slope = select(0.0 < force, force, -force) * (1.0 / (SLOWING * limit)) * _inside(left, (0.0, 1.0))
    return select(driving, force * clipped(left, (0.0, 1.0)), force), select(driving, slope, 0.0)


def _falling(actuator: Actuator, control: Scalar, total: Scalar) -> Scalar:
    """Decrease of an actuator's force per unit rate of length, at least zero."""
    falls = -(actuator.gain[2] * control + actuator.bias[2])
    return positive(falls) * _inside(total, actuator.force_range)


def _inside(x: Scalar, bounds: tuple[float, float] | None) -> Scalar:
    """1 where ``clipped`` leaves x as it is, else 0."""
    if bounds is None:
        return 1.0
    return one_if(bounds[0] < x) * one_if(x < bounds[1])


def clipped(x: Scalar, bounds: tuple[float, float] | None) -> Scalar:
    """x clipped to bounds; at a bound the derivative is zero."""
    if bounds is None:
        return x
    low, high = bounds
    below = x if math.isinf(high) else at_most(x, high)
    return below if math.isinf(low) else at_least(below, low)
