"""The definition of an algorithm: an operator expression, or a handwritten recursion with the reason for it.

The decorators ``algorithm`` (for recursions) and ``expressed`` (for functions that return expressions) register
algorithms in ``ALGORITHMS``.
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
from ..operators.vectors import input_vectors, space_size
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

#: With constraints eliminated (``fronts``): p is the number of motions that they allow.
REDUCED: dict[str, Callable[[Mechanism, int], tuple[int, ...]]] = {
    "nu": lambda m, p: (p,),
    "nu_rate": lambda m, p: (p,),
    "eps": lambda m, p: (p,),
    "coriolis": lambda m, p: (p,),
    "factor": lambda m, p: (p, p),
    "factor_inverse": lambda m, p: (p, p),
    "derivatives": lambda m, p: (p, p, p),
}

#: An optional output, not an input: results with the status of the others.
STATUS = "status"
STATUSES = ("reliability", "consistency")

NO_OPTIONS: Mapping[str, Any] = MappingProxyType({})
Size = tuple[int, ...] | Callable[[Mechanism], tuple[int, ...]] | Space
Options = Sequence[str] | Mapping[str, Callable[[Mechanism], Any] | None]
CONFIGURATIONS = ("q", "q0", "q1")  # input names of configurations
CONFIGURATION_FIRST = ("q_next", "state")  # results that are configurations, or begin with one


class InLoops(NamedTuple):
    """The algorithm used for programs with loops.

    recursion           as for an ``Algorithm``
    reason              why programs without loops use another algorithm
    operations_without  expected operations of that other algorithm; they decide whether loops pay
    """

    recursion: Callable[..., Any]
    reason: str
    operations_without: Callable[[Mechanism], float]


@dataclass(frozen=True)
class FromDerivatives:
    """A recursion on the result of another algorithm and its derivatives along tangent directions of its first input, a
    configuration.

    differentiates   the name of the other algorithm, which has the same inputs
    recursion        ``recursion(tree, result, derivatives)``
    """

    differentiates: str
    recursion: Callable[..., Any]

    def __call__(self, tree: Tree, *arrays: Any) -> Any:
        return self.recursion(tree, *arrays)


class Requirements(NamedTuple):
    """Properties that a mechanism must have for a valid result.

    inertia       "tree" if the mass matrix must be positive definite, "constrained" if its restriction to allowed
                  motions must be; "" if neither matters
    constraints   whether the result is correct for mechanisms with constraints
    instead       the function for mechanisms with constraints, in words
    constrained   the equivalent algorithm for mechanisms with constraints: ``compile`` substitutes it
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
SOLVES_TREE = Requirements("tree", constraints=False)  # of motions, ignoring constraints
SOLVES_WITH_MULTIPLIERS = Requirements("tree")  # of motions and constraint forces
SOLVES_CONSTRAINED = Requirements("constrained")  # of the motions that constraints allow


def at_user_origins(tree: Tree) -> Tree:
    """Value of ``on_tree`` for recursions whose result depends on the origins of links: a tree with origins at user
    frames."""
    return tree


@dataclass(frozen=True)
class Algorithm:
    """A named result: ``inputs`` and ``output`` name arrays, ``options`` values fixed when compiling.

    SHAPES has the shapes of "q", "v", "a", "tau", "wrenches" and other names of the library.  Shapes of inputs with
    other names are in ``sizes``; shapes of outputs follow from the result.

    recursion       ``recursion(tree, *inputs, **options)``, if no expression gives the result at equal cost
    options         names; or a mapping from names to functions of the mechanism that choose defaults (``decisions.py``
                    has them for some names)
    expression      ``expression(mechanism, **options)`` returns an operator expression in vectors named like the
                    inputs, or a tuple of expressions for an array of their results.  It returns None for options and
                    mechanisms that need the recursion
    reason          why it is a recursion
    ports           optional inputs after the others, in this order (``with_ports``).  Recursions take them by name;
                    expressions take True for each used one.  "status" is an optional output: recursions take True, and
                    also return ``STATUSES``
    sizes           core shapes, or spaces, of inputs and outputs that SHAPES does not name
    requires        properties that a mechanism must have
    on_tree         the tree that expressions are evaluated on, if not the mechanism's own; ``at_user_origins``
    sweeps          how programs with loops are made from a recursion.  True: it only uses values of neighbouring links;
                    an algorithm: its substitute that does so; False: no loops
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
        defaults = self.options if isinstance(self.options, Mapping) else dict.fromkeys(self.options)
        options = {name: decide or DECISIONS.get(name) for name, decide in defaults.items()}
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
        """The expressions for a mechanism and their plans, in the order of execution; None for a recursion."""
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
        """The algorithm for a mechanism: for one with constraints, the registered variant ``within_constraints``, if
        any."""
        if not mechanism.loops:
            return self
        ports = self.given_ports
        name = self.name.removesuffix("".join(f"_with_{port}" for port in ports))
        plain = replace(self, name=name, inputs=tuple(x for x in self.inputs if x not in ports))
        registered = plain == ALGORITHMS.get(name)  # not a caller's algorithm with the same name
        other = (registered and WITHIN_CONSTRAINTS.get(name)) or ALGORITHMS.get(self.requires.constrained)
        return replace(other.with_ports(*ports), name=self.name) if other else self

    def function(self, tree: Tree, *arrays: Any, **options: Any) -> Any:
        """The result on a tree, for arrays of scalars."""
        return self.run(
            self.computations(tree.mechanism, **self.with_defaults(tree.mechanism, options)), tree, arrays, options
        )

    def run(
        self, computed: tuple[Computation, ...] | None, tree: Tree, arrays: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        """The result by given plans, or by the recursion."""
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
        """The algorithm used for programs with loops."""
        if self.in_loops is None:
            return self
        recursion, reason, _ = self.in_loops
        return replace(self, recursion=recursion, reason=reason, expression=None, sweeps=True)

    @property
    def in_loops(self) -> InLoops | None:
        """The separate algorithm used for programs with loops, if there is one."""
        return self.sweeps if isinstance(self.sweeps, InLoops) else None

    @property
    def link_by_link(self) -> bool:
        """Whether the recursion uses only values of neighbouring links."""
        return self.sweeps is True

    @property
    def differentiates(self) -> str | None:
        """The algorithm on whose derivatives the recursion works; see ``trace_derivatives`` in compiler/pipeline.py."""
        return self.recursion.differentiates if isinstance(self.recursion, FromDerivatives) else None

    @property
    def forms(self) -> Callable[[Mechanism], Iterable[Algorithm]] | None:
        """Equivalent algorithms that may cost less."""
        return None

    def computed_as(self, expression: Expression) -> Expression:
        """The equal form that is planned."""
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
        """Raise if an expression cannot be an algorithm's."""
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
        """The options, completed by defaults of the mechanism."""
        silent = ((name, decide) for name, decide in self._decided.items() if options.get(name) is None)
        return {**options, **{name: decide(mechanism) for name, decide in silent}}

    @property
    def decisions(self) -> dict[str, Callable[[Mechanism], Any] | None]:
        """The options, each with the function that chooses its default for a mechanism."""
        return dict(self.options) if isinstance(self.options, Mapping) else dict.fromkeys(self.options)

    @property
    def _decided(self) -> dict[str, Callable[[Mechanism], Any]]:
        """Options whose defaults the mechanism determines."""
        return {name: decide for name, decide in self.decisions.items() if decide is not None}

    def require_options(self, options: Mapping[str, Any]) -> None:
        """Raise unless every option without a default is given."""
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
                return space_shape(size, mechanism)
            return size(mechanism) if callable(size) else size
        if name not in SHAPES:
            raise ValueError(
                f"the shape of input {name!r} of algorithm {self.name!r} is unknown: give sizes={{{name!r}: ...}}, a "
                "tuple or a function of the mechanism"
            )
        return SHAPES[name](mechanism)

    @property
    def configurations(self) -> tuple[str, ...]:
        """The inputs that are configurations and vary along tangent vectors."""
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
        """Shape of a result, needed for a result without elements; None if it follows from the result."""
        if output in self.sizes or output in SHAPES:
            return self._shape(output, mechanism, options)
        if computed is None or output != "result" or len(computed) > 1:
            return None
        expression = computed[0].expression
        sides = (expression.codomain,) if expression.is_vector else (expression.codomain, expression.domain)
        sizes = [space_shape(side, mechanism) for side in sides if side is not None]
        return sizes[0] if expression.is_vector else tuple(math.prod(size) for size in sizes)

    @property
    def given_ports(self) -> tuple[str, ...]:
        """The used optional inputs, and "status" if reported."""
        reported = {STATUS} if self.outputs[-len(STATUSES) :] == STATUSES else set()
        return tuple(name for name in self.ports if name in {*self.inputs} | reported)

    def with_ports(self, *names: str) -> Algorithm:
        """A copy with these optional inputs as well, after the others in the order of ``ports``."""
        for name in names:
            if name not in self.ports:
                known = ", ".join(self.ports) or "none"
                raise ValueError(f"{self.name} has no optional input {name!r}; it has: {known}")
        added = [name for name in self.ports if name in names and name not in self.given_ports]
        inputs = (*self.inputs, *(name for name in added if name != STATUS))
        output = (*self.outputs, *STATUSES) if STATUS in added else self.output
        return replace(self, name="_with_".join([self.name, *added]), inputs=inputs, output=output)

    def check(self, mechanism: Mechanism, infinitesimal: bool = False) -> None:
        """Raise for mechanisms with a wrong or undefined result; also for infinitesimal motions, unless the caller
        handles them."""
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


# Reasons for handwritten recursions, and alternatives for mechanisms with constraints.
COMPOSITE_BODIES = "products of derivatives share composite bodies; operator by operator they would be summed again"
CLOSED = "linkwise.constraints"
LINEARIZATION = "linkwise.linearize or linkwise.control.rate_jacobian"


# -- registration --------------------------------------------------------------------------------------

#: All algorithms that ``compile`` takes by name.
ALGORITHMS: dict[str, Algorithm] = {}
#: Equivalent algorithms for mechanisms with constraints, by the name of the algorithm for trees.
WITHIN_CONSTRAINTS: dict[str, Algorithm] = {}
Function = TypeVar("Function", bound=Callable[..., Any])


def register(algorithm: Algorithm, within_constraints: bool = False) -> Algorithm:
    """Register an algorithm under its name. ``within_constraints``: as the variant for mechanisms with constraints,
    beside an algorithm of this name for trees."""
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
    """Register the decorated recursion. Its name and its output's name default to the function's name; ``more`` are
    fields of ``Algorithm``."""

    def note(recursion: Function) -> Function:
        called = name or recursion.__name__
        register(Algorithm(called, inputs, output or called, recursion, reason=reason, **more), within_constraints)
        return recursion

    return note


def expressed(
    name: str, inputs: tuple[str, ...], output: str | tuple[str, ...] = "", **more: Any
) -> Callable[[Function], Function]:
    """Register a function ``expression(mechanism, **options)``; arguments as for ``algorithm``."""

    def note(expression: Function) -> Function:
        register(Algorithm(name, inputs, output or name, expression=expression, **more))
        return expression

    return note


def skip_mimic_joints(expression: Callable[..., Any]) -> Callable[..., Any]:
    """Use an expression that eliminates one joint at a time, where coordinates are independent. Returns None with
    mimic joints, which the recursion handles.
    """

    def uncoupled(mechanism: Mechanism, **options: Any) -> Any:
        return None if mechanism.coordinates.mimic_joints else expression(mechanism, **options)

    uncoupled.__doc__ = expression.__doc__
    return uncoupled


# -- expressions of callers ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Written(Algorithm):
    """An operator expression, evaluated as written or in an equal ``form``."""

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


def space_shape(space: Space, mechanism: Mechanism) -> tuple[int, ...]:
    """Core shape of a vector of a space."""
    if space == SCALAR:
        return ()
    return (mechanism.n_links, 6) if space in (FORCE, MOTION) else (space_size(space, mechanism),)
