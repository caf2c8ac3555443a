"""Plots of linear models: eigenvalues, frequency and step responses, and modes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg
import scipy.signal

import linkwise as lw
from tests.viewer.to_draw import built

pytest.importorskip("matplotlib")


def pendulum(angle: float = 0.0) -> lw.control.StateSpace:
    """A uniform rod of 1 m and 1 kg: d2q/dt2 = -1.5 g q + 3 tau."""
    builder = lw.Builder().link("rod", 1.0, (0.0, 0.0, -0.5), (1 / 12, 1 / 12, 0.0))
    mech = builder.joint("hinge", lw.Revolute((0, 1, 0)), "ground", "rod").build("pendulum")
    return lw.linearize(mech, [angle], [0.0])


OMEGA = np.sqrt(1.5 * 9.81)


def lines(ax) -> dict[str, tuple[np.ndarray, np.ndarray]]:
    return {line.get_label(): (line.get_xdata(), line.get_ydata()) for line in ax.get_lines()}


def points(ax) -> np.ndarray:
    return np.concatenate([dots.get_offsets() for dots in ax.collections])


def test_eigenvalues_are_where_they_are():
    (ax,) = lw.viewer.plot_eigenvalues(pendulum()).axes
    np.testing.assert_allclose(np.sort(points(ax)[:, 1]), [-OMEGA, OMEGA])
    assert ax.get_legend() is None
    (low, high), extent = ax.get_xlim(), np.ptp(ax.get_ylim())
    assert low < 0.0 < high and high - low > 0.1 * extent  # round-off is not blown up


def test_eigenvalues_that_grow_are_marked():
    (ax,) = lw.viewer.plot_eigenvalues(pendulum(np.pi)).axes
    decaying, growing = (dots.get_offsets()[:, 0] for dots in ax.collections)
    np.testing.assert_allclose((decaying[0], growing[0]), (-OMEGA, OMEGA))
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["grows"]


def test_eigenvalues_of_arrays_of_a_parameter_and_by_name():
    values = np.array([-1.0 + 2.0j, -1.0 - 2.0j])
    np.testing.assert_allclose(np.sort(points(lw.viewer.plot_eigenvalues(values).axes[0])[:, 1]), [-2.0, 2.0])
    locus = np.array([values - k for k in range(5)])
    figure = lw.viewer.plot_eigenvalues(locus)
    assert len(points(figure.axes[0])) == 10 and len(figure.axes) == 2  # with a bar of colours
    (ax,) = lw.viewer.plot_eigenvalues({"soft": values, "stiff": 2.0 * values}).axes
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["soft", "stiff"]
    low, high = ax.get_xlim()
    assert low < -2.0 and high > 0.0
    for wrong in ([], [np.nan], 3.0, {}):
        with pytest.raises(ValueError, match="eigenvalues"):
            lw.viewer.plot_eigenvalues(wrong)


def test_the_frequency_response_of_a_pendulum():
    figure = lw.viewer.plot_bode(pendulum(), frequencies=[0.5, 1.0, 3.0, 10.0, 30.0])
    gain, phase = figure.axes
    omega, decibels = lines(gain)["hinge"]
    np.testing.assert_allclose(decibels, 20.0 * np.log10(np.abs(3.0 / (OMEGA**2 - omega**2))))
    np.testing.assert_allclose(lines(phase)["hinge"][1], [0, 0, 0, -180, -180], atol=1e-6)
    assert gain.get_title(loc="left") == "input: hinge" and gain.get_xscale() == "log"


def test_phases_without_damping_are_those_of_slight_damping():
    """Three links, each joint driven: every curve falls at its poles and rises at its zeros."""
    arm = lw.mechanisms.planar_arm(3)
    q = [-np.pi / 2, 0.0, 0.0]
    model = lw.linearize(arm, q, outputs=("joint1", "joint2", "joint3", "joint1.rate"))
    slow = model.A - np.diag(
        [0, 0, 0, 1e-4, 1e-4, 1e-4]
    )  # a drag in proportion to the inertia: poles and zeros move left
    damped = scipy.signal.StateSpace(slow, model.B, model.C, model.D)
    omega = np.geomspace(0.1, 300.0, 4000)
    ours, slight = (lw.viewer.plot_bode(one, frequencies=omega).axes[1::2] for one in (model, damped))
    for i, (ax, other) in enumerate(zip(ours, slight, strict=True)):
        for o, name in enumerate(model.output_names):
            phase, expected = lines(ax)[name][1], lines(other)[f"y{o + 1}"][1]
            assert np.mean(np.abs(phase - expected) > 5.0) < 0.01  # but for the resonances themselves
            if o == i:
                assert all(tick % 90.0 == 0.0 for tick in ax.get_yticks())
                np.testing.assert_allclose(np.unique(np.round(phase)), [-180.0, 0.0])


def test_a_frequency_at_a_pole_and_a_body_that_drifts():
    (_, phase) = lw.viewer.plot_bode(pendulum(), frequencies=[0.5 * OMEGA, OMEGA, 2.0 * OMEGA]).axes
    np.testing.assert_allclose(lines(phase)["hinge"][1], [0.0, -90.0, -180.0], atol=1e-3)
    slide = lw.Builder().link("block", 2.0).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "block").build()
    (gain, phase) = lw.viewer.plot_bode(lw.linearize(slide, [0.0]), frequencies=[1.0, 10.0]).axes
    np.testing.assert_allclose(lines(phase)["slide"][1], -180.0, atol=1e-6)
    np.testing.assert_allclose(lines(gain)["slide"][1], 20.0 * np.log10([0.5, 0.005]))


def test_steps_have_the_units_of_their_outputs():
    def labels(mech, q, **chosen):
        return [ax.get_ylabel() for ax in lw.viewer.plot_step(lw.linearize(mech, q, **chosen), 0, duration=1.0).axes]

    arm, slider = lw.mechanisms.planar_arm(2), lw.mechanisms.stanford_arm()
    assert labels(arm, [0.0, 0.0], outputs=("joint1", "joint2.rate")) == ["response (rad)", "rate (rad/s)"]
    assert labels(slider, lw.neutral(slider))[0] == "response (rad, m)"
    floating = lw.Builder().link("body", 1.0, inertia=(1, 1, 1)).joint("base", lw.Floating(), "ground", "body").build()
    assert labels(floating, lw.neutral(floating), outputs=("base[1]", "base[4].rate")) == [
        "response (rad)",
        "rate (m/s)",
    ]
    assert labels(arm, [0.0, 0.0], outputs=np.eye(1, 4)) == ["response"]
    plain = scipy.signal.StateSpace([[-1.0]], [[1.0]], [[1.0]], [[0.0]])
    assert lw.viewer.plot_step(plain).axes[0].get_ylabel() == "response"


def test_frequency_responses_agree_with_scipy():
    rng = np.random.default_rng(0)
    system = scipy.signal.StateSpace(
        rng.normal(size=(4, 4)) - 3.0 * np.eye(4),
        rng.normal(size=(4, 2)),
        rng.normal(size=(3, 4)),
        rng.normal(size=(3, 2)),
    )
    omega = np.geomspace(0.1, 100.0, 7)
    figure = lw.viewer.plot_bode(system, frequencies=omega)
    assert len(figure.axes) == 4
    for i in range(2):
        for o in range(3):
            one = (system.A, system.B[:, [i]], system.C[[o]], system.D[[o]][:, [i]])
            expected = scipy.signal.freqresp(one, omega)[1]
            np.testing.assert_allclose(
                lines(figure.axes[2 * i])[f"y{o + 1}"][1], 20 * np.log10(np.abs(expected)), rtol=1e-6, atol=1e-6
            )
            turns = (lines(figure.axes[2 * i + 1])[f"y{o + 1}"][1] - np.degrees(np.angle(expected))) / 360.0
            np.testing.assert_allclose(turns, np.round(turns), atol=1e-8)


def test_frequencies_reach_beyond_all_eigenvalues():
    omega = lines(lw.viewer.plot_bode(pendulum()).axes[0])["hinge"][0]
    assert omega[0] < 0.2 * OMEGA and omega[-1] > 5.0 * OMEGA


def test_the_step_response_of_a_pendulum():
    figure = lw.viewer.plot_step(pendulum(), duration=2.0)
    t, q = lines(figure.axes[0])["hinge"]
    np.testing.assert_allclose(q, 3.0 / OMEGA**2 * (1.0 - np.cos(OMEGA * t)), atol=1e-6)
    assert figure.axes[0].get_title(loc="left") == "unit step of hinge, 1 N m" and t[-1] == 2.0
    t, _ = lines(lw.viewer.plot_step(pendulum()).axes[0])["hinge"]
    assert 2.0 * np.pi / OMEGA < t[-1] < 60.0 / OMEGA  # at least one swing


def test_gains_have_units_where_all_curves_share_them():
    mech = lw.mechanisms.cart_pole()
    model = lw.linearize(mech, [0.0, 0.3])
    for driven, seen, label in (
        ("rail", "hinge", "gain (dB re 1 rad/N)"),
        ("hinge", "rail", "gain (dB re 1 m/(N m))"),
        ("hinge", ("rail", "hinge"), "gain (dB)"),
    ):
        assert lw.viewer.plot_bode(model, driven, seen, frequencies=[1.0, 2.0]).axes[0].get_ylabel() == label
    assert lw.viewer.plot_bode(model.to_scipy(), frequencies=[1.0, 2.0]).axes[0].get_ylabel() == "gain (dB)"


def test_inputs_and_outputs_by_name_and_number(tmp_path):
    mech, q = built("double_pendulum")
    model = lw.linearize(mech, [0.0, 0.0], [0.0, 0.0])
    figure = lw.viewer.plot_bode(model, "elbow", "shoulder", path=tmp_path / "bode.svg")
    assert set(lines(figure.axes[0])) == {"shoulder"} and len(figure.axes) == 2
    assert (tmp_path / "bode.svg").exists()
    assert len(lw.viewer.plot_step(model, [0, "elbow"]).axes) == 2
    with pytest.raises(ValueError, match="no input 'knee': available: 'shoulder', 'elbow'"):
        lw.viewer.plot_bode(model, "knee")
    with pytest.raises(ValueError, match="no output 7"):
        lw.viewer.plot_step(model, output=7)
    with pytest.raises(ValueError, match="positive numbers"):
        lw.viewer.plot_bode(model, frequencies=[0.0, 1.0])
    with pytest.raises(ValueError, match="duration must be positive"):
        lw.viewer.plot_step(model, duration=-1.0)
    with pytest.raises(TypeError, match="lw.linearize"):
        lw.viewer.plot_bode(np.eye(2))


def test_modes_of_a_double_pendulum_swing_together_and_against_each_other():
    mech, _ = built("double_pendulum")
    figure = lw.viewer.plot_modes(lw.linearize(mech, [0.0, 0.0], [0.0, 0.0]))
    assert len(figure.axes) == 2
    for ax, same_side in zip(figure.axes, (True, False), strict=True):
        assert ax.get_title().endswith("Hz")
        bars = [artist.get_paths() for artist in ax.collections if artist.get_gid() == "bars"]
        assert len(bars) == 5  # where it hangs, and two places on either side
        elbow, tip = bars[0][1].vertices[:, 0]
        assert (elbow * (tip - elbow) > 0.0) == same_side
        spread = max(abs(path.vertices[:, 0]).max() for paths in bars for path in paths)
        assert 0.05 < spread < 0.5
    frequencies = [float(ax.get_title().split()[0]) for ax in figure.axes]
    mass = np.array([[8.0 / 3.0, 5.0 / 6.0], [5.0 / 6.0, 1.0 / 3.0]])
    stiffness = 9.81 * np.array([[2.0, 0.5], [0.5, 0.5]])
    exact = np.sqrt(scipy.linalg.eigh(stiffness, mass, eigvals_only=True)) / (2.0 * np.pi)
    np.testing.assert_allclose(frequencies, exact, rtol=5e-3)  # titles have three digits


def test_modes_of_closed_and_spatial_mechanisms():
    loader, q = built("loader")
    here = np.array(q)
    figure = lw.viewer.plot_modes(lw.linearize(loader, here, np.zeros(loader.nv)), count=3)
    assert 1 <= len(figure.axes) <= 3 and all(ax.name == "rectilinear" for ax in figure.axes)
    puma = lw.mechanisms.puma560()
    hold = np.array([0.0, -1.5, 0.3, 0.1, 0.2, 0.0])
    model = lw.linearize(puma, hold, np.zeros(6), tau=lw.gravity_force(puma, hold))
    figure = lw.viewer.plot_modes(model, count=4)
    assert len(figure.axes) == 4 and all(ax.name == "3d" and ax.get_title() for ax in figure.axes)
    with pytest.raises(ValueError, match="at least one mode"):
        lw.viewer.plot_modes(model, count=0)
    with pytest.raises(TypeError, match="a StateSpace is needed"):
        lw.viewer.plot_modes(np.eye(3))


def test_modes_are_drawn_with_their_loops_closed():
    """The drawn links keep their length where a joint is a side of a loop: pins of coupler and rocker coincide."""
    mech = lw.mechanisms.four_bar()
    model = lw.linearize(mech, {"crank_joint": 0.9})
    figure = lw.viewer.plot_modes(model, count=1)
    (ax,) = figure.axes
    assert not [one for one in ax.collections if one.get_gid() == "gaps"]
    bars = [np.concatenate([path.vertices for path in c.get_paths()]) for c in ax.collections if c.get_gid() == "bars"]
    assert len(bars) == 5  # here, and four excursions
    spread = np.ptp([one.mean(axis=0) for one in bars], axis=0).max()
    assert spread > 0.02  # which can be told from each other


def test_models_draw_themselves(tmp_path):
    model = pendulum()
    for name in ("eigenvalues", "bode", "step"):
        getattr(model, f"plot_{name}")(tmp_path / f"{name}.png")
    assert len(list(tmp_path.iterdir())) == 3
