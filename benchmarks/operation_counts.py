"""Multiplications and additions of inverse and forward dynamics, beside Tables 1 and 2 of saha1999.

What is counted, and how, is said in ``linkwise.papers.operation_counts``.

    python benchmarks/operation_counts.py [--write docs/counts.md]
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from linkwise.papers.operation_counts import TABLE_1, TABLE_2, Row, our_row

SIZES = range(2, 21)


def table(rows: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    """A Markdown table, fewest operations for the first of ``sizes`` first."""

    head = ["algorithm", "multiplications", "additions", *(f"n = {n}" for n in sizes)]
    lines = [head, ["---"] * len(head)]
    for row in sorted(rows, key=lambda row: sum(row.at(sizes[0]))):
        at = [f"{row.at(n).multiplications} M, {row.at(n).additions} A" for n in sizes]
        about = "about " if row.ours and row.exact_from is None else ""
        name = f"**{row.name}**" if row.ours else row.name
        lines.append([name, f"{about}{row.multiplications}", f"{about}{row.additions}", *at])
    return ["| " + " | ".join(line) + " |" for line in lines]


def standing(ours: Row, others: Sequence[Row], sizes: Sequence[int]) -> list[str]:
    """Where we need more than another algorithm, said plainly."""
    lines = []
    for other in others:
        worse = []
        for k, what in enumerate(("multiplications", "additions")):
            lost = [n for n in sizes if ours.at(n)[k] > other.at(n)[k]]
            if lost:
                worse.append(f"more {what} for n = {_ranges(lost)}")
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
    for title, rows, names, sizes in (
        ("Inverse dynamics (saha1999, Table 1)", TABLE_1, ("inverse_dynamics", "denoc_inverse_dynamics"), (6,)),
        ("Forward dynamics (saha1999, Table 2)", TABLE_2, ("forward_dynamics", "denoc_forward_dynamics"), (6, 12)),
    ):
        ours = [our_row(name, SIZES) for name in names]
        lines += ["", f"## {title}", "", *table([*rows, *ours], sizes), ""]
        if ours[0].exact_from:
            lines += [f"Our first formulas are exact from n = {ours[0].exact_from} on.", ""]
        lines += ["Where linkwise stands:", "", *standing(ours[0], rows, SIZES)]
    lines += [
        "",
        "The tables print 480 additions for Walker and Orin at n = 6; their formula, right for n = 12, gives 475.",
        "Dynamics in the paper's form put every link's frame at its mass centre; the other rows choose the frames that",
        "cost least.",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: Sequence[str]) -> None:
    text = report()
    if arguments[:1] == ["--write"]:
        Path(arguments[1]).write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main(sys.argv[1:])
