"""Motions through singular positions: none stops, none leaves its branch in silence, whatever the mechanism, the method
and the tolerance."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import linkwise as lw
from linkwise.mechanism import MechanismWarning
from tests.simulated import simulate

from . import passing

MOTIONS = {
    "parallelogram": lambda: passing.parallelograms(1, 3.0),
    "fast parallelogram": lambda: passing.parallelograms(1, -12.0),
    "three parallelograms": lambda: passing.parallelograms(3, -2.0),
    "nine parallelograms": lambda: passing.parallelograms(9, 2.3, 1.0),
    "five-bar": passing.five_bar,
    "two drives": lambda: passing.two_drives(3.0, -4.0),
    "two drives, other way": lambda: passing.two_drives(-2.0, 5.0, 1.0),
    "two loops": lambda: passing.two_loops(3.0, 4.0),
    "two loops at once": lambda: passing.two_loops(3.0, 3.1, 1.0),
    "in series": lambda: passing.in_series(2.0, -5.0),
    "three cranks": lambda: passing.three_cranks(4.0),
    "three cranks, other way": lambda: passing.three_cranks(-6.0),
    "spherical": lambda: passing.spherical(5.0),
    "tumbling": passing.tumbling,
    "isosceles": lambda: passing.isosceles(6.0),
    "isosceles, other way": lambda: passing.isosceles(-9.0, 0.6),
    "bricard": lambda: passing.bricard(4.0),
    "fast bricard": lambda: passing.bricard(9.0, 0.4),
    "antiparallelogram": lambda: passing.antiparallelogram(5.0),
    "antiparallelogram, other way": lambda: passing.antiparallelogram(-8.0),
    "kite": lambda: passing.kite(-4.0),
    "kite, other way": lambda: passing.kite(6.0),
}
TOLERANCES = {
    "dop853": (1e-7, 1e-9, 1e-11),
    "rk45": (1e-7, 1e-8, 1e-9),
    "rk23": (1e-5, 1e-6, 1e-7),
    "radau": (1e-6, 1e-7, 1e-8),
    "rk4": (5e-3, 2e-3, 1e-3),  # steps
    "rollout": (5e-3, 2e-3, 1e-3),  # the same, compiled
    "bdf": (1e-6, 1e-7, 1e-8),
    "lsoda": (1e-7, 1e-8, 1e-9),
}
MULTISTEP = ("bdf", "lsoda")  # never with projection
PROJECTED = [method for method in TOLERANCES if method not in MULTISTEP]
ALL = list(itertools.product(MOTIONS, PROJECTED, range(3)))
SPREAD = [(name, method, k % 3) for k, name in enumerate(MOTIONS) for method in (PROJECTED[k % 5], "rollout")]
DRIFTING = [method for method in TOLERANCES if method != "rollout"]
ALL_DRIFTING = list(itertools.product(MOTIONS, DRIFTING, ("baumgarte", None)))
SPREAD_DRIFTING = [
    (name, method, ("baumgarte", None)[(k + i) % 2])
    for k, name in enumerate(MOTIONS)
    for i, method in enumerate((DRIFTING[k % 5], MULTISTEP[k % 2]))
]


def check(name: str, method: str, which: int, stabilization: str | None = "projection") -> None:
    """Energies and branches are kept, to the tolerance; or a warning tells when not."""
    motion, asked, projects = MOTIONS[name](), TOLERANCES[method][which], stabilization == "projection"
    mech, fixed = motion.mech, method in ("rk4", "rollout")
    error = 1e-3 * (asked / 5e-3) ** 4 if fixed else (1e3 if projects else 1e4) * asked
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", MechanismWarning)
        if method == "rollout":
            q, v = lw.rollout(mech, motion.q, motion.v, None, asked, round(motion.duration / asked))
        else:
            options = {"step": asked} if fixed else {"rtol": asked, "atol": asked}
            options |= {"method": method, "stabilization": stabilization}
            moved = simulate(mech, motion.q, motion.v, motion.duration, **options)
            q, v = moved.q, moved.v
            assert moved.t[-1] == pytest.approx(motion.duration)
    if fixed:
        conditioning = lw.constraints.conditioning(mech, q, lw.constraints.generic_rank(mech, motion.q))
        assert conditioning.min() < 0.05 * lw.constraints.usual_conditioning(
            mech, motion.q
        )  # there was something to pass
    assert np.linalg.norm(lw.constraints.position_error(mech, q), axis=-1).max() < (1e-11 if projects else error)
    kinetic = lw.kinetic_energy(mech, q, v)
    energy = kinetic + lw.potential_energy(mech, q)
    assert np.abs(energy - energy[0]).max() < max(1e-6, error) * kinetic.max()
    if not told:
        assert np.abs(motion.off(q)).max() < max(1e-6, error)


@pytest.mark.slow_cases("-0]")
@pytest.mark.quick_one_in(2)
@pytest.mark.parametrize(("name", "method", "which"), SPREAD)
def test_some_motions(name, method, which):
    check(name, method, which)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "method", "which"), [one for one in ALL if one not in SPREAD])
def test_all_motions(name, method, which):
    check(name, method, which)


@pytest.mark.parametrize(("name", "method", "stabilization"), SPREAD_DRIFTING)
def test_some_motions_without_projection(name, method, stabilization):
    check(name, method, 1, stabilization)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "method", "stabilization"), [one for one in ALL_DRIFTING if one not in SPREAD_DRIFTING]
)
def test_all_motions_without_projection(name, method, stabilization):
    check(name, method, 1, stabilization)


def test_a_sharp_corner_is_resolved_and_told_once():
    """Rough tolerances lead the five-bar beside its singular position: few arcs turn the corner."""
    start = passing.five_bar()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always", MechanismWarning)
        motion = lw.simulate(
            start.mech, start.q, start.v, 2.0, method="radau", settings=lw.motion.Settings(rtol=1e-5, atol=1e-5)
        )
    assert [str(one.message).split("mechanism")[1][:35] for one in told] == [" 'five_bar' turns a sharp corner be"]
    assert len(motion.step_sizes) < 100 and np.ptp(motion.energy) < 1e-2


def pendulum(count: int, duration: float) -> float:
    """The angle of N parallelograms, which are a pendulum, started upright at -1 rad/s."""
    inertia, weight = (count + 1) / 3.0 + count, 9.81 * ((count + 1) / 2.0 + count)
    rates = lambda t, x: [x[1], weight * np.sin(x[0]) / inertia]  # noqa: E731
    return solve_ivp(rates, (0.0, duration), [0.0, -1.0], "DOP853", rtol=1e-13, atol=1e-13).y[0, -1]


@pytest.mark.slow
@pytest.mark.parametrize("count", [1, 2, 4, 8, 16, 40])
def test_n_parallelograms_for_ten_seconds(count):
    start = passing.parallelograms(count, -1.0, 10.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MechanismWarning)
        motion = lw.simulate(start.mech, start.q, start.v, 10.0)
    np.testing.assert_allclose(motion.q[-1, : count + 1], pendulum(count, 10.0), atol=1e-4)
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-6
    assert start.off(motion.q).max() < 1e-9


@pytest.mark.slow
@pytest.mark.parametrize(
    ("count", "speed", "duration", "options", "lost"),
    [
        (9, 2.3, 3.0, {}, 1e-6),
        (6, 12.0, 3.0, {"rtol": 1e-6}, 1e-2),
        (8, 3.0, 3.0, {}, 1e-6),
        (7, 2.0, 4.0, {}, 1e-6),
    ],
)
def test_energies_of_parallelograms(count, speed, duration, options, lost):
    start = passing.parallelograms(count, speed, duration)
    motion = simulate(start.mech, start.q, start.v, duration, **options)
    assert np.abs(motion.energy - motion.energy[0]).max() < lost
    assert start.off(motion.q).max() < 1e-9


@pytest.mark.parametrize("method", ["dop853", "rk45", "radau", "rk4"])
def test_the_second_example_of_spencer2004_goes_straight_twice(method):
    start = passing.five_bar(2.0)
    with warnings.catch_warnings():
        warnings.simplefilter("error", MechanismWarning)
        motion = lw.simulate(start.mech, start.q, start.v, 2.0, method=method, t_eval=1e-3)
    values = lw.constraints.conditioning(start.mech, motion.q, 2)
    passed = motion.t[1:-1][(values[1:-1] < values[:-2]) & (values[1:-1] < values[2:]) & (values[1:-1] < 0.01)]
    np.testing.assert_allclose(passed, [0.6508, 1.8538], atol=1e-3)
    np.testing.assert_allclose(motion.q[:, 1], motion.q[:, 3], atol=2e-6)
    assert np.abs(motion.energy - motion.energy[0]).max() < 1e-5


@pytest.mark.slow_cases("[rk4]")
@pytest.mark.filterwarnings("ignore:at t = 0 s mechanism 'five_bar' is at rest")
@pytest.mark.parametrize("method", ["dop853", "rk45", "radau", "rk4"])
def test_the_stretched_five_bar_returns(method):
    """At rest again after 2.8253663 s, by quadrature of its one symmetric coordinate."""

    def turns(t, q, v):
        return v[1]

    mech = lw.mechanisms.five_bar()
    stretched = np.array([np.pi, 0.0, np.pi, 0.0])
    motion = lw.simulate(mech, stretched, np.zeros(4), 3.0, method=method, events=turns)
    (back,) = [event for event in motion.events if event.t > 2.0]
    assert back.t == pytest.approx(2.82537, abs=1e-4)
    np.testing.assert_allclose(back.q, stretched, atol=1e-4)


def test_a_batch_passes_one_by_one():
    """Each at its own time, and each as it does alone."""
    starts = [passing.parallelograms(2, speed, 1.0) for speed in (1.0, 3.0, -5.0)]
    mech, q, v = starts[0].mech, np.array([one.q for one in starts]), np.array([one.v for one in starts])

    def damped(t, q, v):
        return -0.1 * (1.0 + t) * v

    together = lw.simulate(mech, q, v, 1.0, control=damped, method="rk4", step=5e-3)
    assert starts[0].off(together.q).max() < 1e-9
    for k in range(3):
        alone = lw.simulate(mech, q[k], v[k], 1.0, control=damped, method="rk4", step=5e-3)
        np.testing.assert_allclose(together.q[:, k], alone.q, atol=1e-9)


def test_the_energy_of_a_delta_robot():
    """It falls past a corner and through a singular position, where its platform can rotate."""
    mech = lw.mechanisms.delta_robot()
    q = lw.constraints.assemble(mech, lw.neutral(mech))
    speeds = dict(zip(("arm1_joint", "arm2_joint", "arm3_joint"), (0.4, -0.2, 0.1), strict=True))
    v = lw.constraints.null_space(mech, q, independent=tuple(speeds)) @ np.array(list(speeds.values()))
    motion = lw.simulate(mech, q, v, 0.7)
    assert np.abs(motion.energy - motion.energy[0]).max() < 2e-6


def change_point_four_bar() -> lw.Mechanism:
    """Links with a + c = b + d, flat once in a turn of the crank."""
    a, b, c, d = 0.3, 0.5, 0.6, 0.4
    crank = a * np.array([np.cos(1.2), np.sin(1.2)])
    to_pin = np.array([d, 0.0]) - crank
    reach = np.hypot(*to_pin)
    angle = np.arctan2(to_pin[1], to_pin[0]) + np.arccos((b * b + reach * reach - c * c) / (2 * b * reach))
    tip = crank + b * np.array([np.cos(angle), np.sin(angle)])
    points = {"A": (0.0, 0.0), "B": tuple(crank), "C": tuple(tip), "D": (d, 0.0)}
    links = {"ground": "AD", "crank": "AB", "coupler": "BC", "rocker": "DC"}
    return lw.Builder().linkage(points, links, density=1.0).build("change_point", gravity=(0.0, -9.81, 0.0))


def test_change_points_are_passed_wherever_the_steps_before_them_end():
    """An arc that ends just in the singular position could not be gone on from."""
    mech = change_point_four_bar()
    for speed in (14.5, 14.75, 15.25, 15.5, 15.75):
        with warnings.catch_warnings():
            warnings.simplefilter("error", MechanismWarning)
            motion = lw.simulate(mech, {"A": 0.0}, {"A": speed}, 0.4)
        least = lw.constraints.conditioning(
            mech, motion.at(np.linspace(0.24, 0.3, 400))[0], lw.constraints.generic_rank(mech, motion.q[0])
        )
        assert least.min() < 0.02 * lw.constraints.usual_conditioning(mech, motion.q[0])  # there was something to pass
        assert np.ptp(motion.energy) < 1e-8 * motion.energy[0]
