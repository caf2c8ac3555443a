"""Inverse kinematics: all ways to hold a tool, a preferred posture, a linkage with a loop, a robot over one foot.

python examples/22_inverse_kinematics.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"


def reached(mech: lw.Mechanism, q: np.ndarray, frame: str, pose: np.ndarray) -> float:
    return float(np.abs(lw.frame_pose(mech, q, frame) - pose).max())


def ways_to_hold(ax) -> None:
    """One pose of the hand: the arm has several elbows and wrists for it."""
    arm = lw.mechanisms.puma560()
    pose = lw.pose((0.5, 0.15, 0.2), rpy=(0.0, 2.2, 0.3))
    ways = lw.kinematics.inverse_kinematics_branches(arm, {"link6": pose})
    ways = ways[np.isfinite(ways).all(axis=-1)]
    print(f"{len(ways)} configurations hold the hand of the Puma in one pose,", end=" ")
    print(f"which is met to {reached(arm, ways, 'link6', pose):.0e}")
    elbows = np.unique(np.round(ways[:, :3], 4), axis=0, return_index=True)[1]
    for q, colour in zip(ways[elbows], (BLUE, ORANGE, GREEN, GREY), strict=False):
        places = [np.zeros(3), *lw.link_poses(arm, q)[:, :3, 3], pose[:3, 3] + 0.1 * pose[:3, 2]]
        ax.plot(*np.array(places).T, "-o", color=colour, lw=3, ms=4)
    ax.set(title=f"{len(ways)} ways to hold a tool, by {len(elbows)} elbows", xlabel="x (m)", ylabel="y (m)")
    ax.set_aspect("equal")
    for axis in (ax.xaxis, ax.yaxis, ax.zaxis):
        axis.set_major_locator(plt.MaxNLocator(4))
    ax.view_init(25, -50)


def postures(ax) -> None:
    """A planar arm of five links follows a line; of all configurations that do, the one nearest to a posture."""
    arm = lw.mechanisms.planar_arm(5, length=0.5)
    line = np.stack([np.linspace(0.4, 1.9, 7), np.full(7, 0.9), np.zeros(7)], axis=-1)
    for posture, colour, label in ((np.full(5, 0.5), BLUE, "curled to the left"), (np.full(5, -0.4), ORANGE, "right")):
        found = lw.inverse_kinematics(arm, {"tip": line}, posture=posture, iterations=1000)
        for k, q in enumerate(found.require()):
            ends = lw.frame_pose(arm, q, "tip")[None, :2, 3]
            x, y = np.concatenate([lw.link_poses(arm, q)[:, :2, 3], ends]).T
            ax.plot(x, y, "-o", color=colour, ms=3, alpha=0.3 + 0.1 * k, label=label if k == 6 else None)
        jacobian = lw.jacobian(arm, found.q, "tip", "world_aligned")[:, 3:5]
        choice = np.eye(5) - np.linalg.pinv(jacobian) @ jacobian
        left = np.abs(choice @ (found.q - posture)[..., None]).max()
        print(f"arm of five links, {label}: no way along the line's null space is nearer, to {left:.0e}")
    ax.plot(*line[:, :2].T, "k--", lw=1)
    ax.set(title="seven points, two preferred postures", xlabel="x (m)", ylabel="y (m)", aspect="equal")
    ax.set_ylim(-0.4, 2.1)
    ax.legend(fontsize=8, loc="upper right")


def loop(ax) -> None:
    """A five-bar linkage carries a point around a circle, its loop closed."""
    mech = lw.mechanisms.five_bar()
    q = lw.constraints.assemble(mech, mech.initial)
    middle = lw.frame_pose(mech, q, "link3")[:3, 3]
    angles = np.linspace(0.0, 2.0 * np.pi, 25)
    circle = middle + 0.12 * np.stack([np.cos(angles) - 1.0, np.sin(angles), 0.0 * angles], axis=-1)
    path = []
    for place in circle:  # each from the one before, so that the linkage stays assembled the same way
        q = lw.inverse_kinematics(mech, {"link3": place}, q, attempts=1).require()
        path.append(q)
    gap = np.abs(lw.constraints.position_error(mech, np.array(path))).max()
    print(f"five-bar linkage around a circle: its loop stays closed to {gap:.0e}")
    for k in (0, 12):
        lw.viewer.draw(mech, path[k], ax=ax, masses=False, ticks=True)
    ax.plot(*circle[:, :2].T, "--", color=ORANGE, lw=1.5)
    ax.set(title="a linkage with a loop", xlabel="x (m)", ylabel="y (m)")


def standing(ax) -> None:
    """Both feet on the ground, the centre of mass over one of them."""
    robot = lw.mechanisms.humanoid(held=())
    upright = lw.neutral(robot)
    feet = {name: lw.frame_pose(robot, upright, name) for name in ("left_sole", "right_sole")}
    place = feet["left_sole"][:2, 3]
    target = lw.kinematics.CenterOfMassTarget(place, axes="xy")
    q = lw.inverse_kinematics(robot, feet, upright, posture=upright, center_of_mass=target).require()
    center = lw.center_of_mass(robot, q)
    print(f"humanoid with both feet held: centre of mass over the left one to {np.abs(center[:2] - place).max():.0e}")
    lw.viewer.draw(robot, q, ax=ax, masses=False)
    ax.plot(*np.stack([center, [*place, 0.0]]).T, "o--", color=ORANGE, lw=1.5, ms=5)
    ax.set(title="the mass centre over the left foot", xlabel="", ylabel="", xticks=[], yticks=[])
    ax.view_init(12, -20)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure = plt.figure(figsize=(16.0, 4.2), layout="constrained")
    ways_to_hold(figure.add_subplot(1, 4, 1, projection="3d"))
    postures(figure.add_subplot(1, 4, 2))
    loop(figure.add_subplot(1, 4, 3))
    standing(figure.add_subplot(1, 4, 4, projection="3d"))
    figure.savefig(FOLDER / "22_inverse_kinematics.png", dpi=110)
    print(f"picture: {FOLDER / '22_inverse_kinematics.png'}")


if __name__ == "__main__":
    main()
