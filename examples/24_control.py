"""Controllers: a frame led along a circle, motions followed by inverse dynamics and in total rates, a pole balanced.

python examples/24_control.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw
from linkwise import trajectories as tr

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#999999"


def circle(t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Position, velocity and acceleration of a point that goes around in two seconds."""
    w = np.pi
    c, s = np.cos(w * t), np.sin(w * t)
    return (
        np.array([1.2 + 0.5 * c, 0.8 + 0.5 * s, 0.0]),
        0.5 * w * np.array([-s, c, 0.0]),
        0.5 * w * w * np.array([-c, -s, 0.0]),
    )


def frame_on_a_circle(ax) -> None:
    """Four joints for two coordinates of the tip: the rest of the motion leads to a posture."""
    arm = lw.mechanisms.planar_arm(4, length=0.6)
    start = lw.inverse_kinematics(arm, {"tip": circle(0.0)[0]}, posture=np.full(4, 0.5)).q + 0.1
    for posture, colour in ((np.full(4, 0.5), BLUE), (np.array([1.6, -0.5, -0.5, -0.5]), ORANGE)):
        control = lw.control.operational_space_control(arm, "tip", circle, 100.0, 20.0, posture, 30.0, 11.0)
        q, _ = lw.rollout(arm, start, None, None, 2e-3, 2000, feedback=control)
        tips = lw.frame_pose(arm, q, "tip")[:, :2, 3]
        for k in (700, 1000, 1300, 1600):
            x, y = np.concatenate([lw.link_poses(arm, q[k])[:, :2, 3], tips[k : k + 1]]).T
            ax.plot(x, y, "-o", color=colour, ms=3, alpha=0.5)
        ax.plot(*tips[:700].T, color=colour, lw=1.5)
    wanted = np.array([circle(2e-3 * k)[0][:2] for k in range(2001)])
    print(f"the tip is on its circle to {np.abs(tips - wanted)[1500:].max():.0e} m, whatever the posture")
    ax.plot(*wanted.T, "k--", lw=1)
    ax.set(title="a tip on a circle, two postures", xlabel="x (m)", ylabel="y (m)", aspect="equal")


def followed(ax, bx) -> None:
    """A motion from a start that is off by 0.3 rad: errors, and the torques that three controllers ask for."""
    arm = lw.mechanisms.puma560()
    motion = tr.point_to_point(arm, np.zeros(6), [1.0, -0.5, 0.3, 0.2, 0.4, 0.1], 1.0)
    controls = {
        "computed torque": (lw.control.computed_torque(arm, motion, 100.0, 20.0), BLUE),
        "decoupled": (lw.control.decoupled_tracking(arm, motion, 20.0, 10.0, np.inf), ORANGE),
        "decoupled, bounded": (lw.control.decoupled_tracking(arm, motion, 20.0, 10.0, 70.0), GREEN),
    }
    t = 1e-3 * np.arange(1501)
    for name, (control, colour) in controls.items():
        q, v = lw.rollout(arm, np.full(6, 0.3), None, None, 1e-3, 1500, feedback=control)
        ax.semilogy(t, np.linalg.norm(q - motion(t)[0], axis=-1), color=colour, label=name)
        torques = [np.abs(control(*state)).max() for state in zip(t[::10], q[::10], v[::10], strict=True)]
        bx.plot(t[::10], torques, color=colour)
        print(f"{name}: largest torque {max(torques):.0f} N m", end="; ")
        if name == "decoupled":
            energy = np.array(
                [control.lyapunov(*state) for state in zip(t[:400:20], q[:400:20], v[:400:20], strict=True)]
            )
            off = np.abs(energy / energy[0] - np.exp(-40.0 * t[:400:20])).max()
            print(f"its function V falls as exp(-40 t), to {off:.0e} of its start", end="; ")
    print()
    ax.set(title="errors decay", xlabel="time (s)", ylabel="norm (rad)")
    bx.set(title="the torques they take", xlabel="time (s)", ylabel="largest (N m)")
    ax.legend(frameon=False, fontsize=8)


def balanced(ax) -> None:
    """Many poles at once, let go at different angles: which of them a regulator saves."""
    builder = lw.Builder()
    builder.link("cart", 1.0, inertia=(0.01, 0.01, 0.01)).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    builder.link("pole", 0.3, (0.0, 0.0, 0.5), (0.025, 0.025, 0.0001))
    cart = builder.joint("hinge", lw.Revolute((0, 1, 0)), "cart", "pole").build("cart_pole")
    regulator = lw.control.lqr(lw.linearize(cart, [0.0, 0.0], inputs=("slide",)), 1.0, 0.1)
    control = lw.control.saturated(cart, regulator, 30.0)
    angles = np.linspace(0.0, 1.4, 57)
    q0 = np.stack([np.zeros_like(angles), angles], axis=-1)
    q, v = lw.rollout(cart, q0, None, None, 5e-3, 4000, feedback=control)
    saved = np.abs(q[:, -1]).max(axis=-1) < 0.1
    print(f"poles are balanced from up to {np.rad2deg(angles[saved].max()):.0f} degrees;", end=" ")
    print(f"those are at rest after 20 s, to {np.abs(v[saved, -1])[:30].max():.0e}")
    t = 5e-3 * np.arange(4001)
    for k in range(0, len(angles), 4):
        ax.plot(t, q[k, :, 1], color=BLUE if saved[k] else GREY, lw=1)
    ax.set(title="poles let go at different angles", xlabel="time (s)", ylabel="angle (rad)", xlim=(0, 4), ylim=(-1, 2))


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(1, 4, figsize=(15, 3.8), layout="constrained")
    frame_on_a_circle(axes[0])
    followed(axes[1], axes[2])
    balanced(axes[3])
    figure.savefig(FOLDER / "24_control.png", dpi=100)
    print(f"picture: {FOLDER / '24_control.png'}")


if __name__ == "__main__":
    main()
