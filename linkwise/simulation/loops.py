"""What keeps a motion on its manifold: loops closed, quaternions of unit length, energy kept."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ..dynamics import closed
from ..dynamics import trees as tree
from ..dynamics.closed.derivatives import derivatives_at
from ..dynamics.closed.redundancy import redundancy
from ..dynamics.closed.structure import fronts
from ..dynamics.closed.variations import state_of
from ..dynamics.derivatives import forward_dynamics_derivatives
from ..mechanism import Mechanism
from .singular_positions import SingularPositions


@dataclass(frozen=True)
class Manifold:
    """Accelerations that respect loops, and the way back to them.

    singular         what is done near singular positions of the mechanism
    formulation      method of ``forward_dynamics``
    baumgarte        (alpha, beta) of Baumgarte's terms (spencer2004 3.8), or None
    projects         whether loops and velocities are projected after steps (3.1.3)
    tolerance        to which loops are then closed
    energy           (...): kinetic and potential energy to be kept by projection, or None
    """

    singular: SingularPositions
    formulation: str = "elimination"
    baumgarte: tuple[float, float] | None = None
    projects: bool = False
    tolerance: float = closed.LOOPS.closed
    energy: np.ndarray | None = None

    @property
    def mech(self) -> Mechanism:
        return self.singular.mech

    @property
    def corrects(self) -> bool:
        """Whether a state may be off by more than what the integrator is responsible for."""
        return self.projects or not self.mech.rates_are_velocities

    @property
    def is_that_of_compiled_steps(self) -> bool:
        """Whether compiled steps of a closed mechanism stay on it: loops eliminated and projected, all constraints that
        are independent away from singular positions, and nothing else."""
        if not self.projects or self.formulation != "elimination" or self.energy is not None:
            return False
        pivots = fronts(self.mech).pivots
        return (
            self.baumgarte is None and bool(np.all(self.singular.rank == pivots)) and not redundancy(self.mech).blocks
        )

    def of(self, states: np.ndarray | tuple[int, ...]) -> Manifold:
        """That of some states of a batch."""
        energy = None if self.energy is None else self.energy[states]
        return replace(self, singular=self.singular.of(states), energy=energy)

    def corrected(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The state moved the least that closes loops, makes velocities consistent with them, restores the energy and
        makes quaternions unit."""
        return self._projected(q, v, self.energy) if self.projects else (self.with_unit_quaternions(q), v)

    def closed(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same without the energy."""
        return self._projected(q, v, None)

    def settled(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The same, but for states in singular positions, whose loops stay as they are; the energy is restored by the
        velocities alone."""
        if not self.projects:
            return self.corrected(q, v)
        q, v, loose = np.array(self.with_unit_quaternions(q)), np.array(v), ~self.singular.is_singular(q)
        if loose.any():
            q[loose], v[loose] = self.of(loose).closed(q[loose], v[loose])
        return q, v if self.energy is None else self._at_energy(q, v, self.energy)

    def _projected(self, q: np.ndarray, v: np.ndarray, energy: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        return closed.project(self.mech, q, v, energy, tolerance=self.tolerance, rank=self.singular.rank)

    def _at_energy(self, q: np.ndarray, v: np.ndarray, energy: np.ndarray) -> np.ndarray:
        """The velocities made faster or slower, by little, so that the energy is kept."""
        kinetic, missing = tree.kinetic_energy(self.mech, q, v), energy - tree.potential_energy(self.mech, q)
        ratio = np.divide(missing, kinetic, out=np.ones_like(kinetic), where=4.0 * np.abs(missing - kinetic) < kinetic)
        return v * np.sqrt(ratio)[..., None]

    def with_unit_quaternions(self, q: np.ndarray) -> np.ndarray:
        return q if self.mech.rates_are_velocities else tree.integrate(self.mech, q, np.zeros(self.mech.nv), 0.0)

    def accelerations(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None) -> np.ndarray:
        """(..., nv) under all joint forces ``tau`` and external ``wrenches`` (..., n_links, 6)."""
        if not self.mech.loops:
            return tree.forward_dynamics(self.mech, q, v, tau, wrenches)
        # Stages of a step may leave the manifold: what is projected, pulled back or left to drift is up to the caller.
        rank = self.singular.rank
        return closed.accelerations(self.mech, q, v, tau, self.formulation, self.baumgarte, wrenches, rank=rank)

    def derivatives(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(d_q, d_v, d_tau), each (nv, nv), of the accelerations of one state; of closed mechanisms by changes of q and
        v along the constraint manifold, others projected onto it."""
        if not self.mech.loops:
            return forward_dynamics_derivatives(self.mech, q, v, tau, wrenches)
        rank = None if self.singular.rank is None else int(self.singular.rank)
        return derivatives_at(state_of(self.mech, q, v, tau, wrenches, None, furthest=None), rank)
