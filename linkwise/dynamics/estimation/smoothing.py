"""The smoother: what accelerations, joint forces and wrenches were, given noisy measurements, and their likelihood."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ...compiler.registry import compile_instead
from ...compiler.store import float64_function
from ...constraints.masks import loop_mask
from ...mechanism import Mechanism, MechanismError, require_mechanism
from ..force_elements import ALL, OF_RECORDS, joint_forces
from ..passive import Passive
from ..states import STATE, Argument, Float64Array, common_batch, real_numbers, state_arrays
from ..trees import inverse_dynamics, link_accelerations
from .least_squares import Deviations, Solution, least_squares
from .noise import Noise, certainty_and_spread

LOG_2_PI = float(np.log(2.0 * np.pi))


@dataclass(frozen=True, eq=False)
class Estimate:
    """Result of an estimation: most likely values and, as ``..._std`` and covariances, how far they may be off.

    a, a_std                   (..., nv) joint accelerations
    tau, tau_std               (..., nv) joint forces
    wrenches                   (..., n_links, 6) on the links, [moment; force] in link frames
    wrench_covariances         (..., n_links, 6, 6)
    innovations                (..., nv) each measured joint force less what was measured beyond it lets expect (nan
                               where nothing did); with constraints or joints that mimic others, less what
                               accelerations and the forces of joints with higher numbers let expect
    innovation_variances       (..., nv)
    log_likelihood             (...) of all that was measured
    """

    a: Float64Array
    a_std: Float64Array
    tau: Float64Array
    tau_std: Float64Array
    wrenches: Float64Array
    wrench_covariances: Float64Array
    innovations: Float64Array
    innovation_variances: Float64Array
    log_likelihood: Float64Array

    @property
    def wrench_std(self) -> Float64Array:
        """(..., n_links, 6)"""
        return _root(np.diagonal(self.wrench_covariances, axis1=-2, axis2=-1))


@compile_instead("'estimate', or 'estimate_with_sensors'")
def smooth(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | None,
    tau: ArrayLike | None,
    noise: Noise,
    wrenches: ArrayLike | None = None,
    link_accelerations: ArrayLike | None = None,
    passive: Passive | None = None,
    active: ArrayLike | None = None,
) -> Estimate:
    """The estimate of least weighted squares, which for Gaussian noise is the most likely one; O(n_links) for trees.

    q, v                 taken as exact
    a, tau               measured joint accelerations and forces; None where none are (``noise`` then says infinity);
                         entries with infinite noise are not looked at
    noise                their standard deviations, and those of wrenches on links
    wrenches             (n_links, 6): expected ones, default none
    link_accelerations   (n_links, 6): measured, as ``linkwise.link_accelerations`` gives them, if ``noise`` has their
                         deviations
    passive              in place of the springs, damping, friction and limits of the joints; default the mechanism's
    active               (..., len(mech.loops)) booleans: constraints that hold, as for ``linkwise.forward_dynamics``

    Joint forces are those of motors: what else acts on the mechanism (``mech.forces.active``) acts besides.
    Constraints are perfect measurements: accelerations obey them, and nothing is known of their forces but what
    measurements of joint forces say.  Joints without motors have the exact force zero.  Where constraints share a load
    that no measured force has, the least joint forces are taken, and their deviations are infinite.
    """
    measured = _Measured(mech, q, v, a, tau, noise, wrenches, link_accelerations, passive, active)
    if measured.as_a_whole:
        return measured.estimate()
    joints, deviations, covariances, rows = measured.run("estimate")
    measured.require_answers(rows)
    rates, rate_variances, forces, force_variances = np.moveaxis(joints, -1, 0)
    innovations, variances = measured.innovations(rows)
    return Estimate(
        measured.a + rates,
        _root(rate_variances),
        measured.nominal + forces,
        _root(force_variances),
        measured.wrenches + deviations,
        covariances,
        innovations,
        variances,
        measured.log_likelihood(rows),
    )


@compile_instead("'estimation_innovations'")
def log_likelihood(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike | None,
    tau: ArrayLike | None,
    noise: Noise,
    wrenches: ArrayLike | None = None,
    link_accelerations: ArrayLike | None = None,
    passive: Passive | None = None,
    active: ArrayLike | None = None,
) -> Float64Array:
    """(...): the logarithm of the probability density of what was measured, by one sweep of the filter; arguments as
    for ``smooth``.  Joint accelerations of which nothing was measured are equally likely everywhere, with density 1;
    under constraints the dimensionless motions that these allow are, and the constraint forces."""
    measured = _Measured(mech, q, v, a, tau, noise, wrenches, link_accelerations, passive, active)
    if measured.as_a_whole:
        return measured.solution().log_likelihood.reshape(measured.batch)[()]
    rows = measured.run("estimation_innovations")
    measured.require_answers(rows)
    return measured.log_likelihood(rows)


class _Measured:
    """Measurements as deviations from what they let expect of each other, with their noise."""

    def __init__(
        self,
        mech: Mechanism,
        q: Any,
        v: Any,
        a: Any,
        tau: Any,
        noise: Noise,
        wrenches: Any,
        sensed: Any,
        passive: Passive | None,
        active: Any = None,
    ):
        require_mechanism(mech)
        if not isinstance(noise, Noise):
            raise TypeError(f"noise is a linkwise.estimation.Noise, got {noise!r}")
        self.mech, self.noise = mech, noise
        of_a, of_tau = noise.of_accelerations(mech), noise.of_torques(mech)
        self.of_rates, self.of_forces = certainty_and_spread(of_a), certainty_and_spread(of_tau)
        self.variances = np.square(noise.of_wrenches(mech))
        arrays = state_arrays(mech, {"q": q, "v": v})
        self.q, self.v = arrays["q"], arrays["v"]
        self.a = _heeded(mech, "a", "acceleration", a, of_a)
        self.tau = _heeded(mech, "tau", "torque", tau, of_tau)
        self.wrenches = np.zeros((mech.n_links, 6)) if wrenches is None else real_numbers("wrenches", wrenches)
        self.active = loop_mask(mech, active, q=self.q)
        self.batch = common_batch(
            {
                "q": self.q.shape[:-1],
                "v": self.v.shape[:-1],
                "a": self.a.shape[:-1],
                "tau": self.tau.shape[:-1],
                "wrenches": self.wrenches.shape[:-2],
                "noise": self.of_rates.shape[:-2],
                "active": () if self.active is None else self.active.shape[:-1],
            }
        )
        needed = inverse_dynamics(mech.spanning_tree, self.q, self.v, self.a, wrenches)
        self.nominal = needed - forces_besides_motors(mech, self.q, self.v, passive)
        self.residuals = np.where(self.of_forces[..., 0] > 0.0, self.tau - self.nominal, 0.0)
        self.sensed = _sensed(mech, self.q, self.v, self.a, noise, sensed)

    @property
    def as_a_whole(self) -> bool:
        """Whether loops or mimic joints couple joints, so that each state is solved as one system."""
        return bool(self.mech.loops or self.mech.coordinates.mimic_joints)

    def solution(self) -> Solution:
        """The solution of all states, one after the other."""
        mech = self.mech
        sensors = self.noise.of_link_accelerations(mech)
        noise = Deviations(
            self._each(self.noise.of_accelerations(mech), 1),
            self._each(self.noise.of_torques(mech), 1),
            self._each(self.noise.of_wrenches(mech), 2),
            self._each(np.full((mech.n_links, 6), np.inf) if sensors is None else sensors, 2),
        )
        heeded = np.where(self.of_forces[..., 0] > 0.0, self.residuals, 0.0)
        return least_squares(
            mech,
            self._each(self.q, 1),
            self._each(self.v, 1),
            self._each(self.a, 1),
            self._each(self.nominal, 1),
            self._each(heeded, 1),
            noise,
            None if self.sensed is None else self._each(self.sensed[0], 2),
            active=None if self.active is None else self._each(self.active, 1),
        )

    def _each(self, array: Float64Array, axes: int) -> Float64Array:
        """(B, ...): an array broadcast to all states; ``axes`` is its number of core axes."""
        core = array.shape[array.ndim - axes :]
        return np.broadcast_to(array, (*self.batch, *core)).reshape(-1, *core)

    def estimate(self) -> Estimate:
        """The estimate that ``solution`` makes of all states, in the shape of their batch."""
        solution = self.solution()

        def of(array: Float64Array) -> Float64Array:
            return array.reshape((*self.batch, *array.shape[1:]))

        return Estimate(
            self.a + of(solution.rates),
            _root(of(solution.rate_variances)),
            self.nominal + of(solution.forces),
            _root(of(solution.force_variances)),
            self.wrenches + of(solution.wrenches),
            of(solution.wrench_covariances),
            of(solution.innovations),
            of(solution.innovation_variances),
            of(solution.log_likelihood)[()],
        )

    def run(self, name: str) -> Any:
        arrays = [self.q, self.residuals, self.of_rates, self.of_forces, self.variances]
        function = float64_function(self.mech, name if self.sensed is None else f"{name}_with_sensors")
        with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # ``require_answers`` says what is wrong
            return function(*arrays, *(self.sensed or ()))

    def require_answers(self, rows: Float64Array) -> None:
        """Raise unless measurements determine every joint's motion, and exact ones do not contradict each other."""
        determinants = rows[..., 1]
        bad = np.flatnonzero(~(np.isfinite(determinants) & (determinants > 0.0)).reshape(-1, self.mech.nv).all(axis=0))
        if bad.size:
            # Filtered inward, what fails at a joint spoils all nearer to the base: the outermost is to blame.
            joint = next(
                body.joint
                for body in reversed(self.mech.bodies)
                if body.nv and set(range(self.mech.nv)[self.mech.v_index(body.joint)]) & set(bad.tolist())
            )
            raise MechanismError(
                f"joint {joint!r} of mechanism {self.mech.name!r}: either nothing tells its acceleration (neither that "
                "nor its force is measured), or both are measured without noise and nothing else is uncertain; give "
                "Noise finite numbers, and positive ones where measurements may disagree"
            )

    def innovations(self, rows: Float64Array) -> tuple[Float64Array, Float64Array]:
        with np.errstate(divide="ignore", invalid="ignore"):
            variances = rows[..., 1] / (self.of_forces[..., 0] * rows[..., 2])
        return np.where(np.isfinite(variances), rows[..., 0], np.nan), variances

    def log_likelihood(self, rows: Float64Array) -> Float64Array:
        certain, rates = self.of_forces[..., 0], self.of_rates[..., 0]
        measured = certain > 0.0
        logarithms = np.log(rows[..., 1]) - np.log(np.where(measured, certain, 1.0))
        logarithms = logarithms - np.log(np.where(rates > 0.0, rates, 1.0)) + LOG_2_PI * measured
        total = -0.5 * np.sum(rows[..., 3] + logarithms, axis=-1)
        if self.sensed is not None:
            misses, weights = self.sensed
            known = weights > 0.0
            total = total - 0.5 * np.sum(
                np.where(known, misses**2 * weights - np.log(np.where(known, weights, 1.0)) + LOG_2_PI, 0.0),
                axis=(-2, -1),
            )
        return total


def forces_besides_motors(mech: Mechanism, q: Float64Array, v: Float64Array, passive: Passive | None) -> Float64Array:
    """(..., nv): of all that acts but actuators, whose forces are among the measured ones."""
    forces = ALL if passive is None else (*OF_RECORDS, passive)
    return joint_forces(mech.with_acting(actuators=False), q, v, forces=forces)


def _heeded(mech: Mechanism, name: str, field: str, measured: Any, deviation: Float64Array) -> Float64Array:
    """Measurements, with zeros where their noise is infinite."""
    unknown = np.isinf(deviation)
    if measured is None:
        if not unknown.all():
            raise MechanismError(
                f"{name} is missing: Noise.{field} says that it is measured (infinity: that it is not)"
            )
        return np.zeros(mech.nv)
    values = np.where(unknown, 0.0, STATE[name].array(mech, measured))
    if not np.isfinite(values).all():
        raise MechanismError(f"{name} has entries that are not finite, and Noise.{field} says that they are measured")
    return values


def _sensed(
    mech: Mechanism, q: Float64Array, v: Float64Array, a: Float64Array, noise: Noise, measured: Any
) -> tuple[Float64Array, Float64Array] | None:
    """Measured link accelerations minus those due to the measured joint accelerations, and their inverse variances."""
    deviation = noise.of_link_accelerations(mech)
    if (deviation is None) != (measured is None):
        raise MechanismError("link_accelerations go with Noise.link_acceleration: give both, or neither")
    if deviation is None:
        return None
    values = Argument("link_accelerations", ("n_links", 6)).array(mech, measured)
    unknown = np.isinf(deviation)
    weights = np.where(unknown, 0.0, 1.0 / np.where(unknown, 1.0, deviation) ** 2)
    return np.where(unknown, 0.0, values - link_accelerations(mech, q, v, a)), weights


def _root(variances: Float64Array) -> Float64Array:
    """Standard deviations; a variance that is zero may come out below by round-off."""
    return np.sqrt(np.maximum(variances, 0.0))
