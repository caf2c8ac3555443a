"""What MJCF shows of bodies: geoms with the colours of their materials.  Files of meshes are not opened here.

Geoms of the groups that MuJoCo shows are seen; those of the others touch, as the format's users have it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import PurePosixPath
from typing import Any

import numpy as np

from linkwise.mechanics.spatial.quaternion import rotation_matrix
from linkwise.mechanism import PLANE, MechanismError, Pose
from linkwise.mechanism.looks import MESH, Look, placed
from linkwise.readers.mjcf.defaults import Defaults
from linkwise.readers.mjcf.document import Settings
from linkwise.readers.mjcf.masses import size_of
from linkwise.readers.mjcf.meshes import mesh_folders, mesh_name
from linkwise.readers.mjcf.tree import Node
from linkwise.readers.protocol import Element, warn

SHOWN_GROUPS = 3  # the first of them
_NOT_DRAWN = ("hfield", "sdf")


def looks_of(
    root: Element, bodies: list[Node], settings: Settings, defaults: Defaults, frame_of: Mapping[str, str]
) -> tuple[Look, ...]:
    """All looks; one that cannot be read is not drawn, which is said."""
    assets = _Assets(root, settings, defaults)
    return tuple(look for body in bodies for look in _of_body(body, frame_of[body.name], assets))


class _Assets:
    """Meshes, and colours of materials."""

    def __init__(self, root: Element, settings: Settings, defaults: Defaults) -> None:
        found: dict[str, list[Element]] = {"mesh": [], "material": [], "texture": []}
        for asset in root.all("asset"):
            for tag, elements in found.items():
                elements += (defaults.applied(one) for one in asset.all(tag))
        self._settings = settings
        self._meshes = {mesh_name(one): one for one in found["mesh"] if {"name", "file"} & set(one.attributes)}
        named = (one for one in found["texture"] if "rgb1" in one.attributes and "name" in one.attributes)
        textures = {one.text("name"): one.vector("rgb1", (0.8, 0.8, 0.8)) for one in named}
        self.colours: dict[str, tuple[float, ...] | None] = {}
        for one in found["material"]:
            plain = textures.get(one.attributes.get("texture", ""))
            colour = one.numbers("rgba", 4) if "rgba" in one.attributes else None
            self.colours[one.attributes.get("name", "")] = colour or (None if plain is None else (*plain, 1.0))

    def mesh(self, geom: Element) -> dict[str, Any]:
        """What a look has of a mesh."""
        element = self._meshes.get(geom.text("mesh"))
        if element is None:
            raise geom.error(f"there is no mesh {geom.text('mesh')!r}")
        scale = np.array(element.vector("scale", (1.0, 1.0, 1.0)))
        rotation = np.eye(3)
        if "refquat" in element.attributes:
            rotation = np.array(rotation_matrix(element.numbers("refquat", 4)), dtype=float)
        linear = scale[:, None] * rotation.T
        shaping = placed(linear, -linear @ element.vector("refpos", (0.0, 0.0, 0.0)))
        if "vertex" in element.attributes:
            return {"shaping": shaping, "corners": (_numbers(element, "vertex", float), _numbers(element, "face", int))}
        file = element.text("file")
        if self._settings.strip_path:
            file = PurePosixPath(file.replace("\\", "/")).name
        folders = (str(one.absolute()) for one in mesh_folders(element, self._settings) if one is not None)
        return {"shaping": shaping, "file": file, "folders": tuple(folders)}


def _numbers(element: Element, attribute: str, kind: type) -> tuple[Any, ...]:
    return tuple(map(kind, element.attributes.get(attribute, "").split()))


def _of_body(body: Node, frame: str, assets: _Assets) -> Iterator[Look]:
    for number, (geom, pose) in enumerate(body.geoms):
        name = geom.attributes.get("name", "").strip() or f"{body.name}_geom{number}"
        kind = MESH if "mesh" in geom.attributes else geom.attributes.get("type", "sphere")
        collision = geom.number("group", 0.0) >= SHOWN_GROUPS
        touches = any(geom.number(key, 1.0) for key in ("contype", "conaffinity"))
        if kind in _NOT_DRAWN or (collision and touches and kind != MESH):  # simple ones are shapes of the mechanism
            continue
        try:
            yield _look(geom, name, frame, kind, pose, collision, assets)
        except (MechanismError, ValueError, KeyError) as error:
            warn(geom, f"is not drawn: {error}")


def _look(geom: Element, name: str, frame: str, kind: str, pose: Pose, collision: bool, assets: _Assets) -> Look:
    more: dict[str, Any] = {}
    if kind == MESH:
        more = assets.mesh(geom)
    elif kind == PLANE:
        more["size"] = geom.numbers("size", 1, 3)[:2] if "size" in geom.attributes else (0.0, 0.0)
    else:
        more["size"] = tuple(size_of(geom, kind).tolist())
    colour = geom.numbers("rgba", 4) if "rgba" in geom.attributes else None
    colour = colour or assets.colours.get(geom.attributes.get("material", ""))
    return Look(name, frame, kind, pose=placed(*pose), colour=colour, collision=collision, **more)
