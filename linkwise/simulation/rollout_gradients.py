"""Gradients through rollouts: the derivative of any function of the states by what the motion was started and driven
with, in one sweep backwards over the steps.

A step takes (q, v, tau, ...) to the next state.  Backwards it takes the gradient by the next state to that by its own
inputs: the transposed derivative of the step, whose program is differentiated in reverse and run over time
of its own, which is given the states of the motion in reversed order.  Gradients by configurations are along tangent
directions, nv numbers each.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import accumulate, pairwise, zip_longest
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import ArrayLike

from ..compiler.ir.program import Array, Program
from ..compiler.known_targets import load
from ..compiler.passes.differentiate import Directions, differentiate
from ..compiler.passes.scan import scan
from ..compiler.pipeline import tangent_basis
from ..compiler.runtime.explanations import KernelError
from ..compiler.store import stored
from ..compiler.trace import inline, trace
from ..dynamics.by_actuator import unless_empty
from ..dynamics.by_joint import state_by_joint
from ..dynamics.derivatives import tangent_rows
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import Float64Array
from ..mechanics.algorithms.catalogue import ALGORITHMS
from ..mechanics.elements.law import Acting
from ..mechanism import LimitWarning, Mechanism, MechanismError, PenetrationWarning, one_of
from ..motion.checks import check_bodies
from .compiled_steps import SAME, STATE, CompiledSteps
from .rollout_inputs import (
    acting_laws,
    by_name,
    controls_of,
    count,
    feedback_of,
    input_arrays,
    plain_arrays,
    precision,
    step_length,
)
from .rollout_programs import NEXT, step_program
from .rollouts import rollout
from .steps import ACTIVATION, GAIN, PER_STEP, method_in, require_without_drives, step_name

INITIAL = {"q0": "q", "v0": "v"}  # what callers know as initial states -> inputs of a step
HERE, WEIGHT, GRADIENT = "_here", "_weight", "_gradient"  # ends of names of inputs: see ``_backward_step``
TARGETS = ("cpu", "numpy")


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
) -> dict[str, Float64Array]:
    """Gradient of a function of the motion that ``rollout`` gave by what that started from and was driven with.

    q, v         what ``rollout`` returned, (..., steps + 1, nq) and (..., steps + 1, nv); or checkpoints of it, made
                 with ``every=k``: (..., steps // k + 1, nq).  The states between them are then computed again, which
                 needs less memory and takes as long as one more rollout
    tau, dt, steps, method, wrenches, feedback, parameters, forces, passive, ctrl, coordinates   as ``rollout`` was
                 given them
    cotangent    (w_q, w_v), each (..., nv): how the function changes with the last state, along tangent directions of
                 q and by v; or, if not of that shape, (..., steps // k + 1, nv): with every state that is kept; None
                 for not at all; with a third of n_activation numbers where actuators have states of their own
    activation   what ``rollout(..., return_activation=True)`` returned third, where they have
    wrt          the names of what to differentiate by: "q0", "v0", "tau", "dt", "wrenches", "target", "kp", "kd",
                 "gain", "ctrl", "activation" (the initial one), and those of ``parameters``; without it q0, v0, tau,
                 ctrl if given, activation if there is one, and all ``parameters``

    A dictionary by these names, of (..., nv) for "q0" (along tangent directions), "v0" and gains, (..., steps, nv) for
    "tau" and "target" (of each step, whatever shape was given; along tangent directions), likewise for "ctrl", (...,
    steps, n_links, 6) for "wrenches", (..., n_activation) for "activation", (...) for "dt", and the shapes of
    parameters.  Leading axes are those of the whole batch: the gradient by what states share is the sum over them.

    One sweep backwards, at about three times the cost of the rollout, however many numbers there are to differentiate
    by.  Derivatives are those of the discrete steps, exact but for rounding.  At kinks they are those of the side on
    which nothing changes: a control input at its bound, or beyond, has none, however the function would change if it
    went back inside.  A motion that was made with other arguments is refused where its first or last step tells.
    Loops: gradients by q0 and v0 count what the projection onto loops does to any change of them; motions that pass
    singular positions, where steps are not the compiled ones, are refused.
    """
    require_without_drives(mech)
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    of_step, target = method_in(mech, coordinates, method), one_of("target", target, TARGETS)
    ALGORITHMS[step_name(mech, of_step)].check(mech)
    parameters, ctrl = by_name("parameters", parameters, "{'mass': masses}"), unless_empty(mech, ctrl)
    steps, acting = count("steps", steps, 0), acting_laws(mech, passive, of_step, dt, tuple(parameters))
    sizes, more = _state_sizes(mech, acting, activation), {} if wrenches is None else {"wrenches": wrenches}
    more |= feedback_of(mech, feedback) | controls_of(mech, acting, ctrl, activation)
    by = _asked_for(wrt, (*more, *parameters), (*_driven(ctrl, activation), *parameters))
    forces = state_by_joint(mech, {"tau": tau})
    given = plain_arrays({"q": q, "v": v, **forces, "dt": step_length(mech, dt), **more, **parameters})
    dtype = np.dtype(precision(given, {**(feedback or {}), "tau": tau, "ctrl": ctrl}))
    path = [_kept(name, given[name], size, dtype) for name, size in sizes.items()]
    every = _stride(path, steps)
    backward = _kernel(mech, of_step, acting, tuple(more), tuple(parameters), by, dtype.name, target)
    given |= {name: states[..., 0, :] for name, states in zip(sizes, path, strict=True)}
    arrays, batch = input_arrays(mech, backward.given, given, dtype, steps, 1)
    driven = {array.name: x for array, x in arrays.items()}
    for name in parameters:
        check_bodies(mech, name, driven[name])
    weights = _all_weights(cotangent, sizes | {"q": mech.nv}, path[0].shape[:-1], dtype)
    sweep = _Sweep(backward, np.broadcast_shapes(batch, *(x.shape[:-2] for x in weights)), steps, weights)
    once = CompiledSteps(mech, of_step, acting, tuple(more), tuple(parameters))
    between = partial(_between, mech, method, parameters, target, passive, coordinates)
    if every == 1:
        for record in {0, steps - 1} if steps else ():  # enough to tell another method, and other inputs mostly
            _once_more(between, record, 1, path, driven)
        once.verify(0, path, driven)
        sweep.over(0, path, driven, weights)
    else:
        for record in reversed(range(steps // every)):
            inside, states = _once_more(between, record, every, path, driven)
            once.verify(record * every, states, inside)
            sweep.over(record * every, states, inside, [_at_the_first(x[..., record, :], every) for x in weights])
    return {name: sweep.gradients[INITIAL.get(name, name)] for name in by}


# -- the sweep ----------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Backward:
    """A compiled sweep backwards: ``run(*inputs, out=outputs)``, the arrays of its program, and those of its inputs
    that steps are given."""

    run: Callable[..., None]
    program: Program
    given: tuple[Array, ...]


class _Sweep:
    """Gradients on their way from the last state to the first, over one run of steps after the other."""

    def __init__(self, backward: _Backward, batch: tuple[int, ...], steps: int, weights: Sequence[np.ndarray]):
        self.backward, self.batch = backward, batch
        self.gradients: dict[str, np.ndarray] = {}
        for array in backward.program.outputs:
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
        given = dict(driven)
        for name, path, weight in zip(STATE, states, weights, strict=False):
            given[name], given[name + HERE] = path[..., :-1, None, :], weight[..., :-1, None, :]
        inputs, outputs = [], []
        for array in self.backward.program.inputs:
            if array.name in given:
                x = given[array.name]
                inputs.append(_reversed(x, 2 + len(array.shape)) if _is_per_run(array.name) else x)
            elif _plain_name(array.name) in PER_STEP:  # a place to return to, never read
                inputs.append(np.zeros(array.shape, weights[0].dtype))
            else:
                inputs.append(self.gradients[_plain_name(array.name)])
        for array in self.backward.program.outputs:
            name = _plain_name(array.name)
            if name in PER_STEP:
                steps = self.gradients[name][_cut(slice(first, first + count), 1 + len(array.shape))]
                outputs.append(_reversed(steps, 1 + len(array.shape)))
            else:
                self.gradients[name] = np.empty_like(self.gradients[name])
                outputs.append(_one_place(self.gradients[name], count, len(array.shape)))
        self.backward.run(*inputs, out=tuple(outputs))


def _plain_name(name: str) -> str:
    """What a gradient is by, from the name of an input or output of the backward step."""
    return name.removesuffix(NEXT).removesuffix(WEIGHT).removesuffix(GRADIENT)


def _is_per_run(name: str) -> bool:
    return name in (*STATE, *PER_STEP) or name.endswith(HERE)


def _reversed(x: np.ndarray, axis: int) -> np.ndarray:
    """The array backwards along an axis, counted from the end."""
    return x[_cut(slice(None, None, -1), axis)]


def _cut(part: slice, axis: int) -> tuple[Any, ...]:
    """The index of a part of an axis, counted from the end."""
    return (..., part, *(slice(None),) * (axis - 1))


def _one_place(last: np.ndarray, records: int, core: int) -> np.ndarray:
    """(..., records, core): records that are all written to the same place (..., core), where the last stays."""
    cut = last.ndim - core
    shape = (*last.shape[:cut], records, *last.shape[cut:])
    return as_strided(last, shape, (*last.strides[:cut], 0, *last.strides[cut:]))


# -- the program --------------------------------------------------------------------------------------------


def _kernel(
    mech: Mechanism,
    method: str,
    acting: Acting,
    more: tuple[str, ...],
    parameters: tuple[str, ...],
    by: tuple[str, ...],
    dtype: str,
    target: str,
) -> _Backward:
    """The compiled sweep, from the mechanism's own store or made now."""

    def make() -> _Backward:
        step = step_program(mech, method, acting, more, parameters, dtype, counts=False)
        program = _backward_step(mech, step, [INITIAL.get(name, name) for name in by])
        carried = {array.name: array.name.removesuffix(NEXT) for array in program.outputs}
        per_run = tuple(array.name for array in program.inputs if _is_per_run(array.name))
        return _Backward(load(scan(program, carried, per_run), dtype, target), program, step.inputs)

    return stored(mech, ("rollout_vjp", method, acting, more, parameters, by, dtype, target), make)


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


def _state_sizes(mech: Mechanism, acting: Acting, activation: Any) -> dict[str, int]:
    """What a state consists of, and how many numbers of each."""
    if not acting.n_activation:
        return {"q": mech.nq, "v": mech.nv}
    if activation is None:
        names = ", ".join(one.name for one in mech.actuators if one.has_activation)
        raise MechanismError(
            f"{names} of mechanism {mech.name!r} have states of their own: give rollout_vjp the activation that "
            "rollout(..., return_activation=True) returned third"
        )
    return {"q": mech.nq, "v": mech.nv, ACTIVATION: acting.n_activation}


def _driven(ctrl: Any, activation: Any) -> tuple[str, ...]:
    return tuple(name for name, given in (("ctrl", ctrl), (ACTIVATION, activation)) if given is not None)


def _asked_for(
    wrt: str | Sequence[str] | None, inputs: tuple[str, ...], parameters: tuple[str, ...]
) -> tuple[str, ...]:
    if wrt is None:
        return (*INITIAL, "tau", *parameters)
    names = (wrt,) if isinstance(wrt, str) else tuple(wrt)
    known = (*INITIAL, "tau", "dt", *inputs)
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


def _all_weights(
    cotangent: Any, sizes: Mapping[str, int], states: tuple[int, ...], dtype: np.dtype
) -> list[np.ndarray]:
    """What the function owes to each part of the states that are kept, (..., records) of them."""
    return [_weights(x, name, sizes[name], states, dtype) for name, x in zip_longest(sizes, cotangent)]


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


def _segment(driven: Mapping[str, np.ndarray], first: int, count: int) -> dict[str, np.ndarray]:
    """The inputs of ``count`` steps."""
    parts = dict(driven)
    for name in PER_STEP:
        if name in parts:
            parts[name] = parts[name][_cut(slice(first, first + count), 4 if name == "wrenches" else 3)]
    return parts


def _once_more(
    between: Callable[..., Sequence[np.ndarray]],
    record: int,
    every: int,
    path: Sequence[np.ndarray],
    driven: Mapping[str, np.ndarray],
) -> tuple[dict[str, np.ndarray], Sequence[np.ndarray]]:
    """What drives from one kept state to the next, and the states on the way, which must lead there."""
    inside = _segment(driven, record * every, every)
    states = between([x[..., record, :] for x in path], inside, every)
    _check_arrival(states, [x[..., record + 1, :] for x in path], (record + 1) * every)
    return inside, states


def _between(
    mech: Mechanism,
    method: str | None,
    parameters: Mapping[str, Any],
    target: str,
    passive: Passive | None,
    coordinates: str,
    start: Sequence[np.ndarray],
    driven: Mapping[str, np.ndarray],
    steps: int,
) -> Sequence[np.ndarray]:
    """The states from one checkpoint to the next."""
    (q, v, *activation), tau, dt = start, driven["tau"][..., 0, :], driven["dt"]
    wrenches = driven["wrenches"][..., 0, :, :] if "wrenches" in driven else None
    feedback = None
    if "target" in driven:
        feedback = {"target": driven["target"][..., 0, :], "kp": driven["kp"], "kd": driven["kd"]}
        feedback |= {GAIN: driven[GAIN]} if GAIN in driven else {}
    options: dict[str, Any] = {"parameters": {name: driven[name] for name in parameters}, "passive": passive}
    options["coordinates"] = coordinates
    if "ctrl" in driven:
        options["ctrl"] = driven["ctrl"][..., 0, :]
    if activation:
        options |= {"activation": activation[0], "return_activation": True}
    with warnings.catch_warnings():
        for kind in (LimitWarning, PenetrationWarning):  # of where the motion started
            warnings.simplefilter("ignore", kind)
        return rollout(
            mech, q, v, tau, dt, steps, method, wrenches=wrenches, feedback=feedback, target=target, **options
        )


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
