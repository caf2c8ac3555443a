"""The spatial operator algebra: write expressions as in the papers, then compile them for a mechanism.

    from linkwise import operators as op
    T = op.joint_vector("T")
    accelerations = (op.I - op.H @ op.psi @ op.K).T @ op.D.inv @ (op.I - op.H @ op.psi @ op.K) @ T
    kernel = linkwise.compile(accelerations, mech)

Operators act between joint space, link force space and link motion space.  Links are numbered base to tip; each link's
six numbers are in its own frame at its origin, angular part first.

    H        link forces -> joint forces           E_phi    forces of a link to its parent (jain1995 4.7)
    phi      (I - E_phi)^-1 (4.6)                  E_psi    E_phi tau_bar (4.10)
    psi      (I - E_psi)^-1 (4.10)                 M        link inertias
    P        articulated inertias (4.8)            D        H P H* + R
    G        P H* D^-1                             K        E_phi G
    tau      G H                                   tau_bar  I - G H
    D_half   lower triangular in each block, with D = D_half D_half* (the square root for one degree of freedom)
    R        rotor inertias (armature)             S        coordinates to joints, where joints mimic others
    W        forces of the links next to the ground, at the world's origin in its axes
    Phi, Psi rodriguez1992's phi - I and (41)      L        link motions to rates of the loops (spencer2004 2.2)

The mass matrix is S* (H phi M phi* H* + R) S; S is the identity without mimic joints.  The Jacobian of the loop
constraints is L phi* H* S.
"""

from __future__ import annotations

from . import algebra
from .actions import local
from .algebra import *  # noqa: F403 - operators are public where they are defined
from .counterexample import Counterexample
from .dense import dense
from .expression import Expression
from .identities import UnknownInverse
from .parse import ParseError, parse
from .proof import Proof, ProofStep, prove
from .record import Action, Record
from .simplify import simplified as _simplified  # noqa: F401 - what Expression.simplify does
from .spaces import COORDINATE, FORCE, JOINT, LOOP, MOTION, SCALAR, Space, SpaceError
from .symbols import symbol

__all__ = [
    *algebra.__all__,
    "Action",
    "COORDINATE",
    "Counterexample",
    "Expression",
    "FORCE",
    "JOINT",
    "LOOP",
    "MOTION",
    "ParseError",
    "Proof",
    "ProofStep",
    "Record",
    "SCALAR",
    "Space",
    "SpaceError",
    "UnknownInverse",
    "dense",
    "local",
    "parse",
    "prove",
    "symbol",
]
__all__.sort()
__dir__ = __all__.copy
