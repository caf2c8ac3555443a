"""Massless links that loops support."""

from __future__ import annotations

import numpy as np

from .. import constraints
from ..mechanism import Mechanism, MechanismError
from ..mechanism.resistance import SINGULAR_TOLERANCE
from . import trees as tree


def has_inertia_with_loops(mech: Mechanism) -> bool | None:
    """Whether ``K* M K`` is positive definite with closed loops: all allowed motions have inertia.  None if the loops
    do not close from the initial configuration."""
    if not mech.loops:
        return not mech.parameters.singular_joints
    mech = mech.constraints.at_time(0.0) if mech.constraints.waits_for_time else mech
    try:
        q = constraints.assemble(mech, mech.initial)
    except MechanismError:
        return None
    motions = constraints.null_space(mech, q)
    inertia = motions.T @ tree.mass_matrix(mech.spanning_tree, q) @ motions
    largest = inertia + _beyond(mech.spanning_tree, q, motions)
    if not (largest.diagonal() > 0.0).all():
        return False
    scale = 1.0 / np.sqrt(largest.diagonal())
    sizes, directions = np.linalg.eigh(largest * np.outer(scale, scale))
    if not len(sizes) or sizes[0] <= SINGULAR_TOLERANCE:
        return not len(sizes)
    whitened = scale[:, None] * directions / np.sqrt(sizes)  # motions scaled to unit reference inertia
    return bool(np.linalg.eigvalsh(whitened.T @ inertia @ whitened)[0] > SINGULAR_TOLERANCE)


def _beyond(mech: Mechanism, q: np.ndarray, motions: np.ndarray) -> np.ndarray:
    """(k, k): the increase of ``K* M K`` if links had their largest moment of inertia about all axes.  This is the
    scale of its rounding: the inertia of a rod about its own axis is the difference of such larger numbers."""
    rotations = tree.link_velocities(mech, q, motions.T)[..., :3]
    inertias = np.array([body.inertia for body in mech.bodies])
    missing = np.abs(np.linalg.eigvalsh(inertias)).max(axis=-1)[:, None, None] * np.eye(3) - inertias
    inertia: np.ndarray = np.einsum("anx,nxy,bny->ab", rotations, missing, rotations)
    return inertia
