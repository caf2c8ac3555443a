"""The data of a page, as plain values and one array of bytes: meshes, motions, sliders, the first view."""

from __future__ import annotations

import base64
import math
import zlib
from collections.abc import Sequence
from typing import Any

import numpy as np

import linkwise as lw

from ..coordinates import ANGLE, LENGTH, QUATERNION, reach_of
from ..drawing import Trail, enclose, trail_points
from ..framing import FAR, MOMENTS, beside
from ..labels import MOST_NAMES
from ..scene import COLLISION, GROUND, SYMBOL, Part, Scene, rgba
from ..shapes import Mesh, Plane, tubes
from ..skeleton import Skeleton, together
from ..style import BLACK, VERMILLION
from ..views import view_of
from .motions import Frames, Shown, quaternions

FINEST = 1e-7  # radians and metres: motions are rounded to steps of this, but for very large coordinates
MOST_STEPS = 2**28  # of such steps that a coordinate, and the differences of its differences, may have
MOST_TRIANGLES = 12_000  # of one mesh
ELEVATION = math.radians(20.0)
LINES, MOST_LINES = 10, 60  # of the grid, to either side
GUIDES = (GROUND, SYMBOL)  # which may go on beyond the picture
MOST_POINTS = 721  # of a trail
SAME_PLACE = 1e-3  # of its size: what is as near has one label
TRAIL = 0.12  # radius, in units of the size of symbols
UNITS = {ANGLE: "rad", LENGTH: "m"}


class Bytes:
    """Arrays in sequence, each at a multiple of four bytes."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def add(self, array: np.ndarray) -> int:
        """Append an array; its offset in bytes."""
        start, data = self._size, np.ascontiguousarray(array).tobytes()
        self._parts.append(data + bytes(-len(data) % 4))
        self._size += len(self._parts[-1])
        return start

    @property
    def packed(self) -> str:
        return base64.b64encode(zlib.compress(b"".join(self._parts), 9)).decode()


def contents(shown: Shown, seen: Scene, title: str, trail: Trail = None, labels: bool | None = None) -> dict[str, Any]:
    """Everything that the page's script reads."""
    mech, data = shown.mech, Bytes()
    movable = [body for body in mech.bodies if not body.mimic]
    chosen = [part for part in seen.shown if len(part.shape.mesh().faces)]
    chosen = [part for part in chosen if part.kind != COLLISION] or chosen  # shapes that touch only if alone
    parts, meshes = _parts(chosen, seen.link_names, data)
    struts = []
    for strut in seen.struts:
        meshes.append(_mesh(strut.shape, data))
        ends = [{"link": link, "point": _rounded(point)} for link, point in strut.ends]
        entry = {"name": strut.name, "ends": ends, "length": _rounded(strut.length), "mesh": len(meshes) - 1}
        struts.append({**entry, "colour": _rounded(rgba(BLACK), 3)})
    trails: list[np.ndarray] = []  # (m, 3) each
    if trail is not None:
        if shown.motion is None:
            raise ValueError("trail is the path of a point in a motion: give a trajectory, configurations or a range")
        count = shown.motion.q.shape[1]
        times = np.linspace(0, count - 1, min(count, MOST_POINTS)).astype(int)
        trails = [trail_points(shown.mech, q[times], trail) for q in shown.motion.q]
    box, travelled = _boxes(shown, seen, chosen)
    if trails and box is travelled:
        box = travelled = enclose(box, np.concatenate(trails))
    view = view_of(mech, shown.q, "auto", box)
    level = view.flat and not _has_floor(seen, view.up)
    toward = view.toward if level else np.cos(ELEVATION) * view.toward + np.sin(ELEVATION) * view.up
    drawn_trails: list[Any] = []
    for points in trails:  # as thin tubes; None for points that stand still
        tube = tubes(np.stack([points[:-1], points[1:]], axis=1), TRAIL * seen.pin)
        if moves := bool(len(tube.faces)):
            meshes.append(_mesh(tube, data))
        entry = {"mesh": len(meshes) - 1, "colour": _rounded(rgba(VERMILLION), 3)}
        drawn_trails.append(entry if moves else None)
    count = 1 if shown.motion is None else len(shown.motion.q)
    aside, upright = (view.up, -view.toward) if level else (view.toward, view.up)  # rows are below, or behind
    offsets = beside(count, math.ceil(math.sqrt(count)), box[1] - box[0], aside, upright)
    extent = np.array([(box[:, None] + offsets).reshape(-1, 3).min(0), (box[:, None] + offsets).reshape(-1, 3).max(0)])
    return {
        "title": title,
        "note": shown.note,
        "links": list(seen.link_names),
        "parts": parts,
        "meshes": meshes,
        "struts": struts,
        "labels": _labels(shown, view.flat if labels is None else labels, most=None if labels else MOST_NAMES),
        "trails": drawn_trails,
        "coordinates": list(mech.coordinates.names("q")),
        "units": [UNITS.get(number.of, "") for body in movable for number in body.kind.measures("q")],
        "quaternions": quaternions(mech),
        "sliders": [] if mech.constraints.holonomic_rows.any() or shown.motion else _sliders(mech, shown.q, seen.size),
        "q": _rounded(shown.q, 17),
        "box": _rounded(extent),
        "follow": box is not travelled,
        "base": _base(mech),
        "places": _rounded(offsets),
        "up": _rounded(view.up),
        "toward": _rounded(toward),
        "grid": _grid(extent, np.array([extent, travelled]).reshape(4, 3), view.toward if level else view.up),
        "motion": None if shown.motion is None else _motion(shown.motion, data),
        "bytes": data.packed,
    }


# -- shapes -----------------------------------------------------------------------------------------------


def _parts(
    chosen: Sequence[Part], links: Sequence[str], data: Bytes
) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Parts, and the meshes that they are made of, each once."""
    number = {GROUND: -1} | {name: k for k, name in enumerate(links)}
    known: dict[bytes, int] = {}
    meshes: list[dict[str, Any]] = []
    parts = []
    for part in chosen:
        mesh = simplified(part.shape.mesh())
        key = mesh.vertices.tobytes() + mesh.faces.tobytes()
        if key not in known:
            known[key] = len(meshes)
            meshes.append(_mesh(mesh, data))
        parts.append(
            {
                "link": number[part.link],
                "pose": _rounded(part.pose[:3].ravel()),
                "mesh": known[key],
                "colour": _rounded(part.colour, 3),
            }
        )
    return parts, meshes


def _mesh(mesh: Mesh, data: Bytes) -> dict[str, Any]:
    """A mesh with corners as whole numbers of steps from the lowest one, at most 2^16 along each axis."""
    low, high = mesh.vertices.min(axis=0), mesh.vertices.max(axis=0)
    step = np.maximum(high - low, 1e-12) / 65535.0
    wide = len(mesh.vertices) > 65535
    return {
        "count": len(mesh.vertices),
        "triangles": len(mesh.faces),
        "wide": wide,
        "low": _rounded(low),
        "step": _rounded(step),
        "vertices": data.add(np.round((mesh.vertices - low) / step).astype("<u2")),
        "faces": data.add(mesh.faces.astype("<u4" if wide else "<u2")),
    }


def simplified(mesh: Mesh, most: int = MOST_TRIANGLES) -> Mesh:
    """A mesh of at most ``most`` triangles: corners within one cell of the finest possible grid are merged."""
    if len(mesh.faces) <= most:
        return mesh
    low, size = mesh.vertices.min(axis=0), float(np.ptp(mesh.vertices, axis=0).max())
    cells = 2.0 * math.sqrt(most)
    while True:
        cell = np.floor((mesh.vertices - low) / (size / cells)).astype(np.int64)
        _, first, inverse = np.unique(cell, axis=0, return_index=True, return_inverse=True)
        faces = inverse.reshape(-1)[mesh.faces]
        proper = (faces[:, 0] != faces[:, 1]) & (faces[:, 1] != faces[:, 2]) & (faces[:, 2] != faces[:, 0])
        faces = faces[proper]
        if len(faces) <= most:
            counts = np.bincount(inverse.reshape(-1), minlength=len(first))[:, None]
            sums = np.stack([np.bincount(inverse.reshape(-1), x, len(first)) for x in mesh.vertices.T], axis=1)
            return Mesh(sums / counts, faces)
        cells *= 0.8


def _labels(shown: Shown, labelled: bool, most: int | None) -> list[dict[str, Any]]:
    """Names and positions of joints, loops and named points of a single mechanism; empty if more than ``most``."""
    if not labelled or (shown.motion is not None and len(shown.motion.q) > 1):
        return []
    marks = Skeleton(shown.mech).at(shown.q)
    size = max(float(np.linalg.norm(np.ptp(marks.own_points, axis=0))), 1e-9)
    poses = np.concatenate([marks.poses, np.eye(4)[None]])  # the last one is that of the ground, -1
    named = together([label for label in marks.labels if label[1] is not None], SAME_PLACE * size)
    if most is not None and len(named) > most:
        return []
    return [
        {"name": name, "link": link, "point": _rounded(np.linalg.solve(poses[link], [*position, 1.0])[:3])}
        for name, link, position in named
    ]


# -- view ---------------------------------------------------------------------------------------------


def _boxes(shown: Shown, seen: Scene, parts: Sequence[Part]) -> tuple[np.ndarray, np.ndarray]:
    """(2, 3) each: boxes around the first configuration, and around a few moments of the motion.

    Both are one object, except for mechanisms that travel far, which are followed.
    """
    limited = [part for part in parts if not isinstance(part.shape, Plane) and (part.link, part.kind) != GUIDES]
    limited = limited or [part for part in parts if not isinstance(part.shape, Plane)]

    def box(q: np.ndarray) -> np.ndarray:
        points = seen.corners(lw.link_poses(shown.mech, q), limited)
        return np.array([points.min(axis=0), points.max(axis=0)])

    first = box(shown.q)
    if shown.motion is None:
        return first, first
    frames = shown.motion.q.reshape(-1, shown.mech.nq)
    everywhere = box(frames[np.linspace(0, len(frames) - 1, MOMENTS).astype(int)])
    far = np.linalg.norm(everywhere[1] - everywhere[0]) > FAR * np.linalg.norm(first[1] - first[0])
    return (first if far and _travels(shown.mech) else everywhere), everywhere


def _has_floor(seen: Scene, up: np.ndarray) -> bool:
    """Whether a plane of the ground faces upwards; an edge-on plane would not show the ground."""
    planes = [part for part in seen.parts if isinstance(part.shape, Plane) and part.link == GROUND]
    return any(part.pose[:3, 2] @ up > 0.5 for part in planes)


def _base(mech: lw.Mechanism) -> int:
    """The first link from the ground with mass, branches or nothing beyond it.

    Links before it only compose its joint of several, such as the slides along x and z of planar walkers.
    """
    on_ground = [i for i, body in enumerate(mech.bodies) if body.parent < 0]
    link = on_ground[0]
    while len(on_ground) == 1 and not mech.bodies[link].mass:
        beyond = [i for i, body in enumerate(mech.bodies) if body.parent == link]
        if len(beyond) != 1:
            break
        link = beyond[0]
    return link


def _travels(mech: lw.Mechanism) -> bool:
    """Whether its base may go anywhere: by a free or planar joint, or along slides without ends."""
    link, endless = _base(mech), False
    while link >= 0:
        body = mech.bodies[link]
        slides = body.kind.slide is not None and math.isinf(body.limits.upper[0] - body.limits.lower[0])
        roams = body.kind.is_free or sum(not step.turns for step in body.kind.steps) > 1
        endless, link = endless or slides or roams, body.parent
    return endless


def _grid(box: np.ndarray, reached: np.ndarray, up: np.ndarray) -> dict[str, Any]:
    """A grid through the origin and square to ``up``, as far as motions go.

    Returns its middle, two sides of a cell (1, 2 or 5 times a power of ten), and half the number of cells.
    """
    extent = float(np.ptp(reached, axis=0).max())
    size = max(float(np.linalg.norm(box[1] - box[0])) / 8.0, extent / (2.0 * (MOST_LINES - LINES)), 1e-9)
    power = 10.0 ** math.floor(math.log10(size))
    step = power * next((x for x in (1.0, 2.0, 5.0) if x * power >= size), 10.0)
    count = LINES + math.ceil(0.5 * extent / step)
    first = np.eye(3)[int(np.argmin(np.abs(up)))]
    first = first - up * (first @ up)
    first /= np.linalg.norm(first)
    second = np.cross(up, first)
    middle = np.round(0.5 * (reached.min(axis=0) + reached.max(axis=0)) / step) * step
    middle = first * (middle @ first) + second * (middle @ second)
    return {"middle": _rounded(middle), "ways": _rounded([step * first, step * second]), "count": count}


# -- motions ----------------------------------------------------------------------------------------------


def _motion(motion: Frames, data: Bytes) -> dict[str, Any]:
    """Coordinates as whole numbers of steps.

    Second differences of smooth motions are small: their upper bytes, side by side, compress well.
    """
    series = np.swapaxes(motion.q, 1, 2).reshape(-1, motion.q.shape[1])  # (members * nq, frames)
    largest = np.abs(series).max(axis=1, initial=0.0)
    steps = np.maximum(FINEST, largest / MOST_STEPS)
    counts = np.round(series / steps[:, None]).astype(np.int64)
    bends = np.diff(counts, n=2, axis=1, prepend=np.zeros((len(counts), 2), dtype=np.int64)).astype("<i4")
    planes = bends.reshape(-1, 1).view(np.uint8).T  # (4, numbers)
    return {
        "frames": series.shape[1],
        "columns": motion.q.shape[2],
        "members": motion.q.shape[0],
        "start": motion.start,
        "end": motion.end,
        "label": motion.label,
        "unit": motion.unit,
        "steps": _rounded(steps, 17),
        "offset": data.add(planes),
    }


def _sliders(mech: lw.Mechanism, q: np.ndarray, size: float) -> list[dict[str, Any]]:
    """One for each coordinate of a joint; three, about the axes of the link, for a joint that rotates freely."""
    sliders: list[dict[str, Any]] = []
    for body in mech.bodies:
        if body.mimic:
            continue
        start = mech.q_index(body.joint).start
        numbers = body.kind.measures("q")
        for k, number in enumerate(numbers):
            name = f"{body.joint} {number.name}".strip()
            if number.of != QUATERNION:
                lower, upper = reach_of(mech, start + k, number.of, q[start + k], size)
                sliders.append(_slider(name, UNITS.get(number.of, ""), start + k, lower, upper, q[start + k]))
            elif k == 0 or numbers[k - 1].of != QUATERNION:
                quaternion = q[start + k : start + k + 4]
                w, *xyz = (quaternion if quaternion[0] >= 0.0 else -quaternion).tolist()
                sine = math.sqrt(sum(x * x for x in xyz))
                share = 2.0 * math.atan2(sine, w) / sine if sine > 1e-12 else 2.0
                for axis, turn in enumerate(share * x for x in xyz):
                    slider = _slider(f"{body.joint} about {'xyz'[axis]}", "rad", start + k, -math.pi, math.pi, turn)
                    sliders.append({**slider, "axis": axis})
    return sliders


def _slider(name: str, unit: str, q: int, lower: float, upper: float, value: float) -> dict[str, Any]:
    return {"name": name, "unit": unit, "q": q, "lower": float(lower), "upper": float(upper), "value": float(value)}


def _rounded(values: Any, digits: int = 9) -> Any:
    """Nested lists of numbers with few digits."""
    if np.ndim(values):
        return [_rounded(value, digits) for value in values]
    return float(f"{float(values):.{digits}g}")
