"""Control inputs that callers give by the names of actuators."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..mechanism import Mechanism, MechanismError, did_you_mean
from .resolved import no_controls
from .states import real_numbers


def unless_empty(mech: Mechanism, given: Any) -> Any:
    """Control inputs as they are given, but None for those (..., 0) of a mechanism whose actuators are none: that is
    what code makes which counts them."""
    shape = (len(given),) if isinstance(given, list | tuple | Mapping) else getattr(given, "shape", ())
    return None if tuple(shape[-1:]) == (0,) and not mech.forces.actuator_names else given


def inputs_by_actuator(mech: Mechanism, given: Any) -> Any:
    """(..., n_ctrl): control inputs from {actuator: numbers (...)}, those that are not named zero; anything else as it
    is."""
    if not isinstance(given, Mapping):
        return given
    names = mech.forces.actuator_names
    for name in given:
        if name not in names:
            if not names:
                raise MechanismError(no_controls(mech, "ctrl"))
            hint = did_you_mean(name, names)
            raise MechanismError(f"ctrl: mechanism {mech.name!r} has no actuator {name!r} that acts: {hint}")
    columns = {name: real_numbers(f"ctrl of {name!r}", values) for name, values in given.items()}
    try:
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
    except ValueError:
        listed = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
        raise MechanismError(f"ctrl: the shapes of the inputs do not broadcast: {listed}") from None
    found = np.zeros((*shape, len(names)))
    for name, column in columns.items():
        found[..., names.index(name)] = column
    return found
