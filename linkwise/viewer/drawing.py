"""Drawings of mechanisms: one configuration, or several of a motion in one picture."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.spatial import ConvexHull

import linkwise as lw

from . import style
from .canvas import Canvas, SpaceCanvas, canvas, fill_figure, new_axes
from .configurations import one_configuration, several_configurations
from .elements import element_lines
from .labels import explain_masses, label_joints
from .shapes import ball, cone, shape_of
from .skeleton import USUAL_SIZE, JointMark, Skeleton, Sketch, bounds, fineness, is_free, matrix, pose_of, symbol_size
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
SAME_POSE = 1e-6  # of how far links go
OFFSETS = (0.0, 0.5, 1.0)  # of strokes from the ends of a rail, in units of the radius of a pin
Trail = str | tuple[str, Sequence[float]] | None  # a frame's origin, or a point in a frame


@dataclass(frozen=True)
class Look:
    """How a picture shows a mechanism: the arguments of ``draw``."""

    view: str = "auto"
    elevation: float = 20.0
    azimuth: float = -60.0
    symbols: float = 1.0
    shapes: bool = True


@dataclass(frozen=True)
class Drawing:
    """A mechanism on one canvas.

    box     (2, 3): lowest and highest coordinates of the picture
    size    metres: of symbols of joints
    alone   whether the figure is ours: it takes the shape of the picture, and explains dots
    shapes  whether floors and shapes that touch are drawn
    points  (n, 3): of the mechanism
    """

    mech: lw.Mechanism
    canvas: Canvas
    box: np.ndarray
    size: float
    alone: bool = False
    shapes: bool = False
    points: np.ndarray = field(default_factory=lambda: np.zeros((0, 3)))

    @classmethod
    def fit(
        cls,
        mech: lw.Mechanism,
        q: np.ndarray,
        sketches: Sequence[Sketch],
        ax: Any,
        besides: Sequence[np.ndarray] | np.ndarray,
        look: Look,
    ) -> Drawing:
        """A canvas that shows all sketches and points ``besides`` (n, 3)."""
        shapes = look.shapes and bool(mech.contact_pairs)
        box = enclose(bounds(sketches), besides)
        points = np.concatenate([sketch.points for sketch in sketches])
        if shapes:
            box = widen_box(box, mech, sketches)
            points = np.concatenate([points, box])
        canvas = make_canvas(ax, mech, q, points, look)
        size = symbol_size(sketches[0], box, look.symbols)
        canvas.fineness = fineness(size, box)
        return cls(mech, canvas, box, size, ax is None, shapes, points)

    def finish(self, ticks: bool, title: str | None) -> None:
        """Set limits, ticks and title."""
        self.canvas.show(self.box, MARGIN * float((self.box[1] - self.box[0]).max()) + 3.0 * self.size, ticks)
        if title is not None:
            self.canvas.ax.set_title(title)
        if self.alone and isinstance(self.canvas, SpaceCanvas):
            fill_figure(self.canvas)

    def explain_masses(self) -> None:
        """Explain the dots below a figure of our own."""
        if self.alone:
            explain_masses(self.canvas)

    # -- the parts of a picture, in the order in which they cover each other -------------------------------

    def paint(self, sketch: Sketch, axes: bool = True, frames: bool = False, masses: bool = True) -> None:
        """All of the mechanism in one configuration."""
        self._ground(sketch)
        if self.shapes:
            self._shapes(sketch)
        self._links(sketch)
        normal = np.cross(self.canvas.view.right, self.canvas.view.up)
        for dashes, lines in element_lines(sketch.elements, self.size, normal).items():
            width = 1.1 * self.canvas.fineness
            self.canvas.lines(f"elements {dashes}", lines, [BLACK] * len(lines), width, 2.3, dashes)
        self._joints(sketch, axes)
        heaviest = self.mech.parameters.masses.max(initial=0.0)
        if masses and heaviest > 0.0:
            diagonal = float(np.linalg.norm(np.ptp(sketch.points, axis=0)))
            crowded = self.size / max(USUAL_SIZE * diagonal, self.size)  # less than one where symbols are small
            areas = LARGEST_DOT * crowded**2 * self.mech.parameters.masses / heaviest
            centres = np.array([link.centre for link in sketch.links])
            self.canvas.dots("masses", centres, areas, BLACK, 4.0, "centre of mass")
        if frames:
            arms = [
                (np.array([pose[:3, 3], pose[:3, 3] + 4.0 * self.size * axis]), colour)
                for pose in _frame_poses(self.mech, sketch)
                for axis, colour in zip(pose[:3, :3].T, (VERMILLION, GREEN, BLUE), strict=True)
            ]
            arrows, colours = zip(*arms, strict=True)
            self.canvas.lines("halos", arrows, ["white"] * len(arrows), 2.2, 3.4)  # parts them from bars
            self.canvas.lines("frames", arrows, colours, 1.4, 3.5)

    def _links(self, sketch: Sketch) -> None:
        coloured = [(link, COLOURS[i % len(COLOURS)]) for i, link in enumerate(sketch.links)]
        plates = [(link.plate, colour) for link, colour in coloured if len(link.plate)]
        if plates:
            corners, colours = zip(*plates, strict=True)
            self.canvas.plates("plates", corners, colours, 1.5)
            self.canvas.lines("plates", [np.vstack([c, c[:1]]) for c in corners], colours, 2.0, 2.0)
        for gid, width in (("thin", 0.9), ("bars", 3.2)):
            lines = [(line, colour) for link, colour in coloured for line in getattr(link, gid)]
            self.canvas.lines(gid, [line for line, _ in lines], [colour for _, colour in lines], width, 2.1)
        dots = [ball(position, POINT * self.size) for _, _, position in sketch.named]
        colours = [COLOURS[link % len(COLOURS)] for _, link, _ in sketch.named]
        self.canvas.solids("points", dots, colours, [BLACK] * len(dots), 3.0)

    def _joints(self, sketch: Sketch, axes: bool) -> None:
        symbols = [symbol(mark, self.size) for mark in sketch.marks]
        sides = zip(sketch.loops, sketch.open, strict=True)
        gaps = [np.array([a.origin, b.origin]) for (a, b), error in sides if error > OPEN]
        for gid, lines, colour, order, dashes in (
            ("rails", [line for each in symbols for line in each.rails], BLACK, 2.6, "solid"),
            ("threads", [line for each in symbols for line in each.threads], BLACK, 3.2, "solid"),
            ("ways", [line for each in symbols for line in each.ways], GREY, 1.9, "dotted"),
            ("axes", [line for each in symbols for line in each.axes if axes], GREY, 2.5, "dashdot"),
            ("gaps", gaps, VERMILLION, 3.3, "dashed"),
        ):
            self.canvas.lines(gid, lines, colour, 0.9, order, dashes)
        solids = [
            (solid, part.colour, VERMILLION if mark.closes_loop else BLACK)
            for part, mark in zip(symbols, sketch.marks, strict=True)
            for solid in part.solids
        ]
        shapes, colours, edges = zip(*solids, strict=True) if solids else ((), (), ())
        self.canvas.solids("joints", shapes, colours, edges, 3.0)

    def _ground(self, sketch: Sketch) -> None:
        """Hatching, and a cone under every joint on the ground.

        Sliders stand on hatched guides; joints that nothing holds in a plane or in space have no cone.
        """
        up, right, size = self.canvas.view.up, self.canvas.view.right, self.size
        feet: list[np.ndarray] = []
        strokes: list[np.ndarray] = []
        for mark in sketch.marks:
            if not mark.grounded:
                continue
            point = mark.origin if mark.closes_loop else mark.start[:3, 3]
            # A slider, or a pin in a slot of the ground.
            if mark.kind.symbol().is_guided and (mark.guides_only or not mark.closes_loop):
                strokes += self._hatched_ends(mark)
            elif is_free(mark) or (mark.kind.symbol().hovers and not mark.closes_loop):
                continue
            elif all(np.linalg.norm(point - other) > size for other in feet):
                feet.append(point)
        bases = [foot - 2.6 * size * up for foot in feet]
        cones = [cone(foot, base, 1.7 * size) for foot, base in zip(feet, bases, strict=True)]
        self.canvas.solids("ground", cones, ["#DDDDDD"] * len(feet), [GREY] * len(feet), 1.0)
        for base in bases:
            strokes.append(base + np.outer([-2.6 * size, 2.6 * size], right))
            for offset in np.linspace(-2.2, 2.6, 6) * size:
                strokes.append(base + np.array([offset * right, (offset - 0.8 * size) * right - 0.9 * size * up]))
        self.canvas.lines("hatching", strokes, BLACK, 0.8, 1.0)

    def _hatched_ends(self, mark: JointMark) -> list[np.ndarray]:
        """(2, 3) each: strokes under both ends of the lower rail of a joint."""
        view, size = self.canvas.view, self.size
        rail = min(symbol(mark, size).rails, key=lambda line: float((line @ view.up).sum()))
        along = (rail[1] - rail[0]) / np.linalg.norm(rail[1] - rail[0])
        sides = [side - (side @ along) * along for side in (-view.up, view.right)]
        below = sides[0] if np.linalg.norm(sides[0]) > 0.1 else sides[1]
        slanted = 0.9 * size * below / np.linalg.norm(below) - 0.8 * size * along
        starts = [
            end + inward * share * size * along for end, inward in zip(rail, (1, -1), strict=True) for share in OFFSETS
        ]
        return [np.array([start, start + slanted]) for start in starts]

    def _shapes(self, sketch: Sketch) -> None:
        """Floors, and outlines of the shapes that touch."""
        placed = [shape for shape in touching(self.mech, sketch) if is_seen(*shape, self.box)]
        lines = [line for shape in placed if shape[0].kind != "plane" for line in outlines(*shape, self.canvas.view)]
        self.canvas.lines("shapes", lines, [GREY] * len(lines), 0.7, 1.8)
        for patch in (floor(*shape, self.box) for shape in placed):
            if patch is None:
                continue
            hatched = floor_lines(patch, self.canvas.view, self.size)
            self.canvas.lines("floor", hatched, BLACK, 0.8, 1.0)
            if not hatched:
                self.canvas.plates("floor", [patch], [GREY], 0.9)

    def paint_trail(self, points: np.ndarray) -> None:
        """The path of a point (n, 3)."""
        self.canvas.lines("trail", [points] if len(points) > 1 else [], VERMILLION, 1.1, 2.7)


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
    labels    the names of joints and of other named points of planar links; many are numbered, with a key
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
    trace = np.zeros((0, 3))
    if trail is not None:  # along all of the range
        if (dof := lw.constraints.degrees_of_freedom(mech, q)) != 1:
            raise ValueError(
                f"{mech.name!r} has {dof} degrees of freedom, and no single path is that of {trail!r}: draw a motion, "
                "snapshots(mech, q, trail=...)"
            )
        reach = lw.linkages.range_of_motion(mech, next(body.joint for body in mech.bodies if body.kind.nq == 1), q)
        trace = trail_points(mech, reach.path.q, trail)
    origins = [pose[:3, 3] for pose in _frame_poses(mech, sketch)] if frames else []
    look = Look(view, elevation, azimuth, symbols, shapes)
    drawing = Drawing.fit(mech, q, [sketch], ax, [*trace, *origins], look)
    drawing.paint(sketch, axes, frames, masses)
    drawing.paint_trail(trace)
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
    trail        a link or frame, or (link, (x, y, z)), a point in its coordinates, whose path is drawn
    passive      elements that are drawn, as of ``draw``; those of a trajectory by default
    shapes       the floor and what touches, as of ``draw``
    """
    motion = several_configurations(mech, q, t)
    if count is not None and count < 1:
        raise ValueError(f"at least one position is needed, not count = {count}")
    if count is None and motion.between is None and len(motion.q) <= USUAL_COUNT:
        chosen = motion.q
    else:
        poses = lw.link_poses(motion.mech, motion.q)
        comes_back = np.abs(poses[-1] - poses[0]).max() < SAME_POSE * np.abs(poses - poses[0]).max()
        times = np.linspace(motion.t[0], motion.t[-1], count or USUAL_COUNT, endpoint=not comes_back)
        chosen = motion.at(times)
    skeleton = Skeleton(motion.mech, passive or getattr(mech, "passive", None))
    sketches = [skeleton.at(configuration) for configuration in chosen]
    trace = trail_points(motion.mech, motion.curve, trail)
    look = Look(view, elevation, azimuth, symbols, shapes)
    drawing = Drawing.fit(motion.mech, chosen[0], sketches, ax, trace, look)
    painted = drawing.canvas
    for painted.layer, sketch in enumerate(sketches):
        painted.strength = FAINTEST ** (1.0 - (painted.layer + 1) / len(chosen))
        drawing.paint(sketch, axes=False, masses=painted.layer == len(chosen) - 1)
    drawing.paint_trail(trace)
    drawing.finish(ticks, title)
    drawing.explain_masses()
    return style.save(painted.ax.figure, path)


def make_canvas(ax: Any, mech: lw.Mechanism, q: Any, points: np.ndarray, look: Look) -> Canvas:
    """A canvas on the given axes, or on new ones in a new figure, for points (n, 3)."""
    view, azimuth = look.view, look.azimuth
    if ax is not None and hasattr(ax, "zaxis"):
        view, azimuth = "3d" if view == "auto" else view, ax.azim
    seen = view_of(mech, q, view, points, azimuth)
    if ax is None:
        extent = np.ptp(seen.project(points), axis=0) if seen.flat else np.ones(2)
        ratio = np.clip(extent[1] / max(extent[0], 1e-9), 0.45, 1.1) if seen.flat else 0.85
        ax = new_axes(style.figure(5.2, 5.2 * float(ratio) + 0.3), seen, look.elevation, azimuth)
    return canvas(ax, seen)


def _frame_poses(mech: lw.Mechanism, sketch: Sketch) -> list[np.ndarray]:
    """(4, 4) of every frame, those of the ground included."""
    world = np.concatenate([sketch.poses, np.eye(4)[None]])
    return [world[frame.body] @ pose_of(frame) for frame in mech.frames.values()]


def trail_points(mech: lw.Mechanism, q: np.ndarray, trail: Trail) -> np.ndarray:
    """(m, 3): path of the origin of a link or frame, or of a point of it; empty without a name."""
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


def enclose(box: np.ndarray, points: Sequence[np.ndarray] | np.ndarray) -> np.ndarray:
    """(2, 3): the box and points together."""
    every = np.vstack([box, np.reshape(points, (-1, 3))])
    return np.array([every.min(axis=0), every.max(axis=0)])


# -- outlines of shapes in contact, and floors ---------------------------------------------------------------------


EDGE_ON = 0.05  # cosine between a floor's normal and the way to the onlooker below which it is seen as a line
DISTANT = 1.0  # of the extent of the picture: a floor that is further below is left out
BEYOND = 0.08  # of the extent, by which a floor goes on around what stands on it
STROKES = 24  # of hatching along a floor

Placed = tuple[lw.contact.Shape, np.ndarray]  # a shape, and its pose (4, 4) in the world


def touching(mech: lw.Mechanism, sketch: Sketch) -> list[Placed]:
    """The shapes that take part in contacts; planes last."""
    names = dict.fromkeys(name for pair in mech.contact_pairs for name in pair.shapes)
    world = np.concatenate([sketch.poses, np.eye(4)[None]])  # the ground is body -1
    shapes = []
    for shape in map(mech.contact.shape, names):
        body, pose = shape.placed(mech)
        shapes.append((shape, world[body] @ matrix(*pose)))
    return sorted(shapes, key=lambda placed_shape: placed_shape[0].kind == "plane")


def widen_box(box: np.ndarray, mech: lw.Mechanism, sketches: Sequence[Sketch]) -> np.ndarray:
    """(2, 3): the box with the shapes of a mechanism in several configurations, and with the floors below them."""
    placed = [placed_shape for sketch in sketches for placed_shape in touching(mech, sketch)]
    points = [_vertices(*placed_shape) for placed_shape in placed if placed_shape[0].kind != "plane"]
    reach, near = (
        DISTANT * float(np.ptp(box, axis=0).max()),
        [],
    )  # distant and large shapes would make the picture small
    for corners in points:
        gaps = np.maximum(box[0] - corners.max(axis=0), corners.min(axis=0) - box[1])
        if gaps.max() <= reach and np.ptp(corners, axis=0).max() <= 4.0 * reach:
            near.append(corners)
    box = _box_of([box, *near])
    return _box_of([box, *(patch for placed_shape in placed if (patch := floor(*placed_shape, box)) is not None)])


def is_seen(shape: lw.contact.Shape, pose: np.ndarray, box: np.ndarray) -> bool:
    """Whether a shape is within a box (2, 3); planes are always."""
    if shape.kind == "plane":
        return True
    vertices, slack = _vertices(shape, pose), BEYOND * float(np.ptp(box, axis=0).max())
    return bool(((vertices >= box[0] - slack) & (vertices <= box[1] + slack)).all())


def _box_of(points: Sequence[np.ndarray]) -> np.ndarray:
    every = np.concatenate(points)
    return np.array([every.min(axis=0), every.max(axis=0)])


def floor(shape: lw.contact.Shape, pose: np.ndarray, box: np.ndarray) -> np.ndarray | None:
    """(4, 3): the part of a plane below a box (2, 3); None for other shapes and for distant planes."""
    if shape.kind != "plane":
        return None
    corners = np.array([[box[i, 0], box[j, 1], box[k, 2]] for i, j, k in product((0, 1), repeat=3)])
    local = (corners - pose[:3, 3]) @ pose[:3, :3]
    extent = float(np.ptp(box, axis=0).max())
    if local[:, 2].min() > DISTANT * extent or local[:, 2].max() < -DISTANT * extent:
        return None
    (low, high), more = (local.min(axis=0), local.max(axis=0)), BEYOND * extent
    ring = [(low[0] - more, low[1] - more), (high[0] + more, low[1] - more)]
    ring += [(high[0] + more, high[1] + more), (low[0] - more, high[1] + more)]
    return np.array([[x, y, 0.0] for x, y in ring]) @ pose[:3, :3].T + pose[:3, 3]


def floor_lines(patch: np.ndarray, view: View, size: float) -> list[np.ndarray]:
    """A line with hatching below for a floor seen edge-on in a flat view; empty for others."""
    normal = np.cross(patch[1] - patch[0], patch[2] - patch[1])
    normal /= np.linalg.norm(normal)
    if not view.flat or abs(normal @ view.toward) > EDGE_ON:
        return []
    along = np.cross(view.toward, normal)
    along /= np.linalg.norm(along)
    distances = patch @ along
    start = patch[int(distances.argmin())]
    length = float(np.ptp(distances))
    slanted = -0.9 * size * normal - 0.8 * size * along
    strokes = (start + along * x for x in np.linspace(0.8 * size, length, STROKES))
    return [start + np.outer([0.0, length], along), *(np.array([foot, foot + slanted]) for foot in strokes)]


def outlines(shape: lw.contact.Shape, pose: np.ndarray, view: View) -> list[np.ndarray]:
    """Lines (k, 3) of a shape: its silhouette in a flat view, else circles around it and edges."""
    if view.flat:
        vertices = _vertices(shape, pose)
        ring = ConvexHull(view.project(vertices)).vertices
        return [vertices[[*ring, ring[0]]]]
    return [line @ pose[:3, :3].T + pose[:3, 3] for line in shape_of(shape.kind, shape.size).edges()]


def _vertices(shape: lw.contact.Shape, pose: np.ndarray) -> np.ndarray:
    return shape_of(shape.kind, shape.size).mesh().vertices @ pose[:3, :3].T + pose[:3, 3]
