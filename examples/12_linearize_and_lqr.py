"""Linear models and what they are good for: a pole balanced on a cart, a loader held in place by its two cylinders.

python examples/12_linearize_and_lqr.py [folder for pictures]
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
PISTONS = ("lift_piston_joint", "tilt_piston_joint")


def cart_pole() -> lw.Mechanism:
    """A cart of 1 kg on a rail, a pole of 0.3 kg and 1 m on it; upright at q = 0."""
    builder = lw.Builder()
    builder.link("cart", 1.0, inertia=(0.01, 0.01, 0.01)).joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    builder.link("pole", 0.3, (0.0, 0.0, 0.5), (0.025, 0.025, 0.0001))
    return builder.joint("hinge", lw.Revolute((0, 1, 0)), "cart", "pole").build("cart_pole")


def balanced(model: lw.control.StateSpace, control, q0: np.ndarray, duration: float):
    """Simulate the mechanism itself, not its linear model, under the regulator."""
    still = np.zeros(model.mechanism.nv)
    motion = lw.simulate(
        model.mechanism,
        q0,
        still,
        duration,
        control=control,
        settings=lw.motion.Settings(rtol=1e-8, atol=1e-10),
        t_eval=0.02,
    )
    left = np.abs(model.state_at(motion.q[-1], motion.v[-1])).max()
    print(f"  after {duration:g} s: {left:.0e} of the displacement is left")
    return motion


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    cart = cart_pole()
    upright = lw.linearize(cart, [0.0, 0.0], inputs=("slide",))
    print(upright)
    print(upright.table())
    regulator = lw.control.lqr(upright, 1.0, 0.1)
    closed = regulator.eigenvalues().real.max()
    print(f"  slowest eigenvalue {upright.eigenvalues().real.max():.2f} becomes {closed:.2f} 1/s")
    swing = balanced(upright, regulator, np.array([0.0, 0.4]), 20.0)

    loader = lw.mechanisms.loader()
    held = lw.find_equilibrium(loader, lw.neutral(loader), solve_for="tau", actuated=PISTONS)
    print(f"{loader}")
    forces = ", ".join(f"{held.tau[loader.v_index(name)][0] / 1e3:.2f} kN" for name in PISTONS)
    print(f"  {'stable' if held.stable else 'unstable'}, held by {forces}")
    model = lw.linearize(loader, held.q, None, held.tau, independent=PISTONS, inputs=PISTONS)
    print(model.modes())
    lifted = lw.linkages.follow(loader, held.q, {"lift_piston_joint": 0.05, "tilt_piston_joint": -0.03})
    motion = balanced(model, lw.control.lqr(model, 1.0, 1e-8), lifted, 15.0)
    difference = np.abs(lw.linearize(loader, held.q, None, held.tau, independent="null_space").eigenvalues() ** 2)
    own = np.abs(model.eigenvalues() ** 2)
    print(f"  eigenvalues in other coordinates agree to {np.abs(np.sort(difference) - np.sort(own)).max():.0e}")

    figure, (left, right) = plt.subplots(1, 2, figsize=(8.5, 3.4), layout="constrained")
    left.plot(swing.t, swing.q[:, 0], color=BLUE, label="cart (m)")
    left.plot(swing.t, swing.q[:, 1], color=ORANGE, label="pole (rad)")
    left.set(title="a pole balanced from 23 degrees", xlabel="time (s)", xlim=(0.0, 10.0))
    left.legend()
    for name, color in zip(PISTONS, (BLUE, ORANGE), strict=True):
        right.plot(motion.t, 1e3 * motion.q[:, loader.q_index(name).start], color=color, label=name.split("_")[0])
    right.set(title="cylinders of the loader", xlabel="time (s)", ylabel="displacement (mm)", xlim=(0.0, 6.0))
    right.legend()
    for axes in (left, right):
        axes.axhline(0.0, color=GREY, linewidth=0.8)
    figure.savefig(FOLDER / "linearize_and_lqr.png", dpi=130)
    print(f"picture: {FOLDER / 'linearize_and_lqr.png'}")


if __name__ == "__main__":
    main()
