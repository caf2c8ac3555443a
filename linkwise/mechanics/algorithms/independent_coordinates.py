"""Constrained mechanisms in independent coordinates (spencer2004 2.3, 2.4): K with G K = 0, the equations of motion
along it, and a choice of well-conditioned coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce

from ...mechanism import Mechanism, MechanismError
from ...mechanism.clusters import clusters
from ..links.constraint_units import ConstraintUnits
from ..links.factor import Factor
from ..links.loop_elimination import Front, Fronts, Row, Solution, eliminate
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot, select, sqrt, transposed
from .algorithm import algorithm
from .closed_dynamics import CLUSTERS
from .dynamics import inverse_dynamics, mass_matrix
from .loop_constraints import constraints

EQUAL = 1e-9  # relative: squares of lengths that differ by less are equal
HARDLY_DETERMINED = 1e-7  # per unit of motion: coordinates that move less are ill-conditioned
Vector = list[Scalar]


@algorithm(
    ("q",),
    ("null_space", "reliability"),
    options=("fronts", "independent"),
    reason=CLUSTERS,
)
def closed_null_space(tree: Tree, q, *, fronts: Fronts, independent=None) -> tuple[Matrix, Scalar]:
    """(nv, p): K, with orthonormal columns, or velocities per unit velocity of the ``independent`` joints (2.44); and
    the reliability of the elimination, above 1 if reliable."""
    rows, _ = constraints(Configuration(tree, q), [0.0] * tree.mechanism.nv)
    along = Tangents(tree, rows, fronts, independent)
    return along.basis, along.reliability


@algorithm(
    ("q", "v"),
    ("mass", "bias", "null_space", "offset", "reliability"),
    options=("fronts", "independent"),
    reason=CLUSTERS,
    ports=("wrenches",),
)
def closed_independent_terms(
    tree: Tree, q, v, wrenches=None, *, fronts: Fronts, independent=None
) -> tuple[Matrix, Vector, Matrix, Vector, Scalar]:
    """(p, p), (p,), (nv, p), (nv,) and (): K* M K, K* (M k + h), K, k and their reliability.

    Accelerations that keep loops closed are a = K x + k (2.42), and K* M K x + K* (M k + h) = K* tau is the equation of
    motion (2.43).  x are accelerations of the ``independent`` joints; by default K is orthonormal, and k orthogonal to
    it.
    """
    rows, _ = constraints(Configuration(tree, q), v)
    along = Tangents(tree, rows, fronts, independent)
    columns, inertia = transposed(along.basis), mass_matrix(tree, q)
    moved = [times(inertia, column) for column in columns]
    held = inverse_dynamics(tree, q, v, along.offset, wrenches)
    mass = [times(columns, vector) for vector in moved]
    return mass, times(columns, held), along.basis, along.offset, along.reliability


class Tangents:
    """K by rows and k of a mechanism at one state.  In the coordinates of ``independent`` joints; or K ``orthonormal``
    and k orthogonal to it; or in the coordinates left free by the elimination."""

    def __init__(
        self,
        tree: Tree,
        rows: Sequence[Row],
        fronts: Fronts,
        independent: Sequence[str | int] | None,
        orthonormal: bool = True,
    ):
        motions = eliminated(tree, rows, fronts)
        columns, offset = basis_columns(motions), offset_vector(motions)
        self.reliability = reduce(least, [motion.reliability for motion in motions], 2.0)
        if independent is None and not orthonormal:
            self.basis, self.offset = transposed(columns) if columns else [[] for _ in offset], offset
            return
        if independent is None:
            chosen = _orthonormalized(columns, fronts.units)
            self.basis = transposed(chosen) if chosen else [[] for _ in offset]
        else:
            chosen = _velocity_rows(tree.mechanism, independent, len(columns))
            scale = Inverse([times(columns, row) for row in chosen], units_of_rows(chosen, fronts.units))
            self.basis = scale.after(transposed(columns))
            self.reliability = least(self.reliability, scale.reliability)
        seen = times(chosen, offset)
        self.offset = [x - dot(row, seen) for x, row in zip(offset, self.basis, strict=True)]


def _orthonormalized(columns: Matrix, units: ConstraintUnits) -> Matrix:
    """Orthonormal columns with the same span. With mixed units the raw columns may be nearly parallel, therefore each
    is orthogonalised separately."""
    if all(units.column(c) == 1.0 for column in columns for c in range(len(column))):
        root = Factor.of([times(columns, column) for column in columns])
        return transposed([root.half_inverse(row) for row in transposed(columns)])
    orthonormal: Matrix = []
    for column in columns:
        rest = list(column)
        for part in orthonormal:
            share = dot(part, rest)
            rest = [x - share * y for x, y in zip(rest, part, strict=True)]
        size = 1.0 / sqrt(dot(rest, rest))
        orthonormal.append([x * size for x in rest])
    return orthonormal


def _velocity_rows(mech: Mechanism, joints: Sequence[str | int], count: int) -> Matrix:
    """(p, nv): velocities of joints, single coordinates or entries of v, as rows over v; the row of a mimic joint has
    its ratio.
    """
    rows: Matrix = []
    for name in (joints,) if isinstance(joints, str) else joints:
        single = name if isinstance(name, int) else None
        if isinstance(name, str) and name not in mech.joint_names:
            single = mech.coordinates.index("v", name)
        if single is None:
            entry = mech.coordinates.place(str(name))
            rows += [
                [entry.ratio * float(c == k) for c in range(mech.nv)]
                for k in range(entry.v_index.start, entry.v_index.stop)
            ]
        else:
            rows.append([float(c == single) for c in range(mech.nv)])
    if len(rows) != count:
        raise MechanismError(
            f"independent names {len(rows)} coordinates ({', '.join(map(repr, joints))}), but mechanism {mech.name!r} "
            f"has {count} degrees of freedom: name joints that have {count} coordinates together"
        )
    return rows


def closed_partition(tree: Tree, q, *, fronts: Fronts) -> tuple[Vector, Scalar]:
    """(p,): indices in v of well-conditioned coordinates, the rows of an orthonormal K chosen by pivoting (2.3.3.1
    Remark 2), the first of equal ones; and the reliability of the elimination."""
    rows, _ = constraints(Configuration(tree, q), [0.0] * tree.mechanism.nv)
    motions = eliminated(tree, rows, fronts)
    columns = well_chosen_places(basis_columns(motions), fronts.units)
    return columns, reduce(least, [motion.reliability for motion in motions], 2.0)


def well_chosen_places(columns: Matrix, units: ConstraintUnits) -> Vector:
    """Rows of K chosen by pivoting, in the order of choice, with K orthonormalized in dimensionless coordinates."""
    columns = dimensionless(columns, units)
    root = Factor.of([times(columns, column) for column in columns])
    left = [root.half_inverse(row) for row in transposed(columns)]
    indices: Vector = []
    for _ in columns:
        index, largest, chosen = 0.0, dot(left[0], left[0]), left[0]
        for i, row in enumerate(left[1:], start=1):
            square = dot(row, row)
            better = largest * (1.0 + EQUAL) < square
            index, largest = select(better, float(i), index), select(better, square, largest)
            chosen = [select(better, x, y) for x, y in zip(row, chosen, strict=True)]
        shares = [dot(row, chosen) / largest for row in left]
        left = [
            [x - share * y for x, y in zip(row, chosen, strict=True)] for row, share in zip(left, shares, strict=True)
        ]
        indices.append(index)
    return indices


def ascending(numbers: Vector) -> Vector:
    """Sorted, by exchanging neighbours."""
    ordered = list(numbers)
    for end in range(len(ordered) - 1, 0, -1):
        for i in range(end):
            a, b = ordered[i : i + 2]
            ordered[i], ordered[i + 1] = least(a, b), select(b < a, a, b)
    return ordered


def unit_vector(index: Scalar, length: int) -> Vector:
    """1 at ``index``, a whole number, else 0."""
    return [select(index < i + 0.5, select(index < i - 0.5, 0.0, 1.0), 0.0) for i in range(length)]


# -- elimination, and what is left free ------------------------------------------------------------------


def eliminated(tree: Tree, rows: Sequence[Row], fronts: Fronts) -> list[Solution]:
    """Eliminated loops of every cluster; without a treatment of pivots that vanish at singular positions."""
    return [
        eliminate(
            dict(enumerate(rows)),
            cluster.coordinates,
            [replace(front, spare=0) for front in cluster_fronts],
            fronts.units,
        )
        for cluster, cluster_fronts in zip(clusters(tree.mechanism), fronts.clusters, strict=True)
    ]


def basis_columns(motions: Sequence[Solution]) -> Matrix:
    """K by columns, over all coordinates."""
    columns = range(sum(len(motion.basis) for motion in motions))
    return [
        [motion.basis[c][k] if c in motion.basis else 0.0 for c in columns]
        for motion in motions
        for k in range(motion.free)
    ]


def dimensionless(columns: Matrix, units: ConstraintUnits) -> Matrix:
    """Vectors over all coordinates divided by their units."""
    return [
        [x if units.column(c) == 1.0 else x * (1.0 / units.column(c)) for c, x in enumerate(column)]
        for column in columns
    ]


def offset_vector(motions: Sequence[Solution]) -> Vector:
    """k, over all coordinates."""
    return [x for _, x in sorted(item for motion in motions for item in motion.offset.items())]


def units_of_rows(rows: Matrix, units: ConstraintUnits) -> Vector:
    """(p,): scales that give rows (p, nv) over the coordinates size 1, with coordinates in units of lengths."""
    if all(units.column(c) == 1.0 for row in rows for c in range(len(row))):
        return [1.0] * len(rows)
    scaled = ([x * units.column(c) for c, x in enumerate(row)] for row in rows)
    return [1.0 / sqrt(dot(row, row)) for row in scaled]


class Inverse:
    """The inverse of a matrix (p, p) by elimination with pivots chosen at run time; ``units`` (p,) make its rows
    dimensionless.
    """

    def __init__(self, matrix: Matrix, units: Vector):
        indices = range(len(matrix))
        scaled = ([x * unit for x in row] for row, unit in zip(matrix, units, strict=True))
        rows = {i: Row(dict(enumerate(row)), 0.0) for i, row in enumerate(scaled)}
        solution = eliminate(
            rows, indices, [Front(tuple(indices), tuple(indices), len(indices))], vanishing=HARDLY_DETERMINED
        )
        self.reliability = solution.reliability
        columns = [solution.closing({i: units[k] if i == k else 0.0 for i in indices}) for k in indices]
        self.columns = [[column[i] for i in indices] for column in columns]

    def after(self, matrix: Matrix) -> Matrix:
        """A matrix (n, p) times the inverse."""
        return [times(self.columns, row) for row in matrix]


# -- matrices of scalars ----------------------------------------------------------------------------------


def least(a: Scalar, b: Scalar) -> Scalar:
    return select(b < a, b, a)


def times(matrix: Matrix, x: Sequence[Scalar]) -> Vector:
    return [dot(row, x) for row in matrix]


def added(a: Sequence[Scalar], b: Sequence[Scalar]) -> Vector:
    return [x + y for x, y in zip(a, b, strict=True)]


def product(a: Matrix, b: Matrix) -> Matrix:
    columns = transposed(b)
    return [[dot(row, column) for column in columns] for row in a]


def total(a: Matrix, b: Matrix) -> Matrix:
    return [[x + y for x, y in zip(left, right, strict=True)] for left, right in zip(a, b, strict=True)]


def difference(a: Matrix, b: Matrix) -> Matrix:
    return [[x - y for x, y in zip(left, right, strict=True)] for left, right in zip(a, b, strict=True)]
