"""Write linkwise/__init__.pyi: the public names with their homes, for type checkers and editors.

python -m tools.stub

The package loads most names when they are first asked for, which no type checker can follow. This file says the same
in the words they know; it is made from the package itself, and tests/test_typing.py tells when it is out of date.
"""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path
from types import ModuleType

import linkwise as lw

STUB = Path(lw.__file__).with_suffix(".pyi")
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
    return f"{HEAD}{chr(10).join(sorted(lines))}\n\n__version__: str\n__all__ = [\n{exported}]\n"


def _home(name: str, value: object) -> str:
    """The module that defines a name, relative to the package."""
    if inspect.isclass(value) or inspect.isfunction(value):
        home = value.__module__
        if getattr(importlib.import_module(home), name, None) is value:
            return home.removeprefix("linkwise.")
    return lw._HOME[name].lstrip(".")


if __name__ == "__main__":
    STUB.write_text(text(), encoding="utf-8")
