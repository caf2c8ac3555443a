"""One mechanism on another, against Pinocchio's appendModel, against files that have both, and against each alone."""

from __future__ import annotations

import json
import pickle

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import from_data, to_data

POSE = lw.pose((0.1, 0.2, 0.3), rpy=(0.3, -0.2, 0.5))
FINGERS = """<body name="{p}palm" pos="0 0 0.1" euler="0 0 30">
  <geom name="{p}palm" type="box" size=".05 .04 .03" mass="0.4" contype="0" conaffinity="0"/>
  <site name="{p}grip" pos="0 0 0.1"/>
  <body name="{p}a" pos="0.03 0 0"><joint name="{p}ja" axis="0 1 0" range="-40 40" damping=".1" stiffness="2"/>
    <geom name="{p}a" type="capsule" fromto="0 0 0 0 0 .1" size=".01" mass=".1"/></body>
  <body name="{p}b" pos="-0.03 0 0"><joint name="{p}jb" axis="0 1 0" frictionloss=".05" armature=".01"/>
    <geom name="{p}b" type="capsule" fromto="0 0 0 0 0 .1" size=".01" mass=".1"/></body></body>"""
MORE = """<tendon><fixed name="{p}t"><joint joint="{p}ja" coef="1"/><joint joint="{p}jb" coef="-.5"/></fixed></tendon>
  <actuator><position name="{p}pull" tendon="{p}t" kp="3"/>
  <motor name="{p}push" site="{p}grip" gear="0 0 1 0 0 0"/></actuator>
  <contact><pair geom1="{p}a" geom2="{p}b"/></contact>"""
ARM = """<default><geom contype="0" conaffinity="0"/></default>
  <worldbody><body name="link" pos="0 0 1"><joint name="j" axis="1 0 0" damping="0.2"/>
  <geom type="sphere" size=".1" mass="2"/><body name="wrist" pos="0 .3 0"><joint name="w" axis="0 0 1"/>
  <geom type="sphere" size=".1" mass="1"/>{hand}</body></body></worldbody>"""
KEY = '<keyframe><key name="{p}open" qpos="{q}" ctrl="0.3 0.2"/></keyframe>'


def urdf(name: str, links: int, base: float, axis: str, p: str = "") -> str:
    """An arm with a heavy base and a tip."""
    inertia = '<inertia ixx="0.02" iyy="0.03" izz="0.03" ixy="0" ixz="0.001" iyz="0"/>'
    body = (
        '<link name="{}"><inertial><origin xyz="0.1 0 0.05" rpy="0.1 0.2 0.3"/><mass value="{}"/>{}</inertial></link>'
    )
    joint = '<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="0.2 0 0.1" rpy="0.3 {} 0"/>'
    text = body.format(p + "base", base, inertia)
    for k in range(links):
        text += body.format(f"{p}l{k}", 1 + k, inertia)
        text += joint.format(f"{p}j{k}", "revolute", p + ("base" if k == 0 else f"l{k - 1}"), f"{p}l{k}", k)
        text += f'<axis xyz="{axis}"/><limit lower="-2" upper="2" velocity="3" effort="50"/></joint>'
    text += f'<link name="{p}tip"/>' + joint.format(f"{p}t", "fixed", f"{p}l{links - 1}", f"{p}tip", 1) + "</joint>"
    return f'<robot name="{name}">{text}</robot>'


def test_a_hand_on_an_arm_is_what_pinocchio_appends():
    """Frames, mass matrix and joint forces; the base of the hand, which was fixed to the ground, has its mass."""
    pin = pytest.importorskip("pinocchio")
    texts = urdf("arm", 4, 3.0, "0 1 0"), urdf("hand", 3, 0.7, "0 0 1", "hand_")
    both = lw.load(texts[0]).with_mechanism(lw.load(urdf("hand", 3, 0.7, "0 0 1")), "tip", POSE, prefix="hand_")
    first, second = map(pin.buildModelFromXML, texts)
    model = pin.appendModel(first, second, first.getFrameId("tip"), pin.SE3(POSE))
    model = model[0] if isinstance(model, tuple) else model
    assert list(model.names)[1:] == list(both.joint_names)
    data, rng = model.createData(), np.random.default_rng(0)
    (q, v), a = lw.random_state(both, rng), rng.normal(size=both.nv)
    np.testing.assert_allclose(lw.inverse_dynamics(both, q, v, a), pin.rnea(model, data, q, v, a), atol=1e-11)
    np.testing.assert_allclose(both.limits.upper, model.upperPositionLimit)
    pin.framesForwardKinematics(model, data, q)
    names = [name for name in both.frames if name not in ("ground", "hand_mount")]
    assert {"base", "tip", "hand_base", "hand_tip"} <= set(names)
    for name in names:
        expected = data.oMf[model.getFrameId(name)].homogeneous
        np.testing.assert_allclose(lw.frame_pose(both, q, name), expected, atol=1e-12)
    np.testing.assert_allclose(lw.frame_pose(both, q, "hand_mount"), lw.frame_pose(both, q, "tip") @ POSE, atol=1e-12)
    # A hand that is loaded as a free body and held then is the same.
    free = lw.load(urdf("hand", 3, 0.7, "0 0 1"), floating_base=True)
    held = lw.load(texts[0]).with_mechanism(free.with_locked(["floating_base"]), "tip", POSE, "hand_")
    np.testing.assert_allclose(lw.mass_matrix(held, q), lw.mass_matrix(both, q), atol=1e-12)


@pytest.mark.filterwarnings("ignore::linkwise.files.OmissionWarning")
def test_all_that_acts_on_a_hand_acts_on_an_arm():
    """As if one file had both: springs, damping, limits, tendons, actuators, contact, keyframes, switches."""
    parts = ARM.format(hand=FINGERS.format(p="h_")), MORE.format(p="h_"), KEY.format(p="h_", q="0 0 0.1 0.2")
    whole = lw.load(f"<mujoco>{''.join(parts)}</mujoco>")
    parts = FINGERS.format(p=""), MORE.format(p=""), KEY.format(p="", q="0.1 0.2")
    hand = lw.load("<mujoco><worldbody>{}</worldbody>{}{}</mujoco>".format(*parts))
    arm = lw.load(f"<mujoco>{ARM.format(hand='')}</mujoco>")
    both = arm.with_mechanism(hand, "wrist", prefix="h_")
    assert both.joint_names == whole.joint_names and both.forces.active == whole.forces.active
    assert both.forces.actuator_names == ("h_pull", "h_push") and both.n_ctrl == 2
    np.testing.assert_array_equal(both.postures["h_open"], whole.postures["h_open"])
    np.testing.assert_array_equal(both.metadata.keyframes["h_open"].ctrl, whole.metadata.keyframes["h_open"].ctrl)
    assert {look.link for look in both.metadata.looks} == {look.link for look in whole.metadata.looks}
    start = np.array([0.4, -0.3, 0.1, 0.05]), np.array([0.3, 0.2, -0.2, 0.4])  # where stops and contact, which are made
    moved = [lw.rollout(m, *start, None, 1e-3, 20, ctrl=[0.4, 0.7]) for m in (both, whole)]  # for inertias, do not act
    for one, other in zip(*moved, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-11)
    quiet = arm.with_acting(damping=False).with_mechanism(hand.with_acting("damping"), "wrist", prefix="h_")
    assert quiet.forces.active == {"damping": ("h_ja",)}
    assert arm.with_acting(False).with_mechanism(hand.with_acting(False), "wrist", prefix="h_").forces.active == {}
    assert from_data(json.loads(json.dumps(to_data(both)))) == both == pickle.loads(pickle.dumps(both))
    floor = lw.Builder().link("slab").joint("s", lw.Fixed(), "ground", "slab").shape("floor", "slab", "plane").build()
    with pytest.warns(lw.files.OmissionWarning, match="planes 'floor'.*are left out"):
        assert not arm.with_mechanism(floor, "wrist", prefix="f_").shapes
    assert [shape.name for shape in arm.with_mechanism(floor, "ground", prefix="f_").shapes] == ["f_floor"]


def test_loops_mimic_joints_and_relations_are_those_of_each():
    """On one ground two mechanisms move as they do alone."""
    z = lw.Revolute((0, 0, 1))
    builder = lw.Builder()
    for name in ("a", "b", "c"):
        builder.link(name, 1.0, (0.3, 0.1, 0.0), (0.1, 0.1, 0.1))
    builder.joint("a", z, "ground", "a").joint("b", z, "a", "b", (None, (0.5, 0, 0)))
    builder.joint("c", z, "b", "c", (None, (0.5, 0, 0)), mimic=lw.Mimic("b", -2.0, 0.3))
    five = lw.mechanisms.five_bar()
    cam = builder.build("cam", five.gravity).with_loops(
        lw.constraints.Coupling("cam", ("a", "b"), relation=lambda q: q["b"] - 0.2 * lw.extend.scalar.sin(q["a"]))
    )
    both = five.with_mechanism(cam, "ground", prefix="cam_")
    assert [loop.name for loop in both.loops] == [*(loop.name for loop in five.loops), "cam_cam"]
    q, more = lw.constraints.assemble(five, [2.1, 1.9, 1.5, 1.9]), lw.constraints.assemble(cam, [0.4, 0.1])
    still = np.zeros(both.nv)
    found = lw.forward_dynamics(both, np.r_[q, more], still, still + 0.3)
    expected = [lw.forward_dynamics(m, x, 0 * x, 0 * x + 0.3) for m, x in ((five, q), (cam, more))]
    np.testing.assert_allclose(found, np.concatenate(expected), atol=1e-9)
    moved = lw.mechanisms.planar_arm(1).with_mechanism(five, "link1", prefix="bar_")
    assert lw.constraints.degrees_of_freedom(moved, np.r_[0.3, q]) == 3
    assert np.abs(lw.constraints.position_error(moved, np.r_[0.3, q])).max() < 1e-12


def test_names_that_are_there_and_what_is_no_mechanism_are_refused():
    arm = lw.mechanisms.planar_arm(2)
    with pytest.raises(lw.MechanismError, match="has a joint 'joint1' already.*prefix='planar_arm_1_'"):
        arm.with_mechanism(lw.mechanisms.planar_arm(1), "link2")
    with pytest.raises(TypeError, match=r"with_mechanism\(linkwise.load\('hand.urdf'\), ...\)"):
        arm.with_mechanism("hand.urdf", "link2")
    with pytest.raises(lw.MechanismError, match="no link or frame 'hand'"):
        arm.with_mechanism(arm, "hand", prefix="b_")
    longer = arm.with_mechanism(arm, "link2", prefix="b_").with_mechanism(arm, "b_link2", prefix="c_")
    assert longer.nv == 6 and lw.mass_matrix(longer, np.zeros(6)).shape == (6, 6)
