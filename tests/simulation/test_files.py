"""Trajectories in files, continued, interpolated, as tables."""

from __future__ import annotations

import csv
import inspect
import json
import sys
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from linkwise.mechanism.plain_data import from_data, to_data
from tests.simulated import simulate

ARRAYS = ("t", "q", "v", "a", "tau", "step_sizes")


def floating_tree() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    mech = lw.mechanisms.random_tree(4, 3, floating_base=True)
    return mech, *lw.random_state(mech, np.random.default_rng(1))


def same(first: lw.Trajectory, second: lw.Trajectory) -> None:
    """Equal bit by bit."""
    for name in ARRAYS:
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)
    assert first.stopped == second.stopped and first.evaluations == second.evaluations
    assert [e.name for e in first.events] == [e.name for e in second.events]


RUNS = {
    "kernel": {"method": "rk4", "step": 1e-2},
    "euler": {"method": "semi_implicit", "step": 1e-2},
    "springs": {"method": "rk4", "step": 1e-2, "passive": lw.forces.Passive.springs({"joint2": 3.0})},
    "nu": {"method": "rk4", "step": 1e-2, "coordinates": "nu"},
    "constant": {"method": "rk4", "step": 1e-2, "control": "constant"},
    "controlled": {"method": "rk4", "step": 1e-2, "control": "function"},
}


@pytest.mark.parametrize("kept_in_a_file", [False, True], ids=["at once", "from a file"])
@pytest.mark.parametrize("run", RUNS)
def test_fixed_steps_go_on_bit_by_bit(run, kept_in_a_file, tmp_path):
    """0.3 and 0.4 s are whole numbers of steps, but for round-off: both runs go through the same times."""
    mech, q, v = floating_tree()
    options = dict(RUNS[run])
    again = {}
    if options.get("control") == "constant":
        options["control"] = np.linspace(-1.0, 1.0, mech.nv)
    elif options.get("control") == "function":
        options["control"] = again["control"] = lambda t, q, v: np.sin(9.0 * t) - v
    through = simulate(mech, q, v, 0.7, **options)
    first = simulate(mech, q, v, 0.3, **options)
    if kept_in_a_file:
        first.save(tmp_path / "first.npz")
        first = lw.files.load_trajectory(tmp_path / "first.npz")
        assert first.mechanism == mech
    same(through, first.resume(0.4, **again))


@pytest.mark.parametrize("stabilization", ["projection", "baumgarte"])
def test_closed_mechanisms_go_on_bit_by_bit(stabilization, tmp_path):
    mech = lw.mechanisms.four_bar()
    v = 5.0 * lw.constraints.null_space(mech, np.zeros(3), independent=("crank_joint",))[:, 0]
    options = {"method": "rk4", "stabilization": stabilization, "keep_energy": stabilization == "projection"}
    through = simulate(mech, np.zeros(3), v, 0.02, **options)
    first = simulate(mech, np.zeros(3), v, 0.013, **options)
    first.save(tmp_path / "first.npz")
    same(through, lw.files.load_trajectory(tmp_path / "first.npz").resume(0.007))


CHARTS = {
    "tangent": (None, 1e4),
    "joint": (("crank_joint",), 1e4),
    "rows": (np.array([[0.5, 0.2, 0.1]]), 1e4),
    "changing": (("crank_joint",), 1.5),
}


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("sampling", [{}, {"t_eval": 4e-3}], ids=["steps", "samples"])
@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("chart", CHARTS)
def test_charts_go_on_bit_by_bit(chart, method, sampling, tmp_path):
    """The independent coordinates in use are part of the trajectory, chosen ones and those they were changed for."""
    mech = lw.mechanisms.four_bar()
    independent, worst = CHARTS[chart]
    v = 5.0 * lw.constraints.null_space(mech, np.zeros(3), independent=("crank_joint",))[:, 0]
    options = {"coordinates": "independent", "independent": independent, "worst_condition": worst, "method": method}
    through = simulate(mech, np.zeros(3), v, 0.08, step=2e-3, **options, **sampling)
    first = simulate(mech, np.zeros(3), v, 0.048, step=2e-3, **options, **sampling)
    first.save(tmp_path / "first.npz")
    loaded = lw.files.load_trajectory(tmp_path / "first.npz")
    again = loaded.resume(0.032, **sampling)
    for name in ("t", "q", "v", "a", "step_sizes"):
        np.testing.assert_array_equal(getattr(again, name), getattr(through, name), err_msg=name)
    assert again.chart_changes == through.chart_changes
    assert (through.chart_changes > 1) == (chart == "changing")
    with pytest.raises(MechanismError, match="part of the trajectory: leave them out"):
        loaded.resume(0.01, independent=("crank_joint",))


def test_coordinates_of_the_user_are_given_again(tmp_path):
    mech = lw.mechanisms.four_bar()
    v = 5.0 * lw.constraints.null_space(mech, np.zeros(3), independent=("crank_joint",))[:, 0]
    own = lw.kinematics.implicit_coordinates(mech, lambda q, y: [q[0] + 0.1 * q[0] * q[0] - y[0]], [0.0])
    options = {"coordinates": "independent", "independent": own, "method": "rk4", "step": 2e-3}
    through = simulate(mech, np.zeros(3), v, 0.05, **options)
    simulate(mech, np.zeros(3), v, 0.03, **options).save(tmp_path / "first.npz")
    loaded = lw.files.load_trajectory(tmp_path / "first.npz")
    with pytest.raises(MechanismError, match="give them again"):
        loaded.resume(0.02)
    np.testing.assert_array_equal(loaded.resume(0.02, independent=own).q, through.q)


def test_an_interrupted_chart_ends_where_its_last_step_did():
    """The chart is changed before a step; if that step is never finished, the end belongs to the chart before."""
    mech = lw.mechanisms.four_bar()
    v = 5.0 * lw.constraints.null_space(mech, np.zeros(3), independent=("crank_joint",))[:, 0]
    options = {"coordinates": "independent", "independent": ("crank_joint",), "worst_condition": 1.5}
    options |= {"method": "rk4", "step": 2e-3}
    free = simulate(mech, np.zeros(3), v, 0.08, **options)
    for stop in np.linspace(0.03, 0.07, 21):

        def control(t, q, v, stop=stop):
            if t > stop:
                raise KeyboardInterrupt
            return np.zeros(3)

        cut = simulate(mech, np.zeros(3), v, 0.08, control, **options)
        assert cut.interrupted
        np.testing.assert_array_equal(cut.end.q, cut.q[-1])
        rest = cut.resume(0.08 - cut.end.t, control=None)
        np.testing.assert_array_equal(rest.q, free.q)


@pytest.mark.parametrize("method", ["dop853", "radau", "bdf"])
def test_adaptive_methods_go_on_within_their_tolerance(method):
    mech, q, v = floating_tree()
    through = lw.simulate(mech, q, v, 0.3, method=method)
    again = lw.simulate(mech, q, v, 0.1, method=method).resume(0.2)
    np.testing.assert_allclose(again.q[-1], through.q[-1], atol=1e-6)
    assert again.t[-1] == pytest.approx(0.3) and (np.diff(again.t) > 0).all()
    assert again.evaluations < 1.5 * through.evaluations


def test_everything_comes_back_from_a_file(tmp_path):
    mech, q, v = floating_tree()
    passive = lw.forces.Passive.springs({"joint2": 3.0}, {"joint2": 0.1}) + lw.forces.Passive.dampers(
        {"joint1": np.arange(6.0)}
    )
    event = lw.motion.when(lambda t, q, v: t - 0.1, "a tenth")
    trajectory = lw.simulate(mech, q, v, 0.2, lambda t, q, v: -v, passive=passive, events=[event], t_eval=0.05)
    trajectory.save(tmp_path / "run")  # the name is kept as given
    loaded = lw.files.load_trajectory(tmp_path / "run")
    same(trajectory, loaded)
    assert loaded.mechanism == mech and loaded.passive == passive and loaded.settings == trajectory.settings
    np.testing.assert_array_equal(loaded.energy, trajectory.energy)
    (found,), (expected,) = loaded.events, trajectory.events
    assert (found.name, found.t) == (expected.name, expected.t)
    np.testing.assert_array_equal(found.q, expected.q)
    assert repr(loaded) == repr(trajectory)
    with pytest.raises(MechanismError, match="give it again"):
        loaded.resume(0.1)
    with pytest.warns(lw.MechanismWarning, match="without the events 'a tenth'.*give them again"):
        assert loaded.resume(0.1, control=lambda t, q, v: -v).t[-1] == pytest.approx(0.3)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert len(loaded.resume(0.1, control=lambda t, q, v: -v, events=()).events) == 1
        again = lw.motion.when(lambda t, q, v: t - 0.25, "a quarter")
        assert len(loaded.resume(0.1, control=lambda t, q, v: -v, events=again).events) == 2
    with pytest.raises(TypeError, match="'method' cannot be changed"):
        loaded.resume(0.1, method="rk4")


def test_the_ending_says_what_is_saved(tmp_path):
    motion = lw.simulate(lw.mechanisms.planar_arm(2), [0.3, 0.1], [0.0, 0.0], 0.02, method="rk4", step=1e-2)
    motion.save(tmp_path / "dp.CSV")
    motion.to_csv(tmp_path / "table")
    assert (tmp_path / "dp.CSV").read_text() == (tmp_path / "table").read_text()
    for name in ("a.pdf", "motion.mat"):
        with pytest.raises(MechanismError, match=rf"'{name}' has no ending of a format.*\.npz.*\.csv.*\.html"):
            motion.save(tmp_path / name)
        assert not (tmp_path / name).exists()
    with pytest.raises(MechanismError, match=r"dp.CSV is no trajectory.*\.npz"):
        lw.files.load_trajectory(tmp_path / "dp.CSV")


def test_files_that_are_no_trajectories(tmp_path):
    (tmp_path / "text").write_text("t,q\n0,1\n")
    np.savez(tmp_path / "other.npz", a=np.arange(3))
    np.savez(tmp_path / "object.npz", about=np.array({"format": 1}, dtype=object))
    np.savez(tmp_path / "future.npz", about=np.array(json.dumps({"format": 99, "version": "9.9"})))
    np.savez(tmp_path / "list.npz", about=np.array("[1, 2]"))
    for name in ("text", "other.npz", "object.npz", "list.npz"):
        with pytest.raises(
            MechanismError, match=f"{name} is no trajectory that linkwise wrote: Trajectory.save writes"
        ):
            lw.files.load_trajectory(tmp_path / name)
    with pytest.raises(MechanismError, match="format 99"):
        lw.files.load_trajectory(tmp_path / "future.npz")
    with pytest.raises(FileNotFoundError):
        lw.files.load_trajectory(tmp_path / "missing.npz")


@pytest.mark.parametrize("seed", range(8))
def test_mechanisms_come_back_equal_from_plain_data(seed):
    mech = lw.mechanisms.random_tree(8, seed, floating_base=seed % 2 == 0)
    again = from_data(json.loads(json.dumps(to_data(mech))))
    assert again == mech and hash(again) == hash(mech)
    built_in = (lw.mechanisms.stewart_platform, lw.mechanisms.loader, lw.mechanisms.stanford_arm)[seed % 3]()
    assert from_data(json.loads(json.dumps(to_data(built_in)))) == built_in
    with pytest.raises(MechanismError, match="format 2"):
        from_data({"format": 2})
    with pytest.raises(MechanismError, match="missing or strange"):
        from_data({"format": 1, "name": "x"})


def test_data_are_strict_json(tmp_path):
    """Missing limits are infinite, for which JSON has no number."""
    mech = lw.mechanisms.puma560().with_limits({"joint1": lw.Limits(-1.0), "joint2": lw.Limits(upper=2.0, effort=3.0)})
    text = json.dumps(to_data(mech), allow_nan=False)
    assert '"inf"' in text and '"-inf"' in text
    assert from_data(json.loads(text)) == mech
    passive = lw.forces.Passive.stops({"joint1": (-np.inf, 0.5), "joint2": (-0.2, np.inf)}, 10.0)
    again = lw.forces.Passive.from_data(json.loads(json.dumps(passive.to_data(), allow_nan=False)))
    assert again == passive and again.elements[0].lower == -np.inf
    motion = lw.simulate(mech, np.zeros(6), np.zeros(6), 0.01, passive=passive)
    motion.save(tmp_path / "motion.npz")
    with np.load(tmp_path / "motion.npz") as file:
        json.loads(file["about"].item(), parse_constant=pytest.fail)
    loaded = lw.files.load_trajectory(tmp_path / "motion.npz")
    assert loaded.mechanism == mech and loaded.passive == passive


def test_names_of_infinity_stay_names():
    builder = lw.Builder("inf").link("inf", 1.0, (0.0, 0.0, 0.0), (1.0, 1.0, 1.0))
    mech = builder.joint("-inf", lw.Revolute(), "ground", "inf").build()
    assert from_data(json.loads(json.dumps(to_data(mech), allow_nan=False))) == mech


def test_the_default_of_resume_has_a_name():
    assert "= KEEP, wrenches" in str(inspect.signature(lw.Trajectory.resume))


def test_tables(tmp_path):
    mech, q, v = floating_tree()
    trajectory = lw.simulate(mech, q, v, 0.1, t_eval=0.02)
    trajectory.to_csv(tmp_path / "motion.csv")
    with open(tmp_path / "motion.csv", newline="") as file:
        header, *rows = csv.reader(file)
    assert header[:3] == ["t", "q.joint1[0]", "q.joint1[1]"] and header[-1] == "passive_energy"
    table = dict(zip(header, np.array(rows, dtype=float).T, strict=True))
    np.testing.assert_array_equal(table["t"], trajectory.t)
    np.testing.assert_array_equal(table["v.joint1[5]"], trajectory.v[:, 5])
    np.testing.assert_array_equal(table["kinetic_energy"], trajectory.kinetic_energy)


def test_parquet(tmp_path, monkeypatch):
    mech, q, v = floating_tree()
    trajectory = lw.simulate(mech, q, v, 0.05)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ImportError, match="pip install 'linkwise\\[parquet\\]'"):
        trajectory.to_parquet(tmp_path / "motion.parquet")
    monkeypatch.undo()
    parquet = pytest.importorskip("pyarrow.parquet")
    trajectory.to_parquet(tmp_path / "motion.parquet")
    np.testing.assert_array_equal(parquet.read_table(tmp_path / "motion.parquet")["t"].to_numpy(), trajectory.t)


def test_numbers_of_numpy_are_saved_as_others(tmp_path):
    mech = lw.mechanisms.four_bar()
    options = {
        "step": np.float32(0.01),
        "rtol": np.float32(1e-6),
        "atol": np.array(1e-6),
        "tolerance": np.float32(1e-10),
        "worst_condition": np.int64(1000),
        "stabilization": "baumgarte",
        "baumgarte": np.array([5, 5]),
    }
    trajectory = simulate(mech, np.zeros(3), np.zeros(3), np.float32(0.05), np.zeros(3, int), **options)
    trajectory.save(tmp_path / "motion.npz")
    again = lw.files.load_trajectory(tmp_path / "motion.npz")
    assert again.settings == trajectory.settings
    np.testing.assert_array_equal(again.resume(0.01).q, trajectory.resume(0.01).q)
