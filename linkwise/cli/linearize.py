"""linkwise linearize: a linear model near a state, its modes, its pictures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import click
import numpy as np

import linkwise as lw

from .acting import Idle, acting_lines, acting_options, controls, ctrl_option, idle_elements, with_acting
from .files import check_output, check_picture
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import as_json, free_width, section, shown, table
from .state import Coordinate, coordinates, names_of, state, state_options
from .units import DEGREE, scaled, units

PLACES = ("state", "equilibrium", "held")
MOST_STATES = 16  # of matrices that are shown: those of an arm of eight joints
WIDTH = 110  # letters of a line of a matrix in a pipe


@click.command(short_help="Linear model, frequencies and modes.")
@takes_mechanism
@state_options
@click.option(
    "--at",
    type=click.Choice(PLACES),
    default="state",
    show_default=True,
    help="The given state as it is; the equilibrium near it; or the given position, held by joint forces.",
)
@click.option(
    "--stable", is_flag=True, help="With --at equilibrium: only a minimum of the energy, reached by going down to it."
)
@click.option(
    "--independent", metavar="JOINT,JOINT...", help="Coordinates of a mechanism with loops; chosen if left out."
)
@click.option(
    "--inputs",
    metavar="JOINT,JOINT...",
    help="What drives: joints, which hold with --at held, actuators, or ctrl for all these, the default with --ctrl.",
)
@acting_options
@ctrl_option
@click.option("--output", "-o", metavar="FILE.npz", help="The arrays A, B, C, D, drift, q, v, tau.")
@click.option("--plot", metavar="FILE", help="Eigenvalues in the complex plane: .png, .svg or .pdf.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document; complex numbers are [real, imaginary].")
def linearize(
    found: Loaded, positions: Sequence[str], velocities: Sequence[str], start: str | None, degrees: bool, at: str,
    stable: bool, independent: str | None, inputs: str | None, acting: str | None, passive: bool, ctrl: Sequence[str],
    output: str | None, plot: str | None, json_wanted: bool,
) -> None:  # fmt: skip
    """Linear model dx/dt = drift + A x + B u near a state: matrices, eigenvalues, frequencies, damping, modes.

    The model is in radians and metres; --degrees is for the state.

    \b
    linkwise linearize builtin:double_pendulum --at equilibrium
    linkwise linearize builtin:loader --at held --inputs lift_piston_joint,tilt_piston_joint --plot eigenvalues.png
    """
    check_output(output, ".npz")
    check_picture(plot, ".png", ".svg", ".pdf")
    mech = with_acting(report_warnings(found, notes=False), acting)
    q, v = state(mech, positions, velocities, start, degrees, found.trust_units)
    idle: list[Idle | lw.Note] = [*idle_elements(mech), *mech.notes]
    driven = names_of(inputs)
    tau, stability, commanded = None, None, controls(mech, ctrl)
    if stable and at != "equilibrium":
        raise click.UsageError("--stable is for --at equilibrium")
    if at != "state":
        if np.any(v):
            raise click.UsageError(f"--at {at} is a state of rest: leave --v out")
        if at == "equilibrium":
            rest = lw.find_equilibrium(mech, q, stable=stable, ctrl=commanded)
        else:
            rest = lw.find_equilibrium(mech, q, solve_for="tau", actuated=driven, ctrl=commanded)
            tau = rest.tau
        q, stability = rest.q, rest.stable
    model = lw.linearize(mech, q, v, tau, independent=names_of(independent), inputs=driven, ctrl=commanded)
    files = list(_written(model, output, plot))
    facts = {
        **_facts(model, files),
        "stable": stability,
        "acting": mech.acting,
        "not_acting": [dataclasses.asdict(one) for one in idle],
    }
    click.echo(as_json(facts) if json_wanted else "\n".join(_text(model, stability, files, idle, degrees)))


def _written(model: lw.StateSpace, output: str | None, plot: str | None) -> Iterable[Path]:
    if output:
        names = ("A", "B", "C", "D", "drift", "q", "v", "tau")
        np.savez(output, **{name: getattr(model, name) for name in names})
        yield Path(output)
    if plot:
        model.plot_eigenvalues(plot)
        yield Path(plot)


def _facts(model: lw.StateSpace, files: Iterable[Path]) -> dict[str, Any]:
    modes = model.modes()
    return {
        "mechanism": model.mechanism.name,
        "equilibrium": model.is_equilibrium,
        "independent": model.independent,
        "states": model.state_names,
        "inputs": model.input_names,
        "q": model.q,
        "v": model.v,
        "tau": model.tau,
        "A": model.A,
        "B": model.B,
        "drift": model.drift,
        "eigenvalues": model.eigenvalues(),
        "modes": [
            {
                "eigenvalue": modes.eigenvalues[k],
                "frequency_hz": modes.frequencies[k] / (2.0 * np.pi),
                "damping_ratio": modes.damping_ratios[k],
                "shape": dict(zip(modes.coordinates, modes.shapes[:, k].tolist(), strict=True)),
            }
            for k in range(len(modes.eigenvalues))
        ],
        "files": [str(path) for path in files],
    }


def _text(
    model: lw.StateSpace, stable: bool | None, files: list[Path], idle: list[Idle | lw.Note], degrees: bool
) -> Iterable[str]:
    mech, count, inputs = model.mechanism, len(model.state_names), len(model.input_names)
    kind = {True: ", stable", False: ", unstable", None: ""}[stable]
    where = f"an equilibrium{kind}" if model.is_equilibrium else "no equilibrium: the model has a drift"
    yield click.style(mech.name, bold=True) + f": {count} states, {where}"
    heads = ("joint", *(f"{name} ({unit})" for name, unit in units(mech, degrees).items()))
    factor = 1.0 / DEGREE if degrees else 1.0
    q, v = scaled(mech, "q", model.q, factor), scaled(mech, "v", model.v, factor)
    rows = [_state_row(q, v, model.tau, one) for one in coordinates(mech)]
    yield from section("state", table(heads, rows, (1, 2, 3)))
    if count > MOST_STATES:
        lines = [f"A is {count} x {count}, B is {count} x {inputs}: --json and -o FILE.npz have their numbers"]
    else:
        lines = model.table(width=free_width(WIDTH)).splitlines()
    yield from section("rates of the states: A, B, drift", lines)
    yield from section("modes", str(model.modes()).splitlines())
    if mech.acting:
        yield from section("acting", acting_lines(mech))
    if idle:
        yield from section("of the file, not acting", map(str, idle))
    if files:
        yield from section("files", map(shown, files))


def _state_row(q: np.ndarray, v: np.ndarray, tau: np.ndarray, one: Coordinate) -> tuple[str, ...]:
    numbers = [q[one.q], *((v[one.v], tau[one.v]) if one.v is not None else ())]
    cells = [f"{np.round(x, 12) + 0.0:.5g}" for x in numbers]
    return (one.name, *cells, *[""] * (3 - len(cells)))
