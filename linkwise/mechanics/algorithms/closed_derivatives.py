"""Derivatives of constrained motion along allowed directions (spencer2004 4.2, 4.4, Appendix B).

With a = K y + k that solves G a + dG/dt v = 0, and multipliers with M a + h + G* lambda = tau, a step along a column of
K, with the change of v that keeps it consistent with the constraints, changes

    the constraints by c = d(G a + dG/dt v), which accelerations compensate by -L c, and
    the forces by f = d(M a + h + G* lambda), so that da = -K (K* M K)^-1 K* (f - M L c) - L c.

Contributions of loops are computed loop by loop (``loop_changes.py``), those of M a + h on the tree
(``dynamics_derivatives.py``).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

from ...mechanism import Mechanism, MechanismError
from ..links.constraint_units import ConstraintUnits, scaled
from ..links.factor import Elimination, Factor
from ..links.loop_elimination import BIAS, Fronts, Row
from ..recursions.held_cluster import HeldMass
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot, select, transposed
from .algorithm import SOLVES_CONSTRAINED, algorithm
from .closed_dynamics import CLOSED, CLUSTERS, reject_faster, reject_open, reject_opening
from .contact_dynamics import made_orthogonal
from .dynamics import inverse_dynamics, mass_matrix
from .dynamics_derivatives import inverse_dynamics_derivatives
from .independent_coordinates import (
    Inverse,
    Vector,
    added,
    ascending,
    basis_columns,
    difference,
    dimensionless,
    eliminated,
    least,
    offset_vector,
    product,
    times,
    total,
    unit_vector,
    units_of_rows,
    well_chosen_places,
)
from .linearization import step_rate_jacobian
from .loop_changes import loop_changes
from .loop_constraints import constraints, driven_rates

OPEN = 1e-8  # sizes of loops, sines of angles: loops open by more have no exact derivatives ...
OPENING = 1e-6  # ... nor have motions that open them faster, relative to velocities
HUGE = 1e36  # squared accelerations above this count as infinite: the range of single precision


@algorithm(
    ("q", "v", "tau"),
    ("d_q", "d_v", "d_tau", "reliability", "consistency"),
    options=("fronts",),
    reason=CLUSTERS,
    ports=("active", "wrenches"),
    requires=SOLVES_CONSTRAINED,
)
def closed_forward_dynamics_derivatives(
    tree: Tree, q, v, tau, wrenches=None, active=None, *, fronts: Fronts
) -> tuple[Matrix, Matrix, Matrix, Scalar, Scalar]:
    """Three of (nv, nv): derivatives of accelerations by steps of q and by changes of v, both projected onto the
    consistent states (``_Projection``), and by tau.

    Also returns their reliability, as of ``closed_motion``, and their consistency, which is lower if the state violates
    the constraints.  With ``active``, only loops with number 1 hold.
    """
    if active is not None:
        held = HeldNeighbourhood(tree, q, v, tau, wrenches, active, fronts.units)
        by_q, by_v, by_tau = (transposed(part) for part in held.accelerations)
        return by_q, by_v, by_tau, held.reliability, held.consistency
    near = Neighbourhood(tree, q, v, tau, wrenches, fronts)
    return *_Projection(near).of(near.accelerations), near.by_tau, near.reliability, near.consistency


@algorithm(
    ("q", "v", "tau"),
    ("rate_jacobian", "reliability", "consistency"),
    options=("fronts",),
    reason=CLUSTERS,
    ports=("wrenches",),
    requires=SOLVES_CONSTRAINED,
)
def closed_rate_jacobian(tree: Tree, q, v, tau, wrenches=None, *, fronts: Fronts) -> tuple[Matrix, Scalar, Scalar]:
    """(2 nv, 2 nv): derivative of (rate of the step from q, acceleration) by (step, change of v), projected onto the
    consistent states; its reliability and consistency."""
    near = Neighbourhood(tree, q, v, tau, wrenches, fronts)
    projection = _Projection(near)
    halves = projection.of(near.step_rates), projection.of(near.accelerations)
    return [[*a, *b] for half in halves for a, b in zip(*half, strict=True)], near.reliability, near.consistency


@algorithm(
    ("q", "v", "tau"),
    ("a", "multipliers", "d_state", "d_a", "d_multipliers", "reliability", "consistency"),
    options=("fronts",),
    reason=CLUSTERS,
    ports=("active", "wrenches"),
    requires=SOLVES_CONSTRAINED,
)
def closed_motion_derivatives(
    tree: Tree, q, v, tau, wrenches=None, active=None, *, fronts: Fronts
) -> tuple[Vector, Vector, Matrix, Matrix, Matrix, Scalar, Scalar]:
    """Derivatives of motion under independent constraints.  Accelerations (nv,) and multipliers (m,).  Changes by steps
    of q, changes of v and of tau, (3 nv) columns in all: of the state, projected as by ``_Projection`` (2 nv, 3 nv); of
    accelerations (nv, 3 nv); and of multipliers (m, 3 nv).  Reliability and consistency."""
    if active is not None:
        held = HeldNeighbourhood(tree, q, v, tau, wrenches, active, fronts.units)
        results = (
            transposed([x for part in parts for x in part]) for parts in (held.accelerations, held.multiplier_changes)
        )
        return held.acceleration, held.multipliers, held.state_changes, *results, held.reliability, held.consistency
    near = Neighbourhood(tree, q, v, tau, wrenches, fronts)
    projection, by_tau = _Projection(near), near.by_tau
    still: Matrix = [[0.0] * len(near.v) for _ in near.v]
    moved = [[*row, *[0.0] * len(row)] for row in near.basis]
    changed = [[*a, *b] for a, b in zip(transposed(near.changes), near.basis, strict=True)]
    state = _join_columns(projection.of(moved), still) + _join_columns(projection.of(changed), still)
    accelerations = _join_columns(projection.of(near.accelerations), by_tau)
    multipliers = _join_columns(projection.of(near.multiplier_changes), near.multipliers_by_tau(by_tau))
    return near.acceleration, near.multipliers, state, accelerations, multipliers, near.reliability, near.consistency


def _join_columns(halves: tuple[Matrix, Matrix], last: Matrix) -> Matrix:
    return [[*a, *b, *c] for a, b, c in zip(*halves, last, strict=True)]


def closed_linearization(
    tree: Tree, q, v, tau, rows: Matrix, wrenches=None, *, fronts: Fronts
) -> tuple[Matrix, Matrix, Vector, Matrix, Vector, Scalar]:
    """The local state-space form (4.8-4.10) in coordinates y with dy/dt = R v, R the ``rows`` (p, nv):

    A (2 p, 2 p), B (2 p, nv), drift (2 p,); tangent (2 nv, 2 p): steps of q and changes of v per unit of (y, dy/dt);
    accelerations (nv,); and their reliability, which is also negative if the state is inconsistent with the
    constraints.
    """
    return _local_form(Neighbourhood(tree, q, v, tau, wrenches, fronts), rows)


def closed_linearization_by_pivoting(
    tree: Tree, q, v, tau, *, fronts: Fronts
) -> tuple[Matrix, Matrix, Vector, Matrix, Vector, Scalar, Vector]:
    """The local form in the coordinates chosen by ``closed_partition``, in the order of v, and (p,): their indices."""
    near = Neighbourhood(tree, q, v, tau, None, fronts)
    indices = ascending(well_chosen_places(near.columns, fronts.units))
    return *_local_form(near, [unit_vector(index, len(near.v)) for index in indices]), indices


def _local_form(near: Neighbourhood, rows: Matrix) -> tuple[Matrix, Matrix, Vector, Matrix, Vector, Scalar]:
    selection, p = [list(row) for row in rows], len(near.columns)
    seen, opening = product(selection, near.basis), product(selection, transposed(near.changes))
    scale = Inverse(seen, units_of_rows(selection, near.units))
    basis = scale.after(near.basis)

    def in_rows(by_step: Matrix, by_velocity: Matrix) -> tuple[Matrix, Matrix]:
        """Derivatives by y and dy/dt, from derivatives by the coordinates of the elimination: dy/dt = R v changes with
        both."""
        by_rate = scale.after(by_velocity)
        return scale.after(difference(by_step, product(by_rate, opening))), by_rate

    changes, _ = in_rows(transposed(near.changes), near.basis)
    # R a changes by R (K y - L c); for a change of v, R accounts for L c except for the commutator term.
    turned = total(opening, product(selection, transposed(near.turned)))
    by_step = difference(product(seen, transposed(near.answers[:p])), product(selection, transposed(near.bent)))
    by_velocity = total(product(seen, transposed(near.answers[p:])), [[2.0 * x for x in row] for row in turned])
    lower, upper = in_rows(by_step, by_velocity), product(selection, product(near.turning, basis))
    unit = [[float(i == k) for k in range(p)] for i in range(p)]
    response = product([near.factor.solve(row) for row in seen], near.columns)
    still: Matrix = [[0.0] * len(near.v) for _ in selection]
    tangent = [[*row, *[0.0] * p] for row in basis] + [[*a, *b] for a, b in zip(changes, basis, strict=True)]
    return (
        [[*a, *b] for half in ((upper, unit), lower) for a, b in zip(*half, strict=True)],
        still + response,
        times(selection, near.v) + times(selection, near.acceleration),
        tangent,
        near.acceleration,
        least(near.consistency, scale.reliability),
    )


class Neighbourhood:
    """A constrained mechanism near one state, in the p independent coordinates that the elimination leaves.

    columns        of K (nv, p), a block for every cluster; ``basis`` has its rows
    factor         of K* M K
    acceleration   (nv,)
    changes        changes of v with steps of the coordinates, a column for each
    bent           L c for the same steps
    turned         half of L c for changes of the coordinates' velocities, less its part in ``changes``: the commutator
    mass, by_q, by_v   (nv, nv): derivatives of M a + h + G* lambda by a, along q at constant lambda, and by v
    answers        y for steps, then for changes of velocities: accelerations change by K y - L c
    """

    def __init__(self, tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], tau, wrenches, fronts: Fronts):
        self.tree, self.q, self.v, self.units = tree, list(q), list(v), fronts.units
        at = Configuration(tree, q)
        self.driven = driven_rates(at)
        self.rows, self.errors = constraints(at, v)
        self.motions = eliminated(tree, self.rows, fronts)
        self.columns = basis_columns(self.motions)
        self.basis = transposed(self.columns)
        self.turning = step_rate_jacobian(tree, v)
        self._solve_motion(tau, wrenches)
        self._vary(wrenches)

    @property
    def reliability(self) -> Scalar:
        """Reliability: above 1 if reliable, small for small pivots of the elimination, negative if loops are open by
        mistake."""
        return self._reject_open(CLOSED)

    @property
    def consistency(self) -> Scalar:
        """Reliability that is also negative if loops are open at all, if the velocities open them, or if the motion is
        infinite."""
        closed = self._reject_open(OPEN)
        status = reject_opening(self.units, self.rows, self.driven, self.v, closed, OPENING)
        return select(dot(self.acceleration, self.acceleration) < HUGE, status, -1.0)

    def _reject_open(self, largest: float) -> Scalar:
        reliability = reduce(least, [motion.reliability for motion in self.motions], 2.0)
        return reject_open(self.units, self.errors, reliability, largest)

    @property
    def by_tau(self) -> Matrix:
        """(nv, nv): changes of a with joint forces, K (K* M K)^-1 K*, symmetric."""
        answers, n = product(self.basis, self.factor.inverse()), len(self.v)
        lower = [[dot(answer, row) for row in self.basis[: i + 1]] for i, answer in enumerate(answers)]
        return [[lower[max(i, j)][min(i, j)] for j in range(n)] for i in range(n)]

    @property
    def accelerations(self) -> Matrix:
        """(nv, 2 p): changes of a with steps and with changes of velocities."""
        by_velocity = [
            [-2.0 * (x + y) for x, y in zip(*both, strict=True)] for both in zip(self.changes, self.turned, strict=True)
        ]
        return difference(product(self.basis, transposed(self.answers)), transposed(self.bent + by_velocity))

    @property
    def multiplier_changes(self) -> Matrix:
        """(m, 2 p): changes of the multipliers, which balance changes of M a + h + G* lambda."""
        steps = zip(self.columns, self.changes, strict=True)
        changes = [added(times(self.by_q, u), times(self.by_v, w)) for u, w in steps]
        changes += [times(self.by_v, column) for column in self.columns]
        accelerated = [times(self.mass, column) for column in transposed(self.accelerations)]
        columns = [self._multipliers([-x for x in added(*both)]) for both in zip(changes, accelerated, strict=True)]
        return transposed(columns)

    def multipliers_by_tau(self, by_tau: Matrix) -> Matrix:
        """(m, nv): L* (1 - M da/dtau)."""
        moved = [times(self.mass, column) for column in transposed(by_tau)]
        left = [[float(i == k) - x for i, x in enumerate(column)] for k, column in enumerate(moved)]
        return transposed([self._multipliers(column) for column in left])

    @property
    def step_rates(self) -> Matrix:
        """(nv, 2 p): changes of the rates of steps of q."""
        turned = product(self.turning, self.basis)
        return [[*a, *b] for a, b in zip(total(transposed(self.changes), turned), self.basis, strict=True)]

    # -- loops of all clusters --------------------------------------------------------------------------------

    def _closing(self, rates: Sequence[Scalar]) -> Vector:
        """L x."""
        change: Vector = [0.0] * len(self.v)
        for motion in self.motions:
            for c, x in motion.closing({r: rates[r] for r in motion.rows}).items():
                change[c] = x
        return change

    def _multipliers(self, forces: Sequence[Scalar]) -> Vector:
        """L* f."""
        multipliers: Vector = [0.0] * len(self.rows)
        for motion in self.motions:
            for r, x in motion.multipliers({c: forces[c] for c in motion.basis}).items():
                multipliers[r] = x
        return multipliers

    # -- the motion, and how it changes -----------------------------------------------------------------------

    def _solve_motion(self, tau: Sequence[Scalar], wrenches) -> None:
        """Accelerations and multipliers, and data shared with their changes: M K and the factor of K* M K."""
        offset = offset_vector(self.motions)
        held = inverse_dynamics(self.tree, self.q, self.v, offset, wrenches)
        left = [t - f for t, f in zip(tau, held, strict=True)]
        self.mass = inverse_dynamics_derivatives(self.tree, self.q, self.v, offset)[2]
        self.inertia = [times(self.mass, column) for column in self.columns]
        self.factor = Elimination([times(self.inertia, column) for column in self.columns])
        y = self.factor.solve(times(self.columns, left))
        self.acceleration = [dot(row, y, k) for row, k in zip(self.basis, offset, strict=True)]
        missing = [f - dot(row, y) for row, f in zip(transposed(self.inertia), left, strict=True)]
        self.multipliers = self._multipliers(missing)

    def _vary(self, wrenches) -> None:
        self.near = Changes(self.tree, self.q, self.v, self.acceleration, self.multipliers, self.rows, wrenches)
        self.by_q, self.by_v = self.near.by_q, self.near.by_v
        by_q, by_v = product(self.columns, self.by_q), product(self.columns, self.by_v)

        self.changes, self.bent, self.turned = [], [], []
        for column in self.columns:
            turned = times(self.turning, column)
            change = [-x for x in self._closing(self.near.constraint_change("velocity", column))]
            self.changes.append(change)
            self.bent.append(self._closing(self.near.acceleration_change(column, change)))
            self.turned.append(self._closing([row.times(turned) for row in self.rows]))
        self.answers = []
        for column, change, back in zip(self.columns, self.changes, self.bent, strict=True):
            static = times(by_q, column)
            moving = zip(static, by_v, self.inertia, strict=True)
            self.answers.append(self.factor.solve([dot(m, back) - dot(f, change, x) for x, f, m in moving]))
        for column, change, turned in zip(self.columns, self.changes, self.turned, strict=True):
            back = [-2.0 * (x + y) for x, y in zip(change, turned, strict=True)]
            self.answers.append(
                self.factor.solve([dot(m, back) - dot(f, column) for f, m in zip(by_v, self.inertia, strict=True)])
            )


class Changes:
    """Changes near a state with velocity v, acceleration a and multipliers.

    by_q, by_v   (nv, nv): derivatives of M a + h + G* lambda along q at constant a and lambda, and by v
    """

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        a: Sequence[Scalar],
        multipliers: Sequence[Scalar],
        rows: Sequence[Row],
        wrenches: Any,
    ):
        self.rows, self.turning = rows, step_rate_jacobian(tree, v)
        self.by_q, self.by_v, _ = inverse_dynamics_derivatives(tree, q, v, a, wrenches)
        self.loops = []
        for loop in tree.mechanism.loops:
            if loop.is_linear:
                continue
            around = loop_changes(tree, loop, q, v, a, multipliers)
            self.loops.append(around)
            for c, row in zip(around.coordinates, around.forces, strict=True):
                for k, x in zip(around.coordinates, row, strict=True):
                    self.by_q[c][k] = self.by_q[c][k] + x

    def constraint_change(self, quantity: str, step: Vector) -> Vector:
        """The change along a step of the constraints' velocities G v or accelerations G a + dG/dt v."""
        rates: Vector = [0.0] * len(self.rows)
        for loop in self.loops:
            local_step = [step[c] for c in loop.coordinates]
            rates[loop.rows] = [dot(row, local_step) for row in getattr(loop, quantity)]
        return rates

    def acceleration_change(self, step: Vector, change: Vector) -> Vector:
        """The change of G a + dG/dt v along a step of q and with a change of v."""
        return added(self.constraint_change("acceleration", step), self.by_velocity(change))

    def by_velocity(self, change: Vector) -> Vector:
        """The change of dG/dt v with v: twice the change of G v along q, except for the commutator."""
        turned = times(self.turning, change)
        pairs = zip(self.constraint_change("velocity", change), self.rows, strict=True)
        return [2.0 * (x - row.times(turned)) for x, row in pairs]


class HeldNeighbourhood:
    """A mechanism near one state; loops hold if ``active`` is 1 and are open if it is 0.

    Steps of q and changes of v are projected onto those that the holding loops allow.  They change M a + h + G* lambda
    by f and G a + dG/dt v by c, and accelerations and multipliers by the solution of M da + G* dlambda = -f, G da = -c.
    All solutions share one factor of M and one orthogonal basis of the loops (``held_cluster.py``).

    acceleration, multipliers   (nv,) and (m,)
    steps, changes              of q and of v, (nv,) each, by steps of q; v changes by ``steps`` with changes of v
    accelerations               three of (nv, nv): changes by steps of q, changes of v and tau, one row each
    multiplier_changes          three of (nv, m)
    """

    def __init__(self, tree: Tree, q, v, tau, wrenches, active, units: ConstraintUnits):
        count, loops = tree.mechanism.nv, tree.mechanism.loops
        if tree.mechanism.constraints.is_nonholonomic:
            raise _unprojected(tree.mechanism)
        at, self.units, self.v = Configuration(tree, q), units, list(v)
        rows, self.errors = constraints(at, v)
        self.on = [active[k] for k, loop in enumerate(loops) for _ in range(loop.n_constraints)]
        self.rates = [(row.times(v) - aim) * on for row, aim, on in zip(rows, driven_rates(at), self.on, strict=True)]
        self.aims = [aim * on for aim, on in zip(driven_rates(at), self.on, strict=True)]
        masses = {(i, j): x for i, row in enumerate(mass_matrix(tree, q)) for j, x in enumerate(row)}
        both = [units.row(r) for r in range(len(rows))], [units.multiplier(r) for r in range(len(rows))]
        self.held = HeldMass(masses, range(count)[::-1], rows, self.on, both)
        self.columns = [units.column(c) for c in range(count)]
        self.loops = made_orthogonal(tree, rows, active, units, self.columns)[2]
        bias = inverse_dynamics(tree, q, v, [0.0] * count, wrenches)
        forces = [t - h for t, h in zip(tau, bias, strict=True)]
        self.acceleration, self.multipliers = self._solve(forces, [-row.at(BIAS) for row in rows])
        near = Changes(tree, q, v, self.acceleration, self.multipliers, rows, wrenches)

        directions = [[float(c == k) for c in range(count)] for k in range(count)]
        self.steps = [self._allowed(direction) for direction in directions]
        self.changes = []
        by_step, by_change = [], []
        for step in self.steps:
            change = self._least([-x for x in near.constraint_change("velocity", step)])
            self.changes.append(change)
            pushed = added(times(near.by_q, step), times(near.by_v, change))
            by_step.append(self._answer(pushed, near.acceleration_change(step, change)))
            by_change.append(self._answer(times(near.by_v, step), near.by_velocity(step)))
        by_force = [self._solve(direction, [0.0] * len(rows)) for direction in directions]
        answers = by_step, by_change, by_force
        self.accelerations = [[a for a, _ in part] for part in answers]
        self.multiplier_changes = [[x for _, x in part] for part in answers]

    def _answer(self, pushed: Vector, opened: Vector) -> tuple[Vector, Vector]:
        return self._solve([-x for x in pushed], [-x for x in opened])

    def _solve(self, forces: Vector, rates: Vector) -> tuple[Vector, Vector]:
        """Accelerations and multipliers."""
        (within, rest), kept = self.held.split(forces), self.held.loops.with_products(rates)
        accelerations = self.held.accelerations(rest, kept)
        return [accelerations[c] for c in range(len(accelerations))], self.held.multipliers(within, kept)

    def _allowed(self, step: Vector) -> Vector:
        """The nearest step that loops allow, by dimensionless distances."""
        rest = self.loops.split([scaled(x, 1.0 / unit) for x, unit in zip(step, self.columns, strict=True)])[1]
        return [scaled(x, unit) for x, unit in zip(rest, self.columns, strict=True)]

    def _least(self, rates: Vector) -> Vector:
        """The least step that changes constraints by ``rates``."""
        if not rates:
            return [0.0] * len(self.columns)
        step = self.loops.within(self.loops.with_products(rates))
        return [scaled(x, unit) for x, unit in zip(step, self.columns, strict=True)]

    @property
    def state_changes(self) -> Matrix:
        """(2 nv, 3 nv): steps of q and changes of v, by steps of q, changes of v and tau."""
        still: Matrix = [[0.0] * len(self.v) for _ in self.v]
        steps, changes = transposed(self.steps), transposed(self.changes)
        return _join_columns((steps, still), still) + _join_columns((changes, steps), still)

    @property
    def reliability(self) -> Scalar:
        """Above 1 if it is clear which constraints hold and these are independent; negative if some are open by
        mistake."""
        return self._reject_open(CLOSED)

    @property
    def consistency(self) -> Scalar:
        """Reliability that is also negative if constraints are open at all, if velocities open them, or if the motion
        is infinite."""
        moving = dict(enumerate(self.v))
        status = reject_faster(self.units, self.rates, self.aims, moving, self._reject_open(OPEN), OPENING)
        return select(dot(self.acceleration, self.acceleration) < HUGE, status, -1.0)

    def _reject_open(self, largest: float) -> Scalar:
        errors = [x * on for x, on in zip(self.errors, self.on, strict=True)]
        dependent = [on * select(0.0 < x, 0.0, 1.0) for x, on in zip(self.loops.reciprocal, self.on, strict=True)]
        doubt = sum(dependent, self.held.doubt + self.loops.doubt)
        return reject_open(self.units, errors, select(doubt < 0.5, 2.0, 0.0), largest)


class _Projection:
    """Projection onto consistent states, as by ``constraints.project``: steps of q to the nearest that keep loops
    closed, then changes of v to the nearest that keep them closed there; in dimensionless coordinates.

    With K^+ = (K* K)^-1 K* in these, a step u becomes K K^+ u and a change w of v becomes K K^+ (w - C K^+ u) + C K^+
    u, where C are the changes of v with steps along K.
    """

    def __init__(self, near: Neighbourhood):
        mech = near.tree.mechanism
        if mech.constraints.is_nonholonomic:
            raise _unprojected(mech)
        self.count = len(near.columns)
        columns = dimensionless(near.columns, near.units)
        root = Factor.of([times(columns, column) for column in columns])
        self.rows = dimensionless(transposed([root.solve(row) for row in transposed(columns)]), near.units)  # K^+
        self.along = product(self.rows, transposed(near.changes))

    def of(self, matrix: Matrix) -> tuple[Matrix, Matrix]:
        """(nv, nv) by steps of q and by changes of v, from (nv, 2 p)."""
        by_velocity = [row[self.count :] for row in matrix]
        by_step = difference([row[: self.count] for row in matrix], product(by_velocity, self.along))
        return product(by_step, self.rows), product(by_velocity, self.rows)


def _unprojected(mech: Mechanism) -> MechanismError:
    return MechanismError(
        f"constraints on velocities alone leave steps of q free that velocities of mechanism {mech.name!r} are not, "
        "and no kernel projects them apart: lw.forward_dynamics_derivatives(mech, q, v, tau) does"
    )
