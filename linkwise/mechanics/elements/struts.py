"""Springs, dampers and cylinders between two points, on trees, loops and floating bases alike."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from ...mechanism import Mechanism, MechanismError
from ..recursions.tree import Tree
from ..scalar import Scalar, is_constant, sqrt
from ..spatial import Force, Vector3
from .law import ForceLaw, Situation


@dataclass(frozen=True)
class Strut(ForceLaw):
    """A force along the line between two points at the distance L: it pulls them together with ``stiffness (L -
    free_length) + damping dL/dt - push``.

    link_a, link_b     links or frames, "ground" included
    point_a, point_b   positions in these frames, three numbers each
    push               constant force apart, such as pressure times area of a cylinder
    """

    link_a: str
    point_a: Any
    link_b: str
    point_b: Any
    stiffness: float = 0.0
    free_length: float = 0.0
    damping: float = 0.0
    push: float = 0.0

    fields: ClassVar[tuple[str, ...]] = ("stiffness", "free_length", "damping", "push")

    def __post_init__(self) -> None:
        for link in (self.link_a, self.link_b):
            if not isinstance(link, str):
                raise TypeError(f"a strut is attached to links named by strings, not {link!r}")
        for name in ("point_a", "point_b"):
            object.__setattr__(self, name, tuple(self._checked(name, (3,)).tolist()))
        for name in self.fields:
            value = float(self._checked(name, ()))
            if value < 0.0 and name != "push":
                raise MechanismError(f"the {name.replace('_', ' ')} of {self} must not be negative, got {value:g}")
            object.__setattr__(self, name, value)

    def __str__(self) -> str:
        return f"a strut between {self.link_a!r} and {self.link_b!r}"

    def _checked(self, name: str, shape: tuple[int, ...]) -> np.ndarray:
        value = getattr(self, name)
        array = np.asarray(value)
        if array.shape != shape or array.dtype.kind not in "iuf" or not np.isfinite(array).all():
            wanted = "three finite numbers" if shape else "a finite number"
            raise MechanismError(f"the {name.replace('_', ' ')} of {self} must be {wanted}, not {value!r}")
        return array.astype(float)

    @property
    def is_linear(self) -> bool:
        """Whether the force is ``stiffness`` times the vector between the points: a spring without free length, smooth
        where the points coincide.
        """
        return not (self.free_length or self.damping or self.push)

    # -- as a law -----------------------------------------------------------------------------------------------

    def numbers(self, mech: Mechanism) -> tuple[float, ...]:
        for link in (self.link_a, self.link_b):
            mech.frame(link)  # says what is wrong with it
        return tuple(getattr(self, name) for name in self.fields)

    def structure(self, mech: Mechanism) -> Hashable:
        return Strut, self.link_a, self.point_a, self.link_b, self.point_b, self.is_linear

    def frames(self) -> tuple[str, ...]:
        return self.link_a, self.link_b

    def act(
        self,
        at: Situation,
        ctrl: Sequence[Scalar] = (),
        activation: Sequence[Scalar] = (),
        numbers: Sequence[Scalar] | None = None,
    ) -> Sequence[Scalar]:
        stiffness, free_length, damping, push = self.numbers(at.tree.mechanism) if numbers is None else numbers
        between = self.between(at)
        if self.is_linear:
            pull = between * stiffness
        else:
            length = self._distance(at, between)
            direction = between * (1.0 / length)
            rate = direction.dot(
                self._velocity(at, self.link_b, self.point_b) - self._velocity(at, self.link_a, self.point_a)
            )
            pull = direction * (stiffness * (length - free_length) + damping * rate - push)
        self._pull(at, self.link_a, self.point_a, pull)
        self._pull(at, self.link_b, self.point_b, -pull)
        return ()

    def energy(self, at: Situation, numbers: Sequence[Scalar] | None = None) -> Scalar:
        """Energy of the spring, and the potential of a constant push."""
        stiffness, free_length, _, push = self.numbers(at.tree.mechanism) if numbers is None else numbers
        between = self.between(at)
        if self.is_linear:
            return 0.5 * stiffness * between.dot(between)
        length = self._distance(at, between)
        stretch = length - free_length
        return 0.5 * stiffness * stretch * stretch - push * length

    def between(self, at: Situation) -> Vector3:
        """From point a to point b, in the world."""
        (rotation_a, a), (rotation_b, b) = at.pose(self.link_a), at.pose(self.link_b)
        return b + rotation_b @ Vector3(*self.point_b) - (a + rotation_a @ Vector3(*self.point_a))

    def _distance(self, at: Situation, between: Vector3) -> Scalar:
        """Distance between the points; points that always coincide, as at a hinge, are refused."""
        square = between.dot(between)
        if is_constant(square) and square == 0.0:
            raise MechanismError(
                f"the points of {self} coincide at every configuration of mechanism {at.tree.mechanism.name!r}, so "
                "that its force has no direction: move one of them; a damper or spring about a joint is one of "
                "Passive.dampers or Passive.springs"
            )
        return sqrt(square)

    def length(self, tree: Tree, q: Sequence[Scalar]) -> Scalar:
        """Squared distance of the points."""
        between = self.between(Situation(tree, q, [0.0] * tree.mechanism.nv))
        return between.dot(between)

    @staticmethod
    def _velocity(at: Situation, link: str, point: Sequence[float]) -> Vector3:
        """Velocity of a point in the world."""
        motion = at.velocity(link)
        return at.pose(link)[0] @ (motion.linear + motion.angular.cross(Vector3(*point)))

    @staticmethod
    def _pull(at: Situation, link: str, point: Sequence[float], pull: Vector3) -> None:
        force = at.pose(link)[0].T @ pull
        at.push_frame(link, Force(Vector3(*point).cross(force), force))
