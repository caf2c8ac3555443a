"""Bodies and robots on the ground."""

from __future__ import annotations

import math
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw

RIGID = {"stiffness": 1e5, "dissipation": 0.0, "damping": math.inf, "smoothing": 0.0}


def puck(**numbers: float) -> lw.Mechanism:
    """A body of 2 kg that moves along x and z without rotating, a sphere of 0.1 m around it."""
    builder = lw.Builder().link("carriage").link("puck", 2.0)
    builder.joint("z", lw.Prismatic((0, 0, 1)), "ground", "carriage").joint(
        "x", lw.Prismatic((1, 0, 0)), "carriage", "puck"
    )
    return builder.shape("skin", "puck", "sphere", 0.1).build().with_ground(**numbers)


def free_body(kind: str, size: tuple[float, ...], **numbers: float) -> lw.Mechanism:
    builder = lw.Builder().link("body", 2.0, inertia=(0.02, 0.015, 0.01)).joint("free", lw.Floating(), "ground", "body")
    return builder.shape("skin", "body", kind, size).build().with_ground(**numbers)


def energy(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, explicit: float = False) -> np.ndarray:
    held = lw.contact.contact_energy(mech, q, explicit=explicit)
    return lw.kinetic_energy(mech, q, v) + lw.potential_energy(mech, q) + held


def package_file(package: str, path: str) -> Path:
    spec = find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        pytest.skip(f"{package} is not installed")
    return Path(spec.submodule_search_locations[0]) / path


def of_package(package: str, path: str) -> lw.Mechanism:
    return quietly(package_file(package, path))


def quietly(file: Path, **options) -> lw.Mechanism:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(file, **options)
