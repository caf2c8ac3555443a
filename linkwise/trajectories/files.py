"""Motions in files: tables of samples, with the mechanism where the format has a place for it."""

from __future__ import annotations

import csv
import json
import os
import zipfile
from typing import Any

import numpy as np

from ..mechanics.joints import ANGLE
from ..mechanism import (
    Mechanism,
    MechanismError,
    OmissionWarning,
    did_you_mean,
    from_data,
    require_mechanism,
    to_data,
    warn_caller,
    without_functions,
)
from .motions import Motion, sampled

Path = str | os.PathLike[str]
Table = dict[str, np.ndarray]
QUANTITIES = ("q", "v", "a")


def save_motion(motion: Motion, path: Path, count: int) -> None:
    """Write ``motion.sample(count)`` to a .csv or .npz file."""
    ending = _ending(path)
    table = dict(zip(("t", *QUANTITIES), motion.sample(count), strict=True))
    if ending == ".csv":
        names = [name for quantity in QUANTITIES for name in _columns(motion.mechanism, quantity)]
        with open(path, "w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file, lineterminator="\n")  # names with commas are quoted
            writer.writerow(["t", *names])
            writer.writerows(np.column_stack(list(table.values())).tolist())
        return
    mech, left_out = without_functions(motion.mechanism)
    if left_out:
        warn_caller(
            f"{os.fspath(path)}: functions of time and of coordinates are not stored: the mechanism is there without "
            f"{', '.join(left_out)}",
            OmissionWarning,
        )
    about = json.dumps({"motion": motion.duration, "mechanism": to_data(mech)}, allow_nan=False)
    np.savez_compressed(path, about=np.array(about), **table)  # type: ignore[arg-type]


def load_motion(path: Path, mech: Mechanism | None = None, degrees: bool = False) -> Motion:
    """The planned motion that ``Motion.save`` or ``linkwise trajectory -o`` wrote to a file, .csv or .npz, as a smooth
    curve through its samples (``trajectories.sampled``).  Recorded ones too: t, q, and v and a if they are there.

    mech      the mechanism that moves; None for the one in the file, which .npz files of ``Motion.save`` and
              ``Trajectory.save`` have.  Columns of .csv files go by name, q.elbow, whatever their order
    degrees   whether angles in the file are in degrees
    """
    if mech is not None:
        require_mechanism(mech)
    table, own = _from_npz(path) if _ending(path) == ".npz" else ({}, None)
    mech = own if mech is None else mech
    if mech is None:
        raise MechanismError(f"{os.fspath(path)} does not say what moves: load_motion(path, mech)")
    if _ending(path) == ".csv":
        table = _from_csv(path, mech)
    for name in ("t", "q"):
        if name not in table:
            raise MechanismError(f"{os.fspath(path)} has no {name}: a motion has times t and coordinates q")
    if degrees:
        table = {name: _radians(mech, name, values) for name, values in table.items()}
    return sampled(mech, table["t"].reshape(-1), table["q"], table.get("v"), table.get("a"))


def _ending(path: Path) -> str:
    ending = os.path.splitext(path)[1].lower()
    if ending not in (".csv", ".npz"):
        raise MechanismError(
            f"{os.fspath(path)!r} has no ending that motions are saved with: .csv (a table), .npz (arrays)"
        )
    return ending


def _columns(mech: Mechanism, quantity: str) -> list[str]:
    return [f"{quantity}.{name}" for name in mech.coordinates.names("q" if quantity == "q" else "v")]


def _from_npz(path: Path) -> tuple[Table, Mechanism | None]:
    try:
        with np.load(path, allow_pickle=False) as file:
            table = {name: np.asarray(file[name], dtype=float) for name in ("t", *QUANTITIES) if name in file.files}
            about: Any = json.loads(file["about"].item()) if "about" in file.files else {}
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise MechanismError(f"{os.fspath(path)} is no .npz file of numbers t, q, v, a") from None
    known = about.get("mechanism") if isinstance(about, dict) else None
    return table, None if known is None else from_data(known)


def _from_csv(path: Path, mech: Mechanism) -> Table:
    with open(path, newline="", encoding="utf-8-sig") as file:
        names, *rows = [cells for cells in csv.reader(file) if cells] or [[]]
    try:
        values = np.array(rows, dtype=float).reshape(len(rows), len(names))
    except ValueError:
        raise MechanismError(
            f"{os.fspath(path)}: a row has another length than the first, or holds no number"
        ) from None
    table: Table = {"t": values[:, names.index("t")]} if "t" in names else {}
    for quantity in QUANTITIES:
        own, expected = [name for name in names if name.startswith(f"{quantity}.")], _columns(mech, quantity)
        for name in own:
            if name not in expected:
                raise MechanismError(
                    f"{os.fspath(path)}: {name!r} is no coordinate of mechanism {mech.name!r}: "
                    + did_you_mean(name, expected)
                )
        missing = [name for name in expected if name not in own]
        if own and missing:
            raise MechanismError(f"{os.fspath(path)} has no column {', '.join(missing)}")
        if own:
            table[quantity] = values[:, [names.index(name) for name in expected]]
    return table


def _radians(mech: Mechanism, quantity: str, values: np.ndarray) -> np.ndarray:
    """Angles, or rates of angles, of degrees."""
    if quantity == "t":
        return values
    of = "q" if quantity == "q" else "v"
    measures = [one.of for body in mech.bodies if not body.mimic for one in body.kind.measures(of)]
    return np.where([measure == ANGLE for measure in measures], np.radians(values), values)
