"""Notes on ignored parts of a URDF file: constraints, drives, unknown elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from linkwise.mechanism.checks import close_names
from linkwise.readers import drake
from linkwise.readers.protocol import Element, omit

# What is read elsewhere, what neither constrains nor drives, and words of what constrains.
_READ = ("link", "joint", "loop", "coupling", "transmission", "ros2_control", "gravity")
_SILENT = ("material", "sensor", "mujoco", "author", "verify_license")
_CONSTRAINING = ("loop", "coupling", "constraint", "bushing", "gear", "closure", "cable", "equality")


def note_omissions(root: Element, joints: Sequence[Element], known: Mapping[str, tuple[str, ...]]) -> None:
    """Note what is not read; ``known`` are the children that elements may have."""
    settled = {joint.text("name") for joint in joints if joint.first("mimic") or joint.text("type") == "fixed"}
    drake.note_omissions(root)
    for element in root.children:
        if drake.is_known(element):
            continue
        if element.tag == "gazebo":
            _note_gazebo(element, settled)
        elif element.tag == "actuator":
            omit(element, "actuator", "not read: joint forces are given as tau")
        elif element.tag in ("loop", "coupling"):
            for tag in (child.tag for child in element.children if child.tag not in known[element.tag]):
                omit(element, f"{element.tag} with {tag}", f"<{tag}> is not read: the {element.tag} holds without it")
        elif element.tag not in (*_READ, *_SILENT) and not (element.tag == "loops" and "file" in element.attributes):
            _note_unknown(element)
    for joint in joints:
        for child in joint.children:
            if child.tag in known[joint.tag]:
                continue
            if close_names(child.tag.lower(), ("mimic",)):
                advice = 'not read as <mimic joint="...">, so that the joint moves freely: fix the name'
                omit(child, "misspelt <mimic>", advice, constrains=True)
            else:
                _note_unknown(child)


def _note_unknown(element: Element) -> None:
    if any(word in element.tag.lower() for word in _CONSTRAINING):
        advice = (
            "not read: write <loop> or <coupling> of URDF+, or give loops by loops= of load or mech.with_loops, "
            "couplings as <mimic> of a joint"
        )
        omit(element, element.tag.rpartition(":")[2], advice, constrains=True)
    else:
        omit(element, "unknown element", "not read")


def _note_gazebo(gazebo: Element, settled: set[str]) -> None:
    """Gazebo's own elements may close loops, tie joints (``settled`` ones are tied or fixed anyway) or drive."""
    for child in gazebo.children:
        if child.tag == "joint":
            advice = "not read: write it as <loop> of URDF+, or give the loop by loops= of load"
            omit(child, "Gazebo joint", advice, constrains=True)
        elif child.tag == "plugin":
            tied = child.first("mimicJoint")
            if tied and tied.content in settled:
                continue
            mimics = "mimic" in "".join(child.attributes.values()).lower()
            advice = "not read: write <mimic> at the joint" if mimics else "not read"
            omit(child, "Gazebo mimic plugin" if mimics else "Gazebo plugin", advice, constrains=mimics)
