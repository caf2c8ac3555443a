"""Commands on MJCF files."""

import json

import numpy as np

import linkwise as lw

MJCF = """<mujoco model="crane"><option gravity="0 0 -1.6"/><worldbody>
  <body name="mast"><joint name="turn" range="-90 90"/><geom type="box" size="0.1 0.1 1"/>
    <body name="jib" pos="0 0 1"><joint name="lift" axis="0 1 0" pos="0.1 0 0"/>
      <geom type="capsule" size="0.05" fromto="0 0 0 2 0 0"/><site name="hook" pos="2 0 0"/></body></body>
</worldbody></mujoco>"""


def test_info(run, here):
    (here / "crane.xml").write_text(MJCF)
    facts = json.loads(run("info", "crane.xml", "--json"))
    assert (facts["name"], facts["nq"], facts["gravity"]) == ("crane", 2, [0, 0, -1.6])
    assert [joint["name"] for joint in facts["joints"]] == ["turn", "lift"]
    assert {"mast", "jib", "hook", "world"} <= {frame["name"] for frame in facts["frames"]}
    assert "jib/lift" in run("info", "crane.xml")


def test_dynamics(run, here):
    (here / "crane.xml").write_text(MJCF)
    q, v, a = np.random.default_rng(0).normal(size=(3, 4, 2))
    np.savez(here / "motion.npz", q=q, v=v, a=a)
    run("dynamics", "inverse", "crane.xml", "motion.npz", "-o", "torques.npz")
    found = np.load(here / "torques.npz")["tau"]
    np.testing.assert_allclose(found, lw.inverse_dynamics(lw.load(MJCF), q, v, a), rtol=1e-12)


def test_bad_files_are_one_line(run, here):
    (here / "crane.xml").write_text(MJCF.replace('name="lift"', 'name="lift" type="hing"'))
    assert 'crane.xml:3: <joint name="lift">: MuJoCo refuses it: invalid keyword' in run(
        "info", "crane.xml", fails=True
    )
    (here / "crane.xml").write_text(MJCF.replace("<option", '<include file="crane.xml"/><option'))
    assert "includes itself" in run("info", "crane.xml", fails=True)
