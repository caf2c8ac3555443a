"""Inverse and forward dynamics in 50 digits, by Newton's and Euler's laws written in world axes.

Every body has a position, an orientation and a centre of mass in the world; the mass matrix is assembled entry by
entry from momenta and solved densely.  Nothing of linkwise's algorithms is used, only the numbers of a mechanism.
"""

from __future__ import annotations

from dataclasses import dataclass

import mpmath
import numpy as np
import scipy.linalg

import linkwise as lw

DIGITS = 50
exact = np.vectorize(mpmath.mpf, otypes=[object])  # doubles as they are


def unit(x: np.ndarray) -> np.ndarray:
    return x / mpmath.sqrt(x @ x)


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]])


def turned(axis: np.ndarray, angle) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = axis
    skew = exact([[0, 0, 0]] * 3) + np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return exact(np.eye(3)) + mpmath.sin(angle) * skew + (1 - mpmath.cos(angle)) * (skew @ skew)


def of_quaternion(q: np.ndarray) -> np.ndarray:
    w, x, y, z = unit(q)
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - w * z), 2 * (x * z + w * y)],
            [2 * (x * y + w * z), 1 - 2 * (x * x + z * z), 2 * (y * z - w * x)],
            [2 * (x * z - w * y), 2 * (y * z + w * x), 1 - 2 * (x * x + y * y)],
        ]
    )


@dataclass
class Placed:
    """A body in the world: where it is, and for each of its freedoms the direction in which it turns or slides."""

    parent: int
    origin: np.ndarray
    center: np.ndarray
    mass: mpmath.mpf
    inertia: np.ndarray  # about the centre, world axes
    dofs: list[tuple[np.ndarray, bool]]  # unit direction, turns (else slides)
    start: int  # of its part of v


def place(mech: lw.Mechanism, q: np.ndarray) -> list[Placed]:
    """All bodies of a tree of revolute, prismatic, spherical and floating joints at configuration q."""
    placed: list[Placed] = []
    rotations: list[np.ndarray] = []
    for body in mech.bodies:
        if body.parent < 0:
            rotation, origin = exact(np.eye(3)), exact(np.zeros(3))
        else:
            rotation, origin = rotations[body.parent], placed[body.parent].origin
        origin = origin + rotation @ exact(body.position)
        rotation = rotation @ exact(body.rotation)
        own = exact(q[mech.q_index(body.joint)])
        dofs: list[tuple[np.ndarray, bool]]
        if isinstance(body.kind, lw.Revolute):
            axis = unit(exact(body.kind.axis))
            rotation = rotation @ turned(axis, own[0])
            dofs = [(rotation @ axis, True)]
        elif isinstance(body.kind, lw.Prismatic):
            axis = rotation @ unit(exact(body.kind.axis))
            origin = origin + axis * own[0]
            dofs = [(axis, False)]
        elif isinstance(body.kind, lw.Spherical):
            rotation = rotation @ of_quaternion(own)
            dofs = [(column, True) for column in rotation.T]
        elif isinstance(body.kind, lw.Floating):
            origin = origin + rotation @ own[4:]
            rotation = rotation @ of_quaternion(own[:4])
            dofs = [(column, turns) for turns in (True, False) for column in rotation.T]
        else:
            raise NotImplementedError(f"joint {body.kind}")
        placed.append(
            Placed(
                parent=body.parent,
                origin=origin,
                center=origin + rotation @ exact(body.com),
                mass=mpmath.mpf(body.mass),
                inertia=rotation @ exact(body.inertia) @ rotation.T,
                dofs=dofs,
                start=mech.v_index(body.joint).start,
            )
        )
        rotations.append(rotation)
    return placed


def joint_forces(bodies: list[Placed], v: np.ndarray, a: np.ndarray, gravity: np.ndarray) -> np.ndarray:
    """What the joints must supply for accelerations ``a`` at velocities ``v``; both are components along freedoms
    that move with the body, as for quaternion joints."""
    zero = exact(np.zeros(3))
    turning, spinning, accelerating = [], [], []  # omega, alpha, acceleration of the origin
    forces, moments = [], []  # needed by each body; moment about its origin
    for body in bodies:
        if body.parent < 0:
            omega, alpha, acceleration = zero, zero, -gravity
        else:
            parent = bodies[body.parent]
            omega, alpha = turning[body.parent], spinning[body.parent]
            arm = body.origin - parent.origin
            acceleration = accelerating[body.parent] + cross(alpha, arm) + cross(omega, cross(omega, arm))
        turn = slide = turn_rate = slide_rate = zero
        for k, (direction, turns) in enumerate(body.dofs, body.start):
            if turns:
                turn, turn_rate = turn + direction * v[k], turn_rate + direction * a[k]
            else:
                slide, slide_rate = slide + direction * v[k], slide_rate + direction * a[k]
        alpha = alpha + turn_rate + cross(omega, turn)
        # The slide is along directions that turn with the body (floating) or with the parent (prismatic: no turn).
        acceleration = acceleration + slide_rate + 2 * cross(omega, slide) + cross(turn, slide)
        omega = omega + turn
        turning.append(omega), spinning.append(alpha), accelerating.append(acceleration)
        arm = body.center - body.origin
        force = body.mass * (acceleration + cross(alpha, arm) + cross(omega, cross(omega, arm)))
        forces.append(force)
        moments.append(body.inertia @ alpha + cross(omega, body.inertia @ omega) + cross(arm, force))
    tau = exact(np.zeros(len(v)))
    for i in reversed(range(len(bodies))):
        body = bodies[i]
        for k, (direction, turns) in enumerate(body.dofs, body.start):
            tau[k] = direction @ (moments[i] if turns else forces[i])
        if body.parent >= 0:
            forces[body.parent] = forces[body.parent] + forces[i]
            arm = body.origin - bodies[body.parent].origin
            moments[body.parent] = moments[body.parent] + moments[i] + cross(arm, forces[i])
    return tau


def mass_matrix(bodies: list[Placed], nv: int) -> np.ndarray:
    """Momenta of everything a joint carries, for a unit rate of that joint, seen by the joints that carry it.

    Mass, first moment h and inertia of what each body carries are about the world's origin, where it moves with
    angular velocity omega and the velocity v0 of the point that is there.
    """
    masses = [body.mass for body in bodies]
    firsts = [body.mass * body.center for body in bodies]
    seconds = [
        body.inertia + body.mass * ((body.center @ body.center) * exact(np.eye(3)) - np.outer(body.center, body.center))
        for body in bodies
    ]
    for i in reversed(range(len(bodies))):
        if bodies[i].parent >= 0:
            for collected in (masses, firsts, seconds):
                collected[bodies[i].parent] = collected[bodies[i].parent] + collected[i]
    result = exact(np.zeros((nv, nv)))
    for i, body in enumerate(bodies):
        for column, (direction, turns) in enumerate(body.dofs, body.start):
            if turns:
                v0 = cross(body.origin, direction)
                linear = masses[i] * v0 + cross(direction, firsts[i])
                angular = seconds[i] @ direction + cross(firsts[i], v0)
            else:
                linear, angular = masses[i] * direction, cross(firsts[i], direction)
            inner = i
            while inner >= 0:
                about = angular - cross(bodies[inner].origin, linear)
                for row, (other, turning) in enumerate(bodies[inner].dofs, bodies[inner].start):
                    result[row, column] = result[column, row] = other @ (about if turning else linear)
                inner = bodies[inner].parent
    return result


def inverse_dynamics(mech: lw.Mechanism, q, v, a) -> np.ndarray:
    """(nv,) of mpf, for doubles q, v, a taken as exact."""
    with mpmath.workdps(DIGITS):
        return joint_forces(place(mech, q), exact(v), exact(a), exact(mech.gravity)) + _armature(mech) * exact(a)


def forward_dynamics(mech: lw.Mechanism, q, v, tau) -> np.ndarray:
    """(nv,) of mpf, from the mass matrix and what the joints must supply without acceleration."""
    with mpmath.workdps(DIGITS):
        bodies, nothing = place(mech, q), exact(np.zeros(mech.nv))
        rest = exact(tau) - joint_forces(bodies, exact(v), nothing, exact(mech.gravity))
        return solve(mass_matrix(bodies, mech.nv) + np.diag(_armature(mech)), rest)


def solve(matrix: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The solution of a symmetric positive system: by doubles, and what they leave over solved again and again."""
    scale = 1.0 / np.sqrt(np.diag(matrix).astype(float))
    factor = scipy.linalg.cho_factor(matrix.astype(float) * np.outer(scale, scale))
    x, left_over = exact(np.zeros(len(right))), right
    enough = max(abs(right)) * mpmath.mpf(10) ** (10 - DIGITS)
    for _ in range(40):
        size = max(abs(left_over))
        if size <= enough:
            return x
        x = x + exact(scale * scipy.linalg.cho_solve(factor, scale * (left_over / size).astype(float))) * size
        left_over = right - matrix @ x
    raise ArithmeticError(f"the system is too badly conditioned for doubles: {size} is left over of {max(abs(right))}")


def _armature(mech: lw.Mechanism) -> np.ndarray:
    result = np.zeros(mech.nv)
    for body in mech.bodies:
        result[mech.v_index(body.joint)] = body.armature
    return exact(result)


def relative_error(found: np.ndarray, reference: np.ndarray) -> float:
    """Norm of the difference over the norm of the reference."""
    with mpmath.workdps(DIGITS):
        difference = exact(found) - reference
        return float(mpmath.sqrt(difference @ difference) / mpmath.sqrt(reference @ reference))
