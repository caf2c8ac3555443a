"""``simulate``: the motion from a state, in adaptive or fixed steps, of any mechanism in any coordinates."""

from __future__ import annotations

import inspect
import math
import numbers
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import constraints
from ..constraints.equations import warn_if_open
from ..display import amount
from ..dynamics import trees as tree
from ..dynamics.by_joint import state_by_joint
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.resolved import no_controls, resolved
from ..dynamics.states import ByJoint, real_numbers, state_arrays
from ..mechanics.algorithms.steps_in_variables import VARIABLES, methods_in
from ..mechanism import (
    Mechanism,
    MechanismError,
    MechanismWarning,
    close_names,
    did_you_mean,
    require_mechanism,
    warn_caller,
)
from ..mechanism.quaternions import with_unit_quaternions
from ..mechanism.scales import scales
from .checks import (
    rubs,
    warn_of_creep,
    warn_of_drives,
    warn_of_inconsistent_velocities,
    warn_of_limits_left_out,
    warn_of_slip,
    warn_of_starts_beyond_limits,
    warn_of_starts_in_penetration,
)
from .events import Event, Occurrence, Watch
from .forces import Forces, Function
from .integrators import ADAPTIVE, MULTISTEP, Adaptive, Fixed, Headway, IntegrationFailed, Step
from .settings import GIVEN, Settings, Setup, check_positive, checked, with_floats
from .singular import SingularPositions
from .step import Step as CompiledStep
from .step import fixed_steps, warn_of_long_steps
from .system import Chart, FullState, IndependentCoordinates, Manifold, System
from .trajectory import KEEP, Dense, End, Trajectory

NOT_SAID = float("nan")  # default of the duration, which is refused: all arguments before it are optional
AT_END = 1e-12  # relative to the time; samples nearer than this to the end of a step are taken at the end
DEAD_CENTRE = 1e-3  # of the conditioning at the start: with less, driven motion needs unbounded velocities
NOT_FREE = (
    "keep_energy is for free motions: control, passive elements and wrenches change the energy, and so does what acts "
    "on the mechanism by itself (mech.with_acting(False) switches it off)"
)


class SimulationError(MechanismError):
    """A motion that could not be computed to its end.  ``trajectory`` is the part up to the failure."""

    def __init__(self, message: str, trajectory: Trajectory):
        super().__init__(message)
        self.trajectory = trajectory


def simulate(
    mech: Mechanism,
    q0: ByJoint | None = None,
    v0: ByJoint | None = None,
    duration: float = NOT_SAID,
    control: Any = None,
    method: str | None = None,
    step: float | None = None,
    *,
    ctrl: Any = None,
    activation: ArrayLike | None = None,
    wrenches: Any = None,
    forces: Any = ALL,
    passive: Passive | None = None,
    events: Event | Function | Sequence[Event | Function] = (),
    t_eval: Any = None,
    settings: Settings | None = None,
    **former: Any,
) -> Trajectory:
    """The motion from (q0, v0) for ``duration`` seconds, under all force elements of the mechanism (``forces="all"``).

    q0, v0          the initial state; None for ``mech.initial`` (the file's configuration, else neutral), loops
                    closed, and at rest; {joint: coordinates}, the others so; loops are closed with the named joints
                    held, and others move the least that keeps them closed while the named ones have their velocities
    control         joint forces: None (zero); ``control(t, q, v) -> tau`` or {joint: force}, or
                    ``lw.motion.held(control, period)``, asked at a rate; an array (nv,), constant; or (steps, nv), held
                    for equal times each
    method          "dop853", "rk45", "rk23", explicit, or "radau", "bdf", "lsoda", implicit: adaptive, with the
                    tolerances of ``settings``, no steps longer than ``step``; "rk4" and "semi_implicit": steps of
                    ``step`` (1 ms by default where offsets are 3 cm to 3 m), batches (..., nq) allowed.  None: "radau"
                    where friction of contacts acts, which it lets hold, or "dop853"
    ctrl            control inputs of the actuators (``mech.forces.actuator_names``), in the forms of ``control``: None
                    (zero), ``ctrl(t, q, v)``, an array (n_ctrl,) or (steps, n_ctrl); or {actuator: input}, functions
                    too
    activation      (..., n_activation): initial activations of actuators with dynamics, zero by default
    wrenches        external wrenches [moment; force] on the links, at their origins and in their frames: an array
                    (n_links, 6), constant, or ``wrenches(t, q, v)`` that gives one
    forces          force elements that act: "all", what ``mech.with_acting`` leaves switched on; "none", kinds by name
                    or a ``lw.forces.Passive``, which acts alone: see ``lw.forward_dynamics``
    passive         springs, dampers, friction, stops, cylinders in place of those of the mechanism's own joints, beside
                    its actuators and contacts
    events          one or several, from ``lw.motion``, or functions of (t, q, v): their zeros are found and recorded
    t_eval          times at which to sample, or one number, the time between samples; the ends of steps by default
    settings        tolerances, coordinates, stabilization and more: ``lw.motion.Settings(rtol=1e-10)``

    Ctrl-C ends the motion: what was computed is returned, with ``interrupted`` set.
    """
    require_mechanism(mech)
    options = {"t_eval": t_eval, "settings": settings}
    t_eval, settings = _apply_former_keywords(options, former).values() if former else options.values()
    settings = settings or Settings()
    if not isinstance(settings, Settings):
        raise TypeError(f"settings must be lw.motion.Settings(...), such as Settings(rtol=1e-10), not {settings!r}")
    if isinstance(settings, Setup):
        settings = settings.settings()
    if duration is NOT_SAID:
        raise MechanismError("duration is missing, the seconds to simulate: lw.simulate(mech, q0, v0, duration=2.0)")
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    if passive is not None and not isinstance(passive, Passive):
        raise TypeError(f"passive must be a linkwise.forces.Passive, such as Passive.of(mech), not {passive!r}")
    method = method or ("radau" if rubs(mech) else "dop853")
    setup = checked(mech, settings, method, step, duration)
    acting = resolved(mech, passive, *_step_lengths(setup))
    if settings.keep_energy and any(force is not None for force in (control, acting, wrenches)):
        raise ValueError(NOT_FREE)
    warn_of_drives(mech, 0.0, duration)
    now = mech.constraints.at_time(0.0)
    q, v = _initial_state(now, q0, v0, setup, passive)
    if setup.stabilization is None:  # loops stay as open as they are
        warn_if_open(now, constraints.position_error(now, q))
    driving = Forces(mech, control, acting, q.shape[:-1], wrenches, ctrl)
    if driving.n_activation and setup.coordinates == "independent":
        raise MechanismError(
            "coordinates='independent' are those of the mechanism alone, and some of its actuators have states of "
            "their own: use coordinates='joint', or switch them off with mech.with_acting(actuators=...)"
        )
    setup, manifold, corrected = _project_start(now, setup, q, v, duration)
    system = _system(mech, setup, driving, manifold, settings.independent)
    x = _set_activation(system, system.start(*corrected), activation)
    state = system.state(x)
    warn_of_inconsistent_velocities(now, state, v)
    start = Stretch(0.0, 0.0, x, state, system.chart)
    course = Course(start, duration, _sample_times(0.0, duration, t_eval), Watch(events), settings.progress)
    return _integrate(system, _integrator(system, setup, None), course, setup, passive)


def _apply_former_keywords(options: dict[str, Any], former: Mapping[str, Any]) -> dict[str, Any]:
    """Options with keywords of version 0.1 moved to their present names, under a DeprecationWarning."""
    of_settings = [field.name for field in fields(Settings)]
    moved = dict.fromkeys(of_settings, "settings") | {"output_step": "t_eval"}
    for name, value in former.items():
        if name not in moved:
            raise TypeError(
                f"simulate() got an unexpected keyword argument {name!r}: {_suggest_keyword(name, of_settings)}"
            )
        now = f"settings=lw.motion.Settings({name}=...)" if name in of_settings else f"{moved[name]}=..."
        warn_caller(
            f"lw.simulate(..., {name}=...) is {now} now; the old name goes with version 0.3", DeprecationWarning
        )
        if name in of_settings:
            options["settings"] = replace(options["settings"] or Settings(), **{name: value})
        elif value is not None:
            if options[moved[name]] is not None:
                raise ValueError(f"give {moved[name]} or {name}, not both")
            options[moved[name]] = value
    return options


def _suggest_keyword(name: str, of_settings: Sequence[str]) -> str:
    """Suggestion for an unknown keyword of ``simulate``, fields of settings included."""
    arguments = [*inspect.signature(simulate).parameters][:-1]
    close = [
        f"settings=lw.motion.Settings({known}=...)" if known in of_settings else repr(known)
        for known in close_names(name, [*arguments, *of_settings])
    ]
    if close:
        return f"did you mean {' or '.join(close)}?"
    return did_you_mean(name, sorted(arguments, key=lambda known: known != "settings"))  # settings first


def resumed(
    before: Trajectory,
    duration: float,
    control: Any,
    wrenches: Any,
    ctrl: Any,
    independent: Any,
    options: Mapping[str, Any],
) -> Trajectory:
    """The continuation of a trajectory, from its end."""
    known = ("events", "t_eval", "progress")
    for name in options:
        if name not in (*known, "output_step"):
            raise TypeError(f"a motion goes on as it was: {name!r} cannot be changed; " + did_you_mean(name, known))
    mech, end, setup = before.mechanism, before.end, with_floats(before.settings, duration)
    control, wrenches = (
        _resumed_value("control", control, setup.control),
        _resumed_value("wrenches", wrenches, setup.wrenches),
    )
    independent = _resumed_independent(independent, end)
    ctrl = _resumed_value("ctrl", ctrl, setup.ctrl)
    acting = resolved(mech, before.passive, *_step_lengths(setup))
    forces = Forces(mech, control, acting, end.q.shape[:-1], wrenches, ctrl)
    setup = setup.completed(time_unit=setup.time_unit or scales(mech).time_of(end.v, duration))
    manifold = _manifold(mech.constraints.at_time(end.t), setup, end.q.shape[:-1])
    system = _system(mech, setup, forces, manifold, independent)
    if isinstance(system, IndependentCoordinates) and end.chart is not None:
        system.restore(end.chart, end.x, end.q, end.v)
    start, t_eval = Stretch(0.0, end.t, end.x, (end.q, end.v), end.chart), {"t_eval": options.get("t_eval")}
    if "output_step" in options:
        t_eval = _apply_former_keywords(t_eval, {"output_step": options["output_step"]})
    times = _sample_times(end.t, duration, t_eval["t_eval"])
    watch = Watch(_resumed_events(options.get("events", KEEP), setup.events))
    course = Course(start, duration, times, watch, options.get("progress"))
    return _integrate(system, _integrator(system, setup, end), course, setup, before.passive)


def _integrate(
    system: System, integrator: Adaptive | Fixed, course: Course, settings: Setup, passive: Passive | None
) -> Trajectory:
    """Integrate the course and build its trajectory; raises ``SimulationError`` on failure."""
    start, watch = course.start, course.watch
    record, mech = Record([start]), system.mech
    if len(watch) and start.x.ndim > 1:
        raise MechanismError("events are looked for in one motion at a time; simulate the states of a batch one by one")
    run(system, integrator, record, course)
    samples, last, batch = record.samples, record.last, start.x.shape[:-1]
    sizes = {"q": mech.nq, "v": mech.nv, "tau": mech.nv}
    sizes |= {"ctrl": system.forces.n_ctrl, "activation": system.forces.n_activation}
    q, v, tau, ctrl, activation = (
        np.array([getattr(sample, name) for sample in samples]).reshape(len(samples), *batch, size)
        for name, size in sizes.items()
    )
    q = system.manifold.with_unit_quaternions(q) if settings.method in MULTISTEP else q
    wrenches = None
    if system.forces.push_links:
        wrenches = np.array([sample.wrenches for sample in samples]).reshape(*v.shape[:-1], mech.n_links, 6)
    trajectory = Trajectory(
        mechanism=mech,
        t=np.array([sample.t for sample in samples]),
        q=q,
        v=v,
        a=system.accelerations(
            np.array([sample.t for sample in samples]),
            q,
            v,
            system.forces.add_elements(q, v, tau, ctrl, activation),
            wrenches,
        ),
        tau=tau,
        passive=passive,
        events=record.occurrences,
        step_sizes=np.array([step.size for step in record.steps]),
        evaluations=system.evaluations,
        stopped=record.stopped,
        chart_changes=system.changes if isinstance(system, IndependentCoordinates) else 0,
        settings=settings.completed(**system.forces.noted, events=watch.names),
        end=End(
            last.t,
            np.array(last.state[0]),
            np.array(last.state[1]),
            last.x,
            integrator.grid if isinstance(integrator, Fixed) else None,
            integrator.next_step if isinstance(integrator, Adaptive) else None,
            last.chart,
        ),
        wrenches=wrenches,
        ctrl=ctrl,
        activation=activation,
        dense=record.dense if isinstance(integrator, Adaptive) else None,
    )
    explicit_step, implicit_step = _step_lengths(settings)
    if explicit_step is not None and system.forces.acting is not None:
        warn_of_creep(mech, settings.method, system.forces.acting.acting, explicit_step, trajectory.v)
    if implicit_step is None:  # explicit friction has a bounded slope
        warn_of_slip(mech, settings.method, explicit_step, trajectory.t, trajectory.q, trajectory.v)
    if record.failure is not None:
        why = "" if batch else _dead_centre(mech, start.state[0], last.state[0], last.t)
        message = f"mechanism {mech.name!r} was followed to t = {last.t:.6g} s only: {why}{record.failure}"
        raise SimulationError(message, trajectory) from record.failure
    return trajectory


# -- the parts -------------------------------------------------------------------------------------------------------


def _manifold(mech: Mechanism, settings: Setup, batch: tuple[int, ...]) -> Manifold:
    rank, energy = settings.array("rank", int, batch), settings.array("energy", float, batch)
    return Manifold(
        SingularPositions(mech, rank, settings.usual_conditioning or 1.0),
        settings.formulation,
        settings.gains,
        settings.stabilization == "projection" and (rank is not None or energy is not None),
        settings.tolerance,
        energy,
    )


def _project_start(
    mech: Mechanism, settings: Setup, q: np.ndarray, v: np.ndarray, duration: float
) -> tuple[Setup, Manifold, tuple[np.ndarray, np.ndarray]]:
    """The settings with rank and energy at (q, v), the constraint manifold, and the state projected onto it."""
    batch, positions = q.shape[:-1], SingularPositions.around(mech, q)
    usual = positions.usual_conditioning if positions.rank is not None and q.size else None
    time_unit = scales(mech).time_of(v, duration)
    settings = settings.completed(rank=positions.rank, usual_conditioning=usual, time_unit=time_unit)
    manifold = _manifold(mech, settings, batch)
    try:
        q, v = manifold.settled(q, v)
    except constraints.AssemblyError as error:
        advice = "a motion starts with closed loops: q0 = constraints.assemble(mech, guess), or {joint: coordinates}"
        raise constraints.AssemblyError(f"{error}; {advice}", error.loop, error.residual, error.q) from None
    if settings.keep_energy:
        settings = settings.completed(energy=tree.kinetic_energy(mech, q, v) + tree.potential_energy(mech, q))
        manifold = _manifold(mech, settings, batch)
    return settings, manifold, (q, v)


def _system(
    mech: Mechanism,
    settings: Setup,
    forces: Forces,
    manifold: Manifold,
    independent: Any,
) -> System:
    forces.time_unit = settings.time_unit or 1.0
    if settings.coordinates == "independent":
        return IndependentCoordinates(mech, forces, manifold, independent, settings.worst_condition)
    return FullState(mech, forces, manifold, settings.coordinates)


def _integrator(system: System, settings: Setup, end: End | None) -> Adaptive | Fixed:
    method, step = settings.method, settings.step
    if method not in ADAPTIVE:
        assert step is not None
        origin, step, index = end.grid if end is not None and end.grid is not None else (0.0, step, 0)
        if system.forces.acting is not None:
            coordinates = settings.coordinates if settings.coordinates in VARIABLES else "joint"
            fixed = CompiledStep(method, system.forces.acting.acting, coordinates=coordinates)
            warn_of_long_steps(system.mech, fixed, step)
        return Fixed(system, method, step, origin, index)
    limit, first = math.inf if step is None else step, None if end is None else end.step
    return Adaptive(system, method, settings.rtol, settings.atol, limit, first)


def _step_lengths(settings: Setup) -> tuple[float | None, float | None]:
    return fixed_steps(settings.method, settings.step, coordinates=settings.coordinates)


def _set_activation(system: System, x: np.ndarray, activation: Any) -> np.ndarray:
    """x with the caller's initial activations."""
    if activation is None:
        return x
    n = system.forces.n_activation
    if not n:
        raise MechanismError(no_controls(system.mech, "activation"))
    values = real_numbers("activation", activation)
    if values.shape[-1:] != (n,) or not np.isfinite(values).all():
        raise MechanismError(
            f"activation must be {n} finite numbers, one per actuator with dynamics, not {activation!r}"
        )
    system.activation(x)[...] = values  # a view
    return x


def _dead_centre(mech: Mechanism, start: np.ndarray, q: np.ndarray, t: float) -> str:
    """Explanation for a driven motion that fails in a dead centre at q; empty elsewhere."""
    now, driven = mech.constraints.at_time(t), mech.constraints.driven
    rank = constraints.generic_rank(now, start) if driven else 0
    if not rank or constraints.conditioning(now, q, rank) > DEAD_CENTRE * constraints.conditioning(now, start, rank):
        return ""
    names, plural = ", ".join(map(repr, driven)), "s" if len(driven) > 1 else ""
    return (
        f"it is in a dead centre (a singular position) there, through which drive{plural} {names} cannot move it: "
        "lw.linkages.range_of_motion(mech.constraints.without_drives(), joint) says how far a joint goes. "
    )


# -- arguments -------------------------------------------------------------------------------------------------------


def _initial_state(
    mech: Mechanism, q0: ByJoint | None, v0: ByJoint | None, setup: Setup, passive: Passive | None
) -> tuple[np.ndarray, np.ndarray]:
    """Initial positions and velocities with one batch shape.  Warns of starts beyond limits or in penetration, and of
    limits that ``passive`` leaves out."""
    q, v = state_arrays(mech, state_by_joint(mech, {"q0": q0, "v0": v0}), optional=True).values()
    method, coordinates = setup.method, setup.coordinates
    if q.ndim > 1 and coordinates == "independent":
        raise MechanismError(
            "coordinates='independent' take one state at a time: for a batch use coordinates='joint' with one of the "
            f"methods {', '.join(methods_in('joint'))}"
        )
    if q.ndim > 1 and method in ADAPTIVE:
        raise MechanismError(
            f"method={method!r} chooses its steps for one state at a time: for a batch use one of the methods "
            f"{', '.join(methods_in(coordinates))}, or simulate its states one by one"
        )
    warn_of_limits_left_out(mech, passive)
    if passive is None:
        warn_of_starts_beyond_limits(mech, q)
    warn_of_starts_in_penetration(mech, q)
    q, v = with_unit_quaternions(mech, "q0", q.copy()), v.copy()
    return (
        (q, constraints.project(mech, q, v)[1]) if mech.constraints.driven and v0 is None else (q, v)
    )  # the slowest motion that drives allow


def _sample_times(start: float, duration: float, t_eval: Any) -> np.ndarray | None:
    if t_eval is None:
        return None
    if not isinstance(t_eval, (numbers.Real, str)):
        t_eval = real_numbers("t_eval", t_eval)
    if np.ndim(t_eval) == 0:
        check_positive("t_eval", t_eval, "number of seconds between samples, or a list of times")
        intervals = math.floor(duration / t_eval * (1.0 + 1e-12))
        even = start + t_eval * np.arange(intervals + 1)
        return even if math.isclose(even[-1], start + duration) else np.append(even, start + duration)
    times: np.ndarray = t_eval
    if times.ndim != 1 or not np.isfinite(times).all() or (np.diff(times) <= 0.0).any():
        raise MechanismError("t_eval must be a list of times, each later than the one before")
    slack = 1e-12 * (start + duration)
    if len(times) and (times[0] < start - slack or times[-1] > start + duration + slack):
        raise MechanismError(f"t_eval must be between {start:g} and {start + duration:g} s")
    return times


def _resumed_value(name: str, value: Any, before: Any) -> Any:
    """The value for the continued motion: the argument if given, else the value before."""
    if value is not KEEP:
        return value
    if before == GIVEN:
        raise MechanismError(
            f"{name} was a function or a table, which is no part of a trajectory: give it again with "
            f"resume(..., {name}=...)"
        )
    return before


def _resumed_events(events: Any, before: tuple[str, ...]) -> Any:
    """Events of the continued motion; earlier ones are functions, and lost unless passed again."""
    if events is not KEEP:
        return events
    if before:
        warn_caller(
            f"the motion goes on without the events {', '.join(map(repr, before))}, which are no part of a "
            "trajectory: give them again with resume(..., events=...), or events=() to go on without",
            MechanismWarning,
        )
    return ()


def _resumed_independent(independent: Any, end: End) -> Any:
    """The user's independent coordinates; required exactly if the chart at the end is made of functions."""
    needed = end.chart is not None and end.chart.rows is None
    if independent is KEEP and needed:
        raise MechanismError(
            "the independent coordinates are functions, which are no part of a trajectory: give them again with "
            "resume(..., independent=...)"
        )
    if independent is not KEEP and not needed:
        raise MechanismError("the independent coordinates in use at the end are part of the trajectory: leave them out")
    return None if independent is KEEP else independent


# -- the record ------------------------------------------------------------------------------------------------------

State = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Sample:
    """A row of a trajectory."""

    t: float
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    wrenches: np.ndarray | None
    ctrl: np.ndarray
    activation: np.ndarray


@dataclass(frozen=True)
class Stretch:
    """The contribution of one step to a record: added at once, so that an interruption never splits it.

    size      length of the step, 0 for the start
    t, x      its end, with the state (q, v) and the ``chart`` that x belongs to
    between   (q, v) at a time within the step; None unless interpolation is as accurate as integration
    """

    size: float
    t: float
    x: np.ndarray
    state: State
    chart: Chart | None
    samples: tuple[Sample, ...] = ()
    occurrences: tuple[Occurrence, ...] = ()
    between: Callable[[float], State] | None = None
    stopped: str | None = None


@dataclass
class Record:
    """The record of a motion, from its start on."""

    stretches: list[Stretch]
    stopped: str = "duration"
    failure: Exception | None = None

    @property
    def last(self) -> Stretch:
        """The last stretch."""
        return self.stretches[-1]

    @property
    def samples(self) -> list[Sample]:
        return [sample for stretch in self.stretches for sample in stretch.samples]

    @property
    def occurrences(self) -> tuple[Occurrence, ...]:
        return tuple(occurrence for stretch in self.stretches for occurrence in stretch.occurrences)

    @property
    def steps(self) -> list[Stretch]:
        """All stretches except the start."""
        return self.stretches[1:]

    @property
    def dense(self) -> Dense:
        """Interpolation of all steps that have one."""
        known = [(step.t - step.size, step.between) for step in self.steps if step.between is not None]
        return Dense(np.array([start for start, _ in known]), tuple(between for _, between in known))


class Sampler:
    """Takes samples: at the ends of steps, or at given times."""

    def __init__(self, system: System, times: np.ndarray | None):
        self._system = system
        self._times, self._next = times, 0

    def start(self, t: float, x: np.ndarray, state: State) -> tuple[Sample, ...]:
        if self._times is None or self._due(t) and self._times[self._next] <= t:
            self._next += 1
            return (self._sample(t, x, state),)
        return ()

    def step(self, step: Step, end: float, x_end: np.ndarray, at_end: State) -> tuple[Sample, ...]:
        """Samples within a step up to ``end``, where x is ``x_end`` and the state ``at_end``."""
        if self._times is None:
            return (self._sample(end, x_end, at_end),)
        samples = []
        while self._due(end):
            t = float(self._times[self._next])
            near = abs(t - end) <= AT_END * max(1.0, abs(end))
            x = x_end if near else step.at(t)
            samples.append(self._sample(t, x, at_end if near else step.system.state(x)))
            self._next += 1
        return tuple(samples)

    def _due(self, end: float) -> bool:
        assert self._times is not None
        return self._next < len(self._times) and self._times[self._next] <= end + AT_END * max(1.0, abs(end))

    def _sample(self, t: float, x: np.ndarray, state: State) -> Sample:
        forces = self._system.forces
        tau, wrenches, ctrl = (get(t, *state) for get in (forces.commanded, forces.wrenches, forces.controls))
        q, v = (np.array(part) for part in state)
        pushed, activation = None if wrenches is None else np.array(wrenches), self._system.activation(x)
        return Sample(t, q, v, np.array(tau), pushed, np.array(ctrl), np.array(activation))


@dataclass(frozen=True)
class Course:
    """The course of a motion: its start, duration, sample times and events.

    times      sample times, None for the ends of steps
    progress   whether to show a progress bar
    """

    start: Stretch
    duration: float
    times: np.ndarray | None
    watch: Watch
    progress: bool | None


def run(system: System, integrator: Adaptive | Fixed, record: Record, course: Course) -> None:
    """Extend a record to the end of the course, segment by segment, or to an event, failure or interruption."""
    sampler, start, watch = Sampler(system, course.times), record.last, course.watch
    bar, end = amount("simulate", course.duration, "s", course.progress), start.t + course.duration
    boundaries = system.forces.boundaries(start.t, end)
    headway = Headway(system, start.t, end) if isinstance(integrator, Adaptive) else None
    try:
        system.forces.enter(0, start.t, *start.state)
        watch.start(start.t, *start.state)
        record.stretches[-1] = replace(start, samples=sampler.start(start.t, start.x, start.state))
        for segment, boundary in enumerate(boundaries[1:]):
            if segment:
                system.forces.enter(segment, float(record.last.t), *record.last.state)
            for step in integrator.steps(record.last.t, record.last.x, float(boundary)):
                record.stretches.append(_record_step(system, step, sampler, watch))
                bar.reach(record.last.t - start.t)
                if record.last.stopped is not None:
                    record.stopped = record.last.stopped
                    return
                if headway is not None:
                    headway.check(record.last.t, record.last.state[1])
    except KeyboardInterrupt:
        record.stopped = record.last.stopped or "interrupted"
    except (IntegrationFailed, MechanismError) as failure:
        record.stopped, record.failure = f"failed: {failure}", failure
    finally:
        bar.close()


def _record_step(system: System, step: Step, sampler: Sampler, watch: Watch) -> Stretch:
    """The stretch of one step; a terminal event shortens it."""
    end, x, state, stopped = step.t, step.x, system.state(step.x), None
    occurrences, is_last = watch.within(step.t_old, step.t, state, step.state_between) if len(watch) else ([], False)
    if is_last:
        end, stopped = occurrences[-1].t, f"event: {occurrences[-1].name}"
        if end < step.t:
            x = step.at(end)
            system.arrive(x)
            state = system.state(x)
    return Stretch(
        end - step.t_old,
        end,
        x,
        state,
        system.chart,
        sampler.step(step, end, x, state),
        tuple(occurrences),
        step.state_between if step.dense else None,
        stopped,
    )
