"""A planar mechanism with the instant centres of its links."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from . import style
from .configurations import one_configuration
from .drawing import Drawing, Look, enclose, make_canvas
from .labels import label_points, write_key
from .shapes import ball
from .skeleton import Skeleton, bounds, fineness, symbol_size
from .style import BLACK, GREY, VERMILLION

if TYPE_CHECKING:
    from matplotlib.figure import Figure

REACH = 1.5  # extents of the mechanism around it: poles further away are named beside the picture
DOT = 0.45  # of the size of joints


@style.styled
def plot_instant_centers(
    mech: lw.Mechanism,
    q: Any = None,
    v: Any = None,
    hold: Any = (),
    path: str | Path | None = None,
    ax: Any = None,
    reach: float = REACH,
    title: str | None = None,
) -> Figure:
    """A drawing of a planar mechanism with the instant centres of all pairs of its links, as textbooks have them: links
    are numbered, the ground is 1, and 24 is the pole of links 2 and 4.

    q         by default the initial configuration, loops closed; also by joint
    v, hold   how it moves, where it has several degrees of freedom (``lw.linkages.instant_centers``)
    ax        axes to draw into
    reach     poles that are further away than so many times its extent are not drawn, but listed

    Dashed lines lead from a link's pole in the world to its joints, which move at right angles to them.
    """
    q = one_configuration(mech, q)
    centers = lw.linkages.instant_centers(mech, q, v, hold)
    sketch = Skeleton(mech).at(q)
    box = bounds([sketch])
    middle, extent = box.mean(axis=0), float((box[1] - box[0]).max())
    pairs = [(i, j) for j in range(len(centers.links)) for i in range(j)]
    known = {pair: centers.centers[pair] for pair in pairs if not np.isnan(centers.centers[pair]).any()}
    near = {pair: center for pair, center in known.items() if np.abs(center - middle).max() < reach * extent}
    box = enclose(box, list(near.values()))
    painted = make_canvas(ax, mech, q, np.concatenate([sketch.points, box]), Look())
    size = symbol_size(sketch, bounds([sketch]), 1.0)
    painted.fineness = fineness(size, box)
    drawing = Drawing(mech, painted, box, size, alone=ax is None)
    drawing.paint(sketch, axes=False, masses=False)
    rays = [
        np.array([center, end]) for (i, j), center in near.items() if i == 0 for end in _joints_of(mech, sketch, j - 1)
    ]
    painted.lines("rays", rays, GREY, 0.7, 1.7, "dashed")
    dots = [ball(center, DOT * size) for center in near.values()]
    painted.solids("poles", dots, [VERMILLION] * len(dots), [BLACK] * len(dots), 4.0)
    drawing.finish(True, title)
    names = {(i, j): f"{i + 1}{j + 1}" if len(centers.links) < 10 else f"{i + 1}-{j + 1}" for i, j in known}
    key = [f"{k + 1}  {link}" for k, link in enumerate(centers.links)]
    left_out = [
        f"{names[pair]} {'at infinity' if np.isinf(center).any() else 'far away'}"
        for pair, center in known.items()
        if pair not in near
    ]
    write_key(painted.ax, [*key, *([""] if left_out else []), *left_out], alone=ax is None)
    label_points(painted, sketch, size, list(near.values()), [names[pair] for pair in near])
    return style.save(painted.ax.figure, path)


def _joints_of(mech: lw.Mechanism, sketch: Any, link: int) -> list[np.ndarray]:
    """(3,) each: positions of the joints and loops of a link."""
    positions = [sketch.joints[link].origin]
    positions += [sketch.joints[k].origin for k, body in enumerate(mech.bodies) if body.parent == link]
    sides = [loop for loop in mech.loops if isinstance(loop, lw.constraints.Loop)]
    for loop, (_, moving) in zip(sides, sketch.loops, strict=False):
        if link in (mech.frame(loop.link_a).body, mech.frame(loop.link_b).body):
            positions.append(moving.origin)
    return positions
