"""Right-hand sides: what is integrated, in which variables, and what they say about (q, v).

A system turns a state (q, v) into the integrator's own x and back; everything that integrators, events and records ask
for goes through it.  x is (..., n): batches in front.
"""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from ..compiler.pipeline import compile
from ..compiler.store import kernel_function
from ..dynamics import closed
from ..dynamics import trees as tree
from ..dynamics.derivatives import jacobian_of
from ..mechanics.algorithms.closed_projection import RELIABLE
from ..mechanics.algorithms.integration import METHODS, Splitting, Tableau
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism
from ..mechanism.scales import scales
from .forces import DIFFERENCE, Forces
from .loops import Manifold
from .singular_positions import SingularPositions
from .steps import ACTIVATION, OneStep, drifted, kick_bias

Stepper = Callable[[float, np.ndarray, float], np.ndarray]  # (t, x, h) -> x after h
FARTHEST_ROTATION = 2.0  # rad; coordinates that are differences of rotations end at 180 degrees from their origin


@dataclass(frozen=True)
class Chart:
    """Independent coordinates in use: all that their equations depend on, besides functions of the user.

    origin   (nq,): where the chart was made
    rows     (p, nv): y = rows (q - origin); None where a function of the user says what y is
    rank     number of independent constraints
    """

    origin: np.ndarray
    rows: np.ndarray | None
    rank: int


class System(ABC):
    """dx/dt = rates(t, x), with a correction after steps."""

    #: Whether ``corrected`` or ``rebased`` may change a state: methods that work with earlier steps cannot have that.
    corrects: bool

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold):
        self.mech, self.forces, self.manifold = mech, forces, manifold
        self._count = [0]

    @property
    def evaluations(self) -> int:
        """How often the equations of motion were evaluated."""
        return self._count[0]

    def frozen(self) -> System:
        """This system as it is now: with the forces held now, in the variables used now."""
        if self.chart is None and not self.forces.change:
            return self  # neither ever changes
        now = copy.copy(self)
        now.forces = copy.copy(self.forces)
        return now

    #: What x means, where that is not always the same.
    chart: Chart | None = None

    @property
    @abstractmethod
    def units(self) -> np.ndarray:
        """(n,): units of the numbers of x, by the mechanism's length and the time unit of the motion."""

    @abstractmethod
    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """x of a state."""

    @abstractmethod
    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) of x after a step."""

    def activation(self, x: np.ndarray) -> np.ndarray:
        """(..., n_activation): states of actuators in x."""
        return x[..., :0]

    @abstractmethod
    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        """dx/dt."""

    def accelerations(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> np.ndarray:
        """(m, ..., nv): at the times t (m,), under all joint forces ``tau`` and external ``wrenches``."""
        return self.manifold.accelerations(q, v, tau, wrenches)

    @abstractmethod
    def corrected(self, x: np.ndarray) -> np.ndarray:
        """x, of a step or an interpolation, back on the manifold."""

    def arrive(self, x: np.ndarray) -> None:
        """A step has led to x, corrected: what depends on the way of the motion is noted."""
        return

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
        """One step of a method as a kernel, where there is one; it ends on the manifold."""
        return None

    def _compiled(self, name: str, evaluations: int) -> Callable[..., Any] | None:
        """What the compiled step of rollouts of this name gives for (t, x, h); None where something comes between the
        stages of the method, which ask for rates so many times."""
        forces, constant = self.forces, cast(Callable[..., np.ndarray], self.forces.all)
        elements = forces.elements if evaluations > 1 else forces.acting  # whatever changes is looked at once
        if elements is None:
            if forces.n_activation or (evaluations > 1 and forces.depend_on_state):  # forces are constant in a step
                return None
            acting, more = Acting(), ("wrenches",) * forces.push_links
        else:
            sizes = {"wrenches": forces.push_links, "ctrl": elements.n_ctrl, ACTIVATION: elements.n_activation}
            acting, more = elements.acting, tuple(key for key, size in sizes.items() if size)
            constant = forces.commanded
        kernel = kernel_function(self.mech, OneStep(name, acting, more), None)

        def step(t: float, x: np.ndarray, h: float) -> Any:
            self._count[0] += evaluations
            q, v = self.state(x)
            given = {
                "wrenches": self.forces.wrenches(t, q, v),
                "ctrl": self.forces.controls(t, q, v),
                ACTIVATION: self.activation(x),
            }
            return kernel(q, v, constant(t, q, v), h, *(given[key] for key in more))

        return step

    def step(self, method: Any) -> Stepper:
        """One step of a method, from the rates."""
        return partial(self._runge_kutta, method) if isinstance(method, Tableau) else partial(self._split, method)

    def _runge_kutta(self, tableau: Tableau, t: float, x: np.ndarray, h: float) -> np.ndarray:
        return tableau.advance(x, h, lambda c, x: self.rates(t + c * h, x))

    def _split(self, splitting: Splitting, t: float, x: np.ndarray, h: float) -> np.ndarray:
        n = x.shape[-1] - self.velocity_size

        def acceleration(c: float, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
            x = np.concatenate([position, velocity], axis=-1)
            return self.kicks(x, self.rates(t + c * h, x)[..., n:])

        return np.concatenate(splitting.advance(x[..., :n], x[..., n:], h, acceleration, self.drifted), axis=-1)

    @property
    def velocity_size(self) -> int:
        """How many of the last numbers of x are velocities."""
        return self.mech.nv

    def kicks(self, x: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """What the velocities in x change by, whose rates are given, where methods take them and positions in turn."""
        return rates

    def drifted(self, position: np.ndarray, velocity: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """x after moving for h with the velocities in x, or what they say about v, constant."""
        v = self.state(np.concatenate([position, velocity], axis=-1))[1]
        return tree.integrate(self.mech, position, v, h), velocity


class JointVelocities(System):
    """x = [q, v], dq/dt = N(q) v."""

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold):
        super().__init__(mech, forces, manifold)
        self.corrects = manifold.corrects

    @property
    def units(self) -> np.ndarray:
        own = scales(self.mech)
        return np.concatenate([own.of_q, own.of_v / self.forces.time_unit, np.ones(self.forces.n_activation)])

    def start(self, q: np.ndarray, v: np.ndarray, activation: np.ndarray | None = None) -> np.ndarray:
        if activation is None:
            activation = np.zeros((*q.shape[:-1], self.forces.n_activation))
        return np.concatenate([q, v, activation], axis=-1)

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nq, n = self.mech.nq, self.mech.nq + self.mech.nv
        return x[..., :nq], x[..., nq:n]

    def activation(self, x: np.ndarray) -> np.ndarray:
        return x[..., self.mech.nq + self.mech.nv :]

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        self._count[0] += 1
        q, v = self.state(x)
        tau, changes = self.forces.all_and_rates(t, q, v, self.activation(x))
        return self._rates(self.manifold, q, v, tau, changes, self.forces.wrenches(t, q, v))

    def rates_along(self, times: np.ndarray, x: np.ndarray, batch: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
        """(k, n): the rates of a member of a batch in k states x (k, n), each at its own time, the others standing
        still."""
        self._count[0] += len(times)
        q, v = self.state(x)
        acting = self.forces.along(times, (q, v), self.activation(x), self.state(batch), index)
        return self._rates(self.manifold.of(index), q, v, *acting)

    def _rates(
        self,
        manifold: Manifold,
        q: np.ndarray,
        v: np.ndarray,
        tau: np.ndarray,
        changes: np.ndarray | None,
        wrenches: np.ndarray | None,
    ) -> np.ndarray:
        a, plain = manifold.accelerations(q, v, tau, wrenches), self.mech.rates_are_velocities
        rates = [v if plain else tree.coordinate_rates(self.mech, q, v), a]
        return np.concatenate(rates if changes is None else [*rates, changes], axis=-1)

    def kicks(self, x: np.ndarray, rates: np.ndarray) -> np.ndarray:
        rates = rates.copy()
        rates[..., : self.mech.nv] += kick_bias(self.mech, *self.state(x))
        return rates

    def drifted(self, position: np.ndarray, velocity: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        n = self.mech.nv
        q, v = drifted(self.mech, position, velocity[..., :n], h)
        return q, np.concatenate([v, velocity[..., n:]], axis=-1)

    def at_state(self, state: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
        """x with another (q, v)."""
        return self.start(*state, self.activation(x))

    def corrected(self, x: np.ndarray, states: np.ndarray | None = None) -> np.ndarray:
        """x, or those of its ``states``, back on the manifold."""
        if states is not None:
            return self.at_state(self.manifold.of(states).corrected(*self.state(x[states])), x[states])
        return self.at_state(self.manifold.corrected(*self.state(x)), x) if self.corrects else x

    @property
    def velocity_size(self) -> int:
        return self.mech.nv + self.forces.n_activation

    @property
    def singular(self) -> SingularPositions | None:
        """What is done near singular positions, where steps must heed them: where there are loops."""
        return self.manifold.singular if self.mech.loops else None

    def member(self, x: np.ndarray, index: tuple[int, ...] = ()) -> Member:
        """The motion of one state of x."""
        return Member(self, x, index)

    def compiled_step(self, method: str) -> Stepper | None:
        """On loops, states that the compiled step cannot be relied on for are left to the step from the rates."""
        if self.mech.loops and not self.manifold.is_that_of_compiled_steps:
            return None
        compiled = self._compiled(method, METHODS[method].evaluations)
        if compiled is None or not self.mech.loops:
            return None if compiled is None else lambda t, x, h: self.corrected(compiled(t, x, h))
        from_rates = self.step(METHODS[method])

        def step(t: float, x: np.ndarray, h: float) -> np.ndarray:
            state, reliability, _ = compiled(t, x, h)
            fine = np.asarray(reliability > RELIABLE)[..., None]
            return state if fine.all() else np.where(fine, state, self.corrected(from_rates(t, x, h)))

        return step

    def jacobian(self) -> Callable[[float, np.ndarray], np.ndarray] | None:
        """[[d(N v)/dq, N], [da/dq, da/dv]], and rows and columns of activations: derivatives of a along tangent
        directions times N^+, because accelerations do not depend on the length of a quaternion.  Exact, but for the
        controller's part; of closed mechanisms along the constraint manifold (spencer2004 4.4), and not with
        Baumgarte's terms, which act across it."""
        if self.manifold.baumgarte is not None:
            return None
        rates_of_q = None
        if not self.mech.rates_are_velocities:
            rates_of_q = jacobian_of(compile("coordinate_rates", self.mech), wrt=("q", "v"), tangent=False)
        nq, nv = self.mech.nq, self.mech.nv
        plain, more = np.hstack([np.zeros((nq, nq)), np.eye(nq, nv)]), np.zeros((nq, self.forces.n_activation))

        def jacobian(t: float, x: np.ndarray) -> np.ndarray:
            q, v = self.state(x)
            activation = self.activation(x)
            tau, wrenches = self.forces.all(t, q, v, activation), self.forces.wrenches(t, q, v)
            by_q, by_v, by_tau = self.manifold.derivatives(q, v, tau, wrenches)
            # Of joint forces, made accelerations, and below of the rates of activations.
            through = np.eye(nv + more.shape[1])
            through[:nv, :nv] = by_tau
            all_by_q, all_by_v, by_activation = (through @ x for x in self.forces.derivatives(t, q, v, activation))
            all_by_q[:nv] += by_q
            all_by_v[:nv] += by_v
            upper = plain if rates_of_q is None else np.asarray(rates_of_q(q, v))
            if rates_of_q is not None:
                all_by_q = all_by_q @ np.linalg.pinv(upper[:, nq:])
            return np.block([[upper, more], [all_by_q, all_by_v, by_activation]])

        return jacobian


@dataclass(frozen=True)
class Member:
    """The motion of one state, x[index], of a batch or not: what arcs near singular positions are made of.

    Its loops are closed there, however steps elsewhere keep them so: by how much loops are open would decide on which
    branch the motion leaves a singular position.
    """

    system: JointVelocities
    x: np.ndarray
    index: tuple[int, ...]

    @cached_property
    def manifold(self) -> Manifold:
        return replace(self.system.manifold.of(self.index), projects=True)

    @property
    def drifts(self) -> bool:
        return not self.system.manifold.projects

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.system.state(x)

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        whole = self.x.copy()  # forces may be different for every state of a batch
        whole[self.index] = x
        return self.system.rates(t, whole)[self.index]

    def rates_along(self, times: np.ndarray, x: np.ndarray) -> np.ndarray:
        return self.system.rates_along(times, x, self.x, self.index)

    def closed(self, x: np.ndarray) -> np.ndarray:
        return self.system.at_state(self.manifold.closed(*self.state(x)), x)

    def settled(self, x: np.ndarray) -> np.ndarray:
        return self.system.at_state(self.manifold.settled(*self.state(x)), x)


class IndependentCoordinates(System):
    """x = [y, dy/dt] in a chart of the constraint manifold: the local state-space form (spencer2004 2.16).

    Before a step the chart is changed for one of tangent-space coordinates where the condition number of [D1 R; G]
    exceeds ``worst_condition``, or a spherical or floating joint has rotated by more than ``FARTHEST_ROTATION`` since
    the chart was made.
    """

    corrects = True

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold, independent: Any, worst_condition: float):
        super().__init__(mech, forces, manifold)
        self._independent, self._worst_condition = independent, worst_condition
        self.changes = 0

    @property
    def units(self) -> np.ndarray:
        of_v = scales(self.mech).of_v
        if self._local.rows is not None:
            sizes = (np.abs(self._local.rows) * of_v).max(axis=-1, initial=0.0)
        else:  # functions of the user: by how far joints move per unit of each
            x, (q, _) = self._settled
            y = x[: len(x) // 2]
            moved = np.array([self._local.velocity(q, unit, y) for unit in np.eye(len(y))])
            sizes = 1.0 / np.abs(moved / of_v).max(axis=-1, initial=0.0)
        return np.concatenate([sizes, sizes / self.forces.time_unit])

    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        self._use(closed.local_parametrization(self.mech, q, self._independent))
        y, rate = self._local.independent_state(q, v)
        q = self._local.configuration(y, q)  # the state may be off the manifold, but that of x is not
        x = np.concatenate([y, rate])
        self._settle(x, q, self._local.velocity(q, rate, y))
        return x

    def restore(self, chart: Chart, x: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Go on with x of a chart that was in use before, at the state (q, v)."""
        made = self._independent if chart.rows is None else chart.rows
        self._use(replace(closed.local_parametrization(self.mech, chart.origin, made), rank=chart.rank))
        self._settle(x, q, v)

    def _use(self, local: closed.LocalParametrization) -> None:
        self._local, self.chart = local, Chart(local.origin, local.rows, local.rank)

    def _settle(self, x: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """(q, v) is the state of x: what the iterations of the next step start from."""
        self._settled = self._latest = x.copy(), (q, v)

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # The same x is asked about by the integrator, by events and by the record, and every answer is an iteration.
        for known, state in (self._settled, self._latest):
            if np.array_equal(known, x):
                return state
        y, rate = np.split(x, 2)
        q = self._local.configuration(y, self._settled[1][0])
        self._latest = x.copy(), (q, self._local.velocity(q, rate, y))
        return self._latest[1]

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        self._count[0] += 1
        q, v = self.state(x)
        y, rate = np.split(x, 2)
        tau, wrenches = self.forces.all(t, q, v), self.forces.wrenches(t, q, v)
        return np.concatenate([rate, self._local.forward_dynamics(q, v, tau, wrenches, y=y)])

    def corrected(self, x: np.ndarray) -> np.ndarray:
        return x

    def arrive(self, x: np.ndarray) -> None:
        self._settle(x, *self.state(x))

    def rebased(self, x: np.ndarray) -> np.ndarray:
        q, v = self.state(x)
        good = self._local.condition(q, np.split(x, 2)[0]) <= self._worst_condition
        if good and (self._local.rows is None or self._rotated(q) <= FARTHEST_ROTATION):
            return x
        self._use(self._local.recentred(q))
        self.changes += 1
        x = np.concatenate(self._local.independent_state(q, v))
        self._settle(x, q, v)
        return x

    def _rotated(self, q: np.ndarray) -> float:
        """The largest angle by which a spherical or floating joint is away from the origin of the chart: the structure
        constants times a rotation vector have its angle as eigenvalues, times the imaginary unit."""
        if self.mech.rates_are_velocities:
            return 0.0
        step = tree.difference(self.mech, self._local.origin, q)
        return float(np.abs(np.linalg.eigvals(np.tensordot(step, self.mech.structure_constants, 1))).max(initial=0.0))

    def jacobian(self) -> Callable[[float, np.ndarray], np.ndarray] | None:
        """By differences with steps that stay within the chart: SciPy's own grow where the rates hardly change."""

        def jacobian(t: float, x: np.ndarray) -> np.ndarray:
            here, steps = self.rates(t, x), DIFFERENCE * np.maximum(self.units, np.abs(x))
            return np.array([(self.rates(t, x + step) - here) / step.sum() for step in np.diag(steps)]).T

        return jacobian

    @property
    def velocity_size(self) -> int:
        return len(self._settled[0]) // 2

    def drifted(self, position: np.ndarray, velocity: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        return position + h * velocity, velocity
