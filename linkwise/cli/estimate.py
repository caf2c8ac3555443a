"""linkwise estimate: what noisy measurements tell of accelerations, joint forces, pushes and payloads."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

import click
import numpy as np

import linkwise as lw

from .files import TableFile
from .mechanism import Source
from .signatures import command
from .state import finite_numbers
from .tables import Units


@command("Joint forces, pushes and payloads from noisy measurements.")
def estimate(
    source: Source,
    measurements: str,
    torque_noise: Sequence[Annotated[str, "[JOINT=]S"]] = (),
    acceleration_noise: Sequence[Annotated[str, "[JOINT=]S"]] = (),
    encoder_noise: Annotated[float, "S"] | None = None,
    push: Sequence[Annotated[str, "LINK=S"]] = (),
    payload: Annotated[str, "LINK"] | None = None,
    parameters: str = "m,mx,my,mz",
    output: TableFile | None = None,
) -> None:
    """Most likely accelerations, joint forces and wrenches, with standard deviations, for a table of MEASUREMENTS.

    MEASUREMENTS has q, v, a and tau (see linkwise dynamics), a row per state; with --encoder-noise t, q and tau, and v
    and a are found from q. What has no noise is exact; tau may be left out.

    torque_noise         standard deviation of measured joint forces: a number for all joints, or JOINT=NUMBER, again
                         for others
    acceleration_noise   of measured accelerations, likewise
    encoder_noise        of measured positions, from which v and a follow
    push                 a link with an unknown wrench: its deviation, one or six
    payload              print the payload of a link instead of a table
    parameters           what to find of a payload
    output               a .csv or .npz file; standard output if left out, or -

    \b
    linkwise estimate robot.urdf motion.csv --torque-noise 0.3 --acceleration-noise 0.1 --push fore=20 -o pushed.csv
    """
    mech, units = source.mechanism(), Units(trust_units=source.trust_units)
    needed = ("q", "v", "a") if encoder_noise is None else ("t", "q")
    table = units.read(measurements, mech, needed, ("t", "tau"))
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
    noise = lw.estimation.Noise(of_a, of_tau, dict(_push(text) for text in push))
    if payload is not None:
        if not measured:
            raise click.UsageError("--payload needs columns of tau, and --torque-noise")
        asked = parameters.split(",")
        click.echo(lw.estimation.estimate_payload(mech, q, v, a, table["tau"], payload, noise, asked))
        return
    result = lw.estimation.smooth(mech, q, v, a, table.get("tau"), noise)
    columns = {"t": table["t"]} if "t" in table else {}
    columns |= {name: getattr(result, name) for name in ("a", "a_std", "tau", "tau_std")}
    for link in noise.wrench:
        k = mech.link_names.index(link)
        columns |= {f"wrench.{link}": result.wrenches[:, k], f"wrench_std.{link}": result.wrench_std[:, k]}
    units.write(output, mech, columns)


def _deviations(option: str, texts: Sequence[str], otherwise: float) -> float | dict[str, list[float]]:
    """A number for all joints, or numbers by joint; ``otherwise`` where nothing is said."""
    if not texts:
        return otherwise
    named = [text.rpartition("=") for text in texts]
    if any(name for name, _, _ in named):
        if not all(name for name, _, _ in named):
            raise click.UsageError(f"{option}: a number for all joints, or JOINT=NUMBER for each, not both")
        return {name: finite_numbers(f"{option} {name}", number) for name, _, number in named}
    if len(texts) > 1:
        raise click.UsageError(f"{option}: one number for all joints, or JOINT=NUMBER")
    (number,) = finite_numbers(option, texts[0])[:1]
    return number


def _push(text: str) -> tuple[str, list[float] | float]:
    link, equals, numbers = text.rpartition("=")
    if not equals:
        raise click.UsageError(f"--push {text}: write LINK=DEVIATION, or six of them with commas")
    push = finite_numbers(f"--push {link}", numbers)
    return link, push[0] if len(push) == 1 else push
