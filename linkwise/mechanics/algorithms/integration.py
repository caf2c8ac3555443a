"""One step of motion in time under joint forces that stay constant during the step, on the configuration manifold.

A step never leaves the manifold: it is a tangent vector u, along which every joint moves from the start of the step
exactly (``Joint.integrate``), and the method of Runge and Kutta is applied to u and v instead of q and v (Munthe-Kaas,
"Runge-Kutta methods on Lie groups", BIT 38, 1998):

    du/dt = dexp^-1_u(v)    dv/dt = forward dynamics at (q (+) u, v)

Quaternions stay unit, and the order of the method is kept for joints that turn freely up to the order that their
``Joint.step_rate`` carries; methods of higher order are refused there.  For all other joints u is the change of q and
the method is the usual one.

Steps with constraints are in ``constrained_steps.py``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import accumulate, count
from typing import Any

import numpy as np

from ...mechanism import Mechanism, MechanismError
from ..recursions.tree import Tree
from ..scalar import Scalar, folded
from .algorithm import SOLVES_TREE, Algorithm, register
from .configuration import MANIFOLD, difference, drift, integrate, kick_bias
from .dynamics import forward_dynamics

Vector = list[Scalar]
Rates = Callable[[Sequence[Scalar], Vector, Vector, float], Vector]
RootedTree = tuple[int, np.ndarray, int]  # order, elementary weights at the stages, density
ROUNDED = 1e-9  # tolerance of order conditions, for rounded coefficients


@dataclass(frozen=True)
class Tableau:
    """An explicit method of Runge and Kutta, as Butcher writes it: stage i starts from the sum of ``stages[i][j]``
    times slope j, the step is the sum of ``weights[j]`` times slope j."""

    stages: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]

    def __post_init__(self) -> None:
        lengths = [len(coefficients) for coefficients in self.stages]
        if lengths != list(range(len(self.weights))):
            raise ValueError(
                f"an explicit method has as many coefficients at each stage as there are stages before it, and one "
                f"weight per stage: not {lengths} and {len(self.weights)} weights"
            )
        if not self.order:
            raise ValueError(f"the weights of a method must add up to 1, not to {sum(self.weights):g}")

    @cached_property
    def order(self) -> int:
        """The order p of the method: the error of a step is of order p + 1 in its length.  Butcher's conditions hold
        for all rooted trees of up to p nodes (Hairer, Norsett, Wanner: Solving Ordinary Differential Equations I,
        Theorem II.2.13); an explicit method fails at the tall tree with more nodes than it has stages."""
        matrix = np.array([(*row, *[0.0] * (len(self.weights) - len(row))) for row in self.stages])
        trees: list[RootedTree] = []
        for order in count(1):
            grown = [(order, values, order * density) for values, density in _forests(matrix, trees, order - 1)]
            if any(abs(np.dot(self.weights, values) - 1.0 / density) > ROUNDED for _, values, density in grown):
                return order - 1
            trees += grown
        raise AssertionError("no method has all orders")

    @property
    def evaluations(self) -> int:
        """Number of acceleration evaluations per step."""
        return len(self.stages)

    @property
    def moments(self) -> tuple[float, ...]:
        """Times at which a step evaluates time-dependent inputs, as fractions of it; its end last."""
        return tuple(sorted({*map(sum, self.stages), 1.0}))

    @property
    def rows(self) -> np.ndarray | None:
        """(stages, 2): coefficient of the previous slope and weight of the stage's slope, per stage; None if a stage
        uses other slopes."""
        if any(any(row[:-1]) for row in self.stages):
            return None
        return np.array([(row[-1] if row else 0.0, b) for row, b in zip(self.stages, self.weights, strict=True)])

    def advance(self, x: np.ndarray, h: Any, rates: Callable[[float, np.ndarray], np.ndarray]) -> np.ndarray:
        """x after a step h, for scalars or float arrays (..., n); ``rates(c, x)`` is dx/dt at the fraction c of the
        step.
        """
        if x.dtype == object and (reached := self._advance_in_loop(x, h, rates)) is not None:
            return reached
        slopes: list[np.ndarray] = []
        for coefficients in self.stages:
            slopes.append(rates(sum(coefficients), moved(x, h, coefficients, slopes)))
        return moved(x, h, self.weights, slopes)

    def _advance_in_loop(
        self, x: np.ndarray, h: Any, rates: Callable[[float, np.ndarray], np.ndarray]
    ) -> np.ndarray | None:
        """``advance`` as a loop over the stages; None unless all stages are alike and the trace requests loops. Each
        stage takes the previous slope, and the start plus weighted slopes of all previous stages."""
        rows, n = self.rows, len(x)
        if rows is None:
            return None

        def stage(numbers: Vector, row: Vector) -> Vector:
            slope, reached = np.split(scalars(numbers), 2)
            before, weight = np.split(scalars(row), 2)
            here = rates(0.0, x + slope * (h * before))
            return [*here, *(reached + here * (h * weight))]

        end = folded([*[0.0] * n, *x], rows, stage)
        return None if end is None else scalars(end[n:])


def _forests(
    matrix: np.ndarray, trees: Sequence[RootedTree], nodes: int, first: int = 0
) -> Iterator[tuple[np.ndarray, int]]:
    """Subtrees of a root: products of elementary weights and of densities over all multisets of trees with the given
    number of nodes in total, none before ``first``.
    """
    if nodes == 0:
        yield np.ones(len(matrix)), 1
    for k in range(first, len(trees)):
        order, values, density = trees[k]
        if order <= nodes:
            for others, other_density in _forests(matrix, trees, nodes - order, k):
                yield (matrix @ values) * others, density * other_density


@dataclass(frozen=True)
class Splitting:
    """Velocities and positions in turn: v changes by ``kicks[i]`` times dt a(q, v), then q moves by ``drifts[i]`` times
    dt v.  Linear velocities along rotating axes are constant vectors while q moves (``Joint.drift``).  a is the rate of
    such a vector: the rate of its components plus ``Joint.kick_bias`` for the rotation of the axes."""

    kicks: tuple[float, ...]
    drifts: tuple[float, ...]

    @property
    def evaluations(self) -> int:
        """Number of acceleration evaluations per step."""
        return sum(kick != 0.0 for kick in self.kicks)

    @property
    def moments(self) -> tuple[float, ...]:
        """Times at which a step evaluates time-dependent inputs, as fractions of it; its end last."""
        times = (0.0, *accumulate(self.drifts))
        return tuple(sorted({*(c for c, kick in zip(times, self.kicks, strict=False) if kick), 1.0}))

    def advance(self, q: Any, v: np.ndarray, h: Any, acceleration: Callable[..., Any], drift: Callable[..., Any]):
        """q and v after a step h; ``acceleration(c, q, v)`` is evaluated at the fraction c, ``drift(q, v, h)`` moves
        the positions.
        """
        times = (0.0, *accumulate(self.drifts))
        for c, kick, forth in zip(times, self.kicks, self.drifts, strict=False):
            if kick:
                v = v + acceleration(c, q, v) * (h * kick)
            if forth:
                q, v = drift(q, v, h * forth)
        return q, v


Method = Tableau | Splitting
#: The methods with fixed steps, by name: compiled steps, ``lw.rollout`` and ``lw.simulate`` all read this table.
METHODS: dict[str, Method] = {
    "rk4": Tableau(stages=((), (0.5,), (0.0, 0.5), (0.0, 0.0, 1.0)), weights=(1 / 6, 1 / 3, 1 / 3, 1 / 6)),
    "semi_implicit": Splitting(kicks=(1.0,), drifts=(1.0,)),
}


def step(method: Method, tree: Tree, q, v, tau, dt, wrenches=None) -> Vector:
    """(nq + nv,): q and v after dt."""
    return advanced(method, tree, q, v, dt, lambda q, v, *_: forward_dynamics(tree, q, v, tau, wrenches))


STEP = ("q", "v", "tau", "dt")


def register_steps(name: str, method: Method) -> None:
    """Register the steps of a method for trees."""
    register(
        Algorithm(
            f"{name}_step",
            STEP,
            "state",
            partial(step, method),
            reason=MANIFOLD,
            ports=("wrenches",),
            requires=SOLVES_TREE.or_use(f"closed_{name}_step, linkwise.rollout or linkwise.simulate"),
            sweeps=True,
        )
    )


for _name, _method in METHODS.items():
    register_steps(_name, _method)


def advanced(method: Method, tree: Tree, q, v, dt, rates: Rates, more: Sequence[Scalar] = ()) -> Vector:
    """q, v and ``more`` after dt. ``rates(q, v, more, c)`` returns the rates of v and of further states (such as
    actuator activations), concatenated, after the part c of the step."""
    dt = scalars([dt.item() if hasattr(dt, "item") else dt])  # because arrays of scalars do not multiply scalars
    n = len(v)

    def changes(c: float, q: Sequence[Scalar], x: np.ndarray) -> np.ndarray:
        return scalars(rates(q, x[:n].tolist(), x[n:].tolist(), c))

    if isinstance(method, Splitting):

        def kick(c: float, q: Sequence[Scalar], x: np.ndarray) -> np.ndarray:
            return changes(c, q, x) + scalars([*kick_bias(tree, x[:n].tolist()), *[0.0] * (len(x) - n)])

        def moved(q: Sequence[Scalar], x: np.ndarray, h: Any) -> tuple[Vector, np.ndarray]:
            end = drift(tree, q, x[:n].tolist(), h)
            return end[: len(q)], scalars([*end[len(q) :], *x[n:]])

        q, x = method.advance(list(q), scalars([*v, *more]), dt, kick, moved)
        return [*q, *x.tolist()]
    refuse_lost_orders(method, tree.mechanism)

    def slopes(c: float, x: np.ndarray) -> np.ndarray:
        u = x[:n]
        there = q if x is start else integrate(tree, q, u.tolist(), 1.0)
        return scalars([*step_rates(tree, u.tolist(), x[n : 2 * n].tolist()), *changes(c, there, x[n:])])

    start = scalars([0.0] * n + [*v, *more])
    reached = method.advance(start, dt, slopes)
    return [*integrate(tree, q, reached[:n].tolist(), 1.0), *reached[n:].tolist()]


def refuse_lost_orders(method: Tableau, mechanism: Mechanism) -> None:
    for body in mechanism.bodies:
        if not body.kind.steps_commute and method.order > body.kind.step_order:
            raise MechanismError(
                f"a Runge-Kutta method of order {method.order} would only reach order {body.kind.step_order} on joint "
                f"{body.joint!r} of mechanism {mechanism.name!r}, whose steps do not commute: take a method of order "
                f"{body.kind.step_order}, or give {type(body.kind).__name__} a step_rate (and step_order) of more terms"
            )


def fed_back(tree: Tree, q, v, tau, target, kp, kd, gain=None) -> Vector:
    """(nv,): ``tau + kp (target - q) - kd v + gain [target - q; -v]``, the output of a digital controller, with
    ``difference(q, target)`` for ``target - q``; the gain is (nv, 2 nv)."""
    error = difference(tree, q, target)
    forces = [f + p * x - d * w for f, p, x, d, w in zip(tau, kp, error, kd, v, strict=True)]
    if gain is None:
        return forces
    state = [*error, *(-w for w in v)]
    return [f + sum((k * x for k, x in zip(row, state, strict=True)), 0.0) for f, row in zip(forces, gain, strict=True)]


def moved(x: np.ndarray, h: Any, coefficients: Sequence[float], slopes: Sequence[np.ndarray]) -> np.ndarray:
    """x + h * sum of coefficient times slope."""
    for coefficient, slope in zip(coefficients, slopes, strict=True):
        if coefficient:
            x = x + slope * (h * coefficient)
    return x


def scalars(numbers: Sequence[Scalar]) -> np.ndarray:
    """Scalars, numbers or symbols, as an array."""
    array = np.empty(len(numbers), dtype=object)
    array[:] = list(numbers)
    return array


def step_rates(tree: Tree, u: Vector, v: Vector) -> Vector:
    """du/dt of every independent joint."""
    pairs = ((b.kind, tree.mechanism.v_index(b.joint)) for b in tree.mechanism.bodies if not b.mimic)
    return [x for kind, at in pairs for x in kind.step_rate(u[at], v[at])]
