"""Forward dynamics in three sweeps: rates, articulated inertias with biased forces, accelerations.

rodriguez1986 Result 8.1, rodriguez1992 (62-67), jain1995 (5.8).
"""

from __future__ import annotations

from collections.abc import Sequence

from ..links.articulation import articulate, pass_to_parent
from ..links.forces import gyroscopic_force
from ..links.kinematics import Spin, carry_acceleration, spin_base_to_tip
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Tree
from ..scalar import Scalar
from ..spatial import ArticulatedInertia, Force, Motion
from ..spatial.three import ZERO


def forward_dynamics(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau: Sequence[Scalar], wrenches: Sequence[Force] | None = None
) -> list[list[Scalar]]:
    """Accelerations of every joint under joint forces ``tau`` (one list per joint) as if no joint followed another."""
    crossings, coordinates, rates = tree.cross(q), tree.coordinates(q), tree.velocities(v)

    def spin(i: int, parent: Spin | None) -> Spin:
        return spin_base_to_tip(crossings[i], parent.omega if parent else ZERO, coordinates[i], rates[i])

    spins = base_to_tip(tree.links, "angular velocities", spin)

    def articulated(i: int, outer: list[tuple[ArticulatedInertia, Force]]):
        link, crossing = tree.links[i], crossings[i]
        inertia, force = link.inertia.articulated(), gyroscopic_force(link.inertia, spins[i].omega)
        if wrenches is not None:
            force = force - wrenches[i]
        for outer_inertia, outer_force in outer:
            inertia, force = inertia + outer_inertia, force + outer_force
        joint = articulate(crossing, inertia)
        innovation = joint.innovation(tau[i], force)
        force = joint.absorb(force, innovation)
        return (joint, innovation), pass_to_parent(crossing, spins[i], joint.remaining, force)

    eliminated, _ = tip_to_base(tree.links, "articulated inertias", articulated)

    def accelerate(i: int, parent: tuple[Motion, list[Scalar]] | None) -> tuple[Motion, list[Scalar]]:
        joint, innovation = eliminated[i]
        carried = carry_acceleration(crossings[i], spins[i], parent[0] if parent else tree.base_acceleration)
        own = joint.joint_acceleration(innovation, carried)
        return carried + crossings[i].relative_motion(own), own

    return [own for _, own in base_to_tip(tree.links, "accelerations", accelerate)]
