"""What is asked for: controls, samples, batches, interruptions; and what cannot be."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

ARM = lw.mechanisms.planar_arm(2)
REST = np.zeros(2)
METHODS = ("dop853", "rk45", "rk23", "radau", "bdf", "lsoda", "rk4", "semi_implicit")


def test_samples_at_given_times_are_those_of_the_motion():
    q, v = [0.4, 0.2], [1.0, -1.0]
    times = np.array([0.0, 0.013, 0.5, 0.77, 1.0])
    exact = [lw.simulate(ARM, q, v, t, settings=lw.motion.Settings(rtol=1e-13, atol=1e-13)).q[-1] for t in times[1:]]
    for method in METHODS[:-1]:
        found = lw.simulate(
            ARM, q, v, 1.0, method=method, t_eval=times, settings=lw.motion.Settings(rtol=1e-8, atol=1e-8), step=1e-2
        )
        np.testing.assert_array_equal(found.t, times)
        np.testing.assert_allclose(found.q[1:], exact, atol=2e-5)
        np.testing.assert_allclose(found.a, lw.forward_dynamics(ARM, found.q, found.v, 0.0 * found.v), atol=1e-12)
    even = lw.simulate(ARM, q, v, 1.0, t_eval=0.3)
    np.testing.assert_allclose(even.t, [0.0, 0.3, 0.6, 0.9, 1.0])
    np.testing.assert_allclose(lw.simulate(ARM, q, v, 1.0, method="rk4", t_eval=0.1).t, np.linspace(0, 1, 11))
    assert lw.simulate(ARM, q, v, 1.0, t_eval=[0.5]).t.tolist() == [0.5]
    assert lw.simulate(ARM, q, v, 1.0, t_eval=[0.5]).end.t == 1.0


@pytest.mark.parametrize("method", ["dop853", "rk4", "radau", "semi_implicit"])
def test_forces_row_by_row_are_held(method):
    """Three rows over 0.6 s are three motions of 0.2 s, one after the other; no step crosses a change."""
    rows = np.array([[1.0, 0.0], [-2.0, 0.5], [0.0, 3.0]])
    options = {"method": method, "step": 0.01}
    found = simulate(ARM, REST, REST, 0.6, rows, **options)
    q = v = REST
    for row in rows:
        part = simulate(ARM, q, v, 0.2, row, **options)
        q, v = part.q[-1], part.v[-1]
    np.testing.assert_allclose(found.q[-1], q, atol=1e-9)
    held = {tuple(row) for row in found.tau}
    assert held == {tuple(row) for row in rows}
    assert np.isclose(found.t[:, None], [0.2, 0.4], atol=1e-12).any(axis=0).all()
    np.testing.assert_allclose(found.a, lw.forward_dynamics(ARM, found.q, found.v, found.tau), atol=1e-12)
    same = lw.simulate(ARM, REST, REST, 0.6, lambda t, q, v: rows[min(2, int(t / 0.2))], method="rk4", step=1e-4)
    np.testing.assert_allclose(found.q[-1], same.q[-1], atol=5e-2 if method == "semi_implicit" else 5e-3)


@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("case", ["free", "controlled", "rows", "springs", "nu"])
def test_batches_move_like_their_members(case, method):
    mech = lw.mechanisms.random_tree(3, 8, floating_base=True)
    q, v = lw.random_state(mech, np.random.default_rng(0), (2, 3))
    options = {"method": method, "step": 1e-2}
    if case == "controlled":
        options["control"] = lambda t, q, v: -v * np.cos(t)
    elif case == "rows":
        options["control"] = np.random.default_rng(1).normal(size=(4, mech.nv))
    elif case == "springs":
        options["passive"] = lw.forces.Passive.springs({mech.joint_names[0]: 2.0})
    elif case == "nu":
        options["coordinates"] = "nu"
    together = simulate(mech, q, v, 0.08, **options)
    assert together.q.shape == (9, 2, 3, mech.nq) and together.energy.shape == (9, 2, 3)
    alone = simulate(mech, q[1, 2], v[1, 2], 0.08, **options)
    member = together.member(1, 2)
    for name in ("q", "v", "a", "tau"):
        np.testing.assert_allclose(getattr(member, name), getattr(alone, name), atol=1e-9)
    again = {"control": options["control"]} if case in ("controlled", "rows") else {}
    np.testing.assert_allclose(member.resume(0.04, **again).q, alone.resume(0.04, **again).q, atol=1e-9)
    with pytest.raises(MechanismError, match="needs 2 indices"):
        together.member(1)
    with pytest.raises(MechanismError, match="one motion"):
        together.table()


def test_initial_states_are_broadcast_and_left_alone():
    q, v = np.zeros((4, 2)), np.ones(2)
    trajectory = lw.simulate(ARM, q, v, 0.01, method="rk4")
    assert trajectory.q.shape == (11, 4, 2)
    assert not q.any() and (v == 1.0).all()
    assert lw.simulate(ARM, (0, 0), [0, 1], 0.01).q.dtype == float


def test_steps_are_fitted_to_the_duration():
    trajectory = lw.simulate(ARM, REST, REST, 0.0105, method="rk4", step=1e-3)
    assert len(trajectory.step_sizes) == 10 and trajectory.t[-1] == pytest.approx(0.0105, abs=1e-15)
    assert np.ptp(trajectory.step_sizes) < 1e-15
    assert lw.simulate(ARM, REST, REST, 1.0, step=0.01).step_sizes.max() <= 0.01 + 1e-12


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.filterwarnings("error")
def test_ctrl_c_gives_what_was_computed(method):
    calls = 0

    def control(t, q, v):
        nonlocal calls
        calls += t > 0.1
        if calls > 3:  # and it would again: nothing may call the controller after this
            raise KeyboardInterrupt
        return -v

    trajectory = lw.simulate(
        ARM, [0.5, 0.5], REST, 1.0, control, method=method, settings=lw.motion.Settings(rtol=1e-6, atol=1e-6), step=0.01
    )
    assert trajectory.interrupted and trajectory.stopped == "interrupted"
    assert 0.05 < trajectory.t[-1] < 0.2 and trajectory.end.t >= trajectory.t[-1]
    assert len(trajectory.t) == len(trajectory.q) == len(trajectory.a) == len(trajectory.tau)
    calls = -(10**9)
    assert trajectory.resume(0.2, control=control).t[-1] == pytest.approx(trajectory.end.t + 0.2)


def test_progress_is_shown_on_stderr(capsys):
    pytest.importorskip("tqdm")
    lw.simulate(ARM, REST, REST, 0.1, settings=lw.motion.Settings(progress=True))
    shown = capsys.readouterr()
    assert shown.out == "" and "100%" in shown.err and "0.100 of 0.1 s" in shown.err
    lw.simulate(ARM, REST, REST, 0.1)
    assert capsys.readouterr().err == ""


def test_a_motion_that_runs_away_says_so_and_keeps_what_it_has():
    stiff = lw.forces.Passive.springs({joint: 1e9 for joint in ARM.joint_names})
    with np.errstate(over="ignore", invalid="ignore"):
        with pytest.raises(lw.SimulationError, match="take smaller steps") as failure:
            lw.simulate(ARM, REST, REST + 1.0, 10.0, method="semi_implicit", step=0.05, passive=stiff)
    kept = failure.value.trajectory
    assert kept.stopped.startswith("failed") and 1 <= len(kept.t) < 200 and np.isfinite(kept.q).all()

    def explosive(t, q, v):  # velocities of 1 / (1 - t), and worse
        return lw.inverse_dynamics(ARM, q, v, np.clip(v, -1e100, 1e100) ** 2)

    with pytest.raises(lw.SimulationError, match="followed to t = ") as failure:
        lw.simulate(ARM, REST, REST + 1.0, 2.0, explosive)
    assert 0.9 < failure.value.trajectory.end.t < 1.1


def test_errors_of_controllers_name_the_time():
    def late(value):
        return lambda t, q, v: REST if t < 0.05 else value

    with pytest.raises(lw.SimulationError, match=r"at t = 0.05\d* s the controller gives forces of shape \(3,\)"):
        lw.simulate(ARM, REST, REST, 1.0, late(np.zeros(3)), method="rk4", step=0.01)
    with pytest.raises(lw.SimulationError, match=r"at t = 0.05\d* s the controller gives forces that are not finite"):
        lw.simulate(ARM, REST, REST, 1.0, late(np.array([0.0, np.nan])), method="rk4", step=0.01)

    def broken(t, q, v):
        raise ZeroDivisionError("own error")

    with pytest.raises(ZeroDivisionError, match="own error"):
        lw.simulate(ARM, REST, REST, 1.0, broken)


def test_loops_that_are_not_closed_are_refused():
    with pytest.raises(lw.constraints.AssemblyError, match=r"constraints\.assemble\(mech, q\)"):
        lw.simulate(lw.mechanisms.four_bar(), [0.5, 0.0, 0.0], np.zeros(3), 1.0)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "dop835"}, "unknown method 'dop835': did you mean 'dop853'"),
        ({"method": "euler"}, "unknown method 'euler'"),
        ({"duration": -1.0}, "duration must be a positive number"),
        ({"duration": np.nan}, "duration must be a positive number"),
        ({"q0": [0.0]}, r"q0 has shape \(1,\)"),
        ({"v0": [0.0, np.inf]}, "v0 has entries that are not finite"),
        ({"q0": [np.nan, 0.0]}, "q0 has entries that are not finite"),
        ({"q0": np.zeros((3, 2))}, "one state at a time"),
        ({"step": -1.0}, "step must be a positive number"),
        ({"method": "rk4", "step": 10.0}, "needs at least one step"),
        ({"rtol": 0.0}, "rtol must be a positive number"),
        ({"stabilization": "glue"}, "stabilization must be"),
        ({"formulation": "svt"}, "unknown formulation 'svt': did you mean 'svd'"),
        ({"baumgarte": (1.0, 1.0)}, "needs stabilization='baumgarte'"),
        ({"baumgarte": (-1.0, 1.0), "stabilization": "baumgarte"}, "must not be negative"),
        ({"baumgarte": 1.0, "stabilization": "baumgarte"}, r"two numbers \(alpha, beta\)"),
        ({"worst_condition": np.nan}, "worst_condition must be a positive number"),
        ({"keep_energy": True, "stabilization": None}, "keep_energy needs"),
        ({"keep_energy": True, "method": "bdf"}, "projection would falsify"),
        ({"keep_energy": True, "control": [1.0, 0.0]}, "keep_energy is for free motions"),
        ({"control": np.zeros(3)}, r"control has shape \(3,\)"),
        ({"control": np.zeros((0, 2))}, r"control has shape \(0, 2\)"),
        ({"control": [[0.0, 1.0], [np.nan, 0.0]]}, "row 1 of control is not finite"),
        ({"t_eval": [0.0, 2.0]}, "t_eval must be between 0 and 1 s"),
        ({"t_eval": [0.5, 0.2]}, "each later than the one before"),
        ({"t_eval": 0.0}, "t_eval must be a positive number of seconds between samples"),
    ],
)
def test_requests_that_make_no_sense(options, message):
    given = {"q0": REST, "v0": REST, "duration": 1.0, **options}
    with pytest.raises(ValueError, match=message):
        simulate(ARM, **given)


@pytest.mark.parametrize(
    ("former", "now"),
    [
        ({"rtol": 1e-6, "atol": 1e-7}, {"settings": lw.motion.Settings(rtol=1e-6, atol=1e-7)}),
        ({"coordinates": "momentum", "settings": lw.motion.Settings(rtol=1e-6)},) * 2,
        ({"keep_energy": True, "method": "rk4"}, {"settings": lw.motion.Settings(keep_energy=True), "method": "rk4"}),
        ({"output_step": 0.03}, {"t_eval": 0.03}),
        ({"progress": False, "output_step": None}, {}),
    ],
    ids=str,
)
def test_former_keywords_still_work_and_say_where_they_went(former, now):
    name = next(name for name in former if name not in ("method", "settings"))
    with pytest.warns(DeprecationWarning, match=rf"lw.simulate\(..., {name}=...\) is .*=.* now"):
        motion = lw.simulate(ARM, REST, REST + 0.3, 0.1, **former)
    if "settings" in former:
        now = {"settings": lw.motion.Settings(rtol=1e-6, coordinates="momentum")}
    expected = lw.simulate(ARM, REST, REST + 0.3, 0.1, **now)
    assert np.array_equal(motion.t, expected.t) and np.array_equal(motion.q, expected.q)
    assert motion.settings == expected.settings


def test_former_keywords_do_not_contradict_those_of_now():
    with pytest.warns(DeprecationWarning), pytest.raises(ValueError, match="give t_eval or output_step, not both"):
        lw.simulate(ARM, REST, REST, 1.0, t_eval=[0.5], output_step=0.1)
    with pytest.raises(TypeError, match="'contrl': did you mean 'control'"):
        lw.simulate(ARM, REST, REST, 1.0, contrl=None)


def test_names_that_are_misspelt_have_a_hint():
    with pytest.raises(TypeError, match=r"'rtoll': did you mean settings=lw.motion.Settings\(rtol=...\)"):
        lw.simulate(ARM, REST, REST, 1.0, rtoll=1e-6)
    with pytest.raises(TypeError, match="'xyzzy': known: 'settings', 'mech'"):
        lw.simulate(ARM, REST, REST, 1.0, xyzzy=1)
    with pytest.raises(TypeError, match=r"Settings\(\) got an unexpected keyword argument 'rtl': did you mean 'rtol'"):
        lw.motion.Settings(rtl=1e-6)


def test_settings_are_checked_where_they_are_made():
    for wrong in ({"rtol": -1.0}, {"atol": 0.0}, {"tolerance": np.nan}, {"worst_condition": "much"}):
        with pytest.raises(MechanismError, match=f"{next(iter(wrong))} must be a positive number"):
            lw.motion.Settings(**wrong)


def test_a_missing_duration_is_named():
    with pytest.raises(MechanismError, match="duration is missing"):
        lw.simulate(ARM, REST, REST)


FOUR_BAR = lw.mechanisms.four_bar()


@pytest.mark.parametrize(
    ("mech", "method", "asked"),
    [
        (ARM, None, {"rtol": 1e-6}),
        (ARM, "rk4", {"keep_energy": True}),
        (ARM, None, {"coordinates": "momentum", "atol": 1e-6}),
        (FOUR_BAR, None, {}),
        (FOUR_BAR, None, {"stabilization": None}),
        (FOUR_BAR, "rk4", {"stabilization": "baumgarte", "baumgarte": (5.0, 6.0)}),
        (FOUR_BAR, None, {"coordinates": "independent", "independent": "crank_joint", "worst_condition": 50.0}),
        (FOUR_BAR, None, {"coordinates": "independent", "independent": [[1.0, 0.0, 0.0]]}),
    ],
    ids=str,
)
def test_recorded_settings_set_up_the_same_motion_again(mech, method, asked, tmp_path):
    v0 = {"crank_joint" if mech.loops else "joint1": 0.5}
    first = lw.simulate(mech, None, v0, 0.2, method=method, settings=lw.motion.Settings(**asked))
    first.save(tmp_path / "motion.npz")
    for recorded in (first.settings, lw.files.load_trajectory(tmp_path / "motion.npz").settings):
        again = lw.simulate(mech, None, v0, 0.2, method=method, settings=recorded)
        assert again.settings == first.settings
        assert np.array_equal(again.t, first.t) and np.array_equal(again.q, first.q)
    finer = lw.simulate(mech, None, v0, 0.2, method=method, settings=dataclasses.replace(first.settings, rtol=1e-4))
    assert finer.settings == dataclasses.replace(first.settings, rtol=1e-4)


def test_recorded_settings_contradict_and_lose_nothing():
    recorded = lw.simulate(FOUR_BAR, None, None, 0.01).settings
    with pytest.raises(ValueError, match="needs stabilization='baumgarte'"):
        lw.simulate(FOUR_BAR, None, None, 0.01, settings=dataclasses.replace(recorded, baumgarte=(1.0, 2.0)))
    crank = lw.kinematics.Coordinates(lambda q: q[:1], lambda q: np.eye(3)[:1], lambda q, v: np.zeros(1))
    independent = lw.motion.Settings(coordinates="independent", independent=crank)
    recorded = lw.simulate(FOUR_BAR, None, None, 0.01, settings=independent).settings
    with pytest.raises(MechanismError, match="independent coordinates are functions"):
        lw.simulate(FOUR_BAR, None, None, 0.01, settings=recorded)
    again = lw.simulate(FOUR_BAR, None, None, 0.01, settings=dataclasses.replace(recorded, independent=crank))
    assert again.settings == recorded


def test_other_requests_that_make_no_sense():
    with pytest.raises(TypeError, match="control must be a function"):
        lw.simulate(ARM, REST, REST, 1.0, "go")
    for other in (REST + 1j, ["1", "2"], [[1.0, 2.0], [3.0]]):
        with pytest.raises(TypeError, match="an array of forces, real numbers, not"):
            lw.simulate(ARM, REST, REST, 1.0, other)
    with pytest.raises(MechanismError, match="wrenches must be an array"):
        lw.simulate(ARM, REST, REST, 1.0, wrenches=np.zeros((2, 6), complex))
    with pytest.raises(TypeError, match="passive must be a linkwise.forces.Passive"):
        lw.simulate(ARM, REST, REST, 1.0, passive={"joint1": 1.0})
    with pytest.raises(TypeError, match="a Mechanism is needed"):
        lw.simulate("arm", REST, REST, 1.0)
    ball = lw.Builder().link("b", 1.0, (0, 0, 0), (1, 1, 1)).joint("ball", lw.Spherical(), "ground", "b").build()
    with pytest.raises(MechanismError, match="the quaternion of joint 'ball' in q0 is zero"):
        lw.simulate(ball, np.zeros(4), np.zeros(3), 1.0)
    still = lw.Builder().link("b", 1.0, (0, 0, 0), (1, 1, 1)).joint("weld", lw.Fixed(), "ground", "b").build()
    with pytest.raises(MechanismError, match="no joint that moves"):
        lw.simulate(still, [], [], 1.0)


def test_energy_can_be_kept_in_trees_too():
    options = {"method": "rk4", "step": 0.02}
    drifting = simulate(ARM, [0.5, 0.5], REST, 2.0, **options)
    kept = simulate(ARM, [0.5, 0.5], REST, 2.0, settings=lw.motion.Settings(keep_energy=True), **options)
    assert np.ptp(kept.energy) < 1e-12 < 1e-6 < np.ptp(drifting.energy)
    np.testing.assert_allclose(kept.q[-1], drifting.q[-1], atol=1e-2)


def test_trajectories_without_samples():
    unseen = lw.simulate(ARM, REST, REST, 0.1, t_eval=[])
    assert unseen.q.shape == (0, 2) and unseen.energy.shape == (0,) and unseen.end.t == 0.1
    with pytest.raises(MechanismError, match="without samples cannot be drawn"):
        unseen.plot()


def test_all_but_the_duration_may_be_left_out(tmp_path):
    mech = lw.mechanisms.four_bar().metadata.with_initial([0.4, -0.4299, 0.1446])
    motion = lw.simulate(mech, duration=0.1)
    np.testing.assert_allclose(motion.q[0], lw.constraints.assemble(mech), atol=1e-9)
    assert not motion.v[0].any() and motion.t[-1] == pytest.approx(0.1)
    with pytest.raises(lw.MechanismError, match="duration is missing"):
        lw.simulate(mech)
    assert motion.animate(tmp_path / "motion.gif", fps=10.0, dpi=40).exists()


def test_pushes_by_link_are_named_by_wrenches_at():
    mech = lw.mechanisms.planar_arm(2)
    with pytest.raises(lw.SimulationError, match="wrenches gives a dictionary.*linkwise.forces.wrenches_at makes one"):
        lw.simulate(mech, duration=0.1, wrenches=lambda t, q, v: {"link2": np.zeros(6)})
