"""Columns of numbers in files: CSV with a first line of names, or npz with one array per quantity.

In CSV a number is named by its quantity and its joint: q.elbow, or q.base[0], q.base[1], ... where a joint has several.
So it is written; q1, q2, ..., in the order of q, is read as well.  In npz a quantity is an array of shape (rows,
numbers).  The time is t.

Tables do not say whether angles are in radians or degrees, but motions that linkwise wrote can be told: beside their
states stand kinetic energies (CSV), or they are always in radians (npz of ``Trajectory.save``).
"""

from __future__ import annotations

import contextlib
import csv
import io
import re
import sys
import zipfile
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

import click
import numpy as np

import linkwise as lw

from .files import PIPE, called, contents
from .units import DEGREE, DEGREES, RADIANS, angles_by_energy, check_units, scaled, unit

QUANTITIES = ("q", "v", "a", "tau")
ANGULAR = ("q", "v", "a")  # quantities that may be angles, or rates of such
ZIP = b"PK"  # how archives begin
KINETIC = "kinetic_energy"  # the column of a motion's table
ABOUT = "about"  # the array in which ``Trajectory.save`` keeps all that is no number
Table = dict[str, np.ndarray]  # t (rows,), q (rows, nq), v, a, tau (rows, nv)


def read_table(
    path: str,
    mech: lw.Mechanism,
    needed: Sequence[str],
    optional: Sequence[str] = ("t",),
    degrees: bool = False,
    trust_units: bool = False,
) -> Table:
    """The quantities ``needed``, and those of ``optional`` that are there, in radians and metres.

    ``degrees`` says in what angles are in the file; what looks like other units than it should have is refused, unless
    ``trust_units``.
    """
    data, source = contents(path), called(path)
    suffix = Path(path).suffix.lower() if path != PIPE and Path(path).is_file() else None
    if suffix not in (".csv", ".npz", None):
        raise click.UsageError(f"{path}: tables of numbers are .csv or .npz files")
    archived = suffix == ".npz" or (suffix is None and data.startswith(ZIP))  # a pipe has no ending to go by
    table, written_in = (_from_npz if archived else _from_csv)(source, data, mech, (*needed, *optional))
    missing = [name for name in needed if name not in table]
    if missing:
        raise click.UsageError(f"{source} has no {_list(missing, mech)}; needed are {_list(needed, mech)}")
    if written_in and not archived and degrees != (written_in == DEGREES):
        remedy = "use --degrees" if not degrees else "leave --degrees out"
        raise click.UsageError(f"{source}: angles are in {written_in}, as its kinetic energies show; {remedy}")
    if degrees and written_in != RADIANS:
        table |= {name: scaled(mech, name, table[name], DEGREE) for name in ANGULAR if name in table}
    if "q" in table and not (written_in or trust_units):
        check_units(source, mech, table["q"])
    return table


def size(mech: lw.Mechanism, quantity: str) -> int:
    """Numbers per row of a quantity."""
    return mech.nq if quantity == "q" else mech.nv


def columns(mech: lw.Mechanism, quantity: str) -> list[str]:
    """The names of a quantity's columns."""
    return [f"{quantity}.{name}" for name in mech.coordinates.names("q" if quantity == "q" else "v")]


def _list(names: Sequence[str], mech: lw.Mechanism) -> str:
    """Columns in a message: the first and the last of each quantity."""
    every = {name: ["t"] if name == "t" else columns(mech, name) for name in names}
    return ", ".join(" ... ".join(dict.fromkeys((*every[name][:1], *every[name][-1:]))) for name in names)


# -- CSV ----------------------------------------------------------------------------------------------


def _from_csv(file: str, data: bytes, mech: lw.Mechanism, wanted: Sequence[str]) -> tuple[Table, str | None]:
    """The quantities that are there, and RADIANS or DEGREES if that can be told."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise click.UsageError(f"{file} is no text file") from None
    lines = [(n, cells) for n, cells in enumerate(csv.reader(text.splitlines()), 1) if any(c.strip() for c in cells)]
    if not lines:
        raise click.UsageError(f"{file} is empty; its first line names the columns")
    lines = _without_empty_columns(lines)
    names = [name.strip() for name in lines[0][1]]
    names[0] = names[0].removeprefix("#").strip()  # numpy.savetxt begins its header with one
    if len(names) == 1 and set(names[0]) & set(";\t"):
        raise click.UsageError(f"{file}: commas are expected between columns, and points in numbers")
    if any(_is_number(name) for name in names):
        raise click.UsageError(
            f"{file}: the first line must name the columns, such as t,{','.join(columns(mech, 'q')[:2])}, ..."
        )
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise click.UsageError(f"{file} has two columns {min(repeated)!r}")
    if len(lines) == 1:
        raise click.UsageError(f"{file} has no rows below the names of the columns")
    rows = np.array([_row(file, line, names, cells) for line, cells in lines[1:]])
    places = {name: _place(file, name, mech) for name in names}
    table: Table = {}
    is_motion = KINETIC in names and "q" in wanted
    for quantity in dict.fromkeys((*wanted, "v") if is_motion else wanted):
        if quantity == "t":
            if "t" in places:
                table["t"] = rows[:, names.index("t")]
            continue
        found: dict[int, str] = {}
        for name, at in places.items():
            if at and at[0] == quantity and found.setdefault(at[1], name) != name:
                raise click.UsageError(f"{file}: the columns {found[at[1]]!r} and {name!r} are the same number")
        absent = [name for k, name in enumerate(columns(mech, quantity)) if k not in found]
        if found and absent:
            raise click.UsageError(f"{file} has no column {', '.join(absent)}")
        if found:
            table[quantity] = rows[:, [names.index(found[k]) for k in range(len(found))]]
    unit = None
    if is_motion and "q" in table and "v" in table:
        unit = angles_by_energy(mech, table["q"], table["v"], rows[:, names.index(KINETIC)])
    return {name: table[name] for name in wanted if name in table}, unit


def _without_empty_columns(lines: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Spreadsheets write columns at the end in which there is nothing, not even a name."""
    used = max(len(cells) - next(k for k, cell in enumerate(reversed(cells)) if cell.strip()) for _, cells in lines)
    return [(number, cells[:used]) for number, cells in lines]


def _row(file: str, line: int, names: Sequence[str], cells: Sequence[str]) -> list[float]:
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


def _place(file: str, name: str, mech: lw.Mechanism) -> tuple[str, int] | None:
    """Quantity and index that a column holds; None for what has no index."""
    if name == "t" or name.endswith("energy"):
        return None
    match = re.fullmatch(r"(q|v|a|tau)(\d+)", name)
    if match and 1 <= int(match[2]) <= size(mech, match[1]):
        return match[1], int(match[2]) - 1
    quantity, _, coordinate = name.partition(".")
    if quantity in QUANTITIES:
        if name in columns(mech, quantity):
            return quantity, columns(mech, quantity).index(name)
        followed = {body.joint: body.mimic.joint for body in mech.bodies if body.mimic}
        if coordinate in followed:
            raise click.UsageError(
                f"{file}: {name!r} is no column of {mech.name}: joint {coordinate!r} follows {followed[coordinate]!r}; "
                "give the numbers of that one"
            )
    raise click.UsageError(
        f"{file}: {name!r} is no column of {mech.name}: columns are {_list(('t', *QUANTITIES), mech)}; or q1, q2, ..., "
        "v1, ..., in their order"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


# -- npz ----------------------------------------------------------------------------------------------


def _from_npz(file: str, data: bytes, mech: lw.Mechanism, wanted: Sequence[str]) -> tuple[Table, str | None]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)), np.load(io.BytesIO(data), allow_pickle=False) as archive:
            unit = RADIANS if ABOUT in archive.files else None
            arrays = {name: np.asarray(archive[name]) for name in wanted if name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise click.UsageError(f"{file} is no npz archive of numbers") from None
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
    return table, unit


# -- writing ------------------------------------------------------------------------------------------


def write_table(path: str | None, mech: lw.Mechanism, table: Table, degrees: bool = False) -> None:
    """Columns of numbers to a .csv or .npz file, or as CSV to standard output; angles of q, v and a in degrees if so.

    table   t, energies and other columns (rows,); quantities of joints (rows, n), as q and tau_std; and others, whose
            columns are numbered
    """
    table = {name: scaled(mech, name, x, 1.0 / unit(degrees)) if name in ANGULAR else x for name, x in table.items()}
    if path is not None and path.lower().endswith(".npz"):
        np.savez(path, **table)  # type: ignore[arg-type]
        return
    names = [column for name, array in table.items() for column in _headings(mech, name, array)]
    rows = np.concatenate([array.reshape(len(array), -1) for array in table.values()], axis=1)
    with contextlib.ExitStack() as files:
        stream: TextIO = sys.stdout
        if path not in (None, PIPE):
            stream = files.enter_context(open(str(path), "w", newline="", encoding="utf-8"))
        writer = csv.writer(stream, lineterminator="\n")  # names with commas are quoted
        writer.writerow(names)
        writer.writerows([repr(x) for x in row] for row in rows.tolist())


def _headings(mech: lw.Mechanism, name: str, array: np.ndarray) -> list[str]:
    if name.removesuffix("_std") in QUANTITIES:
        return columns(mech, name)
    return [name] if array.ndim == 1 else [f"{name}[{k}]" for k in range(array.shape[1])]
