"""Times of calls on a machine that others use as well."""

from __future__ import annotations

import platform
import time
from collections.abc import Callable
from pathlib import Path

LEFT_OUT = 50  # of so many samples the shortest


def best(
    *calls: Callable[[], object],
    repeats: int = 1,
    rounds: int = 8,
    slice_seconds: float = 0.08,
    clock: Callable[[], float] = time.thread_time,
) -> list[float]:
    """Seconds per call of each function: the best of many, measured in turns under equal conditions.

    The default clock is the thread's own processor time: waiting for others does not count.  Work that is spread over
    threads needs ``time.perf_counter``.  On virtual machines the thread's clock misses some microseconds where the host
    has run something else, once in many thousand samples: the shortest of many are therefore left out.
    """
    samples: list[list[float]] = [[] for _ in calls]
    for _ in range(rounds):
        for which, call in enumerate(calls):
            stop = time.perf_counter() + slice_seconds
            while True:
                start = clock()
                for _ in range(repeats):
                    call()
                spent = (clock() - start) / repeats
                if spent > 0.0:
                    samples[which].append(spent)
                if time.perf_counter() >= stop:
                    break
    return [sorted(times)[len(times) // LEFT_OUT] if times else float("inf") for times in samples]


def cpu_name() -> str:
    """Model name of the processor."""
    info = Path("/proc/cpuinfo")
    lines = info.read_text().splitlines() if info.exists() else []
    named = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return named[0] if named else platform.processor() or platform.machine()
