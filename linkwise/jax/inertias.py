"""Inertias that stay physical while they are trained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

import linkwise as lw

from ..pseudo_inertia import bodies_from, numbers_of


class Inertias:
    """Masses, mass centres and inertias of links from numbers without bounds: ten of each link.

    numbers   (n, 10): those of the mechanism, to start from

    ``inertias(numbers)`` is a dictionary {"mass", "com", "inertia"} or, of single ``links``, {"forearm.mass", ...}, as
    ``parameters`` of functions take it.  Whatever the numbers are, the mass is positive and the inertia that of some
    distribution of mass: they are those of the Cholesky factor of the pseudo-inertia (``linkwise.pseudo_inertia``).
    """

    def __init__(self, mech: lw.Mechanism, links: Sequence[str] | None = None):
        self.links = None if links is None else tuple(links)
        self.numbers = jnp.asarray(numbers_of(mech, self.links))

    def __call__(self, numbers: Any) -> dict[str, jax.Array]:
        n = jnp.asarray(numbers)
        return bodies_from(n, self.links, jnp, lambda x: jnp.asarray(x, n.dtype))
