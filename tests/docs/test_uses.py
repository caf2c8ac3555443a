"""Every public name is documented, with an example that is run: in its docstring, on a page, or in a script."""

from __future__ import annotations

import doctest
import importlib
import inspect
import operator
from pathlib import Path

import pytest

import linkwise as lw
from tools.uses import has_example, makers, public_names, uses


@pytest.mark.parametrize("name", public_names())
def test_every_public_name_has_an_example(name):
    assert has_example(name), f"call lw.{name} on a page of docs/, or in a doctest of its docstring"


@pytest.mark.parametrize("name", [name for name in public_names() if callable(operator.attrgetter(name)(lw))])
def test_every_public_name_has_a_docstring(name):
    assert inspect.getdoc(operator.attrgetter(name)(lw))


def test_uses_find_names_by_whatever_they_are_imported():
    assert "docs/closed.md" in uses()["constraints.assemble"]
    assert "examples/05_operators.py" in uses()["operators.psi"] and "README.md" in uses()["rollout"]
    assert "docs/coming_from/pinocchio.md" in uses()["static_forces"]


def test_results_lead_to_what_gives_them():
    assert "simulate" in makers()["Trajectory"] and "linearize" in makers()["control.StateSpace"]


def test_examples_in_docstrings_run():
    package = Path(lw.__file__).parent
    for path in sorted(package.rglob("*.py")):
        if "\n    >>> " in path.read_text(encoding="utf-8"):
            module = ".".join(["linkwise", *path.relative_to(package).with_suffix("").parts]).removesuffix(".__init__")
            found = doctest.testmod(importlib.import_module(module), extraglobs={"lw": lw})
            assert found.failed == 0 and found.attempted, module
