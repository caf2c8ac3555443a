"""Loops and couplings in a companion file, for formats that cannot express them, such as plain URDF: ``loops=`` of
``linkwise.load``.  In TOML:

    [[loop]]
    name = "tip_pin"
    kind = "revolute"                 # or prismatic, cylindrical, planar, helical, universal, pin_in_slot, spherical,
                                      # fixed; a kind of joint of your own with its module, "my_joints.Geared"
    axis = [0.0, 0.0, 1.0]            # in pose_a; universal joints have axis1 and axis2, pins in slots slide_axis and
                                      # pin_axis, helical joints also pitch
    link_a = "coupler"
    pose_a = {xyz = [0.4, 0.0, 0.0], rpy = [0.0, 0.0, 0.0]}
    link_b = "rocker"
    pose_b = {xyz = [0.3, 0.0, 0.0], quaternion = [1.0, 0.0, 0.0, 0.0]}    # w, x, y, z

    [[coupling]]
    name = "belt"
    ratios = {hip = 9.0, knee = 9.0, motor = -1.0}    # times the coordinates of these joints
    offset = 0.0                                      # what the sum of these is; may be left out

    [[coupling]]
    name = "cam"                                      # a relation of positions, in place of a sum
    joints = ["cam", "lift"]
    formula = "lift - 0.01*(1 - cos(cam))"            # or lines, the last of which is the value: ["x1 = cos(q['cam'])",
                                                      # "q['lift'] - 0.01*(1 - x1)"]

A pose is such a table, a 4x4 matrix, or left out where the frame is the link's own.  The same tables may be given as
dicts in Python.

YAML files beside URDF files need PyYAML.  Gepetto's extended URDF pairs frames, named as links or as joints whose
children they are on:

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
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from linkwise.mechanics.contacts import CONTACTS, Contact
from linkwise.mechanics.joints import KINDS, Fixed, Joint, LoopKind, Revolute, Spherical, Universal
from linkwise.mechanism import Constraint, Coupling, Loop, Mechanism, MechanismError
from linkwise.mechanism.checks import checked_array, did_you_mean
from linkwise.mechanism.edit import moved_by
from linkwise.mechanism.naming import key_of, word_of
from linkwise.mechanism.poses import rotation_from_quaternion, rotation_from_rpy
from linkwise.readers.protocol import MAX_BYTES, Element, warn

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

_COMMON = ("name", "kind", "link_a", "pose_a", "link_b", "pose_b")
_OF_COUPLINGS = ("name", "ratios", "offset", "joints", "formula")
_ROTATIONS = ("rpy", "quaternion", "rotation")
Source = str | os.PathLike[str] | Iterable[Mapping[str, Any] | Constraint]


def add_loops_of(mech: Mechanism, loops: Source) -> Mechanism:
    """The mechanism with loops added: from a TOML file, from TOML text (more than one line), or from a list of dicts
    with the keys of a [[loop]] or [[coupling]] (or of ``Loop`` and ``Coupling`` themselves)."""
    tables, source = _tables(loops)
    try:
        return mech.with_loops(*(_loop(mech, number, table) for number, table in enumerate(tables, 1)))
    except MechanismError as error:
        raise MechanismError(f"{source}: {error}") from None


def companion_of(root: Element, folder: Path | None) -> Path | None:
    """The file named by <loops file="..."/> of a URDF document, in the same folder."""
    named = next((element for element in root.all("loops") if "file" in element.attributes), None)
    if named is None or root.tag != "robot":
        return None
    file = named.text("file")
    if file != Path(file).name:
        raise named.error(f"{file!r} is not the name of a file in the same folder: give loops= the path of yours")
    if folder is None or not (folder / file).is_file():
        raise named.error(
            f"the loops of this mechanism are in {file!r}, which is not here: give loops= its path or text"
        )
    return folder / file


def _tables(loops: Source) -> tuple[list[Any], str]:
    """The tables of all loops, and the name of their source in messages."""
    if isinstance(loops, str) and "\n" in loops:
        return _parsed(loops, "loops"), "loops"
    if isinstance(loops, (str, os.PathLike)):
        file = Path(loops)
        if not file.is_file():
            raise FileNotFoundError(f"there is no file {file} of loops")
        try:
            return _parsed(file.read_text(encoding="utf-8-sig"), str(file)), str(file)
        except UnicodeDecodeError:
            raise MechanismError(f"{file} is no text file") from None
    if isinstance(loops, (Mapping, Loop, Coupling)) or not isinstance(loops, Iterable):
        raise MechanismError(
            f"loops must be the path of a TOML file, its text or a list of dicts, not a {type(loops).__name__}"
        )
    return list(loops), "loops"


def _parsed(text: str, source: str) -> list[Any]:
    try:
        head = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise MechanismError(f"{source}: this is not TOML: {error}") from None
    unknown = set(head) - {"loop", "coupling"}
    if unknown:
        raise MechanismError(
            f"{source}: unknown key {min(unknown)!r}; the file has one [[loop]] for each loop, and one [[coupling]] "
            "for each coupling of joints"
        )
    loops, couplings = head.get("loop", []), head.get("coupling", [])
    if not (isinstance(loops, list) and isinstance(couplings, list) and (loops or couplings)):
        raise MechanismError(f"{source}: loops are written as [[loop]], one for each; there is none")
    return [
        *loops,
        *({"ratios": None, **coupling} if isinstance(coupling, dict) else coupling for coupling in couplings),
    ]


def _loop(mech: Mechanism, number: int, table: Any) -> Constraint:
    if isinstance(table, (Loop, Coupling)):
        return table
    if not isinstance(table, Mapping):
        raise MechanismError(f"loop {number} must be a table of {', '.join(_COMMON)}, not {table!r}")
    label = f"loop {number}" + (f" ({table['name']!r})" if isinstance(table.get("name"), str) else "")
    if "ratios" in table:
        return _coupling(label, table)
    for key in ("name", "kind", "link_a", "link_b"):
        if not isinstance(table.get(key), str) or not table[key].strip():
            problem = f"is {table[key]!r}" if key in table else "is missing"
            raise MechanismError(f"{label}: {key} {problem}; a string is needed")
    kind = _kind(label, table)
    for key in ("link_a", "link_b"):
        if table[key] not in mech.frames:
            raise MechanismError(
                f"{label}: mechanism {mech.name!r} has no link {table[key]!r} for {key}: "
                + did_you_mean(table[key], mech.frames)
            )
    poses = {key: _pose(f"{key} of {label}", table.get(key)) for key in ("pose_a", "pose_b")}
    return Loop(table["name"], kind, table["link_a"], poses["pose_a"], table["link_b"], poses["pose_b"])


def _coupling(label: str, table: Mapping[str, Any]) -> Coupling:
    for key in table:
        if key not in _OF_COUPLINGS:
            raise MechanismError(f"{label}: unknown key {key!r} of a coupling: {did_you_mean(key, _OF_COUPLINGS)}")
    if "formula" in table or "joints" in table:
        return _relation(label, table)
    if not isinstance(table["ratios"], Mapping):
        raise MechanismError(f"{label}: a coupling needs ratios = {{joint = ratio, ...}}, not {table['ratios']!r}")
    return Coupling(table.get("name", ""), table["ratios"], table.get("offset", 0.0))


def _relation(label: str, table: Mapping[str, Any]) -> Coupling:
    if table["ratios"] is not None:
        raise MechanismError(f"{label}: a coupling has ratios, or joints and a formula, not both")
    missing = [key for key in ("joints", "formula") if key not in table]
    if missing or not isinstance(table["formula"], (str, list)) or not isinstance(table["joints"], list):
        raise MechanismError(f'{label}: a relation is joints = ["cam", "lift"] and formula = "lift - 0.01*cos(cam)"')
    return Coupling(table.get("name", ""), tuple(table["joints"]), table.get("offset", 0.0), relation=table["formula"])


def _kinds() -> dict[str, type[LoopKind]]:
    """Kinds of loop joints and contacts by their names in files: pin_in_slot for PinInSlot."""
    closing = [(name, kind) for name, kind in KINDS.items() if getattr(kind, "nv", 6) < 6]
    classes: list[tuple[str, type[LoopKind]]] = [*closing, *CONTACTS.items()]
    return {word_of(name): kind for name, kind in classes}


def _kind(label: str, table: Mapping[str, Any]) -> LoopKind:
    """The joint or contact of a table; unknown keys are refused, keys with defaults may be missing."""
    kinds, word = _kinds(), table["kind"]
    meant = {known.replace("_", ""): known for known in kinds if "." not in known}
    name = word if word in kinds else meant.get(word.lower().replace("_", ""), "")
    if not name:
        raise MechanismError(f"{label}: unknown kind {word!r}: {did_you_mean(word.lower(), kinds)}")
    record: Any = kinds[name]
    fields = {key_of(field.name): field for field in dataclasses.fields(record) if field.init}
    known = (*_COMMON, *fields)
    for key in table:
        if key not in known:
            raise MechanismError(f"{label}: unknown key {key!r} of a {name} loop: {did_you_mean(key, known)}")
    values: dict[str, Any] = {}
    for key, field in fields.items():
        like = table.get(key) if field.default is dataclasses.MISSING else field.default
        shape = np.asarray(like, dtype=object).shape
        if isinstance(like, (str, bool)) and isinstance(table.get(key, like), type(like)):
            values[field.name] = table.get(key, like)
            continue
        if key not in table and issubclass(record, Contact) and field.default is not dataclasses.MISSING:
            continue
        if key not in table:
            raise MechanismError(f"{label}: a {name} loop needs {key} = {'[x, y, z]' if shape == (3,) else '...'}")
        numbers = checked_array(f"{key} of {label}", table[key], shape).tolist()
        values[field.name] = tuple(numbers) if shape else numbers
    try:
        return record(**values)
    except ValueError as error:
        raise MechanismError(f"{label}: {error}") from None


def _pose(label: str, value: Any) -> Any:
    """A pose as ``Loop`` takes it: None, (rotation, position) or 4x4."""
    if not isinstance(value, Mapping):
        return value
    unknown = [key for key in value if key not in ("xyz", *_ROTATIONS)]
    if unknown:
        raise MechanismError(f"{label}: unknown key {unknown[0]!r}: {did_you_mean(unknown[0], ('xyz', *_ROTATIONS))}")
    rotations = [key for key in _ROTATIONS if key in value]
    if len(rotations) > 1:
        raise MechanismError(f"{label}: {' and '.join(rotations)} both give its orientation; give one of them")
    position = checked_array(f"xyz of {label}", value.get("xyz", (0.0, 0.0, 0.0)), (3,))
    return (_rotation(label, rotations[0], value[rotations[0]]) if rotations else None), position


def _rotation(label: str, key: str, value: Any) -> Any:
    if key == "rotation":
        return checked_array(f"rotation of {label}", value, (3, 3))
    if key == "rpy":
        return rotation_from_rpy(tuple(checked_array(f"rpy of {label}", value, (3,)).tolist()))
    return rotation_from_quaternion(value, f"quaternion of {label}")


# -- YAML files beside URDF files ------------------------------------------------------------------------


ENDINGS = (".yaml", ".yml")
FIXED = "FIXED"  # the word for joints that do not move
_AXES = {"X": (1.0, 0.0, 0.0), "Y": (0.0, 1.0, 0.0), "Z": (0.0, 0.0, 1.0)}
_PAIRS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")  # keys of Gepetto's files
_HINGES = ("closures", "dependent", "independent")  # keys of solidworks_urdf_exporter2
_HINGE = ("link_a", "link_b", "point", "axis")


@dataclasses.dataclass(frozen=True)
class Companion:
    """A YAML file of loops, and the URDF document that it belongs to."""

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
            mech = (
                moved_by(mech, joint, _yaml_joint(joint, word)) if word.upper() != FIXED else mech.with_locked([joint])
            )
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
    made = Companion(str(file), _parse_yaml(file), root)
    for key in set(map(str, made.table)) - {*_PAIRS, *_HINGES}:
        warn(root, f"has loops in {file.name}, of which {key!r} is not read")
    dependent = made.names("dependent")
    for joint in root.all("joint"):
        if joint.attributes.get("name") in dependent:
            joint.children = [child for child in joint.children if child.tag != "mimic"]
    return made


def _parse_yaml(file: Path) -> Mapping[str, Any]:
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


def _yaml_joint(joint: str, word: str) -> Joint:
    """The joint for a word of ``joint_type``."""
    if word.upper() == "SPHERICAL":
        return Spherical()
    axes = "XY" if word.upper() == "CARDAN" else word.upper().removeprefix("UJOINT_")
    if len(axes) == 2 and axes[0] != axes[1] and set(axes) <= set(_AXES):
        return Universal(_AXES[axes[0]], _AXES[axes[1]])
    raise MechanismError(
        f"joint_type of {joint!r} is {word!r}; known: SPHERICAL, FIXED, CARDAN and UJOINT_ with two of X, Y, Z"
    )


def _pair(mech: Mechanism, children: Mapping[str, str], pair: Any, word: Any) -> Loop:
    """A loop between two coincident frames, or their origins. ``children``: the link that each joint moves."""
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
    """A hinge between two links; its point and axis are in the frame of the root at joint coordinates zero."""
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
