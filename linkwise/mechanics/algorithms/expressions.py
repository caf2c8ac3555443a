"""The named algorithms of tree dynamics as operator expressions, as the papers write them.

``a`` is the bias acceleration and ``g`` the acceleration of the ground that stands for gravity, ``b`` the gyroscopic
forces, all for the joint velocities ``v``.  M stands for link inertias, R for rotor inertias.
"""

from __future__ import annotations

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
    M,
    P,
    P_plus,
    R,
    bias_acceleration,
    bias_force,
    gravity,
    joint_vector,
    link_vector,
    phi,
    psi,
    tau_bar,
)

v, qdd, T = joint_vector("v"), joint_vector("a"), joint_vector("tau")
a, b, g = bias_acceleration(v), bias_force(v), gravity()
wrenches = link_vector("wrenches")

#: H phi M phi* H* + R (rodriguez1992 22); its inverse is known (46).
MASS_MATRIX = H @ phi @ M @ phi.T @ H.T + R
MASS_MATRIX_INVERSE = MASS_MATRIX.inv
#: I - H psi K, the inverse of the factor I + H phi K (jain1995 4.1c).
WHITENING = I - H @ psi @ K


def joint_wrenches(forces: Expression) -> Expression:
    """f = phi [M phi* (H* qdd + a + g) + forces]: what each joint transmits onto its link (rodriguez1986 7.1-7.5)."""
    return phi @ (M @ phi.T @ (H.T @ qdd + a + g) + forces)


def inverse_dynamics(forces: Expression) -> Expression:
    """T = H f + R qdd (rodriguez1986 7.6, rodriguez1992 24-25)."""
    return H @ joint_wrenches(forces) + R @ qdd


def forces_on_links(pushed: bool) -> Expression:
    """What the links' own accelerations do not explain: gyroscopic forces, and external wrenches if there are any."""
    return b - wrenches if pushed else b


BIAS_FORCE = H @ phi @ (M @ phi.T @ (a + g) + b)
GRAVITY_FORCE = H @ phi @ M @ phi.T @ g


# -- diagonalized dynamics (jain1995 5.1, 7.7, Tables 1 and 2) ------------------------------------------

nu, eps = joint_vector("nu"), joint_vector("eps")


def factor(normalized: bool = True) -> Expression:
    """m with M = m m*; I + H phi K without normalization."""
    return (I + H @ phi @ K) @ D_half if normalized else I + H @ phi @ K


def factor_inverse(normalized: bool = True) -> Expression:
    return D_half.inv @ WHITENING if normalized else WHITENING


def total_rates(normalized: bool = True) -> Expression:
    return factor(normalized).T @ v


def relative_rates(normalized: bool = True) -> Expression:
    return factor_inverse(normalized).T @ nu


def working_moments(normalized: bool = True) -> Expression:
    return factor_inverse(normalized) @ T


def working_moments_of_all(normalized: bool = True) -> Expression:
    """Gravity and wrenches on the links join the joint moments."""
    return factor_inverse(normalized) @ (T - H @ phi @ (M @ phi.T @ g - wrenches))


def joint_moments(normalized: bool = True) -> Expression:
    return factor(normalized) @ eps


# -- forward dynamics ---------------------------------------------------------------------------------


def filter_and_smoother(forces: Expression) -> Expression:
    """Three sweeps, biases inside the recursions: rodriguez1986 Result 8.1."""
    z = psi @ (forces + E_phi @ (G @ T + P_plus @ a))
    nu = D.inv @ (T - H @ z)
    alpha = psi.T @ (H.T @ nu + tau_bar.T @ (a + g))
    return nu - G.T @ (E_phi.T @ alpha + a + g)


def bias_free_moments(forces: Expression) -> Expression:
    """T' = T - H phi [M phi* (a + g) + forces] (rodriguez1992 26, 47)."""
    return T - H @ phi @ (M @ phi.T @ (a + g) + forces)


def bias_free(forces: Expression) -> Expression:
    """Four sweeps: bias forces by inverse dynamics, then the inverse mass matrix (rodriguez1992 Algorithm 1, 47-48)."""
    return WHITENING.T @ D.inv @ WHITENING @ bias_free_moments(forces)


def biased(forces: Expression) -> Expression:
    """Three sweeps from the biased equations of motion (rodriguez1992 Algorithm 3, 60-62)."""
    zeta = M @ phi.T @ (a + g) + forces
    innovations = T - H @ psi @ (zeta + K @ T)  # (61) with H Psi tau_bar + H = H psi
    return WHITENING.T @ D.inv @ innovations


def without_dalembert_forces(forces: Expression) -> Expression:
    """Three sweeps that need no D'Alembert forces beforehand (rodriguez1992 66-73)."""
    z = psi @ (E_psi @ P @ a + K @ T + forces)
    nu = D.inv @ (T - H @ z)
    smoothed = psi.T @ (H.T @ nu + tau_bar.T @ (a + g))
    return nu - K.T @ smoothed - G.T @ (a + g)


FORWARD_DYNAMICS = {
    "filter_and_smoother": filter_and_smoother,
    "bias_free": bias_free,
    "biased": biased,
    "without_dalembert_forces": without_dalembert_forces,
}

#: Link accelerations (of the origins, as an inertial observer sees them) in four sweeps (rodriguez1992 Algorithm 2).
FORWARD_LINK_ACCELERATIONS = psi.T @ H.T @ D.inv @ WHITENING @ (T - H @ phi @ (M @ phi.T @ (a + g) + b)) + phi.T @ a

#: Joint forces by cause: joint moments, bias forces, bias accelerations with gravity (rodriguez1986 10.2).
FORCE_PARTS = (T, -(H @ phi @ b), -(H @ phi @ M @ phi.T @ (a + g)))


# -- one link -----------------------------------------------------------------------------------------


def jacobian(link: str) -> Expression:
    """B* phi* H* (rodriguez1992 20)."""
    return B(link).T @ phi.T @ H.T


def operational_inertia(link: str) -> Expression:
    """The inverse of J M^-1 J* = B* psi* H* D^-1 H psi B."""
    return (B(link).T @ psi.T @ H.T @ D.inv @ H @ psi @ B(link)).inv
