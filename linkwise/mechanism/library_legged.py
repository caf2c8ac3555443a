"""Built-in robots on legs: a floating base, and loops that hold feet to the ground where they stand.

Each stands at ``lw.neutral(mech)``, its frames along the world's axes there: x is ahead, y is left, z is up.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linkwise.mechanics.joints import Fixed, Floating, Joint, Revolute, Spherical
from linkwise.mechanism.checks import MechanismError, did_you_mean, names_of
from linkwise.mechanism.library_closed import Workshop, X, Y, Z
from linkwise.mechanism.model import GROUND, Mechanism

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
    """A loop between the ground and each foot that is held, where it stands."""
    for foot in names_of(held):
        if foot not in stands:
            raise MechanismError(f"held: there is no foot {foot!r}: {did_you_mean(foot, stands)}")
        link, point = stands[foot]
        shop.loop(f"{foot}_foot", kind, GROUND, link, point)
