"""Arguments of rollouts, by name of joint and actuator or as arrays: checked, and converted to one precision."""

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
CONFIGURATIONS = {"q": "q0", "target": "the target of feedback"}  # input of a step -> name of the argument


@dataclass
class Driving:
    """The arguments of ``rollout``, without the initial state and the choice of results."""

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
        """The request: the step to compile, and its inputs by name."""
        parameters = check_mapping("parameters", self.parameters, "{'mass': masses}")
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
            (acting, ctrl), feedback = self._add_controller(mech, acting, own_ctrl), None
        more = {} if self.wrenches is None else {"wrenches": self.wrenches}
        more |= feedback_inputs(mech, feedback) | control_inputs(mech, acting, ctrl, self.activation)
        more |= schedule_input(mech, self.active) | drive_input(mech, self.drive, step, self.dt, steps)
        bonds = mech.constraints
        now = bonds.at_time(0.0)
        state = state_by_joint(now, {"q": q0, "v": v0, "tau": tau})
        if v0 is None and self.drive is None and bonds.driven:  # the slowest motion that drives allow
            start = mech.initial if state["q"] is None else np.asarray(state["q"])
            state["v"] = constraints.project(now, start, np.zeros((*start.shape[:-1], mech.nv)))[1]
        inputs = {**state, "dt": step_length(mech, self.dt), **more, **parameters}
        asked = {**(feedback or {}), "q": q0, "v": v0, "tau": tau, "ctrl": own_ctrl, ACTIVATION: self.activation}
        return Request(bonds.structure, step.given(step.parameters, acting, tuple(more)), steps, inputs, asked, held)

    def _add_controller(self, mech: Mechanism, acting: Acting, ctrl: Any) -> tuple[Acting, Any]:
        """Force laws and control inputs with a compiled controller added as one more law.  Its reference is appended to
        the control inputs of the actuators."""
        control = self.feedback
        if not isinstance(control, CompiledControl):
            if not callable(control):
                check_mapping("feedback", control, FEEDBACK_EXAMPLE)
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
        own_ctrl = np.zeros(acting.n_ctrl) if ctrl is None else np.asarray(inputs_by_actuator(mech, ctrl), dtype=float)
        own_ctrl = own_ctrl[None] if own_ctrl.ndim == 1 else own_ctrl
        rows = np.broadcast_shapes(own_ctrl.shape[:-1], reference.shape[:-1])
        inputs = np.concatenate([np.broadcast_to(x, (*rows, x.shape[-1])) for x in (own_ctrl, reference)], axis=-1)
        law = control.law_for(mech, bool(self.parameters))
        return Acting((*acting.laws, law)), inputs if inputs.shape[-1] else None


@dataclass
class Request:
    """A motion in compiled steps.  Its arguments are checked, except for the shapes of arrays.

    mech    the mechanism that steps are compiled for; prescribed motion is an input of the steps
    step    the step
    steps   number of steps
    given   inputs by name; inputs per step are (..., steps, core), (..., 1, core) or (core)
    asked   the caller's arguments by name; None and numbers by joint do not affect the precision
    held    controllers of "tau" and "ctrl" with zero-order hold
    """

    mech: Mechanism
    step: Step
    steps: int
    given: Mapping[str, Any]
    asked: Mapping[str, Any]
    held: Mapping[str, Held]

    @property
    def precision(self) -> str:
        """float32 if all arrays of the caller are float32, else float64."""
        asked = {**dict.fromkeys((*FEEDBACK, ACTIVE, DRIVE)), **self.asked}
        made = {name for name, x in asked.items() if x is None or isinstance(x, Mapping)}
        ctrl = self.asked.get("ctrl", self.given.get("ctrl"))  # without references of controllers
        values = {**self.given, "ctrl": ctrl}
        chosen = [x for name, x in values.items() if x is not None and name not in made]
        arrays = any(isinstance(x, np.ndarray) or on_device(x) for x in chosen)  # numbers alone say nothing
        single = arrays and all(map(is_single, chosen))
        return "float32" if single else "float64"

    def plain(self) -> Request:
        """The request with arrays of other libraries converted to NumPy."""
        try:
            return self.with_given(dict(zip(self.given, all_plain(list(self.given.values())), strict=True)))
        except UnreadableArrayError as error:
            raise KernelError(f"rollout: {list(self.given)[error.place]} {error}") from None

    def with_given(self, inputs: Mapping[str, Any]) -> Request:
        """The request with some inputs replaced."""
        return Request(self.mech, self.step, self.steps, {**self.given, **inputs}, self.asked, self.held)

    def part(self, first: int, steps: int) -> Request:
        """The request for ``steps`` steps from step ``first`` on."""

        def some(name: str, x: Any) -> Any:
            """The chosen steps of an input; a constant input is returned unchanged."""
            axis = np.ndim(x) - PER_STEP.get(name, np.ndim(x)) - 1
            if axis < 0 or np.shape(x)[axis] != self.steps:
                return x
            return np.take(x, range(first, first + steps), axis=axis)

        return replace(self, steps=steps, given={name: some(name, x) for name, x in self.given.items()})

    def arrays(
        self, inputs: Sequence[Array], dtype: np.dtype, every: int
    ) -> tuple[dict[Array, np.ndarray], tuple[int, ...]]:
        """The inputs of the steps and the shape of the batch; inputs per step become (..., records, every, core)."""
        mech, steps = self.mech, self.steps
        arrays, batches = {}, {}
        for array in inputs:
            per_step, core = array.name in PER_STEP, array.shape
            values = supplied = _numbers(mech, array.name, self.given[array.name], dtype)
            if per_step and values.ndim == len(core):
                values = values[None]
            elif array.name in GAINS and values.ndim == 0:
                values = _motor_gains(mech, values).astype(dtype)
            lead = values.ndim - len(core)
            if (
                lead < per_step
                or values.shape[lead:] != core
                or (per_step and values.shape[lead - 1] not in (1, steps))
            ):
                raise KernelError(misfit(array.name, core, supplied.shape, steps if per_step else None))
            if array.name in CONFIGURATIONS and isinstance(values, np.ndarray):
                values = with_unit_quaternions(mech, CONFIGURATIONS[array.name], values)
            if array.name == "dt" and isinstance(values, np.ndarray) and not np.isfinite(values).all():
                wrong = self.given["dt"]
                raise MechanismError(f"rollout: dt must be finite, the length of a step in seconds, not {wrong!r}")
            batches[array.name] = values.shape[: lead - per_step]
            arrays[array] = split_into_records(values, len(core), steps, every) if per_step else values
        try:
            return arrays, np.broadcast_shapes(*batches.values())
        except ValueError:
            listed = ", ".join(f"{name} {batch}" for name, batch in batches.items())
            raise KernelError(f"rollout: the batch shapes do not broadcast: {listed}") from None


def check_mapping(argument: str, values: Mapping[str, Any] | None, example: str) -> Mapping[str, Any]:
    if values is not None and not isinstance(values, Mapping):
        raise TypeError(f"{argument} must map names to values, such as {example}, got {values!r}")
    return values or {}


def acting_laws(mech: Mechanism, passive: Any, step: Step, dt: Any) -> Acting:
    """Force laws of steps of this method, with these parameters as inputs."""
    if passive is not None and not isinstance(passive, Passive):
        raise TypeError(f"passive must be a linkwise.forces.Passive, such as Passive.of(mech), not {passive!r}")
    explicit, implicit = fixed_steps(step.method, step_length(mech, dt), usual_step(mech), step.coordinates)
    elements = resolved(mech, passive, explicit, implicit)
    acting = Acting() if elements is None else elements.acting
    varied = force_parameters(mech, step.parameters)
    if not varied:
        return acting
    if passive is not None and any(kind != CONTACT_FRICTION for kind, _ in varied):
        raise ValueError(
            f"rollout: {', '.join(step.parameters)} of parameters are numbers of the mechanism's own joints, in whose "
            "place passive acts: give one of the two"
        )
    return with_varying_numbers(mech, acting, varied, explicit)


def force_parameters(mech: Mechanism, parameters: Sequence[str]) -> tuple[tuple[str, int], ...]:
    """Keys of those parameters that belong to springs, dampers, friction and contacts, not to bodies."""
    _, entries = parameter_arrays(mech, parameters)
    keys = tuple(key for row in entries for key, _ in row if key[0] in NUMBERS_THAT_ACT)
    idle = [mech.contact_pairs[k].name for kind, k in keys if kind == CONTACT_FRICTION]
    idle = [name for name in idle if not mech.forces.acts("contact", name)]
    if idle:
        raise MechanismError(
            f"rollout: contact {idle[0]!r} of mechanism {mech.name!r} is switched off, and its friction does nothing: "
            "mech.with_acting(contact=True) switches it on"
        )
    return keys


def control_inputs(mech: Mechanism, acting: Acting, ctrl: Any, activation: Any) -> dict[str, Any]:
    """Control inputs and activations of a mechanism with actuators; zero by default."""
    inputs = {}
    for name, value, size in (("ctrl", ctrl, acting.n_ctrl), (ACTIVATION, activation, acting.n_activation)):
        if name == "ctrl":
            value = inputs_by_actuator(mech, value)
        if size:
            inputs[name] = (
                np.zeros(size, np.float32) if value is None else value
            )  # exact, and does not affect the precision
        elif value is not None:
            raise MechanismError(f"rollout: {no_controls(mech, name)}")
    return inputs


def schedule_input(mech: Mechanism, active: Any) -> dict[str, Any]:
    """The schedule of active constraints as an input, 1 or 0 each; empty without ``active``."""
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
    return {ACTIVE: values.astype(np.float32)}  # exact, and does not affect the precision


def drive_values(
    mech: Mechanism, dt: ArrayLike | None, steps: int, method: str | None = None, start: ArrayLike = 0.0
) -> Float64Array:
    """(..., steps, moments, number of drives, 3): prescribed positions, velocities and accelerations of the drives.

    Drives are those of ``mech.constraints.driven``; the rollout starts at the time ``start``.  The moments of a step
    are the times of its stages and its end: 0, 1/2 and 1 for "rk4", 0 and 1 for "semi_implicit".  ``rollout`` takes
    the result as ``drive``.
    """
    moments = step_of(mech, method, "joint").rule.moments
    lengths, first = (real_numbers(name, x) for name, x in (("dt", step_length(mech, dt)), ("start", start)))
    parts = np.arange(count("steps", steps, 0))[:, None] + np.array(moments)
    times, which = np.unique(first[..., None, None] + lengths[..., None, None] * parts, return_inverse=True)
    rows = [mech.constraints.drives_at(t) for t in times.tolist()]
    shape = np.broadcast_shapes(first.shape, lengths.shape)
    table = np.array(rows).reshape(len(rows), len(mech.constraints.driven), 3)
    return table[which].reshape(*shape, *parts.shape, *table.shape[1:])


def drive_input(mech: Mechanism, drive: Any, step: Step, dt: Any, steps: int) -> dict[str, Any]:
    """Prescribed motion in every step: the argument, or the drives' own functions from the time zero on."""
    if drive is not None and not mech.constraints.driven:
        raise MechanismError(f"rollout: mechanism {mech.name!r} has no drives (Builder.drive), which drive= is for")
    if drive is not None or not mech.constraints.driven:
        return {} if drive is None else {DRIVE: drive}
    if not mech.constraints.waits_for_time:
        raise MechanismError(
            f"rollout: mechanism {mech.name!r} is what drives make of it at one time: roll out the mechanism itself, "
            "and not what at_time(t) gives, or give drive=, what drives ask for in every step (lw.motion.drive_values)"
        )
    values = drive_values(mech, dt, steps, step.method)
    warn_of_drives(mech, 0.0, steps * float(np.abs(np.asarray(step_length(mech, dt), float)).max(initial=0.0)))
    return {DRIVE: values}


def feedback_inputs(mech: Mechanism, feedback: Mapping[str, Any] | None) -> dict[str, Any]:
    """Target, kp and kd of feedback, completed by zeros; empty without feedback."""
    named = check_mapping("feedback", feedback, FEEDBACK_EXAMPLE)
    for name in named:
        one_of("part of feedback", name, (*FEEDBACK, GAIN))
    if {"kp", GAIN} & {*named} and "target" not in named:
        raise ValueError("rollout: feedback with kp or gain needs a target, the configuration that it leads to")
    if not named:
        return {}
    still = neutral(mech).astype(np.float32)  # exact, and does not affect the precision
    parts = {"target": still, "kp": 0.0, "kd": 0.0} | {
        name: feedback_by_joint(mech, name, x) for name, x in named.items()
    }
    return {name: parts[name] for name in (*FEEDBACK, GAIN) if name in parts}


def feedback_by_joint(mech: Mechanism, name: str, values: Any) -> Any:
    """Target or gains as an array; values by joint name are expanded."""
    if not isinstance(values, Mapping):
        return values
    return configuration_by_joint(mech, name, values) if name == "target" else rates_by_joint(mech, name, values, 0.0)


def drive_array(mech: Mechanism, name: str, values: Any) -> np.ndarray:
    """(..., n): "tau", "ctrl", "target", "kp" or "kd" of all coordinates or actuators, from an array or by name.  None
    gives the initial configuration for "target", zero for the others."""
    if name == "ctrl":
        values = inputs_by_actuator(mech, values)
    else:
        values = feedback_by_joint(mech, name, values)
    if values is None:
        return mech.initial.copy() if name == "target" else np.zeros(mech.n_ctrl if name == "ctrl" else mech.nv)
    array = real_numbers(name, plain(values))
    return _motor_gains(mech, array) if name in GAINS and array.ndim == 0 else array


def _motor_gains(mech: Mechanism, gain: np.ndarray) -> np.ndarray:
    """(nv,): one gain at all actuated coordinates, zero elsewhere."""
    return np.where(actuated_coordinates(mech, mech.initial, None), gain, 0.0)


def step_length(mech: Mechanism, dt: Any) -> Any:
    """dt, by default the time step of the mechanism's file."""
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


def count(name: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral) or value < least:
        raise ValueError(f"{name} must be an integer, at least {least}, got {value!r}")
    return int(value)


def split_into_records(values: Any, rank: int, steps: int, every: int) -> Any:
    """(..., records, every, core): a view of an input per step, grouped by kept states.  ``values`` is (..., steps,
    core), (..., 1, core) or core, which has ``rank`` axes."""
    lead = max(values.ndim - rank - 1, 0)
    batch, core = values.shape[:lead], values.shape[values.ndim - rank :]
    cut = (*batch, steps // every, every, *core)
    if values.ndim > rank and values.shape[lead] == steps:
        return values.reshape(cut)
    if type(values) is np.ndarray and values.flags.c_contiguous and values.size:  # several times faster than below
        strides = values.strides
        return np.ndarray(cut, values.dtype, values, 0, (*strides[:lead], 0, 0, *strides[values.ndim - rank :]))
    values = values if values.ndim > rank else values[None]
    return np.broadcast_to(values, (*batch, steps, *core)).reshape(cut)


def _numbers(mech: Mechanism, name: str, values: Any, dtype: np.dtype) -> np.ndarray:
    if values is None:
        if name in ("q", "v", "tau"):
            return STATE[name].otherwise(mech).astype(dtype)
        raise KernelError(f"rollout: {name} is missing")
    if callable(values):
        asked = f"{name}=lw.motion.held(control, period) asks a controller every so many steps, " * (
            name in ("tau", "ctrl")
        )
        if name == "tau" and isinstance(values, CompiledControl):
            asked = f"feedback=control has this controller inside the steps, {asked}"
        raise TypeError(
            f"rollout: {name} must be an array, given before the motion: {asked}"
            "lw.simulate takes functions of (t, q, v)"
        )
    try:
        array = values if on_device(values) else np.asarray(values)
    except ValueError as ragged:
        raise KernelError(f"rollout: {name} is no array: {ragged}") from None
    if not np.can_cast(array.dtype, np.float64):
        raise KernelError(f"rollout: {name} has dtype {array.dtype}, but real numbers that {dtype} can hold are needed")
    return array.astype(dtype, copy=False)


def misfit(name: str, core: tuple[int, ...], shape: tuple[int, ...], steps: int | None) -> str:
    """Message for an input of the wrong shape.  ``steps``: number of steps of an input per step, else None."""
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
