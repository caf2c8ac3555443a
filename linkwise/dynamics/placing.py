"""Placing on the ground: configurations lifted or lowered until the first contact point touches."""

from __future__ import annotations

import numpy as np

from ..mechanism import PLANE, Mechanism, MechanismError, require_mechanism
from .compliant_contact import contact_points
from .states import ByJoint, Float64Array, state_arrays
from .trees import integrate, jacobian

TRANSLATES = 1e-9  # tolerance of the unit translation of a free base
ACROSS = 1e-9  # cosine: planes that are steeper are walls
LIFT = 0.02  # of the size of the shapes: least lift while they penetrate
MOST_LIFTS, MOST_DROPS = 1000, 200
CLOSE = 1e-12  # of the size: gap that counts as zero

Group = tuple[int, ...]  # numbers of bodies that move together


def place_on_ground(mech: Mechanism, q: ByJoint | None = None) -> Float64Array:
    """(..., nq): configurations in which the lowest contact point just touches shapes fixed to the ground.

    q   (..., nq), a batch of configurations, or {joint: ...}; None for ``mech.initial``

    A free base is lifted out of the ground, or lowered onto it, along gravity without rotation; other joints stay.
    Contacts with a margin touch at its boundary.  Several free bodies are placed one by one on fixed shapes; bodies on
    a fixed base stay.
    """
    require_mechanism(mech)
    at = state_arrays(mech, {"q": mech.initial if q is None else q})["q"]
    if not mech.contact_pairs:
        raise MechanismError(
            f"place_on_ground: mechanism {mech.name!r} has no contacts: mech.with_ground(height) gives it a floor that "
            "its shapes touch, mech.with_shape adds shapes"
        )
    if not mech.forces.active.get("contact"):
        raise MechanismError(
            f"place_on_ground: contact of mechanism {mech.name!r} is switched off: mech.with_acting(contact=True)"
        )
    up = _up(mech)
    flat = np.array(at.reshape(-1, mech.nq))
    moved = False
    for group, parts in _groups(mech).items():
        lifts = _lift_velocities(mech, flat, group, up)
        if lifts is None:
            continue
        moved = True
        flat = _move_group(mech, flat, lifts, parts, up)
    if not moved:
        raise MechanismError(
            f"place_on_ground: nothing of mechanism {mech.name!r} that touches the ground can be lifted: it stands on "
            "a fixed base, or its joints do not let it move against gravity; lw.load(..., floating_base=True) or a "
            "joint lw.Floating() to the ground frees it"
        )
    return flat.reshape(at.shape)


def _up(mech: Mechanism) -> np.ndarray:
    """(3,): opposite to gravity; without gravity the normal of the first ground plane."""
    gravity = np.asarray(mech.gravity, float)
    size = float(np.linalg.norm(gravity))
    if size > 0.0:
        return -gravity / size
    placed = (shape.placed(mech) for shape in mech.shapes if shape.kind == PLANE)
    normals = [rotation[:, 2] for body, (rotation, _) in placed if body < 0]
    if normals:
        return normals[0]
    raise MechanismError(
        f"place_on_ground: mechanism {mech.name!r} has neither gravity nor a plane on the ground that says where up "
        "is: mech.with_gravity((0, 0, -9.81)), or mech.with_ground()"
    )


def _groups(mech: Mechanism) -> dict[Group, list[int]]:
    """Bodies of trees that loops connect -> numbers of their elementary contacts with fixed shapes."""
    roots: list[int] = []
    for i, body in enumerate(mech.bodies):
        roots.append(i if body.parent < 0 else roots[body.parent])
    group = {root: {root} for root in roots}
    for loop in mech.loops:
        tied = [roots[mech.frame(name).body] for name in loop.links if mech.frame(name).body >= 0]
        for first, other in zip(tied, tied[1:], strict=False):
            if group[first] is not group[other]:
                group[first] |= group[other]
                group |= dict.fromkeys(group[other], group[first])
    groups: dict[Group, list[int]] = {}
    for k, pair in enumerate(mech.contact.parts):
        carriers = [mech.contact.shape(name).placed(mech)[0] for name in pair.shapes]
        if min(carriers) < 0 and mech.forces.acts("contact", pair.name):
            carrier_group = group[roots[max(carriers)]]
            groups.setdefault(tuple(i for i, root in enumerate(roots) if root in carrier_group), []).append(k)
    return groups


def _lift_velocities(mech: Mechanism, q: np.ndarray, group: Group, up: np.ndarray) -> np.ndarray | None:
    """(n, nv): velocities that move all bodies of a group along ``up`` at unit speed without rotation; None if there
    are none, or if a loop ties a body to the ground.
    """
    for loop in mech.loops:
        tied = {mech.frame(name).body for name in loop.links}
        if -1 in tied and tied & {*group}:
            return None
    tree, lifts = mech.spanning_tree, np.zeros((len(q), mech.nv))
    for root in (i for i in group if mech.bodies[i].parent < 0):
        path = _path_to_a_body(mech, root)
        jacobians = jacobian(tree, q, mech.bodies[path[-1]].link, "world_aligned")
        columns = [k for i in path for k in range(mech.nv)[mech.v_index(mech.bodies[i].joint)]]
        straight = [k for k in columns if not jacobians[:, :3, k].any()]
        moves = jacobians[:, 3:, straight]
        solution = np.linalg.pinv(moves) @ up
        if np.abs((moves @ solution[..., None])[..., 0] - up).max(initial=0.0) > TRANSLATES:
            return None
        lifts[:, straight] = solution
    return lifts


def _path_to_a_body(mech: Mechanism, root: int) -> list[int]:
    """Bodies from a root to the first with a mass or shape; earlier ones only connect joints at one point."""
    carrying = {shape.placed(mech)[0] for shape in mech.shapes} | {i for i, b in enumerate(mech.bodies) if b.mass > 0.0}
    path = [root]
    while path[-1] not in carrying:
        following = [i for i, body in enumerate(mech.bodies) if body.parent == path[-1]]
        if len(following) != 1:
            break
        path.append(following[0])
    return path


def _move_group(mech: Mechanism, q: np.ndarray, lifts: np.ndarray, parts: list[int], up: np.ndarray) -> np.ndarray:
    """The configurations with a group moved along ``lifts`` into touch: in one step on planes, else out of penetration
    and down again by safe distances."""
    margins = np.array([mech.contact.parts[k].law.margin for k in parts])
    planes = np.array([mech.contact.shape(mech.contact.parts[k].shape_b).kind == PLANE for k in parts])
    size, _ = mech.contact.scales[mech.contact.parts[parts[0]].name]

    carried_second = np.array([mech.contact.shape(mech.contact.parts[k].shape_b).placed(mech)[0] >= 0 for k in parts])

    def lowest(q: np.ndarray) -> np.ndarray:
        """(n,): distance to lower the group until something touches: exact for planes, else a lower bound."""
        points = contact_points(mech, q, np.zeros(mech.nv))
        gaps, normals = points.gap[:, parts] - margins, points.normal[:, parts]
        rise = np.where(carried_second, -1.0, 1.0) * (normals @ up)
        below = planes & (rise > ACROSS)
        along = gaps / np.where(below, rise, 1.0)
        return np.where(planes & ~below, np.inf, along).min(axis=-1)

    if planes.all():
        height = lowest(q)
        if np.isinf(height).any():
            raise MechanismError(
                f"place_on_ground: no plane that mechanism {mech.name!r} touches lies below it: gravity does not point "
                "into it"
            )
        return integrate(mech, q, lifts, -height)
    for _ in range(MOST_LIFTS):
        height = lowest(q)
        inside = height < 0.0
        if not inside.any():
            break
        q = integrate(mech, q, lifts, np.where(inside, np.maximum(-height, LIFT * size), 0.0))
    for _ in range(MOST_DROPS):
        height = lowest(q)
        if not (np.abs(height) > CLOSE * size).any():
            break
        q = integrate(mech, q, lifts, -height)
    if not (lowest(q) < LIFT * size).all():
        raise MechanismError(f"place_on_ground: nothing lies below mechanism {mech.name!r} in this configuration")
    return q
