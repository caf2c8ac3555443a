"""Pages that are written when the site is built: the reference, from public names; examples, benchmarks, project files.

Public names come from the same source as docs/api.md.  Each entry says where the name is used: pages and examples that
tests run.
"""

from __future__ import annotations

import inspect
import os
import re
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from linkwise.mechanics.operators import Expression, Space
from papers import PAPERS
from tools.api_page import groups
from tools.module_map import site_page
from tools.public_api import is_module, public_modules
from tools.stub import _home as home
from tools.uses import makers, uses

ROOT = Path(__file__).parents[2]
TITLES = {  # of groups of functions, by the modules they live in
    "dynamics.trees": "Dynamics and kinematics",
    "dynamics.frames": "Dynamics and kinematics",
    "dynamics.by_joint": "Dynamics and kinematics",
    "dynamics.derivatives": "Derivatives",
    "compiler": "Compiling",
    "mechanics": "Compiling",
    "kinematics": "Inverse kinematics",
    "linearization": "Linear models",
    "mechanism": "Poses and tables",
    "readers": "Reading files",
    "motion": "Motion in time",
    "simulation": "Motion in time",
    "viewer": "Viewer in the browser",
}
INHERITED = ("with_traceback", "add_note")
#: Files outside docs/ that are pages of the site: page -> file.
PROJECT = {
    "changelog": "CHANGELOG.md",
    "contributing": "CONTRIBUTING.md",
    "security": "SECURITY.md",
    **{
        f"benchmarks/{'-'.join(path.relative_to(ROOT / 'benchmarks' / 'results').with_suffix('').parts)}": str(
            path.relative_to(ROOT)
        )
        for path in sorted((ROOT / "benchmarks" / "results").rglob("*.md"))
    },
}


def write(folder: Path) -> None:
    """All generated pages; files that stay the same keep their times, so that Sphinx does not read them again."""
    pages = dict(_pages())
    for name, text in pages.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
    for old in folder.rglob("*.*"):
        if old.is_file() and old.suffix in (".md", ".rst") and old.relative_to(folder).as_posix() not in pages:
            old.unlink()
    for picture in (ROOT / "benchmarks" / "results").rglob("*.png"):
        shutil.copyfile(picture, folder / "benchmarks" / picture.name)
    for paper in PAPERS:
        if (ROOT / "gallery" / paper).exists():
            shutil.copytree(ROOT / "gallery" / paper, folder / "gallery" / paper, dirs_exist_ok=True)


def _pages() -> Iterator[tuple[str, str]]:
    yield from reference_pages()
    yield "examples.md", examples_page()
    yield "gallery/index.md", gallery_page()
    yield "modules.md", site_page("../architecture.md")
    for page, file in PROJECT.items():
        yield f"{page}.md", (ROOT / file).read_text(encoding="utf-8")


# -- the reference ------------------------------------------------------------------------------------------


def reference_pages() -> Iterator[tuple[str, str]]:
    """Name of a page -> reStructuredText."""
    public = groups()
    sections: dict[str, dict[str, Any]] = {}
    for name, function in public.functions.items():
        sections.setdefault(_title(name, function), {})[name] = function
    listed = []
    for title, functions in sorted(sections.items(), key=lambda item: [*TITLES.values(), item[0]].index(item[0])):
        listed.append(_slug(title))
        yield f"reference/{listed[-1]}.rst", _page(title, "", functions)
    kinds = {
        "Kinds of joints": public.joints,
        "Errors and warnings": public.errors,
    }
    for title, classes in kinds.items():
        listed.append(_slug(title))
        yield f"reference/{listed[-1]}.rst", _page(title, "", classes)
    for name, one in public.classes.items():
        listed.append(name)
        yield f"reference/{name}.rst", _page(name, "", {name: one})
    for name, module in public_modules().items():
        listed.append(f"lw_{name}")
        inner = {f"{name}.{key}": getattr(module, key) for key in module.__all__ if not is_module(module, key)}
        text = f".. py:module:: linkwise.{name}\n\n.. automodule:: linkwise.{name}\n   :no-index:\n\n{_used(name)}"
        text += "\n.. py:currentmodule:: None\n"  # names of data below are whole
        yield f"reference/lw_{name}.rst", _page(f"lw.{name}", text, inner)
    contents = "".join(f"   {page}\n" for page in listed)
    yield "reference/index.rst", f"{_heading('Reference')}\n{INTRODUCTION}\n.. toctree::\n   :maxdepth: 1\n\n{contents}"


INTRODUCTION = """Every public name, from the docstrings: what ``import linkwise as lw`` offers. *Used in* leads to
pages and examples that call it, all of which are run by tests. Shapes, frames and signs are explained in
:doc:`/conventions`; :doc:`/api` has everything on one page.
"""


def _title(name: str, function: Any) -> str:
    module = home(name, function)
    return TITLES.get(module) or TITLES.get(module.partition(".")[0]) or module.rpartition(".")[2].capitalize()


def _page(title: str, text: str, entries: Mapping[str, Any]) -> str:
    return "\n".join([_heading(title), text, *(_entry(name, value) for name, value in entries.items())])


def _heading(title: str) -> str:
    return f"{title}\n{'=' * len(title)}\n"


def _slug(title: str) -> str:
    return re.sub(r"\W+", "_", title.lower())


def _entry(name: str, value: Any) -> str:
    """The directive of one name, and where it is used."""
    full = f"linkwise.{name}"
    if isinstance(value, Expression | Space):
        where = str(value) if isinstance(value, Space) else f"{value.domain} to {value.codomain}"
        what = where if not isinstance(value, Expression) or value.domain else "the identity, on any space"
        return f".. py:data:: {full}\n\n   {what}\n\n{_used(name, '   ')}"
    if not callable(value) and not inspect.isclass(value):
        return f".. py:data:: {full}\n\n{_used(name, '   ')}"
    if inspect.isclass(value):
        kind = "exception" if issubclass(value, Exception) else "class"
        options = (
            ""
            if kind == "exception"
            else "   :members:\n   :inherited-members: object, tuple\n   :member-order: bysource\n"
        )
        return f".. auto{kind}:: {full}\n{options}\n{_used(name, '   ')}"
    return f".. autofunction:: {full}\n\n{_used(name, '   ')}"


def _used(name: str, indent: str = "") -> str:
    places = ", ".join(_place(path) for path in uses()[name])
    made_by = [by for by in makers().get(name, ()) if not by.startswith(f"{name}.")]
    given = _some([f"``lw.{by}``" for by in [by for by in made_by if by in uses()] or made_by])
    lines = (f"{indent}*{what}* {where}\n" for what, where in (("Given by", given), ("Used in", places)) if where)
    return "\n".join(lines)


def _some(names: list[str], most: int = 8) -> str:
    return ", ".join(names[:most]) + (", ..." if len(names) > most else "")


def _place(path: str) -> str:
    """A reference to a page or an example."""
    if path.startswith("docs/"):
        return f":doc:`/{path.removeprefix('docs/').removesuffix('.md')}`"
    if path.startswith("examples/"):
        return f":ref:`{path} <{Path(path).stem}>`"
    return ":doc:`/generated/contributing`" if path == "CONTRIBUTING.md" else ":doc:`/index`"


def skip(app: Any, what: str, name: str, obj: Any, skipped: bool, options: Any) -> bool | None:
    """Members of classes that are not for users: those without a docstring of ours."""
    module = getattr(obj, "__module__", None) or getattr(getattr(obj, "fget", None), "__module__", "") or ""
    return True if name in INHERITED or (inspect.isroutine(obj) and not module.startswith("linkwise")) else None


# -- the papers ---------------------------------------------------------------------------------------------


def gallery_page() -> str:
    """What `make gallery` made; a list of what it would make, if it was not run."""
    made = ROOT / "gallery" / "gallery.md"
    if made.exists():
        return made.read_text(encoding="utf-8")
    lines = [
        "# Five papers, computed again",
        "",
        "`make gallery` computes these figures and tables, and compares them.",
    ]
    for paper in PAPERS.values():
        lines += ["", f"## {paper.title}", "", f"*{paper.authors}*", "", paper.about, ""]
        lines += [f"- {entry.number}: {entry.title}" for entry in paper.entries]
    return "\n".join(lines) + "\n"


# -- examples -----------------------------------------------------------------------------------------------


def examples_page() -> str:
    """The numbered examples with their pictures."""
    head = "# Examples\n\nScripts that run as they are, by `make examples` and by tests.\n"
    return head + "".join(map(_example, sorted((ROOT / "examples").glob("[0-9]*.py"))))


def _example(path: Path) -> str:
    code = path.read_text(encoding="utf-8")
    first = (inspect.cleandoc(code.split('"""')[1]) if code.startswith('"""') else "").partition("\n")[0]
    pictures = sorted((ROOT / "docs" / "pictures").glob(f"{path.stem.partition('_')[0]}_*.png"))
    mine = [one for one in pictures if _shown(one, path)]
    shown = "".join(f"\n![](../pictures/{one.name})\n" for one in mine)
    title = path.stem.partition("_")[2].replace("_", " ")
    return f"\n({path.stem})=\n## {path.stem[:2]} {title}\n\n{first}\n{shown}\n````python\n{code.rstrip()}\n````\n"


def _shown(picture: Path, example: Path) -> bool:
    """Whether an example writes this picture: two of them may have one number."""
    return picture.stem.partition("_")[2] in example.read_text(encoding="utf-8")


def relative(path: str, page: str) -> str:
    """A path from the folder of a page."""
    return Path(os.path.relpath(path, str(Path(page).parent))).as_posix()
