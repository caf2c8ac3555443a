"""Derivatives of inverse and forward dynamics against Pinocchio, in one process, on one core, in double precision.

Pinocchio's computeRNEADerivatives and computeABADerivatives are called once per state from Python, as they are meant to
be called; ours take 1024 states in one call.  Both sides get the same random states, and every answer is compared
before its time counts.  A ratio above 1 means that linkwise is faster.
"""

from __future__ import annotations

import time
from typing import NamedTuple

import numpy as np
from tree_dynamics import Pair, best, cpu_name, fma_peak, pair, pin

import linkwise as lw
from linkwise.compiler.runtime import llvm_loader, threads

BATCH = 1024
MECHANISMS = ("UR5", "Z1", "Panda, fingers free", "Talos, floating", "chain of 20")
ALGORITHMS = {
    "inverse_dynamics_derivatives": (pin.computeRNEADerivatives, "inverse_dynamics"),
    "forward_dynamics_derivatives": (pin.computeABADerivatives, "forward_dynamics"),
}


class Result(NamedTuple):
    nanoseconds: float  # per state, into a new array
    reused: float  # per state, into an array that exists: out=
    ratio: float  # Pinocchio's time over ours, new array
    ratio_reused: float
    error: float
    operations: int
    multiple: float  # operations over those of the dynamics itself
    compile_seconds: float


def measure(both: Pair, algorithm: str) -> Result:
    mech, model, q_order, v_order = both
    peer, plain = ALGORITHMS[algorithm]
    rng = np.random.default_rng(2024)
    q, v = lw.random_state(mech, rng, (BATCH,))
    u = rng.normal(size=v.shape)
    start = time.perf_counter()
    kernel = lw.compile(algorithm, mech)
    compile_seconds = time.perf_counter() - start
    found = kernel(q, v, u)

    data = model.createData()
    states = [np.ascontiguousarray(x[:, order]) for x, order in ((q, q_order), (v, v_order), (u, v_order))]
    error = 0.0
    for i in range(0, BATCH, 16):
        peer(model, data, *(x[i] for x in states))
        for own, theirs in zip(found[i], _partials(data, algorithm), strict=True):
            own = own[np.ix_(v_order, v_order)]
            error = max(error, float(np.max(np.abs(own - theirs)) / np.max(np.abs(theirs))))
    if not error < 1e-9:
        raise SystemExit(f"{mech.name}, {algorithm}: the answers differ by {error:.1e} (relative)")

    def one_by_one() -> None:
        for state in zip(*states, strict=True):
            peer(model, data, *state)

    own, reused, theirs = best(lambda: kernel(q, v, u), lambda: kernel(q, v, u, out=found), one_by_one)
    operations = sum(kernel.op_counts.values())
    multiple = operations / sum(lw.compile(plain, mech).op_counts.values())
    own, reused, theirs = (seconds / BATCH * 1e9 for seconds in (own, reused, theirs))
    return Result(own, reused, theirs / own, theirs / reused, error, operations, multiple, compile_seconds)


def _partials(data: pin.Data, algorithm: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    if algorithm == "forward_dynamics_derivatives":
        inverse = np.triu(data.Minv) + np.triu(data.Minv, 1).T
        return data.ddq_dq, data.ddq_dv, inverse
    mass = np.triu(data.M) + np.triu(data.M, 1).T
    return data.dtau_dq, data.dtau_dv, mass


def main() -> None:
    threads.set_num_threads(1)
    options, peak = llvm_loader.host_options("float64"), fma_peak()
    print(
        f"linkwise {lw.__version__}, Pinocchio {pin.__version__}, NumPy {np.__version__}\n"
        f"{cpu_name()} ({options.cpu}), 1 thread on both sides, float64, {options.lanes} lanes, batch {BATCH}, "
        "Pinocchio called per state\n"
        f"measured peak of fused multiply-adds: {peak / 1e9:.1f} GFLOP/s\n"
    )
    print(
        f"{'mechanism':20} {'algorithm':29}     ns   ratio   ns (out=)   ratio  difference  % of peak  operations  "
        "multiple  compile s"
    )
    lowest = {}
    for name in MECHANISMS:
        both = pair(name)
        for algorithm in ALGORITHMS:
            r = measure(both, algorithm)
            lowest[name, algorithm] = r.ratio
            share = 100.0 * r.operations / (r.reused * 1e-9) / peak
            print(
                f"{name:20} {algorithm:29} {r.nanoseconds:6.0f}  {r.ratio:6.1f}  {r.reused:10.0f}  "
                f"{r.ratio_reused:6.1f}  {r.error:10.1e}  {share:9.0f}  "
                f"{r.operations:10}  {r.multiple:8.2f}  {r.compile_seconds:9.2f}"
            )
    print(
        "\nns: per state, into a new array (its memory is used again); out=: into one that exists"
        "\nmultiple: scalar operations over those of the dynamics itself"
    )
    (name, algorithm), ratio = min(lowest.items(), key=lambda item: item[1])
    print(f"RATIO to Pinocchio: {ratio:.1f} ({name}, {algorithm}) to {max(lowest.values()):.1f}")


if __name__ == "__main__":
    main()
