"""Commands run in a folder of their own, in this process: quick, and everything is captured."""

from __future__ import annotations

import pytest

from benchmarks import speed as bench
from linkwise.cli import main


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def run(here, capsys):
    """Run a command; its standard output, or the one line on standard error if it fails with exit code 2."""

    def call(*arguments, fails=False):
        code = main([str(a) for a in arguments])
        out, err = capsys.readouterr()
        assert code == (2 if fails else 0), err
        assert "\x1b" not in out + err  # nobody captures colours
        if not fails:
            return out
        assert out == "" and err.count("\n") == 1 and err.startswith("linkwise: ")
        return err

    return call


@pytest.fixture
def quick(monkeypatch):
    """Measurements of a moment: what is tested is what is shown, not how fast it is."""
    best = bench.best

    def moment(*calls, **options):
        return best(*calls, **{**options, "rounds": 1, "slice_seconds": 0.005})

    for module in ("benchmarks.speed.report", "benchmarks.speed.peak", "linkwise.demo.tour"):
        monkeypatch.setattr(f"{module}.best", moment)
