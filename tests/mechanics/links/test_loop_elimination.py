"""What an elimination solves beside the constraints it was made of: other right sides, and multipliers."""

from __future__ import annotations

import numpy as np
import pytest

from linkwise.mechanics.links.loop_elimination import Front, Row, eliminate

# Constraints 0 and 1 know coordinates 0 to 3, constraints 2 and 3 know 2 to 5; 4 is the sum of 2 and 3.
FRONTS = {
    "one front": [Front((0, 1, 2, 3), tuple(range(6)), 4)],
    "two in a row": [Front((0, 1), (0, 1), 2), Front((2, 3), (2, 3, 4, 5), 2)],
    "what is left to a parent": [Front((0, 1), (0, 1), 1), Front((2, 3), (2, 3, 4, 5), 3, (0,))],
    "an implied constraint": [Front((0, 1, 2, 3, 4), tuple(range(6)), 4, implied=1e-6)],
}


@pytest.mark.parametrize("name", FRONTS)
def test_right_sides_and_multipliers(name):
    rng = np.random.default_rng(0)
    g = np.zeros((5, 6))
    g[:2, :4], g[2:4, 2:] = rng.normal(size=(2, 4)), rng.normal(size=(2, 4))
    g[4] = g[2] + g[3]
    count = 1 + max(r for front in FRONTS[name] for r in front.rows)
    g = g[:count]
    rows = {r: Row({c: float(x) for c, x in enumerate(row) if x}, 0.0) for r, row in enumerate(g)}
    solution = eliminate(rows, range(6), FRONTS[name])
    assert solution.reliability > 1.0
    basis = np.array([solution.basis[c] for c in range(6)])
    np.testing.assert_allclose(g @ basis, 0.0, atol=1e-12)

    rates = g @ rng.normal(size=6)
    closing = solution.closing({r: float(x) for r, x in enumerate(rates)})
    np.testing.assert_allclose(g @ [closing[c] for c in range(6)], rates, atol=1e-12)

    forces = g.T @ rng.normal(size=count)
    multipliers = solution.multipliers({c: float(x) for c, x in enumerate(forces)})
    np.testing.assert_allclose(g.T @ [multipliers[r] for r in range(count)], forces, atol=1e-12)
    # Adjoint to each other: what rates do against multipliers is what motions do against forces.
    work = sum(closing[c] * forces[c] for c in range(6))
    np.testing.assert_allclose(sum(rates[r] * multipliers[r] for r in range(count)), work, atol=1e-12)
