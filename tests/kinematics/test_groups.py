"""Rotations and poses against SciPy: exponentials, logarithms near nothing and near half a turn, the ways between."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import expm
from scipy.spatial.transform import Rotation, Slerp

import linkwise as lw

RNG = np.random.default_rng(7)
AXES = RNG.normal(size=(60, 3))
AXES /= np.linalg.norm(AXES, axis=-1, keepdims=True)
ANGLES = np.concatenate([[0.0, 1e-12, 1e-7, 1e-3, 1e-2], RNG.uniform(0.0, np.pi, 50), np.pi - np.logspace(-12, -2, 5)])
VECTORS = AXES * ANGLES[:, None]
TWISTS = np.concatenate([VECTORS, RNG.normal(size=(60, 3))], axis=-1)


def matrix_of(twist: np.ndarray) -> np.ndarray:
    x, y, z, *linear = twist
    made = np.zeros((4, 4))
    made[:3, :3], made[:3, 3] = [[0, -z, y], [z, 0, -x], [-y, x, 0]], linear
    return made


def test_rotations_are_those_of_scipy():
    expected = Rotation.from_rotvec(VECTORS)
    np.testing.assert_allclose(lw.kinematics.so3.exp(VECTORS), expected.as_matrix(), atol=1e-15)
    np.testing.assert_allclose(lw.kinematics.so3.log(expected.as_matrix()), VECTORS, atol=1e-14)
    w, x, y, z = np.moveaxis(lw.kinematics.so3.to_quaternion(expected.as_matrix()), -1, 0)
    np.testing.assert_allclose(
        Rotation.from_quat(np.stack([x, y, z, w], -1)).as_matrix(), expected.as_matrix(), atol=1e-15
    )
    np.testing.assert_allclose(
        lw.kinematics.so3.from_quaternion(3.0 * np.stack([w, x, y, z], -1)), expected.as_matrix(), atol=1e-15
    )


@pytest.mark.parametrize(
    "axis", [(1, 0, 0), (0, 1, 0), (0, 0, 1), (-0.6, 0.8, 0), (0.6, 0, -0.8), (2 / 3, 1 / 3, 2 / 3)]
)
def test_half_a_turn_has_one_of_two_logarithms(axis):
    half = 2.0 * np.outer(axis, axis) - np.eye(3)
    found = lw.kinematics.so3.log(half)
    np.testing.assert_allclose(np.linalg.norm(found), np.pi)
    np.testing.assert_allclose(lw.kinematics.so3.exp(found), half, atol=1e-15)


def test_poses_are_matrix_exponentials():
    poses = lw.kinematics.se3.exp(TWISTS)
    np.testing.assert_allclose(poses, [expm(matrix_of(twist)) for twist in TWISTS], atol=2e-15)
    np.testing.assert_allclose(lw.kinematics.se3.log(poses), TWISTS, atol=1e-13)


def test_products_inverses_and_adjoints():
    a, b = lw.kinematics.se3.exp(TWISTS[::2]), lw.kinematics.se3.exp(TWISTS[1::2])
    np.testing.assert_allclose(lw.kinematics.se3.compose(a, b, lw.kinematics.se3.inverse(b)), a, atol=1e-14)
    np.testing.assert_allclose(lw.kinematics.se3.inverse(a), np.linalg.inv(a), atol=1e-14)
    np.testing.assert_allclose(
        lw.kinematics.so3.compose(a[..., :3, :3], lw.kinematics.so3.inverse(a[..., :3, :3])),
        np.eye(3) * np.ones((30, 1, 1)),
        atol=1e-15,
    )
    # Ad(T) x is the twist of T exp(x) T^-1.
    twist = TWISTS[:30] * 0.3
    around = lw.kinematics.se3.log(
        lw.kinematics.se3.compose(a, lw.kinematics.se3.exp(twist), lw.kinematics.se3.inverse(a))
    )
    np.testing.assert_allclose((lw.kinematics.se3.adjoint(a) @ twist[..., None])[..., 0], around, atol=1e-12)
    np.testing.assert_array_equal(lw.kinematics.se3.pose(a[..., :3, :3], a[..., :3, 3]), a)


def test_ways_between():
    a, b = Rotation.from_rotvec(VECTORS[:2]), Rotation.from_rotvec(VECTORS[20:22])
    shares = np.array([0.0, 0.3, 1.0])
    found = lw.kinematics.so3.interpolate(a.as_matrix()[:, None], b.as_matrix()[:, None], shares)
    for k in range(2):
        ends = Rotation.concatenate([a[k], b[k]])
        np.testing.assert_allclose(found[k], Slerp([0.0, 1.0], ends)(shares).as_matrix(), atol=1e-14)
    first, last = lw.kinematics.se3.exp(TWISTS[20:22])
    at = lw.kinematics.se3.interpolate(first, last, shares)
    np.testing.assert_allclose(at[[0, 2]], [first, last], atol=1e-14)
    way = lw.kinematics.se3.log(lw.kinematics.se3.compose(lw.kinematics.se3.inverse(first), last))
    np.testing.assert_allclose(
        lw.kinematics.se3.log(lw.kinematics.se3.compose(lw.kinematics.se3.inverse(first), at[1])), 0.3 * way, atol=1e-13
    )


def test_single_precision_and_bad_input():
    assert lw.kinematics.so3.exp(VECTORS.astype(np.float32)).dtype == np.float32
    for wrong in (2.0 * np.eye(3), np.diag([1.0, 1.0, -1.0]), np.full((3, 3), np.nan)):
        with pytest.raises(lw.MechanismError, match="is no rotation"):
            lw.kinematics.so3.log(wrong)
    with pytest.raises(lw.MechanismError, match=r"shape \(\.\.\., 4, 4\), got \(3, 3\)"):
        lw.kinematics.se3.log(np.eye(3))
    with pytest.raises(lw.MechanismError, match="last row"):
        lw.kinematics.se3.inverse(np.ones((4, 4)))


def test_roll_pitch_yaw_are_those_of_scipy():
    rpy = RNG.uniform(-1.5, 1.5, (60, 3))
    expected = Rotation.from_euler("xyz", rpy).as_matrix()
    np.testing.assert_allclose(lw.kinematics.so3.from_rpy(rpy), expected, atol=1e-14)
    np.testing.assert_allclose(lw.kinematics.so3.to_rpy(expected), rpy, atol=1e-13)
    np.testing.assert_allclose(lw.kinematics.so3.from_rpy(rpy[0]), lw.pose(rpy=rpy[0])[:3, :3], atol=1e-15)
    for pitch in (-np.pi / 2, np.pi / 2):  # where roll and yaw are about one axis
        locked = lw.kinematics.so3.from_rpy([0.3, pitch, -0.8])
        assert lw.kinematics.so3.to_rpy(locked)[0] == 0.0
        np.testing.assert_allclose(lw.kinematics.so3.from_rpy(lw.kinematics.so3.to_rpy(locked)), locked, atol=1e-14)
    with pytest.raises(lw.MechanismError, match="rpy must have shape"):
        lw.kinematics.so3.from_rpy([0.1, 0.2])


def test_skew_matrices_multiply_as_cross_products():
    x = RNG.normal(size=(60, 3))
    np.testing.assert_allclose((lw.kinematics.so3.skew(AXES) @ x[..., None])[..., 0], np.cross(AXES, x), atol=1e-15)
    with pytest.raises(lw.MechanismError, match=r"vector must have shape \(\.\.\., 3\)"):
        lw.kinematics.so3.skew(np.zeros(4))


def test_jacobians_are_series_of_matrices():
    """J = 1 - ad / 2 + ad ad / 6 - ..., of matrices that multiply vectors as brackets do; near half a turn too."""
    for vectors, found, inverse, group in (
        (
            VECTORS,
            lw.kinematics.so3.exp_jacobian(VECTORS),
            lw.kinematics.so3.log_jacobian(lw.kinematics.so3.exp(VECTORS)),
            lw.kinematics.so3,
        ),
        (
            TWISTS,
            lw.kinematics.se3.exp_jacobian(TWISTS),
            lw.kinematics.se3.log_jacobian(lw.kinematics.se3.exp(TWISTS)),
            lw.kinematics.se3,
        ),
    ):
        n = vectors.shape[-1]
        for vector, jacobian, back in zip(vectors, found, inverse, strict=True):
            turn = matrix_of(np.r_[vector[:3], 0, 0, 0])[:3, :3]
            slide = matrix_of(np.r_[vector[-3:], 0, 0, 0])[:3, :3]
            bracket = turn if n == 3 else np.block([[turn, 0 * turn], [slide, turn]])
            whole = expm(np.block([[-bracket, np.eye(n)], [np.zeros((n, 2 * n))]]))
            np.testing.assert_allclose(jacobian, whole[:n, n:], atol=1e-12)
            np.testing.assert_allclose(back @ whole[:n, n:], np.eye(n), atol=1e-12)
        small = 1e-6 * RNG.normal(size=vectors.shape)
        moved = group.log(group.exp(vectors) @ group.exp(small))
        near = np.linalg.norm(vectors[:, :3], axis=-1) < 3.0
        first_order = vectors + (inverse @ small[..., None])[..., 0]
        np.testing.assert_allclose(moved[near], first_order[near], atol=1e-10)
