"""A scene on a page: parts under the frames of their links, lines, arrows and ellipsoids over them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

import numpy as np
from scipy.spatial.transform import Rotation

from ..scene import COLLISION, GROUND, SKELETON, SYMBOL, VISUAL, Part, Scene
from ..shapes import Mesh, Plane, Sphere, arrow_mesh, axis_frame

Colour = tuple[int, int, int]
GREY: Colour = (140, 140, 140)
BALL = Sphere(1.0).mesh()


class Stage:
    """The content of a page: ``n_actors`` copies of a scene, each at its own offset."""

    def __init__(self, server: Any, scene: Scene, up: np.ndarray) -> None:
        self._server, self.scene, self.up = server, scene, up
        self._kinds: set[str] = {part.kind for part in scene.shown}
        self._only_shown = {part.name for part in scene.shown}
        self._frames: list[dict[str, Any]] = []
        self._roots: list[Any] = []
        self._parts: list[list[tuple[Part, Any]]] = []
        self._overlays: dict[str, Any] = {}
        self._chosen = False
        self.on_drag: Callable[[int, str, Any], None] | None = None
        server.scene.set_up_direction(tuple(up))
        server.scene.add_light_ambient("/light", intensity=0.8)

    # -- mechanisms -----------------------------------------------------------------------------------

    @property
    def n_actors(self) -> int:
        return len(self._roots)

    def set_actors(self, offsets: np.ndarray) -> None:
        """One mechanism per offset (n, 3)."""
        for number in range(self.n_actors, len(offsets)):
            name, scene = f"/mechanism{number}", self._server.scene
            self._roots.append(scene.add_frame(name, show_axes=False))
            links = (*self.scene.link_names, GROUND)
            self._frames.append({link: scene.add_frame(f"{name}/{link}", show_axes=False) for link in links})
            self._parts.append([])
            for part in self.scene.parts:
                if part.name in self._only_shown:
                    self._add_part(number, part)
        for _ in range(len(offsets), self.n_actors):
            self._roots.pop().remove()
            self._frames.pop()
            self._parts.pop()
        for root, offset in zip(self._roots, offsets, strict=True):
            root.position = tuple(offset)

    def offset(self, number: int) -> np.ndarray:
        """(3,): position of one of the mechanisms."""
        return np.array(self._roots[number].position, dtype=float)

    def _add_part(self, number: int, part: Part) -> None:
        mesh = part.shape.mesh()
        handle = self._server.scene.add_mesh_simple(
            f"/mechanism{number}/{part.link}/{part.name}",
            np.asarray(mesh.vertices, dtype=np.float32),
            np.asarray(mesh.faces, dtype=np.uint32),
            color=tuple(round(255 * min(max(x, 0.0), 1.0)) for x in part.colour[:3]),
            opacity=part.colour[3] if part.colour[3] < 1.0 else None,
            flat_shading=isinstance(part.shape, Mesh) and part.kind in (VISUAL, COLLISION),
            side="double",
            cast_shadow=not isinstance(part.shape, Plane),
            receive_shadow=isinstance(part.shape, Plane),  # shadows of fine meshes on themselves are stripes
            wxyz=wxyz(part.pose[:3, :3]),
            position=part.pose[:3, 3],
        )
        self._parts[number].append((part, handle))
        if part.link != GROUND and self.on_drag is not None:

            @handle.on_drag("left")
            async def _(event: Any) -> None:
                if self.on_drag is not None:
                    self.on_drag(number, part.link, event)

    def show_kinds(self, kinds: Collection[str]) -> None:
        """Show only parts of these kinds."""
        self._only_shown = {part.name for part in self.scene.parts if part.kind in kinds}
        for number, parts in enumerate(self._parts):
            there = {part.name for part, _ in parts}
            for part, handle in parts:
                handle.visible = part.name in self._only_shown
            for part in self.scene.parts:
                if part.name in self._only_shown - there:
                    self._add_part(number, part)

    @property
    def kinds(self) -> tuple[str, ...]:
        """Kinds of the parts."""
        have = {part.kind for part in self.scene.parts}
        return tuple(kind for kind in (VISUAL, COLLISION, SKELETON, SYMBOL) if kind in have)

    def is_shown(self, kind: str) -> bool:
        """Whether parts of a kind are shown at first."""
        return kind in self._kinds

    def show_axes(self, shown: bool) -> None:
        """Show or hide the frames of links."""
        for frames in self._frames:
            for frame in frames.values():
                frame.axes_length, frame.axes_radius = 0.08 * self.scene.size, 0.003 * self.scene.size
                frame.origin_radius = 0.006 * self.scene.size
                frame.show_axes = shown

    def place(self, number: int, poses: np.ndarray) -> None:
        """Set the poses (n_links, 4, 4) of the links of one mechanism."""
        frames = self._frames[number]
        rotations = wxyz(poses[:, :3, :3])
        for link, pose, rotation in zip(self.scene.link_names, poses, rotations, strict=True):
            frames[link].wxyz, frames[link].position = rotation, pose[:3, 3]

    # -- overlays -------------------------------------------------------------------------------------

    def ground(self, height: float, reach: float) -> None:
        """Add a grid at a height, as far as mechanisms go, unless they have a floor."""
        if any(isinstance(part.shape, Plane) and part.link == GROUND for part in self.scene.shown):
            return
        cell = 10.0 ** np.floor(np.log10(max(self.scene.size, 1e-3)))
        side = cell * np.ceil(max(4.0 * self.scene.size, 2.0 * reach) / cell)
        self._server.scene.add_grid(
            "/grid",
            width=side,
            height=side,
            cell_size=cell / 2.0,
            section_size=cell,
            plane="xy",
            wxyz=wxyz(np.eye(3) if self.up[2] == 1.0 else axis_frame(self.up)),
            position=tuple(self.up * height),
            cell_color=(215, 215, 215),
            section_color=(170, 170, 170),
        )

    def lines(self, name: str, segments: np.ndarray | None, colour: Colour = GREY, thickness: float = 0.004) -> None:
        """Straight lines (m, 2, 3), or none."""
        self.remove(name)
        if segments is not None and len(segments):
            self._overlays[name] = self._server.scene.add_line_segments(
                f"/over/{name}", segments, np.array(colour), thickness=thickness * self.scene.size
            )

    def arrows(self, name: str, arrows: np.ndarray | None, colour: Colour = GREY) -> None:
        """Arrows (m, 2, 3), or none; those without length are left out."""
        if arrows is not None:
            lengths = np.linalg.norm(arrows[:, 1] - arrows[:, 0], axis=-1)
            arrows = arrows[lengths > 1e-4 * self.scene.size]
        drawn = arrow_mesh(arrows, 0.004 * self.scene.size) if arrows is not None and len(arrows) else None
        self.surface(name, drawn, colour)

    def surface(self, name: str, mesh: Mesh | None, colour: Colour = GREY) -> None:
        """Triangles in the world, or none; a mesh of as many faces is updated."""
        if mesh is None or not len(mesh.faces):
            self.remove(name)
            return
        known = self._overlays.get(name)
        if known is not None and known.faces.shape == mesh.faces.shape:
            known.vertices = mesh.vertices.astype(np.float32)
            return
        self.remove(name)
        self._overlays[name] = self._server.scene.add_mesh_simple(
            f"/over/{name}",
            mesh.vertices.astype(np.float32),
            mesh.faces.astype(np.uint32),
            color=colour,
            flat_shading=True,
            cast_shadow=False,
            receive_shadow=False,
        )

    def ellipsoid(
        self, name: str, shape: Any, colour: Colour, opacity: float = 0.4, link: str | None = None, number: int = 0
    ) -> None:
        """An ellipsoid in the world, or on a link; None removes it."""
        if shape is None:
            self.remove(name)
            return
        known = self._overlays.get(name)
        vertices = (BALL.vertices * shape.half).astype(np.float32)
        if known is not None:
            known.vertices, known.wxyz, known.position = vertices, wxyz(shape.rotation), shape.centre
            return
        where = "/over" if link is None else f"/mechanism{number}/{link}"
        self._overlays[name] = self._server.scene.add_mesh_simple(
            f"{where}/{name}",
            vertices,
            BALL.faces.astype(np.uint32),
            color=colour,
            opacity=opacity if opacity < 1.0 else None,
            wxyz=wxyz(shape.rotation),
            position=shape.centre,
            cast_shadow=False,
        )

    def remove(self, name: str) -> None:
        """Remove an overlay."""
        handle = self._overlays.pop(name, None)
        if handle is not None:
            handle.remove()

    def remove_all(self, prefix: str) -> None:
        """Remove overlays whose names begin with a prefix."""
        for name in [name for name in self._overlays if name.startswith(prefix)]:
            self.remove(name)


def wxyz(rotations: np.ndarray) -> np.ndarray:
    """(..., 4): unit quaternions of rotations (..., 3, 3)."""
    return np.roll(Rotation.from_matrix(rotations).as_quat(), 1, axis=-1)
