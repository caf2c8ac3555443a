"""Records of force elements besides gravity and joint springs. They name joints and links, so that they stay valid when
joints are locked or loops are added.

``mechanics/elements`` has their force laws; springs, damping, friction and limits of joints are numbers of ``Body``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from linkwise.mechanism import checks
from linkwise.mechanism.checks import MechanismError, did_you_mean

#: What can be switched (``Mechanism.with_acting``): of joints, and of records.
OF_JOINTS = ("springs", "damping", "friction", "limits")
KINDS = (*OF_JOINTS, "actuators", "tendons", "gravity_compensation", "fluid", "contact")

#: Numbers of what acts that may differ from state to state (``lw.rollout(..., parameters=...)``): of joints, one per
#: degree of freedom, and of contacts.
OF_SPRINGS_AND_FRICTION = ("stiffness", "damping", "friction")
CONTACT_FRICTION = "contact_friction"
NUMBERS_THAT_ACT = (*OF_SPRINGS_AND_FRICTION, CONTACT_FRICTION)

Range = tuple[float, float]
TRANSMISSIONS = ("joint", "jointinparent", "tendon", "site")
DYNAMICS = ("none", "integrator", "filter", "filterexact")
GAINS = ("fixed", "affine")


@dataclass(frozen=True)
class Actuator:
    """One control input u that drives a joint, a tendon or a frame, as MuJoCo computes it:

        force = gain(l, dl/dt) x + bias(l, dl/dt),    x = u, or the activation if there are dynamics
        gain, bias: p[0] ("fixed"), or p[0] + p[1] l + p[2] dl/dt ("affine"); no bias: "none"

    with l the gear times the length of the transmission, and the joint forces gear times the force.

    name           of the actuator
    target         the joint, tendon or frame it drives
    transmission   what that is: "joint" (of balls and free joints: gear is an axis in the child's frame),
                   "jointinparent" (in the parent's), "tendon", or "site" (gear is [force; moment] in the frame)
    gear           up to six numbers; joints of one coordinate and tendons have the first
    dynamics       of the activation w: "none", "integrator" (dw/dt = u), "filter" or "filterexact"
                   (dw/dt = (u - w) / time_constant)
    ctrl_range, force_range, activation_range   bounds, or None; u, the activation and the force are cut off at theirs,
                   and an activation beyond them does not move further outwards
    """

    name: str
    target: str
    transmission: str = "joint"
    gear: tuple[float, ...] = (1.0,)
    gain: tuple[float, float, float] = (1.0, 0.0, 0.0)
    bias: tuple[float, float, float] = (0.0, 0.0, 0.0)
    dynamics: str = "none"
    time_constant: float = 1.0
    ctrl_range: Range | None = None
    force_range: Range | None = None
    activation_range: Range | None = None

    def __post_init__(self) -> None:
        checks.checked_name("actuator", self.name)
        label = f"actuator {self.name!r}"
        checks.one_of(f"transmission of {label}", self.transmission, TRANSMISSIONS)
        checks.one_of(f"dynamics of {label}", self.dynamics, DYNAMICS)
        gear = _numbers(f"the gear of {label}", self.gear)
        if not 1 <= len(gear) <= 6:
            raise MechanismError(f"the gear of {label} must be one to six numbers, not {self.gear!r}")
        object.__setattr__(self, "gear", gear + (0.0,) * (6 - len(gear)))
        for name in ("gain", "bias"):
            numbers = _numbers(f"the {name} of {label}", getattr(self, name))
            if len(numbers) > 3:
                raise MechanismError(f"the {name} of {label} must be up to three numbers, not {getattr(self, name)!r}")
            object.__setattr__(self, name, numbers + (0.0,) * (3 - len(numbers)))
        constant = checks.checked_number(f"the time constant of {label}", self.time_constant)
        if constant <= 0.0 and self.dynamics in ("filter", "filterexact"):
            raise MechanismError(f"the time constant of {label} must be positive, not {constant:g}")
        object.__setattr__(self, "time_constant", constant)
        for name in ("ctrl_range", "force_range", "activation_range"):
            object.__setattr__(self, name, _range(f"the {name.replace('_', ' ')} of {label}", getattr(self, name)))

    @property
    def has_activation(self) -> bool:
        """Whether the actuator has an activation state."""
        return self.dynamics != "none"


@dataclass(frozen=True)
class Tendon:
    """A length that is linear in joint coordinates, ``l = offset + sum of coefficient times coordinate``, with forces
    along it.

    name        of the tendon
    joints      {joint: coefficient} or ((joint, coefficient), ...): joints of one coordinate
    stiffness   of a spring, at rest while l is within ``rest`` (two numbers)
    damping     force per rate of l
    friction    dry friction, regularised as at joints
    limits      bounds of l, or None
    """

    name: str
    joints: tuple[tuple[str, float], ...]
    stiffness: float = 0.0
    rest: Range = (0.0, 0.0)
    damping: float = 0.0
    friction: float = 0.0
    limits: Range | None = None
    offset: float = 0.0

    def __post_init__(self) -> None:
        label = f"tendon {checks.checked_name('tendon', self.name)!r}"
        object.__setattr__(self, "joints", _arms(label, self.joints))
        for name in ("stiffness", "damping", "friction"):
            number = checks.checked_number(f"the {name} of {label}", getattr(self, name))
            if number < 0.0:
                raise MechanismError(f"the {name} of {label} must not be negative, got {number:g}")
            object.__setattr__(self, name, number)
        object.__setattr__(self, "rest", _range(f"the rest of {label}", self.rest) or (0.0, 0.0))
        object.__setattr__(self, "limits", _range(f"the limits of {label}", self.limits))


@dataclass(frozen=True)
class GravityCompensation:
    """An upward force on a link: ``mass`` times gravity at ``point`` in its frame."""

    link: str
    mass: float
    point: tuple[float, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "mass", checks.checked_number(f"the mass held up of {self.link!r}", self.mass))
        object.__setattr__(self, "point", _numbers(f"the point that holds up {self.link!r}", self.point))


FLUID_SHAPES = ("box", "ellipsoid")
FLUID_COEFFICIENTS = (0.5, 0.25, 1.5, 1.0, 1.0)
LEAST_MASS = 1e-15  # MuJoCo's mjMINVAL: kg, and of moments


def box_of_inertia(mass: float, moments: Sequence[float]) -> tuple[float, float, float]:
    """Sides of the box with the given mass and principal moments, on which MuJoCo's first fluid model acts."""
    x, y, z = (math.sqrt(max(LEAST_MASS, sum(moments) - 2.0 * moment) / mass * 6.0) for moment in moments)
    return x, y, z


def ellipsoid_of_shape(kind: str, size: Sequence[float]) -> tuple[float, float, float]:
    """Half axes of the ellipsoid that a fluid acts on in MuJoCo's second model, in the place of a shape."""
    if kind == "sphere":
        return size[0], size[0], size[0]
    if kind in ("capsule", "cylinder"):
        return size[0], size[0], size[1] + (size[0] if kind == "capsule" else 0.0)
    return size[0], size[1], size[2]


@dataclass(frozen=True)
class FluidForce:
    """Fluid forces on a part of a moving link, by one of MuJoCo's two models.

    link           the link or frame that the part is fixed to
    shape          "box": viscous and quadratic drag along and about each axis; "ellipsoid": drag by the area that is
                   seen along the velocity, lift, and the forces of fluid that moves along
    size           sides of the box, or half axes of the ellipsoid
    density, viscosity   of the fluid
    axes           (3, 3), by rows: the part's axes as columns in the link's frame; None for those of the link
    position       of its middle there
    wind           (3,): the velocity of the fluid, in the world
    coefficients   of ellipsoids: blunt drag, slender drag, angular drag, lift by circulation (Kutta), lift of spinning
                   bodies (Magnus)
    """

    link: str
    shape: str
    size: tuple[float, float, float]
    density: float
    viscosity: float = 0.0
    axes: tuple[tuple[float, ...], ...] | None = None
    position: tuple[float, float, float] = (0.0, 0.0, 0.0)
    wind: tuple[float, float, float] = (0.0, 0.0, 0.0)
    coefficients: tuple[float, ...] = FLUID_COEFFICIENTS

    def __post_init__(self) -> None:
        label = f"the fluid around {self.link!r}"
        checks.one_of(f"shape in {label}", self.shape, FLUID_SHAPES)
        sizes = {"size": 3, "position": 3, "wind": 3, "coefficients": len(FLUID_COEFFICIENTS)}
        for name, count in sizes.items():
            numbers = _numbers(f"the {name} of {label}", getattr(self, name))
            if len(numbers) != count:
                raise MechanismError(f"the {name} of {label} must be {count} numbers, not {getattr(self, name)!r}")
            object.__setattr__(self, name, numbers)
        for name in ("density", "viscosity"):
            number = checks.checked_number(f"the {name} of {label}", getattr(self, name))
            if number < 0.0:
                raise MechanismError(f"the {name} of {label} must not be negative, got {number:g}")
            object.__setattr__(self, name, number)
        if min(self.size) <= 0.0:
            raise MechanismError(f"the size of {label} must be positive, not {self.size}")
        rows = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)) if self.axes is None else self.axes
        rotation = checks.checked_rotation(f"the axes of {label}", rows)
        object.__setattr__(self, "axes", tuple(tuple(float(x) for x in row) for row in rotation))


@dataclass(frozen=True)
class EffortRange:
    """Bounds of the sum of all actuator forces on a joint of one coordinate.

    It acts with the actuators and has no switch of its own; ``mech.with_limits`` with another effort replaces it.
    """

    joint: str
    lower: float
    upper: float

    def __post_init__(self) -> None:
        bounds = _range(f"the effort range of joint {self.joint!r}", (self.lower, self.upper))
        assert bounds is not None
        object.__setattr__(self, "lower", bounds[0])
        object.__setattr__(self, "upper", bounds[1])


#: Records by class: the kind under which ``with_acting`` switches them; "": they act with others.
RECORDS: dict[type, str] = {
    Actuator: "actuators",
    Tendon: "tendons",
    GravityCompensation: "gravity_compensation",
    FluidForce: "fluid",
    EffortRange: "",
}


def name_of(record: Any) -> str:
    """The name of an element for switches: its own, or that of its joint or link."""
    return next(getattr(record, field) for field in ("name", "joint", "link") if hasattr(record, field))


def checked(records: Iterable[Any]) -> tuple[Any, ...]:
    """Records of known classes, no two actuators or tendons of one name."""
    checked_records = tuple(records)
    for record in checked_records:
        if type(record) not in RECORDS:
            known = ", ".join(kind.__name__ for kind in RECORDS)
            raise MechanismError(f"an element of a mechanism is one of {known}, not {record!r}")
    for kind in (Actuator, Tendon):
        names = [record.name for record in checked_records if isinstance(record, kind)]
        for name in names:
            if names.count(name) > 1:
                raise MechanismError(f"two {kind.__name__.lower()}s are named {name!r}; names must be unique")
    return checked_records


# -- what is switched off ---------------------------------------------------------------------------------------

Switches = tuple[tuple[str, str], ...]  # (kind, name), ... that do not act; ("limits", "") for all of a kind


def switched(known: dict[str, tuple[str, ...]], off: Switches, only: Sequence[Any], kinds: dict[str, Any]) -> Switches:
    """``off`` changed by the arguments of ``Mechanism.with_acting``; ``known`` are the names of every kind."""
    result = dict.fromkeys(off)
    for choice in only:
        if not isinstance(choice, (bool, str)):
            raise TypeError(f"with_acting takes True, False or kinds ({', '.join(KINDS)}), got {choice!r}")
    if only:
        chosen = [
            checks.one_of("kind of element", kind_named, KINDS) for kind_named in only if isinstance(kind_named, str)
        ]
        keep = KINDS if True in only else chosen
        result = {(kind, ""): None for kind in KINDS if kind not in keep}
    for kind, choice in kinds.items():
        checks.one_of("kind of element", kind, KINDS)
        result = {switch: None for switch in result if switch[0] != kind}
        if isinstance(choice, bool):
            result |= {} if choice else {(kind, ""): None}
            continue
        names = checks.names_of(choice)
        for name in names:
            if name not in known[kind]:
                raise MechanismError(f"there are no {kind} of {name!r}: " + did_you_mean(name, known[kind]))
        result |= {(kind, name): None for name in known[kind] if name not in names}
    return tuple(result)


def acts(off: Switches, kind: str, name: str) -> bool:
    """Whether an element is switched on."""
    return (kind, "") not in off and (kind, name) not in off


# -- numbers ----------------------------------------------------------------------------------------------------


def _arms(label: str, joints: Any) -> tuple[tuple[str, float], ...]:
    """Pairs of joint and coefficient, from pairs or a dictionary."""
    try:
        pairs = [(joint, arm) for joint, arm in (joints.items() if isinstance(joints, Mapping) else joints)]
    except (TypeError, ValueError):
        raise MechanismError(f"the joints of {label} must be {{joint: coefficient}}, got {joints!r}") from None
    return tuple(
        (str(joint), checks.checked_number(f"the coefficient of {joint!r} in {label}", arm)) for joint, arm in pairs
    )


def _numbers(label: str, values: Any) -> tuple[float, ...]:
    entries = (values,) if isinstance(values, (int, float)) else tuple(values)
    return tuple(checks.checked_number(label, value) for value in entries)


def _range(label: str, values: Any) -> Range | None:
    if values is None:
        return None
    low, high = (math.inf * math.copysign(1, x) if math.isinf(x) else float(x) for x in map(float, values))
    if not low <= high:
        raise MechanismError(f"{label} must be (lower, upper) with lower <= upper, not {values!r}")
    return low, high
