"""What of a file does not act is reported once, with counts, and listed in ``mech.notes``."""

import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import Note, from_data, to_data
from linkwise.readers.protocol import summary
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

FLEXCOMP = """<flexcomp name="f" type="grid" count="3 3 1" spacing=".1 .1 .1" radius=".01" mass="1" dim="2">
  <contact selfcollide="none" contype="0" conaffinity="0"/></flexcomp>"""
NOTED = {
    "contact with what does not act": (
        model('<geom type="cylinder" size="1 1"/><body><joint/><geom type="box" size=".1 .1 .1"/></body>'),
        ["1 cylinder with contact", "1 box with contact"],
        "contact acts between planes and other shapes, and among spheres and capsules",
    ),
    "a cylinder on a step, which a ball touches": (
        model(
            '<geom type="plane" size="1 1 1"/><geom type="box" size="1 1 1"/>'
            '<body><freejoint/><geom type="cylinder" size=".1 .1" contype="2"/></body>'
            '<body><freejoint/><geom size=".1" contype="4"/></body>'
        ),
        ["1 cylinder with no contact with a box"],
        "it passes through that: contact acts between planes and other shapes",
    ),
    "contact pair": (
        model(
            JOINT + '<body name="b"><joint/><geom name="x" type="cylinder" size=".1 .1" contype="0" conaffinity="0"/>'
            '</body><geom name="y" type="box" size="1 1 1" contype="0" conaffinity="0"/>',
            tail='<contact><pair geom1="x" geom2="y"/></contact>',
        ),
        ["1 contact pair"],
        "pass through",
    ),
    "sensor": (
        model(tail='<sensor><jointpos joint="j"/><jointvel joint="j"/></sensor>'),
        ["2 sensors"],
        "lw.frame_pose",
    ),
    "flex": (
        model(
            "".join(f'<body name="{x}"><joint/><geom size=".1" contype="0" conaffinity="0"/></body>' for x in "pq"),
            tail="<deformable><flex name='f' dim='1' body='p q' vertex='0 0 0 0 0 0' element='0 1' radius='.01'>"
            "<contact contype='0' conaffinity='0'/></flex></deformable>",
        ),
        ["1 deformable body"],
        "are not read",
    ),
    "flexcomp": (model(JOINT + FLEXCOMP), ["1 deformable body"], "are not read"),
    "plugin": (
        actuators(
            """<plugin joint="j" plugin="mujoco.pid" actdim="0"><config key="kp" value="1"/></plugin>""",
            head="<extension><plugin plugin='mujoco.pid'/></extension>",
        ),
        ["1 plugin actuator"],
        "does not act: its force is computed by a plugin",
    ),
    "mocap": (model(JOINT + '<body name="m" mocap="true"/>'), ["1 mocap body"], "kept where the file has it"),
    "limit of a ball": (
        moving(f'<joint type="ball" range="0 30"/>{BALL}'),
        ["1 ball joint with limits"],
        "has no limits here",
    ),
    "muscle": (actuators('<muscle joint="j"/>'), ["1 muscle actuator"], "does not act: its force is that of a muscle"),
    "adhesion": (actuators('<adhesion body="a" ctrlrange="0 1"/>'), ["1 adhesion actuator"], "through contacts"),
    "slider-crank": (
        actuators('<motor cranksite="s" slidersite="t" cranklength="1"/>').replace(
            BALL, f'{BALL}<site name="s"/><site name="t" pos="0 0 .5"/>'
        ),
        ["1 motor actuator"],
        "does not act: it is a slider-crank",
    ),
    "spatial tendon": (
        model(
            JOINT.replace(BALL, f'{BALL}<site name="s"/>') + '<site name="t" pos="0 0 1"/>',
            tail="<tendon><spatial stiffness='1' damping='1'><site site='s'/><site site='t'/></spatial></tendon>",
        ),
        ["1 spatial tendon with stiffness, damping"],
        "does not act",
    ),
    "tendon actuator with armature": (
        actuators('<motor tendon="t" armature="1"/>').replace(
            "<actuator>", '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon><actuator>'
        ),
        ["1 actuator with armature"],
        "write it at the joints",
    ),
    "nonlinear spring": (
        moving(f'<joint stiffness="1 2"/>{BALL}'),
        ["1 joint with nonlinear stiffness"],
        "only the first coefficient",
    ),
    "damper of a class": (
        moving(f'<joint damping="5"/>{BALL}').replace(
            "<worldbody>", '<default><joint damping="1 2"/></default><worldbody>'
        ),
        ["1 joint with nonlinear damping"],
        "only the first coefficient",
    ),
    "spring that yields": (
        moving(f'<joint stiffness="1" springyield="1"/>{BALL}'),
        ["1 joint with springyield"],
        "never yields",
    ),
    "early activation": (
        actuators('<general joint="j" dyntype="filter" dynprm="1" actearly="true"/>'),
        ["1 actuator with actearly"],
        "not one step later",
    ),
    "keyframe with controls of nobody": (
        model(tail="<keyframe><key qpos='1' ctrl='2'/></keyframe>"),
        ["1 keyframe"],
        "not read: keyframe 0: invalid ctrl size, expected length 0",
    ),
    "keyframe of another size": (
        model(tail="<keyframe><key qpos='1 2'/></keyframe>"),
        ["1 keyframe"],
        "invalid qpos size, expected 1, got 2",
    ),
}


@pytest.mark.parametrize(("text", "counted", "advice"), NOTED.values(), ids=NOTED)
def test_what_does_not_act_is_told_once_and_noted(text, counted, advice):
    mech, caught = loaded(text)
    assert [note.counted for note in mech.notes] == counted
    assert advice in mech.notes[0].advice and not mech.notes[0].constrains
    (summary,) = caught
    assert summary.category is lw.files.OmissionWarning and summary.filename == __file__
    assert str(summary.message).startswith("text: acting: " if mech.forces.active else "text: not acting: ")
    assert str(summary.message).endswith(f"not acting: {', '.join(counted)}; {ADVICE}")


def test_notes_know_the_elements_and_their_lines(tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text(actuators('\n<muscle name="m" joint="j"/>\n<muscle joint="j"/>'))
    assert loaded(file)[0].notes[0].where == ('arm.xml:3 <muscle name="m">', "arm.xml:4 <muscle>")


ACTING = {
    "motor": (actuators('<motor joint="j"/>'), {"actuators": ("motor_j",)}),
    "named servo": (actuators('<position name="p" joint="j" kp="5"/>'), {"actuators": ("p",)}),
    "tendon with a spring": (
        model(tail="<tendon><fixed name='t' stiffness='1'><joint joint='j' coef='1'/></fixed></tendon>"),
        {"tendons": ("t",)},
    ),
    "gravity compensation": (
        model(f'<body name="a" gravcomp="1"><joint/>{BALL}</body>'),
        {"gravity_compensation": ("a",)},
    ),
    "spring by its time": (
        moving(f'<joint name="j" springdamper="1 1"/>{BALL}'),
        {"springs": ("j",), "damping": ("j",)},
    ),
    "friction and limits": (
        moving(f'<joint name="j" frictionloss="1" range="0 30"/>{BALL}'),
        {"friction": ("j",), "limits": ("j",)},
    ),
    "no bodies": (model("<geom size='1'/>"), {}),
}


@pytest.mark.parametrize(("text", "acting"), ACTING.values(), ids=ACTING)
def test_what_acts_is_no_omission(text, acting):
    mech, caught = loaded(text)
    assert mech.forces.active == acting and not mech.notes
    assert not [one for one in caught if one.category is lw.files.OmissionWarning]


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
    assert not caught and not mech.notes and not mech.forces.active
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    mujoco.mj_forward(compiled, data)
    assert data.ncon == 0 and not data.qfrc_actuator.any()


ROPE = """<mujoco><worldbody><site name="w" pos="0 0 1"/>
  <body name="b" pos="0 0 .8"><freejoint/><geom size=".02"/><site name="s"/></body></worldbody>
  <tendon><spatial limited="true" range="0 .3"><site site="w"/><site site="s"/></spatial></tendon></mujoco>"""


def test_ropes_that_are_not_read_are_missing_constraints():
    with warnings.catch_warnings():
        warnings.simplefilter("error", lw.files.MissingConstraintWarning)
        with pytest.raises(lw.files.MissingConstraintWarning, match="comes apart: 1 spatial tendon with limits"):
            lw.load(ROPE)
    mech = loaded(ROPE)[0]
    assert mech.with_loops(
        lw.constraints.Loop("rope", lw.contact.Distance(0.3), "w", None, "s", None)
    ).loops  # as the note advises
    (note,) = mech.notes
    assert note.constrains and "lw.contact.Distance" in note.advice and "Builder.distance" in note.advice
    assert not loaded(ROPE.replace("<worldbody>", '<option><flag limit="disable"/></option><worldbody>'))[0].notes


@pytest.mark.skipif(find_spec("dm_control") is None, reason="a file of dm_control")
def test_the_ball_of_ball_in_cup_hangs_on_a_missing_constraint():
    folder = Path(find_spec("dm_control").origin).parent / "suite"
    notes = loaded(folder / "ball_in_cup.xml")[0].notes
    assert [note.what for note in notes if note.constrains] == ["spatial tendon with limits"]


# -- URDF ---------------------------------------------------------------------------------------------

APART = {
    "words of others": (robot("<x:loop/><gear_coupling/>"), ["1 loop", "1 gear_coupling"], "<coupling> of URDF+"),
    "misspelt mimic": (robot(inside_joint='<mimick joint="x"/>'), ["1 misspelt <mimic>"], "fix the name"),
    "capital mimic": (robot(inside_joint='<Mimic joint="x"/>'), ["1 misspelt <mimic>"], "fix the name"),
    "Drake's constraint": (robot("<drake:tendon_constraint/>"), ["1 tendon_constraint"], "loops= of load"),
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
    (summary,) = (one for one in caught if one.category is lw.files.MissingConstraintWarning)
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
    assert summary.category is lw.files.OmissionWarning
    assert str(summary.message) == (
        "text: acting: 1 joint with damping; not acting: 1 link with collision geometry, 1 unknown element, "
        f"1 Gazebo plugin, 1 transmission of no moving joint, 1 ros2_control system of no moving joint; {ADVICE}"
    )
    assert not loaded(robot('<material name="red"/><gazebo reference="hand"/>'))[1]


def test_no_word_is_counted_twice():
    """Transmissions that do not act for different reasons are of different kinds; and what has one name is added up."""
    joint = """<link name="{0}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial></link>
      <joint name="{0}" type="{1}"><parent link="hand"/><child link="{0}"/></joint>"""
    wheels = "".join(f'<transmission name="w{k}"><joint name="fixed"/></transmission>' for k in range(3))
    wrist = '<transmission name="t"><joint name="b"/><joint name="c"/></transmission>'
    parts = [joint.format("b", "continuous"), joint.format("c", "continuous"), joint.format("fixed", "fixed")]
    (told,) = loaded(robot("".join(parts) + wheels + wrist))[1]
    kinds = "3 transmissions of no moving joint, 1 transmission of several joints"
    assert str(told.message) == f"text: not acting: {kinds}; {ADVICE}"
    notes = [Note("plugin", ("a", "b"), "one"), Note("plugin", ("c",), "other")]
    assert summary(notes) == "not acting: 3 plugins"


def test_defects_of_many_links_are_one_warning():
    links = "".join(
        f"""<link name="l{i}"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="9"/></inertial></link>
        <joint name="j{i}" type="fixed"><parent link="hand"/><child link="l{i}"/></joint>"""
        for i in range(20)
    )
    _, caught = loaded(robot(links))
    (defects,) = caught
    assert defects.category is lw.files.InertiaWarning
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


def test_keyframes_are_states_with_velocities_controls_and_activations():
    text = POSED.replace('0.7 0.8"/>', '0.7 0.8" qvel="1 2 3 4 5 6  7 8 9  10 11" act="0.5" ctrl="0.1 0.2"/>').replace(
        "<keyframe>",
        '<actuator><motor name="a" joint="hinge"/><cylinder name="b" joint="slide"/></actuator><keyframe>',
    )
    mech, _ = loaded(text)
    compiled = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(compiled)
    mujoco.mj_resetDataKeyframe(compiled, data, 0)
    mujoco.mj_forward(compiled, data)
    home = mech.metadata.keyframes["home"]
    assert home.ctrl.tolist() == data.ctrl.tolist() and home.activation.tolist() == data.act.tolist()
    velocities = lw.link_velocities(mech, home.q, home.v)
    for link in ("free", "b", "h", "s"):
        rotation = data.body(link).xmat.reshape(3, 3)
        found = velocities[mech.link_names.index(link)]
        np.testing.assert_allclose(rotation @ found[:3], data.body(link).cvel[:3], atol=1e-12)
    assert not mech.metadata.keyframes["key1"].v.any() and mech.metadata.keyframes["key1"].activation.tolist() == [0.0]
    again = from_data(to_data(mech))
    assert again.metadata.keyframes["home"].v.tolist() == home.v.tolist() and again == mech


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
    mech, caught = loaded(of_package("gymnasium", "envs/mujoco/assets/ant.xml"))
    assert not caught and not mech.notes
    counts = {kind: len(names) for kind, names in mech.forces.active.items()}
    assert counts.pop("contact") and counts == {"damping": 8, "limits": 8, "actuators": 8}
    assert lw.neutral(mech)[6] == 0.0 and mech.initial[:7].tolist() == [1, 0, 0, 0, 0, 0, 0.75]


def test_the_dog_of_dm_control_is_told_in_few_warnings():
    mech, caught = loaded(of_package("dm_control", "suite/dog.xml"))
    assert [one.category for one in caught] == [lw.MechanismWarning, lw.files.OmissionWarning]
    assert mech.n_ctrl == mech.forces.n_activation == 38
    assert "38 actuators" in str(caught[1].message) and "not acting: " in str(caught[1].message)
    assert len(mech.forces.active["springs"]) >= 21  # given by time constants and damping ratios
