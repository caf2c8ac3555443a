"""Vectors made orthogonal, on numbers: against NumPy's pseudo-inverse."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.mechanics.links.orthogonalization import orthogonalized

RNG = np.random.default_rng(0)
INDEPENDENT = RNG.normal(size=(4, 6))
DEPENDENT = np.concatenate([INDEPENDENT, RNG.normal(size=(2, 4)) @ INDEPENDENT])[[0, 4, 1, 5, 2, 3]]
CASES = {"independent": INDEPENDENT, "dependent": DEPENDENT, "with zeros": DEPENDENT * [[1], [1], [1], [0], [1], [1]]}


@pytest.mark.parametrize("active", [None, [1.0, 0.0, 1.0, 1.0, 0.0, 1.0]], ids=["all", "some"])
@pytest.mark.parametrize("case", CASES)
def test_solutions_are_those_of_the_pseudo_inverse(case, active):
    rows = CASES[case]
    mask = None if active is None else active[: len(rows)]
    found = orthogonalized(rows.tolist(), mask)
    kept = rows if mask is None else rows * np.array(mask)[:, None]
    x, products = RNG.normal(size=6), kept @ RNG.normal(size=6)
    y, rest = found.split(x.tolist())
    assert found.doubt == 0.0 and np.count_nonzero(found.reciprocal) == np.linalg.matrix_rank(kept)
    np.testing.assert_allclose(rest, x - np.linalg.pinv(kept) @ (kept @ x), atol=1e-12)
    np.testing.assert_allclose(found.least_combination(y), np.linalg.pinv(kept.T) @ x, atol=1e-12)
    shortest = found.within(found.with_products(products.tolist()))
    np.testing.assert_allclose(shortest, np.linalg.pinv(kept) @ products, atol=1e-12)


@pytest.mark.parametrize(
    ("apart", "counts", "doubt"), [(1e-3, 2, 0), (1e-6, 2, 1), (1e-9, 2, 1), (1e-12, 1, 0)], ids=lambda x: f"{x:g}"
)
def test_what_is_nearly_dependent_is_in_doubt(apart, counts, doubt):
    found = orthogonalized([[1.0, 2.0, 0.5], [1.0, 2.0 + apart, 0.5]])
    assert (np.count_nonzero(found.reciprocal), found.doubt) == (counts, doubt)


def test_the_condition_is_not_squared():
    """Nearly parallel vectors: what is left of a third is right to the condition, not its square, times round-off."""
    near = 1e-4
    found = orthogonalized([[1.0, 0.0, 0.0], [1.0, near, 0.0]])
    _, rest = found.split([0.3, 0.7, 1.0])
    np.testing.assert_allclose(rest, [0.0, 0.0, 1.0], atol=1e-11)
