"""Measurements: sane numbers, the same answers as other libraries, and loud where they differ."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from benchmarks import speed as bench
from benchmarks.speed import peers as others
from benchmarks.speed import report


@pytest.fixture(autouse=True)
def quick(monkeypatch):
    def moment(*calls, **options):
        return bench.best(*calls, **{**options, "rounds": 1, "slice_seconds": 0.002})

    monkeypatch.setattr(report, "best", moment)


def conditions(dtype="float64"):
    return report.Conditions({}, "", "", 4, dtype, 1, 32, 1e10)


def test_best_is_the_time_of_one_call():
    now = 0.0
    noise = np.random.default_rng(0)

    def takes(seconds: float) -> None:
        nonlocal now
        now += seconds * noise.choice([1.0, 1.5, 4.0])

    options = {"repeats": 2, "rounds": 3, "slice_seconds": 0.01, "clock": lambda: now}
    slow, quick = bench.best(lambda: takes(4e-3), lambda: takes(1e-6), **options)
    assert slow == pytest.approx(4e-3) and quick == pytest.approx(1e-6)


def test_moments_that_a_clock_misses_are_no_times():
    now, calls = 0.0, 0

    def takes() -> None:
        nonlocal now, calls
        calls += 1
        now += 1e-7 if calls == 77 else 1e-6 if calls % 10 else 3e-6  # once it stands still for a while

    (seconds,) = bench.best(takes, rounds=200, slice_seconds=0.0, clock=lambda: now)
    assert calls == 200 and seconds == pytest.approx(1e-6)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_the_peak_is_that_of_a_processor(dtype):
    assert 5e8 < bench.fma_peak(dtype) < 1e13


def test_all_kinds_of_joints_that_pinocchio_has():
    pytest.importorskip("pinocchio")
    mech = lw.mechanisms.random_tree(7, 3, joints=("revolute", "prismatic", "spherical"), floating_base=True)
    for algorithm in bench.ALGORITHMS:
        found = bench.measure(mech, algorithm, conditions())  # an ArithmeticError if the answers differ
        assert any(name.startswith("Pinocchio") for name in found.against)
        assert found.single > 0.0 and found.batch > 0.0 and found.operations > 0


def test_hinges_and_slides_in_mujoco():
    pytest.importorskip("mujoco")
    mech = lw.mechanisms.random_tree(6, 1, joints=("revolute", "prismatic"))
    for algorithm in ("inverse_dynamics", "forward_dynamics"):
        found = bench.measure(mech, algorithm, conditions())
        assert any(name.startswith("MuJoCo") for name in found.against)


def test_mechanisms_that_others_do_not_hold_have_no_peer():
    assert others.peers(lw.mechanisms.four_bar(), "mass_matrix") == []
    helical = lw.mechanisms.random_tree(3, 0, joints=("helical",))
    assert others.peers(helical, "inverse_dynamics") == []
    assert set(bench.measure(helical, "inverse_dynamics", conditions()).against) == {report.INTERPRETER}


@pytest.mark.parametrize("name", ["five_bar", "bricard"])
def test_loops_are_closed_where_their_dynamics_are_measured(name):
    mech = getattr(lw.mechanisms, name)()
    q, v = report.closed_states(mech, np.random.default_rng(0), 16)
    assert np.abs(lw.constraints.position_error(mech, q)).max() < 1e-8
    assert np.abs(lw.constraints.constraint_jacobian(mech, q) @ v[..., None]).max() < 1e-8
    assert len(np.unique(q.round(6), axis=0)) == 16
    found = bench.measure(mech, "forward_dynamics", conditions())
    assert found.batch > 0.0 and found.single > 0.0 and found.operations is None and found.against == {}


def test_formulations_of_loops_that_differ_are_an_error(monkeypatch):
    right = lw.forward_dynamics
    monkeypatch.setattr(
        lw, "forward_dynamics", lambda *a, method="svd", **o: right(*a, method=method, **o) + (method == "svd")
    )
    with pytest.raises(ArithmeticError, match="its Lagrange multipliers differ"):
        bench.measure(lw.mechanisms.four_bar(), "forward_dynamics", conditions())
    with pytest.raises(ValueError, match="float64"):
        bench.measure(lw.mechanisms.four_bar(), "forward_dynamics", conditions("float32"))


def test_answers_that_differ_are_an_error(monkeypatch):
    mech = lw.mechanisms.planar_arm(2)

    def wrong(q, *rest):
        return (lambda: None), (lambda: np.full(2, 1e3))

    monkeypatch.setattr(report, "peers", lambda mech, algorithm: [others.Peer("Wrong 1.0", wrong)])
    with pytest.raises(ArithmeticError, match="linkwise and Wrong 1.0 differ"):
        bench.measure(mech, "inverse_dynamics", conditions())


def test_threads_are_given_back():
    before = lw.codegen.get_num_threads()
    at = report.Conditions({}, "", "", 4, "float64", 1, 32, 1e10)
    bench.measure(lw.mechanisms.planar_arm(2), "mass_matrix", at)
    assert lw.codegen.get_num_threads() == before
