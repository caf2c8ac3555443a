"""Where public names are used: the pages and examples that call each of them.

python -m tools.uses             public names without an example
python -m tools.uses simulate    where one is used

An example of a function is a place where somebody runs it. Blocks of pages and numbered examples are run by tests, so
that an index from names to these places is a list of examples that work; the reference pages show it.
"""

from __future__ import annotations

import ast
import inspect
import operator
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import linkwise as lw
from tools.pages import blocks
from tools.public_api import public_modules

ROOT = Path(__file__).parents[1]
NUMBERED = "[0-9]*.py"
CELL = re.compile(r"^```\{code-cell\}\n(?P<options>(?::[^\n]*\n)*)(?P<code>.*?)^```$", re.MULTILINE | re.DOTALL)
NOT_RUN = re.compile(r"^```python no-run\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CALL = re.compile(r"^\|.*\| `([^`]*lw\.[^`]*)` \|$", re.MULTILINE)  # our column of a table of calls


def public_names() -> list[str]:
    """All public names as they are written after ``lw.``: those of the package and of its public modules."""
    inside = {name: [f"{name}.{inner}" for inner in module.__all__] for name, module in public_modules().items()}
    names = [name for name in lw.__all__ if name != "__version__"]
    return [*names, *(inner for members in inside.values() for inner in members)]


@cache
def uses() -> dict[str, tuple[str, ...]]:
    """Public name -> the files where it is used, relative to the root: pages first, then examples."""
    found: dict[str, dict[str, None]] = {name: {} for name in public_names()}
    for path, code in _sources():
        for name in _names_in(ast.parse(code)):
            if name in found:
                found[name][path.relative_to(ROOT).as_posix()] = None
    return {name: tuple(places) for name, places in found.items()}


@cache
def makers() -> dict[str, tuple[str, ...]]:
    """Public class -> public functions that give one; methods and fields of public classes.

    Examples of results are examples of what returns them.
    """
    values = {name: _value(name) for name in public_names()}
    given: dict[str, str] = {}  # by -> the text of what it gives
    for name, value in values.items():
        if inspect.isclass(value):
            for member, one in inspect.getmembers(value):
                function = one.fget if isinstance(one, property) else getattr(one, "func", one)
                if not member.startswith("_") and inspect.isfunction(function):
                    given[f"{name}.{member}"] = str(function.__annotations__.get("return", ""))
            for field, kind in getattr(value, "__annotations__", {}).items():
                given[f"{name}.{field}"] = str(kind)
        elif callable(value) and not isinstance(value, ModuleType):
            given[name] = str(getattr(value, "__annotations__", {}).get("return", ""))
    return {
        name: tuple(by for by, text in given.items() if re.search(rf"\b{name.rpartition('.')[2]}\b", text))
        for name, value in values.items()
        if inspect.isclass(value)
    }


def has_example(name: str) -> bool:
    """Whether a name is used in a page or an example, has one in its docstring, or is what such a name gives."""
    value = _value(name)
    if uses()[name] or ">>> " in (inspect.getdoc(value) or ""):
        return True
    return any(uses().get(by) or by.partition(".")[0] in lw.__all__ for by in makers().get(name, ()) if by != name)


def _value(name: str) -> Any:
    return operator.attrgetter(name)(lw)


def _sources() -> Iterator[tuple[Path, str]]:
    """Every file with code that tests run, and that code."""
    for page in (ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md")), ROOT / "CONTRIBUTING.md"):
        if not {"_build", "generated"} & {*page.parts}:
            text = page.read_text(encoding="utf-8")
            in_tables = CALL.findall(text) if page.parent.name == "coming_from" else []
            in_cells = (match["code"] for match in CELL.finditer(text))  # of notebooks
            shown = NOT_RUN.findall(text)  # what needs a screen, a cluster or another library
            yield page, "\n".join([*(block.code for block in blocks(text)), *shown, *in_cells, *in_tables])
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
                yield from (full.rstrip("."), *(".".join(full.split(".")[:k]) for k in (1, 2, 3)))


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
        if name in sys.argv[1:] or (len(sys.argv) == 1 and not has_example(name)):
            print(name, *places)
