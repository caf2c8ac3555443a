"""Closed mechanisms written down with few digits, as files and CAD exports have them, beside the exact ones."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation

import linkwise as lw
from linkwise.mechanics.joints import Joint
from linkwise.mechanism import Mechanism

TILT = Rotation.from_rotvec([0.7, -0.4, 0.9]).as_matrix()


def written(mech: Mechanism, digits: int | None, seed: int = 0) -> Mechanism:
    """The mechanism in a tilted plane, every link with a frame of its own orientation, poses and axes as angles and
    lengths with so many digits, lengths in units of the largest power of ten below one; None keeps all of them.
    Coordinates mean what they did."""
    rng, builder = np.random.default_rng(seed), lw.Builder()
    largest = max(np.abs(body.position).max() for body in mech.bodies)
    unit = 10.0 ** np.floor(np.log10(largest))

    def rounded_pose(pose):
        rotation, position = pose
        angles = as_written(Rotation.from_matrix(rotation).as_rotvec(), digits)
        return Rotation.from_rotvec(angles).as_matrix(), unit * as_written(position / unit, digits)

    own = {-1: TILT}
    for i, body in enumerate(mech.bodies):
        axial = body.kind.rates_are_velocities  # others measure their coordinates along the axes of the frame
        own[i] = Rotation.random(random_state=rng.integers(1 << 30)).as_matrix() if axial else np.eye(3)
        inertia = own[i].T @ body.inertia @ own[i]
        builder.link(body.link, body.mass, own[i].T @ body.com, (inertia + inertia.T) / 2)
        pose = own[body.parent].T @ body.rotation @ own[i], own[body.parent].T @ body.position
        parent = mech.bodies[body.parent].link if body.parent >= 0 else "ground"
        builder.joint(body.joint, rotated(body.kind, own[i], digits), parent, body.link, rounded_pose(pose))
    for loop in mech.loops:
        sides: list = []
        frame_rotation = Rotation.random(random_state=rng.integers(1 << 30)).as_matrix()
        for link, (rotation, position) in ((loop.link_a, loop.pose_a), (loop.link_b, loop.pose_b)):
            frame = mech.frame(link)
            at = frame.rotation @ position + frame.position
            pose = own[frame.body].T @ frame.rotation @ rotation @ frame_rotation, own[frame.body].T @ at
            body = mech.bodies[frame.body].link if frame.body >= 0 else "ground"
            sides += [body, rounded_pose(pose)]
        builder.loop(loop.name, rotated(loop.kind, frame_rotation, digits), *sides)
    return builder.build(mech.name, TILT.T @ mech.gravity)


def rotated(kind: Joint, rotation: np.ndarray, digits: int | None) -> Joint:
    """The joint with axes given in a rotated frame, rounded."""
    names = [name for name in ("axis", "axis1", "axis2", "normal") if hasattr(kind, name)]
    axes = {name: rotation.T @ np.array(getattr(kind, name)) for name in names}
    extra = {"pitch": kind.pitch} if hasattr(kind, "pitch") else {}
    return type(kind)(**{name: tuple(as_written(axis, digits)) for name, axis in axes.items()}, **extra)


def as_written(values, digits: int | None) -> np.ndarray:
    return np.asarray(values, dtype=float) if digits is None else np.round(values, digits)


def three_cranks(off: float = 0.0) -> Mechanism:
    """Three parallel cranks under one bar; one hole of the bar is off."""
    builder = lw.Builder()
    for i in range(3):
        builder.link(f"crank{i}", 1.0, (0.0, 0.25, 0.0), (0.02, 0.0, 0.02))
        builder.joint(f"joint{i}", lw.Revolute(), "ground", f"crank{i}", (None, (float(i), 0.0, 0.0)))
    builder.link("bar", 2.0, (1.0, 0.0, 0.0), (0.0, 0.7, 0.7))
    builder.joint("bar_joint", lw.Revolute(), "crank0", "bar", (None, (0.0, 0.5, 0.0)))
    for i, hole in ((1, 1.0), (2, 2.0 + off)):
        builder.loop(f"hole{i}", lw.Revolute(), "bar", (None, (hole, 0.0, 0.0)), f"crank{i}", (None, (0.0, 0.5, 0.0)))
    return builder.build("three_cranks", (0.0, -9.81, 0.0))


def neck() -> Mechanism:
    """A head that nods by a crank and two rods, left and right, on ball joints, all on a base that turns."""

    def at(*point):
        return None, point

    hinge = lw.Revolute((0.0, 1.0, 0.0))
    builder = lw.Builder()
    builder.link("base", 0.1, (0.0, 0.0, 0.01), (1e-4, 1e-4, 1e-4))
    builder.joint("yaw", lw.Revolute(), "ground", "base", at(0.01 / 3, 0.02 / 3, 0.1))
    builder.link("crank", 0.01, (0.0, 0.0, 0.005), (1e-6, 1e-6, 1e-6))
    builder.joint("drive", hinge, "base", "crank", at(-0.07 / 3, 0.0, 0.02 / 3))
    builder.link("head", 0.3, (0.01, 0.0, 0.05), (4e-4, 4e-4, 3e-4))
    builder.joint("nod", hinge, "base", "head", at(0.02 / 3, 0.0, 0.1 / 3))
    rod, on_head = (0.01 / 3, 0.0, 0.12 / 3), np.array([-0.08 / 3, 0.0, 0.07 / 3])
    for side, y in (("left", 0.05 / 3), ("right", -0.05 / 3)):
        builder.link(f"{side}_rod", 0.005, (0.0, 0.0, 0.02), (1e-6, 1e-6, 1e-7))
        builder.joint(f"{side}_hinge", hinge, "crank", f"{side}_rod", at(0.01, y, 0.03 / 3))
        pin = on_head + [0.01, y, 0.0]
        builder.loop(f"{side}_ball", lw.Spherical(), f"{side}_rod", at(*rod), "head", at(*pin))
    return builder.build("neck")
