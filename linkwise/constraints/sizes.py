"""Dimensionless constraints and coordinates: lengths in units of the loops' sizes.

Metres and radians do not compare: ranks, pivots, least norms and tolerances of a constraint Jacobian G mean the same in
metres, millimetres and kilometres only if its rows and columns are dimensionless.  All decisions about constraints are
made about ``rows[:, None] * G * columns``, in NumPy and in compiled kernels.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from ..compiler.store import float64_function, stored
from ..dynamics import trees as tree
from ..mechanics.jet import jet, parts
from ..mechanics.joints import LENGTH, LoopKind
from ..mechanics.links.constraint_units import ConstraintUnits
from ..mechanics.spatial import Matrix3, Vector3
from ..mechanism import Loop, Mechanism

SAMPLES = 8  # random configurations whose lever arms are measured
NO_ARM = 1e-9  # of the longest offset: shorter lever arms are rounding
CLASS = 4.0  # ratio of sizes with one unit for pivots ...
ASIDE = 0.041  # ... offset of the class bounds, as a power of CLASS, away from common ratios


class Sizes(NamedTuple):
    """Factors that make errors, coordinates and rates dimensionless: ``rows * g``, ``rows[:, None] * G * columns``,
    ``v / columns``.

    loops        (number of loops,): the longest lever arm of each loop, in metres; the mechanism's size for couplings
    rows         (m,): 1 / size of the loop for lengths, 1 for angles; couplings have the largest ratio 1
    multipliers  (m,): as ``rows`` with the mechanism's size for all loops: multipliers divided by these are moments
    columns      (nv,): the size for lengths, 1 for angles; velocities are ``columns`` times dimensionless ones
    structural   (m,): whether a constraint changes when the tree moves; planar loops have some constant ones
    noise        dimensionless error of closed loops by rounding of positions
    rate         per second, of a fall through the mechanism's size: threshold of rest; 0 without gravity
    """

    loops: np.ndarray
    rows: np.ndarray
    multipliers: np.ndarray
    columns: np.ndarray
    structural: np.ndarray
    noise: float
    rate: float

    def dimensionless(self, jacobian: np.ndarray) -> np.ndarray:
        """(..., m, nv): the constraint Jacobian for dimensionless constraints and velocities."""
        return self.rows[:, None] * jacobian * self.columns

    @property
    def has_lengths(self) -> bool:
        """Whether some coordinates are lengths."""
        return bool((self.columns != 1.0).any())


def sizes(mech: Mechanism) -> Sizes:
    """The sizes of a mechanism's loops, measured once."""
    return stored(mech.constraints.structure, sizes, lambda: _measured(mech.constraints.structure))


def _measured(mech: Mechanism) -> Sizes:
    length = _length(mech)
    rate = math.sqrt(float(np.linalg.norm(mech.gravity)) / length)
    lengths_of_v, lengths_of_q = lengths_among(mech, "v"), lengths_among(mech, "q")
    if not mech.loops:
        none = np.zeros(0)
        return Sizes(none, none, none, np.where(lengths_of_v, length, 1.0), none.astype(bool), 0.0, rate)
    anywhere, _ = tree.random_state(mech, np.random.default_rng(0), (SAMPLES,))
    anywhere = np.where(lengths_of_q, tree.neutral(mech) + length * anywhere, anywhere)
    jacobian = float64_function(mech, "constraint_jacobian")
    jacobians = jacobian(np.where(lengths_of_q, tree.neutral(mech), anywhere))
    loops, columns = np.full(len(mech.loops), length), np.zeros(mech.nv)
    rows, multipliers = np.ones((2, mech.n_constraints))
    for number, loop in enumerate(mech.loops):
        if isinstance(loop, Loop):
            at, are_lengths = mech.constraints.rows(loop.name), _are_lengths(loop.kind)
            arm = float(np.abs(jacobians[:, at][:, are_lengths][..., ~lengths_of_v]).max(initial=0.0))
            loops[number] = arm if arm > NO_ARM * length else length
            rows[at], multipliers[at] = (np.where(are_lengths, 1.0 / size, 1.0) for size in (loops[number], length))
            columns = np.where(jacobians[:, at].any(axis=(0, 1)), np.maximum(columns, loops[number]), columns)
    columns = np.where(lengths_of_v, np.where(columns > 0.0, columns, length), 1.0)
    for loop in mech.loops:
        if not isinstance(loop, Loop):  # a coupling, in the units of its joints
            at = mech.constraints.rows(loop.name)
            rows[at] = multipliers[at] = 1.0 / (np.abs(jacobians[:, at] * columns).max() or 1.0)
    noise = 16.0 * np.finfo(float).eps * _longest(_offsets(mech)) / loops.min(initial=np.inf)
    return Sizes(loops, rows, multipliers, columns, jacobian(anywhere).any(axis=(0, 2)), noise, rate)


def constraint_units(mech: Mechanism) -> ConstraintUnits:
    """Units of constraints, velocities and multipliers for compiled kernels, from the sizes of the loops."""
    scale = sizes(mech)
    arrays = (scale.rows, scale.columns, scale.multipliers, units(mech).velocities)
    rows, columns, multipliers, forces = (tuple(x.tolist()) for x in arrays)
    return ConstraintUnits(rows, columns, multipliers, forces, scale.rate)


def units_of_pivots(mech: Mechanism) -> ConstraintUnits:
    """Units for kernels that choose pivots: ``constraint_units``, with rows rounded to powers of ``CLASS`` times the
    unit of the largest loop.  Loops of about the same size then have the same unit, without multiplications."""
    base, largest = constraint_units(mech), units(mech).length
    rows = (
        row if row == 1.0 else CLASS ** round(math.log(row * largest, CLASS) + ASIDE) / largest for row in base.rows
    )
    return replace(base, rows=tuple(rows))


class Units(NamedTuple):
    """Units for searches: a dimensionless step of 0.05 is 0.05 rad, or a twentieth of the mechanism.

    length       the longest lever arm of all loops; without loops, the longest offset in the data
    velocities   (nv,): the length for lengths, 1 for angles; velocities are ``velocities`` times dimensionless ones
    positions    (nq,): the length for lengths, 1 for others
    """

    length: float
    velocities: np.ndarray
    positions: np.ndarray


def units(mech: Mechanism) -> Units:
    """The units of a mechanism, measured once."""
    return stored(mech.constraints.structure, units, lambda: _units(mech.constraints.structure))


def _units(mech: Mechanism) -> Units:
    arms = [size for size, loop in zip(sizes(mech).loops, mech.loops, strict=True) if isinstance(loop, Loop)]
    length = float(max(arms, default=0.0)) or _length(mech)
    return Units(length, *(np.where(lengths_among(mech, quantity), length, 1.0) for quantity in ("v", "q")))


def random_configurations(mech: Mechanism, rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, nq): any angles and rotations, and positions up to the size of the mechanism from the neutral ones."""
    q, _ = tree.random_state(mech, rng, (count,))
    near = tree.neutral(mech) + units(mech).length * rng.uniform(-1.0, 1.0, q.shape)
    return np.where(lengths_among(mech, "q"), near, q)


def lengths_among(mech: Mechanism, quantity: str) -> np.ndarray:
    """(nq,) or (nv,): whether entries of "q" or "v" are lengths."""
    measures = (measure.of for body in mech.bodies if not body.mimic for measure in body.kind.measures(quantity))
    return np.array([of == LENGTH for of in measures], dtype=bool)


def _are_lengths(kind: LoopKind) -> np.ndarray:
    """(n_constraints,): whether constraints are in metres: entries of a closure that depend on the position, and
    constraints on velocities."""
    still = Matrix3.from_rows(np.eye(3).tolist())
    closure = kind.closure(still, Vector3(*(jet(x, x) for x in (0.3, 0.5, 0.7))))
    metres = np.array([parts(x)[1] != 0.0 for x in closure], dtype=bool)
    return np.concatenate([metres, np.ones(kind.n_constraints - len(metres), dtype=bool)])


# -- the size of a mechanism ------------------------------------------------------------------------------


def _length(mech: Mechanism) -> float:
    """The longest offset in the data; without any, the largest distance of a mass from its link origin, the longest
    travel of a sliding joint, or 1."""
    measures = (_offsets, _reaches, _travels)
    return next((length for measure in measures if (length := _longest(measure(mech)))), 1.0)


def _longest(lengths: Iterator[float]) -> float:
    return max((x for x in lengths if math.isfinite(x)), default=0.0)


def _offsets(mech: Mechanism) -> Iterator[float]:
    """Distances between frames on the loops."""
    loops = [loop for loop in mech.loops if isinstance(loop, Loop)]
    positions = [body.position for body in mech.bodies]
    positions += [pose[1] for loop in loops for pose in (loop.pose_a, loop.pose_b)]
    positions += [mech.frame(link).position for loop in loops for link in (loop.link_a, loop.link_b)]
    return (float(np.linalg.norm(position)) for position in positions)


def _reaches(mech: Mechanism) -> Iterator[float]:
    """Distances of links to their mass centres, and radii of gyration about these."""
    massive = (body for body in mech.bodies if body.mass > 0.0)
    return (
        float(np.linalg.norm(body.com)) + math.sqrt(0.5 * max(float(np.trace(body.inertia)), 0.0) / body.mass)
        for body in massive
    )


def _travels(mech: Mechanism) -> Iterator[float]:
    bounds = np.concatenate([mech.limits.lower, mech.limits.upper])[np.tile(lengths_among(mech, "q"), 2)]
    return (abs(bound) for bound in bounds.tolist())
