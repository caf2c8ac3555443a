"""Chains from 10 to 10,000 links, and a tree of 2,000 links of mixed joints: compile time, time per link and state, and
Pinocchio in the same run, on one core, in double precision.

    python benchmarks/chains.py [sizes]

Code is compiled anew (nothing comes from the disk cache).  States are so many that a batch fits a cache, and at least
sixteen; times are the best of several.  Up to 50 links straight-line code is measured beside loops.  Answers are
compared: forces from inverse dynamics of the accelerations that forward dynamics gave, relative to the bias forces.
Pinocchio's ``Data`` has tensors with the third power of the number of joints: a process with one for 300 joints had 2.8
GB, and 600 did not fit into 12 GB.  So the comparison ends at 300.
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

SIZES = (10, 20, 50, 100, 300, 1000, 3000, 10000)
STRAIGHT_UP_TO = 50
PEERS_UP_TO = 300  # velocities
NUMBERS_IN_A_BATCH = 40_000
ALGORITHMS = ("inverse_dynamics", "forward_dynamics")


def best_of(function, work: int) -> float:
    """Seconds of the quickest of several calls."""
    times = []
    for _ in range(max(5, min(200, 30_000_000 // max(work, 1)))):
        start = time.perf_counter()
        function()
        times.append(time.perf_counter() - start)
    return min(times)


def report(name: str, mech: lw.Mechanism, peers: bool) -> None:
    states = max(16, NUMBERS_IN_A_BATCH // mech.nv // 8 * 8)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, (states,))
    tau = rng.normal(size=v.shape)
    accelerations = None
    for algorithm in reversed(ALGORITHMS):
        given = tau if algorithm == "forward_dynamics" else accelerations
        for loops in (False, None) if mech.n_links <= STRAIGHT_UP_TO else (None,):
            start = time.perf_counter()
            kernel = lw.compile(algorithm, mech, loops=loops)
            compiled = time.perf_counter() - start
            out = np.empty_like(v)
            seconds = best_of(lambda kernel=kernel, given=given, out=out: kernel(q, v, given, out=out), v.size)
            kind = "loops" if kernel.traced.loops else "straight"
            per_link = seconds / states / mech.n_links * 1e9
            print(f"{name:12} {algorithm:17} {kind:9} compile {compiled:5.2f} s {per_link:8.2f} ns per link and state")
        if algorithm == "forward_dynamics":
            accelerations = out
        peer = pinocchio.peer(mech, algorithm) if peers and mech.nv <= PEERS_UP_TO else None
        if peer is not None:
            few = min(states, 64)
            arrays = (q[:few], v[:few], given[:few])
            call, _ = peer.batch(*arrays)
            theirs = best_of(call, 20 * few * mech.nv) / few
            per_link, ratio = theirs / mech.n_links * 1e9, theirs / (seconds / states)
            print(f"{name:12} {algorithm:17} {peer.library:27} {per_link:8.2f}: {ratio:.1f} times ours")
    error = np.abs(out - tau).max() / np.abs(lw.bias_force(mech, q, v)).max()
    print(f"{name:12} forces given back to {error:.1e}", flush=True)


def main() -> None:
    lw.codegen.set_num_threads(1)
    lw.compile("forward_dynamics", lw.mechanisms.chain(3))  # what is loaded once
    for n in map(int, sys.argv[1:]) if len(sys.argv) > 1 else SIZES:
        report(f"chain {n}", lw.mechanisms.chain(n), peers=True)
    if len(sys.argv) == 1:
        kinds = ["revolute", "prismatic", "spherical"]  # what Pinocchio has too
        report("tree 150 *", lw.mechanisms.random_tree(150, 1, kinds), peers=True)
        report("tree 2000", lw.mechanisms.random_tree(2000, 0), peers=False)


if __name__ == "__main__":
    main()
