"""SDF: poses relative to frames, axes, masses, loops; against the same mechanism made by the builder."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from benchmarks.speed.peers.descriptions import sdf_of
from tests.writers.round_trip import assert_same_dynamics


def inertial(mass: float, x: float) -> str:
    moments = "<ixx>0.02</ixx><ixy>0.001</ixy><iyy>0.03</iyy><izz>0.04</izz>"
    return f"<inertial><pose>{x} 0.01 0 0 0 0.3</pose><mass>{mass}</mass><inertia>{moments}</inertia></inertial>"


#: A four-bar whose rocker is held by two joints; the crank's frame is not at its joint.
FOUR_BAR = f"""<sdf version="1.10"><world name="w"><gravity>0 -9.81 0</gravity><model name="bars">
  <pose>0.5 0 0 0 0 0.2</pose>
  <link name="crank"><pose>0.1 0 0 0 0 0</pose>{inertial(1.0, 0.1)}</link>
  <link name="coupler"><pose relative_to="tip">0 0 0 0 0 0</pose>{inertial(2.0, 0.4)}</link>
  <link name="rocker"><pose relative_to="foot">0 0 0 0 0 0</pose>{inertial(1.5, 0.2)}
    <collision name="c"><geometry><box><size>1 1 1</size></box></geometry></collision></link>
  <frame name="tip" attached_to="crank"><pose>0.1 0.3 0 0 0 0.5</pose></frame>
  <frame name="foot"><pose degrees="true">1 0 0 0 0 90</pose></frame>
  <joint name="a" type="revolute"><parent>world</parent><child>crank</child><pose>-0.1 0 0 0 0 0</pose>
    <axis><xyz>0 0 1</xyz><limit><lower>-2</lower><upper>1e308</upper><effort>-1</effort><velocity>3</velocity></limit>
    <dynamics><damping>0.2</damping><friction>0.1</friction><spring_stiffness>4</spring_stiffness>
    <spring_reference>0.3</spring_reference></dynamics></axis></joint>
  <joint name="b" type="revolute"><parent>crank</parent><child>coupler</child><axis><xyz>0 0 1</xyz></axis></joint>
  <joint name="c" type="continuous"><parent>world</parent><child>rocker</child>
    <axis><xyz expressed_in="__model__">0 0 1</xyz></axis></joint>
  <joint name="pin" type="revolute"><parent>coupler</parent><child>rocker</child>
    <pose relative_to="rocker">0.5 0 0 0 0 0</pose><axis><xyz>0 0 1</xyz></axis></joint>
</model></world></sdf>"""


@pytest.mark.filterwarnings("ignore::linkwise.files.OmissionWarning")
def test_a_loop():
    mech = lw.load(FOUR_BAR)
    assert mech.name == "bars" and mech.joint_names == ("a", "b", "c") and [loop.name for loop in mech.loops] == ["pin"]
    np.testing.assert_array_equal(mech.gravity, (0.0, -9.81, 0.0))
    a = mech.bodies[0]
    assert a.limits.lower == (-2.0,) and a.limits.upper == (np.inf,) and a.limits.effort == (np.inf,)
    assert (a.damping, a.friction, a.stiffness, a.rest) == ((0.2,), (0.1,), (4.0,), (0.3,))
    turn = lw.pose((0.5, 0, 0), rpy=(0, 0, 0.2))  # of the model in the world
    builder = lw.Builder()
    for name, mass, x in (("crank", 1.0, 0.1), ("coupler", 2.0, 0.4), ("rocker", 1.5, 0.2)):
        matrix = [[0.02, 0.001, 0.0], [0.001, 0.03, 0.0], [0.0, 0.0, 0.04]]
        builder.link(name, mass, lw.pose((x, 0.01, 0), rpy=(0, 0, 0.3)), matrix)
    builder.link("crank/a").joint("a", lw.Revolute(), "ground", "crank/a", turn)
    builder.joint("crank_fixed", lw.Fixed(), "crank/a", "crank", (0.1, 0, 0))
    builder.joint("b", lw.Revolute(), "crank", "coupler", lw.pose((0.1, 0.3, 0), rpy=(0, 0, 0.5)))
    foot = turn @ lw.pose((1, 0, 0), rpy=(0, 0, np.pi / 2))
    builder.joint("c", lw.Revolute(), "ground", "rocker", foot)
    expected = builder.build("bars", (0.0, -9.81, 0.0))
    assert_same_dynamics(expected, mech)
    # In the file's pose the two sides of the pin need not meet; assembled they do, and the linkage has one degree.
    q = lw.constraints.assemble(mech, [0.4, -0.9, 0.2])
    assert lw.constraints.degrees_of_freedom(mech, q) == 1


@pytest.mark.smoke
def test_the_text_of_a_robot():
    """As it is written for libraries that read SDF: the same numbers."""
    arm = lw.mechanisms.stanford_arm()
    assert_same_dynamics(arm, lw.load(sdf_of(arm)))


def test_a_free_model_and_other_joints():
    text = f"""<sdf version="1.9"><model name="probe"><pose>0 0 2 0.1 0 0</pose>
      <link name="hull">{inertial(3.0, 0.0)}</link>
      <link name="dish"><pose>0.5 0 0 0 0 0</pose>{inertial(1.0, 0.1)}</link>
      <link name="drill"><pose>0 0 -1 0 0 0</pose></link>
      <link name="eye"><pose>0 0.4 0 0 0 0</pose>{inertial(0.2, 0.0)}</link>
      <joint name="gimbal" type="universal"><parent>hull</parent><child>dish</child>
        <axis><xyz>1 0 0</xyz><dynamics><damping>0.1</damping></dynamics></axis>
        <axis2><xyz>0 1 0</xyz><limit><lower>-1</lower><upper>1</upper></limit></axis2></joint>
      <joint name="feed" type="screw"><parent>hull</parent><child>drill</child><axis><xyz>0 0 1</xyz></axis>
        <screw_thread_pitch>0.01</screw_thread_pitch></joint>
      <joint name="look" type="ball"><parent>hull</parent><child>eye</child></joint></model></sdf>"""
    mech = lw.load(text)
    kinds = [type(body.kind) for body in mech.bodies]
    assert sorted(kinds, key=str) == sorted([lw.Universal, lw.Helical, lw.Spherical, lw.Floating], key=str)
    gimbal = mech.bodies[mech.body_index("gimbal")]
    assert gimbal.damping == (0.1, 0.0) and gimbal.limits.upper == (np.inf, 1.0)
    assert mech.bodies[mech.body_index("feed")].kind.pitch == pytest.approx(0.01 / (2 * np.pi))
    assert (
        mech.parameters.masses[mech.link_names.index("drill")] == 1.0
    )  # as the format says of links without <inertial>
    pose = lw.frame_pose(mech, mech.initial, "dish")
    np.testing.assert_allclose(pose, lw.pose((0, 0, 2), rpy=(0.1, 0, 0)) @ lw.pose((0.5, 0, 0)), atol=1e-15)


BAD = {
    "no model": ("<sdf version='1.7'/>", "an SDF file with one <model> is read, and this has: none"),
    "unknown type": (
        "<sdf><model name='m'><link name='a'/><joint name='j' type='gearbox'><parent>world</parent><child>a</child>"
        "</joint></model></sdf>",
        "has the type 'gearbox', which is not read; known: revolute",
    ),
    "unknown link": (
        "<sdf><model name='m'><link name='arm'/><joint name='j' type='fixed'><parent>world</parent><child>amr</child>"
        "</joint></model></sdf>",
        "'amr' is no link of the model: did you mean 'arm'",
    ),
    "circle": (
        "<sdf><model name='m'><link name='a'><pose relative_to='b'/></link><link name='b'><pose relative_to='a'/>"
        "</link></model></sdf>",
        "its pose is relative to itself, by",
    ),
    "include": ("<sdf><model name='m'><include/></model></sdf>", "<include> inside a model is not read"),
}


@pytest.mark.parametrize("case", BAD)
def test_what_is_refused(case):
    text, message = BAD[case]
    with pytest.raises(lw.MechanismError, match=message):
        lw.load(text)


def test_collision_geometry():
    """A box that is dropped on a floor rests on it, its shape where the file has it."""
    mech = lw.load("""<sdf version="1.9"><model name="crate"><pose>0 0 0.5 0 0 0</pose><link name="body">
      <inertial><mass>2</mass><inertia><ixx>0.02</ixx><iyy>0.02</iyy><izz>0.02</izz></inertia></inertial>
      <collision name="hull"><pose>0 0 0.1 0 0 0</pose><geometry><box><size>0.2 0.3 0.4</size></box></geometry>
        <surface><friction><ode><mu>0.4</mu></ode></friction></surface></collision>
      <collision name="hull"><geometry><sphere><radius>0.05</radius></sphere></geometry></collision>
      <collision name="logo"><geometry><mesh><uri>logo.dae</uri></mesh></geometry></collision>
    </link></model></sdf>""")
    hull, ball = mech.shapes
    assert (hull.name, hull.kind, hull.size, hull.friction) == ("hull", "box", (0.1, 0.15, 0.2), 0.4)
    assert (ball.name, ball.kind, ball.friction) == ("body_hull", "sphere", 1.0)
    assert any(note.what == "collision mesh" for note in mech.notes)
    q, _ = lw.rollout(mech.with_ground(), None, None, None, 1e-3, 1500, "semi_implicit", final_only=True)
    assert abs(q[6] - 0.1) < 2e-3  # the box reaches from 0.1 m below the link to 0.3 m above it
