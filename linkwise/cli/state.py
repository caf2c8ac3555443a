"""States on the command line: joints by name, the rest as the mechanism has it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np

import linkwise as lw
from linkwise.mechanism.checks import did_you_mean

from .tables import read_table
from .units import DEGREE, check_units, scaled


def state_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """--q, --v, --start and --degrees."""
    for option in (
        click.option(
            "--degrees", is_flag=True, help="Angles and their rates in degrees, on the command line and in files."
        ),
        click.option(
            "--start", metavar="FILE", help="State from a .csv or .npz table: its first row, q and perhaps v."
        ),
        click.option("--v", "velocities", multiple=True, metavar="JOINT=V", help="Velocity of a joint; 0 by default."),
        click.option(
            "--q",
            "positions",
            multiple=True,
            metavar="JOINT=Q",
            help="Position of a joint; commas between several numbers.",
        ),
    ):
        command = option(command)
    return command


def state(
    mech: lw.Mechanism,
    positions: Sequence[str],
    velocities: Sequence[str],
    start: str | None,
    degrees: bool,
    trust_units: bool,
) -> tuple[np.ndarray, np.ndarray]:
    """(q, v): the neutral state at rest, or that of ``start``, with the named joints set; loops closed."""
    factor = DEGREE if degrees else 1.0
    q, v = lw.neutral(mech), np.zeros(mech.nv)
    if start:
        table = read_table(start, mech, ("q",), ("v",))
        q = scaled(mech, "q", table["q"][0], factor)
        v = scaled(mech, "v", table["v"][0], factor) if "v" in table else v
    q = named(mech, "q", positions, q, factor)
    v = named(mech, "v", velocities, v, factor)
    if not trust_units:
        check_units("the state", mech, q)
    if mech.loops:
        q = lw.closed.assemble(mech, q, hold=tuple(text.partition("=")[0] for text in positions))
        v = lw.closed.project(mech, q, v)[1]
    return q, v


def named(mech: lw.Mechanism, quantity: str, texts: Sequence[str], values: np.ndarray, factor: float) -> np.ndarray:
    """``values`` with the joints of ``texts`` (JOINT=NUMBER[,NUMBER...]) set, their angles multiplied by ``factor``."""
    given = np.array(values, dtype=float)
    for text in texts:
        joint, equals, numbers = text.rpartition("=")
        if not equals:
            raise click.UsageError(f"--{quantity} {text}: the form is JOINT=NUMBER, such as {mech.joint_names[0]}=0.5")
        if joint not in mech.joint_names:
            raise click.UsageError(f"{mech.name} has no joint {joint!r}: {did_you_mean(joint, mech.joint_names)}")
        index = mech.q_index(joint) if quantity == "q" else mech.v_index(joint)
        try:
            parsed = [float(number) for number in numbers.split(",")]
        except ValueError:
            raise click.UsageError(f"--{quantity} {text}: {numbers!r} is no number") from None
        count = index.stop - index.start
        if len(parsed) != count:
            raise click.UsageError(f"--{quantity} {text}: joint {joint!r} takes {count} numbers, commas between them")
        if not np.isfinite(parsed).all():
            raise click.UsageError(f"--{quantity} {text}: numbers must be finite")
        only = np.zeros_like(given)
        only[index] = parsed
        given[index] = scaled(mech, quantity, only, factor)[index]
    return given
