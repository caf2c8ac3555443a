"""Physically consistent inertial parameters nearest to identified ones.

Ten inertial parameters belong to a distribution of mass if the pseudo-inertia [[S, m c], [m c*, m]] of the link, S its
second moments about the origin of its frame, is positive definite (Wensing, Kim and Slotine, IEEE Robotics and
Automation Letters 3, 2018).  It is linear in the parameters, so that the nearest ones solve a convex problem.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.inertial_parameters import NAMES, inertial_parameters
from ..mechanism.scales import scales
from .states import Float64Array, real_numbers

PER_LINK = len(NAMES)
ROUND_OFF = 1e-9  # of an eigenvalue, in the same units as LEAST
LEAST = 1e-6  # eigenvalue of a pseudo-inertia in units of the link's own mass and extent
ROOM = 0.1  # eigenvalue from which the search starts
SHARPEST, SHARPER = 1e15, 10.0  # final weight of the objective beside the barrier, and its growth
STEPS, SETTLED = 60, 1e-9  # Newton steps for each weight, and squared step length at convergence


def physical_parameters(
    mech: Mechanism, parameters: ArrayLike, matrix: ArrayLike | None = None, nearness: float = 0.01
) -> Float64Array:
    """(10 n_links,): the physical inertial parameters nearest to ``parameters``, for ``mech.parameters.with_inertial``.

    matrix     (..., 10 n_links): ``matrix @ parameters`` is preserved by least squares.  With the regressor of measured
               states, each row divided by its noise, and least-squares parameters, the result is the least-squares fit
               among physical parameters.  None: all parameters equally, in units of each link's own mass and extent
    nearness   weight of the squared distance from ``parameters``, in these units, relative to that of
               ``matrix @ parameters``: it decides the null space of the matrix
    """
    require_mechanism(mech)
    size = PER_LINK * mech.n_links
    measured = real_numbers("parameters", parameters)
    seen = np.zeros((0, size)) if matrix is None else real_numbers("matrix", matrix)
    fits = measured.shape == (size,) and seen.shape[-1:] == (size,)
    if not (fits and np.isfinite(measured).all() and np.isfinite(seen).all()):
        raise MechanismError(
            f"parameters and the rows of matrix must be {size} finite numbers, ten for each link of mechanism "
            f"{mech.name!r}, got shapes {measured.shape} and {seen.shape}"
        )
    if not 0.0 < nearness < np.inf:
        raise ValueError(f"nearness must be a positive number, got {nearness!r}")
    to_matrices = _scaled_pseudo_inertias(mech)
    start = to_matrices @ measured
    back = np.linalg.inv(to_matrices)
    rows = seen.reshape(-1, size) @ back if matrix is not None else np.eye(size)
    rows = np.concatenate([rows, np.sqrt(nearness) * np.eye(size)])
    return back @ _nearest(start, rows / np.linalg.norm(rows, 2))


def _scaled_pseudo_inertias(mech: Mechanism) -> np.ndarray:
    """(10 n, 10 n): maps parameters to orthonormal coordinates of all pseudo-inertias, in units of mass and extent."""
    nominal = inertial_parameters(mech).reshape(-1, PER_LINK)
    usual = nominal[:, 0].mean() or scales(mech).mass
    hessian = np.zeros((PER_LINK * mech.n_links,) * 2)
    for k, (ten, body) in enumerate(zip(nominal, mech.bodies, strict=True)):
        mass = body.mass if body.mass > 0.0 else usual
        extent = np.sqrt(max(np.trace(pseudo_inertia(ten)[:3, :3]), 0.0) / mass) or scales(mech).length
        scale = np.array([1.0 / extent] * 3 + [1.0]) / np.sqrt(mass)
        columns = [_coordinates(np.outer(scale, scale) * pseudo_inertia(unit)) for unit in np.eye(PER_LINK)]
        block = slice(PER_LINK * k, PER_LINK * (k + 1))
        hessian[block, block] = np.array(columns).T
    return hessian


def is_physical(ten: np.ndarray) -> bool:
    """Whether some body, or a point, has these ten parameters, up to round-off."""
    matrix = pseudo_inertia(ten)
    mass, second = matrix[3, 3], np.trace(matrix[:3, :3])
    if mass <= 0.0 or second <= 0.0:
        return not matrix.any()
    scale = np.array([np.sqrt(mass / second)] * 3 + [1.0]) / np.sqrt(mass)
    return bool(np.linalg.eigvalsh(np.outer(scale, scale) * matrix)[0] >= -ROUND_OFF)


def pseudo_inertia(ten: np.ndarray) -> np.ndarray:
    """(4, 4): pseudo-inertia of a link's ten parameters."""
    mass, *first, xx, xy, yy, xz, yz, zz = ten
    inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    matrix = np.empty((4, 4))
    matrix[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia
    matrix[:3, 3] = matrix[3, :3] = first
    matrix[3, 3] = mass
    return matrix


_UPPER = np.triu_indices(4)
_LENGTHS = np.where(_UPPER[0] == _UPPER[1], 1.0, np.sqrt(2.0))
_UNITS = np.zeros((PER_LINK, 4, 4))  # an orthonormal basis of symmetric matrices
_UNITS[(range(PER_LINK), *_UPPER)] = _UNITS[(range(PER_LINK), *_UPPER[::-1])] = 1.0 / _LENGTHS


def _coordinates(symmetric: np.ndarray) -> np.ndarray:
    """(..., 10): orthonormal coordinates of symmetric matrices (..., 4, 4)."""
    return np.einsum("...ij,kij->...k", symmetric, _UNITS)


def _matrices(x: np.ndarray) -> np.ndarray:
    """(n, 4, 4): symmetric matrices of concatenated coordinates."""
    return np.einsum("nk,kij->nij", x.reshape(-1, PER_LINK), _UNITS)


def _nearest(start: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """The coordinates x of positive definite matrices with the least |rows (x - start)|: an interior point method with
    the barrier -log det, whose Newton steps do not depend on units (Nesterov and Nemirovskii, 1994)."""
    values, vectors = np.linalg.eigh(_matrices(start))
    if values.min(initial=np.inf) >= LEAST:
        return start
    x = _coordinates((vectors * np.maximum(values, ROOM)[:, None, :]) @ vectors.swapaxes(-1, -2)).reshape(-1)
    metric, weight = rows.T @ rows, 1.0
    while weight <= SHARPEST:
        for _ in range(STEPS):
            slope, curvature = _barrier_derivatives(x)
            slope = slope + weight * (rows.T @ (rows @ (x - start)))
            step = -np.linalg.solve(curvature + weight * metric, slope)
            gain = -float(slope @ step)
            if not gain > SETTLED:
                break
            length, here = 1.0, _height(x, start, rows, weight)
            while length > SETTLED and not _height(x + length * step, start, rows, weight) < here - 0.1 * length * gain:
                length *= 0.5
            if length <= SETTLED:  # round-off
                break
            x = x + length * step
        weight *= SHARPER
    return x


def _height(x: np.ndarray, start: np.ndarray, rows: np.ndarray, weight: float) -> float:
    """The objective with barrier; infinite outside the domain."""
    values = np.linalg.eigvalsh(_matrices(x)) - LEAST
    if not values.min() > 0.0:
        return np.inf
    return 0.5 * weight * float(np.sum((rows @ (x - start)) ** 2)) - float(np.sum(np.log(values)))


def _barrier_derivatives(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """First and second derivatives of the barrier."""
    inverses = np.linalg.inv(_matrices(x) - LEAST * np.eye(4))
    second = np.zeros((len(x), len(x)))
    for k, inverse in enumerate(inverses):
        block = slice(PER_LINK * k, PER_LINK * (k + 1))
        second[block, block] = np.einsum("aij,bji->ab", inverse @ _UNITS, inverse @ _UNITS)
    return -_coordinates(inverses).reshape(-1), second
