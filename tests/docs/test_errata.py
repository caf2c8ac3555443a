"""docs/errata.md: every entry says what is printed, and names tests that carry its mark."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import pytest

from tests.seeds import ledger

ROOT = Path(__file__).parents[2]
ENTRIES = re.split(r"^### ", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.partition(":")[0])
def test_the_status_names_tests_with_the_mark_of_the_entry(entry):
    text, _, status = entry.partition("*Status:*")
    assert "rinted" in text
    status = status.partition("\n## ")[0]
    found = re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", status)
    assert found and found[0][0], "a status begins with `tests/FILE.py::test_...`"
    assert not re.sub(r"`[^`]*`|[\s,.]", "", status), "a status is a list of tests"
    own = set(ledger.recorded_errata(f"### {entry}", ledger.entries()))
    path, verified = "", set()
    for file, name in found:
        path = file or path
        test = getattr(importlib.import_module(path.removesuffix(".py").replace("/", ".")), name)
        marks = {mark.args for mark in getattr(test, "pytestmark", ()) if mark.name == "seed"} & own
        assert marks, f"{path}::{name} carries no mark of {entry.partition(':')[0]}"
        verified |= marks
    assert verified == own, "each of the entry's ids is marked on one of the tests"
