"""Visuals of MJCF bodies: geoms with material colours. Mesh files are not opened here.

Geoms of the groups that MuJoCo shows are seen; those of the others touch, as the format's users have it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from linkwise.mechanism import GROUND, PLANE, Pose
from linkwise.mechanism.looks import MESH, Look, placed
from linkwise.readers.mjcf.compiler import Compiled, rotation_of, tidy
from linkwise.readers.mjcf.geometry import SHAPES, kind_of, size_of
from linkwise.readers.mjcf.tree import Tree

SHOWN_GROUPS = 3  # the first of them
_NOT_DRAWN = ("hfield", "sdf", "geom")
_GREY = (0.5, 0.5, 0.5, 1.0)  # of geoms that do not say theirs


def looks_of(tree: Tree) -> Iterator[Look]:
    """All looks."""
    compiled, model = tree.compiled, tree.compiled.model
    frames = [GROUND, *tree.frame_of[1:]]
    for geom, name in enumerate(compiled.names("geom", model.ngeom)):
        body, kind = int(model.geom_bodyid[geom]), kind_of(compiled, geom)
        kind = MESH if geom in compiled.meshes else kind
        collision = int(model.geom_group[geom]) >= SHOWN_GROUPS
        touches = bool(model.geom_contype[geom] or model.geom_conaffinity[geom])
        # Simple ones that touch are shapes of the mechanism.
        if kind in _NOT_DRAWN or (collision and touches and kind != MESH):
            continue
        pose, more = compiled.pose("geom", geom), dict[str, Any]()
        if kind == MESH:
            pose, more = _mesh(compiled, geom, pose)
        elif kind == PLANE:
            more["size"] = tuple(model.geom_size[geom, :2].tolist())
        else:
            more["size"] = size_of(compiled, geom, kind)
        name = name or f"{tree.names[body]}_geom{geom - int(model.body_geomadr[body])}"
        colour = _colour(compiled, geom)
        yield Look(name, frames[body], kind, pose=placed(*pose), colour=colour, collision=collision, **more)


def _mesh(compiled: Compiled, geom: int, pose: Pose) -> tuple[Pose, dict[str, Any]]:
    """Pose of a mesh, and its visual: the file, or MuJoCo's triangles."""
    model, look = compiled.model, compiled.looks.get(compiled.meshes.get(geom, ""))
    number = int(model.geom_dataid[geom])
    opened = number >= 0 and SHAPES.get(int(model.geom_type[geom])) is None
    if look is not None:
        if opened:  # MuJoCo moves meshes to their principal axes, and geoms against that
            rotation = rotation_of(model.mesh_quat[number])
            turned = pose[0] @ rotation.T
            pose = (turned, tidy(pose[1] - turned @ model.mesh_pos[number], np.abs(pose[1]).max()))
        return pose, {**look, "shaping": placed(*look["shaping"])}
    vertices = slice(int(model.mesh_vertadr[number]), int(model.mesh_vertadr[number] + model.mesh_vertnum[number]))
    faces = slice(int(model.mesh_faceadr[number]), int(model.mesh_faceadr[number] + model.mesh_facenum[number]))
    corners = model.mesh_vert[vertices].astype(float).ravel().tolist(), model.mesh_face[faces].ravel().tolist()
    return pose, {"corners": (tuple(corners[0]), tuple(corners[1]))}


def _colour(compiled: Compiled, geom: int) -> tuple[float, ...] | None:
    """Colour of a geom, its material or texture; None without any."""
    model, material = compiled.model, int(compiled.model.geom_matid[geom])
    own = _decimal(model.geom_rgba[geom])
    if own != _GREY or geom in compiled.coloured or "rgba" in compiled.element("geom", geom).attributes:
        return own
    if material < 0:
        return None
    colour = _decimal(model.mat_rgba[material])
    if colour != (1.0, 1.0, 1.0, 1.0) or "rgba" in compiled.element("material", material).attributes:
        return colour
    return compiled.texture_colour(material)


def _decimal(colour: np.ndarray) -> tuple[float, ...]:
    """Numbers of single precision as the shortest decimal numbers that they may have been."""
    return tuple(float(str(number)) for number in colour)
