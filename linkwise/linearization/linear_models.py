"""Linear models of trees and closed mechanisms at any state (spencer2004 Chapter 4)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..constraints import AssemblyError, assemble, degrees_of_freedom, generic_rank
from ..constraints.derivatives import rate_jacobian_at
from ..constraints.variations import State, Variations, state_of, variations
from ..dynamics.by_actuator import unless_empty
from ..dynamics.force_elements import ALL, NONE, applied, chosen_forces
from ..dynamics.passive import Passive
from ..dynamics.states import ByJoint, Float64Array
from ..dynamics.trees import integrate, neutral, random_state
from ..mechanism import Mechanism, MechanismError, one_of
from ..mechanism.checks import names_of
from ..mechanism.scales import scales
from .actuated import ACTIVATION, away_from_contact, driven, extended, inputs_of
from .coordinates import RATE, coordinate_names, independent_by, named_rows
from .local_form import LocalForm, local_form, plain_model
from .state_space import StateSpace

FORMS = ("local", "underlying")
PROJECTIONS = ("orthogonal", "independent")
GUESSES = (30,)  # from which to assemble a mechanism of which no state is given


def linearize(
    mech: Mechanism,
    q: ByJoint | None = None,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    independent: Any = None,
    inputs: Sequence[str] | None = None,
    outputs: Any = None,
    passive: Passive | None = None,
    wrenches: ArrayLike | None = None,
    form: str = "local",
    projection: str = "orthogonal",
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
    forces: Any = ALL,
    active: ArrayLike | None = None,
) -> StateSpace:
    """The linear model of a mechanism near the state (q, v) under joint forces ``tau`` and all force elements
    (``forces="all"``), exact, loops included.

    q, v, tau     if left out: ``mech.initial`` (the file's configuration, else neutral), at rest, no forces; also by
                  joint, {joint: coordinates}; the state need not be an equilibrium (the model then has a drift)
    independent   the coordinates of a closed mechanism: "partitioning" (well conditioned joint coordinates),
                       "null_space" (orthonormal combinations), joint names, or rows (p, nv) with dy/dt = rows v; None:
                  ``mech.metadata.independent_joints`` if they are known and determine the motion, else
                       "partitioning". With constraints on velocities alone (wheels) these are coordinates of
                  velocities; positions have more, which are chosen
    inputs        joints that are driven, all by default; ``joint[k]``, or a name of ``mech.v_names``, is one coordinate
                  of a joint with several; a mimic joint as an input drives its leader, as an output it has its own
                  coordinate; actuators by name, all with "ctrl", the default if there is a ``ctrl``
    outputs       y: positions of the independent coordinates by default; names of joints for their positions, with
                       ".rate" for velocities; or rows (l, 2 nv) on the steps of q and changes of v of all joints
    forces        force elements that act: "all", except those that ``mech.with_acting`` switched off; "none", kinds by
                  name or a ``lw.forces.Passive``: see ``lw.forward_dynamics``
    passive       springs, dampers, ... (``linkwise.forces.Passive``) instead of those of the mechanism's joints
    ctrl, activation   (n_ctrl,) or {actuator: input}, (n_activation,): control inputs and states of actuators; if left
                  out, zero inputs and their steady activations.  Activations are states of the model, behind
                  others
    wrenches      (n_links, 6): external wrenches, constant in the link frames
    active        (..., len(mech.loops)) booleans: constraints that hold; default: all
    form          "local": 2 p states, the local state-space form (4.8-4.10); "underlying": the ODE of all 2 nv
                  coordinates, A = [Df] P, with two eigenvalues of zero for every constraint (4.1-4.4)
    projection    P of the underlying form: "orthogonal", I - H^+ H in the given coordinates, or "independent", along
                  the chosen coordinates, which depends on no unit

    q, v, tau, wrenches broadcast over leading batch dimensions; all states must have equally many degrees of freedom.
    Without states (a batch dimension of 0) the arrays are empty, with the shapes of general states of the mechanism. A
    ``MechanismError`` names open loops, singular positions or ill-chosen coordinates.
    """
    if forces is not ALL:
        mech, passive = chosen_forces(mech, forces, passive)
    usual = passive is ctrl is activation is wrenches is independent is inputs is outputs is active is None
    if usual and form == "local" and (plain := plain_model(mech, q, v, tau)) is not None:
        return plain
    if (away := away_from_contact(mech, q)) is not None:
        options = independent, inputs, outputs, passive, wrenches, form, projection, ctrl, activation
        return replace(linearize(away, q, v, tau, *options, active=active), mechanism=mech)
    acting = driven(mech, passive, ctrl, activation) if isinstance(mech, Mechanism) else None
    form, projection = one_of("form", form, FORMS), one_of("projection", projection, PROJECTIONS)
    at = state_of(mech, q, v, tau, wrenches, acting, active)
    if 0 in at.batch:
        return _empty_model(mech, at.batch, independent, inputs, outputs, form)
    form_of_model = local_form(at, independent) if form == "local" else _underlying_form(at, independent, projection)
    chosen_inputs = inputs_of(mech, inputs, unless_empty(mech, ctrl) is not None)
    states, rows, a, b, drift, tangent, acceleration, rate_names, rate_rows = extended(
        form_of_model, acting, chosen_inputs, at.q, at.v
    )
    output_names, c = _outputs(mech, outputs, states, tangent)
    activation_names = (
        [actuator.name + ACTIVATION for actuator in mech.forces.actuators if actuator.has_activation]
        if acting is not None
        else []
    )
    return StateSpace(
        mechanism=mech,
        q=at.q,
        v=at.v,
        tau=at.tau,
        acceleration=acceleration,
        A=a,
        B=b,
        C=c,
        D=np.zeros((*at.batch, c.shape[-2], len(chosen_inputs.names))),
        drift=drift,
        independent=states,
        state_names=(*states, *(name + RATE for name in rate_names or states), *activation_names),
        input_names=chosen_inputs.names,
        output_names=output_names,
        rows=np.broadcast_to(rows, (*at.batch, *rows.shape[-2:])),
        tangent=tangent,
        form=form,
        rate_rows=None if rate_rows is None else np.broadcast_to(rate_rows, (*at.batch, *rate_rows.shape[-2:])),
    )


def rate_jacobian(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None,
    tau: ByJoint | None = None,
    passive: Passive | None = None,
    wrenches: ArrayLike | None = None,
    rank: int | None = None,
    forces: Any = NONE,
    ctrl: ByJoint | None = None,
    activation: ArrayLike | None = None,
    active: ArrayLike | None = None,
) -> Float64Array:
    """(2 nv, 2 nv): the Jacobian of (dq/dt, dv/dt) by (tangent step of q, v), for implicit integrators: [Df].

    With constraints it is [Df] P (4.4), P the projection of ``constraints.project``, by the sizes of the whole
    mechanism; of constraints that are ``active`` (..., len(mech.loops)), by default all.

    With ``rank`` (``constraints.generic_rank``) states need not have exactly closed loops.  Force elements act that
    ``forces`` names, with ``ctrl`` and ``activation`` as for ``linearize``; ``passive`` is another word for
    ``forces=passive``.
    """
    if passive is not None and not isinstance(passive, Passive):
        raise TypeError(f"passive must be a linkwise.forces.Passive, got {type(passive).__name__}")
    if passive is not None and forces is not NONE:
        raise MechanismError("forces and passive both have force elements: give one of them")
    elements = applied(mech, forces if passive is None else passive, ctrl, activation)
    at = state_of(mech, q, v, tau, wrenches, elements, active, furthest=None)
    return rate_jacobian_at(at, rank)


def _empty_model(
    mech: Mechanism, batch: tuple[int, ...], independent: Any, inputs: Any, outputs: Any, form: str
) -> StateSpace:
    """The model of an empty batch: the matrices of an arbitrary state, with zero rows."""
    chosen = "null_space" if np.ndim(independent) > 2 else independent  # one choice per state: there is none
    sample = linearize(mech, _regular(mech), None, None, chosen, inputs, outputs, form=form)
    empty: dict[str, Any] = {
        name: np.zeros((*batch, *array.shape)) for name, array in vars(sample).items() if isinstance(array, np.ndarray)
    }
    return replace(sample, **empty)


def _regular(mech: Mechanism) -> np.ndarray:
    """(nq,): an assembled configuration with the usual number of degrees of freedom."""
    rng = np.random.default_rng(0)
    guesses = [
        integrate(mech, neutral(mech), 0.1 * scales(mech).of_v * rng.normal(size=mech.nv), 1.0),
        *(random_state(mech, rng, GUESSES)[0] * scales(mech).of_q),
    ]
    for guess in guesses:
        try:
            q = assemble(mech, guess, tries=1)
        except AssemblyError:
            continue
        if mech.nv - degrees_of_freedom(mech, q) == generic_rank(mech, q):
            return q
    raise MechanismError(
        f"without states, the degrees of freedom of mechanism {mech.name!r} are not known: no guess led to a "
        "regular configuration with closed loops"
    )


def _underlying_form(at: State, independent: Any, projection: str) -> LocalForm:
    """The underlying ODE of all coordinates, in the shape of a local form (4.1-4.4)."""
    n, near = at.mech.nv, variations(at, partial(independent_by, wanted=independent))
    b = near.independent.basis @ near.response
    return LocalForm(
        coordinate_names(at.mech),
        np.eye(n),
        near.rates @ _projection(near, projection),
        np.concatenate([np.zeros_like(b), b], axis=-2),
        np.concatenate([at.v, near.acceleration], axis=-1),
        np.broadcast_to(np.eye(2 * n), (*at.batch, 2 * n, 2 * n)),
        near.acceleration,
    )


def _projection(near: Variations, kind: str) -> np.ndarray:
    """(2 p, 2 nv): coordinates of the projection of any step on the tangent space, P = tangent @ this (4.3, 4.4)."""
    if kind == "orthogonal":
        return np.linalg.pinv(near.tangent)
    rows, rate_rows = near.positions.rows, near.independent.rows
    return np.block([[rows, np.zeros_like(rows)], [np.zeros_like(rate_rows), rate_rows]])


def _outputs(
    mech: Mechanism, outputs: Any, states: tuple[str, ...], tangent: np.ndarray
) -> tuple[tuple[str, ...], np.ndarray]:
    """Names of outputs, and C."""
    n = tangent.shape[-1]
    batch = tangent.shape[:-2]
    if outputs is None:
        return states, np.broadcast_to(np.eye(n)[: len(states)], (*batch, len(states), n))
    outputs = names_of(outputs)
    if all(isinstance(name, str) for name in outputs):
        called: list[str] = []
        seen = [np.zeros((*batch, 0, n))]
        for name in outputs:
            rate = name.endswith(RATE) and name not in mech.joint_names
            _suggest_rate(mech, name)
            coordinate_names, rows = named_rows(mech, (name.removesuffix(RATE) if rate else name,), "outputs")
            called += [coordinate + RATE * rate for coordinate in coordinate_names]
            seen.append(rows @ (tangent[..., mech.nv :, :] if rate else tangent[..., : mech.nv, :]))
        return tuple(called), np.concatenate(seen, axis=-2)
    rows = np.asarray(outputs, dtype=float)
    if rows.ndim != 2 or rows.shape[1] != 2 * mech.nv:
        raise MechanismError(f"outputs must be joint names or rows (l, {2 * mech.nv}), got shape {rows.shape}")
    return tuple(f"z{i + 1}" for i in range(len(rows))), rows @ tangent


def _suggest_rate(mech: Mechanism, name: str) -> None:
    """Refuse a joint name with a suffix other than ".rate", and suggest ".rate"."""
    joint, dot, tail = name.rpartition(".")
    if (
        dot
        and tail != RATE[1:]
        and joint in (*mech.joint_names, *coordinate_names(mech))
        and name not in mech.joint_names
    ):
        raise MechanismError(f"outputs names {name!r}: did you mean {joint + RATE!r}, or {joint!r} for its position?")
