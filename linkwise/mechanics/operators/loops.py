"""Actions of the operators at loops (see ``actions.py``): maps from motions of links to rates of the loop constraints.

A loop depends on the motion of its side B relative to its side A.  Joints inward of both sides do not enter: L phi* and
phi L* are therefore computed along the path from A to B (``recursions/loops.py``), not by a sweep over all links.
Couplings of joints are among the loops: they depend on the motion of a link relative to its parent, along the joint.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from ..recursions.loops import Tie, Walk, label_loop
from ..scalar import Scalar
from ..spatial import ZERO, Force, Motion
from ..spatial.motion import NO_MOTION
from .actions import PHI_ADJOINT, bias_acceleration
from .record import Action, Combination, Step, weighted_sum
from .spaces import Space
from .values import plus

if TYPE_CHECKING:
    from .evaluate import Evaluation
    from .steps import StepBuilder


def _rates(by_joints: bool) -> Callable[[Evaluation, Step, int], list[Scalar] | None]:
    """Rates of the loops from motions that joints add, or from motions of the links."""

    def compute(run: Evaluation, step: Step, i: int) -> list[Scalar] | None:
        rates: list[Scalar] = [0.0] * run.at.tree.mechanism.n_constraints
        moved = False
        for path in run.at.ways:
            moving = ((link, run.input(step, "x", link)) for link in path.links(by_joints))
            motions = {link: motion for link, motion in moving if motion is not None}
            if not motions:
                continue
            with label_loop(path.loop):
                relative = path.rates(motions, by_joints)
            if relative is not None:
                rates[path.rows], moved = relative, True
        return rates if moved else None

    return compute


def _forces(by_joints: bool) -> Callable[[Evaluation, Step, int], Force | None]:
    """Forces of multipliers at joints, or on the links."""

    def compute(run: Evaluation, step: Step, i: int) -> Force | None:
        multipliers, total = run.input(step, "x", -1), None
        for path in run.at.ways if multipliers is not None else ():
            with label_loop(path.loop):
                total = plus(total, path.force_on(i, multipliers[path.rows], by_joints))
        return total

    return compute


def _join_rates(build: StepBuilder, action: Action, space: Space, value: Combination) -> Step:
    """L phi* x along the loops, if x is the only input of phi*."""
    if all(step.action is PHI_ADJOINT and not step.absorbed and "w" not in step.inputs for step, _ in value):
        value = weighted_sum((weight, step.inputs.get("x", ())) for step, weight in value)
        action = L_PHI
    return build.step(action, space, {"x": build.fused(value)})


def _bias(run: Evaluation, step: Step, i: int) -> list[Scalar]:
    """Second derivatives of the loops for link velocities V without accelerations."""
    rates: list[Scalar] = []
    for path in run.at.ways:
        if isinstance(path, Tie):
            biases = {link: bias_acceleration(run, step, link) for link in path.links(by_joints=True)}
            seen = ((link, run.input(step, "V", link)) for link in path.links(by_joints=False))
            moving = {link: motion for link, motion in seen if motion is not None}
            rates += [x - path.aim.acceleration for x in path.curvature(biases, moving)]
            continue
        velocities = [run.input(step, "V", side.link) or NO_MOTION for side in path.sides]
        with label_loop(path.loop):
            rates += [x - path.aim.acceleration for x in _curvature(path, velocities)]
    return rates


def _curvature(walk: Walk, velocities: Sequence[Motion]) -> list[Scalar]:
    """The second derivative of one loop's closure, for given velocities of its sides.

    Along the axes of A, which rotate, the components of the relative velocity [w_B - w_A; u] change at
    [-w_A x (w_B - w_A); w_B x (w_B x r_B) - w_A x (w_A x r_A) - 2 w_A x u], with r from the links' origins to B's.
    """
    relative, centripetal, spin = NO_MOTION, ZERO, ZERO
    for side, velocity in zip(walk.sides, velocities, strict=True):
        rotation, position = side.pose
        omega = rotation @ velocity.angular
        relative = relative + walk.relative_motion(side, velocity)
        centripetal = centripetal + omega.cross(omega.cross(walk.end[1] - position)) * side.sense
        spin = omega if side.sense < 0.0 else spin
    rotating = spin.cross(relative.angular) * -1.0
    return walk.curvature(relative, Motion(rotating, centripetal - spin.cross(relative.linear) * 2.0))


L_PHI = Action(
    "L phi.T",
    _rates(by_joints=True),
    recursion="rates of a loop from the motions x_i that joints on the way from side A to side B add",
    transition="x_i moved to B's origin, along A's axes",
)
L = Action(
    "L",
    _rates(by_joints=False),
    recursion="rates of a loop from the motions of the links that carry its sides",
    transition="a side's motion moved to B's origin, along A's axes",
    join=_join_rates,
)
PHI_L = Action(
    "phi L.T",
    _forces(by_joints=True),
    recursion="forces that a loop's multipliers cause at joints on the way from side A to side B",
    transition="the force at B's origin moved to link i",
)
L_ADJOINT = Action(
    "L.T",
    _forces(by_joints=False),
    recursion="forces of a loop's multipliers on the links that carry its sides",
    transition="the force at B's origin moved to the side's link",
    with_phi=PHI_L,
)
BIAS = Action(
    "gamma",
    _bias,
    recursion="second derivatives of a loop from the velocities of the links that carry its sides",
)
