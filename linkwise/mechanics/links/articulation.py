"""The Riccati step of one joint: D = H P H*, G = P H* D^-1, P+ = P - G D G*, and its use on forces and motions.

rodriguez1986 (8.2-8.5), rodriguez1992 (34-36), jain1995 (4.8).  Armature (rotor inertia) adds to D.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..scalar import Scalar, is_constant, is_zero
from ..spatial import ArticulatedInertia, Force, Motion, Translation
from .factor import Factor
from .kinematics import AngularVelocity, bias_of_shift
from .link import JointKinematics


@dataclass(frozen=True)
class Articulation:
    """The joint of one link after elimination: D (factored), G by columns, and P+ (P as acting behind the joint)."""

    kinematics: JointKinematics
    d: list[list[Scalar]]
    factor: Factor
    gain: tuple[Force, ...]
    held: tuple[int, ...]  # rows in which P+ may be nonzero: the joint does not move freely along them
    remaining: ArticulatedInertia

    def innovation(self, tau: Sequence[Scalar], force: Force) -> list[Scalar]:
        """epsilon = tau - H z."""
        return [t - force.dot(h) for t, h in zip(tau, self.kinematics.motion, strict=True)]

    def rates(self, y: Sequence[Scalar] | None, motion: Motion) -> list[Scalar]:
        """y - G* z. The components of G that are one along the joint's own axes are subtracted last, so that they
        cancel in z + H* (y - G* z)."""
        rates = []
        for k, column in enumerate(self.gain):
            rate = y[k] if y is not None else 0.0
            known: Scalar = 0.0
            for g, x in zip(column.flat(), motion.flat(), strict=True):
                if is_constant(g):
                    known = known + g * x
                else:
                    rate = rate - g * x
            rates.append(rate - known)
        return rates

    def absorb(self, force: Force, innovation: Sequence[Scalar]) -> Force:
        """z+ = z + G epsilon."""
        for g, e in zip(self.gain, innovation, strict=True):
            force = force + g * e
        return force


def articulate(kinematics: JointKinematics, inertia: ArticulatedInertia) -> Articulation:
    """Eliminate the joint of ``kinematics`` from the articulated inertia of its link."""
    motions, armature = kinematics.motion, kinematics.link.armature
    columns = [inertia @ h for h in motions]  # P H*
    n = len(motions)
    d = [[columns[j].dot(motions[i]) + (armature[i] if i == j else 0.0) for j in range(n)] for i in range(n)]
    factor = Factor.of(d)
    free = kinematics.link.joint.span if all(is_zero(a) for a in armature) else None
    rows = [tuple(column.flat()[k] for column in columns) for k in range(6)]
    # Along free motions of the joint the remaining inertia is exactly zero, and G repeats the motion's own basis.
    held = tuple(k for k in range(6) if free is None or k not in free)
    whitened = {k: factor.forward(rows[k]) for k in held}
    scaled = {k: [y * r for y, r in zip(whitened[k], factor.reciprocal, strict=True)] for k in held}

    def remaining(i: int, j: int) -> Scalar:
        if i not in whitened or j not in whitened:
            return 0.0
        entry = inertia.entry(i, j)
        for y, s in zip(whitened[i], scaled[j], strict=True):
            entry = entry - y * s
        return entry

    unit = free is not None and all(sum(not is_zero(x) for x in h.flat()) == 1 for h in motions)
    gain_rows = [motions_row(motions, k) if unit and k not in held else factor.solve(rows[k]) for k in range(6)]
    gain = tuple(Force.of([row[j] for row in gain_rows]) for j in range(n))
    return Articulation(kinematics, d, factor, gain, held, ArticulatedInertia.from_entries(remaining))


def motions_row(motions: Sequence[Motion], k: int) -> list[Scalar]:
    return [h.flat()[k] for h in motions]


def force_to_parent(
    kinematics: JointKinematics, spin: AngularVelocity, inertia: ArticulatedInertia, force: Force | None
) -> Force:
    """phi (z+ + P+ a): each part of the bias a is multiplied by P+ at the cheapest of the joint's steps."""
    force = inertia @ spin.bias if force is None else force + inertia @ spin.bias
    for factor, omega in zip(reversed(kinematics.transform.factors), reversed(spin.propagated), strict=True):
        if isinstance(factor, Translation):
            force = force + inertia @ bias_of_shift(omega, factor.shift)
        inertia, force = factor.inertia_back(inertia), factor.force_back(force)
    return force
