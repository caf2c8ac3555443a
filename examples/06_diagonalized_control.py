"""Motion in total joint rates: what they are, how a controller settles that sees each alone, and where it fails.

python examples/06_diagonalized_control.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"
COLOURS = (BLUE, ORANGE, GREEN, "#CC79A7", "#E69F00", "#56B4E9")
REST = np.array([0.3, -0.6, 0.5, 0.4, 0.7, -0.2])
GOAL = np.array([0.8, -1.0, 0.9, -0.3, 1.1, 0.5])


def save(figure, name: str) -> None:
    path = FOLDER / name
    figure.savefig(path, dpi=130)
    plt.close(figure)
    print(f"picture: {path}")


def tidy(axes, title: str, x: str, y: str) -> None:
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel(x)
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)


def simulate(mech, q, v, control, duration, step=2e-3):
    """Fixed steps of Runge and Kutta in (q, nu); t, q and v at every step."""
    motion = lw.simulate(
        mech, q, v, duration, control, method="rk4", step=step, settings=lw.motion.Settings(coordinates="nu")
    )
    return motion.t, motion.q, motion.v


# -- what the total rates are ---------------------------------------------------------------------------


def joints_in_plane(mech, q):
    return np.vstack([lw.link_poses(mech, q)[:, :2, 3], lw.frame_pose(mech, q, "tip")[:2, 3]])


def draw_meaning() -> None:
    """The first joint turns: with the others' relative rates at zero, and with their total rates at zero."""
    mech = lw.mechanisms.planar_arm(4).with_gravity((0.0, 0.0, 0.0))
    start = np.array([-0.2, 0.5, -0.9, 0.7])
    figure, (locked, free, bars) = plt.subplots(1, 3, figsize=(11, 3.8), layout="constrained")
    xi = np.array([1.0, 0.0, 0.0, 0.0])
    for axes, title, relative in (
        (locked, "others locked: v = (1, 0, 0, 0)", True),
        (free, "others free: xi = (1, 0, 0, 0)", False),
    ):
        q = start
        for shade in np.linspace(0.15, 1.0, 6):
            x, y = joints_in_plane(mech, q).T
            axes.plot(x, y, "-o", color=BLUE if relative else ORANGE, alpha=shade, lw=2, ms=4)
            for _ in range(60):
                v = xi if relative else lw.formulations.diagonal.velocities(mech, q, xi, normalized=False)
                middle = lw.integrate(mech, q, v, 1e-3)
                v = xi if relative else lw.formulations.diagonal.velocities(mech, middle, xi, normalized=False)
                q = lw.integrate(mech, q, v, 2e-3)
        axes.set(aspect="equal", xlim=(-0.2, 4.0), ylim=(-1.0, 2.0))
        tidy(axes, title, "x (m)", "y (m)")
    v = lw.formulations.diagonal.velocities(mech, start, xi, normalized=False)
    places = np.arange(4)
    bars.bar(places - 0.2, xi, 0.38, color=ORANGE, label="total rate xi")
    bars.bar(places + 0.2, v, 0.38, color=BLUE, label="relative rate v")
    bars.axhline(0.0, color=GREY, lw=0.8)
    bars.set_xticks(places, [f"joint {i + 1}" for i in places])
    bars.legend(frameon=False)
    tidy(bars, "the same motion in both", "", "rad/s")
    save(figure, "06_total_rates.png")
    energy = lw.kinetic_energy(mech, start, v)
    nu = lw.formulations.diagonal.rates(mech, start, v)
    print(f"kinetic energy less nu* nu / 2: {abs(energy - nu @ nu / 2):.1e}")


# -- rate feedback --------------------------------------------------------------------------------------


def draw_rate_feedback(mech) -> None:
    control = lw.formulations.diagonal.rate_feedback(mech, gain=2.0)
    t, q, v = simulate(mech, REST, np.array([1.0, -1.0, 2.0, 1.0, -2.0, 3.0]), control, 2.0)
    nu, energy = lw.formulations.diagonal.rates(mech, q, v), control.lyapunov(q, v)
    figure, (left, middle, right) = plt.subplots(1, 3, figsize=(11, 3.4), layout="constrained")
    for i in range(6):
        left.plot(t, nu[:, i], color=COLOURS[i], label=f"{i + 1}")
        middle.plot(t, v[:, i], color=COLOURS[i])
    left.legend(title="joint", ncols=2, frameon=False, fontsize=8)
    tidy(left, "total rates: epsilon = -2 nu", "t (s)", "nu")
    tidy(middle, "the same motion in joint velocities", "t (s)", "v (rad/s)")
    right.semilogy(t, energy, color=BLUE, lw=3, label="nu* nu / 2")
    right.semilogy(t, energy[0] * np.exp(-4.0 * t), "--", color=ORANGE, label="exp(-4 t)")
    right.legend(frameon=False)
    tidy(right, "kinetic energy: C does no work", "t (s)", "J")
    save(figure, "06_rate_feedback.png")
    print(f"energy less its exponential: {np.abs(energy - energy[0] * np.exp(-4.0 * t)).max():.1e}")
    work = np.sum(nu * lw.formulations.diagonal.coriolis(mech, q, nu), axis=-1)
    print(f"largest power of the Coriolis term: {np.abs(work).max():.1e}")


# -- end-effector regulation ----------------------------------------------------------------------------


def draw_regulation(mech) -> None:
    control = lw.formulations.diagonal.end_effector_regulation(mech, "link6", lw.frame_pose(mech, GOAL, "link6"))
    t, q, v = simulate(mech, REST, np.zeros(6), control, 10.0)
    error = control.error(q)
    figure, (left, right) = plt.subplots(1, 2, figsize=(9.5, 3.4), layout="constrained")
    left.semilogy(t, np.linalg.norm(error[:, :3], axis=1), color=BLUE, label="position (m)")
    left.semilogy(t, np.linalg.norm(error[:, 3:], axis=1), color=ORANGE, ls="--", label="axes")
    left.legend(frameon=False)
    tidy(left, "error of the hand's pose (Puma 560)", "t (s)", "norm")
    kinetic, springs = 0.5 * np.sum(lw.formulations.diagonal.rates(mech, q, v) ** 2, axis=1), control.potential(q)
    right.stackplot(t, springs, kinetic, colors=(BLUE, ORANGE), labels=("springs", "nu* nu / 2"), alpha=0.85)
    right.plot(t, control.lyapunov(q, v), color="black", lw=1, label="Lyapunov function")
    right.set_xlim(0.0, 1.5)
    right.legend(frameon=False)
    tidy(right, "what drives it", "t (s)", "J")
    save(figure, "06_regulation.png")
    print(f"pose error at the end: {np.abs(error[-1]).max():.1e}")
    print("the Lyapunov function falls at every step:", bool(np.all(np.diff(control.lyapunov(q, v)) < 0.0)))


def draw_failures() -> None:
    """A stretched arm whose springs pull along it, and an arm with the wrong elbow."""
    mech = lw.mechanisms.planar_arm(2)
    figure, (saddle, minimum) = plt.subplots(1, 2, figsize=(9.5, 3.6), layout="constrained")
    goal = np.array([0.7, -1.4])
    control = lw.formulations.diagonal.end_effector_regulation(
        mech, "tip", lw.frame_pose(mech, goal, "tip"), orientation_gain=0.0
    )
    for push, colour in ((1e-1, BLUE), (1e-3, GREEN), (1e-5, ORANGE), (0.0, GREY)):
        t, q, _ = simulate(mech, np.array([push, -push]), np.zeros(2), control, 5.0, 5e-3)
        saddle.plot(t, np.linalg.norm(control.error(q)[:, :3], axis=1), color=colour, label=f"off by {push:g} rad")
    saddle.legend(frameon=False)
    tidy(saddle, "starting stretched out, pulled straight inwards", "t (s)", "distance to the target (m)")
    control = lw.formulations.diagonal.end_effector_regulation(
        mech, "tip", lw.frame_pose(mech, np.array([0.4, 1.2]), "tip"), orientation_gain=2.0
    )
    _, q, _ = simulate(mech, np.array([1.6, -1.2]), np.zeros(2), control, 10.0, 5e-3)
    for place, colour, label in ((np.array([0.4, 1.2]), GREY, "target"), (q[-1], ORANGE, "where it stops")):
        x, y = joints_in_plane(mech, place).T
        minimum.plot(x, y, "-o", color=colour, lw=3, label=label)
    minimum.set_aspect("equal")
    minimum.legend(frameon=False)
    tidy(minimum, "the wrong elbow: a local minimum", "x (m)", "y (m)")
    save(figure, "06_failures.png")
    print(
        f"pull in the local minimum: {np.abs(control.pull(q[-1])).max():.1e},",
        f"error {np.abs(control.error(q[-1])).max():.2f}",
    )


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    puma = lw.mechanisms.puma560()
    draw_meaning()
    draw_rate_feedback(puma)
    draw_regulation(puma)
    draw_failures()
    for mech in (lw.mechanisms.cart_pole(), lw.mechanisms.double_pendulum(), puma):
        flat = lw.formulations.diagonal.is_globally_diagonalizable(mech)
        print(f"{mech.name}: {'has' if flat else 'has no'} coordinates in which its mass matrix is constant")


if __name__ == "__main__":
    main()
