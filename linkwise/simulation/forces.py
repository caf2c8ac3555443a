"""Forces during a motion: a controller, forces held between given times, passive elements, wrenches on links."""

from __future__ import annotations

from typing import Any

import numpy as np

from ..dynamics import trees as tree
from ..dynamics.passive import Passive
from ..dynamics.states import real_numbers
from ..mechanism import Mechanism, MechanismError
from .functions import Function, answer

DIFFERENCE = 1e-7  # relative step by which a controller is differenced


class Forces:
    """tau(t, q, v): what is commanded, and what acts with passive elements added; wrenches on links.

    ``held`` is the commanded force of the present segment where it does not depend on the state, else None; ``noted``
    is what a file can hold of all this.
    """

    def __init__(
        self, mech: Mechanism, control: Any, passive: Passive | None, batch: tuple[int, ...], wrenches: Any = None
    ):
        self._mech = mech
        self._push: Function | None = wrenches if callable(wrenches) else None
        self._constant_wrenches = None if self._push or wrenches is None else _wrenches(mech, wrenches, batch)
        self._batch = batch
        self._passive = passive.on(mech) if passive is not None and passive.elements else None
        self._control: Function | None = control if callable(control) else None
        self._samples: np.ndarray | None = None if self._control else _samples(mech, control, batch)
        self.held: np.ndarray | None = None if self._samples is None else self._samples[0]
        self.noted: dict[str, Any] = {
            "control": _as_data(control, self._samples is not None and np.ndim(control) == 1),
            "wrenches": _as_data(wrenches, self._constant_wrenches is not None),
        }

    @property
    def segments(self) -> int:
        """Number of equal parts of the duration in each of which the commanded force is one smooth function."""
        return 1 if self._samples is None else len(self._samples)

    def enter(self, segment: int) -> None:
        """Command the forces of this segment from now on."""
        if self._samples is not None:
            self.held = self._samples[segment]

    @property
    def depend_on_state(self) -> bool:
        return self.held is None or self._passive is not None or self._push is not None

    @property
    def push_links(self) -> bool:
        """Whether there are wrenches."""
        return self._push is not None or self._constant_wrenches is not None

    def commanded(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv): what the controller asks for."""
        if self._control is None:
            assert self.held is not None
            return self.held
        tau = answer("the controller", self._control, t, q, v)
        if tau.shape != v.shape:
            if tau.shape[-1:] != (self._mech.nv,) or np.broadcast_shapes(tau.shape, v.shape) != v.shape:
                raise MechanismError(
                    f"at t = {t:.6g} s the controller gives forces of shape {tau.shape}, expected {v.shape}: one per "
                    "velocity coordinate, zero where there is no motor"
                )
            tau = np.broadcast_to(tau, v.shape)
        # An adaptive method may try a step that is far too long; it finds that out by itself.
        if not np.isfinite(tau).all() and np.isfinite(q).all() and np.isfinite(v).all():
            raise MechanismError(f"at t = {t:.6g} s the controller gives forces that are not finite: {tau}")
        return tau

    def all(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv): commanded and passive forces together."""
        tau = self.commanded(t, q, v)
        return tau if self._passive is None else tau + self._passive.forces(q, v)

    def wrenches(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """(..., n_links, 6): external wrenches in link frames, or None."""
        if self._push is None:
            return self._constant_wrenches
        given, shape = answer("wrenches", self._push, t, q, v), (*v.shape[:-1], self._mech.n_links, 6)
        if given.shape[-2:] != shape[-2:] or given.ndim > len(shape):
            raise MechanismError(f"at t = {t:.6g} s wrenches gives an array of shape {given.shape}, expected {shape}")
        if not np.isfinite(given).all() and np.isfinite(q).all() and np.isfinite(v).all():
            raise MechanismError(f"at t = {t:.6g} s wrenches gives numbers that are not finite: {given}")
        return np.broadcast_to(given, shape)

    def with_passive(self, q: np.ndarray, v: np.ndarray, commanded: np.ndarray) -> np.ndarray:
        """(..., nv): the same where the commanded forces are known already."""
        return commanded if self._passive is None else commanded + self._passive.forces(q, v)

    def derivatives(self, t: float, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """(d_q, d_v), each (nv, nv), of all forces along tangent directions and by v, for one state: exact for passive
        elements; functions of the user are differenced, which is enough for what implicit methods need it for.  A
        change of wrenches counts as the joint forces it is worth; that of q under constant ones is not counted."""
        n = self._mech.nv
        d_q, d_v = (np.zeros((n, n)) for _ in range(2)) if self._passive is None else self._passive.derivatives(q, v)
        if self._control is None and self._push is None:
            return d_q, d_v
        here = self._of_functions(t, q, q, v)
        for k, unit in enumerate(np.eye(n)):
            moved = tree.integrate(self._mech, q, unit, DIFFERENCE)
            d_q[:, k] += (self._of_functions(t, q, moved, v) - here) / DIFFERENCE
            step = DIFFERENCE * max(1.0, abs(v[k]))
            d_v[:, k] += (self._of_functions(t, q, q, v + step * unit) - here) / step
        return d_q, d_v

    def _of_functions(self, t: float, at: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(nv,): what functions of the user give at (q, v), as joint forces at the configuration ``at``."""
        tau = self.commanded(t, q, v)
        if self._push is None:
            return tau
        still = np.zeros(self._mech.nv)
        return tau - tree.inverse_dynamics(self._mech.spanning_tree, at, still, still, self.wrenches(t, q, v))


def _as_data(given: Any, constant: bool) -> Any:
    """None, numbers where they are constant, or that there were others."""
    if given is None:
        return None
    return real_numbers("given", given).tolist() if constant else "given"


def _samples(mech: Mechanism, control: Any, batch: tuple[int, ...]) -> np.ndarray:
    """(steps, ..., nv): commanded forces that are held, each for an equal part of the duration."""
    shape = (*batch, mech.nv)
    if control is None:
        return np.zeros((1, *shape))
    try:
        samples = real_numbers("control", control).copy()
    except MechanismError:
        raise TypeError(
            f"control must be a function of (t, q, v) or an array of forces, real numbers, not {control!r}"
        ) from None
    if samples.ndim <= 1:
        samples = samples[None]
    try:
        if samples.shape[-1:] != (mech.nv,) or len(samples) == 0 or samples.ndim > len(shape) + 1:
            raise ValueError
        middle = (1,) * (len(shape) + 1 - samples.ndim)  # the same for all states of a batch
        samples = np.broadcast_to(samples.reshape(len(samples), *middle, *samples.shape[1:]), (len(samples), *shape))
    except ValueError:
        raise MechanismError(
            f"control has shape {np.shape(control)}; expected ({mech.nv},), constant, or (steps, {mech.nv}), each row "
            "held for an equal part of the duration"
        ) from None
    if not np.isfinite(samples).all():
        raise MechanismError(f"row {int(np.argwhere(~np.isfinite(samples))[0][0])} of control is not finite")
    return samples


def _wrenches(mech: Mechanism, wrenches: Any, batch: tuple[int, ...]) -> np.ndarray:
    """(..., n_links, 6): constant wrenches."""
    shape = (*batch, mech.n_links, 6)
    try:
        array = real_numbers("wrenches", wrenches).copy()
        if array.shape[-2:] != shape[-2:]:
            raise ValueError
        array = np.broadcast_to(array, shape)
    except ValueError:  # a MechanismError is one
        raise MechanismError(
            f"wrenches must be an array ({mech.n_links}, 6), [moment; force] of every link in its own frame, or a "
            f"function of (t, q, v) that gives one, not {wrenches!r}"
        ) from None
    if not np.isfinite(array).all():
        raise MechanismError(f"wrenches has entries that are not finite: {array}")
    return array
