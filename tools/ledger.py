"""Which results of the papers are covered by tests: collects the ``seed`` marks and writes docs/ledger.md.

Nothing is run: a mark says what a test checks, ``make test-all`` says whether it holds.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections import defaultdict

import pytest

from tests.seeds import ledger
from tests.seeds.ledger import ROOT, Key


class Marks:
    """A pytest plugin that keeps the tests of each ledger entry."""

    def __init__(self) -> None:
        self.tests: dict[Key, set[str]] = defaultdict(set)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        for item in session.items:
            for mark in item.iter_markers("seed"):
                self.tests[Key(*mark.args)].add(item.nodeid.split("[")[0])


def collect_marks() -> dict[Key, set[str]]:
    """Tests by ledger entry; exits with pytest's own words where collection fails."""
    marks, words = Marks(), io.StringIO()
    with contextlib.redirect_stdout(words), contextlib.redirect_stderr(words):
        status = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", str(ROOT / "tests")], plugins=[marks])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        text = words.getvalue()
        sys.exit(text[max(text.find("= ERRORS"), 0) :] + "\nthe tests cannot be collected: mend these errors first")
    return marks.tests


def page(tests: dict[Key, set[str]]) -> tuple[str, str]:
    """The summary table, and the whole page as Markdown."""
    known = ledger.entries()
    errata = ledger.recorded_errata(ledger.ERRATA.read_text(encoding="utf-8"), known)
    by_seed: dict[str, list[Key]] = defaultdict(list)
    for key in known:
        by_seed[key.seed].append(key)

    def row(name: str, keys: list[Key]) -> str:
        tested = sum(key in tests for key in keys)
        recorded = sum(key in errata for key in keys)
        return f"| {name} | {len(keys)} | {tested} | {len(keys) - tested} | {recorded} |"

    rows = [row(seed, keys) for seed, keys in by_seed.items()] + [row("all", list(known))]
    table = "| paper | entries | tested | missing | recorded errata |\n| --- | --- | --- | --- | --- |\n"
    table += "\n".join(rows) + "\n"
    parts = ["# Ledger of the papers' results\n\nWritten by `make ledger`; do not edit.\n\n" + table]
    for seed, keys in by_seed.items():
        missing = [key.id for key in keys if key not in tests]
        parts.append(f"## {seed}\n\nMissing: {'; '.join(missing) or 'none'}.\n")
        lines = [
            f"- {key.id}{' (erratum)' if key in errata else ''}: " + ", ".join(f"`{t}`" for t in sorted(tests[key]))
            for key in keys
            if key in tests
        ]
        if lines:
            parts.append("\n".join(lines) + "\n")
    return table, "\n".join(parts)


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
