"""A plan: how an expression is computed on one mechanism.  Plans are executed, printed and counted.

    plan = plan_for(expression, mechanism)    chooses structure, steps and sweeps
    plan.run(at, vectors)                     computes it on a tree at a configuration, sweep by sweep
    plan.sweeps                               the sweeps of ``run`` in order

Plans of matrices contain other plans: unit columns through the recursions, rows instead of columns, a matrix over all
joints reduced to the coordinates, a matrix that is factored.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...mechanism import Mechanism
from ..links.factor import Elimination, Factor
from ..recursions.pairs import Dof
from ..recursions.rolled import NotRolled
from ..recursions.schedule import BASE_TO_TIP, TIP_TO_BASE, Sweep
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.sweep_log import format_label
from ..recursions.tree import Configuration, RolledTree, Tree
from ..scalar import Matrix, Scalar, dot, transposed
from . import actions
from .algebra import D_INV, L, S, phi
from .evaluate import Evaluation, PropagatedColumn
from .expression import Expression, Factored, Product, Vector, product
from .identities import has_adjoint, is_symmetric, without_mimic_joints
from .record import Combination, Step
from .spaces import COORDINATE, JOINT, LOOP
from .steps import StepBuilder, fuse_sweeps, regroupable_steps, sweep_name
from .structure import simpler, structured, written_out
from .vectors import component, flattened, given, input_vectors, places, space_size, to_user, unit_vector

Vectors = Mapping[str, Sequence[Any]]  # values per link, in internal frames

COLUMN = "column"
ROWS_PAY = 1.5  # columns per row above which a matrix costs less row by row
DEEP = 100  # joints in a row above which columns are swept rather than computed by recursion, which Python limits


class Plan:
    """Evaluation plan of an expression. ``computed`` is the expression in applied operators."""

    computed: Expression

    @property
    def parts(self) -> tuple[Plan, ...]:
        """The plans that run before the plan's own work."""
        return ()

    @property
    def own_sweeps(self) -> tuple[Sweep[Step], ...]:
        """The plan's own sweeps."""
        return ()

    @property
    def sweeps(self) -> tuple[Sweep[Step], ...]:
        """All sweeps in the order in which they run."""
        return (*(sweep for part in self.parts for sweep in part.sweeps), *self.own_sweeps)

    @property
    def own_walks(self) -> tuple[Step, ...]:
        """The plan's own steps around loops, outside sweeps."""
        return ()

    @property
    def walks(self) -> tuple[Step, ...]:
        """All steps around loops."""
        return (*(step for part in self.parts for step in part.walks), *self.own_walks)

    @property
    def notes(self) -> Iterator[str]:
        """Lines about computations outside sweeps."""
        return iter(())

    def run(self, at: Configuration, vectors: Vectors) -> Any:
        """The values per link of a vector in internal frames; a matrix in the user's frames."""
        raise NotImplementedError


@dataclass(frozen=True)
class Recursions:
    """Steps of a vector expression, in sweeps.

    value          the result, a sum of steps
    sweeps         the fewest alternating sweeps over the links that compute the steps
    walks          steps along loops, outside sweeps
    regrouped      steps that may use regrouped inertias
    factored       the plans of factored matrices, whose inverses are applied
    """

    value: Combination
    sweeps: tuple[Sweep[Step], ...]
    walks: tuple[Step, ...]
    regrouped: frozenset[Step]
    factored: tuple[tuple[Factored, Plan], ...]

    @staticmethod
    def of(expression: Expression, mechanism: Mechanism) -> Recursions:
        build = StepBuilder()
        value = build.of(expression)
        steps = build.steps_for(value)
        regrouped = regroupable_steps(steps, value)
        inverses = dict.fromkeys(step.factored for step in steps if step.factored is not None)
        factored = tuple((inverse, _matrix_plan(inverse.of, mechanism)) for inverse in inverses)
        walks = tuple(step for step in steps if step.action.recursion and step.direction is None)
        return Recursions(value, fuse_sweeps(steps), walks, regrouped, factored)

    def evaluation(self, at: Configuration, vectors: Vectors) -> Callable[[Vectors], Evaluation]:
        """Factor the inner matrices; the returned function makes an evaluation for further vectors."""
        if self.factored and isinstance(at.tree, RolledTree):
            raise NotRolled("a matrix over all links is factored")
        factors = {inverse: _factor(inverse, plan.run(at, vectors)) for inverse, plan in self.factored}
        composites = any(step.action is actions.COMPOSITE for step in self.regrouped)
        return lambda more: Evaluation(at, {**vectors, **more}, self.regrouped, composites, factors)

    def run(self, *evaluations: Evaluation, every_step: bool) -> None:
        """Sweep by sweep, link by link, in the order of the emitted code; only steps independent of the vectors unless
        ``every_step``."""
        links = evaluations[0].at.tree.links
        for sweep in self.sweeps:

            def work(i: int, _: Any, tasks: Sequence[Step] = sweep.tasks) -> tuple[None, None]:
                for step in tasks:
                    for evaluation in evaluations if every_step or step.action.shared else ():
                        evaluation.value(step, i)
                return None, None  # values stay in the evaluation; there is no message

            (base_to_tip if sweep.direction == BASE_TO_TIP else tip_to_base)(links, sweep_name(sweep), work)


@dataclass(frozen=True)
class VectorPlan(Plan):
    """Sweeps that compute a vector."""

    computed: Expression
    recursions: Recursions

    @property
    def parts(self) -> tuple[Plan, ...]:
        return tuple(plan for _, plan in self.recursions.factored)

    @property
    def own_sweeps(self) -> tuple[Sweep[Step], ...]:
        return self.recursions.sweeps

    @property
    def own_walks(self) -> tuple[Step, ...]:
        return self.recursions.walks

    def run(self, at: Configuration, vectors: Vectors) -> list[Any]:
        return self.run_together(at, [vectors])[0]

    def run_together(self, at: Configuration, many: Sequence[Vectors]) -> list[list[Any]]:
        """The results of ``run`` for several vectors, in the same sweeps."""
        evaluations = [self.recursions.evaluation(at, vectors)({}) for vectors in many]
        self.recursions.run(*evaluations, every_step=True)
        space = self.computed.codomain
        assert space is not None
        links = range(1) if space.is_single else _links(at)
        return [[evaluation.total(self.recursions.value, i) for i in links] for evaluation in evaluations]

    def prepare(self, at: Configuration) -> None:
        """Compute steps that are independent of the vectors."""
        self.recursions.run(self.recursions.evaluation(at, {})({}), every_step=False)


@dataclass(frozen=True)
class Columns(Plan):
    """A matrix by unit columns through the recursions; for a symmetric one, only the upper triangle."""

    computed: Expression
    recursions: Recursions
    symmetric: bool

    @property
    def parts(self) -> tuple[Plan, ...]:
        return tuple(plan for _, plan in self.recursions.factored)

    @property
    def own_sweeps(self) -> tuple[Sweep[Step], ...]:
        return self.recursions.sweeps

    @property
    def own_walks(self) -> tuple[Step, ...]:
        return self.recursions.walks

    @property
    def notes(self) -> Iterator[str]:
        if self.symmetric:
            yield "on and above the diagonal"

    def run(self, at: Configuration, vectors: Vectors) -> Matrix:
        domain, codomain = self.computed.domain, self.computed.codomain
        assert domain is not None and codomain is not None
        if codomain.link and isinstance(at.tree, RolledTree) and has_adjoint(self.computed):
            adjoint = self.computed.T
            of_column = Recursions.of(product(adjoint, Vector(COLUMN, adjoint.domain)), at.tree.mechanism)
            return transposed(Columns(adjoint, of_column, self.symmetric).run(at, vectors))
        rows, columns = places(at, codomain), places(at, domain)
        recursions = self.recursions
        with_column = recursions.evaluation(at, vectors)
        recursions.run(with_column({}), every_step=False)
        if isinstance(at.tree, RolledTree):
            return self._together(at, with_column) if domain.link else self._entries_by_pairs(at, with_column)
        labels = {
            step: format_label(sweep.direction, sweep_name(sweep), "columns")
            for sweep in recursions.sweeps
            for step in sweep.tasks
        }
        # Rows run outwards: contributions of a last sweep outwards are computed on demand, one link at a time.
        outward_last = recursions.sweeps and recursions.sweeps[-1].direction == BASE_TO_TIP
        swept = recursions.sweeps[:-1] if self.symmetric and outward_last else recursions.sweeps
        deep = longest_path(at.tree.mechanism) > DEEP
        result: Matrix = [[0.0] * len(columns) for _ in rows]
        for c, (j, k) in enumerate(columns):
            evaluation = with_column({COLUMN: unit_vector(at, domain, j, k)})
            evaluation.labels = labels
            if deep:
                evaluation.prepare(swept)
            numbers: dict[int, list[Scalar]] = {}
            for r, (i, m) in enumerate(rows[: c + 1] if self.symmetric else rows):
                if i not in numbers:
                    numbers[i] = to_user(at, codomain, i, evaluation.total(recursions.value, i))
                entry = numbers[i][m]
                result[r][c] = entry
                if self.symmetric:
                    result[c][r] = entry
        return result

    def _together(self, at: Configuration, with_column: Callable[[Vectors], Evaluation]) -> Matrix:
        """Columns that begin at one link, in the same sweeps."""
        domain, codomain = self.computed.domain, self.computed.codomain
        assert domain is not None and codomain is not None
        runs = [with_column({COLUMN: unit_vector(at, domain, j, k)}) for j, k in places(at, domain)]
        self.recursions.run(*runs, every_step=True)
        value = self.recursions.value
        return [[component(at, codomain, i, run.total(value, i), m) for run in runs] for i, m in places(at, codomain)]

    def _entries_by_pairs(self, at: Configuration, with_column: Callable[[Vectors], Evaluation]) -> Any:
        """A symmetric matrix with columns that go inwards, by pairs of a column that begins at a link and one from an
        outer link."""
        recursions = self.recursions
        tasks = [step for sweep in recursions.sweeps for step in sweep.tasks]
        passing = [step for step in tasks if step.direction is not None and not step.action.shared]
        inward = all(step.direction == TIP_TO_BASE for step in passing)
        if not self.symmetric or not inward or {self.computed.domain, self.computed.codomain} != {JOINT}:
            raise NotRolled("columns of a matrix do not go inwards alone, from one joint to the next")
        links, matrix, paths = at.tree.links, at.tree.matrix_of_dofs(), at.tree.inwards()

        def step(i: int, _: list[None]) -> tuple[None, None]:
            handed: dict[Dof, Any] = {}
            starting = [((i, k), None) for k in range(links[i].joint.nv)]
            for dof, arrived in (*paths.arriving(i), *starting):
                column = [None] * len(links) if arrived is not None else unit_vector(at, JOINT, *dof)
                run = PropagatedColumn(with_column({COLUMN: column}), passing, arrived)
                for m, entry in enumerate(to_user(at, JOINT, i, run.total(recursions.value, i))):
                    matrix[(i, m), dof] = matrix[dof, (i, m)] = entry
                handed[dof] = run.handed_on(i)
            if at.neighbours.has_parent(i):
                paths.hand_on(i, handed)
            return None, None

        tip_to_base(links, "columns", step)
        return at.tree.reduce_to_coordinates(matrix)


@dataclass(frozen=True)
class Postprocessed(Plan):
    """A plan that postprocesses the matrix of another plan."""

    inner: Plan

    @property
    def computed(self) -> Expression:  # type: ignore[override]
        return self.inner.computed

    @property
    def parts(self) -> tuple[Plan, ...]:
        return (self.inner,)


@dataclass(frozen=True)
class Rows(Postprocessed):
    """A matrix with more columns than rows: the adjoint's columns."""

    @property
    def notes(self) -> Iterator[str]:
        yield "row by row: columns of the adjoint"

    def run(self, at: Configuration, vectors: Vectors) -> Matrix:
        return transposed(self.inner.run(at, vectors))


@dataclass(frozen=True)
class Reduced(Postprocessed):
    """A matrix over all joints, reduced to the coordinates: S* X S, S* X or X S."""

    rows: bool
    columns: bool

    @property
    def notes(self) -> Iterator[str]:
        sides = " and ".join(side for side, wanted in (("rows", self.rows), ("columns", self.columns)) if wanted)
        yield f"{sides} of mimic joints added to those of the joints they mimic"

    def run(self, at: Configuration, vectors: Vectors) -> Matrix:
        matrix = self.inner.run(at, vectors)
        if self.columns:
            matrix = at.tree.independent_columns(matrix)
        return at.tree.independent_rows(matrix) if self.rows else matrix


@dataclass(frozen=True)
class Inverted(Postprocessed):
    """The inverse of a small symmetric matrix, by elimination."""

    over_loops: bool

    @property
    def notes(self) -> Iterator[str]:
        yield "inverted by elimination"

    def run(self, at: Configuration, vectors: Vectors) -> Matrix:
        matrix = self.inner.run(at, vectors)
        if not self.over_loops:
            at_one_link = self.computed.domain is not None and self.computed.domain.link is not None
            return Elimination(matrix, unknown_where_singular=at_one_link).inverse()
        factor, n = Factor.of(matrix, semidefinite=True), len(matrix)
        return [factor.solve([1.0 if i == k else 0.0 for i in range(n)]) for k in range(n)]


@dataclass(frozen=True)
class Innovations(Postprocessed):
    """A* D^-1 A with A as a matrix: columns of A multiplied in pairs, joint by joint, without an outward sweep."""

    @property
    def notes(self) -> Iterator[str]:
        yield "columns multiplied in pairs over D joint by joint"

    def run(self, at: Configuration, vectors: Vectors) -> Matrix:
        columns = transposed(self.inner.run(at, vectors))
        result: Matrix = [[0.0] * len(columns) for _ in columns]
        for c, column in enumerate(columns):
            parts = enumerate(at.tree.per_joint(column))
            weighted = [x for i, part in parts if part for x in at.articulation(i).factor.solve(part)]
            for r in range(c + 1):
                result[r][c] = result[c][r] = dot(columns[r], weighted)
        return result


@dataclass(frozen=True)
class Congruence(Plan):
    """J X^-1 J* with J and X as matrices: solves for columns of J*, then multiplies by the rows of J."""

    left: Plan
    middle: Plan

    @property
    def computed(self) -> Expression:  # type: ignore[override]
        return self.left.computed

    @property
    def parts(self) -> tuple[Plan, ...]:
        return (self.left, self.middle)

    @property
    def notes(self) -> Iterator[str]:
        yield f"eliminated and multiplied by the rows of {self.left.computed} from both sides"

    def run(self, at: Configuration, vectors: Vectors) -> Matrix:
        rows, middle = self.left.run(at, vectors), Elimination(self.middle.run(at, vectors))
        responses = [middle.solve(row) for row in rows]
        return [[dot(row, response) for response in responses] for row in rows]


# -- choosing ---------------------------------------------------------------------------------------------


def plan_for(expression: Expression, mechanism: Mechanism) -> Plan:
    """The plan of ``expression`` for trees of ``mechanism``, after replacements that are always cheaper."""
    return plan_as_written(simpler(specialized(expression, mechanism)), mechanism)


def plan_as_written(expression: Expression, mechanism: Mechanism) -> Plan:
    """The plan of ``expression`` for trees of ``mechanism``, in the operators as written."""
    expression = specialized(expression, mechanism)
    if expression.is_vector:
        computed = written_out(expression)
        return VectorPlan(computed, Recursions.of(computed, mechanism))
    return _matrix_plan(expression, mechanism)


def specialized(expression: Expression, mechanism: Mechanism) -> Expression:
    """The expression for the mechanism: without S if there are no mimic joints."""
    return expression if mechanism.coordinates.mimic_joints else without_mimic_joints(expression)


def _matrix_plan(expression: Expression, mechanism: Mechanism) -> Plan:
    domain, codomain = expression.domain, expression.codomain
    assert domain is not None and codomain is not None
    outer = _reduced(expression, mechanism) or _factored_inverse(written_out(expression), mechanism)
    if outer is not None:
        return outer
    if has_adjoint(expression) and _row_by_row(expression, mechanism):
        return Rows(_matrix_plan(expression.T, mechanism))
    symmetric = is_symmetric(expression) and domain.link == codomain.link
    computed = structured(expression, symmetric, longest_path(mechanism))
    recursions = Recursions.of(product(computed, Vector(COLUMN, domain)), mechanism)
    return Columns(computed, recursions, symmetric)


def _row_by_row(expression: Expression, mechanism: Mechanism) -> bool:
    """Whether the adjoint's columns are cheaper. A motion along a loop serves all constraints of the loop: L phi* X is
    evaluated by columns, and so is the adjoint of X phi L*.
    """
    factors = expression.factors if isinstance(expression, Product) else (expression,)
    if factors[:2] == (L, phi.T) or factors[-2:] == (phi, L.T):
        return factors[:2] != (L, phi.T)
    assert expression.domain is not None and expression.codomain is not None
    return space_size(expression.domain, mechanism) > ROWS_PAY * space_size(expression.codomain, mechanism)


def _reduced(expression: Expression, mechanism: Mechanism) -> Plan | None:
    """S* X S, S* X or X S with the matrix X over all joints."""
    if not isinstance(expression, Product):
        return None
    factors = expression.factors
    rows, columns = factors[0] == S.T, factors[-1] == S
    inner = factors[int(rows) : len(factors) - int(columns)]
    if not inner or not (rows or columns):
        return None
    return Reduced(_matrix_plan(_joined(inner), mechanism), rows, columns)


def _factored_inverse(computed: Expression, mechanism: Mechanism) -> Plan | None:
    """X^-1, or J X^-1 J* with a matrix X over the coordinates, or over the loops A* D^-1 A."""
    if isinstance(computed, Factored):
        return Inverted(_matrix_plan(computed.of, mechanism), computed.domain == LOOP)
    if isinstance(computed, Product):
        middle = len(computed.factors) // 2
        left, center, right = computed.factors[:middle], computed.factors[middle], computed.factors[middle + 1 :]
        if right == tuple(factor.T for factor in reversed(left)):
            if isinstance(center, Factored) and center.domain in (COORDINATE, JOINT):
                return Congruence(_matrix_plan(_joined(left), mechanism), _matrix_plan(center.of, mechanism))
            if center == D_INV and computed.domain == LOOP:
                return Innovations(_matrix_plan(_joined(right), mechanism))
    return None


def _joined(factors: tuple[Expression, ...]) -> Expression:
    return factors[0] if len(factors) == 1 else Product(factors)


def longest_path(mechanism: Mechanism) -> int:
    """The number of joints on the longest path outwards."""
    depths: list[int] = []
    for parent in mechanism.tree.parents:
        depths.append(depths[parent] + 1 if parent >= 0 else 1)
    return max(depths, default=0)


# -- applying ---------------------------------------------------------------------------------------------


def apply(expression: Expression, tree: Tree, q: Sequence[Scalar], **vectors: Any) -> Any:
    """The value of an expression at q: an array in the user's frames.

    Vectors are given flat over the joints or coordinates, or as rows of six per link in the user's frames.
    """
    return applied(plan_for(expression, tree.mechanism), expression, Configuration(tree, q), vectors)


def applied(plan: Plan, expression: Expression, at: Configuration, vectors: Mapping[str, Any]) -> Any:
    """The result of ``apply`` by an existing plan."""
    spaces = input_vectors(specialized(expression, at.tree.mechanism))
    result = plan.run(at, {name: given(at, space, vectors[name]) for name, space in spaces.items()})
    if not expression.is_vector:
        return result
    assert plan.computed.codomain is not None
    return flattened(at, plan.computed.codomain, result)


def evaluate(expression: Expression, at: Configuration, **vectors: Any) -> list[Any]:
    """The value at every link (or a single one) of a vector expression in internal frames; vectors as for ``apply``."""
    spaces = input_vectors(specialized(expression, at.tree.mechanism))
    values = {name: given(at, space, vectors[name]) for name, space in spaces.items()}
    return plan_for(expression, at.tree.mechanism).run(at, values)


def _factor(inverse: Factored, matrix: Matrix) -> Factor | Elimination:
    if inverse.domain == LOOP:  # constraints may be redundant
        return Factor.of(matrix, semidefinite=True)
    return Factor.of(matrix) if inverse.domain and inverse.domain.link else Elimination(matrix)


def _links(at: Configuration) -> range:
    return range(len(at.tree.links))
