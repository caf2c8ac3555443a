"""Rates of the articulated inertias along a motion, one joint at a time (jain1995 Table 3 and Algorithm 6.1).

All rates are rates of components in the link's own frame.  The paper treats one revolute joint; here the motions H* may
have several columns that change with the configuration, and D may contain rotor inertias.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..scalar import Scalar, is_zero, sqrt
from ..spatial import ArticulatedInertia, Force, Motion
from .articulation import Articulation
from .factor import Factor
from .link import JointKinematics, combine


@dataclass(frozen=True)
class JointMotion:
    """Motion of a joint: H* v, and the rates of the columns of H*."""

    relative: Motion
    columns: tuple[Motion, ...]

    @property
    def turns_its_columns(self) -> bool:
        return any(not is_zero(x) for column in self.columns for x in column.flat())


def joint_motion(kinematics: JointKinematics, q: Sequence[Scalar], v: Sequence[Scalar]) -> JointMotion:
    return JointMotion(combine(kinematics.motion, v), kinematics.link.joint.motion_rate(q, v))


@dataclass(frozen=True)
class ArticulationRate:
    """Rates of P H*, D and P+ of one joint; ``gain`` returns the rate of G."""

    joint: Articulation
    columns: tuple[Force, ...]
    d: list[list[Scalar]]
    remaining: ArticulatedInertia

    def gain(self) -> tuple[Force, ...]:
        """dG/dt = (d(P H*)/dt - G dD/dt) D^-1; tau_bar dP/dt H* D^-1 for constant H."""
        n = len(self.columns)
        rest = [_less(self.columns[j], self.joint.gain, [self.d[m][j] for m in range(n)]) for j in range(n)]
        rows = [self.joint.factor.solve([column.flat()[k] for column in rest]) for k in range(6)]
        return tuple(Force.of([row[j] for row in rows]) for j in range(n))


def articulation_rate(
    joint: Articulation, inertia: ArticulatedInertia, rate: ArticulatedInertia, moving: JointMotion | None
) -> ArticulationRate:
    """Rates of a joint, from P and dP/dt of its link.

    dP+/dt = dP/dt - Y G* - G Y* with Y = d(P H*)/dt - G dD/dt / 2; tau_bar dP/dt tau_bar* for constant H.
    """
    motions, n = joint.kinematics.motion, len(joint.kinematics.motion)
    columns = [rate @ h for h in motions]
    d = [[columns[j].dot(motions[i]) for j in range(n)] for i in range(n)]
    if moving is not None and moving.turns_its_columns:
        images = [inertia @ change for change in moving.columns]
        image_rates = [[image.dot(h) for image in images] for h in motions]  # H P dH*/dt
        d = [[d[i][j] + image_rates[i][j] + image_rates[j][i] for j in range(n)] for i in range(n)]
        columns = [column + image for column, image in zip(columns, images, strict=True)]
    y = [_less(columns[j], joint.gain, [0.5 * d[m][j] for m in range(n)]).flat() for j in range(n)]
    gain = [g.flat() for g in joint.gain]

    def remaining(i: int, j: int) -> Scalar:
        if i not in joint.held or j not in joint.held:
            return 0.0
        entry = rate.entry(i, j)
        for image_rates, g in zip(y, gain, strict=True):
            entry = entry - image_rates[i] * g[j] - g[i] * image_rates[j]
        return entry

    return ArticulationRate(joint, tuple(columns), d, ArticulatedInertia.from_entries(remaining))


def rate_to_parent(rate: ArticulationRate, moving: JointMotion | None) -> ArticulatedInertia:
    """The rate of phi P+ phi*: the rate of P+ and the motion of the link relative to its parent."""
    total = rate.remaining
    if moving is not None:
        total = total + rate.joint.remaining.transport_rate(moving.relative)
    return rate.joint.kinematics.transform.inertia_back(total)


def half_rate(factor: Factor, d: Sequence[Sequence[Scalar]]) -> list[list[Scalar]]:
    """The lower triangular F with dL/dt = L F for D = L L*, L Cholesky's factor: L^-1 dD/dt L^-*, diagonal halved."""
    n = len(d)
    once = [factor.forward(column) for column in d]  # rows, dD/dt being symmetric
    both = [factor.forward([once[j][i] for j in range(n)]) for i in range(n)]
    roots = [sqrt(r) for r in factor.reciprocal]
    return [
        [both[i][j] * roots[i] * roots[j] for j in range(i)] + [0.5 * both[i][i] * factor.reciprocal[i]]
        for i in range(n)
    ]


def _less(force: Force, gain: Sequence[Force], weights: Sequence[Scalar]) -> Force:
    for g, weight in zip(gain, weights, strict=True):
        force = force - g * weight
    return force
