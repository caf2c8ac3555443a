"""Trajectories in files: NumPy arrays, and JSON for the rest.  Reading one runs no code from it."""

from __future__ import annotations

import json
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from ..dynamics.passive import Passive
from ..mechanism import MechanismError, OmissionWarning, from_data, to_data, warn_caller, without_functions
from .events import Occurrence
from .settings import Settings
from .systems import Chart
from .trajectory import End, Trajectory

FORMAT = 2
ARRAYS = ("t", "q", "v", "a", "tau", "step_sizes")
SOMETIMES = ("wrenches", "ctrl", "activation")  # arrays that a trajectory may have


def save(trajectory: Trajectory, path: str | Path) -> None:
    """Write a trajectory with its mechanism to ``path``; what follows functions is left out of the mechanism."""
    from .. import __version__

    end, events = trajectory.end, trajectory.events
    mech, functions = without_functions(trajectory.mechanism)
    if functions:
        end = replace(end, chart=None)  # its rows are of all constraints
        warn_caller(
            f"{path}: functions of time and of coordinates are not stored: the samples are, with the mechanism "
            f"without {', '.join(functions)}, from which forces of constraints cannot be computed again",
            OmissionWarning,
        )
    about = {
        "format": FORMAT,
        "version": __version__,
        "mechanism": to_data(mech),
        "left_out": functions,
        "passive": None if trajectory.passive is None else trajectory.passive.to_data(),
        "acts": True,  # elements of the mechanism; in files of earlier versions they did not
        "settings": trajectory.settings.to_data(),
        "evaluations": trajectory.evaluations,
        "chart_changes": trajectory.chart_changes,
        "stopped": trajectory.stopped,
        "events": [{"name": event.name, "t": event.t} for event in events],
        "end": {"t": end.t, "grid": end.grid, "step": end.step, "rank": None if end.chart is None else end.chart.rank},
    }
    arrays = {name: getattr(trajectory, name) for name in ARRAYS}
    arrays |= {"end_q": end.q, "end_v": end.v, "end_x": end.x}
    for name in SOMETIMES:
        if getattr(trajectory, name) is not None:
            arrays[name] = getattr(trajectory, name)
    if end.chart is not None:
        arrays["chart_origin"] = end.chart.origin
        if end.chart.rows is not None:
            arrays["chart_rows"] = end.chart.rows
    nq, nv = mech.nq, mech.nv
    arrays["event_q"] = np.array([event.q for event in events]).reshape(len(events), nq)
    arrays["event_v"] = np.array([event.v for event in events]).reshape(len(events), nv)
    with open(path, "wb") as file:
        np.savez_compressed(file, about=np.array(json.dumps(about, allow_nan=False)), **arrays)


def load_trajectory(path: str | Path) -> Trajectory:
    """The trajectory that ``Trajectory.save`` wrote to ``path``."""
    foreign = MechanismError(f"{path} is no trajectory that linkwise wrote: Trajectory.save writes such files (.npz)")
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about: dict[str, Any] = json.loads(arrays["about"].item())
    except (ValueError, KeyError, EOFError, AttributeError, zipfile.BadZipFile):
        raise foreign from None
    if not isinstance(about, dict):
        raise foreign
    if "motion" in about:
        raise MechanismError(f"{path} is a planned motion, which linkwise.load_motion reads")
    if about.get("format") != FORMAT:
        raise MechanismError(
            f"{path} is a trajectory of format {about.get('format')!r} (linkwise {about.get('version')}); this version "
            f"reads format {FORMAT}"
        )
    if about.get("left_out"):
        warn_caller(
            f"{path}: the mechanism is here without {', '.join(about['left_out'])}, functions that files do not hold: "
            "forces of constraints and what follows when it is resumed are not those of the motion",
            OmissionWarning,
        )
    happened = zip(about["events"], arrays["event_q"], arrays["event_v"], strict=True)
    end, grid = about["end"], about["end"]["grid"]
    passive = None if about["passive"] is None else Passive.from_data(about["passive"])
    return Trajectory(
        mechanism=from_data(about["mechanism"]),
        **{name: arrays[name] for name in ARRAYS},
        passive=Passive() if passive is None and not about.get("acts") else passive,
        events=tuple(Occurrence(one["name"], one["t"], q, v) for one, q, v in happened),
        evaluations=about["evaluations"],
        stopped=about["stopped"],
        chart_changes=about["chart_changes"],
        settings=Settings.from_data(about["settings"]),
        end=End(
            end["t"],
            arrays["end_q"],
            arrays["end_v"],
            arrays["end_x"],
            None if grid is None else (grid[0], grid[1], grid[2]),
            end["step"],
            Chart(arrays["chart_origin"], arrays.get("chart_rows"), end["rank"]) if "chart_origin" in arrays else None,
        ),
        **{name: arrays[name] for name in SOMETIMES if name in arrays},
    )
