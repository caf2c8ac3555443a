"""A payload from noisy motions and joint forces: its mass, centre of mass and inertia, with error bars."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...compiler.store import float64_function
from ...mechanism import InertiaWarning, Mechanism, MechanismError, one_of
from ..identification import PER_LINK, inertial_parameters, regressor
from ..states import Float64Array, state_arrays
from ..trees import inverse_dynamics
from .noise import Noise, certainty_and_spread
from .smoothing import smooth

MOST_STEPS, SETTLED = (
    20,
    1e-6,
)  # steps of Gauss and Newton; the last changes parameters by that part of their deviations
MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # rows and columns of the last six parameters of a link


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """A rigid body held by a link.

    link                 the link
    parameters           (4,): mass and mass times centre of mass; or (10,), with rotational inertia about the link's
                         origin, as ``linkwise.inertial_parameters`` has them
    covariance           (4, 4) or (10, 10): of their errors
    mechanism            the mechanism that holds it
    a                    (..., nv): the joint accelerations, smoothed
    chi_square           weighted squares that remain; about ``degrees_of_freedom`` if noise and model are right
    """

    link: str
    parameters: Float64Array
    covariance: Float64Array
    mechanism: Mechanism
    a: Float64Array
    chi_square: float
    degrees_of_freedom: int

    @property
    def mass(self) -> float:
        return float(self.parameters[0])

    @property
    def mass_std(self) -> float:
        return float(np.sqrt(self.covariance[0, 0]))

    @property
    def com(self) -> Float64Array:
        """(3,): centre of mass in the link's frame."""
        return self.parameters[1:4] / self.mass

    @property
    def com_std(self) -> Float64Array:
        """(3,)"""
        slopes = np.column_stack([-self.com, np.eye(3)]) / self.mass
        return np.sqrt(np.diag(slopes @ self.covariance[:4, :4] @ slopes.T))

    def __str__(self) -> str:
        centre = ", ".join(f"{x:.4g} +- {s:.1g}" for x, s in zip(self.com, self.com_std, strict=True))
        return f"payload of {self.link!r}: {self.mass:.4g} +- {self.mass_std:.1g} kg at ({centre}) m"


def estimate_payload(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    tau: ArrayLike,
    link: str,
    noise: Noise,
    inertia: bool = False,
) -> PayloadEstimate:
    """The payload that ``link`` holds, from motions and joint forces measured at many states (batch dimensions).

    noise     of joint accelerations, joint forces and wrenches, independent from state to state; accelerations of all
              joints are needed, q and v are taken as exact
    inertia   estimate rotational inertia too, ten numbers in all; else the payload is a point

    Residuals of joint forces are weighted with the inverse of their covariance, which noise of accelerations makes
    full, by the filter, O(n_links) a state; the steps of Gauss and Newton smooth the accelerations along the way.
    """
    place = mech.link_names.index(one_of("moving link", link, mech.link_names))
    arrays = state_arrays(mech, {"q": q, "v": v, "a": a, "tau": tau}).values()
    q, v, a, tau = arrays
    batch = v.shape[:-1]
    q, v, a, tau = (array.reshape(-1, array.shape[-1]) for array in (q, v, a, tau))
    weighting = _Weighting(mech, noise)
    size = PER_LINK if inertia else 4
    if np.isfinite(weighting.of_tau).sum() * len(v) < size:
        raise MechanismError(
            f"{v.size} measured joint forces cannot tell {size} numbers of a payload: give more states"
        )
    own = inertial_parameters(mech)
    found, rates, held = np.zeros(size), a, mech
    for _ in range(MOST_STEPS):
        ten, slopes = (found, np.eye(size)) if inertia else _point(found)
        held = _holding(mech, own, place, ten)
        residuals = tau - inverse_dynamics(held, q, v, a)
        columns = regressor(mech, q, v, rates)[..., PER_LINK * place : PER_LINK * (place + 1)] @ slopes
        weighted = weighting(held, q, columns)
        information = np.einsum("nij,nik->jk", columns, weighted)
        values, vectors = np.linalg.eigh(_scaled(information))
        if values[0] < 1e-12 * values[-1]:
            raise MechanismError(_untold(link, information, vectors[:, 0], inertia))
        covariance = np.linalg.inv(information)
        step = covariance @ np.einsum("nij,ni->j", weighted, residuals)
        found = found + step
        rates = smooth(held, q, v, a, tau, noise).a
        if np.all(np.abs(step) <= SETTLED * np.sqrt(np.diag(covariance))):
            break
    else:
        raise MechanismError(
            f"the payload of {link!r} does not settle: accelerations are too noisy to tell it from {len(v)} states"
        )
    residuals = tau - inverse_dynamics(held, q, v, a)
    chi_square = float(np.sum(residuals * weighting(held, q, residuals[..., None])[..., 0]))
    free = int(np.isfinite(weighting.of_tau).sum()) * len(v) - size
    return PayloadEstimate(link, found, covariance, held, rates.reshape(*batch, mech.nv), chi_square, free)


class _Weighting:
    """Residuals of joint forces times the inverse of their covariance."""

    def __init__(self, mech: Mechanism, noise: Noise):
        self.of_a, self.of_tau = noise.of_accelerations(mech), noise.of_torques(mech)
        if not np.isfinite(self.of_a).all():
            raise MechanismError(
                "estimate_payload needs measured accelerations of all joints: finite Noise.acceleration"
            )
        if self.of_a.ndim > 1 or self.of_tau.ndim > 1:
            raise MechanismError("estimate_payload takes one Noise for all states: numbers (nv,), not batches")
        self.variances = np.square(noise.of_wrenches(mech))

    def __call__(self, mech: Mechanism, q: Float64Array, columns: Float64Array) -> Float64Array:
        noises = certainty_and_spread(self.of_a), certainty_and_spread(self.of_tau)
        function = float64_function(mech, "weighted_residuals")
        found = function(q[..., None, :], np.swapaxes(columns, -1, -2), *noises, self.variances)
        if not np.isfinite(found).all():
            raise MechanismError(
                "a joint force is measured without noise, and nothing else about it is uncertain: see Noise"
            )
        return np.swapaxes(found, -1, -2)


def _holding(mech: Mechanism, own: Float64Array, place: int, payload: Float64Array) -> Mechanism:
    parameters = own.copy()
    parameters[PER_LINK * place : PER_LINK * (place + 1)] += payload
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InertiaWarning)  # on the way, and from noise, it may be no body's
        return mech.with_inertial_parameters(parameters, strict=False)


def _point(four: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The ten parameters of a point with mass and mass times position, and their derivatives (10, 4)."""
    mass, first = four[0], four[1:]
    slopes = np.zeros((PER_LINK, 4))
    slopes[:4, :4] = np.eye(4)
    if mass == 0.0:  # before the first step
        return np.concatenate([four, np.zeros(6)]), slopes

    def moment(u: Any, w: Any) -> Any:
        return np.dot(u, w) * np.eye(3) - np.outer(u, w)

    whole = moment(first, first) / mass
    slopes[4:, 0] = [-whole[at] / mass for at in MOMENTS]
    for k, unit in enumerate(np.eye(3)):
        change = (moment(first, unit) + moment(unit, first)) / mass
        slopes[4:, k + 1] = [change[at] for at in MOMENTS]
    return np.concatenate([four, [whole[at] for at in MOMENTS]]), slopes


def _scaled(information: Float64Array) -> Float64Array:
    """With ones on the diagonal, where it is not zero."""
    scale = np.sqrt(np.diag(information))
    scale = np.where(scale > 0.0, scale, 1.0)
    return information / np.outer(scale, scale)


def _untold(link: str, information: Float64Array, direction: Float64Array, inertia: bool) -> str:
    names = ("mass", "m x", "m y", "m z", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz")[: len(information)]
    share = ", ".join(name for name, x in zip(names, direction, strict=True) if abs(x) > 0.1)
    advice = "; without inertia=True fewer numbers are asked for" if inertia else ""
    what = f"the measured joint forces do not tell {share} of a payload of {link!r} apart"
    return f"{what}: move more joints, or more{advice}"
