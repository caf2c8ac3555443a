"""A thousand payloads in one call: masses, centres of mass and inertias as inputs of a kernel.

python examples/03_many_payloads.py [folder for pictures]
"""

import sys
import time
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
PALE, LIGHT, BLUE, BLACK = "#CFE3F1", "#86BBDC", "#0072B2", "#000000"
PAYLOADS, INSTANTS, DURATION = 1000, 200, 1.2  # seconds


def trajectory() -> tuple[np.ndarray, ...]:
    """Times and q, v, a of a smooth reach, each (INSTANTS, 6): a quintic from rest to rest."""
    quarter = np.pi / 2
    start, end = np.array([-1.0, quarter, -quarter, 0, 0, 0]), np.array([1.0, 0.3, -1.0, 0.5, 0.6, 0])
    s = np.linspace(0.0, 1.0, INSTANTS)[:, None]
    way = end - start
    q = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / DURATION
    a = way * (60 * s - 180 * s**2 + 120 * s**3) / DURATION**2
    return DURATION * s[:, 0], q, v, a


def loaded_hand(mech: lw.Mechanism, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Mass, centre of mass and inertia of link 6 with a random box in its grip, for every payload.

    Boxes weigh up to 2.3 kg (what the arm is rated for) and are held 5 to 15 cm before the flange, a little off-centre.
    """
    mass, com, inertia = mech.parameters.masses[5], mech.parameters.coms[5], mech.parameters.inertias[5]
    box = rng.uniform(0.0, 2.3, PAYLOADS)
    at = np.stack([*rng.uniform(-0.03, 0.03, (2, PAYLOADS)), rng.uniform(0.05, 0.15, PAYLOADS)], axis=-1)
    sides = rng.uniform(0.04, 0.12, (PAYLOADS, 3))
    own = box[:, None] / 12.0 * (np.sum(sides**2, axis=-1, keepdims=True) - sides**2)
    total = mass + box
    centre = (mass * com + box[:, None] * at) / total[:, None]
    whole = inertia + own[:, :, None] * np.eye(3) + _shifted(mass, com - centre) + _shifted(box, at - centre)
    return total, centre, whole


def _shifted(mass, offset: np.ndarray) -> np.ndarray:
    """Parallel axes: inertia of a point mass at ``offset`` (..., 3)."""
    squared = np.sum(offset**2, axis=-1)[..., None, None] * np.eye(3)
    return np.asarray(mass)[..., None, None] * (squared - offset[..., :, None] * offset[..., None, :])


def draw(t: np.ndarray, torques: np.ndarray, empty: np.ndarray, path: Path) -> None:
    """Spread of the torques of four joints over the payloads."""
    low, q05, median, q95, high = np.percentile(torques, [0, 5, 50, 95, 100], axis=1)
    figure, panels = plt.subplots(2, 2, figsize=(9, 6), sharex=True, layout="constrained")
    for joint, axes in zip((0, 1, 2, 4), panels.flat, strict=True):
        axes.fill_between(t, low[:, joint], high[:, joint], color=PALE, linewidth=0, label="all payloads")
        axes.fill_between(t, q05[:, joint], q95[:, joint], color=LIGHT, linewidth=0, label="5 to 95 percent")
        axes.plot(t, median[:, joint], color=BLUE, label="median")
        axes.plot(t, empty[:, joint], color=BLACK, linestyle="--", label="empty hand")
        axes.set_title(f"joint {joint + 1}", fontsize=11)
        axes.grid(alpha=0.3)
    for axes in panels[:, 0]:
        axes.set_ylabel("joint torque [N m]")
    for axes in panels[1]:
        axes.set_xlabel("time [s]")
    handles, labels = panels[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncol=4, frameon=False)
    figure.suptitle(f"PUMA 560, one reach, {PAYLOADS} payloads of 0 to 2.3 kg")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


if __name__ == "__main__":
    puma = lw.mechanisms.puma560()
    kernel = lw.compile("inverse_dynamics", puma, parameters=("link6.mass", "link6.com", "link6.inertia"))
    print(kernel)
    t, q, v, a = trajectory()
    payloads = loaded_hand(puma, np.random.default_rng(0))
    state = [x[:, None, :] for x in (q, v, a)]  # (INSTANTS, 1, 6), to be broadcast against (PAYLOADS, ...)
    torques = kernel(*state, *payloads)
    start = time.perf_counter()
    kernel(*state, *payloads, out=torques)  # once more, now that memory and threads are there
    seconds = time.perf_counter() - start
    states = INSTANTS * PAYLOADS
    print(f"torques of {INSTANTS} instants x {PAYLOADS} payloads, {torques.shape}: {seconds * 1e3:.1f} ms", end="")
    print(f" ({seconds * 1e9 / states:.0f} ns per state, {lw.codegen.get_num_threads()} threads allowed)")

    empty = lw.inverse_dynamics(puma, q, v, a)
    unloaded = kernel(q, v, a, puma.parameters.masses[5], puma.parameters.coms[5], puma.parameters.inertias[5])
    print(f"given the arm's own numbers it agrees with the constant kernel: {np.abs(unloaded - empty).max():.0e} N m")
    print("\nlargest torque during the reach [N m]")
    print(f"{'':16}" + "".join(f"{joint:>9}" for joint in puma.joint_names))
    peaks = np.abs(torques).max(axis=0)
    for label, row in (
        ("empty hand", np.abs(empty).max(axis=0)),
        ("median payload", np.median(peaks, axis=0)),
        ("worst payload", peaks.max(axis=0)),
    ):
        print(f"{label:16}" + "".join(f"{value:9.2f}" for value in row))
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw(t, torques, empty, FOLDER / "03_torque_spread.png")
