"""Control inputs by actuator name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..mechanism import Mechanism, MechanismError, did_you_mean
from .resolved import no_controls
from .states import real_numbers


def unless_empty(mech: Mechanism, values: Any) -> Any:
    """The control inputs; None for empty ones (..., 0) if the mechanism has no actuators."""
    shape = (len(values),) if isinstance(values, list | tuple | Mapping) else getattr(values, "shape", ())
    return None if tuple(shape[-1:]) == (0,) and not mech.forces.actuator_names else values


def inputs_by_actuator(mech: Mechanism, inputs: Any) -> Any:
    """(..., n_ctrl): control inputs from {actuator: numbers (...)}, zero for the others; arrays are returned
    unchanged.
    """
    if not isinstance(inputs, Mapping):
        return inputs
    names = mech.forces.actuator_names
    for name in inputs:
        if name not in names:
            if not names:
                raise MechanismError(no_controls(mech, "ctrl"))
            hint = did_you_mean(name, names)
            raise MechanismError(f"ctrl: mechanism {mech.name!r} has no actuator {name!r} that acts: {hint}")
    columns = {name: real_numbers(f"ctrl of {name!r}", values) for name, values in inputs.items()}
    try:
        shape = np.broadcast_shapes(*(column.shape for column in columns.values()))
    except ValueError:
        listed = ", ".join(f"{name} {column.shape}" for name, column in columns.items())
        raise MechanismError(f"ctrl: the shapes of the inputs do not broadcast: {listed}") from None
    ctrl = np.zeros((*shape, len(names)))
    for name, column in columns.items():
        ctrl[..., names.index(name)] = column
    return ctrl
