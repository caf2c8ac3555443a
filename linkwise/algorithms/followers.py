"""Mimic joints: followers are eliminated, the results are those of the independent coordinates.

The operators see every joint.  Velocities of followers come from their leaders, joint forces of followers act on
their leaders; only where motion is solved for do the ties need forces of their own: one extra solve per follower.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..links.articulation import Factor
from ..operators.apply import evaluate
from ..operators.evaluate import Configuration
from ..recursions.tree import Tree
from ..scalar import Scalar
from .expressions import MASS_MATRIX_INVERSE, T

JointVector = list[list[Scalar]]  # one list per joint, followers included
Matrix = list[list[Scalar]]


def any_follow(tree: Tree) -> bool:
    return any(body.mimic for body in tree.mechanism.bodies)


def on_leaders(tree: Tree, tau: Sequence[Scalar]) -> JointVector:
    """Joint forces over the independent coordinates as forces of all joints: followers get none."""
    mechanism = tree.mechanism
    return [[0.0] if b.mimic else list(tau[mechanism.v_index(b.joint)]) for b in mechanism.bodies]


def of_leaders(tree: Tree, a: JointVector) -> list[Scalar]:
    """The independent coordinates' part of the accelerations of all joints."""
    return [x for body, part in zip(tree.mechanism.bodies, a, strict=True) if not body.mimic for x in part]


def per_joint(tree: Tree, flat: Sequence[Scalar]) -> JointVector:
    """A flat vector over all joints, followers included, cut into joints."""
    numbers = iter(flat)
    return [[next(numbers) for _ in range(link.joint.nv)] for link in tree.links]


def leading_columns(tree: Tree, matrix: Matrix) -> Matrix:
    """A matrix over all joints (columns) as one over the independent coordinates."""
    return [tree.collect(per_joint(tree, row)) for row in matrix]


def leading_block(tree: Tree, matrix: Matrix) -> Matrix:
    """A symmetric or square matrix over all joints reduced on both sides."""
    rows = [list(column) for column in zip(*leading_columns(tree, matrix), strict=True)]
    return [list(column) for column in zip(*leading_columns(tree, rows), strict=True)]


class Ties:
    """A acc = 0 with one row (follower - ratio leader) per follower, and the forces that keep it so."""

    def __init__(self, at: Configuration):
        mechanism = at.tree.mechanism
        self.rows = [
            (i, mechanism.body_index(b.mimic.joint), b.mimic.ratio) for i, b in enumerate(mechanism.bodies) if b.mimic
        ]
        self.responses = [self._response(at, row) for row in self.rows]
        self.factor = Factor.of([[self._slip(response, row) for response in self.responses] for row in self.rows])

    @staticmethod
    def _response(at: Configuration, row: tuple[int, int, float]) -> JointVector:
        """M^-1 A* for one row."""
        follower, leader, ratio = row
        pull: list[Any] = [None] * len(at.tree.links)
        pull[follower], pull[leader] = [1.0], [-ratio]
        values = evaluate(MASS_MATRIX_INVERSE @ T, at, {T.name: pull})
        return [v or [0.0] * link.joint.nv for v, link in zip(values, at.tree.links, strict=True)]

    @staticmethod
    def _slip(a: JointVector, row: tuple[int, int, float]) -> Scalar:
        follower, leader, ratio = row
        return a[follower][0] - a[leader][0] * ratio

    def hold(self, a: JointVector) -> JointVector:
        """The accelerations once the ties act: a - M^-1 A* (A M^-1 A*)^-1 A a."""
        forces = self.factor.solve([self._slip(a, row) for row in self.rows])
        for response, force in zip(self.responses, forces, strict=True):
            a = [[x - r * force for x, r in zip(p, s, strict=True)] for p, s in zip(a, response, strict=True)]
        return a
