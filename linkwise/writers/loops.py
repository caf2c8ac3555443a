"""Loops and couplings that URDF+ cannot express, as the companion file in TOML that ``readers/loops`` reads."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from typing import Any

import numpy as np

from linkwise.mechanism import Constraint, Coupling, Mechanism, Pose
from linkwise.mechanism.naming import key_of, word_of
from linkwise.mechanism.plain_data import plain, relation_data
from linkwise.writers.report import Report


def refuse_functions(mech: Mechanism, report: Report) -> None:
    """Raise for loops that are driven in time or have functions as ratios."""
    for loop in mech.loops:
        of_rates = isinstance(loop, Coupling) and (
            not loop.keeps_position or (loop.ratios_change and loop.relation is None)
        )
        if loop.drive is not None or of_rates:
            raise report.refuse(
                f"{loop.name!r} follows time or functions of coordinates, which files do not hold; save "
                "mech.spanning_tree, which is without loops"
            )


def toml_of(loops: Iterable[Constraint]) -> str:
    """The text of the companion file."""
    return "\n".join(_table(loop) for loop in loops)


def _table(loop: Constraint) -> str:
    if isinstance(loop, Coupling) and loop.relation is not None:
        joints, formula = relation_data(loop)
        head = f"[[coupling]]\nname = {_text(loop.name)}\njoints = {_text(joints)}\n"
        lines = ",\n".join(f"  {_text(line)}" for line in formula)
        return f"{head}formula = [\n{lines}\n]\noffset = {_text(loop.offset)}\n"
    if isinstance(loop, Coupling):
        ratios = ", ".join(f"{_text(joint)} = {_text(ratio)}" for joint, ratio in loop.ratios)
        return f"[[coupling]]\nname = {_text(loop.name)}\nratios = {{{ratios}}}\noffset = {_text(loop.offset)}\n"
    record: Any = loop.kind
    data = plain(record)  # refuses kinds whose fields do not make them again
    fields = {key_of(f.name): data[f.name] for f in dataclasses.fields(record) if f.init}
    entries = {
        "name": _text(loop.name),
        "kind": _text(word_of(data["type"])),
        **{name: _text(value) for name, value in fields.items()},
        "link_a": _text(loop.link_a),
        "pose_a": _pose(loop.pose_a),
        "link_b": _text(loop.link_b),
        "pose_b": _pose(loop.pose_b),
    }
    return "[[loop]]\n" + "".join(f"{key} = {value}\n" for key, value in entries.items())


def _pose(pose: Pose) -> str:
    rotation, position = pose
    rotated = "" if np.array_equal(rotation, np.eye(3)) else f", rotation = {_text(rotation)}"
    return f"{{xyz = {_text(position)}{rotated}}}"


def _text(value: Any) -> str:
    """A TOML value: numbers with all digits; strings, booleans and lists as in JSON."""
    return json.dumps(value.tolist() if isinstance(value, np.ndarray) else value, ensure_ascii=False)
