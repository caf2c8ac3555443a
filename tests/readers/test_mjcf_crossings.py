"""Features of MJCF that meet: forces and inertias against MuJoCo, or a note that names the difference."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.peers.mujoco_forces import Beside
from tests.readers.mujoco_oracle import Pair

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
    (record,) = pair.mech.forces.actuators
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
    with pytest.warns(lw.files.OmissionWarning, match="1 free joint with"):
        mech = lw.load(text)
    (note,) = (note for note in mech.notes if note.what.startswith("free joint with"))
    assert '<joint name="f">' in note.where[0] and "forces differ" in note.advice


def test_damping_of_a_free_joint_is_that_of_mujoco(tmp_path):
    text = """<mujoco><worldbody><body pos="1 2 3" euler="10 20 30"><joint type="free" name="f" damping="0.4"/>
      <geom type="box" size="0.1 0.2 0.3" contype="0"/></body></worldbody></mujoco>"""
    pair = beside(tmp_path, text)
    assert pair.differences()["passive"] < 1e-12
    assert not pair.mech.notes


def prism(corners: int, seed: int) -> str:
    """An OBJ file of a prism that is not convex; its two ends are polygons."""
    rng = np.random.default_rng(seed)
    angles = np.sort(rng.uniform(0.0, 2.0 * np.pi, corners))
    radii = 1.0 + 0.3 * rng.uniform(size=corners) * (seed % 2)
    ends = [np.stack([radii * np.cos(angles), radii * np.sin(angles), 0 * angles + z], axis=1) for z in (-0.5, 0.7)]
    vertices = "".join(f"v {x:.6f} {y:.6f} {z:.6f}\n" for x, y, z in np.concatenate(ends) + 0.3 * rng.normal(size=3))
    ring = np.arange(1, corners + 1)
    faces = [ring[::-1], ring + corners]
    faces += [[k + 1, (k + 1) % corners + 1, (k + 1) % corners + 1 + corners, k + 1 + corners] for k in range(corners)]
    return vertices + "".join(f"f {' '.join(map(str, face))}\n" for face in faces)


@pytest.mark.parametrize("corners", [3, 4, 5, 12, 72, 100, 101, 215])
@pytest.mark.parametrize("how", ["legacy", "exact", "convex", "shell"])
def test_polygons_of_meshes_weigh_as_in_mujoco(corners, how, tmp_path):
    for seed in range(3):
        name = f"prism_{corners}_{how}_{seed}.obj"  # MuJoCo keeps meshes by the names of their files
        (tmp_path / name).write_text(prism(corners, seed))
        text = f"""<mujoco><asset><mesh name="m" file="{name}" inertia="{how}"/></asset><worldbody><body name="b">
          <freejoint/><geom type="mesh" mesh="m" contype="0"/></body></worldbody></mujoco>"""
        pair = beside(tmp_path, text)
        (body,) = pair.mech.bodies
        expected = Pair.body_inertia(pair, 1)  # type: ignore[arg-type]
        assert body.mass == pytest.approx(pair.model.body_mass[1], rel=1e-12)
        moments = np.sort(pair.model.body_inertia[1])
        np.testing.assert_allclose(np.linalg.eigvalsh(body.inertia), moments, rtol=1e-9)
        # MuJoCo's principal axes are those of an iteration.
        np.testing.assert_allclose(body.inertia, expected, rtol=0, atol=1e-7 * moments.max())


def test_polygons_that_are_left_out_are_named(tmp_path):
    (tmp_path / "prism.obj").write_text(prism(101, 0))
    text = """<mujoco><asset><mesh name="m" file="prism.obj"/></asset><worldbody><body><freejoint/>
      <geom type="mesh" mesh="m" contype="0"/></body></worldbody></mujoco>"""
    (tmp_path / "model.xml").write_text(text)
    with pytest.warns(lw.MechanismWarning, match='<mesh name="m"> has polygons of more than 100 corners'):
        lw.load(tmp_path / "model.xml")


GUEST = """<mujoco><compiler angle="radian" autolimits="{autolimits}"/><default>
  <default class="servos"><general gainprm="40" forcerange="-9 9" forcelimited="true"/></default>
  <default class="slow"><position kp="3" timeconst="0.2"/></default></default>
  <worldbody><body name="a"><joint name="j" axis="0 1 0" range="-1 1" limited="true"/>
  <geom name="g" size="0.1" pos="0.2 0 0" contype="0"/><site name="s" pos="0.1 0 0"/>
  <body name="b" pos="0.4 0 0"><joint name="k" axis="0 1 0.2" range="0 0" limited="false"/>
  <geom name="h" size="0.08" pos="0.1 0 0" contype="0"/></body></body></worldbody>
  <tendon><fixed name="t" stiffness="3" damping="0.2" springlength="0.1"><joint joint="j" coef="0.5"/>
  <joint joint="k" coef="-2"/></fixed></tendon>
  <contact><exclude body1="a" body2="b"/></contact>
  <actuator><position class="servos" joint="j"/><velocity class="servos" tendon="t" gear="2"/>
  <general class="slow" joint="k"/><motor site="s" gear="1 0 2 0 0 0"/><damper joint="k" kv="2" ctrlrange="0 1"/>
  <general joint="j" gainprm="1 2 3 4 5 6 7 8 9 10" biasprm="1 2 3 0 0 0 0 0 0 0" biastype="affine"/>
  <intvelocity joint="k" kp="2" actrange="-0.3 0.3"/></actuator></mujoco>"""


@pytest.mark.parametrize("autolimits", ["true", "false"])
def test_actuators_and_tendons_of_attached_models_act_as_in_mujoco(autolimits, tmp_path):
    guest = GUEST.format(autolimits=autolimits)
    if autolimits == "false":  # where MuJoCo asks for the switch
        guest = guest.replace('<intvelocity joint="k" kp="2" actrange="-0.3 0.3"/>', "")
    (tmp_path / "guest.xml").write_text(guest)
    host = """<mujoco><asset><model name="guest" file="guest.xml"/></asset><worldbody><body name="base" pos="0 0 1">
      <joint name="turn"/><geom size="0.1" contype="0"/><attach model="guest" body="a" prefix="left_"/></body>
      <frame pos="0 1 0" euler="0 0 30"><attach model="guest" body="a" prefix="right_"/></frame></worldbody></mujoco>"""
    pair = beside(tmp_path, host)
    assert pair.model.nu == pair.mech.n_ctrl > 10
    assert len(pair.mech.forces.tendons) == 2
    assert max(pair.differences(states=5).values()) < 1e-9


def test_numbers_of_general_actuators(tmp_path):
    """Ten numbers are read where a file gives them; those of a class stay where the element gives fewer."""
    text = f"""<mujoco><default><general gaintype="affine" gainprm="1 2 3 0 0 0 0 0 0 1"/></default>
      <worldbody>{ARMS}</worldbody><actuator><general joint="j" gainprm="5" biastype="affine"
      biasprm="0.1 0.2 0.3 0 0 0 0 0 0 7" dyntype="filter" dynprm="0.5 1 2 3 4 5 6 7 8 9"/></actuator></mujoco>"""
    assert max(beside(tmp_path, text).differences(states=5).values()) < 1e-9


def test_damping_of_actuators_adds_to_that_of_time_constants(tmp_path):
    text = """<mujoco><worldbody><body><joint name="j" axis="0 1 0" springdamper="0.3 0.7" damping="5"/>
      <geom size="0.1" pos="0.2 0 0" contype="0"/></body></worldbody><actuator>
      <motor joint="j" gear="2" damping="0.3" armature="0.1"/><position joint="j" damping="0.2" kp="2"/></actuator>
      </mujoco>"""
    pair = beside(tmp_path, text)
    assert not pair.mech.notes
    assert max(pair.differences().values()) < 1e-12


def test_bounds_of_joints_that_leave_out_actuators_at_sites_are_named():
    arms = ARMS.replace('name="j"', 'name="j" actuatorfrcrange="-1 1"')
    text = f"""<mujoco><worldbody>{arms}</worldbody><actuator><motor site="s" gear="1 2 3 0 0 0"/>
      <motor joint="j"/></actuator></mujoco>"""
    with pytest.warns(lw.files.OmissionWarning, match="1 joint with actuatorfrcrange and actuators at sites"):
        lw.load(text)
