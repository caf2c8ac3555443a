"""Trajectories made of others: at other times, one after the other; and where forces of drives are largest."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ..dynamics import closed
from ..dynamics import trees as tree
from ..dynamics.states import Float64Array
from ..mechanism import Mechanism, MechanismError

if TYPE_CHECKING:
    from .trajectory import Trajectory

BETWEEN = 8  # samples looked at in each interval where a peak is searched
NEARER = 3  # times that the search goes on around the largest


class Peak(NamedTuple):
    """The largest force, or moment, of a drive, and when."""

    t: float
    force: float


def resampled(motion: Trajectory, times: Float64Array) -> Trajectory:
    """One motion at other times (n,), in ascending order: q and v as ``motion.at`` gives them, accelerations by the
    equations of motion.  What was commanded is known at the samples, and taken from straight lines between them."""
    q, v = motion.at(times)
    if motion.q.ndim != 2:
        raise MechanismError("one motion is resampled: pick one of the batch with trajectory.member(index)")

    def between(values: Float64Array | None) -> Any:
        if values is None:
            return None
        flat = values.reshape(len(values), -1)
        columns = [np.interp(times, motion.t, column) for column in flat.T]
        return np.stack([np.zeros(len(times)), *columns], axis=-1)[:, 1:].reshape(len(times), *values.shape[1:])

    arrays = {name: between(getattr(motion, name)) for name in ("tau", "wrenches", "ctrl", "activation")}
    found = dataclasses.replace(motion, t=times, q=q, v=v, a=np.zeros(v.shape), **arrays)
    return dataclasses.replace(found, a=_accelerations(found))


def _accelerations(motion: Trajectory) -> Float64Array:
    """(m, nv): under all that acted."""
    forces = motion.tau + motion.passive_forces
    pushed = () if motion.wrenches is None else (motion.wrenches,)
    if not motion.mechanism.loops:
        return tree.forward_dynamics(motion.mechanism, motion.q, motion.v, forces, *pushed)

    def at(now: Mechanism, q: Any, v: Any, tau: Any, wrenches: Any = None) -> Float64Array:
        return closed.accelerations(now, q, v, tau, wrenches=wrenches)

    return motion.by_moments(at, motion.q, motion.v, forces, *pushed)


def drive_peaks(motion: Trajectory) -> dict[str, Peak]:
    """By drive: the largest force of its motion, also between the samples."""
    found = {}
    shares = np.linspace(0.0, 1.0, BETWEEN, endpoint=False)
    times = np.append((motion.t[:-1, None] + shares * np.diff(motion.t)[:, None]).ravel(), motion.t[-1:])
    dense = resampled(motion, np.unique(times)) if motion.mechanism.driven and len(motion.t) > 1 else motion
    for name, forces in dense.drive_forces.items():
        seen, values = dense.t, forces
        for _ in range(NEARER if len(motion.t) > 1 else 0):
            k = int(np.argmax(np.abs(values)))
            low, high = seen[max(k - 1, 0)], seen[min(k + 1, len(seen) - 1)]
            nearer = resampled(motion, np.unique([*np.linspace(low, high, 2 * BETWEEN + 1), seen[k]]))
            seen, values = nearer.t, nearer.drive_forces[name]
        k = int(np.argmax(np.abs(values)))
        found[name] = Peak(float(seen[k]), float(values[k]))
    return found


def joined(first: Trajectory, second: Trajectory) -> Trajectory:
    """Two trajectories, the second a continuation of the first, as one."""
    # The state in which the second starts is the end of the first, and usually sampled there already.
    new = slice(1 if len(second.t) and len(first.t) and second.t[0] == first.t[-1] else 0, None)
    arrays: dict[str, Any] = {
        name: np.concatenate([getattr(first, name), getattr(second, name)[new]]) for name in ("t", "q", "v", "a", "tau")
    }
    if first.wrenches is not None or second.wrenches is not None:
        none = (*first.q.shape[1:-1], first.mechanism.n_links, 6)
        pushed = (np.zeros((len(one.t), *none)) if one.wrenches is None else one.wrenches for one in (first, second))
        before, after = pushed
        arrays["wrenches"] = np.concatenate([before, after[new]])
    for name in ("ctrl", "activation"):
        if getattr(first, name) is not None and getattr(second, name) is not None:
            arrays[name] = np.concatenate([getattr(first, name), getattr(second, name)[new]])
    return dataclasses.replace(
        second,
        **arrays,
        events=first.events + second.events,
        step_sizes=np.concatenate([first.step_sizes, second.step_sizes]),
        evaluations=first.evaluations + second.evaluations,
        chart_changes=first.chart_changes + second.chart_changes,
        dense=first.dense.followed_by(second.dense) if first.dense and second.dense else None,
    )
