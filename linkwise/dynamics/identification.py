"""Inertial parameters: regressors, and the combinations of masses that torques determine.

The ten parameters of a link are those of the link with everything welded to it, about the origin of its frame and along
its axes, in the order [m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz] (mx is mass times the x coordinate of its centre);
the links follow each other in the order of ``mech.link_names``.  Pinocchio has the same order.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, register
from ..compiler.store import kernel_function
from ..constraints.accelerations import null_space, terms
from ..constraints.assembly import assemble
from ..constraints.decomposition import times
from ..constraints.equations import decomposed, decomposed_jacobian
from ..constraints.loop_closure import Goal, close_loops
from ..constraints.redundancy import loop_equations
from ..constraints.tolerances import LOOPS
from ..display import mimebundle
from ..mechanism import Mechanism, require_mechanism
from ..mechanism.inertial_parameters import NAMES
from ..mechanism.inertial_parameters import inertial_parameters as _parameters_of
from ..mechanism.scales import scales
from .states import Float64Array, checked_arrays
from .trees import difference, integrate, random_state

PER_LINK = len(NAMES)
KEEPING_ORDER = (*range(1, PER_LINK), 0)  # of a link's parameters: the mass last, as inner links can absorb it
POWERS_OF_LENGTH = (0, 1, 1, 1, 2, 2, 2, 2, 2, 2)  # in the units of a link's parameters
STEP, STEPS = 0.15, 8  # rad, sizes of loops: from the initial configuration of a constrained mechanism to others
EXPLAINED = 1e-8  # remainder of a unit column: less is round-off


def regressor(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike, independent: Any = None) -> Float64Array:
    """(nv, 10 n_links): the matrix Y with ``inverse_dynamics = Y @ inertial_parameters + rotor_inertias * a`` of the
    spanning tree, gravity included; it depends on joints, poses and gravity, not on masses.

    With constraints M a + h = tau - G* lambda, so that Y p + rotor_inertias * a = tau - G* lambda.

    independent   names of joints and coordinates, as for ``constraints.null_space``, whose K has G K = 0: the result is
                  K* Y, (p, 10 n_links), free of constraint forces: K* tau = K* Y p + K* (rotor_inertias * a).  If the
                  actuated joints are the independent ones, K* tau are their torques
    """
    matrix: Float64Array = kernel_function(mech, "regressor")(q, v, a)
    if independent is None:
        return matrix
    return np.swapaxes(null_space(mech, q, independent=independent), -1, -2) @ matrix


register(regressor, ArrayFunction("regressor"))


def inertial_parameters(mech: Mechanism) -> Float64Array:
    """(10 n_links,): the mechanism's inertial parameters, in the order of the columns of ``regressor``;
    ``mech.parameters.with_inertial`` replaces them."""
    require_mechanism(mech)
    return _parameters_of(mech)


def rotor_inertias(mech: Mechanism) -> Float64Array:
    """(nv,): armature by coordinate of v; the armature of a mimic joint, times the ratio squared, counts at its
    leader."""
    require_mechanism(mech)
    total = np.zeros(mech.nv)
    for body in mech.bodies:
        entry = mech.coordinates.place(body.joint)
        total[entry.v_index] += np.array(body.armature) * entry.ratio**2
    return total


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Base parameters: the minimal set of combinations of inertial parameters that torques depend on.

    columns           (r,) the parameters that the combinations are named after, ascending
    grouping          (r, 10 n_links): ``grouping @ inertial_parameters`` are their values; the identity in ``columns``
    parameter_names   names of all parameters, such as "link2.Izz"

    With Y from ``regressor``, ``Y[..., columns] @ (grouping @ p)`` is ``Y @ p`` for every p and every state.
    """

    columns: np.ndarray
    grouping: np.ndarray
    parameter_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """(r,): names of the parameters that the combinations are named after."""
        return tuple(self.parameter_names[k] for k in self.columns)

    def __str__(self) -> str:
        """One combination per line, as a weighted sum."""
        lines = []
        for column, row in zip(self.columns, self.grouping, strict=True):
            others = [k for k in np.flatnonzero(row) if k != column]
            terms = [self.parameter_names[column], *(f"{row[k]:+.6g} {self.parameter_names[k]}" for k in others)]
            lines.append(" ".join(terms))
        return "\n".join(lines)

    _repr_mimebundle_ = mimebundle


def base_parameters(mech: Mechanism, seed: int = 0, q: ArrayLike | None = None) -> BaseParameters:
    """The combinations of inertial parameters that joint forces depend on, from regressors at random states.

    From the base outward, a parameter is kept if the ones kept before do not explain it: combinations shared by outer
    and inner links count with the inner link.  This is the numerical
    form (Gautier, 1991) of the rules of Mayeda, Yoshida and Osuka (1990), for any joints.

    With constraints these are the combinations that K* Y depends on, K a basis of the motions that the constraints
    allow: the parameters that torques of actuated joints identify, for any independent coordinates.  They depend on the
    branch: a parallelogram has fewer than the same four bars crossed.  Prescribed motions may have any position,
    velocity and acceleration.

    q   (nq,): a regular configuration of a constrained mechanism on its branch, around which states are drawn; by
        default ``mech.initial``, assembled
    """
    require_mechanism(mech)
    start = mech.initial if q is None else checked_arrays(mech, q=q)[0]
    size = PER_LINK * mech.n_links
    rng = np.random.default_rng(seed)
    unit = scales(mech)
    rate = 1.0 / unit.time_of(np.zeros(mech.nv))
    if mech.loops:
        at, v, a, basis = _constrained_motions(mech, start, rng, size, rate)
    else:
        at, v, a, basis = _tree_motions(mech, rng, size, rate)
    # Dimensionless: joint forces over those of the mechanism's mass, length and time, parameters likewise.
    each = unit.mass * unit.length ** np.array(POWERS_OF_LENGTH)
    forces = regressor(mech, at, v, a) / (unit.mass * (unit.length * rate) ** 2)
    forces = basis[..., None] * forces if basis.ndim == 1 else np.swapaxes(basis, -1, -2) @ forces
    stacked = (forces * np.tile(each, mech.n_links)).reshape(v.size, size)
    lengths = np.linalg.norm(stacked, axis=0)
    felt = lengths > EXPLAINED * lengths.max(initial=0.0)
    units = np.where(felt, stacked, 0.0) / np.where(felt, lengths, 1.0)
    kept = _independent(units)
    weights = np.linalg.lstsq(units[:, kept], units, rcond=None)[0]
    weights[np.abs(weights) < EXPLAINED] = 0.0
    weights[:, kept] = np.eye(len(kept))
    names = tuple(f"{link}.{parameter}" for link in mech.link_names for parameter in NAMES)
    sizes = lengths / np.tile(each, mech.n_links)  # of the columns of the regressor
    return BaseParameters(np.array(kept, dtype=int), weights * sizes / sizes[kept, None], names)


Motions = tuple[Float64Array, Float64Array, Float64Array, Float64Array]


def _tree_motions(mech: Mechanism, rng: np.random.Generator, size: int, rate: float) -> Motions:
    """q, v, a of random states with more than ``size`` velocities in total, and the units of velocities (nv,)."""
    unit = scales(mech)
    q, v = random_state(mech, rng, (4 + 2 * size // max(mech.nv, 1),))
    return q * unit.of_q, v * unit.of_v * rate, rng.normal(size=v.shape) * unit.of_v * rate**2, unit.of_v


def _constrained_motions(
    mech: Mechanism, start: Float64Array, rng: np.random.Generator, size: int, rate: float
) -> Motions:
    """q, v, a of random states around ``start`` that keep all constraints but prescribed motions, more than
    ``size`` independent velocities, and (..., nv, nv): K, orthonormal in dimensionless coordinates, filled up with
    columns of zeros."""
    mech = mech.constraints.structure
    free = mech.constraints.without_drives()
    start = assemble(free, start) if free.loops else start
    dofs = mech.nv - int(decomposed(mech, start).rank)
    q = _configurations(free, start, rng, 4 + 2 * size // max(dofs, 1))
    at = terms(free, q, np.zeros(mech.nv))
    svd = decomposed_jacobian(free, at.jacobian)
    v, a = (times(svd.null, rng.normal(size=(len(q), mech.nv))) * power for power in (rate, rate**2))
    a = a - svd.solve(terms(free, q, v).bias)
    return q, v, a, decomposed(mech, q).null


def _configurations(mech: Mechanism, start: Float64Array, rng: np.random.Generator, count: int) -> Float64Array:
    """(count, nq): assembled configurations on the branch of ``start``, reached by small steps in random directions."""
    equations = loop_equations(mech)
    columns = equations.sizes.columns
    q = np.tile(start, (count, 1))
    directions = rng.normal(size=(count, mech.nv)) * columns
    largest = STEP * rng.uniform(0.1, 1.0, (count, 1))
    for _ in range(STEPS):
        svd = decomposed(mech, q)
        steps = times(svd.null, times(svd.null_rows, directions))
        steps *= largest / np.maximum(np.abs(steps / columns).max(axis=-1, initial=0.0, keepdims=True), largest)
        moved = integrate(mech, q, steps, 1.0)
        moved = close_loops(equations, moved, Goal(30))
        near = np.abs(difference(mech, q, moved) / columns).max(axis=-1, initial=0.0) < 2.0 * STEP
        q = np.where((near & equations.is_closed(moved, LOOPS.closed))[:, None], moved, q)
    return q


def _independent(units: np.ndarray) -> list[int]:
    """Indices of the kept columns, ascending: link by link, the next one whose unexplained part is not much smaller
    than the largest of that link.
    """
    basis = np.zeros((len(units), 0))
    kept = []
    for start in range(0, units.shape[1], PER_LINK):
        rest = units[:, start : start + PER_LINK].copy()
        for _ in range(2):  # the second time removes the round-off of the first
            rest -= basis @ (basis.T @ rest)
        while True:
            lengths = np.linalg.norm(rest, axis=0)
            if lengths.max() < EXPLAINED:
                break
            k = next(k for k in KEEPING_ORDER if lengths[k] >= 0.5 * lengths.max())
            direction = rest[:, k] / lengths[k]
            direction -= basis @ (basis.T @ direction)
            direction /= np.linalg.norm(direction)
            basis = np.column_stack([basis, direction])
            rest -= np.outer(direction, direction @ rest)
            rest[:, k] = 0.0
            kept.append(start + k)
    return sorted(kept)
