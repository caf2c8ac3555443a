"""Where public names are used: the pages and examples that call each of them.

python -m tools.uses             names that no page and no example uses
python -m tools.uses simulate    where one is used

An example of a function is a place where somebody runs it. Blocks of pages and numbered examples are run by tests, so
that an index from names to these places is a list of examples that work; the reference pages show it.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import linkwise as lw
from tests.docs.test_docs import blocks

ROOT = Path(__file__).parents[1]
NUMBERED = "[0-9]*.py"
CALL = re.compile(r"^\|.*\| `([^`]*lw\.[^`]*)` \|$", re.MULTILINE)  # our column of a table of calls


def public_names() -> list[str]:
    """All public names as they are written after ``lw.``: those of the package and of its public modules."""
    names = []
    for name in lw.__all__:
        if name != "__version__":
            value = getattr(lw, name)
            names.append(name)
            if isinstance(value, ModuleType):
                names += [f"{name}.{inner}" for inner in getattr(value, "__all__", ())]
    return names


@cache
def uses() -> dict[str, tuple[str, ...]]:
    """Public name -> the files where it is used, relative to the root: pages first, then examples."""
    found: dict[str, dict[str, None]] = {name: {} for name in public_names()}
    for path, code in _sources():
        for name in _names_in(ast.parse(code)):
            if name in found:
                found[name][path.relative_to(ROOT).as_posix()] = None
    return {name: tuple(places) for name, places in found.items()}


def _sources() -> Iterator[tuple[Path, str]]:
    """Every file with code that tests run, and that code."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md"):
        if not {"_build", "generated"} & {*page.parts}:
            text = page.read_text(encoding="utf-8")
            in_tables = CALL.findall(text) if page.parent.name == "coming_from" else []
            yield page, "\n".join([*(block.code for block in blocks(text)), *in_tables])
    for example in sorted((ROOT / "examples").glob(NUMBERED)):
        yield example, example.read_text(encoding="utf-8")


def _names_in(tree: ast.AST) -> Iterator[str]:
    """What code asks of the package, by whatever name it imported it."""
    known = {"lw": "", "linkwise": "", "op": "operators."}  # pages import these once, in any block
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and (node.module or "").partition(".")[0] == "linkwise":
            inside = (node.module or "").partition(".")[2]
            for alias in node.names:
                name = f"{inside}.{alias.name}" if inside else alias.name
                known[alias.asname or alias.name] = f"{name}."
                yield name
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute | ast.Name):
            parts = _chain(node)
            if parts and parts[0] in known:
                full = known[parts[0]] + ".".join(parts[1:])
                yield from (full.rstrip("."), *(".".join(full.split(".")[:k]) for k in (1, 2)))


def _chain(node: ast.AST) -> list[str]:
    """``a.b.c`` as its parts; nothing for what is not a chain of names."""
    if isinstance(node, ast.Name):
        return [node.id]
    if isinstance(node, ast.Attribute):
        before = _chain(node.value)
        return [*before, node.attr] if before else []
    return []


if __name__ == "__main__":
    for name, places in uses().items():
        if name in sys.argv[1:] or (len(sys.argv) == 1 and not places):
            print(name, *places)
