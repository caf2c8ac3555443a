"""linkwise linearize: numbers as the library gives them, states by name, files."""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

import linkwise as lw


def test_the_document_holds_the_model(run):
    found = json.loads(run("linearize", "builtin:cart_pole", "--q", "hinge=0.3", "--json"))
    mech = lw.mechanisms.cart_pole()
    q = np.zeros(2)
    q[mech.q_index("hinge")] = 0.3
    model = lw.linearize(mech, q)
    np.testing.assert_array_equal(found["A"], model.A)
    np.testing.assert_array_equal(found["B"], model.B)
    values = np.array([complex(*pair) for pair in found["eigenvalues"]])
    np.testing.assert_array_equal(values, model.eigenvalues())
    assert not found["equilibrium"] and found["states"] == list(model.state_names)


def test_equilibria_are_found_and_told(run):
    text = run("linearize", "builtin:double_pendulum", "--q", "shoulder=0.2", "--at", "equilibrium")
    assert "4 states, an equilibrium" in text and "frequency (Hz)" in text
    hanging = json.loads(
        run("linearize", "builtin:double_pendulum", "--q", "shoulder=0.2", "--at", "equilibrium", "--json")
    )
    frequencies = sorted(mode["frequency_hz"] for mode in hanging["modes"])
    mech = lw.mechanisms.double_pendulum()
    stiffness = -np.array(hanging["A"])[2:, :2]
    np.testing.assert_allclose(
        frequencies, np.sort(np.sqrt(np.linalg.eigvals(stiffness).real)) / (2 * np.pi), rtol=1e-9
    )
    assert np.abs(lw.gravity_force(mech, hanging["q"])).max() < 1e-9


def test_stable_equilibria_are_reached_by_going_down(run):
    upright = ("linearize", "builtin:double_pendulum", "--q", "shoulder=3.1", "--at", "equilibrium")
    assert "an equilibrium, unstable" in run(*upright)
    found = json.loads(run(*upright, "--stable", "--json"))
    assert found["stable"] is True and np.abs(found["q"]).max() < 1e-6
    message = run("linearize", "builtin:double_pendulum", "--stable", fails=True)
    assert "--stable is for --at equilibrium" in message


def test_large_matrices_stay_in_files(run, monkeypatch):
    assert "shoulder.rate" in run("linearize", "builtin:double_pendulum")
    monkeypatch.setattr(sys.modules["linkwise.cli.linearize"], "MOST_STATES", 3)
    text = run("linearize", "builtin:double_pendulum")
    assert "A is 4 x 4, B is 4 x 2: --json and -o FILE.npz have their numbers" in text and "shoulder.rate" not in text


def test_a_loader_held_by_its_cylinders(run, here):
    pytest.importorskip("matplotlib")
    cylinders = "lift_piston_joint,tilt_piston_joint"
    out = run("linearize", "builtin:loader", "--at", "held", "--inputs", cylinders, "--independent", cylinders,
              "-o", "model.npz", "--plot", "values.png")  # fmt: skip
    assert "loader: 4 states, an equilibrium" in out and "values.png" in out
    assert (here / "values.png").read_bytes().startswith(b"\x89PNG")
    mech = lw.mechanisms.loader()
    with np.load(here / "model.npz") as model:
        pushed = [mech.v_index(name).start for name in cylinders.split(",")]
        assert np.count_nonzero(np.delete(model["tau"], pushed)) == 0 and (model["tau"][pushed] > 0).all()
        assert model["A"].shape == (4, 4) and model["B"].shape == (4, 2)


BAD = [
    (("--at", "held", "--v", "shoulder=1"), "is a state of rest: leave --v out"),
    (("--independent", "sholder"), "sholder"),
    (("--inputs", "elbo"), "did you mean"),
    (("-o", "model.csv"), "must end in .npz"),
    (("--plot", "values.doc"), ".png"),
    (("--q", "elbow=400"), "looks like degrees"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_bad_input_is_one_line(run, options, message):
    assert message in run("linearize", "builtin:double_pendulum", *options, fails=True)


def test_control_inputs(run, here):
    """Actuators are the inputs where their control inputs are given."""
    servo = """<mujoco><worldbody><body><joint name="hip" axis="0 1 0"/><geom size="0.1" pos="0.5 0 0"/></body>
      </worldbody><actuator><position name="servo" joint="hip" kp="50"/></actuator></mujoco>"""
    (here / "servo.xml").write_text(servo)
    found = json.loads(run("linearize", "servo.xml", "--ctrl", "servo=0.4", "--at", "equilibrium", "--json"))
    assert found["inputs"] == ["servo"] and found["stable"]
    mech = lw.load(here / "servo.xml")
    rest = lw.find_equilibrium(mech, ctrl={"servo": 0.4})
    assert found["q"] == pytest.approx(rest.q.tolist()) and 0.0 < abs(found["q"][0] - 0.4) < 1.0
    assert "has no actuator 'knee'" in run("linearize", "servo.xml", "--ctrl", "knee=1", fails=True)
