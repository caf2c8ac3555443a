"""Standing without slip: shapes that touch, or frames, held where they are by loops."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from ..mechanics.joints import Fixed, Joint, Spherical
from ..mechanism import ContactPair, Loop, Mechanism, MechanismError, require_mechanism
from ..mechanism.checks import names_of
from ..mechanism.family import holding
from ..mechanism.parts import HELD
from ..mechanism.shapes import Shape
from .by_joint import state_by_joint
from .compliant_contact import contact_points
from .states import ByJoint, checked_arrays
from .trees import frame_pose

FLAT = 1e-3  # relative: points that are closer than this to one line are on it
TOUCHING = 2e-3  # of the size of what touches: the gap that counts as none
CENTRED = 0.1  # of a radius: what turns about a line that is closer than this to its centre is a wheel,
ALONG = 0.99  # cosine: if that line is along an axis of the shape,
ON_THE_SIDE = 0.5  # of a radius: and is further than this from where it touches


def hold_contacts(mech: Mechanism, q: ByJoint | None = None, within: float | None = None) -> Mechanism:
    """A copy in which the points that touch at ``q`` (nq,) are held where they are, neither sliding nor letting go.

    Compliant friction is viscous at rest: feet on it creep, and in a linear model nothing leads them back.  What stands
    without slip is a closed mechanism: each point is a loop (a ball joint to what it touches; three points or more of a
    link that are not on one line are a fixed joint).  It has the coordinates of ``mech``, so that its equilibria, its
    linear models and their ``lw.control.lqr`` are right for ``mech`` too, as long as the feet press and do not slip.

    q        one configuration; None for ``mech.initial``
    within   m: the largest gap of what counts as touching; None: 0.002 of the size of what touches

    Contacts without friction, and those that are switched off, stay as they are.  Round feet are held at the point that
    touches; wheels and balls, which turn about their own centre, would not roll and are refused: those are loops,
    ``lw.contact.Wheel`` and ``lw.contact.Ball``.
    """
    at = _one_configuration("hold_contacts", mech, q)
    if not mech.contact_pairs:
        raise MechanismError(
            f"mechanism {mech.name!r} has no contacts: lw.contact.hold_frames(mech, frames, q) holds frames that you "
            "name; "
            "mech.with_shape and mech.with_ground make contacts"
        )
    gaps, points, _, _ = contact_points(mech, at, np.zeros(mech.nv))
    touching: dict[str, tuple[list[Shape], list[np.ndarray]]] = {}
    groups: dict[tuple[str, str], list[np.ndarray]] = {}
    for pair, gap, point in zip(mech.contact.parts, gaps, points, strict=True):
        if gap <= _within(mech, pair, within) and pair.law.friction > 0.0 and mech.forces.acts("contact", pair.name):
            touching.setdefault(pair.name, ([mech.contact.shape(name) for name in pair.shapes], []))[1].append(point)
    held = set(touching)
    for shapes, here in touching.values():
        _refuse_wheels(mech, at, shapes, np.mean(here, axis=0))
        sides = tuple(_carrier(mech, shape) for shape in shapes)
        groups.setdefault((sides[0], sides[1]), []).extend(here)
    if not groups:
        widest = max(_within(mech, pair, within) for pair in mech.contact_pairs)
        raise MechanismError(
            f"nothing of mechanism {mech.name!r} touches in this configuration: the smallest gap is "
            f"{gaps.min(initial=np.inf):.3g} m; within={widest:g} is what counts as touching; frames that you "
            "name are held by lw.contact.hold_frames"
        )
    loops = [loop for sides, positions in groups.items() for loop in _loops(mech, at, sides, np.array(positions))]
    kept = tuple(pair for pair in mech.contact_pairs if pair.name not in held)
    return replace(mech, contact_pairs=kept).with_loops(*loops)


def _within(mech: Mechanism, pair: ContactPair, within: float | None) -> float:
    """The largest gap of what counts as touching."""
    return TOUCHING * mech.contact.scales[pair.name][0] if within is None else within


def hold_frames(
    mech: Mechanism, frames: str | Sequence[str], q: ByJoint | None = None, *, points: bool = False
) -> Mechanism:
    """A copy in which links or frames are held where they are at ``q`` (nq,): feet that stand, hands that hold on.

    frames   their names; each is a loop "held:NAME" between the ground and the frame, which ``active`` of functions in
             ``active=`` can let go
    q        one configuration, or {joint: ...}; None for ``mech.initial``
    points   True: only the frames' origins are held, as by ball joints (point feet); False: their rotations too

    Its ``initial`` is q.  The same frames held elsewhere run the same compiled code, from the second place on.
    """
    at = _one_configuration("hold_frames", mech, q)
    kind: Joint = Spherical() if points else Fixed()
    loops: list[Loop] = []
    for name in names_of(frames):
        if mech.frame(name).body < 0:
            raise MechanismError(f"hold_frames: {name!r} is fixed to the ground already")
        if any(loop.name == HELD + name for loop in (*mech.loops, *loops)):
            raise MechanismError(
                f"hold_frames: {name!r} is held already; to hold it elsewhere, start from the mechanism before it was"
            )
        pose = frame_pose(mech, at, name)
        loops.append(Loop(HELD + name, kind, "ground", (pose[:3, :3], pose[:3, 3]), name, (np.eye(3), np.zeros(3))))
    return holding(mech.metadata.with_initial(at), loops)


def _one_configuration(label: str, mech: Mechanism, q: ByJoint | None) -> np.ndarray:
    require_mechanism(mech)
    configuration = mech.initial if q is None else state_by_joint(mech, {"q": q})["q"]
    (at,) = checked_arrays(mech, q=configuration)
    if at.ndim > 1:
        raise MechanismError(f"{label} takes one configuration ({mech.nq},), got shape {at.shape}")
    return at


def _carrier(mech: Mechanism, shape: Shape) -> str:
    """The link that moves with a shape, or the ground."""
    body, _ = shape.placed(mech)
    return mech.link_names[body] if body >= 0 else "ground"


def _refuse_wheels(mech: Mechanism, q: np.ndarray, shapes: list[Shape], point: np.ndarray) -> None:
    """Held at the point of the world where they touch, on average, wheels and balls would not roll."""
    for shape in shapes:
        body, (rotation, centre) = shape.placed(mech)
        if body < 0 or shape.kind in ("plane", "box"):
            continue
        pose, joint = frame_pose(mech, q, mech.link_names[body]), mech.bodies[body].joint
        arm = pose[:3, :3].T @ (point - pose[:3, 3]) - centre
        if _rolls(shape, mech.bodies[body].kind, rotation, centre, arm):
            raise MechanismError(
                f"shape {shape.name!r} is round and turns about its own centre, by joint {joint!r}: held at the point "
                "that touches it would not roll; give it a loop that rolls, Builder.wheel or Builder.ball "
                "(lw.contact.Wheel, "
                "lw.contact.Ball; docs/rolling.md), in place of its contact"
            )


def _rolls(shape: Shape, joint: Joint, rotation: np.ndarray, centre: np.ndarray, arm: np.ndarray) -> bool:
    """Whether a joint rotates a round shape about an axis that misses the contact point.

    rotation, centre   of the shape, in the frame of the link, at whose origin the joint is
    arm                from the centre to the point that touches, in the same axes
    """
    turns_in_any_direction = joint.is_free or joint.is_ball
    if turns_in_any_direction:
        axis, beside = rotation[:, 2], np.linalg.norm(centre)
    elif joint.turning_axis is not None:
        axis = np.asarray(joint.turning_axis, dtype=float)
        beside = np.linalg.norm(np.cross(axis, centre))
    else:
        return False
    if beside > CENTRED * shape.size[0]:
        return False
    if turns_in_any_direction and shape.kind in ("sphere", "ellipsoid"):
        return True
    axes = {"sphere": axis[:, None], "ellipsoid": rotation}.get(shape.kind, rotation[:, 2:])
    along = bool(np.abs(axis @ axes).max() > ALONG)
    return along and bool(np.linalg.norm(np.cross(axis, arm)) > ON_THE_SIDE * shape.size[0])


def _loops(mech: Mechanism, q: np.ndarray, sides: tuple[str, str], points: np.ndarray) -> Iterator[Loop]:
    """Loops that hold one link to another, or to the ground, at given world points."""
    poses = [np.eye(4) if side == "ground" else frame_pose(mech, q, side) for side in sides]
    spread = np.linalg.svd(points - points.mean(axis=0), compute_uv=False)
    flat = len(points) > 2 and spread[1] > FLAT * spread[0]
    chosen = points[:1] if flat else _ends(points)
    for k, point in enumerate(chosen, 1):
        of_sides = [(pose[:3, :3].T, pose[:3, :3].T @ (point - pose[:3, 3])) for pose in poses]
        name = "/".join(sides) + (f".{k}" if len(chosen) > 1 else "")
        yield Loop(HELD + name, Fixed() if flat else Spherical(), sides[0], of_sides[0], sides[1], of_sides[1])


def _ends(points: np.ndarray) -> np.ndarray:
    """The two that are furthest apart, of points on one line."""
    if len(points) < 3:
        return points
    along = (points - points[0]) @ (points[-1] - points[0])
    return points[[int(along.argmin()), int(along.argmax())]]
