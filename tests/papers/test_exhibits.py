"""Every exhibit of the gallery agrees with what it is compared with, and would say so if it did not."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.demo.exhibit import Comparison, compare
from papers import PAPERS, jain1995, operation_counts, rodriguez1986, rodriguez1992, saha1999, spencer2004
from tests.seeds.ledger import ROOT, entries

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
    for comparison in exhibit.compared:  # one that is met exactly with nothing to spare cannot fail
        assert comparison.allowed == 0.0 or comparison.deviation < comparison.allowed, str(comparison)
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
    (saha1999.figure_5, "linkwise.formulations.denoc.inverse_dynamics", 1e-9),
    (saha1999.figure_8, "linkwise.inverse_dynamics", 1e-9),
    (jain1995.table_1, "linkwise.formulations.diagonal.rates", 1e-9),
    (jain1995.table_2, "linkwise.formulations.diagonal.forces", 1e-9),
    (rodriguez1986.section_10, "linkwise.mass_matrix_inverse", 1e-9),
    (rodriguez1992.mobile_base, "linkwise.mass_matrix", 1e-9),
    (spencer2004.figure_3_1, "linkwise.mechanisms.five_bar", 0.01),
]


@pytest.mark.parametrize(("make", "name", "error"), WRONG, ids=[make.__name__ for make, _, _ in WRONG])
def test_a_small_error_of_the_library_is_seen(make, name, error, monkeypatch):
    module, _, attribute = name.rpartition(".")
    owner = {
        "linkwise": lw,
        "linkwise.formulations.denoc": lw.formulations.denoc,
        "linkwise.formulations.diagonal": lw.formulations.diagonal,
    }.get(module, lw.mechanisms)
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


# -- counts -------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_rows_of_the_gallery_are_those_of_the_page():
    """One source: every formula and count of docs/counts.md stands in the exhibits, and no other."""
    page = (ROOT / "docs" / "counts.md").read_text()
    for table, exhibit in zip(operation_counts.TABLES, (saha1999.table_1(), saha1999.table_2()), strict=True):
        lines = page.partition(f"(saha1999, {table.number})")[2].partition("Where linkwise stands")[0].splitlines()
        rows = [
            [cell.strip().strip("*").replace(",", "") for cell in line.strip("|").split("|")]
            for line in lines
            if line.startswith("| ") and "---" not in line
        ]
        assert [[cell.replace(",", "") for cell in row] for row in exhibit.tables[0].rows] == rows[1:]


@pytest.mark.parametrize("table", operation_counts.TABLES, ids=[table.number for table in operation_counts.TABLES])
def test_formulas_are_printed_for_the_sizes_that_they_give(table):
    """A formula beside a count gives that count, or says that it holds for larger arms only."""
    rows = [operation_counts.our_row(name, range(2, 16)) for name in table.named[:1]]
    for row in rows:
        for n in range(2, 16):
            assert (row.by_formula(n) == row.at(n)) == (n >= row.exact_from)
            assert row.exact_from == 2 or all(f"(n >= {row.exact_from})" in text for text in row.formulas)
    with pytest.raises(ValueError, match="not on a line: count larger arms"):
        operation_counts.our_row("forward_dynamics", range(2, 11))


@pytest.mark.slow
@pytest.mark.parametrize("make", [saha1999.table_1, saha1999.table_2])
def test_a_wrong_number_in_a_table_is_seen(make, monkeypatch):
    """A count that is typed wrongly, and a formula of ours that is no longer right."""
    assert make().agrees
    table = operation_counts.TABLES[make is saha1999.table_2]
    row = table.printed[-1]
    wrong = row._replace(
        counts={**row.counts, 6: operation_counts.Count(*(x + 1 for x in row.counts[6]))}, misprints={}
    )
    other = table._replace(printed=(*table.printed[:-1], wrong))
    assert not saha1999._counts(other).agrees
    counted = operation_counts.counted
    monkeypatch.setattr(saha1999, "counted", lambda name, n: operation_counts.Count(*(x + 1 for x in counted(name, n))))
    assert not make().agrees


# -- what the pictures show ---------------------------------------------------------------------------


def test_the_rotation_of_the_base_has_a_sign():
    """Its curves have no corners where the base passes the orientation of the start, and are its angular velocity's
    integral while it is nearly upright."""
    (figure,) = rodriguez1992.mobile_base().pictures
    axes = figure.axes[1]
    assert [line.get_label() for line in axes.get_lines()] == ["about x", "about y", "about z"]
    t, turned = axes.get_lines()[2].get_data()
    assert turned.min() < -10.0 and turned.max() > 10.0
    bends = np.abs(np.diff(turned, 2))
    assert bends.max() < 0.1 * np.abs(np.diff(turned)).max()
    motion = rodriguez1992._swing()
    np.testing.assert_allclose(np.gradient(turned, t)[200:240], np.degrees(motion.v[200:240, 2]), rtol=0.02)


def test_torques_alone_do_not_keep_the_motion_and_the_exhibit_says_so():
    """Deviations grow alike whatever the tolerance, as they do in a linear model of the motion."""
    rates = [saha1999.growth_per_second(*saha1999.open_loop("stanford", tolerance)) for tolerance in (1e-8, 1e-12)]
    assert rates[0] == pytest.approx(rates[1], rel=0.1)
    arm = saha1999.stanford_arm()
    q, v, a = (x[0] for x in saha1999.cycloid(saha1999.STANFORD_START, saha1999.STANFORD_END, 10.0, np.array([3.0])))
    tau = lw.inverse_dynamics(arm, q, v, a)
    eigenvalues = lw.linearize(arm, q, v, tau).eigenvalues()
    assert np.log(rates[1]) == pytest.approx(eigenvalues.real.max(), rel=0.1)
    for exhibit in (saha1999.figure_5(), saha1999.figure_8()):
        assert "Without feedback" in exhibit.remark and "-fold per second" in exhibit.remark


def test_comparisons():
    assert compare("x", [1.0, 2.0], [1.0, 2.0], 0.0).agrees
    assert compare("x", [1.0, 2.1], [1.0, 2.0], 0.04).deviation == pytest.approx(0.05)
    assert compare("x", [0.1], [0.0], 0.2, relative=False).agrees
    assert not compare("x", [np.nan], [0.0], 1e9).agrees
    assert not Comparison("x", float("nan"), 1.0).agrees
    assert "DEVIATES" in str(Comparison("x", 2.0, 1.0))
