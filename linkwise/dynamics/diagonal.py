"""Diagonalized dynamics (jain1995): total joint rates, working moments, and an equation of motion without mass matrix.

    nu = m* v,   epsilon = m^-1 tau,   dnu/dt + C(q, nu) = epsilon,   nu* nu / 2 = kinetic energy,   nu* C = 0

with m = (I + H phi K) D^(1/2), M = m m*.  D^(1/2) is Cholesky's lower factor of each joint's block of D: for a joint
of one degree of freedom, its square root.  ``normalized=False`` everywhere gives the variables without D^(1/2):
xi = (I + H phi K)* v, kappa = (I - H psi K) tau, D dxi/dt + C(q, xi) = kappa.

q is (nq,), all joint vectors are (nv,), with any leading batch shape.  Trees of any joints, fixed or floating, with
rotor inertias; where joints mimic others the factors come from elimination.

With constraints (loops, couplings, rolling, drives, held contacts) v = K y + k, and nu are quasi-velocities of K* M K:

    nu = m* y,   K* M K = m m*,   epsilon = m^-1 K* tau,   dnu/dt + C(q, nu) = epsilon

nu, epsilon and C have p numbers, as many as K has columns, and m is (p, p).  y are the velocities of ``independent``
joints or single coordinates; by default of coordinates that determine the others well around the initial configuration.
nu depends on this choice as total rates of a tree depend on which links are the inner ones.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import compile_instead
from ..compiler.store import kernel_function, of_algorithm
from ..mechanics.algorithms.metric import connection
from ..mechanism import Mechanism
from ..mechanism.scales import scales
from .decoupled_control import EndEffectorRegulation, RateFeedback, end_effector_regulation, rate_feedback
from .force_elements import NONE, applied
from .states import ByJoint, Float64Array, checked_arrays
from .total_rates import constrained_total_rates, evaluate_total_rates
from .trees import mass_matrix, mass_matrix_derivatives, random_state

__all__ = [
    "EndEffectorRegulation",
    "RateFeedback",
    "all_forces",
    "christoffel_symbols",
    "coriolis",
    "curvature",
    "end_effector_regulation",
    "factor",
    "factor_derivatives",
    "factor_inverse",
    "factor_rate",
    "forces",
    "forward_dynamics",
    "is_globally_diagonalizable",
    "motion",
    "rate_feedback",
    "rates",
    "torques",
    "velocities",
]
__dir__ = __all__.copy

# -- transforms (jain1995 Tables 1 and 2) ---------------------------------------------------------------


@of_algorithm("diagonal_rates")
def rates(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, normalized: bool = True, independent: Any = None
) -> Float64Array:
    """(nv,): total joint rates nu = m* v; without normalization xi = v + G* V+, joint by joint."""
    return evaluate_total_rates(mech, "diagonal_rates", (q, v), normalized, independent)


@of_algorithm("diagonal_velocities")
def velocities(
    mech: Mechanism, q: ArrayLike, nu: ArrayLike, normalized: bool = True, independent: Any = None
) -> Float64Array:
    """(nv,): the joint velocities v of total rates ``nu`` (or xi)."""
    return evaluate_total_rates(mech, "diagonal_velocities", (q, nu), normalized, independent)


@of_algorithm("diagonal_forces")
def forces(
    mech: Mechanism, q: ArrayLike, tau: ArrayLike, normalized: bool = True, independent: Any = None
) -> Float64Array:
    """(nv,): working moments epsilon = m^-1 tau of joint forces (or kappa)."""
    return evaluate_total_rates(mech, "diagonal_forces", (q, tau), normalized, independent)


@compile_instead("'diagonal_forces_of_all'")
def all_forces(
    mech: Mechanism,
    q: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    normalized: bool = True,
    independent: Any = None,
) -> Float64Array:
    """(nv,): working moments of joint forces, gravity and ``wrenches`` (n_links, 6), in link frames, together:
    the right-hand side of dnu/dt + C = epsilon."""
    wrenches = np.zeros((mech.n_links, 6)) if wrenches is None else wrenches
    if mech.loops:
        return constrained_total_rates("diagonal_forces_of_all", mech, (q, tau, wrenches), normalized, independent)
    return kernel_function(mech, ("diagonal_forces_of_all", ("normalized", normalized)))(q, tau, wrenches)


@of_algorithm("diagonal_torques")
def torques(
    mech: Mechanism, q: ArrayLike, eps: ArrayLike, normalized: bool = True, independent: Any = None
) -> Float64Array:
    """(nv,): the joint forces tau = m epsilon of working moments (or of kappa).

    With constraints many tau have the same working moments: the result needs no constraint forces to accelerate the
    mechanism from rest, tau = M K (K* M K)^-1 m epsilon."""
    return evaluate_total_rates(mech, "diagonal_torques", (q, eps), normalized, independent)


@of_algorithm("diagonal_factor")
def factor(mech: Mechanism, q: ArrayLike, normalized: bool = True, independent: Any = None) -> Float64Array:
    """(nv, nv): m, with m m* the mass matrix; without normalization I + H phi K."""
    return evaluate_total_rates(mech, "diagonal_factor", (q,), normalized, independent)


@of_algorithm("diagonal_factor_inverse")
def factor_inverse(mech: Mechanism, q: ArrayLike, normalized: bool = True, independent: Any = None) -> Float64Array:
    """(nv, nv): the inverse of ``factor``, in closed form."""
    return evaluate_total_rates(mech, "diagonal_factor_inverse", (q,), normalized, independent)


@of_algorithm("diagonal_factor_derivatives")
def factor_derivatives(mech: Mechanism, q: ArrayLike, normalized: bool = True, independent: Any = None) -> Float64Array:
    """(nv, nv, nv): [i, j, k] is dm_ij along tangent direction k, in closed form (jain1995 A.29); with
    constraints (p, p, p), along column k of K."""
    return evaluate_total_rates(mech, "diagonal_factor_derivatives", (q,), normalized, independent)


@of_algorithm("diagonal_factor_rate")
def factor_rate(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, normalized: bool = True, independent: Any = None
) -> Float64Array:
    """(nv, nv): dm/dt along the joint velocities v (jain1995 A.30)."""
    return evaluate_total_rates(mech, "diagonal_factor_rate", (q, v), normalized, independent)


# -- equations of motion ------------------------------------------------------------------------------


@of_algorithm("diagonal_coriolis")
def coriolis(
    mech: Mechanism, q: ArrayLike, nu: ArrayLike, normalized: bool = True, independent: Any = None
) -> Float64Array:
    """(nv,): C(q, nu), which does no work (jain1995 Algorithm 7.1); without normalization C(q, xi) (7.10).

    Raises for mechanisms with drives, which do work."""
    return evaluate_total_rates(mech, "diagonal_coriolis", (q, nu), normalized, independent)


def _two(both: Any) -> tuple[Float64Array, Float64Array]:
    if type(both) is tuple:  # of mechanisms with constraints
        return both
    return both[..., 0, :], both[..., 1, :]


@of_algorithm("diagonal_motion", gives=_two)
def motion(
    mech: Mechanism,
    q: ArrayLike,
    nu: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    normalized: bool = True,
    independent: Any = None,
    forces: Any = NONE,
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array]:
    """dnu/dt and v, each (nv,), under joint forces, gravity and ``wrenches`` (n_links, 6): the rates for an
    integrator of (q, nu) (jain1995 Algorithm 8.1); ``forces``, ``ctrl`` and ``activation`` are active force elements,
    as for ``lw.forward_dynamics``."""
    elements = applied(mech, forces, ctrl, activation)
    if elements is not None:
        q, tau = checked_arrays(mech, q=q, tau=tau)
        tau = tau + elements.forces(q, velocities(mech, q, nu, normalized, independent))
    return _two(evaluate_total_rates(mech, "diagonal_motion", (q, nu, tau), normalized, independent, wrenches))


@compile_instead("linkwise.formulations.diagonal.motion, whose kernel gives [dnu/dt, v]")
def forward_dynamics(
    mech: Mechanism,
    q: ArrayLike,
    nu: ArrayLike,
    tau: ArrayLike,
    wrenches: ArrayLike | None = None,
    normalized: bool = True,
    independent: Any = None,
    forces: Any = NONE,
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
) -> Float64Array:
    """(nv,): dnu/dt (or dxi/dt) under joint forces, gravity, ``wrenches`` and the force elements of ``forces``."""
    return motion(mech, q, nu, tau, wrenches, normalized, independent, forces, ctrl, activation)[0]


# -- geometry (jain1995 Section 2) --------------------------------------------------------------------


def christoffel_symbols(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv, nv): [i, j, k] is the product of E_k with the covariant derivative of E_j along E_i, E the tangent
    directions; Christoffel's symbols of the first kind [ij, k] where these are coordinates."""
    return connection(mass_matrix(mech, q), mass_matrix_derivatives(mech, q), mech.coordinates.structure_constants)


def curvature(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(nv, nv, nv, nv): Riemann's symbols of the first kind R_hijk of the mass matrix as a metric (jain1995 2.5).

    Components are along the tangent directions of v.  Where q is a set of coordinates (dq/dt = v) these are the
    paper's; spherical and floating joints have none, and their directions do not commute.  The symbols are then those
    of coordinates that agree with the tangent directions to first order, such as exponential ones.  Derivatives
    are exact.
    """
    return _curvature(mech, q)[0]


def is_globally_diagonalizable(mech: Mechanism, samples: int = 5, tolerance: float = 1e-9, seed: int = 0) -> bool:
    """Whether coordinates exist in which the mass matrix is constant: its curvature vanishes (jain1995 Lemma 2.2).

    Curvature is compared with its largest terms in ``samples`` random configurations.  It is analytic in q, and so
    almost surely does not vanish in all of them by accident.
    """
    unit = scales(mech)
    q, _ = random_state(mech, np.random.default_rng(seed), (samples,))
    units = np.einsum("h,i,j,k->hijk", *(unit.of_v,) * 4)
    symbols, terms = (units * x for x in _curvature(mech, q * unit.of_q))
    axes = (-4, -3, -2, -1)
    return bool(np.all(np.abs(symbols).max(axes, initial=0.0) <= tolerance * np.abs(terms).max(axes, initial=0.0)))


def _curvature(mech: Mechanism, q: ArrayLike) -> tuple[np.ndarray, np.ndarray]:
    """The symbols, and the largest of their terms."""
    g, first = mass_matrix(mech, q), mass_matrix_derivatives(mech, q)
    second = kernel_function(mech, "mass_matrix_second_derivatives")(q)
    gamma = connection(g, first, mech.coordinates.structure_constants)
    slopes = np.moveaxis(
        connection(np.moveaxis(first, -1, 0), np.moveaxis(second, -1, 0), mech.coordinates.structure_constants), 0, -1
    )
    raised = np.linalg.solve(g[..., None, :, :], np.swapaxes(gamma, -1, -2))  # [i, l, j]: second kind
    products = np.einsum("...jli,...khl->...hijk", raised, gamma)
    bracket = np.einsum("jkm,...mih->...hijk", mech.coordinates.structure_constants, gamma)
    along = np.einsum("...kihj->...hijk", slopes)
    symbols = along - np.swapaxes(along, -1, -2) + products - np.swapaxes(products, -1, -2) - bracket
    terms = np.maximum(np.maximum(np.abs(along), np.abs(products)), np.abs(bracket))
    return symbols, terms
