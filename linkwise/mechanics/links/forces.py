"""Inertial forces of one rigid link about its frame's origin."""

from __future__ import annotations

from ..scalar import Scalar, is_constant, is_zero
from ..spatial import Force, Motion, RigidInertia, Vector3
from .kinematics import centripetal, rigid_acceleration


def inertial_force(inertia: RigidInertia, omega: Vector3, acceleration: Motion) -> Force:
    """M alpha + b of a rigid link.

    With K = alpha~ + omega~ omega~ and the second moments S = tr(J)/2 - J of its mass, the force is
    m a + K h and the moment h x a + dual(K S): fewer products than J alpha + omega x J omega.
    """
    if is_massless(inertia):
        return Force(Vector3(0.0, 0.0, 0.0), Vector3(0.0, 0.0, 0.0))
    alpha, a = acceleration
    k, c = rigid_acceleration(omega, alpha), centripetal(omega)
    j = inertia.moment
    half = 0.5 * (j.xx + j.yy + j.zz)
    sx, sy, sz = (_clean(half - moment, half) for moment in (j.xx, j.yy, j.zz))
    xx, yy, zz = omega.x * omega.x, omega.y * omega.y, omega.z * omega.z
    dual = Vector3(
        _skewed_difference(c.yz, alpha.x, sy, sz) + (k.y.x * j.xz - k.z.x * j.xy) + (yy - zz) * j.yz,
        _skewed_difference(c.xz, alpha.y, sz, sx) + (k.z.y * j.xy - k.x.y * j.yz) + (zz - xx) * j.xz,
        _skewed_difference(c.xy, alpha.z, sx, sy) + (k.x.z * j.yz - k.y.z * j.xz) + (xx - yy) * j.xy,
    )
    return Force(dual + inertia.h.cross(a), a * inertia.mass + k @ inertia.h)


def _skewed_difference(product: Scalar, alpha: Scalar, s: Scalar, other: Scalar) -> Scalar:
    """(product + alpha) s - (product - alpha) other, from entries of K on both sides of its diagonal."""
    if is_zero(alpha):
        return product * (s - other)
    return (product + alpha) * s - (product - alpha) * other


def _clean(value: Scalar, scale: Scalar) -> Scalar:
    """A difference of constants, with a mere rounding error replaced by zero."""
    known = is_constant(value) and is_constant(scale)
    return 0.0 if known and abs(value) < 1e-15 * abs(scale) else value


def gyroscopic_force(inertia: RigidInertia, omega: Vector3) -> Force:
    """b = [omega x J omega; omega x (omega x h)], from the products of omega's components."""
    j = inertia.moment
    c = centripetal(omega)
    xx, yy, zz = omega.x * omega.x, omega.y * omega.y, omega.z * omega.z
    moment = Vector3(
        (j.zz - j.yy) * c.yz + (yy - zz) * j.yz + (c.xy * j.xz - c.xz * j.xy),
        (j.xx - j.zz) * c.xz + (zz - xx) * j.xz + (c.yz * j.xy - c.xy * j.yz),
        (j.yy - j.xx) * c.xy + (xx - yy) * j.xy + (c.xz * j.yz - c.yz * j.xz),
    )
    return Force(moment, c @ inertia.h)


def is_massless(inertia: RigidInertia) -> bool:
    return all(is_zero(x) for x in inertia.numbers)
