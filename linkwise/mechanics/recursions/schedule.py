"""Schedule tasks by their dependencies, and fuse tasks into common sweeps.

A task runs over all links in one direction, or is local to a link (no direction).  A sweep can run every task of its
direction whose inputs are ready before it, or become ready at the same link during it.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

BASE_TO_TIP = "base_to_tip"
TIP_TO_BASE = "tip_to_base"
_BOTH = (BASE_TO_TIP, TIP_TO_BASE)

Task = TypeVar("Task", bound=Hashable)


@dataclass(frozen=True)
class Sweep(Generic[Task]):
    """One pass over the links and the tasks done in it."""

    direction: str
    tasks: tuple[Task, ...]


def schedule(
    tasks: Sequence[Task], inputs: Callable[[Task], Iterable[Task]], direction: Callable[[Task], str | None]
) -> list[Sweep[Task]]:
    """The fewest alternating sweeps that do all ``tasks`` (given inputs first)."""
    candidates = (_assign(tasks, inputs, direction, first) for first in (0, 1))
    return min(candidates, key=len)


def _assign(tasks, inputs, direction, first: int) -> list[Sweep]:
    """Each task to the earliest sweep, when sweep number k runs in direction ``_BOTH[(first + k) % 2]``."""
    ready: dict = {}
    for task in tasks:
        level = max((ready[t] for t in inputs(task)), default=-1)
        sense = direction(task)
        if sense is not None:
            level = max(level, 0)
            if _BOTH[(first + level) % 2] != sense:
                level += 1
        ready[task] = level
    sweeps = []
    for level in range(max(ready.values(), default=-1) + 1):
        sense = _BOTH[(first + level) % 2]
        done = tuple(t for t in tasks if ready[t] == level and direction(t) is not None)
        if done:
            sweeps.append(Sweep(sense, done))
    return sweeps
