"""Steps in time of a mechanism on which elements act: their laws are evaluated in every stage of the method."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..algorithms.configuration import kick_bias
from ..algorithms.constrained_steps import ConstrainedStep
from ..algorithms.integration import Method, Splitting, Vector, advanced
from ..algorithms.resisted_dynamics import Resistances, resisted_forward_dynamics
from ..algorithms.steps_in_variables import Flow, ForcesAt, Partitioned, StepInVariables, Variables
from ..recursions.tree import Tree
from ..scalar import Scalar, select
from .law import Acting, Implicitly

Motion = Callable[[Sequence[Scalar], Vector, Vector, Any, Resistances, float], Vector]


class Start(NamedTuple):
    """State at the start of a step, and the inputs, constant during the step.

    q, v, activation       the state; activations of actuators that have states of their own
    tau, wrenches, ctrl    joint forces, wrenches on links or None, control inputs of actuators
    """

    q: Vector
    v: Vector
    tau: Vector
    dt: Any
    wrenches: Any = None
    ctrl: Sequence[Scalar] = ()
    activation: Sequence[Scalar] = ()


def implicit_share(method: Method | Partitioned) -> float | None:
    """The fraction of a step of its single velocity update, in which laws may be implicit; None if a method has
    several, whose combination assumes explicit forces.
    """
    return sum(method.kicks) if isinstance(method, Splitting) and method.evaluations == 1 else None


@dataclass(frozen=True)
class ActingStep:
    """Steps of a method under force elements: (nq + nv + n_activation,), q, v and activations after dt."""

    method: Any
    acting: Acting

    def of_tree(self, tree: Tree, start: Start) -> Vector:
        """In joint velocities, constraints ignored."""

        def motion(
            q: Sequence[Scalar], v: Vector, forces: Vector, pushes: Any, resistances: Resistances, _: float
        ) -> Vector:
            return resisted_forward_dynamics(tree, q, v, forces, pushes, resistances)

        return advanced(
            self.method, tree, start.q, start.v, start.dt, self._rates(tree, start, motion), start.activation
        )

    def within(self, constraints: ConstrainedStep, start: Start) -> tuple[Vector, Scalar, Scalar]:
        """In joint velocities, within constraints; and how far it can be relied on (``ConstrainedStep.end``)."""
        rates = self._rates(constraints.tree, start, constraints.accelerations)
        state = start.q, constraints.v
        reached = advanced(self.method, constraints.tree, *state, start.dt, rates, start.activation)
        return constraints.end(self.method, reached, start.dt)

    def in_variables(self, variables: Variables, tree: Tree, start: Start) -> Vector:
        """In other variables than joint velocities; all that acts is explicit."""
        rule = StepInVariables(self.method, variables, tree, self._explicit_forces(tree, start))
        return rule.advanced(start.q, start.v, start.dt, start.activation)

    def from_flow(self, flow: Flow, variables: Variables, tree: Tree, start: Start) -> tuple[Vector, Vector, Vector]:
        """Variables and activations after dt, from the variables at the start (``flow``)."""
        rule = StepInVariables(self.method, variables, tree, self._explicit_forces(tree, start))
        return rule.advanced_from(flow, start.q, start.dt, start.activation)

    def _explicit_forces(self, tree: Tree, start: Start) -> ForcesAt:
        def forces(q: Vector, v: Vector, activation: Vector) -> tuple[Vector, Any, Vector]:
            acting = self.acting.forces(tree, q, v, start.ctrl, activation)
            joint_forces = [x + y for x, y in zip(start.tau, acting.joint_forces, strict=True)]
            return joint_forces, _together(start.wrenches, acting.wrenches), acting.rates

        return forces

    def _implicitly(self, dt: Any) -> Implicitly | None:
        """Steps back in time, in which damping feeds energy, are explicit: their length counts as zero."""
        share = implicit_share(self.method)
        if share is None:
            return None
        length = share * (dt.item() if hasattr(dt, "item") else dt)
        return Implicitly(select(0.0 < length, length, 0.0))

    def _rates(self, tree: Tree, start: Start, motion: Motion) -> Callable[..., Vector]:
        """Accelerations and rates of activations at (q, v, activations); where laws ask for it, of steps solved once
        more with the velocities that the step before has reached."""
        implicitly = self._implicitly(start.dt)
        again = implicitly is not None and any(law.corrects_steps(tree.mechanism) for law in self.acting.laws)

        def solved(
            q: Sequence[Scalar], v: Vector, activation: Vector, c: float, implicitly: Implicitly | None
        ) -> tuple[Vector, Vector]:
            acting = self.acting.forces(tree, q, v, start.ctrl, activation, implicitly=implicitly)
            forces = [x + y for x, y in zip(start.tau, acting.joint_forces, strict=True)]
            return motion(q, v, forces, _together(start.wrenches, acting.wrenches), acting.resistances, c), acting.rates

        def rates(q: Sequence[Scalar], v: Vector, activation: Vector, c: float) -> Vector:
            accelerations, changes = solved(q, v, activation, c, implicitly)
            if implicitly is not None and again:
                bias = kick_bias(tree, v)
                reached = [x + implicitly.step * (a + k) for x, a, k in zip(v, accelerations, bias, strict=True)]
                accelerations, changes = solved(q, v, activation, c, implicitly._replace(reached=reached))
            return [*accelerations, *changes]

        return rates


def _together(wrenches: Any, added: list[list[Scalar]] | None) -> Any:
    """(n_links, 6) or None: wrenches from outside and of laws."""
    if wrenches is None or added is None:
        return wrenches if added is None else added
    return [[x + y for x, y in zip(*rows, strict=True)] for rows in zip(wrenches, added, strict=True)]
