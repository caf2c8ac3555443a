"""Estimation with constraints, or with joints that mimic others: weighted least squares over all unknowns at once.

Constraints are perfect measurements: accelerations obey G a + bias = 0 exactly, and multipliers of which nothing is
known act besides, M a + h - J* w = tau + G* lambda.  Loops have no order in which a filter could sweep from joint to
joint, so that the normal equations of a state are solved as a whole, with covariances in place of their inverses,

    [Sigma  A] [mu]   [b]
    [A*     0] [x ] = [0],

where A x = b are all measurements and priors and Sigma the diagonal of their variances, which may be zero.  The inverse
has the covariance of x, negative, below and what weighs measurements above.  What is exact of accelerations is solved
for first, as it may follow from the constraints too.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ...constraints.accelerations import Terms, terms
from ...constraints.decomposition import Decomposition, decompose, times
from ...constraints.equations import decomposed_jacobian, warn_if_open, warn_if_opening
from ...constraints.force_units import velocity_units
from ...constraints.tolerances import LOOPS
from ...mechanism import Mechanism, MechanismError
from ..states import Float64Array
from ..trees import jacobian

NUMBERS = 2**22  # of the matrices of states that are solved at once
SINGULAR = 1e-13  # reciprocal condition of the scaled equations: something is measured by nothing
LOG_2_PI = float(np.log(2.0 * np.pi))


class Deviations(NamedTuple):
    """Standard deviations of measurements, zero where they are exact, infinite where nothing is measured.

    rates      (..., nv) of joint accelerations
    forces     (..., nv) of joint forces
    wrenches   (..., n_links, 6) of wrenches on links, finite
    sensors    (..., n_links, 6) of link accelerations, positive
    """

    rates: Float64Array
    forces: Float64Array
    wrenches: Float64Array
    sensors: Float64Array


@dataclass(frozen=True, eq=False)
class Solution:
    """Deviations from the measured accelerations, the forces that these need and the expected wrenches, of B states.

    rates, rate_variances         (B, nv)
    forces, force_variances       (B, nv); infinite variances where constraints share loads that nobody measures: the
                                  least forces that are possible are taken there
    wrenches, wrench_covariances  (B, n_links, 6), (B, n_links, 6, 6)
    innovations, innovation_variances   (B, nv): of joint forces, given accelerations, link accelerations and the
                                  forces of joints with higher numbers; nan and infinite where these let expect nothing
    log_likelihood                (B,)
    chi_square                    (B,): the weighted squares that remain
    surplus                       (B,): measurements beyond those that are needed
    weighted                      (B, nv, k): columns of joint forces, times what weighs them
    weighted_residuals            (B, nv): the gradient of half chi_square by the measured joint forces
    """

    rates: Float64Array
    rate_variances: Float64Array
    forces: Float64Array
    force_variances: Float64Array
    wrenches: Float64Array
    wrench_covariances: Float64Array
    innovations: Float64Array
    innovation_variances: Float64Array
    log_likelihood: Float64Array
    chi_square: Float64Array
    surplus: Float64Array
    weighted: Float64Array
    weighted_residuals: Float64Array


def least_squares(
    mech: Mechanism,
    q: Float64Array,
    v: Float64Array,
    a: Float64Array,
    nominal: Float64Array,
    residuals: Float64Array,
    noise: Deviations,
    sensed: Float64Array | None = None,
    columns: Float64Array | None = None,
    active: Float64Array | None = None,
) -> Solution:
    """The solution at B states.

    q, v, a     (B, nq), (B, nv), (B, nv): the state, and measured accelerations; zero where there are none
    nominal     (B, nv): joint forces that these accelerations and the expected wrenches need
    residuals   (B, nv): measured joint forces less the nominal ones
    noise       each (B, ...)
    sensed      (B, n_links, 6): measured link accelerations less those of ``a``
    columns     (B, nv, k), see ``Solution.weighted``
    active      (B, len(mech.loops)), as from ``masks.loop_mask``
    """
    at = terms(mech, q, v, active=active)
    warn_if_open(mech, at.error, active)
    warn_if_opening(mech, q, v, active)
    svd = decomposed_jacobian(mech, at.jacobian)
    links = np.flatnonzero((noise.wrenches > 0.0).any(axis=(0, 2)) | np.isfinite(noise.sensors).any(axis=(0, 2)))
    jacobians = np.zeros((len(q), mech.n_links, 6, mech.nv))
    for link in links:
        jacobians[:, link] = jacobian(mech, q, mech.link_names[link])
    sensed = np.zeros((len(q), mech.n_links, 6)) if sensed is None else sensed
    columns = np.zeros((len(q), mech.nv, 0)) if columns is None else columns
    states = _States(mech, a, nominal, residuals, noise, sensed, columns, at, svd, jacobians)
    parts = [(chosen, states.of(chosen).solved()) for chosen in states.alike()]
    if not parts:
        return _empty(mech, columns.shape[-1])
    order = np.argsort(np.concatenate([chosen for chosen, _ in parts]))
    fields = {name: np.concatenate([getattr(part, name) for _, part in parts])[order] for name in vars(parts[0][1])}
    return Solution(**fields)


def _empty(mech: Mechanism, count: int) -> Solution:
    n, links = mech.nv, mech.n_links
    rows, numbers = np.zeros((0, n)), np.zeros(0)
    wrenches = np.zeros((0, links, 6)), np.zeros((0, links, 6, 6))
    weighted = np.zeros((0, n, count))
    return Solution(rows, rows, rows, rows, *wrenches, rows, rows, numbers, numbers, numbers, weighted, rows)


@dataclass(frozen=True, eq=False)
class _States:
    """States of a batch with all that their equations are made of."""

    mech: Mechanism
    a: Float64Array
    nominal: Float64Array
    residuals: Float64Array
    noise: Deviations
    sensed: Float64Array
    columns: Float64Array
    at: Terms
    svd: Decomposition
    jacobians: Float64Array

    def of(self, chosen: np.ndarray) -> _States:
        """Some of the states."""
        svd = self.svd._replace(
            u=self.svd.u[chosen], s=self.svd.s[chosen], v=self.svd.v[chosen], rank=self.svd.rank[chosen]
        )
        return replace(
            self,
            a=self.a[chosen],
            nominal=self.nominal[chosen],
            residuals=self.residuals[chosen],
            noise=Deviations(*(x[chosen] for x in self.noise)),
            sensed=self.sensed[chosen],
            columns=self.columns[chosen],
            at=Terms(*(x[chosen] for x in self.at)),
            svd=svd,
            jacobians=self.jacobians[chosen],
        )

    def alike(self) -> Iterator[np.ndarray]:
        """Numbers of states whose equations have one shape, not too many at a time."""
        count = len(self.a)
        patterns = [self.svd.rank[:, None], np.zeros((count, 0))]
        for deviation in self.noise:
            flat = deviation.reshape(count, -1)
            patterns.append(np.where(flat == 0.0, 0, np.where(np.isinf(flat), 2, 1)))
        patterns += [self._rank_of_exact()[:, None], self._rank_of_measured()[:, None]]
        every = np.concatenate(patterns, axis=1)
        size = 3 * self.mech.nv + int((self.noise.wrenches > 0.0).sum(axis=(1, 2)).max(initial=0))
        most = max(1, NUMBERS // (2 * size) ** 2)
        for pattern in np.unique(every, axis=0):
            chosen = np.flatnonzero((every == pattern).all(axis=1))
            yield from (chosen[start : start + most] for start in range(0, len(chosen), most))

    def _rank_of_exact(self) -> np.ndarray:
        """(B,): how many of the motions that constraints allow exact accelerations determine."""
        free = self.svd.v * self.svd.is_free[..., None, :] * (self.noise.rates == 0.0)[..., None]
        return np.asarray(decompose(free, LOOPS.rank).rank)

    def _rank_of_measured(self) -> np.ndarray:
        """(B,): how many of the constraint forces change measured joint forces."""
        bound = self.svd.v * ~self.svd.is_free[..., None, :] * np.isfinite(self.noise.forces)[..., None]
        return np.asarray(decompose(bound, LOOPS.rank).rank)

    def solved(self) -> Solution:
        """The solution of states that are alike."""
        mech, noise, at = self.mech, self.noise, self.at
        n, rank = mech.nv, int(self.svd.rank[0])
        scale = np.ones(n) if self.svd.columns is None else self.svd.columns
        allowed = scale[:, None] * self.svd.v[..., rank:]  # accelerations
        bound = self.svd.v[..., :rank] / scale[:, None]  # joint forces of constraints
        start = self.svd.solve(-(times(at.jacobian, self.a) + at.bias))
        exact = noise.rates[0] == 0.0
        if exact.any():
            rows = decompose(allowed[:, exact] / scale[exact, None], LOOPS.rank)
            miss = -start[:, exact] / scale[exact]
            by = rows.solve(miss)
            self._require_consistent(miss - times(allowed[:, exact] / scale[exact, None], by), miss)
            start = start + times(allowed, by)
            allowed = allowed @ rows.v[..., int(rows.rank[0]) :]
        measured = np.isfinite(noise.forces[0])
        known = decompose(bound[:, measured] * scale[measured, None], LOOPS.rank)
        count = int(known.rank[0]) if rank else 0
        shared = bound @ known.v[..., count:] if rank else bound  # constraint forces that no measured force has
        bound = bound @ known.v[..., :count] if rank else bound
        pushed = noise.wrenches[0].ravel() > 0.0
        sensors = np.isfinite(noise.sensors[0].ravel())
        jacobians = self.jacobians.reshape(len(self.a), -1, n)
        k, p = int(pushed.sum()), allowed.shape[-1]
        # Joint forces and accelerations as they follow from x: allowed motions, wrenches, constraint forces.
        across = np.swapaxes(jacobians[:, pushed], -1, -2)
        forces = np.concatenate([at.mass @ allowed, -across, -bound], axis=-1)
        rates = np.concatenate([allowed, np.zeros((len(self.a), n, k + count))], axis=-1)
        wrenches = np.zeros((len(self.a), k, forces.shape[-1]))
        wrenches[:, :, p : p + k] = np.eye(k)
        offset = times(at.mass, start)
        loose = (noise.rates[0] > 0.0) & np.isfinite(noise.rates[0])
        A = np.concatenate([forces[:, measured], rates[:, loose], wrenches, jacobians[:, sensors] @ rates], axis=1)
        b = np.concatenate(
            [
                (self.residuals - offset)[:, measured],
                -start[:, loose],
                np.zeros((len(self.a), k)),
                self.sensed.reshape(len(self.a), -1)[:, sensors] - times(jacobians[:, sensors], start),
            ],
            axis=1,
        )
        spread = np.concatenate(
            [
                noise.forces[:, measured],
                noise.rates[:, loose],
                noise.wrenches.reshape(len(self.a), -1)[:, pushed],
                noise.sensors.reshape(len(self.a), -1)[:, sensors],
            ],
            axis=1,
        )
        inverse, mu, x, logarithm = self._solve(A, b, spread, rates, forces)
        m, told = A.shape[1], int(measured.sum())
        covariance = -inverse[:, m:, m:]
        weights = np.zeros((len(self.a), n, n))
        weights[np.ix_(range(len(self.a)), measured, measured)] = inverse[:, :told, :told]
        gradient = np.zeros((len(self.a), n))
        gradient[:, measured] = mu[:, :told]
        chi_square = np.sum(b * mu, axis=-1)
        deviations = times(forces, x) + offset
        variances = _diagonal(forces, covariance)
        if shared.shape[-1]:
            units = velocity_units(mech)
            least = decompose(units[:, None] * shared).solve(units * (self.nominal + deviations))
            deviations = deviations - times(shared, least)
            touched = np.abs(shared * scale[:, None]).max(axis=-1) > LOOPS.rank
            variances = np.where(touched, np.inf, variances)
        of_wrenches = np.zeros((len(self.a), pushed.size))
        of_wrenches[:, pushed] = x[:, p : p + k]
        all_covariances = np.zeros((len(self.a), pushed.size, pushed.size))
        all_covariances[np.ix_(range(len(self.a)), pushed, pushed)] = covariance[:, p : p + k, p : p + k]
        blocks = all_covariances.reshape(len(self.a), mech.n_links, 6, mech.n_links, 6)
        link = np.arange(mech.n_links)
        innovations, innovation_variances = _innovations(weights, gradient)
        return Solution(
            start + times(rates, x),
            _diagonal(rates, covariance),
            deviations,
            variances,
            of_wrenches.reshape(-1, mech.n_links, 6),
            np.moveaxis(blocks[:, link, :, link], 0, 1),
            innovations,
            innovation_variances,
            -0.5 * (chi_square + logarithm + (m - A.shape[2]) * LOG_2_PI),
            chi_square,
            np.full(len(self.a), m - A.shape[2]),
            weights @ self.columns,
            gradient,
        )

    def _solve(
        self, A: Float64Array, b: Float64Array, spread: Float64Array, rates: Float64Array, forces: Float64Array
    ) -> tuple[Float64Array, Float64Array, Float64Array, Float64Array]:
        """The inverse of the equations, mu, x and the logarithm of the size of their determinant; rows and columns are
        scaled to numbers about one."""
        m, n = A.shape[1:]
        matrix = np.zeros((len(A), m + n, m + n))
        matrix[:, :m, m:], matrix[:, m:, :m] = A, np.swapaxes(A, -1, -2)
        matrix[:, range(m), range(m)] = spread**2
        scale = np.ones((len(A), m + n))
        for _ in range(3):
            largest = np.abs(scale[:, :, None] * matrix * scale[:, None, :]).max(axis=-1, initial=0.0)
            scale /= np.sqrt(np.where(largest > 0.0, largest, 1.0))
        scaled = scale[:, :, None] * matrix * scale[:, None, :]
        finite = np.isfinite(scaled).all(axis=(-1, -2), keepdims=True)  # unknown states have unknown results
        sizes = np.linalg.svd(np.where(finite, scaled, np.eye(m + n)), compute_uv=False)
        if sizes.size and (poor := ~(sizes[:, -1] > SINGULAR * sizes[:, 0])).any():
            state = int(np.argmax(poor))
            self._refuse(np.linalg.svd(scaled[state])[2][-1] * scale[state], m, rates[state], forces[state])
        inverse = np.linalg.inv(np.where(finite, scaled, np.eye(m + n)))
        known = scale * np.concatenate([b, np.zeros((len(b), n))], axis=1)
        both = times(inverse, known)
        both = scale * (both + times(inverse, known - times(scaled, both)))
        inverse = scale[:, :, None] * inverse * scale[:, None, :]
        unknown = ~finite[:, 0]
        both[unknown[:, 0]], inverse[unknown[:, 0]] = np.nan, np.nan
        logarithm = np.log(sizes).sum(axis=-1) - 2.0 * np.log(scale).sum(axis=-1)
        return inverse, both[:, :m], both[:, m:], logarithm

    def _require_consistent(self, left: Float64Array, miss: Float64Array) -> None:
        """Raise if exact accelerations violate the constraints."""
        most = np.abs(self.a).max(axis=-1, initial=0.0) + np.abs(miss).max(axis=-1, initial=0.0)
        off = np.abs(left).max(axis=-1, initial=0.0)
        if np.any(off > np.sqrt(LOOPS.acceleration) * np.maximum(most, np.finfo(float).tiny)):
            raise MechanismError(
                f"accelerations of mechanism {self.mech.name!r} that are measured without noise violate its "
                f"constraints by {np.nanmax(off):.3g}: give Noise.acceleration positive numbers, or infinity for "
                "joints whose accelerations are not measured"
            )

    def _refuse(self, null: Float64Array, m: int, rates: Float64Array, forces: Float64Array) -> None:
        """Raise, naming what is not measured, or measured twice without noise, by a vector of the null space of the
        equations."""
        x, mech = null[m:], self.mech
        moved = np.abs(rates @ x) if np.abs(rates @ x).max(initial=0.0) > 0.0 else np.abs(forces @ x)
        if np.abs(null[m:]).max(initial=0.0) < np.abs(null[:m]).max(initial=0.0):
            measured = np.flatnonzero(np.isfinite(self.noise.forces[0]))
            moved = np.zeros(mech.nv)
            moved[measured] = np.abs(null[: len(measured)])
        worst = int(np.argmax(moved))
        raise MechanismError(
            f"joint coordinate {mech.v_names[worst]!r} of mechanism {mech.name!r}: either nothing tells its "
            "acceleration (neither constraints nor measurements do), or forces and accelerations are measured without "
            "noise and nothing else is uncertain; give Noise finite numbers, and positive ones where measurements may "
            "disagree"
        )


def _diagonal(rows: Float64Array, covariance: Float64Array) -> Float64Array:
    """(B, n): the diagonal of rows covariance rows*."""
    return np.sum((rows @ covariance) * rows, axis=-1)


def _innovations(weights: Float64Array, gradient: Float64Array) -> tuple[Float64Array, Float64Array]:
    """(B, n) each: deviations of joint forces from their prediction by the later ones, and their variances.

    ``weights`` is the inverse covariance of all joint forces given everything else, ``gradient`` what it makes of their
    deviations.  Its elimination from the first on leaves the inverse covariance of the others alone."""
    weights, gradient = weights.copy(), gradient.copy()
    n = gradient.shape[-1]
    innovations, variances = np.full(gradient.shape, np.nan), np.full(gradient.shape, np.inf)
    largest = np.einsum("...ii->...i", weights).copy()
    for k in range(n):
        pivot = weights[:, k, k]
        tells = pivot > SINGULAR * largest[:, k]
        once = np.divide(1.0, pivot, out=np.zeros_like(pivot), where=tells)
        innovations[:, k] = np.where(tells, gradient[:, k] * once, np.nan)
        variances[:, k] = np.where(tells, once, np.inf)
        row = weights[:, k].copy()
        gradient -= row * (gradient[:, k] * once)[:, None]
        weights -= once[:, None, None] * row[:, :, None] * row[:, None, :]
    return innovations, variances
