"""Units that compare forces and torques where mechanics leaves their distribution open.

A force counts as a torque with the length of the mechanism (``sizes.units``) as lever arm, so that the least forces are
the same in metres and in millimetres.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..mechanism import Mechanism, MechanismWarning, warn_caller
from ..mechanism.checks import names_of
from .sizes import lengths_among, units

SHARED = 1e-8  # of a unit force: a force that changes less at the same motion is unique up to round-off


def velocity_units(mech: Mechanism) -> np.ndarray:
    """(nv,): the mechanism's length for velocities in metres per second, 1 for others; forces times these are
    torques."""
    return units(mech).velocities


def mixes_units(mech: Mechanism, driven: np.ndarray) -> bool:
    """Whether these velocity coordinates have both metres and other units."""
    lengths = lengths_among(mech, "v")[driven]
    return bool(lengths.any() and not lengths.all())


def warn_of_mixed_units(mech: Mechanism, reach: np.ndarray, driven: np.ndarray, actuated: Sequence[str] | None) -> None:
    """Warn of coordinates whose forces are not unique because forces and torques share a load.

    reach    (..., p, k): generalized forces along the DoF per dimensionless force of the ``driven`` coordinates (k,)
    """
    lengths = lengths_among(mech, "v")[driven]
    finite = reach[np.isfinite(reach).all(axis=(-1, -2))]
    if not finite.size:
        return
    idle = np.eye(len(driven)) - np.linalg.pinv(finite, rcond=SHARED) @ finite
    mixed = np.abs(idle[..., lengths, :][..., ~lengths]).max(initial=0.0)
    if mixed < SHARED:
        return
    free = np.abs(idle).max(axis=tuple(range(idle.ndim - 1))) > SHARED
    names = [mech.v_names[k] for k in driven[free]]
    forces = [mech.v_names[k] for k in driven[free & lengths]]
    addition = "" if actuated is None else f", actuated={list(names_of(actuated))!r}"
    warn_caller(
        f"joint forces of mechanism {mech.name!r} are not unique{addition}: {', '.join(map(repr, names))} share the "
        f"load, {', '.join(map(repr, forces))} by forces and the others by torques; the least are taken, a force "
        f"counting as a torque with the lever arm {units(mech).length:.3g}: name as many coordinates as there are "
        "degrees of "
        f"freedom (such as actuated={names[0]!r}), or give weights",
        MechanismWarning,
    )
