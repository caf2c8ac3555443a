"""linkwise trajectory: planned motions as tables that other commands read."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise.cli import main


def test_a_motion_goes_where_it_is_told_and_feeds_other_commands(tmp_path, run):
    table = tmp_path / "motion.csv"
    run("trajectory", "builtin:planar_arm:2", "--to", "joint1=1", "--duration", "2", "--step", "0.5", "-o", str(table))
    rows = np.genfromtxt(table, delimiter=",", names=True)
    np.testing.assert_allclose(rows["t"], [0.0, 0.5, 1.0, 1.5, 2.0])
    np.testing.assert_allclose(rows["qjoint1"], lw.trajectories.cycloid(rows["t"], 2.0)[0], atol=1e-12)
    torques = tmp_path / "torques.csv"
    run("dynamics", "inverse", "builtin:planar_arm:2", str(table), "-o", str(torques))
    again = np.genfromtxt(torques, delimiter=",", names=True)
    np.testing.assert_allclose(again["taujoint1"], rows["taujoint1"], atol=1e-12)
    through = tmp_path / "through.npz"
    run(
        "trajectory", "builtin:planar_arm:2", "--through", str(table), "--fastest", "--effort", "60", "-o", str(through)
    )
    with np.load(through) as found:
        assert np.abs(found["tau"]).max() < 60.5 and found["t"][-1] != 2.0
        np.testing.assert_allclose(found["q"][-1], [1.0, 0.0], atol=1e-9)


def test_ramps_of_trapezoids(capsys, tmp_path, run):
    table = tmp_path / "motion.csv"
    planned = ("trajectory", "builtin:planar_arm:2", "--to", "joint1=1", "--duration", "2", "--step", "0.1")
    run(*planned, "--law", "trapezoid", "--ramp", "0.1", "-o", str(table))
    rows = np.genfromtxt(table, delimiter=",", names=True)
    np.testing.assert_allclose(rows["qjoint1"], lw.trajectories.trapezoid(rows["t"], 2.0, 0.1)[0], atol=1e-12)
    assert abs(rows["vjoint1"].max() - 1.0 / (2.0 * 0.9)) < 1e-12
    assert main([*planned, "--ramp", "0.1"]) == 2 and "--ramp is for --law trapezoid" in capsys.readouterr().err


def test_joints_between_commas_are_told_apart(capsys):
    assert main(["trajectory", "builtin:planar_arm:3", "--to", "joint1=0.5,joint2=0.4,joint3=1"]) == 2
    assert "once for each joint: --to joint1=0.5 --to joint2=0.4 --to joint3=1" in capsys.readouterr().err


def test_what_is_missing_is_said(capsys, tmp_path):
    for arguments, message in (
        ((), "give --to JOINT=Q"),
        (("--to", "joint1=1"), "no bound says how long"),
        (("--to", "joint1=1", "--duration", "1", "--effort", "3"), "--effort is for --fastest"),
        (("--to", "joint1=1", "--duration", "1", "--step", "0"), "steps take time"),
        (("--to", "joint1=1", "--fastest", "--effort", "3"), "to hold still"),
    ):
        assert main(["trajectory", "builtin:planar_arm:2", *arguments]) == 2
        assert message in capsys.readouterr().err
    waypoints = tmp_path / "waypoints.csv"
    waypoints.write_text("q1,q2\n0,0\n1,1\n")
    assert main(["trajectory", "builtin:planar_arm:2", "--through", str(waypoints)]) == 2
    assert "has no column t: give --duration" in capsys.readouterr().err


def test_motions_beyond_limits_are_told(capsys, tmp_path):
    planned = ("trajectory", "builtin:puma560", "--to", "joint1=3.5", "--fastest", "--effort", "100")
    assert main([*planned, "-o", str(tmp_path / "motion.csv")]) == 0
    told = capsys.readouterr().err.splitlines()[0]
    assert told.startswith("linkwise: warning: the path") and "'joint1' to 3.5, outside -2.793 .. 2.793" in told
