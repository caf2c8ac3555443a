"""Emitted C: unchanged text, and compiled, the same numbers as the NumPy reference."""

from __future__ import annotations

import ctypes
import shutil
import subprocess
from pathlib import Path

import numpy as np
import pytest

from linkwise.compiler.ir.builder import Builder
from linkwise.compiler.ir.program import Array, Program
from linkwise.compiler.targets import c_source, numpy_reference
from linkwise.compiler.targets.c_expressions import REALS, identifier
from linkwise.compiler.targets.protocol import Options
from tests.compiler.targets.every_operation import every_operation, random_inputs
from tests.compiler.targets.sample_programs import forward_dynamics, random_program

GOLDEN = Path(__file__).parent / "golden"
COMPILER = shutil.which("cc") or shutil.which("gcc")
DTYPES = ["float64", "float32"]
STRICT = ["-std=c99", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]


def build(source: str, folder: Path, flags: list[str]) -> ctypes.CDLL:
    text, library = folder / "kernel.c", folder / "kernel.so"
    text.write_text(source)
    subprocess.run([COMPILER, *flags, "-shared", "-fPIC", "-o", library, text, "-lm"], check=True)
    return ctypes.CDLL(str(library))


@pytest.mark.parametrize("dtype", DTYPES)
def test_text_is_the_golden_one(dtype):
    text = c_source.emit(every_operation(), Options(dtype=dtype))
    assert text == (GOLDEN / f"every_operation_{dtype}.c").read_text()


@pytest.mark.smoke_cases("float64--O2]")
@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("flags", [["-O0"], ["-O2"], ["-O2", "-mfma"]], ids=" ".join)
@pytest.mark.parametrize("dtype", DTYPES)
def test_compiled_batch_agrees_with_the_reference(dtype, flags, tmp_path):
    if "-mfma" in flags and "fma" not in Path("/proc/cpuinfo").read_text().split():
        pytest.skip("this processor has no fused multiply-add")
    program, states = every_operation(), 257
    library = build(c_source.emit(program, Options(dtype=dtype)), tmp_path, STRICT + flags)
    inputs = [np.ascontiguousarray(x, dtype=dtype) for x in random_inputs((states,))]
    outputs = [np.full((states, *array.shape), np.nan, dtype=dtype) for array in program.outputs]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in inputs + outputs]
    library.sample_kernel_batch(ctypes.c_size_t(states), *pointers)
    eps = np.finfo(dtype).eps
    for got, expected in zip(outputs, numpy_reference.evaluate(program, inputs, dtype), strict=True):
        np.testing.assert_allclose(got, expected, rtol=32 * eps, atol=32 * eps)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
def test_compiled_single_state_is_a_row_of_the_batch(tmp_path):
    program = every_operation()
    library = build(c_source.emit(program, Options()), tmp_path, STRICT)
    inputs = random_inputs(())
    outputs = [np.full(array.shape, np.nan) for array in program.outputs]
    library.sample_kernel(*(ctypes.c_void_p(x.ctypes.data) for x in inputs + outputs))
    for got, expected in zip(outputs, numpy_reference.evaluate(program, inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-14, atol=1e-14)


@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
@pytest.mark.parametrize("program", [random_program(1), random_program(2), forward_dynamics(6)], ids=lambda p: p.name)
def test_compiled_longer_programs_agree_with_the_reference(program, tmp_path):
    library = build(c_source.emit(program, Options()), tmp_path, STRICT + ["-O1"])
    rng = np.random.default_rng(5)
    inputs = [rng.uniform(-2.0, 2.0, (50, *array.shape)) for array in program.inputs]
    outputs = [np.full((50, *array.shape), np.nan) for array in program.outputs]
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in inputs + outputs]
    library[f"{program.name}_batch"](ctypes.c_size_t(50), *pointers)
    for got, expected in zip(outputs, numpy_reference.evaluate(program, inputs), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-12, atol=1e-12 * np.abs(expected).max())


@pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")
def test_an_unused_input_compiles_without_warnings(tmp_path):
    b = Builder()
    used = b.input(1, 0)
    program = Program((Array("idle", (2,)), Array("x", (1,))), (Array("y", (1,)),), (used,), ((used,),), "copy")
    library = build(c_source.emit(program, Options()), tmp_path, STRICT)
    idle, x, y = np.zeros(2), np.array([3.5]), np.zeros(1)
    library.copy(*(ctypes.c_void_p(array.ctypes.data) for array in (idle, x, y)))
    assert y[0] == 3.5


@pytest.mark.parametrize("value", [0.1, -2.0 / 3.0, 5e-324, 1.7976931348623157e308, 1e22, 3.0])
def test_double_literals_are_exact(value):
    assert float(REALS["float64"].literal(value)) == value


@pytest.mark.parametrize("value", [0.1, -2.0 / 3.0, 1e-45, 3.4028234e38, 1e22, 3.0, 16777217.0])
def test_float_literals_are_exact(value):
    literal = REALS["float32"].literal(value)
    assert literal.endswith("f") and ("." in literal or "e" in literal)
    assert np.float32(literal[:-1]) == np.float32(value)


def test_constants_out_of_range_for_float_are_refused():
    with pytest.raises(OverflowError, match="float64"):
        REALS["float32"].literal(1e39)


def test_unknown_dtype_is_refused():
    with pytest.raises(ValueError, match="float16.*float64"):
        c_source.emit(every_operation(), Options(dtype="float16"))


def test_identifiers_are_legal_and_distinct():
    taken: set[str] = {"while"}
    names = [identifier(name, taken) for name in ("while", "q", "q", "3dof", "t12", "_x", "forearm.mass", "")]
    assert len(set(names)) == len(names)
    assert all(name.isidentifier() and not name.startswith("_") for name in names)
    assert "while" not in names and "t12" not in names


def test_array_names_do_not_clash_with_elements():
    b = Builder()
    element = b.add(b.input(0, 0), b.input(1, 0))
    arrays = (Array("q", (1,)), Array("q_0", (1,)))
    program = Program(arrays, (Array("q", (1,)),), (*element.args, element), ((element,),), "clash")
    text = c_source.emit(program, Options())
    assert "const double q_0_ = q[0];" in text
    assert "void clash(const double *restrict q, const double *restrict q_0, double *restrict q_)" in text
