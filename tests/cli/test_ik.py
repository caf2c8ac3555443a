"""linkwise ik: configurations as the library gives them, targets by name, pictures, what cannot be reached."""

from __future__ import annotations

import json

import numpy as np

import linkwise as lw
from linkwise.cli import main


def test_the_document_holds_a_configuration_that_reaches_the_target(run, tmp_path):
    picture = tmp_path / "reach.png"
    arguments = ("builtin:puma560", "--target", "link6=0.4,0.2,0.3,180,0,30", "--degrees", "--q", "joint2=-45")
    found = json.loads(run("ik", *arguments, "--plot", str(picture), "--json"))
    wanted = lw.pose((0.4, 0.2, 0.3), rpy=np.deg2rad((180.0, 0.0, 30.0)))
    assert found["converged"] and found["attempts"] == 1 and picture.stat().st_size > 1000
    mech = lw.mechanisms.puma560()
    np.testing.assert_allclose(lw.frame_pose(mech, np.array(found["q"]), "link6"), wanted, atol=3e-8)
    text = run("ik", *arguments)
    assert "reached, error" in text and f"{np.rad2deg(found['q'][0]):.6g}" in text and "q (deg)" in text


def test_a_posture_is_kept_where_targets_leave_a_choice(run):
    given = ("ik", "builtin:planar_arm:4", "--target", "tip=2,2,0", "--q", "joint1=0.4", "--json")
    kept, free = json.loads(run(*given, "--posture")), json.loads(run(*given))
    start = np.array([0.4, 0.0, 0.0, 0.0])
    assert np.linalg.norm(np.array(kept["q"]) - start) <= np.linalg.norm(np.array(free["q"]) - start)


def test_what_cannot_be_reached_has_exit_code_1(capsys):
    assert main(["ik", "builtin:planar_arm:2", "--target", "tip=5,0,0", "--attempts", "3"]) == 1
    assert "NOT reached: the nearest that was found, error 3.0e+00" in capsys.readouterr().out


def test_the_centre_of_mass_of_what_stands(run):
    given = ("ik", "builtin:quadruped", "--center-of-mass", "0.01,0.02", "--posture")
    found = json.loads(run(*given, "--json"))
    center = lw.center_of_mass(lw.mechanisms.quadruped(), np.array(found["q"]))
    np.testing.assert_allclose(center[:2], (0.01, 0.02), atol=2e-8)
    np.testing.assert_allclose(found["center_of_mass"], center, atol=1e-12)
    assert found["converged"] and "(centre of mass)" in run(*given)


def test_bad_targets_end_with_one_line(capsys):
    for target, message in (
        ("tip", "the form is FRAME=X,Y,Z or"),
        ("tip=1,2", "2 numbers; the form is"),
        ("tip=1,2,x", "is no number"),
        ("hand=1,2,3", "no link or frame 'hand'"),
    ):
        assert main(["ik", "builtin:planar_arm:2", "--target", target]) == 2
        assert message in capsys.readouterr().err
    assert main(["ik", "builtin:planar_arm:2", "--target", "tip=1,1,0", "--target", "tip=1,0,0"]) == 2
    assert "a frame is given twice" in capsys.readouterr().err
    assert main(["ik", "builtin:planar_arm:2"]) == 2
    assert "give --target" in capsys.readouterr().err
    assert main(["ik", "builtin:planar_arm:2", "--center-of-mass", "1"]) == 2
    assert "1 numbers; the form is X,Y or X,Y,Z" in capsys.readouterr().err


def test_all_configurations_of_a_pose(run):
    arguments = ("ik", "builtin:puma560", "--target", "link6=0.4,0.2,0.3,180,0,30", "--degrees", "--all")
    found = np.array(json.loads(run(*arguments, "--no-limits", "--json"))["configurations"])
    wanted = lw.pose((0.4, 0.2, 0.3), rpy=np.deg2rad((180.0, 0.0, 30.0)))
    assert found.shape == (8, 6)
    poses = lw.frame_pose(lw.mechanisms.puma560(), found, "link6")
    np.testing.assert_allclose(poses, np.broadcast_to(wanted, poses.shape), atol=1e-12)
    text = run(*arguments, "--no-limits")
    assert "8 configurations" in text and f"{np.rad2deg(found[7, 0]):.6g}" in text
    assert "1 configuration within limits" in run(*arguments)
