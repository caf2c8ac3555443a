"""Estimation on a tree: joint accelerations and forces measured with noise, unknown wrenches on the links.

Deviations from the measured values obey alpha = phi* H* a, f = phi (M alpha - w), tau = H f + R a.  One sweep inward
filters (``links/knowledge.py``), one outward smooths: rodriguez1986, Section 9, with noise of measurements, of joint
accelerations and of wrenches.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from ..links.knowledge import (
    AT_GROUND,
    EXACT,
    NOTHING,
    Elimination,
    Estimate,
    Knowledge,
    Noise,
    Spread,
    eliminate,
    force_covariance,
    inertia_columns,
    smooth,
    spread_beyond,
)
from ..links.mobility import Matrix6, propagate_mobility
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar
from ..spatial import ArticulatedInertia, Force
from ..spatial.inertia import NOTHING_ARTICULATED
from ..spatial.motion import NO_FORCE
from .algorithm import UNCONSTRAINED, Algorithm, register
from .filter_gains import REASON, require_independent_joints


class Filter:
    """The filter: a sweep inward.

    residuals       measured joint forces less those of the measured accelerations and expected wrenches
    of_rates        (nv, 2): certainty and spread of measured joint accelerations
    of_forces       (nv, 2): of measured joint forces
    variances       (n_links, 6): of wrenches on the links, in their frames; "inertia" for the links' spatial inertias,
                    as in rodriguez1986
    sensed          measured link accelerations less those of the measured joint accelerations, and the inverse
                    variances of these measurements, each (n_links, 6)
    """

    def __init__(self, tree: Tree, q, residuals, of_rates, of_forces, variances, sensed=None):
        require_independent_joints(tree)
        self.tree, self.at, self.variances, self.sensed = tree, Configuration(tree, q), variances, sensed
        self.residuals, starts = tree.per_joint(residuals), tree.dof_starts
        self.noises = [
            [(Noise(*of_rates[s + k]), Noise(*of_forces[s + k])) for k in range(link.joint.nv)]
            for s, link in zip(starts, tree.links, strict=True)
        ]
        self._joined: dict[int, Knowledge] = {}
        self._done: dict[int, tuple[list[Elimination], Knowledge]] = {}
        tip_to_base(tree.links, "what measurements say, filtered", lambda i, _: (self.joint(i), None))

    def own(self, i: int) -> Knowledge:
        """Information on link i alone."""
        link, user = self.tree.links[i], self.tree.links[i].user
        inertia = link.inertia.articulated()
        covariance = inertia
        if not isinstance(self.variances, str):
            covariance = user.inertia_back(_diagonal(self.variances[i]))
        information, evidence = NOTHING_ARTICULATED, NO_FORCE
        if self.sensed is not None:
            misses, weights = (list(part[i]) for part in self.sensed)
            information = user.inertia_back(_diagonal(weights))
            evidence = user.force_back(Force.of([x * w for x, w in zip(misses, weights, strict=True)]))
        exact = all(_is_exact(rate) for joint in self.noises for rate, _ in joint) and self.sensed is None
        return Knowledge(NOTHING if exact else inertia_columns(inertia), covariance, information, NO_FORCE, evidence)

    def link(self, i: int) -> Knowledge:
        """Information on link i with its subtree."""
        if i not in self._joined:
            self._joined[i] = self.at.neighbours.from_children(
                i, (self, "known"), self._knowledge_at_parent, self.own(i)
            )
        return self._joined[i]

    def joint(self, i: int) -> tuple[list[Elimination], Knowledge]:
        """Information on link i beyond its joint, and the elimination of each degree of freedom."""
        if i not in self._done:
            known, steps = self.link(i), []
            kinematics = self.at.joint_kinematics[i]
            armature = kinematics.link.armature
            for k, h in enumerate(kinematics.motion):
                step, known = eliminate(known, h, armature[k], self.residuals[i][k], *self.noises[i][k])
                steps.append(step)
            self._done[i] = steps, known
        return self._done[i]

    def _knowledge_at_parent(self, i: int) -> Knowledge:
        return self.joint(i)[1].behind(self.at.joint_kinematics[i].transform)

    def eliminations(self) -> list[Elimination]:
        return [step for i in range(len(self.tree.links)) for step in self.joint(i)[0]]

    def smoothed(self) -> list[Smoothed]:
        """The smoother: a sweep outward."""

        def step(i: int, parent: Smoothed | None) -> Smoothed:
            estimate = (parent.estimate if parent else AT_GROUND).into(self.at.joint_kinematics[i].transform)
            smoothed = []
            for done in reversed(self.joint(i)[0]):
                estimate, *of_joint = smooth(done, estimate)
                smoothed.append(of_joint)
            rates, misses, co_states = map(list, zip(*reversed(smoothed), strict=True))
            forces = [e + x for e, x in zip(self.residuals[i], misses, strict=True)]
            return Smoothed(estimate, rates, forces, co_states)

        return base_to_tip(self.tree.links, "accelerations and co-states, smoothed", step)

    def spreads(self) -> list[SpreadOfLink]:
        """Second moments, by a sweep outward."""

        def step(i: int, parent: SpreadOfLink | None) -> SpreadOfLink:
            spread = (parent.spread if parent else EXACT).into(self.at.joint_kinematics[i].transform)
            collected = []
            for done in reversed(self.joint(i)[0]):
                spread, *of_joint = spread_beyond(done, spread)
                collected.append(of_joint)
            rates, forces = map(list, zip(*reversed(collected), strict=True))
            return SpreadOfLink(spread, rates, forces)

        return base_to_tip(self.tree.links, "their covariances", step)


class Smoothed(NamedTuple):
    """Smoothed values of one link and its joint."""

    estimate: Estimate
    rates: list[Scalar]
    forces: list[Scalar]
    co_states: list[Scalar]


class SpreadOfLink(NamedTuple):
    """Covariances of one link, and the variances at its joint."""

    spread: Spread
    rates: list[Scalar]
    forces: list[Scalar]


def _diagonal(six: Sequence[Scalar]) -> ArticulatedInertia:
    return ArticulatedInertia.from_entries(lambda i, j: six[i] if i == j else 0.0)


def _is_exact(noise: Noise) -> bool:
    return isinstance(noise.spread, float) and noise.spread == 0.0


# -- algorithms -----------------------------------------------------------------------------------------


def innovations(tree: Tree, q, residuals, of_rates, of_forces, variances, *sensed) -> Matrix:
    """(nv, 4): innovations, determinants, informations of joint accelerations, quadratic terms of the likelihood."""
    return _innovations(Filter(tree, q, residuals, of_rates, of_forces, variances, sensed or None))


def _innovations(filtered: Filter) -> Matrix:
    names = ("innovation", "determinant", "rate_information", "quadratic")
    return [[getattr(step, name) for name in names] for step in filtered.eliminations()]


def weighted_residuals(tree: Tree, q, residuals, of_rates, of_forces, variances) -> list[Scalar]:
    """(nv,): the residuals times the inverse of their covariance."""
    smoothed = Filter(tree, q, residuals, of_rates, of_forces, variances).smoothed()
    return [x for joint in smoothed for x in joint.co_states]


def estimate(tree: Tree, q, residuals, of_rates, of_forces, variances, *sensed) -> tuple[Any, ...]:
    """Joint accelerations, their variances, joint forces, their variances (nv, 4); wrenches on the links (n_links, 6)
    and their covariances (n_links, 6, 6): all as deviations from expected values; and the ``innovations``."""
    filtered = Filter(tree, q, residuals, of_rates, of_forces, variances, sensed or None)
    smoothed, spreads = filtered.smoothed(), filtered.spreads()
    joints = [
        list(row)
        for joint, other in zip(smoothed, spreads, strict=True)
        for row in zip(joint.rates, other.rates, joint.forces, other.forces, strict=True)
    ]
    wrenches, covariances = [], []
    for i, (joint, other) in enumerate(zip(smoothed, spreads, strict=True)):
        user, deviations = tree.links[i].user, list(variances[i])
        co_state = user.motion_into(joint.estimate.co_state).flat()
        wrenches.append([-(x * w) for x, w in zip(co_state, deviations, strict=True)])
        moments = propagate_mobility(user, other.spread.of_co_states)
        covariances.append(_square(partial(_explained, deviations, moments)))
    return joints, wrenches, covariances, _innovations(filtered)


def _explained(deviations: Sequence[Scalar], moments: Matrix6, r: int, c: int) -> Scalar:
    """An entry of the covariance of a wrench."""
    entry = deviations[r] * deviations[c] * moments[r][c]
    return entry + deviations[r] if r == c else entry


def kalman(tree: Tree, q, innovations, of_forces) -> tuple[Any, ...]:
    """rodriguez1986, Section 9: covariances P-, P+, Lambda- and S (n_links, 4, 6, 6) in link frames; gains,
    innovations, determinants and joint accelerations (nv, 9); predicted forces and co-states (n_links, 2, 6)."""
    exact = [(1.0, 0.0)] * tree.dofs
    filtered = Filter(tree, q, innovations, exact, of_forces, "inertia")
    estimates, spreads = filtered.smoothed(), filtered.spreads()
    matrices, rows, vectors = [], [], []
    for i, link in enumerate(tree.links):
        known, (steps, kept), spread = filtered.link(i), filtered.joint(i), spreads[i].spread
        moments, smoothed = propagate_mobility(link.user, spread.of_co_states), force_covariance(known, spread)
        matrices.append(
            [
                _matrix_at_user_frame(link.user, known.covariance.entry),
                _matrix_at_user_frame(link.user, kept.covariance.entry),
                [[-x for x in row] for row in moments],
                _matrix_at_user_frame(link.user, partial(_entry, smoothed)),
            ]
        )
        for step, rate in zip(steps, estimates[i].co_states, strict=True):
            rows.append([*link.user.force_into(step.gain).flat(), step.innovation, step.determinant, rate])
        co_state = link.user.motion_into(estimates[i].estimate.co_state)
        vectors.append([link.user.force_into(known.force).flat(), co_state.flat()])
    return matrices, rows, vectors


def _matrix_at_user_frame(user, entry: Callable[[int, int], Scalar]) -> Matrix:
    moved = user.inverse().inertia_back(ArticulatedInertia.from_entries(entry))
    return _square(moved.entry)


def _entry(matrix: Matrix6, i: int, j: int) -> Scalar:
    return matrix[i][j]


def _square(entry: Callable[[int, int], Scalar]) -> Matrix:
    return [[entry(i, j) for j in range(6)] for i in range(6)]


INPUTS = ("q", "residuals", "of_rates", "of_forces", "variances")
SENSORS = ("sensed", "weights")
ESTIMATED = ("estimated_joints", "wrenches", "wrench_covariances", "innovations")

for _name, _inputs, _output, _recursion in (
    ("estimate", INPUTS, ESTIMATED, estimate),
    ("estimate_with_sensors", (*INPUTS, *SENSORS), ESTIMATED, estimate),
    ("estimation_innovations", INPUTS, "innovations", innovations),
    ("estimation_innovations_with_sensors", (*INPUTS, *SENSORS), "innovations", innovations),
    ("weighted_residuals", INPUTS, "weighted", weighted_residuals),
    (
        "kalman_filter",
        ("q", "residuals", "of_forces"),
        ("filter_covariances", "filtered_joints", "forces_and_co_states"),
        kalman,
    ),
):
    register(Algorithm(_name, _inputs, _output, _recursion, reason=REASON, requires=UNCONSTRAINED, sweeps=True))
