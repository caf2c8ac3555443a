"""Control inputs that hold a configuration: nothing moves under them, and they stay within their ranges."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw

ARM = lw.mechanisms.planar_arm(3)
FIRST, SECOND, THIRD = ARM.joint_names
Q = np.array([0.3, -0.4, 0.6])


def driven(**ranges) -> lw.Mechanism:
    return ARM.with_elements(
        lw.forces.Actuator("servo", SECOND, gain=(40.0,), bias=(0.0, -40.0, -1.0), ctrl_range=ranges.get("servo")),
        lw.forces.Actuator(
            "slow", FIRST, gear=(3.0,), dynamics="filter", time_constant=0.2, ctrl_range=ranges.get("slow")
        ),
        lw.forces.Actuator("motor", THIRD, gear=(2.0,), ctrl_range=(1.0, 50.0)),
    )


def test_nothing_moves():
    mech = driven()
    found = lw.find_equilibrium(mech, Q, solve_for="ctrl")
    np.testing.assert_array_equal(found.q, Q)
    assert found.ctrl.shape == (3,) and not found.tau.any()
    held = lw.gravity_force(mech, Q)
    expected = [held[1] / 40.0 + Q[1], held[0] / 3.0, held[2] / 2.0]
    np.testing.assert_allclose(found.ctrl, expected, atol=1e-9)
    model = lw.linearize(mech, found.q, ctrl=found.ctrl)
    assert model.is_equilibrium
    start = np.array([found.ctrl[1]])
    q, _ = lw.rollout(mech, Q, None, None, 1e-3, 200, ctrl=found.ctrl, activation=start)
    np.testing.assert_allclose(q[-1], Q, atol=1e-7)


def test_more_actuators_than_needed_share():
    mech = driven().with_elements(lw.forces.Actuator("second", FIRST, gear=(1.0,)))
    found = lw.find_equilibrium(mech, Q, solve_for="ctrl")
    assert found.residual < 1e-6
    assert found.ctrl[1] == pytest.approx(3.0 * found.ctrl[3], rel=1e-6)  # the least that do it: in proportion to gears


def test_a_closed_mechanism():
    mech = lw.mechanisms.five_bar()
    q = lw.constraints.assemble(mech, mech.initial)
    two = [lw.forces.Actuator(f"motor{i}", mech.joint_names[i]) for i in (0, 1)]
    found = lw.find_equilibrium(mech.with_elements(*two), q, solve_for="ctrl")
    a = lw.forward_dynamics(mech.with_elements(*two), q, np.zeros(mech.nv), ctrl=found.ctrl, forces="all")
    np.testing.assert_allclose(a, 0.0, atol=1e-7)


def test_what_cannot_be_held_is_told():
    with pytest.raises(lw.control.EquilibriumError, match="no control inputs within their ranges hold"):
        lw.find_equilibrium(driven(slow=(-0.1, 0.1)), Q, solve_for="ctrl")
    with pytest.raises(lw.MechanismError, match="no actuator of mechanism 'planar_arm_3' acts"):
        lw.find_equilibrium(ARM, Q, solve_for="ctrl")
    with pytest.raises(lw.MechanismError, match="finds the inputs of all actuators: leave out actuated, ctrl"):
        lw.find_equilibrium(driven(), Q, solve_for="ctrl", ctrl=[0.0, 0.0, 2.0])
