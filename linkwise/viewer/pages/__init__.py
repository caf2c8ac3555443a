"""One file to send: a mechanism or a motion as a page of HTML that needs neither a network nor a server.

The page has its own forward kinematics, compiled from the mechanism into JavaScript, so that a motion is its
coordinates and nothing else: a minute of a humanoid is a few hundred kilobytes."""

from __future__ import annotations

import html
import json
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

import linkwise as lw

from ..drawing import Trail
from ..scene import scene
from .contents import contents
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
    """A page of HTML that shows a mechanism with sliders, or plays its motion.

    mech     a mechanism, a trajectory of ``lw.simulate``, batches beside each other, or a range of motion
    q, t     configurations (m, nq), as of ``draw`` one (nq,), or several motions (..., m, nq) of equal times, as
             ``lw.rollout`` gives them, and their times (m,); without them joints have sliders, and a mechanism with
             loops and one degree of freedom moves along its range
    meshes   whether the page has the meshes of the file, large ones with fewer triangles; otherwise a skeleton is drawn
    rate     frames per second of a motion, between which the page interpolates
    trail    a link or frame, or (link, (x, y, z)), whose path is drawn, such as a coupler curve
    passive  springs, dampers and cylinders to draw, as of ``draw``; those of a trajectory by default
    labels   whether joints and named points have names, which a box in the page hides; by default few names of a
             planar mechanism
    """
    shown = motions_of(mech, q, t, rate)
    if shown.motion is None and q is None:
        shown = moved_along_its_range(shown)
    name = title or shown.mech.name
    moments = None if shown.motion is None else shown.motion.q.reshape(-1, shown.mech.nq)
    seen = scene(shown.mech, meshes, passive or getattr(mech, "passive", None), springs=True, moments=moments)
    data = contents(shown, seen, name, trail, labels)
    names = ("page.html", "page.css", *SCRIPTS)
    text = {file: files(__package__).joinpath(file).read_text(encoding="utf-8") for file in names}
    scripts = [*(text[file] for file in SCRIPTS[:-1]), forward_kinematics(shown.mech), text[SCRIPTS[-1]]]
    document = Template(text["page.html"]).substitute(
        title=html.escape(name),
        style=text["page.css"].strip(),
        data=json.dumps(data, separators=(",", ":")).replace("<", "\\u003c"),  # no tag may end the script
        scripts="\n".join(scripts),
    )
    return Page(name, document, height)


FORMULAS = {
    "add": "{0}+{1}",
    "sub": "{0}-{1}",
    "mul": "{0}*{1}",
    "div": "{0}/{1}",
    "neg": "-{0}",
    "sqrt": "Math.sqrt({0})",
    "sin": "Math.sin({0})",
    "cos": "Math.cos({0})",
    "atan2": "Math.atan2({0},{1})",
    "less": "{0}<{1}",
    "select": "{0}?{1}:{2}",
}


def forward_kinematics(mech: lw.Mechanism) -> str:
    """``function link_poses(q, out)``: poses of the links (n_links, 4, 4), rows first, into ``out``."""
    program = lw.compile("link_poses", mech, target="numpy", loops=False).straight_line
    text: dict[object, str] = {}
    lines, section = ["function link_poses(q, out) {"], ""
    for node in program.nodes:
        if node.op.name == "const":
            text[node] = f"({node.value!r})" if node.value < 0.0 else repr(node.value)
        elif node.op.name == "input":
            text[node] = f"q[{node.value[1]}]"
        else:
            if node.section != section:
                section = node.section
                lines.append(f"  // {' '.join(section.split())}")
            name = f"t{len(text)}"
            lines.append(f"  const {name} = {FORMULAS[node.op.name].format(*(text[arg] for arg in node.args))};")
            text[node] = name
    lines += [f"  out[{index}] = {text[node]};" for index, node in enumerate(program.results[0])]
    return "\n".join([*lines, "}"]).replace("</", "<\\/")
