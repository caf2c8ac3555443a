"""One step of motion in time under joint forces that stay constant during the step, on the configuration manifold.

A step never leaves the manifold: it is a tangent vector u, along which every joint moves from the start of the step
exactly (``Joint.integrate``), and the method of Runge and Kutta is applied to u and v instead of q and v
(Munthe-Kaas, "Runge-Kutta methods on Lie groups", BIT 38, 1998):

    du/dt = dexp^-1_u(v)    dv/dt = forward dynamics at (q (+) u, v)

Quaternions stay unit and the order of the method is kept for joints that turn freely; for all others u is the change
of q and the method is the usual one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..recursions.tree import Tree
from ..scalar import Scalar
from .configuration import integrate
from .dynamics import forward_dynamics

Vector = list[Scalar]


@dataclass(frozen=True)
class Tableau:
    """An explicit method of Runge and Kutta, as Butcher writes it: stage i starts from the sum of ``stages[i][j]``
    times slope j, the step is the sum of ``weights[j]`` times slope j."""

    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]


RK4 = Tableau(stages=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), weights=(1 / 6, 1 / 3, 1 / 3, 1 / 6))


def runge_kutta_step(tableau: Tableau, tree: Tree, q, v, tau, dt, wrenches=None) -> Vector:
    """(nq + nv,): q and v after dt by an explicit method of up to fourth order."""
    dt = dt.item() if hasattr(dt, "item") else dt
    steps: list[Vector] = []  # slopes of u, one per stage
    accelerations: list[Vector] = []
    for coefficients in tableau.stages:
        u, v_here = _sum(dt, coefficients, steps, [0.0] * len(v)), _sum(dt, coefficients, accelerations, list(v))
        steps.append(_step_rates(tree, u, v_here))
        q_here = _moved(tree, q, u) if coefficients else q
        accelerations.append(forward_dynamics(tree, q_here, v_here, tau, wrenches))
    u = _sum(dt, tableau.weights, steps, [0.0] * len(v))
    return [*_moved(tree, q, u), *_sum(dt, tableau.weights, accelerations, list(v))]


def rk4_step(tree: Tree, q, v, tau, dt, wrenches=None) -> Vector:
    """(nq + nv,): q and v after dt by the classical method of fourth order."""
    return runge_kutta_step(RK4, tree, q, v, tau, dt, wrenches)


def semi_implicit_step(tree: Tree, q, v, tau, dt, wrenches=None) -> Vector:
    """(nq + nv,): q and v after dt by the semi-implicit method of Euler, v' = v + dt a, then q' = q (+) dt v'."""
    dt = dt.item() if hasattr(dt, "item") else dt
    v_next = _sum(dt, (1.0,), [forward_dynamics(tree, q, v, tau, wrenches)], list(v))
    return [*integrate(tree, q, v_next, dt), *v_next]


def _sum(dt: Scalar, coefficients: Sequence[float], slopes: Sequence[Vector], start: Vector) -> Vector:
    """start + dt * sum of coefficient times slope."""
    total = start
    for coefficient, slope in zip(coefficients, slopes, strict=True):
        if coefficient:
            total = [x + (dt * coefficient) * rate for x, rate in zip(total, slope, strict=True)]
    return total


def _moved(tree: Tree, q: Sequence[Scalar], u: Vector) -> Sequence[Scalar]:
    """q (+) u."""
    return integrate(tree, q, u, 1.0)


def _step_rates(tree: Tree, u: Vector, v: Vector) -> Vector:
    """du/dt of every independent joint."""
    pairs = ((b.kind, tree.mechanism.v_index(b.joint)) for b in tree.mechanism.bodies if not b.mimic)
    return [x for kind, at in pairs for x in kind.step_rate(u[at], v[at])]
