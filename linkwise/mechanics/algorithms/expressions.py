"""Tree dynamics as operator expressions in the notation of the papers, by algorithm name.

``a`` is the bias acceleration and ``g`` the ground's acceleration in place of gravity, ``b`` the gyroscopic forces, all
for the joint velocities ``v``.  M stands for link inertias, R for rotor inertias.
"""

from __future__ import annotations

import numpy as np

from ...mechanism import Mechanism, MechanismError
from ..operators import (
    B,
    D,
    D_half,
    E_phi,
    E_psi,
    Expression,
    G,
    H,
    I,
    K,
    L,
    M,
    P,
    P_plus,
    R,
    S,
    W,
    bias_acceleration,
    bias_force,
    convective_acceleration,
    coordinate_vector,
    gravity,
    joint_vector,
    link_vector,
    loop_bias,
    phi,
    psi,
    reference_acceleration,
    tau_bar,
)
from ..operators.expression import Factored, Vector
from ..operators.spaces import force_at
from ..recursions.frames import skew_axes
from ..recursions.tree import Tree
from .algorithm import SOLVES_TREE, SOLVES_WITH_MULTIPLIERS, UNCONSTRAINED, expressed

SLENDER = 1e-5  # of the largest moment of inertia: links with less about some axis are points or needles
SHORT = 7  # revolute joints in a row up to which the mass matrix costs less than articulated inertias
NEAR = 24  # degrees of freedom between a link and the base up to which M^-1 costs less by elimination than by sweeps
ABOUT_Z = (2,)  # basis of the motions of a joint that only rotates about its axis

# Over the independent coordinates; S takes them to all joints, where joints mimic others.
v, qdd, tau = coordinate_vector("v"), coordinate_vector("a"), coordinate_vector("tau")
r = reference_acceleration(S @ v)
a, b, c, g = bias_acceleration(S @ v), bias_force(S @ v), convective_acceleration(S @ v), gravity()
wrenches = link_vector("wrenches")

#: S* (H phi M phi* H* + R) S (rodriguez1992 22); without mimic joints its inverse is known (46).
MASS_MATRIX = S.T @ (H @ phi @ M @ phi.T @ H.T + R) @ S
MASS_MATRIX_INVERSE = MASS_MATRIX.inv
#: I - H psi K, the inverse of the factor I + H phi K (jain1995 4.1c).
WHITENING = I - H @ psi @ K

#: V = phi* H* v (rodriguez1992 18).
LINK_VELOCITIES = phi.T @ H.T @ S @ v
#: alpha = phi* (H* qdd + a), as an inertial observer sees the link origins (rodriguez1992 19).
INERTIAL_ACCELERATIONS = phi.T @ (H.T @ S @ qdd + a)
#: Rates of the components of the links' velocities.
LINK_ACCELERATIONS = INERTIAL_ACCELERATIONS - c
#: Accelerations with a ground that accelerates upwards in place of gravity.
LIFTED_ACCELERATIONS = phi.T @ (H.T @ S @ qdd + a + g)

#: Of all links, at the world's origin: the momenta of the links, moved to the ground.
MOMENTUM_MATRIX = W @ phi @ M @ phi.T @ H.T @ S
MOMENTUM = W @ phi @ M @ LINK_VELOCITIES
#: Accelerations due to gravity, wrenches and the ground together.
MOMENTUM_RATE = W @ phi @ (M @ INERTIAL_ACCELERATIONS + b)


#: G = L phi* H*: rates of the loop constraints per unit of v (spencer2004 2.2).
CONSTRAINT_JACOBIAN = L @ phi.T @ H.T @ S
#: dG/dt v = L phi* a + gamma (2.3).  Alone it costs less as a walk around the loops, to which joints beyond the loops
#: add nothing: 118 operations against 320 for the flyball governor.
CONSTRAINT_BIAS = L @ phi.T @ a + loop_bias(S @ v)
#: G M^-1 G*, the Delassus matrix: accelerations of constraints per unit multiplier.  Without mimic joints L psi* H*
#: D^-1 H psi L*.
DELASSUS_MATRIX = CONSTRAINT_JACOBIAN @ MASS_MATRIX_INVERSE @ CONSTRAINT_JACOBIAN.T


def joint_wrenches(forces: Expression) -> Expression:
    """f = phi [M phi* (H* qdd + a + g) + forces]: the wrench that each joint transmits onto its link (rodriguez1986
    7.1-7.5)."""
    return phi @ (M @ LIFTED_ACCELERATIONS + forces)


def inverse_dynamics(forces: Expression) -> Expression:
    """T = H f + R qdd (rodriguez1986 7.6, rodriguez1992 24-25)."""
    return S.T @ (H @ joint_wrenches(forces) + R @ S @ qdd)


def forces_on_links(pushed: bool) -> Expression:
    """Velocity-dependent (gyroscopic) forces on links, and external wrenches if given."""
    return b - wrenches if pushed else b


def static_forces(pushed: bool) -> Expression:
    """H phi (M phi* g - wrenches): joint forces that balance gravity and external wrenches."""
    forces = M @ phi.T @ g
    return S.T @ H @ phi @ (forces - wrenches if pushed else forces)


#: Joint forces equivalent to wrenches on the links.
JOINT_FORCES_OF_WRENCHES = S.T @ H @ phi @ wrenches
BIAS_FORCE = S.T @ H @ phi @ (M @ phi.T @ (a + g) + b)
GRAVITY_FORCE = static_forces(pushed=False)
#: Coriolis and centrifugal forces alone.
VELOCITY_FORCE = S.T @ H @ phi @ (M @ phi.T @ a + b)
#: Joint forces, gravity and wrenches on the links together.
COORDINATE_FORCES = tau - S.T @ H @ phi @ (M @ phi.T @ g - wrenches)


# -- loops (spencer2004 2.1-2.4): M a + h = tau - G* lambda, G a + dG/dt v = 0 -------------------------------

MULTIPLIERS = DELASSUS_MATRIX.inv @ (CONSTRAINT_JACOBIAN @ MASS_MATRIX_INVERSE @ (tau - BIAS_FORCE) + CONSTRAINT_BIAS)
ACCELERATIONS_WITHIN_LOOPS = MASS_MATRIX_INVERSE @ (tau - BIAS_FORCE - CONSTRAINT_JACOBIAN.T @ MULTIPLIERS)


# -- diagonalized dynamics (jain1995 5.1, 7.7, Tables 1 and 2) ------------------------------------------

nu, eps, rates, T = joint_vector("nu"), joint_vector("eps"), joint_vector("v"), joint_vector("tau")


def factor(mechanism: Mechanism, normalized: bool = True) -> Expression:
    """m with M = m m*; I + H phi K without normalization."""
    return (I + H @ phi @ K) @ D_half if normalized else I + H @ phi @ K


def factor_inverse(mechanism: Mechanism, normalized: bool = True) -> Expression:
    return D_half.inv @ WHITENING if normalized else WHITENING


def total_rates(mechanism: Mechanism, normalized: bool = True) -> Expression:
    return factor(mechanism, normalized).T @ rates


def relative_rates(mechanism: Mechanism, normalized: bool = True) -> Expression:
    return factor_inverse(mechanism, normalized).T @ nu


def working_moments(mechanism: Mechanism, normalized: bool = True) -> Expression:
    return factor_inverse(mechanism, normalized) @ T


def working_moments_of_all(mechanism: Mechanism, normalized: bool = True) -> Expression:
    """Working moments of gravity, wrenches on the links and joint forces together."""
    return factor_inverse(mechanism, normalized) @ (T - H @ phi @ (M @ phi.T @ g - wrenches))


def joint_moments(mechanism: Mechanism, normalized: bool = True) -> Expression:
    return factor(mechanism, normalized) @ eps


#: By the names of ``linkwise.formulations.diagonal``.
DIAGONALIZING = {
    "rates": total_rates,
    "velocities": relative_rates,
    "forces": working_moments,
    "forces_of_all": working_moments_of_all,
    "torques": joint_moments,
    "factor": factor,
    "factor_inverse": factor_inverse,
}


# -- forward dynamics ---------------------------------------------------------------------------------
# All but the bias-free form eliminate joint by joint, and use forces T of every joint.


def filter_and_smoother(forces: Expression) -> Expression:
    """Three sweeps, biases inside the recursions: rodriguez1986 Result 8.1, the articulated-body algorithm."""
    z = psi @ (forces + E_phi @ (G @ T + P_plus @ a))
    nu = D.inv @ (T - H @ z)
    alpha = psi.T @ (H.T @ nu + tau_bar.T @ (a + g))
    return nu - G.T @ (E_phi.T @ alpha + a + g)


def bias_free_moments(forces: Expression) -> Expression:
    """T' = T - H phi [M phi* (a + g) + forces] (rodriguez1992 26, 47)."""
    return tau - S.T @ H @ phi @ (M @ phi.T @ (a + g) + forces)


def bias_free(forces: Expression) -> Expression:
    """Bias forces by inverse dynamics, then the inverse mass matrix (rodriguez1992 Algorithm 1, 47-48)."""
    return MASS_MATRIX_INVERSE @ bias_free_moments(forces)


def biased(forces: Expression) -> Expression:
    """Three sweeps from the biased equations of motion (rodriguez1992 Algorithm 3, 60-62). Solves for the difference
    from accelerations r, chosen so that bias forces cost less than for zero accelerations."""
    zeta = M @ phi.T @ (a + H.T @ r + g) + forces
    net = T - R @ r  # rotors accelerate too
    innovations = net - H @ psi @ (zeta + K @ net)  # (61) with H Psi tau_bar + H = H psi
    return WHITENING.T @ D.inv @ innovations + r


def without_dalembert_forces(forces: Expression) -> Expression:
    """Three sweeps that need no D'Alembert forces beforehand (rodriguez1992 66-73)."""
    z = psi @ (E_psi @ P @ a + K @ T + forces)
    nu = D.inv @ (T - H @ z)
    smoothed = psi.T @ (H.T @ nu + tau_bar.T @ (a + g))
    return nu - K.T @ smoothed - G.T @ (a + g)


def composite_bodies(forces: Expression) -> Expression:
    """The mass matrix factored as a dense matrix, after inverse dynamics (Walker and Orin 1982, CRBA): for few joints
    in a row."""
    moments = T - H @ phi @ (M @ phi.T @ (a + H.T @ r + g) + forces)
    return Factored(H @ phi @ M @ phi.T @ H.T + R) @ (moments - R @ r) + r


FORWARD_DYNAMICS = {
    "filter_and_smoother": filter_and_smoother,
    "bias_free": bias_free,
    "biased": biased,
    "without_dalembert_forces": without_dalembert_forces,
    "composite_bodies": composite_bodies,
}


def forward_dynamics(mechanism: Mechanism, method: str, pushed: bool = False) -> Expression:
    """Accelerations by one of the methods."""
    if method not in FORWARD_DYNAMICS:
        raise ValueError(f"method must be one of {', '.join(FORWARD_DYNAMICS)}, two_sweeps, got {method!r}")
    if mechanism.coordinates.mimic_joints and method != "bias_free":
        raise MechanismError(
            f"method {method!r} takes one joint at a time, and in mechanism {mechanism.name!r} some mimic others "
            f"({', '.join(mechanism.coordinates.mimic_joints)}): leave method out, or take 'bias_free'"
        )
    return FORWARD_DYNAMICS[method](forces_on_links(pushed))


def fastest_method(mechanism: Mechanism) -> str:
    """The method with the least expected cost.

    The biased algorithm needs few operations for bias forces if joints only rotate, about skew axes.  With mimic joints
    the mass matrix has no factors that take one joint at a time.  For a short arm dense factorization takes fewer
    operations than articulated inertias: for general geometry up to eight joints, for geometry with zeros up to six or
    seven.
    """
    if mechanism.coordinates.mimic_joints:
        return "bias_free"
    revolute = [body.kind.span == ABOUT_Z for body in mechanism.bodies]
    skew = int(np.sum(skew_axes(mechanism) & np.array(revolute, bool)))
    if 2 * skew < mechanism.n_links:
        return "filter_and_smoother"
    return "composite_bodies" if is_arm(mechanism) and mechanism.n_links <= SHORT else "biased"


def is_eliminated_for_less(mechanism: Mechanism) -> bool:
    """Whether M^-1 is cheaper by eliminating M than from articulated inertias. Elimination takes one multiplication
    per triple of coordinates on a path to the base, sweeps about thirty operations per pair. (With mimic joints,
    plans always eliminate.)
    """
    if mechanism.coordinates.mimic_joints:
        return False
    paths: list[int] = []
    for body in mechanism.bodies:
        paths.append(body.kind.nv + (paths[body.parent] if body.parent >= 0 else 0))
    return max(paths, default=0) <= NEAR


def tree_of_forward_dynamics(tree: Tree) -> Tree:
    """A tree with regrouped inertias, if the links of an arm resist rotation about all axes: fewer operations for the
    same D and G. Regrouped inertias are indefinite: for links that are points or needles digits are lost (two of the
    humanoid icub)."""
    regroups = is_solid(tree.original) and is_arm(tree.original) and not tree.original.coordinates.mimic_joints
    return tree.regrouped if regroups else tree


def is_solid(mechanism: Mechanism) -> bool:
    """Whether all links resist rotation about all axes."""
    moments = np.linalg.eigvalsh(np.array([body.inertia for body in mechanism.bodies]).reshape(-1, 3, 3))
    return len(mechanism.bodies) > 0 and bool(moments.min() > SLENDER * moments.max())


def is_arm(mechanism: Mechanism) -> bool:
    """Whether the mechanism is a chain of revolute joints."""
    return all(body.kind.span == ABOUT_Z and body.parent == i - 1 for i, body in enumerate(mechanism.bodies))


def forward_link_accelerations(mechanism: Mechanism) -> Expression:
    """Link accelerations (of the origins, as an inertial observer sees them), rodriguez1992 Algorithm 2."""
    if mechanism.coordinates.mimic_joints:
        return phi.T @ (H.T @ S @ bias_free(b) + a)
    return psi.T @ H.T @ D.inv @ WHITENING @ S @ bias_free_moments(b) + phi.T @ a


#: Accelerations by cause: joint forces, bias forces, bias accelerations with gravity (rodriguez1986 10.2).
ACCELERATION_PARTS = tuple(
    MASS_MATRIX_INVERSE @ part for part in (tau, -(S.T @ H @ phi @ b), -(S.T @ H @ phi @ M @ phi.T @ (a + g)))
)


# -- one link -----------------------------------------------------------------------------------------


def jacobian(mechanism: Mechanism, link: str) -> Expression:
    """B* phi* H* (rodriguez1992 20)."""
    mechanism.frame(link)  # raises an error that names the fault of the link
    return B(link).T @ phi.T @ H.T @ S


def frame_velocity(mechanism: Mechanism, link: str) -> Expression:
    """B* V: in the frame's own axes at its origin."""
    mechanism.frame(link)
    return B(link).T @ LINK_VELOCITIES


def frame_acceleration(mechanism: Mechanism, link: str) -> Expression:
    """dJ/dt v + J a: the rate of the components of ``frame_velocity``."""
    mechanism.frame(link)
    return B(link).T @ LINK_ACCELERATIONS


def jacobian_rate_times_velocity(mechanism: Mechanism, link: str) -> Expression:
    """dJ/dt v, in the frame's own axes at its origin."""
    mechanism.frame(link)
    return B(link).T @ (phi.T @ a - c)


def mobility(mechanism: Mechanism, link: str) -> Expression:
    """f* J M^-1 J* f: the acceleration of a frame along a unit force on it (a number).

    Without mimic joints (H psi B f)* D^-1 (H psi B f): one sweep inwards filters the force; no outward sweep is needed.
    """
    force = Vector("direction", force_at(link))
    if any(body.mimic for body in mechanism.bodies):
        moments = jacobian(mechanism, link).T @ force
        return moments.T @ MASS_MATRIX_INVERSE @ moments
    mechanism.frame(link)
    innovations = H @ psi @ B(link) @ force
    return innovations.T @ D.inv @ innovations


def operational_inertia(mechanism: Mechanism, link: str) -> Expression:
    """The inverse of J M^-1 J* = B* psi* H* D^-1 H psi B: force per acceleration of a frame."""
    _require_six_dofs(mechanism, link)
    if mechanism.coordinates.mimic_joints:
        frame_jacobian = jacobian(mechanism, link)
        return (frame_jacobian @ MASS_MATRIX_INVERSE @ frame_jacobian.T).inv
    return (B(link).T @ psi.T @ H.T @ D.inv @ H @ psi @ B(link)).inv


def _require_six_dofs(mechanism: Mechanism, link: str) -> None:
    path = mechanism.tree.path(mechanism.frame(link).body)
    moving = {mechanism.v_index(mechanism.bodies[i].joint).start for i in path}
    dofs = sum(b.nv for b in mechanism.bodies if b.nv and mechanism.v_index(b.joint).start in moving)
    if dofs < 6:
        raise MechanismError(
            f"link {link!r} moves with only {dofs} degrees of freedom: J M^-1 J* has no inverse; "
            "6 are needed (use jacobian and mass_matrix_inverse for fewer)"
        )


# -- the named results ------------------------------------------------------------------------------------------------


@expressed(
    "inverse_dynamics",
    ("q", "v", "a"),
    "tau",
    ports=("wrenches",),
    requires=UNCONSTRAINED.or_algorithm("closed_inverse_dynamics"),
)
def _inverse_dynamics(mechanism: Mechanism, wrenches: bool = False) -> Expression:
    """(nv,): joint forces of a motion."""
    return inverse_dynamics(forces_on_links(wrenches))


@expressed(
    "joint_wrenches",
    ("q", "v", "a"),
    "transmitted",
    ports=("wrenches",),
    requires=UNCONSTRAINED.or_algorithm("closed_joint_wrenches"),
)
def _joint_wrenches(mechanism: Mechanism, wrenches: bool = False) -> Expression:
    """(n_links, 6): the wrench that each joint transmits onto its link in a motion."""
    return joint_wrenches(forces_on_links(wrenches))


@expressed("forward_link_accelerations", ("q", "v", "tau"), "accelerations", requires=SOLVES_TREE)
def _forward_link_accelerations(mechanism: Mechanism) -> Expression:
    """(n_links, 6): accelerations of the links under joint forces."""
    return forward_link_accelerations(mechanism)


@expressed("acceleration_parts", ("q", "v", "tau"), "parts", requires=SOLVES_TREE)
def _acceleration_parts(mechanism: Mechanism) -> tuple[Expression, ...]:
    """(3, nv): accelerations of joint forces, of velocities and of gravity, whose sum is forward dynamics."""
    return ACCELERATION_PARTS


@expressed("mass_matrix", ("q",))
def _mass_matrix(mechanism: Mechanism) -> Expression:
    """(nv, nv): M in M a + h = tau (CRBA)."""
    return MASS_MATRIX


@expressed("bias_force", ("q", "v"), "tau")
def _bias_force(mechanism: Mechanism) -> Expression:
    """(nv,): h in M a + h = tau, joint forces of a motion without joint accelerations."""
    return BIAS_FORCE


@expressed("gravity_force", ("q",), "tau")
def _gravity_force(mechanism: Mechanism) -> Expression:
    """(nv,): joint forces that balance gravity at rest."""
    return GRAVITY_FORCE


@expressed(
    "static_forces", ("q",), "tau", ports=("wrenches",), requires=UNCONSTRAINED.or_algorithm("closed_static_forces")
)
def _static_forces(mechanism: Mechanism, wrenches: bool = False) -> Expression:
    """(nv,): joint forces that balance gravity and wrenches on the links at rest."""
    return static_forces(wrenches)


@expressed("momentum", ("q", "v"))
def _momentum(mechanism: Mechanism) -> Expression:
    """(6,): momentum of all links about the world's origin."""
    return MOMENTUM


@expressed("momentum_matrix", ("q",))
def _momentum_matrix(mechanism: Mechanism) -> Expression:
    """(6, nv): the momentum at the world's origin per unit of velocity."""
    return MOMENTUM_MATRIX


@expressed("momentum_rate", ("q", "v", "a"))
def _momentum_rate(mechanism: Mechanism) -> Expression:
    """(6,): rate of the momentum at the world's origin."""
    return MOMENTUM_RATE


@expressed("link_velocities", ("q", "v"), "velocities")
def _link_velocities(mechanism: Mechanism) -> Expression:
    """(n_links, 6): velocities of the links in their own frames."""
    return LINK_VELOCITIES


@expressed("link_accelerations", ("q", "v", "a"), "accelerations")
def _link_accelerations(mechanism: Mechanism) -> Expression:
    """(n_links, 6): rates of the components of the links' velocities."""
    return LINK_ACCELERATIONS


@expressed("constraint_jacobian", ("q",))
def _constraint_jacobian(mechanism: Mechanism) -> Expression:
    """(n_constraints, nv): G, rates of the constraints per unit of velocity."""
    return CONSTRAINT_JACOBIAN


@expressed("delassus_matrix", ("q",), requires=SOLVES_WITH_MULTIPLIERS)
def _delassus_matrix(mechanism: Mechanism) -> Expression:
    """(n_constraints, n_constraints): G M^-1 G*, accelerations of constraints per unit multiplier."""
    return DELASSUS_MATRIX
