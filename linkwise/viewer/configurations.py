"""Configurations and motions given by users: checked, completed, and seen at even times.  No matplotlib here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import linkwise as lw

OPEN = 1e-9
CURVE = 600  # points of a path
ROUND = 6.0  # seconds in which a mechanism goes along its range


@dataclass(frozen=True)
class Motion:
    """A mechanism's configurations q (m, nq) at the times t (m,), which never go back.

    ``between(times)`` gives (q, v) between them, if whoever made the motion knows better than at constant velocity.
    ``timed`` says whether the times are the motion's own; those of a path are made up to show it.
    """

    mech: lw.Mechanism
    t: np.ndarray
    q: np.ndarray
    between: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    timed: bool = True

    @property
    def curve(self) -> np.ndarray:
        """(k, nq): configurations close enough to each other for a smooth path of any point."""
        return self.q if self.between is None else self.at(np.linspace(self.t[0], self.t[-1], CURVE))

    def retimed(self, step: float) -> Motion:
        """The same configurations, ``step`` seconds apart."""
        return Motion(self.mech, step * np.arange(len(self.q)), self.q, timed=False)

    def at(self, times: np.ndarray) -> np.ndarray:
        """(k, nq): configurations at other times; by default between the given ones at constant velocity on the
        manifold."""
        if len(self.t) == 1:
            return np.repeat(self.q, len(times), axis=0)
        if self.between is not None:
            return self.between(np.clip(times, self.t[0], self.t[-1]))[0]
        before = np.clip(np.searchsorted(self.t, times, side="right") - 1, 0, len(self.t) - 2)
        width = self.t[before + 1] - self.t[before]
        share = np.divide(times - self.t[before], width, out=np.zeros(len(times)), where=width > 0.0)
        start, end = self.q[before], self.q[before + 1]
        there = lw.integrate(self.mech, start, lw.difference(self.mech, start, end), np.clip(share, 0.0, 1.0))
        return _reclosed(self.mech, there, np.concatenate([start, end]))


def _reclosed(mech: lw.Mechanism, q: np.ndarray, beside: np.ndarray) -> np.ndarray:
    """(k, nq): configurations with their loops closed, if those ``beside`` them have that."""
    if mech.constraints.waits_for_time or not len(q):
        return q
    if np.abs(lw.constraints.position_error(mech, beside)).max(initial=0.0) > OPEN:
        return q
    try:
        return lw.constraints.project(mech, q, None)[0]
    except lw.MechanismError:  # too far off, or singular: one by one, and as they were where that fails
        return np.array([_closed_if_possible(mech, configuration) for configuration in q])


def _closed_if_possible(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    try:
        return lw.constraints.assemble(mech, q, tries=1)
    except lw.MechanismError:
        return q


def one_configuration(mech: lw.Mechanism, q: Any) -> np.ndarray:
    """(nq,): the given configuration, or one to show the mechanism in."""
    if not isinstance(mech, lw.Mechanism):
        raise TypeError(f"a Mechanism is needed, got {type(mech).__name__}: make one with linkwise.load or Builder")
    if q is None:
        return closed_near(mech, mech.initial)
    if isinstance(q, Mapping):  # by joint
        q = lw.configuration(mech, q)
    values = _numbers(mech, q)
    if values.ndim > 1:
        raise ValueError(
            f"one configuration of shape ({mech.nq},) is drawn, got {values.shape}: draw them one by one, or several "
            "in one picture with snapshots"
        )
    return values


def several_configurations(mech: Any, q: Any = None, t: Any = None) -> Motion:
    """Configurations (m, nq) with times, from arrays or from a trajectory.

    A trajectory has ``t``, ``q`` and its mechanism as ``mechanism`` or ``mech``; it stands in the place of ``mech``, or
    of ``q``.  If it has ``at(times) -> (q, v)`` as well, that is used between its times.  A range of motion stands
    there too: its path; and a driven motion.
    """
    between, timed = None, t is not None
    if not isinstance(mech, lw.Mechanism):
        q, mech = mech, mechanism_of(mech)
    if isinstance(q, lw.linkages.RangeOfMotion):
        q = q.path.q
        t = paced(mech, q) if t is None else t
    if isinstance(q, lw.linkages.DrivenMotion):
        q = q.q
    if hasattr(q, "q") and hasattr(q, "t"):
        q, t, between, timed = q.q, q.t, getattr(q, "at", None), True
    if isinstance(q, Mapping):  # by joint, many positions
        q = np.atleast_2d(lw.configuration(mech, q))
    if q is None:
        raise ValueError(f"a motion needs configurations of shape (m, {mech.nq})")
    if isinstance(q, Sequence) and any(isinstance(values, Mapping) for values in q):  # by joint
        q = [one_configuration(mech, values) for values in q]
    values = _numbers(mech, q)
    if values.ndim != 2 or not len(values):
        raise ValueError(
            f"a motion is one row per moment, shape (m, {mech.nq}), got {values.shape}; "
            "choose one of a batch, such as q[:, 0]"
        )
    times = np.arange(len(values), dtype=float) if t is None else np.asarray(t, dtype=float)
    if times.shape != (len(values),):
        raise ValueError(f"{len(values)} configurations need {len(values)} times, got shape {times.shape}")
    if not np.all(np.isfinite(times)) or np.any(np.diff(times) < 0.0):
        raise ValueError("times must be finite and must not go back")
    return Motion(mech, times, values, between, timed)


def motions_of(
    mech: Any, q: Any = None, t: Any = None, chosen: Callable[[int], Sequence[int]] = range
) -> tuple[list[Motion], int]:
    """Motions of one mechanism, and how many there are: one as of ``several_configurations``; those of a trajectory
    with a batch or of configurations (..., m, nq) with times t (m,); several of such in a list in place of ``mech``.

    chosen   which of so many motions of a batch, or of a list, are made
    """
    if isinstance(mech, (list, tuple)):
        motions = [motion for each in mech for motion in motions_of(each)[0]]
        if not motions or any(motion.mech.joint_names != motions[0].mech.joint_names for motion in motions):
            raise ValueError("motions that are played together are several, of one mechanism")
        return [motions[k] for k in chosen(len(motions))], len(motions)
    if q is None and np.ndim(getattr(mech, "q", ())) > 2:
        batch = list(np.ndindex(*np.shape(mech.q)[1:-1]))
        return [several_configurations(mech.member(*batch[k])) for k in chosen(len(batch))], len(batch)
    if isinstance(mech, lw.Mechanism) and np.ndim(q) > 2:
        rows = np.reshape(q, (-1, *np.shape(q)[-2:]))
        return [several_configurations(mech, rows[k], t) for k in chosen(len(rows))], len(rows)
    return [several_configurations(mech, q, t)], 1


def paced(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(n,): times at which configurations (n, nq) of a path are passed at an even pace, in ``ROUND`` seconds."""
    lengths = np.linalg.norm(lw.difference(mech, q[:-1], q[1:]), axis=-1)
    return np.concatenate([[0.0], np.cumsum(lengths)]) * (ROUND / max(lengths.sum(), 1e-300))


def mechanism_of(trajectory: Any) -> lw.Mechanism:
    """The mechanism that a trajectory belongs to."""
    for name in ("mechanism", "mech"):
        mech = getattr(trajectory, name, None)
        if isinstance(mech, lw.Mechanism):
            return mech
    raise TypeError(f"a Mechanism or a trajectory with its mechanism is needed, got {type(trajectory).__name__}")


def _numbers(mech: lw.Mechanism, q: Any) -> np.ndarray:
    values = np.asarray(q, dtype=float)
    if values.shape[-1:] != (mech.nq,):
        raise ValueError(f"mechanism {mech.name!r} has nq = {mech.nq}, but q has shape {values.shape}")
    if not np.all(np.isfinite(values)):
        raise ValueError("configurations must be finite numbers: NaN and infinity cannot be drawn")
    return values


def closed_near(mech: lw.Mechanism, q: np.ndarray, hold: Sequence[str] = ()) -> np.ndarray:
    """q, or with loops that are open there a configuration near it in which they are closed, the joints named in
    ``hold`` where they are."""
    if mech.constraints.waits_for_time or np.abs(lw.constraints.position_error(mech, q)).max(initial=0.0) < OPEN:
        return q
    try:
        return lw.constraints.assemble(mech, q, hold=hold)
    except lw.constraints.AssemblyError as error:
        raise ValueError(
            f"no configuration was found in which the loops of {mech.name!r} are closed: give positions of its joints "
            f"from which they can be ({error})"
        ) from error
