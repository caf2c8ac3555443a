"""``<option>`` and ``<flag>`` of MJCF, with MuJoCo as the judge."""

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.readers.mujoco_oracle import Pair, mujoco


def arm(option="", flags="", actuators="", head="", body="", keys=""):
    """Two hinges with springs and dampers, and a body in a fluid that is held up."""
    return f"""<mujoco><option gravity="1 0 -9" {option}><flag {flags}/></option>{head}<worldbody>
      <body name="upper" gravcomp=".5"><joint name="a" axis="0 1 0" stiffness="3" springref="20" damping="2"/>
        <geom size=".1" pos=".2 0 0" contype="0" conaffinity="0"/>
        <body name="fore" pos=".3 0 0" {body}><joint name="b" axis="0 0 1" damping="1"/>
          <geom size=".1" pos=".2 0 .1" contype="0" conaffinity="0"/></body></body></worldbody>
      <actuator>{actuators}</actuator><keyframe>{keys}</keyframe></mujoco>"""


def loaded(text):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(text)


def forces_of_mujoco(text, q, v, ctrl=()):
    """Passive and actuator forces."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    if len(ctrl):
        data.ctrl[:] = ctrl
    mujoco.mj_forward(model, data)
    return data.qfrc_passive + data.qfrc_actuator


STATE = np.array([0.3, -0.4]), np.array([0.7, -1.1])


@pytest.mark.parametrize(
    "flags",
    [
        "",
        'spring="disable"',
        'damper="disable"',
        'spring="disable" damper="disable"',
        'gravity="disable"',
        'constraint="disable"',
    ],
)
def test_passive_forces_stop_when_mujocos_do(flags):
    text = arm('density="900" viscosity="2"', flags)
    np.testing.assert_allclose(lw.forces.joint_forces(loaded(text), *STATE), forces_of_mujoco(text, *STATE), atol=1e-12)


def test_the_last_flag_counts():
    text = arm(flags='gravity="disable"').replace("<worldbody>", '<option><flag gravity="enable"/></option><worldbody>')
    assert loaded(text).gravity.tolist() == mujoco.MjModel.from_xml_string(text).opt.gravity.tolist() == [1, 0, -9]


# -- groups of actuators ------------------------------------------------------------------------------

SERVOS = """<motor name="m0" joint="a" gear="3" ctrlrange="-1 1"/>
  <position name="p1" joint="a" kp="20" kv="2" group="1" damping="4" armature=".3"/>
  <general name="g" class="spare" joint="b" dyntype="filter" dynprm=".2" gear="2"/>
  <motor name="m3" joint="b" gear="5" ctrlrange="-1 1" group="3"/>"""
SPARE = '<default><default class="spare"><general group="2"/></default></default>'


@pytest.mark.parametrize("disabled", ["", "1", "2 3", "0 1", "5", "0 1 2 3"])
def test_disabled_groups_give_no_force(disabled):
    option = f'actuatorgroupdisable="{disabled}"' if disabled else ""
    text = arm(option, "", SERVOS, SPARE)
    mech, model = loaded(text), mujoco.MjModel.from_xml_string(text)
    ctrl = np.array([0.4, -0.7, 0.9, 0.2])
    on = [not model.opt.disableactuator & (1 << group) for group in model.actuator_group]
    assert mech.forces.actuator_names == tuple(np.array(["m0", "p1", "g", "m3"])[on])
    assert mech.forces.idle.get("actuators", ()) == tuple(np.array(["m0", "p1", "g", "m3"])[~np.array(on)])
    ours = lw.forces.joint_forces(mech, *STATE, ctrl=ctrl[on] if any(on) else None)
    np.testing.assert_allclose(ours, forces_of_mujoco(text, *STATE, ctrl), atol=1e-12)
    assert mech.bodies[0].armature[0] == 0.3  # rotors are there, driven or not
    everything = lw.forces.joint_forces(mech.with_acting(True), *STATE, ctrl=ctrl)
    np.testing.assert_allclose(everything, forces_of_mujoco(arm("", "", SERVOS, SPARE), *STATE, ctrl), atol=1e-12)


@pytest.mark.parametrize(
    "servo",
    [
        '<general joint="b" gainprm="10" biastype="affine" biasprm="0 -10 0" inheritrange=".5"/>',
        '<general joint="b" gainprm="10" inheritrange=".5"/>',
        '<position joint="b" kp="10" inheritrange=".5"/>',
    ],
)
def test_only_servos_inherit_ranges(servo):
    text = arm(flags='limit="disable"', actuators=servo).replace('name="b"', 'name="b" range="-60 60"')
    ours = lw.forces.joint_forces(loaded(text), *STATE, ctrl=[5.0])
    np.testing.assert_allclose(ours, forces_of_mujoco(text, *STATE, [5.0]), atol=1e-12)


def test_effort_limits_and_motors_are_those_of_the_groups_that_act():
    two = '<motor joint="a" gear="3" ctrlrange="-1 1"/><motor joint="a" gear="5" ctrlrange="-1 1" group="1"/>'
    assert loaded(arm(actuators=two)).limits.effort[0] == 8.0
    half = loaded(arm('actuatorgroupdisable="1"', actuators=two))
    assert half.limits.effort[0] == 3.0 and half.metadata.actuated_joints == ("a",)
    assert loaded(arm('actuatorgroupdisable="0 1"', actuators=two)).metadata.actuated_joints is None


def test_keyframes_have_the_inputs_of_what_acts():
    keys = '<key name="k" qpos=".1 .2" ctrl="1 2 3 4" act=".5"/>'
    mech = loaded(arm('actuatorgroupdisable="1"', "", SERVOS, SPARE, keys=keys))
    assert mech.metadata.keyframes["k"].ctrl.tolist() == [1, 3, 4] and mech.metadata.keyframes[
        "k"
    ].activation.tolist() == [0.5]


def test_switched_off_actuators_are_written_as_such(tmp_path):
    mech = loaded(arm('actuatorgroupdisable="1 3"', "", SERVOS, SPARE))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        mech.save(tmp_path / "again.xml")
        again = lw.load(tmp_path / "again.xml")
    assert again.forces.active == mech.forces.active and again.forces.idle == mech.forces.idle
    ours = lw.forces.joint_forces(mech, *STATE, ctrl=[0.4, 0.9])
    theirs = forces_of_mujoco((tmp_path / "again.xml").read_text(), *STATE, [0.4, -0.7, 0.9, 0.2])
    np.testing.assert_allclose(ours, theirs, atol=1e-12)


# -- the integrator -----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["Euler", "RK4", "implicit", "implicitfast", "discrete"])
def test_the_integrator_is_kept_and_written(tmp_path, name):
    mech = loaded(arm(f'integrator="{name}" timestep="0.01"'))
    assert (mech.metadata.integrator, mech.metadata.timestep) == (name, 0.01)
    assert (
        mech.with_locked({"b": 0.0}).metadata.integrator == name
        and lw.mechanisms.planar_arm(2).metadata.integrator is None
    )
    mech.save(tmp_path / "again.xml")
    written = mujoco.MjModel.from_xml_path(str(tmp_path / "again.xml"))
    original = mujoco.MjModel.from_xml_string(arm(f'integrator="{name}"'))
    assert written.opt.integrator == original.opt.integrator and written.opt.timestep == 0.01
    assert lw.load(tmp_path / "again.xml").metadata.integrator == name


def test_a_format_without_integrators_says_so(tmp_path):
    mech = loaded(arm('integrator="RK4"'))
    with pytest.warns(lw.files.OmissionWarning, match="integrator RK4"):
        mech.save(tmp_path / "again.urdf")
    assert loaded(arm()).metadata.integrator == "Euler"


def test_unknown_words_are_refused_or_told():
    with pytest.raises(lw.MechanismError, match="<option>: MuJoCo refuses it: invalid keyword: 'rk4'"):
        lw.load(arm('integrator="rk4"'))
    for text, word in ((arm('timstep="0.1"'), "timstep"), (arm(flags='gravty="disable"'), "gravty")):
        with pytest.raises(lw.MechanismError, match=f"MuJoCo refuses it: unrecognized attribute: '{word}'"):
            lw.load(text)
    with pytest.warns(lw.MechanismWarning, match="timestep=-1, which is not positive: 0.002 s are taken"):
        assert lw.load(arm('timestep="-1"')).metadata.timestep == 0.002


# -- what does not act --------------------------------------------------------------------------------

JOINT = """<mujoco>{head}<worldbody><body {body}><joint name="j" {joint}/><geom size=".1" pos=".1 0 0"/></body>
  </worldbody>{tail}</mujoco>"""
TENDON = '<tendon><fixed name="t" {}><joint joint="j" coef="1"/></fixed></tendon>'
NOTED = {
    "soft stop": (dict(joint='range="-1 1" solreflimit=".2 1"'), "1 joint with solreflimit"),
    "stop from afar": (
        dict(joint='range="-1 1" margin=".1" solimplimit="0 .8"'),
        "1 joint with solimplimit and margin",
    ),
    "soft friction": (dict(joint='frictionloss="1" solimpfriction=".5"'), "1 joint with solimpfriction"),
    "tendon": (dict(tail=TENDON.format('range="-1 1" margin=".1" frictionloss="1" solreffriction=".3 1"')),
               "1 tendon with margin, 1 tendon with solreffriction"),
    "gravity compensation by motors": (
        dict(joint='actuatorfrcrange="-1 1" actuatorgravcomp="true"', body='gravcomp="1"'),
        "1 joint with actuatorgravcomp",
    ),
    "gravity compensation without motors": (
        dict(joint='actuatorgravcomp="true"', head='<option><flag actuation="disable"/></option>'),
        "1 joint with actuatorgravcomp",
    ),
    "asleep": (dict(body='sleep="init"', head='<option><flag sleep="enable"/></option>'), "1 body with sleep"),
}  # fmt: skip


@pytest.mark.parametrize("name", NOTED)
def test_what_does_not_act_is_named(name):
    parts, counted = NOTED[name]
    text = JOINT.format(**{"head": "", "body": "", "joint": "", "tail": "", **parts})
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        lw.load(text)
    (warning,) = told
    assert f"not acting: {counted};" in str(warning.message)


@pytest.mark.parametrize(
    "parts",
    [
        dict(joint='solreflimit=".2 1" margin=".1"'),
        dict(joint='range="-1 1" solreflimit=".02 1" solimplimit=".9 .95" margin="0"'),
        dict(joint='range="-1 1" margin=".1"', head='<option><flag limit="disable"/></option>'),
        dict(body='sleep="init"'),
    ],
)
def test_what_has_no_effect_is_not_named(parts):
    text = JOINT.format(**{"head": "", "body": "", "joint": "", "tail": "", **parts})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.load(text)


def test_scaled_frames_scale_what_is_inside():
    text = """<mujoco><worldbody><frame scale="2 2 2"><body pos="1 0 0"><joint pos="0.3 0 0" axis="0 1 0"/>
      <geom size=".1" pos=".2 0 0"/></body></frame></worldbody></mujoco>"""
    pair, plain = Pair(text), Pair(text.replace('scale="2 2 2"', ""))
    pair.assert_same_dynamics()
    assert pair.mech.bodies[0].mass == pytest.approx(8.0 * plain.mech.bodies[0].mass)
