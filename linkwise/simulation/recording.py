"""From steps to a record: samples, events, progress, and why the motion ended."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from ..display import Bar
from ..mechanism import MechanismError
from .events import Occurrence, Watch
from .integrators import Adaptive, Fixed, Headway, IntegrationFailed, Step
from .systems import Chart, System

AT_END = 1e-12  # relative to the time; samples as near as this to the end of a step are taken there


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
    """What a step adds to a record, all in one, so that an interruption finds all of it there or nothing.

    size      of the step, 0 for the start
    t, x      where it ended, with the state (q, v) and what x means (``chart``)
    between   (q, v) at a time within it, where the method interpolates as well as it integrates
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
    """What a motion leaves behind, from its start on."""

    stretches: list[Stretch]
    stopped: str = "duration"
    failure: Exception | None = None

    @property
    def last(self) -> Stretch:
        """Where it ended."""
        return self.stretches[-1]

    @property
    def samples(self) -> list[Sample]:
        return [sample for stretch in self.stretches for sample in stretch.samples]

    @property
    def occurrences(self) -> tuple[Occurrence, ...]:
        return tuple(one for stretch in self.stretches for one in stretch.occurrences)

    @property
    def steps(self) -> list[Stretch]:
        """All but the start."""
        return self.stretches[1:]


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
        """Samples of a step that is valid up to ``end``, with x and the state there."""
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


def run(
    system: System,
    integrator: Adaptive | Fixed,
    record: Record,
    end: float,
    times: np.ndarray | None,
    watch: Watch,
    bar: Bar,
) -> None:
    """Go from where the record ends to ``end``, segment by segment, until something stops it."""
    sampler, start = Sampler(system, times), record.last
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
                record.stretches.append(_taken(system, step, sampler, watch))
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


def _taken(system: System, step: Step, sampler: Sampler, watch: Watch) -> Stretch:
    """One step for the record; a terminal event shortens it."""
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
