"""Independent coordinates of a closed mechanism: the relations R(q, y) = 0 between them and q (spencer2004 2.20-2.33).

Derivatives along q are along tangent directions, so that they act on v.  One state at a time.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.pipeline import compile
from ..compiler.store import float64_function
from ..dynamics import trees as tree
from ..dynamics.states import Float64Array, real_numbers
from ..mechanics.algorithms.catalogue import Algorithm
from ..mechanics.algorithms.configuration import moving
from ..mechanics.algorithms.kinematics import frame_pose
from ..mechanics.jet import jet, parts
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar
from ..mechanism import Mechanism, MechanismError, require_mechanism
from ..mechanism.checks import names_of

Relation = Callable[..., Any]
COMPLEX_STEP = 1e-30  # without subtraction, so that no digits are lost
SETTLED = 1e-13  # relative change of y below which its Newton iteration has converged
FAILING = 1e12  # condition number beyond which coordinates do not describe the motion


class ChartError(MechanismError):
    """Coordinates that do not describe the motion here (2.27, 2.28 violated) or a point out of the chart's reach."""


class Coordinates(NamedTuple):
    """Independent coordinates y = c(q), linear or not: R(q, y) = c(q) - y.

    value(q)      (p,): c(q)
    rows(q)       (p, nv): its derivative, with dy/dt = rows v
    bias(q, v)    (p,): second derivative of y while v is constant
    """

    value: Callable[[Float64Array], Float64Array]
    rows: Callable[[Float64Array], Float64Array]
    bias: Callable[[Float64Array, Float64Array], Float64Array]

    def curvature(self, q: Float64Array, v: Float64Array) -> Float64Array:
        """(p,): the bias; the name that all kinds of coordinates share."""
        return self.bias(q, v)

    def as_implicit(self, q: Float64Array) -> ImplicitCoordinates:
        """These coordinates as a relation, with the guess c(q)."""
        start = np.asarray(self.value(q), dtype=float)
        same = _AsRelation(self, len(start))
        return ImplicitCoordinates(same.residual, same.by_q, same.by_y, same.bias, start)


class _AsRelation(NamedTuple):
    """The equations c(q) - y = 0; a class, because its methods can be pickled."""

    coordinates: Coordinates
    size: int

    def residual(self, q: Float64Array, y: Float64Array) -> Float64Array:
        return self.coordinates.value(q) - y

    def by_q(self, q: Float64Array, y: Float64Array) -> Float64Array:
        return self.coordinates.rows(q)

    def by_y(self, q: Float64Array, y: Float64Array) -> Float64Array:
        return -np.eye(self.size)

    def bias(self, q: Float64Array, v: Float64Array, y: Float64Array, y_rate: Float64Array) -> Float64Array:
        return self.coordinates.bias(q, v)


@dataclass(frozen=True)
class ImplicitCoordinates:
    """Independent coordinates given by p equations R(q, y) = 0 (2.25); make them with ``implicit_coordinates``.

    residual(q, y)           (p,): R
    by_q(q, y)               (p, nv): D1 R
    by_y(q, y)               (p, p): D2 R
    bias(q, v, y, y_rate)    (p,): second derivative of R while v and dy/dt are constant
    guess                    (p,): default guess of y
    recipe                   arguments of ``implicit_coordinates``, for pickling
    """

    residual: Callable[[Float64Array, Float64Array], Float64Array]
    by_q: Callable[[Float64Array, Float64Array], Float64Array]
    by_y: Callable[[Float64Array, Float64Array], Float64Array]
    bias: Callable[[Float64Array, Float64Array, Float64Array, Float64Array], Float64Array]
    guess: Float64Array
    recipe: tuple[Any, ...] | None = field(default=None, repr=False)

    def __reduce__(self) -> Any:
        if self.recipe is not None:
            return implicit_coordinates, self.recipe
        return type(self), (self.residual, self.by_q, self.by_y, self.bias, self.guess)

    def value(self, q: ArrayLike, guess: ArrayLike | None = None, max_steps: int = 30) -> Float64Array:
        """(p,): the y near ``guess`` with R(q, y) = 0: the inverse of Psi (2.14), by Newton's iteration."""
        q, y = real_numbers("q", q), self.guess if guess is None else self.given("guess", guess)
        for _ in range(max_steps):
            change = -self._solve_for_rates(q, y, self.residual(q, y))
            y = y + change
            if not np.isfinite(change).all():
                break
            if np.abs(change).max(initial=0.0) <= SETTLED * (1.0 + np.abs(y).max(initial=0.0)):
                return y
        raise ChartError(
            f"no coordinates y with R(q, y) = 0 are found from {np.array(self.guess if guess is None else guess)}: "
            "give a guess nearer to them"
        )

    def rows(self, q: ArrayLike, y: ArrayLike | None = None) -> Float64Array:
        """(p, nv): dy/dt = rows v, by differentiating R (2.26): -D2 R^-1 D1 R."""
        q = real_numbers("q", q)
        y = self.value(q) if y is None else self.given("y", y)
        return -self._solve_for_rates(q, y, self.by_q(q, y))

    def rate(self, q: ArrayLike, v: ArrayLike, y: ArrayLike) -> Float64Array:
        """(p,): dy/dt (2.26)."""
        rows, v = self.rows(q, y), real_numbers("v", v)
        if v.shape != rows.shape[1:]:
            raise MechanismError(f"v has shape {v.shape}, expected {rows.shape[1:]}: one state at a time")
        return rows @ v

    def curvature(self, q: ArrayLike, v: ArrayLike, y: ArrayLike | None = None) -> Float64Array:
        """(p,): second derivative of y at constant v, from the second derivative of R."""
        q, v = real_numbers("q", q), real_numbers("v", v)
        y = self.value(q) if y is None else self.given("y", y)
        return -self._solve_for_rates(q, y, self.bias(q, v, y, self.rate(q, v, y)))

    def given(self, name: str, values: Any) -> Float64Array:
        """(p,): checked values of these coordinates or their rates; ``name`` is used in errors."""
        y = real_numbers(name, values)
        if y.shape != self.guess.shape:
            raise MechanismError(f"{name} has shape {y.shape}, expected {self.guess.shape}: one number per coordinate")
        return y

    def _solve_for_rates(self, q: np.ndarray, y: np.ndarray, right: Any) -> np.ndarray:
        """D2 R^-1 ``right``; raises ``ChartError`` where (2.27) is violated."""
        matrix = np.asarray(self.by_y(q, y), dtype=float)
        try:
            regular = not matrix.size or np.linalg.cond(matrix) < FAILING  # an empty set of coordinates is regular
        except np.linalg.LinAlgError:
            regular = False
        if not regular:
            raise ChartError(
                f"R(q, y) = 0 does not determine y at q = {q}, y = {y}: D2 R is singular there (2.27 is violated)"
            )
        return np.linalg.solve(matrix, np.asarray(right, dtype=float))


def linear_coordinates(mech: Mechanism, origin: Float64Array, rows: Float64Array) -> Coordinates:
    """y = R (q - origin), the difference taken on the configuration manifold (2.32, 2.33)."""
    linear = _Linear(mech, origin, rows)
    return Coordinates(linear.value, linear.by_q, linear.bias)


class _Linear(NamedTuple):
    """y = rows (q - origin); a class, because its methods can be pickled."""

    mech: Mechanism
    origin: Float64Array
    rows: Float64Array

    def value(self, q: Float64Array) -> Float64Array:
        return self.rows @ tree.difference(self.mech, self.origin, q)

    def by_q(self, q: Float64Array) -> Float64Array:
        return self.rows @ float64_function(self.mech, "difference_jacobian")(self.origin, q)

    def bias(self, q: Float64Array, v: Float64Array) -> Float64Array:
        return self.rows @ float64_function(self.mech, "difference_bias")(self.origin, q, v)


def implicit_coordinates(
    mech: Mechanism,
    relation: Relation,
    guess: ArrayLike,
    frames: Sequence[str] = (),
    by_q: Relation | None = None,
    by_y: Relation | None = None,
    bias: Relation | None = None,
) -> ImplicitCoordinates:
    """Independent coordinates y given by equations R(q, y) = 0, linear or not (2.20, 2.25).

    relation   ``relation(q, y)`` returns one number per coordinate.  Written on scalars (+ - * / ** and
               sin, cos, sqrt, atan2, select of ``linkwise.extend.scalar``) it is compiled with its exact derivatives
    guess      (p,): guess of y
    frames     links whose poses the relation depends on: it is called as ``relation(q, y, *poses)``, each pose an array
               (4, 4) of scalars in the world
    by_q, by_y  derivatives of your own, ``by_q(q, y)`` (p, nv) along tangent directions and ``by_y(q, y)`` (p, p);
               the relation may then be any function of arrays
    bias       ``bias(q, v, y, y_rate)`` (p,): second derivative of R while v and y_rate are constant; left out, it is
               the complex-step derivative of ``by_q`` and ``by_y``, exact if they accept complex arrays
    """
    require_mechanism(mech)
    y = real_numbers("guess", guess).copy()
    if y.ndim != 1 or not np.isfinite(y).all():
        raise MechanismError(f"guess must be the finite coordinates y, shape (p,), not {guess!r}")
    if (by_q is None) != (by_y is None) or (by_q is None and bias is not None):
        raise MechanismError("give both derivatives by_q and by_y (and bias if they take no complex arrays), or none")
    recipe = mech, relation, y, tuple(names_of(frames)), by_q, by_y, bias
    if by_q is None or by_y is None:
        return replace(_traced(mech, relation, y, frames), recipe=recipe)
    if frames:
        raise MechanismError("frames are for relations written on scalars; with by_q and by_y use linkwise.frame_pose")
    residual, left, right = (_checked(function, len(y)) for function in (relation, by_q, by_y))
    second = _checked(bias or _complex_step(mech, by_q, by_y), len(y))
    return ImplicitCoordinates(residual, left, right, second, y, recipe)


def _checked(function: Relation, count: int) -> Relation:
    """The user's function, which raises on results of the wrong length."""

    def call(*arrays: Float64Array) -> Float64Array:
        result = np.asarray(function(*arrays), dtype=float)
        if result.shape[:1] != (count,):
            name = getattr(function, "__name__", "the function")
            raise MechanismError(f"{name} of {count} coordinates must give {count} rows, not shape {result.shape}")
        return result

    return call


def _complex_step(mech: Mechanism, by_q: Relation, by_y: Relation) -> Relation:
    """d/dt (D1 R v + D2 R dy/dt) with v and dy/dt constant."""

    def bias(q: Float64Array, v: Float64Array, y: Float64Array, y_rate: Float64Array) -> Float64Array:
        there = q + 1j * COMPLEX_STEP * tree.coordinate_rates(mech, q, v), y + 1j * COMPLEX_STEP * y_rate
        try:
            rate = np.asarray(by_q(*there)) @ v + np.asarray(by_y(*there)) @ y_rate
        except (TypeError, ValueError) as error:
            raise MechanismError(
                f"by_q and by_y do not take complex arrays ({error}), so their rates are not known: give bias"
            ) from None
        return np.imag(rate) / COMPLEX_STEP

    return bias


# -- relations written on scalars ---------------------------------------------------------------------


def _traced(mech: Mechanism, relation: Relation, guess: np.ndarray, frames: Sequence[str]) -> ImplicitCoordinates:
    """Compiled R, D1 R, D2 R and bias, by evaluating the relation on jets along every direction."""
    count = len(guess)
    frames = names_of(frames)
    for name in frames:
        mech.frame(name)

    def at(model: Tree, q: Sequence[Scalar], y: Sequence[Scalar]) -> list[Scalar]:
        poses = [np.array(frame_pose(model, q, name), dtype=object) for name in frames]
        try:
            values = np.asarray(relation(_array(q), _array(y), *poses), dtype=object)
        except (TypeError, AttributeError) as error:
            raise MechanismError(
                f"the relation cannot be differentiated ({error}): write it with + - * / ** and the functions of "
                "linkwise.extend.scalar, or give by_q and by_y"
            ) from error
        if values.size != count or values.ndim > 1:
            raise MechanismError(
                f"a relation of {count} coordinates gives {count} numbers, not an array of shape {values.shape}"
            )
        return list(values.ravel())

    def slopes(model: Tree, q: Sequence[Scalar], y: Sequence[Scalar]) -> list[list[Scalar]]:
        """(p, nv + p + 1): [D1 R, D2 R, R]."""
        columns = [at(model, moving(model, q, unit), y) for unit in np.eye(mech.nv).tolist()]
        columns += [at(model, q, list(map(jet, y, unit))) for unit in np.eye(count).tolist()]
        rates = [[parts(x)[1] for x in column] for column in columns]
        return [list(row) for row in zip(*rates, at(model, q, y), strict=True)]

    def curvature(
        model: Tree, q: Sequence[Scalar], v: Sequence[Scalar], y: Sequence[Scalar], y_rate: Sequence[Scalar]
    ) -> list[Scalar]:
        return [parts(x)[2] for x in at(model, moving(model, q, v), list(map(jet, y, y_rate)))]

    sizes = {"y": (count,), "y_rate": (count,)}
    values = compile(Algorithm("relation_slopes", ("q", "y"), "slopes", slopes, sizes=sizes), mech)
    second = compile(Algorithm("relation_bias", ("q", "v", "y", "y_rate"), "bias", curvature, sizes=sizes), mech)
    nv = mech.nv
    return ImplicitCoordinates(
        lambda q, y: values(q, y)[:, nv + count],
        lambda q, y: values(q, y)[:, :nv],
        lambda q, y: values(q, y)[:, nv : nv + count],
        second,
        guess,
    )


def _array(numbers: Sequence[Scalar]) -> np.ndarray:
    array = np.empty(len(numbers), dtype=object)
    array[:] = list(numbers)
    return array
