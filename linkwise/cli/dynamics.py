"""linkwise dynamics: torques along trajectories and accelerations under torques, from files to files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import click
import numpy as np

import linkwise as lw

from .files import TableFile
from .mechanism import Source
from .signatures import command
from .tables import Table, Units


@dataclass
class Tables:
    """Tables in and out.

    output   a .csv or .npz file; CSV on standard output if left out, or -
    """

    units: Units
    output: TableFile | None = None

    def read(self, path: str, mech: lw.Mechanism, *needed: str) -> Table:
        """The quantities ``needed``, and t if it is there."""
        return self.units.read(path, mech, needed)

    def write(self, mech: lw.Mechanism, states: Table, **quantities: np.ndarray) -> None:
        """The quantities, behind the time of the states."""
        time = {"t": states["t"]} if "t" in states else {}
        self.units.write(self.output, mech, {**time, **quantities})


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


@dynamics.add_command
@command("Joint torques along a trajectory.")
def inverse(
    source: Source,
    trajectory: str,
    tables: Tables,
    actuated: Sequence[Annotated[str, "JOINT"]] = (),
    independent: Sequence[Annotated[str, "JOINT"]] = (),
) -> None:
    """Joint torques and forces (tau) along a TRAJECTORY with q, v and a; loops, if there are any, stay closed, and the
    least forces are given where they leave a choice.

    actuated      a joint with a motor, once for each; all of them by default
    independent   with loops, a joint whose accelerations are taken from the table; the others follow.  All by default

    \b
    linkwise dynamics inverse robot.urdf motion.csv -o torques.csv
    linkwise dynamics inverse builtin:four_bar turn.csv --actuated crank_joint
    """
    mech = source.mechanism()
    states = tables.read(trajectory, mech, "q", "v", "a")
    q, v, a = (states[name] for name in ("q", "v", "a"))
    if independent:
        a = np.concatenate([a[:, mech.v_index(joint)] for joint in independent], axis=-1)
    tau = lw.inverse_dynamics(mech, q, v, a, actuated=actuated or None, independent=independent or None)
    tables.write(mech, states, tau=tau)


@dynamics.add_command
@command("Joint accelerations in states.")
def forward(source: Source, states: str, tables: Tables) -> None:
    """Joint accelerations (a) in STATES with q, v and tau; loops, if there are any, stay closed.

    \b
    linkwise dynamics forward robot.urdf states.npz -o accelerations.npz
    """
    mech = source.mechanism()
    rows = tables.read(states, mech, "q", "v", "tau")
    tables.write(mech, rows, a=lw.forward_dynamics(mech, rows["q"], rows["v"], rows["tau"]))


@dynamics.command(hidden=True, context_settings={"ignore_unknown_options": True})
@click.argument("arguments", nargs=-1)
def simulate(arguments: Sequence[str]) -> None:
    """Moved."""
    raise click.UsageError("simulate is a command of its own: linkwise simulate FILE --duration SECONDS")
