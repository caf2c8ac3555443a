"""Every program that these tests compile is checked after every pass."""

from __future__ import annotations

import pytest

from linkwise.compiler import passes
from linkwise.compiler.ir.spec import check


@pytest.fixture(autouse=True)
def checks_after_every_pass(monkeypatch):
    plain = passes.run_passes

    def checked(program):
        return ((name, check(result)) for name, result in plain(check(program)))

    monkeypatch.setattr(passes, "run_passes", checked)
