"""States and motions as tables: CSV and npz files, Parquet files, data frames of pandas.

In CSV a number is named by its quantity and its joint: q.elbow, or q.base[0], q.base[1], ... where a joint has several.
So it is written; q1, q2, ..., in the order of q, is read as well.  In npz a quantity is an array of shape (rows,
numbers).  The time is t.

Tables do not state whether angles are in radians or degrees.  Files of linkwise imply it: CSV has kinetic energies
beside the states, and npz of ``save`` is always in radians.
"""

from __future__ import annotations

import csv
import io
import os
import re
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import IO, Any, Protocol

import numpy as np
from numpy.typing import ArrayLike

from ..mechanics.joints import ANGLE, LENGTH, OTHER
from ..mechanism import Mechanism, MechanismError, require_mechanism
from .states import Float64Array
from .trees import kinetic_energy

QUANTITIES = ("q", "v", "a", "tau")
ANGULAR = ("q", "v", "a")  # quantities that may be angles or their rates
ENDINGS = (".csv", ".npz")
ZIP = b"PK"  # first bytes of archives
KINETIC = "kinetic_energy"  # the column of a motion's table
ABOUT = "about"  # array of ``save`` for everything but numbers: such files are in radians
MAX_ANGLE, MAX_LENGTH = 4.0 * np.pi, 50.0  # beyond these, numbers look like degrees and millimetres
Table = dict[str, np.ndarray]  # t (rows,), q (rows, nq), v, a, tau (rows, nv)


class HasTable(Protocol):
    def table(self) -> tuple[list[str], Float64Array]: ...


class Tabular:
    """Mixin for results with a ``table()`` of names and values (m, columns); the first column is the abscissa."""

    def to_csv(self: HasTable, path: str | Path) -> None:
        """Write the ``table`` with a row per sample."""
        _write_csv(path, *self.table())

    def to_parquet(self: HasTable, path: str | Path) -> None:
        """Write the table to a Parquet file; needs pyarrow."""
        try:
            import pyarrow
            import pyarrow.parquet
        except ImportError:
            raise ImportError(
                "Parquet files need pyarrow: pip install 'linkwise[parquet]', or use to_csv or save"
            ) from None
        names, columns = self.table()
        table = pyarrow.table(dict(zip(names, columns.T, strict=True)))
        pyarrow.parquet.write_table(table, path)

    def to_pandas(self: HasTable) -> Any:
        """The table as a ``pandas.DataFrame`` indexed by its first column; needs pandas."""
        try:
            import pandas
        except ImportError:
            raise ImportError("to_pandas needs pandas: pip install 'linkwise[labelled]'") from None
        names, columns = self.table()
        return pandas.DataFrame(columns[:, 1:], index=pandas.Index(columns[:, 0], name=names[0]), columns=names[1:])


# -- writing ----------------------------------------------------------------------------------------------------------


def write_table(
    path: str | os.PathLike[str] | IO[str], mech: Mechanism, table: Mapping[str, ArrayLike], degrees: bool = False
) -> None:
    """Write columns of numbers to a .csv or .npz file, or as CSV to an open text file; ``read_table`` reads it.

    table     t and other columns (rows,); quantities of joints (rows, n): q, v, a, tau, and those that end in _std; and
              others (rows, n), whose columns are numbered
    degrees   angles of q, v and a, and their rates, are written in degrees
    """
    require_mechanism(mech)
    arrays = {name: np.asarray(values, dtype=float) for name, values in table.items()}
    if degrees:
        arrays = {name: in_degrees(mech, name, x) if name in ANGULAR else x for name, x in arrays.items()}
    if isinstance(path, (str, os.PathLike)) and Path(path).suffix.lower() == ".npz":
        np.savez(path, **arrays)  # type: ignore[arg-type]
        return
    names = [column for name, array in arrays.items() for column in _headings(mech, name, array)]
    _write_csv(path, names, np.concatenate([x.reshape(len(x), -1) for x in arrays.values()], axis=1))


def _write_csv(path: str | os.PathLike[str] | IO[str], names: Sequence[str], rows: np.ndarray) -> None:
    if not isinstance(path, (str, os.PathLike)):
        writer = csv.writer(path, lineterminator="\n")  # names with commas are quoted
        writer.writerow(names)
        writer.writerows([repr(x) for x in row] for row in rows.tolist())
        return
    with open(path, "w", newline="", encoding="utf-8") as stream:
        _write_csv(stream, names, rows)


def _headings(mech: Mechanism, name: str, array: np.ndarray) -> list[str]:
    if name.removesuffix("_std") in QUANTITIES:
        return column_names(mech, name)
    return [name] if array.ndim == 1 else [f"{name}[{k}]" for k in range(array.shape[1])]


def column_names(mech: Mechanism, quantity: str) -> list[str]:
    """The names of a quantity's columns: "q.elbow", ..."""
    return [f"{quantity}.{name}" for name in mech.coordinates.names("q" if quantity == "q" else "v")]


# -- reading ----------------------------------------------------------------------------------------------------------


def read_table(
    path: str | os.PathLike[str] | IO[bytes],
    mech: Mechanism,
    needed: Sequence[str] = ("q",),
    optional: Sequence[str] = ("t", "v", "a", "tau"),
    degrees: bool = False,
    trust_units: bool = False,
) -> dict[str, Float64Array]:
    """The quantities ``needed`` of a .csv or .npz file, and the ``optional`` ones if present: t (rows,), q (rows, nq),
    and v, a, tau (rows, nv), in radians and metres.  Columns of CSV are identified by name, q.elbow, in any order.

    path          a file, or a binary stream, called standard input in messages
    degrees       whether angles in the file are in degrees; raises if kinetic energies of a motion contradict it
    trust_units   accept positions that look like degrees or millimetres
    """
    require_mechanism(mech)
    if isinstance(path, (str, os.PathLike)):
        file = Path(path)
        source, suffix = os.fspath(path), file.suffix.lower() if file.is_file() else None
        if suffix not in (*ENDINGS, None):
            raise MechanismError(f"{source}: tables of numbers are .csv or .npz files")
        data = file.read_bytes()
    else:
        source, suffix, data = "standard input", None, path.read()
    archived = suffix == ".npz" or (suffix is None and data.startswith(ZIP))  # a pipe has no file ending
    table, written_in_degrees = (_read_npz if archived else _read_csv)(source, data, mech, (*needed, *optional))
    missing = [name for name in needed if name not in table]
    if missing:
        raise MechanismError(f"{source} has no {_listed(missing, mech)}; needed are {_listed(needed, mech)}")
    if written_in_degrees is not None and not archived and degrees != written_in_degrees:
        unit, remedy = ("radians", "leave degrees=True out") if degrees else ("degrees", "use degrees=True")
        raise MechanismError(f"{source}: angles are in {unit}, as its kinetic energies show; {remedy}")
    if degrees and written_in_degrees is not False:
        table |= {name: in_radians(mech, name, table[name]) for name in ANGULAR if name in table}
    if "q" in table and not (trust_units or written_in_degrees is not None):
        check_units(mech, table["q"], source)
    return table


def _listed(names: Iterable[str], mech: Mechanism) -> str:
    """Columns in a message: the first and the last of each quantity."""
    every = {name: ["t"] if name == "t" else column_names(mech, name) for name in names}
    return ", ".join(" ... ".join(dict.fromkeys((*every[name][:1], *every[name][-1:]))) for name in names)


def _read_csv(file: str, data: bytes, mech: Mechanism, wanted: Sequence[str]) -> tuple[Table, bool | None]:
    """The quantities in the file, and whether their angles are in degrees (None if unknown)."""
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        raise MechanismError(f"{file} is no text file") from None
    lines = [(n, cells) for n, cells in enumerate(csv.reader(text.splitlines()), 1) if any(c.strip() for c in cells)]
    if not lines:
        raise MechanismError(f"{file} is empty; its first line names the columns")
    lines = _drop_empty_columns(lines)
    names = [name.strip() for name in lines[0][1]]
    names[0] = names[0].removeprefix("#").strip()  # numpy.savetxt begins its header with one
    if len(names) == 1 and set(names[0]) & set(";\t"):
        raise MechanismError(f"{file}: commas are expected between columns, and points in numbers")
    if any(_is_number(name) for name in names):
        raise MechanismError(
            f"{file}: the first line must name the columns, such as t,{','.join(column_names(mech, 'q')[:2])}, ..."
        )
    repeated = {name for name in names if names.count(name) > 1}
    if repeated:
        raise MechanismError(f"{file} has two columns {min(repeated)!r}")
    if len(lines) == 1:
        raise MechanismError(f"{file} has no rows below the names of the columns")
    rows = np.array([_row(file, line, names, cells) for line, cells in lines[1:]])
    columns_of = {name: _place(file, name, mech) for name in names}
    table: Table = {}
    is_motion = KINETIC in names and "q" in wanted
    for quantity in dict.fromkeys((*wanted, "v") if is_motion else wanted):
        if quantity == "t":
            if "t" in columns_of:
                table["t"] = rows[:, names.index("t")]
            continue
        columns: dict[int, str] = {}
        for name, at in columns_of.items():
            if at and at[0] == quantity and columns.setdefault(at[1], name) != name:
                raise MechanismError(f"{file}: the columns {columns[at[1]]!r} and {name!r} are the same number")
        absent = [name for k, name in enumerate(column_names(mech, quantity)) if k not in columns]
        if columns and absent:
            raise MechanismError(f"{file} has no column {', '.join(absent)}")
        if columns:
            table[quantity] = rows[:, [names.index(columns[k]) for k in range(len(columns))]]
    in_degrees = None
    if is_motion and "q" in table and "v" in table:
        in_degrees = _degrees_by_energy(mech, table["q"], table["v"], rows[:, names.index(KINETIC)])
    return {name: table[name] for name in wanted if name in table}, in_degrees


def _drop_empty_columns(lines: list[tuple[int, list[str]]]) -> list[tuple[int, list[str]]]:
    """Drop trailing columns without names and values, which spreadsheets append."""
    used = max(len(cells) - next(k for k, cell in enumerate(reversed(cells)) if cell.strip()) for _, cells in lines)
    return [(number, cells[:used]) for number, cells in lines]


def _row(file: str, line: int, names: Sequence[str], cells: Sequence[str]) -> list[float]:
    if len(cells) != len(names):
        raise MechanismError(f"{file}, line {line}: {len(cells)} values, but the first line names {len(names)} columns")
    for name, cell in zip(names, cells, strict=True):
        if not _is_number(cell):
            raise MechanismError(f"{file}, line {line}: {name} is {cell.strip()!r}, which is no number")
        if not np.isfinite(float(cell)):
            raise MechanismError(f"{file}, line {line}: {name} is {cell.strip()}, which is not finite")
    return [float(cell) for cell in cells]


def _place(file: str, name: str, mech: Mechanism) -> tuple[str, int] | None:
    """Quantity and index of a column; None for a column without index."""
    if name == "t" or name.endswith("energy") or name.startswith("ctrl."):
        return None
    match = re.fullmatch(r"(q|v|a|tau)(\d+)", name)
    if match and 1 <= int(match[2]) <= (mech.nq if match[1] == "q" else mech.nv):
        return match[1], int(match[2]) - 1
    quantity, _, coordinate = name.partition(".")
    if quantity in QUANTITIES:
        columns = column_names(mech, quantity)
        if name in columns:
            return quantity, columns.index(name)
        followed = {body.joint: body.mimic.joint for body in mech.bodies if body.mimic}
        if coordinate in followed:
            raise MechanismError(
                f"{file}: {name!r} is no column of {mech.name}: joint {coordinate!r} follows {followed[coordinate]!r}; "
                "give the numbers of that one"
            )
    raise MechanismError(
        f"{file}: {name!r} is no column of {mech.name}: columns are {_listed(('t', *QUANTITIES), mech)}; or q1, q2, "
        "..., v1, ..., in their order"
    )


def _is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _read_npz(file: str, data: bytes, mech: Mechanism, wanted: Sequence[str]) -> tuple[Table, bool | None]:
    try:
        with zipfile.ZipFile(io.BytesIO(data)), np.load(io.BytesIO(data), allow_pickle=False) as archive:
            in_degrees = False if ABOUT in archive.files else None
            arrays = {name: np.asarray(archive[name]) for name in wanted if name in archive.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile):
        raise MechanismError(f"{file} is no npz archive of numbers") from None
    table: Table = {}
    for name, array in arrays.items():
        if array.dtype.kind not in "iuf":
            raise MechanismError(f"{file}: {name} has dtype {array.dtype}, real numbers are needed")
        size = mech.nq if name == "q" else mech.nv
        expected = 1 if name == "t" else 2
        if array.ndim != expected or (expected == 2 and array.shape[1] != size):
            shape = "(rows,)" if name == "t" else f"(rows, {size})"
            raise MechanismError(f"{file}: {name} has shape {array.shape}, expected {shape}")
        bad = np.argwhere(~np.isfinite(array))
        if len(bad):
            where = ", ".join(map(str, bad[0]))
            raise MechanismError(f"{file}: {name}[{where}] is {array[tuple(bad[0])]}, which is not finite")
        table[name] = array.astype(float)
    lengths = {name: len(array) for name, array in table.items()}
    if len(set(lengths.values())) > 1:
        raise MechanismError(f"{file}: {', '.join(f'{name} has {n} rows' for name, n in lengths.items())}")
    if lengths and not max(lengths.values()):
        raise MechanismError(f"{file} has no rows")
    return table, in_degrees


# -- units ------------------------------------------------------------------------------------------------------------


def in_degrees(mech: Mechanism, quantity: str, values: ArrayLike, joint: str | None = None) -> Float64Array:
    """A copy of numbers (..., n) of "q", "v" or "a", or of one joint's own, with angles and their rates in degrees
    instead of radians."""
    return _converted(mech, quantity, values, joint, 180.0 / np.pi)


def in_radians(mech: Mechanism, quantity: str, values: ArrayLike, joint: str | None = None) -> Float64Array:
    """A copy of numbers (..., n) of "q", "v" or "a", or of one joint's own, with angles and their rates in radians
    instead of degrees."""
    return _converted(mech, quantity, values, joint, np.pi / 180.0)


def _converted(mech: Mechanism, quantity: str, values: ArrayLike, joint: str | None, factor: float) -> Float64Array:
    numbers = np.array(values, dtype=float)
    numbers[..., _angles(mech, quantity, joint)] *= factor
    return numbers


def _angles(mech: Mechanism, quantity: str, joint: str | None = None) -> list[bool]:
    """Which entries of q or v, or of one joint's own coordinates, are angles or angular rates; raises if unknown."""
    for body in mech.bodies if joint is None else [mech.bodies[mech.body_index(joint)]]:
        kind = body.kind
        if any(number.of == OTHER for number in (*kind.measures("q"), *kind.measures("v"))):
            raise MechanismError(
                f"degrees: joint {body.joint!r} is a {type(kind).__name__} joint, which does not say which of its "
                "numbers are angles; give radians"
            )
    if joint is None:
        return [measure == ANGLE for measure in mech.coordinates.measures(quantity)]
    return [measure.of == ANGLE for measure in kind.measures("q" if quantity == "q" else "v")]


def check_units(mech: Mechanism, q: ArrayLike, source: str = "q") -> None:
    """Raise if positions (..., nq) look like degrees or millimetres; ``source`` names them in the message."""
    numbers = np.asarray(q, dtype=float)
    for measure, limit, looks_like, usual, remedy in (
        (ANGLE, MAX_ANGLE, "degrees", "radians", "use degrees=True, or "),
        (LENGTH, MAX_LENGTH, "millimetres", "metres", ""),
    ):
        for k, known in enumerate(mech.coordinates.measures("q")):
            largest = np.abs(numbers[..., k]).max(initial=0.0)
            if known == measure and largest > limit:
                raise MechanismError(
                    f"{source}: q.{mech.coordinates.names('q')[k]} reaches {largest:g}, which looks like {looks_like}; "
                    f"{usual} are expected: {remedy}trust_units=True if they are {usual}"
                )


def _degrees_by_energy(mech: Mechanism, q: np.ndarray, v: np.ndarray, kinetic: np.ndarray) -> bool | None:
    """Whether states q (m, nq), v (m, nv) are in degrees, decided by the kinetic energies (m,) in the same table; None
    if inconclusive.
    """
    row = int(np.argmax(kinetic))
    if not kinetic[row] > 0.0:
        return None
    fitting = []
    for factor in (1.0, np.pi / 180.0):
        state = [
            x[row] * np.where([measure == ANGLE for measure in mech.coordinates.measures(of)], factor, 1.0)
            for of, x in (("q", q), ("v", v))
        ]
        if np.isclose(kinetic_energy(mech, *state), kinetic[row], rtol=1e-6, atol=0.0):
            fitting.append(factor != 1.0)
    return fitting[0] if len(fitting) == 1 else None
