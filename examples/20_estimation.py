"""What pushed the arm?  Encoders and noisy torques tell accelerations, joint forces, the push and a payload, with error
bars that are checked against the truth.

python examples/20_estimation.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw
from linkwise.estimation import Noise, encoder_motion, estimate_payload, smooth

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, GREY = "#0072B2", "#D55E00", "#999999"
RATE, DURATION, JERK = 200.0, 3.0, 0.5  # Hz, s, rad/s^3 per square root of Hz
ENCODERS, TORQUES = 2e-5, np.array([0.6, 0.4, 0.2])  # standard deviations: rad, N m
NORMAL = 1.959964  # 95 percent of a normal distribution are within so many standard deviations


def true_motion(rng: np.random.Generator, t: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """q, v, a (n, 3) of a motion that nobody planned: the jerk of every joint is white noise."""
    dt = t[1] - t[0]
    powers = np.array([[20, 8, 6], [8, 3, 2], [6, 2, 1]])
    root = np.linalg.cholesky(JERK**2 * dt ** np.array([[5, 4, 3], [4, 3, 2], [3, 2, 1]]) / powers)
    step = np.array([[1, dt, dt**2 / 2], [0, 1, dt], [0, 0, 1]])
    states = [np.column_stack([(0.4, 1.2, 0.9), np.zeros((3, 2))])]  # bent: a stretched arm cannot tell all forces
    for _ in t[1:]:
        states.append(states[-1] @ step.T + rng.normal(size=(3, 3)) @ root.T)
    return tuple(np.moveaxis(states, -1, 0))


def true_push(t: np.ndarray) -> np.ndarray:
    """(n, 3, 6): somebody pushes the middle of the last link sideways for a second."""
    push = np.zeros((len(t), 3, 6))
    force = 12.0 * np.sin(np.pi * (t - 1.0)) ** 2 * ((t > 1.0) & (t < 2.0))
    push[:, 2, 4] = force
    push[:, 2, 2] = 0.5 * force
    return push


def push_and_torques(arm: lw.Mechanism, rng: np.random.Generator) -> None:
    t = np.arange(0.0, DURATION, 1.0 / RATE)
    q, v, a = true_motion(rng, t)
    push = true_push(t)
    tau = lw.inverse_dynamics(arm, q, v, a, push)
    measured = tau + TORQUES * rng.normal(size=tau.shape)

    motion = encoder_motion(arm, t, q + ENCODERS * rng.normal(size=q.shape), ENCODERS)
    noise = Noise(acceleration=motion.a_std, torque=TORQUES, wrench={"link3": (0, 0, 5.0, 10.0, 10.0, 0)})
    found = smooth(arm, motion.q, motion.v, motion.a, measured, noise)

    side, side_std = found.wrenches[:, 2, 4], found.wrench_std[:, 2, 4]
    print("inside the 95 percent intervals:")
    for name, value, deviation, truth in (
        ("accelerations", found.a, found.a_std, a),
        ("joint forces", found.tau, found.tau_std, tau),
        ("force sideways", side, side_std, push[:, 2, 4]),
        ("moment", found.wrenches[:, 2, 2], found.wrench_std[:, 2, 2], push[:, 2, 2]),
    ):
        print(f"  {name:15} {100 * np.mean(np.abs(value - truth) < NORMAL * deviation):.0f} percent")
    pushed = push[:, 2, 4] > 6.0
    place = found.wrenches[pushed, 2, 2].mean() / side[pushed].mean()
    print(f"somebody pushes 0.50 m from the third joint; found: {place:.2f} m")
    difference = max(np.abs(at_once(arm, motion, measured, noise, k) - found.a[k]).max() for k in (0, 300, 599))
    print(f"accelerations by least squares over all unknowns at once, largest difference: {difference:.0e}")
    draw(t, tau, measured, found, push, FOLDER / "20_estimation.png")


def at_once(arm: lw.Mechanism, motion, measured: np.ndarray, noise: Noise, k: int) -> np.ndarray:
    """The accelerations at time k by one large least-squares problem."""
    q, v, a = motion.q[k], motion.v[k], motion.a[k]
    jacobian = lw.jacobian(arm, q, "link3")[2:5]
    forces = np.hstack([lw.mass_matrix(arm, q), -jacobian.T]) / TORQUES[:, None]
    prior = np.diag(1.0 / np.concatenate([motion.a_std[k], noise.of_wrenches(arm)[2, 2:5]]))
    residual = (measured[k] - lw.inverse_dynamics(arm, q, v, a)) / TORQUES
    return a + np.linalg.lstsq(np.vstack([forces, prior]), np.concatenate([residual, np.zeros(6)]), rcond=None)[0][:3]


def draw(t, tau, measured, found, push, path: Path) -> None:
    figure, (top, left, right) = plt.subplots(1, 3, figsize=(12, 3.8), layout="constrained")
    panels = (
        (top, found.wrenches[:, 2, 4], found.wrench_std[:, 2, 4], push[:, 2, 4], "force sideways on link 3 [N]"),
        (left, found.tau[:, 2], found.tau_std[:, 2], tau[:, 2], "torque of joint 3 [N m]"),
    )
    left.plot(t, measured[:, 2], ".", color=GREY, ms=2, label="measured")
    for axes, value, deviation, truth, name in panels:
        low, high = value - NORMAL * deviation, value + NORMAL * deviation
        axes.fill_between(t, low, high, color=BLUE, alpha=0.25, linewidth=0)
        axes.plot(t, value, color=BLUE, lw=0.8, label="estimated, 95 percent")
        axes.plot(t, truth, color=ORANGE, lw=1.5, label="true")
        axes.set_title(name, fontsize=10, loc="left")
        axes.set_xlabel("time [s]")
        axes.legend(frameon=False, fontsize=8)
    off = ((found.tau - tau) / found.tau_std).ravel()
    right.hist(off, 40, density=True, color=BLUE, alpha=0.4)
    x = np.linspace(-4.0, 4.0, 200)
    right.plot(x, np.exp(-(x**2) / 2.0) / np.sqrt(2.0 * np.pi), color=ORANGE, lw=1.5)
    right.set_title("errors of all torques, in standard deviations", fontsize=10, loc="left")
    for axes in (top, left, right):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


def payload(arm: lw.Mechanism, rng: np.random.Generator) -> None:
    """What the last link holds, from 100 states."""
    holding = arm.with_payload("link3", 0.8, (0.9, 0.05, 0.0))
    q, v = lw.random_state(arm, rng, (100,))
    a = 3.0 * rng.normal(size=v.shape)
    noise = Noise(acceleration=0.2, torque=TORQUES)
    tau = lw.inverse_dynamics(holding, q, v, a) + TORQUES * rng.normal(size=v.shape)
    noisy = a + 0.2 * rng.normal(size=a.shape)
    found = estimate_payload(arm, q, v, noisy, tau, "link3", noise, ("m", "mx", "my"))  # all is in the plane
    print(f"\nheld: 0.8 kg at (0.9, 0.05)\n{found}")


def main() -> None:
    arm, rng = lw.mechanisms.planar_arm(3), np.random.default_rng(1)
    FOLDER.mkdir(parents=True, exist_ok=True)
    push_and_torques(arm, rng)
    payload(arm, rng)


if __name__ == "__main__":
    main()
