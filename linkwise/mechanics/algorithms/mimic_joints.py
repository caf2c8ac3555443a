"""Mimic joints: followers are eliminated, the results are those of the independent coordinates.

The operators see every joint.  Velocities of followers come from their leaders, joint forces of followers act on
their leaders; where motion is solved for, the mass matrix of the independent coordinates is factored.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism import Mechanism, MechanismError
from ..recursions.tree import Tree
from ..scalar import Scalar

JointVector = list[list[Scalar]]  # one list per joint, followers included
Matrix = list[list[Scalar]]


def has_mimic_joints(tree: Tree) -> bool:
    return any(body.mimic for body in tree.mechanism.bodies)


def refuse_mimic_joints(mechanism: Mechanism, complaint: str) -> None:
    """Refuse mechanisms with mimic joints.  The complaint names them as ``{mimic_joints}``, says what is in the way and
    what to do instead."""
    names = ", ".join(repr(body.joint) for body in mechanism.bodies if body.mimic)
    if names:
        raise MechanismError(complaint.format(mimic_joints=f"{names} of mechanism {mechanism.name!r}"))


def on_independent_joints(tree: Tree, tau: Sequence[Scalar]) -> JointVector:
    """Joint forces over the independent coordinates as forces of all joints: followers get none."""
    mechanism = tree.mechanism
    return [[0.0] if b.mimic else list(tau[mechanism.v_index(b.joint)]) for b in mechanism.bodies]


def per_joint(tree: Tree, flat: Sequence[Scalar]) -> JointVector:
    """A flat vector over all joints, followers included, cut into joints."""
    numbers = iter(flat)
    return [[next(numbers) for _ in range(link.joint.nv)] for link in tree.links]


def independent_columns(tree: Tree, matrix: Matrix) -> Matrix:
    """A matrix over all joints (columns) as one over the independent coordinates."""
    return [tree.collect(per_joint(tree, row)) for row in matrix]


def independent_block(tree: Tree, matrix: Matrix) -> Matrix:
    """A symmetric or square matrix over all joints reduced on both sides."""
    rows = [list(column) for column in zip(*independent_columns(tree, matrix), strict=True)]
    return [list(column) for column in zip(*independent_columns(tree, rows), strict=True)]
