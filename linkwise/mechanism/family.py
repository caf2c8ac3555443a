"""Variants of a mechanism that differ in numbers only: their shared data, and the vector of differing numbers.

A mechanism and all edits of its numbers are a *family*. Compiled code is kept in the family as soon as several members
request the same code (``compiler/variants.py``); the differing numbers are then inputs of that code.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Mapping, Sequence
from copy import copy as copied
from functools import cached_property
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

import numpy as np

if TYPE_CHECKING:
    from linkwise.mechanism.drives import Instant
    from linkwise.mechanism.model import Mechanism
    from linkwise.mechanism.parts import Frame, Loop

#: Numbers that compiled code looks at: ("inertial", body), ("armature", body), ("drive", loop), ("pose_a", loop),
#: ("length", loop) or ("gravity", -1).
Change = tuple[str, int]
GRAVITY: Change = ("gravity", -1)
LENGTH = "length"  # of a distance
HELD = "pose_a"  # where loops hold frames: the side that is on the ground
#: Where a body's ten numbers have what, and which of them mechanics may divide by: mass, moments about the axes.
_OF_A_BODY: dict[str, Any] = {
    "mass": 0,
    "com": np.arange(1, 4),
    "inertia": np.array([[4, 5, 6], [5, 7, 8], [6, 8, 9]]),
}
_DIVISORS_OF_A_BODY: tuple[int, ...] = (0, 4, 7, 9)
_FIELDS = (
    *("name", "bodies", "frames", "gravity", "loops", "annotations"),
    *("elements", "switched_off", "shapes", "contact_pairs"),
)
#: What follows from names, joints and the tree alone, and is not computed again for a variant; and its size, by which
#: thresholds are, so that they are the same for all.
_STRUCTURE = (
    *("nq", "nv", "n_constraints", "joint_names", "link_names", "q_names", "v_names", "tree"),
    *("constraints.holonomic_rows", "constraints.is_nonholonomic", "constraints.driven"),
    *("coordinates.rates_are_velocities", "coordinates.steps_commute", "coordinates._numbered"),
    *("_body_of_joint", "_slices", "_size"),
)
_OF_LOOPS = tuple(name for name in _STRUCTURE if "constraints" in name)
Part = TypeVar("Part")


class Family:
    """Data shared by the mechanisms of one family, which differ only in numbers. It holds no reference to its members
    and is freed with the last.

    frames    frames of the first member: code that uses other frames is not shared
    changed   the numbers in which members that asked for code differ from the first
    code      compiled code by request
    alike     whether the first member, too, runs the shared code; otherwise it runs its own
    """

    def __init__(self, frames: Mapping[str, Frame], alike: bool = False) -> None:
        self.frames = frames
        self.alike = alike
        self.changed: frozenset[Change] = frozenset()
        self.code: dict[Any, Any] = {}
        self._holding: dict[Any, Family] = {}
        self._locks: dict[int, Any] = {}

    @property
    def lock(self) -> Any:
        """Lock held while code is looked up or compiled; one per process, because a forked child must not wait for its
        parent.
        """
        return self._locks.setdefault(os.getpid(), threading.RLock())

    @cached_property
    def without_loops(self) -> Family:
        """The family of the spanning trees."""
        return Family(self.frames, self.alike)

    def holding(self, held: Any) -> Family:
        """The family with further frames held, at any place."""
        with self.lock:
            return self._holding.setdefault(held, Family(self.frames, self.alike))

    def has_frames_of(self, mech: Mechanism, names: Iterable[Any]) -> bool:
        """Whether the named frames are where the first member has them; unknown names are ignored."""
        return all(mech.frames.get(name) is self.frames.get(name) for name in names if isinstance(name, str))


def alike(mech: Mechanism) -> Mechanism:
    """A copy, the first of a family whose members all run the code that they share."""
    first = copied(mech)
    first.__dict__["_family"] = Family(first.frames, alike=True)
    return first


def variant(mech: Mechanism, changes: Iterable[Change], **values: Any) -> Mechanism:
    """A copy with the same structure and other values of some checked fields; ``changes`` names the fields that
    compiled code uses.
    """
    changes = frozenset(changes)
    if changes <= {GRAVITY} and "_massless_joints" in mech.__dict__:  # these depend on inertias alone
        values["_massless_joints"] = mech._massless_joints
    return _family_member(mech, mech._family, mech._changed | changes, values)


def without_loops(mech: Mechanism) -> Mechanism:
    """The spanning tree; spanning trees of one family form a family."""
    changed = frozenset(change for change in mech._changed if change[0] not in ("drive", LENGTH, HELD))
    return _with_other_loops(mech, mech._family.without_loops, changed, {"loops": ()})


def holding(mech: Mechanism, loops: Sequence[Loop]) -> Mechanism:
    """The mechanism with further checked loops that hold frames to the ground. Mechanisms with the same frames held at
    other poses form one family.
    """
    first = len(mech.loops)
    frames = (mech.frames[loop.link_b] for loop in loops)
    held = tuple(
        (loop.name, loop.kind, frame.body, frame.rotation.tobytes(), frame.position.tobytes())
        for loop, frame in zip(loops, frames, strict=True)
    )
    changed = mech._changed | {(HELD, first + k) for k in range(len(loops))}
    return _with_other_loops(mech, mech._family.holding(held), changed, {"loops": (*mech.loops, *loops)})


def _with_other_loops(mech: Mechanism, family: Family, changed: frozenset[Change], values: dict[str, Any]) -> Mechanism:
    copy = _family_member(mech, family, changed, values)
    for name in _OF_LOOPS:
        copy.__dict__.pop(name, None)
    return copy


def _family_member(mech: Mechanism, family: Family, changed: frozenset[Change], values: dict[str, Any]) -> Mechanism:
    values_known = mech.__dict__
    kept = values_known.get("_kept_by_variants") or values_known.setdefault(
        "_kept_by_variants", _kept_by_variants(mech)
    )
    copy = object.__new__(type(mech))
    copy.__dict__.update(kept, **values, _kernels={}, _locks={}, _family=family, _changed=changed)
    return copy


def _kept_by_variants(mech: Mechanism) -> dict[str, Any]:
    """Fields and cached values that a variant keeps unless they are replaced."""
    return {name: attrgetter(name)(mech) for name in (*_FIELDS, *_STRUCTURE)}


def with_numbers(part: Part, **numbers: Any) -> Part:
    """A copy of a body with other numbers, already checked; arrays must be read-only."""
    copy = object.__new__(type(part))
    copy.__dict__.update(part.__dict__, **numbers)
    copy.__dict__.pop("resists_its_joint", None)  # depends on them
    return copy


class Numbers:
    """The numbers in which variants differ as one vector, and the place of each number.

    changed    names of the numbers
    places     ((kind, body), index into the vector), kinds as in ``recursions.tree``
    divisors   how many numbers may be divisors
    """

    def __init__(self, mech: Mechanism, changed: frozenset[Change]):
        self.changed = changed
        self.places: list[tuple[Change, Any]] = []
        self._order = sorted(changed)
        divisors: list[int] = []
        self.size = 0
        for kind, i in self._order:
            numbers: dict[str, Any]
            if kind == "inertial":
                numbers, divided_by, count = _OF_A_BODY, _DIVISORS_OF_A_BODY, 10
            elif kind == HELD:
                numbers, divided_by, count = {kind: np.arange(16).reshape(4, 4)}, (), 16
            elif kind == LENGTH:
                numbers, divided_by, count = {kind: 0}, (), 1
            else:
                count = mech.bodies[i].kind.nv if kind == "armature" else 3
                numbers, divided_by = {kind: np.arange(count)}, tuple(range(count)) if kind == "armature" else ()
            self.places += [((name, i), self.size + at) for name, at in numbers.items()]
            divisors += [self.size + at for at in divided_by]
            self.size += count
        self._divisors = np.array(divisors, int)
        self.divisors = len(divisors)

    def of(self, mech: Mechanism, dtype: str) -> np.ndarray:
        """(size,): the numbers of one mechanism."""
        values: list[float] = []
        for kind, i in self._order:
            if kind == "inertial":
                body = mech.bodies[i]
                (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia.tolist()
                values += (body.mass, *body.com.tolist(), xx, xy, xz, yy, yz, zz)
            elif kind == "drive":
                values += cast("Instant", mech.loops[i].drive)
            elif kind == LENGTH:
                values.append(cast(Any, mech.loops[i]).kind.length)
            elif kind == HELD:
                rotation, position = cast("Loop", mech.loops[i]).pose_a
                values += (x for row in np.column_stack([rotation, position]).tolist() for x in row)
                values += (0.0, 0.0, 0.0, 1.0)
            else:
                values += mech.gravity.tolist() if kind == "gravity" else mech.bodies[i].armature
        return np.array(values, dtype)

    def zeros(self, vector: np.ndarray) -> np.ndarray:
        """(m,): which of the numbers that may be divisors are zero."""
        return vector[self._divisors] == 0.0

    def massless(self, mech: Mechanism) -> bool:
        """Whether a body without mass has its inertia as an input: such bodies need code of their own."""
        return any(kind == "inertial" and mech.bodies[i].mass == 0.0 for kind, i in self._order)


def differs_in_poses(mech: Mechanism) -> bool:
    """Whether members of the family have loops at different poses, so that decisions about poses cannot be shared."""
    return any(kind == HELD for kind, _ in mech._changed)
