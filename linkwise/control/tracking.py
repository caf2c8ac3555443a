"""Computed torque: inverse dynamics of the accelerations that lead back to a motion; errors are linear, decoupled."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.actuation import Motors, motors_of
from ..dynamics.states import in_brief
from ..mechanics.algorithms.configuration import difference
from ..mechanics.algorithms.contact_dynamics import motor_forces
from ..mechanics.algorithms.dynamics import inverse_dynamics
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar
from ..mechanism import Mechanism, require_mechanism
from .compiled import CompiledControl, ControlLaw, Numbers, Scalars, gains, joint_reference


@dataclass(frozen=True)
class ComputedTorqueLaw(ControlLaw):
    """tau = ID(q, v, a_r + kd (v_r - v) + kp (q_r - q)); the reference is [q_r, v_r, a_r]."""

    kp: Numbers = ()
    kd: Numbers = ()
    motors: Motors = Motors()

    def __str__(self) -> str:
        return f"computed torque, kp {in_brief(self.kp)}, kd {in_brief(self.kd)}"

    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        nq, nv = tree.mechanism.nq, tree.mechanism.nv
        wanted, rates, accelerations = reference[:nq], reference[nq : nq + nv], reference[nq + nv :]
        numbers = zip(accelerations, self.kd, rates, v, self.kp, difference(tree, q, wanted), strict=True)
        load = inverse_dynamics(tree, q, v, [a + kd * (r - x) + kp * e for a, kd, r, x, kp, e in numbers])
        return motor_forces(tree, q, load, units=self.motors.units, actuated=self.motors.names)


def computed_torque(
    mech: Mechanism,
    reference: Any,
    kp: Any = 100.0,
    kd: Any = 20.0,
    actuated: Sequence[str] | np.ndarray | None = None,
) -> CompiledControl:
    """A controller that follows a motion by inverse dynamics: errors e obey d2e/dt2 + kd de/dt + kp e = 0, each joint
    on its own (for free rotations to first order in the error).

    reference   a motion, planned (``lw.trajectories``) or simulated (a ``Trajectory``), a function of t that gives q,
                (q, v) or (q, v, a), or a configuration
    kp, kd      1/s^2 and 1/s: a number, nv of them or {joint: number}; kd = 2 sqrt(kp) is critically damped

    actuated    joints with a motor, or nv booleans; by default those of ``joint_feedback``

    Every joint of a tree needs a motor, and with constraints as many as there are degrees of freedom, which move it in
    all of them.  The mechanism then has, of the accelerations that the constraints allow, those nearest to the ones
    that lead back, as kinetic energy measures it: e obeys the equation to first order where kp and kd are one number
    each.
    Where there are more motors, their forces are the least, a force counting as a torque at the mechanism's length.

    Inertia and gravity are compensated, not friction and others that act.
    """
    require_mechanism(mech)
    motors = motors_of(mech, "computed_torque", actuated)
    law = ComputedTorqueLaw(mech.nq + 2 * mech.nv, gains(mech, "kp", kp), gains(mech, "kd", kd), motors)
    return CompiledControl(mech, law, joint_reference(mech, reference))
