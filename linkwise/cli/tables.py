"""Units of angles on the command line and in tables, and tables that come in and go out."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import click
import numpy as np

import linkwise as lw

from .files import PIPE, existing

Table = dict[str, np.ndarray]  # t (rows,), q (rows, nq), v, a, tau (rows, nv)
RADIANS, DEGREES = "radians", "degrees"
OPTIONS = {"degrees=True": "--degrees", "trust_units=True": "--trust-units"}  # as messages of the library have them


@contextmanager
def options_in_messages() -> Any:
    """Messages of the library with options in place of arguments."""
    try:
        yield
    except lw.MechanismError as error:
        message = str(error)
        for argument, option in OPTIONS.items():
            message = message.replace(argument, option)
        raise click.UsageError(message) from None


@dataclass
class Units:
    """Units outside: tables, numbers by joint, files and pictures.

    degrees       angles and their rates in degrees: on the command line, in tables, files and pictures
    trust_units   accept numbers that look like degrees or millimetres
    """

    degrees: bool = False
    trust_units: bool = False

    @options_in_messages()
    def read(self, path: str, mech: lw.Mechanism, needed: Sequence[str], optional: Sequence[str] = ("t",)) -> Table:
        """The quantities ``needed``, and those of ``optional`` that are there, in radians and metres; "-" is standard
        input."""
        file = sys.stdin.buffer if path == PIPE else existing(path)
        return lw.files.read_table(file, mech, needed, optional, self.degrees, self.trust_units)

    @options_in_messages()
    def write(self, path: str | None, mech: lw.Mechanism, table: Table) -> None:
        """Columns of numbers to a .csv or .npz file, or as CSV to standard output."""
        lw.files.write_table(sys.stdout if path in (None, PIPE) else str(path), mech, table, self.degrees)

    @options_in_messages()
    def inside(self, mech: lw.Mechanism, quantity: str, values: Any, joint: str) -> np.ndarray:
        """A joint's own numbers of "q" or "v" in radians."""
        return lw.files.in_radians(mech, quantity, values, joint) if self.degrees else np.array(values, dtype=float)

    def angle(self, value: Any) -> Any:
        """An angle in radians."""
        return np.radians(value) if self.degrees else value

    @options_in_messages()
    def outside(self, mech: lw.Mechanism, quantity: str, values: Any) -> np.ndarray:
        """Numbers (..., n) of "q" or "v" as they are shown."""
        return lw.files.in_degrees(mech, quantity, values) if self.degrees else np.array(values, dtype=float)

    @options_in_messages()
    def check(self, option: str, mech: lw.Mechanism, q: np.ndarray) -> None:
        """Refuse positions that look like other units."""
        if not self.trust_units:
            lw.files.check_units(mech, q, option)

    def names(self, mech: lw.Mechanism) -> dict[str, str]:
        """The units of q, v and tau of a mechanism's joints, as heads of tables have them: "rad, m"."""
        measured = {number.of for body in mech.bodies for number in body.kind.measures("v")}
        angle = DEGREES if self.degrees else "rad"
        words = {"angle": (angle, f"{angle}/s", "N m"), "length": ("m", "m/s", "N"), "other": ("own units",) * 3}
        return {
            quantity: ", ".join(words[measure][k] for measure in words if measure in measured)
            for k, quantity in enumerate(("q", "v", "tau"))
        }
