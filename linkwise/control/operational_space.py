"""Control of a frame in the world (Khatib, "A unified approach for motion and force control of robot manipulators: the
operational space formulation", IEEE Journal of Robotics and Automation 3, 1987), and of the posture in its null space.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from ..dynamics.actuation import require_motors
from ..dynamics.by_joint import configuration_by_joint
from ..dynamics.frames import frame_acceleration, frame_velocity
from ..dynamics.given_poses import checked_rotations, is_pair, rotation_and_position
from ..dynamics.states import Float64Array, in_brief, real_numbers
from ..dynamics.trees import frame_pose
from ..mechanics.algorithms.configuration import difference
from ..mechanics.algorithms.dynamics import inverse_dynamics, mass_matrix
from ..mechanics.algorithms.frame_motion import jacobian_rate_times_velocity
from ..mechanics.algorithms.jacobians import jacobian
from ..mechanics.algorithms.kinematics import path_transform
from ..mechanics.links.factor import Elimination, Factor
from ..mechanics.recursions.tree import Configuration, Tree
from ..mechanics.scalar import Matrix, Scalar, dot, is_zero, select
from ..mechanics.spatial import IDENTITY, ZERO, Matrix3, Vector3
from ..mechanics.spatial import quaternion as quat
from ..mechanics.spatial.pose import beyond
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.quaternions import with_unit_quaternions
from ..mechanism.resistance import require_inertia
from ..mechanism.scales import lengths_among, scales
from .compiled import CompiledControl, Constant, ControlLaw, Numbers, Scalars, gains


@dataclass(frozen=True)
class OperationalSpaceLaw(ControlLaw):
    """tau = J* (J M^-1 J*)^-1 (x_r'' + kd (x_r' - J v) + kp e - dJ/dt v - J u0) + ID(q, v, u0), where the acceleration
    u0 = posture_kp (posture - q) - posture_kd v moves joints without moving the frame.

    Near singular positions P J replaces J, and P (...) the wanted acceleration: lost directions (``Lost``) are left
    out, of forces too. With J itself, forces would hold joints that hardly move the frame any more, up to the singular
    position, and jump there.

    The reference is position (3), rotation by rows (9) if it is held, velocity and acceleration of the frame, only
    linear parts if it is not.
    """

    frame: str = ""
    length: float = 1.0  # of the arm, with which lengths are compared
    rotation: bool = True
    kp: Numbers = ()  # of the rows [omega; v], linear parts alone if the rotation is not held
    kd: Numbers = ()
    posture: Numbers = ()
    posture_kp: Numbers = ()
    posture_kd: Numbers = ()

    def __str__(self) -> str:
        return f"operational space control of {self.frame!r}, kp {in_brief(self.kp)}, kd {in_brief(self.kd)}"

    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        first = 0 if self.rotation else 3  # of the rows [omega; v]
        rows = jacobian(tree, q, self.frame, "world_aligned")[first:]
        drift = jacobian_rate_times_velocity(tree, q, v, self.frame, "world_aligned")[first:]
        error = self._error(tree, q, reference)
        rates, accelerations = np.array_split(np.array(reference[len(reference) - 2 * len(rows) :], dtype=object), 2)
        way = difference(tree, q, list(self.posture))
        posture_acceleration = [
            kp * e - kd * x for kp, e, kd, x in zip(self.posture_kp, way, self.posture_kd, v, strict=True)
        ]
        wanted = [
            a + kd * (rate - dot(row, v)) + kp * e - bias - dot(row, posture_acceleration)
            for a, kd, rate, row, kp, e, bias in zip(
                accelerations, self.kd, rates, rows, self.kp, error, drift, strict=True
            )
        ]
        felt = [k for k, row in enumerate(rows) if not all(map(is_zero, row))]  # planar arms never leave their plane
        units = [1.0 if first + k < 3 else self.length for k in felt]
        rows = [[x / u for x in rows[k]] for k, u in zip(felt, units, strict=True)]
        rates_units = units_of_rates(tree.mechanism, self.length)
        lost = Lost.of([[x * u for x, u in zip(row, rates_units, strict=True)] for row in rows])
        columns = [lost.left_of(column) for column in zip(*rows, strict=True)]  # P J
        mass = Elimination(mass_matrix(tree, q))
        left = list(zip(*columns, strict=True))
        moved = [mass.solve(row) for row in left]
        mobility = lost.factor([[dot(row, other) for other in moved] for row in left])
        force = mobility.solve(lost.left_of([wanted[k] / u for k, u in zip(felt, units, strict=True)]))
        tau = inverse_dynamics(tree, q, v, posture_acceleration)
        return [x + dot(column, force) for x, column in zip(tau, columns, strict=True)]

    def _error(self, tree: Tree, q: Scalars, reference: Scalars) -> list[Scalar]:
        rotation, position = beyond((IDENTITY, ZERO), path_transform(Configuration(tree, q), self.frame))
        apart = Vector3(*reference[:3]) - position
        if not self.rotation:
            return list(apart)
        wanted = Matrix3.from_rows(np.array(reference[3:12], dtype=object).reshape(3, 3).tolist())
        return [*quat.logarithm(quat.from_matrix(wanted.times(rotation.T))), *apart]


def operational_space_control(
    mech: Mechanism,
    frame: str,
    target: Any,
    kp: Any = 100.0,
    kd: Any = 20.0,
    posture: Any = None,
    posture_kp: Any = 10.0,
    posture_kd: Any = 6.0,
) -> CompiledControl:
    """A controller that moves a frame to a pose or position, or along a motion, like a free body: its errors obey
    d2e/dt2 + kd de/dt + kp e = 0; joint motions that do not move the frame go to a posture.

    target     a pose, (4, 4) or (rotation, position), or a position (3,) in the world; or a function of t with such
               values, or with tuples of the pose or position, the frame's velocity and its acceleration: [omega; v] in
               world axes at its origin, (6,), or (3,) with a position; or a motion of all joints, planned or simulated,
               whose frame motion is the target
    kp, kd     1/s^2 and 1/s: a number, or one for each axis of the world in the order of velocities: 6, rotations about
               x, y, z first, or 3 with a position
    posture    (nq,) or {joint: ...}: the initial configuration by default; posture_kp, posture_kd: a number, nv of
               them or {joint: number}

    Every joint needs a motor. Near singular positions of the frame's Jacobian J, where the least eigenvalue of J J* is
    below 1e-4 of their sum (lengths in units of the arm), forces stay finite: errors along lost directions no longer
    decay, and the joint motions along them go to the posture.
    """
    require_mechanism(mech)
    require_inertia(mech, "operational_space_control")
    require_motors(mech, "operational_space_control")
    if mech.frame(frame).body < 0:
        raise MechanismError(f"frame {frame!r} is fixed to the ground: no joint moves it")
    if callable(target) and isinstance(getattr(target, "mechanism", None), Mechanism):
        target = partial(_frame_motion, frame, target)
    first = _numbers(frame, target(0.0) if callable(target) else target)
    size = first.size
    rotation = size == 24
    q = mech.initial if posture is None else posture
    q = configuration_by_joint(mech, "posture", q) if isinstance(q, Mapping) else real_numbers("posture", q)
    if q.shape != (mech.nq,) or not np.isfinite(q).all():
        raise MechanismError(f"posture must be {mech.nq} finite numbers, one configuration of {mech.name!r}, got {q!r}")
    law = OperationalSpaceLaw(
        size,
        frame,
        length_of_arm(mech, frame),
        rotation,
        _gains_by_axis("kp", kp, rotation),
        _gains_by_axis("kd", kd, rotation),
        tuple(with_unit_quaternions(mech, "posture", q).tolist()),
        gains(mech, "posture_kp", posture_kp),
        gains(mech, "posture_kd", posture_kd),
    )
    # A partial function, which can be pickled where the target can.
    return CompiledControl(mech, law, partial(_asked, frame, target, size) if callable(target) else Constant(first))


def _frame_motion(frame: str, motion: Any, t: float) -> tuple[Float64Array, ...]:
    """Pose, velocity and acceleration of a frame along a motion of its mechanism."""
    mech, (q, v, a) = motion.mechanism, motion(t)
    velocity = frame_velocity(mech, q, v, frame, frame="world_aligned")
    return frame_pose(mech, q, frame), velocity, frame_acceleration(mech, q, v, a, frame, "world_aligned", True)


def _gains_by_axis(name: str, value: Any, rotation: bool) -> Numbers:
    """A gain for each of the rows [omega; v]."""
    count, values = 6 if rotation else 3, real_numbers(name, value)
    if values.shape not in ((), (count,)) or not (np.isfinite(values).all() and (values >= 0.0).all()):
        axes = "rotations about and positions along x, y, z" if rotation else "positions along x, y, z"
        raise ValueError(f"{name} must be a number or {count} of them ({axes}), not negative, got {value!r}")
    return tuple(np.broadcast_to(values, (count,)).tolist())


def _asked(frame: str, function: Callable[[float], Any], size: int, t: float) -> np.ndarray:
    numbers = _numbers(frame, function(t))
    if numbers.size != size:
        raise MechanismError(f"the target of {frame!r} is a pose at some times and a position at others")
    return numbers


def _numbers(frame: str, value: Any) -> Float64Array:
    """Position, rotation, velocity and acceleration, one after the other."""
    if not hasattr(value, "__len__"):  # as arrays and tuples have
        raise TypeError(
            f"the target of {frame!r} must be a pose (4, 4), a position (3,) or a function of t that gives one, not "
            f"{value!r}; targets with weights and directions, lw.kinematics.FrameTarget, are for lw.inverse_kinematics"
        )
    with_rates = isinstance(value, tuple) and not is_pair(value) and len(value) > 0 and np.ndim(value[-1]) > 0
    where, *rates = value if with_rates else (value,)
    label, target = f"the target of {frame!r}", _place(frame, where, rates)
    count = 6 if len(target) == 2 else 3
    changes = [real_numbers(label, x) for x in rates] + [np.zeros(count)] * (2 - len(rates))
    if [x.shape for x in changes] != [(count,)] * 2:
        raise MechanismError(f"velocity and acceleration of {label} must have shape ({count},)")
    numbers = np.concatenate([*(x.ravel() for x in target), *changes])
    if not np.isfinite(numbers).all():
        raise MechanismError(f"{label} must be finite")
    return numbers


def _place(frame: str, where: Any, rates: Sequence[Any]) -> tuple[Float64Array, ...]:
    """Position and rotation, or a position alone; ``rates`` follow it in the target."""
    label = f"the target of {frame!r}"
    pose = rotation_and_position(label, where)
    rotation, position = (None, real_numbers(label, where)) if pose is None else pose
    if rotation is None and position.shape == (3, 3) and rates:
        raise MechanismError(
            f"{label} has a rotation in place of a pose: write ((rotation, position), velocity, acceleration)"
        )
    if position.shape != (3,) or (rotation is not None and rotation.shape != (3, 3)):
        got = position.shape if rotation is None else f"{rotation.shape} and {position.shape}"
        raise MechanismError(
            f"{label} must be a pose (4, 4) or a position (3,), or (rotation (3, 3), position (3,)), got shape {got}"
        )
    return (position,) if rotation is None else (position, checked_rotations(f"the rotation of {frame!r}", rotation))


SINGULAR = 1e-4  # of the trace of J J*: near singular positions its least eigenvalue is below
POSITIVE = 1e-2  # of that: by which J J* is positive for certain, round-off or not
ORDER = 3  # of the damping: directions that are not lost feel its third power alone


@dataclass(frozen=True)
class Lost:
    """Directions of motion that a frame has lost near a singular position, as the symmetric matrix 1 - P; P x is the
    part of an acceleration x that joints can produce, whatever their inertia.  It depends on the Jacobian J alone, with
    lengths in units of the arm: light wrists on heavy arms make J M^-1 J* badly conditioned everywhere without losing a
    direction. ``damping`` is the trace that was added to J J*. Both are zero elsewhere.
    """

    share: Matrix
    damping: Scalar

    @staticmethod
    def of(jacobian: Matrix) -> Lost:
        """Lost directions of a dimensionless ``jacobian`` J.

        Near singular positions J J* is damped, by d (Nakamura and Hanafusa, "Inverse kinematic solutions with
        singularity robustness for robot manipulator control", 1986), in an iteration (that of Tikhonov's
        regularization): 1 - P = (d (J J* + d)^-1)^3.  So P changes smoothly; it is zero along directions that are lost
        altogether, and the identity to about (d / J J*)^3 along those where J J* is large beside d.
        """
        gram = [[dot(row, other) for other in jacobian] for row in jacobian]
        floor = _trace(gram) * SINGULAR
        least = 1.0 / _trace_of_inverse(Factor.of(_raised(gram, POSITIVE * floor)))  # not above the least eigenvalue
        missing = select(least < floor, 1.0 - least / floor, 0.0)
        damping = floor * missing * missing
        damped = Factor.of(_raised(gram, damping))
        columns: Matrix = [[1.0 if i == j else 0.0 for i in range(len(gram))] for j in range(len(gram))]
        for _ in range(ORDER):
            columns = [[damping * x for x in damped.solve(column)] for column in columns]
        return Lost(columns, SINGULAR * missing * missing)

    def left_of(self, x: Sequence[Scalar]) -> list[Scalar]:
        """P x."""
        return [component - dot(row, x) for component, row in zip(x, self.share, strict=True)]

    def factor(self, mobility: Matrix) -> Factor:
        """Factor a mobility P J M^-1 J* P plus c (1 - P)^4, which has an inverse at singular positions too.

        c is the mobility times the damping. It is large for light wrists; the fourth power removes it along directions
        that are not lost.
        """
        squared = [[dot(row, other) for other in self.share] for row in self.share]
        size = self.damping * _trace(mobility)
        return Factor.of(
            [
                [x + size * dot(squared_row, other) for x, other in zip(row, squared, strict=True)]
                for row, squared_row in zip(mobility, squared, strict=True)
            ]
        )


def length_of_arm(mech: Mechanism, frame: str) -> float:
    """Largest possible distance of a frame from the first rotating joint on its path, from link lengths and limits;
    the mechanism's length if no joint rotates.
    """
    location = mech.frame(frame)
    way = [mech.bodies[index] for index in mech.tree.path(location.body)]
    rotating = [k for k, body in enumerate(way) if not body.kind.only_slides]
    if not rotating:
        return scales(mech).length
    beyond = way[rotating[0] + 1 :]
    distances = [*(body.position for body in beyond), location.position]
    bounds = np.where(lengths_among(mech, "q"), [mech.limits.lower, mech.limits.upper], 0.0)
    travels = [np.where(np.isfinite(at), at, 0.0) for at in (bounds[:, mech.q_index(body.joint)] for body in beyond)]
    length = sum(np.linalg.norm(x) for x in distances) + sum(np.abs(x).max(initial=0.0) for x in travels)
    return float(length) or scales(mech).length


def units_of_rates(mech: Mechanism, length: float) -> list[float]:
    """(nv,): the length for lengths, 1 for angles; velocities are these times ones without unit."""
    return np.where(lengths_among(mech, "v"), length, 1.0).tolist()


def _trace(matrix: Matrix) -> Scalar:
    return sum(row[k] for k, row in enumerate(matrix))


def _raised(matrix: Matrix, by: Scalar) -> Matrix:
    """A matrix plus a multiple of the identity."""
    return [[x + by if i == j else x for j, x in enumerate(row)] for i, row in enumerate(matrix)]


def _trace_of_inverse(factor: Factor) -> Scalar:
    count = len(factor.pivots)
    columns = [factor.forward([1.0 if i == j else 0.0 for i in range(count)]) for j in range(count)]
    return sum(r * x * x for column in columns for r, x in zip(factor.reciprocal, column, strict=True))
