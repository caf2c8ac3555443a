"""Distributions of a quantity over the cases of a study, grids and given values.

A distribution maps numbers in (0, 1) to values by its inverse cumulative distribution function.  Random numbers, Latin
hypercubes and Sobol's sequences all use this map.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import ndtr, ndtri

from .errors import StudyError

if TYPE_CHECKING:
    from .quantities import Quantity


__all__ = [
    "Choice",
    "Distribution",
    "FromScipy",
    "Given",
    "Grid",
    "LogNormal",
    "MultivariateNormal",
    "Normal",
    "Offset",
    "Relative",
    "Triangular",
    "Uniform",
    "WithinLimits",
]
__dir__ = __all__.copy


@dataclass(frozen=True)
class Distribution:
    """``values(u, quantity)``: (cases, *shape) from numbers u (cases, columns) in (0, 1)."""

    def columns(self, quantity: Quantity) -> int:
        """Count of numbers drawn in each case."""
        return math.prod(quantity.shape)

    def values(self, u: np.ndarray, quantity: Quantity) -> np.ndarray:
        return np.asarray(self.inverse(u.reshape(len(u), *quantity.shape)), dtype=float)

    def inverse(self, u: np.ndarray) -> np.ndarray:
        """The value whose cumulative probability is u; array parameters broadcast against u."""
        raise NotImplementedError

    def _check(self, right: Any, message: str) -> None:
        for name, value in vars(self).items():
            if np.asarray(value).dtype.kind == "f" and np.isnan(value).any():
                raise StudyError(f"{self}: {name} must be a number, not NaN")
        if not np.all(right):
            raise StudyError(f"{self}: {message}")


@dataclass(frozen=True)
class Uniform(Distribution):
    """Uniform between ``low`` and ``high``."""

    low: Any
    high: Any

    def __post_init__(self) -> None:
        self._check(np.asarray(self.low) <= np.asarray(self.high), "low must not be above high")

    def inverse(self, u: np.ndarray) -> np.ndarray:
        low, high = np.asarray(self.low, float), np.asarray(self.high, float)
        return low + (high - low) * u


@dataclass(frozen=True)
class Normal(Distribution):
    """Gauss's distribution with ``mean`` and standard deviation ``std``, truncated at ``low`` and ``high``."""

    mean: Any = 0.0
    std: Any = 1.0
    low: Any = -np.inf
    high: Any = np.inf

    def __post_init__(self) -> None:
        self._check(np.asarray(self.std) >= 0.0, "std must not be negative")
        self._check(np.asarray(self.low) < np.asarray(self.high), "low must be below high")

    def inverse(self, u: np.ndarray) -> np.ndarray:
        mean, std = np.asarray(self.mean, float), np.asarray(self.std, float)
        if np.all(np.isneginf(self.low)) and np.all(np.isposinf(self.high)):
            return mean + std * ndtri(u)
        with np.errstate(divide="ignore", invalid="ignore"):
            below, above = ndtr((self.low - mean) / std), ndtr((self.high - mean) / std)
        return np.clip(mean + std * ndtri(below + (above - below) * u), self.low, self.high)


@dataclass(frozen=True)
class LogNormal(Distribution):
    """Positive numbers around ``median`` whose logarithms are normal with standard deviation ``sigma``."""

    median: Any
    sigma: Any

    def __post_init__(self) -> None:
        self._check(np.asarray(self.median) > 0.0, "the median must be positive")
        self._check(np.asarray(self.sigma) >= 0.0, "sigma must not be negative")

    def inverse(self, u: np.ndarray) -> np.ndarray:
        return np.asarray(self.median, float) * np.exp(np.asarray(self.sigma, float) * ndtri(u))


@dataclass(frozen=True)
class Triangular(Distribution):
    """Triangular between ``low`` and ``high``, with the peak at ``mode``."""

    low: Any
    mode: Any
    high: Any

    def __post_init__(self) -> None:
        low, mode, high = (np.asarray(x, float) for x in (self.low, self.mode, self.high))
        self._check((low <= mode) & (mode <= high) & (low < high), "low <= mode <= high, low < high are needed")

    def inverse(self, u: np.ndarray) -> np.ndarray:
        low, mode, high = (np.asarray(x, float) for x in (self.low, self.mode, self.high))
        left = low + np.sqrt(u * (high - low) * (mode - low))
        right = high - np.sqrt((1.0 - u) * (high - low) * (high - mode))
        return np.where(u * (high - low) < mode - low, left, right)


@dataclass(frozen=True)
class MultivariateNormal(Distribution):
    """Correlated normal numbers with ``mean`` (k,) and ``covariance`` (k, k)."""

    mean: Any
    covariance: Any

    def __post_init__(self) -> None:
        try:
            np.linalg.cholesky(np.asarray(self.covariance, float))
        except (np.linalg.LinAlgError, ValueError):
            raise StudyError(f"{self}: the covariance must be a symmetric matrix with positive eigenvalues") from None

    def inverse(self, u: np.ndarray) -> np.ndarray:
        factor, z = np.linalg.cholesky(np.asarray(self.covariance, float)), ndtri(u)
        if z.shape[-1] != len(factor):
            raise StudyError(f"{self} has {len(factor)} numbers, but {z.shape[-1]} are needed")
        values = np.asarray(self.mean, float) + np.zeros_like(z)
        for k in range(len(factor)):  # sums in one order, however many cases there are
            values = values + factor[:, k] * z[..., k, None]
        return values


@dataclass(frozen=True)
class Choice(Distribution):
    """One of ``options`` (m, ...), each as likely as its weight; one choice for all numbers of the quantity."""

    options: Sequence[Any]
    weights: Sequence[float] | None = None

    def __post_init__(self) -> None:
        self._check(len(self.options) > 0, "something to choose from is needed")
        if self.weights is not None:
            weights = np.asarray(self.weights, float)
            fit = weights.shape == (len(self.options),) and (weights >= 0.0).all() and weights.sum() > 0.0
            self._check(fit, "one weight per option is needed, none negative")

    def columns(self, quantity: Quantity) -> int:
        return 1

    def values(self, u: np.ndarray, quantity: Quantity) -> np.ndarray:
        weights = np.ones(len(self.options)) if self.weights is None else np.asarray(self.weights, float)
        ends = np.cumsum(weights / weights.sum())
        chosen = np.minimum(np.searchsorted(ends, u[:, 0], side="right"), len(ends) - 1)
        return _rows(self, self.options, quantity)[chosen]


@dataclass(frozen=True)
class Grid(Distribution):
    """All ``points`` (m, ...), combined with all points of other grids of the study."""

    points: Sequence[Any]

    def __post_init__(self) -> None:
        self._check(len(self.points) > 0, "a grid needs points")

    def columns(self, quantity: Quantity) -> int:
        return 0

    def at(self, places: np.ndarray, quantity: Quantity) -> np.ndarray:
        return _rows(self, self.points, quantity)[places]


@dataclass(frozen=True)
class Given(Distribution):
    """One row of a table (cases, ...) for each case; or the ``same`` value for all cases."""

    table: Any
    same: bool = False

    def columns(self, quantity: Quantity) -> int:
        return 0

    def at(self, rows: np.ndarray, quantity: Quantity) -> np.ndarray:
        table = np.asarray(self.table, float)
        if not self.same:
            return _rows(self, table, quantity)[rows]
        return np.broadcast_to(_broadcast(self, table, quantity.shape), (len(rows), *quantity.shape))


@dataclass(frozen=True)
class WithinLimits(Distribution):
    """Uniform over the range of each joint; where that is infinite, over one rotation of an angle."""

    def values(self, u: np.ndarray, quantity: Quantity) -> np.ndarray:
        low, high = quantity.range
        return low + (high - low) * u.reshape(len(u), *quantity.shape)


@dataclass(frozen=True)
class Relative(Distribution):
    """The nominal value times a factor, one for each matrix.  Nominal values are those of the mechanism; of forces and
    gains those of ``Rollout``."""

    factor: Any

    def columns(self, quantity: Quantity) -> int:
        return _drawn(self.factor).columns(quantity.factor)

    def values(self, u: np.ndarray, quantity: Quantity) -> np.ndarray:
        factors = _drawn(self.factor).values(u, quantity.factor)
        return quantity.nominal * factors.reshape(*factors.shape, *(1,) * (quantity.nominal.ndim - factors.ndim + 1))


@dataclass(frozen=True)
class Offset(Distribution):
    """The nominal value plus a step; for configurations a tangent vector (``lw.integrate``)."""

    step: Any

    def columns(self, quantity: Quantity) -> int:
        return _drawn(self.step).columns(quantity.step)

    def values(self, u: np.ndarray, quantity: Quantity) -> np.ndarray:
        return quantity.stepped(_drawn(self.step).values(u, quantity.step))


@dataclass(frozen=True)
class FromScipy(Distribution):
    """A frozen distribution of ``scipy.stats``, or anything else with a method ``ppf``."""

    frozen: Any

    def inverse(self, u: np.ndarray) -> np.ndarray:
        return self.frozen.ppf(u)


def distribution(value: Any) -> Distribution:
    """Convert an argument: a distribution, one of SciPy, or a number or array for all cases."""
    if isinstance(value, Distribution):
        return value
    if hasattr(value, "ppf"):
        return FromScipy(value)
    try:
        return Given(np.asarray(value, float), same=True)
    except (TypeError, ValueError):
        raise StudyError(f"{value!r} is no distribution, number or array of numbers") from None


def _drawn(value: Any) -> Distribution:
    inner = distribution(value)
    if isinstance(inner, (Grid, Given, Relative, Offset, WithinLimits)):
        raise StudyError(f"Relative and Offset take distributions such as Normal(1.0, 0.02), not {value!r}")
    return inner


def _rows(drawn: Distribution, rows: Any, quantity: Quantity) -> np.ndarray:
    """(m, *shape) from rows (m,) or (m, *shape)."""
    array = np.asarray(rows, float)
    if array.ndim == 1:
        array = array.reshape(-1, *(1,) * len(quantity.shape))
    return _broadcast(drawn, array, (len(array), *quantity.shape))


def _broadcast(drawn: Distribution, values: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    try:
        return np.broadcast_to(values, shape)
    except ValueError:
        raise StudyError(f"{type(drawn).__name__} has values of shape {values.shape}, but {shape} is needed") from None
