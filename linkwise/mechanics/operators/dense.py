"""The oracle: any operator expression as one plain NumPy matrix, stacked literally as the papers print it.

Nothing here is shared with the recursions: the kinematics, the Riccati equation and the propagation operators are
written out once more from their definitions (jain1995 4.6-4.10, rodriguez1992 17, 41), inverses are numerical, and
nothing is fast.  Links are stacked base to tip, six numbers each in the link's own frame, angular part first.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property, singledispatch
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...mechanism import Mechanism
from ..joints import (
    Cylindrical,
    Floating,
    Helical,
    Joint,
    PinInSlot,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from .dense_loops import loop_rows
from .expression import Covector, Expression, Identity, Inverse, Operator, Product, Sum, Vector
from .spaces import COORDINATE, FORCE, JOINT, LOOP, MOTION, SCALAR, Space


def dense(
    expression: Expression, mech: Mechanism, q: ArrayLike, vectors: Mapping[str, Any] | None = None
) -> NDArray[np.float64]:
    """The matrix of an expression, (..., rows, columns) for q of shape (..., nq).

    The matrix acts on joint vectors (a number per degree of freedom of every joint: nv without mimic joints),
    coordinate vectors (nv,), loop vectors (m,) and flattened link vectors (6 n_links,).  Loops of the mechanism only
    enter L; all other operators belong to its spanning tree.  An expression with vectors needs their values by name,
    the same for every q; its matrix has one column.
    """
    if not isinstance(expression, Expression):
        raise TypeError(f"dense() takes an operator expression such as op.H @ op.phi, got {expression!r}")
    if not isinstance(mech, Mechanism):
        raise TypeError(f"dense() takes a mechanism as its second argument, got {mech!r}")
    q = np.asarray(q, dtype=float)
    if q.ndim == 0 or q.shape[-1] != mech.nq:
        raise ValueError(f"q must have shape (..., {mech.nq}) for mechanism {mech.name!r}, got {q.shape}")
    if q.ndim == 1:
        return StackedOperators(mech, q, vectors).matrix(expression)
    states = q.reshape(-1, mech.nq)
    if not len(states):
        neutral = StackedOperators(
            mech, np.concatenate([b.kind.neutral() for b in mech.bodies if not b.mimic]), vectors
        )
        shape = neutral.matrix(expression).shape
        return np.zeros((*q.shape[:-1], *shape))
    matrices = np.array([StackedOperators(mech, state, vectors).matrix(expression) for state in states])
    return matrices.reshape(*q.shape[:-1], *matrices.shape[1:])


# -- one joint ----------------------------------------------------------------------------------------


class JointKinematics(NamedTuple):
    """Kinematics of a joint in one position.

    rotation, position   pose of the child side in the parent side
    motion               (6, nv), H*: twist of the child relative to the parent per unit of each v, in the child frame
    """

    rotation: np.ndarray
    position: np.ndarray
    motion: np.ndarray


@singledispatch
def kinematics(kind: Joint, q: np.ndarray) -> JointKinematics:
    """The joint's pose and motion at its coordinates ``q``."""
    raise TypeError(
        f"the dense operators do not know the joint {kind!r}: "
        "register its pose and motion with @kinematics.register of linkwise.mechanics.operators.dense"
    )


@kinematics.register
def _(kind: Revolute, q: np.ndarray) -> JointKinematics:
    return JointKinematics(rotation_about(kind.axis, q[0]), np.zeros(3), twists((kind.axis, None)))


@kinematics.register
def _(kind: Prismatic, q: np.ndarray) -> JointKinematics:
    return JointKinematics(np.eye(3), q[0] * np.array(kind.axis), twists((None, kind.axis)))


@kinematics.register
def _(kind: Helical, q: np.ndarray) -> JointKinematics:
    advance = kind.pitch * np.array(kind.axis)
    return JointKinematics(rotation_about(kind.axis, q[0]), q[0] * advance, twists((kind.axis, advance)))


@kinematics.register
def _(kind: Cylindrical, q: np.ndarray) -> JointKinematics:
    motion = twists((kind.axis, None), (None, kind.axis))
    return JointKinematics(rotation_about(kind.axis, q[0]), q[1] * np.array(kind.axis), motion)


@kinematics.register
def _(kind: Universal, q: np.ndarray) -> JointKinematics:
    second = rotation_about(kind.axis2, q[1])
    motion = twists((second.T @ kind.axis1, None), (kind.axis2, None))
    return JointKinematics(rotation_about(kind.axis1, q[0]) @ second, np.zeros(3), motion)


@kinematics.register
def _(kind: PinInSlot, q: np.ndarray) -> JointKinematics:
    rotation = rotation_about(kind.pin_axis, q[1])
    motion = twists((None, rotation.T @ kind.slide_axis), (kind.pin_axis, None))
    return JointKinematics(rotation, q[0] * np.array(kind.slide_axis), motion)


@kinematics.register
def _(kind: Planar, q: np.ndarray) -> JointKinematics:
    along_x, along_y = np.array(kind.alignment).T[:2]
    rotation = rotation_about(kind.normal, q[2])
    motion = twists((None, rotation.T @ along_x), (None, rotation.T @ along_y), (kind.normal, None))
    return JointKinematics(rotation, q[0] * along_x + q[1] * along_y, motion)


@kinematics.register
def _(kind: Spherical, q: np.ndarray) -> JointKinematics:
    return JointKinematics(rotation_of_quaternion(q), np.zeros(3), np.eye(6)[:, :3])


@kinematics.register
def _(kind: Floating, q: np.ndarray) -> JointKinematics:
    return JointKinematics(rotation_of_quaternion(q[:4]), q[4:], np.eye(6))


def twists(*columns: tuple) -> np.ndarray:
    """(6, len(columns)) from pairs (angular, linear); None is zero."""
    zero = np.zeros(3)
    return np.array([[*(zero if w is None else w), *(zero if u is None else u)] for w, u in columns]).T


def cross_matrix(x: Any) -> np.ndarray:
    """The matrix x~ with x~ y = x cross y."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def rotation_about(axis: Any, angle: float) -> np.ndarray:
    """Rodrigues' formula for a unit axis."""
    about = cross_matrix(axis)
    return np.eye(3) + np.sin(angle) * about + (1.0 - np.cos(angle)) * about @ about


def rotation_of_quaternion(q: np.ndarray) -> np.ndarray:
    """The rotation matrix of a quaternion [w, x, y, z] of any length but zero."""
    w, xyz = q[0] / np.linalg.norm(q), cross_matrix(q[1:] / np.linalg.norm(q))
    return np.eye(3) + 2.0 * w * xyz + 2.0 * xyz @ xyz


def force_transform(rotation: np.ndarray, position: np.ndarray) -> np.ndarray:
    """(6, 6): maps a force at a frame with this pose to the equivalent force at the frame in which the pose is given.

    For parallel frames this is the phi(k, k-1) of the papers (rodriguez1992 3).
    """
    return np.block([[rotation, cross_matrix(position) @ rotation], [np.zeros((3, 3)), rotation]])


# -- all links ----------------------------------------------------------------------------------------


class StackedOperators:
    """The operators of a mechanism in one configuration as dense matrices, by letter."""

    def __init__(self, mech: Mechanism, q: np.ndarray, vectors: Mapping[str, Any] | None = None) -> None:
        self.mech = mech
        self.vectors = vectors or {}
        self.joint_kinematics = []
        for body in mech.bodies:
            coordinates = q[mech.q_index(body.joint)]
            coordinates = coordinates * body.mimic.ratio + body.mimic.offset if body.mimic else coordinates
            self.joint_kinematics.append(kinematics(body.kind, coordinates))
        ends = np.cumsum([at.motion.shape[1] for at in self.joint_kinematics], dtype=int)
        self.of_joint = [
            slice(end - at.motion.shape[1], end) for end, at in zip(ends, self.joint_kinematics, strict=True)
        ]
        self.n_joint = int(ends[-1]) if len(ends) else 0

    def matrix(self, expression: Expression) -> np.ndarray:
        """The expression, evaluated from the leaves up."""
        match expression:
            case Operator():
                base = self._operator(expression)
                return base.T if expression.adjoint else base
            case Identity():
                return np.eye(self.size(expression.domain, expression))
            case Product():
                result = self.matrix(expression.factors[-1])
                for factor in reversed(expression.factors[:-1]):
                    result = self.matrix(factor) @ result
                return result
            case Sum():
                shape = (self.size(expression.codomain, expression), self.size(expression.domain, expression))
                return sum((weight * self.matrix(term) for weight, term in expression.terms), np.zeros(shape))
            case Inverse():
                return _inverse(self.matrix(expression.of), str(expression.of))
            case Covector():
                return self.matrix(expression.vector).T
            case Vector() if expression.name in self.vectors:
                return self._column(expression)
        raise TypeError(
            f"{expression} is a vector, known only when a kernel is called: dense() takes expressions without vectors, "
            "or the values of joint and link vectors by name; biases are beyond it"
        )

    def _operator(self, operator: Operator) -> np.ndarray:
        """The matrix of an operator; a user's own operator is evaluated by its record."""
        record = operator.record
        if record.dense is not None:
            return record.dense(self)
        if not hasattr(type(self), record.name):
            if record.definition is not None:
                return self.matrix(record.definition)
            raise ValueError(
                f"the oracle has no matrix of {record.name}: give its record dense=..., as docs/extending.md says"
            )
        named = getattr(self, record.name)
        return named(operator.link) if operator.link else named

    def _column(self, vector: Vector) -> np.ndarray:
        values = np.asarray(self.vectors[vector.name], dtype=float)
        size = self.size(vector.codomain, vector)
        if values.size != size:
            raise ValueError(
                f"vector {vector.name!r} of {vector.codomain} has {size} numbers, got shape {values.shape}"
            )
        return values.reshape(size, 1)

    def size(self, space: Space | None, expression: Expression) -> int:
        """Dimension of a space in this mechanism."""
        if space is None:
            raise ValueError(f"{expression} alone has no size: use op.identity(op.JOINT) or another space of op")
        links = 6 * self.mech.n_links
        sizes = {SCALAR: 1, JOINT: self.n_joint, COORDINATE: self.mech.nv, LOOP: self.mech.n_constraints}
        sizes |= {FORCE: links, MOTION: links}
        return sizes.get(space, 6)

    # Rigid transfer of forces ------------------------------------------------------------------------

    @cached_property
    def transfers(self) -> list[np.ndarray]:
        """phi(parent, link) per link: maps forces in the link's frame to forces in its parent's frame."""
        return [
            force_transform(body.rotation @ at.rotation, body.position + body.rotation @ at.position)
            for body, at in zip(self.mech.bodies, self.joint_kinematics, strict=True)
        ]

    @cached_property
    def E_phi(self) -> np.ndarray:
        """jain1995 (4.7): the transfers, each in the block [parent, link]."""
        return self._stacked_transfers(self.transfers)

    @cached_property
    def phi(self) -> np.ndarray:
        """jain1995 (4.6), rodriguez1992 (17): block [i, j] is the product of transfers from j in to i."""
        return self._propagation(self.transfers)

    def _stacked_transfers(self, transfers: list[np.ndarray]) -> np.ndarray:
        total = np.zeros((6 * len(transfers),) * 2)
        for link, parent in enumerate(self.mech.tree.parents):
            if parent >= 0:
                total[_six(parent), _six(link)] = transfers[link]
        return total

    def _propagation(self, transfers: list[np.ndarray]) -> np.ndarray:
        total = np.eye(6 * len(transfers))
        for link in range(len(transfers)):
            block, inner = np.eye(6), link
            while self.mech.tree.parents[inner] >= 0:
                block, inner = transfers[inner] @ block, self.mech.tree.parents[inner]
                total[_six(inner), _six(link)] = block
        return total

    def B(self, link: str) -> np.ndarray:
        """(6 n_links, 6): maps a force at the named frame, in its axes, to a force on the link that carries it."""
        frame = self.mech.frame(link)
        pick_off = np.zeros((6 * self.mech.n_links, 6))
        if frame.body >= 0:  # the ground does not move
            pick_off[_six(frame.body)] = force_transform(frame.rotation, frame.position)
        return pick_off

    def A(self, link: str) -> np.ndarray:
        """(6 n_links, 6): maps a motion of the named frame, in its axes, to the motion of the link that carries it."""
        frame = self.mech.frame(link)
        imposed = np.zeros((6 * self.mech.n_links, 6))
        if frame.body >= 0:
            imposed[_six(frame.body)] = np.linalg.inv(force_transform(frame.rotation, frame.position)).T
        return imposed

    @cached_property
    def W(self) -> np.ndarray:
        """(6, 6 n_links): forces of the links whose parent is the ground, in the world's axes at its origin."""
        blocks = [
            t if parent < 0 else np.zeros((6, 6))
            for t, parent in zip(self.transfers, self.mech.tree.parents, strict=True)
        ]
        return np.hstack([np.zeros((6, 0)), *blocks])

    # Loops -------------------------------------------------------------------------------------------

    @cached_property
    def in_world(self) -> list[np.ndarray]:
        """(4, 4) per link: its pose in the world."""
        poses: list[np.ndarray] = []
        for body, at, parent in zip(self.mech.bodies, self.joint_kinematics, self.mech.tree.parents, strict=True):
            step = np.eye(4)
            step[:3, :3], step[:3, 3] = body.rotation @ at.rotation, body.position + body.rotation @ at.position
            poses.append(poses[parent] @ step if parent >= 0 else step)
        return poses

    @cached_property
    def L(self) -> np.ndarray:
        """(m, 6 n_links): rates of the loop constraints (spencer2004 2.2) per motion of the links."""
        return loop_rows(self.mech, self.in_world, [at.motion for at in self.joint_kinematics])

    # Block-diagonal operators given by joints and masses ---------------------------------------------

    @cached_property
    def H(self) -> np.ndarray:
        """Each joint's rows project its link's force onto the joint's motions."""
        rows = np.zeros((self.n_joint, 6 * self.mech.n_links))
        for link, (columns, at) in enumerate(zip(self.of_joint, self.joint_kinematics, strict=True)):
            rows[columns, _six(link)] = at.motion.T
        return rows

    @cached_property
    def S(self) -> np.ndarray:
        """Joint rates from coordinates: a joint moves with its own coordinate, a mimic joint with ``ratio`` times its
        leader's.
        """
        rows = np.zeros((self.n_joint, self.mech.nv))
        for columns, body in zip(self.of_joint, self.mech.bodies, strict=True):
            size = columns.stop - columns.start
            rows[columns, self.mech.v_index(body.joint)] = np.eye(size) * (body.mimic.ratio if body.mimic else 1.0)
        return rows

    @cached_property
    def M(self) -> np.ndarray:
        """Spatial inertias about the link origins (rodriguez1992 2)."""
        inertias = []
        for body in self.mech.bodies:
            p, m = cross_matrix(body.com), body.mass
            inertias.append(np.block([[body.inertia - m * p @ p, m * p], [-m * p, m * np.eye(3)]]))
        return _block_diagonal(inertias)

    @cached_property
    def R(self) -> np.ndarray:
        """Rotor inertias."""
        return np.diag([value for body in self.mech.bodies for value in body.armature])

    @cached_property
    def C(self) -> np.ndarray:
        """Composite inertias: the subtree of each link with frozen joints (rodriguez1992 29)."""
        total = self.phi @ self.M @ self.phi.T
        return _block_diagonal([total[_six(link), _six(link)] for link in range(self.mech.n_links)])

    @cached_property
    def M_inv(self) -> np.ndarray:
        return _inverse(self.M, "M")

    # Articulated bodies ------------------------------------------------------------------------------

    @cached_property
    def P(self) -> np.ndarray:
        """The Riccati equation (jain1995 4.8), link by link from the tips in, with D = H P H* + R."""
        articulated = [np.array(self.M[_six(link), _six(link)]) for link in range(self.mech.n_links)]
        for link in reversed(range(self.mech.n_links)):
            body, parent, inertia = self.mech.bodies[link], self.mech.tree.parents[link], articulated[link]
            if parent >= 0:
                h = self.joint_kinematics[link].motion.T
                d = h @ inertia @ h.T + np.diag(body.armature)
                gain = inertia @ h.T @ _inverse(d, f"D of joint {body.joint!r}")
                remaining = (np.eye(6) - gain @ h) @ inertia
                articulated[parent] += self.transfers[link] @ remaining @ self.transfers[link].T
        return _block_diagonal(articulated)

    @cached_property
    def D(self) -> np.ndarray:
        return self.H @ self.P @ self.H.T + self.R

    @cached_property
    def D_inv(self) -> np.ndarray:
        return _inverse(self.D, "D")

    @cached_property
    def D_half(self) -> np.ndarray:
        """Cholesky's lower factor; D is block diagonal, so it is too (jain1995 5.1)."""
        return np.linalg.cholesky(self.D)

    @cached_property
    def D_half_inv(self) -> np.ndarray:
        return _inverse(self.D_half, "D_half")

    @cached_property
    def P_inv(self) -> np.ndarray:
        return _inverse(self.P, "P")

    @cached_property
    def G(self) -> np.ndarray:
        return self.P @ self.H.T @ self.D_inv

    @cached_property
    def K(self) -> np.ndarray:
        return self.E_phi @ self.G

    @cached_property
    def tau(self) -> np.ndarray:
        return self.G @ self.H

    @cached_property
    def tau_bar(self) -> np.ndarray:
        return np.eye(6 * self.mech.n_links) - self.tau

    @cached_property
    def P_plus(self) -> np.ndarray:
        return self.tau_bar @ self.P

    @cached_property
    def E_psi(self) -> np.ndarray:
        return self.E_phi @ self.tau_bar

    @cached_property
    def psi(self) -> np.ndarray:
        """(I - E_psi)^-1, written like phi with the articulated transfers (jain1995 4.10)."""
        articulation = [self.tau_bar[_six(link), _six(link)] for link in range(self.mech.n_links)]
        return self._propagation([phi @ tau_bar for phi, tau_bar in zip(self.transfers, articulation, strict=True)])

    @cached_property
    def Omega(self) -> np.ndarray:
        """Mobility of the links: the motions that forces on them cause."""
        return self.psi.T @ self.H.T @ self.D_inv @ self.H @ self.psi

    @cached_property
    def Kt_Omega(self) -> np.ndarray:
        return self.K.T @ self.Omega


def _six(link: int) -> slice:
    return slice(6 * link, 6 * link + 6)


def _block_diagonal(blocks: list[np.ndarray]) -> np.ndarray:
    total = np.zeros((6 * len(blocks),) * 2)
    for link, block in enumerate(blocks):
        total[_six(link), _six(link)] = block
    return total


def _inverse(matrix: np.ndarray, label: str) -> np.ndarray:
    """The numerical inverse; raises ValueError if the matrix is singular or not square."""
    if matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{label} is a {matrix.shape[0]} x {matrix.shape[1]} matrix: it has no inverse")
    if matrix.size and not np.linalg.cond(matrix) < 1.0 / np.finfo(float).eps:
        raise ValueError(f"{label} is singular in this configuration: it has no inverse")
    return np.linalg.inv(matrix)
