"""Inverse dynamics T = H phi [M phi* (H* a + bias) + b]: base to tip for accelerations, tip to base for forces.

rodriguez1986 (7.1-7.6), rodriguez1992 (22), saha1999 (5.1).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ..links.forces import inertial_force
from ..links.kinematics import Spin, carry_acceleration, spin_base_to_tip
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Tree
from ..scalar import Scalar
from ..spatial import Force, Motion
from ..spatial.three import ZERO


class Moving(NamedTuple):
    """State of motion of one link."""

    spin: Spin
    acceleration: Motion


def inverse_dynamics(
    tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], a: Sequence[Scalar], wrenches: Sequence[Force] | None = None
) -> list[Scalar]:
    """Joint forces (nv,) that give the accelerations ``a``; ``wrenches`` act on the links, in internal frames."""
    crossings, coordinates = tree.cross(q), tree.coordinates(q)
    rates, accelerations = tree.velocities(v), tree.velocities(a)

    def move(i: int, parent: Moving | None) -> Moving:
        crossing = crossings[i]
        spin = spin_base_to_tip(crossing, parent.spin.omega if parent else ZERO, coordinates[i], rates[i])
        carried = carry_acceleration(crossing, spin, parent.acceleration if parent else tree.base_acceleration)
        return Moving(spin, carried + crossing.relative_motion(accelerations[i]))

    moving = base_to_tip(tree.links, "accelerations", move)

    def load(i: int, outer: list[Force]) -> tuple[list[Scalar], Force]:
        link = tree.links[i]
        force = inertial_force(link.inertia, moving[i].spin.omega, moving[i].acceleration)
        if wrenches is not None:
            force = force - wrenches[i]
        for message in outer:
            force = force + message
        torque = [force.dot(h) for h in crossings[i].motion]
        rotor = [t + j * x for t, j, x in zip(torque, link.armature, accelerations[i], strict=True)]
        return rotor, crossings[i].transform.force_back(force)

    torques, _ = tip_to_base(tree.links, "forces", load)
    return tree.collect(torques)
