"""Massless joints: joints that can move while nothing with inertia does, so that the mass matrix is singular at every
configuration.

A velocity v has no kinetic energy if the mass centre of every link with mass stands still and no link rotates about an
axis about which it has a moment of inertia.  The size of masses does not matter.  So rates of joints move no mass if
certain rows times them vanish, and a joint is massless if its rates can be part of such a motion of the links beyond: a
matter of ranks, at a random configuration.  Lengths are in units of the mechanism.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from linkwise.mechanics.joints import Joint
from linkwise.mechanics.joints.protocol import LENGTH
from linkwise.mechanics.spatial import Motion, Vector3
from linkwise.mechanism.checks import MechanismError

if TYPE_CHECKING:
    from linkwise.mechanism.model import Mechanism
    from linkwise.mechanism.parts import Body

SINGULAR_TOLERANCE = 1e-12  # relative; below it a joint-space inertia is zero but for round-off
SAME_DIRECTION = 1e-9  # sines of angles between spaces of motions below this are zero but for round-off
TRIALS = 3  # random configurations: a joint is massless only if it is at each of them


class MasslessJoint(NamedTuple):
    """An independent joint that can move while nothing with inertia does.

    undone_by   joints beyond that have to move along, so that the masses they carry stand still
    """

    joint: str
    undone_by: tuple[str, ...] = ()

    def __str__(self) -> str:
        if not self.undone_by:
            return repr(self.joint)
        names = ", ".join(map(repr, self.undone_by))
        return f"{self.joint!r} (joint{'s' * (len(self.undone_by) > 1)} {names} can undo its motion)"


def massless_joints(mech: Mechanism) -> tuple[MasslessJoint, ...]:
    """Independent joints that can move while nothing with inertia does, in the order of the bodies; loops aside."""
    if all(body.resists_its_joint for body in mech.bodies):
        return ()
    fewest = None
    for trial in range(TRIALS):
        massless = _massless_at(mech, np.random.default_rng(trial))
        if not massless:
            return ()
        if fewest is None or len(massless) < len(fewest):
            fewest = massless
    assert fewest is not None
    return fewest


def inertia_error(mech: Mechanism, label: str) -> MechanismError:
    """The error of the function ``label``, which inverts the mass matrix, for a mechanism that can move without moving
    mass.
    """
    if mech.loops:
        return MechanismError(
            f"{label} needs a positive mass matrix, but a degree of freedom of mechanism {mech.name!r} moves nothing "
            "with inertia: give the links it moves mass and inertia, or its joint armature; what holds it still is "
            "known without (static_forces, and reactions to them)"
        )
    names = ", ".join(map(str, mech._massless_joints))
    return MechanismError(
        f"{label} needs a positive mass matrix, but nothing with inertia moves with joint {names} of mechanism "
        f"{mech.name!r}: give its link mass and inertia, the joint armature, or make it fixed"
    )


def require_inertia(mech: Mechanism, label: str, within_loops: bool = False) -> None:
    """Raise if the mass matrix is singular at every configuration; with ``within_loops``, if that of the motions
    allowed by the loops is.
    """
    if mech.parameters.singular_joints and not (within_loops and mech._loops_resist is not False):
        raise inertia_error(mech, label)


def loops_resist(mech: Mechanism) -> bool | None:
    """Whether joints without inertia are tied by loops to ones with inertia. None if loops do not close from the
    initial configuration.
    """
    from linkwise.dynamics.massless import has_inertia_with_loops  # closing loops is a matter of dynamics

    return has_inertia_with_loops(mech)


# -- one link ---------------------------------------------------------------------------------------------------------


def resists_its_joint(body: Body) -> bool:
    """Whether the link's own inertia resists every motion of its joint: clearly, or by the careful test."""
    return _has_full_inertia(body) or _clearly_resists(body) or not _own_inertia_is_singular(body)


def _has_full_inertia(body: Body) -> bool:
    """Whether the link has mass, and clearly a moment of inertia about every axis: it resists all motions."""
    mass = body.mass
    if mass <= 0.0:
        return False
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia.tolist()
    x, y, z = body.com.tolist()
    size = xx + yy + zz
    if not size > 1e-9 * mass * (x * x + y * y + z * z):
        return False
    xx, xy, xz, yy, yz, zz = (moment / size for moment in (xx, xy, xz, yy, yz, zz))  # whose products are no overflow
    minor = xx * yy - xy * xy
    determinant = zz * minor - xx * yz * yz - yy * xz * xz + 2.0 * xy * yz * xz
    return xx > 0.0 and minor > 0.0 and determinant > 1e-9


def _clearly_resists(body: Body) -> bool:
    """Whether a link with mass on a joint with one coordinate has kinetic energy at unit velocity that is no round-off
    of larger numbers."""
    mass, motion = body.mass, _only_motion_at_zero(body.kind)
    if motion is None or mass <= 0.0:
        return False
    a, b, c, i, j, k = motion
    x, y, z = body.com.tolist()
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = body.inertia.tolist()
    u, v, w = i + b * z - c * y, j + c * x - a * z, k + a * y - b * x  # of the mass centre
    rotation = a * a * xx + b * b * yy + c * c * zz + 2.0 * (a * b * xy + a * c * xz + b * c * yz)
    energy = rotation + mass * (u * u + v * v + w * w) + body.armature[0]
    angular, distance = a * a + b * b + c * c, x * x + y * y + z * z
    largest = angular * (abs(xx) + abs(yy) + abs(zz) + mass * distance) + mass * (i * i + j * j + k * k)
    return energy > 1e-6 * (largest + abs(body.armature[0]))


def _own_inertia_is_singular(body: Body) -> bool:
    """Whether ``D = H I H* + armature`` of a body alone is singular but for round-off.

    ``H`` is taken at zero coordinates. Each coordinate is scaled by the largest value its ``D`` could have, so that
    small mechanisms are judged like large ones and angles like distances.
    """
    motions = _motions_at_zero(body.kind)
    joint_inertia, bound = _joint_inertia(body, motions)
    if not bound.all():
        return True
    scale = 1.0 / np.sqrt(bound)
    # One factor after the other: their product is infinite for inertias close to the smallest number.
    return bool(np.linalg.eigvalsh(joint_inertia * scale * scale[:, None])[0] < SINGULAR_TOLERANCE)


def _joint_inertia(body: Body, motions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """``D`` of a body alone, and the largest that each of its coordinates could have."""
    spatial, sizes = spatial_inertia(body.mass, body.com, body.inertia), np.abs(motions)
    joint_inertia = motions.T @ spatial @ motions + np.diag(body.armature)
    return joint_inertia, (sizes.T @ np.abs(spatial) @ sizes).diagonal() + np.abs(body.armature)


def spatial_inertia(mass: float, com: np.ndarray, inertia: np.ndarray) -> np.ndarray:
    """The 6x6 inertia about the link's origin, acting on ``[omega; v]``."""
    moment = mass * _skew(com)
    spatial = np.empty((6, 6))
    spatial[:3, :3] = inertia - moment @ _skew(com)
    spatial[:3, 3:] = moment
    spatial[3:, :3] = -moment
    spatial[3:, 3:] = mass * np.eye(3)
    return spatial


def idle_spin(body: Body) -> str:
    """Text on the rotation without inertia, such as the spin of a thin rod, of a body with mass on a joint with several
    coordinates; empty if there is none.
    """
    motions = _motions_at_zero(body.kind)
    if body.mass == 0.0 or motions.shape[1] < 2:
        return ""
    joint_inertia, _ = _joint_inertia(body, motions)
    axis = (motions @ np.linalg.eigh(joint_inertia)[1][:, 0])[:3]
    length = float(np.linalg.norm(axis))
    if length < 0.5:
        return ""
    axis = axis / (length * np.sign(axis[np.argmax(np.abs(axis))]))
    direction = ", ".join(f"{round(float(x), 6) + 0.0:g}" for x in axis)
    return f" (the spin of link {body.link!r} about its axis ({direction}): a Universal joint has none)"


# -- joints -----------------------------------------------------------------------------------------------------------


def motions_at(kind: Joint, q: Sequence[float]) -> np.ndarray:
    """(6, nv): motion of the link per unit of each velocity coordinate, ``[omega; v]`` in its own frame."""
    to_link = np.kron(np.eye(2), np.asarray(kind.alignment, dtype=float))
    return np.array([to_link @ [*motion.angular, *motion.linear] for motion in kind.motion(q)], dtype=float).T


@lru_cache(maxsize=256)  # of kinds, which are few: judging a variant of a mechanism takes microseconds
def _motions_at_zero(kind: Joint) -> np.ndarray:
    """(6, nv): the motions at zero coordinates."""
    return motions_at(kind, kind.neutral())


@lru_cache(maxsize=256)
def _only_motion_at_zero(kind: Joint) -> list[float] | None:
    """The motion at zero coordinates of a joint with one coordinate; None for other joints."""
    motions = _motions_at_zero(kind)
    return motions[:, 0].tolist() if motions.shape == (6, 1) else None


def _link_transform(body: Body, q: Sequence[float]) -> np.ndarray:
    """(6, 6): motions of the parent, ``[omega; v]`` in its frame, as motions of the link; q are the joint's."""
    transform = body.kind.transform(q)
    axes = np.eye(3)
    canonical = []
    for basis in ((axis, (0.0, 0.0, 0.0)) for axis in axes), (((0.0, 0.0, 0.0), axis) for axis in axes):
        for angular, linear in basis:
            moved = transform.motion_into(Motion(Vector3(*angular), Vector3(*linear)))
            canonical.append([*moved.angular, *moved.linear])
    across = np.array(canonical, dtype=float).T
    to_link = np.kron(np.eye(2), np.asarray(body.kind.alignment, dtype=float))
    into_frame = np.kron(np.eye(2), body.rotation.T)
    into_frame[3:, :3] = -body.rotation.T @ _skew(body.position)
    return np.asarray(to_link @ across @ to_link.T @ into_frame)


def _skew(vector: np.ndarray) -> np.ndarray:
    x, y, z = vector.tolist()
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


# -- motions that move no mass ------------------------------------------------------------------------------------


def _massless_at(mech: Mechanism, rng: np.random.Generator) -> tuple[MasslessJoint, ...]:
    """The massless joints at a random configuration."""
    motions, bodies = _Motions(mech, rng), mech.bodies
    joints = {body.joint: motions.idle_joint(i) for i, body in enumerate(bodies) if not body.resists_its_joint}
    leaders = dict.fromkeys(body.mimic.joint for body in bodies if body.mimic)
    if leaders and any(joints.values()):  # as free joints they would move without mass; perhaps not so together
        driven = (*leaders, *(body.joint for body in bodies if body.mimic))
        free = (i for i, body in enumerate(bodies) if not body.resists_its_joint and body.joint not in driven)
        joints = {bodies[i].joint: motions.idle_joint(i, leaders) for i in free}
        joints |= {joint: motions.idle_leader(joint) for joint in leaders}
    massless = (joints.get(body.joint) for body in bodies if not body.mimic)
    return tuple(joint for joint in massless if joint is not None)


class _Motions:
    """Motions of links as linear functions of joint rates, at a random configuration.  Motions are ``[omega; v]`` with
    lengths in units of the mechanism.
    """

    def __init__(self, mech: Mechanism, rng: np.random.Generator) -> None:
        self._mech, self._rng = mech, rng
        self._length = max((_own_length(body) + _length(body.position) for body in mech.bodies), default=0.0) or 1.0
        self._unit = np.array([1.0] * 3 + [self._length] * 3)
        self._links: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def idle_joint(self, index: int, leaders: Collection[str] = ()) -> MasslessJoint | None:
        """The joint of a body, if it and joints beyond can move while the parent and all mass stand still. ``leaders``,
        and their mimic joints, stand still too.
        """
        rows, columns = self._rows([index], still=leaders)
        bodies, joint = self._mech.bodies, self._mech.bodies[index].joint
        at = columns[joint]
        if not _is_idle(rows, at) and self._mech.tree.children[index]:
            return None  # the inertia of a leaf that fails the careful test is that of no rigid body
        null = np.linalg.svd(rows)[2][_rank(rows) :]
        rates = np.linalg.svd(null[:, at])[0][:, 0] @ null if len(null) else np.zeros(rows.shape[1])
        moving = [name for name, at in columns.items() if np.linalg.norm(rates[at]) > SAME_DIRECTION]
        return MasslessJoint(joint, tuple(b.joint for b in bodies if b.joint in moving and b.joint != joint))

    def idle_leader(self, joint: str) -> MasslessJoint | None:
        """A joint that others mimic, if all together can move while all mass stands still."""
        roots = [i for i, parent in enumerate(self._mech.tree.parents) if parent < 0]
        rows, columns = self._rows(roots, together=True)
        return MasslessJoint(joint) if _is_idle(rows, columns[joint]) else None

    def _rows(
        self, roots: Sequence[int], still: Collection[str] = (), together: bool = False
    ) -> tuple[np.ndarray, dict[str, slice]]:
        """Rows (r, n) whose products with rates of joints vanish if no mass beyond the roots moves, and the columns of
        each joint. Mimic joints have the rates of their leaders, if they move ``together``, or their own.
        """
        mech, links, columns, width = self._mech, list(roots), dict[str, slice](), 0
        for i in links:  # grows; links beyond one that resists all motions do not matter, if they move on their own
            body = mech.bodies[i]
            leader = body.mimic.joint if body.mimic else body.joint
            name = leader if together else body.joint
            if leader not in still and name not in columns:
                columns[name] = slice(width, width + body.kind.nv)
                width += body.kind.nv
            links += mech.tree.children[i] if together or not _has_full_inertia(body) else ()
        motions: dict[int, np.ndarray] = {}
        rows = [np.zeros((0, width))]
        for i in links:
            body = mech.bodies[i]
            along, into = self._link(i)
            motion = into @ motions[body.parent] if body.parent in motions else np.zeros((6, width))
            name = body.mimic.joint if body.mimic and together else body.joint
            if name in columns:
                ratio = body.mimic.ratio if body.mimic and together else 1.0
                measures = mech.bodies[mech.body_index(name)].kind.measures("v")
                units = [self._length if measure.of == LENGTH else 1.0 for measure in measures]
                motion[:, columns[name]] += ratio * along * units
                turned = [k for k, inertia in enumerate(body.armature) if inertia and ratio]
                rows.append(np.eye(width)[columns[name]][turned])
            motions[i] = motion
            resisting = np.eye(6) if _has_full_inertia(body) else _directions(_own_rows(body) * self._unit)
            rows.append(resisting @ motion)
        return np.concatenate(rows), columns

    def _link(self, index: int) -> tuple[np.ndarray, np.ndarray]:
        """(6, nv), (6, 6): motions of the link per unit of joint rates, and per motion of the parent."""
        if index not in self._links:
            body = self._mech.bodies[index]
            q = _random_coordinates(body.kind, self._rng, self._length)
            along, into = motions_at(body.kind, q), _link_transform(body, q)
            self._links[index] = along / self._unit[:, None], into * self._unit / self._unit[:, None]
        return self._links[index]


def _is_idle(rows: np.ndarray, columns: slice) -> bool:
    """Whether rates in these columns can be part of a motion on which all rows vanish."""
    others = np.delete(rows, columns, axis=1)
    return _rank(rows) - _rank(others) < columns.stop - columns.start


def _own_rows(body: Body) -> np.ndarray:
    """(r, 6): rows whose products with ``[omega; v]`` of a link vanish if its own mass stands still."""
    rows = []
    if body.mass:
        rows.append(np.concatenate([-_skew(body.com), np.eye(3)], axis=1))
    moments, axes = np.linalg.eigh(body.inertia)
    largest = max(np.abs(moments).max(), abs(body.mass) * float(body.com @ body.com))
    resisting = axes.T[np.abs(moments) > SINGULAR_TOLERANCE * largest]
    rows.append(np.concatenate([resisting, np.zeros_like(resisting)], axis=1))
    return np.concatenate(rows)


def _own_length(body: Body) -> float:
    """Distance of the mass of a link from its origin; 0 without mass."""
    if not body.mass:
        return 0.0
    return _length(body.com) + float(np.sqrt(abs(np.trace(body.inertia) / body.mass)))


def _random_coordinates(kind: Joint, rng: np.random.Generator, length: float) -> list[float]:
    q = np.array(kind.random(rng, ()), dtype=float)
    lengths = [measure.of == LENGTH for measure in kind.measures("q")]
    q[lengths] *= length
    return list(q.tolist())


def _length(array: np.ndarray) -> float:
    return float(np.linalg.norm(array))


def _directions(rows: np.ndarray) -> np.ndarray:
    """Rows as unit vectors; zero stays zero."""
    sizes = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(sizes > 0.0, sizes, 1.0))


def _rank(matrix: np.ndarray) -> int:
    return int((np.linalg.svd(matrix, compute_uv=False) > SAME_DIRECTION).sum()) if matrix.size else 0
