"""Many motions at once: states and joint forces in, trajectories out, a compiled scan over steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

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
from ..dynamics.by_actuator import inputs_by_actuator
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import STATE, ByJoint, Float64Array, real_numbers
from ..mechanism import Mechanism, MechanismError, one_of
from ..mechanism.elements import CONTACT_FRICTION
from ..mechanism.quaternions import has_quaternions, with_unit_quaternions
from .arguments import CONFIGURATIONS, Driving, Request, by_step, numbers_that_act, stride
from .checks import (
    check_bodies,
    finite_states,
    warn_first,
    warn_of_creep,
    warn_of_limits_left_out,
    warn_of_slip_in_rollout,
    warn_of_starts_beyond_limits,
    warn_of_starts_in_penetration,
    with_largest,
)
from .constrained import WithinConstraints, onto_loops, onto_loops_on_device, refuse_open_schedule
from .forces import Held, answer
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
    warn_of_long_steps,
)

WHOLE = 1e-6  # by which a period of a held controller may miss a whole number of steps, in steps
#: Operations: in momenta every stage waits for the one before, and steps this short for their own results; so many
#: vectors of states are then computed side by side, if there are so many states.
SHORT = {4: 600, 2: 2000}
MANY = {4: 64, 2: 16}


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
        return returned(Run(mech, plan, plan.again(mech, values)).records(out)[0], return_activation)
    target = one_of("target", target, rollout_targets())
    driving = Driving(
        tau, dt, steps, method, coordinates, passive, wrenches, feedback, parameters, ctrl, activation, active, drive
    )
    request = driving.request(mech, q0, v0)
    kept = Kept(request.steps, stride(request.steps, every, final_only), final_only)
    warn_of_limits_left_out(mech, passive)
    if request.held:
        if out is not None:
            raise MechanismError("rollout: out is not for controllers that are held; leave it out")
        found, status = _in_turns(request.plain(), kept, target, passive is None)
    else:
        device = _device(target, request.given)
        request = request.with_given(device.seen) if device else request.plain()
        run = planned(request, kept, "cuda" if device else target)
        run.limits_act = passive is None
        found, status = run.records(out, device)
        if key and device is None and run.is_repeatable:
            _remember(mech, key, run.plan, values, run.arrays)
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


class Form(NamedTuple):
    """What code a rollout becomes.

    with_velocities   in momenta: whether every state is kept; None in velocities
    vectors           of states, that may be computed side by side
    """

    dtype: str
    target: str
    with_velocities: bool | None = None
    vectors: int = 1


def compiled_rollout(mech: Mechanism, step: Step, form: Form) -> Compiled:
    """The rollout of a step, from the mechanism's own store or made now."""

    def rollout(numbers: tuple[Any, ...] = ()) -> tuple[Callable[..., None], tuple[Array, ...]]:
        program = remembered_program(_over_steps, mech, step, step.decisions(mech), form, numbers)
        inputs = tuple(replace(array, axes=()) for array in program.inputs)
        run = load(program, form.dtype, form.target)
        return (run, inputs) if form.with_velocities is None else without_momenta(run, inputs)

    def shared(numbers: Any) -> Any:
        run, inputs = rollout((numbers,))
        return lambda variant, vector: Compiled(run, inputs, {"numbers": vector})

    request = ("rollout", step, form)
    return stored(
        mech, request, lambda: shared_by_variants(mech, request, form.dtype, lambda: Compiled(*rollout(), {}), shared)
    )


def _over_steps(
    mech: Mechanism, step: Step, decided: Mapping[str, Any], form: Form, numbers: tuple[Any, ...]
) -> Program:
    """The program of a rollout; ``decided`` are the decisions of the mechanism that it goes by, ``numbers`` inputs of
    it."""
    _, target, with_velocities, vectors = form
    options: dict[str, Any] = {"with_velocities": with_velocities, "loops": None}
    program = step.program(mech, form.dtype, numbers, **options)
    if not program.loops and is_long(program, target):  # stages of one kind as a loop, but within constraints
        program = step.program(mech, form.dtype, numbers, **options, stages=not mech.loops)
    per_run = tuple(array.name for array in program.inputs if array.name in PER_STEP)
    carried = {array.name: array.name.removesuffix(NEXT) for array in program.outputs}
    last = (MOMENTA + NEXT,) if with_velocities else ()
    return scan(program, carried, per_run, registers(program, vectors), last)


def planned(request: Request, kept: Kept, target: str) -> Run:
    """The rollout of a request."""
    mech, step, precision = request.mech, request.step, request.precision
    dtype, vectors = np.dtype(precision), side_by_side(step, request.given["q"], request.given["v"])
    with_velocities = kept.all if in_momenta(step, target) else None
    compiled = compiled_rollout(mech, step, Form(precision, target, with_velocities, vectors))
    request = request.with_given({**compiled.numbers, TRUSTED: NONE_YET})
    arrays, batch = request.arrays(compiled.inputs, dtype, kept.every)
    sizes = (mech.nq, mech.nv, *(step.acting.n_activation,) * bool(step.acting.n_activation))
    shapes = [(*kept.axes(batch), size) for size in sizes]
    kind = ConstrainedRun if mech.loops else Run
    return kind(mech, Plan(step, kept, dtype, target, compiled, batch, shapes, has_quaternions(mech)), arrays)


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

    def again(self, mech: Mechanism, values: tuple[Any, ...]) -> dict[Array, Any]:
        """The arrays of other numbers, in the order of ``GIVEN``."""
        arrays, steps, every = {}, self.kept.steps, self.kept.every
        for array, source in zip(self.compiled.inputs, self.sources, strict=True):
            if type(source) is not int:
                arrays[array] = source
                continue
            x = values[source]
            if self.turns and array.name in CONFIGURATIONS:
                x = with_unit_quaternions(mech, CONFIGURATIONS[array.name], x)
            arrays[array] = by_step(x, len(array.shape), steps, every) if array.name in PER_STEP else x
        return arrays


@dataclass
class Run:
    """One rollout: its plan and the arrays that it is made of.

    arrays       inputs, those of every step (..., records, every, core)
    limits_act   whether those of the mechanism's joints do
    goes_on      whether it goes on from where another has ended, and starts are not looked at
    """

    mech: Mechanism
    plan: Plan
    arrays: dict[Array, Any]
    limits_act: bool = True
    goes_on: bool = False

    def records(self, out: Any = None, device: DeviceCall | None = None) -> tuple[Any, np.ndarray]:
        """The states that are kept, the initial ones among them, on a GPU arrays of the caller's library; and the
        status of each motion.  ``device`` takes arrays to the GPU, None: on the CPU."""
        plan = self.plan
        steps, final_only, shapes = plan.kept.steps, plan.kept.final_only, plan.shapes
        if out is not None:
            self.arrays = dict(zip(self.arrays, apart_from(out, self.arrays.values()), strict=True))
        self._check()
        self._close(device)
        initial = list(self.arrays.values())[:2]
        if len(shapes) > 2:
            initial += [x for array, x in self.arrays.items() if array.name == ACTIVATION]
        if device is None:
            results = results_of(out, shapes, plan.dtype)
            kept = started(initial, results, steps, final_only)
            status = self._here(results, kept) if steps else np.zeros(plan.batch, int)
            self._look_at_friction(kept)
            return results, status
        with device.stream():
            there = device.results(out, shapes, plan.dtype)
            if there is None:
                raise KernelError(no_place(shapes, plan.dtype, " on the device"))
            kept = started(device.copied(initial), there, steps, final_only)
            status = self._on_device(device, kept) if steps else np.zeros(plan.batch, int)
            return device.delivered(there, out), status

    @property
    def _varied(self) -> dict[Array, Any]:
        """Numbers of the mechanism that differ from state to state."""
        names = self.plan.step.parameters
        return {array: x for array, x in self.arrays.items() if array.name in names} if names else {}

    @property
    def _bodies(self) -> dict[Array, Any]:
        """Those of them that are of bodies, not of what acts on them."""
        return {array: x for array, x in self._varied.items() if not numbers_that_act(self.mech, (array.name,))}

    @property
    def is_repeatable(self) -> bool:
        """Whether other calls can go by its plan with their numbers alone."""
        return not self.plan.in_momenta

    def _close(self, device: DeviceCall | None) -> None:
        """Initial states that constraints allow."""

    def _here(self, results: Sequence[np.ndarray], kept: list[np.ndarray]) -> np.ndarray:
        """Run on the CPU; the status."""
        with np.errstate(all="ignore"):  # what is lost is told below, once
            if self.plan.in_momenta:
                self._from_momenta(results, kept)
            else:
                self.plan.compiled.run(*self.arrays.values(), out=tuple(kept))
        return self._lost(kept[1])

    def _on_device(self, device: DeviceCall, kept: list[Any]) -> np.ndarray:
        """Run on a GPU; the status."""
        self.plan.compiled.run(*device.copied([*self.arrays.values()]), out=tuple(kept))
        return np.zeros(self.plan.batch, int)

    def _with_batch(self) -> dict[str, np.ndarray]:
        """All inputs by name, each with all batch axes; those of every step as (..., steps, core)."""
        given, batch = {}, self.plan.batch
        for array, values in self.arrays.items():
            per_step = array.name in PER_STEP
            core = values.shape[values.ndim - len(array.shape) - 2 * per_step :]
            values = np.broadcast_to(values, (*batch, *core))
            given[array.name] = values.reshape(*batch, core[0] * core[1], *array.shape) if per_step else values
        return given

    def _from_momenta(self, results: Sequence[np.ndarray], kept: Sequence[np.ndarray]) -> None:
        """Steps from momenta to momenta, and the velocities of the states that are kept.

        The velocities of a state are known at the start of the step that leaves it: where every state is kept, those
        are the records of v, one place earlier than the positions after the step, and only the last state is solved for
        alone.  Where some are kept, momenta are recorded in their place and solved for together in the end.
        """
        mech, run, parameters, inputs = self.mech, self.plan.compiled.run, self._bodies, [*self.arrays.values()]
        q, v, *_ = kept
        p = _computed(mech, "joint_momenta", inputs[0], inputs[1], parameters)
        if self.plan.kept.all:
            last, of_starts = np.empty((*self.plan.batch, mech.nv), v.dtype), results[1]
            run(p, *inputs, out=(q, of_starts[..., :-1, :], *kept[2:], last))
            of_starts[..., 0, :] = inputs[1]
            v[..., -1, :] = _computed(mech, "momentum_velocities", q[..., -1, :], last, parameters)
        else:
            run(p, *inputs, out=tuple(kept))
            each = {array: np.expand_dims(x, x.ndim - len(array.shape)) for array, x in parameters.items()}
            v[...] = _computed(mech, "momentum_velocities", q, v, each)

    # -- before and after ---------------------------------------------------------------------------------

    def _check(self) -> None:
        """Refuse numbers that no body has; warn of steps that are too long, and of starts beyond limits or in
        penetration."""
        mech, step, varied = self.mech, self.plan.step, self._varied
        for array, values in varied.items():
            check_bodies(mech, array.name, values)
        start = next(iter(self.arrays.values()))
        if self.goes_on or not isinstance(start, np.ndarray):
            return  # on a GPU they are taken as they are
        if step.acting.laws:
            bodies = self._bodies
            acts = {array.name: x for array, x in varied.items() if array not in bodies}
            acting = with_largest(mech, step.acting, acts) if acts else step.acting
            warn_of_long_steps(mech, replace(step, acting=acting) if acts else step, self._input("dt"))
        if self.limits_act:
            warn_of_starts_beyond_limits(mech, start)
        warn_of_starts_in_penetration(mech, start)

    def _input(self, name: str) -> Any:
        return next(x for array, x in self.arrays.items() if array.name == name)

    def _lost(self, v: np.ndarray) -> np.ndarray:
        """Warn where numbers that are finite have led to some that are not, which stay so: the last record tells.
        Returns the step by which they did, 0 where they did not."""
        finite = np.isfinite(v[..., -1, :])
        if finite.all():
            return np.zeros(self.plan.batch, int)
        inputs = self._with_batch()
        inputs.pop("numbers", None)
        method, every, lost = self.plan.step.name, self.plan.kept.every, ~finite.all(axis=-1)
        lost &= finite_states(self.plan.batch, *inputs.values())
        first = (np.argmin(np.isfinite(v).all(axis=-1), axis=-1) + 1) * every
        stiff = "where damping, friction or stops of joints, or kd of lw.control.joint_feedback, are stiff"
        other_method = "" if method == "semi_implicit" else f"method='semi_implicit' {stiff}, "
        warn_first(
            np.where(lost, first, -1),
            inputs["dt"],
            f"steps of {method!r} are too long for the motion of mechanism {self.mech.name!r}, whose velocities grew "
            "beyond all numbers",
            f"take smaller steps, {other_method}or lw.simulate with method='radau'",
            every,
        )
        return np.where(lost, first, 0)

    def _look_at_friction(self, kept: Sequence[np.ndarray]) -> None:
        """Warn of friction that steps cannot follow."""
        mech, step, (q, v, *_) = self.mech, self.plan.step, kept
        if not step.acting.laws or not v.size:
            return
        dt = self._input("dt")
        longest = float(np.abs(dt).max(initial=0.0))
        warn_of_creep(mech, step.name, step.acting, longest, v)
        if not step.is_implicit and not any(name.endswith(CONTACT_FRICTION) for name in step.parameters):
            warn_of_slip_in_rollout(mech, step.name, longest, self.plan.kept.every * q.shape[-2] * dt, q, v)


class ConstrainedRun(Run):
    """One within constraints, which starts and stays on them."""

    @property
    def is_repeatable(self) -> bool:
        return False

    def _close(self, device: DeviceCall | None) -> None:
        """The initial states with their constraints kept; under a schedule those that hold must be closed already, and
        engage by the impact of the first step."""
        arrays, step = self.arrays, self.plan.step
        q, v, *_ = arrays
        numbers = {x.name: arrays[x] for x in self._bodies}
        if DRIVE in step.inputs and self.plan.kept.steps:
            numbers[DRIVE] = self._input(DRIVE)[..., 0, 0, 0, :, :]
        if ACTIVE in step.inputs:
            if device is None:
                refuse_open_schedule(self.mech, arrays[q], self._input(ACTIVE), numbers)
        elif device:
            arrays[q], arrays[v] = onto_loops_on_device(device, self.mech, arrays[q], arrays[v], numbers)
        else:
            arrays[q], arrays[v] = onto_loops(self.mech, arrays[q], arrays[v], numbers)

    def _here(self, results: Sequence[np.ndarray], kept: list[np.ndarray]) -> np.ndarray:
        return self._within_constraints(kept).run_here()

    def _on_device(self, device: DeviceCall, kept: list[Any]) -> np.ndarray:
        """Steps that cannot be relied on need the same rollout on the CPU."""
        there = dict(zip(self.arrays, device.copied([*self.arrays.values()]), strict=True))
        constrained, on_cpu = replace(self._within_constraints(kept), arrays=there), Form(self.plan.dtype.name, "cpu")
        return constrained.run_on_device(device, lambda: compiled_rollout(self.mech, self.plan.step, on_cpu).run)

    def _within_constraints(self, kept: Sequence[Any]) -> WithinConstraints:
        plan, given = self.plan, self._with_batch()
        return WithinConstraints(self.mech, plan.step, plan.compiled.run, self.arrays, given, kept, bool(self._varied))


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


# -- results ------------------------------------------------------------------------------------------


def started(initial: Sequence[Any], results: Sequence[Any], steps: int, final_only: bool) -> list[Any]:
    """Write the initial states, if they are kept, and give the places of the records that follow."""
    records = [x[..., None, :] if final_only else x for x in results]
    if not final_only or not steps:
        for record, first in zip(records, initial, strict=True):
            record[..., 0, :] = first
    return records if final_only else [record[..., 1:, :] for record in records]


def results_of(
    out: tuple[np.ndarray, np.ndarray] | None, shapes: list[tuple[int, ...]], dtype: np.dtype
) -> Sequence[np.ndarray]:
    """The arrays given for q and v if they fit, else new ones."""
    if out is None:
        return [np.empty(shape, dtype) for shape in shapes]
    fits = isinstance(out, tuple) and len(out) == len(shapes) and all(isinstance(x, np.ndarray) for x in out)
    if not fits or any(
        x.shape != shape or x.dtype != dtype or not x.flags.writeable for x, shape in zip(out, shapes, strict=True)
    ):
        raise KernelError(no_place(shapes, dtype))
    if any(np.may_share_memory(*pair) for pair in combinations(out, 2)):
        raise KernelError("rollout: the arrays of out must not share memory")
    return out


def no_place(shapes: list[tuple[int, ...]], dtype: np.dtype, where: str = "") -> str:
    needed = " and ".join(map(str, shapes))
    last = ", the last for activations" if len(shapes) > 2 else ""
    count = "three" if last else "two"
    return f"rollout: out must be a tuple of {count} writable arrays{where} of dtype {dtype}, shapes {needed}{last}"


def returned(found: Any, asked: bool) -> tuple[Any, ...]:
    """(q, v), and the activations if they are asked for."""
    q, v, *activation = found
    if not asked:
        return q, v
    return q, v, activation[0] if activation else np.zeros((*q.shape[:-1], 0), q.dtype)


def apart_from(out: Any, inputs: Iterable[Any]) -> list[Any]:
    """Inputs, copied where they share memory with arrays that are given for the results: these are written to from the
    first record on, inputs are read to the last."""
    results = [x for x in out if isinstance(x, np.ndarray)] if isinstance(out, tuple) else []
    return [
        x.copy() if any(isinstance(x, np.ndarray) and np.may_share_memory(x, y) for y in results) else x for x in inputs
    ]


# -- under controllers that are held ------------------------------------------------------------------


def _in_turns(request: Request, kept: Kept, target: str, limits_act: bool) -> tuple[list[np.ndarray], np.ndarray]:
    """One short rollout after the other, each under what the controllers gave at its start (zero-order hold)."""
    mech, steps, dtype = request.mech, request.steps, np.dtype(request.precision)
    length = request.given["dt"]
    turn, n_activation = _steps_of_a_turn(request), request.step.acting.n_activation
    given = ((name, request.given[name]) for name in ("q", "v"))
    q, v = (np.asarray(STATE[name].otherwise(mech) if x is None else x, dtype) for name, x in given)
    batch = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
    state = [np.broadcast_to(x, (*batch, np.shape(x)[-1])) for x in (q, v)]
    names, paths, status = ("q", "v", *(ACTIVATION,) * bool(n_activation)), [], np.zeros((), int)
    state += [request.given[name] for name in names[2:]]
    for start in range(0, max(steps, 1), turn):
        count = min(turn, steps - start)
        part = request.part(start, count).with_given(dict(zip(names, state, strict=True)))
        answers = {name: _asked(part, name, x, start * length).astype(dtype) for name, x in request.held.items()}
        run = planned(part.with_given(answers if steps else {}), Kept(count, 1, False), target)
        run.limits_act, run.goes_on = limits_act, start > 0
        path, ended = run.records()
        state = [x[..., -1, :] for x in path]
        paths.append([x if not start else x[..., 1:, :] for x in path])
        status = np.where((status == 0) & (ended > 0), ended + start, status)
    whole = [np.concatenate(parts, axis=-2) for parts in zip(*paths, strict=True)]
    return [x[..., -1, :] if kept.final_only else x[..., :: kept.every, :] for x in whole], status


def _steps_of_a_turn(request: Request) -> int:
    """How many steps lie between two questions."""
    length = real_numbers("dt", request.given["dt"])
    periods = {one.period for one in request.held.values()}
    if length.ndim or len(periods) > 1:
        raise MechanismError("rollout: controllers that are held need one dt for all states, and the same period")
    (period,) = periods
    steps = period / abs(float(length)) if length else 0.0
    if round(steps) < 1 or abs(steps - round(steps)) > WHOLE * steps:
        raise MechanismError(
            f"rollout: the period {period:g} s of a held controller must be a whole number of steps, of "
            f"{float(length):g} s"
        )
    return round(steps)


def _asked(request: Request, name: str, controller: Held, t: float) -> np.ndarray:
    """What a controller gives in the state of a request, for all its steps: (..., 1, n)."""
    mech, (q, v) = request.mech, (request.given["q"], request.given["v"])
    size = mech.nv if name == "tau" else mech.n_ctrl
    values = answer(name, lambda *state: inputs_by_actuator(mech, controller(*state)), t, q, v)
    if values.shape[-1:] != (size,) or values.ndim > v.ndim:
        raise MechanismError(
            f"rollout: at t = {t:.6g} s {name} gives an array of shape {values.shape}, expected (..., {size})"
        )
    references = np.atleast_2d(request.given[name])[..., size:] if name == "ctrl" else values[..., None, :0]
    rows = np.broadcast_shapes((*values.shape[:-1], 1), references.shape[:-1])
    both = [np.broadcast_to(x, (*rows, x.shape[-1])) for x in (values[..., None, :], references)]
    return np.concatenate(both, axis=-1)


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
