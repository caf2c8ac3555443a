"""States as they are given to a front door: arrays of numbers with the right shapes and one batch shape."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .mechanism import Mechanism, MechanismError, require_mechanism


def state_arrays(mech: Mechanism, given: Mapping[str, Any], finite: bool = True) -> dict[str, np.ndarray]:
    """The values given by name as float64 arrays with the batch shape that all broadcast to.

    given    "q" (..., nq), "v", "a" and "tau" (..., nv), "wrenches" (..., n_links, 6); "q0" and "v0" likewise
    finite   refuse what is not finite

    A ``MechanismError`` names the array that is wrong and what it should be.
    """
    require_mechanism(mech)
    rates = (mech.nv,)
    cores = {"q": (mech.nq,), "v": rates, "a": rates, "tau": rates, "wrenches": (mech.n_links, 6)}
    arrays, batches = {}, {}
    for name, values in given.items():
        core, array = cores[name.removesuffix("0")], _numbers(name, values)
        lead = array.ndim - len(core)
        if lead < 0 or array.shape[lead:] != core:
            expected = ", ".join(map(str, core))
            raise MechanismError(
                f"{name} has shape {array.shape}, expected (..., {expected}) for mechanism {mech.name!r}"
            )
        if finite and not np.isfinite(array).all():
            raise MechanismError(f"{name} has entries that are not finite: {array}")
        arrays[name], batches[name] = array, array.shape[:lead]
    try:
        batch = np.broadcast_shapes(*batches.values())
    except ValueError:
        listed = ", ".join(f"{name} {one}" for name, one in batches.items())
        raise MechanismError(f"the batch shapes do not broadcast: {listed}") from None
    return {
        name: array if batches[name] == batch else np.broadcast_to(array, batch + array.shape[len(batches[name]) :])
        for name, array in arrays.items()
    }


def _numbers(name: str, values: Any) -> np.ndarray:
    try:
        array = np.asarray(values)
    except ValueError as ragged:
        raise MechanismError(f"{name} is no array: {ragged}") from None
    if not np.can_cast(array.dtype, np.float64):
        raise MechanismError(f"{name} has dtype {array.dtype}, but real numbers are needed")
    return array.astype(np.float64, copy=False)
