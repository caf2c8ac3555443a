"""Motions of one or several members at even times, from whatever users have."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import linkwise as lw

from ..configurations import Motion, one_configuration, several_configurations

MOST_MEMBERS = 16  # of a batch that are shown beside each other
MOST_FRAMES = 20_000
ROUND = 6.0  # seconds in which a mechanism goes along its range


@dataclass(frozen=True, eq=False)
class Frames:
    """Configurations (members, frames, nq) at even times from ``start`` to ``end``.

    label   what the time is; ``unit`` of it, or none
    """

    q: np.ndarray
    start: float
    end: float
    label: str = "time"
    unit: str = "s"


@dataclass(frozen=True, eq=False)
class Shown:
    """A mechanism in a configuration q (nq,), or in motion; a note tells what there is to know."""

    mech: lw.Mechanism
    q: np.ndarray
    motion: Frames | None = None
    note: str = ""


def motions_of(mech: Any, q: Any, t: Any, rate: float) -> Shown:
    """What ``page`` was given."""
    if not (math.isfinite(rate) and rate > 0.0):
        raise ValueError(f"rate must be a positive number of frames per second, got {rate!r}")
    if isinstance(mech, lw.Mechanism) and (q is None or isinstance(q, dict) or np.ndim(q) == 1):
        return Shown(mech, one_configuration(mech, q))
    members, note = _members(mech, q, t)
    start, end = float(members[0].t[0]), float(members[0].t[-1])
    count = min(MOST_FRAMES, 1 + max(1, math.ceil((end - start) * rate))) if end > start else 1
    times = np.linspace(start, end, count)
    configurations = np.stack([_continuous(one.mech, one.at(times)) for one in members])
    return Shown(members[0].mech, configurations[0, 0], Frames(configurations, start, end), note)


def _members(mech: Any, q: Any, t: Any) -> tuple[list[Motion], str]:
    """The motions of a batch, one by one."""
    if q is None:
        batch = np.shape(getattr(mech, "q", ()))[1:-1]
        if not batch:
            return [several_configurations(mech, q, t)], ""
        chosen = list(np.ndindex(*batch))
        return [several_configurations(mech.member(*index)) for index in chosen[:MOST_MEMBERS]], _of(len(chosen))
    values = np.asarray(q, dtype=float)
    if values.ndim <= 2:
        return [several_configurations(mech, q, t)], ""
    rows = values.reshape(-1, *values.shape[-2:])
    return [several_configurations(mech, one, t) for one in rows[:MOST_MEMBERS]], _of(len(rows))


def _of(count: int) -> str:
    return f"the first {MOST_MEMBERS} of {count} motions" if count > MOST_MEMBERS else ""


def _continuous(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """The same configurations (m, nq), quaternions without changes of sign, so that numbers between them make sense."""
    q = np.array(q)
    for at in quaternions(mech):
        own = q[:, at : at + 4]
        turns = np.where(np.einsum("ij,ij->i", own[1:], own[:-1]) < 0.0, -1.0, 1.0)
        own[1:] *= np.cumprod(turns)[:, None]
    return q


def quaternions(mech: lw.Mechanism) -> list[int]:
    """Where in q quaternions begin."""
    found = []
    for body in mech.bodies:
        kinds = [number.of for number in body.kind.measures("q")] if not body.mimic else []
        if "quaternion" in kinds:
            found.append(mech.q_index(body.joint).start + kinds.index("quaternion"))
    return found


def moved_along_its_range(shown: Shown) -> Shown:
    """A closed mechanism, whose joints depend on each other: with one degree of freedom in motion along its range."""
    mech = shown.mech
    count = None if mech.waits_for_time else int(lw.closed.degrees_of_freedom(mech, shown.q))
    if count != 1:
        freedom = "" if count is None else f" ({count} degrees of freedom)"
        return replace(shown, note=f"its loops let no joint move by itself{freedom}: save a motion to see it move")
    for joint in (body.joint for body in mech.bodies if body.kind.nv == 1 and not body.mimic):
        path = lw.closed.range_of_motion(mech, joint, shown.q, limits=True).path
        if len(path.q) > 1:
            return replace(shown, motion=_along(mech, path.q), note="along its range of motion")
    return shown


def _along(mech: lw.Mechanism, q: np.ndarray) -> Frames:
    """Configurations (n, nq) of a path, forth and back unless it ends where it began, at an even pace."""
    lengths = np.linalg.norm(lw.difference(mech, q[:-1], q[1:]), axis=-1)
    t = np.concatenate([[0.0], np.cumsum(lengths)]) * (ROUND / lengths.sum())
    once = Motion(mech, t, q).at(np.linspace(0.0, ROUND, 241))
    closes = np.abs(lw.link_poses(mech, q[0]) - lw.link_poses(mech, q[-1])).max() < 1e-6
    found = _continuous(mech, once if closes else np.concatenate([once, once[-2::-1]]))
    return Frames(found[None], 0.0, ROUND, "along its range", "")
