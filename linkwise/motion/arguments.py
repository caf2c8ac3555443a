"""What callers give to rollouts: by the names of joints and actuators or as arrays, checked, in one precision."""

from __future__ import annotations

import numbers
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import constraints
from ..compiler.ir.program import Array
from ..compiler.requests import parameter_arrays
from ..compiler.runtime.arrays import UnreadableArrayError, all_plain, on_device, plain
from ..compiler.runtime.explanations import KernelError
from ..compiler.store import is_single
from ..control.compiled import CompiledControl
from ..dynamics.actuation import actuated_coordinates
from ..dynamics.by_actuator import inputs_by_actuator, unless_empty
from ..dynamics.by_joint import configuration_by_joint, rates_by_joint, state_by_joint
from ..dynamics.passive import Passive
from ..dynamics.resolved import no_controls, resolved
from ..dynamics.states import STATE, Float64Array, real_numbers
from ..dynamics.trees import neutral
from ..mechanics.elements.law import Acting
from ..mechanics.elements.of_mechanism import with_varying_numbers
from ..mechanism import Mechanism, MechanismError, one_of
from ..mechanism.elements import CONTACT_FRICTION, NUMBERS_THAT_ACT
from ..mechanism.quaternions import with_unit_quaternions
from .checks import warn_of_drives
from .forces import Held
from .step import ACTIVATION, ACTIVE, DRIVE, FEEDBACK, GAIN, PER_STEP, Step, fixed_steps, step_of, usual_step

GAINS = ("kp", "kd")
FEEDBACK_EXAMPLE = "{'target': q, 'kp': 100.0, 'kd': 10.0}"
CONFIGURATIONS = {"q": "q0", "target": "the target of feedback"}  # inputs, and what callers know them as


@dataclass
class Driving:
    """How a motion is made, as callers say it: the arguments of ``rollout`` but for its start and what it returns."""

    tau: Any
    dt: Any
    steps: Any
    method: str | None = None
    coordinates: str = "joint"
    passive: Passive | None = None
    wrenches: Any = None
    feedback: Mapping[str, Any] | CompiledControl | None = None
    parameters: Mapping[str, Any] | None = None
    ctrl: Any = None
    activation: Any = None
    active: Any = None
    drive: Any = None

    def request(self, mech: Mechanism, q0: Any, v0: Any) -> Request:
        """What is asked for: the steps to be compiled, and their inputs by name."""
        parameters = by_name("parameters", self.parameters, "{'mass': masses}")
        step = step_of(mech, self.method, self.coordinates, parameters=tuple(parameters))
        held: dict[str, Held] = {}
        steps, tau, own_ctrl = count("steps", self.steps, 0), self.tau, unless_empty(mech, self.ctrl)
        if isinstance(tau, Held):
            held["tau"], tau = tau, None
        if isinstance(own_ctrl, Held):
            held["ctrl"], own_ctrl = own_ctrl, None
        acting = acting_laws(mech, self.passive, step, self.dt)
        if "ctrl" in held and not acting.n_ctrl:
            raise MechanismError(f"rollout: {no_controls(mech, 'ctrl')}")
        feedback, ctrl = self.feedback, own_ctrl
        if feedback is not None and not isinstance(feedback, Mapping):
            (acting, ctrl), feedback = self._with_controller(mech, acting, own_ctrl), None
        more = {} if self.wrenches is None else {"wrenches": self.wrenches}
        more |= feedback_of(mech, feedback) | controls_of(mech, acting, ctrl, self.activation)
        more |= schedule_of(mech, self.active) | drives_of(mech, self.drive, step, self.dt, steps)
        bonds = mech.constraints
        now = bonds.at_time(0.0)
        state = state_by_joint(now, {"q": q0, "v": v0, "tau": tau})
        if v0 is None and self.drive is None and bonds.driven:  # as slow as drives let it be
            start = mech.initial if state["q"] is None else np.asarray(state["q"])
            state["v"] = constraints.project(now, start, np.zeros((*start.shape[:-1], mech.nv)))[1]
        given = {**state, "dt": step_length(mech, self.dt), **more, **parameters}
        asked = {**(feedback or {}), "q": q0, "v": v0, "tau": tau, "ctrl": own_ctrl, ACTIVATION: self.activation}
        return Request(bonds.structure, step.given(step.parameters, acting, tuple(more)), steps, given, asked, held)

    def _with_controller(self, mech: Mechanism, acting: Acting, ctrl: Any) -> tuple[Acting, Any]:
        """What acts and control inputs, where feedback is a compiled controller: one more law, whose reference follows
        the inputs of actuators."""
        control = self.feedback
        if not isinstance(control, CompiledControl):
            if not callable(control):
                by_name("feedback", control, FEEDBACK_EXAMPLE)
            raise TypeError(
                "rollout: feedback takes controllers that are compiled (lw.control.computed_torque, "
                "operational_space_control, decoupled_tracking, lqr, joint_feedback, and "
                "lw.control.saturated of them) or "
                f"{{'target': q, 'kp': 100.0, 'kd': 10.0}}, not {type(control).__name__}: give "
                "tau=lw.motion.held(control, period) in its place"
            )
        if control.mech.nq != mech.nq or control.mech.nv != mech.nv:
            raise MechanismError(f"rollout: the controller is one of {control.mech.name!r}, not of {mech.name!r}")
        reference = control.references(step_length(mech, self.dt), self.steps)
        own = np.zeros(acting.n_ctrl) if ctrl is None else np.asarray(inputs_by_actuator(mech, ctrl), dtype=float)
        own = own[None] if own.ndim == 1 else own
        rows = np.broadcast_shapes(own.shape[:-1], reference.shape[:-1])
        together = np.concatenate([np.broadcast_to(x, (*rows, x.shape[-1])) for x in (own, reference)], axis=-1)
        law = control.law_for(mech, bool(self.parameters))
        return Acting((*acting.laws, law)), together if together.shape[-1] else None


@dataclass
class Request:
    """A motion in compiled steps whose arguments are checked but for the shapes of arrays.

    mech    the mechanism that steps are compiled for: what drives ask for is an input of these
    step    one of them
    steps   how many
    given   their inputs by name, those of every step (..., steps, core), (..., 1, core) or (core)
    asked   what was given by name; what is made of None or of numbers by joint does not decide on the precision
    held    "tau" and "ctrl" that are asked every so many steps
    """

    mech: Mechanism
    step: Step
    steps: int
    given: Mapping[str, Any]
    asked: Mapping[str, Any]
    held: Mapping[str, Held]

    @property
    def precision(self) -> str:
        """float32 if all arrays that callers gave are, else float64."""
        asked = {**dict.fromkeys((*FEEDBACK, ACTIVE, DRIVE)), **self.asked}
        made = {name for name, x in asked.items() if x is None or isinstance(x, Mapping)}
        ctrl = self.asked.get("ctrl", self.given.get("ctrl"))  # without references of controllers
        given = {**self.given, "ctrl": ctrl}
        chosen = [x for name, x in given.items() if x is not None and name not in made]
        arrays = any(isinstance(x, np.ndarray) or on_device(x) for x in chosen)  # numbers alone say nothing
        single = arrays and all(map(is_single, chosen))
        return "float32" if single else "float64"

    def plain(self) -> Request:
        """With arrays of other libraries as NumPy's."""
        try:
            return self.with_given(dict(zip(self.given, all_plain(list(self.given.values())), strict=True)))
        except UnreadableArrayError as error:
            raise KernelError(f"rollout: {list(self.given)[error.place]} {error}") from None

    def with_given(self, given: Mapping[str, Any]) -> Request:
        """With other values of inputs."""
        return Request(self.mech, self.step, self.steps, {**self.given, **given}, self.asked, self.held)

    def part(self, first: int, steps: int) -> Request:
        """Some of the steps."""

        def some(name: str, x: Any) -> Any:
            """The same where it is the same in all steps."""
            axis = np.ndim(x) - PER_STEP.get(name, np.ndim(x)) - 1
            if axis < 0 or np.shape(x)[axis] != self.steps:
                return x
            return np.take(x, range(first, first + steps), axis=axis)

        return replace(self, steps=steps, given={name: some(name, x) for name, x in self.given.items()})

    def arrays(
        self, inputs: Sequence[Array], dtype: np.dtype, every: int
    ) -> tuple[dict[Array, np.ndarray], tuple[int, ...]]:
        """The inputs of steps, those of every step as (..., records, every, core), and the shape of the batch."""
        mech, steps = self.mech, self.steps
        arrays, batches = {}, {}
        for array in inputs:
            per_step, core = array.name in PER_STEP, array.shape
            values = own = _numbers(mech, array.name, self.given[array.name], dtype)
            if per_step and values.ndim == len(core):
                values = values[None]
            elif array.name in GAINS and values.ndim == 0:
                values = _of_motors(mech, values).astype(dtype)
            lead = values.ndim - len(core)
            if (
                lead < per_step
                or values.shape[lead:] != core
                or (per_step and values.shape[lead - 1] not in (1, steps))
            ):
                raise KernelError(misfit(array.name, core, own.shape, steps if per_step else None))
            if array.name in CONFIGURATIONS and isinstance(values, np.ndarray):
                values = with_unit_quaternions(mech, CONFIGURATIONS[array.name], values)
            if array.name == "dt" and isinstance(values, np.ndarray) and not np.isfinite(values).all():
                wrong = self.given["dt"]
                raise MechanismError(f"rollout: dt must be finite, the length of a step in seconds, not {wrong!r}")
            batches[array.name] = values.shape[: lead - per_step]
            arrays[array] = by_step(values, len(core), steps, every) if per_step else values
        try:
            return arrays, np.broadcast_shapes(*batches.values())
        except ValueError:
            listed = ", ".join(f"{name} {batch}" for name, batch in batches.items())
            raise KernelError(f"rollout: the batch shapes do not broadcast: {listed}") from None


def by_name(what: str, given: Mapping[str, Any] | None, example: str) -> Mapping[str, Any]:
    if given is not None and not isinstance(given, Mapping):
        raise TypeError(f"{what} must map names to values, such as {example}, got {given!r}")
    return given or {}


def acting_laws(mech: Mechanism, passive: Any, step: Step, dt: Any) -> Acting:
    """What acts by itself in steps of this method and with these parameters."""
    if passive is not None and not isinstance(passive, Passive):
        raise TypeError(f"passive must be a linkwise.forces.Passive, such as Passive.of(mech), not {passive!r}")
    explicit, implicit = fixed_steps(step.method, step_length(mech, dt), usual_step(mech), step.coordinates)
    elements = resolved(mech, passive, explicit, implicit)
    acting = Acting() if elements is None else elements.acting
    varied = numbers_that_act(mech, step.parameters)
    if not varied:
        return acting
    if passive is not None and any(kind != CONTACT_FRICTION for kind, _ in varied):
        raise ValueError(
            f"rollout: {', '.join(step.parameters)} of parameters are numbers of the mechanism's own joints, in whose "
            "place passive acts: give one of the two"
        )
    return with_varying_numbers(mech, acting, varied, explicit)


def numbers_that_act(mech: Mechanism, parameters: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Which of these are not of the bare mechanism, but of springs, dampers, friction and contacts."""
    _, places = parameter_arrays(mech, parameters)
    found = tuple(key for own in places for key, _ in own if key[0] in NUMBERS_THAT_ACT)
    idle = [mech.contact_pairs[k].name for kind, k in found if kind == CONTACT_FRICTION]
    idle = [name for name in idle if not mech.forces.acts("contact", name)]
    if idle:
        raise MechanismError(
            f"rollout: contact {idle[0]!r} of mechanism {mech.name!r} is switched off, and its friction does nothing: "
            "mech.with_acting(contact=True) switches it on"
        )
    return found


def controls_of(mech: Mechanism, acting: Acting, ctrl: Any, activation: Any) -> dict[str, Any]:
    """Control inputs and activations, where there are any; zero where nothing is given."""
    found = {}
    for name, given, size in (("ctrl", ctrl, acting.n_ctrl), (ACTIVATION, activation, acting.n_activation)):
        if name == "ctrl":
            given = inputs_by_actuator(mech, given)
        if size:
            found[name] = np.zeros(size, np.float32) if given is None else given  # exact, and decides on no precision
        elif given is not None:
            raise MechanismError(f"rollout: {no_controls(mech, name)}")
    return found


def schedule_of(mech: Mechanism, active: Any) -> dict[str, Any]:
    """Which constraints hold, 1 or 0 each, where that is given."""
    if active is None:
        return {}
    if not mech.loops:
        raise MechanismError(
            f"rollout: mechanism {mech.name!r} has no constraints, which active= switches: "
            "linkwise.contact.hold_frames makes those of feet"
        )
    if on_device(active):
        return {ACTIVE: active}
    values = np.asarray(plain(active))
    if values.dtype.kind not in "biuf" or not np.isin(values, (0, 1)).all():
        raise MechanismError(
            "rollout: active must be booleans, whether each constraint of mech.loops holds, (..., "
            f"{len(mech.loops)},) or (..., steps, {len(mech.loops)})"
        )
    return {ACTIVE: values.astype(np.float32)}  # exact, and decides on no precision


def drive_values(
    mech: Mechanism, dt: ArrayLike | None, steps: int, method: str | None = None, start: ArrayLike = 0.0
) -> Float64Array:
    """(..., steps, moments, number of drives, 3): the positions, velocities and accelerations that the drives of a
    mechanism (``mech.constraints.driven``) ask for at the moments of every step of a rollout from the time ``start``.

    A step looks at them after each part of it at which its method has a stage, and at its end: 0, 1/2 and 1 for "rk4",
    0 and 1 for "semi_implicit".  ``rollout`` takes them as ``drive``.
    """
    moments = step_of(mech, method, "joint").rule.moments
    lengths, first = (real_numbers(name, x) for name, x in (("dt", step_length(mech, dt)), ("start", start)))
    parts = np.arange(count("steps", steps, 0))[:, None] + np.array(moments)
    times, which = np.unique(first[..., None, None] + lengths[..., None, None] * parts, return_inverse=True)
    rows = [mech.constraints.drives_at(t) for t in times.tolist()]
    shape = np.broadcast_shapes(first.shape, lengths.shape)
    table = np.array(rows).reshape(len(rows), len(mech.constraints.driven), 3)
    return table[which].reshape(*shape, *parts.shape, *table.shape[1:])


def drives_of(mech: Mechanism, drive: Any, step: Step, dt: Any, steps: int) -> dict[str, Any]:
    """What drives ask for in every step: as given, or by their own functions from the time zero on."""
    if drive is not None and not mech.constraints.driven:
        raise MechanismError(f"rollout: mechanism {mech.name!r} has no drives (Builder.drive), which drive= is for")
    if drive is not None or not mech.constraints.driven:
        return {} if drive is None else {DRIVE: drive}
    if not mech.constraints.waits_for_time:
        raise MechanismError(
            f"rollout: mechanism {mech.name!r} is what drives make of it at one time: roll out the mechanism itself, "
            "and not what at_time(t) gives, or give drive=, what drives ask for in every step (lw.motion.drive_values)"
        )
    found = drive_values(mech, dt, steps, step.method)
    warn_of_drives(mech, 0.0, steps * float(np.abs(np.asarray(step_length(mech, dt), float)).max(initial=0.0)))
    return {DRIVE: found}


def feedback_of(mech: Mechanism, given: Mapping[str, Any] | None) -> dict[str, Any]:
    """Target and gains, all three of them if there is any."""
    named = by_name("feedback", given, FEEDBACK_EXAMPLE)
    for name in named:
        one_of("part of feedback", name, (*FEEDBACK, GAIN))
    if {"kp", GAIN} & {*named} and "target" not in named:
        raise ValueError("rollout: feedback with kp or gain needs a target, the configuration that it leads to")
    if not named:
        return {}
    still = neutral(mech).astype(np.float32)  # exact, and does not decide on the precision
    found = {"target": still, "kp": 0.0, "kd": 0.0} | {
        name: feedback_by_joint(mech, name, x) for name, x in named.items()
    }
    return {name: found[name] for name in (*FEEDBACK, GAIN) if name in found}


def feedback_by_joint(mech: Mechanism, name: str, given: Any) -> Any:
    """Target or gains as an array if they are given by the names of joints."""
    if not isinstance(given, Mapping):
        return given
    return configuration_by_joint(mech, name, given) if name == "target" else rates_by_joint(mech, name, given, 0.0)


def drive_array(mech: Mechanism, name: str, given: Any) -> np.ndarray:
    """(..., n): "tau", "ctrl", "target", "kp" or "kd" of all coordinates or actuators, by name or not; where nothing is
    given zero, or the initial configuration."""
    if name == "ctrl":
        given = inputs_by_actuator(mech, given)
    else:
        given = feedback_by_joint(mech, name, given)
    if given is None:
        return mech.initial.copy() if name == "target" else np.zeros(mech.n_ctrl if name == "ctrl" else mech.nv)
    values = real_numbers(name, plain(given))
    return _of_motors(mech, values) if name in GAINS and values.ndim == 0 else values


def _of_motors(mech: Mechanism, gain: np.ndarray) -> np.ndarray:
    """(nv,): one gain, of all coordinates that have a motor."""
    return np.where(actuated_coordinates(mech, mech.initial, None), gain, 0.0)


def step_length(mech: Mechanism, dt: Any) -> Any:
    """dt, that of the mechanism's file if it is left out."""
    if dt is None and mech.metadata.timestep is None:
        raise KernelError(
            f"rollout: dt is missing, and mechanism {mech.name!r} has no time step of its own (mech.metadata.timestep, "
            "<option timestep> of MJCF): give the length of a step, in seconds"
        )
    return mech.metadata.timestep if dt is None else dt


def stride(steps: int, every: int, final_only: bool) -> int:
    """The number of steps from one kept state to the next."""
    every = count("every", every, 1)
    if final_only:
        if every != 1:
            raise ValueError("give every or final_only, not both: final_only keeps the last state alone")
        return max(1, steps)
    if steps % every:
        raise ValueError(f"every must divide the number of steps: {steps} steps are no multiple of {every}")
    return every


def count(what: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{what} must be an integer, at least {least}, got {value!r}")
    return int(value)


def by_step(values: Any, rank: int, steps: int, every: int) -> Any:
    """(..., records, every, core): an input of every step, (..., steps, core) or (..., 1, core), or core alone, which
    has ``rank`` axes; in the memory of ``values``."""
    lead = max(values.ndim - rank - 1, 0)
    batch, core = values.shape[:lead], values.shape[values.ndim - rank :]
    cut = (*batch, steps // every, every, *core)
    if values.ndim > rank and values.shape[lead] == steps:
        return values.reshape(cut)
    if type(values) is np.ndarray and values.flags.c_contiguous and values.size:  # several times as quick as below
        strides = values.strides
        return np.ndarray(cut, values.dtype, values, 0, (*strides[:lead], 0, 0, *strides[values.ndim - rank :]))
    values = values if values.ndim > rank else values[None]
    return np.broadcast_to(values, (*batch, steps, *core)).reshape(cut)


def _numbers(mech: Mechanism, name: str, given: Any, dtype: np.dtype) -> np.ndarray:
    if given is None:
        if name in ("q", "v", "tau"):
            return STATE[name].otherwise(mech).astype(dtype)
        raise KernelError(f"rollout: {name} is missing")
    if callable(given):
        asked = f"{name}=lw.motion.held(control, period) asks a controller every so many steps, " * (
            name in ("tau", "ctrl")
        )
        if name == "tau" and isinstance(given, CompiledControl):
            asked = f"feedback=control has this controller inside the steps, {asked}"
        raise TypeError(
            f"rollout: {name} must be an array, given before the motion: {asked}"
            "lw.simulate takes functions of (t, q, v)"
        )
    try:
        values = given if on_device(given) else np.asarray(given)
    except ValueError as ragged:
        raise KernelError(f"rollout: {name} is no array: {ragged}") from None
    if not np.can_cast(values.dtype, np.float64):
        raise KernelError(
            f"rollout: {name} has dtype {values.dtype}, but real numbers that {dtype} can hold are needed"
        )
    return values.astype(dtype, copy=False)


def misfit(name: str, core: tuple[int, ...], shape: tuple[int, ...], steps: int | None) -> str:
    """What is wrong with the shape of an input; ``steps``: how many values it may have, None where it has one."""
    numbers = ", ".join(map(str, core))
    expected = f"(..., {numbers})" if core else "(...)"
    if steps is not None:
        expected = (
            f"({numbers}{',' * (len(core) == 1)}), ({steps}, {numbers}) or (..., {steps}, {numbers}); for values that "
            f"stay the same at all times but differ between states (..., 1, {numbers})"
        )
        if len(shape) > len(core) and shape[-len(core) :] == core:
            expected += f"; {shape[-len(core) - 1]} steps do not broadcast to {steps}"
    return f"rollout: {name} has shape {shape}, expected {expected}"
