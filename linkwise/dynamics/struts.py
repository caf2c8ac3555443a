"""Struts: springs, dampers and cylinders between two points.

A strut knows the length between its points as a function of q, compiled for one mechanism; joint forces, their
derivatives and the energy follow from that length and its exact derivatives along tangent directions, on trees, loops
and floating bases alike.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from ..compiler.kernel import Kernel
from ..compiler.pipeline import compile
from ..compiler.store import stored
from ..compiler.variants import kept_by_family
from ..mechanics.algorithms.catalogue import Algorithm
from ..mechanics.algorithms.kinematics import frame_pose
from ..mechanics.recursions.tree import Tree
from ..mechanics.scalar import Scalar, sqrt
from ..mechanism import Mechanism, MechanismError
from .derivatives import jacobian_of


@dataclass(frozen=True)
class Strut:
    """What acts along the line between two points at the distance L: it pulls them together with the force
    ``stiffness (L - free_length) + damping dL/dt - push``.

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

    numbers: ClassVar[tuple[str, ...]] = ("stiffness", "free_length", "damping", "push")

    def __post_init__(self) -> None:
        for link in (self.link_a, self.link_b):
            if not isinstance(link, str):
                raise TypeError(f"a strut is attached to links named by strings, not {link!r}")
        for name in ("point_a", "point_b"):
            object.__setattr__(self, name, tuple(self._checked(name, (3,)).tolist()))
        for name in self.numbers:
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
        """Whether its force is ``stiffness`` times the vector between the points, which needs no direction and is
        smooth where they meet: a spring without free length and nothing else."""
        return not (self.free_length or self.damping or self.push)

    def measures(self, tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
        """What the strut looks at: its length, or the components of the vector between its points if it is linear."""
        ends = ((self.link_a, self.point_a), (self.link_b, self.point_b))
        a, b = (_in_world(frame_pose(tree, q, link), point) for link, point in ends)
        between = [y - x for x, y in zip(a, b, strict=True)]
        return between if self.is_linear else [sqrt(sum((d * d for d in between), 0.0))]


def _in_world(pose: list[list[Scalar]], point: Sequence[float]) -> list[Scalar]:
    """A point given in a frame."""
    return [sum((r * x for r, x in zip(row[:3], point, strict=True)), row[3]) for row in pose[:3]]


class Struts:
    """Struts on one mechanism.  With measures L (rows), J their derivative along tangent directions, and the tension
    T = stiffness (L - free_length) + damping J v - push, joint forces are -J* T.  Batches in front."""

    def __init__(self, mech: Mechanism, struts: Sequence[Strut]):
        for strut in struts:
            for link in (strut.link_a, strut.link_b):
                mech.frame(link)  # says what is wrong with it
        self._mech, self._struts = mech, tuple(struts)
        rows = [strut for strut in struts for _ in range(3 if strut.is_linear else 1)]
        self._stiffness, self._free_length, self._damping, self._push = (
            np.array([getattr(strut, name) for strut in rows]) for name in Strut.numbers
        )

    @cached_property
    def _measures(self) -> Kernel:
        """L."""
        struts = self._struts

        def measures(tree: Tree, q: Sequence[Scalar]) -> list[Scalar]:
            return [number for strut in struts for number in strut.measures(tree, q)]

        return self._kept(0, lambda: compile(Algorithm("strut_measures", ("q",), "measures", measures), self._mech))

    @cached_property
    def _by_q(self) -> Kernel:
        """(L, J)."""
        return self._kept(1, lambda: jacobian_of(self._measures, value=True))

    @cached_property
    def _by_q_twice(self) -> Kernel:
        """[..., i, j, k]: the derivative along k of that of row i along j."""
        return self._kept(2, lambda: jacobian_of(self._by_q))

    def _kept(self, order: int, make: Callable[[], Kernel]) -> Kernel:
        """A kernel that variants of the mechanism share, under where the struts are: how stiff they are does not
        matter, nor what the links weigh."""
        geometry = tuple((s.link_a, s.point_a, s.link_b, s.point_b, s.is_linear) for s in self._struts)
        key, frames = ("struts", geometry, order), [link for s in self._struts for link in (s.link_a, s.link_b)]
        return stored(self._mech, key, lambda: kept_by_family(self._mech, key, frames, make))

    def forces(self, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv)."""
        by_q, tension = self._acting(q, v)
        return -np.einsum("...ij,...i->...j", by_q, tension)

    def derivatives(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(..., nv, nv) each: of the forces along tangent directions of q, and by v."""
        (by_q, tension), twice = self._acting(q, v), self._by_q_twice(q)
        rate_by_q = np.einsum("...ijk,...j->...ik", twice, v)
        tension_by_q = self._stiffness[:, None] * by_q + self._damping[:, None] * rate_by_q
        d_q = np.einsum("...ijk,...i->...jk", twice, tension) + np.swapaxes(by_q, -1, -2) @ tension_by_q
        return -d_q, -np.swapaxes(by_q, -1, -2) @ (self._damping[:, None] * by_q)

    def energy(self, q: np.ndarray) -> np.ndarray:
        """(...): of springs, and what constant pushes have yet to give."""
        measures = self._measures(q)
        return 0.5 * ((measures - self._free_length) ** 2 @ self._stiffness) - measures @ self._push

    def _acting(self, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """J and T."""
        with np.errstate(divide="ignore", invalid="ignore"):  # points that coincide are refused below
            measures, by_q = self._by_q(q)
        if (measures == 0.0).any():
            self._refuse_coinciding(measures)
        rates = np.einsum("...ij,...j->...i", by_q, v)
        return by_q, self._stiffness * (measures - self._free_length) + self._damping * rates - self._push

    def _refuse_coinciding(self, measures: np.ndarray) -> None:
        """Points that coincide leave the direction of a force open."""
        row = 0
        for strut in self._struts:
            if not strut.is_linear and (measures[..., row] == 0.0).any():
                raise MechanismError(
                    f"the points of {strut} coincide, so that its force has no direction: move one of them, or, for a "
                    "spring alone, leave out free_length"
                )
            row += 3 if strut.is_linear else 1
