"""Programs as one self-contained C99 file: a function for one state and one for a batch.

The batch function takes contiguous rows, one state each; arrays must not overlap.  Multiplications
and additions are fused only where the program says so, and only where the machine has the instruction.
"""

from __future__ import annotations

from ..ir.program import Program
from .c_expressions import Body, Functions, Real, parameters, real_of, summary
from .c_loops import LoopedBody
from .protocol import Options


def emit(program: Program, options: Options) -> str:
    """C99 text of ``void NAME(inputs, outputs)`` and ``void NAME_batch(size_t n, inputs, outputs)``."""
    body = _body(program, real_of(options))
    arrays = ", ".join(parameters(body.real, body.inputs, body.outputs, "restrict"))
    lines = ["/*", f" * {body.function}: one state; {body.function}_batch: n states in contiguous rows."]
    lines += [f" *   {line}" for line in summary(program, body.inputs, body.outputs)]
    lines += [" */", "#include <math.h>", "#include <stddef.h>", "", *_fused_macro(body), *body.declarations]
    lines += [f"void {body.function}({arrays})", "{"]
    lines += [f"    {line}".rstrip() for line in body.statements]
    lines += ["}", "", f"void {body.function}_batch(size_t n, {arrays})", "{"]
    lines += ["    for (size_t i = 0; i < n; ++i)", f"        {body.function}({', '.join(_rows(program, body))});", "}"]
    return "\n".join(lines) + "\n"


def _body(program: Program, real: Real) -> Body | LoopedBody:
    if program.loops:
        return LoopedBody(program, real, lambda array, element, base: f"{array}[{base} + {element}]", Functions())
    return Body(program, real, lambda array, element: f"{array}[{element}]", Functions())


def _rows(program: Program, body: Body | LoopedBody) -> list[str]:
    """The place of state ``i`` in each array."""
    names, arrays = body.inputs + body.outputs, program.inputs + program.outputs
    return [f"{name} + i * {array.size}" for name, array in zip(names, arrays, strict=True)]


def _fused_macro(body: Body | LoopedBody) -> list[str]:
    """The macro FMA(a, b, c): a fused instruction if available, else separate operations, since library emulation is
    slow.
    """
    if not body.is_fused:
        return []
    suffix = body.real.suffix
    return [
        f"#ifdef FP_FAST_FMA{suffix.upper()}",
        f"#define FMA(a, b, c) fma{suffix}(a, b, c)",
        "#else",
        "#define FMA(a, b, c) ((a) * (b) + (c))",
        "#endif",
        "",
    ]
