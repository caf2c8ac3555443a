import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanics.links.factor import Elimination

TREES = {
    "chain": [-1, 0, 1, 2, 3, 4],
    "limbs": [-1, 0, 0, 2, 2, 4, 4, 1, 7],
    "limbs numbered in turn": [-1, 0, 1, 1, 2, 3, 4, 5, 5, 0],
    "two trees": [-1, 0, -1, 2, 2, 1, 4],
    "dense": list(range(-1, 8)),
}


def matrix_of_tree(parents: list[int], seed: int) -> np.ndarray:
    """Positive, like a mass matrix: coordinates are coupled with those between them and the base."""
    rng, n = np.random.default_rng(seed), len(parents)
    factor = np.diag(rng.uniform(1.0, 2.0, n))
    for j in range(n):
        k = parents[j]
        while k >= 0:
            factor[j, k] = rng.normal()
            k = parents[k]
    return factor.T @ factor


@pytest.mark.parametrize("name", TREES)
def test_inverse_of_trees(name: str):
    matrix = matrix_of_tree(TREES[name], 3)
    found = Elimination(matrix.tolist()).inverse()
    np.testing.assert_allclose(found, np.linalg.inv(matrix), atol=1e-12 * np.abs(np.linalg.inv(matrix)).max())
    assert np.array_equal(found, np.transpose(found))


@pytest.mark.parametrize("name", TREES)
def test_the_same_inverse_from_rows_that_are_at_hand(name: str):
    matrix = matrix_of_tree(TREES[name], 4)
    elimination = Elimination(matrix.tolist())
    solved = elimination.solve_each(np.eye(len(matrix)).tolist())
    np.testing.assert_allclose(elimination.inverse(), solved, atol=1e-12 * np.abs(solved).max())
    np.testing.assert_allclose(Elimination(matrix.tolist()).inverse(), solved, atol=1e-12 * np.abs(solved).max())


def test_zeros_between_coordinates_of_one_branch():
    """Where L is zero between a coordinate and its parent, it hangs on the one before."""
    matrix = np.array([[4.0, 1.0, 1.0], [1.0, 3.0, 0.0], [1.0, 0.0, 2.0]])
    np.testing.assert_allclose(Elimination(matrix.tolist()).inverse(), np.linalg.inv(matrix), atol=1e-14)


def test_couplings_that_cancel():
    """Where L is zero between two coordinates that a third is coupled with, as inertias cancel, both carry it."""
    matrix = np.array([[2.0, 1.0, 1.0], [1.0, 2.0, 1.0], [1.0, 1.0, 1.0]])
    elimination = Elimination(matrix.tolist())
    assert elimination.factor.lower[2][1] == 0.0 and elimination.factor.lower[2][0] == 1.0
    np.testing.assert_allclose(elimination.inverse(), np.linalg.inv(matrix), atol=1e-14)


FREE_JOINTS_BEYOND_OTHERS = [(9, 4, True), (8, 161, False), (8, 371, True), (9, 242, True), (10, 63, False)]


@pytest.mark.parametrize("size, seed, floating", FREE_JOINTS_BEYOND_OTHERS)
def test_inverse_mass_matrices_of_trees_in_which_inertias_cancel(size: int, seed: int, floating: bool):
    """What a link that moves freely asks of those before it is nothing."""
    mech = lw.mechanisms.random_tree(size, seed, floating_base=floating)
    q, v = lw.random_state(mech, np.random.default_rng(0), (3,))
    mass = lw.mass_matrix(mech, q)
    accuracy = 1e-13 * np.linalg.cond(mass).max()
    np.testing.assert_allclose(lw.mass_matrix_inverse(mech, q) @ mass, np.eye(mech.nv) + 0 * mass, atol=accuracy)
    accelerations = lw.forward_dynamics(mech, q, 0 * v, v) - lw.forward_dynamics(mech, q, 0 * v, 0 * v)
    found = (lw.mass_matrix_inverse(mech, q) @ v[..., None])[..., 0]
    np.testing.assert_allclose(found, accelerations, atol=1e-12 * np.linalg.cond(mass).max())
