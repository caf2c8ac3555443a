"""Actions of the pick-off operators at a link, a welded frame or the ground (see ``actions.py``)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..spatial import Force, Motion
from .record import Action, Step
from .values import plus

if TYPE_CHECKING:
    from .evaluate import Evaluation

# -- one link -------------------------------------------------------------------------------------------


def _place(run: Evaluation, step: Step, i: int) -> Force | None:
    body, transform = run.at.to_frame(step.name)
    force = run.input(step, "x", -1)
    return transform.force_back(force) if body == i and force is not None else None


def _pick(run: Evaluation, step: Step, i: int) -> Motion | None:
    body, transform = run.at.to_frame(step.name)
    motion = run.input(step, "x", body) if body >= 0 else None
    return None if motion is None else transform.motion_into(motion)


def _impose(run: Evaluation, step: Step, i: int) -> Motion | None:
    body, transform = run.at.to_frame(step.name)
    motion = run.input(step, "x", -1)
    return transform.motion_back(motion) if body == i and motion is not None else None


def _force_on(run: Evaluation, step: Step, i: int) -> Force | None:
    body, transform = run.at.to_frame(step.name)
    force = run.input(step, "x", body) if body >= 0 else None
    return None if force is None else transform.force_into(force)


B = Action("B", _place)
B_ADJOINT = Action("B.T", _pick)
A = Action("A", _impose)
A_ADJOINT = Action("A.T", _force_on)

# -- the ground -----------------------------------------------------------------------------------------


def _ground_force(run: Evaluation, step: Step, i: int) -> Force | None:
    total = None
    for k, link in enumerate(run.at.tree.links):
        if link.parent < 0:
            force = run.input(step, "x", k)
            moved = None if force is None else run.at.joint_kinematics[k].transform.force_back(force)
            total = plus(total, moved)
    return total


def _ground_motion(run: Evaluation, step: Step, i: int) -> Motion | None:
    motion = run.input(step, "x", -1) if run.at.tree.links[i].parent < 0 else None
    return None if motion is None else run.at.joint_kinematics[i].transform.motion_into(motion)


W = Action("W", _ground_force)
W_ADJOINT = Action("W.T", _ground_motion)
