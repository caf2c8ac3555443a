"""linkwise linearize: a linear model near a state, its modes, its pictures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import click
import numpy as np

import linkwise as lw

from .acting import Idle, idle_elements, passive_of
from .files import check_output
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import as_json, section, shown
from .state import state, state_options

PLACES = ("state", "equilibrium", "held")


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
    "--independent", metavar="JOINT,JOINT...", help="Coordinates of a mechanism with loops; chosen if left out."
)
@click.option(
    "--inputs", metavar="JOINT,JOINT...", help="Joints that are driven (and that hold, with --at held); all by default."
)
@click.option("--passive", is_flag=True, help="Let springs, dampers and friction of the file act.")
@click.option("--output", "-o", metavar="FILE.npz", help="The arrays A, B, C, D, drift, q, v, tau.")
@click.option("--plot", metavar="FILE", help="Eigenvalues in the complex plane: .png, .svg or .pdf.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document; complex numbers are [real, imaginary].")
def linearize(
    found: Loaded, positions, velocities, start, degrees, at, independent, inputs, passive, output, plot, json_wanted
) -> None:
    """Linear model dx/dt = drift + A x + B u near a state: matrices, eigenvalues, frequencies, damping, modes.

    \b
    linkwise linearize builtin:double_pendulum --at equilibrium
    linkwise linearize builtin:loader --at held --inputs lift_piston_joint,tilt_piston_joint --plot eigenvalues.png
    """
    check_output(output, ".npz")
    check_output(plot, ".png", ".svg", ".pdf")
    mech = report_warnings(found)
    q, v = state(mech, positions, velocities, start, degrees, found.trust_units)
    acting, idle = passive_of(mech, passive, None, 0.0), [] if passive else list(idle_elements(mech))
    driven = _names(inputs)
    tau = None
    if at != "state":
        if np.any(v):
            raise click.UsageError(f"--at {at} is a state of rest: leave --v out")
        if at == "equilibrium":
            q = lw.find_equilibrium(mech, q, passive=acting).q
        else:
            tau = lw.find_equilibrium(mech, q, passive=acting, solve_for="tau", actuated=driven).tau
    model = lw.linearize(mech, q, v, tau, independent=_names(independent), inputs=driven, passive=acting)
    files = list(_written(model, output, plot))
    facts = {**_facts(model, files), "not_acting": [dataclasses.asdict(one) for one in idle]}
    click.echo(as_json(facts) if json_wanted else "\n".join(_text(model, files, idle)))


def _names(text: str | None) -> tuple[str, ...] | None:
    return tuple(name.strip() for name in text.split(",")) if text else None


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


def _text(model: lw.StateSpace, files: list[Path], idle: list[Idle]) -> Iterable[str]:
    where = "an equilibrium" if model.is_equilibrium else "no equilibrium: the model has a drift"
    yield click.style(model.mechanism.name, bold=True) + f": {len(model.state_names)} states, {where}"
    yield from section("state", [f"q = {_row(model.q)}", f"v = {_row(model.v)}", f"tau = {_row(model.tau)}"])
    yield from section("rates of the states: A, B, drift", model.table().splitlines())
    yield from section("modes", str(model.modes()).splitlines())
    if idle:
        yield from section("of the file, not acting", map(str, idle))
    if files:
        yield from section("files", map(shown, files))


def _row(values: np.ndarray) -> str:
    return f"({', '.join(f'{x + 0.0:.5g}' for x in np.round(values, 12))})"
