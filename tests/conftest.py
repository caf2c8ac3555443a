"""Checks at collection time: every mark ``seed(seed, id)`` must name an entry of the ledger."""

from __future__ import annotations

import pytest

from tests.seeds import ledger

KNOWN = ledger.entries()


@pytest.hookimpl(wrapper=True)
def pytest_pycollect_makeitem(collector):
    made = yield
    for item in made if isinstance(made, list) else ():  # the tests of one function; classes come back through here
        for mark in item.iter_markers("seed"):
            if len(mark.args) != 2 or mark.kwargs:
                raise collector.CollectError(f"{item.nodeid}: write @pytest.mark.seed(seed, id), one entry per mark")
            try:
                ledger.check_key(*mark.args, where=item.nodeid, known=KNOWN)
            except ValueError as error:
                raise collector.CollectError(str(error)) from None
    return made
