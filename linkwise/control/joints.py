"""Joint feedback: springs and dampers in the joints with gravity compensation; saturation of motors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.actuation import Motors, actuated_coordinates, bearing_gravity, gravity_held
from ..dynamics.by_joint import configuration_by_joint, numbers_per_velocity
from ..dynamics.position_limits import beyond_limits
from ..dynamics.states import Float64Array, checked_arrays, in_brief, real_numbers
from ..dynamics.trees import difference
from ..mechanics.algorithms import expressions as ex
from ..mechanics.algorithms.configuration import difference as difference_on
from ..mechanics.algorithms.contact_dynamics import motor_forces
from ..mechanics.operators.plan import apply
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar
from ..mechanism import LimitWarning, Mechanism, MechanismError, MechanismWarning, require_mechanism, warn_caller
from ..mechanism.quaternions import with_unit_quaternions
from .compiled import CompiledControl, Constant, ControlLaw, SaturatedLaw, Scalars, format_limit


@dataclass(frozen=True)
class JointFeedbackLaw(ControlLaw):
    """tau = kp (target - q) - kd v, and gravity, at the ``actuated`` coordinates; the reference is [target, kp, kd]:
    controllers with other gains share their code."""

    gravity: bool = True
    actuated: tuple[bool, ...] = ()
    bearing: Motors = Motors()  # what holds the mechanism against gravity

    def __str__(self) -> str:
        return "joint feedback" + ", gravity held" * self.gravity

    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        nq, nv = tree.mechanism.nq, tree.mechanism.nv
        target, kp, kd = reference[:nq], reference[nq : nq + nv], reference[nq + nv :]
        way = difference_on(tree, q, target)
        held: Scalars = [0.0] * nv
        if self.gravity:
            load, (names, units) = apply(ex.GRAVITY_FORCE, tree, q), self.bearing
            held = motor_forces(tree, q, load, units=units, actuated=names, nearest=True)
        rows = zip(self.actuated, kp, way, kd, v, held, strict=True)
        return [p * d - k * x + g if driven else 0.0 for driven, p, d, k, x, g in rows]

    def damping(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar] | None:
        kd = reference[tree.mechanism.nq + tree.mechanism.nv :]
        return [k if driven else 0.0 for driven, k in zip(self.actuated, kd, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class JointFeedback(CompiledControl):
    """tau = kp (target - q) - kd v, and gravity, at the actuated joints: a controller ``control(t, q, v) -> tau``.

    target - q is ``difference``: along tangent directions, the short way round for joints that rotate freely.
    ``actuated`` (nv,) marks the coordinates with a force, ``actuated_joints`` names their joints.
    """

    target: np.ndarray
    kp: np.ndarray
    kd: np.ndarray
    gravity: bool
    actuated: np.ndarray

    @classmethod
    def of(
        cls, mech: Mechanism, target: np.ndarray, kp: np.ndarray, kd: np.ndarray, gravity: bool, actuated: np.ndarray
    ) -> JointFeedback:
        """The law with these numbers, which have been checked."""
        law = JointFeedbackLaw(
            mech.nq + 2 * mech.nv, gravity, tuple(actuated.tolist()), bearing_gravity(mech, actuated)
        )
        reference = Constant(np.concatenate([target, kp, kd]))
        return cls(mech, law, reference, target, kp, kd, gravity, actuated)

    def __repr__(self) -> str:
        held = ", gravity held" if self.gravity else ""
        gains = f"kp {in_brief(self.kp)}, kd {in_brief(self.kd)}"
        return f"<controller of {self.mech.name!r}: joint feedback, {gains}{held}>"

    def __call__(self, t: float, q: Any, v: Any) -> Float64Array:
        tau = super().__call__(t, q, v)
        if np.isfinite(tau).all():
            return tau
        # Singular positions: the shares are found by singular values.
        q, v = checked_arrays(self.mech, q=q, v=v)
        tau = self.kp * difference(self.mech, q, self.target) - self.kd * v
        return tau + gravity_held(self.mech, q, self.actuated) if self.gravity else tau

    @property
    def actuated_joints(self) -> tuple[str, ...]:
        """The joints that this controller drives, in the order of the mechanism."""
        independent = (body.joint for body in self.mech.bodies if not body.mimic)
        return tuple(joint for joint in independent if self.actuated[self.mech.v_index(joint)].any())


def joint_feedback(
    mech: Mechanism,
    target: Any,
    kp: Any = 0.0,
    kd: Any = 0.0,
    gravity: bool = True,
    actuated: Sequence[str] | np.ndarray | None = None,
) -> JointFeedback:
    """Proportional and derivative control of the actuated joints towards the configuration ``target`` (nq,).

    target     or {joint: coordinates}; joints that are left out stay as in ``mech.initial``, closed by
               ``constraints.assemble`` in mechanisms with loops.  A ``LimitWarning`` names joints that kp pulls beyond
               active limits
    kp, kd     stiffness and damping: one number, or one for each of the nv coordinates; not negative; numbers of joints
               without motor are not used.  Or {joint: number, or one per degree of freedom}, zero for the others
    gravity    add the forces of the actuated joints that hold the mechanism against gravity at its configuration, with
               closed loops too.  Joints that have no motor and are in no loop (a floating base) count as held
    actuated   joints with a motor: their names, or nv booleans.  None: ``mech.metadata.actuated_joints``, from the file
               or ``mech.metadata.with_actuated``; if these are unknown, all but floating joints and, in mechanisms with
               loops, as many joints as degrees of freedom that determine the others at ``target``: joints with an
               effort limit first, then sliding joints between moving links (cylinders, struts), then joints of one
               degree of freedom, then others, each from the ground outwards.  ``control.actuated_joints`` names them
    """
    require_mechanism(mech)
    if callable(target):
        raise MechanismError(
            "joint_feedback leads to one configuration: linkwise.control.computed_torque(mech, motion) and "
            "linkwise.control.decoupled_tracking follow motions and functions of t"
        )
    target = (
        configuration_by_joint(mech, "target", target)
        if isinstance(target, Mapping)
        else real_numbers("target", target)
    )
    if target.shape != (mech.nq,) or not np.isfinite(target).all():
        raise ValueError(f"target must be {mech.nq} finite numbers, one configuration of {mech.name!r}, got {target!r}")
    target = with_unit_quaternions(mech, "target", target)
    driven = actuated_coordinates(mech, target, actuated)
    gains = []
    for name, gain in (("kp", kp), ("kd", kd)):
        values = numbers_per_velocity(mech, name, gain, 0.0)
        if not np.isfinite(values).all():
            raise ValueError(f"{name} must be finite, got {gain!r}")
        for joint in gain if isinstance(gain, Mapping) else ():
            if not driven[mech.v_index(joint)].any():
                raise MechanismError(f"{name} names joint {joint!r}, which has no motor here: name it in actuated=...")
        gains.append(np.where(driven, values, 0.0))
    _warn_of_targets_beyond_limits(mech, target, gains[0])
    return JointFeedback.of(mech, target, gains[0], gains[1], bool(gravity), driven)


def _warn_of_targets_beyond_limits(mech: Mechanism, target: np.ndarray, kp: np.ndarray) -> None:
    """Warn once of joints that the controller's springs pull beyond active limits."""
    stopped = {
        joint
        for joint in mech.forces.active.get("limits", ())
        if joint not in mech.coordinates.mimic_joints and kp[mech.v_index(joint)].any()
    }
    beyond = beyond_limits(mech, target[None], lambda body: body.joint in stopped)
    if beyond:
        warn_caller(
            f"the target of joint_feedback of mechanism {mech.name!r} is beyond joint limits, whose stops hold it off: "
            f"{beyond}; np.clip(target, mech.limits.lower, mech.limits.upper) is within them",
            LimitWarning,
        )


@dataclass(frozen=True, eq=False)
class Saturated:
    """A controller ``control(t, q, v) -> tau`` whose forces go no further than ``limit`` (nv,) in either direction."""

    control: Callable[..., Any]
    limit: np.ndarray

    def __repr__(self) -> str:
        return f"<{self.control!r}{format_limit(self.limit)}>"

    def __call__(self, t: float, q: Any, v: Any) -> np.ndarray:
        return np.clip(real_numbers("what control returns", self.control(t, q, v)), -self.limit, self.limit)


def saturated(mech: Mechanism, control: Callable[..., Any], limit: Any = None) -> Saturated | CompiledControl:
    """``control`` with its joint forces clipped to the motors' limits; a compiled controller stays compiled.

    limit   the largest force: one number, one for each of the nv coordinates, {joint: number, or one per degree of
            freedom}, or None for the effort limits of the mechanism's joints; joints without one are not limited
    """
    require_mechanism(mech)
    if not callable(control):
        raise TypeError(f"control must be a function of (t, q, v), not {control!r}; cut an array off with np.clip")
    if limit is None:
        limit = mech.limits.effort
        _warn_of_no_effort(mech)
    bound = numbers_per_velocity(mech, "limit", limit, np.inf)
    if isinstance(control, CompiledControl):
        law = SaturatedLaw(control.law.n_ctrl, control.law, tuple(bound.tolist()))
        return CompiledControl(control.mech, law, control.reference)
    return Saturated(control, bound)


def _warn_of_no_effort(mech: Mechanism) -> None:
    driven = mech.metadata.actuated_joints or [body.joint for body in mech.bodies if body.mimic is None]
    weak = [name for name in driven if not mech.limits.effort[mech.v_index(name)].any()]
    if weak:
        warn_caller(
            f"effort limits of mechanism {mech.name!r} are 0 at joints {', '.join(weak)}, where saturated control then "
            "gives no force; where a file says 0 for what it does not know, give limit={joint: number}, inf for none",
            MechanismWarning,
        )
