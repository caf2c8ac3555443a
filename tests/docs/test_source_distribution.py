"""The source distribution has everything that its tests need: they can be run from it."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = Path(__file__).parents[2]
SETTINGS = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
INCLUDED = {path.removeprefix("/") for path in SETTINGS["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]}
ALWAYS = {"pyproject.toml", ".gitignore", "PKG-INFO"}  # hatchling adds these


def test_what_is_included_exists():
    assert not [path for path in INCLUDED if not (ROOT / path).exists()]


def test_everything_in_the_repository_is_included_or_left_out_on_purpose():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode or not listed.stdout:
        pytest.skip("no repository: this is a source distribution")
    entries = {line.partition("/")[0] for line in listed.stdout.splitlines()}
    assert entries - INCLUDED - ALWAYS <= {".ci", ".github", ".pre-commit-config.yaml"}


def test_modules_that_tests_import_are_included():
    texts = (file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("*.py"))
    imported = {name for text in texts for name in re.findall(r"^\s*(?:from|import) (\w+)", text, re.MULTILINE)}
    own = {name for name in imported if (ROOT / name).is_dir() or (ROOT / f"{name}.py").exists()}
    assert {"linkwise", "tests", "tools", "benchmarks"} <= own <= INCLUDED
