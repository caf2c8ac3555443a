"""What each element of a URDF file means."""

import math
import warnings
from dataclasses import replace

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.control import joint_feedback
from linkwise.mechanics.joints import Floating, Planar, Prismatic, Revolute, Spherical
from linkwise.mechanism import InertiaWarning, MechanismWarning, Mimic, OmissionWarning
from linkwise.readers import load

MASS = '<inertial><mass value="2"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'


def arm(inside_joint="", type="revolute", inside_link=MASS, more="", head='<robot name="arm">'):
    return f"""{head}
      <link name="base"/>
      <link name="hand">{inside_link}</link>
      <joint name="wrist" type="{type}"><parent link="base"/><child link="hand"/>{inside_joint}</joint>
      {more}
    </robot>"""


def body(*arguments, **options):
    return load(arm(*arguments, **options)).bodies[0]


@pytest.mark.parametrize(
    ("type", "kind"),
    [
        ("revolute", Revolute((0, 1, 0))),
        ("continuous", Revolute((0, 1, 0))),
        ("prismatic", Prismatic((0, 1, 0))),
        ("planar", Planar((0, 1, 0))),
        ("floating", Floating()),
        ("spherical", Spherical()),
        ("ball", Spherical()),
    ],
)
def test_joint_types(type, kind):
    assert body('<axis xyz="0 2 0"/>', type=type).kind == kind


def test_fixed_joints_weld():
    more = '<link name="tool"/><joint name="m" type="fixed"><parent link="hand"/><child link="tool"/></joint>'
    mechanism = load(arm(more=more))
    assert mechanism.joint_names == ("wrist",)
    assert mechanism.frame("tool").body == 0
    assert mechanism.frame("base").body == -1


@pytest.mark.parametrize("inside", ["", "<axis/>"])
def test_the_axis_is_x_unless_given(inside):
    assert body(inside).kind == Revolute((1, 0, 0))


def test_the_origin_is_optional_in_whole_and_in_part():
    assert np.array_equal(body().rotation, np.eye(3)) and not body().position.any()
    translated = body('<origin xyz="1 2 3"/>')
    assert np.array_equal(translated.rotation, np.eye(3)) and translated.position.tolist() == [1, 2, 3]
    assert body('<origin rpy="0.1 0.2 0.3"/>').position.tolist() == [0, 0, 0]


@pytest.mark.parametrize("seed", range(5))
def test_rpy_turns_about_fixed_axes(seed):
    rpy = np.random.default_rng(seed).uniform(-4, 4, 3)
    rotation = body(f'<origin rpy="{rpy[0]} {rpy[1]} {rpy[2]}"/>').rotation
    np.testing.assert_allclose(rotation, Rotation.from_euler("xyz", rpy).as_matrix(), rtol=0, atol=1e-15)


def test_quarter_turns_are_exact_and_rounded_ones_are_not_touched():
    half_pi = repr(math.pi / 2)
    assert np.array_equal(body(f'<origin rpy="{half_pi} 0 {half_pi}"/>').rotation, [[0, 0, 1], [1, 0, 0], [0, 1, 0]])
    assert body('<origin rpy="1.5708 0 0"/>').rotation[1, 1] == pytest.approx(math.cos(1.5708), rel=1e-9)
    assert body('<origin rpy="1.57079632679 0 0"/>').rotation[1, 1] == pytest.approx(math.cos(1.57079632679), rel=1e-4)


def test_inertia_is_rotated_from_the_inertial_frame():
    inertial = """<inertial><origin xyz="0.1 0.2 0.3" rpy="0.4 0.5 0.6"/><mass value="2"/>
        <inertia ixx="1" ixy="0.1" ixz="0.2" iyy="1.5" iyz="0.3" izz="2"/></inertial>"""
    hand = body(inside_link=inertial)
    rotation = Rotation.from_euler("xyz", (0.4, 0.5, 0.6)).as_matrix()
    inertia = np.array([[1, 0.1, 0.2], [0.1, 1.5, 0.3], [0.2, 0.3, 2]])
    assert hand.mass == 2 and hand.com.tolist() == [0.1, 0.2, 0.3]
    np.testing.assert_allclose(hand.inertia, rotation @ inertia @ rotation.T, rtol=0, atol=1e-15)


def test_an_orientation_by_a_quaternion():
    """As version 1.1 of the format has it; of any length."""
    rotated = body('<origin xyz="1 2 3" quat_xyzw="0.2 0.4 0.6 1.8"/>', head='<robot name="arm" version="1.1">')
    np.testing.assert_allclose(rotated.rotation, Rotation.from_quat([0.1, 0.2, 0.3, 0.9]).as_matrix(), atol=1e-15)
    assert rotated.position.tolist() == [1, 2, 3]


SLIPS = {
    "axis": ('<axes xyz="0 0 1"/>', "<joint name=\"wrist\"> has the unknown element 'axes'.*did you mean 'axis'"),
    "rpy": ('<origin ryp="1 0 0"/>', "<origin> of <joint name=\"wrist\"> has the unknown attribute 'ryp'.*'rpy'"),
    "case": ('<origin XYZ="1 0 0"/>', "the unknown attribute 'XYZ', which is left out: did you mean 'xyz'"),
    "quaternion": ('<origin quat="0 0 0 1"/>', "'quat', which is left out: did you mean 'quat_xyzw'"),
    "limits": ('<limits lower="0" upper="1"/>', "the unknown element 'limits'.*did you mean 'limit'"),
    "twice": ('<axis xyz="1 0 0"/><axis xyz="0 1 0"/>', 'wrist"> has 2 <axis>, of which the first is read; keep one'),
}


@pytest.mark.parametrize(("inside", "message"), SLIPS.values(), ids=SLIPS)
def test_slips_of_the_pen_are_reported(inside, message):
    with pytest.warns(MechanismWarning, match=message):
        load(arm(inside))


def test_a_link_with_inertia_outside_of_inertial():
    with pytest.warns(MechanismWarning, match="link name=\"hand\"> has the unknown element 'inertia'.*'inertial'"):
        load(arm(inside_link='<inertia ixx="1" iyy="1" izz="1"/>'))


def test_what_other_programs_say_of_limits_is_no_slip():
    inside = '<limit effort="1" velocity="1" lower="0" upper="1" command_effort="2" gear_velocity="3"/>'
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", OmissionWarning)
        load(arm(inside + '<dynamics damping="1" D="2" mu_viscous="3"/><hardwareInterface/>'))


def test_missing_inertia_is_massless():
    with pytest.warns(InertiaWarning, match="nothing beyond these joints resists their motion: 'wrist'"):
        hand = load(arm(inside_link="")).bodies[0]
    assert hand.mass == 0 and not hand.inertia.any()
    with pytest.warns(InertiaWarning):
        hand = load(arm(inside_link='<inertial><mass value="3"/></inertial>')).bodies[0]
    assert hand.mass == 3 and not hand.inertia.any()


def test_unphysical_inertia_is_kept_and_reported_with_file_and_link(tmp_path):
    file = tmp_path / "odd.urdf"
    file.write_text(arm(inside_link='<inertial><mass value="0"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'))
    with pytest.warns(InertiaWarning, match=r"odd.urdf: link 'hand': it has inertia but no mass"):
        hand = load(file).bodies[0]
    assert hand.mass == 0 and hand.inertia.tolist() == np.eye(3).tolist()


def test_limits():
    limit = '<limit lower="-1" upper="2" velocity="3" effort="4"/>'
    for type in ("revolute", "prismatic"):
        limits = body(limit, type=type).limits
        assert (limits.lower, limits.upper, limits.velocity, limits.effort) == ((-1,), (2,), (3,), (4,))
    endless = body(limit, type="continuous").limits
    assert (endless.lower, endless.upper, endless.velocity) == ((-math.inf,), (math.inf,), (3,))
    assert body().limits.upper == (math.inf,)
    # The format: bounds that a <limit> leaves out are zero.
    assert body('<limit effort="inf" velocity="1"/>').limits.upper == (0,)
    assert body('<limit effort="inf" velocity="1"/>').limits.effort == (math.inf,)


def test_dynamics():
    assert body('<dynamics damping="0.5" friction="0.25"/>').damping == (0.5,)
    assert body('<dynamics damping="0.5" friction="0.25"/>').friction == (0.25,)
    assert body("<dynamics/>").damping == (0,)
    assert body('<dynamics damping="0.5"/>', type="planar").damping == (0.5, 0.5, 0.5)


def test_mimic():
    finger = f"""<link name="finger">{MASS}</link><joint name="grip" type="prismatic"><parent link="hand"/>
        <child link="finger"/><mimic joint="wrist" multiplier="-2" offset="0.5"/></joint>"""
    mechanism = load(arm(more=finger))
    assert (mechanism.nv, mechanism.n_links) == (1, 2)
    assert mechanism.bodies[1].mimic == Mimic("wrist", -2, 0.5)
    assert load(arm(more=finger.replace('multiplier="-2" offset="0.5"', ""))).bodies[1].mimic == Mimic("wrist", 1, 0)
    fixed = load(arm(more=finger.replace("prismatic", "fixed")))
    assert (fixed.nv, fixed.n_links) == (1, 1)


def test_a_floating_base_hangs_on_a_joint_of_its_own():
    mechanism = load(arm(), floating_base=True)
    assert mechanism.joint_names == ("floating_base", "wrist")
    assert mechanism.link_names == ("base", "hand")
    assert (mechanism.nq, mechanism.nv) == (8, 7)


def test_joint_order_is_that_of_the_file_with_parents_first():
    links = "".join(f'<link name="l{i}">{MASS}</link>' for i in range(4))
    joints = "".join(
        f'<joint name="{child}" type="revolute"><parent link="{parent}"/><child link="{child}"/></joint>'
        for parent, child in (("l2", "l3"), ("l0", "l1"), ("l0", "l2"))
    )
    assert load(f"<robot name='r'>{links}{joints}</robot>").joint_names == ("l2", "l3", "l1")


def test_what_other_programs_put_there_is_skipped():
    more = """<gazebo reference="hand"><material>Red</material><joint name="x"/></gazebo>
      <sensor:imu name="s"/><!-- ${x} --><?hint?>"""
    assert load(arm(inside_joint="<safety_controller k_velocity='x'/>", more=more)) == load(arm())
    assert load(arm(head='<robot name="arm" xmlns="http://example.org" xmlns:xacro="http://x">')) == load(arm())


def test_white_space_in_numbers_and_names():
    assert body('<origin xyz=" 1\n\t2   3e0 "/>').position.tolist() == [1, 2, 3]
    assert body("<axis xyz='+0 -0.0 .5'/>").kind == Revolute((0, 0, 1))
    assert load(arm().replace('name="hand"', 'name=" hand "')).link_names == ("hand",)


def test_a_root_called_ground_is_the_ground():
    text = arm().replace('"base"', '"ground"')
    assert tuple(load(text).frames) == ("ground", "hand")
    with pytest.warns(MechanismWarning, match="is read as 'ground_link'") as caught:
        assert load(text, floating_base=True).link_names == ("ground_link", "hand")
    assert {warning.filename for warning in caught} == {__file__}, "warnings point at the caller of load"


@pytest.mark.smoke
def test_text_path_string_and_bytes_give_the_same(tmp_path):
    file = tmp_path / "arm.urdf"
    file.write_text(arm())
    expected = load(arm())
    assert load(file) == load(str(file)) == load("\ufeff\n  " + arm()) == expected
    file.write_text("<?xml version='1.0' encoding='utf-16'?>" + arm(), encoding="utf-16")
    assert load(file) == expected
    file.write_text(arm(), encoding="utf-8-sig")
    assert load(file) == expected


def test_names_beyond_ascii():
    text = arm().replace("wrist", "poignée")
    assert load(text).joint_names == ("poignée",)
    assert load("<?xml version='1.0' encoding='latin-1'?>" + text).joint_names == ("poignée",)


def test_gravity_and_name():
    mechanism = load(arm(), gravity=(0, 0, -1.62), name="lunar")
    assert mechanism.name == "lunar" and mechanism.gravity.tolist() == [0, 0, -1.62]
    assert load(arm()).name == "arm"
    assert load(arm(head="<robot>")).name == "robot"


# -- motors -------------------------------------------------------------------------------------------

ARM = ("shoulder", "elbow", "wrist")


def motors(*parts):
    """Three joints in a row, the last mimics the first, and a weld."""
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    links = "".join(f'<link name="l{i}">{mass}</link>' for i in range(5))
    inside = {2: '<mimic joint="shoulder" multiplier="2"/>'}
    joints = "".join(
        f"""<joint name="{name}" type="{"fixed" if name == "weld" else "continuous"}"><parent link="l{i}"/>
        <child link="l{i + 1}"/>{inside.get(i, "")}</joint>"""
        for i, name in enumerate((*ARM, "weld"))
    )
    return f"<robot name='r'>{links}{joints}{''.join(parts)}</robot>"


def transmission(joint, reduction="", interface="EffortJointInterface", name="t"):
    return f"""<transmission name="{name}"><type>transmission_interface/SimpleTransmission</type>
      <joint name="{joint}"><hardwareInterface>hardware_interface/{interface}</hardwareInterface></joint>
      <actuator name="motor">{reduction and f"<mechanicalReduction>{reduction}</mechanicalReduction>"}</actuator>
      </transmission>"""


ROS2 = """<ros2_control name="c" type="system">
  <joint name="elbow"><command_interface name="effort"/><state_interface name="position"/></joint>
  <joint name="shoulder"><state_interface name="position"/></joint>
  <transmission name="t"><actuator name="a" role="a"/><joint name="elbow" role="j">
    <mechanical_reduction>100</mechanical_reduction></joint></transmission></ros2_control>"""
OLD = """<transmission name="old" type="pr2_mechanism_model/SimpleTransmission">
  <actuator name="a"/><joint name="elbow"/><mechanicalReduction>-28.6</mechanicalReduction></transmission>"""
WRIST = """<transmission name="w" type="pr2_mechanism_model/WristTransmission"><rightActuator name="r"/>
  <flexJoint mechanicalReduction="-36" name="elbow"/><rollJoint mechanicalReduction="-37" name="shoulder"/>
  <passive_joint name="nothing"/><use_simulated_gripper_joint/></transmission>"""
MOTORS = {
    "none": ((), None, {}, ()),
    "simple": ((transmission("elbow", 50),), ("elbow",), {"motor": ("elbow", 50.0)}, ()),
    "in the order of the file": (
        (transmission("elbow"), transmission("shoulder"), transmission("elbow")),
        ("elbow", "shoulder"),
        {"motor": ("elbow", 1.0), "shoulder": ("shoulder", 1.0)},
        (),
    ),
    "at a mimic joint": ((transmission("wrist", 3),), ("shoulder",), {"motor": ("wrist", 3.0)}, ()),
    "at a weld": ((transmission("weld"),), None, {}, ("(joint weld)",)),
    "measured only": (
        (transmission("elbow", interface="JointStateInterface"),),
        None,
        {},
        ('<transmission name="t">',),
    ),
    "of long ago": ((OLD,), ("elbow",), {"a": ("elbow", -28.6)}, ()),
    "several at once": ((WRIST,), ("elbow", "shoulder"), {}, ("reduction -36, joint shoulder, reduction -37)",)),
    "ros2_control": ((ROS2,), ("elbow",), {"elbow": ("elbow", 100.0)}, ()),
}


@pytest.mark.parametrize(("parts", "joints", "driven", "places"), MOTORS.values(), ids=MOTORS)
@pytest.mark.filterwarnings("ignore::linkwise.files.OmissionWarning")
def test_joints_of_transmissions_have_motors(parts, joints, driven, places):
    mech = load(motors(*parts))
    assert mech.metadata.actuated_joints == joints and replace(mech, elements=()) == load(motors())
    assert {one.name: (one.target, one.gear[0]) for one in mech.forces.actuators} == driven
    found = [place for note in mech.notes for place in note.where]
    assert len(found) == len(places) and all(map(str.endswith, found, places))
    assert all("does not act" in note.advice for note in mech.notes)


def test_motors_keep_to_effort_and_velocity_limits():
    """Torque times reduction, cut off at the effort limit, and none that drives a joint beyond its velocity limit."""
    mech = load(chain_of_motors(transmission("j0", 50)))  # 10 N m, 1 rad/s
    still, fast = np.zeros(5), np.array([0.95, 0.0, 0.0, 0.0, 0.0])
    assert lw.forces.joint_forces(mech, still, still, ctrl=[0.1])[0] == pytest.approx(5.0)
    assert lw.forces.joint_forces(mech, still, still, ctrl=[1.0])[0] == 10.0
    assert lw.forces.joint_forces(mech, still, still, ctrl=[-1.0])[0] == -10.0
    assert mech.forces.active["actuators"] == mech.forces.actuator_names and len(mech.forces.actuator_names) == 1
    assert lw.forces.joint_forces(mech.with_limits(j0=lw.Limits(effort=3.0)), still, still, ctrl=[1.0])[0] == 3.0
    assert lw.forces.joint_forces(mech.with_limits(j0=lw.Limits()), still, still, ctrl=[1.0])[0] == 50.0
    assert lw.forces.joint_forces(mech, still, fast, ctrl=[1.0])[0] == pytest.approx(5.0)
    assert lw.forces.joint_forces(mech, still, 2.0 * fast, ctrl=[1.0])[0] == 0.0
    assert lw.forces.joint_forces(mech, still, 2.0 * fast, ctrl=[-1.0])[0] == -10.0  # it brakes
    motion = lw.simulate(
        mech.with_gravity((0, 0, 0)), still, None, 20.0, ctrl=[1.0], settings=lw.motion.Settings(rtol=1e-6, atol=1e-6)
    )
    assert motion.v[-1, 0] == pytest.approx(1.0, abs=1e-3) and motion.v[:, 0].max() < 1.0 + 1e-6


def chain_of_motors(*parts):
    """Five hinges in a row with effort limits, the last without force."""
    mass = '<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>'
    links = "".join(f'<link name="l{i}">{mass}</link>' for i in range(6))
    joints = "".join(
        f"""<joint name="j{i}" type="continuous"><parent link="l{i}"/><child link="l{i + 1}"/>
        <limit effort="{0 if i == 4 else 10}" velocity="1"/></joint>"""
        for i in range(5)
    )
    return f"<robot name='r'>{links}{joints}{''.join(parts)}</robot>"


@pytest.mark.filterwarnings("ignore::linkwise.files.OmissionWarning")
def test_few_transmissions_are_no_list_of_motors():
    measured = transmission("j3", interface="JointStateInterface")
    one, two = transmission("j0"), transmission("j1")
    assert load(chain_of_motors(one, two)).metadata.actuated_joints == (
        "j0",
        "j1",
    )  # half of those that can give a force
    assert load(chain_of_motors(one, measured)).metadata.actuated_joints is None
    assert load(chain_of_motors(one, measured, measured.replace("j3", "j2"))).metadata.actuated_joints == ("j0",)
    mech = load(chain_of_motors(one))
    assert mech.metadata.actuated_joints is None
    assert joint_feedback(mech, mech.initial).actuated_joints == ("j0", "j1", "j2", "j3", "j4")
    assert mech.forces.actuator_names == ("motor",)


@pytest.mark.filterwarnings("ignore::linkwise.files.OmissionWarning")
def test_a_transmission_of_a_joint_that_is_not_there_is_reported():
    with pytest.warns(MechanismWarning, match="names the joint 'elbov', which does not exist: fix the name or remove"):
        assert load(motors(transmission("elbov"))).metadata.actuated_joints is None


def test_a_base_that_drives_on_a_floor():
    """By the joint that is given: the mechanism of a file that has the joint itself."""
    arm = """<link name="base"><inertial><mass value="3"/><inertia ixx="1" iyy="2" izz="3" ixy="0" ixz="0" iyz="0"/>
      </inertial></link><link name="l"><inertial><origin xyz="0 0.1 0.3"/><mass value="1"/><inertia ixx="1" iyy="1"
      izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link><joint name="j" type="continuous"><parent link="base"/>
      <child link="l"/><origin xyz="0 0 0.5"/><axis xyz="0 1 0"/></joint>"""
    floor = """<link name="floor"/><joint name="drive" type="planar"><parent link="floor"/><child link="base"/>
      <axis xyz="0 0 1"/></joint>"""
    given, written = (
        lw.load(f"<robot name='r'>{arm}</robot>", lw.Planar()),
        lw.load(f"<robot name='r'>{floor}{arm}</robot>"),
    )
    assert given.joint_names == ("floating_base", "j") and (given.nq, given.nv) == (4, 4)
    q, v = lw.random_state(written, np.random.default_rng(0))
    np.testing.assert_allclose(lw.forward_dynamics(given, q, v, v), lw.forward_dynamics(written, q, v, v), rtol=1e-12)
    assert lw.load(f"<robot name='r'>{arm}</robot>", lw.Floating()).nv == 7
    assert lw.load(f"<robot name='r'>{arm}</robot>", lw.Fixed()).nv == 1
    body = "<mujoco><worldbody><body name='b' pos='1 2 3' euler='0 0 90'><geom size='0.1'/></body></worldbody></mujoco>"
    slides = lw.load(body, lw.Prismatic((1, 0, 0)))
    np.testing.assert_allclose(lw.frame_pose(slides, [0.5], "b")[:3, 3], (1.0, 2.5, 3.0), atol=1e-12)
    assert slides.initial == [0.0]
    motor = """<transmission name="t"><type>transmission_interface/SimpleTransmission</type><joint name="j">
      <hardwareInterface>EffortJointInterface</hardwareInterface></joint><actuator name="m"/></transmission>"""
    driven = lw.load(f"<robot name='r'>{arm}{motor}</robot>", lw.Planar())
    assert driven.metadata.actuated_joints == ("floating_base", "j")
    np.testing.assert_allclose(
        lw.control.computed_torque(driven, np.zeros(4))(0.0, np.zeros(4), np.zeros(4)).shape, (4,)
    )


@pytest.mark.parametrize("base", ["planar", lw.Planar, "False", 1], ids=str)
def test_a_base_that_is_neither_free_nor_fixed_is_refused(base):
    with pytest.raises(
        lw.MechanismError, match=r"floating_base is True, False or a joint such as linkwise\.Planar\(\)"
    ):
        lw.load("<robot name='c'><link name='b'/></robot>", floating_base=base)
