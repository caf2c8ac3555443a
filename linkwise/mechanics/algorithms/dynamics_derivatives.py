"""Derivatives of inverse and forward dynamics (spencer2004 Section 4.3, for any joints, wrenches and gravity).

A change at a joint is a field of accelerations over the links beyond it (links/acceleration_fields.py).  Outer joints
respond through the covectors of their own composite bodies, inner joints through the wrench that it requires and, for
changes of position, through the rotated wrench of the subtree.  All three matrices come from one sweep outward and one
inward, with one covector and two wrenches propagated inward per degree of freedom.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from ..links.acceleration_fields import Covector, Field, FieldKinematics, JointFields, Response, joint_fields
from ..links.factor import Elimination
from ..links.forces import inertial_force
from ..links.kinematics import angular_velocity_base_to_tip, propagate_acceleration
from ..links.link import JointKinematics
from ..recursions.pairs import Dof
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Tree
from ..scalar import Matrix, Scalar, dot, each, is_zero, transposed
from ..spatial import Force, Motion, Vector3
from ..spatial.three import ZERO
from .algorithm import COMPOSITE_BODIES, UNCONSTRAINED, Algorithm, FromDerivatives, algorithm, register
from .dynamics import inverse_dynamics, mass_matrix
from .metric import twice_symmetric_connection


class Moving(NamedTuple):
    """Motion of a link, in its own axes."""

    omega: Vector3
    acceleration: Motion
    kinematics: FieldKinematics
    fields: JointFields


class Felt(NamedTuple):
    """Covector of one degree of freedom, and the wrenches due to changes of its position and velocity."""

    row: Covector
    of_position: Force
    of_velocity: Force


@algorithm(
    ("q", "v", "a"),
    "partials",
    reason=COMPOSITE_BODIES,
    ports=("wrenches",),
    requires=UNCONSTRAINED.or_use("linkwise.inverse_dynamics_derivatives itself, which no kernel gives then"),
    sweeps=True,
)
def inverse_dynamics_derivatives(tree: Tree, q, v, a, wrenches: Any = None) -> list[Matrix]:
    """(3, nv, nv): derivatives of joint forces along tangent directions of q, with respect to v, and to a."""
    return inverse_dynamics_changes(tree, q, v, a, wrenches)


def inverse_dynamics_changes(tree: Tree, q, v, a, wrenches: Any = None) -> list[Any]:
    """Derivatives of inverse dynamics, as the tree's type of matrices over its joints."""
    return _changes(tree, q, v, a, wrenches)[0]


def _changes(tree: Tree, q, v, a, wrenches: Any) -> tuple[list[Matrix], list[Moving]]:
    """The derivatives of inverse dynamics, and the motions of the links."""
    tree = tree.regrouped
    moving = links_on_the_move(tree, q, v, a)
    entries, beyond = _Entries(tree), tree.inwards()
    behind: list[Any] = [None] * len(tree.links)  # response and wrench of each subtree, in the parent's frame

    def inward(i: int, _: list[None]) -> tuple[None, None]:
        link, (omega, acceleration, kinematics, fields) = tree.links[i], moving[i]
        response = Response.from_link(link.inertia, omega + omega)
        force = inertial_force(link.inertia, omega, acceleration)
        if wrenches is not None:
            force = force - link.user.force_back(Force.of(list(wrenches[i])))
        response, force = tree.neighbours.from_children(i, "subtrees", behind.__getitem__, [response, force])
        starting = {(i, k): _felt(response, force, kinematics.kinematics, fields, k) for k in range(link.joint.nv)}
        entries.fill_own_joint(i, starting, force, fields)
        arrived = dict(beyond.arriving(i))
        entries.fill_inner_joint(i, arrived, kinematics.kinematics, fields)
        if not tree.neighbours.has_parent(i):
            return None, None
        back = kinematics.kinematics.transform.force_back
        propagated = {
            key: Felt(kinematics.covector_back(row), back(of_position), back(of_velocity))
            for key, (row, of_position, of_velocity) in (arrived | starting).items()
        }
        beyond.hand_on(i, propagated)
        behind[i] = [kinematics.response_back(response), back(force)]
        return None, None

    tip_to_base(tree.links, "composite bodies, what they feel of changes", inward)
    return [tree.reduce_to_coordinates(matrix) for matrix in entries.matrices], moving


def links_on_the_move(tree: Tree, q, v, a) -> list[Moving]:
    """Motions of all links by a sweep outward."""
    joint_kinematics, coordinates = tree.joint_kinematics(q), tree.coordinates(q)
    rates, accelerations = tree.velocities(v), tree.velocities(a)

    moving: list[Any] = [None] * len(tree.links)

    def outward(i: int, parent: tuple[Vector3, Motion] | None) -> tuple[Vector3, Motion]:
        kinematics, (before, of_parent) = joint_kinematics[i], parent or (ZERO, tree.base_acceleration)
        spin = angular_velocity_base_to_tip(kinematics, before, coordinates[i], rates[i])
        relative = kinematics.relative_motion(rates[i])
        arriving = propagate_acceleration(kinematics, spin, of_parent)
        fields = joint_fields(
            kinematics, coordinates[i], rates[i], accelerations[i], spin.omega - relative.angular, arriving - spin.bias
        )
        total = arriving + kinematics.relative_motion(accelerations[i])
        moving[i] = Moving(spin.omega, total, FieldKinematics(kinematics, spin, relative), fields)
        return spin.omega, total

    base_to_tip(tree.links, "velocities, accelerations and their changes", outward)
    return moving


def _felt(response: Response, force: Force, kinematics: JointKinematics, fields: JointFields, k: int) -> Felt:
    motion = kinematics.motion[k]
    row = response.covector(motion)
    turned = response.wrench(fields.position[k]) + motion.cross_force(force)
    return Felt(row, turned, response.wrench(fields.velocity[k]))


class _Entries:
    """The three matrices over all joints, mimic joints included, filled pair by pair."""

    def __init__(self, tree: Tree):
        self._links = tree.links
        self.matrices = [tree.matrix_of_dofs() for _ in range(3)]

    def fill_own_joint(self, i: int, felt_here: dict[Dof, Felt], force: Force, fields: JointFields) -> None:
        """Entries of a joint with itself: its H moves with it, except for the explicit dependence on q."""
        d_q, d_v, d_a = self.matrices
        for (_, m), felt in felt_here.items():
            for k in range(len(felt_here)):
                d_q[(i, m), (i, k)] = felt.row.of(fields.position[k]) + force.dot(fields.columns[k][m])
                d_v[(i, m), (i, k)] = felt.row.of(fields.velocity[k])
                if k >= m:
                    rotor = self._links[i].armature[k] if k == m else 0.0
                    d_a[(i, m), (i, k)] = d_a[(i, k), (i, m)] = rotor + felt.row.of(fields.acceleration[k])

    def fill_inner_joint(self, i: int, dofs: dict[Dof, Felt], kinematics: JointKinematics, fields: JointFields) -> None:
        """Entries of outer degrees of freedom with joint i."""
        d_q, d_v, d_a = self.matrices
        for outer, (row, of_position, of_velocity) in dofs.items():
            for k, motion in enumerate(kinematics.motion):
                inner = (i, k)
                d_q[outer, inner], d_v[outer, inner] = row.of(fields.position[k]), row.of(fields.velocity[k])
                d_q[inner, outer], d_v[inner, outer] = of_position.dot(motion), of_velocity.dot(motion)
                d_a[outer, inner] = d_a[inner, outer] = row.force.dot(motion)


def forward_dynamics_derivatives(tree: Tree, q, v, tau, wrenches: Any = None) -> list[Matrix]:
    """(3, nv, nv): derivatives of accelerations along tangent directions of q, with respect to v, and to tau."""
    return accelerations_with_changes(tree, q, v, tau, wrenches).derivatives()


@dataclass(frozen=True)
class Accelerations:
    """Accelerations and the factors of their derivatives.

    Inverse dynamics stays at tau, so the accelerations change by -M^-1 times its changes; derivatives by tau are M^-1.

    values        (nv,)
    mass          the mass matrix, factored
    of_position   (nv, nv): changes of inverse dynamics with the position
    of_velocity   (nv, nv)
    answered      for both, known changes of the accelerations: a field that accelerates all links beyond a free joint
                  as one body changes the acceleration of that joint only
    """

    values: list[Scalar]
    mass: Elimination
    of_position: Matrix
    of_velocity: Matrix
    answered: tuple[dict[int, list[Scalar]], dict[int, list[Scalar]]]

    def derivatives(self) -> list[Matrix]:
        """Three of (nv, nv): by position, velocity and joint forces."""
        columns = {}
        for which, matrix in enumerate((self.of_position, self.of_velocity)):
            for k, column in enumerate(zip(*matrix, strict=True)):
                if k not in self.answered[which]:
                    columns[which, k] = [-x for x in column]
        solved = dict(zip(columns, self.mass.solve_each(list(columns.values())), strict=True))
        by_q, by_v = (
            transposed(answered.get(k) or solved[which, k] for k in range(len(self.values)))
            for which, answered in enumerate(self.answered)
        )
        return [by_q, by_v, self.mass.inverse()]

    def pulled_back(self, rows: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
        """(3 nv,) for each row: minus the row times each of these derivatives, without forming them."""
        return [self._pulled_back(row) for row in rows]

    def _pulled_back(self, row: Sequence[Scalar]) -> list[Scalar]:
        of_tau, products = self._times_inverse(row), []
        for matrix, answered in zip((self.of_position, self.of_velocity), self.answered, strict=True):
            for k, column in enumerate(zip(*matrix, strict=True)):
                products.append(-dot(row, answered[k]) if k in answered else dot(of_tau, column))
        return [*products, *(-x for x in of_tau)]

    def _times_inverse(self, row: Sequence[Scalar]) -> list[Scalar]:
        """M^-1 times a row; for a multiple of a unit vector, a multiple of a row of ``_inverse``."""
        there = [k for k, x in enumerate(row) if not is_zero(x)]
        return [row[there[0]] * x for x in self._inverse[there[0]]] if len(there) == 1 else self.mass.solve(row)

    @cached_property
    def _inverse(self) -> Matrix:
        return self.mass.inverse()


class Solved(NamedTuple):
    """A state, its accelerations, and the factored mass matrix."""

    q: Sequence[Scalar]
    v: Sequence[Scalar]
    values: list[Scalar]
    mass: Elimination


def solved(tree: Tree, q, v, tau, wrenches: Any = None) -> Solved:
    """Accelerations by the factored mass matrix."""
    mass = Elimination(mass_matrix(tree, q))
    at_rest = inverse_dynamics(tree, q, v, [0.0] * tree.mechanism.nv, wrenches)
    return Solved(q, v, mass.solve([t - b for t, b in zip(tau, at_rest, strict=True)]), mass)


def accelerations_with_changes(tree: Tree, q, v, tau, wrenches: Any = None) -> Accelerations:
    """Accelerations and the factors of their derivatives."""
    (accelerations,) = with_changes(tree, [solved(tree, q, v, tau, wrenches)], wrenches)
    return accelerations


def with_changes(tree: Tree, states: Sequence[Solved], wrenches: Any = None) -> list[Accelerations]:
    """Factors of the derivatives of accelerations at several states, in one loop over the states if that pays."""
    n, answering = tree.mechanism.nv, (list[int](), list[int]())

    def changes(numbers: list[Scalar]) -> list[Scalar]:
        q, v, a = numbers[: -2 * n], numbers[-2 * n : -n], numbers[-n:]
        (d_q, d_v, _), moving = _changes(tree, q, v, a, wrenches)
        fields = [[moved.fields.position for moved in moving], [moved.fields.velocity for moved in moving]]
        answers = [_free_base_derivatives(tree, each_field) for each_field in fields]
        for known, answer in zip(answering, answers, strict=True):
            known[:] = answer
        return [x for rows in (d_q, d_v, *(answer.values() for answer in answers)) for row in rows for x in row]

    accelerations = []
    for state, numbers in zip(states, each([[*x.q, *x.v, *x.values] for x in states], changes), strict=True):
        rows = [numbers[k : k + n] for k in range(0, len(numbers), n)] if n else []
        answers, first = rows[2 * n :], len(answering[0])
        answered = (
            dict(zip(answering[0], answers[:first], strict=True)),
            dict(zip(answering[1], answers[first:], strict=True)),
        )
        accelerations.append(Accelerations(state.values, state.mass, rows[:n], rows[n : 2 * n], answered))
    return accelerations


def _free_base_derivatives(tree: Tree, fields: Sequence[Sequence[Field]]) -> dict[int, list[Scalar]]:
    """Derivatives of accelerations known from invariance, by degree of freedom: position and velocity of a free base
    influence its joints only through the direction of gravity."""
    answers: dict[int, list[Scalar]] = {}
    for link, start, fields_of_joint in zip(tree.links, tree.dof_starts, fields, strict=True):
        is_free = link.parent < 0 and link.joint.span == tuple(range(6)) and all(map(is_zero, link.armature))
        if not is_free or tree.mechanism.coordinates.mimic_joints:
            continue
        for k, field in enumerate(fields_of_joint):
            if all(map(is_zero, field.turning)):
                answer: list[Scalar] = [0.0] * tree.dofs
                answer[start : start + 6] = [-x for x in (*field.angular, *field.linear)]
                answers[start + k] = answer
    return answers


def inverse_dynamics_second_derivatives(tree: Tree, first: np.ndarray, second: np.ndarray) -> list[np.ndarray]:
    """Four of (nv, nv, nv): derivatives of joint forces along q and q, by v and v, along q and by v, by a and along q.

    first    (3, nv, nv): result of ``inverse_dynamics_derivatives``
    second   (3, nv, nv, nv): its derivatives along tangent directions of q
    """
    bodies = zip(tree.mechanism.bodies, tree.links, strict=True)
    rotors = [x for body, link in bodies if not body.mimic for x in link.armature]
    links_alone = first[2] - np.diag(np.array(rotors, dtype=object))
    return derive_second(second, links_alone, tree.mechanism.coordinates.structure_constants)


def derive_second(second: np.ndarray, links_alone: np.ndarray, structure_constants: np.ndarray) -> list[np.ndarray]:
    """The second derivatives, from changes (3, ..., nv, nv) of the first ones along tangent directions of q.

    For commuting directions, derivatives along q and q are symmetric.  Derivatives by v and v follow from the
    derivatives of the mass matrix of the links alone: rotors resist acceleration only.
    """
    d_qq, d_vq, d_aq = second
    j, k = np.nonzero(np.triu(~structure_constants.any(axis=-1), 1))
    d_qq[..., j, k] = d_qq[..., k, j]
    d_vv = np.moveaxis(twice_symmetric_connection(links_alone, d_aq, structure_constants), -1, -3)
    return [d_qq, d_vv, np.swapaxes(d_vq, -1, -2), d_aq]


register(
    Algorithm(
        "inverse_dynamics_second_derivatives",
        ("q", "v", "a"),
        ("d_qq", "d_vv", "d_qv", "d_aq"),
        FromDerivatives("inverse_dynamics_derivatives", inverse_dynamics_second_derivatives),
        reason=COMPOSITE_BODIES,
        requires=UNCONSTRAINED,
    )
)
