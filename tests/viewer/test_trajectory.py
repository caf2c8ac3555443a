"""Plots of motions: every curve is the data, every unit is the joint's."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from tests.simulated import simulate
from tests.viewer.to_draw import KINDS, built, hinged

pytest.importorskip("matplotlib")


def motion_of(mech: lw.Mechanism, steps: int = 30, q0=None) -> SimpleNamespace:
    """A motion at constant velocity from a random state."""
    q, v = lw.random_state(mech, np.random.default_rng(2))
    q = q if q0 is None else np.asarray(q0)
    t = np.linspace(0.0, 2.0, steps)
    return SimpleNamespace(mechanism=mech, t=t, q=lw.integrate(mech, q, v, t), v=np.tile(v, (steps, 1)))


def curves(figure) -> dict[str, list[tuple[str, np.ndarray, np.ndarray]]]:
    """Label of the axis -> its curves (name, x, y)."""
    found: dict[str, list] = {}
    for ax in figure.axes:
        for line in ax.get_lines():
            found.setdefault(ax.get_ylabel(), []).append((line.get_label(), line.get_xdata(), line.get_ydata()))
    return found


def legend_names(figure) -> list[str]:
    return [text.get_text() for ax in figure.axes if ax.get_legend() for text in ax.get_legend().get_texts()]


def test_positions_velocities_and_energies_are_the_data():
    mech = lw.mechanisms.double_pendulum()
    motion = motion_of(mech)
    found = curves(lw.viewer.plot_trajectory(motion))
    assert [name for name, _, _ in found["angle (rad)"]] == ["shoulder", "elbow"]
    for k in range(2):
        np.testing.assert_array_equal(found["angle (rad)"][k][2], motion.q[:, k])
        np.testing.assert_array_equal(found["velocity (rad/s)"][k][2], motion.v[:, k])
    energies = {name: y for name, _, y in found["energy (J)"]}
    np.testing.assert_allclose(energies["kinetic"], lw.kinetic_energy(mech, motion.q, motion.v))
    np.testing.assert_allclose(energies["total"], energies["kinetic"] + energies["potential"])
    ((_, _, drift),) = found["change of total\n/ largest kinetic"]
    expected = (energies["total"] - energies["total"][0]) / energies["kinetic"].max()
    np.testing.assert_allclose(drift, expected, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_units_and_names_of_every_kind(kind):
    mech = hinged(kind)
    figure = lw.viewer.plot_trajectory(motion_of(mech), energy=False)
    found = curves(figure)
    expected = {
        "revolute": (2, 0, 0),
        "helical": (2, 0, 0),
        "prismatic": (1, 1, 0),
        "cylindrical": (2, 1, 0),
        "universal": (3, 0, 0),
        "planar": (2, 2, 0),
        "pin_in_slot": (2, 1, 0),
        "spherical": (1, 0, 4),
        "floating": (1, 3, 4),
    }[kind]
    labels = ("angle (rad)", "distance (m)", "quaternion")
    assert tuple(len(found.get(label, ())) for label in labels) == expected
    rates = ("velocity (rad/s)", "velocity (m/s)", "angular velocity (rad/s)")
    assert tuple(len(found.get(label, ())) for label in rates) == (*expected[:2], 3 if expected[2] else 0)
    names = legend_names(figure)
    assert len(names) == mech.nq == len(set(names)) and all(name.startswith(("base", "hinge")) for name in names)


def test_quaternions_are_continuous_where_the_data_change_sign():
    mech = hinged("spherical")
    motion = motion_of(mech)
    motion.q[10:20, 1:] *= -1.0
    found = curves(lw.viewer.plot_trajectory(motion, energy=False))
    jumps = [np.abs(np.diff(y)).max() for _, _, y in found["quaternion"]]
    assert max(jumps) < 0.2
    norm = sum(y**2 for _, _, y in found["quaternion"])
    np.testing.assert_allclose(norm, 1.0)


def test_many_joints_are_spread_over_panels_that_can_be_read():
    mech = lw.mechanisms.chain(30)
    figure = lw.viewer.plot_trajectory(motion_of(mech))
    panels = [len(ax.get_lines()) for ax in figure.axes if ax.get_ylabel() == "angle (rad)"]
    assert sum(panels) == 30 and max(panels) <= 7
    for ax in figure.axes:
        if ax.get_ylabel() == "angle (rad)":
            assert len({line.get_color() for line in ax.get_lines()}) == len(ax.get_lines())
    assert [text for text in legend_names(figure) if text.startswith("joint")] == list(mech.joint_names)


def test_joints_can_be_chosen_and_followers_have_no_curves():
    mech = lw.mechanisms.chain(4)
    figure = lw.viewer.plot_trajectory(motion_of(mech), joints=("joint3",), energy=False)
    assert legend_names(figure) == ["joint3"]
    with pytest.raises(lw.MechanismError, match="no moving joint 'joint9'"):
        lw.viewer.plot_trajectory(motion_of(mech), joints=("joint9",))
    with pytest.raises(ValueError, match="no moving joint 'joint9'"):
        lw.viewer.plot_trajectory(motion_of(mech), joints="joint9")
    alone, listed = (lw.viewer.plot_trajectory(motion_of(mech), joints=names) for names in ("joint3", ("joint3",)))
    assert [len(ax.lines) for ax in alone.axes] == [len(ax.lines) for ax in listed.axes]
    builder = lw.Builder().link("a", 1.0, (1, 0, 0), (1, 1, 1)).link("b", 1.0, (1, 0, 0), (1, 1, 1))
    builder.joint("one", lw.Revolute(), "ground", "a").joint("two", lw.Revolute(), "a", "b", mimic=lw.Mimic("one", 2.0))
    assert legend_names(lw.viewer.plot_trajectory(motion_of(builder.build("pair")), energy=False)) == ["one"]


def test_errors_of_loops_are_shown():
    mech, q = built("five_bar")
    motion = motion_of(mech, q0=q)
    found = curves(lw.viewer.plot_trajectory(motion))
    ((_, _, error),) = found["loop error (m)"]
    np.testing.assert_allclose(error, np.linalg.norm(lw.constraints.position_error(mech, motion.q), axis=-1))
    ((_, _, slip),) = found["slip in loops (m/s)"]
    rates = np.gradient(lw.constraints.position_error(mech, motion.q), motion.t, axis=0, edge_order=2)
    np.testing.assert_allclose(slip[5:-5], np.linalg.norm(rates, axis=-1)[5:-5], rtol=0.05, atol=0.02)
    assert "loop error (m)" not in curves(lw.viewer.plot_trajectory(motion, loops=False))


def test_a_simulated_motion_with_springs(tmp_path):
    pendulum = lw.mechanisms.double_pendulum()
    motion = lw.simulate(pendulum, [1.0, 0.5], [0.0, 0.0], 1.0, method="dop853")
    figure = motion.plot(tmp_path / "motion.png")
    assert (tmp_path / "motion.png").exists()
    found = curves(figure)
    _, t, q = found["angle (rad)"][0]
    assert len(t) >= 400 > len(motion.t)  # smooth between the few steps of the integrator
    assert set(motion.t) <= set(t)
    np.testing.assert_allclose(q, motion.at(t)[0][:, 0])
    _, t, kinetic = found["energy (J)"][0]
    np.testing.assert_allclose(kinetic, lw.kinetic_energy(pendulum, *motion.at(t)))
    assert len(found["change of total\n/ largest kinetic"][0][1]) == len(
        motion.t
    )  # interpolation has errors of its own
    with_spring = SimpleNamespace(
        mechanism=pendulum, t=motion.t, q=motion.q, v=motion.v, energy=motion.energy + motion.t
    )
    energies = {name: y for name, _, y in curves(lw.viewer.plot_trajectory(with_spring))["energy (J)"]}
    np.testing.assert_allclose(energies["springs, stops"], motion.t, atol=1e-9)


def test_energy_in_springs_is_smooth_too():
    pendulum = lw.mechanisms.double_pendulum()
    springs = lw.forces.Passive.springs({"elbow": 200.0})
    motion = lw.simulate(pendulum, [0.0, 0.3], [0.0, 0.0], 1.0, passive=springs)
    energies = {name: y for name, _, y in curves(motion.plot())["energy (J)"]}
    assert len(energies["total"]) > len(motion.t) and np.ptp(energies["springs, stops"]) > 1.0
    np.testing.assert_allclose(energies["total"], motion.energy[0], atol=1e-5)


def test_round_off_does_not_fill_a_panel():
    mech = lw.mechanisms.planar_arm(2)
    t = np.linspace(0.0, 1.0, 20)
    noise = 1e-16 * np.random.default_rng(0).normal(size=(20, 2))
    still = SimpleNamespace(mechanism=mech, t=t, q=0.5 + noise, v=noise)
    positions, velocities, *_ = lw.viewer.plot_trajectory(still, energy=False).axes
    assert positions.get_ylim() == pytest.approx((0.45, 0.55)) and velocities.get_ylim() == pytest.approx((-0.05, 0.05))
    slow = SimpleNamespace(mechanism=mech, t=t, q=1e-9 * np.outer(t, [1.0, -1.0]), v=np.full((20, 2), 1e-9))
    assert np.ptp(lw.viewer.plot_trajectory(slow, energy=False).axes[0].get_ylim()) < 1e-8  # a motion all the same


def test_driven_motions_show_forces_and_their_power_instead_of_a_drift():
    mech = hinged("prismatic")
    motion = lw.simulate(mech, [0.1, 0.2], [0.0, 0.0], 0.5, lambda t, q, v: np.array([2.0 * t, -3.0]))
    found = curves(motion.plot())
    ((_, t, torque),) = found["torque (N m)"]
    np.testing.assert_array_equal(torque, 2.0 * motion.t)
    np.testing.assert_array_equal(found["force (N)"][0][2], np.full(len(motion.t), -3.0))
    ((_, _, power),) = found["power of\njoint forces (W)"]
    np.testing.assert_allclose(power, np.sum(motion.tau * motion.v, axis=1))
    work = np.sum(0.5 * (power[1:] + power[:-1]) * np.diff(motion.t))
    np.testing.assert_allclose(work, motion.energy[-1] - motion.energy[0], rtol=2e-2)
    assert "change of total\n/ largest kinetic" not in found
    free = curves(lw.simulate(mech, [0.1, 0.2], [0.0, 0.0], 0.5).plot())
    assert "torque (N m)" not in free and "change of total\n/ largest kinetic" in free


@pytest.mark.parametrize(
    "options, conserves",
    [
        ({"passive": lw.forces.Passive.dampers({"elbow": 0.5})}, False),
        ({"passive": lw.forces.Passive.friction({"elbow": 0.5})}, False),
        ({"passive": lw.forces.Passive.springs({"elbow": 0.5})}, True),
        ({"passive": lw.forces.Passive.stops({"elbow": (-1, 1)}, 100.0)}, True),
        ({"passive": lw.forces.Passive.stops({"elbow": (-1, 1)}, 100.0, damping=1.0)}, False),
        ({"wrenches": np.full((2, 6), 0.1)}, False),
    ],
    ids=str,
)
def test_a_drift_is_shown_only_where_energy_should_stay(options, conserves):
    motion = simulate(lw.mechanisms.double_pendulum(), [1.0, 0.5], [0.0, 0.0], 0.1, **options)
    figure = motion.plot()
    assert ("change of total\n/ largest kinetic" in curves(figure)) == conserves
    lowest = [ax for ax in figure.axes if ax.get_xlabel() == "time (s)"]
    assert len(lowest) == 2  # the time is below every column, whatever is at its foot
    assert all(ax.xaxis.get_tick_params()["labelbottom"] for ax in lowest)


def test_events_are_marked_and_named():
    mech = lw.mechanisms.double_pendulum()
    events = [lw.motion.joint_passes(mech, "shoulder", 0.0), lw.motion.velocity_zero(mech, "elbow")]
    motion = lw.simulate(mech, [1.0, 0.5], [0.0, 0.0], 2.0, events=events)
    assert len({event.name for event in motion.events}) == 2 and len(motion.events) > 3
    figure = motion.plot()
    for ax in figure.axes:
        marked = [line.get_xdata()[0] for line in ax.get_lines() if len(line.get_xdata()) == 2]
        assert marked == [event.t for event in motion.events]
    (key,) = figure.legends
    names = [text.get_text() for text in key.get_texts()]
    assert names == list(dict.fromkeys(event.name for event in motion.events))


def test_velocities_that_are_no_rates_have_their_own_names():
    figure = lw.viewer.plot_trajectory(motion_of(hinged("floating")), energy=False)
    assert legend_names(figure)[1:] == [
        *(f"hinge {axis}, $v_{axis}$" for axis in "xyz"),
        "hinge qw",
        *(f"hinge q{axis}, $\\omega_{axis}$" for axis in "xyz"),
    ]
    figure = lw.viewer.plot_trajectory(motion_of(hinged("planar")), energy=False)
    assert not any("$" in name for name in legend_names(figure))


def test_forces_of_followers_and_of_bad_shape():
    builder = lw.Builder().link("a", 1.0, (1, 0, 0), (1, 1, 1)).link("b", 1.0, (1, 0, 0), (1, 1, 1))
    builder.joint("one", lw.Revolute(), "ground", "a").joint("two", lw.Revolute(), "a", "b", mimic=lw.Mimic("one", 2.0))
    motion = motion_of(builder.build("pair"))
    motion.tau = np.ones((30, 1))
    assert len(curves(lw.viewer.plot_trajectory(motion, joints=("one", "two")))["torque (N m)"]) == 1
    motion.tau = np.ones((30, 2))
    with pytest.raises(ValueError, match=r"tau has shape \(30, 2\), expected \(30, 1\)"):
        lw.viewer.plot_trajectory(motion)


def test_names_are_not_cut_off(tmp_path):
    from PIL import Image

    mech = lw.mechanisms.chain(10)
    lw.viewer.plot_trajectory(motion_of(mech), tmp_path / "a.png")
    picture = np.array(Image.open(tmp_path / "a.png").convert("L"))
    for edge in (picture[0], picture[-1], picture[:, 0], picture[:, -1]):
        assert edge.min() == 255


def test_mistakes_are_named():
    mech = lw.mechanisms.chain(3)
    motion = motion_of(mech)
    with pytest.raises(TypeError, match="list has no t and no q and no v"):
        lw.viewer.plot_trajectory([])
    batch = SimpleNamespace(mechanism=mech, t=motion.t, q=np.zeros((30, 4, 3)), v=np.zeros((30, 4, 3)))
    with pytest.raises(ValueError, match="choose one of a batch"):
        lw.viewer.plot_trajectory(batch)
    nameless = SimpleNamespace(t=motion.t, q=motion.q, v=motion.v)
    with pytest.raises(TypeError, match="with its mechanism is needed"):
        lw.viewer.plot_trajectory(nameless)
    assert legend_names(lw.viewer.plot_trajectory(nameless, mech=mech, energy=False)) == list(mech.joint_names)
    with pytest.raises(ValueError, match="nothing to plot"):
        lw.viewer.plot_trajectory(motion, joints=(), energy=False)


def test_a_follower_is_plotted_with_its_own_coordinate():
    builder = lw.Builder("pair")
    for name in ("a", "b"):
        builder.link(name, 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    builder.joint("lead", lw.Revolute((1.0, 0.0, 0.0)), "ground", "a")
    builder.joint("follow", lw.Prismatic((0.0, 0.0, 1.0)), "a", "b", mimic=lw.Mimic("lead", -2.0, 0.3))
    motion = motion_of(builder.build())
    found = curves(lw.viewer.plot_trajectory(motion, joints=("lead", "follow"), energy=False))
    np.testing.assert_allclose(found["distance (m)"][0][2], -2.0 * motion.q[:, 0] + 0.3)
    np.testing.assert_allclose(found["velocity (m/s)"][0][2], -2.0 * motion.v[:, 0])


def test_joints_that_do_not_say_what_they_measure_are_drawn_all_the_same():
    class Silent(lw.Universal):
        position_measures = ()

    builder = lw.Builder("silent").link("a", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    motion = motion_of(builder.joint("knee", Silent(), "ground", "a").build())
    figure = lw.viewer.plot_trajectory(motion, energy=False)
    assert [name for name, _, _ in curves(figure)["coordinate"]] == ["knee 1", "knee 2"]
    lw.viewer.draw(motion.mechanism, motion.q[0])


@pytest.mark.parametrize("name", ["cart_pole", "four_bar", "floating", "planar", "driven"])
def test_motions_in_degrees_are_those_in_radians_times_a_factor(name):
    """Angles, their rates and accelerations, of quaternions the rates; nothing else."""
    if name == "driven":
        mech = lw.mechanisms.four_bar()
        motion = lw.linkages.driven_motion(mech, {"crank_joint": np.linspace(0.2, 0.6, 5)}, {"crank_joint": 2.0})
    else:
        motion = motion_of(hinged(name) if name in ("floating", "planar") else getattr(lw.mechanisms, name)())
    before, after = (lw.viewer.plot_trajectory(motion, energy=False, degrees=wanted) for wanted in (False, True))
    changed = 0
    for radians, degrees in zip(before.axes, after.axes, strict=True):
        label = radians.get_ylabel()
        assert degrees.get_ylabel() == label.replace("rad", "deg")
        factors = [180.0 / np.pi if "(rad" in text else 1.0 for text in (radians.get_xlabel(), label)]
        if name == "driven":
            factors[0] = 180.0 / np.pi  # over the crank's angle, named below the lowest panels only
        changed += factors[1] != 1.0
        for line, same in zip(radians.get_lines(), degrees.get_lines(), strict=True):
            np.testing.assert_allclose(same.get_xydata(), line.get_xydata() * factors, rtol=1e-12)
    assert changed
