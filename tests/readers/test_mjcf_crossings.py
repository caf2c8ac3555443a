"""Features of MJCF that meet: forces, inertias and accelerations against MuJoCo, or a note that names the difference."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.peers.mujoco_forces import Beside

ARMS = """<body name="a"><joint name="j" axis="0 1 0"/><geom size="0.1" pos="0.3 0 0" contype="0"/>
  <body name="b" pos="0.6 0 0"><joint name="k" axis="0 1 0"/><geom size="0.08" pos="0.2 0 0.1" contype="0"/>
  <site name="s" pos="0.2 0.1 0" euler="20 30 40"/>
  <body name="c" pos="0.3 0 0"><joint name="ball" type="ball"/><geom size="0.05 0.1" type="capsule" pos="0 0.1 0"
  contype="0"/></body></body></body>
  <body name="f" pos="0 1 1" euler="10 20 30"><freejoint name="free"/><geom type="box" size="0.1 0.2 0.3"
  pos="0.1 0 0" contype="0"/></body>"""
TENDON = '<tendon><fixed name="t"><joint joint="j" coef="0.5"/><joint joint="k" coef="-1.5"/></fixed></tendon>'
TIE = '<equality><joint joint1="k" joint2="j" polycoef="0.1 2 0 0 0"/></equality>'


def beside(tmp_path, text: str) -> Beside:
    (tmp_path / "model.xml").write_text(text)
    return Beside(tmp_path / "model.xml")


RATIOS = {
    "joint": 'joint="j"',
    "other joint": 'joint="k" gear="3"',
    "tendon": 'tendon="t" gear="2"',
    "site": 'site="s" gear="1 2 3 0.1 0.2 0.3"',
    "ball": 'joint="ball" gear="1 2 -1"',
    "ball in its parent": 'jointinparent="ball" gear="1 2 -1"',
    "free": 'joint="free" gear="1 2 3 4 5 6"',
    "free in its parent": 'jointinparent="free" gear="0 0 1 0 2 0"',
}


@pytest.mark.parametrize("tie", ["", TIE], ids=["free", "mimicked"])
@pytest.mark.parametrize("driven", RATIOS.values(), ids=RATIOS)
def test_damping_ratios_are_those_of_mujoco(driven, tie, tmp_path):
    """The inertia that an actuator moves is that of MuJoCo's mass matrix, of which equalities are no part."""
    actuator = f'<actuator><position {driven} kp="7" dampratio="0.6"/></actuator>'
    pair = beside(tmp_path, f"<mujoco><worldbody>{ARMS}</worldbody>{TENDON}{tie}{actuator}</mujoco>")
    (record,) = pair.mech.actuators
    assert record.bias[2] == pytest.approx(pair.model.actuator_biasprm[0, 2], rel=1e-9)
    assert pair.differences()["actuators"] < 1e-9


@pytest.mark.parametrize("tie", ["", TIE], ids=["free", "mimicked"])
def test_springs_by_time_constants_are_those_of_mujoco(tie, tmp_path):
    arms = ARMS.replace('axis="0 1 0"/>', 'axis="0 1 0" springdamper="0.3 0.7"/>')
    arms = arms.replace('type="ball"/>', 'type="ball" springdamper="0.2 1.1"/>')
    pair = beside(tmp_path, f"<mujoco><worldbody>{arms}</worldbody>{tie}</mujoco>")
    for body in pair.mech.bodies[:3]:
        at = pair.model.joint(body.joint)
        assert body.stiffness[0] == pytest.approx(at.stiffness[0], rel=1e-9)
        assert body.damping[0] == pytest.approx(at.damping.ravel()[0], rel=1e-9)


@pytest.mark.parametrize("word", ['springdamper="0.3 0.7"', 'stiffness="2"', 'armature="0.1"', 'frictionloss="0.1"'])
def test_free_joints_whose_forces_differ_are_named(word):
    text = f"""<mujoco><worldbody><body><joint type="free" name="f" {word}/><geom size="0.1" contype="0"/></body>
      </worldbody></mujoco>"""
    with pytest.warns(lw.OmissionWarning, match="1 free joint with"):
        mech = lw.load(text)
    (note,) = (note for note in mech.notes if note.what.startswith("free joint with"))
    assert '<joint name="f">' in note.where[0] and "forces differ" in note.advice


def test_damping_of_a_free_joint_is_that_of_mujoco(tmp_path):
    text = """<mujoco><worldbody><body pos="1 2 3" euler="10 20 30"><joint type="free" name="f" damping="0.4"/>
      <geom type="box" size="0.1 0.2 0.3" contype="0"/></body></worldbody></mujoco>"""
    pair = beside(tmp_path, text)
    assert pair.differences()["passive"] < 1e-12
    assert not pair.mech.notes
