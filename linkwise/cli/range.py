"""linkwise range: how far a coordinate of a closed mechanism goes, what stops it, and where it is singular."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import click

import linkwise as lw
from linkwise.viewer.coordinates import ANGLE, UNITS, measure_of

from .files import check_picture
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import as_json, section, table
from .state import state
from .units import DEGREE, scaled, units


@click.command("range", short_help="Ranges of motion and singular positions.")
@takes_mechanism
@click.argument("coordinate")
@click.option("--q", "positions", multiple=True, metavar="JOINT=Q", help="Start there; loops are closed.")
@click.option("--start", metavar="FILE|POSTURE", help="Start from a table or a posture, as in simulate.")
@click.option("--hold", multiple=True, metavar="JOINT", help="A joint or coordinate that stands still.")
@click.option("--limits", is_flag=True, help="Limits of joints are ends too.")
@click.option(
    "--degrees", is_flag=True, help="Angles in degrees, on the command line, in the table and in the picture."
)
@click.option("--plot", metavar="FILE", help="The other coordinates over this one: .png, .svg or .pdf.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document, in metres and radians.")
def range(  # noqa: A001  a command is named as its file
    found: Loaded, coordinate: str, positions: Sequence[str], start: str | None, hold: Sequence[str], limits: bool,
    degrees: bool, plot: str | None, json_wanted: bool,
) -> None:  # fmt: skip
    """How far COORDINATE goes without taking the mechanism apart: a joint, JOINT[K], or LINK.x, .y, .z of a link or
    frame; what stops it, where it turns back, and where the mechanism is singular if it is driven.

    \b
    linkwise range builtin:four_bar rocker_joint
    linkwise range builtin:slider_crank slider_joint --q crank_joint=0.5 --plot range.png
    linkwise range builtin:five_bar joint1 --hold joint4 --degrees
    """
    check_picture(plot, ".png", ".svg", ".pdf")
    mech = report_warnings(found, notes=False)
    given = bool(positions or start)
    q = state(mech, positions, (), start, degrees, found.trust_units)[0] if given else None
    reach = lw.closed.range_of_motion(mech, coordinate, q, hold, limits)
    singular = _singular(mech, coordinate, q, hold, limits)
    if plot:
        lw.viewer.plot_range(reach, singular or (), path=plot, degrees=degrees)
    facts = {
        "mechanism": mech.name,
        "coordinate": coordinate,
        "ends": [_end(end) for end in reach.ends],
        "dead_centres": [_end(end) for end in reach.dead_centres],
        "singular_positions": None if singular is None else [{"kind": one.kind, "q": one.q} for one in singular],
        "files": [plot] if plot else [],
    }
    click.echo(as_json(facts) if json_wanted else "\n".join(_text(facts, degrees, mech)))


def _singular(
    mech: lw.Mechanism, coordinate: str, q: Any, hold: Sequence[str], limits: bool
) -> tuple[lw.closed.SingularPosition, ...] | None:
    """Those of the mechanism driven by the coordinate; None where it has more degrees of freedom, or is a point's."""
    try:
        return lw.closed.singular_positions(mech, (coordinate,), q, hold=hold, limits=limits)
    except lw.MechanismError:
        return None


def _end(end: lw.closed.RangeEnd) -> dict[str, Any]:
    return {"value": end.value, "cause": end.cause, "joint": end.joint, "q": end.q}


def _cause(end: dict[str, Any]) -> str:
    return f"{end['cause']}{' of ' + end['joint'] if end['joint'] else ''}"


def _text(facts: dict[str, Any], degrees: bool, mech: lw.Mechanism) -> Iterator[str]:
    unit = 1.0 / DEGREE if degrees else 1.0
    measures = measure_of(mech, facts["coordinate"])
    factor = unit if measures == ANGLE else 1.0
    yield click.style(mech.name, bold=True) + f": {facts['coordinate']}"
    ends = zip(("from", "to"), facts["ends"], strict=True)
    rows = [(side, f"{factor * end['value']:.6g}", _cause(end)) for side, end in ends]
    value = f"value ({'degrees' if degrees and measures == ANGLE else UNITS[measures][0] or '1'})"
    yield from section("range", table(("", value, "stopped by"), rows, (1,)))
    turns = [(f"{factor * end['value']:.6g}", _cause(end)) for end in facts["dead_centres"]]
    if turns:
        yield from section("turns back at", table((value, ""), turns, (0,)))
    found = facts["singular_positions"]
    if found:
        cells = [(one["kind"], *(f"{x:.6g}" for x in scaled(mech, "q", one["q"], unit))) for one in found]
        columns = tuple(k for k, _ in enumerate(mech.q_names, 1))
        head = f"singular positions ({units(mech, degrees)['q']})"
        yield from section(head, table(("kind", *mech.q_names), cells, columns))
    elif found is not None:
        yield from section("singular positions", ["none on the way"])
    if facts["files"]:
        yield from section("files", facts["files"])
