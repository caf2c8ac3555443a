"""Matrices C with C v = bias force without gravity: C = sum over links of J* (M dJ/dt + B J).

B, the transport of a link's momentum, is any matrix with B V = V x* M V; if B + B* is the rate of M, dM/dt - 2 C is
skew.  B = (V x* M + (M V) xbar* - M V x) / 2 has this property.  Evaluated with composite M and B, tip to base.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..links.link import combine
from ..operators.plan import evaluate
from ..recursions.sweep import tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import Force, Motion, RigidInertia, Transform
from . import expressions as ex
from .algorithm import COMPOSITE_BODIES, algorithm

Columns = list[Force]  # a 6x6 matrix by columns, the images of unit motions
UNITS = [Motion.of([1.0 if i == j else 0.0 for i in range(6)]) for j in range(6)]


@algorithm(("q", "v"), reason=COMPOSITE_BODIES)
def coriolis_matrix(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[list[Scalar]]:
    """(nv, nv), with dM/dt - 2 C skew."""
    return convective_matrix(tree, q, v, _transport)


def convective_matrix(
    tree: Tree,
    q: Sequence[Scalar],
    v: Sequence[Scalar],
    transport_of: Callable[[RigidInertia, Motion], Columns],
) -> list[list[Scalar]]:
    """(nv, nv): C for B = ``transport_of(inertia, velocity)``, by columns."""
    at, mechanism = Configuration(tree, q), tree.mechanism
    joint_kinematics, moving = at.joint_kinematics, evaluate(ex.LINK_VELOCITIES, at, v=v)
    coordinates, rates = tree.coordinates(q), tree.velocities(v)
    motion_rates = [
        [
            moving[i].cross(h) + rate
            for h, rate in zip(
                joint_kinematics[i].motion, link.joint.motion_rate(coordinates[i], rates[i]), strict=True
            )
        ]
        for i, link in enumerate(tree.links)
    ]

    def step(i: int, outer: list[tuple[RigidInertia, Columns]]):
        inertia = tree.links[i].inertia
        transport = transport_of(inertia, moving[i])
        for outer_inertia, outer_transport in outer:
            inertia = inertia + outer_inertia
            transport = [a + b for a, b in zip(transport, outer_transport, strict=True)]
        change = joint_kinematics[i].transform
        return (inertia, transport), (change.inertia_back(inertia), _congruent(transport, change))

    composite, _ = tip_to_base(tree.links, "composite inertias and their transport", step)
    result: list[list[Scalar]] = [[0.0] * mechanism.nv for _ in range(mechanism.nv)]

    def put(i: int, k: int, j: int, m: int, value: Scalar) -> None:
        a, b = mechanism.bodies[i], mechanism.bodies[j]
        row, column = mechanism.v_index(a.joint).start + k, mechanism.v_index(b.joint).start + m
        ratio = (a.mimic.ratio if a.mimic else 1.0) * (b.mimic.ratio if b.mimic else 1.0)
        result[row][column] = result[row][column] + value * ratio

    for j, kinematics in enumerate(joint_kinematics):
        inertia, transport = composite[j]
        for m, h in enumerate(kinematics.motion):
            along = inertia @ motion_rates[j][m] + combine(transport, h.flat())
            still, back = inertia @ h, _apply_adjoint(transport, h)
            for k, other in enumerate(kinematics.motion):
                put(j, k, j, m, along.dot(other))
            inner = j
            while tree.links[inner].parent >= 0:
                change = joint_kinematics[inner].transform
                along, still, back = change.force_back(along), change.force_back(still), change.force_back(back)
                inner = tree.links[inner].parent
                for k, other in enumerate(joint_kinematics[inner].motion):
                    put(inner, k, j, m, along.dot(other))
                    put(j, m, inner, k, still.dot(motion_rates[inner][k]) + back.dot(other))
    return result


def _transport(inertia: RigidInertia, velocity: Motion) -> Columns:
    """B of one link, by columns."""
    momentum = inertia @ velocity
    return [
        (velocity.cross_force(inertia @ unit) + unit.cross_force(momentum) - (inertia @ velocity.cross(unit))) * 0.5
        for unit in UNITS
    ]


def _apply_adjoint(columns: Columns, m: Motion) -> Force:
    return Force.of([column.dot(m) for column in columns])


def _transposed(columns: Columns) -> Columns:
    return [Force.of(row) for row in zip(*(column.flat() for column in columns), strict=True)]


def _congruent(columns: Columns, change: Transform) -> Columns:
    """X* B X."""
    rows = _transposed([change.force_back(column) for column in columns])
    return _transposed([change.force_back(row) for row in rows])
