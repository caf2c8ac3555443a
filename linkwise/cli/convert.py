"""linkwise convert: a mechanism in another file format."""

from __future__ import annotations

from typing import Annotated, Any

import click

import linkwise as lw

from .files import Output
from .mechanism import Source
from .screen import shown
from .signatures import command


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
