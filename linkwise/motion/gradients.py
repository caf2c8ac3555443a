"""Gradients through rollouts: the derivative of any function of the states by what the motion was started and driven
with, in one sweep backwards over the steps.

A step takes (q, v, tau, ...) to the next state.  Backwards it takes the gradient by the next state to that by its own
inputs: the transposed derivative of the step, whose program is differentiated in reverse and run over time
of its own, which is given the states of the motion in reversed order.  Gradients by configurations are along tangent
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
from ..dynamics.derivatives import step_derivatives, tangent_rows
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import Float64Array, array_of
from ..mechanics.algorithms.algorithm import ALGORITHMS
from ..mechanism import Mechanism, MechanismError, MechanismWarning, one_of, require_mechanism, warn_caller
from .arguments import FEEDBACK_EXAMPLE, Driving, Request, by_name
from .checks import check_bodies
from .constrained import over_and_over
from .rollout import Kept, planned
from .step import ACTIVATION, ACTIVE, NEXT, PER_STEP, STATE, Step, reached

INITIAL = {"q0": "q", "v0": "v"}  # what callers know as initial states -> inputs of a step
HERE, WEIGHT, GRADIENT = "_here", "_weight", "_gradient"  # ends of names of inputs: see ``_backward_step``
TARGETS = ("cpu", "numpy")
BY = ("tau", "ctrl")
SLOW = 1e-3  # of the speed of a fall through the mechanism: slower velocities are compared with this one
SAME = {"float64": 1e-8, "float32": 1e-3}  # relative: what states may differ by and be the same


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
    """Gradient of a function of the motion that ``rollout`` gave by what that started from and was driven with.

    q, v         what ``rollout`` returned, (..., steps + 1, nq) and (..., steps + 1, nv); or checkpoints of it, made
                 with ``every=k``: (..., steps // k + 1, nq).  The states between them are then computed again, which
                 needs less memory and takes as long as one more rollout
    tau, dt, steps, method, wrenches, feedback, parameters, forces, passive, ctrl, coordinates, active, drive   as
                 ``rollout`` was given them
    cotangent    (w_q, w_v), each (..., nv): how the function changes with the last state, along tangent directions of
                 q and by v; or, if not of that shape, (..., steps // k + 1, nv): with every state that is kept; None
                 for not at all; with a third of n_activation numbers where actuators have states of their own
    activation   what ``rollout(..., return_activation=True)`` returned third, where they have
    wrt          the names of what to differentiate by: "q0", "v0", "tau", "dt", "wrenches", "target", "kp", "kd",
                 "gain", "ctrl", "drive", "activation" (the initial one), and those of ``parameters``; without it q0,
                 v0, tau, ctrl if given, activation if there is one, and all ``parameters``

    A dictionary by these names, of (..., nv) for "q0" (along tangent directions), "v0" and gains, (..., steps, nv)
    for "tau" and "target" (of each step, whatever shape was given; along tangent directions), likewise for "ctrl",
    (..., steps, n_links, 6) for "wrenches", (..., steps, moments, drives, 3) for "drive", (..., n_activation) for
    "activation", (...) for "dt", and the shapes of parameters. Leading axes are those of the whole batch: the
    gradient by what states share is the sum over them.

    One sweep backwards, at about three times the cost of the rollout, however many numbers there are to differentiate
    by.  Derivatives are those of the discrete steps, exact but for rounding.  At kinks they are those of the side on
    which nothing changes: a control input at its bound, or beyond, has none, however the function would change if it
    went back inside.  A motion that was made with other arguments is refused where its first or last step tells.
    Loops: gradients by q0 and v0 count what the projection onto loops does to any change of them.  Of motions that pass
    singular positions, where steps are not the compiled ones (status of ``rollout``), gradients are NaN by all that
    comes before, and a ``MechanismWarning`` names state and step.
    """
    require_mechanism(mech)
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    target, feedback = one_of("target", target, TARGETS), by_name("feedback", feedback, FEEDBACK_EXAMPLE) or None
    driving = Driving(
        tau, dt, steps, method, coordinates, passive, wrenches, feedback, parameters, ctrl, activation, active, drive
    )
    request = driving.request(mech, q, v).plain()
    states = {"q": mech.nq, "v": mech.nv} | _activations(request, activation)
    by = _asked_for(wrt, request, [name for name, x in (("ctrl", ctrl), (ACTIVATION, activation)) if x is not None])
    dtype = np.dtype(request.precision)
    path = [_kept(name, request.given[name], size, dtype) for name, size in states.items()]
    sizes, records = states | {"q": mech.nv}, path[0].shape[:-1]
    weights = [_weights(x, name, sizes[name], records, dtype) for name, x in zip_longest(sizes, cotangent)]
    gradients, left = _Motion.of(request, path, target).gradients(by, weights, _stride(path, request.steps))
    _warn_of_left(mech, "rollout_vjp", left)
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
    """(A, B) of every step of a motion that ``rollout`` gave: (..., steps, 2 nv, 2 nv) and (..., steps, 2 nv, nv), with
    contact, actuators, damping and all else that acts, loops closed.

    q, v    what ``rollout`` returned with every=1: (..., steps + 1, nq), (..., steps + 1, nv)
    by      what B is by: "tau", or "ctrl", the control inputs of actuators: (..., steps, 2 nv, n_ctrl)
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
    if any(one.has_activation for one in mech.forces.actuators):
        raise MechanismError("rollout_derivatives: actuators with states of their own need rollout_vjp")
    feedback = by_name("feedback", feedback, FEEDBACK_EXAMPLE) or None
    driving = Driving(
        tau, dt, q.shape[-2] - 1, method, passive=passive, wrenches=wrenches, feedback=feedback, ctrl=ctrl,
        active=active, drive=drive,
    )  # fmt: skip
    request = driving.request(mech, q, v).plain()
    dtype = np.dtype(request.precision)
    q, v = q.astype(dtype, copy=False), v.astype(dtype, copy=False)
    motion = _Motion.of(request, (q, v))
    if by == "tau" and (bare := _of_bare_step(motion)) is not None:
        return bare
    n, size = mech.nv, 2 * mech.nv
    unit = np.zeros((size, *(1,) * (q.ndim - 1), 2, size), dtype)
    unit[..., 1, :] = np.eye(size).reshape(size, *(1,) * (q.ndim - 1), size)  # each number of the end for itself
    gradients, left = motion.step_by_step().gradients(("q0", "v0", by), [unit[..., :n], unit[..., n:]], 1)
    left = np.where(left > 0, np.arange(1, q.shape[-2]), 0)
    _warn_of_left(mech, "rollout_derivatives", left, steps_apart=True)
    rows = np.concatenate([gradients["q0"], gradients["v0"]], axis=-1)
    return np.moveaxis(rows, 0, -2), np.moveaxis(gradients[by][..., 0, :], 0, -2)


def _of_bare_step(motion: _Motion) -> tuple[Float64Array, Float64Array] | None:
    """(A, B) by the recursion that the steps of a method have for their derivatives, where joint forces and wrenches
    alone act; None if there is no such recursion, or more acts."""
    request, step, driven = motion.request, motion.request.step, motion.driven
    if f"{step.name}_step_derivatives" not in ALGORITHMS or step.has_status(request.mech) or driven["dt"].ndim:
        return None
    if step.acting.laws or {*step.inputs} - {"wrenches"}:
        return None
    motion.first_left()  # which refuses others
    (q, v), wrenches = (x[..., :-1, :] for x in motion.path), driven.get("wrenches")
    pushes = None if wrenches is None else wrenches[..., 0, :, :]
    return step_derivatives(request.mech, q, v, driven["tau"][..., 0, :], driven["dt"], step.method, pushes)


def _unknown_before(name: str, gradient: np.ndarray, left: np.ndarray, lead: int) -> np.ndarray:
    """A gradient, not numbers where it is by what comes before a step that is not the compiled one.

    left   (...): the number of that step, from 1, 0 where there is none
    lead   axes of the batch and, of inputs of every step, of steps
    """
    if not left.any():
        return gradient
    gone = left > 0
    if name in PER_STEP:
        gone = np.arange(gradient.shape[lead - 1]) < left[..., None]
    gone = np.broadcast_to(gone, gradient.shape[:lead])
    return np.where(gone.reshape(*gone.shape, *(1,) * (gradient.ndim - lead)), np.nan, gradient)


def _warn_of_left(mech: Mechanism, who: str, left: np.ndarray, steps_apart: bool = False) -> None:
    """Name the first state and step of which there are no derivatives; ``steps_apart``: the last axis is that of
    steps."""
    if not (left > 0).any():
        return
    first = np.unravel_index(np.argmin(np.where(left > 0, left, np.iinfo(left.dtype).max)), left.shape)
    step, state = int(left[first]), tuple(map(int, first[:-1] if steps_apart else first))
    whose = f" of state {state}" if state else ""
    more = f" ({int((left > 0).sum())} {'steps' if steps_apart else 'motions'} of {left.size})" if left.size > 1 else ""
    warn_caller(
        f"{who}: step {step}{whose}{more} is not the compiled one: near singular positions of mechanism {mech.name!r} "
        "rollout takes other ways, which have no derivatives; those that would pass through it are NaN: take shorter "
        "motions, smaller steps or other states",
        MechanismWarning,
    )


# -- the sweep ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Backward:
    """A compiled sweep backwards: ``run(*inputs, out=outputs)``, the arrays of one step of it, and those inputs that
    are numbers of this variant of a mechanism."""

    run: Callable[..., None]
    inputs: tuple[Array, ...]
    outputs: tuple[Array, ...]
    numbers: Mapping[str, np.ndarray]

    def rank(self, name: str) -> int:
        """The number of axes of a gradient, but for those of the batch and of steps."""
        own = INITIAL.get(name, name)
        return next(len(array.shape) for array in self.outputs if _plain_name(array.name) == own)


class _Sweep:
    """Gradients on their way from the last state to the first, over one run of steps after the other."""

    def __init__(self, backward: _Backward, batch: tuple[int, ...], steps: int, weights: Sequence[np.ndarray]):
        self.backward, self.batch = backward, batch
        self.gradients: dict[str, np.ndarray] = {}
        for array in backward.outputs:
            name = _plain_name(array.name)
            axes = (*batch, steps) if name in PER_STEP else batch
            self.gradients[name] = np.zeros((*axes, *array.shape), weights[0].dtype)
        for name, weight in zip(STATE, weights, strict=False):
            self.gradients[name][...] = weight[..., -1, :]

    def over(
        self,
        first: int,
        states: Sequence[np.ndarray],
        driven: Mapping[str, np.ndarray],
        weights: Sequence[np.ndarray],
    ) -> None:
        """Take the gradients from the last of ``states`` to the first, which is reached after ``first`` steps;
        ``weights`` are what the function owes to each of them itself."""
        count = states[0].shape[-2] - 1
        if not count:
            return
        numbers = {name: np.asarray(x, weights[0].dtype) for name, x in self.backward.numbers.items()}
        given = {**driven, **numbers}
        for name, path, weight in zip(STATE, states, weights, strict=False):
            given[name], given[name + HERE] = path[..., :-1, None, :], weight[..., :-1, None, :]
        inputs, outputs = [], []
        for array in self.backward.inputs:
            if array.name in given:
                x = given[array.name]
                inputs.append(_reversed(x, 2 + len(array.shape)) if _is_per_run(array.name) else x)
            elif _plain_name(array.name) in PER_STEP:  # a place to return to, never read
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
                outputs.append(over_and_over(self.gradients[name], count, len(array.shape)))
        self.backward.run(*inputs, out=tuple(outputs))


def _plain_name(name: str) -> str:
    """What a gradient is by, from the name of an input or output of the backward step."""
    return name.removesuffix(NEXT).removesuffix(WEIGHT).removesuffix(GRADIENT)


def _is_per_run(name: str) -> bool:
    return name in (*STATE, *PER_STEP) or name.endswith(HERE)


def _reversed(x: np.ndarray, axis: int) -> np.ndarray:
    """The array backwards along an axis, counted from the end."""
    return x[_cut(slice(None, None, -1), axis)]


def _cut(part: Any, axis: int) -> tuple[Any, ...]:
    """The index of a part of an axis, or of one place along it, counted from the end."""
    return (..., part, *(slice(None),) * (axis - 1))


# -- the program --------------------------------------------------------------------------------------------


def _kernel(mech: Mechanism, step: Step, by: tuple[str, ...], dtype: str, target: str) -> _Backward:
    """The compiled sweep, from the mechanism's own store, that of its variants, or made now."""
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
    """The program of a sweep backwards; ``decided`` are the decisions of the mechanism that it goes by, ``numbers``
    inputs of it."""
    program = _backward_step(mech, step.program(mech, dtype, numbers, counts=False), by)
    carried = {array.name: array.name.removesuffix(NEXT) for array in program.outputs}
    per_run = tuple(array.name for array in program.inputs if _is_per_run(array.name))
    return scan(program, carried, per_run)


def _backward_step(mech: Mechanism, step: Program, by: Sequence[str]) -> Program:
    """The program of one step backwards.  It takes what the step takes, and then

    q_here, v_here, ...    what the function owes to the state at the start of the step itself
    q_weight, ...          the gradient by the state at its end; the program gives that by the state at its start
    ..._gradient           gradients by other inputs; those by inputs that all steps share are sums over the steps
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
        own, at_start, before = arrays[: len(names)], arrays[len(names) :][:n], arrays[len(names) + n :]
        end = inline(step, *own)[0]
        tangent = inline(rows, end, end)[0]  # (nv, nq): a change of the configuration as a step from it
        found = inline(gradient, *own, tangent.T @ before[0], *before[1:n])[0]
        ends = accumulate(sizes, initial=0)
        parts = [found[a:b].reshape(shape) for (a, b), shape in zip(pairwise(ends), shapes, strict=True)]
        parts[:n] = [part + own for part, own in zip(parts, at_start, strict=False)]
        for i, name in enumerate(wanted[n:], n):
            parts[i] = parts[i] if name in PER_STEP else parts[i] + before[i]
        return parts

    outputs = [array.name + NEXT for array in carried]
    return trace(run, [*step.inputs, *here, *carried], outputs, f"{step.name}_vjp")


def _weighed_gradient(mech: Mechanism, step: Program, wanted: Sequence[str]) -> Program:
    """The gradient of a weighed sum of the coordinates and velocities after a step, its weights two more inputs."""
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


# -- what the caller gave -------------------------------------------------------------------------------------


def _activations(request: Request, activation: Any) -> dict[str, int]:
    """How many activations are part of a state, if there are any."""
    n = request.step.acting.n_activation
    if n and activation is None:
        names = ", ".join(one.name for one in request.mech.forces.actuators if one.has_activation)
        raise MechanismError(
            f"{names} of mechanism {request.mech.name!r} have states of their own: give rollout_vjp the activation "
            "that rollout(..., return_activation=True) returned third"
        )
    return {ACTIVATION: n} if n else {}


def _asked_for(wrt: str | Sequence[str] | None, request: Request, more: Sequence[str]) -> tuple[str, ...]:
    """What to differentiate by; without ``wrt`` the start, joint forces, ``more`` and all parameters."""
    step = request.step
    if wrt is None:
        return (*INITIAL, "tau", *more, *step.parameters)
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    known = (*INITIAL, "tau", "dt", *(name for name in step.inputs if name != ACTIVE), *step.parameters)
    return tuple(dict.fromkeys(one_of("argument of the rollout to differentiate by", name, known) for name in names))


def _kept(name: str, given: Any, size: int, dtype: np.dtype) -> np.ndarray:
    """The states that a rollout has kept."""
    states = np.asarray(given)
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


def _weights(given: Any, name: str, nv: int, states: tuple[int, ...], dtype: np.dtype) -> np.ndarray:
    """(..., records, nv): what the function owes to each state that is kept."""
    *batch, records = states
    if given is None:
        return np.zeros((records, nv), dtype)
    weights = np.asarray(given, dtype)
    at_each_end = bool(batch) and weights.shape == (*batch, nv)  # as many motions as records may be
    if weights.ndim >= 2 and weights.shape[-2:] == (records, nv) and not at_each_end:
        return weights
    if weights.ndim < 1 or weights.shape[-1] != nv:
        raise KernelError(
            f"rollout_vjp: the cotangent of {name} has shape {weights.shape}, expected (..., {nv}) at the last state "
            f"or (..., {records}, {nv}) at all that are kept; along tangent directions where it is that of q"
        )
    at_last = np.zeros((*weights.shape[:-1], records, nv), dtype)
    at_last[..., -1, :] = weights
    return at_last


@dataclass(frozen=True)
class _Motion:
    """A motion that ``rollout`` has made.

    request   of it
    path      the states that were kept: q, v and activations, (..., records, n)
    driven    its other inputs, those of every step (..., steps, 1, core)
    batch     of all of them
    """

    request: Request
    path: Sequence[np.ndarray]
    driven: Mapping[str, np.ndarray]
    batch: tuple[int, ...]
    target: str

    @staticmethod
    def of(request: Request, path: Sequence[np.ndarray], target: str = "cpu") -> _Motion:
        """The motion of a request that was kept as ``path``; refused where shapes or numbers say that it is none."""
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

    def step_by_step(self) -> _Motion:
        """Each of its steps as a motion of its own: steps are the last axis of the batch."""
        path = [np.stack([x[..., :-1, :], x[..., 1:, :]], axis=-2) for x in self.path]
        ranks = {name: len(core) for name, core in self.request.step.shapes(self.request.mech)}
        driven = {name: np.expand_dims(x, x.ndim - ranks[name] - (name in PER_STEP)) for name, x in self.driven.items()}
        request = replace(self.request, steps=1)
        return _Motion(request, path, driven, (*self.batch, self.request.steps), self.target)

    def gradients(
        self, by: tuple[str, ...], weights: Sequence[np.ndarray], every: int
    ) -> tuple[dict[str, np.ndarray], np.ndarray]:
        """The gradients by these names, and (...): the first step of every motion, from 1, that is not the compiled
        one, 0 where all are; ``weights`` are what the function owes to each state that is kept, ``every`` so many
        steps."""
        request, dtype = self.request, self.path[0].dtype
        backward = _kernel(request.mech, request.step, by, dtype.name, self.target)
        batch = np.broadcast_shapes(self.batch, *(x.shape[:-2] for x in weights))
        sweep = _Sweep(backward, batch, request.steps, weights)
        if every == 1:
            left = self.first_left()
            sweep.over(0, self.path, self.driven, weights)
        else:
            left = np.zeros(self.batch, int)
            for record in reversed(range(request.steps // every)):
                between = self.once_more(record, every)
                own, _ = between.left()
                left = np.where(own > 0, record * every + own, left)
                sweep.over(
                    record * every,
                    between.path,
                    between.driven,
                    [_at_the_first(x[..., record, :], every) for x in weights],
                )
        found = {name: sweep.gradients[INITIAL.get(name, name)] for name in by}
        return {name: _unknown_before(name, x, left, x.ndim - backward.rank(name)) for name, x in found.items()}, left

    def first_left(self) -> np.ndarray:
        """(...): the number of the first step, from 1, that is not the compiled one, 0 where all are.  Motions that
        were made with other arguments are refused where their first or last step shows it, or, within constraints, the
        first that is not compiled."""
        left, doubtful = self.left()
        looked_at = {int(doubtful[doubtful > 0].min()) - 1} if doubtful.any() else set()
        if self.request.steps and not self._has_status:  # enough to tell another method, and other inputs mostly
            looked_at = {0, self.request.steps - 1}
        for record in looked_at:
            self.once_more(record, 1)
        return left

    def once_more(self, record: int, every: int) -> _Motion:
        """The steps from one kept state to the next, made again without warnings of where they start.  They must lead
        there but where steps are not the compiled ones."""
        some = slice(record * every, (record + 1) * every)
        driven = {name: x[_cut(some, 2 + PER_STEP[name])] if name in PER_STEP else x for name, x in self.driven.items()}
        given = {name: x[_cut(0, 1 + PER_STEP[name])] if name in PER_STEP else x for name, x in driven.items()}
        given |= {name: x[..., record, :] for name, x in zip(STATE, self.path, strict=False)}
        mech, step = self.request.mech, self.request.step
        request = Request(mech, step, every, given, {}, {})
        run = planned(request, Kept(every, 1, False), self.target)
        run.goes_on = True
        states, status = run.records()
        compared = (status == 0)[..., None]
        ends = []
        for x, kept in zip(states, self.path, strict=True):
            ends.append(np.where(compared | ~np.isfinite(x[..., -1, :]), kept[..., record + 1, :], np.nan))
        _check_arrival(states, ends, (record + 1) * every)
        return replace(self, request=request, path=states, driven=driven)

    def left(self) -> tuple[np.ndarray, np.ndarray]:
        """(...) each: the number of the first step, from 1, that the compiled one does not make, or not so that it can
        be relied on; and of the first that it does not make though it could be relied on.  0 where there is none."""
        states, mech, step = self.path, self.request.mech, self.request.step
        if states[0].shape[-2] < 2 or not self._has_status:
            return np.zeros(self.batch, int), np.zeros(self.batch, int)
        given = {**self.driven, **dict(zip(STATE, (x[..., :-1, :] for x in states), strict=False))}
        inputs = [_by_step(name, given[name], len(core)) for name, core in step.shapes(mech)]
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
        """(...): whether q, v, or activations if there are any, are not the same: lengths in units of the mechanism's
        size."""
        mech = self.request.mech
        own, slow = units(mech), SLOW * sizes_of(mech).rate
        scales = ((own.positions, 1.0), (own.velocities, slow), (1.0, 1.0))
        found = []
        for x, y, (unit, least) in zip(states, others, scales, strict=False):
            gap, size = (np.abs(z / unit).max(axis=-1, initial=0.0) for z in (x - y, y))
            found.append(gap > SAME[y.dtype.name] * (least + size))
        return np.logical_or.reduce(found)


def _by_step(name: str, x: np.ndarray, core: int) -> np.ndarray:
    """An input of steps, whose values have ``core`` axes, with an axis of steps behind those of the batch."""
    if name in STATE:
        return x
    cut = x.ndim - core
    if name in PER_STEP:
        return np.take(x, 0, axis=cut - 1)  # each step is a record of its own
    return x.reshape((*x.shape[:cut], 1, *x.shape[cut:]))


def _check_arrival(states: Sequence[np.ndarray], kept: Sequence[np.ndarray], step: int) -> None:
    """Refuse states that were kept of another motion."""
    for path, there in zip(states, kept, strict=True):
        found = path[..., -1, :]
        difference = np.abs(found - there)
        size = 1.0 + np.abs(there).max(axis=-1, keepdims=True, initial=0.0)
        if (difference > SAME[there.dtype.name] * size).any():  # what is not finite is not compared
            raise KernelError(
                f"rollout_vjp: q and v are not the motion that rollout makes with these arguments: at step {step} they "
                f"are off by {np.nanmax(difference):.2g}; give tau, dt, method, ctrl, feedback, wrenches, parameters "
                "and passive as rollout was given them"
            )


def _at_the_first(weight: np.ndarray, steps: int) -> np.ndarray:
    """The weights of the states of a segment: those inside it, and the last one, which belongs to the next, have
    none."""
    weights = np.zeros((*weight.shape[:-1], steps + 1, weight.shape[-1]), weight.dtype)
    weights[..., 0, :] = weight
    return weights
