"""docs/errata.md: every entry says what is printed, and names tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
ENTRIES = re.split(r"^### ", (ROOT / "docs" / "errata.md").read_text(encoding="utf-8"), flags=re.MULTILINE)[1:]


@pytest.mark.parametrize("entry", ENTRIES, ids=lambda entry: entry.partition(":")[0])
def test_the_status_names_tests_that_exist(entry):
    text, _, status = entry.partition("*Status:*")
    assert "rinted" in text
    status = status.partition("\n## ")[0]
    found = re.findall(r"`(?:(tests/[\w/]+\.py)::)?(test_\w+)`", status)
    assert found and found[0][0], "a status begins with `tests/FILE.py::test_...`"
    assert not re.sub(r"`[^`]*`|[\s,.]", "", status), "a status is a list of tests"
    path = ""
    for file, name in found:
        path = file or path
        assert re.search(rf"^def {name}\(", (ROOT / path).read_text(encoding="utf-8"), re.MULTILINE), (path, name)
