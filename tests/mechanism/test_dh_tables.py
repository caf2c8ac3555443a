"""Denavit-Hartenberg tables of arms: arms made of them reach the same places."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


def place(table: lw.files.DHTable, q: np.ndarray) -> np.ndarray:
    """(4, 4): by the table alone, written out."""

    def screw(axis: int, angle: float, distance: float) -> np.ndarray:
        found, (i, j) = np.eye(4), ((1, 2), (2, 0), (0, 1))[axis]
        found[i, i] = found[j, j] = np.cos(angle)
        found[j, i], found[i, j], found[axis, 3] = np.sin(angle), -np.sin(angle), distance
        return found

    pose = table.base
    for row, x in zip(table.rows, q, strict=True):
        turn = row["kind"] == "revolute"
        along_z = screw(2, row["theta"] + x * turn, row["d"] + x * (not turn))
        along_x = screw(0, row["alpha"], row["a"])
        pose = pose @ (along_z @ along_x if table.convention == "standard" else along_x @ along_z)
    return pose @ table.tool


def random_arm(seed: int) -> lw.Mechanism:
    """Axes anywhere, parallel, in one line or through one point."""
    rng, builder, parent = np.random.default_rng(seed), lw.Builder(), "ground"
    for k in range(5):
        axis = rng.normal(size=3) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])
        at = rng.normal(size=3) if rng.random() < 0.5 else np.eye(3)[rng.integers(3)] * rng.choice([0.0, 0.4])
        kind = lw.Revolute(axis) if rng.random() < 0.8 else lw.Prismatic(axis)
        builder.link(f"link{k}", 1.0, (0, 0, 0), (0.1,) * 3).joint(f"joint{k}", kind, parent, f"link{k}", at)
        parent = f"link{k}"
    return builder.frame("tool", parent, lw.pose((0.1, 0.2, 0.3), rpy=(0.3, -0.2, 1.0))).build("arm")


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_tables_reach_where_arms_do(convention: str):
    arms = [*(random_arm(seed) for seed in range(12)), lw.mechanisms.stanford_arm(), lw.mechanisms.planar_arm(3)]
    for arm in arms:
        link = "tool" if "tool" in arm.frames else arm.link_names[-1]
        table = lw.files.dh_table(arm, link, convention)
        for q in np.random.default_rng(1).uniform(-1.0, 1.0, (3, arm.nq)):
            np.testing.assert_allclose(place(table, q), lw.frame_pose(arm, q, link), atol=1e-9, err_msg=arm.name)
        again = lw.from_dh([{**row, "mass": 1.0, "inertia": (0.1,) * 3} for row in table.rows], convention)
        np.testing.assert_allclose(
            table.base @ lw.frame_pose(again, q, f"frame{len(table.rows)}") @ table.tool,
            lw.frame_pose(arm, q, link),
            atol=1e-9,
        )


def test_the_table_of_a_textbook_arm_is_the_textbook_s():
    rows = [
        {"theta": 0.0, "d": 0.6718, "a": 0.0, "alpha": np.pi / 2},
        {"theta": 0.0, "d": 0.1397, "a": 0.4318, "alpha": 0.0},
        {"theta": 0.0, "d": 0.0, "a": 0.0203, "alpha": -np.pi / 2},
    ]
    table = lw.files.dh_table(lw.from_dh([{**row, "mass": 1.0, "inertia": (0.1,) * 3} for row in rows]), "frame3")
    for key in ("theta", "d", "a", "alpha"):
        # Of two parallel axes (2 and 3) any common normal will do: what is along them may be in either row.
        if key != "d":
            np.testing.assert_allclose([r[key] for r in table.rows[:2]], [r[key] for r in rows[:2]], atol=1e-12)
    planar = lw.files.dh_table(lw.mechanisms.planar_arm(2), "tip")
    assert [row["a"] for row in planar.rows] == [1.0, 1.0] and np.allclose(planar.tool, np.eye(4))
    assert str(planar).splitlines()[1].split() == ["theta", "d", "a", "alpha"]
    assert str(planar).splitlines()[2].split() == ["joint1", "q1", "0", "1", "0"]
    assert planar.latex().startswith("\\begin{tabular}{lrrrr}\njoint & $\\theta$") and "$q_{1}$" in planar.latex()


def test_what_has_no_table_is_told():
    with pytest.raises(lw.MechanismError, match="joint .* lock it"):
        lw.files.dh_table(lw.mechanisms.quadruped())
    with pytest.raises(lw.MechanismError, match="fixed to the ground"):
        lw.files.dh_table(lw.mechanisms.planar_arm(2), "ground")
