"""States on the command line: joints by name, the rest as the mechanism has it."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, NamedTuple

import click
import numpy as np

import linkwise as lw

from .tables import Units


class Coordinate(NamedTuple):
    """A number of q in tables on the screen: its name, its index in q, and that of its rate in v.  A quaternion has one
    number more than rates."""

    name: str
    q: int
    v: int | None


def coordinates(mech: lw.Mechanism) -> list[Coordinate]:
    """All coordinates, joint by joint; mimic joints have none."""
    listed = []
    for body in mech.bodies:
        if body.mimic:
            continue
        entry = mech.coordinates.place(body.joint)
        rates = {number.name: entry.v_index.start + k for k, number in enumerate(body.kind.measures("v"))}
        for k, number in enumerate(body.kind.measures("q")):
            name = f"{body.joint} {number.name}".rstrip()
            listed.append(Coordinate(name, entry.q_index.start + k, rates.get(number.name)))
    return listed


@dataclass
class Position:
    """Where a mechanism is, loops closed.

    q         position of a joint, commas between several numbers
    start     a .csv or .npz table (- for standard input), of which the first row is taken; or a posture of the
              mechanism's file, such as a keyframe of MJCF
    """

    units: Units
    q: Sequence[Annotated[str, "JOINT=Q"]] = ()
    start: Annotated[str, "FILE|POSTURE"] | None = None

    @property
    def chosen(self) -> bool:
        """Whether --q or --start is there."""
        return bool(self.q or self.start)

    def values(self, mech: lw.Mechanism) -> np.ndarray:
        """(nq,): the initial or the named configuration with the named joints set, loops closed."""
        return self._read(mech)[0]

    def _read(self, mech: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:
        q, v = mech.initial, np.zeros(mech.nv)
        if self.start and self.start in mech.postures:
            q = mech.postures[self.start]
        elif self.start:
            table = self.units.read(self.start, mech, ("q",), ("v",))
            q, v = table["q"][0], table["v"][0] if "v" in table else v
        q = named(mech, "q", self.q, q, self.units)
        q = lw.viewer.configurations.assemble_near(mech, q, tuple(text.rpartition("=")[0] for text in self.q))
        return q, v


@dataclass
class State(Position):
    """Where a mechanism is and how it moves.

    v   velocity of a joint; 0 by default
    """

    v: Sequence[Annotated[str, "JOINT=V"]] = ()

    def values(self, mech: lw.Mechanism) -> tuple[np.ndarray, np.ndarray]:  # type: ignore[override]
        """(q, v): the velocities of joints that are not named keep loops closed."""
        q, v = self._read(mech)
        v = named(mech, "v", self.v, v, self.units)
        fixed = [text.rpartition("=")[0] for text in self.v]
        jacobian, free = lw.constraints.constraint_jacobian(mech, q), np.ones(mech.nv, dtype=bool)
        for joint in fixed:
            free[mech.v_index(joint)] = False
        v = v - np.linalg.pinv(jacobian * free) @ (jacobian @ v)  # the least change of the others
        return q, lw.constraints.project(mech, q, v)[1]


def named(
    mech: lw.Mechanism,
    quantity: str,
    texts: Sequence[str],
    values: np.ndarray,
    units: Units,
    option: str | None = None,
) -> np.ndarray:
    """``values`` with the joints of ``texts`` (JOINT=NUMBER[,NUMBER...]) set.

    A mimic joint sets its leader.  Messages name the ``option``, --q or --v by default.
    """
    option = option or f"--{quantity}"
    array = np.array(values, dtype=float)
    named_by: dict[int, str] = {}
    for text in texts:
        joint, parsed = joint_numbers(mech, option, text)
        entry = mech.coordinates.place(joint)
        index = entry.q_index if quantity == "q" else entry.v_index
        other = named_by.get(index.start)
        if other is not None:
            twice = "is given twice" if other == joint else f"and {other!r} move together; give one of them"
            raise click.UsageError(f"{option} {text}: {joint!r} {twice}")
        named_by[index.start] = joint
        count = index.stop - index.start
        if len(parsed) != count:
            raise click.UsageError(f"{option} {text}: joint {joint!r} takes {count} numbers, commas between them")
        numbers_si = units.inside(mech, quantity, parsed, joint)
        array[index] = entry.q_at(numbers_si) if quantity == "q" else entry.v_at(numbers_si)
    if texts and quantity == "q":
        units.check(option, mech, array)
    return array


def joint_numbers(mech: lw.Mechanism, option: str, text: str) -> tuple[str, list[float]]:
    """The joint and the numbers of JOINT=NUMBER[,NUMBER...]."""
    joint, equals, numbers = text.rpartition("=")
    if not equals:
        raise click.UsageError(f"{option} {text}: the form is JOINT=NUMBER, such as {mech.joint_names[0]}=0.5")
    if "=" in joint and "," in joint:
        each = " ".join(f"{option} {part}" for part in re.split(r",(?=[^,]*=)", text))
        raise click.UsageError(f"{option} {text}: {option} is given once for each joint: {each}")
    mech.body_index(joint)  # says what is wrong with the name
    return joint, finite_numbers(f"{option} {text}", numbers)


def spread(
    option: str,
    texts: Sequence[str],
    values: np.ndarray,
    index_of: Callable[[str], slice],
    noun: str = "joint",
    listed: bool = False,
) -> np.ndarray:
    """A copy of ``values`` (n,) with NUMBER everywhere, and NAME=NUMBER[,NUMBER...] at the index of its name.

    index_of   the slice of a name; raises for others
    noun       kind of names, for messages
    listed     allows n numbers with commas between them, without a name
    """
    values, seen = np.array(values, dtype=float), set()
    common = [text for text in texts if "=" not in text]
    if len(common) > 1:
        raise click.UsageError(f"{option} {' and '.join(common)}: give one number for all {noun}s")
    for text in [*common, *(text for text in texts if "=" in text)]:
        name, equals, numbers = text.rpartition("=")
        target, parsed = (
            index_of(name) if equals else slice(0, len(values)),
            finite_numbers(f"{option} {text}", numbers),
        )
        count = target.stop - target.start
        if name in seen:
            raise click.UsageError(f"{option} {text}: {name!r} is given twice")
        seen.add(name)
        if len(parsed) != 1 and not (equals or (listed and len(parsed) == count)):
            usage = f"{noun.upper()}=NUMBER for one of them"
            raise click.UsageError(f"{option} {text}: one number is for all {noun}s, {usage}")
        if len(parsed) not in (1, count):
            takes = "one number" if count == 1 else f"one number, or {count} with commas between them"
            raise click.UsageError(f"{option} {text}: {noun} {name!r} takes {takes}")
        values[target] = parsed
    return values


def finite_numbers(label: str, text: str) -> list[float]:
    """Numbers with commas between them."""
    try:
        parsed = [float(number) for number in text.split(",")]
    except ValueError:
        raise click.UsageError(f"{label}: {text!r} is no number") from None
    if not np.isfinite(parsed).all():
        raise click.UsageError(f"{label}: numbers must be finite")
    return parsed
