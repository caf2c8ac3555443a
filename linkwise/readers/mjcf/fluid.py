"""Fluids: what ``density``, ``viscosity`` and ``wind`` of ``<option>`` do to every body that moves."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from linkwise.mechanism import FluidForce
from linkwise.mechanism.elements import FLUID_COEFFICIENTS, LEAST_MASS, box_of_inertia, ellipsoid_of_shape
from linkwise.mechanism.welding import RigidMass
from linkwise.readers.mjcf.document import Settings, choice
from linkwise.readers.mjcf.masses import GEOM_TYPES, size_of
from linkwise.readers.mjcf.poses import orientation_of
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import Element, omit


def fluid_forces(
    option: Element,
    bodies: Sequence[Node],
    masses: Mapping[str, RigidMass],
    frames: Mapping[str, str],
    settings: Settings,
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
            axes = _axes(body, mass, settings)
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


def _axes(body: Node, mass: RigidMass, settings: Settings) -> np.ndarray:
    """(3, 3): principal axes as MuJoCo has them: as given, those of the only geom, or of the inertia itself.  Where
    moments are equal, they matter: drag along each axis is quadratic."""
    if body.inertial is not None and settings.inertia_from_geoms != "true":
        inertial, (rotation, _) = body.inertial
        if "fullinertia" not in inertial.attributes:
            return rotation @ orientation_of(inertial, settings)
    elif len(solid := [one for one in body.geoms if _has_mass(one[0])]) == 1:
        geom, (rotation, _) = solid[0]
        if choice(geom, "type", GEOM_TYPES, "sphere") != "mesh" and "mesh" not in geom.attributes:
            return rotation
    axes = np.linalg.eigh(mass.inertia)[1]
    return axes * np.sign(np.linalg.det(axes))


def _has_mass(geom: Element) -> bool:
    return geom.number("mass" if "mass" in geom.attributes else "density", 1.0) > 0.0
