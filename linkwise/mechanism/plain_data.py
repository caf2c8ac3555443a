"""Mechanisms as dictionaries, lists, strings and numbers, for files, without loss.

JSON has no infinite numbers: missing limits are the strings "inf" and "-inf".
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np

from linkwise.mechanics import joints
from linkwise.mechanics.contacts import CONTACTS
from linkwise.mechanism.annotation import Annotations, Note
from linkwise.mechanism.checks import MechanismError, did_you_mean
from linkwise.mechanism.drives import Drive, Instant
from linkwise.mechanism.elements import RECORDS
from linkwise.mechanism.looks import Look
from linkwise.mechanism.model import Mechanism
from linkwise.mechanism.parts import Body, Constraint, Coupling, Frame, Limits, Loop, Mimic, evaluated
from linkwise.mechanism.relations import Formula, formula_of
from linkwise.mechanism.shapes import ContactLaw, ContactPair, Shape

FORMAT = 1


def to_data(mech: Mechanism) -> dict[str, Any]:
    """The mechanism as data that JSON can hold; numbers keep all their digits."""
    return {
        "format": FORMAT,
        "name": mech.name,
        "gravity": mech.gravity.tolist(),
        "bodies": [_fields(body) for body in mech.bodies],
        "frames": [_fields(frame) for frame in mech.frames.values()],
        "loops": [_constraint_data(loop) for loop in mech.loops],
        "annotations": _fields(mech.annotations),
        "elements": [{"record": type(element).__name__, **_fields(element)} for element in mech.elements],
        "switched_off": plain(mech.switched_off),
        "shapes": [_fields(shape) for shape in mech.shapes],
        "contact_pairs": [_fields(pair) for pair in mech.contact_pairs],
    }


def from_data(data: Mapping[str, Any]) -> Mechanism:
    """The inverse of ``to_data``."""
    if data.get("format") != FORMAT:
        raise MechanismError(f"mechanism data of format {data.get('format')!r}; this version reads format {FORMAT}")
    try:
        return Mechanism(
            data["name"],
            tuple(_body(body) for body in data["bodies"]),
            {frame["name"]: Frame(**frame) for frame in data["frames"]},
            data["gravity"],
            tuple(map(_constraint, data["loops"])),
            _annotations(data.get("annotations", {})),  # files of earlier versions have none, nor what follows
            tuple(map(_element, data.get("elements", ()))),
            _tuples(data.get("switched_off", [])),
            tuple(Shape(**shape) for shape in data.get("shapes", ())),
            tuple(map(_contact_pair, data.get("contact_pairs", ()))),
        )
    except (KeyError, TypeError, AttributeError) as error:
        raise MechanismError(f"mechanism data with a missing or strange entry: {error}") from error


def holds_functions(loop: Constraint) -> bool:
    """Whether a constraint contains a function: a prescribed motion in time, or ratios of coordinates. Data cannot
    hold functions, but relations of positions are stored as formulas.
    """
    ratios = isinstance(loop, Coupling) and loop.ratios_change and loop.relation is None
    return isinstance(loop.drive, Drive) or ratios


def without_functions(mech: Mechanism) -> tuple[Mechanism, list[str]]:
    """The mechanism without constraints that contain functions, and their names."""
    functions = [loop.name for loop in mech.loops if holds_functions(loop)]
    if not functions:
        return mech, functions
    return dataclasses.replace(mech, loops=tuple(loop for loop in mech.loops if loop.name not in functions)), functions


def _fields(value: Any) -> dict[str, Any]:
    return {f.name: plain(getattr(value, f.name)) for f in dataclasses.fields(value)}


def _constraint_data(loop: Constraint) -> dict[str, Any]:
    if not isinstance(loop, Coupling) or loop.relation is None:
        return _fields(loop)
    joints, formula = relation_data(loop)
    bare = dataclasses.replace(loop, ratios={joint: 1.0 for joint in joints}, relation=None)
    return {**_fields(bare), "ratios": joints, "relation": formula}


def relation_data(coupling: Coupling) -> tuple[list[str], list[str]]:
    """The joints of a coupling by a relation, and that as lines of text."""
    joints = [joint for joint, _ in coupling.ratios]
    relation: Any = coupling.relation
    if not isinstance(relation, Formula):
        relation = formula_of(lambda named: evaluated(coupling.relation, named), joints)
    return joints, list(relation.lines)


def plain(value: Any) -> Any:
    """A value of a mechanism's parts as data."""
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, tuple):
        return [plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return str(value)
    if isinstance(value, Drive) or callable(value):
        raise MechanismError(
            "drives are functions of time, and ratios may be functions of coordinates, which files do not hold: save "
            "mech.spanning_tree, or mech.constraints.at_time(t)"
        )
    if isinstance(value, joints.LoopKind):
        return _joint_data(value)
    return _fields(value) if dataclasses.is_dataclass(value) else value


def number(value: Any) -> Any:
    """A number or a list of numbers as data; infinite ones become "inf" and "-inf"."""
    if isinstance(value, (list, tuple)):
        return [number(item) for item in value]
    return float(value) if isinstance(value, str) else value


def _body(data: Mapping[str, Any]) -> Body:
    mimic = None if data["mimic"] is None else Mimic(**data["mimic"])
    limits = Limits(**{name: number(values) for name, values in data["limits"].items()})
    return Body(**{**data, "kind": _joint(data["kind"]), "limits": limits, "mimic": mimic})


def _constraint(data: Mapping[str, Any]) -> Constraint:
    """A constraint from data: loops have a kind of joint, couplings have ratios. Files of earlier versions have no
    drives.
    """
    drive = data.get("drive")
    fields = {**data, "drive": None if drive is None else Instant(*drive)}
    return Coupling(**fields) if "ratios" in fields else Loop(**{**fields, "kind": _joint(fields["kind"])})


def _contact_pair(data: Mapping[str, Any]) -> ContactPair:
    law = ContactLaw(**{name: number(value) for name, value in data["law"].items()})
    felt = {name: number(data.get(name, math.inf)) for name in ("mass", "carried", "load")}
    if "step" in data:  # of files of earlier versions
        felt["mass"] = number(data["step"]) * law.damping
    return ContactPair(data["shape_a"], data["shape_b"], law, **felt)


def _annotations(data: Mapping[str, Any]) -> Annotations:
    notes = tuple(Note(**note) for note in data.get("notes", ()))
    looks = tuple(Look(**{key: _tuples(value) for key, value in look.items()}) for look in data.get("looks", ()))
    return Annotations(**{**{key: _tuples(value) for key, value in data.items()}, "notes": notes, "looks": looks})


def _element(data: Mapping[str, Any]) -> Any:
    """The force element of a record, by its class name."""
    fields = dict(data)
    name = fields.pop("record")
    kinds = {kind.__name__: kind for kind in RECORDS}
    if name not in kinds:
        raise MechanismError(f"unknown element {name!r}: " + did_you_mean(name, kinds))
    return kinds[name](**{key: _tuples(_infinite(value)) for key, value in fields.items()})


def _infinite(value: Any) -> Any:
    """The value with the strings "inf" and "-inf" as the numbers they stand for."""
    if isinstance(value, list):
        return [_infinite(item) for item in value]
    return float(value) if value in ("inf", "-inf") else value


def _joint_data(joint: joints.LoopKind) -> dict[str, Any]:
    """A joint or contact as its kind and fields, if these suffice to make it again."""
    kind, name = type(joint), joint.kind_name()
    data = {"type": name, **_fields(joint)}
    if (joints.KINDS | CONTACTS).get(name) is not kind:
        raise MechanismError(
            f"joints of kind {name!r} cannot be saved: another class has been defined by this name since; "
            "give each kind of joint a name of its own, or make the mechanism again with the new one"
        )
    hand_made = any("__init__" in vars(c) and "__dataclass_fields__" not in vars(c) for c in kind.__mro__[:-2])
    try:
        complete = not hand_made and bool(_joint(data) == joint)
    except (TypeError, ValueError):
        complete = False
    if not complete:
        raise MechanismError(
            f"{joint!r} cannot be saved: its fields do not make it again; let {name!r} be a dataclass "
            "(frozen=True) whose fields are finite numbers, strings or tuples of them"
        )
    return data


def _joint(data: Mapping[str, Any]) -> Any:
    """A joint, or a contact."""
    fields, kinds = dict(data), joints.KINDS | CONTACTS
    name = fields.pop("type")
    if name not in kinds:
        where = f"; import {name.rpartition('.')[0]}, where it is defined, first" if "." in str(name) else ""
        raise MechanismError(f"unknown kind of joint {name!r}: " + did_you_mean(name, kinds) + where)
    return kinds[name](**{key: _tuples(x) for key, x in fields.items()})


def _tuples(value: Any) -> Any:
    """Lists, which JSON makes of tuples, as tuples again."""
    return tuple(map(_tuples, value)) if isinstance(value, list) else value
