"""The operation set: every scalar operation that a program may contain.

Each op has a name, a number of operands, the kind of its result and the class under which ``kernel.op_counts`` counts
it.  The meaning of an operation is defined by ``targets/numpy_reference.py``.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, eq=False)
class Op:
    """One operation: ``arity`` operands in, one value out. Each operation is a single object, so it compares and hashes
    by identity; interning hashes one for every node."""

    name: str
    arity: int
    result: str = "real"  # "real" or "bool"
    counts: tuple[str, ...] = ()  # class of operation and its contribution to op_counts
    operands: str = "real"  # "real", or "select" for (bool, real, real)

    def __repr__(self) -> str:
        return self.name


CONST = Op("const", 0)
INPUT = Op("input", 0)
ADD = Op("add", 2, counts=("add",))
SUB = Op("sub", 2, counts=("add",))
MUL = Op("mul", 2, counts=("mul",))
DIV = Op("div", 2, counts=("div",))
NEG = Op("neg", 1, counts=("neg",))
SQRT = Op("sqrt", 1, counts=("sqrt",))
SIN = Op("sin", 1, counts=("sin",))
COS = Op("cos", 1, counts=("cos",))
ATAN2 = Op("atan2", 2, counts=("atan2",))
LESS = Op("less", 2, result="bool", counts=("compare",))
SELECT = Op("select", 3, counts=("select",), operands="select")
# Fused forms, made only by passes/fuse_multiply_add.py; each counts as the two operations that it replaces.
FMA = Op("fma", 3, counts=("mul", "add"))  # a*b + c
FMS = Op("fms", 3, counts=("mul", "add"))  # a*b - c
FNMA = Op("fnma", 3, counts=("mul", "add"))  # c - a*b
# Single GPU instructions, made only by passes/shorten.py.  A NaN as first operand propagates; the second operand is a
# constant or the negative of the first.
RSQRT = Op("rsqrt", 1, counts=("sqrt", "div"))  # 1 / sqrt(a)
MINIMUM = Op("minimum", 2, counts=("compare", "select"))
MAXIMUM = Op("maximum", 2, counts=("compare", "select"))

FUSED = (FMA, FMS, FNMA)
SHORT = (RSQRT, MINIMUM, MAXIMUM)
ALL = (CONST, INPUT, ADD, SUB, MUL, DIV, NEG, SQRT, SIN, COS, ATAN2, LESS, SELECT, *FUSED, *SHORT)
