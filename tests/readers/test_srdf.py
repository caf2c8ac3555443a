"""Groups and postures of SRDF files; Pinocchio judges those of robots."""

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

pytestmark = pytest.mark.filterwarnings("ignore::linkwise.files.OmissionWarning")

MASS = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def robot(more=""):
    """A torso with a left and a right arm of two joints, a weld, a finger that mimics another, a ball and a plane."""
    parts = ['<link name="torso"/>']

    def add(name, parent, kind="continuous", inside=""):
        parts.append(f"""<link name="{name}">{MASS}</link><joint name="j_{name}" type="{kind}"><parent link="{parent}"/>
          <child link="{name}"/>{inside}</joint>""")

    for side in ("l", "r"):
        add(f"{side}1", "torso")
        add(f"{side}2", f"{side}1")
    add("hand", "l2", "fixed")
    add("finger", "hand", "prismatic")
    add("thumb", "hand", "prismatic", '<mimic joint="j_finger" multiplier="2" offset="0.1"/>')
    add("puck", "torso", "planar")
    return lw.load(f"<robot name='duo'>{''.join(parts)}{more}</robot>")


SRDF = """<robot name="duo">
  <virtual_joint name="world_joint" type="floating" parent_frame="odom" child_link="torso"/>
  <group name="left"><joint name="world_joint"/><joint name="j_l2"/><joint name="j_l1"/><joint name="j_hand"/></group>
  <group name="right"><chain base_link="torso" tip_link="r2"/></group>
  <group name="fingers"><link name="finger"/><link name="hand"/><joint name="j_thumb"/></group>
  <group name="across"><chain base_link="r1" tip_link="finger"/></group>
  <group name="all"><group name="left"/><group name="right"/><group name="fingers"/></group>
  <group_state name="home" group="left"><joint name="j_l1" value="0.5"/><joint name="j_l2" value="-1"/>
    <joint name="j_hand" value="3"/></group_state>
  <group_state name="home" group="right"><joint name="j_r1" value="0.25"/></group_state>
  <group_state name="up" group="left"><joint name="j_l1" value="1"/></group_state>
  <group_state name="up" group="all"><joint name="j_l1" value="2"/></group_state>
  <group_state name="open" group="fingers"><joint name="j_thumb" value="0.5"/></group_state>
  <group_state name="closed" group="fingers"><joint name="j_thumb" value="0.1"/><joint name="j_finger" value="0"/>
    </group_state>
  <group_state name="away"><joint name="world_joint" value="1 2 3 0 0 2 0"/><joint name="j_puck" value="4 5 6"/>
    </group_state>
  <end_effector name="e" parent_link="hand" group="fingers"/><disable_collisions link1="x" link2="y"/></robot>"""


@pytest.mark.smoke
def test_groups():
    groups = lw.files.load_srdf(robot(), SRDF).metadata.groups
    assert dict(groups) == {
        "left": ("j_l1", "j_l2"),
        "right": ("j_r1", "j_r2"),
        "fingers": ("j_finger", "j_thumb"),
        "across": ("j_l1", "j_l2", "j_r1", "j_finger"),
        "all": ("j_l1", "j_l2", "j_r1", "j_r2", "j_finger", "j_thumb"),
    }


def test_postures():
    mech = lw.files.load_srdf(robot(), SRDF)

    def posture(name):
        q = mech.postures[name]
        return {joint: q[mech.q_index(joint)].tolist() for joint in ("j_l1", "j_l2", "j_r1", "j_finger")}

    at_rest = {"j_l1": [0.0], "j_l2": [0.0], "j_r1": [0.0], "j_finger": [0.0]}
    assert posture("home") == {**at_rest, "j_l1": [0.5], "j_l2": [-1.0], "j_r1": [0.25]}, "two groups, one posture"
    assert posture("left/home") == {**at_rest, "j_l1": [0.5], "j_l2": [-1.0]}
    assert "up" not in mech.postures and posture("left/up")["j_l1"] == [1.0] and posture("all/up")["j_l1"] == [2.0]
    assert posture("open")["j_finger"] == [0.2], "0.5 = 2 * 0.2 + 0.1"
    assert posture("closed")["j_finger"] == [0.0], "the mimicked joint itself counts"
    assert mech.postures["away"][mech.q_index("j_puck")].tolist() == [4, 5, 6]


def test_a_floating_base_is_the_virtual_joint():
    text = f"<robot name='r'><link name='torso'>{MASS}</link></robot>"
    srdf = """<robot name="r"><virtual_joint name="w" type="floating" parent_frame="odom" child_link="torso"/>
      <group name="base"><joint name="w"/></group>
      <group_state name="a" group="base"><joint name="w" value="1 2 3 0 0 2 0"/></group_state>
      <group_state name="b" group="base"><joint name="root_joint" value="1 2 3 0 0 0 1"/></group_state></robot>"""
    mech = lw.files.load_srdf(lw.load(text, floating_base=True), srdf)
    assert mech.metadata.groups["base"] == ("floating_base",)
    assert mech.postures["a"].tolist() == [0, 0, 0, 1, 1, 2, 3]
    assert mech.postures["b"].tolist() == [1, 0, 0, 0, 1, 2, 3]


def test_a_file_and_its_text_give_the_same(tmp_path):
    file = tmp_path / "duo.srdf"
    file.write_text(SRDF)
    assert lw.files.load_srdf(robot(), file).annotations == lw.files.load_srdf(robot(), SRDF).annotations
    with pytest.raises(FileNotFoundError):
        lw.files.load_srdf(robot(), tmp_path / "nowhere.srdf")
    with pytest.raises(TypeError, match="the path of a SRDF file"):
        lw.files.load_srdf(robot(), 3)


def wrapped(inside):
    return f'<robot name="duo">\n{inside}</robot>'


REFUSED = {
    "joint": ('<group name="g"><joint name="j_l3"/></group>', "text:2: <joint name=\"j_l3\"> names the joint 'j_l3'"),
    "link": ('<group name="g"><link name="l9"/></group>', "names the link 'l9', which mechanism 'duo' does not have"),
    "chain": ('<group name="g"><chain base_link="torso" tip_link="x"/></group>', "names the link 'x'"),
    "group": ('<group name="g"><group name="h"/></group>', "names the group 'h'"),
    "state": ('<group_state name="s"><joint name="j_l3" value="1"/></group_state>', "names the joint 'j_l3'.*did you"),
    "group of a state": ('<group_state name="s" group="h"/>', "names the group 'h'"),
}


@pytest.mark.parametrize(("inside", "message"), REFUSED.values(), ids=REFUSED)
def test_unknown_names_are_refused_or_left_out(inside, message):
    with pytest.raises(lw.MechanismError, match=f"{message}.*strict=False leaves such out"):
        lw.files.load_srdf(robot(), wrapped(inside))
    with pytest.warns(lw.MechanismWarning, match="it is left out"):
        assert not lw.files.load_srdf(robot(), wrapped(inside), strict=False).metadata.groups.get("g")


CONTRADICTIONS = {
    "of both": (
        '<joint name="j_thumb" value="9"/><joint name="j_finger" value="0.3"/>',
        0.3,
        "is at 0.7 with it, not at 9",
    ),
    "the other way": (
        '<joint name="j_finger" value="0.3"/><joint name="j_thumb" value="9"/>',
        0.3,
        "is at 0.7 with it",
    ),
    "of two": ('<joint name="j_thumb" value="0.5"/><joint name="j_toe" value="1"/>', 0.2, "'j_finger' and is at -0.2"),
}


@pytest.mark.parametrize(("joints", "finger", "message"), CONTRADICTIONS.values(), ids=CONTRADICTIONS)
def test_contradicting_values_of_mimic_joints_are_left_out_with_a_word(joints, finger, message):
    toe = '<mimic joint="j_finger" multiplier="-1"/>'
    more = f"""<link name="toe">{MASS}</link><joint name="j_toe" type="prismatic"><parent link="torso"/>
      <child link="toe"/>{toe}</joint>"""
    state = wrapped(f'<group_state name="s">{joints}</group_state>')
    with pytest.warns(lw.MechanismWarning, match=f'text:2: <joint .* in <group_state name="s"> mimics .*{message}'):
        mech = lw.files.load_srdf(robot(more), state)
    assert mech.postures["s"][mech.q_index("j_finger")] == pytest.approx(finger)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("<mujoco/>", "an SRDF file starts with <robot>"),
        (wrapped('<group name="g"><group name="g"/></group>'), "the group is a part of itself"),
        (wrapped('<group name="g"><jiont name="j_l1"/></group>'), "<jiont> is unknown inside .*did you mean 'joint'"),
        (wrapped('<group_state name="s"><joint name="j_l1" value="x"/></group_state>'), "'x', which is not a number"),
        (wrapped('<group_state name="s"><joint name="j_l1"/></group_state>'), 'needs the attribute value="..."'),
        (wrapped('<group_state name="s"><joint name="j_puck" value="1"/></group_state>'), "must be three numbers"),
        (wrapped('<group_state name="s"/><group_state name="s"/>'), "two states of this name"),
    ],
)
def test_bad_files_are_refused(text, message):
    with pytest.raises(lw.MechanismError, match=message):
        lw.files.load_srdf(robot(), text)


@pytest.mark.parametrize("floating_base", [False, True], ids=["fixed", "floating"])
@pytest.mark.parametrize(
    ("urdf", "srdf"),
    [
        ("talos_data/robots/talos_reduced.urdf", "talos_data/srdf/talos.srdf"),
        ("go1_description/urdf/go1.urdf", "go1_description/srdf/go1.srdf"),
    ],
    ids=["talos", "go1"],
)
def test_postures_of_robots_are_those_of_pinocchio(urdf, srdf, floating_base):
    pin = pytest.importorskip("pinocchio")
    robots = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    urdf, srdf = str(robots / urdf), str(robots / srdf)
    if not Path(urdf).exists():
        pytest.skip("the robots of example-robot-data are not installed")
    mech = lw.files.load_srdf(lw.load(urdf, floating_base=floating_base), srdf)
    root = [pin.JointModelFreeFlyer()] if floating_base else []
    model = pin.buildModelFromUrdf(urdf, *root)
    pin.loadReferenceConfigurations(model, srdf, False)
    assert len(mech.postures) == len(model.referenceConfigurations) > 0
    for posture, q in mech.postures.items():
        data = model.createData()
        pin.framesForwardKinematics(model, data, model.referenceConfigurations[posture])
        for link, pose in zip(mech.link_names, lw.link_poses(mech, q), strict=True):
            np.testing.assert_allclose(pose, data.oMf[model.getFrameId(link)].homogeneous, atol=1e-12)
