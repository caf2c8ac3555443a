"""Every exhibit of the gallery agrees with what it is compared with, and would say so if it did not."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.papers import PAPERS, jain1995, rodriguez1986, rodriguez1992, saha1999, spencer2004
from linkwise.papers.exhibit import Comparison, compare
from tests.seeds.ledger import entries

pytest.importorskip("matplotlib")
#: Seconds of compiling or simulating; the others take a moment.
LONG = {
    ("rodriguez1986", "Section 1"),
    ("rodriguez1992", "Identities 1 to 6"),
    ("rodriguez1992", "Algorithms 1 to 3"),
    ("jain1995", "Algorithms 4.1 to 8.1"),
    ("saha1999", "Table 1"),
    ("saha1999", "Table 2"),
    *(("spencer2004", f"Figure 3.{k}") for k in (2, 7, 8, 9, 10)),
}
ENTRIES = [
    pytest.param(
        entry, id=f"{paper.key} {entry.number}", marks=[pytest.mark.slow] * ((paper.key, entry.number) in LONG)
    )
    for paper in PAPERS.values()
    for entry in paper.entries
]


@pytest.mark.parametrize("entry", ENTRIES)
def test_exhibits_agree(entry):
    exhibit = entry.make()
    assert exhibit.shows and exhibit.compared and (exhibit.pictures or exhibit.tables or exhibit.text)
    assert exhibit.agrees, [str(comparison) for comparison in exhibit.compared]
    for table in exhibit.tables:
        assert {len(row) for row in table.rows} == {len(table.head)}
        assert all(isinstance(cell, str) for row in table.rows for cell in row)


def test_all_figures_and_tables_of_the_papers_are_shown_or_excused():
    """Each figure, table and control of the ledger is an exhibit, part of one, or named as absent."""
    for seed, paper in PAPERS.items():
        shown = " ".join(f"{entry.number} {entry.title} {entry.make.__doc__ or ''}" for entry in paper.entries)
        for row in entries().values():
            if row.seed == seed and row.kind in ("figure", "table", "control"):
                assert row.id in shown, (seed, row.id)


def test_numbers_of_a_paper_are_told_apart():
    for paper in PAPERS.values():
        numbers = [entry.number for entry in paper.entries]
        assert len(set(numbers)) == len(numbers)
    assert [e.number for e in PAPERS["spencer2004"].chosen(["figure 3.1"])] == ["Figure 3.1"]  # not 3.10
    assert len(PAPERS["saha1999"].chosen(["TABLE"])) == 2


# -- what is wrong is seen ----------------------------------------------------------------------------

WRONG = [
    (saha1999.figure_5, "linkwise.denoc.inverse_dynamics", 1e-9),
    (saha1999.figure_8, "linkwise.inverse_dynamics", 1e-9),
    (jain1995.table_1, "linkwise.diagonal.rates", 1e-9),
    (jain1995.table_2, "linkwise.diagonal.forces", 1e-9),
    (rodriguez1986.section_10, "linkwise.mass_matrix_inverse", 1e-9),
    (rodriguez1992.mobile_base, "linkwise.mass_matrix", 1e-9),
    (spencer2004.figure_3_1, "linkwise.mechanisms.five_bar", 0.01),
]


@pytest.mark.parametrize(("make", "name", "error"), WRONG, ids=[make.__name__ for make, _, _ in WRONG])
def test_a_small_error_of_the_library_is_seen(make, name, error, monkeypatch):
    module, _, attribute = name.rpartition(".")
    owner = {"linkwise": lw, "linkwise.denoc": lw.denoc, "linkwise.diagonal": lw.diagonal}.get(module, lw.mechanisms)
    right = getattr(owner, attribute)

    def wrong(*arguments, **options):
        result = right(*arguments, **options)
        if not isinstance(result, lw.Mechanism):
            return result * (1.0 + error)
        builder = lw.Builder()
        for body in result.bodies:
            builder.link(body.link, body.mass * (1.0 + error), body.com, body.inertia)
            parent = "ground" if body.parent < 0 else result.link_names[body.parent]
            builder.joint(body.joint, body.kind, parent, body.link, (body.rotation, body.position))
        return builder.build(result.name, result.gravity)

    monkeypatch.setattr(owner, attribute, wrong)
    assert not make().agrees


def test_comparisons():
    assert compare("x", [1.0, 2.0], [1.0, 2.0], 0.0).agrees
    assert compare("x", [1.0, 2.1], [1.0, 2.0], 0.04).deviation == pytest.approx(0.05)
    assert compare("x", [0.1], [0.0], 0.2, relative=False).agrees
    assert not compare("x", [np.nan], [0.0], 1e9).agrees
    assert not Comparison("x", float("nan"), 1.0).agrees
    assert "DEVIATES" in str(Comparison("x", 2.0, 1.0))
