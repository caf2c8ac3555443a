"""Tables of states in files, written and read again, in radians and degrees."""

from __future__ import annotations

import io

import numpy as np
import pytest

import linkwise as lw

ENDINGS = (".csv", ".npz")


def states(mech, rng, count=4):
    q, v = lw.random_state(mech, rng, (count,))
    a = rng.normal(size=v.shape)
    return {"t": 0.1 * np.arange(count), "q": q, "v": v, "a": a, "tau": lw.inverse_dynamics(mech, q, v, a)}


@pytest.mark.parametrize("ending", ENDINGS)
@pytest.mark.parametrize("degrees", [False, True])
@pytest.mark.parametrize("seed", range(4))
def test_what_is_written_is_read(tmp_path, ending, degrees, seed):
    """All kinds of joints, quaternions too; joints by name."""
    mech = lw.mechanisms.random_tree(6, seed, floating_base=seed % 2 == 0)
    table = states(mech, np.random.default_rng(seed))
    lw.files.write_table(tmp_path / f"states{ending}", mech, table, degrees)
    again = lw.files.read_table(tmp_path / f"states{ending}", mech, degrees=degrees, trust_units=True)
    assert list(again) == ["q", "t", "v", "a", "tau"]
    for name, values in table.items():
        np.testing.assert_allclose(again[name], values, rtol=1e-14, atol=1e-300)


def test_angles_alone_are_converted():
    mech = lw.mechanisms.cart_pole()
    numbers = lw.files.in_degrees(mech, "q", [[2.0, np.pi]])
    np.testing.assert_allclose(numbers, [[2.0, 180.0]])
    np.testing.assert_allclose(lw.files.in_radians(mech, "q", numbers), [[2.0, np.pi]])
    assert lw.files.in_radians(mech, "v", [90.0], joint=mech.joint_names[1])[0] == np.pi / 2
    assert lw.files.in_radians(mech, "v", [90.0], joint=mech.joint_names[0])[0] == 90.0
    ball = lw.mechanisms.random_tree(1, 0, [lw.Spherical])  # quaternions have no unit, angular velocities do
    np.testing.assert_array_equal(lw.files.in_degrees(ball, "q", np.ones(4)), np.ones(4))
    np.testing.assert_allclose(lw.files.in_degrees(ball, "v", np.ones(3)), np.degrees(np.ones(3)))


def test_columns_of_actuators_are_passed_over(tmp_path):
    mech = lw.mechanisms.planar_arm(1)
    motor = lw.forces.Actuator("motor", mech.joint_names[0])
    mech = mech.with_elements(motor)
    motion = lw.simulate(mech, [0.3], [0.1], 0.05, ctrl=[0.2])
    motion.save(tmp_path / "motion.csv")
    assert "ctrl.motor" in (tmp_path / "motion.csv").read_text().splitlines()[0]
    again = lw.files.read_table(tmp_path / "motion.csv", mech)
    np.testing.assert_array_equal(again["q"], motion.q)


def test_energies_tell_the_unit(tmp_path):
    mech = lw.mechanisms.planar_arm(2)
    motion = lw.simulate(mech, [0.3, 0.2], [0.1, 0.0], 0.1)
    names, rows = motion.table()
    table = {name: rows[:, k] for k, name in enumerate(names) if name.endswith("energy")}
    table = {"t": motion.t, "q": motion.q, "v": motion.v, **table}
    for degrees in (False, True):
        lw.files.write_table(tmp_path / "motion.csv", mech, table, degrees)
        again = lw.files.read_table(tmp_path / "motion.csv", mech, degrees=degrees)
        np.testing.assert_allclose(again["q"], motion.q, rtol=1e-14)
        word = "degrees" if degrees else "radians"
        with pytest.raises(lw.MechanismError, match=f"angles are in {word}, as its kinetic energies show"):
            lw.files.read_table(tmp_path / "motion.csv", mech, degrees=not degrees)


def test_streams_and_numbers_of_other_units():
    mech = lw.mechanisms.planar_arm(2)
    text = io.StringIO()
    lw.files.write_table(text, mech, {"q": np.array([[99.0, 0.0]])})
    assert text.getvalue() == "q.joint1,q.joint2\n99.0,0.0\n"
    data = text.getvalue().encode()
    with pytest.raises(lw.MechanismError, match="standard input: q.joint1 reaches 99, which looks like degrees"):
        lw.files.read_table(io.BytesIO(data), mech)
    assert lw.files.read_table(io.BytesIO(data), mech, trust_units=True)["q"][0, 0] == 99.0
    np.testing.assert_allclose(lw.files.read_table(io.BytesIO(data), mech, degrees=True)["q"][0, 0], np.radians(99.0))
    with pytest.raises(lw.MechanismError, match="q reaches|q: q.joint1 reaches"):
        lw.files.check_units(mech, [99.0, 0.0])
