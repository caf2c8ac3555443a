"""Emitted CUDA C on a machine without a GPU: compiled by the host's C++ compiler, the lanes of a warp as fibers.

``__syncwarp`` hands over to the next lane; a warp goes on when all its lanes are there.  Lanes take turns upwards in
one phase and downwards in the next, so that a missing ``__syncwarp`` shows.  Memory beyond arrays is not checked.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import re
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

COMPILER = shutil.which("c++") or shutil.which("g++")

SHIM = """
#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <utility>
#define __global__
#define __device__
#define __forceinline__ inline
#define __noinline__ __attribute__((noinline))
#define __constant__ static const
#define __launch_bounds__(...)
#define __CUDA_ARCH__ 800
static int __double2loint(double x) { long long bits; memcpy(&bits, &x, sizeof bits); return (int)bits; }
static int __double2hiint(double x) { long long bits; memcpy(&bits, &x, sizeof bits); return (int)(bits >> 32); }
static double __hiloint2double(int hi, int lo)
{
    long long bits = ((long long)hi << 32) | (unsigned)lo;
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}
static double _coarse(double x) { return __hiloint2double(__double2hiint(x), 0); }
static float __int_as_float(int bits) { float x; memcpy(&x, &bits, sizeof x); return x; }
static int __float_as_int(float x) { int bits; memcpy(&bits, &x, sizeof bits); return bits; }
static float __fdividef(float a, float b) { return a / b; }
static float rsqrtf(float x) { return 1 / sqrtf(x); }
static double rsqrt(double x) { return 1 / sqrt(x); }
static float _min_nan(float a, float b) { return a != a ? a : b != b ? b : fminf(a, b); }
static float _max_nan(float a, float b) { return a != a ? a : b != b ? b : fmaxf(a, b); }
static size_t __cvta_generic_to_global(const void *x) { return (size_t)x; }
static void *__cvta_global_to_generic(size_t x) { return (void *)x; }
#define __shared__ static
struct Index { unsigned x; };
static Index blockIdx, blockDim, threadIdx;
static ucontext_t _scheduler, _lanes[32];
static int _turn, _phases[32];
static bool _finished[32];
static void __syncwarp() { ++_phases[_turn]; swapcontext(&_lanes[_turn], &_scheduler); }
%(source)s
static const size_t STACK = 1 << 24;  // bytes of a lane: long code has tens of thousands of values there
static const long long *_arguments;
template <class... P, size_t... k> static void _call(void (*kernel)(P...), std::index_sequence<k...>)
{
    kernel((P)_arguments[k]...);
}
template <class... P> static void _call(void (*kernel)(P...)) { _call(kernel, std::index_sequence_for<P...>()); }
static void _lane_main() { _call(%(name)s); _finished[_turn] = true; swapcontext(&_lanes[_turn], &_scheduler); }

static int _launch(unsigned blocks, unsigned threads, char *stacks)
{
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x)
        for (unsigned warp = 0; warp < threads / 32; ++warp) {
            for (int lane = 0; lane < 32; ++lane) {
                getcontext(&_lanes[lane]);
                _lanes[lane].uc_stack.ss_sp = stacks + lane * STACK;
                _lanes[lane].uc_stack.ss_size = STACK;
                makecontext(&_lanes[lane], _lane_main, 0);
                _finished[lane] = false;
                _phases[lane] = 0;
            }
            for (int phase = 0; !_finished[0]; ++phase) {
                for (int k = 0; k < 32; ++k) {
                    _turn = phase %% 2 ? 31 - k : k;
                    threadIdx.x = 32 * warp + _turn;
                    swapcontext(&_scheduler, &_lanes[_turn]);
                }
                for (int lane = 1; lane < 32; ++lane)
                    if (_phases[lane] != _phases[0] || _finished[lane] != _finished[0]) return 1;
            }
        }
    return 0;
}

extern "C" int launch(unsigned blocks, unsigned threads, const long long *arguments)
{
    char *stacks = (char *)malloc(32 * STACK);  // given back: loaded libraries stay, and would keep half a GiB each
    if (!stacks) return 2;
    _arguments = arguments;
    int status = _launch(blocks, threads, stacks);
    free(stacks);
    return status;
}
"""


class DeviceArray(np.ndarray):
    """Stands for CuPy's arrays: like these it is not taken for NumPy's own."""

    @property
    def data(self):
        return SimpleNamespace(ptr=self.ctypes.data)


def _as_strided(array, shape, strides):
    return np.lib.stride_tricks.as_strided(array, shape, strides, subok=True)


def _compiled(code: str, name: str, folder: Path, level: str):
    """``launch`` of a kernel's text."""
    stem = folder / hashlib.sha256((level + code).encode()).hexdigest()[:16]
    text, library = stem.with_suffix(".cpp"), stem.with_suffix(".so")
    if not library.exists():
        code = re.sub(r'asm\("rcp.* : "=d"\((\w+)\) : "d"\((\w+)\)\);', r"\1 = _coarse(1 / \2);", code)
        extreme = r'asm\("(min|max).NaN.f32 .*"=f"\((\w+)\) : "f"\((\w+)\), "f"\((\w+)\)\);'
        code = re.sub(extreme, r"\2 = _\1_nan(\3, \4);", code)
        code = re.sub(r"extern (__shared__ \w+ \w+)\[\]", r"\1[1 << 16]", code)
        text.write_text(SHIM % {"source": code, "name": name})
        flags = [level, "-w", "-std=c++17", "-shared", "-fPIC"]
        subprocess.run([COMPILER, *flags, "-o", library, text], check=True)
    return ctypes.CDLL(str(library)).launch


def install(monkeypatch: pytest.MonkeyPatch, folder: Path, level: str = "-O1") -> SimpleNamespace:
    """The part of CuPy that the runtime uses, on NumPy arrays and the host's compiler, as module ``cupy``.

    Code is compiled when it is launched first, with this level of optimization.
    """
    if COMPILER is None:
        pytest.skip("no C++ compiler on this machine")
    modules, functions = [], []

    def asarray(array, dtype=None):
        return np.asarray(array, dtype=dtype).view(DeviceArray)

    def copyto(array, values, casting):
        assert isinstance(array, DeviceArray) and isinstance(values, DeviceArray)  # CuPy takes no others
        np.copyto(array, values, casting=casting)

    class RawModule:
        def __init__(self, code):
            self.code = code
            modules.append(self)

        def get_function(self, name):
            launches = []
            item = 8 if "volatile double *const _near" in self.code else 4
            waiting = item * max((int(place) + 32 for place in re.findall(r"_near\[(\d+)\]", self.code)), default=0)

            def function(grid, block, arguments, shared_mem):
                assert waiting <= shared_mem <= getattr(function, "max_dynamic_shared_size_bytes", 0)
                assert all(isinstance(x, (DeviceArray, np.int64)) for x in arguments)
                numbers = [x.ctypes.data if isinstance(x, DeviceArray) else int(x) for x in arguments]
                packed = (ctypes.c_longlong * len(numbers))(*numbers)
                if not launches:
                    launches.append(_compiled(self.code, name, folder, level))
                assert launches[0](ctypes.c_uint(*grid), ctypes.c_uint(*block), packed) == 0, "lanes part at __syncwarp"

            # As of a compiler that leaves values in local memory where they do not wait in shared memory.
            function.local_size_bytes = 0 if "_waiting" in self.code else 4000
            function.code = self.code
            function.kernel = SimpleNamespace(ptr=len(functions) + 1)
            functions.append(function)
            return function

    cupy = SimpleNamespace(
        ndarray=DeviceArray,
        asarray=asarray,
        from_dlpack=lambda array: np.from_dlpack(array).view(DeviceArray),
        asnumpy=lambda array: np.array(array).view(np.ndarray),
        zeros=lambda shape, dtype: np.zeros(shape, dtype).view(DeviceArray),
        lib=SimpleNamespace(stride_tricks=SimpleNamespace(as_strided=_as_strided)),
        empty=lambda shape, dtype: np.full(shape, np.nan, dtype).view(DeviceArray),
        ascontiguousarray=lambda array: np.ascontiguousarray(array).view(DeviceArray),
        copyto=copyto,
        RawModule=RawModule,
        modules=modules,
        functions=functions,
        cuda=SimpleNamespace(
            runtime=SimpleNamespace(getDeviceCount=lambda: 1, CUDARuntimeError=OSError),
            Device=lambda number: contextlib.nullcontext(),
            ExternalStream=lambda stream: contextlib.nullcontext(),
            Stream=SimpleNamespace(null=contextlib.nullcontext()),
        ),
    )
    monkeypatch.setitem(sys.modules, "cupy", cupy)
    return cupy
