"""Meshes as triangles with colours; trimesh reads the files: pip install 'linkwise[meshes]'."""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from linkwise.mechanism import MechanismError
from linkwise.readers.protocol import MAX_BYTES, parse_xml, why_unread

__all__ = ["Surface", "load_mesh"]

SUFFIXES = (".stl", ".msh", ".obj", ".dae", ".ply", ".gltf", ".glb")
BESIDE = (".mtl", ".bin")  # files beside a mesh that are opened for it
MOST_ELEMENTS = MAX_BYTES // 4  # vertices, faces or numbers that a header may announce


class MissingMeshLibrary(ImportError, MechanismError):
    """trimesh, or a package it needs for a format, is not installed."""


def load_mesh(path: str | os.PathLike[str]) -> tuple[Surface, ...]:
    """The triangles of a mesh file, .stl, .obj, .ply, .dae, .gltf, .glb or .msh, as surfaces of one colour each.

    Lengths are metres if the file names its unit (COLLADA, glTF), and unchanged otherwise; the vertical axis of COLLADA
    files is ignored, as in ROS. Needs trimesh: ``pip install 'linkwise[meshes]'``.
    """
    file = Path(path)
    suffix = file.suffix.lower()
    if suffix not in SUFFIXES:
        raise MechanismError(f"{file}: meshes are read from {', '.join(SUFFIXES)} files")
    if not file.is_file():
        raise FileNotFoundError(why_unread(file))
    if file.stat().st_size > MAX_BYTES:
        raise MechanismError(f"{file} has more than {MAX_BYTES} bytes; reduce the number of its triangles")
    data = file.read_bytes()
    try:
        _check_counts(suffix, data)
        unit = _collada_unit(data, str(file)) if suffix == ".dae" else 1.0
        parts = [read_msh(data)] if suffix == ".msh" else _read_by_trimesh(file, data, unit)
        surfaces = tuple(part for part in (surface(*part) for part in parts) if len(part.faces))
    except (MechanismError, ImportError):
        raise
    except Exception as error:  # parsers of others meet any text: what they raise is not known
        raise MechanismError(f"{file} cannot be read as a mesh: {error}") from None
    if not surfaces:
        raise MechanismError(f"{file} cannot be read as a mesh: it has no triangles")
    return surfaces


def _read_by_trimesh(file: Path, data: bytes, unit: float) -> Iterator[tuple[Any, Any, Any]]:
    """Vertices, faces and colour of every instance of a geometry, in the order of their materials in the file."""
    trimesh = _library(file)

    class Beside(trimesh.resolvers.FilePathResolver):  # type: ignore[name-defined]
        """Opens plain files of bounded size in the mesh's folder; images are ignored."""

        def get(self, name: str) -> bytes:
            other = file.parent / name
            inside = other.resolve().is_relative_to(file.parent.resolve())
            if other.suffix.lower() not in BESIDE or not (inside and other.is_file()):
                raise FileNotFoundError(name)
            if other.stat().st_size > MAX_BYTES:
                raise MechanismError(f"{other} has more than {MAX_BYTES} bytes")
            return other.read_bytes()

    kind = file.suffix.lower()[1:]
    scene = trimesh.load_scene(io.BytesIO(data), file_type=kind, resolver=Beside(str(file)), process=False)
    placed = [scene.graph[node] for node in scene.graph.nodes_geometry]
    if kind == "obj":
        placed.sort(key=lambda part: data.find(f"usemtl {part[1]}".encode()))
    for pose, name in placed:
        mesh = scene.geometry[name]
        if hasattr(mesh, "faces"):
            faces = mesh.faces[:, ::-1] if np.linalg.det(pose[:3, :3]) < 0.0 else mesh.faces
            yield unit * (mesh.vertices @ pose[:3, :3].T + pose[:3, 3]), faces, _colour(mesh.visual)


def _library(file: Path) -> Any:
    try:
        import trimesh

        if file.suffix.lower() == ".dae":
            import collada  # noqa: F401
    except ImportError as error:
        raise MissingMeshLibrary(
            f"{file}: meshes are read by {error.name}, which is not installed: pip install 'linkwise[meshes]'"
        ) from None
    return trimesh


def _colour(visual: Any) -> tuple[float, ...] | None:
    """Red, green, blue and opacity of a trimesh visual; None if the file has none."""
    if visual is None or not visual.defined:
        return None
    material = getattr(visual, "material", None)
    colour = np.asarray(visual.main_color if material is None else material.main_color) / 255.0
    opacity = getattr(material, "kwargs", {}).get("d")  # of OBJ files
    return (*colour[:3].tolist(), float(opacity[0]) if opacity else float(colour[3]))


# -- what is checked before a file is read: nothing is cut off, and nothing in it makes it larger -----------------


def _check_counts(suffix: str, data: bytes) -> None:
    if suffix == ".stl":
        _check_stl(data)
    elif suffix == ".ply":
        _check_announced(map(int, re.findall(rb"^element\s+\S+\s+(\d{1,18})", data[:100_000], re.MULTILINE)))
    elif suffix in (".gltf", ".glb"):
        header = data if suffix == ".gltf" else data[20 : 20 + int.from_bytes(data[12:16], "little")]
        _check_announced(int(accessor.get("count", 0)) for accessor in json.loads(header).get("accessors", ()))


def _check_announced(counts: Iterator[int]) -> None:
    largest = max(counts, default=0)
    if largest > MOST_ELEMENTS:
        raise ValueError(f"its header announces {largest} elements; no more than {MOST_ELEMENTS} are read")


def _check_stl(data: bytes) -> None:
    if len(data) == 84 + 50 * int.from_bytes(data[80:84], "little"):
        return
    if not (data[:512].lstrip().startswith(b"solid") and b"facet" in data[:512]):
        raise ValueError("it is no binary STL file")
    lines = [line.split() for line in data.splitlines()]
    facets = sum(words[:1] == [b"facet"] for words in lines)
    corners = sum(words[:1] == [b"vertex"] for words in lines)
    complete = sum(words[:1] == [b"vertex"] and len(words) == 4 for words in lines)
    if not complete == corners == 3 * facets:
        raise ValueError(f"it has {complete} complete vertices for {3 * facets} corners of facets: is it cut off?")


def _collada_unit(data: bytes, source: str) -> float:
    """Metres per unit of a COLLADA file; its XML is checked like that of robots."""
    root = parse_xml(data, source)
    if root.tag != "COLLADA":
        raise root.error(f"a COLLADA file starts with <COLLADA>, not <{root.tag}>")
    if root.first("scene") is None:
        raise ValueError("it has no triangles in a <scene>")
    asset = root.first("asset")
    unit = None if asset is None else asset.first("unit")
    return 1.0 if unit is None else unit.number("meter", 1.0)


def read_msh(data: bytes) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and faces of MuJoCo's .msh format, which trimesh mistakes for Gmsh's."""
    vertices, normals, texture, faces = np.frombuffer(data, "<i4", 4).tolist()
    if min(vertices, normals, texture, faces) < 0:
        raise ValueError("its header has negative numbers")
    corners = np.frombuffer(data, "<f4", 3 * vertices, offset=16)
    return corners, np.frombuffer(data, "<i4", 3 * faces, offset=16 + 4 * (3 * (vertices + normals) + 2 * texture))


@dataclass(frozen=True, eq=False)
class Surface:
    """Triangles of one colour.

    vertices   (n, 3), each once
    faces      (m, 3): numbers of the corners of each triangle
    colour     red, green, blue, opacity, from 0 to 1; None where the file says nothing
    """

    vertices: NDArray[np.float32]
    faces: NDArray[np.int32]
    colour: tuple[float, ...] | None = None


def surface(vertices: ArrayLike, faces: ArrayLike, colour: tuple[float, ...] | None = None) -> Surface:
    """The surface of triangles, with equal vertices merged and unused vertices and degenerate triangles removed."""
    points = np.asarray(vertices, dtype=np.float32).reshape(-1, 3) + np.float32(0.0)  # no negative zeros
    corners = np.asarray(faces, dtype=np.int64).reshape(-1, 3)
    if corners.size and not 0 <= corners.min() <= corners.max() < len(points):
        raise ValueError("its faces name vertices that it does not have")
    if not np.isfinite(points).all():
        raise ValueError("its vertices are not all finite")
    used = points[corners.ravel()]
    _, first, number = np.unique(used.view(np.dtype((np.void, 12))).ravel(), return_index=True, return_inverse=True)
    triangles = number.reshape(-1, 3)
    apart = (triangles != np.roll(triangles, 1, axis=1)).all(axis=1)
    return Surface(used[first], triangles[apart].astype(np.int32), colour)
