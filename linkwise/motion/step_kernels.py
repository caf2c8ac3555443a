"""One step of ``rollout`` as a kernel, for time loops of other frameworks such as JAX."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile
from ..compiler.runtime.explanations import KernelError
from ..compiler.store import stored
from ..dynamics.actuation import actuated_coordinates
from ..dynamics.by_actuator import inputs_by_actuator
from ..dynamics.by_joint import state_by_joint
from ..dynamics.force_elements import ALL, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import STATE
from ..dynamics.trees import neutral
from ..mechanism import Mechanism, MechanismError, one_of
from ..mechanism.quaternions import with_unit_quaternions
from .arguments import CONFIGURATIONS, GAINS, acting_laws, feedback_by_joint, misfit, step_length, stride
from .checks import check_bodies
from .step import ACTIVATION, ACTIVE, DRIVE, FEEDBACK, GAIN, PER_STEP, SETTLED, is_reliable, step_of

__all__ = [
    "ACTIVATION",
    "ACTIVE",
    "DRIVE",
    "arrays_by_name",
    "check_numbers",
    "optional_inputs",
    "is_reliable",
    "step_inputs",
    "step_kernel",
    "step_length",
    "stride",
]

MORE = ("wrenches", "feedback", GAIN, ACTIVE)


def step_kernel(
    mech: Mechanism,
    dt: Any = None,
    method: str | None = None,
    inputs: Sequence[str] = (),
    parameters: Sequence[str] = (),
    passive: Passive | None = None,
    coordinates: str = "joint",
    dtype: str = "float64",
    target: str = "cpu",
    forces: Any = ALL,
) -> Kernel:
    """One step of ``rollout`` as a kernel from q, v, tau and dt to the next state [q, v] (nq + nv,).

    dt           the length of steps, for which contacts are softened; it is an input all the same
    inputs       "wrenches", "feedback" (inputs target, kp, kd), "gain" besides, "active" (constraint schedule), as
                 ``rollout`` takes them
    parameters   names of parameters of the mechanism that are inputs, as ``rollout`` takes them
    forces, passive, coordinates, method   as for ``rollout``: all force elements act (``forces="all"``)
    dtype, target   as for ``compile``

    With actuators it also takes ctrl, and activation if they have dynamics; the result then ends with activations.
    With drives it takes their prescribed motion at the moments of the step (``lw.motion.drive_values``).  Constrained
    mechanisms have three results: the state with closed loops, its reliability, which must be above 1, and the squared
    number of steps to the next singular position.
    """
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    names, bare = tuple(inputs), step_of(mech, method, coordinates, parameters=parameters)
    for name in names:
        one_of("input of a step", name, MORE)
    mech = mech.constraints.structure
    if ACTIVE in names and not mech.loops:
        raise MechanismError(f"step_kernel: mechanism {mech.name!r} has no constraints, which 'active' switches")
    acting = acting_laws(mech, passive, bare, 0.0 if dt is None else dt)
    more = ("wrenches",) * ("wrenches" in names) + FEEDBACK * bool({"feedback", GAIN} & {*names})
    more += (GAIN,) * (GAIN in names) + ("ctrl",) * bool(acting.n_ctrl) + (ACTIVATION,) * bool(acting.n_activation)
    more += (DRIVE,) * bool(mech.constraints.driven) + (ACTIVE,) * (ACTIVE in names)
    step = replace(bare, acting=acting, inputs=more)
    options: dict[str, Any] = {"settled": SETTLED[dtype]} if step.has_status(mech) else {}

    def make() -> Kernel:
        made = compile(step.algorithm(mech), mech, dtype, target, parameters=step.parameters, **options)
        recipe = (mech, dt, method, names, tuple(parameters), passive, coordinates, dtype, target)
        return made.made_by(step_kernel, *recipe)

    return stored(mech, ("step", step, dtype, target), make)


def arrays_by_name(mech: Mechanism, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Arrays for those inputs of a rollout that are given by joint or actuator name; other inputs are left out.  For
    constrained mechanisms a missing q is included, because its loops must be closed."""
    state = {name: arguments.get(name) for name in ("q", "v", "tau")}
    arrays = {name: x for name, x in state_by_joint(mech, state).items() if x is not state[name]}
    for name in (*FEEDBACK, "ctrl"):
        if isinstance(arguments.get(name), Mapping):
            arrays[name] = (
                inputs_by_actuator(mech, arguments[name])
                if name == "ctrl"
                else feedback_by_joint(mech, name, arguments[name])
            )
    return arrays


class StepInput(NamedTuple):
    """An input of steps: (..., *core) with ``axis`` None, or (..., steps, *core) with steps along ``axis``."""

    value: Any
    axis: int | None


def step_inputs(
    mech: Mechanism,
    shapes: Mapping[str, tuple[int, ...]],
    arguments: Mapping[str, Any],
    steps: int,
    array: Callable[[str, Any], Any],
) -> dict[str, StepInput]:
    """Inputs of steps, in the order of ``shapes``, the core shapes of the kernel's inputs; raises on a misfit.

    array   converts a named value to an array of the framework, in one precision
    """
    unknown = [name for name in arguments if name not in shapes]
    if unknown:
        raise KernelError(
            f"rollout: nothing takes {', '.join(unknown)} in steps of mechanism {mech.name!r}, which take "
            f"{', '.join(shapes)}"
        )
    inputs = {}
    for name, core in shapes.items():
        x = array(name, arguments[name] if name in arguments else _left_out(mech, name, core))
        if name in GAINS and x.ndim == 0:
            x = x * array(name, actuated_coordinates(mech, mech.initial, None))
        lead = x.ndim - len(core)
        axis = lead - 1 if name in PER_STEP and lead > 0 else None
        if lead < 0 or tuple(x.shape[lead:]) != core or (axis is not None and x.shape[axis] not in (1, steps)):
            raise KernelError(misfit(name, core, tuple(x.shape), steps if name in PER_STEP else None))
        inputs[name] = StepInput(x, axis)
    return inputs


def optional_inputs(arguments: Collection[str]) -> tuple[str, ...]:
    """The ``inputs`` of ``step_kernel`` that arguments of these names need."""
    names = {*arguments} | ({"feedback"} if {*FEEDBACK} & {*arguments} else set())
    return tuple(name for name in MORE if name in names)


def _left_out(mech: Mechanism, name: str, shape: tuple[int, ...]) -> np.ndarray:
    """Default value of an input of a step."""
    if name in STATE:
        return STATE[name].otherwise(mech)
    if name == ACTIVE:
        return np.ones(shape)
    return neutral(mech) if name == "target" else np.zeros(shape)


def check_numbers(mech: Mechanism, name: str, values: np.ndarray) -> None:
    """Refuse quaternions far from unit length, and impossible masses and inertias."""
    if name in CONFIGURATIONS:
        with_unit_quaternions(mech, CONFIGURATIONS[name], values)
    check_bodies(mech, name, values)
