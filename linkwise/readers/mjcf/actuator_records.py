"""Actuator records: every default class has one, and every actuator element writes it in the words of its own tag.

``<general>`` writes the numbers of the record themselves.  The other elements are shortcuts: each is a function from
the parameters of an earlier record and its own attributes onto the force law.  As in MuJoCo 4, a shortcut takes the
parameters that it does not set from the nearest record that has them: one that the same shortcut wrote, or one that
``<general>`` wrote with the gain type of the shortcut.  The record of its class comes first, then those of the classes
around it, then the values of the format.  Ranges are common to all elements.

Later all actuators are read in the words of ``<general>``, with every number written out.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from linkwise.readers.mjcf.document import choice, flag, has_attribute
from linkwise.readers.protocol import Element

_SIZE = 10  # numbers of a gain, a bias or the dynamics
_RANGES = {"ctrllimited": "ctrlrange", "forcelimited": "forcerange", "actlimited": "actrange"}
_SWITCHES = ("true", "false", "auto")
_NO_RANGE = (0.0, 0.0)
#: Gain types of shortcuts.
_GAIN_TYPES = {"damper": "affine", "muscle": "muscle", "orientation": "so3", "pid": "pid", "dcmotor": "dcmotor"}
#: What a shortcut writes anew.
_LAW = ("dyntype", "gaintype", "biastype", "dynprm", "gainprm", "biasprm", "actearly", "actlimited", "not_computed")

Numbers = tuple[float, ...]


def _filled(numbers: Sequence[float], rest: Sequence[float] = ()) -> Numbers:
    """So many numbers as a record has: the first ones, then those of another list, then zeros."""
    return (*numbers, *rest[len(numbers) :], *(0.0,) * _SIZE)[:_SIZE]


@dataclass(frozen=True)
class ActuatorRecord:
    """The force law and the ranges of an actuator, in the words of ``<general>``.

    writer         the tag of the element that wrote the law
    not_computed   the shortcut that wrote numbers which are not computed here, or an empty string
    """

    writer: str = "general"
    dyntype: str = "none"
    gaintype: str = "fixed"
    biastype: str = "none"
    dynprm: Numbers = _filled([1.0])
    gainprm: Numbers = _filled([1.0])
    biasprm: Numbers = _filled([])
    actearly: bool = False
    inheritrange: float = 0.0
    ctrllimited: str = "auto"
    forcelimited: str = "auto"
    actlimited: str = "auto"
    ctrlrange: Numbers = _NO_RANGE
    forcerange: Numbers = _NO_RANGE
    actrange: Numbers = _NO_RANGE
    not_computed: str = ""

    def written(self, element: Element) -> Element:
        """An actuator element with all attributes of this record, in the words of ``<general>``.  The gain type is that
        of the shortcut whose numbers are not computed, where there is one."""
        law = {name: getattr(self, name) for name in ("dyntype", "gaintype", "biastype")}
        law |= {"gaintype": _GAIN_TYPES[self.not_computed]} if self.not_computed else {}
        law |= {name: _text(getattr(self, name)) for name in ("dynprm", "gainprm", "biasprm")}
        law |= {"actearly": "true"} if self.actearly else {}
        law |= {"inheritrange": repr(self.inheritrange)} if self.inheritrange else {}
        for limited, name in _RANGES.items():
            bounds = getattr(self, name)
            if not math.isnan(bounds[0]):
                law |= {limited: getattr(self, limited)} | ({name: _text(bounds)} if bounds != _NO_RANGE else {})
        of_ranges = (*_RANGES, *_RANGES.values())
        others = {k: v for k, v in element.attributes.items() if k == "body" or has_attribute("motor", k)}
        return replace(element, attributes={**{k: v for k, v in others.items() if k not in of_ranges}, **law})


def _text(numbers: Numbers) -> str:
    return " ".join(map(repr, numbers))


def record_of(element: Element, records: Sequence[ActuatorRecord]) -> ActuatorRecord:
    """The record that an element writes; ``records`` are those of its class and of the classes around it, the nearest
    first."""
    own = replace(element, attributes={k: v for k, v in element.attributes.items() if has_attribute(element.tag, k)})
    record = replace(records[0], **_common(own))
    if own.tag == "general":
        return replace(record, writer="general", **_general(own, record))
    gaintype = _GAIN_TYPES.get(own.tag, "fixed")
    near = (one for one in records if one.writer == own.tag or (one.writer, one.gaintype) == ("general", gaintype))
    parameters = next(near, ActuatorRecord())
    fresh: dict[str, Any] = {
        "dyntype": "none",
        "gaintype": gaintype,
        "biastype": "none",
        "not_computed": "",
        "actearly": False,
    }
    fresh |= {name: getattr(ActuatorRecord, name) for name in ("dynprm", "gainprm", "biasprm", "actlimited")}
    if math.isnan(record.forcerange[0]):
        fresh["not_computed"] = records[0].not_computed
    return replace(record, writer=own.tag, **{**fresh, **_SHORTCUTS[own.tag](own, parameters)})


def _common(element: Element) -> dict[str, Any]:
    """Ranges and their switches; the share of the target's range that becomes one."""
    written: dict[str, Any] = {}
    for limited, bounds in _RANGES.items():
        if limited in element.attributes:
            written[limited] = choice(element, limited, _SWITCHES, "auto")
        if bounds in element.attributes:
            written[bounds] = element.numbers(bounds, 2)
    if "inheritrange" in element.attributes:
        written["inheritrange"] = element.number("inheritrange")
    return written


# -- elements -------------------------------------------------------------------------------------------


def _general(element: Element, record: ActuatorRecord) -> dict[str, Any]:
    law: dict[str, Any] = {}
    for name in ("dyntype", "gaintype", "biastype"):
        if name in element.attributes:
            law[name] = element.attributes[name].strip()
    for name in ("dynprm", "gainprm", "biasprm"):
        if name in element.attributes:
            law[name] = _filled(element.numbers(name, 1, _SIZE), getattr(record, name))
    if "actearly" in element.attributes:
        law["actearly"] = flag(element, "actearly")
    return law


def _motor(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    return {}


def _servo(element: Element, parameters: ActuatorRecord, bounds: str) -> dict[str, Any]:
    """A servo, whose ``bounds`` may be a share of the range of what it drives."""
    kp = element.number("kp", parameters.gainprm[0])
    bias = _filled([0.0, -kp, _damping(element, parameters)])
    constant = parameters.dynprm[0] if parameters.dyntype == "filterexact" else 0.0
    constant = element.number("timeconst", constant)
    filtered = {"dyntype": "filterexact", "dynprm": _filled([constant])} if constant else {}
    law = {"biastype": "affine", "gainprm": _filled([kp]), "biasprm": bias, **filtered}
    return law | _inherited_range(element, parameters, bounds)


def _position(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    return _servo(element, parameters, "ctrlrange")


def _intvelocity(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    return _servo(element, parameters, "actrange") | {"dyntype": "integrator"}


def _damping(element: Element, parameters: ActuatorRecord) -> float:
    """The last number of a servo's bias: the damping with a minus sign, or a damping ratio."""
    words = [key for key in ("kv", "dampratio") if key in element.attributes]
    if len(words) > 1:
        raise element.error(f"{element.label}: kv and dampratio both give its damping; keep one of them")
    if not words:
        return parameters.biasprm[2]
    value = element.number(words[0])
    if value < 0.0:
        raise element.error(f"{element.label}: {words[0]}={value:g} is negative; fix the sign")
    return value if words == ["dampratio"] else -value


def _inherited_range(element: Element, parameters: ActuatorRecord, bounds: str) -> dict[str, Any]:
    """The share of the target's range that becomes the ``bounds`` of a servo: it and explicit bounds replace each
    other."""
    if "inheritrange" in element.attributes:
        share = element.number("inheritrange")
        if share > 0.0 and bounds in element.attributes:
            raise element.error(f"{element.label}: {bounds} and inheritrange both give its range; keep one of them")
        return {"inheritrange": share, **({bounds: _NO_RANGE} if share > 0.0 else {})}
    return {"inheritrange": 0.0 if bounds in element.attributes else parameters.inheritrange}


def _velocity(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    kv = element.number("kv", parameters.gainprm[0])
    return {"biastype": "affine", "gainprm": _filled([kv]), "biasprm": _filled([0.0, 0.0, -kv])}


def _damper(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    kv = element.number("kv", -parameters.gainprm[2])
    if kv < 0.0:
        raise element.error(f"{element.label}: kv={kv:g} is negative; fix the sign")
    return {"gainprm": _filled([0.0, 0.0, -kv]), "ctrllimited": "true"}


def _cylinder(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    area = element.number("area", parameters.gainprm[0])
    if "diameter" in element.attributes:
        area = 0.25 * math.pi * element.number("diameter") ** 2
    bias = element.numbers("bias", 1, 3) if "bias" in element.attributes else ()
    constant = element.number("timeconst", parameters.dynprm[0])
    law = {"dyntype": "filter", "biastype": "affine", "dynprm": _filled([constant]), "gainprm": _filled([area])}
    return law | {"biasprm": _filled(_filled(bias, parameters.biasprm)[:3])}


def _adhesion(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    return {"gainprm": _filled([element.number("gain", parameters.gainprm[0])]), "ctrllimited": "true"}


def _pid(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    bounds = {"ctrlrange": element.numbers("posrange", 2)} if "posrange" in element.attributes else {}
    return {"not_computed": "pid", **bounds}


def _dcmotor(element: Element, parameters: ActuatorRecord) -> dict[str, Any]:
    """A force range of the class stays with later elements; one that follows from a current is not computed."""
    law: dict[str, Any] = {"not_computed": "dcmotor"}
    torque, current, *_ = (*element.numbers("saturation", 1, 3), 0.0) if "saturation" in element.attributes else (0, 0)
    if torque > 0.0 or current > 0.0:
        largest = torque if torque > 0.0 else math.nan
        law |= {"forcerange": (-largest, largest), "forcelimited": "true"}
    return law


#: Tag -> what the shortcut makes of its attributes and of the parameters of an earlier record.
_SHORTCUTS: dict[str, Callable[[Element, ActuatorRecord], dict[str, Any]]] = {
    "motor": _motor,
    "position": _position,
    "velocity": _velocity,
    "intvelocity": _intvelocity,
    "damper": _damper,
    "cylinder": _cylinder,
    "adhesion": _adhesion,
    "muscle": lambda element, parameters: {"not_computed": "muscle"},
    "orientation": lambda element, parameters: {"not_computed": "orientation"},
    "pid": _pid,
    "dcmotor": _dcmotor,
}
#: Actuator elements: those of one class write one record.
ACTUATORS = ("general", *_SHORTCUTS)
