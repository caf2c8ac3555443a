"""linkwise view: a mechanism or its motion in the browser."""

from __future__ import annotations

from collections.abc import Sequence

import click
import numpy as np

import linkwise as lw

from .files import check_output
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import shown
from .state import state
from .tables import read_table


@click.command(short_help="A mechanism in the browser.")
@takes_mechanism
@click.option("--q", "positions", multiple=True, metavar="JOINT=Q", help="Position of a joint; loops are closed.")
@click.option("--start", metavar="FILE|POSTURE", help="Configuration from a table or a posture.")
@click.option("--motion", metavar="FILE", help="Play the rows of a .csv or .npz table of q, with times t or without.")
@click.option("--degrees", is_flag=True, help="Angles in degrees, on the command line and in files.")
@click.option("--port", default=8080, show_default=True, help="Of the page, or the next that is free.")
@click.option("--host", default="127.0.0.1", show_default=True, help="0.0.0.0 lets other computers in.")
@click.option("--browser/--no-browser", default=None, help="Open it, or only say where it is.")
@click.option("--save", metavar="FILE", help="Write it to an .html file instead, which needs no network.")
def view(
    found: Loaded,
    positions: Sequence[str],
    start: str | None,
    motion: str | None,
    degrees: bool,
    port: int,
    host: str,
    browser: bool | None,
    save: str | None,
) -> None:
    """Rotate, drag and play a mechanism in the browser, until Ctrl-C.  Needs: pip install 'linkwise[view]'; --save does
    not.

    \b
    linkwise view robot.urdf
    linkwise view builtin:loader --q boom_joint=0.3
    linkwise view robot.urdf --motion motion.csv
    linkwise view robot.urdf --motion motion.csv --save motion.html
    """
    check_output(save, ".html")
    if motion and (positions or start):
        raise click.UsageError("--motion says where the mechanism is; leave out --q and --start")
    mech = report_warnings(found, notes=False)
    times: np.ndarray | None = None
    if motion:
        table = read_table(motion, mech, ("q",), ("t",), degrees, found.trust_units)
        q, times = table["q"], table.get("t")
    else:
        q = state(mech, positions, (), start, degrees, found.trust_units)[0]
    if save:
        chosen = q if motion or positions or start else None
        written = lw.viewer.page(mech, chosen, times, meshes=True).save(save)
        click.echo(f"{shown(written)}: {mech.name}, to be opened in a browser")
        return
    with lw.view(mech, q, times, port=port, host=host, open_browser=browser) as viewer:
        click.echo(f"{mech.name} is at {viewer.url} (Ctrl-C ends)")
        viewer.wait()
