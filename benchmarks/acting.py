"""What springs, damping, limits, actuators and control inputs cost in rollouts, in one process, on one core.

The same states for as many steps, with all that the file says but contact (``with_acting``), under control inputs that
change from step to step, and of the bare mechanism under joint forces that do.  Ratio: time with over time without
(lower is better; at most 1.3).  The two are measured in turn, in runs of milliseconds, and the least of many times
counts, so that other work on the machine is not measured.
"""

from __future__ import annotations

import platform
import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import numpy as np

import linkwise as lw

BATCH, STEPS, DT, ROUNDS = 256, 25, 1e-3, 300
METHODS = ("rk4", "semi_implicit")
LIMIT = 1.3
FILES = {
    "half-cheetah": ("gymnasium", "envs/mujoco/assets/half_cheetah.xml"),
    "ant": ("gymnasium", "envs/mujoco/assets/ant.xml"),
    "humanoid": ("gymnasium", "envs/mujoco/assets/humanoid.xml"),
    "walker": ("dm_control", "suite/walker.xml"),
    "humanoid, 21": ("dm_control", "suite/humanoid.xml"),
}


def mechanism(name: str) -> lw.Mechanism:
    package, path = FILES[name]
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        return lw.load(Path(spec.submodule_search_locations[0]) / path).with_acting(contact=False)


def measured(name: str, method: str) -> tuple[lw.Mechanism, float, float]:
    """Seconds with and without."""
    mech, rng = mechanism(name), np.random.default_rng(0)
    bare = mech.with_acting(False)
    q, v = lw.random_state(mech, rng, (BATCH,), within_limits=True)
    ctrl, tau = rng.normal(size=(STEPS, mech.n_ctrl)), rng.normal(size=(STEPS, mech.nv))
    runs = (
        lambda: lw.rollout(mech, q, v, None, DT, STEPS, method, ctrl=ctrl, final_only=True),
        lambda: lw.rollout(bare, q, v, tau, DT, STEPS, method, final_only=True),
    )
    times: list[list[float]] = [[], []]
    for k in range(ROUNDS + 1):
        for own, run in zip(times, runs, strict=True):
            start = time.perf_counter()
            run()
            if k:  # the first compiles
                own.append(time.perf_counter() - start)
    return mech, min(times[0]), min(times[1])


def main() -> None:
    lw.codegen.set_num_threads(1)
    print(f"{platform.processor() or platform.machine()}, {BATCH} states, {STEPS} steps, one thread")
    head = f"{'mechanism':14} {'nv':>3} {'ctrl':>4} {'acting':40} {'method':13}"
    print(f"{head} {'with, us/step':>13} {'without':>8} {'ratio':>6}")
    worst = 0.0
    for name in FILES:
        for method in METHODS:
            mech, acting, bare = measured(name, method)
            kinds = ", ".join(f"{len(names)} {kind}" for kind, names in mech.forces.active.items())
            per_step = [1e6 * seconds / (BATCH * STEPS) for seconds in (acting, bare)]
            worst = max(worst, acting / bare)
            sizes = f"{name:14} {mech.nv:3} {mech.n_ctrl:4} {kinds[:40]:40} {method:13}"
            print(f"{sizes} {per_step[0]:13.3f} {per_step[1]:8.3f} {acting / bare:6.2f}")
    print(f"largest ratio {worst:.2f}, limit {LIMIT}: {'kept' if worst <= LIMIT else 'NOT KEPT'}")


if __name__ == "__main__":
    main()
