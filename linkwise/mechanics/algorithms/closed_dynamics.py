"""Constrained dynamics in O(N): clusters of links coupled by loops, each eliminated locally."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property, reduce
from typing import Protocol

from ...mechanism.clusters import Cluster, clusters
from ..links.articulation import Articulation, articulate, force_to_parent
from ..links.constraint_units import ConstraintUnits
from ..links.forces import gyroscopic_force
from ..links.kinematics import AngularVelocity, angular_velocity_base_to_tip, propagate_acceleration_with_biases
from ..links.loop_elimination import Fronts, Row, Solution, eliminate
from ..recursions.closings import Closing, closings
from ..recursions.cluster import ClusterDynamics, Load, articulate_cluster
from ..recursions.constraint_sweep import ConstraintSweep
from ..recursions.schedule import BASE_TO_TIP, TIP_TO_BASE
from ..recursions.sweep import base_to_tip, sweep_over
from ..recursions.sweep_log import within
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar, is_constant, is_zero, select, sqrt
from ..spatial import ArticulatedInertia, Force, Motion
from ..spatial.three import ZERO
from .configuration import kick_bias
from .loop_constraints import constraint_equations

CLUSTERS = "links that loops tie together are eliminated together, with pivots chosen by the state"

CLOSED = 1e-3  # sizes of loops, sines of angles: loops open by more are not meant to be closed ...
KEPT_CLOSED = 1e-3  # ... and velocities, relative to v, that open them faster are not meant to satisfy them ...
AT_REST = 1e-6  # ... except for velocities of the size of free fall through the mechanism, which may be round-off
FAR = 1e9  # steps


def known(doubt: Scalar, values: Sequence[Scalar]) -> list[Scalar]:
    """The values, or NaN if in doubt: computed by the square root of -1, which is NaN on every machine."""
    unknown = sqrt(select(doubt < 0.5, 0.0, -1.0))
    return [value + unknown for value in values]


class ArticulatedCluster(Protocol):
    """A cluster with eliminated joints, and its response to the acceleration of its parent."""

    def respond(self, parent: Motion) -> tuple[dict[int, Scalar], dict[int, Motion]]:
        """Accelerations of its coordinates and of its links."""
        ...


class ClosedMotion:
    """A constrained mechanism at one state: sweeps over its clusters.  For a cluster of one unconstrained link this is
    the articulated-body step (jain1995 4.8).

    resistances   of links to changes of their velocities in a step, at origins in user frames: ``Resistances.links``
    """

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        wrenches,
        fronts: Fronts,
        resistances: Mapping[int, ArticulatedInertia] | None = None,
    ):
        self.clusters = clusters(tree.mechanism)
        if all(cluster.parent < 0 for cluster in self.clusters):
            tree = tree.regrouped
        self.at = Configuration(tree, q)
        self.spins = angular_velocities(self.at, v)
        self.ground = tree.base_acceleration
        self.v = list(v)
        self.fronts = fronts
        self.orders = {
            cluster: order for k, cluster in enumerate(self.clusters) if (order := fronts.sweep(k)) is not None
        }
        self.sweeps: dict[Cluster, ConstraintSweep] = {}  # once forces are known
        self.links: dict[int, Motion] = {}  # accelerations, once forces are known
        self.loads = [Load()] * len(tree.links)
        if wrenches is not None:
            users = (link.user for link in tree.links)
            self.loads = [
                Load(None, user.force_back(Force.of(list(w))) * -1.0) for user, w in zip(users, wrenches, strict=True)
            ]
        if resistances:
            self._resist(resistances, v)

    def _resist(self, resistances: Mapping[int, ArticulatedInertia], v: Sequence[Scalar]) -> None:
        """Resistances as added inertia. Subtracts their wrenches at accelerations that leave velocities unchanged in a
        step (``Joint.kick_bias``), since resistances oppose changes only."""
        tree = self.at.tree
        unchanged = tree.velocities([-k for k in kick_bias(tree, v)])

        def step(i: int, parent: Motion | None) -> Motion:
            kinematics = self.at.joint_kinematics[i]
            behind = propagate_acceleration_with_biases(
                kinematics, self.spins[i], self.ground if parent is None else parent
            )
            return behind + kinematics.relative_motion(unchanged[i])

        accelerations = base_to_tip(tree.links, "accelerations at constant velocities", step)
        for i, resistance in resistances.items():
            inertia = tree.links[i].user.inertia_back(resistance)
            self.loads[i] = self.loads[i].with_part(inertia, (inertia @ accelerations[i]) * -1.0)

    @cached_property
    def _constraint_equations(self) -> tuple[list[Row], list[Scalar], list[Scalar], list[Scalar]]:
        """The equations of all constraints: rows of G a + dG/dt v = 0, errors, and rates with prescribed rates. Rows
        are empty in clusters that are not eliminated by coordinates."""
        count = self.at.tree.mechanism.n_constraints
        rows, errors = [Row({}, 0.0)] * count, [0.0] * count
        rates, aims = list(errors), list(errors)
        for cluster in self.orders:
            for closing in self.closings[cluster]:
                for k, r in enumerate(closing.rows):
                    errors[r], rates[r], aims[r] = closing.errors[k], closing.rates[k], closing.aims[k]
        loops = [k for cluster in self.clusters if cluster not in self.orders for k in cluster.loops]
        for k in sorted(loops):
            path = self.at.way(k)
            equations = constraint_equations(self.at, path, self.v)
            for r, row, error in zip(range(path.rows.start, path.rows.stop), *equations, strict=True):
                rows[r], errors[r], aims[r] = row, error, path.aim.velocity
                rates[r] = row.times(self.v) - path.aim.velocity
        return rows, errors, rates, aims

    @cached_property
    def rows(self) -> list[Row]:
        """Rows of the constraints that are eliminated by coordinates."""
        return self._constraint_equations[0]

    @cached_property
    def closings(self) -> dict[Cluster, list[Closing]]:
        """Constraints between links, for swept clusters."""
        return {cluster: closings(self.at, cluster, self.spins, self.v) for cluster in self.orders}

    @cached_property
    def motions(self) -> dict[Cluster, Solution]:
        """The accelerations that loops allow, for clusters with eliminated coordinates."""
        rows, solutions = dict(enumerate(self.rows)), {}
        for cluster, cluster_fronts in zip(self.clusters, self.fronts.clusters, strict=True):
            if cluster in self.orders:
                continue
            with within(f"elimination of loops: {self._names(cluster)}"):
                solutions[cluster] = eliminate(rows, cluster.coordinates, cluster_fronts, self.fronts.units)
        return solutions

    def reject_open(self, reliability: Scalar, largest: float) -> Scalar:
        """The reliability, negative if loops are open by more than ``largest`` of their sizes."""
        return reject_open(self.fronts.units, self._mask_inactive(self._constraint_equations[1]), reliability, largest)

    def reject_opening(self, v: Sequence[Scalar], reliability: Scalar, largest: float) -> Scalar:
        """The reliability, negative if velocities open loops faster than ``largest``, relative to velocities."""
        rates, aims = (self._mask_inactive(x) for x in self._constraint_equations[2:])
        moving = {c: v[c] for cluster in self.clusters if cluster.loops for c in self._moving(cluster)}
        return reject_faster(self.fronts.units, rates, aims, moving, reliability, largest)

    def _mask_inactive(self, numbers: Sequence[Scalar]) -> Sequence[Scalar]:
        """Numbers of all constraints (m,), zeroed for inactive ones; here all are active."""
        return numbers

    def _moving(self, cluster: Cluster) -> Sequence[int]:
        """Coordinates that constraints of a cluster depend on."""
        if cluster in self.orders:
            return cluster.coordinates
        return sorted({c for r in cluster.rows for c in self.rows[r].numbers if c >= 0})

    @property
    def margins(self) -> list[Scalar]:
        """Margins of all clusters, positive if reliable. Residuals of redundant constraints do not count, as stages of
        integrators leave loops open."""
        margins = [solution.margin for solution in self.motions.values()] + [
            solution.margin for solution in self.sweeps.values()
        ]
        return [margin for margin in margins if not is_constant(margin)]

    @property
    def firm(self) -> list[Scalar]:
        """Numbers of all clusters, positive if no relevant pivot vanishes."""
        firm = [solution.firm for solution in self.motions.values()] + [
            solution.margin for solution in self.sweeps.values()
        ]
        return [margin for margin in firm if not is_constant(margin)]

    def known(self, values: Sequence[Scalar]) -> list[Scalar]:
        """Results of ``under``, or NaN if a relevant pivot vanishes."""
        return known(sum((select(0.0 < x, 0.0, 1.0) for x in self.firm), 0.0), values) if self.firm else list(values)

    @property
    def reliability(self) -> Scalar:
        """The least reliability of all clusters, see ``Solution``; for swept clusters once forces are known."""
        statuses = [motion.reliability for motion in self.motions.values()]
        statuses += [sweep.status for sweep in self.sweeps.values()]
        return reduce(lambda a, b: select(b < a, b, a), statuses, 2.0)

    def steps_to_singular(self, v: Sequence[Scalar], dt: Scalar) -> Scalar:
        """The square of a number of steps: approximately the fewest steps of dt to a singular position of a loop at
        velocities of this size, the least of all clusters."""
        fewest: Scalar = FAR**2
        extremes = {cluster: motion.extremes for cluster, motion in self.motions.items()}
        extremes |= {cluster: tuple(sweep.pivots) for cluster, sweep in self.sweeps.items()}
        for cluster, pivots in extremes.items():
            if not pivots:
                continue
            square, factor = self.fronts.units.square_of_velocities({c: v[c] * dt for c in cluster.coordinates})
            for smallest, largest in pivots:
                steps = smallest * factor**2 / (largest * (square + (factor / FAR) ** 2))
                fewest = select(steps < fewest, steps, fewest)
        return fewest

    def under(self, tau: Sequence[Scalar]) -> list[Scalar]:
        """Tip to base: the articulated load of every cluster on its parent; base to tip: accelerations."""
        joints: dict[Cluster, Articulation | ArticulatedCluster] = {}
        innovations: dict[Cluster, list[Scalar]] = {}
        at = sweep_over(TIP_TO_BASE, "articulated inertias, forces")
        for cluster in reversed(self.clusters):
            with at(self._names(cluster)):
                if len(cluster.bodies) == 1 and not cluster.loops:
                    joints[cluster], innovations[cluster] = self._articulate(cluster, tau)
                else:
                    joints[cluster] = self._articulate_cluster(cluster, tau)
        accelerations: list[Scalar] = [0.0] * self.at.tree.mechanism.nv
        links = self.links = {-1: self.ground}
        at = sweep_over(BASE_TO_TIP, "accelerations")
        for cluster in self.clusters:
            with at(self._names(cluster)):
                joint, parent = joints[cluster], links[cluster.parent]
                if isinstance(joint, Articulation):
                    (i,) = cluster.bodies
                    behind = propagate_acceleration_with_biases(joint.kinematics, self.spins[i], parent)
                    answer = joint.factor.solve(innovations[cluster])
                    joint_rates = [a - g.dot(behind) for a, g in zip(answer, joint.gain, strict=True)]
                    links[i] = behind + joint.kinematics.relative_motion(joint_rates)
                    accelerations[cluster.coordinates[0] : cluster.coordinates[-1] + 1] = joint_rates
                else:
                    rates, moved = joint.respond(parent)
                    for coordinate, rate in rates.items():
                        accelerations[coordinate] = rate
                    links.update(moved)
        return accelerations

    def _names(self, cluster: Cluster) -> str:
        return " + ".join(self.at.tree.links[i].name for i in cluster.bodies)

    def _articulate(self, cluster: Cluster, tau: Sequence[Scalar]) -> tuple[Articulation, list[Scalar]]:
        """The articulated-body step of one link (jain1995 4.8); also its innovation."""
        (i,) = cluster.bodies
        link, load = self.at.tree.links[i], self.loads[i]
        inertia = link.inertia.articulated()
        joint = articulate(self.at.joint_kinematics[i], inertia if load.inertia is None else inertia + load.inertia)
        force = gyroscopic_force(link.inertia, self.spins[i].omega)
        force = force if load.force is None else force + load.force
        innovation = joint.innovation([tau[c] for c in cluster.coordinates], force)
        if link.parent >= 0:
            behind = joint.kinematics.transform.inertia_back(joint.remaining)
            moved = force_to_parent(joint.kinematics, self.spins[i], joint.remaining, joint.absorb(force, innovation))
            self.loads[link.parent] = self.loads[link.parent].with_part(behind, moved)
        return joint, innovation

    def _articulate_cluster(self, cluster: Cluster, tau: Sequence[Scalar]) -> ArticulatedCluster:
        """The elimination of a cluster of several links."""
        dynamics = ClusterDynamics(self.at, cluster, self.spins, self.loads)
        forces = {c: tau[c] for c in cluster.coordinates}
        joint: ArticulatedCluster
        if cluster in self.orders:
            order = self.orders[cluster]
            sweep = self.sweeps[cluster] = ConstraintSweep(
                dynamics, self.closings[cluster], order.shared, order.rows, forces, self.ground, self.fronts.units
            )
            sweep.run(order)
            if cluster.parent >= 0:
                parent = self.loads[cluster.parent]
                self.loads[cluster.parent] = parent.with_part(*sweep.on_parent)
            return sweep
        joint, inertia, force = self._eliminated(dynamics, forces)
        if inertia is not None and force is not None:
            self.loads[cluster.parent] = self.loads[cluster.parent].with_part(inertia, force)
        return joint

    def _eliminated(
        self, dynamics: ClusterDynamics, tau: Mapping[int, Scalar]
    ) -> tuple[ArticulatedCluster, ArticulatedInertia | None, Force | None]:
        """The cluster after elimination, and its load on its parent."""
        return articulate_cluster(dynamics, self.motions[dynamics.cluster], tau, self.ground)


def reject_open(units: ConstraintUnits, errors: Sequence[Scalar], reliability: Scalar, largest: float) -> Scalar:
    """The reliability of a result; negative if the dimensionless closure ``errors`` are larger than ``largest``."""
    square, factor = units.square_of_constraints(errors)
    return reliability if is_zero(square) else select(square < (largest * factor) ** 2, reliability, -square)


def reject_opening(
    units: ConstraintUnits,
    rows: Sequence[Row],
    aims: Sequence[Scalar],
    v: Sequence[Scalar],
    reliability: Scalar,
    largest: float,
) -> Scalar:
    """The reliability of a result; negative if the rates of closures deviate from their ``aims`` by more than
    ``largest`` times the relevant velocities and aims."""
    rates = [row.times(v) - aim for row, aim in zip(rows, aims, strict=True)]
    moving = {c: v[c] for c in sorted({c for row in rows for c in row.numbers if c >= 0})}
    return reject_faster(units, rates, aims, moving, reliability, largest)


def reject_faster(
    units: ConstraintUnits,
    rates: Sequence[Scalar],
    aims: Sequence[Scalar],
    moving: Mapping[int, Scalar],
    reliability: Scalar,
    largest: float,
) -> Scalar:
    """The reliability of a result; negative if the ``rates`` of constraints exceed ``largest`` times the velocities
    ``moving`` that can cause them, and the ``aims`` of drives."""
    opening, of_constraints = units.square_of_constraints(rates)
    speed, of_velocities = units.square_of_velocities(moving)
    asked, of_aims = units.square_of_constraints(aims)
    allowed = (speed + (AT_REST * units.rate * of_velocities) ** 2) * (largest * of_constraints / of_velocities) ** 2
    if not is_zero(asked):
        allowed = allowed + asked * (largest * of_constraints / of_aims) ** 2
    return select(allowed < opening, -1.0, reliability)


def angular_velocities(at: Configuration, v: Sequence[Scalar]) -> list[AngularVelocity]:
    rates = at.tree.velocities(v)

    def step(i: int, parent: AngularVelocity | None) -> AngularVelocity:
        omega = ZERO if parent is None else parent.omega
        return angular_velocity_base_to_tip(at.joint_kinematics[i], omega, at.coordinates[i], rates[i])

    return base_to_tip(at.tree.links, "angular velocities", step)
