"""Loop constraints (spencer2004 2.1c-2.3, A.3.2): closure errors, Jacobian and bias, in O(path) per loop. Couplings are
functions of a few coordinates, in the order of ``Mechanism.loops``."""

from __future__ import annotations

from collections.abc import Sequence

from ..links.loop_elimination import Row
from ..operators.plan import apply
from ..recursions.loops import Tie, Walk
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar
from . import expressions as ex
from .algorithm import algorithm
from .dynamics import bias_force, mass_matrix

LOOPS = "loops are walked from side to side; links beside the way do not enter"


@algorithm(("q",), "constraint_error", reason=LOOPS)
def position_error(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """(m,): g(q), the closures of all loops and couplings one after the other (2.1c)."""
    return [x for path in Configuration(tree, q).ways for x in path.closure()]


@algorithm(("q",), reason=LOOPS)
def loop_alignments(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
    """(number of loops,): ``Joint.loop_alignment`` of every loop, 1 of couplings."""
    return [path.alignment for path in Configuration(tree, q).ways]


def constraint_jacobian(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """(m, nv): G with dg/dt = G v (2.2)."""
    return apply(ex.CONSTRAINT_JACOBIAN, tree, q)


@algorithm(("q", "v"), "constraint_error", reason=LOOPS)
def constraint_bias(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> list[Scalar]:
    """(m,): dG/dt v, the second derivative of g along the motion with constant v, without forming dG/dt (2.3); less the
    accelerations prescribed by drives."""
    at, rates = Configuration(tree, q), tree.velocities(v)
    return [x for path in at.ways for x in _bias(at, path, rates)]


def constraints(at: Configuration, v: Sequence[Scalar]) -> tuple[list[Row], list[Scalar]]:
    """Equations of all loops and couplings for accelerations, G a + dG/dt v = 0; and their errors g."""
    equations = [constraint_equations(at, path, v) for path in at.ways]
    return [row for rows, _ in equations for row in rows], [x for _, errors in equations for x in errors]


def constraint_equations(at: Configuration, path: Walk | Tie, v: Sequence[Scalar]) -> tuple[list[Row], list[Scalar]]:
    """Equations of one loop or coupling for accelerations, and its errors."""
    return list(map(Row, _rows(at, path), _bias(at, path, at.tree.velocities(v)))), path.closure()


def driven_rates(at: Configuration) -> list[Scalar]:
    """(m,): prescribed values of G v, zero except for drives."""
    return [path.aim.velocity for path in at.ways for _ in range(path.loop.n_constraints)]


def driven_accelerations(at: Configuration) -> list[Scalar]:
    """(m,): rates of the prescribed values of G v."""
    return [path.aim.acceleration for path in at.ways for _ in range(path.loop.n_constraints)]


def closures(at: Configuration, path: Walk | Tie, rows: Sequence[Row] | None = None) -> list[Row]:
    """The equation of a loop or coupling for a small step u that closes it, G u + g = 0; with its ``rows`` of G from a
    configuration nearby."""
    known = _rows(at, path) if rows is None else [row.numbers for row in rows]
    return [Row(numbers, error) for numbers, error in zip(known, path.closure(), strict=True)]


def _rows(at: Configuration, path: Walk | Tie) -> list[dict[int, Scalar]]:
    """The rows of G of a loop or coupling, by coordinate."""
    rows: list[dict[int, Scalar]] = [{} for _ in range(path.loop.n_constraints)]
    for i in path.links(by_joints=True):
        body = at.tree.mechanism.bodies[i]
        start, ratio = at.tree.mechanism.v_index(body.joint).start, body.mimic.ratio if body.mimic else 1.0
        for k, motion in enumerate(at.joint_kinematics[i].motion, start=start):
            for row, rate in zip(rows, path.rates({i: motion}, by_joints=True) or [], strict=True):
                row[k] = row.get(k, 0.0) + rate * ratio
    return rows


def _bias(at: Configuration, path: Walk | Tie, rates: Sequence[Sequence[Scalar]]) -> list[Scalar]:
    """dG/dt v of a loop or coupling, less the acceleration prescribed by a drive."""
    return [x - path.aim.acceleration for x in path.acceleration(at, rates)]


def joint_forces(at: Configuration, path: Walk | Tie, multipliers: Sequence[Scalar]) -> list[Scalar]:
    """(nv,): G* lambda of one loop or coupling."""
    joint_components: list[list[Scalar]] = [[0.0] * link.joint.nv for link in at.tree.links]
    for i in path.links(by_joints=True):
        force = path.force_on(i, multipliers, by_joints=True)
        if force is not None:
            joint_components[i] = [force.dot(motion) for motion in at.joint_kinematics[i].motion]
    return at.tree.collect(joint_components)


@algorithm(("q",), reason=LOOPS)
def loop_motion_maps(tree: Tree, q: Sequence[Scalar]) -> Matrix:
    """(m, 6): rates of the closures per unit motion [omega; v] of side B relative to side A, in the frame ``pose_b``.
    Zero for couplings, which have no sides."""
    return [row for path in Configuration(tree, q).ways for row in path.motion_maps()]


@algorithm(("q", "v"), reason=LOOPS)
def constrained_terms(tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar]) -> Matrix:
    """(nv + m, nv + 2): [M, h, 0; G, dG/dt v, g], all terms of the equations of motion (2.1-2.3) in one kernel."""
    upper = [[*row, h, 0.0] for row, h in zip(mass_matrix(tree, q), bias_force(tree, q, v), strict=True)]
    biases = zip(constraint_jacobian(tree, q), constraint_bias(tree, q, v), position_error(tree, q), strict=True)
    return upper + [[*row, bias, error] for row, bias, error in biases]
