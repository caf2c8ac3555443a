"""linkwise simulate: states by name, controllers, files, pictures."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linkwise as lw

FALL = ("simulate", "builtin:planar_arm:3", "--duration", 0.5)


def test_the_summary_is_that_of_the_motion(run):
    document = json.loads(run(*FALL, "--q", "joint1=0.3", "--v", "joint3=-2", "--json"))
    mech = lw.mechanisms.planar_arm(3)
    expected = lw.simulate(mech, [0.3, 0.0, 0.0], [0.0, 0.0, -2.0], 0.5, t_eval=0.01)
    np.testing.assert_array_equal(document["end"]["q"], expected.end.q)
    assert document["steps"] == len(expected.step_sizes) and document["rows"] == 51
    assert document["energy"]["largest_change"] < 1e-6 and document["stopped"] == "duration"
    text = run(*FALL, "--q", "joint1=0.3", "--v", "joint3=-2", "--degrees")
    assert "planar_arm_3: 0.5 s by dop853" in text and "angles in degrees" in text


def test_degrees_are_degrees_and_metres_stay(run):
    degrees = json.loads(run("simulate", "builtin:stanford_arm", "--q", "joint2=80", "--q", "joint3=0.2",
                             "--degrees", "--duration", 0.1, "--json"))  # fmt: skip
    np.testing.assert_allclose(degrees["start"]["q"], [0, np.radians(80), 0.2, 0, 0, 0])


def test_files_are_written_and_can_be_read_back(run, here):
    pytest.importorskip("matplotlib")
    out = run(*FALL, "-o", "a motion.csv", "--plot", "m.png", "--gif", "m.gif", "--every", 0.05)
    assert all(name in out for name in ("a motion.csv", "m.png", "m.gif"))
    assert (here / "m.png").read_bytes().startswith(b"\x89PNG") and (here / "m.gif").read_bytes().startswith(b"GIF8")
    run(*FALL, "-o", "m.npz", "--every", 0.05)
    trajectory = lw.files.load_trajectory(here / "m.npz")
    assert len(trajectory.t) == 11
    table = np.loadtxt(here / "a motion.csv", delimiter=",", skiprows=1)
    np.testing.assert_allclose(table[:, 1:4], trajectory.q)
    # A motion goes on from the last row of another.
    (here / "end.csv").write_text(
        "q1,q2,q3,v1,v2,v3\n" + ",".join(map(repr, np.r_[trajectory.end.q, trajectory.end.v].tolist()))
    )
    later = json.loads(run(*FALL, "--start", "end.csv", "--json"))
    np.testing.assert_array_equal(later["start"]["q"], trajectory.end.q)


def test_rows_on_standard_output_are_csv(run):
    names, *rows = run(*FALL, "-o", "-", "--every", 0.1).splitlines()
    assert names.startswith("t,q.joint1") and len(rows) == 6
    assert [float(row.split(",")[0]) for row in rows] == pytest.approx([0, 0.1, 0.2, 0.3, 0.4, 0.5])


def test_springs_dampers_and_held_gravity_lead_to_the_target(run):
    found = json.loads(
        run(
            "simulate",
            "builtin:planar_arm:2",
            "--duration",
            6,
            "--kp",
            60,
            "--kd",
            25,
            "--target",
            "joint1=0.7",
            "--target",
            "joint2=-0.4",
            "--hold-gravity",
            "--json",
        )  # fmt: skip
    )
    np.testing.assert_allclose(found["end"]["q"], [0.7, -0.4], atol=1e-2)
    held = json.loads(run("simulate", "builtin:planar_arm:2", "--duration", 1, "--hold-gravity", "--json"))
    np.testing.assert_allclose(held["end"]["q"], [0, 0], atol=1e-9)


def test_torques_from_a_table_drive_it_where_they_came_from(run, here):
    mech = lw.mechanisms.planar_arm(2)
    t = np.linspace(2.0, 3.0, 2001)  # a table need not begin at zero
    s = t[:, None] - 2.0
    q, v, a = (np.array([0.3, -0.5]) * x for x in (s**3, 3 * s**2, 6 * s))
    np.savez(here / "torques.npz", t=t, tau=lw.inverse_dynamics(mech, q, v, a))
    found = json.loads(run("simulate", "builtin:planar_arm:2", "--torques", "torques.npz", "--json"))
    np.testing.assert_allclose(found["end"]["q"], q[-1], atol=1e-5)
    assert found["duration"] == pytest.approx(1.0)


def test_a_closed_mechanism_is_assembled_around_the_joints_given(run):
    found = json.loads(run("simulate", "builtin:four_bar", "--q", "crank_joint=0.8", "--duration", 0.3, "--json"))
    mech = lw.mechanisms.four_bar()
    assert found["start"]["q"][mech.q_index("crank_joint")][0] == pytest.approx(0.8, abs=1e-14)
    assert np.linalg.norm(lw.constraints.position_error(mech, found["start"]["q"])) < 1e-10
    assert found["loop_gap"] < 1e-9 and found["energy"]["largest_change"] < 1e-6


def test_velocities_of_named_joints_are_kept_and_others_follow(run):
    document = json.loads(run("simulate", "builtin:bicycle", "--v", "rear_axle=15", "--duration", 0.1, "--json"))
    ahead, front = 15.0 * 0.3, 15.0 * 0.3 / 0.35
    np.testing.assert_allclose(document["start"]["v"], [0, 0, 0, ahead, 0, 0, 15.0, 0, front], atol=1e-12)
    np.testing.assert_allclose(document["end"]["q"][4], 0.1 * ahead)


def test_joints_of_several_numbers(run):
    mech = lw.mechanisms.random_tree(4, 2)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    several = [name for name in mech.joint_names if len(q[mech.q_index(name)]) > len(v[mech.v_index(name)]) > 1]
    assert several  # a joint that turns freely: a quaternion, and an angular velocity
    position, velocity = q[mech.q_index(several[0])], v[mech.v_index(several[0])]
    given = [f"{several[0]}=" + ",".join(map(repr, x.tolist())) for x in (position, velocity)]
    found = json.loads(
        run("simulate", "builtin:random_tree:4:2", "--q", given[0], "--v", given[1], "--duration", 0.01, "--json")
    )
    np.testing.assert_allclose(np.array(found["start"]["q"])[mech.q_index(several[0])], position, rtol=1e-14)
    np.testing.assert_allclose(np.array(found["start"]["v"])[mech.v_index(several[0])], velocity, rtol=1e-14)


BAD = [
    ((), "how long? Give --duration"),
    (("--duration", -1), "duration"),
    (("--duration", "nan"), "duration"),
    (("--duration", 1, "--q", "jiont1=2"), "has no moving joint 'jiont1': did you mean 'joint1'"),
    (("--duration", 1, "--q", "joint1"), "the form is JOINT=NUMBER"),
    (("--duration", 1, "--q", "joint1=1", "--q", "joint1=2"), "'joint1' is given twice"),
    (("--duration", 1, "--kp", "joint1=1", "--kp", "joint1=2"), "'joint1' is given twice"),
    (("--duration", 1, "--start", "-", "--torques", "-"), "standard input is one table"),
    (("--duration", 1, "--q", "joint1=x"), "'x' is no number"),
    (("--duration", 1, "--q", "joint1=1,2"), "takes 1 numbers"),
    (("--duration", 1, "--v", "joint1=inf"), "finite"),
    (("--duration", 1, "--q", "joint1=90"), "looks like degrees"),
    (("--duration", 1, "--target", "joint1=1"), "--target joint1=1 needs --kp"),
    (("--duration", 1, "--kp", -3), "kp must be"),
    (("--duration", 1, "--every", 0), "--every 0"),
    (("--duration", 1, "--every", 1e-9), "no more than"),
    (("--duration", 1, "-o", "motion.txt"), "must end in .csv or .npz"),
    (("--duration", 1, "--plot", "motion"), "must end in .png"),
    (("--duration", 1, "--gif", "motion.png"), "must end in .gif"),
    (("--duration", 1, "-o", "-", "--json"), "not both"),
    (("--duration", 1, "--method", "euler"), "unknown method 'euler'"),
    (("--duration", 1, "--start", "nowhere.csv"), "there is no file nowhere.csv"),
    (("--duration", 1, "-o", "no/folder/m.csv"), "no/folder/m.csv cannot be written: there is no folder no/folder"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_bad_input_is_one_line(run, options, message):
    assert message in run("simulate", "builtin:planar_arm:2", *options, fails=True)


def test_bad_torques(run, here):
    arm = ("simulate", "builtin:planar_arm:2", "--torques", "tau.csv")
    (here / "tau.csv").write_text("t,tau1,tau2\n0,1,2\n0,1,2\n")
    assert "t must increase" in run(*arm, fails=True)
    (here / "tau.csv").write_text("t,tau1,tau2\n0,1,2\n1,1,2\n")
    assert "covers 1 s" in run(*arm, "--duration", 2, fails=True)


def test_momenta_and_symplectic_methods(run):
    options = ("--q", "joint1=0.3", "--method", "stormer_verlet", "--step", 0.01)
    document = json.loads(run(*FALL, *options, "--coordinates", "momentum", "--json"))
    expected = lw.simulate(
        lw.mechanisms.planar_arm(3),
        [0.3, 0, 0],
        None,
        0.5,
        None,
        "stormer_verlet",
        0.01,
        settings=lw.motion.Settings(coordinates="momentum"),
    )
    np.testing.assert_array_equal(document["end"]["q"], expected.end.q)
    assert "give coordinates='momentum' with it" in run(*FALL, *options, fails=True)


def test_settings_that_the_help_names_are_those_that_are_taken(run, here):
    motion = ("simulate", "builtin:four_bar", "--v", "crank_joint=1", "--duration", 0.1, "--output", "motion.npz")
    for word in ("none", "None"):
        run(*motion, "--stabilization", word)
        assert lw.files.load_trajectory(here / "motion.npz").settings.stabilization is None
    chosen = ("--coordinates", "independent", "--independent", "crank_joint", "--worst-condition", 50)
    run(*motion, *chosen)
    recorded = lw.files.load_trajectory(here / "motion.npz").settings
    assert (recorded.coordinates, recorded.independent) == ("independent", ("crank_joint",))
    assert recorded.worst_condition == 50.0
    assert "needs coordinates='independent'" in run(*motion, *chosen[2:4], fails=True)
    text = " ".join(run("simulate", "--help").split())
    assert all(method in text.partition("--formulation")[2] for method in lw.constraints.ALL_METHODS)
    stabilization = text.partition("--stabilization TEXT")[2].partition("--baumgarte <")[0]
    assert "tolerance" not in stabilization and "none" in stabilization
