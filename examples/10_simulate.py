"""Motion: a swing against a stop, an arm under control, a closed mechanism; events, files, and what stays constant.

python examples/10_simulate.py [folder for pictures]
"""

import sys
import tempfile
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw
from linkwise.viewer.style import COLOURS, STYLES

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREEN, GREY = "#0072B2", "#D55E00", "#009E73", "#666666"


def tidy(axes, title: str, y: str) -> None:
    axes.set_title(title, fontsize=10, loc="left")
    axes.set_xlabel("t (s)")
    axes.set_ylabel(y)
    axes.spines[["top", "right"]].set_visible(False)


def swinging(axes) -> None:
    """A double pendulum, free and undamped: chaotic, but its energy stays."""
    mech = lw.mechanisms.double_pendulum()
    motion = lw.simulate(
        mech, [2.0, 1.0], [0.0, 0.0], 20.0, settings=lw.motion.Settings(rtol=1e-12, atol=1e-12), t_eval=0.01
    )
    drift = np.abs(motion.energy - motion.energy[0]).max() / motion.kinetic_energy.max()
    print(f"{motion}")
    print(f"relative change of its energy: {drift:.1e}")
    axes.plot(motion.t, motion.kinetic_energy, color=BLUE, label="kinetic")
    axes.plot(motion.t, motion.potential_energy, color=ORANGE, ls="--", label="potential")
    axes.plot(motion.t, motion.energy, color="black", lw=1, label="together")
    axes.set_ylim(-22.0, 40.0)
    axes.legend(frameon=False, fontsize=8, ncols=3, loc="upper right")
    tidy(axes, "a double pendulum", "energy (J)")


def bouncing(axes) -> None:
    """The same pendulum with a stop at its second joint: an event for every contact, the last one kept in a file."""
    mech = lw.mechanisms.double_pendulum()
    elbow = mech.joint_names[1]
    stop = lw.forces.Passive.stops({elbow: (0.0, 2.5)}, stiffness=2e3, damping=0.3)
    touches = lw.motion.joint_passes(mech, elbow, 0.0, direction=-1)
    options = {"passive": stop, "events": [touches], "method": "rk4", "step": 1e-3}
    motion = lw.simulate(mech, [1.5, 1.0], [0.0, 0.0], 2.0, **options)
    with tempfile.TemporaryDirectory() as folder:
        motion.save(Path(folder) / "motion.npz")
        motion = lw.files.load_trajectory(Path(folder) / "motion.npz").resume(2.0, events=[touches])
    through = lw.simulate(mech, [1.5, 1.0], [0.0, 0.0], 4.0, **options)
    print(
        f"{len(motion.events)} contacts; saved, loaded and continued it differs by {np.ptp(motion.q - through.q):.1e}"
    )
    axes.plot(motion.t, np.degrees(motion.q[:, 0]), color=GREY, lw=1, label="shoulder")
    axes.plot(motion.t, np.degrees(motion.q[:, 1]), color=BLUE, label="elbow")
    axes.plot([e.t for e in motion.events], [np.degrees(e.q[1]) for e in motion.events], "o", color=ORANGE, ms=4)
    axes.legend(frameon=False, fontsize=8)
    tidy(axes, "an elbow that hits its stop", "angle (deg)")


def controlled(axes) -> None:
    """A Puma 560 follows a target by computed torque, in joint velocities and in total rates."""
    arm = lw.mechanisms.puma560()
    slow = np.array([0.8, 0.5, 0.7, 1.0, 1.3, 1.1])

    def target(t):
        return np.sin(slow * t), slow * np.cos(slow * t), -(slow**2) * np.sin(slow * t)

    def control(t, q, v):
        q_d, v_d, a_d = target(t)
        return lw.inverse_dynamics(arm, q, v, a_d + 20.0 * (v_d - v) + 100.0 * (q_d - q))

    start, times = np.full(6, 0.2), np.linspace(0.0, 2.0, 201)
    motions = {
        c: lw.simulate(arm, start, np.zeros(6), 2.0, control, t_eval=times, settings=lw.motion.Settings(coordinates=c))
        for c in ("joint", "nu")
    }
    print(f"joint velocities or total rates: {np.abs(motions['joint'].q - motions['nu'].q).max():.1e}")
    # With these gains every error obeys e'' + 20 e' + 100 e = 0.
    q_d, v_d, _ = target(0.0)
    first, rate = q_d - start, v_d - 0.0
    exact = (first + (rate + 10.0 * first) * times[:, None]) * np.exp(-10.0 * times[:, None])
    errors = np.array([target(t)[0] for t in times]) - motions["joint"].q
    print(f"tracking errors less their closed form: {np.abs(errors - exact).max():.1e}")
    for joint, (error, colour, line) in enumerate(zip(errors.T, COLOURS, STYLES, strict=False), 1):
        axes.plot(times, np.degrees(error), color=colour, linestyle=line, label=f"joint {joint}")
    axes.legend(frameon=False, fontsize=8, ncols=2)
    tidy(axes, "a Puma 560 under computed torque", "tracking error (deg)")


def closed(axes) -> None:
    """A motor turns the crank of a four-bar linkage against friction, until it has gone round three times."""
    mech = lw.mechanisms.four_bar()
    torque = np.array([6.0, 0.0, 0.0])
    loss = lw.forces.Passive.friction({"crank_joint": 0.5}) + lw.forces.Passive.dampers({"crank_joint": 0.05})
    done = lw.motion.joint_passes(mech, "crank_joint", 6.0 * np.pi, terminal=True)
    motion = lw.simulate(mech, np.zeros(3), np.zeros(3), 30.0, torque, passive=loss, events=[done])
    print(
        f"four-bar: {motion.stopped} at {motion.t[-1]:.3f} s, loops open by {motion.constraint_error.max():.0e} at most"
    )
    axes.plot(motion.t, motion.v[:, 0], color=BLUE, label="crank")
    axes.plot(motion.t, motion.v[:, 2], color=ORANGE, ls="--", label="rocker")
    axes.legend(frameon=False, fontsize=8)
    tidy(axes, "a four-bar linkage driven by its crank", "velocity (rad/s)")


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(2, 2, figsize=(10, 6.4), layout="constrained")
    for draw, place in zip((swinging, bouncing, controlled, closed), axes.flat, strict=True):
        draw(place)
    figure.savefig(FOLDER / "10_simulate.png", dpi=110)
    print(f"picture: {FOLDER / '10_simulate.png'}")


if __name__ == "__main__":
    main()
