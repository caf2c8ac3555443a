"""SRDF, the semantic companion of URDF: groups of joints and named postures of a mechanism that is loaded already.

Groups are made of joints, links (the joints that move them), chains and other groups; in a ``<group_state>`` each joint
has as many numbers as coordinates.  A virtual joint, or ``root_joint``, is the joint of a floating base if there is
one, with ``x y z qx qy qz qw``.  What is about collisions and end effectors is skipped.
"""

from __future__ import annotations

import os
from collections.abc import Collection

import numpy as np

from linkwise.mechanism import Body, Mechanism, did_you_mean, require_mechanism
from linkwise.mechanism.metadata import SAME_COORDINATE
from linkwise.readers.protocol import FLOATING_BASE, Element, document_of, parse_xml, warn

_ROOT_JOINT = "root_joint"  # what Pinocchio calls the joint of a floating base

Values = dict[str, tuple[float, ...]]


def load_srdf(mech: Mechanism, path_or_text: str | os.PathLike[str], strict: bool = True) -> Mechanism:
    """The mechanism with the groups and postures of an SRDF file, or of text that starts with '<'.

    A ``<group_state>`` becomes the posture of its name, ``mech.postures["home"]``; joints that it leaves out are as in
    ``mech.initial``.  States of one name that belong to several groups are one posture of them all; each is a posture
    ``"group/home"`` as well, and only that where they contradict each other.

    strict   joints, links and groups that do not exist are an error; otherwise they are left out with a warning

    The value of a mimic joint that contradicts that of the joint it mimics is left out with a warning.
    """
    require_mechanism(mech)
    document, source, _ = document_of(path_or_text, "SRDF")
    root = parse_xml(document, source)
    if root.tag != "robot":
        raise root.error(f"an SRDF file starts with <robot>, not <{root.tag}>")
    reader = _Reader(mech, root, strict)
    mech = mech.metadata.with_groups(reader.groups()).metadata.with_postures(reader.postures())
    root.findings.warn_of_remarks()
    return mech


class _Reader:
    def __init__(self, mech: Mechanism, root: Element, strict: bool) -> None:
        self._mech, self._root, self._strict = mech, root, strict
        self._groups = {group.text("name"): group for group in root.all("group")}
        self._virtual = {_ROOT_JOINT, *(joint.text("name") for joint in root.all("virtual_joint"))}

    def _is_known(self, element: Element, kind: str, name: str, known: Collection[str]) -> bool:
        """Whether a name exists; if not, an error or a remark."""
        if name in known:
            return True
        message = f"names the {kind} {name!r}, which mechanism {self._mech.name!r} does not have"
        if self._strict:
            hint = did_you_mean(name, known)
            raise element.error(f"{element.label} {message}: {hint}; strict=False leaves such out")
        warn(element, f"{message}; it is left out")
        return False

    # -- groups ---------------------------------------------------------------------------------------------------

    def groups(self) -> dict[str, tuple[str, ...]]:
        """The moving joints of each group, in the order of the mechanism."""
        members = {name: self._joints(group, (name,)) for name, group in self._groups.items()}
        order = self._mech.joint_names
        return {name: tuple(joint for joint in order if joint in joints) for name, joints in members.items()}

    def _joints(self, group: Element, inside: tuple[str, ...]) -> set[str]:
        joints: set[str] = set()
        for part in group.children:
            if part.tag == "joint":
                joints |= self._joint(part)
            elif part.tag == "link":
                joints |= {body.joint for body in self._mech.bodies if body.link in self._links(part, "name")}
            elif part.tag == "chain":
                joints |= self._chain(part)
            elif part.tag == "group":
                name = part.text("name")
                if name in inside:
                    raise part.error(f"{part.label}: the group is a part of itself; leave it out here")
                if self._is_known(part, "group", name, self._groups):
                    joints |= self._joints(self._groups[name], (*inside, name))
            else:
                known = ("joint", "link", "chain", "group")
                raise part.error(f"<{part.tag}> is unknown inside {group.label}: {did_you_mean(part.tag, known)}")
        return joints

    def _joint(self, element: Element) -> set[str]:
        """The moving joint that an element names; empty for a fixed joint."""
        name = element.text("name")
        if name in self._mech.joint_names:
            return {name}
        if name in self._virtual:
            return {FLOATING_BASE} & set(self._mech.joint_names)
        if name not in self._mech.annotations.fixed_joints:
            self._is_known(element, "joint", name, self._mech.joint_names)
        return set()

    def _links(self, element: Element, *attributes: str) -> list[str]:
        """Existing links named by attributes of an element."""
        names = [element.text(attribute) for attribute in attributes]
        return [name for name in names if self._is_known(element, "link", name, self._mech.frames)]

    def _chain(self, chain: Element) -> set[str]:
        """The joints between two links."""
        ends = self._links(chain, "base_link", "tip_link")
        if len(ends) < 2:
            return set()
        base, tip = (set(self._mech.tree.path(self._mech.frame(end).body)) for end in ends)
        return {self._mech.joint_names[index] for index in base ^ tip}

    # -- postures -------------------------------------------------------------------------------------------------

    def postures(self) -> dict[str, Values]:
        """Joint coordinates by state name, prefixed by the group if several groups have it."""
        states: dict[str, dict[str, Values]] = {}
        for state in self._root.all("group_state"):
            name, group = state.text("name"), state.attributes.get("group", "")  # some files have no groups
            if group:
                self._is_known(state, "group", group, self._groups)
            if group in states.setdefault(name, {}):
                raise state.error(f"{state.label}: group {group!r} has two states of this name; names must be unique")
            states[name][group] = self._coordinates(state)
        postures: dict[str, Values] = {}
        for name, of_groups in states.items():
            if len(of_groups) > 1:
                postures |= {f"{group}/{name}": values for group, values in of_groups.items()}
            merged: Values = {}
            for values in of_groups.values():
                merged |= values
            if all(
                merged[joint] == coordinates for values in of_groups.values() for joint, coordinates in values.items()
            ):
                postures[name] = merged
        return postures

    def _coordinates(self, state: Element) -> Values:
        """Independent coordinates of a state; a mimic joint's value sets its leader."""
        coordinates: Values = {}
        mimics: list[tuple[Element, Body, float]] = []
        for element in state.all("joint"):
            for joint in self._joint(element):
                body = self._mech.bodies[self._mech.body_index(joint)]
                element.text("value")
                values = element.numbers("value", body.kind.nq)
                if body.kind.is_free:
                    values = _floating(element, values)
                if not body.mimic:
                    coordinates[joint] = values
                else:
                    mimics.append((element, body, values[0]))
        for element, body, value in mimics:
            self._settle(state, element, body, value, coordinates)
        return coordinates

    def _settle(self, state: Element, element: Element, body: Body, value: float, coordinates: Values) -> None:
        """Set the leader from a mimic joint's value if it is not set; raise on contradiction."""
        mimic, entry = body.mimic, self._mech.coordinates.place(body.joint)
        assert mimic is not None
        if mimic.ratio and mimic.joint not in coordinates:
            coordinates[mimic.joint] = (float(entry.q_at(value)),)
        follows = mimic.ratio * coordinates[mimic.joint][0] + mimic.offset if mimic.ratio else mimic.offset
        if abs(value - follows) <= SAME_COORDINATE:
            return
        warn(
            element,
            f"in {state.label} mimics {mimic.joint!r} and is at {follows:g} with it, not at {value:g}, which is left "
            "out: give one of the two joints",
        )


def _floating(element: Element, values: tuple[float, ...]) -> tuple[float, ...]:
    """``x y z qx qy qz qw`` as ``qw qx qy qz x y z``."""
    x, y, z, *vector, scalar = values
    quaternion = np.array([scalar, *vector])
    length = float(np.linalg.norm(quaternion))
    if length == 0.0:
        raise element.error(f"{element.label}: the quaternion qx qy qz qw is zero; write 0 0 0 1 for no rotation")
    return (*(quaternion / length).tolist(), x, y, z)
