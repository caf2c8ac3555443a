"""The decoupled natural orthogonal complement (saha1999): equations of motion with twists at the mass centres.

Links run base to tip; n is their number.  Twists [omega; v] are of the links' mass centres, wrenches [n; f] act there,
both along the world's axes, as in the paper.  q is (nq,), v, a and tau are (nv,), with any leading batch shape. Trees
and all joints are allowed: block (i, j) of N_l is zero unless link j is link i or an ancestor of it, and N_d and D have
blocks as wide as the joints.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..compiler.store import kernel_function, of_algorithm
from ..mechanism import Mechanism
from .states import Float64Array

__all__ = [
    "accelerations",
    "coriolis_matrix",
    "forces",
    "forward_dynamics",
    "inertia_matrix",
    "inverse_dynamics",
    "matrices",
    "udu",
]
__dir__ = __all__.copy


def _side_by_side(both: Float64Array) -> tuple[Float64Array, Float64Array]:
    rows = both.shape[-2]
    return both[..., :rows], both[..., rows:]


def _pair(both: Float64Array) -> tuple[Float64Array, Float64Array]:
    return both[..., 0, :, :], both[..., 1, :, :]


@of_algorithm("denoc_matrices", gives=_side_by_side)
def matrices(mech: Mechanism, q: ArrayLike) -> tuple[Float64Array, Float64Array]:
    """N_l (6 n, 6 n) and N_d (6 n, nv): ``N_l @ N_d @ v`` are the twists of all links (16, 17)."""
    return _side_by_side(kernel_function(mech, "denoc_matrices")(q))


@of_algorithm("denoc_inertia_matrix")
def inertia_matrix(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv) from composite bodies (21-24); equals ``lw.mass_matrix``."""
    return kernel_function(mech, "denoc_inertia_matrix")(q)


@of_algorithm("denoc_coriolis_matrix")
def coriolis_matrix(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(nv, nv): the matrix of convective inertia terms N* (M dN/dt + dM/dt N), element by element (25-29).

    C v is the bias force without gravity and dI/dt - 2 C is skew, as with ``lw.coriolis_matrix``, but it is another
    such matrix.
    """
    return kernel_function(mech, "denoc_coriolis_matrix")(q, v)


@of_algorithm("denoc_forces")
def forces(mech: Mechanism, q: ArrayLike, wrenches: ArrayLike) -> Float64Array:
    """(nv,): generalized forces N* w of ``wrenches`` (n, 6) on the links, at mass centres in world axes (30, 31)."""
    return kernel_function(mech, "denoc_forces")(q, wrenches)


@of_algorithm("denoc_udu", gives=_pair)
def udu(mech: Mechanism, q: ArrayLike) -> tuple[Float64Array, Float64Array]:
    """U and D (nv, nv) with ``U @ D @ U.T`` the inertia matrix (40-55).

    U is unit upper triangular, D diagonal; with joints of several degrees of freedom both are so by blocks.
    """
    return _pair(kernel_function(mech, "denoc_udu")(q))


@of_algorithm("denoc_inverse_dynamics")
def inverse_dynamics(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Float64Array:
    """(nv,): joint forces by the recursions of Section 5.1; equals ``lw.inverse_dynamics``, which costs less."""
    return kernel_function(mech, "denoc_inverse_dynamics")(q, v, a)


@of_algorithm("denoc_accelerations")
def accelerations(mech: Mechanism, q: ArrayLike, tau: ArrayLike) -> Float64Array:
    """(nv,): accelerations due to joint forces tau alone (the paper's phi), without velocity and gravity terms, by U D
    U* (33-37): the three steps of Section 5.2.
    """
    return kernel_function(mech, "denoc_accelerations")(q, tau)


@of_algorithm("denoc_forward_dynamics")
def forward_dynamics(mech: Mechanism, q: ArrayLike, v: ArrayLike, tau: ArrayLike) -> Float64Array:
    """(nv,): accelerations through U D U* (Section 5.2); equals ``lw.forward_dynamics``, which costs less."""
    return kernel_function(mech, "denoc_forward_dynamics")(q, v, tau)
