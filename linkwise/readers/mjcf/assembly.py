"""Bodies and sites of a model as links, joints and frames of a mechanism.

A body may have several joints: they act one after the other, each about its own anchor in the body's frame, so that all
but the last move links without mass.  The frame of a link that a joint moves has its origin at the joint's anchor and
the axes of the body; where that is not the body's own frame, this one is welded to it.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from linkwise.mechanics.joints import Fixed
from linkwise.mechanism import GROUND, Builder, Mimic, Pose
from linkwise.mechanism.welding import NOTHING, RigidMass, composed
from linkwise.readers.mjcf.actuators import Rotor
from linkwise.readers.mjcf.document import Settings
from linkwise.readers.mjcf.joints import BodyJoint, numbers_of
from linkwise.readers.mjcf.poses import HERE
from linkwise.readers.mjcf.tree import Node, unused
from linkwise.readers.protocol import warn


class Assembly:
    """Describes bodies and sites to a builder, and knows the frame of each body."""

    def __init__(
        self,
        builder: Builder,
        bodies: list[Node],
        joints: Mapping[str, list[BodyJoint]],
        rotors: Mapping[str, Rotor],
        settings: Settings,
    ) -> None:
        self._builder, self._joints, self._rotors, self._settings = builder, joints, rotors, settings
        self.frame_of = _frames_of(bodies)
        self._link_names = {GROUND, *self.frame_of.values()}
        self._joint_names = {joint.name for of_body in joints.values() for joint in of_body}

    def add_frame(self, name: str, parent: str, pose: Pose = HERE, mass: RigidMass = NOTHING) -> None:
        """A link, with or without mass, that is fixed to another."""
        self._builder.link(name, mass.mass, mass.com, mass.inertia)
        self._builder.joint(unused(f"{name}_fixed", self._joint_names), Fixed(), parent, name, pose)

    def add_body(self, body: Node, mass: RigidMass, mimic_joints: Mapping[str, Mimic]) -> None:
        """The links and joints of one body."""
        assert body.parent is not None
        name, parent = self.frame_of[body.name], self.frame_of[body.parent.name]
        joints = self._joints.get(body.name, [])
        links = [unused(f"{name}/{joint.name}", self._link_names) for joint in joints]
        if joints and not joints[-1].anchor.any():
            links[-1] = name
        # A free body's coordinates are its pose in the world.
        pose = HERE if any(joint.kind.is_free for joint in joints) else body.pose
        anchor = np.zeros(3)
        for joint, link in zip(joints, links, strict=True):
            own = mass if link == name else NOTHING
            self._builder.link(link, own.mass, own.com, own.inertia)
            placed = composed(composed(pose, (np.eye(3), joint.anchor - anchor)), joint.at_zero)
            numbers = numbers_of(joint, body, self._settings, self._rotors.get(joint.name, Rotor()))
            numbers["mimic"] = mimic_joints.get(joint.name)
            self._builder.joint(joint.name, joint.kind, parent, link, placed, **numbers)
            parent, pose, anchor = link, HERE, joint.anchor
        if name not in links:
            self.add_frame(name, parent, composed(pose, (np.eye(3), -anchor)), mass)

    def add_sites(self, body: Node) -> list[tuple[str, str]]:
        """Sites with names, as frames; bodies come first where both have the same name.  (site, frame), ..."""
        added = []
        for site, pose in body.sites:
            name = site.attributes.get("name", "").strip()
            if not name:
                continue
            frame = unused(f"{name}_site" if name in self._link_names else name, self._link_names)
            if frame != name:
                warn(site, 'is the frame of this name with "_site" added: a body or another frame has the name')
            self.add_frame(frame, self.frame_of[body.name], pose)
            added.append((name, frame))
        return added


def _frames_of(bodies: list[Node]) -> dict[str, str]:
    """The frame of each body: of the same name, but for one that is called like the fixed world."""
    frame_of = {body.name: body.name for body in bodies}
    for body in bodies:
        if body.name == GROUND:
            frame_of[GROUND] = unused(f"{GROUND}_body", set(frame_of))
            warn(body.element, f'is read as {frame_of[GROUND]!r}: "{GROUND}" is the fixed world')
    return frame_of
