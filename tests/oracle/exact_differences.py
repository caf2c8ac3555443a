"""Derivatives of programs and kernels without any rule of differentiation: differences at 50 digits, complex steps."""

from __future__ import annotations

from collections.abc import Sequence

import mpmath
import numpy as np

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.program import Program
from linkwise.compiler.kernel import Kernel
from linkwise.compiler.targets import numpy_reference

DIGITS = 50
MEANING = {
    ops.ADD: lambda a, b: a + b,
    ops.SUB: lambda a, b: a - b,
    ops.MUL: lambda a, b: a * b,
    ops.DIV: lambda a, b: a / b,
    ops.NEG: lambda a: -a,
    ops.SQRT: mpmath.sqrt,
    ops.SIN: mpmath.sin,
    ops.COS: mpmath.cos,
    ops.ATAN2: mpmath.atan2,
    ops.LESS: lambda a, b: a < b,
    ops.SELECT: lambda c, a, b: a if c else b,
    ops.FMA: lambda a, b, c: a * b + c,
    ops.FMS: lambda a, b, c: a * b - c,
    ops.FNMA: lambda a, b, c: c - a * b,
}


def _at_50_digits(program: Program, arrays: Sequence[list], output: int) -> list:
    values = {}
    for node in program.nodes:
        if node.op is ops.CONST:
            values[node] = mpmath.mpf(node.value)
        elif node.op is ops.INPUT:
            values[node] = arrays[node.value[0]][node.value[1]]
        else:
            values[node] = MEANING[node.op](*(values[arg] for arg in node.args))
    return [values[node] for node in program.results[output]]


def partials(program: Program, arrays: Sequence[np.ndarray], array: int, output: int = 0) -> np.ndarray:
    """(shape of the output, size of the array): central differences with a step of 1e-20."""
    with mpmath.workdps(DIGITS):
        step = mpmath.mpf(10) ** -20
        columns = []
        for element in range(program.inputs[array].size):
            ends = []
            for sign in (1, -1):
                moved = [[mpmath.mpf(float(x)) for x in np.ravel(a)] for a in arrays]
                moved[array][element] += sign * step
                ends.append(_at_50_digits(program, moved, output))
            columns.append([float((a - b) / (2 * step)) for a, b in zip(*ends, strict=True)])
    return np.array(columns).T.reshape(*program.outputs[output].shape, program.inputs[array].size)


def complex_step(kernel: Kernel, arrays: Sequence[np.ndarray], name: str, directions: np.ndarray) -> np.ndarray:
    """Derivatives of a kernel's only result, batch + core + (n,), along directions (..., size, n) of one input.

    Im f(x + i h d) / h with h = 1e-150: exact to rounding, for programs without atan2.
    """
    program = kernel.traced
    position = kernel.inputs.index(name)
    core = program.inputs[position].shape
    steps = np.moveaxis(np.asarray(directions, dtype=float), -1, 0)
    given = [np.asarray(x, dtype=complex) for x in arrays]
    given[position] = given[position] + 1e-150j * steps.reshape(*steps.shape[:-1], *core)
    (result,) = numpy_reference.evaluate(program, given, "complex128")
    return np.moveaxis(result.imag * 1e150, 0, -1)


def tangent_columns(mech, q: np.ndarray) -> np.ndarray:
    """(..., nq, nv): N(q), written out joint by joint."""
    from linkwise import Floating, Spherical

    q = np.asarray(q, dtype=float)
    result = np.zeros((*q.shape[:-1], mech.nq, mech.nv))
    for body in mech.bodies:
        if body.mimic:
            continue
        at, along = mech.q_index(body.joint), mech.v_index(body.joint)
        own = np.zeros((*q.shape[:-1], body.nq, body.nv))
        if isinstance(body.kind, (Spherical, Floating)):
            w, x, y, z = np.moveaxis(q[..., at][..., :4], -1, 0)
            left = np.array([[-x, -y, -z], [w, -z, y], [z, w, -x], [-y, x, w]])
            own[..., :4, :3] = 0.5 * np.moveaxis(left, (0, 1), (-2, -1))
            if isinstance(body.kind, Floating):
                size = w * w + x * x + y * y + z * z
                turn = np.array(
                    [
                        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
                        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
                        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
                    ]
                )
                own[..., 4:, 3:] = np.moveaxis(turn / size, (0, 1), (-2, -1))
        else:
            own[...] = np.eye(body.nv)
        result[..., at, along] = own
    return result
