"""Programs as one self-contained C99 file: a function for one state and one for a batch.

The batch function takes contiguous rows, one state each; arrays must not overlap.  Multiplications
and additions are fused only where the program says so, and only where the machine has the instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from ..ir.program import For, Program
from .c_expressions import Body, Functions, Real, parameters, real_of, summary
from .c_loops import LoopedBody
from .c_parts import PartedBody, Parts, Waiting
from .protocol import Options

LONGEST = 5_000  # operations of a program that stays one function: gcc -O1 takes two seconds for it
FEW = 200  # operations of a loop's body that stays where it runs

# One function for each part of long code, whatever the compiler makes of functions that are called once.
_NOINLINE = [
    "#if defined(__GNUC__)",
    "#define NOINLINE __attribute__((noinline))",
    "#elif defined(_MSC_VER)",
    "#define NOINLINE __declspec(noinline)",
    "#else",
    "#define NOINLINE",
    "#endif",
    "",
]


def emit(program: Program, options: Options) -> str:
    """C99 text of ``void NAME(inputs, outputs)`` and ``void NAME_batch(size_t n, inputs, outputs)``."""
    code = _Code(program, real_of(options))
    body = code.body
    arrays = ", ".join(parameters(body.real, body.inputs, body.outputs, "restrict"))
    lines = ["/*", f" * {body.function}: one state; {body.function}_batch: n states in contiguous rows."]
    lines += [f" *   {line}" for line in summary(program, body.inputs, body.outputs)]
    lines += [" */", "#include <math.h>", "#include <stddef.h>", "", *_fused_macro(body), *body.declarations]
    lines += [*_NOINLINE, *code.parts.definitions] if code.parts.count else []
    lines += [f"void {body.function}({arrays})", "{"]
    lines += [f"    {line}".rstrip() for line in body.statements]
    lines += ["}", "", f"void {body.function}_batch(size_t n, {arrays})", "{"]
    lines += ["    for (size_t i = 0; i < n; ++i)", f"        {body.function}({', '.join(_rows(program, body))});", "}"]
    return "\n".join(lines) + "\n"


class _Code:
    """The statements of a program, and the functions that they call if it is long."""

    def __init__(self, program: Program, real: Real):
        self.real, self.parts = real, Parts("static NOINLINE void")
        self._is_long = sum(len(code.nodes) for code, _ in program.blocks) > LONGEST
        self._known = {
            "_waiting": f"{real.name} *restrict _waiting",
            "_cells": f"{real.name} *restrict _cells",
            "_at": "const int *const _at",
            "_around": "const int *const _around",
        }
        self.body: Body | LoopedBody
        if program.loops:
            place = lambda array, element, base: f"{array}[{base} + {element}]"  # noqa: E731
            self.body = LoopedBody(program, real, place, Functions(), self._named, straight=self._iteration)
        else:
            self.body = self._straight(program, lambda array, element: f"{array}[{element}]", self._named)

    def _named(self, inputs: list[str], outputs: list[str]) -> None:
        declarations = parameters(self.real, inputs, outputs, "restrict")
        self._known |= dict(zip((*inputs, *outputs), declarations, strict=True))

    def _iteration(self, loop: For, k: int, address: Callable[[str, int], str]) -> Body:
        return self._straight(loop.bodies[k].program, address, None, eager=True)

    def _straight(
        self,
        program: Program,
        address: Callable[[str, int], str],
        named: Callable[[list[str], list[str]], None] | None,
        eager: bool = False,
    ) -> Body:
        if not self._is_long or len(program.nodes) <= FEW:
            return Body(program, self.real, address, Functions(), named, eager)
        waiting = Waiting()
        body = PartedBody(program, self.real, address, Functions(), named, waiting)
        calls = self.parts.called(body.statements, self._known, alone=True)
        room = [f"{self.real.name} _waiting[{waiting.count}];"] if waiting.count else []
        body.statements = [*room, *calls]
        return body


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
