"""How noisy measurements are, and how large wrenches that nobody measures may be: standard deviations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ...mechanism import Mechanism, MechanismError
from ..by_joint import rates_by_joint
from ..states import Argument, Float64Array, real_numbers


@dataclass(frozen=True)
class Noise:
    """Standard deviations of what is measured, and of wrenches that act on links.

    acceleration        of measured joint accelerations: a number, (..., nv), or a dictionary by joint; 0 where they are
                        exact, infinity (which joints have that a dictionary does not name) where they are not measured
    torque              of measured joint forces, likewise
    wrench              of unknown wrenches: a dictionary from link to a number or six, [moment; force] in the link's
                        frame, or (..., n_links, 6); links that are not named are free of them.  Finite
    link_acceleration   of measured link accelerations, as ``linkwise.link_accelerations`` gives them: a dictionary
                        from link to a number or six, or (..., n_links, 6); infinity where they are not measured.
                        Positive
    """

    acceleration: Any = 0.0
    torque: Any = np.inf
    wrench: Any = field(default_factory=dict)
    link_acceleration: Any = None

    def of_accelerations(self, mech: Mechanism) -> Float64Array:
        """(..., nv)"""
        return _by_joint(mech, "Noise.acceleration", self.acceleration)

    def of_torques(self, mech: Mechanism) -> Float64Array:
        """(..., nv)"""
        return _by_joint(mech, "Noise.torque", self.torque)

    def of_wrenches(self, mech: Mechanism) -> Float64Array:
        """(..., n_links, 6)"""
        found = _by_link(mech, "Noise.wrench", self.wrench, 0.0)
        if not np.isfinite(found).all():
            raise MechanismError(
                "Noise.wrench must be finite: a wrench of which nothing is known has a large standard deviation, such "
                "as a hundred times the mechanism's weight"
            )
        return found

    def of_link_accelerations(self, mech: Mechanism) -> Float64Array | None:
        """(..., n_links, 6), None if none are measured."""
        if self.link_acceleration is None:
            return None
        found = _by_link(mech, "Noise.link_acceleration", self.link_acceleration, np.inf)
        if not (found > 0.0).all():
            raise MechanismError("Noise.link_acceleration must be positive: give a small number for exact sensors")
        return found


def certainty_and_spread(deviation: Float64Array) -> Float64Array:
    """(..., 2): two numbers with the ratio spread / certainty = variance, which may be 0 or infinite."""
    variance = np.square(deviation)
    infinite = np.isinf(variance)
    return np.stack(
        [1.0 / (1.0 + variance), np.where(infinite, 1.0, variance / np.where(infinite, 1.0, 1.0 + variance))], -1
    )


def _by_joint(mech: Mechanism, what: str, given: Any) -> Float64Array:
    if isinstance(given, Mapping):
        found = rates_by_joint(mech, what, given, np.inf)
    else:
        found = real_numbers(what, given)
        found = Argument(what, ("nv",)).array(mech, found if found.ndim else np.full(mech.nv, float(found)))
    return _not_negative(what, found)


def _by_link(mech: Mechanism, what: str, given: Any, otherwise: float) -> Float64Array:
    if isinstance(given, Mapping):
        found = np.full((mech.n_links, 6), otherwise)
        for link, deviations in given.items():
            row = real_numbers(f"{what} of {link!r}", deviations)
            if row.shape not in ((), (6,)):
                raise MechanismError(f"{what} of {link!r} is a number or six, got shape {row.shape}")
            found[mech.parameters.link_index(link)] = row
    else:
        found = real_numbers(what, given)
        if found.shape[-2:] != (mech.n_links, 6):
            raise MechanismError(
                f"{what} has shape {found.shape}, expected a dictionary from link to six numbers, or (..., "
                f"{mech.n_links}, 6) for mechanism {mech.name!r}"
            )
    return _not_negative(what, found)


def _not_negative(what: str, found: Float64Array) -> Float64Array:
    if not (found >= 0.0).all():
        raise MechanismError(f"{what} has entries that are no standard deviations (negative or not a number): {found}")
    return found
