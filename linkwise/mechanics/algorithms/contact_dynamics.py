"""Constrained dynamics with active and inactive loops, by a number per loop: accelerations, constraint forces, impacts.

Results are NaN if it is doubtful which constraints are independent.

Constraint forces that are not unique are those of least norm, with a force counting as a torque at the mechanism's
length (``ConstraintUnits``).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from ...mechanism import Mechanism, MechanismError
from ...mechanism.checks import names_of
from ...mechanism.clusters import Cluster, clusters
from ..links.constraint_units import ConstraintUnits
from ..links.loop_elimination import BIAS, Fronts, Row, SweepOrder
from ..links.orthogonalization import SUFFICIENT, Orthogonal, orthogonalized
from ..operators import L, loop_vector
from ..operators.plan import apply
from ..recursions.cluster import ClusterDynamics
from ..recursions.held_cluster import HeldCluster, hold_cluster
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot, select
from ..spatial import ArticulatedInertia, Force
from ..spatial.motion import NO_MOTION
from . import expressions as ex
from .algorithm import (
    ALGORITHMS,
    SOLVES_CONSTRAINED,
    SOLVES_WITH_MULTIPLIERS,
    STATUS,
    STATUSES,
    algorithm,
    at_user_origins,
    register,
)
from .closed_dynamics import CLOSED, CLUSTERS, KEPT_CLOSED, ClosedMotion, known
from .loop_constraints import LOOPS, constraints, driven_rates, loop_motion_maps

HELD = "clusters of links whose loops hold or let go, by a number per loop, are eliminated together"
ACTIVE, PUSHED = ("active",), ("active", "wrenches")

Sweeps = tuple[SweepOrder | None, ...]  # by cluster, see ``Fronts``; for all constraints, which are always active
_of_forces = partial(
    algorithm,
    ("q", "v", "tau"),
    options=("units", "sweeps"),
    reason=HELD,
    ports=PUSHED,
    requires=SOLVES_WITH_MULTIPLIERS,
)
_of_impacts = partial(
    algorithm, ("q", "v"), options=("units",), reason=HELD, ports=ACTIVE, requires=SOLVES_WITH_MULTIPLIERS
)
_of_motors = partial(algorithm, output="tau", options={"actuated": lambda mech: None, "units": None}, reason=HELD)
INCONSISTENT = 1e-8  # relative tolerances: accelerations that open loops, and forces that miss the requested ones


@algorithm(
    ("q", "v", "tau"),
    "a",
    options={"fronts": None, "singular": lambda mech: False},
    reason=CLUSTERS,
    ports=(*PUSHED, STATUS),
    requires=SOLVES_CONSTRAINED,
)
def closed_forward_dynamics(
    tree: Tree, q, v, tau, active=None, wrenches=None, status: bool = False, *, fronts: Fronts, singular: bool = False
) -> Any:
    """(nv,): accelerations under joint forces, with all constraints by elimination, or the ``active`` ones by
    multipliers; NaN if a pivot of the elimination vanishes.

    singular   small clusters are eliminated by the rank of their constraints at the state, for positions at and near
               singularities
    status     also return two numbers, and accelerations wherever they can be computed.  The reliability is above 1 if
               reliable, small for small pivots of the elimination (``Solution.reliability``), negative if loops may be
               open by mistake.  The consistency equals it if the velocities keep loops closed, and is negative
               otherwise
    """
    if singular:
        fronts = fronts.by_rank([cluster.coordinates for cluster in clusters(tree.mechanism)]) or fronts
    motion: ClosedMotion
    if active is None:
        motion = ClosedMotion(tree, q, v, wrenches, fronts)
    else:
        motion = HeldMotion(tree, q, v, wrenches, active, fronts.units)
    accelerations = motion.under(tau)
    if not status:
        return motion.known(accelerations)
    reliability = motion.reject_open(motion.reliability, CLOSED)
    return accelerations, reliability, motion.reject_opening(v, reliability, KEPT_CLOSED)


#: The name of accelerations with their status from before there were ports.
register(
    replace(
        ALGORITHMS["closed_forward_dynamics"],
        name="closed_motion",
        output=("a", *STATUSES),
        recursion=partial(closed_forward_dynamics, status=True),
        ports=("wrenches",),
    )
)


@_of_forces("multipliers", name="closed_multipliers")
def multipliers(
    tree: Tree, q, v, tau, wrenches=None, active=None, *, units: ConstraintUnits, sweeps: Sweeps = ()
) -> list[Scalar]:
    """(m,): lambda of M a + h = tau - G* lambda, of least dimensionless norm; zero for inactive loops."""
    motion = HeldMotion(tree, q, v, wrenches, active, units, sweeps)
    motion.under(tau)
    return motion.known(motion.multipliers())


@_of_forces("tau", name="closed_constraint_forces")
def constraint_forces(
    tree: Tree, q, v, tau, wrenches=None, active=None, *, units: ConstraintUnits, sweeps: Sweeps = ()
) -> list[Scalar]:
    """(nv,): -G* lambda, the joint forces of the loops on the spanning tree."""
    motion = HeldMotion(tree, q, v, wrenches, active, units, sweeps)
    motion.under(tau)
    return motion.known(motion.constraint_forces())


@_of_forces("loop_wrenches", name="closed_loop_reactions")
def loop_reactions(
    tree: Tree, q, v, tau, wrenches=None, active=None, *, units: ConstraintUnits, sweeps: Sweeps = ()
) -> Matrix:
    """(number of loops, 6): the wrenches of side A on side B, in ``pose_b``."""
    return _wrenches(tree, q, multipliers(tree, q, v, tau, wrenches, active, units=units, sweeps=sweeps))


@_of_forces("transmitted", name="closed_joint_wrenches", on_tree=at_user_origins)
def joint_wrenches(
    tree: Tree, q, v, tau, wrenches=None, active=None, *, units: ConstraintUnits, sweeps: Sweeps = ()
) -> Matrix:
    """(n_links, 6): the wrench that each joint of the tree transmits onto its link."""
    motion = HeldMotion(tree, q, v, wrenches, active, units, sweeps)
    rates = motion.known(motion.under(tau))
    return joint_wrenches_within_loops(tree, q, v, rates, motion.multipliers(), wrenches)


@algorithm(
    ("q", "v", "a", "multipliers"),
    "transmitted",
    reason=LOOPS,
    ports=("wrenches",),
    on_tree=at_user_origins,
)
def joint_wrenches_within_loops(tree: Tree, q, v, a, multipliers, wrenches=None) -> Matrix:
    """Joint wrenches from accelerations and multipliers. Forces of loops act on the links that carry their sides,
    forces of couplings in the joints themselves."""
    expression = ex.joint_wrenches(ex.forces_on_links(wrenches is not None) + L.T @ loop_vector("multipliers"))
    forces = list(multipliers)
    for loop in tree.mechanism.loops:
        if not loop.links:  # a coupling
            forces[tree.mechanism.constraints.rows(loop.name)] = [0.0]
    return apply(expression, tree, q, v=v, a=a, multipliers=forces, wrenches=wrenches)


@_of_impacts("v", name="closed_impact")
def impact(tree: Tree, q, v, active=None, *, units: ConstraintUnits) -> list[Scalar]:
    """(nv,): velocities after active loops close without rebound: v - M^-1 G* (G M^-1 G*)^+ G v."""
    motion = Impact(tree, q, v, active, units)
    return motion.known([a + b for a, b in zip(v, motion.jumps, strict=True)])


@_of_impacts("loop_wrenches", name="closed_impact_impulses")
def impact_impulses(tree: Tree, q, v, active=None, *, units: ConstraintUnits) -> Matrix:
    """(number of loops, 6): impulses of side A on side B, in ``pose_b``."""
    motion = Impact(tree, q, v, active, units)
    return _wrenches(tree, q, motion.known(motion.multipliers()))


@_of_motors(("q", "v", "a"), name="closed_inverse_dynamics", ports=PUSHED)
def inverse_dynamics(
    tree: Tree, q, v, a, wrenches=None, active=None, *, units: ConstraintUnits, actuated=None
) -> list[Scalar]:
    """(nv,): the least joint forces at the actuated joints (default: all) that produce accelerations within the active
    loops.  With N the projection onto allowed motions and S the actuated coordinates, N S tau = N load.

    Velocities are in units of the mechanism's length, so that all conjugate forces are moments.
    """
    load = apply(ex.inverse_dynamics(ex.forces_on_links(wrenches is not None)), tree, q, v=v, a=a, wrenches=wrenches)
    columns = [units.force(c) for c in range(tree.mechanism.nv)]
    rows = constraints(Configuration(tree, q), v)[0]
    vectors, on, loops = made_orthogonal(tree, rows, active, units, columns)
    rates = [_times(x, 1.0 / unit) for x, unit in zip(a, columns, strict=True)]
    opened = _opens(vectors, [row.at(BIAS) for row in rows], on, rates, units)
    return known(opened, _shared(tree.mechanism, load, loops, columns, actuated))


@_of_motors(("q",), name="closed_static_forces", ports=PUSHED)
def static_forces(tree: Tree, q, wrenches=None, active=None, *, units: ConstraintUnits, actuated=None) -> list[Scalar]:
    """(nv,): the inverse dynamics at rest."""
    still = [0.0] * tree.mechanism.nv
    return inverse_dynamics(tree, q, still, still, wrenches, active, units=units, actuated=actuated)


@_of_motors(("q", "tau"), name="closed_motor_forces", ports=ACTIVE)
def motor_forces(
    tree: Tree,
    q,
    tau,
    active=None,
    *,
    units: ConstraintUnits,
    actuated: Sequence[str] | None = None,
    nearest: bool = False,
) -> list[Scalar]:
    """(nv,): the least joint forces at the actuated joints (default: all) equivalent to joint forces ``tau`` on motions
    that the active constraints allow, K* tau_m = K* tau; linear in tau. ``nearest``: the best approximation if there is
    no exact solution."""
    columns = [units.force(c) for c in range(tree.mechanism.nv)]
    rows = constraints(Configuration(tree, q), [0.0] * tree.mechanism.nv)[0]
    loops = made_orthogonal(tree, rows, active, units, columns)[2]
    return _shared(tree.mechanism, tau, loops, columns, actuated, nearest)


def _shared(
    mech: Mechanism,
    load: Sequence[Scalar],
    loops: Orthogonal,
    columns: Sequence[float],
    actuated: Sequence[str] | None,
    nearest: bool = False,
) -> list[Scalar]:
    """A load on all joints, shared by the actuated ones; NaN if these cannot carry it, unless the ``nearest``
    approximation is requested."""
    moments = [_times(x, unit) for x, unit in zip(load, columns, strict=True)]
    doubt = loops.doubt
    tau = loops.split(moments)[1]
    indices = list(range(mech.nv)) if actuated is None else _places(mech, actuated)
    if len(indices) < mech.nv:
        moved = [loops.split([1.0 if c == index else 0.0 for c in range(mech.nv)])[1] for index in indices]
        reach = orthogonalized(moved)
        components, missing = reach.split(tau)
        most = sum((dot(vector, vector) for vector in moved), 0.0)  # of unit forces: almost zero at a dead centre
        if not nearest:
            doubt = doubt + reach.doubt + _exceeds(missing, moments) + select(most < SUFFICIENT**2, 1.0, 0.0)
        tau = [0.0] * mech.nv
        for index, force in zip(indices, reach.least_combination(components), strict=True):
            tau[index] = force
    return known(doubt, [_times(x, 1.0 / unit) for x, unit in zip(tau, columns, strict=True)])


def _times(x: Scalar, factor: float) -> Scalar:
    return x if factor == 1.0 else x * factor


def _places(mech: Mechanism, names: Sequence[str]) -> list[int]:
    """Indices in v of actuated joints and single coordinates, without duplicates."""
    chosen: dict[int, None] = {}
    for name in names_of(names):
        single = None if name in mech.joint_names else mech.coordinates.index("v", name)
        if single is None and mech.bodies[mech.body_index(name)].mimic:
            raise MechanismError(f"actuated names joint {name!r}, which mimics another: name that one")
        indices = mech.v_index(name) if single is None else slice(single, single + 1)
        chosen.update(dict.fromkeys(range(indices.start, indices.stop)))
    return list(chosen)


def _opens(
    rows: Matrix, biases: Sequence[Scalar], active: Sequence[Scalar], a: Sequence[Scalar], units: ConstraintUnits
) -> Scalar:
    """How many active constraints accelerations violate."""
    count: Scalar = 0.0
    for r, (row, bias, on) in enumerate(zip(rows, biases, active, strict=True)):
        slow = units.rate**2 / units.row(r)
        scale = dot([_size(x) for x in row], [_size(x) for x in a], slow + _size(bias))
        count = count + select(_size(dot(row, a, bias)) * on > scale * INCONSISTENT, 1.0, 0.0)
    return count


def _exceeds(missing: Sequence[Scalar], load: Sequence[Scalar]) -> Scalar:
    """1 where moments are missing along the degrees of freedom."""
    return select(dot(missing, missing) > dot(load, load) * INCONSISTENT**2, 1.0, 0.0)


def _size(x: Scalar) -> Scalar:
    return select(x < 0.0, -x, x)


class HeldMotion(ClosedMotion):
    """A mechanism at one state; loops hold if ``active`` is 1 and are open if it is 0."""

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        wrenches,
        active: Sequence[Scalar] | None,
        units: ConstraintUnits,
        sweeps: Sweeps = (),
        resistances: Mapping[int, ArticulatedInertia] | None = None,
    ):
        super().__init__(tree, q, v, wrenches, Fronts((), units, sweeps if active is None else ()), resistances)
        self.active = [1.0] * len(tree.mechanism.loops) if active is None else list(active)
        self.held: dict[Cluster, HeldCluster] = {}

    def _eliminated(
        self, dynamics: ClusterDynamics, tau: Mapping[int, Scalar]
    ) -> tuple[HeldCluster, ArticulatedInertia | None, Force | None]:
        cluster, loops = dynamics.cluster, self.at.tree.mechanism.loops
        active = [self.active[k] for k in cluster.loops for _ in range(loops[k].n_constraints)]
        units = self.fronts.units
        both = [units.row(r) for r in cluster.rows], [units.multiplier(r) for r in cluster.rows]
        solution = hold_cluster(dynamics, [self.rows[r] for r in cluster.rows], active, both, tau, self.ground)
        self.held[cluster] = solution[0]
        return solution

    @property
    def doubt(self) -> Scalar:
        """0 if the independent constraints are certain, otherwise 1 or more; computed by ``under``."""
        doubts = [held.equations.doubt for held in self.held.values()]
        return sum([*doubts, *(select(sweep.margin > 0.0, 0.0, 1.0) for sweep in self.sweeps.values())], 0.0)

    def known(self, values: Sequence[Scalar]) -> list[Scalar]:
        """Results of ``under``, or NaN if the independent constraints are in doubt."""
        return known(self.doubt, values)

    @property
    def reliability(self) -> Scalar:
        """2 if the independent constraints are certain, else 0."""
        return select(self.doubt < 0.5, 2.0, 0.0)

    def _mask_inactive(self, numbers: Sequence[Scalar]) -> list[Scalar]:
        loops = self.at.tree.mechanism.loops
        holds = [on for on, loop in zip(self.active, loops, strict=True) for _ in range(loop.n_constraints)]
        return [x * on for x, on in zip(numbers, holds, strict=True)]

    def multipliers(self) -> list[Scalar]:
        """(m,): known after ``under``."""
        result: list[Scalar] = [0.0] * len(self.rows)
        for cluster, held in self.held.items():
            for row, value in zip(cluster.rows, held.multipliers(self.links[cluster.parent]), strict=True):
                result[row] = value
        for cluster, sweep in self.sweeps.items():
            for row, value in sweep.multipliers(self.links[cluster.parent]).items():
                result[row] = value
        return result

    def constraint_forces(self) -> list[Scalar]:
        """(nv,): -G* lambda; known after ``under``."""
        result: list[Scalar] = [0.0] * self.at.tree.mechanism.nv
        for cluster, held in self.held.items():
            for index, force in held.constraint_forces(self.links[cluster.parent]).items():
                result[index] = force
        for cluster, sweep in self.sweeps.items():
            for index, force in sweep.constraint_forces(self.links[cluster.parent]).items():
                result[index] = force
        return result


class MotionAtRest(HeldMotion):
    """M x = f - G* mu, G x = rates: the equations of a mechanism at rest without gravity.  x are accelerations under
    joint forces and wrenches f, or velocities with momenta f.

    rates   (m,): zero by default
    """

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        active: Sequence[Scalar] | None,
        units: ConstraintUnits,
        rates: Sequence[Scalar] | None = None,
        wrenches=None,
    ):
        super().__init__(tree, q, [0.0] * tree.mechanism.nv, wrenches, active, units)
        self.ground = NO_MOTION
        asked = [0.0] * len(self.rows) if rates is None else rates
        coefficients = ({c: x for c, x in row.numbers.items() if c != BIAS} for row in self.rows)
        self.rows = [Row(row, -rate) for row, rate in zip(coefficients, asked, strict=True)]


def constraints_that_hold(
    tree: Tree, q: Sequence[Scalar], active: Sequence[Scalar] | None, units: ConstraintUnits
) -> Orthogonal:
    """The rows of G of active constraints, orthogonalized."""
    rows = constraints(Configuration(tree, q), [0.0] * tree.mechanism.nv)[0]
    return made_orthogonal(tree, rows, active, units, [1.0] * tree.mechanism.nv)[2]


def made_orthogonal(
    tree: Tree,
    rows: Sequence[Row],
    active: Sequence[Scalar] | None,
    units: ConstraintUnits,
    columns: Sequence[float],
) -> tuple[Matrix, list[Scalar], Orthogonal]:
    """Rows of G over coordinates in units of ``columns``; 1 for active rows, else 0; and their orthogonalization."""
    loops = tree.mechanism.loops
    vectors = [[_times(row.at(c), unit) for c, unit in enumerate(columns)] for row in rows]
    on = [1.0 if active is None else active[k] for k, loop in enumerate(loops) for _ in range(loop.n_constraints)]
    return vectors, on, orthogonalized(vectors, on, [units.row(r) for r in range(len(rows))])


def mobility(
    tree: Tree, q: Sequence[Scalar], forces: Matrix, active: Sequence[Scalar] | None, units: ConstraintUnits
) -> Matrix:
    """(k, k): F* K (K* M K)^-1 K* F of joint forces F, given by columns: accelerations along each per unit of the
    others, under the active constraints."""
    columns = []
    for k, force in enumerate(forces):
        motion = MotionAtRest(tree, q, active, units)
        given_way = motion.known(motion.under(force))
        columns.append([dot(other, given_way) for other in forces[: k + 1]])
    return [[columns[max(i, j)][min(i, j)] for j in range(len(forces))] for i in range(len(forces))]


class MotionOfMomenta(MotionAtRest):
    """Velocities v of joint momenta p: M v = p - G* mu, G v = rates of the drives. v depends only on K* p, the
    component of p along allowed motions."""

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        p: Sequence[Scalar],
        active: Sequence[Scalar] | None,
        units: ConstraintUnits,
    ):
        super().__init__(tree, q, active, units, driven_rates(Configuration(tree, q)))
        self.velocities = self.known(self.under(p))


class Impact(MotionAtRest):
    """Velocity jumps: M dv = -G* impulses and G (v + dv) = rates of the drives."""

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        active: Sequence[Scalar] | None,
        units: ConstraintUnits,
    ):
        at, still = Configuration(tree, q), [0.0] * tree.mechanism.nv
        rows = zip(constraints(at, still)[0], driven_rates(at), strict=True)
        super().__init__(tree, q, active, units, [rate - row.times(v) for row, rate in rows])
        self.jumps = self.under(still)


def _wrenches(tree: Tree, q: Sequence[Scalar], forces: Sequence[Scalar]) -> Matrix:
    """Multipliers as wrenches at the loops' joints."""
    maps, loops = loop_motion_maps(tree, q), tree.mechanism.loops
    owned = [tree.mechanism.constraints.rows(loop.name) for loop in loops]
    return [[-dot(column, forces[rows]) for column in zip(*maps[rows], strict=True)] for rows in owned]
