"""Inverse and forward dynamics of trees against Pinocchio, in one process, on one core, in double precision.

Both sides get the same random states, and every answer is compared before its time counts.  A batch is what
``kernel(q, v, a)`` and Pinocchio's ``rneaInParallel`` / ``abaInParallel`` (one thread) take for 4096 states; single
calls are timed from Python, where both sides pay for it.  A ratio above 1 means that linkwise is faster.
"""

from __future__ import annotations

import dataclasses
import json
import os
import platform
import subprocess
import sys
import tempfile
import time
import warnings
from pathlib import Path
from typing import NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before Pinocchio is loaded

import llvmlite
import numpy as np
import pinocchio as pin

import linkwise as lw
from benchmarks.speed import best, cpu_name, fma_peak
from linkwise.compiler.runtime import llvm_loader, threads

BATCH = 4096
ROBOTS = Path(pin.__file__).parents[4] / "share" / "example-robot-data" / "robots"
FILES = {
    "UR5": ("ur_description/urdf/ur5_robot.urdf", False),
    "Z1": ("z1_description/urdf/z1.urdf", False),
    "Panda, fingers free": ("panda_description/urdf/panda.urdf", False),
    "Talos, floating": ("talos_data/robots/talos_reduced.urdf", True),
}
CHAINS = {"chain of 20": 20, "chain of 50": 50}
ALGORITHMS = ("inverse_dynamics", "forward_dynamics")
LINEAR_FIRST = [3, 4, 5, 0, 1, 2]


# -- the same mechanism on both sides -------------------------------------------------------------------


class Pair(NamedTuple):
    """A mechanism, Pinocchio's model, and where Pinocchio's coordinates are in linkwise's."""

    mech: lw.Mechanism
    model: pin.Model
    q_order: list[int]
    v_order: list[int]


def mechanism(name: str) -> lw.Mechanism:
    if name in CHAINS:
        return lw.mechanisms.chain(CHAINS[name])
    path, floating_base = FILES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        mech = lw.load(ROBOTS / path, floating_base=floating_base)
    # Pinocchio's model has every joint free; so has this one.
    return dataclasses.replace(mech, bodies=tuple(dataclasses.replace(body, mimic=None) for body in mech.bodies))


def pair(name: str) -> Pair:
    mech = mechanism(name)
    if name in CHAINS:
        model = _chain_model(mech)
    elif FILES[name][1]:
        model = pin.buildModelFromUrdf(str(ROBOTS / FILES[name][0]), pin.JointModelFreeFlyer(), "floating_base")
    else:
        model = pin.buildModelFromUrdf(str(ROBOTS / FILES[name][0]))
    q_order, v_order = np.zeros(model.nq, int), np.zeros(model.nv, int)
    for body in mech.bodies:
        joint = model.joints[model.getJointId(body.joint)]
        q, v = np.arange(mech.nq)[mech.q_index(body.joint)], np.arange(mech.nv)[mech.v_index(body.joint)]
        if isinstance(body.kind, lw.Floating):
            q, v = q[[4, 5, 6, 1, 2, 3, 0]], v[LINEAR_FIRST]
        assert joint.nq == len(q), f"joint {body.joint} has other coordinates in Pinocchio"
        q_order[joint.idx_q : joint.idx_q + joint.nq] = q
        v_order[joint.idx_v : joint.idx_v + joint.nv] = v
    return Pair(mech, model, q_order.tolist(), v_order.tolist())


def _chain_model(mech: lw.Mechanism) -> pin.Model:
    """A chain of revolute joints, built in Pinocchio from the same numbers."""
    model, parent = pin.Model(), 0
    for body in mech.bodies:
        joint = pin.JointModelRevoluteUnaligned(np.array(body.kind.axis))
        parent = model.addJoint(parent, joint, pin.SE3(body.rotation, body.position), body.joint)
        inertia = pin.Inertia(body.mass, np.array(body.com), np.array(body.inertia))
        model.appendBodyToJoint(parent, inertia, pin.SE3.Identity())
    return model


# -- measuring ------------------------------------------------------------------------------------------


class Result(NamedTuple):
    nanoseconds: float  # per state
    ratio: float
    error: float
    single: tuple[float, float, float]  # microseconds: kernel, function, Pinocchio
    operations: int
    counts: dict[str, int]


def measure(pair: Pair, algorithm: str) -> Result:
    mech, model, q_order, v_order = pair
    rng = np.random.default_rng(2024)
    q, v = lw.random_state(mech, rng, (BATCH,))
    u = rng.normal(size=v.shape)
    kernel = lw.compile(algorithm, mech)
    found = kernel(q, v, u)

    pool, result = pin.ModelPool(model, 1), np.zeros((model.nv, BATCH), order="F")
    states = [np.asfortranarray(x[:, order].T) for x, order in ((q, q_order), (v, v_order), (u, v_order))]
    in_parallel = pin.rneaInParallel if algorithm == "inverse_dynamics" else pin.abaInParallel
    in_parallel(1, pool, *states, result)
    expected = result.T
    difference = np.linalg.norm(found[:, v_order] - expected, axis=1) / np.linalg.norm(expected, axis=1)
    error = float(np.max(difference))
    if not error < 1e-9:
        raise SystemExit(f"{mech.name}, {algorithm}: the answers differ by {error:.1e} (relative)")

    own, theirs = best(lambda: kernel(q, v, u), lambda: in_parallel(1, pool, *states, result))
    return Result(
        own / BATCH * 1e9,
        theirs / own,
        error,
        single_calls(pair, algorithm, kernel, (q[0].copy(), v[0].copy(), u[0].copy())),
        sum(kernel.op_counts.values()),
        kernel.op_counts,
    )


def single_calls(pair: Pair, algorithm: str, kernel: lw.Kernel, state) -> tuple[float, float, float]:
    mech, model, q_order, v_order = pair
    data, function = model.createData(), getattr(lw, algorithm)
    peer = pin.rnea if algorithm == "inverse_dynamics" else pin.aba
    theirs = [x[order].copy() for x, order in zip(state, (q_order, v_order, v_order), strict=True)]
    calls = (lambda: kernel(*state), lambda: function(mech, *state), lambda: peer(model, data, *theirs))
    own, named, other = (seconds * 1e6 for seconds in best(*calls, repeats=500, slice_seconds=0.03))
    return own, named, other


def compile_times(names: list[str]) -> dict[str, dict[str, float]]:
    """Seconds for each mechanism and algorithm in fresh processes: first with an empty cache, then with a full one."""
    script = Path(__file__).resolve()
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "LINKWISE_CACHE_DIR": folder}
        command = [sys.executable, str(script), "--compile", *names]
        return {
            cache: json.loads(subprocess.run(command, env=environment, check=True, capture_output=True).stdout)
            for cache in ("cold", "cached")
        }


def print_compile_times(names: list[str]) -> None:
    times = {}
    lw.compile("gravity_force", lw.mechanisms.chain(1))  # LLVM itself starts once per process
    for name in names:
        mech = mechanism(name)
        for algorithm in ALGORITHMS:
            start = time.perf_counter()
            lw.compile(algorithm, mech)
            times[f"{name}|{algorithm}"] = time.perf_counter() - start
    print(json.dumps(times))


# -- reporting ------------------------------------------------------------------------------------------


def main() -> None:
    if sys.argv[1:2] == ["--compile"]:
        print_compile_times(sys.argv[2:])
        return
    threads.set_num_threads(1)
    names = [*FILES, *CHAINS]
    options, peak = llvm_loader.host_options("float64"), fma_peak()
    print(
        f"linkwise {lw.__version__}, Pinocchio {pin.__version__}, NumPy {np.__version__}, llvmlite "
        f"{llvmlite.__version__}, Python {platform.python_version()}\n"
        f"{cpu_name()} ({options.cpu}), 1 thread on both sides, float64, {options.lanes} lanes, batch {BATCH}\n"
        f"measured peak of fused multiply-adds: {peak / 1e9:.1f} GFLOP/s"
    )
    results = {(name, algorithm): measure(pair(name), algorithm) for name in names for algorithm in ALGORITHMS}
    compiled = compile_times(names)

    print("\nbatch, per state          algorithm          ns   ratio  % of peak  largest relative difference")
    for (name, algorithm), r in results.items():
        share = 100.0 * r.operations / (r.nanoseconds * 1e-9) / peak
        print(f"{name:24}  {algorithm:16} {r.nanoseconds:6.0f}  {r.ratio:6.1f}  {share:9.0f}  {r.error:.1e}")
    print("\nsingle call from Python   algorithm         kernel  function  Pinocchio (us)  ratio of kernel, function")
    for (name, algorithm), r in results.items():
        own, named, other = r.single
        print(
            f"{name:24}  {algorithm:16}  {own:7.2f}  {named:8.2f}  {other:9.2f}       "
            f"{other / own:6.2f}  {other / named:6.2f}"
        )
    print("\ncompile time              algorithm         cold  from the disk cache (s)   scalar operations")
    for (name, algorithm), r in results.items():
        cold, cached = (compiled[cache][f"{name}|{algorithm}"] for cache in ("cold", "cached"))
        counts = ", ".join(f"{kind} {count}" for kind, count in r.counts.items())
        print(f"{name:24}  {algorithm:16}  {cold:4.2f}  {cached:19.3f}       {r.operations:6} ({counts})")
    lowest = min(results, key=lambda key: results[key].ratio)
    print(
        f"\nRATIO to Pinocchio in batches: {results[lowest].ratio:.1f} ({lowest[0]}, {lowest[1]}) "
        f"to {max(r.ratio for r in results.values()):.1f}"
    )


if __name__ == "__main__":
    main()
