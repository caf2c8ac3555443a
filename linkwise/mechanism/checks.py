"""Validation of a mechanism's numbers and names, with the errors and warnings that report defects.

Two kinds of findings are kept apart. *Malformed* data (wrong shape, NaN, a matrix that is no rotation, a negative mass)
is always an error. *Physical defects* (moments of inertia that no body can have, limits that exclude each other) are
lists of sentences; the builder decides whether they stop it or are only reported, since files in the wild are full of
them.
"""

from __future__ import annotations

import difflib
import math
import sys
import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from linkwise.mechanics.contacts import Contact
from linkwise.mechanics.joints import Joint, LoopKind

ORTHONORMAL_TOLERANCE = 1e-4  # of R^T R: entries rounded to five digits are off by up to 1.7e-5
ROUND_OFF = 4e-16  # two units in the last place at 1: what a product of rotations may be off by
INERTIA_TOLERANCE = 1e-6  # relative; absorbs numbers printed with six digits
POINT_RADIUS = 3e-8  # of the distance of a body from its origin; a radius of gyration below it is round-off
MOST_NAMES = 12  # that a message lists: all kinds of joints are fewer
MOST_CHARACTERS = 1500  # of a message, or of one of its lines
_LONGEST_SLIP = 200  # characters of a name that may be a slip of the pen

IDENTITY = np.eye(3)
IDENTITY.flags.writeable = False
NO_INERTIA = np.zeros((3, 3))
NO_INERTIA.flags.writeable = False
_PACKAGE = __name__.partition(".")[0]


def shortened(text: str, most: int = MOST_CHARACTERS) -> str:
    """The text with its middle left out if it is long: messages quote files and arguments of any length."""
    if len(text) <= most:
        return text
    mark = f" ... ({len(text) - most} more characters) ... "
    head = 2 * most // 3
    return text[:head] + mark + text[head + len(mark) - most :]


class MechanismError(ValueError):
    """A mechanism that cannot be built, or a name that it does not have."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*(shortened(argument) if isinstance(argument, str) else argument for argument in args))


class MechanismWarning(UserWarning):
    """Accepted data that no real mechanism has, or a request that was fulfilled only in part."""


class InertiaWarning(MechanismWarning):
    """Masses or moments of inertia that no rigid body can have, or that leave a joint without inertia."""


class LimitWarning(MechanismWarning):
    """Joint limits, damping or friction that contradict themselves; starts, targets and paths beyond limits; limits
    that no longer act."""


class PenetrationWarning(MechanismWarning):
    """Starts of motions in which shapes that touch are deep inside of each other."""


class OmissionWarning(MechanismWarning):
    """Summary of the ignored parts of a file; ``mech.notes`` has the details."""


class MissingConstraintWarning(OmissionWarning):
    """A part of a file that is ignored closes a loop or couples joints: without it the mechanism comes apart."""


def warn_caller(message: str, category: type[Warning]) -> None:
    """Warn at the nearest line of the call stack that is outside this library."""
    frame, level = sys._getframe(), 1
    while frame.f_back is not None and frame.f_globals.get("__name__", "").partition(".")[0] == _PACKAGE:
        frame, level = frame.f_back, level + 1
    warnings.warn("\n".join(map(shortened, message.splitlines())), category, stacklevel=level)


def did_you_mean(name: Any, known: Collection[str]) -> str:
    """The tail of an 'unknown name' message: close matches, or the whole choice where it is short."""
    close = close_names(name, known)
    if close:
        return "did you mean " + " or ".join(map(repr, close)) + "?"
    listed = [repr(k) for k in list(known)[:MOST_NAMES]]
    return "known: " + (", ".join(listed) + (", ..." if len(known) > MOST_NAMES else "") if listed else "none")


def close_names(name: Any, known: Collection[str]) -> list[str]:
    """The known names, at most three, that ``name`` may be a slip of the pen for."""
    if len(str(name)) > _LONGEST_SLIP:
        return []
    lowered: dict[str, str] = {}
    for name_known in known:
        lowered.setdefault(name_known.lower(), name_known)
    exact = difflib.get_close_matches(str(name), known, n=3, cutoff=0.6)
    return exact or [
        lowered[name_known] for name_known in difflib.get_close_matches(str(name).lower(), lowered, n=3, cutoff=0.6)
    ]


def one_of(
    label: str,
    value: Any,
    allowed: Collection[str],
    otherwise: str = "",
    meant: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """``value`` if it is allowed; else an error with the likely meaning, close matches, or ``otherwise``."""
    if isinstance(value, str) and value in allowed:
        return value
    if meant.get(str(value)) in allowed:
        hint = f"did you mean {meant[str(value)]!r}?"
    elif otherwise and not close_names(value, allowed):
        hint = otherwise
    else:
        hint = did_you_mean(value, allowed)
    raise ValueError(f"unknown {label} {value!r}: {hint}")


def names_of(names: Iterable[str]) -> tuple[str, ...]:
    """A sequence of names as a tuple; a single string counts as one name."""
    return (names,) if isinstance(names, str) else tuple(names)


def checked_name(label: str, name: Any) -> str:
    """``name`` if it is a non-empty string."""
    if not isinstance(name, str) or not name.strip():
        raise MechanismError(f"the name of a {label} must be a non-empty string, not {name!r}")
    return name


def checked_kind(label: str, kind: Any) -> Joint:
    """``kind`` if it is a joint; classes of joints and other objects are an error."""
    if isinstance(kind, type):
        raise MechanismError(f"{label}: kind is the class {kind.__name__}; make a joint of it: {kind.__name__}(...)")
    if isinstance(kind, Contact):
        raise MechanismError(
            f"{label}: a {type(kind).__name__} ties links that joints move, it moves none: hang the link on a joint, "
            "such as Floating(), and add the contact with .loop(...)"
        )
    if not isinstance(kind, Joint):
        raise MechanismError(f"{label}: kind must be a joint such as Revolute((0, 0, 1)), not {kind!r}")
    if not kind.rates_are_velocities:
        _refuse_changing_motions(label, kind)
    return kind


def checked_loop_kind(label: str, kind: Any) -> LoopKind:
    """``kind`` if it can close a loop: a joint, or a contact such as a wheel."""
    return kind if isinstance(kind, Contact) else checked_kind(label, kind)


def _refuse_changing_motions(label: str, kind: Joint) -> None:
    """Velocities that are not rates of coordinates must be those of a group, along the axes of the moving frame. The
    columns of H* are then constant and give the commutators of steps.
    """
    rng = np.random.default_rng(0)
    rates = kind.motion_rate(kind.random(rng, ()).tolist(), rng.normal(size=kind.nv).tolist())
    if any(abs(x) > 1e-9 for rate in rates for x in rate.flat()):
        raise MechanismError(
            f"{label}: a {type(kind).__name__} joint has velocities that are not the rates of its coordinates (its own "
            "q_rate) and motions H* that change with q: give the velocities along the axes of the moving frame, where "
            "the motions are constant, or let them be the rates of the coordinates"
        )


def _floats(value: Any) -> np.ndarray:
    """``value`` as a new array of floats.  NumPy would make numbers of "0.4" and of true as well."""
    if isinstance(value, np.ma.MaskedArray):
        raise TypeError("it is a masked array: give its numbers with .filled(value)")
    array = np.array(value, dtype=float)
    if isinstance(value, np.ndarray) and value.dtype == array.dtype:
        return array
    for entry in np.asarray(value, dtype=object).flat:
        if isinstance(entry, (str, bytes, bool, np.bool_)):
            raise TypeError(f"{entry!r} is no number")
    return array


def checked_array(label: str, value: Any, shape: tuple[int, ...]) -> np.ndarray:
    """``value`` as a read-only array of finite floats of the given shape (a copy)."""
    try:
        array = _floats(value)
    except (TypeError, ValueError) as error:
        raise MechanismError(f"{label} must be numbers of shape {shape}, not {value!r}") from error
    if array.shape != shape:
        raise MechanismError(f"{label} must have shape {shape}, not {array.shape}")
    if not all(map(math.isfinite, array.ravel().tolist())):
        raise MechanismError(f"{label} must be finite, not {value!r}")
    array.flags.writeable = False
    return array


def checked_number(label: str, value: Any) -> float:
    """``value`` as a finite float."""
    if type(value) is float and math.isfinite(value):
        return value
    return float(checked_array(label, value, ()))


def checked_mass(owner: str, value: Any) -> float:
    """``value`` as a finite float that is not negative: no other masses keep kinetic energy positive."""
    mass = checked_number(f"{owner}: mass", value)
    if mass < 0.0:
        raise MechanismError(f"{owner}: its mass {mass:g} is negative; fix the sign, or give 0 if it weighs nothing")
    return mass


def per_coordinate(label: str, value: Any, count: int, finite: bool = True) -> tuple[float, ...]:
    """A number for every coordinate, or a sequence of ``count`` numbers, as a tuple."""
    try:
        array = np.broadcast_to(_floats(value), (count,))
    except (TypeError, ValueError) as error:
        raise MechanismError(f"{label} must be a number or {count} of them, not {value!r}") from error
    if np.isnan(array).any() or (finite and np.isinf(array).any()):
        raise MechanismError(f"{label} must be {'finite' if finite else 'numbers'}, not {value!r}")
    return tuple(array.tolist())


def rest_position(label: str, value: Any, kind: Joint) -> tuple[float, ...]:
    """Coordinates at which a spring is at rest, as a tuple; None is where the two sides of the joint coincide."""
    return per_coordinate(label, kind.neutral() if value is None else value, kind.nq)


def snapped(rotation: np.ndarray) -> np.ndarray:
    """Entries within round-off of 0 or +-1 made exact, so that quarter turns fold away when compiled."""
    magnitude = np.abs(rotation)
    result = np.where(magnitude < ROUND_OFF, 0.0, rotation)
    return np.where(np.abs(magnitude - 1.0) < ROUND_OFF, np.sign(rotation), result)


def checked_rotation(label: str, value: Any) -> np.ndarray:
    """``value``, a 3x3 matrix or one ``Rotation`` of SciPy's, as a proper rotation matrix, read-only.

    A matrix orthonormal to round-off is kept as it is; one that was rounded when written (to five digits or more) is
    replaced by the nearest rotation; anything else is refused.
    """
    if hasattr(value, "as_matrix"):
        value = snapped(np.asarray(value.as_matrix(), dtype=float))
    matrix = checked_array(label, value, (3, 3))
    error = np.abs(matrix.T @ matrix - np.eye(3)).max()
    if error > ORTHONORMAL_TOLERANCE:
        raise MechanismError(
            f"{label} is not a rotation: R^T R differs from the identity by {error:.1e}, and only up to "
            f"{ORTHONORMAL_TOLERANCE:.0e} is taken as rounding; if it is meant as one, give it with five digits or "
            "more, or the rotation near it: scipy.spatial.transform.Rotation.from_matrix(R).as_matrix()"
        )
    if np.linalg.det(matrix) < 0.0:
        raise MechanismError(f"{label} is a reflection (determinant -1), not a rotation: use a right-handed frame")
    if error > 2.0 * ROUND_OFF:
        left, _, right = np.linalg.svd(matrix)
        matrix = snapped(left @ right)
        matrix.flags.writeable = False
    return matrix


def checked_inertia(label: str, value: Any) -> np.ndarray:
    """A moment of inertia given as None (zero), three principal moments or a symmetric 3x3 matrix, as that matrix."""
    if value is None:
        return NO_INERTIA
    shape = np.shape(np.asarray(value, dtype=object))
    if shape not in ((3, 3), (3,)):
        raise MechanismError(f"{label} must have shape (3, 3), or be 3 principal moments, not have shape {shape}")
    if shape == (3,):
        value = np.diag(checked_array(label, value, (3,)))
    matrix = checked_array(label, value, (3, 3))
    asymmetry = np.abs(matrix - matrix.T).max()
    if asymmetry > INERTIA_TOLERANCE * np.abs(matrix).max():
        raise MechanismError(f"{label} must be symmetric; entries across the diagonal differ by {asymmetry:.1e}")
    if asymmetry > 0.0:
        matrix = 0.5 * (matrix + matrix.T)
        matrix.flags.writeable = False
    return matrix


def require_finite_moments(label: str, mass: float, com: np.ndarray, inertia: np.ndarray) -> None:
    """Raise if moments of inertia about the origin exceed floating-point numbers."""
    x, y, z = com.tolist()
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
    largest = 3.0 * (abs(xx) + abs(yy) + abs(zz) + abs(xy) + abs(xz) + abs(yz) + abs(mass) * (x * x + y * y + z * z))
    if not math.isfinite(largest):
        raise MechanismError(
            f"{label}: its moments of inertia about its origin are beyond 1e308, too large to compute with (mass "
            f"{mass:g}, centre of mass {x:g} {y:g} {z:g}); correct them, or use other units"
        )


def clearly_rigid(mass: float, moments: Sequence[float], distance: float = 0.0) -> bool:
    """Whether a rigid body can have this mass and these central moments (xx, xy, xz, yy, yz, zz). False if only
    principal moments can decide. ``distance`` is the possible distance of the centre of mass from the point that the
    moments were given about.

    The eigenvalues of ``tr(I) / 2 - I`` are half of what two principal moments together exceed the third by: it must be
    positive (Sylvester's minors), by a part of the tolerance of ``inertia_defects``.
    """
    xx, xy, xz, yy, yz, zz = moments
    half = (0.5 + INERTIA_TOLERANCE / 6.0) * (xx + yy + zz) + 0.25 * (POINT_RADIUS * distance) ** 2 * mass
    a, b, c = half - xx, half - yy, half - zz
    pair = a * b - xy * xy
    if not (xx or yy or zz or xy or xz or yz):  # a point
        return mass > 0.0
    return mass > 0.0 and a > 0.0 and pair > 0.0 and c * pair > a * yz * yz + b * xz * xz + 2.0 * xy * xz * yz


def inertia_defects(mass: float, inertia: np.ndarray, is_rotor: bool = False, com: Sequence[float] = ()) -> list[str]:
    """Sentences on why no rigid body has this mass and central inertia; empty if one has. A rotor may be massless: its
    inertia is added to its carrier. The centre of mass bounds the round-off of an inertia given about another point.
    """
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = inertia.tolist()
    distance = math.hypot(*com)
    if clearly_rigid(mass, (xx, xy, xz, yy, yz, zz), distance):
        return []
    defects = []
    if mass < 0.0:
        defects.append(f"its mass {mass:g} is negative")
    low, middle, high = (0.0,) * 3 if inertia is NO_INERTIA else np.linalg.eigvalsh(inertia).tolist()
    scale = max(-low, high)
    if scale == 0.0:
        return defects
    if mass == 0.0 and not is_rotor:
        defects.append("it has inertia but no mass (give the joint an armature to model a rotor)")
    slack = INERTIA_TOLERANCE * scale + abs(mass) * (POINT_RADIUS * distance) ** 2
    if low < -slack:
        defects.append(f"its inertia has a negative principal moment ({low:g})")
    elif high > low + middle + slack:
        defects.append(
            f"its principal moments {low:g}, {middle:g}, {high:g} break the triangle inequality "
            "(the largest exceeds the sum of the others)" + _meant(inertia)
        )
    return defects


def _meant(inertia: np.ndarray) -> str:
    """Advice for a single moment of inertia, as planar models have it: the matrix to write instead."""
    moments = inertia.diagonal()
    if np.count_nonzero(inertia) != 1 or not moments.any():
        return ""
    about = int(np.argmax(moments))
    bar = [f"{moments[about]:g}" if axis != (about + 1) % 3 else "0" for axis in range(3)]
    return f": a thin bar along {'xyz'[(about + 1) % 3]} has the moments ({', '.join(bar)})"


def limit_defects(
    lower: Sequence[float], upper: Sequence[float], at_least_zero: dict[str, Sequence[float]]
) -> list[str]:
    """Sentences on limits that exclude every value and on negative numbers where only positive ones make sense."""
    ranges = zip(lower, upper, strict=True)
    defects = [f"its lower limit {a:g} exceeds its upper limit {b:g}" for a, b in ranges if a > b]
    for quantity, values in at_least_zero.items():
        defects += [f"its {quantity} {x:g} is negative" for x in values if x < 0.0]
    return defects
