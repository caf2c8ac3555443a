"""Serial chains as the JPL papers number them: link 1 is the tip, link n hangs on the ground (n + 1), joint k is the
inner joint of link k, point 0 is the tip of link 1.

Rows and lists begin with number 0, so that entry k belongs to number k; what does not exist there is NaN.
``TipToBase`` is made from the mechanism's data alone: none of the library's kinematics or dynamics is used, and complex
coordinates are welcome, for derivatives by complex steps. ``Chain`` adds a motion and the way to the library's results.
"""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from scipy.linalg import block_diag
from scipy.spatial.transform import Rotation

import linkwise as lw

# Marks and comparisons ------------------------------------------------------------------------------------------------


def results(paper: str, *ids: str, by: str):
    """Mark a test as checking these entries of the ledger, on the ``by="library"`` or on its own ``by="model"``."""

    def mark(test):
        for id in ids:
            test = pytest.mark.seed(paper, id, by=by)(test)
        return test

    return mark


def close(actual, expected, tolerance=1e-10):
    """Equal to ``tolerance``, relative to the largest number (or to one); NaN equals nothing."""
    expected = np.asarray(expected)
    tolerance *= max(1.0, np.abs(expected).max(initial=0.0))
    np.testing.assert_allclose(actual, expected, rtol=0.0, atol=tolerance, equal_nan=False)


def differ(actual, expected):
    """Different by more than any rounding."""
    assert np.abs(np.asarray(actual) - np.asarray(expected)).max() > 1e-3


# Vectors and orders ---------------------------------------------------------------------------------------------------


def tilde(x) -> np.ndarray:
    """(3, 3): ``tilde(x) @ y`` is x cross y."""
    return np.array([[0.0, -x[2], x[1]], [x[2], 0.0, -x[0]], [-x[1], x[0], 0.0]])


def spatial_tilde(x) -> np.ndarray:
    """jain1995 (5.5)."""
    return np.block([[tilde(x[:3]), np.zeros((3, 3))], [tilde(x[3:]), tilde(x[:3])]])


def to_tip(values) -> np.ndarray:
    """Rows in the library's order (base to tip, from 0) as rows 1..n from the tip; row 0 is NaN."""
    values = np.asarray(values)
    return np.concatenate([np.full_like(values[:1], np.nan, dtype=np.result_type(values, float)), values[::-1]])


def to_base(values) -> np.ndarray:
    """The inverse of ``to_tip``."""
    return np.asarray(values)[:0:-1]


def reversed_both(matrix) -> np.ndarray:
    """A joint-space matrix with rows and columns in the opposite order."""
    return np.asarray(matrix)[::-1, ::-1]


# Rates ----------------------------------------------------------------------------------------------------------------


def rate(function, h: float = 5e-3) -> np.ndarray:
    """d/dt at t = 0 of a smooth function of time, by differences of order eight."""
    weights = {1: 4 / 5, 2: -1 / 5, 3: 4 / 105, 4: -1 / 280}
    return sum(w * (np.asarray(function(i * h)) - np.asarray(function(-i * h))) / h for i, w in weights.items())


def rate_of_change(function, mech: lw.Mechanism, q, v) -> np.ndarray:
    """d/dt of function(q(t)) along q_dot = N(q) v."""
    return rate(lambda t: function(lw.integrate(mech, q, v, t)), 2e-3)


# Mechanisms -----------------------------------------------------------------------------------------------------------


@lru_cache  # with a mechanism, its compiled kernels are kept
def random_chain(n: int, seed: int, kinds: str = "R", mobile_base: bool = False) -> lw.Mechanism:
    """n joints of general geometry, a frame "tip" at the end; ``kinds`` (R, P) is repeated along it from the base,
    which is the ground or a floating link."""
    rng = np.random.default_rng(seed)
    builder, parent = lw.Builder(), "ground"

    def link(name):
        axes, extents, mass = Rotation.random(rng=rng).as_matrix(), rng.uniform(0.1, 0.4, 3), rng.uniform(0.5, 3.0)
        second_moments = mass * (axes * extents**2) @ axes.T
        inertia = np.trace(second_moments) * np.eye(3) - second_moments
        builder.link(name, mass, rng.uniform(-0.4, 0.4, 3), inertia)

    def pose():
        return Rotation.random(rng=rng).as_matrix(), rng.uniform(-0.5, 0.5, 3)

    if mobile_base:
        link("base")
        builder.joint("free", lw.Floating(), "ground", "base", pose())
        parent = "base"
    for i in range(n):
        kind = {"R": lw.Revolute, "P": lw.Prismatic}[kinds[i % len(kinds)]](rng.normal(size=3))
        link(f"link{i}")
        builder.joint(f"joint{i}", kind, parent, f"link{i}", pose())
        parent = f"link{i}"
    builder.link("tip").joint("tip_joint", lw.Fixed(), parent, "tip", pose())
    return builder.build(f"random_chain_{n}_{seed}", gravity=rng.normal(size=3) * 5.0)


def joint_motion(kind, q) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and translation across a joint at its coordinates q, a revolute or prismatic one's also complex."""
    if isinstance(kind, lw.Floating):
        return Rotation.from_quat(q[:4], scalar_first=True).as_matrix(), q[4:]
    axis, [q] = np.array(kind.axis), q
    if isinstance(kind, lw.Prismatic):
        return np.eye(3), axis * q
    return np.eye(3) + np.sin(q) * tilde(axis) + (1.0 - np.cos(q)) * tilde(axis) @ tilde(axis), np.zeros(3)


class TipToBase:
    """A serial mechanism of revolute and prismatic joints, perhaps on a floating base, at the configuration q.

    axes      "world": all spatial vectors in world axes; "link": those of link k in its own axes
    rotation  (n+2, 3, 3) axes of link k in the world        origin   (n+2, 3) joint k in the world
    mass      (n+1,)                                         p        (n+1, 3) from joint k to the mass centre
    inertia   (n+1, 3, 3) about the mass centre              I        (n+1, 3, 3) about joint k
    M         (n+1, 6, 6) spatial inertia about joint k
    h, H      lists: axis of joint k (None of a floating base), and its (1, 6) or (6, 6) joint map; H(0) = 0
    joints    (nv, nv) brings joint vectors of the library into this order and these axes
    links     (6n, 6n) brings link vectors of the library into this order and these axes
    """

    def __init__(self, mech: lw.Mechanism, q, axes: str = "world") -> None:
        n = mech.n_links
        assert mech.tree.parents == tuple(range(-1, n - 1)), "a serial chain is needed"
        assert axes in ("world", "link") and not any(any(body.armature) for body in mech.bodies)
        self.mech, self.q, self.n, self.axes, self.gravity = mech, q, n, axes, np.array(mech.gravity)
        self._in_world = axes == "world"
        self.rotation, self.origin = self._poses()
        bodies = mech.bodies
        self.mass = to_tip([body.mass for body in bodies])
        self.p = self._in_axes(to_tip([body.com for body in bodies]))
        self.inertia = to_tip([body.inertia for body in bodies])
        if self._in_world:
            rot = self.rotation[: n + 1]
            self.inertia = rot @ self.inertia @ rot.transpose(0, 2, 1)
        translation, mass = np.stack([tilde(p) for p in self.p]), self.mass[:, None, None]
        self.I = self.inertia - mass * translation @ translation
        self.M = np.block([[self.I, mass * translation], [-mass * translation, mass * np.eye(3)]])
        self.h, self.H, changes = [None], [np.zeros((1, 6))], []
        for k, body in enumerate(bodies[::-1], start=1):
            rot = self.rotation[k] if self._in_world else np.eye(3)
            if isinstance(body.kind, lw.Floating):  # rodriguez1992 (74)
                self.h.append(None)
                self.H.append(np.eye(6))
                changes.append(np.kron(np.eye(2), rot))
            else:
                h, nothing = rot @ body.kind.axis, np.zeros(3)
                self.h.append(h)
                self.H.append(
                    np.concatenate([h, nothing] if isinstance(body.kind, lw.Revolute) else [nothing, h])[None]
                )
                changes.append(np.eye(1))
        self.sizes = [len(H) for H in self.H[1:]]
        order = np.concatenate([np.arange(mech.nv)[mech.v_index(body.joint)] for body in bodies[::-1]])
        self.joints = block_diag(*changes) @ np.eye(mech.nv)[order]
        rots = self.rotation[1 : n + 1] if self._in_world else np.broadcast_to(np.eye(3), (n, 3, 3))
        self.links = block_diag(*(np.kron(np.eye(2), rot) for rot in rots)) @ np.kron(np.eye(n)[::-1], np.eye(6))

    def _poses(self) -> tuple[np.ndarray, np.ndarray]:
        rots, places, rot, place = [np.eye(3)], [np.zeros(3)], np.eye(3), np.zeros(3)
        for body in self.mech.bodies:
            joint_rot, joint_translation = joint_motion(body.kind, self.q[self.mech.q_index(body.joint)])
            place = place + rot @ (body.position + body.rotation @ joint_translation)
            rot = rot @ body.rotation @ joint_rot
            rots.append(rot)
            places.append(place)
        tip = self.mech.frames.get("tip")
        tip_place = place if tip is None else place + rot @ tip.position
        return np.array([*rots, rot])[::-1], np.array([*places, tip_place])[::-1]

    def _in_axes(self, vectors: np.ndarray) -> np.ndarray:
        """Three-vectors given in link axes, row k for link k, in the axes chosen."""
        return np.einsum("kij,kj->ki", self.rotation[: self.n + 1], vectors) if self._in_world else vectors

    def from_links(self, values) -> np.ndarray:
        """(n, 6) of the library, base to tip in link axes, as (n+1, 6) in this numbering and these axes."""
        values = to_tip(values)
        return np.hstack([self._in_axes(values[:, :3]), self._in_axes(values[:, 3:])])

    def rot(self, k: int, m: int) -> np.ndarray:
        """From the axes of link m to those of link k."""
        return np.eye(3) if self._in_world else self.rotation[k].T @ self.rotation[m]

    def l(self, k: int, m: int) -> np.ndarray:  # noqa: E743 - the papers' name
        """From joint k to joint m, in the axes of link k."""
        vector = self.origin[m] - self.origin[k]
        return vector if self._in_world else self.rotation[k].T @ vector

    def phi(self, k: int, m: int) -> np.ndarray:
        """(6, 6): a spatial force at joint m as one at joint k; its transpose takes motions the other way."""
        rot = self.rot(k, m)
        return np.block([[rot, tilde(self.l(k, m)) @ rot], [np.zeros((3, 3)), rot]])

    # All links --------------------------------------------------------------------------------------------------------

    def stack(self, items) -> np.ndarray:
        """col[x(1), ..., x(n)] of a list that begins with x(0)."""
        return np.concatenate(items[1 : self.n + 1])

    def diagonal(self, items) -> np.ndarray:
        """diag[x(1), ..., x(n)] of a list that begins with x(0)."""
        return block_diag(*items[1 : self.n + 1])

    def split(self, joint_vector) -> list[np.ndarray]:
        """A stacked joint vector as a list that begins with x(0) = 0."""
        return [np.zeros(1), *np.split(joint_vector, np.cumsum(self.sizes)[:-1])]

    def per_link(self, link_vector) -> list[np.ndarray]:
        """A stacked link vector as a list: x(0) = 0 in front, x(n+1) = 0 behind."""
        return [np.zeros(6), *link_vector.reshape(-1, 6), np.zeros(6)]

    def blocks(self, element) -> np.ndarray:
        """The block matrix of element(i, j), i, j = 1 ... n."""
        return np.block([[element(i, j) for j in range(1, self.n + 1)] for i in range(1, self.n + 1)])

    @property
    def stacked_phi(self) -> np.ndarray:
        """rodriguez1992 (17), jain1995 (4.6): the identity is on the diagonal."""
        return self.blocks(lambda i, j: self.phi(i, j) if i >= j else np.zeros((6, 6)))

    @property
    def B(self) -> np.ndarray:
        """rodriguez1992 (18): B* = [phi*(1,0), 0, ..., 0]."""
        return np.concatenate([self.phi(1, 0), np.zeros((6 * (self.n - 1), 6))])


class Chain(TipToBase):
    """A chain in motion, in world axes: phi(i, j) is a pure translation, as rodriguez1992 and jain1995 print it.

    Accelerations are classical: [omega dot; acceleration of joint k] as an inertial observer measures them. The biases,
    which rodriguez1992 leaves to a reference, are then

        a(k) = [omega(k+1) x h(k) theta_dot(k);  omega(k+1) x (omega(k+1) x l(k+1, k))]
        b(k) = [omega(k) x I(k) omega(k);  m(k) omega(k) x (omega(k) x p(k))]

    of revolute joints. Gravity, absent from the papers' equations, is an upward acceleration of the ground and part of
    a(n).

    rates     list of joint rates theta_dot(k)
    V, a, b   lists of link velocities (from the library), bias accelerations and forces
    """

    def __init__(self, mech: lw.Mechanism, q, v) -> None:
        super().__init__(mech, q)
        self.v = v
        self.rates = self.split(self.joints @ v)
        self.V = self.per_link(self.links @ lw.link_velocities(mech, q, v).ravel())
        self.a = [self.bias_acceleration(k, self.V) for k in range(self.n + 1)]
        self.b = [np.full(6, np.nan), *(self.bias_force(k, self.V) for k in range(1, self.n + 1))]

    def bias_acceleration(self, k: int, V) -> np.ndarray:
        """a(k) = a[V(k+1), V(k)], as above."""
        if k == self.n:
            return np.array([0.0, 0.0, 0.0, *(-self.gravity)])
        omega = V[k + 1][:3]
        rotating = np.cross(omega, self.h[k] * self.rates[k]) if k else np.zeros(3)
        return np.concatenate([rotating, np.cross(omega, np.cross(omega, self.l(k + 1, k)))])

    def bias_force(self, k: int, V) -> np.ndarray:
        """b(k) = b[V(k)], as above."""
        omega = V[k][:3]
        moment = np.cross(omega, self.I[k] @ omega)
        return np.concatenate([moment, self.mass[k] * np.cross(omega, np.cross(omega, self.p[k]))])

    def dense(self, expression) -> np.ndarray:
        """A dense operator of the library between link or joint spaces, in the papers' order and axes."""
        matrix = lw.operators.dense(expression, self.mech, self.q)
        change = {self.mech.nv: self.joints, 6 * self.n: self.links}
        return change[matrix.shape[0]] @ matrix @ change[matrix.shape[1]].T

    def wrenches(self, tip_force) -> np.ndarray:
        """Wrenches on the links, (n_links, 6), when the tip exerts ``tip_force`` on its environment."""
        return (self.links.T @ -(self.B @ tip_force)).reshape(-1, 6)

    def accelerations(self, a) -> np.ndarray:
        """Library joint accelerations as the papers': a mobile base's are those an inertial observer measures."""
        result = self.split(self.joints @ a)
        if self.sizes[-1] == 6:
            omega, velocity = self.rates[-1][:3], self.rates[-1][3:]
            result[-1] = result[-1] + np.concatenate([np.zeros(3), np.cross(omega, velocity)])
        return np.concatenate(result[1:])
