"""Derivatives of RK4 steps against four evaluations of the derivatives of forward dynamics, which they are made of.

One thread, ``out=`` given; each pair is measured in turns in one process, several times over, as where code and values
happen to lie in memory changes a ratio by a tenth.  Columns: seconds to compile (without the cache of machine code),
operations against operations, time against time for batches of 64 and 1,024.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings

os.environ["LINKWISE_CACHE_DIR"] = tempfile.mkdtemp()

import numpy as np
from tree_dynamics import FILES, ROBOTS, best, cpu_name

import linkwise as lw
from linkwise.compiler.runtime import threads

FILES |= {
    "Panda": ("panda_description/urdf/panda.urdf", False),
    "Solo12": ("solo_description/robots/solo12.urdf", False),
    "Solo12, floating": ("solo_description/robots/solo12.urdf", True),
}
NAMES = ("Panda", "Solo12", "Solo12, floating", "Talos, floating")
BATCHES = (64, 1024)


def compiled(mech: lw.Mechanism) -> tuple[lw.Kernel, lw.Kernel, float]:
    """The derivatives of accelerations and of steps, and how long the latter took to compile."""
    accelerations = lw.compile("forward_dynamics_derivatives", mech)
    start = time.process_time()
    step = lw.compile("rk4_step_derivatives", mech)
    return accelerations, step, time.process_time() - start


def ratio(accelerations: lw.Kernel, step: lw.Kernel, mech: lw.Mechanism, batch: int) -> float:
    rng = np.random.default_rng(7)
    (q, v), tau = lw.random_state(mech, rng, (batch,)), rng.normal(size=(batch, mech.nv))
    found, after = accelerations(q, v, tau), step(q, v, tau, 1e-3)
    times = best(
        lambda: accelerations(q, v, tau, out=found),
        lambda: step(q, v, tau, 1e-3, out=after),
        rounds=12,
        slice_seconds=0.1,
    )
    return times[1] / (4.0 * times[0])


def main() -> None:
    threads.set_num_threads(1)
    print(f"linkwise {lw.__version__}; {cpu_name()}, one thread, float64\n")
    print(f"{'robot':18} degrees of freedom  compile s  operations" + "".join(f"  batch {b:5}" for b in BATCHES))
    largest = 0.0
    for name in NAMES:
        path, floating_base = FILES[name]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of meshes
            mech = lw.load(ROBOTS / path, floating_base=floating_base)
        accelerations, step, seconds = compiled(mech)
        operations = sum(step.op_counts.values()) / (4.0 * sum(accelerations.op_counts.values()))
        ratios = [ratio(accelerations, step, mech, batch) for batch in BATCHES]
        if name in ("Panda", "Solo12"):
            largest = max(largest, *ratios)
        print(f"{name:18} {mech.nv:18}  {seconds:9.2f}  {operations:10.2f}" + "".join(f"  {r:11.2f}" for r in ratios))
    print(f"\nRATIO to four evaluations of the derivatives: at most {largest:.2f} (Panda, Solo12 as in its file)")


if __name__ == "__main__":
    main()
