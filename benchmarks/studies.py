"""A study of the Panda with random payloads on one worker and on two: how much of the second worker is gained, whether
a killed worker or an interruption changes a number, and how much memory it takes.

    python benchmarks/studies.py [--cases 1000000] [--steps 100] [--chunk 16384] [--robot panda.urdf] [--write FILE]

Every run is a Dask cluster of processes with one thread each, results are streamed to a Zarr folder.  Wall times are
told beside the CPU time that the workers used, since other work on the machine slows down wall time alone: "by CPU
time" is what a machine with a free core for every process would show.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator
from concurrent.futures import Executor, Future
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from distributed import Client, LocalCluster

import linkwise as lw
from linkwise import studies as st

BOUND = 1.3  # of twice one worker's time, on two


def panda(path: str | None) -> lw.Mechanism:
    """The robot of example-robot-data, without its fingers' drives."""
    if path is None:
        import pinocchio

        path = str(
            Path(pinocchio.__file__).parents[4] / "share/example-robot-data/robots/panda_description/urdf/panda.urdf"
        )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return lw.load(path)


def study(mech: lw.Mechanism, cases: int, steps: int, chunk: int) -> st.Study:
    """Free motion from near a posture, with a payload of up to 3 kg in the hand."""
    posture = [0.0, -0.3, 0.0, -2.2, 0.0, 2.0, 0.8] + [0.02] * (mech.nq - 7)
    spread = [0.05] * 7 + [0.0] * (mech.nq - 7)  # fingers stay where they are
    vary = {
        "payload.panda_hand.mass": st.distributions.Uniform(0.0, 3.0),
        "payload.panda_hand.com": st.distributions.Normal([0.0, 0.0, 0.1], 0.02),
        "q0": st.distributions.Normal(posture, spread),
    }
    return st.Study(mech, st.Rollout(1e-3, steps, final_only=True), vary, cases=cases, chunk=chunk)


@contextmanager
def workers(count: int) -> Iterator[tuple[LocalCluster, Client]]:
    with (
        LocalCluster(
            n_workers=count, threads_per_worker=1, processes=True, dashboard_address=":0", silence_logs=50
        ) as cluster,
        Client(cluster) as client,
    ):
        client.wait_for_workers(count)
        yield cluster, client


def cpu_seconds() -> float:
    return time.process_time()


def peak_memory() -> float:
    """MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measured(one: st.Study, count: int, store: Path) -> dict[str, float]:
    """Wall and CPU seconds of a study on so many workers, once all of them have compiled."""
    with workers(count) as (_, client):
        one.with_(cases=2 * count * one.chunk, seed=1).run(client)  # each compiles, or takes it from the cache
        before, start = client.run(cpu_seconds), time.perf_counter()
        mine = time.process_time()
        one.run(client, store)
        wall = time.perf_counter() - start
        after, memory = client.run(cpu_seconds), client.run(peak_memory)
        used = [after[worker] - before[worker] for worker in after]
        own = time.process_time() - mine
    return {
        "wall": wall,
        "cpu": sum(used),
        "busiest": max(used),
        "client": own,
        "memory": max(memory.values()),
        "all": peak_memory(),
    }


def killed(one: st.Study, store: Path, after: float) -> int:
    """The same on two workers, one of which is killed; how many processes there were."""
    with workers(2) as (_, client):
        victims = client.run(os.getpid)
        threading.Timer(after, os.kill, (next(iter(victims.values())), signal.SIGKILL)).start()
        one.run(client, store)
        return len({*victims.values(), *client.run(os.getpid).values()})


class Interrupted(Executor):
    """Ctrl-C after so many chunks."""

    def __init__(self, chunks: int):
        self.left = chunks

    def submit(self, function: Any, /, *arguments: Any, **options: Any) -> Future[Any]:
        if not self.left:
            raise KeyboardInterrupt
        self.left -= 1
        return st.runners.Here().submit(function, *arguments, **options)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def report(one: st.Study, folder: Path) -> list[str]:
    lines = [f"{one.mechanism.name}, {one.n_cases} motions of {one.compute.steps} steps, {one.n_chunks} chunks"]
    single, double = (measured(one, count, folder / f"{count}.zarr") for count in (1, 2))
    for count, told in ((1, single), (2, double)):
        rate = one.n_cases / told["wall"]
        lines.append(
            f"{count} worker{'s' * (count > 1)}: {told['wall']:.1f} s wall ({rate:,.0f} motions/s), CPU of workers "
            f"{told['cpu']:.1f} s, of the busiest {told['busiest']:.1f} s, of the client {told['client']:.1f} s, peak "
            f"memory of a worker {told['memory']:.0f} MiB, of the client {told['all']:.0f} MiB"
        )
    ideal = single["wall"] / 2
    by_cpu = max(double["busiest"], double["client"]) / (single["busiest"] / 2)
    lines.append(
        f"ratio of wall time on two workers to half of that on one: {double['wall'] / ideal:.2f} (at most {BOUND})"
    )
    lines.append(
        f"by CPU time: {by_cpu:.2f}; CPU time of two workers by that of one: {double['cpu'] / single['cpu']:.2f}"
    )
    equal = files(folder / "1.zarr") == files(folder / "2.zarr")
    lines.append(f"files of one and two workers are the same bytes: {equal}")
    seen = killed(one, folder / "killed.zarr", after=min(5.0, double["wall"] / 3))
    equal = files(folder / "killed.zarr") == files(folder / "1.zarr")
    lines.append(f"a worker killed in the middle ({seen} processes in all): the same bytes: {equal}")
    try:
        one.run(Interrupted(one.n_chunks // 2), folder / "resumed.zarr", in_flight=1)
    except KeyboardInterrupt:
        done = int(st.open_study(folder / "resumed.zarr").done.sum())
    one.run(store=folder / "resumed.zarr")
    equal = files(folder / "resumed.zarr") == files(folder / "1.zarr")
    lines.append(f"interrupted after {done} motions and resumed in this process: the same bytes: {equal}")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", type=int, default=100_000)
    parser.add_argument("--steps", type=int, default=100)
    parser.add_argument("--chunk", type=int, default=16384)
    parser.add_argument("--robot")
    parser.add_argument("--write", type=Path, help="write what is printed to this file too")
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        lines = report(study(panda(given.robot), given.cases, given.steps, given.chunk), Path(folder))
    print("\n".join(lines))
    if given.write:
        given.write.write_text("\n".join(lines) + "\n")
    sys.exit(0)


if __name__ == "__main__":
    main()
