"""Multiplications and additions of inverse and forward dynamics, beside Tables 1 and 2 of saha1999.

What is counted, and how, is said in ``papers.operation_counts``.

    python benchmarks/operation_counts.py [--write docs/counts.md]
"""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from papers.operation_counts import (
    SIZES,
    TABLE_1,
    TABLE_2,
    TABLES,
    WITHOUT_BIAS,
    Row,
    linear,
    our_rows,
    solved,
)

COMPARED = range(2, 201)  # beyond what is counted, by formulas that are exact


def table(rows: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    """A Markdown table, fewest operations for the first of ``sizes`` first."""

    head = ["algorithm", "multiplications", "additions", *(f"n = {n}" for n in sizes)]
    lines = [head, ["---"] * len(head)]
    for row in sorted(rows, key=lambda row: sum(row.at(sizes[0]))):
        at = [f"{row.at(n).multiplications} M, {row.at(n).additions} A" for n in sizes]
        lines.append([f"**{row.name}**" if row.ours else row.name, *row.formulas, *at])
    return ["| " + " | ".join(line) + " |" for line in lines]


def standing(ours: Row, others: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    """Where we need more than another algorithm, said plainly, with the largest difference."""
    lines = []
    for other in others:
        worse = []
        for k, what in enumerate(("multiplications", "additions")):
            lost = {n: ours.at(n)[k] - other.at(n)[k] for n in sizes if ours.at(n)[k] >= other.at(n)[k]}
            if lost:
                worse.append(f"more {what} for n = {_ranges(list(lost))} (by up to {max(lost.values())})")
        verdict = " and ".join(worse) if worse else f"fewer of both for n = {_ranges(sizes)}"
        lines.append(f"- against {other.name}: {verdict}")
    return lines


def _ranges(numbers: Sequence[int]) -> str:
    first, last = numbers[0], numbers[-1]
    whole = list(numbers) == list(range(first, last + 1))
    return (str(first) if first == last else f"{first} to {last}") if whole else ", ".join(map(str, numbers))


def report() -> str:
    """Both tables with our rows."""
    lines = [
        "# Operation counts",
        "",
        "Written by `python benchmarks/operation_counts.py --write docs/counts.md`; do not edit.",
        "",
        "General arm of n revolute joints in Denavit-Hartenberg frames, no number zero or one by luck; with gravity.",
        "One state; a division counts as a multiplication (M), a subtraction as an addition (A), sines and cosines are",
        f"left out, as in saha1999. Our rows are counted on the traced program for n = {SIZES[0]} to {SIZES[-1]}.",
    ]
    for table_of_paper in TABLES:
        ours = our_rows(table_of_paper.number)
        rows, first = table_of_paper.printed, ours[table_of_paper.named[0]]
        lines += ["", f"## {table_of_paper.title} (saha1999, {table_of_paper.number})", ""]
        lines += [*table([*rows, *ours.values()], table_of_paper.shown), ""]
        lines += ["Where linkwise stands:", "", *standing(first, rows, COMPARED)]
    alone, given = ours[WITHOUT_BIAS], ours["denoc_accelerations"]
    lines += [
        "- without bias forces, " + standing(alone, TABLE_2[2:], SIZES)[0].removeprefix("- "),
        "- in the paper's form, phi given, " + standing(given, TABLE_2[:1], COMPARED)[0].removeprefix("- "),
        "",
        "Up to seven joints forward dynamics is inverse dynamics and the mass matrix, factored; beyond, articulated",
        "inertias. Both start from joint accelerations for which no link has an angular acceleration about its own",
        "axis: any would do, and inverse dynamics of these costs least.",
        "",
        "The row of Walker and Orin holds no bias forces. Factoring a symmetric matrix of n rows and solving takes",
        "n^3/6 + 3n^2/2 + n/3 M and n^3/6 + n^2 - 7n/6 A; what the row has besides, 10n^2 + 38n - 47 M and",
        "6n^2 + 40n - 46 A, is a mass matrix by composite bodies and leaves nothing for inverse dynamics, which alone",
        "takes these authors 137n - 22 M in Table 1: 800 for n = 6, where the row has 633. What the row counts, we do",
        "in fewer operations of both kinds for every n. The gap to it that is listed above is that of all of forward",
        "dynamics, bias forces included, to this part of it.",
        "",
        *_account(given),
        "",
        "For n = 2 the proposed row of saha1999 gives 25 A: the constant of its line belongs to the ends of a long",
        "arm. The mass matrix of two links and its solution alone take 14 A.",
        "",
        "The tables print 480 additions for Walker and Orin at n = 6; their formula, right for n = 12, gives 475.",
        "Dynamics in the paper's form put every link's frame at its mass centre; the other rows choose the frames that",
        "cost least.",
    ]
    return "\n".join(lines) + "\n"


def _account(given: Row) -> list[str]:
    """What the proposed row of Table 2 counts."""
    leanest, printed = TABLE_1[-1], TABLE_2[0]
    own = [linear({n: solved(n)[k] for n in SIZES})[0] for k in range(2)]
    with_phi, left = list[Any](), list[Any]()
    for mine, phi, whole in zip(own, leanest[1:3], printed[1:3], strict=True):
        with_phi.append(mine.coefficients[0] + phi.coefficients[0])
        left.append(whole.coefficients[0] - phi.coefficients[0])
    text = (
        "The proposed row of saha1999 holds no bias forces either. Section 5.2 lists phi = tau - C v among the inputs "
        "of its algorithm, to be had from any inverse dynamics. The three steps that it prints, with the articulated "
        f"bodies of Appendix B, take {given.multiplications} M and {given.additions} A here: fewer than printed, from "
        f"three joints on. With phi the row could not be: the leanest inverse dynamics of Table 1, {leanest.name}, "
        f"would leave {left[0]} M and {left[1]} A per joint for the three steps. These take us, in frames of our own "
        f"choice with the links' inertias folded into constants, {own[0]} M and {own[1]} A; with such a phi that is "
        f"{with_phi[0]} M and {with_phi[1]} A per joint, and printed are {printed.multiplications.coefficients[0]} and "
        f"{printed.additions.coefficients[0]}."
    )
    return textwrap.wrap(text, 110)


def main(arguments: Sequence[str]) -> None:
    text = report()
    if arguments[:1] == ["--write"]:
        Path(arguments[1]).write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
