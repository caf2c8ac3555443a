"""Matrices of long chains: compile time, time per state, and Pinocchio in the same run, on one core, in float64.

    python benchmarks/chain_matrices.py [sizes]

Code is compiled anew (nothing comes from the disk cache), with loops where those pay; times are the best of several
calls with eight states, of which Pinocchio has one at a time.  Answers are compared, relative to the largest entry.
Pinocchio's ``Data`` has tensors with the third power of the number of joints, so the comparison ends at 300.
"""

from __future__ import annotations

import os
import sys
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")  # before Pinocchio is loaded
os.environ["LINKWISE_CACHE_LIMIT"] = "0"

import numpy as np

import linkwise as lw
from benchmarks.speed.peers import pinocchio

SIZES = (30, 100, 300, 500)
PEERS_UP_TO = 300  # joints
STATES = 8
ALGORITHMS = {
    "mass_matrix": "q",
    "inverse_dynamics_derivatives": "qva",
    "mass_matrix_inverse": "q",
    "forward_dynamics_derivatives": "qva",
    "jacobian": "q",
}


def best_of(function, repeats: int = 7) -> float:
    """Seconds of the quickest of several calls."""
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def report(n: int) -> None:
    mech = lw.mechanisms.chain(n)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (STATES,))
    given = {"q": q, "v": v, "a": rng.normal(size=v.shape)}
    for name, inputs in ALGORITHMS.items():
        options = {"link": f"link{n}"} if name == "jacobian" else {}
        arrays = [given[letter] for letter in inputs]
        start = time.perf_counter()
        kernel = lw.compile(name, mech, **options)
        compiled = time.perf_counter() - start
        out = kernel(*arrays)
        ours = best_of(lambda kernel=kernel, arrays=arrays, out=out: kernel(*arrays, out=out)) / STATES
        kind = "loops" if kernel.traced.loops else "straight"
        line = f"chain {n:4} {name:29} {kind:9} compile {compiled:5.2f} s {ours * 1e6:9.1f} us per state"
        peer = pinocchio.peer(mech, name) if n <= PEERS_UP_TO and not options else None
        if peer is not None:
            call, result = peer.batch(*arrays)
            theirs = best_of(call, 3) / STATES
            found = np.asarray(result() if callable(result) else result).reshape(out.shape)
            error = np.abs(found - out).max() / np.abs(out).max()
            line += f", {peer.library} {theirs * 1e6:9.1f}: {theirs / ours:.1f} times ours, apart by {error:.0e}"
        print(line, flush=True)


def main() -> None:
    lw.codegen.set_num_threads(1)
    lw.compile("forward_dynamics", lw.mechanisms.chain(3))  # what is loaded once
    for n in map(int, sys.argv[1:]) if len(sys.argv) > 1 else SIZES:
        report(n)


if __name__ == "__main__":
    main()
