"""Rollouts in momenta against rollouts in joint velocities: processor time of RK4, one thread.

python benchmarks/momenta.py [--mechanisms stanford_arm,puma560,...] [--repeats 15] [--states 512] [--steps 50]

Both are run in turns, so that a busy machine slows both alike.  Ratios of the best times, and medians of the ratios of
pairs; with all states kept, then with the last alone.
"""

import os

os.environ.update({name: "1" for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS")})

import argparse
import time

import numpy as np

import linkwise as lw
from papers.operation_counts import general_arm

MECHANISMS = {
    "stanford_arm": lw.mechanisms.stanford_arm,
    "puma560": lw.mechanisms.puma560,
    "general_arm_6": lambda: general_arm(6),
    "chain_20": lambda: lw.mechanisms.chain(20),
    "cart_pole": lw.mechanisms.cart_pole,
    "double_pendulum": lw.mechanisms.double_pendulum,
    "planar_arm_3": lambda: lw.mechanisms.planar_arm(3),
    "planar_arm_6": lambda: lw.mechanisms.planar_arm(6),
}


def ratios(mech: lw.Mechanism, states: int, steps: int, repeats: int, final_only: bool) -> tuple[float, float]:
    """Of the best times, and the median of those of pairs."""
    q, v = lw.random_state(mech, np.random.default_rng(0), (states,))
    shape = (states,) if final_only else (states, steps + 1)
    out = np.empty((*shape, mech.nq)), np.empty((*shape, mech.nv))

    def seconds(coordinates: str) -> float:
        start = time.process_time()
        lw.rollout(mech, q, 0.3 * v, None, 1e-3, steps, final_only=final_only, out=out, coordinates=coordinates)
        return time.process_time() - start

    for coordinates in ("joint", "momentum"):
        seconds(coordinates)
    pairs = np.array([[seconds("joint"), seconds("momentum")] for _ in range(repeats)])
    joint, momentum = pairs.min(axis=0)
    return momentum / joint, float(np.median(pairs[:, 1] / pairs[:, 0]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--mechanisms", default=",".join(MECHANISMS))
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--states", type=int, default=512)
    parser.add_argument("--steps", type=int, default=50)
    options = parser.parse_args()
    lw.codegen.set_num_threads(1)
    print(f"{'':18s} best: all   last   median: all   last")
    for name in options.mechanisms.split(","):
        mech = MECHANISMS[name]()
        found = [ratios(mech, options.states, options.steps, options.repeats, last) for last in (False, True)]
        (best, median), (best_last, median_last) = found
        print(f"{name:18s} {best:9.2f} {best_last:6.2f} {median:13.2f} {median_last:6.2f}", flush=True)


if __name__ == "__main__":
    main()
