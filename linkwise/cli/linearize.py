"""linkwise linearize: a linear model near a state, its modes, its pictures."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any, Literal

import click
import numpy as np

import linkwise as lw

from .acting import Controlled, Idle, acting_section, idle_elements
from .files import Arrays, Picture
from .mechanism import Source
from .screen import Answer, free_width, section, table, written
from .signatures import Joints, command, options_of
from .state import Coordinate, State, coordinates
from .tables import Units

MOST_STATES = 16  # of matrices that are shown: those of an arm of eight joints
WIDTH = 110  # letters of a line of a matrix in a pipe


@command(
    "Linear model, frequencies and modes.",
    of=(lw.linearize, lw.find_equilibrium),
    without=("solve_for", "actuated"),
)
def linearize(
    source: Source,
    state: State,
    acting: Controlled,
    answer: Answer,
    at: Literal["state", "equilibrium", "held"] = "state",
    independent: Joints | None = None,
    inputs: Joints | None = None,
    output: Arrays | None = None,
    plot: Picture | None = None,
    **options: Any,
) -> None:
    """Linear model dx/dt = drift + A x + B u near a state: matrices, eigenvalues, frequencies, damping, modes.

    The model is in radians and metres; --degrees is for the state.

    at            the given state as it is; the equilibrium near it; or the given position, held by joint forces
    stable        with --at equilibrium: only a minimum of the energy, reached by going down to it
    independent   coordinates of a mechanism with loops; chosen if left out
    inputs        what drives: joints, which hold with --at held, actuators, or ctrl for all these, the default with
                  --ctrl
    output        the arrays A, B, C, D, drift, q, v, tau
    plot          eigenvalues in the complex plane: .png, .svg or .pdf

    \b
    linkwise linearize builtin:double_pendulum --at equilibrium
    linkwise linearize builtin:loader --at held --inputs lift_piston_joint,tilt_piston_joint --plot eigenvalues.png
    """
    mech = acting.of(source.mechanism(notes=False))
    q, v = state.of(mech)
    idle: list[Idle | lw.files.Note] = [*idle_elements(mech), *mech.notes]
    tau, stability, commanded = None, None, acting.inputs(mech)
    search, chosen = options_of(lw.find_equilibrium, options), options_of(lw.linearize, options)
    for name in search:
        if at == "state" or (at == "held" and name == "stable"):
            raise click.UsageError(f"--{name.replace('_', '-')} is for --at equilibrium")
    if at != "state":
        if np.any(v):
            raise click.UsageError(f"--at {at} is a state of rest: leave --v out")
        rest = rest_near(mech, q, at, inputs, ctrl=commanded, **search)
        q, stability, tau = rest.q, rest.stable, rest.tau if at == "held" else None
    model = lw.linearize(mech, q, v, tau, independent=independent, inputs=inputs, ctrl=commanded, **chosen)
    if output:
        names = ("A", "B", "C", "D", "drift", "q", "v", "tau")
        np.savez(output, **{name: getattr(model, name) for name in names})
    if plot:
        model.plot_eigenvalues(plot)
    facts = {
        **_facts(model, [file for file in (output, plot) if file]),
        "stable": stability,
        "acting": mech.forces.active,
        "not_acting": [dataclasses.asdict(each) for each in idle],
    }
    answer.show(facts, _text(model, facts, idle, state.units))


def rest_near(
    mech: lw.Mechanism, q: np.ndarray, at: str, inputs: tuple[str, ...] | None, **options: Any
) -> lw.control.Equilibrium:
    """The equilibrium near a configuration, or that configuration "held" by the forces of ``inputs``."""
    held: dict[str, Any] = {"solve_for": "tau", "actuated": inputs} if at == "held" else {}
    return lw.find_equilibrium(mech, q, **held, **options)


def _facts(model: lw.control.StateSpace, files: Sequence[str]) -> dict[str, Any]:
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
        "files": files,
    }


def _text(model: lw.control.StateSpace, facts: dict[str, Any], idle: Iterable[object], units: Units) -> Iterable[str]:
    mech, count, inputs = model.mechanism, len(model.state_names), len(model.input_names)
    kind = {True: ", stable", False: ", unstable", None: ""}[facts["stable"]]
    where = f"an equilibrium{kind}" if model.is_equilibrium else "no equilibrium: the model has a drift"
    yield click.style(mech.name, bold=True) + f": {count} states, {where}"
    heads = ("joint", *(f"{name} ({unit})" for name, unit in units.names(mech).items()))
    q, v = units.outside(mech, "q", model.q), units.outside(mech, "v", model.v)
    rows = [_state_row(q, v, model.tau, coordinate) for coordinate in coordinates(mech)]
    yield from section("state", table(heads, rows, (1, 2, 3)))
    if count > MOST_STATES:
        lines = [f"A is {count} x {count}, B is {count} x {inputs}: --json and -o FILE.npz have their numbers"]
    else:
        lines = model.table(width=free_width(WIDTH)).splitlines()
    yield from section("rates of the states: A, B, drift", lines)
    yield from section("modes", str(model.modes()).splitlines())
    yield from acting_section(mech, idle)
    yield from written(facts["files"])


def _state_row(q: np.ndarray, v: np.ndarray, tau: np.ndarray, coordinate: Coordinate) -> tuple[str, ...]:
    numbers = [q[coordinate.q], *((v[coordinate.v], tau[coordinate.v]) if coordinate.v is not None else ())]
    cells = [f"{np.round(x, 12) + 0.0:.5g}" for x in numbers]
    return (coordinate.name, *cells, *[""] * (3 - len(cells)))
