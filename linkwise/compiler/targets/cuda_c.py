"""Programs as CUDA C: one thread per state, structure-of-arrays layout.

Element ``e`` of state ``i`` of an array is ``x[e * n + i]``, so neighbouring threads read neighbouring
numbers.  A matrix counts its elements in C order.  Launch at least ``n`` threads in one dimension.
"""

from __future__ import annotations

from ..ir.program import Program
from .c_expressions import RESERVED, Body, identifier, real_of
from .protocol import Options


def emit(program: Program, options: Options) -> str:
    """CUDA C text of ``extern "C" __global__ void NAME(size_t n, inputs, outputs)``."""
    body = Body(program, real_of(options), _element_major, sincos=True)
    lines = [
        "/*",
        f" * {body.function}: n states, one thread each; element e of state i of an array x is x[e * n + i].",
    ]
    lines += [f" *   {line}" for line in body.summary()]
    lines += [" */", *_fused_macro(body), ""]
    lines += [f'extern "C" __global__ void {body.function}(', "    const size_t n,"]
    lines += ["    " + ",\n    ".join(body.parameters("__restrict__")) + ")", "{"]
    lines += ["    const size_t i = (size_t)blockIdx.x * blockDim.x + threadIdx.x;", "    if (i >= n) return;", ""]
    lines += [f"    {line}".rstrip() for line in body.statements]
    lines += ["}"]
    return "\n".join(lines) + "\n"


def function_name(program: Program) -> str:
    """The name of the kernel in the emitted text."""
    return identifier(program.name, set(RESERVED))


def _fused_macro(body: Body) -> list[str]:
    return [f"#define FMA(a, b, c) fma{body.real.suffix}(a, b, c)"] if body.is_fused else []


def _element_major(array: str, element: int) -> str:
    return f"{array}[{element} * n + i]"
