"""linkwise ik: configurations that bring frames to targets; linkwise range: ranges of motion and their ends."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Annotated, Any

import click
import numpy as np

import linkwise as lw
from linkwise.viewer.coordinates import ANGLE, UNITS, measure_of

from .files import Picture
from .mechanism import Source
from .screen import Answer, section, table, written
from .signatures import command
from .state import Position, coordinates, finite_numbers
from .tables import DEGREES, Units

FORM = "FRAME=X,Y,Z or FRAME=X,Y,Z,ROLL,PITCH,YAW"


@command("Inverse kinematics.", of=lw.inverse_kinematics)
def ik(
    source: Source,
    position: Position,
    answer: Answer,
    target: Sequence[Annotated[str, "FRAME=X,Y,Z[,R,P,Y]"]] = (),
    center_of_mass: Annotated[str, "X,Y[,Z]"] | None = None,
    posture: bool = False,
    no_limits: bool = False,
    all: bool = False,
    plot: Picture | None = None,
    **options: Any,
) -> int:
    """A configuration in which frames reach targets, within the limits of the joints, loops closed.  Exit code 1 if
    there is none to be found.

    target           where a link or frame is to be in the world: a position (m), or a pose with roll, pitch and yaw
                     (rad); several frames by several options
    center_of_mass   where the centre of mass is to be in the world (m); without Z at any height
    posture          stay as near to the start as the targets allow
    no_limits        go beyond the limits of joints
    all              all configurations of a pose, for arms that have formulas
    plot             a drawing of the configuration: .png, .svg or .pdf

    \b
    linkwise ik builtin:puma560 --target link6=0.4,0.2,0.3
    linkwise ik builtin:puma560 --target link6=0.4,0.2,0.3,180,0,30 --degrees --q joint2=-45 --plot reach.png
    linkwise ik builtin:puma560 --target link6=0.4,0.2,0.3,180,0,30 --degrees --all --no-limits
    linkwise ik builtin:humanoid --center-of-mass 0,0.05 --posture
    """
    mech, units = source.mechanism(notes=False), position.units
    targets = dict(_target(text, units) for text in target)
    if len(targets) < len(target):
        raise click.UsageError("--target: a frame is given twice; give each frame one target")
    if not (targets or center_of_mass):
        raise click.UsageError(f"give --target {FORM}, or --center-of-mass X,Y[,Z]")
    if all and center_of_mass:
        raise click.UsageError("--all has formulas for one pose of a frame, not for --center-of-mass")
    if all:
        branches = lw.kinematics.inverse_kinematics_branches(mech, targets, limits=not no_limits)
        branches = branches[np.isfinite(branches).all(axis=-1)]
        count = f"{len(branches)} configuration{'s' if len(branches) != 1 else ''}"
        titles = (f"q ({_unit(mech, units)})", *(str(k + 1) for k in range(len(branches))))
        rows = list(zip(*_columns(mech, branches, units), strict=True))
        lines = [
            click.style(mech.name, bold=True) + f": {count}{'' if no_limits else ' within limits'}",
            *section("configurations", table(titles, rows, range(1, len(titles)))),
        ]
        answer.show({"mechanism": mech.name, "configurations": branches}, lines)
        return 0 if len(branches) else 1
    q0 = position.values(mech) if position.chosen or posture else None
    center, preferred = None, q0 if posture else None
    if center_of_mass is not None:
        values = finite_numbers(f"--center-of-mass {center_of_mass}", center_of_mass)
        if len(values) not in (2, 3):
            raise click.UsageError(
                f"--center-of-mass {center_of_mass}: {len(values)} numbers; the form is X,Y or X,Y,Z"
            )
        center = lw.kinematics.CenterOfMassTarget(values, axes="xyz"[: len(values)])
    result = lw.inverse_kinematics(
        mech, targets, q0, center_of_mass=center, posture=preferred, limits=not no_limits, **options
    )
    if plot:
        lw.viewer.draw(mech, result.q, path=plot)
    facts = {
        "mechanism": mech.name,
        "converged": bool(result.converged),
        "error": float(result.error),
        "iterations": int(result.iterations),
        "attempts": int(result.attempts),
        "q": result.q,
        "frames": {name: lw.frame_pose(mech, result.q, name) for name in targets},
        **({"center_of_mass": lw.center_of_mass(mech, result.q)} if center else {}),
        "files": [plot] if plot else [],
    }
    answer.show(facts, _text(mech, result, facts, units))
    return 0 if result.converged else 1


def _columns(mech: lw.Mechanism, configurations: Iterable[np.ndarray], units: Units) -> list[list[str]]:
    """Names of coordinates, and their values in each configuration."""
    names = coordinates(mech)
    shown = (np.round(units.outside(mech, "q", q), 9) + 0.0 for q in configurations)
    return [[each.name for each in names], *([f"{q[each.q]:.6g}" for each in names] for q in shown)]


def _unit(mech: lw.Mechanism, units: Units) -> str:
    return units.names(mech)["q"].replace("degrees", "deg")


def _target(text: str, units: Units) -> tuple[str, Any]:
    frame, equals, numbers = text.rpartition("=")
    if not equals:
        raise click.UsageError(f"--target {text}: the form is {FORM}")
    values = finite_numbers(f"--target {text}", numbers)
    if len(values) == 3:
        return frame, np.array(values)
    if len(values) != 6:
        raise click.UsageError(f"--target {text}: {len(values)} numbers; the form is {FORM}")
    return frame, lw.pose(values[:3], rpy=units.angle(np.array(values[3:])))


def _text(
    mech: lw.Mechanism, result: lw.kinematics.InverseKinematics, facts: dict[str, Any], units: Units
) -> Iterable[str]:
    counts = f"attempts: {facts['attempts']}, iterations of the last: {facts['iterations']}"
    verdict = "reached" if facts["converged"] else "NOT reached: the nearest that was found"
    yield click.style(mech.name, bold=True) + f": {verdict}, error {facts['error']:.1e} (m, rad); {counts}"
    rows = list(zip(*_columns(mech, [result.q], units), strict=True))
    yield from section("configuration", table(("joint", f"q ({_unit(mech, units)})"), rows, (1,)))
    positions = {name: pose[:3, 3] for name, pose in facts["frames"].items()}
    if "center_of_mass" in facts:
        positions["(centre of mass)"] = facts["center_of_mass"]
    poses = [(name, *(f"{x:.6g}" for x in np.round(position, 9) + 0.0)) for name, position in positions.items()]
    yield from section("frames", table(("frame", "x (m)", "y (m)", "z (m)"), poses, (1, 2, 3)))
    yield from written(facts["files"])


@command("Ranges of motion and singular positions.", name="range", of=lw.linkages.range_of_motion)
def range_command(
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
    q = position.values(mech) if position.chosen else None
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
    answer.show(facts, _range_text(facts, position.units, mech))


def _end(end: lw.linkages.RangeEnd) -> dict[str, Any]:
    return {"value": end.value, "cause": end.cause, "joint": end.joint, "q": end.q}


def _range_text(facts: dict[str, Any], units: Units, mech: lw.Mechanism) -> Iterator[str]:
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
