"""Ants on the ground: rollouts of a batch against MuJoCo's, steps per second on one core, with the same step size.

The ant is gymnasium's, with what its file says acting: contact with the floor, damping and limits of its joints.  Both
programs start from the same states, just above the floor.  MuJoCo (``mujoco.rollout``, one thread, no Python between
steps) solves for nearly rigid contact, linkwise computes a compliant one: implicitly in "semi_implicit" steps, whose
ants come to rest at MuJoCo's height, which is compared before a time counts; explicitly in "rk4", where friction that
steps of 10 ms can follow is viscous, so that legs slide outwards.  Ratio: steps per second of ours over MuJoCo's.
"""

from __future__ import annotations

import time
import warnings
from importlib.util import find_spec
from pathlib import Path

import mujoco
import mujoco.rollout
import numpy as np
from tree_dynamics import cpu_name

import linkwise as lw

ANTS, THEIRS, STEPS = 4096, 64, 50  # MuJoCo's time per step does not depend on their number
REST = 2.0  # s after which they stand on the floor
SAME_HEIGHT = 0.03  # m: the file's margins of 1 cm, and what MuJoCo's contact gives way in steps of 10 ms
LEAST = 5.0
METHODS = {  # ours, MuJoCo's
    "rk4": mujoco.mjtIntegrator.mjINT_RK4,
    "semi_implicit": mujoco.mjtIntegrator.mjINT_EULER,
}


def file() -> Path:
    spec = find_spec("gymnasium")
    if spec is None or not spec.submodule_search_locations:
        raise SystemExit("gymnasium is not installed: pip install gymnasium")
    return Path(spec.submodule_search_locations[0]) / "envs/mujoco/assets/ant.xml"


def states(mech: lw.Mechanism, count: int) -> np.ndarray:
    rng = np.random.default_rng(0)
    q = np.tile(mech.initial, (count, 1))
    q[:, 7:] = np.array([0, 1, 0, -1, 0, -1, 0, 1]) + 0.1 * rng.normal(size=(count, 8))
    q[:, 6] = 0.6
    return np.clip(q, mech.limits.lower, mech.limits.upper)


def best(run, repeats: int = 5) -> float:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return min(times)


def ours(mech: lw.Mechanism, method: str, dt: float) -> tuple[float, float]:
    """Steps per second, and the mean height at rest."""
    q = states(mech, ANTS)
    run = lambda: lw.rollout(mech, q, None, None, dt, STEPS, method, final_only=True)  # noqa: E731
    run()
    at_rest, _ = lw.rollout(mech, q[:THEIRS], None, None, dt, round(REST / dt), method, final_only=True)
    return ANTS * STEPS / best(run), float(at_rest[:, 6].mean())


def theirs(mech: lw.Mechanism, integrator: int, dt: float) -> tuple[float, float]:
    """The same of MuJoCo."""
    model = mujoco.MjModel.from_xml_path(str(file()))
    model.opt.integrator, model.opt.timestep = integrator, dt
    q = states(mech, THEIRS)
    full = np.zeros((THEIRS, mujoco.mj_stateSize(model, mujoco.mjtState.mjSTATE_FULLPHYSICS)))
    full[:, 1:4], full[:, 4:8], full[:, 8 : 1 + model.nq] = q[:, 4:7], q[:, :4], q[:, 7:]
    data = mujoco.MjData(model)
    with mujoco.rollout.Rollout(nthread=0) as rollout:
        found, _ = rollout.rollout(model, data, full, np.zeros((THEIRS, round(REST / dt), model.nu)))
        # Timed from half way, when ants touch the floor, as they do for most of the time.
        start = found[:, found.shape[1] // 2]
        taken = best(lambda: rollout.rollout(model, data, start, np.zeros((THEIRS, STEPS, model.nu))), 3)
    return THEIRS * STEPS / taken, float(found[:, -1, 3].mean())


def main() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        ant = lw.load(file())
    lw.codegen.set_num_threads(1)
    print(f"{cpu_name()}, one core; {ANTS} ants, float64; MuJoCo {mujoco.__version__}\n")
    print("| step (s) | ours | MuJoCo's | steps/s ours | steps/s MuJoCo | ratio | rest ours (m) | rest MuJoCo (m) |")
    print("| --- | --- | --- | --- | --- | --- | --- | --- |")
    for dt in (0.01, 0.001):
        mech = ant.with_contact(step=dt)
        for method, integrator in METHODS.items():
            (fast, height), (slow, other) = ours(mech, method, dt), theirs(mech, integrator, dt)
            name = mujoco.mjtIntegrator(integrator).name.removeprefix("mjINT_")
            speeds = f"{fast:,.0f} | {slow:,.0f} | {fast / slow:.1f}"
            print(f"| {dt:g} | {method} | {name} | {speeds} | {height:.3f} | {other:.3f} |")
            same = abs(height - other) < SAME_HEIGHT or method == "rk4"
            assert same, "they do not come to rest at the same height"
            assert fast > LEAST * slow, f"less than {LEAST:g} times as many steps"


if __name__ == "__main__":
    main()
