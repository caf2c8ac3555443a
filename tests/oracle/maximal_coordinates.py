"""Closed mechanisms in maximal coordinates and extended precision: every body free in the world, every joint, of the
tree or of a loop, six equations with its own accelerations as unknowns.

Nothing of linkwise but the numbers of a mechanism is used.  Twists and wrenches are in world axes about the world's
origin, so that a joint is a set of screws, each fixed in one of the two bodies: it moves as that body does, and

    V_b = V_a + sum s_k v_k,      dV_b/dt = dV_a/dt + sum s_k dv_k/dt + sum (V_carrier x s_k) v_k.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import linkwise as lw

from .extended_precision import Real, extended, row_space, solve_lower, solve_positive

RANK = 1e-11  # rows that leave less than this after the others say nothing new


class Pose(NamedTuple):
    rotation: np.ndarray
    position: np.ndarray

    def then(self, rotation, position) -> Pose:
        return Pose(self.rotation @ extended(rotation), self.rotation @ extended(position) + self.position)


class Screw(NamedTuple):
    """A unit twist, and which side of the joint carries it."""

    twist: np.ndarray
    on_b: bool


WORLD = Pose(np.eye(3, dtype=Real), np.zeros(3, dtype=Real))


# -- joints by their definition -------------------------------------------------------------------------


def about(axis, angle) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = extended(axis) / np.sqrt(extended(axis) @ extended(axis))
    skew = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=Real)
    return np.eye(3, dtype=Real) + np.sin(angle) * skew + (1 - np.cos(angle)) * (skew @ skew)


def of_quaternion(q) -> np.ndarray:
    w, x, y, z = extended(q) / np.sqrt(extended(q) @ extended(q))
    rows = [
        [w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y)],
        [2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x)],
        [2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
    return np.array(rows, dtype=Real)


def moved(kind: lw.extend.Joint, side_a: Pose, q) -> Pose:
    """Where the far side of a joint is."""
    q, still = extended(q), np.zeros(3)
    match kind:
        case lw.Fixed():
            return side_a
        case lw.Revolute():
            return side_a.then(about(kind.axis, q[0]), still)
        case lw.Prismatic():
            return side_a.then(np.eye(3), q[0] * extended(kind.axis))
        case lw.Helical():
            return side_a.then(about(kind.axis, q[0]), extended(kind.pitch) * q[0] * extended(kind.axis))
        case lw.Cylindrical():
            return side_a.then(about(kind.axis, q[0]), q[1] * extended(kind.axis))
        case lw.Universal():
            return side_a.then(about(kind.axis1, q[0]) @ about(kind.axis2, q[1]), still)
        case lw.PinInSlot():
            return side_a.then(about(kind.pin_axis, q[1]), q[0] * extended(kind.slide_axis))
        case lw.Planar():
            return side_a.then(about(kind.normal, q[2]), extended(kind.alignment)[:, :2] @ q[:2])
        case lw.Spherical():
            return side_a.then(of_quaternion(q), still)
        case lw.Floating():
            return side_a.then(of_quaternion(q[:4]), q[4:])
    raise NotImplementedError(f"joint {kind}")


def screws(kind: lw.extend.Joint, side_a: Pose, side_b: Pose) -> list[Screw]:
    """The unit twists of the joint's velocities, in the order of v."""

    def turn(direction, on_b: bool = False, pitch: float = 0.0) -> Screw:
        side = side_b if on_b else side_a
        axis = side.rotation @ extended(direction)
        return Screw(np.concatenate([axis, np.cross(side.position, axis) + extended(pitch) * axis]), on_b)

    def slide(direction, on_b: bool = False) -> Screw:
        axis = (side_b if on_b else side_a).rotation @ extended(direction)
        return Screw(np.concatenate([np.zeros(3, dtype=Real), axis]), on_b)

    match kind:
        case lw.Fixed():
            return []
        case lw.Revolute():
            return [turn(kind.axis)]
        case lw.Prismatic():
            return [slide(kind.axis)]
        case lw.Helical():
            return [turn(kind.axis, pitch=kind.pitch)]
        case lw.Cylindrical():
            return [turn(kind.axis), slide(kind.axis)]
        case lw.Universal():
            return [turn(kind.axis1), turn(kind.axis2, on_b=True)]
        case lw.PinInSlot():
            return [slide(kind.slide_axis), turn(kind.pin_axis, on_b=True)]
        case lw.Planar():
            x, y, _ = np.array(kind.alignment).T
            return [slide(x), slide(y), turn(kind.normal, on_b=True)]
        case lw.Spherical():
            return [turn(axis, on_b=True) for axis in np.eye(3)]
        case lw.Floating():
            return [each(axis, on_b=True) for each in (turn, slide) for axis in np.eye(3)]
    raise NotImplementedError(f"joint {kind}")


def crossed(twist: np.ndarray, moving: np.ndarray) -> np.ndarray:
    """The rate of a twist that is carried along by another."""
    omega, linear = twist[:3], twist[3:]
    return np.concatenate([np.cross(omega, moving[:3]), np.cross(omega, moving[3:]) + np.cross(linear, moving[:3])])


# -- the mechanism --------------------------------------------------------------------------------------


def place(mech: lw.Mechanism, q: np.ndarray) -> dict[int, Pose]:
    """Where the bodies are; -1 is the ground."""
    poses = {-1: WORLD}
    for i, body in enumerate(mech.bodies):
        ratio, offset = (body.mimic.ratio, body.mimic.offset) if body.mimic else (1.0, 0.0)
        own = extended(ratio) * extended(q[mech.q_index(body.joint)]) + extended(offset)
        poses[i] = moved(body.kind, poses[body.parent].then(body.rotation, body.position), own)
    return poses


class _System:
    """M x = F + C* lambda with C x = b; x: rates of all twists, accelerations of the tree's joints, of the loops'."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, v: np.ndarray):
        self.mech, self.poses, self.twists = mech, place(mech, q), {-1: np.zeros(6, dtype=Real)}
        self.of_tree = 6 * mech.n_links
        self.of_loops = self.of_tree + mech.nv
        loops = [loop for loop in mech.loops if isinstance(loop, lw.constraints.Loop)]
        size = self.of_loops + sum(loop.kind.nv for loop in loops)
        self.mass, self.force = np.zeros((size, size), dtype=Real), np.zeros(size, dtype=Real)
        self.rows: list[np.ndarray] = []
        self.rights: list[np.ndarray] = []
        for i in range(mech.n_links):
            self._add_body(i, extended(v))
        start = self.of_loops
        for loop in loops:
            self._add_loop(loop, start)
            start += loop.kind.nv
        for coupling in mech.loops:
            if isinstance(coupling, lw.constraints.Coupling):
                self._add_coupling(coupling)

    def _add_body(self, i: int, v: np.ndarray) -> None:
        body, own = self.mech.bodies[i], self.mech.v_index(self.mech.bodies[i].joint)
        columns = np.arange(self.mech.nv)[own] + self.of_tree
        ratio = extended(body.mimic.ratio if body.mimic else 1.0)
        side_a = self.poses[body.parent].then(body.rotation, body.position)
        rates = ratio * v[own]
        joint = screws(body.kind, side_a, self.poses[i])
        self.twists[i] = sum((s.twist * rate for s, rate in zip(joint, rates, strict=True)), self.twists[body.parent])
        self._add_joint(joint, rates, body.parent, i, columns, ratio)
        rotor = np.broadcast_to(extended(body.armature), columns.shape)
        self.mass[columns, columns] += ratio**2 * rotor
        self._add_inertia(i)

    def _add_inertia(self, i: int) -> None:
        body, pose, twist = self.mech.bodies[i], self.poses[i], self.twists[i]
        centre = pose.rotation @ extended(body.com) + pose.position
        x, y, z = centre
        arm = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]], dtype=Real)
        mass, inertia = extended(body.mass), pose.rotation @ extended(body.inertia) @ pose.rotation.T
        about_origin = np.block([[inertia - mass * arm @ arm, mass * arm], [-mass * arm, mass * np.eye(3, dtype=Real)]])
        momentum, weight = about_origin @ twist, mass * extended(self.mech.gravity)
        gyroscopic = [
            np.cross(twist[:3], momentum[:3]) + np.cross(twist[3:], momentum[3:]),
            np.cross(twist[:3], momentum[3:]),
        ]
        own = slice(6 * i, 6 * i + 6)
        self.mass[own, own] = about_origin
        self.force[own] = np.concatenate([np.cross(centre, weight), weight]) - np.concatenate(gyroscopic)

    def _add_loop(self, loop: lw.constraints.Loop, start: int) -> None:
        frames = [self.mech.frame(link) for link in (loop.link_a, loop.link_b)]
        side_a, side_b = (
            self.poses[frame.body].then(frame.rotation, frame.position).then(*pose)
            for frame, pose in zip(frames, (loop.pose_a, loop.pose_b), strict=True)
        )
        a, b = (frame.body for frame in frames)
        joint = screws(loop.kind, side_a, side_b)
        rates = np.zeros(0, dtype=Real)
        if joint:  # velocities are consistent: any of the screws' left inverses gives their rates
            columns = np.array([s.twist for s in joint])
            rates = solve_positive(columns @ columns.T, columns @ (self.twists[b] - self.twists[a]))
        self._add_joint(joint, rates, a, b, np.arange(start, start + len(joint)), extended(1.0))

    def _add_coupling(self, coupling: lw.constraints.Coupling) -> None:
        """The sum of ratio times acceleration is zero."""
        row = np.zeros((1, len(self.force)), dtype=Real)
        for joint, ratio in coupling.ratios:
            body = self.mech.bodies[self.mech.body_index(joint)]
            own = extended(body.mimic.ratio if body.mimic else 1.0)
            row[0, self.of_tree + self.mech.v_index(joint).start] += extended(ratio) * own
        self.rows.append(row)
        self.rights.append(np.zeros(1, dtype=Real))

    def _add_joint(self, joint: list[Screw], rates, a: int, b: int, columns: np.ndarray, ratio) -> None:
        rows, right = np.zeros((6, len(self.force)), dtype=Real), np.zeros(6, dtype=Real)
        for body, sign in ((b, 1.0), (a, -1.0)):
            if body >= 0:
                rows[:, 6 * body : 6 * body + 6] += sign * np.eye(6)
        for screw, rate, column in zip(joint, rates, columns, strict=True):
            rows[:, column] -= ratio * screw.twist
            right += crossed(self.twists[b if screw.on_b else a], screw.twist) * rate
        self.rows.append(rows)
        self.rights.append(right)


class Motion(NamedTuple):
    accelerations: np.ndarray  # (nv,)
    degrees_of_freedom: int
    inconsistency: float  # of the constraints that follow from others, relative: the velocities fit no motion if large
    conditioning: float  # the least that a row says that counts, relative to the most
    redundancy: float  # the most that a row says that does not count, relative to the most


def forward_dynamics(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, tau: np.ndarray, rank: float = RANK) -> Motion:
    """Accelerations under joint forces, all loops kept closed."""
    system = _System(mech, q, v)
    constraints, right = np.concatenate(system.rows), np.concatenate(system.rights)
    system.force[system.of_tree : system.of_loops] += extended(tau)
    space = row_space(constraints, rank)
    kept = len(space.lower)
    fixed = space.across @ solve_lower(space.lower, right[space.order[:kept]])
    moves, mass = space.along, system.mass
    x = fixed + moves @ solve_positive(moves.T @ mass @ moves, moves.T @ (system.force - mass @ fixed))
    left = np.abs(constraints @ x - right).max()
    accelerations = x[system.of_tree : system.of_loops]
    sizes = space.sizes / space.sizes[0]
    return Motion(
        accelerations.astype(float),
        moves.shape[1],
        float(left / (1.0 + np.abs(x).max())),
        float(sizes[kept - 1]),
        float(sizes[kept : kept + 1].max(initial=0.0)),
    )


def free_velocities(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(nv, p): velocities that keep all loops closed, p of them; orthonormal only together with those of all bodies."""
    system = _System(mech, q, np.zeros(mech.nv))
    moves = row_space(np.concatenate(system.rows), RANK).along
    return moves[system.of_tree : system.of_loops].astype(float)


def wrenches_needed(mech: lw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n_links, 6): what all joints and loops together, without gravity, must do to each body for it to move so: its
    rate of momentum less its weight, [moment; force] in world axes about the world's origin."""
    system = _System(mech, q, v)
    rates, found = {-1: np.zeros(6, dtype=Real)}, np.zeros((mech.n_links, 6))
    for i, body in enumerate(mech.bodies):
        own, ratio = mech.v_index(body.joint), extended(body.mimic.ratio if body.mimic else 1.0)
        joint = screws(body.kind, system.poses[body.parent].then(body.rotation, body.position), system.poses[i])
        rates[i] = rates[body.parent]
        for screw, speed, rate in zip(joint, ratio * extended(v[own]), ratio * extended(a[own]), strict=True):
            moving = system.twists[i if screw.on_b else body.parent]
            rates[i] = rates[i] + screw.twist * rate + crossed(moving, screw.twist) * speed
        place = slice(6 * i, 6 * i + 6)
        found[i] = system.mass[place, place] @ rates[i] - system.force[place]
    return found


def in_world(pose: Pose, wrench: np.ndarray) -> np.ndarray:
    """A wrench [moment; force] at the origin of a frame, along its axes, about the world's origin along the world's."""
    moment, force = pose.rotation @ extended(wrench[:3]), pose.rotation @ extended(wrench[3:])
    return np.concatenate([moment + np.cross(pose.position, force), force]).astype(float)
