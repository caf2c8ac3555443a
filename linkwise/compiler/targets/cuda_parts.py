"""Very long straight-line CUDA C in several functions, one after the other.

The time that the CUDA compiler takes grows with the square of the length of a function: of CUDA 13.0 a humanoid's
derivatives in float64, 85,000 statements, took 161 s, and take 19 s in parts.  At a cut no value is in a register
(``register_assignment``): parts find what they need where values wait, and in the arrays.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from ..ir.program import Node
from .c_expressions import Real

LONGEST = 16_000  # operations that stay one function: the compiler takes ten seconds for it at most
PART = 2_000  # operations of a part: shorter ones take no less time
CUT_LINE = "/* next part */"

_NAME = re.compile(r"\b_\w+")


def cuts(nodes: Sequence[Node], partners: Mapping[Node, Node]) -> Collection[int]:
    """Positions before which a part ends; only in very long code, never between a sine and its cosine."""
    if len(nodes) <= LONGEST:
        return ()
    count = -(-len(nodes) // PART)
    positions = (k * len(nodes) // count for k in range(1, count))
    return {at + (partners.get(nodes[at - 1]) is nodes[at]) for at in positions}


class Parts:
    """Functions split off from a kernel's statements."""

    def __init__(self, real: Real, warp: int):
        self._real, self._warp = real, warp
        self._functions: list[str] = []
        self.count = 0

    def called(self, statements: Sequence[str], known: Mapping[str, str]) -> list[str]:
        """The same statements where they are one part, else calls of functions; ``known`` are declarations of the
        kernel's names that they may use."""
        if CUT_LINE not in statements:
            return list(statements)
        pieces = list[list[str]]([[]])
        for line in statements:
            if line == CUT_LINE:
                pieces.append([])
            else:
                pieces[-1].append(line)
        return [self._function(piece, known) for piece in pieces]

    def _function(self, lines: Sequence[str], known: Mapping[str, str]) -> str:
        """A call of a new function."""
        kind = self._real.name
        used = dict.fromkeys(name for line in lines for name in _NAME.findall(line) if name in known)
        head = [f"volatile {kind} *const _far", *(known[name] for name in used)]
        name = f"_part{self.count}"
        self.count += 1
        self._functions += [
            f"static __device__ __noinline__ void {name}({', '.join(head)})",
            "{",
            f"    volatile {kind} *const _near = _waiting + threadIdx.x % {self._warp};",
            "    (void)_near; (void)_far;",
            *(f"    {line}".rstrip() for line in lines),
            "}",
            "",
        ]
        return f"{name}({', '.join(['_far', *used])});"

    @property
    def definitions(self) -> list[str]:
        """What stands before the kernel: the memory that parts share, and they themselves."""
        shared = [f"extern __shared__ {self._real.name} _waiting[];", ""]
        return [*shared, *self._functions] if self.count else []
