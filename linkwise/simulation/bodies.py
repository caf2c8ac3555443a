"""Numbers of a mechanism that differ from state to state in rollouts, checked: masses, inertias, friction."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import replace

import numpy as np

from ..compiler.requests import OF_JOINTS, parameter_arrays
from ..mechanics.elements.at_joints import Element
from ..mechanics.elements.law import Acting, ForceLaw
from ..mechanism import Mechanism, MechanismError, checks
from ..mechanism.elements import CONTACT_FRICTION


def check_bodies(mech: Mechanism, name: str, values: np.ndarray) -> None:
    """Refuse masses and moments of inertia that no body has, unless the mechanism's own body has such ones already:
    motion under them is no motion of a mechanism."""
    if not isinstance(values, np.ndarray):
        return  # on a GPU, and taken as they are
    link, _, kind = name.rpartition(".")
    if kind in (*OF_JOINTS, CONTACT_FRICTION):
        return _check_not_negative(name, values)
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


def _check_not_negative(name: str, values: np.ndarray) -> None:
    wrong = ~((values >= 0.0) & (values < np.inf))
    if wrong.any():
        worst = values[wrong][0].item()
        raise MechanismError(f"rollout: numbers of {name!r} must be finite and not negative, not {worst}")


def with_largest(mech: Mechanism, acting: Acting, varied: Mapping[str, np.ndarray]) -> Acting:
    """Laws whose numbers at joints are about the largest of those that differ from state to state: rounded down to
    powers of two, so that what is known of the laws is found again when other numbers are drawn."""
    largest: dict[tuple[str, str], tuple[float, ...]] = {}
    for values, places in zip(varied.values(), parameter_arrays(mech, tuple(varied))[1], strict=True):
        for (kind, i), at in places:
            if kind not in OF_JOINTS or not values.size:
                continue
            own = np.atleast_1d(values[..., at] if at is not ... else values).reshape(-1, mech.bodies[i].kind.nv)
            largest[kind, mech.bodies[i].joint] = tuple(map(_rounded_down, own.max(axis=0).tolist()))
    return Acting(tuple(_with_number(law, largest) for law in acting.laws))


def _with_number(law: ForceLaw, largest: Mapping[tuple[str, str], tuple[float, ...]]) -> ForceLaw:
    found = largest.get((law.varies, law.joint)) if isinstance(law, Element) else None
    return law if found is None else replace(law, **{law.varies: found})  # type: ignore[attr-defined, type-var]


def _rounded_down(x: float) -> float:
    return 2.0 ** math.floor(math.log2(x)) if x > 0.0 else 0.0


def _positive(inertias: np.ndarray) -> np.ndarray:
    """Whether the symmetric parts of (..., 3, 3) have no negative eigenvalue but for round-off: Sylvester's minors."""
    inertias = inertias.astype(np.float64, copy=False)  # whose cubes do not vanish
    scale = np.abs(inertias).max(axis=(-2, -1), initial=0.0)
    xx, yy, zz = (inertias[..., i, i] + checks.INERTIA_TOLERANCE * scale for i in range(3))
    xy, xz, yz = (0.5 * (inertias[..., i, j] + inertias[..., j, i]) for i, j in ((0, 1), (0, 2), (1, 2)))
    pair = xx * yy - xy**2
    whole = zz * pair - xx * yz**2 - yy * xz**2 + 2.0 * xy * xz * yz
    return ((xx > 0.0) & (pair > 0.0) & (whole > 0.0)) | (scale == 0.0)
