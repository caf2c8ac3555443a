"""linkwise linearize: a linear model near a state and its modes; linkwise lqr: a regulator for an equilibrium."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import click
import numpy as np

import linkwise as lw

from .acting import Acting, Controlled, Idle, acting_section, idle_elements
from .files import Arrays, Picture
from .mechanism import Source
from .screen import Answer, free_width, section, table, written
from .signatures import Joints, ListOfNames, command, options_of
from .state import State, coordinates, spread
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
    mech = acting.switch(source.mechanism(notes=False))
    q, v = state.values(mech)
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
    modes = model.modes()
    facts = {
        "mechanism": mech.name,
        "equilibrium": model.is_equilibrium,
        "independent": model.independent,
        "states": model.state_names,
        "inputs": model.input_names,
        **{name: getattr(model, name) for name in ("q", "v", "tau", "A", "B", "drift")},
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
        "files": [file for file in (output, plot) if file],
        "stable": stability,
        "acting": mech.forces.active,
        "not_acting": [dataclasses.asdict(each) for each in idle],
    }
    answer.show(facts, _text(model, facts, idle, state.units))


def rest_near(
    mech: lw.Mechanism, q: np.ndarray, at: str, inputs: tuple[str, ...] | None, **options: Any
) -> lw.control.Equilibrium:
    """The equilibrium near a configuration, or that configuration "held" by the forces of ``inputs``."""
    forces: dict[str, Any] = {"solve_for": "tau", "actuated": inputs} if at == "held" else {}
    return lw.find_equilibrium(mech, q, **forces, **options)


def _text(model: lw.control.StateSpace, facts: dict[str, Any], idle: Iterable[object], units: Units) -> Iterable[str]:
    mech, count, inputs = model.mechanism, len(model.state_names), len(model.input_names)
    kind = {True: ", stable", False: ", unstable", None: ""}[facts["stable"]]
    where = f"an equilibrium{kind}" if model.is_equilibrium else "no equilibrium: the model has a drift"
    yield click.style(mech.name, bold=True) + f": {count} states, {where}"
    heads = ("joint", *(f"{name} ({unit})" for name, unit in units.names(mech).items()))
    q, v = units.outside(mech, "q", model.q), units.outside(mech, "v", model.v)
    rows = []
    for name, index, rate in coordinates(mech):
        numbers = [q[index], *((v[rate], model.tau[rate]) if rate is not None else ())]
        cells = [f"{np.round(x, 12) + 0.0:.5g}" for x in numbers]
        rows.append((name, *cells, *[""] * (3 - len(cells))))
    yield from section("state", table(heads, rows, (1, 2, 3)))
    if count > MOST_STATES:
        lines = [f"A is {count} x {count}, B is {count} x {inputs}: --json and -o FILE.npz have their numbers"]
    else:
        lines = model.table(width=free_width(WIDTH)).splitlines()
    yield from section("rates of the states: A, B, drift", lines)
    yield from section("modes", str(model.modes()).splitlines())
    yield from acting_section(mech, idle)
    yield from written(facts["files"])


@command("Linear-quadratic regulators.", of=lw.find_equilibrium, without=("solve_for", "actuated"))
def lqr(
    source: Source,
    state: State,
    acting: Acting,
    answer: Answer,
    at: Literal["held", "equilibrium"] = "held",
    inputs: Joints | None = None,
    independent: Joints | None = None,
    state_weight: Sequence[Annotated[str, "[STATE=]W"]] = (),
    input_weight: Sequence[Annotated[str, "[JOINT=]W"]] = (),
    leave_out: Annotated[tuple, ListOfNames("STATE")] = (),
    output: Arrays | None = None,
    **options: Any,
) -> None:
    """The linear feedback u = -K x that minimizes the integral of x* Q x + u* R u near an equilibrium.

    Which starts it brings back is for a simulation to show.

    at             the given position, held by the forces of --inputs; or the equilibrium near it
    inputs         joints with motors; all by default
    independent    coordinates of a mechanism with loops; chosen if left out
    state_weight   Q: of every state, or of the one that is named: JOINT, or JOINT.rate.  1 by default
    input_weight   R: of every joint force, or of the one that is named.  1 by default
    leave_out      states that are not led back, as where a wheel rolls to
    output         for simulate --regulator: q, v, tau, gain, cost

    \b
    linkwise lqr builtin:cart_pole --inputs rail --state-weight hinge=10 -o upright.npz
    linkwise simulate builtin:cart_pole --q hinge=0.3 --regulator upright.npz --duration 5 --plot balanced.png
    """
    mech = acting.switch(source.mechanism(notes=False))
    q, v = state.values(mech)
    if np.any(v):
        raise click.UsageError("a regulator leads back to a state of rest: leave --v out")
    rest = rest_near(mech, q, at, inputs, **options)
    model = lw.linearize(mech, rest.q, None, rest.tau, independent=independent, inputs=inputs)
    led_back = [name for name in model.state_names if name not in leave_out]
    of_states = _weights("--state-weight", state_weight, led_back, "state")
    of_inputs = _weights("--input-weight", input_weight, model.input_names, "input")
    regulator = lw.control.lqr(model, of_states, of_inputs, leave_out=leave_out)
    if output:
        np.savez(output, q=model.q, v=model.v, tau=model.tau, gain=regulator.joint_gain, cost=regulator.cost)
    facts = {
        "mechanism": mech.name,
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
    answer.show(facts, _regulator_text(regulator, facts))


def _weights(option: str, texts: Sequence[str], names: Sequence[str], noun: str) -> np.ndarray:
    """(n,): W is for all names, NAME=W for one."""

    def index_of(name: str) -> slice:
        if name not in names:
            raise click.UsageError(f"{option} {name}: there is no {name!r}; available: {', '.join(names)}")
        return slice(names.index(name), names.index(name) + 1)

    return spread(option, texts, np.ones(len(names)), index_of, noun)


def _regulator_text(regulator: Any, facts: dict[str, Any]) -> Iterable[str]:
    model, values = regulator.model, regulator.eigenvalues()
    led_back = values[values.real < 0.0]  # not those that are left out
    yield click.style(facts["mechanism"], bold=True) + (
        f": {len(model.state_names)} states, driven by {', '.join(model.input_names)}; the slowest motion decays in "
        f"{-1.0 / led_back.real.max():.3g} s"
    )
    forces = zip(model.mechanism.coordinates.names("v"), model.tau.tolist(), strict=True)
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
    yield from written(facts["files"])
