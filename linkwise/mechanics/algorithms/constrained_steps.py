"""Time steps with constraints: all of them by elimination, or scheduled ones by multipliers.

A step under a schedule, ``active``, begins with the impact of its active constraints: velocities jump by v+ - v = -M^-1
G* (G M^-1 G*)^+ G v, as in ``lw.contact.impact``.  Constraints that were active in the step before have G v = 0
already, so only newly engaged ones cause a change; released ones have no effect.

Feet and hands (``holds_where_it_engages``) are anchored at their pose at the start of a step.  While one holds, every
step ends with it there, so that the anchor is where it engaged: a lifted foot may be put down elsewhere.  Other
constraints close as defined in the mechanism.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from ...mechanism import Constraint, Loop, Mechanism
from ..joints import Joint
from ..links.loop_elimination import Fronts
from ..recursions.loops import walk
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from .algorithm import SOLVES_CONSTRAINED, Algorithm, register
from .closed_dynamics import CLOSED, CLUSTERS, FAR, ClosedMotion, reject_open
from .closed_projection import PASSES, SETTLED, project, project_active, zero_unless_positive
from .contact_dynamics import HeldMotion, Impact
from .integration import METHODS, STEP, Method, Tableau, Vector, advanced
from .resisted_dynamics import Resistances, with_resisting_joints

NO_RESISTANCES = Resistances({}, {})


class ConstrainedStep:
    """A time step with constraints.

    tree     the tree of the step: scheduled contacts are anchored at their present pose
    v        the initial velocities, after the impact of newly engaged constraints
    active   (number of loops,): 1 for active, 0 for inactive; None: all are active throughout
    settled  the largest last correction of positions, in radians and sizes of loops
    drives   by moment of the step (``Method.moments``), each drive's prescribed (position, velocity, acceleration);
             None: the values of ``tree``, at all moments
    """

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        active: Sequence[Scalar] | None,
        fronts: Fronts,
        settled: float = SETTLED,
        drives: Mapping[float, Sequence[Sequence[Scalar]]] | None = None,
    ):
        self._drives = drives
        tree = self._at(tree, 0.0)
        self.tree, self.v, self.active = tree, list(v), None if active is None else list(active)
        self._fronts, self._settled = fronts, settled
        self._stages: list[ClosedMotion] = []
        self._doubt: list[Scalar] = []
        self._open: list[Scalar] = []
        if self.active is not None:
            self.tree = anchored(tree, q)
            self._open = _open_errors(self.tree, q, self.active)
            impact = Impact(self.tree, q, v, self.active, fronts.units)
            self._doubt.append(impact.doubt)
            self.v = [x + jump for x, jump in zip(v, impact.jumps, strict=True)]

    def accelerations(
        self,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        tau: Sequence[Scalar],
        wrenches: Any = None,
        resistances: Resistances = NO_RESISTANCES,
        c: float = 0.0,
    ) -> Vector:
        """(nv,): accelerations of one stage, after the part c of the step."""
        tree, units = with_resisting_joints(self._at(self.tree, c), resistances), self._fronts.units
        if self.active is None:
            self._stages.append(ClosedMotion(tree, q, v, wrenches, self._fronts, resistances.links))
            return self._stages[-1].under(tau)
        held = HeldMotion(tree, q, v, wrenches, self.active, units, resistances=resistances.links)
        accelerations = held.under(tau)
        self._doubt.append(held.doubt)
        return accelerations

    def end(self, method: Method, reached: Sequence[Scalar], dt: Any) -> tuple[Vector, Scalar, Scalar]:
        """The final state, its reliability, and a distance from singular positions.

        The state has its constraints closed; entries after (nq + nv,) in ``reached`` are unchanged.  The reliability is
        above 1 if the step is reliable; otherwise it was too long to close loops, or too near a singular position.  The
        distance is the square of approximately the fewest such steps to a singular position; it is not computed under a
        schedule.
        """
        mechanism = self.tree.mechanism
        ends = mechanism.nq, mechanism.nq + mechanism.nv
        q, v, more = reached[: ends[0]], reached[ends[0] : ends[1]], reached[ends[1] :]
        tree = self._at(self.tree, 1.0)
        passes = PASSES if isinstance(method, Tableau) and method.order > 2 else PASSES + 1
        if self.active is not None:
            projected = project_active(tree, q, v, self.active, self._fronts.units, (self._settled, passes))
            margins = [*(1.0 - doubt for doubt in self._doubt), *projected.margins]
            reliability = reject_open(self._fronts.units, self._open, zero_unless_positive(margins, 2.0), CLOSED)
            return [*projected.q, *projected.v, *more], reliability, FAR**2
        # The last stage of a tableau is near the end, and its loops are eliminated already.
        nearby = self._stages[-1].rows if isinstance(method, Tableau) else None
        projected = project(tree, q, v, self._fronts, self._settled, passes, nearby)
        margins = [*(margin for stage in self._stages for margin in stage.margins), *projected.margins]
        reliability, length = zero_unless_positive(margins, 2.0), dt.item() if hasattr(dt, "item") else dt
        return [*projected.q, *projected.v, *more], reliability, self._stages[0].steps_to_singular(self.v, length)

    def _at(self, tree: Tree, c: float) -> Tree:
        """The tree with prescribed motions at the part c of the step."""
        if self._drives is None:
            return tree
        known = min(self._drives, key=lambda moment: abs(moment - c))
        driven = tree.mechanism.constraints.driven
        return dataclasses.replace(tree, drives=dict(zip(driven, map(list, self._drives[known]), strict=True)))


def anchored(tree: Tree, q: Sequence[Scalar]) -> Tree:
    """The tree with feet and hands anchored at their pose at q."""
    mechanism, sides = tree.mechanism, dict(tree.sides)
    numbers = [k for k, loop in enumerate(mechanism.loops) if holds_where_it_engages(mechanism, loop)]
    free = dataclasses.replace(tree, sides=sides | {("pose_a", k): np.eye(4) for k in numbers})
    at = Configuration(free, q)
    for k in numbers:
        loop = tree.mechanism.loops[k]
        assert isinstance(loop, Loop)
        rotation, position = walk(free, at.joint_kinematics, loop).end
        axes = np.array(loop.kind.alignment, dtype=float)  # both sides of the pose are in the axes of the joint
        pose = np.full((4, 4), 0.0, dtype=object)
        pose[:3, :3] = axes @ np.array([[*row] for row in rotation], dtype=object) @ axes.T
        pose[:3, 3] = axes @ np.array([*position], dtype=object)
        pose[3, 3] = 1.0
        sides["pose_a", k] = pose
    return dataclasses.replace(tree, sides=sides)


def holds_where_it_engages(mechanism: Mechanism, loop: Constraint) -> bool:
    """Whether a scheduled constraint holds a point or frame at its pose on engagement: ball and fixed joints on the
    ground (side A), and contacts of ``hold_contacts``."""
    if not isinstance(loop, Loop) or not isinstance(loop.kind, Joint) or (loop.kind.nv and not loop.kind.is_ball):
        return False
    return loop.holds_frame or mechanism.frame(loop.link_a).body < 0


def _open_errors(tree: Tree, q: Sequence[Scalar], active: Sequence[Scalar]) -> list[Scalar]:
    """(m,): closure errors of active constraints that are not anchored at their present pose."""
    errors: list[Scalar] = []
    for path, on in zip(Configuration(tree, q).ways, active, strict=True):
        is_anchored = holds_where_it_engages(tree.mechanism, path.loop)
        errors += [0.0 if is_anchored else x * on for x in path.closure()]
    return errors


def closed_step(
    method: Method, tree: Tree, q, v, tau, dt, wrenches=None, active=None, *, fronts: Fronts, settled: float = SETTLED
) -> tuple[Vector, Scalar, Scalar]:
    """(nq + nv,), () and (): q and v after dt, loops closed; the reliability: above 1 if reliable, otherwise the step
    was too long to close loops, or too near a singular position for the elimination; and the square of approximately
    the fewest such steps to a singular position: a small number means that steps do not resolve the motion.

    With ``active``, constraints with number 1 hold, after an impact of newly engaged ones; feet and hands are anchored
    at their present pose.
    """
    step = ConstrainedStep(tree, q, v, active, fronts, settled)
    reached = advanced(method, step.tree, q, step.v, dt, lambda q, v, *_: step.accelerations(q, v, tau, wrenches))
    return step.end(method, reached, dt)


def register_constrained_steps(name: str, method: Method) -> None:
    """Register the steps of a method for mechanisms with constraints."""
    register(
        Algorithm(
            f"closed_{name}_step",
            STEP,
            ("state", "reliability", "steps_to_singular"),
            partial(closed_step, method),
            ("fronts", "settled"),
            reason=CLUSTERS,
            ports=("wrenches", "active"),
            requires=SOLVES_CONSTRAINED,
        )
    )


for _name, _method in METHODS.items():
    register_constrained_steps(_name, _method)
