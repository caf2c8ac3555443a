"""Ten numbers per link in which forces are linear: mass, first moment, rotational inertia about the link's origin."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.mechanism import checks
from linkwise.mechanism.checks import InertiaWarning, MechanismError
from linkwise.mechanism.family import variant, with_numbers
from linkwise.mechanism.model import Mechanism
from linkwise.mechanism.parts import Body
from linkwise.mechanism.welding import point_inertia

NAMES = ("m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")  # in Pinocchio's order
_MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # rows and columns of the last six
_ROUND_OFF = 2.0 * float(np.finfo(float).eps)


def inertial_parameters(mechanism: Mechanism) -> np.ndarray:
    """(10 n_links,): of all bodies, one after the other."""
    rows = []
    for body in mechanism.bodies:
        about_origin = body.inertia + point_inertia(body.mass, *body.com.tolist())
        rows.append([body.mass, *(body.mass * body.com), *(about_origin[indices] for indices in _MOMENTS)])
    return np.array(rows, dtype=float).reshape(-1)


def with_inertial_parameters(mechanism: Mechanism, parameters: Any, strict: bool) -> Mechanism:
    """A copy with these inertial parameters (10 n_links,); ``strict`` requires physically consistent ones."""
    label = f"the inertial parameters of mechanism {mechanism.name!r}"
    rows = checks.checked_array(label, parameters, (len(NAMES) * mechanism.n_links,)).reshape(-1, len(NAMES))
    bodies = []
    of_bodies = zip(mechanism.bodies, rows[:, 0].tolist(), *_about_centres(mechanism, rows), strict=True)
    for body, mass, moments, com, inertia in of_bodies:
        if not checks.clearly_rigid(mass, moments):
            _report_defects(body, mass, com, inertia, strict)
        same = mass == body.mass == 0.0 and np.array_equal(inertia, body.inertia)  # without mass it stays apart
        bodies.append(body if same else with_numbers(body, mass=mass, com=com, inertia=inertia))
    changed = (("inertial", i) for i, body in enumerate(bodies) if body is not mechanism.bodies[i])
    return variant(mechanism, changed, bodies=tuple(bodies))


def _about_centres(mechanism: Mechanism, rows: np.ndarray) -> tuple[list[Sequence[float]], np.ndarray, np.ndarray]:
    """Central moments as ``_about_centre`` returns them, centres of mass (n_links, 3) and inertias (n_links, 3, 3) of
    all bodies. The arrays are read-only because bodies keep views of them.
    """
    moments: list[Sequence[float]] = []
    coms: list[float] = []
    entries: list[float] = []
    for body, ten in zip(mechanism.bodies, rows.tolist(), strict=True):
        com, six = _about_centre(body, ten)
        xx, xy, xz, yy, yz, zz = six
        moments.append(six)
        coms += com
        entries += (xx, xy, xz, xy, yy, yz, xz, yz, zz)
    centres, inertias = np.array(coms).reshape(-1, 3), np.array(entries).reshape(-1, 3, 3)
    centres.setflags(write=False)
    inertias.setflags(write=False)
    return moments, centres, inertias


def _about_centre(body: Body, ten: list[float]) -> tuple[Sequence[float], Sequence[float]]:
    """The centre of mass (unchanged for a massless body) and the central moments (xx, xy, xz, yy, yz, zz).

    In plain numbers: for the few links that mechanisms have, arrays would take several times as long.
    """
    mass, first_x, first_y, first_z, xx, xy, yy, xz, yz, zz = ten
    if mass == 0.0:
        if first_x or first_y or first_z:
            raise MechanismError(f"link {body.link!r}: a first moment {ten[1:4]} without mass has no centre")
        return body.com.tolist(), (xx, xy, xz, yy, yz, zz)
    x, y, z = first_x / mass, first_y / mass, first_z / mass
    across_x, across_y, across_z = mass * (y * y + z * z), mass * (x * x + z * z), mass * (x * x + y * y)
    central = (
        xx - across_x,
        xy + mass * (x * y),
        xz + mass * (x * z),
        yy - across_y,
        yz + mass * (y * z),
        zz - across_z,
    )
    noise = _ROUND_OFF * abs(across_x + across_y + across_z)
    return (x, y, z), [0.0 if -noise < moment < noise else moment for moment in central]  # a point, but for round-off


def _report_defects(body: Body, mass: float, com: np.ndarray, inertia: np.ndarray, strict: bool) -> None:
    """Refuse or report numbers that no rigid body has."""
    for defect in checks.inertia_defects(mass, inertia, com=com.tolist()):
        message = f"link {body.link!r}: {defect}"
        if strict:
            raise MechanismError(
                f"{message}; lw.estimation.physical_parameters gives the nearest that bodies have, strict=False keeps "
                "these"
            )
        checks.warn_caller(message, InertiaWarning)
