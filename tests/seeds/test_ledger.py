"""The ledger's own rules: what a mark may name, and how errata are read."""

from __future__ import annotations

import pytest

import linkwise as lw
from tests.seeds import ledger
from tests.seeds.jain1995 import operators_of
from tests.seeds.reach import reaches_linkwise
from tests.seeds.tip_to_base import Chain, random_chain

pytest_plugins = ["pytester"]
KNOWN = ledger.entries()


def test_ledger_is_complete():
    assert len(KNOWN) == 556
    assert {key.seed for key in KNOWN} == {"rodriguez1986", "rodriguez1992", "jain1995", "saha1999", "spencer2004"}


def test_unknown_entries_are_refused():
    with pytest.raises(ValueError, match="no paper 'jain1996'"):
        ledger.check_key("jain1996", "4.1", "here", KNOWN)
    with pytest.raises(ValueError, match="here: jain1995 has no entry '44.1'"):
        ledger.check_key("jain1995", "44.1", "here", KNOWN)


def test_errata_headings():
    text = "# Errata\n\n### jain1995 Algorithm 4.1: a sign\n\nwords\n\n### saha1999 38; 39a: end values\n"
    assert ledger.recorded_errata(text, KNOWN) == {
        ("jain1995", "Algorithm 4.1"): "a sign",
        ("saha1999", "38"): "end values",
        ("saha1999", "39a"): "end values",
    }
    with pytest.raises(ValueError, match="not of the form"):
        ledger.recorded_errata("### a heading without an id", KNOWN)
    with pytest.raises(ValueError, match="no entry '9999'"):
        ledger.recorded_errata("### saha1999 9999: nothing", KNOWN)


def test_the_projects_errata_are_well_formed():
    assert ledger.recorded_errata(ledger.ERRATA.read_text(encoding="utf-8"), KNOWN)


@pytest.mark.parametrize(
    "mark, complaint",
    [
        ("@pytest.mark.seed('jain1995', '44.1', by='model')", "*no entry '44.1'*"),
        ("@pytest.mark.seed('jain1995', by='model')", "*one entry per mark*"),
        ("@pytest.mark.seed('jain1995', '4.1b')", "*by=*library*by=*model*"),
        ("@pytest.mark.seed('jain1995', '4.1b', by='hand')", "*by=*library*by=*model*"),
        ("@pytest.mark.seed('jain1995', '4.1b', by='library')", "*nothing that linkwise computes is called*"),
        (
            "@pytest.mark.parametrize('x', [pytest.param(1, marks=pytest.mark.seed('jain', '4.1b', by='model'))])",
            "*no paper 'jain'*",
        ),
    ],
)
def test_a_wrong_mark_stops_collection(pytester, mark, complaint):
    pytester.makeconftest((ledger.ROOT / "tests" / "conftest.py").read_text())
    values = "" if "parametrize" in mark else "@pytest.mark.parametrize('x', [1])\n"
    pytester.makepyfile(f"import pytest\n{values}{mark}\nclass Test:\n    def test_it(self, x): pass\n")
    result = pytester.runpytest("-p", "no:xdist")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    result.stdout.fnmatch_lines([complaint])


def test_right_marks_are_collected(pytester):
    pytester.makeconftest((ledger.ROOT / "tests" / "conftest.py").read_text())
    marks = "@pytest.mark.seed('jain1995', '4.1b', by='library')\n@pytest.mark.seed('saha1999', '39a', by='model')"
    pytester.makepyfile(f"import pytest, linkwise as lw\n{marks}\ndef test_it(): assert lw.mass_matrix\n")
    pytester.runpytest("-p", "no:xdist").assert_outcomes(passed=1)


def test_setting_the_scene_is_not_asking_the_library(request):
    """Mechanisms, states and the models' arms do not count; what is called by a helper or a fixture's kind does."""

    def scene():
        return lw.random_state(lw.mechanisms.chain(3), None), Chain, random_chain

    def through_helpers():
        return operators_of

    def within():
        return lambda q: lw.constraints.null_space(None, q)

    for function, expected in ((scene, False), (through_helpers, True), (within, True)):
        item = pytest.Function.from_parent(request.node.parent, name="test_it", callobj=function)
        assert reaches_linkwise(item) == expected, function.__name__
