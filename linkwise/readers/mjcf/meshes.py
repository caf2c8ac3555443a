"""Triangle meshes, as far as their mass goes: volume or area, centre and inertia by integration over triangles."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path, PurePosixPath

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.meshes.files import FORMATS, MOST_CORNERS, has_large_polygons
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import Settings, choice, local_file
from linkwise.readers.protocol import MAX_BYTES, Element, warn

INERTIAS = ("legacy", "exact", "convex", "shell")
SMALLEST = 1e-15  # volume or area below which a mesh has none
_GIVE_INERTIAL = "give the bodies that use it an <inertial>"


@dataclass(frozen=True)
class Mesh:
    """measure is the volume or the area; centre and inertia_per_mass, about the centre, along the axes of the file."""

    measure: float
    centre: np.ndarray
    inertia_per_mass: np.ndarray

    def box(self, geom: Element, settings: Settings) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Axes (columns), centre and half sizes, longest last, of the box with the same inertia."""
        if settings.fit_boxes:
            raise geom.error(f'{geom.label}: fitting to a mesh with fitaabb="true" is not read; give an <inertial>')
        moments, axes = np.linalg.eigh(self.inertia_per_mass)
        moments, axes = moments[::-1], axes[:, ::-1].copy()
        axes[:, 0] *= np.linalg.det(axes)
        return axes, self.centre, np.sqrt(1.5 * np.maximum(moments.sum() - 2.0 * moments, 0.0))


class Meshes:
    """The mesh assets of a document; files are opened when a mass depends on them."""

    def __init__(self, root: Element, settings: Settings, defaults: Defaults) -> None:
        self._settings = settings
        self._elements: dict[str, Element] = {}
        self._found: dict[str, Mesh] = {}
        for asset in root.all("asset"):
            for element in asset.all("mesh"):
                self._elements[mesh_name(element)] = defaults.applied(element)

    def named(self, geom: Element) -> Mesh:
        """The mesh of a geom."""
        name = geom.text("mesh")
        if name not in self._elements:
            raise geom.error(f"{geom.label}: there is no mesh {name!r}: {did_you_mean(name, self._elements)}")
        if name not in self._found:
            self._found[name] = self._integrated(self._elements[name])
        return self._found[name]

    def _integrated(self, element: Element) -> Mesh:
        how = choice(element, "inertia", INERTIAS, "legacy")
        vertices, faces = self._triangles(element)
        scale = np.array(element.vector("scale", (1.0, 1.0, 1.0)))
        vertices = vertices - element.vector("refpos", (0.0, 0.0, 0.0))
        if "refquat" in element.attributes:
            vertices = vertices @ np.array(rotation_matrix(element.numbers("refquat", 4)), dtype=float)
        vertices = vertices * scale
        if how == "convex" or not len(faces):
            faces = _convex_hull(element, vertices)
        elif scale.prod() < 0.0:
            faces = faces[:, ::-1]
        mesh = _integral(vertices[faces], how)
        if mesh is None:
            raise element.error(
                f"{element.label} has no {'area' if how == 'shell' else 'volume'} (do its triangles face "
                f"outwards?); {_GIVE_INERTIAL}"
            )
        return mesh

    def _triangles(self, element: Element) -> tuple[np.ndarray, np.ndarray]:
        """Vertices (n, 3) and triples of their numbers (m, 3); no triples where the convex hull is meant."""
        if "vertex" in element.attributes:
            count = len(element.attributes["vertex"].split())
            vertices = np.array(element.numbers("vertex", count), dtype=np.float32).astype(float)
            words = element.attributes.get("face", "").split()
            faces = np.array(element.numbers("face", len(words)), dtype=int) if words else np.zeros(0, dtype=int)
            return _checked(element, vertices, faces)
        if "file" not in element.attributes:
            has = "a builtin shape, which is not read" if "builtin" in element.attributes else "no file and no vertices"
            raise element.error(f"{element.label} has {has}; {_GIVE_INERTIAL}")
        name = element.text("file")
        if self._settings.strip_path:
            name = PurePosixPath(name.replace("\\", "/")).name
        path = local_file(element, name, mesh_folders(element, self._settings))
        if path.stat().st_size > MAX_BYTES:
            raise element.error(f"{element.label}: {path} has more than {MAX_BYTES} bytes; {_GIVE_INERTIAL}")
        if path.suffix.lower() not in FORMATS:
            raise element.error(
                f"{element.label}: {path.name} is none of the formats that are read ({', '.join(FORMATS)}); "
                + _GIVE_INERTIAL
            )
        try:
            if path.suffix.lower() == ".obj" and has_large_polygons(path):
                warn(element, f"has polygons of more than {MOST_CORNERS} corners, which are left out as MuJoCo does")
            return _checked(element, *FORMATS[path.suffix.lower()](path))
        except (ValueError, IndexError, OverflowError) as error:
            raise element.error(
                f"{element.label}: {path} cannot be read ({error}); fix it, or {_GIVE_INERTIAL}"
            ) from None


def mesh_folders(mesh: Element, settings: Settings) -> list[Path | None]:
    """Where the file of a mesh is looked for: in the folder of meshes, then beside the file that names it."""
    beside = Path(mesh.source).parent if settings.folder else None  # a text has no place
    return [settings.mesh_folder, settings.folder, beside]


def mesh_name(element: Element) -> str:
    """The name of a mesh: its own, or that of its file."""
    return element.attributes.get("name") or PurePosixPath(element.text("file").replace("\\", "/")).stem


def _checked(element: Element, vertices: np.ndarray, faces: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if vertices.size % 3 or faces.size % 3 or vertices.size < 12:
        raise element.error(f"{element.label}: vertices and faces come in threes, and there are at least four vertices")
    if faces.size and not (0 <= faces.min() and faces.max() < vertices.size // 3):
        raise element.error(f"{element.label}: its faces name vertices that it does not have")
    if not np.isfinite(vertices).all():
        raise element.error(f"{element.label}: its vertices are not all finite")
    return vertices.reshape(-1, 3), faces.reshape(-1, 3)


# -- integrals ------------------------------------------------------------------------------------------


def _convex_hull(element: Element, vertices: np.ndarray) -> np.ndarray:
    from scipy.spatial import ConvexHull, QhullError

    try:
        hull = ConvexHull(vertices)
    except QhullError:
        raise element.error(f"{element.label}: its vertices have no convex hull with a volume") from None
    faces = hull.simplices.copy()
    corners = vertices[faces]
    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inwards = np.einsum("ij,ij->i", normals, hull.equations[:, :3]) < 0.0
    faces[inwards] = faces[inwards][:, ::-1]
    return faces


def _integral(corners: np.ndarray, how: str) -> Mesh | None:
    """Integrals over triangles (m, 3, 3), or over the tetrahedra that they span with the middle of the surface.

    "legacy" counts every tetrahedron as positive: MuJoCo's default, wrong where the mesh is not star-shaped.
    """

    def measures(corners: np.ndarray) -> np.ndarray:
        normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
        if how == "shell":
            return np.linalg.norm(normals, axis=1) / 2.0
        volumes = np.einsum("ij,ij->i", corners.mean(axis=1), normals) / 6.0
        return np.abs(volumes) if how == "legacy" else volumes

    normals = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    areas = np.linalg.norm(normals, axis=1) / 2.0
    if areas.sum() < SMALLEST:
        return None
    middle = areas @ corners.mean(axis=1) / areas.sum()
    parts = measures(corners - middle)
    if parts.sum() < SMALLEST:
        return None
    reach = 1.0 if how == "shell" else 0.75  # of a part's centre, from the apex to the middle of the triangle
    centre = middle + reach * (parts @ (corners - middle).mean(axis=1)) / parts.sum()
    around = corners - centre
    parts = measures(around)
    if parts.sum() < SMALLEST:
        return None
    # A part's second moments: of three corners d and, for solids, the apex at the origin.
    sums = around.sum(axis=1)
    products = np.einsum("i,ijk,ijl->kl", parts, around, around) + np.einsum("i,ik,il->kl", parts, sums, sums)
    second = products / (12.0 if how == "shell" else 20.0) / parts.sum()
    return Mesh(float(parts.sum()), centre, np.trace(second) * np.eye(3) - second)
