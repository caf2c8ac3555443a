"""Results of a study: arrays by name, with labels and units, their statistics and pictures."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from . import pictures, statistics
from .errors import StudyError, library

CASE = "case"  # the axis of cases, and the column of their numbers
PARTS = ("real", "imag")  # of complex arrays, which tables have as columns of their own


class Entry(NamedTuple):
    """An array (no index), or one column of its table."""

    array: str
    part: str = ""  # "real" or "imag" of a complex array, "" for the numbers themselves
    indices: tuple[int, ...] | None = None


class Results:
    """Arrays (cases, ...) of the cases that are done, by name, read from the store when they are asked for.

    ``results["positions"]`` is an array, ``results["positions[elbow]"]`` one column of it as ``table`` names it.  Both
    are the same whichever store they are in, and so is the order of ``names``.

    record    the study as plain data
    names     of all arrays: what varied, then what was computed
    done      (n_cases,): which cases are
    cases     the numbers of these
    """

    def __init__(self, record: Mapping[str, Any], arrays: Mapping[str, Any], done: np.ndarray):
        self.record, self.done = record, done
        self._arrays = arrays
        self._entries: dict[str, Entry] = {}

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
        """Names of the quantities that varied."""
        return tuple(name for name in self._arrays if name in self.record["varied"])

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._arrays)

    @property
    def over_time(self) -> tuple[str, ...]:
        """Names of the arrays that have an axis of time."""
        return tuple(name for name in self.names if "t" in self.axes(name))

    def __iter__(self) -> Iterator[str]:
        return iter(self.names)

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __repr__(self) -> str:
        state = "complete" if self.complete else f"{int(self.done.sum())} done"
        return f"<Results of {self.n_cases} cases ({state}): {', '.join(self.names)}>"

    def __getitem__(self, name: str) -> np.ndarray:
        return self.part(name)

    def part(self, name: str, *index: Any) -> np.ndarray:
        """An array, or the part of it at an index behind the axis of cases, of the cases that are done: a copy."""
        entry = self._entry(name)
        values = np.array(self._arrays[entry.array][(slice(None), *(entry.indices or ()), *index)])
        if entry.part:
            values = getattr(values, entry.part)
        return values if self.complete else values[self.done]

    def shape(self, name: str) -> tuple[int, ...]:
        """Shape of an array behind the axis of cases."""
        entry = self._entry(name)
        return () if entry.indices is not None else tuple(self._arrays[entry.array].shape[1:])

    def _entry(self, name: str) -> Entry:
        entry = self._find(name)
        if entry is None:
            raise KeyError(f"no result {name!r}; available: {', '.join(self.names)}")
        return entry

    def _find(self, name: str) -> Entry | None:
        """An array by its name, or one of its columns by the column's."""
        if name in self._arrays:
            return Entry(name)
        if name not in self._entries:
            for array in self._arrays:
                if name.startswith((f"{array}[", *(f"{array}.{part}" for part in PARTS))):
                    self._entries |= self._columns(array)
        return self._entries.get(name)

    def _columns(self, array: str) -> dict[str, Entry]:
        """All columns of an array: where each is in it."""
        shape, dtype = tuple(self._arrays[array].shape[1:]), self._arrays[array].dtype
        parts = PARTS if dtype.kind == "c" else ("",)
        entries = {f"{array}.{part}": Entry(array, part) for part in parts if part}
        for part in parts:
            names = column_names(self.record, array, shape, part)
            entries |= {name: Entry(array, part, k) for name, k in zip(names, np.ndindex(*shape), strict=True)}
        return entries

    def axes(self, name: str) -> tuple[str, ...]:
        """Names of an array's axes, that of cases first."""
        entry = self._entry(name)
        return (CASE, *(axes_of(self.record, entry.array, len(self.shape(name))) if entry.indices is None else ()))

    def labels(self, axis: str, size: int) -> list[Any]:
        """Labels along an axis."""
        labels = self.record["labels"].get(axis, [])
        return labels if len(labels) == size else list(range(size))

    def unit(self, name: str) -> str:
        """The unit of an array; "" where its numbers have several, or none."""
        units = self._units(name)
        return units if isinstance(units, str) else ""

    def _units(self, name: str) -> str | Sequence[str]:
        """The unit of an array, or one for each entry along its last axis."""
        entry = self._entry(name)
        units = self.record["units"].get(entry.array, "")
        if isinstance(units, str) or not entry.indices:
            return units
        return units[entry.indices[-1]] if len(units) == self.shape(entry.array)[-1] else ""

    def _table_columns(self, name: str) -> dict[str, np.ndarray]:
        """An array as columns of a table, by their names."""
        return columns_of(self.record, name, self[name])

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
        units = self._units(name)
        if not isinstance(units, str) and self.shape(name)[-1:] == (len(units),):
            coords[f"{name}_unit"] = axes[-1], units  # of each entry
        array = xarray.DataArray(self[name] if values is None else values, coords, (*lead, *axes), name)
        if self.unit(name):
            array.attrs["units"] = self.unit(name)
        for axis in axes:
            if axis in coords and axis in self.record["units"]:
                array[axis].attrs["units"] = self.record["units"][axis]
        return array

    def table(self, *names: str) -> Any:
        """A ``pandas.DataFrame`` with a row per case: of these arrays, by default of all without an axis of time,
        with a warning that names the others."""
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
            columns |= self._table_columns(name)
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

    quantiles = statistics.quantiles
    summary = statistics.summary
    histogram = statistics.histogram
    sensitivity = statistics.sensitivity
    plot_quantiles = pictures.plot_quantiles
    plot_histogram = pictures.plot_histogram
    plot_sensitivity = pictures.plot_sensitivity


def axes_of(record: Mapping[str, Any], name: str, count: int) -> list[str]:
    """Names of an array's axes behind that of cases."""
    declared = record["axes"].get(name, [])
    return declared if len(declared) == count else [f"{name}_{k}" for k in range(count)]


def column_names(record: Mapping[str, Any], name: str, shape: Sequence[int], part: str = "") -> list[str]:
    """Columns of an array in a table, NAME[LABEL,...]; NAME.real[...] and NAME.imag[...] for ``part``."""
    stem = f"{name}.{part}" if part else name
    if not shape:
        return [stem]
    axes = axes_of(record, name, len(shape))
    labels = [record["labels"].get(axis, []) for axis in axes]
    known = [x if len(x) == size else range(size) for x, size in zip(labels, shape, strict=True)]
    return [f"{stem}[{','.join(map(str, entry))}]" for entry in itertools.product(*known)]


def columns_of(record: Mapping[str, Any], name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """An array (cases, ...) as columns of a table; of complex numbers all real parts, then all imaginary parts."""
    shape = values.shape[1:]
    columns: dict[str, np.ndarray] = {}
    for part in PARTS if np.iscomplexobj(values) else ("",):
        numbers = (getattr(values, part) if part else values).reshape(len(values), math.prod(shape))
        columns |= zip(column_names(record, name, shape, part), np.ascontiguousarray(numbers.T), strict=True)
    return columns
