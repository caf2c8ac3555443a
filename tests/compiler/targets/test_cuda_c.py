"""Emitted CUDA C: unchanged text, accepted by nvcc, and the same numbers as the NumPy reference.

Where there is no GPU the kernel's text is compiled by the host's C++ compiler (``cuda_on_host``); that checks
arithmetic, layouts and the meeting of lanes, not the launch on a device.
"""

from __future__ import annotations

import math
import re
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import gpu
from linkwise.compiler.targets import cuda_c, cuda_layout, cuda_spills, cuda_transposition, numpy_reference
from linkwise.compiler.targets.c_expressions import REALS
from linkwise.compiler.targets.protocol import Options
from linkwise.mechanics import scalar
from linkwise.mechanics.algorithms.catalogue import Algorithm
from tests.compiler.passes.test_order_limb_by_limb import spider
from tests.compiler.targets import cuda_on_host
from tests.compiler.targets.every_operation import every_operation, random_inputs

GOLDEN = Path(__file__).parent / "golden"
DTYPES = ["float64", "float32"]

#: Arrays like those of ``every_operation``.
ALGORITHM = Algorithm(
    "sample_kernel",
    ("a", "b"),
    ("c", "d"),
    lambda tree, a, b: ([x + b[0] for x in a], [a[0] * y for y in b]),
    sizes={"a": (3,), "b": (2,)},
)


@pytest.mark.smoke
@pytest.mark.parametrize("dtype", DTYPES)
def test_text_is_the_golden_one(dtype):
    text = cuda_c.emit(every_operation(), Options(dtype=dtype))
    assert text == (GOLDEN / f"every_operation_{dtype}.cu").read_text()


def short_operations():
    """A program with all of ``ops.SHORT``, once it is run."""
    algorithm = Algorithm(
        "short",
        ("a",),
        "b",
        lambda tree, a: [
            scalar.select(1.0 < a[0], 1.0, a[0]),
            scalar.select(a[1] < 2.0, 2.0, a[1]),
            3.0 / scalar.sqrt(a[2]),
        ],
        sizes={"a": (3,)},
    )
    return lw.compile(algorithm, lw.mechanisms.planar_arm(1), target="numpy").program


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("architecture", [75, 80])
@pytest.mark.parametrize("program", [every_operation, short_operations])
@pytest.mark.parametrize("dtype", DTYPES)
def test_nvcc_accepts_the_text(dtype, program, architecture, tmp_path):
    source, assembly = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    source.write_text(cuda_c.emit(program(), Options(dtype=dtype)))
    arguments = [f"-arch=compute_{architecture}", "-Werror", "all-warnings", "-o", assembly, source]
    subprocess.run(["nvcc", "-ptx", *arguments], check=True)
    assert f".entry {cuda_c.function_name(program())}(" in assembly.read_text()


@pytest.mark.parametrize("dtype", DTYPES)
def test_text_is_of_the_program_as_it_is_run(dtype, cupy_on_host):
    text, program = cuda_c.emit(short_operations(), Options(dtype=dtype)), short_operations()
    assert all(name in text for name in ("_minimum(", "_maximum(", "rsqrt")) and "sqrt(" not in text.replace(
        "rsqrt", ""
    )
    a = np.array([[0.5, 1.0, 4.0], [7.0, 8.0, 0.25], [np.nan, np.nan, np.nan]])
    expected = np.array([[0.5, 2.0, 1.5], [1.0, 8.0, 6.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(gpu.load(program, Options(dtype=dtype))(a), expected)


@pytest.fixture
def cupy_on_host(monkeypatch, tmp_path):
    return cuda_on_host.install(monkeypatch, tmp_path)


@pytest.mark.parametrize("batch", [(), (300,), (2, 0, 3), (4, 5)], ids=str)
@pytest.mark.parametrize("dtype", DTYPES)
def test_kernel_agrees_with_the_reference(cupy_on_host, dtype, batch):
    program = every_operation()
    q = random_inputs(batch)[0]
    masses = random_inputs((1,))[1]  # broadcast against the batch of q
    got = gpu.load(program, Options(dtype=dtype))(q, masses)
    eps = np.finfo(dtype).eps
    for array, expected in zip(got, numpy_reference.evaluate(program, [q, masses], dtype), strict=True):
        assert type(array) is np.ndarray and array.dtype == dtype and array.shape == expected.shape
        np.testing.assert_allclose(array, expected, rtol=32 * eps, atol=32 * eps)


@pytest.fixture
def few_registers(monkeypatch):
    """Most values wait in shared memory, some in local memory."""
    budget = cuda_spills.Budget(cuda_spills.USUAL, {"double": 3, "float": 3}, 32 * 8 * 12, math.inf)
    monkeypatch.setattr(cuda_spills, "BUDGETS", (budget,))
    monkeypatch.setattr(cuda_spills, "FEW_BYTES", 0)


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_that_registers_have_no_room_for(cupy_on_host, few_registers, dtype):
    """Conditions, sines with their cosines, constants and inputs as results among them."""
    program = every_operation()
    q, masses = random_inputs((70,))
    got = gpu.load(program, Options(dtype=dtype))(q, masses)
    plain, *_, module = cupy_on_host.modules  # as compiled, values stay far away; so it is compiled again
    assert "_near[" not in plain.code and "_near[" in module.code and "blocks of 32 threads" in module.code
    assert "_tiles[" in module.code  # there is room for rows beside the values that wait
    eps = np.finfo(dtype).eps
    for array, expected in zip(got, numpy_reference.evaluate(program, [q, masses], dtype), strict=True):
        np.testing.assert_allclose(array, expected, rtol=32 * eps, atol=32 * eps)


def test_states_that_shared_memory_has_no_room_for(cupy_on_host, few_registers):
    """Those carried over time are then kept in local memory, whatever arrays are like."""
    mech = lw.mechanisms.chain(7)
    q, v, tau = np.random.default_rng(3).normal(size=(3, 2, 3, mech.nv))
    given = q, v, tau[:1, :, None]  # two axes of the batch: no rows
    found = lw.rollout(mech, *given, 1e-3, 3, "semi_implicit", target="cuda")
    assert "volatile double _now_q[7]" in cupy_on_host.modules[-1].code
    for ours, theirs in zip(found, lw.rollout(mech, *given, 1e-3, 3, "semi_implicit"), strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_pass_through_the_places_of_values_that_wait(cupy_on_host, few_registers, monkeypatch, dtype):
    """Where these leave no room for tiles: whole rows or as many columns at a time as there are places for."""
    monkeypatch.setattr(gpu, "BESIDE", 0)
    mech, tolerance = lw.mechanisms.puma560(), {"float64": 1e-9, "float32": 2e-3}[dtype]
    kernel = lw.compile("forward_dynamics_derivatives", mech, dtype=dtype, target="cuda")
    on_cpu = lw.compile("forward_dynamics_derivatives", mech, dtype=dtype)
    for batch in (2, 32, 77):
        given = np.random.default_rng(batch).normal(size=(3, batch, mech.nv)).astype(dtype)
        found, expected = kernel(*map(cupy_on_host.asarray, given)), on_cpu(*given)
        assert np.abs(found - expected).max() < tolerance * np.abs(expected).max()
    code = cupy_on_host.modules[-1].code
    assert "_tiles[" not in code and code.count("_give<16>(_passing") == 6 and "_give<12>(_passing" in code
    monkeypatch.setattr(cuda_layout, "MOST_PASSING", 108 * given.itemsize - 1)
    lw.compile("forward_dynamics_derivatives", mech, dtype=dtype, target="cuda")(*map(cupy_on_host.asarray, given))
    assert "_give<" not in cupy_on_host.modules[-1].code  # what the second-level cache has no room for


@pytest.mark.parametrize("dtype", DTYPES)
def test_results_take_the_place_of_inputs_in_tiles(cupy_on_host, few_registers, monkeypatch, dtype):
    """Those that are read until later are written at the end."""
    monkeypatch.setattr(cuda_layout, "LINE_BYTES", 64)

    def mixed(tree, a, b):
        total = sum(x * y for x, y in zip(a, b, strict=True))
        return [x * total + y * z for x, y, z in zip(a[::-1], b, a, strict=True)], b[::-1]

    sizes = dict.fromkeys("abcd", (20,))
    kernel = lw.compile(
        Algorithm("mixed", ("a", "b"), ("c", "d"), mixed, sizes=sizes),
        lw.mechanisms.planar_arm(1),
        target="cuda",
        dtype=dtype,
    )
    for batch in (2, 32, 77):
        a, b = np.random.default_rng(batch).normal(size=(2, batch, 20)).astype(dtype)
        c, d = kernel(cupy_on_host.asarray(a), cupy_on_host.asarray(b))
        np.testing.assert_array_equal(d, b[:, ::-1])
        expected = a[:, ::-1] * (a * b).sum(-1, keepdims=True) + a * b
        np.testing.assert_allclose(c, expected, rtol=0, atol=1e3 * np.finfo(dtype).eps)
    code = cupy_on_host.modules[-1].code
    tiles = re.findall(r"_(?:stage|deliver)<20>\(_tile \+ (\d+), (\w)", code)
    assert tiles == [("0", "a"), ("672", "b"), ("672", "c"), ("0", "d")]


@pytest.mark.parametrize("left, compiled", [({False: 190, True: 0}, 1), ({False: 2000, True: 1800}, 2)])
def test_values_stay_where_the_compiler_leaves_them(cupy_on_host, few_registers, monkeypatch, left, compiled):
    """Where they are few, or shared memory has no room for most of them."""
    get = cupy_on_host.RawModule.get_function

    def reported(module, name):
        function = get(module, name)
        function.local_size_bytes = left["_waiting" in module.code]
        return function

    monkeypatch.setattr(cupy_on_host.RawModule, "get_function", reported)
    q, masses = random_inputs((70,))
    kernel = gpu.load(every_operation(), Options())
    got = kernel(cupy_on_host.asarray(q), cupy_on_host.asarray(masses))
    assert len(cupy_on_host.modules) == compiled + 1 and "_near[" not in cupy_on_host.modules[-1].code
    for array, expected in zip(got, numpy_reference.evaluate(every_operation(), [q, masses], "float64"), strict=True):
        np.testing.assert_allclose(array, expected, rtol=1e-14, atol=1e-14)


def test_forward_dynamics_and_rollouts_with_few_registers(cupy_on_host, few_registers):
    mech = lw.mechanisms.puma560()
    rng = np.random.default_rng(3)
    q, v, tau = rng.normal(size=(3, 40, mech.nv))
    expected = lw.forward_dynamics(mech, q, v, tau)
    found = lw.compile("forward_dynamics", mech, target="cuda")(q, v, tau)
    np.testing.assert_allclose(found, expected, rtol=1e-10)
    assert "_far[" in cupy_on_host.modules[-1].code and "_tiles[" in cupy_on_host.modules[-1].code
    options = {"method": "rk4", "final_only": True}
    ends = lw.rollout(mech, q, v, tau[:, None], 1e-3, 5, target="cuda", **options)
    assert "_near[" in cupy_on_host.modules[-1].code
    wanted = lw.rollout(mech, q, v, tau[:, None], 1e-3, 5, **options)
    for ours, theirs in zip(ends, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-10, atol=1e-12)


@pytest.mark.slow_cases("rows")
@pytest.mark.parametrize("layout", ["rows", "columns"])
def test_sines_of_long_programs_come_from_a_loop(cupy_on_host, few_registers, monkeypatch, layout):
    """Angles with constants added to them among them; the quaternion of the base has none."""
    monkeypatch.setattr(cuda_spills, "CACHED", 0)
    (budget,) = cuda_spills.BUDGETS
    monkeypatch.setattr(cuda_spills, "BUDGETS", (replace(budget, near=32 * 8 * 40),))
    mech = spider(3, 3)
    rng = np.random.default_rng(4)
    q, v = lw.random_state(mech, rng, (40,))
    tau = rng.normal(size=v.shape)
    given = [x if layout == "rows" else np.asfortranarray(x) for x in (q, v, tau)]
    found = lw.compile("forward_dynamics", mech, target="cuda")(*(cupy_on_host.asarray(x) for x in given))
    np.testing.assert_allclose(np.asarray(found), lw.forward_dynamics(mech, q, v, tau), rtol=1e-10)
    text = cupy_on_host.modules[-1].code
    assert "_angles[9]" in text and text.count("_sincos(") == 2  # its definition, and the loop
    if layout == "columns":
        return
    options = {"method": "semi_implicit", "final_only": True}
    ends = lw.rollout(mech, q, v, tau[:, None], 1e-3, 3, target="cuda", **options)
    wanted = lw.rollout(mech, q, v, tau[:, None], 1e-3, 3, **options)
    for ours, theirs in zip(ends, wanted, strict=True):
        np.testing.assert_allclose(np.asarray(ours), theirs, rtol=1e-10, atol=1e-12)


def test_as_many_warps_as_registers_and_shared_memory_allow():
    """Most for a program whose values fit into fewer registers and shared memory; few where local memory would be used
    often; the compiler hears of more warps than it would leave registers for."""
    real, options = REALS["float64"], Options()
    programs = {
        12: ("inverse_dynamics", spider(9, 3)),
        8: ("forward_dynamics", spider(5, 5)),
        4: ("forward_dynamics_derivatives", spider(2, 3)),
    }
    for warps, (name, mech) in programs.items():
        program = cuda_c.ordered(lw.compile(name, mech, target="numpy", loops=False).program, options)
        assert cuda_spills.are_needed(program, real)
        assert cuda_spills.allocate_slots(program, real, 12).warps == warps, name
        text = cuda_c.emit(
            program,
            options,
            cuda_layout.choose_layout(program, options, in_rows=(False,) * len((*program.inputs, *program.outputs))),
        )
        assert ("__launch_bounds__(32, 12)" in text) == (warps == 12)


def test_device_arrays_stay_on_the_device(cupy_on_host):
    q, masses = random_inputs((7,))
    results = gpu.load(every_operation(), Options())(cupy_on_host.asarray(q), masses)
    assert all(isinstance(array, cupy_on_host.ndarray) for array in results)


def test_results_are_written_to_given_arrays(cupy_on_host):
    """Of either library and of lower precision, like a ufunc's; what is left out is new."""
    q, masses = random_inputs((7,))
    kernel = gpu.load(every_operation(), Options())
    expected = kernel(q, masses)
    for inputs in ((q, masses), (cupy_on_host.asarray(q), masses)):
        first = np.full(expected[0].shape, np.nan, np.float32)
        second = cupy_on_host.asarray(np.full((*expected[1].shape, 2), np.nan))[..., 0]  # strided, on the device
        found = kernel(*inputs, out=(first, second))
        assert found[0] is first and found[1] is second
        np.testing.assert_array_equal(first, expected[0].astype(np.float32))
        np.testing.assert_array_equal(second, expected[1])
        only = kernel(*inputs, out=(None, second))
        assert only[1] is second and isinstance(only[0], type(inputs[0]))
        np.testing.assert_array_equal(only[0], expected[0])


@pytest.mark.parametrize("device", [False, True])
def test_arrays_that_results_do_not_fit_are_refused(cupy_on_host, device):
    q, masses = random_inputs((7,))
    kernel = gpu.load(every_operation(), Options())
    shapes = [array.shape for array in kernel(q, masses)]
    new = (lambda *a: cupy_on_host.asarray(np.zeros(*a))) if device else np.zeros
    with pytest.raises(TypeError, match="same_kind"):
        kernel(q, masses, out=(new(shapes[0], int), None))
    with pytest.raises(ValueError, match="broadcast"):
        kernel(q, masses, out=(new((3, *shapes[0][1:])), None))
    with pytest.raises(ValueError, match="broadcast"):
        kernel(q, masses, out=(new(shapes[0][::-1]), None))  # as many elements
    for out in (new(shapes[0]), (None,)):
        with pytest.raises(ValueError, match="out must have 2 arrays, one for each result, not 1"):
            kernel(q, masses, out=out)


def test_a_compiled_kernel_writes_to_out(cupy_on_host):
    """Through ``compile``, which names the fault of an array."""
    mech = lw.mechanisms.planar_arm(1)
    kernel = lw.compile(ALGORITHM, mech, target="cuda")
    q, masses = random_inputs((4,))
    out = np.empty((4, 3))
    assert kernel(q, masses, out=(out, None))[0] is out
    np.testing.assert_allclose(out, q + masses[:, :1], rtol=1e-15)
    for wrong, fault in (
        (np.empty(3), "has shape"),
        (np.empty((4, 3), int), "has dtype int64"),
        ([0.0], "is no array"),
    ):
        with pytest.raises(lw.KernelError, match=f"sample_kernel: out {fault}.*shape \\(4, 3\\) and dtype float64"):
            kernel(q, masses, out=(wrong, None))


class OnDevice:
    """What NumPy sees of an array on a GPU: it must not be converted behind one's back."""

    def __init__(self, shape: tuple[int, ...], typestr: str = "<f8"):
        self.__cuda_array_interface__ = {"shape": shape, "typestr": typestr}

    def __array__(self, *arguments, **options):
        raise TypeError("implicit conversion")


def test_faults_of_arrays_on_the_device_are_named(cupy_on_host):
    kernel = lw.compile(ALGORITHM, lw.mechanisms.planar_arm(1), target="cuda")
    q, masses = random_inputs((4,))
    with pytest.raises(lw.KernelError, match=r"a has shape \(4, 5\), expected \(..., 3\)"):
        kernel(OnDevice((4, 5)), masses)
    with pytest.raises(lw.KernelError, match="b has dtype complex128"):
        kernel(q, OnDevice((4, 2), "<c16"))
    with pytest.raises(lw.KernelError, match=r"out has shape \(3,\)"):
        kernel(q, masses, out=(OnDevice((3,)), None))
    with pytest.raises(lw.KernelError, match="out has dtype int64"):
        kernel(q, masses, out=(OnDevice((4, 3), "<i8"), None))


def test_numbers_that_are_not_real_are_refused(cupy_on_host):
    kernel = gpu.load(every_operation(), Options())
    with pytest.raises(TypeError, match="input q has dtype complex128"):
        kernel(np.zeros(3, complex), np.zeros(2))


def test_wrong_arguments_are_named(cupy_on_host):
    kernel = gpu.load(every_operation(), Options())
    with pytest.raises(TypeError, match=r"2 arrays \(q, t1\), 1 were given"):
        kernel(np.zeros(3))
    with pytest.raises(ValueError, match=r"input t1 must have trailing dimensions \(2,\)"):
        kernel(np.zeros(3), np.zeros(5))


def test_without_a_device_the_error_says_so(cupy_on_host):
    cupy_on_host.cuda.runtime.getDeviceCount = lambda: 0
    with pytest.raises(RuntimeError, match=r"NVIDIA GPU.*linkwise\[cuda\]"):
        gpu.load(every_operation(), Options())


def test_without_cupy_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "cupy", None)
    with pytest.raises(ImportError, match=r"linkwise\[cuda\]"):
        gpu.load(every_operation(), Options())


# -- layouts ------------------------------------------------------------------------------------------------


def columns(x):
    """The same numbers with the states side by side: (n, batch) in memory."""
    return np.ascontiguousarray(np.moveaxis(x, 0, -1)).transpose(x.ndim - 1, *range(x.ndim - 1))


LAYOUTS = {
    "rows": lambda x: x,
    "columns": columns,
    "parts of longer rows": lambda x: np.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
    "every other": lambda x: np.repeat(np.repeat(x, 2, axis=0), 2, axis=-1)[::2, ..., ::2],
    "backwards": lambda x: np.ascontiguousarray(x[::-1, ..., ::-1])[::-1, ..., ::-1],
}


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("dtype", DTYPES)
def test_arrays_are_read_and_written_where_they_lie(cupy_on_host, dtype, layout):
    """Neither inputs nor results are copied, whatever their strides."""
    program, lay = every_operation(), LAYOUTS[layout]
    inputs = [x.astype(dtype) for x in random_inputs((77,))]
    expected = numpy_reference.evaluate(program, inputs, dtype)
    device = [cupy_on_host.asarray(lay(x)) for x in inputs]
    out = tuple(
        cupy_on_host.asarray(lay(np.full_like(x, np.nan)) if x.ndim > 1 else np.zeros_like(x)) for x in expected
    )
    kernel = gpu.load(program, Options(dtype=dtype))
    cupy_on_host.empty = None
    found = kernel(*device, out=out)
    assert all(x is y for x, y in zip(found, out, strict=True))
    eps = np.finfo(dtype).eps
    for array, values in zip(found, expected, strict=True):
        np.testing.assert_allclose(array, values, rtol=32 * eps, atol=32 * eps)
    (module,) = cupy_on_host.modules
    assert ("_deliver<8>" in module.code) == (layout == "rows")


def test_batches_of_several_axes_that_are_no_single_one(cupy_on_host):
    program, (q, masses) = every_operation(), random_inputs((5, 7, 3))
    device = cupy_on_host.asarray(np.ascontiguousarray(q.transpose(2, 0, 1, 3)).transpose(1, 2, 0, 3))
    found = gpu.load(program, Options())(device, masses[0, :, :1])
    expected = numpy_reference.evaluate(program, [q, masses[0, :, :1]], "float64")
    for array, values in zip(found, expected, strict=True):
        np.testing.assert_allclose(array, values, rtol=1e-14, atol=1e-14)


def test_code_is_compiled_once_for_a_layout(cupy_on_host):
    kernel = gpu.load(every_operation(), Options())
    for batch in (3, 40, 40, 300):
        kernel(*random_inputs((batch,)))
    assert len(cupy_on_host.modules) == 1
    kernel(random_inputs((9,))[0], random_inputs(())[1])  # one of them broadcast, which is a stride of zero
    assert len(cupy_on_host.modules) == 1


@pytest.mark.parametrize("batch", [1, 32, 77])
@pytest.mark.parametrize("longer", [0, 3])
def test_long_rows_go_through_tiles(cupy_on_host, batch, longer):
    sizes = {"a": (20,), "b": (33,)}
    algorithm = Algorithm(
        "long_rows", ("a", "b"), "c", lambda tree, a, b: [x * y for x, y in zip(a, b, strict=False)], sizes=sizes
    )
    a, b = (np.random.default_rng(0).normal(size=(batch, n + longer))[:, :n] for n in (20, 33))
    kernel = lw.compile(algorithm, lw.mechanisms.planar_arm(1), target="cuda")
    np.testing.assert_array_equal(kernel(cupy_on_host.asarray(a), cupy_on_host.asarray(b)), a * b[:, :20])
    (module,) = cupy_on_host.modules
    assert ("_stage<20>" in module.code) == (batch > 1) and "_stage<20>" in kernel.source("cuda")


@pytest.mark.slow_cases("float32-1]", "float32-32]", "float32-77]", "float64-32]")
@pytest.mark.parametrize("batch", [1, 32, 77, 200])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rows_that_no_tile_has_room_for_are_transposed(cupy_on_host, monkeypatch, dtype, batch):
    """Some states at a time, each result in its own memory; results in columns are written as they are."""
    monkeypatch.setattr(cuda_transposition, "LEAST_STATES", 64)
    monkeypatch.setattr(cuda_transposition, "NEAR_BYTES", 0)
    size = 450
    algorithm = Algorithm(
        "outer", ("a", "b"), ("c", "d"), lambda tree, a, b: ([[x * y for y in b] for x in a], a), sizes=SIZES_OF_OUTER
    )
    rng = np.random.default_rng(0)
    a, b = (rng.normal(size=(batch, n)).astype(dtype) for n in (size // 15, 15))
    kernel = lw.compile(algorithm, lw.mechanisms.planar_arm(1), target="cuda", dtype=dtype)
    given = [cupy_on_host.asarray(x) for x in (a, b)]
    expected = a[:, :, None] * b[:, None, :]
    for _ in range(2):  # the second is a call like one before
        c, d = kernel(*given)
        np.testing.assert_array_equal(c, expected)
        np.testing.assert_array_equal(d, a)
    assert any(cuda_transposition.NAME in module.code for module in cupy_on_host.modules) == (batch > 1)
    wide = cupy_on_host.asarray(np.full((batch, 30, 16), np.nan, dtype))[..., :15]  # rows with gaps: no single pieces
    rows = cupy_on_host.asarray(np.full((batch, 2, 30, 15), np.nan, dtype))[:, 0]
    across = cupy_on_host.asarray(np.full((30, 15, batch), np.nan, dtype)).transpose(2, 0, 1)
    for out in (wide, rows, across):
        kernel(*given, out=(out, cupy_on_host.asarray(np.empty_like(a))))
        np.testing.assert_array_equal(out, expected)


SIZES_OF_OUTER = {"a": (30,), "b": (15,), "c": (30, 15), "d": (30,)}


def test_results_over_inputs(cupy_on_host):
    """As with NumPy's ufuncs: inputs are read before the results that take their place."""
    mech = lw.mechanisms.planar_arm(2)
    kernel, rng = lw.compile("forward_dynamics", mech, target="cuda"), np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 50, 2))
    expected = lw.forward_dynamics(mech, q, v, tau)
    for lay in (np.asarray, columns):
        q_, v_, tau_ = (cupy_on_host.asarray(lay(x.copy())) for x in (q, v, tau))
        np.testing.assert_allclose(kernel(q_, v_, tau_, out=v_), expected, rtol=1e-12)


@pytest.mark.parametrize(
    "name", ["forward_dynamics_derivatives", "mass_matrix", "link_poses", "closed_forward_dynamics"]
)
def test_algorithms(cupy_on_host, name):
    mech = lw.mechanisms.five_bar() if name.startswith("closed") else lw.mechanisms.puma560()
    own, reference = (lw.compile(name, mech, target=target) for target in ("cuda", "numpy"))
    rng = np.random.default_rng(1)
    arrays = [rng.uniform(-1.0, 1.0, (33, *shape)) for shape in reference.input_shapes.values()]
    found, expected = own(*arrays), reference(*arrays)
    for one, other in zip(*(x if isinstance(x, tuple) else (x,) for x in (found, expected)), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9 * np.abs(other).max())


def test_elements_at_equal_distances_or_not(cupy_on_host):
    """One stride where elements in C order are as far apart as their neighbours are; as many as there are axes else."""
    mech = lw.mechanisms.planar_arm(3)
    q = np.random.default_rng(0).normal(size=(33, 3))
    expected = lw.mass_matrix(mech, q)
    kernel = lw.compile("mass_matrix", mech, target="cuda")
    even = [np.empty((3, 3, 33)).transpose(2, 0, 1), np.empty((33, 3, 6))[..., ::2]]
    uneven = [np.empty((33, 3, 3)).swapaxes(1, 2), np.empty((33, 3, 4))[..., :3], np.empty((33, 3, 3))[:, ::-1, ::-1]]
    for each, outs in ((True, even), (False, uneven)):
        for out in outs:
            kernel(q, out=out.view(cuda_on_host.DeviceArray))
            assert ("_mass_matrix__each]" in cupy_on_host.modules[-1].code) == each
            np.testing.assert_allclose(out, expected, rtol=1e-12, atol=1e-12)


# -- over time --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("final_only", [False, True])
@pytest.mark.parametrize("dtype", DTYPES)
def test_rollouts(cupy_on_host, dtype, final_only):
    mech, rng = lw.mechanisms.planar_arm(2), np.random.default_rng(3)
    q, v = (x.astype(dtype) for x in lw.random_state(mech, rng, (37,)))
    tau = rng.normal(size=(37, 6, 2)).astype(dtype)
    feedback = {"target": np.zeros((37, 1, 2), dtype), "kp": 3.0, "kd": np.ones((37, 2), dtype)}
    options = {"final_only": True} if final_only else {"every": 2}
    options |= {"feedback": feedback, "parameters": {"mass": rng.uniform(1.0, 2.0, (37, 2)).astype(dtype)}}
    found = lw.rollout(mech, q, v, tau, 0.01, 6, target="cuda", **options)
    expected = lw.rollout(mech, q, v, tau, 0.01, 6, target="numpy", **options)
    tolerance = 1e-12 if dtype == "float64" else 2e-5
    for one, other in zip(found, expected, strict=True):
        assert type(one) is np.ndarray and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def test_rollouts_of_arrays_on_the_device_stay_there(cupy_on_host):
    mech, rng = lw.mechanisms.planar_arm(2), np.random.default_rng(3)
    q, v = lw.random_state(mech, rng, (5,))
    found = lw.rollout(mech, cupy_on_host.asarray(q), cupy_on_host.asarray(v), None, 0.01, 4, target="cuda")
    assert all(isinstance(x, cupy_on_host.ndarray) for x in found)
    for one, other in zip(found, lw.rollout(mech, q, v, None, 0.01, 4), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", ["five_bar", pytest.param("stewart_platform", marks=pytest.mark.slow)])
def test_rollouts_of_closed_mechanisms(cupy_on_host, name):
    """What cannot be relied on there is made again on the CPU."""
    mech, rng = getattr(lw.mechanisms, name)(), np.random.default_rng(5)
    q = lw.constraints.assemble(mech, mech.initial)
    q, v = lw.constraints.project(mech, q, rng.normal(size=(6, mech.nv)))
    q = np.broadcast_to(q, (6, mech.nq)).copy()
    given = [cupy_on_host.asarray(x) for x in (q, v)]
    found = lw.rollout(mech, *given, None, 1e-3, 20, every=2, target="cuda")
    assert all(isinstance(x, cupy_on_host.ndarray) for x in found)
    for one, other in zip(found, lw.rollout(mech, q, v, None, 1e-3, 20, every=2), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::linkwise.MechanismWarning")
def test_rollouts_of_closed_mechanisms_through_singular_positions(cupy_on_host):
    mech = lw.mechanisms.four_bar(1.0, 1.0, 1.0, 1.0)
    q = lw.constraints.assemble(mech, np.zeros(mech.nq) + 0.3)
    v = lw.constraints.project(mech, q, np.array([[-3.0, 0, 0], [0.1, 0, 0]]))[1]
    q = np.broadcast_to(q, v.shape).copy()
    found = lw.rollout(mech, cupy_on_host.asarray(q), cupy_on_host.asarray(v), None, 0.01, 40, target="cuda")
    for one, other in zip(found, lw.rollout(mech, q, v, None, 0.01, 40), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-9)


def test_open_loops_are_refused_on_the_device_too(cupy_on_host):
    mech = lw.mechanisms.five_bar()
    q = cupy_on_host.asarray(np.full((3, mech.nq), 0.7))
    with pytest.raises(lw.constraints.AssemblyError, match="is open by"):
        lw.rollout(mech, q, cupy_on_host.asarray(np.zeros((3, mech.nv))), None, 1e-3, 2, target="cuda")
