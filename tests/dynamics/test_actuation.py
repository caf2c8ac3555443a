"""No motors at floating bases and at passive joints of loops; the motors there are hold the mechanism."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError, from_data, to_data


def assembled(mech: lw.Mechanism, seed: int = 0) -> np.ndarray:
    rng = np.random.default_rng(seed)
    for _ in range(50):
        try:
            return lw.constraints.assemble(mech, lw.random_state(mech, rng)[0])
        except MechanismError:
            continue
    raise AssertionError(f"{mech.name} was not assembled")


DRIVEN = {
    "loader": ("lift_piston_joint", "tilt_piston_joint"),
    "stewart_platform": tuple(f"leg{i}_rod_joint" for i in range(1, 7)),
    "delta_robot": ("arm1_joint", "arm2_joint", "arm3_joint"),
    "four_bar": ("crank_joint",),
    "slider_crank": ("crank_joint",),
    "five_bar": ("joint1", "joint2"),
    "parallel_four_bar_robot": ("joint1", "joint2"),
}


@pytest.mark.parametrize("name", DRIVEN)
def test_closed_mechanisms_are_held_by_their_motors_alone(name):
    """The default names the motors one would build in, and they hold the mechanism: by the equations of motion, and as
    the inverse dynamics with the same motors says."""
    mech = getattr(lw.mechanisms, name)()
    q = (
        lw.constraints.assemble(mech, lw.neutral(mech))
        if name in ("stewart_platform", "delta_robot")
        else assembled(mech)
    )
    control = lw.control.joint_feedback(mech, q, kp=100.0, kd=10.0)
    assert control.actuated_joints == DRIVEN[name]
    rest = np.zeros(mech.nv)
    tau = control(0.0, q, rest)
    assert not tau[~control.actuated].any() and np.abs(tau).max() > 0.01
    np.testing.assert_allclose(lw.forward_dynamics(mech, q, rest, tau), 0.0, atol=1e-8)
    expected = lw.inverse_dynamics(mech, q, rest, rest, actuated=DRIVEN[name])
    np.testing.assert_allclose(tau, expected, atol=1e-8 * np.abs(expected).max())
    # Springs and dampers pull at the motors too, and nowhere else; a batch is many states.
    pulled = control(0.0, np.stack([q, q]), np.ones((2, mech.nv)))
    np.testing.assert_allclose(pulled, [tau - 10.0 * control.actuated] * 2, atol=1e-9 * max(1.0, np.abs(tau).max()))


def test_joints_with_effort_limits_come_first():
    mech = lw.mechanisms.four_bar().with_limits(rocker_joint=lw.Limits(effort=5.0))
    assert lw.control.joint_feedback(mech, assembled(mech)).actuated_joints == ("rocker_joint",)


def test_a_floating_base_falls_with_the_weight_of_all():
    mech = lw.mechanisms.random_tree(5, 3, joints=("revolute", "prismatic"), floating_base=True)
    q, v = lw.neutral(mech), np.zeros(mech.nv)
    control = lw.control.joint_feedback(mech, q, kp=20.0, kd=2.0)
    assert control.actuated_joints == mech.joint_names[1:]
    assert not control(0.0, q, v)[:6].any()
    motion = lw.simulate(mech, q, v, 0.5, control)
    fallen = lw.center_of_mass(mech, motion.end.q) - lw.center_of_mass(mech, q)
    np.testing.assert_allclose(fallen, [0.0, 0.0, -9.81 * 0.5**2 / 2], atol=1e-6)


def test_loops_on_a_floating_base():
    """The motor of a loop does what it does where the base is locked."""
    builder = lw.Builder().link("base", 5.0, inertia=(1, 1, 1)).joint("free", lw.Floating(), "ground", "base")
    for link, parent, at in (("crank", "base", 0.0), ("coupler", "crank", 0.3), ("rocker", "base", 0.6)):
        builder.link(link, 1.0, (0.2, 0, 0), (0.01, 0.02, 0.02))
        builder.joint(f"{link}_joint", lw.Revolute((0, 1, 0)), parent, link, (None, (at, 0, 0)))
    builder.loop("pin", lw.Revolute((0, 1, 0)), "coupler", (None, (0.6, 0, 0)), "rocker", (None, (0.5, 0, 0)))
    mech = builder.build()
    q = lw.constraints.assemble(mech, [1.0, 0, 0, 0, 0, 0, 0, -1.0, 0.8, -1.2], hold=("free",))
    control = lw.control.joint_feedback(mech, q)
    assert control.actuated_joints == ("crank_joint",)
    fixed = mech.with_locked(free=q[:7])
    expected = lw.control.joint_feedback(fixed, q[7:])(0.0, q[7:], np.zeros(3))
    assert abs(expected[0]) > 0.1
    np.testing.assert_allclose(control(0.0, q, np.zeros(9)), [0.0] * 6 + expected.tolist(), atol=1e-9)


def test_motors_may_be_named():
    mech = lw.mechanisms.cart_pole()
    by_name = lw.control.joint_feedback(mech, [0.0, 0.1], 2.0, 1.0, actuated=["rail"])
    by_mask = lw.control.joint_feedback(mech, [0.0, 0.1], 2.0, 1.0, actuated=np.array([True, False]))
    q, v = np.array([0.3, 0.4]), np.array([0.5, 0.6])
    np.testing.assert_allclose(by_name(0.0, q, v), [-2.0 * 0.3 - 0.5, 0.0])
    np.testing.assert_array_equal(by_name(0.0, q, v), by_mask(0.0, q, v))
    assert by_mask.actuated_joints == ("rail",)
    assert lw.control.joint_feedback(mech, q, actuated="rail").actuated_joints == ("rail",)
    assert lw.control.joint_feedback(mech, q, actuated=[]).actuated_joints == ()


@pytest.mark.parametrize(
    ("actuated", "message"),
    [
        (["rial"], "did you mean 'rail'"),
        ("rial", "did you mean 'rail'"),
        ([True], "2 booleans"),
        ([0, 1], "joint names or 2 booleans"),
    ],
)
def test_what_is_no_choice_of_motors(actuated, message):
    with pytest.raises(MechanismError, match=message):
        lw.control.joint_feedback(lw.mechanisms.cart_pole(), [0.0, 0.0], actuated=actuated)


def test_mimic_joints_have_no_motor():
    builder = lw.Builder().link("a", 1.0, inertia=(1, 1, 1)).link("b", 1.0, inertia=(1, 1, 1))
    builder.joint("one", lw.Revolute(), "ground", "a").joint("two", lw.Revolute(), "a", "b", mimic=lw.Mimic("one"))
    with pytest.raises(MechanismError, match="'two' mimics 'one'"):
        lw.control.joint_feedback(builder.build(), [0.0], actuated=["two"])


CART = """<mujoco><worldbody><body name="cart"><joint name="slider" type="slide" axis="1 0 0"/><geom size="0.1"/>
  <body name="pole"><joint name="hinge" axis="0 1 0"/><geom size="0.05" pos="0 0 0.5"/><site name="somewhere"/></body>
  </body></worldbody>
  <actuator>{}</actuator></mujoco>"""


@pytest.mark.parametrize(
    ("actuators", "driven"),
    [
        ('<motor joint="slider"/><position joint="slider" kp="3"/>', ("slider",)),
        ('<motor joint="hinge"/>', ("hinge",)),
        ("", ("slider", "hinge")),
        ('<motor joint="slider"/><motor site="somewhere"/>', ("slider",)),  # which joints the second moves is not read
        ('<motor site="somewhere"/>', ("slider", "hinge")),
    ],
)
def test_actuators_of_a_file_are_the_motors(actuators, driven):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        mech = lw.load(CART.format(actuators))
    assert lw.control.joint_feedback(mech, [0.0, 0.1]).actuated_joints == driven
    assert mech.metadata.actuated_joints == (driven if len(driven) == 1 else None)
    again = from_data(json.loads(json.dumps(to_data(mech))))
    assert again.metadata.actuated_joints == mech.metadata.actuated_joints
    if driven == ("slider",):  # without its motor it has none
        locked = mech.with_locked(slider=0.1).with_gravity((0, 0, -1))
        assert locked.metadata.actuated_joints == lw.control.joint_feedback(locked, [0.1]).actuated_joints == ()


def test_motors_may_be_said_of_a_mechanism():
    mech = lw.mechanisms.four_bar().metadata.with_actuated("rocker_joint")
    assert lw.control.joint_feedback(mech, assembled(mech)).actuated_joints == ("rocker_joint",)
    assert lw.control.joint_feedback(mech, assembled(mech), actuated=["crank_joint"]).actuated_joints == (
        "crank_joint",
    )
    assert lw.control.joint_feedback(mech.metadata.with_actuated(), assembled(mech)).actuated_joints == ()
    with pytest.raises(MechanismError, match="did you mean 'rocker_joint'"):
        mech.metadata.with_actuated("roker_joint")
