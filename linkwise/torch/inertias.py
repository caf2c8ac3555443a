"""Inertias that stay physical while they are trained."""

from __future__ import annotations

import torch
from torch import Tensor

import linkwise as lw

from ..pseudo_inertia import bodies_from, numbers_of


class Inertias(torch.nn.Module):
    """Masses, mass centres and inertias of links from numbers without bounds: ten of each link, ``numbers`` (n, 10).

    Whatever the numbers are, the mass is positive and the inertia that of some distribution of mass: they are those of
    the Cholesky factor of the pseudo-inertia (``linkwise.pseudo_inertia``).

    ``inertias()`` is a dictionary {"mass", "com", "inertia"} or, of single ``links``, {"forearm.mass", ...}, as
    ``parameters`` of functions take it.
    """

    def __init__(self, mech: lw.Mechanism, links: list[str] | None = None, dtype: torch.dtype = torch.float64):
        super().__init__()
        self.links = None if links is None else tuple(links)
        self.numbers = torch.nn.Parameter(torch.as_tensor(numbers_of(mech, self.links), dtype=dtype))

    def forward(self) -> dict[str, Tensor]:
        n = self.numbers
        return bodies_from(n, self.links, torch, lambda x: torch.as_tensor(x, dtype=n.dtype, device=n.device))
