"""Default classes: the attributes that they give to elements, and the records that they give to actuators."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from linkwise.mechanism.checks import did_you_mean
from linkwise.readers.mjcf.actuator_records import ACTUATORS, ActuatorRecord, record_of
from linkwise.readers.mjcf.document import ORIENTATIONS, SOLVER, check_attributes
from linkwise.readers.protocol import Element

MAIN_CLASS = "main"
NO_CLASS = "(no class)"  # of elements whose defaults are applied already
# Lists of any length: an element that gives only the first numbers leaves the others of its class in place.
_NUMBER_BY_NUMBER = ("size", "stiffness", "damping", "friction", "fluidcoef", *SOLVER)


@dataclass
class _Class:
    """Attributes by what they belong to, those of the classes around it included; the record of actuators of this
    class, and behind it those of the classes around it."""

    attributes: dict[str, dict[str, str]] = field(default_factory=dict)
    records: tuple[ActuatorRecord, ...] = (ActuatorRecord(),)

    def inner(self) -> _Class:
        """A class within this one, which says nothing yet."""
        attributes = {kind: dict(values) for kind, values in self.attributes.items()}
        return _Class(attributes, (self.records[0], *self.records))

    def read(self, element: Element) -> None:
        """What one element of the class says."""
        check_attributes(element)
        kind = element.tag
        if kind in ACTUATORS:
            kind = "actuator"
            self.records = (record_of(element, self.records), *self.records[1:])
        self.attributes[kind] = overridden(self.attributes.get(kind, {}), element)


class Defaults:
    """The default classes of a document."""

    def __init__(self, root: Element) -> None:
        self._classes = {MAIN_CLASS: _Class(), NO_CLASS: _Class()}
        for default in root.all("default"):
            if default.attributes.get("class", MAIN_CLASS) != MAIN_CLASS:
                raise default.error(
                    f'{default.label}: the outermost <default> is the class "{MAIN_CLASS}" and cannot be called '
                    f"{default.attributes['class']!r}; put the class inside of it"
                )
            self._read(default, self._classes[MAIN_CLASS])

    def _read(self, default: Element, made: _Class) -> None:
        for child in default.children:
            if child.tag != "default":
                made.read(child)
        for child in default.all("default"):
            name = child.text("class")
            if name in self._classes:
                raise child.error(f"there are two default classes named {name!r}; names must be unique")
            self._classes[name] = made.inner()
            self._read(child, self._classes[name])

    def checked(self, element: Element, name: str | None) -> str | None:
        """The name of a class, if there is one of this name."""
        if name is not None and name not in self._classes:
            raise element.error(
                f"{element.label}: there is no default class {name!r}: {did_you_mean(name, self._classes)}"
            )
        return name

    def applied(self, element: Element, around: str | None = None, tag: str | None = None) -> Element:
        """The element with the attributes it does not set from its class, or from the class ``around`` it.  Actuators
        become ``<general>``, with all their numbers.

        tag   what defaults call the element, if not by its own tag
        """
        name = self.checked(element, element.attributes.get("class", around)) or MAIN_CLASS
        its_class = self._classes[name]
        whole = replace(element, attributes=overridden(its_class.attributes.get(tag or element.tag, {}), element))
        if tag != "actuator" or element.tag not in ACTUATORS:
            return whole
        return record_of(element, its_class.records).written(whole)


def overridden(defaults: dict[str, str], element: Element) -> dict[str, str]:
    """Default attributes, replaced by an element's own; any orientation of its own replaces any other."""
    own = dict(element.attributes)
    if any(key in own for key in ORIENTATIONS):
        defaults = {key: value for key, value in defaults.items() if key not in ORIENTATIONS}
    for key in _NUMBER_BY_NUMBER:
        if key in own and key in defaults:
            given = own[key].split()
            own[key] = " ".join(given + defaults[key].split()[len(given) :])
    return {**defaults, **own}
