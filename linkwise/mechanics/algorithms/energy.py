"""Energies and centre of mass of the whole mechanism."""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism import MechanismError
from ..operators.plan import evaluate
from ..recursions.sweep import tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import Vector3
from . import expressions as ex
from .algorithm import algorithm

QUADRATIC = "a sum over links of products of a vector with itself, or of first moments of mass"

Moment = tuple[Scalar, Vector3]  # mass and mass times centre of mass


def _first_moment(tree: Tree, q: Sequence[Scalar]) -> Moment:
    """Total mass and first moment of mass about the world's origin, collected tip to base."""
    joint_kinematics = tree.joint_kinematics(q)

    def step(i: int, outer: list[Moment]) -> tuple[None, Moment]:
        inertia = tree.links[i].inertia
        mass, h = inertia.mass, inertia.h
        for outer_mass, outer_h in outer:
            mass, h = mass + outer_mass, h + outer_h
        change = joint_kinematics[i].transform
        return None, (mass, change.vector_back(h) + change.position() * mass)

    _, ground = tip_to_base(tree.links, "first moments of mass", step)
    total: Moment = (0.0, Vector3(0.0, 0.0, 0.0))
    for mass, h in ground:
        total = (total[0] + mass, total[1] + h)
    return total


@algorithm(("q",), "position", reason=QUADRATIC)
def center_of_mass(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """(3,): centre of mass of all moving links, in the world."""
    mass, h = _first_moment(tree, q)
    if isinstance(mass, float) and mass == 0.0:
        raise MechanismError(f"no moving link of mechanism {tree.mechanism.name!r} has mass: it has no centre of mass")
    return [x / mass for x in h]


@algorithm(("q",), "energy", reason=QUADRATIC)
def potential_energy(tree: Tree, q: Sequence[Scalar]) -> Scalar:
    """Energy of the moving links in the field of gravity, zero at the world's origin."""
    return -_first_moment(tree, q)[1].dot(tree.gravity)


@algorithm(("q", "v"), "energy", reason=QUADRATIC)
def kinetic_energy(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Scalar:
    """V* M V / 2 over the links, and of the rotors (armature)."""
    moving = evaluate(ex.LINK_VELOCITIES, Configuration(tree, q), v=v)
    twice: Scalar = 0.0
    for link, motion, rates in zip(tree.links, moving, tree.velocities(v), strict=True):
        twice = twice + (link.inertia @ motion).dot(motion)
        for armature, rate in zip(link.armature, rates, strict=True):
            twice = twice + armature * (rate * rate)
    return 0.5 * twice
