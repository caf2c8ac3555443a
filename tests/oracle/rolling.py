"""Equations of motion of rolling and gliding bodies as textbooks derive them by hand: numbers and NumPy only."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

G = 9.81


def integrated(rates, start, times):
    """(len(times), n): the solution of an ordinary differential equation at these times, to about 1e-12."""
    found = solve_ivp(rates, (0.0, times[-1]), start, method="DOP853", rtol=1e-12, atol=1e-12, t_eval=times)
    return found.y.T


def disk_rates(mass, radius, across, axial):
    """d/dt of (lean, yaw, w1, w2, w3, x, y) of a thin disk: Newton and Euler at its centre, the force at the point that
    touches eliminated (Routh).

    e1 is the direction of rolling, e2 the axis, e3 upwards in the plane of the disk; w are components of the angular
    velocity along them, (x, y) is where it touches the plane.
    """
    heavy, rolling = across + mass * radius**2, axial + mass * radius**2

    def rates(t, s):
        lean, yaw, w1, w2, w3, _, _ = s
        tangent = np.tan(lean)
        turning = w3 / np.cos(lean)
        # The centre is radius e3 above the point that touches, which moves at radius (w2 - turning sin(lean)) along e1.
        speed = radius * (w2 - turning * np.sin(lean))
        return [
            w1,
            turning,
            (rolling * w2 * w3 - across * w3**2 * tangent + mass * G * radius * np.sin(lean)) / heavy,
            -mass * radius**2 * w1 * w3 / rolling,
            (across * w3 * tangent - axial * w2) * w1 / across,
            speed * np.cos(yaw),
            speed * np.sin(yaw),
        ]

    return rates


def steady_spin(mass, radius, across, axial, lean, w3):
    """w2 with which a disk keeps its lean."""
    weight = mass * G * radius * np.sin(lean)
    return (across * w3**2 * np.tan(lean) - weight) / ((axial + mass * radius**2) * w3)


def sleigh_rates(mass, inertia, ahead):
    """d/dt of (x, y, angle, speed, turning) of Chaplygin's sleigh: a knife edge, the mass centre ahead of it."""
    whole = inertia + mass * ahead**2

    def rates(t, s):
        _, _, angle, speed, turning = s
        return [
            speed * np.cos(angle),
            speed * np.sin(angle),
            turning,
            ahead * turning**2,
            -mass * ahead * speed * turning / whole,
        ]

    return rates


def snakeboard_rates(mass, board, rotor, axle, half, forces):
    """d/dt of (q, v), q = (x, y, angle, rotor, front, rear): Lagrange's equations with multipliers of the two rows that
    keep each axle from going sideways.  ``forces(t)`` are those on q."""
    inertia = np.zeros((6, 6))
    inertia[0, 0] = inertia[1, 1] = mass
    for moment, moved in ((board, [2]), (rotor, [2, 3]), (axle, [2, 4]), (axle, [2, 5])):
        inertia[np.ix_(moved, moved)] += moment

    def rows(q):
        across = [q[2] + q[4], q[2] + q[5]]
        return np.array(
            [
                [-np.sin(across[0]), np.cos(across[0]), half * np.cos(q[4]), 0.0, 0.0, 0.0],
                [-np.sin(across[1]), np.cos(across[1]), -half * np.cos(q[5]), 0.0, 0.0, 0.0],
            ]
        )

    def bias(q, v):
        across, rate = [q[2] + q[4], q[2] + q[5]], [v[2] + v[4], v[2] + v[5]]
        return np.array(
            [
                -rate[k] * (np.cos(across[k]) * v[0] + np.sin(across[k]) * v[1])
                - sign * half * np.sin(q[4 + k]) * v[4 + k] * v[2]
                for k, sign in ((0, 1.0), (1, -1.0))
            ]
        )

    def rates(t, s):
        q, v = s[:6], s[6:]
        g = rows(q)
        whole = np.block([[inertia, g.T], [g, np.zeros((2, 2))]])
        return np.concatenate([v, np.linalg.solve(whole, np.concatenate([forces(t), -bias(q, v)]))[:6]])

    return rates
