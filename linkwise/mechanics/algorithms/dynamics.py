"""Results of expressions, as building blocks of other algorithms."""

from __future__ import annotations

from ..links.factor import Elimination
from ..operators.plan import apply
from ..recursions.schedule import BASE_TO_TIP, TIP_TO_BASE
from ..recursions.sweep import sweep_over
from ..recursions.tree import Tree
from ..scalar import Matrix, Scalar
from . import expressions as ex


def inverse_dynamics(tree: Tree, q, v, a, wrenches=None) -> list[Scalar]:
    """(nv,)"""
    expression = ex.inverse_dynamics(ex.forces_on_links(wrenches is not None))
    return apply(expression, tree, q, v=v, a=a, wrenches=wrenches)


def bias_force(tree: Tree, q, v) -> list[Scalar]:
    """(nv,)"""
    return apply(ex.BIAS_FORCE, tree, q, v=v)


def forward_dynamics(tree: Tree, q, v, tau, wrenches=None) -> list[Scalar]:
    """(nv,), by the method with the least expected cost."""
    mechanism = tree.original
    expression = ex.forward_dynamics(mechanism, ex.fastest_method(mechanism), wrenches is not None)
    return apply(expression, ex.tree_of_forward_dynamics(tree), q, v=v, tau=tau, wrenches=wrenches)


def mass_matrix(tree: Tree, q) -> Matrix:
    """(nv, nv)"""
    return apply(ex.MASS_MATRIX, tree, q)


def mass_matrix_inverse(tree: Tree, q) -> Matrix:
    """(nv, nv), from the elements of the mass matrix, for short paths to the base (``expressions.py``)."""
    mass = mass_matrix(tree, q)
    with sweep_over(TIP_TO_BASE, "elimination, M = U D U*")("coordinates"):
        factors = Elimination(mass)
    with sweep_over(BASE_TO_TIP, "inverse of U D U*")("coordinates"):
        return factors.inverse()
