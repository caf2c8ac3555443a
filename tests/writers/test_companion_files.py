"""Loops that URDF has no words for are in a companion file, which is read along."""

from __future__ import annotations

import shutil
import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.writers.round_trip import assert_same_dynamics


def quick_return() -> lw.Mechanism:
    """A crank whose pin drives a slotted lever, tilted in space; links and loops have names that need quotes."""
    tilt = np.array([[0.6, -0.8, 0.0], [0.8, 0.6, 0.0], [0.0, 0.0, 1.0]])
    builder = lw.Builder().link("crank é", 1.0, (0.1, 0, 0), (0.1, 0.2, 0.2)).link("lever", 2.0, (0.4, 0, 0), (1, 2, 2))
    builder.joint("turn", lw.Revolute((0, 0, 1)), "ground", "crank é", (tilt, (0.1, 0.2, 0.3)))
    builder.joint("rock", lw.Revolute((0, 0, 1)), "ground", "lever", (tilt, (0.1, -0.4, 0.3)))
    slot = lw.PinInSlot((1.0, 0.0, 0.0), (0.0, 0.0, 1.0))
    return builder.loop('the "slot"', slot, "lever", None, "crank é", (tilt, (0.2, 0.0, 0.0))).build("quick return")


def geared() -> lw.Mechanism:
    builder = lw.Builder()
    for name in ("a", "b", "c"):
        builder.link(name, 1.0, (0.1, 0, 0), (0.1, 0.2, 0.2)).joint(f"{name} joint", lw.Revolute(), "ground", name)
    return builder.coupling("belt", {"a joint": 9.0, "b joint": 1 / 3, "c joint": -1.0}, offset=0.1).build("gears")


def saved(mech: lw.Mechanism, path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech.save(path)


@pytest.mark.parametrize(
    "make", [quick_return, geared, *map(lw.mechanisms.maker, ("bicycle", "rolling_disk", "snakeboard"))]
)
def test_mechanisms_are_read_as_they_were(make, tmp_path):
    mech = make()
    saved(mech, tmp_path / "robot.urdf")
    assert {file.name for file in tmp_path.iterdir()} == {"robot.urdf", "robot.loops.toml"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.files.OmissionWarning)
        read = lw.load(tmp_path / "robot.urdf")
        by_path = lw.load(tmp_path / "robot.urdf", loops=tmp_path / "robot.loops.toml")
    assert set(map(repr, read.loops)) == set(map(repr, mech.loops)) == set(map(repr, by_path.loops))
    assert_same_dynamics(mech, read)


def test_what_is_written_beside_the_file_is_told(tmp_path):
    with pytest.warns(lw.MechanismWarning, match=r"loops in lever.loops.toml beside it, .*: the \"slot\""):
        quick_return().save(tmp_path / "lever.urdf")


def test_without_its_companion_a_file_is_not_read(tmp_path):
    path = tmp_path / "lever.urdf"
    saved(quick_return(), path)
    with pytest.raises(lw.MechanismError, match="are in 'lever.loops.toml', which is not here: give loops="):
        lw.load(path.read_text())
    (tmp_path / "apart").mkdir()
    shutil.copy(path, tmp_path / "apart")
    with pytest.raises(lw.MechanismError, match="are in 'lever.loops.toml', which is not here: give loops="):
        lw.load(tmp_path / "apart" / "lever.urdf")
    assert lw.load(path.read_text(), loops=(tmp_path / "lever.loops.toml").read_text()).loops


def test_companions_elsewhere_are_not_opened(tmp_path):
    path = tmp_path / "lever.urdf"
    saved(quick_return(), path)
    path.write_text(path.read_text().replace("lever.loops.toml", "../lever.loops.toml"))
    with pytest.raises(lw.MechanismError, match="is not the name of a file in the same folder"):
        lw.load(path)


def test_what_mjcf_cannot_say_is_answered_with_what_can(tmp_path):
    with pytest.raises(lw.MechanismError, match="no equality for the loop .*, which PinInSlot.*; save it as URDF"):
        quick_return().save(tmp_path / "lever.xml")
    driven = quick_return().with_loops(
        lw.constraints.Coupling("motor", {"turn": 1.0}, drive=lw.constraints.Drive(lambda t: t))
    )
    for ending in ("xml", "urdf"):
        with pytest.raises(lw.MechanismError, match="'motor' follows time"):
            driven.save(tmp_path / f"lever.{ending}")
    assert not list(tmp_path.iterdir())
