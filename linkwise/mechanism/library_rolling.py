"""Built-in mechanisms that roll or glide: constraints on velocities, by wheels and knife edges.

Each stands at ``lw.neutral(mech)``, its frames along the world's axes there: x is ahead, y is left, z is up.
"""

from __future__ import annotations

import math

import numpy as np

from linkwise.mechanics.joints import Floating, Planar, Revolute
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.library_closed import Y, Z
from linkwise.mechanism.model import GROUND, Mechanism


def rolling_disk(mass: float = 1.0, radius: float = 0.5) -> Mechanism:
    """A thin uniform disk ("disk", its axis along y) on a floating joint "base", rolling on the ground: contact "rim".

    It stands upright at the neutral configuration, where its centre is ``radius`` above the ground's origin.
    """
    across = mass * radius**2 / 4.0
    builder = Builder().link("disk", mass, inertia=(across, 2.0 * across, across))
    builder.joint("base", Floating(), GROUND, "disk", (0.0, 0.0, radius)).wheel("rim", "disk", radius)
    return builder.build("rolling_disk")


def bicycle() -> Mechanism:
    """The benchmark bicycle of Meijaard, Papadopoulos, Ruina and Schwab (2007): links "frame" (with its rider), "rear",
    "fork", "front"; joints "base" (floating), "rear_axle", "steering", "front_axle"; wheels "rear_tyre", "front_tyre".

    The origin of "frame" is where the rear wheel touches the ground at the neutral configuration.
    """
    base, trail, tilt, rear, front = 1.02, 0.08, math.pi / 10.0, 0.3, 0.35
    head = np.array([base + trail - 0.7 * math.tan(tilt), 0.0, 0.7])  # on the steering axis
    builder = Builder()
    builder.link("frame", 85.0, (0.3, 0.0, 0.9), [[9.2, 0.0, -2.4], [0.0, 11.0, 0.0], [-2.4, 0.0, 2.8]])
    builder.link("rear", 2.0, inertia=(0.0603, 0.12, 0.0603))
    handlebar = [[0.05892, 0.0, 0.00756], [0.0, 0.06, 0.0], [0.00756, 0.0, 0.00708]]
    builder.link("fork", 4.0, np.array([0.9, 0.0, 0.7]) - head, handlebar)
    builder.link("front", 3.0, inertia=(0.1405, 0.28, 0.1405))
    builder.joint("base", Floating(), GROUND, "frame")
    builder.joint("rear_axle", Revolute(Y), "frame", "rear", (0.0, 0.0, rear))
    builder.joint("steering", Revolute((-math.sin(tilt), 0.0, math.cos(tilt))), "frame", "fork", head)
    builder.joint("front_axle", Revolute(Y), "fork", "front", np.array([base, 0.0, front]) - head)
    builder.wheel("rear_tyre", "rear", rear).wheel("front_tyre", "front", front)
    return builder.build("bicycle")


def snakeboard() -> Mechanism:
    """A board on two axles that turn, with a rotor on it (Lewis, Ostrowski, Murray and Burdick 1994): joints "base"
    (planar), "rotor", "front_axle", "rear_axle"; contacts "front" and "rear", whose wheels only say where not to go.

    6 kg in all, 0.2 m from the middle to each axle; it goes in the x-y plane, without gravity.
    """
    half = 0.2
    builder = Builder().link("board", 3.8, inertia=(0.004, 0.016, 0.016))
    builder.link("rotor", 2.0, inertia=(0.036, 0.036, 0.072)).joint("base", Planar(Z), GROUND, "board")
    builder.joint("rotor", Revolute(Z), "board", "rotor")
    for name, side in (("front", half), ("rear", -half)):
        builder.link(f"{name}_axle", 0.1, inertia=(0.0013, 0.0001, 0.0013))
        builder.joint(f"{name}_axle", Revolute(Z), "board", f"{name}_axle", (side, 0.0, 0.0))
        builder.knife_edge(name, f"{name}_axle")
    return builder.build("snakeboard", gravity=(0.0, 0.0, 0.0))


def differential_drive() -> Mechanism:
    """A cart (10 kg) on two driven wheels of radius 0.1 m, 0.5 m apart: joints "base" (planar, 0.1 m above the ground),
    "left", "right"; contacts "left_tyre", "right_tyre".  Its mass is 0.1 m ahead of the axle, and it slides on casters
    that are not there."""
    radius, half = 0.1, 0.25
    builder = Builder().link("cart", 10.0, (0.1, 0.0, 0.0), (0.2, 0.3, 0.4))
    builder.joint("base", Planar(Z), GROUND, "cart", (0.0, 0.0, radius))
    for name, side in (("left", half), ("right", -half)):
        builder.link(name, 0.5, inertia=(0.00125, 0.0025, 0.00125))
        builder.joint(name, Revolute(Y), "cart", name, (0.0, side, 0.0))
        builder.wheel(f"{name}_tyre", name, radius, contact=False)
    return builder.build("differential_drive")
