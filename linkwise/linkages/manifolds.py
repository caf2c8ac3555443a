"""The constraint manifold of a mechanism with some coordinates locked: tangent spaces, and projection back onto it."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal

import numpy as np

from ..constraints.assembly import AssemblyError, assemble
from ..constraints.decomposition import Decomposition, decompose
from ..constraints.equations import (
    moved_by,
    one_state,
    position_error,
    refuse_structure,
    require_finite,
    require_holonomic,
)
from ..constraints.idle_motions import hint
from ..constraints.named_coordinates import NamedCoordinate, named_coordinate, velocity_map, wrapped
from ..constraints.redundancy import closable_error, closable_jacobian
from ..constraints.sizes import Sizes, Units, sizes, units
from ..constraints.tolerances import LOOPS
from ..dynamics import trees as tree
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import names_of

Kind = Literal["constraint", "input", "output"]
TURN = 2.0 * np.pi
ROUND_OFF = LOOPS.aim * LOOPS.closed
FINEST = 1.0 / 8.0  # of the noise of positions: smaller errors cannot be corrected further
ROUNDED = 1e-12  # of the largest singular value: a smaller one is zero up to rounding, and has no sign
NEWTON_STEPS = 12  # a corrector that needs more did not start near
CORRECTED = 0.25  # of a step: the largest correction on the same branch
TRIALS = (1e-2, 3e-2, 0.1)  # dimensionless: random changes of a configuration that show the generic rank


def closed_start(who: str, mech: Mechanism, q: Any, named: Sequence[Sequence[str]] = ()) -> np.ndarray:
    """(nq,): the given configuration, default ``mech.initial``, with its loops closed to rounding. Unknown names in
    ``named`` are reported first.
    """
    for names in named:
        velocity_map(mech, names, "coordinates")
    if q is None:
        return assemble(mech)
    (q,) = one_state(who, mech, q=q)
    require_finite(mech, q)
    if np.linalg.norm(sizes(mech).rows * position_error(mech, q)) > LOOPS.open_by_mistake:
        raise MechanismError(
            f"{who}: loops of mechanism {mech.name!r} are open at q by {np.abs(position_error(mech, q)).max():.3g}, so "
            "there is no motion to follow: use constraints.assemble first"
        )
    return assemble(mech, q, tries=1)


@dataclass(frozen=True, eq=False)
class Manifold:
    """Configurations with closed loops and some coordinates locked; made by ``constraint_manifold``.

    Directions of motion, equations and locked coordinates are dimensionless (``units``), so that decisions do not
    depend on the unit of length; configurations q are not scaled.

    free      (nv,): which velocities are not those of locked joints
    held      locked coordinates other than whole joints
    rank      of the equations at regular configurations
    limited   whether joints with limits count turns, so that they do not come back after a full turn
    """

    mech: Mechanism
    free: np.ndarray
    held: tuple[NamedCoordinate, ...]
    rank: int
    limited: bool = False

    @cached_property
    def columns(self) -> np.ndarray:
        return np.flatnonzero(self.free)

    @cached_property
    def units(self) -> Units:
        return units(self.mech)

    @cached_property
    def sizes(self) -> Sizes:
        return sizes(self.mech)

    @property
    def dof(self) -> int:
        """The dimension of the family."""
        return len(self.columns) - self.rank

    def values(self, q: np.ndarray) -> np.ndarray:
        """(..., k): values of the locked coordinates."""
        return (
            np.stack([coordinate.value(q) for coordinate in self.held], axis=-1)
            if self.held
            else np.zeros((*q.shape[:-1], 0))
        )

    def residual(self, q: np.ndarray, values: np.ndarray) -> np.ndarray:
        error = self.sizes.rows * closable_error(self.mech, q)
        off = self.values(q) - values
        wraps = np.array([coordinate.is_wrapped for coordinate in self.held], dtype=bool)
        return np.concatenate([error, np.where(wraps, wrapped(off), off) if wraps.any() else off], axis=-1)

    def jacobian(self, q: np.ndarray) -> np.ndarray:
        """(..., m + k, n): by the free velocities."""
        loops = self.sizes.rows[:, None] * closable_jacobian(self.mech, q) * self.units.velocities
        rows = [loops, *(coordinate.rows(q)[..., None, :] for coordinate in self.held)]
        return np.concatenate(rows, axis=-2)[..., self.columns]

    def moved(self, q: np.ndarray, direction: np.ndarray, distance: Any = 1.0) -> np.ndarray:
        """(..., nq): from q along a direction (..., nv)."""
        return tree.integrate(self.mech, q, self.units.velocities * direction, distance)

    def difference(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """(..., nv): the direction with ``moved(start, direction) = end``."""
        return tree.difference(self.mech, start, end) / self.units.velocities

    def conditioning(self, q: np.ndarray) -> np.ndarray:
        """(...): the ratio of the smallest to the largest singular value of the constraint Jacobian, among those that
        are generically nonzero; zero in singular positions.
        """
        return decompose(self.jacobian(q)).conditioning(self.rank)

    def decomposed(self, q: np.ndarray) -> Decomposition:
        return decompose(self.jacobian(q), rank=self.rank)

    def basis(self, q: np.ndarray) -> np.ndarray:
        """(..., nv, dof): an orthonormal basis of the tangent space; in a singular position one of its limits."""
        basis = np.zeros((*q.shape[:-1], self.mech.nv, self.dof))
        basis[..., self.columns, :] = decompose(self.jacobian(q)).v[..., self.rank :]
        return basis

    def nearest_motion(self, q: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """(nv,): the possible motion nearest to ``direction``, of unit length; one state. In a singular position, with
        several possible motions, it continues straight on.
        """
        null = self.decomposed(q).null
        motion = np.zeros(self.mech.nv)
        motion[self.columns] = null @ (null.T @ direction[self.columns])
        return motion / max(float(np.linalg.norm(motion)), np.finfo(float).tiny)

    def corrected(self, q: np.ndarray, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Project q (..., nq) onto the manifold with locked coordinates at ``values`` (..., k) by minimum-norm Newton
        steps while the error decreases. Returns the configurations and which converged.
        """
        shape = q.shape
        q = q.reshape(-1, shape[-1]).copy()
        values = np.broadcast_to(values, (*shape[:-1], values.shape[-1])).reshape(len(q), values.shape[-1])
        noise = self.sizes.noise
        closed, aim = max(LOOPS.closed, noise), max(ROUND_OFF, FINEST * noise)
        error = self.residual(q, values)
        size = np.linalg.norm(error, axis=-1)
        active = np.flatnonzero(size > aim)
        for _ in range(NEWTON_STEPS):
            if not len(active):
                break
            change = np.zeros((len(active), self.mech.nv))
            change[:, self.columns] = -self.decomposed(q[active]).solve(error[active])
            moved = self.moved(q[active], change)
            error_there = self.residual(moved, values[active])
            size_there = np.linalg.norm(error_there, axis=-1)
            better = size_there < np.where(size[active] <= closed, 0.5, 1.0) * size[active]
            active = active[better]
            q[active], error[active], size[active] = moved[better], error_there[better], size_there[better]
            active = active[size[active] > aim]
        return q.reshape(shape), (size <= closed).reshape(shape[:-1])

    def step_along(
        self, q: np.ndarray, tangent: np.ndarray, distance: float, values: np.ndarray
    ) -> tuple[np.ndarray, bool]:
        """The configuration next to the point at ``distance`` along the tangent at q (nq,), and whether it is certainly
        on the same branch: its correction is then of second order.
        """
        guess = self.moved(q, tangent, distance)
        there, closed = self.corrected(guess, values)
        correction = np.linalg.norm(self.difference(guess, there))
        return there, bool(closed) and bool(correction <= CORRECTED * abs(distance))

    def shortest(self, start: np.ndarray, end: np.ndarray) -> np.ndarray:
        """(..., nv): from one configuration to another, without whole turns."""
        way = self.difference(start, end)
        return np.where(self.periodic, way - TURN * np.round(way / TURN), way)

    @cached_property
    def periodic(self) -> np.ndarray:
        """(nv,): coordinates that may grow by a full turn while every link keeps its pose."""
        mech, is_periodic = self.mech, np.zeros(self.mech.nv, dtype=bool)
        q, metres = tree.neutral(mech), np.array([1.0, 1.0, 1.0, self.units.length])
        poses = tree.link_poses(mech, q) / metres
        for body in mech.bodies:
            if body.nq and body.kind.rates_are_velocities:
                for k in range(body.nv):
                    turned = q.copy()
                    turned[mech.q_index(body.joint).start + k] += TURN
                    same = np.allclose(tree.link_poses(mech, turned) / metres, poses, rtol=0.0, atol=1e-9)
                    is_periodic[mech.v_index(body.joint).start + k] = same
            if (
                self.limited
                and np.isfinite([*mech.limits.lower[at := mech.q_index(body.joint)], *mech.limits.upper[at]]).any()
            ):
                is_periodic[mech.v_index(body.joint)] = False
        return is_periodic


def constraint_manifold(mech: Mechanism, q: np.ndarray, hold: Sequence[str]) -> Manifold:
    """The constraint manifold through q with the named coordinates locked; naming a joint locks all its coordinates."""
    require_holonomic("a range or workspace", mech)
    hold = names_of(hold)
    joints = [name for name in hold if name in mech.joint_names]
    held = tuple(
        named_coordinate(mech, name).dimensionless(units(mech)) for name in hold if name not in mech.joint_names
    )
    free = np.ones(mech.nv, dtype=bool)
    free[moved_by(mech, joints, "hold")] = False
    manifold = Manifold(mech, free, held, int(free.sum()))
    rng, near = np.random.default_rng(0), [q]
    for size in TRIALS:
        with contextlib.suppress(AssemblyError):  # it need not close there
            guess = manifold.moved(q, size * free * rng.normal(size=mech.nv))
            near.append(assemble(mech, guess, hold=joints, tries=1))
    manifold = Manifold(mech, free, held, max(int(manifold.decomposed(nearby).rank) for nearby in near))
    if not manifold.dof and not hold:
        refuse_structure(mech)
    return manifold


def require_dof(who: str, manifold: Manifold, q: np.ndarray, hold: Sequence[str], dof: int, instead: str = "") -> None:
    """Raise if the manifold through q has another dimension than ``dof``."""
    if manifold.dof == dof:
        return
    surplus = manifold.dof - dof
    advice = f"hold {-surplus} fewer"
    if surplus > 0:
        advice = f"hold {surplus} more (hold=...){instead}{hint(manifold.mech, q)}"
    raise MechanismError(
        f"{who} needs motions of {dof} degree{'s' * (dof != 1)} of freedom, but mechanism {manifold.mech.name!r} has "
        f"{manifold.dof}{describe_hold(hold)}: {advice}"
    )


def describe_hold(hold: Sequence[str]) -> str:
    """ " while 'a', 'b' stand still" for messages; empty without names."""
    return f" while {', '.join(map(repr, names_of(hold)))} stand still" if len(hold) else ""


# -- singularity ----------------------------------------------------------------------------------------------


class Measure:
    """A signed measure that vanishes in singular positions: the smallest singular value of rows N, with the sign of
    det N, where N acts on a null-space basis of the loops. It is continuous along a motion if the basis is. Values
    within rounding are set to zero, as their sign would be noise.
    """

    def __init__(self, kind: Kind, names: Sequence[str], manifold: Manifold):
        noun = f"{kind}s"
        count, self.rows = velocity_map(manifold.mech, names, noun)
        self.kind = kind
        if count != manifold.dof:
            raise MechanismError(
                f"mechanism {manifold.mech.name!r} has {manifold.dof} degree{'s' * (manifold.dof != 1)} of freedom, "
                f"but {noun} name {count} coordinate{'s' * (count != 1)}: name as many as there are degrees of freedom"
            )

    def __call__(self, q: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """(...): at q (..., nq) with the basis (..., nv, dof)."""
        matrix = self.rows(q) @ basis
        s = np.linalg.svd(matrix, compute_uv=False)
        least = np.where(s[..., -1] > ROUNDED * s[..., 0], s[..., -1], 0.0)
        return np.where(np.linalg.det(matrix) < 0.0, -least, least)


def measures(
    manifold: Manifold, inputs: Sequence[str], outputs: Sequence[str], hold: Sequence[str] = ()
) -> list[Measure]:
    """Measures of the inputs and of the outputs, if any. Locked coordinates count as inputs and outputs if fewer names
    than degrees of freedom are left.
    """
    named: list[tuple[Kind, list[str]]] = [("input", list(names_of(inputs))), ("output", list(names_of(outputs)))]
    for kind, names in named:
        if names and velocity_map(manifold.mech, names, f"{kind}s")[0] < manifold.dof:
            names += [name for name in names_of(hold) if name not in names]
    return [Measure(kind, names, manifold) for kind, names in named if names]


def same_sense(reference: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """(...): 1 where two bases of neighbouring planes have the same orientation, -1 where they are mirror images."""
    return np.where(np.linalg.det(np.swapaxes(reference, -1, -2) @ basis) < 0.0, -1.0, 1.0)
