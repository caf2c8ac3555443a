"""Control inputs that hold a configuration."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..constraints.decomposition import decompose
from ..constraints.force_units import mixes_units, velocity_units
from ..constraints.variations import State
from ..dynamics.force_elements import Applied
from ..mechanism import Mechanism, MechanismError
from .actuated import driven
from .balance import Balance, Search, balance


def holding_inputs(at: State, search: Search, passive: Any) -> tuple[np.ndarray, Balance]:
    """(n_ctrl,): the control inputs, within their ranges, that leave the least unbalanced; and what is left then.

    Where there is a choice, they are those of least norm; if some make forces and others torques, each is measured by
    the joint forces that it makes, where a force counts as a torque with the mechanism's length as lever arm.  Filters
    have the activations that their inputs lead to; integrators, at rest, no input."""
    from scipy.optimize import lsq_linear

    mech = at.mech
    if not mech.n_ctrl:
        raise MechanismError(
            f"solve_for='ctrl': no actuator of mechanism {mech.name!r} acts; solve_for='tau' finds joint forces"
        )
    start = _inside(mech)
    elements = driven(mech, passive, start)
    assert elements is not None
    loose = balance(at._replace(passive=elements), search)
    null = decompose(loose.jacobian).null
    by_inputs = search.units[:, None] * _force_per_input(mech, elements, at) / search.energy
    effect = np.ones(mech.n_ctrl)
    if mixes_units(mech, np.flatnonzero(by_inputs.any(axis=1))):
        effect = np.linalg.norm((velocity_units(mech) / search.units)[:, None] * by_inputs, axis=0)
        effect = np.where(effect > 0.0, effect, 1.0)
    driving = null.T @ by_inputs / effect
    free = np.array([actuator.dynamics != "integrator" for actuator in mech.forces.actuators])
    lower, upper = ((mech.forces.ctrl_range[free] - start[free, None]) * effect[free, None]).T
    needed = null.T @ loose.forces
    inputs = start.copy()
    inputs[~free] = 0.0
    if free.any():
        inputs[free] += lsq_linear(driving[:, free], needed, (lower, upper), tol=1e-14).x / effect[free]
    return inputs, balance(at._replace(passive=driven(mech, passive, inputs)), search)


def _inside(mech: Mechanism) -> np.ndarray:
    """Control inputs clipped to the ranges in which they change forces; zero if it is inside."""
    return np.array([_middle(low, high) for low, high in mech.forces.ctrl_range.tolist()])


def _middle(low: float, high: float) -> float:
    if low < 0.0 < high:
        return 0.0
    return (
        0.5 * (low + high) if math.isfinite(low) and math.isfinite(high) else (low + 1.0 if low >= 0.0 else high - 1.0)
    )


def _force_per_input(mech: Mechanism, elements: Applied, at: State) -> np.ndarray:
    """(nv, n_ctrl): joint forces per unit of each input, through the activations of filters."""
    slopes = elements.all_derivatives(at.q, np.zeros(mech.nv))
    through = np.zeros((elements.elements.n_activation, mech.n_ctrl))
    states = (i for i, actuator in enumerate(mech.forces.actuators) if actuator.has_activation)
    for row, i in enumerate(states):
        through[row, i] = mech.forces.actuators[i].dynamics != "integrator"
    return slopes.by_ctrl[: mech.nv] + slopes.by_activation[: mech.nv] @ through
