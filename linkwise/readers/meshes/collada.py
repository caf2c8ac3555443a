"""COLLADA: triangles and polygons of all instances in the scene, with the diffuse colours of their materials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np

from linkwise.readers.meshes.surface import Surface, surface
from linkwise.readers.protocol import MAX_DEPTH, Element, parse_xml

_POLYGONS = ("triangles", "polylist", "polygons", "tristrips", "trifans")
_SHADING = ("phong", "lambert", "blinn", "constant")


def from_collada(path: Path) -> Iterator[Surface]:
    """What a file shows, a surface per instance and material."""
    root = parse_xml(path.read_bytes(), str(path))
    if root.tag != "COLLADA":
        raise root.error(f"a COLLADA file starts with <COLLADA>, not <{root.tag}>")
    return _Document(root).surfaces()


def _within(element: Element, depth: int = 0) -> Iterator[Element]:
    """The element and all inside it."""
    yield element
    if depth < MAX_DEPTH:
        for child in element.children:
            yield from _within(child, depth + 1)


def _floats(element: Element) -> np.ndarray:
    return np.array(element.content.split(), dtype=float)


def _whole(element: Element) -> np.ndarray:
    return np.array(element.content.split(), dtype=np.int64)


class _Document:
    def __init__(self, root: Element) -> None:
        self._root = root
        self._named = {one.attributes["id"]: one for one in _within(root) if "id" in one.attributes}
        asset = root.first("asset")
        unit = None if asset is None else asset.first("unit")
        self._unit = 1.0 if unit is None else unit.number("meter", 1.0)

    def _at(self, reference: str) -> Element | None:
        return self._named.get(reference.removeprefix("#"))

    def surfaces(self) -> Iterator[Surface]:
        whole = np.diag([self._unit] * 3 + [1.0])
        scene = self._root.first("scene")
        shown = None if scene is None else scene.first("instance_visual_scene")
        chosen = None if shown is None else self._at(shown.attributes.get("url", ""))
        if chosen is not None:
            yield from self._node(chosen, whole, 0)
            return
        for library in self._root.all("library_geometries"):
            for geometry in library.all("geometry"):
                yield from self._geometry(geometry, whole, {})

    def _node(self, node: Element, around: np.ndarray, depth: int) -> Iterator[Surface]:
        if depth > MAX_DEPTH:
            raise node.error(f"nodes are nested more than {MAX_DEPTH} deep")
        here = around
        for child in node.children:
            if child.tag in _TRANSFORMS:
                here = here @ _TRANSFORMS[child.tag](_floats(child))
        for child in node.children:
            target = self._at(child.attributes.get("url", ""))
            if child.tag == "node":
                yield from self._node(child, here, depth + 1)
            elif child.tag == "instance_node" and target is not None:
                yield from self._node(target, here, depth + 1)
            elif child.tag == "instance_geometry" and target is not None:
                yield from self._geometry(target, here, self._bound(child))
            elif child.tag == "instance_controller" and target is not None:
                skin = target.first("skin")
                geometry = None if skin is None else self._at(skin.attributes.get("source", ""))
                if geometry is not None:
                    yield from self._geometry(geometry, here, self._bound(child))

    def _bound(self, instance: Element) -> dict[str, str]:
        """Symbol of a material -> the material."""
        bound = (one for one in _within(instance) if one.tag == "instance_material")
        return {one.attributes.get("symbol", ""): one.attributes.get("target", "") for one in bound}

    def _geometry(self, geometry: Element, here: np.ndarray, bound: dict[str, str]) -> Iterator[Surface]:
        mesh = geometry.first("mesh")
        for part in () if mesh is None else (one for one in mesh.children if one.tag in _POLYGONS):
            material = part.attributes.get("material", "")
            vertices, faces = self._triangles(part)
            if len(faces):
                moved = vertices @ here[:3, :3].T + here[:3, 3]
                outwards = faces[:, ::-1] if np.linalg.det(here[:3, :3]) < 0.0 else faces
                yield surface(moved, outwards, self._colour(bound.get(material, material)))

    def _triangles(self, part: Element) -> tuple[np.ndarray, np.ndarray]:
        inputs = list(part.all("input"))
        stride = 1 + max((int(one.number("offset", 0.0)) for one in inputs), default=0)
        vertex = next((one for one in inputs if one.attributes.get("semantic") == "VERTEX"), None)
        if vertex is None:
            raise part.error(f"{part.label} has no <input> with the vertices")
        offset = int(vertex.number("offset", 0.0))
        lists = [_whole(one)[offset::stride] for one in part.all("p")]
        if part.tag == "polylist":
            return self._positions(vertex), _of_polygons(np.concatenate(lists), _whole(part.required("vcount")))
        return self._positions(vertex), _faces(part.tag, lists)

    def _positions(self, vertex: Element) -> np.ndarray:
        """(n, 3)"""
        holder = self._at(vertex.text("source"))
        if holder is not None and holder.tag == "vertices":
            inputs = (one for one in holder.all("input") if one.attributes.get("semantic") == "POSITION")
            holder = next((self._at(one.text("source")) for one in inputs), None)
        if holder is None:
            raise vertex.error(f"{vertex.label}: its vertices are not in the file")
        numbers = _floats(holder.required("float_array"))
        accessor = next((one for one in _within(holder) if one.tag == "accessor"), None)
        stride = 3 if accessor is None else int(accessor.number("stride", 3.0))
        return numbers[: len(numbers) // stride * stride].reshape(-1, stride)[:, :3]

    def _colour(self, material: str) -> tuple[float, ...] | None:
        found = self._at(material)
        instance = None if found is None else found.first("instance_effect")
        effect = None if instance is None else self._at(instance.attributes.get("url", ""))
        for shading in () if effect is None else (one for one in _within(effect) if one.tag in _SHADING):
            for channel in ("diffuse", "emission"):
                given = shading.first(channel)
                colour = None if given is None else given.first("color")
                if colour is not None and (channel == "diffuse" or _floats(colour)[:3].any()):
                    return (*np.clip(_floats(colour)[:3], 0.0, 1.0).tolist(), 1.0)
        return None


def _faces(kind: str, lists: list[np.ndarray]) -> np.ndarray:
    """(m, 3): the triangles of polygons, strips or fans; polygons are taken to be convex."""
    if kind == "triangles":
        return np.concatenate([one[: len(one) // 3 * 3] for one in lists] or [np.zeros(0, dtype=int)]).reshape(-1, 3)
    if kind == "tristrips":
        found = [one[i : i + 3][:: 1 - 2 * (i % 2)] for one in lists for i in range(len(one) - 2)]
    else:
        found = [one[[0, i, i + 1]] for one in lists for i in range(1, len(one) - 1)]
    return np.array(found, dtype=int).reshape(-1, 3)


def _of_polygons(corners: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """(m, 3): the triangles of polygons that have ``counts`` corners one after the other."""
    starts = np.cumsum(counts) - counts
    found = [np.zeros((0, 3), dtype=int)]
    for count in np.unique(counts):
        polygons = corners[starts[counts == count, None] + np.arange(count)]
        found += [polygons[:, [0, i, i + 1]] for i in range(1, count - 1)]
    return np.concatenate(found)


def _translation(numbers: np.ndarray) -> np.ndarray:
    moved = np.eye(4)
    moved[:3, 3] = numbers
    return moved


def _rotation(numbers: np.ndarray) -> np.ndarray:
    from scipy.spatial.transform import Rotation

    rotated, axis = np.eye(4), numbers[:3]
    length = np.linalg.norm(axis)
    if length:
        rotated[:3, :3] = Rotation.from_rotvec(np.radians(numbers[3]) * axis / length).as_matrix()
    return rotated


_TRANSFORMS = {
    "matrix": lambda numbers: numbers.reshape(4, 4),
    "translate": _translation,
    "rotate": _rotation,
    "scale": lambda numbers: np.diag([*numbers, 1.0]),
}
