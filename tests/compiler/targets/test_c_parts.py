"""Long C in several functions: bounded functions, and the same numbers as the NumPy reference."""

from __future__ import annotations

import ctypes
import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.export import c_file
from linkwise.compiler.targets import c_source, numpy_reference
from linkwise.compiler.targets.c_parts import Lengths, PartedBody
from linkwise.compiler.targets.protocol import Options
from tests.compiler.targets.every_operation import every_operation, random_inputs
from tests.compiler.targets.test_c_source import COMPILER, DTYPES, STRICT, build

needs_compiler = pytest.mark.skipif(COMPILER is None, reason="no C compiler on this machine")


@pytest.fixture
def short_parts(monkeypatch):
    """Parts of five operations, of every program."""
    monkeypatch.setattr(c_source, "LONGEST", 0)
    monkeypatch.setattr(c_source, "FEW", 5)
    monkeypatch.setattr(PartedBody, "lengths", Lengths(5, 5))


def functions(text: str) -> list[str]:
    """The bodies of all functions."""
    return re.findall(r"^\{\n(.*?)^\}$", text, re.DOTALL | re.MULTILINE)


def run(text: str, folder, name: str, inputs, outputs, states: int) -> None:
    library = build(text, folder, [*STRICT, "-O1"])
    pointers = [ctypes.c_void_p(x.ctypes.data) for x in (*inputs, *outputs)]
    library[f"{name}_batch"](ctypes.c_size_t(states), *pointers)


@needs_compiler
@pytest.mark.parametrize("dtype", DTYPES)
def test_every_operation_in_parts(short_parts, dtype, tmp_path):
    """Conditions, constants and inputs as results among them."""
    program, states = every_operation(), 33
    text = c_source.emit(program, Options(dtype=dtype))
    assert text.count("static NOINLINE") > 2
    inputs = [np.ascontiguousarray(x, dtype=dtype) for x in random_inputs((states,))]
    outputs = [np.full((states, *array.shape), np.nan, dtype=dtype) for array in program.outputs]
    run(text, tmp_path, "sample_kernel", inputs, outputs, states)
    eps = np.finfo(dtype).eps
    for got, expected in zip(outputs, numpy_reference.evaluate(program, inputs, dtype), strict=True):
        np.testing.assert_allclose(got, expected, rtol=32 * eps, atol=32 * eps)


@needs_compiler
@pytest.mark.parametrize("name", ["forward_dynamics_derivatives", "rk4_step", "mass_matrix"])
def test_loops_in_parts(short_parts, name, tmp_path):
    """Bodies of nested loops are functions that get their positions."""
    mech = lw.mechanisms.chain(20)
    kernel = lw.compile(name, mech, target="numpy", loops=True)
    text = c_source.emit(kernel.program, Options())
    assert kernel.program.loops and text.count("static NOINLINE") > 2
    rng = np.random.default_rng(3)
    inputs = [rng.uniform(-0.1, 0.1, (4, *shape)) for shape in kernel.input_shapes.values()]
    expected = kernel(*inputs)
    outputs = [np.full((4, *shape), np.nan) for shape in kernel.output_shapes.values()]
    run(text, tmp_path, kernel.program.name, inputs, outputs, 4)
    for got, meant in zip(outputs, expected if isinstance(expected, tuple) else (expected,), strict=True):
        np.testing.assert_allclose(got, meant, rtol=0, atol=1e-11 * np.abs(meant).max())


def test_functions_of_long_programs_are_bounded():
    """Straight-line code of 30,000 operations; the time of a C compiler grows with the longest function."""
    text = c_file("forward_dynamics_derivatives", lw.mechanisms.random_tree(20, 3, floating_base=True), loops=False)
    lengths = [body.count("\n") for body in functions(text)]
    assert sum(lengths) > c_source.LONGEST and max(lengths) < 6 * PartedBody.lengths.part
    assert text == c_file(
        "forward_dynamics_derivatives", lw.mechanisms.random_tree(20, 3, floating_base=True), loops=False
    )


def test_short_programs_are_one_function():
    text = c_file("forward_dynamics", lw.mechanisms.puma560())
    assert "NOINLINE" not in text and len(functions(text)) == 2
