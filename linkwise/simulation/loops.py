"""What keeps a motion on its manifold: loops closed, quaternions of unit length, energy kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics import closed
from ..dynamics import trees as tree
from ..dynamics.derivatives import forward_dynamics_derivatives
from ..linearization import rate_jacobian
from ..mechanism import Mechanism

NEAR = 0.02  # of the usual: from here on states are not projected
NEARLY_CLOSED = 1e-6  # metres or radians, times the usual nearness, which goes with the size of a mechanism

STABILIZATIONS = ("projection", "baumgarte", None)


@dataclass(frozen=True)
class Manifold:
    """Accelerations that respect loops, and the way back to them.

    formulation      method of ``closed.forward_dynamics``
    baumgarte        (alpha, beta) of Baumgarte's terms (spencer2004 3.8), or None
    projects         whether loops and velocities are projected after steps (3.1.3)
    tolerance        to which loops are then closed
    rank             (...): largest number of independent constraints
    usual_nearness   smallest over largest singular value of G away from singular positions
    energy           (...): kinetic and potential energy to be kept by projection, or None
    leaving          (...): which states are still near a singular position they started from, kept up to date; or None
    """

    mech: Mechanism
    formulation: str = "svd"
    baumgarte: tuple[float, float] | None = None
    projects: bool = False
    tolerance: float = 1e-11
    rank: Any = None
    usual_nearness: float = 1.0
    energy: Any = None
    leaving: np.ndarray | None = None

    @property
    def corrects(self) -> bool:
        """Whether a state may be off by more than what the integrator is responsible for."""
        return self.projects or not self.mech.rates_are_velocities

    def corrected(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state moved the least that closes loops, stops slip, restores the energy and makes quaternions unit."""
        if not self.projects:
            return self.with_unit_quaternions(q), v
        rest = ~self._left_alone(q)
        if rest.all():
            return closed.project(self.mech, q, v, self.energy, tolerance=self.tolerance, rank=self.rank)
        q = np.array(self.with_unit_quaternions(q))
        v = np.array(v) if self.energy is None else self._at_energy(q, v)
        if rest.any():
            energy, rank = (None if x is None else x[rest] for x in (self.energy, self.rank))
            q[rest], v[rest] = closed.project(self.mech, q[rest], v[rest], energy, tolerance=self.tolerance, rank=rank)
        return q, v

    def _at_energy(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The velocities made faster or slower, by little, so that the energy is kept."""
        kinetic, missing = tree.kinetic_energy(self.mech, q, v), self.energy - tree.potential_energy(self.mech, q)
        ratio = np.divide(missing, kinetic, out=np.ones_like(kinetic), where=4.0 * np.abs(missing - kinetic) < kinetic)
        return v * np.sqrt(ratio)[..., None]

    def _left_alone(self, q: np.ndarray) -> np.ndarray:
        """(...): whether a state is still so near the singular position where it started, and its loops so nearly
        closed, that it is better not projected: an error g would move it by g / sigma, sigma the smallest singular
        value of G, and not the way it came."""
        if self.leaving is None or not self.leaving.any():
            return np.zeros(q.shape[:-1], dtype=bool)
        near = closed.nearness(self.mech, q, self.rank) < NEAR * self.usual_nearness
        np.logical_and(self.leaving, near, out=self.leaving)
        gaps = np.abs(closed.position_error(self.mech, q)).max(axis=-1, initial=0.0)
        return self.leaving & (gaps < NEARLY_CLOSED * self.usual_nearness)

    def with_unit_quaternions(self, q: np.ndarray) -> np.ndarray:
        return q if self.mech.rates_are_velocities else tree.integrate(self.mech, q, np.zeros(self.mech.nv), 0.0)

    def accelerations(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None) -> np.ndarray:
        """(..., nv) under all joint forces ``tau`` and external ``wrenches`` (..., n_links, 6)."""
        if not self.mech.loops:
            return tree.forward_dynamics(self.mech, q, v, tau, wrenches)
        # Stages of a step may leave the manifold: what is projected, pulled back or left to drift is up to the caller.
        return closed.motion_under(self.mech, q, v, tau, self.formulation, self.baumgarte, wrenches, rank=self.rank)[1]

    def derivatives(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(d_q, d_v, d_tau), each (nv, nv), of the accelerations of one state; of closed mechanisms by changes of q and
        v along the constraint manifold, others projected onto it."""
        if not self.mech.loops:
            return forward_dynamics_derivatives(self.mech, q, v, tau, wrenches)
        n = self.mech.nv
        whole = rate_jacobian(self.mech, q, v, tau, wrenches=wrenches, rank=self.rank)
        forced = self.accelerations(q, v, np.vstack([tau + np.eye(n), tau]), wrenches)  # linear in tau
        return whole[n:, :n], whole[n:, n:], (forced[:-1] - forced[-1]).T
