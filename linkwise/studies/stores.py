"""Where results go: memory, a Zarr folder of arrays, a Parquet folder of tables.

A store knows which chunks are done.  A chunk is done once all of it is written: the mark that says so comes last, and
is there whole or not at all.  Whoever dies in the middle of a chunk leaves it undone, and what was written of it is
written over: resuming, retrying and losing workers are the same thing.  One process writes: that which runs the study.
"""

from __future__ import annotations

import json
import os
import warnings
from collections.abc import Mapping
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import numpy as np

from .errors import StudyError, library
from .record import differences, incomparable
from .results import Results

if TYPE_CHECKING:
    from .study import Study

RECORD = "linkwise_study"
DONE = "done"
SLASH = "%2F"  # in names of links, where Zarr would see a group
MOST_DIFFERENCES = 3  # named in a message
COLUMNS = 256  # of a table, at most


class Chunk(NamedTuple):
    """Cases ``start`` to before ``stop``, the ``number``-th chunk."""

    number: int
    start: int
    stop: int


class Store(Protocol):
    def is_done(self, chunk: int) -> bool: ...

    def write(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None: ...

    def results(self) -> Results: ...


def opened(path: str | Path | None, study: Study) -> Store:
    """The store of a study, made now or found to be the study's own."""
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
    """The store that a folder's name asks for."""
    kinds: dict[str, type[Zarr] | type[Parquet]] = {".zarr": Zarr, ".parquet": Parquet}
    if folder.suffix not in kinds:
        raise StudyError(f"results are stored as NAME.zarr (arrays) or NAME.parquet (tables), not as {folder.name!r}")
    _require(folder.suffix)
    return kinds[folder.suffix]


def _require(suffix: str) -> None:
    """That the library of a store is there, before anything is made."""
    if suffix == ".parquet":
        library("pyarrow", "a .parquet store")
    else:
        _zarr()


def _require_same(folder: Path, before: Mapping[str, Any], now: Mapping[str, Any]) -> None:
    found = list(islice(differences(before["definition"], now["definition"]), MOST_DIFFERENCES + 1))
    if found:
        more = "; and more" if len(found) > MOST_DIFFERENCES else ""
        raise StudyError(
            f"{folder} has results of another study: {'; '.join(found[:MOST_DIFFERENCES])}{more}. Give another name, "
            "or delete the folder"
        )
    unseen = list(islice(incomparable(now["definition"]), MOST_DIFFERENCES))
    if unseen:
        warnings.warn(
            f"{folder} is resumed, as the study seems to be the same; whether {', '.join(unseen)} changed since is not "
            "known: such objects cannot be pickled",
            stacklevel=4,
        )


def _write_whole(path: Path, data: bytes) -> None:
    """Write a file that is there whole or not at all."""
    beside = path.with_name(f"{path.name}.partial")
    beside.write_bytes(data)
    os.replace(beside, path)


class Memory:
    """Arrays in memory; nothing but NumPy is needed."""

    def __init__(self, record: dict[str, Any]):
        self.record = record
        self.arrays: dict[str, np.ndarray] = {}
        self.done = np.zeros(self.record["n_cases"], bool)

    def is_done(self, chunk: int) -> bool:
        return False

    def write(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        for name, values in arrays.items():
            if name not in self.arrays:
                self.arrays[name] = np.zeros((len(self.done), *values.shape[1:]), values.dtype)
            _require_shape(name, self.arrays[name], values)
            self.arrays[name][chunk.start : chunk.stop] = values
        self.done[chunk.start : chunk.stop] = True

    def results(self) -> Results:
        return Results(self.record, self.arrays, self.done)


class Zarr:
    """A Zarr group with an array per result, whose chunks along the axis of cases are those of the study: each is a
    file of its own, written once.  The array ``done`` says of each chunk whether it is."""

    def __init__(self, folder: Path, record: dict[str, Any]):
        self.record = record
        self._group = _zarr().open_group(folder, mode="r+")
        self._done = self._group[DONE][:]

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

    def write(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        for name, values in arrays.items():
            array = self._array(name, values)
            _require_shape(name, array, values)
            array[chunk.start : chunk.stop] = values
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
            dimension_names=["case", *axes_of(self.record, name, len(rest))],
            attributes={"units": self.record["units"][name]} if name in self.record["units"] else {},
        )

    def results(self) -> Results:
        arrays = {
            name.replace(SLASH, "/"): self._group[name] for name in sorted(self._group.array_keys()) if name != DONE
        }
        return Results(self.record, arrays, _done_cases(self.record, self.is_done))


class Parquet:
    """A folder of Parquet files, one per chunk, with a row per case and a column per number: the whole folder is one
    table for pandas, Polars, DuckDB and others.  A file is there whole or not at all, and is its own mark."""

    def __init__(self, folder: Path, record: dict[str, Any]):
        self.folder, self.record = folder, record

    @staticmethod
    def recorded(folder: Path) -> dict[str, Any] | None:
        file = folder / f"_{RECORD}.json"  # readers of tables leave out what begins so
        return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None

    @staticmethod
    def create(folder: Path, record: dict[str, Any]) -> None:
        _write_whole(folder / f"_{RECORD}.json", json.dumps(record, indent=1).encode())

    def is_done(self, chunk: int) -> bool:
        return self._file(chunk).exists()

    def _file(self, chunk: int) -> Path:
        return self.folder / f"part-{chunk:07d}.parquet"

    def write(self, chunk: Chunk, arrays: Mapping[str, np.ndarray]) -> None:
        import pyarrow
        import pyarrow.parquet

        columns = {"case": np.arange(chunk.start, chunk.stop)}
        for name, values in arrays.items():
            columns |= columns_of(self.record, name, values)
        if len(columns) > COLUMNS:
            raise StudyError(
                f"a table of {len(columns)} columns is too wide (at most {COLUMNS}): store arrays as NAME.zarr, or "
                "keep less of them (final_only, measure)"
            )
        stream = pyarrow.BufferOutputStream()
        pyarrow.parquet.write_table(pyarrow.table(columns), stream)
        _write_whole(self._file(chunk.number), stream.getvalue().to_pybytes())

    def results(self) -> Results:
        import pyarrow.parquet

        done = _done_cases(self.record, self.is_done)
        parts = [pyarrow.parquet.read_table(file) for file in sorted(self.folder.glob("part-*.parquet"))]
        arrays = {}
        if parts:
            whole = pyarrow.concat_tables(parts)
            for name in whole.column_names[1:]:
                column = whole[name].to_numpy()
                arrays[name] = np.zeros(len(done), column.dtype)
                arrays[name][done] = column
        return Results(self.record, arrays, done)


def axes_of(record: Mapping[str, Any], name: str, count: int) -> list[str]:
    """Names of an array's axes behind that of cases."""
    told = record["axes"].get(name, [])
    return told if len(told) == count else [f"{name}_{k}" for k in range(count)]


def columns_of(record: Mapping[str, Any], name: str, values: np.ndarray) -> dict[str, np.ndarray]:
    """An array (cases, ...) as columns of a table: NAME[LABEL,...]; complex numbers as two."""
    if np.iscomplexobj(values):
        return columns_of(record, f"{name}.real", values.real) | columns_of(record, f"{name}.imag", values.imag)
    shape, axes = values.shape[1:], axes_of(record, name, values.ndim - 1)
    found = {}
    for index in np.ndindex(*shape):
        labels = [_label(record, axis, n, k) for axis, n, k in zip(axes, shape, index, strict=True)]
        found[f"{name}[{','.join(labels)}]" if labels else name] = np.ascontiguousarray(values[(slice(None), *index)])
    return found


def _label(record: Mapping[str, Any], axis: str, size: int, k: int) -> str:
    labels = record["labels"].get(axis, [])
    return str(labels[k]) if len(labels) == size else str(k)


def _done_cases(record: Mapping[str, Any], is_done: Any) -> np.ndarray:
    """(cases,): which are done."""
    chunks = np.array([is_done(k) for k in range(_n_chunks(record))], bool)
    return np.repeat(chunks, record["definition"]["chunk"])[: record["n_cases"]]


def _n_chunks(record: Mapping[str, Any]) -> int:
    return -(-record["n_cases"] // record["definition"]["chunk"])


def _zarr() -> Any:
    found = library("zarr", "a .zarr store")
    if int(found.__version__.partition(".")[0]) < 3:
        raise StudyError(f"a .zarr store needs zarr 3 or later, not {found.__version__}; .parquet stores need none")
    return found


def _require_shape(name: str, array: Any, values: np.ndarray) -> None:
    if array.shape[1:] != values.shape[1:] or array.dtype != values.dtype:
        raise StudyError(
            f"{name!r} is {values.dtype} of shape {values.shape[1:]} in some cases, {array.dtype} of {array.shape[1:]} "
            "in others: arrays of all cases must have one shape and type"
        )
