"""Right-hand sides: what is integrated, in which variables, and what they say about (q, v).

A system turns a state (q, v) into the integrator's own x and back; everything that integrators, events and records ask
for goes through it.  x is (..., n): batches in front.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np

from .. import closed, diagonal
from .. import tree_dynamics as tree
from ..compiler import compile
from ..differentiation import jacobian_of
from ..mechanism import Mechanism
from .forces import Forces
from .loops import Manifold

Stepper = Callable[[float, np.ndarray, float], np.ndarray]  # (t, x, h) -> x after h


class System(ABC):
    """dx/dt = rates(t, x), with a correction after steps."""

    #: Whether ``corrected`` or ``rebased`` may change a state: methods that work with earlier steps cannot have that.
    corrects: bool

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold):
        self.mech, self.forces, self.manifold = mech, forces, manifold
        self.evaluations = 0

    @abstractmethod
    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """x of a state."""

    @abstractmethod
    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) of x after a step."""

    @abstractmethod
    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        """dx/dt."""

    @abstractmethod
    def corrected(self, x: np.ndarray) -> np.ndarray:
        """x after a step, back on the manifold."""

    def rebased(self, x: np.ndarray) -> np.ndarray:
        """x before the next step, in other variables where those of the last step have become bad ones."""
        return x

    def state_between(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) of an x interpolated between steps, on the manifold."""
        return self.state(self.corrected(x))

    def jacobian(self) -> Callable[[float, np.ndarray], np.ndarray] | None:
        """d(rates)/dx of one state for implicit methods, or None: they then difference the rates."""
        return None

    def compiled_step(self, method: str) -> Stepper | None:
        """One step of a method as a kernel, where there is one."""
        return None

    def kicked(self, t: float, x: np.ndarray, h: float) -> np.ndarray:
        """x after a step of the semi-implicit method of Euler: velocities first, then positions by the new ones."""
        nq = self.mech.nq
        rates = x[..., nq:] + h * self.rates(t, x)[..., nq:]
        v = self.state(np.concatenate([x[..., :nq], rates], axis=-1))[1]
        return np.concatenate([tree.integrate(self.mech, x[..., :nq], v, h), rates], axis=-1)


class JointVelocities(System):
    """x = [q, v], dq/dt = N(q) v."""

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold):
        super().__init__(mech, forces, manifold)
        self.corrects = manifold.corrects
        self._turns = mech.nq != mech.nv

    def start(self, q, v):
        return np.concatenate([q, v], axis=-1)

    def state(self, x):
        return x[..., : self.mech.nq], x[..., self.mech.nq :]

    def rates(self, t, x):
        self.evaluations += 1
        q, v = self.state(x)
        a = self.manifold.accelerations(q, v, self.forces.all(t, q, v))
        return np.concatenate([tree.coordinate_rates(self.mech, q, v) if self._turns else v, a], axis=-1)

    def corrected(self, x):
        return self.start(*self.manifold.corrected(*self.state(x))) if self.corrects else x

    def compiled_step(self, method):
        if self.mech.loops or (method == "rk4" and self.forces.depend_on_state):
            return None
        kernel, cost = tree._function(self.mech, f"{method}_step", None), 4 if method == "rk4" else 1

        def step(t: float, x: np.ndarray, h: float) -> np.ndarray:
            self.evaluations += cost
            q, v = self.state(x)
            return kernel(q, v, self.forces.all(t, q, v), h)

        return step

    def jacobian(self):
        """[[d(N v)/dq, N], [da/dq, da/dv]]: derivatives of a along tangent directions times N^+, because accelerations
        do not depend on the length of a quaternion.  Exact, but for the controller's part; of closed mechanisms along
        the constraint manifold (spencer2004 4.4), and not with Baumgarte's terms, which act across it."""
        if self.manifold.baumgarte is not None:
            return None
        rates_of_q = (
            jacobian_of(compile("coordinate_rates", self.mech), wrt=("q", "v"), tangent=False) if self._turns else None
        )
        nq, still = self.mech.nq, np.zeros((self.mech.nq, self.mech.nq))

        def jacobian(t: float, x: np.ndarray) -> np.ndarray:
            q, v = self.state(x)
            by_q, by_v, by_tau = self.manifold.derivatives(q, v, self.forces.all(t, q, v))
            tau_by_q, tau_by_v = self.forces.derivatives(t, q, v)
            a_by_q, a_by_v = by_q + by_tau @ tau_by_q, by_v + by_tau @ tau_by_v
            if rates_of_q is None:
                return np.block([[still, np.eye(nq)], [a_by_q, a_by_v]])
            upper = np.asarray(rates_of_q(q, v))
            return np.concatenate([upper, np.hstack([a_by_q @ np.linalg.pinv(upper[:, nq:]), a_by_v])])

        return jacobian


class TotalRates(System):
    """x = [q, nu] or [q, xi]: the diagonalized equations of motion (jain1995 Algorithm 8.1)."""

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold, normalized: bool):
        super().__init__(mech, forces, manifold)
        self.corrects = manifold.corrects
        self._normalized = normalized

    def start(self, q, v):
        return np.concatenate([q, diagonal.rates(self.mech, q, v, self._normalized)], axis=-1)

    def state(self, x):
        q = x[..., : self.mech.nq]
        return q, diagonal.velocities(self.mech, q, x[..., self.mech.nq :], self._normalized)

    def rates(self, t, x):
        self.evaluations += 1
        q, total = x[..., : self.mech.nq], x[..., self.mech.nq :]
        forces = self.forces
        tau = forces.all(t, *self.state(x)) if forces.depend_on_state else forces.held
        changes, v = diagonal.motion(self.mech, q, total, tau, normalized=self._normalized)
        return np.concatenate([tree.coordinate_rates(self.mech, q, v), changes], axis=-1)

    def corrected(self, x):
        # Total rates do not depend on the length of a quaternion, so they stay as they are.
        if not self.corrects:
            return x
        nq = self.mech.nq
        return np.concatenate([self.manifold.with_unit_quaternions(x[..., :nq]), x[..., nq:]], axis=-1)


class IndependentCoordinates(System):
    """x = [y, dy/dt] in a chart of the constraint manifold: the local state-space form (spencer2004 2.16).

    Before a step the chart is changed for one of tangent-space coordinates where the condition number of [D1 R; G]
    exceeds ``worst_condition``.
    """

    corrects = True

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold, independent: Any, worst_condition: float):
        super().__init__(mech, forces, manifold)
        self._independent, self._worst_condition = independent, worst_condition
        self.changes = 0

    def start(self, q, v):
        self._chart = closed.local_parametrization(self.mech, q, self._independent)
        self._near = q
        self._known: tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None = None
        return np.concatenate(self._chart.independent_state(q, v))

    def state(self, x):
        # The same x is asked about by the integrator, by events and by the record, and every answer is an iteration.
        if self._known is None or not np.array_equal(self._known[0], x):
            y, rate = np.split(x, 2)
            q = self._chart.configuration(y, self._near)
            self._known = x.copy(), (q, self._chart.velocity(q, rate, y))
        return self._known[1]

    def rates(self, t, x):
        self.evaluations += 1
        q, v = self.state(x)
        y, rate = np.split(x, 2)
        return np.concatenate([rate, self._chart.forward_dynamics(q, v, self.forces.all(t, q, v), y=y)])

    def corrected(self, x):
        self._near = self.state(x)[0]
        return x

    def rebased(self, x):
        q, v = self.state(x)
        if self._chart.condition(q, np.split(x, 2)[0]) <= self._worst_condition:
            return x
        self._chart, self.changes, self._known = self._chart.recentred(q), self.changes + 1, None
        return np.concatenate(self._chart.independent_state(q, v))

    def state_between(self, x):
        return self.state(x)

    def kicked(self, t, x, h):
        y, rate = np.split(x, 2)
        rate = rate + h * np.split(self.rates(t, x), 2)[1]
        return np.concatenate([y + h * rate, rate])
