"""Multiplications and additions of inverse and forward dynamics, as Tables 1 and 2 of saha1999 count them.

The arm has n revolute joints in Denavit-Hartenberg frames and no number that is zero or one by luck: random lengths,
twists, offsets, mass centres and full inertia tensors, all constants.  What is counted is the program of one state.
As in the tables a division counts as a multiplication, and sines and cosines are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from functools import cache
from typing import NamedTuple

import numpy as np

import linkwise as lw
from linkwise import operators as op


class Count(NamedTuple):
    """Multiplications (with divisions) and additions (with subtractions)."""

    multiplications: int
    additions: int


class Polynomial(NamedTuple):
    """Coefficients, highest power of n first."""

    coefficients: tuple[Fraction | int, ...]

    def __call__(self, n: int) -> Fraction:
        value = Fraction(0)
        for coefficient in self.coefficients:
            value = value * n + coefficient
        return value

    def __str__(self) -> str:
        degree = len(self.coefficients) - 1
        text = ""
        for power, coefficient in zip(range(degree, -1, -1), self.coefficients, strict=True):
            size = abs(Fraction(coefficient))
            whole, rest = divmod(size, 1)
            number = f"{whole} {rest}" if rest and whole else f"{size}"
            sign = " - " if coefficient < 0 else " + " if text else ""
            text += sign + number + {0: "", 1: "n"}.get(power, f"n^{power}")
        return text


class Row(NamedTuple):
    """An algorithm with its formulas and its counts: those printed in the tables, or those of our programs.

    exact_from   the n from which on our formulas give the counts; None for printed rows
    misprints    counts by the formulas where other ones are printed
    """

    name: str
    multiplications: Polynomial
    additions: Polynomial
    counts: dict[int, Count]
    exact_from: int | None = None
    misprints: dict[int, Count] = {}

    @property
    def ours(self) -> bool:
        return self.exact_from is not None

    @property
    def formulas(self) -> tuple[str, str]:
        """Both formulas as text, with the n from which on they hold where that is not the first."""
        held = f" (n >= {self.exact_from})" if self.ours and self.exact_from != SIZES[0] else ""
        return f"{self.multiplications}{held}", f"{self.additions}{held}"

    def by_formula(self, n: int) -> Count:
        return Count(int(self.multiplications(n)), int(self.additions(n)))

    def at(self, n: int) -> Count:
        """Ours as counted, or by the formula beyond; the others by formula."""
        if self.exact_from is not None and (n in self.counts or n < self.exact_from):
            return self.counts[n]
        return self.by_formula(n)


def _row(
    name: str,
    m: Sequence[Fraction | int],
    a: Sequence[Fraction | int],
    printed: dict[int, Count],
    misprints: dict[int, Count] | None = None,
) -> Row:
    return Row(name, Polynomial(tuple(m)), Polynomial(tuple(a)), printed, None, misprints or {})


SIZES = range(2, 21)  # for which our programs are counted
ENOUGH = 6  # sizes at the end on which a line must be exact
SIXTH = Fraction(1, 6)
TABLE_1 = (
    _row("Hollerbach (1980)", (412, -277), (320, -201), {6: Count(2195, 1719)}),
    _row("Luh et al. (1980)", (150, -48), (131, 48), {6: Count(852, 834)}),
    _row("Walker and Orin (1982)", (137, -22), (101, -11), {6: Count(800, 595)}),
    _row("saha1999, proposed", (120, -44), (97, -55), {6: Count(676, 527)}),
    _row("Khalil et al. (1986)", (105, -92), (94, -86), {6: Count(538, 478)}),
    _row("Angeles et al. (1989)", (105, -109), (90, -105), {6: Count(521, 435)}),
    _row("Balafoutis et al. (1988)", (93, -69), (81, -65), {6: Count(489, 421)}),
)
TABLE_2 = (
    _row("saha1999, proposed", (201, -335), (193, -361), {6: Count(871, 797), 12: Count(2077, 1955)}),
    _row("Featherstone (1983)", (199, -198), (174, -173), {6: Count(996, 871), 12: Count(2190, 1915)}),
    _row(
        "Walker and Orin (1982)",
        (SIXTH, Fraction(23, 2), Fraction(115, 3), -47),
        (SIXTH, 7, Fraction(233, 6), -46),
        {6: Count(633, 480), 12: Count(2357, 1716)},
        {6: Count(633, 475)},
    ),
)
WITHOUT_BIAS = "linkwise, without bias forces: the mass matrix, factored"
#: Of factoring a symmetric matrix as L D L* and solving with it.
FACTORING = (Polynomial((SIXTH, Fraction(3, 2), Fraction(1, 3), 0)), Polynomial((SIXTH, 1, Fraction(-7, 6), 0)))
OURS = {
    "inverse_dynamics": "linkwise",
    "forward_dynamics": "linkwise",
    "denoc_inverse_dynamics": "linkwise, in the paper's form (lw.formulations.denoc)",
    "denoc_forward_dynamics": "linkwise, in the paper's form (lw.formulations.denoc)",
    "denoc_accelerations": "linkwise, in the paper's form, phi given (lw.formulations.denoc.accelerations)",
}


def general_arm(n: int) -> lw.Mechanism:
    """n revolute joints, nothing special about any number."""
    rng = np.random.default_rng(1999 + n)
    rows = []
    for _ in range(n):
        extents, axes = rng.uniform(0.1, 0.4, 3), np.linalg.qr(rng.normal(size=(3, 3)))[0]
        mass = rng.uniform(1.0, 3.0)
        rows.append(
            {
                "a": rng.uniform(0.2, 0.6),
                "alpha": rng.uniform(0.5, 1.1),
                "d": rng.uniform(0.2, 0.5),
                "mass": mass,
                "com": rng.uniform(0.05, 0.3, 3) * rng.choice([-1.0, 1.0], 3),
                "inertia": mass * (axes * ((extents**2).sum() - extents**2)) @ axes.T,
            }
        )
    return lw.from_dh(rows, "modified", name=f"general_arm_{n}")


def counted(algorithm: str, n: int) -> Count:
    """What one evaluation for the general arm of n joints costs."""
    counts = lw.compile(algorithm, general_arm(n), target="numpy").op_counts
    return Count(counts.get("mul", 0) + counts.get("div", 0), counts.get("add", 0))


def solved(n: int) -> Count:
    """What the inverse mass matrix times a vector costs by articulated inertias, in frames of our choice."""
    inverse = (op.H @ op.phi @ op.M @ op.phi.T @ op.H.T).inv @ op.joint_vector("phi")
    counts = lw.compile(inverse, general_arm(n), target="numpy", simplify=False).op_counts
    return Count(counts.get("mul", 0) + counts.get("div", 0), counts.get("add", 0))


def without_bias(sizes: Sequence[int]) -> Row:
    """What is counted in the row of Walker and Orin: composite inertias, the mass matrix and solving with it."""
    counts = {}
    for n in sizes:
        matrix, (m, a) = counted("mass_matrix", n), FACTORING
        counts[n] = Count(matrix.multiplications + int(m(n)), matrix.additions + int(a(n)))
    matrices = [_quadratic({n: counted("mass_matrix", n)[k] for n in list(sizes)[-4:]}) for k in range(2)]
    m, a = (_sum(p, f) for p, f in zip(matrices, FACTORING, strict=True))
    wrong = [n for n in sizes if (m(n), a(n)) != counts[n]]
    return Row(WITHOUT_BIAS, m, a, counts, wrong[-1] + 1 if wrong else sizes[0])


def _quadratic(counts: dict[int, int]) -> Polynomial:
    return Polynomial(tuple(round(x) for x in np.polyfit(list(counts), list(counts.values()), 2)))


def _sum(one: Polynomial, other: Polynomial) -> Polynomial:
    """Of polynomials of which the second has the higher degree."""
    short = (Fraction(0),) * (len(other.coefficients) - len(one.coefficients)) + one.coefficients
    return Polynomial(tuple(Fraction(x) + y for x, y in zip(short, other.coefficients, strict=True)))


def linear(counts: dict[int, int]) -> tuple[Polynomial, int]:
    """The line through the last counts and the n from which on it is exact; raises ``ValueError`` if that is not so for
    ENOUGH of them."""
    smallest, last = min(counts), max(counts)
    slope = counts[last] - counts[last - 1]
    line = Polynomial((slope, counts[last] - slope * last))
    exact = last
    while exact > smallest and line(exact - 1) == counts[exact - 1]:
        exact -= 1
    if exact > last - ENOUGH:
        raise ValueError(f"the last {ENOUGH + 1} of the counts {counts} are not on a line: count larger arms")
    return line, exact


def our_row(algorithm: str, sizes: Sequence[int] = SIZES) -> Row:
    """Our program of an algorithm: counts for all ``sizes``, and the lines on which they lie."""
    counts = {n: counted(algorithm, n) for n in sizes}
    m, m_from = linear({n: count.multiplications for n, count in counts.items()})
    a, a_from = linear({n: count.additions for n, count in counts.items()})
    return Row(OURS[algorithm], m, a, counts, max(m_from, a_from))


class CountTable(NamedTuple):
    """A table of the paper and what stands beside it.

    shown      sizes whose counts are printed
    named      algorithms of ours, the plain one first
    counts     the one among them that the row "proposed" of the paper counts
    """

    number: str
    title: str
    printed: tuple[Row, ...]
    shown: tuple[int, ...]
    named: tuple[str, ...]
    counts: str

    @property
    def proposed(self) -> Row:
        """The row of the paper's own algorithm."""
        return next(row for row in self.printed if "proposed" in row.name)


TABLES = (
    CountTable(
        "Table 1",
        "Inverse dynamics",
        TABLE_1,
        (6,),
        ("inverse_dynamics", "denoc_inverse_dynamics"),
        "denoc_inverse_dynamics",
    ),
    CountTable(
        "Table 2",
        "Forward dynamics",
        TABLE_2,
        (6, 12),
        ("forward_dynamics", "denoc_forward_dynamics", "denoc_accelerations"),
        "denoc_accelerations",
    ),
)


@cache
def our_rows(number: str) -> dict[str, Row]:
    """All rows of ours beside a table, by algorithm: those of docs/counts.md and of the gallery."""
    table = next(table for table in TABLES if table.number == number)
    rows = {name: our_row(name) for name in table.named}
    return rows if number == "Table 1" else {**rows, WITHOUT_BIAS: without_bias(SIZES)}
