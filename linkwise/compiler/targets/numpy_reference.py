"""The NumPy target: an interpreter that defines what every operation means.

All other targets are compared with ``evaluate``.  ``emit`` writes the same computation as Python source.
"""

from __future__ import annotations

import math
import operator
import weakref
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..ir import ops
from ..ir.program import CELL, INPUT, NUMBER, OUTPUT, For, Node, Place, Program
from .protocol import Options

# The meaning of the operations on arrays and on NumPy scalars, for which Python's operators are quicker than ufuncs.
# Fused operations round twice here; a target may round once.
MEANING: dict[ops.Op, Callable] = {
    ops.ADD: operator.add,
    ops.SUB: operator.sub,
    ops.MUL: operator.mul,
    ops.DIV: operator.truediv,
    ops.NEG: operator.neg,
    ops.SQRT: np.sqrt,
    ops.SIN: np.sin,
    ops.COS: np.cos,
    ops.ATAN2: np.arctan2,
    ops.LESS: operator.lt,
    ops.SELECT: np.where,
    ops.FMA: lambda a, b, c: a * b + c,
    ops.FMS: lambda a, b, c: a * b - c,
    ops.FNMA: lambda a, b, c: c - a * b,
    ops.RSQRT: lambda a: 1.0 / np.sqrt(a),
    ops.MINIMUM: np.minimum,
    ops.MAXIMUM: np.maximum,
}

_FORMULA = {
    ops.ADD: "{} + {}",
    ops.SUB: "{} - {}",
    ops.MUL: "{} * {}",
    ops.DIV: "{} / {}",
    ops.NEG: "-{}",
    ops.SQRT: "np.sqrt({})",
    ops.SIN: "np.sin({})",
    ops.COS: "np.cos({})",
    ops.ATAN2: "np.arctan2({}, {})",
    ops.LESS: "{} < {}",
    ops.SELECT: "np.where({}, {}, {})",
    ops.FMA: "{} * {} + {}",
    ops.FMS: "{} * {} - {}",
    ops.FNMA: "{2} - {0} * {1}",
    ops.RSQRT: "1.0 / np.sqrt({})",
    ops.MINIMUM: "np.minimum({}, {})",
    ops.MAXIMUM: "np.maximum({}, {})",
}


def evaluate(program: Program, arrays: Sequence[np.ndarray], dtype: str = "float64") -> list[np.ndarray]:
    """Outputs of ``program``, each of shape ``batch + core``, for inputs of shape ``batch + core``.

    The batch shapes of the inputs are broadcast against each other.  Arithmetic is done in ``dtype``.
    """
    kind = np.dtype(dtype)
    if program.carried:
        return _run_over_time(program, arrays, dtype)
    arrays, batch = _prepared(program, arrays, kind)
    if program.loops:
        return _run_loops(program, arrays, batch, kind)
    outputs = [np.empty(batch + array.shape, dtype=kind) for array in program.outputs]
    steps = _STEPS.get(program)
    if steps is None:
        steps = _STEPS[program] = _prepare_steps(program)
    values: list[Any] = [kind.type(number) for number in steps.constants] + [None] * steps.slots
    for slot, array, index in steps.inputs:
        values[slot] = arrays[array][index][()]  # a scalar for a single state
    with np.errstate(all="ignore"):
        for operation, slot, arguments, places in steps.operations:
            if len(arguments) == 2:
                values[slot] = operation(values[arguments[0]], values[arguments[1]])
            else:
                values[slot] = operation(*[values[argument] for argument in arguments])
            for output, index in places:
                outputs[output][index] = values[slot]
    for slot, output, index in steps.copies:
        outputs[output][index] = values[slot]
    return outputs


Index = tuple[Any, ...]  # of an element in an array of states


class _Steps(NamedTuple):
    """A straight-line program in interpretation order; values are in numbered slots.

    constants   of the first slots
    slots       number of other slots
    inputs      (slot, input, index of the element)
    operations  (function, slot of the result, slots of the arguments, output and index of each place of the result)
    copies      (slot, output, index) of results that are inputs or constants
    """

    constants: list[float]
    slots: int
    inputs: list[tuple[int, int, Index]]
    operations: list[tuple[Callable, int, tuple[int, ...], list[tuple[int, Index]]]]
    copies: list[tuple[int, int, Index]]


_STEPS: weakref.WeakKeyDictionary[Program, _Steps] = weakref.WeakKeyDictionary()


def _prepare_steps(program: Program) -> _Steps:
    places = _result_places(program)
    last_use = {arg: node for node in program.nodes for arg in node.args}
    constants = [node for node in program.nodes if node.op is ops.CONST]
    slots = {node: slot for slot, node in enumerate(constants)}
    first = count = len(constants)
    steps = _Steps([node.value for node in constants], 0, [], [], [])
    free: list[int] = []
    for node in program.nodes:
        if node.op is ops.INPUT:
            array, element = node.value
            steps.inputs.append((count, array, (..., *np.unravel_index(element, program.inputs[array].shape))))
            slots[node], count = count, count + 1
    for node in program.nodes:
        if node.op in (ops.CONST, ops.INPUT):
            steps.copies.extend((slots[node], *place) for place in places.get(node, ()))
            continue
        arguments = tuple(slots[arg] for arg in node.args)
        ended = {arg for arg in node.args if last_use[arg] is node and arg.op not in (ops.CONST, ops.INPUT)}
        free.extend(slots[arg] for arg in ended)  # values are released after their last use
        if free:
            slots[node] = free.pop()
        else:
            slots[node], count = count, count + 1
        steps.operations.append((MEANING[node.op], slots[node], arguments, places.get(node, [])))
    return steps._replace(slots=count - first)


def heed_unread(program: Program, arrays: Sequence[np.ndarray], outputs: Sequence[np.ndarray]) -> None:
    """In place, set results to NaN in states with a NaN in an input that no result depends on. Programs over time are
    left unchanged."""
    if program.carried:
        return
    batch = outputs[0].shape[: outputs[0].ndim - len(program.outputs[0].shape)] if outputs else ()
    for elements, array, core in zip(program.unread, arrays, program.inputs, strict=True):
        if len(elements):
            flat = np.asarray(array, dtype=float).reshape(
                *np.shape(array)[: np.ndim(array) - len(core.shape)], core.size
            )
            unknown = np.broadcast_to(np.isnan(flat[..., elements]).any(axis=-1), batch)
            for output in outputs:
                output[unknown] = np.nan


def _prepared(
    program: Program, arrays: Sequence[np.ndarray], kind: np.dtype
) -> tuple[list[np.ndarray], tuple[int, ...]]:
    """The arrays as numbers of one kind, and the shape of the batch."""
    if len(arrays) != len(program.inputs):
        raise ValueError(f"{program.name} takes {len(program.inputs)} arrays, {len(arrays)} were given")
    arrays = [np.asarray(array) for array in arrays]
    arrays = [array.astype(kind, casting="same_kind", copy=False) for array in arrays]
    shapes = (_batch_shape(x, a.name, a.shape) for x, a in zip(arrays, program.inputs, strict=True))
    return arrays, np.broadcast_shapes(*shapes)


def _run_loops(
    program: Program, arrays: Sequence[np.ndarray], batch: tuple[int, ...], kind: np.dtype
) -> list[np.ndarray]:
    """Reference semantics of loops: for each iteration, read all, compute, write all."""

    def flat(array: np.ndarray, core: tuple[int, ...]) -> np.ndarray:
        spread = np.broadcast_to(array, batch + core)
        return np.moveaxis(spread.reshape(*batch, math.prod(core)), -1, 0)

    inputs = [flat(x, a.shape) for x, a in zip(arrays, program.inputs, strict=True)]
    outputs = [(np.zeros if program.sparse else np.empty)((a.size, *batch), dtype=kind) for a in program.outputs]
    cells = np.empty((program.cells, *batch), dtype=kind)
    numbers = program.numbers.astype(kind)

    spaces = {INPUT: inputs, OUTPUT: outputs, CELL: [cells], NUMBER: [numbers]}
    for body, bases, around in program.iterations:
        reads = [np.broadcast_to(spaces[p.space][p.array][p.at(bases, around)], batch) for p in body.reads]
        operands = np.stack(reads, axis=-1) if reads else np.empty((*batch, 0), kind)
        (results,) = evaluate(body.program, [operands], kind.name)
        for element, place in enumerate(body.writes):
            spaces[place.space][place.array][place.at(bases, around)] = results[..., element]
    for output, places in zip(outputs, program.results, strict=False):
        output[:] = np.concatenate([cells, np.zeros((1, *batch), kind)])[places]
    return [
        np.ascontiguousarray(np.moveaxis(x, 0, -1)).reshape(batch + a.shape)
        for x, a in zip(outputs, program.outputs, strict=True)
    ]


def _run_over_time(program: Program, arrays: Sequence[np.ndarray], dtype: str) -> list[np.ndarray]:
    """Reference semantics of a loop over time: outputs of shape ``batch + (records,) + core``, without records if only
    the last is kept."""
    inputs = [np.asarray(values) for values in arrays]
    step, becomes = replace(program, carried=()), dict(program.carried)
    records, repeats = program.times([x.shape for x in inputs])
    leads = (len(array.axes) + len(array.shape) for array in program.inputs)
    batch = np.broadcast_shapes(*(x.shape[: x.ndim - lead] for x, lead in zip(inputs, leads, strict=True)))
    kept = [np.empty((*batch, records, *array.shape), dtype=dtype) for array in program.outputs]
    for record in range(records):
        for run in range(repeats):
            both = zip(program.inputs, inputs, strict=True)
            now = [x[_leading(len(array.shape), record, run)] if array.axes else x for array, x in both]
            for k, x in enumerate(evaluate(step, now, dtype)):
                inputs[becomes[k]] = x
        for k, (array, states) in enumerate(zip(program.outputs, kept, strict=True)):
            states[_leading(len(array.shape), record)] = inputs[becomes[k]]
    both = zip(program.outputs, kept, strict=True)
    return [x if array.axes else x[_leading(len(array.shape), -1)] for array, x in both]


def _leading(core: int, *index: int) -> tuple[Any, ...]:
    """Index of ``index`` in the axes just before the last ``core`` ones."""
    return (..., *index, *(slice(None),) * core)


def _batch_shape(array: np.ndarray, name: str, core: tuple[int, ...]) -> tuple[int, ...]:
    split = array.ndim - len(core)
    if split < 0 or array.shape[split:] != core:
        raise ValueError(f"input {name} must have trailing dimensions {core}, its shape is {array.shape}")
    return array.shape[:split]


def _result_places(program: Program) -> dict[Node, list[tuple[int, Index]]]:
    """For each result node, the outputs and indices where it is stored."""
    places: dict[Node, list[tuple[int, Index]]] = {}
    for output, (array, results) in enumerate(zip(program.outputs, program.results, strict=True)):
        for element, node in enumerate(results):
            places.setdefault(node, []).append((output, (..., *np.unravel_index(element, array.shape))))
    return places


def emit(program: Program, options: Options) -> str:
    """Python source of a function of the input arrays that returns a tuple of the output arrays."""
    parameters = [f"in_{array.name}" for array in program.inputs]
    real = f"np.{options.dtype}"
    lines = ["import numpy as np", "", "", f"def {program.name}({', '.join(parameters)}):"]
    for parameter in parameters:
        lines.append(f"    {parameter} = np.asarray({parameter}, dtype={real})")
    shapes = [f"{p}.shape[:{p}.ndim - {len(a.shape)}]" for p, a in zip(parameters, program.inputs, strict=True)]
    lines.append(f"    batch = np.broadcast_shapes({', '.join(shapes)})")
    if program.loops:
        lines += _looped_source(program, parameters, real)
    else:
        lines += _straight_source(program, parameters, real)
    lines.append("    return (" + "".join(f"out_{array.name}, " for array in program.outputs) + ")")
    return "\n".join(lines) + "\n"


def _straight_source(program: Program, parameters: Sequence[str], real: str) -> list[str]:
    def read(array: int, element: int) -> str:
        indices = "".join(f", {i}" for i in np.unravel_index(element, program.inputs[array].shape))
        return f"{parameters[array]}[...{indices}]"

    lines, names = _assignments(program, read, real, "    ")
    for array, results in zip(program.outputs, program.results, strict=True):
        lines.append(f"    out_{array.name} = np.empty(batch + {array.shape}, dtype={real})")
        for element, node in enumerate(results):
            indices = "".join(f", {i}" for i in np.unravel_index(element, array.shape))
            lines.append(f"    out_{array.name}[...{indices}] = {names[node]}")
    return lines


def _looped_source(program: Program, parameters: Sequence[str], real: str) -> list[str]:
    """Loops over the iterations; arrays are flat, with the batch as last axis."""
    flat = [f"flat_{array.name}" for array in program.inputs]
    names_of_space = {INPUT: flat, OUTPUT: [f"flat_out_{array.name}" for array in program.outputs]}
    names_of_space |= {CELL: ["cells"], NUMBER: ["numbers"]}

    def at(place: Place) -> str:
        base = "" if place.base is None else f"at[{place.base}] + "
        outer = "" if place.outer is None else f"around[{place.outer}] + "
        return f"{names_of_space[place.space][place.array]}[{base}{outer}{place.offset}]"

    def bodies(loop: For, indent: str) -> list[str]:
        lines = []
        for k, body in enumerate(loop.bodies):
            lines.append(f"{indent}{'if' if k == 0 else 'elif'} body == {k}:")
            read = partial(_read_at, [at(place) for place in body.reads])
            assignments, names = _assignments(body.program, read, real, f"{indent}    ")
            results = zip(body.writes, body.program.results[0], strict=True)
            lines += [*assignments, *(f"{indent}    {at(place)} = {names[node]}" for place, node in results)]
        return lines

    lines = [f"    numbers = np.array({program.numbers.tolist()}, dtype={real})"]
    for name, parameter, array in zip(flat, parameters, program.inputs, strict=True):
        spread = f"np.broadcast_to({parameter}, batch + {array.shape}).reshape(*batch, {array.size})"
        lines.append(f"    {name} = np.moveaxis({spread}, -1, 0)")
    sizes = zip(names_of_space[OUTPUT], (array.size for array in program.outputs), strict=True)
    for name, size in (*sizes, ("cells", program.cells)):
        made = "zeros" if program.sparse else "empty"
        lines.append(f"    {name} = np.{made}(({size}, *batch), dtype={real})")
    for loop in program.loops:
        lines.append(f"    # {loop.label}")
        if loop.inner is None:
            lines.append(f"    for body, at in zip({loop.which.tolist()}, {loop.bases.tolist()}):")
            lines += bodies(loop, "        ")
            continue
        rows, first, following = loop.inner, loop.inner.first, loop.inner.following
        lines += [
            f"    rows = list(zip({rows.which.tolist()}, {rows.bases.tolist()}, {following.tolist()}))",
            f"    for body, at, row in zip({loop.which.tolist()}, {loop.bases.tolist()}, {first.tolist()}):",
            "        around = at",
            *bodies(loop, "        "),
            "        while row >= 0:",
            "            body, at, row = rows[row]",
            *bodies(rows, "            "),
        ]
    for name, places in zip(names_of_space[OUTPUT], program.results, strict=False):
        lines.append(f"    {name} = np.concatenate([cells, np.zeros((1, *batch), dtype={real})])[{places.tolist()}]")
    for name, array in zip(names_of_space[OUTPUT], program.outputs, strict=True):
        lines.append(f"    out_{array.name} = np.moveaxis({name}, 0, -1).reshape(batch + {array.shape})")
    return lines


def _read_at(places: Sequence[str], _: int, element: int) -> str:
    return places[element]


def _assignments(
    program: Program, read: Callable[[int, int], str], real: str, indent: str
) -> tuple[list[str], dict[Node, str]]:
    """A line for every node, and the nodes' names."""
    names = {node: f"t{number}" for number, node in enumerate(program.nodes)}
    lines: list[str] = []
    section = ""
    for node in program.nodes:
        if node.section != section and node.args:
            section = node.section
            lines.append(f"{indent}# {section}")
        if node.op is ops.CONST:
            formula = f"{real}({node.value!r})"
        elif node.op is ops.INPUT:
            formula = read(*node.value)
        else:
            formula = _FORMULA[node.op].format(*(names[arg] for arg in node.args))
        lines.append(f"{indent}{names[node]} = {formula}")
    return lines, names
