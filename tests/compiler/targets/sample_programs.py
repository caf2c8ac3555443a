"""Programs to test the compiler with: recursions over a serial chain, and random expression graphs."""

from __future__ import annotations

import math

import numpy as np

from linkwise.compiler.ir import ops
from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program, reachable
from linkwise.compiler.trace import trace
from linkwise.mechanics import scalar


def _skew(p):
    return np.array([[0.0, -p[2], p[1]], [p[2], 0.0, -p[0]], [-p[1], p[0], 0.0]], dtype=object)


def _cross(a, b):
    return np.array([a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]], dtype=object)


class Chain:
    """A chain of revolute joints about z with quarter turns and offsets between them, and general inertias."""

    def __init__(self, count: int, seed: int = 0):
        rng = np.random.default_rng(seed)
        turns = [np.eye(3), [[1, 0, 0], [0, 0, -1], [0, 1, 0]], [[0, 0, 1], [0, 1, 0], [-1, 0, 0]]]
        self.count = count
        self.rotations = [np.array(turns[i % 3], dtype=float) for i in range(count)]
        self.offsets = [rng.uniform(-0.5, 0.5, 3) * (rng.random(3) < 0.6) for _ in range(count)]
        self.masses = rng.uniform(0.5, 3.0, count)
        self.centers = rng.uniform(-0.2, 0.2, (count, 3))
        self.inertias = [(lambda a: a @ a.T + 0.05 * np.eye(3))(rng.uniform(-0.2, 0.2, (3, 3))) for _ in range(count)]

    def transform(self, i, q):
        """Motion transform from the frame of link i-1 to the frame of link i."""
        c, s = scalar.cos(q), scalar.sin(q)
        turn = np.array([[c, s, 0.0], [-s, c, 0.0], [0.0, 0.0, 1.0]], dtype=object)
        rotation = turn.dot(self.rotations[i].T.astype(object))
        result = np.full((6, 6), 0.0, dtype=object)
        result[:3, :3] = result[3:, 3:] = rotation
        result[3:, :3] = -rotation.dot(_skew(self.offsets[i]))
        return result

    def inertia(self, i):
        c = _skew(self.centers[i]).astype(float)
        m = self.masses[i]
        return np.block([[self.inertias[i] - m * c @ c, m * c], [-m * c, m * np.eye(3)]]).astype(object)

    def inverse_dynamics(self, q, v, a):
        velocity = np.full(6, 0.0, dtype=object)
        acceleration = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.81], dtype=object)
        forces, transforms = [], []
        for i in range(self.count):
            x = self.transform(i, q[i])
            velocity = x.dot(velocity)
            velocity[2] = velocity[2] + v[i]
            acceleration = x.dot(acceleration) + _joint_bias(velocity, v[i])
            acceleration[2] = acceleration[2] + a[i]
            momentum = self.inertia(i).dot(velocity)
            forces.append(self.inertia(i).dot(acceleration) + _force_bias(velocity, momentum))
            transforms.append(x)
        tau = np.empty(self.count, dtype=object)
        for i in reversed(range(self.count)):
            tau[i] = forces[i][2]
            if i:
                forces[i - 1] = forces[i - 1] + transforms[i].T.dot(forces[i])
        return (tau,)

    def forward_dynamics(self, q, v, tau):
        velocity = np.full(6, 0.0, dtype=object)
        inertias, biases, crossings, transforms = [], [], [], []
        for i in range(self.count):
            x = self.transform(i, q[i])
            velocity = x.dot(velocity)
            velocity[2] = velocity[2] + v[i]
            transforms.append(x)
            crossings.append(_joint_bias(velocity, v[i]))
            inertias.append(self.inertia(i))
            biases.append(_force_bias(velocity, self.inertia(i).dot(velocity)))
        gains, residuals, pivots = [None] * self.count, [None] * self.count, [None] * self.count
        for i in reversed(range(self.count)):
            gains[i] = inertias[i][:, 2]
            pivots[i] = 1.0 / gains[i][2]
            residuals[i] = tau[i] - biases[i][2]
            if i:
                scaled = _times(gains[i], pivots[i])
                inertia = inertias[i] - np.outer(gains[i], scaled)
                bias = biases[i] + inertia.dot(crossings[i]) + _times(scaled, residuals[i])
                inertia = transforms[i].T.dot(inertia.dot(transforms[i]))
                inertias[i - 1] = inertias[i - 1] + inertia
                biases[i - 1] = biases[i - 1] + transforms[i].T.dot(bias)
        acceleration = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 9.81], dtype=object)
        result = np.empty(self.count, dtype=object)
        for i in range(self.count):
            acceleration = transforms[i].dot(acceleration) + crossings[i]
            result[i] = (residuals[i] - gains[i].dot(acceleration)) * pivots[i]
            acceleration[2] = acceleration[2] + result[i]
        return (result,)


def _times(vector, factor):
    return np.array([x * factor for x in vector], dtype=object)


def _joint_bias(velocity, rate):
    return np.array(
        [velocity[1] * rate, -velocity[0] * rate, 0.0, velocity[4] * rate, -velocity[3] * rate, 0.0], object
    )


def _force_bias(velocity, momentum):
    moment = _cross(velocity[:3], momentum[:3]) + _cross(velocity[3:], momentum[3:])
    return np.concatenate([moment, _cross(velocity[:3], momentum[3:])])


def inverse_dynamics(count: int) -> Program:
    """Newton-Euler recursion: (q, v, a) -> tau."""
    inputs = [Array(name, (count,)) for name in ("q", "v", "a")]
    return trace(Chain(count).inverse_dynamics, inputs, ["tau"], "inverse_dynamics")


def forward_dynamics(count: int) -> Program:
    """Articulated-body recursion: (q, v, tau) -> a."""
    inputs = [Array(name, (count,)) for name in ("q", "v", "tau")]
    return trace(Chain(count).forward_dynamics, inputs, ["a"], "forward_dynamics")


def random_program(seed: int, size: int = 60, shapes=((4,), (2, 3), ()), outputs=((3, 2), (), (5,))) -> Program:
    """A random graph over all operations; results stay of moderate size for inputs of moderate size."""
    rng = np.random.default_rng(seed)
    builder = Builder()
    inputs = tuple(Array(f"x{i}", shape) for i, shape in enumerate(shapes))
    reals = [builder.input(i, e) for i, array in enumerate(inputs) for e in range(array.size)]
    reals += [builder.const(value) for value in (0.5, -2.0, math.pi)]
    bools = []

    def pick():
        return reals[int(rng.integers(max(0, len(reals) - 25), len(reals)))]

    for number in range(size):
        builder.section = f"part {number // 10}"
        kind = int(rng.integers(12))
        if kind == 0:
            node = builder.sin(pick())
        elif kind == 1:
            node = builder.cos(pick())
        elif kind == 2:
            node = builder.atan2(pick(), pick())
        elif kind == 3:
            a = pick()
            node = builder.sqrt(builder.add(builder.mul(a, a), builder.const(0.25)))
        elif kind == 4:
            a = pick()
            node = builder.div(pick(), builder.add(builder.mul(a, a), builder.const(1.0)))
        elif kind == 5:
            bools.append(builder.less(pick(), pick()))
            node = builder.select(bools[int(rng.integers(len(bools)))], pick(), pick())
        elif kind == 6:
            node = builder.neg(pick())
        elif kind in (7, 8):
            node = builder.add(pick(), pick())
        elif kind == 9:
            node = builder.sub(pick(), pick())
        else:
            node = builder.sin(builder.mul(pick(), pick()))
        if node.op.result == "real" and node.op is not ops.CONST:
            reals.append(node)
    results = tuple(tuple(pick() for _ in range(math.prod(shape))) for shape in outputs)
    arrays = tuple(Array(f"y{i}", shape) for i, shape in enumerate(outputs))
    return Program(inputs, arrays, reachable(results), results, f"random_{seed}")
