"""Whether a test reaches linkwise's mechanics at all: a light check of marks that say ``by="library"``.

Names are followed from a test through its fixtures, parameters and helpers in ``tests`` and ``papers``, without running
anything. What sets the scene does not count: mechanisms and joints, random states, and the arms that the papers' models
are made of. That the right thing is called is for the reader of the test to judge.
"""

from __future__ import annotations

import dis
from collections.abc import Iterator
from functools import cached_property, partial
from types import CodeType, FunctionType, ModuleType
from typing import Any

import pytest

#: Of linkwise: what only describes a mechanism or its state.
SCENE_MODULES = ("linkwise.mechanism", "linkwise.mechanics.joints", "linkwise.readers.protocol")
SCENE_NAMES = {"random_state", "neutral", "Kernel"}
#: Mechanisms that are results of a paper themselves: saha1999, Appendix A and Table 3.
PRINTED_MECHANISMS = {"from_dh", "stanford_arm"}
#: Of the tests: what makes the arms and motions that statements are tried on, and what all tests run within.
SCENERY = {"TipToBase", "Chain", "Case", "moving_arm", "random_chain", "random_arm", "without_armature"}
SCENERY |= {"no_recipes_of_changed_code"}


def reaches_linkwise(item: pytest.Function) -> bool:
    """Whether anything that linkwise computes can be called by the test."""
    parameters = getattr(getattr(item, "callspec", None), "params", {}).values()
    packages = {"tests", "papers", _package(item.function)}
    return any(map(_computes, _reached([item.function, *_fixtures(item), *parameters], packages)))


def _package(value: Any) -> str:
    return (getattr(value, "__module__", None) or "").partition(".")[0]


def _computes(value: Any) -> bool:
    home, name = getattr(value, "__module__", None) or "", getattr(value, "__name__", "")
    if not callable(value) or not home.startswith("linkwise"):
        return False
    is_error = isinstance(value, type) and issubclass(value, BaseException)
    is_scene = home.startswith(SCENE_MODULES) or name in SCENE_NAMES
    return name in PRINTED_MECHANISMS or not (is_error or is_scene)


def _fixtures(item: pytest.Function) -> Iterator[Any]:
    for definitions in item._fixtureinfo.name2fixturedefs.values():
        yield from (definition.func for definition in definitions)


def _reached(values: list[Any], packages: set[str]) -> Iterator[Any]:
    """The values, and all that code in ``packages`` names from there on."""
    seen: set[int] = set()
    while values:
        value = values.pop()
        if id(value) in seen or getattr(value, "__name__", "") in SCENERY:
            continue
        seen.add(id(value))
        yield value
        values.extend(_named_by(value, packages))


def _named_by(value: Any, packages: set[str]) -> Iterator[Any]:
    if isinstance(value, tuple | list):
        yield from value
        return
    value = getattr(value, "__wrapped__", value)
    if isinstance(value, staticmethod | classmethod):
        value = value.__func__
    if isinstance(value, property | cached_property | partial):
        value = getattr(value, "fget", None) or getattr(value, "func", None)
    if isinstance(value, FunctionType) and _package(value) in packages:
        yield from _names_in(value.__code__, value.__globals__)
        return
    kind = value if isinstance(value, type) else type(value)
    if _package(kind) in packages and kind.__name__ not in SCENERY:
        yield from vars(kind).values()
        yield from kind.__bases__


def _names_in(code: CodeType, names: dict[str, Any]) -> Iterator[Any]:
    """Values of global names and of attributes of modules among them, nested functions included."""
    value: Any = None
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
            value = names.get(instruction.argval)
        elif instruction.opname in ("LOAD_ATTR", "LOAD_METHOD") and isinstance(value, ModuleType):
            value = getattr(value, instruction.argval, None)
        else:
            value = None
        if value is not None:
            yield value
        if instruction.opname == "LOAD_CONST" and isinstance(instruction.argval, CodeType):
            yield from _names_in(instruction.argval, names)
