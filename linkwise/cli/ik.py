"""linkwise ik: a configuration in which frames are where they are wanted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import click
import numpy as np

import linkwise as lw

from .files import check_picture
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import as_json, section, table
from .state import coordinates, finite_numbers, state
from .units import ANGLE, DEGREE, places, units

FORM = "FRAME=X,Y,Z or FRAME=X,Y,Z,ROLL,PITCH,YAW"


@click.command(short_help="Inverse kinematics.")
@takes_mechanism
@click.option(
    "--target",
    "wanted",
    multiple=True,
    metavar="FRAME=X,Y,Z[,R,P,Y]",
    help="Where a link or frame is to be in the world: a position (m), or a pose with roll, pitch and yaw (rad); "
    "several frames by several options.",
)
@click.option(
    "--center-of-mass",
    "center",
    metavar="X,Y[,Z]",
    help="Where the centre of mass is to be in the world (m); without Z at any height.",
)
@click.option("--q", "positions", multiple=True, metavar="JOINT=Q", help="Start there; commas between several numbers.")
@click.option("--start", metavar="FILE|POSTURE", help="Start from a table or a posture, as in simulate.")
@click.option("--posture", is_flag=True, help="Stay as near to the start as the targets allow.")
@click.option("--no-limits", is_flag=True, help="Go beyond the limits of joints.")
@click.option(
    "--tolerance",
    type=float,
    default=None,
    help="Of positions (m) and rotations (rad); by default 1e-8 of the mechanism's length, and 1e-8 rad.",
)
@click.option("--attempts", default=100, show_default=True, help="Guesses that are tried; 1: the start alone.")
@click.option("--all", "all_wanted", is_flag=True, help="All configurations of a pose, for arms that have formulas.")
@click.option("--degrees", is_flag=True, help="Angles in degrees, on the command line and in the table.")
@click.option("--plot", metavar="FILE", help="A drawing of the configuration: .png, .svg or .pdf.")
@click.option("--json", "json_wanted", is_flag=True, help="One JSON document, in metres and radians.")
def ik(
    found: Loaded, wanted: Sequence[str], center: str | None, positions: Sequence[str], start: str | None,
    posture: bool, no_limits: bool, tolerance: float | None, attempts: int, all_wanted: bool, degrees: bool,
    plot: str | None, json_wanted: bool,
) -> int:  # fmt: skip
    """A configuration in which frames reach targets, within the limits of the joints, loops closed.  Exit code 1 if
    there is none to be found.

    \b
    linkwise ik builtin:puma560 --target link6=0.4,0.2,0.3
    linkwise ik builtin:puma560 --target link6=0.4,0.2,0.3,180,0,30 --degrees --q joint2=-45 --plot reach.png
    linkwise ik builtin:puma560 --target link6=0.4,0.2,0.3,180,0,30 --degrees --all --no-limits
    linkwise ik builtin:humanoid --center-of-mass 0,0.05 --posture
    """
    check_picture(plot, ".png", ".svg", ".pdf")
    mech = report_warnings(found, notes=False)
    targets = dict(_target(text, degrees) for text in wanted)
    if len(targets) < len(wanted):
        raise click.UsageError("--target: a frame is given twice; give each frame one target")
    if not (targets or center):
        raise click.UsageError(f"give --target {FORM}, or --center-of-mass X,Y[,Z]")
    if all_wanted and center:
        raise click.UsageError("--all has formulas for one pose of a frame, not for --center-of-mass")
    if all_wanted:
        return _all(mech, targets, not no_limits, degrees, json_wanted)
    given = bool(positions or start or posture)
    q0 = state(mech, positions, (), start, degrees, found.trust_units)[0] if given else None
    result = lw.inverse_kinematics(
        mech,
        targets,
        q0,
        center_of_mass=_center(center),
        posture=q0 if posture else None,
        limits=not no_limits,
        tolerance=tolerance,
        attempts=attempts,
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
    click.echo(as_json(facts) if json_wanted else "\n".join(_text(mech, result, facts, degrees)))
    return 0 if result.converged else 1


def _all(mech: lw.Mechanism, targets: dict[str, Any], limits: bool, degrees: bool, json_wanted: bool) -> int:
    """All configurations of one pose, a column each."""
    ways = lw.inverse_kinematics_branches(mech, targets, limits=limits)
    ways = ways[np.isfinite(ways).all(axis=-1)]
    if json_wanted:
        click.echo(as_json({"mechanism": mech.name, "configurations": ways}))
        return 0 if len(ways) else 1
    counted = f"{len(ways)} configuration{'s' if len(ways) != 1 else ''}"
    click.echo(click.style(mech.name, bold=True) + f": {counted}{' within limits' if limits else ''}")
    rows = [(name, *cells) for name, *cells in zip(*_columns(mech, ways, degrees), strict=True)]
    titles = (f"q ({_unit(mech, degrees)})", *(str(k + 1) for k in range(len(ways))))
    click.echo("\n".join(section("configurations", table(titles, rows, tuple(range(1, len(titles)))))))
    return 0 if len(ways) else 1


def _columns(mech: lw.Mechanism, configurations: Iterable[np.ndarray], degrees: bool) -> list[list[str]]:
    """Names of coordinates, and their values in each configuration."""
    angles = set(places(mech, ANGLE, "q")) if degrees else set()
    ones = coordinates(mech)
    texts = [
        [f"{np.round(q[one.q] / (DEGREE if one.q in angles else 1.0), 9) + 0.0:.6g}" for one in ones]
        for q in configurations
    ]
    return [[one.name for one in ones], *texts]


def _unit(mech: lw.Mechanism, degrees: bool) -> str:
    return units(mech)["q"].replace("rad", "deg") if degrees else units(mech)["q"]


def _target(text: str, degrees: bool) -> tuple[str, Any]:
    frame, equals, numbers = text.rpartition("=")
    if not equals:
        raise click.UsageError(f"--target {text}: the form is {FORM}")
    values = finite_numbers(f"--target {text}", numbers)
    if len(values) == 3:
        return frame, np.array(values)
    if len(values) != 6:
        raise click.UsageError(f"--target {text}: {len(values)} numbers; the form is {FORM}")
    return frame, lw.pose(values[:3], rpy=np.array(values[3:]) * (DEGREE if degrees else 1.0))


def _center(text: str | None) -> lw.CenterOfMassTarget | None:
    if text is None:
        return None
    values = finite_numbers(f"--center-of-mass {text}", text)
    if len(values) not in (2, 3):
        raise click.UsageError(f"--center-of-mass {text}: {len(values)} numbers; the form is X,Y or X,Y,Z")
    return lw.CenterOfMassTarget(values, axes="xyz"[: len(values)])


def _text(mech: lw.Mechanism, result: lw.InverseKinematics, facts: dict[str, Any], degrees: bool) -> Iterable[str]:
    counts = f"attempts: {facts['attempts']}, iterations of the last: {facts['iterations']}"
    verdict = "reached" if facts["converged"] else "NOT reached: the nearest that was found"
    yield click.style(mech.name, bold=True) + f": {verdict}, error {facts['error']:.1e} (m, rad); {counts}"
    rows = list(zip(*_columns(mech, [result.q], degrees), strict=True))
    yield from section("configuration", table(("joint", f"q ({_unit(mech, degrees)})"), rows, (1,)))
    places = {name: pose[:3, 3] for name, pose in facts["frames"].items()}
    if "center_of_mass" in facts:
        places["(centre of mass)"] = facts["center_of_mass"]
    poses = [(name, *(f"{x:.6g}" for x in np.round(place, 9) + 0.0)) for name, place in places.items()]
    yield from section("frames", table(("frame", "x (m)", "y (m)", "z (m)"), poses, (1, 2, 3)))
    if facts["files"]:
        yield from section("files", facts["files"])
