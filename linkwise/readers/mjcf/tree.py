"""Bodies, joints and sites of a compiled model as links, joints and frames of a mechanism.

A body may have several joints: they act one after the other, each about its own anchor in the body's frame, so that all
but the last move links without mass.  The frame of a link that a joint moves has its origin at the joint's anchor and
the axes of the body; where that is not the body's own frame, this one is welded to it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Fixed, Floating, Joint, kinds_of_format
from linkwise.mechanism import GROUND, Builder, Limits, Mimic, Pose
from linkwise.mechanism.naming import unused_name
from linkwise.mechanism.welding import NOTHING, ORIGIN, RigidMass, composed
from linkwise.readers.mjcf.compiler import Compiled, exact, rotation_of, tidy
from linkwise.readers.mjcf.omissions import note_softness
from linkwise.readers.protocol import FLOATING_BASE, Element, omit, unbounded, warn

WORLD = "world"
_WORDS = ("free", "ball", "slide", "hinge")  # in the order of MuJoCo's numbers
_ROUNDING = 1e-15  # relative, of numbers that are turned from axes to axes
_STOPS = (
    "stops push from the end of the range on, as stiff as inertias ask for: mech.with_limits(joint=lw.Limits(lower, "
    "upper, stiffness=..., damping=...)) sets them"
)
_UNEVEN = (
    "MuJoCo has it along the axes of the world, and apart for position and orientation; here it is along the axes of "
    "the body, so that forces differ.  It may come from a default class; <freejoint/> has none"
)


@dataclass(frozen=True)
class BodyJoint:
    """A joint of a body.

    index       its number in the model; -1 for the one that sets the base free
    anchor      (3,) a point on its axis, in the body's frame; it does not matter for slides
    reference   its coordinate in the pose that the file gives the body (hinges and slides)
    """

    index: int
    name: str
    element: Element
    kind: Joint
    anchor: np.ndarray
    reference: float

    @property
    def zero_pose(self) -> Pose:
        """Pose, in the file's frame, of the moved side at coordinate zero."""
        if self.kind.hinge:
            half = -0.5 * self.reference
            return rotation_of([np.cos(half), *(np.sin(half) * np.array(self.kind.hinge))]), np.zeros(3)
        if self.kind.slide:
            return np.eye(3), -self.reference * np.array(self.kind.slide)
        return ORIGIN


@dataclass
class Rotor:
    """Inertia and damping that actuators add to a joint (times gear squared), and their largest force."""

    armature: float = 0.0
    damping: float = 0.0
    largest_force: float = float("inf")


class Tree:
    """The bodies of a model, with a name for each body and joint.

    names    of the bodies, by their numbers; 0 is the world
    joints   of each body that has some
    """

    def __init__(self, compiled: Compiled, floating_base: bool) -> None:
        self.compiled = compiled
        model = compiled.model
        self.parents = [int(parent) for parent in model.body_parentid]
        self.bodies = range(1, model.nbody)
        self.names = compiled.names("body", model.nbody)
        taken = set(self.names)
        self.names = [name or unused_name(f"body{number}", taken) for number, name in enumerate(self.names)]
        self.joints: dict[int, list[BodyJoint]] = defaultdict(list)
        names = compiled.names("joint", model.njnt)
        taken = set(names)
        for index, name in enumerate(names):
            body = int(model.jnt_bodyid[index])
            name = name or unused_name(f"{self.names[body]}_joint", taken)
            self.joints[body].append(self._joint(index, name))
        if floating_base:
            base = self._base()
            self.joints[base] = [BodyJoint(-1, FLOATING_BASE, compiled.root, Floating(), np.zeros(3), 0.0)]
        self.frame_of = self._frames()
        self.world_pose: list[Pose] = [ORIGIN]
        for body in range(1, model.nbody):
            self.world_pose.append(composed(self.world_pose[self.parents[body]], compiled.pose("body", body)))

    @property
    def all_joints(self) -> list[BodyJoint]:
        """Joints of all bodies, in MuJoCo's order."""
        return [joint for body in self.bodies for joint in self.joints.get(body, ())]

    def mover(self, body: int) -> int:
        """The nearest ancestor with joints; the world if there is none."""
        while body and not self.joints.get(body):
            body = self.parents[body]
        return body

    def mass(self, body: int) -> RigidMass:
        """The mass of a body, in the body's own frame."""
        model = self.compiled.model
        rotation, written = rotation_of(model.body_iquat[body]), self.compiled.inertials.get(body)
        moments = np.diag(model.body_inertia[body]) if written is None else written.inertia
        mass = float(model.body_mass[body]) if written is None else written.mass
        if not (np.isfinite(moments).all() and np.isfinite([mass, *model.body_ipos[body]]).all()):
            element = self.compiled.element("body", body)
            raise element.error(f"{element.label}: its mass or inertia is too large to compute with")
        inertia, largest = rotation @ moments @ rotation.T, float(np.abs(moments).max())
        inertia = _remove_rounding(0.5 * (inertia + inertia.T), largest)
        size = np.sqrt(largest / mass) if mass > 0.0 else 0.0
        return RigidMass(mass, tidy(model.body_ipos[body], size), inertia)

    def _joint(self, index: int, name: str) -> BodyJoint:
        model = self.compiled.model
        word = _WORDS[int(model.jnt_type[index])]
        element, known = self.compiled.element("joint", index), kinds_of_format("mjcf")
        made, anchor = known[word], tidy(model.jnt_pos[index])
        if word == "free":
            return BodyJoint(index, name, element, made(), np.zeros(3), 0.0)
        if not made.formats["mjcf"].axes:
            return BodyJoint(index, name, element, made(), anchor, 0.0)
        kind = made(tuple(exact(model.jnt_axis[index]).tolist()))  # type: ignore[call-arg]
        reference = float(model.qpos0[model.jnt_qposadr[index]])
        return BodyJoint(index, name, element, kind, np.zeros(3) if kind.slide else anchor, reference)

    def _base(self) -> int:
        """The one body that can be made to float."""
        root = self.compiled.root
        fixed = [body for body in self.bodies if not self.parents[body] and not self.joints.get(body)]
        if len(fixed) == 1:
            return fixed[0]
        if not fixed:
            raise root.error("floating_base: no body is fixed to the world, so that none can be set free; leave it out")
        raise root.error(
            f"floating_base: the bodies {', '.join(repr(self.names[body]) for body in fixed)} are fixed to the world; "
            "write <freejoint/> into the one that is to move"
        )

    def _frames(self) -> list[str]:
        """Frame name of each body: its own, unless it is the name of the world."""
        frames = list(self.names)
        for body in self.bodies:
            if self.names[body] == GROUND:
                frames[body] = unused_name(f"{GROUND}_body", set(frames))
                element = self.compiled.element("body", body)
                warn(element, f'is read as {frames[body]!r}: "{GROUND}" is the fixed world')
        return frames


def _remove_rounding(matrix: np.ndarray, largest: float) -> np.ndarray:
    """A matrix without rounding: entries that are zero or equal up to rounding are made so, since MuJoCo rotates
    inertia axes against body axes.
    """
    result, sizes = np.array(matrix), [0.0]
    for size in sorted(set(np.abs(matrix).ravel().tolist())):
        if size - sizes[-1] > _ROUNDING * largest:
            sizes.append(size)
        result = np.where(np.abs(matrix) == size, np.copysign(sizes[-1], matrix), result)
    return result + 0.0


class Assembly:
    """Describes bodies and sites to a builder.

    site_frames   {number of a site: its frame}, of those with names
    """

    def __init__(self, builder: Builder, tree: Tree, rotors: Mapping[str, Rotor]) -> None:
        self._builder, self._tree, self._rotors = builder, tree, rotors
        self._link_names = {GROUND, *tree.frame_of}
        self._joint_names = {joint.name for joint in tree.all_joints}
        self.site_frames: dict[int, str] = {}

    def add_all(self, mimic_joints: Mapping[str, Mimic]) -> None:
        """The world, all bodies, and the sites of all."""
        self._add_frame(WORLD, GROUND)
        for body in self._tree.bodies:
            self._add_body(body, mimic_joints)
        compiled = self._tree.compiled
        names = compiled.names("site", compiled.model.nsite)
        for site, name in enumerate(names):
            if name:
                self._add_site(site, name)

    def _add_frame(self, name: str, parent: str, pose: Pose = ORIGIN, mass: RigidMass = NOTHING) -> None:
        """A link, with or without mass, that is fixed to another."""
        self._builder.link(name, mass.mass, mass.com, mass.inertia)
        self._builder.joint(unused_name(f"{name}_fixed", self._joint_names), Fixed(), parent, name, pose)

    def _add_body(self, body: int, mimic_joints: Mapping[str, Mimic]) -> None:
        """The links and joints of one body."""
        tree = self._tree
        name, parent = tree.frame_of[body], tree.frame_of[tree.parents[body]]
        joints, mass = tree.joints.get(body, []), tree.mass(body)
        links = [unused_name(f"{name}/{joint.name}", self._link_names) for joint in joints]
        if joints and not joints[-1].anchor.any():
            links[-1] = name
        # A free body's coordinates are its pose in the world.
        pose = ORIGIN if any(joint.kind.is_free for joint in joints) else tree.compiled.pose("body", body)
        anchor = np.zeros(3)
        for joint, link in zip(joints, links, strict=True):
            part = mass if link == name else NOTHING
            self._builder.link(link, part.mass, part.com, part.inertia)
            placed = composed(composed(pose, (np.eye(3), joint.anchor - anchor)), joint.zero_pose)
            numbers = numbers_of(joint, tree.compiled, self._rotors.get(joint.name, Rotor()))
            numbers["mimic"] = mimic_joints.get(joint.name)
            self._builder.joint(joint.name, joint.kind, parent, link, placed, **numbers)
            parent, pose, anchor = link, ORIGIN, joint.anchor
        if name not in links:
            self._add_frame(name, parent, composed(pose, (np.eye(3), -anchor)), mass)

    def _add_site(self, site: int, name: str) -> None:
        """A site as a frame; bodies come first where both have the same name."""
        compiled = self._tree.compiled
        frame = unused_name(f"{name}_site" if name in self._link_names else name, self._link_names)
        if frame != name:
            element = compiled.element("site", site)
            warn(element, 'is the frame of this name with "_site" added: a body or another frame has the name')
        parent = self._tree.frame_of[int(compiled.model.site_bodyid[site])]
        self._add_frame(frame, parent, compiled.pose("site", site))
        self.site_frames[site] = frame


# -- numbers of joints ----------------------------------------------------------------------------------


def numbers_of(joint: BodyJoint, compiled: Compiled, rotor: Rotor) -> dict[str, Any]:
    """Armature, damping, friction, springs and limits, as arguments of ``Builder.joint``.

    rotor   armature and effort limits from actuators of the joint
    """
    if joint.index < 0:
        return {}
    model, i, element = compiled.model, joint.index, joint.element
    dof, at = int(model.jnt_dofadr[i]), int(model.jnt_qposadr[i])
    stiffness = 0.0 if compiled.disables("spring") else float(model.jnt_stiffness[i])
    numbers: dict[str, Any] = {
        "armature": float(model.dof_armature[dof]) + rotor.armature,
        "damping": 0.0 if compiled.disables("damper") else float(model.dof_damping[dof]) + rotor.damping,
        "friction": 0.0 if compiled.disables("constraint", "frictionloss") else float(model.dof_frictionloss[dof]),
        "stiffness": stiffness,
        "limits": _limits(joint, compiled, rotor),
    }
    for word, higher in (("stiffness", model.jnt_stiffnesspoly[i]), ("damping", model.dof_dampingpoly[dof])):
        if any(higher):
            omit(element, f"joint with nonlinear {word}", "only the first coefficient is read")
    if stiffness and joint.kind.is_free:
        position, quaternion = np.split(model.qpos_spring[at : at + 7], [3])
        numbers["rest"] = [*quaternion, *position]
    elif stiffness and not joint.kind.is_ball:
        numbers["rest"] = float(model.qpos_spring[at])
    if numbers["friction"]:
        advice = "dry friction is viscous below 0.01 rad/s or m/s"
        note_softness(element, "joint", "friction", advice, model.dof_solref[dof], model.dof_solimp[dof])
    uneven = [key for key in ("armature", "stiffness", "friction") if numbers[key]]
    if uneven and joint.kind.is_free:
        omit(element, f"free joint with {' and '.join(uneven)}", _UNEVEN)
    if model.jnt_springyield[i]:
        omit(element, "joint with springyield", "not read: the spring never yields")
    return numbers


def _limits(joint: BodyJoint, compiled: Compiled, rotor: Rotor) -> Limits:
    model, i, element = compiled.model, joint.index, joint.element
    bounds = {"effort": rotor.largest_force}
    if joint.kind.is_free:
        return Limits()
    low, high = map(float, model.jnt_range[i])
    if (model.jnt_limited[i] or i in compiled.stopped) and not compiled.disables("constraint", "limit"):
        if joint.kind.only_step:
            bounds["lower"], bounds["upper"] = unbounded(low), unbounded(high)
            margin = float(model.jnt_margin[i])
            note_softness(element, "joint", "limit", _STOPS, model.jnt_solref[i], model.jnt_solimp[i], margin)
        else:
            omit(element, "ball joint with limits", "the rotation angle of a ball joint has no limits here")
    elif low > high and element.attributes.get("limited", "auto") == "auto":
        written = element.attributes.get("range", f"{low:g} {high:g}")
        warn(element, f'range="{written}" limits nothing: its lower end, the first, is above its upper one')
    if model.jnt_actfrclimited[i]:
        bounds["effort"] = min(rotor.largest_force, float(np.abs(model.jnt_actfrcrange[i]).max()))
    return Limits(**bounds)


def coordinates(tree: Tree) -> dict[str, float]:
    """Coordinates of hinges and slides in the pose of the file."""
    return {joint.name: joint.reference for joint in tree.all_joints if joint.kind.only_step}
