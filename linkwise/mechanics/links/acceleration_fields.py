"""Change of the accelerations beyond a joint with its position, velocity and acceleration.

Every such change is a field over the particles of the subtree: seen from the link's origin, and turned along with the
subtree where the position changes,

    e = w x r + l + u x 2 (velocity - velocity of the origin)

so nine numbers (w, l, u) represent it (``Field``), and ``Response`` maps a field to the required wrench.  With the
parent's angular velocity W, angular acceleration A and acceleration a of the origin as a point of the parent, and the
joint's relative velocity (s, y), a unit motion (o, d) of the joint gives

    acceleration    (o, d, 0)
    velocity        (2 W x o + s x o, 2 W x d + o x y + s x d, o)
    position        (A x o + W x (W x o), A x d + W x (W x d) - o x a + 2 (W x o) x y, W x o)

The derivatives of inverse dynamics that spencer2004 Section 4.3 computes one joint pair at a time with recursions over
all links then need composite bodies only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..jet import jet, parts
from ..scalar import Scalar
from ..spatial import Force, Matrix3, Motion, RigidInertia, Translation, Vector3
from ..spatial.motion import NO_MOTION
from ..spatial.three import ZERO
from .kinematics import AngularVelocity
from .link import JointKinematics, combine


class Field(NamedTuple):
    """Change of the accelerations of a subtree, in the axes and at the origin of a link."""

    angular: Vector3  # w
    linear: Vector3  # l
    turning: Vector3  # u

    def __add__(self, other: Field) -> Field:  # type: ignore[override]
        return Field(self.angular + other.angular, self.linear + other.linear, self.turning + other.turning)


class Covector(NamedTuple):
    """The force along a joint's virtual motion of a field over the subtree beyond it."""

    force: Force  # on (w, l): the mass matrix's own column of wrenches
    turning: Vector3  # on u

    def __add__(self, other: Covector) -> Covector:  # type: ignore[override]
        return Covector(self.force + other.force, self.turning + other.turning)

    def of(self, field: Field) -> Scalar:
        felt = self.force.moment.dot(field.angular) + self.force.force.dot(field.linear)
        return felt + self.turning.dot(field.turning)


class Response(NamedTuple):
    """Mass properties of a subtree about the origin of its first link: composite inertia, and twice the moments of its
    velocities relative to the origin, sum of m v and sum of m v r*."""

    inertia: RigidInertia
    momentum: Vector3
    flow: Matrix3

    @staticmethod
    def from_link(inertia: RigidInertia, twice_omega: Vector3) -> Response:
        """A rigid link: v = omega x r, and the second moments of its mass are tr(J)/2 - J."""
        j = inertia.moment
        half = 0.5 * (j.xx + j.yy + j.zz)
        second = Matrix3.from_rows(
            ((half - j.xx, -j.xy, -j.xz), (-j.xy, half - j.yy, -j.yz), (-j.xz, -j.yz, half - j.zz))
        )
        flow = Matrix3(*(twice_omega.cross(row) for row in second)).T  # columns omega x column
        return Response(inertia, twice_omega.cross(inertia.h), flow)

    def __add__(self, other: Response) -> Response:  # type: ignore[override]
        return Response(self.inertia + other.inertia, self.momentum + other.momentum, self.flow + other.flow)

    def wrench(self, field: Field) -> Force:
        """About the origin: sums of m e and of r x m e."""
        rigid = self.inertia @ Motion(field.angular, field.linear)
        u, n = field.turning, self.flow
        trace = n.x.x + n.y.y + n.z.z
        return rigid + Force(u * trace - n @ u, u.cross(self.momentum))

    def covector(self, motion: Motion) -> Covector:
        """Power of ``wrench`` along a virtual motion, as a linear function of the field."""
        o, d = motion
        n = self.flow
        trace = n.x.x + n.y.y + n.z.z
        return Covector(self.inertia @ motion, o * trace - n.T @ o + self.momentum.cross(d))

    def shifted(self, p: Vector3, twice_velocity: Vector3) -> Response:
        """The response about a point relative to which this origin is at ``p`` and moves with half of
        ``twice_velocity``."""
        inertia = self.inertia.shifted(p)
        flow = Matrix3(
            *(
                row + p * along + inertia.h * moved
                for row, along, moved in zip(self.flow, self.momentum, twice_velocity, strict=True)
            )
        )
        return Response(inertia, self.momentum + twice_velocity * inertia.mass, flow)


class FieldKinematics:
    """Kinematics of a moving joint: transports responses, covectors and wrenches from a link to its parent."""

    def __init__(self, kinematics: JointKinematics, spin: AngularVelocity, relative: Motion):
        self.kinematics = kinematics
        self.sliding = relative.linear + relative.linear
        factors = kinematics.transform.factors
        #: Twice the velocity of the far end of every shift; turns contribute none.
        self.moves = tuple(
            (omega + omega).cross(f.shift) if isinstance(f, Translation) else ZERO
            for f, omega in zip(factors, spin.propagated, strict=True)
        )

    def response_back(self, response: Response) -> Response:
        response = response.shifted(ZERO, self.sliding)
        for factor, moved in zip(reversed(self.kinematics.transform.factors), reversed(self.moves), strict=True):
            if isinstance(factor, Translation):
                response = response.shifted(factor.shift, moved)
            else:
                inertia = factor.inertia_back(response.inertia)
                response = Response(inertia, factor.vector_back(response.momentum), factor.matrix_back(response.flow))
        return response

    def covector_back(self, covector: Covector) -> Covector:
        force, turning = covector
        turning = turning + self.sliding.cross(force.force)
        for factor, moved in zip(reversed(self.kinematics.transform.factors), reversed(self.moves), strict=True):
            if isinstance(factor, Translation):
                turning = turning + moved.cross(force.force)
            force, turning = factor.force_back(force), factor.vector_back(turning)
        return Covector(force, turning)


class JointFields(NamedTuple):
    """Fields of unit changes of each of a joint's degrees of freedom, and the changes of H* with its position."""

    position: tuple[Field, ...]
    velocity: tuple[Field, ...]
    acceleration: tuple[Field, ...]
    columns: tuple[tuple[Motion, ...], ...]  # [k][m]: column m of H* along freedom k


def joint_fields(
    kinematics: JointKinematics,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    a: Sequence[Scalar],
    omega: Vector3,
    propagated: Motion,
) -> JointFields:
    """``omega`` is the parent's angular velocity, ``propagated`` its acceleration at the link's origin, in link
    axes."""
    joint, n = kinematics.link.joint, kinematics.link.joint.nv
    relative = kinematics.relative_motion(v)
    units = [[1.0 if m == k else 0.0 for m in range(n)] for k in range(n)]
    columns = tuple(joint.motion_rate(q, unit) for unit in units)

    def of_velocity(motion: Motion) -> Field:
        o, d = motion
        s, y = relative
        twice = omega + omega + s
        return Field(twice.cross(o), twice.cross(d) + o.cross(y), o)

    def of_position(motion: Motion) -> Field:
        o, d = motion
        u = omega.cross(o)
        turned = propagated.angular.cross(o) + omega.cross(u)
        moved = propagated.angular.cross(d) + omega.cross(omega.cross(d)) - o.cross(propagated.linear)
        return Field(turned, moved + (u + u).cross(relative.linear), u)

    rate = joint.motion_rate(q, v)
    positions, velocities = [], []
    for k, unit in enumerate(units):
        # If H* depends on q, its columns change with position, and so do their rates.
        shift = combine(columns[k], v)
        bending = combine(columns[k], a) + _slope(joint, q, v, unit)
        positions.append(of_position(kinematics.motion[k]) + of_velocity(shift) + _pure(bending))
        velocities.append(of_velocity(kinematics.motion[k]) + _pure(shift + rate[k]))
    return JointFields(tuple(positions), tuple(velocities), tuple(_pure(h) for h in kinematics.motion), columns)


def _pure(acceleration: Motion) -> Field:
    return Field(acceleration.angular, acceleration.linear, ZERO)


def _slope(joint, q: Sequence[Scalar], v: Sequence[Scalar], unit: Sequence[Scalar]) -> Motion:
    """Change of dH*/dt v along one freedom."""
    if all(column == NO_MOTION for column in joint.motion_rate(q, v)):
        return NO_MOTION
    moving = [jet(x, slope) for x, slope in zip(q, joint.q_rate(q, unit), strict=True)]
    return Motion.of([parts(x)[1] for x in combine(joint.motion_rate(moving, v), v).flat()])
