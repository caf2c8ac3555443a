"""What keeps a motion on its manifold: loops closed, quaternions of unit length, energy kept."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from .. import closed
from .. import tree_dynamics as tree
from ..derivatives import forward_dynamics_derivatives
from ..linearization import rate_jacobian
from ..mechanism import Mechanism

STABILIZATIONS = ("projection", "baumgarte", None)


@dataclass(frozen=True)
class Manifold:
    """Accelerations that respect loops, and the way back to them.

    formulation   method of ``closed.forward_dynamics``
    baumgarte     (alpha, beta) of Baumgarte's terms (spencer2004 3.8), or None
    projects      whether loops and velocities are projected after steps (3.1.3)
    tolerance     to which loops are then closed
    rank          (...): largest number of independent constraints
    energy        (...): kinetic and potential energy to be kept by projection, or None
    """

    mech: Mechanism
    formulation: str = "svd"
    baumgarte: tuple[float, float] | None = None
    projects: bool = False
    tolerance: float = 1e-11
    rank: Any = None
    energy: Any = None

    @property
    def corrects(self) -> bool:
        """Whether a state may be off by more than what the integrator is responsible for."""
        return self.projects or not self.mech.rates_are_velocities

    def corrected(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state moved the least that closes loops, stops slip, restores the energy and makes quaternions unit."""
        if self.projects:
            return closed.project(self.mech, q, v, self.energy, tolerance=self.tolerance, rank=self.rank)
        return self.with_unit_quaternions(q), v

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
