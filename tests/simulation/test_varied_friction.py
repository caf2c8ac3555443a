"""Damping, friction, springs, armature and contact friction that differ from state to state."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import linkwise as lw

HOPPER = """<mujoco model="hopper"><option gravity="0 0 -9.81"/><worldbody>
  <geom name="floor" type="plane" size="1 1 1"/>
  <body name="trunk" pos="0 0 0.6"><freejoint name="root"/>
    <geom name="trunk" type="box" size=".1 .1 .05" mass="3"/>
    <body name="leg"><joint name="hip" axis="0 1 0" damping="0.2" frictionloss="0.1" stiffness="30"/>
      <geom name="leg" type="capsule" fromto="0 0 0 0 0 -0.5" size="0.04" mass="1"/></body></body>
</worldbody></mujoco>"""


def with_numbers(mech, damping, friction, stiffness, armature, slip):
    """An edited copy, in which all of these are constants."""
    numbers = {"damping": (damping,), "friction": (friction,), "stiffness": (stiffness,), "armature": (armature,)}
    leg = dataclasses.replace(mech.bodies[-1], **numbers)
    return dataclasses.replace(mech, bodies=(*mech.bodies[:-1], leg)).with_contact(friction=slip)


def test_each_state_moves_as_an_edited_mechanism_does():
    mech, rng, n = lw.load(HOPPER), np.random.default_rng(0), 4
    v = 0.5 * rng.normal(size=(n, mech.nv))
    drawn = rng.uniform(0.0, [1.0, 0.5, 40.0, 0.1, 1.5], (n, 5))
    drawn[0] = 0.0
    of_hip = {name: drawn[:, k] for k, name in enumerate(("damping", "friction", "stiffness", "armature"))}
    parameters = {f"hip.{name}": x for name, x in of_hip.items()} | {"contact_friction": drawn[:, 4]}
    q, _ = lw.rollout(mech, None, v, None, 1e-3, 600, "semi_implicit", parameters=parameters)
    for k in range(n):
        one = with_numbers(mech, *drawn[k])
        expected, _ = lw.rollout(one, None, v[k], None, 1e-3, 600, "semi_implicit")
        np.testing.assert_allclose(q[k], expected, atol=1e-12)

    whole = {name: np.zeros((n, mech.nv)) for name in of_hip}
    for name, x in of_hip.items():
        whole[name][:, -1] = x
    named = {"trunk/floor.contact_friction": drawn[:, 4], "leg.contact_friction": drawn[:, 4]}
    same, _ = lw.rollout(mech, None, v, None, 1e-3, 600, "semi_implicit", parameters=whole | named)
    np.testing.assert_allclose(same, q, atol=1e-12)


def test_numbers_act_where_the_mechanism_has_none_and_have_gradients():
    arm = lw.mechanisms.puma560()
    q0, damping, friction = np.full(6, 0.3), np.full((2, 6), 2.0) * [[1.0], [3.0]], np.array([0.5, 4.0])

    def end(damping, friction):
        parameters = {"damping": damping, "joint2.friction": friction}
        return lw.rollout(arm, q0, None, None, 1e-3, 200, parameters=parameters), parameters

    (q, v), parameters = end(damping, friction)
    passive = [
        lw.forces.Passive.dampers(dict(zip(arm.joint_names, row, strict=True)))
        + lw.forces.Passive.friction({"joint2": f})
        for row, f in zip(damping, friction, strict=True)
    ]
    for k in range(2):
        expected, _ = lw.rollout(arm, q0, None, None, 1e-3, 200, passive=passive[k])
        np.testing.assert_allclose(q[k], expected, atol=1e-9)

    weights = np.array([1.0, -2.0, 0.5, 1.0, 0.3, 0.1])
    found = lw.derivatives.rollout_vjp(arm, q, v, None, 1e-3, 200, (weights, None), parameters=parameters)
    step = 1e-5
    for joint in (1, 4):
        moved = damping.copy()
        moved[:, joint] += step
        difference = (end(moved, friction)[0][0][:, -1] - q[:, -1]) @ weights / step
        np.testing.assert_allclose(found["damping"][:, joint], difference, rtol=1e-3)
    difference = (end(damping, friction + step)[0][0][:, -1] - q[:, -1]) @ weights / step
    np.testing.assert_allclose(found["joint2.friction"], difference, rtol=1e-3)


def test_a_closed_mechanism():
    mech = lw.mechanisms.four_bar()
    q0 = lw.constraints.assemble(mech, mech.initial)
    joint = mech.joint_names[0]
    q, _ = lw.rollout(mech, q0, None, None, 1e-3, 300, parameters={f"{joint}.damping": np.array([0.0, 0.3])})
    for k, damping in enumerate((0.0, 0.3)):
        passive = lw.forces.Passive.dampers({joint: damping})
        np.testing.assert_allclose(q[k], lw.rollout(mech, q0, None, None, 1e-3, 300, passive=passive)[0], atol=1e-12)


REFUSED = {
    "negative": ({"damping": -np.ones(6)}, {}, "numbers of 'damping' must be finite and not negative, not -1.0"),
    "shape": ({"damping": np.ones(5)}, {}, r"damping has shape \(5,\), expected \(..., 6\)"),
    "twice": ({"damping": np.ones(6), "joint2.damping": 1.0}, {}, "repeats numbers"),
    "no such joint": ({"joint9.damping": 1.0}, {}, "joint9"),
    "beside passive": ({"damping": np.ones(6)}, {"passive": lw.forces.Passive()}, "in whose place passive acts"),
    "no contact": ({"contact_friction": 1.0}, {}, "touches nothing"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    parameters, options, message = REFUSED[case]
    with pytest.raises((ValueError, TypeError), match=message):
        lw.rollout(lw.mechanisms.puma560(), None, None, None, 1e-3, 2, parameters=parameters, **options)


def test_steps_that_are_too_long_for_the_largest_number():
    arm = lw.mechanisms.puma560()
    with pytest.warns(lw.MechanismWarning, match="too long for damping"):
        lw.rollout(arm, None, None, None, 0.01, 2, parameters={"damping": np.full((2, 6), [[1.0], [1000.0]])})


def test_contact_that_is_switched_off_and_plain_dynamics():
    mech = lw.load(HOPPER).with_acting(contact=False)
    with pytest.raises(lw.MechanismError, match="is switched off, and its friction does nothing"):
        lw.rollout(mech, None, None, None, 1e-3, 2, parameters={"contact_friction": 0.5})
    with pytest.raises(ValueError, match="'damping' has no part in forward_dynamics"):
        lw.compile("forward_dynamics", mech, parameters=("damping",))
    kernel = lw.compile("mass_matrix", mech, parameters=("armature",))
    more = kernel(mech.initial, np.full(mech.nv, 0.5)) - kernel(mech.initial, np.zeros(mech.nv))
    np.testing.assert_allclose(more, 0.5 * np.eye(mech.nv), atol=1e-12)
