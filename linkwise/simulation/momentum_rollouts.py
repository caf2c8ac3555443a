"""What rollouts in momenta hand on from step to step besides q and v: p, and dp/dt without joint forces.

Known at the end of a step together with v, they spare the next one a look at its first configuration; which is made
sooner than they are written where joints are few.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from ..compiler.ir.looped import AnyProgram
from ..compiler.ir.program import Array
from ..compiler.pipeline import compile
from ..compiler.store import kernel_function, stored
from ..mechanism import Mechanism
from .closed_rollouts import over_and_over
from .steps import CARRIED

MOMENTA = "momentum_"  # how the names of methods in momenta begin
START = "momenta_and_free_rates"
FEW = 8  # degrees of freedom: up to here nothing is handed on
#: Operations: in momenta every stage waits for the one before, and steps this short for their own results.
SHORT = 1200


def hands_on(mech: Mechanism, method: str, target: str) -> bool:
    """Whether steps do."""
    return method.startswith(MOMENTA) and mech.nv > FEW and target != "cuda"  # there it would all be written


def registers(method: str, program: AnyProgram) -> int:
    """How many vector registers a value takes (``Recurrence``)."""
    return 2 if method.startswith(MOMENTA) and program.size < SHORT else 1


def initial_momenta(
    mech: Mechanism, arrays: Mapping[Array, np.ndarray], parameters: Mapping[str, np.ndarray]
) -> dict[Array, np.ndarray]:
    """What the first step is handed, if it is; ``parameters`` are numbers of the mechanism that differ from state to
    state."""
    given = {array.name: (array, values) for array, values in arrays.items()}
    if CARRIED[0] not in given:
        return {}
    (_, q), (_, v) = given["q"], given["v"]
    if parameters:
        key = (START, *parameters, q.dtype.name)
        kernel = stored(mech, key, lambda: compile(START, mech, q.dtype.name, parameters=tuple(parameters)))
        found = kernel(q, v, *parameters.values())
    else:
        found = kernel_function(mech, START, q)(q, v)
    return {given[name][0]: values for name, values in zip(CARRIED, found, strict=True)}


def scratch(arrays: Mapping[Array, np.ndarray], batch: tuple[int, ...], records: Sequence[np.ndarray]) -> list[Any]:
    """Where steps write what they hand on, the same place for all records."""
    count, dtype = records[0].shape[-2], records[0].dtype
    carried = (array for array in arrays if array.name in CARRIED)
    return [over_and_over(np.empty((*batch, *array.shape), dtype), count) for array in carried]
