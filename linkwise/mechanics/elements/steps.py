"""Steps in time of a mechanism on which elements act: their laws are evaluated in every stage of the method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..algorithms.closed_dynamics import ClosedMotion
from ..algorithms.closed_projection import SETTLED
from ..algorithms.configuration import kick_bias
from ..algorithms.integration import Method, Splitting, Vector, advanced, closed_advanced
from ..algorithms.resisted_dynamics import (
    Resistances,
    resisted_forward_dynamics,
    with_resisting_joints,
)
from ..algorithms.steps_in_variables import Flow, ForcesAt, Partitioned, Variables, advanced_from
from ..algorithms.steps_in_variables import advanced as advanced_in
from ..links.loop_elimination import Fronts
from ..recursions.tree import Tree
from ..scalar import Scalar, select
from .law import Acting, Implicitly


def acting_step(
    method: Method,
    acting: Acting,
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    dt: Scalar,
    wrenches: Any,
    ctrl: Vector,
    activation: Vector,
) -> Vector:
    """(nq + nv + n_activation,): q, v and activations after dt.  ``tau``, ``wrenches`` and ``ctrl`` are constant during
    the step."""

    def motion(q: Sequence[Scalar], v: Vector, forces: Vector, pushes: Any, resistances: Resistances) -> Vector:
        return resisted_forward_dynamics(tree, q, v, forces, pushes, resistances)

    accelerations = _rates(acting, tree, tau, wrenches, ctrl, motion, _implicitly(method, dt))
    return advanced(method, tree, q, v, dt, accelerations, activation)


def implicit_share(method: Method | Partitioned) -> float | None:
    """The share of a step that its one change of velocities takes, in which laws may be implicit; None where a method
    has several: what they add up to depends on them being explicit."""
    return sum(method.kicks) if isinstance(method, Splitting) and method.evaluations == 1 else None


def _implicitly(method: Method, dt: Any) -> Implicitly | None:
    """Steps back in time, in which damping feeds energy, are explicit: their length counts as zero."""
    share = implicit_share(method)
    if share is None:
        return None
    length = share * (dt.item() if hasattr(dt, "item") else dt)
    return Implicitly(select(0.0 < length, length, 0.0))


def closed_acting_step(
    method: Method,
    acting: Acting,
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    dt: Scalar,
    wrenches: Any,
    ctrl: Vector,
    activation: Vector,
    *,
    fronts: Fronts,
    settled: float = SETTLED,
) -> tuple[Vector, Scalar, Scalar]:
    """The same with loops closed, and how far it can be relied on: see ``integration.closed_step``."""
    stages: list[ClosedMotion] = []

    def motion(q: Sequence[Scalar], v: Vector, forces: Vector, pushes: Any, resistances: Resistances) -> Vector:
        resisting = with_resisting_joints(tree, resistances)
        stages.append(ClosedMotion(resisting, q, v, pushes, fronts, resistances.links))
        return stages[-1].under(forces)

    accelerations = _rates(acting, tree, tau, wrenches, ctrl, motion, _implicitly(method, dt))
    return closed_advanced(method, tree, q, v, dt, accelerations, stages, fronts, settled, activation)


def acting_step_in(
    variables: Variables,
    method: Method | Partitioned,
    acting: Acting,
    tree: Tree,
    q: Vector,
    v: Vector,
    tau: Vector,
    dt: Scalar,
    wrenches: Any,
    ctrl: Vector,
    activation: Vector,
) -> Vector:
    """``acting_step`` in other variables than joint velocities (``steps_in_variables.advanced``); all that acts is
    explicit."""
    forces = _explicit_forces(acting, tree, tau, wrenches, ctrl)
    return advanced_in(method, variables, tree, q, v, dt, forces, activation)


def acting_step_from(
    start: Flow,
    variables: Variables,
    method: Method | Partitioned,
    acting: Acting,
    tree: Tree,
    q: Vector,
    tau: Vector,
    dt: Scalar,
    wrenches: Any,
    ctrl: Vector,
    activation: Vector,
) -> tuple[Vector, Vector, Vector]:
    """The same from the variables of its start to those of its end: q, these, and activations after dt."""
    forces = _explicit_forces(acting, tree, tau, wrenches, ctrl)
    return advanced_from(start, method, variables, tree, q, dt, forces, activation)


def _explicit_forces(acting: Acting, tree: Tree, tau: Vector, wrenches: Any, ctrl: Vector) -> ForcesAt:
    def forces(q: Vector, v: Vector, activation: Vector) -> tuple[Vector, Any, Vector]:
        found = acting.forces(tree, q, v, ctrl, activation)
        own = [x + y for x, y in zip(tau, found.joint_forces, strict=True)]
        return own, _together(wrenches, found.wrenches), found.rates

    return forces


def _rates(
    acting: Acting,
    tree: Tree,
    tau: Sequence[Scalar],
    wrenches: Any,
    ctrl: Sequence[Scalar],
    motion: Callable[..., Any],
    implicitly: Implicitly | None,
) -> Callable[..., Vector]:
    """Accelerations and rates of activations at (q, v, activations); where laws ask for it, of steps solved once more
    with the velocities that the step before has reached."""
    again = implicitly is not None and any(law.corrects_steps(tree.mechanism) for law in acting.laws)

    def solved(
        q: Sequence[Scalar], v: Vector, activation: Vector, implicitly: Implicitly | None
    ) -> tuple[Vector, Vector]:
        found = acting.forces(tree, q, v, ctrl, activation, implicitly=implicitly)
        forces = [x + y for x, y in zip(tau, found.joint_forces, strict=True)]
        return motion(q, v, forces, _together(wrenches, found.wrenches), found.resistances), found.rates

    def rates(q: Sequence[Scalar], v: Vector, activation: Vector) -> Vector:
        accelerations, changes = solved(q, v, activation, implicitly)
        if implicitly is not None and again:
            bias = kick_bias(tree, v)
            reached = [x + implicitly.step * (a + k) for x, a, k in zip(v, accelerations, bias, strict=True)]
            accelerations, changes = solved(q, v, activation, implicitly._replace(reached=reached))
        return [*accelerations, *changes]

    return rates


def _together(given: Any, added: list[list[Scalar]] | None) -> Any:
    """(n_links, 6) or None: wrenches from outside and of laws."""
    if given is None or added is None:
        return given if added is None else added
    return [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(given, added, strict=True)]
