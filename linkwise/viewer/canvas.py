"""Painting lines, solids and dots of the world into axes of matplotlib: flat, or in space.

A canvas keeps its artists, so that the next moment of a motion can replace them.  Every artist has a gid such as "bars"
or "joints".
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

from .shapes import Solid
from .skeleton import SAME_POINT
from .style import GREY
from .views import NAMES, View

LEAST = 0.25  # of the largest extent: a picture is no narrower than this
UNLABELLED = 1.3  # enlargement of a picture in space that needs no room for labels
PAD, MOST_PADS = 3.0, 10  # points by which words beside an axis in space are moved away from it, and how often
TICKS = 6  # along the longest side of a picture in space
LIGHT = np.array([0.3, -0.5, 0.8])  # where it comes from: right, toward the onlooker's back, up
Colours = str | Sequence[str]


class Canvas(ABC):
    """Axes, their view, and the artists painted on them.

    strength   of further artists, from 0 (white) to 1 (full colours)
    layer      of further artists, which cover those of lower layers
    fineness   width of lines of springs, dampers and gears, against the usual
    ticks      whether the world's axes are shown
    """

    def __init__(self, ax: Any, view: View):
        self.ax = ax
        self.view = view
        self.strength = 1.0
        self.layer = 0
        self.fineness = 1.0
        self.ticks = True
        self.artists: list[Any] = []

    def lines(
        self,
        gid: str,
        lines: Sequence[np.ndarray],
        colours: Colours,
        width: float,
        order: float,
        style: str = "solid",
    ) -> None:
        """Polylines (k, 3)."""
        if not len(lines):
            return
        look = {"colors": self._rgba(colours), "linewidths": width, "linestyles": style, "zorder": self._order(order)}
        self._add(gid, self._drawn_lines(lines, **look, capstyle="round" if style == "solid" else None))

    def plates(self, gid: str, plates: Sequence[np.ndarray], colours: Colours, order: float) -> None:
        """Translucent polygons (k, 3)."""
        self._polygons(gid, plates, order, facecolors=self._rgba(colours, 0.25 * self.strength))

    def solids(
        self, gid: str, solids: Sequence[Solid], colours: Sequence[str], edges: Sequence[str], order: float
    ) -> None:
        """Convex solids with their edges."""
        if solids:
            polygons, fills, outlines, width = self._faces(solids, self._rgba(colours), self._rgba(edges))
            self._polygons(gid, polygons, order, facecolors=fills, edgecolors=outlines, linewidths=width)

    @abstractmethod
    def _faces(
        self, solids: Sequence[Solid], fills: np.ndarray, edges: np.ndarray
    ) -> tuple[Sequence[np.ndarray], np.ndarray, np.ndarray, float]:
        """Polygons of solids with their colours, those of their edges, and the width of these."""

    def dots(self, gid: str, points: np.ndarray, areas: np.ndarray, colour: str, order: float, label: str) -> None:
        """Translucent dots at points (n, 3), with areas in square points of print and a label for legends."""
        look = {"color": self._rgba(colour, 0.55), "zorder": self._order(order), "linewidths": 0.0, "label": label}
        self._add(gid, self._drawn_dots(points, s=areas, **look))

    @abstractmethod
    def _drawn_lines(self, lines: Sequence[np.ndarray], **look: Any) -> Any:
        """The artist of polylines (k, 3), in the axes."""

    @abstractmethod
    def _drawn_polygons(self, polygons: Sequence[np.ndarray], **look: Any) -> Any:
        """The artist of polygons (k, 3), in the axes."""

    @abstractmethod
    def _drawn_dots(self, points: np.ndarray, **look: Any) -> Any:
        """The artist of points (n, 3), in the axes."""

    def _polygons(self, gid: str, polygons: Sequence[np.ndarray], order: float, **look: Any) -> None:
        self._add(gid, self._drawn_polygons(polygons, zorder=self._order(order), **look))

    @abstractmethod
    def project_to_pixels(self, points: np.ndarray) -> np.ndarray:
        """(n, 2): pixels of the figure at points (n, 3) of the world."""

    @abstractmethod
    def _anchor(self, point: np.ndarray) -> dict[str, Any]:
        """A point (3,) of the world as annotations of matplotlib take it: xy and xycoords."""

    @abstractmethod
    def show(self, box: np.ndarray, margin: float, ticks: bool) -> None:
        """Limits that contain the box (2, 3) and a margin in metres, equal scales, names of the axes."""

    def note(self, gid: str, point: np.ndarray, words: str, offset: np.ndarray, size: float, led: bool) -> None:
        """Words of a size with their middle at an offset (2,) from a point (3,), both in points of print; with a line
        to the point if it is ``led``."""
        from matplotlib.patheffects import withStroke

        annotation = self.ax.annotate(
            words,
            **self._anchor(point),
            xytext=tuple(offset),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=size,
            zorder=self._order(5.0),
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": GREY, "shrinkA": 0.0, "shrinkB": 0.0} if led else None,
            path_effects=[withStroke(linewidth=2.0, foreground="white")],  # keeps letters readable on lines
        )
        annotation.set_in_layout(False)  # it is placed in the arranged picture
        self._add(gid, annotation)

    def clear(self) -> None:
        """Remove all artists; the axes stay as they are."""
        for artist in self.artists:
            artist.remove()
        self.artists.clear()

    def _add(self, gid: str, artist: Any) -> None:
        artist.set_gid(gid)
        self.artists.append(artist)

    def _order(self, order: float) -> float:
        return order + 10.0 * self.layer

    def _rgba(self, colours: Colours, alpha: float = 1.0) -> np.ndarray:
        """(n, 4): the colours, mixed with white unless the strength is full."""
        from matplotlib.colors import to_rgba_array

        rgba = to_rgba_array([colours] if isinstance(colours, str) else list(colours))
        rgba[:, :3] = 1.0 + self.strength * (rgba[:, :3] - 1.0)
        rgba[:, 3] = alpha
        return rgba


class FlatCanvas(Canvas):
    """Seen along a direction, in ordinary axes; a solid is its outline, small ones on top of large ones."""

    def _drawn_lines(self, lines: Sequence[np.ndarray], **look: Any) -> Any:
        from matplotlib.collections import LineCollection

        return self.ax.add_collection(
            LineCollection([self.view.project(line) for line in lines], **look), autolim=False
        )

    def _drawn_polygons(self, polygons: Sequence[np.ndarray], **look: Any) -> Any:
        from matplotlib.collections import PolyCollection

        flat = [self.view.project(polygon) for polygon in polygons]
        return self.ax.add_collection(PolyCollection(flat, **look), autolim=False)

    def _drawn_dots(self, points: np.ndarray, **look: Any) -> Any:
        return self.ax.scatter(*self.view.project(points).T, **look)

    def _faces(
        self, solids: Sequence[Solid], fills: np.ndarray, edges: np.ndarray
    ) -> tuple[Sequence[np.ndarray], np.ndarray, np.ndarray, float]:
        flat = [self.view.project(solid.points) for solid in solids]
        rings = [ConvexHull(points).vertices for points in flat]
        extents = [-np.ptp(points[ring], axis=0).prod() for points, ring in zip(flat, rings, strict=True)]
        larger_first = np.argsort(extents, kind="stable")
        return [solids[i].points[rings[i]] for i in larger_first], fills[larger_first], edges[larger_first], 0.9

    def project_to_pixels(self, points: np.ndarray) -> np.ndarray:
        return self.ax.transData.transform(self.view.project(points))

    def _anchor(self, point: np.ndarray) -> dict[str, Any]:
        return {"xy": self.view.project(point), "xycoords": "data", "annotation_clip": False}

    def show(self, box: np.ndarray, margin: float, ticks: bool) -> None:
        low, high = _widened(self.view.project(_corners(box)), margin)
        self.ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]))
        self.ax.set_aspect("equal", adjustable="box")
        across, up = self.view.labels
        self.ax.set(xlabel=across, ylabel=up)
        self.ticks = ticks
        if not ticks:
            self.ax.set_axis_off()


class SpaceCanvas(Canvas):
    """Seen from an angle, in axes with projection="3d".

    Keeps the points (k, 3) of its artists: matplotlib cannot compute the extent of artists in space.
    """

    def __init__(self, ax: Any, view: View):
        super().__init__(ax, view)
        self.points: list[np.ndarray] = []

    def clear(self) -> None:
        super().clear()
        self.points.clear()

    def reserve(self, points: np.ndarray, margin: float) -> None:
        """Include points (k, 3) with a margin in the extent until the next ``clear``."""
        right, up = margin * self.view.right, margin * self.view.up
        self.points += [points + way for way in (right, -right, up, -up)]

    def _drawn_lines(self, lines: Sequence[np.ndarray], **look: Any) -> Any:
        from mpl_toolkits.mplot3d.art3d import Line3DCollection

        self.points += lines
        return self.ax.add_collection3d(Line3DCollection(lines, **look), autolim=False)

    def _drawn_polygons(self, polygons: Sequence[np.ndarray], **look: Any) -> Any:
        from mpl_toolkits.mplot3d.art3d import Poly3DCollection

        # Of equal lengths: matplotlib projects what it pads shorter ones with, which is arbitrary memory.
        longest = max(map(len, polygons))
        equal = np.array([np.vstack([p, np.repeat(p[-1:], longest - len(p), axis=0)]) for p in polygons])
        self.points += polygons
        return self.ax.add_collection3d(Poly3DCollection(equal, **look), autolim=False)

    def _drawn_dots(self, points: np.ndarray, **look: Any) -> Any:
        self.points.append(points)
        return self.ax.scatter(*points.T, depthshade=False, **look)

    def _faces(
        self, solids: Sequence[Solid], fills: np.ndarray, edges: np.ndarray
    ) -> tuple[Sequence[np.ndarray], np.ndarray, np.ndarray, float]:
        light = LIGHT @ np.stack([self.view.right, np.cross(self.view.up, self.view.right), self.view.up])
        brightness = []  # of each face, from 0.56 on the side away from the light to 1
        for solid in solids:
            middle = solid.points.mean(axis=0)
            normals = np.array([np.cross(face[1] - face[0], face[2] - face[1]) for face in solid.faces])
            outward = np.sign(np.einsum("ij,ij->i", normals, [face.mean(axis=0) - middle for face in solid.faces]))
            lengths = np.maximum(np.linalg.norm(normals, axis=1) * np.linalg.norm(light), 1e-30)
            brightness.append(0.78 + 0.22 * outward * (normals @ light) / lengths)
        fills = np.repeat(fills, [len(solid.faces) for solid in solids], axis=0)
        fills[:, :3] *= np.concatenate(brightness)[:, None]
        outlines = fills.copy()
        ends = np.concatenate([np.arange(len(solid.faces)) < solid.edged for solid in solids])
        outlines[ends] = np.repeat(edges, [solid.edged for solid in solids], axis=0)
        return [face for solid in solids for face in solid.faces], fills, outlines, 0.6

    def project_to_pixels(self, points: np.ndarray) -> np.ndarray:
        from mpl_toolkits.mplot3d.proj3d import proj_transform

        x, y, _ = proj_transform(*points.T, self.ax.get_proj())
        return self.ax.transData.transform(np.stack([x, y], axis=-1))

    def _anchor(self, point: np.ndarray) -> dict[str, Any]:
        from matplotlib.transforms import Affine2D

        # The view may change until the picture is drawn.
        return {"xy": (0.0, 0.0), "xycoords": lambda _: Affine2D().translate(*self.project_to_pixels(point[None])[0])}

    def show(self, box: np.ndarray, margin: float, ticks: bool) -> None:
        from matplotlib.ticker import MaxNLocator

        low, high = _widened(box, margin)
        self.ax.set(xlim=(low[0], high[0]), ylim=(low[1], high[1]), zlim=(low[2], high[2]))
        self.ax.set_box_aspect(high - low, zoom=1.0 if ticks else UNLABELLED)
        self.ax.set(xlabel="x (m)", ylabel="y (m)", zlabel="z (m)")
        for axis, extent in zip((self.ax.xaxis, self.ax.yaxis, self.ax.zaxis), high - low, strict=True):
            axis.set_pane_color((1.0, 1.0, 1.0, 0.0))
            axis.set_major_locator(MaxNLocator(max(2, round(TICKS * extent / (high - low).max()))))
        self.ticks = ticks
        if not ticks:
            self.ax.set_axis_off()


def new_axes(figure: Any, view: View, elevation: float, azimuth: float, cell: tuple[int, int, int] = (1, 1, 1)) -> Any:
    """Axes for a view in a figure: rows, columns, number from 1."""
    if view.flat:
        return figure.add_subplot(*cell)
    ax = figure.add_subplot(*cell, projection="3d", proj_type="ortho", computed_zorder=False)
    ax.view_init(elevation, azimuth, vertical_axis=NAMES[int(np.argmax(np.abs(view.up)))])
    return ax


def fill_figure(painted: SpaceCanvas, tallest: float = 1.3) -> None:
    """Fit the shape of a figure to its axes in space, no taller than ``tallest`` widths, and fill it with them."""
    ax, figure = painted.ax, painted.ax.figure
    figure.set_layout_engine("none")  # it does not see the labels of axes in space
    for attempt in range(3):
        if attempt and painted.ticks:
            _part_names_and_numbers(ax)
        seen = _extent_in_figure(painted)
        if attempt == 0:
            width, height = figure.get_size_inches()
            figure.set_size_inches(width, width * min(max(seen.height * height / (seen.width * width), 0.4), tallest))
            continue
        scale = 0.96 / max(seen.width, seen.height)
        extent = ax.get_position(original=True)
        x = 0.5 + scale * (extent.x0 - 0.5 * (seen.x0 + seen.x1))
        y = 0.5 + scale * (extent.y0 - 0.5 * (seen.y0 + seen.y1))
        ax.set_position((x, y, scale * extent.width, scale * extent.height))


def _part_names_and_numbers(ax: Any) -> None:
    """Move numbers of axes in space away from their lines, and names from the numbers: matplotlib lets them touch."""
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        for _ in range(MOST_PADS):
            ax.figure.draw_without_rendering()
            low, high = axis.get_view_interval()
            ticks = [tick for tick in axis.get_major_ticks() if low <= tick.get_loc() <= high]  # others are not drawn
            boxes = [tick.label1.get_window_extent() for tick in ticks if tick.label1.get_text()]
            line = axis.line.get_transform().transform(axis.line.get_xydata())
            if any(box.count_contains(np.linspace(line[0], line[1], 500)) for box in boxes):
                axis.set_tick_params(pad=axis.get_tick_params().get("pad", 0.0) + PAD)
                continue
            name = axis.label.get_window_extent().padded(0.02 * ax.figure.dpi)
            if not any(name.overlaps(box) for box in boxes):
                break
            axis.labelpad += PAD


def _extent_in_figure(painted: SpaceCanvas) -> Any:
    """Box of axes in space with labels and title, in units of the figure.

    Axes are the box of their limits where there are ticks or nothing is painted yet, otherwise all that is painted.
    """
    from matplotlib.transforms import Bbox

    ax, figure = painted.ax, painted.ax.figure
    figure.draw_without_rendering()
    limits = _corners(np.array([ax.get_xlim(), ax.get_ylim(), ax.get_zlim()]).T)
    outline = painted.project_to_pixels(
        limits if painted.ticks or not painted.points else np.concatenate(painted.points)
    )
    boxes = [Bbox([outline.min(axis=0), outline.max(axis=0)])]
    if painted.ticks:
        boxes += [axis.get_tightbbox() for axis in (ax.xaxis, ax.yaxis, ax.zaxis)]
    if ax.get_title():
        boxes.append(ax.title.get_window_extent())
    return Bbox.union(boxes).transformed(figure.transFigure.inverted())


def canvas(ax: Any, view: View) -> Canvas:
    """The canvas for axes of the user's or our own."""
    in_space = hasattr(ax, "zaxis")
    if view.flat == in_space:
        raise ValueError(
            'axes in space take view="3d" or "auto", not a flat view'
            if in_space
            else "this view needs axes in space, figure.add_subplot(projection='3d'); or give a flat view such as 'xz'"
        )
    return SpaceCanvas(ax, view) if in_space else FlatCanvas(ax, view)


def _corners(box: np.ndarray) -> np.ndarray:
    """(8, 3)"""
    return np.array([[box[i, 0], box[j, 1], box[k, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)])


def _widened(points: np.ndarray, margin: float) -> tuple[np.ndarray, np.ndarray]:
    """Limits with a margin, all nearly as wide as the widest."""
    low, high = points.min(axis=0), points.max(axis=0)
    widest = max(float((high - low).max()), SAME_POINT)
    middle, half = (low + high) / 2.0, np.maximum(high - low, LEAST * widest) / 2.0
    return middle - half - margin, middle + half + margin
