"""What may vary in a study, by name: numbers of the mechanism, payloads, initial states, forces, gains."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from difflib import get_close_matches
from types import MappingProxyType
from typing import Any

import numpy as np

import linkwise as lw

from ..viewer.coordinates import ANGLE, UNITS
from ..viewer.skeleton import matrix
from .distributions import Distribution, Offset, Relative
from .errors import StudyError

GRAVITY = "gravity"
OF_LINKS = {"mass": "kg", "com": "m", "inertia": "kg m^2", "pose": ""}  # and their units
OF_PAYLOADS = {"mass": (), "com": (3,), "inertia": (3, 3)}
OF_POSITIONS = ("q0", "target")
OF_MECHANISM = ("damping", "armature", "friction", "stiffness")  # numbers of its joints
OF_RATES = ("v0", "tau", "kp", "kd", *OF_MECHANISM)
PAYLOAD, CTRL, OWN, CONTACT_FRICTION = "payload.", "ctrl", "my.", "contact_friction"
FORMS = (
    "gravity; mass, com, inertia, pose (of all links) or LINK.mass, ...; payload.LINK.mass, payload.LINK.com, "
    "payload.LINK.inertia; q0, v0, tau, target, kp, kd, damping, armature, friction, stiffness (of all joints) or "
    "q0.JOINT, ...; contact_friction (of all contacts), SHAPE.contact_friction or SHAPE/SHAPE.contact_friction; "
    "ctrl or ctrl.ACTUATOR; my.ANYTHING for functions of your own"
)
AXES = ("x", "y", "z")
Unit = str | tuple[str, ...]
ANGULAR = {"tau": "N m", "kp": "N m/rad", "kd": "N m s/rad", "damping": "N m s/rad", "armature": "kg m^2"}
ANGULAR |= {"friction": "N m", "stiffness": "N m/rad"}
LINEAR = {"tau": "N", "kp": "N/m", "kd": "N s/m", "damping": "N s/m", "armature": "kg"}
LINEAR |= {"friction": "N", "stiffness": "N/m"}


@dataclass(frozen=True, eq=False)
class Quantity:
    """One thing that varies.

    shape      of its value in one case
    nominal    what the mechanism itself has, in that shape
    unit       of all its numbers, or one for each along its axis; "" where they have none
    labels     names of its numbers, empty of a single number
    positions  (mech, place in q, place in v, nominal q) of configurations: steps go along tangent directions
    """

    name: str
    shape: tuple[int, ...]
    nominal: np.ndarray
    unit: Unit = ""
    labels: tuple[str, ...] = ()
    positions: tuple[lw.Mechanism, slice, slice, np.ndarray] | None = None

    @property
    def axis(self) -> str:
        """Name of its axis, shared with results that have the same entries along it."""
        names = {"mass": "link", "gravity": "xyz", "ctrl": "actuator"}
        names |= dict.fromkeys(OF_POSITIONS, "q") | dict.fromkeys(OF_RATES, "v")
        if self.labels == AXES:
            return "xyz"
        return names.get(self.name, f"{self.name}_part")

    @property
    def factor(self) -> Quantity:
        """The quantity of factors: one for each number, one for each matrix."""
        matrix = self.name.rpartition(".")[2] in ("inertia", "pose")
        shape = self.shape[:-2] if matrix else self.shape
        labels = self.labels if len(self.labels) == math.prod(shape) else _numbered(shape)
        return replace(self, shape=shape, unit="", labels=labels, positions=None)

    @property
    def step(self) -> Quantity:
        """The quantity of steps from the nominal value."""
        if self.positions is None:
            return self
        mech, _, rates, _ = self.positions
        shape = (rates.stop - rates.start,) if self.shape else ()
        return replace(self, shape=shape, labels=mech.v_names[rates] if shape else (), positions=None)

    def stepped(self, steps: np.ndarray) -> np.ndarray:
        """Nominal values and steps from them."""
        if self.positions is None:
            return self.nominal + steps
        mech, columns, rates, start = self.positions
        tangents = np.zeros((len(steps), mech.nv))
        tangents[:, rates] = steps.reshape(len(steps), -1)
        reached = lw.integrate(mech, start, tangents, 1.0)[:, columns]
        return reached.reshape(len(steps), *self.shape)

    @property
    def range(self) -> tuple[np.ndarray, np.ndarray]:
        """The limits of a configuration's joints."""
        if self.positions is None:
            raise StudyError(f"{self.name}: WithinLimits is for q0 and target, which have the limits of joints")
        mech, columns, _, _ = self.positions
        low, high = np.array(mech.limits.lower[columns]), np.array(mech.limits.upper[columns])
        measures = [unit.of for body in mech.bodies if not body.mimic for unit in body.kind.measures("q")][columns]
        for k, measure in enumerate(measures):
            if not (np.isfinite(low[k]) and np.isfinite(high[k])):
                if measure != ANGLE:
                    raise StudyError(f"{self.name}: {mech.q_names[columns][k]!r} has no limits; give it a distribution")
                low[k], high[k] = -np.pi, np.pi
        return low.reshape(self.shape), high.reshape(self.shape)


def quantity(
    mech: lw.Mechanism, name: str, drawn: Distribution, nominal: Mapping[str, np.ndarray | None] = MappingProxyType({})
) -> Quantity:
    """The quantity of a name; ``nominal`` are the values that the computation sets (``Computation.nominal``)."""
    head, _, tail = name.partition(".")
    if name == GRAVITY:
        return Quantity(name, (3,), np.array(mech.gravity), "m/s^2", AXES)
    if name.startswith(OWN):
        shape = _shape_of_numbers(drawn)
        return Quantity(name, shape, np.zeros(shape), "", _numbered(shape))
    if name.startswith(PAYLOAD):
        return _payload_quantity(mech, name)
    if head in (*OF_POSITIONS, *OF_RATES):
        return _joint_quantity(mech, name, head, tail, _nominal(mech, name, head, drawn, nominal))
    if head == CTRL:
        actuators, array = mech.forces.actuator_names, _nominal(mech, name, head, drawn, nominal)
        if not tail:
            return Quantity(name, (len(actuators),), array, "", tuple(actuators))
        if tail not in actuators:
            listed = ", ".join(actuators)
            raise StudyError(f"{name}: mechanism {mech.name!r} has no actuator {tail!r}; available: {listed}")
        return Quantity(name, (), np.array(array[actuators.index(tail)]))
    link, _, kind = name.rpartition(".")
    if kind in OF_LINKS:
        return _link_quantity(mech, name, link, kind)
    if kind == CONTACT_FRICTION:
        return _contact_quantity(mech, name, link, drawn)
    known = [GRAVITY, *OF_LINKS, *OF_POSITIONS, *OF_RATES, CTRL, CONTACT_FRICTION]
    close = [f"{kind}.{link}"] if kind in (*OF_POSITIONS, *OF_RATES) else get_close_matches(name, known, n=1)
    close = [f"{tail}.{head}"] if head == CONTACT_FRICTION else close
    hint = f" (did you mean {close[0]!r}?)" if close else ""
    raise StudyError(f"{name!r} is nothing that can vary{hint}; available: {FORMS}")


def _link_quantity(mech: lw.Mechanism, name: str, link: str, kind: str) -> Quantity:
    """A number of all links, or of one."""
    if kind == "pose":
        arrays = np.reshape([matrix(body.rotation, body.position) for body in mech.bodies], (-1, 4, 4))
    else:
        arrays = getattr(mech.parameters, {"mass": "masses", "com": "coms", "inertia": "inertias"}[kind])
    if not link:
        labels = mech.link_names if kind == "mass" else _numbered(arrays.shape)
        return Quantity(name, arrays.shape, np.array(arrays), OF_LINKS[kind], labels)
    try:
        array = arrays[mech.parameters.link_index(link)]
    except ValueError as error:
        raise StudyError(f"{name}: {error}") from None
    return Quantity(
        name, array.shape, np.array(array), OF_LINKS[kind], AXES if kind == "com" else _numbered(array.shape)
    )


def _payload_quantity(mech: lw.Mechanism, name: str) -> Quantity:
    frame, _, kind = name.removeprefix(PAYLOAD).rpartition(".")
    if kind not in OF_PAYLOADS or not frame:
        raise StudyError(f"{name}: a payload has payload.LINK.mass, payload.LINK.com and payload.LINK.inertia")
    if frame not in mech.frames:
        close = get_close_matches(frame, tuple(mech.frames), n=3) or list(mech.frames)[:8]
        raise StudyError(f"{name}: mechanism {mech.name!r} has no link {frame!r}; available: {', '.join(close)}")
    if mech.frames[frame].body < 0:
        raise StudyError(f"{name}: {frame!r} is fixed to the ground, where a payload moves nothing")
    shape = OF_PAYLOADS[kind]
    return Quantity(name, shape, np.zeros(shape), OF_LINKS[kind], AXES if kind == "com" else _numbered(shape))


def _joint_quantity(mech: lw.Mechanism, name: str, head: str, joint: str, array: np.ndarray) -> Quantity:
    """A quantity of all joints, (nq,) or (nv,), or of one; a joint with one coordinate has a single number."""
    positions = head in OF_POSITIONS
    names = mech.q_names if positions else mech.v_names
    columns, rates = slice(0, mech.nq), slice(0, mech.nv)
    if joint:
        try:
            columns, rates = mech.q_index(joint), mech.v_index(joint)
        except (KeyError, ValueError) as error:
            raise StudyError(f"{name}: {error.args[0]}") from None
        if mech.bodies[mech.body_index(joint)].mimic:
            raise StudyError(f"{name}: {joint!r} mimics another joint: vary that one")
    numbers = columns if positions else rates
    nominal = np.array(array[numbers])
    shape = () if joint and len(nominal) == 1 else nominal.shape
    labels = names[numbers] if shape else ()
    configurations = (mech, columns, rates, array) if positions else None
    return Quantity(name, shape, nominal.reshape(shape), joint_units(mech, head, numbers), labels, configurations)


def _nominal(
    mech: lw.Mechanism, name: str, head: str, drawn: Distribution, nominal: Mapping[str, np.ndarray | None]
) -> np.ndarray:
    """Nominal values of all joints or actuators: the computation's, or the mechanism's."""
    sizes = dict.fromkeys(OF_POSITIONS, mech.nq) | {CTRL: len(mech.forces.actuator_names)}
    if head in OF_MECHANISM:
        return np.array(getattr(mech.parameters, head))
    usual = mech.initial if head in OF_POSITIONS else np.zeros(sizes.get(head, mech.nv))
    value = nominal.get(head, usual)
    if not isinstance(drawn, (Relative, Offset)):
        return usual if value is None else value
    if value is None:
        raise StudyError(
            f"{name}: what is given changes in time or with the state, and a factor or step of it is no number: give "
            "it as numbers of all times, or vary something else, my.ANYTHING for functions of your own"
        )
    if isinstance(drawn, Relative) and head not in OF_POSITIONS and not value.any():
        given_by = f"give {head!r} in the computation, or " if head in nominal else "give "
        raise StudyError(f"{name}: what it is a factor of is zero: {given_by}a distribution of the number itself")
    return value


def _contact_quantity(mech: lw.Mechanism, name: str, owner: str, drawn: Distribution) -> Quantity:
    """The coefficient of all contacts, of those of a shape, or of a pair: one number."""
    pairs = [pair for pair in mech.contact_pairs if owner in ("", pair.name, *pair.shapes)]
    if not pairs:
        known = sorted({label for pair in mech.contact_pairs for label in (pair.name, *pair.shapes)})
        touching = f"available: {', '.join(known)}" if known else "mech.with_ground() gives it a floor"
        whose = f"{owner!r} of " if owner else ""
        raise StudyError(f"{name}: {whose}mechanism {mech.name!r} touches nothing; {touching}")
    coefficients = {pair.law.friction for pair in pairs}
    if len(coefficients) > 1 and isinstance(drawn, (Relative, Offset)):
        listed = ", ".join(f"{pair.name}.{CONTACT_FRICTION}" for pair in pairs)
        raise StudyError(f"{name}: contacts differ in their friction, of which a factor or step is no number: {listed}")
    return Quantity(name, (), np.array(pairs[0].law.friction))


def _shape_of_numbers(drawn: Distribution) -> tuple[int, ...]:
    """Shape of one case of a distribution, from that of its numbers."""
    rows = {"points", "options"} | ({"table"} if not getattr(drawn, "same", False) else set())
    shapes = []
    for field, numbers in vars(drawn).items():
        if field not in ("weights", "covariance", "frozen", "same") and numbers is not None:
            shapes.append(np.shape(numbers)[1:] if field in rows else np.shape(numbers))
    return np.broadcast_shapes(*shapes)


def joint_units(mech: lw.Mechanism, of: str, columns: slice = slice(None)) -> Unit:
    """Units of numbers of q, of v, or of the shape of v; one for all if they are equal."""
    velocities = [measure.of for body in mech.bodies if not body.mimic for measure in body.kind.measures("v")]
    if of in OF_POSITIONS:
        measures = [measure.of for body in mech.bodies if not body.mimic for measure in body.kind.measures("q")]
        units = [UNITS[measure][0] for measure in measures]
    elif of == "v0":
        units = [UNITS[measure][1] for measure in velocities]
    else:
        units = [(ANGULAR if measure == ANGLE else LINEAR)[of] for measure in velocities]
    units = units[columns]
    return units[0] if len({*units}) == 1 else tuple(units)


def _numbered(shape: Sequence[int]) -> tuple[str, ...]:
    return tuple(",".join(map(str, index)) for index in np.ndindex(*shape)) if shape else ()


def factor_names(name: str, quantity: Quantity, distribution_of: Any) -> list[str]:
    """Names of the numbers that are drawn for a quantity."""
    count = distribution_of.columns(quantity)
    if count == 0:
        return []
    drawn = quantity
    if hasattr(distribution_of, "factor"):
        drawn = quantity.factor
    elif hasattr(distribution_of, "step"):
        drawn = quantity.step
    if count == 1 or len(drawn.labels) != count:
        return [name] if count == 1 else [f"{name}[{k}]" for k in range(count)]
    return [f"{name}[{label}]" for label in drawn.labels]
