"""Default choice between loops and straight-line code, by compile time and speed."""

from __future__ import annotations

import math

from ..ir.program import Program

#: Programs get loops if they have at least this many links, and at least this many operations with at most this share
#: of them in bodies.  Links of one class lose a sixth of their speed, links of a humanoid a third; but straight-line
#: code compiles in 0.05 ms per operation or more.
LINKS_OF_LOOPS, SHARES_OF_BODIES = 24, ((25_000, 0.15), (60_000, 0.5))
#: Limits for matrices as results.  Links of one class lose at most a fifth, and win where registers run out; links of a
#: humanoid lose a third and compile hardly sooner.
SHARES_OF_NESTED_BODIES = ((60_000, 0.03), (300_000, 0.15), (1_500_000, 0.5))
#: Programs with loops by another algorithm may have at most this many times the operations, if the programs without
#: loops have at least this many.  Beyond a limit of compile time they are always chosen.
FACTORS_OF_OPERATIONS = ((150_000, 2.5), (600_000, math.inf))

#: Functions of many lists, such as the columns of a matrix, become loops if they save the text of this many operations:
#: code beyond the second-level cache is fetched from the third, state by state.
SAVED_BY_LOOPS = 20_000


def may_pay(links: int, without: float | None) -> bool:
    """Whether loops are worth trying; ``without``: operations of the alternative algorithm, if there is one."""
    return links >= LINKS_OF_LOOPS and (without is None or without >= FACTORS_OF_OPERATIONS[0][0])


def pay(program: Program, without: float | None) -> bool:
    """Whether a program with loops is better than the one without."""
    if without is not None:
        return any(without >= least and program.size <= factor * without for least, factor in FACTORS_OF_OPERATIONS)
    bodies = sum(code.size for code, _ in program.blocks)
    shares = SHARES_OF_NESTED_BODIES if program.is_nested else SHARES_OF_BODIES
    return any(program.size >= least and bodies <= part * program.size for least, part in shares)


def loops_over_lists_pay(saved: int) -> bool:
    """Whether functions of many lists become loops, if they save the text of this many operations."""
    return saved >= SAVED_BY_LOOPS
