"""Masses and inertias of rollouts that differ from state to state, checked."""

from __future__ import annotations

import numpy as np

from ..mechanism import Mechanism, MechanismError, checks


def check_bodies(mech: Mechanism, name: str, values: np.ndarray) -> None:
    """Refuse masses and moments of inertia that no body has, unless the mechanism's own body has such ones already:
    motion under them is no motion of a mechanism."""
    if not isinstance(values, np.ndarray):
        return  # on a GPU, and taken as they are
    link, _, kind = name.rpartition(".")
    bodies = [mech.link_names.index(link)] if link else list(range(mech.n_links))
    if kind == "mass":
        values, own, needed = values[..., None] if link else values, mech.masses[bodies], "positive"
        wrong = ~(values > 0.0) & ((own > 0.0) | (values != 0.0))
    elif kind == "inertia":
        values, own = values[..., None, :, :] if link else values, mech.inertias[bodies]
        wrong, needed = ~_positive(values) & _positive(own), "a matrix without negative principal moments"
    else:
        return
    if wrong.any():
        index = tuple(np.argwhere(wrong)[0].tolist())
        whose, value = mech.link_names[bodies[index[-1]]], values[index].tolist()
        state = f" in state {index[:-1]}" if index[:-1] else ""
        raise MechanismError(f"rollout: the {kind} of link {whose!r}{state} must be {needed}, not {value}")


def _positive(inertias: np.ndarray) -> np.ndarray:
    """Whether the symmetric parts of (..., 3, 3) have no negative eigenvalue but for round-off: Sylvester's minors."""
    inertias = inertias.astype(np.float64, copy=False)  # whose cubes do not vanish
    scale = np.abs(inertias).max(axis=(-2, -1), initial=0.0)
    xx, yy, zz = (inertias[..., i, i] + checks.INERTIA_TOLERANCE * scale for i in range(3))
    xy, xz, yz = (0.5 * (inertias[..., i, j] + inertias[..., j, i]) for i, j in ((0, 1), (0, 2), (1, 2)))
    pair = xx * yy - xy**2
    whole = zz * pair - xx * yz**2 - yy * xz**2 + 2.0 * xy * xz * yz
    return ((xx > 0.0) & (pair > 0.0) & (whole > 0.0)) | (scale == 0.0)
