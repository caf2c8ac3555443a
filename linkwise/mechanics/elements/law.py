"""Force laws: the one way by which elements act on a mechanism, in compiled steps, single calls and derivatives alike.

A ``ForceLaw`` is written for one state, on scalars that may be floats or traced values.  It is shown a ``Situation``
(the mechanism at q, v) and adds to it forces at joints, wrenches on links, or both.  ``Acting`` is a list of laws with
their control inputs and activations one after the other; everything else is made from it:

    steps of rollouts and simulations    ``Acting.forces`` in every stage of the method (``steps.py``)
    joint forces and their derivatives   ``Acting.joint_forces``, compiled, and differentiated as a program
                                         (``dynamics/resolved.py``): linear models, inverse dynamics, implicit methods

A new kind of element is a law here, a record in the mechanism (``mechanism/elements.py``), and one line in
``of_mechanism.py`` that leads from the one to the other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate
from typing import NamedTuple

import numpy as np

from ...mechanism import Mechanism
from ..algorithms import expressions as ex
from ..algorithms.kinematics import internal_poses
from ..algorithms.resisted_dynamics import Resistances
from ..operators.plan import apply, evaluate
from ..recursions.tree import Configuration, Tree
from ..scalar import Scalar
from ..spatial import IDENTITY, ArticulatedInertia, Force, Matrix3, Motion, Transform, Vector3
from ..spatial.motion import NO_MOTION
from ..spatial.pose import Pose, beyond
from ..spatial.three import ZERO


class Implicitly(NamedTuple):
    """Request for forces at the end of a step: its length and the velocities there as far as they are estimated."""

    step: Scalar
    reached: Sequence[Scalar] | None = None


class Situation:
    """A mechanism at one state, as a law sees it, and what laws have added so far.

    step        where forces are to be those of the end of a step, its length, else None: laws then say how they resist
                a change of velocities, those at joints (``resist_joint``) and those on links (``resist``)
    reached     velocities by the end of that step, from a first solution, or None in that

    What several laws ask for (poses, velocities) is computed once, and only if one does.
    """

    def __init__(
        self, tree: Tree, q: Sequence[Scalar], v: Sequence[Scalar], implicitly: Implicitly | None = None
    ) -> None:
        self.tree, self.q, self.v = tree, list(q), list(v)
        self.step = None if implicitly is None else implicitly.step
        self.reached = None if implicitly is None else implicitly.reached
        self.resistances = Resistances({}, {})
        self._at_joints: list[Scalar] = [0.0] * tree.mechanism.nv
        self._on_links: dict[int, Force] = {}

    # -- what a law sees ----------------------------------------------------------------------------------------

    def positions(self, joint: str) -> list[Scalar]:
        """The joint's own coordinates; those of a mimic joint follow from its leader."""
        entry = self.tree.mechanism.coordinates.place(joint)
        coordinates = self.q[entry.q_index]
        return (
            coordinates
            if (entry.ratio, entry.offset) == (1.0, 0.0)
            else [x * entry.ratio + entry.offset for x in coordinates]
        )

    def velocities(self, joint: str) -> list[Scalar]:
        """The joint's own velocities."""
        entry = self.tree.mechanism.coordinates.place(joint)
        return [x * entry.ratio for x in self.v[entry.v_index]]

    def pose(self, frame: str) -> Pose:
        """Rotation and position in the world of a link or frame."""
        body, way = self._at.to_frame(frame)
        return beyond(self._poses[body] if body >= 0 else (IDENTITY, ZERO), way)

    def velocity(self, frame: str) -> Motion:
        """[omega; v] of a link or frame, along its own axes, of the point at its origin."""
        body, way = self._at.to_frame(frame)
        return way.motion_into(self._velocities[body]) if body >= 0 else NO_MOTION

    @cached_property
    def _at(self) -> Configuration:
        return Configuration(self.tree, self.q)

    @cached_property
    def _poses(self) -> list[Pose]:
        return internal_poses(self.tree, self._at.joint_kinematics)

    @cached_property
    def _velocities(self) -> list[Motion]:
        return evaluate(ex.LINK_VELOCITIES, self._at, v=self.v)

    # -- what a law adds ----------------------------------------------------------------------------------------

    def push_joint(self, joint: str, forces: Sequence[Scalar]) -> None:
        """Add forces on the joint's own velocity coordinates; forces on a mimic joint act on its leader."""
        entry = self.tree.mechanism.coordinates.place(joint)
        for k, force in zip(range(self.tree.mechanism.nv)[entry.v_index], forces, strict=True):
            self._at_joints[k] = self._at_joints[k] + force * entry.ratio

    def push_frame(self, frame: str, wrench: Force) -> None:
        """Add a wrench [moment; force] on a link or frame, along its own axes at its origin; wrenches on the ground
        are ignored.
        """
        placement = self.tree.mechanism.frame(frame)
        if placement.body >= 0:
            way = Transform.from_pose(
                Matrix3.from_rows(placement.rotation.tolist()), Vector3(*placement.position.tolist())
            )
            pushed = way.force_back(wrench)
            known = self._on_links.get(placement.body)
            self._on_links[placement.body] = pushed if known is None else known + pushed

    def resist(self, link: int, resistance: ArticulatedInertia) -> None:
        """Add the decrease of a link's wrench per unit of its acceleration, along its own axes at its origin."""
        known = self.resistances.links.get(link)
        self.resistances.links[link] = resistance if known is None else known + resistance

    def resist_joint(self, joint: str, slopes: Sequence[Scalar]) -> None:
        """Add the decrease of joint forces per unit of joint velocity, not negative; ignored in explicit steps.

        What it falls off with velocities of other joints may be counted as its own: steps stay of their order with any
        resistance, and are stable with one that is not too small."""
        if self.step is None:
            return
        body = self.tree.mechanism.body_index(joint)
        known = self.resistances.joints.get(body, [0.0] * len(slopes))
        self.resistances.joints[body] = [x + self.step * slope for x, slope in zip(known, slopes, strict=True)]

    @property
    def joint_forces(self) -> list[Scalar]:
        """(nv,): what was added at joints."""
        return self._at_joints

    @property
    def wrenches(self) -> list[list[Scalar]] | None:
        """(n_links, 6): what was added on links, in their frames at their origins; None if nothing was."""
        if not self._on_links:
            return None
        still = [0.0] * 6
        return [list(self._on_links[i].flat()) if i in self._on_links else still for i in range(len(self.tree.links))]


class ForceLaw(ABC):
    """Something that acts: a constant, hashable value.

    n_ctrl             how many control inputs it has
    n_activation       how many states of its own
    looks_at_gravity   whether it looks at gravity, or at other numbers in which variants of a mechanism differ
    """

    n_ctrl: int = 0
    n_activation: int = 0
    looks_at_gravity: bool = False

    @abstractmethod
    def act(self, at: Situation, ctrl: Sequence[Scalar], activation: Sequence[Scalar]) -> Sequence[Scalar]:
        """Add the law's forces to the situation and return the rates of its activation states. Laws with ``numbers``
        take them as the last argument.
        """

    def corrects_steps(self, mech: Mechanism) -> bool:
        """Whether forces in an implicit step depend on the velocities of a first solution."""
        return False

    def energy(self, at: Situation) -> Scalar:
        """Potential energy of conservative laws; laws with ``numbers`` take them too."""
        return 0.0

    def add_linear(self, mech: Mechanism, stiffness: np.ndarray, damping: np.ndarray) -> None:
        """Add the largest linear stiffness and damping of joint forces to these (nv, nv) matrices: they limit the
        length of explicit steps.
        """
        return

    # Compiled code for single calls is shared by laws of one structure, which differ in their numbers only.

    def numbers(self, mech: Mechanism) -> tuple[float, ...]:
        """Numbers that may be inputs of compiled code."""
        return ()

    def structure(self, mech: Mechanism) -> Hashable:
        """Everything besides the parameters that compiled code depends on."""
        return self

    def frames(self) -> tuple[str, ...]:
        """The links and frames that it looks at."""
        return ()


class Forces(NamedTuple):
    """Forces of all laws at one state: joint forces (nv,), wrenches (n_links, 6) in link frames or None, rates of
    activations, and resistances of joints and links (``resisted_dynamics.py``).
    """

    joint_forces: list[Scalar]
    wrenches: list[list[Scalar]] | None
    rates: list[Scalar]
    resistances: Resistances


@dataclass(frozen=True)
class Acting:
    """Force laws evaluated together; control inputs and activations are concatenated in the order of the laws."""

    laws: tuple[ForceLaw, ...] = ()

    def __hash__(self) -> int:
        return self._hash

    @cached_property
    def _hash(self) -> int:
        """Computed once: kernels are looked up by it in every call."""
        return hash(self.laws)

    @cached_property
    def n_ctrl(self) -> int:
        """Number of control inputs."""
        return sum(law.n_ctrl for law in self.laws)

    @cached_property
    def n_activation(self) -> int:
        """Number of activations."""
        return sum(law.n_activation for law in self.laws)

    def forces(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        ctrl: Sequence[Scalar] = (),
        activation: Sequence[Scalar] = (),
        numbers: Sequence[Scalar] | None = None,
        implicitly: Implicitly | None = None,
    ) -> Forces:
        """Forces of all laws; ``numbers`` replace their parameters, concatenated."""
        at, rates = Situation(tree, q, v, implicitly), list[Scalar]()
        ctrls = self._parts(ctrl, [law.n_ctrl for law in self.laws])
        activations = self._parts(activation, [law.n_activation for law in self.laws])
        for law, law_numbers, own_ctrl, own_activation in zip(
            self.laws, self._numbers(tree, numbers), ctrls, activations, strict=True
        ):
            rates += law.act(at, own_ctrl, own_activation, *law_numbers)
        return Forces(at.joint_forces, at.wrenches, rates, at.resistances)

    def joint_forces(
        self,
        tree: Tree,
        q: Sequence[Scalar],
        v: Sequence[Scalar],
        ctrl: Sequence[Scalar] = (),
        activation: Sequence[Scalar] = (),
        numbers: Sequence[Scalar] | None = None,
    ) -> list[Scalar]:
        """(nv + n_activation,): forces at joints and on links together, on the coordinates of v, as tau is; then the
        rates of the activations."""
        forces = self.forces(tree, q, v, ctrl, activation, numbers)
        tau = forces.joint_forces
        if forces.wrenches is not None:
            through_joints = apply(ex.JOINT_FORCES_OF_WRENCHES, tree, q, wrenches=forces.wrenches)
            tau = [x + y for x, y in zip(tau, through_joints, strict=True)]
        return [*tau, *forces.rates]

    def energy(self, tree: Tree, q: Sequence[Scalar], numbers: Sequence[Scalar] | None = None) -> Scalar:
        """(): the potential energy of all laws."""
        at = Situation(tree, q, [0.0] * tree.mechanism.nv)
        total: Scalar = 0.0
        for law, law_numbers in zip(self.laws, self._numbers(tree, numbers), strict=True):
            total = total + law.energy(at, *law_numbers)
        return total

    def _numbers(self, tree: Tree, numbers: Sequence[Scalar] | None) -> list[tuple[Sequence[Scalar], ...]]:
        """The parameters of every law as a further argument, if it takes them."""
        if numbers is None:
            return [() for _ in self.laws]
        sizes = [len(law.numbers(tree.mechanism)) for law in self.laws]
        return [(part,) if part else () for part in self._parts(numbers, sizes)]

    @staticmethod
    def _parts(numbers: Sequence[Scalar], sizes: Sequence[int]) -> list[list[Scalar]]:
        return [list(numbers[end - size : end]) for size, end in zip(sizes, accumulate(sizes), strict=True)]
