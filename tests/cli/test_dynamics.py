"""linkwise dynamics: files in, files out, and one clear line for every kind of bad input."""

from __future__ import annotations

import io

import numpy as np
import pytest

import linkwise as lw
from linkwise.cli import main
from papers import saha1999

STANFORD = """a,b,alpha_deg,theta_deg,kind,mass,rx,ry,rz,Ixx,Iyy,Izz
0,.2,-90,,,9,0,-.1,0,.01,.02,.01
0,.1,-90,,,6,0,0,0,.05,.06,.01
0,,0,0,prismatic,4,0,0,0,.4,.4,.01
0,.6,90,,,1,0,-.1,0,.001,.001,.0005
0,0,-90,,,.6,0,0,0,.0005,.0005,.0002
0,0,0,,,.5,0,0,0,.003,.001,.002
"""


def csv(text):
    """Column name -> array."""
    names, *rows = text.splitlines()
    return dict(zip(names.split(","), np.loadtxt(io.StringIO("\n".join(rows)), delimiter=",", ndmin=2).T, strict=True))


def stacked(columns, quantity, count):
    return np.stack([columns[name] for name in columns if name.startswith(f"{quantity}.")][:count], axis=1)


@pytest.fixture
def stanford_motion():
    """Rows of the motion of Figure 8."""
    t = np.linspace(0.0, 10.0, 21)
    return t, *saha1999.cycloid(saha1999.STANFORD_START, saha1999.STANFORD_END, 10.0, t)


def write_csv(path, **arrays):
    columns = {}
    for name, array in arrays.items():
        array = np.asarray(array)
        columns |= {name: array} if array.ndim == 1 else {f"{name}{k + 1}": c for k, c in enumerate(array.T)}
    lines = [",".join(columns), *(",".join(map(repr, map(float, row))) for row in zip(*columns.values(), strict=True))]
    path.write_text("\n".join(lines) + "\n")
    return path


# -- answers ------------------------------------------------------------------------------------------


def test_inverse_and_forward_from_csv_and_npz(run, here, stanford_motion):
    t, q, v, a = stanford_motion
    arm = lw.mechanisms.stanford_arm()
    tau = lw.inverse_dynamics(arm, q, v, a)
    file = write_csv(here / "motion.csv", t=t, q=q, v=v, a=a)
    found = csv(run("dynamics", "inverse", "builtin:stanford_arm", file))
    np.testing.assert_array_equal(found["t"], t)
    np.testing.assert_allclose(stacked(found, "tau", 6), tau, rtol=1e-15, atol=1e-18)

    np.savez(here / "motion.npz", q=q, v=v, a=a)
    run("dynamics", "inverse", "builtin:stanford_arm", "motion.npz", "--output", "torques.npz")
    with np.load("torques.npz") as archive:
        assert archive.files == ["tau"]  # there was no t
        np.testing.assert_array_equal(archive["tau"], tau)

    np.savez(here / "states.npz", q=q, v=v, tau=tau)
    run("dynamics", "forward", "builtin:stanford_arm", "states.npz", "-o", "accelerations.csv")
    found = csv((here / "accelerations.csv").read_text())
    np.testing.assert_allclose(stacked(found, "a", 6), a, atol=1e-12)


def test_closed_mechanisms(run, here, capsys):
    """A motor at the crank; accelerations of few digits are those of one joint, from which the others follow."""
    mech = lw.mechanisms.four_bar().with_gravity((0.0, -9.81, 0.0))
    q = np.array([lw.configuration(mech, crank_joint=x) for x in (0.5, 0.7, 1.1)])
    v = 2.0 * lw.constraints.null_space(mech, q, independent="crank_joint")[..., 0]
    expected = np.tile([0.4, 0.0, 0.0], (3, 1))
    a = lw.forward_dynamics(mech, q, v, expected)
    given = ("dynamics", "inverse", "builtin:four_bar", "--gravity", 0, -9.81, 0)
    file = write_csv(here / "motion.csv", t=[0.0, 0.1, 0.2], q=q, v=v, a=a)
    found = csv(run(*given, file, "--actuated", "crank_joint"))
    np.testing.assert_allclose(stacked(found, "tau", 3), expected, atol=1e-7)
    least = csv(run(*given, file))
    np.testing.assert_allclose(stacked(least, "tau", 3), lw.inverse_dynamics(mech, q, v, a), rtol=1e-12, atol=1e-12)
    write_csv(here / "rough.csv", q=q, v=v, a=a.round(3))
    assert main([str(x) for x in (*given, "rough.csv", "--actuated", "crank_joint")]) == 2
    assert "independent" in capsys.readouterr().err
    found = csv(run(*given, "rough.csv", "--actuated", "crank_joint", "--independent", "crank_joint"))
    np.testing.assert_allclose(stacked(found, "tau", 3), expected, atol=2e-3)


def test_dh_tables_degrees_and_gravity(run, here, stanford_motion):
    t, q, v, a = stanford_motion
    (here / "arm.csv").write_text(STANFORD)
    turning = np.array([180 / np.pi, 180 / np.pi, 1.0, *[180 / np.pi] * 3])
    file = write_csv(here / "motion.csv", q=q * turning, v=v * turning, a=a * turning)
    options = ("--convention", "saha1999", "--degrees", "--gravity", 0, 0, 9.81)
    found = csv(run("dynamics", "inverse", "arm.csv", file, *options))
    expected = lw.inverse_dynamics(saha1999.stanford_arm(), q, v, a)
    np.testing.assert_allclose(stacked(found, "tau", 6), expected, atol=1e-12)


def test_columns_by_joint_name_in_any_order(run, here):
    (here / "m.csv").write_text("a.joint2,q.joint1,q2,v1,v2,a1,t,energy\n5,1,2,3,4,6,0,9\n")
    found = csv(run("dynamics", "inverse", "builtin:planar_arm:2", "m.csv"))
    expected = lw.inverse_dynamics(lw.mechanisms.planar_arm(2), [1.0, 2.0], [3.0, 4.0], [6.0, 5.0])
    np.testing.assert_allclose([found["tau.joint1"][0], found["tau.joint2"][0]], expected)


# -- bad input ----------------------------------------------------------------------------------------

GOOD = "q1,q2,v1,v2,a1,a2\n0.1,0.2,0.3,0.4,0.5,0.6\n"
BAD_CSV = {
    "q1,q2,v1,v2\n1,2,3,4\n": "m.csv has no a.joint1 ... a.joint2; needed are q.joint1 ... q.joint2",
    "q1,v1,v2,a1,a2\n1,2,3,4,5\n": "m.csv has no column q.joint2",
    "q1,q2,v1,v2,a1,a2,a3\n1,2,3,4,5,6,7\n": "m.csv: 'a3' is no column of planar_arm_2",
    "q1,q2,v1,v2,a1,speed\n1,2,3,4,5,6\n": "m.csv: 'speed' is no column of planar_arm_2",
    "q1,q1,v1,v2,a1,a2\n1,2,3,4,5,6\n": "m.csv has two columns 'q1'",
    "q1,q.joint1,v1,v2,a1,a2\n1,2,3,4,5,6\n": "m.csv: the columns 'q1' and 'q.joint1' are the same number",
    "q_joint1,q2,v1,v2,a1,a2\n1,2,3,4,5,6\n": "columns are t, q.joint1 ... q.joint2, v.joint1 ... v.joint2, a.joint1",
    "0,1,2,3,4,5\n0,1,2,3,4,5\n": "the first line must name the columns",
    "q1;q2;v1;v2\n0,1;0;0;0\n": "m.csv: commas are expected between columns, and points in numbers",
    "q1\tq2\n0\t0\n": "m.csv: commas are expected between columns",
    "q1,q2,v1,v2,a1,\n1,2,3,4,5,6\n": "m.csv: '' is no column of planar_arm_2",
    "": "m.csv is empty",
    "q1,q2,v1,v2,a1,a2\n": "m.csv has no rows",
    GOOD + "1,2,3\n": "m.csv, line 3: 3 values, but the first line names 6 columns",
    GOOD + "1,2,x,4,5,6\n": "m.csv, line 3: v1 is 'x', which is no number",
    GOOD + "1,2,,4,5,6\n": "m.csv, line 3: v1 is '', which is no number",
    GOOD + "1,nan,3,4,5,6\n": "m.csv, line 3: q2 is nan, which is not finite",
    GOOD + "1,2,3,4,5,-inf\n": "m.csv, line 3: a2 is -inf, which is not finite",
    GOOD
    + "60,2,3,4,5,6\n": "m.csv: q.joint1 reaches 60, which looks like degrees; radians are expected: use --degrees",
}


def test_tables_as_numpy_and_spreadsheets_write_them(run, here):
    expected = None
    for text in (
        GOOD + "1,2,3,4,5,6\n",
        "# " + GOOD + "1,2,3,4,5,6\n",
        "\ufeff" + (GOOD + "1,2,3,4,5,6\n").replace("\n", ",,\r\n") + ",,,,,,,\r\n",
    ):
        (here / "m.csv").write_text(text, encoding="utf-8")
        found = run("dynamics", "inverse", "builtin:planar_arm:2", "m.csv")
        expected = expected or found
        assert found == expected


@pytest.mark.parametrize("text", BAD_CSV, ids=lambda text: repr(text)[-25:])
def test_bad_csv(run, here, text):
    (here / "m.csv").write_text(text)
    assert BAD_CSV[text] in run("dynamics", "inverse", "builtin:planar_arm:2", "m.csv", fails=True)


def npz(**changes):
    arrays = {"q": np.zeros((4, 2)), "v": np.zeros((4, 2)), "a": np.zeros((4, 2))}
    return {name: array for name, array in {**arrays, **changes}.items() if array is not None}


BAD_NPZ = [
    (npz(v=np.zeros((3, 2))), "q has 4 rows, v has 3 rows, a has 4 rows"),
    (npz(a=None), "m.npz has no a.joint1 ... a.joint2"),
    (npz(q=np.zeros((4, 3))), "q has shape (4, 3), expected (rows, 2)"),
    (npz(t=np.zeros((4, 1))), "t has shape (4, 1), expected (rows,)"),
    (npz(q=np.full((4, 2), np.nan)), "q[0, 0] is nan, which is not finite"),
    (npz(q=np.array([["a", "b"]] * 4)), "q has dtype <U1, real numbers are needed"),
    (npz(q=np.array([[{}, {}]] * 4)), "m.npz is no npz archive of numbers"),
    ({name: np.zeros((0, 2)) for name in "qva"}, "m.npz has no rows"),
]


@pytest.mark.parametrize(("arrays", "complaint"), BAD_NPZ, ids=[complaint[:25] for _, complaint in BAD_NPZ])
def test_bad_npz(run, here, arrays, complaint):
    np.savez(here / "m.npz", **arrays)
    assert complaint in run("dynamics", "inverse", "builtin:planar_arm:2", "m.npz", fails=True)


def test_what_is_no_table(run, here):
    (here / "m.npz").write_bytes(b"not an archive")
    (here / "m.csv").write_bytes(b"\xff\xfe\x00")
    (here / "m.txt").write_text(GOOD)
    for file, complaint in (
        ("m.npz", "m.npz is no npz archive"),
        ("m.csv", "m.csv is no text file"),
        ("m.txt", "m.txt: tables of numbers are .csv or .npz files"),
        ("absent.csv", "there is no file absent.csv"),
    ):
        assert complaint in run("dynamics", "inverse", "builtin:planar_arm:2", file, fails=True)
    (here / "good.csv").write_text(GOOD)
    message = run("dynamics", "inverse", "builtin:planar_arm:2", "good.csv", "-o", "out.txt", fails=True)
    assert "out.txt: the name must end in .csv or .npz" in message


def test_numbers_that_look_like_other_units_can_be_insisted_on(run, here):
    (here / "m.csv").write_text("q1,q2,v1,v2,a1,a2\n60,2,3,4,5,6\n")
    assert "tau.joint1" in run("dynamics", "inverse", "builtin:planar_arm:2", "m.csv", "--trust-units")
    (here / "slide.csv").write_text("q1,q2,v1,v2,a1,a2\n250,0,0,0,0,0\n")
    message = run("dynamics", "inverse", "builtin:cart_pole", "slide.csv", fails=True)
    assert "reaches 250, which looks like millimetres; metres are expected" in message


def test_columns_by_joint_name_and_what_simulate_wrote(run, here):
    """The names of joints, with [k] where one has several numbers, in what is written and in what is read."""
    run("simulate", "builtin:random_tree:3:2", "--duration", 0.02, "-o", "motion.csv")
    found = csv(run("dynamics", "inverse", "builtin:random_tree:3:2", "motion.csv"))
    assert max(np.abs(column).max() for name, column in found.items() if name != "t") < 1e-8  # nothing drove it
    mech = lw.mechanisms.random_tree(3, 2)
    names = [
        f"{what}.{joint}" + (f"[{k}]" if count > 1 else "")
        for what, index in (("q", mech.q_index), ("v", mech.v_index), ("a", mech.v_index))
        for joint in mech.joint_names
        for count in [index(joint).stop - index(joint).start]
        for k in range(count)
    ]
    q, v = lw.random_state(mech, np.random.default_rng(1))
    row = np.concatenate([q, v, v])
    (here / "named.csv").write_text(",".join(names) + "\n" + ",".join(map(repr, map(float, row))) + "\n")
    found = csv(run("dynamics", "inverse", "builtin:random_tree:3:2", "named.csv", "--trust-units"))
    assert [name.replace("tau", "v") for name in found] == [name for name in names if name.startswith("v.")]
    np.testing.assert_allclose([column[0] for column in found.values()], lw.inverse_dynamics(mech, q, v, v))


def test_forward_dynamics_keeps_loops_closed(run, here):
    mech = lw.mechanisms.four_bar()
    q = lw.constraints.assemble(mech, lw.neutral(mech))
    write_csv(here / "states.csv", q=q[None], v=np.zeros((1, mech.nv)), tau=np.ones((1, mech.nv)))
    found = csv(run("dynamics", "forward", "builtin:four_bar", "states.csv"))
    expected = lw.forward_dynamics(mech, q, np.zeros(mech.nv), np.ones(mech.nv))
    np.testing.assert_allclose(stacked(found, "a", mech.nv)[0], expected, rtol=1e-12)


def test_bad_robots(run, here):
    (here / "m.csv").write_text(GOOD)
    message = run("dynamics", "inverse", "builtin:planar_arm:2", "m.csv", "--convention", "saha1999", fails=True)
    assert "--convention is for DH tables" in message
    assert "there is no file arm.toml" in run("dynamics", "inverse", "arm.toml", "m.csv", fails=True)
    (here / "arm.csv").write_text("a,alpha,d\n0.1,-90,0.2\n")
    assert "alpha = -90 looks like degrees" in run("dynamics", "inverse", "arm.csv", "m.csv", fails=True)
    assert "gravity" in run(
        "dynamics", "inverse", "builtin:planar_arm:2", "m.csv", "--gravity", "nan", 0, 0, fails=True
    )
    message = run("dynamics", "simulate", "builtin:planar_arm:2", "--duration", 1, fails=True)
    assert "simulate is a command of its own: linkwise simulate FILE" in message
