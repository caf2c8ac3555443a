"""Motions under what acts: simulate and rollout agree, control inputs in all their forms, activations, files."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.simulated import simulate

STEPS, DT = 40, 5e-3


def arm() -> lw.Mechanism:
    mech = lw.mechanisms.planar_arm(3)
    first, second, third = mech.joint_names
    mech = mech.parameters.with_damping({first: 0.4}).with_limits({second: lw.Limits(-3.0, 0.4)})
    return mech.with_elements(
        lw.forces.Actuator("servo", second, gain=(9.0,), bias=(0.0, -9.0, -1.0), ctrl_range=(-1.0, 1.0)),
        lw.forces.Actuator("slow", first, gear=(3.0,), dynamics="filter", time_constant=0.2),
        lw.forces.Tendon(
            "belt", ((first, 1.0), (third, -0.5)), stiffness=5.0, damping=0.3, rest=(-0.2, 0.1), friction=0.1
        ),
        lw.forces.Actuator("pull", "belt", "tendon", gear=(2.0,), dynamics="integrator", activation_range=(-0.1, 0.1)),
    )


ARM, START, SPEED, W = arm(), np.array([0.3, 0.2, -0.4]), np.array([1.0, 2.0, -1.0]), np.array([0.1, -0.05])


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_simulations_and_rollouts_are_the_same(method):
    ctrl = np.random.default_rng(0).normal(size=(STEPS, 3))
    q, v, w = lw.rollout(ARM, START, SPEED, None, DT, STEPS, method, ctrl=ctrl, activation=W, return_activation=True)
    options = {"method": method, "step": DT, "ctrl": ctrl, "activation": W}
    motion = simulate(ARM, START, SPEED, STEPS * DT, **options)
    for found, expected in ((motion.q, q), (motion.v, v), (motion.activation, w)):
        np.testing.assert_allclose(found, expected, atol=1e-12)
    np.testing.assert_array_equal(motion.ctrl[1:], ctrl)  # of the step that ends there
    held = simulate(ARM, START, SPEED, STEPS * DT, np.zeros((STEPS, 3)), **options)
    np.testing.assert_allclose(held.q, q, atol=1e-12)


def test_limits_hold_and_filters_follow_their_closed_form():
    motion = lw.simulate(
        ARM, START, SPEED, 2.0, ctrl=[1.0, 0.5, 0.3], activation=W, settings=lw.motion.Settings(rtol=1e-10, atol=1e-10)
    )
    assert 0.4 < motion.q[:, 1].max() < 0.4 + 0.1
    np.testing.assert_allclose(motion.activation[:, 0], 0.5 - 0.4 * np.exp(-motion.t / 0.2), atol=1e-8)
    np.testing.assert_allclose(motion.activation[:, 1], np.minimum(0.1, -0.05 + 0.3 * motion.t), atol=1e-8)


@pytest.mark.parametrize("method", ["dop853", "radau", "rk4"])
def test_functions_as_control_inputs(method):
    """A function of the state, against the same feedback written into the mechanism's gains."""
    bare = lw.mechanisms.planar_arm(2)
    motor = bare.with_elements(lw.forces.Actuator("m", "joint2", gear=(2.0,)))
    servo = bare.with_elements(lw.forces.Actuator("m", "joint2", gear=(2.0,), gain=(3.0,), bias=(0.0, -3.0, -0.5)))
    options = {"method": method, "rtol": 1e-10, "atol": 1e-10, "step": 1e-3}

    def feedback(t, q, v):
        return [3.0 * (0.4 - 2.0 * q[1]) - 0.5 * 2.0 * v[1]]

    found = simulate(motor, [0.1, 0.2], None, 0.5, ctrl=feedback, **options)
    expected = simulate(servo, [0.1, 0.2], None, 0.5, ctrl=[0.4], **options)
    np.testing.assert_allclose(found.q[-1], expected.q[-1], atol=1e-7)
    np.testing.assert_allclose(found.ctrl[-1], feedback(0.5, found.q[-1], found.v[-1]))


def test_the_jacobian_of_implicit_methods_knows_activations():
    explicit, implicit = (
        lw.simulate(
            ARM,
            START,
            SPEED,
            0.3,
            ctrl=[0.4, 0.5, 0.3],
            activation=W,
            method=method,
            settings=lw.motion.Settings(rtol=1e-9, atol=1e-9),
        )
        for method in ("dop853", "radau")
    )
    np.testing.assert_allclose(implicit.q[-1], explicit.q[-1], atol=1e-6)
    np.testing.assert_allclose(implicit.activation[-1], explicit.activation[-1], atol=1e-7)


def test_batches_files_and_going_on(tmp_path):
    options = {"method": "rk4", "step": DT, "ctrl": [0.4, 0.5, 0.3]}
    starts = START + 0.1 * np.random.default_rng(1).normal(size=(2, 3))
    both = simulate(ARM, starts, np.stack([SPEED, -SPEED]), 0.2, **options)
    alone = simulate(ARM, starts[1], -SPEED, 0.2, **options)
    np.testing.assert_allclose(both.member(1).activation, alone.activation, atol=1e-13)
    np.testing.assert_allclose(both.member(1).q, alone.q, atol=1e-12)
    alone.save(tmp_path / "motion.npz")
    again = lw.files.load_trajectory(tmp_path / "motion.npz")
    assert again.mechanism == ARM and again.passive is None
    whole = simulate(ARM, starts[1], -SPEED, 0.4, **options)
    for motion in (alone.resume(0.2), again.resume(0.2)):
        np.testing.assert_array_equal(motion.q, whole.q)
        np.testing.assert_array_equal(motion.activation, whole.activation)
    names, rows = whole.table()
    assert rows[-1, names.index("ctrl.servo")] == 0.4
    np.testing.assert_allclose(
        lw.forward_dynamics(ARM, whole.q, whole.v, whole.tau + whole.passive_forces), whole.a, atol=1e-10
    )


def test_rollouts_by_state_and_step_in_both_precisions_and_by_the_reference():
    rng = np.random.default_rng(2)
    ctrl, starts = rng.normal(size=(4, STEPS, 3)), START + 0.1 * rng.normal(size=(4, 3))
    q, v = lw.rollout(ARM, starts, SPEED, None, DT, STEPS, ctrl=ctrl)
    one = lw.rollout(ARM, starts[2], SPEED, None, DT, STEPS, ctrl=ctrl[2])
    np.testing.assert_allclose(q[2], one[0], atol=1e-12)
    reference = lw.rollout(ARM, starts, SPEED, None, DT, STEPS, ctrl=ctrl, target="numpy")
    np.testing.assert_allclose(q, reference[0], atol=1e-11)
    single = lw.rollout(
        ARM, *(x.astype(np.float32) for x in (starts, SPEED)), None, DT, STEPS, ctrl=ctrl.astype(np.float32)
    )
    assert single[0].dtype == np.float32 and np.abs(single[0] - q).max() < 1e-3
    assert lw.rollout(ARM, None, None, None, DT, 2)[0].dtype == np.float64  # nothing given decides on no precision


def test_variants_share_the_code_of_rollouts():
    """Payloads leave the stops as they are, so that one program serves all."""
    from linkwise.motion import rollout

    made = []
    plain = rollout.load
    tip = ARM.link_names[-1]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollout, "load", lambda *given: made.append(1) or plain(*given))
        ends = [
            lw.rollout(ARM.with_payload(tip, 1e-3 * k), START, SPEED, None, DT, 5, final_only=True)[0] for k in range(6)
        ]
    assert len(made) <= 3 and np.ptp([end[0] for end in ends]) > 0.0


@pytest.mark.parametrize(
    ("ask", "message"),
    [
        (lambda: lw.rollout(ARM, None, None, None, DT, 3, ctrl=[1.0]), r"ctrl has shape \(1,\), expected \(3,\)"),
        (lambda: lw.simulate(ARM, None, None, 0.1, ctrl=[1.0]), r"ctrl has shape \(1,\); expected \(3,\)"),
        (lambda: lw.simulate(ARM, None, None, 0.1, ctrl=lambda t, q, v: [1.0]), "one number per actuator"),
        (
            lambda: lw.simulate(ARM, None, None, 0.1, settings=lw.motion.Settings(coordinates="independent")),
            "some of its actuators have states of their own",
        ),
        (lambda: lw.simulate(ARM, None, None, 0.1, activation=[1.0]), "activation must be 2 finite numbers"),
        (lambda: lw.simulate(ARM.with_acting(False), None, None, 0.1, ctrl=[1.0]), "no actuator .* acts"),
        (lambda: lw.rollout(ARM.with_acting(False), None, None, None, DT, 3, ctrl=[1.0]), "no actuator .* acts"),
        (lambda: lw.forces.joint_forces(ARM, START, SPEED, ctrl=[1.0]), "for each of the actuators servo, slow, pull"),
        (
            lambda: lw.simulate(ARM, None, None, 0.1, np.zeros((3, 3)), ctrl=np.zeros((2, 3))),
            "control has 3 rows and ctrl 2",
        ),
    ],
)
def test_what_does_not_fit_is_refused(ask, message):
    with pytest.raises(ValueError, match=message):
        ask()


@pytest.mark.parametrize("target", ["cpu", "numpy"])
@pytest.mark.filterwarnings("ignore:invalid value")
def test_what_is_no_number_is_not_taken_for_a_bound(target):
    ctrl = np.array([[np.nan, 0.0, 0.0], [5.0, 0.0, 0.0], [-5.0, 0.0, 0.0]])
    _, v = lw.rollout(ARM, START, SPEED, None, DT, 1, ctrl=ctrl[:, None], activation=W, final_only=True, target=target)
    assert np.isnan(v[0]).all() and np.isfinite(v[1:]).all()
    forces = lw.forces.joint_forces(ARM, START, SPEED, ctrl=ctrl, activation=W)
    assert np.isnan(forces[0, 1]) and np.isfinite(forces[1:]).all()
    within = lw.forces.joint_forces(ARM, START, SPEED, ctrl=ctrl / 5.0, activation=W)  # the bounds of the servo
    np.testing.assert_array_equal(forces[1:], within[1:])
    unknown = lw.forces.joint_forces(
        ARM, [0.3, np.nan, -0.4], SPEED, ctrl=np.zeros(3), activation=W
    )  # nor does a stop let it vanish
    assert np.isnan(unknown[1])


def test_nothing_that_is_given_decides_on_float32():
    for start in (None, {}):
        for feedback in (None, {"kd": 1.0}, {"kd": {}}):
            assert lw.rollout(ARM, start, start, None, DT, 1, feedback=feedback)[0].dtype == np.float64


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_motions_that_are_lost_are_told_of():
    mech = lw.mechanisms.planar_arm(2).parameters.with_damping({lw.mechanisms.planar_arm(2).joint_names[1]: 1e5})
    speeds = np.zeros((3, 2))
    speeds[1] = 1.0, 2.0
    with pytest.warns(
        lw.MechanismWarning, match=r"too long .* first in state \(1,\), at t = .* \(1 of 3 states\)"
    ) as told:
        _, v = lw.rollout(mech.with_gravity((0, 0, 0)), None, speeds, None, 0.01, 200)
    before, message = (str(one.message) for one in told if issubclass(one.category, lw.MechanismWarning))  # but NumPy's
    assert "too long for damping" in before
    step = round(float(message.split("t = ")[1].split(" s")[0]) / 0.01)
    assert np.isfinite(v[1, :step]).all() and not np.isfinite(v[1, step]).all()
    with warnings.catch_warnings():  # what is given as no number is no surprise
        warnings.simplefilter("error", lw.MechanismWarning)
        lw.rollout(mech, None, [np.nan, 0.0], None, 1e-6, 2)
