"""linkwise dynamics: torques along trajectories and accelerations under torques, from files to files."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click
import numpy as np

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
@click.option(
    "--actuated", multiple=True, metavar="JOINT", help="A joint with a motor, once for each; all of them by default."
)
@click.option(
    "--independent",
    multiple=True,
    metavar="JOINT",
    help="With loops, a joint whose accelerations are taken from the table; the others follow. All by default.",
)
@file_options
def inverse(
    found: Loaded, trajectory: str, actuated: Sequence[str], independent: Sequence[str], degrees: bool,
    output: str | None,
) -> None:  # fmt: skip
    """Joint torques and forces (tau) along a TRAJECTORY with q, v and a; loops, if there are any, stay closed, and the
    least forces are given where they leave a choice.

    \b
    linkwise dynamics inverse robot.urdf motion.csv -o torques.csv
    linkwise dynamics inverse builtin:four_bar turn.csv --actuated crank_joint
    """
    check_table_output(output)
    mech = report_warnings(found)
    table = read_table(trajectory, mech, ("q", "v", "a"), degrees=degrees, trust_units=found.trust_units)
    q, v, a = (table[name] for name in ("q", "v", "a"))
    if independent:
        a = np.concatenate([a[:, mech.v_index(joint)] for joint in independent], axis=-1)
    if mech.loops or actuated or independent:
        tau = lw.closed.inverse_dynamics(mech, q, v, a, actuated or None, independent=independent or None)
    else:
        tau = lw.inverse_dynamics(mech, q, v, a)
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
