"""linkwise dynamics: torques along trajectories and accelerations under torques, from files to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

import linkwise as lw

from .mechanism import Loaded, report_warnings, takes_mechanism
from .tables import Table, check_table_output, read_table, write_table
from .units import DEGREE, scaled


def file_options(command: Callable[..., Any]) -> Callable[..., Any]:
    for option in (
        click.option(
            "--output", "-o", metavar="FILE", help="A .csv or .npz file; CSV on standard output if left out, or -."
        ),
        click.option("--degrees", is_flag=True, help="Angles, and their rates, in degrees, in and out."),
    ):
        command = option(command)
    return command


@click.group(short_help="Inverse and forward dynamics of tables of states.")
def dynamics() -> None:
    """Inverse and forward dynamics of whole tables of states.

    Tables of numbers are CSV files with columns t, q.elbow, v.elbow, a.elbow, tau.elbow, ... for joints elbow, ... (or
    q1, q2, ..., v1, ... in their order), or npz files with arrays t, q, v, a, tau, one row per state; - is standard
    input. To follow a motion in time, see linkwise simulate.

    \b
    linkwise dynamics inverse builtin:stanford_arm motion.csv -o torques.csv
    linkwise simulate robot.urdf --duration 1 -o - | linkwise dynamics inverse robot.urdf -
    """


@dynamics.command()
@takes_mechanism
@click.argument("trajectory")
@file_options
def inverse(found: Loaded, trajectory: str, degrees: bool, output: str | None) -> None:
    """Joint torques and forces (tau) along a TRAJECTORY with q, v and a.

    \b
    linkwise dynamics inverse robot.urdf motion.csv -o torques.csv
    """
    check_table_output(output)
    mech = report_warnings(found)
    table = read_table(trajectory, mech, ("q", "v", "a"), degrees=degrees, trust_units=found.trust_units)
    tau = lw.inverse_dynamics(mech, table["q"], table["v"], table["a"])
    write_table(output, mech, {**_time(table), "tau": tau})


@dynamics.command()
@takes_mechanism
@click.argument("states")
@file_options
def forward(found: Loaded, states: str, degrees: bool, output: str | None) -> None:
    """Joint accelerations (a) in STATES with q, v and tau; loops, if there are any, stay closed.

    \b
    linkwise dynamics forward robot.urdf states.npz -o accelerations.npz
    """
    check_table_output(output)
    mech = report_warnings(found)
    table = read_table(states, mech, ("q", "v", "tau"), degrees=degrees, trust_units=found.trust_units)
    solve = lw.closed.forward_dynamics if mech.loops else lw.forward_dynamics
    a = solve(mech, table["q"], table["v"], table["tau"])
    write_table(output, mech, {**_time(table), "a": scaled(mech, "a", a, 1.0 / DEGREE if degrees else 1.0)})


@dynamics.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1)
def simulate(arguments: Sequence[str]) -> None:
    """Moved."""
    raise click.UsageError("simulate is a command of its own: linkwise simulate FILE --duration SECONDS")


def _time(table: Table) -> Table:
    return {"t": table["t"]} if "t" in table else {}
