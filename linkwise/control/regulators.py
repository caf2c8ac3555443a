"""Linear-quadratic regulators of linear models, of trees and of closed mechanisms in independent coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.states import Float64Array, in_brief, real_numbers
from ..mechanics.algorithms.configuration import difference
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar, dot
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import did_you_mean
from .compiled import CompiledControl, ControlLaw, Numbers, Scalars

StateSpace = Any  # of ``linearization``, which stands beside
SINGULAR = 1e-9  # relative: modes that inputs move by less are not moved
SMALL = 1e-6  # parts of unit vectors that are not counted


@dataclass(frozen=True)
class RegulatorLaw(ControlLaw):
    """tau = tau_0 - K [difference(q_0, q); v - v_0]."""

    q: Numbers = ()
    v: Numbers = ()
    tau: Numbers = ()
    gain: tuple[Numbers, ...] = ()  # by rows (nv, 2 nv)

    def __str__(self) -> str:
        return f"linear-quadratic regulator, gains {in_brief(self.gain)}"

    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        apart = [*difference(tree, list(self.q), q), *(x - y for x, y in zip(v, self.v, strict=True))]
        return [tau - dot(row, apart) for tau, row in zip(self.tau, self.gain, strict=True)]


@dataclass(frozen=True, eq=False, repr=False)
class Regulator(CompiledControl):
    """u = -gain x: a controller ``control(t, q, v) -> tau`` that brings a mechanism back to the point of its model.

    gain    (inputs, states)
    cost    (states, states): S; all that follows from x costs x* S x
    """

    model: StateSpace
    gain: Float64Array
    cost: Float64Array

    @property
    def joint_gain(self) -> Float64Array:
        """(nv, 2 nv): joint forces per [difference(q_0, q); v - v_0], of all joints."""
        law = self.law
        assert isinstance(law, RegulatorLaw)
        return np.array(law.gain)

    def eigenvalues(self) -> np.ndarray:
        """Eigenvalues of the model under the controller: A - B gain."""
        return np.linalg.eigvals(self.model.A - self.model.B @ self.gain)


def lqr(model: StateSpace, Q: Any = 1.0, R: Any = 1.0, *, leave_out: Sequence[str] = ()) -> Regulator:
    """The controller that minimizes the integral of x* Q x + u* R u for a linear model (``lw.linearize``).

    model   at an equilibrium, with inputs that have motors: ``lw.linearize(mech, q, None, tau, inputs=...)``; in
                independent coordinates for a mechanism with loops
    Q, R    weights of states and inputs: numbers, one per state or input, or symmetric matrices
    leave_out   names of states without feedback, on which no other state depends; Q is of the remaining states.
                Position and heading of a rolling vehicle, which no linear feedback can control, are such states

    The controller is optimal for the model; a simulation shows how far from the equilibrium it controls the mechanism.
    """
    from scipy.linalg import solve_continuous_are

    if not hasattr(model, "state_at"):
        raise TypeError(f"lqr takes a linear model, lw.linearize(...), got {model!r}")
    if model.A.ndim > 2:
        raise MechanismError(f"lqr takes a model of one state, this one has the batch shape {model.A.shape[:-2]}")
    if not model.is_equilibrium:
        raise MechanismError(
            f"the model is of no equilibrium: its rates are up to {model.residual:.3g} there.  lw.find_equilibrium "
            "finds one, with solve_for='tau' the forces that make a position one"
        )
    if any(name.endswith(".activation") for name in model.state_names):
        raise MechanismError(
            "lqr gives joint forces, and the inputs of this model are those of actuators with dynamics"
        )
    kept = _kept(model, leave_out)
    names = [model.state_names[i] for i in kept]
    weights = (
        _weights("Q", Q, len(kept), semidefinite=True),
        _weights("R", R, len(model.input_names), semidefinite=False),
    )
    _refuse_unreachable(model, names, kept)
    gain, cost = np.zeros(model.B.T.shape), np.zeros(model.A.shape)
    # The equation of Riccati in the model's own units: numbers of all sizes would hide each other.
    scaled_model = model.dimensionless()
    states, inputs = scaled_model.states[kept], scaled_model.inputs
    scaled = [weight * np.multiply.outer(units, units) for weight, units in zip(weights, (states, inputs), strict=True)]
    size = np.abs(scaled[0]).max(initial=0.0) or 1.0
    try:
        a, b = scaled_model.A[np.ix_(kept, kept)], scaled_model.B[kept]
        solution = size * solve_continuous_are(a, b, *(x / size for x in scaled))
        cost[np.ix_(kept, kept)] = solution / (np.multiply.outer(states, states) * scaled_model.rate)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise MechanismError(f"the Riccati equation of the model has no solution for these weights: {error}") from None
    gain[:, kept] = np.linalg.solve(weights[1], model.B.T @ cost[:, kept])
    return Regulator(model.mechanism, _law(model, gain), None, model, gain, cost)


def _law(model: StateSpace, gain: np.ndarray) -> RegulatorLaw:
    """The gain of all joints: inputs are some of the joint forces, states are R times steps and velocities."""
    mech, p = model.mechanism, len(model.rows)
    names = list(mech.coordinates.names("v"))
    gain_matrix = np.zeros((mech.nv, 2 * mech.nv))
    input_rows = [names.index(name) for name in model.input_names]
    rate_rows = model.rows if model.rate_rows is None else model.rate_rows
    gain_matrix[input_rows] = np.hstack([gain[:, :p] @ model.rows, gain[:, p:] @ rate_rows])
    q, v, tau = (tuple(np.asarray(x, dtype=float).tolist()) for x in (model.q, model.v, model.tau))
    return RegulatorLaw(0, q, v, tau, tuple(tuple(row) for row in gain_matrix.tolist()))


def _weights(name: str, value: Any, size: int, semidefinite: bool) -> np.ndarray:
    values = real_numbers(name, value)
    if values.shape in ((), (size,)):
        values = np.diag(np.broadcast_to(values, (size,)))
    if values.shape != (size, size) or not np.allclose(values, values.T, atol=1e-8 * np.abs(values).max(initial=0.0)):
        raise ValueError(
            f"{name} must be a number, {size} of them or a symmetric matrix ({size}, {size}), got {value!r}"
        )
    least = np.linalg.eigvalsh(values).min()
    if least < 0.0 or (least == 0.0 and not semidefinite):
        raise ValueError(f"{name} must be positive{'' if not semidefinite else ' or zero'} in every direction")
    return values


def _kept(model: StateSpace, leave_out: Sequence[str]) -> list[int]:
    """The places of the states that are led back."""
    names = list(model.state_names)
    for name in leave_out:
        if name not in names:
            raise MechanismError(f"leave_out: the model has no state {name!r}: {did_you_mean(name, names)}")
    kept = [i for i, name in enumerate(names) if name not in leave_out]
    for name in leave_out:
        rates = np.abs(model.dimensionless().A)
        acts = rates[kept, names.index(name)] > SINGULAR * rates.max()
        if acts.any():
            raise MechanismError(
                f"leave_out: {names[kept[int(acts.argmax())]]!r} depends on {name!r}, which cannot be left out alone"
            )
    return kept


def _refuse_unreachable(model: StateSpace, names: Sequence[str], kept: Sequence[int]) -> None:
    """Every mode of the states ``kept`` that does not decay must be moved by some input (Hautus)."""
    scaled = model.dimensionless()
    a, b, rate = scaled.A[np.ix_(kept, kept)], scaled.B[kept], float(scaled.rate[0])
    for value in np.linalg.eigvals(a):
        if value.real < 0.0:
            continue
        pencil = np.hstack([a - value * np.eye(len(a)), b]).astype(complex)
        directions, singular, _ = np.linalg.svd(pencil)
        still = directions[:, singular < SINGULAR * singular[0]]
        if still.size:
            states = [name for name, row in zip(names, np.abs(still), strict=True) if row.max() > SMALL]
            raise MechanismError(
                f"the inputs {', '.join(map(repr, model.input_names))} do not reach a motion of the model that does "
                f"not decay (eigenvalue {value * rate:.3g}), of {', '.join(map(repr, states))}: "
                + _advice(model.mechanism, _unreachable_states(names, a, still))
            )


def _unreachable_states(names: Sequence[str], a: np.ndarray, still: np.ndarray) -> tuple[str, ...]:
    """States that can be removed so that the rest is controllable: no other state depends on them. Empty if there are
    no such states.
    """
    from scipy.linalg import qr

    idle = np.flatnonzero(np.abs(a).max(axis=0) <= SINGULAR * np.abs(a).max())
    if len(idle) < still.shape[1]:
        return ()
    _, triangle, order = qr(still[idle].T, mode="economic", pivoting=True)
    if np.abs(np.diag(triangle)).min() < SMALL:
        return ()
    return tuple(names[i] for i in sorted(idle[order[: still.shape[1]]]))


def _advice(mech: Mechanism, without_effect: tuple[str, ...]) -> str:
    if without_effect and mech.constraints.is_nonholonomic:
        return (
            "what rolls comes there by manoeuvres, not by linear feedback; leave states out on which no other depends, "
            f"lw.control.lqr(model, leave_out={without_effect!r}), or give more inputs to linearize"
        )
    if "contact" not in mech.forces.active:
        return "give more inputs to linearize"
    return (
        "friction of what touches is viscous at rest, so that feet creep and nothing leads them back; linearize the "
        "mechanism with its feet held, standing = lw.contact.hold_contacts(mech, q); or give more inputs"
    )
