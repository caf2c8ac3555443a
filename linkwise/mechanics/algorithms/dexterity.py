"""Mobility of a frame: effective inertia against forces, manipulability, Delassus matrix."""

from __future__ import annotations

from collections.abc import Sequence

from ...mechanism import MechanismError
from ..links.constraint_units import ConstraintUnits
from ..links.factor import Elimination
from ..operators.plan import applied, evaluate, plan_for
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot, select, sqrt
from ..spatial import Force, Motion
from . import expressions as ex
from .algorithm import SOLVES_TREE, SOLVES_WITH_MULTIPLIERS, algorithm
from .closed_dynamics import known
from .contact_dynamics import ACTIVE, HELD, constraints_that_hold
from .contact_dynamics import mobility as mobility_under
from .jacobians import OBSERVERS, jacobian, require_frame
from .kinematics import path_transform

NUMBERS = "a function of numbers that expressions give, not linear in them"
HELD_STILL = 1e-12  # relative to the mobility without constraints: less is round-off of zero
NO_UNITS = ConstraintUnits()


@algorithm(
    ("q", "direction"),
    "inertia",
    options=("link", "frame"),
    sizes={"direction": (6,)},
    reason=NUMBERS,
    requires=SOLVES_TREE,
)
def effective_inertia(
    tree: Tree, q: Sequence[Scalar], direction: Sequence[Scalar], *, link: str, frame: str = "link"
) -> Scalar:
    """1 / (d* J M^-1 J* d): force along a direction d per acceleration along it; under constraints with
    K (K* M K)^-1 K* in place of M^-1."""
    require_frame(frame)
    at, force = Configuration(tree, q), Force.of(direction)
    if frame != "link":
        transform = path_transform(at, link)
        turned = Force(transform.vector_into(force.moment), transform.vector_into(force.force))
        force = transform.force_into(force) if frame == "world" else turned
    (mobility,) = evaluate(ex.mobility(tree.mechanism, link), at, direction=force.flat())
    if mobility is None:
        raise MechanismError(f"{link!r} is fixed to the ground: no force moves it, and it has no effective inertia")
    return 1.0 / mobility


@algorithm(
    ("q", "direction"),
    "inertia",
    name="effective_inertia",
    within_constraints=True,
    options=("link", "frame", "units"),
    sizes={"direction": (6,)},
    reason=HELD,
    ports=ACTIVE,
    requires=SOLVES_WITH_MULTIPLIERS,
)
def effective_inertia_within_constraints(
    tree: Tree,
    q: Sequence[Scalar],
    direction: Sequence[Scalar],
    active: Sequence[Scalar] | None = None,
    *,
    link: str,
    frame: str = "link",
    units: ConstraintUnits,
) -> Scalar:
    """1 / (d* J K (K* M K)^-1 K* J* d)."""
    columns = zip(*jacobian(tree, q, link, frame), strict=True)
    forces = [[dot(column, direction) for column in columns]]
    free = [0.0] * len(tree.mechanism.loops)
    ((held_mobility,),), ((free_mobility,),) = (
        mobility_under(tree, q, forces, holds, units) for holds in (active, free)
    )
    return 1.0 / select(held_mobility < free_mobility * HELD_STILL, 0.0, held_mobility)


@algorithm(
    ("q",),
    "inertia",
    options=("link", "frame"),
    expression=lambda mech, link, frame="link": ex.operational_inertia(mech, link) if frame == "link" else None,
    reason=OBSERVERS,
    requires=SOLVES_TREE,
)
def operational_inertia(tree: Tree, q: Sequence[Scalar], *, link: str, frame: str = "link") -> Matrix:
    """(6, 6): the inverse of J M^-1 J*, for the chosen observer of motions and forces; NaN if J is singular. Under
    constraints K (K* M K)^-1 K* takes the place of M^-1."""
    require_frame(frame)
    at, expression = Configuration(tree, q), ex.operational_inertia(tree.mechanism, link)
    inertia: Matrix = applied(plan_for(expression, tree.mechanism), expression, at, {})
    if frame == "link":
        return inertia
    transform, seen = path_transform(at, link), []
    for k in range(6):
        motion = Motion.of([1.0 if i == k else 0.0 for i in range(6)])
        if frame == "world":
            force = Force.of(_times(inertia, transform.motion_into(motion).flat()))
            seen.append(transform.force_back(force).flat())
        else:
            turned = Motion(transform.vector_into(motion.angular), transform.vector_into(motion.linear))
            force = Force.of(_times(inertia, turned.flat()))
            seen.append(Force(transform.vector_back(force.moment), transform.vector_back(force.force)).flat())
    return [[seen[max(i, j)][min(i, j)] for j in range(6)] for i in range(6)]


@algorithm(
    ("q",),
    "inertia",
    name="operational_inertia",
    within_constraints=True,
    options=("link", "frame", "units"),
    reason=HELD,
    ports=ACTIVE,
    requires=SOLVES_WITH_MULTIPLIERS,
)
def operational_inertia_within_constraints(
    tree: Tree,
    q: Sequence[Scalar],
    active: Sequence[Scalar] | None = None,
    *,
    link: str,
    frame: str = "link",
    units: ConstraintUnits,
) -> Matrix:
    """(6, 6): the inverse of J K (K* M K)^-1 K* J*."""
    forces, free = jacobian(tree, q, link, frame), [0.0] * len(tree.mechanism.loops)
    most = [mobility_under(tree, q, [force], free, units)[0][0] for force in forces]
    solved = Elimination(mobility_under(tree, q, forces, active, units))
    solved.factor = solved.factor.unknown_where_singular(most[::-1], HELD_STILL)
    return solved.inverse()


def _times(matrix: Matrix, x: Sequence[Scalar]) -> list[Scalar]:
    return [dot(row, x) for row in matrix]


@algorithm(
    ("q",),
    options=("link", "rows", "frame", "units"),
    reason=NUMBERS,
    ports=("active",),
)
def manipulability(
    tree: Tree,
    q: Sequence[Scalar],
    active: Sequence[Scalar] | None = None,
    *,
    link: str,
    rows: tuple[int, ...] = (0, 1, 2, 3, 4, 5),
    frame: str = "link",
    units: ConstraintUnits = NO_UNITS,
) -> Scalar:
    """sqrt(det(J J*)) of rows of J: the volume that they span, computed by orthogonalising row by row.  Under
    constraints the rows are those of J K, with K orthonormal.

    J J* is not formed: its determinant loses half of the digits for small volumes.
    """
    columns = jacobian(tree, q, link, frame)
    path = tree.mechanism.tree.path(tree.mechanism.frame(link).body)
    moving = {k for i in path for k in range(tree.mechanism.nv)[tree.mechanism.v_index(tree.mechanism.bodies[i].joint)]}
    if len(rows) > len(moving):
        raise MechanismError(
            f"link {link!r} moves with {len(moving)} degrees of freedom: the manipulability of {len(rows)} rows of its "
            "Jacobian is zero everywhere; choose fewer, such as rows=(3, 4, 5) for its linear velocity"
        )
    held = constraints_that_hold(tree, q, active, units)
    remaining, volume = [held.split(columns[r])[1] for r in rows], 1.0
    while remaining:
        first, *remaining = remaining
        square = dot(first, first)
        volume = volume * sqrt(square)
        inverse = select(square > 0.0, 1.0 / select(square > 0.0, square, 1.0), 0.0)
        remaining = [_subtract_share(row, first, dot(row, first) * inverse) for row in remaining]
    return known(held.doubt, [volume])[0]


@algorithm(
    ("q",),
    "mobilities",
    name="frame_mobilities",
    options=("frames", "frame", "units"),
    reason=OBSERVERS,
    ports=("active",),
    requires=SOLVES_WITH_MULTIPLIERS,
)
def delassus_matrix(
    tree: Tree,
    q: Sequence[Scalar],
    active: Sequence[Scalar] | None = None,
    *,
    frames: Sequence[str],
    frame: str = "link",
    units: ConstraintUnits = NO_UNITS,
) -> Matrix:
    """(6 k, 6 k): the Delassus matrix, accelerations of frames per unit wrench on each of them, J K (K* M K)^-1 K* J*
    with the stacked Jacobians of all frames.
    """
    require_frame(frame)
    forces = [row for name in frames for row in jacobian(tree, q, name, frame)]
    return mobility_under(tree, q, forces, active, units)


def _subtract_share(row: list[Scalar], other: list[Scalar], share: Scalar) -> list[Scalar]:
    return [x - share * y for x, y in zip(row, other, strict=True)]
