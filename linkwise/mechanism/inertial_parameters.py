"""Ten numbers per link in which forces are linear: mass, first moment, rotational inertia about the link's origin."""

from __future__ import annotations

from typing import Any

import numpy as np

from linkwise.mechanism import checks
from linkwise.mechanism.checks import InertiaWarning, MechanismError
from linkwise.mechanism.family import variant, with_numbers
from linkwise.mechanism.model import Mechanism
from linkwise.mechanism.welding import point_inertia

NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")  # in Pinocchio's order
_MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # rows and columns of the last six
_PLACES = np.array([[4, 5, 7], [5, 6, 8], [7, 8, 9]])  # of the entries of a matrix among the ten


def inertial_parameters(mechanism: Mechanism) -> np.ndarray:
    """(10 n_links,): of all bodies, one after the other."""
    rows = []
    for body in mechanism.bodies:
        about_origin = body.inertia + point_inertia(body.mass, *body.com.tolist())
        rows.append([body.mass, *(body.mass * body.com), *(about_origin[place] for place in _MOMENTS)])
    return np.array(rows, dtype=float).reshape(-1)


def with_inertial_parameters(mechanism: Mechanism, parameters: Any, strict: bool) -> Mechanism:
    """A copy with these (10 n_links,) numbers; with ``strict`` they must be those of rigid bodies."""
    what = f"the inertial parameters of mechanism {mechanism.name!r}"
    rows = checks.checked_array(what, parameters, (len(NAMES) * mechanism.n_links,)).reshape(-1, len(NAMES))
    coms = _mass_centres(mechanism, rows)
    shifts = np.array([point_inertia(row[0], *com) for row, com in zip(rows.tolist(), coms.tolist(), strict=True)])
    shifts = shifts.reshape(-1, 3, 3)
    centrals = rows[:, _PLACES] - shifts
    round_off = 4.0 * np.finfo(float).eps * np.abs(shifts).max(axis=(1, 2), initial=0.0)
    centrals[np.abs(centrals) < round_off[:, None, None]] = 0.0  # a point, but for round-off
    coms.flags.writeable = centrals.flags.writeable = False  # bodies have parts of them
    bodies = []
    principal_moments = np.linalg.eigvalsh(centrals).tolist()
    of_bodies = zip(mechanism.bodies, rows[:, 0].tolist(), coms, centrals, principal_moments, strict=True)
    for body, mass, com, central, principal in of_bodies:
        for defect in checks.inertia_defects(mass, central, principal):
            message = f"link {body.link!r}: {defect}"
            if strict:
                raise MechanismError(f"{message}; strict=False keeps such numbers")
            checks.warn_caller(message, InertiaWarning)
        same = mass == body.mass == 0.0 and np.array_equal(central, body.inertia)  # without mass it stays apart
        bodies.append(body if same else with_numbers(body, mass=mass, com=com, inertia=central))
    changed = (i for i, body in enumerate(bodies) if body is not mechanism.bodies[i])
    return variant(mechanism, [("inertial", i) for i in changed], bodies=tuple(bodies))


def _mass_centres(mechanism: Mechanism, rows: np.ndarray) -> np.ndarray:
    """(n_links, 3): first moments by masses; those of the mechanism where there is no mass."""
    masses, firsts = rows[:, :1], rows[:, 1:4]
    if masses.all():
        return firsts / masses
    for body, mass, first in zip(mechanism.bodies, masses[:, 0], firsts, strict=True):
        if mass == 0.0 and first.any():
            raise MechanismError(f"link {body.link!r}: a first moment {first.tolist()} without mass has no centre")
    return np.where(masses == 0.0, mechanism.coms, firsts / np.where(masses == 0.0, 1.0, masses))
