"""An independent solver in maximal coordinates: every link a free body in the world, every joint, in the tree or
closing a loop, a set of equations between points and directions, multipliers by least squares.  Nothing of linkwise's
dynamics or loop constraints is used, only poses and velocities of links."""

from __future__ import annotations

import numpy as np

import linkwise as lw
from linkwise.mechanism import Mechanism


class Side:
    """A frame on a body (or on the ground): point and directions in the world, and how they move."""

    def __init__(self, solver: Maximal, body: int, rotation: np.ndarray, position: np.ndarray):
        self.body = body
        pose, self.omega, self.velocity = solver.frames[body]
        self.rotation = pose[:3, :3] @ rotation
        self.point = pose[:3, :3] @ position + pose[:3, 3]
        self.arm = self.point - solver.centres[body]
        self.size = 6 * len(solver.bodies)
        self.point_velocity = solver.centre_velocities[body] + np.cross(self.omega, self.arm)

    def row(self, angular: np.ndarray, linear: np.ndarray) -> np.ndarray:
        """A row that takes [alpha; a] of this body, all others zero."""
        row = np.zeros(self.size)
        if self.body >= 0:
            row[6 * self.body : 6 * self.body + 6] = [*angular, *linear]
        return row


class Maximal:
    def __init__(self, mech: Mechanism, q: np.ndarray, v: np.ndarray):
        self.mech, self.bodies = mech, mech.bodies
        poses, twists = lw.link_poses(mech, q), lw.link_velocities(mech, q, v)
        still = (np.eye(4), np.zeros(3), np.zeros(3))
        self.frames = {-1: still}
        self.centres, self.centre_velocities = {-1: np.zeros(3)}, {-1: np.zeros(3)}
        for i, body in enumerate(self.bodies):
            turn = poses[i, :3, :3]
            omega, velocity, arm = turn @ twists[i, :3], turn @ twists[i, 3:], turn @ body.com
            self.frames[i] = (poses[i], omega, velocity)
            self.centres[i] = poses[i, :3, 3] + arm
            self.centre_velocities[i] = velocity + np.cross(omega, arm)
        self.rows: list[np.ndarray] = []
        self.rights: list[float] = []

    def side(self, body: int, rotation=None, position=(0.0, 0.0, 0.0)) -> Side:
        return Side(self, body, np.eye(3) if rotation is None else np.asarray(rotation), np.asarray(position))

    # -- equations between two sides; each is the second derivative of something that stays constant ---------

    def same_point(self, a: Side, b: Side) -> None:
        for axis in np.eye(3):
            row = b.row(np.cross(b.arm, axis), axis) - a.row(np.cross(a.arm, axis), axis)
            spin = [np.cross(s.omega, np.cross(s.omega, s.arm)) for s in (a, b)]
            self._add(row, axis @ (spin[0] - spin[1]))

    def same_angle(self, a: Side, first: np.ndarray, b: Side, second: np.ndarray) -> None:
        """first . second stays constant; directions in the world."""
        da, db = np.cross(a.omega, first), np.cross(b.omega, second)
        row = a.row(np.cross(first, second), np.zeros(3)) + b.row(np.cross(second, first), np.zeros(3))
        right = np.cross(a.omega, da) @ second + 2.0 * da @ db + first @ np.cross(b.omega, db)
        self._add(row, -right)

    def no_advance(self, a: Side, direction: np.ndarray, b: Side) -> None:
        """direction (on a) . (point of b - point of a) stays constant."""
        apart = b.point - a.point
        rate = np.cross(a.omega, direction)
        row = b.row(np.cross(b.arm, direction), direction)
        row = row + a.row(np.cross(direction, apart) - np.cross(a.arm, direction), -direction)
        spin = np.cross(b.omega, np.cross(b.omega, b.arm)) - np.cross(a.omega, np.cross(a.omega, a.arm))
        right = np.cross(a.omega, rate) @ apart + 2.0 * rate @ (b.point_velocity - a.point_velocity) + direction @ spin
        self._add(row, -right)

    def joint(self, kind, a: Side, b: Side) -> None:
        """``kind`` between its fixed side a and its moving side b."""
        if isinstance(kind, lw.Floating):
            return
        if isinstance(kind, lw.Revolute | lw.Spherical | lw.Universal):
            self.same_point(a, b)
        if isinstance(kind, lw.Universal):
            self.same_angle(a, a.rotation @ kind.axis1, b, b.rotation @ kind.axis2)
        if isinstance(kind, lw.Revolute | lw.Prismatic):
            across = np.linalg.svd(np.atleast_2d(kind.axis))[2][1:]
            for direction in across:
                self.same_angle(a, a.rotation @ direction, b, b.rotation @ kind.axis)
                if isinstance(kind, lw.Prismatic):
                    self.no_advance(a, a.rotation @ direction, b)
            if isinstance(kind, lw.Prismatic):
                self.same_angle(a, a.rotation @ across[0], b, b.rotation @ across[1])

    def _add(self, row: np.ndarray, right: float) -> None:
        self.rows.append(row)
        self.rights.append(right)

    # -- solution --------------------------------------------------------------------------------------------

    def accelerations(self, tau: np.ndarray) -> np.ndarray:
        """(n_links, 6): [alpha; acceleration of the mass centre] in the world, under joint forces tau."""
        n = 6 * len(self.bodies)
        mass, force = np.zeros((n, n)), np.zeros(n)
        for i, body in enumerate(self.bodies):
            own = slice(6 * i, 6 * i + 6)
            turn, omega = self.frames[i][0][:3, :3], self.frames[i][1]
            inertia = turn @ body.inertia @ turn.T
            mass[own, own] = np.block([[inertia, np.zeros((3, 3))], [np.zeros((3, 3)), body.mass * np.eye(3)]])
            force[own] += [*(-np.cross(omega, inertia @ omega)), *(body.mass * self.mech.gravity)]
            a = self.side(body.parent, body.rotation, body.position)
            b = self.side(i)
            self._joint_force(body, a, b, tau, force)
            self.joint(body.kind, a, b)
        for loop in self.mech.loops:
            frames = [self.mech.frame(link) for link in (loop.link_a, loop.link_b)]
            a, b = (
                self.side(f.body, f.rotation @ pose[0], f.rotation @ pose[1] + f.position)
                for f, pose in zip(frames, (loop.pose_a, loop.pose_b), strict=True)
            )
            self.joint(loop.kind, a, b)
        rows = np.array(self.rows)
        whole = np.block([[mass, rows.T], [rows, np.zeros((len(rows), len(rows)))]])
        solution = np.linalg.lstsq(whole, np.concatenate([force, self.rights]), rcond=1e-12)[0]
        return solution[:n].reshape(-1, 6)

    def _joint_force(self, body, a: Side, b: Side, tau: np.ndarray, force: np.ndarray) -> None:
        """tau as moments and forces on both sides (kinds of one freedom, universal and free joints)."""
        own = tau[self.mech.v_index(body.joint)]
        if isinstance(body.kind, lw.Floating):
            wrenches = [(b.rotation @ own[:3], b.rotation @ own[3:])]
        elif isinstance(body.kind, lw.Universal):
            axes = np.column_stack([a.rotation @ body.kind.axis1, b.rotation @ body.kind.axis2])
            # The moment with these components along the axes and none square to them.
            square = np.cross(axes[:, 0], axes[:, 1])
            wrenches = [(np.linalg.solve(np.vstack([axes.T, square]), [*own, 0.0]), np.zeros(3))]
        elif isinstance(body.kind, lw.Prismatic):
            wrenches = [(np.zeros(3), a.rotation @ body.kind.axis * own[0])]
        else:
            wrenches = [(a.rotation @ body.kind.axis * own[0], np.zeros(3))]
        for moment, push in wrenches:
            for side, sign, point in ((b, 1.0, b.point), (a, -1.0, b.point)):
                if side.body >= 0:
                    arm = point - self.centres[side.body]
                    force[6 * side.body : 6 * side.body + 6] += sign * np.array(
                        [*(moment + np.cross(arm, push)), *push]
                    )


def of_mass_centres(mech: Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """(n_links, 6): the same accelerations from joint accelerations."""
    poses, twists, rates = lw.link_poses(mech, q), lw.link_velocities(mech, q, v), lw.link_accelerations(mech, q, v, a)
    result = []
    for pose, twist, rate, body in zip(poses, twists, rates, mech.bodies, strict=True):
        omega, alpha = twist[:3], rate[:3]
        origin = rate[3:] + np.cross(omega, twist[3:])
        centre = origin + np.cross(alpha, body.com) + np.cross(omega, np.cross(omega, body.com))
        result.append([*(pose[:3, :3] @ alpha), *(pose[:3, :3] @ centre)])
    return np.array(result)
