"""Emitted CUDA C: unchanged text, accepted by nvcc, and the same numbers as the NumPy reference.

Where there is no GPU the kernel's text is compiled by the host's C++ compiler, with a shim that gives
every state its turn as a thread; that checks arithmetic and layout, not the launch on a device.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import gpu
from linkwise.compiler.targets import cuda_c, numpy_reference
from linkwise.compiler.targets.protocol import Options
from linkwise.mechanics.algorithms.catalogue import Algorithm
from tests.compiler.targets.every_operation import every_operation, random_inputs

GOLDEN = Path(__file__).parent / "golden"
HOST_COMPILER = shutil.which("c++") or shutil.which("g++")
DTYPES = ["float64", "float32"]

SHIM = """
#include <math.h>
#include <stddef.h>
#define __global__
struct Index {{ unsigned x; }};
static Index blockIdx, blockDim, threadIdx;
{source}
extern "C" void launch(
    unsigned blocks, unsigned threads, size_t n, const {real} *a, const {real} *b, {real} *c, {real} *d)
{{
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
            sample_kernel(n, a, b, c, d);
}}
"""


#: Arrays like those of ``every_operation``, which the shim launches.
ALGORITHM = Algorithm(
    "sample_kernel",
    ("a", "b"),
    ("c", "d"),
    lambda tree, a, b: ([x + b[0] for x in a], [a[0] * y for y in b]),
    sizes={"a": (3,), "b": (2,)},
)


@pytest.mark.parametrize("dtype", DTYPES)
def test_text_is_the_golden_one(dtype):
    text = cuda_c.emit(every_operation(), Options(dtype=dtype))
    assert text == (GOLDEN / f"every_operation_{dtype}.cu").read_text()


@pytest.mark.skipif(shutil.which("nvcc") is None, reason="nvcc is not installed")
@pytest.mark.parametrize("dtype", DTYPES)
def test_nvcc_accepts_the_text(dtype, tmp_path):
    source, assembly = tmp_path / "kernel.cu", tmp_path / "kernel.ptx"
    source.write_text(cuda_c.emit(every_operation(), Options(dtype=dtype)))
    subprocess.run(["nvcc", "-ptx", "-Werror", "all-warnings", "-o", assembly, source], check=True)
    assert ".entry sample_kernel(" in assembly.read_text()


@pytest.fixture
def cupy_on_host(monkeypatch, tmp_path):
    """The part of CuPy that runtime/gpu.py uses, on NumPy arrays and the host's compiler."""
    if HOST_COMPILER is None:
        pytest.skip("no C++ compiler on this machine")

    class DeviceArray(np.ndarray):
        pass

    def asarray(array, dtype=None):
        return np.asarray(array, dtype=dtype).view(DeviceArray)

    def copyto(array, values, casting):
        assert isinstance(array, DeviceArray) and isinstance(values, DeviceArray)  # CuPy takes no others
        np.copyto(array, values, casting=casting)

    class RawModule:
        def __init__(self, code):
            text, library = tmp_path / "kernel.cpp", tmp_path / "kernel.so"
            text.write_text(SHIM.format(source=code, real="double" if "double *" in code else "float"))
            subprocess.run([HOST_COMPILER, "-O1", "-shared", "-fPIC", "-o", library, text], check=True)
            self.launch = ctypes.CDLL(str(library)).launch

        def get_function(self, name):
            assert name == "sample_kernel"

            def function(grid, block, arguments):
                count, *arrays = arguments
                assert all(array.flags.c_contiguous for array in arrays)
                pointers = [ctypes.c_void_p(array.ctypes.data) for array in arrays]
                self.launch(ctypes.c_uint(*grid), ctypes.c_uint(*block), ctypes.c_size_t(int(count)), *pointers)

            return function

    cupy = SimpleNamespace(
        ndarray=DeviceArray,
        asarray=asarray,
        asnumpy=np.array,
        empty=lambda shape, dtype: np.full(shape, np.nan, dtype).view(DeviceArray),
        broadcast_to=lambda array, shape: np.broadcast_to(array, shape, subok=True),
        ascontiguousarray=lambda array: np.ascontiguousarray(array).view(DeviceArray),
        copyto=copyto,
        RawModule=RawModule,
        cuda=SimpleNamespace(runtime=SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=OSError)),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return cupy


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
