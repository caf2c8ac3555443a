"""Views of mechanisms: flat for those that move in one plane, in space otherwise.  No matplotlib here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

import linkwise as lw

PARALLEL = 1e-6  # sine of an angle below which directions count as parallel
NAMES = ("x", "y", "z")
VIEWS = ("auto", "3d", "xy", "xz", "yz")


@dataclass(frozen=True)
class View:
    """right, up    unit vectors (3,) of the picture, in the world
    flat         seen along ``right x up`` rather than from an angle
    """

    right: np.ndarray
    up: np.ndarray
    flat: bool

    @property
    def toward(self) -> np.ndarray:
        """(3,): from the picture to the onlooker."""
        return np.cross(self.right, self.up)

    def project(self, points: np.ndarray) -> np.ndarray:
        """(..., 2) from (..., 3)."""
        return points @ np.stack([self.right, self.up], axis=-1)

    @property
    def labels(self) -> tuple[str, str]:
        """Labels of the picture's axes, named after parallel axes of the world."""
        return _label(self.right, "across"), _label(self.up, "up")


def _label(direction: np.ndarray, otherwise: str) -> str:
    main = int(np.argmax(np.abs(direction)))
    if abs(direction[main]) < 1.0 - PARALLEL:
        return f"{otherwise} (m)"
    return f"{'-' if direction[main] < 0.0 else ''}{NAMES[main]} (m)"


def view_of(mech: lw.Mechanism, q: np.ndarray, view: str, points: np.ndarray, azimuth: float = -60.0) -> View:
    """The view of a name: "3d", a pair of axes such as "xz" (the first to the right, the second up), or "auto".

    In space the onlooker stands at ``azimuth`` degrees, counted about the upward axis from the axis after it.
    """
    if view not in VIEWS:
        raise ValueError(f"view must be one of {', '.join(map(repr, VIEWS))}, not {view!r}")
    if view not in ("auto", "3d"):
        right, up = (np.eye(3)[NAMES.index(axis)] for axis in view)
        return View(right, up, flat=True)
    normal = plane_of_motion(mech, q) if view == "auto" else None
    if normal is not None:
        flat = _facing(mech, normal)
        if np.ptp(flat.project(points), axis=0).max(initial=0.0) > 1e-3 * np.ptp(points, axis=0).max(initial=0.0):
            return flat  # otherwise all of it is on one line of sight, such as a shaft seen along its axis
    # The axis nearest to the direction against gravity; z without gravity.
    up = np.eye(3)[int(np.argmax(np.abs(mech.gravity)))] if np.any(mech.gravity) else np.eye(3)[2]
    turn = np.radians(azimuth)
    return View(np.cos(turn) * np.roll(up, 2) - np.sin(turn) * np.roll(up, 1), up, flat=False)


def plane_of_motion(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray | None:
    """(3,): the normal of the plane in which all links move and rotate, or None.

    One configuration decides: if all links rotate about one direction, they do so in all configurations.
    """
    if mech.nv == 0:
        return None
    rotations = lw.link_poses(mech, q)[:, :3, :3]
    twists = lw.link_velocities(mech, q, np.eye(mech.nv)).reshape(mech.nv, -1, 2, 3)
    twists = np.einsum("nij,vnaj->vnai", rotations, twists)
    rotations, translations = (twists[:, :, part].reshape(-1, 3) for part in (0, 1))
    if rotations.any():  # the direction that all rotations share, if they do
        lengths = np.linalg.norm(rotations, axis=-1)
        longest = rotations[np.argmax(lengths)]
        normal = longest / np.linalg.norm(longest)
        if np.linalg.norm(np.cross(rotations, normal), axis=-1).max() > PARALLEL * lengths.max():
            return None
    else:
        normal = _across(translations, mech.gravity)
    if normal is None or np.abs(translations @ normal).max() > PARALLEL * np.linalg.norm(translations, axis=-1).max():
        return None
    return normal


def _across(translations: np.ndarray, gravity: np.ndarray) -> np.ndarray | None:
    """A direction perpendicular to all translations, and to gravity where there is a choice."""
    _, sizes, directions = np.linalg.svd(np.vstack([translations, np.zeros((3, 3))]))
    rank = int(np.sum(sizes > PARALLEL * sizes[0]))
    if rank == 3 or rank == 0:
        return None
    if rank == 2:
        return directions[2]
    for second in (gravity, *np.eye(3)[::-1]):
        normal = np.cross(directions[0], second)
        if np.linalg.norm(normal) > PARALLEL * max(float(np.linalg.norm(second)), PARALLEL):
            return normal / np.linalg.norm(normal)
    return None


def _facing(mech: lw.Mechanism, normal: np.ndarray) -> View:
    """The plane with the given normal, upright against gravity, from the side where its axes point right and up."""
    upward = ((x, x - normal * (x @ normal)) for x in (-mech.gravity, *np.eye(3)[[2, 1]]))
    # Two of the world's axes are never both along the normal.
    up = next(y for x, y in upward if np.linalg.norm(y) > 1e-3 * max(float(np.linalg.norm(x)), PARALLEL))
    up = up / np.linalg.norm(up)
    up = np.where(np.abs(up) < PARALLEL, 0.0, up)
    right = np.cross(up, normal)
    right = np.where(np.abs(right) < PARALLEL, 0.0, right)
    return View(right * np.sign(right[np.argmax(np.abs(right))]), up, flat=True)
