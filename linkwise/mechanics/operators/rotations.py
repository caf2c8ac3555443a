"""Angular velocities of the links and derived biases: one base-to-tip recursion each."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..links.kinematics import AngularVelocity, Reference, angular_velocity_base_to_tip, reference_base_to_tip
from ..recursions.schedule import BASE_TO_TIP
from ..spatial.three import ZERO
from .record import Action, Step

if TYPE_CHECKING:
    from .evaluate import Evaluation


def _angular_velocity(run: Evaluation, step: Step, i: int) -> AngularVelocity:
    omega = run.from_parent(step, i, lambda p: run.value(step, p).omega) or ZERO
    rates = run.input(step, "v", i)
    return angular_velocity_base_to_tip(run.at.joint_kinematics[i], omega, run.at.coordinates[i], rates)


ANGULAR_VELOCITY = Action(
    "spin",
    _angular_velocity,
    BASE_TO_TIP,
    "omega_i = X_i omega_parent + H_i* v_i, and the biases a_i, b_i",
    "omega rotated into the link's axes",
    "angular velocities",
)


def angular_velocity(run: Evaluation, step: Step, i: int) -> AngularVelocity:
    return next(run.value(use, i) for use in step.uses if use.action is ANGULAR_VELOCITY)


def _reference(run: Evaluation, step: Step, i: int) -> Reference:
    alpha = run.from_parent(step, i, lambda p: run.value(step, p).alpha) or ZERO
    return reference_base_to_tip(run.at.joint_kinematics[i], angular_velocity(run, step, i), alpha)


REFERENCE = Action(
    "reference",
    _reference,
    BASE_TO_TIP,
    "alpha_i = X_i alpha_parent + a_i + H_i* r_i, zero about the joint's own axes",
    "alpha rotated into the link's axes",
    "reference accelerations",
)

REFERENCE_ACCELERATION = Action(
    "r", lambda run, step, i: next(run.value(use, i) for use in step.uses if use.action is REFERENCE).rates
)
