"""Derivatives of the mass matrix and of its factor along tangent directions, in closed form (jain1995 6.12, A.29).

Direction k moves one joint j along one column S of H*.  Then the transform X_j into link j changes by -S x X_j, and the
columns of H* of that joint by their own rates; everything else is constant.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from ..jet import jet, parts
from ..links.inertia_rates import (
    ArticulationRate,
    JointMotion,
    articulation_rate,
    half_rate,
    joint_motion,
    rate_to_parent,
)
from ..links.link import combine
from ..recursions.sweep import tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, is_zero
from ..spatial import ArticulatedInertia, Force, Motion
from ..spatial.inertia import NOTHING_ARTICULATED
from ..spatial.motion import NO_MOTION
from .algorithm import COMPOSITE_BODIES, algorithm
from .kinematics import joint_motions

Cube = list[Matrix]  # [i][j][k]
Column = tuple[int, int]  # joint and degree of freedom


class InertiaRates:
    """dP/dt of every link in its own frame, and derived quantities, for given joint motions (None: at rest).

    dP/dt = sum over children c of X_c* [dP+_c/dt + (H_c* v_c) x* P+_c - P+_c (H_c* v_c) x] X_c (jain1995 Algorithm 6.1)
    """

    def __init__(self, at: Configuration, moving: Sequence[JointMotion | None]):
        self.at = at
        self.moving = moving
        self._inertias: dict[int, ArticulatedInertia | None] = {}
        self._joints: dict[int, ArticulationRate | None] = {}

    def inertia(self, i: int) -> ArticulatedInertia | None:
        """dP/dt; None if zero."""
        if i not in self._inertias:
            self._inertias[i] = self.at.neighbours.from_children(i, (self, "dP"), self._rate_behind, None)
        return self._inertias[i]

    def _rate_behind(self, i: int) -> ArticulatedInertia | None:
        """The contribution of link i to dP/dt of its parent."""
        joint = self.joint(i)
        return None if joint is None else rate_to_parent(joint, self.moving[i])

    def joint(self, i: int) -> ArticulationRate | None:
        """Rates of P H*, D, G and P+; None if zero."""
        if i not in self._joints:
            rate, moving = self.inertia(i), self.moving[i]
            still = rate is None and moving is None
            self._joints[i] = (
                None
                if still
                else articulation_rate(
                    self.at.articulation(i), self.at.articulated(i), rate or NOTHING_ARTICULATED, moving
                )
            )
        return self._joints[i]


def _directions(at: Configuration) -> Iterator[tuple[int, int, JointMotion]]:
    """For each direction: joint, degree of freedom, and motion of the joint along it."""
    for j, link in enumerate(at.tree.links):
        for k in range(link.joint.nv):
            unit = [1.0 if m == k else 0.0 for m in range(link.joint.nv)]
            yield j, k, joint_motion(at.joint_kinematics[j], at.coordinates[j], unit)


def _stack_directions(slices: Sequence[Matrix]) -> Cube:
    """[i][j][k] from one matrix per direction."""
    n = len(slices[0]) if slices else 0
    return [[[matrix[i][j] for matrix in slices] for j in range(n)] for i in range(n)]


@algorithm(("q",), "derivatives", reason=COMPOSITE_BODIES)
def mass_matrix_derivatives(tree: Tree, q: Sequence[Scalar]) -> Cube:
    """(nv, nv, nv): [i, j, k] is dM_ij along tangent direction k.

    jain1995 (6.12): M' = H phi (S~ phi M - M phi* S~*) phi* H*.  At joint j let y_a be the motion of link j per unit of
    freedom a of an inner joint, and F_b the force required there by freedom b, a column of phi M phi* H*; then M'_ab =
    -(S x y_a) F_b - (S x y_b) F_a.
    """
    at = Configuration(tree.regrouped, q)
    motions, forces = _columns(at)
    slices = []
    for j, _, moving in _directions(at):
        swept = {a: moving.relative.cross(y) for a, y in motions[j].items() if a[0] != j}
        starting = {
            (j, m): change for m, change in enumerate(moving.columns) if any(not is_zero(x) for x in change.flat())
        }
        changes = {a: y * -1.0 for a, y in swept.items()} | starting

        def entry(a: Column, b: Column, changes=changes, force=forces[j]) -> Scalar:
            total: Scalar = 0.0
            for first, second in ((a, b), (b, a)):
                if first in changes and second in force:
                    total = total + force[second].dot(changes[first])
            return total

        slices.append(_symmetric(at, entry))
    # Mimic joints move with the joints they mimic, on all three sides.
    reduced = [tree.independent_block(matrix) for matrix in slices]
    cube = _stack_directions(reduced)
    return [[tree.collect(tree.per_joint(along)) for along in row] for row in cube]


@algorithm(("q",), "second_derivatives", reason=COMPOSITE_BODIES)
def mass_matrix_second_derivatives(tree: Tree, q: Sequence[Scalar]) -> list[Cube]:
    """(nv, nv, nv, nv): [i, j, k, l] is the derivative along l of [i, j, k] of ``mass_matrix_derivatives``, by jets.
    Directions k and l of one joint commute unless it turns freely (quaternions)."""
    mechanism = tree.mechanism
    slices = []
    for body in (b for b in mechanism.bodies if not b.mimic):
        coordinates = mechanism.q_index(body.joint)
        for k in range(body.nv):
            slopes = body.kind.q_rate(list(q[coordinates]), [1.0 if m == k else 0.0 for m in range(body.nv)])
            moved = list(q)
            moved[coordinates] = [jet(x, slope) for x, slope in zip(q[coordinates], slopes, strict=True)]
            along = mass_matrix_derivatives(tree, moved)
            slices.append([[[parts(x)[1] for x in row] for row in matrix] for matrix in along])
    n = range(mechanism.nv)
    return [[[[s[i][j][k] for s in slices] for k in n] for j in n] for i in n]


def _columns(at: Configuration) -> tuple[list[dict[Column, Motion]], list[dict[Column, Force]]]:
    """For every link: motions by the joints on its path to the base, and forces phi M phi* H* by these and outer
    joints."""
    motions = joint_motions(at)

    def inward(i: int, outer: list[dict[Column, Force]]) -> tuple[dict[Column, Force], dict[Column, Force]]:
        inertia = at.composite(i)
        forces_here = {a: inertia @ y for a, y in motions[i].items()}
        for message in outer:
            forces_here |= message
        beyond = {
            b: at.joint_kinematics[i].transform.force_back(f)
            for b, f in forces_here.items()
            if b[0] == i or b not in motions[i]
        }
        return forces_here, beyond

    forces, _ = tip_to_base(at.tree.links, "composite inertias, forces of unit motions", inward)
    return motions, forces


def _symmetric(at: Configuration, entry) -> Matrix:
    columns = [(i, m) for i, link in enumerate(at.tree.links) for m in range(link.joint.nv)]
    upper = {(a, b): entry(a, b) for x, a in enumerate(columns) for b in columns[x:]}
    return [[upper[min(a, b), max(a, b)] for b in columns] for a in columns]


def factor_derivatives(tree: Tree, q: Sequence[Scalar], normalized: bool = True) -> Cube:
    """(nv, nv, nv): [i, j, k] is dm_ij along tangent direction k (jain1995 A.29), or the derivative of I + H phi K."""
    at = _articulated(tree, q)
    links = range(len(tree.links))
    return _stack_directions(
        [_factor_rate(at, [moving if i == j else None for i in links], normalized) for j, _, moving in _directions(at)]
    )


def factor_rate(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], normalized: bool = True) -> Matrix:
    """(nv, nv): dm/dt along the velocities v (jain1995 A.30), or the rate of I + H phi K."""
    at = _articulated(tree, q)
    rates = tree.per_joint(v)
    moving = [joint_motion(c, x, part) for c, x, part in zip(at.joint_kinematics, at.coordinates, rates, strict=True)]
    return _factor_rate(at, moving, normalized)


def _articulated(tree: Tree, q: Sequence[Scalar]) -> Configuration:
    at = Configuration(tree.regrouped, q)
    tip_to_base(at.tree.links, "articulated inertias", lambda i, _: (at.articulation(i), None))
    return at


def _factor_rate(at: Configuration, moving: Sequence[JointMotion | None], normalized: bool) -> Matrix:
    """d[(I + H phi K) D^(1/2)] for moving joints: each column K D^(1/2) and its rate, propagated to the base."""
    links = at.tree.links
    starts, size = at.tree.dof_starts, at.tree.dofs
    result: Matrix = [[0.0] * size for _ in range(size)]
    rates = InertiaRates(at, moving)
    for b, link in enumerate(links):
        columns, root = _weighted_gain(at, rates, b, normalized)
        for m in range(link.joint.nv):
            for k in range(link.joint.nv):
                result[starts[b] + k][starts[b] + m] = root[k][m]
            force, rate = columns[m]
            inner = b
            while links[inner].parent >= 0:
                crossed = moving[inner]
                if crossed is not None:
                    rate = rate + crossed.relative.cross_force(force)
                back = at.joint_kinematics[inner].transform.force_back
                force, rate, inner = back(force), back(rate), links[inner].parent
                reached = moving[inner]
                for k, h in enumerate(at.joint_kinematics[inner].motion):
                    change = NO_MOTION if reached is None else reached.columns[k]
                    result[starts[inner] + k][starts[b] + m] = rate.dot(h) + force.dot(change)
    return result


def _weighted_gain(
    at: Configuration, rates: InertiaRates, b: int, normalized: bool
) -> tuple[list[tuple[Force, Force]], Matrix]:
    """Columns of G D^(1/2) of one joint with their rates, and the rate of D^(1/2)."""
    joint, rate = at.articulation(b), rates.joint(b)
    n = len(joint.gain)
    units = [[1.0 if i == m else 0.0 for i in range(n)] for m in range(n)]
    root = [joint.factor.half(unit) if normalized else unit for unit in units]  # columns
    root_rate = [[0.0] * n for _ in range(n)]
    gain_rate = None if rate is None else rate.gain()
    if rate is not None and normalized:
        change = half_rate(joint.factor, rate.d)
        root_rate = [joint.factor.half([0.0] * m + [change[i][m] for i in range(m, n)]) for m in range(n)]
    columns = []
    for m in range(n):
        value, slope = combine(joint.gain, root[m]), combine(joint.gain, root_rate[m])
        columns.append((value, slope if gain_rate is None else slope + combine(gain_rate, root[m])))
    return columns, [list(row) for row in zip(*root_rate, strict=True)]
