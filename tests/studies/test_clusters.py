"""Studies on a Dask cluster and on other processes give the bits that they give here, whoever dies."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise import studies as st

distributed = pytest.importorskip("distributed")

ARM = lw.mechanisms.planar_arm(2)
VARY = {
    "payload.link2.mass": st.distributions.Uniform(0.0, 2.0),
    "q0": st.distributions.Offset(st.distributions.Normal(0.0, 0.2)),
}


def study(measure=None):
    return st.Study(ARM, st.Rollout(0.01, 10, final_only=True, measure=measure), VARY, cases=53, chunk=10)


def same(one, other):
    return set(one) == set(other) and all(np.array_equal(one[name], other[name]) for name in one)


def files(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def dying(flag: Path):
    """A measure that kills the process that computes it, once."""

    def last(cases, t, q, v):
        if cases.first == 20 and not flag.exists():
            flag.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return {"q": q, "v": v}

    return last


def cluster(**options):
    return distributed.LocalCluster(dashboard_address=":0", silence_logs=50, **options)


def test_a_cluster_in_this_process(tmp_path):
    threads = lw.codegen.get_num_threads()
    here = study().run(store=tmp_path / "here.zarr")
    with cluster(processes=False, n_workers=1, threads_per_worker=2) as workers, distributed.Client(workers) as client:
        there = study().run(client, tmp_path / "there.zarr")
    assert same(here, there) and files(tmp_path / "here.zarr") == files(tmp_path / "there.zarr")
    assert lw.codegen.get_num_threads() == threads


@pytest.mark.slow
def test_a_worker_that_is_killed_loses_nothing_and_changes_no_number(tmp_path):
    flag = tmp_path / "died"
    with cluster(processes=True, n_workers=2, threads_per_worker=1) as workers:
        with distributed.Client(workers) as client:
            study(dying(flag)).run(client, tmp_path / "killed.zarr")
        assert flag.exists()
        again = study(dying(flag)).run(workers.scheduler_address, tmp_path / "address.zarr")  # nobody dies any more
    here = study(dying(flag)).run(store=tmp_path / "here.zarr")
    assert same(again, here)
    assert files(tmp_path / "killed.zarr") == files(tmp_path / "here.zarr") == files(tmp_path / "address.zarr")


@pytest.mark.slow
def test_processes_of_this_machine(tmp_path):
    flag = tmp_path / "died"
    with pytest.raises(st.StudyError, match="the processes that computed them died.* goes on when run again"):
        study(dying(flag)).run(2, tmp_path / "a.zarr")
    found = study(dying(flag)).run(2, tmp_path / "a.zarr")
    assert same(found, study(dying(flag)).run())


@pytest.mark.slow
def test_workers_end_with_the_command_that_started_them(tmp_path):
    """The output is at its end when all that may write to it have ended.  Workers write each line in one call: where
    Python's output is unbuffered, ``print`` makes two, and lines of two processes mix."""
    (tmp_path / "own.py").write_text(
        "import os, time\n\ndef wait(case):\n    os.write(1, b'at work\\n')\n    time.sleep(3600)\n"
    )
    (tmp_path / "study.toml").write_text(
        'mechanism = "builtin:planar_arm:2"\ncases = 2\nchunk = 1\n[function]\nfunction = "own.py:wait"\n'
    )
    command = [sys.executable, "-m", "linkwise", "study", str(tmp_path / "study.toml"), "--processes", "2"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as running:
        late = threading.Timer(
            300.0, running.kill
        )  # a worker that never begins is an empty line, not a test that hangs
        late.start()
        try:
            assert [running.stdout.readline() for _ in range(2)] == ["at work\n"] * 2
            running.terminate()
            assert running.communicate(timeout=120)[0] == "" and running.returncode != 0
        finally:
            late.cancel()
            running.kill()  # where a check failed: it would work for an hour
