"""Centroidal momentum: momentum of all links about their common centre of mass, and the motion of that centre.

At the world's origin the momentum per unit of v is W phi M phi* H* S, which is W phi C H* S (C: composite bodies): the
column of a degree of freedom is C h, moved to the ground.  Here it is moved to the centre of mass, which is no link's
frame origin.  Linear momentum is the mass times the velocity of the centre: its rows give the Jacobian.
"""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism import MechanismError
from ..operators.plan import evaluate
from ..recursions.sweep import tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, is_zero
from ..spatial import Force, RigidInertia, Vector3
from ..spatial.pose import Pose
from ..spatial.three import ZERO
from . import expressions as ex
from .algorithm import algorithm
from .jacobians import Matrix
from .kinematics import internal_poses

CENTRE_OF_MASS = (
    "no link has its origin at the common centre of mass: what expressions give at the ground is moved there"
)


@algorithm(("q", "v"), "momentum", reason=CENTRE_OF_MASS)
def centroidal_momentum(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """(6,): [angular momentum about the centre of mass; linear momentum], in world axes."""
    at = Configuration(tree, q)
    _, center = _mass_and_center(at)
    (momentum,) = evaluate(ex.MOMENTUM, at, v=v)
    if momentum is None:  # all links at rest
        return [0.0] * 6
    return [*(momentum.moment - center.cross(momentum.force)), *momentum.force]


@algorithm(("q", "v", "a"), "momentum_rate", reason=CENTRE_OF_MASS)
def centroidal_momentum_rate(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]) -> list[Scalar]:
    """(6,): time derivative of the centroidal momentum. The centre moves along the linear momentum, so that its motion
    adds no moment."""
    at = Configuration(tree, q)
    _, center = _mass_and_center(at)
    (rate,) = evaluate(ex.MOMENTUM_RATE, at, v=v, a=a)
    if rate is None:
        return [0.0] * 6
    return [*(rate.moment - center.cross(rate.force)), *rate.force]


@algorithm(("q",), "momentum_matrix", reason=CENTRE_OF_MASS)
def centroidal_momentum_matrix(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """(6, nv): A with A v = [angular momentum about the centre of mass; linear momentum], in world axes."""
    at = Configuration(tree, q)
    poses, (_, center) = internal_poses(tree, at.joint_kinematics), _mass_and_center(at)
    columns = []
    for i, kinematics in enumerate(at.joint_kinematics):
        columns += [_moved(at.composite(i) @ h, poses[i], center) for h in kinematics.motion]
    return _matrix(tree, columns)


@algorithm(("q", "v"), "momentum_matrix", reason=CENTRE_OF_MASS)
def centroidal_momentum_matrix_rate(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Matrix:
    """(6, nv): dA/dt along the velocities v.

    For an observer at rest d(C h)/dt = dC/dt h + C (V x h + dh/dt).  This is about a fixed point.  The motion of the
    centre of mass subtracts its velocity times the linear momentum from the angular one.
    """
    at = Configuration(tree, q)
    moving, rates = evaluate(ex.LINK_VELOCITIES, at, v=v), tree.velocities(v)
    changes, at_ground = _composite_rates(at, moving)
    mass, center = _mass_and_center(at)
    poses, velocity = internal_poses(tree, at.joint_kinematics), at_ground.h * (1.0 / mass)
    columns = []
    for i, kinematics in enumerate(at.joint_kinematics):
        rates_of_motion = kinematics.link.joint.motion_rate(at.coordinates[i], rates[i])
        for h, dh in zip(kinematics.motion, rates_of_motion, strict=True):
            change = _moved(changes[i] @ h + at.composite(i) @ (moving[i].cross(h) + dh), poses[i], center)
            linear = poses[i][0] @ (at.composite(i) @ h).force
            columns.append(Force(change.moment - velocity.cross(linear), change.force))
    return _matrix(tree, columns)


@algorithm(("q",), "center_of_mass_jacobian", reason=CENTRE_OF_MASS)
def center_of_mass_jacobian(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """(3, nv): velocity of the centre of mass per unit of v, in world axes."""
    at = Configuration(tree, q)
    mass, _ = _mass_and_center(at)
    rows = centroidal_momentum_matrix(tree, q)[3:]
    return [[x * (1.0 / mass) for x in row] for row in rows]


@algorithm(("q", "v"), "velocity", reason=CENTRE_OF_MASS)
def center_of_mass_velocity(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """(3,): in world axes; the linear momentum divided by mass."""
    at = Configuration(tree, q)
    (momentum,) = evaluate(ex.MOMENTUM, at, v=v)
    return _divide_by_mass(at, momentum)


@algorithm(("q", "v", "a"), "acceleration", reason=CENTRE_OF_MASS)
def center_of_mass_acceleration(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]
) -> list[Scalar]:
    """(3,): in world axes; the rate of the linear momentum divided by mass."""
    at = Configuration(tree, q)
    (rate,) = evaluate(ex.MOMENTUM_RATE, at, v=v, a=a)
    return _divide_by_mass(at, rate)


def _divide_by_mass(at: Configuration, momentum: Force | None) -> list[Scalar]:
    mass, _ = _mass_and_center(at)
    return [x * (1.0 / mass) for x in (momentum.force if momentum is not None else ZERO)]


def _mass_and_center(at: Configuration) -> tuple[Scalar, Vector3]:
    """Mass and centre of mass of all links, from the composite bodies next to the ground."""
    mass: Scalar = 0.0
    moment = ZERO
    for i, link in enumerate(at.tree.links):
        if link.parent < 0:
            body, change = at.composite(i), at.joint_kinematics[i].transform
            mass, moment = mass + body.mass, moment + change.vector_back(body.h) + change.position() * body.mass
    if is_zero(mass):
        name = at.tree.mechanism.name
        raise MechanismError(f"no moving link of mechanism {name!r} has mass: it has no centre of mass")
    return mass, moment * (1.0 / mass)


def _composite_rates(at: Configuration, moving: Sequence) -> tuple[list[RigidInertia], RigidInertia]:
    """dC/dt of every link in its internal frame, and of all links together at the ground, for an observer at rest."""

    def step(i: int, outer: list[RigidInertia]) -> tuple[RigidInertia, RigidInertia]:
        total = at.tree.links[i].inertia.transport_rate(moving[i])
        for rate in outer:
            total = total + rate
        return total, at.joint_kinematics[i].transform.inertia_back(total)

    rates, ground = tip_to_base(at.tree.links, "rates of composite inertias", step)
    total = ground[0]
    for rate in ground[1:]:
        total = total + rate
    return rates, total


def _moved(force: Force, pose: Pose, point: Vector3) -> Force:
    """A force or momentum in a link's internal frame, in world axes about ``point``."""
    rotation, position = pose
    linear = rotation @ force.force
    return Force(rotation @ force.moment + (position - point).cross(linear), linear)


def _matrix(tree: Tree, columns: Sequence[Force]) -> Matrix:
    flat = [column.flat() for column in columns]
    return tree.independent_columns([[column[r] for column in flat] for r in range(6)])
