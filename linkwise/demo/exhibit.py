"""The contents of the gallery: papers, and the figures, tables and algorithms that are computed again."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np


@dataclass(frozen=True)
class Comparison:
    """A result set against something it must equal: printed numbers, a closed form, another algorithm, a law.

    what        the two sides, in words
    deviation   the largest difference found; not a number counts as a failure
    allowed     the largest difference that rounding, or the precision of the print, accounts for
    """

    what: str
    deviation: float
    allowed: float

    @property
    def agrees(self) -> bool:
        return bool(self.deviation <= self.allowed)

    def __str__(self) -> str:
        verdict = "agrees" if self.agrees else "DEVIATES"
        return f"{verdict}: {self.what}: {self.deviation:.1e} (allowed {self.allowed:.0e})"


def compare(label: str, computed: Any, expected: Any, allowed: float, relative: bool = True) -> Comparison:
    """The largest difference, as a share of the largest expected number or (not ``relative``) as it is."""
    computed, expected = np.asarray(computed, dtype=float), np.asarray(expected, dtype=float)
    scale = np.abs(expected).max(initial=0.0) if relative else 1.0
    difference = np.abs(computed - expected)
    deviation = float(difference.max(initial=0.0)) if np.isfinite(difference).all() else float("nan")
    return Comparison(label, deviation / (scale or 1.0), allowed)


class Table(NamedTuple):
    """Rows of text under a head."""

    head: Sequence[str]
    rows: Sequence[Sequence[str]]


class Animation(NamedTuple):
    """A motion as a moving picture, with options of ``lw.viewer.animate``."""

    motion: Any
    options: Mapping[str, Any] = {}


@dataclass(frozen=True)
class Exhibit:
    """One figure, table or algorithm, computed again.

    shows      a sentence or two: what is to be seen
    pictures   matplotlib figures, and animations
    tables     set below the pictures
    text       set as it is, such as the plan of an algorithm
    compared   all checks of the computation
    remark     what the scan does not have, what was chosen, what is misprinted
    """

    shows: str
    pictures: tuple[Any, ...] = ()
    tables: tuple[Table, ...] = ()
    text: str = ""
    compared: tuple[Comparison, ...] = ()
    remark: str = ""

    @property
    def agrees(self) -> bool:
        return all(comparison.agrees for comparison in self.compared)


@dataclass(frozen=True)
class Entry:
    """A numbered item of a paper, such as "Figure 5": its title, and the function that makes it."""

    number: str
    title: str
    make: Callable[[], Exhibit]

    def answers_to(self, wish: str) -> bool:
        """Whether ``wish`` is the number or its kind: "figure 5" and "figure" both select Figure 5."""
        words, wished = self.number.lower().split(), wish.lower().split()
        return words[: len(wished)] == wished


@dataclass
class Paper:
    """A paper and its items that can be computed again; ``absent`` gives the reason for the rest."""

    key: str
    title: str
    authors: str
    about: str
    absent: tuple[tuple[str, str], ...] = ()
    entries: list[Entry] = field(default_factory=list)

    def shows(self, number: str, title: str) -> Callable[[Callable[[], Exhibit]], Callable[[], Exhibit]]:
        """Decorate the function that makes the exhibit ``number``."""

        def enter(make: Callable[[], Exhibit]) -> Callable[[], Exhibit]:
            self.entries.append(Entry(number, title, make))
            return make

        return enter

    def chosen(self, wishes: Sequence[str]) -> list[Entry]:
        """The entries selected by any of ``wishes``; all if empty."""
        return [entry for entry in self.entries if not wishes or any(entry.answers_to(wish) for wish in wishes)]


class Made(NamedTuple):
    """An exhibit with the seconds its computation took."""

    paper: Paper
    entry: Entry
    exhibit: Exhibit
    seconds: float


def made(
    chosen: Sequence[tuple[Paper, Entry]], before: Callable[[Paper, Entry], None] = lambda paper, entry: None
) -> Iterator[Made]:
    """Make the exhibits one after the other; ``before`` is called with each before it is made."""
    for paper, entry in chosen:
        before(paper, entry)
        start = time.perf_counter()
        exhibit = entry.make()
        yield Made(paper, entry, exhibit, time.perf_counter() - start)
