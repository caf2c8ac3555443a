"""Information of measurements beyond a joint, on the force through it and the acceleration behind it.

For a link that accelerates with alpha, the force that its joint transmits onto it is

    f = F alpha + z + noise of covariance P,

and the likelihood of accelerations alpha by measurements at and beyond it is exp(-alpha* Y alpha / 2 + y* alpha). With
exact accelerations this is the Kalman filter of rodriguez1986, Section 9: z and P are the predicted state and its
covariance, F is not needed, Y is zero.  All terms are collected in one function,

    g(lambda, alpha) = lambda* P lambda / 2 + lambda* (F alpha + z) - alpha* Y alpha / 2 + y* alpha,

whose arguments transform outward alike: the co-state lambda of the force (rodriguez1986 9.15) and the acceleration.  A
degree of freedom h of a joint gives alpha = beta + h a, and its force h* f + rho a is measured: g is made stationary
over the joint's acceleration a and over the co-state mu of that measurement.  Noise of either may be infinite or zero:
each variance is a ratio of two numbers (``Noise``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..scalar import Scalar
from ..spatial import ArticulatedInertia, Force, Motion, Transform
from ..spatial.inertia import NOTHING_ARTICULATED
from ..spatial.motion import NO_FORCE, NO_MOTION
from .mobility import IMMOBILE, Matrix6, propagate_mobility, symmetric

Columns = tuple[Force, ...]  # of a 6x6 matrix from motions to forces
NOTHING: Columns = (NO_FORCE,) * 6


class Noise(NamedTuple):
    """The variance ``spread / certainty`` of a measurement: exact if spread is 0, unknown if certainty is 0."""

    certainty: Scalar
    spread: Scalar


class Knowledge(NamedTuple):
    """F by columns, P, Y, z, y of one link."""

    response: Columns
    covariance: ArticulatedInertia
    information: ArticulatedInertia
    force: Force
    evidence: Force

    def __add__(self, other: Knowledge) -> Knowledge:  # type: ignore[override]
        return Knowledge(
            tuple(a + b for a, b in zip(self.response, other.response, strict=True)),
            self.covariance + other.covariance,
            self.information + other.information,
            self.force + other.force,
            self.evidence + other.evidence,
        )

    def behind(self, change: Transform) -> Knowledge:
        """This information in terms of the parent's acceleration and the force on the parent."""
        return Knowledge(
            columns_back(change, self.response),
            change.inertia_back(self.covariance),
            change.inertia_back(self.information),
            change.force_back(self.force),
            change.force_back(self.evidence),
        )


UNKNOWN = Knowledge(NOTHING, NOTHING_ARTICULATED, NOTHING_ARTICULATED, NO_FORCE, NO_FORCE)


class Elimination(NamedTuple):
    """One degree of freedom of a joint after its acceleration and measured force are used.

    The gradient of g over mu and a is [of_force* lambda + of_force_behind* beta + miss, of_rate* lambda -
    of_rate_behind* beta + pull]; the inverse of its Hessian is [[mu_mu, mu_a], [mu_a, -a_a]].
    """

    h: Motion
    of_force: Force  # P h
    of_force_behind: Force  # F* h
    of_rate: Force  # F h
    of_rate_behind: Force  # Y h
    miss: Scalar  # h* z less the measured force
    pull: Scalar  # h* y
    mu_mu: Scalar
    mu_a: Scalar
    a_a: Scalar
    left: tuple[Scalar, Scalar, Scalar]  # of the measured force: its coefficients in both gradients, its least variance
    determinant: Scalar  # A D + C^2, scaled to be finite
    rate_information: Scalar  # A, scaled likewise
    innovation: Scalar
    quadratic: Scalar  # twice the measurement's reduction of the log-likelihood
    gain: Force


def eliminate(
    known: Knowledge, h: Motion, rotor: Scalar, measured: Scalar, of_rate: Noise, of_force: Noise
) -> tuple[Elimination, Knowledge]:
    """Process one degree of freedom; ``measured`` is its force.

    With variances r of the force and 1/n of the acceleration, the Hessian of g over (mu, a) is [[D, C], [C, -A]] with D
    = h* P h + r, A = h* Y h + n, C = h* F h + rho, and the remainder of g has its Schur complement.  Fractions are
    multiplied by the denominators of r and n, which avoids division by 0 or infinity.
    """
    ph, m = known.covariance @ h, transposed_times(known.response, h)
    k, w = times(known.response, h), known.information @ h
    miss, pull = known.force.dot(h) - measured, known.evidence.dot(h)
    coupling = k.dot(h) + rotor
    spread = ph.dot(h)
    rate = of_rate.certainty + of_rate.spread * w.dot(h)
    force = of_force.certainty * spread + of_force.spread
    both = of_rate.spread * coupling
    determinant = rate * force + of_force.certainty * both * coupling
    once = 1.0 / determinant
    mu_mu, mu_a, a_a = (
        of_force.certainty * rate * once,
        of_force.certainty * both * once,
        of_rate.spread * force * once,
    )
    along_force, along_rate = ph * mu_mu + k * mu_a, ph * mu_a - k * a_a
    rest = of_force.spread * once
    left = (rest * rate, rest * both, rest * (rate * spread + both * coupling))
    quadratic = miss * (mu_mu * miss + 2.0 * mu_a * pull) - a_a * pull * pull
    innovation = -(miss + both * pull / rate)
    done = Elimination(
        h, ph, m, k, w, miss, pull, mu_mu, mu_a, a_a, left, determinant, rate, innovation, quadratic, along_force
    )  # fmt: skip
    kept = Knowledge(
        rank_one(rank_one(known.response, along_force, m, -1.0), along_rate, w, 1.0),
        less(known.covariance, ph, along_force, k, along_rate),
        less(known.information, m, w * mu_a - m * mu_mu, w, m * mu_a + w * a_a),
        known.force - along_force * miss - along_rate * pull,
        known.evidence - m * (mu_mu * miss + mu_a * pull) + w * (mu_a * miss - a_a * pull),
    )
    return done, kept


# -- outward --------------------------------------------------------------------------------------------


class Estimate(NamedTuple):
    """Co-state and acceleration of a link."""

    co_state: Motion
    acceleration: Motion

    def into(self, change: Transform) -> Estimate:
        return Estimate(change.motion_into(self.co_state), change.motion_into(self.acceleration))


AT_GROUND = Estimate(NO_MOTION, NO_MOTION)


def smooth(done: Elimination, behind: Estimate) -> tuple[Estimate, Scalar, Scalar, Scalar]:
    """Estimates beyond a degree of freedom: its acceleration, its force, and the co-state of its measurement."""
    along_force, along_rate = _gradient(done, behind)
    mu = -(done.mu_mu * along_force + done.mu_a * along_rate)
    rate = done.a_a * along_rate - done.mu_a * along_force
    missed = done.left[0] * along_force + done.left[1] * along_rate
    beyond = Estimate(behind.co_state + done.h * mu, behind.acceleration + done.h * rate)
    return beyond, rate, missed, mu


def _gradient(done: Elimination, behind: Estimate) -> tuple[Scalar, Scalar]:
    along_force = done.of_force.dot(behind.co_state) + done.of_force_behind.dot(behind.acceleration) + done.miss
    return along_force, done.of_rate.dot(behind.co_state) - done.of_rate_behind.dot(behind.acceleration) + done.pull


class Spread(NamedTuple):
    """Second moments of co-states and accelerations: minus Lambda of rodriguez1986 (9.19), products (rows of
    co-states), and the covariance of accelerations."""

    of_co_states: Matrix6
    mixed: Matrix6
    of_accelerations: Matrix6

    def into(self, change: Transform) -> Spread:
        return Spread(
            propagate_mobility(change, self.of_co_states),
            _both_into(change, self.mixed),
            propagate_mobility(change, self.of_accelerations),
        )


EXACT = Spread(IMMOBILE, IMMOBILE, IMMOBILE)


def spread_beyond(done: Elimination, behind: Spread) -> tuple[Spread, Scalar, Scalar]:
    """Variances beyond a degree of freedom: of its acceleration and of its force."""
    force_columns, other = (done.of_force, done.of_force_behind), (done.of_rate, done.of_rate_behind * -1.0)
    seen_own, seen_other = _image(behind, *force_columns), _image(behind, *other)
    g11, g12, g22 = _product(force_columns, seen_own), _product(force_columns, seen_other), _product(other, seen_other)
    a, c, d = done.mu_mu, done.mu_a, done.a_a
    t1, t2, t3, t4 = a * g11 + c * g12, a * g12 + c * g22, c * g11 - d * g12, c * g12 - d * g22
    co_state, mixed, rate = t1 * a + t2 * c - a, t1 * c - t2 * d - c, t3 * c - t4 * d + d
    e, f, least = done.left
    force = e * (e * g11 + 2.0 * f * g12) + f * f * g22 + least
    mu = tuple(x * a + y * c for x, y in zip(seen_own, seen_other, strict=True))
    own_rate = tuple(x * c - y * d for x, y in zip(seen_own, seen_other, strict=True))
    h, (mu_l, mu_b), (rate_l, rate_b) = done.h.flat(), (x.flat() for x in mu), (x.flat() for x in own_rate)

    def corrected(
        known: Matrix6, left: Sequence[Scalar], right: Sequence[Scalar], core: Scalar, i: int, j: int
    ) -> Scalar:
        return known[i][j] - h[i] * right[j] - left[i] * h[j] + core * (h[i] * h[j])

    return (
        Spread(
            symmetric(lambda i, j: corrected(behind.of_co_states, mu_l, mu_l, co_state, i, j)),
            tuple(tuple(corrected(behind.mixed, rate_l, mu_b, mixed, i, j) for j in range(6)) for i in range(6)),
            symmetric(lambda i, j: corrected(behind.of_accelerations, rate_b, rate_b, rate, i, j)),
        ),
        rate,
        force,
    )


def _image(spread: Spread, on_co_state: Force, on_acceleration: Force) -> tuple[Motion, Motion]:
    u, w = on_co_state.flat(), on_acceleration.flat()
    return (
        Motion.of([_row(spread.of_co_states[i], u) + _row(spread.mixed[i], w) for i in range(6)]),
        Motion.of([_row([row[i] for row in spread.mixed], u) + _row(spread.of_accelerations[i], w) for i in range(6)]),
    )


def _product(forces: tuple[Force, Force], motions: tuple[Motion, Motion]) -> Scalar:
    return forces[0].dot(motions[0]) + forces[1].dot(motions[1])


def force_covariance(known: Knowledge, spread: Spread) -> Matrix6:
    """S = P + [P F] (second moments) [P F]*, of the force onto a link; P - P Lambda P for exact accelerations
    (rodriguez1986 9.18)."""
    rows = [
        (Force.of([known.covariance.entry(i, j) for j in range(6)]), Force.of([c.flat()[i] for c in known.response]))
        for i in range(6)
    ]
    seen = [_image(spread, *row) for row in rows]
    return symmetric(lambda i, j: known.covariance.entry(i, j) + _product(rows[i], seen[j]))


# -- 6x6 matrices ---------------------------------------------------------------------------------------


def times(columns: Columns, motion: Motion) -> Force:
    total = NO_FORCE
    for column, x in zip(columns, motion.flat(), strict=True):
        total = total + column * x
    return total


def transposed_times(columns: Columns, motion: Motion) -> Force:
    return Force.of([column.dot(motion) for column in columns])


def columns_back(change: Transform, columns: Columns) -> Columns:
    """X* F X."""
    for _ in range(2):
        columns = transposed(tuple(change.force_back(column) for column in columns))
    return columns


def transposed(columns: Columns) -> Columns:
    return tuple(Force.of(row) for row in zip(*(column.flat() for column in columns), strict=True))


def inertia_columns(inertia: ArticulatedInertia) -> Columns:
    return tuple(Force.of([inertia.entry(i, j) for i in range(6)]) for j in range(6))


def rank_one(columns: Columns, left: Force, right: Force, sign: float) -> Columns:
    """F + sign left right*."""
    return tuple(column + left * (sign * x) for column, x in zip(columns, right.flat(), strict=True))


def less(matrix: ArticulatedInertia, a: Force, b: Force, c: Force, d: Force) -> ArticulatedInertia:
    """A - a b* - c d*, if known to be symmetric."""
    a6, b6, c6, d6 = a.flat(), b.flat(), c.flat(), d.flat()
    return ArticulatedInertia.from_entries(lambda i, j: matrix.entry(i, j) - a6[i] * b6[j] - c6[i] * d6[j])


def _both_into(change: Transform, matrix: Matrix6) -> Matrix6:
    """X A X*."""
    rows: Sequence[Sequence[Scalar]] = matrix
    for _ in range(2):
        moved = [change.motion_into(Motion.of(list(row))).flat() for row in rows]
        rows = list(zip(*moved, strict=True))
    return tuple(tuple(row) for row in rows)


def _row(a: Sequence[Scalar], b: Sequence[Scalar]) -> Scalar:
    total: Scalar = 0.0
    for x, y in zip(a, b, strict=True):
        total = total + x * y
    return total
