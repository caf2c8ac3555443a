"""The decoupled natural orthogonal complement (saha1999): equations of motion with twists at the mass centres.

Links run base to tip; n is their number.  Twists [omega; v] are of the links' mass centres, wrenches [n; f] act there,
both along the world's axes, as the paper has them.  q is (nq,), v, a and tau are (nv,), with any leading batch shape.
Trees and all joints are allowed: block (i, j) of N_l is zero unless link j is link i or on the way to it, and N_d and D
have blocks as wide as the joints.
"""

from __future__ import annotations

from ..compiler.store import kernel_function
from ..mechanism import Mechanism

__all__ = ["coriolis_matrix", "forces", "forward_dynamics", "inertia_matrix", "inverse_dynamics", "matrices", "udu"]


def matrices(mech: Mechanism, q):
    """N_l (6 n, 6 n) and N_d (6 n, nv): ``N_l @ N_d @ v`` are the twists of all links (16, 17)."""
    both = kernel_function(mech, "denoc_matrices", q)(q)
    rows = both.shape[-2]
    return both[..., :rows], both[..., rows:]


def inertia_matrix(mech: Mechanism, q):
    """(nv, nv) from composite bodies (21-24); equals ``lw.mass_matrix``."""
    return kernel_function(mech, "denoc_inertia_matrix", q)(q)


def coriolis_matrix(mech: Mechanism, q, v):
    """(nv, nv): the matrix of convective inertia terms N* (M dN/dt + dM/dt N), element by element (25-29).

    C v is the bias force without gravity and dI/dt - 2 C is skew, as with ``lw.coriolis_matrix``, but it is another
    such matrix.
    """
    return kernel_function(mech, "denoc_coriolis_matrix", q)(q, v)


def forces(mech: Mechanism, q, wrenches):
    """(nv,): generalized forces N* w of ``wrenches`` (n, 6) on the links, at mass centres in world axes (30, 31)."""
    return kernel_function(mech, "denoc_forces", q)(q, wrenches)


def udu(mech: Mechanism, q):
    """U and D (nv, nv) with ``U @ D @ U.T`` the inertia matrix (40-55).

    U is unit upper triangular, D diagonal; with joints of several freedoms both are so by blocks.
    """
    both = kernel_function(mech, "denoc_udu", q)(q)
    return both[..., 0, :, :], both[..., 1, :, :]


def inverse_dynamics(mech: Mechanism, q, v, a):
    """(nv,): joint forces by the recursions of Section 5.1; equals ``lw.inverse_dynamics``, which costs less."""
    return kernel_function(mech, "denoc_inverse_dynamics", q)(q, v, a)


def forward_dynamics(mech: Mechanism, q, v, tau):
    """(nv,): accelerations through U D U* (Section 5.2); equals ``lw.forward_dynamics``, which costs less."""
    return kernel_function(mech, "denoc_forward_dynamics", q)(q, v, tau)
