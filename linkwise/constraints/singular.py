"""Singular positions, where generically independent constraints become dependent: conditioning, and time to the next.

Singular values are those of G with lengths in units of the loops' sizes (``sizes.py``): metres and radians do not
compare, and a mechanism is as near a singular position as the same one in millimetres.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..dynamics import trees as tree
from ..dynamics.states import ByJoint, Float64Array, checked_arrays
from ..mechanism import Mechanism
from .assembly import AssemblyError, assemble, generic_rank
from .decomposition import decompose
from .equations import counted_jacobian, one_state
from .sizes import sizes

TRIALS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0)  # rad, or sizes of loops: of random changes of a configuration
SUSPICIOUS = 1e-3  # ``conditioning`` above which no comparison with its usual value is needed
AT_SINGULAR = 1e-5  # of the usual conditioning: loops closed to 1e-11 leave half of the digits in singular positions
TEST_STEP = 1e-6  # rad, or sizes of loops: difference step for the rate of change of G


def time_to_singular(mech: Mechanism, q: ByJoint, v: ByJoint | None, rank: int | None = None) -> tuple[float, float]:
    """Seconds until the motion (q, v) of one state meets a singular position, by linear extrapolation of singular
    values; and the present value of the one that vanishes first.

    Singular values are those of G relative to the largest, lengths in units of the loops' sizes.  The result is
    infinity and 1 if none falls, infinity and 0 in a singular position.  ``rank`` is that of G elsewhere,
    ``generic_rank`` if not given.
    """
    q, v = one_state("time_to_singular", mech, q=q, v=v)
    rank = int(generic_rank(mech, q)) if rank is None else rank
    here = _dimensionless(mech, q)
    parts = decompose(here)
    if parts.rank < rank:
        return math.inf, 0.0
    speed = np.abs(v / sizes(mech).columns).max(initial=0.0)
    if not rank or not speed:
        return math.inf, 1.0
    ahead = _dimensionless(mech, tree.integrate(mech, q, v, TEST_STEP / speed))
    changes = (ahead - here) * (speed / TEST_STEP)
    s, falls = parts.s[:rank], -np.einsum("mi,mn,ni->i", parts.u[:, :rank], changes, parts.v[:, :rank])
    times = np.divide(s, falls, out=np.full(rank, math.inf), where=falls > 0.0)
    first = int(np.argmin(times))
    return float(times[first]), float(s[first] / s[0]) if times[first] < math.inf else 1.0


def conditioning(mech: Mechanism, q: ByJoint, rank: Any) -> Float64Array:
    """(...): the smallest of the first ``rank`` singular values of G at q relative to the largest, lengths in units of
    the loops' sizes: 0 in a singular position, 1 without constraints.  ``rank`` (...) is that of ``generic_rank``."""
    (q,) = checked_arrays(mech, q=q)
    return decompose(_dimensionless(mech, q)).conditioning(rank)


def usual_conditioning(mech: Mechanism, q: ArrayLike, seed: int = 0) -> float:
    """The largest ``conditioning`` among assembled configurations around q, one state: the scale of this mechanism."""
    (q,), rng = one_state("usual_conditioning", mech, q=q), np.random.default_rng(seed)
    rank, samples = generic_rank(mech, q), []
    for size in TRIALS:
        with contextlib.suppress(AssemblyError):  # loops may not close there
            guess = tree.integrate(mech, q, size * rng.uniform(-1.0, 1.0, mech.nv) * sizes(mech).columns, 1.0)
            samples.append(assemble(mech, guess, tries=1))
    return float(np.max(conditioning(mech, np.array([q, *samples]), rank))) if rank else 1.0


def are_singular(mech: Mechanism, q: np.ndarray) -> np.ndarray:
    """(...): whether assembled configurations (..., nq) are singular up to rounding of positions: more motions are
    possible than elsewhere, and inputs do not determine velocities."""
    if not q.size or not mech.loops:
        return np.zeros(q.shape[:-1], dtype=bool)
    first = q.reshape(-1, mech.nq)[0]
    rank = int(generic_rank(mech, first))
    conditions = conditioning(mech, q, rank) if rank else np.ones(q.shape[:-1])
    if not np.any(conditions < SUSPICIOUS):
        return np.zeros(q.shape[:-1], dtype=bool)
    return np.asarray(conditions < AT_SINGULAR * usual_conditioning(mech, first))


def _dimensionless(mech: Mechanism, q: np.ndarray) -> Float64Array:
    """(..., m, nv): G at q without rounding of the data, lengths in units of the loops' sizes."""
    return sizes(mech).dimensionless(counted_jacobian(mech, q))
