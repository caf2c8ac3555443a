"""Design a linkage from a drawing: Watt's six-bar from points, its turn, a coupler curve, the motor's torque, poles.

python examples/27_linkage.py [folder for pictures]
"""

import sys
from pathlib import Path

import numpy as np
from matplotlib.figure import Figure

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
POINTS = {"A": (0.0, 0.0), "B": (0.05, 0.08), "C": (0.35, 0.3), "D": (0.4, 0.0), "E": (0.48, 0.22)}
POINTS |= {"F": (0.8, 0.3), "G": (0.75, 0.0), "P": (0.25, 0.45)}
LINKS = {"ground": "ADG", "crank": "AB", "coupler": "BCP", "rocker": "DCE", "link": "EF", "output": "GF"}
SPEED = 20.0  # rad/s, of the crank


def main() -> None:
    watt = lw.Builder().linkage(POINTS, LINKS, density=2.0).build("watt", gravity=(0.0, -9.81, 0.0))
    for coordinate in "AG":
        print(lw.linkages.range_of_motion(watt, coordinate))
    angles = np.linspace(0.0, 2.0 * np.pi, 121)
    turn = lw.linkages.follow_path(watt, lw.neutral(watt), {"A": angles})
    running = lw.linkages.driven_motion(watt, turn, {"A": SPEED})
    print(f"P goes at up to {np.linalg.norm(running.velocity('P'), axis=-1).max():.2f} m/s")
    v = running.v
    push = lw.forces.wrenches_at(watt, {"F": [0, 0, 0, -20.0, 0, 0]}, turn, frame="world_aligned")
    held = lw.static_forces(watt, turn, actuated="A", wrenches=push)[:, 0]
    torque = lw.inverse_dynamics(watt, turn, v, {"A": 0.0}, actuated="A", wrenches=push)[:, 0]
    pins = lw.constraints.loop_reactions(watt, turn, v, lw.inverse_dynamics(watt, turn, v, {"A": 0.0}, actuated="A"))
    print(f"pin C carries up to {np.linalg.norm(pins[:, 0, 3:], axis=-1).max():.1f} N without a load")
    # Over a turn the motor's work is that against the push, which comes back to where it was: none.
    work = np.trapezoid(held, angles) if hasattr(np, "trapezoid") else np.trapz(held, angles)
    print(f"work of a turn: {abs(work):.0e} J")

    figure = Figure(figsize=(10.0, 4.2), layout="constrained")
    left, right = figure.subplots(1, 2)
    lw.viewer.snapshots(watt, turn, angles, ax=left, count=4, trail="P")
    left.set_title("the path of P")
    right.plot(np.degrees(angles), held, color="#E69F00", linestyle="--", label="at rest")
    right.plot(np.degrees(angles), torque, color="#0072B2", label=f"at {SPEED:g} rad/s")
    right.set(xlabel="crank (degrees)", ylabel="torque of the motor (N m)", title="a push of 20 N at F")
    right.legend(frameon=False)
    FOLDER.mkdir(parents=True, exist_ok=True)
    figure.savefig(FOLDER / "27_linkage.png", dpi=130)
    print(f"picture: {FOLDER / '27_linkage.png'}")
    lw.viewer.plot_instant_centers(watt, {"A": 0.5}, path=FOLDER / "27_instant_centers.png")
    print(f"picture: {FOLDER / '27_instant_centers.png'}")


if __name__ == "__main__":
    main()
