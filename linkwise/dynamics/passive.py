"""Passive joint forces: springs, dampers, dry friction and stops at joints; struts between points.

A ``Passive`` is a constant list of such elements, each at a named joint or between two links, with its law in
``mechanics/elements``.  Forces are those on the coordinates of v, like ``tau``; elements at a mimic joint act on the
joint that it mimics.  Springs, stops and constant pushes derive from a potential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..mechanics.elements.at_joints import Damper, Element, Friction, Spring, Stop
from ..mechanics.elements.law import Acting
from ..mechanics.elements.struts import Strut
from ..mechanism import Mechanism, MechanismError, checks
from ..mechanism.plain_data import number, plain
from .resolved import Resolved
from .states import Float64Array, state_arrays

KINDS: dict[str, type[Element | Strut]] = {kind.__name__: kind for kind in (Spring, Damper, Friction, Stop, Strut)}


@dataclass(frozen=True)
class Passive:
    """Springs, dampers, friction and stops at joints; springs, dampers and cylinders between two points; ``+`` joins
    two lists.

    ``Passive.springs({"elbow": 10.0}, rest={"elbow": 0.3}) + Passive.dampers({"elbow": 0.5})``, or the elements
    of a file with ``Passive.of(mech)``.  Functions take q (..., nq) and v (..., nv) with any leading batch shape.
    """

    elements: tuple[Element | Strut, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "elements", tuple(_hashable(element) for element in self.elements))

    # -- constructors -------------------------------------------------------------------------------------------

    @classmethod
    def springs(cls, stiffness: Mapping[str, Any], rest: Mapping[str, Any] | None = None) -> Passive:
        """Springs of ``stiffness`` (joint -> number, or one per degree of freedom) about ``rest`` (joint ->
        coordinates, by default neutral).
        """
        rest = _per_joint("rest", rest or {}, stiffness)
        return cls(tuple(Spring(joint, value, rest.get(joint)) for joint, value in stiffness.items()))

    @classmethod
    def dampers(cls, damping: Mapping[str, Any]) -> Passive:
        """Dampers: joint -> force per velocity."""
        return cls(tuple(Damper(joint, value) for joint, value in damping.items()))

    @classmethod
    def friction(cls, friction: Mapping[str, Any], speed: Any = None) -> Passive:
        """Dry friction: joint -> force; smooth below ``speed``.  None for 0.01 radians, or 0.01 of the mechanism's
        length, in 1000 default steps of ``lw.simulate``: 0.01 rad/s for mechanisms of usual size."""
        return cls(tuple(Friction(joint, value, speed) for joint, value in friction.items()))

    @classmethod
    def stops(cls, bounds: Mapping[str, tuple[Any, Any]], stiffness: Any, damping: Any = 0.0) -> Passive:
        """Stops: joint -> (lower, upper)."""
        return cls(tuple(Stop(joint, *pair, stiffness, damping) for joint, pair in bounds.items()))

    @classmethod
    def spring_between(
        cls,
        link_a: str,
        point_a: ArrayLike,
        link_b: str,
        point_b: ArrayLike,
        stiffness: float,
        free_length: float = 0.0,
        damping: float = 0.0,
    ) -> Passive:
        """A spring between a point on link a and one on link b, each in the frame of its link (also "ground"): it
        pulls with ``stiffness (length - free_length)``, and with ``damping`` times the rate of the length."""
        return cls((Strut(link_a, point_a, link_b, point_b, stiffness, free_length, damping),))

    @classmethod
    def damper_between(
        cls, link_a: str, point_a: ArrayLike, link_b: str, point_b: ArrayLike, damping: float
    ) -> Passive:
        """A damper between two points, as for ``spring_between``: it pulls with ``damping`` times the rate of the
        length."""
        return cls((Strut(link_a, point_a, link_b, point_b, damping=damping),))

    @classmethod
    def cylinder_between(
        cls,
        link_a: str,
        point_a: ArrayLike,
        link_b: str,
        point_b: ArrayLike,
        force: float | None = None,
        pressure: float | None = None,
        area: float | None = None,
        damping: float = 0.0,
    ) -> Passive:
        """A cylinder between two points, as for ``spring_between``: it pushes them apart with a constant ``force``, or
        with ``pressure`` times ``area``, less ``damping`` times the rate of the length."""
        by_pressure = pressure is not None and area is not None
        if (force is None) != by_pressure or (pressure is None) != (area is None):
            raise MechanismError("the push of a cylinder is given by force, or by pressure and area")
        push = force if force is not None else np.multiply(pressure, area)  # type: ignore[arg-type]
        return cls((Strut(link_a, point_a, link_b, point_b, damping=damping, push=push),))

    @classmethod
    def of(
        cls,
        mech: Mechanism,
        friction_speed: float | None = None,
        limit_stiffness: float | None = None,
        limit_damping: float = 0.0,
    ) -> Passive:
        """Springs, damping and dry friction of the mechanism's own joints, as its file gives them.

        Joint limits become stops if ``limit_stiffness`` is given: files have their positions, not their stiffness.
        """
        elements: list[Element | Strut] = []
        for body in mech.bodies:
            if any(body.stiffness):
                elements.append(Spring(body.joint, body.stiffness, body.rest))
            if any(body.damping):
                elements.append(Damper(body.joint, body.damping))
            if any(body.friction):
                elements.append(Friction(body.joint, body.friction, friction_speed))
            bounds = (body.limits.lower, body.limits.upper)
            if limit_stiffness is not None and np.isfinite(bounds).any():
                elements.append(Stop(body.joint, *bounds, limit_stiffness, limit_damping))
        return cls(tuple(elements))

    def __add__(self, other: Passive) -> Passive:
        return Passive(self.elements + other.elements) if isinstance(other, Passive) else NotImplemented

    # -- forces -------------------------------------------------------------------------------------------------

    def on(self, mech: Mechanism) -> Resolved:
        """The elements bound to one mechanism, with joints and numbers checked, for many calls."""
        return Resolved(mech, Acting(self.elements))

    def forces(self, mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
        """(nv,): the joint forces, to be added to tau."""
        return self.on(mech).forces(**state_arrays(mech, {"q": q, "v": v}, finite=False))

    def derivatives(self, mech: Mechanism, q: ArrayLike, v: ArrayLike) -> tuple[Float64Array, Float64Array]:
        """(d_q, d_v), each (nv, nv): derivatives of the forces along tangent directions of q, and by v."""
        return self.on(mech).derivatives(**state_arrays(mech, {"q": q, "v": v}, finite=False))

    def energy(self, mech: Mechanism, q: ArrayLike) -> Float64Array:
        """Scalar per state: the potential energy of springs, stops and constant forces."""
        return self.on(mech).energy(**state_arrays(mech, {"q": q}, finite=False))

    # -- as plain data ------------------------------------------------------------------------------------------

    def to_data(self) -> list[dict[str, Any]]:
        """Dictionaries of names and numbers, for files; infinite numbers are the strings "inf" and "-inf", for JSON."""
        return [
            {"kind": type(element).__name__, **{f.name: plain(getattr(element, f.name)) for f in fields(element)}}
            for element in self.elements
        ]

    @classmethod
    def from_data(cls, data: Sequence[Mapping[str, Any]]) -> Passive:
        """The inverse of ``to_data``."""
        elements: list[Element | Strut] = []
        for entry in data:
            values = dict(entry)
            kind = values.pop("kind", None)
            if kind not in KINDS:
                raise MechanismError(f"unknown passive element {kind!r}: " + checks.did_you_mean(kind, KINDS))
            numbers = {name: number(values[name]) for name in KINDS[kind].fields if name in values}
            elements.append(KINDS[kind](**values | numbers))
        return cls(tuple(elements))


def _hashable(element: Element | Strut) -> Element | Strut:
    """The element with checked numbers and sequences as tuples, so that elements compare by value."""
    if isinstance(element, Strut):  # does so itself
        return element
    if not isinstance(element, Element):
        raise TypeError(f"a Passive is made of springs, dampers, frictions, stops and struts, not {element!r}")
    listed = {f.name: getattr(element, f.name) for f in fields(element)}
    changes: dict[str, Any] = {k: tuple(np.asarray(x).tolist()) for k, x in listed.items() if np.ndim(x) > 0}
    element = replace(element, **changes)
    for name in element.fields:
        value = getattr(element, name)
        if not (name in element.optional and value is None):
            element.checked(name, value, np.size(value))
    return element


def _per_joint(label: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    for joint in values:
        if joint not in known:
            raise MechanismError(
                f"{label} names joint {joint!r}, which has no spring: " + checks.did_you_mean(joint, known)
            )
    return values
