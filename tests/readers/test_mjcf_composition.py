"""Models made of other models and of copies: ``<attach>`` and ``<replicate>``, with MuJoCo as the judge."""

import pytest

from linkwise.mechanism import MechanismError, MechanismWarning, MissingConstraintWarning
from linkwise.readers import load
from tests.readers.mujoco_oracle import Pair

INERTIAL = '<inertial pos="0.1 -0.2 0.05" mass="1.5" diaginertia="0.03 0.02 0.04"/>'
PAIR = f"""<body name="a"><joint name="j"/>{INERTIAL}<body name="b" pos="0 1 0"><joint name="k" axis="1 0 0"/>{INERTIAL}
  </body></body>"""

GRIPPER = """<mujoco model="gripper">
  <compiler angle="radian" eulerseq="ZYX"/>
  <default><joint armature="0.5" damping="0.1"/><geom density="300" euler="0.1 0.2 0"/>
    <default class="long"><joint axis="1 0 0" ref="0.1"/><geom type="capsule" size="0.1 0.2"/></default></default>
  <asset><mesh name="wedge" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
  <worldbody><geom size="1" pos="9 9 9"/>
    <body name="palm" pos="1 2 3" euler="0.1 0.2 0.3"><geom type="mesh" mesh="wedge"/><joint name="wrist" type="ball"/>
      <frame euler="0.2 0.3 0.4" childclass="long">
        <body name="finger" pos="0 0 1" euler="0.3 0 0">
          <joint name="j" range="-1 1" ref="0.2"/><geom size="0.1"/><geom type="box" size="0.1 0.2 0.3" quat="1 2 3 4"/>
          <site name="s" pos="1 0 0"/>
          <body name="tip" pos="0 1 0"><joint name="k"/><geom type="box" size="0.1 0.2 0.3"/></body>
        </body>
      </frame>
    </body>
    <replicate count="2" offset="0 0 1" euler="0.2 0 0.1">
      <body name="r" pos="3 0 0"><joint name="slide" type="slide"/><geom size="0.1"/></body>
    </replicate>
  </worldbody>
  <equality><joint joint1="k" joint2="j" polycoef="0.1 2"/></equality>
</mujoco>"""


@pytest.fixture
def attached(tmp_path):
    """A function that writes a model around the gripper, and gives its file."""
    (tmp_path / "parts").mkdir()
    (tmp_path / "parts" / "gripper.xml").write_text(GRIPPER)

    def write(bodies, head=""):
        file = tmp_path / "robot.xml"
        file.write_text(
            f"""<mujoco>{head}<default><joint armature="3" axis="0 1 0" damping="3"/>
            <geom type="ellipsoid" size="1 2 3"/></default>
            <asset><model name="gripper" file="parts/gripper.xml"/></asset><worldbody>{bodies}</worldbody></mujoco>"""
        )
        return file

    return write


@pytest.mark.parametrize("wanted", ['body="finger"', 'body="palm"', ""], ids=["inner", "top", "world"])
@pytest.mark.parametrize("head", ["", '<compiler angle="radian" autolimits="false"/>'], ids=["degree", "radian"])
def test_attached_models(attached, wanted, head):
    """Defaults, angles and folders are the guest's, whatever those of the host are; names have the prefix."""
    attach = f'<attach model="gripper" {wanted} prefix="left_"/>'
    host = f'<body name="h" pos="5 0 0"><joint/><geom type="sphere" size="0.2"/>{attach}</body>'
    pair = Pair(attached(host, head))
    pair.assert_same_dynamics()
    mech = pair.mech
    mimic_joint = mech.bodies[mech.body_index("left_k")]
    assert mimic_joint.mimic is not None and mimic_joint.mimic.joint == "left_j"
    limits, damping = mech.bodies[mech.body_index("left_j")].limits, mech.bodies[mech.body_index("left_j")].damping
    assert (limits.lower, limits.upper, damping) == (pytest.approx((-1.0,)), pytest.approx((1.0,)), (0.1,))


def test_attached_twice_and_replicated(attached):
    one, other = (f'<attach model="gripper" body="finger" prefix="{side}_"/>' for side in ("left", "right"))
    pair = Pair(attached(f'{one}<replicate count="2" offset="1 0 0"><frame euler="0 0 90">{other}</frame></replicate>'))
    pair.assert_same_dynamics()
    assert [body.joint for body in pair.mech.bodies if body.mimic] == ["left_k", "right_k0", "right_k1"]


def test_a_model_without_a_name_has_that_in_its_file(attached):
    file = attached('<attach model="gripper" body="tip" prefix="x_"/>')
    file.write_text(file.read_text().replace('<model name="gripper"', "<model"))
    with pytest.warns(MechanismWarning, match="<joint> is left out: it leads to what is not attached"):
        assert load(file).joint_names == ("x_k",)


BAD = {
    "no such body": (
        '<attach model="gripper" body="plam" prefix="x"/>',
        "could not find body 'plam' in model asset 'gripper'",
    ),
    "no such model": ('<attach model="griper" prefix="x"/>', "could not find model 'griper'"),
}


@pytest.mark.parametrize(("attach", "message"), BAD.values(), ids=BAD)
def test_refused_attachments(attached, attach, message):
    with pytest.raises(MechanismError, match=message):
        load(attached(attach))


def test_attached_models_keep_the_bounds_of_their_compilers(attached):
    """Masses below a bound of the host, and of the guest."""
    host = (
        '<body name="h"><joint/><geom type="sphere" size="0.01"/><attach model="gripper" body="tip" prefix="x"/></body>'
    )
    for bound in ("0.1", "50"):
        Pair(attached(host, f'<compiler boundmass="{bound}" boundinertia="0.01"/>')).assert_same_dynamics()


def test_models_that_are_attached_to_themselves(attached, tmp_path):
    inner = '<asset><model name="gripper" file="gripper.xml"/></asset><worldbody><attach model="gripper" prefix="y"/>'
    (tmp_path / "parts" / "gripper.xml").write_text(GRIPPER.replace("<worldbody>", inner))
    with pytest.raises(MechanismError, match="gripper.xml is attached to itself"):
        load(attached('<attach model="gripper" prefix="x"/>'))


def test_only_mjcf_is_attached(attached, tmp_path):
    (tmp_path / "parts" / "gripper.xml").write_text('<robot name="r"><link name="a"/></robot>')
    with pytest.raises(MechanismError, match="gripper.xml starts with <robot>; only MJCF"):
        load(attached('<attach model="gripper" prefix="x"/>'))


def test_ties_inside_of_copies_are_copied():
    text = f"""<mujoco><worldbody><replicate count="3" offset="0 0 1" euler="0 0 20">{PAIR}</replicate></worldbody>
      <equality><joint joint1="k" joint2="j"/><connect name="c" body1="b" anchor="0 0 0"/></equality></mujoco>"""
    pair = Pair(text)
    pair.assert_same_dynamics()
    assert [body.joint for body in pair.mech.bodies if body.mimic] == ["k0", "k1", "k2"]
    assert [loop.name for loop in pair.mech.loops] == ["c0", "c1", "c2"]


def test_ties_that_lead_out_of_copies_are_reported():
    outer = f'<body name="o"><joint name="oj"/>{INERTIAL}</body>'
    text = f"""<mujoco><worldbody>{outer}<replicate count="2" offset="0 0 1">{PAIR}</replicate></worldbody>
      <equality><joint joint1="k" joint2="oj"/></equality></mujoco>"""
    with pytest.warns(MissingConstraintWarning, match="comes apart: 1 equality"):
        pair = Pair(text)
    assert "it ties what is replicated to what is not" in pair.mech.notes[0].advice
    assert pair.model.neq == 0 and not any(body.mimic for body in pair.mech.bodies)
