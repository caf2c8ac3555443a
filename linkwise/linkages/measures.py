"""Numbers that are zero in singular positions of closed mechanisms: of inputs, of outputs, of the loops themselves."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from ..constraints.named_coordinates import velocity_map
from ..mechanism import MechanismError
from ..mechanism.checks import names_of
from .manifolds import Family

ROUNDED = 1e-12  # of the largest singular value: a smaller one is zero but for rounding, and has no sign
Kind = Literal["constraint", "input", "output"]


class Measure:
    """A signed measure that vanishes in singular positions: the smallest singular value of rows N, with the sign of
    det N, where N acts on a null-space basis of the loops. It is continuous along a motion if the basis is. Values
    within rounding are set to zero, as their sign would be noise.
    """

    def __init__(self, kind: Kind, names: Sequence[str], manifold: Family):
        noun = f"{kind}s"
        count, self.rows = velocity_map(manifold.mech, names, noun)
        self.kind = kind
        if count != manifold.dof:
            raise MechanismError(
                f"mechanism {manifold.mech.name!r} has {manifold.dof} degree{'s' * (manifold.dof != 1)} of freedom, "
                f"but {noun} name {count} coordinate{'s' * (count != 1)}: name as many as there are degrees of freedom"
            )

    def __call__(self, q: np.ndarray, basis: np.ndarray) -> np.ndarray:
        """(...): at q (..., nq) with the basis (..., nv, dof)."""
        matrix = self.rows(q) @ basis
        s = np.linalg.svd(matrix, compute_uv=False)
        least = np.where(s[..., -1] > ROUNDED * s[..., 0], s[..., -1], 0.0)
        return np.where(np.linalg.det(matrix) < 0.0, -least, least)


def measures(
    manifold: Family, inputs: Sequence[str], outputs: Sequence[str], hold: Sequence[str] = ()
) -> list[Measure]:
    """Measures of the inputs and of the outputs, if given. Locked coordinates count as given where fewer are named
    than there are degrees of freedom.
    """
    named: list[tuple[Kind, list[str]]] = [("input", list(names_of(inputs))), ("output", list(names_of(outputs)))]
    for kind, names in named:
        if names and velocity_map(manifold.mech, names, f"{kind}s")[0] < manifold.dof:
            names += [name for name in names_of(hold) if name not in names]
    return [Measure(kind, names, manifold) for kind, names in named if names]


def same_sense(reference: np.ndarray, basis: np.ndarray) -> np.ndarray:
    """(...): 1 where two bases of neighbouring planes are turned alike, -1 where one is the other's mirror image."""
    return np.where(np.linalg.det(np.swapaxes(reference, -1, -2) @ basis) < 0.0, -1.0, 1.0)
