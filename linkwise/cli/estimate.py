"""linkwise estimate: what noisy measurements tell of accelerations, joint forces, pushes and payloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import click
import numpy as np

import linkwise as lw

from .mechanism import Loaded, report_warnings, takes_mechanism
from .state import finite_numbers
from .tables import check_table_output, columns, read_table, write_csv

DEVIATION = "Its standard deviation: a number for all joints, or JOINT=NUMBER, again for others."


@click.command(short_help="Joint forces, pushes and payloads from noisy measurements.")
@takes_mechanism
@click.argument("measurements")
@click.option("--torque-noise", multiple=True, metavar="[JOINT=]S", help=f"Of measured joint forces. {DEVIATION}")
@click.option("--acceleration-noise", multiple=True, metavar="[JOINT=]S", help="Of measured accelerations, likewise.")
@click.option("--encoder-noise", type=float, metavar="S", help="Of measured positions, from which v and a follow.")
@click.option(
    "--push",
    "pushes",
    multiple=True,
    metavar="LINK=S",
    help="A link with an unknown wrench: its deviation, one or six.",
)
@click.option("--payload", metavar="LINK", help="Print the payload of a link instead of a table.")
@click.option("--parameters", default="m,mx,my,mz", show_default=True, help="What to find of a payload.")
@click.option("--output", "-o", metavar="FILE", help="A .csv file; standard output if left out, or -.")
def estimate(
    found: Loaded,
    measurements: str,
    torque_noise: Sequence[str],
    acceleration_noise: Sequence[str],
    encoder_noise: float | None,
    pushes: Sequence[str],
    payload: str | None,
    parameters: str,
    output: str | None,
) -> None:
    """Most likely accelerations, joint forces and wrenches, with standard deviations, for a table of MEASUREMENTS.

    MEASUREMENTS has q, v, a and tau (see linkwise dynamics), a row per state; with --encoder-noise t, q and tau, and v
    and a are found from q. What has no noise is exact; tau may be left out.

    \b
    linkwise estimate robot.urdf motion.csv --torque-noise 0.3 --acceleration-noise 0.1 --push fore=20 -o pushed.csv
    """
    check_table_output(output)
    mech = report_warnings(found)
    needed = ("q", "v", "a") if encoder_noise is None else ("t", "q")
    table = read_table(measurements, mech, needed, ("t", "tau"), trust_units=found.trust_units)
    of_a: Any
    if encoder_noise is None:
        q, v, a, of_a = table["q"], table["v"], table["a"], _deviations("--acceleration-noise", acceleration_noise, 0.0)
    else:
        if acceleration_noise or payload:
            raise click.UsageError(
                "--encoder-noise goes without --acceleration-noise, and without --payload: accelerations from "
                "positions have errors that depend on each other"
            )
        motion = lw.estimation.encoder_motion(mech, table["t"], table["q"], encoder_noise)
        q, v, a, of_a = motion.q, motion.v, motion.a, motion.a_std
    measured = "tau" in table
    if measured != bool(torque_noise):
        raise click.UsageError("--torque-noise goes with columns of tau: both are needed, or neither")
    of_tau = _deviations("--torque-noise", torque_noise, np.inf)
    noise = lw.estimation.Noise(of_a, of_tau, dict(_push(text) for text in pushes))
    if payload is not None:
        if not measured:
            raise click.UsageError("--payload needs columns of tau, and --torque-noise")
        asked = parameters.split(",")
        click.echo(lw.estimation.estimate_payload(mech, q, v, a, table["tau"], payload, noise, asked))
        return
    result = lw.estimation.smooth(mech, q, v, a, table.get("tau"), noise)
    names, parts = [], []
    if "t" in table:
        names.append("t")
        parts.append(table["t"][:, None])
    for quantity in ("a", "a_std", "tau", "tau_std"):
        names += columns(mech, quantity)
        parts.append(getattr(result, quantity))
    for link in noise.wrench:
        k = mech.link_names.index(link)
        names += [f"{what}.{link}[{i}]" for what in ("wrench", "wrench_std") for i in range(6)]
        parts += [result.wrenches[:, k], result.wrench_std[:, k]]
    write_csv(output, names, np.concatenate(parts, axis=1))


def _deviations(option: str, given: Sequence[str], otherwise: float) -> float | dict[str, list[float]]:
    """A number for all joints, or numbers by joint; ``otherwise`` where nothing is said."""
    if not given:
        return otherwise
    named = [text.rpartition("=") for text in given]
    if any(name for name, _, _ in named):
        if not all(name for name, _, _ in named):
            raise click.UsageError(f"{option}: a number for all joints, or JOINT=NUMBER for each, not both")
        return {name: finite_numbers(f"{option} {name}", number) for name, _, number in named}
    if len(given) > 1:
        raise click.UsageError(f"{option}: one number for all joints, or JOINT=NUMBER")
    (number,) = finite_numbers(option, given[0])[:1]
    return number


def _push(text: str) -> tuple[str, list[float] | float]:
    link, equals, numbers = text.rpartition("=")
    if not equals:
        raise click.UsageError(f"--push {text}: write LINK=DEVIATION, or six of them with commas")
    found = finite_numbers(f"--push {link}", numbers)
    return link, found[0] if len(found) == 1 else found
