"""The decoupled natural orthogonal complement (saha1999): the operators at work with twists at the mass centres.

There N_l is phi* and N_d is H*, so the named algorithms on that tree are the paper's: composite bodies (21-24), inverse
dynamics (Section 5.1) and forward dynamics through U D U* (Section 5.2).  The paper numbers links base to tip, as
linkwise does.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

from ...mechanism import Mechanism
from ..links.articulation import Articulation, articulate
from ..operators import D, H, I, K, link_vector
from ..operators import phi as propagation
from ..operators.expression import Expression
from ..operators.plan import apply, plan_for
from ..recursions.mass_centres import ToMassCentre, shift_to_mass_centres
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar
from ..spatial import Force, Matrix3, Motion, RigidInertia, Vector3
from ..spatial.motion import NO_FORCE, NO_MOTION
from ..spatial.three import IDENTITY
from . import expressions as ex
from .algorithm import COMPOSITE_BODIES, SOLVES_TREE, UNCONSTRAINED, algorithm, expressed, skip_mimic_joints
from .coriolis_matrix import Columns, convective_matrix
from .diagonal_by_elimination import Factors
from .kinematics import internal_poses

BETWEEN_MASS_CENTRES = "joints are eliminated on their axes, halfway between mass centres: operators act at one frame"
MASS_CENTRES = "twists at mass centres along the world's axes: frames that no link has"
COUPLED = "factors of the coordinates that joints share, by elimination: operators take one joint at a time"

wrench = link_vector("wrenches")
#: H phi w = N_d* N_l* w (30, 31).
FORCES = H @ propagation @ wrench
#: U of (53): with K = E_phi G its entries above the diagonal are the alpha_ik = p_i* psi_ik of (46).
U = I + H @ propagation @ K


@algorithm(("q",), name="denoc_matrices", output="matrices", reason=MASS_CENTRES)
def matrices(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """(6 n, 6 n + nv): N_l and N_d side by side (16, 17), in world axes: t = N_l N_d v are the twists of (1)."""
    centred = shift_to_mass_centres(tree)
    joint_kinematics = centred.joint_kinematics(q)
    poses = internal_poses(centred, joint_kinematics)
    n = len(centred.links)
    twists: Matrix = [[0.0] * (6 * n) for _ in range(6 * n)]
    rates: Matrix = [[0.0] * centred.dofs for _ in range(6 * n)]
    for i, (turn, centre) in enumerate(poses):
        for j in tree.mechanism.tree.path(i):
            _put(twists, 6 * i, 6 * j, _twist_propagation(poses[j][1] - centre if j != i else None))
        columns = [(*(turn @ h.angular), *(turn @ h.linear)) for h in joint_kinematics[i].motion]
        _put(rates, 6 * i, centred.dof_starts[i], list(zip(*columns, strict=True)))
    return [[*left, *right] for left, right in zip(twists, tree.independent_columns(rates), strict=True)]


def _twist_propagation(c: Vector3 | None) -> Sequence[Sequence[Scalar]]:
    """B_ij of (13), c leading from C_i to C_j; the identity for i = j."""
    lever = Matrix3.cross(c) if c else None
    upper = [(*row, 0.0, 0.0, 0.0) for row in IDENTITY]
    lower = [(*(lever[k] if lever else (0.0, 0.0, 0.0)), *IDENTITY[k]) for k in range(3)]
    return [*upper, *lower]


def _put(matrix: Matrix, row: int, column: int, block: Sequence[Sequence[Scalar]]) -> None:
    for k, values in enumerate(block):
        matrix[row + k][column : column + len(values)] = values


@algorithm(("q", "v"), name="denoc_coriolis_matrix", output="coriolis_matrix", reason=COMPOSITE_BODIES)
def coriolis_matrix(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Matrix:
    """(nv, nv): C = N* (M dN/dt + dM/dt N), dM/dt as in (8), element by element from composite bodies (25-29)."""
    return convective_matrix(shift_to_mass_centres(tree), q, v, _momentum_rate)


def _momentum_rate(inertia: RigidInertia, velocity: Motion) -> Columns:
    """Momentum rate at a mass centre per unit of a joint's twist [s; u]: m s x v, which makes of the field's rate the
    rate at the moving mass centre (in dB/dt of (25)), and the moment omega x I s of (8)."""
    momentum = velocity.linear * inertia.mass
    turning = [Force(velocity.angular.cross(inertia.moment @ s), s.cross(momentum)) for s in IDENTITY]
    return [*turning, NO_FORCE, NO_FORCE, NO_FORCE]


@algorithm(("q", "wrenches"), name="denoc_forces", output="tau", reason=MASS_CENTRES)
def forces(tree: Tree, q: Sequence[Scalar], wrenches: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    """(nv,): tau_i = p_i* w~_i (30), of wrenches at the mass centres in world axes."""
    at = Configuration(shift_to_mass_centres(tree), q)
    turns = [turn.T for turn, _ in internal_poses(at.tree, at.joint_kinematics)]
    wrenches_in_frames = [
        Force(turn @ Vector3(*six[:3]), turn @ Vector3(*six[3:])) for turn, six in zip(turns, wrenches, strict=True)
    ]
    return tree.collect(plan_for(FORCES, tree.mechanism).run(at, {wrench.name: wrenches_in_frames}))


@algorithm(("q", "tau"), name="denoc_accelerations", output="a", reason=BETWEEN_MASS_CENTRES, requires=SOLVES_TREE)
def accelerations(tree: Tree, q: Sequence[Scalar], phi: Sequence[Scalar]) -> list[Scalar]:
    """(nv,): I^-1 phi by I = U D U*, the three steps of Section 5.2 (34-37) with the articulated bodies of (46-50).

    B_{i,i-1} leads from one mass centre to the next across joint i.  The first part, from the mass centre to the joint
    axis, is applied before eliminating the joint, the second after: at the axis p_i is a unit vector, and the remaining
    articulated inertia has zeros along it.
    """
    centred = shift_to_mass_centres(tree)
    if tree.mechanism.coordinates.mimic_joints:
        return apply(ex.MASS_MATRIX_INVERSE @ ex.tau, centred, q, tau=phi)
    to_centres = [cast(ToMassCentre, link.joint) for link in centred.links]
    joints = [
        rigid.original_joint(part, link.place)
        for rigid, part, link in zip(to_centres, centred.coordinates(q), centred.links, strict=True)
    ]
    joint_forces = tree.per_joint(phi)

    def eliminate(i: int, beyond: list[Any]) -> tuple[tuple[Articulation, list[Scalar]], Any]:
        """tau^_i and tau~_i = tau^_i / m^_i (34), and eta_{i-1,i} (35) with the articulated inertia, at C_{i-1}."""
        inertia, eta, shift = centred.links[i].inertia.articulated(), NO_FORCE, to_centres[i].shift
        for rigid, force in beyond:
            inertia, eta = inertia + rigid, eta + force
        joint, eta = articulate(joints[i], shift.inertia_back(inertia)), shift.force_back(eta)
        innovation = joint.innovation(joint_forces[i], eta)
        back = joints[i].transform
        passed = back.inertia_back(joint.remaining), back.force_back(joint.absorb(eta, innovation))
        return (joint, joint.factor.solve(innovation)), passed

    eliminated, _ = tip_to_base(centred.links, "articulated bodies, forces", eliminate)

    def accelerate(i: int, mu: tuple[Motion, list[Scalar]] | None) -> tuple[Motion, list[Scalar]]:
        """mu_i (37), and the acceleration of joint i (36)."""
        joint, normalized = eliminated[i]
        before = joints[i].transform.motion_into(mu[0]) if mu else NO_MOTION
        rates = joint.rates(normalized, before)
        return to_centres[i].shift.motion_into(before + joints[i].relative_motion(rates)), rates

    return [x for _, rates in base_to_tip(centred.links, "accelerations", accelerate) for x in rates]


@algorithm(
    ("q", "v", "tau"), name="denoc_forward_dynamics", output="a", reason=BETWEEN_MASS_CENTRES, requires=SOLVES_TREE
)
def forward_dynamics(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar]) -> list[Scalar]:
    """(nv,): phi = tau - C v by the recursion of Section 5.1 without accelerations, then Section 5.2."""
    return accelerations(tree, q, apply(ex.bias_free_moments(ex.b), shift_to_mass_centres(tree), q, v=v, tau=tau))


@algorithm(
    ("q",),
    name="denoc_udu",
    output="factors",
    expression=skip_mimic_joints(lambda mech: (U, D)),
    reason=COUPLED,
    on_tree=shift_to_mass_centres,
    requires=SOLVES_TREE,
)
def udu_by_elimination(tree: Tree, q: Sequence[Scalar]) -> list[Matrix]:
    """(2, nv, nv): U and D of an inertia matrix whose coordinates are coupled: mimic joints."""
    factors = Factors(apply(ex.MASS_MATRIX, shift_to_mass_centres(tree), q), normalized=False)
    pivots, n = factors.pivots, range(len(factors.pivots))
    columns = [factors.times([1.0 if i == j else 0.0 for i in n]) for j in n]
    return [
        [[column[i] for column in columns] for i in n],
        [[pivots[i] if i == j else 0.0 for j in n] for i in n],
    ]


@expressed("denoc_inertia_matrix", ("q",), "inertia_matrix", on_tree=shift_to_mass_centres)
def _inertia_matrix(mech: Mechanism) -> Expression:
    """(nv, nv): the mass matrix, with the frames of links at their mass centres."""
    return ex.MASS_MATRIX


@expressed("denoc_inverse_dynamics", ("q", "v", "a"), "tau", on_tree=shift_to_mass_centres, requires=UNCONSTRAINED)
def _inverse_dynamics(mech: Mechanism) -> Expression:
    """(nv,): joint forces of a motion, with the frames of links at their mass centres."""
    return ex.inverse_dynamics(ex.b)
