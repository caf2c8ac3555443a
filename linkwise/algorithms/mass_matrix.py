"""The mass matrix by composite bodies: H phi M phi* H*, rodriguez1992 Identity 1 and (28-33)."""

from __future__ import annotations

from collections.abc import Sequence

from ..links.link import Crossing
from ..recursions.sweep import tip_to_base
from ..recursions.tree import Tree
from ..scalar import Scalar
from ..spatial import RigidInertia


def composites(tree: Tree, crossings: Sequence[Crossing]) -> tuple[list[RigidInertia], list[RigidInertia]]:
    """Inertia of each link with all it carries, joints frozen; and the messages that reach the ground."""

    def step(i: int, outer: list[RigidInertia]) -> tuple[RigidInertia, RigidInertia]:
        total = tree.links[i].inertia
        for inertia in outer:
            total = total + inertia
        return total, crossings[i].transform.inertia_back(total)  # type: ignore[return-value]

    return tip_to_base(tree.links, "composite inertias", step)


def mass_matrix(tree: Tree, q: Sequence[Scalar]) -> list[list[Scalar]]:
    """(nv, nv), symmetric; zero where two joints are on different branches."""
    crossings, mechanism = tree.cross(q), tree.mechanism
    inertias, _ = composites(tree, crossings)
    result: list[list[Scalar]] = [[0.0] * mechanism.nv for _ in range(mechanism.nv)]

    def put(i: int, k: int, j: int, m: int, value: Scalar) -> None:
        """Entry of joint i's k-th and joint j's m-th freedom; those of a follower belong to its leader."""
        bodies = mechanism.bodies[i], mechanism.bodies[j]
        (row, ratio_i), (column, ratio_j) = (
            (mechanism.v_index(b.joint).start + n, b.mimic.ratio if b.mimic else 1.0)
            for b, n in zip(bodies, (k, m), strict=True)
        )
        entry = value * (ratio_i * ratio_j)
        result[row][column] = result[row][column] + entry
        if (i, k) != (j, m):
            result[column][row] = result[column][row] + entry

    for i, crossing in enumerate(crossings):
        for k, h in enumerate(crossing.motion):
            force = inertias[i] @ h
            for m in range(k + 1):
                rotor = tree.links[i].armature[k] if m == k else 0.0
                put(i, k, i, m, force.dot(crossing.motion[m]) + rotor)
            inner = i
            while tree.links[inner].parent >= 0:
                force = crossings[inner].transform.force_back(force)
                inner = tree.links[inner].parent
                for m, inner_h in enumerate(crossings[inner].motion):
                    put(i, k, inner, m, force.dot(inner_h))
    return result
