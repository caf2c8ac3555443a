"""Visuals as geoms without contact, and mesh assets."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any
from xml.etree.ElementTree import Element

import numpy as np

from linkwise.mechanism import Look, Mechanism, Pose, Shape
from linkwise.mechanism.looks import MESH
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.poses import quaternion_from_rotation
from linkwise.mechanism.welding import composed
from linkwise.writers.looks import HERE, mesh_path, pose_of, scale_of
from linkwise.writers.mjcf.bodies import PLANE, Bodies, pose_attributes
from linkwise.writers.report import Report
from linkwise.writers.xml import element

SEEN, TOUCHING = 2, 3  # groups of geoms: MuJoCo shows the first three
_FORMATS = (".stl", ".obj", ".msh")  # of meshes that MuJoCo reads


def write_looks(root: Element, mech: Mechanism, bodies: Bodies, report: Report) -> None:
    """Write one geom per visual, shared with an identical shape; other shapes are made invisible."""
    if not mech.metadata.looks:
        return
    geoms = {geom.get("name", ""): geom for geom in root.iter("geom")}
    for geom in geoms.values():
        geom.set("group", str(TOUCHING))
    shapes, assets, taken = {shape.name: shape for shape in mech.shapes}, _Assets(root, report), set(geoms)
    for look in mech.metadata.looks:
        shape = shapes.get(look.name)
        if shape is not None and _is_same(mech, look, shape):
            _show(geoms[look.name], look)
            continue
        body, pose = _placed(mech, look.link, pose_of(look))
        if not bodies.has(body):
            report.omit("look of a link without mass", look.name)
            continue
        attributes = (
            assets.mesh(look) if look.kind == MESH else {"size": (*look.size, 1.0) if look.kind == PLANE else look.size}
        )
        if attributes is None:
            continue
        name = unused_name(look.name, taken)
        parent, seen = bodies.inside(body, pose)
        made = element(
            parent,
            "geom",
            name=name,
            type=look.kind,
            **attributes,
            contype=0,
            conaffinity=0,
            group=TOUCHING,
            **pose_attributes(seen),
        )
        _show(made, look)


def _show(geom: Element, look: Look) -> None:
    if not look.collision:
        geom.set("group", str(SEEN))
    if look.colour is not None:
        geom.set("rgba", " ".join(map(repr, look.colour)))


def _is_same(mech: Mechanism, look: Look, shape: Shape) -> bool:
    """Whether a shape's geom equals the visual."""
    if look.kind != shape.kind or (shape.kind != PLANE and look.size != shape.size):
        return False
    (body, pose), (other, there) = _placed(mech, look.link, pose_of(look)), shape.placed(mech)
    return body == other and all(np.allclose(a, b, rtol=0.0, atol=1e-12) for a, b in zip(pose, there, strict=True))


def _placed(mech: Mechanism, link: str, pose: Pose) -> tuple[int, Pose]:
    """The carrying body, and the pose in its frame."""
    frame = mech.frame(link)
    return frame.body, composed(frame.pose, pose)


class _Assets:
    """Meshes, each written once."""

    def __init__(self, root: Element, report: Report) -> None:
        self._root, self._report = root, report
        self._section: Element | None = None
        self._names: dict[Any, str] = {}

    def mesh(self, look: Look) -> dict[str, Any] | None:
        """Attributes of a geom's mesh; None, with a report, if MuJoCo would refuse the file."""
        scale, file = scale_of(look), mesh_path(look, self._report.file)
        if scale is None:
            self._report.omit("mesh that is sheared", look.name)
            return None
        if not look.corners[0] and file is None:
            self._report.omit(f"mesh whose file {look.file!r} is not found", look.name)
            return None
        if not look.corners[0] and not str(file).lower().endswith(_FORMATS):
            self._report.omit(f"mesh {PurePosixPath(str(file)).name}, a format that MuJoCo does not read", look.name)
            return None
        key = (file, look.shaping, look.corners)
        if key not in self._names:
            self._names[key] = self._written(look, file, *scale)
        return {"mesh": self._names[key]}

    def _written(self, look: Look, file: str | None, scale: np.ndarray, rotation: np.ndarray, point: np.ndarray) -> str:
        if self._section is None:
            self._section = element(self._root, "asset")
        name = unused_name(PurePosixPath(file).stem if file else look.name, set(self._names.values()))
        vertices, corners = look.corners
        element(
            self._section,
            "mesh",
            name=name,
            file=file,
            scale=None if (scale == 1.0).all() else scale,
            refpos=point if point.any() else None,
            refquat=None if np.array_equal(rotation, HERE) else quaternion_from_rotation(rotation),
            vertex=vertices or None,
            face=corners or None,
        )
        return name
