"""Statistics of results over cases, as labelled arrays of xarray.

Arrays are read in blocks along the axis behind that of cases (mostly time), so that stored ones need not fit into
memory.  Values that are not finite, such as those of missing equilibria, are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from .errors import StudyError, library

if TYPE_CHECKING:
    from .results import Results

BYTES_AT_ONCE = 2**28
ROUND_OFF = 1e-13  # of what values are
STATISTICS: dict[str, Callable[..., np.ndarray]] = {"mean": np.mean, "std": np.std, "min": np.min, "max": np.max}


def quantiles(self: Results, name: str, probabilities: float | Sequence[float] = (0.05, 0.5, 0.95)) -> Any:
    """(quantile, ...): quantiles of an array over all cases; without that axis for one probability."""
    if np.ndim(probabilities) == 0:
        return quantiles(self, name, [probabilities]).isel(quantile=0)  # type: ignore[list-item]
    levels = np.asarray(probabilities, float)
    if levels.ndim != 1 or not ((levels >= 0.0) & (levels <= 1.0)).all():
        raise StudyError(f"probabilities are numbers from 0 to 1, not {probabilities!r}")
    values = _statistic(self, name, lambda x: np.quantile(x, levels), len(levels))
    return self.data_array(name, values, {"quantile": levels})


def summary(self: Results, name: str) -> Any:
    """(statistic, ...): mean, std, min, max, and count of finite values of an array over all cases."""
    values = _statistic(self, name, lambda x: np.array([*(f(x) for f in STATISTICS.values()), x.size]), 5)
    return self.data_array(name, values, {"statistic": [*STATISTICS, "count"]})


def histogram(self: Results, name: str, bins: int = 50) -> Any:
    """(bin, ...): number of cases in ``bins`` equal parts of the range of all entries; "bin" is the middle of each."""
    ranges = _statistic(self, name, lambda x: np.array([x.min(), x.max()]), 2)
    if not np.isfinite(ranges).any():
        raise StudyError(f"{name!r} has no finite values")
    edges = np.histogram_bin_edges(np.array([np.nanmin(ranges), np.nanmax(ranges)]), bins)
    counts = _statistic(self, name, lambda x: np.histogram(x, edges)[0].astype(float), bins)
    array = self.data_array(name, np.nan_to_num(counts).astype(np.int64), {"bin": 0.5 * (edges[1:] + edges[:-1])})
    array["bin"].attrs = {"units": self.unit(name)} if self.unit(name) else {}
    array.attrs = {"edges": edges}
    return array


def sensitivity(self: Results, name: str, bins: int | None = None) -> Any:
    """Sobol's sensitivity indices: the share of the variance of each entry due to each factor.

    The result is an ``xarray.Dataset`` with the axis "factor" first.  "first" is the effect of a factor alone, "total"
    (only for the design "saltelli") its effect with all interactions.  Both are near 0 for factors without influence.

    With ``sampling="saltelli"`` the estimators are those of Saltelli et al. (2010) for "first" and of Jansen (1999) for
    "total".  With other designs "first" is the variance of means over ``bins`` bins of equal count of each factor (by
    default the square root of the number of cases, at most 64), less its expectation by chance.
    ``attrs["estimator"]`` names the estimator.
    """
    xarray = library("xarray", "sensitivity()", "labelled")
    kinds: tuple[str, ...]
    if self.record["definition"]["sampling"] == "saltelli":
        factors = list(self.record["factors"])
        both = _indices_of_design(self, name, len(factors))
        kinds, estimator = ("first", "total"), "Saltelli 2010 (first), Jansen 1999 (total)"
    else:
        every = {column: x for factor in self.varied for column, x in self._table_columns(factor).items()}
        columns = {column: x for column, x in every.items() if np.ptp(x) > 0.0}
        factors = list(columns)
        both = _indices_of_data(self, name, list(columns.values()), bins)[None]
        kinds, estimator = ("first",), "given data, means over bins of equal count"
    lead = {"factor": factors}
    indices = {kind: self.data_array(name, values, lead) for kind, values in zip(kinds, both, strict=True)}
    for array in indices.values():
        array.attrs.pop("units", None)
    return xarray.Dataset(indices, attrs={"estimator": estimator, "of": name})


def _statistic(results: Results, name: str, statistic: Callable[[np.ndarray], np.ndarray], size: int) -> np.ndarray:
    """(size, ...): a statistic of the finite values of every entry."""
    shape = results.shape(name)
    array = np.full((size, *shape), np.nan)
    for at, block in _blocks(results, name):
        flat = block.reshape(len(block), -1)
        columns = np.full((size, flat.shape[1]), np.nan)
        for k in range(flat.shape[1]):
            finite = flat[:, k][np.isfinite(flat[:, k])]
            if finite.size:
                columns[:, k] = statistic(finite)
        array[(slice(None), *at)] = columns.reshape(size, *block.shape[1:])
    return array


def _blocks(results: Results, name: str) -> Iterator[tuple[tuple[slice, ...], np.ndarray]]:
    """Parts of an array along the axis behind that of cases, which fit into memory."""
    shape = results.shape(name)
    if not shape:
        yield (), _real(results.part(name), name)
        return
    row = 16 * results.n_cases * int(np.prod(shape[1:], dtype=int))
    step = max(1, BYTES_AT_ONCE // max(1, row))
    for start in range(0, shape[0], step):
        at = slice(start, min(start + step, shape[0]))
        yield (at,), _real(results.part(name, at), name)


def _real(values: np.ndarray, name: str) -> np.ndarray:
    if np.iscomplexobj(values):
        raise StudyError(f"{name!r} is complex: statistics are of '{name}.real' or '{name}.imag'")
    return values.astype(float)


def _indices_of_design(results: Results, name: str, factors: int) -> np.ndarray:
    """(2, factors, ...): indices from rows A, B and A with single columns of B."""
    if results.record["grid"]:
        raise StudyError("sensitivity indices are of studies without grids")
    array = np.zeros((2, factors, *results.shape(name)))
    block = factors + 2
    complete = np.flatnonzero(results.done.reshape(-1, block).all(axis=1))  # rows of the design that are done
    rank = np.cumsum(results.done) - 1
    rows = rank[(complete[:, None] * block + np.arange(block))]
    for at, values in _blocks(results, name):
        y = values[rows]
        y = y - y[:, :2].mean(axis=(0, 1))  # the estimators of first order are better around zero
        a, b, mixed = y[:, 0], y[:, 1], y[:, 2:]
        with np.errstate(divide="ignore", invalid="ignore"):
            variance = _variance(y[:, :2].reshape(-1, *y.shape[2:]), values)
            first = (b[:, None] * (mixed - a[:, None])).mean(axis=0) / variance
            total = 0.5 * ((a[:, None] - mixed) ** 2).mean(axis=0) / variance
        array[(slice(None), slice(None), *at)] = np.stack([first, total])
    return array


def _indices_of_data(results: Results, name: str, columns: Sequence[np.ndarray], bins: int | None) -> np.ndarray:
    """(factors, ...): variance of the means over bins, as a share of the variance."""
    n = len(results.cases)
    count = min(64, max(2, int(np.sqrt(n)))) if bins is None else bins
    if n < 4 * count:
        raise StudyError(f"{n} cases are too few for {count} bins: four in each at least")
    array = np.zeros((len(columns), *results.shape(name)))
    for at, values in _blocks(results, name):
        variance, indices = _variance(values, values), []
        for column in columns:
            parts = _parts(column, count)
            weights = np.array([len(part) for part in parts])
            means = np.array([values[part].mean(axis=0) for part in parts])
            spread = np.tensordot(weights, (means - values.mean(axis=0)) ** 2, axes=1) / n
            by_chance = (len(parts) - 1) / (n - 1)
            with np.errstate(divide="ignore", invalid="ignore"):
                indices.append(np.maximum(0.0, (spread / variance - by_chance) / (1.0 - by_chance)))
        if indices:
            array[(slice(None), *at)] = indices
    return array


def _variance(drawn: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Variance over cases; NaN where values differ by round-off only, which no factor explains."""
    variance = np.var(drawn, axis=0)
    return np.where(variance > (ROUND_OFF * np.abs(values).max(axis=0)) ** 2, variance, np.nan)


def _parts(column: np.ndarray, count: int) -> list[np.ndarray]:
    """Indices of cases in bins of equal count, or of equal values for factors with few of them."""
    values, inverse = np.unique(column, return_inverse=True)
    if len(values) <= count:
        return [np.flatnonzero(inverse == k) for k in range(len(values))]
    return np.array_split(np.argsort(column, kind="stable"), count)
