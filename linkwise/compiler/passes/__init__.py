"""Program to program: what all code goes through, in this order, and others that are asked for."""

from collections.abc import Iterator

from ..ir.program import Program
from ..ir.spec import check
from .fuse_multiply_add import fuse_multiply_add
from .order_for_registers import order_for_registers

#: Straight-line code and the bodies of loops are simplified and ordered.
PASSES = (fuse_multiply_add, order_for_registers)


def after_each_pass(program: Program) -> Iterator[tuple[str, Program]]:
    """Name and result of every pass, in the order in which they run."""
    for rewrite in PASSES:
        program = program.with_blocks(rewrite)
        yield rewrite.__name__, program


def optimize(program: Program) -> Program:
    """The program after all passes, checked."""
    *_, (_, optimized) = after_each_pass(program)
    return check(optimized)
