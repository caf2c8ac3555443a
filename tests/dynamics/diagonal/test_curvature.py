"""The mass matrix as a metric: curvature, and the mechanisms that have none."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from tests.physics.trees import rate

AXES = np.eye(3)


def single(kind, inertia=(0.3, 0.5, 0.6)) -> lw.Mechanism:
    return (
        lw.Builder().link("body", 2.0, (0.0, 0.0, 0.0), inertia).joint("joint", kind, "ground", "body").build("single")
    )


def gantry() -> lw.Mechanism:
    builder = lw.Builder()
    parent = "ground"
    for name, axis in zip("xyz", AXES, strict=True):
        builder.link(name, 1.0).joint(f"slide_{name}", lw.Prismatic(axis), parent, name)
        parent = name
    return builder.build("gantry")


def balanced_arm() -> lw.Mechanism:
    """Two links, the second one's mass centre on its own axis."""
    return (
        lw.Builder()
        .link("upper", 1.0, (0.5, 0.0, 0.0), (0.1, 0.1, 0.1))
        .link("lower", 1.0, (0.0, 0.0, 0.0), (0.1, 0.1, 0.1))
        .joint("shoulder", lw.Revolute(), "ground", "upper")
        .joint("elbow", lw.Revolute(), "upper", "lower", (np.eye(3), (1.0, 0.0, 0.0)))
        .build("balanced_arm")
    )


FLAT = [gantry(), balanced_arm(), lw.mechanisms.cart_pole(), lw.mechanisms.planar_arm(1), single(lw.Cylindrical())]
CURVED = [
    lw.mechanisms.double_pendulum(),
    lw.mechanisms.planar_arm(3),
    lw.mechanisms.stanford_arm(),
    single(lw.Spherical()),
    single(lw.Floating()),
]


@pytest.mark.seed("jain1995", "Lemma 2.2", by="library")
@pytest.mark.parametrize("mech", FLAT, ids=lambda mech: mech.name)
def test_flat_mechanisms(mech):
    assert lw.formulations.diagonal.is_globally_diagonalizable(mech)
    q, _ = lw.random_state(mech, np.random.default_rng(1))
    np.testing.assert_allclose(lw.formulations.diagonal.curvature(mech, q), 0.0, atol=1e-12)


@pytest.mark.parametrize("mech", CURVED, ids=lambda mech: mech.name)
def test_curved_mechanisms(mech):
    assert not lw.formulations.diagonal.is_globally_diagonalizable(mech)


def test_cart_pole_has_coordinates_with_constant_mass_matrix():
    """What flatness promises, found by hand: y = x + F(angle), s = integral of sqrt(G - F'^2 / E)."""
    mech = lw.mechanisms.cart_pole()
    for angle in np.linspace(-1.0, 1.0, 5):
        m = lw.mass_matrix(mech, np.array([0.3, angle]))
        gradient = np.array(
            [[np.sqrt(m[0, 0]), m[0, 1] / np.sqrt(m[0, 0])], [0.0, np.sqrt(m[1, 1] - m[0, 1] ** 2 / m[0, 0])]]
        )
        np.testing.assert_allclose(gradient.T @ gradient, m, atol=1e-14)  # rows are exact: each depends on angle alone


@pytest.mark.seed("jain1995", "2.5", by="library")
@pytest.mark.parametrize(
    "mech",
    [lw.mechanisms.double_pendulum(), lw.mechanisms.random_tree(3, 5, joints=("universal", "planar", "helical"))],
    ids=lambda mech: mech.name,
)
def test_the_papers_formula_in_coordinates(mech):
    q, _ = lw.random_state(mech, np.random.default_rng(2))
    first = lw.derivatives.mass_matrix_derivatives(mech, q)
    second = np.stack(
        [rate(lambda t, e=e: lw.derivatives.mass_matrix_derivatives(mech, q + t * e), 2e-3) for e in np.eye(mech.nv)],
        axis=-1,
    )
    gamma = 0.5 * (np.einsum("jki->ijk", first) + np.einsum("ikj->ijk", first) - first)  # [ij, k]
    np.testing.assert_allclose(lw.formulations.diagonal.christoffel_symbols(mech, q), gamma, atol=1e-12)
    products = np.einsum("ijl,lm,hkm->hijk", gamma, np.linalg.inv(lw.mass_matrix(mech, q)), gamma)
    expected = (
        0.5 * (np.einsum("hkij->hijk", second) + np.einsum("ijhk->hijk", second))
        - 0.5 * (np.einsum("hjik->hijk", second) + np.einsum("ikhj->hijk", second))
        + products
        - np.swapaxes(products, -1, -2)
    )
    np.testing.assert_allclose(
        lw.formulations.diagonal.curvature(mech, q), expected, atol=1e-9 * np.abs(expected).max()
    )


def test_rotations_of_a_ball_form_a_sphere():
    """With inertia J in all directions, rotations are a sphere of radius 2 sqrt(J): sectional curvature 1 / (4 J)."""
    mech = single(lw.Spherical(), (0.7, 0.7, 0.7))
    q, _ = lw.random_state(mech, np.random.default_rng(0))
    g = 0.7 * np.eye(3)
    expected = (np.einsum("hj,ik->hijk", g, g) - np.einsum("hk,ij->hijk", g, g)) / (4 * 0.7)
    np.testing.assert_allclose(lw.formulations.diagonal.curvature(mech, q), expected, atol=1e-13)


def test_a_free_body_by_milnors_formulas():
    """Ricci's curvature of a left-invariant metric on the rotations, in principal axes; translations add nothing."""
    inertia = np.array([0.3, 0.5, 0.6])
    mech = single(lw.Floating(), tuple(inertia))
    q, _ = lw.random_state(mech, np.random.default_rng(0))
    metric = lw.mass_matrix(mech, q)
    ricci = np.einsum("hj,hijk->ik", np.linalg.inv(metric), lw.formulations.diagonal.curvature(mech, q))
    lengths = np.sqrt(inertia)
    constants = np.array([inertia[i] / np.prod(lengths) for i in range(3)])  # of an orthonormal frame
    half = 0.5 * constants.sum() - constants
    expected = [2.0 * np.prod(np.delete(half, i)) * inertia[i] for i in range(3)]
    np.testing.assert_allclose(np.diag(ricci)[:3], expected, rtol=1e-12)
    np.testing.assert_allclose(ricci[3:], 0.0, atol=1e-13)


@pytest.mark.parametrize("seed", range(3))
def test_symmetries(seed):
    mech = lw.mechanisms.random_tree(2, seed, joints=("spherical", "planar", "universal"))
    q, _ = lw.random_state(mech, np.random.default_rng(seed), (2,))
    r = lw.formulations.diagonal.curvature(mech, q)
    scale = 1e-11 * np.abs(r).max()
    np.testing.assert_allclose(r, -np.einsum("...hijk->...ihjk", r), atol=scale)
    np.testing.assert_allclose(r, -np.einsum("...hijk->...hikj", r), atol=scale)
    np.testing.assert_allclose(r, np.einsum("...hijk->...jkhi", r), atol=scale)
    cyclic = r + np.einsum("...hijk->...hjki", r) + np.einsum("...hijk->...hkij", r)
    np.testing.assert_allclose(cyclic, 0.0, atol=scale)
