"""The operators of the papers, one record each."""

from __future__ import annotations

import copyreg

from . import actions as act
from . import loops, pick_offs, rotations
from .expression import Bias, Expression, Identity, Operator, Product, Vector
from .record import Record
from .spaces import (
    COORDINATE,
    FORCE,
    FORCE_AT_LINK,
    FORCE_ON_GROUND,
    JOINT,
    LOOP,
    MOTION,
    MOTION_AT_LINK,
    SCALAR,
    Space,
)

__all__ = [
    "RECORDS",
    "A",
    "B",
    "D",
    "D_half",
    "E_phi",
    "E_psi",
    "G",
    "H",
    "I",
    "K",
    "L",
    "M",
    "P",
    "P_plus",
    "Phi",
    "Psi",
    "R",
    "S",
    "W",
    "bias_acceleration",
    "bias_force",
    "convective_acceleration",
    "coordinate_vector",
    "define",
    "gravity",
    "identity",
    "joint_vector",
    "link_vector",
    "loop_bias",
    "loop_vector",
    "phi",
    "psi",
    "reference_acceleration",
    "tau",
    "tau_bar",
]

RECORDS: dict[str, Record] = {}


def define(record: Record) -> Operator:
    """The operator of a record, registered under its name."""
    if record.name in RECORDS:
        raise ValueError(f"operator {record.name!r} is defined already: {RECORDS[record.name].meaning}")
    RECORDS[record.name] = record
    return Operator(record)


def named(name: str) -> Record:
    """The record of an operator, including user-defined ones."""
    if name not in RECORDS:
        raise ValueError(f"no operator is called {name!r}: define it before expressions with it are loaded")
    return RECORDS[name]


copyreg.pickle(Record, lambda record: (named, (record.name,)))  # records hold functions: unpickled by name

I = Identity()  # noqa: E741 - the papers' name

# -- joints and mimic joints ------------------------------------------------------------------------------

H = define(Record("H", FORCE, JOINT, "link forces to joint forces", act.H, act.H_ADJOINT))
S = define(
    Record(
        "S",
        COORDINATE,
        JOINT,
        "coordinates to joints: mimic joints move with the joints they mimic; the identity where there are none",
        act.S,
        act.S_ADJOINT,
    )
)
R = define(Record("R", JOINT, JOINT, "rotor inertia of each joint", act.R, self_adjoint=True))

# -- rigid transfer of forces -------------------------------------------------------------------------------

E_phi = define(Record("E_phi", FORCE, FORCE, "forces of each link, moved to its parent", act.E_PHI, act.E_PHI_ADJOINT))
phi = define(
    Record(
        "phi",
        FORCE,
        FORCE,
        "forces on each link and on everything it carries, moved rigidly to the link",
        act.PHI,
        act.PHI_ADJOINT,
        inverse=I - E_phi,
        source="jain1995 (4.6)",
    )
)

#: The papers' block of phi at the base, link 0; here a tree may have several links next to the ground.
W = define(
    Record(
        "W",
        FORCE,
        FORCE_ON_GROUND,
        "forces of the links next to the ground, moved to the world's origin and axes; W.T a motion of the ground",
        pick_offs.W,
        pick_offs.W_ADJOINT,
    )
)

# -- loops --------------------------------------------------------------------------------------------------

#: G = L phi* H* S is the Jacobian of the loop constraints (spencer2004 2.2).
L = define(
    Record(
        "L",
        MOTION,
        LOOP,
        "motions of the links to rates of the loop constraints; L.T multipliers to forces on the links",
        loops.L,
        loops.L_ADJOINT,
    )
)

# -- inertias -----------------------------------------------------------------------------------------------

_M_inv = define(Record("M_inv", FORCE, MOTION, "inverse inertia of each link", act.M_INV, self_adjoint=True))
M = define(
    Record("M", MOTION, FORCE, "inertia of each link", act.M, self_adjoint=True, inverse=_M_inv, source="link by link")
)
#: C = M + E_phi C E_phi* block by block (rodriguez1992 29).
COMPOSITE = define(
    Record(
        "C",
        MOTION,
        FORCE,
        "composite inertia: of each link and all it carries, joints locked",
        act.COMPOSITE,
        self_adjoint=True,
    )
)
_P_inv = define(Record("P_inv", FORCE, MOTION, "inverse of each articulated inertia", act.P_INV, self_adjoint=True))
P = define(
    Record(
        "P",
        MOTION,
        FORCE,
        "articulated inertia: of each link and all it carries, its outer joints giving way",
        act.P,
        self_adjoint=True,
        inverse=_P_inv,
        source="link by link",
    )
)
P_plus = define(
    Record(
        "P_plus",
        MOTION,
        FORCE,
        "articulated inertia as the parent feels it, the link's own joint giving way",
        act.P_PLUS,
        self_adjoint=True,
    )
)
D_INV = define(Record("D_inv", JOINT, JOINT, "inverse of D, joint by joint", act.D_INV, self_adjoint=True))
D = define(
    Record(
        "D",
        JOINT,
        JOINT,
        "articulated inertia about each joint's own axes, with its rotor",
        act.D,
        self_adjoint=True,
        inverse=D_INV,
        source="joint by joint",
    )
)
_D_half_inv = define(
    Record("D_half_inv", JOINT, JOINT, "inverse of D_half, joint by joint", act.D_HALF_INV, act.D_HALF_INV_ADJOINT)
)
D_half = define(
    Record(
        "D_half",
        JOINT,
        JOINT,
        "lower triangular square root of D, joint by joint: D = D_half @ D_half.T",
        act.D_HALF,
        act.D_HALF_ADJOINT,
        inverse=_D_half_inv,
        source="joint by joint",
    )
)

# -- articulated transfer of forces ---------------------------------------------------------------------------

G = define(Record("G", JOINT, FORCE, "Kalman gain: link forces per joint force", act.G, act.G_ADJOINT))
K = define(Record("K", JOINT, FORCE, "Kalman gain moved to the parent", definition=E_phi @ G, source="jain1995 (4.10)"))
tau = define(
    Record(
        "tau",
        FORCE,
        FORCE,
        "the part of a link force that its joint takes up",
        definition=G @ H,
        source="jain1995 (4.8)",
    )
)
tau_bar = define(
    Record(
        "tau_bar",
        FORCE,
        FORCE,
        "the part of a link force that passes a joint that gives way",
        act.TAU_BAR,
        act.TAU_BAR_ADJOINT,
        definition=I - G @ H,
        source="jain1995 (4.10)",
    )
)
E_psi = define(
    Record(
        "E_psi",
        FORCE,
        FORCE,
        "forces of each link that pass its joint, moved to its parent",
        definition=E_phi @ tau_bar,
        source="jain1995 (4.10)",
    )
)
psi = define(
    Record(
        "psi",
        FORCE,
        FORCE,
        "phi with joints that give way: what passes them of each force (Kalman transition)",
        act.PSI,
        act.PSI_ADJOINT,
        inverse=I - E_psi,
        source="jain1995 (4.10)",
    )
)
#: psi* H* D^-1 H psi; its diagonal blocks are the links' mobilities Y (rodriguez1986 Section 10).
OMEGA = define(
    Record(
        "Omega",
        FORCE,
        MOTION,
        "motions of the links per force on them = psi.T @ H.T @ D.inv @ H @ psi; diagonal blocks Y",
        act.OMEGA,
        self_adjoint=True,
    )
)
KT_OMEGA = define(
    Record("Kt_Omega", FORCE, JOINT, "motions of the parents, as the gains see them = K.T @ Omega", act.KT_OMEGA)
)
Phi = phi @ E_phi
Psi = psi @ E_phi

# -- one link -------------------------------------------------------------------------------------------------

_B = Record(
    "B", FORCE_AT_LINK, FORCE, "a force on one link; B.T the motion of that link", pick_offs.B, pick_offs.B_ADJOINT
)
_A = Record(
    "A", MOTION_AT_LINK, MOTION, "a motion of one link; A.T the force on that link", pick_offs.A, pick_offs.A_ADJOINT
)


def B(link: str) -> Operator:
    """Pick-off at a link or welded frame: maps a force there to link forces; B.T returns that link's motion."""
    return Operator(_B, link)


def A(link: str) -> Operator:
    """A motion of one link or welded frame as link motions; A.T gives the force on that link.

    A(link).T @ P @ A(link) is that link's articulated inertia.
    """
    return Operator(_A, link)


# -- vectors --------------------------------------------------------------------------------------------------

_BIAS_ACCELERATION = Record("a", SCALAR, MOTION, "bias acceleration of each link", act.BIAS_ACCELERATION)
_BIAS_FORCE = Record("b", SCALAR, FORCE, "bias (gyroscopic) force of each link", act.BIAS_FORCE)
CONVECTIVE = Record(
    "c", SCALAR, MOTION, "omega x v of each link: what an observer who rotates with it does not see", act.CONVECTION
)
_REFERENCE_ACCELERATION = Record(
    "r",
    SCALAR,
    JOINT,
    "joint accelerations for which no link rotates faster and faster about an axis of its own joint",
    rotations.REFERENCE_ACCELERATION,
)
_GRAVITY = Record("g", SCALAR, MOTION, "acceleration of the ground that stands for gravity", act.GRAVITY)
LOOP_BIAS = Record(
    "gamma", SCALAR, LOOP, "accelerations of the loop constraints that velocities cause: besides L alpha", loops.BIAS
)
for _record in (_A, _B, _BIAS_ACCELERATION, _BIAS_FORCE, _REFERENCE_ACCELERATION, CONVECTIVE, _GRAVITY, LOOP_BIAS):
    RECORDS[_record.name] = _record


def joint_vector(name: str) -> Vector:
    """A vector that is an input of the kernel: one number per degree of freedom of every joint, (nv,) without mimic
    joints."""
    return Vector(_checked_name(name), JOINT)


def coordinate_vector(name: str) -> Vector:
    """A vector (nv,) over the independent coordinates; ``S @ v`` are the velocities of all joints, mimic joints
    included."""
    return Vector(_checked_name(name), COORDINATE)


def link_vector(name: str) -> Vector:
    """A vector (n_links, 6) as a kernel input: forces or motions, as its use requires."""
    return Vector(_checked_name(name), None)


def loop_vector(name: str) -> Vector:
    """A vector (m,) with one number per loop constraint: rates of the loops, or multipliers."""
    return Vector(_checked_name(name), LOOP)


def bias_acceleration(v: Expression) -> Bias:
    """a(V): the velocity term in accelerations phi* (H* qdd + a(V)), for joint velocities ``v``.

    These are classical accelerations of the link origins, for an inertial observer, in link axes: B* phi* a(V) is dJ/dt
    v + [0; omega x v] of a link, whereas ``jacobian_rate`` gives dJ/dt for rates of velocity components.
    """
    return Bias(_BIAS_ACCELERATION, _checked_velocities("bias_acceleration", v))


def bias_force(v: Expression) -> Bias:
    """b(V): gyroscopic forces of the links for joint velocities ``v``."""
    return Bias(_BIAS_FORCE, _checked_velocities("bias_force", v))


def reference_acceleration(v: Expression) -> Bias:
    """r(V): joint accelerations for which no link has an angular acceleration about its own joint's axis, for joint
    velocities ``v``. Forward dynamics may start from any accelerations; these make inverse dynamics cheapest."""
    return Bias(_REFERENCE_ACCELERATION, _checked_velocities("reference_acceleration", v))


def convective_acceleration(v: Expression) -> Bias:
    """c(V) = [0; omega x v] of each link for joint velocities ``v``: phi* (H* qdd + a(V)) - c(V) are the rates of the
    components of the links' velocities."""
    return Bias(CONVECTIVE, _checked_velocities("convective_acceleration", v))


def loop_bias(v: Expression) -> Bias:
    """gamma(V) for joint velocities ``v``: with alpha = phi* (H* qdd + a(V)), the second derivatives of the loop
    constraints are L alpha + gamma(V); L phi* a(V) + gamma(V) is dG/dt v (spencer2004 2.3)."""
    return Bias(LOOP_BIAS, _checked_velocities("loop_bias", v))


def gravity() -> Bias:
    """The acceleration of the ground in place of gravity, in the frames of the links next to it."""
    return Bias(_GRAVITY)


def identity(space: Space) -> Identity:
    """I on a named space."""
    return Identity(space)


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the name of a vector must be a non-empty string, not {name!r}")
    return name


def _checked_velocities(function: str, v: Expression) -> Expression:
    if isinstance(v, Vector) and v.codomain == JOINT:
        return v
    if isinstance(v, Product) and v.factors[0] == S and len(v.factors) == 2 and isinstance(v.factors[1], Vector):
        return v
    kind = "the link vector " if isinstance(v, Vector) and v.codomain is None else ""
    raise TypeError(
        f'{function} takes a joint vector of velocities such as joint_vector("v"), or S @ coordinate_vector("v"), not '
        f"{kind}{v!r}"
    )
