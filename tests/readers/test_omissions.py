"""What of a file does not act is reported once, with counts, and listed in ``mech.notes``."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from tests.readers.mujoco_oracle import mujoco

BALL = '<geom size="0.1"/>'
JOINT = f'<body name="a"><joint name="j"/>{BALL}</body>'
ADVICE = "mech.notes says where and what to do"


def model(bodies=JOINT, head="", tail=""):
    return f"<mujoco>{head}\n<worldbody>{bodies}</worldbody>{tail}</mujoco>"


def moving(inside):
    return model(f'<body name="a">{inside}</body>')


def actuators(inside, head=""):
    return model(tail=f"<actuator>{inside}</actuator>", head=head)


def robot(more="", inside_joint="", inside_link=""):
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    return f"""<robot name="r"><link name="base"/>
      <link name="hand">{mass}{inside_link}</link>
      <joint name="wrist" type="continuous"><parent link="base"/><child link="hand"/>{inside_joint}</joint>
      {more}</robot>"""


def loaded(file, **options):
    """The mechanism and all warnings."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        mech = lw.load(file, **options)
    return mech, caught


# -- MJCF ---------------------------------------------------------------------------------------------

NOTED = {
    "contact with what does not act": (
        model('<geom type="box" size="1 1 1"/>' + JOINT),
        ["1 box with contact", "1 sphere with contact"],
        "contact acts between planes and other shapes, and among spheres and capsules",
    ),
    "contact pair": (model(tail='<contact><pair geom1="x" geom2="y"/></contact>'), ["1 contact pair"], "pass through"),
    "motor": (actuators('<motor joint="j"/>'), ["1 motor"], "tau"),
    "position servo": (
        actuators('<position name="p" joint="j" kp="9"/>' * 2),
        ["2 position servos"],
        "even where ctrl is 0, here nothing does: control=lw.joint_feedback(mech, target, kp, kv, gravity=False)",
    ),
    "velocity servo": (actuators('<velocity joint="j"/>'), ["1 velocity servo"], "even where ctrl is 0"),
    "muscle": (actuators('<muscle joint="j"/>'), ["1 muscle"], "even where ctrl is 0"),
    "general actuator": (actuators('<general joint="j" gainprm="2"/>'), ["1 general actuator"], "give joint forces"),
    "general servo": (
        actuators('<general joint="j" biastype="affine" biasprm="0 -5 -1"/>'),
        ["1 servo"],
        "even where ctrl is 0",
    ),
    "servo of a class": (
        actuators('<general joint="j"/>', head='<default><position kp="3"/></default>'),
        ["1 servo"],
        "even where ctrl is 0",
    ),
    "adhesion": (actuators('<adhesion body="a" ctrlrange="0 1"/>'), ["1 adhesion actuator"], "not read"),
    "sensor": (
        model(tail='<sensor><jointpos joint="j"/><jointvel joint="j"/></sensor>'),
        ["2 sensors"],
        "lw.frame_pose",
    ),
    "tendon with a spring": (
        model(tail="<tendon><fixed name='t' stiffness='1'><joint joint='j' coef='1'/></fixed></tendon>"),
        ["1 tendon with stiffness"],
        "give them as tau",
    ),
    "tendon with limits": (model(tail="<tendon><spatial range='0 1'/></tendon>"), ["1 tendon with limits"], "tau"),
    "tendon with a default": (
        model(head="<default><tendon damping='1'/></default>", tail="<tendon><fixed name='t'/></tendon>"),
        ["1 tendon with damping"],
        "tau",
    ),
    "tendon actuator with armature": (
        actuators('<motor tendon="t" armature="1"/>').replace(
            "<actuator>", '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon><actuator>'
        ),
        ["1 actuator with armature", "1 tendon motor"],
        "write it at the joints",
    ),
    "flex": (model(tail="<deformable><flex name='f'/></deformable>"), ["1 deformable body"], "are not read"),
    "flexcomp": (model(JOINT + "<flexcomp name='f'/>"), ["1 deformable body"], "are not read"),
    "composite": (model(JOINT + "<composite prefix='c'/>"), ["1 composite"], "save the model from MuJoCo"),
    "plugin": (moving(f"<joint/>{BALL}<plugin plugin='p'/>"), ["1 plugin"], "not in the file"),
    "fluid": (
        model(head="<option density='1.2' viscosity='0.1'/>"),
        ["1 fluid with density and viscosity"],
        "left out",
    ),
    "gravity compensation": (
        model(f'<body name="a" gravcomp="1"><joint/>{BALL}</body>'),
        ["1 body with gravcomp"],
        "lw.gravity_force",
    ),
    "mocap": (model(JOINT + '<body name="m" mocap="true"/>'), ["1 mocap body"], "kept where the file has it"),
    "limit of a ball": (
        moving(f'<joint type="ball" range="0 30"/>{BALL}'),
        ["1 ball joint with limits"],
        "has no limits here",
    ),
    "nonlinear spring": (
        moving(f'<joint stiffness="1 2"/>{BALL}'),
        ["1 joint with nonlinear stiffness", "1 joint with stiffness"],
        "only the first coefficient",
    ),
    "damper of a class": (
        moving(f'<joint damping="5"/>{BALL}').replace(
            "<worldbody>", '<default><joint damping="1 2"/></default><worldbody>'
        ),
        ["1 joint with nonlinear damping", "1 joint with damping"],
        "only the first coefficient",
    ),
    "spring by its time": (
        moving(f'<joint springdamper="1 1"/>{BALL}'),
        ["1 joint with springdamper"],
        "as MuJoCo saves",
    ),
    "spring that yields": (
        moving(f'<joint stiffness="1" springyield="1"/>{BALL}'),
        ["1 joint with springyield", "1 joint with stiffness"],
        "never yields",
    ),
    "friction and limits": (
        moving(f'<joint frictionloss="1" range="0 30"/>{BALL}'),
        ["1 joint with friction", "1 joint with limits"],
        "lw.Passive.of(mech)",
    ),
    "keyframe with controls": (
        model(tail="<keyframe><key qpos='1' ctrl='2'/></keyframe>"),
        ["1 keyframe with ctrl"],
        "mech.postures",
    ),
    "keyframe of another size": (
        model(tail="<keyframe><key qpos='1 2'/></keyframe>"),
        ["1 keyframe"],
        "has 2 numbers where the joints have 1",
    ),
}


@pytest.mark.parametrize(("text", "counted", "advice"), NOTED.values(), ids=NOTED)
def test_what_does_not_act_is_told_once_and_noted(text, counted, advice):
    mech, caught = loaded(text)
    assert [note.counted for note in mech.notes] == counted
    assert advice in mech.notes[0].advice and not mech.notes[0].constrains
    (summary,) = caught
    assert summary.category is lw.OmissionWarning and summary.filename == __file__
    assert str(summary.message) == f"text: not acting: {', '.join(counted)}; {ADVICE}"


def test_notes_know_the_elements_and_their_lines(tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(actuators('\n<motor name="m" joint="j"/>\n<motor joint="j"/>'))
    assert loaded(file)[0].notes[0].where == ('arm.xml:3 <motor name="m">', "arm.xml:4 <motor>")


QUIET = {
    "masks that do not meet": model('<geom type="plane" size="1 1 1" contype="2" conaffinity="4"/>' + JOINT),
    "parent and child": moving(f'<joint/>{BALL}<body name="b"><joint/>{BALL}</body>'),
    "contact switched off": model(
        '<geom type="plane" size="1 1 1"/>' + JOINT, head='<option><flag contact="disable"/></option>'
    ),
    "actuation switched off": actuators('<motor joint="j"/>', head='<option><flag actuation="disable"/></option>'),
    "limits switched off": moving(f'<joint range="0 1"/>{BALL}').replace(
        "<worldbody>", '<option><flag limit="disable"/></option><worldbody>'
    ),
}


@pytest.mark.parametrize("text", QUIET.values(), ids=QUIET)
def test_what_does_not_act_in_mujoco_either_is_no_omission(text):
    mech, caught = loaded(text)
    assert not caught and not mech.notes
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    assert data.ncon == 0 and not data.qfrc_actuator.any()


# -- URDF ---------------------------------------------------------------------------------------------

APART = {
    "words of others": (robot("<x:loop/><gear_coupling/>"), ["1 loop", "1 gear_coupling"], "<coupling> of URDF+"),
    "misspelt mimic": (robot(inside_joint='<mimick joint="x"/>'), ["1 misspelt <mimic>"], "fix the name"),
    "capital mimic": (robot(inside_joint='<Mimic joint="x"/>'), ["1 misspelt <mimic>"], "fix the name"),
    "Drake's constraint": (robot("<drake:ball_constraint/>"), ["1 ball_constraint"], "loops= of load"),
    "Gazebo's loop": (robot('<gazebo><joint name="g"/></gazebo>'), ["1 Gazebo joint"], "loops= of load"),
    "Gazebo's mimic": (
        robot('<gazebo><plugin filename="libgazebo_mimic_joint.so"/></gazebo>'),
        ["1 Gazebo mimic plugin"],
        "<mimic>",
    ),
}


@pytest.mark.parametrize(("text", "counted", "advice"), APART.values(), ids=APART)
def test_constraints_that_are_not_read_are_named(text, counted, advice):
    mech, caught = loaded(text)
    assert [note.counted for note in mech.notes] == counted and all(note.constrains for note in mech.notes)
    assert advice in mech.notes[0].advice
    (summary,) = (one for one in caught if one.category is lw.MissingConstraintWarning)
    assert f"not read, so that what it holds together comes apart: {', '.join(counted)}" in str(summary.message)


@pytest.mark.parametrize(("kind", "inside"), [("continuous", '<mimic joint="wrist"/>'), ("fixed", "")])
def test_what_gazebo_ties_once_more_is_not_missing(kind, inside):
    """The simulator's plugin repeats what the joint says itself."""
    more = f"""<link name="b"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
      <joint name="j" type="{kind}"><parent link="hand"/><child link="b"/>{inside}</joint>
      <gazebo><plugin filename="libmimic.so"><joint>wrist</joint><mimicJoint>j</mimicJoint></plugin></gazebo>"""
    assert not loaded(robot(more))[1]
    free = more.replace(inside, "").replace('"fixed"', '"continuous"')
    assert [note.counted for note in loaded(robot(free))[0].notes] == ["1 Gazebo mimic plugin"]


def test_what_drives_or_collides_in_a_urdf_file_is_named():
    more = '<transmission name="t"/><ros2_control name="c"/><strange/><gazebo><plugin name="p"/></gazebo>'
    mech, caught = loaded(robot(more, '<dynamics damping="1"/>', "<collision/>") + "\n")
    (summary,) = caught
    assert summary.category is lw.OmissionWarning
    assert str(summary.message) == (
        "text: not acting: 1 link with collision geometry, 1 unknown element, 1 Gazebo plugin, 1 transmission, "
        f"1 ros2_control system, 1 joint with damping; {ADVICE}"
    )
    assert not loaded(robot('<material name="red"/><gazebo reference="hand"/>'))[1]


def test_defects_of_many_links_are_one_warning():
    links = "".join(
        f"""<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="9"/></inertial></link>
        <joint name="j{i}" type="fixed"><parent link="hand"/><child link="l{i}"/></joint>"""
        for i in range(20)
    )
    _, caught = loaded(robot(links))
    (defects,) = caught
    assert defects.category is lw.InertiaWarning
    assert "link 'l0': its principal moments" in str(defects.message) and "and 12 more" in str(defects.message)


# -- where files start, and keyframes -----------------------------------------------------------------

POSED = """<mujoco><compiler angle="radian"/><worldbody>
  <body name="free" pos="1 2 3" euler="0.3 -0.4 2.5"><freejoint name="f"/><geom size="0.1" contype="0"/>
    <body name="b"><joint name="ball" type="ball"/><geom size="0.1" contype="0" pos="0.1 0.2 0.3"/></body></body>
  <body name="h"><joint name="hinge" ref="0.4"/><geom size="0.1" contype="0"/>
    <body name="s"><joint name="slide" type="slide" ref="0.2"/><geom size="0.1" contype="0"/></body></body>
  </worldbody><keyframe><key name="home" qpos="1 2 3  0 2 0 0  0 0 0 1  0.7 0.8"/><key/></keyframe></mujoco>"""


def in_mujoco_order(mech, q):
    parts = {name: q[mech.q_index(name)] for name in mech.joint_names}
    parts["f"] = np.concatenate([parts["f"][4:], parts["f"][:4]])
    return np.concatenate([parts[name] for name in ("f", "ball", "hinge", "slide")])


def test_the_initial_configuration_and_keyframes_are_those_of_mujoco():
    mech, _ = loaded(POSED)
    compiled = mujoco.MjModel.from_xml_string(POSED)
    data = mujoco.MjData(compiled)
    np.testing.assert_allclose(in_mujoco_order(mech, mech.initial), compiled.qpos0, atol=1e-15)
    assert list(mech.postures) == ["home", "key1"]
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    mujoco.mj_kinematics(compiled, data)  # normalises quaternions
    for link in ("free", "b", "h", "s"):
        pose = lw.frame_pose(mech, mech.postures["home"], link)
        np.testing.assert_allclose(pose[:3, 3], data.body(link).xpos, atol=1e-14)
        np.testing.assert_allclose(pose[:3, :3].ravel(), data.body(link).xmat, atol=1e-14)
    np.testing.assert_array_equal(mech.postures["key1"], mech.initial)


def test_a_floating_base_starts_where_the_file_has_the_body():
    mech, _ = loaded(
        model(f'<body name="a" pos="0 0 0.5">{BALL}</body>', tail="<keyframe><key/></keyframe>"), floating_base=True
    )
    assert mech.initial.tolist() == mech.postures["key0"].tolist() == [1, 0, 0, 0, 0, 0, 0.5]


# -- files of others ----------------------------------------------------------------------------------


def of_package(package, path):
    """A file of a package that need not be imported."""
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0]) / path


def test_the_ant_of_gymnasium():
    file = of_package("gymnasium", "envs/mujoco/assets/ant.xml")
    mech, caught = loaded(file)
    (summary,) = caught
    assert str(summary.message) == (
        f"{file}: not acting: 8 motors, 8 joints with damping, 8 joints with limits; {ADVICE}"
    )
    assert lw.neutral(mech)[6] == 0.0 and mech.initial[:7].tolist() == [1, 0, 0, 0, 0, 0, 0.75]


def test_the_dog_of_dm_control_is_told_in_two_warnings():
    mech, caught = loaded(of_package("dm_control", "suite/dog.xml"))
    assert [one.category for one in caught] == [lw.MechanismWarning, lw.OmissionWarning]
    assert "21 joints with springdamper" in str(caught[1].message)
    counts = {note.what: note.count for note in mech.notes}
    assert counts["joint with springdamper"] == 21 and counts["general actuator"] == 30
    assert counts["tendon general actuator"] == 8
