"""The factorization of batches against SciPy's of one matrix."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.linalg

from linkwise.constraints.decomposition import pivoted_qr


@pytest.mark.parametrize("shape", [(4, 4), (3, 5), (6, 2), (1, 1), (4, 0), (0, 3)])
def test_factors(shape):
    matrices = np.random.default_rng(0).normal(size=(2, 3, *shape))
    if min(shape) > 1:
        matrices[1, 0, :, 0] = matrices[1, 0, :, 1]  # columns that depend on each other
    q, r, pivots = pivoted_qr(matrices)
    m = shape[0]
    np.testing.assert_allclose(np.swapaxes(q, -1, -2) @ q, np.broadcast_to(np.eye(m), q.shape), atol=1e-14)
    np.testing.assert_allclose(q @ r, np.take_along_axis(matrices, pivots[..., None, :], axis=-1), atol=1e-14)
    for state in np.ndindex(2, 3) if min(shape) else ():
        expected = scipy.linalg.qr(matrices[state], pivoting=True)
        for found, one in zip((q, r, pivots), expected, strict=True):
            np.testing.assert_allclose(found[state], one, atol=1e-13)
