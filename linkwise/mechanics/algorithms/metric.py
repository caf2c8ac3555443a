"""The mass matrix as a metric: its connection along tangent directions, by Koszul's formula (jain1995 Section 2).

Directions of joints that rotate freely (quaternions) do not commute, so structure constants enter beside derivatives.
Arrays are of floats, with any leading batch shape, or of traced scalars.
"""

from __future__ import annotations

import numpy as np


def connection(metric: np.ndarray, slopes: np.ndarray, structure_constants: np.ndarray) -> np.ndarray:
    """(nv, nv, nv): [i, j, k] is the product of E_k with the covariant derivative of E_j along E_i.

    slopes                [i, j, k]: derivative of [i, j] of the metric along direction k
    structure_constants   of tangent directions, ``Mechanism.coordinates.structure_constants``

    Linear in the metric and its derivatives, and therefore also applicable to their derivatives.
    """
    return 0.5 * (
        twice_symmetric_connection(metric, slopes, structure_constants) + _lowered(metric, structure_constants)
    )


def twice_symmetric_connection(metric: np.ndarray, slopes: np.ndarray, structure_constants: np.ndarray) -> np.ndarray:
    """(nv, nv, nv): [i, j, k] + [j, i, k] of ``connection``, which are M_jk,i + M_ik,j - M_ij,k - [E_i, E_k]_j
    - [E_j, E_k]_i with indices lowered by the metric M."""
    lowered = _lowered(metric, structure_constants)
    spread = np.moveaxis(slopes, -1, -3) - slopes + np.swapaxes(slopes, -1, -2)
    twice = spread - (np.swapaxes(lowered, -1, -2) + np.moveaxis(lowered, -1, -3))
    i, j = np.tril_indices(len(structure_constants), -1)
    twice[..., j, i, :] = twice[..., i, j, :]  # equal to the sum of both up to the order of additions
    return twice


def _lowered(metric: np.ndarray, structure_constants: np.ndarray) -> np.ndarray:
    """(nv, nv, nv): [i, j, k] is the product of [E_i, E_j] with E_k."""
    result = np.zeros((*metric.shape[:-2], *structure_constants.shape), metric.dtype)
    for i, j, m in np.argwhere(structure_constants):
        result[..., i, j, :] = result[..., i, j, :] + float(structure_constants[i, j, m]) * metric[..., m, :]
    return result
