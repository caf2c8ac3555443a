"""linkwise range: how far a coordinate of a closed mechanism goes, what stops it, and where it is singular."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click
import numpy as np

import linkwise as lw
from linkwise.viewer.coordinates import ANGLE, UNITS, measure_of

from .files import Picture
from .mechanism import Source
from .screen import Answer, section, table, written
from .signatures import command
from .state import Position
from .tables import DEGREES, Units


@command("Ranges of motion and singular positions.", of=lw.linkages.range_of_motion)
def range(  # noqa: A001  a command is named as its file
    source: Source,
    coordinate: str,
    position: Position,
    answer: Answer,
    plot: Picture | None = None,
    **options: Any,
) -> None:
    """How far COORDINATE goes without taking the mechanism apart: a joint, JOINT[K], or LINK.x, .y, .z of a link or
    frame; what stops it, where it turns back, and where the mechanism is singular if it is driven.

    plot   the other coordinates over this one: .png, .svg or .pdf

    \b
    linkwise range builtin:four_bar rocker_joint
    linkwise range builtin:slider_crank slider_joint --q crank_joint=0.5 --plot range.png
    linkwise range builtin:five_bar joint1 --hold joint4 --degrees
    """
    mech = source.mechanism(notes=False)
    q = position.of(mech) if position.chosen else None
    reach = lw.linkages.range_of_motion(mech, coordinate, q, **options)
    try:
        singular = lw.linkages.singular_positions(mech, (coordinate,), q, **options)
    except lw.MechanismError:  # it has more degrees of freedom, or the coordinate is that of a point
        singular = None
    if plot:
        lw.viewer.plot_range(reach, singular or (), path=plot, degrees=position.units.degrees)
    facts = {
        "mechanism": mech.name,
        "coordinate": coordinate,
        "ends": [_end(end) for end in reach.ends],
        "dead_centres": [_end(end) for end in reach.dead_centres],
        "singular_positions": None if singular is None else [{"kind": each.kind, "q": each.q} for each in singular],
        "files": [plot] if plot else [],
    }
    answer.show(facts, _text(facts, position.units, mech))


def _end(end: lw.linkages.RangeEnd) -> dict[str, Any]:
    return {"value": end.value, "cause": end.cause, "joint": end.joint, "q": end.q}


def _text(facts: dict[str, Any], units: Units, mech: lw.Mechanism) -> Iterator[str]:
    measures = measure_of(mech, facts["coordinate"])
    in_degrees = units.degrees and measures == ANGLE
    factor = np.degrees(1.0) if in_degrees else 1.0

    def cells(end: dict[str, Any]) -> tuple[str, str]:
        return f"{factor * end['value']:.6g}", f"{end['cause']}{' of ' + end['joint'] if end['joint'] else ''}"

    yield click.style(mech.name, bold=True) + f": {facts['coordinate']}"
    rows = [(side, *cells(end)) for side, end in zip(("from", "to"), facts["ends"], strict=True)]
    value = f"value ({DEGREES if in_degrees else UNITS[measures][0] or '1'})"
    yield from section("range", table(("", value, "stopped by"), rows, (1,)))
    if facts["dead_centres"]:
        yield from section("turns back at", table((value, ""), [*map(cells, facts["dead_centres"])], (0,)))
    positions = facts["singular_positions"]
    if positions:
        numbers = [units.outside(mech, "q", each["q"]) for each in positions]
        lines = [(each["kind"], *(f"{x:.6g}" for x in q)) for each, q in zip(positions, numbers, strict=True)]
        columns = tuple(k for k, _ in enumerate(mech.q_names, 1))
        head = f"singular positions ({units.names(mech)['q']})"
        yield from section(head, table(("kind", *mech.q_names), lines, columns))
    elif positions is not None:
        yield from section("singular positions", ["none on the way"])
    yield from written(facts["files"])
