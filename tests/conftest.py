"""For all tests: every mark ``seed(seed, id, by=...)`` must name an entry of the ledger and, where it says that the
library does it, reach the library; and a test is the same every time."""

from __future__ import annotations

import gc
from collections import Counter

import hypothesis
import pytest

from linkwise.compiler import pipeline, recipes
from tests.seeds import ledger
from tests.seeds.reach import reaches_linkwise

KNOWN = ledger.entries()

# On a busy machine an example may take any time; and what passes once must pass again.
hypothesis.settings.register_profile("repeatable", deadline=None, derandomize=True)
hypothesis.settings.load_profile("repeatable")

# Programs are made of many small objects that live on: looking for garbage among them takes as long as making them.
gc.set_threshold(1_000_000, 20, 20)


def pytest_collection_finish():
    """Modules and thousands of tests stay until the end: they are not looked through again and again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def no_recipes_of_changed_code(request):
    """Tests that change the package while it runs neither use nor leave programs that were kept by recipe."""
    if "monkeypatch" not in request.fixturenames:
        yield
        return
    with recipes.disabled():
        yield


@pytest.fixture
def compiled(monkeypatch):
    """The names of programs that were compiled."""
    names: list[str] = []
    load = pipeline.load

    def counted(program, *arguments):
        names.append(program.name)
        return load(program, *arguments)

    monkeypatch.setattr(pipeline, "load", counted)
    return names


def pytest_collection_modifyitems(items):
    """Mark cases as ``slow_cases``, ``quick_one_in`` and ``smoke_cases`` at their tests say."""
    seen = Counter()
    for item in items:
        share = item.get_closest_marker("quick_one_in")
        if _is_case_of(item, "smoke_cases"):
            item.add_marker(pytest.mark.smoke)
        if _is_case_of(item, "slow_cases"):
            item.add_marker(pytest.mark.slow)
        elif share is not None:
            test = item.path, item.originalname
            if seen[test] % share.args[0]:
                item.add_marker(pytest.mark.slow)
            seen[test] += 1


def _is_case_of(item, name):
    """Whether the name of a case contains one of the arguments of a mark."""
    return any(part in item.name for mark in item.iter_markers(name) for part in mark.args)


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector):
    made = yield
    items = made if isinstance(made, list) else ()  # the tests of one function; classes come back through here
    claims = any(mark.kwargs.get("by") == "library" for item in items for mark in item.iter_markers("seed"))
    if claims and not any(map(reaches_linkwise, items)):
        raise collector.CollectError(f'{items[0].nodeid}: by="library", but nothing that linkwise computes is called')
    for item in items:
        for mark in item.iter_markers("seed"):
            if len(mark.args) != 2 or mark.kwargs.get("by") not in ledger.KINDS or len(mark.kwargs) != 1:
                raise collector.CollectError(
                    f'{item.nodeid}: write @pytest.mark.seed(seed, id, by="library"), or by="model", one entry per mark'
                )
            try:
                ledger.check_key(*mark.args, where=item.nodeid, known=KNOWN)
            except ValueError as error:
                raise collector.CollectError(str(error)) from None
    return made
