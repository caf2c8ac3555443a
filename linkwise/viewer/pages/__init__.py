"""One file to send: a mechanism or a motion as a page of HTML that needs neither a network nor a server.

The page has its own forward kinematics, compiled from the mechanism into JavaScript, so that a motion is its
coordinates and nothing else: a minute of a humanoid is a few hundred kilobytes.
"""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from ..drawing import Trail
from ..scene import scene
from .contents import contents
from .kinematics import forward_kinematics
from .motions import motions_of, moved_along_its_range

__all__ = ["Page", "page"]

SCRIPTS = ("matrices.js", "renderer.js", "player.js")
HEIGHT = 480  # pixels, in a notebook


@dataclass(frozen=True, repr=False)
class Page:
    """A page of HTML that is complete in itself.

    title    of the window
    html     its text: to be written to a file, or put into another page as the ``srcdoc`` of an iframe
    height   in a notebook, in pixels
    """

    title: str
    html: str = field(compare=False)
    height: int = HEIGHT

    def save(self, path: str | Path) -> Path:
        """Write it to a file, which any browser opens."""
        written = Path(path)
        written.write_text(self.html, encoding="utf-8")
        return written

    @property
    def iframe(self) -> str:
        """The page as a part of another one."""
        style = f"width:100%;height:{self.height}px;border:0"
        return f'<iframe title="{html.escape(self.title)}" srcdoc="{html.escape(self.html)}" style="{style}"></iframe>'

    def _repr_html_(self) -> str:
        return self.iframe

    def __repr__(self) -> str:
        return f"<Page {self.title!r}: {len(self.html.encode()) / 1000:.0f} kB>"


def page(
    mech: Any,
    q: Any = None,
    t: Any = None,
    meshes: bool = False,
    rate: float = 60.0,
    title: str | None = None,
    height: int = HEIGHT,
    trail: Trail = None,
    passive: Any = None,
    labels: bool | None = None,
) -> Page:
    """A page in which a mechanism is turned around and moved by sliders, or its motion played.

    mech     a mechanism, a trajectory of ``lw.simulate``, batches beside each other, or a range of motion
    q, t     configurations (m, nq), as of ``draw`` one (nq,), or several motions (..., m, nq) of equal times, as
             ``lw.rollout`` gives them, and their times (m,); without them joints have sliders, and a mechanism with
             loops and one degree of freedom moves along its range
    meshes   whether the meshes of the file are in the page, large ones with fewer triangles; otherwise their links are
             drawn as a skeleton
    rate     frames per second that are kept of a motion; between them the page interpolates
    trail    a link or frame, or (link, (x, y, z)), whose path is drawn, such as a coupler curve
    passive  springs, dampers and cylinders that are drawn, as of ``draw``; those of a trajectory by default
    labels   whether joints and named points have their names beside them, which a box in the page hides; by default
             where a mechanism moves in one plane and these are few
    """
    shown = motions_of(mech, q, t, rate)
    if shown.motion is None and q is None:
        shown = moved_along_its_range(shown)
    name = title or shown.mech.name
    moments = None if shown.motion is None else shown.motion.q.reshape(-1, shown.mech.nq)
    seen = scene(shown.mech, meshes, passive or getattr(mech, "passive", None), springs=True, moments=moments)
    data = contents(shown, seen, name, trail, labels)
    return Page(name, _document(name, data, forward_kinematics(shown.mech)), height)


def _document(title: str, data: dict[str, Any], kinematics: str) -> str:
    text = {name: _file(name) for name in ("page.html", "page.css", *SCRIPTS)}
    scripts = "\n".join([*(text[name] for name in SCRIPTS[:-1]), kinematics, text[SCRIPTS[-1]]])
    return Template(text["page.html"]).substitute(
        title=html.escape(title),
        style=text["page.css"].strip(),
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),  # no tag may end the script
        scripts=scripts,
    )


def _file(name: str) -> str:
    return files(__package__).joinpath(name).read_text(encoding="utf-8")
