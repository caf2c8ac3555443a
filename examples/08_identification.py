"""Masses from torques: which inertial parameters of an arm can be told, and telling them from noisy measurements.

python examples/08_identification.py [folder for pictures]
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
SAMPLES, DURATION, HARMONICS = 1000, 10.0, 5
NOISE = 0.05  # of each joint's torque, as a share of its root mean square


def motion(rng: np.random.Generator, joints: int) -> tuple[np.ndarray, ...]:
    """Times and q, v, a (SAMPLES, joints) of a random periodic motion: a few harmonics for every joint."""
    t = np.linspace(0.0, DURATION, SAMPLES, endpoint=False)
    rate = 2.0 * np.pi / DURATION * np.arange(1, HARMONICS + 1)
    sines, cosines = rng.normal(size=(2, HARMONICS, joints)) * 2.0 / HARMONICS
    s, c = np.sin(np.outer(t, rate)), np.cos(np.outer(t, rate))
    q = s @ sines + c @ cosines
    v = (c * rate) @ sines - (s * rate) @ cosines
    return t, q, v, -(s * rate**2) @ sines - (c * rate**2) @ cosines


def telling_motion(
    arm: lw.Mechanism, base: lw.estimation.BaseParameters, rng: np.random.Generator
) -> tuple[np.ndarray, ...]:
    """Of fifty random motions the one whose torques tell the parameters apart best."""

    def condition(candidate) -> float:
        columns = lw.estimation.regressor(arm, *candidate[1:])[..., base.columns].reshape(-1, len(base))
        return np.linalg.cond(columns / np.linalg.norm(columns, axis=0))

    return min((motion(rng, arm.nv) for _ in range(50)), key=condition)


def identified(columns: np.ndarray, torques: np.ndarray, noise: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Least squares, each joint weighted by its noise: values and their standard deviations."""
    matrix = (columns / noise[:, None]).reshape(-1, columns.shape[-1])
    values = np.linalg.lstsq(matrix, (torques / noise).reshape(-1), rcond=None)[0]
    return values, np.sqrt(np.diag(np.linalg.inv(matrix.T @ matrix)))


def draw(base: lw.estimation.BaseParameters, off: np.ndarray, t, measured, predicted, path: Path) -> None:
    """How far the parameters are off, and the torques of a motion that was not used."""
    figure, (left, *panels) = plt.subplots(1, 3, figsize=(11, 4.6), layout="constrained", width_ratios=(1.1, 1, 1))
    places = np.arange(len(base))
    left.axvspan(-2, 2, color=GREY, alpha=0.25, linewidth=0)
    left.plot(off, places, "o", color=BLUE, ms=4)
    left.set_yticks(places, base.names, fontsize=6)
    left.invert_yaxis()
    left.set_xlabel("found less true, in standard deviations")
    left.set_xlim(-3.5, 3.5)
    for joint, axes in zip((1, 2), panels, strict=True):
        axes.plot(t, measured[:, joint], color=GREY, lw=1, label="measured")
        axes.plot(t, predicted[:, joint], color=ORANGE, lw=1.5, label="predicted")
        axes.set_title(f"joint {joint + 1}, another motion", fontsize=10, loc="left")
        axes.set_xlabel("time [s]")
        axes.set_ylabel("torque [N m]")
        axes.legend(frameon=False, fontsize=8)
    for axes in (left, *panels):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


def main() -> None:
    arm, rng = lw.mechanisms.puma560(), np.random.default_rng(0)
    rotors = lw.estimation.rotor_inertias(
        arm
    )  # known; rotor and link turn together at the first joint, and cannot be told apart
    base = lw.estimation.base_parameters(arm)
    truth = base.grouping @ lw.estimation.inertial_parameters(arm)
    print(f"{arm.name}: {10 * arm.n_links} inertial parameters, {len(base)} combinations that torques depend on")
    print("for example:", *(f"  {line}" for line in str(base).splitlines()[1:4]), sep="\n")

    t, q, v, a = telling_motion(arm, base, rng)
    columns = lw.estimation.regressor(arm, q, v, a)[..., base.columns]
    exact = lw.inverse_dynamics(arm, q, v, a) - rotors * a
    noise = NOISE * np.sqrt(np.mean(exact**2, axis=0))
    without_noise, _ = identified(columns, exact, noise)
    print(f"\nfrom exact torques, largest difference: {np.abs(without_noise - truth).max():.0e}")
    found, deviation = identified(columns, exact + noise * rng.normal(size=exact.shape), noise)
    off = (found - truth) / deviation
    within = np.sum(np.abs(off) < 2.0)
    print(f"with {100 * NOISE:.0f} percent of noise: {within} of {len(base)} within two standard deviations")
    large = np.flatnonzero(np.abs(truth) > 0.1)
    print(f"\nlarge ones:{'true':>13}{'found':>10}{'+-':>10}")
    for k in large:
        print(f"  {base.names[k]:12}{truth[k]:10.4f}{found[k]:10.4f}{deviation[k]:10.4f}")

    t, q, v, a = motion(rng, arm.nv)
    measured = lw.inverse_dynamics(arm, q, v, a) + noise * rng.normal(size=exact.shape)
    predicted = lw.estimation.regressor(arm, q, v, a)[..., base.columns] @ found + rotors * a
    left_over = np.sqrt(np.mean((measured - predicted) ** 2, axis=0)) / noise
    print("\nanother motion, measured less predicted torque over the noise, by joint:", left_over.round(2))
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw(base, off, t, measured, predicted, FOLDER / "08_identification.png")


if __name__ == "__main__":
    main()
