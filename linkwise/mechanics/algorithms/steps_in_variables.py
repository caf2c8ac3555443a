"""Time steps in other variables than joint velocities: joint momenta p, and the total joint rates nu or xi of jain1995.

A step leads from (q, v) to (q, v) as in ``integration.py``, but the method is applied to (q, p), (q, nu) or (q, xi).
The initial variables follow from v without inverting the mass matrix.  The final v is solved for once, in place of the
accelerations of a first stage.

Momenta are canonical if velocities are rates of coordinates.  Then ``Partitioned`` methods are symplectic: the error of
the energy stays bounded, unlike in joint velocities, unless the mass matrix is constant.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np

from ...mechanism import Mechanism, MechanismError
from ..operators.plan import apply
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from . import diagonal_by_elimination as by_elimination
from . import expressions as ex
from . import momenta
from .algorithm import SOLVES_TREE, Algorithm, register
from .configuration import MANIFOLD, integrate
from .diagonal import Flow as FlowOfTotalRates
from .integration import (
    METHODS,
    STEP,
    Method,
    Splitting,
    Tableau,
    Vector,
    moved,
    refuse_lost_orders,
    scalars,
    step_rates,
)
from .momentum_flows import FlowOfVelocities

#: ``forces(q, v, more)``: joint forces, wrenches on links or None, and the rates of further states.
ForcesAt = Callable[[Vector, Vector, Vector], tuple[Vector, Any, Vector]]
Slopes = Callable[[float, np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Partitioned:
    """A symplectic method of Runge and Kutta for canonical coordinates: stage i is at q plus ``positions[i][j]`` times
    rate j of q, and at p plus ``momenta[i][j]`` times rate j of p; the step is the sum of ``weights[j]`` times rates.

    Implicit stages are solved by a fixed number of ``iterations``, each of which reduces their error by a factor of the
    order of the step.  (Hairer, Lubich, Wanner: Geometric Numerical Integration, VI.4.)
    """

    positions: tuple[tuple[float, ...], ...]
    momenta: tuple[tuple[float, ...], ...]
    weights: tuple[float, ...]
    iterations: int = 4

    def __post_init__(self) -> None:
        b = np.array(self.weights)
        at_q, at_p = np.array(self.positions), np.array(self.momenta)
        if at_q.shape != at_p.shape or at_q.shape != (len(b), len(b)) or not np.isclose(b.sum(), 1.0):
            raise ValueError(
                "a method of s stages has s x s coefficients for positions and momenta, s weights of sum 1"
            )
        if not np.allclose(b[:, None] * at_p + (b[:, None] * at_q).T, np.outer(b, b)):
            raise ValueError("the method is not symplectic: b_i p_ij + b_j q_ji = b_i b_j does not hold")

    @property
    def evaluations(self) -> int:
        """Number of rate evaluations per step."""
        return self.iterations * len(self.weights)

    @property
    def moments(self) -> tuple[float, ...]:
        """Times at which a step evaluates time-dependent inputs, as fractions of it; its end last."""
        return tuple(sorted({*map(sum, self.positions), 1.0}))

    def advance(
        self, q: np.ndarray, p: np.ndarray, h: Any, first: tuple[np.ndarray, np.ndarray], rates: Slopes
    ) -> tuple[np.ndarray, np.ndarray]:
        """q and p after a step h; ``rates(c, q, p)`` are their rates at the fraction c, ``first`` those at
        the start.
        """
        of_q, of_p = ([x] * len(self.weights) for x in first)
        for _ in range(self.iterations):
            for i, (at_q, at_p) in enumerate(zip(self.positions, self.momenta, strict=True)):
                of_q[i], of_p[i] = rates(sum(at_q), moved(q, h, at_q, of_q), moved(p, h, at_p, of_p))
        return moved(q, h, self.weights, of_q), moved(p, h, self.weights, of_p)


#: Methods for momenta alone, by name.
SYMPLECTIC = {
    "symplectic_euler": Partitioned(((0.0,),), ((1.0,),), (1.0,)),
    "stormer_verlet": Partitioned(((0.0, 0.0), (0.5, 0.5)), ((0.5, 0.0), (0.5, 0.0)), (0.5, 0.5)),
    "implicit_midpoint": Partitioned(((0.5,),), ((0.5,),), (1.0,)),
}


# -- variables ------------------------------------------------------------------------------------------------


class Flow(Protocol):
    """Motion of a tree, in variables x."""

    @property
    def variables(self) -> Vector:
        """(nv,): x."""

    @property
    def velocities(self) -> Vector:
        """(nv,): v."""

    def rates(self, tau: Sequence[Scalar], wrenches: Any = None) -> Vector:
        """(nv,): dx/dt."""


class Variables(Protocol):
    """Variables in place of v."""

    def from_velocities(self, tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Flow:
        """The motion with joint velocities v."""

    def flow(self, tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]) -> Flow:
        """The motion with variables x."""


@dataclass(frozen=True)
class Momenta:
    """p = M v; ``form``: the method for v, one of ``momenta.FORMS``."""

    form: str = momenta.FILTER

    def from_velocities(self, tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Flow:
        return FlowOfVelocities(Configuration(tree, q), v)

    def flow(self, tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]) -> Flow:
        return momenta.flow_of_tree(tree, q, x, self.form)


@dataclass(frozen=True)
class TotalRates:
    """nu = m* v, or xi without normalization."""

    normalized: bool

    def from_velocities(self, tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Flow:
        if tree.mechanism.coordinates.mimic_joints:
            return self.flow(tree, q, by_elimination.rates(tree, q, v, self.normalized))
        return self.flow(tree, q, apply(ex.total_rates(tree.mechanism, self.normalized), tree.regrouped, q, v=v))

    def flow(self, tree: Tree, q: Sequence[Scalar], x: Sequence[Scalar]) -> Flow:
        kind = _CoupledTotalRates if tree.mechanism.coordinates.mimic_joints else _TotalRatesOfTree
        return kind(tree, q, list(x), self.normalized)


class _TotalRatesOfTree:
    """Total rates of a tree, by rates of articulated inertias."""

    def __init__(self, tree: Tree, q: Sequence[Scalar], x: Vector, normalized: bool):
        self.variables, self._tree = x, tree
        self._flow = FlowOfTotalRates(tree, q, x, normalized)

    @property
    def velocities(self) -> Vector:
        return [x for moving in self._flow.moving for x in moving.rates]

    def rates(self, tau: Sequence[Scalar], wrenches: Any = None) -> Vector:
        pushes = self._flow.pushes(self._tree.per_joint(tau), wrenches, gravity=True)
        return [x for part in self._flow.quasi_accelerations(pushes) for x in part]


class _CoupledTotalRates:
    """Total rates where joints mimic others, by elimination."""

    def __init__(self, tree: Tree, q: Sequence[Scalar], x: Vector, normalized: bool):
        self.variables, self._tree, self._q, self._normalized = x, tree, q, normalized

    @property
    def velocities(self) -> Vector:
        return by_elimination.velocities(self._tree, self._q, self.variables, self._normalized)

    def rates(self, tau: Sequence[Scalar], wrenches: Any = None) -> Vector:
        motion = by_elimination.motion(self._tree, self._q, self.variables, tau, wrenches, self._normalized)
        return motion[0]


#: By the names that ``rollout`` and ``simulate`` take as ``coordinates``; functions of the remaining options.
VARIABLES: dict[str, Callable[..., Variables]] = {
    "momentum": Momenta,
    "nu": partial(TotalRates, True),
    "xi": partial(TotalRates, False),
}


def methods_in(coordinates: str) -> dict[str, Method | Partitioned]:
    """The methods with fixed steps, by name: symplectic ones in momenta alone."""
    return {**METHODS, **SYMPLECTIC} if coordinates == "momentum" else dict(METHODS)


# -- steps ----------------------------------------------------------------------------------------------------


def step(
    coordinates: str, method: Method | Partitioned, tree: Tree, q, v, tau, dt, wrenches=None, **options: str
) -> Vector:
    """(nq + nv,): q and v after dt under constant forces."""
    rule = StepInVariables(method, VARIABLES[coordinates](**options), tree, lambda *_: (tau, wrenches, []))
    return rule.advanced(q, v, dt)


def register_variable_steps(method: str) -> None:
    """Register the steps of a method in all variables that support it."""
    for coordinates in VARIABLES:
        if method in methods_in(coordinates):
            _register_step(coordinates, method)


def _register_step(coordinates: str, method: str) -> None:
    register(
        Algorithm(
            f"{coordinates}_{method}_step",
            STEP,
            "state",
            partial(step, coordinates, methods_in(coordinates)[method]),
            options=("form",) if coordinates == "momentum" else (),
            reason=MANIFOLD,
            ports=("wrenches",),
            requires=SOLVES_TREE.or_use("coordinates='joint'"),
            sweeps=True,
        )
    )


for _coordinates in VARIABLES:
    for _name in methods_in(_coordinates):
        _register_step(_coordinates, _name)


@dataclass(frozen=True)
class StepInVariables:
    """A step of a method in other variables than joint velocities, under ``forces``."""

    method: Method | Partitioned
    variables: Variables
    tree: Tree
    forces: ForcesAt

    def advanced(self, q: Sequence[Scalar], v: Sequence[Scalar], dt: Any, more: Sequence[Scalar] = ()) -> Vector:
        """q, v and ``more`` after dt."""
        q, x, more = self.advanced_from(self.variables.from_velocities(self.tree, q, v), q, dt, more)
        return [*q, *self.variables.flow(self.tree, q, x).velocities, *more]

    def advanced_from(
        self, start: Flow, q: Sequence[Scalar], dt: Any, more: Sequence[Scalar] = ()
    ) -> tuple[Vector, Vector, Vector]:
        """q, the variables and ``more`` after dt; no configuration is evaluated except at the stages."""
        h, x = scalars([dt.item() if hasattr(dt, "item") else dt]), scalars([*start.variables, *more])
        if isinstance(self.method, Partitioned):
            reached, x = self._partitioned(self.method, start, list(q), x, h)
        elif isinstance(self.method, Splitting):
            reached, x = self._split(self.method, start, list(q), x, h)
        else:
            reached, x = self._runge_kutta(self.method, start, list(q), x, h)
        n = self.tree.mechanism.nv
        return reached, x[:n].tolist(), x[n:].tolist()

    def _rates(self, flow: Flow, q: Vector, more: Vector) -> tuple[Vector, Vector]:
        """v, and the rates of the variables and of further states."""
        tau, wrenches, changes = self.forces(q, flow.velocities, more)
        return flow.velocities, [*flow.rates(tau, wrenches), *changes]

    def _split(self, method: Splitting, first: Flow, q: Vector, x: np.ndarray, h: Any) -> tuple[Vector, np.ndarray]:
        """A splitting step: x and positions advance in turn, positions with the velocities that belong to x."""
        tree, n, start = self.tree, self.tree.mechanism.nv, x

        def kick(_: float, at: Vector, x: np.ndarray) -> np.ndarray:
            flow = first if x is start else self.variables.flow(tree, at, x[:n].tolist())
            return scalars(self._rates(flow, at, x[n:].tolist())[1])

        def drift(at: Vector, x: np.ndarray, h: Any) -> tuple[Vector, np.ndarray]:
            return integrate(tree, at, self.variables.flow(tree, at, x[:n].tolist()).velocities, h), x

        return method.advance(q, x, h, kick, drift)

    def _runge_kutta(self, method: Tableau, first: Flow, q: Vector, x: np.ndarray, h: Any) -> tuple[Vector, np.ndarray]:
        """A Runge-Kutta method, applied to the tangent step of the configuration, and to x."""
        tree, n = self.tree, self.tree.mechanism.nv
        refuse_lost_orders(method, tree.mechanism)
        start = scalars([*[0.0] * n, *x])

        def slopes(_: float, y: np.ndarray) -> np.ndarray:
            u, x, more = y[:n].tolist(), y[n : 2 * n].tolist(), y[2 * n :].tolist()
            there = q if y is start else integrate(tree, q, u, 1.0)
            v, changes = self._rates(first if y is start else self.variables.flow(tree, there, x), there, more)
            return scalars([*step_rates(tree, u, v), *changes])

        reached = method.advance(start, h, slopes)
        return integrate(tree, q, reached[:n].tolist(), 1.0), reached[n:]

    def _partitioned(
        self, method: Partitioned, first: Flow, q: Vector, x: np.ndarray, h: Any
    ) -> tuple[Vector, np.ndarray]:
        """A symplectic method, applied to q and x."""
        refuse_rotating_axes(self.tree.mechanism)
        n = self.tree.mechanism.nv

        def rates(_: float, at: np.ndarray, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            flow = self.variables.flow(self.tree, at.tolist(), y[:n].tolist())
            of_q, of_x = self._rates(flow, at.tolist(), y[n:].tolist())
            return scalars(of_q), scalars(of_x)

        of_q, of_x = self._rates(first, q, x[n:].tolist())
        reached, x = method.advance(scalars(q), x, h, (scalars(of_q), scalars(of_x)), rates)
        return reached.tolist(), x


def refuse_rotating_axes(mechanism: Mechanism) -> None:
    """Momenta along axes that rotate with their joint are not canonical."""
    for body in mechanism.bodies:
        if not body.kind.rates_are_velocities:
            raise MechanismError(
                f"symplectic methods need canonical coordinates, and joint {body.joint!r} of mechanism "
                f"{mechanism.name!r} has velocities along axes that rotate with it: take method='rk4' or an adaptive "
                "one"
            )
