"""Default choice between loops and straight-line code, by compile time and speed."""

from __future__ import annotations

import math

from ..ir.program import Program

#: Programs have loops from so many links on, and from so many operations on if their bodies are at most such a part of
#: all operations.  Links that are alike lose a sixth by general code, those of a humanoid a third of their speed; but
#: straight-line code compiles in 0.05 ms per operation or more.
LINKS_OF_LOOPS, SHARES_OF_BODIES = 24, ((25_000, 0.15), (60_000, 0.5))
#: The same where results are matrices.  Links that are alike lose at most a fifth, and win where registers run out;
#: those of a humanoid lose a third, and compile hardly sooner.
SHARES_OF_NESTED_BODIES = ((60_000, 0.03), (300_000, 0.15), (1_500_000, 0.5))
#: Where programs with loops are made of another algorithm, they have so many times the operations at most, if those
#: without have so many at least; or whatever they have, beyond what can be waited for.
FACTORS_OF_OPERATIONS = ((150_000, 2.5), (600_000, math.inf))

#: Functions of many lists, such as the columns of a matrix, are loops from so many operations on whose text is saved:
#: code that does not fit into the second-level cache beside its values is fetched from the third, state by state.
SAVED_BY_LOOPS = 20_000


def may_pay(links: int, without: float | None) -> bool:
    """Whether it is worth trying; ``without`` are the operations of another algorithm, if that is used otherwise."""
    return links >= LINKS_OF_LOOPS and (without is None or without >= FACTORS_OF_OPERATIONS[0][0])


def pay(program: Program, without: float | None) -> bool:
    """Whether a program with loops is better than one without."""
    if without is not None:
        return any(without >= least and program.size <= factor * without for least, factor in FACTORS_OF_OPERATIONS)
    bodies = sum(code.size for code, _ in program.blocks)
    shares = SHARES_OF_NESTED_BODIES if program.is_nested else SHARES_OF_BODIES
    return any(program.size >= least and bodies <= part * program.size for least, part in shares)


def loops_over_lists_pay(saved: int) -> bool:
    """Whether functions of many lists are loops, if so many operations need no text of their own then."""
    return saved >= SAVED_BY_LOOPS
