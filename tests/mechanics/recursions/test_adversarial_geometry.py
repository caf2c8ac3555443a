"""Geometry that files in the wild have: axes almost along a coordinate axis, shallow twists, long chains of them."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.recursions.tree import build_tree


def arm(axes, positions, rotations=None):
    builder = lw.Builder()
    parent = "ground"
    for i, (axis, position) in enumerate(zip(axes, positions, strict=True)):
        rotation = None if rotations is None else rotations[i]
        builder.link(f"l{i}", 1.0 + 0.1 * i, (0.1, 0.02, 0.05), np.diag([0.02, 0.03, 0.025]))
        builder.joint(f"j{i}", lw.Revolute(axis), parent, f"l{i}", (rotation, position))
        parent = f"l{i}"
    return builder.build()


@pytest.mark.parametrize("stray", [1e-5, 1e-7, 1.4e-8, 1e-9, 1e-12, 1e-15, 1e-17])
@pytest.mark.parametrize("main", [0, 1, 2])
def test_axes_almost_along_a_coordinate_axis(main, stray):
    axis = np.zeros(3)
    axis[main], axis[(main + 1) % 3] = 1.0, stray
    alignment = np.array(lw.Revolute(axis).alignment)
    np.testing.assert_allclose(alignment.T @ alignment, np.eye(3), atol=4e-16)
    np.testing.assert_allclose(alignment[:, 2], axis / np.linalg.norm(axis), atol=2e-15)


def test_frames_stay_near_their_joints():
    """Shallow twists: the feet of common normals would run away along the axes."""
    n, angle = 96, np.radians(16.5)
    twist = np.array([[1, 0, 0], [0, np.cos(angle), -np.sin(angle)], [0, np.sin(angle), np.cos(angle)]])
    mech = arm([(0, 0, 1)] * n, [(0.3, 0.1, 0.1)] * n, [twist] * n)
    distances = [np.linalg.norm(np.array(link.user.position(), float)) for link in build_tree(mech).links]
    assert max(distances) < 4 * np.linalg.norm((0.3, 0.1, 0.1))


def test_biases_that_cancel():
    """An expression in which the bias drops out compiles like the one without it."""
    from linkwise import operators as op

    t = op.joint_vector("t")
    a = op.bias_acceleration(op.joint_vector("v"))
    jacobian = op.H @ op.phi @ op.M @ op.phi.T
    mech = lw.mechanisms.chain(3)
    q, v = lw.random_state(mech, np.random.default_rng(0))
    with_bias = lw.compile(jacobian @ (op.H.T @ t + a) - jacobian @ a, mech, target="numpy")
    arrays = {"t": v, "v": 2 * v}
    found = with_bias(q, *(arrays[name] for name in with_bias.inputs[1:]))
    np.testing.assert_allclose(found, lw.compile(jacobian @ op.H.T @ t, mech, target="numpy")(q, v), atol=1e-12)
