"""Derivatives of loop equations along q (spencer2004 4.4, Appendix B), by jets along the coordinates of the joints
around a loop."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...mechanism import Constraint
from ..jet import dual, slopes_of
from ..recursions.loops import constraint_path, label_loop
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar
from .configuration import coordinate_rates
from .loop_constraints import joint_forces


@dataclass(frozen=True)
class LoopChanges:
    """Derivatives along the coordinates of one loop or coupling.

    rows           of the loop among all constraints
    coordinates    coordinates on which the loop depends
    velocity       (rows, coordinates): of G v
    acceleration   (rows, coordinates): of G a + dG/dt v
    forces         (coordinates, coordinates): of G* lambda
    """

    rows: slice
    coordinates: list[int]
    velocity: Matrix
    acceleration: Matrix
    forces: Matrix


def loop_changes(
    tree: Tree,
    loop: Constraint,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    multipliers: Sequence[Scalar],
) -> LoopChanges:
    """Changes of all loops at q, for a motion with velocity v and acceleration a, and multipliers of all
    constraints."""
    rows, coordinates = tree.mechanism.constraints.rows(loop.name), _coordinates(tree, loop)
    units = [[float(c == k) for k in range(tree.mechanism.nv)] for c in coordinates]
    rates = zip(*(coordinate_rates(tree, q, unit) for unit in units), strict=True)
    at = Configuration(tree, [dual(x, slopes) for x, slopes in zip(q, rates, strict=True)])
    with label_loop(loop):
        path = constraint_path(at, loop)
        velocities, count = tree.velocities(v), len(coordinates)
        first = path.velocity(at, velocities)
        second = path.acceleration(at, velocities, tree.velocities(a))
        forces = joint_forces(at, path, multipliers[rows])
    parts = (first, second, [forces[c] for c in coordinates])
    changes = ([list(slopes_of(x, count)) for x in part] for part in parts)
    return LoopChanges(rows, coordinates, *changes)


def _coordinates(tree: Tree, loop: Constraint) -> list[int]:
    """Coordinates of the joints around a loop, or of a coupling."""
    mechanism = tree.mechanism
    slices = (mechanism.v_index(mechanism.bodies[i].joint) for i in loop.bodies_within(mechanism))
    return sorted({c for columns in slices for c in range(columns.start, columns.stop)})
