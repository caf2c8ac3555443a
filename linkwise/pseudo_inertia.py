"""Inertias that stay physical while they are trained: numbers without bounds for bodies that are real.

The pseudo-inertia of a link, [[S, m c], [m c*, m]] with S the second moments about the link's origin, is U U* with U
upper triangular and a positive diagonal, exp of the first of ten numbers (log-Cholesky; Rucker and Wensing, IEEE
Robotics and Automation Letters 7, 2022).  Whatever the numbers are, the mass is positive and the inertia that of some
distribution of mass.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .mechanism import Mechanism

_PLACES = np.zeros((10, 4, 4))  # where the ten numbers stand in U: first the diagonal, then what is above it
_PLACES[range(4), range(4), range(4)] = 1.0
_PLACES[(range(4, 10), *np.triu_indices(4, 1))] = 1.0


def numbers_of(mech: Mechanism, links: Sequence[str] | None = None) -> np.ndarray:
    """(n, 10): the numbers of these moving links, in this order, or of all."""
    unknown = [link for link in links or () if link not in mech.link_names]
    if unknown:
        raise ValueError(
            f"mechanism {mech.name!r} has no moving link {unknown[0]!r}; it has {', '.join(mech.link_names)}"
        )
    chosen = [b for b in mech.bodies if links is None or b.link in links]
    if links is not None:
        chosen.sort(key=lambda body: links.index(body.link))
    massless = [body.link for body in chosen if not body.mass > 0.0]
    if massless:
        raise ValueError(f"links without mass have no numbers to start from: {', '.join(massless)}; give them some")
    return np.array([_numbers(b.mass, np.array(b.com), np.array(b.inertia), b.link) for b in chosen])


def bodies_from(
    numbers: Any, links: Sequence[str] | None, library: Any, constant: Callable[[np.ndarray], Any]
) -> dict[str, Any]:
    """{"mass", "com", "inertia"} of numbers (n, 10) or, of single ``links``, {"forearm.mass", ...}, as ``parameters``
    of functions take them; computed by a ``library`` such as torch or jax.numpy, whose arrays ``constant`` makes."""
    elements = library.concatenate([library.exp(numbers[..., :4]), numbers[..., 4:]], -1)
    factor = (elements @ constant(_PLACES.reshape(10, 16))).reshape((*numbers.shape[:-1], 4, 4))
    moments = factor @ factor.swapaxes(-1, -2)
    mass = moments[..., 3, 3]
    com = moments[..., :3, 3] / mass[..., None]
    about_com = moments[..., :3, :3] - mass[..., None, None] * com[..., :, None] * com[..., None, :]
    trace = library.einsum("...ii->...", about_com)
    inertia = trace[..., None, None] * constant(np.eye(3)) - about_com
    each = {"mass": mass, "com": com, "inertia": inertia}
    if links is None:
        return each
    return {f"{link}.{kind}": x[i] for i, link in enumerate(links) for kind, x in each.items()}


def _numbers(mass: float, com: np.ndarray, inertia: np.ndarray, link: str) -> np.ndarray:
    """The ten numbers of a link."""
    moments = np.empty((4, 4))
    moments[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(com, com)
    moments[:3, 3] = moments[3, :3] = mass * com
    moments[3, 3] = mass
    try:
        lower = np.linalg.cholesky(moments[::-1, ::-1])  # of the matrix turned about: its factor is upper triangular
    except np.linalg.LinAlgError:
        raise ValueError(
            f"the inertia of link {link!r} is none that a body with extent in three directions has, such as that of a "
            "point or a rod: give it a little inertia in every direction"
        ) from None
    upper = lower[::-1, ::-1]
    return np.concatenate([np.log(np.diag(upper)), upper[np.triu_indices(4, 1)]])
