"""Symbols of joints show what joints do: axes that stay in place as joints turn, rails along which they slide."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.viewer.skeleton import Skeleton
from linkwise.viewer.symbols import symbol
from tests.viewer.to_draw import KINDS, hinged


def drawn(kind: str, q) -> object:
    """The symbol of the hinge."""
    return symbol(Skeleton(hinged(kind)).at(np.asarray(q, dtype=float)).joints[1], 0.02)


def off_line(points: np.ndarray, line: np.ndarray) -> float:
    """The largest distance of points from a straight line through two."""
    along = (line[1] - line[0]) / np.linalg.norm(line[1] - line[0])
    return float(np.linalg.norm(np.cross(points - line[0], along), axis=-1).max())


@pytest.mark.parametrize("kind", ["revolute", "helical", "cylindrical", "prismatic"])
def test_the_line_of_a_joint_stays_where_it_is_as_the_joint_moves(kind):
    nq = KINDS[kind].nq
    before, after = (drawn(kind, [0.3, *([x] * nq)]) for x in (0.1, 0.9))
    line = (before.axes or before.rails)[0]
    assert off_line((after.axes or after.rails)[0], line) < 1e-12
    # It is the line that the joint's motion keeps: points of the bar on it move along it only.
    mech = hinged(kind)
    twist = lw.link_velocities(mech, [0.3, *([0.1] * nq)], np.eye(mech.nv)[1])[1]
    pose = lw.link_poses(mech, [0.3, *([0.1] * nq)])[1]
    omega, linear = pose[:3, :3] @ twist[:3], pose[:3, :3] @ twist[3:]
    velocity = linear + np.cross(omega, line[1] - pose[:3, 3])
    assert np.linalg.norm(np.cross(velocity, line[1] - line[0])) < 1e-12


def test_the_rail_of_a_slide_reaches_from_its_zero_to_where_it_is():
    for distance in (-0.5, 0.7):
        rail = drawn("prismatic", [0.0, distance]).rails[0]
        assert np.linalg.norm(rail[1] - rail[0]) > abs(distance)
        for point in ((0.1, 0.0, 0.4), drawn("prismatic", [0.0, distance]).solids[0].points.mean(axis=0)):
            assert np.dot(rail[0] - point, rail[1] - point) < 0.0 and off_line(np.array([point]), rail) < 1e-12


def test_the_first_axis_of_a_universal_joint_stays_and_the_second_turns_with_it():
    before, second, first = (drawn("universal", [0.2, *q]) for q in ((0.3, 0.4), (0.3, 1.0), (0.9, 0.4)))
    assert off_line(first.axes[0], before.axes[0]) < 1e-12
    assert off_line(second.axes[1], before.axes[1]) < 1e-12
    assert off_line(first.axes[1], before.axes[1]) > 1e-3


def test_the_slot_stays_and_the_pin_moves_along_it():
    before, slid, rotated = (drawn("pin_in_slot", [0.2, *q]) for q in ((0.0, 0.4), (0.3, 0.4), (0.0, 1.0)))
    for side in (0, 1):
        assert off_line(slid.rails[side], before.rails[side]) < 1e-12
        assert off_line(rotated.rails[side], before.rails[side]) < 1e-12
    assert off_line(rotated.axes[0], before.axes[0]) < 1e-12 < off_line(slid.axes[0], before.axes[0])
    assert off_line(slid.axes[0].mean(axis=0)[None], np.mean(before.rails, axis=0)) < 1e-12


def test_the_normal_of_a_planar_joint_keeps_its_direction():
    before, after = (drawn("planar", [0.2, *q]) for q in ((0.0, 0.0, 0.0), (0.3, -0.2, 1.1)))
    directions = [np.diff(one.axes[0], axis=0)[0] for one in (before, after)]
    assert np.linalg.norm(np.cross(*directions)) < 1e-12
    np.testing.assert_allclose(after.ways[0][0], (0.1 * np.cos(0.2), 0.1 * np.sin(0.2), 0.4), atol=1e-12)


def test_a_left_handed_thread_turns_the_other_way():
    right, left = (
        symbol(
            Skeleton(
                lw.Builder()
                .link("a", 1.0, inertia=(1, 1, 1))
                .joint("j", lw.Helical((0, 0, 1), pitch), "ground", "a")
                .build("screw")
            )
            .at(np.zeros(1))
            .joints[0],
            0.02,
        ).threads[0]
        for pitch in (0.1, -0.1)
    )

    def handedness(thread: np.ndarray) -> float:
        (x0, y0, z0), (x1, y1, z1) = thread[10:12]
        return float(np.sign((x0 * y1 - y0 * x1) * (z1 - z0)))

    assert handedness(right) == 1.0 and handedness(left) == -1.0


def test_every_kind_looks_different():
    looks = set()
    for kind in KINDS:
        one = drawn(kind, [0.0, *KINDS[kind].neutral()])
        looks.add(
            (one.colour, len(one.solids), len(one.solids[0].faces), len(one.rails), len(one.threads), len(one.axes))
        )
    assert len(looks) == len(KINDS)


def test_every_kind_of_joint_has_a_symbol_of_its_own():
    """Contacts are drawn as the rings of their wheels and balls instead."""
    kinds = {value for value in vars(lw).values() if isinstance(value, type) and issubclass(value, lw.extend.Joint)}
    assert all("symbol" in vars(kind) for kind in kinds - {lw.extend.Joint})
    looks = [str(kind.drawn(np.random.default_rng(0)).symbol()) for kind in kinds - {lw.extend.Joint}]
    assert len(set(looks)) == len(looks) >= 10


def test_solids_are_around_the_joint():
    for kind in KINDS:
        one = drawn(kind, [0.4, *KINDS[kind].neutral()])
        middle = np.mean([solid.points.mean(axis=0) for solid in one.solids], axis=0)
        np.testing.assert_allclose(middle, (0.1 * np.cos(0.4), 0.1 * np.sin(0.4), 0.4), atol=1e-12)
        assert all(np.linalg.norm(solid.points - middle, axis=-1).max() < 0.1 for solid in one.solids)
