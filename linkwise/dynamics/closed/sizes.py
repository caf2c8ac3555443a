"""Lengths of closed mechanisms in units of their loops' sizes, so that millimetres and kilometres are judged alike."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ...compiler.store import kernel_function, stored
from ...mechanics.joints import LENGTH, LoopKind
from ...mechanics.spatial import Matrix3, Vector3
from ...mechanism import Loop, Mechanism
from .. import trees as tree

SAMPLES = 8  # random configurations whose lever arms are measured


class Sizes(NamedTuple):
    """What makes errors and coordinates dimensionless: ``rows * g`` and ``rows[:, None] * G * columns``.

    loops        (number of loops,): the longest lever arm of each loop, in metres; 1 for couplings
    rows         (m,): 1 / size of the loop for lengths, 1 for angles; couplings have the largest ratio 1
    columns      (nv,): the size for lengths, 1 for angles; velocities are ``columns`` times dimensionless ones
    structural   (m,): whether a constraint changes at all when the tree moves; planar loops have some that do not
    noise        dimensionless: what rounding of positions leaves of closed loops
    """

    loops: np.ndarray
    rows: np.ndarray
    columns: np.ndarray
    structural: np.ndarray
    noise: float


def sizes(mech: Mechanism) -> Sizes:
    """The sizes of a mechanism's loops, measured once."""
    return stored(mech.structure, sizes, lambda: _measured(mech.structure))


def _measured(mech: Mechanism) -> Sizes:
    lengths_of_v = lengths_among(mech, "v")
    anywhere, _ = tree.random_state(mech, np.random.default_rng(0), (SAMPLES,))
    angles = np.where(lengths_among(mech, "q"), tree.neutral(mech), anywhere)
    jacobians = kernel_function(mech, "constraint_jacobian", None)(angles)
    loops, rows, columns = np.ones(len(mech.loops)), np.ones(mech.n_constraints), np.zeros(mech.nv)
    extent = _extent(mech)
    for number, loop in enumerate(mech.loops):
        own = jacobians[:, mech.constraint_index(loop.name)]
        if isinstance(loop, Loop):
            metres = _are_lengths(loop.kind)
            loops[number] = np.abs(own[:, metres][..., ~lengths_of_v]).max(initial=0.0) or extent or 1.0
            rows[mech.constraint_index(loop.name)] = np.where(metres, 1.0 / loops[number], 1.0)
            columns = np.where(own.any(axis=(0, 1)), np.maximum(columns, loops[number]), columns)
    columns = np.where(lengths_of_v & (columns > 0.0), columns, 1.0)
    for loop in mech.loops:
        if not isinstance(loop, Loop):  # a coupling, in the units of its joints
            at = mech.constraint_index(loop.name)
            rows[at] = 1.0 / (np.abs(jacobians[:, at] * columns).max() or 1.0)
    noise = 16.0 * np.finfo(float).eps * extent / loops.min(initial=np.inf)
    structural = kernel_function(mech, "constraint_jacobian", None)(anywhere).any(axis=(0, 2))
    return Sizes(loops, rows, columns, structural, noise)


class Units(NamedTuple):
    """Units in which all of a mechanism is searched alike, whatever its own are: a step of 0.05 is one of 0.05 rad, or
    of a twentieth of the mechanism.

    length       the longest lever arm of all loops; without loops, the longest distance that is written down
    velocities   (nv,): the length for lengths, 1 for angles; velocities are ``velocities`` times dimensionless ones
    """

    length: float
    velocities: np.ndarray


def units(mech: Mechanism) -> Units:
    """The units of a mechanism, measured once."""
    return stored(mech.structure, units, lambda: _units(mech.structure))


def _units(mech: Mechanism) -> Units:
    arms = [size for size, loop in zip(sizes(mech).loops, mech.loops, strict=True) if isinstance(loop, Loop)]
    bounds = np.concatenate([mech.q_lower, mech.q_upper])[np.tile(lengths_among(mech, "q"), 2)]
    limits = np.abs(bounds[np.isfinite(bounds)]).max(initial=0.0)
    length = float(max(arms, default=0.0) or max(_extent(mech), limits) or 1.0)
    return Units(length, np.where(lengths_among(mech, "v"), length, 1.0))


def random_configurations(mech: Mechanism, rng: np.random.Generator, count: int) -> np.ndarray:
    """(count, nq): any angles and rotations, and positions up to the size of the mechanism from the neutral ones."""
    q, _ = tree.random_state(mech, rng, (count,))
    size = sizes(mech).loops.max(initial=0.0)
    near = tree.neutral(mech) + size * rng.uniform(-1.0, 1.0, q.shape)
    return np.where(lengths_among(mech, "q"), near, q)


def lengths_among(mech: Mechanism, quantity: str) -> np.ndarray:
    """(nq,) or (nv,): which numbers of "q" or "v" are lengths."""
    measures = (one.of for body in mech.bodies if not body.mimic for one in body.kind.measures(quantity))
    return np.array([of == LENGTH for of in measures], dtype=bool)


def _are_lengths(kind: LoopKind) -> np.ndarray:
    """(n_constraints,): which constraints are in metres: numbers of a closure that change with the position alone, and
    those of velocities."""
    still = Matrix3.from_rows(np.eye(3).tolist())
    here, there = (kind.closure(still, Vector3(*(scale * x for x in (0.3, 0.5, 0.7)))) for scale in (1.0, 2.0))
    found = np.array(here, dtype=float) != np.array(there, dtype=float)
    return np.concatenate([found, np.ones(kind.n_constraints - len(found), dtype=bool)])


def _extent(mech: Mechanism) -> float:
    """The largest distance that is written down between frames on the loops."""
    loops = [loop for loop in mech.loops if isinstance(loop, Loop)]
    positions = [body.position for body in mech.bodies]
    positions += [pose[1] for loop in loops for pose in (loop.pose_a, loop.pose_b)]
    positions += [mech.frame(link).position for loop in loops for link in (loop.link_a, loop.link_b)]
    return max((float(np.linalg.norm(position)) for position in positions), default=0.0)
