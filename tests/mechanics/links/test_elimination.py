import numpy as np
import pytest

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
    solved = elimination.solve_columns(np.eye(len(matrix)).tolist())
    np.testing.assert_allclose(elimination.inverse(), solved, atol=1e-12 * np.abs(solved).max())
    np.testing.assert_allclose(Elimination(matrix.tolist()).inverse(), solved, atol=1e-12 * np.abs(solved).max())


def test_zeros_between_coordinates_of_one_branch():
    """Where L is zero between a coordinate and its parent, it hangs on the one before."""
    matrix = np.array([[4.0, 1.0, 1.0], [1.0, 3.0, 0.0], [1.0, 0.0, 2.0]])
    np.testing.assert_allclose(Elimination(matrix.tolist()).inverse(), np.linalg.inv(matrix), atol=1e-14)
