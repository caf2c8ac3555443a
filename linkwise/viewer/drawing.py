"""Drawings of mechanisms: one configuration, or several of a motion in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

import linkwise as lw

from . import style
from .canvas import Canvas, SpaceCanvas, canvas, fill_figure, new_axes
from .configurations import Motion, one_configuration, several_configurations
from .elements import element_lines
from .labels import explain_masses, label_joints
from .outlines import around, floor, floor_lines, is_seen, outlines, touching
from .shapes import ball, cone
from .skeleton import USUAL_SIZE, JointMark, Skeleton, Sketch, bounds, fineness, is_free, pose_of, symbol_size
from .style import BLACK, BLUE, COLOURS, GREEN, GREY, VERMILLION
from .symbols import POINT, symbol
from .views import View, view_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

OPEN = 1e-6  # metres and sines of angles: a loop with a larger error is drawn as open
LARGEST_DOT = 90.0  # square points, for the heaviest link
MARGIN = 0.05  # of the extent, around what is in a picture
FAINTEST = 0.1  # strength of the earliest of many snapshots
USUAL_COUNT = 6  # positions in one picture
SAME_PLACE = 1e-6  # of how far links go
OFFSETS = (0.0, 0.5, 1.0)  # of strokes from the ends of a rail, in units of the radius of a pin
Trail = str | tuple[str, Sequence[float]] | None  # a frame's origin, or a point in a frame


@dataclass(frozen=True)
class Details:
    """What is drawn besides links and joints."""

    axes: bool = True
    frames: bool = False
    masses: bool = True
    shapes: np.ndarray | None = None  # what is in the picture, (2, 3), where shapes that touch and floors are drawn


class Drawing:
    """Positions of one mechanism on one canvas, which shows all of them and points (n, 3) besides.

    box      (2, 3): what is in the picture
    points   (n, 3): all of them
    size     metres: of symbols of joints
    """

    def __init__(
        self,
        mech: lw.Mechanism,
        q: np.ndarray,
        sketches: Sequence[Sketch],
        ax: Any,
        besides: Sequence[np.ndarray] | np.ndarray,
        view: str,
        elevation: float,
        azimuth: float,
        symbols: float,
        shapes: bool,
    ) -> None:
        self._mech, self._own, self._shapes = mech, ax is None, shapes and bool(mech.contact_pairs)
        self.box = with_points(bounds(sketches), besides)
        self.points = np.concatenate([sketch.points for sketch in sketches])
        if self._shapes:
            self.box = around(self.box, mech, sketches)
            self.points = np.concatenate([self.points, self.box])
        self.canvas = make_canvas(ax, mech, q, view, self.points, elevation, azimuth)
        self.size = symbol_size(sketches[0], self.box, symbols)
        self.canvas.fineness = fineness(self.size, self.box)

    def paint(self, sketch: Sketch, axes: bool = True, frames: bool = False, masses: bool = True) -> None:
        """One of the positions."""
        details = Details(axes, frames, masses, self.box if self._shapes else None)
        paint(self.canvas, self._mech, sketch, self.size, details)

    def finish(self, ticks: bool, title: str | None) -> None:
        """Limits, ticks and title."""
        finish(self.canvas, self.box, self.size, ticks, title, self._own)

    def explain_masses(self) -> None:
        """What dots are, in a figure of its own."""
        if self._own:
            explain_masses(self.canvas)


@style.styled
def draw(
    mech: lw.Mechanism,
    q: Any = None,
    ax: Any = None,
    path: str | Path | None = None,
    view: str = "auto",
    axes: bool = True,
    frames: bool = False,
    labels: bool = False,
    masses: bool = True,
    ticks: bool = True,
    symbols: float = 1.0,
    title: str | None = None,
    elevation: float = 20.0,
    azimuth: float = -60.0,
    passive: lw.forces.Passive | None = None,
    shapes: bool = True,
    trail: Trail = None,
) -> Figure:
    """A drawing of a mechanism at ``q`` (nq,), as a figure; written to ``path`` if there is one.

    q         by default the initial configuration, or with loops a closed one near it; also by joint, {"crank": 0.5}
    ax        axes to draw into, of any figure; they need projection="3d" for a view in space
    view      "auto": flat for a mechanism that moves in one plane, else "3d"; or "xy", "xz", "yz"
    axes      centre lines of the joints' axes
    frames    the frames of links and welded links: x vermillion, y green, z blue
    labels    the names of the joints, and of other named points of planar links; of many numbers, with a key
    masses    mass centres, as dots with areas in proportion to the masses; axes of your own get them as "centre of
              mass" for their legend
    ticks     the world's axes, in metres
    symbols   how large joints are drawn, against the usual
    passive   springs, dampers and cylinders (``lw.forces.Passive``) in place of the springs of the joints, which are
              drawn otherwise, as gears (mimic joints, couplings of two joints) are
    shapes    the floor, and outlines of shapes that touch it or each other (``mech.contact_pairs``)
    trail     of a mechanism of one degree of freedom: the name of a link or frame, or (link, (x, y, z)), whose path is
              drawn as far as it goes, such as a coupler curve
    """
    q = one_configuration(mech, q)
    sketch = Skeleton(mech, passive).at(q)
    path_of_trail = _whole_path(mech, q, trail)
    origins = [pose[:3, 3] for pose in _frame_poses(mech, sketch)] if frames else []
    drawing = Drawing(mech, q, [sketch], ax, [*path_of_trail, *origins], view, elevation, azimuth, symbols, shapes)
    drawing.paint(sketch, axes, frames, masses)
    paint_trail(drawing.canvas, path_of_trail)
    drawing.finish(ticks, title)
    drawing.explain_masses()
    if labels:
        label_joints(drawing.canvas, sketch, drawing.size, alone=ax is None)
    return style.save(drawing.canvas.ax.figure, path)


@style.styled
def snapshots(
    mech: lw.Mechanism,
    q: Any = None,
    t: Any = None,
    path: str | Path | None = None,
    ax: Any = None,
    count: int | None = None,
    view: str = "auto",
    trail: Trail = None,
    ticks: bool = True,
    symbols: float = 1.0,
    title: str | None = None,
    elevation: float = 20.0,
    azimuth: float = -60.0,
    passive: lw.forces.Passive | None = None,
    shapes: bool = True,
) -> Figure:
    """Several positions of a motion in one picture, the earlier ones fainter.

    mech, q, t   as of ``animate``: configurations (m, nq) and their times (m,), or a trajectory or a range of motion
                 in place of ``mech``
    count        number of positions, evenly in time: by default six, or all configurations where these are fewer.  The
                 last position of a closed motion, such as a full turn, is not drawn again
    trail        whose path is drawn: name of a link or frame, or (link, (x, y, z)), a point in its coordinates
    passive      elements that are drawn, as of ``draw``; those of a trajectory by default
    shapes       the floor and what touches, as of ``draw``
    """
    motion = several_configurations(mech, q, t)
    if count is not None and count < 1:
        raise ValueError(f"at least one position is needed, not count = {count}")
    if count is None and motion.between is None and len(motion.q) <= USUAL_COUNT:
        chosen = motion.q
    else:
        times = np.linspace(motion.t[0], motion.t[-1], count or USUAL_COUNT, endpoint=not _comes_back(motion))
        chosen = motion.at(times)
    skeleton = Skeleton(motion.mech, passive or getattr(mech, "passive", None))
    sketches = [skeleton.at(configuration) for configuration in chosen]
    path_of_trail = trail_points(motion.mech, motion.curve, trail)
    look = view, elevation, azimuth, symbols, shapes
    drawing = Drawing(motion.mech, chosen[0], sketches, ax, path_of_trail, *look)
    painted = drawing.canvas
    for painted.layer, sketch in enumerate(sketches):
        painted.strength = FAINTEST ** (1.0 - (painted.layer + 1) / len(chosen))
        drawing.paint(sketch, axes=False, masses=painted.layer == len(chosen) - 1)
    paint_trail(painted, path_of_trail)
    drawing.finish(ticks, title)
    drawing.explain_masses()
    return style.save(painted.ax.figure, path)


def _comes_back(motion: Motion) -> bool:
    """Whether all links end where they began."""
    first, last = lw.link_poses(motion.mech, motion.q[[0, -1]])
    moved = np.abs(lw.link_poses(motion.mech, motion.q) - first).max()
    return bool(np.abs(last - first).max() < SAME_PLACE * moved)


def make_canvas(
    ax: Any, mech: lw.Mechanism, q: Any, view: str, points: np.ndarray, elevation: float, azimuth: float
) -> Canvas:
    """A canvas on the given axes or on new ones in a new figure."""
    if ax is not None and hasattr(ax, "zaxis"):
        view, azimuth = "3d" if view == "auto" else view, ax.azim
    seen = view_of(mech, q, view, points, azimuth)
    if ax is None:
        extent = np.ptp(seen.project(points), axis=0) if seen.flat else np.ones(2)
        ratio = np.clip(extent[1] / max(extent[0], 1e-9), 0.45, 1.1) if seen.flat else 0.85
        ax = new_axes(style.figure(5.2, 5.2 * float(ratio) + 0.3), seen, elevation, azimuth)
    return canvas(ax, seen)


def finish(painted: Canvas, box: np.ndarray, size: float, ticks: bool, title: str | None, alone: bool) -> None:
    """Limits, ticks and title; a figure of our ``own`` is given the shape of the picture."""
    extent = float((box[1] - box[0]).max())
    painted.show(box, MARGIN * extent + 3.0 * size, ticks)
    if title is not None:
        painted.ax.set_title(title)
    if alone and isinstance(painted, SpaceCanvas):
        fill_figure(painted)


# -- the parts of a picture, in the order in which they cover each other -----------------------------------


def paint(to: Canvas, mech: lw.Mechanism, sketch: Sketch, size: float, details: Details) -> None:
    """All of a mechanism in one configuration."""
    _ground(to, sketch, size)
    if details.shapes is not None:
        _shapes(to, mech, sketch, size, details.shapes)
    _links(to, sketch, size)
    _elements(to, sketch, size)
    _joints(to, sketch, size, details.axes)
    if details.masses:
        _masses(to, mech, sketch, size)
    if details.frames:
        _frames(to, mech, sketch, size)


def _links(to: Canvas, sketch: Sketch, size: float) -> None:
    coloured = [(link, COLOURS[i % len(COLOURS)]) for i, link in enumerate(sketch.links)]
    plates = [(link.plate, colour) for link, colour in coloured if len(link.plate)]
    if plates:
        corners, colours = zip(*plates, strict=True)
        to.plates("plates", corners, colours, 1.5)
        to.lines("plates", [np.vstack([c, c[:1]]) for c in corners], colours, 2.0, 2.0)
    for gid, width in (("thin", 0.9), ("bars", 3.2)):
        lines = [(line, colour) for link, colour in coloured for line in getattr(link, gid)]
        if lines:
            segments, colours = zip(*lines, strict=True)
            to.lines(gid, segments, colours, width, 2.1)
    if sketch.named:
        dots = [ball(position, POINT * size) for _, _, position in sketch.named]
        colours = [COLOURS[link % len(COLOURS)] for _, link, _ in sketch.named]
        to.solids("points", dots, colours, [BLACK] * len(dots), 3.0)


def _elements(to: Canvas, sketch: Sketch, size: float) -> None:
    """Springs, dampers, cylinders and gears."""
    normal = np.cross(to.view.right, to.view.up)
    for dashes, lines in element_lines(sketch.elements, size, normal).items():
        if lines:
            to.lines(f"elements {dashes}", lines, [BLACK] * len(lines), 1.1 * to.fineness, 2.3, dashes)


def _joints(to: Canvas, sketch: Sketch, size: float, axes: bool) -> None:
    symbols = [symbol(mark, size) for mark in sketch.marks]
    for gid, lines, colour, order, dashes in (
        ("rails", [line for lines_of in symbols for line in lines_of.rails], BLACK, 2.6, "solid"),
        ("threads", [line for lines_of in symbols for line in lines_of.threads], BLACK, 3.2, "solid"),
        ("ways", [line for lines_of in symbols for line in lines_of.ways], GREY, 1.9, "dotted"),
        ("axes", [line for lines_of in symbols for line in lines_of.axes if axes], GREY, 2.5, "dashdot"),
        (
            "gaps",
            _gaps(sketch),
            VERMILLION,
            3.3,
            "dashed",
        ),
    ):
        if lines:
            to.lines(gid, lines, colour, 0.9, order, dashes)
    outlined = [
        (part, VERMILLION if mark.closes_loop else BLACK) for part, mark in zip(symbols, sketch.marks, strict=True)
    ]
    solids = [(solid, part.colour, edge) for part, edge in outlined for solid in part.solids]
    if solids:
        shapes, colours, edges = zip(*solids, strict=True)
        to.solids("joints", shapes, colours, edges, 3.0)


def _gaps(sketch: Sketch) -> list[np.ndarray]:
    """Lines between the sides of the loops that are open."""
    pairs = zip(sketch.loops, sketch.open, strict=True)
    return [np.array([a.origin, b.origin]) for (a, b), error in pairs if error > OPEN]


def _ground(to: Canvas, sketch: Sketch, size: float) -> None:
    """Where the mechanism stands: a cone under every joint on the ground but sliders, whose guides stand there, and
    those that nothing holds in a plane or in space, and hatching."""
    up, right = to.view.up, to.view.right
    feet = _grounded(sketch, size)
    bases = [foot - 2.6 * size * up for foot in feet]
    cones = [cone(foot, base, 1.7 * size) for foot, base in zip(feet, bases, strict=True)]
    if feet:
        to.solids("ground", cones, ["#DDDDDD"] * len(feet), [GREY] * len(feet), 1.0)
    strokes = [line for mark in sketch.marks if _is_guide(mark) for line in _hatched_ends(to, mark, size)]
    for base in bases:
        strokes.append(base + np.outer([-2.6 * size, 2.6 * size], right))
        for offset in np.linspace(-2.2, 2.6, 6) * size:
            strokes.append(base + np.array([offset * right, (offset - 0.8 * size) * right - 0.9 * size * up]))
    if strokes:
        to.lines("hatching", strokes, BLACK, 0.8, 1.0)


def _shapes(to: Canvas, mech: lw.Mechanism, sketch: Sketch, size: float, box: np.ndarray) -> None:
    """Floors, and outlines of what touches them."""
    placed = [shape for shape in touching(mech, sketch) if is_seen(*shape, box)]
    lines = [line for shape in placed if shape[0].kind != "plane" for line in outlines(*shape, to.view)]
    if lines:
        to.lines("shapes", lines, [GREY] * len(lines), 0.7, 1.8)
    for patch in (floor(*shape, box) for shape in placed):
        if patch is None:
            continue
        hatched = floor_lines(patch, to.view, size)
        if hatched:
            to.lines("floor", hatched, BLACK, 0.8, 1.0)
        else:
            to.plates("floor", [patch], [GREY], 0.9)


def _is_guide(mark: JointMark) -> bool:
    """Whether it is on the ground and slides along it: a slider, or a pin in a slot of the ground."""
    slides = mark.guides_only or not mark.closes_loop
    return mark.grounded and mark.kind.symbol().is_guided and slides


def _hatched_ends(to: Canvas, mark: JointMark, size: float) -> list[np.ndarray]:
    """(2, 3) each: strokes under both ends of the rail that a joint slides along, on the lower side of it."""
    rail = min(symbol(mark, size).rails, key=lambda line: float((line @ to.view.up).sum()))
    along = (rail[1] - rail[0]) / np.linalg.norm(rail[1] - rail[0])
    sides = [side - (side @ along) * along for side in (-to.view.up, to.view.right)]
    below = sides[0] if np.linalg.norm(sides[0]) > 0.1 else sides[1]
    slanted = 0.9 * size * below / np.linalg.norm(below) - 0.8 * size * along
    starts = [
        end + inward * share * size * along for end, inward in zip(rail, (1, -1), strict=True) for share in OFFSETS
    ]
    return [np.array([start, start + slanted]) for start in starts]


def _grounded(sketch: Sketch, size: float) -> list[np.ndarray]:
    """Where joints are fixed to the ground, each place once."""
    stands_at: list[np.ndarray] = []
    for mark in sketch.marks:
        point = mark.origin if mark.closes_loop else mark.start[:3, 3]
        glides = mark.kind.symbol().hovers and not mark.closes_loop
        stands = mark.grounded and not is_free(mark) and not _is_guide(mark) and not glides
        if stands and all(np.linalg.norm(point - other) > size for other in stands_at):
            stands_at.append(point)
    return stands_at


def _masses(to: Canvas, mech: lw.Mechanism, sketch: Sketch, size: float) -> None:
    heaviest = mech.parameters.masses.max(initial=0.0)
    if heaviest > 0.0:
        centres = np.array([link.centre for link in sketch.links])
        diagonal = float(np.linalg.norm(np.ptp(sketch.points, axis=0)))
        crowded = size / max(USUAL_SIZE * diagonal, size)  # less than one where symbols are small
        areas = LARGEST_DOT * crowded**2 * mech.parameters.masses / heaviest
        to.dots("masses", centres, areas, BLACK, 4.0, "centre of mass")


def _frames(to: Canvas, mech: lw.Mechanism, sketch: Sketch, size: float) -> None:
    axes = [
        (np.array([pose[:3, 3], pose[:3, 3] + 4.0 * size * axis]), colour)
        for pose in _frame_poses(mech, sketch)
        for axis, colour in zip(pose[:3, :3].T, (VERMILLION, GREEN, BLUE), strict=True)
    ]
    arrows, colours = zip(*axes, strict=True)
    to.lines("halos", arrows, ["white"] * len(arrows), 2.2, 3.4)  # tells them from bars of the same colour
    to.lines("frames", arrows, colours, 1.4, 3.5)


def _frame_poses(mech: lw.Mechanism, sketch: Sketch) -> list[np.ndarray]:
    """(4, 4) of every frame, those of the ground included."""
    world = np.concatenate([sketch.poses, np.eye(4)[None]])
    return [world[frame.body] @ pose_of(frame) for frame in mech.frames.values()]


# -- paths of frames --------------------------------------------------------------------------------------


def trail_points(mech: lw.Mechanism, q: np.ndarray, trail: Trail) -> np.ndarray:
    """(m, 3): where the origin of the named link or frame is, or a point of it; none without a name."""
    if trail is None:
        return np.zeros((0, 3))
    if isinstance(trail, str):
        return lw.frame_pose(mech, q, trail)[..., :3, 3]
    try:
        name, point = trail
        position = np.array(point, dtype=float)
    except (TypeError, ValueError):
        name, position = None, np.zeros(0)
    if not isinstance(name, str) or position.shape != (3,) or not np.isfinite(position).all():
        raise ValueError(f"trail must be the name of a link or frame, or (link, (x, y, z)), not {trail!r}")
    poses = lw.frame_pose(mech, q, name)
    return poses[..., :3, :3] @ position + poses[..., :3, 3]


def _whole_path(mech: lw.Mechanism, q: np.ndarray, trail: Trail) -> np.ndarray:
    """(m, 3): of a point while a mechanism of one degree of freedom goes as far as it can."""
    if trail is None:
        return np.zeros((0, 3))
    if (dof := lw.constraints.degrees_of_freedom(mech, q)) != 1:
        raise ValueError(
            f"{mech.name!r} has {dof} degrees of freedom, and no single path is that of {trail!r}: draw a motion, "
            "snapshots(mech, q, trail=...)"
        )
    reach = lw.linkages.range_of_motion(mech, next(body.joint for body in mech.bodies if body.kind.nq == 1), q)
    return trail_points(mech, reach.path.q, trail)


def paint_trail(to: Canvas, points: np.ndarray) -> None:
    if len(points) > 1:
        to.lines("trail", [points], VERMILLION, 1.1, 2.7)


def with_points(box: np.ndarray, points: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """(2, 3): the box and points together."""
    every = np.vstack([box, np.reshape(points, (-1, 3))])
    return np.array([every.min(axis=0), every.max(axis=0)])


__all__ = ["View", "draw", "snapshots"]
