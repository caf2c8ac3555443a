"""Velocities and accelerations from a parent link to a link (base to tip).

Accelerations are those of the link frame's origin as seen by an inertial observer, in link axes ("classical"; saha1999
likewise, at the mass centre).  rodriguez1986 (Section 3, 5.4-5.6) uses rates of the velocity's components in the link
frame instead, whose linear part is smaller by omega x v.  With classical accelerations the linear velocity never enters
the dynamics: the bias of link i is

    a_i = [ (w x s); 2 w x u + s x u ] + dH*/dt v + sum over shifts p of w x (w x p)

with w the parent's angular velocity, s and u the angular and linear parts of H* v.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..scalar import Scalar
from ..spatial import Motion, Translation, Vector3
from ..spatial.three import ZERO, Matrix3, Symmetric3
from .link import JointKinematics, combine

ROTATIONS = tuple(tuple(float(k == axis) for k in range(6)) for axis in range(3))  # about x, y, z


class AngularVelocity(NamedTuple):
    """Angular velocity of a link with the terms that its joint's kinematics need.

    ``propagated`` is the parent's angular velocity before each step of the joint's transform, ``bias`` the joint's own
    share of a_i, on the child side.
    """

    omega: Vector3
    propagated: tuple[Vector3, ...]
    bias: Motion


def angular_velocity_base_to_tip(
    kinematics: JointKinematics, parent: Vector3, q: Sequence[Scalar], v: Sequence[Scalar]
) -> AngularVelocity:
    """Angular velocity across one joint."""
    propagated = []
    omega = parent
    for factor in kinematics.transform.factors:
        propagated.append(omega)
        omega = factor.vector_into(omega)
    relative = kinematics.relative_motion(v)
    s, u = relative
    bias = Motion(omega.cross(s), (omega + omega + s).cross(u)) + combine(kinematics.link.joint.motion_rate(q, v), v)
    return AngularVelocity(omega + s, tuple(propagated), bias)


class Reference(NamedTuple):
    """Joint accelerations for which no link has an angular acceleration about its own joint's axis, and the link's
    resulting angular acceleration."""

    rates: list[Scalar]
    alpha: Vector3


def reference_base_to_tip(kinematics: JointKinematics, spin: AngularVelocity, parent: Vector3) -> Reference:
    """Across one joint, from the angular acceleration of the parent."""
    alpha = kinematics.transform.vector_into(parent) + spin.bias.angular
    rates = [_cancelling(h, alpha) for h in kinematics.motion]
    return Reference(rates, alpha + kinematics.relative_motion(rates).angular if rates else alpha)


def _cancelling(h: Motion, alpha: Vector3) -> Scalar:
    """The acceleration along ``h`` that cancels an angular acceleration about a coordinate axis; zero along others."""
    about = [axis for axis in range(3) if h.flat() == ROTATIONS[axis]]
    return -alpha[about[0]] if about else 0.0


def velocity_base_to_tip(kinematics: JointKinematics, parent: Motion, v: Sequence[Scalar]) -> Motion:
    """V_i = X V_parent + H* v: the base-to-tip half of phi*."""
    return kinematics.transform.motion_into(parent) + kinematics.relative_motion(v)


def centripetal(omega: Vector3) -> Symmetric3:
    """The matrix of ``p -> omega x (omega x p)``."""
    x, y, z = omega
    xx, yy, zz = x * x, y * y, z * z
    return Symmetric3(-(yy + zz), -(xx + zz), -(xx + yy), x * y, x * z, y * z)


def rigid_acceleration(omega: Vector3, alpha: Vector3) -> Matrix3:
    """The matrix that gives a body point's acceleration relative to the origin: alpha~ + omega~ omega~."""
    c = centripetal(omega)
    return Matrix3(
        Vector3(c.xx, c.xy - alpha.z, c.xz + alpha.y),
        Vector3(c.xy + alpha.z, c.yy, c.yz - alpha.x),
        Vector3(c.xz - alpha.y, c.yz + alpha.x, c.zz),
    )


def propagate_acceleration(kinematics: JointKinematics, spin: AngularVelocity, parent: Motion) -> Motion:
    """phi* alpha_parent + a: acceleration just before the joint's own acceleration is added."""
    alpha, a = parent
    for factor, omega in zip(kinematics.transform.factors, spin.propagated, strict=True):
        if isinstance(factor, Translation):
            a = a + rigid_acceleration(omega, alpha) @ factor.shift
        else:
            alpha, a = factor.vector_into(alpha), factor.vector_into(a)
    return Motion(alpha, a) + spin.bias


def propagate_acceleration_with_biases(kinematics: JointKinematics, spin: AngularVelocity, parent: Motion) -> Motion:
    """``propagate_acceleration`` with known biases of the shifts."""
    motion = parent
    for factor, omega in zip(kinematics.transform.factors, spin.propagated, strict=True):
        motion = factor.motion_into(motion)
        if isinstance(factor, Translation):
            motion = motion + bias_of_shift(omega, factor.shift)
    return motion + spin.bias


def bias_of_shift(omega: Vector3, shift: Vector3) -> Motion:
    """The part of a_i due to one shift: [0; omega x (omega x p)]."""
    return Motion(ZERO, centripetal(omega) @ shift)
