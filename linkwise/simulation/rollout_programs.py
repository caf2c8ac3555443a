"""The programs of rollouts: one step, and a loop over time around it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.program import Array
from ..compiler.known_targets import is_long, load
from ..compiler.passes.scan import scan
from ..compiler.pipeline import trace_with_plan
from ..compiler.store import stored
from ..compiler.variants import shared_by_variants
from ..constraints.elimination_orders import fronts
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism
from .closed_rollouts import NONE_YET, SETTLED, TRUSTED, counting
from .momentum_rollouts import in_momenta, registers, without_momenta
from .steps import ACTIVATION, MOMENTA, PER_STEP, momentum_step, step_algorithm

NEXT = "_next"


def rollout_kernel(
    mech: Mechanism,
    method: str,
    acting: Acting,
    more: tuple[str, ...],
    parameters: tuple[str, ...],
    dtype: str,
    every_state: bool,
    vectors: int,
    target: str,
) -> tuple[Callable[..., None], tuple[Array, ...], dict[str, np.ndarray]]:
    """The compiled rollout, its inputs, and those of them that are numbers of this variant of a mechanism; from the
    mechanism's own store or made now.  ``more`` are the names of inputs that only some rollouts have."""

    with_velocities = every_state if in_momenta(method, target) else None

    def rollout(numbers: tuple[Any, ...] = ()) -> tuple[Callable[..., None], tuple[Array, ...]]:
        asked = mech, method, acting, more, (*numbers, *parameters)
        program = step_program(*asked, dtype, None, with_velocities)
        if not program.loops and is_long(program, target):
            program = step_program(*asked, dtype, None, with_velocities, stages=True)
        per_run = tuple(array.name for array in program.inputs if array.name in PER_STEP)
        carried = {array.name: array.name.removesuffix(NEXT) for array in program.outputs}
        last = (MOMENTA + NEXT,) if with_velocities else ()
        run = load(scan(program, carried, per_run, registers(program, vectors), last), dtype, target)
        return (run, program.inputs) if with_velocities is None else without_momenta(run, program.inputs)

    def shared(numbers: Any) -> Any:
        made = rollout((numbers,))
        return lambda variant, vector: (*made, {"numbers": vector})

    request = ("rollout", method, acting, more, parameters, target, with_velocities, vectors)
    return stored(
        mech,
        (*request, dtype),
        lambda: shared_by_variants(mech, request, dtype, lambda: (*rollout(), {}), shared),
    )


def step_program(
    mech: Mechanism,
    method: str,
    acting: Acting,
    more: tuple[str, ...],
    parameters: Sequence[Any],
    dtype: str,
    loops: bool | None = False,
    with_velocities: bool | None = None,
    counts: bool = True,
    stages: bool = False,
) -> Any:
    """The program of one step: from q, v and other inputs to the next q and v (and activations), and of closed
    mechanisms how far they can be trusted.  ``loops``: as for ``compile``; ``with_velocities``: steps from momenta to
    momenta, with or without v of the start, if it is not None; ``counts``: closed ones tell how far they can be
    trusted; ``stages``: like stages are one loop, except of closed ones, whose ends look at several stages."""
    fed_back, options = _fed_back(mech, acting), {}
    if with_velocities is None:
        algorithm = step_algorithm(mech, method, acting, more)
    else:
        algorithm, momenta = momentum_step(mech, method, acting, more, with_velocities), Array(MOMENTA, (mech.nv,))
        fed_back = [*fed_back, momenta] if with_velocities else [fed_back[0], momenta, *fed_back[2:]]
    if mech.loops:
        options = {"fronts": fronts(mech), "settled": SETTLED[dtype]}
    if mech.loops and not counts:
        state = algorithm.function
        first: Any = {"output": "state", "recursion": lambda *x, **more: state(*x, **more)[0], "ports": ()}
        algorithm = dataclasses.replace(algorithm, **first)
    elif mech.loops:
        fed_back.append(Array(TRUSTED, NONE_YET.shape))
        algorithm = dataclasses.replace(
            algorithm,
            inputs=(*algorithm.inputs, TRUSTED),
            output="result",
            recursion=counting(algorithm.function),
            ports=(),
            sizes={**algorithm.sizes, TRUSTED: NONE_YET.shape},
        )
    return _divided(
        trace_with_plan(algorithm, mech, parameters, options, loops, stages and not mech.loops).program,
        method,
        fed_back,
    )


def _fed_back(mech: Mechanism, acting: Acting) -> list[Array]:
    """What a step gives the next one: q, v and, if there are any, activations."""
    activation = [Array(ACTIVATION, (acting.n_activation,))] if acting.n_activation else []
    return [Array("q", (mech.nq,)), Array("v", (mech.nv,)), *activation]


def _divided(program: Any, method: str, fed_back: Sequence[Array]) -> Any:
    """The result of a step as the arrays that are fed back."""
    parts = tuple(Array(array.name + NEXT, array.shape) for array in fed_back)
    return dataclasses.replace(program.with_divided_output(parts), name=f"{method}_rollout")
