"""Random trees with a loop between two of their links; the loop is closed at a known configuration or anywhere."""

from __future__ import annotations

import dataclasses

import numpy as np

import linkwise as lw
from linkwise.mechanics.joints import Joint
from linkwise.mechanism import Loop, Mechanism

CLOSING: list[Joint] = [
    lw.Revolute((0.3, -1.0, 0.4)),
    lw.Prismatic((0.0, -1.0, 0.0)),
    lw.Helical((0.2, 0.1, 1.0), 0.3),
    lw.Cylindrical((1.0, -1.0, 0.5)),
    lw.Universal((1.0, 0.2, 0.0), (0.3, 1.0, 0.5)),
    lw.PinInSlot((1.0, 0.2, 0.0), (0.3, 1.0, 0.5)),
    lw.Planar((0.5, 0.5, 1.0)),
    lw.Spherical(),
    lw.Fixed(),
]


def with_loops(mech: Mechanism, *loops: Loop) -> Mechanism:
    return dataclasses.replace(mech, loops=loops)


def closed_at(mech: Mechanism, q: np.ndarray, kind: Joint, link_a: str, link_b: str, seed: int = 0) -> Loop:
    """A loop of this kind that is closed at q: pose_b is where the joint, at random coordinates, puts its far side."""
    rng = np.random.default_rng(seed)
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    rotation *= np.linalg.det(rotation)
    pose_a = np.eye(4)
    pose_a[:3, :3], pose_a[:3, 3] = rotation, rng.normal(size=3) * 0.3
    axes = np.eye(4)
    axes[:3, :3] = kind.alignment
    joint = np.eye(4)
    transform = kind.transform(kind.random(rng, ()).tolist() if kind.nq else [])
    joint[:3, :3], joint[:3, 3] = np.array(transform.rotation(), dtype=float), transform.position()
    in_world = lw.frame_pose(mech, q, link_a) @ pose_a @ axes @ joint @ axes.T
    pose_b = np.linalg.inv(lw.frame_pose(mech, q, link_b)) @ in_world
    return Loop("loop", kind, link_a, (pose_a[:3, :3], pose_a[:3, 3]), link_b, (pose_b[:3, :3], pose_b[:3, 3]))
