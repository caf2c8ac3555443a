"""Linear models of mechanisms with force elements: control inputs as inputs, activations of actuators as states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from ..compiler.store import stored
from ..dynamics.by_actuator import inputs_by_actuator, unless_empty
from ..dynamics.by_joint import state_by_joint
from ..dynamics.compliant_contact import contact_points
from ..dynamics.force_elements import Applied
from ..dynamics.passive import Passive
from ..dynamics.resolved import no_controls, resolved
from ..dynamics.states import checked_arrays, real_numbers
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import names_of
from .coordinates import coordinate_names, named_rows
from .local_form import LocalForm

CTRL = "ctrl"  # inputs="ctrl": all actuators
ACTIVATION = ".activation"  # behind the names of actuators, for their states


def away_from_contact(mech: Any, q: Any) -> Mechanism | None:
    """The mechanism without contacts if no active contact touches: such contacts exert no force nearby, and their
    derivatives are slow to compile. None if a contact touches or none is active.
    """
    if not isinstance(mech, Mechanism) or "contact" not in mech.forces.active:
        return None
    (at,) = checked_arrays(mech, q=mech.initial if q is None else state_by_joint(mech, {"q": q})["q"])
    gaps = contact_points(mech, at, np.zeros(mech.nv)).gap
    margins = [pair.law.margin if mech.forces.acts("contact", pair.name) else -np.inf for pair in mech.contact.parts]
    if not (gaps > margins).all():
        return None
    return stored(mech, away_from_contact, lambda: mech.with_acting(contact=False))


def driven(mech: Mechanism, passive: Any, ctrl: Any = None, activation: Any = None) -> Applied | None:
    """Forces under constant control inputs; None without force elements. Control inputs default to zero; activations
    of filters to their steady state, of integrators to zero.
    """
    if passive is not None and not isinstance(passive, Passive):
        raise TypeError(f"passive must be a linkwise.forces.Passive, got {type(passive).__name__}")
    elements = resolved(mech, passive, implicit_step=0.0)
    ctrl = inputs_by_actuator(mech, unless_empty(mech, ctrl))
    if elements is None:
        for name, value in ((CTRL, ctrl), ("activation", activation)):
            if value is not None:
                raise MechanismError(no_controls(mech, name))
        return None
    inputs = _numbers(mech, CTRL, ctrl, elements.n_ctrl, np.zeros(elements.n_ctrl))
    held = [
        np.clip(inputs[..., i], *actuator.ctrl_range or (-np.inf, np.inf))
        for i, actuator in enumerate(mech.forces.actuators)
    ]
    steady = [
        np.zeros_like(x) if actuator.dynamics == "integrator" else x
        for x, actuator in zip(held, mech.forces.actuators, strict=True)
        if actuator.has_activation
    ]
    rest = np.stack(steady, axis=-1) if steady else np.zeros(0)
    return Applied(elements, inputs, _numbers(mech, "activation", activation, elements.n_activation, rest))


def _numbers(mech: Mechanism, name: str, value: Any, size: int, otherwise: np.ndarray) -> np.ndarray:
    if value is None:
        return otherwise
    if not size:
        raise MechanismError(no_controls(mech, name))
    values = real_numbers(name, value)
    if values.shape[-1:] != (size,) or not np.isfinite(values).all():
        listed = ", ".join(
            actuator.name for actuator in mech.forces.actuators if name == CTRL or actuator.has_activation
        )
        raise MechanismError(f"{name} must be {size} finite numbers, for the actuators {listed}, not {value!r}")
    return values


class Inputs(NamedTuple):
    """Names of inputs, and how they act: joint forces (nv, k) and control inputs (n_ctrl, k) per unit of each."""

    names: tuple[str, ...]
    forces: np.ndarray
    controls: np.ndarray


def inputs_of(mech: Mechanism, wanted: Any, by_ctrl: bool) -> Inputs:
    """The requested inputs: joints or actuators; by default all actuators if ``by_ctrl``, else all joints."""
    n, m = mech.nv, mech.n_ctrl
    if wanted is None and not by_ctrl:
        return Inputs(coordinate_names(mech), np.eye(n), np.zeros((m, n)))
    if wanted is None or (isinstance(wanted, str) and wanted == CTRL):
        return Inputs(mech.forces.actuator_names, np.zeros((n, m)), np.eye(m))
    names, forces, controls = list[str](), [np.zeros((0, n))], [np.zeros((0, m))]
    for name in names_of(wanted):
        if name in mech.forces.actuator_names and name not in (*mech.joint_names, *coordinate_names(mech)):
            input_names: Sequence[str] = (name,)
            rows, inputs = np.zeros((1, n)), np.eye(m)[[mech.forces.actuator_names.index(name)]]
        else:
            input_names, rows = named_rows(mech, (name,), "inputs")
            inputs = np.zeros((len(rows), m))
        names += input_names
        forces.append(rows)
        controls.append(inputs)
    if len(set(names)) < len(names):
        raise MechanismError(f"inputs names a coordinate twice: {', '.join(map(repr, names))}")
    return Inputs(tuple(names), np.concatenate(forces).T, np.concatenate(controls).T)


def extended(model: LocalForm, acting: Applied | None, inputs: Inputs, q: np.ndarray, v: np.ndarray) -> LocalForm:
    """The model with activations as states and its inputs. ``model`` is driven by all joint forces and contains the
    forces that depend on q and v.
    """
    a, b, drift, tangent = model.a, model.b, model.drift, model.tangent
    if acting is None or not acting.elements.n_ctrl:
        return model._replace(b=b @ inputs.forces)
    n, more = v.shape[-1], acting.elements.n_activation
    slopes = acting.all_derivatives(q, v)
    by_state = slopes.by_q[..., n:, :] @ tangent[..., :n, :] + slopes.by_v[..., n:, :] @ tangent[..., n:, :]
    driving = b @ (inputs.forces + slopes.by_ctrl[..., :n, :] @ inputs.controls)
    matrix = np.concatenate(
        [
            np.concatenate([a, b @ slopes.by_activation[..., :n, :]], axis=-1),
            np.concatenate([by_state, slopes.by_activation[..., n:, :]], axis=-1),
        ],
        axis=-2,
    )
    batch = drift.shape[:-1]
    below = np.broadcast_to(slopes.by_ctrl[..., n:, :] @ inputs.controls, (*batch, more, len(inputs.names)))
    rates = np.broadcast_to(acting.forces_and_rates(q, v)[1], (*batch, more))
    return model._replace(
        a=matrix,
        b=np.concatenate([driving, below], axis=-2),
        drift=np.concatenate([drift, rates], axis=-1),
        tangent=np.concatenate([tangent, np.zeros((*tangent.shape[:-1], more))], axis=-1),
    )
