"""The same mechanism in other libraries, where they are installed.

A peer is made from the mechanism's own numbers, so that every file that linkwise reads can be compared.  Mechanisms
that a library cannot hold as they are (loops, mimic joints, some kinds of joints) have no peer there.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Sequence

import linkwise as lw

from . import casadi, drake, jax_libraries, mujoco, pinocchio
from .protocol import STEP, STEPS, TASKS, Calls, Peer

__all__ = ["ALL", "STEP", "STEPS", "TASKS", "USUAL", "Calls", "Peer", "missing", "peers"]

#: Of each library, what must be importable and what makes a peer.
ALL: dict[str, tuple[tuple[str, ...], Callable[[lw.Mechanism, str], Peer | None]]] = {
    "Pinocchio": (("pinocchio",), pinocchio.peer),
    "MuJoCo": (("mujoco",), mujoco.peer),
    "Drake": (("pydrake",), drake.peer),
    "CasADi": (("casadi", "adam", "liecasadi"), casadi.peer),
    "adam": (("adam", "jax"), jax_libraries.adam),
    "frax": (("frax", "jax"), jax_libraries.frax),
    "JaxSim": (("jaxsim", "jax"), jax_libraries.jaxsim),
    "MJX": (("mujoco.mjx", "jax"), jax_libraries.mjx),
}
USUAL = ("Pinocchio", "MuJoCo")


def missing(library: str) -> list[str]:
    """What would have to be installed."""
    return [module for module in ALL[library][0] if not _is_installed(module)]


def _is_installed(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except ModuleNotFoundError:  # not even what it is part of
        return False


def peers(mech: lw.Mechanism, task: str, libraries: Sequence[str] = USUAL) -> list[Peer]:
    """What there is to compare a task with."""
    found = [ALL[name][1](mech, task) for name in libraries if not missing(name)]
    return [peer for peer in found if peer is not None]
