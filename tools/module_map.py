"""The map of modules: every folder and file of the package with the first sentence of its docstring.

python -m tools.module_map                        the whole map
python -m tools.module_map linkwise/compiler      one folder and what is below it

The site shows it as a page. Nothing is written by hand: what a module is for is said where the module is.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
PARTS = ("linkwise", "papers", "tools")
INTRODUCTION = """# Map of modules

Every module with the first sentence of its docstring, written by `python -m tools.module_map`.
[Architecture](ARCHITECTURE) explains how the folders fit together, and which may import which.
"""


def first_sentence(path: Path) -> str:
    """Of the docstring of a module, on one line; empty without a docstring."""
    text = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
    paragraph = " ".join(text.split("\n\n")[0].split())
    return re.split(r"(?<=[a-z0-9`)\]\"]{3}\.)\s+(?=[A-Z`\"(])", paragraph, maxsplit=1)[0]  # not behind "App."


def folders(part: str = "") -> Iterator[Path]:
    """Folders with modules, parents first; those below ``part`` alone, a path from the root."""
    for top in PARTS:
        for folder in sorted({path.parent for path in (ROOT / top).rglob("*.py")}):
            if folder.relative_to(ROOT).is_relative_to(part or "."):
                yield folder


def page(part: str = "") -> str:
    """The map in Markdown: a heading per folder with its own sentence, a row per module."""
    lines = []
    for folder in folders(part):
        package = folder / "__init__.py"
        lines += [f"## {folder.relative_to(ROOT).as_posix()}/", ""]
        if package.exists() and first_sentence(package):
            lines += [first_sentence(package), ""]
        modules = [path for path in sorted(folder.glob("*.py")) if path.name != "__init__.py"]
        if modules:
            cells = [f"| `{path.name}` | {first_sentence(path).replace('|', chr(92) + '|')} |" for path in modules]
            lines += ["| module | what is in it |", "| --- | --- |", *cells, ""]
    return "\n".join(lines)


def site_page(architecture: str) -> str:
    """The map as a page of the site that links to the page on architecture."""
    return INTRODUCTION.replace("ARCHITECTURE", architecture) + "\n" + page()


if __name__ == "__main__":
    print(page(*sys.argv[1:2]))
