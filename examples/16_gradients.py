"""Gradients through motions: an arm thrown from rest to a posture by the best of all joint forces, and its masses found
from how it falls.

python examples/16_gradients.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from scipy.optimize import minimize

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
STEPS, DT = 60, 0.01
ARM = lw.mechanisms.puma560()


def reach(goal: np.ndarray) -> tuple[np.ndarray, np.ndarray, int]:
    """The motion (steps + 1, nq) from rest to rest at ``goal`` with little effort, the joint forces (steps, nv) that
    make the arm move so, and how many gradients it took to find them."""
    start, still = np.zeros(ARM.nq), np.zeros(ARM.nv)
    hold = lw.gravity_force(ARM, start)

    def cost(x: np.ndarray) -> tuple[float, np.ndarray]:
        forces = hold + x.reshape(STEPS, ARM.nv)
        q, v = lw.rollout(ARM, start, still, forces, DT, STEPS)
        off = lw.difference(ARM, goal, q[-1])
        by_state = 2e3 * off, 2e1 * v[-1]
        gradient = lw.derivatives.rollout_vjp(ARM, q, v, forces, DT, STEPS, by_state, wrt="tau")["tau"] + 2e-4 * (
            forces - hold
        )
        return 1e3 * off @ off + 1e1 * v[-1] @ v[-1] + 1e-4 * (x @ x), gradient.ravel()

    found = minimize(cost, np.zeros(STEPS * ARM.nv), jac=True, method="L-BFGS-B", options={"maxiter": 300})
    forces = hold + found.x.reshape(STEPS, ARM.nv)
    q, _ = lw.rollout(ARM, start, still, forces, DT, STEPS)
    return q, forces, found.nfev


def masses_from_a_fall(factor: float) -> tuple[float, float]:
    """The mass of the arm's third link, from 40 recorded falls of an arm in which it is ``factor`` times as heavy: by
    steps of Gauss and Newton, whose derivatives are gradients through the motions."""
    rng = np.random.default_rng(0)
    q0, _ = lw.random_state(ARM, rng, (40,))
    v0 = np.zeros((40, ARM.nv))
    true, guess = (ARM.parameters.masses * np.where(np.arange(ARM.n_links) == 2, f, 1.0) for f in (factor, 1.0))
    recorded, _ = lw.rollout(ARM, q0, v0, None, DT, STEPS, parameters={"mass": true}, final_only=True)
    for _ in range(12):
        q, v = lw.rollout(ARM, q0, v0, None, DT, STEPS, parameters={"mass": guess})
        residual = lw.difference(ARM, recorded, q[:, -1])
        slopes = np.stack(
            [
                lw.derivatives.rollout_vjp(
                    ARM, q, v, None, DT, STEPS, (row, None), parameters={"mass": guess}, wrt="mass"
                )["mass"]
                for row in np.eye(ARM.nv)
            ],
            axis=1,
        )[..., 2]  # (states, coordinates): of each coordinate at the end by the mass of the third link
        guess[2] -= (slopes * residual).sum() / (slopes**2).sum()
    return float(guess[2]), float(true[2])


def draw(q: np.ndarray, goal: np.ndarray, path: Path) -> None:
    figure, axes = plt.subplots(figsize=(6.0, 3.5), layout="constrained")
    lines = axes.plot(DT * np.arange(STEPS + 1), q)
    for line, angle in zip(lines, goal, strict=True):
        axes.plot(DT * STEPS, angle, "o", color=line.get_color())
    axes.set(xlabel="time (s)", ylabel="joint angles (rad)", title="from rest to rest by the best joint forces")
    figure.savefig(path, dpi=150)


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    goal = np.array([0.6, -0.4, 0.8, 0.3, -0.5, 0.2])
    q, forces, gradients = reach(goal)
    off = np.abs(q[-1] - goal).max()
    print(f"{forces.size} joint forces found in {gradients} gradients: {off:.3f} rad off at the end")
    draw(q, goal, FOLDER / "thrown_arm.png")
    print(f"picture: {FOLDER / 'thrown_arm.png'}")
    found, true = masses_from_a_fall(1.3)
    print(f"mass of the third link: {found:.3f} kg, off by {abs(found - true):.0e} kg")
