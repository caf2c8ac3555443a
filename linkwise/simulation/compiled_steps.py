"""Whether a motion is that of compiled steps, which alone have gradients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ..compiler.pipeline import compile
from ..compiler.store import stored
from ..constraints.sizes import sizes, units
from ..mechanics.elements.law import Acting
from ..mechanism import Mechanism, MechanismError
from .steps import ACTIVATION, PER_STEP, step_algorithm

STATE = ("q", "v", ACTIVATION)  # the last where actuators have states of their own
SLOW = 1e-3  # of the speed of a fall through the mechanism: slower velocities are compared with this one
SAME = {"float64": 1e-8, "float32": 1e-3}  # relative: what states may differ by and be the same


@dataclass(frozen=True)
class CompiledSteps:
    """Steps of mechanisms with loops one by one, as they are differentiated: near singular positions ``rollout`` goes
    other ways, by arcs and pseudo-inverses, of which there are no gradients."""

    mech: Mechanism
    method: str
    acting: Acting
    more: tuple[str, ...]
    parameters: tuple[str, ...]

    def verify(self, first: int, states: Sequence[np.ndarray], driven: Mapping[str, np.ndarray]) -> None:
        """Refuse states, reached after ``first`` steps and more, of which compiled steps do not lead to the next."""
        if not self.mech.loops or states[0].shape[-2] < 2:
            return
        algorithm = step_algorithm(self.mech, self.method, self.acting, self.more)
        kernel = stored(self.mech, self, lambda: compile(algorithm, self.mech, parameters=self.parameters))
        given = {**driven, **dict(zip(STATE, (x[..., :-1, :] for x in states), strict=False))}
        inputs = [_by_step(name, given[name], len(core)) for name, core in kernel.input_shapes.items()]
        with np.errstate(all="ignore"):
            reached, *_ = kernel(*(np.asarray(x, float) for x in inputs))
        there = [x[..., 1:, :] for x in states]
        off = self._differ(np.split(reached, np.cumsum([x.shape[-1] for x in there])[:-1], axis=-1), there)
        known = np.logical_and.reduce([np.isfinite(x).all(axis=-1) for x in there])
        off = np.atleast_2d(off & known).reshape(-1, off.shape[-1])
        if off.any():
            step = first + int(np.flatnonzero(off.any(axis=0))[0]) + 1
            raise MechanismError(
                f"rollout_vjp: at step {step} the motion of mechanism {self.mech.name!r} is not that of compiled "
                "steps: near singular positions rollout takes other ways, which have no gradients; take shorter "
                "motions, smaller steps or other states, and all arguments as rollout was given them"
            )

    def _differ(self, states: Sequence[np.ndarray], others: Sequence[np.ndarray]) -> np.ndarray:
        """(...): whether q, v, or activations if there are any, are not the same: lengths in units of the mechanism's
        size."""
        own, slow = units(self.mech), SLOW * sizes(self.mech).rate
        scales = ((own.positions, 1.0), (own.velocities, slow), (1.0, 1.0))
        found = []
        for x, y, (unit, least) in zip(states, others, scales, strict=False):
            gap, size = (np.abs(z / unit).max(axis=-1, initial=0.0) for z in (x - y, y))
            found.append(gap > SAME[y.dtype.name] * (least + size))
        return np.logical_or.reduce(found)


def _by_step(name: str, x: np.ndarray, core: int) -> np.ndarray:
    """An input of steps, whose values have ``core`` axes, with an axis of steps behind those of the batch."""
    if name in STATE:
        return x
    cut = x.ndim - core
    if name in PER_STEP:
        return np.take(x, 0, axis=cut - 1)  # each step is a record of its own
    return x.reshape((*x.shape[:cut], 1, *x.shape[cut:]))
