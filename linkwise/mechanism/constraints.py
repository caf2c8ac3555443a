"""The view ``mech.constraints``: rows of loops, couplings and contacts, and drives that follow time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanics.joints import Joint
from linkwise.mechanism import checks, family
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.drives import Drive, Instant
from linkwise.mechanism.parts import Constraint, Coupling, Loop
from linkwise.mechanism.view import View, kept, read_only

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism


class ConstraintsView(View):
    """Constraints by row and by name, and what drives ask for: ``mech.loops`` are the constraints themselves."""

    __slots__ = ()

    @kept
    def holonomic_rows(self) -> NDArray[np.bool_]:
        """(n_constraints,): which constraints are on positions; the others are nonholonomic, on velocities alone."""
        return read_only(np.array([row for loop in self._mech.loops for row in loop.holonomic], dtype=bool))

    @kept
    def is_nonholonomic(self) -> bool:
        """Whether some constraints are on velocities alone, as those of wheels, balls and knife edges are."""
        return not self.holonomic_rows.all()

    @kept
    def driven(self) -> tuple[str, ...]:
        """The loops and couplings that follow functions of time, by name."""
        return tuple(loop.name for loop in self._mech.loops if loop.drive is not None)

    @kept
    def waits_for_time(self) -> bool:
        """Whether what its drives ask for is not known, as no time is: see ``at_time``."""
        return any(isinstance(loop.drive, Drive) for loop in self._mech.loops)

    def drives_at(self, t: float) -> NDArray[np.float64]:
        """(number of driven, 3): the positions, velocities and accelerations that drives ask for at the time t."""
        drives = [loop.drive for loop in self._mech.loops if loop.drive is not None]
        rows = [drive.at(t) if isinstance(drive, Drive) else drive for drive in drives]
        return np.array(rows, dtype=float).reshape(-1, 3)

    @kept
    def drive_rates(self) -> NDArray[np.float64]:
        """(n_constraints,): the velocities G v that drives ask for, zero of all other constraints."""
        rates = np.zeros(self._mech.n_constraints)
        for name, (_, rate, _) in zip(self.driven, self.drives_at(math.nan), strict=True):  # known, whatever the time
            rates[self.rows(name)] = rate
        return read_only(rates)

    def at_time(self, t: float) -> Mechanism:
        """The mechanism as its drives make it at the time ``t``: for all questions about one moment.

        ``simulate`` follows drives by itself.
        """
        mech = self._mech
        if not self.waits_for_time:
            return mech
        numbers = iter(self.drives_at(checks.checked_number("the time", t)).tolist())
        loops = tuple(
            loop if loop.drive is None else family.with_numbers(loop, drive=Instant(*next(numbers)))
            for loop in mech.loops
        )
        changes = [("drive", k) for k, loop in enumerate(loops) if loop.drive is not None]
        moment = family.variant(mech, changes, loops=loops)
        moment.__dict__["_structure"] = mech.__dict__.setdefault("_first_moment", moment)
        return moment

    def without_drives(self) -> Mechanism:
        """A copy without what follows functions of time: for questions about where it can be at all, such as
        ``linkages.range_of_motion``."""
        return dataclasses.replace(self._mech, loops=tuple(loop for loop in self._mech.loops if loop.drive is None))

    @property
    def structure(self) -> Mechanism:
        """The mechanism that knows what does not change with time: itself, or the first moment that was asked for."""
        known = self._mech.__dict__
        if self.waits_for_time:
            return known.get("_first_moment") or self.at_time(0.0)
        return known.get("_structure", self._mech)

    def rows(self, loop: str) -> slice:
        """Where the constraints of the named loop or coupling are among all."""
        return self._rows[self.index(loop)]

    def index(self, loop: str) -> int:
        """Index of the named loop or coupling among ``loops``."""
        if loop not in self._numbers:
            raise MechanismError(
                f"mechanism {self._mech.name!r} has no loop {loop!r}: "
                + checks.did_you_mean(loop, [known.name for known in self._mech.loops])
            )
        return self._numbers[loop]

    @kept
    def _numbers(self) -> dict[str, int]:
        return {loop.name: number for number, loop in enumerate(self._mech.loops)}

    @kept
    def _rows(self) -> tuple[slice, ...]:
        ends = [0, *accumulate(loop.n_constraints for loop in self._mech.loops)]
        return tuple(slice(start, end) for start, end in pairwise(ends))

    def hint(self, name: str) -> str:
        """What to do where a joint of the tree was asked for and ``name`` is that of a loop; nothing if it is not."""
        for loop in self._mech.loops:
            if loop.name == name and isinstance(loop, Loop) and isinstance(loop.kind, Joint):
                return (
                    f"{name!r} closes a loop, and such a joint has no coordinates, springs or motors: "
                    f"linkwise.linkages.with_joint_of_loop(mech, {name!r}) is the mechanism in which it has"
                )
            if loop.name == name:
                return f"{name!r} is a {type(loop if isinstance(loop, Coupling) else loop.kind).__name__}, no joint"
        return ""

    def with_distances(self, lengths: Mapping[str, Any], /) -> Mechanism:
        """A copy with other lengths of distances (``Builder.distance``), ``with_distances({"rod": 0.92})``, metres.
        Copies share their compiled code."""
        loops: list[Any] = list(self._mech.loops)
        changes = []
        known = [loop.name for loop in loops if isinstance(loop, Loop) and hasattr(loop.kind, family.LENGTH)]
        for name, length in lengths.items():
            if name not in known:
                raise MechanismError(
                    f"mechanism {self._mech.name!r} has no distance {name!r}: {checks.did_you_mean(name, known)}"
                )
            k = next(k for k, loop in enumerate(loops) if loop.name == name)
            kind = dataclasses.replace(loops[k].kind, length=length)
            loops[k] = family.with_numbers(loops[k], kind=kind)
            changes.append((family.LENGTH, k))
        return family.variant(self._mech, changes, loops=tuple(loops))


def with_loops(mech: Mechanism, loops: tuple[Constraint, ...]) -> Mechanism:
    """The mechanism with loops and couplings added."""
    for loop in loops:
        if not isinstance(loop, (Loop, Coupling)):
            raise MechanismError(
                "with_loops takes linkwise.constraints.Loop and Coupling objects one by one, got a "
                f"{type(loop).__name__}"
            )
    return dataclasses.replace(mech, loops=(*mech.loops, *loops))
