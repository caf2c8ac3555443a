"""Configurations and motions given by users: checked, completed, and seen at even times.  No matplotlib here."""

from __future__ import annotations

import contextlib
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

    between   between(times) -> (q, v); None for constant velocity between the configurations
    timed     whether the times are those of the motion; those of a path are chosen to show it
    """

    mech: lw.Mechanism
    t: np.ndarray
    q: np.ndarray
    between: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]] | None = None
    timed: bool = True

    def velocity(self, t: float) -> np.ndarray:
        """(nv,): at a time."""
        if self.between is not None and len(self.t) > 1:
            return np.asarray(self.between(np.array([t]))[1][0])
        before = int(np.clip(np.searchsorted(self.t, t, side="right") - 1, 0, max(len(self.t) - 2, 0)))
        width = float(np.diff(self.t[before : before + 2]).sum())
        if width <= 0.0:
            return np.zeros(self.mech.nv)
        return lw.difference(self.mech, self.q[before], self.q[before + 1]) / width

    @property
    def curve(self) -> np.ndarray:
        """(k, nq): configurations close enough to each other for a smooth path of any point."""
        return self.q if self.between is None else self.at(np.linspace(self.t[0], self.t[-1], CURVE))

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
    """(k, nq): configurations with their loops closed, if the loops of their neighbours ``beside`` are closed."""
    if mech.constraints.waits_for_time or not len(q):
        return q
    if np.abs(lw.constraints.position_error(mech, beside)).max(initial=0.0) > OPEN:
        return q
    with contextlib.suppress(lw.MechanismError):
        return lw.constraints.project(mech, q, None)[0]
    assembled = np.array(q)  # too far off, or singular: one by one, unchanged where that fails
    for row in assembled:
        with contextlib.suppress(lw.MechanismError):
            row[:] = lw.constraints.assemble(mech, row, tries=1)
    return assembled


def one_configuration(mech: lw.Mechanism, q: Any) -> np.ndarray:
    """(nq,): the given configuration, or one to show the mechanism in."""
    if not isinstance(mech, lw.Mechanism):
        raise TypeError(f"a Mechanism is needed, got {type(mech).__name__}: make one with linkwise.load or Builder")
    if q is None:
        return assemble_near(mech, mech.initial)
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
    """Configurations (m, nq) with times, from arrays, a trajectory, a range of motion (its path) or a driven motion.

    A trajectory replaces ``mech`` or ``q``.  It has ``t``, ``q`` and its mechanism as ``mechanism`` or ``mech``; at
    other times ``at(times) -> (q, v)`` is used if it exists.
    """
    between, timed = None, t is not None
    if not isinstance(mech, lw.Mechanism):
        q, mech = mech, mechanism_of(mech)
    if isinstance(q, lw.linkages.RangeOfMotion):
        q = q.path.q
        t = pace(mech, q) if t is None else t
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
    """Motions of one mechanism, and how many there are.

    One motion is as of ``several_configurations``; several are a trajectory with a batch, configurations (..., m, nq)
    with times t (m,), or a list in place of ``mech``.

    chosen   chosen(count) -> numbers of the motions of a batch or a list that are made
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


def pace(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
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


def assemble_near(mech: lw.Mechanism, q: np.ndarray, hold: Sequence[str] = ()) -> np.ndarray:
    """q, or where its loops are open a configuration near it with closed loops and the joints of ``hold`` unmoved."""
    if mech.constraints.waits_for_time or np.abs(lw.constraints.position_error(mech, q)).max(initial=0.0) < OPEN:
        return q
    try:
        return lw.constraints.assemble(mech, q, hold=hold)
    except lw.constraints.AssemblyError as error:
        raise ValueError(
            f"no configuration was found in which the loops of {mech.name!r} are closed: give positions of its joints "
            f"from which they can be ({error})"
        ) from error
