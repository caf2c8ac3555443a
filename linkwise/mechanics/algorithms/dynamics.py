"""Tree dynamics from operator expressions: numbers over the independent coordinates in, numbers out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ...mechanism import Mechanism, MechanismError
from ..operators.apply import apply_expression
from ..operators.expression import Expression
from ..operators.matrices import matrix_of
from ..recursions.frames import is_skew
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, dot
from . import expressions as ex
from .elimination import Elimination
from .jacobians import jacobian
from .mimic_joints import has_mimic_joints, independent_block, on_independent_joints, per_joint, refuse_mimic_joints

Matrix = list[list[Scalar]]
ABOUT_Z = (2,)  # what the motions of a joint span that only turns about its axis


def joint_forces(expression: Expression, tree: Tree, q: Sequence[Scalar], **vectors: Any) -> list[Scalar]:
    """An expression that gives joint forces, for velocities ``v``, accelerations ``a`` and link ``wrenches``."""
    given = {name: x if name == ex.wrenches.name else tree.velocities(x) for name, x in vectors.items()}
    return tree.collect(per_joint(tree, apply_expression(expression, tree, q, given)))


def inverse_dynamics(tree: Tree, q, v, a, wrenches=None) -> list[Scalar]:
    """(nv,): see expressions.inverse_dynamics."""
    forces = ex.forces_on_links(wrenches is not None)
    return joint_forces(ex.inverse_dynamics(forces), tree, q, v=v, a=a, wrenches=wrenches)


def joint_wrenches(tree: Tree, q, v, a, wrenches=None) -> Matrix:
    """(n_links, 6): the forces f of the same recursion, on each link at its origin, in link axes."""
    given = {"v": tree.velocities(v), "a": tree.velocities(a), ex.wrenches.name: wrenches}
    return apply_expression(ex.joint_wrenches(ex.forces_on_links(wrenches is not None)), tree, q, given)


def bias_force(tree: Tree, q, v) -> list[Scalar]:
    return joint_forces(ex.BIAS_FORCE, tree, q, v=v)


def gravity_force(tree: Tree, q) -> list[Scalar]:
    return joint_forces(ex.GRAVITY_FORCE, tree, q)


def forward_dynamics(tree: Tree, q, v, tau, wrenches=None, method: str | None = None) -> list[Scalar]:
    """(nv,): one of expressions.FORWARD_DYNAMICS, by default the one that ``fastest_method`` expects to cost least."""
    method = method or fastest_method(tree.mechanism)
    if method not in ex.FORWARD_DYNAMICS:
        raise ValueError(f"method must be one of {', '.join(ex.FORWARD_DYNAMICS)}, got {method!r}")
    forces = ex.forces_on_links(wrenches is not None)
    given = {"v": tree.velocities(v), "tau": on_independent_joints(tree, tau), ex.wrenches.name: wrenches}
    if has_mimic_joints(tree):
        return _solved(tree, q, ex.bias_free_moments(forces), given)
    return apply_expression(ex.FORWARD_DYNAMICS[method](forces), tree, q, given)


def fastest_method(mechanism: Mechanism) -> str:
    """The biased algorithm has its bias forces from constants: few for joints that only turn, about skew axes."""
    turning = (i for i, body in enumerate(mechanism.bodies) if body.kind.span == ABOUT_Z)
    skew = sum(is_skew(mechanism, i) for i in turning)
    return "biased" if 2 * skew >= mechanism.n_links else "filter_and_smoother"


def acceleration_parts(tree: Tree, q, v, tau) -> Matrix:
    """(3, nv): accelerations due to joint moments, to bias forces, to bias accelerations and gravity; their sum is
    forward dynamics."""
    given = {"v": tree.velocities(v), "tau": on_independent_joints(tree, tau)}
    if has_mimic_joints(tree):
        return [_solved(tree, q, part, given) for part in ex.FORCE_PARTS]
    return [apply_expression(ex.MASS_MATRIX_INVERSE @ part, tree, q, given) for part in ex.FORCE_PARTS]


def _solved(tree: Tree, q, forces: Expression, given: dict[str, Any]) -> list[Scalar]:
    """Accelerations under the joint forces of an expression, for mechanisms with followers."""
    applied = tree.collect(per_joint(tree, apply_expression(forces, tree, q, given)))
    return Elimination(mass_matrix(tree, q)).solve(applied)


def forward_link_accelerations(tree: Tree, q, v, tau) -> Matrix:
    """(n_links, 6): of the link origins, as an inertial observer sees them, in link axes."""
    refuse_mimic_joints(
        tree.mechanism,
        "link accelerations are found joint by joint, but {mimic_joints} mimic others: use lw.link_accelerations "
        "with the accelerations of lw.forward_dynamics",
    )
    return apply_expression(
        ex.FORWARD_LINK_ACCELERATIONS, tree, q, {"v": tree.velocities(v), "tau": on_independent_joints(tree, tau)}
    )


def mass_matrix(tree: Tree, q) -> Matrix:
    """(nv, nv) by composite bodies."""
    return independent_block(tree, matrix_of(ex.MASS_MATRIX, Configuration(tree, q)))


def mass_matrix_inverse(tree: Tree, q) -> Matrix:
    """(nv, nv) from its factors."""
    if not has_mimic_joints(tree):
        return matrix_of(ex.MASS_MATRIX_INVERSE, Configuration(tree, q))
    return Elimination(mass_matrix(tree, q)).inverse()


def operational_inertia(tree: Tree, q, link: str) -> Matrix:
    """(6, 6): force per acceleration of a frame, in its own axes at its origin."""
    _require_six_dofs(tree, link)
    if not has_mimic_joints(tree):
        return matrix_of(ex.operational_inertia(link), Configuration(tree, q))
    rows, mass = jacobian(tree, q, link), Elimination(mass_matrix(tree, q))
    responses = [mass.solve(row) for row in rows]  # M^-1 J*
    mobility = [[dot(row, response) for response in responses] for row in rows]
    return Elimination(mobility).inverse()


def _require_six_dofs(tree: Tree, link: str) -> None:
    mechanism = tree.mechanism
    path = mechanism.path(mechanism.frame(link).body)
    moving = {mechanism.v_index(mechanism.bodies[i].joint).start for i in path}
    dofs = sum(b.nv for b in mechanism.bodies if b.nv and mechanism.v_index(b.joint).start in moving)
    if dofs < 6:
        raise MechanismError(
            f"link {link!r} moves with only {dofs} freedoms: J M^-1 J* has no inverse; "
            "6 are needed (use jacobian and mass_matrix_inverse for fewer)"
        )
