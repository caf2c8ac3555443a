"""Docstrings as reStructuredText, and signatures.

They are written for people who read them in an editor: paragraphs, tables of parameters in two columns, indented
code.  Here these become paragraphs, definition lists and literal blocks.
"""

from __future__ import annotations

import inspect
import re
from typing import Any

ROW = re.compile(r"(?P<name>\S(?:[^\n]{0,58}?\S)??)\s{2,}(?P<text>\S.*)")
CODE = re.compile(r"(``.+?``|(?<!`)`[^`]+`(?!`))")
MARKUP = re.compile(r"([*|\\<>]|_(?=\W|$)|(?<=\W):)")


def process(app: Any, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """For Sphinx: replace the lines of one docstring."""
    lines[:] = as_rst("\n".join(lines)).splitlines()


def as_rst(text: str) -> str:
    """The docstring in the markup that Sphinx reads."""
    return "\n\n".join(_block(block) for block in re.split(r"\n[ \t]*\n", text.strip("\n")) if block.strip()) + "\n"


def _block(block: str) -> str:
    lines = block.splitlines()
    if lines[0].startswith(">>> "):
        return block
    if all(line.startswith("    ") for line in lines):
        return "::\n\n" + block
    heads = [line for line in lines if not line.startswith(" ")]
    rows = [ROW.fullmatch(line) for line in heads]
    if lines[0] == heads[0] and all(row and row["name"][-1] not in ".:;!?" for row in rows):
        return _definitions(lines)
    if lines[0].startswith("- "):
        return "\n".join(("- " if line.startswith("- ") else "  ") + escaped(line.lstrip("- ")) for line in lines)
    return escaped("\n".join(line.strip() for line in lines))


def _definitions(lines: list[str]) -> str:
    """Two columns: names, and what they are."""
    out: list[str] = []
    for line in lines:
        row = None if line.startswith(" ") else ROW.fullmatch(line)
        if row:
            out += [_term(row["name"]), f"    {escaped(row['text'])}"]
        else:
            out.append(f"    {escaped(line.strip())}")
    return "\n".join(out)


def _term(name: str) -> str:
    return name if name.startswith("``") else f"``{name}``"


def escaped(text: str) -> str:
    """Text in which nothing but code in backticks is markup."""
    parts = CODE.split(text)
    parts[::2] = [MARKUP.sub(r"\\\1", part) for part in parts[::2]]
    parts[1::2] = [part if part.startswith("``") else f"`{part}`" for part in parts[1::2]]
    return _apart(parts)


def _apart(parts: list[str]) -> str:
    """Code beside letters needs a mark of separation, as in ``q``'s."""
    out = ""
    for k, part in enumerate(parts):
        if k % 2 and out and (out[-1].isalnum() or out[-1] in "_"):
            out += r"\ "
        if k % 2 == 0 and k and part[:1] and (part[0].isalnum() or part[0] == "_"):
            out += r"\ "
        out += part
    return out


# -- signatures ---------------------------------------------------------------------------------------------

LONGEST_DEFAULT = 40  # characters; more says nothing
CALLED = {"Function": "Callable"}  # aliases that have other meanings among public names


def signature(
    app: Any, what: str, name: str, obj: Any, options: Any, given: str | None, returned: str | None
) -> tuple[str, str | None] | None:
    """For Sphinx: parameters with their types as they are written in the source, where aliases have names."""
    if what not in ("function", "method", "class"):
        return None
    try:
        found = inspect.signature(obj)
    except (TypeError, ValueError):
        return None
    parameters = list(found.parameters.values())
    if what == "method" and parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    shown = [one.replace(annotation=Written(one.annotation), default=_default(one)) for one in parameters]
    text = str(found.replace(parameters=shown, return_annotation=found.empty))
    result = (
        None if what == "class" or found.return_annotation is found.empty else repr(Written(found.return_annotation))
    )
    return text, result


class Written:
    """Something whose ``repr`` is the text of the source."""

    def __new__(cls, value: Any) -> Any:
        return value if value is inspect.Parameter.empty else super().__new__(cls)

    def __init__(self, value: Any) -> None:
        text = value if isinstance(value, str) else inspect.formatannotation(value)
        text = text.replace("str | Path", "str | os.PathLike")  # lw.trajectories.Path is another one
        self.text = re.sub(r"\b\w+\b", lambda word: CALLED.get(word[0], word[0]), text)

    def __repr__(self) -> str:
        return self.text


def _default(parameter: inspect.Parameter) -> Any:
    long = len(repr(parameter.default)) > LONGEST_DEFAULT
    return Written("...") if long and parameter.default is not parameter.empty else parameter.default
