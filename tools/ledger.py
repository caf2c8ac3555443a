"""Which results of the papers are covered by tests: collects the ``seed`` marks and writes docs/ledger.md.

Nothing is run: a mark says what a test checks and on what, ``make test-all`` says whether it holds. An entry is done by
the library if one of its tests says so; otherwise the paper's statement holds in models of the tests only.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict

import pytest

from tests.seeds import ledger
from tests.seeds.ledger import ROOT, Key

Tests = dict[Key, dict[str, str]]  # the tests of an entry by name, each "library" or "model"


class Marks:
    """A pytest plugin that keeps the tests of each ledger entry, and for each whether it asks the library."""

    def __init__(self) -> None:
        self.tests: Tests = defaultdict(dict)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("seed"):
                self.tests[Key(*mark.args)][item.nodeid.split("[")[0]] = mark.kwargs["by"]


def collect_marks() -> Tests:
    """Tests by ledger entry; exits with pytest's own words where collection fails."""
    marks, words = Marks(), io.StringIO()
    with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
        status = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", str(ROOT / "tests")], plugins=[marks])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        text = words.getvalue()
        sys.exit(text[max(text.find("= ERRORS"), 0) :] + "\nthe tests cannot be collected: fix these errors first")
    return marks.tests


HEAD = """# Ledger of the papers' results

Written by `make ledger`; do not edit. *Library*: a test computes what the entry states with linkwise's own functions or
compiled operators. *Model*: the paper's statement holds in a model that only the tests have, which is marked below.

"""


def page(tests: Tests) -> tuple[str, str]:
    """The summary table, and the whole page as Markdown."""
    known = ledger.entries()
    errata = ledger.recorded_errata(ledger.ERRATA.read_text(encoding="utf-8"), known)
    by_seed: dict[str, list[Key]] = defaultdict(list)
    for key in known:
        by_seed[key.seed].append(key)

    def row(name: str, keys: list[Key]) -> str:
        library = sum("library" in tests.get(key, {}).values() for key in keys)
        tested = sum(key in tests for key in keys)
        recorded = sum(key in errata for key in keys)
        return f"| {name} | {len(keys)} | {library} | {tested - library} | {len(keys) - tested} | {recorded} |"

    rows = [row(seed, keys) for seed, keys in by_seed.items()] + [row("all", list(known))]
    table = "| paper | entries | library | model | missing | recorded errata |\n" + "| --- " * 6 + "|\n"
    table += "\n".join(rows) + "\n"
    parts = [HEAD + table]
    for seed, keys in by_seed.items():
        missing = [key.id for key in keys if key not in tests]
        parts.append(f"## {seed}\n\nMissing: {'; '.join(missing) or 'none'}.\n")
        lines = [line(key, tests[key], key in errata) for key in keys if key in tests]
        if lines:
            parts.append("\n".join(lines) + "\n")
    return table, "\n".join(parts)


def line(key: Key, tests: dict[str, str], erratum: bool) -> str:
    """One entry: what is to be known of it, and its tests, those that ask the library first."""
    notes = ["model"] * ("library" not in tests.values()) + ["erratum"] * erratum
    names = sorted(tests, key=lambda test: (tests[test], test))
    noted = f" ({', '.join(notes)})" if notes else ""
    return f"- {key.id}{noted}: " + ", ".join(f"`{name}`" for name in names)


def main() -> None:
    tests = collect_marks()
    table, text = page(tests)
    (ROOT / "docs" / "ledger.md").write_text(text, encoding="utf-8")
    print(table)
    for line in text.splitlines():
        if line.startswith(("## ", "Missing: ")):
            print(line)


if __name__ == "__main__":
    main()
