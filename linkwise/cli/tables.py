"""Columns of numbers in files: CSV with a first line of names, or npz with one array per quantity.

In CSV the numbers of a quantity are columns q1, q2, ..., or q.NAME for a joint NAME; in npz it is an array q of shape
(rows, numbers).  The time is t.
"""

from __future__ import annotations

import csv
import re
import sys
import zipfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import click
import numpy as np

import linkwise as lw

QUANTITIES = ("q", "v", "a", "tau")
Table = dict[str, np.ndarray]  # t (rows,), q (rows, nq), v, a, tau (rows, nv)


def read_table(path: str, mech: lw.Mechanism, needed: Sequence[str], optional: Sequence[str] = ("t",)) -> Table:
    """The quantities ``needed``, and those of ``optional`` that are there."""
    file = Path(path)
    if not file.is_file():
        raise click.UsageError(f"there is no file {path}")
    suffix = file.suffix.lower()
    if suffix not in (".csv", ".npz"):
        raise click.UsageError(f"{path}: tables of numbers are .csv or .npz files")
    table = (_from_csv if suffix == ".csv" else _from_npz)(file, mech, (*needed, *optional))
    missing = [name for name in needed if name not in table]
    if missing:
        raise click.UsageError(f"{path} has no {_list(missing, mech)}; needed are {_list(needed, mech)}")
    return table


def _list(names: Sequence[str], mech: lw.Mechanism) -> str:
    return ", ".join("t" if name == "t" else f"{name}1 ... {name}{size(mech, name)}" for name in names)


def size(mech: lw.Mechanism, name: str) -> int:
    """Numbers per row of a quantity."""
    return mech.nq if name == "q" else mech.nv


# -- CSV ----------------------------------------------------------------------------------------------


def _from_csv(file: Path, mech: lw.Mechanism, wanted: Sequence[str]) -> Table:
    try:
        text = file.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is no text file") from None
    lines = [(n, cells) for n, cells in enumerate(csv.reader(text.splitlines()), 1) if any(c.strip() for c in cells)]
    if not lines:
        raise click.UsageError(f"{file} is empty; its first line names the columns")
    names = [name.strip() for name in lines[0][1]]
    if any(_is_number(name) for name in names):
        raise click.UsageError(f"{file}: the first line must name the columns, such as t,q1,q2,v1,v2")
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise click.UsageError(f"{file} has two columns {min(repeated)!r}")
    if len(lines) == 1:
        raise click.UsageError(f"{file} has no rows below the names of the columns")
    rows = np.array([_row(file, line, names, cells) for line, cells in lines[1:]])
    places = {name: _place(file, name, mech) for name in names}
    table: Table = {}
    for quantity in wanted:
        if quantity == "t":
            if "t" in places:
                table["t"] = rows[:, names.index("t")]
            continue
        columns = {at[1]: names.index(name) for name, at in places.items() if at and at[0] == quantity}
        absent = [f"{quantity}{k + 1}" for k in range(size(mech, quantity)) if k not in columns]
        if columns and absent:
            raise click.UsageError(f"{file} has no column {', '.join(absent)}")
        if columns:
            table[quantity] = rows[:, [columns[k] for k in range(len(columns))]]
    return table


def _row(file: Path, line: int, names: Sequence[str], cells: Sequence[str]) -> list[float]:
    if len(cells) != len(names):
        raise click.UsageError(
            f"{file}, line {line}: {len(cells)} values, but the first line names {len(names)} columns"
        )
    for name, cell in zip(names, cells, strict=True):
        if not _is_number(cell):
            raise click.UsageError(f"{file}, line {line}: {name} is {cell.strip()!r}, which is no number")
        if not np.isfinite(float(cell)):
            raise click.UsageError(f"{file}, line {line}: {name} is {cell.strip()}, which is not finite")
    return [float(cell) for cell in cells]


def _place(file: Path, name: str, mech: lw.Mechanism) -> tuple[str, int] | None:
    """Quantity and index that a column holds; None for what has no index."""
    if name == "t" or name.endswith("energy"):
        return None
    match = re.fullmatch(r"(q|v|a|tau)(\d+)", name)
    if match and 1 <= int(match[2]) <= size(mech, match[1]):
        return match[1], int(match[2]) - 1
    places = _named_places(mech)
    if name in places:
        return places[name]
    raise click.UsageError(
        f"{file}: {name!r} is no column of {mech.name}: columns are {_list(('t', *QUANTITIES), mech)}, or q.NAME, "
        "v.NAME, ... for a joint NAME with one coordinate, q.NAME.1 ... for one with several"
    )


def _named_places(mech: lw.Mechanism) -> dict[str, tuple[str, int]]:
    """q.NAME, and q_NAME as in tables written by linkwise simulate, with .1 or _0 ... where a joint has several."""
    found = {}
    for quantity in QUANTITIES:
        for joint in mech.joint_names:
            at = mech.q_index(joint) if quantity == "q" else mech.v_index(joint)
            for k in range(at.stop - at.start):
                alone = at.stop - at.start == 1
                found[f"{quantity}.{joint}" + ("" if alone else f".{k + 1}")] = (quantity, at.start + k)
                found[f"{quantity}_{joint}" + ("" if alone else f"_{k}")] = (quantity, at.start + k)
    return found


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -- npz ----------------------------------------------------------------------------------------------


def _from_npz(file: Path, mech: lw.Mechanism, wanted: Sequence[str]) -> Table:
    try:
        with np.load(file, allow_pickle=False) as archive:
            arrays = {name: np.asarray(archive[name]) for name in wanted if name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        raise click.UsageError(f"{file} is no npz archive of numbers: {error}") from None
    table: Table = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "iuf":
            raise click.UsageError(f"{file}: {name} has dtype {array.dtype}, real numbers are needed")
        expected = 1 if name == "t" else 2
        if array.ndim != expected or (expected == 2 and array.shape[1] != size(mech, name)):
            shape = "(rows,)" if name == "t" else f"(rows, {size(mech, name)})"
            raise click.UsageError(f"{file}: {name} has shape {array.shape}, expected {shape}")
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            where = ", ".join(map(str, bad[0]))
            raise click.UsageError(f"{file}: {name}[{where}] is {array[tuple(bad[0])]}, which is not finite")
        table[name] = array.astype(float)
    lengths = {name: len(array) for name, array in table.items()}
    if len(set(lengths.values())) > 1:
        raise click.UsageError(f"{file}: {', '.join(f'{name} has {n} rows' for name, n in lengths.items())}")
    if lengths and not max(lengths.values()):
        raise click.UsageError(f"{file} has no rows")
    return table


# -- writing ------------------------------------------------------------------------------------------


def write_table(path: str | None, table: Mapping[str, np.ndarray]) -> None:
    """Arrays (rows,) and (rows, numbers) to a .csv or .npz file, or as CSV to standard output."""
    if path is None:
        _write_csv(sys.stdout, table)
        return
    suffix = Path(path).suffix.lower()
    if suffix == ".npz":
        np.savez(path, **table)  # type: ignore[arg-type]
    elif suffix == ".csv":
        with open(path, "w", newline="") as stream:
            _write_csv(stream, table)
    else:
        raise click.UsageError(f"{path}: results are written to .csv or .npz files")


def _write_csv(stream, table: Mapping[str, np.ndarray]) -> None:
    columns = {name: array[:, None] if array.ndim == 1 else array for name, array in table.items()}
    names = [
        name if array.ndim == 1 else f"{name}{k + 1}"
        for name, array in table.items()
        for k in range(columns[name].shape[1])
    ]
    print(",".join(names), file=stream)
    for row in np.concatenate(list(columns.values()), axis=1).tolist():
        print(",".join(map(repr, row)), file=stream)
