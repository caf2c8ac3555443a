"""Which joints move something with inertia: the others have no acceleration that a force law gives them."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from linkwise.mechanics.joints import Joint

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism
    from linkwise.mechanism.parts import Body

SINGULAR_TOLERANCE = 1e-12  # relative; below it a joint-space inertia is zero but for round-off
Judge = Callable[["Mechanism"], bool]
_judges: list[Judge] = []


def singular_joints(mech: Mechanism) -> tuple[str, ...]:
    """Independent joints that move nothing with inertia.

    A body is judged when nothing it carries has mass; joints further in then see its inertia alone. A joint that
    others mimic is singular only if they are too.
    """
    if all(clearly_has_inertia(mech.bodies[index]) for index in mech._tips):
        return ()
    massive_beyond = [False] * len(mech.bodies)
    resists = [False] * len(mech.bodies)
    for index in reversed(range(len(mech.bodies))):
        body = mech.bodies[index]
        massless = body.mass == 0.0 and not body.inertia.any()
        if body.parent >= 0 and (massive_beyond[index] or not massless):
            massive_beyond[body.parent] = True
        resists[index] = massive_beyond[index] or not joint_inertia_is_singular(body)
    followed = {b.mimic.joint for i, b in enumerate(mech.bodies) if b.mimic and b.mimic.ratio and resists[i]}
    return tuple(
        body.joint
        for index, body in enumerate(mech.bodies)
        if not (resists[index] or body.mimic or body.joint in followed)
    )


def judges_loops(judge: Judge) -> Judge:
    """Decorates the function that says of mechanisms with loops whether these tie all that moves to something with
    inertia: that takes closed loops, which are a matter of dynamics."""
    _judges.append(judge)
    return judge


def loops_resist(mech: Mechanism) -> bool:
    """Whether joints that move nothing with inertia are tied by loops to ones that do."""
    return bool(mech.loops) and any(judge(mech) for judge in _judges)


def _spatial_inertia(mass: float, com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """The 6x6 inertia about the link's origin, acting on ``[omega; v]``."""
    x, y, z = com.tolist()
    skew = np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])
    moment = mass * skew
    spatial = np.empty((6, 6))
    spatial[:3, :3] = inertia - moment @ skew
    spatial[:3, 3:] = moment
    spatial[3:, :3] = -moment
    spatial[3:, 3:] = mass * np.eye(3)
    return spatial


@lru_cache(maxsize=256)  # of kinds, which are few: judging a variant of a mechanism takes microseconds
def _motions_at_zero(kind: Joint) -> np.ndarray:
    """(6, nv): what each velocity coordinate does to the link, ``[omega; v]`` in its own frame, at zero coordinates."""
    to_link = np.kron(np.eye(2), np.asarray(kind.alignment, dtype=float))
    return np.array([to_link @ [*motion.angular, *motion.linear] for motion in kind.motion(kind.neutral())]).T


def clearly_has_inertia(body: Body) -> bool:
    """Whether a body has mass, and twice the kinetic energy of its joint with one coordinate, at unit velocity, is no
    round-off of larger numbers; to be judged with more care where it may be."""
    mass, motion = body.mass, _only_motion_at_zero(body.kind)
    if motion is None or mass <= 0.0:
        return False
    a, b, c, i, j, k = motion
    x, y, z = body.com.tolist()
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia.tolist()
    u, v, w = i + b * z - c * y, j + c * x - a * z, k + a * y - b * x  # of the mass centre
    rotation = a * a * xx + b * b * yy + c * c * zz + 2.0 * (a * b * xy + a * c * xz + b * c * yz)
    armature = body.armature[0]
    energy = rotation + mass * (u * u + v * v + w * w) + armature
    largest = abs(xx) + abs(yy) + abs(zz) + mass * (1.0 + x * x + y * y + z * z) + abs(armature)
    return energy > 1e-6 * largest * (1.0 + abs(i) + abs(j) + abs(k)) ** 2


@lru_cache(maxsize=256)
def _only_motion_at_zero(kind: Joint) -> list[float] | None:
    """The same of a joint that has one."""
    motions = _motions_at_zero(kind)
    return motions[:, 0].tolist() if motions.shape == (6, 1) else None


def joint_inertia_is_singular(body: Body) -> bool:
    """Whether ``D = H I H* + armature`` of a body without massive descendants is singular but for round-off.

    ``H`` is taken at zero coordinates. Each coordinate is scaled by the largest value its ``D`` could have, so that
    small mechanisms are judged like large ones and angles like distances.
    """
    if clearly_has_inertia(body):
        return False
    motions = _motions_at_zero(body.kind)
    joint_inertia, bound = _joint_inertia(body, motions)
    if not bound.all():
        return True
    scale = 1.0 / np.sqrt(bound)
    return bool(np.linalg.eigvalsh(joint_inertia * np.outer(scale, scale))[0] < SINGULAR_TOLERANCE)


def idle_spin(body: Body) -> str:
    """Of a body with mass and a joint with several coordinates, the rotation that nothing resists, such as that of a
    thin rod about itself; nothing where it is another motion, or where the joint has no other."""
    motions = _motions_at_zero(body.kind)
    if body.mass == 0.0 or motions.shape[1] < 2:
        return ""
    joint_inertia, _ = _joint_inertia(body, motions)
    axis = (motions @ np.linalg.eigh(joint_inertia)[1][:, 0])[:3]
    length = float(np.linalg.norm(axis))
    if length < 0.5:
        return ""
    axis = axis / (length * np.sign(axis[np.argmax(np.abs(axis))]))
    told = ", ".join(f"{round(float(x), 6) + 0.0:g}" for x in axis)
    return f" (the spin of link {body.link!r} about its axis ({told}): a Universal joint has none)"


def _joint_inertia(body: Body, motions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``D`` of a body alone, and the largest that each of its coordinates could have."""
    spatial, sizes = _spatial_inertia(body.mass, body.com, body.inertia), np.abs(motions)
    joint_inertia = motions.T @ spatial @ motions + np.diag(body.armature)
    return joint_inertia, (sizes.T @ np.abs(spatial) @ sizes).diagonal() + np.abs(body.armature)
