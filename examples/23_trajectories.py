"""Planned motions: laws of time, a spline through postures, and the same path as fast as the motors allow.

python examples/23_trajectories.py [folder for pictures]
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
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
EFFORT = np.array([80.0, 120.0, 60.0, 15.0, 15.0, 10.0])


def draw_laws(ax) -> None:
    t = np.linspace(0.0, 1.0, 301)
    for name, colour in zip(("cycloid", "quintic", "trapezoid"), COLOURS, strict=False):
        ax.plot(t, getattr(tr, name)(t, 1.0)[1], color=colour, label=name)
    ax.set(title="velocity of three laws", xlabel="t / duration", ylabel="ds/dt times duration")
    ax.legend(frameon=False)


def draw_torques(ax, motion: tr.Motion, title: str) -> None:
    t = np.linspace(0.0, motion.duration, 801)
    for k, (share, colour) in enumerate(zip((motion.torques(t) / EFFORT).T, COLOURS, strict=True)):
        ax.plot(t, share, color=colour, label=f"{k + 1}")
    for bound in (-1.0, 1.0):
        ax.axhline(bound, color="black", lw=0.8, ls="--")
    ax.set(title=title, xlabel="time (s)", ylabel="torque / limit", ylim=(-1.5, 1.5))


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    arm = lw.mechanisms.puma560()
    middle = [[0.5, -0.6, 0.3, 0.2, 0.4, 0.1], [1.2, -0.2, -0.5, 0.5, -0.2, 0.6]]
    postures = np.array([[0.0] * 6, *middle, [1.0, 0.5, 0.2, 0.0, 0.3, -0.4]])
    path = tr.spline(arm, postures)
    fastest = tr.time_optimal(path, EFFORT, velocity=3.0)
    smooth = tr.Motion(path, fastest.duration, lambda t: tr.quintic(t, fastest.duration))
    through = np.min(np.linalg.norm(fastest.sample(20001)[1][:, None] - postures, axis=-1), axis=0)
    print(f"the fastest motion takes {fastest.duration:.4f} s and passes the postures", through.max() < 1e-3)
    t = np.linspace(0.0, fastest.duration, 4001)[1:-1]
    used = np.maximum(np.abs(fastest.torques(t) / EFFORT).max(axis=-1), np.abs(fastest(t)[1]).max(axis=-1) / 3.0)
    print(
        f"some bound is reached to 3 % in {100 * np.mean(used > 0.97):.0f} % of the time, none is exceeded by 1 %:",
        used.max() < 1.01,
    )
    quick = np.abs(smooth.torques(t) / EFFORT).max()
    print(f"in the same time with a smooth law the torques would reach {quick:.2f} times their limits")
    block = lw.Builder().link("block", 2.0).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "block").build()
    pushed = tr.time_optimal(tr.line(block, [0.0], [3.0]), effort=5.0)
    print(f"a block that is pushed and stopped: {abs(pushed.duration - 2.0 * np.sqrt(2.0 * 3.0 / 5.0)):.0e} s off")

    figure, (laws, slow, fast, phase) = plt.subplots(1, 4, figsize=(14, 3.6), layout="constrained")
    draw_laws(laws)
    draw_torques(slow, smooth, "a smooth law asks too much")
    draw_torques(fast, fastest, "the fastest: torque or velocity at its limit")
    fast.legend(title="joint", ncols=3, frameon=False, fontsize=7)
    s, rate, _ = fastest.law(t)
    phase.plot(s, rate, color=COLOURS[0], lw=2, label="fastest")
    s, rate, _ = smooth.law(t)
    phase.plot(s, rate, color=COLOURS[1], label="smooth law")
    for knot in path.knots:
        phase.axvline(knot, color="#999999", lw=0.8)
    phase.set(title="speed along the path", xlabel="s (postures are grey)", ylabel="ds/dt (1/s)")
    phase.legend(frameon=False)
    figure.savefig(FOLDER / "23_trajectories.png", dpi=110)
    print(f"picture: {FOLDER / '23_trajectories.png'}")


if __name__ == "__main__":
    main()
