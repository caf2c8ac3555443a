"""Closed forward dynamics of branches of four-bars on a floating base: cost against the spanning tree's forward
dynamics, growth with the number of loops, compile time.  One core, float64, states on the constraint manifold."""

from __future__ import annotations

import os
import tempfile
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before anything that has threads is loaded
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import linkwise as lw
from benchmarks.speed import best, cpu_name

BRANCHES, LOOPS = (1, 2, 4, 6), (1, 2, 5, 10)
BATCH, FEW = 4096, 16
PATIENCE = 1.0  # seconds that one call may take


def states(mech: lw.Mechanism, count: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Closed configurations around the neutral one, velocities that keep loops closed, joint forces."""
    rng = np.random.default_rng(7)
    basis = lw.constraints.null_space(mech, lw.neutral(mech))
    near = lw.integrate(mech, lw.neutral(mech), 0.1 * rng.normal(size=(FEW, basis.shape[1])) @ basis.T, 1.0)
    q, v = lw.constraints.project(mech, near, rng.normal(size=(FEW, mech.nv)), largest=1.0)
    return tuple(np.tile(x, (count // FEW, 1)) for x in (q, v, rng.normal(size=v.shape)))


def measure(branches: int, loops: int) -> tuple[float, float, float, int]:
    """Seconds per state, closed and of the spanning tree; processor seconds to compile; states per call."""
    mech = lw.mechanisms.four_bar_branches(branches, loops)
    q, v, tau = states(mech, FEW)
    start = time.process_time()
    lw.forward_dynamics(mech, q, v, tau)
    first = time.process_time() - start
    start = time.process_time()
    lw.forward_dynamics(mech, q, v, tau)
    second = time.process_time() - start
    count = int(np.clip(FEW * 2 ** np.floor(np.log2(PATIENCE / second)), FEW, BATCH))
    q, v, tau = states(mech, count)
    closed, tree = best(
        lambda: lw.forward_dynamics(mech, q, v, tau),
        lambda: lw.forward_dynamics(mech.spanning_tree, q, v, tau),
        rounds=3,
    )
    return closed / count, tree / count, first - second, count


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        os.environ["LINKWISE_CACHE_DIR"] = folder  # empty: what is needed is compiled now
        report()


def report() -> None:
    lw.codegen.set_num_threads(1)
    lw.compile("gravity_force", lw.mechanisms.chain(1))  # LLVM itself starts once per process
    print(f"linkwise {lw.__version__}, {cpu_name()}, 1 thread, float64, at most {BATCH} states per call")
    print("branches  loops in all  nv   closed (us)  per loop (us)  tree (us)  ratio  compile (s)  states per call")
    ratios = []
    for branches in BRANCHES:
        for loops in LOOPS:
            closed, tree, compiled, count = measure(branches, loops)
            ratios.append(closed / tree)
            total = branches * loops
            print(
                f"{branches:8d}  {total:12d}  {6 + 3 * total:3d}  {closed * 1e6:11.3f}  {closed * 1e6 / total:13.3f}  "
                f"{tree * 1e6:9.3f}  {closed / tree:5.1f}  {compiled:11.2f}  {count:15d}",
                flush=True,
            )
    print(f"\nRATIO of closed to spanning tree: {min(ratios):.1f} to {max(ratios):.1f}")


if __name__ == "__main__":
    main()
