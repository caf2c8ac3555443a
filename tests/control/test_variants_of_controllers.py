"""Controllers of variants of a mechanism share code, as plain dynamics does."""

import numpy as np
import pytest

import linkwise as lw

Q, V = np.full(6, 0.3), np.linspace(-0.2, 0.2, 6)
CONTROLLERS = {
    "computed torque": lambda arm: lw.control.computed_torque(arm, Q + 0.1),
    "saturated": lambda arm: lw.control.saturated(arm, lw.control.computed_torque(arm, Q + 0.1), limit=5.0),
    "operational space": lambda arm: lw.control.operational_space_control(arm, "link6", np.array([0.3, 0.2, 0.4])),
    "joints": lambda arm: lw.control.joint_feedback(arm, Q + 0.1),
}


def loaded(arm: lw.Mechanism, k: int) -> lw.Mechanism:
    return arm.with_payload("link6", 0.1 + 0.2 * k, com=(0, 0, 0.1))


@pytest.mark.parametrize("name", CONTROLLERS)
def test_a_loop_over_payloads_compiles_twice(compiled, name):
    arm = lw.mechanisms.puma560()
    found = [CONTROLLERS[name](loaded(arm, k))(0.0, Q, V) for k in range(6)]
    assert 1 <= len(compiled) <= 2
    for k in (1, 5):  # a mechanism of its own, with its numbers folded in
        alone = CONTROLLERS[name](loaded(lw.mechanisms.puma560(), k))
        np.testing.assert_allclose(found[k], alone(0.0, Q, V), rtol=1e-11, atol=1e-11)


def test_frames_elsewhere_have_code_of_their_own():
    arm = lw.mechanisms.puma560()
    for k, height in enumerate((0.0, 0.1, 0.2, 0.3)):
        tools = (loaded(one, k).with_frame("tool", "link6", (0, 0, height)) for one in (arm, lw.mechanisms.puma560()))
        found, wanted = (lw.control.operational_space_control(one, "tool", np.array([0.3, 0.2, 0.4])) for one in tools)
        np.testing.assert_allclose(found(0.0, Q, V), wanted(0.0, Q, V), rtol=1e-11, atol=1e-11)
