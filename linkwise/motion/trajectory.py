"""Trajectories, the results of simulations: energies, reactions, resampling, and files of NumPy arrays and JSON.

Reading a file runs no code from it.
"""

from __future__ import annotations

import dataclasses
import json
import zipfile
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from .. import constraints
from ..compiler.pipeline import compile
from ..constraints.accelerations import accelerations
from ..constraints.reactions import wrenches_of_joints
from ..constraints.solver import Inputs
from ..constraints.tolerances import LOOPS
from ..display import mimebundle
from ..dynamics import trees as tree
from ..dynamics.derivatives import jacobian_of
from ..dynamics.force_elements import actuator_forces
from ..dynamics.passive import Passive
from ..dynamics.resolved import Resolved, resolved
from ..dynamics.states import Float64Array
from ..dynamics.tables import Tabular
from ..mechanism import (
    Loop,
    Mechanism,
    MechanismError,
    OmissionWarning,
    from_data,
    to_data,
    warn_caller,
    without_functions,
)
from ..trajectories import Motion, sampled
from .events import Occurrence
from .integrators import Knot, quintic
from .settings import Setup
from .step import fixed_steps
from .system import Chart

BETWEEN = 8  # samples per interval in the search for a peak
NEARER = 3  # refinements around the largest sample
FORMAT = 2
ARRAYS = ("t", "q", "v", "a", "tau", "step_sizes")
SOMETIMES = ("wrenches", "ctrl", "activation")  # optional arrays of a trajectory


class _Keep:
    """Default of an argument of ``resume``: continue as before."""

    def __repr__(self) -> str:
        return "KEEP"


KEEP: Any = _Keep()


class Peak(NamedTuple):
    """The largest force or moment of a drive, and its time."""

    t: float
    force: float


@dataclass(frozen=True)
class End:
    """The end of a motion: the state of its integrator, from which it can be resumed exactly.

    x      the integrator's own state
    grid   fixed steps: origin, step and number of steps since the origin
    step   adaptive methods: size of the next step
    chart  chart of x in independent coordinates, else None
    """

    t: float
    q: Float64Array
    v: Float64Array
    x: Float64Array
    grid: tuple[float, float, int] | None
    step: float | None
    chart: Chart | None = None


@dataclass(frozen=True)
class Dense:
    """The integrator's own interpolation, step by step: ``between[i]`` from ``starts[i]`` to the next start."""

    starts: Float64Array
    between: tuple[Callable[[float], tuple[Float64Array, Float64Array]], ...]

    def followed_by(self, later: Dense) -> Dense:
        return Dense(np.concatenate([self.starts, later.starts]), self.between + later.between)

    def states(self, times: Float64Array) -> list[tuple[Float64Array, Float64Array]]:
        """(q, v) at each of the times."""
        steps = np.maximum(np.searchsorted(self.starts, times, side="right") - 1, 0)
        return [self.between[step](float(time)) for step, time in zip(steps, times, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory(Tabular):
    """A motion: m samples in front of every array, then the batch if there is one.

    mechanism          the mechanism that moved
    t, q, v, a         (m,), (m, ..., nq), (m, ..., nv), (m, ..., nv)
    tau                (m, ..., nv): joint forces that were commanded, without those of elements
    passive            the passive elements that acted in place of those of the mechanism's joints, or None
    wrenches           (m, ..., n_links, 6): external wrenches that acted, in link frames, or None
    ctrl, activation   (m, ..., n_ctrl), (m, ..., n_activation): control inputs and states of actuators, or None
    events             occurrences: ``name``, ``t``, ``q``, ``v`` of each
    step_sizes         steps of the integrator, independent of the samples
    evaluations        how often the equations of motion were evaluated, all stages of a step counted
    stopped            "duration", "event: <name>", "interrupted" or "failed: <why>"
    chart_changes      how often the independent coordinates were changed
    settings           settings of the simulation
    end                the end of the motion, for ``resume``
    dense              interpolation by an adaptive method, as accurate as the method; not in files
    """

    mechanism: Mechanism
    t: Float64Array
    q: Float64Array
    v: Float64Array
    a: Float64Array
    tau: Float64Array
    passive: Passive | None
    events: tuple[Occurrence, ...]
    step_sizes: Float64Array
    evaluations: int
    stopped: str
    chart_changes: int
    settings: Setup
    end: End
    wrenches: Float64Array | None = None
    ctrl: Float64Array | None = None
    activation: Float64Array | None = None
    dense: Dense | None = field(default=None, compare=False)

    def __repr__(self) -> str:
        return (
            f"<Trajectory of {self.mechanism.name!r}: {len(self.t)} samples to t = {self.end.t:g} s by "
            f"{self.settings.method}, {len(self.step_sizes)} steps, stopped by {self.stopped}>"
        )

    _repr_mimebundle_ = mimebundle

    def __getstate__(self) -> dict[str, Any]:
        return self.__dict__ | {"dense": None}  # it holds functions of the user

    @property
    def interrupted(self) -> bool:
        """Whether Ctrl-C ended it early."""
        return self.stopped == "interrupted"

    # -- derived quantities ------------------------------------------------------------------------------------

    @cached_property
    def kinetic_energy(self) -> Float64Array:
        """(m, ...): kinetic energy."""
        return np.asarray(tree.kinetic_energy(self.mechanism, self.q, self.v))

    @cached_property
    def potential_energy(self) -> Float64Array:
        """(m, ...): potential energy of gravity."""
        return np.asarray(tree.potential_energy(self.mechanism, self.q))

    @property
    def _elements(self) -> Resolved | None:
        """The force elements that acted."""
        return resolved(
            self.mechanism,
            self.passive,
            *fixed_steps(self.settings.method, self.settings.step, coordinates=self.settings.coordinates),
        )

    @cached_property
    def passive_energy(self) -> Float64Array:
        """(m, ...): potential energy of springs, stops and constant forces."""
        elements = self._elements
        return np.zeros(self.q.shape[:-1]) if elements is None else elements.energy(self.q)

    @cached_property
    def passive_forces(self) -> Float64Array:
        """(m, ..., nv): joint forces of all elements, actuators included, besides ``tau``."""
        elements = self._elements
        if elements is None:
            return np.zeros(self.v.shape)
        return elements.forces(self.q, self.v, self.ctrl, self.activation)

    @cached_property
    def actuator_forces(self) -> Float64Array:
        """(m, ..., n_ctrl): force of each actuator, in the order of ``mech.forces.actuator_names``; see
        ``lw.forces.actuator_forces``."""
        ctrl, activation = (x if x is not None and x.shape[-1] else None for x in (self.ctrl, self.activation))
        return actuator_forces(self.mechanism, self.q, self.v, ctrl=ctrl, activation=activation)

    @property
    def energy(self) -> Float64Array:
        """(m, ...): kinetic, potential and passive energy together."""
        return self.kinetic_energy + self.potential_energy + self.passive_energy

    @cached_property
    def constraint_error(self) -> Float64Array:
        """(m, ...): the norm of the position error g(q) of constraints; zero without constraints."""
        return np.linalg.norm(self.by_moments(constraints.position_error, self.q), axis=-1)

    @cached_property
    def velocity_error(self) -> Float64Array:
        """(m, ...): the norm of the velocity error G v of constraints, minus prescribed rates."""
        rates = self.by_moments(lambda now, v: v[..., :1] * 0.0 + now.constraints.drive_rates, self.v)
        return np.linalg.norm((self._jacobians @ self.v[..., None])[..., 0] - rates, axis=-1)

    def by_moments(self, function: Callable[..., Any], *arrays: np.ndarray) -> Float64Array:
        """``function(mechanism, *arrays)`` over all samples; with drives, of the mechanism at each sample time."""
        if not self.mechanism.constraints.waits_for_time:
            return function(self.mechanism, *arrays)
        rows = zip(self.t.tolist(), *arrays, strict=True)
        return np.array([function(self.mechanism.constraints.at_time(t), *row) for t, *row in rows])

    @cached_property
    def loop_condition(self) -> Float64Array:
        """(m, ...): condition number of the constraints, redundant ones left out: large near singular positions, 1
        without loops."""
        if not self.mechanism.n_constraints:
            return np.ones(self.q.shape[:-1])
        values = np.linalg.svd(self._jacobians, compute_uv=False)
        rank: Any = self.settings.array("rank", int, self.q.shape[1:-1])
        if rank is None:
            rank = (values > LOOPS.rank * values[..., :1]).sum(axis=-1).max(initial=1)
        last = np.broadcast_to(np.maximum(rank, 1).astype(int) - 1, values.shape[:-1])
        smallest = np.take_along_axis(values, last[..., None], axis=-1)[..., 0]
        return np.divide(values[..., 0], smallest, out=np.full(smallest.shape, np.inf), where=smallest > 0.0)

    @cached_property
    def loop_reactions(self) -> Float64Array:
        """(m, ..., number of loops, 6): ``constraints.loop_reactions`` under commanded and passive forces, wrenches
        and Baumgarte's terms."""
        return self._constraint_quantity(constraints.loop_reactions)

    @cached_property
    def joint_wrenches(self) -> Float64Array:
        """(m, ..., n_links, 6): [moment; force] that each moving joint transmitted onto its link, at the link's origin,
        in link axes (``joint_wrenches``), under all forces of the motion.  Struts and contacts act on links, not
        through their joints."""
        pushes, elements = self.wrenches, self._elements
        if elements is not None:
            element_wrenches = elements.wrenches(self.q, self.v, self.ctrl, self.activation)
            pushes = element_wrenches if pushes is None else pushes + element_wrenches
        if not self.mechanism.loops:
            return tree.joint_wrenches(self.mechanism, self.q, self.v, self.a, pushes)
        return wrenches_of_joints(self.mechanism, self.q, self.v, self.a, self._multipliers, pushes)

    @property
    def reactions(self) -> dict[str, Float64Array]:
        """(m, ..., 6) by name: the ``joint_wrenches`` of moving joints and the ``loop_reactions`` of loops.  Forces of
        drives along joints are in ``drive_forces``."""
        wrenches = {body.joint: self.joint_wrenches[..., k, :] for k, body in enumerate(self.mechanism.bodies)}
        loops = enumerate(self.mechanism.loops)
        sided = [(k, loop.name) for k, loop in loops if isinstance(loop, Loop) or loop.drive is None]
        return wrenches | {name: self.loop_reactions[..., k, :] for k, name in sided}

    @cached_property
    def drive_forces(self) -> dict[str, Float64Array]:
        """(m, ...) by drive: the force or moment along the driven coordinate, such as the torque of a motor.  Its power
        is the force times the velocity of that coordinate.  Samples are the ends of steps unless ``simulate`` has
        ``t_eval``; ``drive_peaks`` searches between them, ``resampled`` adds more."""
        if not self.mechanism.constraints.driven:
            return {}
        forces = -self._multipliers
        return {
            name: forces[..., self.mechanism.constraints.rows(name).start] for name in self.mechanism.constraints.driven
        }

    @cached_property
    def drive_peaks(self) -> dict[str, Peak]:
        """By drive: time ``t`` and value ``force`` of its largest force, also between the samples."""
        return _drive_peaks(self)

    @cached_property
    def _multipliers(self) -> Float64Array:
        return self._constraint_quantity(constraints.multipliers)

    def _constraint_quantity(self, function: Callable[..., Any]) -> Float64Array:
        """A function of ``lw.constraints`` along the motion, under all its forces and with its stabilization."""
        rank = self.settings.array("rank", int, self.q.shape[1:-1])
        options: dict[str, Any] = {"method": self.settings.formulation, "baumgarte": self.settings.gains, "rank": rank}

        def at(now: Mechanism, q: Any, v: Any, tau: Any, wrenches: Any = None) -> Float64Array:
            return function(now, q, v, tau, wrenches=wrenches, **options)

        pushed = () if self.wrenches is None else (self.wrenches,)
        return self.by_moments(at, self.q, self.v, self.tau + self.passive_forces, *pushed)

    @property
    def _jacobians(self) -> np.ndarray:
        return constraints.constraint_jacobian(self.mechanism, self.q)

    def at(self, t: ArrayLike) -> tuple[Float64Array, Float64Array]:
        """(q, v) at a time or times (n,): samples, and values interpolated between them.

        Adaptive methods interpolate with their own polynomials, about as accurately as they integrate.  Files do not
        hold these.  Without them, and for fixed steps, q is a polynomial of degree five through values, rates and
        accelerations of the samples, with an error of sixth order in their distance; v is its rate, of fifth order.
        """
        times = np.asarray(t, dtype=float)
        if len(self.t) < 2:
            raise MechanismError("a trajectory of one sample cannot be interpolated")
        if not ((times >= self.t[0]) & (times <= self.t[-1])).all():
            raise MechanismError(f"t must be between {self.t[0]:g} and {self.t[-1]:g} s, got {t!r}")
        flat = times.reshape(-1)
        i = np.searchsorted(self.t, flat, side="right") - 1
        q, v, off = self.q[i], self.v[i], flat != self.t[i]
        if off.any():
            between = self._interpolate_samples(flat[off]) if self.dense is None else self.dense.states(flat[off])
            q[off], v[off] = (np.array(part) for part in zip(*between, strict=True))
        return q.reshape(times.shape + q.shape[1:]), v.reshape(times.shape + v.shape[1:])

    def resampled(self, t: ArrayLike) -> Trajectory:
        """This motion at other times (n,), or at an integer number of even times, with all forces, reactions and
        energies.  Commanded forces are interpolated linearly between samples."""
        times = np.linspace(self.t[0], self.t[-1], t) if isinstance(t, int) else np.asarray(t, dtype=float)
        return _resampled(self, times)

    def __call__(self, t: ArrayLike) -> tuple[Float64Array, Float64Array, Float64Array]:
        """q, v and a at a time or times, as a planned motion (``lw.trajectories``) returns them, for controllers to
        track.  They interpolate the samples; beyond these the motion is at rest."""
        return self._motion(np.asarray(t, dtype=float) - self.t[0])

    @cached_property
    def _motion(self) -> Motion:
        if self.q.ndim != 2:
            raise MechanismError("a batch is no motion to follow: pick one of it with trajectory.member(index)")
        last = np.append(self.t[1:] > self.t[:-1], True)  # the last of samples at the same time, as at events
        return sampled(self.mechanism, *(x[last] for x in (self.t, self.q, self.v, self.a)))

    def _interpolate_samples(self, times: np.ndarray) -> Iterable[tuple[np.ndarray, np.ndarray]]:
        """(q, v) at each of the times, by polynomials through the samples around it."""
        i = np.searchsorted(self.t, times, side="right") - 1
        axes = (-1, *(1,) * (self.q.ndim - 1))
        knots = [Knot(self.t[k].reshape(axes), self.q[k], *self._coordinate_rates(k)) for k in (i, i + 1)]
        q, v = quintic(times.reshape(axes), *knots)
        if not self.mechanism.coordinates.rates_are_velocities:
            still = np.zeros(self.mechanism.nv)
            q, rates_there = tree.integrate(self.mechanism, q, still, 0.0), v
            v = (np.linalg.pinv(self._rate_derivatives(q, still)[..., self.mechanism.nq :]) @ rates_there[..., None])[
                ..., 0
            ]
        return zip(q, v, strict=True)

    def _coordinate_rates(self, samples: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """dq/dt = N(q) v and its own rate, d(N v)/dq dq/dt + N a."""
        q, v, a = self.q[samples], self.v[samples], self.a[samples]
        if self.mechanism.coordinates.rates_are_velocities:
            return v, a
        rates = tree.coordinate_rates(self.mechanism, q, v)
        changes = np.concatenate([rates, a], axis=-1)
        return rates, (self._rate_derivatives(q, v) @ changes[..., None])[..., 0]

    def _rate_derivatives(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nq, nq + nv): [d(N v)/dq, N]."""
        derivative = jacobian_of(compile("coordinate_rates", self.mechanism), wrt=("q", "v"), tangent=False)
        return np.asarray(derivative(q, v))

    def member(self, *index: int) -> Trajectory:
        """The motion of one state of a batch."""
        batch = self.q.shape[1:-1]
        if len(index) != self.q.ndim - 2:
            raise MechanismError(f"a batch of shape {self.q.shape[1:-1]} needs {self.q.ndim - 2} indices, not {index}")
        arrays: dict[str, Any] = {name: getattr(self, name)[(slice(None), *index)] for name in ("q", "v", "a", "tau")}
        end_arrays: dict[str, Any] = {name: getattr(self.end, name)[index] for name in ("q", "v", "x")}
        row: tuple[Any, ...] = (slice(None), *index)
        for name in SOMETIMES:
            if getattr(self, name) is not None:
                arrays[name] = getattr(self, name)[row]
        of_states = {
            "rank": self.settings.array("rank", int, batch),
            "energy": self.settings.array("energy", float, batch),
        }
        setup: dict[str, Any] = {name: values[index] for name, values in of_states.items() if values is not None}
        if isinstance(self.settings.wrenches, tuple):
            setup["wrenches"] = np.broadcast_to(self.settings.wrenches, (*batch, self.mechanism.n_links, 6))[index]
        settings = self.settings.completed(**setup)
        return dataclasses.replace(self, **arrays, settings=settings, end=dataclasses.replace(self.end, **end_arrays))

    # -- resuming ----------------------------------------------------------------------------------------------

    def resume(
        self,
        duration: float,
        control: Any = KEEP,
        wrenches: Any = KEEP,
        independent: Any = KEEP,
        ctrl: Any = KEEP,
        **options: Any,
    ) -> Trajectory:
        """This trajectory with ``duration`` more seconds at its end, simulated as it was.

        With fixed steps the result equals one run bit by bit, in all coordinates.  Functions (controller, wrenches,
        independent coordinates) and forces row by row are not part of a trajectory, and must be passed again.  The
        options are ``events`` and ``t_eval`` (times continue from ``end.t``) of ``simulate``, and ``progress`` of its
        settings, for the new part.
        """
        from .simulation import resumed

        return joined(self, resumed(self, duration, control, wrenches, ctrl, independent, options))

    # -- files and pictures ------------------------------------------------------------------------------------

    def plot(self, path: str | Path | None = None, **options: Any) -> Any:
        """Curves of coordinates, velocities and energies over time; written to ``path`` if that is given."""
        from ..viewer import plot_trajectory

        if not len(self.t):
            raise MechanismError("a trajectory without samples cannot be drawn")
        return plot_trajectory(self, path, **options)

    def animate(self, path: str | Path, **options: Any) -> Path:
        """Write an animation, ``.gif`` or ``.mp4``, with the options of ``lw.viewer.animate``: trail, fps, speed."""
        from ..viewer import animate

        return animate(self, path=path, **options)

    def view(self, **options: Any) -> Any:
        """Play the motion in the browser, a batch side by side, with options and result of ``lw.view``.  Needs viser:
        pip install 'linkwise[view]'."""
        from ..viewer.browser import view

        return view(self, **options)

    def show(self, **options: Any) -> Any:
        """An interactive page of the motion, for a notebook or ``.save("motion.html")``; a batch side by side.  Options
        are those of ``lw.viewer.page``: ``meshes=True``, ``rate=60.0``, ``trail="tool"``."""
        from ..viewer import page

        return page(self, **options)

    def save(self, path: str | Path, **options: Any) -> None:
        """Write a file in the format of its ending.  ``.npz``, or no ending: everything with the mechanism, for
        ``load_trajectory``.  ``.csv`` and ``.parquet``: the table of ``to_csv``.  ``.html``: the page of ``show``, with
        its options."""
        writers = {"": _save, ".npz": _save, ".csv": Trajectory.to_csv, ".parquet": Trajectory.to_parquet}
        ending = Path(path).suffix.lower()
        if ending == ".html":
            self.show(**options).save(path)
        elif ending in writers:
            writers[ending](self, path, **options)
        else:
            raise MechanismError(
                f"{Path(path).name!r} has no ending of a format that trajectories are saved in: .npz (everything, for "
                "load_trajectory), .csv and .parquet (a table), .html (to look at); motion.plot and lw.viewer.animate "
                "write pictures and videos"
            )

    def to_xarray(self) -> Any:
        """The motion as an ``xarray.Dataset``; needs xarray.  Axes are time, batch axes, coordinates of q and v by
        name, links and actuators."""
        return _dataset(self)

    def table(self) -> tuple[list[str], Float64Array]:
        """Names (t, q.elbow, q.base[0], ..., v.elbow, ...) and values (m, columns) of what ``to_csv`` writes: time,
        coordinates, velocities, accelerations, forces and energies; one motion, no batch."""
        if self.q.ndim != 2:
            raise MechanismError("a table has one motion: pick one of the batch with trajectory.member(index)")
        names, columns = ["t"], [self.t[:, None]]
        for symbol, values in (("q", self.q), ("v", self.v), ("a", self.a), ("tau", self.tau)):
            coordinates = self.mechanism.coordinates.names("q" if symbol == "q" else "v")
            names += [f"{symbol}.{coordinate}" for coordinate in coordinates]
            columns.append(values)
        if self.ctrl is not None and self.ctrl.shape[-1]:
            names += [f"ctrl.{name}" for name in self.mechanism.forces.actuator_names]
            columns.append(self.ctrl)
        for name in ("kinetic_energy", "potential_energy", "passive_energy"):
            names.append(name)
            columns.append(getattr(self, name)[:, None])
        return names, np.concatenate(columns, axis=1)


# -- resampling ------------------------------------------------------------------------------------------------------


def _resampled(motion: Trajectory, times: Float64Array) -> Trajectory:
    """A single motion at other times (n,), in ascending order. q and v are interpolated by ``motion.at``, commands
    linearly; accelerations follow from the equations of motion."""
    q, v = motion.at(times)
    if motion.q.ndim != 2:
        raise MechanismError("one motion is resampled: pick one of the batch with trajectory.member(index)")

    def between(values: Float64Array | None) -> Any:
        if values is None:
            return None
        flat = values.reshape(len(values), -1)
        columns = [np.interp(times, motion.t, column) for column in flat.T]
        return np.stack([np.zeros(len(times)), *columns], axis=-1)[:, 1:].reshape(len(times), *values.shape[1:])

    arrays = {name: between(getattr(motion, name)) for name in ("tau", *SOMETIMES)}
    samples = dataclasses.replace(motion, t=times, q=q, v=v, a=np.zeros(v.shape), **arrays)
    return dataclasses.replace(samples, a=_accelerations(samples))


def _accelerations(motion: Trajectory) -> Float64Array:
    """(m, nv): accelerations under all forces of the motion."""
    forces = motion.tau + motion.passive_forces
    pushed = () if motion.wrenches is None else (motion.wrenches,)

    def at(now: Mechanism, q: Any, v: Any, tau: Any, wrenches: Any = None) -> Float64Array:
        return accelerations(now, Inputs((q, v, tau), wrenches=wrenches))

    return motion.by_moments(at, motion.q, motion.v, forces, *pushed)


def _drive_peaks(motion: Trajectory) -> dict[str, Peak]:
    """By drive: its largest force, also between the samples."""
    peaks = {}
    shares = np.linspace(0.0, 1.0, BETWEEN, endpoint=False)
    times = np.append((motion.t[:-1, None] + shares * np.diff(motion.t)[:, None]).ravel(), motion.t[-1:])
    dense = (
        _resampled(motion, np.unique(times)) if motion.mechanism.constraints.driven and len(motion.t) > 1 else motion
    )
    for name, forces in dense.drive_forces.items():
        seen, values = dense.t, forces
        for _ in range(NEARER if len(motion.t) > 1 else 0):
            k = int(np.argmax(np.abs(values)))
            low, high = seen[max(k - 1, 0)], seen[min(k + 1, len(seen) - 1)]
            nearer = _resampled(motion, np.unique([*np.linspace(low, high, 2 * BETWEEN + 1), seen[k]]))
            seen, values = nearer.t, nearer.drive_forces[name]
        k = int(np.argmax(np.abs(values)))
        peaks[name] = Peak(float(seen[k]), float(values[k]))
    return peaks


def joined(first: Trajectory, second: Trajectory) -> Trajectory:
    """Concatenate two trajectories, the second a continuation of the first."""
    # The state in which the second starts is the end of the first, and usually sampled there already.
    new = slice(1 if len(second.t) and len(first.t) and second.t[0] == first.t[-1] else 0, None)
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)[new]]) for name in ("t", "q", "v", "a", "tau")
    }
    if first.wrenches is not None or second.wrenches is not None:
        none = (*first.q.shape[1:-1], first.mechanism.n_links, 6)
        pushed = (
            np.zeros((len(part.t), *none)) if part.wrenches is None else part.wrenches for part in (first, second)
        )
        before, after = pushed
        arrays["wrenches"] = np.concatenate([before, after[new]])
    for name in ("ctrl", "activation"):
        if getattr(first, name) is not None and getattr(second, name) is not None:
            arrays[name] = np.concatenate([getattr(first, name), getattr(second, name)[new]])
    return dataclasses.replace(
        second,
        **arrays,
        events=first.events + second.events,
        step_sizes=np.concatenate([first.step_sizes, second.step_sizes]),
        evaluations=first.evaluations + second.evaluations,
        chart_changes=first.chart_changes + second.chart_changes,
        dense=first.dense.followed_by(second.dense) if first.dense and second.dense else None,
    )


# -- files -----------------------------------------------------------------------------------------------------------


def _save(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory with its mechanism to ``path``; constraints defined by functions are left out."""
    from .. import __version__

    end, events = trajectory.end, trajectory.events
    mech, functions = without_functions(trajectory.mechanism)
    if functions:
        end = dataclasses.replace(end, chart=None)  # its rows are of all constraints
        warn_caller(
            f"{path}: functions of time and of coordinates are not stored: the samples are, with the mechanism "
            f"without {', '.join(functions)}, from which forces of constraints cannot be computed again",
            OmissionWarning,
        )
    about = {
        "format": FORMAT,
        "version": __version__,
        "mechanism": to_data(mech),
        "left_out": functions,
        "passive": None if trajectory.passive is None else trajectory.passive.to_data(),
        "acts": True,  # elements of the mechanism; in files of earlier versions they did not
        "settings": trajectory.settings.to_data(),
        "evaluations": trajectory.evaluations,
        "chart_changes": trajectory.chart_changes,
        "stopped": trajectory.stopped,
        "events": [{"name": event.name, "t": event.t} for event in events],
        "end": {"t": end.t, "grid": end.grid, "step": end.step, "rank": None if end.chart is None else end.chart.rank},
    }
    arrays = {name: getattr(trajectory, name) for name in ARRAYS}
    arrays |= {"end_q": end.q, "end_v": end.v, "end_x": end.x}
    for name in SOMETIMES:
        if getattr(trajectory, name) is not None:
            arrays[name] = getattr(trajectory, name)
    if end.chart is not None:
        arrays["chart_origin"] = end.chart.origin
        if end.chart.rows is not None:
            arrays["chart_rows"] = end.chart.rows
    nq, nv = mech.nq, mech.nv
    arrays["event_q"] = np.array([event.q for event in events]).reshape(len(events), nq)
    arrays["event_v"] = np.array([event.v for event in events]).reshape(len(events), nv)
    with open(path, "wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about, allow_nan=False)), **arrays)


def load_trajectory(path: str | Path) -> Trajectory:
    """The trajectory that ``Trajectory.save`` wrote to ``path``."""
    foreign = MechanismError(f"{path} is no trajectory that linkwise wrote: Trajectory.save writes such files (.npz)")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about: dict[str, Any] = json.loads(arrays["about"].item())
    except (ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile):
        raise foreign from None
    if not isinstance(about, dict):
        raise foreign
    if "motion" in about:
        raise MechanismError(f"{path} is a planned motion, which linkwise.files.load_motion reads")
    if about.get("format") != FORMAT:
        raise MechanismError(
            f"{path} is a trajectory of format {about.get('format')!r} (linkwise {about.get('version')}); this version "
            f"reads format {FORMAT}"
        )
    if about.get("left_out"):
        warn_caller(
            f"{path}: the mechanism is here without {', '.join(about['left_out'])}, functions that files do not hold: "
            "forces of constraints and what follows when it is resumed are not those of the motion",
            OmissionWarning,
        )
    happened = zip(about["events"], arrays["event_q"], arrays["event_v"], strict=True)
    end, grid = about["end"], about["end"]["grid"]
    passive = None if about["passive"] is None else Passive.from_data(about["passive"])
    return Trajectory(
        mechanism=from_data(about["mechanism"]),
        **{name: arrays[name] for name in ARRAYS},
        passive=Passive() if passive is None and not about.get("acts") else passive,
        events=tuple(Occurrence(event["name"], event["t"], q, v) for event, q, v in happened),
        evaluations=about["evaluations"],
        stopped=about["stopped"],
        chart_changes=about["chart_changes"],
        settings=Setup.from_data(about["settings"]),
        end=End(
            end["t"],
            arrays["end_q"],
            arrays["end_v"],
            arrays["end_x"],
            None if grid is None else (grid[0], grid[1], grid[2]),
            end["step"],
            Chart(arrays["chart_origin"], arrays.get("chart_rows"), end["rank"]) if "chart_origin" in arrays else None,
        ),
        **{name: arrays[name] for name in SOMETIMES if name in arrays},
    )


def _dataset(motion: Trajectory) -> Any:
    """A motion, or a batch of them, as an ``xarray.Dataset``: axes "t", "batch0", ..., "q" and "v" (names of
    coordinates), "link", "wrench", "actuator"."""
    try:
        import xarray
    except ImportError:
        raise ImportError("to_xarray needs xarray: pip install 'linkwise[labelled]'") from None
    mech = motion.mechanism
    lead = ("t", *(f"batch{k}" for k in range(motion.q.ndim - 2)))
    arrays: dict[str, tuple[tuple[str, ...], np.ndarray]] = {"positions": ((*lead, "q"), motion.q)}
    for name, values in (("velocities", motion.v), ("accelerations", motion.a), ("tau", motion.tau)):
        arrays[name] = (*lead, "v"), values
    for name in ("kinetic_energy", "potential_energy", "passive_energy", "constraint_error"):
        arrays[name] = lead, getattr(motion, name)
    axes: dict[str, Any] = {"t": motion.t, "q": list(mech.q_names), "v": list(mech.v_names)}
    if motion.ctrl is not None and motion.ctrl.shape[-1]:
        arrays["ctrl"] = (*lead, "actuator"), motion.ctrl
        arrays["actuator_forces"] = (*lead, "actuator"), motion.actuator_forces
        axes["actuator"] = list(mech.forces.actuator_names)
    if motion.wrenches is not None:
        arrays["wrenches"] = (*lead, "link", "wrench"), motion.wrenches
        axes |= {"link": list(mech.link_names), "wrench": ["mx", "my", "mz", "fx", "fy", "fz"]}
    return xarray.Dataset(arrays, axes, {"mechanism": mech.name, "method": motion.settings.method})
