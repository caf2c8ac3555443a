"""A million Monte-Carlo rollouts: where does the hand end up if masses and initial state are not quite as planned?

python examples/09_monte_carlo.py [folder for pictures]
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
BLUE, BLACK = "#0072B2", "#000000"
STATES, STEPS, DT = 1_000_000, 20, 0.02
PIECE = 100_000  # poses of the hand are looked at in pieces: a million matrices need memory


def planned_reach() -> tuple[np.ndarray, ...]:
    """q, v, a at the middle of every step of a smooth reach, each (STEPS, 6): a quintic from rest to rest."""
    quarter, duration = np.pi / 2, STEPS * DT
    start, way = np.array([0.0, quarter, -quarter, 0, 0, 0]), np.array([0.6, -0.5, 0.3, 0.2, 0.3, 0.0])
    s = (np.arange(STEPS)[:, None] + 0.5) / STEPS
    q = start + way * (10 * s**3 - 15 * s**4 + 6 * s**5)
    v = way * (30 * s**2 - 60 * s**3 + 30 * s**4) / duration
    a = way * (60 * s - 180 * s**2 + 120 * s**3) / duration**2
    return start, q, v, a


def scattered(mech: lw.Mechanism, start: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, ...]:
    """Initial q and v, masses and load of every state: joints off by 0.1 degrees, masses by 2 percent, loads up to 0.2
    kg that the plan knows nothing of."""
    q = start + np.radians(0.1) * rng.standard_normal((STATES, 6))
    v = 0.002 * rng.standard_normal((STATES, 6))
    load = rng.uniform(0.0, 0.2, STATES)
    masses = mech.parameters.masses * (1.0 + 0.02 * rng.standard_normal((STATES, 6)))
    masses[:, 5] += load
    return q, v, masses, load


def hand(mech: lw.Mechanism, q: np.ndarray) -> np.ndarray:
    """(..., 3): position of the wrist, piece by piece."""
    pieces = np.array_split(q, max(1, len(q) // PIECE))
    return np.concatenate([lw.frame_pose(mech, piece, mech.link_names[5])[:, :3, 3] for piece in pieces])


def draw(places: np.ndarray, planned: np.ndarray, path: Path) -> None:
    """How many end up where, seen from above and from the side."""
    figure, panels = plt.subplots(1, 2, figsize=(9, 4.2), layout="constrained")
    away = 1e3 * (places - planned)
    for axes, (i, k) in zip(panels, ((0, 1), (0, 2)), strict=True):
        image = axes.hexbin(away[:, i], away[:, k], gridsize=80, bins="log", cmap="Blues", linewidths=0.1)
        axes.plot(0, 0, "+", color=BLACK, markersize=12, label="planned")
        axes.set_xlabel(f"{'xyz'[i]} off the plan [mm]")
        axes.set_ylabel(f"{'xyz'[k]} off the plan [mm]")
        axes.set_aspect("equal", adjustable="datalim")
        axes.legend(loc="upper right", frameon=False)
    figure.colorbar(image, ax=panels, label="rollouts")
    figure.suptitle(f"PUMA 560, wrist after an open-loop reach of {STEPS * DT:g} s, {STATES:,} rollouts")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"picture: {path}")


if __name__ == "__main__":
    puma = lw.mechanisms.puma560()
    start, q, v, a = planned_reach()
    tau = lw.inverse_dynamics(puma, q, v, a)  # what the plan applies, step by step, whatever happens
    q0, v0, masses, load = scattered(puma, start, np.random.default_rng(0))

    few = slice(0, 100)  # compiles, and shows that the loop is the step, again and again, and its step small enough
    given = {"mass": masses[few]}
    found = lw.rollout(puma, q0[few], v0[few], tau, DT, STEPS, parameters=given, final_only=True)
    step = lw.compile("rk4_step", puma, parameters=("mass",))
    state = np.concatenate([q0[few], v0[few]], axis=-1)
    for forces in tau:
        state = step(state[:, :6], state[:, 6:], forces, DT, masses[few])
    finer = lw.rollout(puma, q0[few], v0[few], tau.repeat(4, axis=0), DT / 4, 4 * STEPS, parameters=given)
    print(f"rollout against single steps: {np.abs(state - np.concatenate(found, axis=-1)).max():.0e}")
    print(f"against steps a quarter as long: {np.abs(finer[0][:, -1] - found[0]).max():.0e} rad")

    begin = time.perf_counter()
    final, _ = lw.rollout(puma, q0, v0, tau, DT, STEPS, parameters={"mass": masses}, final_only=True)
    seconds = time.perf_counter() - begin
    steps = STATES * STEPS
    print(f"{STATES:,} rollouts of {STEPS} steps of RK4, masses of their own: {seconds:.2f} s", end="")
    print(f" ({steps / seconds / 1e6:.1f} million steps per second, {lw.codegen.get_num_threads()} threads allowed)")

    places = hand(puma, final)
    nominal, _ = lw.rollout(puma, start, np.zeros(6), tau, DT, STEPS, final_only=True)
    planned = lw.frame_pose(puma, nominal, puma.link_names[5])[:3, 3]
    miss = 1e3 * np.linalg.norm(places - planned, axis=-1)
    print("\nwrist off the plan [mm]      rollouts    median       95 %     99.9 %     worst")
    for low in np.arange(0.0, 0.2, 0.05):
        some = miss[(load >= low) & (load < low + 0.05)]
        numbers = "".join(f"{x:11.2f}" for x in (*np.percentile(some, [50, 95, 99.9]), some.max()))
        print(f"load {low:.2f} to {low + 0.05:.2f} kg {len(some):14,}{numbers}")
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw(places, planned, FOLDER / "09_monte_carlo.png")
