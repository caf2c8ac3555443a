"""Decoupled control of jain1995 (Section 8), extended to follow motions, with bounded joint forces.

In total rates nu = m* v the equations of motion are dnu/dt + C(q, nu) = epsilon. Control 8.1, epsilon = -c nu, brings
them to rest. About a reference rate v_r = v_d + Lambda (q_d - q) it follows a motion: with sigma = m* (v - v_r),

    tau = M dv_r/dt + C(q, v) v_r + g - kappa m c sigma        dV/dt = -kappa sigma* c sigma,   V = sigma* sigma / 2

where C has the skew symmetry of dM/dt - 2 C (Slotine and Li, "On the adaptive control of robot manipulators", 1987;
their gain is K = m c m* here: every sigma decays at its own rate, except for exchange by C). kappa = 1, unless forces
would exceed their bounds: then the whole feedback is scaled down, in the same direction.

It is stable, and errors decay exponentially from every start, if - every joint has a motor, and model and mechanism
agree; - no joint rotates freely (spherical and floating joints): no continuous feedback leads from all rotations to
one, and half a turn from the reference is an equilibrium; - bounds leave room: M dv_r/dt + C v_r + g stays below them,
so that kappa is positive. Otherwise V may grow. Bounds on each force separately (``saturated``) have no such function:
the remaining m c sigma may increase sigma.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ..dynamics.actuation import require_motors
from ..dynamics.by_joint import numbers_per_velocity
from ..dynamics.states import Float64Array, in_brief
from ..mechanics.algorithms.catalogue import ALGORITHMS
from ..mechanics.algorithms.configuration import difference
from ..mechanics.algorithms.coriolis_matrix import coriolis_matrix
from ..mechanics.algorithms.dynamics import inverse_dynamics
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar, dot, select
from ..mechanism import Mechanism, require_mechanism
from .compiled import (
    CompiledControl,
    ControlLaw,
    Numbers,
    Scalars,
    clipped,
    format_limit,
    gains,
    joint_reference,
)


@dataclass(frozen=True)
class DecoupledTrackingLaw(ControlLaw):
    """See above; the reference is [q_d, v_d, a_d]."""

    rate_gain: Numbers = ()
    position_gain: Numbers = ()
    limit: Numbers = ()

    def __str__(self) -> str:
        return (
            f"decoupled tracking, rate gain {in_brief(self.rate_gain)}, position gain {in_brief(self.position_gain)}"
            f"{format_limit(self.limit)}"
        )

    def torques(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> list[Scalar]:
        sigma, forward = self.errors(tree, q, v, reference)
        back = ALGORITHMS["diagonal_torques"].function(
            tree, q, [-c * s for c, s in zip(self.rate_gain, sigma, strict=True)], normalized=True
        )
        kappa = self._share(forward, back)
        return [clipped(f + kappa * b, most) for f, b, most in zip(forward, back, self.limit, strict=True)]

    def errors(self, tree: Tree, q: Scalars, v: Scalars, reference: Scalars) -> tuple[list[Scalar], list[Scalar]]:
        """sigma, and the forces without feedback."""
        nq, nv = tree.mechanism.nq, tree.mechanism.nv
        wanted, rates, accelerations = reference[:nq], reference[nq : nq + nv], reference[nq + nv :]
        way = difference(tree, q, wanted)
        v_r = [r + g * e for r, g, e in zip(rates, self.position_gain, way, strict=True)]
        a_r = [a + g * (r - x) for a, g, r, x in zip(accelerations, self.position_gain, rates, v, strict=True)]
        still = [0.0] * nv
        inertial = inverse_dynamics(tree, q, still, a_r)
        forward = [x + dot(row, v_r) for x, row in zip(inertial, coriolis_matrix(tree, q, v), strict=True)]
        apart = [x - r for x, r in zip(v, v_r, strict=True)]
        return list(ALGORITHMS["diagonal_rates"].function(tree, q, apart, normalized=True)), forward

    def _share(self, forward: Scalars, back: Scalars) -> Scalar:
        """kappa: the largest factor, at most one, with which no force exceeds its bound."""
        kappa: Scalar = 1.0
        for f, b, most in zip(forward, back, self.limit, strict=True):
            if np.isfinite(most):
                size = select(b < 0.0, -b, b)
                room = most - select(b < 0.0, -f, f)  # in the direction of the feedback
                room = select(room > 0.0, room, 0.0)
                over = kappa * size > room
                kappa = select(over, room / select(over, size, 1.0), kappa)
        return kappa


@dataclass(frozen=True, eq=False, repr=False)
class DecoupledTracking(CompiledControl):
    """The controller, with the function V that falls."""

    def sigma(self, t: float, q: Any, v: Any) -> Float64Array:
        """(..., nv): m* (v - v_r), which each decay at their gain."""
        from ..dynamics.diagonal import rates
        from ..dynamics.trees import difference as way_between

        law = self.law
        assert isinstance(law, DecoupledTrackingLaw) and self.reference is not None
        reference = self.reference(t)
        nq, nv = self.mech.nq, self.mech.nv
        way = way_between(self.mech, q, reference[:nq])
        return rates(self.mech, q, np.asarray(v) - reference[nq : nq + nv] - np.array(law.position_gain) * way)

    def lyapunov(self, t: float, q: Any, v: Any) -> Float64Array:
        """sigma* sigma / 2."""
        return 0.5 * np.sum(self.sigma(t, q, v) ** 2, axis=-1)

    def lyapunov_rate(self, t: float, q: Any, v: Any) -> Float64Array:
        """-sigma* c sigma: the rate of the Lyapunov function while no bound is reached."""
        law = self.law
        assert isinstance(law, DecoupledTrackingLaw)
        return -np.sum(np.array(law.rate_gain) * self.sigma(t, q, v) ** 2, axis=-1)


def decoupled_tracking(
    mech: Mechanism, reference: Any, rate_gain: Any = 10.0, position_gain: Any = 5.0, limit: Any = None
) -> DecoupledTracking:
    """A controller in total rates (jain1995 Section 8) that follows a motion.

    Errors decay exponentially from every start if every joint has a motor, no joint turns freely (ball, floating), and
    forces stay within their bounds.

    reference       a motion, planned (``lw.trajectories``) or simulated (a ``Trajectory``), a function of t that gives
                    q, (q, v) or (q, v, a), or a configuration
    rate_gain       c, 1/s: a number, or one for each of the nv total rates
    position_gain   Lambda, 1/s: by which position errors decay; a number, nv of them or {joint: number}
    limit           bounds of joint forces: a number, nv of them, {joint: number}; None for the effort limits of the
                    joints.  The feedback is made smaller as a whole before one of them is exceeded
    """
    require_mechanism(mech)
    require_motors(mech, "decoupled_tracking")
    limit = mech.limits.effort if limit is None else limit
    law = DecoupledTrackingLaw(
        mech.nq + 2 * mech.nv,
        gains(mech, "rate_gain", rate_gain),
        gains(mech, "position_gain", position_gain),
        tuple(numbers_per_velocity(mech, "limit", limit, np.inf, positive=True).tolist()),
    )
    return DecoupledTracking(mech, law, joint_reference(mech, reference))
