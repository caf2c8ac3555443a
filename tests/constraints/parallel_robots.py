"""Parallel robots by formulas of their legs that share no code with the library: what they reach, where they are
singular."""

from __future__ import annotations

import numpy as np
from scipy.integrate import solve_ivp

import linkwise as lw

# -- two arms in the plane ----------------------------------------------------------------------------

NEAR, FAR, GAP = 0.8, 1.0, 0.8  # inner and outer links, and between the feet


def two_arms() -> lw.Mechanism:
    """Two arms of two links that hold a point together; "left_joint" and "right_joint" drive it.  At q = 0, where it is
    not assembled, all links lie along the x axis."""
    builder = lw.Builder()
    for name, foot in (("left", 0.0), ("right", GAP)):
        builder.link(name, 1.0, (NEAR / 2.0, 0.0, 0.0), (0.0, 0.01, 0.01))
        builder.link(f"{name}_far", 1.0, (FAR / 2.0, 0.0, 0.0), (0.0, 0.01, 0.01))
        builder.joint(f"{name}_joint", lw.Revolute((0, 0, 1)), "ground", name, (None, (foot, 0.0, 0.0)))
        builder.joint(f"{name}_elbow", lw.Revolute((0, 0, 1)), name, f"{name}_far", (None, (NEAR, 0.0, 0.0)))
    end = (None, (FAR, 0.0, 0.0))
    builder.loop("tip", lw.Revolute((0, 0, 1)), "left_far", end, "right_far", end)
    return builder.build("two_arms", (0.0, -9.81, 0.0)).with_frame("tip", "left_far", end)


def two_arms_at(tip: np.ndarray, elbows: tuple[int, int] = (1, -1)) -> np.ndarray:
    """(nq,): with the tip (2,) there; elbows of sign 1 are left of the line from foot to tip."""
    angles = []
    for foot, side in zip((0.0, GAP), elbows, strict=True):
        x, y = tip[0] - foot, tip[1]
        distance = np.hypot(x, y)
        inner = np.arccos((NEAR**2 + distance**2 - FAR**2) / (2.0 * NEAR * distance))
        outer = np.arccos((NEAR**2 + FAR**2 - distance**2) / (2.0 * NEAR * FAR))
        angles += [np.arctan2(y, x) + side * inner, side * (outer - np.pi)]
    return np.array(angles)


def elbows_of(q: np.ndarray) -> np.ndarray:
    """(..., 2, 2): the two elbows."""
    return np.stack(
        [
            np.stack([NEAR * np.cos(q[..., k]) + foot, NEAR * np.sin(q[..., k])], axis=-1)
            for k, foot in ((0, 0.0), (2, GAP))
        ],
        axis=-2,
    )


# -- the delta robot ----------------------------------------------------------------------------------

DELTA = {"base": 0.2, "arm": 0.3, "forearm": 0.8, "plate": 0.05}


def delta_legs(point: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(..., 3) each, of a platform at (..., 3): distance from shoulder to wrist in the plane of the arm, and the least
    and the largest that arm and forearm can span."""
    distance, least, largest = [], [], []
    for angle in np.radians((0.0, 120.0, 240.0)):
        outward = point[..., 0] * np.cos(angle) + point[..., 1] * np.sin(angle) + DELTA["plate"] - DELTA["base"]
        sideways = -point[..., 0] * np.sin(angle) + point[..., 1] * np.cos(angle)
        rod = np.sqrt(np.maximum(DELTA["forearm"] ** 2 - sideways**2, 0.0))
        distance.append(np.hypot(outward, point[..., 2]))
        least.append(np.abs(rod - DELTA["arm"]))
        largest.append(rod + DELTA["arm"])
    return np.stack(distance, axis=-1), np.stack(least, axis=-1), np.stack(largest, axis=-1)


# -- the Stewart platform -----------------------------------------------------------------------------


def stewart_points(height: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """(6, 3) each: feet in the world, heads on the platform."""
    feet, heads = [], []
    for i in range(6):
        pair, side = i // 2, 1.0 if i % 2 else -1.0
        for radius, spread, points in ((1.0, 50.0, feet), (0.5, 15.0, heads)):
            angle = np.radians(120.0 * pair + spread * side + 60.0)
            points.append([radius * np.cos(angle), radius * np.sin(angle), 0.0])
    return np.array(feet), np.array(heads)


def stewart_legs(position: np.ndarray, yaw: float = 0.0) -> np.ndarray:
    """(..., 6): how much longer the legs are than in the neutral position, platform level at (..., 3)."""
    feet, heads = stewart_points()
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    legs = position[..., None, :] + heads @ turn.T - feet
    neutral = np.array([0.0, 0.0, 1.0]) + heads - feet
    return np.linalg.norm(legs, axis=-1) - np.linalg.norm(neutral, axis=-1)


def stewart_determinant(position: np.ndarray, yaw: float) -> float:
    """Of the legs' lines in Pluecker coordinates: zero where the platform moves though no leg changes its length."""
    feet, heads = stewart_points()
    turn = np.array([[np.cos(yaw), -np.sin(yaw), 0.0], [np.sin(yaw), np.cos(yaw), 0.0], [0.0, 0.0, 1.0]])
    arms = heads @ turn.T
    legs = position + arms - feet
    legs /= np.linalg.norm(legs, axis=-1, keepdims=True)
    return float(np.linalg.det(np.hstack([np.cross(arms, legs), legs])))


# -- the 3-RRR, a plate in the plane on three legs of two links ------------------------------------------

FEET = np.radians((90.0, 210.0, 330.0))  # on a circle of radius 1, and the ankles likewise on the plate


class ThreeLegs:
    """Legs of hip, knee and ankle, driven at "hip0", "hip1", "hip2"; the joint "plate" has its place and angle."""

    def __init__(self, near: float, far: float, plate: float):
        self.near, self.far, self.plate = near, far, plate
        turn = lw.Revolute((0, 0, 1))
        builder = lw.Builder().link("plate", 1.0, (0, 0, 0), (0.05, 0.05, 0.05))
        builder.joint("plate", lw.Planar((0, 0, 1)), "ground", "plate")
        for k, angle in enumerate(FEET):
            outward = np.array([np.cos(angle), np.sin(angle), 0.0])
            for name, length, parent, at in (("hip", near, "ground", outward), ("knee", far, f"hip{k}", (near, 0, 0))):
                builder.link(f"{name}{k}", 1.0, (length / 2, 0, 0), (0.0, 0.05, 0.05))
                builder.joint(f"{name}{k}", turn, parent, f"{name}{k}", (None, at))
            builder.loop(f"ankle{k}", turn, f"knee{k}", (None, (far, 0, 0)), "plate", (None, plate * outward))
        self.mech = builder.build("three_legs")

    def spans(self, x, y, angle) -> np.ndarray:
        """(..., 3, 2): from feet to ankles."""
        ankles = [(x + self.plate * np.cos(a + angle), y + self.plate * np.sin(a + angle)) for a in FEET]
        pairs = zip(ankles, FEET, strict=True)
        return np.stack([np.stack([p - np.cos(a), r - np.sin(a)], -1) for (p, r), a in pairs], -2)

    def reaches(self, x, y, angle) -> np.ndarray:
        """(...): whether all legs reach."""
        spans = np.linalg.norm(self.spans(x, y, angle), axis=-1)
        return ((spans < self.near + self.far) & (spans > abs(self.near - self.far))).all(axis=-1)

    def at(self, x: float, y: float, angle: float, signs) -> np.ndarray:
        """(nq,): with knees of these signs."""
        spans = self.spans(x, y, angle)
        square = (spans**2).sum(axis=-1)
        knees = signs * np.arccos((square - self.near**2 - self.far**2) / (2.0 * self.near * self.far))
        inside = np.arctan2(self.far * np.sin(knees), self.near + self.far * np.cos(knees))
        hips = np.arctan2(spans[:, 1], spans[:, 0]) - inside
        q = np.zeros(self.mech.nq)
        for name, value in (("plate", (x, y, angle)), *((f"hip{k}", hips[k]) for k in range(3))):
            q[self.mech.q_index(name)] = value
        for k in range(3):
            q[self.mech.q_index(f"knee{k}")] = knees[k]
        return q

    def _angles(self, q: np.ndarray, name: str) -> np.ndarray:
        return np.stack([q[..., self.mech.q_index(f"{name}{k}").start] for k in range(3)], axis=-1)

    def serial(self, q: np.ndarray) -> np.ndarray:
        """(..., 3): zero where a leg is stretched or folded."""
        return np.sin(self._angles(q, "knee"))

    def parallel(self, q: np.ndarray) -> np.ndarray:
        """(...): zero where the lines of the three outer links meet in a point, or are parallel."""
        hips, place = self._angles(q, "hip"), q[..., self.mech.q_index("plate")][..., None, :2]
        turned = hips + self._angles(q, "knee")
        arm = np.stack([np.cos(FEET), np.sin(FEET)], -1) + self.near * np.stack([np.cos(hips), np.sin(hips)], -1)
        arm, along = arm - place, np.stack([np.cos(turned), np.sin(turned)], -1)
        moment = arm[..., 0] * along[..., 1] - arm[..., 1] * along[..., 0]
        return np.linalg.det(np.concatenate([along, moment[..., None]], axis=-1))

    def driven(self, q: np.ndarray, hips: np.ndarray) -> np.ndarray | None:
        """(3,): place and angle of the plate as the hips go from q straight to ``hips`` (3,), by the differential
        equation of its motion; None where a leg stops them on the way, and the determinant vanishes."""
        start, feet = self._angles(q, "hip"), np.stack([np.cos(FEET), np.sin(FEET)], -1)

        def constraints(share, pose):
            """The derivatives of the lengths of the outer links by the pose, (3, 3), and by the share of the way."""
            angles, turned = start + share * (hips - start), FEET + pose[2]
            link, arm = (np.stack([np.cos(x), np.sin(x)], -1) for x in (angles, turned))
            along = (pose[:2] + self.plate * arm - feet - self.near * link) / self.far
            across = along[:, 1] * arm[:, 0] - along[:, 0] * arm[:, 1]
            drive = along[:, 1] * link[:, 0] - along[:, 0] * link[:, 1]
            return np.column_stack([along, self.plate * across]), -self.near * drive * (hips - start)

        def rates(share, pose):
            by_pose, by_share = constraints(share, pose)
            return np.linalg.solve(by_pose, -by_share)

        pose = q[self.mech.q_index("plate")]
        sign = np.sign(np.linalg.det(constraints(0.0, pose)[0]))

        def stops(share, pose):
            return sign * np.linalg.det(constraints(share, pose)[0]) - 1e-7

        stops.terminal = True
        with np.errstate(all="ignore"):
            way = solve_ivp(rates, (0.0, 1.0), pose, "DOP853", rtol=1e-9, atol=1e-9, max_step=0.1, events=stops)
        return way.y[:, -1] if way.status == 0 else None
