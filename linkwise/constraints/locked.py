"""Held coordinates while loops are closed: of joints and of links."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..compiler.store import stored
from ..mechanics.joints import ANGLE, QUATERNION
from ..mechanism import Mechanism, MechanismError
from ..mechanism.coordinates import ANGLES
from ..mechanism.model import NO_JOINTS
from .equations import moved_by
from .loop_closure import LoopEquations, Parts
from .named_coordinates import NamedCoordinate, is_of_link, named_coordinate
from .redundancy import loop_equations
from .sizes import units


@dataclass(frozen=True, eq=False)
class HeldEquations(LoopEquations):
    """Equations of the loops, and of coordinates of links with prescribed values (k,)."""

    held: tuple[NamedCoordinate, ...] = ()
    values: np.ndarray = field(default_factory=lambda: np.zeros(0))

    def off(self, q: np.ndarray) -> np.ndarray:
        """(..., k): dimensionless error of the coordinates of links."""
        scale = units(self.mech)
        change = [
            coordinate.change(q, value) / coordinate.unit(scale)
            for coordinate, value in zip(self.held, self.values, strict=True)
        ]
        return np.stack(change, axis=-1)

    def at(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        error, jacobian = super().at(q)
        scale = units(self.mech)
        rows = (
            np.stack([coordinate.rows(q) / coordinate.unit(scale) for coordinate in self.held], axis=-2)
            * self.sizes.columns
        )
        return np.concatenate([error, self.off(q)], axis=-1), np.concatenate([jacobian, rows], axis=-2)

    @property
    def parts(self) -> Parts:
        """Parts of the loops, merged where coordinates of links couple them."""
        mech, names = self.mech.constraints.structure, tuple(coordinate.name for coordinate in self.held)
        return stored(mech, (Parts, names), lambda: Parts(mech, [_moving(mech, name) for name in names]))

    def residual(self, q: np.ndarray) -> np.ndarray:
        return np.concatenate([super().residual(q), self.off(q)], axis=-1)


def _moving(mech: Mechanism, name: str) -> list[int]:
    """Indices of v of the joints that move a link, from the name of one of its coordinates."""
    slices = [mech.v_index(mech.bodies[i].joint) for i in mech.tree.path(mech.frame(name.rpartition(".")[0]).body)]
    return sorted({k for columns in slices for k in range(columns.start, columns.stop)})


class Held(NamedTuple):
    """Coordinates that are held while loops are closed.

    free     (nv,): velocities that may change
    kept     indices of q that are held without a velocity of their own, such as "base.x"
    links    held coordinates of links, such as "platform.x"
    wanted   their values; by default those of the guess
    """

    free: NDArray[np.bool_]
    kept: Sequence[int] = ()
    links: tuple[NamedCoordinate, ...] = ()
    wanted: Mapping[str, float] = NO_JOINTS

    def equations(self, mech: Mechanism, start: np.ndarray) -> LoopEquations:
        """Equations of the loops and of the held coordinates of links."""
        loops = loop_equations(mech)
        if not self.links:
            return loops
        if start.ndim > 1:
            raise MechanismError("coordinates of links are held in one configuration at a time: loop over batches")
        values = np.array([self.wanted.get(coordinate.name, coordinate.value(start)) for coordinate in self.links])
        return HeldEquations(mech, loops.sizes, loops.blocks, self.links, values)


def hold_coordinates(mech: Mechanism, hold: Sequence[str], wanted: Mapping[str, float] = NO_JOINTS) -> Held:
    """The held coordinates for names of joints and coordinates."""
    free, kept, links = np.ones(mech.nv, dtype=bool), [], []
    for name in hold:
        if is_of_link(mech, name):
            links.append(named_coordinate(mech, name))
            continue
        joint, index = mech.coordinates.joint_of(name), mech.coordinates.index("q", name)
        is_part = joint in mech.joint_names and name not in mech.joint_names
        kind = mech.bodies[mech.body_index(joint)].kind if is_part else None
        if kind is None or kind.rates_are_velocities:
            free[moved_by(mech, [name], "hold")] = False
        elif index is not None and kind.measures("q")[index - mech.q_index(joint).start].of != QUATERNION:
            kept.append(index)
        elif index is not None or name.rpartition(".")[2] in ANGLES:
            free[mech.v_index(joint)] &= [measure.of != ANGLE for measure in kind.measures("v")]
        else:
            raise MechanismError(f"hold: joint {joint!r} of mechanism {mech.name!r} has no coordinate {name!r}")
    return Held(free, kept, tuple(links), wanted)
