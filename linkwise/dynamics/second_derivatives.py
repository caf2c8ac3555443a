"""Second derivatives of forward dynamics: trees use those of inverse dynamics, constraints use Hessian products."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import compile_instead
from ..compiler.store import float64_function
from ..constraints.accelerations import terms
from ..constraints.assembly import project
from ..constraints.derivatives import derivatives_at
from ..constraints.force_derivatives import moving_forces
from ..constraints.sizes import sizes
from ..constraints.solver import Inputs, complete, is_reliable, serves
from ..constraints.variations import State, applied_force, refuse_open, state_of
from ..mechanism import Mechanism, MechanismError
from .derivatives import Derivative, forward_dynamics_derivatives, inverse_dynamics_second_derivatives
from .force_elements import NONE, applied
from .states import Argument, ByJoint, Float64Array
from .trees import forward_dynamics, integrate

Direction = tuple[ArrayLike, ArrayLike, ArrayLike]
Arrays = tuple[Float64Array, ...]
STEP = 1e-3  # of differences: rad, sizes of loops, and relative to velocities
WEIGHTS = {1.0: 3.0 / 4.0, 2.0: -3.0 / 20.0, 3.0: 1.0 / 60.0}  # of central differences of order six
CONSTRAINED = "closed_forward_dynamics_derivatives"


@compile_instead("'inverse_dynamics_second_derivatives' of a tree, or lw.jvp_of(" + repr(CONSTRAINED) + ", ...)")
def forward_dynamics_second_derivatives(
    mech: Mechanism,
    q: ByJoint,
    v: ByJoint | None = None,
    tau: ByJoint | None = None,
    *,
    along: Direction | None = None,
    active: ArrayLike | None = None,
    forces: Any = NONE,
    ctrl: ArrayLike | Mapping[str, Any] | None = None,
    activation: ArrayLike | None = None,
) -> Arrays:
    """(d_qq, d_vv, d_qv, d_tauq), each (nv, nv, nv): derivatives of the matrices of ``forward_dynamics_derivatives``;
    row i belongs to acceleration i.  The blocks of a tree that are not returned are zero.

    d_qq[i, j, k]     along tangent direction k, of the derivative along tangent direction j; the two commute in trees
                      unless j and k belong to one spherical or floating joint
    d_vv[i, j, k]     by v_k, of the derivative by v_j
    d_qv[i, j, k]     by v_k, of the derivative along tangent direction j
    d_tauq[i, j, k]   along tangent direction k, of the derivative by tau_j

    along    a step of q, a change of v and one of tau, (nv,) each: the result is the change of the three matrices (d_q,
             d_v, d_tau) along it, (nv, nv) each, a product with the second derivatives
    active   (..., len(mech.loops)) booleans: active constraints; default: all
    forces, ctrl, activation   active force elements, as for ``forward_dynamics``

    With constraints the first derivatives, and the directions k and ``along``, are projected onto allowed changes, q
    first: these are derivatives of ``forward_dynamics_derivatives`` at states from ``constraints.project``.  They are
    products with the derivatives of its kernel.  Without a kernel (nonholonomic constraints, constraints redundant up
    to rounding, states solved by singular values, force elements beside constraints) they are differences of order six,
    with relative errors of about 1e-8.  A ``MechanismError`` reports singular positions, open loops and inconsistent
    velocities.
    """
    elements = applied(mech, forces, ctrl, activation)
    at = state_of(mech, q, v, tau, None, elements, active)
    return _second_derivatives(at, None if along is None else _direction(at, along))


def _second_derivatives(at: State, direction: Float64Array | None) -> Arrays:
    """All second derivatives, or the changes along a direction (..., 3 nv)."""
    mech = at.mech
    if not mech.loops:
        second = _tree_derivatives(at)
        return second if direction is None else _directional_change(second, direction)
    moved = moving_forces(at._replace(passive=None)).d_state  # (..., 2 nv, 3 nv)
    unit = np.broadcast_to(np.eye(3 * mech.nv)[2 * mech.nv :], (*at.batch, mech.nv, 3 * mech.nv))
    moved = np.concatenate([moved, unit], axis=-2)
    if direction is not None:
        return _products(at, (moved @ direction[..., None])[..., 0])
    mask = None if at.active is None else at.active[..., None, :]
    each = at._replace(q=at.q[..., None, :], v=at.v[..., None, :], tau=at.tau[..., None, :], active=mask)
    if at.passive is not None:
        each = each._replace(passive=at.passive.driven_by(*(x[..., None, :] for x in _inputs(at))))
    by_q, by_v, by_tau = _products(each, np.swapaxes(moved, -1, -2))  # (..., 3 nv, nv, nv): a direction each
    n = mech.nv
    first = (by_q[..., :n, :, :], by_v[..., n : 2 * n, :, :], by_q[..., n : 2 * n, :, :], by_tau[..., :n, :, :])
    return tuple(np.moveaxis(x, -3, -1) for x in first)


def _tree_derivatives(at: State) -> Arrays:
    """Second derivatives of a tree: from ID_x + M a_x = 0, M a_xy follows from ID_xy and changes of M.  Forces of
    elements count in inverse dynamics, with opposite sign."""
    tau, n = applied_force(at), at.mech.nv
    a = forward_dynamics(at.mech, at.q, at.v, tau)
    by_q, by_v, by_tau = forward_dynamics_derivatives(at.mech, at.q, at.v, tau)
    d_qq, d_vv, d_qv, d_aq = inverse_dynamics_second_derivatives(at.mech, at.q, at.v, a)
    if at.passive is not None:
        slopes, bends = at.passive.derivatives(at.q, at.v), at.passive.second_derivatives(at.q, at.v)
        by_q, by_v = (by + by_tau @ slope for by, slope in zip((by_q, by_v), slopes, strict=True))
        d_qq, d_vv, d_qv = d_qq - bends[..., :n, :n], d_vv - bends[..., n:, n:], d_qv - bends[..., :n, n:]
    turned = np.swapaxes(d_aq, -1, -2)  # [i, j, l]: along j, of M[i, l]
    through = turned @ by_q[..., None, :, :]  # [i, j, k]: along j of M, times a along k
    d_qq = d_qq + through + np.swapaxes(through, -1, -2)
    d_qv = d_qv + turned @ by_v[..., None, :, :]
    d_tauq = np.swapaxes(turned @ by_tau[..., None, :, :], -1, -2)
    return tuple(_times(-by_tau, x) for x in (d_qq, d_vv, d_qv, d_tauq))


def _times(matrix: Float64Array, x: Float64Array) -> Float64Array:
    """(..., n, n, n): the matrix (..., n, n) times the first axis."""
    n = matrix.shape[-1]
    return (matrix @ x.reshape(*x.shape[:-2], n * n)).reshape(x.shape)


def _directional_change(second: Arrays, direction: Float64Array) -> Arrays:
    """The change of the three matrices of a tree."""
    d_qq, d_vv, d_qv, d_tauq = second
    step, change, push = np.split(direction[..., None, :, None], 3, axis=-2)
    by_q = (d_qq @ step + d_qv @ change)[..., 0] + (np.swapaxes(d_tauq, -1, -2) @ push)[..., 0]
    by_v = (np.swapaxes(d_qv, -1, -2) @ step + d_vv @ change)[..., 0]
    return by_q, by_v, (d_tauq @ step)[..., 0]


def _direction(at: State, along: Any) -> Float64Array:
    """(..., 3 nv): the step of q, the changes of v and of tau."""
    try:
        step, change, push = along
    except (TypeError, ValueError):
        raise MechanismError("along must be three arrays: a step of q, a change of v and one of tau") from None
    named = (("a step of q", step), ("a change of v", change), ("a change of tau", push))
    parts = [Argument(f"along, {name},", ("nv",)).array(at.mech, x) for name, x in named]
    batch = np.broadcast_shapes(at.batch, *(part.shape[:-1] for part in parts))
    return np.concatenate([np.broadcast_to(part, (*batch, at.mech.nv)) for part in parts], axis=-1)


# -- with constraints -------------------------------------------------------------------------------------------------


def _products(at: State, steps: Float64Array) -> Arrays:
    """Changes of the three matrices along allowed steps (..., 3 nv): products with derivatives of the kernel,
    differences for states where it is unreliable."""
    n, batch = at.mech.nv, np.broadcast_shapes(at.batch, steps.shape[:-1])
    results: Arrays = tuple(np.empty((*batch, n, n)) for _ in range(3))
    poor = np.ones(batch, dtype=bool)
    if at.passive is None and serves(at.mech, CONSTRAINED, at.active is None):
        optional, ports = ([], ()) if at.active is None else ([at.active], (("ports", ("active",)),))
        consistency = float64_function(at.mech, (CONSTRAINED, *ports))(at.q, at.v, at.tau, *optional)[-1]
        held = () if at.active is None else ("active",)
        products = float64_function(at.mech, Derivative(CONSTRAINED, ("q", "v", "tau"), held, mode="products"))
        results = tuple(products(at.q, at.v, at.tau, *optional, *np.split(steps, 3, axis=-1))[:3])
        poor = np.broadcast_to(~is_reliable(np.asarray(consistency)), batch)
    if poor.any():

        def differences(q: Any, v: Any, tau: Any, steps: Any, *rest: Any) -> Arrays:
            *driving, active, _ = rest
            elements = None if at.passive is None else at.passive.driven_by(*driving)
            return _differences(State(at.mech, q, v, tau, None, elements, active), steps)

        complete(results, poor, differences, Inputs((at.q, at.v, at.tau, steps, *_inputs(at)), at.active))
    return results


def _inputs(at: State) -> tuple[np.ndarray, ...]:
    """Control inputs and activations of the active force elements; empty without force elements."""
    return () if at.passive is None else (at.passive.ctrl, at.passive.activation)


def _differences(at: State, steps: Float64Array) -> Arrays:
    """Changes of the three matrices along ``steps`` (..., 3 nv), by central differences of order six."""
    mech = at.mech
    refuse_open(at, terms(mech, at.q, at.v, active=at.active))
    step, change, push = np.split(steps, 3, axis=-1)
    units = sizes(mech)
    unit = units.columns
    speeds = np.abs(at.v / unit).max(axis=-1, initial=units.rate, keepdims=True) + (units.rate == 0.0)
    lengths = np.abs(step / unit).max(axis=-1, initial=0.0, keepdims=True)
    rates = np.abs(change / unit).max(axis=-1, initial=0.0, keepdims=True) / speeds
    s = STEP / np.maximum(np.maximum(lengths, rates), np.finfo(float).tiny ** 0.5)
    s = np.where(np.maximum(lengths, rates) > 0.0, s, 1.0)  # steps of tau only: everything is linear in tau

    def first(offset: float) -> Float64Array:
        q, v = integrate(mech, at.q, offset * s * step, 1.0), at.v + offset * s * change
        q, v = project(mech, q, v, aim=np.finfo(float).eps, active=None if at.active is None else at.active > 0.0)
        return np.stack(derivatives_at(at._replace(q=q, v=v, tau=at.tau + offset * s * push)))

    total = sum(weight * (first(offset) - first(-offset)) for offset, weight in WEIGHTS.items())
    by_q, by_v, by_tau = np.asarray(total) / s[..., None]
    return by_q, by_v, by_tau
