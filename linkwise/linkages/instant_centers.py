"""Instant centres (poles) of planar mechanisms: points about which links rotate against each other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from ..constraints.equations import require_finite, warn_if_open, warn_if_opening
from ..constraints.redundancy import closable_error
from ..constraints.sizes import units
from ..dynamics import frames
from ..dynamics import trees as tree
from ..dynamics.states import ByJoint, Float64Array, checked_arrays, common_batch
from ..mechanism import Mechanism, MechanismError
from ..mechanism.checks import did_you_mean
from ..mechanism.model import GROUND
from .manifolds import constraint_manifold, describe_hold

STILL = 1e-9  # of the fastest rotation, lengths in units of the mechanism: what is slower does not rotate


@dataclass(frozen=True, eq=False, repr=False)
class InstantCenters:
    """The poles of all pairs of links, from ``instant_centers``.

    links     their names, the ground first
    centers   (..., n, n, 3): in the world; infinite for two links that translate against each other, nan for links at
              rest to each other
    normal    (3,): of the plane
    """

    mechanism: Mechanism
    q: Float64Array
    links: tuple[str, ...]
    centers: Float64Array
    normal: Float64Array

    def __repr__(self) -> str:
        return f"<InstantCenters of {self.mechanism.name!r}: {', '.join(self.links)}>"

    def between(self, first: str, second: str = GROUND) -> Float64Array:
        """(..., 3): the pole of two links; with one link, its pole against the ground."""
        i, j = (self._number(name) for name in (first, second))
        if i == j:
            raise MechanismError(f"an instant centre is between two links, and {first!r} is the same as {second!r}")
        return self.centers[..., i, j, :]

    def _number(self, name: str) -> int:
        if name not in self.links:
            raise MechanismError(f"there is no link {name!r}: {did_you_mean(name, self.links)}")
        return self.links.index(name)


def instant_centers(
    mech: Mechanism, q: ByJoint | None = None, v: ByJoint | None = None, hold: Sequence[str] = ()
) -> InstantCenters:
    """The instant centres of all pairs of links of a planar mechanism: where both have the same velocity.

    q      (..., nq), or by joint; None is the initial configuration
    v      (..., nv), or by joint: the motion, which a mechanism of one degree of freedom does not need
    hold   joints that stand still, where a mechanism has more

    Those of links that share a pin are there, in every motion; the poles of three links are on a line (Aronhold and
    Kennedy).  Of a four-bar's coupler and the ground it is where the lines of crank and rocker meet.
    """
    (q,) = checked_arrays(mech, q={} if q is None else q)
    require_finite(mech, q)
    warn_if_open(mech, closable_error(mech, q))
    v = _motion(mech, q, hold) if v is None else _given_motion(mech, q, v, hold)
    batch = common_batch({"q": q.shape[:-1], "v": v.shape[:-1]})
    twists = np.zeros((*batch, 1 + mech.n_links, 6))
    for k, link in enumerate(mech.link_names):
        twists[..., 1 + k, :] = frames.frame_velocity(mech, q, v, link, "world")
    normal = _normal(mech, twists)
    rates = twists[..., :3] @ normal
    rate = rates[..., :, None] - rates[..., None, :]
    linear = twists[..., :, None, 3:] - twists[..., None, :, 3:]
    length = units(mech).length
    fastest = max(np.abs(rate).max(initial=0.0), np.linalg.norm(linear, axis=-1).max(initial=0.0) / length)
    turns = np.abs(rate) > STILL * fastest
    slides = np.linalg.norm(linear, axis=-1) > STILL * fastest * length
    height = tree.link_poses(mech, q)[..., :3, 3].mean(axis=-2) @ normal
    center = np.cross(normal, linear) / np.where(turns, rate, 1.0)[..., None]
    center = center + (height[..., None] * normal)[..., None, None, :]
    nowhere = np.where(slides, np.inf, np.nan)[..., None]
    return InstantCenters(mech, q, (GROUND, *mech.link_names), np.where(turns[..., None], center, nowhere), normal)


def _motion(mech: Mechanism, q: Float64Array, hold: Sequence[str]) -> Float64Array:
    """(..., nv): the motion of a mechanism with one degree of freedom."""
    if not q.size:
        return np.zeros((*q.shape[:-1], mech.nv))
    manifold = constraint_manifold(mech, q.reshape(-1, mech.nq)[0], hold)
    if manifold.dof != 1:
        raise MechanismError(
            f"mechanism {mech.name!r} has {manifold.dof} degrees of freedom{describe_hold(hold)}, and poles depend "
            "on how it moves: "
            + ("hold joints (hold=...), or give velocities, v={joint: number}" if manifold.dof else "hold fewer joints")
        )
    return manifold.units.velocities * manifold.basis(q)[..., 0]


def _given_motion(mech: Mechanism, q: Float64Array, v: ByJoint, hold: Sequence[str]) -> Float64Array:
    if len(hold):
        raise MechanismError("velocities say how a mechanism moves: leave out hold")
    q, v = checked_arrays(mech, q=q, v=v)
    warn_if_opening(mech, q, v)
    return v


def _normal(mech: Mechanism, twists: Float64Array) -> Float64Array:
    """(3,): normal of the plane in which all links move."""
    angular = twists[..., :3].reshape(-1, 3)
    if not angular.any():
        return np.array([0.0, 0.0, 1.0])
    normal = np.linalg.svd(angular, full_matrices=False)[2][0]
    normal = normal * (np.sign(normal[np.argmax(np.abs(normal))]) or 1.0)
    normal = np.where(np.abs(normal) < STILL, 0.0, normal)
    tilted = np.linalg.norm(angular - np.outer(angular @ normal, normal), axis=-1).max()
    if tilted > 1e-7 * np.abs(angular).max():
        _refuse_space(mech)
    linear = twists[..., 3:].reshape(-1, 3)
    if np.abs(linear @ normal).max() > 1e-7 * np.abs(twists[..., 3:]).max(initial=0.0) + STILL * np.abs(angular).max():
        _refuse_space(mech)
    return normal


def _refuse_space(mech: Mechanism) -> NoReturn:
    raise MechanismError(
        f"mechanism {mech.name!r} moves in space, where links have no instant centres but screw axes: take the "
        "velocities of links (frame_velocity)"
    )
