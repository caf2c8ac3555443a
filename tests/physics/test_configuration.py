"""Configurations as points of a manifold: integrate, difference and coordinate rates."""

from __future__ import annotations

import math

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism.library import EVERY_KIND
from tests.physics.trees import Model, close, every_tree, large_trees_are_slow, rate

pytestmark = large_trees_are_slow

STATES = 6


def same_configuration(mech: lw.Mechanism, found: np.ndarray, expected: np.ndarray, tolerance: float) -> None:
    """Equal coordinates, where a quaternion and its negative are the same."""
    expected = np.broadcast_to(expected, found.shape).copy()
    for body in mech.bodies:
        if isinstance(body.kind, (lw.Spherical, lw.Floating)):
            start = mech.q_index(body.joint).start
            part = slice(start, start + 4)
            sign = np.sign(np.sum(found[..., part] * expected[..., part], axis=-1, keepdims=True))
            expected[..., part] *= sign
            assert np.allclose(np.linalg.norm(found[..., part], axis=-1), 1.0, rtol=0, atol=1e-14)
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance)


@every_tree
def test_integrate_and_difference_undo_each_other(tree):
    model = tree()
    mech = model.mech
    q0, v, *_ = model.states(STATES, seed=1)
    q1, *_ = model.states(STATES, seed=2)
    same_configuration(mech, model.integrate(q0, model.difference(q0, q1), 1.0), q1, 1e-13)
    same_configuration(mech, model.integrate(q0, v, 0.0), q0, 1e-15)
    assert np.abs(model.difference(q0, q0)).max() < 1e-15
    largest_turn = np.linalg.norm(v, axis=-1, keepdims=True)
    v = v * np.minimum(1.0, 0.9 * math.pi / largest_turn)  # the way back is the shortest turn
    close(model.difference(q0, model.integrate(q0, v, 1.0)), v, 1e-12)


@every_tree
def test_a_straight_path_can_be_walked_in_pieces(tree):
    model = tree()
    q, v, *_ = model.states(STATES)
    halfway = model.integrate(q, v, 0.4)
    same_configuration(model.mech, model.integrate(halfway, v, 0.3), model.integrate(q, v, 0.7), 1e-13)


@every_tree
def test_coordinate_rates(tree):
    model = tree()
    q, v, *_ = model.states(STATES)
    close(model.coordinate_rates(q, v), rate(lambda t: model.integrate(q, v, t)), 1e-10)


def exponential(matrix: np.ndarray) -> np.ndarray:
    """The matrix exponential by its series, in integers that count 2**-256: scipy's is off by 4e-13 where a joint turns
    by many rotations."""
    unit = 1 << 256
    scaled = np.array([int(math.ldexp(x, 256)) for x in matrix.flat], dtype=object).reshape(matrix.shape)
    total = term = unit * np.eye(len(matrix), dtype=object)
    n = 0
    while np.abs(term).max() > 1:
        n += 1
        term = (term @ scaled) // (n * unit)
        total = total + term
    return (total / unit).astype(float)


# Planar and universal joints are left out: their v are rates of coordinates, not a constant motion of the link.
@pytest.mark.parametrize("kind", sorted(set(EVERY_KIND) - {"planar", "universal", "pin_in_slot"}))
@pytest.mark.parametrize("size", [1e-9, 1e-3, 1.0, 20.0])
def test_integrate_is_the_matrix_exponential(kind, size):
    mech = lw.mechanisms.random_tree(1, 5, joints=(kind,))
    model = Model(mech)
    link = mech.link_names[0]
    q, v, *_ = model.states(STATES)
    v = size * v
    dt = 0.75
    moved = model.frame_pose(model.integrate(q, v, dt), link=link)
    motion = np.einsum("...ij,...j", model.jacobian(q, link=link), v)
    for before, after, (wx, wy, wz, *linear) in zip(model.frame_pose(q, link=link), moved, motion, strict=True):
        generator = np.zeros((4, 4))
        generator[:3, :3] = [[0, -wz, wy], [wz, 0, -wx], [-wy, wx, 0]]
        generator[:3, 3] = linear
        np.testing.assert_allclose(after, before @ exponential(generator * dt), rtol=0, atol=2e-14)


@pytest.mark.parametrize("seed", range(4))
def test_neutral_is_where_link_frames_meet_joint_frames(seed):
    mech = lw.mechanisms.random_tree(8, seed)
    poses = lw.link_poses(mech, lw.neutral(mech))
    for i, body in enumerate(mech.bodies):
        parent = np.eye(4) if body.parent < 0 else poses[body.parent]
        placed = np.eye(4)
        placed[:3, :3], placed[:3, 3] = body.rotation, body.position
        np.testing.assert_allclose(poses[i], parent @ placed, rtol=0, atol=1e-14)


def test_random_states_repeat_and_have_unit_quaternions():
    mech = lw.mechanisms.random_tree(9, 3, floating_base=True)
    q, v = lw.random_state(mech, np.random.default_rng(7), (2, 3))
    again, _ = lw.random_state(mech, np.random.default_rng(7), (2, 3))
    assert q.shape == (2, 3, mech.nq) and v.shape == (2, 3, mech.nv)
    assert np.array_equal(q, again)
    same_configuration(mech, q, q, 0.0)
    assert lw.random_state(mech, np.random.default_rng(7))[0].shape == (mech.nq,)
    assert lw.random_state(mech, np.random.default_rng(7), 4)[1].shape == (4, mech.nv)


def test_derivatives_of_steps_and_differences():
    """Along tangents, for every kind of joint, against differences; each is the inverse of the other."""
    mech = lw.mechanisms.random_tree(11, 4, joints=tuple(EVERY_KIND))
    rng = np.random.default_rng(3)
    (q, v), units, h = lw.random_state(mech, rng), np.eye(mech.nv), 1e-6
    end = lw.integrate(mech, q, v, 0.4)

    def slopes(function) -> np.ndarray:
        return ((function(h) - function(-h)) / (2.0 * h)).T

    by_q, by_v = lw.derivatives.integrate_derivatives(mech, q, v, 0.4)
    moved = slopes(lambda s: lw.difference(mech, end, lw.integrate(mech, lw.integrate(mech, q, units, s), v, 0.4)))
    np.testing.assert_allclose(by_q, moved, atol=1e-8)
    faster = slopes(lambda s: lw.difference(mech, end, lw.integrate(mech, q, v + s * units, 0.4)))
    np.testing.assert_allclose(by_v, faster, atol=1e-8)
    by_start, by_end = lw.derivatives.difference_derivatives(mech, q, end)
    expected = slopes(lambda s: lw.difference(mech, lw.integrate(mech, q, units, s), end))
    np.testing.assert_allclose(by_start, expected, atol=1e-8)
    np.testing.assert_allclose(by_end @ by_v, 0.4 * units, atol=1e-10)
    np.testing.assert_allclose(by_start + by_end @ by_q, 0.0 * units, atol=1e-10)
