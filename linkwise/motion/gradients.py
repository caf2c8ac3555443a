"""Gradients through rollouts (adjoint, reverse mode): derivatives of a function of the states, in one backward sweep.

A step takes (q, v, tau, ...) to the next state.  The backward step is its transposed derivative (vjp): it takes the
gradient by the next state to the gradient by the inputs of the step.  Its program comes from reverse differentiation
and is scanned over the states of the motion in reversed order.  Gradients by configurations are along tangent
directions, nv numbers each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.ir.program import Array, Program
from ..compiler.known_targets import load
from ..compiler.passes.differentiate import Directions, differentiate
from ..compiler.passes.scan import scan
from ..compiler.pipeline import tangent_basis
from ..compiler.recipes import remembered_program
from ..compiler.runtime.explanations import KernelError
from ..compiler.store import stored
from ..compiler.trace import inline, trace
from ..compiler.variants import shared_by_variants
from ..constraints.infinitesimal import refuse_infinitesimal_motions
from ..constraints.sizes import sizes as sizes_of
from ..constraints.sizes import units
from ..dynamics.by_actuator import unless_empty
from ..dynamics.derivatives import step_derivatives, tangent_rows
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import Float64Array, array_of
from ..mechanics.algorithms.algorithm import ALGORITHMS
from ..mechanism import Mechanism, MechanismError, MechanismWarning, one_of, require_mechanism, warn_caller
from .arguments import FEEDBACK_EXAMPLE, Driving, Request, check_mapping
from .checks import check_bodies
from .constrained import overwritten_records
from .rollout import Kept, planned
from .step import ACTIVATION, ACTIVE, NEXT, PER_STEP, STATE, Step, reached

INITIAL = {"q0": "q", "v0": "v"}  # argument of the rollout -> input of a step
HERE, WEIGHT, GRADIENT = "_here", "_weight", "_gradient"  # ends of names of inputs: see ``_backward_step``
TARGETS = ("cpu", "numpy")
BY = ("tau", "ctrl")
SLOW = 1e-3  # of the speed of a fall through the mechanism: slower velocities are compared with this one
SAME = {"float64": 1e-8, "float32": 1e-3}  # relative tolerance of equal states


def rollout_vjp(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike | None,
    dt: ArrayLike | None,
    steps: int,
    cotangent: Sequence[ArrayLike | None],
    method: str | None = None,
    *,
    wrt: str | Sequence[str] | None = None,
    wrenches: ArrayLike | None = None,
    feedback: Mapping[str, Any] | None = None,
    parameters: Mapping[str, Any] | None = None,
    target: str = "cpu",
    passive: Passive | None = None,
    ctrl: ArrayLike | None = None,
    activation: ArrayLike | None = None,
    coordinates: str = "joint",
    forces: Any = ALL,
    active: ArrayLike | None = None,
    drive: ArrayLike | None = None,
) -> dict[str, Float64Array]:
    """Gradient of a function of a rollout by its initial state and inputs (vjp).

    q, v         results of ``rollout``, (..., steps + 1, nq) and (..., steps + 1, nv); or checkpoints of it, made
                 with ``every=k``: (..., steps // k + 1, nq).  The states between them are then computed again, which
                 needs less memory and takes as long as one more rollout
    tau, dt, steps, method, wrenches, feedback, parameters, forces, passive, ctrl, coordinates, active, drive   as
                 ``rollout`` was given them
    cotangent    (w_q, w_v), each (..., nv): derivatives of the function by the last state, along tangent directions of
                 q and by v; or (..., steps // k + 1, nv): by every kept state; None for zero.  With actuator dynamics
                 a third entry is by the n_activation activations
    activation   with actuator dynamics: the third result of ``rollout(..., return_activation=True)``
    wrt          names of the variables of differentiation: "q0", "v0", "tau", "dt", "wrenches", "target", "kp", "kd",
                 "gain", "ctrl", "drive", "activation" (the initial one), and those of ``parameters``; without it q0,
                 v0, tau, ctrl if given, activation if there is one, and all ``parameters``

    A dictionary by these names, of (..., nv) for "q0" (along tangent directions), "v0" and gains, (..., steps, nv)
    for "tau" and "target" (of each step, whatever shape was given; along tangent directions), likewise for "ctrl",
    (..., steps, n_links, 6) for "wrenches", (..., steps, moments, drives, 3) for "drive", (..., n_activation) for
    "activation", (...) for "dt", and the shapes of parameters. Leading axes are those of the whole batch: the
    gradient by a shared input is their sum.

    One sweep backwards, at about three times the cost of the rollout, for any number of variables. Derivatives are
    those of the discrete steps, exact up to rounding.  At kinks the side with zero slope is taken: a control input at
    its bound has a zero derivative.  Raises if the first or last step shows that the motion was made with other
    arguments.  With loops, gradients by q0 and v0 include the projection onto the constraints.  If a motion passes a
    singular position, where steps are not the compiled ones (status of ``rollout``), gradients by earlier inputs are
    NaN, and a ``MechanismWarning`` names state and step.
    """
    require_mechanism(mech)
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    target, feedback = one_of("target", target, TARGETS), check_mapping("feedback", feedback, FEEDBACK_EXAMPLE) or None
    ctrl = unless_empty(mech, ctrl)
    driving = Driving(
        tau, dt, steps, method, coordinates, passive, wrenches, feedback, parameters, ctrl, activation, active, drive
    )
    request = driving.request(mech, q, v).plain()
    states = {"q": mech.nq, "v": mech.nv} | _activations(request, activation)
    by = _asked_for(wrt, request, [name for name, x in (("ctrl", ctrl), (ACTIVATION, activation)) if x is not None])
    dtype = np.dtype(request.precision)
    path = [_check_states(name, request.given[name], size, dtype) for name, size in states.items()]
    sizes, records = states | {"q": mech.nv}, path[0].shape[:-1]
    weights = [_weights(x, name, sizes[name], records, dtype) for name, x in zip_longest(sizes, cotangent)]
    gradients, uncompiled = _Motion.of(request, path, target).gradients(by, weights, _stride(path, request.steps))
    _warn_of_uncompiled(mech, "rollout_vjp", uncompiled)
    return gradients


def rollout_derivatives(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: Any,
    dt: ArrayLike | None,
    method: str | None = None,
    *,
    by: str = "tau",
    wrenches: ArrayLike | None = None,
    feedback: Mapping[str, Any] | None = None,
    ctrl: Any = None,
    passive: Passive | None = None,
    forces: Any = ALL,
    active: ArrayLike | None = None,
    drive: ArrayLike | None = None,
) -> tuple[Float64Array, Float64Array]:
    """(A, B) of every step of a rollout: (..., steps, 2 nv, 2 nv) and (..., steps, 2 nv, nv), with all force elements
    and closed loops.

    q, v    results of ``rollout`` with every=1: (..., steps + 1, nq), (..., steps + 1, nv)
    by      variable of B: "tau", or "ctrl", the control inputs of actuators: (..., steps, 2 nv, n_ctrl)
    tau, dt, method, wrenches, feedback, ctrl, forces, passive, active, drive   as ``rollout`` was given them

    dx_next = A dx + B du, where x is (q, v) with changes of configurations along tangent directions (``difference``).
    By ``step_derivatives`` where joint forces and wrenches alone act on a tree, elsewhere by ``rollout_vjp``, one step
    backwards for each row.  Of steps that are not the compiled ones, near singular positions, they are NaN, and a
    warning names state and step.
    """
    require_mechanism(mech)
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    one_of("by", by, BY)
    if method is not None and not isinstance(method, str):
        raise TypeError(
            f"rollout_derivatives: method is a name, such as 'rk4', or None, not {method!r}: it has no steps, which "
            "rollout and rollout_vjp take before method; their number is that of q"
        )
    q, v = array_of("q", q), array_of("v", v)
    if q.ndim < 2 or q.shape[-1] != mech.nq or v.shape[-1:] != (mech.nv,) or v.shape[:-1] != q.shape[:-1]:
        raise MechanismError(
            f"q and v must be those of rollout, (..., steps + 1, {mech.nq}) and (..., steps + 1, {mech.nv}), "
            f"got {q.shape} and {v.shape}"
        )
    if any(actuator.has_activation for actuator in mech.forces.actuators):
        raise MechanismError("rollout_derivatives: actuators with states of their own need rollout_vjp")
    feedback = check_mapping("feedback", feedback, FEEDBACK_EXAMPLE) or None
    driving = Driving(
        tau, dt, q.shape[-2] - 1, method, passive=passive, wrenches=wrenches, feedback=feedback, ctrl=ctrl,
        active=active, drive=drive,
    )  # fmt: skip
    request = driving.request(mech, q, v).plain()
    dtype = np.dtype(request.precision)
    q, v = q.astype(dtype, copy=False), v.astype(dtype, copy=False)
    motion = _Motion.of(request, (q, v))
    if by == "tau" and (bare := _analytic_derivatives(motion)) is not None:
        return bare
    n, size = mech.nv, 2 * mech.nv
    unit = np.zeros((size, *(1,) * (q.ndim - 1), 2, size), dtype)
    unit[..., 1, :] = np.eye(size).reshape(size, *(1,) * (q.ndim - 1), size)  # one row per number of the end state
    gradients, uncompiled = motion.split_into_steps().gradients(("q0", "v0", by), [unit[..., :n], unit[..., n:]], 1)
    uncompiled = np.where(uncompiled > 0, np.arange(1, q.shape[-2]), 0)
    _warn_of_uncompiled(mech, "rollout_derivatives", uncompiled, steps_apart=True)
    rows = np.concatenate([gradients["q0"], gradients["v0"]], axis=-1)
    return np.moveaxis(rows, 0, -2), np.moveaxis(gradients[by][..., 0, :], 0, -2)


def _analytic_derivatives(motion: _Motion) -> tuple[Float64Array, Float64Array] | None:
    """(A, B) by the method's own recursion for step derivatives.  None if the method has no such recursion, or if more
    than joint forces and wrenches acts."""
    request, step, driven = motion.request, motion.request.step, motion.driven
    if f"{step.name}_step_derivatives" not in ALGORITHMS or step.has_status(request.mech) or driven["dt"].ndim:
        return None
    if step.acting.laws or {*step.inputs} - {"wrenches"}:
        return None
    motion.first_uncompiled()  # refuses motions made with other arguments
    (q, v), wrenches = (x[..., :-1, :] for x in motion.path), driven.get("wrenches")
    pushes = None if wrenches is None else wrenches[..., 0, :, :]
    return step_derivatives(request.mech, q, v, driven["tau"][..., 0, :], driven["dt"], step.method, pushes)


def _mask_before(name: str, gradient: np.ndarray, uncompiled: np.ndarray, lead: int) -> np.ndarray:
    """A gradient with NaN for inputs before a step that is not the compiled one.

    uncompiled   (...): number of that step, from 1, or 0
    lead         number of axes of the batch and, for inputs per step, of steps
    """
    if not uncompiled.any():
        return gradient
    gone = uncompiled > 0
    if name in PER_STEP:
        gone = np.arange(gradient.shape[lead - 1]) < uncompiled[..., None]
    gone = np.broadcast_to(gone, gradient.shape[:lead])
    return np.where(gone.reshape(*gone.shape, *(1,) * (gradient.ndim - lead)), np.nan, gradient)


def _warn_of_uncompiled(mech: Mechanism, who: str, uncompiled: np.ndarray, steps_apart: bool = False) -> None:
    """Warn of the first state and step without derivatives; ``steps_apart``: the last axis of the batch is steps."""
    if not (uncompiled > 0).any():
        return
    first = np.unravel_index(
        np.argmin(np.where(uncompiled > 0, uncompiled, np.iinfo(uncompiled.dtype).max)), uncompiled.shape
    )
    step, state = int(uncompiled[first]), tuple(map(int, first[:-1] if steps_apart else first))
    whose = f" of state {state}" if state else ""
    more = (
        f" ({int((uncompiled > 0).sum())} {'steps' if steps_apart else 'motions'} of {uncompiled.size})"
        if uncompiled.size > 1
        else ""
    )
    warn_caller(
        f"{who}: step {step}{whose}{more} is not the compiled one: near singular positions of mechanism {mech.name!r} "
        "rollout takes other ways, which have no derivatives; those that would pass through it are NaN: take shorter "
        "motions, smaller steps or other states",
        MechanismWarning,
    )


# -- the sweep ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Backward:
    """A compiled backward sweep: ``run(*inputs, out=outputs)``, and the arrays of one step.  ``numbers`` are the inputs
    that hold the parameters of this variant of a mechanism."""

    run: Callable[..., None]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    numbers: Mapping[str, np.ndarray]

    def rank(self, name: str) -> int:
        """Number of axes of a gradient, without those of the batch and of steps."""
        step_input = INITIAL.get(name, name)
        return next(len(array.shape) for array in self.outputs if _plain_name(array.name) == step_input)


class _Sweep:
    """Gradients propagated from the last state to the first, one segment of steps after the other."""

    def __init__(self, backward: _Backward, batch: tuple[int, ...], steps: int, weights: Sequence[np.ndarray]):
        self.backward, self.batch = backward, batch
        self.gradients: dict[str, np.ndarray] = {}
        for array in backward.outputs:
            name = _plain_name(array.name)
            axes = (*batch, steps) if name in PER_STEP else batch
            self.gradients[name] = np.zeros((*axes, *array.shape), weights[0].dtype)
        for name, weight in zip(STATE, weights, strict=False):
            self.gradients[name][...] = weight[..., -1, :]

    def propagate(
        self,
        first: int,
        states: Sequence[np.ndarray],
        driven: Mapping[str, np.ndarray],
        weights: Sequence[np.ndarray],
    ) -> None:
        """Propagate gradients from the last of ``states`` to the first, which is the state after ``first`` steps.
        ``weights`` are the direct derivatives of the function by each of these states."""
        count = states[0].shape[-2] - 1
        if not count:
            return
        numbers = {name: np.asarray(x, weights[0].dtype) for name, x in self.backward.numbers.items()}
        values = {**driven, **numbers}
        for name, path, weight in zip(STATE, states, weights, strict=False):
            values[name], values[name + HERE] = path[..., :-1, None, :], weight[..., :-1, None, :]
        inputs, outputs = [], []
        for array in self.backward.inputs:
            if array.name in values:
                x = values[array.name]
                inputs.append(_reversed(x, 2 + len(array.shape)) if _is_per_run(array.name) else x)
            elif _plain_name(array.name) in PER_STEP:  # a dummy input, never read
                inputs.append(np.zeros(array.shape, weights[0].dtype))
            else:
                inputs.append(self.gradients[_plain_name(array.name)])
        for array in self.backward.outputs:
            name = _plain_name(array.name)
            if name in PER_STEP:
                steps = self.gradients[name][_cut(slice(first, first + count), 1 + len(array.shape))]
                outputs.append(_reversed(steps, 1 + len(array.shape)))
            else:
                self.gradients[name] = np.empty_like(self.gradients[name])
                outputs.append(overwritten_records(self.gradients[name], count, len(array.shape)))
        self.backward.run(*inputs, out=tuple(outputs))


def _plain_name(name: str) -> str:
    """Name of the variable of a gradient, from the name of an input or output of the backward step."""
    return name.removesuffix(NEXT).removesuffix(WEIGHT).removesuffix(GRADIENT)


def _is_per_run(name: str) -> bool:
    return name in (*STATE, *PER_STEP) or name.endswith(HERE)


def _reversed(x: np.ndarray, axis: int) -> np.ndarray:
    """The array reversed along an axis, counted from the end."""
    return x[_cut(slice(None, None, -1), axis)]


def _cut(part: Any, axis: int) -> tuple[Any, ...]:
    """Index tuple that applies a slice or an integer to an axis, counted from the end."""
    return (..., part, *(slice(None),) * (axis - 1))


# -- the program --------------------------------------------------------------------------------------------


def _kernel(mech: Mechanism, step: Step, by: tuple[str, ...], dtype: str, target: str) -> _Backward:
    """The compiled backward sweep, from the store of the mechanism or of its variants, else compiled now."""
    wanted = tuple(INITIAL.get(name, name) for name in by)

    def sweep(vector: Mapping[str, np.ndarray], numbers: tuple[Any, ...] = ()) -> _Backward:
        program = remembered_program(_backwards, mech, step, step.decisions(mech), dtype, wanted, numbers)
        inputs, outputs = (tuple(replace(x, axes=()) for x in side) for side in (program.inputs, program.outputs))
        return _Backward(load(program, dtype, target), inputs, outputs, vector)

    def shared(numbers: Any) -> Any:
        of_all = sweep({}, (numbers,))
        return lambda variant, vector: replace(of_all, numbers={"numbers": vector})

    request = ("rollout_vjp", step, by, target)
    return stored(mech, (*request, dtype), lambda: shared_by_variants(mech, request, dtype, lambda: sweep({}), shared))


def _backwards(
    mech: Mechanism, step: Step, decided: Mapping[str, Any], dtype: str, by: tuple[str, ...], numbers: tuple[Any, ...]
) -> Program:
    """The program of a backward sweep.  ``decided`` are the mechanism's decisions that it depends on; ``numbers`` are
    parameters that are inputs."""
    program = _backward_step(mech, step.program(mech, dtype, numbers, counts=False), by)
    carried = {array.name: array.name.removesuffix(NEXT) for array in program.outputs}
    per_run = tuple(array.name for array in program.inputs if _is_per_run(array.name))
    return scan(program, carried, per_run)


def _backward_step(mech: Mechanism, step: Program, by: Sequence[str]) -> Program:
    """The program of one backward step.  Its inputs are those of the step, followed by

    q_here, v_here, ...    direct derivatives of the function by the state at the start of the step
    q_weight, ...          the gradient by the state at its end; the output is the gradient by the state at its start
    ..._gradient           gradients by other inputs, summed over the steps for inputs that all steps share
    """
    names = [array.name for array in step.inputs]
    state = [name for name in STATE if name in names]
    n = len(state)
    wanted = [*state, *(name for name in by if name not in STATE)]
    gradient = _weighed_gradient(mech, step, wanted)
    rows = tangent_rows(mech)
    sizes = [mech.nv if _is_configuration(name) else step.inputs[names.index(name)].size for name in wanted]
    shapes = [(mech.nv,) if _is_configuration(x) else step.inputs[names.index(x)].shape for x in wanted]
    carried = [Array(x + (WEIGHT if x in STATE else GRADIENT), shape) for x, shape in zip(wanted, shapes, strict=True)]
    here = [Array(name + HERE, shape) for name, shape in zip(state, shapes, strict=False)]

    def run(*arrays: np.ndarray) -> list[np.ndarray]:
        inputs, at_start, before = arrays[: len(names)], arrays[len(names) :][:n], arrays[len(names) + n :]
        end = inline(step, *inputs)[0]
        tangent = inline(rows, end, end)[0]  # (nv, nq): from changes of the configuration to tangent directions
        products = inline(gradient, *inputs, tangent.T @ before[0], *before[1:n])[0]
        ends = accumulate(sizes, initial=0)
        parts = [products[a:b].reshape(shape) for (a, b), shape in zip(pairwise(ends), shapes, strict=True)]
        parts[:n] = [part + inputs for part, inputs in zip(parts, at_start, strict=False)]
        for i, name in enumerate(wanted[n:], n):
            parts[i] = parts[i] if name in PER_STEP else parts[i] + before[i]
        return parts

    outputs = [array.name + NEXT for array in carried]
    return trace(run, [*step.inputs, *here, *carried], outputs, f"{step.name}_vjp")


def _weighed_gradient(mech: Mechanism, step: Program, wanted: Sequence[str]) -> Program:
    """The gradient of a weighted sum of the state after a step; the weights are further inputs."""
    names = [array.name for array in step.inputs]
    weights = [Array(array.name + WEIGHT, array.shape) for array in step.outputs]

    def weighed(*arrays: np.ndarray) -> list[np.ndarray]:
        ends = inline(step, *arrays[: len(names)])
        pairs = zip((x for end in ends for x in end), (w for array in arrays[len(names) :] for w in array), strict=True)
        return [np.asarray(sum((w * x for x, w in pairs), 0.0), dtype=object)]

    product = trace(weighed, [*step.inputs, *weights], ["sum"], step.name)
    basis = tangent_basis(mech)
    moving = [Directions(names.index(name), basis=basis if _is_configuration(name) else None) for name in wanted]
    return differentiate(product, moving, "reverse")


def _is_configuration(name: str) -> bool:
    return name in ("q", "target")


# -- arguments of the caller -------------------------------------------------------------------------------------


def _activations(request: Request, activation: Any) -> dict[str, int]:
    """Number of activations in a state, by name; empty without actuator dynamics."""
    n = request.step.acting.n_activation
    if n and activation is None:
        names = ", ".join(actuator.name for actuator in request.mech.forces.actuators if actuator.has_activation)
        raise MechanismError(
            f"{names} of mechanism {request.mech.name!r} have states of their own: give rollout_vjp the activation "
            "that rollout(..., return_activation=True) returned third"
        )
    return {ACTIVATION: n} if n else {}


def _asked_for(wrt: str | Sequence[str] | None, request: Request, more: Sequence[str]) -> tuple[str, ...]:
    """Variables of differentiation; by default the initial state, joint forces, ``more`` and all parameters."""
    step = request.step
    if wrt is None:
        return (*INITIAL, "tau", *more, *step.parameters)
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    known = (*INITIAL, "tau", "dt", *(name for name in step.inputs if name != ACTIVE), *step.parameters)
    return tuple(dict.fromkeys(one_of("argument of the rollout to differentiate by", name, known) for name in names))


def _check_states(name: str, values: Any, size: int, dtype: np.dtype) -> np.ndarray:
    """Records of a rollout, checked and in one precision."""
    states = np.asarray(values)
    if states.ndim < 2 or states.shape[-1] != size or not np.can_cast(states.dtype, np.float64):
        raise KernelError(
            f"rollout_vjp: {name} must be what rollout returned, numbers of shape (..., states, {size}), not "
            f"{states.dtype} of shape {states.shape}"
        )
    return states.astype(dtype, copy=False)


def _stride(path: Sequence[np.ndarray], steps: int) -> int:
    """The number of steps from one kept state to the next."""
    q, v, *others = (states.shape[-2] - 1 for states in path)
    if q != v:
        raise KernelError(f"rollout_vjp: q has {q + 1} states and v {v + 1}: give both as rollout returned them")
    if any(other != q for other in others):
        raise KernelError(f"rollout_vjp: q has {q + 1} states and activation {others[0] + 1}: give both as returned")
    if q == steps:
        return 1
    if q < 1 or steps % q:
        raise KernelError(
            f"rollout_vjp: {q + 1} states are no checkpoints of {steps} steps: give all {steps + 1}, or those that "
            "rollout(..., every=k) keeps (final_only keeps too few)"
        )
    return steps // q


def _weights(cotangent: Any, name: str, nv: int, states: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """(..., records, nv): derivatives of the function by each kept state, from the caller's cotangent."""
    *batch, records = states
    if cotangent is None:
        return np.zeros((records, nv), dtype)
    array = np.asarray(cotangent, dtype)
    at_each_end = bool(batch) and array.shape == (*batch, nv)  # the number of motions may equal the number of records
    if array.ndim >= 2 and array.shape[-2:] == (records, nv) and not at_each_end:
        return array
    if array.ndim < 1 or array.shape[-1] != nv:
        raise KernelError(
            f"rollout_vjp: the cotangent of {name} has shape {array.shape}, expected (..., {nv}) at the last state "
            f"or (..., {records}, {nv}) at all that are kept; along tangent directions where it is that of q"
        )
    at_last = np.zeros((*array.shape[:-1], records, nv), dtype)
    at_last[..., -1, :] = array
    return at_last


@dataclass(frozen=True)
class _Motion:
    """A motion that ``rollout`` has computed.

    request   its request
    path      the kept states: q, v and activations, (..., records, n)
    driven    other inputs; inputs per step are (..., steps, 1, core)
    batch     the batch shape of all of these
    """

    request: Request
    path: Sequence[np.ndarray]
    driven: Mapping[str, np.ndarray]
    batch: tuple[int, ...]
    target: str

    @staticmethod
    def of(request: Request, path: Sequence[np.ndarray], target: str = "cpu") -> _Motion:
        """The motion of a request with kept states ``path``; raises if shapes or parameters do not fit."""
        mech, step = request.mech, request.step
        if ACTIVE not in step.inputs:
            refuse_infinitesimal_motions(mech, "the gradient of a rollout")
        start = {name: states[..., 0, :] for name, states in zip(STATE, path, strict=False)}
        inputs = [Array(name, core) for name, core in step.shapes(mech)]
        arrays, batch = request.with_given(start).arrays(inputs, path[0].dtype, 1)
        driven = {array.name: x for array, x in arrays.items() if array.name not in STATE}
        for name in step.parameters:
            check_bodies(mech, name, driven[name])
        return _Motion(request, path, driven, batch, target)

    @property
    def _has_status(self) -> bool:
        return self.request.step.has_status(self.request.mech)

    def split_into_steps(self) -> _Motion:
        """The motion as a batch of one-step motions; steps are the last axis of the batch."""
        path = [np.stack([x[..., :-1, :], x[..., 1:, :]], axis=-2) for x in self.path]
        ranks = {name: len(core) for name, core in self.request.step.shapes(self.request.mech)}
        driven = {name: np.expand_dims(x, x.ndim - ranks[name] - (name in PER_STEP)) for name, x in self.driven.items()}
        request = replace(self.request, steps=1)
        return _Motion(request, path, driven, (*self.batch, self.request.steps), self.target)

    def gradients(
        self, by: tuple[str, ...], weights: Sequence[np.ndarray], every: int
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The gradients by name, and (...): the first step, from 1, that is not the compiled one, or 0.  ``weights``
        are derivatives of the function by each kept state; one state is kept ``every`` so many steps."""
        request, dtype = self.request, self.path[0].dtype
        backward = _kernel(request.mech, request.step, by, dtype.name, self.target)
        batch = np.broadcast_shapes(self.batch, *(x.shape[:-2] for x in weights))
        sweep = _Sweep(backward, batch, request.steps, weights)
        if every == 1:
            uncompiled = self.first_uncompiled()
            sweep.propagate(0, self.path, self.driven, weights)
        else:
            uncompiled = np.zeros(self.batch, int)
            for record in reversed(range(request.steps // every)):
                between = self.recompute_segment(record, every)
                between_left, _ = between.uncompiled()
                uncompiled = np.where(between_left > 0, record * every + between_left, uncompiled)
                sweep.propagate(
                    record * every,
                    between.path,
                    between.driven,
                    [_weights_at_start(x[..., record, :], every) for x in weights],
                )
        result = {name: sweep.gradients[INITIAL.get(name, name)] for name in by}
        return {
            name: _mask_before(name, x, uncompiled, x.ndim - backward.rank(name)) for name, x in result.items()
        }, uncompiled

    def first_uncompiled(self) -> np.ndarray:
        """(...): the number of the first step, from 1, that is not the compiled one, or 0.  Raises if the first or last
        step shows that the motion was made with other arguments; within constraints the first uncompiled step is
        checked."""
        uncompiled, doubtful = self.uncompiled()
        looked_at = {int(doubtful[doubtful > 0].min()) - 1} if doubtful.any() else set()
        if self.request.steps and not self._has_status:  # detects another method, and most other inputs
            looked_at = {0, self.request.steps - 1}
        for record in looked_at:
            self.recompute_segment(record, 1)
        return uncompiled

    def recompute_segment(self, record: int, every: int) -> _Motion:
        """The steps from one kept state to the next, computed again without warnings.  Raises if compiled steps do not
        arrive at the next kept state."""
        some = slice(record * every, (record + 1) * every)
        driven = {name: x[_cut(some, 2 + PER_STEP[name])] if name in PER_STEP else x for name, x in self.driven.items()}
        inputs = {name: x[_cut(0, 1 + PER_STEP[name])] if name in PER_STEP else x for name, x in driven.items()}
        inputs |= {name: x[..., record, :] for name, x in zip(STATE, self.path, strict=False)}
        mech, step = self.request.mech, self.request.step
        request = Request(mech, step, every, inputs, {}, {})
        run = planned(request, Kept(every, 1, False), self.target)
        run.goes_on = True
        states, status = run.records()
        compared = (status == 0)[..., None]
        ends = []
        for x, kept in zip(states, self.path, strict=True):
            ends.append(np.where(compared | ~np.isfinite(x[..., -1, :]), kept[..., record + 1, :], np.nan))
        _check_arrival(states, ends, (record + 1) * every)
        return replace(self, request=request, path=states, driven=driven)

    def uncompiled(self) -> tuple[np.ndarray, np.ndarray]:
        """(...) each: number of the first step, from 1, that differs from the compiled one or is unreliable; and of
        the first that differs although the compiled one is reliable.  0 if all steps agree."""
        states, mech, step = self.path, self.request.mech, self.request.step
        if states[0].shape[-2] < 2 or not self._has_status:
            return np.zeros(self.batch, int), np.zeros(self.batch, int)
        values = {**self.driven, **dict(zip(STATE, (x[..., :-1, :] for x in states), strict=False))}
        inputs = [_add_step_axis(name, values[name], len(core)) for name, core in step.shapes(mech)]
        with np.errstate(all="ignore"):
            end, relied, _ = reached(mech, step, *(np.asarray(x, float) for x in inputs))
        there = [x[..., 1:, :] for x in states]
        off = self._differ(np.split(end, np.cumsum([x.shape[-1] for x in there])[:-1], axis=-1), there)
        known = np.logical_and.reduce([np.isfinite(x).all(axis=-1) for x in there])
        poor = ~relied
        first = [
            np.where(x.any(axis=-1), np.argmax(x, axis=-1) + 1, 0) for x in (known & (off | poor), known & off & ~poor)
        ]
        return first[0], first[1]

    def _differ(self, states: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
        """(...): whether states differ beyond ``SAME``, in units of the mechanism's size."""
        mech = self.request.mech
        unit_sizes, slow = units(mech), SLOW * sizes_of(mech).rate
        scales = ((unit_sizes.positions, 1.0), (unit_sizes.velocities, slow), (1.0, 1.0))
        differs = []
        for x, y, (unit, least) in zip(states, others, scales, strict=False):
            gap, size = (np.abs(z / unit).max(axis=-1, initial=0.0) for z in (x - y, y))
            differs.append(gap > SAME[y.dtype.name] * (least + size))
        return np.logical_or.reduce(differs)


def _add_step_axis(name: str, x: np.ndarray, core: int) -> np.ndarray:
    """An input with an axis of steps after those of the batch; one value has ``core`` axes."""
    if name in STATE:
        return x
    cut = x.ndim - core
    if name in PER_STEP:
        return np.take(x, 0, axis=cut - 1)  # each step is a record of its own
    return x.reshape((*x.shape[:cut], 1, *x.shape[cut:]))


def _check_arrival(states: Sequence[np.ndarray], kept: Sequence[np.ndarray], step: int) -> None:
    """Raise if the end of recomputed steps differs from the kept state: it is another motion."""
    for path, there in zip(states, kept, strict=True):
        end = path[..., -1, :]
        difference = np.abs(end - there)
        size = 1.0 + np.abs(there).max(axis=-1, keepdims=True, initial=0.0)
        if (difference > SAME[there.dtype.name] * size).any():  # NaN is not compared
            raise KernelError(
                f"rollout_vjp: q and v are not the motion that rollout makes with these arguments: at step {step} they "
                f"are off by {np.nanmax(difference):.2g}; give tau, dt, method, ctrl, feedback, wrenches, parameters "
                "and passive as rollout was given them"
            )


def _weights_at_start(weight: np.ndarray, steps: int) -> np.ndarray:
    """Weights of the states of a segment: ``weight`` at its start, zero elsewhere.  The last state belongs to the next
    segment."""
    weights = np.zeros((*weight.shape[:-1], steps + 1, weight.shape[-1]), weight.dtype)
    weights[..., 0, :] = weight
    return weights
