"""Transforms, inertias and spatial products against plain 6x6 matrices."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.mechanics.spatial import (
    Force,
    Matrix3,
    Motion,
    RigidInertia,
    Symmetric3,
    Transform,
    Vector3,
    orientation,
    turn,
)
from linkwise.mechanics.spatial import Rotation as Turn

from . import dense

SEEDS = pytest.mark.parametrize("seed", range(12))


def close(found, expected) -> None:
    np.testing.assert_allclose(
        np.asarray(found, dtype=float), expected, rtol=0.0, atol=1e-12 * (1 + np.abs(expected).max())
    )


def symmetric(s: Symmetric3) -> np.ndarray:
    return np.array([[s.entry(i, j) for j in range(3)] for i in range(3)])


@SEEDS
def test_changes_of_frame(seed):
    rng = np.random.default_rng(seed)
    change = dense.random_transform(rng)
    rotation, position = dense.pose(change)
    close(np.array(change.rotation()), rotation)
    close(np.array(change.position()), position)
    back = dense.motion_back(rotation, position)
    m, f = rng.normal(size=(2, 6))
    close(dense.six(change.motion_back(Motion.of(m.tolist()))), back @ m)
    close(dense.six(change.motion_into(Motion.of(m.tolist()))), np.linalg.solve(back, m))
    close(dense.six(change.force_into(Force.of(f.tolist()))), back.T @ f)
    close(dense.six(change.force_back(Force.of(f.tolist()))), np.linalg.solve(back.T, f))
    point = Vector3(*rng.normal(size=3).tolist())
    close(np.array(change.point_back(point)), rotation @ point + position)
    close(np.array(change.vector_into(point)), rotation.T @ point)
    close(np.array(change.vector_back(point)), rotation @ point)


@SEEDS
def test_changes_of_frame_compose(seed):
    rng = np.random.default_rng(seed)
    one, other = dense.random_transform(rng, 3), dense.random_transform(rng, 3)
    (r1, p1), (r2, p2) = dense.pose(one), dense.pose(other)
    together = dense.pose(one.then(other))
    close(together[0], r1 @ r2)
    close(together[1], p1 + r1 @ p2)
    close(dense.pose(one.then(one.inverse()))[0], np.eye(3))
    close(dense.pose(one.then(one.inverse()))[1], np.zeros(3))
    rotation, position = dense.random_rotation(rng), rng.normal(size=3)
    made = Transform.from_pose(Matrix3.from_rows(rotation.tolist()), Vector3(*position.tolist()))
    close(dense.pose(made)[0], rotation)
    close(dense.pose(made)[1], position)


@SEEDS
def test_inertias_in_other_frames(seed):
    rng = np.random.default_rng(seed)
    change = dense.random_transform(rng)
    into = np.linalg.inv(dense.motion_back(*dense.pose(change)))
    body, joined = dense.random_rigid(rng), dense.random_articulated(rng)
    close(dense.rigid(change.inertia_back(body)), into.T @ dense.rigid(body) @ into)
    close(dense.articulated(change.inertia_back(joined)), into.T @ dense.articulated(joined) @ into)
    close(dense.articulated(body.articulated()), dense.rigid(body))


@SEEDS
def test_inertias_are_matrices(seed):
    rng = np.random.default_rng(seed)
    one, other = dense.random_rigid(rng), dense.random_rigid(rng)
    big, bigger = dense.random_articulated(rng), dense.random_articulated(rng)
    m = rng.normal(size=6)
    close(dense.six(one @ Motion.of(m.tolist())), dense.rigid(one) @ m)
    close(dense.six(big @ Motion.of(m.tolist())), dense.articulated(big) @ m)
    close(dense.rigid(one + other), dense.rigid(one) + dense.rigid(other))
    close(dense.articulated(big + bigger), dense.articulated(big) + dense.articulated(bigger))


@SEEDS
def test_inertias_carried_by_a_motion(seed):
    """V x* A - A V x."""
    rng = np.random.default_rng(seed)
    v = rng.normal(size=6)
    across = np.block([[dense.skew(v[:3]), np.zeros((3, 3))], [dense.skew(v[3:]), dense.skew(v[:3])]])
    body, joined = dense.random_rigid(rng), dense.random_articulated(rng)
    motion = Motion.of(v.tolist())
    close(dense.rigid(body.transport_rate(motion)), -across.T @ dense.rigid(body) - dense.rigid(body) @ across)
    matrix = dense.articulated(joined)
    close(dense.articulated(joined.transport_rate(motion)), -across.T @ matrix - matrix @ across)


@SEEDS
def test_rigid_inertia_about_the_centre_of_mass(seed):
    rng = np.random.default_rng(seed)
    mass, com, moment = float(rng.uniform(0.5, 2.0)), rng.normal(size=3), dense.random_moment(rng)
    body = dense.rigid(RigidInertia.about_com(mass, Vector3(*com.tolist()), moment))
    c = dense.skew(com)
    close(body[:3, :3], symmetric(moment) - mass * c @ c)
    close(body[:3, 3:], mass * c)
    close(body[3:, 3:], mass * np.eye(3))


@SEEDS
def test_spatial_products(seed):
    rng = np.random.default_rng(seed)
    v, w, f = rng.normal(size=(3, 6))
    across = np.block([[dense.skew(v[:3]), np.zeros((3, 3))], [dense.skew(v[3:]), dense.skew(v[:3])]])
    motion = Motion.of(v.tolist())
    close(dense.six(motion.cross(Motion.of(w.tolist()))), across @ w)
    close(dense.six(motion.cross_force(Force.of(f.tolist()))), -across.T @ f)
    close(Force.of(f.tolist()).dot(motion), f @ v)


@SEEDS
def test_three_dimensions(seed):
    rng = np.random.default_rng(seed)
    a, b = rng.normal(size=(2, 3))
    x, y = Vector3(*a.tolist()), Vector3(*b.tolist())
    close(np.array(x.cross(y)), np.cross(a, b))
    close(x.dot(y), a @ b)
    rotation, general = dense.random_rotation(rng), rng.normal(size=(3, 3))
    r, g = Matrix3.from_rows(rotation.tolist()), Matrix3.from_rows(general.tolist())
    s = dense.random_moment(rng)
    close(symmetric(s.congruent(r)), rotation.T @ symmetric(s) @ rotation)
    close(np.array(g.congruent(r)), rotation.T @ general @ rotation)
    close(np.array(g.times(r)), general @ rotation)
    for axis in range(3):
        angle = float(rng.uniform(-3.0, 3.0))
        c, sn, matrix = float(np.cos(angle)), float(np.sin(angle)), dense.turn(axis, angle)
        close(np.array(x.turned(axis, c, sn)), matrix.T @ a)
        close(symmetric(s.turned(axis, c, sn)), matrix.T @ symmetric(s) @ matrix)
        close(np.array(g.turned(axis, c, sn)), matrix.T @ general @ matrix)


def test_orientations_are_recognized():
    """The identity is no step at all, a turn about a coordinate axis one of that kind."""
    assert orientation(Matrix3.from_rows(np.eye(3).tolist())) == ()
    for axis in range(3):
        (step,) = orientation(Matrix3.from_rows(dense.turn(axis, 0.7).tolist()))
        assert isinstance(step, Turn) and step.axis == axis
        close((step.c, step.s), np.array([np.cos(0.7), np.sin(0.7)]))


@pytest.mark.parametrize("quarter_turns", range(4))
def test_quarter_turns_are_exact(quarter_turns):
    step = turn(Turn(2, 0.8, 0.6), quarter_turns)
    close(dense.turn(2, np.arctan2(step.s, step.c)), dense.turn(2, np.arctan2(0.6, 0.8) + quarter_turns * np.pi / 2))
    assert {abs(step.c), abs(step.s)} == {0.8, 0.6}
