"""Newton-Euler, articulated-body and composite-body recursions written by hand, to measure compiled expressions with.

The first three are as lean as the functions of ``links/`` allow: accelerations of link origins, biases met where the
steps across a joint make them cheapest, inertial forces from second moments.  The other two are the textbook forms:
spatial velocities, V x and V x* products (Featherstone 2008, Tables 5.1 and 7.1).
"""

from __future__ import annotations

from collections.abc import Sequence

from linkwise.mechanics.links.articulation import Articulation, articulate, force_to_parent
from linkwise.mechanics.links.forces import gyroscopic_force, inertial_force
from linkwise.mechanics.links.kinematics import (
    AngularVelocity,
    angular_velocity_base_to_tip,
    propagate_acceleration,
    propagate_acceleration_with_biases,
    velocity_base_to_tip,
)
from linkwise.mechanics.links.link import combine
from linkwise.mechanics.recursions.sweep import base_to_tip, tip_to_base
from linkwise.mechanics.recursions.tree import Tree
from linkwise.mechanics.scalar import Scalar
from linkwise.mechanics.spatial import ArticulatedInertia, Force, Motion, RigidInertia
from linkwise.mechanics.spatial.motion import NO_MOTION
from linkwise.mechanics.spatial.three import ZERO

Numbers = Sequence[Scalar]


def joint_acceleration(joint: Articulation, innovation: Numbers, propagated: Motion) -> list[Scalar]:
    """D^-1 epsilon - G* alpha+."""
    rates = joint.factor.solve(innovation)
    return [r - g.dot(propagated) for r, g in zip(rates, joint.gain, strict=True)]


def inverse_dynamics(tree: Tree, q: Numbers, v: Numbers, a: Numbers) -> list[Scalar]:
    """Newton-Euler in two sweeps."""
    joint_kinematics, coordinates = tree.joint_kinematics(q), tree.coordinates(q)
    rates, accelerations = tree.velocities(v), tree.velocities(a)

    def move(i: int, parent: tuple[AngularVelocity, Motion] | None) -> tuple[AngularVelocity, Motion]:
        spin = angular_velocity_base_to_tip(
            joint_kinematics[i], parent[0].omega if parent else ZERO, coordinates[i], rates[i]
        )
        propagated = propagate_acceleration(joint_kinematics[i], spin, parent[1] if parent else tree.base_acceleration)
        return spin, propagated + joint_kinematics[i].relative_motion(accelerations[i])

    moving = base_to_tip(tree.links, "accelerations", move)

    def load(i: int, outer: list[Force]) -> tuple[list[Scalar], Force]:
        spin, acceleration = moving[i]
        force = inertial_force(tree.links[i].inertia, spin.omega, acceleration)
        for message in outer:
            force = force + message
        torque = [force.dot(h) for h in joint_kinematics[i].motion]
        rotor = [t + j * x for t, j, x in zip(torque, tree.links[i].armature, accelerations[i], strict=True)]
        return rotor, joint_kinematics[i].transform.force_back(force)

    return [x for part in tip_to_base(tree.links, "forces", load)[0] for x in part]


def forward_dynamics(tree: Tree, q: Numbers, v: Numbers, tau: Numbers) -> list[Scalar]:
    """Articulated bodies in three sweeps."""
    joint_kinematics, coordinates = tree.joint_kinematics(q), tree.coordinates(q)
    rates, torques = tree.velocities(v), tree.velocities(tau)

    def spin(i: int, parent: AngularVelocity | None) -> AngularVelocity:
        return angular_velocity_base_to_tip(
            joint_kinematics[i], parent.omega if parent else ZERO, coordinates[i], rates[i]
        )

    spins = base_to_tip(tree.links, "angular velocities", spin)

    def eliminate(i: int, outer: list[tuple[ArticulatedInertia, Force]]):
        inertia = tree.links[i].inertia.articulated()
        force = gyroscopic_force(tree.links[i].inertia, spins[i].omega)
        for outer_inertia, outer_force in outer:
            inertia, force = inertia + outer_inertia, force + outer_force
        joint = articulate(joint_kinematics[i], inertia)
        innovation = joint.innovation(torques[i], force)
        message = force_to_parent(joint_kinematics[i], spins[i], joint.remaining, joint.absorb(force, innovation))
        return (joint, innovation), (joint_kinematics[i].transform.inertia_back(joint.remaining), message)

    eliminated, _ = tip_to_base(tree.links, "articulated inertias", eliminate)

    def accelerate(i: int, parent: tuple[Motion, list[Scalar]] | None) -> tuple[Motion, list[Scalar]]:
        joint, innovation = eliminated[i]
        propagated = propagate_acceleration_with_biases(
            joint_kinematics[i], spins[i], parent[0] if parent else tree.base_acceleration
        )
        own = joint_acceleration(joint, innovation, propagated)
        return propagated + joint_kinematics[i].relative_motion(own), own

    return [x for _, own in base_to_tip(tree.links, "accelerations", accelerate) for x in own]


def mass_matrix(tree: Tree, q: Numbers) -> list[list[Scalar]]:
    """Composite bodies in one sweep; each column's force is then handed to the ground."""
    joint_kinematics, index = tree.joint_kinematics(q), tree.mechanism.v_index

    def compose(i: int, outer: list[RigidInertia]) -> tuple[RigidInertia, RigidInertia]:
        total = tree.links[i].inertia
        for inertia in outer:
            total = total + inertia
        return total, joint_kinematics[i].transform.inertia_back(total)  # type: ignore[return-value]

    composites, _ = tip_to_base(tree.links, "composite inertias", compose)
    starts = [index(body.joint).start for body in tree.mechanism.bodies]
    result: list[list[Scalar]] = [[0.0] * tree.mechanism.nv for _ in range(tree.mechanism.nv)]
    for i, kinematics in enumerate(joint_kinematics):
        for k, h in enumerate(kinematics.motion):
            force, column, inner = composites[i] @ h, starts[i] + k, i
            for m in range(k + 1):
                entry = force.dot(kinematics.motion[m]) + (tree.links[i].armature[k] if m == k else 0.0)
                result[starts[i] + m][column] = result[column][starts[i] + m] = entry
            while tree.links[inner].parent >= 0:
                force, inner = joint_kinematics[inner].transform.force_back(force), tree.links[inner].parent
                for m, inner_h in enumerate(joint_kinematics[inner].motion):
                    result[starts[inner] + m][column] = result[column][starts[inner] + m] = force.dot(inner_h)
    return result


# -- textbook forms -----------------------------------------------------------------------------------


def _velocities(tree: Tree, joint_kinematics, coordinates, rates) -> list[tuple[Motion, Motion]]:
    """V_i, and the bias V_i x H* v + dH*/dt v of the rates of its components."""

    def step(i: int, parent: tuple[Motion, Motion] | None) -> tuple[Motion, Motion]:
        velocity = velocity_base_to_tip(joint_kinematics[i], parent[0] if parent else NO_MOTION, rates[i])
        turning = combine(tree.links[i].joint.motion_rate(coordinates[i], rates[i]), rates[i])
        return velocity, velocity.cross(joint_kinematics[i].relative_motion(rates[i])) + turning

    return base_to_tip(tree.links, "velocities", step)


def textbook_inverse_dynamics(tree: Tree, q: Numbers, v: Numbers, a: Numbers) -> list[Scalar]:
    """The recursive Newton-Euler algorithm with spatial vectors."""
    joint_kinematics, coordinates = tree.joint_kinematics(q), tree.coordinates(q)
    rates, accelerations = tree.velocities(v), tree.velocities(a)
    moving = _velocities(tree, joint_kinematics, coordinates, rates)

    def accelerate(i: int, parent: Motion | None) -> Motion:
        propagated = joint_kinematics[i].transform.motion_into(parent or tree.base_acceleration)
        return propagated + joint_kinematics[i].relative_motion(accelerations[i]) + moving[i][1]

    spatial = base_to_tip(tree.links, "accelerations", accelerate)

    def load(i: int, outer: list[Force]) -> tuple[list[Scalar], Force]:
        inertia, velocity = tree.links[i].inertia, moving[i][0]
        force = inertia @ spatial[i] + velocity.cross_force(inertia @ velocity)
        for message in outer:
            force = force + message
        rotors = zip(joint_kinematics[i].motion, tree.links[i].armature, accelerations[i], strict=True)
        return [force.dot(h) + j * x for h, j, x in rotors], joint_kinematics[i].transform.force_back(force)

    return [x for part in tip_to_base(tree.links, "forces", load)[0] for x in part]


def textbook_forward_dynamics(tree: Tree, q: Numbers, v: Numbers, tau: Numbers) -> list[Scalar]:
    """The articulated-body algorithm with spatial vectors."""
    joint_kinematics, coordinates = tree.joint_kinematics(q), tree.coordinates(q)
    rates, torques = tree.velocities(v), tree.velocities(tau)
    moving = _velocities(tree, joint_kinematics, coordinates, rates)

    def eliminate(i: int, outer: list[tuple[ArticulatedInertia, Force]]):
        inertia, (velocity, bias) = tree.links[i].inertia, moving[i]
        articulated, force = inertia.articulated(), velocity.cross_force(inertia @ velocity)
        for outer_inertia, outer_force in outer:
            articulated, force = articulated + outer_inertia, force + outer_force
        joint = articulate(joint_kinematics[i], articulated)
        innovation = joint.innovation(torques[i], force)
        passed = joint.absorb(force, innovation) + joint.remaining @ bias
        back = joint_kinematics[i].transform
        return (joint, innovation), (back.inertia_back(joint.remaining), back.force_back(passed))

    eliminated, _ = tip_to_base(tree.links, "articulated inertias", eliminate)

    def accelerate(i: int, parent: tuple[Motion, list[Scalar]] | None) -> tuple[Motion, list[Scalar]]:
        joint: Articulation
        joint, innovation = eliminated[i]
        propagated = (
            joint_kinematics[i].transform.motion_into(parent[0] if parent else tree.base_acceleration) + moving[i][1]
        )
        own = joint_acceleration(joint, innovation, propagated)
        return propagated + joint_kinematics[i].relative_motion(own), own

    return [x for _, own in base_to_tip(tree.links, "accelerations", accelerate) for x in own]
