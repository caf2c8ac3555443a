"""The spatial operator algebra: write expressions as the papers do, then compile them for a mechanism.

    from linkwise import operators as op
    T = op.joint_vector("T")
    accelerations = (op.I - op.H @ op.psi @ op.K).T @ op.D.inv @ (op.I - op.H @ op.psi @ op.K) @ T
    kernel = linkwise.compile(accelerations, mech)

Operators act between joint space, link force space and link motion space.  Links are numbered base to tip;
each link's six numbers are in its own frame at its origin, angular part first.

    H        link forces -> joint forces           E_phi    forces of a link to its parent (jain1995 4.7)
    phi      (I - E_phi)^-1 (4.6)                  E_psi    E_phi tau_bar (4.10)
    psi      (I - E_psi)^-1 (4.10)                 M        link inertias
    P        articulated inertias (4.8)            D        H P H* + R
    G        P H* D^-1                             K        E_phi G
    tau      G H                                   tau_bar  I - G H
    D_half   lower triangular, block by block, with D = D_half D_half* (the square root for one freedom)
    R        rotor inertias (armature): the mass matrix is H phi M phi* H* + R
    Phi, Psi rodriguez1992's phi - I and (41)
"""

from __future__ import annotations

from .dense import dense
from .expression import (
    FORCE,
    JOINT,
    MOTION,
    SCALAR,
    Bias,
    Expression,
    Identity,
    Operator,
    Space,
    SpaceError,
    Vector,
    force_at,
)
from .identities import UnknownInverse

I = Identity()  # noqa: E741 - the papers' name
H = Operator("H", FORCE, JOINT)
phi = Operator("phi", FORCE, FORCE)
psi = Operator("psi", FORCE, FORCE)
E_phi = Operator("E_phi", FORCE, FORCE)
E_psi = Operator("E_psi", FORCE, FORCE)
M = Operator("M", MOTION, FORCE, self_adjoint=True)
P = Operator("P", MOTION, FORCE, self_adjoint=True)
P_plus = Operator("P_plus", MOTION, FORCE, self_adjoint=True)
D = Operator("D", JOINT, JOINT, self_adjoint=True)
D_half = Operator("D_half", JOINT, JOINT)
R = Operator("R", JOINT, JOINT, self_adjoint=True)
G = Operator("G", JOINT, FORCE)
K = Operator("K", JOINT, FORCE)
tau = Operator("tau", FORCE, FORCE)
tau_bar = Operator("tau_bar", FORCE, FORCE)
Phi = phi @ E_phi
Psi = psi @ E_phi


def B(link: str) -> Operator:
    """Pick-off at a link or welded frame: a force there as link forces; B.T gives that link's motion."""
    return Operator("B", force_at(link), FORCE)


def A(link: str) -> Operator:
    """A motion of one link or welded frame as link motions; A.T gives the force on that link.

    A(link).T @ P @ A(link) is that link's articulated inertia.
    """
    return Operator("A", force_at(link).dual, MOTION)


def joint_vector(name: str) -> Vector:
    """A vector (nv,) that the kernel takes as an input."""
    return Vector(_checked_name(name), JOINT)


def link_vector(name: str) -> Vector:
    """A vector (n_links, 6) that the kernel takes: forces or motions, as its use requires."""
    return Vector(_checked_name(name), None)


def bias_acceleration(v: Vector) -> Bias:
    """a(V): what phi* must be fed besides H* qdd to give accelerations, for joint velocities ``v``.

    They are those that an inertial observer sees of the link origins, in link axes: B* phi* a(V) is dJ/dt v + [0; omega
    x v] of a link, where ``jacobian_rate`` has the rates of its velocity's components, dJ/dt.
    """
    return Bias("a", MOTION, _checked_velocities("bias_acceleration", v))


def bias_force(v: Vector) -> Bias:
    """b(V): gyroscopic forces of the links for joint velocities ``v``."""
    return Bias("b", FORCE, _checked_velocities("bias_force", v))


def gravity() -> Bias:
    """The acceleration of the ground that stands for gravity, as seen by the links next to it."""
    return Bias("g", MOTION)


def identity(space: Space) -> Identity:
    """I on a named space."""
    return Identity(space)


def _checked_name(name: str) -> str:
    if not isinstance(name, str) or not name.strip():
        raise ValueError(f"the name of a vector must be a non-empty string, not {name!r}")
    return name


def _checked_velocities(function: str, v: Vector) -> Vector:
    if not isinstance(v, Vector) or v.codomain != JOINT:
        kind = "the link vector " if isinstance(v, Vector) else ""
        raise TypeError(f'{function} takes a joint vector of velocities such as joint_vector("v"), not {kind}{v!r}')
    return v


def __dir__() -> list[str]:
    return __all__


from .parse import ParseError, parse  # noqa: E402 - it reads the names above

__all__ = [
    "A",
    "B",
    "D",
    "D_half",
    "E_phi",
    "E_psi",
    "Expression",
    "G",
    "H",
    "I",
    "K",
    "M",
    "P",
    "P_plus",
    "ParseError",
    "Phi",
    "Psi",
    "R",
    "Space",
    "SpaceError",
    "UnknownInverse",
    "bias_acceleration",
    "bias_force",
    "dense",
    "gravity",
    "identity",
    "joint_vector",
    "link_vector",
    "parse",
    "phi",
    "psi",
    "tau",
    "tau_bar",
    "FORCE",
    "JOINT",
    "MOTION",
    "SCALAR",
]
