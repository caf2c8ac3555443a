"""Links without mass that loops carry."""

from __future__ import annotations

import numpy as np

from ..mechanism import Mechanism, MechanismError
from ..mechanism.resistance import SINGULAR_TOLERANCE
from . import closed
from . import trees as tree


def has_inertia_with_loops(mech: Mechanism) -> bool:
    """Whether ``K* M K`` is positive where the loops are closed: whether all motions that they leave have inertia."""
    mech = mech.at_time(0.0) if mech.waits_for_time else mech
    try:
        q = closed.assemble(mech, mech.initial)
    except MechanismError:  # from there they cannot be closed, and nothing is known
        return False
    motions = closed.null_space(mech, q)
    inertia = motions.T @ tree.mass_matrix(mech.spanning_tree, q) @ motions
    if not (inertia.diagonal() > 0.0).all():
        return False
    scale = 1.0 / np.sqrt(inertia.diagonal())
    return not len(scale) or bool(np.linalg.eigvalsh(inertia * np.outer(scale, scale))[0] > SINGULAR_TOLERANCE)
