"""Build a crane from links and joints of several kinds, and let its load swing.

python examples/02_build_a_mechanism.py [folder for pictures]
"""

import sys
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import linkwise as lw

FOLDER = Path(sys.argv[1] if len(sys.argv) > 1 else "demo")
BLUE, ORANGE, BLACK = "#0072B2", "#E69F00", "#000000"  # told apart by colour-blind readers too


def crane() -> lw.Mechanism:
    """A bridge crane: two slides, a cable on a universal joint, a load on a ball joint with a clamp screwed to it."""
    return (
        lw.Builder()
        .link("bridge", mass=200.0, inertia=(30.0, 30.0, 50.0))
        .link("trolley", mass=40.0, inertia=(2.0, 2.0, 2.0))
        .link("cable", mass=5.0, com=(0, 0, -1.5), inertia=(3.75, 3.75, 0.01))
        .link("load", mass=80.0, com=(0, 0, -0.4), inertia=(6.0, 8.0, 4.0))
        .link("clamp", mass=3.0, inertia=(0.02, 0.02, 0.03))
        .link("hook_camera", mass=0.5, inertia=(1e-4, 1e-4, 1e-4))
        .joint("travel", lw.Prismatic((1, 0, 0)), "ground", "bridge", pose=(None, (0, 0, 6.0)))
        .joint("traverse", lw.Prismatic((0, 1, 0)), "bridge", "trolley")
        .joint("swing", lw.Universal((1, 0, 0), (0, 1, 0)), "trolley", "cable")
        .joint("hook", lw.Spherical(), "cable", "load", pose=(None, (0, 0, -3.0)))
        .joint("screw", lw.Helical((0, 0, 1), pitch=0.002), "load", "clamp", pose=(None, (0, 0, -0.8)))
        .joint("camera_mount", lw.Fixed(), "load", "hook_camera", pose=(None, (0.2, 0, 0)))
        .build("bridge_crane")
    )


def describe(mech: lw.Mechanism) -> None:
    print(mech)
    print(f"{'joint':10} {'kind':12} {'link':10} {'on':10} {'in q':8} {'in v':8}")
    for body, parent in zip(mech.bodies, mech.tree.parents, strict=True):
        q, v = mech.q_index(body.joint), mech.v_index(body.joint)
        on = "ground" if parent < 0 else mech.link_names[parent]
        kind = type(body.kind).__name__
        print(f"{body.joint:10} {kind:12} {body.link:10} {on:10} {q.start}:{q.stop:<6} {v.start}:{v.stop:<6}")
    print("frames:", ", ".join(mech.frames))


def check(mech: lw.Mechanism) -> None:
    """Laws that hold for any mechanism."""
    rng = np.random.default_rng(1)
    q, v = lw.random_state(mech, rng, (1000,))
    tau = rng.normal(scale=100.0, size=v.shape)
    a = lw.forward_dynamics(mech, q, v, tau)
    step = 1e-6

    def energy(t):
        moved, faster = lw.integrate(mech, q, v + 0.5 * t * a, t), v + t * a
        return lw.kinetic_energy(mech, moved, faster) + lw.potential_energy(mech, moved)

    power = (energy(step) - energy(-step)) / (2 * step)
    print("\nover 1000 random states, relative to the largest value:")
    for law, left, right in (
        ("inverse dynamics undoes forward dynamics", lw.inverse_dynamics(mech, q, v, a), tau),
        ("mass matrix times its inverse", lw.mass_matrix(mech, q) @ lw.mass_matrix_inverse(mech, q), np.eye(mech.nv)),
        ("rate of energy is the power of tau (differences)", power, np.sum(tau * v, axis=-1)),
    ):
        print(f"  {law:50} {np.abs(left - right).max() / np.abs(right).max():.1e}")


def swing(mech: lw.Mechanism, seconds: float = 8.0, step: float = 0.005) -> tuple[np.ndarray, ...]:
    """Free motion of the crane with the load pulled aside: classical Runge-Kutta on q and v."""
    q, v = lw.neutral(mech), np.zeros(mech.nv)
    q[mech.q_index("swing")] = 0.15, 0.35
    v[mech.v_index("hook")] = 0.0, 0.0, 0.8

    def rates(state):
        q, v = state[: mech.nq], state[mech.nq :]
        return np.concatenate(
            [lw.kinematics.coordinate_rates(mech, q, v), lw.forward_dynamics(mech, q, v, np.zeros(mech.nv))]
        )

    states = [np.concatenate([q, v])]
    for _ in range(round(seconds / step)):
        s = states[-1]
        k1 = rates(s)
        k2 = rates(s + 0.5 * step * k1)
        k3 = rates(s + 0.5 * step * k2)
        k4 = rates(s + step * k3)
        states.append(s + step / 6.0 * (k1 + 2.0 * k2 + 2.0 * k3 + k4))
    path = np.array(states)
    return np.arange(len(path)) * step, path[:, : mech.nq], path[:, mech.nq :]


def draw(mech: lw.Mechanism, t: np.ndarray, q: np.ndarray, v: np.ndarray, path: Path) -> None:
    """Where the load goes, and how energy is exchanged."""
    load = lw.frame_pose(mech, q, "load")[:, :3, 3]
    trolley = lw.frame_pose(mech, q, "trolley")[:, :3, 3]
    kinetic, potential = lw.kinetic_energy(mech, q, v), lw.potential_energy(mech, q)
    potential = potential - potential.min()
    total = kinetic + potential
    figure, (above, over_time) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    above.plot(load[:, 0], load[:, 1], color=BLUE, label="load")
    above.plot(trolley[:, 0], trolley[:, 1], color=ORANGE, linestyle="--", label="trolley")
    above.plot(load[0, 0], load[0, 1], "o", color=BLUE, label="start of the load")
    above.set(xlabel="x [m]", ylabel="y [m]", title="Seen from above", aspect="equal")
    above.legend(frameon=False, loc="upper center", bbox_to_anchor=(0.5, -0.2), ncol=3, columnspacing=1.2)
    over_time.plot(t, kinetic, color=BLUE, label="kinetic")
    over_time.plot(t, potential, color=ORANGE, linestyle="--", label="potential, above its minimum")
    over_time.plot(t, total, color=BLACK, linestyle=":", label="sum")
    over_time.set(xlabel="time [s]", ylabel="energy [J]", title="Free motion: the sum is constant")
    over_time.set_ylim(0, 1.35 * total.max())
    over_time.legend(frameon=False, loc="upper right")
    figure.savefig(path, dpi=150)
    plt.close(figure)
    print(f"\n{t[-1]:g} s of free motion: the energy changes by {np.ptp(total) / total.mean():.1e} of its value")
    print(f"picture: {path}")


if __name__ == "__main__":
    mechanism = crane()
    describe(mechanism)
    check(mechanism)
    FOLDER.mkdir(parents=True, exist_ok=True)
    draw(mechanism, *swing(mechanism), FOLDER / "02_crane.png")
