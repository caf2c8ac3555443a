"""Mimic joints named on the command line and in tables."""

from __future__ import annotations

import json
import re

import click
import numpy as np
import pytest

import linkwise as lw
from linkwise.cli.tables import Units
from linkwise.mechanics.algorithms.integration import METHODS as STEPS
from linkwise.motion.integrators import ADAPTIVE

URDF = """<robot name="gripper">
  <link name="base"/>
  {links}
  <joint name="lead" type="revolute"><parent link="base"/><child link="l0"/><axis xyz="1 0 0"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/></joint>
  <joint name="follow" type="{kind}"><parent link="l0"/><child link="l1"/><axis xyz="1 0 0"/>
    <limit lower="-9" upper="9" effort="1" velocity="1"/><mimic joint="lead" multiplier="-2" offset="0.3"/></joint>
</robot>"""
LINK = """<link name="l{k}"><inertial><mass value="1"/><origin xyz="0 0.1 0.2"/>
  <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>"""


def write(here, kind: str = "revolute"):
    text = URDF.format(links="".join(LINK.format(k=k) for k in range(2)), kind=kind)
    (here / "gripper.urdf").write_text(text)


def start(run, *options) -> dict:
    return json.loads(run("simulate", "gripper.urdf", "--duration", 0.01, "--json", *options))["start"]


def test_positions_and_velocities_are_the_mimic_joints_own(run, here):
    write(here)
    found = start(run, "--q", "follow=0.5", "--v", "follow=1")
    np.testing.assert_allclose(found["q"], [(0.5 - 0.3) / -2.0])
    np.testing.assert_allclose(found["v"], [-0.5])
    in_degrees = start(run, "--q", "follow=90", "--v", "follow=90", "--degrees")
    np.testing.assert_allclose(in_degrees["q"], [(np.pi / 2 - 0.3) / -2.0])
    np.testing.assert_allclose(in_degrees["v"], [-np.pi / 4])


def test_a_sliding_mimic_joint_is_given_in_metres(run, here):
    write(here, "prismatic")
    np.testing.assert_allclose(start(run, "--q", "follow=0.5", "--degrees")["q"], [-0.1])


def test_the_target_of_a_mimic_joint(run, here):
    write(here)
    options = ("simulate", "gripper.urdf", "--duration", 0.2, "--kp", 20, "--kd", 2, "--json")
    found = json.loads(run(*options, "--target", "follow=0.5"))
    expected = json.loads(run(*options, "--target", "lead=-0.1"))
    np.testing.assert_allclose(found["end"]["q"], expected["end"]["q"], atol=1e-12)


@pytest.mark.parametrize("first", ["lead=0.1", "follow=0.1"])
def test_mimic_and_mimicked_joint_together_are_refused(run, here, first):
    write(here)
    second = "follow=0.2" if first.startswith("lead") else "lead=0.2"
    message = run("simulate", "gripper.urdf", "--duration", 1, "--q", first, "--q", second, fails=True)
    assert "move together" in message


def test_columns_are_those_of_independent_joints(run, here):
    write(here)
    (here / "states.csv").write_text("q.lead,v.lead,tau.lead\n0.1,0,0\n")
    assert run("dynamics", "forward", "gripper.urdf", "states.csv").startswith("a")
    (here / "states.csv").write_text("q.follow,v.lead,tau.lead\n0.1,0,0\n")
    message = run("dynamics", "forward", "gripper.urdf", "states.csv", fails=True)
    assert "'follow' follows 'lead'" in message


BALL = """<robot name="ball"><link name="base"/>{link}
  <joint name="neck" type="floating"><parent link="base"/><child link="l0"/></joint></robot>"""


def test_angular_velocities_are_degrees_too(run, here):
    (here / "gripper.urdf").write_text(BALL.format(link=LINK.format(k=0)))
    found = start(run, "--v", "neck=90,0,0,1,2,3", "--degrees")
    np.testing.assert_allclose(found["v"], [np.pi / 2, 0.0, 0.0, 1.0, 2.0, 3.0])


def test_degrees_are_refused_where_nobody_knows_what_an_angle_is():
    class Silent(lw.Universal):
        position_measures = ()

    builder = lw.Builder("silent").link("a", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1))
    mech = builder.joint("knee", Silent(), "ground", "a").build()
    with pytest.raises(click.UsageError, match="'knee' is a Silent joint"):
        Units(degrees=True).outside(mech, "q", np.zeros(2))
    with pytest.raises(click.UsageError, match="'knee' is a Silent joint"):
        Units(degrees=True).inside(mech, "q", np.zeros(2), "knee")
    np.testing.assert_array_equal(Units().outside(mech, "q", np.ones(2)), 1.0)


def test_the_help_names_methods_that_exist(run):
    """A method that is added needs no words here: unknown ones are answered with all that are known."""
    (listed,) = re.findall(r"Integrator: (.*?)\.", " ".join(run("simulate", "--help").split()))
    named = re.findall(r"[a-z_0-9]+", listed.replace("with fixed steps", ""))
    assert set(named) <= {*ADAPTIVE, *STEPS} and {"dop853", "rk4"} <= set(named)
