"""rodriguez1986: the dynamics of an arm as filtering and smoothing, set against estimation theory done densely.

The stochastic model of Section 9: spatial forces are states, x(k) = phi x(k-1) + w(k) with white w of covariance M(k),
and the joint moments H x are measured exactly.  The oracle conditions the joint Gaussian of all states and measurements
on any set of these by solving one linear system; it knows nothing of recursions.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

import linkwise as lw
from linkwise import operators as op
from linkwise.demo.drawing import COLOURS, GREY, Panel, figure, over, styled, tidy
from linkwise.demo.exhibit import Comparison, Exhibit, Paper, Table, compare

from .diagrams import growth, matrices

PAPER = Paper(
    key="rodriguez1986",
    title="Kalman Filtering, Smoothing and Recursive Robot Arm Forward and Inverse Dynamics",
    authors="G. Rodriguez, JPL Publication 86-48, 1986",
    about="Spatial forces are the states and accelerations the co-states of a two-point boundary-value problem "
    "along the arm. Forward dynamics is then a Kalman filter that runs from tip to base and a smoother that "
    "runs back.",
    absent=(
        ("Figures 2.1 and 5.1", "sketches that define symbols"),
        ("Figure 7.1", "shows in which order a double sum is taken"),
    ),
)
LINKS = 10


# -- the arm as a stochastic process --------------------------------------------------------------------


class Gaussian:
    """The joint distribution of all links' forces x = phi w, E w = mean, cov w = M, and of the moments H x."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, mean: np.ndarray):
        self.H, phi, M = (op.dense(x, mech, q) for x in (op.H, op.phi, op.M))
        self.mean, self.covariance = phi @ mean, phi @ M @ phi.T

    def given(self, joints: Sequence[int], moments: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Mean and covariance of all forces once the moments at ``joints`` (indices) are known."""
        H = self.H[list(joints)]
        if not len(H):
            return self.mean, self.covariance
        gain = np.linalg.solve(H @ self.covariance @ H.T, H @ self.covariance).T
        known = moments[list(joints)] - H @ self.mean
        return self.mean + gain @ known, self.covariance - gain @ H @ self.covariance


class Case(NamedTuple):
    """An arm at rest under moments tau: its Gaussian, and what mechanics computes of it."""

    mech: lw.Mechanism
    q: np.ndarray
    tau: np.ndarray
    gaussian: Gaussian


@cache
def case() -> Case:
    """A chain under the moments of one realization of the process."""
    mech = lw.mechanisms.chain(LINKS)
    rng = np.random.default_rng(1986)
    q, _ = lw.random_state(mech, rng)
    # The links' weights are known forces (xi of 4.4); the co-states are then accelerations against the ground.
    weight = op.dense(op.M, mech, q) @ _upward(mech, q).ravel()
    gaussian = Gaussian(mech, q, weight)
    noise = np.linalg.cholesky(op.dense(op.M, mech, q)) @ rng.normal(size=6 * LINKS)
    tau = gaussian.H @ (gaussian.mean + op.dense(op.phi, mech, q) @ noise)
    return Case(mech, q, tau, gaussian)


def _upward(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(n, 6): the acceleration -g of every link, in its own axes."""
    rotation = lw.link_poses(mech, q)[:, :3, :3]
    return np.concatenate([np.zeros((mech.n_links, 3)), -np.einsum("kji,j->ki", rotation, mech.gravity)], axis=1)


def _block(link: int) -> slice:
    return slice(6 * link, 6 * link + 6)


@cache
def forces() -> tuple[np.ndarray, np.ndarray]:
    """(n, 6) each: accelerations of the links, and forces between them, by mechanics."""
    mech, q, tau, _ = case()
    at_rest = np.zeros(LINKS)
    a = lw.forward_dynamics(mech, q, at_rest, tau)
    accelerations = lw.link_accelerations(mech, q, at_rest, a)
    phi, M = op.dense(op.phi, mech, q), op.dense(op.M, mech, q)
    return accelerations, (phi @ M @ (accelerations + _upward(mech, q)).ravel()).reshape(-1, 6)


# -- exhibits -----------------------------------------------------------------------------------------


@PAPER.shows("Table 6.1", "Estimation and robot dynamics, row by row")
def table_6_1() -> Exhibit:
    mech, q, tau, gaussian = case()
    accelerations, between = forces()
    everything = range(LINKS)
    smoothed, _ = gaussian.given(everything, tau)
    predicted = [_given_outboard(k)[0] for k in everything]
    P = op.dense(op.P, mech, q)
    co_states = [np.linalg.solve(P[_block(k), _block(k)], smoothed[_block(k)] - predicted[k]) for k in everything]
    H, phi, M = (op.dense(x, mech, q) for x in (op.H, op.phi, op.M))
    mass = lw.mass_matrix(mech, q)
    checks = (
        compare("smoothed states: forces between links", smoothed, between.ravel(), 1e-9),
        compare("co-states: accelerations of links", co_states, accelerations, 1e-8),
        compare("measurements: H x of the smoothed states is tau", H @ smoothed, tau, 1e-9),
        compare("covariance of the measurements: mass matrix", H @ gaussian.covariance @ H.T, mass, 1e-12),
    )
    rows = [
        ("States", "x", "Spatial forces", "`op.link_vector`", f"{checks[0].deviation:.1e}"),
        ("Co-states", "λ", "Spatial accelerations", "`lw.link_accelerations`", f"{checks[1].deviation:.1e}"),
        ("Measurements", "τ", "Active moments", "`tau`", f"{checks[2].deviation:.1e}"),
        (
            "Transition matrix",
            "Φ",
            "Spatial transition matrix",
            f"`op.phi`, {phi.shape[0]} x {phi.shape[1]}",
            "defines the model",
        ),
        (
            "Process error covariance",
            "M",
            "Spatial inertia matrix",
            f"`op.M`, {M.shape[0]} x {M.shape[1]}",
            "defines the model",
        ),
        ("Known deterministic input", "ξ", "Bias spatial force", "weights of the links", "defines the model"),
        (
            "State to output map",
            "H",
            "Projection from state to joint axis",
            f"`op.H`, {H.shape[0]} x {H.shape[1]}",
            "defines the model",
        ),
    ]
    return Exhibit(
        f"The paper's table for an arm of {LINKS} links at rest. On the left a linear-Gaussian process whose states "
        "are estimated from exact measurements, by conditioning one joint distribution; on the right the mechanics "
        "of the arm. The last column is the largest difference of the two, relative.",
        tables=(Table(("estimation", "", "robot dynamics", "here", "deviation"), rows),),
        compared=checks,
    )


@cache
def _given_outboard(link: int, own: bool = False) -> tuple[np.ndarray, np.ndarray]:
    """Mean (6,) and covariance (6, 6) of a link's force given the moments further out, and its ``own`` if wanted."""
    known = range(link if own else link + 1, LINKS)
    mean, covariance = case().gaussian.given(known, case().tau)
    return mean[_block(link)], covariance[_block(link), _block(link)]


@PAPER.shows("Section 9", "The Kalman filter is the articulated-body recursion")
def section_9() -> Exhibit:
    mech, q, tau, gaussian = case()
    links = range(LINKS)
    P, P_plus, D, G = (op.dense(x, mech, q) for x in (op.P, op.P_plus, op.D, op.G))
    before = [_given_outboard(k) for k in links]
    after = [_given_outboard(k, own=True) for k in links]
    H = gaussian.H
    gains = [
        covariance @ H[k, _block(k)] / (H[k, _block(k)] @ covariance @ H[k, _block(k)])
        for k, (_, covariance) in zip(links, before, strict=True)
    ]
    moment = np.array([H[k, _block(k)] @ before[k][0] for k in links])
    spread = np.array([2.0 * np.sqrt(H[k, _block(k)] @ before[k][1] @ H[k, _block(k)]) for k in links])
    return Exhibit(
        "At each joint the filter predicts the moment from all moments further out, compares it with the one that "
        "acts, and corrects the force by its gain. The moments are one realization of the process: innovations stay "
        "within two sigma, and their variance is the articulated inertia D about the joint.",
        pictures=(_innovations(tau - moment, spread),),
        compared=(
            compare(
                "P: covariance of a link's force given the moments further out",
                [c for _, c in before],
                _blocks(P),
                1e-9,
            ),
            compare("P+: the same given the link's own moment too", [c for _, c in after], _blocks(P_plus), 1e-8),
            compare("G: regression of the force on the joint's moment", gains, [G[_block(k), k] for k in links], 1e-9),
            compare("D: variance of the innovations", np.square(spread) / 4.0, np.diag(D), 1e-9),
            compare("filter and smoother as forward dynamics (Result 8.1)", *_result_8_1(), 1e-9),
        ),
        remark="(9.9) is printed with H and H* exchanged, (8.6) with e = τ - H x, which would be zero; H z is meant.",
    )


@styled
def _innovations(innovations: np.ndarray, spread: np.ndarray) -> Any:
    """What each joint's moment adds to what was known, within twice its standard deviation."""
    drawn, joints = figure(8.0, 3.2), np.arange(1, LINKS + 1)
    axes = drawn.subplots()
    axes.fill_between(joints, -spread, spread, color=COLOURS[5], alpha=0.3, lw=0, label="±2 √D")
    axes.plot(joints, innovations, "o-", color=COLOURS[1], ms=5, label="innovation e = τ - H z")
    axes.axhline(0.0, color=GREY, lw=0.8)
    axes.invert_xaxis()
    axes.set_xticks(joints)
    axes.legend()
    tidy(axes, "", "joint (tip on the left: the filter runs to the right)", "moment about the joint (N m)")
    return drawn


def _blocks(matrix: np.ndarray) -> list[np.ndarray]:
    return [matrix[_block(k), _block(k)] for k in range(LINKS)]


def _result_8_1() -> tuple[np.ndarray, np.ndarray]:
    mech, q, tau, _ = case()
    v = np.random.default_rng(8).normal(size=LINKS)
    found = lw.forward_dynamics(mech, q, v, tau, method="filter_and_smoother")
    return found, np.linalg.solve(lw.mass_matrix(mech, q), tau - lw.bias_force(mech, q, v))


@PAPER.shows("Section 8", "Covariances and gains along the arm")
def section_8() -> Exhibit:
    mech = lw.mechanisms.planar_arm(20, length=0.2, mass=0.5)
    q = np.full(20, 0.12)
    P, D = op.dense(op.P, mech, q), np.diag(op.dense(op.D, mech, q))
    phi, M, G = (op.dense(x, mech, q) for x in (op.phi, op.M, op.G))
    composite = phi @ M @ phi.T
    links = np.arange(1, 21)
    inertia = {"articulated, D": D, "frozen outer links": np.diag(lw.mass_matrix(mech, q))}
    apparent = {
        "articulated": [P[6 * k + 3, 6 * k + 3] for k in range(20)],
        "frozen": [composite[6 * k + 3, 6 * k + 3] for k in range(20)],
    }
    gain = [np.abs(G[6 * k + 3 : 6 * k + 6, k]).max() for k in range(20)]
    panels = [
        Panel("inertia about the joint (kg m²)", {k: np.asarray(x) for k, x in inertia.items()}, logarithmic=True),
        Panel("apparent mass along the link (kg)", {k: np.asarray(x) for k, x in apparent.items()}, logarithmic=True),
        Panel("force per moment, G (1/m)", {"": np.asarray(gain)}),
    ]
    smaller = float(max(0.0, (D - np.diag(lw.mass_matrix(mech, q))).max()))
    return Exhibit(
        "A curled planar arm of 20 rods. What resists a joint is the inertia of the links beyond it, their joints "
        "free, which is far less than that of the frozen arm: the covariance P settles to a constant along the arm, "
        "as a Kalman filter's does.",
        pictures=(over(links, panels, columns=3, xlabel="joint, base to tip", width=10.0),),
        compared=(
            Comparison("articulated inertia beyond the frozen one (kg m²)", smaller, 0.0),
            compare(
                "product of all D: determinant of the mass matrix",
                np.log(D).sum(),
                np.linalg.slogdet(lw.mass_matrix(mech, q))[1],
                1e-10,
            ),
        ),
        remark="The text below (8.9) calls D the composite body's inertia; with its outer joints free is meant.",
    )


@PAPER.shows("Section 10", "Closed-form inverse of the mass matrix, and accelerations by cause")
def section_10() -> Exhibit:
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(10)
    q, v = lw.random_state(mech, rng)
    v, tau = 3.0 * v, lw.gravity_force(mech, q) + rng.normal(size=6)
    mass, inverse = lw.mass_matrix(mech, q), lw.mass_matrix_inverse(mech, q)
    parts = lw.kinematics.acceleration_parts(mech, q, v, tau)
    kernel = lw.compile("mass_matrix_inverse", mech, target="numpy")
    return Exhibit(
        "A Puma 560: its mass matrix and the inverse in closed form, "
        + f"{sum(kernel.op_counts.values())} operations, no elimination; below, the accelerations of the joints "
        "split by what causes them (10.2).",
        pictures=(
            matrices({"mass matrix": mass, "its inverse": inverse, "their product": _clean(mass @ inverse)}, columns=3),
            _causes(parts),
        ),
        compared=(
            compare("closed form times the mass matrix: identity", inverse @ mass, np.eye(6), 1e-11),
            compare(
                "sum of the three parts: elimination",
                parts.sum(axis=0),
                np.linalg.solve(mass, tau - lw.bias_force(mech, q, v)),
                1e-10,
            ),
        ),
    )


@styled
def _causes(parts: np.ndarray) -> Any:
    """Bars for the three parts of each joint's acceleration, and their sum."""
    drawn, joints = figure(7.6, 3.0), np.arange(6)
    axes = drawn.subplots()
    names = ("joint moments", "gyroscopic forces", "bias accelerations and gravity")
    for k, (name, part) in enumerate(zip(names, parts, strict=True)):
        axes.bar(joints + 0.24 * (k - 1), part, 0.22, color=COLOURS[k], label=name)
    axes.plot(joints, parts.sum(axis=0), "D", color="black", ms=5, label="sum")
    axes.axhline(0.0, color=GREY, lw=0.8)
    axes.set_xticks(joints, [f"joint {k + 1}" for k in joints])
    axes.legend()
    tidy(axes, "", "", "acceleration (rad/s²)")
    return drawn


def _clean(matrix: np.ndarray) -> np.ndarray:
    """Without what is rounding only."""
    return np.where(np.abs(matrix) < 1e-12, 0.0, matrix)


@PAPER.shows("Section 1", "Operations grow in proportion to the number of links")
def growth_of_cost() -> Exhibit:
    sizes = (2, 4, 8, 16, 32)
    named = {
        "inverse dynamics (Section 7)": ("inverse_dynamics", {}),
        "filter and smoother (Result 8.1)": ("forward_dynamics", {"method": "filter_and_smoother"}),
        "mass matrix (7.7-7.11)": ("mass_matrix", {}),
        "mass matrix inverse (Section 10)": ("mass_matrix_inverse", {}),
    }
    counts = {
        name: [
            sum(lw.compile(a, lw.mechanisms.chain(n), target="numpy", loops=False, **options).op_counts.values())
            for n in sizes
        ]
        for name, (a, options) in named.items()
    }
    order = {name: np.log2(values[-1] / values[-2]) for name, values in counts.items()}
    elimination = [c + n**3 // 3 + 2 * n**2 for c, n in zip(counts["mass matrix (7.7-7.11)"], sizes, strict=True)]
    table = Table(
        ("algorithm", *(f"n = {n}" for n in sizes), "exponent of n, at the end"),
        [(name, *map(str, values), f"{order[name]:.2f}") for name, values in counts.items()],
    )
    linear = list(order.values())[:2]
    return Exhibit(
        "Additions, multiplications, divisions and sines of compiled programs for general chains. Mass matrix and "
        "elimination together, n³/3 and more, are overtaken by the filter and smoother as the chain grows.",
        pictures=(growth(sizes, {**counts, "mass matrix and elimination": elimination}),),
        tables=(table,),
        compared=(
            Comparison("exponents of inverse and forward dynamics less 1", max(abs(x - 1.0) for x in linear), 0.12),
        ),
    )
