"""Passes: program to program, in the order in which all code runs through them, and optional ones."""

from collections.abc import Iterator

from ..ir.program import Program
from ..ir.spec import check
from .fuse_multiply_add import fuse_multiply_add
from .order_for_registers import order_for_registers

#: Applied to straight-line code and bodies of loops.
PASSES = (fuse_multiply_add, order_for_registers)


def run_passes(program: Program) -> Iterator[tuple[str, Program]]:
    """Name and result of every pass, in the order in which they run."""
    for rewrite in PASSES:
        program = program.with_blocks(rewrite)
        yield rewrite.__name__, program


def optimize(program: Program) -> Program:
    """The program after all passes, checked."""
    *_, (_, optimized) = run_passes(program)
    return check(optimized)
