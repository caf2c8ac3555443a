"""Loops of a URDF file in YAML beside it: ``lw.load("robot.urdf", loops="robot.yaml")``.  Needs PyYAML.

Gepetto's extended URDF pairs frames, named as links or as joints whose children they are on:

    closed_loop: [[tip_a, tip_b]]
    type: ["6d"]                       # or "3d": only the points coincide
    name_mot: [motor_1, motor_2]       # joints with motors
    joint_name: [ball]                 # joints that are not what the URDF file says
    joint_type: [SPHERICAL]            # or UJOINT_XY, CARDAN, ...: about x, then about y; FIXED

``loop_closures.yaml`` of solidworks_urdf_exporter2 has hinges, in the frame of the root link while no joint has moved:

    closures: [{link_a: coupler, link_b: rocker, point: [0.4, 0.0, 0.1], axis: [0.0, 0.0, 1.0]}]
    dependent: [coupler_joint]         # these do not mimic others: loops determine them
    independent: [crank_joint]
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Fixed, Joint, Revolute, Spherical, Universal
from linkwise.mechanism import Loop, Mechanism, MechanismError
from linkwise.mechanism.checks import checked_array, did_you_mean
from linkwise.mechanism.edit import moved_by
from linkwise.readers.protocol import MAX_BYTES, Element, warn

ENDINGS = (".yaml", ".yml")
FIXED = "FIXED"  # the word for joints that do not move
_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
_PAIRS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")  # keys of Gepetto's files
_HINGES = ("closures", "dependent", "independent")  # keys of solidworks_urdf_exporter2
_HINGE = ("link_a", "link_b", "point", "axis")


@dataclasses.dataclass(frozen=True)
class Companion:
    """A YAML file of loops, with the parsed URDF document."""

    source: str
    table: Mapping[str, Any]
    root: Element

    def close(self, mech: Mechanism) -> Mechanism:
        """The mechanism with the loops and joint changes of the file."""
        try:
            return self._add_hinges(mech) if "closures" in self.table else self._add_pairs(mech)
        except MechanismError as error:
            raise MechanismError(f"{self.source}: {error}") from None

    def names(self, key: str) -> list[str]:
        """Names under a key; empty if it is missing."""
        names = self.table.get(key) or []
        if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
            raise MechanismError(f"{self.source}: {key} is a list of names, not {names!r}")
        return names

    def _add_pairs(self, mech: Mechanism) -> Mechanism:
        names, types = self.names("joint_name"), self.names("joint_type")
        if len(names) != len(types):
            raise MechanismError(f"joint_name has {len(names)} joints, joint_type {len(types)}: give a type for each")
        for joint, word in zip(names, types, strict=True):
            mech = moved_by(mech, joint, _kind(joint, word)) if word.upper() != FIXED else mech.with_locked([joint])
        pairs, words = self.table.get("closed_loop") or [], self.table.get("type") or []
        if not isinstance(pairs, list) or not isinstance(words, list) or len(words) not in (0, len(pairs)):
            raise MechanismError("closed_loop is a list of pairs of frames, and type has one word for each")
        joints = self.root.all("joint")
        children = {joint.text("name"): joint.required("child").text("link") for joint in joints}
        words = words or ["6d"] * len(pairs)
        loops = [_pair(mech, children, pair, word) for pair, word in zip(pairs, words, strict=True)]
        motors = self.names("name_mot")
        mech = mech.with_loops(*loops)
        return mech.metadata.with_actuated(*motors) if motors else mech

    def _add_hinges(self, mech: Mechanism) -> Mechanism:
        hinges, loops, names = self.table["closures"], [], {loop.name for loop in mech.loops}
        if not isinstance(hinges, list) or not hinges:
            raise MechanismError(f"closures is a list of hinges with {', '.join(_HINGE)}, not {hinges!r}")
        for number, hinge in enumerate(hinges, 1):
            if not isinstance(hinge, Mapping) or not set(_HINGE) <= set(hinge):
                raise MechanismError(f"closure {number} needs {', '.join(_HINGE)}, not {hinge!r}")
            name = f"{hinge['link_a']}_{hinge['link_b']}"
            name = f"{name}_{number}" if name in names else name
            names.add(name)
            loops.append(_hinge(mech, f"closure {number}", name, hinge))
        independent = self.names("independent")
        for joint in independent:
            mech.body_index(joint)
        known = dataclasses.replace(mech.annotations, independent=tuple(independent) or mech.annotations.independent)
        return dataclasses.replace(mech.with_loops(*loops), annotations=known)


def companion(loops: Any, root: Element) -> Companion | None:
    """The YAML file that ``loops`` names, for the URDF document ``root``; None if it names none.

    Joints that its loops determine lose their ``<mimic>``.
    """
    if not isinstance(loops, (str, os.PathLike)) or not str(loops).lower().endswith(ENDINGS) or "\n" in str(loops):
        return None
    file = Path(loops)
    if not file.is_file():
        raise FileNotFoundError(f"there is no file {file} of loops")
    if root.tag != "robot":
        raise MechanismError(f"{file}: loops in YAML belong to URDF files, and {root.source} starts with <{root.tag}>")
    made = Companion(str(file), _parsed(file), root)
    for key in set(map(str, made.table)) - {*_PAIRS, *_HINGES}:
        warn(root, f"has loops in {file.name}, of which {key!r} is not read")
    dependent = made.names("dependent")
    for joint in root.all("joint"):
        if joint.attributes.get("name") in dependent:
            joint.children = [child for child in joint.children if child.tag != "mimic"]
    return made


def _parsed(file: Path) -> Mapping[str, Any]:
    try:
        import yaml
    except ImportError:
        raise ImportError(f"{file}: loops in YAML need PyYAML: pip install 'linkwise[yaml]'") from None
    if file.stat().st_size > MAX_BYTES:
        raise MechanismError(f"{file}: no more than {MAX_BYTES} bytes are read")
    try:
        table = yaml.safe_load(file.read_bytes())
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise MechanismError(f"{file}: this is not YAML: {' '.join(str(error).split())[:300]}") from None
    if not isinstance(table, Mapping) or not {"closed_loop", "closures"} & set(map(str, table)):
        raise MechanismError(
            f"{file}: loops in YAML have closed_loop, as Gepetto's extended URDF, or closures, as loop_closures.yaml "
            "of solidworks_urdf_exporter2; this has neither"
        )
    return table


def _kind(joint: str, word: str) -> Joint:
    """The joint that a word of ``joint_type`` means."""
    if word.upper() == "SPHERICAL":
        return Spherical()
    axes = "XY" if word.upper() == "CARDAN" else word.upper().removeprefix("UJOINT_")
    if len(axes) == 2 and axes[0] != axes[1] and set(axes) <= set(_AXES):
        return Universal(_AXES[axes[0]], _AXES[axes[1]])
    raise MechanismError(
        f"joint_type of {joint!r} is {word!r}; known: SPHERICAL, FIXED, CARDAN and UJOINT_ with two of X, Y, Z"
    )


def _pair(mech: Mechanism, children: Mapping[str, str], pair: Any, word: Any) -> Loop:
    """Two frames that coincide, or their origins.  ``children``: the link that each joint moves."""
    if not (isinstance(pair, list) and len(pair) == 2 and all(isinstance(name, str) for name in pair)):
        raise MechanismError(f"closed_loop: {pair!r} is no pair of names of frames")
    kinds = {"3d": Spherical(), "6d": Fixed()}
    if str(word).lower() not in kinds:
        raise MechanismError(f"type of closed_loop {pair} is {word!r}, which is neither 3d nor 6d")
    links = [children.get(name, name) for name in pair]
    for name, link in zip(pair, links, strict=True):
        if link not in mech.frames:
            known = [*mech.frames, *children]
            raise MechanismError(f"closed_loop: there is no frame {name!r}: {did_you_mean(name, known)}")
    here = np.eye(3), np.zeros(3)
    return Loop("_".join(pair), kinds[str(word).lower()], links[0], here, links[1], here)


def _hinge(mech: Mechanism, label: str, name: str, hinge: Mapping[str, Any]) -> Loop:
    """A hinge between two links at a point and about an axis in the frame of the root, where no joint has moved."""
    from linkwise.dynamics.trees import frame_pose, neutral

    point, axis = (checked_array(f"{key} of {label}", hinge[key], (3,)) for key in ("point", "axis"))
    sides: list[Any] = []
    for key in ("link_a", "link_b"):
        if hinge[key] not in mech.frames:
            hint = did_you_mean(str(hinge[key]), mech.frames)
            raise MechanismError(f"{label}: there is no link {hinge[key]!r} for {key}: {hint}")
        pose = frame_pose(mech, neutral(mech), hinge[key])
        sides += [hinge[key], (pose[:3, :3].T, pose[:3, :3].T @ (point - pose[:3, 3]))]
    try:
        return Loop(name, Revolute(tuple(axis.tolist())), *sides)
    except ValueError as error:
        raise MechanismError(f"{label}: {error}") from None
