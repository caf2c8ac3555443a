"""Forces during a motion: controllers, zero-order hold, force elements, wrenches on links."""

from __future__ import annotations

import math
import numbers
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..compiler.runtime.arrays import UnreadableArrayError, plain
from ..dynamics import trees as tree
from ..dynamics.by_actuator import inputs_by_actuator, unless_empty
from ..dynamics.by_joint import rates_by_joint
from ..dynamics.resolved import Resolved, no_controls
from ..dynamics.states import real_numbers
from ..mechanism import Mechanism, MechanismError
from ..mechanism.scales import scales

Function = Callable[[float, np.ndarray, np.ndarray], Any]
REAL = "biuf"  # kinds of dtypes that are real numbers
EARLY = 1e-9  # of a period: times this near to its end are at its end
DIFFERENCE = 1e-7  # dimensionless step by which a controller is differenced


@dataclass(frozen=True)
class Held:
    """A function of (t, q, v) evaluated at multiples of ``period`` and held in between."""

    function: Function
    period: float

    def __repr__(self) -> str:
        return f"<{self.function!r}, held for {self.period:g} s>"

    def __call__(self, t: float, q: np.ndarray, v: np.ndarray) -> Any:
        return self.function(t, q, v)


def held(control: Function, period: float) -> Held:
    """A digital controller: ``control(t, q, v)`` is evaluated at multiples of ``period`` seconds (zero-order hold).

    ``simulate`` takes it as ``control`` and ``ctrl``, ``rollout`` as ``tau`` and ``ctrl``.  In rollouts the period is a
    whole number of steps, and q and v have all states of the batch.
    """
    if not callable(control):
        raise TypeError(f"held takes a function of (t, q, v), not {control!r}")
    if isinstance(period, bool) or not isinstance(period, numbers.Real) or not 0.0 < period < math.inf:
        raise MechanismError(f"the period of a held controller must be a positive number of seconds, not {period!r}")
    return Held(control, float(period))


def evaluate(who: str, function: Function, t: float, q: np.ndarray, v: np.ndarray, kinds: str = REAL) -> np.ndarray:
    """``function(t, q, v)`` of the user as a float array; raises if its dtype is not one of ``kinds``.

    Arguments and result are copied: a function may change or keep its arguments, and return the same array every time.
    ``who`` names the function in errors.
    """
    result = function(t, q.copy(), v.copy())
    if isinstance(result, Mapping):
        made = ": linkwise.forces.wrenches_at makes one of pushes on links and frames" if who == "wrenches" else ""
        raise MechanismError(f"at t = {t:.6g} s {who} gives a dictionary, but an array of numbers is needed{made}")
    try:
        values = np.asarray(plain(result))
    except UnreadableArrayError as unread:
        raise MechanismError(f"at t = {t:.6g} s {who} gives an array that {unread}") from None
    except ValueError as ragged:
        raise MechanismError(f"at t = {t:.6g} s {who} gives no array: {ragged}") from None
    if values.dtype.kind not in kinds:
        raise MechanismError(
            f"at t = {t:.6g} s {who} gives {result!r}, of type {values.dtype}, but real numbers are needed"
        )
    return np.array(values, dtype=float)


class Forces:
    """tau(t, q, v): commanded joint forces, forces of elements, and wrenches on links.

    held        commanded force of the present segment; None if it depends on the state
    held_ctrl   control inputs of the present segment; None if they depend on the state
    noted       the plain numbers among these, for files
    time_unit   of the motion (``Settings``)
    """

    time_unit: float = 1.0

    def __init__(
        self,
        mech: Mechanism,
        control: Any,
        acting: Resolved | None,
        batch: tuple[int, ...],
        wrenches: Any = None,
        ctrl: Any = None,
    ):
        self._mech, self._batch, self._acting = mech, batch, acting
        commands = {"control": control, "ctrl": unless_empty(mech, ctrl)}
        self._asked = {name: function for name, function in commands.items() if isinstance(function, Held)}
        control, ctrl = (None if name in self._asked else x for name, x in commands.items())
        ctrl = inputs_by_actuator(mech, ctrl)
        self._push: Function | None = wrenches if callable(wrenches) else None
        self._constant_wrenches = None if self._push or wrenches is None else _wrenches(mech, wrenches, batch)
        self._control: Function | None = control if callable(control) else None
        self._samples: np.ndarray | None = None if self._control else _samples("control", mech.nv, control, batch)
        self.held: np.ndarray | None = None if self._samples is None else self._samples[0]
        self.n_ctrl, self.n_activation = (acting.n_ctrl, acting.n_activation) if acting else (0, 0)
        if commands["ctrl"] is not None and not self.n_ctrl:
            raise MechanismError(no_controls(mech, "ctrl"))
        self._ctrl: Function | None = _expand_actuators(mech, ctrl) if callable(ctrl) else None
        self._ctrl_samples = None if self._ctrl else _samples("ctrl", self.n_ctrl, ctrl, batch)
        self.held_ctrl = None if self._ctrl_samples is None else self._ctrl_samples[0]
        counts = {len(x) for x in (self._samples, self._ctrl_samples) if x is not None and len(x) > 1}
        if len(counts) > 1:
            rows, inputs = (0 if x is None else len(x) for x in (self._samples, self._ctrl_samples))
            raise MechanismError(
                f"control has {rows} rows and ctrl {inputs}, each held for an equal part of the duration: give equally "
                "many"
            )
        if len({function.period for function in self._asked.values()}) > 1 or (self._asked and counts):
            raise MechanismError("control and ctrl, where one is held, must have the same period, or one be constant")
        self.noted: dict[str, Any] = {
            "control": _plain_numbers(commands["control"], self._samples is not None and np.ndim(control) == 1),
            "wrenches": _plain_numbers(wrenches, self._constant_wrenches is not None),
            "ctrl": _plain_numbers(ctrl, self._ctrl_samples is not None and np.ndim(ctrl) == 1),
        }
        self.noted |= dict.fromkeys(self._asked, "given")

    @property
    def _segments(self) -> int:
        """Number of rows of commands; each is held for an equal part of the duration."""
        return max(len(x) if x is not None else 1 for x in (self._samples, self._ctrl_samples))

    @property
    def change(self) -> bool:
        """Whether held inputs change during a motion."""
        return bool(self._asked) or self._segments > 1

    def boundaries(self, start: float, end: float) -> np.ndarray:
        """Times between which commanded forces are smooth: ends of rows, and evaluations of held controllers."""
        if not self._asked:
            return np.linspace(start, end, self._segments + 1)
        period = next(iter(self._asked.values())).period
        first, last = math.floor(start / period + EARLY) + 1, math.ceil(end / period - EARLY)
        return np.array([start, *(period * k for k in range(first, last)), end])

    def enter(self, segment: int, t: float, q: np.ndarray, v: np.ndarray) -> None:
        """Enter a segment: select its commanded forces, and evaluate held controllers at its start."""
        if self._samples is not None:
            self.held = self._samples[segment if len(self._samples) > 1 else 0]
        if self._ctrl_samples is not None:
            self.held_ctrl = self._ctrl_samples[segment if len(self._ctrl_samples) > 1 else 0]
        if "control" in self._asked:
            self.held = self._forces_of(self._asked["control"], t, q, v)
        if "ctrl" in self._asked:
            self.held_ctrl = self._inputs_of(_expand_actuators(self._mech, self._asked["ctrl"]), t, q, v)

    @property
    def depend_on_state(self) -> bool:
        return self.held is None or self._acting is not None or self._push is not None

    @property
    def acting(self) -> Resolved | None:
        """The force elements."""
        return self._acting

    @property
    def elements(self) -> Resolved | None:
        """The force elements if commands and wrenches are constant within a segment, else None."""
        constant = self.held is not None and self.held_ctrl is not None and self._push is None
        return self._acting if constant else None

    @property
    def push_links(self) -> bool:
        """Whether there are wrenches on links."""
        return self._push is not None or self._constant_wrenches is not None

    def commanded(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., nv): commanded joint forces."""
        if self._control is None:
            assert self.held is not None
            return self.held
        return self._forces_of(self._control, t, q, v)

    def _expand_joints(self, values: Any) -> Any:
        """Forces of a controller as an array; {joint: force} is expanded."""
        if isinstance(values, Mapping):
            return rates_by_joint(self._mech, "the controller's force", values, 0.0)
        return values

    def _forces_of(self, control: Function, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        tau = evaluate("the controller", lambda *state: self._expand_joints(control(*state)), t, q, v)
        if tau.shape != v.shape:
            if tau.shape[-1:] != (self._mech.nv,) or np.broadcast_shapes(tau.shape, v.shape) != v.shape:
                raise MechanismError(
                    f"at t = {t:.6g} s the controller gives forces of shape {tau.shape}, expected {v.shape}: one per "
                    "velocity coordinate, zero where there is no motor"
                )
            tau = np.broadcast_to(tau, v.shape)
        # An adaptive method may try a step that is far too long; its error control then rejects the step.
        if not np.isfinite(tau).all() and np.isfinite(q).all() and np.isfinite(v).all():
            raise MechanismError(f"at t = {t:.6g} s the controller gives forces that are not finite: {tau}")
        return tau

    def controls(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(..., n_ctrl): control inputs of the actuators."""
        if self._ctrl is None:
            assert self.held_ctrl is not None
            return self.held_ctrl
        return self._inputs_of(self._ctrl, t, q, v)

    def _inputs_of(self, ctrl: Function, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        inputs, shape = evaluate("ctrl", ctrl, t, q, v), (*v.shape[:-1], self.n_ctrl)
        if inputs.shape[-1:] != shape[-1:] or inputs.ndim > len(shape):
            raise MechanismError(
                f"at t = {t:.6g} s ctrl gives an array of shape {inputs.shape}, expected {shape}: one number per "
                "actuator of mech.forces.actuator_names"
            )
        if not np.isfinite(inputs).all() and np.isfinite(q).all() and np.isfinite(v).all():
            raise MechanismError(f"at t = {t:.6g} s ctrl gives numbers that are not finite: {inputs}")
        return np.broadcast_to(inputs, shape)

    def all(self, t: float, q: np.ndarray, v: np.ndarray, activation: np.ndarray | None = None) -> np.ndarray:
        """(..., nv): sum of commanded forces and forces of elements."""
        return self.all_and_rates(t, q, v, activation)[0]

    def all_and_rates(
        self, t: float, q: np.ndarray, v: np.ndarray, activation: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Sum of commanded forces and forces of elements, and the rates of the activations."""
        tau = self.commanded(t, q, v)
        if self._acting is None:
            return tau, None
        forces, rates = self._acting.forces_and_rates(q, v, self.controls(t, q, v), activation)
        return tau + forces, rates

    def wrenches(self, t: float, q: np.ndarray, v: np.ndarray) -> np.ndarray | None:
        """(..., n_links, 6): external wrenches in link frames, or None."""
        if self._push is None:
            return self._constant_wrenches
        pushes, shape = evaluate("wrenches", self._push, t, q, v), (*v.shape[:-1], self._mech.n_links, 6)
        if pushes.shape[-2:] != shape[-2:] or pushes.ndim > len(shape):
            raise MechanismError(f"at t = {t:.6g} s wrenches gives an array of shape {pushes.shape}, expected {shape}")
        if not np.isfinite(pushes).all() and np.isfinite(q).all() and np.isfinite(v).all():
            raise MechanismError(f"at t = {t:.6g} s wrenches gives numbers that are not finite: {pushes}")
        return np.broadcast_to(pushes, shape)

    def sample_member(
        self,
        times: np.ndarray,
        state: tuple[np.ndarray, np.ndarray],
        activation: np.ndarray,
        batch: tuple[np.ndarray, np.ndarray],
        index: tuple[int, ...],
    ) -> tuple[np.ndarray, np.ndarray | None, np.ndarray | None]:
        """Joint forces (k, nv), rates of activations and wrenches of one member of a batch, at k times.  ``state`` is
        (k, nq), (k, nv).  Functions of the user get the whole batch: ``batch`` with this member replaced.  Rates or
        wrenches are None if the motion has none."""

        def sampled(function: Function | None, held: np.ndarray | None, at: Callable[..., Any]) -> Any:
            if function is None:
                return None if held is None else held[index]
            rows = []
            for t, *parts in zip(times.tolist(), *state, strict=True):
                stacked = [np.array(x) for x in batch]
                for x, member in zip(stacked, parts, strict=True):
                    x[index] = member
                rows.append(at(t, *stacked)[index])
            return np.array(rows)

        tau = sampled(self._control, self.held, self.commanded)
        wrenches = sampled(self._push, self._constant_wrenches, self.wrenches)
        if self._acting is None:
            return np.broadcast_to(tau, state[1].shape), None, wrenches
        ctrl = sampled(self._ctrl, self.held_ctrl, self.controls)
        forces, rates = self._acting.forces_and_rates(*state, ctrl, activation)
        return tau + forces, rates, wrenches

    def add_elements(
        self, q: np.ndarray, v: np.ndarray, commanded: np.ndarray, ctrl: np.ndarray, activation: np.ndarray
    ) -> np.ndarray:
        """(..., nv): sum of known commanded forces and forces of elements."""
        if self._acting is None:
            return commanded
        return commanded + self._acting.forces(q, v, ctrl, activation)

    def derivatives(
        self, t: float, q: np.ndarray, v: np.ndarray, activation: np.ndarray | None = None
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Derivatives of [joint forces; rates of activations] of one state by q, v and activations.  Those by q are
        along tangent directions.  They are exact for elements of the mechanism; functions of the user are differenced,
        which is accurate enough for implicit methods.  Changes of wrenches count by their joint forces; the change of q
        under constant wrenches is left out."""
        n, more = self._mech.nv, self.n_activation
        d_q, d_v = (np.zeros((n + more, n)) for _ in range(2))
        by_ctrl, by_activation = np.zeros((n + more, self.n_ctrl)), np.zeros((n + more, more))
        if self._acting is not None:
            d_q, d_v, by_ctrl, by_activation = self._acting.all_derivatives(q, v, self.controls(t, q, v), activation)
        if self._control is None and self._push is None and self._ctrl is None:
            return d_q, d_v, by_activation
        by_given = np.hstack([np.eye(n + more, n), by_ctrl])
        here = self._user_forces(t, q, q, v)
        d_q, d_v = d_q.copy(), d_v.copy()
        of_v = scales(self._mech).of_v
        for k, unit in enumerate(np.eye(n)):
            step = DIFFERENCE * of_v[k]
            moved = tree.integrate(self._mech, q, unit, step)
            d_q[:, k] += by_given @ (self._user_forces(t, q, moved, v) - here) / step
            step = DIFFERENCE * max(of_v[k] / self.time_unit, abs(v[k]))
            d_v[:, k] += by_given @ (self._user_forces(t, q, q, v + step * unit) - here) / step
        return d_q, d_v, by_activation

    def _user_forces(self, t: float, at: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """(nv + n_ctrl,): joint forces and control inputs of functions of the user at (q, v).  Wrenches count as joint
        forces at the configuration ``at``."""
        tau = self.commanded(t, q, v)
        if self._push is not None:
            still = np.zeros(self._mech.nv)
            tau = tau - tree.inverse_dynamics(self._mech.spanning_tree, at, still, still, self.wrenches(t, q, v))
        return np.concatenate([tau, self.controls(t, q, v)])


def _expand_actuators(mech: Mechanism, ctrl: Function) -> Function:
    """A function of control inputs with results by actuator name expanded to arrays."""
    return lambda t, q, v: inputs_by_actuator(mech, ctrl(t, q, v))


def _plain_numbers(values: Any, constant: bool) -> Any:
    """None, constant values as plain numbers, or the marker "given" for functions and tables."""
    if values is None:
        return None
    return real_numbers("given", values).tolist() if constant else "given"


def _samples(name: str, size: int, values: Any, batch: tuple[int, ...]) -> np.ndarray:
    """(steps, ..., size): rows of commanded forces or control inputs, each held for an equal part of the duration."""
    shape = (*batch, size)
    if values is None:
        return np.zeros((1, *shape))
    noun = "forces" if name == "control" else "control inputs"
    try:
        samples = real_numbers(name, values).copy()
    except MechanismError:
        raise TypeError(
            f"{name} must be a function of (t, q, v) or an array of {noun}, real numbers, not {values!r}"
        ) from None
    if samples.ndim <= 1:
        samples = samples[None]
    try:
        if samples.shape[-1:] != (size,) or len(samples) == 0 or samples.ndim > len(shape) + 1:
            raise ValueError
        middle = (1,) * (len(shape) + 1 - samples.ndim)  # the same for all states of a batch
        samples = np.broadcast_to(samples.reshape(len(samples), *middle, *samples.shape[1:]), (len(samples), *shape))
    except ValueError:
        raise MechanismError(
            f"{name} has shape {np.shape(values)}; expected ({size},), constant, or (steps, {size}), each row "
            "held for an equal part of the duration"
        ) from None
    if not np.isfinite(samples).all():
        raise MechanismError(f"row {int(np.argwhere(~np.isfinite(samples))[0][0])} of {name} is not finite")
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
            f"function of (t, q, v) that gives one, not {wrenches!r}: linkwise.forces.wrenches_at(mech, "
            f"{{frame: [moment; "
            "force]}}) makes one"
        ) from None
    if not np.isfinite(array).all():
        raise MechanismError(f"wrenches has entries that are not finite: {array}")
    return array
