"""Momenta of revolute trees by their definition, p = dL/dv and dp/dt = dL/dq + Q, from the Lagrangian as a number.

Derivatives with respect to q are complex steps, exact but for rounding; those with respect to v are differences, exact
because L is quadratic in v.  Nothing of linkwise's algorithms is used, only the numbers of a mechanism.
"""

from __future__ import annotations

import numpy as np

import linkwise as lw

STEP = 1e-30


def momenta_and_rates(mech: lw.Mechanism, q, v, tau, wrenches) -> tuple[np.ndarray, np.ndarray]:
    """p and dp/dt of one state; wrenches (n_links, 6) are moments and forces in link frames."""
    units = np.eye(mech.nv)
    p = [(_lagrangian(mech, q, v + e) - _lagrangian(mech, q, v - e)) / 2.0 for e in units]
    own = [_lagrangian(mech, q + 1j * STEP * e, v).imag / STEP for e in units]
    pushed = [sum(np.sum(w * x) for w, x in zip(wrenches, _link_velocities(mech, q, e), strict=True)) for e in units]
    return np.array(p), np.array(own) + tau + pushed


def _lagrangian(mech: lw.Mechanism, q, v):
    total = 0.0
    for body, (rotation, origin, spin, speed), rate in zip(mech.bodies, _motions(mech, q, v), v, strict=True):
        arm = rotation @ body.com
        at_mass = speed + np.cross(spin, arm)
        own = rotation.T @ spin
        total += 0.5 * body.mass * at_mass @ at_mass + 0.5 * own @ body.inertia @ own
        total += 0.5 * body.armature[0] * rate**2 + body.mass * mech.gravity @ (origin + arm)
    return total


def _link_velocities(mech: lw.Mechanism, q, v):
    """Angular and linear, of the origins, in link frames."""
    for rotation, _, spin, speed in _motions(mech, q, v):
        yield np.concatenate([rotation.T @ spin, rotation.T @ speed])


def _motions(mech: lw.Mechanism, q, v):
    """Of every link: its axes as columns, its origin, angular velocity and that of the origin, in the world."""
    found = []
    for body, angle, rate in zip(mech.bodies, q, v, strict=True):
        still = np.eye(3), np.zeros(3), np.zeros(3), np.zeros(3)
        rotation, origin, spin, speed = found[body.parent] if body.parent >= 0 else still
        arm = rotation @ body.position
        turned = rotation @ body.rotation @ _about(body.kind.axis, angle)
        found.append((turned, origin + arm, spin + rate * (turned @ body.kind.axis), speed + np.cross(spin, arm)))
    return found


def _about(axis, angle):
    """The rotation about a unit axis (Rodrigues)."""
    x, y, z = axis
    across = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    return np.eye(3) + np.sin(angle) * across + (1.0 - np.cos(angle)) * across @ across
