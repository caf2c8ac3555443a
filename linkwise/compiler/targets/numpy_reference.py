"""The NumPy target: an interpreter that defines what every operation means.

All other targets are compared with ``evaluate``.  ``emit`` writes the same computation as Python source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import ops
from ..ir.program import Node, Program
from ..ir.recurrence import Recurrence
from .protocol import Options

# The meaning of the operations.  The fused ones round twice here; a target may round once.
MEANING: dict[ops.Op, Callable] = {
    ops.ADD: np.add,
    ops.SUB: np.subtract,
    ops.MUL: np.multiply,
    ops.DIV: np.divide,
    ops.NEG: np.negative,
    ops.SQRT: np.sqrt,
    ops.SIN: np.sin,
    ops.COS: np.cos,
    ops.ATAN2: np.arctan2,
    ops.LESS: np.less,
    ops.SELECT: np.where,
    ops.FMA: lambda a, b, c: a * b + c,
    ops.FMS: lambda a, b, c: a * b - c,
    ops.FNMA: lambda a, b, c: c - a * b,
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
}


def evaluate(program: Program, arrays: Sequence[np.ndarray], dtype: str = "float64") -> list[np.ndarray]:
    """Outputs of ``program``, each of shape ``batch + core``, for inputs of shape ``batch + core``.

    The batch shapes of the inputs are broadcast against each other.  Arithmetic is done in ``dtype``.
    """
    if len(arrays) != len(program.inputs):
        raise ValueError(f"{program.name} takes {len(program.inputs)} arrays, {len(arrays)} were given")
    kind = np.dtype(dtype)
    arrays = [np.asarray(array) for array in arrays]
    arrays = [array.astype(kind, casting="same_kind", copy=False) for array in arrays]
    batch = np.broadcast_shapes(
        *(_batch_shape(x, a.name, a.shape) for x, a in zip(arrays, program.inputs, strict=True))
    )
    outputs = [np.empty(batch + array.shape, dtype=kind) for array in program.outputs]
    places = _places_of_results(program, outputs)
    last_use = {arg: node for node in program.nodes for arg in node.args}
    values: dict[Node, np.ndarray] = {}
    with np.errstate(all="ignore"):
        for node in program.nodes:
            if node.op is ops.CONST:
                value = kind.type(node.value)
            elif node.op is ops.INPUT:
                array, element = node.value
                value = arrays[array][(..., *np.unravel_index(element, program.inputs[array].shape))]
            else:
                value = MEANING[node.op](*(values[arg] for arg in node.args))
            values[node] = value
            for output, index in places.get(node, ()):
                output[index] = value
            for arg in node.args:  # nothing is kept longer than it is needed
                if last_use[arg] is node:
                    values.pop(arg, None)
    return outputs


def repeat(
    program: Program, recurrence: Recurrence, arrays: Sequence[np.ndarray], dtype: str = "float64"
) -> list[np.ndarray]:
    """Outputs of the recurrence, each of shape ``batch + (records,) + core``; its meaning is this plain loop."""
    recurrence.check(program)
    given = {array.name: np.asarray(values) for array, values in zip(program.inputs, arrays, strict=True)}
    core = {array.name: len(array.shape) for array in (*program.inputs, *program.outputs)}
    records, repeats = recurrence.lengths(program, [x.shape for x in given.values()])
    batch = np.broadcast_shapes(
        *(x.shape[: x.ndim - core[name] - len(recurrence.axes(name))] for name, x in given.items())
    )
    kept = [np.empty((*batch, records, *array.shape), dtype=dtype) for array in program.outputs]
    for record in range(records):
        for run in range(repeats):
            now = [
                x[_leading(core[name], record, run)] if name in recurrence.per_run else x for name, x in given.items()
            ]
            found = evaluate(program, now, dtype)
            given |= {dict(recurrence.feeds)[a.name]: x for a, x in zip(program.outputs, found, strict=True)}
        for array, results in zip(program.outputs, kept, strict=True):
            results[_leading(core[array.name], record)] = given[dict(recurrence.feeds)[array.name]]
    return kept


def _leading(core: int, *index: int) -> tuple[Any, ...]:
    """Index of ``index`` in the axes just before the last ``core`` ones."""
    return (..., *index, *(slice(None),) * core)


def _batch_shape(array: np.ndarray, name: str, core: tuple[int, ...]) -> tuple[int, ...]:
    split = array.ndim - len(core)
    if split < 0 or array.shape[split:] != core:
        raise ValueError(f"input {name} must have trailing dimensions {core}, its shape is {array.shape}")
    return array.shape[:split]


def _places_of_results(program: Program, outputs: list[np.ndarray]) -> dict[Node, list[tuple[np.ndarray, tuple]]]:
    """For each result node: the output arrays and the indices in them at which it has to be stored."""
    places: dict[Node, list[tuple[np.ndarray, tuple]]] = {}
    for array, output, results in zip(program.outputs, outputs, program.results, strict=True):
        for element, node in enumerate(results):
            index = (..., *np.unravel_index(element, array.shape))
            places.setdefault(node, []).append((output, index))
    return places


def emit(program: Program, options: Options) -> str:
    """Python source of a function of the input arrays that returns a tuple of the output arrays."""
    names = {node: f"t{number}" for number, node in enumerate(program.nodes)}
    parameters = [f"in_{array.name}" for array in program.inputs]
    real = f"np.{options.dtype}"
    lines = ["import numpy as np", "", "", f"def {program.name}({', '.join(parameters)}):"]
    for parameter in parameters:
        lines.append(f"    {parameter} = np.asarray({parameter}, dtype={real})")
    shapes = [f"{p}.shape[:{p}.ndim - {len(a.shape)}]" for p, a in zip(parameters, program.inputs, strict=True)]
    lines.append(f"    batch = np.broadcast_shapes({', '.join(shapes)})")
    section = ""
    for node in program.nodes:
        if node.section != section and node.args:
            section = node.section
            lines.append(f"    # {section}")
        if node.op is ops.CONST:
            formula = f"{real}({node.value!r})"
        elif node.op is ops.INPUT:
            array, element = node.value
            indices = "".join(f", {i}" for i in np.unravel_index(element, program.inputs[array].shape))
            formula = f"{parameters[array]}[...{indices}]"
        else:
            formula = _FORMULA[node.op].format(*(names[arg] for arg in node.args))
        lines.append(f"    {names[node]} = {formula}")
    for array, results in zip(program.outputs, program.results, strict=True):
        lines.append(f"    out_{array.name} = np.empty(batch + {array.shape}, dtype={real})")
        for element, node in enumerate(results):
            indices = "".join(f", {i}" for i in np.unravel_index(element, array.shape))
            lines.append(f"    out_{array.name}[...{indices}] = {names[node]}")
    lines.append("    return (" + "".join(f"out_{array.name}, " for array in program.outputs) + ")")
    return "\n".join(lines) + "\n"
