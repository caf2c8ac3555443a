"""Matrices of steps with all that acts, against differences of rollouts."""

from __future__ import annotations

import copy

import numpy as np
import pytest

import linkwise as lw
from linkwise.motion import gradients

DT = 1e-3


def hopper():
    """A floating body with a leg on a servo, its foot in the ground."""
    builder = (
        lw.Builder().link("trunk", 3.0, (0, 0, 0.02), (0.02, 0.03, 0.02)).link("leg", 0.5, (0, 0, -0.1), (2e-3,) * 3)
    )
    builder.joint("base", lw.Floating(), "ground", "trunk")
    builder.joint("hip", lw.Revolute((0, 1, 0)), "trunk", "leg", damping=0.2)
    mech = builder.build("hopper").with_shape("foot", "leg", "sphere", 0.03, (np.eye(3), (0, 0, -0.3))).with_ground()
    q = lw.configuration(mech, {"base.z": 0.328, "hip": 0.1})
    return mech.with_elements(lw.forces.Actuator("servo", "hip", gain=(50.0,), bias=(0.0, -50.0, -1.0))), q


def by_differences(mech, q, v, inputs, step, width):
    """(2 nv, 2 nv + width): central ones, of a step from one state."""
    n, h = mech.nv, 1e-6
    end, columns = step(q, v, inputs), []
    for change in h * np.eye(2 * n + width):
        ends = []
        for sign in (1.0, -1.0):
            e = sign * change
            a, b = step(lw.integrate(mech, q, e[:n], 1.0), v + e[n : 2 * n], inputs + e[2 * n :])
            ends.append(np.concatenate([lw.difference(mech, end[0], a), b]))
        columns.append((ends[0] - ends[1]) / (2.0 * h))
    return np.array(columns).T


def test_steps_with_contact_and_a_servo():
    mech, q = hopper()
    rng = np.random.default_rng(0)
    tau, ctrl = rng.normal(size=(2, 3, mech.nv)), rng.normal(size=(3, 1))
    path = lw.rollout(mech, q, 0.3 * rng.normal(size=(2, mech.nv)), tau, DT, 3, "semi_implicit", ctrl=ctrl)
    a, b = lw.derivatives.rollout_derivatives(mech, *path, tau, DT, "semi_implicit", ctrl=ctrl)
    again, c = lw.derivatives.rollout_derivatives(mech, *path, tau, DT, "semi_implicit", ctrl=ctrl, by="ctrl")
    assert a.shape == (2, 3, 14, 14) and b.shape == (2, 3, 14, 7) and c.shape == (2, 3, 14, 1)
    np.testing.assert_allclose(again, a, atol=1e-13)

    def step(q, v, inputs):
        found = lw.rollout(mech, q, v, inputs[:-1], DT, 1, "semi_implicit", ctrl=inputs[-1:], final_only=True)
        return found

    inputs = np.array([*tau[1, 2], ctrl[2, 0]])
    expected = by_differences(mech, path[0][1, 2], path[1][1, 2], inputs, step, 8)
    np.testing.assert_allclose(np.concatenate([a[1, 2], b[1, 2], c[1, 2]], axis=-1), expected, atol=1e-6)
    bare = lw.derivatives.step_derivatives(mech, path[0][:, :-1], path[1][:, :-1], tau, DT, "semi_implicit")[0]
    assert np.abs(bare - a).max() > 1e-3


def test_bare_mechanisms_have_the_matrices_of_step_derivatives():
    arm = lw.mechanisms.planar_arm(2)
    tau, feedback = np.array([0.3, -0.2]), {"target": np.array([0.1, 0.2]), "kp": 5.0, "kd": 0.4}
    path = lw.rollout(arm, [0.3, 0.1], [1.0, -1.0], tau, 0.01, 5)
    a, b = lw.derivatives.rollout_derivatives(arm, *path, {"joint1": 0.3, "joint2": -0.2}, 0.01)
    expected = lw.derivatives.step_derivatives(arm, path[0][:-1], path[1][:-1], tau, 0.01)
    np.testing.assert_allclose(a, expected[0], atol=1e-12)
    np.testing.assert_allclose(b, expected[1], atol=1e-12)
    led = lw.rollout(arm, [0.3, 0.1], None, None, 0.01, 2, feedback=feedback)
    a, _ = lw.derivatives.rollout_derivatives(arm, *led, None, 0.01, feedback=feedback)

    def step(q, v, _):
        return lw.rollout(arm, q, v, None, 0.01, 1, feedback=feedback, final_only=True)

    np.testing.assert_allclose(a[1], by_differences(arm, led[0][1], led[1][1], np.zeros(0), step, 0), atol=1e-8)


def test_loops_stay_closed():
    bars = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(bars, bars.initial)
    v = lw.constraints.null_space(bars, q)[:, 0]
    path = lw.rollout(bars, q, v, None, DT, 2)
    a, b = lw.derivatives.rollout_derivatives(bars, *path, None, DT)
    along = lw.constraints.null_space(bars, path[0][0])[:, 0]
    h = 1e-6
    ends = [lw.rollout(bars, path[0][0], path[1][0] + s * h * along, None, DT, 1, final_only=True) for s in (1, -1)]
    change = np.concatenate([lw.difference(bars, ends[1][0], ends[0][0]), ends[0][1] - ends[1][1]]) / (2.0 * h)
    np.testing.assert_allclose(a[0][:, bars.nv :] @ along, change, atol=1e-8)
    assert b.shape == (2, 2 * bars.nv, bars.nv)


def test_bad_input():
    arm = lw.mechanisms.planar_arm(2)
    with pytest.raises(lw.MechanismError, match=r"must be those of rollout, \(..., steps \+ 1, 2\)"):
        lw.derivatives.rollout_derivatives(arm, np.zeros(2), np.zeros(2), None, 0.01)
    with pytest.raises(ValueError, match="by must be|unknown by"):
        lw.derivatives.rollout_derivatives(arm, np.zeros((2, 2)), np.zeros((2, 2)), None, 0.01, by="dt")


def test_variants_share_the_code_of_gradients(monkeypatch):
    """From the third variant on nothing is compiled, and the numbers are those of code of its own."""
    loads = []
    load = gradients.load
    monkeypatch.setattr(gradients, "load", lambda *given: loads.append(given[0].name) or load(*given))
    arm, feedback = lw.mechanisms.double_pendulum(), {"target": [0.2, 0.1], "kp": 5.0, "kd": 0.5}
    for k in range(5):
        mech = arm.with_gravity((0.1 * k, 0.2, -9.0 - k))
        q, v = lw.rollout(mech, [0.1, 0.2], [0.3, 0.4], None, 1e-3, 2, feedback=feedback)
        found = lw.derivatives.rollout_derivatives(mech, q, v, None, 1e-3, feedback=feedback)
        own = copy.deepcopy(mech)  # has no family
        before = len(loads)
        expected = lw.derivatives.rollout_derivatives(own, q, v, None, 1e-3, feedback=feedback)
        del loads[before:]
        for one, other in zip(found, expected, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-15)
    assert len(loads) == 2


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_steps_on_which_nothing_else_acts_cost_what_their_own_derivatives_cost(method, dtype):
    mech = lw.mechanisms.random_tree(4, 3)
    rng = np.random.default_rng(1)
    q, v, tau, pushes = (
        x.astype(dtype)
        for x in (
            *lw.random_state(mech, rng, (2,)),
            rng.normal(size=(2, 5, mech.nv)),
            rng.normal(size=(2, 5, len(mech.link_names), 6)),
        )
    )
    path = lw.rollout(mech, q, v, tau, dtype(DT), 5, method, wrenches=pushes)
    found = lw.derivatives.rollout_derivatives(mech, *path, tau, dtype(DT), method, wrenches=pushes)
    starts = path[0][:, :-1], path[1][:, :-1]
    expected = lw.derivatives.step_derivatives(mech, *starts, tau, dtype(DT), method, pushes)
    assert all(x.dtype == dtype and np.array_equal(x, y) for x, y in zip(found, expected, strict=True))
    with pytest.raises(lw.KernelError, match="not the motion that rollout makes"):
        lw.derivatives.rollout_derivatives(mech, *path, tau + 1.0, dtype(DT), method, wrenches=pushes)
    with pytest.raises(lw.KernelError, match="do not broadcast"):
        lw.derivatives.rollout_derivatives(mech, *path, tau[:, :2], dtype(DT), method)


def test_a_step_backwards_for_each_row_gives_what_the_methods_own_derivatives_give():
    mech = lw.mechanisms.random_tree(4, 5)
    rng = np.random.default_rng(2)
    tau = rng.normal(size=(3, mech.nv))
    path = lw.rollout(mech, *lw.random_state(mech, rng), tau, DT, 3)
    bare = lw.derivatives.rollout_derivatives(mech, *path, tau, DT)
    target = {"target": mech.initial, "kp": 0.0, "kd": 0.0}  # feedback of no force, which has no such derivatives
    rows = lw.derivatives.rollout_derivatives(mech, *path, tau, DT, feedback=target)
    for one, other in zip(bare, rows, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12 * np.abs(other).max())


def test_steps_in_the_place_of_the_method_are_named():
    mech = lw.mechanisms.planar_arm(2)
    path = lw.rollout(mech, None, None, None, DT, 3)
    with pytest.raises(TypeError, match="method is a name.*not 3: it has no steps, which rollout and rollout_vjp take"):
        lw.derivatives.rollout_derivatives(mech, *path, None, DT, 3)


@pytest.mark.parametrize(
    "feedback", [None, {"target": [0.3, -0.2], "kp": np.array([[2.0, 1.0], [3.0, 0.5]]), "kd": 0.1}]
)
def test_steps_and_gains_that_differ_between_states(feedback):
    mech, rng = lw.mechanisms.double_pendulum(), np.random.default_rng(4)
    dt = np.array([DT, 2.0 * DT])
    path = lw.rollout(mech, *lw.random_state(mech, rng, (2,)), None, dt, 3, feedback=feedback)
    found = lw.derivatives.rollout_derivatives(mech, *path, None, dt, feedback=feedback)
    for k in range(2):
        own = None if feedback is None else {**feedback, "kp": feedback["kp"][k]}
        alone = lw.derivatives.rollout_derivatives(mech, path[0][k], path[1][k], None, dt[k], feedback=own)
        for one, other in zip(found, alone, strict=True):
            np.testing.assert_allclose(one[k], other, rtol=0, atol=1e-13)
