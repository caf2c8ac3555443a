"""Every numbered example runs, prints where its pictures are, and they are there."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

import linkwise as lw

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("[0-9]*.py"))
PNG = b"\x89PNG\r\n\x1a\n"


def test_there_are_examples():
    assert len(SCRIPTS) >= 4


@pytest.fixture
def in_this_process(tmp_path, monkeypatch, capsys):
    """Run a script as ``python -W error`` does, without importing everything again; what it prints."""
    threads = lw.codegen.get_num_threads()

    def run(script):
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "argv", [str(script), str(tmp_path)])
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            runpy.run_path(str(script), run_name="__main__")
        return capsys.readouterr().out

    yield run
    lw.codegen.set_num_threads(threads)
    pyplot = sys.modules.get("matplotlib.pyplot")
    if pyplot is not None:
        pyplot.close("all")


def in_a_process_of_its_own(script, folder):
    command = [sys.executable, "-W", "error", script, folder]
    run = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    return run.stdout


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs_draws_and_agrees_with_itself(script, tmp_path, in_this_process):
    pytest.importorskip("matplotlib")
    printed = in_a_process_of_its_own(script, tmp_path) if script is SCRIPTS[0] else in_this_process(script)
    pictures = [Path(path) for path in re.findall(r"^picture: (.+)$", printed, re.MULTILINE)]
    assert pictures and set(tmp_path.iterdir()) == set(pictures)
    assert all(picture.read_bytes().startswith(PNG) for picture in pictures)
    # The examples print differences, and nothing else, in scientific notation.
    differences = [float(value) for value in re.findall(r"\b\d(?:\.\d+)?e[-+]\d+", printed)]
    assert differences and max(differences) < 1e-6, printed
