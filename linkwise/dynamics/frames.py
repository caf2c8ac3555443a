"""One link or welded frame: how it moves, as three observers see it, and how easily it is moved.

``frame`` says who sees it: "link", in its own axes at its origin; "world", in world axes at the world's origin;
"world_aligned", in world axes at its own origin (Pinocchio: LOCAL, WORLD, LOCAL_WORLD_ALIGNED).
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from ..compiler.registry import ArrayFunction, register
from ..compiler.runtime.arrays import all_plain
from ..compiler.store import kernel_function, of_algorithm
from ..mechanism import Mechanism, MechanismError, one_of
from .states import Float64Array, real_numbers
from .trees import frame_pose

ROWS = {"angular": (0, 1, 2), "linear": (3, 4, 5)}


@of_algorithm("frame_velocity")
def frame_velocity(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    link: str | None = None,
    frame: str = "link",
    *,
    name: str | None = None,
) -> Float64Array:
    """(6,): [omega; v] of a link or welded frame, ``jacobian(mech, q, link, frame) @ v`` without the Jacobian
    (``name`` is another word for ``link``)."""
    ...


@of_algorithm("frame_acceleration")
def frame_acceleration(
    mech: Mechanism,
    q: ArrayLike,
    v: ArrayLike,
    a: ArrayLike,
    link: str | None = None,
    frame: str = "link",
    classical: bool = False,
    *,
    name: str | None = None,
) -> Float64Array:
    """(6,): acceleration of a link or welded frame; gravity does not enter (``name`` is another word for ``link``).

    Spatial acceleration: the time derivative of the components of ``frame_velocity`` in "link" and in "world"; in
    "world_aligned" that of "link", rotated.  ``classical=True`` adds omega x v to the linear part: the acceleration of
    the frame's origin that an accelerometer would measure without gravity (in "world": of the point at the world's).
    """
    ...


@of_algorithm("jacobian_rate_times_velocity")
def jacobian_rate_times_velocity(
    mech: Mechanism, q: ArrayLike, v: ArrayLike, link: str, frame: str = "link"
) -> Float64Array:
    """(6,): dJ/dt v, what ``jacobian_rate(mech, q, v, link, frame) @ v`` is, without forming dJ/dt.

    J a + dJ/dt v is the rate of the components of J v: the spatial ``frame_acceleration`` in "link" and "world", the
    classical one in "world_aligned".
    """
    ...


def effective_inertia(
    mech: Mechanism, q: ArrayLike, direction: ArrayLike, link: str, frame: str = "link"
) -> Float64Array:
    """Scalar per state: 1 / (d* J M^-1 J* d), the force along a direction that a unit of acceleration along it takes
    (a mass for a linear direction of length one, an inertia for an angular one); infinite where nothing gives way.

    direction   (3,): of a force at the frame's origin; or (6,): [moment; force].  In the axes, and at the point, that
                ``frame`` says
    """
    (plain,) = all_plain((direction,))
    six = np.asarray(plain)
    if six.shape[-1:] not in ((3,), (6,)):
        raise ValueError(f"direction must have shape (..., 3) or (..., 6), got {six.shape}")
    if six.shape[-1] == 3:
        six = np.concatenate([np.zeros_like(six), six], axis=-1)
    return kernel_function(mech, ("effective_inertia", ("link", link), ("frame", frame)), q)(q, six)


def manipulability(
    mech: Mechanism, q: ArrayLike, link: str, rows: str | Sequence[int] | None = None, frame: str = "link"
) -> Float64Array:
    """Scalar per state: sqrt(det(J J*)) of a link or welded frame, zero in singular positions.

    rows   of the Jacobian: "angular", "linear", or numbers such as (3, 4, 2) for x, y and the angle about z; all six by
           default
    """
    return kernel_function(mech, ("manipulability", ("link", link), ("rows", _rows(rows)), ("frame", frame)), q)(q)


def _rows(rows: Any) -> tuple[int, ...]:
    if rows is None:
        return tuple(range(6))
    try:
        chosen = ROWS[rows] if isinstance(rows, str) else tuple(operator.index(row) for row in rows)
    except (KeyError, TypeError):
        chosen = ()
    if not chosen or not set(chosen) <= set(range(6)) or len(set(chosen)) < len(chosen):
        raise ValueError(f"rows must be 'angular', 'linear' or different numbers from 0 to 5, got {rows!r}")
    return chosen


register(effective_inertia, ArrayFunction("effective_inertia"))
register(manipulability, ArrayFunction("manipulability"))


def wrenches_at(
    mech: Mechanism, pushes: Mapping[str, ArrayLike], q: ArrayLike | None = None, frame: str = "link"
) -> Float64Array:
    """(n_links, 6): wrenches on links as all functions take them, from ``pushes`` {link or frame: [moment; force]} at
    the origins of those.  A push on a frame acts on the link that carries it, ``mech.frame(name).link``: at a pin of a
    linkage say which of its links is meant, "rod.B" or "piston.B", as the load of the pin depends on that.

    frame   the axes of the pushes: "link", those of the link or frame itself, or "world_aligned", those of the world,
            which needs q

    Batches broadcast: q (..., nq) and pushes (..., 6) give (..., n_links, 6).
    """
    if not isinstance(pushes, Mapping):
        raise TypeError(
            "wrenches_at takes {link or frame: [moment; force]} behind the mechanism, then q: not a "
            f"{type(pushes).__name__}"
        )
    one_of("frame", frame, ("link", "world_aligned"))
    if frame == "world_aligned" and q is None:
        raise MechanismError("wrenches_at: axes of the world need q, which says how the links are turned")
    found: dict[int, list[Float64Array]] = {}
    for name, given in pushes.items():
        place, push = mech.frame(name), real_numbers(f"the push on {name!r}", given)
        if push.shape[-1:] != (6,):
            raise MechanismError(f"wrenches_at: a push is [moment; force], (..., 6), and that on {name!r} {push.shape}")
        if place.body < 0:
            others = [one for one, at in mech.frames.items() if at.body >= 0 and one.endswith(f".{name}")]
            told = f": name a moving link that has this point, {', '.join(map(repr, others))}" if others else ""
            raise MechanismError(f"wrenches_at: {name!r} is fixed to the ground, which takes any push{told}")
        turn = place.rotation
        if frame == "world_aligned" and q is not None:
            turn = turn @ np.swapaxes(frame_pose(mech, q, name)[..., :3, :3], -1, -2)
        moment, force = ((turn @ part[..., None])[..., 0] for part in (push[..., :3], push[..., 3:]))
        own = np.concatenate([moment + np.cross(place.position, force), force], axis=-1)
        found.setdefault(place.body, []).append(own)
    batch = np.broadcast_shapes(*(own.shape[:-1] for many in found.values() for own in many))
    total = np.zeros((*batch, mech.n_links, 6))
    for body, many in found.items():
        total[..., body, :] = sum(many)
    return total
