"""Write docs/api.md, the list of all public names, from signatures and docstrings.

python -m tools.api_page

Run it after a change to a public name, signature or docstring; tests/docs/test_api_page.py tells when that is due.
"""

from __future__ import annotations

import inspect
import re
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import Any

import linkwise as lw
from linkwise.mechanics.algorithms.catalogue import ALGORITHMS
from linkwise.mechanics.joints import Joint
from linkwise.mechanics.operators import Expression, Space
from tools.public_api import public_modules, views

PAGE = Path(__file__).parents[1] / "docs" / "api.md"
HEAD = """# Public names

Everything that `import linkwise as lw` offers, from the docstrings; `help(lw.compile)` shows more of each. Shapes,
frames and signs are in [conventions.md](conventions.md), the algebra in [operators.md](operators.md). Written by
`python -m tools.api_page`.
"""
# By functions: nobody calls these classes.
MADE_FOR_USERS = (lw.Kernel, lw.Mechanism, lw.Trajectory)


@dataclass(frozen=True)
class Groups:
    """The public names of the package by what they are, each name -> value."""

    functions: dict[str, Any]
    joints: dict[str, type]
    errors: dict[str, type]
    classes: dict[str, type]
    modules: dict[str, ModuleType]


def groups() -> Groups:
    """What this page and the reference of the site are made of."""
    public = {name: getattr(lw, name) for name in lw.__all__ if name != "__version__"}
    modules = {name: value for name, value in public.items() if isinstance(value, ModuleType)}
    types = {name: value for name, value in public.items() if inspect.isclass(value)}
    joints = {name: value for name, value in types.items() if issubclass(value, Joint)}
    errors = {name: value for name, value in types.items() if issubclass(value, (Exception, Warning))}
    classes = {name: value for name, value in types.items() if name not in joints | errors}
    functions = {name: value for name, value in public.items() if name not in modules | types}
    return Groups(functions, joints, errors, classes, modules)


def page() -> str:
    """The whole page."""
    public = groups()
    lines = [HEAD, "## Functions", ""]
    for name, function in public.functions.items():
        lines += _entry(name, function)
    lines += ["", "## Kinds of joints", ""]
    for name, joint in public.joints.items():
        lines += _entry(name, joint)
    lines += ["", "## Errors and warnings", ""]
    for name, error in public.errors.items():
        lines += _entry(name, error)
    for name, one in public.classes.items():
        lines += ["", f"## {name}", "", *_class_section(one)]
        for attribute, view in views().items() if one is lw.Mechanism else ():
            lines += ["", f"### mech.{attribute}", "", *_class_section(view, called=False)]
    lines += ["", "## Rows of a Denavit-Hartenberg table", "", *_fenced(_after_first_paragraph(lw.from_dh))]
    lines += ["", "## Names that `lw.compile` takes", "", *_algorithms()]
    for name, module in public_modules().items():
        lines += ["", f"## lw.{name}", "", *_module_section(name, module)]
    return "\n".join(lines) + "\n"


def _module_section(place: str, module: ModuleType) -> Iterator[str]:
    yield from _wrapped(_first_paragraph(module))
    rest = _after_first_paragraph(module)
    yield from ("", *_fenced(rest), "") if rest else ("",)
    for name in module.__all__:
        value = getattr(module, name)
        if isinstance(value, ModuleType):
            yield f"- `{name}`: [lw.{place}.{name}](#lw{place.replace('.', '')}{name})"
            continue
        if isinstance(value, tuple):
            yield f"- `{name}`: {', '.join(map(repr, value))}"
            continue
        yield from _entry(name, value)
        if inspect.isclass(value) and not issubclass(value, Exception):
            for line in _members(value):
                yield f"  {line}"


def _class_section(one: type, called: bool = True) -> Iterator[str]:
    call = "" if one in MADE_FOR_USERS or not called else f"`{one.__name__}{_signature(one)}`: "
    yield from _wrapped(call + _first_paragraph(one))
    rest = _after_first_paragraph(one)
    if rest:
        yield from ("", *_fenced(rest))
    members = list(_members(one))
    if members:
        yield from ("", *members)


def _members(one: type) -> Iterator[str]:
    """What instances of a class offer besides their fields, in the order of the source, inherited members last."""
    ours = (base for base in one.__mro__ if base.__module__.startswith(lw.__name__))
    members = {name: member for base in reversed([*ours]) for name, member in vars(base).items()}
    inherited = [name for name in members if name not in vars(one)]
    for name in (*vars(one), *inherited):
        member = members[name]
        if isinstance(member, classmethod):
            member = getattr(one, name)  # bound: its signature is what users write
        if isinstance(member, (property, cached_property)) or inspect.isroutine(member):
            if not name.startswith("_") and inspect.getdoc(member):
                yield from _entry(name, member)


def _entry(name: str, value: Any) -> list[str]:
    """One item of a list: how it is called and what it is."""
    if isinstance(value, (Expression, Space)):
        return _wrapped(f"- `{name}`: {_spaces(value)}")
    is_error = inspect.isclass(value) and issubclass(value, Exception)
    call = _signature(value) if callable(value) and not is_error else ""
    return _wrapped(f"- `{name}{call}`: {_first_paragraph(value)}", "  ")


def _spaces(value: Expression | Space) -> str:
    if isinstance(value, Space):
        return str(value)
    return f"{value.domain} to {value.codomain}" if value.domain else "the identity, on any space"


def _signature(value: Any) -> str:
    """Parameters with their defaults, without types and without ``self``."""
    signature = inspect.signature(value)
    parameters = [p.replace(annotation=p.empty) for p in signature.parameters.values() if p.name != "self"]
    return str(signature.replace(parameters=parameters, return_annotation=signature.empty))


def _algorithms() -> Iterator[str]:
    yield "| name | takes | gives | options |"
    yield "| --- | --- | --- | --- |"
    for name, algorithm in sorted(ALGORITHMS.items()):
        lists = (", ".join(names) for names in (algorithm.inputs, algorithm.outputs, algorithm.options))
        yield f"| `{name}` | {' | '.join(lists)} |"


# -- text ---------------------------------------------------------------------------------------------


def _paragraphs(value: Any) -> list[str]:
    text = inspect.getdoc(value)
    if not text:
        raise ValueError(f"{value!r} has no docstring, and it is public")
    return text.split("\n\n")


def _first_paragraph(value: Any) -> str:
    """Up to the first blank line, as one line of Markdown."""
    return re.sub("``(.+?)``", r"`\1`", " ".join(_paragraphs(value)[0].split()))


def _after_first_paragraph(value: Any) -> str:
    return "\n\n".join(_paragraphs(value)[1:])


def _fenced(text: str) -> list[str]:
    return ["```text", *text.splitlines(), "```"]


def _wrapped(text: str, indent: str = "") -> list[str]:
    return textwrap.wrap(text, 120, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False)


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
