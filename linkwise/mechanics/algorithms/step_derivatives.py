"""Derivatives of time steps, from derivatives of the accelerations by the chain rule over the stages.

A change of the start of a step, (dq along tangent directions, dv, dtau), changes the position q (+) u of a stage, its
velocity, and thereby its slopes.  With A, B, C the derivatives of the accelerations at a stage by position, velocity
and joint forces,

    d(dv/dt) = A dq' + B dv' + C dtau        dq' = E dq + F du

where E and F are the derivatives of the end of a step along u by its beginning and by u.  Both are the identity except
for freely rotating joints, whose motions form a group: with ad_u x = [u, x]

    F = sum over k of (-ad_u)^k / (k + 1)!        E = exp(-ad_u) = 1 - ad_u F

Results are along tangent directions of the final position, as ``difference`` between two ends.

Runge-Kutta methods use reverse mode: the 2 nv rows of the result are propagated backwards through the stages as
derivatives by a stage's slopes.  There are 3 nv columns, and rows X times A, B and C are X M^-1 times changes of
inverse dynamics, so that A, B and C themselves are needed at the last stages only.  Splitting methods gain nothing from
this and use forward mode: all changes are matrices with nv rows and 3 nv columns.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from ..joints.protocol import Joint
from ..recursions.tree import Tree
from ..scalar import Scalar, cos, each, is_zero, select, sin, sqrt
from .algorithm import COMPOSITE_BODIES, LINEARIZATION, SOLVES_TREE, Algorithm, InLoops, register
from .by_columns import AccelerationsBySweeps, operations_of_derivatives
from .configuration import drift, integrate, kick_bias
from .dynamics_derivatives import Accelerations, solved, with_changes
from .integration import METHODS, STEP, Method, Splitting, Tableau, refuse_lost_orders, step_rates

Vector = list[Scalar]
BY_ROWS = "for every row three sweeps over the links at each stage, as their code does not grow with the links"
SMALL = 4e-2  # squared angle below which power series are used, with a truncation error below 1e-16


def step_derivatives(method: Method, tree: Tree, q, v, tau, dt, wrenches: Any = None) -> tuple[np.ndarray, np.ndarray]:
    """(2 nv, 2 nv) and (2 nv, nv): derivatives of q and v after a step of dt by q and v before it, and by tau."""
    h, n = dt.item() if hasattr(dt, "item") else dt, len(v)
    motion = _Motion(tree, tau, wrenches)
    reached = _split(method, motion, q, v, h) if isinstance(method, Splitting) else _staged(method, motion, q, v, h)
    derivatives = np.concatenate(reached)
    return derivatives[:, : 2 * n], derivatives[:, 2 * n :]


class _Motion:
    """Accelerations under constant forces, and their changes at a stage."""

    def __init__(self, tree: Tree, tau: Sequence[Scalar], wrenches: Any):
        self.tree, self.tau, self.wrenches, n = tree, tau, wrenches, tree.mechanism.nv
        unit, nothing = np.eye(n).astype(object), np.zeros((n, n), dtype=object)
        nothing[:] = 0.0
        #: Changes of q, v and tau at the start of the step.
        self.d_q, self.d_v, self.d_tau = (
            np.concatenate([unit if i == k else nothing for i in range(3)], axis=1) for k in range(3)
        )

    def accelerations(
        self, q: Sequence[Scalar], v: np.ndarray, d_q: np.ndarray, d_v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations at a stage, and their changes with its position and velocity."""
        (there,) = with_changes(self.tree, [self.there(q, v)], self.wrenches)
        by_q, by_v, by_tau = there.derivatives()
        return _array(there.values), _product(by_q, d_q) + _product(by_v, d_v) + _product(by_tau, self.d_tau)

    def there(self, q: Sequence[Scalar], v: np.ndarray) -> Any:
        """The accelerations at a stage; ``with_changes`` gives the factors of their derivatives."""
        return solved(self.tree, q, v.tolist(), self.tau, self.wrenches)

    def with_changes(self, states: Sequence[Any]) -> Sequence[Accelerations | AccelerationsBySweeps]:
        return with_changes(self.tree, states, self.wrenches)

    def kicks(
        self, q: Sequence[Scalar], v: np.ndarray, d_q: np.ndarray, d_v: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Accelerations plus ``Joint.kick_bias``, with their changes: [angular, linear] for joints that transport
        linear velocities.
        """
        a, d_a = self.accelerations(q, v, d_q, d_v)
        for kind, at in self.free:
            angular, linear = _parts(kind, v[at])
            d_angular, d_linear = _parts(kind, d_v[at])
            turning, moving = _adjoint(kind, angular), _adjoint(kind, linear)
            d_a[at] = d_a[at] + _product(turning, d_linear) - _product(moving, d_angular)
        return a + _array(kick_bias(self.tree, v.tolist())), d_a

    def drifted(
        self, q: Sequence[Scalar], v: np.ndarray, d_q: np.ndarray, d_v: np.ndarray, h: np.ndarray
    ) -> tuple[Sequence[Scalar], np.ndarray, np.ndarray, np.ndarray]:
        """q and v after ``Joint.drift``, and their changes. Joints that transport linear velocities move along them,
        then turn by w: v becomes exp(-ad_w) v, whose change with w is [exp(-ad_w) v, F dw]."""
        first, d_first = np.full_like(v, 0.0), np.full_like(d_v, 0.0)
        turn, d_turn = v * h, d_v * h
        for kind, at in self.free:
            (turn[at], first[at]), (d_turn[at], d_first[at]) = _parts(kind, turn[at]), _parts(kind, d_turn[at])
        between, d_between = self.moved(q, first, d_q, d_first) if self._transport else (q, d_q)
        _, d_end = self.moved(between, turn, d_between, d_turn)
        end = drift(self.tree, q, v.tolist(), h)
        v, d_v = _array(end[len(q) :]), d_v.copy()
        for kind, at in self.free:
            if kind.transported:
                ad = _adjoint(kind, turn[at])
                ends = _ends(kind, ad)
                d_v[at] = d_v[at] - _product(ad, _product(ends, d_v[at]))  # exp(-ad) = 1 - ad F
                d_v[at] = d_v[at] + _product(_adjoint(kind, v[at]), _product(ends, d_turn[at]))
        return end[: len(q)], v, d_end, d_v

    def moved(
        self, q: Sequence[Scalar], u: np.ndarray, d_q: np.ndarray, d_u: np.ndarray
    ) -> tuple[Sequence[Scalar], np.ndarray]:
        """The position after a step along u, and its change."""
        change = d_q + d_u
        for kind, at in self.free:
            ad = _adjoint(kind, u[at])
            ends = _ends(kind, ad)
            change[at] = d_q[at] + _product(ends, d_u[at] - _product(ad, d_q[at]))  # F (du - ad dq) + dq
        return integrate(self.tree, q, u.tolist(), 1.0), change

    @property
    def _transport(self) -> bool:
        return any(kind.transported for kind, _ in self.free)

    @property
    def free(self) -> list[tuple[Joint, slice]]:
        """Joints with non-commuting steps, and their indices in v."""
        mechanism = self.tree.mechanism
        independent = (body for body in mechanism.bodies if not body.mimic)
        return [(b.kind, mechanism.v_index(b.joint)) for b in independent if not b.kind.steps_commute]


class _Turn(NamedTuple):
    """Data of a step of a freely rotating joint: its slice of v, ad_u, and F of the step along u."""

    at: slice
    ad: np.ndarray
    ends: np.ndarray


def _turns(motion: _Motion, u: np.ndarray) -> list[_Turn]:
    adjoints = [(kind, at, _adjoint(kind, u[at])) for kind, at in motion.free]
    return [_Turn(at, ad, _ends(kind, ad)) for kind, at, ad in adjoints]


class _Stage(NamedTuple):
    """One Runge-Kutta stage: the step u to it, the turn of freely rotating joints, its velocity and its
    accelerations.
    """

    u: np.ndarray
    turns: list[_Turn]
    v: np.ndarray
    accelerations: Accelerations | AccelerationsBySweeps


class _Stages:
    """The stages of a Runge-Kutta method, and products of rows with the derivatives of its step."""

    def __init__(self, method: Tableau, motion: _Motion, q, v, h: Scalar):
        refuse_lost_orders(method, motion.tree.mechanism)
        self.size, self.h = len(v), h
        moves: list[tuple[np.ndarray, list[_Turn], np.ndarray]] = []
        states: list[Any] = []
        rates: list[np.ndarray] = []

        def step(coefficients: Sequence[float]) -> np.ndarray:
            return _sum(_array([0.0] * len(v)), zip(coefficients, rates, strict=True), h)

        for number, coefficients in enumerate(method.stages):
            slopes = (_array(state.values) for state in states)
            u, speed = step(coefficients), _sum(_array(v), zip(coefficients, slopes, strict=True), h)
            there = integrate(motion.tree, q, u.tolist(), 1.0) if number else q
            turns = _turns(motion, u) if number else []
            moves.append((u, turns, speed))
            states.append(motion.there(there, speed))
            rates.append(_array(step_rates(motion.tree, u.tolist(), speed.tolist())))
        accelerations = motion.with_changes(states)
        stages = [_Stage(*move, there) for move, there in zip(moves, accelerations, strict=True)]
        self.turns = _turns(motion, step(method.weights))
        self.backwards = [_Backwards(method, motion, stages, number) for number in reversed(range(len(stages)))]

    def starts(self, of_q: np.ndarray, of_v: np.ndarray) -> np.ndarray:
        """Starting values of the backward pass, for rows times q and v at the end of the step."""
        by_q, by_u = _pull_back_move(self.turns, of_q)
        nothing = np.full_like(by_q, 0.0)
        felt = [nothing] * 2 * len(self.backwards)
        return np.concatenate([by_q, of_v, nothing, by_u, of_v, *felt], axis=1)


def _staged(method: Tableau, motion: _Motion, q, v, h: Scalar) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of q and v after a Runge-Kutta step, by q, v and tau."""
    stages, n = _Stages(method, motion, q, v, h), len(v)
    rows = []
    for unit in np.split(np.eye(2 * n).astype(object), 2):  # rows of q and of v at the end
        starts = stages.starts(unit[:, :n], unit[:, n:])
        # The step length is included: rows of constants alone would not be recognized as traced.
        rows += each([[*row, h] for row in starts.tolist()], *stages.backwards, alike=True)
    matrix = np.array(rows, dtype=object)[:, : 3 * n]
    return matrix[:n], matrix[n:]


def step_derivatives_by_sweeps(method: Tableau, tree: Tree, q, v, tau, dt, wrenches: Any = None) -> tuple[Any, Any]:
    """The derivatives of a Runge-Kutta step block by block, for mechanisms without mimic joints: every row by sweeps
    over the links."""
    h, n = dt.item() if hasattr(dt, "item") else dt, len(v)
    stages = _Stages(method, _MotionBySweeps(tree, tau, wrenches), q, v, h)

    def blocks(units: list[list[Scalar]]) -> list[Any]:
        unit = _array(units[0])[None]
        nothing = np.full_like(unit, 0.0)
        rows = np.concatenate([stages.starts(unit, nothing), stages.starts(nothing, unit)])
        for stage in stages.backwards:
            rows = stage.earlier(rows, h)
        return [tree.velocities(part.tolist()) for row in rows for part in np.split(row[: 3 * n], 3)]

    by_row = [matrix.T for matrix in tree.each_column([None] * 6, blocks)]
    of_q, of_v = by_row[:3], by_row[3:]
    return [of_q[:2], of_v[:2]], [of_q[2:], of_v[2:]]


class _MotionBySweeps(_Motion):
    """Accelerations with products of rows and their derivatives, link by link."""

    def there(self, q: Sequence[Scalar], v: np.ndarray) -> AccelerationsBySweeps:
        return AccelerationsBySweeps(self.tree, q, v.tolist(), self.tau, self.wrenches)

    def with_changes(self, states: Sequence[AccelerationsBySweeps]) -> Sequence[AccelerationsBySweeps]:
        return states


class _Backwards:
    """One stage of the backward pass for a row of the result: cotangents of q, v and tau at the start, of the step u
    and its velocity, of the rates and (negative) slopes of each stage, and of the step length.
    """

    def __init__(self, method: Tableau, motion: _Motion, stages: Sequence[_Stage], number: int):
        self.method, self.motion, self.stages, self.number = method, motion, stages, number

    def __call__(self, row: list[Scalar]) -> list[Scalar]:
        return [*self.earlier(_array(row[:-1])[None], row[-1])[0].tolist(), row[-1]]

    def earlier(self, rows: np.ndarray, h: Scalar) -> np.ndarray:
        """The rows before the stage, except for the step length h."""
        number, stage = self.number, self.stages[self.number]
        weight, count = self.method.weights[number], len(self.stages)
        by_q, by_v, by_tau, of_u, of_speed, *felt = np.split(rows, 5 + 2 * count, axis=1)
        of_rates, of_slopes = felt[:count], felt[count:]
        slopes = of_slopes[number] + _scaled(of_speed, -weight, h)
        of_position, of_velocity, of_tau = _pulled_back(stage.accelerations, slopes)
        by_speed, by_u = _pull_back_rates(self.motion, stage, of_rates[number] + _scaled(of_u, weight, h))
        by_speed = by_speed + of_velocity
        if number:
            of_position, further = _pull_back_move(stage.turns, of_position)
            by_u = by_u + further
        for earlier, coefficient in enumerate(self.method.stages[number]):
            if coefficient:
                of_rates[earlier] = of_rates[earlier] + _scaled(by_u, coefficient, h)
                of_slopes[earlier] = of_slopes[earlier] + _scaled(by_speed, -coefficient, h)
        blocks = by_q + of_position, by_v + by_speed, by_tau + of_tau, of_u, of_speed, *of_rates, *of_slopes
        return np.concatenate(blocks, axis=1)


def _sum(start: np.ndarray, terms: Iterable[tuple[float, np.ndarray]], h: Scalar) -> np.ndarray:
    for coefficient, rate in terms:
        start = start + _scaled(rate, coefficient, h)
    return start


def _scaled(numbers: np.ndarray, coefficient: float, h: Scalar) -> np.ndarray:
    return numbers * _array([h * coefficient]) if coefficient else np.full_like(numbers, 0.0)


def _pulled_back(accelerations: Accelerations | AccelerationsBySweeps, rows: np.ndarray) -> list[np.ndarray]:
    """Minus rows times the derivatives of the accelerations."""
    changes = np.full((len(rows), 3 * rows.shape[1]), 0.0, dtype=object)
    some = [k for k, row in enumerate(rows) if not all(map(is_zero, row))]
    for k, products in zip(some, accelerations.pulled_back([rows[k].tolist() for k in some]), strict=True):
        changes[k] = products
    return np.split(changes, 3, axis=1)


def _pull_back_move(turns: Sequence[_Turn], rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows times E and F of a step: F, and E = 1 - F ad applied as the rows minus their product with F ad."""
    of_q, of_u = rows.copy(), rows.copy()
    for at, ad, ends in turns:
        of_u[:, at] = _product(rows[:, at], ends)
        of_q[:, at] = rows[:, at] - _product(of_u[:, at], ad)
    return of_q, of_u


def _pull_back_rates(motion: _Motion, stage: _Stage, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows times the derivatives by v and u of du/dt = v + [u, v] / 2 + [u, [u, v]] / 12 (``Joint.step_rate``)."""
    of_v, of_u = rows.copy(), np.full_like(rows, 0.0)
    for kind, at in motion.free:
        by_u, by_v = _adjoint(kind, stage.u[at]), _adjoint(kind, stage.v[at])
        twelfth = rows[:, at] * (1.0 / 12.0)
        of_bent = rows[:, at] * 0.5 + _product(twelfth, by_u)  # of [u, v]
        of_v[:, at] = rows[:, at] + _product(of_bent, by_u)
        of_u[:, at] = -_product(of_bent, by_v) - _product(twelfth, _adjoint(kind, _product(by_u, stage.v[at])))
    return of_v, of_u


def _split(method: Splitting, motion: _Motion, q, v, h: Scalar) -> tuple[np.ndarray, np.ndarray]:
    """Derivatives of a step of a splitting method, which takes velocities and positions in turn."""
    v, d_q, d_v = _array(v), motion.d_q, motion.d_v
    for kick, forth in zip(method.kicks, method.drifts, strict=False):
        if kick:
            a, d_a = motion.kicks(q, v, d_q, d_v)
            v, d_v = v + a * _array([h * kick]), d_v + d_a * _array([h * kick])
        if forth:
            q, v, d_q, d_v = motion.drifted(q, v, d_q, d_v, _array([h * forth]))
    return d_q, d_v


# -- joints that turn freely ------------------------------------------------------------------------------


def _adjoint(kind: Joint, u: np.ndarray) -> np.ndarray:
    """(nv, nv): ad_u, which takes x to [u, x]."""
    matrix = np.full((kind.nv, kind.nv), 0.0, dtype=object)
    for i, j, k in np.argwhere(kind.structure_constants).tolist():
        matrix[k, j] = matrix[k, j] + u[i] * float(kind.structure_constants[i, j, k])
    return matrix


def _parts(kind: Joint, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """v without the numbers that joints of the kind transport, and the transported ones alone."""
    rest, transported = v.copy(), v.copy()
    for k in range(kind.nv):
        (rest if k in kind.transported else transported)[k] = 0.0
    return rest, transported


def _ends(kind: Joint, ad: np.ndarray) -> np.ndarray:
    """(nv, nv): F = sum over k of (-ad)^k / (k + 1)!.

    Eigenvalues of ad are 0 and plus or minus i times the angle t of the step, at most twice each, because joints move
    by groups of rigid motions: ad^5 = -2 t^2 ad^3 - t^4 ad.  So the series has five terms, whose coefficients are
    functions of t (those of Barfoot, State Estimation for Robotics, (8.99), for the left Jacobian at -u).
    """
    square = _product(ad, ad)
    t2 = sum(square[i, i] for i in range(kind.nv)) * (-1.0 / _rotations(kind))
    near = t2 < SMALL
    apart = select(near, 2.0, t2)  # away from 0, where the quotients are undefined
    t = sqrt(apart)
    s, c = sin(t), cos(t)
    closed = (
        (4.0 - t * s - 4.0 * c) / (2.0 * apart),
        (4.0 * t - 5.0 * s + t * c) / (2.0 * apart * t),
        (2.0 - t * s - 2.0 * c) / (2.0 * apart * apart),
        (2.0 * t - 3.0 * s + t * c) / (2.0 * apart * apart * t),
    )
    product = np.eye(kind.nv).astype(object)
    power = ad
    for k, (exact, series) in enumerate(zip(closed, _SERIES, strict=True), 1):
        nearby: Scalar = 0.0
        for coefficient in reversed(series):
            nearby = nearby * t2 + coefficient
        product = product + power * _array([select(near, nearby, exact) * (-1.0) ** k])
        power = _product(power, ad)
    return product


def _rotations(kind: Joint) -> float:
    """Number of eigenvalues of ad equal to plus or minus i times the step's angle: 2 for spherical joints, 4 for
    floating ones.
    """
    u = np.linspace(1.0, 2.0, kind.nv)
    ad = _adjoint(kind, u).astype(float)
    return float(np.count_nonzero(np.abs(np.linalg.eigvals(ad)) > 1e-6))


def _series() -> tuple[tuple[float, ...], ...]:
    """Coefficients of the powers of t^2 in the four functions of ``_ends``: contributions of the terms ad^5, ad^6, ...
    of the series, which are multiples of ad, ..., ad^4."""
    terms = 9
    coefficients = np.zeros((4, terms))
    powers = {k: np.eye(4)[k - 1][:, None] * np.eye(1, terms) for k in range(1, 5)}  # ad^k by ad .. ad^4 and by t^2
    factor = 1.0
    for k in range(1, 2 * terms + 3):
        factor /= k + 1
        if k > 4:  # ad^k = -2 t^2 ad^(k-2) - t^4 ad^(k-4)
            powers[k] = -2.0 * _shifted(powers[k - 2], 1) - _shifted(powers[k - 4], 2)
        coefficients += factor * powers[k]
    return tuple(tuple(row) for row in coefficients.tolist())


def _shifted(series: np.ndarray, by: int) -> np.ndarray:
    """A power series times a power of t^2."""
    return np.concatenate([np.zeros((4, by)), series[:, :-by]], axis=1)


_SERIES = _series()


# -- arrays of scalars ------------------------------------------------------------------------------------


def _array(numbers: Sequence[Scalar]) -> np.ndarray:
    array = np.empty(len(numbers), dtype=object)
    array[:] = list(numbers)
    return array


def _product(left: Any, right: np.ndarray) -> np.ndarray:
    return np.asarray(left, dtype=object) @ right


def register_step_derivatives(name: str, method: Method) -> None:
    """Register the derivatives of a method's steps."""
    register(
        Algorithm(
            f"{name}_step_derivatives",
            STEP,
            ("state_by_state", "state_by_tau"),
            partial(step_derivatives, method),
            reason=COMPOSITE_BODIES,
            ports=("wrenches",),
            requires=SOLVES_TREE.or_use(LINEARIZATION),
            sweeps=isinstance(method, Tableau)
            and InLoops(partial(step_derivatives_by_sweeps, method), BY_ROWS, operations_of_derivatives),
        )
    )


for _name, _method in METHODS.items():
    register_step_derivatives(_name, _method)
