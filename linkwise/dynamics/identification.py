"""Inertial parameters: what a mechanism's torques tell about its masses.

The ten parameters of a link are those of the link with everything welded to it, about the origin of its frame and along
its axes, in the order [m, mx, my, mz, Ixx, Ixy, Iyy, Ixz, Iyz, Izz] (mx is mass times the x coordinate of its centre);
the links follow each other in the order of ``mech.link_names``.  Pinocchio has the same order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.store import of_algorithm
from ..display import mimebundle
from ..mechanism import Mechanism, require_mechanism
from ..mechanism.inertial_parameters import NAMES
from ..mechanism.inertial_parameters import inertial_parameters as _parameters_of
from ..mechanism.scales import scales
from .states import Float64Array
from .trees import random_state

PER_LINK = len(NAMES)
KEEPING_ORDER = (*range(1, PER_LINK), 0)  # of a link's parameters: the mass last, which an inner link can carry
POWERS_OF_LENGTH = (0, 1, 1, 1, 2, 2, 2, 2, 2, 2)  # in units of a link's parameters, besides mass
EXPLAINED = 1e-8  # what remains of a column of unit length, relative: less is round-off


@of_algorithm("regressor")
def regressor(mech: Mechanism, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> Float64Array:
    """(nv, 10 n_links): the matrix Y with ``inverse_dynamics = Y @ inertial_parameters + rotor_inertias * a``, gravity
    included; it depends on joints, poses and gravity, on no mass."""
    ...


def inertial_parameters(mech: Mechanism) -> Float64Array:
    """(10 n_links,): the mechanism's own numbers, in the order of the columns of ``regressor``;
    ``mech.with_inertial_parameters`` takes others."""
    require_mechanism(mech)
    return _parameters_of(mech)


def rotor_inertias(mech: Mechanism) -> Float64Array:
    """(nv,): the armature that each coordinate of v moves; that of a mimic joint counts with the mimicked joint's,
    times the ratio squared."""
    require_mechanism(mech)
    total = np.zeros(mech.nv)
    for body in mech.bodies:
        own = mech.place(body.joint)
        total[own.v_index] += np.array(body.armature) * own.ratio**2
    return total


@dataclass(frozen=True, eq=False)
class BaseParameters:
    """Combinations of inertial parameters that torques can tell apart, as few as there are.

    columns           (r,) the parameters that the combinations are named after, ascending
    grouping          (r, 10 n_links): ``grouping @ inertial_parameters`` are their values; the identity in ``columns``
    parameter_names   of all parameters, such as "link2.Izz"

    With Y from ``regressor``, ``Y[..., columns] @ (grouping @ p)`` is ``Y @ p`` for every p and every state.
    """

    columns: np.ndarray
    grouping: np.ndarray
    parameter_names: tuple[str, ...]

    def __len__(self) -> int:
        return len(self.columns)

    @property
    def names(self) -> tuple[str, ...]:
        """(r,): of the parameters that the combinations are named after."""
        return tuple(self.parameter_names[k] for k in self.columns)

    def __str__(self) -> str:
        """One combination per line, as a weighted sum."""
        lines = []
        for own, row in zip(self.columns, self.grouping, strict=True):
            others = [k for k in np.flatnonzero(row) if k != own]
            terms = [self.parameter_names[own], *(f"{row[k]:+.6g} {self.parameter_names[k]}" for k in others)]
            lines.append(" ".join(terms))
        return "\n".join(lines)

    _repr_mimebundle_ = mimebundle


def base_parameters(mech: Mechanism, seed: int = 0) -> BaseParameters:
    """The combinations of inertial parameters that joint forces depend on, found from regressors at random states.

    Links are looked at from the base outward: of each link the parameters are kept that those kept before do not
    explain, so what an outer link has in common with inner ones is counted with the inner ones.  This is the numerical
    form (Gautier, 1991) of the rules of Mayeda, Yoshida and Osuka (1990), for any joints.
    """
    require_mechanism(mech)
    size = PER_LINK * mech.n_links
    rng = np.random.default_rng(seed)
    own = scales(mech)
    q, v = random_state(mech, rng, (4 + 2 * size // max(mech.nv, 1),))
    rate = 1.0 / own.time_of(np.zeros(mech.nv))
    v, a = v * own.of_v * rate, rng.normal(size=v.shape) * own.of_v * rate**2
    # Dimensionless: joint forces over those of the mechanism's mass, length and time, parameters likewise.
    each = own.mass * own.length ** np.array(POWERS_OF_LENGTH)
    forces = regressor(mech, q * own.of_q, v, a) * own.of_v[:, None] / (own.mass * (own.length * rate) ** 2)
    stacked = (forces * np.tile(each, mech.n_links)).reshape(v.size, size)
    lengths = np.linalg.norm(stacked, axis=0)
    felt = lengths > EXPLAINED * lengths.max(initial=0.0)
    units = np.where(felt, stacked, 0.0) / np.where(felt, lengths, 1.0)
    kept = _independent(units)
    weights = np.linalg.lstsq(units[:, kept], units, rcond=None)[0]
    weights[np.abs(weights) < EXPLAINED] = 0.0
    weights[:, kept] = np.eye(len(kept))
    names = tuple(f"{link}.{parameter}" for link in mech.link_names for parameter in NAMES)
    sizes = lengths / np.tile(each, mech.n_links)  # of the columns of the regressor
    return BaseParameters(np.array(kept, dtype=int), weights * sizes / sizes[kept, None], names)


def _independent(units: np.ndarray) -> list[int]:
    """The columns kept, ascending: link by link, the next one in order whose unexplained part is not much smaller than
    the largest of that link, for the sake of round-off."""
    basis = np.zeros((len(units), 0))
    kept = []
    for start in range(0, units.shape[1], PER_LINK):
        rest = units[:, start : start + PER_LINK].copy()
        for _ in range(2):  # the second time removes the round-off of the first
            rest -= basis @ (basis.T @ rest)
        while True:
            lengths = np.linalg.norm(rest, axis=0)
            if lengths.max() < EXPLAINED:
                break
            k = next(k for k in KEEPING_ORDER if lengths[k] >= 0.5 * lengths.max())
            direction = rest[:, k] / lengths[k]
            direction -= basis @ (basis.T @ direction)
            direction /= np.linalg.norm(direction)
            basis = np.column_stack([basis, direction])
            rest -= np.outer(direction, direction @ rest)
            rest[:, k] = 0.0
            kept.append(start + k)
    return sorted(kept)
