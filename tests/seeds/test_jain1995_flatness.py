"""jain1995, Section 2: when new coordinates, not only new velocities, diagonalize the equations of motion.

The mass matrix is a metric; such coordinates exist if and only if its curvature vanishes. Two mechanisms are flat: a
bead on a turning rod, and two links of which the outer is balanced. A general arm of two or three joints is not.
First derivatives of the mass matrix are by complex steps, second ones by differences of these of order eight.
"""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
from numpy.polynomial.legendre import leggauss
from scipy.integrate import solve_ivp

import linkwise as lw

from .jain1995 import Stacked
from .tip_to_base import TipToBase, close, differ, random_chain, rate, results, reversed_both

NO_GRAVITY = (0.0, 0.0, 0.0)
BEAD_MASS = 1.7


@cache
def bead_on_a_rod() -> lw.Mechanism:
    """A massless rod rotates about an axis, a point mass slides along it: polar coordinates of a plane."""
    builder = lw.Builder()
    builder.link("rod").joint("turn", lw.Revolute([0.0, 0.0, 1.0]), "ground", "rod")
    builder.link("bead", BEAD_MASS).joint("slide", lw.Prismatic([1.0, 0.0, 0.0]), "rod", "bead")
    return builder.build("bead_on_a_rod", NO_GRAVITY)


@cache
def balanced_arm() -> lw.Mechanism:
    """Two parallel joints, the outer link with its mass centre on its joint's axis."""
    builder = lw.Builder()
    builder.link("inner", 2.0, (0.3, 0.0, 0.0), np.diag([0.02, 0.1, 0.1]))
    builder.joint("first", lw.Revolute([0.0, 0.0, 1.0]), "ground", "inner")
    builder.link("outer", 1.5, (0.0, 0.0, 0.1), np.diag([0.05, 0.06, 0.07]))
    builder.joint("second", lw.Revolute([0.0, 0.0, 1.0]), "inner", "outer", (np.eye(3), (0.6, 0.0, 0.0)))
    return builder.build("balanced_arm", NO_GRAVITY)


def general_arm(n: int) -> lw.Mechanism:
    return random_chain(n, 4).with_gravity(NO_GRAVITY)


# Geometry of the mass matrix, joints counted from the tip --------------------------------------------------------


def metric(mech, theta) -> np.ndarray:
    """M(theta) = H phi M phi* H*; theta may be complex."""
    arm = TipToBase(mech, theta[::-1])
    half = arm.diagonal(arm.H) @ arm.stacked_phi
    return half @ arm.diagonal(arm.M) @ half.T


def gradient(mech, theta) -> np.ndarray:
    """[i, j, k]: the derivative of M[i, j] by theta(k)."""
    step = 1e-30
    return np.stack([metric(mech, theta + 1j * step * axis).imag / step for axis in np.eye(len(theta))], axis=-1)


def first_kind(mech, theta) -> np.ndarray:
    """Christoffel symbols [ij, k]."""
    d = gradient(mech, theta)
    return 0.5 * (np.einsum("jki->ijk", d) + np.einsum("ikj->ijk", d) - d)


def second_kind(mech, theta) -> np.ndarray:
    """Christoffel symbols {l, ij} as [l, i, j]."""
    return np.einsum("lk,ijk->lij", np.linalg.inv(metric(mech, theta)), first_kind(mech, theta))


def partials(function, theta) -> np.ndarray:
    """Derivatives of function(theta) by every angle, along a new last axis."""
    return np.stack([rate(lambda t, axis=axis: function(theta + t * axis)) for axis in np.eye(len(theta))], axis=-1)


def linear_part(second) -> np.ndarray:
    """The bracket of (2.5); second[i, j, k, l] is the derivative of M[i, j] by theta(k) and theta(l)."""
    terms = {"hkij": 1, "ijhk": 1, "hjik": -1, "ikhj": -1}
    return 0.5 * sum(sign * np.einsum(f"{order}->hijk", second) for order, sign in terms.items())


def riemann(mech, theta) -> np.ndarray:
    """(2.5): R[h, i, j, k]."""
    second = partials(lambda x: gradient(mech, x), theta)
    one, two = first_kind(mech, theta), second_kind(mech, theta)
    quadratic = np.einsum("lij,hkl->hijk", two, one) - np.einsum("lik,hjl->hijk", two, one)
    return linear_part(second) + quadratic


def random_angles(n: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.5, 1.5, n)


# Assumption 2.1 and Lemma 2.1 ------------------------------------------------------------------------------------


def cartesian(theta) -> np.ndarray:
    """f of the bead: its place in the plane, times the root of its mass. theta(1) is the slide, theta(2) the angle."""
    slide, rot = theta
    return np.sqrt(BEAD_MASS) * slide * np.array([np.cos(rot), np.sin(rot)])


def root_of_bead(theta) -> np.ndarray:
    """m with m* the gradient of f."""
    slide, rot = theta
    return np.sqrt(BEAD_MASS) * np.array([[np.cos(rot), np.sin(rot)], [-slide * np.sin(rot), slide * np.cos(rot)]])


def root_of_arm(theta) -> np.ndarray:
    """Of the balanced arm: the innovations factor, which is constant."""
    return reversed_both(lw.formulations.diagonal.factor(balanced_arm(), theta[::-1]))


#: mechanism, f, m
FLAT = pytest.mark.parametrize(
    "mech, f, m",
    [
        (bead_on_a_rod(), cartesian, root_of_bead),
        (balanced_arm(), lambda theta: root_of_arm(np.zeros(2)).T @ theta, root_of_arm),
    ],
    ids=["bead", "balanced"],
)


@results("jain1995", "2.2", "2.3", by="library")
@FLAT
def test_globally_diagonalizing_coordinates(mech, f, m):
    """Assumption 2.1: the gradient of f is m*, and m m* is the mass matrix, everywhere."""
    for seed in range(3):
        theta = random_angles(2, seed)
        close(partials(f, theta), m(theta).T)  # (2.2)
        close(m(theta) @ m(theta).T, reversed_both(lw.mass_matrix(mech, theta[::-1])))  # (2.3)
        assert abs(np.linalg.det(m(theta))) > 1e-3


@results("jain1995", "Lemma 2.1", "2.4", by="library")
@FLAT
def test_lemma_2_1(mech, f, m):
    """The new coordinates accelerate as epsilon = l T alone says; the proof's first line has lost dots in print."""
    rng = np.random.default_rng(3)
    theta, theta_dot, T = random_angles(2), rng.normal(size=2), rng.normal(size=2)
    theta_ddot = lw.forward_dynamics(mech, theta[::-1], theta_dot[::-1], T[::-1])[::-1]
    at = lambda t: theta + theta_dot * t + theta_ddot * t**2 / 2  # noqa: E731
    velocity = lambda t: rate(lambda s: f(at(t + s)))  # noqa: E731
    close(velocity(0.0), m(theta).T @ theta_dot)
    close(0.5 * velocity(0.0) @ velocity(0.0), lw.kinetic_energy(mech, theta[::-1], theta_dot[::-1]))
    ell, m_dot = np.linalg.inv(m(theta)), rate(lambda t: m(at(t)))
    close(rate(velocity), ell @ T, 1e-9)  # (2.4)
    # The proof.
    close(m(theta).T @ theta_ddot + m_dot.T @ theta_dot, ell @ T, 1e-9)
    close(theta_ddot, ell.T @ (ell @ T - m_dot.T @ theta_dot), 1e-9)
    coriolis = lw.bias_force(mech, theta[::-1], theta_dot[::-1])[::-1]
    close(ell @ coriolis - m_dot.T @ theta_dot, np.zeros(2), 1e-9)
    quadratic = np.einsum("ijk,i,j->k", gradient(mech, theta), theta_dot, theta_dot)
    close(quadratic, 2 * m_dot @ velocity(0.0), 1e-9)
    M_dot = rate(lambda t: metric(mech, at(t)))
    close(ell @ M_dot @ theta_dot, ell @ m_dot @ velocity(0.0) + m_dot.T @ theta_dot, 1e-9)
    if mech is bead_on_a_rod():  # the other arm has no Coriolis terms to lose
        differ(coriolis, np.zeros(2))
        differ(m(theta).T @ theta_dot + m_dot.T @ theta, ell @ T)  # the first line as printed


# Lemma 2.2 -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mech", [general_arm(3), bead_on_a_rod()], ids=["general", "bead"])
def test_christoffel_symbols_are_the_coriolis_forces(mech):
    n, rng = mech.nv, np.random.default_rng(1)
    theta, theta_dot = random_angles(n), rng.normal(size=n)
    forces = np.einsum("ijk,i,j->k", first_kind(mech, theta), theta_dot, theta_dot)
    close(forces, lw.bias_force(mech, theta[::-1], theta_dot[::-1])[::-1])
    close(forces, (lw.coriolis_matrix(mech, theta[::-1], theta_dot[::-1]) @ theta_dot[::-1])[::-1])


@results("jain1995", "2.5", by="model")
@pytest.mark.parametrize("n", [2, 3])
def test_riemannian_symbols(n):
    """The symbols of the first kind are the curvature tensor with its index lowered, in its usual definition."""
    mech, theta = general_arm(n), random_angles(n)
    R, two = riemann(mech, theta), second_kind(mech, theta)
    d = partials(lambda x: second_kind(mech, x), theta)  # [l, i, k, j]: {l, ik} by theta(j)
    mixed = np.einsum("likj->lijk", d) - np.einsum("lijk->lijk", d)
    mixed += np.einsum("mik,lmj->lijk", two, two) - np.einsum("mij,lmk->lijk", two, two)
    close(R, np.einsum("hl,lijk->hijk", metric(mech, theta), mixed), 1e-9)
    close(R, -R.transpose(1, 0, 2, 3), 1e-9)
    close(R, -R.transpose(0, 1, 3, 2), 1e-9)
    close(R, R.transpose(2, 3, 0, 1), 1e-9)
    close(R + R.transpose(0, 2, 3, 1) + R.transpose(0, 3, 1, 2), np.zeros_like(R), 1e-9)


@results("jain1995", "Lemma 2.2", by="model")
@pytest.mark.parametrize("n", [2, 3, 4])
def test_number_of_symbols(n):
    """n^2 (n^2 - 1) / 12 of them are independent; the printed n (n + 1) / 2 is right for three joints only."""
    rng = np.random.default_rng(n)
    second = rng.normal(size=(2 * n**2, n, n, n, n))
    second = second + second.transpose(0, 2, 1, 3, 4)
    second = second + second.transpose(0, 1, 2, 4, 3)
    rank = np.linalg.matrix_rank([linear_part(sample).ravel() for sample in second])
    assert rank == n**2 * (n**2 - 1) // 12
    assert (rank == n * (n + 1) // 2) == (n == 3)


@results("jain1995", "Lemma 2.2", "2.5", by="library")
@FLAT
def test_flat_mechanisms(mech, f, m):
    assert lw.formulations.diagonal.is_globally_diagonalizable(mech)
    for seed in range(3):
        close(riemann(mech, random_angles(2, seed)), np.zeros((2, 2, 2, 2)), 1e-9)
        close(lw.formulations.diagonal.curvature(mech, random_angles(2, seed)[::-1]), np.zeros((2, 2, 2, 2)), 1e-9)


@results("jain1995", "Lemma 2.2", "2.5", by="library")
@pytest.mark.parametrize("n", [2, 3])
def test_general_arms_are_not_flat(n):
    """And then the innovations factor m* is no gradient, though it diagonalizes the velocities."""
    mech, theta = general_arm(n), random_angles(n)
    assert not lw.formulations.diagonal.is_globally_diagonalizable(mech)
    differ(riemann(mech, theta), np.zeros((n,) * 4))
    close(lw.formulations.diagonal.curvature(mech, theta[::-1])[::-1, ::-1, ::-1, ::-1], riemann(mech, theta), 1e-9)
    by_angle = partials(lambda x: Stacked(TipToBase(mech, x[::-1])).m.T, theta)
    differ(by_angle, by_angle.transpose(0, 2, 1))


def transported_round(mech, x, corner, sides) -> np.ndarray:
    """A velocity x transported parallel to itself around a rectangle of the angles theta(1), theta(2)."""
    for direction in np.array([[1, 0], [0, 1], [-1, 0], [0, -1]]) * sides:

        def rotating(s, x, start=corner, direction=direction):
            return -np.einsum("lij,i,j->l", second_kind(mech, start + s * direction), direction, x)

        x = solve_ivp(rotating, (0.0, 1.0), x, "DOP853", rtol=1e-10, atol=1e-11).y[:, -1]
        corner = corner + direction
    return x


@results("jain1995", "Lemma 2.2", "2.5", by="model")
@pytest.mark.parametrize("mech", [bead_on_a_rod(), general_arm(2)], ids=["bead", "general"])
def test_carrying_a_velocity_around(mech):
    """Where new coordinates exist, m* x stays what it is on any path. Otherwise a closed path rotates x by the integral
    of the curvature over what it encloses: so no f can exist."""
    corner, sides, x = np.array([0.6, 0.3]), np.array([0.7, 0.5]), np.array([0.4, -0.8])
    round_trip = transported_round(mech, x, corner, sides)
    M = metric(mech, corner)
    close(round_trip @ M @ round_trip, x @ M @ x, 1e-9)  # lengths stay
    m = np.linalg.cholesky(M)
    before, after = m.T @ x, m.T @ round_trip
    angle = np.arctan2(before[0] * after[1] - before[1] * after[0], before @ after)

    def density(theta):
        return riemann(mech, theta)[0, 1, 0, 1] / np.sqrt(np.linalg.det(metric(mech, theta)))

    assert abs(density(corner) - density(corner + [0.0, sides[1]])) < 1e-9  # the base may rotate as it likes
    nodes, weights = leggauss(12)
    along = [density(corner + [sides[0] * (node + 1) / 2, 0.0]) for node in nodes]
    close(angle, sides.prod() / 2 * weights @ along, 1e-8)
    if mech is bead_on_a_rod():
        close(round_trip, x, 1e-9)
    else:
        differ(round_trip, x)
