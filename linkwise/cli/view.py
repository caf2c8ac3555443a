"""linkwise view: a mechanism or its motion in the browser."""

from __future__ import annotations

from typing import Annotated, Any

import click
import numpy as np

import linkwise as lw

from .files import Output
from .mechanism import Source
from .screen import shown
from .signatures import File, command
from .state import Position


@command("A mechanism in the browser.", of=lw.view, without=("open_browser",))
def view(
    source: Source,
    position: Position,
    motion: File | None = None,
    browser: bool | None = None,
    save: Annotated[str, Output(".html")] | None = None,
    **options: Any,
) -> None:
    """Rotate, drag and play a mechanism in the browser, until Ctrl-C.  Needs: pip install 'linkwise[view]'; --save does
    not.

    motion    play the rows of a .csv or .npz table of q, with times t or without
    host      0.0.0.0 lets other computers in
    browser   open it, or only say where it is
    save      write it to an .html file instead, which needs no network

    \b
    linkwise view robot.urdf
    linkwise view builtin:loader --q boom_joint=0.3
    linkwise view robot.urdf --motion motion.csv
    linkwise view robot.urdf --motion motion.csv --save motion.html
    """
    if motion and position.chosen:
        raise click.UsageError("--motion says where the mechanism is; leave out --q and --start")
    mech = source.mechanism(notes=False)
    times: np.ndarray | None = None
    if motion:
        table = position.units.read(motion, mech, ("q",))
        q, times = table["q"], table.get("t")
    else:
        q = position.of(mech)
    if save:
        chosen = q if motion or position.chosen else None
        path = lw.viewer.page(mech, chosen, times, meshes=True).save(save)
        click.echo(f"{shown(path)}: {mech.name}, to be opened in a browser")
        return
    with lw.view(mech, q, times, open_browser=browser, **options) as viewer:
        click.echo(f"{mech.name} is at {viewer.url} (Ctrl-C ends)")
        viewer.wait()
