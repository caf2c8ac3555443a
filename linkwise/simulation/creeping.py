"""Dry friction of joints in steps that cannot follow it: what it should hold creeps, which is told."""

from __future__ import annotations

import math

import numpy as np

from ..mechanics.elements.at_joints import Friction
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism, MechanismWarning, warn_caller

NOTED = 0.05  # of the friction: the mean by which it is too low in the records looked at, from which on it is told
STEPS_APART = 0.5**0.5  # what steps follow is rounded down by up to so much
MOST_STATES = 512  # that are looked at


def warn_of_creep(mech: Mechanism, method: str, acting: Acting, step: float, v: np.ndarray) -> None:
    """Warn where joints of an explicit motion with velocities v (..., nv) move so slowly that
    their dry friction is bounded by what steps of this length can follow (``Friction.steepest``)."""
    bounded = [law for law in acting.laws if isinstance(law, Friction) and law.steepest is not None]
    if not bounded:
        return
    states = v.reshape(-1, v.shape[-1])
    states = states[np.linspace(len(states) - 1, 0, min(len(states), MOST_STATES)).astype(int)]
    missing = [(float(_missing(mech, law, states).mean(axis=0).max()), law) for law in bounded]
    most, law = max(missing, key=lambda one: one[0])
    if not most > NOTED:
        return
    assert law.steepest is not None
    kept = _friction(mech, law) / law.steepest  # speeds from which on the law is kept
    slowest, shorter = float(kept.max()), float((_speeds(mech, law) / kept)[kept > 0.0].min())
    warn_caller(
        f"dry friction of joint {law.joint!r} of mechanism {mech.name!r} was on average {100.0 * most:.0f} % of its "
        f"size less than its law says, and the joint moved too easily: steps of {method!r} of {step:g} s cannot follow "
        f"it at speeds below {slowest:.2g}; method='semi_implicit' follows it in steps of any length, {method!r} in "
        f"steps of {_in_one_digit(STEPS_APART * step * shorter):g} s",
        MechanismWarning,
    )


def _missing(mech: Mechanism, law: Friction, v: np.ndarray) -> np.ndarray:
    """(n, nv of the joint): the part of its friction by which a joint is resisted less than the law says."""
    place = mech.place(law.joint)
    friction = _friction(mech, law)
    rates = np.nan_to_num(np.abs(v[:, place.v_index] * place.ratio))
    full = rates / np.hypot(rates, _speeds(mech, law))
    followed = rates * np.array(law.steepest) / np.where(friction > 0.0, friction, np.inf)
    return np.where(friction > 0.0, np.maximum(full - followed, 0.0), 0.0)


def _friction(mech: Mechanism, law: Friction) -> np.ndarray:
    return np.array(law.at(mech)["friction"])


def _speeds(mech: Mechanism, law: Friction) -> np.ndarray:
    return np.array(law.at(mech)["speed"])


def _in_one_digit(x: float) -> float:
    """Rounded down."""
    digit = math.floor(math.log10(x))
    return float(f"{math.floor(x / 10.0**digit)}e{digit}")
