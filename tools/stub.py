"""Write linkwise/__init__.pyi: the public names with their homes, for type checkers and editors.

python -m tools.stub

The package loads most names when they are first asked for, which no type checker can follow. This file says the same
in the words they know; it is made from the package itself, and tests/test_typing.py tells when it is out of date.
Former names are in it as deprecated, so that editors strike them through and say where they went.
"""

from __future__ import annotations

import importlib
import inspect
import operator
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import linkwise as lw
from linkwise.former import MOVED

STUB = Path(lw.__file__).with_suffix(".pyi")
NEEDED = ("from abc import ABCMeta", "from typing import Any", "", "from typing_extensions import deprecated")
HEAD = '"""The spatial operator algebra of multibody dynamics, compiled link by link.  Written by tools/stub.py."""\n\n'


def text() -> str:
    """The stub, one import per name."""
    lines = []
    for name in lw.__all__:
        value = getattr(lw, name)
        if name == "__version__":
            continue
        if isinstance(value, ModuleType):
            parent, _, module = value.__name__.removeprefix("linkwise").rpartition(".")
            lines.append(f"from {parent or '.'} import {module} as {name}")
        else:
            lines.append(f"from .{_home(name, value)} import {name} as {name}")
    exported = "".join(f'    "{name}",\n' for name in lw.__all__)
    imports = "\n".join(
        [
            "from abc import ABCMeta",
            "from typing import Any",
            "",
            "from typing_extensions import deprecated",
            "",
            *sorted(lines),
        ]
    )
    within = "def _within(name: str) -> str: ...\n"
    return f"{HEAD}{imports}\n\n__version__: str\n__all__ = [\n{exported}]\n\n{within}\n{''.join(_former())}"


def _former() -> Iterator[str]:
    """Functions and classes that were public here once."""
    for name, now in sorted(MOVED.items(), key=lambda item: (not item[0][0].isupper(), item[0])):  # classes first
        if "." not in name:
            value = operator.attrgetter(now)(lw)
            mark = f'@deprecated("it is linkwise.{now} now")\n'
            if inspect.isclass(value) and name[0].isupper():
                yield f"{mark}class {name}({now}{', metaclass=ABCMeta' if inspect.isabstract(value) else ''}): ...\n\n"
            elif not isinstance(value, ModuleType | tuple):
                yield f"{mark}def {name}(*args: Any, **kwargs: Any) -> Any: ...\n"


def _home(name: str, value: object) -> str:
    """The module that defines a name, relative to the package."""
    if inspect.isclass(value) or inspect.isfunction(value):
        home = value.__module__
        if getattr(importlib.import_module(home), name, None) is value:
            return home.removeprefix("linkwise.")
    return lw._HOME[name].lstrip(".")


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
