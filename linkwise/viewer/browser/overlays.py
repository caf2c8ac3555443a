"""Arrows, ellipsoids and marks over a mechanism, as plain data in the world.  No browser here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw

ARROW = 0.35  # the longest, in units of the mechanism's size
VOLUME = 0.045  # radius of the largest mass centre, likewise
ELLIPSOID = 0.25  # the longest half axis of a manipulability ellipsoid, likewise
SINGULAR = 0.05  # conditioning relative to the best of a motion, below which it is marked


@dataclass(frozen=True)
class Ellipsoid:
    """An ellipsoid on a link or in the world: centre (3,), axes as columns of rotation (3, 3), half axes (3,)."""

    centre: np.ndarray
    rotation: np.ndarray
    half: np.ndarray


def inertia_ellipsoids(mech: lw.Mechanism) -> list[Ellipsoid | None]:
    """For each link, in its frame, the solid ellipsoid of uniform density with its mass and inertia, or None."""
    ellipsoids: list[Ellipsoid | None] = []
    for mass, com, inertia in zip(mech.parameters.masses, mech.parameters.coms, mech.parameters.inertias, strict=True):
        moments, axes = np.linalg.eigh(inertia)
        squares = 2.5 * (moments.sum() - 2.0 * moments) / mass if mass > 0.0 else np.zeros(3)
        if not (squares > -1e-9 * np.abs(squares).max(initial=0.0)).all() or not squares.any():
            ellipsoids.append(None)
            continue
        axes = axes * np.linalg.det(axes)
        thinnest = 0.02 * float(np.sqrt(squares.max()))  # a rod is seen too
        ellipsoids.append(Ellipsoid(np.asarray(com), axes, np.maximum(np.sqrt(np.maximum(squares, 0.0)), thinnest)))
    return ellipsoids


def mass_centres(mech: lw.Mechanism, size: float) -> list[tuple[np.ndarray, float]]:
    """(centre in the link's frame, radius) of each link: balls with volumes in proportion to masses."""
    heaviest = float(mech.parameters.masses.max(initial=0.0)) or 1.0
    radii = VOLUME * size * np.cbrt(np.maximum(mech.parameters.masses, 0.0) / heaviest)
    return list(zip(mech.parameters.coms, radii.tolist(), strict=True))


def velocity_arrows(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """(n_links, 2, 3): from each link's mass centre along its velocity, in m/s."""
    poses, rates = lw.link_poses(mech, q), lw.link_velocities(mech, q, v)
    local = rates[:, 3:] + np.cross(rates[:, :3], mech.parameters.coms)
    centres = (poses[:, :3, :3] @ mech.parameters.coms[:, :, None])[:, :, 0] + poses[:, :3, 3]
    return np.stack([centres, centres + (poses[:, :3, :3] @ local[:, :, None])[:, :, 0]], axis=1)


def force_arrows(mech: lw.Mechanism, q: np.ndarray, wrenches: np.ndarray) -> np.ndarray:
    """(n_links, 2, 3): the forces of wrenches (n_links, 6), given in link frames, at the links' origins, in N."""
    poses = lw.link_poses(mech, q)
    forces = (poses[:, :3, :3] @ wrenches[:, 3:, None])[:, :, 0]
    return np.stack([poses[:, :3, 3], poses[:, :3, 3] + forces], axis=1)


def scaled(arrows: np.ndarray, longest: float, size: float) -> np.ndarray:
    """Arrows scaled so that ``longest`` becomes a share of the mechanism's size."""
    starts = arrows[:, :1]
    return starts + (arrows - starts) * (ARROW * size / longest if longest > 0.0 else 0.0)


def manipulability_ellipsoid(mech: lw.Mechanism, q: np.ndarray, link: str, point: np.ndarray, size: float) -> Ellipsoid:
    """The ellipsoid of the velocities of a point of a link for joint velocities of unit length, in the world.

    Its longest axis is a share of the mechanism's size.
    """
    pose, jacobian = lw.frame_pose(mech, q, link), lw.jacobian(mech, q, link, frame="world_aligned")
    arm = pose[:3, :3] @ point
    linear = jacobian[3:] + np.cross(jacobian[:3], arm, axis=0)
    linear = linear @ lw.constraints.null_space(mech, q)
    axes, sizes, _ = np.linalg.svd(linear if linear.shape[1] else np.zeros((3, 1)))
    half = np.zeros(3)
    half[: len(sizes)] = sizes
    half *= ELLIPSOID * size / max(half[0], 1e-300)
    return Ellipsoid(pose[:3, 3] + arm, axes * np.linalg.det(axes), np.maximum(half, 2e-3 * size))


def singular_moments(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(k,) of int: rows of a motion q (m, nq) that are closest to singular positions of loops."""
    if mech.constraints.waits_for_time or len(q) < 3:
        return np.zeros(0, dtype=int)
    rank = lw.constraints.generic_rank(mech, q[0])
    if not rank:
        return np.zeros(0, dtype=int)
    values = np.asarray(lw.constraints.conditioning(mech, q, rank))
    usual = max(float(values.max()), lw.constraints.usual_conditioning(mech, q[0]))
    padded = np.concatenate([[np.inf], values, [np.inf]])
    lowest = (padded[1:-1] <= padded[:-2]) & (padded[1:-1] <= padded[2:])
    return np.flatnonzero(lowest & (values < SINGULAR * usual))
