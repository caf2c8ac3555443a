"""Geoms as shapes, and which of them collide: by masks and ``<exclude>``, except between parent and child."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanism import GROUND, PLANE, Pose, Shape
from linkwise.mechanism.looks import MESH, Look, placed
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.shapes import SIZES
from linkwise.readers.mjcf.compiler import Compiled, rotation_of, tidy
from linkwise.readers.mjcf.tree import Tree
from linkwise.readers.protocol import Element

#: Numbers of geom types that are shapes here -> what these are called.
SHAPES = {0: "plane", 2: "sphere", 3: "capsule", 4: "ellipsoid", 5: "cylinder", 6: "box"}
NUMBER_OF_SIZES = {"plane": 0, "sphere": 1, "capsule": 2, "ellipsoid": 3, "cylinder": 2, "box": 3}
_OTHERS = {1: "hfield", 7: "mesh", 8: "sdf"}


@dataclass(frozen=True)
class Geom:
    """A geom that may touch others; ``shape`` is None for kinds that do not act here.

    index    in the model
    body     of the geom; ``mover`` is the nearest ancestor with joints, 0 the world
    kind     name of its type
    masks    contype and conaffinity
    """

    element: Element
    index: int
    name: str
    body: int
    mover: int
    kind: str
    masks: tuple[int, int]
    shape: Shape | None

    @property
    def fixed(self) -> bool:
        return not self.mover


def kind_of(compiled: Compiled, geom: int) -> str:
    """The word for a geom's type."""
    number = int(compiled.model.geom_type[geom])
    return compiled.stand_ins.get(geom) or SHAPES.get(number) or _OTHERS.get(number, "geom")


def size_of(compiled: Compiled, geom: int, kind: str) -> tuple[float, ...]:
    """The half sizes of a shape: radius; radius and half length; or three half axes."""
    return tuple(compiled.model.geom_size[geom, : NUMBER_OF_SIZES[kind]].tolist())


def names_of_geoms(tree: Tree) -> list[str]:
    """A name for every geom."""
    model = tree.compiled.model
    names = tree.compiled.names("geom", model.ngeom)
    taken = set(names)
    unique_names = []
    for geom, name in enumerate(names):
        body = int(model.geom_bodyid[geom])
        unique_names.append(
            name or unused_name(f"{tree.names[body]}_geom{geom - int(model.body_geomadr[body])}", taken)
        )
    return unique_names


def geoms_of(tree: Tree, paired: set[int]) -> Iterator[Geom]:
    """All geoms with masks, or named by a pair."""
    compiled, model = tree.compiled, tree.compiled.model
    override = model.opt.enableflags & compiled.library.mjtEnableBit.mjENBL_OVERRIDE
    for index, name in enumerate(names_of_geoms(tree)):
        body, kind = int(model.geom_bodyid[index]), kind_of(compiled, index)
        masks = int(model.geom_contype[index]), int(model.geom_conaffinity[index])
        if not (any(masks) or index in paired):
            continue
        shape = None
        if kind in SIZES:
            friction = float(model.opt.o_friction[0] if override else model.geom_friction[index, 0])
            size = () if kind == PLANE else size_of(compiled, index, kind)
            pose, frame = compiled.pose("geom", index), tree.frame_of[body] if body else "ground"
            shape = Shape(name, frame, kind, size, pose, max(0.0, friction), *masks)
        yield Geom(compiled.element("geom", index), index, name, body, tree.mover(body), kind, masks, shape)


@dataclass(frozen=True)
class Meeting:
    """Collision filter of geoms.

    excluded          pairs of bodies that do not
    parents_and_children   whether those of bodies that a joint connects do
    """

    tree: Tree
    excluded: frozenset[frozenset[int]]
    parents_and_children: bool

    def world_meetings(self, geoms: list[Geom]) -> Iterator[tuple[Geom, Geom]]:
        """Pairs of a moving and a fixed geom that meet."""
        world = [geom for geom in geoms if geom.fixed]
        for geom in geoms:
            if not geom.fixed:
                yield from ((geom, other) for other in world if self._meet(geom, other))

    def each_other(self, geoms: list[Geom]) -> Iterator[tuple[list[Geom], list[list[Geom]]]]:
        """Groups of equal moving geoms, each with one group of every kind that they meet on another moving body."""
        groups: dict[tuple[int, int, int, str, bool], list[Geom]] = {}
        for geom in geoms:
            if not geom.fixed:
                groups.setdefault((geom.body, *geom.masks, geom.kind, geom.shape is None), []).append(geom)
        kinds: dict[tuple[object, ...], list[list[Geom]]] = {}  # the bodies of one kind are alike for what is noted
        for (_, *kind), alike in groups.items():
            kinds.setdefault(tuple(kind), []).append(alike)
        for members in groups.values():
            first = (next((x for x in alike if self._may_meet(members[0], x[0])), None) for alike in kinds.values())
            met = [group for group in first if group is not None]
            if met:
                yield members, met

    def _meet(self, first: Geom, other: Geom) -> bool:
        (a, b), (c, d) = first.masks, other.masks
        return bool(a & d or c & b) and frozenset((first.body, other.body)) not in self.excluded

    def _may_meet(self, first: Geom, other: Geom) -> bool:
        movers = first.mover, other.mover
        related = not self.parents_and_children and any(self._is_parent(*pair) for pair in (movers, movers[::-1]))
        return movers[0] != movers[1] and not related and self._meet(first, other)

    def _is_parent(self, first: int, other: int) -> bool:
        """Whether one moving body is the other's parent by joints."""
        return bool(first) and bool(other) and self.tree.mover(self.tree.parents[other]) == first


# -- visuals: geoms of the groups that MuJoCo shows are seen, others touch; mesh files are not opened here


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
            pose, more = _mesh_of(compiled, geom, pose)
        elif kind == PLANE:
            more["size"] = tuple(model.geom_size[geom, :2].tolist())
        else:
            more["size"] = size_of(compiled, geom, kind)
        name = name or f"{tree.names[body]}_geom{geom - int(model.body_geomadr[body])}"
        colour = _colour(compiled, geom)
        yield Look(name, frames[body], kind, pose=placed(*pose), colour=colour, collision=collision, **more)


def _mesh_of(compiled: Compiled, geom: int, pose: Pose) -> tuple[Pose, dict[str, Any]]:
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
    geom_colour = _decimal(model.geom_rgba[geom])
    if geom_colour != _GREY or geom in compiled.coloured or "rgba" in compiled.element("geom", geom).attributes:
        return geom_colour
    if material < 0:
        return None
    colour = _decimal(model.mat_rgba[material])
    if colour != (1.0, 1.0, 1.0, 1.0) or "rgba" in compiled.element("material", material).attributes:
        return colour
    return compiled.texture_colour(material)


def _decimal(colour: np.ndarray) -> tuple[float, ...]:
    """Single-precision numbers as the shortest decimal numbers that round to them."""
    return tuple(float(str(number)) for number in colour)
