"""Ten numbers per link in which forces are linear: mass, first moment, rotational inertia about the link's origin."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

from linkwise.mechanism import checks
from linkwise.mechanism.checks import InertiaWarning, MechanismError
from linkwise.mechanism.model import Mechanism

NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")  # in Pinocchio's order
_MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # rows and columns of the last six


def inertial_parameters(mechanism: Mechanism) -> np.ndarray:
    """(10 n_links,): of all bodies, one after the other."""
    rows = []
    for body in mechanism.bodies:
        about_origin = body.inertia + body.mass * _spread(body.com)
        rows.append([body.mass, *(body.mass * body.com), *(about_origin[place] for place in _MOMENTS)])
    return np.array(rows, dtype=float).reshape(-1)


def with_inertial_parameters(mechanism: Mechanism, parameters: Any, strict: bool) -> Mechanism:
    """A copy with these (10 n_links,) numbers; with ``strict`` they must be those of rigid bodies."""
    what = f"the inertial parameters of mechanism {mechanism.name!r}"
    rows = checks.checked_array(what, parameters, (len(NAMES) * mechanism.n_links,)).reshape(-1, len(NAMES))
    bodies = []
    for body, (mass, *numbers) in zip(mechanism.bodies, rows.tolist(), strict=True):
        first, second = np.array(numbers[:3]), np.zeros((3, 3))
        for (i, j), value in zip(_MOMENTS, numbers[3:], strict=True):
            second[i, j] = second[j, i] = value
        if mass == 0.0 and first.any():
            raise MechanismError(f"link {body.link!r}: a first moment {first.tolist()} without mass has no centre")
        com = first / mass if mass else body.com
        shift = mass * _spread(com)
        central = second - shift
        central[np.abs(central) < 4.0 * np.finfo(float).eps * np.abs(shift).max()] = 0.0  # a point, but for round-off
        for defect in checks.inertia_defects(mass, central):
            message = f"link {body.link!r}: {defect}"
            if strict:
                raise MechanismError(f"{message}; strict=False keeps such numbers")
            checks.warn_caller(message, InertiaWarning)
        bodies.append(dataclasses.replace(body, mass=mass, com=com, inertia=central))
    return dataclasses.replace(mechanism, bodies=tuple(bodies))


def _spread(com: np.ndarray) -> np.ndarray:
    """The rotational inertia of a unit of mass at ``com`` (parallel axes)."""
    return com @ com * np.eye(3) - np.outer(com, com)
