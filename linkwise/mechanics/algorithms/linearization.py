"""Functions whose derivatives linearise mechanisms with loops (spencer2004 Section 4.4, Appendix B)."""

from __future__ import annotations

from collections.abc import Sequence

from ..jet import jet, parts
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, dot
from .algorithm import algorithm
from .configuration import MANIFOLD
from .loop_constraints import LOOPS, constraint_jacobian


@algorithm(("q", "v", "a", "multipliers"), reason=LOOPS)
def constraint_motion(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar], multipliers: Sequence[Scalar]
) -> list[Scalar]:
    """(nv + 2 m,): [G* lambda; G a + dG/dt v; G v], the last two d2g/dt2 and dg/dt where constraints are on positions.

    A linearization needs derivatives of K only through its derivatives along q: the first part gives dK/dy, the others
    the second and the first time derivative of K.
    """
    rows = constraint_jacobian(tree, q)
    forces = [dot([row[k] for row in rows], multipliers) for k in range(tree.mechanism.nv)]
    at, rates, accelerations = Configuration(tree, q), tree.velocities(v), tree.velocities(a)
    second = [x for path in at.ways for x in path.acceleration(at, rates, accelerations)]
    return forces + second + [x for path in at.ways for x in path.velocity(at, rates)]


@algorithm(("v",), reason=MANIFOLD)
def step_rate_jacobian(tree: Tree, v: Sequence[Scalar]) -> list[list[Scalar]]:
    """(nv, nv): derivative of the rate of u = difference(q0, q) by u at u = 0, at constant v.

    Half the bracket of u with v for freely rotating joints (``Joint.step_rate``), zero where v is dq/dt.
    """
    mechanism = tree.mechanism
    rows: list[list[Scalar]] = [[0.0] * mechanism.nv for _ in range(mechanism.nv)]
    for body in (b for b in mechanism.bodies if not b.mimic):
        at = mechanism.v_index(body.joint)
        for k in range(body.nv):
            step = [jet(0.0, 1.0 if i == k else 0.0) for i in range(body.nv)]
            for i, x in enumerate(body.kind.step_rate(step, list(v[at]))):
                rows[at.start + i][at.start + k] = parts(x)[1]
    return rows
