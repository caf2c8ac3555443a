"""Clusters: links whose joints loops, couplings and mimic joints tie together.

Towards the rest of the tree a cluster behaves as one link with several degrees of freedom: it hangs on one parent link,
and its children hang on nothing else. In a tree without ties every cluster is one link.
"""

from __future__ import annotations

from dataclasses import dataclass

from .model import Mechanism
from .parts import Constraint


@dataclass(frozen=True)
class Cluster:
    """Links tied together, parents first.

    bodies        indices of the links
    parent        index of the link that all of them hang on, -1 for the ground
    coordinates   places in v of their joints, ascending, each once
    loops         indices of the loops and couplings among them
    rows          places of those loops' constraints, ascending
    """

    bodies: tuple[int, ...]
    parent: int
    coordinates: tuple[int, ...]
    loops: tuple[int, ...]
    rows: tuple[int, ...]


def clusters(mech: Mechanism) -> tuple[Cluster, ...]:
    """The clusters of a mechanism, parents first.

    A loop ties the links between its sides and the last link that carries both; a coupling ties the links that its
    joints move and the links between them; a mimic joint the links between it and its leader. Ties that share a link
    are one cluster.
    """
    owner = list(range(len(mech.bodies)))  # a forest of links: the cluster is the root's

    def root(i: int) -> int:
        while owner[i] != i:
            i = owner[i]
        return i

    loops = [_tied(mech, loop) for loop in mech.loops]
    pairs = [(i, mech.body_index(body.mimic.joint)) for i, body in enumerate(mech.bodies) if body.mimic]
    for tied in (*loops, *(_links_between(mech, *pair) | {*pair} for pair in pairs)):
        first, *others = sorted(map(root, tied))
        for other in others:
            owner[other] = first
    members: dict[int, list[int]] = {}
    for i in range(len(mech.bodies)):
        members.setdefault(root(i), []).append(i)
    owned: dict[int, list[int]] = {}
    for number, tied in enumerate(loops):
        owned.setdefault(root(min(tied)), []).append(number)
    return tuple(_cluster(mech, bodies, owned.get(first, [])) for first, bodies in members.items())


def _tied(mech: Mechanism, loop: Constraint) -> set[int]:
    """The links that a loop or coupling ties together."""
    bodies = loop.bodies_within(mech)
    if loop.links:
        return {*bodies}
    return {*bodies}.union(*(_links_between(mech, bodies[0], other) for other in bodies[1:]))


def _links_between(mech: Mechanism, a: int, b: int) -> set[int]:
    """The links whose joints move links a and b against each other."""
    return {*mech.tree.path(a)} ^ {*mech.tree.path(b)}


def _cluster(mech: Mechanism, bodies: list[int], loops: list[int]) -> Cluster:
    slices = [mech.v_index(mech.bodies[i].joint) for i in bodies]
    rows = [mech.constraints.rows(mech.loops[number].name) for number in loops]
    return Cluster(
        tuple(bodies),
        mech.tree.parents[bodies[0]],
        tuple(sorted({k for rows in slices for k in range(rows.start, rows.stop)})),
        tuple(loops),
        tuple(k for part in rows for k in range(part.start, part.stop)),
    )
