"""Integrators: SciPy's adaptive methods, stepped one by one for projection after steps, and fixed steps."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import scipy.integrate

from ..constraints.coordinates import ChartError
from ..mechanics.algorithms.steps_in_variables import methods_in
from ..mechanism import Mechanism, MechanismError
from .singular import Arc
from .step import IMPLICIT
from .system import FullState, Stepper, System

ADAPTIVE: dict[str, Any] = {
    "rk23": scipy.integrate.RK23,
    "rk45": scipy.integrate.RK45,
    "dop853": scipy.integrate.DOP853,
    "radau": scipy.integrate.Radau,
    "bdf": scipy.integrate.BDF,
    "lsoda": scipy.integrate.LSODA,
}
ORDER_OF_ERRORS = {
    "rk23": 2,
    "rk45": 4,
    "dop853": 7,
    "radau": 3,
    "bdf": 1,
}  # order of the error estimate, for the first step
MULTISTEP = ("bdf", "lsoda")  # use values of earlier steps, so that steps must not be projected
ABSOLUTE = 1e-9  # default absolute tolerance, in units of the mechanism
FIRST_STEP = 1e-6  # of the time unit: first step if the state or its rates are zero
# A motion stalls if PATIENCE evaluations advance it by less than LEAST_SHARE of the remaining time, and by less than
# LEAST_TIME of its time unit, about 1 s for an arm: explicit steps are then below 25 ns, forty thousand times in a row.
# Stops and dry friction of the lightest links need microseconds.  A motion at this pace takes 5e9 evaluations, half a
# day.  Chattering forces lead to steps below 1 ns.
PATIENCE = 500_000
LEAST_SHARE, LEAST_TIME = 1e-4, 1e-3
# A motion that would take 1e17 evaluations is given up after GLANCE of them.
GLANCE, HOPELESS = 5_000, 1e-13
FIRST = 1e-3  # of the remaining time: assumed step if a method fails with its first one
WHOLE = 1e-9  # relative tolerance of a duration that is a whole number of steps


class IntegrationFailed(ArithmeticError):
    """The method cannot continue; the message gives the reason."""


# -- arcs past singular positions ---------------------------------------------------------------------------------

Arcs = dict[tuple[int, ...], list[Arc]]  # by the index of a state in its batch; () for a single state
Between = Callable[[float], np.ndarray]  # x at a time within a step


class Crossings:
    """Arcs that replace steps near singular positions, for one state or members of a batch.  Arcs are computed in joint
    velocities, whatever the coordinates of the system."""

    def __init__(self, system: System):
        self._system, self._joints = system, system.in_joints
        self._arcs: Arcs = {}

    @property
    def is_inside(self) -> bool:
        """Whether arcs were taken in the step planned last."""
        return bool(self._arcs)

    def next_arc(self, t: float, x: np.ndarray, rates: np.ndarray | None, step: float) -> tuple[Arc | None, float]:
        """The arc that replaces the next step of one state near a singular position, and else the longest step.
        ``rates`` is dx/dt at x; None if unknown."""
        joints = self._joints
        if joints is None or joints.singular is None:
            return None, math.inf
        x = self._system.to_joints(x)
        if rates is None or joints is not self._system:
            rates = joints.rates(t, x)
        return joints.singular.arc(joints.member(x), t, x, rates, step)

    def arc_states(self, arc: Arc) -> Between:
        """The state as a function of time on an arc."""
        assert self._joints is not None
        return ArcStates(self._system, self._joints, {(): [arc]}, (len(self._system.units),))

    def plan(self, t: float, x: np.ndarray, t_new: float) -> bool:
        """Find the arcs that replace the step from (t, x) to ``t_new``; returns whether some state takes one."""
        joints, planned = self._joints, {at: [arcs[-1]] for at, arcs in self._arcs.items() if arcs[-1].t > t}
        if joints is None or joints.singular is None:
            return False
        x = self._system.to_joints(x)
        near = np.argwhere(joints.singular.may_be_ahead(*joints.state(x), t_new - t))
        for member in map(tuple, near.tolist()):
            motion, arcs = joints.member(x, member), planned.get(member, [])
            t_start, start = (arcs[-1].t, motion.settled(arcs[-1].between(arcs[-1].t))) if arcs else (t, x[member])
            policy, step = joints.singular.of(member), t_new - t
            planned[member] = arcs + policy.arcs(motion, t_start, start, t_new, step, inside=bool(arcs))
        self._arcs = {member: arcs for member, arcs in planned.items() if arcs and arcs[-1].t >= t_new}
        return bool(self._arcs)

    def planned(self, shape: tuple[int, ...], others: Between) -> Between:
        """x (of this shape) as a function of time within the step planned last, on the manifold.  States without an arc
        are interpolated by ``others``, the method's own interpolation."""
        assert self._joints is not None
        return ArcStates(self._system, self._joints, self._arcs, shape, others)


@dataclass(frozen=True)
class ArcStates:
    """x (of this shape) as a function of time within a step, on the manifold.  States without an arc are interpolated
    by ``others``."""

    system: System
    joints: FullState
    arcs: Arcs
    shape: tuple[int, ...]
    others: Between | None = None

    def __call__(self, time: float) -> np.ndarray:
        x, rest = np.zeros(self.shape), np.ones(self.shape[:-1], dtype=bool)
        for member, arcs in self.arcs.items():
            x[member], rest[member] = self._arc_state(member, arcs, time), False
        if self.others is not None and rest.any():
            x[rest] = self.system.corrected(self.others(time), rest)
        return x

    def _arc_state(self, member: tuple[int, ...], arcs: list[Arc], time: float) -> np.ndarray:
        arc = next(arc for arc in arcs if time <= arc.t)
        x = self.joints.member(np.zeros(0), member).settled(arc.between(time))
        return self.system.from_joints(x)


# -- adaptive methods ---------------------------------------------------------------------------------------------


class Headway:
    """Stall detection of adaptive steps towards ``end``, by the number of evaluations."""

    def __init__(self, system: System, t: float, end: float):
        self._system, self._end = system, end
        self._t, self._evaluations = t, system.evaluations

    def check(self, t: float, v: np.ndarray) -> None:
        """Raise ``IntegrationFailed`` if the motion stalls at t, with velocities v (nv,)."""
        spent, gained, left = self._system.evaluations - self._evaluations, t - self._t, self._end - t
        if spent >= GLANCE and gained < HOPELESS * left:
            raise IntegrationFailed(
                f"it stalls at t = {t:.6g} s, where {spent} evaluations have brought it on by {gained:.2g} of "
                f"{left:.2g} s: {largest_velocity(self._system.mech, v)}. Give velocities in rad/s and m/s, or a "
                "shorter duration"
            )
        if spent < PATIENCE:
            return
        if gained < min(LEAST_SHARE * left, LEAST_TIME * self._system.forces.time_unit):
            raise IntegrationFailed(
                f"it stalls at t = {t:.6g} s, where {spent} evaluations have brought it on by {gained:.2g} s. Forces "
                "seem to change faster than steps can follow, as those of a controller that switches to and fro do: "
                "take fixed steps (method='rk4', step=1e-3), ask a controller at a rate (lw.motion.held(control, "
                "1e-3)), or "
                "make the law smooth (np.tanh(x / width) in place of np.sign(x)); 'radau' follows what is smooth but "
                "very stiff"
            )
        self._t, self._evaluations = t, self._system.evaluations


def largest_velocity(mech: Mechanism, v: np.ndarray) -> str:
    """Text about the largest velocity in v (..., nv), for messages."""
    sizes = np.nan_to_num(np.abs(v), nan=np.inf, posinf=np.inf).reshape(-1, mech.nv).max(axis=0, initial=0.0)
    k = int(np.argmax(sizes))
    return f"the largest velocity is {sizes[k]:.3g}, of {mech.v_names[k]!r}"


@dataclass(frozen=True)
class Step:
    """A step from ``t_old`` to ``t``: ``x`` is projected at its end, ``between(time)`` interpolates without projection.

    system   the system of x, frozen if the interpolation is kept
    dense    whether the interpolation is as accurate as the method, and is kept
    settled  whether ``between`` returns states on the manifold: on arcs near singular positions
    """

    t_old: float
    t: float
    x: np.ndarray
    between: Callable[[float], np.ndarray]
    system: System
    dense: bool
    settled: bool = False

    def at(self, time: float) -> np.ndarray:
        """x at a time within the step, on the manifold."""
        return self.between(time) if self.settled else self.system.corrected(self.between(time))

    def state_between(self, time: float) -> tuple[np.ndarray, np.ndarray]:
        """(q, v) at a time within the step, on the manifold."""
        return self.system.state(self.at(time))


class Adaptive:
    """One of SciPy's methods, with error control by ``rtol`` and ``atol``; None: ``ABSOLUTE``."""

    def __init__(
        self,
        system: System,
        method: str,
        rtol: float,
        atol: Any,
        max_step: float,
        first_step: float | None,
    ):
        self._system, self._method, self._atol = system, method, atol
        self._options: dict[str, Any] = {"rtol": rtol, "max_step": max_step}
        self._derivatives = system.jacobian() if method in IMPLICIT else None
        if method in IMPLICIT:
            self._options["jac"] = None if self._derivatives is None else self._jacobian
        self.next_step = first_step
        self._lost: ChartError | None = None
        self._starts = False  # whether the next evaluation is the first one of a solver
        self._raised: Exception | None = None  # by the system, or by a function of the user
        self._before = np.zeros(0)  # x before the last step

    def steps(self, t: float, x: np.ndarray, end: float) -> Iterator[Step]:
        """The steps from (t, x) to ``end``."""
        system, corrects = self._system, self._method not in MULTISTEP and self._system.corrects
        solver, now = self._solver(t, system.rebased(x), end), system.frozen()
        crossings = Crossings(system)
        while True:
            arc, longest = self._step_or_arc(solver, crossings)
            if arc is not None:
                for step in self._arc_steps(arc, crossings.arc_states(arc), end, now):
                    yield step
                if step.t == end:
                    return
                self.next_step = None  # the method's step size before the arc is meaningless after it
                solver = self._solver(step.t, step.x, end)  # and so are its values of earlier steps
                continue
            if longest < solver.step_size:
                solver = self._solver(solver.t_old, self._before, end, longest)
                continue
            x, self._lost = system.corrected(solver.y) if corrects else solver.y, None
            if corrects:
                system.arrive(x)
            if system.chart is not None:  # variables and initial guesses change from step to step
                now = system.frozen()
            yield Step(solver.t_old, solver.t, x.copy(), _dense_output(solver, now), now, dense=True)
            self.next_step = getattr(solver, "h_abs", None)  # LSODA keeps its own
            if solver.status != "running":
                return
            if not corrects:
                continue
            based = system.rebased(x)
            if based is not x:  # the solver's values are in other variables
                solver = self._solver(solver.t, based, end)
            else:  # its next step uses y and the rates there
                solver.y, solver.f = x, system.rates(solver.t, x)

    def _step_or_arc(self, solver: Any, crossings: Crossings) -> tuple[Arc | None, float]:
        """Take the next step, or find the arc that replaces it; without an arc, the longest allowed step.  Methods that
        do not announce the length of their next step take it first; the arc then replaces it."""
        t, x, longest, max_step = solver.t, solver.y, math.inf, self._options["max_step"]
        says = hasattr(solver, "h_abs")
        if says:
            arc, longest = crossings.next_arc(t, x, getattr(solver, "f", None), min(solver.h_abs, max_step))
            if arc is not None:
                return arc, longest
            solver.max_step = min(longest, max_step)
        self._before, usual = x, solver.step_size or FIRST * (solver.t_bound - t)
        message = self._advanced(solver)
        if not says:
            arc, longest = crossings.next_arc(t, x, None, solver.t - t or usual)
            if arc is not None:
                return arc, longest
        if solver.status == "failed" or not np.isfinite(solver.y).all():
            why = "; ".join(str(reason) for reason in (message, self._lost) if reason)
            why = why or self._velocity(solver.y)  # LSODA does not say why
            raise IntegrationFailed(f"{self._method} cannot go on beyond t = {solver.t:.6g} s: {why}")
        return None, math.inf if says else longest

    def _arc_steps(self, arc: Arc, between: Between, end: float, system: System) -> Iterator[Step]:
        """Steps along an arc up to ``end``, no longer than the maximum step."""
        last = min(arc.t, end)
        count = math.ceil((last - arc.t_old) / self._options["max_step"]) or 1
        times = np.linspace(arc.t_old, last, count + 1).tolist()
        for t_old, t in itertools.pairwise(times):
            yield Step(t_old, t, between(t), between, system, dense=True, settled=True)

    def _solver(self, t: float, x: np.ndarray, end: float, longest: float = math.inf) -> Any:
        if not np.isfinite(x).all():
            raise IntegrationFailed(f"the state at t = {t:.6g} s is not finite: {self._velocity(x)}")
        atol = ABSOLUTE * self._system.units if self._atol is None else self._atol
        first, self._starts = self.next_step, True
        if first is None and self._method in ORDER_OF_ERRORS:  # LSODA chooses its own first step
            first = self._first_step(t, x, end, atol)
        options = {**self._options, "max_step": min(longest, self._options["max_step"])}
        first = None if first is None else min(first, end - t, options["max_step"])
        return ADAPTIVE[self._method](self._rates, t, x, end, first_step=first, atol=atol, **options)

    def _first_step(self, t: float, x: np.ndarray, end: float, atol: Any) -> float:
        """The first step by Hairer, Norsett and Wanner, Solving Ordinary Differential Equations I, II.4.  Unlike
        SciPy's, it scales with the time unit if the state or its rates are zero."""
        unit, scale = self._system.forces.time_unit, atol + np.abs(x) * self._options["rtol"]

        def size(y: np.ndarray) -> float:
            return float(np.linalg.norm(y / scale)) / math.sqrt(y.size)

        rates = self._rates(t, x)
        here, change = size(x), size(rates) * unit
        guess = FIRST_STEP * unit if min(here, change) < 1e-5 else 0.01 * here / change * unit
        guess = min(guess, end - t, self._options["max_step"])
        if not guess > 0.0:  # velocities overflow: the solver reports it
            return FIRST_STEP * unit
        bend = size(self._rates(t + guess, x + guess * rates) - rates) * unit**2 / guess
        steepest = max(change, bend)
        if steepest <= 1e-15:
            return max(1e-3 * guess, FIRST_STEP * unit)
        return min(100.0 * guess, (0.01 / steepest) ** (1.0 / (ORDER_OF_ERRORS[self._method] + 1)) * unit)

    def _advanced(self, solver: Any) -> str | None:
        """Let the solver take a step; returns its message on failure.  Errors of linear algebra are failures too."""
        try:
            return solver.step()
        except ValueError as error:
            if error is self._raised:
                raise
            raise IntegrationFailed(
                f"{self._method} cannot go on beyond t = {solver.t:.6g} s: {error}; {self._velocity(solver.y)}"
            ) from error

    def _rates(self, t: float, x: np.ndarray) -> np.ndarray:
        """dx/dt; NaN where a trial step leaves the chart, so that the solver tries a shorter one."""
        starts, self._starts = self._starts, False
        try:
            rates = self._system.rates(t, x)
        except ChartError as lost:
            self._lost = lost
            return np.full_like(x, np.nan)
        except Exception as error:
            self._raised = error
            raise
        if starts and not np.isfinite(rates).all():  # SciPy's search for a first step would not end
            raise IntegrationFailed(
                f"the accelerations at t = {t:.6g} s are not finite: {self._velocity(x)}, and forces grow with its "
                "square. Check v0, and what control and wrenches return"
            )
        return rates

    def _jacobian(self, t: float, x: np.ndarray) -> np.ndarray:
        """d(rates)/dx; raises where it is not finite."""
        assert self._derivatives is not None
        try:
            matrix = self._derivatives(t, x)
        except np.linalg.LinAlgError:
            matrix = np.full((x.size, x.size), np.nan)
        except Exception as error:
            self._raised = error
            raise
        if not np.isfinite(matrix).all():
            raise IntegrationFailed(
                f"derivatives of the accelerations, which {self._method} needs, are not finite at t = {t:.6g} s: "
                f"{self._velocity(x)}"
            )
        return matrix

    def _velocity(self, x: np.ndarray) -> str:
        """Text about the largest velocity of a state, for messages."""
        return largest_velocity(self._system.mech, self._system.state(x)[1])


def _dense_output(solver: Any, system: System) -> Callable[[float], np.ndarray]:
    """The solver's interpolation of its last step, valid also after later steps."""
    return _Later(solver, system) if isinstance(solver, scipy.integrate.DOP853) else solver.dense_output()


class _Later:
    """The interpolation of a step by DOP853, computed on first use.  It needs three more evaluations of the rates, by
    the system frozen at the step, and a copy of the stages, which the next step overwrites."""

    def __init__(self, solver: scipy.integrate.DOP853, system: System):
        self._solver: Any = object.__new__(scipy.integrate.DOP853)
        for name in ("n", "t_old", "t", "h_previous", "y_old", "y", "f"):  # inputs of SciPy's interpolation
            setattr(self._solver, name, getattr(solver, name))
        self._solver.K_extended, self._solver.fun = solver.K_extended.copy(), system.rates
        self._made: Callable[[float], np.ndarray] | None = None

    def __call__(self, time: float) -> np.ndarray:
        if self._made is None:
            self._made, self._solver = self._solver.dense_output(), None
        return self._made(time)


# -- fixed steps --------------------------------------------------------------------------------------------------


class Fixed:
    """Steps of one size by one of the methods in ``algorithms/integration.py``.

    Times are origin + k step with integer k, so that a resumed motion has the same times.
    """

    def __init__(self, system: System, method: str, step: float, origin: float, index: int):
        self._system, self._method = system, method
        self._origin, self._index = origin, index
        self.next_step = step

    @property
    def grid(self) -> tuple[float, float, int]:
        """Origin, step and the number of steps since the origin."""
        return self._origin, self.next_step, self._index

    def steps(self, t: float, x: np.ndarray, end: float) -> Iterator[Step]:
        """The steps from (t, x) to ``end``."""
        self._fit(t, end)
        count = round((end - t) / self.next_step)
        advance, h = self._stepper(), self.next_step
        crossings = Crossings(self._system)
        for _ in range(count):
            t_new, x = self._origin + (self._index + 1) * h, self._system.rebased(x)
            crosses = crossings.plan(t, x, t_new)
            step = partial(self._step, advance, t, x)
            reached = (crossings.planned(x.shape, step) if crosses else step)(t_new)
            self._system.arrive(reached)
            if not np.isfinite(reached).all():
                raise IntegrationFailed(
                    f"{self._method} with steps of {h:g} s leaves all bounds at t = {t_new:.6g} s: take smaller steps"
                )
            between: Between = _Hermite(self._system, t, x, t_new, reached)
            between = crossings.planned(x.shape, between) if crosses else between
            yield Step(t, t_new, reached.copy(), between, self._system, dense=False, settled=crosses)
            self._index += 1  # now that the step is on record
            t, x = t_new, reached

    def _step(self, advance: Stepper, t: float, x: np.ndarray, t_new: float) -> np.ndarray:
        return advance(t, x, self.next_step)

    def _fit(self, t: float, end: float) -> None:
        """Make the time to ``end`` a whole number of steps, if needed by a new grid with a slightly different step."""
        count = (end - t) / self.next_step
        steps = max(1, round(count))
        here, slack = self._origin + self._index * self.next_step, WHOLE * self.next_step
        on_grid = math.isclose(t, here, rel_tol=WHOLE, abs_tol=slack)
        if not on_grid or abs(count - steps) > WHOLE * steps:
            self._origin, self._index, self.next_step = t, 0, (end - t) / steps

    def _stepper(self) -> Stepper:
        """A step that ends on the manifold."""
        step, corrected = self._system.step(methods_in("momentum")[self._method]), self._system.corrected
        return self._system.compiled_step(self._method) or (lambda t, x, h: corrected(step(t, x, h)))


class _Hermite:
    """Cubic Hermite interpolation of x and its rates over a step; fourth-order error."""

    def __init__(self, system: System, t_old: float, x_old: np.ndarray, t: float, x: np.ndarray):
        self._system, self._ends = system, ((t_old, x_old), (t, x))
        self._knots: list[Knot] | None = None

    def __call__(self, time: float) -> np.ndarray:
        if self._knots is None:
            self._knots = [Knot(t, x, self._system.rates(t, x)) for t, x in self._ends]
        return hermite(time, *self._knots)


class Knot(NamedTuple):
    """Interpolation condition at the time t: value, slope and second derivative."""

    t: Any
    x: Any
    rate: Any
    bend: Any = None


def hermite(time: Any, first: Knot, last: Knot) -> np.ndarray:
    """The cubic through the values and slopes of two knots, at ``time``."""
    h = last.t - first.t
    s = (time - first.t) / h
    away = 1.0 - s
    start = away**2 * ((1.0 + 2.0 * s) * first.x + s * h * first.rate)
    return start + s**2 * ((1.0 + 2.0 * away) * last.x - away * h * last.rate)


def quintic(time: Any, first: Knot, last: Knot) -> tuple[np.ndarray, np.ndarray]:
    """The polynomial of degree five through two knots with their second derivatives, and its slope."""
    h = last.t - first.t

    def end_contribution(s: Any, h: Any, knot: Knot) -> tuple[Any, Any]:
        away, x, rate, bend = 1.0 - s, knot.x, h * knot.rate, h**2 * knot.bend
        rest = (1.0 + 3.0 * s + 6.0 * s**2) * x + s * (1.0 + 3.0 * s) * rate + 0.5 * s**2 * bend
        change = (3.0 + 12.0 * s) * x + (1.0 + 6.0 * s) * rate + s * bend
        return away**3 * rest, away**2 * (away * change - 3.0 * rest) / h

    start = end_contribution((time - first.t) / h, h, first)
    end = end_contribution((last.t - time) / h, -h, last)
    return start[0] + end[0], start[1] + end[1]


def whole_steps(duration: float, step: float) -> None:
    """Refuse a duration without a whole step in it."""
    if round(duration / step) < 1:
        raise MechanismError(
            f"a motion of {duration:g} s needs at least one step of {step:g} s: give a step that is not longer"
        )
