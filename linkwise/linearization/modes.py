"""Natural modes of a linear model: eigenvalues and shapes, computed in coordinates scaled by its inertia.

Joint coordinates mix units and sizes: the wrist of an arm has a thousandth of the inertia of its shoulder.  Library
routines balance such matrices, and let round-off in entries that should be zero decide how; eigenvectors then are lost.
Here coordinates are those in which the mass matrix is the identity, and time runs in units of the fastest motion.  All
that should vanish is then small beside 1, and nothing is balanced.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
from numpy.typing import NDArray

from ..display import mimebundle
from ..dynamics.states import Float64Array

NONE = 1e-13  # of the largest stiffness or damping, per unit of inertia: what is below is round-off, and none
SYMMETRIC = 1e-12  # relative: how far a stiffness may be from symmetric to count as derived from an energy


class Modes(NamedTuple):
    """Modes of a linear model, slowest first. A pair of conjugate modes is listed once, with the positive imaginary
    part.

    eigenvalues      (k,) complex: motion as exp(eigenvalue t); exactly zero along displacements with less than 1e-13 of
                     the largest stiffness per unit of inertia (3e-7 of the largest frequency), which is round-off
    frequencies      (k,): their absolute values, the undamped natural frequencies in rad/s; ``frequencies_hz`` has
                     them in Hz, as the table that is shown does
    damping_ratios   (k,): 1 and -1 for motions that only decay or grow, nan for an eigenvalue of zero
    shapes           (nv, k) complex: joint displacements, the largest of each mode (in radians, or by the mechanism's
                     length) made 1.  Modes of eigenvalue zero
                     are independent displacements that meet no force; each is there once, though a mechanism without
                     dampers also drifts along it (which makes zero a double eigenvalue)
    coordinates      (nv): names of the rows of shapes
    """

    eigenvalues: NDArray[np.complex128]
    frequencies: Float64Array
    damping_ratios: Float64Array
    shapes: NDArray[np.complex128]
    coordinates: tuple[str, ...]

    @property
    def frequencies_hz(self) -> Float64Array:
        """(k,): the undamped natural frequencies in Hz."""
        return self.frequencies / (2.0 * np.pi)

    def __repr__(self) -> str:
        lines = ["frequency (Hz)  damping ratio  eigenvalue             largest displacements"]
        for k, value in enumerate(self.eigenvalues):
            shape = self.shapes[:, k]
            order = np.argsort(-np.round(np.abs(shape), 9), kind="stable")[:3]  # equal ones in order of coordinates
            largest = ", ".join(f"{self.coordinates[i]} {shape[i].real:.2f}" for i in order if abs(shape[i]) > 0.01)
            real, ratio = (_remove_round_off(x, y) for x, y in ((value.real, value), (self.damping_ratios[k], 1.0)))
            damping = f"{ratio:.4g}" if value else "-"
            lines.append(f"{self.frequencies_hz[k]:14.4g}  {damping:>13}  {real:10.4g} {value.imag:+10.4g}j  {largest}")
        return "\n".join(lines)

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> dict[str, Any]:
        return mimebundle(self, include, exclude)


def modes_of(
    matrix: Float64Array,
    mass: Float64Array,
    moved: Float64Array,
    names: tuple[str, ...],
    states: Float64Array | None = None,
    rate: float = 1.0,
    joints: Float64Array | None = None,
) -> Modes:
    """Modes of dx/dt = A x, x = (y, dy/dt), or of more states, or fewer velocities, than that.

    matrix   (2 p, 2 p): A
    mass     (p, p): the inertia that belongs to y
    moved    (nv, 2 p): joint displacements per unit of x, their names
    states, rate, joints   units of x (2 p,), of rates, and of joint displacements (nv,); 1 if left out
    """
    states, joints = (np.ones(n) if x is None else x for x, n in ((states, len(matrix)), (joints, len(moved))))
    if len(matrix) != 2 * len(mass):  # states that are none of motion, or velocities that are constrained alone
        values, vectors = _eigen_of_states(matrix * states / (states[:, None] * rate))
        values, vectors = values * rate, vectors * states[:, None]
    else:
        values, vectors = _eigen_of_motion(matrix, mass)
    still = values == 0.0
    vectors[:, still] = _separated(vectors[:, still], states)
    shapes = moved @ vectors
    kept = values.imag >= 0.0
    values, shapes = values[kept] + 0.0, shapes[:, kept]  # no negative zeros
    frequencies = np.abs(values)
    order = np.lexsort((values.real, frequencies))
    values, shapes, frequencies = values[order], shapes[:, order], frequencies[order]
    ratios = np.divide(-values.real, frequencies, out=np.full(len(values), np.nan), where=frequencies > 0.0)
    strongest = np.abs(shapes / joints[:, None]).argmax(axis=0)[None] if shapes.size else None
    largest = shapes if strongest is None else np.take_along_axis(shapes, strongest, axis=0)
    shapes = np.divide(shapes, largest, out=np.zeros_like(shapes), where=largest != 0.0)
    return Modes(np.asarray(values, dtype=complex), frequencies, ratios, shapes, names)


def _eigen_of_motion(matrix: np.ndarray, mass: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (k,) and eigenvectors (2 p, k) of A, both complex."""
    p = len(mass)
    if not p:
        return np.zeros(0, dtype=complex), np.zeros((0, 0), dtype=complex)
    factor = _factor(mass)  # M = L L*; in L* y the mass is the identity
    drift, coupling, pull, drag = (
        _congruent(block, mass, factor) for rows in np.vsplit(matrix, 2) for block in np.hsplit(rows, 2)
    )
    stiff = np.sqrt(np.abs(pull).max())
    fastest = max(stiff, np.abs(drift).max(), np.abs(drag).max()) or 1.0
    if np.array_equal(matrix[:p], np.eye(p, 2 * p, p)) and np.abs(drag).max() <= NONE * fastest:
        # Forces do not feel velocities: d2y/dt2 = pull y, and eigenvalues are roots of those of the pull.
        squares, positions = _eigen(pull / fastest**2, np.ones(p))
        roots = np.sqrt(squares.astype(complex)) * fastest
        moving = roots != 0.0
        values = np.concatenate([roots, -roots[moving]])
        positions = np.concatenate([positions, positions[:, moving]], axis=1)
        vectors = np.concatenate([positions, positions * values])
    else:
        state_matrix = np.block([[drift / fastest, coupling], [pull / fastest**2, drag / fastest]])
        # A stiffness that is small beside the damping is not yet round-off.
        weights = np.repeat([(fastest / stiff) ** 2 if stiff > 0.0 else 1.0, 1.0], p)
        scaled, vectors = _eigen(state_matrix, weights)
        values = scaled.astype(complex) * fastest
        vectors = np.concatenate([vectors[:p], vectors[p:] * fastest])
    back = [scipy.linalg.solve_triangular(factor, x, lower=True, trans="T") for x in np.vsplit(vectors, 2)]
    return values, np.concatenate(back).astype(complex)


def _eigen_of_states(matrix: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues (n,) and eigenvectors (n, n) of a dimensionless matrix whose states are of any kind."""
    alike = np.ones(len(matrix))
    if not matrix.size or not _vanishing(matrix, alike)[0].shape[1]:
        values, vectors = np.linalg.eig(matrix)
        return values.astype(complex), vectors.astype(complex)
    values, vectors = _eigen(matrix, alike)
    return values.astype(complex), vectors.astype(complex)


def _factor(mass: np.ndarray) -> np.ndarray:
    """L of M = L L*; the roots of the diagonal if M is not positive definite."""
    try:
        return np.linalg.cholesky(mass)
    except np.linalg.LinAlgError:
        return np.diag(np.sqrt(np.maximum(np.abs(np.diag(mass)), 1e-300)))


def _congruent(block: np.ndarray, mass: np.ndarray, factor: np.ndarray) -> np.ndarray:
    """L* X L^-* of a block X of A, through M X, which is a stiffness or a damping and symmetric if X comes from one."""
    force = mass @ block
    force[np.abs(force) <= 8.0 * np.finfo(float).eps * (np.abs(mass) @ np.abs(block))] = 0.0  # sums that cancel
    half = scipy.linalg.solve_triangular(factor, force, lower=True)
    return scipy.linalg.solve_triangular(factor, half.T, lower=True).T


def _eigen(matrix: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Eigenvalues and eigenvectors of a matrix, without balancing. Zero eigenvalues are exact, one per basis vector of
    the null space; the others are those of the rest of the matrix.
    """
    null, space = _vanishing(matrix, weights)
    rest = scipy.linalg.qr(space)[0][:, space.shape[1] :]
    inner = rest.T @ matrix @ rest
    if np.abs(inner - inner.T).max(initial=0.0) <= SYMMETRIC * np.abs(inner).max(initial=0.0):
        values, vectors = np.linalg.eigh(0.5 * (inner + inner.T))
    else:
        values, vectors = scipy.linalg.eig(inner, np.eye(len(inner)))  # the QZ algorithm scales nothing
    # The part of each vector within the space: (value - N* A N) u = N* A (the other part).
    along, others = space.T @ matrix @ space, rest @ vectors
    shifted = values[:, None, None] * np.eye(len(along)) - along
    within = np.linalg.solve(shifted, (space.T @ matrix @ others).T[..., None])[..., 0].T
    return np.concatenate([np.zeros(null.shape[1]), values]), np.concatenate([null, others + space @ within], axis=1)


def _vanishing(matrix: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Orthonormal bases of the kernel of the matrix and of the kernel of its high powers: displacements at which a free
    mechanism stays, and its uniform motions. Columns are compared by their weights.
    """

    def null(of: Float64Array) -> Float64Array:
        _, sizes, right = np.linalg.svd(of * weights)
        return np.linalg.qr(weights[:, None] * right[sizes <= NONE * sizes[0]].T)[0]

    first = space = null(matrix)
    while True:
        wider = null(matrix - space @ (space.T @ matrix))
        if wider.shape[1] <= space.shape[1]:
            return first, space
        space = wider


def _separated(basis: np.ndarray, units: np.ndarray) -> np.ndarray:
    """A basis of the space in which each vector has one coordinate to itself."""
    if not basis.shape[1]:
        return basis
    scaled = np.linalg.qr(basis / units[:, None])[0]
    pivots = np.sort(scipy.linalg.qr(scaled.T, pivoting=True, mode="r")[1][: basis.shape[1]])
    return basis @ np.linalg.inv(basis[pivots])


def _remove_round_off(x: float, size: complex) -> float:
    return 0.0 if abs(x) < 1e-12 * abs(size) else x
