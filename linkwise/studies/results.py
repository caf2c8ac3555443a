"""Results of a study: arrays by name, with labels and units, their statistics and pictures."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from .errors import StudyError, library


class Results:
    """``results["positions"]`` is an array (cases, ...) of the cases that are done, read when asked for.

    record    the study as plain data
    names     of all arrays: what varied, then what was computed
    done      (n_cases,): which cases are
    cases     the numbers of these
    """

    def __init__(self, record: Mapping[str, Any], arrays: Mapping[str, Any], done: np.ndarray):
        self.record, self.done = record, done
        self._arrays = arrays

    @property
    def n_cases(self) -> int:
        return len(self.done)

    @property
    def complete(self) -> bool:
        return bool(self.done.all())

    @property
    def cases(self) -> np.ndarray:
        return np.flatnonzero(self.done)

    @property
    def varied(self) -> tuple[str, ...]:
        """What varied."""
        return tuple(name for name in self._arrays if self._base(name) in self.record["varied"])

    @property
    def names(self) -> tuple[str, ...]:
        varied = self.varied
        return (*varied, *(name for name in self._arrays if name not in varied))

    @property
    def over_time(self) -> tuple[str, ...]:
        """Those that have an axis of time."""
        return tuple(name for name in self.names if "t" in self.axes(name))

    def _base(self, name: str) -> str:
        """The quantity that a column of a table belongs to."""
        return name if name in self.record["varied"] else name.partition("[")[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return name in self._arrays

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"{int(self.done.sum())} done"
        return f"<Results of {self.n_cases} cases ({state}): {', '.join(self.names)}>"

    def __getitem__(self, name: str) -> np.ndarray:
        return self.part(name)

    def part(self, name: str, *index: Any) -> np.ndarray:
        """An array, or the part of it at an index behind the axis of cases, of the cases that are done."""
        values = np.asarray(self._array(name)[(slice(None), *index)])
        return values if self.complete else values[self.done]

    def shape(self, name: str) -> tuple[int, ...]:
        """Of an array, behind the axis of cases."""
        return tuple(self._array(name).shape[1:])

    def _array(self, name: str) -> Any:
        if name not in self._arrays:
            raise KeyError(f"no result {name!r}; available: {', '.join(self.names)}")
        return self._arrays[name]

    def axes(self, name: str) -> tuple[str, ...]:
        """Names of an array's axes, that of cases first."""
        from .stores import axes_of

        return ("case", *axes_of(self.record, name, len(self.shape(name))))

    def labels(self, axis: str, size: int) -> list[Any]:
        """What is along an axis."""
        found = self.record["labels"].get(axis, [])
        return found if len(found) == size else list(range(size))

    def unit(self, name: str) -> str:
        """The unit of an array; "" where its numbers have several, or none."""
        found = self.record["units"].get(self._base(name), "")
        return found if isinstance(found, str) else ""

    def dataset(self) -> Any:
        """All of it as an ``xarray.Dataset`` with named axes, labels and units, for any further analysis."""
        names = self.names
        return library("xarray", "dataset()", "labelled").Dataset({name: self.data_array(name) for name in names})

    def data_array(self, name: str, values: np.ndarray | None = None, lead: Mapping[str, Any] | None = None) -> Any:
        """An array with its labels; or ``values`` that have ``lead`` {axis: labels} in place of the axis of cases."""
        xarray = library("xarray", "labelled results", "labelled")
        lead = {"case": self.cases} if lead is None else lead
        axes = self.axes(name)[1:]
        coords = dict(lead)
        for axis, size in zip(axes, self.shape(name), strict=True):
            if size and self.record["labels"].get(axis) and len(self.record["labels"][axis]) == size:
                coords[axis] = self.record["labels"][axis]
        units = self.record["units"].get(name, "")
        if not isinstance(units, str) and self.shape(name)[-1:] == (len(units),):
            coords[f"{name}_unit"] = axes[-1], units  # of each entry
        found = xarray.DataArray(self[name] if values is None else values, coords, (*lead, *axes), name)
        if self.unit(name):
            found.attrs["units"] = self.unit(name)
        for axis in axes:
            if axis in coords and axis in self.record["units"]:
                found[axis].attrs["units"] = self.record["units"][axis]
        return found

    def table(self, *names: str) -> Any:
        """A ``pandas.DataFrame`` with a row per case: of these arrays, by default of all without an axis of time,
        with a warning that names the others."""
        from .stores import columns_of

        pandas = library("pandas", "table()", "labelled")
        chosen = names or tuple(name for name in self.names if name not in self.over_time)
        if not names and self.over_time:
            warnings.warn(
                f"the table leaves out {', '.join(self.over_time)}, which have an axis of time: name what it shall "
                "have, or take dataset()",
                stacklevel=2,
            )
        columns: dict[str, np.ndarray] = {}
        for name in chosen:
            columns |= columns_of(self.record, name, self[name])
        return pandas.DataFrame(columns, index=pandas.Index(self.cases, name="case"))

    def save_table(self, path: str | Path, *names: str) -> None:
        """Write ``table`` as .csv or .parquet."""
        file, table = Path(path), self.table(*names)
        if file.suffix == ".csv":
            table.to_csv(file)
        elif file.suffix == ".parquet":
            library("pyarrow", "Parquet")
            table.to_parquet(file)
        else:
            raise StudyError(f"tables are written as .csv or .parquet, not as {file.name!r}")

    # Statistics and pictures -----------------------------------------------------------------------------------------

    def quantiles(self, name: str, probabilities: float | Sequence[float] = (0.05, 0.5, 0.95)) -> Any:
        """(quantile, ...): of an array over all cases; of one probability without that axis."""
        from .statistics import quantiles

        return quantiles(self, name, probabilities)

    def summary(self, name: str) -> Any:
        """(statistic, ...): mean, standard deviation, least and largest value of an array over all cases."""
        from .statistics import summary

        return summary(self, name)

    def histogram(self, name: str, bins: int = 50) -> Any:
        """(bin, ...): how many cases have values in equal parts of the range."""
        from .statistics import histogram

        return histogram(self, name, bins)

    def sensitivity(self, name: str, bins: int | None = None) -> Any:
        """Sobol's sensitivity indices of an array: see ``linkwise.studies.statistics.sensitivity``."""
        from .statistics import sensitivity

        return sensitivity(self, name, bins)

    def plot_quantiles(self, name: str, path: str | Path | None = None, **options: Any) -> Any:
        """How an array is spread over the cases, over time or by entry; see ``linkwise.studies.pictures``."""
        from .pictures import plot_quantiles

        return plot_quantiles(self, name, path, **options)

    def plot_histogram(self, name: str, path: str | Path | None = None, **options: Any) -> Any:
        """Histograms of the entries of an array."""
        from .pictures import plot_histogram

        return plot_histogram(self, name, path, **options)

    def plot_sensitivity(self, name: str, path: str | Path | None = None, **options: Any) -> Any:
        """Sensitivity indices as bars, or over time."""
        from .pictures import plot_sensitivity

        return plot_sensitivity(self, name, path, **options)
