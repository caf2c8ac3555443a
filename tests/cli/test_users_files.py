"""Files as users bring them, the examples of every --help, and pipes."""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import warnings
from pathlib import Path

import click
import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import commands, main

ROBOTS = {
    "ur_description/urdf/ur5_robot.urdf": 6,
    "panda_description/urdf/panda.urdf": 8,
    "z1_description/urdf/z1.urdf": 7,
    "talos_data/robots/talos_reduced.urdf": 32,
    "anymal_b_simple_description/robots/anymal.urdf": 12,
}
URDF = """<robot name="arm"><link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.02" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="tool"/>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="3" effort="40"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" velocity="3" effort="40"/></joint>
  <joint name="flange" type="fixed"><parent link="fore"/><child link="tool"/><origin xyz="0.4 0 0"/></joint>
</robot>"""
STUDY = """mechanism = "robot.urdf"
cases = 20
vary.payload.tool.mass = {uniform = [0.0, 1.0]}
rollout = {dt = 0.01, steps = 5}
"""


@pytest.fixture
def robot_folder():
    pin = pytest.importorskip("pinocchio")
    folder = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
    if not folder.exists():
        pytest.skip("example-robot-data is not installed")
    return folder


def test_robots_in_the_wild(run, robot_folder):
    for file, nv in ROBOTS.items():
        if not (robot_folder / file).exists():
            continue
        found = json.loads(run("info", robot_folder / file, "--json"))
        assert found["nv"] == nv, file
    floating = json.loads(
        run("info", robot_folder / "talos_data/robots/talos_reduced.urdf", "--floating-base", "--json")
    )
    assert floating["nv"] == 38 and floating["joints"][0]["kind"] == "floating"


def test_an_arm_from_a_file_with_mimic_joints(run, robot_folder):
    file = robot_folder / "panda_description/urdf/panda.urdf"
    held = json.loads(run("simulate", file, "--duration", 0.02, "--hold-gravity", "--json", "--acting", "none"))
    np.testing.assert_allclose(held["end"]["q"], held["start"]["q"], atol=1e-8)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech = lw.load(file)
    assert len(held["end"]["q"]) == mech.nq
    model = json.loads(run("linearize", robot_folder / "ur_description/urdf/ur5_robot.urdf", "--at", "held", "--json"))
    assert model["equilibrium"] and len(model["states"]) == 12


MJCF = """<mujoco model="swing"><compiler angle="radian"/><worldbody><body name="bob" pos="0 0 1">
  <joint name="hinge" type="hinge" axis="0 1 0" damping="0.4"/>
  <inertial pos="0 0 -0.5" mass="1" diaginertia="0.01 0.01 0.01"/></body></worldbody></mujoco>"""


def test_a_mujoco_file_and_a_table_of_dh_parameters(run, here):
    (here / "swing.xml").write_text(MJCF)
    free, damped = (
        json.loads(run("simulate", "swing.xml", "--q", "hinge=1", "--duration", 1, "--json", *passive))
        for passive in (("--acting", "none"), ())
    )
    assert free["energy"]["largest_change"] < 1e-8 < 0.1 < damped["energy"]["largest_change"]
    (here / "arm.csv").write_text(
        "a,b,alpha_deg,mass,Ixx,Iyy,Izz\n0.4,0,0,1,0.01,0.02,0.02\n0.3,0,0,1,0.01,0.02,0.02\n"
    )
    found = json.loads(run("info", "arm.csv", "--convention", "saha1999", "--json"))
    assert found["nv"] == 2 and found["mass"] == 2.0
    assert "4 states" in run("linearize", "arm.csv", "--convention", "saha1999", "--gravity", 0, -9.81, 0)


def test_a_folder_a_missing_file_and_a_name_with_spaces(run, here):
    (here / "my robots").mkdir()
    (here / "my robots" / "an arm.urdf").write_text(URDF)
    assert "arm: 2 moving links" in run("info", "my robots/an arm.urdf")
    for command in (["info"], ["simulate", "--duration", "1"], ["linearize"], ["bench"]):
        name, *options = command
        assert "is a folder" in run(name, "my robots", *options, fails=True)
        assert "there is no file my robots/arm.urdf" in run(name, "my robots/arm.urdf", *options, fails=True)
    assert "is a folder" in run("export", "my robots", "mass_matrix", fails=True)


# -- help ---------------------------------------------------------------------------------------------


def leaves(group: click.Group, path: tuple[str, ...] = ()) -> list[tuple[tuple[str, ...], click.Command]]:
    found = []
    for name, command in group.commands.items():
        if isinstance(command, click.Group):
            found += leaves(command, (*path, name))
        elif not command.hidden:
            found.append(((*path, name), command))
    return found


def examples(path: tuple[str, ...], command: click.Command) -> list[list[str]]:
    with click.Context(command, info_name="linkwise " + " ".join(path)) as context:
        text = command.get_help(context)
    start = "linkwise " + " ".join(path)
    return [
        shlex.split(line)[1:] for line in re.findall(r"^ +(linkwise .*)$", text, re.MULTILINE) if line.startswith(start)
    ]


LEAVES = leaves(commands)


def test_every_command_has_an_example():
    for path, command in LEAVES:
        assert examples(path, command), path
    names = {path[0] for path, _ in LEAVES}
    assert names == {
        *("info", "dynamics", "simulate", "study", "linearize", "operators", "prove"),
        *("ik", "trajectory", "estimate", "formulas", "range", "lqr"),
        *("convert", "export", "reproduce", "bench", "cache", "demo", "study", "view"),
    }


def measured(arguments):
    """Output of a benchmark at a moment's notice, in a process of its own: libraries that it compares with keep some
    50 GB of address space for long chains, and a process as large as that cannot be forked by later tests."""
    script = """
import sys
from benchmarks import speed
from linkwise.cli import main

best = speed.best
for module in ("benchmarks.speed.report", "benchmarks.speed.peak", "linkwise.demo.tour"):
    __import__(module)
    sys.modules[module].best = lambda *calls, **options: best(*calls, **{**options, "rounds": 1, "slice_seconds": 5e-3})
sys.exit(main(sys.argv[1:]))
"""
    done = subprocess.run(
        [sys.executable, "-c", script, *map(str, arguments)],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(Path(lw.__file__).parents[1])},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.slow_cases("Command bench")
@pytest.mark.parametrize(
    ("path", "command"), [leaf for leaf in LEAVES if leaf[0][0] not in ("reproduce", "demo", "view")], ids=str
)
def test_the_examples_of_the_help_run(run, here, quick, path, command, monkeypatch):
    pytest.importorskip("matplotlib")
    if path[0] == "cache":
        monkeypatch.setenv("LINKWISE_CACHE_DIR", str(here / "objects"))  # they clear it
    (here / "robot.urdf").write_text(URDF)
    (here / "study.toml").write_text(STUDY)
    rng = np.random.default_rng(0)
    arrays = {name: rng.normal(size=(3, 2)) for name in ("q", "v", "a", "tau")}
    np.savez(here / "states.npz", **arrays)
    columns = ["t", *(f"{name}{k + 1}" for name in arrays for k in range(2))]
    rows = np.concatenate([0.01 * np.arange(3.0)[:, None], *arrays.values()], axis=1)
    np.savetxt(here / "motion.csv", rows, delimiter=",", header=",".join(columns), comments="")
    if path == ("dynamics", "inverse"):
        run("simulate", "builtin:four_bar", "--duration", "0.1", "-o", "turn.csv")
    for arguments in examples(path, command):
        if path == ("bench",):
            assert measured(arguments)
        else:
            assert run(*arguments) or "-o" in arguments
        named = [arguments[k + 1] for k, word in enumerate(arguments) if word in ("-o", "--output", "--plot", "--gif")]
        assert all((here / file).stat().st_size > 100 for file in named)


# -- pipes --------------------------------------------------------------------------------------------


def test_a_pipe_gets_plain_text_and_no_progress(here):
    """One process for all commands that show progress or colours: what they write is no terminal's."""
    (here / "robot.urdf").write_text(URDF)
    script = """
import sys
from linkwise.cli import main
for arguments in sys.argv[1].split(";"):
    code = main(arguments.split())
    assert code == 0, code
"""
    lines = ("info robot.urdf;simulate robot.urdf --duration 0.1;linearize robot.urdf --at equilibrium;"
             "reproduce jain1995 --only table -o g")  # fmt: skip
    done = subprocess.run(
        [sys.executable, "-c", script, lines],
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "PYTHONPATH": str(Path(lw.__file__).parents[1])},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout and "\r" not in done.stdout
    assert "jain1995  Table 1" in done.stdout and "frequency (Hz)" in done.stdout


@pytest.mark.parametrize("setting", [{}, {"NO_COLOR": "1"}, {"TERM": "dumb"}], ids=str)
def test_a_terminal_may_refuse_colours(setting, monkeypatch):
    pty = pytest.importorskip("pty")
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")
    for name, value in setting.items():
        monkeypatch.setenv(name, value)
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w") as terminal:
        monkeypatch.setattr(sys, "stdout", terminal)
        assert main(["info", "builtin:double_pendulum"]) == 0
        shown = os.read(ours, 100_000)
    os.close(ours)
    assert shown.startswith(b"double_pendulum: " if setting else b"\x1b[1mdouble_pendulum\x1b[0m: ")
    assert (b"\x1b" in shown) == (not setting)
