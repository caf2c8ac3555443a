"""Motions of mechanisms that drives move: time is one more number of the state, and loops are where it puts them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from ..compiler.pipeline import compile
from ..compiler.store import stored
from ..dynamics import closed
from ..dynamics import trees as tree
from ..dynamics.closed.dynamics import RELIABLE
from ..mechanism import Mechanism
from .singular_positions import SingularPositions
from .systems import JointVelocities, Stepper

DEAD_CENTRE = 1e-3  # of the conditioning at the start: with less, drives ask for velocities without bound


def why_not_followed(mech: Mechanism, start: np.ndarray, q: np.ndarray, t: float) -> str:
    """What is said of a motion that ends at q where drives hold it in a singular position; empty elsewhere."""
    now = mech.at_time(t)
    rank = closed.generic_rank(now, start)
    if not rank or closed.conditioning(now, q, rank) > DEAD_CENTRE * closed.conditioning(now, start, rank):
        return ""
    names = ", ".join(map(repr, mech.driven))
    plural = "s" if len(mech.driven) > 1 else ""
    return (
        f"it is in a dead centre (a singular position) there, through which drive{plural} {names} cannot move it: "
        "lw.linkages.range_of_motion(mech.without_drives(), joint) says how far a joint goes. "
    )


class DrivenVelocities(JointVelocities):
    """x = [q, v, activations, t].

    ``mech`` has drives that are functions of time, the mechanism of ``manifold`` is what they make of it at the start.
    """

    corrects: bool

    @property
    def units(self) -> np.ndarray:
        return np.append(super().units, self.forces.time_unit)

    def start(self, q: np.ndarray, v: np.ndarray, activation: np.ndarray | None = None, t: Any = 0.0) -> np.ndarray:
        return np.concatenate([super().start(q, v, activation), np.broadcast_to(t, (*q.shape[:-1], 1))], axis=-1)

    def activation(self, x: np.ndarray) -> np.ndarray:
        return super().activation(x)[..., :-1]

    def at_state(self, state: tuple[np.ndarray, np.ndarray], x: np.ndarray) -> np.ndarray:
        return self.start(*state, self.activation(x), x[..., -1:])

    def rates(self, t: float, x: np.ndarray) -> np.ndarray:
        self._count[0] += 1
        q, v = self.state(x)
        tau, changes = self.forces.all_and_rates(t, q, v, self.activation(x))
        a = self.accelerations(np.array(t), q, v, tau, self.forces.wrenches(t, q, v))
        moved = v if self.mech.rates_are_velocities else tree.coordinate_rates(self.mech, q, v)
        parts = [moved, a, np.ones((*q.shape[:-1], 1))]
        return np.concatenate(parts if changes is None else [*parts[:2], changes, parts[2]], axis=-1)

    def accelerations(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> np.ndarray:
        manifold = self.manifold
        plain = manifold.formulation == "elimination" and manifold.baumgarte is None
        if plain and not closed.redundancy(manifold.mech).blocks:
            ports, pushes = ((), ()) if wrenches is None else (("wrenches",), (wrenches,))
            a, reliability, _ = self._kernel("closed_motion", ports)(q, v, tau, *pushes, self._asked(t, q))
            if np.min(reliability, initial=np.inf) > RELIABLE:
                return a
        return self._moment_by_moment(t, q, v, tau, wrenches)

    def _moment_by_moment(
        self, t: np.ndarray, q: np.ndarray, v: np.ndarray, tau: np.ndarray, wrenches: np.ndarray | None
    ) -> np.ndarray:
        """Accelerations by the functions for one moment, where compiled elimination does not serve."""
        own = self.manifold
        if t.ndim:
            batch = [None] * len(t) if wrenches is None else wrenches
            tau = np.broadcast_to(tau, v.shape)
            rows = zip(t, q, v, tau, batch, strict=True)
            return np.array([self._moment_by_moment(np.array(one), *rest) for one, *rest in rows])
        now = self.mech.at_time(float(t))
        return closed.accelerations(now, q, v, tau, own.formulation, own.baumgarte, wrenches, rank=own.singular.rank)

    def corrected(self, x: np.ndarray, states: np.ndarray | None = None) -> np.ndarray:
        if states is not None:
            x = x[states]
        if not x.size or not self.corrects:
            return x
        q, v = self.state(x)
        if not self.manifold.projects:
            return self.at_state((self.manifold.with_unit_quaternions(q), v), x)
        t = x.reshape(-1, x.shape[-1])[0, -1]
        if not closed.redundancy(self.manifold.mech).blocks:
            project, asked = self._kernel("closed_projection"), self._asked(np.array(t), q)
            there = project(q, v, asked)[0][..., : self.mech.nq]
            state, reliability = project(there, v, asked)  # its velocities are those of where it starts from
            if np.min(reliability) > RELIABLE:
                return self.at_state((state[..., : self.mech.nq], state[..., self.mech.nq :]), x)
        return self.at_state(closed.project(self.mech.at_time(t), q, v, tolerance=self.manifold.tolerance), x)

    def _asked(self, t: np.ndarray, q: np.ndarray) -> np.ndarray:
        """(..., number of driven, 3): what drives ask for, at one time or at each of the first axis of q."""
        asked = np.array([self.mech.drives_at(one) for one in t.ravel()]).reshape(*t.shape, -1, 3)
        return asked.reshape(*t.shape, *(1,) * (q.ndim - 1 - t.ndim), *asked.shape[-2:]) if t.ndim else asked

    def _kernel(self, name: str, ports: tuple[str, ...] = ()) -> Callable[..., Any]:
        """Of an algorithm of loops, which takes what drives ask for last."""
        mech = self.mech
        return stored(
            mech, ("driven", name, ports), lambda: compile(name, mech, parameters=("drive",), ports=ports).function
        )

    @property
    def velocity_size(self) -> int:
        return super().velocity_size + 1

    @property
    def singular(self) -> SingularPositions | None:
        return None

    def compiled_step(self, method: str) -> Stepper | None:
        return None

    def jacobian(self) -> Callable[[float, np.ndarray], np.ndarray] | None:
        return None
