"""linkwise view: a mechanism or its motion in the browser; linkwise convert: a mechanism in another file format."""

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
        q = position.values(mech)
    if save:
        chosen = q if motion or position.chosen else None
        path = lw.viewer.page(mech, chosen, times, meshes=True).save(save)
        click.echo(f"{shown(path)}: {mech.name}, to be opened in a browser")
        return
    with lw.view(mech, q, times, open_browser=browser, **options) as viewer:
        click.echo(f"{mech.name} is at {viewer.url} (Ctrl-C ends)")
        viewer.wait()


@command("A mechanism in another format: URDF, MJCF; a page to look at.", of=lw.Mechanism.save)
def convert(source: Source, output: Annotated[str, Output()], **options: Any) -> None:
    """Write the mechanism FILE to OUTPUT, whose ending says the format: .urdf, .xml or .mjcf (MJCF), or .html, a page
    in which it is moved by sliders and which needs no network.

    Loops become <loop> of URDF+, or go to a companion file beside it, or equalities of MJCF; joints that a format lacks
    are composed of ones that it has.  What the format cannot say is told on stderr.

    strict   fail where the format cannot say all of the mechanism
    meshes   of .html: with the meshes of the file in it

    \b
    linkwise convert robot.urdf robot.xml
    linkwise convert builtin:stewart_platform platform.xml
    linkwise convert robot.urdf robot.html --meshes
    """
    mech = source.mechanism(notes=False)
    mech.save(output, **options)
    click.echo(f"{shown(output)}: {mech.name}, {mech.n_links} moving links, nq={mech.nq}, nv={mech.nv}")
