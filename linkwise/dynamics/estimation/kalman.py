"""The filter and the smoother of rodriguez1986, Section 9, with all that they compute on the way."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ...compiler.registry import compile_instead
from ...compiler.store import float64_function
from ...mechanism import Mechanism, MechanismError, require_mechanism
from ..identification import rotor_inertias
from ..states import Float64Array, state_arrays
from ..trees import inverse_dynamics, joint_wrenches
from .noise import Noise, certainty_and_spread


@dataclass(frozen=True, eq=False)
class KalmanFilter:
    """An arm as an estimation problem: spatial forces are states, joint forces are measurements of them, and the links'
    spatial inertias are the covariances of the forces that enter at the links (rodriguez1986, Section 9).

    P, P_plus      (..., n_links, 6, 6) covariances of the predicted and the updated force onto each link (9.6, 9.10):
                   articulated inertias
    Lambda         (..., n_links, 6, 6) covariances of the co-states (9.19)
    S              (..., n_links, 6, 6) covariances of the smoothed forces (9.17): P - P Lambda P
    G              (..., nv, 6) gains (9.8)
    innovations    (..., nv) measured joint forces less predicted ones (9.5); D their variances (9.7)
    forces         (..., n_links, 6) predicted (9.4); smoothed (..., n_links, 6) given all measurements (9.13)
    co_states      (..., n_links, 6): what the joint accelerations add to the links' accelerations (9.15, 9.16)
    accelerations  (..., nv) of the joints: forward dynamics, if measurements have no noise

    All in link frames.  Degrees of freedom of one joint are taken in one after the other.
    """

    P: Float64Array
    P_plus: Float64Array
    Lambda: Float64Array
    S: Float64Array
    G: Float64Array
    innovations: Float64Array
    D: Float64Array
    forces: Float64Array
    smoothed: Float64Array
    co_states: Float64Array
    accelerations: Float64Array

    @property
    def log_likelihood(self) -> Float64Array:
        """(...): the logarithm of the probability density of the joint forces."""
        return -0.5 * np.sum(self.innovations**2 / self.D + np.log(2.0 * np.pi * self.D), axis=-1)


@compile_instead("'kalman_filter'")
def kalman(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    tau: ArrayLike,
    torque_noise: ArrayLike = 0.0,
    wrenches: ArrayLike | None = None,
) -> KalmanFilter:
    """Filter joint forces from tip to base and smooth from base to tip.

    torque_noise   standard deviation of the measured joint forces, the square root of R in D = H P H* + R: a number,
                   (nv,), or a dictionary by joint; rotor inertias add to R
    wrenches       (n_links, 6): known ones on the links
    """
    _require_order(mech)
    arrays = state_arrays(mech, {"q": q, "v": v, "tau": tau})
    q, v, tau = arrays["q"], arrays["v"], arrays["tau"]
    noise = _measurement_noise(mech, torque_noise)
    at_rest = np.zeros(mech.nv)
    residuals = tau - inverse_dynamics(mech, q, v, at_rest, wrenches)
    matrices, joints, vectors = float64_function(mech, "kalman_filter")(q, residuals, noise)
    covariance, updated, co_state_covariance, smoothed_covariance = np.moveaxis(matrices, -3, 0)
    innovations, determinants, accelerations = np.moveaxis(joints[..., 6:], -1, 0)
    predicted, co_states = np.moveaxis(vectors, -2, 0)
    expected = joint_wrenches(mech, q, v, at_rest, wrenches)
    return KalmanFilter(
        covariance,
        updated,
        co_state_covariance,
        smoothed_covariance,
        joints[..., :6],
        innovations,
        determinants / noise[..., 0],
        expected + predicted,
        expected + predicted + np.einsum("...ij,...j->...i", covariance, co_states),
        co_states,
        accelerations,
    )


@compile_instead("'filter_gains'")
def gains(mech: Mechanism, q: ArrayLike, torque_noise: ArrayLike = 0.0) -> tuple[Float64Array, Float64Array]:
    """The gains G (..., nv, 6) and innovation variances D (..., nv) of ``kalman`` by propagation of square roots.

    No covariance is formed and nothing is subtracted from one: matrices A with P = A A* go from tip to base, and the
    gain falls out of them ("direct propagation of the filter gain", rodriguez1986 Section 12).  They cost more than
    covariances do, and keep digits where those are ill-conditioned.
    """
    _require_order(mech)
    q = state_arrays(mech, {"q": q})["q"]
    both = float64_function(mech, "filter_gains")(q, np.sqrt(_variance(mech, torque_noise)))
    return both[..., :6], both[..., 6]


def _require_order(mech: Mechanism) -> None:
    """The filter predicts the force onto a link from what lies beyond it."""
    require_mechanism(mech)
    if mech.loops:
        raise MechanismError(
            f"the filter goes from tip to base, and in the loops of mechanism {mech.name!r} no link lies beyond the "
            "others: the force onto a link has no covariance before the loop is closed.  estimation.smooth takes "
            "constraints as perfect measurements; mech.spanning_tree is the mechanism without them"
        )


def _measurement_noise(mech: Mechanism, torque_noise: ArrayLike) -> Float64Array:
    return certainty_and_spread(np.sqrt(_variance(mech, torque_noise)))


def _variance(mech: Mechanism, torque_noise: ArrayLike) -> Float64Array:
    deviation = Noise(torque=torque_noise).of_torques(mech)
    if not np.isfinite(deviation).all():
        raise MechanismError("torque_noise must be finite: the filter takes the forces of all joints as measured")
    return np.square(deviation) + rotor_inertias(mech)
