"""linkwise convert writes what is read again."""

from __future__ import annotations

import numpy as np

import linkwise as lw


def test_there_and_back(run, here, capsys):
    out = run("convert", "builtin:puma560", "puma.xml")
    assert out == "puma.xml: puma560, 6 moving links, nq=6, nv=6\n"
    run("convert", "puma.xml", "puma.urdf")
    arms = lw.mechanisms.puma560(), lw.load(here / "puma.xml"), lw.load(here / "puma.urdf")
    q = np.linspace(-1.0, 1.0, 6)
    first, *others = (lw.compile("bias_force", arm, target="numpy")(q, q) for arm in arms)
    for other in others:
        np.testing.assert_allclose(other, first, rtol=0, atol=1e-12)


def test_pages_to_look_at(run, here):
    assert run("convert", "builtin:planar_arm:2", "arm.html") == "arm.html: planar_arm_2, 2 moving links, nq=2, nv=2\n"
    assert (here / "arm.html").read_text() == lw.mechanisms.planar_arm(2).show().html
    assert "motion.html" in run("simulate", "builtin:planar_arm:2", "--duration", "0.1", "-o", "motion.html")
    assert '"frames":7' in (here / "motion.html").read_text()
    run("simulate", "builtin:planar_arm:2", "--duration", "0.1", "-o", "motion.csv")
    told = run("view", "builtin:planar_arm:2", "--motion", "motion.csv", "--save", "played.html")
    assert told == "played.html: planar_arm_2, to be opened in a browser\n"
    assert '"frames":7' in (here / "played.html").read_text()
    run("view", "builtin:planar_arm:2", "--q", "joint2=0.5", "--save", "bent.html")
    assert '"q":[0.0,0.5]' in (here / "bent.html").read_text()
    assert "must end in .html" in run("view", "builtin:planar_arm:2", "--save", "a.png", fails=True)


def test_what_is_left_out_is_told(here, capsys):
    from linkwise.cli import main

    assert main(["convert", "builtin:four_bar", "bars.urdf"]) == 0
    out, err = capsys.readouterr()
    assert "loops as <loop> of URDF+, which others skip: pin" in err and out.startswith("bars.urdf: four_bar")


def test_bad_input_is_one_line(run, here):
    assert "no ending of a format that mechanisms are saved in" in run(
        "convert", "builtin:puma560", "a.sdf", fails=True
    )
    assert "velocity limit of" in run("convert", _limited(here), "b.xml", "--strict", fails=True)
    assert not (here / "b.xml").exists()


def _limited(here) -> str:
    mech = lw.mechanisms.cart_pole().with_limits(rail=lw.Limits(-1.0, 1.0, 2.0))
    mech.save(here / "cart.urdf")
    return "cart.urdf"
