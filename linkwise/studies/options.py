"""Checks of the options of computations.  Messages begin with the key of a wrong option."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Collection, Mapping
from difflib import get_close_matches
from numbers import Integral, Real
from typing import Any

import numpy as np

import linkwise as lw

from .errors import StudyError

FEEDBACK = ("target", "kp", "kd", "gain")


def check_count(key: str, value: Any, least: int) -> None:
    if isinstance(value, bool) or not isinstance(value, Integral) or value < least:
        raise StudyError(f"{key} must be an integer, at least {least}, not {value!r}")


def check_step(mech: lw.Mechanism, dt: Any) -> None:
    if dt is None and mech.metadata.timestep is None:
        raise StudyError(f"dt is missing, and mechanism {mech.name!r} has no time step of its own: give seconds")
    if dt is not None and (isinstance(dt, bool) or not isinstance(dt, Real) or not np.isfinite(float(dt))):
        raise StudyError(f"dt must be a number of seconds, not {dt!r}")


def check_method(method: Any, coordinates: Any) -> None:
    try:
        known = lw.motion.rollout_methods(coordinates)
    except ValueError as error:
        raise StudyError(f"coordinates: {error}") from None
    if method is not None:
        check_name("method", method, known, f" with coordinates = {coordinates!r}")


def check_frames(mech: lw.Mechanism, key: str, names: Any) -> None:
    if isinstance(names, str) or not isinstance(names, Collection):
        raise StudyError(f"{key} must be a list of names of links and frames, not {names!r}")
    for name in names:
        check_name(key, name, tuple(mech.frames))


def check_forces(mech: lw.Mechanism, tau: Any, wrenches: Any, ctrl: Any, steps: int) -> None:
    check_numbers("tau", tau, (mech.nv,), mech.joint_names, steps)
    check_numbers("wrenches", wrenches, (mech.n_links, 6), (), steps)
    if ctrl is not None and not mech.forces.actuator_names:
        raise StudyError(f"ctrl: no actuator of mechanism {mech.name!r} acts")
    check_numbers("ctrl", ctrl, (len(mech.forces.actuator_names),), mech.forces.actuator_names, steps)


def check_feedback(mech: lw.Mechanism, feedback: Any, steps: int) -> None:
    if feedback is None or callable(feedback):  # a compiled controller
        return
    if not isinstance(feedback, Mapping):
        raise StudyError(f"feedback must be a table of {', '.join(FEEDBACK)}, or a controller, not {feedback!r}")
    for key in feedback:
        check_name("feedback", key, FEEDBACK)
    check_numbers("feedback.target", feedback.get("target"), (mech.nq,), mech.joint_names, steps)
    for key in ("kp", "kd"):
        check_numbers(f"feedback.{key}", feedback.get(key), (mech.nv,), mech.joint_names, None)


def check_numbers(key: str, value: Any, shape: tuple[int, ...], names: Collection[str], steps: int | None) -> None:
    """Raise unless the value is an array (..., *shape) or numbers by name.

    With ``steps`` the axis before may be time; gains have ``steps`` None and may be one number.
    """
    if value is None or callable(value):
        return
    if isinstance(value, Mapping) and names:
        for name in value:
            check_name(key, name, names)
        return
    try:
        array = np.asarray(value, dtype=float)
    except (TypeError, ValueError):
        raise StudyError(f"{key} must be numbers, not {value!r}") from None
    if steps is None and not array.ndim:
        return
    if array.shape[-len(shape) :] != shape:
        expected = ", ".join(map(str, shape))
        of = f": one for each of {', '.join(names)}" if names else ""
        raise StudyError(f"{key} must have shape ({expected}) or (..., {expected}), not {array.shape}{of}")
    times = array.shape[-len(shape) - 1] if array.ndim > len(shape) else 1
    if steps is not None and times not in (1, steps):
        raise StudyError(
            f"{key} has {times} rows in time, and steps is {steps}: give one for each step, or one for all"
        )


def check_options(function: Callable[..., Any], options: Mapping[str, Any], taken: Collection[str]) -> None:
    """Raise unless all keys are arguments of a function of the library, other than those ``taken`` by the study."""
    known = [name for name in inspect.signature(function).parameters if name not in taken]
    for key in options:
        if key in taken:
            raise StudyError(f"{key}: the study itself gives it; vary it, or leave it out")
        check_name("option", key, known, f" of lw.{function.__name__}")


def check_name(key: str, value: Any, known: Collection[str], more: str = "") -> None:
    if value not in known:
        close = get_close_matches(str(value), list(known), n=1)
        hint = f"did you mean {close[0]!r}?  " if close else ""
        raise StudyError(f"{key}{more}: {value!r} is unknown; {hint}available: {', '.join(known) or 'none'}")
