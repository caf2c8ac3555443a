"""Algorithms as functions of CasADi."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping
from typing import Any

import casadi
import numpy as np

import linkwise as lw

from ..frameworks import ActingCall, UnderForces, algorithm_named, asked, kept, only_result
from .checks import Checked
from .machine_code import machine_function
from .matrices import identifier, matrix_shape, pattern, positions


def function(
    algorithm: Any,
    mech: lw.Mechanism | None = None,
    *,
    machine_code: bool = False,
    states: int = 1,
    result: str | None = None,
    **options: Any,
) -> casadi.Function:
    """A ``casadi.Function`` with linkwise's names of inputs and outputs.

    algorithm, mech   as for ``linkwise.compile``, with ``parameters`` and other options; or a kernel alone
    machine_code      False: expressions of scalar symbols (SX), with CasADi's derivatives of all orders and its code
                      generation.  True: calls of the kernel's machine code, with derivatives that are kernels too
    states            with machine code: number of states in one call, side by side as in ``casadi.Function.map``, and
                      computed together
    result            the requested one of several results; with machine code there is only one

    A vector is a column; an array of more axes a matrix with its last axis for columns, such as (4 n, 4) for poses.
    Structural zeros are not stored. Numbers are float64.
    """
    if isinstance(algorithm, lw.Kernel):
        if mech is not None or options:
            raise TypeError(
                f"{algorithm.name} is a kernel already: mechanism and options are those it was compiled with"
            )
        kernel = algorithm
    elif mech is None:
        raise TypeError(f"function takes an algorithm and a mechanism, or a kernel; got {algorithm!r} alone")
    else:
        where: dict[str, Any] = {} if machine_code else {"target": "numpy", "loops": False}  # nothing runs, no loops
        kernel = lw.compile(algorithm, mech, **{**where, **options})
    if result is not None or machine_code:
        kernel = only_result(kernel, result)
    if not machine_code:
        if states != 1:
            raise ValueError("states are for machine code: an expression is repeated by f.map(states)")
        return symbolic_function(kernel)
    if kernel.dtype != "float64" or kernel.target != "cpu":
        raise ValueError(f"CasADi computes in float64 on the CPU, and {kernel!r} does not")
    if isinstance(states, bool) or not isinstance(states, int) or states < 1:
        raise ValueError(f"states must be an integer, at least 1, got {states!r}")
    return machine_function(kernel, states)


def named_function(name: str, of_loops: bool = False) -> Callable[..., Any]:
    """The function of symbols or numbers that belongs to an algorithm of linkwise."""
    algorithm = algorithm_named(name, "linkwise.casadi.closed" if of_loops else "linkwise.casadi", of_loops)

    def call(
        mech: lw.Mechanism,
        *arguments: Any,
        wrenches: Any = None,
        parameters: Mapping[str, Any] | None = None,
        forces: Any = None,
        ctrl: Any = None,
        activation: Any = None,
        **options: Any,
    ) -> Any:
        if forces is not None or ctrl is not None or activation is not None:
            acts = {"forces": forces, "ctrl": ctrl, "activation": activation}
            more = {"wrenches": wrenches, "parameters": parameters, **options}
            return _UNDER_FORCES(algorithm, call, mech, arguments, acts, more)
        wanted, values = asked(algorithm, arguments, wrenches, parameters, options)
        options = {"parameters": wanted.parameters, "result": wanted.result, **dict(wanted.options)}
        return kept(mech, (function, wanted), lambda: function(wanted.algorithm, mech, **options))(*values)

    call.__name__ = name
    call.__doc__ = (
        f"``linkwise.{'closed.' * of_loops}{name}`` of CasADi's symbols or numbers; ``parameters`` by name, such as "
        "masses, too."
    )
    return call


def _evaluated(mech: lw.Mechanism, call: ActingCall, values: tuple[Any, ...]) -> Any:
    """Joint forces of force elements, of CasADi's symbols or numbers."""
    made = kept(mech, (function, call), lambda: symbolic_function(call.compiled(mech, target="numpy")))
    return made(*values)


_UNDER_FORCES = UnderForces(_evaluated, lambda size, beside: casadi.DM.zeros(size))


# -- programs evaluated on symbols -----------------------------------------------------------------------


#: What operations mean, as ``compiler/targets/numpy_reference.py`` defines it.
MEANING: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "sqrt": casadi.sqrt,
    "sin": casadi.sin,
    "cos": casadi.cos,
    "atan2": casadi.atan2,
    "less": operator.lt,
    "select": casadi.if_else,
}


def symbolic_function(kernel: lw.Kernel) -> casadi.Function:
    """The kernel's program as expressions; elements that are always zero are not stored."""
    program = kernel.straight_line
    symbols = [casadi.SX.sym(identifier(array.name), *matrix_shape(array.shape)) for array in program.inputs]
    elements = []
    for symbol, array in zip(symbols, program.inputs, strict=True):
        by_column = symbol.elements()
        elements.append([by_column[index] for index in positions(array.shape)])
    values: dict[Any, Any] = {}
    for node in program.nodes:
        if node.op.name == "const":
            values[node] = node.value
        elif node.op.name == "input":
            array, element = node.value
            values[node] = elements[array][element]
        else:
            values[node] = MEANING[node.op.name](*[values[arg] for arg in node.args])
    results = []
    for array, nodes, present in zip(program.outputs, program.results, program.sparsity, strict=True):
        indices = positions(array.shape)
        order = np.argsort(indices)
        order = order[present.ravel()[order]]
        stored = casadi.vertcat(*(values[nodes[k]] for k in order)) if len(order) else casadi.SX(0, 1)
        results.append(casadi.SX(pattern(*matrix_shape(array.shape), indices[order]), casadi.SX(stored)))
    names = [identifier(array.name) for array in program.inputs], [identifier(array.name) for array in program.outputs]
    return Checked(identifier(program.name), symbols, results, *names)
