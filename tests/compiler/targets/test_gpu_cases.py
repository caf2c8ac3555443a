"""Cases and inputs on which CUDA kernels are checked: valid ones, and a measure that misses nothing."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from benchmarks import gpu_cases
from tests.algorithms import VARIANTS
from tests.compiler.targets import cuda_on_host
from tools import catalogue_on_host

NOWHERE = Path("nowhere")  # built-in mechanisms need no files


def test_what_is_not_finite_is_no_success():
    expected = np.array([1.0, 2.0, np.nan])
    assert gpu_cases.max_error(np.array([1.0, 2.0 + 2e-3, 5.0]), expected) == pytest.approx(1e-3)
    assert gpu_cases.max_error(np.array([1.0, np.nan, np.nan]), expected) == np.inf
    assert gpu_cases.max_error((np.array([np.inf]), expected), (np.ones(1), expected)) == np.inf
    assert gpu_cases.finite_share(expected) == pytest.approx(2 / 3)


def inputs(mech, name, **options):
    kernel = lw.compile(VARIANTS[name], mech, target="numpy", **options)
    return dict(zip(kernel.input_shapes, gpu_cases.states(mech, kernel, 20), strict=True))


def test_inputs_of_closed_mechanisms():
    """Loops are closed but where it is computed what is wrong with them."""
    mech = lw.mechanisms.five_bar()
    found = inputs(mech, "closed_inverse_dynamics")
    assert np.abs(lw.constraints.position_error(mech, found["q"])).max() < 1e-9
    jacobian = lw.constraints.constraint_jacobian(mech, found["q"])
    assert np.abs(jacobian @ found["v"][..., None]).max() < 1e-9
    assert np.isfinite(lw.inverse_dynamics(mech, found["q"], found["v"], found["a"])).all()
    assert np.abs(lw.constraints.position_error(mech, inputs(mech, "position_error")["q"])).max() > 1e-4
    active = inputs(mech, "closed_forward_dynamics_with_active")["active"]
    assert set(np.unique(active)) == {0.0, 1.0}


def test_inputs_of_estimation_are_variances():
    found = inputs(lw.mechanisms.planar_arm(3), "estimate_with_sensors")
    assert all(found[name].min() > 0 for name in ("of_rates", "of_forces", "variances", "weights"))


@pytest.mark.parametrize("dtype", gpu_cases.DTYPES)
def test_cases_are_checked_without_a_gpu(monkeypatch, tmp_path, dtype):
    cupy = cuda_on_host.install(monkeypatch, tmp_path, "-O0")
    case = "five-bar", "constraint_jacobian", dtype, NOWHERE
    assert gpu_cases.check(*case).note == ""
    assert gpu_cases.check("five-bar", "acceleration_parts", dtype, NOWHERE).note.startswith(gpu_cases.OTHER)
    monkeypatch.setattr(cupy, "asnumpy", lambda x: 1.01 * np.asarray(x))
    assert gpu_cases.check(*case).note.startswith(gpu_cases.WRONG)
    monkeypatch.setattr(cupy, "asnumpy", None)
    assert gpu_cases.check(*case).note.startswith(gpu_cases.FAILED)


def test_runs_go_on_where_they_stopped(tmp_path):
    wanted = catalogue_on_host.cases(["five-bar"], ["constraint_jacobian", "position_error"])
    file = tmp_path / "results"
    catalogue_on_host.run_on_host(file, wanted[:1], NOWHERE)
    before = file.read_text()
    catalogue_on_host.run_on_host(file, catalogue_on_host.not_done(file, wanted, again=False), NOWHERE)
    assert file.read_text().startswith(before) and len(file.read_text().splitlines()) == len(wanted) == 4
    lines = catalogue_on_host.report(catalogue_on_host.read(file), catalogue_on_host.cases(["five-bar"], VARIANTS))
    left = len(VARIANTS) - 2
    assert f"| five-bar | float64 | 0 | 2 | 0 | 0 | 0 | {left} |" in lines[3]
    assert sum(line.startswith("- not done") for line in lines) == 2 * left
