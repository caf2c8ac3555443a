"""The robots of the installed package example-robot-data, and which of them no reader accepts."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest

import linkwise as lw

pin = pytest.importorskip("pinocchio")

# example-robot-data and pin are installed under one prefix: <prefix>/lib/python3.x/site-packages/pinocchio.
ROBOTS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
FILES = sorted(ROBOTS.rglob("*.urdf"))

# Refused by Pinocchio as well, for the same reasons; not every release of the package has them.
REFUSED = {
    "falcon.urdf": "child link 'Z_propeller' does not exist",
    "ur3.urdf": "the robot has no <link>",
}
READABLE = [file for file in FILES if file.name not in REFUSED]


def robot(path: str) -> Path:
    """The file at ``path`` below the folder of robots."""
    return ROBOTS / path


def load(file: Path, floating_base: bool = False) -> lw.Mechanism:
    """The robot as it is in its file, without the warnings about the inertias that some files hold."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(file, floating_base=floating_base)


large_robots_are_slow = pytest.mark.slow_cases(
    "tiago_dual",
    "centauro",
    "g1_29dof_with_hand",
    "alex_psyonic",
    "tiago-",
    "talos_reduced_",
    "talos_full_v2",
    "icub-",
    "human-",
    "romeo_small",
    "simple_humanoid_classical",
    "tiago_pro",
    "alex_sake",
    "talos_reduced_corrected",
    "talos_reduced_box",
    "g1_29dof",
    "-fixed]",  # each is there on a free base
)
