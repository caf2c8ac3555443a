"""Rollouts that are called again and again: what their shapes and numbers decide is decided once.

To find out what a call asks for takes several times as long as to compute a short motion of one state.  A call that has
succeeded leaves behind what it found, with the mechanism, as kernels are: a later one with arrays of the same shapes
and the same other arguments starts there.  What depends on the numbers in the arrays is looked at in every call.
Whatever is not known, and thus all that is refused for its shape or name, takes the whole way through ``rollout``.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.ir.program import Array
from ..compiler.store import stored
from ..mechanism import Mechanism
from ..mechanism.quaternions import has_quaternions, with_unit_quaternions
from .arguments import CONFIGURATIONS, by_step
from .checks import warn_of_starts_beyond_limits, warn_of_starts_in_penetration
from .records import apart_from, look_at_records, results_of, returned, started
from .step import ACTIVATION, FEEDBACK, GAIN, PER_STEP, Step, warn_of_long_steps

KEPT = "repeated rollouts"
MOST = 64  # kept with a mechanism; then all are forgotten, as steps of ever new lengths would fill the memory
MANY_STEPS = 16  # of a motion: shorter ones go on with another, and to look for deep contacts would cost a step
PARTS = (*FEEDBACK, GAIN)
GIVEN = ("q", "v", "tau", "wrenches", "ctrl", ACTIVATION, *PARTS)  # what a call is given, as inputs are named
_ARRAY, _PRECISIONS = np.ndarray, (np.dtype("float64"), np.dtype("float32"))
_NO_PARTS = (None,) * len(PARTS)


def given_values(state: tuple[Any, ...], feedback: Any) -> tuple[Any, ...]:
    """Values in the order of ``GIVEN``, those of ``feedback`` behind the others; none where it has other parts."""
    if feedback is None:
        return (*state, *_NO_PARTS)
    if type(feedback) is not dict or not feedback.keys() <= {*PARTS} or any(x is None for x in feedback.values()):
        return ()
    return (*state, *map(feedback.get, PARTS))


def key_of(
    given: tuple[Any, ...], dt: Any, steps: Any, every: Any, final_only: Any, names: tuple[Any, ...]
) -> tuple[Hashable, ...] | None:
    """All that decides what a call does but the numbers in its arrays, which are ``given`` in the order of ``GIVEN``.
    None where they are others than NumPy's or of several precisions, or where numbers are of other types than usual,
    which may be wrong."""
    if type(steps) is not int or type(every) is not int or type(final_only) is not bool:
        return None
    if type(dt) is not float and dt is not None:
        return None
    values: list[Hashable] = []
    precision: Any = None
    for x in given:
        if x is None:
            values.append(None)
        elif type(x) is _ARRAY and x.ndim:
            if x.dtype is not precision:
                if precision is not None or x.dtype not in _PRECISIONS:
                    return None
                precision = x.dtype
            values.append(x.shape)
        elif type(x) is float or type(x) is int:
            values.append(x)
        else:
            return None
    return (*values, precision, dt, steps, every, final_only, *names)


@dataclass(frozen=True)
class RepeatedRollout:
    """What calls with one key have in common.

    run          the compiled rollout
    inputs       what it takes; for each the place in ``GIVEN``, or an array that is the same in all calls
    batch        the batch that all arrays broadcast to
    shapes       of the results; dtype: their precision
    """

    run: Callable[..., None]
    inputs: tuple[Array, ...]
    sources: tuple[int | np.ndarray, ...]
    batch: tuple[int, ...]
    shapes: list[tuple[int, ...]]
    dtype: np.dtype
    step: Step
    kept: Any  # which states are: ``Kept``
    turns: bool  # whether some coordinates are quaternions, whose lengths are checked
    limited: bool  # whether limits of joints act

    def __call__(self, mech: Mechanism, given: tuple[Any, ...], out: Any, with_activation: bool) -> Any:
        arrays: list[np.ndarray] = []
        steps, every = self.kept.steps, self.kept.every
        for array, source in zip(self.inputs, self.sources, strict=True):
            if not isinstance(source, int):
                arrays.append(source)
                continue
            x = given[source]
            if self.turns and array.name in CONFIGURATIONS:
                x = with_unit_quaternions(mech, CONFIGURATIONS[array.name], x)
            arrays.append(by_step(x, len(array.shape), steps, every) if array.name in PER_STEP else x)
        if out is not None:
            arrays = apart_from(out, arrays)
        if self.step.acting.laws:
            dt = next(x for array, x in zip(self.inputs, arrays, strict=True) if array.name == "dt")
            warn_of_long_steps(mech, self.step, dt)
        if self.limited:
            warn_of_starts_beyond_limits(mech, arrays[0])
        if steps >= MANY_STEPS and mech.contact_pairs:
            warn_of_starts_in_penetration(mech, arrays[0])
        initial = arrays[:2]
        if len(self.shapes) > 2:
            initial += [x for array, x in zip(self.inputs, arrays, strict=True) if array.name == ACTIVATION]
        found = results_of(out, self.shapes, self.dtype)
        kept = started(initial, found, steps, self.kept.final_only)
        if steps:
            with np.errstate(all="ignore"):  # what is lost is told below, once
                self.run(*arrays, out=tuple(kept))
            named = dict(zip(self.inputs, arrays, strict=True))
            look_at_records(mech, self.step, named, self.batch, kept, every)
        return returned(found, with_activation)


def repeated(mech: Any, key: tuple[Hashable, ...] | None) -> RepeatedRollout | None:
    """What an earlier call of this mechanism with this key has left behind."""
    if key is None:
        return None
    try:
        return mech._kernels[KEPT].get(key)
    except (KeyError, AttributeError, TypeError):  # the first call, no mechanism, or names that are none
        return None


def remember(
    mech: Mechanism,
    key: tuple[Hashable, ...],
    given: tuple[Any, ...],
    run: Callable[..., None],
    named: Mapping[Array, np.ndarray],
    **found: Any,
) -> None:
    """Leave behind what a call with this key has ``found``: the rollout, its arrays, and the further fields of
    ``RepeatedRollout``.  Arrays of the caller's are not held on to."""
    places = {name: place for place, name in enumerate(GIVEN) if type(given[place]) is _ARRAY}
    sources = tuple(places.get(array.name, x) for array, x in named.items())
    known: dict[Any, RepeatedRollout] = stored(mech, KEPT, dict)
    if len(known) >= MOST:
        known.clear()
    found |= {
        "dtype": next(iter(named.values())).dtype,
        "turns": has_quaternions(mech),
        "limited": bool(mech.forces.active.get("limits")),
    }
    known[key] = RepeatedRollout(run, tuple(named), sources, **found)
