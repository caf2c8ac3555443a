"""Controllers designed in total joint rates (jain1995 Section 8): their equations are decoupled.

With constraints total rates are quasi-velocities, and joint forces need no constraint forces (``diagonal.torques``):
all joints have motors.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.pipeline import compile
from ..constraints.elimination_orders import fronts
from ..mechanics import operators as op
from ..mechanics.operators.expression import Vector
from ..mechanics.operators.spaces import force_at
from ..mechanism import Mechanism
from .states import Float64Array, in_brief
from .total_rates import evaluate_total_rates
from .trees import frame_pose, gravity_force


def _rates(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    return evaluate_total_rates(mech, "diagonal_rates", (q, v))


def _torques(mech: Mechanism, q: ArrayLike, eps: ArrayLike) -> Float64Array:
    return evaluate_total_rates(mech, "diagonal_torques", (q, eps))


def _gains(mech: Mechanism, gain: Any, label: str) -> np.ndarray:
    gains, count = np.asarray(gain, dtype=float), mech.nv - fronts(mech).pivots
    if gains.shape not in ((), (count,)) or not np.all(gains > 0.0):
        raise ValueError(f"{label} must be a positive number or {count} of them, got {gain!r}")
    return gains if mech.loops and not gains.ndim else np.broadcast_to(gains, (count,))


@dataclass(frozen=True, eq=False)
class RateFeedback:
    """epsilon = -c nu (jain1995 8.4): a controller ``control(t, q, v) -> tau`` that brings any motion to rest.

    It does not choose where.  Without ``gravity`` compensation the mechanism settles in an equilibrium of gravity.
    """

    mech: Mechanism
    gain: np.ndarray
    gravity: bool

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Float64Array:
        tau = _torques(self.mech, q, -self.gain * _rates(self.mech, q, v))
        return tau + gravity_force(self.mech, q) if self.gravity else tau

    def __repr__(self) -> str:
        return f"<controller of {self.mech.name!r}: rate feedback, gain {in_brief(self.gain)}>"

    def lyapunov(self, q: ArrayLike, v: ArrayLike) -> Float64Array:
        """Kinetic energy nu* nu / 2."""
        return 0.5 * np.sum(_rates(self.mech, q, v) ** 2, axis=-1)

    def lyapunov_rate(self, q: ArrayLike, v: ArrayLike) -> Float64Array:
        """-nu* c nu: the rate of the Lyapunov function if gravity is compensated (jain1995 Lemma 7.2)."""
        return -np.sum(self.gain * _rates(self.mech, q, v) ** 2, axis=-1)


def rate_feedback(mech: Mechanism, gain: ArrayLike = 1.0, gravity: bool = True) -> RateFeedback:
    """Control 8.1.  ``gain`` (1/s): one number, or one for each of the nv total rates; each decays on its own at its
    gain, except for workless coupling by C.  ``gravity``: compensate it."""
    return RateFeedback(mech, _gains(mech, gain, "gain"), gravity)


@dataclass(frozen=True, eq=False)
class EndEffectorRegulation:
    """epsilon = -c1 nu + D^(-1/2) H psi B f(e): a controller that pulls a frame to a pose and damps all motion.

    f is the force of springs on the frame: between its origin and the target's, and between its three axes' unit
    vectors and theirs.  jain1995 (8.6) has the second term with a minus sign and without D^(-1/2); with its error
    e = target - actual that would push the frame away, and the Lyapunov function needs the factor.

    The Lyapunov function falls until motion stops, where the springs have no force along any joint.  That is the target
    if the start is near enough.  Other equilibria are:

    - the target is out of reach: the frame stops where it is nearest in the sense of the springs;
    - a singular configuration in which the springs pull in a direction that the joints cannot move: an arm stretched
      out towards or away from the target stays, or lingers at a saddle;
    - the orientation is off by exactly half a turn: the axes' springs balance (a saddle of ``lyapunov``);
    - joints that would have to turn the other way round: a local minimum.

    ``pull`` is zero in all of these equilibria, ``error`` only at the target.
    """

    mech: Mechanism
    link: str
    target: np.ndarray
    rate_gain: np.ndarray
    position_gain: float
    orientation_gain: float
    gravity: bool
    working_moments: Callable[..., Any]  # q, force at the frame -> D^(-1/2) H psi B f

    def __call__(self, t: float, q: ArrayLike, v: ArrayLike) -> Float64Array:
        eps = self.pull(q) - self.rate_gain * _rates(self.mech, q, v)
        tau = _torques(self.mech, q, eps)
        return tau + gravity_force(self.mech, q) if self.gravity else tau

    def __repr__(self) -> str:
        gain = f"rate gain {in_brief(self.rate_gain)}"
        return f"<controller of {self.mech.name!r}: end effector regulation of {self.link!r}, {gain}>"

    def error(self, q: ArrayLike) -> Float64Array:
        """(..., 12): target less actual, of the origin and of the three axes' unit vectors (jain1995's e)."""
        difference = (self.target - frame_pose(self.mech, q, self.link))[..., :3, :]
        columns = np.swapaxes(difference, -1, -2)  # three axes, then the origin
        return np.concatenate([columns[..., 3, :], columns[..., 0, :], columns[..., 1, :], columns[..., 2, :]], axis=-1)

    def pull(self, q: ArrayLike) -> Float64Array:
        """(..., nv): working moments of the springs."""
        pose = frame_pose(self.mech, q, self.link)
        turned = pose[..., :3, :3]
        force = self.position_gain * (self.target[:3, 3] - pose[..., :3, 3])
        moment = self.orientation_gain * np.cross(np.swapaxes(turned, -1, -2), self.target[:3, :3].T).sum(axis=-2)
        into_link = np.einsum("...ij,...ki->...kj", turned, np.stack([moment, force], axis=-2))
        return self.working_moments(q, into_link.reshape(*into_link.shape[:-2], 6))

    def potential(self, q: ArrayLike) -> Float64Array:
        """Energy of the springs."""
        e = self.error(q) ** 2
        return 0.5 * (self.position_gain * e[..., :3].sum(-1) + self.orientation_gain * e[..., 3:].sum(-1))

    def lyapunov(self, q: ArrayLike, v: ArrayLike) -> Float64Array:
        """nu* nu / 2 plus the energy of the springs."""
        return 0.5 * np.sum(_rates(self.mech, q, v) ** 2, axis=-1) + self.potential(q)

    def lyapunov_rate(self, q: ArrayLike, v: ArrayLike) -> Float64Array:
        """-nu* c1 nu: the rate of the Lyapunov function if gravity is compensated."""
        return -np.sum(self.rate_gain * _rates(self.mech, q, v) ** 2, axis=-1)


def end_effector_regulation(
    mech: Mechanism,
    link: str,
    target_pose: Any,
    rate_gain: ArrayLike = 4.0,
    position_gain: float = 200.0,
    orientation_gain: float = 10.0,
    gravity: bool = True,
) -> EndEffectorRegulation:
    """Control 8.2: bring the link or frame ``link`` to ``target_pose``, (rotation, position) or 4x4, in the world.

    rate_gain (1/s) as for ``rate_feedback``; position_gain (N/m) and orientation_gain (N m/rad, for small errors twice
    that) are the springs' stiffnesses.  ``EndEffectorRegulation`` lists where it can fail.
    """
    target = np.eye(4)
    if isinstance(target_pose, tuple):
        target[:3, :3], target[:3, 3] = target_pose
    else:
        target[:] = target_pose
    if np.abs(target[:3, :3] @ target[:3, :3].T - np.eye(3)).max() > 1e-8 or np.linalg.det(target[:3, :3]) < 0.0:
        raise ValueError("the rotation of target_pose must be a rotation matrix: orthogonal, with determinant 1")
    for name, value in (("position_gain", position_gain), ("orientation_gain", orientation_gain)):
        if not value >= 0.0:
            raise ValueError(f"{name} must not be negative, got {value!r}")
    if mech.frame(link).body < 0:
        raise ValueError(f"frame {link!r} is fixed to the ground: no joint moves it")
    force = Vector("force", force_at(link))
    pulled: Callable[..., Any]
    if mech.coordinates.mimic_joints or mech.loops:  # factors by elimination: no operators
        on_coordinates = compile(op.S.T @ op.H @ op.phi @ op.B(link) @ force, mech)

        def pulled(q: Any, force: Any) -> Any:
            return evaluate_total_rates(mech, "diagonal_forces", (q, on_coordinates(q, force)))
    else:
        pulled = compile(op.D_half.inv @ op.H @ op.psi @ op.B(link) @ force, mech)
    return EndEffectorRegulation(
        mech,
        link,
        target,
        _gains(mech, rate_gain, "rate_gain"),
        float(position_gain),
        float(orientation_gain),
        gravity,
        pulled,
    )
