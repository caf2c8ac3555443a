"""Legible names beside joints: none on another, on a number of an axis or beyond the edge.

Every label is tried around its joint, near it first, and goes where it covers least.  A thin line leads to a distant
label.  Too many names become numbers with a key.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from .canvas import Canvas
from .skeleton import Sketch, is_free, together
from .style import FIGURE_MARGIN
from .symbols import symbol

MOST_NAMES = 12  # more are numbers with a key
TEXT, KEY_TEXT = 8.0, 7.0  # points
KEY_DOT, KEY_HEIGHT = 30.0, 0.22  # of a mass: square points; inches of the line that explains it
KEY_LINE = 1.4  # height of a line of the key, in heights of its letters
DIRECTIONS = 16
GAPS = (5.0, 10.0, 16.0, 24.0, 34.0, 46.0, 60.0, 76.0)  # points from joint to label, tried in this order
LED = 12.0  # points from which on a line leads to the label
PAD = 1.5  # points around words
#: What it costs, in points of distance: to cover a label or number, be outside, cover a joint or a point of a line.
ON_WORDS, OUTSIDE, ON_JOINT, ON_LINE = 1000.0, 3000.0, 25.0, 2.0
SAMPLED = 3.0  # points between the points of a line that count


def label_joints(painted: Canvas, sketch: Sketch, size: float, alone: bool) -> None:
    """Name joints, rods without mass and named points of planar links in a finished picture.  A key makes a figure of
    our own wider (``alone``)."""
    named = sketch.labels
    if len(together(named, size)) > MOST_NAMES:
        write_key(painted.ax, [f"{k + 1}  {name}" for k, (name, _, _) in enumerate(named)], alone)
        named = [(str(k + 1), link, position) for k, (_, link, position) in enumerate(named)]
    label_points(painted, sketch, size, [position for _, _, position in named], [name for name, _, _ in named])


def label_points(
    painted: Canvas, sketch: Sketch, size: float, positions: Sequence[np.ndarray], names: Sequence[str]
) -> None:
    """Names beside points (3,) of a finished picture; points nearer than ``size`` share a label."""
    labels = together([(name, None, position) for name, position in zip(names, positions, strict=True)], size)
    for (words, _, position), offset in zip(labels, _offsets(painted, sketch, labels, size), strict=True):
        painted.note("labels", position, words, offset, TEXT, float(np.hypot(*offset)) > LED)


# -- where they go ------------------------------------------------------------------------------------


def _offsets(painted: Canvas, sketch: Sketch, labels: Sequence[tuple[str, Any, np.ndarray]], size: float) -> np.ndarray:
    """(n, 2): from joints to the middles of their labels, in points; each avoids the earlier ones."""
    figure = painted.ax.figure
    figure.draw_without_rendering()  # arranges it
    point = figure.dpi / 72.0
    step = SAMPLED * point
    lines = [_line(painted.project_to_pixels(bar), step) for link in sketch.links for bar in (*link.bars, *link.thin)]
    lines += [_line(painted.project_to_pixels(mark.points), step) for mark in sketch.elements if mark.axis is None]
    drawn = [symbol(mark, size) for mark in sketch.marks]
    lines += [_line(painted.project_to_pixels(rail), step) for each in drawn for rail in each.rails]
    lines += [_line(ends, step) for ends in (_axis_lines(painted.ax) if painted.ticks else ())]
    joints = painted.project_to_pixels(np.array([position for _, _, position in labels]).reshape(-1, 3))
    points = [np.concatenate([solid.points for solid in each.solids]) for each in drawn if each.solids]
    right, up = size * painted.view.right, size * painted.view.up
    feet = np.array([-2.0 * right, 2.0 * right - 3.0 * up])  # corners of the ground below a joint
    points += [mark.start[:3, 3] + feet for mark in sketch.marks if mark.grounded and not is_free(mark)]
    corners = map(painted.project_to_pixels, points)
    symbols = [np.array([xy.min(axis=0), xy.max(axis=0)]) for xy in corners]
    taken = _boxes_of_axes(painted.ax) if painted.ticks else []
    paper = np.array([[0.0, 0.0], [figure.bbox.width, figure.bbox.height]])
    offsets = []
    for joint, (words, _, _) in zip(joints, labels, strict=True):
        extent = _extent(figure, words, TEXT) + 2.0 * PAD * point
        middles, gaps = _candidates(joint, extent, point)
        boxes = np.stack([middles - extent / 2.0, middles + extent / 2.0], axis=1)
        outside = ((boxes[:, 0] < paper[0]) | (boxes[:, 1] > paper[1])).any(axis=-1).astype(float)
        cost = gaps / point + OUTSIDE * outside + ON_JOINT * _overlaps(boxes, symbols)
        dots = np.concatenate([np.zeros((0, 2)), *lines])
        within = (dots[None] > boxes[:, None, 0]) & (dots[None] < boxes[:, None, 1])
        cost += ON_LINE * within.all(axis=-1).sum(axis=-1)
        cost += ON_WORDS * (_overlaps(boxes, taken) + _crossing(joint, middles, taken))
        best = int(np.argmin(cost))
        taken.append(boxes[best])
        lines.append(_line(np.array([joint, middles[best]]), step))
        offsets.append((middles[best] - joint) / point)
    return np.array(offsets).reshape(-1, 2)


def _candidates(joint: np.ndarray, extent: np.ndarray, point: float) -> tuple[np.ndarray, np.ndarray]:
    """Middles (n, 2) of a box of the given extent in all directions and distances from a joint, and the gaps (n,)."""
    angle = np.radians(30.0) + 2.0 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS  # right and up first
    directions = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
    beside = np.clip(1.5 * directions, -1.0, 1.0) * extent / 2.0
    gaps = np.repeat(np.array(GAPS) * point, DIRECTIONS)
    return joint + np.tile(beside, (len(GAPS), 1)) + gaps[:, None] * np.tile(directions, (len(GAPS), 1)), gaps


def _overlaps(boxes: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """How many of the others each box touches."""
    taken = np.reshape(others, (-1, 2, 2))
    apart = (boxes[:, None, 1] < taken[None, :, 0]) | (boxes[:, None, 0] > taken[None, :, 1])
    return (~apart.any(axis=-1)).sum(axis=-1)


def _crossing(joint: np.ndarray, middles: np.ndarray, others: Sequence[np.ndarray]) -> np.ndarray:
    """Number of other boxes that the line from the joint to each middle crosses."""
    way = np.linspace(0.0, 1.0, 12)[1:, None, None] * (middles - joint)[None] + joint
    taken = np.reshape(others, (-1, 1, 2, 2))
    within = (way[:, None] > taken[None, :, :, 0]) & (way[:, None] < taken[None, :, :, 1])
    return within.all(axis=-1).any(axis=0).sum(axis=0)


def _line(ends: np.ndarray, step: float) -> np.ndarray:
    """(n, 2): points between two ends (2, 2), about ``step`` apart."""
    return np.linspace(ends[0], ends[1], max(2, round(float(np.linalg.norm(ends[1] - ends[0])) / step)))


def _axis_lines(ax: Any) -> list[np.ndarray]:
    """(2, 2) of every axis, in pixels."""
    if not hasattr(ax, "zaxis"):
        (left, low), (right, high) = ax.bbox.get_points()
        return [np.array([[left, low], [left, high]]), np.array([[left, low], [right, low]])]
    lines = [axis.line for axis in (ax.xaxis, ax.yaxis, ax.zaxis)]
    return [line.get_transform().transform(line.get_xydata()) for line in lines]


def _boxes_of_axes(ax: Any) -> list[np.ndarray]:
    """(2, 2) of every number and name of the axes, lower left and upper right."""
    axes = [getattr(ax, name) for name in ("xaxis", "yaxis", "zaxis") if hasattr(ax, name)]
    # Not axis.get_ticklabels(), which puts numbers of axes in space where they would be in the plane.
    numbers = [tick.label1 for axis in axes for tick in axis.get_major_ticks()]
    texts = [text for text in (*numbers, *(axis.label for axis in axes)) if text.get_text()]
    return [np.array(text.get_window_extent().get_points()) for text in texts]


def _extent(figure: Any, words: str, size: float) -> np.ndarray:
    """(2,): width and height of words, in pixels."""
    text = figure.text(0.0, 0.0, words, fontsize=size)
    box = text.get_window_extent()
    text.remove()
    return np.array([box.width, box.height])


# -- the key ------------------------------------------------------------------------------------------


def explain_masses(painted: Canvas) -> None:
    """A legend below a picture of our own for the dots at mass centres."""
    dots = [artist for artist in painted.artists if artist.get_gid() == "masses"]
    if dots:
        figure = painted.ax.figure
        extend(figure, below=KEY_HEIGHT)
        key = figure.legend(handles=dots[-1:], loc="lower right", fontsize=KEY_TEXT, borderpad=0.2, handletextpad=0.2)
        key.set_gid("key of masses")
        key.set_in_layout(False)  # there is room for it
        for handle in key.legend_handles:
            handle.set_sizes([KEY_DOT])


def write_key(ax: Any, lines: Sequence[str], alone: bool) -> None:
    """Lines of text, right of the picture."""
    figure = ax.figure
    width, height = figure.get_size_inches()
    fitting = max(1, int(72.0 * 0.94 * height / (KEY_LINE * KEY_TEXT))) if alone else len(lines)
    columns = ["\n".join(lines[k : k + fitting]) for k in range(0, len(lines), fitting)]
    look = {"fontsize": KEY_TEXT, "linespacing": KEY_LINE, "va": "center"}
    if not alone:
        ax.annotate(columns[0], (1.02, 0.5), xycoords="axes fraction", annotation_clip=False, **look).set_gid("key")
        return
    widths = [_extent(figure, column, KEY_TEXT)[0] / figure.dpi + FIGURE_MARGIN for column in columns]
    extend(figure, right=sum(widths))
    for column, start in zip(columns, width + np.cumsum([0.0, *widths[:-1]]), strict=True):
        figure.text(start / (width + sum(widths)), 0.5, column, **look).set_gid("key")


def extend(figure: Any, right: float = 0.0, below: float = 0.0) -> None:
    """Add inches at the right and at the bottom, and leave all axes where they are."""
    width, height = figure.get_size_inches()
    across, up = width / (width + right), height / (height + below)

    def rescaled(x: float, y: float, w: float, h: float) -> tuple[float, float, float, float]:
        """A rectangle of the former figure, in fractions of the new one."""
        return across * x, 1.0 - up * (1.0 - y), across * w, up * h

    extents = [(ax, ax.get_position(original=True)) for ax in figure.axes]
    figure.set_size_inches(width + right, height + below)
    engine = figure.get_layout_engine()
    if engine is not None and hasattr(engine, "set") and "rect" in engine.get():
        engine.set(rect=rescaled(*engine.get()["rect"]))
        return
    for ax, extent in extents:
        ax.set_position(rescaled(extent.x0, extent.y0, extent.width, extent.height))
