"""Very long CUDA C in several functions: the same numbers as the NumPy reference, by the host's compiler."""

from __future__ import annotations

import math
import re
import shutil
import subprocess

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import gpu
from linkwise.compiler.targets import cuda_spills, numpy_reference
from linkwise.compiler.targets.c_parts import Lengths, cuts
from linkwise.compiler.targets.protocol import Options
from tests.compiler.passes.test_order_limb_by_limb import spider
from tests.compiler.targets import cuda_on_host
from tests.compiler.targets.every_operation import every_operation, random_inputs

DTYPES = ["float64", "float32"]


@pytest.fixture
def short_parts(monkeypatch, tmp_path):
    """Parts of five operations, few registers, and some values in local memory."""
    budget = cuda_spills.Budget(cuda_spills.USUAL, {"double": 3, "float": 3}, 32 * 8 * 12, math.inf)
    monkeypatch.setattr(cuda_spills, "BUDGETS", (budget,))
    monkeypatch.setattr(cuda_spills, "FEW_BYTES", 0)
    monkeypatch.setattr(cuda_spills.SpilledBody, "lengths", Lengths(5, 5))
    return cuda_on_host.install(monkeypatch, tmp_path)


@pytest.mark.parametrize("layout", ["rows", "columns", "every other"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_in_parts(short_parts, dtype, layout):
    """Conditions, sines with their cosines, constants and inputs as results among them."""
    program, inputs = every_operation(), random_inputs((70,))
    apart = lambda x: np.repeat(x, 2, axis=-1)[..., ::2]  # noqa: E731
    lay = {"rows": np.asarray, "columns": np.asfortranarray, "every other": apart}
    found = gpu.load(program, Options(dtype=dtype))(*(short_parts.asarray(lay[layout](x)) for x in inputs))
    assert short_parts.modules[-1].code.count("__noinline__") > 2
    for array, expected in zip(found, numpy_reference.evaluate(program, inputs, dtype), strict=True):
        np.testing.assert_allclose(array, expected, rtol=64 * np.finfo(dtype).eps, atol=64 * np.finfo(dtype).eps)


@pytest.mark.parametrize("name", ["forward_dynamics_derivatives", "closed_forward_dynamics", "rk4_step"])
@pytest.mark.parametrize("dtype", DTYPES)
def test_algorithms_in_parts(short_parts, monkeypatch, dtype, name):
    """Straight on, and within a loop (the stages of a step)."""
    monkeypatch.setattr(cuda_spills.SpilledBody, "lengths", Lengths(5, 60))
    mech = lw.mechanisms.five_bar() if name.startswith("closed") else spider(2, 2)
    kernel, reference = (lw.compile(name, mech, target=target, dtype=dtype) for target in ("cuda", "numpy"))
    rng = np.random.default_rng(1)
    q, v = lw.random_state(mech, rng, (40,))
    given = [q, v, rng.normal(size=v.shape), np.full(40, 1e-3)][: len(reference.input_shapes)]
    found, expected = (x(*(y.astype(dtype) for y in given)) for x in (kernel, reference))
    code = max((module.code for module in short_parts.modules), key=len)
    assert len(parts(code)) > 4 and max(map(len, parts(code))) < 400
    tolerance = {"float64": 1e-10, "float32": 2e-2}[dtype]
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=0, atol=tolerance * np.abs(other).max())


def parts(code: str) -> list[list[str]]:
    """The lines of each function."""
    return [found.splitlines() for found in re.findall(r"void _part\d+\(.*?\n}\n", code, re.DOTALL)]


@pytest.mark.parametrize("name", ["planar_arm", "five_bar"])
def test_rollouts_in_parts(short_parts, monkeypatch, name):
    """What they feed back is handed to the functions."""
    monkeypatch.setattr(cuda_spills.SpilledBody, "lengths", Lengths(5, 40))
    mech = lw.mechanisms.five_bar() if name == "five_bar" else lw.mechanisms.planar_arm(3)
    rng = np.random.default_rng(5)
    q = lw.constraints.assemble(mech, mech.initial) if mech.loops else mech.initial
    v = rng.normal(size=(6, mech.nv))
    q, v = lw.constraints.project(mech, q, v) if mech.loops else (q, v)
    q = np.broadcast_to(q, (6, mech.nq)).copy()
    given = [short_parts.asarray(x) for x in (q, v)]
    found = lw.rollout(mech, *given, None, 1e-3, 10, every=2, target="cuda")
    assert any("__noinline__" in module.code for module in short_parts.modules)
    for one, other in zip(found, lw.rollout(mech, q, v, None, 1e-3, 10, every=2), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


def test_no_cut_between_a_sine_and_its_cosine():
    nodes = [object() for _ in range(6)]
    assert cuts(nodes, {}, Lengths(3, 2)) == {2, 4}
    assert cuts(nodes, {nodes[1]: nodes[2], nodes[2]: nodes[1]}, Lengths(3, 2)) == {3, 4}
    assert not cuts(nodes[:3], {}, Lengths(3, 2))


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("dtype", DTYPES)
def test_nvcc_accepts_parts(short_parts, dtype, tmp_path):
    gpu.load(every_operation(), Options(dtype=dtype))(*map(short_parts.asarray, random_inputs((70,))))
    source, assembly = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    source.write_text(short_parts.modules[-1].code)
    subprocess.run(["nvcc", "-ptx", "-arch=compute_80", "-Werror", "all-warnings", "-o", assembly, source], check=True)
    assert assembly.read_text().count(".func _Z") > 2
