"""Systems: dx/dt = f(t, x) of any mechanism in any coordinates, and the conversion between x and (q, v).

A system turns a state (q, v) into the integrator's own x and back.  Integrators, events and records use it alone.
x is (..., n), batches in front:

    x = [q, y, activations, t]         y: joint velocities v, momenta p = M v, total joint rates nu or xi
    x = [y, dy/dt, activations, t]     y: independent coordinates of constraints, in a chart of their manifold

The time t is part of x where constraints depend on it (prescribed motion).
"""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, cast

import numpy as np

from .. import constraints
from ..compiler.pipeline import compile
from ..constraints.accelerations import Method, accelerations
from ..constraints.charts import LocalParametrization, local_parametrization
from ..constraints.derivatives import derivatives_at
from ..constraints.elimination_orders import fronts, independent_places
from ..constraints.infinitesimal import has_infinitesimal_motions
from ..constraints.redundancy import redundancy
from ..constraints.solver import Inputs
from ..constraints.tolerances import LOOPS
from ..constraints.variations import state_of
from ..dynamics import diagonal, momenta
from ..dynamics import trees as tree
from ..dynamics.derivatives import forward_dynamics_derivatives, jacobian_of
from ..mechanics.algorithms.integration import Splitting, Tableau
from ..mechanics.algorithms.steps_in_variables import Partitioned, methods_in, refuse_rotating_axes
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism
from ..mechanism.scales import scales
from .forces import DIFFERENCE, Forces
from .singular import SingularPositions
from .step import ACTIVATION, Step, StepResult, drifted, kick_bias, reached

Stepper = Callable[[float, np.ndarray, float], np.ndarray]  # (t, x, h) -> x after h
FARTHEST_ROTATION = 2.0  # rad; coordinates that are differences of rotations end at 180 degrees from their origin


# -- constraints ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Manifold:
    """The constraint manifold: constrained accelerations, and projection of states.

    singular         the policy near singular positions of the mechanism
    formulation      method of ``forward_dynamics``
    baumgarte        (alpha, beta) of Baumgarte's terms (spencer2004 3.8), or None
    projects         whether loops and velocities are projected after steps (3.1.3)
    tolerance        to which loops are then closed
    energy           (...): kinetic plus potential energy kept by projection, or None
    """

    singular: SingularPositions
    formulation: str = "elimination"
    baumgarte: tuple[float, float] | None = None
    projects: bool = False
    tolerance: float = LOOPS.closed
    energy: np.ndarray | None = None

    @property
    def mech(self) -> Mechanism:
        return self.singular.mech

    @property
    def corrects(self) -> bool:
        """Whether states need correction after steps: projection, or unit quaternions."""
        return self.projects or not self.mech.coordinates.rates_are_velocities

    @property
    def fits_compiled_steps(self) -> bool:
        """Whether compiled steps of a constrained mechanism stay on this manifold.  They eliminate and project loops
        with full generic rank, without energy projection or Baumgarte terms."""
        if not self.projects or self.formulation != "elimination" or self.energy is not None:
            return False
        if has_infinitesimal_motions(self.mech):
            return False
        pivots = fronts(self.mech).pivots
        return (
            self.baumgarte is None and bool(np.all(self.singular.rank == pivots)) and not redundancy(self.mech).blocks
        )

    def of(self, states: np.ndarray | tuple[int, ...]) -> Manifold:
        """The manifold of the chosen states of a batch, with their energies."""
        energy = None if self.energy is None else self.energy[states]
        return replace(self, singular=self.singular.of(states), energy=energy)

    def with_mechanism(self, mech: Mechanism) -> Manifold:
        """The manifold of another mechanism, such as this one at another time."""
        return replace(self, singular=replace(self.singular, mech=mech))

    def corrected(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest state with closed loops, consistent velocities, the kept energy and unit quaternions."""
        return self._projected(q, v, self.energy) if self.projects else (self.with_unit_quaternions(q), v)

    def closed(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The nearest state with closed loops and consistent velocities; the energy is free."""
        return self._projected(q, v, None)

    def settled(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The corrected state, without projection in singular positions; velocities alone restore the energy."""
        if not self.projects:
            return self.corrected(q, v)
        q, v, loose = np.array(self.with_unit_quaternions(q)), np.array(v), ~self.singular.is_singular(q)
        if loose.any():
            q[loose], v[loose] = self.of(loose).closed(q[loose], v[loose])
        return q, v if self.energy is None else self._restore_energy(q, v, self.energy)

    def _projected(self, q: np.ndarray, v: np.ndarray, energy: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        rank, tolerance = self.singular.rank, self.tolerance
        if self.mech.constraints.driven:  # drives may move far between two times
            return constraints.project(self.mech, q, v, energy, tolerance, largest=math.inf, rank=rank)
        return constraints.project(self.mech, q, v, energy, tolerance, rank=rank)

    def _restore_energy(self, q: np.ndarray, v: np.ndarray, energy: np.ndarray) -> np.ndarray:
        """The velocities scaled slightly to restore the energy."""
        kinetic, missing = tree.kinetic_energy(self.mech, q, v), energy - tree.potential_energy(self.mech, q)
        ratio = np.divide(missing, kinetic, out=np.ones_like(kinetic), where=4.0 * np.abs(missing - kinetic) < kinetic)
        return v * np.sqrt(ratio)[..., None]

    def with_unit_quaternions(self, q: np.ndarray) -> np.ndarray:
        return (
            q
            if self.mech.coordinates.rates_are_velocities
            else tree.integrate(self.mech, q, np.zeros(self.mech.nv), 0.0)
        )

    def accelerations(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None) -> np.ndarray:
        """(..., nv) under all joint forces ``tau`` and external ``wrenches`` (..., n_links, 6)."""
        # Stages of a step may leave the manifold; projection is up to the caller.
        how = Method(self.formulation, self.baumgarte, rank=self.singular.rank)
        return accelerations(self.mech, Inputs((q, v, tau), wrenches=wrenches), how)

    def derivatives(
        self, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """(d_q, d_v, d_tau), each (nv, nv), of the accelerations of one state.  Within constraints, changes of q and v
        are projected onto the manifold."""
        if not self.mech.loops:
            return forward_dynamics_derivatives(self.mech, q, v, tau, wrenches)
        rank = None if self.singular.rank is None else int(self.singular.rank)
        return derivatives_at(state_of(self.mech, q, v, tau, wrenches, furthest=None), rank)


# -- velocity variables -----------------------------------------------------------------------------------------


class VelocityVariables:
    """The velocity variables y in x = [q, y, ...]: joint velocities, y = v, or variables of a subclass. y is affine in
    v at a fixed configuration and, with prescribed motion, a fixed time."""

    def size(self, mech: Mechanism) -> int:
        """Number of variables."""
        return mech.nv

    def units(self, mech: Mechanism, time_unit: float) -> np.ndarray:
        """(size,): units of y."""
        return scales(mech).of_v / time_unit

    def of(self, mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """y from v."""
        return v

    def velocities(self, mech: Mechanism, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        """v from y."""
        return y

    def motion(
        self, manifold: Manifold, q: np.ndarray, y: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """dy/dt and v under all joint forces ``tau`` and external ``wrenches``."""
        return manifold.accelerations(q, y, tau, wrenches), y


class Momenta(VelocityVariables):
    """y = p = M v, joint momenta (spencer2004 5.1)."""

    def units(self, mech: Mechanism, time_unit: float) -> np.ndarray:
        unit = scales(mech)
        return unit.mass * unit.length**2 / (unit.of_v * time_unit)

    def of(self, mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return momenta.momenta(mech, q, v)

    def velocities(self, mech: Mechanism, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        return momenta.velocities(mech, q, y)

    def motion(
        self, manifold: Manifold, q: np.ndarray, y: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return momenta.motion(manifold.mech, q, y, tau, wrenches)


@dataclass(frozen=True)
class TotalRates(VelocityVariables):
    """y = nu if normalized, else xi: the diagonalized equations of motion (jain1995 Algorithm 8.1)."""

    normalized: bool

    def size(self, mech: Mechanism) -> int:
        return mech.nv - fronts(mech).pivots

    def units(self, mech: Mechanism, time_unit: float) -> np.ndarray:
        unit, independent = scales(mech), independent_places(mech)
        of_v = unit.of_v if independent is None else unit.of_v[list(independent)]
        sizes = np.full(self.size(mech), unit.mass**0.5 * unit.length) if self.normalized else of_v
        return sizes / time_unit

    def of(self, mech: Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return diagonal.rates(mech, q, v, self.normalized)

    def velocities(self, mech: Mechanism, q: np.ndarray, y: np.ndarray) -> np.ndarray:
        return diagonal.velocities(mech, q, y, self.normalized)

    def motion(
        self, manifold: Manifold, q: np.ndarray, y: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> tuple[np.ndarray, np.ndarray]:
        return diagonal.motion(manifold.mech, q, y, tau, wrenches, normalized=self.normalized)


#: Velocity variables by the name of the coordinates.
VELOCITY_VARIABLES: dict[str, VelocityVariables] = {
    "joint": VelocityVariables(),
    "momentum": Momenta(),
    "nu": TotalRates(True),
    "xi": TotalRates(False),
}


# -- systems ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Chart:
    """The chart of independent coordinates in use.

    origin   (nq,): configuration at which the chart was made
    rows     (p, nv): y = rows (q - origin); None if a function of the user defines y
    rank     number of independent constraints
    """

    origin: np.ndarray
    rows: np.ndarray | None
    rank: int


class System(ABC):
    """dx/dt = rates(t, x), with a correction after steps.

    mech       the mechanism; its constraints may depend on time
    forces     forces during the motion
    manifold   constraint manifold at the start of the motion
    """

    #: Whether ``corrected`` or ``rebased`` may change a state, which multistep methods do not allow.
    corrects: bool
    #: The chart that x belongs to, if it may change.
    chart: Chart | None = None

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold):
        self.mech, self.forces, self.manifold = mech, forces, manifold
        self._count = [0]
        self._clock = int(mech.constraints.waits_for_time)  # number of entries of x that are the time
        self._latest_time = math.nan, manifold  # reused by the stages of a step

    @property
    def evaluations(self) -> int:
        """Number of evaluations of the equations of motion."""
        return self._count[0]

    def frozen(self) -> System:
        """A copy of the system with its present held forces and variables."""
        if self.chart is None and not self.forces.change:
            return self  # neither ever changes
        now = copy.copy(self)
        now.forces = copy.copy(self.forces)
        return now

    # -- entries of x ----------------------------------------------------------------------------------------

    @property
    def units(self) -> np.ndarray:
        """(n,): units of x, from the mechanism's length and the time unit of the motion."""
        time = np.full(self._clock, self.forces.time_unit)
        return np.concatenate([self.mechanical_units, np.ones(self.forces.n_activation), time])

    @property
    @abstractmethod
    def mechanical_units(self) -> np.ndarray:
        """(n - activations - time,): units of the mechanical part of x."""

    @abstractmethod
    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """x of a state at the time zero, with zero activations."""

    @abstractmethod
    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) of x after a step."""

    @property
    @abstractmethod
    def velocity_size(self) -> int:
        """Number of entries of x, at its end, that are velocities, activations or the time."""

    @property
    def _tail_size(self) -> int:
        """Number of entries of x, at its end, that are activations or the time."""
        return self.forces.n_activation + self._clock

    def mechanical(self, x: np.ndarray) -> np.ndarray:
        """x without activations and the time; a view."""
        return x[..., : x.shape[-1] - self._tail_size]

    def activation(self, x: np.ndarray) -> np.ndarray:
        """(..., n_activation): states of actuators in x; a view."""
        first = x.shape[-1] - self._tail_size
        return x[..., first : first + self.forces.n_activation]

    def constraints_at(self, x: np.ndarray) -> Manifold:
        """The constraint manifold at the time of x, which is the same for all states of a batch."""
        if not self._clock or not x.size:
            return self.manifold
        t = float(x.flat[-1])
        if t != self._latest_time[0]:
            self._latest_time = t, self.manifold.with_mechanism(self.mech.constraints.at_time(t))
        return self._latest_time[1]

    def _with_tail(self, mechanical: np.ndarray, x: np.ndarray) -> np.ndarray:
        """x with another mechanical part."""
        return np.concatenate([mechanical, x[..., x.shape[-1] - self._tail_size :]], axis=-1)

    def _with_zeros(self, mechanical: np.ndarray) -> np.ndarray:
        """x with this mechanical part, zero activations and the time zero."""
        return np.concatenate([mechanical, np.zeros((*mechanical.shape[:-1], self._tail_size))], axis=-1)

    def _rates_of_all(self, *rates: np.ndarray | None) -> np.ndarray:
        """dx/dt from the rates of its parts; None parts are left out, the rate of the time is added."""
        parts = [part for part in rates if part is not None]
        if self._clock:
            parts.append(np.ones((*parts[0].shape[:-1], 1)))
        return np.concatenate(parts, axis=-1)

    # -- equations of motion ---------------------------------------------------------------------------------

    @abstractmethod
    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        """dx/dt."""

    def accelerations(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> np.ndarray:
        """(m, ..., nv): accelerations at the times t (m,), under all joint forces ``tau`` and external ``wrenches``."""
        if not self._clock:
            return self.manifold.accelerations(q, v, tau, wrenches)
        pushes = [None] * len(t) if wrenches is None else wrenches
        moments = (self.manifold.with_mechanism(self.mech.constraints.at_time(float(time))) for time in t)
        rows = zip(moments, q, v, np.broadcast_to(tau, v.shape), pushes, strict=True)
        return np.array([manifold.accelerations(*row) for manifold, *row in rows]).reshape(v.shape)

    def jacobian(self) -> Callable[[float, np.ndarray], np.ndarray] | None:
        """d(rates)/dx of one state for implicit methods; None: they difference the rates."""
        return None

    # -- between and after steps -----------------------------------------------------------------------------

    @abstractmethod
    def corrected(self, x: np.ndarray, states: np.ndarray | None = None) -> np.ndarray:
        """x after a step or interpolation projected onto the manifold; ``states`` selects members of a batch."""

    def arrive(self, x: np.ndarray) -> None:
        """Note that a step has arrived at x, after correction."""
        return

    def rebased(self, x: np.ndarray) -> np.ndarray:
        """x before the next step, in a new chart if the old one has become ill-conditioned."""
        return x

    @property
    def in_joints(self) -> FullState | None:
        """This system in joint velocities, in which arcs past singular positions are computed.  None if the motion has
        no singular positions to consider."""
        return None

    def to_joints(self, x: np.ndarray) -> np.ndarray:
        """x converted to the coordinates of ``in_joints``."""
        return x

    def from_joints(self, x: np.ndarray) -> np.ndarray:
        """x converted from the coordinates of ``in_joints``."""
        return x

    # -- fixed steps -----------------------------------------------------------------------------------------

    def compiled_step(self, method: str) -> Stepper | None:
        """One compiled step of a method that ends on the manifold, or None."""
        return None

    def step(self, method: Any) -> Stepper:
        """One step of a method, by ``rates``."""
        if isinstance(method, Tableau):
            return partial(self._runge_kutta, method)
        if isinstance(method, Partitioned):
            refuse_rotating_axes(self.mech)
            return partial(self._partitioned, method)
        return partial(self._split, method)

    def _runge_kutta(self, tableau: Tableau, t: float, x: np.ndarray, h: float) -> np.ndarray:
        return tableau.advance(x, h, lambda c, x: self.rates(t + c * h, x))

    def _split(self, splitting: Splitting, t: float, x: np.ndarray, h: float) -> np.ndarray:
        n = x.shape[-1] - self.velocity_size

        def acceleration(c: float, position: np.ndarray, velocity: np.ndarray) -> np.ndarray:
            x = np.concatenate([position, velocity], axis=-1)
            return self.kicks(x, self.rates(t + c * h, x)[..., n:])

        return np.concatenate(splitting.advance(x[..., :n], x[..., n:], h, acceleration, self.drifted), axis=-1)

    def _partitioned(self, method: Partitioned, t: float, x: np.ndarray, h: float) -> np.ndarray:
        n = x.shape[-1] - self.velocity_size

        def rates(c: float, q: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            both = self.rates(t + c * h, np.concatenate([q, p], axis=-1))
            return both[..., :n], both[..., n:]

        q, p = x[..., :n], x[..., n:]
        return np.concatenate(method.advance(q, p, h, rates(0.0, q, p), rates), axis=-1)

    def kicks(self, x: np.ndarray, rates: np.ndarray) -> np.ndarray:
        """Rates of the velocities in x for splitting methods, from ``rates``."""
        return rates

    def drifted(self, position: np.ndarray, velocity: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        """Positions and velocities of x after moving for h at constant velocity."""
        v = self.state(np.concatenate([position, velocity], axis=-1))[1]
        return tree.integrate(self.mech, position, v, h), velocity


class FullState(System):
    """x = [q, y, activations, t] with dq/dt = N(q) v; ``coordinates`` names y, a key of ``VELOCITY_VARIABLES``.

    Constraints are kept by projecting (q, v) after steps; y follows.
    """

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold, coordinates: str = "joint"):
        super().__init__(mech, forces, manifold)
        self.coordinates, self.variables = coordinates, VELOCITY_VARIABLES[coordinates]
        self.corrects, self._size = manifold.corrects, self.variables.size(manifold.mech)

    @property
    def mechanical_units(self) -> np.ndarray:
        mech = self.manifold.mech
        return np.concatenate([scales(mech).of_q, self.variables.units(mech, self.forces.time_unit)])

    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return self._with_zeros(np.concatenate([q, self.variables.of(self.manifold.mech, q, v)], axis=-1))

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, y = self._parts(x)
        return q, self.variables.velocities(self.constraints_at(x).mech, q, y)

    def at_state(self, state: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
        """x with another (q, v)."""
        q, v = state
        return self._with_tail(np.concatenate([q, self.variables.of(self.constraints_at(x).mech, q, v)], axis=-1), x)

    def _parts(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        nq = self.mech.nq
        return x[..., :nq], x[..., nq : nq + self._size]

    @property
    def velocity_size(self) -> int:
        return self._size + self._tail_size

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        self._count[0] += 1
        q, y = self._parts(x)
        seen = self.state(x) if self.forces.depend_on_state else (q, y)  # held forces and wrenches ignore the state
        tau, changes = self.forces.all_and_rates(t, *seen, self.activation(x))
        return self._rates(self.constraints_at(x), (q, y), tau, changes, self.forces.wrenches(t, *seen))

    def rates_along(self, times: np.ndarray, x: np.ndarray, batch: np.ndarray, index: tuple[int, ...]) -> np.ndarray:
        """(k, n): the rates of one member of a batch in k states x (k, n), each at its own time.  The other members
        stay as in ``batch``."""
        self._count[0] += len(times)
        state = self.state(x)
        acting = self.forces.sample_member(times, state, self.activation(x), self.state(batch), index)
        return self._rates(self.manifold.of(index), self._parts(x), *acting)

    def _rates(
        self,
        manifold: Manifold,
        parts: tuple[np.ndarray, np.ndarray],
        tau: np.ndarray,
        changes: np.ndarray | None,
        wrenches: np.ndarray | None,
    ) -> np.ndarray:
        q, y = parts
        y_rates, v = self.variables.motion(manifold, q, y, tau, wrenches)
        moved = v if self.mech.coordinates.rates_are_velocities else tree.coordinate_rates(self.mech, q, v)
        return self._rates_of_all(moved, y_rates, changes)

    def kicks(self, x: np.ndarray, rates: np.ndarray) -> np.ndarray:
        if self.coordinates != "joint":
            return rates
        rates = rates.copy()
        rates[..., : self.mech.nv] += kick_bias(self.mech, *self._parts(x))
        return rates

    def drifted(self, position: np.ndarray, velocity: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        if self.coordinates != "joint":
            return super().drifted(position, velocity, h)
        n = self.mech.nv
        q, v = drifted(self.mech, position, velocity[..., :n], h)
        return q, np.concatenate([v, velocity[..., n:]], axis=-1)

    def corrected(self, x: np.ndarray, states: np.ndarray | None = None) -> np.ndarray:
        x = x if states is None else x[states]
        if not self.corrects or not x.size:
            return x
        manifold = self.constraints_at(x) if states is None else self.constraints_at(x).of(states)
        if manifold.projects:
            return self.at_state(manifold.corrected(*self.state(x)), x)
        nq = self.mech.nq  # y does not depend on the length of a quaternion
        return np.concatenate([manifold.with_unit_quaternions(x[..., :nq]), x[..., nq:]], axis=-1)

    @property
    def singular(self) -> SingularPositions | None:
        """The policy near singular positions; None without constraints or with time-dependent ones.  (A drive stops in
        a dead centre.)"""
        return None if self.manifold.singular.rank is None or self._clock else self.manifold.singular

    @cached_property
    def in_joints(self) -> FullState | None:
        if self.singular is None or self.coordinates == "joint":
            return None if self.singular is None else self
        other = FullState(self.mech, self.forces, self.manifold)
        other._count = self._count
        return other

    def from_joints(self, x: np.ndarray) -> np.ndarray:
        if self.coordinates == "joint":
            return x
        nq, n = self.mech.nq, self.mech.nq + self.mech.nv
        y = self.variables.of(self.manifold.mech, x[..., :nq], x[..., nq:n])
        return np.concatenate([x[..., :nq], y, x[..., n:]], axis=-1)

    def to_joints(self, x: np.ndarray) -> np.ndarray:
        if self.coordinates == "joint":
            return x
        return np.concatenate([*self.state(x), x[..., self.mech.nq + self._size :]], axis=-1)

    def member(self, x: np.ndarray, index: tuple[int, ...] = ()) -> Member:
        """The motion of one state of x."""
        return Member(self, x, index)

    def compiled_step(self, method: str) -> Stepper | None:
        """One compiled step; within constraints unreliable states are taken by a step from the rates."""
        constrained = self.manifold.singular.rank is not None
        joints = self.coordinates == "joint"
        if self._clock or (constrained and not (joints and self.manifold.fits_compiled_steps)):
            return None
        chosen = methods_in(self.coordinates)[method]
        compiled = self._compiled(method, chosen.evaluations)
        if compiled is None:
            return None
        if not constrained:
            return lambda t, x, h: self.corrected(self.from_joints(compiled(t, x, h).state))
        from_rates = self.step(chosen)

        def step(t: float, x: np.ndarray, h: float) -> np.ndarray:
            state, relied, _ = compiled(t, x, h)
            fine = np.asarray(relied)[..., None]
            return state if fine.all() else np.where(fine, state, self.corrected(from_rates(t, x, h)))

        return step

    def _compiled(self, method: str, evaluations: int) -> Callable[[float, np.ndarray, float], StepResult] | None:
        """The compiled step of rollouts for (t, x, h); None if forces of the user change between its stages.
        ``evaluations`` is the number of stages."""
        forces, constant = self.forces, cast(Callable[..., np.ndarray], self.forces.all)
        elements = (
            forces.elements if evaluations > 1 else forces.acting
        )  # with one stage, forces are evaluated once per step
        if elements is None:
            if forces.n_activation or (evaluations > 1 and forces.depend_on_state):  # forces are constant in a step
                return None
            acting, more = Acting(), ("wrenches",) * forces.push_links
        else:
            sizes = {"wrenches": forces.push_links, "ctrl": elements.n_ctrl, ACTIVATION: elements.n_activation}
            acting, more = elements.acting, tuple(key for key, size in sizes.items() if size)
            constant = forces.commanded
        compiled = Step(method, acting, more, self.coordinates)

        def step(t: float, x: np.ndarray, h: float) -> StepResult:
            self._count[0] += evaluations
            q, v = self.state(x)
            inputs = {
                "wrenches": self.forces.wrenches(t, q, v),
                "ctrl": self.forces.controls(t, q, v),
                ACTIVATION: self.activation(x),
            }
            return reached(self.mech, compiled, q, v, constant(t, q, v), h, *(inputs[key] for key in more))

        return step

    def jacobian(self) -> Callable[[float, np.ndarray], np.ndarray] | None:
        """[[d(N v)/dq, N], [da/dq, da/dv]], and rows and columns of activations. da/dq is the derivative along tangent
        directions times N^+, because accelerations do not depend on the length of a quaternion.  It is exact except for
        the controller; within constraints it is along the manifold (spencer2004 4.4).  None in variables other than
        joint velocities, with Baumgarte's terms, which act across the manifold, and with time-dependent constraints."""
        if self.coordinates != "joint" or self.manifold.baumgarte is not None or self._clock:
            return None
        rates_of_q = None
        if not self.mech.coordinates.rates_are_velocities:
            rates_of_q = jacobian_of(compile("coordinate_rates", self.mech), wrt=("q", "v"), tangent=False)
        nq, nv = self.mech.nq, self.mech.nv
        plain, more = np.hstack([np.zeros((nq, nq)), np.eye(nq, nv)]), np.zeros((nq, self.forces.n_activation))

        def jacobian(t: float, x: np.ndarray) -> np.ndarray:
            q, v = self.state(x)
            activation = self.activation(x)
            tau, wrenches = self.forces.all(t, q, v, activation), self.forces.wrenches(t, q, v)
            by_q, by_v, by_tau = self.manifold.derivatives(q, v, tau, wrenches)
            # From joint forces to accelerations, above the rates of activations.
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
    """The motion of one state, x[index], in joint velocities, for arcs near singular positions.

    Arcs close loops exactly, whatever the stabilization of steps: an open loop would decide the branch on which the
    motion leaves a singular position.
    """

    system: FullState
    x: np.ndarray
    index: tuple[int, ...]

    @cached_property
    def manifold(self) -> Manifold:
        return replace(self.system.manifold.of(self.index), projects=True)

    @property
    def drifts(self) -> bool:
        """Whether states before an arc may have left the manifold by integration errors."""
        return not self.system.manifold.projects

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        return self.system.state(x)

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        """dx/dt of one state."""
        batch = self.x.copy()  # forces may be different for every state of a batch
        batch[self.index] = x
        return self.system.rates(t, batch)[self.index]

    def rates_along(self, times: np.ndarray, x: np.ndarray) -> np.ndarray:
        """(k, n): dx/dt of k states at given times."""
        return self.system.rates_along(times, x, self.x, self.index)

    def closed(self, x: np.ndarray) -> np.ndarray:
        """(k, n): the nearest k states on the manifold."""
        return self.system.at_state(self.manifold.closed(*self.state(x)), x)

    def settled(self, x: np.ndarray) -> np.ndarray:
        """x at the end of an arc, on the manifold, with the kept energy if any."""
        return self.system.at_state(self.manifold.settled(*self.state(x)), x)


class IndependentCoordinates(System):
    """x = [y, dy/dt, activations, t] in a chart of the constraint manifold: the local state-space form (spencer2004
    2.16); with prescribed motion, the manifold at each time.

    Before a step the chart is replaced by one of tangent-space coordinates if the condition number of [D1 R; G]
    exceeds ``worst_condition``, or a spherical or floating joint has rotated by more than ``FARTHEST_ROTATION`` since
    the chart was made.
    """

    corrects = True

    def __init__(self, mech: Mechanism, forces: Forces, manifold: Manifold, independent: Any, worst_condition: float):
        super().__init__(mech, forces, manifold)
        self._independent, self._worst_condition = independent, worst_condition
        self.changes = 0

    @property
    def mechanical_units(self) -> np.ndarray:
        of_v = scales(self.mech).of_v
        if self._local.rows is not None:
            sizes = (np.abs(self._local.rows) * of_v).max(axis=-1, initial=0.0)
        else:  # functions of the user: motion of joints per unit of each
            x, (q, _) = self._settled
            y = np.split(self.mechanical(x), 2)[0]
            sizes = 1.0 / np.abs(self._local.derivative(q, y).T / of_v).max(axis=-1, initial=0.0)
        return np.concatenate([sizes, sizes / self.forces.time_unit])

    def start(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        self._use(local_parametrization(self.manifold.mech, q, self._independent))
        y, rate = self._local.independent_state(q, v)
        q = self._local.configuration(y, q)  # the state may be off the manifold, x is not
        x = self._with_zeros(np.concatenate([y, rate]))
        self._settle(x, q, self._local.velocity(q, rate, y))
        return x

    def restore(self, chart: Chart, x: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Continue with x in an earlier chart, at the state (q, v)."""
        made = self._independent if chart.rows is None else chart.rows
        local = local_parametrization(self.constraints_at(x).mech, chart.origin, made)
        self._use(replace(local, rank=chart.rank))
        self._settle(x, q, v)

    def _use(self, local: LocalParametrization) -> None:
        self._local, self.chart = local, Chart(local.origin, local.rows, local.rank)

    def _at(self, x: np.ndarray) -> tuple[LocalParametrization, np.ndarray, np.ndarray]:
        """The chart at the time of x, y and dy/dt."""
        local = self._local
        if self._clock:
            local = replace(local, mechanism=self.constraints_at(x).mech)
        y, rate = np.split(self.mechanical(x), 2)
        return local, y, rate

    def _settle(self, x: np.ndarray, q: np.ndarray, v: np.ndarray) -> None:
        """Set (q, v) as the state of x, and as initial guess of the iterations of the next step."""
        self._settled = self._latest = x.copy(), (q, v)

    def state(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        # Integrator, events and record ask for the state of the same x, and each state takes an iteration.
        for known, state in (self._settled, self._latest):
            if np.array_equal(known, x):
                return state
        local, y, rate = self._at(x)
        q = local.configuration(y, self._settled[1][0])
        self._latest = x.copy(), (q, local.velocity(q, rate, y))
        return self._latest[1]

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        self._count[0] += 1
        q, v = self.state(x)
        local, y, rate = self._at(x)
        tau, changes = self.forces.all_and_rates(t, q, v, self.activation(x))
        return self._rates_of_all(rate, local.forward_dynamics(q, v, tau, self.forces.wrenches(t, q, v), y=y), changes)

    def corrected(self, x: np.ndarray, states: np.ndarray | None = None) -> np.ndarray:
        return x

    def arrive(self, x: np.ndarray) -> None:
        self._settle(x, *self.state(x))

    def rebased(self, x: np.ndarray) -> np.ndarray:
        q, v = self.state(x)
        local, y, _ = self._at(x)
        good = local.condition(q, y) <= self._worst_condition
        if good and (local.rows is None or self._rotated(q) <= FARTHEST_ROTATION):
            return x
        self._use(local.recentred(q))
        self.changes += 1
        x = self._with_tail(np.concatenate(self._local.independent_state(q, v)), x)
        self._settle(x, q, v)
        return x

    def _rotated(self, q: np.ndarray) -> float:
        """The largest rotation angle of a spherical or floating joint from the origin of the chart.  The structure
        constants times a rotation vector have i times its angle as eigenvalues."""
        if self.mech.coordinates.rates_are_velocities:
            return 0.0
        step = tree.difference(self.mech, self._local.origin, q)
        return float(
            np.abs(np.linalg.eigvals(np.tensordot(step, self.mech.coordinates.structure_constants, 1))).max(initial=0.0)
        )

    def jacobian(self) -> Callable[[float, np.ndarray], np.ndarray] | None:
        """The Jacobian by differences within the chart; SciPy's own steps grow if the rates hardly change."""

        def jacobian(t: float, x: np.ndarray) -> np.ndarray:
            here, steps = self.rates(t, x), DIFFERENCE * np.maximum(self.units, np.abs(x))
            return np.array([(self.rates(t, x + step) - here) / step.sum() for step in np.diag(steps)]).T

        return jacobian

    @property
    def velocity_size(self) -> int:
        return (len(self._settled[0]) + self._tail_size) // 2

    def drifted(self, position: np.ndarray, velocity: np.ndarray, h: float) -> tuple[np.ndarray, np.ndarray]:
        return position + h * velocity[: len(position)], velocity
