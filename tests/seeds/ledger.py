"""The ledger: every numbered result of the five papers, and the errata recorded for them."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
LEDGER = Path(__file__).with_name("ledger.csv")
ERRATA = ROOT / "docs" / "errata.md"

#: What verifies an entry: what linkwise computes, or a model of the paper that only the test has.
KINDS = ("library", "model")


class Key(NamedTuple):
    """What a mark ``seed(seed, id, by)`` names."""

    seed: str
    id: str


class Entry(NamedTuple):
    """One line of ledger.csv."""

    seed: str
    kind: str
    id: str
    note: str


def entries() -> dict[Key, Entry]:
    """All entries in the order of the file."""
    with LEDGER.open(newline="", encoding="utf-8") as file:
        rows = [Entry(**row) for row in csv.DictReader(file)]
    return {Key(row.seed, row.id): row for row in rows}


def check_key(seed: str, id: str, where: str, known: dict[Key, Entry]) -> Key:
    """The key of an entry that exists; a ValueError naming ``where`` otherwise."""
    key = Key(seed, id)
    if key in known:
        return key
    seeds = sorted({entry.seed for entry in known})
    if seed not in seeds:
        raise ValueError(f"{where}: no paper {seed!r} in tests/seeds/ledger.csv; the papers are {', '.join(seeds)}")
    raise ValueError(f"{where}: {seed} has no entry {id!r} in tests/seeds/ledger.csv (ids are strings, as in '4.1')")


def recorded_errata(text: str, known: dict[Key, Entry]) -> dict[Key, str]:
    """Titles by entry, from headings ``### seed id: title`` or ``### seed id; id: title``."""
    errata = {}
    for heading in re.findall(r"^### (.+)$", text, flags=re.MULTILINE):
        match = re.fullmatch(r"(\S+) ([^:]+): (.+)", heading)
        if match is None:
            raise ValueError(f"docs/errata.md: heading {heading!r} is not of the form '### seed id; id: title'")
        seed, ids, title = match.groups()
        for id in ids.split(";"):
            errata[check_key(seed, id.strip(), "docs/errata.md", known)] = title
    return errata
