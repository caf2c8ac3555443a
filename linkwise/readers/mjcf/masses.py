"""Masses of bodies: from ``<inertial>``, or from the volumes or surfaces of geoms.

A geom's inertia follows from its mean squares ``E[x^2], E[y^2], E[z^2]`` along its own axes through its centre: the
moment about x is ``mass (E[y^2] + E[z^2])``.  Shapes put together of parts have the mean over their parts.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from linkwise.mechanism import MechanismError, Pose
from linkwise.mechanism.welding import NOTHING, RigidMass, combined
from linkwise.readers.mjcf.document import Settings, choice, flag
from linkwise.readers.mjcf.meshes import Meshes
from linkwise.readers.mjcf.poses import between, orientation_of
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import Element

WATER = 1000.0  # density of geoms that do not say theirs
_NUMBER_OF_SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "ellipsoid": 3, "box": 3}
_ALONG_FROMTO = ("capsule", "cylinder", "ellipsoid", "box")
_UNKNOWN_MASS = {"sdf": "signed distance field", "hfield": "height field"}
GEOM_TYPES = (*_NUMBER_OF_SIZES, *_UNKNOWN_MASS, "plane", "mesh")
BALANCE_TOLERANCE = 1e-9  # relative; moments that break the triangle inequality by less are rounded ones
_THOMSEN = 1.6075  # exponent of the approximate area of an ellipsoid, as MuJoCo computes it

Shape = tuple[float, np.ndarray]  # volume or area, mean squares


def masses_of(bodies: list[Node], settings: Settings, meshes: Meshes) -> dict[str, RigidMass]:
    """The mass of every body but the world, in the body's own frame."""
    masses = {}
    for body in bodies[1:]:
        try:
            mass = _mass(body, settings, meshes)
            if not np.isfinite([mass.mass, *mass.com, *mass.inertia.ravel()]).all():
                raise body.element.error(f"{body.element.label}: its mass or inertia is too large to compute with")
            masses[body.name] = _bounded(mass, settings)
        except MechanismError:
            if body.moves or settings.total_mass:
                raise
            masses[body.name] = NOTHING  # what stands still matters only where it is attached to something
    if settings.total_mass is None:
        return masses
    total = sum(mass.mass for mass in masses.values())
    scale = settings.total_mass / total if total > 0.0 else 1.0
    return {name: replace(one, mass=scale * one.mass, inertia=scale * one.inertia) for name, one in masses.items()}


def _mass(body: Node, settings: Settings, meshes: Meshes) -> RigidMass:
    if body.inertial is not None and settings.inertia_from_geoms != "true":
        inertial, frame = body.inertial
        return _from_inertial(inertial, settings).seen_from(*frame)
    if settings.inertia_from_geoms == "false":
        return NOTHING
    return combined([_from_geom(geom, pose, settings, meshes) for geom, pose in heavy_geoms(body, settings)])


def heavy_geoms(body: Node, settings: Settings) -> list[tuple[Element, Pose]]:
    """The geoms of a body that have mass, where it has no ``<inertial>``."""
    first, last = settings.inertia_groups
    counted = (one for one in body.geoms if first <= one[0].number("group", 0.0) <= last)
    return [one for one in counted if _mass_or_density(one[0]) and one[0].attributes.get("type") != "plane"]


def _mass_or_density(geom: Element) -> float:
    return geom.number("mass" if "mass" in geom.attributes else "density", WATER)


def _bounded(mass: RigidMass, settings: Settings) -> RigidMass:
    """The mass with the compiler's bounds and corrections, which are about principal moments."""
    moments, axes = np.linalg.eigh(mass.inertia)
    bounded = np.maximum(moments, settings.least_inertia) if settings.least_inertia > 0.0 else moments
    if settings.balance_inertia and bounded.sum() < (2.0 - BALANCE_TOLERANCE) * bounded.max():
        bounded = np.full(3, bounded.mean())
    inertia = mass.inertia if np.array_equal(bounded, moments) else (axes * bounded) @ axes.T
    return RigidMass(max(mass.mass, settings.least_mass), mass.com, 0.5 * (inertia + inertia.T))


def _from_inertial(inertial: Element, settings: Settings) -> RigidMass:
    mass = inertial.number("mass")
    if mass < 0.0:
        raise inertial.error(f"{inertial.label}: mass={mass:g} is negative; fix the sign")
    rotation = orientation_of(inertial, settings)
    if "fullinertia" in inertial.attributes:
        if "diaginertia" in inertial.attributes or not np.array_equal(rotation, np.eye(3)):
            raise inertial.error(f"{inertial.label}: fullinertia goes neither with diaginertia nor with an orientation")
        xx, yy, zz, xy, xz, yz = inertial.numbers("fullinertia", 6)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    else:
        inertia = rotation @ np.diag(inertial.vector("diaginertia", (0.0, 0.0, 0.0))) @ rotation.T
    inertial.text("pos")  # which must be there
    return RigidMass(mass, np.array(inertial.numbers("pos", 3)), 0.5 * (inertia + inertia.T))


# -- geoms ----------------------------------------------------------------------------------------------


def _from_geom(geom: Element, pose: Pose, settings: Settings, meshes: Meshes) -> RigidMass:
    kind = choice(geom, "type", GEOM_TYPES, "sphere")
    per_measure = _mass_or_density(geom)
    if per_measure < 0.0:
        raise geom.error(f"{geom.label}: mass or density {per_measure:g} is negative; fix the sign")
    if kind in _UNKNOWN_MASS:
        raise geom.error(f"{geom.label} is a {_UNKNOWN_MASS[kind]}, whose mass is not known; give an <inertial>")
    if kind == "mesh":
        if flag(geom, "shellinertia"):
            raise geom.error(f'{geom.label}: a mesh is hollow by inertia="shell" of its <mesh>, not by shellinertia')
        mesh = meshes.named(geom)
        measure, centre, inertia = mesh.measure, mesh.centre, mesh.inertia_per_mass
    elif "mesh" in geom.attributes:
        axes, centre, box = meshes.named(geom).box(geom, settings)
        measure, squares = _shape(kind, _fitted(kind, box) * geom.number("fitscale", 1.0), flag(geom, "shellinertia"))
        inertia = axes @ np.diag(squares.sum() - squares) @ axes.T
    else:
        measure, squares = _shape(kind, size_of(geom, kind), flag(geom, "shellinertia"))
        centre, inertia = np.zeros(3), np.diag(squares.sum() - squares)
    mass = per_measure if "mass" in geom.attributes else per_measure * measure
    return RigidMass(mass, centre, mass * inertia).seen_from(*pose)


def size_of(geom: Element, kind: str) -> np.ndarray:
    """The half sizes of a shape: radius; radius and half length; or three half axes."""
    count = _NUMBER_OF_SIZES[kind]
    if "fromto" in geom.attributes:
        if kind not in _ALONG_FROMTO:
            raise geom.error(f"{geom.label}: fromto is for {', '.join(_ALONG_FROMTO)}, not for a {kind}")
        radius = geom.numbers("size", 1, 3)[0] if "size" in geom.attributes else 0.0
        size = [*[radius] * (count - 1), between(geom)[1]]
    else:
        size = list(geom.numbers("size", 1, 3)) if "size" in geom.attributes else []
    if len(size) < count or min(size[:count]) <= 0.0:
        raise geom.error(
            f"{geom.label}: a {kind} needs {count} positive size{'s' * (count > 1)}, not {size[:count]}; or give its "
            "body an <inertial>"
        )
    return np.array(size[:count])


def _fitted(kind: str, box: np.ndarray) -> np.ndarray:
    """The sizes of a shape fitted to the half sizes of a box, the longest along z."""
    radius = (box[0] + box[1]) / 2.0
    return {
        "sphere": np.array([box.mean()]),
        "capsule": np.array([radius, max(0.0, box[2] - radius / 2.0)]),
        "cylinder": np.array([radius, box[2]]),
    }.get(kind, box)


def _shape(kind: str, size: np.ndarray, shell: bool) -> Shape:
    """Volume and mean squares of a solid, or area and mean squares of its surface."""
    if kind == "box":
        return _hollow_box(size) if shell else (8.0 * float(size.prod()), size**2 / 3.0)
    if kind in ("sphere", "ellipsoid"):
        axes = np.broadcast_to(size, 3)
        return _hollow_ellipsoid(axes) if shell else (4.0 / 3.0 * math.pi * float(axes.prod()), axes**2 / 5.0)
    r, h = size
    if shell:
        side = (4.0 * math.pi * r * h, np.array([r * r / 2.0, r * r / 2.0, h * h / 3.0]))
        disks = (2.0 * math.pi * r * r, np.array([r * r / 4.0, r * r / 4.0, h * h]))
        caps = (4.0 * math.pi * r * r, np.array([r * r, r * r, 3.0 * h * (h + r) + r * r]) / 3.0)
    else:
        side = (2.0 * math.pi * r * r * h, np.array([r * r / 4.0, r * r / 4.0, h * h / 3.0]))
        disks = (0.0, np.zeros(3))
        caps = (4.0 / 3.0 * math.pi * r**3, np.array([r * r / 5.0, r * r / 5.0, h * (h + 0.75 * r) + r * r / 5.0]))
    return _together(side, caps if kind == "capsule" else disks)


def _together(*parts: Shape) -> Shape:
    total = sum(measure for measure, _ in parts)
    return total, sum((measure * squares for measure, squares in parts), np.zeros(3)) / total


def _hollow_box(size: np.ndarray) -> Shape:
    faces = []
    for axis in range(3):
        squares = size**2 / 3.0
        squares[axis] *= 3.0
        faces.append((8.0 * float(np.delete(size, axis).prod()), squares))
    return _together(*faces)


def _hollow_ellipsoid(axes: np.ndarray) -> Shape:
    """The layer by which an ellipsoid grows when all half axes do alike, and Thomsen's area."""
    pairs = np.roll(axes, 1) * np.roll(axes, 2)
    area = 4.0 * math.pi * float(np.mean(pairs**_THOMSEN)) ** (1.0 / _THOMSEN)
    return area, axes**2 / 5.0 + 0.4 * axes / float(np.sum(1.0 / axes))
