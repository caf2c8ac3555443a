"""Massless joints: joints that can move while nothing with inertia does, so that the mass matrix is singular at every
configuration.

A velocity v has no kinetic energy if the mass centre of every link with mass stands still and no link rotates about an
axis about which it has a moment of inertia.  How large masses are does not matter, only where they are.  So the
decision is one about directions: each link has the space of its motions that the links beyond and their joints can
follow without moving any mass.  A sweep from tips to base finds these spaces at a random configuration.  Lengths are
compared with those of the links that take part, so that units do not matter.
"""

from __future__ import annotations

from collections.abc import Sequence
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


# -- the sweep from tips to base ------------------------------------------------------------------------------------


def _massless_at(mech: Mechanism, rng: np.random.Generator) -> tuple[MasslessJoint, ...]:
    """The massless joints at a random configuration."""
    joints = _Sweep(mech, rng).massless()
    if joints and mech.coordinates.mimic_joints:  # as free joints they would move without mass; perhaps not so together
        leaders = dict.fromkeys(body.mimic.joint for body in mech.bodies if body.mimic)
        joints = _Sweep(mech, rng, tuple(leaders)).massless()
    return joints


class _Link(NamedTuple):
    """One link of the sweep; motions are ``[omega; v / length]``.

    length    by which linear velocities are divided: that of the links beyond which take part
    resisted  (r, 6 + k) orthonormal rows: their products with a motion of the link, and with the k rates of joints that
              others mimic, vanish if no mass beyond needs to move
    motions   (6, n): unit vectors along the motions of the joint, but for coordinates with armature
    into      (6, 6): motions of the parent ``[omega; v]`` as motions of this link
    """

    length: float
    resisted: np.ndarray
    motions: np.ndarray
    into: np.ndarray


class _Sweep:
    """The spaces of resisted motions, link by link from the tips, at a random configuration.

    leaders   joints that others mimic, if the sweep is to heed that: their rates are eliminated last, as several joints
              share them.  Without it all joints are free
    """

    def __init__(self, mech: Mechanism, rng: np.random.Generator, leaders: tuple[str, ...] = ()) -> None:
        self.mech, self.links = mech, dict[int, _Link]()
        self._columns: dict[str, slice] = {}
        self._width = 6
        for joint in leaders:
            nv = mech.bodies[mech.body_index(joint)].kind.nv
            self._columns[joint] = slice(self._width, self._width + nv)
            self._width += nv
        self._full = [_has_full_inertia(body) for body in mech.bodies]
        self._rows: dict[int, list[np.ndarray]] = {}  # of carried links, on [omega; v] and the rates
        self._reach: dict[int, float] = {}
        self._idle: dict[int, np.ndarray] = {}  # motions of joints that nothing resists
        self._size = max((_own_length(body) + _length(body.position) for body in mech.bodies), default=0.0) or 1.0
        for index in reversed(range(len(mech.bodies))):
            self._add(index, rng)

    def massless(self) -> tuple[MasslessJoint, ...]:
        """Independent joints that can move while nothing with inertia does."""
        bodies = self.mech.bodies
        joints = {bodies[i].joint: self._undone_by(i, motion) for i, motion in self._idle.items()}
        at_ground = np.concatenate([np.zeros((0, self._width)), *self._rows.get(-1, ())])
        at_ground[:, 3:6] *= self._size
        kept = _directions(at_ground)[:, 6:]
        for joint, columns in self._columns.items():
            others = np.delete(kept, range(columns.start - 6, columns.stop - 6), axis=1)
            if _rank(kept) - _rank(others) < columns.stop - columns.start:
                joints[joint] = ()
        return tuple(MasslessJoint(body.joint, joints[body.joint]) for body in bodies if body.joint in joints)

    def _add(self, index: int, rng: np.random.Generator) -> None:
        body = self.mech.bodies[index]
        no_news = body.parent < 0 or self._full[body.parent]
        if self._width == 6 and self._full[index] and no_news:
            return  # it resists its joint, and what it carries does not matter
        length = max(_own_length(body), self._reach.get(index, 0.0)) or self._size
        q = _random_coordinates(body.kind, rng, length)
        motions, into = motions_at(body.kind, q), _link_transform(body, q)
        unit = np.array([1.0] * 3 + [length] * 3)  # [omega; v / length] times this is [omega; v]
        rows = [_own_rows(body, self._width), *self._rows.get(index, ())]
        scaled = np.concatenate(rows) * np.append(unit, np.ones(self._width - 6))
        resisted = _row_space(scaled)
        along = motions / unit[:, None]
        free = [k for k, inertia in enumerate(body.armature) if not inertia]
        link = _Link(length, resisted, along[:, free] / np.linalg.norm(along[:, free], axis=0), into)
        self.links[index] = link
        passed = self._with_rates(body, resisted, along) if self._leader(body) else self._free(index, link)
        outward = np.concatenate([passed[:, :6] / unit @ into, passed[:, 6:]], axis=1)
        self._rows.setdefault(body.parent, []).append(outward)
        reach = length + _length(into[3:, :3])
        self._reach[body.parent] = max(self._reach.get(body.parent, 0.0), reach)

    def _leader(self, body: Body) -> str:
        """The joint whose rates move this one, if they are eliminated last."""
        name = body.mimic.joint if body.mimic else body.joint
        return name if name in self._columns else ""

    def _with_rates(self, body: Body, resisted: np.ndarray, motions: np.ndarray) -> np.ndarray:
        """Rows on motions at the parent's side, where the joint moves with the rates of its leader."""
        ratio, columns = (body.mimic.ratio if body.mimic else 1.0), self._columns[self._leader(body)]
        leader = self.mech.bodies[self.mech.body_index(self._leader(body))].kind
        units = [self._size if measure.of == LENGTH else 1.0 for measure in leader.measures("v")]
        passed = resisted.copy()
        passed[:, columns] += ratio * (resisted[:, :6] @ motions) * units
        turned = [k for k, inertia in enumerate(body.armature) if inertia and ratio]
        return np.concatenate([passed, np.eye(self._width)[columns][turned]])

    def _free(self, index: int, link: _Link) -> np.ndarray:
        """Rows on motions at the parent's side that a free joint cannot undo."""
        left, sizes, right = np.linalg.svd(link.resisted[:, :6] @ link.motions)
        rank = int((sizes > SAME_DIRECTION).sum())
        if rank < len(right):
            self._idle[index] = np.asarray(link.motions @ right[rank])
        elif index not in self._rows and not self.mech.bodies[index].resists_its_joint:  # negative: of no rigid body
            self._idle[index] = np.zeros(6)
        return np.asarray(left[:, rank:].T @ link.resisted)

    def _undone_by(self, index: int, motion: np.ndarray) -> tuple[str, ...]:
        """Joints beyond that move along with this motion of a link, so that masses stand still."""
        names, waiting = [], [(index, motion)]
        while waiting:
            parent, motion = waiting.pop()
            velocity = np.append(motion[:3], motion[3:] * self.links[parent].length)
            for child in self.mech.tree.children[parent]:
                if child not in self.links:
                    continue
                link = self.links[child]
                moved = link.into @ velocity
                moved[3:] /= link.length
                felt = link.resisted[:, :6] @ moved
                if np.linalg.norm(felt) > SAME_DIRECTION * np.linalg.norm(moved):
                    names.append(child)
                    rates = np.linalg.lstsq(link.resisted[:, :6] @ link.motions, felt)[0]
                    moved = moved - link.motions @ rates
                if np.linalg.norm(moved) > SAME_DIRECTION:
                    waiting.append((child, moved))
        return tuple(self.mech.bodies[child].joint for child in sorted(names))


def _own_rows(body: Body, width: int) -> np.ndarray:
    """(r, width): rows whose products with ``[omega; v]`` of a link vanish if its own mass stands still."""
    rows = []
    if body.mass:
        rows.append(np.concatenate([-_skew(body.com), np.eye(3)], axis=1))
    moments, axes = np.linalg.eigh(body.inertia)
    largest = max(np.abs(moments).max(), abs(body.mass) * float(body.com @ body.com))
    resisting = axes.T[np.abs(moments) > SINGULAR_TOLERANCE * largest]
    rows.append(np.concatenate([resisting, np.zeros_like(resisting)], axis=1))
    return np.pad(np.concatenate(rows), ((0, 0), (0, width - 6)))


def _own_length(body: Body) -> float:
    """How far the mass of a link is from its origin; 0 where it has none."""
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


def _row_space(rows: np.ndarray) -> np.ndarray:
    """(r, width): orthonormal rows that span the directions of a matrix's rows."""
    _, singular, right = np.linalg.svd(_directions(rows), full_matrices=False)
    return np.asarray(right[singular > SAME_DIRECTION])


def _rank(matrix: np.ndarray) -> int:
    return int((np.linalg.svd(matrix, compute_uv=False) > SAME_DIRECTION).sum()) if matrix.size else 0
