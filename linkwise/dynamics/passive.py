"""Passive joint forces: springs, dampers, dry friction and stops at joints; struts between points.

A ``Passive`` is a constant list of such elements, each at a joint named by it or between two links (``struts.py``).
Forces are those on the coordinates of v, as ``tau`` is; elements at a mimic joint act on the joint that it mimics.
Springs, stops and constant pushes derive from a potential.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.store import kernel_function
from ..mechanism import Body, Mechanism, MechanismError, checks, require_mechanism
from ..mechanism.plain_data import number, plain
from . import trees as tree
from .states import Float64Array, state_arrays
from .struts import Strut, Struts

FRICTION_SPEED = 1e-2  # rad/s or m/s below which dry friction is regularised


@dataclass(frozen=True)
class Element:
    """Something that acts at one joint; numbers are for all its coordinates, or one each."""

    joint: str

    #: Field -> which coordinates it has a number for, and whether it must not be negative.
    numbers: ClassVar[Mapping[str, tuple[str, bool]]] = {}

    def at(self, body: Body) -> dict[str, Float64Array]:
        """The numbers of this element, one per coordinate."""
        found = {}
        for name, (count, _) in self.numbers.items():
            value = getattr(self, name)
            if name == "rest" and value is None:
                value = body.kind.neutral()
            found[name] = self.checked(name, value, getattr(body.kind, count))
        return found

    def checked(self, name: str, value: Any, size: int) -> Float64Array:
        """(size,): ``value`` of the field ``name``, one number for all coordinates or one each."""
        what = f"the {name.replace('_', ' ')} of a {type(self).__name__.lower()} at joint {self.joint!r}"
        if np.asarray(value).dtype.kind not in "iuf":
            raise MechanismError(f"{what} must be a number or several, not {value!r}")
        numbers = np.array(checks.per_coordinate(what, value, size, finite=name not in ("lower", "upper")))
        if self.numbers[name][1] and (numbers < 0.0).any():
            raise MechanismError(f"{what} must not be negative, got {value!r}")
        return numbers


@dataclass(frozen=True)
class Spring(Element):
    """The potential ``stiffness . d^2 / 2`` of d = difference(rest, q); ``rest`` (nq numbers) is where the two sides of
    the joint coincide if it is None.  For rotations of a ball d is the shortest rotation vector."""

    stiffness: Any
    rest: Any = None
    numbers: ClassVar = {"stiffness": ("nv", True), "rest": ("nq", False)}


@dataclass(frozen=True)
class Damper(Element):
    """The force ``-damping v``."""

    damping: Any
    numbers: ClassVar = {"damping": ("nv", True)}


@dataclass(frozen=True)
class Friction(Element):
    """Dry friction ``-friction tanh(v / speed)``: of full size beyond a few times ``speed``, smooth below."""

    friction: Any
    speed: Any = FRICTION_SPEED
    numbers: ClassVar = {"friction": ("nv", True), "speed": ("nv", True)}

    def at(self, body: Body) -> dict[str, Float64Array]:
        found = super().at(body)
        if (found["speed"] <= 0.0).any():
            raise MechanismError(
                f"the speed of a friction at joint {self.joint!r} must be positive, got {self.speed!r}"
            )
        return found


@dataclass(frozen=True)
class Stop(Element):
    """Springs that hold q between ``lower`` and ``upper``: at a depth p beyond a bound they push back with
    ``stiffness p (1 + damping dp/dt)``, never pulling (Hunt and Crossley's law, continuous at contact)."""

    lower: Any
    upper: Any
    stiffness: Any
    damping: Any = 0.0
    numbers: ClassVar = {
        "lower": ("nq", False),
        "upper": ("nq", False),
        "stiffness": ("nq", True),
        "damping": ("nq", True),
    }


AT_JOINTS = (Spring, Damper, Friction, Stop)
KINDS: dict[str, type[Element | Strut]] = {kind.__name__: kind for kind in (*AT_JOINTS, Strut)}


@dataclass(frozen=True)
class Passive:
    """Springs, dampers, friction and stops at joints, springs, dampers and cylinders between two points; add two to
    have both.

    ``Passive.springs({"elbow": 10.0}, rest={"elbow": 0.3}) + Passive.dampers({"elbow": 0.5})``, or what a file says
    with ``Passive.of(mech)``.  Functions take q (..., nq) and v (..., nv) with any leading batch shape.
    """

    elements: tuple[Element | Strut, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "elements", tuple(_hashable(element) for element in self.elements))

    # -- making one ---------------------------------------------------------------------------------------------

    @classmethod
    def springs(cls, stiffness: Mapping[str, Any], rest: Mapping[str, Any] | None = None) -> Passive:
        """Springs of ``stiffness`` (joint -> number, or one per degree of freedom) about ``rest`` (joint ->
        coordinates; where a joint is not named, the place in which its two sides coincide)."""
        rest = _per_joint("rest", rest or {}, stiffness)
        return cls(tuple(Spring(joint, value, rest.get(joint)) for joint, value in stiffness.items()))

    @classmethod
    def dampers(cls, damping: Mapping[str, Any]) -> Passive:
        """Dampers: joint -> force per velocity."""
        return cls(tuple(Damper(joint, value) for joint, value in damping.items()))

    @classmethod
    def friction(cls, friction: Mapping[str, Any], speed: Any = FRICTION_SPEED) -> Passive:
        """Dry friction: joint -> force; regularised below ``speed``."""
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
        """A spring between a point on link a and one on link b, each given in the frame of its link ("ground" is one):
        it pulls with ``stiffness (length - free_length)``, and with ``damping`` times the rate of the length."""
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
        friction_speed: float = FRICTION_SPEED,
        limit_stiffness: float | None = None,
        limit_damping: float = 0.0,
    ) -> Passive:
        """Springs, damping and dry friction of the mechanism's own joints, as its file gives them.

        Joint limits become stops if ``limit_stiffness`` is given: files say where they are, not how hard.
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

    # -- what they do -------------------------------------------------------------------------------------------

    def on(self, mech: Mechanism) -> Resolved:
        """The same on one mechanism's coordinates, for many calls; joints and numbers are checked here."""
        return _resolved(self, mech)

    def forces(self, mech: Mechanism, q: ArrayLike, v: ArrayLike) -> Float64Array:
        """(nv,): the joint forces, to be added to tau."""
        return self.on(mech).forces(**state_arrays(mech, {"q": q, "v": v}, finite=False))

    def derivatives(self, mech: Mechanism, q: ArrayLike, v: ArrayLike) -> tuple[Float64Array, Float64Array]:
        """(d_q, d_v), each (nv, nv): of the forces, along tangent directions of q, and by v."""
        return self.on(mech).derivatives(**state_arrays(mech, {"q": q, "v": v}, finite=False))

    def energy(self, mech: Mechanism, q: ArrayLike) -> Float64Array:
        """Scalar per state: the potential energy of springs, stops and constant pushes."""
        return self.on(mech).energy(**state_arrays(mech, {"q": q}, finite=False))

    # -- as plain data ------------------------------------------------------------------------------------------

    def to_data(self) -> list[dict[str, Any]]:
        """Dictionaries of names and numbers, for files; infinite numbers are the strings "inf" and "-inf", because JSON
        has no others."""
        return [
            {"kind": type(element).__name__, **{f.name: plain(getattr(element, f.name)) for f in fields(element)}}
            for element in self.elements
        ]

    @classmethod
    def from_data(cls, data: Sequence[Mapping[str, Any]]) -> Passive:
        """The inverse of ``to_data``."""
        elements: list[Element | Strut] = []
        for one in data:
            values = dict(one)
            kind = values.pop("kind", None)
            if kind not in KINDS:
                raise MechanismError(f"unknown passive element {kind!r}: " + checks.did_you_mean(kind, KINDS))
            numbers = {name: number(values[name]) for name in KINDS[kind].numbers if name in values}
            elements.append(KINDS[kind](**values | numbers))
        return cls(tuple(elements))


def _hashable(element: Element | Strut) -> Element | Strut:
    """The element, its numbers checked, with sequences of them as tuples: elements are compared and looked up by
    value."""
    if isinstance(element, Strut):  # which does so itself
        return element
    if not isinstance(element, Element):
        raise TypeError(f"a Passive is made of springs, dampers, frictions, stops and struts, not {element!r}")
    listed = {f.name: getattr(element, f.name) for f in fields(element)}
    changes: dict[str, Any] = {k: tuple(np.asarray(x).tolist()) for k, x in listed.items() if np.ndim(x) > 0}
    element = replace(element, **changes)
    for name in element.numbers:
        value = getattr(element, name)
        if not (name == "rest" and value is None):
            element.checked(name, value, np.size(value))
    return element


def _per_joint(what: str, values: Mapping[str, Any], known: Mapping[str, Any]) -> Mapping[str, Any]:
    for joint in values:
        if joint not in known:
            raise MechanismError(
                f"{what} names joint {joint!r}, which has no spring: " + checks.did_you_mean(joint, known)
            )
    return values


# -- elements on the coordinates of one mechanism -----------------------------------------------------------------


@dataclass(frozen=True)
class _Rows:
    """Elements as arrays, one row per coordinate of an element.  A row sees x = ratio q[at_q] + offset and its rate
    ratio v[at_v]; its force f is ``ratio f`` on v[at_v].  ``spread`` (nv, rows) sums them."""

    at_q: np.ndarray
    at_v: np.ndarray
    ratio: np.ndarray
    offset: np.ndarray
    spread: np.ndarray
    numbers: dict[str, np.ndarray]

    def position(self, q: np.ndarray) -> np.ndarray:
        return self.ratio * q[..., self.at_q] + self.offset

    def rate(self, v: np.ndarray) -> np.ndarray:
        return self.ratio * v[..., self.at_v]

    def force(self, per_row: np.ndarray) -> np.ndarray:
        return per_row @ self.spread.T

    def slope(self, per_row: np.ndarray) -> np.ndarray:
        """(nv, nv) of derivatives of the rows' forces by their own coordinate or rate."""
        return (self.spread * per_row[..., None, :]) @ self.spread.T


@dataclass(frozen=True)
class Resolved:
    """The elements of a ``Passive`` on one mechanism; functions as there."""

    mech: Mechanism
    springs: _Rows
    dampers: _Rows
    friction: _Rows
    stops: _Rows
    rotational: tuple[
        tuple[np.ndarray, np.ndarray, np.ndarray], ...
    ]  # springs on quaternions: stiffness, rest, own places in v
    struts: Struts | None

    def forces(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = np.zeros((*np.broadcast_shapes(q.shape[:-1], v.shape[:-1]), self.mech.nv))
        if self.springs.ratio.size:
            tau -= self.springs.force(self.springs.numbers["stiffness"] * self._stretch(q))
        if self.dampers.ratio.size:
            tau -= self.dampers.force(self.dampers.numbers["damping"] * self.dampers.rate(v))
        if self.friction.ratio.size:
            sizes = self.friction.numbers
            tau -= self.friction.force(sizes["friction"] * np.tanh(self.friction.rate(v) / sizes["speed"]))
        if self.stops.ratio.size:
            for side in (-1.0, 1.0):
                tau -= self.stops.force(side * self._push(side, q, v)[0])
        for stiffness, rest, _ in self.rotational:
            displacement, jacobian = self._displacement(rest, q)
            tau -= np.einsum("...ij,...i->...j", jacobian, stiffness * displacement)
        return tau if self.struts is None else tau + self.struts.forces(q, v)

    def derivatives(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        batch = np.broadcast_shapes(q.shape[:-1], v.shape[:-1])
        d_q, d_v = (np.zeros((*batch, self.mech.nv, self.mech.nv)) for _ in range(2))
        d_q -= self.springs.slope(self.springs.numbers["stiffness"])
        d_v -= self.dampers.slope(self.dampers.numbers["damping"])
        if self.friction.ratio.size:
            sizes = self.friction.numbers
            slope = 1.0 - np.tanh(self.friction.rate(v) / sizes["speed"]) ** 2
            d_v -= self.friction.slope(sizes["friction"] / sizes["speed"] * slope)
        if self.stops.ratio.size:
            for side in (-1.0, 1.0):
                _, by_depth, by_rate = self._push(side, q, v)
                d_q -= self.stops.slope(by_depth)
                d_v -= self.stops.slope(by_rate)
        for spring in self.rotational:
            d_q -= self._rotation_slope(*spring, q)
        if self.struts is not None:
            by_q, by_v = self.struts.derivatives(q, v)
            d_q, d_v = d_q + by_q, d_v + by_v
        return d_q, d_v

    def energy(self, q: np.ndarray) -> np.ndarray:
        total = 0.5 * (self._stretch(q) ** 2 @ self.springs.numbers["stiffness"])
        for side in (-1.0, 1.0):
            total = total + 0.5 * (self._depth(side, q) ** 2 @ self.stops.numbers["stiffness"])
        for stiffness, rest, _ in self.rotational:
            total = total + 0.5 * (tree.difference(self.mech, rest, q) ** 2 @ stiffness)
        return total if self.struts is None else total + self.struts.energy(q)

    def _stretch(self, q: np.ndarray) -> np.ndarray:
        return self.springs.position(q) - self.springs.numbers["rest"]

    def _depth(self, side: float, q: np.ndarray) -> np.ndarray:
        bound = self.stops.numbers["lower" if side < 0.0 else "upper"]
        return np.maximum(0.0, side * (self.stops.position(q) - bound))

    def _push(self, side: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Size of the stops' push at one side, and its slopes by depth and by its rate."""
        stiffness, damping = self.stops.numbers["stiffness"], self.stops.numbers["damping"]
        depth = self._depth(side, q)
        gain = np.maximum(0.0, 1.0 + damping * side * self.stops.rate(v))
        touching = (depth > 0.0) & (gain > 0.0)
        return stiffness * depth * gain, stiffness * gain * touching, stiffness * depth * damping * touching

    def _displacement(self, rest: np.ndarray, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """difference(rest, q) and its derivative along tangent directions."""
        return tree.difference(self.mech, rest, q), kernel_function(self.mech, "difference_jacobian", None)(rest, q)

    def _rotation_slope(self, stiffness: np.ndarray, rest: np.ndarray, moved: np.ndarray, q: np.ndarray) -> np.ndarray:
        """(nv, nv): [j, k] is E_k E_j of the potential U = K d . d / 2 along tangent directions E.

        E_k E_j U = K E_j d . E_k d + K d . E_k E_j d.  The symmetric part of E_k E_j d are second derivatives along
        constant velocities, by polarization; the other part is [E_k, E_j] d / 2, since rotations do not commute.
        """
        displacement, jacobian = self._displacement(rest, q)
        second = kernel_function(self.mech, "difference_bias", None)
        pull = stiffness * displacement
        slope = np.einsum("...ij,i,...ik->...jk", jacobian, stiffness, jacobian)
        units = np.eye(self.mech.nv)
        along = {j: np.sum(pull * second(rest, q, units[j]), axis=-1) for j in moved}
        for j in moved:
            slope[..., j, j] += along[j]
            for k in moved[moved > j]:
                both = np.sum(pull * second(rest, q, units[j] + units[k]), axis=-1)
                slope[..., j, k] += 0.5 * (both - along[j] - along[k])
                slope[..., k, j] += 0.5 * (both - along[j] - along[k])
        structure_constants = np.einsum("kjm,...im,...i->...jk", self.mech.structure_constants, jacobian, pull)
        return slope + 0.5 * structure_constants


def _resolved(passive: Passive, mech: Mechanism) -> Resolved:
    require_mechanism(mech)
    at_joints = [element for element in passive.elements if isinstance(element, Element)]
    bodies = [mech.bodies[mech.body_index(element.joint)] for element in at_joints]
    found = [(element, body, element.at(body)) for element, body in zip(at_joints, bodies, strict=True)]
    rotational = []
    for element, body, numbers in found:
        if body.kind.rates_are_velocities:
            continue
        if isinstance(element, Stop):
            raise MechanismError(
                f"joint {element.joint!r} is a {type(body.kind).__name__} joint, whose coordinates have no bounds: "
                "a stop needs a joint whose velocities are the rates of its coordinates"
            )
        if isinstance(element, Spring):
            stiffness, rest = np.zeros(mech.nv), tree.neutral(mech)
            stiffness[mech.v_index(element.joint)] = numbers["stiffness"]
            rest[mech.q_index(element.joint)] = numbers["rest"]
            rotational.append((stiffness, rest, np.arange(mech.nv)[mech.v_index(element.joint)]))
    plain = [one for one in found if not (isinstance(one[0], Spring) and not one[1].kind.rates_are_velocities)]
    springs, dampers, friction, stops = (
        _rows(mech, kind, [one for one in plain if isinstance(one[0], kind)]) for kind in AT_JOINTS
    )
    struts = [element for element in passive.elements if isinstance(element, Strut)]
    return Resolved(
        mech, springs, dampers, friction, stops, tuple(rotational), Struts(mech, struts) if struts else None
    )


def _rows(mech: Mechanism, kind: type[Element], found: list[tuple[Element, Body, dict[str, np.ndarray]]]) -> _Rows:
    at_q: list[int] = []
    at_v: list[int] = []
    ratio: list[float] = []
    offset: list[float] = []
    for _, body, _numbers in found:
        own = mech.place(body.joint)
        own_v = range(mech.nv)[own.v_index]
        # Where velocities are no rates of coordinates, dampers look at v alone: their place in q is not used.
        at_q += range(mech.nq)[own.q_index] if body.kind.rates_are_velocities else [0] * len(own_v)
        at_v += own_v
        ratio += [own.ratio] * len(own_v)
        offset += [own.offset] * len(own_v)
    spread = np.zeros((mech.nv, len(at_v)))
    spread[at_v, np.arange(len(at_v))] = ratio
    numbers = {name: np.concatenate([np.zeros(0), *(one[2][name] for one in found)]) for name in kind.numbers}
    return _Rows(
        np.array(at_q, dtype=int), np.array(at_v, dtype=int), np.array(ratio), np.array(offset), spread, numbers
    )
