"""What a mechanism has to do with constraints: rows of loops, couplings and contacts, and drives that follow time."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from functools import cached_property
from itertools import accumulate, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from linkwise.mechanics.joints import Joint
from linkwise.mechanism import annotation, checks, family
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.drives import Drive, Instant
from linkwise.mechanism.parts import Constraint, Coupling, Loop

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism


class Constrained:
    """The constraints of a mechanism; ``Mechanism`` inherits it."""

    name: str
    loops: tuple[Constraint, ...]

    @cached_property
    def n_constraints(self) -> int:
        """Number of scalar constraints: 6 minus the degrees of freedom of the joint for every loop, 1 for couplings."""
        return sum(loop.n_constraints for loop in self.loops)

    @cached_property
    def holonomic_rows(self) -> NDArray[np.bool_]:
        """(n_constraints,): which constraints are on positions; the others are nonholonomic, on velocities alone."""
        rows = np.array([row for loop in self.loops for row in loop.holonomic], dtype=bool)
        rows.flags.writeable = False
        return rows

    @cached_property
    def is_nonholonomic(self) -> bool:
        """Whether some constraints are on velocities alone, as those of wheels, balls and knife edges are."""
        return not self.holonomic_rows.all()

    @cached_property
    def driven(self) -> tuple[str, ...]:
        """The loops and couplings that follow functions of time, by name."""
        return tuple(loop.name for loop in self.loops if loop.drive is not None)

    @cached_property
    def waits_for_time(self) -> bool:
        """Whether what its drives ask for is not known, as no time is: see ``at_time``."""
        return any(isinstance(loop.drive, Drive) for loop in self.loops)

    def drives_at(self, t: float) -> NDArray[np.float64]:
        """(number of driven, 3): the positions, velocities and accelerations that drives ask for at the time t."""
        drives = [loop.drive for loop in self.loops if loop.drive is not None]
        rows = [drive.at(t) if isinstance(drive, Drive) else drive for drive in drives]
        return np.array(rows, dtype=float).reshape(-1, 3)

    @cached_property
    def drive_rates(self) -> NDArray[np.float64]:
        """(n_constraints,): the velocities G v that drives ask for, zero of all other constraints."""
        rates = np.zeros(self.n_constraints)
        for name, (_, rate, _) in zip(self.driven, self.drives_at(math.nan), strict=True):  # known, whatever the time
            rates[self.constraint_index(name)] = rate
        rates.flags.writeable = False
        return rates

    def at_time(self: Any, t: float) -> Mechanism:
        """The mechanism as its drives make it at the time ``t``: for all questions about one moment.

        ``simulate`` follows drives by itself.
        """
        if not self.waits_for_time:
            return self
        numbers = iter(self.drives_at(checks.checked_number("the time", t)).tolist())
        loops = tuple(
            loop if loop.drive is None else family.with_numbers(loop, drive=Instant(*next(numbers)))
            for loop in self.loops
        )
        changes = [("drive", k) for k, loop in enumerate(loops) if loop.drive is not None]
        moment = family.variant(self, changes, loops=loops)
        moment.__dict__["_structure"] = self.__dict__.setdefault("_first_moment", moment)
        return moment

    def without_drives(self: Any) -> Mechanism:
        """A copy without what follows functions of time: for questions about where it can be at all, such as
        ``linkages.range_of_motion``."""
        return dataclasses.replace(self, loops=tuple(loop for loop in self.loops if loop.drive is None))

    @property
    def structure(self: Any) -> Mechanism:
        """The mechanism that knows what does not change with time: itself, or the first moment that was asked for."""
        if self.waits_for_time:
            return self.__dict__.get("_first_moment") or self.at_time(0.0)
        return self.__dict__.get("_structure", self)

    def constraint_index(self, loop: str) -> slice:
        """Where the constraints of the named loop or coupling are among all."""
        return self._rows_of_loops[self.loop_index(loop)]

    def loop_index(self, loop: str) -> int:
        """Index of the named loop or coupling among ``loops``."""
        if loop not in self._loop_numbers:
            raise MechanismError(
                f"mechanism {self.name!r} has no loop {loop!r}: "
                + checks.did_you_mean(loop, [one.name for one in self.loops])
            )
        return self._loop_numbers[loop]

    @cached_property
    def _loop_numbers(self) -> dict[str, int]:
        return {loop.name: number for number, loop in enumerate(self.loops)}

    @cached_property
    def _rows_of_loops(self) -> tuple[slice, ...]:
        ends = [0, *accumulate(loop.n_constraints for loop in self.loops)]
        return tuple(slice(start, end) for start, end in pairwise(ends))

    def loop_hint(self, name: str) -> str:
        """What to do where a joint of the tree was asked for and ``name`` is that of a loop; nothing if it is not."""
        for loop in self.loops:
            if loop.name == name and isinstance(loop, Loop) and isinstance(loop.kind, Joint):
                return (
                    f"{name!r} closes a loop, and such a joint has no coordinates, springs or motors: "
                    f"linkwise.linkages.with_joint_of_loop(mech, {name!r}) is the mechanism in which it has"
                )
            if loop.name == name:
                return f"{name!r} is a {type(loop if isinstance(loop, Coupling) else loop.kind).__name__}, no joint"
        return ""

    def with_loops(self: Any, *loops: Constraint) -> Mechanism:
        """A copy with loops and couplings added, ``with_loops(first, second)``."""
        for loop in loops:
            if not isinstance(loop, (Loop, Coupling)):
                raise MechanismError(
                    "with_loops takes linkwise.constraints.Loop and Coupling objects one by one, got a "
                    f"{type(loop).__name__}"
                )
        return dataclasses.replace(self, loops=(*self.loops, *loops))

    def with_distances(self: Any, lengths: Mapping[str, Any], /) -> Mechanism:
        """A copy with other lengths of distances (``Builder.distance``), ``with_distances({"rod": 0.92})``, metres.
        Copies share their compiled code."""
        loops, changes = list(self.loops), []
        known = [loop.name for loop in loops if isinstance(loop, Loop) and hasattr(loop.kind, family.LENGTH)]
        for name, length in lengths.items():
            if name not in known:
                raise MechanismError(
                    f"mechanism {self.name!r} has no distance {name!r}: {checks.did_you_mean(name, known)}"
                )
            k = next(k for k, loop in enumerate(loops) if loop.name == name)
            kind = dataclasses.replace(loops[k].kind, length=length)
            loops[k] = family.with_numbers(loops[k], kind=kind)
            changes.append((family.LENGTH, k))
        return family.variant(self, changes, loops=tuple(loops))

    def with_initial(self: Any, q: Any) -> Mechanism:
        """A copy with another initial configuration, where pictures, pages, assembly and ranges of motion start unless
        they are told otherwise: q (nq,), ``lw.configuration(mech, crank=0.4)`` for one with closed loops, or by joint,
        {"crank": 0.4}, of which the others stay as they are."""
        return family.variant(self, (), annotations=annotation.with_initial(self, q))
