"""The inverse mass matrix times matrices, column by column: two sweeps over the links for each, by the papers' factors.

M^-1 = (I - H psi K)* D^-1 (I - H psi K) (jain1995 4.1) takes as many operations per column as there are links.  With
the elements of the mass matrix that grows with their square, and costs less where there are few.
"""

from __future__ import annotations

from typing import Any

from ...mechanism import Mechanism
from ..operators.expression import Vector
from ..operators.plan import VectorPlan, evaluate, plan_for, specialized
from ..operators.spaces import JOINT
from ..operators.vectors import given
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from . import dynamics, dynamics_derivatives
from . import expressions as ex
from .algorithm import CLOSED, COMPOSITE_BODIES, SOLVES_TREE, Algorithm, InLoops, register
from .dynamics_derivatives import inverse_dynamics_changes

ELIMINATED = (
    "M = U D U* by elimination of its elements (saha1999 40), U^-1 = I - H psi K: no link passes on forces of six "
    "components, which costs less until paths to the base are long"
)
REASON = "for every column two sweeps over the links, as their code does not grow with the links"


def operations_of_inverse(mechanism: Mechanism) -> float:
    """Approximate operations of ``mass_matrix_inverse`` without loops: some for each pair of coordinates."""
    return 33.0 * mechanism.nv**2


def operations_of_derivatives(mechanism: Mechanism) -> float:
    """Approximate operations of ``forward_dynamics_derivatives`` without loops: some per triple of coordinates on a
    path to the base."""
    total, paths = 0.0, list[int]()
    for body in mechanism.bodies:
        paths.append(body.nv + (paths[body.parent] if body.parent >= 0 else 0))
        total += 21.0 * body.nv * paths[-1] ** 2
    return total


def mass_matrix_inverse(tree: Tree, q) -> Any:
    """(nv, nv), of a mechanism without mimic joints."""
    return _solved(Configuration(tree, q), [None])[0]


def forward_dynamics_derivatives(tree: Tree, q, v, tau, wrenches: Any = None) -> list[Any]:
    """(3, nv, nv): derivatives of accelerations along tangent directions of q, with respect to v, and to tau, of a
    mechanism without mimic joints."""
    at = Configuration(tree, q)
    pushed = {} if wrenches is None else {"wrenches": wrenches}
    expression = ex.bias_free(ex.forces_on_links(wrenches is not None))
    accelerations = [x for part in evaluate(expression, at, v=v, tau=tau, **pushed) for x in part]
    d_q, d_v, _ = inverse_dynamics_changes(tree, q, v, accelerations, wrenches)
    return _solved(at, [d_q, d_v, None])


register(
    Algorithm(
        "mass_matrix_inverse",
        ("q",),
        "mass_matrix_inverse",
        dynamics.mass_matrix_inverse,
        expression=lambda mech: None if ex.is_eliminated_for_less(mech) else ex.MASS_MATRIX_INVERSE,
        reason=ELIMINATED,
        requires=SOLVES_TREE.or_use(CLOSED),
        sweeps=InLoops(mass_matrix_inverse, REASON, operations_of_inverse),
    )
)
register(
    Algorithm(
        "forward_dynamics_derivatives",
        ("q", "v", "tau"),
        "partials",
        dynamics_derivatives.forward_dynamics_derivatives,
        reason=COMPOSITE_BODIES,
        ports=("wrenches",),
        requires=SOLVES_TREE.or_algorithm("closed_forward_dynamics_derivatives"),
        sweeps=InLoops(forward_dynamics_derivatives, REASON, operations_of_derivatives),
    )
)


def _solved(at: Configuration, matrices: list[Any]) -> list[Any]:
    """M^-1 times the identity (None), and minus M^-1 times matrices over the joints."""
    mechanism = at.tree.mechanism
    plan = plan_for(specialized(ex.MASS_MATRIX_INVERSE, mechanism) @ Vector("x", JOINT), mechanism)
    assert isinstance(plan, VectorPlan)
    plan.prepare(at)

    def solve(columns: list[list[Scalar]]) -> list[list[list[Scalar]]]:
        signed = zip(columns, matrices, strict=True)
        taken = [column if matrix is None else [-x for x in column] for column, matrix in signed]
        return plan.run_together(at, [{"x": given(at, JOINT, column)} for column in taken])

    return at.tree.each_column(matrices, solve)
