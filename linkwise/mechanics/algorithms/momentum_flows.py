"""Trees on the move, from joint velocities or from joint momenta (``momenta.py``): velocities and momenta of links.

    p_i = H_i h_i + R v_i,    dp_i/dt = tau_i + H_i w_i + (dH_i*/dt + V_i x H_i*)* h_i

h_i is the momentum of the subtree of link i, w_i its weight plus the wrenches on it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ..links.constraint_units import ConstraintUnits
from ..links.factor import Factor
from ..links.link import JointKinematics, Link
from ..operators.plan import apply
from ..operators.spaces import FORCE
from ..operators.vectors import from_user
from ..recursions.sweep import base_to_tip, tip_to_base
from ..recursions.tree import Configuration, Tree
from ..scalar import Matrix, Scalar, dot, is_zero
from ..spatial import ZERO, Force, Motion, Rotation, Translation, Vector3
from ..spatial.motion import NO_FORCE, NO_MOTION
from . import expressions as ex
from .contact_dynamics import HeldMotion


class Moving(NamedTuple):
    """Motion of a link, in its own axes: velocity V+ beyond the joint and V before it, joint rates, and the upward
    acceleration of the ground that replaces gravity.
    """

    behind: Motion
    velocity: Motion
    rates: list[Scalar]
    lift: Vector3


class Filtered(NamedTuple):
    """A joint's momentum after the filter: the innovation p - H z, D^-1 times it, and z+."""

    innovation: list[Scalar]
    total_rates: list[Scalar]
    passed: Force


class Flow(ABC):
    """Motion of a tree."""

    def __init__(self, at: Configuration):
        self.tree, self.at = at.tree, at

    @property
    @abstractmethod
    def velocities(self) -> list[Scalar]:
        """(nv,): v."""

    @property
    @abstractmethod
    def variables(self) -> list[Scalar]:
        """(nv,): p."""

    def rates(self, tau: Sequence[Scalar], wrenches: Any = None) -> list[Scalar]:
        """(nv,): dp/dt."""
        pushes = [NO_FORCE] * len(self.tree.links) if wrenches is None else self._pushes(wrenches)
        return [t + f for t, f in zip(tau, self.tree.collect(self._driven(pushes)), strict=True)]

    @abstractmethod
    def _driven(self, pushes: Sequence[Force]) -> list[list[Scalar]]:
        """H w + (dH*/dt + V x H*)* h of all joints, for weights and ``pushes``."""

    def _pushes(self, wrenches: Any) -> list[Force]:
        """phi w: the sum at every joint of wrenches on outer links, which are given in user frames."""
        pushes: dict[int, Force] = {}

        def behind(i: int) -> Force:
            return self.at.joint_kinematics[i].transform.force_back(pushes[i])

        def step(i: int, _: list[Any]) -> tuple[Force, None]:
            on_link = from_user(self.at, FORCE, i, wrenches[i])
            pushes[i] = self.at.neighbours.from_children(i, (self, "wrenches"), behind, on_link)
            return pushes[i], None

        return tip_to_base(self.tree.links, "wrenches", step)[0]


class FlowOfLinks(Flow):
    """Velocities of the links, and the momenta transmitted by joints."""

    moving: list[Moving]

    def __init__(self, at: Configuration):
        super().__init__(at)
        self._first_moments: dict[int, list[Scalar]] = {}
        self._weights: dict[int, Vector3] = {}
        self._carried: dict[int, Force] = {}

    @cached_property
    def _planar(self) -> bool:
        return _is_planar(self.at)

    def carried(self, i: int) -> Force:
        """h_i."""
        return self._carried[i]

    def _driven(self, pushes: Sequence[Force]) -> list[list[Scalar]]:
        if self._planar:
            tip_to_base(self.tree.links, "weights", self._weigh)
        return [self._driven_joint(i, push) for i, push in enumerate(pushes)]

    def _driven_joint(self, i: int, push: Force) -> list[Scalar]:
        kinematics, moving, joint = self.at.joint_kinematics[i], self.moving[i], self.tree.links[i].joint
        mass, *first = self._first_moments[i]
        weight = self._weights[i] if self._planar else Vector3(*first).cross(moving.lift)
        push = push - Force(weight, moving.lift * mass)
        relative = kinematics.relative_motion(moving.rates)
        changes = joint.motion_rate(self.at.coordinates[i], moving.rates)
        carried = self.carried(i)
        driving = []
        for h, change in zip(kinematics.motion, changes, strict=True):
            direction = moving.behind.cross(h) + relative.cross(h) + change
            driving.append(dot(carried.flat(), direction.flat(), push.dot(h)))  # the products are all fused with sums
        return driving

    # -- parts of the sweeps ---------------------------------------------------------------------------------

    def _first_moment(self, i: int) -> None:
        """Mass and first moment of the subtree of joint i; regrouped inertias give the same result."""
        if i in self._first_moments:
            return
        inertia = self.tree.links[i].regrouped
        start = [inertia.mass, *inertia.h]
        self._first_moments[i] = self.at.neighbours.from_children(i, (self, "mass"), self._first_moment_behind, start)

    def _first_moment_behind(self, i: int) -> list[Scalar]:
        mass, *first = self._first_moments[i]
        moment = Vector3(*first)
        for factor in reversed(self.at.joint_kinematics[i].transform.factors):
            moment = moment + factor.shift * mass if isinstance(factor, Translation) else factor.vector_back(moment)
        return [mass, *moment]

    def _weigh(self, i: int, _: list[Any]) -> tuple[Vector3, None]:
        """The moment about joint i of the weight of its subtree, upwards."""
        start = [*ZERO, *self.tree.links[i].regrouped.h]
        weight = self.at.neighbours.from_children(i, (self, "weight"), self._weight_behind, start)
        self._weights[i] = Vector3(*weight[:3]) + Vector3(*weight[3:]).cross(self.moving[i].lift)
        return self._weights[i], None

    def _weight_behind(self, i: int) -> list[Scalar]:
        """The moment about joint i in its parent's axes, and the first moment there of the mass at the joint."""
        moment, first = self._weights[i], ZERO
        for factor in reversed(self.at.joint_kinematics[i].transform.factors):
            if isinstance(factor, Translation):
                first = first + factor.shift * self._first_moments[i][0]
            else:
                moment, first = factor.vector_back(moment), factor.vector_back(first)
        return [*moment, *first]

    def _momenta_tip_to_base(self) -> None:
        """h = phi M V; regrouped inertias give the same result."""
        tip_to_base(self.tree.links, "momenta", self._carry)

    def _carry(self, i: int, _: list[Any]) -> tuple[Force, None]:
        self._first_moment(i)
        momentum = self.tree.links[i].regrouped @ self.moving[i].velocity
        self._carried[i] = self.at.neighbours.from_children(i, (self, "h"), self._carried_behind, momentum)
        return self._carried[i], None

    def _carried_behind(self, i: int) -> Force:
        return self.at.joint_kinematics[i].transform.force_back(self._carried[i])

    def _velocities_base_to_tip(self) -> list[Moving]:
        return base_to_tip(self.tree.links, "velocities", self._move)

    def _move(self, i: int, parent: Moving | None) -> Moving:
        kinematics = self.at.joint_kinematics[i]
        behind = kinematics.transform.motion_into(parent.velocity) if parent else NO_MOTION
        lift = kinematics.transform.vector_into(parent.lift if parent else -self.tree.gravity)
        rates = self._joint_rates(i, behind)
        return Moving(behind, behind + kinematics.relative_motion(rates), rates, lift)

    @abstractmethod
    def _joint_rates(self, i: int, behind: Motion) -> list[Scalar]:
        """v of joint i; ``behind`` is the link's velocity for v = 0."""


def _is_planar(at: Configuration) -> bool:
    """Whether all links rotate about parallel axes perpendicular to gravity: the moment of a weight then has one
    component, which rotations leave unchanged."""

    def stays(link: Link, kinematics: JointKinematics) -> bool:
        if link.parent < 0:
            return is_zero(kinematics.transform.vector_into(at.tree.gravity).z)
        turns = (factor for factor in kinematics.transform.factors if not isinstance(factor, Translation))
        return all(isinstance(turn, Rotation) and turn.axis == 2 for turn in turns)

    return all(stays(*pair) for pair in zip(at.tree.links, at.joint_kinematics, strict=True))


class FlowOfVelocities(FlowOfLinks):
    """The flow from v: velocities base to tip, momenta tip to base."""

    def __init__(self, at: Configuration, v: Sequence[Scalar]):
        super().__init__(at)
        self._given, self._own = list(v), self.tree.velocities(v)
        self.moving = self._velocities_base_to_tip()
        self._momenta_tip_to_base()

    @property
    def velocities(self) -> list[Scalar]:
        return self._given

    @property
    def variables(self) -> list[Scalar]:
        momenta = []
        for i, kinematics in enumerate(self.at.joint_kinematics):
            rotors = (a * x for a, x in zip(self.tree.links[i].armature, self._own[i], strict=True))
            momenta.append([self._carried[i].dot(h) + r for h, r in zip(kinematics.motion, rotors, strict=True)])
        return self.tree.collect(momenta)

    def _joint_rates(self, i: int, behind: Motion) -> list[Scalar]:
        return self._own[i]


class FlowWithinConstraints(FlowOfVelocities):
    """Motion from v consistent with constraints, which hold where ``active`` is 1. p (nv,) is M v, or the momenta that
    v was solved from. Constraint forces contribute to dp/dt."""

    def __init__(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        active: Sequence[Scalar] | None,
        units: ConstraintUnits,
        p: Sequence[Scalar] | None = None,
    ):
        super().__init__(Configuration(tree, q), v)
        self._held = tree, q, v, active, units
        self._p = None if p is None else list(p)

    @property
    def variables(self) -> list[Scalar]:
        return super().variables if self._p is None else self._p

    def rates(self, tau: Sequence[Scalar], wrenches: Any = None) -> list[Scalar]:
        tree, q, v, active, units = self._held
        held = HeldMotion(tree, q, v, wrenches, active, units)
        held.under(tau)
        forces = held.known(held.constraint_forces())
        return super().rates([t + f for t, f in zip(tau, forces, strict=True)], wrenches)


class FlowOfMomenta(FlowOfLinks):
    """The flow from p: the filter, tip to base, and the smoother, base to tip; then momenta from P and z, or by a
    sweep."""

    def __init__(self, at: Configuration, p: Sequence[Scalar], swept: bool):
        super().__init__(at)
        self._given, self._filtered = list(p), dict[int, Filtered]()
        joint_momenta = self.tree.per_joint(p)
        sweep = "articulated inertias, filtered momenta"
        tip_to_base(self.tree.links, sweep, lambda i, _: (self._filter(i, joint_momenta[i]), None))
        self.moving = self._velocities_base_to_tip()
        self._swept = swept
        if swept:
            self._momenta_tip_to_base()

    @property
    def velocities(self) -> list[Scalar]:
        return [x for moving in self.moving for x in moving.rates]

    @property
    def variables(self) -> list[Scalar]:
        return self._given

    def total_rates(self, normalized: bool) -> list[Scalar]:
        """(nv,): nu = D^(-1/2) (p - H z), or xi = D^-1 (p - H z) (jain1995 5.1)."""
        rates: list[Scalar] = []
        for i in range(len(self.tree.links)):
            innovation, xi, _ = self._filtered[i]
            rates += self.at.articulation(i).factor.half_inverse(innovation) if normalized else xi
        return rates

    def carried(self, i: int) -> Force:
        if self._swept:
            return self._carried[i]
        return self.at.articulation(i).remaining @ self.moving[i].behind + self._filtered[i].passed

    def _filter(self, i: int, p: list[Scalar]) -> Filtered:
        self._first_moment(i)
        joint = self.at.articulation(i)
        z = self.at.neighbours.from_children(i, (self, "z"), self._passed_behind, None) or NO_FORCE
        innovation = joint.innovation(p, z)
        self._filtered[i] = Filtered(innovation, joint.factor.solve(innovation), joint.absorb(z, innovation))
        return self._filtered[i]

    def _passed_behind(self, i: int) -> Force:
        return self.at.joint_kinematics[i].transform.force_back(self._filtered[i].passed)

    def _joint_rates(self, i: int, behind: Motion) -> list[Scalar]:
        return self.at.articulation(i).rates(self._filtered[i].total_rates, behind)


class FromLastToFirst:
    """M v = p by elimination of the last coordinate first."""

    def __init__(self, matrix: Matrix, p: Sequence[Scalar]):
        self._factor, self._backwards = Factor.of([row[::-1] for row in matrix[::-1]]), list(p)[::-1]
        self.velocities = self._factor.solve(self._backwards)[::-1]

    def total_rates(self, normalized: bool) -> list[Scalar]:
        """nu, or xi."""
        if normalized:
            return self._factor.half_inverse(self._backwards)[::-1]
        innovations = self._factor.forward(self._backwards)
        return [x * r for x, r in zip(innovations, self._factor.reciprocal, strict=True)][::-1]


class FlowByElimination(FlowOfVelocities):
    """Motion from p by factorising the mass matrix from the last coordinate to the first. For joints with one degree
    of freedom and without mimic joints the factors are those of the paper.
    """

    def __init__(self, tree: Tree, q: Sequence[Scalar], p: Sequence[Scalar]):
        self._variables, self._solved = list(p), FromLastToFirst(apply(ex.MASS_MATRIX, tree, q), p)
        super().__init__(Configuration(tree, q), self._solved.velocities)

    @property
    def variables(self) -> list[Scalar]:
        return self._variables

    def total_rates(self, normalized: bool) -> list[Scalar]:
        """(nv,): nu or xi."""
        return self._solved.total_rates(normalized)
