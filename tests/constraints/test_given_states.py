"""What is no state is refused by name by every public function of closed mechanisms."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import constraints, linkages
from linkwise.mechanism import MechanismError

from .built_in import SYMMETRIC, built

MECH = built("five_bar")
STATE = {"q": np.array(SYMMETRIC), "v": np.zeros(4), "tau": np.zeros(4), "a": np.zeros(4)}
FUNCTIONS = {
    constraints.position_error: ("q",),
    constraints.constraint_jacobian: ("q",),
    constraints.constraint_bias: ("q", "v"),
    constraints.degrees_of_freedom: ("q",),
    constraints.generic_rank: ("q",),
    constraints.assemble: ("q",),
    constraints.project: ("q", "v"),
    constraints.null_space: ("q",),
    lw.forward_dynamics: ("q", "v", "tau"),
    lw.inverse_dynamics: ("q", "v", "a"),
    constraints.constraint_forces: ("q", "v", "tau"),
    constraints.multipliers: ("q", "v", "tau"),
    constraints.loop_reactions: ("q", "v", "tau"),
    lw.joint_wrenches: ("q", "v", "a"),
    lw.contact.impact: ("q", "v"),
    lw.contact.impact_impulses: ("q", "v"),
    lw.kinematics.local_parametrization: ("q",),
}
SPOILT = {
    "complex": (lambda x: x + 0j, "{name} has dtype complex128"),
    "text": (lambda x: [str(number) for number in x], "{name} has dtype <U"),
    "objects": (lambda x: x.astype(object), "{name} has dtype object"),
    "ragged": (lambda x: [x.tolist(), [1.0]], "{name} is no array"),
    "short": (lambda x: x[:-1], r"{name} has shape \(3,\), expected \(..., 4\)"),
    "one number": (lambda x: 1.0, r"{name} has shape \(\), expected \(..., 4\)"),
}
REFUSALS = (MechanismError, lw.KernelError)
PLACES = [(function, place) for function, names in FUNCTIONS.items() for place in range(len(names))]


def named(value) -> str | None:
    return getattr(value, "__name__", None)


@pytest.mark.parametrize("how", SPOILT)
@pytest.mark.parametrize(("function", "place"), PLACES, ids=named)
def test_arrays_that_are_no_states(function, place, how):
    names = FUNCTIONS[function]
    arrays = [STATE[name] for name in names]
    spoil, message = SPOILT[how]
    arrays[place] = spoil(arrays[place])
    with pytest.raises(REFUSALS, match=message.format(name=names[place])):
        function(MECH, *arrays)


@pytest.mark.parametrize("function", FUNCTIONS, ids=named)
def test_no_configuration(function):
    """Velocities and forces that are None are zero; a configuration is needed."""
    _, *others = FUNCTIONS[function]
    with pytest.raises(REFUSALS, match=r"q is (None|missing)"):
        function(MECH, None, *(None for _ in others))


@pytest.mark.parametrize("function", FUNCTIONS, ids=named)
@pytest.mark.parametrize("mech", ["five_bar", None])
def test_what_is_no_mechanism(function, mech):
    with pytest.raises(TypeError, match=f"a Mechanism is needed, got {type(mech).__name__}"):
        function(mech, *(STATE[name] for name in FUNCTIONS[function]))


@pytest.mark.parametrize(
    ("function", "place"), [(f, place) for f, names in FUNCTIONS.items() for place in range(1, len(names))], ids=named
)
def test_batches_that_do_not_fit(function, place):
    names = FUNCTIONS[function]
    arrays = [STATE[name] for name in names]
    arrays[0], arrays[place] = np.tile(arrays[0], (2, 1)), np.zeros((3, 4))
    with pytest.raises(REFUSALS, match=rf"the batch shapes do not broadcast: q \(2,\),.* {names[place]} \(3,\)"):
        function(MECH, *arrays)


def test_lists_whole_numbers_and_single_precision_are_states():
    q, v, tau = (STATE[name] for name in ("q", "v", "tau"))
    expected = lw.forward_dynamics(MECH, q, v, tau)
    np.testing.assert_array_equal(lw.forward_dynamics(MECH, q.tolist(), [0] * 4, tau.astype("float32")), expected)
    np.testing.assert_array_equal(lw.forward_dynamics(MECH, [q.tolist()], v, np.zeros((3, 1, 4)))[2, 0], expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda q, v: lw.forward_dynamics(MECH, q, v, v, wrenches=np.zeros(4)), r"wrenches has shape \(4,\)"),
        (lambda q, v: lw.forward_dynamics(MECH, q, v, v, wrenches=np.zeros((4, 6)) + 0j), "wrenches has dtype c"),
        (
            lambda q, v: constraints.multipliers(MECH, q, v, np.zeros((2, 4)), wrenches=np.zeros((3, 4, 6))),
            r"do not broadcast: q \(\), v \(\), tau \(2,\), wrenches \(3,\)",
        ),
        (
            lambda q, v: lw.inverse_dynamics(MECH, [q, q], v, np.zeros((3, 2)), independent=MECH.joint_names[:2]),
            r"do not broadcast: q \(2,\), v \(\), a \(3,\)",
        ),
        (
            lambda q, v: lw.inverse_dynamics(MECH, q, v, [0j, 0j], independent=MECH.joint_names[:2]),
            "a has dtype complex128",
        ),
        (lambda q, v: lw.inverse_dynamics(MECH, q, v, v, weights=np.ones(4) + 0j), "weights has dtype complex128"),
        (
            lambda q, v: lw.inverse_dynamics(MECH, q, v, v, distribution=np.ones((4, 2)) + 0j),
            "distribution has dtype complex128",
        ),
        (
            lambda q, v: constraints.null_space(MECH, q, independent=np.eye(4)[:2] + 0j),
            "independent has dtype complex128",
        ),
        (lambda q, v: constraints.project(MECH, q, v, energy=1j), "energy has dtype complex128"),
        (lambda q, v: constraints.project(MECH, [q, q], v, energy=np.zeros(3)), r"v \(2,\), energy \(3,\)"),
        (lambda q, v: linkages.follow(MECH, q + 0j, {}), "q has dtype complex128"),
        (lambda q, v: linkages.follow(MECH, [q, q], {}), "follow takes one state"),
        (lambda q, v: linkages.follow(MECH, q, {"joint1": 1j}), "the target of 'joint1' has dtype complex128"),
        (lambda q, v: lw.kinematics.local_parametrization(MECH, [q, q]), "local_parametrization takes one state"),
        (
            lambda q, v: lw.kinematics.implicit_coordinates(MECH, lambda q, y: q[:2] - y, [0j, 0j]),
            "guess has dtype complex",
        ),
    ],
)
def test_other_numbers(call, message):
    with pytest.raises(MechanismError, match=message):
        call(STATE["q"], STATE["v"])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda chart, q, v: chart.configuration([0.0, 0j]), "y has dtype complex128"),
        (lambda chart, q, v: chart.configuration(np.zeros(3)), r"y has shape \(3,\), expected \(2,\)"),
        (lambda chart, q, v: chart.configuration(np.zeros(2), q[:3]), r"q has shape \(3,\)"),
        (lambda chart, q, v: chart.velocity(q, 1.0), r"y_rate has shape \(\), expected \(2,\)"),
        (lambda chart, q, v: chart.derivative([q, q]), "a chart takes one state"),
        (lambda chart, q, v: chart.acceleration(q, v, v), r"y_acceleration has shape \(4,\), expected \(2,\)"),
        (lambda chart, q, v: chart.offset(q, v[:3]), r"v has shape \(3,\)"),
        (lambda chart, q, v: chart.forward_dynamics(q, v, v + 0j), "tau has dtype complex128"),
        (lambda chart, q, v: chart.forward_dynamics(q, v, v, np.zeros((2, 4, 6))), "a chart takes one state"),
        (lambda chart, q, v: chart.independent_state(q, v + 0j), "v has dtype complex128"),
        (lambda chart, q, v: chart.independent_state(q, v, [0.0]), r"guess has shape \(1,\), expected \(2,\)"),
        (lambda chart, q, v: chart.coordinates.rate(q, v[:3], [0.0, 0.0]), r"v has shape \(3,\), expected \(4,\)"),
    ],
)
def test_charts_take_one_state_of_real_numbers(call, message):
    with pytest.raises(MechanismError, match=message):
        call(lw.kinematics.local_parametrization(MECH, STATE["q"]), STATE["q"], STATE["v"])
