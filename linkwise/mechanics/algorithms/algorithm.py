"""The record of an algorithm: an operator expression, or a recursion written by hand with the reason for it.

Algorithms are registered where they are written, by ``algorithm`` (above a recursion) and ``expressed`` (above what
gives an expression); ``ALGORITHMS`` is what has been registered.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from inspect import Parameter, cleandoc, signature
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

from ...mechanism import Mechanism, MechanismError
from ...mechanism.resistance import require_inertia
from ..operators.algebra import L, M
from ..operators.explain import Computation
from ..operators.expression import Expression, Factored, Operator
from ..operators.identities import expanded, needs_no_armature
from ..operators.origins import depends_on_origins
from ..operators.plan import applied, plan_as_written, specialized
from ..operators.simplify import promising_forms
from ..operators.spaces import FORCE, JOINT, MOTION, SCALAR, Space
from ..operators.structure import simpler
from ..operators.vectors import input_vectors, size_of
from ..recursions.tree import Configuration, Tree
from .decisions import DECISIONS, refuse_infinitesimal_motions

SHAPES: dict[str, Callable[[Mechanism], tuple[int, ...]]] = {
    "q": lambda m: (m.nq,),
    "q0": lambda m: (m.nq,),
    "q1": lambda m: (m.nq,),
    "v": lambda m: (m.nv,),
    "a": lambda m: (m.nv,),
    "tau": lambda m: (m.nv,),
    "nu": lambda m: (m.nv,),
    "nu_rate": lambda m: (m.nv,),
    "eps": lambda m: (m.nv,),
    "p": lambda m: (m.nv,),
    "p_rate": lambda m: (m.nv,),
    "wrenches": lambda m: (m.n_links, 6),
    "transmitted": lambda m: (m.n_links, 6),
    "dt": lambda m: (),
    "q_rate": lambda m: (m.nq,),
    "q_next": lambda m: (m.nq,),
    "state": lambda m: (m.nq + m.nv,),
    "state_by_state": lambda m: (2 * m.nv, 2 * m.nv),
    "state_by_tau": lambda m: (2 * m.nv, m.nv),
    "mass_matrix": lambda m: (m.nv, m.nv),
    "mass_matrix_inverse": lambda m: (m.nv, m.nv),
    "coriolis_matrix": lambda m: (m.nv, m.nv),
    "inertia_matrix": lambda m: (m.nv, m.nv),
    "matrices": lambda m: (6 * m.n_links, 6 * m.n_links + m.nv),
    "factors": lambda m: (2, m.nv, m.nv),
    "factor": lambda m: (m.nv, m.nv),
    "factor_inverse": lambda m: (m.nv, m.nv),
    "derivatives": lambda m: (m.nv,) * 3,
    "partials": lambda m: (3, m.nv, m.nv),
    "second_derivatives": lambda m: (m.nv,) * 4,
    "d_q": lambda m: (m.nv, m.nv),
    "d_v": lambda m: (m.nv, m.nv),
    "d_tau": lambda m: (m.nv, m.nv),
    "d_state": lambda m: (2 * m.nv, 3 * m.nv),
    "d_a": lambda m: (m.nv, 3 * m.nv),
    "d_multipliers": lambda m: (m.n_constraints, 3 * m.nv),
    "rate_jacobian": lambda m: (2 * m.nv, 2 * m.nv),
    "d_qq": lambda m: (m.nv,) * 3,
    "d_vv": lambda m: (m.nv,) * 3,
    "d_qv": lambda m: (m.nv,) * 3,
    "d_aq": lambda m: (m.nv,) * 3,
    "coriolis": lambda m: (m.nv,),
    "motion": lambda m: (2, m.nv),
    "jacobian": lambda m: (6, m.nv),
    "jacobian_rate": lambda m: (6, m.nv),
    "jacobian_second_rate": lambda m: (6, m.nv),
    "jacobian_derivatives": lambda m: (6, m.nv, m.nv),
    "momentum_matrix": lambda m: (6, m.nv),
    "center_of_mass_jacobian": lambda m: (3, m.nv),
    "regressor": lambda m: (m.nv, 10 * m.n_links),
    "parts": lambda m: (3, m.nv),
    "poses": lambda m: (m.n_links, 4, 4),
    "velocities": lambda m: (m.n_links, 6),
    "accelerations": lambda m: (m.n_links, 6),
    "difference_jacobian": lambda m: (m.nv, m.nv),
    "tangent_partials": lambda m: (2, m.nv, m.nv),
    "constraint_error": lambda m: (m.n_constraints,),
    "constraint_jacobian": lambda m: (m.n_constraints, m.nv),
    "delassus_matrix": lambda m: (m.n_constraints, m.n_constraints),
    "loop_alignments": lambda m: (len(m.loops),),
    "loop_motion_maps": lambda m: (m.n_constraints, 6),
    "constrained_terms": lambda m: (m.nv + m.n_constraints, m.nv + 2),
    "reliability": lambda m: (),
    "active": lambda m: (len(m.loops),),
    "loop_wrenches": lambda m: (len(m.loops), 6),
    "steps_to_singular": lambda m: (),
    "consistency": lambda m: (),
    "multipliers": lambda m: (m.n_constraints,),
    "constraint_motion": lambda m: (m.nv + 2 * m.n_constraints,),
    "step_rate_jacobian": lambda m: (m.nv, m.nv),
    "residuals": lambda m: (m.nv,),
    "weighted": lambda m: (m.nv,),
    "deviations": lambda m: (m.nv,),
    "of_rates": lambda m: (m.nv, 2),
    "of_forces": lambda m: (m.nv, 2),
    "variances": lambda m: (m.n_links, 6),
    "sensed": lambda m: (m.n_links, 6),
    "weights": lambda m: (m.n_links, 6),
    "innovations": lambda m: (m.nv, 4),
    "estimated_joints": lambda m: (m.nv, 4),
    "wrench_covariances": lambda m: (m.n_links, 6, 6),
    "filter_covariances": lambda m: (m.n_links, 4, 6, 6),
    "filtered_joints": lambda m: (m.nv, 9),
    "forces_and_co_states": lambda m: (m.n_links, 2, 6),
    "gains_and_variances": lambda m: (m.nv, 7),
}

#: Where constraints are eliminated (``fronts``): with p, the number of motions that they allow.
REDUCED: dict[str, Callable[[Mechanism, int], tuple[int, ...]]] = {
    "nu": lambda m, p: (p,),
    "nu_rate": lambda m, p: (p,),
    "eps": lambda m, p: (p,),
    "coriolis": lambda m, p: (p,),
    "factor": lambda m, p: (p, p),
    "factor_inverse": lambda m, p: (p, p),
    "derivatives": lambda m, p: (p, p, p),
}

#: A port that is no input: it adds results which say how far the others can be relied on.
STATUS = "status"
STATUSES = ("reliability", "consistency")

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
Size = tuple[int, ...] | Callable[[Mechanism], tuple[int, ...]] | Space
Options = Sequence[str] | Mapping[str, Callable[[Mechanism], Any] | None]
CONFIGURATIONS = ("q", "q0", "q1")  # the names under which algorithms take configurations
CONFIGURATION_FIRST = ("q_next", "state")  # results that are configurations, or begin with one


class InLoops(NamedTuple):
    """An algorithm that programs with loops are made of.

    recursion           as that of an ``Algorithm``
    reason              why programs without loops are made of another
    operations_without  of the other, as expected: whether loops pay depends on these
    """

    recursion: Callable[..., Any]
    reason: str
    operations_without: Callable[[Mechanism], float]


@dataclass(frozen=True)
class FromDerivatives:
    """A recursion that takes the result of another algorithm and its derivatives along tangent directions of its first
    input, a configuration.

    differentiates   the name of the other, which has the same inputs
    recursion        ``recursion(tree, result, derivatives)``
    """

    differentiates: str
    recursion: Callable[..., Any]

    def __call__(self, tree: Tree, *arrays: Any) -> Any:
        return self.recursion(tree, *arrays)


class Requirements(NamedTuple):
    """Properties that a mechanism must have for a result to be valid.

    inertia       "tree" where the mass matrix must be positive, "constrained" where that of the motions which
                  constraints allow must; "" where neither matters
    constraints   whether mechanisms with constraints get a right answer, whether they enter or not
    instead       what answers for these otherwise, in words
    constrained   the algorithm that gives the same of mechanisms with constraints: ``compile`` takes it in place
    """

    inertia: str = ""
    constraints: bool = True
    instead: str = ""
    constrained: str = ""

    def or_use(self, instead: str) -> Requirements:
        """A copy that names the function for mechanisms with constraints."""
        return self._replace(instead=instead)

    def or_algorithm(self, constrained: str) -> Requirements:
        """A copy with the algorithm for mechanisms with constraints."""
        return self._replace(constrained=constrained)


ANY = Requirements()
UNCONSTRAINED = Requirements(constraints=False)
SOLVES_TREE = Requirements("tree", constraints=False)  # for motions, as if there were no constraints
SOLVES_WITH_MULTIPLIERS = Requirements("tree")  # for motions and forces of constraints
SOLVES_CONSTRAINED = Requirements("constrained")  # for the motions that constraints allow


def at_user_origins(tree: Tree) -> Tree:
    """``on_tree`` of recursions whose result depends on where the links' origins are: the tree is made so."""
    return tree


@dataclass(frozen=True)
class Algorithm:
    """A named result: ``inputs`` and ``output`` name arrays, ``options`` values fixed when compiling.

    The shapes of "q", "v", "a", "tau", "wrenches" and others that the library uses are known (SHAPES); those of inputs
    with names of your own are in ``sizes``, those of outputs follow from the result.

    recursion       ``recursion(tree, *inputs, **options)``, where no expression gives the result, or none at equal cost
    options         names; or a mapping of these to the function of the mechanism that decides where a caller does not
                    (those of some names are known: ``decisions.py``)
    expression      what it computes: ``expression(mechanism, **options)``, an operator expression in vectors that are
                    named as the inputs; a tuple of them gives an array of their results.  None for options and
                    mechanisms that only the recursion serves
    reason          why it is a recursion
    ports           optional inputs, which follow the others in this order (``with_ports``): recursions take them by
                    name, expressions take True for those that are given.  "status" is an optional output: recursions
                    take True, and give ``STATUSES`` too
    sizes           core shapes, or spaces, of inputs and outputs that SHAPES does not name
    requires        what a mechanism must be
    on_tree         the tree that expressions are evaluated on, if not the mechanism's own; ``at_user_origins``
    sweeps          how programs with loops are made of a recursion: True where it takes nothing from links but
                    neighbours, the algorithm that goes from link to link where this one does not, False by none
    """

    name: str
    inputs: tuple[str, ...]
    output: str | tuple[str, ...]
    recursion: Callable[..., Any] | None = None
    options: Options = ()
    expression: Callable[..., Expression | tuple[Expression, ...] | None] | None = None
    reason: str = ""
    ports: tuple[str, ...] = ()
    sizes: Mapping[str, Size] = field(default_factory=dict)
    requires: Requirements = ANY
    on_tree: Callable[[Tree], Tree] | None = None
    sweeps: bool | InLoops = False

    def __post_init__(self) -> None:
        if self.expression is None and self.recursion is None:
            raise ValueError(f"algorithm {self.name!r} has neither an expression nor a recursion: give one of them")
        given = self.options if isinstance(self.options, Mapping) else dict.fromkeys(self.options)
        options = {name: decide or DECISIONS.get(name) for name, decide in given.items()}
        object.__setattr__(self, "options", options)

    @property
    def about(self) -> str:
        """The first paragraph of the docstring of its recursion or expression."""
        for function in (self.recursion, self.expression):
            while isinstance(function, (partial, FromDerivatives)):
                function = function.func if isinstance(function, partial) else function.recursion
            if text := cleandoc(getattr(function, "__doc__", None) or ""):
                return " ".join(text.split("\n\n")[0].split())
        return ""

    # -- what it computes -----------------------------------------------------------------------------

    def computations(self, mechanism: Mechanism, **options: Any) -> tuple[Computation, ...] | None:
        """The expressions for a mechanism and their plans, in the order in which they run; None for a recursion."""
        if self.expression is None:
            return None
        written = self.expression(mechanism, **dict.fromkeys(self.given_ports, True), **options)
        if written is None:
            return None
        expressions = [
            specialized(expression, mechanism) for expression in (written if isinstance(written, tuple) else (written,))
        ]
        for expression in expressions:
            self._check_expression(expression, mechanism)
        forms = list(map(self.computed_as, expressions))
        plans = [plan_as_written(form, mechanism) for form in forms]
        return tuple(map(Computation, expressions, forms, plans))

    def of(self, mechanism: Mechanism) -> Algorithm:
        """The algorithm that gives this result of a mechanism: where constraints hold, the one ``within_constraints``,
        if there is one."""
        if not mechanism.loops:
            return self
        given = self.given_ports
        name = self.name.removesuffix("".join(f"_with_{port}" for port in given))
        plain = replace(self, name=name, inputs=tuple(x for x in self.inputs if x not in given))
        registered = plain == ALGORITHMS.get(name)  # not one of a caller that has the same name
        other = (registered and WITHIN_CONSTRAINTS.get(name)) or ALGORITHMS.get(self.requires.constrained)
        return replace(other.with_ports(*given), name=self.name) if other else self

    def function(self, tree: Tree, *arrays: Any, **options: Any) -> Any:
        """The result on a tree, for arrays of scalars."""
        return self.run(
            self.computations(tree.mechanism, **self.with_defaults(tree.mechanism, options)), tree, arrays, options
        )

    def run(
        self, computed: tuple[Computation, ...] | None, tree: Tree, arrays: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """The result by plans made before, or by the recursion."""
        if computed is None:
            recursion = self.recursion
            assert recursion is not None
            if not self.given_ports:
                return recursion(tree, *arrays, **options)
            named = list(zip(self.inputs, arrays, strict=True))
            required = [array for name, array in named if name not in self.ports]
            optional = {name: array for name, array in named if name in self.ports}
            optional |= {STATUS: True} if STATUS in self.given_ports else {}
            return recursion(tree, *required, **optional, **options)
        at = Configuration(self.tree_for(tree), arrays[0])
        vectors = dict(zip(self.inputs[1:], arrays[1:], strict=True))
        results = [applied(computation.plan, computation.expression, at, vectors) for computation in computed]
        return results if len(results) > 1 else results[0]

    @property
    def for_loops(self) -> Algorithm:
        """The algorithm that programs with loops are made of."""
        if self.in_loops is None:
            return self
        recursion, reason, _ = self.in_loops
        return replace(self, recursion=recursion, reason=reason, expression=None, sweeps=True)

    @property
    def in_loops(self) -> InLoops | None:
        """The algorithm that programs with loops are made of, where that is another."""
        return self.sweeps if isinstance(self.sweeps, InLoops) else None

    @property
    def link_by_link(self) -> bool:
        """Whether the recursion uses only values of neighbouring links."""
        return self.sweeps is True

    @property
    def differentiates(self) -> str | None:
        """The algorithm on whose derivatives the recursion works; see ``derived_from`` in compiler/pipeline.py."""
        return self.recursion.differentiates if isinstance(self.recursion, FromDerivatives) else None

    @property
    def forms(self) -> Callable[[Mechanism], Iterable[Algorithm]] | None:
        """Others with the same result, maybe for less."""
        return None

    def computed_as(self, expression: Expression) -> Expression:
        """The equal form of which the plan is made."""
        return simpler(expression)

    def tree_for(self, tree: Tree) -> Tree:
        """The tree that expressions are evaluated on."""
        return tree if self.on_tree is None else self.on_tree(tree)

    def needs_user_origins(self, computed: tuple[Computation, ...] | None) -> bool:
        """Whether the result depends on the origins of link frames."""
        if computed is None:
            return self.on_tree is at_user_origins
        return any(depends_on_origins(computation.expression) for computation in computed)

    def _check_expression(self, expression: Expression, mechanism: Mechanism) -> None:
        """Refuse what an expression cannot be asked of."""
        inverse = needs_no_armature(expression)
        if inverse is not None and any(any(b.armature) for b in mechanism.bodies):
            raise MechanismError(
                f"{inverse} is known only without rotor inertias, and joints of mechanism {mechanism.name!r} have "
                "armature: write (H @ phi @ M @ phi.T @ H.T + R).inv"
            )
        vectors = input_vectors(expression)
        of_callers = {name for name, size in self.sizes.items() if isinstance(size, Space)}
        one_by_one = [name for name, space in vectors.items() if space == JOINT and name not in of_callers]
        if mechanism.coordinates.mimic_joints and one_by_one:
            raise MechanismError(
                f"{self.name} takes one joint at a time, and in mechanism {mechanism.name!r} some mimic others "
                f"({', '.join(mechanism.coordinates.mimic_joints)}): use an algorithm over the independent "
                "coordinates, or load the mechanism with its mimic joints free"
            )

    # -- arrays ---------------------------------------------------------------------------------------

    def with_defaults(self, mechanism: Mechanism, options: Mapping[str, Any]) -> dict[str, Any]:
        """The options, with what the mechanism decides where they are silent."""
        silent = ((name, decide) for name, decide in self._decided.items() if options.get(name) is None)
        return {**options, **{name: decide(mechanism) for name, decide in silent}}

    @property
    def decisions(self) -> dict[str, Callable[[Mechanism], Any] | None]:
        """The options, each with the function that chooses its default for a mechanism."""
        return dict(self.options) if isinstance(self.options, Mapping) else dict.fromkeys(self.options)

    @property
    def _decided(self) -> dict[str, Callable[[Mechanism], Any]]:
        """Options that are the mechanism's to decide."""
        return {name: decide for name, decide in self.decisions.items() if decide is not None}

    def require_options(self, options: Mapping[str, Any]) -> None:
        """Every option without a default is given."""
        takes = self.recursion or self.expression
        assert takes is not None
        parameters = signature(takes).parameters
        for name in self.options:
            if name not in options and name not in self._decided and parameters[name].default is Parameter.empty:
                raise TypeError(f"{self.name} needs {name!r}: pass {name}=... to compile")

    def shapes(
        self, mechanism: Mechanism, options: Mapping[str, Any] = NO_OPTIONS
    ) -> list[tuple[str, tuple[int, ...]]]:
        """Name and core shape of every input."""
        return [(name, self._shape(name, mechanism, options)) for name in self.inputs]

    def _shape(self, name: str, mechanism: Mechanism, options: Mapping[str, Any]) -> tuple[int, ...]:
        if name in REDUCED and "fronts" in options:
            return REDUCED[name](mechanism, mechanism.nv - options["fronts"].pivots)
        if name in self.sizes:
            size = self.sizes[name]
            if isinstance(size, Space):
                return shape_of(size, mechanism)
            return size(mechanism) if callable(size) else size
        if name not in SHAPES:
            raise ValueError(
                f"the shape of input {name!r} of algorithm {self.name!r} is unknown: give sizes={{{name!r}: ...}}, a "
                "tuple or a function of the mechanism"
            )
        return SHAPES[name](mechanism)

    @property
    def configurations(self) -> tuple[str, ...]:
        """The inputs that are configurations, which move along tangent vectors."""
        return tuple(name for name in self.inputs if name in CONFIGURATIONS and name not in self.sizes)

    @property
    def outputs(self) -> tuple[str, ...]:
        """Names of the results."""
        return (self.output,) if isinstance(self.output, str) else self.output

    def result_shape(
        self,
        output: str,
        mechanism: Mechanism,
        computed: tuple[Computation, ...] | None = None,
        options: Mapping[str, Any] = NO_OPTIONS,
    ) -> tuple[int, ...] | None:
        """Shape of a result, needed where the result has no elements; None if it follows from the result."""
        if output in self.sizes or output in SHAPES:
            return self._shape(output, mechanism, options)
        if computed is None or output != "result" or len(computed) > 1:
            return None
        expression = computed[0].expression
        sides = (expression.codomain,) if expression.is_vector else (expression.codomain, expression.domain)
        sizes = [shape_of(side, mechanism) for side in sides if side is not None]
        return sizes[0] if expression.is_vector else tuple(math.prod(size) for size in sizes)

    @property
    def given_ports(self) -> tuple[str, ...]:
        """The optional inputs that it takes, and its status if it reports that."""
        reported = {STATUS} if self.outputs[-len(STATUSES) :] == STATUSES else set()
        return tuple(name for name in self.ports if name in {*self.inputs} | reported)

    def with_ports(self, *names: str) -> Algorithm:
        """A copy with these optional inputs too, after the others in the order of ``ports``."""
        for name in names:
            if name not in self.ports:
                known = ", ".join(self.ports) or "none"
                raise ValueError(f"{self.name} has no optional input {name!r}; it has: {known}")
        added = [name for name in self.ports if name in names and name not in self.given_ports]
        inputs = (*self.inputs, *(name for name in added if name != STATUS))
        output = (*self.outputs, *STATUSES) if STATUS in added else self.output
        return replace(self, name="_with_".join([self.name, *added]), inputs=inputs, output=output)

    def check(self, mechanism: Mechanism, infinitesimal: bool = False) -> None:
        """Refuse mechanisms for which the result would be wrong or undefined; those with infinitesimal motions too,
        unless the caller looks after them."""
        inertia, constraints, instead, constrained = self.requires
        if mechanism.loops and not constraints:
            names = ", ".join(repr(loop.name) for loop in mechanism.loops)
            choice = f"{instead or constrained}, or " if instead or constrained else ""
            raise MechanismError(
                f"{self.name} would ignore the loops {names} of mechanism {mechanism.name!r}: use "
                f"{choice}mech.spanning_tree if the loops are meant to be open"
            )
        if inertia:
            require_inertia(mechanism, self.name, inertia == "constrained")
        if inertia == "constrained" and mechanism.loops and not (infinitesimal or "active" in self.given_ports):
            refuse_infinitesimal_motions(mechanism, self.name)


# Why recursions are written by hand, and what answers for mechanisms with constraints.
COMPOSITE_BODIES = "products of derivatives share composite bodies; operator by operator they would be summed again"
CLOSED = "linkwise.constraints"
LINEARIZATION = "linkwise.linearize or linkwise.control.rate_jacobian"


# -- registration --------------------------------------------------------------------------------------

#: Everything that ``compile`` takes by name.
ALGORITHMS: dict[str, Algorithm] = {}
#: What gives the same of mechanisms with constraints, where the algorithm of this name serves trees alone.
WITHIN_CONSTRAINTS: dict[str, Algorithm] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


def register(algorithm: Algorithm, within_constraints: bool = False) -> Algorithm:
    """Register an algorithm under its name; ``within_constraints``: as the one for mechanisms with constraints, where
    another algorithm of this name serves trees.
    """
    known = WITHIN_CONSTRAINTS if within_constraints else ALGORITHMS
    if algorithm.name in known:
        raise ValueError(f"there is an algorithm {algorithm.name!r} already: give this one another name")
    known[algorithm.name] = algorithm
    return algorithm


def algorithm(
    inputs: tuple[str, ...],
    output: str | tuple[str, ...] = "",
    *,
    reason: str,
    name: str = "",
    within_constraints: bool = False,
    **more: Any,
) -> Callable[[Function], Function]:
    """Register the decorated recursion. Its name and that of its output default to the function's name; ``more`` are
    fields of ``Algorithm``.
    """

    def note(recursion: Function) -> Function:
        called = name or recursion.__name__
        register(Algorithm(called, inputs, output or called, recursion, reason=reason, **more), within_constraints)
        return recursion

    return note


def expressed(
    name: str, inputs: tuple[str, ...], output: str | tuple[str, ...] = "", **more: Any
) -> Callable[[Function], Function]:
    """Registers a function ``expression(mechanism, **options)``; as ``algorithm``."""

    def note(expression: Function) -> Function:
        register(Algorithm(name, inputs, output or name, expression=expression, **more))
        return expression

    return note


def where_independent(expression: Callable[..., Any]) -> Callable[..., Any]:
    """Use an expression that eliminates one joint at a time, where coordinates are independent. Returns None with
    mimic joints, which the recursion handles.
    """

    def unless_coupled(mechanism: Mechanism, **options: Any) -> Any:
        return None if mechanism.coordinates.mimic_joints else expression(mechanism, **options)

    unless_coupled.__doc__ = expression.__doc__
    return unless_coupled


# -- expressions of callers ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Written(Algorithm):
    """An operator expression, evaluated as it is written or in an equal ``form``."""

    form: Expression | None = None

    def computed_as(self, expression: Expression) -> Expression:
        return expression if self.form is None else self.form

    @property
    def forms(self) -> Callable[[Mechanism], Iterable[Algorithm]]:
        def others(mechanism: Mechanism) -> list[Algorithm]:
            assert self.expression is not None
            _, *promising = promising_forms(self.expression(mechanism), mechanism)  # type: ignore[arg-type]
            return [replace(self, form=form) for form in promising]

        return others


WITH_CONSTRAINTS = (
    "an expression with op.L in it (accelerations per force are W - W @ G.T @ (G @ W @ G.T).inv @ G @ W with "
    "G = op.L @ op.phi.T @ op.H.T and W the inverse that is written here, as .inv is always that of the spanning tree)"
)


def from_expression(expression: Expression) -> Algorithm:
    """The algorithm that evaluates an operator expression of q and its vectors, in order of appearance. By default in
    the cheapest equal form; ``simplify=False`` evaluates it as written.
    """
    spaces = input_vectors(expression)
    if "q" in spaces:
        raise ValueError(
            "a vector of an expression must not be called 'q': the kernel's first input is the configuration"
        )
    heeds_loops = any(isinstance(part, Operator) and part.record is L.record for part in expression.walk())
    solves = SOLVES_WITH_MULTIPLIERS if heeds_loops else SOLVES_TREE.or_use(WITH_CONSTRAINTS)
    return Written(
        "expression",
        ("q", *spaces),
        "result",
        options=("simplify",),
        expression=lambda mechanism, simplify=True: expression,
        sizes=dict(spaces),
        requires=solves if _is_articulated(expression) else ANY,
    )


def _is_articulated(expression: Expression) -> bool:
    """Whether the expression inverts joint inertias or the mass matrix."""
    parts = list(expanded(expression).walk())
    if any(isinstance(part, Factored) and M in part.walk() for part in parts):
        return True
    operators = (part for part in parts if isinstance(part, Operator))
    return any(part.record.action(part.adjoint).needs for part in operators if part.record.apply is not None)


def shape_of(space: Space, mechanism: Mechanism) -> tuple[int, ...]:
    """Core shape of a vector of a space."""
    if space == SCALAR:
        return ()
    return (mechanism.n_links, 6) if space in (FORCE, MOTION) else (size_of(space, mechanism),)
