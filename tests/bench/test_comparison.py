"""The comparison with other libraries: every row has its peers, answers agree, the page says who is faster and who is
missing.  Times are not looked at."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from benchmarks.speed import comparison as comparing
from benchmarks.speed.comparison import CLOSED, Comparison, Row, Settings, compare
from benchmarks.speed.comparison_report import page_lines, slower_than, written
from benchmarks.speed.peers import ALL, TASKS, missing, peers
from benchmarks.speed.peers.descriptions import urdf_of

SMALL = Settings(batches=(1, 8), libraries=tuple(ALL)[:2], rounds=1, slice_seconds=0.001)


@pytest.fixture(scope="module")
def quick():
    pytest.importorskip("pinocchio")
    pytest.importorskip("mujoco")
    return compare(SMALL, list(comparing.cases(quick=True)))


def test_every_task_is_measured_alone_and_in_every_batch(quick):
    for task in (*TASKS, CLOSED):
        ours = [row for row in quick.rows if row.task == task and row.library == "linkwise"]
        assert [row.batch for row in ours] == [0, 1, 8] and all(row.seconds > 0.0 for row in ours)
        pinocchio = [row for row in quick.rows if row.task == task and row.library.startswith("Pinocchio ")]
        assert [row.batch for row in pinocchio] == [0, 1, 8]
    derivatives = [row for row in quick.rows if row.library == "MuJoCo" and "derivatives" in row.task]
    assert len(derivatives) == 2 and all(row.note.startswith("no such task") for row in derivatives)


def test_answers_agree(quick):
    theirs = [row for row in quick.rows if row.library != "linkwise" and not row.note]
    assert len(theirs) == 3 * (len(TASKS) + 1 + len(TASKS) - 2)
    assert max(row.error for row in theirs) < 1e-11


def test_the_page_with_its_plots(quick, tmp_path):
    pytest.importorskip("matplotlib")
    text = written(quick, tmp_path).read_text()
    for wanted in ("## What is called", "rneaInParallel", "mujoco.rollout", "load of the machine", "numpy"):
        assert wanted in text
    assert text.count("| forward dynamics |") >= 3 and (tmp_path / "batches_chain_of_5.png").stat().st_size > 5000
    assert "left out of this run: Drake" in text


def test_other_libraries_that_are_faster_are_named_with_the_reason():
    rows = [
        Row("arm", 6, "forward_dynamics", "linkwise", 0, 2e-6),
        Row("arm", 6, "forward_dynamics", "Other 1.0", 0, 1e-6),
        Row("arm", 6, "forward_dynamics", "linkwise", 100, 1e-8),
        Row("arm", 6, "forward_dynamics", "Other 1.0", 100, 1e-6),
        Row("arm", 6, "mass_matrix", "Gone", 0, math.nan, note="not installed: gone"),
    ]
    comparison = Comparison(SMALL, rows)
    assert [(own.batch, row.library) for own, row in slower_than(comparison)] == [(0, "Other 1.0")]
    text = "\n".join(page_lines(comparison))
    assert "arm, forward dynamics, single calls: Other 1.0 by 2.00; one state fills one of the SIMD lanes" in text
    assert "- Gone: not installed: gone" in text
    assert "Nowhere" not in text and "Nowhere in 1 comparisons" in "\n".join(page_lines(Comparison(SMALL, rows[2:4])))


def test_wrong_answers_and_failures_give_no_times(monkeypatch):
    def wrong(mech, task):
        found = comparing.ours(mech, task)
        return comparing.Peer("Wrong 1", lambda *x: (lambda: None, lambda: 1.1 * found(*x)))

    def broken(mech, task):
        raise RuntimeError("no such model")

    entries = {"Wrong": ((), wrong), "Broken": ((), broken), "Gone": (("no_such_module.part",), broken)}
    monkeypatch.setattr(comparing, "ALL", {**ALL, **entries})
    monkeypatch.setitem(ALL, "Gone", entries["Gone"])
    monkeypatch.setitem(ALL, "Wrong", entries["Wrong"])
    monkeypatch.setitem(ALL, "Broken", entries["Broken"])
    settings = Settings(batches=(1,), libraries=("Wrong", "Broken", "Gone"), rounds=1, slice_seconds=0.001)
    rows = compare(settings, [("arm", lw.mechanisms.double_pendulum, ("mass_matrix",))]).rows
    notes = {row.library: row.note for row in rows}
    assert (
        notes["Wrong"].startswith("answers differ by 1.0e-01")
        and notes["Broken"] == "failed: RuntimeError: no such model"
    )
    assert notes["Gone"] == "not installed: no_such_module.part"
    assert all(math.isnan(row.seconds) for row in rows if row.note)


def test_batches_that_fail_leave_single_calls(monkeypatch):
    def fails(*arrays):
        raise RuntimeError("out of memory")

    def made(mech, task):
        found = comparing.ours(mech, task)
        return comparing.Peer("Frail 1", lambda *x: (lambda: found(*x), lambda: found(*x)), fails)

    for place in (comparing.ALL, ALL):
        monkeypatch.setitem(place, "Frail", ((), made))
    settings = Settings(batches=(1, 2), libraries=("Frail",), rounds=1, slice_seconds=0.001)
    comparison = compare(settings, [("arm", lw.mechanisms.double_pendulum, ("mass_matrix",))])
    theirs = [(row.batch, row.note) for row in comparison.rows if row.library == "Frail 1"]
    assert theirs == [(0, ""), (1, "batches failed: RuntimeError: out of memory")]
    line = next(line for line in page_lines(comparison) if "| Frail 1 |" in line and "| x " in line)
    assert "batches failed" in line


def test_sizes_that_take_too_long_end_the_series(monkeypatch):
    monkeypatch.setattr(comparing, "PATIENCE", -1.0)
    settings = Settings(batches=(1,), libraries=(), rounds=1, slice_seconds=0.001)
    chosen = [(f"arm {n}", lambda n=n: lw.mechanisms.planar_arm(n), ("mass_matrix",)) for n in (2, 3)]
    rows = compare(settings, chosen).rows
    assert [row.note for row in rows if row.mechanism == "arm 2"] == ["", ""]
    assert [row.note[:24] for row in rows if row.mechanism == "arm 3"] == ["not tried: arm 2 took 0 "]


def test_batches_that_take_too_long_end_them(monkeypatch):
    def made(mech, task):
        def calls(q):
            return lambda: None, lambda: lw.mass_matrix(mech, q)

        return comparing.Peer("Slow 1", calls, calls)

    for place in (comparing.ALL, ALL):
        monkeypatch.setitem(place, "Slow", ((), made))
    monkeypatch.setattr(comparing, "PATIENCE", -1.0)
    settings = Settings(batches=(1, 2, 3), libraries=("Slow",), rounds=1, slice_seconds=0.001)
    rows = compare(settings, [("arm", lw.mechanisms.double_pendulum, ("mass_matrix",))]).rows
    theirs = [(row.batch, row.note) for row in rows if row.library == "Slow 1"]
    assert [batch for batch, _ in theirs] == [0, 1, 2] and theirs[-1][1].startswith("larger batches not tried after ")


@pytest.mark.parametrize("library", [name for name in ALL if not missing(name)])
def test_installed_libraries_agree(library):
    """Those of JAX are compared where they are installed: nothing of them is needed here."""
    mech = lw.mechanisms.chain(3).with_gravity((0.0, 0.0, -9.81))
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (3,))
    found = peers(mech, "mass_matrix", (library,))
    assert len(found) == 1
    expected = lw.mass_matrix(mech, q)
    np.testing.assert_allclose(found[0].single(q[0])[1](), expected[0], rtol=1e-10)
    np.testing.assert_allclose(found[0].batch(q)[1](), expected, rtol=1e-10)


@pytest.mark.filterwarnings("ignore::linkwise.MechanismWarning")  # of limits, which need not act
def test_the_mechanism_as_urdf():
    mech = lw.mechanisms.chain(6).with_gravity((0.0, 0.0, -9.81))
    again = lw.load(urdf_of(mech))
    q, v = lw.random_state(mech, np.random.default_rng(0), (5,))
    np.testing.assert_allclose(lw.inverse_dynamics(again, q, v, v), lw.inverse_dynamics(mech, q, v, v), rtol=1e-9)


@pytest.mark.parametrize("task", ["inverse_dynamics", "forward_dynamics"])
def test_floating_bases_in_mujoco(task):
    """Its linear velocities are along the world's axes, and so are accelerations and forces."""
    pytest.importorskip("mujoco")
    mech = lw.mechanisms.quadruped(())
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (4,))
    u = rng.normal(size=v.shape)
    (peer,) = peers(mech, task, ("MuJoCo",))
    expected = lw.compile(task, mech)(q, v, u)
    np.testing.assert_allclose(peer.batch(q, v, u)[1](), expected, rtol=1e-9, atol=1e-9 * np.abs(expected).max())
