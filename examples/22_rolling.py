"""Rolling and gliding: a disk on a plane, a bicycle that rights itself, and a board that is driven by its rotor.

python examples/22_rolling.py [folder for pictures]
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


def disk_on_the_floor() -> tuple[lw.Trajectory, np.ndarray]:
    """A disk that is rolled away leaning, and (n, 2): where it touches the floor."""
    disk = lw.mechanisms.rolling_disk(radius=0.5)
    q = lw.constraints.assemble(disk, lw.integrate(disk, lw.neutral(disk), [0.35, 0.0, 0.0, 0.0, 0.0, 0.0], 1.0))
    _, v = lw.constraints.project(disk, q, [0.0, 4.0, 0.6, 0.0, 0.0, 0.0])
    motion = lw.simulate(disk, q, v, 20.0, settings=lw.motion.Settings(rtol=1e-10, atol=1e-10), t_eval=0.02)
    poses = lw.link_poses(disk, motion.q)[:, 0]
    axis = poses[:, :3, 1]
    down = axis * axis[:, 2:] - [0.0, 0.0, 1.0]  # in the plane of the disk
    return motion, (poses[:, :3, 3] + 0.5 * down / np.linalg.norm(down, axis=1, keepdims=True))[:, :2]


def bicycle_at(speeds: np.ndarray) -> np.ndarray:
    """(n, 4): eigenvalues of lean and steer of the benchmark bicycle, riding straight ahead; all models in one call."""
    bicycle = lw.mechanisms.bicycle()
    v = np.zeros((len(speeds), bicycle.nv))
    v[:, bicycle.v_index("base")][:, 3] = speeds
    v[:, bicycle.v_index("rear_axle").start] = speeds / 0.3
    v[:, bicycle.v_index("front_axle").start] = speeds / 0.35
    values = lw.linearize(bicycle, lw.neutral(bicycle), v, inputs=("steering",)).eigenvalues()
    largest = np.argsort(-np.abs(values), axis=-1)[:, :4]  # the others are zero: where it is, and how fast
    return np.take_along_axis(values, largest, axis=-1)


def driven_board() -> lw.Trajectory:
    """A snakeboard whose rotor and axles swing in one rhythm."""
    gait = {"rotor": 0.9, "front_axle": 0.5, "rear_axle": -0.5}
    motors = [
        lw.constraints.Coupling(f"{joint}_motor", {joint: 1.0}, drive=lambda t, size=size: size * np.sin(3.0 * t))
        for joint, size in gait.items()
    ]
    board = lw.mechanisms.snakeboard().with_loops(*motors)
    return lw.simulate(board, None, None, 12.0, t_eval=0.05)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    motion, touches = disk_on_the_floor()
    drift, gap = np.ptp(motion.energy), max(motion.constraint_error.max(), motion.velocity_error.max())
    print(f"disk, 20 s: energy changes by {drift:.0e} J, it slips and lifts by {gap:.0e}")
    speeds = np.linspace(0.0, 10.0, 201)
    values = bicycle_at(speeds)
    stable = speeds[(values.real < 0.0).all(axis=1)]
    print(f"bicycle: it rights itself from {stable.min():.2f} to {stable.max():.2f} m/s")
    board = driven_board()
    print(f"board: {np.linalg.norm(board.q[-1, :2]):.2f} m away after {board.t[-1]:g} s")

    figure, axes = plt.subplot_mosaic(
        [["disk", "bicycle"], ["board", "board"]], figsize=(9.0, 6.2), height_ratios=(3.0, 1.0), layout="constrained"
    )
    left, middle, right = axes["disk"], axes["bicycle"], axes["board"]
    left.plot(*touches.T, color=BLUE, linewidth=1.0)
    left.plot(*touches[0], "o", color=ORANGE, markersize=5)
    left.set(title="where a disk touches the floor", xlabel="x (m)", ylabel="y (m)", aspect="equal")
    middle.axhline(0.0, color=GREY, linewidth=0.8)
    middle.axvspan(stable.min(), stable.max(), color=GREEN, alpha=0.15, linewidth=0.0)
    for column in range(4):
        middle.plot(speeds, values[:, column].real, ".", color=BLUE, markersize=2.0)
        swings = values[:, column].imag > 0.0
        middle.plot(speeds[swings], values[swings, column].imag, ".", color=ORANGE, markersize=2.0)
    middle.plot([], [], ".", color=BLUE, label="real parts")
    middle.plot([], [], ".", color=ORANGE, label="imaginary parts")
    middle.set(title="a bicycle rights itself", xlabel="speed (m/s)", ylabel="eigenvalues (1/s)", ylim=(-10.0, 10.0))
    middle.legend(frameon=False, fontsize=8)
    right.plot(board.q[:, 0], board.q[:, 1], color=BLUE)
    along = 0.2 * np.stack([np.cos(board.q[:, 2]), np.sin(board.q[:, 2])], axis=-1)
    for k in range(0, len(board.t), 20):
        right.plot(*np.stack([board.q[k, :2] - along[k], board.q[k, :2] + along[k]]).T, color=GREY, linewidth=1.5)
    right.set(title="a snakeboard, driven by its rotor", xlabel="x (m)", ylabel="y (m)", aspect="equal")
    figure.savefig(FOLDER / "rolling.png", dpi=130)
    print(f"picture: {FOLDER / 'rolling.png'}")


if __name__ == "__main__":
    main()
