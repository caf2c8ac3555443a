"""Studies in TOML files, what is wrong with them, and the command that runs them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st
from linkwise.cli import main

TEXT = """
mechanism = "builtin:planar_arm:2"
cases = 40
seed = 3
chunk = 16
store = "a.zarr"

[vary]
payload.link2.mass = {uniform = [0.0, 2.0]}
mass = {normal = [1.0, 0.02], as = "factor"}
q0 = {normal = {mean = 0.0, std = 0.1}, as = "offset"}
v0 = {joint1 = {choice = [0.0, 1.0]}}
kd = 0.5

[rollout]
dt = 0.01
steps = 10
every = 5
"""


def written(folder, text=TEXT):
    file = folder / "study.toml"
    file.write_text(text)
    return file


def test_a_file_says_what_python_says(tmp_path):
    found = st.load_study(written(tmp_path))
    vary = {
        "payload.link2.mass": st.distributions.Uniform(0.0, 2.0),
        "mass": st.distributions.Relative(st.distributions.Normal(1.0, 0.02)),
        "q0": st.distributions.Offset(st.distributions.Normal(0.0, 0.1)),
        "v0.joint1": st.distributions.Choice([0.0, 1.0]),
        "kd": 0.5,
    }
    same = st.Study(lw.mechanisms.planar_arm(2), st.Rollout(0.01, 10, every=5), vary, cases=40, seed=3, chunk=16)
    assert found.study.record() == same.record() and found.store == tmp_path / "a.zarr"


@pytest.mark.parametrize(
    "old, new, message",
    [
        ("cases = 40", "casses = 40", "unknown key 'casses'; did you mean 'cases'?"),
        ("cases = 40", 'cases = "many"', "cases must be an integer, not 'many'"),
        ("cases = 40", "cases = 1.5", "cases must be an integer, not 1.5"),
        ("dt = 0.01", "dtt = 0.01", r"\[rollout\] unknown key 'dtt'; did you mean 'dt'"),
        ("dt = 0.01", "", r"\[rollout\] needs dt"),
        ("steps = 10", "steps = true", r"\[rollout\] steps must be an integer, not True"),
        (
            "every = 5",
            'method = "rk5"',
            r"\[rollout\] method.*'rk5' is unknown; did you mean 'rk4'.*available: .*semi_",
        ),
        ("every = 5", 'coordinates = "momenta"', r"\[rollout\] coordinates.*'momenta'.*did you mean 'momentum'"),
        ("every = 5", "every = 0", r"\[rollout\] every must be an integer, at least 1, not 0"),
        ("every = 5", "every = 5\nfinal_only = true", r"\[rollout\] every: give it or final_only"),
        ("every = 5", 'frames = ["hand"]', r"\[rollout\] frames: 'hand' is unknown; .*available: .*link1"),
        ("every = 5", 'frames = "tip"', r"\[rollout\] frames must be a list of names"),
        ("every = 5", "tau = [1.0]", r"\[rollout\] tau must have shape \(2\).*joint1, joint2"),
        ("every = 5", "tau = {elbow = 1.0}", r"\[rollout\] tau: 'elbow' is unknown; available: joint1, joint2"),
        ("every = 5", "tau = [[1.0, 1.0], [1.0, 2.0]]", r"\[rollout\] tau has 2 rows in time, and steps is 10"),
        ("every = 5", "ctrl = {motor = 1.0}", r"\[rollout\] ctrl: no actuator of mechanism 'planar_arm_2' acts"),
        ("every = 5", "feedback = {gains = 3.0}", r"\[rollout\] feedback: 'gains' is unknown; did you mean 'gain'"),
        ("every = 5", "feedback = {kp = [1.0]}", r"\[rollout\] feedback.kp must have shape \(2\)"),
        ("every = 5", 'wrenches = "none"', r"\[rollout\] wrenches must be numbers, not 'none'"),
        (
            "[rollout]\ndt = 0.01\nsteps = 10\nevery = 5",
            "[equilibria]\nholdd = 3",
            r"\[equilibria\] option .*'holdd'.*'hold'",
        ),
        (
            "[rollout]\ndt = 0.01\nsteps = 10\nevery = 5",
            '[singularities]\nlink = "top"',
            r"\[singularities\] link: 'top'",
        ),
        ("[rollout]", "[rollouts]", "unknown key 'rollouts'; did you mean 'rollout'"),
        (
            "[rollout]",
            "[equilibria]\n[rollout]",
            r"one table says what to compute: .*found: \[rollout\], \[equilibria\]",
        ),
        ("builtin:planar_arm:2", "builtin:planar_leg", "mechanism: unknown built-in mechanism 'planar_leg'"),
        ("builtin:planar_arm:2", "arm.urdf", "mechanism: there is no file"),
        ('mechanism = "builtin:planar_arm:2"', "", "the mechanism is missing"),
        ("uniform = [0.0, 2.0]", "unifrom = [0.0, 2.0]", "unknown distribution 'unifrom'; did you mean 'uniform'"),
        ("uniform = [0.0, 2.0]", "uniform = [0.0, 1.0, 2.0]", "uniform has the numbers low, high; given"),
        ("uniform = [0.0, 2.0]", "uniform = 2.0", "must be a list, not 2.0"),
        ("uniform = [0.0, 2.0]", "uniform = [2.0, 0.0]", "vary: payload.link2.mass: .*low must not be above high"),
        ("normal = [1.0, 0.02]", "normal = [1.0, -1]", "vary: mass: .*std must not be negative"),
        ("normal = [1.0, 0.02]", "normal = [1.0, nan]", "vary: mass: .*std must be a number, not NaN"),
        ("mean = 0.0", "men = 0.0", "unknown key 'men'; did you mean 'mean'"),
        ('"factor"', '"percent"', "as = 'percent' is unknown; available: factor, offset"),
        ("joint1 =", "elbow =", "v0.elbow: mechanism 'planar_arm_2' has no moving joint 'elbow'"),
        ("link2.mass", "hand.mass", "no link 'hand'; available"),
        ("kd = 0.5", 'kd = "stiff"', "kd = 'stiff' is no number"),
        ("cases = 40", "cases = ", "Invalid value"),
        ("[rollout]", '[function]\nfunction = "f.py"\n[rollout]', "one table"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, old, new, message):
    assert old in TEXT
    with pytest.raises(st.StudyError, match=f"study.toml: .*{message}"):
        st.load_study(written(tmp_path, TEXT.replace(old, new, 1)))


def test_functions_in_files(tmp_path):
    (tmp_path / "measures.py").write_text(
        "def speed(cases, t, q, v):\n    return {'speed': abs(v[:, -1]).max(axis=1)}\n"
    )
    text = TEXT + 'measure = "measures.py:speed"\n'
    found = st.load_study(written(tmp_path, text)).study.run()
    plain = st.load_study(written(tmp_path)).study.run()
    assert np.array_equal(found["speed"], np.abs(plain["velocities"][:, -1]).max(axis=1))
    for name, message in (
        ("measures.py:height", "has no function 'height'"),
        ("nothing.py:f", "no file"),
        ("f", "FILE.py:"),
    ):
        with pytest.raises(st.StudyError, match=message):
            st.load_study(written(tmp_path, TEXT + f'measure = "{name}"\n'))
    models = TEXT[: TEXT.index("[rollout]")] + '[linear_models]\nat = "equilibrium"\ninputs = ["joint1"]\n'
    assert st.load_study(written(tmp_path, models)).study.compute == st.LinearModels(
        "equilibrium", {"inputs": ["joint1"]}
    )


def test_the_command(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    written(tmp_path)
    assert main(["study", "study.toml", "--table", "t.csv", "--plot", "p.png"]) == 0
    out, err = capsys.readouterr()
    assert "40 cases, positions (rad) at the end" in out and "joint2" in out and "stored in a.zarr" in out
    assert err == "linkwise: t.csv has a row per case, without positions, velocities over time: see --store\n"
    assert (tmp_path / "t.csv").read_text().count("\n") == 41 and (tmp_path / "p.png").exists()
    assert main(["study", "study.toml", "--json", "--of", "velocities"]) == 0  # from the store
    document = json.loads(capsys.readouterr().out)
    results = st.open_study(tmp_path / "a.zarr")
    mean = results["velocities"][:, -1].mean(axis=0)
    assert document["cases"] == 40 and np.allclose(
        [document["entries"][joint][0] for joint in ("joint1", "joint2")], mean, rtol=1e-14
    )
    written(tmp_path, TEXT.replace("seed = 3", "seed = 4"))
    for arguments, message in (
        (["study.toml"], "another study: seed was 3, is 4"),
        (["nothing.toml"], "there is no file nothing.toml"),
        (["study.toml", "--of", "speed", "--store", "b.zarr"], "no result 'speed'; available"),
        (["study.toml", "--cluster", "a", "--processes", "2"], "give one"),
    ):
        assert main(["study", *arguments]) == 2
        assert message in capsys.readouterr().err
