"""Clusters by one sparse elimination of their equations of motion in accelerations of links and multipliers.

The solution is the stationary point of

    1/2 alpha* P alpha + alpha* z + y* (C alpha + r) + 1/2 y* S y

over accelerations alpha of links and numbers y.  These are multipliers of constraints between links, and accelerations
of joints that several links or couplings share.  A joint is eliminated as in articulated bodies, which takes its link
to the parent, with K = P H*, K_y = C_y H*, D = H P H* and G = K D^-1:

    P -> X* (P - K G*) X,   C_y -> (C_y - K_y G*) X,   S_yz -> S_yz - K_y D^-1 K_z*,

and likewise for the terms between two links that eliminated constraints leave (articulated inertia of two ports).
Multipliers are eliminated in blocks of one constraint: - S is positive definite once the joints around the loop are
eliminated.  The order affects only the cost.  Multipliers last give the Delassus matrix; multipliers at the common link
of their loop, constrained articulated bodies (LCABA); earlier ones keep ladders of loops narrow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from ..links.articulation import articulate, force_to_parent
from ..links.constraint_units import ConstraintUnits
from ..links.factor import Factor
from ..links.forces import gyroscopic_force
from ..links.kinematics import propagate_acceleration_with_biases
from ..links.loop_elimination import SweepOrder
from ..scalar import Scalar, dot, is_zero, select
from ..spatial import ArticulatedInertia, Force, Motion
from ..spatial.inertia import NOTHING_ARTICULATED
from ..spatial.motion import NO_FORCE, NO_MOTION
from .closings import Closing
from .cluster import ClusterDynamics

SUFFICIENT = 1e-7  # pivots by the size of their block: errors of accelerations are about round-off over this

Number = int  # of y: a row of constraints, or -1 - c for the acceleration of coordinate c


Columns = list[Force]  # a 6x6 matrix by its columns: forces on one link per acceleration of another


def _transposed(columns: Columns) -> Columns:
    return [Force.of(row) for row in zip(*(column.flat() for column in columns), strict=True)]


class ConstraintSweep:
    """Elimination of one cluster at one state, step by step: ``articulate`` and ``eliminate``.

    inertias, forces   P and z by link; the parent of the cluster remains last
    on                 C by link and number
    between            by pairs of links: forces on the first per acceleration of the second
    couplings          S by ordered pairs of numbers
    rest               r
    """

    def __init__(
        self,
        dynamics: ClusterDynamics,
        closings: Sequence[Closing],
        shared: Iterable[int],
        rows: Iterable[int],
        tau: Mapping[int, Scalar],
        ground: Motion,
        units: ConstraintUnits,
    ):
        self.dynamics, self.closings, self.tau, self.ground, self.units = dynamics, closings, tau, ground, units
        self.parent = dynamics.cluster.parent
        self.shared = frozenset(shared)
        self.inertias: dict[int, ArticulatedInertia] = {}
        self.forces: dict[int, Force] = {}
        self.on: dict[int, dict[Number, Force]] = {i: {} for i in (*dynamics.cluster.bodies, self.parent)}
        self.between: dict[tuple[int, int], Columns] = {}
        self.couplings: dict[Number, dict[Number, Scalar]] = {}
        self.rest: dict[Number, Scalar] = {}
        self.reach: dict[Number, Scalar] = {}  # upper bound of S for a constraint alone in its block
        self.pivots: list[tuple[Scalar, Scalar]] = []  # pivots of multipliers, with their reference values
        self._back: list[Callable[[_Motions], None]] = []
        for i in dynamics.cluster.bodies:
            link, load = dynamics.links[i], dynamics.loads[i]
            inertia = link.inertia.articulated()
            force = gyroscopic_force(link.inertia, dynamics.spins[i].omega)
            self.inertias[i] = inertia if load.inertia is None else inertia + load.inertia
            self.forces[i] = force if load.force is None else force + load.force
        if self.parent >= 0:
            self.inertias[self.parent], self.forces[self.parent] = NOTHING_ARTICULATED, NO_FORCE
        for c in self.shared:
            self._enter(-1 - c, -tau[c])
        wanted = frozenset(rows)
        for closing in closings:
            for k, r in enumerate(closing.rows):
                if r in wanted:
                    self._add_row(closing, k, r)

    def _enter(self, y: Number, rest: Scalar) -> None:
        self.rest[y], self.couplings[y] = rest, {y: 0.0}

    def _add_row(self, closing: Closing, k: int, r: int) -> None:
        self._enter(r, closing.bias[k])
        if len(closing.rows) == 1:
            self.reach[r] = 0.0
        for i, forces in closing.on.items():
            self._add_on(i, r, forces[k])
        for i, ratio in closing.joints:
            coordinate, weight = self.dynamics.coordinate((i, 0))
            self._add_coupling(r, -1 - coordinate, ratio * weight)

    # -- entries ------------------------------------------------------------------------------------------

    def _add_on(self, i: int, y: Number, force: Force) -> None:
        if all(map(is_zero, force.flat())):
            return
        if i < 0:  # the ground, whose acceleration is given
            self.rest[y] = self.rest[y] + force.dot(self.ground)
        else:
            self.on[i][y] = self.on[i][y] + force if y in self.on[i] else force

    def _add_coupling(self, y: Number, z: Number, value: Scalar) -> None:
        if is_zero(value):
            return
        self.couplings[y][z] = self.couplings[y].get(z, 0.0) + value
        if y != z:
            self.couplings[z][y] = self.couplings[y][z]

    def _add_inertia(self, i: int, inertia: ArticulatedInertia) -> None:
        if i >= 0:
            self.inertias[i] = self.inertias[i] + inertia

    def _add_force(self, i: int, force: Force) -> None:
        if i >= 0:
            self.forces[i] = self.forces[i] + force

    def _add_between(self, i: int, j: int, columns: Columns) -> None:
        """Forces on link i per acceleration of link j, and their adjoint."""
        if all(is_zero(x) for column in columns for x in column.flat()):
            return
        if i < 0 or j < 0:
            self._add_force(max(i, j), _image(columns if j < 0 else _transposed(columns), self.ground))
        elif i == j:
            both = zip(columns, _transposed(columns), strict=True)
            rows = [(a + b).flat() for a, b in both]
            self._add_inertia(i, ArticulatedInertia.from_entries(lambda k, m: rows[m][k]))
        elif (j, i) in self.between:
            self._add_between(j, i, _transposed(columns))
        else:
            known = self.between.get((i, j))
            self.between[i, j] = columns if known is None else [a + b for a, b in zip(known, columns, strict=True)]

    def _take_between(self, i: int) -> dict[int, Columns]:
        """Remove and return, by other link, the forces on link i per acceleration of that link."""
        couplings: dict[int, Columns] = {}
        for a, b in [pair for pair in self.between if i in pair]:
            columns = self.between.pop((a, b))
            couplings[b if a == i else a] = columns if a == i else _transposed(columns)
        return couplings

    # -- elimination --------------------------------------------------------------------------------------

    def articulate(self, i: int) -> None:
        """Eliminate link i by moving its inertia to its parent. Its joint is eliminated, or becomes one of the numbers
        y if shared."""
        dynamics = self.dynamics
        kinematics, spin = dynamics.kinematics(i), dynamics.spins[i]
        parent, motions = dynamics.links[i].parent, kinematics.motion
        inertia, force = self.inertias.pop(i), self.forces.pop(i)
        on, others = self.on.pop(i), self._take_between(i)
        coordinates = [dynamics.coordinate((i, k)) for k in range(len(motions))]
        if any(coordinate in self.shared for coordinate, _ in coordinates):
            columns = [motion * ratio for motion, (_, ratio) in zip(motions, coordinates, strict=True)]
            for k, (column, (coordinate, ratio)) in enumerate(zip(columns, coordinates, strict=True)):
                y = -1 - coordinate
                armature = dynamics.links[i].armature[k]
                self._add_coupling(y, y, armature * ratio * ratio)
                for m, (other, _) in enumerate(coordinates[: k + 1]):
                    value = (inertia @ columns[m]).dot(column)
                    twice = m != k and other == coordinate
                    self._add_coupling(y, -1 - other, value + value if twice else value)
                self.rest[y] = self.rest[y] + force.dot(column)
                for z, row in on.items():
                    self._add_coupling(y, z, row.dot(column))
                for j, matrix in others.items():
                    self._add_on(j, y, _adjoint_product(matrix, column))
            for column, (coordinate, _) in zip(columns, coordinates, strict=True):
                pushed = inertia @ column
                on[-1 - coordinate] = on[-1 - coordinate] + pushed if -1 - coordinate in on else pushed

            def moved(at: _Motions) -> None:
                behind = propagate_acceleration_with_biases(kinematics, spin, at.links[parent])
                rates = [at.numbers[-1 - coordinate] * ratio for coordinate, ratio in coordinates]
                at.links[i] = behind + kinematics.relative_motion(rates)

        else:
            joint = articulate(kinematics, inertia)
            innovation = joint.innovation([self.tau[coordinate] for coordinate, _ in coordinates], force)
            rates = joint.factor.solve(innovation)
            seen = {y: [row.dot(motion) for motion in motions] for y, row in on.items()}
            felt = {j: [_adjoint_product(matrix, motion) for motion in motions] for j, matrix in others.items()}
            self._reach(on, motions, joint.d)
            answers = {y: joint.factor.solve(column) for y, column in seen.items()}
            free = frozenset(range(6)).difference(joint.held)
            for y, row in on.items():
                for gain, x in zip(joint.gain, seen[y], strict=True):
                    row = row - gain * x
                on[y] = _remove_free_components(row, free)
            for j, matrix in others.items():
                for gain, force_on_j in zip(joint.gain, felt[j], strict=True):
                    flat = force_on_j.flat()
                    matrix = [column - gain * x for column, x in zip(matrix, flat, strict=True)]
                others[j] = [_remove_free_components(column, free) for column in matrix]
            known = list(seen)
            for k, y in enumerate(known):
                self.rest[y] = self.rest[y] + dot(seen[y], rates)
                for z in known[: k + 1]:
                    self._add_coupling(y, z, -dot(seen[y], answers[z]))
            answered = {j: self._divided(joint.factor, column) for j, column in felt.items()}
            for j, pushes in felt.items():
                for k, rate in enumerate(rates):
                    self._add_force(j, pushes[k] * rate)
                    for y in known:
                        self._add_on(j, y, pushes[k] * (-answers[y][k]))
                for m in felt:
                    if m <= j:
                        self._subtract_products(j, pushes, m, answered[m])
            inertia, force = joint.remaining, joint.absorb(force, innovation)

            def moved(at: _Motions) -> None:
                behind = propagate_acceleration_with_biases(kinematics, spin, at.links[parent])
                left = list(innovation)
                for y, row in seen.items():
                    left = [a - x * at.numbers[y] for a, x in zip(left, row, strict=True)]
                for j, own_forces in felt.items():
                    left = [a - f.dot(at.links[j]) for a, f in zip(left, own_forces, strict=True)]
                answer = joint.factor.solve(left)
                rates = [a - gain.dot(behind) for a, gain in zip(answer, joint.gain, strict=True)]
                at.links[i] = behind + kinematics.relative_motion(rates)
                for (coordinate, _), rate in zip(coordinates, rates, strict=True):
                    at.rates[coordinate] = rate

        self._back.append(moved)
        bias = propagate_acceleration_with_biases(kinematics, spin, NO_MOTION)
        back = kinematics.transform.force_back
        for y, row in on.items():
            self.rest[y] = self.rest[y] + row.dot(bias)
            self._add_on(parent, y, back(row))
        for j, matrix in others.items():
            self._add_force(j, _adjoint_product(matrix, bias))
            self._add_between(parent, j, [back(column) for column in matrix])
        if parent >= 0:
            self._add_inertia(parent, kinematics.transform.inertia_back(inertia))
            self._add_force(parent, force_to_parent(kinematics, spin, inertia, force))

    def _divided(self, factor: Factor, forces: Sequence[Force]) -> list[Force]:
        """D^-1 times the components of forces, one force for each degree of freedom of a joint."""
        rows = [factor.solve(list(numbers)) for numbers in zip(*(force.flat() for force in forces), strict=True)]
        return [Force.of([row[k] for row in rows]) for k in range(len(forces))]

    def _subtract_products(self, i: int, forces: Sequence[Force], j: int, answers: Sequence[Force]) -> None:
        """Subtract sums of products of forces on i and on j from the term between the two links, or from the inertia if
        i = j."""
        for force, answer in zip(forces, answers, strict=True):
            a, b = force.flat(), answer.flat()
            if i == j:
                self._add_inertia(i, ArticulatedInertia.from_entries(lambda k, m: -(a[k] * b[m])))  # noqa: B023
            else:
                self._add_between(i, j, [force * (-x) for x in b])

    def _reach(self, on: Mapping[Number, Force], motions: Sequence[Motion], d: Sequence[Sequence[Scalar]]) -> None:
        """Record the maximum mobility of constraints by a joint: the reference value of constraints alone in their
        block."""
        for y, force in on.items():
            if y in self.reach:
                length = 1.0 / self.units.row(y) if self.units.row(y) != 1.0 else 1.0
                size = force.moment.dot(force.moment) + force.force.dot(force.force) * length**2
                for k, motion in enumerate(motions):
                    h = motion.angular.dot(motion.angular) + motion.linear.dot(motion.linear) * length**-2
                    self.reach[y] = self.reach[y] + size * h / d[k][k]

    def eliminate(self, block: Sequence[Number]) -> None:
        """Eliminate the numbers y of a block together."""
        matrix = [[-self.couplings[y].get(z, 0.0) for z in block] for y in block]
        factor = Factor.of(matrix)
        if block[0] >= 0:
            self._compare(block, matrix, factor)
        rest = [self.rest.pop(y) for y in block]
        couplings_of_block = [self.couplings.pop(y) for y in block]
        numbers = list(dict.fromkeys(z for couplings in couplings_of_block for z in couplings if z not in block))
        for z in numbers:
            for y in block:
                self.couplings[z].pop(y, None)
        seen = {z: [couplings.get(z, 0.0) for couplings in couplings_of_block] for z in numbers}
        felt = {
            i: [forces.pop(y, NO_FORCE) for y in block]
            for i, forces in self.on.items()
            if any(y in forces for y in block)
        }
        solved = factor.solve(rest)
        answers = {z: factor.solve(values) for z, values in seen.items()}
        answered = {i: self._divided(factor, forces) for i, forces in felt.items()}
        for k, z in enumerate(numbers):
            self.rest[z] = self.rest[z] + dot(seen[z], solved)
            for other in numbers[: k + 1]:
                self._add_coupling(z, other, dot(seen[z], answers[other]))
        for i, forces in felt.items():
            for force, x in zip(forces, solved, strict=True):
                self._add_force(i, force * x)
            for z in numbers:
                for force, x in zip(forces, answers[z], strict=True):
                    self._add_on(i, z, force * x)
            for j in felt:
                if j <= i:
                    self._subtract_products(i, forces, j, [force * -1.0 for force in answered[j]])

        def moved(at: _Motions) -> None:
            right = list(rest)
            for z, values in seen.items():
                right = [a + x * at.numbers[z] for a, x in zip(right, values, strict=True)]
            for i, forces in felt.items():
                right = [a + force.dot(at.links[i]) for a, force in zip(right, forces, strict=True)]
            for y, value in zip(block, factor.solve(right), strict=True):
                at.numbers[y] = value
                if y < 0:
                    at.rates[-1 - y] = value

        self._back.append(moved)

    def _compare(self, block: Sequence[Number], matrix: Sequence[Sequence[Scalar]], factor: Factor) -> None:
        """Record pivots of multipliers with the typical size of their block, dimensionless up to a common factor."""
        if len(block) == 1:
            size = self.reach.get(block[0], 0.0)
            self.pivots.append((factor.pivots[0], matrix[0][0] if is_zero(size) else size))
            return
        for y, pivot in zip(block, factor.pivots, strict=True):
            size = 0.0
            for k, z in enumerate(block):
                ratio = (self.units.row(z) / self.units.row(y)) ** 2
                size = size + (matrix[k][k] if ratio == 1.0 else matrix[k][k] * ratio)
            self.pivots.append((pivot, size))

    # -- results ------------------------------------------------------------------------------------------

    def run(self, order: SweepOrder) -> None:
        for step in order.steps:
            if isinstance(step, tuple):
                self.eliminate(step)
            else:
                self.articulate(step)

    @property
    def status(self) -> Scalar:
        """Above 1 if all pivots are large enough; small or negative otherwise."""
        smallest: Scalar = 2.0
        for pivot, size in self.pivots:
            ratio = pivot / (size * SUFFICIENT)
            smallest = select(ratio < smallest, ratio, smallest)
        return smallest

    @property
    def margin(self) -> Scalar:
        """Positive if all pivots are large enough; computed without a division."""
        smallest: Scalar = 1.0
        for pivot, size in self.pivots:
            margin = pivot - size * SUFFICIENT
            smallest = select(margin < smallest, margin, smallest)
        return smallest

    @property
    def on_parent(self) -> tuple[ArticulatedInertia, Force]:
        """The remaining forces on the link that carries the cluster."""
        return self.inertias[self.parent], self.forces[self.parent]

    def respond(self, parent: Motion) -> tuple[dict[int, Scalar], dict[int, Motion]]:
        """Accelerations of the coordinates and of the links."""
        at = self.motions(parent)
        return at.rates, {i: at.links[i] for i in self.dynamics.cluster.bodies}

    def multipliers(self, parent: Motion) -> dict[int, Scalar]:
        """Multipliers by constraint, of those solved for."""
        return {y: value for y, value in self.motions(parent).numbers.items() if y >= 0}

    def constraint_forces(self, parent: Motion) -> dict[int, Scalar]:
        """-G* lambda by coordinate, from the constraint forces on links."""
        multipliers, dynamics = self.multipliers(parent), self.dynamics
        joint_forces: dict[int, Scalar] = dict.fromkeys(dynamics.cluster.coordinates, 0.0)
        felt: dict[int, Force] = {}
        for closing in self.closings:
            pulling = [(k, multipliers[r]) for k, r in enumerate(closing.rows) if r in multipliers]
            for k, multiplier in pulling:
                for i, forces in closing.on.items():
                    felt[i] = felt.get(i, NO_FORCE) - forces[k] * multiplier
                for i, ratio in closing.joints:
                    coordinate, factor = dynamics.coordinate((i, 0))
                    joint_forces[coordinate] = joint_forces[coordinate] - multiplier * (ratio * factor)
        for i in reversed(dynamics.cluster.bodies):
            if i in felt:
                kinematics, behind = dynamics.kinematics(i), dynamics.links[i].parent
                for k, motion in enumerate(kinematics.motion):
                    coordinate, factor = dynamics.coordinate((i, k))
                    joint_forces[coordinate] = joint_forces[coordinate] + felt[i].dot(motion) * factor
                felt[behind] = felt.get(behind, NO_FORCE) + kinematics.transform.force_back(felt[i])
        return joint_forces

    def motions(self, parent: Motion) -> _Motions:
        """Base to tip: all eliminated unknowns, from the acceleration of the parent."""
        at = _Motions({self.parent: parent}, {}, {})
        for moved in reversed(self._back):
            moved(at)
        return at


@dataclass(frozen=True)
class _Motions:
    """Accelerations of links, numbers y, and accelerations of coordinates, filled during back-substitution."""

    links: dict[int, Motion]
    numbers: dict[Number, Scalar]
    rates: dict[int, Scalar]


def _image(columns: Columns, motion: Motion) -> Force:
    """The matrix times a motion."""
    total = NO_FORCE
    for column, x in zip(columns, motion.flat(), strict=True):
        if not is_zero(x):
            total = total + column * x
    return total


def _adjoint_product(columns: Columns, motion: Motion) -> Force:
    """The adjoint of the matrix times a motion."""
    return Force.of([column.dot(motion) for column in columns])


def _remove_free_components(force: Force, free: frozenset[int]) -> Force:
    """The force with exact zeros in components along which a joint moves freely."""
    return Force.of([0.0 if k in free else x for k, x in enumerate(force.flat())])
