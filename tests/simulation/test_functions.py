"""Functions of the user: what they do to their arguments, and what they give."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError
from tests.simulated import simulate

ARM = lw.mechanisms.planar_arm(2)
START = np.array([0.4, 0.2]), np.array([1.0, -1.0])


def same(first: lw.Trajectory, second: lw.Trajectory) -> None:
    for name in ("t", "q", "v", "a", "tau"):
        np.testing.assert_array_equal(getattr(first, name), getattr(second, name), err_msg=name)


@pytest.mark.parametrize("method", ["dop853", "radau", "lsoda", "rk4", "semi_implicit"])
@pytest.mark.parametrize("coordinates", ["joint", "nu"])
def test_a_controller_may_change_its_arguments(method, coordinates):
    def careless(t, q, v):
        q[:] = np.nan
        v *= -0.5
        return v

    options = {"method": method, "step": 0.01, "coordinates": coordinates}
    same(
        simulate(ARM, *START, 0.2, careless, **options),
        simulate(ARM, *START, 0.2, lambda t, q, v: -0.5 * v, **options),
    )


def test_a_controller_may_give_the_same_array_again_and_again():
    """Jacobians of implicit methods are made of differences of what it gives."""
    kept = np.zeros(2)

    def frugal(t, q, v):
        kept[:] = -200.0 * v
        return kept

    stiff = lw.simulate(ARM, *START, 0.2, lambda t, q, v: -200.0 * v, method="radau")
    found = lw.simulate(ARM, *START, 0.2, frugal, method="radau")
    same(stiff, found)
    assert stiff.evaluations == found.evaluations


def test_wrenches_and_events_may_change_their_arguments():
    def push(t, q, v):
        wrenches = np.zeros((2, 6))
        wrenches[:, 5] = v
        q[:], v[:] = np.nan, np.nan
        return wrenches

    def half(t, q, v):
        q -= 0.41
        return q[0]

    options = {"method": "rk4", "step": 0.01}
    found = simulate(ARM, *START, 0.2, wrenches=push, events=half, **options)
    expected = simulate(
        ARM,
        *START,
        0.2,
        wrenches=lambda t, q, v: np.outer(v, np.eye(6)[5]),
        events=[lambda t, q, v: q[0] - 0.41],
        **options,
    )
    same(found, expected)
    assert found.events and [e.t for e in found.events] == [e.t for e in expected.events]


NO_NUMBERS = {
    "text": ("hi", r"gives 'hi'"),
    "complex": (np.ones(2) * 1j, r"gives array\(\[0\.\+1\.j"),
    "nothing": (None, "gives None"),
    "ragged": ([[1.0], 2.0], "gives no array"),
}


@pytest.mark.parametrize("kind", NO_NUMBERS)
@pytest.mark.parametrize("who", ["control", "wrenches", "events"])
def test_what_is_no_real_number_is_refused_with_name_and_time(who, kind):
    given, message = NO_NUMBERS[kind]
    good = {"control": np.zeros(2), "wrenches": np.zeros((2, 6)), "events": 1.0}[who]

    def function(t, q, v):
        return given if t > 0.05 else good

    named = {"control": "the controller", "wrenches": "wrenches", "events": "event 'function'"}[who]
    with warnings.catch_warnings(), pytest.raises(lw.SimulationError, match=rf"at t = 0\.0\S+ s {named} {message}"):
        warnings.simplefilter("error")
        simulate(ARM, *START, 0.1, method="rk4", step=0.01, **{who: function})


def test_whole_and_short_numbers_are_real():
    expected = lw.simulate(ARM, *START, 0.1, np.array([1.0, 2.0]))
    for given in ([1, 2], np.array([1, 2], dtype=np.float32), np.array([1, 2], dtype=np.longdouble), (1, 2.0)):
        np.testing.assert_array_equal(lw.simulate(ARM, *START, 0.1, lambda t, q, v: given).q, expected.q)  # noqa: B023


@pytest.mark.parametrize("event", [lw.motion.when(lambda t, q, v: t - 0.05, "then"), lambda t, q, v: t - 0.05])
def test_one_event_needs_no_list(event):
    (found,) = lw.simulate(ARM, *START, 0.1, events=event).events
    assert found.t == pytest.approx(0.05)


@pytest.mark.parametrize("wrong", [5, "then", [5]])
def test_events_that_are_none(wrong):
    with pytest.raises(TypeError, match="an event is one of lw.motion or a function"):
        lw.simulate(ARM, *START, 0.1, events=wrong)


@pytest.mark.parametrize("name", ["duration", "step", "rtol", "atol", "tolerance"])
@pytest.mark.parametrize("wrong", ["1", -1.0, 0, np.nan, np.inf, True, 1j, [0.1]], ids=repr)
def test_numbers_that_are_none(name, wrong):
    options = {"duration": 0.1, name: wrong}
    with pytest.raises(MechanismError, match=f"^{name} must be a positive number"):
        simulate(ARM, *START, options.pop("duration"), **options)


def test_rollout_says_who_takes_controllers():
    with pytest.raises(TypeError, match="tau must be an array.*lw.simulate takes functions"):
        lw.rollout(ARM, *START, lambda t, q, v: -v, 0.01, 10)
    with pytest.raises(TypeError, match="wrenches must be an array.*lw.simulate takes functions"):
        lw.rollout(ARM, *START, None, 0.01, 10, wrenches=lambda t, q, v: np.zeros((2, 6)))
