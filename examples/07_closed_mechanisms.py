"""Closed mechanisms: a coupler curve, forces of chosen joints, and a motion through singular positions.

python examples/07_closed_mechanisms.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"


def coupler_curve(mech: lw.Mechanism, point: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Configurations (73, 3) of one turn of the crank and the path (73, 2) of a point of the coupler.

    ``follow`` stays on its branch; the configurations it finds are then one batch for everything else.
    """
    q = [np.zeros(3)]
    for angle in np.linspace(0.0, 2.0 * np.pi, 73)[1:]:
        q.append(lw.linkages.follow(mech, q[-1], {"crank_joint": angle}))
    configurations = np.array(q)
    return configurations, (lw.frame_pose(mech, configurations, "coupler") @ [*point, 0.0, 1.0])[:, :2]


def holding_torque(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """Crank torque (n,) that holds the linkage still in each configuration."""
    still = np.zeros_like(q)
    return lw.inverse_dynamics(mech, q, still, still, actuated=("crank_joint",))[:, 0]


def swinging_row(n: int) -> lw.Trajectory:
    """A row of n parallelograms swings round; all of its loops are singular whenever the posts are level."""
    mech = lw.mechanisms.n_four_bar(n)
    upright = np.zeros(mech.nq)
    v = -lw.constraints.null_space(mech, upright, independent=("post0_joint",))[:, 0]
    return lw.simulate(mech, upright, v, 3.0, method="rk4", step=5e-3, settings=lw.motion.Settings(keep_energy=True))


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    four_bar = lw.mechanisms.four_bar()
    print(f"{four_bar}: {lw.constraints.degrees_of_freedom(four_bar, np.zeros(3))} freedom")
    q, path = coupler_curve(four_bar, np.array([0.45, 0.35]))
    torque = holding_torque(four_bar, q)
    print(f"one turn of the crank: loops closed to {np.abs(lw.constraints.position_error(four_bar, q)).max():.0e}")
    print(f"crank torque to hold it: {torque.min():.2f} to {torque.max():.2f} N m")

    row = swinging_row(4)
    level = np.count_nonzero(np.diff(np.sign(np.cos(row.q[:, 0]))))
    print(f"{row.mechanism.name}: level {level} times in {row.t[-1]:g} s, energy kept to {np.ptp(row.energy):.0e} J")
    print(f"posts parallel to {np.abs(row.q[:, 1:5] - row.q[:, :1]).max():.0e} rad: no loop took another branch")

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.6), layout="constrained")
    left.plot(*path.T, color=BLUE)
    left.plot([0.0, 1.0], [0.0, 0.0], "o", color=GREY)
    left.set(title="coupler curve", xlabel="x (m)", ylabel="y (m)", aspect="equal")
    right.plot(np.degrees(q[:, 0]), torque, color=ORANGE)
    right.set(title="torque that holds the crank", xlabel="crank angle (deg)", ylabel="torque (N m)")
    figure.savefig(FOLDER / "closed_mechanisms.png", dpi=130)
    print(f"picture: {FOLDER / 'closed_mechanisms.png'}")


if __name__ == "__main__":
    main()
