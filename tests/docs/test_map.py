"""The map of modules names every module, and each module says in its first sentence what is in it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tools.module_map import first_sentence, folders, page

ROOT = Path(__file__).parents[2]
MODULES = sorted((ROOT / "linkwise").rglob("*.py"))
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
CODE = re.compile(r"`([\w./]+)`")


@pytest.mark.parametrize("path", MODULES, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_module_says_what_is_in_it(path):
    assert len(first_sentence(path).split()) >= 2


def test_the_map_has_every_module():
    text = page()
    rows = re.findall(r"^\| `(\w+\.py)` \| \S", text, re.MULTILINE)
    headings = re.findall(r"^## (\S+)/$", text, re.MULTILINE)
    assert sorted(rows) == sorted(
        path.name for folder in folders() for path in folder.glob("*.py") if path.name != "__init__.py"
    )
    assert {path.parent.relative_to(ROOT).as_posix() for path in MODULES} <= {*headings}


def test_a_part_of_the_map_is_that_of_one_folder():
    text = page("linkwise/compiler/ir")
    assert "`program.py`" in text and "`kernel.py`" not in text and text.count("\n## ") == 0


def test_a_module_without_a_docstring_is_noticed(tmp_path):
    (tmp_path / "silent.py").write_text("x = 1\n")
    (tmp_path / "spoken.py").write_text('"""What it is: a test. More of it.\n\nAnd more."""\n')
    assert first_sentence(tmp_path / "silent.py") == ""
    assert first_sentence(tmp_path / "spoken.py") == "What it is: a test."


def test_what_the_page_on_architecture_names_is_there():
    files = {path.name for path in ROOT.rglob("*.py") if ".venv" not in path.parts}
    gone = [name for name in CODE.findall(PAGE) if name.endswith(".py") and name.rpartition("/")[2] not in files]
    directories = {f"{path.name}/" for path in ROOT.rglob("*") if path.is_dir() and ".venv" not in path.parts}
    gone += [name for name in CODE.findall(PAGE) if name.endswith("/") and name.split("/")[-2] + "/" not in directories]
    assert not gone
