"""The inverse mass matrix, alone and times matrices, by the papers' factors: M^-1 = (I - H psi K)* D^-1 (I - H psi K)
(jain1995 4.1).

A column takes two sweeps over the links, with operations proportional to the number of links.  Elimination of the mass
matrix takes operations proportional to the square of this number, which costs less for few links.  In chains without
branches the second sweep is unnecessary: the mobilities of inner links give their response.
"""

from __future__ import annotations

from typing import Any

from ...mechanism import Mechanism
from ..links.acceleration_fields import Covector, Response
from ..links.forces import inertial_force
from ..operators.expression import Vector
from ..operators.plan import VectorPlan, evaluate, plan_for, specialized
from ..operators.spaces import JOINT
from ..operators.vectors import given
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, dot
from ..spatial import Force, Motion
from ..spatial.motion import NO_MOTION
from . import dynamics, dynamics_derivatives
from . import expressions as ex
from .algorithm import CLOSED, COMPOSITE_BODIES, SOLVES_TREE, Algorithm, InLoops, register
from .dynamics_derivatives import inverse_dynamics_changes, links_on_the_move

ELIMINATED = (
    "M = U D U* by elimination of its elements (saha1999 40), U^-1 = I - H psi K: no link passes on forces of six "
    "components, which costs less until paths to the base are long"
)
REASON = "for every column two sweeps over the links, as their code does not grow with the links"
REASON_OF_INVERSE = "for every column one or two sweeps over the links, as their code does not grow with the links"


def operations_of_inverse(mechanism: Mechanism) -> float:
    """Approximate operations of ``mass_matrix_inverse`` without loops: proportional to pairs of coordinates."""
    return 33.0 * mechanism.nv**2


def operations_of_derivatives(mechanism: Mechanism) -> float:
    """Approximate operations of ``forward_dynamics_derivatives`` without loops: proportional to triples of coordinates
    on a path to the base."""
    total, paths = 0.0, list[int]()
    for body in mechanism.bodies:
        paths.append(body.nv + (paths[body.parent] if body.parent >= 0 else 0))
        total += 21.0 * body.nv * paths[-1] ** 2
    return total


def mass_matrix_inverse(tree: Tree, q) -> Any:
    """(nv, nv), for mechanisms without mimic joints."""
    at = Configuration(tree, q)
    parents = tree.original.tree.parents
    return _inverse_without_branches(at) if len(set(parents)) == len(parents) else _solved(at, [None])[0]


def _inverse_without_branches(at: Configuration) -> Any:
    """The inverse mass matrix of a chain.  For every column, forces and innovations propagate inwards from its joint,

        epsilon_i = -H_i z_i        z_parent = X_i* (z_i + G_i epsilon_i)        from z = X_j* G_j on

    and entry (i, j) is D_i^-1 epsilon_i + G_i* X_i Y_parent z_parent, with the mobility Y of the link that carries i
    (rodriguez1986 Section 10).
    """
    tree, links = at.tree, at.tree.links
    tip_to_base(links, "articulated inertias", lambda i, _: (at.articulation(i), None))

    def outward(i: int, _: None) -> None:
        at.response_to_gain(i), at.mobility(i)  # the configuration keeps them

    base_to_tip(links, "mobilities", outward)
    matrix, inwards = tree.matrix_of_dofs(), tree.inwards()

    def inward(i: int, _: list[None]) -> tuple[None, None]:
        joint, responses = at.articulation(i), at.response_to_gain(i)
        back = at.joint_kinematics[i].transform.force_back
        sizes = range(len(joint.gain))
        starting = {(i, m): (joint.gain[m], [1.0 if k == m else 0.0 for k in sizes]) for m in sizes}
        arriving = {}
        for dof, force in inwards.arriving(i):
            innovation = joint.innovation([0.0 for _ in sizes], force)
            arriving[dof] = joint.absorb(force, innovation), innovation
        handed = {}
        for dof, (force, innovation) in (arriving | starting).items():
            handed[dof] = back(force)
            for k, rate in enumerate(joint.factor.solve(innovation)):
                entry = rate + handed[dof].dot(responses[k]) if tree.neighbours.has_parent(i) else rate
                if dof[0] != i or k <= dof[1]:
                    matrix[(i, k), dof] = matrix[dof, (i, k)] = entry
        if tree.neighbours.has_parent(i):
            inwards.hand_on(i, handed)
        return None, None

    tip_to_base(links, "columns of the inverse", inward)
    return tree.reduce_to_coordinates(matrix)


def forward_dynamics_derivatives(tree: Tree, q, v, tau, wrenches: Any = None) -> list[Any]:
    """(3, nv, nv): derivatives of accelerations along tangent directions of q, with respect to v, and to tau, for
    mechanisms without mimic joints."""
    at = Configuration(tree, q)
    pushed = {} if wrenches is None else {"wrenches": wrenches}
    expression = ex.bias_free(ex.forces_on_links(wrenches is not None))
    accelerations = [x for part in evaluate(expression, at, v=v, tau=tau, **pushed) for x in part]
    d_q, d_v, _ = inverse_dynamics_changes(tree, q, v, accelerations, wrenches)
    return _solved(at, [d_q, d_v, None])


class AccelerationsBySweeps:
    """Accelerations at a state, and products of rows with their derivatives, for mechanisms without mimic joints.

    Inverse dynamics ID stays at tau, so a row r times the derivatives is minus x ID', x = M^-1 r.  The velocities x
    give the links virtual motions y.  Their products with changes of accelerations are propagated inwards, as a
    covector of all links beyond a joint (links/acceleration_fields.py).
    """

    def __init__(self, tree: Tree, q, v, tau, wrenches: Any):
        self.at = at = Configuration(tree, q)
        pushed = {} if wrenches is None else {"wrenches": wrenches}
        expression = ex.bias_free(ex.forces_on_links(wrenches is not None))
        self.values = [x for part in evaluate(expression, at, v=v, tau=tau, **pushed) for x in part]
        self.moving = links_on_the_move(tree, q, v, self.values)
        self._behind: dict[int, Force] = {}  # the wrench of each subtree in the parent's frame
        self.forces: dict[int, Force] = {}

        def inward(i: int, _: list[None]) -> tuple[None, None]:
            link, moved = tree.links[i], self.moving[i]
            force = inertial_force(link.inertia, moved.omega, moved.acceleration)
            if wrenches is not None:
                force = force - link.user.force_back(Force.of(list(wrenches[i])))
            self.forces[i] = force = tree.neighbours.from_children(i, (self, "force"), self._behind.__getitem__, force)
            self._behind[i] = at.joint_kinematics[i].transform.force_back(force)
            return None, None

        tip_to_base(tree.links, "wrenches of subtrees", inward)

    def pulled_back(self, rows: list[list[Scalar]]) -> list[list[Scalar]]:
        """(3 nv,) for each row: minus the row times the derivatives by position, velocity and joint forces."""
        at, tree = self.at, self.at.tree
        plan = _inverse_times_vector(tree.mechanism)
        solved = plan.run_together(at, [{"x": given(at, JOINT, row)} for row in rows])
        count, links = range(len(rows)), tree.links
        motions: list[Any] = [None] * len(links)
        arriving: list[Any] = [None] * len(links)

        def outward(i: int, before: list[Motion] | None) -> list[Motion]:
            kinematics = at.joint_kinematics[i]
            arriving[i] = [NO_MOTION if before is None else kinematics.transform.motion_into(before[r]) for r in count]
            motions[i] = [arriving[i][r] + kinematics.relative_motion(solved[r][i]) for r in count]
            return motions[i]

        base_to_tip(links, "virtual motions", outward)
        key, behind = object(), dict[int, list[Covector]]()
        by_position: list[Any] = [None] * len(links)
        by_velocity: list[Any] = [None] * len(links)

        def inward(i: int, _: list[None]) -> tuple[None, None]:
            moved, force = self.moving[i], self.forces[i]
            response, fields = Response.from_link(links[i].inertia, moved.omega + moved.omega), moved.fields
            covectors = [response.covector(motion) for motion in motions[i]]
            felt = tree.neighbours.from_children(i, key, behind.__getitem__, covectors)
            turning = [motion.cross_force(force) for motion in moved.kinematics.kinematics.motion]
            by_velocity[i] = [[felt[r].of(field) for field in fields.velocity] for r in count]
            by_position[i] = [
                [
                    dot(solved[r][i], (force.dot(h) for h in fields.columns[k]), felt[r].of(field))
                    + turning[k].dot(arriving[i][r])
                    for k, field in enumerate(fields.position)
                ]
                for r in count
            ]
            behind[i] = [moved.kinematics.covector_back(covector) for covector in felt]
            return None, None

        tip_to_base(links, "covectors of changes", inward)
        return [
            [x for from_link in (by_position, by_velocity) for part in from_link for x in part[r]]
            + [-x for part in solved[r] for x in part]
            for r in count
        ]


register(
    Algorithm(
        "mass_matrix_inverse",
        ("q",),
        "mass_matrix_inverse",
        dynamics.mass_matrix_inverse,
        expression=lambda mech: None if ex.is_eliminated_for_less(mech) else ex.MASS_MATRIX_INVERSE,
        reason=ELIMINATED,
        requires=SOLVES_TREE.or_use(CLOSED),
        sweeps=InLoops(mass_matrix_inverse, REASON_OF_INVERSE, operations_of_inverse),
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


def _inverse_times_vector(mechanism: Mechanism) -> VectorPlan:
    """The plan of M^-1 x."""
    plan = plan_for(specialized(ex.MASS_MATRIX_INVERSE, mechanism) @ Vector("x", JOINT), mechanism)
    assert isinstance(plan, VectorPlan)
    return plan


def _solved(at: Configuration, matrices: list[Any]) -> list[Any]:
    """M^-1 times the identity (None), and minus M^-1 times matrices over the joints."""
    plan = _inverse_times_vector(at.tree.mechanism)
    plan.prepare(at)

    def solve(columns: list[list[Scalar]]) -> list[list[list[Scalar]]]:
        signed = zip(columns, matrices, strict=True)
        taken = [column if matrix is None else [-x for x in column] for column, matrix in signed]
        return plan.run_together(at, [{"x": given(at, JOINT, column)} for column in taken])

    return at.tree.each_column(matrices, solve)
