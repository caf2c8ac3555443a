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
from linkwise.mechanism.checks import InertiaWarning, MechanismError, did_you_mean, one_of
from linkwise.mechanism.dh import from_dh
from linkwise.mechanism.library_closed import (
    bicycle,
    bricard,
    delta_robot,
    differential_drive,
    five_bar,
    flyball_governor,
    four_bar,
    four_bar_branches,
    loader,
    n_four_bar,
    parallel_four_bar_robot,
    rolling_disk,
    slider_crank,
    snakeboard,
    stewart_platform,
)
from linkwise.mechanism.library_legged import humanoid, quadruped
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
