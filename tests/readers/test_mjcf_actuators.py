"""What actuators can do, against MuJoCo's own clamping: effort limits, and servos as controllers."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.readers.mujoco_oracle import mujoco
from tests.readers.test_omissions import of_package

DEFAULTS = {
    "servos": '<default><default class="c"><position kp="3"/></default></default>',
    "dampers": '<default><default class="c"><velocity kv="3"/></default></default>',
    "gears": '<default><motor gear="7"/><default class="c"><general ctrlrange="-2 3"/></default></default>',
    "free": '<default><motor ctrlrange="-1 1"/><default class="c"><motor ctrllimited="false"/></default></default>',
}
INF = np.inf


def model(actuators, head="", joint=""):
    return f"""<mujoco>{head}<worldbody><body name="a"><joint name="j" {joint}/><geom size="0.1"/><site name="s"/>
      </body></worldbody><tendon><fixed name="t"><joint joint="j" coef="-0.5"/></fixed></tendon>
      <actuator>{actuators}</actuator></mujoco>"""


def loaded(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(text)


def forces(compiled, size=1e4, count=2000):
    """(count, nv): joint forces of MuJoCo's actuators under controls far beyond and within their ranges, with what the
    controls lead activations to."""
    data, rng = mujoco.MjData(compiled), np.random.default_rng(0)
    mujoco.mj_forward(compiled, data)  # moment arms, which the controls do not change
    found = np.zeros((count, compiled.nv))
    for k in range(count):
        data.ctrl[:] = rng.choice([-size, -1.0, 0.0, 1.0, size], compiled.nu) * rng.uniform(size=compiled.nu)
        low, high = np.where(compiled.actuator_ctrllimited[:, None], compiled.actuator_ctrlrange, [-size, size]).T
        for i in range(compiled.nu):
            if compiled.actuator_actadr[i] >= 0:
                data.act[compiled.actuator_actadr[i]] = np.clip(data.ctrl[i], low[i], high[i])
        mujoco.mj_fwdActuation(compiled, data)
        found[k] = data.qfrc_actuator
    return found


LIMITED = {
    "gear, controls and forces": ('<motor joint="j" gear="50" ctrlrange="-1 1" forcerange="-3 3"/>', "", "", 50.0),
    "forces bind": ('<motor joint="j" gear="50" ctrlrange="-10 10" forcerange="-3 2"/>', "", "", 150.0),
    "negative gear": ('<motor joint="j" gear="-50" ctrlrange="-1 2"/>', "", "", 100.0),
    "uneven": ('<motor joint="j" ctrlrange="0 2"/>', "", "", 2.0),
    "forces only": ('<motor joint="j" forcerange="-3 3"/>', "", "", 3.0),
    "several": ('<motor joint="j" ctrlrange="-1 1" gear="2"/><motor joint="j" ctrlrange="-1 1"/>', "", "", 3.0),
    "antagonists": ('<motor joint="j" ctrlrange="0 1"/><motor joint="j" ctrlrange="0 1" gear="-2"/>', "", "", 2.0),
    "the joint's own limit": ('<motor joint="j" ctrlrange="-9 9"/>', "", 'actuatorfrcrange="-4 4"', 4.0),
    "weaker than the joint": ('<motor joint="j" ctrlrange="-3 3"/>', "", 'actuatorfrcrange="-4 4"', 3.0),
    "position servo": ('<position joint="j" kp="5" ctrlrange="-1 1" forcerange="-3 3" gear="2"/>', "", "", 6.0),
    "velocity servo": ('<velocity joint="j" kv="5" ctrlrange="-1 1" forcerange="-3 3"/>', "", "", 3.0),
    "gain": ('<general joint="j" gainprm="5" ctrlrange="-1 2"/>', "", "", 10.0),
    "filtered": ('<general joint="j" gainprm="5" ctrlrange="-1 2" dyntype="filter"/>', "", "", 10.0),
    "of classes": ('<general joint="j" class="c"/>', DEFAULTS["gears"], "", 21.0),
    "motor of a class of servos": ('<motor joint="j" class="c" ctrlrange="-1 1"/>', DEFAULTS["servos"], "", 1.0),
    "parent": ('<motor jointinparent="j" ctrlrange="-1 1" gear="4"/>', "", "", 4.0),
    "a tendon": ('<motor tendon="t" ctrlrange="-1 1" gear="3"/>', "", "", 1.5),
    "a joint and its tendon": (
        '<motor joint="j" ctrlrange="0 1"/><motor tendon="t" ctrlrange="0 2" gear="-3"/>',
        "",
        "",
        4.0,
    ),
}
UNLIMITED = {
    "no range": ('<motor joint="j" gear="50"/>', ""),
    "an empty range": ('<motor joint="j" ctrlrange="0 0"/>', ""),
    "switched off": ('<motor joint="j" ctrlrange="-1 1" ctrllimited="false"/>', ""),
    "switched off by its class": ('<motor joint="j" class="c"/>', DEFAULTS["free"]),
    "no clamping": ('<motor joint="j" ctrlrange="-1 1"/>', '<option><flag clampctrl="disable"/></option>'),
    "one of two": ('<motor joint="j" ctrlrange="-1 1"/><motor joint="j"/>', ""),
    "a tendon": ('<motor joint="j" ctrlrange="-1 1"/><motor tendon="t" gear="4"/>', ""),
}
OF_THE_STATE = {  # controls are limited, yet forces grow with where the joint is and how fast it moves
    "position servo": ('<position joint="j" kp="5" ctrlrange="-1 1"/>', ""),
    "velocity servo": ('<velocity joint="j" kv="5" ctrlrange="-1 1"/>', ""),
    "general servo": ('<general joint="j" ctrlrange="-1 1" biastype="affine" biasprm="0 -5 -1"/>', ""),
    "general of a class of servos": ('<general joint="j" class="c" ctrlrange="-1 1"/>', DEFAULTS["servos"]),
    "general of a class of dampers": ('<general joint="j" class="c" ctrlrange="-1 1"/>', DEFAULTS["dampers"]),
}


@pytest.mark.parametrize(("actuators", "head", "joint", "expected"), LIMITED.values(), ids=LIMITED)
def test_the_largest_force_is_that_of_mujoco(actuators, head, joint, expected):
    text = model(actuators, head, joint)
    assert loaded(text).limits.effort.tolist() == [expected]
    assert np.abs(forces(mujoco.MjModel.from_xml_string(text))).max() == pytest.approx(expected, rel=1e-3)


@pytest.mark.parametrize(("actuators", "head"), UNLIMITED.values(), ids=UNLIMITED)
def test_forces_that_controls_do_not_bound_have_no_limit(actuators, head):
    text = model(actuators, head)
    assert loaded(text).limits.effort.tolist() == [INF]
    assert np.abs(forces(mujoco.MjModel.from_xml_string(text))).max() > 5e3


@pytest.mark.parametrize(("actuators", "head"), OF_THE_STATE.values(), ids=OF_THE_STATE)
def test_servos_have_no_limit_but_that_of_forces(actuators, head):
    text = model(actuators, head)
    assert loaded(text).limits.effort.tolist() == [INF]
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    data.qpos[:], data.qvel[:] = 1e4, 1e4
    mujoco.mj_forward(compiled, data)
    assert np.abs(data.qfrc_actuator).max() > 1e4


def test_an_empty_range_of_a_joint_is_none():
    mech = loaded(model("", joint='range="0 0" actuatorfrcrange="0 0"'))
    assert (mech.limits.lower[0], mech.limits.upper[0], mech.limits.effort[0]) == (-INF, INF, INF)
    assert not mujoco.MjModel.from_xml_string(model("", joint='range="0 0"')).jnt_limited.any()


def test_a_range_whose_ends_are_exchanged_is_told():
    text = model("", joint='range="120 -120"')
    with pytest.warns(lw.MechanismWarning, match=r':\d+: <joint name="j">.*range="120 -120" limits nothing') as told:
        mech = lw.load(text)
    assert len(told) == 1 and (mech.limits.lower[0], mech.limits.upper[0]) == (-INF, INF)
    assert not mujoco.MjModel.from_xml_string(text).jnt_limited.any()


@pytest.mark.parametrize(
    ("package", "path"),
    [
        *(("gymnasium", f"envs/mujoco/assets/{name}.xml") for name in ("ant", "half_cheetah", "humanoid", "hopper")),
        *(("dm_control", f"suite/{name}.xml") for name in ("cheetah", "walker", "humanoid", "humanoid_CMU", "reacher")),
        *(("dm_control", f"suite/{name}.xml") for name in ("manipulator", "point_mass", "stacker")),
    ],
)
def test_motors_of_known_models(package, path):
    file = of_package(package, path)
    mech, compiled = loaded(file), mujoco.MjModel.from_xml_path(str(file))
    largest = np.abs(forces(compiled, count=300)).max(axis=0)
    at = {compiled.joint(i).name: compiled.jnt_dofadr[i] for i in range(compiled.njnt)}
    assert mech.metadata.actuated_joints
    for joint in mech.metadata.actuated_joints:
        np.testing.assert_allclose(mech.limits.effort[mech.v_index(joint)], largest[at[joint]], rtol=0.05)
    if "ant" in path:
        assert mech.limits.effort[6:].tolist() == [150.0] * 8
        assert np.isinf(mech.limits.effort[:6]).all()


@pytest.mark.parametrize("name", ["manipulator", "point_mass", "fish", "quadruped", "cartpole"])
def test_joints_that_fixed_tendons_reach_have_motors(name):
    file = of_package("dm_control", f"suite/{name}.xml")
    mech, compiled = loaded(file), mujoco.MjModel.from_xml_path(str(file))
    moved = np.abs(forces(compiled, size=1.0, count=20)).max(axis=0) > 0.0
    joints = {compiled.joint(compiled.dof_jntid[i]).name for i in np.flatnonzero(moved)}
    assert (
        len(set(mech.metadata.actuated_joints)) == len(mech.metadata.actuated_joints)
        and set(mech.metadata.actuated_joints) == joints
    )
    assert set(lw.control.joint_feedback(mech, mech.initial).actuated_joints) == joints


def test_tendon_actuators_drive_their_joints():
    mech = loaded(of_package("dm_control", "suite/manipulator.xml"))
    assert mech.n_ctrl == 5
    (grasp,) = (one for one in mech.forces.actuators if one.name == "grasp")
    (tendon,) = (one for one in mech.forces.tendons if one.name == grasp.target)
    assert tendon.joints == (("thumb", 0.5), ("finger", 0.5))


@pytest.mark.parametrize(("others", "joints"), [("", None), ('<motor joint="j" ctrlrange="-2 2"/>', ("j",))])
def test_actuators_of_sites_say_nothing_of_joints(others, joints):
    mech = loaded(model(f'{others}<motor site="s" gear="0 0 1 0 0 0"/>'))
    assert mech.metadata.actuated_joints == joints
    assert mech.limits.effort.tolist() == [2.0 if others else INF]
    assert mech.forces.actuators[-1].transmission == "site"


@pytest.mark.parametrize(
    ("actuator", "message"),
    [
        ('<motor joint="jj"/>', "<motor>: MuJoCo refuses it: unknown transmission target 'jj'"),
        ('<motor tendon="x"/>', "<motor>: MuJoCo refuses it: transmission target 'x' not found"),
    ],
)
def test_actuators_of_what_does_not_exist(actuator, message):
    with pytest.raises(lw.MechanismError, match=message):
        lw.load(model(actuator))


def test_saturated_motors_give_what_mujocos_give():
    text = model('<motor joint="j" gear="50" ctrlrange="-1 1" forcerange="-3 3"/>')
    mech, compiled = loaded(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    for ctrl in (-3.0, -0.5, 0.2, 9.0):
        data.ctrl[:] = ctrl
        mujoco.mj_forward(compiled, data)
        control = lw.control.saturated(mech, lambda t, q, v, ctrl=ctrl: 50.0 * np.full(1, ctrl))
        np.testing.assert_allclose(control(0.0, np.zeros(1), np.zeros(1)), data.qfrc_actuator, rtol=1e-14)


@pytest.mark.parametrize("gear", [1.0, -3.0])
def test_a_position_servo_is_joint_feedback_without_gravity(gear):
    text = f"""<mujoco><worldbody><body name="a"><joint name="j" axis="0 1 0" damping="0.7"/>
      <geom size="0.1" pos="0.3 0 0"/></body></worldbody>
      <actuator><position joint="j" kp="20" kv="3" gear="{gear}"/></actuator></mujoco>"""
    mech, compiled = loaded(text), mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    data.qpos[:], data.qvel[:], data.ctrl[:] = 0.4, -1.5, 0.9
    mujoco.mj_forward(compiled, data)
    control = lw.control.joint_feedback(mech, [0.9 / gear], 20.0 * gear**2, 3.0 * gear**2, gravity=False)
    np.testing.assert_allclose(control(0.0, data.qpos, data.qvel), data.qfrc_actuator, rtol=1e-14)
    np.testing.assert_allclose(
        lw.forces.Passive.of(mech).forces(mech, data.qpos, data.qvel), data.qfrc_passive, rtol=1e-14
    )
    tau = data.qfrc_actuator + data.qfrc_passive
    np.testing.assert_allclose(lw.forward_dynamics(mech, data.qpos, data.qvel, tau), data.qacc_smooth, rtol=1e-10)


def test_the_recipe_from_controls_to_joint_forces():
    """Motors in another order than their joints: what the page on files says of ``mech.metadata.actuated_joints``."""
    text = """<mujoco><worldbody><body><joint name="s" type="slide"/><geom size="0.1"/>
      <body><joint name="h" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0"/></body></body></worldbody>
      <actuator><motor joint="h" gear="2" ctrlrange="-1 1"/><motor joint="s" gear="-50" ctrlrange="-1 1"/></actuator>
      </mujoco>"""
    mech, compiled = loaded(text), mujoco.MjModel.from_xml_string(text)
    assert mech.metadata.actuated_joints == ("h", "s") and mech.joint_names == ("s", "h")
    assert lw.control.joint_feedback(mech, lw.neutral(mech)).actuated_joints == ("s", "h")
    data, motors = mujoco.MjData(compiled), [mech.v_index(joint).start for joint in mech.metadata.actuated_joints]
    for ctrl in np.random.default_rng(0).normal(size=(20, 2)):
        data.ctrl[:] = ctrl
        mujoco.mj_forward(compiled, data)
        tau = np.zeros(2)
        tau[motors] = np.array([2.0, -50.0]) * np.clip(ctrl, -1.0, 1.0)
        np.testing.assert_allclose(tau, data.qfrc_actuator, rtol=1e-14)
        assert (np.abs(tau) <= mech.limits.effort).all()
