"""Records of operators: definition (record), action at a link, and step in a plan.

A record holds everything except the dense matrix, which the oracle derives independently from the papers' definitions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from .spaces import Space, SpaceError

if TYPE_CHECKING:
    from .evaluate import Evaluation
    from .expression import Expression, Factored
    from .steps import StepBuilder


@dataclass(frozen=True, eq=False)
class Action:
    """The action of an operator or its adjoint at one link.

    name         as printed in expressions: "phi", "phi.T"
    compute      the value at link i of a step, from the values of its inputs: Force, Motion, list of joint numbers or
                 scalar, by the step's space; None is an exact zero
    direction    of its recursion over the links; None for actions local to a link
    recursion    the computation at link i, in words of the papers
    transition   the change of a value between neighbours
    label        the name in plans and emitted code
    needs        quantities of the entire tree that it uses, each an action without a space
    shared       independent of the vectors: computed once, not for each column of a matrix
    join         makes the step of the operator applied to a value; by default the value is its input "x"
    with_phi     the action followed by phi in one step, if that costs less than both in turn
    """

    name: str
    compute: Callable[[Evaluation, Step, int], Any]
    direction: str | None = None
    recursion: str = ""
    transition: str = ""
    label: str = ""
    needs: tuple[Action, ...] = ()
    shared: bool = False
    join: Callable[[StepBuilder, Action, Space, Combination], Step] | None = None
    with_phi: Action | None = None

    def __repr__(self) -> str:
        return f"<Action {self.name}>"

    @property
    def shown(self) -> str:
        return self.label or self.name.replace(".T", "*")


@dataclass(frozen=True, eq=False)
class Record:
    """One operator of the algebra.

    name             as it is written domain, codomain spaces between which it maps; for an operator at one link,
    without the link's name meaning          in words apply, adjoint   actions of the operator and its adjoint; None if
    its definition is always substituted first self_adjoint     whether it equals its adjoint definition       the
    expression that it abbreviates inverse          the expression of its inverse source           of definition or
    inverse dense            its matrix, for operators that the oracle does not define: a function of its
    StackedOperators
    """

    name: str
    domain: Space
    codomain: Space
    meaning: str
    apply: Action | None = None
    adjoint: Action | None = None
    self_adjoint: bool = False
    definition: Expression | None = None
    inverse: Expression | None = None
    source: str = ""
    dense: Callable[[Any], Any] | None = None

    def __post_init__(self) -> None:
        if self.self_adjoint and self.domain.dual != self.codomain:
            raise SpaceError(
                f"{self.name} cannot be its own adjoint: it maps {self.domain} to {self.codomain}, its adjoint maps "
                f"{self.codomain.dual} to {self.domain.dual}"
            )
        if self.apply is None and self.definition is None:
            raise TypeError(f"{self.name} needs an action (apply=...) or a definition")

    def __repr__(self) -> str:
        return f"<Record {self.name}>"

    def __deepcopy__(self, memo: Any) -> Record:
        return self  # constant; expressions compare their operators by it

    def action(self, adjoint: bool) -> Action:
        action = self.adjoint if adjoint and not self.self_adjoint else self.apply
        if action is None:
            raise TypeError(f"nothing says how {self.name}{'.T' if adjoint else ''} is applied")
        return action

    @property
    def is_local(self) -> bool:
        """Whether the operator is block diagonal: one block per link, or at one link."""
        applied = [action for action in (self.apply, self.adjoint) if action is not None]
        between_links = any(space.is_single and not space.at_link for space in (self.domain, self.codomain))
        return bool(applied) and all(action.direction is None for action in applied) and not between_links


@dataclass(frozen=True, eq=False)
class Step:
    """The application of one operator.

    inputs     weighted sums of other steps, by role
    uses       further steps whose results at the link it needs
    name       of an input vector, or of a pick-off's link
    absorbed   actions of biases that were fused into it
    factored   the inverse that it applies by factoring a small matrix
    """

    action: Action
    space: Space | None
    inputs: dict[str, Combination] = field(default_factory=dict)
    uses: tuple[Step, ...] = ()
    name: str = ""
    absorbed: frozenset[Action] = frozenset()
    factored: Factored | None = None

    @property
    def direction(self) -> str | None:
        return self.action.direction

    def dependencies(self) -> Iterable[Step]:
        yield from self.uses
        for combination in self.inputs.values():
            for step, _ in combination:
                yield step


Combination = tuple[tuple[Step, float], ...]


def one(step: Step) -> Combination:
    return ((step, 1.0),)


def weighted_sum(weighted: Iterable[tuple[float, Combination]]) -> Combination:
    """Combinations times numbers, like steps collected."""
    collected: dict[Step, float] = {}
    for weight, combination in weighted:
        for step, inner in combination:
            collected[step] = collected.get(step, 0.0) + weight * inner
    return tuple((step, weight) for step, weight in collected.items() if weight != 0.0)


def taken(value: Combination, action: Action) -> tuple[Combination, Combination]:
    """The terms made by ``action``, as before its application (it is linear), and the other terms."""
    total = weighted_sum((weight, step.inputs.get("x", ())) for step, weight in value if step.action is action)
    return total, tuple((step, weight) for step, weight in value if step.action is not action)
