"""Every numbered example runs, prints where its pictures are, and they are there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SCRIPTS = sorted((ROOT / "examples").glob("[0-9]*.py"))
PNG = b"\x89PNG\r\n\x1a\n"


def test_there_are_examples():
    assert len(SCRIPTS) >= 4


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_example_runs_draws_and_agrees_with_itself(script, tmp_path):
    pytest.importorskip("matplotlib")
    run = subprocess.run(
        [sys.executable, "-W", "error", script, tmp_path], cwd=tmp_path, capture_output=True, text=True, timeout=120
    )
    assert run.returncode == 0, run.stderr
    pictures = [Path(path) for path in re.findall(r"^picture: (.+)$", run.stdout, re.MULTILINE)]
    assert pictures and set(tmp_path.iterdir()) == set(pictures)
    assert all(picture.read_bytes().startswith(PNG) for picture in pictures)
    # The examples print differences, and nothing else, in scientific notation.
    differences = [float(value) for value in re.findall(r"\b\d(?:\.\d+)?e[-+]\d+", run.stdout)]
    assert differences and max(differences) < 1e-6, run.stdout
