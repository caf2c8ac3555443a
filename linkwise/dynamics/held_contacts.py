"""Standing without slip: shapes that touch, held where they are by loops."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from ..mechanics.joints import Fixed, Spherical
from ..mechanism import Loop, Mechanism, MechanismError
from ..mechanism.shapes import Shape
from .compliant_contact import contact_points
from .states import checked_arrays
from .trees import frame_pose

FLAT = 1e-3  # relative: points that are closer than this to one line are on it


def hold_contacts(mech: Mechanism, q: ArrayLike | None = None, within: float = 1e-3) -> Mechanism:
    """A copy in which the points that touch at ``q`` (nq,) are held where they are, neither sliding nor letting go.

    Compliant friction is viscous at rest: feet on it creep, and in a linear model nothing leads them back.  What stands
    without slip is a closed mechanism: each point is a loop (a ball joint to what it touches; three points or more of a
    link that are not on one line are a fixed joint).  It has the coordinates of ``mech``, so that its equilibria, its
    linear models and their ``lw.lqr`` are right for ``mech`` too, as long as the feet press and do not slip.

    q        one configuration; None for ``mech.initial``
    within   m: the largest gap of what counts as touching

    Contacts without friction, and those that are switched off, stay as they are.  Round feet do not roll.
    """
    if q is None:
        q = mech.initial
    (at,) = checked_arrays(mech, q=q)
    if at.ndim > 1:
        raise MechanismError(f"hold_contacts takes one configuration ({mech.nq},), got shape {at.shape}")
    gaps, points, _, _ = contact_points(mech, at, np.zeros(mech.nv))
    groups: dict[tuple[str, str], list[np.ndarray]] = {}
    held = set()
    for pair, gap, point in zip(mech.contact_parts, gaps, points, strict=True):
        if gap <= within and pair.law.friction > 0.0 and mech.acts("contact", pair.name):
            sides = tuple(_carrier(mech, mech.shape(name)) for name in pair.shapes)
            groups.setdefault((sides[0], sides[1]), []).append(point)
            held.add(pair.name)
    if not groups:
        raise MechanismError(
            f"nothing of mechanism {mech.name!r} touches in this configuration: the smallest gap is "
            f"{gaps.min(initial=np.inf):.3g} m; within={within:g} is what counts as touching"
        )
    loops = [loop for sides, places in groups.items() for loop in _loops(mech, at, sides, np.array(places))]
    kept = tuple(pair for pair in mech.contact_pairs if pair.name not in held)
    return replace(mech, contact_pairs=kept).with_loops(*loops)


def _carrier(mech: Mechanism, shape: Shape) -> str:
    """The link that moves with a shape, or the ground."""
    body, _ = shape.placed(mech)
    return mech.link_names[body] if body >= 0 else "ground"


def _loops(mech: Mechanism, q: np.ndarray, sides: tuple[str, str], points: np.ndarray) -> Iterator[Loop]:
    """What holds one link to another, or to the ground, at some points of the world."""
    poses = [np.eye(4) if side == "ground" else frame_pose(mech, q, side) for side in sides]
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    flat = len(points) > 2 and spread[1] > FLAT * spread[0]
    chosen = points[:1] if flat else _ends(points)
    for k, point in enumerate(chosen, 1):
        of_sides = [(pose[:3, :3].T, pose[:3, :3].T @ (point - pose[:3, 3])) for pose in poses]
        name = "/".join(sides) + (f".{k}" if len(chosen) > 1 else "")
        yield Loop(f"held:{name}", Fixed() if flat else Spherical(), sides[0], of_sides[0], sides[1], of_sides[1])


def _ends(points: np.ndarray) -> np.ndarray:
    """The two that are furthest apart, of points on one line."""
    if len(points) < 3:
        return points
    along = (points - points[0]) @ (points[-1] - points[0])
    return points[[int(along.argmin()), int(along.argmax())]]
