"""What a peer is: one task in another library, made from the mechanism's own numbers."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import linkwise as lw

#: A call of a library, and what it returns as linkwise has it.
Calls = tuple[Callable[[], Any], Callable[[], np.ndarray]]

MATRICES = ("mass_matrix", "mass_matrix_inverse")
DERIVATIVES = ("inverse_dynamics_derivatives", "forward_dynamics_derivatives")
ROLLOUT = "rollout"
CLOSED = "closed_forward_dynamics"  # of mechanisms with loops
STEP, STEPS = 1e-3, 100  # of rollouts: seconds, and how many
#: Inputs besides q of every task; results of several arrays are joined along their last axis.
TASKS = {
    "inverse_dynamics": ("v", "a"),
    "forward_dynamics": ("v", "tau"),
    "mass_matrix": (),
    "mass_matrix_inverse": (),
    "inverse_dynamics_derivatives": ("v", "a"),
    "forward_dynamics_derivatives": ("v", "tau"),
    ROLLOUT: ("v", "tau"),
}


class Peer(NamedTuple):
    """One task in another library.

    single   (q, v, u) of one state, as linkwise has them -> its ``Calls``
    batch    the same for arrays of states, one thread; None where the library has no such call
    how      what is called, in words
    most     states in a batch beyond which the library is not asked: its time or memory would end the run
    clock    of the calling thread, which waits for other programs without being charged for it; where the library
             works in threads of its own, the wall's
    """

    library: str
    single: Callable[..., Calls]
    batch: Callable[..., Calls] | None = None
    how: str = ""
    most: int = 1_000_000
    clock: Callable[[], float] = time.thread_time


def one_by_one(single: Callable[..., Calls], most: int = 256) -> Callable[..., Calls]:
    """A batch as a loop in Python over calls whose arrays exist beforehand."""

    def batch(*arrays: np.ndarray) -> Calls:
        made = [single(*state) for state in zip(*arrays, strict=True)]
        calls = [call for call, _ in made]

        def run() -> None:
            for call in calls:
                call()

        return run, lambda: np.array([result() for _, result in made])

    return batch


def is_plain_tree(mech: lw.Mechanism, *more: str) -> bool:
    """Whether a library that has hinges and slides, and neither loops nor mimic joints, can hold the mechanism.

    more   further joints that the library has: "ball", "free"
    """
    return not mech.loops and all(is_plain(body, *more) for body in mech.bodies)


def is_plain(body: Any, *more: str) -> bool:
    """Whether a body moves by a hinge, a slide or ``more``, and mimics nothing."""
    kind = body.kind
    fits = kind.only_step or ("ball" in more and kind.is_ball) or ("free" in more and kind.is_free)
    return bool(fits) and body.mimic is None


def is_fixed_arm(mech: lw.Mechanism) -> bool:
    """Revolute and prismatic joints on a fixed base, without rotor inertias."""
    bare = not any(np.any(body.armature) for body in mech.bodies)
    return bare and is_plain_tree(mech)
