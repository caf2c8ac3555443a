"""Denavit-Hartenberg tables as files: TOML with one [[link]] per row, or CSV with one line per row.

The keys are those of ``from_dh``.  Angles may be given in degrees: ``alpha_deg``, ``theta_deg``, ``offset_deg``.  TOML:

    convention = "saha1999"            # if left out: this one for rows with b or r, otherwise "standard"
    gravity = [0.0, 0.0, -9.81]
    [[link]]
    a = 0.0
    alpha_deg = -90.0
    b = 0.2
    mass = 9.0
    r = [0.0, -0.1, 0.0]
    inertia = [0.01, 0.02, 0.01]

CSV has columns for the components instead: rx, ry, rz (or comx, ...), Ixx, Iyy, Izz and, if wanted, Ixy, Ixz, Iyz.  An
empty cell is a key left out.
"""

from __future__ import annotations

import csv
import math
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.mechanism import Mechanism, MechanismError, from_dh
from linkwise.readers.protocol import STANDARD_GRAVITY, why_unread

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

MAX_ANGLE = 2.0 * math.pi  # of a constant of a table: larger ones are degrees
MAX_LENGTH = 50.0  # metres: larger ones are millimetres
_ANGLES, _LENGTHS = ("alpha", "theta", "offset"), ("a", "b", "d")
_TEXT = ("kind", "link", "joint")
_INERTIA = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")


def load_dh(path: str | os.PathLike[str], convention: str | None = None, trust_units: bool = False) -> Mechanism:
    """A serial arm from a DH table in a TOML or CSV file.

    convention    instead of the convention of the file; if both are left out, "saha1999" for tables with b or r,
                  otherwise "standard"
    trust_units   accept angles and lengths that look like degrees and millimetres
    """
    file = Path(path)
    if not file.is_file():
        raise FileNotFoundError(why_unread(file))
    if file.suffix.lower() not in _FORMATS:
        raise MechanismError(f"{file}: a DH table is a {' or '.join(_FORMATS)} file")
    try:
        head, rows = _FORMATS[file.suffix.lower()](file.read_text(encoding="utf-8-sig"))
        if not rows:
            raise MechanismError("the DH table has no rows")
        rows = [_convert_degrees(number, row) for number, row in enumerate(rows, 1)]
        if not trust_units:
            for number, row in enumerate(rows, 1):
                _check_units(number, row)
        symbols = "saha1999" if any({"b", "r"} & row.keys() for row in rows) else "standard"
        settings = {"name": head.get("name", file.stem), "gravity": head.get("gravity", STANDARD_GRAVITY)}
        return from_dh(rows, convention or head.get("convention", symbols), **settings)
    except UnicodeDecodeError:
        raise MechanismError(f"{file} is no text file") from None
    except MechanismError as error:
        raise MechanismError(f"{file}: {error}") from None


# -- formats ------------------------------------------------------------------------------------------


def _parse_toml(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    try:
        head = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MechanismError(f"this is not TOML: {error}") from None
    rows = head.pop("link", [])
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise MechanismError("the rows of the table are written as [[link]], one for each")
    unknown = set(head) - {"name", "convention", "gravity"}
    if unknown:
        raise MechanismError(
            f"unknown key {min(unknown)!r} above the rows; known: name, convention, gravity and one [[link]] per row"
        )
    return head, rows


def _parse_csv(text: str) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    lines = list(csv.reader(text.splitlines(), skipinitialspace=True))
    lines = [line for line in lines if any(cell.strip() for cell in line) and not line[0].lstrip().startswith("#")]
    if not lines:
        raise MechanismError("the file is empty; its first line names the columns")
    names = [cell.strip() for cell in lines[0]]
    for needed in ("a", "alpha"):
        if not {needed, f"{needed}_deg"} & set(names):
            raise MechanismError(f"there is no column {needed!r}; the first line names {', '.join(names)}")
    rows = []
    for number, line in enumerate(lines[1:], 1):
        if len(line) != len(names):
            raise MechanismError(f"row {number} has {len(line)} cells, the first line names {len(names)} columns")
        cells = {name: cell.strip() for name, cell in zip(names, line, strict=True) if cell.strip()}
        rows.append(_collect_components({name: _value(number, name, cell) for name, cell in cells.items()}))
    return {}, rows


def _value(number: int, name: str, cell: str) -> Any:
    if name in _TEXT:
        return cell
    try:
        return float(cell)
    except ValueError:
        raise MechanismError(f"row {number} of the DH table: {name} is {cell!r}, which is no number") from None


def _collect_components(cells: dict[str, Any]) -> dict[str, Any]:
    """The row with components of vectors and tensors collected."""
    plain = {name.lower().replace("_", ""): name for name in cells}
    row = dict(cells)
    for vector in ("r", "com"):
        entries = [plain.get(f"{vector}{axis}") for axis in "xyz"]
        if any(entries):
            row[vector] = [row.pop(name, 0.0) if name else 0.0 for name in entries]
    entries = [plain.get(name) for name in _INERTIA]
    if any(entries):
        xx, yy, zz, xy, xz, yz = (row.pop(name, 0.0) if name else 0.0 for name in entries)
        row["inertia"] = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    return row


_FORMATS = {".toml": _parse_toml, ".csv": _parse_csv}  # ending of a file, and what reads it


# -- units --------------------------------------------------------------------------------------------


def _convert_degrees(number: int, row: Mapping[str, Any]) -> dict[str, Any]:
    result = dict(row)
    for name in _ANGLES:
        if f"{name}_deg" in result:
            if name in result:
                raise MechanismError(f"row {number} of the DH table has both {name} and {name}_deg")
            degrees = result.pop(f"{name}_deg")
            if not isinstance(degrees, (int, float)) or isinstance(degrees, bool):
                raise MechanismError(f"row {number} of the DH table: {name}_deg is {degrees!r}, which is no number")
            result[name] = math.radians(degrees)
    return result


def _check_units(number: int, row: Mapping[str, Any]) -> None:
    """Raise for numbers that are plausible only in other units; ``from_dh`` checks that they are numbers."""
    sliding = row.get("kind") == "prismatic"
    angles = ("alpha", "theta") if sliding else _ANGLES
    lengths = (*_LENGTHS, "offset") if sliding else _LENGTHS
    for name in angles:
        if _size(row.get(name)) > MAX_ANGLE:
            raise MechanismError(
                f"row {number} of the DH table: {name} = {row[name]:g} looks like degrees, radians are expected; "
                f"call it {name}_deg if so"
            )
    for name in (*lengths, "r", "com"):
        if _size(row.get(name)) > MAX_LENGTH:
            raise MechanismError(
                f"row {number} of the DH table: {name} = {row[name]} looks like millimetres, metres are expected"
            )
    mass = _size(row.get("mass"))
    if mass > 0.0 and _size(row.get("inertia")) > mass * MAX_LENGTH**2:
        raise MechanismError(
            f"row {number} of the DH table: an inertia of {_size(row['inertia']):g} is too much for a mass of {mass:g} "
            "kg; kg m^2 are expected, not kg mm^2"
        )


def _size(value: Any) -> float:
    """The largest magnitude of a number or of numbers; 0 for anything else and for infinite numbers."""
    try:
        numbers = np.abs(np.asarray(value, dtype=float))
    except (TypeError, ValueError):
        return 0.0
    return float(numbers[np.isfinite(numbers)].max(initial=0.0))
