"""The Python blocks of the README and of docs/ run, and print what the page says they print.

Blocks of one page share their names and run in order.  A block fenced as ``python no-run`` is skipped; a block fenced
as ``output`` right after a Python block is what that block prints, with ``...`` for what varies.
"""

from __future__ import annotations

import contextlib
import io
import re
import shutil
import sys
from pathlib import Path

import numpy as np
import pytest

from tools.pages import FENCE, blocks, matches

ROOT = Path(__file__).parents[2]
NO_PAGES = {"_build", "generated", "tutorial"}  # made from others; notebooks, which test_notebooks.py runs
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not NO_PAGES & {*page.parts}),
]
RECIPES = ROOT / "docs" / "extending.md"  # test_recipes.py runs it
NEEDING = (
    "torch",
    "jax",
    "casadi",
    "pinocchio",
    "mujoco",
)  # pages that need a library of this name, which not everyone has
NEEDING_COMPILER = "embedded_c"
LINK = re.compile(r"\]\((?!https?:|(?:\.\./)?generated/)([^)#]+)(#[^)]*)?\)")


def run_page(text: str, name: str) -> dict:
    """Run the blocks of a page; what they defined."""
    namespace: dict = {"__name__": name}
    for block in blocks(text):
        printed = io.StringIO()
        code = compile("\n" * (block.line - 1) + block.code, name, "exec", dont_inherit=True)
        with contextlib.redirect_stdout(printed):
            exec(code, namespace)
        if block.output is not None:
            assert matches(block.output, printed.getvalue()), (
                f"{name}:{block.line} prints\n{printed.getvalue()}\nbut the page says\n{block.output}"
            )
    return namespace


@pytest.fixture(autouse=True)
def defaults_of_other_libraries():
    """As they are, whatever a page before has said."""
    with np.printoptions(precision=8, suppress=False, linewidth=75, threshold=1000, edgeitems=3, floatmode="maxprec"):
        yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# JAX, once another page has imported it, does not like to be forked.
@pytest.mark.smoke_cases("README")
@pytest.mark.filterwarnings("error", "ignore::linkwise.files.OmissionWarning", "ignore:os.fork:RuntimeWarning")
@pytest.mark.parametrize("page", [page for page in PAGES if page != RECIPES], ids=name_of)
def test_page_runs(page, restored_tables, tmp_path, monkeypatch):
    if page.stem in NEEDING:
        pytest.importorskip(page.stem)
    if page.stem == NEEDING_COMPILER and shutil.which("cc") is None:
        pytest.skip("no C compiler on this machine")
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(), page.name)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_links_lead_somewhere(page):
    missing = [path for path, _ in LINK.findall(FENCE.sub("", page.read_text())) if not (page.parent / path).exists()]
    assert not missing


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=name_of)
def test_fenced_blocks_are_closed(page):
    fences = re.findall(r"^ *(`{3,})", page.read_text(), flags=re.MULTILINE)
    assert len(fences) % 2 == 0


def test_the_pages_that_explain_have_blocks_with_output():
    for name in ("README.md", "docs/conventions.md", "docs/operators.md"):
        assert sum(block.output is not None for block in blocks((ROOT / name).read_text())) >= 3


def test_wrong_output_is_noticed():
    page = "```python\nx = 1\nprint(x + 1)\n```\n\n```output\n{}\n```\n"
    run_page(page.format("2"), "page")
    with pytest.raises(AssertionError, match="page:2 prints"):
        run_page(page.format("3"), "page")


def test_errors_are_noticed_and_marked_blocks_skipped():
    with pytest.raises(ZeroDivisionError):
        run_page("```python\n1 / 0\n```\n", "page")
    run_page("```python no-run\n1 / 0\n```\n", "page")
    with pytest.raises(ValueError, match="follows no Python block"):
        blocks("```python\n1\n```\ntext\n```output\n1\n```\n")
