"""Serial arms as the JPL papers number them: link 1 is the tip, link n hangs on the ground, joint k is the inner joint
of link k, joint 0 any point of link 1.

Arrays over links or joints have n + 1 rows so that row k belongs to number k; row 0 is NaN (or joint 0's).
Everything here is made from the mechanism's data alone: none of the library's kinematics or dynamics is used.
"""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw


def cross(a) -> np.ndarray:
    """(3, 3): ``cross(a) @ b`` is a x b."""
    x, y, z = a
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def to_tip(values) -> np.ndarray:
    """Rows in the library's order (base to tip, from 0) as rows 1..n from the tip; row 0 is NaN."""
    values = np.asarray(values, dtype=float)
    return np.concatenate([np.full_like(values[:1], np.nan), values[::-1]])


def to_base(values) -> np.ndarray:
    """The inverse of ``to_tip``."""
    return np.asarray(values)[:0:-1]


def reversed_both(matrix) -> np.ndarray:
    """A joint-space matrix with rows and columns in the opposite order."""
    return np.asarray(matrix)[::-1, ::-1]


def random_arm(n: int, seed: int, kinds: str = "R") -> lw.Mechanism:
    """An arm of n links with general geometry and inertias; ``kinds`` (R, P) is repeated along it from the base."""
    rng = np.random.default_rng(seed)
    builder = lw.Builder()
    for i in range(n):
        kind = {"R": lw.Revolute, "P": lw.Prismatic}[kinds[i % len(kinds)]](rng.normal(size=3))
        turn, extents = Rotation.random(rng=rng).as_matrix(), rng.uniform(0.1, 0.4, 3)
        mass = rng.uniform(0.5, 3.0)
        second_moments = mass * (turn * extents**2) @ turn.T
        inertia = np.trace(second_moments) * np.eye(3) - second_moments
        builder.link(f"link{i}", mass, rng.uniform(-0.4, 0.4, 3), inertia)
        pose = (Rotation.random(rng=rng).as_matrix(), rng.uniform(-0.5, 0.5, 3))
        builder.joint(f"joint{i}", kind, f"link{i - 1}" if i else "ground", f"link{i}", pose)
    return builder.build(f"random_arm_{n}_{seed}", gravity=rng.normal(size=3) * 5.0)


class TipToBase:
    """A serial mechanism of revolute and prismatic joints at the configuration q.

    axes      "world": all spatial vectors in world axes; "link": those of link k in its own axes
    tip       joint 0 in the frame of link 1
    n         number of links
    rotation  (n+1, 3, 3) axes of link k in the world        origin   (n+1, 3) joint k in the world
    mass      (n+1,)                                         p        (n+1, 3) from joint k to the mass centre
    inertia   (n+1, 3, 3) about the mass centre
    """

    def __init__(self, mech: lw.Mechanism, q, axes: str = "world", tip=(0.1, 0.2, 0.3)) -> None:
        assert mech.parents == tuple(range(-1, mech.n_links - 1)), "a serial arm is needed"
        assert axes in ("world", "link") and not any(any(body.armature) for body in mech.bodies)
        self.n, self.axes, self.gravity = mech.n_links, axes, np.array(mech.gravity)
        self._in_world = axes == "world"
        self._kinds = [None, *(body.kind for body in mech.bodies[::-1])]
        rotations, origins, turn, place = [], [], np.eye(3), np.zeros(3)
        for body, angle in zip(mech.bodies, q, strict=True):
            turn, place = turn @ body.rotation, place + turn @ body.position
            along = np.array(body.kind.axis) * angle
            if isinstance(body.kind, lw.Revolute):
                turn = turn @ Rotation.from_rotvec(along).as_matrix()
            else:
                place = place + turn @ along
            rotations.append(turn)
            origins.append(place)
        self.rotation, self.origin = to_tip(rotations), to_tip(origins)
        self.rotation[0], self.origin[0] = turn, place + turn @ np.asarray(tip)
        self.mass = to_tip([body.mass for body in mech.bodies])
        self.p = self._in_axes(to_tip([body.com for body in mech.bodies]))
        inertia = to_tip([body.inertia for body in mech.bodies])
        self.inertia = self.rotation @ inertia @ self.rotation.transpose(0, 2, 1) if self._in_world else inertia

    def _in_axes(self, vectors: np.ndarray) -> np.ndarray:
        """Three-vectors given in link axes, row k for link k, in the axes chosen."""
        return np.einsum("kij,kj->ki", self.rotation, vectors) if self._in_world else vectors

    def from_links(self, values) -> np.ndarray:
        """(n, 6) of the library, base to tip in link axes, as (n+1, 6) in this numbering and these axes."""
        values = to_tip(values)
        return np.hstack([self._in_axes(values[:, :3]), self._in_axes(values[:, 3:])])

    def turn(self, k: int, m: int) -> np.ndarray:
        """From the axes of link m to those of link k."""
        return np.eye(3) if self._in_world else self.rotation[k].T @ self.rotation[m]

    def L(self, k: int, m: int) -> np.ndarray:
        """From joint k to joint m, in the axes of link k."""
        vector = self.origin[m] - self.origin[k]
        return vector if self._in_world else self.rotation[k].T @ vector

    def phi(self, k: int, m: int) -> np.ndarray:
        """(6, 6): a spatial force at joint m as one at joint k; its transpose takes motions the other way."""
        turn = self.turn(k, m)
        return np.block([[turn, cross(self.L(k, m)) @ turn], [np.zeros((3, 3)), turn]])

    def axis(self, k: int) -> np.ndarray:
        """The axis of joint k, in the axes of link k."""
        axis = np.array(self._kinds[k].axis)
        return self.rotation[k] @ axis if self._in_world else axis

    def H(self, k: int) -> np.ndarray:
        """(1, 6): [h^T 0] of a revolute joint, [0 h^T] of a prismatic one."""
        h, nothing = self.axis(k), np.zeros(3)
        return np.concatenate([h, nothing] if isinstance(self._kinds[k], lw.Revolute) else [nothing, h])[None, :]

    def M(self, k: int) -> np.ndarray:
        """(6, 6): the spatial inertia of link k about joint k."""
        mass, p = self.mass[k], cross(self.p[k])
        return np.block([[self.inertia[k] - mass * p @ p, mass * p], [-mass * p, mass * np.eye(3)]])

    # Stacked over links 1..n ----------------------------------------------------------------------------------------

    def stacked_phi(self) -> np.ndarray:
        """(6n, 6n) block lower triangular, the identity on the diagonal."""
        links = range(1, self.n + 1)
        return np.block([[self.phi(k, m) if k >= m else np.zeros((6, 6)) for m in links] for k in links])

    def stacked_H(self) -> np.ndarray:
        """(n, 6n) block diagonal."""
        return block_diagonal([self.H(k) for k in range(1, self.n + 1)])

    def stacked_M(self) -> np.ndarray:
        """(6n, 6n) block diagonal."""
        return block_diagonal([self.M(k) for k in range(1, self.n + 1)])


def block_diagonal(blocks) -> np.ndarray:
    rows, columns = np.cumsum([(0, 0), *(block.shape for block in blocks)], axis=0).T
    whole = np.zeros((rows[-1], columns[-1]))
    for i, block in enumerate(blocks):
        whole[rows[i] : rows[i + 1], columns[i] : columns[i + 1]] = block
    return whole
