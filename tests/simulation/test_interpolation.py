"""States between samples: by the integrator's own polynomials, or through the samples where these are not known."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

TIMES = np.random.default_rng(5).uniform(0.0, 0.6, 60)


def far(mech: lw.Mechanism, found: tuple[np.ndarray, np.ndarray], exact: tuple[np.ndarray, np.ndarray]) -> float:
    (q, v), (q_exact, v_exact) = found, exact
    return max(np.abs(lw.difference(mech, q, q_exact)).max(), np.abs(v - v_exact).max() / np.abs(v_exact).max())


def exact_states(mech, q, v, times, **options) -> tuple[np.ndarray, np.ndarray]:
    order = np.argsort(times)
    run = simulate(mech, q, v, 0.6, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13), t_eval=times[order], **options)
    back = np.argsort(order)
    return run.q[back], run.v[back]


def floating() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    mech = lw.mechanisms.random_tree(4, 3, floating_base=True)
    return mech, *lw.random_state(mech, np.random.default_rng(1))


def four_bar() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    mech = lw.mechanisms.four_bar()
    return mech, np.zeros(3), 5.0 * lw.constraints.null_space(mech, np.zeros(3), independent=("crank_joint",))[:, 0]


def pendulum() -> tuple[lw.Mechanism, np.ndarray, np.ndarray]:
    return lw.mechanisms.double_pendulum(), np.array([2.0, 1.0]), np.zeros(2)


@pytest.mark.parametrize("samples", [{}, {"t_eval": [0.0, 0.6]}], ids=["steps", "ends"])
@pytest.mark.parametrize(
    ("case", "method"),
    [(case, method) for case in (pendulum, floating, four_bar) for method in ("dop853", "rk45", "radau")]
    + [(case, "lsoda") for case in (pendulum, floating)],  # multistep methods cannot be projected onto loops
)
def test_adaptive_methods_interpolate_as_they_integrate(case, method, samples):
    mech, q, v = case()
    run = simulate(mech, q, v, 0.6, method=method, **samples)
    exact = exact_states(mech, q, v, TIMES)
    assert far(mech, run.at(TIMES), exact) < 1e-7 * (10 if method == "lsoda" else 1)
    one = run.at(float(TIMES[0]))
    np.testing.assert_array_equal(one[0], run.at(TIMES)[0][0])
    for k in (0, len(run.t) // 2, -1):
        np.testing.assert_array_equal(run.at(run.t[k])[0], run.q[k])
        np.testing.assert_array_equal(run.at(run.t[k])[1], run.v[k])


def test_what_held_in_a_step_holds_in_its_interpolation():
    """Forces row by row, and charts that change: what is asked for after the run is about the steps as they were."""
    mech, q, v = pendulum()
    rows = np.array([[3.0, 0.0], [-3.0, 1.0], [0.0, -2.0]])
    run = lw.simulate(mech, q, v, 0.6, rows)
    assert far(mech, run.at(TIMES), exact_states(mech, q, v, TIMES, control=rows)) < 1e-7
    mech, q, v = four_bar()
    run = lw.simulate(
        mech,
        q,
        v,
        0.6,
        settings=lw.motion.Settings(coordinates="independent", independent=("crank_joint",), worst_condition=3.0),
    )
    assert run.chart_changes > 0
    assert far(mech, run.at(TIMES), exact_states(mech, q, v, TIMES)) < 1e-7


def test_a_continued_motion_is_interpolated_throughout():
    mech, q, v = pendulum()
    stop = lw.motion.when(lambda t, q, v: t - 0.217, "stop", terminal=True)
    first = lw.simulate(mech, q, v, 0.4, events=stop)
    assert first.end.t == pytest.approx(0.217)
    both = first.resume(0.6 - first.end.t, events=())
    assert far(mech, both.at(TIMES), exact_states(mech, q, v, TIMES)) < 1e-7


@pytest.mark.parametrize("case", [pendulum, floating])
def test_through_samples_of_files_the_orders_are_six_and_five(case, tmp_path):
    mech, q, v = case()
    errors = []
    for step in (0.04, 0.02):
        run = lw.simulate(mech, q, v, 0.6, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13), t_eval=step)
        run.save(tmp_path / "run.npz")
        between = np.arange(0.01, 0.59, 0.02) + 0.003
        found = lw.files.load_trajectory(tmp_path / "run.npz").at(between)
        exact = exact_states(mech, q, v, between)
        errors.append((np.abs(lw.difference(mech, found[0], exact[0])).max(), np.abs(found[1] - exact[1]).max()))
    for order, coarse, fine in zip((6, 5), *errors, strict=True):
        assert order - 1 < np.log2(coarse / fine) < order + 1.5
    np.testing.assert_allclose(lw.files.load_trajectory(tmp_path / "run.npz").at(run.t[3])[0], run.q[3], rtol=0, atol=0)


def test_batches_are_interpolated_through_samples():
    mech = floating()[0]
    q, v = lw.random_state(mech, np.random.default_rng(3), (2, 3))
    run = lw.simulate(mech, q, v, 0.1, method="rk4", step=5e-3)
    found = run.at([0.0123, 0.05, 0.0999])
    assert found[0].shape == (3, 2, 3, mech.nq) and found[1].shape == (3, 2, 3, mech.nv)
    for index in np.ndindex(2, 3):
        alone = lw.simulate(
            mech,
            q[index],
            v[index],
            0.1,
            t_eval=[0.0123, 0.05, 0.0999],
            settings=lw.motion.Settings(rtol=1e-12, atol=1e-12),
        )
        np.testing.assert_allclose(found[0][(slice(None), *index)], alone.q, atol=1e-5)
        np.testing.assert_array_equal(found[0][(slice(None), *index)], run.member(*index).at([0.0123, 0.05, 0.0999])[0])


def test_copies_do_without_functions_and_times_have_bounds():
    mech, q, v = pendulum()
    run = lw.simulate(mech, q, v, 0.2, lambda t, q, v: -v)
    for again in (pickle.loads(pickle.dumps(run)), copy.copy(run)):
        assert again.dense is None and far(mech, again.at([0.11]), run.at([0.11])) < 1e-3
    with pytest.raises(MechanismError, match="between 0 and 0.2 s"):
        run.at(0.3)
