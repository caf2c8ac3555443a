"""Stores of results: memory, a Zarr folder of arrays, a Parquet folder of tables.

All stores keep the same arrays: names, their order, shapes, dtypes and values do not depend on the store.  A store
records which chunks are done.  A chunk is done once all of it is written: its mark is written last, as a whole or not
at all.  A process that dies in the middle of a chunk leaves it undone, and its files are written over: resuming,
retrying and losing workers are the same thing.  Only the process that runs the study writes.
"""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from .errors import StudyError, library
from .record import differences, incomparable
from .results import CASE, Results, axes_of, columns_of

if TYPE_CHECKING:
    from .study import Study

RECORD = "linkwise_study"
ARRAYS = "linkwise_arrays"  # names and layouts of all arrays, in their order
DONE = "done"  # the array of marks
RESERVED = {CASE: "the axis of cases", DONE: "the mark of finished chunks"}
SLASH = "%2F"  # in names of links, where Zarr would see a group
MOST_DIFFERENCES = 3  # named in a message
COLUMNS = 256  # of a table, at most


class Chunk(NamedTuple):
    """Cases ``start`` to before ``stop``, the ``number``-th chunk."""

    number: int
    start: int
    stop: int


class Layout(NamedTuple):
    """Dtype of an array and its shape behind the axis of cases."""

    dtype: np.dtype[Any]
    shape: tuple[int, ...]


class Store:
    """Arrays of a study, written chunk by chunk, with the ``layouts`` of stored arrays by name."""

    def __init__(self, record: dict[str, Any], layouts: Mapping[str, Layout] | None = None):
        self.record = record
        self.layouts = dict(layouts or {})

    def is_done(self, chunk: int) -> bool:
        raise NotImplementedError

    def results(self) -> Results:
        raise NotImplementedError

    def _put(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        """Write all of a chunk, then mark it as done."""
        raise NotImplementedError

    def write(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        """Write a chunk; raises ``StudyError`` if layouts of its arrays differ from those of earlier chunks."""
        layouts = {name: Layout(values.dtype, values.shape[1:]) for name, values in arrays.items()}
        self.layouts = self.layouts or layouts
        if layouts.keys() != self.layouts.keys():
            raise StudyError(
                f"cases {chunk.start} to {chunk.stop - 1} give {sorted(layouts)}, others {sorted(self.layouts)}: all "
                "cases must give the same results; fill up with NaN"
            )
        for name, (dtype, shape) in layouts.items():
            if (dtype, shape) != self.layouts[name]:
                before = self.layouts[name]
                raise StudyError(
                    f"{name!r} is {dtype} of shape {shape} in some cases, {before.dtype} of {before.shape} in others: "
                    "arrays of all cases must have one shape and type"
                )
        self._put(chunk, arrays)


def opened(path: str | Path | None, study: Study) -> Store:
    """The store of a study: a new one, or one that holds results of the same study."""
    record = json.loads(json.dumps(study.record()))
    if path is None:
        return Memory(record)
    folder = Path(path)
    kind = _kind(folder)
    before = kind.recorded(folder)
    if before is not None:
        _require_same(folder, before, record)
        for left in folder.rglob("*.partial"):  # by a writer that was killed
            left.unlink()
    elif folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise StudyError(f"{folder} is there already and no study: give another name")
    else:
        folder.mkdir(parents=True, exist_ok=True)
        kind.create(folder, record)
    return kind(folder, record)


def open_study(path: str | Path) -> Results:
    """The results in a folder that ``Study.run`` wrote, finished or not."""
    folder = Path(path)
    kind = _kind(folder)
    record = kind.recorded(folder)
    if record is None:
        raise StudyError(f"{folder} has no results of a study")
    return kind(folder, record).results()


def _kind(folder: Path) -> type[Zarr] | type[Parquet]:
    """The class of a store, by the ending of its folder's name."""
    kinds: dict[str, type[Zarr] | type[Parquet]] = {".zarr": Zarr, ".parquet": Parquet}
    if folder.suffix not in kinds:
        raise StudyError(f"results are stored as NAME.zarr (arrays) or NAME.parquet (tables), not as {folder.name!r}")
    if folder.suffix == ".parquet":  # raises where the library is missing, before anything is written
        library("pyarrow", "a .parquet store")
    else:
        _zarr()
    return kinds[folder.suffix]


def _require_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    """Raise if the folder has results of another study; warn of objects that cannot be compared."""
    changes = list(islice(differences(before["definition"], now["definition"]), MOST_DIFFERENCES + 1))
    if changes:
        more = "; and more" if len(changes) > MOST_DIFFERENCES else ""
        raise StudyError(
            f"{folder} has results of another study: {'; '.join(changes[:MOST_DIFFERENCES])}{more}. Give another name, "
            "or delete the folder"
        )
    unseen = list(islice(incomparable(now["definition"]), MOST_DIFFERENCES))
    if unseen:
        warnings.warn(
            f"{folder} is resumed, as the study seems to be the same; whether {', '.join(unseen)} changed since is not "
            "known: such objects cannot be pickled",
            stacklevel=4,
        )


def _write_atomically(path: Path, data: bytes) -> None:
    """Write a file through another one, so that it never exists in part."""
    beside = path.with_name(f"{path.name}.partial")
    beside.write_bytes(data)
    os.replace(beside, path)


class Memory(Store):
    """Arrays in memory; nothing but NumPy is needed."""

    def __init__(self, record: dict[str, Any]):
        super().__init__(record)
        self.arrays: dict[str, np.ndarray] = {}
        self.done = np.zeros(self.record["n_cases"], bool)

    def is_done(self, chunk: int) -> bool:
        return False

    def _put(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        for name, values in arrays.items():
            if name not in self.arrays:
                self.arrays[name] = np.zeros((len(self.done), *values.shape[1:]), values.dtype)
            self.arrays[name][chunk.start : chunk.stop] = values
        self.done[chunk.start : chunk.stop] = True

    def results(self) -> Results:
        return Results(self.record, self.arrays, self.done)


class Zarr(Store):
    """A Zarr group with an array per result, whose chunks along the axis of cases are those of the study: each is a
    file of its own, written once.  The array ``done`` marks the chunks that are done."""

    def __init__(self, folder: Path, record: dict[str, Any]):
        self._group = _zarr().open_group(folder, mode="r+")
        self._done = self._group[DONE][:]
        arrays = self._arrays() if self._done.any() else {}
        super().__init__(record, {name: Layout(array.dtype, array.shape[1:]) for name, array in arrays.items()})

    @staticmethod
    def recorded(folder: Path) -> dict[str, Any] | None:
        if not (folder / "zarr.json").exists():
            return None
        return _zarr().open_group(folder, mode="r").attrs.get(RECORD)

    @staticmethod
    def create(folder: Path, record: dict[str, Any]) -> None:
        group = _zarr().open_group(folder, mode="a", zarr_format=3)
        group.create_array(DONE, shape=(_n_chunks(record),), chunks=(1,), dtype="uint8", dimension_names=["chunk"])
        group.attrs[RECORD] = record  # last: without it, there is no study here

    def is_done(self, chunk: int) -> bool:
        return bool(self._done[chunk])

    def _put(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        if list(self._group.attrs.get(ARRAYS, ())) != [*arrays]:
            self._group.attrs[ARRAYS] = [*arrays]
        for name, values in arrays.items():
            self._array(name, values)[chunk.start : chunk.stop] = values
        self._group[DONE][chunk.number] = self._done[chunk.number] = 1

    def _array(self, name: str, values: np.ndarray) -> Any:
        stored = name.replace("/", SLASH)
        if stored in self._group:
            return self._group[stored]
        rest = values.shape[1:]
        return self._group.create_array(
            stored,
            shape=(self.record["n_cases"], *rest),
            chunks=(self.record["definition"]["chunk"], *(max(1, n) for n in rest)),
            dtype=values.dtype,
            dimension_names=[CASE, *axes_of(self.record, name, len(rest))],
            attributes={"units": self.record["units"][name]} if name in self.record["units"] else {},
        )

    def _arrays(self) -> dict[str, Any]:
        stored = {name.replace(SLASH, "/"): self._group[name] for name in self._group.array_keys() if name != DONE}
        return {name: stored[name] for name in self._group.attrs.get(ARRAYS, sorted(stored)) if name in stored}

    def results(self) -> Results:
        return Results(self.record, self._arrays(), _done_cases(self.record, self.is_done))


class Parquet(Store):
    """A folder of Parquet files, one per chunk, with a row per case and a column per number: the whole folder is one
    table for pandas, Polars, DuckDB and others.  The layouts of the arrays are in the metadata of each file.  A file
    is written as a whole or not at all, and is its own mark."""

    def __init__(self, folder: Path, record: dict[str, Any]):
        self.folder = folder
        super().__init__(record, next(map(_layouts, self._files()), None))

    @staticmethod
    def recorded(folder: Path) -> dict[str, Any] | None:
        file = folder / f"_{RECORD}.json"  # readers of tables leave out what begins so
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    @staticmethod
    def create(folder: Path, record: dict[str, Any]) -> None:
        _write_atomically(folder / f"_{RECORD}.json", json.dumps(record, indent=1).encode())

    def is_done(self, chunk: int) -> bool:
        return self._file(chunk).exists()

    def _file(self, chunk: int) -> Path:
        return self.folder / f"part-{chunk:07d}.parquet"

    def _files(self) -> list[Path]:
        """Files of the chunks that are done, in the order of their cases."""
        return sorted(self.folder.glob("part-*.parquet"))

    def _put(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        import pyarrow
        import pyarrow.parquet

        columns = {CASE: np.arange(chunk.start, chunk.stop)}
        for name, values in arrays.items():
            of_array = columns_of(self.record, name, values)
            twice = sorted(columns.keys() & of_array.keys())
            if twice:
                raise StudyError(f"two results need a column {twice[0]!r}: give {name!r} another name")
            columns |= of_array
        if len(columns) > COLUMNS:
            raise StudyError(
                f"a table of {len(columns)} columns is too wide (at most {COLUMNS}): store arrays as NAME.zarr, or "
                "keep less of them (final_only, measure)"
            )
        layouts = {name: (dtype.str, shape) for name, (dtype, shape) in self.layouts.items()}
        table = pyarrow.table(columns).replace_schema_metadata({ARRAYS: json.dumps(layouts)})
        stream = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(table, stream)
        _write_atomically(self._file(chunk.number), stream.getvalue().to_pybytes())

    def results(self) -> Results:
        done, files = _done_cases(self.record, self.is_done), self._files()
        arrays = {name: TableArray(self.record, name, layout, files, done) for name, layout in self.layouts.items()}
        return Results(self.record, arrays, done)


def _layouts(file: Path) -> dict[str, Layout]:
    """Layouts of the arrays in a Parquet file of a study."""
    import pyarrow.parquet

    metadata = pyarrow.parquet.read_schema(file).metadata or {}
    if ARRAYS.encode() not in metadata:
        raise StudyError(
            f"{file} does not say which arrays its columns are: an earlier version of linkwise wrote it. Run the study "
            "again in another folder, or read this one with pandas.read_parquet"
        )
    stored = json.loads(metadata[ARRAYS.encode()])
    return {name: Layout(np.dtype(dtype), tuple(shape)) for name, (dtype, shape) in stored.items()}


class TableArray:
    """An array (cases, ...) whose numbers are columns of Parquet files; indexing reads the columns that it needs.

    Rows of cases that are not done are zero.
    """

    def __init__(
        self, record: Mapping[str, Any], name: str, layout: Layout, files: Sequence[Path], done: np.ndarray
    ) -> None:
        self.dtype, self.shape = layout.dtype, (len(done), *layout.shape)
        self._columns = list(columns_of(record, name, np.zeros((0, *layout.shape), layout.dtype)))
        self._files, self._done = files, done

    def __getitem__(self, index: tuple[Any, ...]) -> np.ndarray:
        cases, *rest = index
        numbers = np.arange(math.prod(self.shape[1:])).reshape(self.shape[1:])[tuple(rest)]
        values = np.zeros((len(self._done), numbers.size), self.dtype)
        if np.iscomplexobj(values):  # all real parts, then all imaginary ones
            values.real[self._done] = self._read(numbers.ravel())
            values.imag[self._done] = self._read(numbers.ravel() + len(self._columns) // 2)
        else:
            values[self._done] = self._read(numbers.ravel())
        return values.reshape(len(self._done), *numbers.shape)[cases]

    def _read(self, numbers: np.ndarray) -> np.ndarray:
        """(cases that are done, columns): columns of the files, by number."""
        import pyarrow.parquet

        chosen = [self._columns[k] for k in numbers.tolist()]
        if not chosen:
            return np.zeros((int(self._done.sum()), 0), self.dtype)
        rows = [pyarrow.parquet.ParquetFile(file).read(columns=chosen) for file in self._files]
        return np.concatenate([np.stack([table[name].to_numpy() for name in chosen], axis=1) for table in rows])


def _done_cases(record: Mapping[str, Any], is_done: Any) -> np.ndarray:
    """(cases,) of bool: whether cases are done."""
    chunks = np.array([is_done(k) for k in range(_n_chunks(record))], bool)
    return np.repeat(chunks, record["definition"]["chunk"])[: record["n_cases"]]


def _n_chunks(record: Mapping[str, Any]) -> int:
    return -(-record["n_cases"] // record["definition"]["chunk"])


def _zarr() -> Any:
    zarr = library("zarr", "a .zarr store")
    if int(zarr.__version__.partition(".")[0]) < 3:
        raise StudyError(f"a .zarr store needs zarr 3 or later, not {zarr.__version__}; .parquet stores need none")
    return zarr
