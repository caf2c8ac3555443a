"""Inverse dynamics as a linear function of the links' inertial parameters."""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism.inertial_parameters import NAMES
from ..links.forces import gyroscopic_force
from ..links.kinematics import rigid_acceleration
from ..operators.plan import evaluate
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar
from ..spatial import Force, Motion, RigidInertia, Symmetric3, Transform, Translation, Vector3
from . import expressions as ex
from .algorithm import COMPOSITE_BODIES, algorithm
from .kinematics import joint_motions


def _unit(name: str) -> RigidInertia:
    """The inertia with the named parameter one and all others zero."""
    h = (float(name == f"m{axis}") for axis in "xyz")
    moment = (float(name == f"I{pair}") for pair in Symmetric3._fields)
    return RigidInertia(float(name == "m"), Vector3(*h), Symmetric3(*moment))


UNITS = tuple(map(_unit, NAMES))


@algorithm(("q", "v", "a"), reason=COMPOSITE_BODIES)
def regressor(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar]) -> Matrix:
    """(nv, 10 n_links): Y with tau = Y p, without rotor inertias.

    Column p of link i holds the joint forces if that parameter is one and all others are zero: H phi of the force M
    alpha + b of this unit inertia (see expressions.inverse_dynamics), computed as its product with the link's motions
    phi* H*.
    """
    at = Configuration(tree, q)
    velocities = evaluate(ex.LINK_VELOCITIES, at, v=v)
    accelerations = evaluate(ex.LIFTED_ACCELERATIONS, at, v=v, a=a)
    motions = joint_motions(at)
    columns = []
    for i, (velocity, acceleration) in enumerate(zip(velocities, accelerations, strict=True)):
        user = tree.links[i].user
        forces = _forces(*_rotation_at_frame(user, velocity.angular, acceleration))
        felt = {dof: user.motion_into(motion) for dof, motion in motions[i].items()}
        for force in forces:
            parts = [
                [force.dot(felt[j, k]) if (j, k) in felt else 0.0 for k in range(link.joint.nv)]
                for j, link in enumerate(tree.links)
            ]
            columns.append(tree.collect(parts))
    return [[column[r] for column in columns] for r in range(tree.mechanism.nv)]


def _rotation_at_frame(step: Transform, omega: Vector3, acceleration: Motion) -> tuple[Vector3, Motion]:
    """Angular velocity and acceleration of a link, from its internal frame to another frame fixed to it."""
    alpha, linear = acceleration
    for factor in step.factors:
        if isinstance(factor, Translation):
            linear = linear + rigid_acceleration(omega, alpha) @ factor.shift
        else:
            omega, alpha, linear = (factor.vector_into(x) for x in (omega, alpha, linear))
    return omega, Motion(alpha, linear)


def _forces(omega: Vector3, acceleration: Motion) -> list[Force]:
    """M alpha + b of each unit parameter."""
    return [unit @ acceleration + gyroscopic_force(unit, omega) for unit in UNITS]
