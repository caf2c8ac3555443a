"""The least changes of coordinates that close loops, and of velocities that keep them closed: a sweep as for
accelerations, over massless links with inertia 1 / unit^2 at the joints.

Minimize 1/2 u* W u under G u + g = 0, with W = diag(1 / unit^2): the equations of motion of joints with armature W,
without velocities, gravity and forces, and g in place of the bias of the constraints.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property

from ...mechanism.clusters import Cluster
from ..links.constraint_units import ConstraintUnits
from ..links.kinematics import AngularVelocity
from ..links.link import JointKinematics, Link
from ..links.loop_elimination import SweepOrder
from ..scalar import Scalar
from ..spatial.inertia import NO_INERTIA
from ..spatial.motion import NO_MOTION
from ..spatial.three import ZERO
from .closings import Closing, closings
from .cluster import ClusterDynamics, Load
from .constraint_sweep import ConstraintSweep
from .tree import Configuration


class _Weights(ClusterDynamics):
    """A cluster of links without mass, at rest."""

    def __init__(self, at: Configuration, cluster: Cluster, units: ConstraintUnits):
        still = [
            AngularVelocity(ZERO, (ZERO,) * len(joint.transform.factors), NO_MOTION) for joint in at.joint_kinematics
        ]
        super().__init__(at, cluster, still, [Load()] * len(at.tree.links))
        massless = {i: self._massless_link(i, units) for i in cluster.bodies}
        self.links = tuple(massless.get(i, link) for i, link in enumerate(at.tree.links))

    def _massless_link(self, i: int, units: ConstraintUnits) -> Link:
        link, body = self.at.tree.links[i], self.at.tree.mechanism.bodies[i]
        weights = [0.0] * link.joint.nv
        if not body.mimic:
            weights = [units.column(self.coordinate((i, k))[0]) ** -2 for k in range(link.joint.nv)]
        return replace(link, inertia=NO_INERTIA, regrouped=NO_INERTIA, armature=tuple(weights))

    def kinematics(self, i: int) -> JointKinematics:
        return replace(self.at.joint_kinematics[i], link=self.links[i])


class LeastChanges:
    """Least changes of one cluster, at a configuration with velocities v."""

    def __init__(
        self, at: Configuration, cluster: Cluster, v: Sequence[Scalar], order: SweepOrder, units: ConstraintUnits
    ):
        self._dynamics, self._order, self._units = _Weights(at, cluster, units), order, units
        self._closings = closings(at, cluster, self._dynamics.spins, v)

    def closing(self) -> dict[int, Scalar]:
        """The shortest step that closes constraints to first order, by coordinate."""
        return self._closing.motions(NO_MOTION).rates

    def slowing(self) -> dict[int, Scalar]:
        """The shortest change of velocities that keeps constraints closed, by coordinate."""
        return self._swept(lambda closing: closing.rates).motions(NO_MOTION).rates

    @property
    def margin(self) -> Scalar:
        """Positive where pivots are large enough."""
        return self._closing.margin

    @property
    def extremes(self) -> list[tuple[Scalar, Scalar]]:
        """The extreme pivots, and their reference values."""
        return self._closing.pivots

    @cached_property
    def _closing(self) -> ConstraintSweep:
        return self._swept(lambda closing: closing.errors)

    def _swept(self, of: Callable[[Closing], list[Scalar]]) -> ConstraintSweep:
        asked = [replace(closing, bias=of(closing)) for closing in self._closings]
        still = dict.fromkeys(self._dynamics.cluster.coordinates, 0.0)
        sweep = ConstraintSweep(
            self._dynamics, asked, self._order.shared, self._order.rows, still, NO_MOTION, self._units
        )
        sweep.run(self._order)
        return sweep
