"""linkwise lqr: the regulator that holds a mechanism at an equilibrium, as gains for ``simulate --regulator``."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Annotated, Any, Literal

import click
import numpy as np

import linkwise as lw

from .acting import Acting
from .files import Arrays
from .linearize import rest_near
from .mechanism import Source
from .screen import Answer, section, table, written
from .signatures import Joints, ListOfNames, command
from .state import State, spread


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
    mech = acting.of(source.mechanism(notes=False))
    q, v = state.of(mech)
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
    facts = _facts(regulator, output)
    answer.show(facts, _text(regulator, facts))


def _weights(option: str, texts: Sequence[str], names: Sequence[str], noun: str) -> np.ndarray:
    """(n,): W is for all names, NAME=W for one."""

    def index_of(name: str) -> slice:
        if name not in names:
            raise click.UsageError(f"{option} {name}: there is no {name!r}; available: {', '.join(names)}")
        return slice(names.index(name), names.index(name) + 1)

    return spread(option, texts, np.ones(len(names)), index_of, noun)


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
