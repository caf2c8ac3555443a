"""Many motions at once: states and joint forces in, trajectories out, the integrator inside the compiled loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.ir.program import Array
from ..compiler.known_targets import rollout_targets
from ..compiler.runtime.arrays import NoDeviceError, UnreadableArrayError, is_foreign, on_device
from ..compiler.runtime.device_arrays import DeviceCall
from ..compiler.runtime.explanations import KernelError
from ..control.compiled import CompiledControl
from ..dynamics.by_actuator import unless_empty
from ..dynamics.by_joint import state_by_joint
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import ByJoint, Float64Array
from ..mechanics.algorithms.catalogue import ALGORITHMS
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism, one_of
from ..mechanism.elements import CONTACT_FRICTION
from ..motion.checks import (
    check_bodies,
    warn_of_limits_left_out,
    warn_of_starts_beyond_limits,
    warn_of_starts_in_penetration,
    with_largest,
)
from .closed_rollouts import (
    NONE_YET,
    TRUSTED,
    onto_loops,
    onto_loops_on_device,
    run_closed,
    run_closed_on_device,
)
from .functions import Held
from .held_rollouts import asking_controllers
from .momentum_rollouts import in_momenta, run_in_momenta, side_by_side
from .repeated_rollouts import given_values, key_of, remember, repeated
from .rollout_inputs import (
    acting_laws,
    by_name,
    controls_of,
    count,
    feedback_of,
    input_arrays,
    numbers_that_act,
    plain_arrays,
    precision,
    step_length,
    stride,
    with_controller,
)
from .rollout_programs import rollout_kernel
from .rollout_records import apart_from, look_at_records, no_place, results_of, returned, started, with_batch
from .steps import (
    ACTIVATION,
    method_in,
    require_without_drives,
    step_name,
    warn_of_long_steps,
)


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
) -> tuple[Float64Array, ...]:
    """Motion of many states at once, under all force elements (``forces="all"``): q (..., steps + 1, nq) and v (...,
    steps + 1, nv), the initial state first.

    q0, v0       (..., nq), (..., nv): initial states, their batches broadcast; None and {joint: ...} as in ``simulate``
    tau          joint forces: None, (nv,) the same at all times, (steps, nv) in every step, (..., steps, nv) for every
                 state too, (..., 1, nv) for every state the same at all times; {joint: number}; or ``lw.motion.held``
    dt           length of a step: a number, or one for each state; may be negative or 0; None: ``mech.timestep``
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
    ctrl         control inputs of ``mech.actuator_names`` in the shapes of tau, or {actuator: ...}; None for zero
    activation   (..., n_activation): initial activations of actuators with dynamics; None for zero; with
                 ``return_activation`` the result is (q, v, activation)
    coordinates  what methods are applied to beside q: "joint" (v), "momentum" (``lw.formulations.momenta``), "nu" or
                 "xi" (total)

    Batches are spread over threads.  All-float32 arguments are computed in float32.  Loops are kept closed: every step
    ends with ``simulate``'s projection, and its arcs pass singular positions that steps do not resolve.  Initial states
    must be assembled; a ``MechanismWarning`` tells of velocities that are projected, and of motions that arcs leave.
    """
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    values = given_values((q0, v0, tau, wrenches, ctrl, activation), feedback)
    usual = values and parameters is passive is None
    key = key_of(values, dt, steps, every, final_only, (method, target, coordinates)) if usual else None
    if known := repeated(mech, key):
        return known(mech, values, out, return_activation)
    require_without_drives(mech)
    method, target = method_in(mech, coordinates, method), one_of("target", target, rollout_targets())
    ALGORITHMS[step_name(mech, method)].check(mech)
    parameters, steps = by_name("parameters", parameters, "{'mass': masses}"), count("steps", steps, 0)
    acting = acting_laws(mech, passive, method, dt, tuple(parameters))
    ctrl = own_ctrl = unless_empty(mech, ctrl)  # references of controllers, behind it, do not decide on the precision
    acting, feedback, ctrl = with_controller(mech, acting, feedback, ctrl, dt, steps, bool(parameters))
    every, more = stride(steps, every, final_only), {} if wrenches is None else {"wrenches": wrenches}
    more |= feedback_of(mech, feedback) | controls_of(mech, acting, ctrl, activation)
    state = state_by_joint(mech, {"q": q0, "v": v0, "tau": tau})
    given = {**state, "dt": step_length(mech, dt), **more, **parameters}
    device = _device(target, given)
    target, given = ("cuda", device.seen) if device else (target, plain_arrays(given))
    asked = {**(feedback or {}), "q": q0, "v": v0, "tau": tau, "ctrl": own_ctrl, ACTIVATION: activation}
    dtype = precision({**given, "ctrl": own_ctrl}, asked)
    form = dtype, every == 1 and not final_only, side_by_side(method, given["q"], given["v"])
    kernel = partial(rollout_kernel, mech, method, acting, tuple(more), tuple(parameters), *form)
    counts, keep = (steps, every, final_only), partial(remember, mech, key, values) if key else None
    found = _motion(mech, method, acting, kernel, target, device, given, parameters, passive, dtype, counts, out, keep)
    return returned(found, return_activation)


def _motion(
    mech: Mechanism,
    method: str,
    acting: Acting,
    kernel: Callable[..., Any],
    target: str,
    device: DeviceCall | None,
    given: Mapping[str, Any],
    parameters: Mapping[str, Any],
    passive: Passive | None,
    dtype: str,
    counts: tuple[int, int, bool],
    out: Any,
    keep: Callable[..., None] | None,
) -> Any:
    """The records of a rollout; ``keep`` is told what later calls need not find out again."""
    steps, every, final_only = counts
    every_state = every == 1 and not final_only
    run, inputs, of_variant = kernel(target)
    given = {**given, **of_variant, TRUSTED: NONE_YET}
    named, batch = input_arrays(mech, inputs, given, np.dtype(dtype), steps, every)
    named = dict(zip(named, apart_from(out, named.values()), strict=True))
    varied = _prepared(mech, method, acting, named, parameters, passive, device)
    initial, shapes = _starts(mech, acting, named, (*batch,) if final_only else (*batch, steps // every + 1))
    work: Callable[..., None] = partial(_run, mech, method, acting, run, named, batch, varied, every, every_state)
    if device:
        work = partial(_run_there, device, mech, method, acting, run, partial(kernel, "cpu"), named, batch, varied)
    found = _recorded(device, work, initial, out, shapes, np.dtype(dtype), steps, final_only)
    if keep and device is None and not (mech.loops or in_momenta(method, target)):
        lengths = {"steps": steps, "every": every, "final_only": final_only}
        keep(run, named, batch=batch, shapes=shapes, method=method, acting=acting, **lengths)
    return found


def _run(
    mech: Mechanism,
    method: str,
    acting: Acting,
    run: Callable[..., None],
    named: Mapping[Array, np.ndarray],
    batch: tuple[int, ...],
    varied: Mapping[Array, np.ndarray],
    every: int,
    every_state: bool,
    kept: list[np.ndarray],
    found: Sequence[np.ndarray],
) -> None:
    """Run a rollout on the CPU."""
    if mech.loops:
        run_closed(mech, method, acting, run, named, with_batch(named, batch), kept, bool(varied))
    else:
        with np.errstate(all="ignore"):  # what is lost is told below, once
            if in_momenta(method, "cpu"):
                run_in_momenta(mech, run, named, batch, kept, found, every_state, _of_bodies(mech, varied))
            else:
                run(*named.values(), out=tuple(kept))
    judged = not any(array.name.endswith(CONTACT_FRICTION) for array in varied)
    look_at_records(mech, method, acting, named, batch, kept, every, judged)


def _prepared(
    mech: Mechanism,
    method: str,
    acting: Acting,
    arrays: dict[Array, Any],
    parameters: Mapping[str, Any],
    passive: Passive | None,
    device: DeviceCall | None,
) -> dict[Array, Any]:
    """Refuse numbers that no body has, warn of steps that are too long, of starts beyond limits or in penetration and
    of limits that ``passive`` leaves out, and close the loops of the initial states.  Returns the numbers of the
    mechanism that differ from state to state."""
    warn_of_limits_left_out(mech, passive)
    dt = next(x for array, x in arrays.items() if array.name == "dt")
    varied = {array: x for array, x in arrays.items() if array.name in parameters}
    for array, values in varied.items():
        check_bodies(mech, array.name, values)
    bodies = _of_bodies(mech, varied)
    acts = {array.name: x for array, x in varied.items() if array not in bodies}
    if isinstance(dt, np.ndarray):  # on a GPU they are taken as they are
        warn_of_long_steps(mech, method, with_largest(mech, acting, acts) if acts else acting, dt)
        start = next(iter(arrays.values()))
        if passive is None:
            warn_of_starts_beyond_limits(mech, start)
        warn_of_starts_in_penetration(mech, start)
    if mech.loops:
        close = partial(onto_loops_on_device, device) if device else onto_loops
        q, v, *_ = arrays
        poses = {array.name: x for array, x in bodies.items()}
        arrays[q], arrays[v] = close(mech, arrays[q], arrays[v], poses)
    return varied


def _of_bodies(mech: Mechanism, varied: Mapping[Array, Any]) -> dict[Array, Any]:
    """Those numbers that are of bodies, not of what acts on them."""
    return {array: x for array, x in varied.items() if not numbers_that_act(mech, (array.name,))}


def _starts(
    mech: Mechanism, acting: Acting, arrays: Mapping[Array, Any], axes: tuple[int, ...]
) -> tuple[list[Any], list[tuple[int, ...]]]:
    """Initial q, v and, if there are any, activations; and the shapes of their records."""
    initial = [x for array, x in arrays.items() if array.name in ("q", "v", ACTIVATION)]
    return initial, [(*axes, size) for size in (mech.nq, mech.nv, acting.n_activation)[: len(initial)]]


def _recorded(
    device: DeviceCall | None,
    work: Callable[..., None],
    initial: Sequence[Any],
    out: Any,
    shapes: list[tuple[int, ...]],
    dtype: np.dtype,
    steps: int,
    final_only: bool,
) -> Any:
    """Arrays with the initial states and what ``work`` writes after them; on a GPU those of the caller's library."""
    found: Any
    if device is None:
        found = results_of(out, shapes, dtype)
        kept = started(initial, found, steps, final_only)
        if steps:
            work(kept, found)
        return found
    with device.stream():
        found = device.results(out, shapes, dtype)
        if found is None:
            raise KernelError(no_place(shapes, dtype, " on the device"))
        kept = started(device.copied(initial), found, steps, final_only)
        if steps:
            work(kept)
        return device.delivered(found, out)


def _run_there(
    device: DeviceCall,
    mech: Mechanism,
    method: str,
    acting: Acting,
    run: Callable[..., None],
    on_cpu: Callable[[], Any],
    named: Mapping[Array, Any],
    batch: tuple[int, ...],
    varied: Mapping[Array, Any],
    kept: list[Any],
) -> None:
    """The rollout itself; ``on_cpu`` makes the same for the CPU, where closed mechanisms need it."""
    arrays = dict(zip(named, device.copied([*named.values()]), strict=True))
    if mech.loops:
        whole = with_batch(named, batch)
        run_closed_on_device(device, mech, method, acting, run, on_cpu, arrays, whole, kept, bool(varied))
    else:
        run(*arrays.values(), out=tuple(kept))


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
