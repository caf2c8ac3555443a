"""Built-in closed mechanisms, each assembled at ``lw.neutral(mech)`` unless it says otherwise.

Frames stand in that configuration with their axes along the world's.  Planar ones lie in the x-y plane with gravity
along -y.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from linkwise.mechanics.joints import Fixed, Floating, Joint, Planar, Prismatic, Revolute, Spherical, Universal
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.checks import MechanismError
from linkwise.mechanism.model import GROUND, Mechanism

DOWN = (0.0, -9.81, 0.0)
X, Y, Z = (1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)
HALF_TURN = np.diag((-1.0, -1.0, 1.0))  # about z
Point = Sequence[float] | np.ndarray


class Workshop:
    """Builds a mechanism from world positions of its parts in the assembled configuration."""

    def __init__(self) -> None:
        self.builder = Builder()
        self.origins: dict[str, np.ndarray] = {GROUND: np.zeros(3)}

    def part(self, name: str, kind: Joint, parent: str, at: Point, mass: float, com: Point, inertia: Any) -> None:
        """A link with its frame at the world point ``at``, attached to ``parent`` at this point."""
        self.origins[name] = _point(at)
        self.builder.link(name, mass, _point(com) - self.origins[name], inertia)
        self.builder.joint(f"{name}_joint", kind, parent, name, (None, self.origins[name] - self.origins[parent]))

    def rod(
        self, name: str, kind: Joint, parent: str, start: Point, end: Point, mass: float, width: float = 0.0
    ) -> None:
        """A uniform rod of square section from ``start``, at its joint, to ``end``."""
        along = _point(end) - _point(start)
        self.part(
            name, kind, parent, start, mass, (_point(start) + _point(end)) / 2.0, _rod_inertia(mass, along, width)
        )

    def loop(self, name: str, kind: Joint, link_a: str, link_b: str, at: Point) -> None:
        """A loop joint at the world point ``at``."""
        a, b = (_point(at) - self.origins[link] for link in (link_a, link_b))
        self.builder.loop(name, kind, link_a, (None, a), link_b, (None, b))


def _point(values: Point) -> np.ndarray:
    return np.array([*values, 0.0][:3], dtype=float)


def _rod_inertia(mass: float, along: np.ndarray, width: float) -> np.ndarray:
    square = along @ along
    axial = np.outer(along, along) / square
    return mass * ((square + width**2) / 12.0 * (np.eye(3) - axial) + width**2 / 6.0 * axial)


# Planar linkages ---------------------------------------------------------------------------------------------------


def four_bar(crank: float = 0.3, coupler: float = 0.9, rocker: float = 0.8, base: float = 1.0) -> Mechanism:
    """A crank-rocker (with the default lengths) of slender rods, 1 kg per metre; loop "pin" joins coupler and rocker.

    Assembled at q = 0 with the crank upright.
    """
    elbow, support = np.array([0.0, crank]), np.array([base, 0.0])
    pin = _meeting_point(elbow, coupler, support, rocker)
    shop = Workshop()
    shop.rod("crank", Revolute(Z), GROUND, (0.0, 0.0), elbow, crank)
    shop.rod("coupler", Revolute(Z), "crank", elbow, pin, coupler)
    shop.rod("rocker", Revolute(Z), GROUND, support, pin, rocker)
    shop.loop("pin", Revolute(Z), "coupler", "rocker", pin)
    return shop.builder.build("four_bar", DOWN)


def slider_crank(crank: float = 0.15, rod: float = 0.3) -> Mechanism:
    """A crank (0.5 kg), a connecting rod (1 kg) and a slider (2 kg) on the x axis; loop "pin" joins rod and slider.

    Assembled at q = 0 with the crank upright.
    """
    if not 0.0 < crank < rod:
        raise MechanismError(f"the rod ({rod:g}) of a slider-crank must be longer than its crank ({crank:g})")
    elbow, pin = (0.0, crank), (math.sqrt(rod**2 - crank**2), 0.0)
    shop = Workshop()
    shop.rod("crank", Revolute(Z), GROUND, (0.0, 0.0), elbow, 0.5)
    shop.rod("rod", Revolute(Z), "crank", elbow, pin, 1.0)
    shop.part("slider", Prismatic(X), GROUND, pin, 2.0, pin, (0.01, 0.01, 0.01))
    shop.loop("pin", Revolute(Z), "rod", "slider", pin)
    return shop.builder.build("slider_crank", DOWN)


def five_bar() -> Mechanism:
    """The five-bar mechanism of spencer2004, Table 3.1 and Fig. 3.1, base joints 1 m apart, two degrees of freedom.

    Coordinates are the paper's: q1 the angle of link 1 to the x axis, q2, q3, q4 the interior angles between
    neighbouring links.  Assembled, symmetric: (2 pi/3, pi/3 + acos(2/3), 2 asin(2/3), pi/3 + acos(2/3)), the start of
    the second example.  Stretched out and singular: (pi, 0, pi, 0).  The zero configuration is not assembled.
    """
    builder = Builder()
    parent, pose = GROUND, None
    for i, (length, mass, inertia) in enumerate(
        ((1.0, 2.0, 1.0), (1.5, 3.0, 2.0), (1.5, 3.0, 2.0), (1.0, 2.0, 1.0)), 1
    ):
        builder.link(f"link{i}", mass, (length / 2.0, 0.0, 0.0), (0.0, inertia, inertia))
        builder.joint(f"joint{i}", Revolute(Z), parent, f"link{i}", pose)
        parent, pose = f"link{i}", (HALF_TURN, (length, 0.0, 0.0))
    builder.loop("support", Revolute(Z), GROUND, (None, (1.0, 0.0, 0.0)), "link4", (None, (1.0, 0.0, 0.0)))
    return builder.build("five_bar", DOWN)


def parallel_four_bar_robot(length1: float = 1.0, length2: float = 0.6) -> Mechanism:
    """The parallel four-bar robot of spencer2004, Section 2.4.1: links 1 and 3 of ``length1``, 2 and 4 of ``length2``.

    q1 and q2 are the angles of links 1 and 2 to the x axis, q3 that of link 3 to link 2, q4 that of link 4 to link 3.
    Assembled at (q1, q2, q1 - q2, q2 - q1 - pi) for any q1, q2; 1 kg per metre.
    """
    builder = Builder()
    lengths = (length1, length2, length1, length2)
    parents = (GROUND, GROUND, "link2", "link3")
    for i, (length, parent) in enumerate(zip(lengths, parents, strict=True), 1):
        far_end = None if parent == GROUND else (None, (lengths[i - 2], 0.0, 0.0))
        builder.link(f"link{i}", length, (length / 2.0, 0.0, 0.0), (0.0, length**3 / 12.0, length**3 / 12.0))
        builder.joint(f"joint{i}", Revolute(Z), parent, f"link{i}", far_end)
    builder.loop("point_a", Revolute(Z), "link1", (None, (length1, 0.0, 0.0)), "link4", (None, (length2, 0.0, 0.0)))
    return builder.build("parallel_four_bar_robot", DOWN)


def n_four_bar(n: int = 2) -> Mechanism:
    """``n`` parallelograms side by side: n + 1 upright rods joined by n level ones, each 1 m and 1 kg, one DoF.

    The benchmark of the IFToMM technical committee for multibody dynamics: every time the rods pass the horizontal,
    all loops are singular at once.  Links "post0" ..., "bar1" ...; assembled at q = 0 with the posts upright.
    """
    _require_counts(n=n)
    shop = Workshop()
    for i in range(n + 1):
        shop.rod(f"post{i}", Revolute(Z), GROUND, (i, 0.0), (i, 1.0), 1.0)
    for i in range(1, n + 1):
        shop.rod(f"bar{i}", Revolute(Z), f"post{i - 1}", (i - 1, 1.0), (i, 1.0), 1.0)
        shop.loop(f"loop{i}", Revolute(Z), f"bar{i}", f"post{i}", (i, 1.0))
    return shop.builder.build(f"n_four_bar_{n}", DOWN)


def four_bar_branches(branches: int = 2, loops: int = 4, floating: bool = True) -> Mechanism:
    """Branches of four-bars in series on one base: ``branches`` of ``loops`` each, every second one at right angles to
    the one before; DoF: one per four-bar, and 6 of the base if it floats.

    Each four-bar stands on the coupler of the one before: crank and rocker hinged on it, a coupler across their ends
    ("b1_crank1", "b1_coupler1", "b1_rocker1", loop "b1_pin1").  The base is 10 kg, rods have 2 kg per metre.  z is up;
    assembled at the neutral configuration.
    """
    _require_counts(branches=branches, loops=loops)
    if not isinstance(floating, (bool, np.bool_)):
        raise MechanismError(f"floating must be True or False, not {floating!r}")
    shop, carrier = Workshop(), GROUND
    if floating:
        shop.part("base", Floating(), GROUND, (0.0, 0.0, 0.0), 10.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.6))
        carrier = "base"
    for k in range(branches):
        outward = _circle_point(1.0, 360.0 * k / branches, 0.0)
        _four_bars_in_series(shop, f"b{k + 1}_", carrier, outward, loops)
    return shop.builder.build(f"four_bar_branches_{branches}_{loops}")


def _four_bars_in_series(shop: Workshop, prefix: str, carrier: str, outward: np.ndarray, count: int) -> None:
    """Four-bars 0.2 m long and 0.2 m wide; rockers are longer than cranks, so that none is a parallelogram."""
    along, across, middle = 0.2 * outward, 0.1 * np.cross(Z, outward), 0.3 * outward
    density = 2.0
    for i in range(1, count + 1):
        axis = tuple(np.cross(along, across) / 0.02)
        near, far, crank_end, rocker_end = (
            middle - across,
            middle + across,
            middle - 0.8 * across + along,
            middle + 1.2 * across + 1.2 * along,
        )
        names = [f"{prefix}{part}{i}" for part in ("crank", "coupler", "rocker")]
        for name, parent, start, end in (
            (names[0], carrier, near, crank_end),
            (names[1], names[0], crank_end, rocker_end),
            (names[2], carrier, far, rocker_end),
        ):
            shop.rod(name, Revolute(axis), parent, start, end, density * float(np.linalg.norm(end - start)), 0.03)
        shop.loop(f"{prefix}pin{i}", Revolute(axis), names[1], names[2], rocker_end)
        carrier, middle = names[1], (crank_end + rocker_end) / 2.0
        across = 0.1 * np.cross(outward, across / 0.1)


def _require_counts(**counts: int) -> None:
    for name, count in counts.items():
        if isinstance(count, bool) or not isinstance(count, (int, np.integer)) or count < 1:
            raise MechanismError(f"{name} must be a whole number, at least 1, not {count!r}")


def loader() -> Mechanism:
    """A front loader in the plane: 8 bodies, 3 loops, 2 DoF, as in spencer2004, Section 4.5 (which prints no
    dimensions: these are plausible ones).

    Boom, bell crank, link and bucket, and two hydraulic cylinders, each a barrel and a piston.  The DoF are the
    two pistons, "lift_piston_joint" and "tilt_piston_joint".  Assembled at q = 0.
    """
    boom_foot, boom_end = (0.0, 1.6), (2.4, 0.7)
    lift_foot, lift_end = (0.3, 0.7), (1.1, 1.05)
    crank_pivot, crank_top, crank_bottom = (1.5, 1.2), (1.35, 1.75), (1.6, 0.75)
    tilt_foot, bucket_pin = (0.2, 1.95), (2.35, 1.05)
    shop = Workshop()
    shop.rod("boom", Revolute(Z), GROUND, boom_foot, boom_end, 300.0, 0.2)
    _cylinder(shop, "lift", GROUND, lift_foot, lift_end, 40.0, 25.0)
    shop.rod("bell_crank", Revolute(Z), "boom", crank_pivot, crank_top, 60.0, 0.15)
    _cylinder(shop, "tilt", GROUND, tilt_foot, crank_top, 30.0, 20.0)
    shop.part("bucket", Revolute(Z), "boom", boom_end, 250.0, (2.8, 0.8), (20.0, 20.0, 35.0))
    shop.rod("link", Revolute(Z), "bell_crank", crank_bottom, bucket_pin, 20.0, 0.08)
    shop.loop("lift_pin", Revolute(Z), "lift_piston", "boom", lift_end)
    shop.loop("tilt_pin", Revolute(Z), "tilt_piston", "bell_crank", crank_top)
    shop.loop("bucket_pin", Revolute(Z), "link", "bucket", bucket_pin)
    return shop.builder.build("loader", DOWN)


def _cylinder(shop: Workshop, name: str, parent: str, foot: Point, end: Point, barrel: float, piston: float) -> None:
    """A hydraulic cylinder: a barrel hinged at its foot and a piston that slides out, each half as long as the
    distance.
    """
    start, stop = _point(foot), _point(end)
    middle = (start + stop) / 2.0
    shop.rod(f"{name}_barrel", Revolute(Z), parent, start, middle, barrel, 0.1)
    shop.rod(f"{name}_piston", Prismatic(tuple(stop - start)), f"{name}_barrel", middle, stop, piston, 0.06)


def _meeting_point(first: np.ndarray, reach1: float, second: np.ndarray, reach2: float) -> np.ndarray:
    """The upper of the two points at the given distances from two centres."""
    between = second - first
    distance = float(np.linalg.norm(between))
    along = (distance**2 + reach1**2 - reach2**2) / (2.0 * distance)
    if abs(along) > reach1:
        raise MechanismError(
            f"links of {reach1:g} and {reach2:g} cannot meet across {distance:.4g}: the linkage cannot be assembled"
        )
    across = np.array([-between[1], between[0]]) / distance
    return first + along / distance * between + math.sqrt(reach1**2 - along**2) * across


# Spatial mechanisms ------------------------------------------------------------------------------------------------


def bricard() -> Mechanism:
    """Bricard's mechanism: five rods (1 m, 1 kg, 0.1 m square) and the ground on six edges of a cube, six revolutes.

    The benchmark of the IFToMM technical committee: counting constraints gives no DoF, the geometry gives one.
    Assembled at q = 0.
    """
    corners = ((0, 0, 0), (1, 0, 0), (1, 1, 0), (1, 1, 1), (0, 1, 1), (0, 0, 1))
    axes = (Y, Z, X, Y, Z, X)  # at each corner, square to the two edges that meet there
    shop = Workshop()
    parent = GROUND
    for i in range(5):
        shop.rod(f"rod{i + 1}", Revolute(axes[i]), parent, corners[i], corners[i + 1], 1.0, 0.1)
        parent = f"rod{i + 1}"
    shop.loop("last", Revolute(axes[5]), GROUND, "rod5", corners[5])
    return shop.builder.build("bricard", DOWN)


def flyball_governor() -> Mechanism:
    """A flyball governor: a shaft about y carries two arms with balls, and rods from the arms to a collar on the shaft.

    After the benchmark of the IFToMM technical committee, without its spring and damper between shaft and collar: give
    their force to "collar_joint".  Assembled at q = 0; two DoF: the angle of the shaft, the height of the collar.
    """
    top, collar = (0.0, 1.0, 0.0), (0.0, 0.5, 0.0)
    shop = Workshop()
    shop.part("shaft", Revolute(Y), GROUND, (0.0, 0.0, 0.0), 10.0, (0.0, 0.5, 0.0), (0.8, 0.002, 0.8))
    shop.part("collar", Prismatic(Y), "shaft", collar, 1.0, collar, (0.15, 0.125, 0.15))
    for side, sign in (("left", -1.0), ("right", 1.0)):
        ball = (sign * math.sin(math.radians(30.0)), 1.0 - math.cos(math.radians(30.0)), 0.0)
        middle = tuple(0.5 * (a + b) for a, b in zip(top, ball, strict=True))
        shop.rod(f"{side}_arm", Revolute(Z), "shaft", top, ball, 1.0, 0.01)
        shop.builder.link(f"{side}_ball", 5.0, (0.0, 0.0, 0.0), (0.01, 0.01, 0.01))
        shop.builder.joint(f"{side}_weld", Fixed(), f"{side}_arm", f"{side}_ball", (None, _point(ball) - _point(top)))
        shop.rod(f"{side}_rod", Revolute(Z), f"{side}_arm", middle, collar, 0.5, 0.01)
        shop.loop(f"{side}_pin", Revolute(Z), f"{side}_rod", "collar", collar)
    return shop.builder.build("flyball_governor", DOWN)


def stewart_platform(height: float = 1.0) -> Mechanism:
    """Six legs, each a universal joint on the ground, a slide, and a ball joint at a floating platform: 24 coordinates,
    6 loops of 3 constraints, 6 DoF.  z is up; the slides are "leg1_rod_joint" ...  Assembled at the neutral
    configuration: the platform level, ``height`` above the ground."""
    shop = Workshop()
    home = np.array([0.0, 0.0, height])
    shop.part("platform", Floating(), GROUND, home, 40.0, home, (3.0, 3.0, 5.0))
    for i in range(6):
        pair, side = i // 2, 1.0 if i % 2 else -1.0
        foot = _circle_point(1.0, 120.0 * pair + 50.0 * side + 60.0, 0.0)
        head = _circle_point(0.5, 120.0 * pair + 15.0 * side + 60.0, height)
        along = (head - foot) / np.linalg.norm(head - foot)
        first = np.cross(along, Z) / np.linalg.norm(np.cross(along, Z))
        middle = (foot + head) / 2.0
        leg = f"leg{i + 1}"
        shop.rod(leg, Universal(tuple(first), tuple(np.cross(along, first))), GROUND, foot, middle, 5.0, 0.08)
        shop.rod(f"{leg}_rod", Prismatic(tuple(along)), leg, middle, head, 3.0, 0.05)
        shop.loop(f"ball{i + 1}", Spherical(), f"{leg}_rod", "platform", head)
    return shop.builder.build("stewart_platform")


def delta_robot() -> Mechanism:
    """Clavel's delta robot, hanging: three driven arms, six forearm rods in parallel pairs, a platform that only
    translates: 21 coordinates, 6 loops of 3 constraints, 3 DoF.  z is up; the drives are "arm1_joint" ...

    Rods hang on universal joints, so that none spins about itself.  Assembled at the neutral configuration.
    """
    base, arm, forearm, plate, half_gap, angle = 0.2, 0.3, 0.8, 0.05, 0.06, math.radians(20.0)
    shop = Workshop()
    reach = base + arm * math.cos(angle) - plate
    home = np.array([0.0, 0.0, -arm * math.sin(angle) - math.sqrt(forearm**2 - reach**2)])
    shop.part("platform", Floating(), GROUND, home, 0.5, home, (5e-4, 5e-4, 1e-3))
    for i in range(3):
        outward = _circle_point(1.0, 120.0 * i, 0.0)
        sideways = np.cross(Z, outward)
        shoulder = base * outward
        elbow = shoulder + arm * (math.cos(angle) * outward - math.sin(angle) * np.array(Z))
        wrist = home + plate * outward
        along = (wrist - elbow) / forearm
        shop.rod(f"arm{i + 1}", Revolute(tuple(sideways)), GROUND, shoulder, elbow, 0.6, 0.04)
        for side, shift in (("a", half_gap * sideways), ("b", -half_gap * sideways)):
            rod = f"rod{i + 1}{side}"
            kind = Universal(tuple(sideways), tuple(np.cross(along, sideways)))
            shop.rod(rod, kind, f"arm{i + 1}", elbow + shift, wrist + shift, 0.1, 0.01)
            shop.loop(f"ball{i + 1}{side}", Spherical(), rod, "platform", wrist + shift)
    return shop.builder.build("delta_robot")


def _circle_point(radius: float, degrees: float, height: float) -> np.ndarray:
    angle = math.radians(degrees)
    return np.array([radius * math.cos(angle), radius * math.sin(angle), height])


# -- what rolls or glides: constraints on velocities, by wheels and knife edges; x is ahead, y is left, z is up


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
    "left", "right"; contacts "left_tyre", "right_tyre". Its mass is 0.1 m ahead of the axle; casters are not modelled.
    """
    radius, half = 0.1, 0.25
    builder = Builder().link("cart", 10.0, (0.1, 0.0, 0.0), (0.2, 0.3, 0.4))
    builder.joint("base", Planar(Z), GROUND, "cart", (0.0, 0.0, radius))
    for name, side in (("left", half), ("right", -half)):
        builder.link(name, 0.5, inertia=(0.00125, 0.0025, 0.00125))
        builder.joint(name, Revolute(Y), "cart", name, (0.0, side, 0.0))
        builder.wheel(f"{name}_tyre", name, radius, contact=False)
    return builder.build("differential_drive")
