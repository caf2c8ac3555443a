"""Quantities that no paper lists, in a line each: what one feels who pushes a robot, and what its other hand notices.

python examples/05_operators.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw
from linkwise import operators as op

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def rod(length: float, mass: float) -> tuple:
    """Mass, centre of mass and inertia of a rod of some thickness that hangs down from its joint."""
    across = mass * (length**2 / 12 + 0.04**2 / 4)
    return mass, (0, 0, -length / 2), (across, across, mass * 0.04**2 / 2)


def two_armed() -> lw.Mechanism:
    """A trunk on three joints and two arms of six joints each, seen from behind: y to the side, z up."""
    build = lw.Builder()
    build.link("column", 3.0, (0, 0, 0.05), (0.02, 0.02, 0.02)).joint(
        "turn", lw.Revolute((0, 0, 1)), "ground", "column"
    )
    build.link("hip", 1.0).joint("lift", lw.Prismatic((0, 0, 1)), "column", "hip", armature=5.0)
    build.link("trunk", 14.0, (0, 0, 0.25), (0.4, 0.35, 0.2))
    build.joint("lean", lw.Revolute((1, 0, 0)), "hip", "trunk", (None, (0, 0, 0.1)), armature=0.3)
    for side, y in (("left", 0.2), ("right", -0.2)):
        parent, place = "trunk", (None, (0, y, 0.5))
        for part, axis, length, mass in (
            ("shoulder", (1, 0, 0), 0.0, 0.8),
            ("collar", (0, 1, 0), 0.0, 0.6),
            ("upper_arm", (0, 0, 1), 0.3, 2.0),
            ("forearm", (1, 0, 0), 0.28, 1.2),
            ("wrist", (0, 1, 0), 0.0, 0.3),
            ("hand", (1, 0, 0), 0.12, 0.5),
        ):
            link = f"{side}_{part}"
            build.link(link, *(rod(length, mass) if length else (mass, (0, 0, 0), (0.002, 0.002, 0.002))))
            build.joint(f"{link}_joint", lw.Revolute(axis), parent, link, place, armature=0.02)
            parent, place = link, (None, (0, 0, -length))
        build.link(f"{side}_palm").joint(f"{side}_palm_weld", lw.Fixed(), parent, f"{side}_palm", (None, (0, 0, -0.08)))
    build.link("band").joint("band_weld", lw.Fixed(), "left_upper_arm", "band", (None, (0, 0, -0.3)))
    return build.build("two_armed")


# -- the quantities -----------------------------------------------------------------------------------

# Somebody takes the left arm by a band just above the elbow and shakes it.  What does he feel?
FELT = {
    "arm beyond, locked": op.A("band").T @ op.phi @ op.M @ op.phi.T @ op.A("band"),
    "arm beyond, giving way": op.A("band").T @ op.P @ op.A("band"),
    "whole robot giving way": (op.B("band").T @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.B("band")).inv,
}
STYLES = {
    "arm beyond, locked": (ORANGE, "--"),
    "arm beyond, giving way": (BLUE, "-"),
    "whole robot giving way": (GREEN, "-."),
}


def mobility(of: str, by: str) -> op.Expression:
    """Acceleration of one frame per force on another, everything at rest and free to move."""
    return op.B(of).T @ op.psi.T @ op.H.T @ op.D.inv @ op.H @ op.psi @ op.B(by)


# -- at work ------------------------------------------------------------------------------------------


def poses(mech: lw.Mechanism, bend: np.ndarray) -> np.ndarray:
    """Arms held out, elbows bent by ``bend`` in the frontal plane."""
    q = np.zeros((len(bend), mech.nq))
    for side, sign in (("left", 1.0), ("right", -1.0)):
        q[:, mech.q_index(f"{side}_shoulder_joint")] = sign * 0.6
        q[:, mech.q_index(f"{side}_collar_joint")] = 0.15
        q[:, mech.q_index(f"{side}_forearm_joint")] = sign * bend[:, None]
        q[:, mech.q_index(f"{side}_hand_joint")] = sign * 0.2
    return q


def compiled(name: str, expression: op.Expression, mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """The expression at all q, compared with plainly stacked matrices at some of them."""
    kernel = lw.compile(expression, mech)
    some = q[:: len(q) // 5]
    expected = op.dense(expression, mech, some)
    error = np.abs(kernel(some) - expected).max() / np.abs(expected).max()
    print(f"  {name:28} {sum(kernel.op_counts.values()):5} operations   {error:.0e}")
    return kernel(q)


def apparent_mass(inertia: np.ndarray, rotation: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """Force over acceleration along ``directions`` (world), for a push that leaves rotation free."""
    compliance = rotation @ np.linalg.inv(inertia)[..., 3:, 3:] @ np.swapaxes(rotation, -1, -2)
    return 1.0 / np.einsum("ki,...ij,kj->...k", directions, compliance, directions)


def draw_arms(axes, mech: lw.Mechanism, q: np.ndarray, **style) -> None:
    """The trunk and both arms from behind."""

    def points(*frames):
        return np.array([lw.frame_pose(mech, q, frame)[1:3, 3] for frame in frames]).T

    for side in ("left", "right"):
        chain = [f"{side}_{part}" for part in ("shoulder", "forearm", "hand", "palm")]
        axes.plot(*points(*chain), "o-", **style)
    axes.plot(*points("hip", "trunk"), "o-", **style)
    axes.plot(*points("left_shoulder", "trunk", "right_shoulder"), "-", **style)


def draw(mech: lw.Mechanism, bend: np.ndarray, felt: dict, cross: np.ndarray, own: np.ndarray, path: Path) -> None:
    q, turned = poses(mech, bend), lw.frame_pose(mech, poses(mech, bend), "band")[:, :3, :3]
    figure, (behind, along, hands) = plt.subplots(1, 3, figsize=(13.5, 4.4), layout="constrained")

    shown = int(np.searchsorted(bend, np.radians(70)))
    draw_arms(behind, mech, q[shown], color=GREY, markersize=3, linewidth=2.5, alpha=0.6)
    angles = np.linspace(0, 2 * np.pi, 181)
    around = np.stack([np.zeros_like(angles), np.cos(angles), np.sin(angles)], axis=1)
    centre = lw.frame_pose(mech, q[shown], "band")[1:3, 3]
    scale = 0.06  # metres of the picture per kilogram
    for name, inertia in felt.items():
        mass = apparent_mass(inertia[shown], turned[shown], around)
        colour, line = STYLES[name]
        behind.plot(*(centre[:, None] + scale * mass * around[:, 1:].T), color=colour, linestyle=line, label=name)
    behind.plot(*centre, ".", color="black")
    behind.set(xlabel="y [m]", ylabel="z [m]", aspect="equal", title="Mass felt at the left elbow, by direction")
    behind.legend(frameon=False, loc="lower left", fontsize=8, title=f"{scale * 100:g} cm per kg", title_fontsize=8)
    behind.set_ylim(-0.75, 1.0)

    upward = np.array([[0.0, 0.0, 1.0]])
    for name, inertia in felt.items():
        colour, line = STYLES[name]
        along.plot(
            np.degrees(bend), apparent_mass(inertia, turned, upward)[:, 0], color=colour, linestyle=line, label=name
        )
    along.set(
        xlabel="bend of the elbows [deg]",
        ylabel="mass felt when lifting [kg]",
        title="Lifting it, while the elbows bend",
    )
    along.set_ylim(0, None)

    for axis, (name, colour, line) in enumerate(
        (("forward", ORANGE, "--"), ("sideways", BLUE, "-"), ("up", GREEN, "-."))
    ):
        share = 100 * cross[:, axis, axis] / own[:, axis, axis]
        hands.plot(np.degrees(bend), share, color=colour, linestyle=line, label=name)
    hands.axhline(0, color=GREY, linewidth=0.8)
    hands.set(xlabel="bend of the elbows [deg]", ylabel="left hand's acceleration, % of the right one's")
    hands.set_title("A push on the right hand, felt by the left")
    hands.legend(frameon=False)
    for axes in (along, hands):
        axes.grid(alpha=0.3)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


if __name__ == "__main__":
    robot = two_armed()
    print(robot)
    bend = np.radians(np.linspace(5, 140, 136))
    q = poses(robot, bend)
    print("\ncompiled, with the relative difference from stacked matrices:")
    felt = {name: compiled(name, expression, robot, q) for name, expression in FELT.items()}
    cross = compiled("left palm by right palm", mobility("left_palm", "right_palm"), robot, q)
    own = compiled("right palm by right palm", mobility("right_palm", "right_palm"), robot, q)

    left, right = (lw.frame_pose(robot, q, f"{side}_palm")[:, :3, :3] for side in ("left", "right"))
    cross_world = left @ cross[:, 3:, 3:] @ np.swapaxes(right, -1, -2)
    own_world = right @ own[:, 3:, 3:] @ np.swapaxes(right, -1, -2)
    lighter = np.linalg.eigvalsh(felt["arm beyond, locked"] - felt["arm beyond, giving way"]).min()
    print("locked joints are never lighter than free ones:", bool(lighter > -1e-12))
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw(robot, bend, felt, cross_world, own_world, FOLDER / "05_felt_inertia.png")
