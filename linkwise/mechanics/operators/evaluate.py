"""Evaluation of steps on a tree: the value of every step at every link, computed on demand and kept."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..recursions.rolled import NotRolled
from ..recursions.schedule import BASE_TO_TIP, Sweep
from ..recursions.sweep_log import within
from ..recursions.tree import Configuration, RolledTree
from .expression import Factored
from .record import Combination, Step
from .values import plus, times


class Evaluation:
    """Values of steps for given vectors.

    at          the tree at one configuration
    vectors     values per link (or a single one): lists of joint numbers, forces or motions in internal frames
    regrouped   steps that may use regrouped inertias (``steps.regroupable_steps``)
    factors     of the small matrices with inverses in the expression
    """

    at: Configuration
    vectors: Mapping[str, Sequence[Any]]
    regrouped: frozenset[Step]
    composites_are_regrouped: bool
    factors: Mapping[Factored, Any]

    def __init__(
        self,
        at: Configuration,
        vectors: Mapping[str, Sequence[Any]],
        regrouped: frozenset[Step] = frozenset(),
        composites_are_regrouped: bool = False,
        factors: Mapping[Factored, Any] | None = None,
    ):
        self.at = at
        self.vectors = vectors
        self.regrouped = regrouped
        self.composites_are_regrouped = composites_are_regrouped
        self.factors = factors or {}
        self.labels: Mapping[Step, str] = {}  # sweeps of steps that are computed on demand, for emitted code
        self._values: dict[tuple[Step, int], Any] = {}
        self._above: dict[Step, frozenset[int]] = {}

    def prepare(self, sweeps: Sequence[Sweep[Step]]) -> None:
        """Compute entire sweeps link by link: evaluation on demand would recurse as deep as the tree."""
        count = len(self.at.tree.links)
        for sweep in sweeps:
            for i in range(count) if sweep.direction == BASE_TO_TIP else reversed(range(count)):
                for step in sweep.tasks:
                    self.value(step, i)

    def total(self, combination: Combination, i: int) -> Any:
        """The weighted sum at link i."""
        result = None
        for step, weight in combination:
            value = self.value(step, i)
            if value is not None:
                result = plus(result, value if weight == 1.0 else times(value, weight))
        return result

    def value(self, step: Step, i: int) -> Any:
        if step.space is not None and step.space.is_single:
            i = -1  # one value for all links
            if isinstance(self.at.tree, RolledTree) and step.inputs:
                raise NotRolled(f"{step.action.shown} takes or gives one value for all links")
        key = (step, i)
        if key not in self._values:
            label = self.labels.get(step)
            if label is None:
                self._values[key] = step.action.compute(self, step, i)
            else:
                with within(label):
                    self._values[key] = step.action.compute(self, step, i)
        return self._values[key]

    def input(self, step: Step, role: str, i: int) -> Any:
        """The value of one of the step's inputs at link i."""
        return self.total(step.inputs.get(role, ()), i)

    def from_parent(self, step: Step, i: int, value: Callable[[int], Any]) -> Any:
        """``value(parent)`` for the step at link i; None at the ground."""
        return self.at.neighbours.from_parent(i, (self, step), value)

    def from_children(self, step: Step, i: int, message: Callable[[int], Any], start: Any = None) -> Any:
        """The sum of ``start`` and the messages of link i's children for the step."""
        return self.at.neighbours.from_children(i, (self, step), message, start)

    def reaches(self, step: Step, i: int) -> bool:
        """Whether all forces that enter a step act on link i or further out."""
        if step not in self._above:
            touched = [k for k in range(len(self.at.tree.links)) if self.input(step, "x", k) is not None]
            paths = [frozenset(self.at.tree.mechanism.tree.path(k)) for k in touched]
            self._above[step] = frozenset.intersection(*paths) if paths else frozenset()
        return i in self._above[step]


class PropagatedColumn(Evaluation):
    """A column of a matrix at one link: the values from outer links, per inward step; empty where the column begins."""

    def __init__(self, of: Evaluation, passing: Sequence[Step], arrived: Sequence[Any] | None):
        super().__init__(of.at, of.vectors, of.regrouped, of.composites_are_regrouped, of.factors)
        self._passing = passing
        self._arrived = dict(zip(passing, arrived, strict=True)) if arrived is not None else {}
        self._messages: dict[Step, Callable[[int], Any]] = {}

    def from_children(self, step: Step, i: int, message: Callable[[int], Any], start: Any = None) -> Any:
        self._messages[step] = message
        return plus(start, self._arrived.get(step))

    def handed_on(self, i: int) -> list[Any]:
        """The value that link i passes to its parent."""
        for step in self._passing:
            self.value(step, i)
        return [self._messages[step](i) for step in self._passing]
