"""Motions in joint momenta: symplectic methods keep the energy of a double pendulum for good, and the phase space of a
pendulum keeps its area.

python examples/19_momenta.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
METHODS = (
    ("semi_implicit", "joint", "velocities, semi-implicit"),
    ("symplectic_euler", "momentum", "momenta, symplectic Euler"),
    ("stormer_verlet", "momentum", "momenta, Störmer-Verlet"),
    ("implicit_midpoint", "momentum", "momenta, implicit midpoint"),
    ("rk4", "joint", "velocities, Runge-Kutta 4"),
)


def energy_errors(mech: lw.Mechanism, q: np.ndarray, step: float, steps: int, every: int) -> dict[str, np.ndarray]:
    """How far the energy of a motion from rest at q is from what it was, over time, by every method."""
    found = {}
    for method, coordinates, name in METHODS:
        path = lw.rollout(mech, q, None, None, step, steps, method, every=every, coordinates=coordinates)
        energy = lw.kinetic_energy(mech, *path) + lw.potential_energy(mech, path[0])
        found[name] = np.abs(energy - energy[0])[1:]
    return found


def area(x: np.ndarray, y: np.ndarray) -> float:
    """Inside a closed curve."""
    return 0.5 * abs(np.dot(x, np.roll(y, 1)) - np.dot(y, np.roll(x, 1)))


def phase_space(mech: lw.Mechanism, method: str, coordinates: str, step: float, steps: int, times: int) -> np.ndarray:
    """(times + 1, states, 2): what becomes of a circle of states (q, p), sampled ``times`` times."""
    angle = np.linspace(0.0, 2.0 * np.pi, 400, endpoint=False)
    q, p = (0.35 * np.cos(angle) - np.pi / 2 + 1.0)[:, None], (1.2 * np.sin(angle))[:, None]
    v = lw.formulations.momenta.velocities(mech, q, p)
    path = lw.rollout(mech, q, v, None, step, steps * times, method, every=steps, coordinates=coordinates)
    return np.stack([path[0][..., 0], lw.formulations.momenta.momenta(mech, *path)[..., 0]], axis=-1).swapaxes(0, 1)


def main() -> None:
    FOLDER.mkdir(parents=True, exist_ok=True)
    arm = lw.mechanisms.planar_arm(2)
    step, steps, every = 2e-3, 50_000, 50
    errors = energy_errors(arm, np.array([-1.0, 0.5]), step, steps, every)
    time = step * every * np.arange(1, steps // every + 1)

    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.2), width_ratios=(1.4, 1.0), layout="constrained")
    for (name, error), color in zip(errors.items(), ("C3", "C1", "C0", "C2", "0.6"), strict=True):
        left.semilogy(time, np.maximum.accumulate(error), color=color, label=name)
    left.set(xlabel="time in s", ylabel="largest error of the energy so far in J", ylim=(1e-11, 10.0))
    left.set_title("double pendulum, steps of 2 ms")
    left.legend(fontsize=8, loc="center right", bbox_to_anchor=(1.0, 0.37))

    pendulum = lw.mechanisms.planar_arm(1)
    curves = phase_space(pendulum, "implicit_midpoint", "momentum", 1e-2, 60, 3)
    for k, curve in enumerate(curves):
        right.fill(*curve.T, alpha=0.5, color=f"C{k}", label=f"{0.6 * k:.1f} s: area {area(*curve.T):.4f}")
    right.set(xlabel="q in rad", ylabel="p in kg m²/s")
    right.set_title("pendulum: a disk of states, implicit midpoint")
    right.legend(fontsize=8)
    path = FOLDER / "19_momenta.png"
    figure.savefig(path, dpi=130)

    for name, error in errors.items():
        first, last = error[: len(error) // 10].max(), error[-len(error) // 10 :].max()
        print(f"{name:28} energy off by {1e3 * first:8.4f} mJ in the first 10 s, {1e3 * last:8.4f} mJ in the last")
    areas = [area(*curve.T) for curve in curves]
    print(f"areas of the disk: {', '.join(f'{x:.4f}' for x in areas)}")

    stanford = lw.mechanisms.stanford_arm()
    q, v = lw.random_state(stanford, np.random.default_rng(0), (100,))
    tau = np.zeros_like(v)
    p = lw.formulations.momenta.momenta(stanford, q, v)
    changes, velocities = lw.formulations.momenta.motion(stanford, q, p, tau)
    ahead = lw.integrate(stanford, q, v, 1e-6)
    there = lw.formulations.momenta.momenta(stanford, ahead, v + 1e-6 * lw.forward_dynamics(stanford, q, v, tau))
    off = np.abs((there - p) / 1e-6 - changes).max() / np.abs(changes).max()
    print(f"dp/dt agrees with differences of M v: {off < 1e-4}; M^-1 p is v but for {np.abs(velocities - v).max():.0e}")
    print(f"picture: {path}")


if __name__ == "__main__":
    main()
