"""The Python blocks of the README and of docs/ run, and print what the page says they print.

Blocks of one page share their names and run in order.  A block fenced as ``python no-run`` is skipped; a block fenced
as ``output`` right after a Python block is what that block prints, with ``...`` for what varies.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NO_PAGES = {"_build", "generated", "tutorial"}  # made from others; notebooks, which test_notebooks.py runs
PAGES = [
    ROOT / "README.md",
    *(page for page in sorted((ROOT / "docs").rglob("*.md")) if not NO_PAGES & {*page.parts}),
]
NEEDING = ("torch", "jax")  # pages that need a library of this name, which not everyone has
FENCE = re.compile(r"^```(?P<kind>[^\n`]*)\n(?P<text>.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:|(?:\.\./)?generated/)([^)#]+)(#[^)]*)?\)")
NEGATIVE_ZERO = re.compile(r"-0\.(?=[\s\]])")
PADDING = re.compile(r"(?<=\[)\s+|\s+(?=\])")


@dataclass
class Block:
    """A Python block, the line it starts on, and what it should print if the page says so."""

    code: str
    line: int
    output: str | None = None


def blocks(text: str) -> list[Block]:
    found: list[Block] = []
    previous_end = None
    for match in FENCE.finditer(text):
        kind = match["kind"].strip()
        if kind == "python":
            found.append(Block(match["text"], text.count("\n", 0, match.start()) + 2))
            previous_end = match.end()
        elif kind == "output":
            if previous_end is None or text[previous_end : match.start()].strip():
                raise ValueError(f"an output block follows no Python block:\n{match['text']}")
            found[-1].output = match["text"]
            previous_end = None
        else:
            previous_end = None
    return found


def matches(expected: str, printed: str) -> bool:
    """Equal but for white space and the sign of zeros: round-off too small to be printed may have either sign."""
    expected, printed = (PADDING.sub("", NEGATIVE_ZERO.sub("0.", text)) for text in (expected, printed))
    return doctest.OutputChecker().check_output(expected, printed, doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)


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
def precision_of_jax():
    """As it is by default, whatever a page has said."""
    yield
    if "jax" in sys.modules:
        sys.modules["jax"].config.update("jax_enable_x64", False)


# JAX, once another page has imported it, does not like to be forked.
@pytest.mark.filterwarnings("error", "ignore::linkwise.OmissionWarning", "ignore:os.fork:RuntimeWarning")
@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_page_runs(page, tmp_path, monkeypatch):
    if page.stem in NEEDING:
        pytest.importorskip(page.stem)
    monkeypatch.chdir(tmp_path)
    run_page(page.read_text(), page.name)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "CONTRIBUTING.md"], ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    missing = [path for path, _ in LINK.findall(FENCE.sub("", page.read_text())) if not (page.parent / path).exists()]
    assert not missing


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
