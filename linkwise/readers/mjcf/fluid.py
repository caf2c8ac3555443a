"""Fluids: what ``density``, ``viscosity`` and ``wind`` of ``<option>`` do to every body that moves."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.mechanism import FluidForce
from linkwise.mechanism.elements import FLUID_COEFFICIENTS, LEAST_MASS, box_of_inertia, ellipsoid_of_shape
from linkwise.mechanism.welding import RigidMass
from linkwise.readers.mjcf.document import Settings, choice
from linkwise.readers.mjcf.masses import GEOM_TYPES, heavy_geoms, size_of
from linkwise.readers.mjcf.meshes import Meshes
from linkwise.readers.mjcf.poses import orientation_of, rotation_about
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import Element, omit

_SMALLEST_PRODUCT = 1e-12  # of inertia, off the diagonal
_MOST_TURNS = 500


def fluid_forces(
    option: Element,
    bodies: Sequence[Node],
    masses: Mapping[str, RigidMass],
    frames: Mapping[str, str],
    settings: Settings,
    meshes: Meshes,
) -> Iterator[FluidForce]:
    """Of every body that moves: on its ellipsoids, where it has geoms with that ``fluidshape``, else on the box of its
    inertia."""
    fluid: dict[str, Any] = {name: option.number(name, 0.0) for name in ("density", "viscosity")}
    if not any(fluid.values()) or not settings.has_passive_forces:
        return
    fluid["wind"] = option.vector("wind", (0.0, 0.0, 0.0))
    for body in bodies[1:]:
        mass = masses[body.name]
        if not body.moves or mass.mass < LEAST_MASS:
            continue
        around = [one for one in body.geoms if choice(one[0], "fluidshape", ("none", "ellipsoid"), "none") != "none"]
        if not around:
            axes = _axes(body, mass, settings, meshes)
            moments = (axes.T @ mass.inertia @ axes).diagonal()
            place: dict[str, Any] = {"axes": axes.tolist(), "position": mass.com.tolist()}
            yield FluidForce(frames[body.name], "box", box_of_inertia(mass.mass, moments.tolist()), **place, **fluid)
        for geom, (rotation, position) in around:
            kind = choice(geom, "type", GEOM_TYPES, "sphere")
            if kind in ("mesh", "sdf", "hfield", "plane") or "mesh" in geom.attributes:
                omit(geom, f"{kind} in a fluid", "does not act: its half axes are not read")
                continue
            given = geom.numbers("fluidcoef", 1, 5) if "fluidcoef" in geom.attributes else ()
            yield FluidForce(
                frames[body.name],
                "ellipsoid",
                ellipsoid_of_shape(kind, size_of(geom, kind).tolist()),
                axes=rotation.tolist(),
                position=position.tolist(),
                coefficients=(*given, *FLUID_COEFFICIENTS[len(given) :]),
                **fluid,
            )


def _axes(body: Node, mass: RigidMass, settings: Settings, meshes: Meshes) -> np.ndarray:
    """(3, 3): principal axes as MuJoCo has them: as given, those of the only geom or of its mesh, or of the inertia
    itself.  Where moments are equal, they matter: drag along each axis is quadratic."""
    if body.inertial is not None and settings.inertia_from_geoms != "true":
        inertial, (rotation, _) = body.inertial
        if "fullinertia" not in inertial.attributes:
            return rotation @ orientation_of(inertial, settings)
        return rotation @ _principal_axes(rotation.T @ mass.inertia @ rotation)
    if len(heavy := heavy_geoms(body, settings)) == 1:
        geom, (rotation, _) = heavy[0]
        mesh = meshes.named(geom) if "mesh" in geom.attributes else None
        return rotation if mesh is None else rotation @ _principal_axes(mesh.inertia_per_mass)
    return _principal_axes(mass.inertia)


def _principal_axes(inertia: np.ndarray) -> np.ndarray:
    """(3, 3): eigenvectors by Jacobi's method with its largest element first, from the axes of the matrix on.  In a
    plane of equal moments these are MuJoCo's, which any others would be as good as for the inertia alone."""
    axes = np.eye(3)
    for _ in range(_MOST_TURNS):
        seen = axes.T @ inertia @ axes
        (x, y), axis = max(((0, 1), 2), ((0, 2), 1), ((1, 2), 0), key=lambda one: _size(seen, one))
        if abs(seen[x, y]) < _SMALLEST_PRODUCT:
            break
        ratio = (seen[y, y] - seen[x, x]) / (2.0 * seen[x, y])
        slope = math.copysign(1.0, ratio) / (abs(ratio) + math.hypot(1.0, ratio))
        if 1.0 / math.hypot(1.0, slope) > 1.0 - _SMALLEST_PRODUCT:
            break
        angle = math.atan(slope) * (1.0 if axis == 1 else -1.0)
        axes = axes @ rotation_about(np.eye(3)[axis], angle)
    return axes


def _size(matrix: np.ndarray, pair: tuple[tuple[int, int], int]) -> tuple[float, int]:
    """Of an off-diagonal element; of equal ones the last counts, as in MuJoCo."""
    return abs(matrix[pair[0]]), -pair[1]
