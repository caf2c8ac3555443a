"""Rollouts in momenta: steps hand on p, and nothing is solved for v that a step does not solve for itself.

The velocities of a state are known at the start of the step that leaves it: where every state is kept, those are the
records of v, one place earlier than the positions after the step, and only the last state is solved for alone.  Where
some are kept, momenta are recorded in their place and solved for together in the end.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.program import Array, Program
from ..compiler.pipeline import compile
from ..compiler.store import kernel_function, stored
from ..mechanism import Mechanism
from .steps import MOMENTA

IN_MOMENTA = "momentum_"  # how the names of methods in momenta begin
#: Operations: in momenta every stage waits for the one before, and steps this short for their own results; so many
#: vectors of states are then computed side by side, if there are so many states.
SHORT = {4: 600, 2: 2000}
MANY = {4: 64, 2: 16}


def in_momenta(method: str, target: str) -> bool:
    """Whether steps hand on momenta; on a GPU they hand on v."""
    return method.startswith(IN_MOMENTA) and target != "cuda"


def side_by_side(method: str, q: Any, v: Any) -> int:
    """How many vectors of states may be computed side by side, as far as it depends on how many states there are."""
    if not method.startswith(IN_MOMENTA):
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


def run_in_momenta(
    mech: Mechanism,
    run: Callable[..., None],
    named: Mapping[Array, np.ndarray],
    batch: tuple[int, ...],
    kept: Sequence[np.ndarray],
    found: Sequence[np.ndarray],
    every_state: bool,
    parameters: Mapping[Array, np.ndarray],
) -> None:
    """Steps from momenta to momenta, and the velocities of the states that are kept; ``parameters`` are numbers of the
    mechanism that differ from state to state."""
    arrays, (q, v, *_) = [*named.values()], kept
    p = _computed(mech, "joint_momenta", arrays[0], arrays[1], parameters)
    if every_state:
        last, of_starts = np.empty((*batch, mech.nv), v.dtype), found[1]
        run(p, *arrays, out=(q, of_starts[..., :-1, :], *kept[2:], last))
        of_starts[..., 0, :] = arrays[1]
        v[..., -1, :] = _computed(mech, "momentum_velocities", q[..., -1, :], last, parameters)
    else:
        run(p, *arrays, out=tuple(kept))
        each = {array: np.expand_dims(x, x.ndim - len(array.shape)) for array, x in parameters.items()}
        v[...] = _computed(mech, "momentum_velocities", q, v, each)


def _computed(
    mech: Mechanism, name: str, q: np.ndarray, x: np.ndarray, parameters: Mapping[Array, np.ndarray]
) -> np.ndarray:
    if not parameters:
        return kernel_function(mech, name)(q, x)
    names = tuple(array.name for array in parameters)
    key = (name, *names, q.dtype.name)
    kernel = stored(mech, key, lambda: compile(name, mech, q.dtype.name, parameters=names))
    return kernel(q, x, *parameters.values())
