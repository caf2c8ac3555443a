"""From steps to a record: samples, events, progress, and why the motion ended."""

from __future__ import annotations

import sys
import time
from dataclasses import dataclass, field

import numpy as np

from ..mechanism import MechanismError
from .events import Occurrence, Watch
from .integrators import Adaptive, Fixed, IntegrationFailed, Step
from .systems import Chart, System

AT_END = 1e-12  # relative to the time; samples as near as this to the end of a step are taken there


@dataclass
class Record:
    """What a motion leaves behind; ``t``, ``x``, the state (q, v) and what x means (``chart``) are where it ended."""

    t: float
    x: np.ndarray
    state: tuple[np.ndarray, np.ndarray]
    chart: Chart | None
    times: list[float] = field(default_factory=list)
    states: list[tuple[np.ndarray, np.ndarray]] = field(default_factory=list)
    forces: list[np.ndarray] = field(default_factory=list)
    wrenches: list[np.ndarray] = field(default_factory=list)
    step_sizes: list[float] = field(default_factory=list)
    occurrences: list[Occurrence] = field(default_factory=list)
    stopped: str = "duration"
    failure: Exception | None = None


class Sampler:
    """Writes states to a record: at the ends of steps, or at given times."""

    def __init__(self, system: System, record: Record, times: np.ndarray | None):
        self._system, self._record = system, record
        self._times, self._next = times, 0

    def start(self, t: float, state: tuple[np.ndarray, np.ndarray]) -> None:
        if self._times is None or self._due(t) and self._times[self._next] <= t:
            self._write(t, state)
            self._next += 1

    def step(self, step: Step, end: float, at_end: tuple[np.ndarray, np.ndarray]) -> None:
        """Samples of a step that is valid up to ``end``, with the state there."""
        if self._times is None:
            self._write(end, at_end)
            return
        while self._due(end):
            t = float(self._times[self._next])
            near = abs(t - end) <= AT_END * max(1.0, abs(end))
            self._write(t, at_end if near else self._system.state_between(step.between(t)))
            self._next += 1

    def _due(self, end: float) -> bool:
        assert self._times is not None
        return self._next < len(self._times) and self._times[self._next] <= end + AT_END * max(1.0, abs(end))

    def _write(self, t: float, state: tuple[np.ndarray, np.ndarray]) -> None:
        forces = self._system.forces.commanded(t, *state)  # may raise: nothing is written then
        wrenches = self._system.forces.wrenches(t, *state)
        self._record.times.append(t)
        self._record.states.append(tuple(np.array(part) for part in state))  # type: ignore[arg-type]
        self._record.forces.append(np.array(forces))
        if wrenches is not None:
            self._record.wrenches.append(np.array(wrenches))


def run(
    system: System,
    integrator: Adaptive | Fixed,
    record: Record,
    end: float,
    times: np.ndarray | None,
    watch: Watch,
    progress: Progress,
) -> None:
    """Go from the record's state to ``end``, segment by segment, until something stops it."""
    sampler, start = Sampler(system, record, times), record.t
    boundaries = np.linspace(start, end, system.forces.segments + 1)
    try:
        system.forces.enter(0)
        watch.start(start, *record.state)
        sampler.start(start, record.state)
        for segment, boundary in enumerate(boundaries[1:]):
            system.forces.enter(segment)
            for step in integrator.steps(record.t, record.x, float(boundary)):
                _take(system, step, record, sampler, watch)
                progress.show(record.t)
                if record.stopped != "duration":
                    return
    except KeyboardInterrupt:
        record.stopped = "interrupted"
    except (IntegrationFailed, MechanismError) as failure:
        record.stopped, record.failure = f"failed: {failure}", failure
    finally:
        progress.finish(record.t)


def _take(system: System, step: Step, record: Record, sampler: Sampler, watch: Watch) -> None:
    """One step into the record; a terminal event shortens it."""

    def between(t: float) -> tuple[np.ndarray, np.ndarray]:
        return system.state_between(step.between(t))

    end, x, state, stopped = step.t, step.x, system.state(step.x), record.stopped
    occurrences, is_last = watch.within(step.t_old, step.t, state, between) if len(watch) else ([], False)
    if is_last:
        end, stopped = occurrences[-1].t, f"event: {occurrences[-1].name}"
        if end < step.t:
            x = system.corrected(step.between(end))
            state = system.state(x)
    sampler.step(step, end, state)
    record.occurrences += occurrences
    record.step_sizes.append(end - step.t_old)
    record.t, record.x, record.state, record.chart, record.stopped = end, x, state, system.chart, stopped


class Progress:
    """A line on stderr that says how far the motion is; nothing if not wanted."""

    def __init__(self, start: float, end: float, wanted: bool):
        self._start, self._end, self._wanted = start, end, wanted
        self._began = self._shown = time.monotonic()
        self._interactive = sys.stderr.isatty()

    def show(self, t: float) -> None:
        if not self._wanted or time.monotonic() - self._shown < (0.1 if self._interactive else 5.0):
            return
        self._shown = time.monotonic()
        done = (t - self._start) / (self._end - self._start)
        left = (self._shown - self._began) * (1.0 - done) / max(done, 1e-9)
        self._say(t, done, f"{left:.0f} s left")

    def finish(self, t: float) -> None:
        if self._wanted:
            done = (t - self._start) / (self._end - self._start)
            self._say(t, done, f"in {time.monotonic() - self._began:.1f} s")
            if self._interactive:
                print(file=sys.stderr)

    def _say(self, t: float, done: float, rest: str) -> None:
        bar = "#" * round(30 * done)
        line = f"simulate [{bar:30}] {done:4.0%}  t = {t:.3f} s  {rest}"
        print(f"\r{line:78}" if self._interactive else line, end="" if self._interactive else "\n", file=sys.stderr)
        sys.stderr.flush()
