"""The named algorithms: what each takes, what it gives, and what it cannot be asked of.

An algorithm is a function of a tree and of arrays of scalars.  Adding one is adding a line here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..mechanism import Mechanism, MechanismError
from ..recursions.tree import Tree
from ..scalar import Scalar
from ..spatial import Force
from . import configuration, energy, kinematics
from .coriolis_matrix import coriolis_matrix
from .forward_dynamics import forward_dynamics
from .inverse_dynamics import inverse_dynamics
from .mass_matrix import mass_matrix
from .mass_matrix_inverse import Followers, articulations, mass_matrix_inverse, of_leaders, on_leaders
from .operational_inertia import operational_inertia

SHAPES: dict[str, Callable[[Mechanism], tuple[int, ...]]] = {
    "q": lambda m: (m.nq,),
    "q0": lambda m: (m.nq,),
    "q1": lambda m: (m.nq,),
    "v": lambda m: (m.nv,),
    "a": lambda m: (m.nv,),
    "tau": lambda m: (m.nv,),
    "wrenches": lambda m: (m.n_links, 6),
    "dt": lambda m: (),
}


@dataclass(frozen=True)
class Algorithm:
    """``function(tree, *inputs, **options)`` gives the output array; ``options`` are values fixed when compiling."""

    name: str
    inputs: tuple[str, ...]
    output: str
    function: Callable[..., Any]
    options: tuple[str, ...] = ()
    solves_motion: bool = False  # needs a positive mass matrix, and is wrong where loops are left out

    def shapes(self, mechanism: Mechanism) -> list[tuple[str, tuple[int, ...]]]:
        return [(name, SHAPES[name](mechanism)) for name in self.inputs]

    def check(self, mechanism: Mechanism) -> None:
        """Refuse mechanisms for which the result would be wrong or undefined."""
        if not self.solves_motion:
            return
        if mechanism.loops:
            names = ", ".join(repr(loop.name) for loop in mechanism.loops)
            raise MechanismError(
                f"{self.name} would ignore the loops {names} of mechanism {mechanism.name!r}: use linkwise.closed, "
                "or mech.spanning_tree if the loops are meant to be open"
            )
        if mechanism.singular_joints:
            names = ", ".join(map(repr, mechanism.singular_joints))
            raise MechanismError(
                f"{self.name} needs a positive mass matrix, but nothing with inertia moves with joint {names} of "
                f"mechanism {mechanism.name!r}: give its link mass and inertia, give the joint armature, or make it fixed"
            )


def _external(tree: Tree, wrenches: Any) -> list[Force] | None:
    """Wrenches (n_links, 6) in user link frames as forces in internal frames."""
    if wrenches is None:
        return None
    return [link.user.force_back(Force.of(list(row))) for link, row in zip(tree.links, wrenches, strict=True)]


def _inverse_dynamics(tree: Tree, q, v, a, wrenches=None) -> list[Scalar]:
    return inverse_dynamics(tree, q, v, a, _external(tree, wrenches))


def _forward_dynamics(tree: Tree, q, v, tau, wrenches=None) -> list[Scalar]:
    accelerations = forward_dynamics(tree, q, v, on_leaders(tree, tau), _external(tree, wrenches))
    if any(body.mimic for body in tree.mechanism.bodies):
        accelerations = Followers(tree, articulations(tree, tree.cross(q))).tie(accelerations)
    return of_leaders(tree, accelerations)


def _bias_force(tree: Tree, q, v) -> list[Scalar]:
    return inverse_dynamics(tree, q, v, _zeros(tree))


def _gravity_force(tree: Tree, q) -> list[Scalar]:
    return inverse_dynamics(tree, q, _zeros(tree), _zeros(tree))


def _zeros(tree: Tree) -> Sequence[Scalar]:
    return np.zeros(tree.mechanism.nv).astype(object)


def _jacobian(tree: Tree, q, link: str, frame: str = "link"):
    if frame not in ("link", "world", "world_aligned"):
        raise ValueError(f"frame must be 'link', 'world' or 'world_aligned', got {frame!r}")
    return kinematics.jacobian(tree, q, tree.mechanism.frame(link), frame)


def _operational_inertia(tree: Tree, q, link: str):
    frame = tree.mechanism.frame(link)
    moving = {tree.mechanism.v_index(tree.mechanism.bodies[i].joint).start for i in tree.mechanism.path(frame.body)}
    freedoms = sum(b.nv for b in tree.mechanism.bodies if tree.mechanism.v_index(b.joint).start in moving)
    if freedoms < 6:
        raise MechanismError(
            f"link {link!r} moves with only {freedoms} freedoms: J M^-1 J* has no inverse; "
            "6 are needed (use jacobian and mass_matrix_inverse for fewer)"
        )
    return operational_inertia(tree, q, frame)


ALGORITHMS: dict[str, Algorithm] = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm("inverse_dynamics", ("q", "v", "a"), "tau", _inverse_dynamics),
        Algorithm("inverse_dynamics_with_wrenches", ("q", "v", "a", "wrenches"), "tau", _inverse_dynamics),
        Algorithm("forward_dynamics", ("q", "v", "tau"), "a", _forward_dynamics, solves_motion=True),
        Algorithm(
            "forward_dynamics_with_wrenches", ("q", "v", "tau", "wrenches"), "a", _forward_dynamics, solves_motion=True
        ),
        Algorithm("mass_matrix", ("q",), "mass_matrix", mass_matrix),
        Algorithm("mass_matrix_inverse", ("q",), "mass_matrix_inverse", mass_matrix_inverse, solves_motion=True),
        Algorithm("bias_force", ("q", "v"), "tau", _bias_force),
        Algorithm("gravity_force", ("q",), "tau", _gravity_force),
        Algorithm("coriolis_matrix", ("q", "v"), "coriolis_matrix", coriolis_matrix),
        Algorithm("link_poses", ("q",), "poses", kinematics.link_poses),
        Algorithm(
            "frame_pose",
            ("q",),
            "pose",
            lambda tree, q, link: kinematics.frame_pose(tree, q, tree.mechanism.frame(link)),
            options=("link",),
        ),
        Algorithm("link_velocities", ("q", "v"), "velocities", kinematics.link_velocities),
        Algorithm("link_accelerations", ("q", "v", "a"), "accelerations", kinematics.link_accelerations),
        Algorithm("jacobian", ("q",), "jacobian", _jacobian, options=("link", "frame")),
        Algorithm(
            "operational_inertia", ("q",), "inertia", _operational_inertia, options=("link",), solves_motion=True
        ),
        Algorithm("kinetic_energy", ("q", "v"), "energy", energy.kinetic_energy),
        Algorithm("potential_energy", ("q",), "energy", energy.potential_energy),
        Algorithm("center_of_mass", ("q",), "position", energy.center_of_mass),
        Algorithm("momentum", ("q", "v"), "momentum", energy.momentum),
        Algorithm("coordinate_rates", ("q", "v"), "q_rate", configuration.coordinate_rates),
        Algorithm("integrate", ("q", "v", "dt"), "q_next", configuration.integrate),
        Algorithm("difference", ("q0", "q1"), "v", configuration.difference),
    )
}
