"""Rollouts: motions of many states at once, as a compiled scan over steps."""

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
from .arguments import CONFIGURATIONS, Driving, Request, force_parameters, split_into_records, stride
from .checks import (
    check_bodies,
    finite_states,
    largest_parameters,
    warn_first,
    warn_of_creep,
    warn_of_limits_left_out,
    warn_of_slip_in_rollout,
    warn_of_starts_beyond_limits,
    warn_of_starts_in_penetration,
)
from .constrained import WithinConstraints, project_start, project_start_on_device, refuse_open_schedule
from .forces import Held, evaluate
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

WHOLE = 1e-6  # tolerance of a held controller's period as a whole number of steps, in steps
#: Vectors of states computed side by side -> largest number of operations of a step (SHORT) and least number of states
#: (MANY).  In momenta every stage waits for the one before, and short steps wait for their own results.
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
                 Of force elements: "damping", "friction", "stiffness" (..., nv) of joints, "elbow.damping" of one;
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
    active       a schedule: whether each constraint of ``mech.loops`` is active, in the shapes of tau; None: all are.
                 A constraint engages by an impact without rebound (``lw.contact.impact``), and releases without one.
                 Ball and fixed joints on the ground (``lw.contact.hold_frames``: feet) hold where they touch down; all
                 others must be closed
    drive        prescribed motion of drives in every step, as ``lw.motion.drive_values`` returns it; None: their own
                 functions, from the time 0
    return_status  the result ends with (...) integers: 0 where every step is the compiled one, else the number of the
                 first step that is not, from 1: near singular positions, or where numbers are lost

    Batches are spread over threads.  All-float32 arguments are computed in float32.  Loops are kept closed: every step
    ends with ``simulate``'s projection, and its arcs pass singular positions that steps do not resolve.  Initial states
    must be assembled; a ``MechanismWarning`` reports projected velocities and steps near singular positions.
    """
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    values = _plan_values((q0, v0, tau, wrenches, ctrl, activation), feedback)
    usual = values and parameters is passive is active is drive is None and not return_status
    key = _key(values, dt, (steps, every, final_only), (method, target, coordinates)) if usual else None
    if plan := _stored_plan(mech, key):
        return select_results(Run(mech, plan, plan.bind(mech, values)).records(out)[0], return_activation)
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
        states, status = _roll_out_held(request.plain(), kept, target, passive is None)
    else:
        device = _device(target, request.given)
        request = request.with_given(device.seen) if device else request.plain()
        run = planned(request, kept, "cuda" if device else target)
        run.limits_act = passive is None
        states, status = run.records(out, device)
        if key and device is None and run.is_repeatable:
            _remember(mech, key, run.plan, values, run.arrays)
    return (*select_results(states, return_activation), *(status,) * return_status)


@dataclass(frozen=True)
class Kept:
    """Number of steps, and which of their states are kept."""

    steps: int
    every: int
    final_only: bool

    @property
    def all(self) -> bool:
        return self.every == 1 and not self.final_only

    def axes(self, batch: tuple[int, ...]) -> tuple[int, ...]:
        """Axes of the kept states before the axis of coordinates."""
        return batch if self.final_only else (*batch, self.steps // self.every + 1)


@dataclass(frozen=True)
class Compiled:
    """A compiled rollout and its inputs; ``numbers`` hold the parameters of this variant of a mechanism."""

    run: Callable[..., None]
    inputs: tuple[Array, ...]
    numbers: Mapping[str, np.ndarray]


class Form(NamedTuple):
    """The form of a rollout's code.

    with_velocities   steps in momenta: whether velocities of every state are outputs; None for steps in velocities
    vectors           number of vectors of states computed side by side
    """

    dtype: str
    target: str
    with_velocities: bool | None = None
    vectors: int = 1


def compiled_rollout(mech: Mechanism, step: Step, form: Form) -> Compiled:
    """The compiled rollout of a step, from the mechanism's store or compiled now."""

    def rollout(numbers: tuple[Any, ...] = ()) -> tuple[Callable[..., None], tuple[Array, ...]]:
        program = remembered_program(_rollout_program, mech, step, step.decisions(mech), form, numbers)
        inputs = tuple(replace(array, axes=()) for array in program.inputs)
        run = load(program, form.dtype, form.target)
        return (run, inputs) if form.with_velocities is None else hide_momenta(run, inputs)

    def shared(numbers: Any) -> Any:
        run, inputs = rollout((numbers,))
        return lambda variant, vector: Compiled(run, inputs, {"numbers": vector})

    request = ("rollout", step, form)
    return stored(
        mech, request, lambda: shared_by_variants(mech, request, form.dtype, lambda: Compiled(*rollout(), {}), shared)
    )


def _rollout_program(
    mech: Mechanism, step: Step, decided: Mapping[str, Any], form: Form, numbers: tuple[Any, ...]
) -> Program:
    """The program of a rollout.  ``decided`` are the mechanism's decisions that it depends on; ``numbers`` are
    parameters that are inputs."""
    _, target, with_velocities, vectors = form
    options: dict[str, Any] = {"with_velocities": with_velocities, "loops": None}
    program = step.program(mech, form.dtype, numbers, **options)
    if not program.loops and is_long(program, target):  # equal stages as a loop, without constraints
        program = step.program(mech, form.dtype, numbers, **options, stages=not mech.loops)
    per_run = tuple(array.name for array in program.inputs if array.name in PER_STEP)
    carried = {array.name: array.name.removesuffix(NEXT) for array in program.outputs}
    last = (MOMENTA + NEXT,) if with_velocities else ()
    return scan(program, carried, per_run, registers(program, vectors), last)


def planned(request: Request, kept: Kept, target: str) -> Run:
    """The compiled run of a request."""
    mech, step, precision = request.mech, request.step, request.precision
    dtype, vectors = np.dtype(precision), vector_count(step, request.given["q"], request.given["v"])
    with_velocities = kept.all if uses_momenta(step, target) else None
    compiled = compiled_rollout(mech, step, Form(precision, target, with_velocities, vectors))
    request = request.with_given({**compiled.numbers, TRUSTED: NONE_YET})
    arrays, batch = request.arrays(compiled.inputs, dtype, kept.every)
    sizes = (mech.nq, mech.nv, *(step.acting.n_activation,) * bool(step.acting.n_activation))
    shapes = [(*kept.axes(batch), size) for size in sizes]
    kind = ConstrainedRun if mech.loops else Run
    return kind(mech, Plan(step, kept, dtype, target, compiled, batch, shapes, has_quaternions(mech)), arrays)


@dataclass(frozen=True)
class Plan:
    """A rollout ready to run, without the values of its arrays: shared by calls with arrays of equal shapes.

    Checking the arguments of a call takes several times as long as a short motion of one state.  Plans are therefore
    stored with the mechanism, like kernels.

    kept      which states are kept
    batch     the batch shape of all arrays
    shapes    shapes of the results
    turns     whether some coordinates are quaternions, whose lengths are checked
    sources   in stored plans: for each input its index in ``GIVEN``, or an array that is the same in all calls
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
    def uses_momenta(self) -> bool:
        return uses_momenta(self.step, self.target)

    def bind(self, mech: Mechanism, values: tuple[Any, ...]) -> dict[Array, Any]:
        """The input arrays for other values, which are in the order of ``GIVEN``."""
        arrays, steps, every = {}, self.kept.steps, self.kept.every
        for array, source in zip(self.compiled.inputs, self.sources, strict=True):
            if type(source) is not int:
                arrays[array] = source
                continue
            x = values[source]
            if self.turns and array.name in CONFIGURATIONS:
                x = with_unit_quaternions(mech, CONFIGURATIONS[array.name], x)
            arrays[array] = split_into_records(x, len(array.shape), steps, every) if array.name in PER_STEP else x
        return arrays


@dataclass
class Run:
    """One rollout: its plan and its input arrays.

    arrays       inputs; inputs per step are (..., records, every, core)
    limits_act   whether limits of the mechanism's joints are active
    goes_on      whether it continues another rollout, so that the initial state is not checked
    """

    mech: Mechanism
    plan: Plan
    arrays: dict[Array, Any]
    limits_act: bool = True
    goes_on: bool = False

    def records(self, out: Any = None, device: DeviceCall | None = None) -> tuple[Any, np.ndarray]:
        """Run; returns the kept states with the initial ones, and the status of each motion.  ``device`` transfers
        arrays to a GPU, where results are arrays of the caller's library; None: on the CPU."""
        plan = self.plan
        steps, final_only, shapes = plan.kept.steps, plan.kept.final_only, plan.shapes
        if out is not None:
            self.arrays = dict(zip(self.arrays, copy_aliased(out, self.arrays.values()), strict=True))
        self._check()
        self._close(device)
        initial = list(self.arrays.values())[:2]
        if len(shapes) > 2:
            initial += [x for array, x in self.arrays.items() if array.name == ACTIVATION]
        if device is None:
            results = results_of(out, shapes, plan.dtype)
            kept = write_initial(initial, results, steps, final_only)
            status = self._run_on_cpu(results, kept) if steps else np.zeros(plan.batch, int)
            self._check_friction(kept)
            return results, status
        with device.stream():
            there = device.results(out, shapes, plan.dtype)
            if there is None:
                raise KernelError(out_misfit(shapes, plan.dtype, " on the device"))
            kept = write_initial(device.copied(initial), there, steps, final_only)
            status = self._run_on_device(device, kept) if steps else np.zeros(plan.batch, int)
            return device.delivered(there, out), status

    @property
    def _varied(self) -> dict[Array, Any]:
        """Parameters of the mechanism that vary from state to state."""
        names = self.plan.step.parameters
        return {array: x for array, x in self.arrays.items() if array.name in names} if names else {}

    @property
    def _bodies(self) -> dict[Array, Any]:
        """Varied parameters of bodies, without those of force elements."""
        return {array: x for array, x in self._varied.items() if not force_parameters(self.mech, (array.name,))}

    @property
    def is_repeatable(self) -> bool:
        """Whether other calls can use its plan with their own arrays."""
        return not self.plan.uses_momenta

    def _close(self, device: DeviceCall | None) -> None:
        """Project initial states onto the constraints; nothing to do for a tree."""

    def _run_on_cpu(self, results: Sequence[np.ndarray], kept: list[np.ndarray]) -> np.ndarray:
        """Run on the CPU; returns the status."""
        with np.errstate(all="ignore"):  # states that are not finite are reported below
            if self.plan.uses_momenta:
                self._run_from_momenta(results, kept)
            else:
                self.plan.compiled.run(*self.arrays.values(), out=tuple(kept))
        return self._check_finite(kept[1])

    def _run_on_device(self, device: DeviceCall, kept: list[Any]) -> np.ndarray:
        """Run on a GPU; returns the status."""
        self.plan.compiled.run(*device.copied([*self.arrays.values()]), out=tuple(kept))
        return np.zeros(self.plan.batch, int)

    def _batched_inputs(self) -> dict[str, np.ndarray]:
        """All inputs by name with all batch axes; inputs per step are (..., steps, core)."""
        inputs, batch = {}, self.plan.batch
        for array, values in self.arrays.items():
            per_step = array.name in PER_STEP
            core = values.shape[values.ndim - len(array.shape) - 2 * per_step :]
            values = np.broadcast_to(values, (*batch, *core))
            inputs[array.name] = values.reshape(*batch, core[0] * core[1], *array.shape) if per_step else values
        return inputs

    def _run_from_momenta(self, results: Sequence[np.ndarray], kept: Sequence[np.ndarray]) -> None:
        """Run steps from momenta to momenta, and write the velocities of the kept states.

        A step computes the velocities of its initial state.  If every state is kept, these are the records of v, and
        only the last velocities are solved for separately.  Else momenta are recorded in place of v, and velocities are
        solved for together at the end.
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
        """Refuse impossible masses and inertias; warn of steps too long, starts beyond limits and penetration."""
        mech, step, varied = self.mech, self.plan.step, self._varied
        for array, values in varied.items():
            check_bodies(mech, array.name, values)
        start = next(iter(self.arrays.values()))
        if self.goes_on or not isinstance(start, np.ndarray):
            return  # arrays on a GPU are not checked
        if step.acting.laws:
            bodies = self._bodies
            acts = {array.name: x for array, x in varied.items() if array not in bodies}
            acting = largest_parameters(mech, step.acting, acts) if acts else step.acting
            warn_of_long_steps(mech, replace(step, acting=acting) if acts else step, self._input("dt"))
        if self.limits_act:
            warn_of_starts_beyond_limits(mech, start)
        warn_of_starts_in_penetration(mech, start)

    def _input(self, name: str) -> Any:
        return next(x for array, x in self.arrays.items() if array.name == name)

    def _check_finite(self, v: np.ndarray) -> np.ndarray:
        """Warn of motions whose states stop being finite; returns the number of the step, 0 for finite motions.  The
        last record suffices, because NaN persists."""
        finite = np.isfinite(v[..., -1, :])
        if finite.all():
            return np.zeros(self.plan.batch, int)
        inputs = self._batched_inputs()
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

    def _check_friction(self, kept: Sequence[np.ndarray]) -> None:
        """Warn of friction that steps cannot resolve."""
        mech, step, (q, v, *_) = self.mech, self.plan.step, kept
        if not step.acting.laws or not v.size:
            return
        dt = self._input("dt")
        longest = float(np.abs(dt).max(initial=0.0))
        warn_of_creep(mech, step.name, step.acting, longest, v)
        if not step.is_implicit and not any(name.endswith(CONTACT_FRICTION) for name in step.parameters):
            warn_of_slip_in_rollout(mech, step.name, longest, self.plan.kept.every * q.shape[-2] * dt, q, v)


class ConstrainedRun(Run):
    """A rollout within constraints, with initial states projected onto them."""

    @property
    def is_repeatable(self) -> bool:
        return False

    def _close(self, device: DeviceCall | None) -> None:
        """Project initial states onto the constraints.  Under a schedule, active constraints must be closed already;
        the impact of the first step engages them."""
        arrays, step = self.arrays, self.plan.step
        q, v, *_ = arrays
        numbers = {x.name: arrays[x] for x in self._bodies}
        if DRIVE in step.inputs and self.plan.kept.steps:
            numbers[DRIVE] = self._input(DRIVE)[..., 0, 0, 0, :, :]
        if ACTIVE in step.inputs:
            if device is None:
                refuse_open_schedule(self.mech, arrays[q], self._input(ACTIVE), numbers)
        elif device:
            arrays[q], arrays[v] = project_start_on_device(device, self.mech, arrays[q], arrays[v], numbers)
        else:
            arrays[q], arrays[v] = project_start(self.mech, arrays[q], arrays[v], numbers)

    def _run_on_cpu(self, results: Sequence[np.ndarray], kept: list[np.ndarray]) -> np.ndarray:
        return self._within_constraints(kept).run_here()

    def _run_on_device(self, device: DeviceCall, kept: list[Any]) -> np.ndarray:
        """Run on a GPU; unreliable trajectories are computed again by the same rollout on the CPU."""
        there = dict(zip(self.arrays, device.copied([*self.arrays.values()]), strict=True))
        constrained, on_cpu = replace(self._within_constraints(kept), arrays=there), Form(self.plan.dtype.name, "cpu")
        return constrained.run_on_device(device, lambda: compiled_rollout(self.mech, self.plan.step, on_cpu).run)

    def _within_constraints(self, kept: Sequence[Any]) -> WithinConstraints:
        plan, inputs = self.plan, self._batched_inputs()
        return WithinConstraints(self.mech, plan.step, plan.compiled.run, self.arrays, inputs, kept, bool(self._varied))


def _device(target: str, inputs: Mapping[str, Any]) -> DeviceCall | None:
    """The transfer of arrays to a GPU; None for runs on the CPU."""
    if target != "cuda" and not (target == "cpu" and any(is_foreign(x) and on_device(x) for x in inputs.values())):
        return None
    from ..compiler.runtime.gpu import cupy_with_device

    try:
        return DeviceCall(cupy_with_device(), inputs)
    except (ImportError, NoDeviceError):
        if target == "cuda":
            raise
        return None  # later checks raise with the cure for such arrays
    except UnreadableArrayError as error:
        raise KernelError(f"rollout: {list(inputs)[error.place]} {error}") from None


# -- results ------------------------------------------------------------------------------------------


def write_initial(initial: Sequence[Any], results: Sequence[Any], steps: int, final_only: bool) -> list[Any]:
    """Write the initial states if they are kept; returns views of the records that follow."""
    records = [x[..., None, :] if final_only else x for x in results]
    if not final_only or not steps:
        for record, first in zip(records, initial, strict=True):
            record[..., 0, :] = first
    return records if final_only else [record[..., 1:, :] for record in records]


def results_of(
    out: tuple[np.ndarray, np.ndarray] | None, shapes: list[tuple[int, ...]], dtype: np.dtype
) -> Sequence[np.ndarray]:
    """The arrays for q and v: ``out`` if given, else new ones; raises if ``out`` does not fit."""
    if out is None:
        return [np.empty(shape, dtype) for shape in shapes]
    fits = isinstance(out, tuple) and len(out) == len(shapes) and all(isinstance(x, np.ndarray) for x in out)
    if not fits or any(
        x.shape != shape or x.dtype != dtype or not x.flags.writeable for x, shape in zip(out, shapes, strict=True)
    ):
        raise KernelError(out_misfit(shapes, dtype))
    if any(np.may_share_memory(*pair) for pair in combinations(out, 2)):
        raise KernelError("rollout: the arrays of out must not share memory")
    return out


def out_misfit(shapes: list[tuple[int, ...]], dtype: np.dtype, where: str = "") -> str:
    needed = " and ".join(map(str, shapes))
    last = ", the last for activations" if len(shapes) > 2 else ""
    count = "three" if last else "two"
    return f"rollout: out must be a tuple of {count} writable arrays{where} of dtype {dtype}, shapes {needed}{last}"


def select_results(results: Any, asked: bool) -> tuple[Any, ...]:
    """(q, v), and the activations if ``asked``."""
    q, v, *activation = results
    if not asked:
        return q, v
    return q, v, activation[0] if activation else np.zeros((*q.shape[:-1], 0), q.dtype)


def copy_aliased(out: Any, inputs: Iterable[Any]) -> list[Any]:
    """Inputs, copied if they share memory with ``out``: results are written while inputs are still read."""
    results = [x for x in out if isinstance(x, np.ndarray)] if isinstance(out, tuple) else []
    return [
        x.copy() if any(isinstance(x, np.ndarray) and np.may_share_memory(x, y) for y in results) else x for x in inputs
    ]


# -- zero-order hold ---------------------------------------------------------------------------------


def _roll_out_held(request: Request, kept: Kept, target: str, limits_act: bool) -> tuple[list[np.ndarray], np.ndarray]:
    """Run short rollouts one after the other, each under the controllers' values at its start (zero-order hold)."""
    mech, steps, dtype = request.mech, request.steps, np.dtype(request.precision)
    length = request.given["dt"]
    turn, n_activation = _steps_per_period(request), request.step.acting.n_activation
    initial = ((name, request.given[name]) for name in ("q", "v"))
    q, v = (np.asarray(STATE[name].otherwise(mech) if x is None else x, dtype) for name, x in initial)
    batch = np.broadcast_shapes(np.shape(q)[:-1], np.shape(v)[:-1])
    state = [np.broadcast_to(x, (*batch, np.shape(x)[-1])) for x in (q, v)]
    names, paths, status = ("q", "v", *(ACTIVATION,) * bool(n_activation)), [], np.zeros((), int)
    state += [request.given[name] for name in names[2:]]
    for start in range(0, max(steps, 1), turn):
        count = min(turn, steps - start)
        part = request.part(start, count).with_given(dict(zip(names, state, strict=True)))
        answers = {
            name: _evaluate_controller(part, name, x, start * length).astype(dtype) for name, x in request.held.items()
        }
        run = planned(part.with_given(answers if steps else {}), Kept(count, 1, False), target)
        run.limits_act, run.goes_on = limits_act, start > 0
        path, ended = run.records()
        state = [x[..., -1, :] for x in path]
        paths.append([x if not start else x[..., 1:, :] for x in path])
        status = np.where((status == 0) & (ended > 0), ended + start, status)
    records = [np.concatenate(parts, axis=-2) for parts in zip(*paths, strict=True)]
    return [x[..., -1, :] if kept.final_only else x[..., :: kept.every, :] for x in records], status


def _steps_per_period(request: Request) -> int:
    """Number of steps in a period of the held controllers."""
    length = real_numbers("dt", request.given["dt"])
    periods = {controller.period for controller in request.held.values()}
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


def _evaluate_controller(request: Request, name: str, controller: Held, t: float) -> np.ndarray:
    """(..., 1, n): a held controller evaluated in the initial state of a request."""
    mech, (q, v) = request.mech, (request.given["q"], request.given["v"])
    size = mech.nv if name == "tau" else mech.n_ctrl
    values = evaluate(name, lambda *state: inputs_by_actuator(mech, controller(*state)), t, q, v)
    if values.shape[-1:] != (size,) or values.ndim > v.ndim:
        raise MechanismError(
            f"rollout: at t = {t:.6g} s {name} gives an array of shape {values.shape}, expected (..., {size})"
        )
    references = np.atleast_2d(request.given[name])[..., size:] if name == "ctrl" else values[..., None, :0]
    rows = np.broadcast_shapes((*values.shape[:-1], 1), references.shape[:-1])
    both = [np.broadcast_to(x, (*rows, x.shape[-1])) for x in (values[..., None, :], references)]
    return np.concatenate(both, axis=-1)


# -- stored plans -------------------------------------------------------------------------------------


PLANS = "plans of rollouts"
MOST = 64  # plans stored with a mechanism; then all are dropped, since ever new step lengths would fill the memory
PARTS = (*FEEDBACK, GAIN)
GIVEN = ("q", "v", "tau", "wrenches", "ctrl", ACTIVATION, *PARTS)  # arguments of a call, by the names of inputs
_ARRAY, _PRECISIONS = np.ndarray, (np.dtype("float64"), np.dtype("float32"))
_NO_PARTS = (None,) * len(PARTS)


def _plan_values(state: tuple[Any, ...], feedback: Any) -> tuple[Any, ...]:
    """Values in the order of ``GIVEN``, parts of ``feedback`` last; empty if feedback has other parts."""
    if feedback is None:
        return (*state, *_NO_PARTS)
    if type(feedback) is not dict or not feedback.keys() <= {*PARTS} or any(x is None for x in feedback.values()):
        return ()
    return (*state, *map(feedback.get, PARTS))


def _key(
    arguments: tuple[Any, ...], dt: Any, counts: tuple[Any, Any, Any], names: tuple[Any, ...]
) -> tuple[Hashable, ...] | None:
    """The key of a stored plan: all arguments of a call, with arrays replaced by their shapes and precision.
    ``arguments`` are in the order of ``GIVEN``; ``counts`` are steps, every and final_only.  None for arrays of other
    libraries, mixed precisions and unusual types of numbers: such calls are checked in full."""
    if tuple(map(type, counts)) != (int, int, bool) or (type(dt) is not float and dt is not None):
        return None
    values: list[Hashable] = []
    precision: Any = None
    for x in arguments:
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


def _stored_plan(mech: Any, key: tuple[Hashable, ...] | None) -> Plan | None:
    """The plan stored by an earlier call of this mechanism with this key, or None."""
    if key is None:
        return None
    try:
        return mech._kernels[PLANS].get(key)
    except (KeyError, AttributeError, TypeError):  # the first call, no mechanism, or invalid names
        return None


def _remember(
    mech: Mechanism, key: tuple[Hashable, ...], plan: Plan, values: tuple[Any, ...], arrays: Mapping[Array, np.ndarray]
) -> None:
    """Store the plan of a call under its key, without references to the caller's arrays."""
    indices = {name: index for index, name in enumerate(GIVEN) if type(values[index]) is _ARRAY}
    sources = tuple(indices.get(array.name, x) for array, x in arrays.items())
    known: dict[Any, Plan] = stored(mech, PLANS, dict)
    if len(known) >= MOST:
        known.clear()
    known[key] = replace(plan, sources=sources)


# -- in momenta ---------------------------------------------------------------------------------------


def uses_momenta(step: Step, target: str) -> bool:
    """Whether the scan carries momenta, which saves solving for v after every step; on a GPU it carries v."""
    return step.coordinates == "momentum" and target != "cuda"


def vector_count(step: Step, q: Any, v: Any) -> int:
    """Largest number of vectors of states to compute side by side, by the number of states."""
    if step.coordinates != "momentum":
        return 1
    states = max(math.prod(np.shape(q)[:-1]), math.prod(np.shape(v)[:-1]))
    return next((count for count, least in MANY.items() if states >= least), 1)


def registers(program: Program, most: int) -> int:
    """Number of vector registers per value (``scan``), at most ``most``."""
    return next((count for count, size in SHORT.items() if count <= most and program.size < size), 1)


def hide_momenta(run: Callable[..., None], inputs: tuple[Array, ...]) -> tuple[Callable[..., None], tuple[Array, ...]]:
    """The rollout with momenta as its first argument, and the list of its other inputs."""
    index = [array.name for array in inputs].index(MOMENTA)
    before, after = inputs[:index], inputs[index + 1 :]
    return lambda p, *arrays, out: run(*arrays[:index], p, *arrays[index:], out=out), before + after


def _computed(
    mech: Mechanism, name: str, q: np.ndarray, x: np.ndarray, parameters: Mapping[Array, np.ndarray]
) -> np.ndarray:
    if not parameters:
        return kernel_function(mech, name)(q, x)
    names = tuple(array.name for array in parameters)
    key = (name, *names, q.dtype.name)
    kernel = stored(mech, key, lambda: compile(name, mech, q.dtype.name, parameters=names))
    return kernel(q, x, *parameters.values())
