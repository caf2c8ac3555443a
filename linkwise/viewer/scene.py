"""The visuals of a mechanism as plain data: shapes fixed to links.  Neither a browser nor matplotlib here.

Links have the visuals of their file.  Links whose meshes are missing, and mechanisms without visuals, are drawn as a
skeleton with the symbols of their joints.
"""

from __future__ import annotations

import itertools
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

import linkwise as lw

from .elements import Strut, elements_between
from .shapes import ENDLESS, AnyShape, Capsule, Mesh, Plane, Solid, Sphere, axis_frame, fan, join, shape_of, tubes
from .skeleton import JointMark, LinkShape, Skeleton, attachment, closing_joints, matrix, pose_of, symbol_size, travel
from .style import COLOURS, GREY, VERMILLION
from .symbols import POINT, symbol

GROUND = "ground"
PLANE = "plane"  # the kind of a shape
VISUAL, COLLISION, SKELETON, SYMBOL = KINDS = ("visual", "collision", "skeleton", "symbol")
PLAIN = (0.72, 0.73, 0.76, 1.0)  # of what has no colour
TOUCHING = (0.34, 0.71, 0.91, 0.45)  # of what touches and has no colour
BAR, GUIDE, THIN = 0.35, 0.25, 0.1  # radii, in units of the size of symbols


@dataclass(frozen=True, eq=False)
class Part:
    """A visible shape fixed to a link.

    name     unique in its scene
    link     a moving link, or "ground"
    pose     (4, 4) in the frame of the link
    shape    Box, Sphere, Cylinder, Capsule, Ellipsoid, Plane or Mesh; ``shape.mesh()`` has the triangles of any
    colour   red, green, blue, opacity, from 0 to 1
    kind     "visual", "collision", "skeleton" or "symbol"
    """

    name: str
    link: str
    pose: np.ndarray
    shape: AnyShape
    colour: tuple[float, float, float, float]
    kind: str


@dataclass(frozen=True, eq=False)
class Scene:
    """The visuals of a mechanism.

    name        of the mechanism
    link_names  moving links, in the order of ``lw.link_poses``
    parts       all visible shapes
    missing     files of meshes that do not exist or cannot be read
    incomplete  links with missing meshes
    size        metres: the diagonal of the box around the skeleton
    struts      rods without mass, springs, dampers and cylinders between links
    pin         metres: the size of symbols of joints
    """

    name: str
    link_names: tuple[str, ...]
    parts: tuple[Part, ...]
    missing: tuple[str, ...] = ()
    incomplete: frozenset[str] = frozenset()
    size: float = 1.0
    struts: tuple[Strut, ...] = ()
    pin: float = 0.02

    def of_kind(self, *kinds: str) -> tuple[Part, ...]:
        """Parts of one kind, or of several."""
        return tuple(part for part in self.parts if part.kind in kinds)

    @cached_property
    def shown(self) -> tuple[Part, ...]:
        """Parts shown by default: visuals of the file, and the skeleton of links whose meshes are missing; all parts
        where the file has no visuals."""
        visual = self.of_kind(VISUAL)
        if not visual:
            return self.parts
        return tuple(
            part
            for part in self.parts
            if part.kind == VISUAL or (part.kind in (SKELETON, SYMBOL) and part.link in self.incomplete)
        )

    def placed(self, poses: np.ndarray, parts: Sequence[Part] | None = None) -> np.ndarray:
        """(..., n_parts, 4, 4): poses of parts in the world, from those of links (..., n_links, 4, 4)."""
        chosen = self.parts if parts is None else parts
        ground = np.broadcast_to(np.eye(4), (*np.shape(poses)[:-3], 1, 4, 4))
        world = np.concatenate([poses, ground], axis=-3)
        number = {name: index for index, name in enumerate(self.link_names)} | {GROUND: len(self.link_names)}
        links = [number[part.link] for part in chosen]
        return world[..., links, :, :] @ np.reshape([part.pose for part in chosen], (-1, 4, 4))

    def corners(self, poses: np.ndarray, parts: Sequence[Part]) -> np.ndarray:
        """(n, 3): in the world, those of the boxes around parts in their own frames, for poses (..., n_links, 4, 4)."""
        ends = [part.shape.mesh().vertices for part in parts]
        boxes = np.reshape([[point.min(axis=0), point.max(axis=0)] for point in ends], (-1, 2, 3))
        corners = np.stack([boxes[:, [i, j, k], [0, 1, 2]] for i in (0, 1) for j in (0, 1) for k in (0, 1)], axis=-1)
        placed = self.placed(poses, parts)
        world = placed[..., :3, :3] @ corners + placed[..., :3, 3:]
        return np.swapaxes(world, -1, -2).reshape(-1, 3)


def scene(
    mech: lw.Mechanism,
    meshes: bool = True,
    passive: lw.forces.Passive | None = None,
    springs: bool = False,
    moments: np.ndarray | None = None,
) -> Scene:
    """The visuals of a mechanism.

    meshes    read them; otherwise their links are drawn as a skeleton.  One warning names missing files
    passive   springs, dampers and cylinders between links that are shown too
    springs   show springs at joints, and gears
    moments   (m, nq): configurations up to which slots that close loops reach; by default slots have a usual length
    """
    return _Maker(mech, meshes, passive, springs, moments).scene()


class _Maker:
    """Collects the parts of a scene."""

    def __init__(
        self,
        mech: lw.Mechanism,
        reads: bool,
        passive: lw.forces.Passive | None,
        springs: bool,
        moments: np.ndarray | None,
    ) -> None:
        self._mech, self._reads, self._passive, self._springs = mech, reads, passive, springs
        self._moments = moments
        self._parts: list[Part] = []
        self._names: set[str] = set()
        self._surfaces: dict[Any, tuple[tuple[Mesh, tuple[float, ...] | None], ...]] = {}
        self._missing: dict[str, str] = {}
        self._incomplete: set[str] = set()

    def scene(self) -> Scene:
        size, pin = 1.0, 0.02
        between: tuple[Strut, ...] = ()
        for look in self._mech.metadata.looks:
            self._add_look(look)
        for shape in self._mech.shapes:
            solid = shape_of(shape.kind, shape.size)
            self._add(shape.name, shape.link, matrix(*shape.pose), solid, TOUCHING, COLLISION)
        if self._mech.n_links:
            skeleton = Skeleton(self._mech)
            sketch = skeleton.at(self._mech.initial)
            box = np.array([sketch.own_points.min(axis=0), sketch.own_points.max(axis=0)])
            size, pin = float(np.linalg.norm(box[1] - box[0])) or size, symbol_size(sketch, box)
            for index, link in enumerate(skeleton.shapes):
                self._add_skeleton(index, link, pin)
                for name, point in skeleton.named[index].items():
                    dot = Sphere(POINT * pin)
                    colour = rgba(COLOURS[index % len(COLOURS)])
                    self._add(name, self._mech.link_names[index], matrix(np.eye(3), point), dot, colour, SKELETON)
            self._add_symbols(pin, size)
            marks = skeleton.elements(sketch.poses, sketch.joints, self._passive)
            marks = tuple(mark for mark in marks if self._springs or not mark.of_joints)
            fixtures, between = elements_between(marks, sketch.poses, pin)
            for fixture in fixtures:
                self._add(fixture.name, self._link(fixture.link), np.eye(4), fixture.shape, rgba(GREY), SYMBOL)
            self._widen_floors(size)
        if self._missing:
            files = "; ".join(file if why == "not found" else f"{file} ({why})" for file, why in self._missing.items())
            warnings.warn(
                f"{self._mech.name}: {len(self._missing)} mesh{'es' * (len(self._missing) > 1)} cannot be drawn, their "
                f"links are seen as a skeleton: {files}; meshes of package:// are looked for in the folders around the "
                "file and in ROS_PACKAGE_PATH",
                lw.MechanismWarning,
                stacklevel=3,
            )
        content = tuple(self._parts), tuple(self._missing), frozenset(self._incomplete)
        return Scene(self._mech.name, self._mech.link_names, *content, size, between, pin)

    def _link(self, index: int) -> str:
        """The name of a link by its index; -1 is the ground."""
        return GROUND if index < 0 else self._mech.link_names[index]

    def _add(
        self, name: str, frame: str, pose: np.ndarray, shape: AnyShape, colour: Sequence[float], kind: str
    ) -> None:
        """Add a part at a pose in a frame, fixed to the link of the frame."""
        holder = self._mech.frame(frame)
        link = self._link(holder.body)
        name = f"{kind}/{link}/{name}"
        numbered = (f"{name}_{number}" for number in itertools.count(2))
        name = next(unique for unique in itertools.chain([name], numbered) if unique not in self._names)
        self._names.add(name)
        red, green, blue, opacity = colour
        self._parts.append(Part(name, link, pose_of(holder) @ pose, shape, (red, green, blue, opacity), kind))

    # -- visuals of the file --------------------------------------------------------------------------

    def _add_look(self, look: lw.files.Look) -> None:
        if look.link not in self._mech.frames:
            return
        kind, plain = (COLLISION, TOUCHING) if look.collision else (VISUAL, PLAIN)
        pose = np.vstack([np.reshape(look.pose, (3, 4)), (0.0, 0.0, 0.0, 1.0)])
        if look.kind != "mesh":
            self._add(look.name, look.link, pose, shape_of(look.kind, look.size), look.colour or plain, kind)
            return
        path = look.path if look.file else None
        key = (look.file if path is None else path, look.shaping, look.corners)
        if key not in self._surfaces:  # shared by looks of one mesh
            self._surfaces[key] = tuple(self._read(look, path)) if self._reads else ()
        if (look.file in self._missing or not self._reads) and not look.collision:
            self._incomplete.add(self._link(self._mech.frame(look.link).body))
        for mesh, painted in self._surfaces[key]:
            colour = look.colour or (not look.collision and painted) or plain
            self._add(look.name, look.link, pose, mesh, colour, kind)

    def _read(self, look: lw.files.Look, path: Any) -> Iterator[tuple[Mesh, tuple[float, ...] | None]]:
        """The surfaces of a mesh with their colours."""
        shaping = np.reshape(look.shaping, (3, 4))
        inside_out = np.linalg.det(shaping[:, :3]) < 0.0
        surfaces: list[tuple[Any, Any, Any]] = []
        if not look.file:
            vertices, faces = (np.reshape(numbers, (-1, 3)) for numbers in look.corners)
            if len(faces) == 0:  # the convex hull, its triangles facing outwards
                hull = ConvexHull(vertices)
                corners = vertices[hull.simplices]
                normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
                inwards = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
                faces = np.where(inwards[:, None], hull.simplices[:, ::-1], hull.simplices)
            surfaces = [(vertices, faces.astype(int), None)]
        elif path is None:
            self._missing[look.file] = "not found"
        else:
            try:
                surfaces = [(surface.vertices, surface.faces, surface.colour) for surface in lw.files.load_mesh(path)]
            except (lw.MechanismError, OSError) as error:
                self._missing[look.file] = str(error)
        for vertices, faces, colour in surfaces:
            moved = (vertices @ shaping[:, :3].T + shaping[:, 3]).astype(np.float32)
            yield Mesh(moved, np.ascontiguousarray(faces[:, ::-1] if inside_out else faces)), colour

    # -- the skeleton ---------------------------------------------------------------------------------

    def _add_skeleton(self, index: int, shape: LinkShape, pin: float) -> None:
        link, colour = self._mech.link_names[index], rgba(COLOURS[index % len(COLOURS)])
        for start, end in shape.bars:
            length = float(np.linalg.norm(end - start))
            if length > 0.0:
                pose = matrix(axis_frame((end - start) / length), 0.5 * (start + end))
                self._add("bar", link, pose, Capsule(BAR * pin, 0.5 * length), colour, SKELETON)
        if len(shape.plate):
            plate = Mesh(shape.plate, fan(len(shape.plate)))
            self._add("plate", link, np.eye(4), plate, (*colour[:3], 0.5), SKELETON)
            rim = np.stack([shape.plate, np.roll(shape.plate, -1, axis=0)], axis=1)
            self._add("rim", link, np.eye(4), tubes(rim, BAR * pin), colour, SKELETON)
        if len(shape.thin):
            self._add("line", link, np.eye(4), tubes(shape.thin, THIN * pin), rgba(GREY), SKELETON)

    def _add_symbols(self, pin: float, size: float) -> None:
        """Symbols of joints, fixed to the moved link, and their guides, fixed to the carrier.

        Guides are as long as the limits; without limits, those on the ground have a usual length.
        """
        mech = self._mech
        for index, body in enumerate(mech.bodies):
            carrier = self._link(body.parent)
            limited = np.isfinite([*body.limits.lower, *body.limits.upper]).all()
            slides = travel(body, size, 2.0 * size) if limited or body.parent < 0 else None
            pose = pose_of(body)
            fixed = JointMark(body.joint, body.kind, body.parent, body.parent < 0, pose, pose, travel=slides)
            moving = JointMark(body.joint, body.kind, index, body.parent < 0, np.eye(4), np.eye(4))
            here, there = symbol(moving, pin), symbol(fixed, pin)
            self._add_solids(body.joint, body.link, here.solids[here.n_fixed :], here.colour)
            self._add_solids(body.joint, carrier, there.solids[: there.n_fixed], there.colour)
            self._add_lines(body.joint, body.link, here.threads, pin)
            self._add_lines(body.joint, carrier, there.rails, pin, GUIDE if slides else THIN)
        for loop in closing_joints(mech):
            slides = self._slides(loop, 0.5 * size)
            for side in "ab":
                holder, frame = attachment(mech, loop, side)
                link = self._link(holder)
                end = frame if side == "a" else frame.copy()  # the first side only shows its guide
                mark = JointMark(loop.name, loop.kind, holder, holder < 0, frame, end, closes_loop=True, travel=slides)
                drawn = symbol(mark, pin)
                self._add_solids(loop.name, link, drawn.solids, VERMILLION)
                self._add_lines(loop.name, link, drawn.rails if side == "a" else drawn.threads, pin)

    def _slides(self, loop: lw.constraints.Loop, usual: float) -> tuple[float, float] | None:
        """Ends of the travel of a joint that closes a loop, from the origin of its fixed side: those of the motion, or
        ``usual`` metres to either side.  None for joints that do not slide."""
        (a, frame_a), (b, frame_b) = (attachment(self._mech, loop, side) for side in "ab")
        kind: Any = loop.kind
        axis = kind.sliding_axis
        if axis is None:
            return None
        if self._moments is None:
            return -usual, usual
        poses = lw.link_poses(self._mech, self._moments)
        world = np.concatenate([poses, np.broadcast_to(np.eye(4), (len(poses), 1, 4, 4))], axis=1)
        fixed, moving = world[:, a] @ frame_a, world[:, b] @ frame_b
        way = np.einsum("mi,mij,j->m", moving[:, :3, 3] - fixed[:, :3, 3], fixed[:, :3, :3], axis)
        return float(way.min()), float(way.max())

    def _widen_floors(self, size: float) -> None:
        """Extend planes of the ground on which shapes stand as far as the mechanism goes: contact has no end there."""
        touched = (self._mech.contact.shape(name) for pair in self._mech.contact_pairs for name in pair.shapes)
        floors = [matrix(*floor.placed(self._mech)[1]) for floor in touched if floor.kind == PLANE]
        moments, more = self._mech.initial if self._moments is None else self._moments, 2.0 * size
        positions = lw.link_poses(self._mech, moments)[..., :3, 3].reshape(-1, 3)
        for k, part in enumerate(self._parts):
            if isinstance(part.shape, Plane) and part.link == GROUND and any(np.allclose(part.pose, x) for x in floors):
                below = ((positions - part.pose[:3, 3]) @ part.pose[:3, :3])[:, :2]
                half = np.array([side or ENDLESS for side in part.shape.half])
                low, high = np.minimum(below.min(axis=0) - more, -half), np.maximum(below.max(axis=0) + more, half)
                x, y = 0.5 * (high - low)
                pose = part.pose @ matrix(np.eye(3), np.array([*0.5 * (low + high), 0.0]))
                self._parts[k] = replace(part, pose=pose, shape=Plane((x, y)))

    def _add_solids(self, name: str, link: str, solids: Sequence[Solid], colour: str) -> None:
        if solids:
            self._add(name, link, np.eye(4), join(solid.mesh() for solid in solids), rgba(colour), SYMBOL)

    def _add_lines(
        self, name: str, link: str, lines: Sequence[np.ndarray], pin: float, thickness: float = THIN
    ) -> None:
        if lines:
            segments = np.concatenate([np.stack([line[:-1], line[1:]], axis=1) for line in lines])
            self._add(f"{name}_way", link, np.eye(4), tubes(segments, thickness * pin), rgba(GREY), SYMBOL)


def rgba(colour: str, opacity: float = 1.0) -> tuple[float, float, float, float]:
    """A colour "#rrggbb" as numbers from 0 to 1."""
    red, green, blue = (int(colour[i : i + 2], 16) / 255.0 for i in (1, 3, 5))
    return red, green, blue, opacity
