"""From an expression applied to vectors to steps: the computation at each link, and its direction.

A step is one operator at work: local to a link, or a recursion over the links.  Every step's inputs are weighted sums
of other steps.  Operators that one joint transition can perform together are fused (``actions.py``).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..recursions.schedule import Sweep, schedule
from . import actions, rotations
from .algebra import CONVECTIVE, LOOP_BIAS, H, phi
from .expression import Bias, Covector, Expression, Factored, Identity, Operator, Product, Sum, Vector
from .record import Action, Combination, Step, one, weighted_sum
from .spaces import Space


class StepBuilder:
    """Makes the steps of expressions with expanded inverses and abbreviations; equal steps are made once."""

    def __init__(self) -> None:
        self._made: list[Step] = []  # inputs first
        self._known: dict[tuple, Step] = {}

    # -- expressions ----------------------------------------------------------------------------------

    def of(self, expression: Expression) -> Combination:
        """The steps of a vector-valued expression."""
        return self.fused(self._value(expression))

    def steps_for(self, value: Combination) -> tuple[Step, ...]:
        """The steps that ``value`` needs, inputs first; without steps that were fused into others."""
        needed: set[Step] = set()
        stack = [step for step, _ in value]
        while stack:
            step = stack.pop()
            if step not in needed:
                needed.add(step)
                stack.extend(step.dependencies())
        return tuple(step for step in self._made if step in needed)

    def _value(self, expression: Expression) -> Combination:
        match expression:
            case Vector(name=name, codomain=space):
                return one(self.step(actions.INPUT, space, name=name))
            case Bias():
                return one(self._bias(expression))
            case Sum(terms=terms):
                return weighted_sum((w, self._value(t)) for w, t in terms)
            case Product(factors=factors):
                value = self._value(factors[-1])
                for factor in reversed(factors[:-1]):
                    value = self._apply(factor, value)
                return value
            case _:
                raise TypeError(f"{expression} is no vector")

    def _apply(self, operator: Expression, value: Combination) -> Combination:
        if not value:
            return ()
        match operator:
            case Identity():
                return value
            case Sum(terms=terms):
                return weighted_sum((w, self._apply(t, value)) for w, t in terms)
            case Product(factors=factors):
                for factor in reversed(factors):
                    value = self._apply(factor, value)
                return value
            case Factored():
                return one(self.step(actions.SOLVE, operator.codomain, {"x": self.fused(value)}, factored=operator))
            case Covector(vector=vector):
                inputs = {"x": self.fused(value), "row": self._value(vector)}
                return one(self.step(actions.DOT, operator.codomain, inputs))
            case Vector() | Bias():
                inputs = {"x": value, "v": self._value(operator)}
                return one(self.step(actions.SCALE, operator.codomain, inputs))
            case Operator():
                return one(self._operator(operator, value))
        raise TypeError(f"{operator} cannot be applied to a vector")

    def _operator(self, operator: Operator, value: Combination) -> Step:
        action = operator.record.action(operator.adjoint)
        self._needed(action)
        if action.join is not None:
            return action.join(self, action, operator.codomain, value)
        return self.step(action, operator.codomain, {"x": self.fused(value)}, name=operator.link)

    def _bias(self, bias: Bias) -> Step:
        action = bias.record.action(False)
        if bias.of is None:
            return self.step(action, bias.codomain)
        uses: tuple[Step, ...] = ()
        if bias.record is not CONVECTIVE:
            uses = (self.step(rotations.ANGULAR_VELOCITY, None, {"v": self._value(bias.of)}),)
        if action is rotations.REFERENCE_ACCELERATION:
            uses = (self.step(rotations.REFERENCE, None, uses=uses),)
        if bias.record not in (CONVECTIVE, LOOP_BIAS):
            return self.step(action, bias.codomain, uses=uses)
        velocities = self._apply(phi.T, self._apply(H.T, self._value(bias.of)))
        return self.step(action, bias.codomain, {"V": velocities}, uses)

    # -- sums and steps -------------------------------------------------------------------------------

    def fused(self, value: Combination) -> Combination:
        """Join E_phi* x + a, M x + b and y - G* x."""
        steps = {step.action: (step, weight) for step, weight in value}
        bias, across, ground = actions.BIAS_ACCELERATION, actions.E_PHI_ADJOINT, actions.GRAVITY
        if bias in steps and across in steps and steps[bias][1] == steps[across][1] == 1.0:
            (moved, _), (biased, _) = steps[across], steps[bias]
            grounded = ground in steps and steps[ground][1] == 1.0
            absorbed = frozenset({bias, ground} if grounded else {bias})
            joined = self.step(actions.PROPAGATION, moved.space, moved.inputs, biased.uses, absorbed=absorbed)
            value = _replace(value, (moved, biased, *((steps[ground][0],) if grounded else ())), joined)
        if actions.BIAS_FORCE in steps and actions.M in steps:
            (gyroscopic, weight), (inertial, other) = steps[actions.BIAS_FORCE], steps[actions.M]
            if weight == other == 1.0:
                joined = self.step(actions.INERTIAL_FORCE, inertial.space, inertial.inputs, gyroscopic.uses)
                value = _replace(value, (inertial, gyroscopic), joined)
        if actions.G_ADJOINT in steps and steps[actions.G_ADJOINT][1] == -1.0:
            gained = steps[actions.G_ADJOINT][0]
            before = tuple(
                (s, w) for s, w in value if s.action not in (actions.G_ADJOINT, rotations.REFERENCE_ACCELERATION)
            )
            if before:
                joined = self.step(actions.RATES, gained.space, {"y": before, "x": gained.inputs["x"]})
                value = _replace(value, (gained, *(step for step, _ in before)), joined)
        return value

    def step(
        self,
        action: Action,
        space: Space | None,
        inputs: dict[str, Combination] | None = None,
        uses: tuple[Step, ...] = (),
        name: str = "",
        absorbed: frozenset[Action] = frozenset(),
        factored: Factored | None = None,
    ) -> Step:
        """The step with these inputs; tree-wide data that its action needs is recorded in ``uses``."""
        uses = (*self._needed(action), *uses)
        inputs = {role: value for role, value in (inputs or {}).items() if value}
        roles = tuple((role, tuple((id(s), w) for s, w in value)) for role, value in sorted(inputs.items()))
        key = (action, space, roles, tuple(map(id, uses)), name, absorbed, factored)
        if key not in self._known:
            self._known[key] = Step(action, space, inputs, uses, name, absorbed, factored)
            self._made.append(self._known[key])
        return self._known[key]

    def _needed(self, action: Action) -> tuple[Step, ...]:
        return tuple(self.step(need, None) for need in action.needs)


def _replace(value: Combination, old: tuple[Step, ...], new: Step) -> Combination:
    return (*((s, w) for s, w in value if s not in old), (new, 1.0))


def fuse_sweeps(steps: Sequence[Step]) -> tuple[Sweep[Step], ...]:
    """The fused sweeps in which the steps run."""
    return tuple(schedule(steps, Step.dependencies, lambda step: step.direction))


def sweep_name(sweep: Sweep[Step]) -> str:
    """A name for the result of a sweep."""
    return ", ".join(dict.fromkeys(step.action.shown for step in sweep.tasks))


def regroupable_steps(steps: Sequence[Step], value: Combination) -> frozenset[Step]:
    """The steps M x, M x + b and C x with motions from joints only, whose forces are only projected onto joints.

    For these, part of every link's inertia may be assigned to the parent (``Joint.regroupable``, the base parameters of
    identification): for such motions H phi f, and by jain1995 (B.1) H psi f too, are the same for regrouped inertias.
    Articulated inertias are not regrouped.  Regrouped ones would have the same D and G for fewer operations, but be
    indefinite: forward dynamics of an ill-conditioned humanoid (icub) would lose two digits.
    """
    consumers: dict[Step, list[tuple[Step | None, str]]] = {}
    for step in steps:
        for role, combination in step.inputs.items():
            for used, _ in combination:
                consumers.setdefault(used, []).append((step, role))
    for used, _ in value:
        consumers.setdefault(used, []).append((None, "result"))

    def only_projected(step: Step) -> bool:
        return all(user is not None and user.action is actions.H for user, _ in consumers.get(step, ()))

    def only_on_joints(step: Step) -> bool:
        return all(
            user is not None and user.action in (actions.PHI, actions.PSI) and role == "x" and only_projected(user)
            for user, role in consumers.get(step, ())
        )

    return frozenset(step for step in steps if _moved_by_joints(step) and only_on_joints(step))


def _moved_by_joints(step: Step) -> bool:
    """Whether the step is M x, M x + b or C x of motions phi* H* y, with velocity biases in all terms or none."""
    sources = step.inputs.get("x", ())
    if step.action is actions.M:
        return all(_joint_motion(source, biased=False) for source, _ in sources)
    if step.action is actions.COMPOSITE:
        return all(source.action is actions.H_ADJOINT for source, _ in sources)
    if step.action is actions.INERTIAL_FORCE:
        motions = [(w, _joint_motion(source, biased=True), source.uses[-1:]) for source, w in sources]
        return motions == [(1.0, True, step.uses)]
    return False


def _joint_motion(step: Step, biased: bool) -> bool:
    """Whether the step is phi* (H* x), with the bias acceleration a included if ``biased`` and excluded otherwise."""
    made_by_joints = all(source.action is actions.H_ADJOINT for source, _ in step.inputs.get("x", ()))
    is_biased = actions.BIAS_ACCELERATION in step.absorbed
    return step.action is actions.PHI_ADJOINT and made_by_joints and "w" not in step.inputs and is_biased == biased
