"""How batches scale with threads: seconds, speed-ups over one thread, and whether more threads ever lose.

    python benchmarks/threads.py [ROBOT.urdf ...] [--floating TALOS.urdf] [--seconds 0.2] [--write FILE]

Without files: builtin arms and chains.  Every time is the best of many; thread numbers take turns, so that all of them
meet the same conditions.
"""

from __future__ import annotations

import argparse
import os
import time
import warnings
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path

import numpy as np

import linkwise as lw
from benchmarks.speed import cpu_name

BATCHES = (1024, 8192, 32768, 131072)
ROUNDS = 3
LOSS = 1.05  # a time with more threads that counts as lost, by that with fewer


def mechanisms(files: Sequence[str], floating: Sequence[str]) -> dict[str, lw.Mechanism]:
    if not files and not floating:
        return {"PUMA 560": lw.mechanisms.puma560(), "chain of 30": lw.mechanisms.chain(30)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", lw.MechanismWarning)
        fixed = {Path(file).stem: lw.load(file) for file in files}
        return fixed | {Path(file).stem: lw.load(file, floating_base=True) for file in floating}


def thread_numbers() -> list[int]:
    """1, 2, 4 and so on up to what the process may use, and three quarters of it."""
    most = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return sorted({n for n in (1, 2, 4, 8, 16, 32, 64, 128) if n <= most} | {max(1, 3 * most // 4), most})


def best_times(call: Callable[[], object], numbers: Sequence[int], seconds: float) -> dict[int, float]:
    best = dict.fromkeys(numbers, float("inf"))
    for _ in range(ROUNDS):
        for n in numbers:
            lw.codegen.set_num_threads(n)
            call()  # threads start here
            stop = time.perf_counter() + seconds / ROUNDS
            while True:
                start = time.perf_counter()
                call()
                now = time.perf_counter()
                best[n] = min(best[n], now - start)
                if now >= stop:
                    break
    return best


def memory_bandwidth(numbers: Sequence[int]) -> dict[int, float]:
    """Bytes per second, read and written, of batches of which hardly anything is computed."""
    mech = lw.mechanisms.chain(6)
    kernel = lw.compile("integrate", mech)
    q, v = np.zeros((2, 1 << 19, mech.nq))
    out = np.empty_like(q)
    times = best_times(lambda: kernel(q, v, 1e-3, out=out), numbers, 0.3)
    return {n: 3.0 * q.nbytes / seconds for n, seconds in times.items()}


def report(mechs: dict[str, lw.Mechanism], seconds: float) -> str:
    numbers = thread_numbers()
    lines = [
        "# Threads",
        "",
        f"{cpu_name()}, {numbers[-1]} processors, load {os.getloadavg()[0]:.1f} before; linkwise {lw.__version__}.",
        "Forward dynamics in double precision: microseconds with one thread, and how many times faster with more.",
        "",
        f"| mechanism | states | us | {' | '.join(f'{n} threads' for n in numbers[1:])} | more threads lose |",
        "|" + " --- |" * (len(numbers) + 3),
    ]
    for name, mech in mechs.items():
        rng = np.random.default_rng(0)
        kernel = lw.compile("forward_dynamics", mech)
        for batch in BATCHES:
            q, v = lw.random_state(mech, rng, (batch,))
            tau = rng.normal(size=v.shape)
            times = best_times(partial(kernel, q, v, tau), numbers, seconds)
            ratios = [f"{times[1] / times[n]:.1f}" for n in numbers[1:]]
            lost = [
                f"{more} to {fewer}: {100 * (times[more] / times[fewer] - 1):.0f} %"
                for more, fewer in zip(numbers[1:], numbers, strict=False)
                if times[more] > LOSS * times[fewer]
            ]
            row = [name, str(batch), f"{1e6 * times[1]:.0f}", *ratios, ", ".join(lost) or "no"]
            lines.append("| " + " | ".join(row) + " |")
            print(lines[-1], flush=True)
    bandwidth = ", ".join(f"{n}: {rate / 1e9:.0f}" for n, rate in memory_bandwidth(numbers).items())
    lines += ["", f"Memory read and written by a batch that computes nothing, GB/s by threads: {bandwidth}."]
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--floating", nargs="*", default=[])
    parser.add_argument("--seconds", type=float, default=0.2)
    parser.add_argument("--write")
    given = parser.parse_args()
    text = report(mechanisms(given.files, given.floating), given.seconds)
    print(text)
    if given.write:
        Path(given.write).write_text(text)


if __name__ == "__main__":
    main()
