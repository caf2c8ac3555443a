"""Motions of one or several members at even times, from the arguments of ``page``."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

import linkwise as lw

from ..configurations import ROUND, Motion, one_configuration, pace
from ..configurations import motions_of as _motions_of
from ..coordinates import ANGLE, LENGTH, measure_of
from ..scene import scene
from ..skeleton import Skeleton

MOST_MEMBERS = 16  # of a batch that are shown beside each other
MOST_FRAMES = 20_000
EXCURSION = 0.1  # of the mechanism's size, to either side, of a joint that slides in a mechanism of several DoF


@dataclass(frozen=True, eq=False)
class Frames:
    """Configurations (members, frames, nq) at even times from ``start`` to ``end``, with label and unit of the time."""

    q: np.ndarray
    start: float
    end: float
    label: str = "time"
    unit: str = "s"


@dataclass(frozen=True, eq=False)
class Shown:
    """A mechanism in a configuration q (nq,), or in motion, with a note for the reader."""

    mech: lw.Mechanism
    q: np.ndarray
    motion: Frames | None = None
    note: str = ""


def motions_of(mech: Any, q: Any, t: Any, rate: float) -> Shown:
    """The mechanism, motion and note of a page."""
    if not (math.isfinite(rate) and rate > 0.0):
        raise ValueError(f"rate must be a positive number of frames per second, got {rate!r}")
    if isinstance(mech, lw.linkages.RangeOfMotion) or isinstance(q, lw.linkages.RangeOfMotion):
        travel = mech if q is None else q
        return Shown(
            travel.mechanism, travel.path.q[0], _round_trip(travel.mechanism, travel.path.q), _describe(travel)
        )
    if isinstance(mech, lw.Mechanism) and (q is None or isinstance(q, dict) or np.ndim(q) == 1):
        return Shown(mech, one_configuration(mech, q))
    members, count = _motions_of(mech, q, t, lambda number: range(min(number, MOST_MEMBERS)))
    note = f"the first {MOST_MEMBERS} of {count} motions" if count > MOST_MEMBERS else ""
    start, end = float(members[0].t[0]), float(members[0].t[-1])
    count = min(MOST_FRAMES, 1 + max(1, math.ceil((end - start) * rate))) if end > start else 1
    times = np.linspace(start, end, count)
    configurations = np.stack([_continuous(member.mech, member.at(times)) for member in members])
    named = {} if members[0].timed else {"label": "along the path", "unit": ""}
    return Shown(members[0].mech, configurations[0, 0], Frames(configurations, start, end, **named), note)


def _continuous(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Configurations (m, nq) with quaternions that do not change sign, so that they can be interpolated."""
    q = np.array(q)
    for at in quaternions(mech):
        quaternion = q[:, at : at + 4]
        turns = np.where(np.einsum("ij,ij->i", quaternion[1:], quaternion[:-1]) < 0.0, -1.0, 1.0)
        quaternion[1:] *= np.cumprod(turns)[:, None]
    return q


def quaternions(mech: lw.Mechanism) -> list[int]:
    """Indices in q of the first numbers of quaternions."""
    indices = []
    for body in mech.bodies:
        kinds = [number.of for number in body.kind.measures("q")] if not body.mimic else []
        if "quaternion" in kinds:
            indices.append(mech.q_index(body.joint).start + kinds.index("quaternion"))
    return indices


def moved_along_its_range(shown: Shown) -> Shown:
    """A mechanism with loops in motion: along its range with one degree of freedom, otherwise along that of one joint.
    A note says why nothing can be shown in motion."""
    mech = shown.mech
    if not mech.constraints.holonomic_rows.any():
        return shown  # wheels and blades constrain velocities alone: all positions are possible
    if mech.constraints.waits_for_time:
        return replace(shown, note="its joints follow functions of time: save a motion to see it move")
    if mech.constraints.is_nonholonomic:
        return replace(shown, note="where it rolls or glides depends on the way it takes: save a motion to see it move")
    count = int(lw.constraints.degrees_of_freedom(mech, shown.q))
    if count == 0:
        return replace(shown, note="its loops let nothing move (0 degrees of freedom)")
    # Joints of one coordinate: with motors first, then on the ground, then those that rotate.
    motors = mech.metadata.actuated_joints or ()
    bodies = [body for body in mech.bodies if body.kind.nv == 1 and not body.mimic]
    bodies.sort(key=lambda body: (body.joint not in motors, body.parent >= 0, not _rotates(mech, body.joint)))
    for joint in (body.joint for body in bodies):
        path = _range(mech, joint, shown.q) if count == 1 or _rotates(mech, joint) else _excursion(mech, joint, shown.q)
        if len(path) > 1:
            note = "along its range of motion" if count == 1 else f"{joint} moves, the others follow; {count} "
            return replace(shown, motion=_round_trip(mech, path), note=note + "degrees of freedom" * (count > 1))
    return replace(shown, note="no joint of one coordinate can be driven: save a motion to see it move")


def _describe(travel: lw.linkages.RangeOfMotion) -> str:
    """A range in words, angles in degrees."""
    unit, scale = {ANGLE: ("\u00b0", 180.0 / math.pi), LENGTH: (" m", 1.0)}.get(
        measure_of(travel.mechanism, travel.coordinate), ("", 1.0)
    )
    low, high = (
        f"{scale * end.value:.4g}{unit} ({end.cause}{' of ' * bool(end.joint)}{end.joint})" for end in travel.ends
    )
    if np.isinf([travel.lower, travel.upper]).all():
        return f"{travel.coordinate}: nothing stops it"
    return f"{travel.coordinate} from {low} to {high}"


def _rotates(mech: lw.Mechanism, joint: str) -> bool:
    return mech.bodies[mech.body_index(joint)].kind.hinge is not None


def _range(mech: lw.Mechanism, joint: str, q: np.ndarray) -> np.ndarray:
    """(n, nq): configurations along the range of a joint, or once around from q if nothing stops it."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)  # an end that was not found is no matter here
        within = bool(((q >= mech.limits.lower) & (q <= mech.limits.upper)).all())  # else limits are not looked at
        travel = lw.linkages.range_of_motion(mech, joint, q, limits=within)
    path, ends = travel.path.q, travel.values[[0, -1]]
    if not np.isinf([travel.lower, travel.upper]).all() or np.ptp(ends) < 2.0 * math.pi * (1.0 + 1e-6):
        return path
    start = q[mech.q_index(joint)][0]
    inner = path[(travel.values > start) & (travel.values < start + 2.0 * math.pi)]
    last = lw.linkages.follow(mech, inner[-1], {joint: start + 2.0 * math.pi})
    return np.array([q, *inner, last])


def _excursion(mech: lw.Mechanism, joint: str, q: np.ndarray) -> np.ndarray:
    """(n, nq): configurations while a sliding joint goes to either side, as far as loops and limits allow."""
    at, size = mech.q_index(joint), scene(mech, meshes=False).size
    lower, upper = mech.limits.lower[at][0], mech.limits.upper[at][0]
    sides = []
    for way in (-EXCURSION, EXCURSION):
        visited = [q]
        for goal in np.clip(q[at][0] + way * size * np.linspace(0.0, 1.0, 13)[1:], lower, upper):
            try:
                visited.append(lw.linkages.follow(mech, visited[-1], {joint: goal}))
            except lw.constraints.AssemblyError:
                break
        sides.append(visited)
    return np.array([*sides[0][:0:-1], *sides[1]])


def _round_trip(mech: lw.Mechanism, q: np.ndarray) -> Frames:
    """Configurations (n, nq) of a path at an even pace, forth and back unless it is closed."""
    once = Motion(mech, pace(mech, q), q, timed=False).at(np.linspace(0.0, ROUND, 241))
    # By points, since a rotation of a bar about itself is invisible.
    ends = [Skeleton(mech).at(configuration).points for configuration in q[[0, -1]]]
    closes = np.abs(ends[0] - ends[1]).max() < 1e-6
    round_trip = _continuous(mech, once if closes else np.concatenate([once, once[-2::-1]]))
    return Frames(round_trip[None], 0.0, ROUND, "along its range", "")
