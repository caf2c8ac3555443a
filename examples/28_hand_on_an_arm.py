"""A gripper on a robot arm, and two such robots in one world: mechanisms put together.

python examples/28_hand_on_an_arm.py [folder for pictures]
"""

import sys
from pathlib import Path

import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")


def gripper() -> lw.Mechanism:
    """Two fingers that move as one, on a palm that is fixed to the ground while there is no arm."""
    builder = lw.Builder().link("palm", 0.6, (0, 0, 0.03), (1e-3, 1e-3, 5e-4))
    builder.joint("mounting", lw.Fixed(), "ground", "palm")
    for name, side in (("left", 1.0), ("right", -1.0)):
        builder.link(name, 0.05, (0, 0, 0.04), (4e-5, 4e-5, 1e-5))
        builder.joint(
            f"{name}_slide",
            lw.Prismatic((side, 0, 0)),
            "palm",
            name,
            (None, (0.01 * side, 0, 0.06)),
            limits=lw.Limits(0.0, 0.05, effort=20.0),
            mimic=None if name == "left" else lw.Mimic("left_slide"),
        )
        builder.shape(f"{name}_pad", name, "capsule", (0.012, 0.04), (None, (0, 0, 0.05)))
    builder.shape("palm", "palm", "box", (0.07, 0.03, 0.03), (None, (0, 0, 0.03)))
    return builder.frame("grip", "palm", (None, (0, 0, 0.13))).build("gripper").metadata.with_postures({"open": [0.05]})


arm, hand = lw.mechanisms.puma560(), gripper()
robot = arm.with_mechanism(hand, "link6", lw.pose((0, 0, 0.05)), prefix="hand_")
print(robot.joint_names, robot.coordinates.mimic_joints)
carried = robot.parameters.masses.sum() - arm.parameters.masses.sum()
print(f"the arm carries {carried:.2f} kg: the fingers and the palm")

# The same as a load that does not move, where the fingers are at rest against the palm.
q = np.append([0.2, -0.8, 0.5, 0.1, 0.6, 0.0], 0.03)
still = robot.with_locked(hand_left_slide=0.03)
apart = np.abs(lw.gravity_force(still, q[:6]) - lw.gravity_force(robot, q)[:6]).max()
print(f"torques that hold it differ from those with the fingers locked by {apart:.0e} N m")

# Where the fingers are is a matter of its own: the grip is brought to a place, and closed there.
place = lw.pose((0.5, 0.2, 0.1), rpy=(0, 2.6, 0.4))
reached = lw.inverse_kinematics(robot, {"hand_grip": place}, posture={"hand_left_slide": 0.05}).require()
off = np.abs(lw.frame_pose(robot, reached, "hand_grip") - place).max()
print(f"the grip is off its place by {off:.0e}")

# Two of them in one world, back to back: they move as each does alone.
pair = robot.with_mechanism(robot, "ground", lw.pose((-0.9, 0, 0), rpy=(0, 0, np.pi)), prefix="second_")
v = np.random.default_rng(0).normal(size=robot.nv)
together = lw.forward_dynamics(pair, np.tile(reached, 2), np.tile(v, 2), np.zeros(pair.nv))
alone = lw.forward_dynamics(robot, reached, v, np.zeros(robot.nv))
print(f"their accelerations are those of one, twice, up to {np.abs(together - np.tile(alone, 2)).max():.0e}")

file = FOLDER / "28_hand_on_an_arm.png"
FOLDER.mkdir(parents=True, exist_ok=True)
lw.viewer.draw(pair, np.tile(reached, 2), path=file, masses=False, elevation=22.0, azimuth=-75.0, symbols=0.7)
print(f"picture: {file}")
