"""The bridge between the towers: a mechanism and an algorithm become a kernel.

trace     Algorithm, Mechanism, parameters  -> Program (folded and shared while it grows), list of sweeps
simplify  Program                           -> Program with fused multiply-adds
order     Program                           -> Program with few values alive at a time
emit      Program, Options                  -> source text of a target
load      Program, Options                  -> function of arrays (machine code comes from the disk cache if it can)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from difflib import get_close_matches
from inspect import Parameter, signature
from typing import Any

import numpy as np

from .algorithms.catalogue import ALGORITHMS, Algorithm, from_expression
from .ir.program import Array, Program
from .ir.spec import check
from .kernel import Kernel, explaining
from .mechanism import Mechanism, MechanismError, require_mechanism
from .operators.explain import explain
from .operators.expression import Expression
from .passes.fuse_multiply_add import fuse_multiply_add
from .passes.order_for_registers import order_for_registers
from .recursions.sweep import SweepLog, logged
from .recursions.tree import plant
from .runtime import llvm_loader
from .runtime.cache import program_key
from .runtime.gufunc import make_gufunc
from .runtime.single_call import single_call
from .runtime.threads import threaded
from .targets import c_source, cuda_c, llvm_simd, numpy_reference
from .targets.protocol import Options
from .trace import trace

PARAMETER_SHAPES: dict[str, tuple[int, ...]] = {"mass": (), "com": (3,), "inertia": (3, 3), "pose": (4, 4)}
TARGETS = ("cpu", "cuda", "numpy")
DTYPES = ("float64", "float32")
LONG = 20_000  # operations: beyond, the short cut for single states saves little and would hold up other threads
MEANT = {"gpu": "cuda"}  # what is spelled unlike what it means
MAIN_ALGORITHMS = (
    "there is inverse_dynamics, forward_dynamics, mass_matrix, bias_force, jacobian, link_poses and every other array "
    "function of linkwise by its name; docs/api.md lists all"
)
EMITTERS = {"llvm": llvm_simd.emit, "c": c_source.emit, "cuda": cuda_c.emit, "numpy": numpy_reference.emit}


def compile(
    algorithm: str | Callable[..., Any] | Algorithm | Expression,
    mech: Mechanism,
    dtype: str = "float64",
    target: str = "cpu",
    parameters: Sequence[str] = (),
    **options: Any,
) -> Kernel:
    """A kernel for one algorithm and one mechanism.

    algorithm    a name ("forward_dynamics"), the public function of that name, an operator expression (the kernel
                 then takes q and the expression's vectors in order of appearance), or an Algorithm; docs/api.md lists
                 the names: those of the array functions of linkwise, "denoc_..." and "diagonal_..." for those modules'
    dtype        "float64" or "float32"
    target       "cpu" (SIMD machine code), "cuda", or "numpy" (an interpreter: slow, no compilation)
    parameters   numbers of the mechanism that become inputs of the kernel after the algorithm's own: "mass"
                 (n_links,), "com" (n_links, 3), "inertia" (n_links, 3, 3) about the centre of mass, "pose"
                 (n_links, 4, 4) of each joint in its parent link, "gravity" (3,), or of one link: "forearm.mass"
    options      what the algorithm needs fixed, such as link="tool", frame="world"
    """
    chosen = _algorithm(algorithm)
    require_mechanism(mech)
    dtype = _one_of("dtype", np.dtype(dtype).name if dtype in (float, np.float64, np.float32) else dtype, DTYPES)
    target = _one_of("target", target, TARGETS)
    for name in options:
        _one_of(f"option of {chosen.name}", name, chosen.options)
    _require_options(chosen, options)
    chosen.check(mech)
    options = chosen.with_defaults(mech, options)
    program, log = trace_algorithm(chosen, mech, parameters, options)
    kernel = Kernel(program, dtype, target, log.sweeps, load(program, dtype, target), optimize, emit)
    if chosen.expression is not None:
        expression = chosen.expression(**options)
        kernel._explain = lambda operations: explain(expression, mech, operations)
    return kernel


def trace_algorithm(
    algorithm: Algorithm, mech: Mechanism, parameters: Sequence[str] = (), options: dict[str, Any] | None = None
) -> tuple[Program, SweepLog]:
    """Stage 1: run the algorithm on symbols."""
    own = [Array(name, shape) for name, shape in algorithm.shapes(mech)]
    extra, entries = _parameter_arrays(mech, parameters)
    log = SweepLog()

    def run(*arrays):
        given = {
            key: values[at] for values, places in zip(arrays[len(own) :], entries, strict=True) for key, at in places
        }
        tree = plant(mech, given, algorithm.at_user_origins)
        result = np.array(algorithm.function(tree, *arrays[: len(own)], **(options or {})), dtype=object)
        empty = algorithm.empty_result(mech)
        return [result if empty is None else result.reshape(empty)]

    def listen(set_section: Callable[[str], None]) -> None:
        log.on_section = set_section

    try:
        with logged(log):
            program = trace(run, [*own, *extra], [algorithm.output], algorithm.name, listen)
    except ZeroDivisionError:
        raise MechanismError(
            f"{algorithm.name} divides by zero at every configuration of mechanism {mech.name!r}: a block that it "
            "inverts is singular, such as the inertia of a link without mass"
        ) from None
    return program, log


def optimize(program: Program) -> Program:
    """Stages 2 and 3: simplify and order."""
    return check(order_for_registers(fuse_multiply_add(program)))


def emit(program: Program, language: str, dtype: str) -> str:
    """Stage 4: source text of an optimized program, for the machine at hand where that matters."""
    language = _one_of("language", language, tuple(EMITTERS))
    options = llvm_loader.host_options(dtype) if language == "llvm" else Options(dtype)
    return EMITTERS[language](program, options)


def load(program: Program, dtype: str, target: str) -> Callable[..., Any]:
    """Stage 5: a function of arrays.  Machine code that is on disk already skips stages 2 to 4."""
    if target == "cuda":
        from .runtime import gpu

        return explaining(gpu.load(optimize(program), Options(dtype)), program, dtype)
    no_ufunc = not program.inputs or any(array.size == 0 for array in (*program.inputs, *program.outputs))
    if target == "numpy" or no_ufunc:
        return explaining(interpreter(program, dtype), program, dtype)
    options = llvm_loader.host_options(dtype)
    address = llvm_loader.load(
        lambda: llvm_simd.emit(optimize(program), options),
        llvm_simd.symbol(program),
        options,
        program_key(program, options),
    )
    operations = len(program.nodes)
    ufunc = make_gufunc(address, program.inputs, program.outputs, dtype, program.name)
    general = explaining(threaded(ufunc, operations), program, dtype)
    if operations > LONG:
        return general
    return single_call(address, program.inputs, program.outputs, dtype, general)


def interpreter(program: Program, dtype: str) -> Callable[..., Any]:
    """The NumPy reference as a function like any other kernel's."""

    def run(*arrays, out=None):
        result = numpy_reference.evaluate(program, arrays, dtype)[0]
        if out is None:
            return result
        np.copyto(out, result, casting="same_kind")
        return out

    return run


# -- what the caller asked for ------------------------------------------------------------------------


def _algorithm(asked: Any) -> Algorithm:
    if isinstance(asked, Algorithm):
        return asked
    if isinstance(asked, Expression):
        return from_expression(asked)
    name = asked if isinstance(asked, str) else _name_of(asked)
    return ALGORITHMS[_one_of("algorithm", name, tuple(ALGORITHMS), MAIN_ALGORITHMS)]


def _name_of(function: Any) -> str:
    """linkwise.inverse_dynamics is "inverse_dynamics", linkwise.denoc.inverse_dynamics "denoc_inverse_dynamics"."""
    name, module = getattr(function, "__name__", repr(function)), getattr(function, "__module__", "")
    own = f"{module.rpartition('.')[2]}_{name}"
    return own if own in ALGORITHMS else name


def _require_options(algorithm: Algorithm, options: dict[str, Any]) -> None:
    """Every option without a default is given."""
    parameters = signature(algorithm.function).parameters
    for name in algorithm.options:
        if name not in options and parameters[name].default is Parameter.empty:
            raise TypeError(f"{algorithm.name} needs {name!r}: pass {name}=... to compile")


def _one_of(what: str, value: Any, allowed: Sequence[str], otherwise: str = "") -> str:
    """``value`` if it is allowed; else an error with what comes close, or ``otherwise``, or all that is allowed."""
    if value in allowed:
        return value
    meant = MEANT.get(str(value))
    close = [meant] if meant in allowed else get_close_matches(str(value), allowed, n=3)
    hint = (
        f"did you mean {' or '.join(map(repr, close))}?"
        if close
        else otherwise or f"there is {', '.join(allowed) or 'none'}"
    )
    raise ValueError(f"unknown {what} {value!r}: {hint}")


def _parameter_arrays(mech: Mechanism, names: Sequence[str]) -> tuple[list[Array], list[list[tuple[Any, Any]]]]:
    """One input per name, and for each the numbers it replaces: ((kind, body), index into the array)."""
    if isinstance(names, str):
        names = (names,)
    arrays: list[Array] = []
    entries: list[list[tuple[tuple[str, int], Any]]] = []
    taken: set[tuple[str, int]] = set()
    places: list[tuple[tuple[str, int], Any]]
    for name in names:
        if not isinstance(name, str):
            raise TypeError(f"a parameter is named by a string such as 'mass' or 'forearm.mass', got {name!r}")
        link, _, kind = name.rpartition(".")
        if name == "gravity":
            array, places = Array(name, (3,)), [(("gravity", -1), ...)]
        elif link:
            _one_of(f"parameter of link {link!r}", kind, tuple(PARAMETER_SHAPES))
            body = mech.link_names.index(_one_of("moving link", link, mech.link_names))
            array, places = Array(name, PARAMETER_SHAPES[kind]), [((kind, body), ...)]
        else:
            _one_of("parameter", kind, (*PARAMETER_SHAPES, "gravity"))
            array = Array(name, (mech.n_links, *PARAMETER_SHAPES[kind]))
            places = [((kind, i), i) for i in range(mech.n_links)]
        clash = taken.intersection(key for key, _ in places)
        if clash:
            raise ValueError(f"parameter {name!r} repeats numbers that another parameter already makes inputs")
        taken.update(key for key, _ in places)
        arrays.append(array)
        entries.append(places)
    return arrays, entries
