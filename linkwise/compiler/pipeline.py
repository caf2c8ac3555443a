"""The bridge between mechanics and compiler: a mechanism and an algorithm become a kernel.

trace     Algorithm, Mechanism, parameters  -> Program (folded and shared while it grows), list of sweeps
simplify  Program                           -> Program with fused multiply-adds
order     Program                           -> Program with few values alive at a time
emit      Program, Options                  -> source text of a target
load      Program, Options                  -> function of arrays (machine code from the disk cache if present)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from math import isfinite
from typing import Any

import numpy as np

from ..display import stages
from ..mechanics.algorithms.catalogue import ALGORITHMS, Algorithm, from_expression
from ..mechanics.operators.explain import Computation, explain
from ..mechanics.operators.expression import Expression
from ..mechanics.recursions.rolled import NotRolled
from ..mechanics.recursions.sweep_log import SweepLog, logged
from ..mechanics.recursions.tree import Tree, build_tree
from ..mechanism import Mechanism, MechanismError, require_mechanism
from .ir.ops import CONST
from .ir.program import Array, Program
from .kernel import Kernel
from .known_targets import load
from .passes.differentiate import Directions, differentiate
from .recipes import remembered
from .requests import checked_settings, find_algorithm, parameter_arrays, refuse_unused, too_deep
from .rolling import choice, list_examples, rolled
from .runtime.memory import collection_paused
from .trace import inline, trace


def compile(
    algorithm: str | Callable[..., Any] | Algorithm | Expression,
    mech: Mechanism,
    dtype: str = "float64",
    target: str = "cpu",
    parameters: Sequence[str] = (),
    loops: bool | None = None,
    ports: str | Sequence[str] = (),
    **options: Any,
) -> Kernel:
    """A kernel for one algorithm and one mechanism.

    algorithm    a name ("forward_dynamics"), the public function itself (``linkwise.forward_dynamics``), an operator
                 expression (the kernel then takes q and the expression's vectors in order of appearance), or an
                 Algorithm; docs/api.md lists the names: those of the array functions of linkwise, "denoc_..." and
                 "diagonal_..." for those modules'
    dtype        "float64" or "float32"
    target       "cpu" (SIMD machine code), "cuda", "numpy" (an interpreter: slow, no compilation), or the name of a
                 target of your own (``linkwise.extend.register_target``)
    parameters   numbers of the mechanism that become inputs of the kernel after the algorithm's own: "mass" (n_links,),
                 "com" (n_links, 3), "inertia" (n_links, 3, 3) about the centre of mass, "pose" (n_links, 4, 4) of each
                 joint in its parent link, "gravity" (3,), or of one link: "forearm.mass"; "armature" (nv,), or of one
                 joint: "elbow.armature"; "pin.pose_a" and "pin.pose_b" (4, 4) of the sides of a loop, in the frames of
                 its links; "rod.length" of a distance
    loops        whether sweeps are loops over the links (True) or straight-line code (False); by default a compromise
                 of compile time and speed: loops for many links of few link classes
    ports        optional inputs that the kernel takes after the others: "wrenches" (n_links, 6) on the links, "active"
                 (len(mech.loops),), 1 for active constraints and 0 for inactive ones; "status": no input, but the
                 additional results "reliability" and "consistency" of accelerations under constraints, above 1 where
                 these are reliable: the kernel that ``linkwise.forward_dynamics`` runs
    options      options of the algorithm, such as link="tool", frame="world"; for an expression simplify=False, to
                 compute it as written and not in the cheapest equal form (``Expression.simplify``)
    """
    try:
        chosen = find_algorithm(algorithm, mech, ports)
        kernel = _compiled(chosen, mech, dtype, target, parameters, loops, options)
        known = not isinstance(algorithm, (Algorithm, Expression)) and chosen.name in ALGORITHMS
        named = chosen.name if known else algorithm
        return kernel.made_by(compile, named, mech, dtype, target, tuple(parameters), loops, ports, **options)
    except RecursionError:
        if not isinstance(algorithm, Expression):
            raise
        raise too_deep() from None


def _compiled(
    chosen: Algorithm,
    mech: Mechanism,
    dtype: str,
    target: str,
    parameters: Sequence[str],
    loops: bool | None,
    options: dict[str, Any],
) -> Kernel:
    require_mechanism(mech)
    dtype, target, options = checked_settings(chosen, dtype, target, options)
    chosen.check(mech)
    settled = chosen.with_defaults(mech, options)
    with collection_paused(), stages(f"compile {chosen.name}", 2) as bar:
        bar.stage("tracing")
        entry = remembered(_trace_for_kernel, chosen, mech, tuple(parameters), settled, loops)
        sweeps, by_hand, explained = entry.notes
        plan = (lambda operations: entry.again().traced.explanation(operations)) if explained else None
        bar.stage("machine code")
        configurations = dict.fromkeys(chosen.configurations, mech)
        return loaded(entry.program, dtype, target, [(a, b) for a, b in sweeps], configurations, plan, by_hand)


@dataclass(frozen=True)
class _ForKernel:
    """A traced program with its sweeps, the reason for being a recursion, and whether there is a plan."""

    traced: Traced
    notes: tuple[list[tuple[str, str]], str, bool]

    @property
    def program(self) -> Program:
        return self.traced.program


def _trace_for_kernel(
    chosen: Algorithm, mech: Mechanism, parameters: Sequence[str], options: Mapping[str, Any], loops: bool | None
) -> _ForKernel:
    traced = trace_cheapest_form(chosen, mech, parameters, options, loops)
    refuse_unused(chosen, traced.program)
    reason = (chosen.for_loops if traced.program.loops else chosen).reason
    by_hand = f"a recursion written by hand: {reason}" if traced.computed is None and reason else ""
    return _ForKernel(traced, (list(traced.log.sweeps), by_hand, traced.computed is not None))


def loaded(
    program: Program,
    dtype: str,
    target: str,
    sweeps: Sequence[tuple[str, str]],
    configurations: Mapping[str, Mechanism],
    plan: Callable[[dict[str, int]], str] | None = None,
    origin: str = "",
) -> Kernel:
    """Stages 2 to 5: the kernel of a traced program; ``plan`` and ``origin`` are for ``Kernel.plan``."""
    function = load(program, dtype, target)
    return Kernel(program, dtype, target, sweeps, function, configurations, plan, origin)


@dataclass(frozen=True)
class Traced:
    """Result of running an algorithm on symbols.

    program     the operations
    log         the sweeps in order
    computed    expressions with the plans that ran; None for a handwritten recursion
    tree        the traced tree, with symbols for numbers that are inputs
    saved       savings by computing an equal form instead of the written one, in words
    """

    program: Program
    log: SweepLog
    computed: tuple[Computation, ...] | None
    tree: Tree
    saved: str = ""

    @property
    def operations(self) -> int:
        return sum(self.program.op_counts.values())

    @property
    def explanation(self) -> Callable[[dict[str, int]], str] | None:
        """The plan as text, with operations of each sweep."""
        computed, tree, saved, looped = self.computed, self.tree, self.saved, self.program.loops
        if computed is None:
            return None
        return lambda operations: explain(computed, list_examples(tree) if looped else tree, operations, saved)


def trace_cheapest_form(
    algorithm: Algorithm,
    mech: Mechanism,
    parameters: Sequence[str],
    options: Mapping[str, Any],
    loops: bool | None = False,
) -> Traced:
    """Stage 1 for an algorithm and all equivalent ones: the one with the fewest operations."""
    written = best = trace_with_plan(algorithm, mech, parameters, options, loops)
    for form in algorithm.forms(mech) if algorithm.forms and options.get("simplify", True) else ():
        other = trace_with_plan(form, mech, parameters, options, loops)
        if other.operations < best.operations:
            best = replace(other, saved=f"{other.operations} operations instead of {written.operations}")
    return best


def operations(expression: Expression, mech: Mechanism) -> int:
    """Scalar operations per state of an expression as it is written."""
    return trace_with_plan(from_expression(expression), mech).operations


def trace_with_plan(
    algorithm: Algorithm,
    mech: Mechanism,
    parameters: Sequence[str] = (),
    options: Mapping[str, Any] | None = None,
    loops: bool | None = False,
    stages: bool = False,
) -> Traced:
    """Stage 1: run the algorithm on symbols, by the plans of its expressions for this mechanism. ``loops``: trace once
    per link class (True), link by link (False), or whichever pays (None). ``stages``: stages of a step become one loop.
    """
    extra, entries = parameter_arrays(mech, parameters)
    base, log = trace_derivatives(algorithm.differentiates, mech, parameters)
    options = algorithm.with_defaults(mech, options or {})
    inputs = [Array(name, shape) for name, shape in algorithm.shapes(mech, options)]
    computed = algorithm.computations(mech, **options)
    at_user_origins = algorithm.needs_user_origins(computed)
    without = algorithm.in_loops and algorithm.in_loops.operations_without(mech)
    if loops or (loops is None and choice.may_pay(mech.n_links, without)):
        result = _trace_loops(algorithm, mech, parameters, options, computed, at_user_origins, bool(loops))
        if result is not None:
            return _check_overflow(result, algorithm, mech)
    trees: list[Tree] = []

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        values = zip(arrays[len(inputs) :], entries, strict=True)
        numbers = {key: array[at] for array, places in values for key, at in places}
        trees.append(build_tree(mech, numbers, at_user_origins))
        symbols = arrays[: len(inputs)] if base is None else inline(base, *arrays)
        result = algorithm.run(computed, trees[0], symbols, options)
        results = [np.array(x, dtype=object) for x in ((result,) if isinstance(algorithm.output, str) else result)]
        shapes = [algorithm.result_shape(name, mech, computed, options) for name in algorithm.outputs]
        return [x if shape is None else x.reshape(shape) for x, shape in zip(results, shapes, strict=True)]

    def listen(set_section: Callable[[str], None]) -> None:
        log.on_section = set_section

    try:
        with logged(log):
            traced = run, [*inputs, *extra], algorithm.outputs, algorithm.name, listen
            pay = choice.loops_over_lists_pay if loops is None and not stages else None
            program = trace(*traced, pay, folds=stages)
    except ZeroDivisionError:
        raise MechanismError(
            f"{algorithm.name} divides by zero at every configuration of mechanism {mech.name!r}: a block that it "
            "inverts is singular, such as the inertia of a link without mass"
        ) from None
    return _check_overflow(Traced(program, log, computed, algorithm.tree_for(trees[0])), algorithm, mech)


def _check_overflow(traced: Traced, algorithm: Algorithm, mech: Mechanism) -> Traced:
    """Raise if a number computed from the mechanism's numbers overflows."""
    blocks = (block for block, _ in traced.program.blocks)
    if all(isfinite(node.value) for block in blocks for node in block.nodes if node.op is CONST):
        return traced
    raise MechanismError(
        f"{algorithm.name} of mechanism {mech.name!r} computes numbers beyond 1e308 from its masses, inertias and "
        "lengths: some of these are too large or too small to compute with; correct them, or use other units"
    )


def _trace_loops(
    algorithm: Algorithm,
    mech: Mechanism,
    parameters: Sequence[str],
    options: Mapping[str, Any],
    computed: tuple[Computation, ...] | None,
    at_user_origins: bool,
    wanted: bool,
) -> Traced | None:
    """The algorithm traced once per link class. None if that is impossible, or if it does not pay and is not
    ``wanted``."""
    without = algorithm.in_loops and algorithm.in_loops.operations_without(mech)
    if without is not None:
        algorithm, computed = algorithm.for_loops, None
    try:
        if computed is None and not algorithm.link_by_link:
            raise NotRolled("it is a recursion written by hand")
        if parameters:
            raise NotRolled("numbers of the mechanism are inputs")
        tree = build_tree(mech, None, at_user_origins)
        log = SweepLog()
        with logged(log):
            program = rolled(algorithm, mech, tree, computed, options, log)
    except NotRolled as reason:
        if wanted:
            raise MechanismError(
                f"{algorithm.name} of mechanism {mech.name!r} has no program with loops: {reason}; leave loops out"
            ) from None
        return None
    if not wanted and not choice.pay(program, without):
        return None
    return Traced(program, log, computed, tree)


def trace_algorithm(
    algorithm: Algorithm, mech: Mechanism, parameters: Sequence[str] = (), options: Mapping[str, Any] | None = None
) -> tuple[Program, SweepLog]:
    """The program of an algorithm, and its sweeps."""
    traced = trace_with_plan(algorithm, mech, parameters, options)
    assert not traced.program.loops
    return traced.program, traced.log


def trace_derivatives(name: str | None, mech: Mechanism, parameters: Sequence[str]) -> tuple[Program | None, SweepLog]:
    """The program of an algorithm that ``differentiates`` another one: the result of the other, and as second output
    its derivatives along tangent directions of its first input, a configuration."""
    if name is None:
        return None, SweepLog()
    program, log = trace_algorithm(ALGORITHMS[name], mech, parameters)
    return differentiate(program, [Directions(0, basis=tangent_basis(mech))], "forward", value=True), log


def tangent_basis(mech: Mechanism) -> Program:
    """The program of N(q), (nq, nv): the coordinate rates dq/dt = N(q) v, differentiated by v."""
    rates, _ = trace_algorithm(ALGORITHMS["coordinate_rates"], mech)
    return differentiate(rates, [Directions(1)], "forward")
