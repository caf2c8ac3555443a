"""linkwise export writes what compiles and computes; linkwise bench measures what it says."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw


def test_exported_c_compiles_and_agrees(run, here):
    out = run("export", "builtin:stanford_arm", "forward_dynamics", "-o", "arm dynamics.c", "--name", "arm")
    assert out.startswith("arm dynamics.c: forward_dynamics of stanford_arm, float64; per state add ")
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None:
        pytest.skip("no C compiler")
    subprocess.run([compiler, "-O1", "-shared", "-fPIC", "arm dynamics.c", "-o", "arm.so", "-lm"], check=True)
    mech = lw.mechanisms.stanford_arm()
    q, v = lw.random_state(mech, np.random.default_rng(0))
    tau, a = np.ones(6), np.zeros(6)
    pointers = [x.ctypes.data_as(ctypes.c_void_p) for x in (q, v, tau, a)]
    ctypes.CDLL(str(here / "arm.so")).arm(*pointers)
    np.testing.assert_allclose(a, lw.forward_dynamics(mech, q, v, tau), rtol=1e-12)


def test_other_languages_and_options(run):
    assert "__global__" in run("export", "builtin:chain:2", "mass_matrix", "--language", "cuda")
    assert "define void" in run("export", "builtin:chain:2", "mass_matrix", "--language", "llvm", "--dtype", "float32")
    c = run("export", "builtin:chain:2", "inverse_dynamics", "--parameter", "gravity", "--parameter", "link1.mass")
    assert "gravity" in c and "void inverse_dynamics_batch(" in c
    assert "jacobian" in run("export", "builtin:puma560", "jacobian", "--link", "link6", "--frame", "world")


BAD = [
    (("inverse_dynamic",), "unknown algorithm 'inverse_dynamic': did you mean 'inverse_dynamics'"),
    (("jacobian",), "jacobian needs 'link'"),
    (("jacobian", "--link", "lnik2"), "did you mean 'link2'"),
    (("mass_matrix", "--link", "link2"), "link"),
    (("mass_matrix", "--parameter", "weight"), "weight"),
    (("mass_matrix", "--name", "int"), "C identifier"),
    (("mass_matrix", "--name", "m", "--language", "llvm"), "--name is for C"),
    (("mass_matrix", "-o", "no/folder/m.c"), "there is no folder"),
]


@pytest.mark.parametrize(("options", "message"), BAD, ids=[message[:30] for _, message in BAD])
def test_bad_input_is_one_line(run, options, message):
    assert message in run("export", "builtin:chain:2", *options, fails=True)


# -- bench --------------------------------------------------------------------------------------------


def test_bench_tells_build_threads_and_precision(run, quick):
    text = run("bench", "builtin:planar_arm:2", "--batch", 64, "--dtype", "float32")
    assert f"linkwise {lw.__version__}" in text and "1 thread, float32" in text and "GFLOP/s" in text
    assert all(name in text for name in ("inverse_dynamics", "forward_dynamics", "mass_matrix", "NumPy, interpreted"))


def test_bench_as_json_and_against_peers(run, quick):
    pytest.importorskip("pinocchio")
    found = json.loads(
        run("bench", "builtin:puma560", "--batch", 64, "--threads", 2, "--json", "--algorithm", "forward_dynamics")
    )
    (result,) = found["results"]
    assert found["threads"] == 2 and found["batch"] == 64 and found["peak"] > 1e8
    assert result["operations"] == sum(
        lw.compile("forward_dynamics", lw.mechanisms.puma560(), target="numpy").op_counts.values()
    )
    assert result["batch"] > 0.0 and 0.0 < result["peak_share"] < 1.0
    assert any(name.startswith("Pinocchio") for name in result["against"])


def test_bench_of_a_mechanism_with_loops_says_what_it_measured(run, quick):
    text = run("bench", "builtin:four_bar", "--batch", 32)
    assert "forward_dynamics, loops closed, with NumPy" in text and "mass_matrix, loops open" in text
    found = json.loads(run("bench", "builtin:four_bar", "--batch", 32, "--algorithm", "forward_dynamics", "--json"))
    (result,) = found["results"]
    assert result["batch"] > 0.0 and result["operations"] is None and result["peak_share"] is None


def test_bench_refuses_what_it_cannot_measure(run):
    assert "is for trees; with loops available: forward_dynamics, mass_matrix" in run(
        "bench", "builtin:four_bar", "--algorithm", "inverse_dynamics", fails=True
    )
    assert "computed in float64" in run("bench", "builtin:four_bar", "--dtype", "float32", fails=True)
    assert "--batch" in run("bench", "builtin:chain:2", "--batch", 0, fails=True)


def test_bench_beside_other_libraries(run, here, monkeypatch):
    from benchmarks.speed import comparison

    monkeypatch.setattr(comparison, "best", lambda *calls, **_: [calls[0]() is None or 1e-6])
    text = run("bench", "builtin:double_pendulum", "--peers", "--quick", "--library", "Pinocchio", "--output", "pages")
    assert "rows, another library faster in" in text and "comparison.md" in text
    assert "| forward dynamics | **linkwise**, ns |" in (here / "pages" / "comparison.md").read_text()
    assert "--peers" in run("bench", fails=True)
