"""Forces of compliant contact from poses and velocities of links alone, with NumPy: nothing of what is tested is used
but the records that say which shapes touch, and by what numbers."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np

import linkwise as lw


def normal_force(law: lw.contact.ContactLaw, depth: float, rate: float) -> float:
    """The law as its docstring says it, case by case."""
    if depth <= 0.0:
        return 0.0
    phi = depth**2 / (2.0 * law.smoothing) if depth < law.smoothing else depth - law.smoothing / 2.0
    x = law.dissipation * rate
    psi = 1.0 + x if x >= 0.0 else (1.0 + x / 2.0) ** 2 if x >= -2.0 else 0.0
    return law.stiffness * phi * psi


def force(law: lw.contact.ContactLaw, depth: float, normal: np.ndarray, velocity: np.ndarray) -> np.ndarray:
    """On the first side, which moves with ``velocity`` against the other."""
    rate = -normal @ velocity
    push = normal_force(law, depth + law.margin, rate)
    sliding = velocity - (normal @ velocity) * normal
    speed = np.sqrt(sliding @ sliding + law.slip_speed**2 + (law.friction * push / law.damping) ** 2)
    return push * normal - law.friction * push * sliding / speed


class Contacts:
    """All elementary contacts of a mechanism at one state, in the world's axes."""

    def __init__(self, mech: lw.Mechanism, q: np.ndarray, v: np.ndarray):
        self.mech = mech
        self._poses = [np.eye(4), *lw.link_poses(mech, q)]
        self._velocities = [np.zeros(6), *lw.link_velocities(mech, q, v)]
        self.found = [one for pair in mech.contact_pairs for one in self._of_pair(pair)]

    def _placed(self, shape: lw.contact.Shape) -> tuple[int, np.ndarray, np.ndarray]:
        """Body, rotation and position in the world."""
        frame = self.mech.frames[shape.link]
        pose = self._poses[frame.body + 1]
        rotation = pose[:3, :3] @ frame.rotation
        position = pose[:3, :3] @ frame.position + pose[:3, 3]
        return frame.body, rotation @ shape.pose[0], rotation @ shape.pose[1] + position

    def velocity(self, body: int, point: np.ndarray) -> np.ndarray:
        """Of the point of a body that is at ``point``."""
        pose, six = self._poses[body + 1], self._velocities[body + 1]
        rotation = pose[:3, :3]
        return rotation @ six[3:] + np.cross(rotation @ six[:3], point - pose[:3, 3])

    def _of_pair(self, pair: lw.contact.ContactPair):
        a, b = (self.mech.contact.shape(name) for name in pair.shapes)
        (body_a, rotation_a, at_a), (body_b, rotation_b, at_b) = self._placed(a), self._placed(b)
        if b.kind == "box":
            placed = (a, rotation_a, at_a), (b, rotation_b, at_b)
            pressed = [(1.0, *one) for one in on_a_box(*placed)]
            if a.kind == "box" and (np.sort(b.size)[:2] < np.sort(a.size)[1:]).all():
                pressed += [(-1.0, *one) for one in on_a_box(*placed[::-1])]
            for side, centre, nearest, radius in pressed:
                distance = np.linalg.norm(centre - nearest)
                away, depth = (centre - nearest) / distance, radius - distance
                point, normal = centre - away * (radius - depth / 2.0), side * away
                speed = self.velocity(body_a, point) - self.velocity(body_b, point)
                yield pair, body_a, body_b, depth, point, normal, force(pair.law, depth, normal, speed)
            return
        if b.kind != "plane":
            (point_a, point_b) = closest(at_a, _axis(a, rotation_a), at_b, _axis(b, rotation_b))
            distance = np.linalg.norm(point_a - point_b)
            normal = (point_a - point_b) / distance
            depth = a.size[0] + b.size[0] - distance
            sides = [(depth, point_b + normal * (b.size[0] - depth / 2.0))]
        else:
            normal = rotation_b[:, 2]
            points = lowest_points(a, rotation_a, at_a, normal)
            sides = [(-normal @ (point - at_b), point) for point in points]
        for depth, point in sides:
            speed = self.velocity(body_a, point) - self.velocity(body_b, point)
            yield pair, body_a, body_b, depth, point, normal, force(pair.law, depth, normal, speed)

    def wrenches(self) -> np.ndarray:
        """(n_links, 6), in link frames."""
        total = np.zeros((self.mech.n_links, 6))
        for _, body_a, body_b, _, point, _, push in self.found:
            for body, sign in ((body_a, 1.0), (body_b, -1.0)):
                if body >= 0:
                    pose = self._poses[body + 1]
                    moment = np.cross(point - pose[:3, 3], sign * push)
                    total[body] += np.concatenate([pose[:3, :3].T @ moment, pose[:3, :3].T @ (sign * push)])
        return total


def corners(size: Sequence[float]) -> list[np.ndarray]:
    """Of a box, in its own axes, from its middle."""
    return [np.array(one) for one in itertools.product(*((-h, h) for h in size))]


Placed = tuple[lw.contact.Shape, np.ndarray, np.ndarray]  # a shape, its rotation and its position in the world


def on_a_box(one: Placed, other: Placed) -> list[tuple[np.ndarray, np.ndarray, float]]:
    """The centres of what of a shape meets a box, the points of the box that these are held against, and radii."""
    (shape, own, at), (box, rotation, at_box) = one, other
    size = np.array(box.size)
    if shape.kind == "capsule":
        found = meeting(rotation.T @ (at - at_box), rotation.T @ _axis(shape, own), size)
    else:
        parts = corners(shape.size) if shape.kind == "box" else [np.zeros(3)]
        seen = [rotation.T @ (at + own @ part - at_box) for part in parts]
        found = [(point, np.clip(point, -size, size)) for point in seen]
    assert all((np.abs(point) > size).any() for point, _ in found), "the oracle knows balls outside alone"
    radius = 0.0 if shape.kind == "box" else shape.size[0]
    return [(at_box + rotation @ point, at_box + rotation @ nearest, radius) for point, nearest in found]


def meeting(middle: np.ndarray, axis: np.ndarray, size: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Towards either end a point of a segment and one of a box: the end and what is closest to it, or the closest ones
    of the segment and of the edges on that side, or of the corner next to what is closest on the other."""
    passed = []
    for end in (-1.0, 1.0):
        candidates = []
        for k, along in enumerate(np.eye(3)):
            four = [corner * (1.0 - along) for corner in corners(size) if corner[k] > 0.0]
            on_this_side = [edge for edge in four if end * (axis / size**2) @ edge > 0.0]
            edge = min(on_this_side, key=lambda at, along=along: abs(np.linalg.det([middle - at, axis, along])))
            candidates.append(closest(middle, axis, edge, along * size[k]))
        passed.append(min(candidates, key=lambda two: np.linalg.norm(two[0] - two[1])))
    found = []
    for end, own, other in ((-1.0, passed[0], passed[1]), (1.0, passed[1], passed[0])):
        corner, tip = np.where(other[1] < 0.0, -size, size), middle + end * axis
        at_tip, at_corner = (tip, np.clip(tip, -size, size)), closest(middle, axis, corner, np.zeros(3))
        found.append(min((at_tip, own, at_corner), key=lambda two: np.linalg.norm(two[0] - two[1])))
    return found


def _axis(shape: lw.contact.Shape, rotation: np.ndarray) -> np.ndarray:
    return rotation[:, 2] * (shape.size[1] if shape.kind == "capsule" else 0.0)


def closest(a: np.ndarray, u: np.ndarray, b: np.ndarray, w: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Closest points of the segments a + s u and b + t w, s and t in [-1, 1]: the best of the inner solution and of
    those on all four edges."""
    candidates = []
    matrix = np.array([[u @ u, -u @ w], [-u @ w, w @ w]])
    if np.linalg.det(matrix) > 1e-12:
        s, t = np.linalg.solve(matrix, [u @ (b - a), w @ (a - b)])
        candidates += [(s, t)] if max(abs(s), abs(t)) <= 1.0 else []
    for end in (-1.0, 1.0):
        t = np.clip(w @ (a + end * u - b) / (w @ w), -1.0, 1.0) if w.any() else 0.0
        s = np.clip(u @ (b + end * w - a) / (u @ u), -1.0, 1.0) if u.any() else 0.0
        candidates += [(end, t), (s, end)]
    points = [(a + s * u, b + t * w) for s, t in candidates]
    return min(points, key=lambda two: np.linalg.norm(two[0] - two[1]))


def lowest_points(
    shape: lw.contact.Shape, rotation: np.ndarray, position: np.ndarray, normal: np.ndarray
) -> list[np.ndarray]:
    """The points of a shape's parts that are lowest along a normal."""
    if shape.kind == "box":
        return [position + rotation @ corner for corner in corners(shape.size)]
    axes = {
        "ellipsoid": shape.size,
        "cylinder": (shape.size[0], shape.size[0], min(0.002 * shape.size[0], shape.size[-1])),
    }.get(shape.kind, (shape.size[0],) * 3)
    half = {"capsule": shape.size[-1], "cylinder": shape.size[-1] - axes[2]}.get(shape.kind, 0.0)
    direction = axes * (rotation.T @ normal)
    lowest = rotation @ (axes * direction) / np.linalg.norm(direction)
    ends = (-half, half) if shape.kind in ("capsule", "cylinder") else (0.0,)
    found = [position + end * rotation[:, 2] - lowest for end in ends]
    if shape.kind == "cylinder":  # three points around each end
        radius, top = shape.size
        around = [0.9 * radius * np.exp(2j / 3 * np.pi * k) for k in range(3)]
        found += [position + rotation @ [x.real, x.imag, z] for z in (-top, top) for x in around]
    return found
