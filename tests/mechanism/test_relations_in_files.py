"""Relations of positions are saved as formulas: what is read again does the same."""

from __future__ import annotations

import numpy as np
import pytest
from linkwise.extend.scalar import atan2, cos, select, sin, sqrt

import linkwise as lw
from linkwise.mechanism.plain_data import from_data, to_data
from linkwise.mechanism.relations import Formula, formula_of

RISE, QUARTER = 0.03, np.pi / 2


def dwell(angle):
    """The lift of a cam with a dwell, as the page on cams has it."""
    from_middle = atan2(sin(angle), cos(angle))
    behind = select(from_middle < 0.0, -from_middle, from_middle) / QUARTER - 0.5
    share = select(behind < 0.0, 0.0, select(behind > 1.0, 1.0, behind))
    return RISE * (1.0 - share + sin(2 * np.pi * share) / (2 * np.pi))


def cam(relation, joints=("cam", "lift")) -> lw.Mechanism:
    builder = lw.Builder().link("disk", 2.0, inertia=(4e-3, 4e-3, 8e-3)).link("follower", 0.4, inertia=(1e-4,) * 3)
    builder.joint(joints[0], lw.Revolute((0, 0, 1)), "ground", "disk")
    builder.joint(joints[1], lw.Prismatic((0, 1, 0)), "ground", "follower", (0, 0.06, 0))
    return builder.relation("profile", joints, relation, 0.001).build("cam", gravity=(0, -9.81, 0))


RELATIONS = [
    lambda q: q["lift"] - dwell(q["cam"]),
    lambda q: 3 - (1.5 - q["lift"]) ** 2 / (2 - cos(q["cam"])) + sqrt(2 + sin(q["cam"] * -2.0)),
    lambda q: -(q["lift"] - 0.1) * (q["cam"] - (q["lift"] - 1.0)) - q["cam"] / (q["lift"] + 2.0) / 3.0,
    lambda q: atan2(1.0, q["cam"]) + 1.0 / q["lift"] - (-2.5) * q["cam"],
]


@pytest.mark.parametrize("relation", RELATIONS)
def test_text_does_what_the_function_does(relation):
    formula = formula_of(relation, ("cam", "lift"))
    rng = np.random.default_rng(1)
    for _ in range(20):
        q = {"cam": rng.uniform(-4.0, 4.0), "lift": rng.uniform(0.1, 2.0)}
        assert formula(q) == pytest.approx(relation(q), rel=1e-14, abs=1e-14)
    assert formula_of(formula, ("cam", "lift")) is formula and Formula(formula.lines) == formula


def test_parts_that_are_used_twice_are_named_once():
    formula = formula_of(RELATIONS[0], ("cam", "lift"))
    assert formula.lines[0] == "x1 = atan2(sin(q['cam']), cos(q['cam']))"
    assert sum("atan2" in line for line in formula.lines) == 1


def test_a_cam_is_saved_and_read(tmp_path):
    mech = cam(RELATIONS[0])
    with pytest.warns(lw.MechanismWarning, match="cam.loops.toml"):
        mech.save(tmp_path / "cam.urdf")
    again = lw.load(tmp_path / "cam.urdf")
    q = np.random.default_rng(0).uniform(-2.0, 2.0, (5, 2))
    np.testing.assert_allclose(
        lw.constraints.position_error(again, q), lw.constraints.position_error(mech, q), atol=1e-14
    )
    np.testing.assert_allclose(
        lw.constraints.constraint_jacobian(again, q), lw.constraints.constraint_jacobian(mech, q), atol=1e-14
    )
    with pytest.warns(lw.MechanismWarning, match="cam2.loops.toml"):
        again.save(tmp_path / "cam2.urdf")
    first, second = ((tmp_path / f"{name}.loops.toml").read_text() for name in ("cam", "cam2"))
    assert first == second
    assert to_data(mech)["loops"] == to_data(again)["loops"]
    assert from_data(to_data(again)) == again
    with pytest.raises(lw.MechanismError, match="MJCF has no equality for the relation 'profile'.*save it as URDF"):
        mech.save(tmp_path / "cam.xml")


def test_a_motion_keeps_its_relation(tmp_path):
    mech = cam(lambda q: q["lift"] - 0.01 * (1.0 - cos(q["cam"])))
    motion = lw.simulate(mech, {"cam": 0.5}, {"cam": 3.0}, 0.1)
    motion.save(tmp_path / "motion.npz")
    read = lw.files.load_trajectory(tmp_path / "motion.npz")
    assert read.mechanism.loops[0].name == "profile"
    np.testing.assert_allclose(read.constraint_error, motion.constraint_error, atol=1e-15)


def test_text_in_place_of_a_function_and_in_files(tmp_path):
    plain = cam("lift - 0.01*(1 - cos(2*cam))")
    same = cam(lambda q: q["lift"] - 0.01 * (1 - cos(2 * q["cam"])))
    q = np.array([0.7, 0.3])
    np.testing.assert_allclose(
        lw.constraints.position_error(plain, q), lw.constraints.position_error(same, q), atol=1e-16
    )
    named = cam("""q["the lift"] - 0.01*q['turn-table']**2""", ("turn-table", "the lift"))
    np.testing.assert_allclose(lw.constraints.position_error(named, q), [0.3 - 0.01 * 0.49 - 0.001], atol=1e-16)
    table = 'joints = ["cam", "lift"]\nformula = "lift - 0.01*(1 - cos(2*cam))"\noffset = 0.001\n'
    read = plain.spanning_tree.with_loops(*plain.loops)
    assert read == plain
    again = lw.load(_urdf(plain, tmp_path), loops=f'[[coupling]]\nname = "profile"\n{table}')
    np.testing.assert_allclose(
        lw.constraints.position_error(again, q), lw.constraints.position_error(plain, q), atol=1e-16
    )


def _urdf(mech: lw.Mechanism, folder) -> str:
    mech.spanning_tree.with_gravity((0, 0, -9.81)).save(folder / "tree.urdf")
    return str(folder / "tree.urdf")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("lift - 0.01*tan(cam)", "a formula has no function 'tan'"),
        ("__import__('os').system('ls')", "made of arithmetic"),
        ("lift - cam.real", "made of arithmetic"),
        ("lift -", "cannot be read"),
        ("lift - x", "no joint or part 'x'"),
        ("x = lift", "out of place"),
        ("[i for i in cam]", "made of arithmetic"),
    ],
)
def test_what_is_no_formula_is_told(text: str, told: str):
    with pytest.raises(lw.MechanismError, match=told):
        lw.constraints.position_error(cam(text), np.zeros(2))


@pytest.mark.parametrize(
    ("table", "told"),
    [
        ('joints = ["cam", "lift"]', "a relation is joints ="),
        ('joints = ["cam", "lift"]\nformula = "lift"\nratios = {cam = 1.0}', "not both"),
        ('joints = ["cam", "lift"]\nformula = "lift - f(cam)"', "no function 'f'"),
    ],
)
def test_tables_that_are_wrong_are_told(table: str, told: str, tmp_path):
    tree = _urdf(cam("lift - 0.01*cos(cam)"), tmp_path)
    with pytest.raises(lw.MechanismError, match=told):
        lw.load(tree, loops=f'[[coupling]]\nname = "profile"\n{table}\n')
