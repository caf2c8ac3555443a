"""linkwise convert: a mechanism in another file format."""

from __future__ import annotations

from pathlib import Path

import click

from .files import check_output
from .mechanism import Loaded, report_warnings, takes_mechanism
from .screen import shown


@click.command(short_help="A mechanism in another format: URDF, MJCF; a page to look at.")
@takes_mechanism
@click.argument("output")
@click.option("--strict", is_flag=True, help="Fail where the format cannot say all of the mechanism.")
@click.option("--meshes", is_flag=True, help="Of .html: with the meshes of the file in it.")
def convert(found: Loaded, output: str, strict: bool, meshes: bool) -> None:
    """Write the mechanism FILE to OUTPUT, whose ending says the format: .urdf, .xml or .mjcf (MJCF), or .html, a page
    in which it is moved by sliders and which needs no network.

    Loops become <loop> of URDF+, or go to a companion file beside it, or equalities of MJCF; joints that a format lacks
    are composed of ones that it has.  What the format cannot say is told on stderr.

    \b
    linkwise convert robot.urdf robot.xml
    linkwise convert builtin:stewart_platform platform.xml
    linkwise convert robot.urdf robot.html --meshes
    """
    check_output(output)
    mech = report_warnings(found, notes=False)
    mech.save(output, strict=strict, meshes=meshes)
    click.echo(f"{shown(Path(output))}: {mech.name}, {mech.n_links} moving links, nq={mech.nq}, nv={mech.nv}")
