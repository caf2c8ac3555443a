"""Motions in files: tables of samples, with the mechanism if the format can hold it."""

from __future__ import annotations

import json
import os
import zipfile
from typing import Any

import numpy as np

from ..dynamics.tables import ABOUT, ENDINGS, read_table, write_table
from ..mechanism import (
    Mechanism,
    MechanismError,
    OmissionWarning,
    from_data,
    require_mechanism,
    to_data,
    warn_caller,
    without_functions,
)
from .motions import Motion, sampled

Path = str | os.PathLike[str]


def save_motion(motion: Motion, path: Path, count: int) -> None:
    """Write ``motion.sample(count)`` to a .csv or .npz file."""
    table = dict(zip(("t", "q", "v", "a"), motion.sample(count), strict=True))
    if _ending(path) == ".csv":
        write_table(path, motion.mechanism, table)
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
    """A motion from a .csv or .npz file with columns t, q and optionally v and a, as ``Motion.save`` and ``linkwise
    trajectory -o`` write, interpolated smoothly (``trajectories.sampled``).

    mech      the mechanism that moves; None for the one in the file, which .npz files of ``Motion.save`` and
              ``Trajectory.save`` have.  Columns of .csv files go by name, q.elbow, whatever their order
    degrees   whether angles in the file are in degrees
    """
    if mech is not None:
        require_mechanism(mech)
    elif _ending(path) == ".npz":
        mech = _mechanism_in(path)
    if mech is None:
        raise MechanismError(f"{os.fspath(path)} does not say what moves: load_motion(path, mech)")
    table = read_table(path, mech, ("t", "q"), ("v", "a"), degrees, trust_units=True)
    return sampled(mech, table["t"], table["q"], table.get("v"), table.get("a"))


def _ending(path: Path) -> str:
    ending = os.path.splitext(path)[1].lower()
    if ending not in ENDINGS:
        raise MechanismError(
            f"{os.fspath(path)!r} has no ending that motions are saved with: .csv (a table), .npz (arrays)"
        )
    return ending


def _mechanism_in(path: Path) -> Mechanism | None:
    """The mechanism that ``save`` put into a .npz file; None without."""
    try:
        with np.load(path, allow_pickle=False) as file:
            about: Any = json.loads(file[ABOUT].item()) if ABOUT in file.files else {}
    except (ValueError, EOFError, zipfile.BadZipFile):
        raise MechanismError(f"{os.fspath(path)} is no .npz file of numbers t, q, v, a") from None
    known = about.get("mechanism") if isinstance(about, dict) else None
    return None if known is None else from_data(known)
