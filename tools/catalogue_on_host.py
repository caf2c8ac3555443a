"""Every algorithm's CUDA kernel on every mechanism: its text compiled by the host's C++ compiler, or run on a GPU.

    python -m tools.catalogue_on_host [--results FILE] [--mechanisms UR5,Talos] [--algorithms NAME,...] [--again]
                                      [--gpu] [--processes 16] [--seconds 540] [--robots FOLDER]

Results are appended to FILE, one line of JSON each; a run goes on where the last one stopped (``--again``: with what
failed or was beyond the tolerance).  Short programs come first, so that most of the catalogue is done early.  On the
host it checks arithmetic, layouts and the meeting of lanes, not the launch on a device; ``--gpu`` checks that too, in
several processes, for at most so many seconds.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import json
import multiprocessing
import tempfile
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from benchmarks.gpu_cases import (
    BEYOND,
    CHECKED,
    DTYPES,
    FAILED,
    OTHER,
    TOLERANCES,
    VARIANTS,
    WRONG,
    Checked,
    check,
    found_robots,
)
from tests.compiler.targets import cuda_on_host

Case = tuple[str, str, str]
#: What takes longest comes last: mechanisms by their size; words in names of algorithms whose programs are long.
ORDER = ("UR5", "five-bar", "Panda", "Stewart platform", "Solo12", "Talos", "chain(20)")
LONG = ("derivatives", "rate_jacobian", "estimat", "kalman", "rk4")


def cases(mechanisms: Sequence[str], algorithms: Sequence[str]) -> list[Case]:
    """All of them, short ones first."""
    for name in (*mechanisms, *algorithms):
        if name not in CHECKED and name not in VARIANTS:
            raise SystemExit(f"{name!r} is no mechanism of {', '.join(CHECKED)}, nor an algorithm of the catalogue")
    found = [(m, a, dtype) for m in sorted(mechanisms, key=ORDER.index) for a in algorithms for dtype in DTYPES]
    return sorted(found, key=_length)


def _length(case: Case) -> int:
    mechanism, algorithm, _ = case
    long = sum(word in algorithm for word in LONG) + ("rk4_step_derivatives" in algorithm or "second" in algorithm)
    return long * (mechanism not in ORDER[:3])


def read(file: Path) -> dict[Case, Checked]:
    if not file.exists():
        return {}
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    return {tuple(row["case"]): Checked(*row["result"]) for row in rows}  # the last one counts


def not_done(file: Path, wanted: list[Case], again: bool) -> list[Case]:
    """Cases that FILE has no result of; with ``again`` those too that failed or were beyond the tolerance."""
    done = {case for case, x in read(file).items() if not again or not x.note or x.note.startswith(OTHER)}
    return [case for case in wanted if case not in done]


def run_on_gpu(file: Path, wanted: list[Case], robots: Path, processes: int, seconds: float) -> None:
    pool = concurrent.futures.ProcessPoolExecutor(processes, mp_context=multiprocessing.get_context("spawn"))
    futures = {pool.submit(check, *case, robots): case for case in wanted}
    try:
        with file.open("a") as lines:
            for future in concurrent.futures.as_completed(futures, timeout=seconds):
                error = future.exception()
                lost = Checked(np.nan, 0.0, 0.0, f"{FAILED}: the process ended: {error}")
                result = lost if error else future.result()
                lines.write(json.dumps({"case": futures[future], "result": result}) + "\n")
                lines.flush()
    except concurrent.futures.TimeoutError:
        print(f"stopped after {seconds:g} s")
    for process in list(pool._processes.values()):
        process.kill()


def run_on_host(file: Path, wanted: list[Case], robots: Path) -> None:
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        cuda_on_host.install(patch, folder, "-O0")
        for number, case in enumerate(wanted):
            result = check(*case, robots)
            with file.open("a") as lines:
                lines.write(json.dumps({"case": case, "result": result}) + "\n")
            if not result.note.startswith(OTHER):
                print(f"{number} of {len(wanted)}: {' '.join(case)}: {result.error:.0e} {result.note}", flush=True)
            for path in folder.iterdir():
                path.unlink()


def report(results: dict[Case, Checked], wanted: list[Case]) -> list[str]:
    """What is right, what is not and why, and what was not done."""
    heads = "mechanism, precision, not for it, within, beyond as the CPU, wrong, failed, not done, largest error within"
    lines = [f"| {' | '.join(heads.split(', '))} |", "|" + " --- |" * 9]
    for mechanism in dict.fromkeys(case[0] for case in wanted):
        for dtype in DTYPES:
            own = [case for case in wanted if (case[0], case[2]) == (mechanism, dtype)]
            done = [results[case] for case in own if case in results]
            counts = [sum(x.note.startswith(word) for x in done) for word in (OTHER, BEYOND, WRONG, FAILED)]
            good = [x.error for x in done if not x.note]
            largest = f"{max(good):.0e}" if good else ""
            lines.append(
                f"| {mechanism} | {dtype} | {counts[0]} | {len(good)} | {counts[1]} | {counts[2]} | {counts[3]} | "
                f"{len(own) - len(done)} | {largest} |"
            )
    lines += ["", f"Tolerances: {TOLERANCES}.", ""]
    for case in wanted:
        found = results.get(case)
        if found and found.note and not found.note.startswith(OTHER):
            lines.append(f"- {', '.join(case)}: {found.note}")
        elif found and not found.note and found.finite < 1.0:
            lines.append(f"- {', '.join(case)}: only {found.finite:.0%} of the reference are numbers")
    return lines + [f"- not done: {', '.join(case)}" for case in wanted if case not in results]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--results", type=Path, default=Path(tempfile.gettempdir()) / "catalogue_on_host.jsonl")
    parser.add_argument("--mechanisms", default=",".join(CHECKED))
    parser.add_argument("--algorithms", default=",".join(VARIANTS))
    parser.add_argument("--again", action="store_true")
    parser.add_argument("--gpu", action="store_true")
    parser.add_argument("--processes", type=int, default=multiprocessing.cpu_count())
    parser.add_argument("--seconds", type=float, default=540.0)
    parser.add_argument("--robots", type=Path, help="the folder robots of example-robot-data")
    given = parser.parse_args()
    wanted = cases(given.mechanisms.split(","), given.algorithms.split(","))
    rest = not_done(given.results, wanted, given.again)
    robots = given.robots or found_robots()
    with np.errstate(all="ignore"):
        if given.gpu:
            run_on_gpu(given.results, rest, robots, given.processes, given.seconds)
        else:
            run_on_host(given.results, rest, robots)
    print("\n".join(report(read(given.results), wanted)))


if __name__ == "__main__":
    main()
