"""Momentum of all moving links, and the motion of their common centre of mass; all in world axes.

Angular part first; rotors (armature) do not count.
"""

from __future__ import annotations

from numpy.typing import ArrayLike

from ..compiler.store import kernel_function, of_algorithm
from ..mechanism import Mechanism
from .states import Float64Array

__all__ = [
    "center_of_mass_acceleration",
    "center_of_mass_jacobian",
    "center_of_mass_velocity",
    "centroidal_momentum",
    "centroidal_momentum_matrix",
    "centroidal_momentum_matrix_rate",
    "centroidal_momentum_rate",
    "momentum_matrix",
    "momentum_rate",
]
__dir__ = __all__.copy


@of_algorithm("momentum_matrix")
def momentum_matrix(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(6, nv): A with A v = ``momentum``, about the world's origin; W phi M phi* H*."""
    return kernel_function(mech, "momentum_matrix")(q)


@of_algorithm("momentum_rate")
def momentum_rate(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Float64Array:
    """(6,): time derivative of ``momentum``: [moment about the world's origin; force] of gravity and all other external
    forces."""
    return kernel_function(mech, "momentum_rate")(q, v, a)


@of_algorithm("centroidal_momentum")
def centroidal_momentum(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(6,): [angular momentum about the centre of mass; linear momentum]."""
    return kernel_function(mech, "centroidal_momentum")(q, v)


@of_algorithm("centroidal_momentum_rate")
def centroidal_momentum_rate(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Float64Array:
    """(6,): time derivative of ``centroidal_momentum``: [moment about the centre of mass; force] of gravity and all
    other external forces."""
    return kernel_function(mech, "centroidal_momentum_rate")(q, v, a)


@of_algorithm("centroidal_momentum_matrix")
def centroidal_momentum_matrix(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(6, nv): A with A v = ``centroidal_momentum``."""
    return kernel_function(mech, "centroidal_momentum_matrix")(q)


@of_algorithm("centroidal_momentum_matrix_rate")
def centroidal_momentum_matrix_rate(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(6, nv): dA/dt of ``centroidal_momentum_matrix`` while the mechanism moves with v."""
    return kernel_function(mech, "centroidal_momentum_matrix_rate")(q, v)


@of_algorithm("center_of_mass_jacobian")
def center_of_mass_jacobian(mech: Mechanism, q: ArrayLike) -> Float64Array:
    """(3, nv): J with J v = ``center_of_mass_velocity``."""
    return kernel_function(mech, "center_of_mass_jacobian")(q)


@of_algorithm("center_of_mass_velocity")
def center_of_mass_velocity(mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
    """(3,): time derivative of ``center_of_mass``."""
    return kernel_function(mech, "center_of_mass_velocity")(q, v)


@of_algorithm("center_of_mass_acceleration")
def center_of_mass_acceleration(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Float64Array:
    """(3,): second time derivative of ``center_of_mass``; gravity enters through ``a``."""
    return kernel_function(mech, "center_of_mass_acceleration")(q, v, a)
