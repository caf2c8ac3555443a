"""Right-hand sides in other variables than joint velocities: joint momenta, total joint rates."""

from __future__ import annotations

from abc import abstractmethod
from functools import cached_property, partial
from typing import Any

import numpy as np

from ..dynamics import diagonal, momenta
from ..dynamics import trees as tree
from ..dynamics.closed.structure import fronts, independent_places
from ..mechanics.algorithms.steps_in_variables import Partitioned, methods_in, refuse_rotating_axes
from ..mechanism import Mechanism
from ..mechanism.scales import scales
from .forces import Forces
from .loops import Manifold
from .systems import Stepper, System


class OtherVariables(System):
    """x = [q, y, activations], y in place of v: ``count`` numbers, linear in it.

    Constraints are kept as in joint velocities: states are projected after steps, and y follows."""

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold, coordinates: str):
        super().__init__(mech, forces, manifold)
        self.corrects, self.coordinates = manifold.corrects, coordinates

    @property
    def count(self) -> int:
        """Of the numbers of y."""
        return self.mech.nv

    @abstractmethod
    def variables(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """y of v."""

    @property
    @abstractmethod
    def variable_units(self) -> np.ndarray:
        """(count,): units of y."""

    @property
    def units(self) -> np.ndarray:
        return np.concatenate([scales(self.mech).of_q, self.variable_units, np.ones(self.forces.n_activation)])

    @abstractmethod
    def velocities(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        """v of y."""

    @abstractmethod
    def motion(
        self, q: np.ndarray, y: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """dy/dt and v."""

    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.concatenate([q, self.variables(q, v), np.zeros((*q.shape[:-1], self.forces.n_activation))], axis=-1)

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, y = self._parts(x)
        return q, self.velocities(q, y)

    def _parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nq, n = self.mech.nq, self.mech.nq + self.count
        return x[..., :nq], x[..., nq:n]

    def activation(self, x: np.ndarray) -> np.ndarray:
        return x[..., self.mech.nq + self.count :]

    @property
    def velocity_size(self) -> int:
        return self.count + self.forces.n_activation

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        self._count[0] += 1
        q, y = self._parts(x)
        here = self.state(x) if self.forces.depend_on_state else (q, y)  # held forces and wrenches do not look at it
        tau, more = self.forces.all_and_rates(t, *here, self.activation(x))
        changes, v = self.motion(q, y, tau, self.forces.wrenches(t, *here))
        rates = [tree.coordinate_rates(self.mech, q, v), changes]
        return np.concatenate(rates if more is None else [*rates, more], axis=-1)

    def corrected(self, x: np.ndarray) -> np.ndarray:
        if not self.corrects:
            return x
        if self.manifold.projects:
            q, v = self.manifold.corrected(*self.state(x))
            return np.concatenate([q, self.variables(q, v), self.activation(x)], axis=-1)
        # The variables do not depend on the length of a quaternion, so they stay as they are.
        nq = self.mech.nq
        return np.concatenate([self.manifold.with_unit_quaternions(x[..., :nq]), x[..., nq:]], axis=-1)

    def step(self, method: Any) -> Stepper:
        if isinstance(method, Partitioned):
            refuse_rotating_axes(self.mech)
            return partial(self._partitioned, method)
        return super().step(method)

    def _partitioned(self, method: Partitioned, t: float, x: np.ndarray, h: float) -> np.ndarray:
        nq = self.mech.nq

        def rates(c: float, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            found = self.rates(t + c * h, np.concatenate([q, p], axis=-1))
            return found[..., :nq], found[..., nq:]

        q, p = x[..., :nq], x[..., nq:]
        return np.concatenate(method.advance(q, p, h, rates(0.0, q, p), rates), axis=-1)

    def compiled_step(self, method: str) -> Stepper | None:
        if self.mech.loops:
            return None
        compiled = self._compiled(f"{self.coordinates}_{method}", methods_in(self.coordinates)[method].evaluations)
        if compiled is None:
            return None

        def step(t: float, x: np.ndarray, h: float) -> np.ndarray:
            found = compiled(t, x, h)
            nq, n = self.mech.nq, self.mech.nq + self.mech.nv
            q, v = found[..., :nq], found[..., nq:n]
            return self.corrected(np.concatenate([q, self.variables(q, v), found[..., n:]], axis=-1))

        return step


class Momenta(OtherVariables):
    """y = p, the joint momenta M v."""

    @property
    def variable_units(self) -> np.ndarray:
        own = scales(self.mech)
        return own.mass * own.length**2 / (own.of_v * self.forces.time_unit)

    def variables(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return momenta.momenta(self.mech, q, v)

    def velocities(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        return momenta.velocities(self.mech, q, y)

    def motion(
        self, q: np.ndarray, y: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return momenta.motion(self.mech, q, y, tau, wrenches)


class TotalRates(OtherVariables):
    """y = nu or xi: the diagonalized equations of motion (jain1995 Algorithm 8.1)."""

    @property
    def _normalized(self) -> bool:
        return self.coordinates == "nu"

    @cached_property
    def count(self) -> int:
        return self.mech.nv - fronts(self.mech).pivots

    @property
    def variable_units(self) -> np.ndarray:
        own = scales(self.mech)
        places = independent_places(self.mech)
        of_v = own.of_v if places is None else own.of_v[list(places)]
        sizes = np.full(self.count, own.mass**0.5 * own.length) if self._normalized else of_v
        return sizes / self.forces.time_unit

    def variables(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return diagonal.rates(self.mech, q, v, self._normalized)

    def velocities(self, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        return diagonal.velocities(self.mech, q, y, self._normalized)

    def motion(
        self, q: np.ndarray, y: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return diagonal.motion(self.mech, q, y, tau, wrenches, normalized=self._normalized)
