"""Many motions at once: states and joint forces in, trajectories out, a compiled scan over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .. import constraints
from ..compiler.ir.program import Array, Program
from ..compiler.known_targets import is_long, load, rollout_targets
from ..compiler.passes.scan import scan
from ..compiler.pipeline import compile
from ..compiler.recipes import remembered_program
from ..compiler.runtime.arrays import NoDeviceError, UnreadableArrayError, is_foreign, on_device
from ..compiler.runtime.device_arrays import DeviceCall
from ..compiler.runtime.explanations import KernelError
from ..compiler.store import kernel_function, stored
from ..compiler.variants import shared_by_variants
from ..control.compiled import CompiledControl
from ..dynamics.by_actuator import unless_empty
from ..dynamics.by_joint import state_by_joint
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import ByJoint, Float64Array
from ..mechanism import Mechanism, one_of
from ..mechanism.elements import CONTACT_FRICTION
from ..mechanism.quaternions import has_quaternions, with_unit_quaternions
from .arguments import (
    CONFIGURATIONS,
    acting_laws,
    by_name,
    by_step,
    controls_of,
    count,
    drives_of,
    feedback_of,
    input_arrays,
    numbers_that_act,
    plain_arrays,
    precision,
    schedule_of,
    step_length,
    stride,
    with_controller,
    without_time,
)
from .checks import (
    check_bodies,
    warn_of_limits_left_out,
    warn_of_starts_beyond_limits,
    warn_of_starts_in_penetration,
    with_largest,
)
from .constrained import WithinConstraints, onto_loops, onto_loops_on_device, refuse_open_schedule
from .controllers import asking_controllers
from .forces import Held
from .records import apart_from, look_at_records, no_place, results_of, returned, started, with_batch
from .step import (
    ACTIVATION,
    ACTIVE,
    DRIVE,
    FEEDBACK,
    GAIN,
    MOMENTA,
    NEXT,
    NONE_YET,
    PER_STEP,
    TRUSTED,
    Step,
    step_of,
    warn_of_long_steps,
)

#: Operations: in momenta every stage waits for the one before, and steps this short for their own results; so many
#: vectors of states are then computed side by side, if there are so many states.
SHORT = {4: 600, 2: 2000}
MANY = {4: 64, 2: 16}


@asking_controllers
def rollout(
    mech: Mechanism,
    q0: ByJoint | None,
    v0: ByJoint | None,
    tau: ByJoint | Held | None,
    dt: ArrayLike | None,
    steps: int,
    method: str | None = None,
    *,
    wrenches: ArrayLike | None = None,
    feedback: Mapping[str, Any] | CompiledControl | None = None,
    parameters: Mapping[str, Any] | None = None,
    every: int = 1,
    final_only: bool = False,
    out: tuple[Float64Array, Float64Array] | None = None,
    target: str = "cpu",
    passive: Passive | None = None,
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
    return_activation: bool = False,
    coordinates: str = "joint",
    forces: Any = ALL,
    active: ArrayLike | None = None,
    drive: ArrayLike | None = None,
    return_status: bool = False,
) -> tuple[Float64Array, ...]:
    """Motion of many states at once, under all force elements (``forces="all"``): q (..., steps + 1, nq) and v (...,
    steps + 1, nv), the initial state first.

    q0, v0       (..., nq), (..., nv): initial states, their batches broadcast; None and {joint: ...} as in ``simulate``
    tau          joint forces: None, (nv,) the same at all times, (steps, nv) in every step, (..., steps, nv) for every
                 state too, (..., 1, nv) for every state the same at all times; {joint: number}; or ``lw.motion.held``
    dt           length of a step: a number, or one for each state; may be negative or 0; None:
                 ``mech.metadata.timestep``
    method       "semi_implicit" (contact implicitly), of first order at a quarter of the cost, "rk4", of fourth order,
                 or the name of one of your own (``linkwise.extend.register_integrator``).  None: "semi_implicit" where
                 contact acts, else "rk4"
    wrenches     external, in link frames: None, or (n_links, 6) and more axes as tau
    feedback     {"target": ..., "kp": ..., "kd": ...}: joint forces kp (target - q) - kd v besides tau, of the start of
                 each step, and gain [target - q; -v] with "gain" (..., nv, 2 nv).  The target has the shapes of tau; kp
                 and kd are (..., nv) or a number, for all joints with motors; all but gain as {joint: ...} too.
                 Or a compiled controller (``lw.control.computed_torque``, ...), in every stage, of the mechanism it was
                 made of
    parameters   numbers of the mechanism that differ from state to state, as ``compile`` names them:
                 {"mass": (..., n_links), "forearm.com": (..., 3)}; masses and inertias that no body has are refused.
                 Of what acts too: "damping", "friction", "stiffness" (..., nv) of joints, "elbow.damping" of one;
                 "contact_friction" (...) of all contacts, "floor.contact_friction" of a shape's
    every        keep each ``every``-th state only: (..., steps // every + 1, nq); ``final_only``: the last, (..., nq)
    out          (q, v), arrays of the shapes of the results to write them to: new memory costs time
    target       "cpu", "cuda" (arrays on a GPU choose it, and are not checked), or "numpy": the slow reference
    forces       force elements that act: "all", what ``mech.with_acting`` leaves switched on; "none", kinds by name or
                 a ``lw.forces.Passive``: see ``lw.forward_dynamics``
    passive      elements (``linkwise.forces.Passive``) in place of the springs, damping, friction and limits of the
                 joints
    ctrl         control inputs of ``mech.forces.actuator_names`` in the shapes of tau, or {actuator: ...}; None for
                 zero
    activation   (..., n_activation): initial activations of actuators with dynamics; None for zero; with
                 ``return_activation`` the result is (q, v, activation)
    coordinates  what methods integrate beside q: "joint" (v), "momentum" (``lw.formulations.momenta``), "nu" or "xi"
                 (total joint rates, ``lw.formulations.diagonal``)
    active       a schedule: whether each constraint of ``mech.loops`` holds, in the shapes of tau; None: all do.  Those
                 that engage do so by an impact without rebound (``lw.contact.impact``), those that let go do not.
                 Ball joints and fixed ones on the ground (``lw.contact.hold_frames``: feet) hold where they touch down,
                 others close as they are
    drive        what drives (prescribed motion) ask for in every step, as ``lw.motion.drive_values`` gives it; None:
                 by their own functions, from the time 0
    return_status  the result ends with (...) integers: 0 where every step is the compiled one, else the number of the
                 first step that is not, from 1: near singular positions, or where numbers are lost

    Batches are spread over threads.  All-float32 arguments are computed in float32.  Loops are kept closed: every step
    ends with ``simulate``'s projection, and its arcs pass singular positions that steps do not resolve.  Initial states
    must be assembled; a ``MechanismWarning`` tells of velocities that are projected, and of motions that arcs leave.
    """
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    values = _given_values((q0, v0, tau, wrenches, ctrl, activation), feedback)
    usual = values and parameters is passive is active is drive is None and not return_status
    key = _key(values, dt, (steps, every, final_only), (method, target, coordinates)) if usual else None
    if plan := _known(mech, key):
        return returned(plan.again(mech, values, out)[0], return_activation)
    step, target = step_of(mech, method, coordinates), one_of("target", target, rollout_targets())
    parameters, steps = by_name("parameters", parameters, "{'mass': masses}"), count("steps", steps, 0)
    step = step.given(tuple(parameters))
    acting = acting_laws(mech, passive, step, dt)
    ctrl = own_ctrl = unless_empty(mech, ctrl)  # references of controllers, behind it, do not decide on the precision
    acting, feedback, ctrl = with_controller(mech, acting, feedback, ctrl, dt, steps, bool(parameters))
    more = {} if wrenches is None else {"wrenches": wrenches}
    more |= feedback_of(mech, feedback) | controls_of(mech, acting, ctrl, activation) | schedule_of(mech, active)
    state = state_by_joint(mech.constraints.at_time(0.0), {"q": q0, "v": v0, "tau": tau})
    if mech.constraints.driven:
        more |= drives_of(mech, drive, step, dt, steps)
        if v0 is None and drive is None:  # as slow as drives let it be
            start = mech.initial if state["q"] is None else np.asarray(state["q"])
            now = mech.constraints.at_time(0.0)
            state["v"] = constraints.project(now, start, np.zeros((*start.shape[:-1], mech.nv)))[1]
        mech = without_time(mech)
    elif drive is not None:
        drives_of(mech, drive, step, dt, steps)
    given = {**state, "dt": step_length(mech, dt), **more, **parameters}
    device = _device(target, given)
    target, given = ("cuda", device.seen) if device else (target, plain_arrays(given))
    asked = {**(feedback or {}), "q": q0, "v": v0, "tau": tau, "ctrl": own_ctrl, ACTIVATION: activation}
    dtype = precision({**given, "ctrl": own_ctrl}, asked)
    kept = Kept(steps, stride(steps, every, final_only), final_only)
    plan, arrays = _planned(mech, step.given(step.parameters, acting, tuple(more)), kept, dtype, target, given)
    warn_of_limits_left_out(mech, passive)
    found, status = plan.records(mech, arrays, out, device, passive is None)
    if key and device is None and not (mech.loops or plan.in_momenta):
        _remember(mech, key, plan, values, arrays)
    return (*returned(found, return_activation), *(status,) * return_status)


@dataclass(frozen=True)
class Kept:
    """Which states of how many steps are kept."""

    steps: int
    every: int
    final_only: bool

    @property
    def all(self) -> bool:
        return self.every == 1 and not self.final_only

    def axes(self, batch: tuple[int, ...]) -> tuple[int, ...]:
        """Those of the states before the axis of coordinates."""
        return batch if self.final_only else (*batch, self.steps // self.every + 1)


@dataclass(frozen=True)
class Compiled:
    """A compiled rollout, its inputs, and those of them that are numbers of this variant of a mechanism."""

    run: Callable[..., None]
    inputs: tuple[Array, ...]
    numbers: Mapping[str, np.ndarray]


def compiled_rollout(
    mech: Mechanism, step: Step, dtype: str, target: str, all_states: bool, vectors: int = 1
) -> Compiled:
    """The rollout of a step, from the mechanism's own store or made now.

    all_states   whether every state is kept, as rollouts in momenta have to know
    vectors      of states, that may be computed side by side
    """
    with_velocities = all_states if in_momenta(step, target) else None

    def rollout(numbers: tuple[Any, ...] = ()) -> tuple[Callable[..., None], tuple[Array, ...]]:
        decided = step.decisions(mech)
        program = remembered_program(_over_steps, mech, step, decided, dtype, target, numbers, with_velocities, vectors)
        inputs = tuple(replace(array, axes=()) for array in program.inputs)
        run = load(program, dtype, target)
        return (run, inputs) if with_velocities is None else without_momenta(run, inputs)

    def shared(numbers: Any) -> Any:
        run, inputs = rollout((numbers,))
        return lambda variant, vector: Compiled(run, inputs, {"numbers": vector})

    def own() -> Compiled:
        return Compiled(*rollout(), {})

    request = ("rollout", step, target, with_velocities, vectors)
    return stored(mech, (*request, dtype), lambda: shared_by_variants(mech, request, dtype, own, shared))


def _over_steps(
    mech: Mechanism,
    step: Step,
    decided: Mapping[str, Any],
    dtype: str,
    target: str,
    numbers: tuple[Any, ...],
    with_velocities: bool | None,
    vectors: int,
) -> Program:
    """The program of a rollout; ``decided`` are the decisions of the mechanism that it goes by."""
    program = step.program(mech, dtype, numbers, with_velocities=with_velocities, loops=None)
    if not program.loops and is_long(program, target):  # stages of one kind as a loop, but within constraints
        stages = not mech.loops
        program = step.program(mech, dtype, numbers, with_velocities=with_velocities, loops=None, stages=stages)
    per_run = tuple(array.name for array in program.inputs if array.name in PER_STEP)
    carried = {array.name: array.name.removesuffix(NEXT) for array in program.outputs}
    last = (MOMENTA + NEXT,) if with_velocities else ()
    return scan(program, carried, per_run, registers(program, vectors), last)


def _planned(
    mech: Mechanism, step: Step, kept: Kept, dtype: str, target: str, given: Mapping[str, Any]
) -> tuple[Plan, dict[Array, Any]]:
    """The rollout of what is given by name, and its arrays."""
    vectors = side_by_side(step, given["q"], given["v"])
    compiled = compiled_rollout(mech, step, dtype, target, kept.all, vectors)
    given = {**given, **compiled.numbers, TRUSTED: NONE_YET}
    precision, turns = np.dtype(dtype), has_quaternions(mech)
    arrays, batch = input_arrays(mech, compiled.inputs, given, precision, kept.steps, kept.every)
    sizes = (mech.nq, mech.nv, *(step.acting.n_activation,) * bool(step.acting.n_activation))
    shapes = [(*kept.axes(batch), size) for size in sizes]
    return Plan(step, kept, precision, target, compiled, batch, shapes, turns), arrays


@dataclass(frozen=True)
class Plan:
    """A rollout that is decided but for its numbers: what all calls have in common whose arrays are of the same shapes.

    To find out what a call asks for takes several times as long as to compute a short motion of one state, so plans are
    kept with the mechanism, as kernels are.

    kept      which states are kept
    batch     the batch that all arrays broadcast to
    shapes    of the results
    turns     whether some coordinates are quaternions, whose lengths are checked
    sources   in plans that are kept: for each input its place in ``GIVEN``, or an array that is the same in all calls
    """

    step: Step
    kept: Kept
    dtype: np.dtype
    target: str
    compiled: Compiled
    batch: tuple[int, ...]
    shapes: list[tuple[int, ...]]
    turns: bool
    sources: tuple[int | np.ndarray, ...] = ()

    @property
    def in_momenta(self) -> bool:
        return in_momenta(self.step, self.target)

    def again(self, mech: Mechanism, values: tuple[Any, ...], out: Any) -> tuple[Any, np.ndarray]:
        """The records of other numbers, in the order of ``GIVEN``."""
        arrays, steps, every = {}, self.kept.steps, self.kept.every
        for array, source in zip(self.compiled.inputs, self.sources, strict=True):
            if type(source) is not int:
                arrays[array] = source
                continue
            x = values[source]
            if self.turns and array.name in CONFIGURATIONS:
                x = with_unit_quaternions(mech, CONFIGURATIONS[array.name], x)
            arrays[array] = by_step(x, len(array.shape), steps, every) if array.name in PER_STEP else x
        return self.records(mech, arrays, out)

    def records(
        self,
        mech: Mechanism,
        arrays: dict[Array, Any],
        out: Any,
        device: DeviceCall | None = None,
        limits_act: bool = True,
    ) -> tuple[Any, np.ndarray]:
        """The states that are kept, the initial ones among them, on a GPU arrays of the caller's library; and the
        status of each motion.

        device       what takes arrays to the GPU; None on the CPU
        limits_act   whether those of the mechanism's joints do
        """
        if out is not None:
            arrays = dict(zip(arrays, apart_from(out, arrays.values()), strict=True))
        names = self.step.parameters
        varied = {array: x for array, x in arrays.items() if array.name in names} if names else {}
        self._check(mech, arrays, varied, limits_act)
        if mech.loops:
            numbers = {x.name: arrays[x] for x in of_bodies(mech, varied)}
            if DRIVE in self.step.inputs and self.kept.steps:
                numbers[DRIVE] = next(x for array, x in arrays.items() if array.name == DRIVE)[..., 0, 0, 0, :, :]
            _close(mech, self.step, arrays, numbers, device)
        initial = list(arrays.values())[:2]
        if len(self.shapes) > 2:
            initial += [x for array, x in arrays.items() if array.name == ACTIVATION]
        steps, final_only = self.kept.steps, self.kept.final_only
        if device is None:
            found = results_of(out, self.shapes, self.dtype)
            kept = started(initial, found, steps, final_only)
            return found, self._here(mech, arrays, varied, found, kept) if steps else np.zeros(self.batch, int)
        with device.stream():
            there = device.results(out, self.shapes, self.dtype)
            if there is None:
                raise KernelError(no_place(self.shapes, self.dtype, " on the device"))
            kept = started(device.copied(initial), there, steps, final_only)
            status = self._on_device(mech, arrays, varied, device, kept) if steps else np.zeros(self.batch, int)
            return device.delivered(there, out), status

    def _here(
        self,
        mech: Mechanism,
        arrays: Mapping[Array, Any],
        varied: Mapping[Array, Any],
        found: Sequence[np.ndarray],
        kept: list[np.ndarray],
    ) -> np.ndarray:
        """Run on the CPU; the status."""
        status: Any = 0
        if mech.loops:
            status = self._within_constraints(mech, arrays, varied, kept).run_here()
        else:
            with np.errstate(all="ignore"):  # what is lost is told below, once
                if self.in_momenta:
                    self._from_momenta(mech, arrays, varied, found, kept)
                else:
                    self.compiled.run(*arrays.values(), out=tuple(kept))
        judged = not (varied and any(array.name.endswith(CONTACT_FRICTION) for array in varied))
        lost = look_at_records(mech, self.step, arrays, self.batch, kept, self.kept.every, judged)
        return np.where(status == 0, lost, status) if mech.loops else lost

    def _on_device(
        self,
        mech: Mechanism,
        arrays: Mapping[Array, Any],
        varied: Mapping[Array, Any],
        device: DeviceCall,
        kept: list[Any],
    ) -> np.ndarray:
        """Run on a GPU; the status.  Closed mechanisms may need the same rollout on the CPU."""
        there = dict(zip(arrays, device.copied([*arrays.values()]), strict=True))
        if not mech.loops:
            self.compiled.run(*there.values(), out=tuple(kept))
            return np.zeros(self.batch, int)
        constrained = replace(self._within_constraints(mech, arrays, varied, kept), arrays=there)
        return constrained.run_on_device(
            device, lambda: compiled_rollout(mech, self.step, self.dtype.name, "cpu", self.kept.all).run
        )

    def _within_constraints(
        self, mech: Mechanism, arrays: Mapping[Array, Any], varied: Mapping[Array, Any], kept: Sequence[Any]
    ) -> WithinConstraints:
        whole = with_batch(arrays, self.batch)
        return WithinConstraints(mech, self.step, self.compiled.run, arrays, whole, kept, bool(varied))

    def _from_momenta(
        self,
        mech: Mechanism,
        arrays: Mapping[Array, Any],
        varied: Mapping[Array, Any],
        found: Sequence[np.ndarray],
        kept: Sequence[np.ndarray],
    ) -> None:
        """Steps from momenta to momenta, and the velocities of the states that are kept.

        The velocities of a state are known at the start of the step that leaves it: where every state is kept, those
        are the records of v, one place earlier than the positions after the step, and only the last state is solved for
        alone.  Where some are kept, momenta are recorded in their place and solved for together in the end.
        """
        run, parameters, inputs, (q, v, *_) = self.compiled.run, of_bodies(mech, varied), [*arrays.values()], kept
        p = _computed(mech, "joint_momenta", inputs[0], inputs[1], parameters)
        if self.kept.all:
            last, of_starts = np.empty((*self.batch, mech.nv), v.dtype), found[1]
            run(p, *inputs, out=(q, of_starts[..., :-1, :], *kept[2:], last))
            of_starts[..., 0, :] = inputs[1]
            v[..., -1, :] = _computed(mech, "momentum_velocities", q[..., -1, :], last, parameters)
        else:
            run(p, *inputs, out=tuple(kept))
            each = {array: np.expand_dims(x, x.ndim - len(array.shape)) for array, x in parameters.items()}
            v[...] = _computed(mech, "momentum_velocities", q, v, each)

    def _check(
        self, mech: Mechanism, arrays: Mapping[Array, Any], varied: Mapping[Array, Any], limits_act: bool
    ) -> None:
        """Refuse numbers that no body has; warn of steps that are too long, and of starts beyond limits or in
        penetration."""
        for array, values in varied.items():
            check_bodies(mech, array.name, values)
        start = next(iter(arrays.values()))
        if not isinstance(start, np.ndarray):
            return  # on a GPU they are taken as they are
        if self.step.acting.laws:
            dt = next(x for array, x in arrays.items() if array.name == "dt")
            bodies = of_bodies(mech, varied)
            acts = {array.name: x for array, x in varied.items() if array not in bodies}
            acting = with_largest(mech, self.step.acting, acts) if acts else self.step.acting
            warn_of_long_steps(mech, replace(self.step, acting=acting) if acts else self.step, dt)
        if limits_act:
            warn_of_starts_beyond_limits(mech, start)
        warn_of_starts_in_penetration(mech, start)


def _close(
    mech: Mechanism,
    step: Step,
    arrays: dict[Array, Any],
    parameters: Mapping[str, Any],
    device: DeviceCall | None,
) -> None:
    """The initial states with their constraints kept; under a schedule those that hold must be closed already, and
    engage by the impact of the first step."""
    q, v, *_ = arrays
    if ACTIVE in step.inputs:
        if device is None:
            active = next(x for array, x in arrays.items() if array.name == ACTIVE)
            refuse_open_schedule(mech, arrays[q], active, parameters)
        return
    if device:
        arrays[q], arrays[v] = onto_loops_on_device(device, mech, arrays[q], arrays[v], parameters)
    else:
        arrays[q], arrays[v] = onto_loops(mech, arrays[q], arrays[v], parameters)


def of_bodies(mech: Mechanism, varied: Mapping[Array, Any]) -> dict[Array, Any]:
    """Those numbers that are of bodies, not of what acts on them."""
    return {array: x for array, x in varied.items() if not numbers_that_act(mech, (array.name,))}


def _device(target: str, given: Mapping[str, Any]) -> DeviceCall | None:
    """What takes the arrays to the GPU, if that is where to compute."""
    if target != "cuda" and not (target == "cpu" and any(is_foreign(x) and on_device(x) for x in given.values())):
        return None
    from ..compiler.runtime.gpu import cupy_with_device

    try:
        return DeviceCall(cupy_with_device(), given)
    except (ImportError, NoDeviceError):
        if target == "cuda":
            raise
        return None  # what follows says what to do about such arrays
    except UnreadableArrayError as error:
        raise KernelError(f"rollout: {list(given)[error.place]} {error}") from None


# -- plans that are kept ------------------------------------------------------------------------------


PLANS = "plans of rollouts"
MOST = 64  # kept with a mechanism; then all are forgotten, as steps of ever new lengths would fill the memory
PARTS = (*FEEDBACK, GAIN)
GIVEN = ("q", "v", "tau", "wrenches", "ctrl", ACTIVATION, *PARTS)  # what a call is given, as inputs are named
_ARRAY, _PRECISIONS = np.ndarray, (np.dtype("float64"), np.dtype("float32"))
_NO_PARTS = (None,) * len(PARTS)


def _given_values(state: tuple[Any, ...], feedback: Any) -> tuple[Any, ...]:
    """Values in the order of ``GIVEN``, those of ``feedback`` behind the others; none where it has other parts."""
    if feedback is None:
        return (*state, *_NO_PARTS)
    if type(feedback) is not dict or not feedback.keys() <= {*PARTS} or any(x is None for x in feedback.values()):
        return ()
    return (*state, *map(feedback.get, PARTS))


def _key(
    given: tuple[Any, ...], dt: Any, counts: tuple[Any, Any, Any], names: tuple[Any, ...]
) -> tuple[Hashable, ...] | None:
    """All that decides what a call does but the numbers in its arrays, which are ``given`` in the order of ``GIVEN``;
    ``counts`` are steps, every and final_only.  None where arrays are others than NumPy's or of several precisions, or
    where numbers are of other types than usual, which may be wrong."""
    if tuple(map(type, counts)) != (int, int, bool) or (type(dt) is not float and dt is not None):
        return None
    values: list[Hashable] = []
    precision: Any = None
    for x in given:
        if x is None:
            values.append(None)
        elif type(x) is _ARRAY and x.ndim:
            if x.dtype is not precision:
                if precision is not None or x.dtype not in _PRECISIONS:
                    return None
                precision = x.dtype
            values.append(x.shape)
        elif type(x) is float or type(x) is int:
            values.append(x)
        else:
            return None
    return (*values, precision, dt, *counts, *names)


def _known(mech: Any, key: tuple[Hashable, ...] | None) -> Plan | None:
    """The plan that an earlier call of this mechanism with this key has left behind."""
    if key is None:
        return None
    try:
        return mech._kernels[PLANS].get(key)
    except (KeyError, AttributeError, TypeError):  # the first call, no mechanism, or names that are none
        return None


def _remember(
    mech: Mechanism, key: tuple[Hashable, ...], plan: Plan, given: tuple[Any, ...], arrays: Mapping[Array, np.ndarray]
) -> None:
    """Keep the plan of a call with this key.  Arrays of the caller's are not held on to."""
    places = {name: place for place, name in enumerate(GIVEN) if type(given[place]) is _ARRAY}
    sources = tuple(places.get(array.name, x) for array, x in arrays.items())
    known: dict[Any, Plan] = stored(mech, PLANS, dict)
    if len(known) >= MOST:
        known.clear()
    known[key] = replace(plan, sources=sources)


# -- in momenta ---------------------------------------------------------------------------------------


def in_momenta(step: Step, target: str) -> bool:
    """Whether steps hand on momenta, so that nothing is solved for v that a step does not solve for itself; on a GPU
    they hand on v."""
    return step.coordinates == "momentum" and target != "cuda"


def side_by_side(step: Step, q: Any, v: Any) -> int:
    """How many vectors of states may be computed side by side, as far as it depends on how many states there are."""
    if step.coordinates != "momentum":
        return 1
    states = max(math.prod(np.shape(q)[:-1]), math.prod(np.shape(v)[:-1]))
    return next((count for count, least in MANY.items() if states >= least), 1)


def registers(program: Program, most: int) -> int:
    """How many vector registers a value takes (``scan``), ``most`` at most."""
    return next((count for count, size in SHORT.items() if count <= most and program.size < size), 1)


def without_momenta(
    run: Callable[..., None], inputs: tuple[Array, ...]
) -> tuple[Callable[..., None], tuple[Array, ...]]:
    """A rollout that takes momenta before all else, and its other inputs."""
    place = [array.name for array in inputs].index(MOMENTA)
    before, after = inputs[:place], inputs[place + 1 :]
    return lambda p, *arrays, out: run(*arrays[:place], p, *arrays[place:], out=out), before + after


def _computed(
    mech: Mechanism, name: str, q: np.ndarray, x: np.ndarray, parameters: Mapping[Array, np.ndarray]
) -> np.ndarray:
    if not parameters:
        return kernel_function(mech, name)(q, x)
    names = tuple(array.name for array in parameters)
    key = (name, *names, q.dtype.name)
    kernel = stored(mech, key, lambda: compile(name, mech, q.dtype.name, parameters=names))
    return kernel(q, x, *parameters.values())
