"""Inertias that stay physical while they are trained."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

import linkwise as lw


class Inertias(torch.nn.Module):
    """Masses, mass centres and inertias of links from numbers without bounds: ten of each link, ``numbers`` (n, 10).

    The pseudo-inertia of a link, [[S, m c], [m c*, m]] with S the second moments about the link's origin, is U U* with
    U upper triangular and a positive diagonal, exp of the first four numbers (log-Cholesky; Rucker and Wensing, IEEE
    Robotics and Automation Letters 7, 2022).  Whatever the numbers are, the mass is positive and the inertia that of
    some distribution of mass.

    ``inertias()`` is a dictionary {"mass", "com", "inertia"} or, of single ``links``, {"forearm.mass", ...}, as
    ``parameters`` of functions take it.
    """

    def __init__(self, mech: lw.Mechanism, links: list[str] | None = None, dtype: torch.dtype = torch.float64):
        super().__init__()
        unknown = [link for link in links or () if link not in mech.link_names]
        if unknown:
            raise ValueError(
                f"mechanism {mech.name!r} has no moving link {unknown[0]!r}; it has {', '.join(mech.link_names)}"
            )
        self.links = None if links is None else tuple(links)
        chosen = [b for b in mech.bodies if links is None or b.link in links]
        if links is not None:
            chosen.sort(key=lambda body: links.index(body.link))
        massless = [body.link for body in chosen if not body.mass > 0.0]
        if massless:
            raise ValueError(f"links without mass have no numbers to start from: {', '.join(massless)}; give them some")
        numbers = np.array([_numbers(b.mass, np.array(b.com), np.array(b.inertia), b.link) for b in chosen])
        self.numbers = torch.nn.Parameter(torch.as_tensor(numbers, dtype=dtype))

    def forward(self) -> dict[str, Tensor]:
        n = self.numbers
        factor = torch.zeros(*n.shape[:-1], 4, 4, dtype=n.dtype)
        rows, columns = np.triu_indices(4, 1)
        factor = factor + torch.diag_embed(torch.exp(n[..., :4]))
        factor = factor.index_put(
            (torch.arange(len(n))[:, None], torch.as_tensor(rows), torch.as_tensor(columns)), n[..., 4:]
        )
        moments = factor @ factor.mT
        mass = moments[..., 3, 3]
        com = moments[..., :3, 3] / mass[..., None]
        about_com = moments[..., :3, :3] - mass[..., None, None] * com[..., :, None] * com[..., None, :]
        trace = torch.diagonal(about_com, dim1=-2, dim2=-1).sum(-1)
        inertia = trace[..., None, None] * torch.eye(3, dtype=n.dtype) - about_com
        if self.links is None:
            return {"mass": mass, "com": com, "inertia": inertia}
        each = {"mass": mass, "com": com, "inertia": inertia}
        return {f"{link}.{kind}": x[i] for i, link in enumerate(self.links) for kind, x in each.items()}


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
