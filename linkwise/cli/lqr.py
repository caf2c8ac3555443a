"""linkwise lqr: the regulator that holds a mechanism at an equilibrium, as gains for ``simulate --regulator``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import linkwise as lw

from .acting import acting_options, with_acting
from .files import check_output
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import as_json, section, shown, table
from .state import finite_numbers, names_of, state, state_options

PLACES = ("held", "equilibrium")


@click.command(short_help="Linear-quadratic regulators.")
@takes_mechanism
@state_options
@click.option(
    "--at",
    type=click.Choice(PLACES),
    default="held",
    show_default=True,
    help="The given position, held by the forces of --inputs; or the equilibrium near it.",
)
@click.option("--inputs", metavar="JOINT,JOINT...", help="Joints with motors; all by default.")
@click.option(
    "--independent", metavar="JOINT,JOINT...", help="Coordinates of a mechanism with loops; chosen if left out."
)
@click.option(
    "--state-weight",
    "state_weights",
    multiple=True,
    metavar="[STATE=]W",
    help="Q: of every state, or of the one that is named: JOINT, or JOINT.rate. 1 by default.",
)
@click.option(
    "--input-weight",
    "input_weights",
    multiple=True,
    metavar="[JOINT=]W",
    help="R: of every joint force, or of the one that is named. 1 by default.",
)
@click.option("--leave-out", metavar="STATE,STATE...", help="States that are not led back, as where a wheel rolls to.")
@acting_options
@click.option("--output", "-o", metavar="FILE.npz", help="For simulate --regulator: q, v, tau, gain, cost.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document; complex numbers are [real, imaginary].")
def lqr(
    found: Loaded, positions: Sequence[str], velocities: Sequence[str], start: str | None, degrees: bool, at: str,
    inputs: str | None, independent: str | None, state_weights: Sequence[str], input_weights: Sequence[str],
    leave_out: str | None, acting: str | None, passive: bool, output: str | None, json_wanted: bool,
) -> None:  # fmt: skip
    """The linear feedback u = -K x that minimizes the integral of x* Q x + u* R u near an equilibrium.

    Which starts it brings back is for a simulation to show.

    \b
    linkwise lqr builtin:cart_pole --inputs rail --state-weight hinge=10 -o upright.npz
    linkwise simulate builtin:cart_pole --q hinge=0.3 --regulator upright.npz --duration 5 --plot balanced.png
    """
    check_output(output, ".npz")
    mech = with_acting(report_warnings(found, notes=False), acting)
    q, v = state(mech, positions, velocities, start, degrees, found.trust_units)
    if np.any(v):
        raise click.UsageError("a regulator leads back to a state of rest: leave --v out")
    driven = names_of(inputs)
    if at == "held":
        rest = lw.find_equilibrium(mech, q, solve_for="tau", actuated=driven)
    else:
        rest = lw.find_equilibrium(mech, q)
    model = lw.linearize(mech, rest.q, None, rest.tau, independent=names_of(independent), inputs=driven)
    left_out = names_of(leave_out) or ()
    led_back = [name for name in model.state_names if name not in left_out]
    of_states = _weights("--state-weight", state_weights, led_back)
    of_inputs = _weights("--input-weight", input_weights, model.input_names)
    regulator = lw.lqr(model, of_states, of_inputs, leave_out=left_out)
    if output:
        np.savez(output, q=model.q, v=model.v, tau=model.tau, gain=regulator.joint_gain, cost=regulator.cost)
    facts = _facts(regulator, output)
    click.echo(as_json(facts) if json_wanted else "\n".join(_text(regulator, facts)))


def _weights(option: str, texts: Sequence[str], names: Sequence[str]) -> np.ndarray:
    """One for each name: W is for all of them, NAME=W for one."""
    found = np.ones(len(names))
    for text in sorted(texts, key=lambda text: "=" in text):  # one for all comes first
        name, equals, number = text.rpartition("=")
        (value, *more) = finite_numbers(f"{option} {text}", number)
        if more:
            raise click.UsageError(f"{option} {text}: one number is for all, NAME=NUMBER for one")
        if equals and name not in names:
            raise click.UsageError(f"{option} {text}: there is no {name!r}; available: {', '.join(names)}")
        found[names.index(name) if equals else slice(None)] = value
    return found


def _facts(regulator: Any, output: str | None) -> dict[str, Any]:
    model = regulator.model
    return {
        "mechanism": model.mechanism.name,
        "states": model.state_names,
        "inputs": model.input_names,
        "q": model.q,
        "tau": model.tau,
        "gain": regulator.gain,
        "cost": regulator.cost,
        "open_eigenvalues": model.eigenvalues(),
        "eigenvalues": regulator.eigenvalues(),
        "files": [output] if output else [],
    }


def _text(regulator: Any, facts: dict[str, Any]) -> Iterable[str]:
    model, values = regulator.model, regulator.eigenvalues()
    led_back = values[values.real < 0.0]  # not those that are left out
    yield click.style(facts["mechanism"], bold=True) + (
        f": {len(model.state_names)} states, driven by {', '.join(model.input_names)}; the slowest motion decays in "
        f"{-1.0 / led_back.real.max():.3g} s"
    )
    forces = zip(model.mechanism.coordinate_names("v"), model.tau.tolist(), strict=True)
    least = 1e-12 * np.abs(model.tau).max(initial=0.0)
    held = [f"{name} {x:.5g}" for name, x in forces if abs(x) > least]
    yield from section("held there by the forces", held or ["none: it is in balance"])
    rows = [
        (name, *(f"{x:.5g}" for x in column)) for name, column in zip(model.state_names, regulator.gain.T, strict=True)
    ]
    head = ("state", *model.input_names)
    yield from section("gains K: forces of inputs per state", table(head, rows, range(1, len(head))))
    pairs = zip(*(np.sort_complex(x) for x in (model.eigenvalues(), values)), strict=True)
    cells = [tuple(f"{x:.4g}" for x in pair) for pair in pairs]
    yield from section("eigenvalues (1/s)", table(("without", "with the regulator"), cells, (0, 1)))
    if facts["files"]:
        yield from section("files", (shown(Path(file)) for file in facts["files"]))
