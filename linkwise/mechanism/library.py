"""Built-in mechanisms. Each is made again on every call and is the same every time: nothing random is hidden."""

from __future__ import annotations

import math
import re
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linkwise.mechanics.joints import (
    KINDS,
    Cylindrical,
    Fixed,
    Floating,
    Helical,
    Joint,
    PinInSlot,
    Planar,
    Prismatic,
    Revolute,
    Spherical,
    Universal,
)
from linkwise.mechanism.builder import Builder
from linkwise.mechanism.checks import InertiaWarning, MechanismError, did_you_mean, names_of, one_of
from linkwise.mechanism.dh import from_dh
from linkwise.mechanism.model import GROUND, Mechanism
from linkwise.mechanism.parts import Limits

__all__ = [
    "bicycle",
    "bricard",
    "cart_pole",
    "chain",
    "delta_robot",
    "differential_drive",
    "double_pendulum",
    "five_bar",
    "flyball_governor",
    "four_bar",
    "four_bar_branches",
    "humanoid",
    "loader",
    "n_four_bar",
    "parallel_four_bar_robot",
    "planar_arm",
    "puma560",
    "quadruped",
    "random_tree",
    "rolling_disk",
    "slider_crank",
    "snakeboard",
    "stanford_arm",
    "stewart_platform",
]
__dir__ = __all__.copy


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    raise AttributeError(f"there is no built-in mechanism {name!r}: {did_you_mean(name, __all__)}")


def maker(name: str) -> Callable[..., Mechanism]:
    """The built-in mechanism's function by name, for names from files and command lines."""
    return globals()[one_of("built-in mechanism", name, __all__)]


# Arms ------------------------------------------------------------------------------------------------------------


def planar_arm(n: int = 3, length: float = 1.0, mass: float = 1.0, gravity: Any = (0.0, -9.81, 0.0)) -> Mechanism:
    """``n`` equal slender rods, stretched along x at q = 0, rotating about z; gravity along -y (saha1999, Fig. 4).

    The links are "link1" ..., the joints "joint1" ..., and "tip" is a frame at the end of the last rod.
    """
    _check_count(n)
    builder = Builder()
    across = mass * length**2 / 12.0
    parent, far_end = GROUND, None
    for i in range(1, n + 1):
        builder.link(f"link{i}", mass, (length / 2.0, 0.0, 0.0), (0.0, across, across))
        builder.joint(f"joint{i}", Revolute((0.0, 0.0, 1.0)), parent, f"link{i}", far_end)
        parent, far_end = f"link{i}", (None, (length, 0.0, 0.0))
    builder.link("tip").joint("tip_joint", Fixed(), parent, "tip", far_end)
    return builder.build(f"planar_arm_{n}", gravity)


def chain(n: int = 6) -> Mechanism:
    """``n`` revolute joints in a row with general geometry and inertias: no zero, no right angle, no symmetry.

    A shorter chain is the beginning of a longer one.
    """
    _check_count(n)
    rng = np.random.default_rng(1992)
    builder = Builder()
    parent = GROUND
    for i in range(1, n + 1):
        axis, pose = rng.normal(size=3).tolist(), (_random_rotation(rng), rng.uniform(0.1, 0.3, 3))
        builder.link(f"link{i}", *_random_mass(rng))
        builder.joint(f"joint{i}", Revolute(axis), parent, f"link{i}", pose)
        parent = f"link{i}"
    return builder.build(f"chain_{n}")


def stanford_arm() -> Mechanism:
    """The Stanford arm of saha1999, Table 3: five revolute joints and a prismatic one (joint 3), z up.

    Coordinates are the table's variables: theta_i, and b_3 for joint 3. The paper starts from theta_2 = 90 degrees.
    """
    quarter = math.pi / 2.0
    columns = ("b", "alpha", "mass", "r", "inertia")
    table = (
        (0.2, -quarter, 9.0, (0.0, -0.1, 0.0), (0.01, 0.02, 0.01)),
        (0.1, -quarter, 6.0, (0.0, 0.0, 0.0), (0.05, 0.06, 0.01)),
        (0.0, 0.0, 4.0, (0.0, 0.0, 0.0), (0.4, 0.4, 0.01)),
        (0.6, quarter, 1.0, (0.0, -0.1, 0.0), (0.001, 0.001, 0.0005)),
        (0.0, -quarter, 0.6, (0.0, 0.0, 0.0), (0.0005, 0.0005, 0.0002)),
        (0.0, 0.0, 0.5, (0.0, 0.0, 0.0), (0.003, 0.001, 0.002)),
    )
    rows = [{"a": 0.0, **dict(zip(columns, row, strict=True))} for row in table]
    rows[2] |= {"kind": "prismatic", "theta": 0.0}
    return from_dh(rows, "saha1999", name="stanford_arm")


def puma560() -> Mechanism:
    """The Unimation PUMA 560: Armstrong, Khatib and Burdick 1986, in the standard DH frames of Corke 1996.

    Rotor inertias, reflected through the gears, are the armatures. Link 1 only rotates about joint 1; its published
    moment of inertia about that axis (0.35, without any mass) is part of joint 1's armature, which is the same motion.
    Link 3's published principal moments miss the triangle inequality by 9 percent and are kept as published.
    Its joint limits are known, and do not act: ``with_acting(True)`` lets them.
    """
    quarter, degree = math.pi / 2.0, math.pi / 180.0
    columns = ("a", "alpha", "d", "mass", "com", "inertia", "armature", "limits")
    arm, wrist = 200e-6, 33e-6  # rotor inertias of the two kinds of motors
    table = (
        (0.0, quarter, 0.0, 0.0, (0, 0, 0), (0, 0, 0), 62.6111**2 * arm + 0.35, (-160, 160)),
        (0.4318, 0.0, 0.0, 17.4, (-0.3638, 0.006, 0.2275), (0.13, 0.524, 0.539), 107.815**2 * arm, (-45, 225)),
        (
            0.0203,
            -quarter,
            0.15005,
            4.8,
            (-0.0203, -0.0141, 0.07),
            (0.066, 0.086, 0.0125),
            53.7063**2 * arm,
            (-225, 45),
        ),
        (0.0, quarter, 0.4318, 0.82, (0, 0.019, 0), (1.8e-3, 1.3e-3, 1.8e-3), 76.0364**2 * wrist, (-110, 170)),
        (0.0, -quarter, 0.0, 0.34, (0, 0, 0), (0.3e-3, 0.4e-3, 0.3e-3), 71.923**2 * wrist, (-100, 100)),
        (0.0, 0.0, 0.0, 0.09, (0, 0, 0.032), (0.15e-3, 0.15e-3, 0.04e-3), 76.686**2 * wrist, (-266, 266)),
    )
    rows: list[dict[str, Any]] = [dict(zip(columns, row, strict=True)) for row in table]
    for row in rows:
        lower, upper = row["limits"]
        row["limits"] = Limits(lower * degree, upper * degree)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", InertiaWarning)  # link 3, see above
        mechanism = from_dh(rows, "standard", name="puma560", strict=False)
    return mechanism.with_acting(limits=False)


# Small classics --------------------------------------------------------------------------------------------------


def double_pendulum(length: float = 1.0, mass: float = 1.0) -> Mechanism:
    """Two equal slender rods that hang down at q = 0 and swing about y."""
    builder = Builder()
    across = mass * length**2 / 12.0
    parent, far_end = GROUND, None
    for link, joint in (("upper", "shoulder"), ("lower", "elbow")):
        builder.link(link, mass, (0.0, 0.0, -length / 2.0), (across, across, 0.0))
        builder.joint(joint, Revolute((0.0, 1.0, 0.0)), parent, link, far_end)
        parent, far_end = link, (None, (0.0, 0.0, -length))
    return builder.build("double_pendulum")


def cart_pole(cart_mass: float = 1.0, pole_mass: float = 0.1, length: float = 1.0) -> Mechanism:
    """A cart that slides along x and carries a slender pole, upright at q = 0, that rotates about y."""
    across = pole_mass * length**2 / 12.0
    return (
        Builder()
        .link("cart", cart_mass)
        .link("pole", pole_mass, (0.0, 0.0, length / 2.0), (across, across, 0.0))
        .joint("rail", Prismatic((1.0, 0.0, 0.0)), GROUND, "cart")
        .joint("hinge", Revolute((0.0, 1.0, 0.0)), "cart", "pole")
        .build("cart_pole")
    )


# Random trees ----------------------------------------------------------------------------------------------------

_RANDOM_KINDS: dict[str, Callable[[np.random.Generator], Joint]] = {
    "revolute": lambda rng: Revolute(_random_axis(rng)),
    "prismatic": lambda rng: Prismatic(_random_axis(rng)),
    "helical": lambda rng: Helical(_random_axis(rng), rng.uniform(-0.3, 0.3)),
    "spherical": lambda rng: Spherical(),
    "universal": lambda rng: Universal(*_random_axes(rng)),
    "cylindrical": lambda rng: Cylindrical(_random_axis(rng)),
    "planar": lambda rng: Planar(_random_axis(rng)),
    "pin_in_slot": lambda rng: PinInSlot(*_random_axes(rng)),
    "floating": lambda rng: Floating(),
    "fixed": lambda rng: Fixed(),
}
#: What random trees are made of unless asked otherwise.  Kinds that came later are not among them: a seed means the
#: same tree for ever.
MOVING_KINDS = tuple(kind for kind in _RANDOM_KINDS if kind not in ("pin_in_slot", "fixed"))
for _name, _kind in KINDS.items():  # further ones of the package: they draw their parameters themselves
    _RANDOM_KINDS.setdefault(re.sub(r"(?<=[a-z])(?=[A-Z])", "_", _name).lower(), _kind.drawn)
EVERY_KIND = tuple(kind for kind in _RANDOM_KINDS if kind != "fixed")


def random_tree(
    n: int, seed: int, joints: Sequence[str | type[Joint]] = MOVING_KINDS, floating_base: bool = False
) -> Mechanism:
    """A tree of ``n`` links, the same for the same arguments.

    joints          kinds to draw from: "revolute", "prismatic", "helical", "spherical", "universal", "cylindrical",
                    "planar", "floating", all by default; "pin_in_slot", "fixed" (a welded link); or kinds of your
                    own, subclasses of ``Joint`` (its ``drawn`` says how)
    floating_base   let the first link float; it counts as one of the ``n``

    Branching, axes (along coordinates, along small integers, general), poses (aligned, quarter turns, general) and
    inertias (those of a real body) are random; three joints in ten have an armature.
    """
    _check_count(n)
    unknown = [kind for kind in joints if isinstance(kind, str) and kind not in _RANDOM_KINDS]
    if unknown or not joints:
        raise MechanismError(f"unknown joint kinds {unknown}; " + did_you_mean(unknown, list(_RANDOM_KINDS)))
    rng = np.random.default_rng(seed)
    builder = Builder()
    for i in range(n):
        # Half of the links continue the last one, so that trees are deep as well as broad.
        parent = i - 1 if rng.random() < 0.5 else int(rng.integers(-1, i))
        kind = joints[int(rng.integers(len(joints)))]
        if floating_base and i == 0:
            kind = "floating"
        elif floating_base:
            parent = max(parent, 0)
        builder.link(f"link{i + 1}", *_random_mass(rng))
        builder.joint(
            f"joint{i + 1}",
            _RANDOM_KINDS[kind](rng) if isinstance(kind, str) else kind.drawn(rng),
            GROUND if parent < 0 else f"link{parent + 1}",
            f"link{i + 1}",
            (_random_orientation(rng), _random_position(rng)),
            armature=rng.uniform(0.05, 0.5) if rng.random() < 0.3 else 0.0,
        )
    return builder.build(f"random_tree_{n}_{seed}")


def _check_count(n: int) -> None:
    if not isinstance(n, (int, np.integer)) or n < 1:
        raise MechanismError(f"a mechanism needs at least one link, not n = {n!r}")


def _random_rotation(rng: np.random.Generator) -> np.ndarray:
    """A uniformly distributed rotation: Q of a Gaussian matrix with fixed signs."""
    q, r = np.linalg.qr(rng.normal(size=(3, 3)))
    q = q * np.sign(np.diag(r))
    return q * np.linalg.det(q)


def _random_orientation(rng: np.random.Generator) -> np.ndarray:
    """The identity, a rotation by quarter turns, or a general one."""
    choice = rng.integers(3)
    if choice == 0:
        return np.eye(3)
    if choice == 1:
        permutation = np.eye(3)[rng.permutation(3)] * rng.choice([-1.0, 1.0], 3)
        return permutation * np.linalg.det(permutation)
    return _random_rotation(rng)


def _random_position(rng: np.random.Generator) -> np.ndarray:
    """Somewhere within half a metre, in one case out of two along a coordinate axis or at the origin."""
    position = rng.uniform(-0.5, 0.5, 3)
    return position if rng.random() < 0.5 else position * np.eye(4, 3)[rng.integers(4)]


def _random_axis(rng: np.random.Generator) -> list[float]:
    """A coordinate axis of either sign, a direction along small integers, or a general one."""
    choice = rng.integers(3)
    if choice == 0:
        return (np.eye(3)[rng.integers(3)] * rng.choice([-1.0, 1.0])).tolist()
    if choice == 1:
        return (rng.permutation([1.0, 2.0, 3.0]) * rng.choice([-1.0, 1.0], 3)).tolist()
    return rng.normal(size=3).tolist()


def _random_axes(rng: np.random.Generator) -> tuple[list[float], list[float]]:
    """Two axes, in one case out of two at right angles, otherwise at least half a right angle apart."""
    first, helper = np.array(_random_axis(rng)), np.array(_random_axis(rng))
    first /= np.linalg.norm(first)
    square = np.cross(first, helper)
    if np.linalg.norm(square) < 0.1:  # the two happen to be almost parallel
        square = np.cross(first, np.roll(np.eye(3)[np.argmax(np.abs(first))], 1))
    square /= np.linalg.norm(square)
    return first.tolist(), (square + rng.choice([0.0, rng.uniform(-1.0, 1.0)]) * first).tolist()


def _random_mass(rng: np.random.Generator) -> tuple[float, np.ndarray, np.ndarray]:
    """Mass, centre of mass and inertia of a solid with random extents along random directions."""
    mass, com, extents = rng.uniform(0.5, 3.0), rng.uniform(-0.2, 0.2, 3), rng.uniform(0.05, 0.3, 3)
    axes = _random_rotation(rng)
    second_moments = mass * (axes * extents**2) @ axes.T
    return mass, com, np.trace(second_moments) * np.eye(3) - second_moments


# Closed mechanisms -----------------------------------------------------------------------------------------------
#
# Each is assembled at ``lw.neutral(mech)`` unless it says otherwise, its frames along the world's axes there.  Planar
# ones lie in the x-y plane with gravity along -y.


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


# What rolls or glides ----------------------------------------------------------------------------------------------
#
# Constraints on velocities, by wheels and knife edges.  Each stands at ``lw.neutral(mech)``, its frames along the axes
# of the world there: x is ahead, y is left, z is up.


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
    (planar), "rotor", "front_axle", "rear_axle"; contacts "front" and "rear", of wheels that do not slip sideways.

    6 kg in all, 0.2 m from the middle to each axle; it moves in the x-y plane, without gravity.
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


# Robots on legs ----------------------------------------------------------------------------------------------------
#
# A floating base, and loops that hold feet to the ground where they stand, at ``lw.neutral(mech)``; axes as above.


QUADRUPED_FEET = ("front_left", "front_right", "rear_left", "rear_right")
HUMANOID_FEET = ("left", "right")
Stands = dict[str, tuple[str, np.ndarray]]  # foot: its link, the point of the ground under it


def quadruped(held: Sequence[str] = QUADRUPED_FEET) -> Mechanism:
    """A trunk (8 kg) on four legs of three revolute joints ("front_left_roll_joint", "..._pitch_joint",
    "..._knee_joint"): 13 links, nv = 18, and loops "front_left_foot" ... that hold its feet like ball joints.

    ``held`` names the feet that are held: of "front_left", "front_right", "rear_left", "rear_right"; frames
    "front_left_toe" ... are at all of them.  Standing with bent knees at the neutral configuration, the trunk 0.36 m
    above the ground.
    """
    shop, trunk = Workshop(), np.array([0.0, 0.0, 0.36])
    stands: Stands = {}
    shop.part("trunk", Floating(), GROUND, trunk, 8.0, trunk, (0.04, 0.15, 0.17))
    for leg in QUADRUPED_FEET:
        side = 1.0 if leg.endswith("left") else -1.0
        shoulder = trunk + (0.2 if leg.startswith("front") else -0.2, 0.05 * side, 0.0)
        hip = shoulder + (0.0, 0.07 * side, 0.0)
        knee, toe = hip + (-0.12, 0.0, -0.18), hip * (1.0, 1.0, 0.0)
        shop.rod(f"{leg}_roll", Revolute(X), "trunk", shoulder, hip, 0.6, 0.05)
        shop.rod(f"{leg}_pitch", Revolute(Y), f"{leg}_roll", hip, knee, 0.8, 0.04)
        shop.rod(f"{leg}_knee", Revolute(Y), f"{leg}_pitch", knee, toe, 0.2, 0.03)
        shop.builder.frame(f"{leg}_toe", f"{leg}_knee", (None, toe - knee))
        stands[leg] = (f"{leg}_knee", toe)
    _hold(shop, Spherical(), held, stands)
    return shop.builder.build("quadruped")


def humanoid(held: Sequence[str] = HUMANOID_FEET) -> Mechanism:
    """A pelvis, legs of six revolute joints, a torso and arms of four: 22 links, nv = 27, and loops "left_foot",
    "right_foot" that weld its feet to the ground.

    ``held`` names the feet that are held, "left" or "right"; frames "left_sole", "right_sole" are at both.  Standing
    with bent knees at the neutral configuration, the pelvis 0.9 m above the ground.
    """
    shop, pelvis = Workshop(), np.array([0.0, 0.0, 0.9])
    stands: Stands = {}
    shop.part("pelvis", Floating(), GROUND, pelvis, 8.0, pelvis, (0.06, 0.05, 0.06))
    chest = pelvis + (0.0, 0.0, 0.1)
    shop.part("torso", Revolute(Z), "pelvis", chest, 20.0, chest + (0.0, 0.0, 0.2), (0.6, 0.5, 0.3))
    for name, side in (("left", 1.0), ("right", -1.0)):
        hip = pelvis + (0.0, 0.1 * side, -0.05)
        knee, ankle = hip + (0.1, 0.0, -0.38), hip + (0.0, 0.0, -0.77)
        _small(shop, f"{name}_hip_yaw", Revolute(Z), "pelvis", hip)
        _small(shop, f"{name}_hip_roll", Revolute(X), f"{name}_hip_yaw", hip)
        shop.rod(f"{name}_thigh", Revolute(Y), f"{name}_hip_roll", hip, knee, 5.0, 0.12)
        shop.rod(f"{name}_shank", Revolute(Y), f"{name}_thigh", knee, ankle, 3.0, 0.09)
        _small(shop, f"{name}_ankle", Revolute(Y), f"{name}_shank", ankle)
        sole = ankle * (1.0, 1.0, 0.0)
        shop.part(
            f"{name}_sole_link",
            Revolute(X),
            f"{name}_ankle",
            ankle,
            1.0,
            sole + (0.03, 0.0, 0.03),
            (0.002, 0.006, 0.006),
        )
        shop.builder.frame(f"{name}_sole", f"{name}_sole_link", (None, sole - ankle))
        stands[name] = (f"{name}_sole_link", sole)
        shoulder = chest + (0.0, 0.2 * side, 0.4)
        elbow, hand = shoulder + (0.0, 0.05 * side, -0.28), shoulder + (0.2, 0.05 * side, -0.42)
        _small(shop, f"{name}_shoulder_pitch", Revolute(Y), "torso", shoulder)
        _small(shop, f"{name}_shoulder_roll", Revolute(X), f"{name}_shoulder_pitch", shoulder)
        shop.rod(f"{name}_upper_arm", Revolute(Z), f"{name}_shoulder_roll", shoulder, elbow, 2.0, 0.08)
        shop.rod(f"{name}_forearm", Revolute(Y), f"{name}_upper_arm", elbow, hand, 1.5, 0.06)
    _hold(shop, Fixed(), held, stands)
    return shop.builder.build("humanoid")


def _small(shop: Workshop, name: str, kind: Joint, parent: str, at: np.ndarray) -> None:
    """The housing of a motor, between joints whose axes meet."""
    shop.part(name, kind, parent, at, 0.7, at, (1e-3, 1e-3, 1e-3))


def _hold(shop: Workshop, kind: Joint, held: Sequence[str], stands: Stands) -> None:
    """A loop between the ground and each held foot at its present position."""
    for foot in names_of(held):
        if foot not in stands:
            raise MechanismError(f"held: there is no foot {foot!r}: {did_you_mean(foot, stands)}")
        link, point = stands[foot]
        shop.loop(f"{foot}_foot", kind, GROUND, link, point)
