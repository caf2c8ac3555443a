"""SDF, the format of Gazebo: one model with its links, joints and loops.

The first joint with a link as its child holds the link in the tree; further joints with this child close loops. Poses
may be relative to any link, joint or frame (``relative_to``), axes expressed in any of them. A model moves freely
unless a joint holds it to the world, or it is ``<static>``. Links without ``<inertial>`` have 1 kg and unit moments, as
the format prescribes. Visible geometry is read as looks, simple collision geometry as shapes, which touch nothing
before ``mech.with_ground``; sensors and plugins are only noted.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Fixed, Floating, Joint, Spherical, kinds_of_format
from linkwise.mechanism import GROUND, Builder, Limits, Mechanism, MechanismError, Mimic, Pose, Shape, did_you_mean
from linkwise.mechanism.contact import WITHOUT_GROUND
from linkwise.mechanism.looks import MESH, Look, placed, scaled
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.poses import quaternion_from_rotation, rotation_from_quaternion, rotation_from_rpy
from linkwise.mechanism.welding import ORIGIN, composed, relative_pose
from linkwise.readers import drake
from linkwise.readers.protocol import (
    FLOATING_BASE,
    NO_GROUND,
    NO_SHAPE,
    STANDARD_GRAVITY,
    Element,
    omit,
    register_reader,
    unbounded,
    warn,
)

WORLD, MODEL = "world", "__model__"
AXES = ("axis", "axis2")
ENDS = {"joint": ("parent", "child"), drake.JOINT: ("drake:parent", "drake:child")}
TOUCHING = ("sphere", "box", "cylinder", "capsule", "ellipsoid")  # collision geometry that is read
_MOMENTS = ("ixx", "ixy", "ixz", "iyy", "iyz", "izz")


@register_reader("sdf", "SDF")
def from_xml(
    root: Element, floating_base: bool, gravity: Any, name: str | None, folder: Path | None, mimic: bool
) -> Mechanism:
    """The mechanism of the one ``<model>`` of a document, or of its one world."""
    world = root.first("world")
    model = _one_model(root, world)
    frames = Frames(model)
    links = {link.text("name"): link for link in model.all("link")}
    drake.note_omissions(model)
    joints = [element for element in model.children if element.tag == "joint" or drake.is_joint(element)]
    for described in links.values():
        for sensor in described.all("sensor"):
            omit(sensor, "sensor", "not read")
    for plugin in model.all("plugin"):
        omit(plugin, "plugin", "what a plugin does is not in the file")
    builder = Builder(source=root.source)
    assembly = _Assembly(builder, frames, links, mimic)
    for link in links:
        builder.link(link, *_mass(links[link]))
    held = assembly.tree_joints(joints)
    for joint in joints:
        if joint in held.values():
            assembly.add(joint)
        else:
            assembly.close(joint)
    assembly.close_balls(model)
    free, static = [], model.first("static")
    for link in (link for link in links if link not in held):
        if static is not None and static.content in ("true", "1"):
            builder.joint(f"{link}_to_{GROUND}", Fixed(), GROUND, link, frames.pose(link))
        else:
            joint_name = FLOATING_BASE if floating_base else f"{link}_free"
            builder.joint(joint_name, Floating(), GROUND, link)
            rotation, position = frames.pose(link)
            free.append((joint_name, (*quaternion_from_rotation(rotation).tolist(), *position.tolist())))
    if gravity is None:
        element = world.first("gravity") if world is not None else None
        gravity = STANDARD_GRAVITY if element is None else element.content_numbers(3)
    mechanism = builder.build(name or model.text("name"), gravity, strict=False)
    looks = tuple(look for link in links.values() for look in _looks(link, folder))
    taken: set[str] = set()
    shapes = tuple(shape for link in links.values() for shape in _shapes(link, taken))
    annotations = replace(mechanism.annotations, initial=tuple(free), looks=looks)
    return replace(mechanism, shapes=shapes, annotations=annotations)


def _one_model(root: Element, world: Element | None) -> Element:
    models = list((world or root).all("model"))
    if len(models) != 1:
        names = ", ".join(model.attributes.get("name", "?") for model in models) or "none"
        raise root.error(f"an SDF file with one <model> is read, and this has: {names}; keep one of them")
    for tag in ("include", "model"):
        inner = models[0].first(tag)
        if inner is not None:
            raise inner.error(f"<{tag}> inside a model is not read: write its links and joints out (gz sdf -p does)")
    return models[0]


def _number(element: Element | None, tag: str, otherwise: float) -> float:
    child = None if element is None else element.first(tag)
    return otherwise if child is None else child.content_numbers(1)[0]


def _mass(link: Element) -> tuple[float, Any, Any]:
    """Mass, pose of the centre of mass, and moments along its axes."""
    inertial = link.first("inertial")
    if inertial is None:
        return 1.0, ORIGIN, (1.0, 1.0, 1.0)
    moments = inertial.first("inertia")
    defaults = {"ixx": 1.0, "iyy": 1.0, "izz": 1.0}
    xx, xy, xz, yy, yz, zz = (_number(moments, key, defaults.get(key, 0.0)) for key in _MOMENTS)
    pose = inertial.first("pose")
    matrix = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]]
    return _number(inertial, "mass", 1.0), ORIGIN if pose is None else _written(pose), matrix


def _written(pose: Element) -> Pose:
    """The numbers of a ``<pose>``: position, and angles about fixed axes or a quaternion x, y, z, w."""
    if pose.attributes.get("rotation_format", "euler_rpy") != "euler_rpy":
        x, y, z, *turn = pose.content_numbers(7)
        return rotation_from_quaternion([turn[3], *turn[:3]]), np.array([x, y, z])
    x, y, z, *angles = pose.content_numbers(6) if pose.content else (0.0,) * 6
    degrees = pose.attributes.get("degrees") in ("true", "1")
    return rotation_from_rpy(np.radians(angles) if degrees else np.array(angles)), np.array([x, y, z])


class Frames:
    """Poses of links, joints and frames at zero coordinates, in the model's frame and in the world."""

    def __init__(self, model: Element) -> None:
        pose = model.first("pose")
        self._model = ORIGIN if pose is None else _written(pose)
        parts = (element for tag in ("link", "joint", drake.JOINT, "frame") for element in model.all(tag))
        self._elements = {element.text("name"): element for element in parts}
        self._poses: dict[str, Pose] = {}

    def pose(self, name: str) -> Pose:
        """Pose of a frame in the world."""
        return composed(self._model, self.model_pose(name))

    def model_pose(self, name: str, asked: tuple[str, ...] = ()) -> Pose:
        """Pose of a frame in the model's frame."""
        if name == MODEL:
            return ORIGIN
        if name == WORLD:
            rotation, position = self._model
            return rotation.T, -rotation.T @ position
        element = self._elements[name]
        if name in asked:
            raise element.error(f"{element.label}: its pose is relative to itself, by {' -> '.join((*asked, name))}")
        if name not in self._poses:
            self._poses[name] = composed(
                self.model_pose(self._base_frame(element), (*asked, name)), _element_pose(element)
            )
        return self._poses[name]

    def _base_frame(self, element: Element) -> str:
        """The frame of the pose of an element."""
        pose = element.first("pose")
        said = pose.attributes.get("relative_to", "") if pose is not None else ""
        if not said and element.tag in ENDS:
            said = element.required(ENDS[element.tag][1]).content
        if not said and element.tag == "frame":
            said = element.attributes.get("attached_to", "")
        return self.checked(element, said or MODEL)

    def checked(self, element: Element, name: str) -> str:
        """The name of an existing frame; raises otherwise."""
        if name not in (MODEL, WORLD) and name not in self._elements:
            raise element.error(f"{element.label}: there is no frame {name!r}: {did_you_mean(name, self._elements)}")
        return name


def _element_pose(element: Element) -> Pose:
    pose = element.first("pose")
    return ORIGIN if pose is None else _written(pose)


class _Assembly:
    """Describes joints to a builder."""

    def __init__(self, builder: Builder, frames: Frames, links: Mapping[str, Element], mimic: bool) -> None:
        self._builder, self._frames, self._links, self._mimic = builder, frames, links, mimic

    def _end(self, joint: Element, tag: str) -> str:
        return self._link(joint, joint.required(ENDS[joint.tag][tag == "child"]), tag)

    def _link(self, joint: Element, end: Element, tag: str) -> str:
        if end.content != WORLD and end.content not in self._links:
            hint = did_you_mean(end.content, self._links)
            raise end.error(f"{joint.label}: its {tag} {end.content!r} is no link of the model: {hint}")
        return GROUND if end.content == WORLD else end.content

    def tree_joints(self, joints: list[Element]) -> dict[str, Element]:
        """Link -> its tree joint: the first that names it as child without making a cycle."""
        carriers: dict[str, Element] = {}
        for joint in joints:
            parent, child = self._end(joint, "parent"), self._end(joint, "child")
            if child == GROUND:
                raise joint.error(f"{joint.label}: the world cannot be a child; exchange parent and child")
            way = parent
            while way in carriers:
                way = self._end(carriers[way], "parent")
            if child not in carriers and way != child:
                carriers[child] = joint
        return carriers

    def add(self, joint: Element) -> None:
        """Add a joint of the tree; it moves a link whose frame is that of the joint."""
        name, parent, child = joint.text("name"), self._end(joint, "parent"), self._end(joint, "child")
        joint_pose = self._frames.pose(name)
        at = ORIGIN if parent == GROUND else self._frames.pose(parent)
        kind = self._kind(joint)
        seen = relative_pose(joint_pose, self._frames.pose(child))
        same = np.allclose(seen[0], np.eye(3), rtol=0, atol=1e-12) and np.abs(seen[1]).max() < 1e-12
        if same or kind.nv == 0:
            pose = relative_pose(at, self._frames.pose(child) if kind.nv == 0 else joint_pose)
            self._builder.joint(name, kind, parent, child, pose, **self._numbers(joint, kind))
            return
        mover = f"{child}/{name}"
        self._builder.link(mover)
        self._builder.joint(name, kind, parent, mover, relative_pose(at, joint_pose), **self._numbers(joint, kind))
        self._builder.joint(f"{child}_fixed", Fixed(), mover, child, seen)

    def close(self, joint: Element) -> None:
        """Add a loop for a joint whose child is held by another joint."""
        joint_pose, (a, b) = (
            self._frames.pose(joint.text("name")),
            (self._end(joint, tag) for tag in ("parent", "child")),
        )
        first, second = (
            relative_pose(ORIGIN if end == GROUND else self._frames.pose(end), joint_pose) for end in (a, b)
        )
        self._builder.loop(joint.text("name"), self._kind(joint), a, first, b, second)

    def close_balls(self, model: Element) -> None:
        """Ball constraints of Drake, as spherical loops."""
        for ball in drake.ball_constraints(model):
            a, b = (self._link(body, body, "body") for body in (ball.link_a, ball.link_b))
            self._builder.loop(ball.name, Spherical(), a, (np.eye(3), ball.point_a), b, (np.eye(3), ball.point_b))

    def _kind(self, joint: Element) -> Joint:
        if drake.is_joint(joint):
            return drake.kind(joint)
        type_name, known = joint.text("type"), kinds_of_format("sdf")
        if type_name not in known:
            raise joint.error(f"{joint.label} has the type {type_name!r}, which is not read; known: {', '.join(known)}")
        made: Callable[..., Joint] = known[type_name]
        entry = known[type_name].formats["sdf"]
        fields: dict[str, Any] = {
            field: self._axis(joint, tag) for field, tag in zip(entry.axes, AXES[: len(entry.axes)], strict=True)
        }
        fields |= {field: _number(joint, tag, 0.0) / unit for field, tag, unit in entry.numbers}
        try:
            return made(**fields)
        except MechanismError:
            raise
        except ValueError as error:
            raise joint.error(f"{joint.label}: {error}") from None

    def _axis(self, joint: Element, tag: str) -> tuple[float, ...]:
        """The axis in the joint's frame."""
        element = joint.required(tag)
        xyz = element.first("xyz")
        vector = np.array((0.0, 0.0, 1.0) if xyz is None else xyz.content_numbers(3))
        said = xyz.attributes.get("expressed_in", "") if xyz is not None else ""
        if said:
            there = self._frames.model_pose(self._frames.checked(joint, said))[0]
            vector = self._frames.model_pose(joint.text("name"))[0].T @ there @ vector
        return tuple(vector.tolist())

    def _numbers(self, joint: Element, kind: Joint) -> dict[str, Any]:
        """Limits, damping, friction, springs, mimicking, coordinate by coordinate."""
        if drake.is_joint(joint):
            damping = joint.first("drake:damping")
            return {} if damping is None else {"damping": damping.content_numbers(1, kind.nv)}
        tags = ("axis", "axis2")[: kind.nv] if kind.nv <= 2 else ()
        for tag in tags:
            if len(list(joint.all(tag))) > 1:
                warn(joint, f"has several <{tag}>, of which the first is read; keep one of them")
        axes = [axis for axis in map(joint.first, tags) if axis is not None]
        if not axes or kind.nv == 0:
            return {}
        limits = [axis.first("limit") for axis in axes]
        dynamics = [axis.first("dynamics") for axis in axes]
        values: dict[str, Any] = {
            "limits": Limits(
                [unbounded(_number(axis, "lower", -math.inf)) for axis in limits],
                [unbounded(_number(axis, "upper", math.inf)) for axis in limits],
                [_positive(_number(axis, "velocity", math.inf)) for axis in limits],
                [_positive(_number(axis, "effort", math.inf)) for axis in limits],
            )
        }
        for name, tag in (("damping", "damping"), ("friction", "friction"), ("stiffness", "spring_stiffness")):
            values[name] = [_number(axis, tag, 0.0) for axis in dynamics]
        values["rest"] = [_number(axis, "spring_reference", 0.0) for axis in dynamics]
        rule = axes[0].first("mimic")
        if rule is not None and self._mimic:
            ratio, offset = _number(rule, "multiplier", 1.0), _number(rule, "offset", 0.0)
            values["mimic"] = Mimic(rule.text("joint"), ratio, offset - ratio * _number(rule, "reference", 0.0))
        return values


def _positive(limit: float) -> float:
    """A limit; negative numbers mean unlimited."""
    return math.inf if limit < 0.0 else unbounded(limit)


# -- what is seen -------------------------------------------------------------------------------------


def _looks(link: Element, folder: Path | None) -> Iterator[Look]:
    """Visuals of a link; unreadable ones are skipped with a remark."""
    for tag in ("visual", "collision"):
        for element in link.all(tag):
            try:
                shown = _geometry(element.required("geometry"), folder)
            except MechanismError as error:
                warn(element, f"is not drawn: {error}")
                continue
            diffuse = next((colour for material in element.all("material") for colour in material.all("diffuse")), None)
            colour = None if diffuse is None else (*diffuse.content_numbers(3, 4), 1.0)[:4]
            name = element.attributes.get("name", tag)
            at = placed(*_element_pose(element))
            if shown and (tag == "visual" or shown["kind"] == MESH):  # simple ones are shapes of the mechanism
                yield Look(name, link.text("name"), pose=at, colour=colour, collision=tag == "collision", **shown)


def _geometry(geometry: Element, folder: Path | None) -> dict[str, Any]:
    """Kind, size and file of a visual; empty for geometry that is not drawn."""
    shape = geometry.children[0] if geometry.children else geometry
    if shape.tag == MESH:
        scale = shape.first("scale")
        shaping = scaled((1.0, 1.0, 1.0) if scale is None else scale.content_numbers(3))
        folders = () if folder is None else (str(folder.absolute()),)
        return {"kind": MESH, "file": shape.required("uri").content, "folders": folders, "shaping": shaping}
    if shape.tag in ("cylinder", "capsule"):
        return {"kind": shape.tag, "size": (_number(shape, "radius", 1.0), _number(shape, "length", 1.0) / 2.0)}
    if shape.tag == "sphere":
        return {"kind": shape.tag, "size": (_number(shape, "radius", 1.0),)}
    if shape.tag == "ellipsoid":
        return {"kind": shape.tag, "size": shape.required("radii").content_numbers(3)}
    if shape.tag in ("box", "plane"):
        size = shape.required("size").content_numbers(2, 3)
        return {"kind": shape.tag, "size": tuple(side / 2.0 for side in size)}
    return {}


# -- what touches -------------------------------------------------------------------------------------


def _shapes(link: Element, taken: set[str]) -> Iterator[Shape]:
    """Simple collision geometry of a link; other geometry is noted."""
    touches = False
    for collision in link.all("collision"):
        geometry = collision.first("geometry")
        inner = geometry.children[0] if geometry is not None and geometry.children else None
        if geometry is None or inner is None:
            continue
        size = tuple(_geometry(geometry, None).get("size", ())) if inner.tag in TOUCHING else ()
        if inner.tag not in TOUCHING or (size and min(size) <= 0.0):
            omit(collision, f"collision {inner.tag}", NO_SHAPE)
            continue
        name = collision.attributes.get("name", "").strip() or f"{link.text('name')}_collision"
        name = unused_name(f"{link.text('name')}_{name}" if name in taken else name, taken)
        touches = True
        yield Shape(name, link.text("name"), inner.tag, size, _element_pose(collision), _friction(collision))
    if touches:
        omit(link, WITHOUT_GROUND, NO_GROUND)


def _friction(collision: Element) -> float:
    """Coulomb's coefficient, <surface><friction><ode><mu>; default 1."""
    frictions = (friction for surface in collision.all("surface") for friction in surface.all("friction"))
    said = [mu for way in frictions for engine in way.all("ode") for mu in engine.all("mu")]
    return said[0].content_numbers(1)[0] if said else 1.0
