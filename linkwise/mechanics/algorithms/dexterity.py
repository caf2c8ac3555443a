"""How easily one frame is moved: by a force (effective inertia), by its joints (manipulability)."""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism import MechanismError
from ..operators.plan import applied, evaluate, plan_for
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot, select, sqrt
from ..spatial import Force, Motion
from . import expressions as ex
from .algorithm import CLOSED, SOLVES_TREE, UNCONSTRAINED, algorithm
from .jacobians import OBSERVERS, jacobian, require_frame
from .kinematics import way_to

NUMBERS = "a function of numbers that expressions give, not linear in them"


@algorithm(
    ("q", "direction"),
    "inertia",
    options=("link", "frame"),
    sizes={"direction": (6,)},
    reason=NUMBERS,
    requires=SOLVES_TREE.or_use(CLOSED),
)
def effective_inertia(
    tree: Tree, q: Sequence[Scalar], direction: Sequence[Scalar], link: str, frame: str = "link"
) -> Scalar:
    """1 / (d* J M^-1 J* d): force along a direction d per acceleration along it."""
    require_frame(frame)
    at, force = Configuration(tree, q), Force.of(direction)
    if frame != "link":
        way = way_to(at, link)
        turned = Force(way.vector_into(force.moment), way.vector_into(force.force))
        force = way.force_into(force) if frame == "world" else turned
    (mobility,) = evaluate(ex.mobility(tree.mechanism, link), at, direction=force.flat())
    if mobility is None:
        raise MechanismError(f"{link!r} is fixed to the ground: no force moves it, and it has no effective inertia")
    return 1.0 / mobility


@algorithm(
    ("q",),
    "inertia",
    options=("link", "frame"),
    expression=lambda mech, link, frame="link": ex.operational_inertia(mech, link) if frame == "link" else None,
    reason=OBSERVERS,
    requires=SOLVES_TREE.or_use(CLOSED),
)
def operational_inertia(tree: Tree, q: Sequence[Scalar], link: str, frame: str = "link") -> Matrix:
    """(6, 6): the inverse of J M^-1 J*, as an observer sees motions and forces; not numbers where J is singular."""
    require_frame(frame)
    at, expression = Configuration(tree, q), ex.operational_inertia(tree.mechanism, link)
    own: Matrix = applied(plan_for(expression, tree.mechanism), expression, at, {})
    if frame == "link":
        return own
    way, seen = way_to(at, link), []
    for k in range(6):
        motion = Motion.of([1.0 if i == k else 0.0 for i in range(6)])
        if frame == "world":
            force = Force.of(_times(own, way.motion_into(motion).flat()))
            seen.append(way.force_back(force).flat())
        else:
            turned = Motion(way.vector_into(motion.angular), way.vector_into(motion.linear))
            force = Force.of(_times(own, turned.flat()))
            seen.append(Force(way.vector_back(force.moment), way.vector_back(force.force)).flat())
    return [[seen[max(i, j)][min(i, j)] for j in range(6)] for i in range(6)]


def _times(matrix: Matrix, x: Sequence[Scalar]) -> list[Scalar]:
    return [dot(row, x) for row in matrix]


@algorithm(
    ("q",),
    options=("link", "rows", "frame"),
    reason=NUMBERS,
    requires=UNCONSTRAINED.or_use("the jacobian times linkwise.closed.null_space"),
)
def manipulability(
    tree: Tree, q: Sequence[Scalar], link: str, rows: tuple[int, ...] = (0, 1, 2, 3, 4, 5), frame: str = "link"
) -> Scalar:
    """sqrt(det(J J*)) of rows of J: the volume of the box that they span, row by row what sticks out of the others.

    J J* is not formed: its determinant has lost half of the digits where the volume is small.
    """
    whole = jacobian(tree, q, link, frame)
    path = tree.mechanism.path(tree.mechanism.frame(link).body)
    moving = {k for i in path for k in range(tree.mechanism.nv)[tree.mechanism.v_index(tree.mechanism.bodies[i].joint)]}
    if len(rows) > len(moving):
        raise MechanismError(
            f"link {link!r} moves with {len(moving)} degrees of freedom: the manipulability of {len(rows)} rows of its "
            "Jacobian is zero everywhere; choose fewer, such as rows=(3, 4, 5) for its linear velocity"
        )
    remaining, volume = [[whole[r][k] for k in sorted(moving)] for r in rows], 1.0
    while remaining:
        first, *remaining = remaining
        square = dot(first, first)
        volume = volume * sqrt(square)
        inverse = select(square > 0.0, 1.0 / select(square > 0.0, square, 1.0), 0.0)
        remaining = [_without(row, first, dot(row, first) * inverse) for row in remaining]
    return volume


def _without(row: list[Scalar], other: list[Scalar], share: Scalar) -> list[Scalar]:
    return [x - share * y for x, y in zip(row, other, strict=True)]
