"""Computations of studies: rollouts, linear models, equilibria, singularities, functions of the user.

A computation returns arrays by name for cases, with the axis of cases first.  Rollouts and singularities are computed
for all cases at once, others case by case.  ``axes`` names the other axes of arrays, ``labels`` their entries.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from numbers import Real
from typing import Any, ClassVar

import numpy as np

import linkwise as lw

from ..motion.arguments import drive_array
from .cases import Case, Cases
from .errors import StudyError, check_count, check_name, check_numbers, check_options
from .quantities import Unit, joint_units

BYTES_PER_CHUNK = 2**25
CASES_PER_CHUNK = 16384
SLOW_CASES_PER_CHUNK = 64  # where each takes milliseconds
POINT = ("x", "y", "z")
FEEDBACK = ("target", "kp", "kd")
IN_TIME = ("tau", "ctrl", "target")  # which may change from step to step


@dataclass(frozen=True)
class Computation:
    """``arrays(cases)`` -> {name: (cases, ...)}."""

    #: Quantities, by the first part of their names, that it cannot take into account, and what to do.
    unsupported: ClassVar[Mapping[str, str]] = {
        "pose": "poses vary in rollouts, singularities and functions of your own alone",
        "friction": "friction of joints varies in rollouts alone",
        "contact_friction": "friction of contacts varies in rollouts alone",
    }

    def arrays(self, cases: Cases) -> dict[str, np.ndarray]:
        raise NotImplementedError

    def check(self, mech: lw.Mechanism) -> None:
        """Refuse options that do not fit the mechanism; the message begins with the key."""

    def axes(self, mech: lw.Mechanism) -> dict[str, tuple[str, ...]]:
        """Array -> names of its axes behind that of cases; others get default names."""
        return {}

    def labels(self, mech: lw.Mechanism) -> dict[str, list[Any]]:
        """Axis -> labels of its entries."""
        return {"q": list(mech.q_names), "v": list(mech.v_names)}

    def units(self, mech: lw.Mechanism) -> dict[str, Unit]:
        """Array or axis -> its unit, or one for each entry along the last axis."""
        return {}

    def nominal(self, mech: lw.Mechanism) -> Mapping[str, np.ndarray | None]:
        """Nominal values that the computation sets, by quantity; None where they change in time."""
        return {}

    def cases_per_chunk(self, mech: lw.Mechanism) -> int:
        return SLOW_CASES_PER_CHUNK


@dataclass(frozen=True)
class Rollout(Computation):
    """Motions by ``lw.rollout``: "positions" (case, t, q) and "velocities" (case, t, v).

    dt, steps, method, every, final_only, coordinates   as in ``lw.rollout``; final_only keeps no axis t
    tau, wrenches, feedback, ctrl   what drives all cases; tau, ctrl, target, kp or kd that vary take its place, those
                 of single joints or actuators theirs alone
    frames       names of frames whose world positions are kept too: "position.NAME" (case, t, xyz)
    measure      measure(cases, t, q, v) -> {name: (case, ...)}: what is kept in place of the states, of all cases of
                 a chunk at once; t is (times,), q (cases, times, nq), without the axis of times with final_only
    named_axes   {name: names of the axes of what ``measure`` returns}, such as ("t", "xyz"), for labels and pictures
    named_units  {name: unit}
    """

    dt: float | None
    steps: int
    method: str | None = None
    every: int = 1
    final_only: bool = False
    tau: Any = None
    wrenches: Any = None
    feedback: Any = None
    ctrl: Any = None
    coordinates: str = "joint"
    frames: Sequence[str] = ()
    measure: Callable[..., Mapping[str, Any]] | None = None
    named_axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    named_units: Mapping[str, str] = field(default_factory=dict)

    unsupported: ClassVar[Mapping[str, str]] = {}

    def check(self, mech: lw.Mechanism) -> None:
        if self.dt is None and mech.metadata.timestep is None:
            raise StudyError(f"dt is missing, and mechanism {mech.name!r} has no time step of its own: give seconds")
        is_number = isinstance(self.dt, Real) and not isinstance(self.dt, bool) and np.isfinite(float(self.dt))
        if self.dt is not None and not is_number:
            raise StudyError(f"dt must be a number of seconds, not {self.dt!r}")
        check_count("steps", self.steps, 0)
        check_count("every", self.every, 1)
        if self.final_only and self.every != 1:
            raise StudyError("every: give it or final_only, not both; final_only keeps the last state alone")
        try:
            methods = lw.motion.rollout_methods(self.coordinates)
        except ValueError as error:
            raise StudyError(f"coordinates: {error}") from None
        if self.method is not None:
            check_name("method", self.method, methods, f" with coordinates = {self.coordinates!r}")
        if isinstance(self.frames, str) or not isinstance(self.frames, Collection):
            raise StudyError(f"frames must be a list of names of links and frames, not {self.frames!r}")
        for name in self.frames:
            check_name("frames", name, tuple(mech.frames))
        joints, actuators = mech.joint_names, mech.forces.actuator_names
        check_numbers("tau", self.tau, (mech.nv,), joints, self.steps)
        check_numbers("wrenches", self.wrenches, (mech.n_links, 6), (), self.steps)
        if self.ctrl is not None and not actuators:
            raise StudyError(f"ctrl: no actuator of mechanism {mech.name!r} acts")
        check_numbers("ctrl", self.ctrl, (len(actuators),), actuators, self.steps)
        gains = self.feedback
        if gains is None or callable(gains):  # a compiled controller
            return
        keys = (*FEEDBACK, "gain")
        if not isinstance(gains, Mapping):
            raise StudyError(f"feedback must be a table of {', '.join(keys)}, or a controller, not {gains!r}")
        for key in gains:
            check_name("feedback", key, keys)
        check_numbers("feedback.target", gains.get("target"), (mech.nq,), joints, self.steps)
        for key in ("kp", "kd"):
            check_numbers(f"feedback.{key}", gains.get(key), (mech.nv,), joints, None)

    def arrays(self, cases: Cases) -> dict[str, np.ndarray]:
        q, v = lw.rollout(
            cases.mechanism,
            cases.q,
            cases.v,
            tau=_drive(cases, "tau", self.tau),
            ctrl=_drive(cases, "ctrl", self.ctrl),
            feedback=self._gains(cases),
            wrenches=self.wrenches,
            dt=self.dt,
            steps=self.steps,
            method=self.method,
            coordinates=self.coordinates,
            **({"final_only": True} if self.final_only else {"every": self.every}),
            parameters={**cases.parameters, **cases.of_joints, **cases.of_contacts},
        )
        if self.measure is not None:
            arrays = self.measure(cases, self.times(cases.mechanism), q, v)
            return _checked(arrays, len(cases), "measure")
        arrays = {"positions": q, "velocities": v}
        return arrays | {
            f"position.{name}": lw.frame_pose(cases.mechanism, q, name)[..., :3, 3] for name in self.frames
        }

    def times(self, mech: lw.Mechanism) -> np.ndarray:
        dt = mech.metadata.timestep if self.dt is None else self.dt
        assert dt is not None  # lw.rollout has complained
        return float(dt) * np.arange(0, self.steps + 1, self.every)

    def _gains(self, cases: Cases) -> Any:
        """The feedback of ``lw.rollout``, with gains and targets by case where they vary."""
        varied = [name for name in FEEDBACK if cases.varies(name)]
        if not varied:
            return self.feedback
        if self.feedback is not None and not isinstance(self.feedback, Mapping):
            raise StudyError("target, kp and kd vary with feedback={'target': ...}, not with a compiled controller")
        gains = {"target": np.array(cases.mechanism.initial), **(self.feedback or {})}
        return gains | {name: _drive(cases, name, gains.get(name)) for name in varied}

    def nominal(self, mech: lw.Mechanism) -> Mapping[str, np.ndarray | None]:
        gains = self.feedback if isinstance(self.feedback, Mapping) else dict.fromkeys(FEEDBACK, self.feedback)
        values = {"tau": self.tau, "ctrl": self.ctrl, **{name: gains.get(name) for name in FEEDBACK}}
        arrays = {name: None if callable(x) else drive_array(mech, name, x) for name, x in values.items()}
        return {name: None if x is None or x.ndim > 1 else x for name, x in arrays.items()}

    def axes(self, mech: lw.Mechanism) -> dict[str, tuple[str, ...]]:
        if self.measure is not None:
            return {name: tuple(axes) for name, axes in self.named_axes.items()}
        lead = () if self.final_only else ("t",)
        states = {"positions": (*lead, "q"), "velocities": (*lead, "v")}
        return states | {f"position.{name}": (*lead, "xyz") for name in self.frames}

    def labels(self, mech: lw.Mechanism) -> dict[str, list[Any]]:
        times = {} if self.final_only else {"t": self.times(mech).tolist()}
        return super().labels(mech) | times | {"xyz": list(POINT)}

    def units(self, mech: lw.Mechanism) -> dict[str, Unit]:
        frames: dict[str, Unit] = {f"position.{name}": "m" for name in self.frames}
        return {"t": "s", **_state_units(mech), **frames, **self.named_units}

    def cases_per_chunk(self, mech: lw.Mechanism) -> int:
        if mech.loops:
            return SLOW_CASES_PER_CHUNK * 4
        records = 1 if self.final_only else self.steps // max(1, self.every) + 1
        target: Any = self.feedback.get("target") if isinstance(self.feedback, Mapping) else None
        if any(np.ndim(x) > 1 for x in (self.tau, self.ctrl, target)):  # by step, for every case where some vary
            records = max(records, self.steps)
        return max(1, min(CASES_PER_CHUNK, BYTES_PER_CHUNK // (8 * records * (mech.nq + mech.nv))))


@dataclass(frozen=True)
class LinearModels(Computation):
    """Linear models by ``lw.linearize``: "A" (case, state, state), "B" (case, state, input), "eigenvalues" (case, n),
    complex, sorted, and "drift" (case, state).

    at        "start": the initial states of the cases; "equilibrium": states of rest near them, NaN where none is found
    options   of ``lw.linearize``, such as inputs and outputs
    """

    at: str = "start"
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.at not in ("start", "equilibrium"):
            raise StudyError(f"linear models are made at the 'start' or at the 'equilibrium', not at {self.at!r}")

    def check(self, mech: lw.Mechanism) -> None:
        check_options(lw.linearize, self.options, ("mech", "q", "v", "tau"))

    def arrays(self, cases: Cases) -> dict[str, np.ndarray]:
        return _case_by_case(cases, self._case_results)

    def _case_results(self, case: Case) -> dict[str, Any]:
        q, v, is_found = case.q, case.v, True
        if self.at == "equilibrium":
            try:
                q, v = lw.find_equilibrium(case.mechanism, q, case.tau).q, np.zeros_like(v)
            except lw.control.EquilibriumError:
                is_found = False
        model = lw.linearize(case.mechanism, q, v, case.tau, **self.options)
        kept = {"A": model.A, "B": model.B, "drift": model.drift}
        if not is_found:
            kept = {name: np.full_like(x, np.nan) for name, x in kept.items()}
        values = np.linalg.eigvals(model.A) if is_found else np.full(len(model.A), np.nan)
        order = np.lexsort((values.imag, values.real))
        return kept | {"eigenvalues": values.astype(complex)[order], "found": is_found}

    def axes(self, mech: lw.Mechanism) -> dict[str, tuple[str, ...]]:
        axes = {"A": ("state", "to"), "B": ("state", "input"), "drift": ("state",), "eigenvalues": ("mode",)}
        return {**axes, "found": ()}

    def units(self, mech: lw.Mechanism) -> dict[str, Unit]:
        return {"eigenvalues": "1/s"}


@dataclass(frozen=True)
class Equilibria(Computation):
    """States of rest by ``lw.find_equilibrium``, near the initial states: "positions" (case, q), "tau" (case, v),
    "residual", "stable" (1, 0, or NaN where no force brings it back or away), "found"; NaN where none is found.

    options   of ``lw.find_equilibrium``, such as hold and stable
    """

    options: Mapping[str, Any] = field(default_factory=dict)

    def check(self, mech: lw.Mechanism) -> None:
        check_options(lw.find_equilibrium, self.options, ("mech", "q_guess", "tau"))

    def arrays(self, cases: Cases) -> dict[str, np.ndarray]:
        return _case_by_case(cases, self._case_results)

    def _case_results(self, case: Case) -> dict[str, Any]:
        try:
            rest = lw.find_equilibrium(case.mechanism, case.q, case.tau, **self.options)
        except lw.control.EquilibriumError as error:
            lost = np.full_like(case.q, np.nan), np.full_like(case.v, np.nan)
            return dict(zip(self.axes(case.mechanism), (*lost, error.residual, np.nan, False), strict=True))
        stable = np.nan if rest.stable is None else float(rest.stable)
        return dict(zip(self.axes(case.mechanism), (rest.q, rest.tau, rest.residual, stable, True), strict=True))

    def axes(self, mech: lw.Mechanism) -> dict[str, tuple[str, ...]]:
        return {"positions": ("q",), "tau": ("v",), "residual": (), "stable": (), "found": ()}

    def units(self, mech: lw.Mechanism) -> dict[str, Unit]:
        return _state_units(mech)


@dataclass(frozen=True)
class Singularities(Computation):
    """How far the initial configurations are from singular ones, by the Jacobian of a link or frame: "singular_values"
    (case, k), largest first, "manipulability", their product, and "conditioning", the smallest by the largest.

    link   whose Jacobian; left out for a mechanism with loops: "conditioning" is then that of its constraints
           (``lw.constraints.conditioning``), and "degrees_of_freedom" are those at each configuration
    rows   of the Jacobian: "angular", "linear" or numbers; all six by default
    """

    link: str | None = None
    rows: Any = None

    unsupported: ClassVar[Mapping[str, str]] = {}

    def check(self, mech: lw.Mechanism) -> None:
        if self.link is not None:
            check_name("link", self.link, tuple(mech.frames))
        elif not mech.loops:
            raise StudyError("link: say of which link (link=...): a mechanism without loops has no other singularities")
        if isinstance(self.rows, str):
            check_name("rows", self.rows, ("angular", "linear"))

    def arrays(self, cases: Cases) -> dict[str, np.ndarray]:
        mech = cases.mechanism
        if self.link is None:
            rank = lw.constraints.generic_rank(mech, lw.constraints.assemble(mech, mech.initial))
            freedom = np.asarray(lw.constraints.degrees_of_freedom(mech, cases.q))
            return {"conditioning": lw.constraints.conditioning(mech, cases.q, rank), "degrees_of_freedom": freedom}
        poses = {name: x for name, x in cases.parameters.items() if name.rpartition(".")[2] == "pose"}
        kernel = lw.compile("jacobian", mech, parameters=tuple(poses), link=self.link)
        rows = {None: slice(None), "angular": slice(0, 3), "linear": slice(3, 6)}
        chosen = rows[self.rows] if self.rows is None or isinstance(self.rows, str) else list(self.rows)
        values = np.linalg.svd(kernel(cases.q, *poses.values())[:, chosen], compute_uv=False)
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = values[:, -1] / values[:, 0]
        product = math.prod(values.T, start=np.ones(len(values)))
        return {"singular_values": values, "manipulability": product, "conditioning": ratio}

    def axes(self, mech: lw.Mechanism) -> dict[str, tuple[str, ...]]:
        return {"singular_values": ("direction",), "manipulability": (), "conditioning": (), "degrees_of_freedom": ()}

    def cases_per_chunk(self, mech: lw.Mechanism) -> int:
        return CASES_PER_CHUNK


@dataclass(frozen=True)
class Function(Computation):
    """A function of the user.

    function     function(case) -> {name: number or array}, or a number; with ``all_at_once`` function(cases) ->
                 {name: (cases, ...)}, of all cases of a chunk, which must not depend on which these are
    named_axes   {name: names of the axes of its arrays}, for labels
    named_units  {name: unit}
    """

    function: Callable[[Any], Any]
    all_at_once: bool = False
    named_axes: Mapping[str, Sequence[str]] = field(default_factory=dict)
    named_units: Mapping[str, str] = field(default_factory=dict)

    unsupported: ClassVar[Mapping[str, str]] = {}

    def arrays(self, cases: Cases) -> dict[str, np.ndarray]:
        if self.all_at_once:
            return _checked(self.function(cases), len(cases), self._name)

        def case_results(case: Case) -> Mapping[str, Any]:
            result = self.function(case)
            return result if isinstance(result, Mapping) else {self._name: result}

        return _case_by_case(cases, case_results)

    @property
    def _name(self) -> str:
        name = getattr(self.function, "__name__", "result")
        return "result" if name == "<lambda>" else name

    def axes(self, mech: lw.Mechanism) -> dict[str, tuple[str, ...]]:
        return {name: tuple(axes) for name, axes in self.named_axes.items()}

    def units(self, mech: lw.Mechanism) -> dict[str, Unit]:
        return dict(self.named_units)


def _state_units(mech: lw.Mechanism) -> dict[str, Unit]:
    names = {"positions": "q0", "velocities": "v0", "tau": "tau"}
    return {name: joint_units(mech, quantity) for name, quantity in names.items()}


def _case_by_case(cases: Cases, function: Callable[[Case], Mapping[str, Any]]) -> dict[str, np.ndarray]:
    """Results of a function for one case after the other, stacked."""
    results: list[Mapping[str, Any]] = []
    for k, number in enumerate(cases.numbers.tolist()):
        try:
            results.append(function(cases.case(k)))
        except StudyError:
            raise
        except Exception as error:
            raise StudyError(f"case {number}: {type(error).__name__}: {error}") from error
    names = list(results[0])
    for k, result in enumerate(results):
        if list(result) != names:
            raise StudyError(f"case {cases.first + k} gives {sorted(result)}, the first of its chunk {sorted(names)}")
    arrays = {}
    for name in names:
        values = [np.asanyarray(result[name]) for result in results]
        for k, value in enumerate(values):
            if value.shape != values[0].shape:
                raise StudyError(
                    f"case {cases.first + k} gives {name!r} of shape {value.shape}, case {cases.first} of "
                    f"{values[0].shape}: arrays of all cases must have one shape; fill up with NaN"
                )
        arrays[name] = np.ma.stack(values) if any(map(np.ma.isMaskedArray, values)) else np.stack(values)
    return arrays


def _drive(cases: Cases, head: str, value: Any) -> Any:
    """A driving argument of ``lw.rollout`` in which the varied numbers of all or single joints replace its own."""
    if not cases.varies(head):
        return value
    if head in cases.values:  # all numbers vary
        value = None
    if callable(value):  # lw.rollout refuses it unless it is held
        held: Any = value
        return replace(held, function=Replacing(cases, head, held.function)) if hasattr(held, "period") else held
    values = drive_array(cases.mechanism, head, value)
    return cases.placed(head, values[None] if head in IN_TIME and values.ndim == 1 else values)


@dataclass(frozen=True, eq=False)
class Replacing:
    """A controller called for all cases at once, in which single joints or actuators vary."""

    cases: Cases
    head: str
    function: Callable[..., Any]

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        driving = drive_array(self.cases.mechanism, self.head, self.function(t, q, v))
        return self.cases.placed(self.head, np.broadcast_to(driving, (len(self.cases), 1, driving.shape[-1])))[:, 0]


def _checked(result: Any, count: int, label: str) -> dict[str, np.ndarray]:
    """Results of a function of all cases of a chunk, as arrays with the axis of cases first."""
    if not isinstance(result, Mapping):
        result = {label: result}
    arrays = {name: np.asanyarray(values) for name, values in result.items()}
    for name, values in arrays.items():
        if values.ndim == 0 or len(values) != count:
            raise StudyError(
                f"{label}: {name!r} has shape {values.shape}, but its first axis must be that of {count} cases"
            )
    return arrays
