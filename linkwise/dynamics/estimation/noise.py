"""Standard deviations of measurements and of unmeasured wrenches."""

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
    """Standard deviations of measurements, and of wrenches that act on links.

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
        return _joint_deviations(mech, "Noise.acceleration", self.acceleration)

    def of_torques(self, mech: Mechanism) -> Float64Array:
        """(..., nv)"""
        return _joint_deviations(mech, "Noise.torque", self.torque)

    def of_wrenches(self, mech: Mechanism) -> Float64Array:
        """(..., n_links, 6)"""
        deviations = _link_deviations(mech, "Noise.wrench", self.wrench, 0.0)
        if not np.isfinite(deviations).all():
            raise MechanismError(
                "Noise.wrench must be finite: a wrench of which nothing is known has a large standard deviation, such "
                "as a hundred times the mechanism's weight"
            )
        return deviations

    def of_link_accelerations(self, mech: Mechanism) -> Float64Array | None:
        """(..., n_links, 6), None if none are measured."""
        if self.link_acceleration is None:
            return None
        deviations = _link_deviations(mech, "Noise.link_acceleration", self.link_acceleration, np.inf)
        if not (deviations > 0.0).all():
            raise MechanismError("Noise.link_acceleration must be positive: give a small number for exact sensors")
        return deviations


def certainty_and_spread(deviation: Float64Array) -> Float64Array:
    """(..., 2): two numbers with the ratio spread / certainty = variance, which may be 0 or infinite."""
    variance = np.square(deviation)
    infinite = np.isinf(variance)
    return np.stack(
        [1.0 / (1.0 + variance), np.where(infinite, 1.0, variance / np.where(infinite, 1.0, 1.0 + variance))], -1
    )


def _joint_deviations(mech: Mechanism, label: str, value: Any) -> Float64Array:
    if isinstance(value, Mapping):
        deviations = rates_by_joint(mech, label, value, np.inf)
    else:
        deviations = real_numbers(label, value)
        deviations = Argument(label, ("nv",)).array(
            mech, deviations if deviations.ndim else np.full(mech.nv, float(deviations))
        )
    return _not_negative(label, deviations)


def _link_deviations(mech: Mechanism, label: str, value: Any, otherwise: float) -> Float64Array:
    if isinstance(value, Mapping):
        array = np.full((mech.n_links, 6), otherwise)
        for link, deviations in value.items():
            row = real_numbers(f"{label} of {link!r}", deviations)
            if row.shape not in ((), (6,)):
                raise MechanismError(f"{label} of {link!r} is a number or six, got shape {row.shape}")
            array[mech.parameters.link_index(link)] = row
    else:
        array = real_numbers(label, value)
        if array.shape[-2:] != (mech.n_links, 6):
            raise MechanismError(
                f"{label} has shape {array.shape}, expected a dictionary from link to six numbers, or (..., "
                f"{mech.n_links}, 6) for mechanism {mech.name!r}"
            )
    return _not_negative(label, array)


def _not_negative(label: str, deviations: Float64Array) -> Float64Array:
    if not (deviations >= 0.0).all():
        raise MechanismError(
            f"{label} has entries that are no standard deviations (negative or not a number): {deviations}"
        )
    return deviations
