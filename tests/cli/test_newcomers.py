"""What somebody meets who uses the commands for the first time: pipes, folders, Ctrl-C, gains, limits, names."""

from __future__ import annotations

import io
import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main

ENVIRONMENT = {**os.environ, "PYTHONPATH": str(Path(lw.__file__).parents[1])}
ARM = ("simulate", "builtin:planar_arm:2", "--duration", 0.2)
URDF = """<robot name="arm"><link name="base"/>
  <link name="upper"><inertial><origin xyz="0.2 0 0"/><mass value="2"/>
    <inertia ixx="0.02" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <link name="fore"><inertial><origin xyz="0.2 0 0"/><mass value="1"/>
    <inertia ixx="0.01" iyy="0.05" izz="0.05" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="shoulder" type="revolute"><parent link="base"/><child link="upper"/><axis xyz="0 1 0"/>
    <limit lower="-3" upper="3" velocity="30" effort="4"/><dynamics damping="0.5" friction="0.2"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0.4 0 0"/>
    <axis xyz="0 1 0"/><limit lower="-0.1" upper="0.3" velocity="0.1" effort="40"/></joint>
</robot>"""


@pytest.fixture
def stdin(monkeypatch):
    """Give commands something on standard input."""

    def give(data: bytes) -> None:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data)))

    return give


@pytest.fixture
def robot(here):
    (here / "arm.urdf").write_text(URDF)
    return "arm.urdf"


def shell(*commands: str) -> subprocess.CompletedProcess:
    """A pipe of commands of linkwise, and what every one of them ended with on the last line."""
    line = " | ".join(command.replace("linkwise", f"{sys.executable} -m linkwise") for command in commands)
    script = f"{line}; echo ${{PIPESTATUS[@]}}"
    return subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=120, env=ENVIRONMENT)


# -- files and pipes ----------------------------------------------------------------------------------


def test_a_motion_through_a_pipe(run, here, stdin):
    rows = run(*ARM, "--kp", 5, "--target", "joint1=0.5", "-o", "-")
    stdin(rows.encode())
    found = np.loadtxt(io.StringIO(run("dynamics", "inverse", "builtin:planar_arm:2", "-")), delimiter=",", skiprows=1)
    names, *numbers = rows.splitlines()
    table = np.loadtxt(io.StringIO("\n".join(numbers)), delimiter=",")
    columns = [names.split(",").index(f"tau.joint{k}") for k in (1, 2)]
    np.testing.assert_allclose(found[:, 1:], table[:, columns], atol=1e-9)
    # The same as npz, and as the start and the torques of another motion.
    run(*ARM, "-o", "motion.npz")
    stdin((here / "motion.npz").read_bytes())
    assert run("dynamics", "inverse", "builtin:planar_arm:2", "-", "-o", "-").startswith("t,tau.joint1,tau.joint2\n")
    stdin(rows.encode())
    assert json.loads(run(*ARM, "--start", "-", "--json"))["start"]["q"] == [0.0, 0.0]
    stdin(rows.encode())
    driven = json.loads(run("simulate", "builtin:planar_arm:2", "--torques", "-", "--json"))
    np.testing.assert_allclose(driven["end"]["q"], table[-1, 1:3], atol=1e-4)
    stdin(b"")
    assert "standard input is empty" in run("dynamics", "inverse", "builtin:planar_arm:2", "-", fails=True)
    stdin(b"q1,q2\n1,x\n")
    assert "standard input, line 2: q2 is 'x'" in run("dynamics", "inverse", "builtin:planar_arm:2", "-", fails=True)


def test_a_mechanism_on_standard_input(run, robot, here, stdin):
    stdin((here / robot).read_bytes())
    assert run("info", "-") == run("info", robot)
    for data, message in ((b"", "is empty; it must be a URDF"), (b"t,q1\n0,1\n", "is no URDF, MJCF or SDF document")):
        stdin(data)
        assert f"standard input {message}" in run("info", "-", fails=True)
    message = run("dynamics", "inverse", "-", "-", fails=True)
    assert "standard input is the mechanism or a table of numbers, not both" in message
    stdin((here / robot).read_bytes())
    assert run("simulate", "-", "--duration", 0.01, "-o", "-").startswith("t,q.shoulder")


def test_built_in_mechanisms_are_listed(run):
    lines = run("info", "builtin:").splitlines()
    assert [line.split()[0].split(":")[1] for line in lines] == list(lw.mechanisms.__all__)
    assert all(len(line.split()) > 2 for line in lines)  # each with what it is
    assert run("simulate", "builtin:", "--duration", 1).splitlines() == lines
    assert "builtin: lists them all" in run("info", "builtin:zzz", fails=True)


def test_loops_are_closed_near_the_neutral_position_or_around_what_is_given(run):
    """Stretched out, the five-bar is a dead end for Newton's method."""
    five = lw.mechanisms.five_bar()
    free = json.loads(run("linearize", "builtin:five_bar", "--json"))["q"]
    held = json.loads(run("linearize", "builtin:five_bar", "--q", "joint1=0.4", "--q", "joint2=0", "--json"))["q"]
    for q in (free, held):
        assert np.abs(lw.constraints.position_error(five, np.array(q))).max() < 1e-8
    assert held[:2] == [0.4, 0.0]
    message = run("linearize", "builtin:four_bar", "--q", "crank_joint=0", "--q", "coupler_joint=1",
                  "--q", "rocker_joint=0", fails=True)  # fmt: skip
    assert "no configuration was found" in message and "'pin'" in message


def test_pipes_of_the_shell():
    first = "linkwise simulate builtin:planar_arm:2 --duration 0.05 -o -"
    for way in ("-", "/dev/stdin"):
        done = shell(first, f"linkwise dynamics inverse builtin:planar_arm:2 {way}")
        assert done.stdout.splitlines()[-1] == "0 0" and done.stderr == "", done.stderr
        assert done.stdout.startswith("t,tau.joint1,tau.joint2\n")


def test_folders_and_places_that_are_none(run, here):
    (here / "folder").mkdir()
    arm = "builtin:planar_arm:2"
    for command in (
        ("dynamics", "inverse", arm, "folder"),
        ("simulate", arm, "--duration", 1, "--start", "folder"),
        ("simulate", arm, "--torques", "folder"),
        ("simulate", arm, "--duration", 1, "-o", "folder"),
        ("export", arm, "mass_matrix", "-o", "folder"),
        ("info", arm, "--plot", "folder"),
    ):
        assert "folder is a folder; give the path of a file in it" in run(*command, fails=True)
    for command in (
        ("info", arm, "--plot", "nowhere/x.png"),
        ("simulate", arm, "--duration", 1, "--gif", "nowhere/x.gif"),
        ("linearize", arm, "-o", "nowhere/x.npz"),
        ("linearize", arm, "--plot", "nowhere/x.png"),
        ("export", arm, "mass_matrix", "-o", "nowhere/x.c"),
        ("dynamics", "inverse", arm, "absent.csv", "-o", "nowhere/x.csv"),
    ):
        assert "cannot be written: there is no folder nowhere" in run(*command, fails=True)
    assert "there is no file absent.csv" in run("dynamics", "inverse", arm, "absent.csv", fails=True)


def test_what_the_system_says_is_told_in_words(run, monkeypatch):
    def refuse(*arguments, **options):
        raise PermissionError(13, "Permission denied", "/locked/x.c")

    monkeypatch.setattr("pathlib.Path.write_text", refuse)
    assert run("export", "builtin:planar_arm:2", "mass_matrix", "-o", "x.c", fails=True) == (
        "linkwise: /locked/x.c: permission denied\n"
    )


def test_ctrl_c_keeps_what_was_computed(here, monkeypatch, capsys):
    """The signal comes at a moment of the motion, not of the clock."""
    follow, moments = lw.simulate, []

    def interrupted(mech, q, v, duration, control, **options):
        def press(t, q, v):
            if t > 0.5 and not moments:
                moments.append(t)
                signal.raise_signal(signal.SIGINT)
            return np.zeros(mech.nv)

        return follow(mech, q, v, duration, press, **options)

    monkeypatch.setattr(lw, "simulate", interrupted)
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        command = (
            "simulate",
            "builtin:planar_arm:2",
            "--duration",
            100000,
            "--every",
            0.1,
            "-o",
            "motion.csv",
            "--json",
        )
        assert main([str(word) for word in command]) == 130
    finally:
        signal.signal(signal.SIGINT, before)
    out, err = capsys.readouterr()
    assert err.startswith("linkwise: interrupted at t = ") and "what was computed until then" in err
    facts = json.loads(out)
    assert facts["stopped"] == "interrupted" and facts["files"] == ["motion.csv"]
    assert 0.2 < facts["duration"] < 1.0
    assert (here / "motion.csv").read_text().count("\n") == facts["rows"] + 1 > 3


def test_ctrl_c_while_an_animation_is_drawn_keeps_the_motion(here, monkeypatch, capsys):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    pytest.importorskip("matplotlib")
    monkeypatch.setattr("linkwise.viewer.animate", interrupt)
    assert main([*map(str, ARM), "-o", "motion.csv", "--gif", "motion.gif", "--json"]) == 130
    out, err = capsys.readouterr()
    assert json.loads(out)["files"] == ["motion.csv"] and (here / "motion.csv").exists()
    assert err == "linkwise: interrupted while files were written; what was computed until then is shown and written\n"


def test_a_motion_that_cannot_be_followed_is_kept_as_far_as_it_went(here, monkeypatch, capsys):
    real = lw.control.joint_feedback

    def failing(*arguments):
        control = real(*arguments)
        return lambda t, q, v: control(t, q, v) if t < 0.1 else np.full(2, np.nan)

    monkeypatch.setattr(lw.control, "joint_feedback", failing)
    assert main(["simulate", "builtin:planar_arm:2", "--duration", "1", "--kp", "1", "-o", "m.csv"]) == 1
    out, err = capsys.readouterr()
    assert "was followed to t = " in err and err.count("\n") == 1 and "failed" in out
    assert (here / "m.csv").read_text().count("\n") > 3


# -- names of columns ---------------------------------------------------------------------------------


def test_one_name_for_a_number_in_all_tables(run, here):
    tree = ("builtin:random_tree:3:2",)
    run("simulate", *tree, "--duration", 0.02, "-o", "motion.csv")
    run("dynamics", "inverse", *tree, "motion.csv", "-o", "torques.csv")
    mech = lw.mechanisms.random_tree(3, 2)
    forces = [f"tau.{name}" for name in mech.coordinates.names("v")]
    assert (here / "torques.csv").read_text().splitlines()[0].split(",") == ["t", *forces]
    header = (here / "motion.csv").read_text().splitlines()[0].split(",")
    assert header[1 : 1 + mech.nq] == [f"q.{name}" for name in mech.coordinates.names("q")]
    assert set(forces) < set(header)
    assert any(name.endswith("[0]") for name in header)


def test_names_with_commas_are_read_and_written(run, here):
    (here / "odd.urdf").write_text(URDF.replace('"elbow"', '"elbow, left"'))
    rows = run("simulate", "odd.urdf", "--duration", 0.02, "-o", "-")
    assert '"q.elbow, left"' in rows.splitlines()[0]
    (here / "odd.csv").write_text(rows)
    assert '"tau.elbow, left"' in run("dynamics", "inverse", "odd.urdf", "odd.csv").splitlines()[0]


def test_degrees_go_round(run, here):
    run(*ARM, "--q", "joint1=40", "--degrees", "-o", "m.csv")
    again = json.loads(run(*ARM, "--start", "m.csv", "--degrees", "--json"))
    np.testing.assert_allclose(again["start"]["q"], [np.radians(40), 0.0], rtol=1e-12)


# -- gains, limits, passive elements ------------------------------------------------------------------


def motion(run, *options):
    return json.loads(run("simulate", "arm.urdf", "--duration", 0.5, "--json", *options))


def test_units_of_motions_are_told_by_their_energies(run, here):
    """A joint may turn many times, and small angles are no proof of radians."""
    spin = ("simulate", "builtin:planar_arm:1", "--duration", 0.1, "--v", "joint1=2000", "--degrees")
    run(*spin, "-o", "degrees.csv")
    run("simulate", "builtin:planar_arm:1", "--duration", 0.5, "--v", "joint1=40", "-o", "radians.csv")
    assert np.loadtxt(here / "radians.csv", delimiter=",", skiprows=1)[:, 1].max() > 4.0 * np.pi
    inverse = ("dynamics", "inverse", "builtin:planar_arm:1")
    assert run(*inverse, "radians.csv").startswith("t,tau.joint1")
    assert "are in degrees, as its kinetic energies show; use --degrees" in run(*inverse, "degrees.csv", fails=True)
    assert run(*inverse, "degrees.csv", "--degrees").startswith("t,tau.joint1")
    assert "leave --degrees out" in run(*inverse, "radians.csv", "--degrees", fails=True)
    # npz is always in radians, whatever the command line is in
    run(*spin, "-o", "motion.npz")
    assert run(*inverse, "motion.npz", "--degrees") == run(*inverse, "motion.npz")
    began = run("simulate", "builtin:planar_arm:1", "--duration", 0.01, "--start", "motion.npz", "--degrees",
                "--q", "joint1=45", "--json")  # fmt: skip
    np.testing.assert_allclose(json.loads(began)["start"]["v"], [np.radians(2000.0)])
    # of another arm the energies say nothing, and what is left is how large the numbers are
    assert "looks like degrees" in run("dynamics", "inverse", "builtin:planar_arm:1:2", "radians.csv", fails=True)


def test_gains_of_single_joints(run, robot):
    mech = lw.load(robot)

    def expected(kp, kd):
        control = lw.control.joint_feedback(mech, [0.0, 0.2], kp, kd, gravity=False)
        return lw.simulate(mech, [0, 0], [0, 0], 0.5, control, t_eval=0.01).end.q

    aim = ("--target", "elbow=0.2")
    for options, kp, kd in (
        (("--kp", "elbow=50", *aim), [0.0, 50.0], 0.0),
        (("--kp", 80, "--kp", "elbow=50", "--kd", "shoulder=3", *aim), [80.0, 50.0], [3.0, 0.0]),
        (("--kp", "elbow=50", "--kp", 80, "--kd", 2, *aim), [80.0, 50.0], 2.0),
    ):
        np.testing.assert_array_equal(motion(run, *options)["end"]["q"], expected(kp, kd))
    for options, message in (
        (("--kp", 1, "--kp", 2), "--kp 1 and 2: give one number for all joints"),
        (("--kp", "1,2"), "one number is for all joints"),
        (("--kd", "elbow=1,2"), "joint 'elbow' takes one number"),
        (("--kp", "elbwo=1"), "did you mean 'elbow'"),
        (("--kp", "x"), "--kp x: 'x' is no number"),
        (("--kp", "shoulder=3", *aim), "--target elbow=0.2 needs --kp"),
        (("--target", "elbow"), "--target elbow: the form is JOINT=NUMBER"),
        (("--saturate",), "--saturate is for the forces of --torques"),
        (("--limits", -1), "--limits must be a positive stiffness"),
        (("--limit-damping", 1), "--limit-damping needs --limits"),
    ):
        assert message in run("simulate", robot, "--duration", 0.5, *options, fails=True)


def test_motors_are_as_strong_as_the_file_says(run, robot):
    hold = ("--kp", "shoulder=400", "--kd", "shoulder=40", "--hold-gravity", "--target", "shoulder=-1")
    free, cut = motion(run, *hold, "-o", "free.csv"), motion(run, *hold, "--saturate", "-o", "cut.csv")
    strongest = [np.genfromtxt(name, delimiter=",", names=True)["taushoulder"] for name in ("free.csv", "cut.csv")]
    assert np.abs(strongest[0]).max() > 100 and np.abs(strongest[1]).max() == 4.0
    assert cut["at_effort_limit"] == ["shoulder"] and free["at_effort_limit"] == []
    idle = {one["what"]: one for one in free["not_acting"]}
    assert idle["effort limits"]["exceeded"] == ["shoulder"] and idle["effort limits"]["option"] == "--saturate"
    assert "effort limits" not in {one["what"] for one in cut["not_acting"]}


def test_limits_can_be_stops(run, robot):
    through, stopped = motion(run, "--acting", "none"), motion(run, "--limits", 2e4, "--limit-damping", 0.5)
    mech = lw.load(robot)
    assert through["end"]["q"][1] < -0.2 or through["end"]["q"][1] > 0.4
    assert -0.11 < stopped["end"]["q"][1] < 0.31
    stops = lw.forces.Passive.of(mech) + lw.forces.Passive.stops({"shoulder": (-3, 3), "elbow": (-0.1, 0.3)}, 2e4, 0.5)
    expected = lw.simulate(mech, [0, 0], [0, 0], 0.5, passive=stops, t_eval=0.01)
    np.testing.assert_allclose(stopped["end"]["q"], expected.end.q, rtol=1e-9)


def test_what_of_the_file_acts_and_what_not_is_told(run, robot, capsys):
    acting = motion(run)
    assert list(acting["acting"]) == ["damping", "friction", "limits"]
    assert [one["what"] for one in acting["not_acting"]] == ["velocity limits"]  # nothing drives it: no efforts
    facts = {one["what"]: one for one in motion(run, "--acting", "none")["not_acting"]}
    assert list(facts) == ["damping", "friction", "limits", "velocity limits"]
    assert facts["damping"] == {"what": "damping", "joints": ["shoulder"], "exceeded": None, "option": "--acting"}
    assert facts["limits"]["exceeded"] == ["elbow"] and facts["velocity limits"]["option"] is None
    text = run("simulate", robot, "--duration", 0.5, "--acting", "friction")
    assert "acting\n  friction: shoulder" in text
    assert "of the file, not acting" in text and "damping of shoulder (--acting lets them act)" in text
    assert "limits of shoulder, elbow: exceeded by elbow (--acting lets them act)" in text
    assert "velocity limits of shoulder, elbow: exceeded by elbow (nothing enforces them)" in text
    assert motion(run, "--passive") == acting  # as in earlier versions, where it had to be asked for
    assert "acting" not in run(*ARM)  # a mechanism with nothing of the kind
    assert main(["simulate", robot, "--duration", "0.1", "-o", "-", "--acting", "limits"]) == 0
    assert "linkwise: not acting: damping of shoulder" in capsys.readouterr().err
    assert "damping of shoulder (--acting lets them act)" in run("linearize", robot, "--acting", "none")
    assert "not acting" not in run("linearize", robot)
    assert "unknown kind of element 'dampers'" in run("linearize", robot, "--acting", "dampers", fails=True)


def test_limits_are_not_exceeded_by_round_off(run, here):
    (here / "leg.urdf").write_text(URDF.replace('lower="-3" upper="3"', 'lower="0" upper="1"'))
    still = run("simulate", "leg.urdf", "--duration", 0.05, "--gravity", 0, 0, 0, "--acting", "none")
    assert "limits of shoulder, elbow: not exceeded" in still
    mech = lw.load(here / "leg.urdf").with_gravity((0, 0, 0)).with_acting(False)
    motion = lw.simulate(mech, [0.0, 0.0], [0.0, 0.0], 0.1)
    motion.q[:, 0] -= 1e-15
    from linkwise.cli.acting import idle_limits

    assert [one.exceeded for one in idle_limits(motion, False)][0] == ()
    motion.q[:, 0] -= 1e-6
    assert [one.exceeded for one in idle_limits(motion, False)][0] == ("shoulder",)


def test_asking_for_what_a_file_does_not_have_is_told(run, here, capsys):
    assert main([*map(str, ARM), "--limits", "100", "-o", "m.csv"]) == 0
    assert "--limits: no joint of planar_arm_2" in capsys.readouterr().err
    assert "planar_arm_2 has 0 actuators" in run(*ARM, "--ctrl", "1", fails=True)


def test_joints_that_follow_others_have_no_gains(run, here):
    (here / "pair.urdf").write_text(URDF.replace("</joint>\n</robot>", '<mimic joint="shoulder"/></joint></robot>'))
    message = run("simulate", "pair.urdf", "--duration", 1, "--kp", "elbow=3", fails=True)
    assert "joint 'elbow' follows 'shoulder'; give that one's" in message
