"""Payload identification from noisy motions and joint forces: mass, centre of mass and inertia, with error bars."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from ...compiler.store import float64_function
from ...constraints.masks import loop_mask
from ...display import mimebundle
from ...mechanism import Frame, InertiaWarning, Mechanism, MechanismError, one_of, warn_caller
from ...mechanism.inertial_parameters import NAMES
from ..identification import PER_LINK, inertial_parameters, regressor
from ..passive import Passive
from ..physical_bodies import is_physical, pseudo_inertia
from ..states import Float64Array, state_arrays
from ..trees import inverse_dynamics
from .least_squares import Deviations, least_squares
from .noise import Noise, certainty_and_spread
from .smoothing import forces_besides_motors, smooth

MOST_STEPS, SETTLED = (
    20,
    1e-6,
)  # steps of Gauss and Newton; the last changes parameters by that part of their deviations
CERTAIN = "a joint force is measured without noise, and nothing else about it is uncertain: see Noise"
POINT = NAMES[:4]  # the parameters of a point
MOMENTS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))  # rows and columns of the last six parameters of a link


@dataclass(frozen=True, eq=False)
class PayloadEstimate:
    """A rigid body held by a link.

    link                 the link, or the frame welded to one, in whose frame the numbers are
    names                of the parameters: "m", "mx", ...
    parameters           (k,): mass, mass times centre of mass, rotational inertia about the link's origin, in the
                         order of ``linkwise.estimation.inertial_parameters``
    covariance           (k, k): of their errors
    mechanism            the mechanism that holds it
    a                    (..., nv): the joint accelerations, smoothed
    chi_square           weighted squares that remain; about ``degrees_of_freedom`` if noise and model are right
    """

    link: str
    names: tuple[str, ...]
    parameters: Float64Array
    covariance: Float64Array
    mechanism: Mechanism
    a: Float64Array
    chi_square: float
    degrees_of_freedom: int

    @property
    def mass(self) -> float:
        return float(self._parameter("m"))

    @property
    def mass_std(self) -> float:
        k = self.names.index("m")
        return float(np.sqrt(self.covariance[k, k]))

    @property
    def com(self) -> Float64Array:
        """(3,): centre of mass in the link's frame."""
        return np.array([self._parameter(name) for name in POINT[1:]]) / self.mass

    @property
    def com_std(self) -> Float64Array:
        """(3,)"""
        indices = [self.names.index(name) for name in POINT if name in self.names]
        slopes = np.column_stack([-self.com, np.eye(3)])[:, [POINT.index(self.names[k]) for k in indices]] / self.mass
        return np.sqrt(np.diag(slopes @ self.covariance[np.ix_(indices, indices)] @ slopes.T))

    def _parameter(self, name: str) -> float:
        return self.parameters[self.names.index(name)] if name in self.names else 0.0

    def __str__(self) -> str:
        centre = ", ".join(f"{x:.4g} +- {s:.1g}" for x, s in zip(self.com, self.com_std, strict=True))
        return f"payload of {self.link!r}: {self.mass:.4g} +- {self.mass_std:.1g} kg at ({centre}) m"

    _repr_mimebundle_ = mimebundle


def estimate_payload(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    tau: ArrayLike,
    link: str,
    noise: Noise,
    parameters: Sequence[str] = POINT,
    passive: Passive | None = None,
    active: ArrayLike | None = None,
) -> PayloadEstimate:
    """The payload of ``link``, moving or welded, from motions and joint forces measured at many states (batches).

    noise        of joint accelerations, joint forces and wrenches, independent from state to state; accelerations of
                 all joints are needed, or with constraints those that determine the others; q and v are taken as exact
    parameters   which of "m", "mx", "my", "mz", "Ixx", "Ixy", "Iyy", "Ixz", "Iyz", "Izz" to estimate, the others being
                 zero.  Rotational inertias are about the origin of the link: with Ixx, Iyy and Izz alone the products
                 of inertia are zero there, and not about the centre of mass.  With none of the six the payload is a
                 point.  An ``InertiaWarning`` says so where no body has the estimated numbers
    passive      in place of the springs, damping, friction and limits of the joints; default the mechanism's own
    active       (..., len(mech.loops)) booleans: constraints that hold; these are perfect measurements, and nothing is
                 known of their forces.  Joints without motors have the exact force zero

    Joint forces are those of motors: what else acts on the mechanism (``mech.forces.active``) acts besides.
    Residuals of joint forces are weighted with the inverse of their covariance, which noise of accelerations makes
    full, by the filter, O(n_links) a state; with constraints, or joints that mimic others, by all equations of a state
    at once.  The steps of Gauss and Newton smooth the accelerations along the way.
    """
    if not isinstance(noise, Noise):
        raise TypeError(
            "noise is a linkwise.estimation.Noise(acceleration=..., torque=...), which says what is measured how well, "
            f"got {noise!r}"
        )
    frame = mech.frame(link)
    if frame.body < 0:
        raise MechanismError(f"{link!r} of mechanism {mech.name!r} is fixed to the ground: no joint feels its payload")
    of_link = slice(PER_LINK * frame.body, PER_LINK * (frame.body + 1))
    to_link = _moved_parameters(frame)
    arrays = state_arrays(mech, {"q": q, "v": v, "a": a, "tau": tau}).values()
    q, v, a, tau = arrays
    batch = v.shape[:-1]
    q, v, a, tau = (array.reshape(-1, array.shape[-1]) for array in (q, v, a, tau))
    tau = tau + forces_besides_motors(mech, q, v, passive)
    bare = mech.with_acting(False)
    mask = loop_mask(mech, active)
    if mask is not None:
        mask = np.broadcast_to(mask, (*batch, mask.shape[-1])).reshape(-1, mask.shape[-1])
    is_whole = bool(mech.loops or mech.coordinates.mimic_joints)
    weighting = _WholeWeighting(mech, noise, mask) if is_whole else _Weighting(mech, noise)
    a = np.where(np.isinf(weighting.of_a), 0.0, a)
    columns_of = _columns(parameters)
    size = len(columns_of)
    if np.isfinite(weighting.of_tau).sum() * len(v) < size:
        raise MechanismError(
            f"{v.size} measured joint forces cannot tell {size} numbers of a payload: give more states"
        )
    parameters_of_mechanism = inertial_parameters(mech)
    numbers, held = np.zeros(size), bare
    rates = weighting.started(bare, q, v, a)
    for _ in range(MOST_STEPS):
        ten, slopes = _ten(numbers, columns_of)
        held = _holding(bare, parameters_of_mechanism, of_link, to_link @ ten)
        columns = regressor(mech, q, v, rates)[..., of_link] @ to_link @ slopes
        fit = weighting.fitted(held, q, v, a, tau, columns)
        information = np.einsum("nij,nik->jk", columns, fit.weighted)
        values, vectors = np.linalg.eigh(_scaled(information))
        if values[0] < 1e-12 * values[-1]:
            raise MechanismError(_untold(link, [NAMES[k] for k in columns_of], vectors[:, 0]))
        covariance = np.linalg.inv(information)
        step = covariance @ np.einsum("nij,ni->j", columns, fit.residuals)
        numbers, rates = numbers + step, fit.rates
        if np.all(np.abs(step) <= SETTLED * np.sqrt(np.diag(covariance))):
            break
    else:
        raise MechanismError(
            f"the payload of {link!r} does not settle: accelerations are too noisy to tell it from {len(v)} states"
        )
    _warn_if_no_body(link, numbers, columns_of)
    free = fit.surplus - size
    names = tuple(NAMES[k] for k in columns_of)
    holding = _holding(mech, parameters_of_mechanism, of_link, to_link @ ten)
    return PayloadEstimate(
        link, names, numbers, covariance, holding, rates.reshape(*batch, mech.nv), fit.chi_square, free
    )


class _Fit(NamedTuple):
    """Least-squares terms of the measurements at all states, for a mechanism with a payload.

    weighted   (n, nv, k): columns of joint forces times the inverse of the covariance of these
    residuals  (n, nv): measured joint forces less those that are needed, times the same
    rates      (n, nv): smoothed joint accelerations
    surplus    the number of measurements beyond those of accelerations that are needed
    """

    weighted: Float64Array
    residuals: Float64Array
    rates: Float64Array
    chi_square: float
    surplus: int


class _Weighting:
    """Residuals of joint forces of a tree, weighted by the filter."""

    def __init__(self, mech: Mechanism, noise: Noise):
        self.of_a, self.of_tau = noise.of_accelerations(mech), noise.of_torques(mech)
        if self.of_a.ndim > 1 or self.of_tau.ndim > 1:
            raise MechanismError("estimate_payload takes one Noise for all states: numbers (nv,), not batches")
        self.noise, self.variances = noise, np.square(noise.of_wrenches(mech))
        self._require_accelerations()

    def _require_accelerations(self) -> None:
        if not np.isfinite(self.of_a).all():
            raise MechanismError(
                "estimate_payload needs measured accelerations of all joints: finite Noise.acceleration"
            )

    def started(self, held: Mechanism, q: Any, v: Any, a: Any) -> Float64Array:
        """(n, nv): the accelerations as far as they are known without joint forces."""
        return a

    def fitted(
        self, held: Mechanism, q: Float64Array, v: Float64Array, a: Float64Array, tau: Any, columns: Any
    ) -> _Fit:
        """The fit of a mechanism with a payload; columns are (n, nv, k)."""
        residuals = tau - inverse_dynamics(held, q, v, a)
        both = self._weighted(held, q, np.concatenate([columns, residuals[..., None]], axis=-1))
        weighted = both[..., -1]
        rates, surplus = smooth(held, q, v, a, tau, self.noise).a, int(np.isfinite(self.of_tau).sum()) * len(v)
        return _Fit(both[..., :-1], weighted, rates, float(np.sum(residuals * weighted)), surplus)

    def _weighted(self, mech: Mechanism, q: Float64Array, columns: Float64Array) -> Float64Array:
        noises = certainty_and_spread(self.of_a), certainty_and_spread(self.of_tau)
        function = float64_function(mech, "weighted_residuals")
        weighted = function(q[..., None, :], np.swapaxes(columns, -1, -2), *noises, self.variances)
        if not np.isfinite(weighted).all():
            raise MechanismError(CERTAIN)
        return np.swapaxes(weighted, -1, -2)


class _WholeWeighting(_Weighting):
    """With constraints, or joints that mimic others: by least squares over all unknowns of a state at once."""

    def __init__(self, mech: Mechanism, noise: Noise, active: Float64Array | None):
        super().__init__(mech, noise)
        self.active = active

    def _require_accelerations(self) -> None:
        """Raise if constraints determine accelerations that are not given."""

    def fitted(
        self, held: Mechanism, q: Float64Array, v: Float64Array, a: Float64Array, tau: Any, columns: Any = None
    ) -> _Fit:
        free = held.spanning_tree
        nominal = inverse_dynamics(free, q, v, a)
        noise = self._deviations(held, len(q), np.inf if tau is None else self.of_tau)
        residuals = np.zeros(a.shape) if tau is None else np.where(np.isfinite(self.of_tau), tau - nominal, 0.0)
        solution = least_squares(held, q, v, a, nominal, residuals, noise, columns=columns, active=self.active)
        fit = (solution.weighted, solution.weighted_residuals, a + solution.rates)
        return _Fit(*fit, float(solution.chi_square.sum()), int(solution.surplus.sum()))

    def started(self, held: Mechanism, q: Any, v: Any, a: Any) -> Float64Array:
        return self.fitted(held, q, v, a, None).rates

    def _deviations(self, mech: Mechanism, count: int, of_tau: Any) -> Deviations:
        links = (count, mech.n_links, 6)
        rates, forces = (np.broadcast_to(x, (count, mech.nv)) for x in (self.of_a, of_tau))
        wrenches = np.broadcast_to(np.sqrt(self.variances), links)
        return Deviations(rates, forces, wrenches, np.full(links, np.inf))


def _holding(
    mech: Mechanism, parameters_of_mechanism: Float64Array, of_link: slice, payload: Float64Array
) -> Mechanism:
    parameters = parameters_of_mechanism.copy()
    parameters[of_link] += payload
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InertiaWarning)  # on the way, and from noise, it may be no body's
        return mech.parameters.with_inertial(parameters, strict=False)


def _moved_parameters(frame: Frame) -> Float64Array:
    """(10, 10): maps inertial parameters in a welded frame to its link's frame.

    In the form [[integral of r r*, of r], [of r*, mass]] the pose multiplies them from both sides.
    """
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = frame.rotation, frame.position
    columns = []
    for ten in np.eye(PER_LINK):
        moved = pose @ pseudo_inertia(ten) @ pose.T
        inertia = np.trace(moved[:3, :3]) * np.eye(3) - moved[:3, :3]
        columns.append([moved[3, 3], *moved[:3, 3], *(inertia[at] for at in MOMENTS)])
    return np.column_stack(columns)


def _columns(parameters: Sequence[str]) -> list[int]:
    """Places of the parameters among the ten."""
    if isinstance(parameters, str):
        parameters = (parameters,)
    indices = sorted({NAMES.index(one_of("parameter of a payload", name, NAMES)) for name in parameters})
    if not indices or indices[0] != 0:
        raise MechanismError("the parameters of a payload begin with its mass, 'm'")
    return indices


def _ten(numbers: Float64Array, indices: list[int]) -> tuple[Float64Array, Float64Array]:
    """The ten parameters of a payload, and their derivatives by the estimated ones."""
    ten = np.zeros(PER_LINK)
    ten[indices] = numbers
    if indices[-1] >= len(POINT):
        return ten, np.eye(PER_LINK)[:, indices]
    all_ten, slopes = _point(ten[: len(POINT)])
    return all_ten, slopes[:, indices]


def _warn_if_no_body(link: str, numbers: Float64Array, indices: list[int]) -> None:
    """Say that no body has the estimated rotational inertias, and which of them were left out."""
    if indices[-1] < len(POINT) or is_physical(_ten(numbers, indices)[0]):
        return
    zero = ", ".join(name for k, name in enumerate(NAMES) if k >= len(POINT) and k not in indices)
    cure = "give more states, or leave rotational inertias out for a point"
    if zero:
        cure = f"{zero} about the origin of {link!r} are zero, since parameters do not name them: name them too"
    warn_caller(f"no body has the estimated payload of {link!r}: {cure}", InertiaWarning)


def _point(four: Float64Array) -> tuple[Float64Array, Float64Array]:
    """The ten parameters of a point with mass and mass times position, and their derivatives (10, 4)."""
    mass, first = four[0], four[1:]
    slopes = np.zeros((PER_LINK, 4))
    slopes[:4, :4] = np.eye(4)
    if mass == 0.0:  # before the first step
        return np.concatenate([four, np.zeros(6)]), slopes

    def moment(u: Any, w: Any) -> Any:
        return np.dot(u, w) * np.eye(3) - np.outer(u, w)

    second_moments = moment(first, first) / mass
    slopes[4:, 0] = [-second_moments[at] / mass for at in MOMENTS]
    for k, unit in enumerate(np.eye(3)):
        change = (moment(first, unit) + moment(unit, first)) / mass
        slopes[4:, k + 1] = [change[at] for at in MOMENTS]
    return np.concatenate([four, [second_moments[at] for at in MOMENTS]]), slopes


def _scaled(information: Float64Array) -> Float64Array:
    """With ones on the diagonal, where it is not zero."""
    scale = np.sqrt(np.diag(information))
    scale = np.where(scale > 0.0, scale, 1.0)
    return information / np.outer(scale, scale)


def _untold(link: str, names: Sequence[str], direction: Float64Array) -> str:
    share = ", ".join(name for name, x in zip(names, direction, strict=True) if abs(x) > 0.1)
    label = f"the measured joint forces do not tell {share} of a payload of {link!r} apart"
    return f"{label}: move more joints, or more, or leave one out of the parameters"
