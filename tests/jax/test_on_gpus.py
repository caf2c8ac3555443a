"""Calls on a GPU without one: the handlers on call frames made here, with a driver that runs the kernels' text as the
host's compiler compiles it (``cuda_on_host``), and what JAX lowers functions to for that platform."""

import ctypes
import re

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler import xla
from linkwise.compiler.runtime import xla_cuda
from linkwise.compiler.runtime.xla_interface import COMMAND_BUFFER_COMPATIBLE, INTERNAL, METADATA_EXTENSION
from linkwise.compiler.targets import cuda_transposition
from tests.compiler.targets import cuda_on_host

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402

import linkwise.jax as lwj  # noqa: E402

from .interface import address, addresses, made, structures  # noqa: E402

ARM = lw.mechanisms.planar_arm(2)
STREAM, CONTEXT, ERROR = 0x5EA, 0xC0, 0xE44
INVALID_VALUE, NO_CONTEXT = 1, 201  # CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_INVALID_CONTEXT
ANY, NUMBER = ctypes.c_void_p, ctypes.c_uint
LAUNCH = ctypes.CFUNCTYPE(ctypes.c_int, ANY, *[NUMBER] * 7, ANY, ctypes.POINTER(ANY), ANY)


class Machine:
    """The driver with its GPU, and the interface of XLA: what handlers call."""

    def __init__(self, functions):
        self.functions, self.device, self.code, self.stream_error = functions, 0, 0, None
        self.launches, self.messages = [], []
        self.kept = (
            LAUNCH(self.launch),
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.POINTER(ctypes.c_int))(self.device_of_context),
            ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_int, ctypes.POINTER(ctypes.c_char_p))(self.error_name),
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self.stream_of),
            ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(self.error),
        )
        *driver, stream_of, error = (ctypes.cast(function, ctypes.c_void_p).value for function in self.kept)
        self.driver = xla_cuda.Driver(*driver)
        self.api = made("XLA_FFI_Api", XLA_FFI_Stream_Get=stream_of, XLA_FFI_Error_Create=error)
        self.api.api_version.minor_version = 7

    def launch(self, handle, *rest):
        *sizes, shared, stream, arguments, more = rest
        function = self.functions[handle - 1]
        count = re.search(r"__global__ void \w+\((.*?)\)", function.code, re.DOTALL)[1].count(",") + 1
        numbers = [np.int64(ctypes.c_int64.from_address(arguments[k]).value) for k in range(count)]
        assert sizes[1:3] == sizes[4:] == [1, 1] and stream == STREAM and more is None
        if not self.code:
            function((sizes[0],), (sizes[3],), tuple(numbers), shared_mem=shared)
        self.launches.append(function)
        return self.code

    def device_of_context(self, to):
        to[0] = max(0, self.device)
        return 0 if self.device >= 0 else NO_CONTEXT

    def error_name(self, code, to):
        if code == NO_CONTEXT:
            to[0] = b"CUDA_ERROR_INVALID_CONTEXT"
        return 0

    def stream_of(self, given):
        request = structures()["XLA_FFI_Stream_Get_Args"].from_address(given)
        assert request.struct_size == ctypes.sizeof(request) and request.ctx == CONTEXT
        request.stream = STREAM
        return self.stream_error

    def error(self, given):
        request = structures()["XLA_FFI_Error_Create_Args"].from_address(given)
        assert request.struct_size == ctypes.sizeof(request) and request.errc == INTERNAL
        self.messages.append(ctypes.string_at(request.message).decode())
        return ERROR

    def called(self, call, inputs, shapes, dtype):
        """The results of a call, and what the handler returns."""
        outputs = [np.full(shape, np.nan, dtype) for shape in (*shapes, *((size,) for size in call.between))]
        buffers = [
            [made("XLA_FFI_Buffer", data=x.ctypes.data, rank=x.ndim) for x in arrays] for arrays in (inputs, outputs)
        ]
        words = structures()["XLA_FFI_Array"](size=call.words.size, data=call.words.ctypes.data)
        lists = [addresses(x) for x in (*buffers, [words])]
        args, rets, attrs = (address(x) for x in lists)
        frame = made(
            "XLA_FFI_CallFrame",
            api=address(self.api),
            ctx=CONTEXT,
            stage=3,
            args=made("XLA_FFI_Args", size=len(inputs), args=args),
            rets=made("XLA_FFI_Rets", size=len(outputs), rets=rets),
            attrs=made("XLA_FFI_Attrs", size=1, attrs=attrs),
        )
        return outputs[: len(shapes)], handled(call.target, frame)


def handled(target, frame):
    return ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)(target.handler.address)(address(frame))


@pytest.fixture
def machine(monkeypatch, tmp_path):
    cupy = cuda_on_host.install(monkeypatch, tmp_path)
    found = Machine(cupy.functions)
    monkeypatch.setattr(xla_cuda, "driver", lambda: found.driver)
    monkeypatch.setattr(xla, "_targets", {})
    return found


@pytest.mark.parametrize("dtype", ["float64", pytest.param("float32", marks=pytest.mark.slow)])
def test_kernels_are_launched_on_buffers(machine, dtype):
    kernel = lw.compile("forward_dynamics", ARM, dtype=dtype)
    rng = np.random.default_rng(0)
    calls = xla.calls_on_cuda(kernel, [0])
    q, v, tau = (rng.normal(size=(300, 2)).astype(dtype) for _ in range(3))
    for given, states in (((q, v, tau), 300), ((q, v[0], tau), 300), ((q[:1], v[:1], tau[0]), 1)):
        call = calls(states, [x.ndim == 1 for x in given])
        (found,), error = machine.called(call, given, [(states, 2)], dtype)
        assert error is None
        np.testing.assert_allclose(found, kernel(*given), rtol=1e-3 if dtype == "float32" else 1e-12, atol=1e-6)
    assert len(machine.launches) == 3


def test_long_rows_are_transposed(machine, monkeypatch):
    monkeypatch.setattr(cuda_transposition, "LEAST_STATES", 64)
    monkeypatch.setattr(cuda_transposition, "NEAR_BYTES", 0)
    monkeypatch.setattr("linkwise.compiler.targets.cuda_layout.SHARED_BYTES", 0)
    monkeypatch.setattr(cuda_transposition, "LEAST_BYTES", 1)
    kernel = lw.compile("mass_matrix", ARM)
    q = np.random.default_rng(0).normal(size=(150, 2))
    call = xla.calls_on_cuda(kernel, [0])(150, [False])
    assert call.between == (4 * 64,)
    (found,), error = machine.called(call, [q], [(150, 2, 2)], "float64")
    assert error is None
    np.testing.assert_allclose(found, kernel(q), rtol=1e-12)
    first, second = dict.fromkeys(machine.launches)
    assert machine.launches == [first, second] * 3 and cuda_transposition.NAME in second.code


def test_what_fails_is_an_error_of_xla(machine):
    kernel = lw.compile("gravity_force", ARM)
    call = xla.calls_on_cuda(kernel, [1])(3, [False])

    def outcome():
        return machine.called(call, [np.zeros((3, 2))], [(3, 2)], "float64")[1]

    machine.device = 1
    assert outcome() is None and len(machine.launches) == 1
    machine.code = INVALID_VALUE
    assert (
        outcome() == ERROR and "not launched on the GPU: an error that the driver has no name" in machine.messages[-1]
    )
    for machine.device in (0, 2):
        assert outcome() == ERROR and "it is not loaded on this device" in machine.messages[-1]
    machine.device = -1
    assert outcome() == ERROR and machine.messages[-1].endswith("CUDA_ERROR_INVALID_CONTEXT")
    machine.stream_error = 0xBAD
    assert outcome() == 0xBAD and len(machine.launches) == 2


def test_what_xla_asks_about_a_handler(machine):
    kernel = lw.compile("gravity_force", ARM)
    target = xla.calls_on_cuda(kernel, [0])(3, [False]).target
    metadata = made("XLA_FFI_Metadata")
    base = made("XLA_FFI_Extension_Base", type=METADATA_EXTENSION)
    extension = structures()["XLA_FFI_Metadata_Extension"](extension_base=base, metadata=address(metadata))
    frame = made("XLA_FFI_CallFrame", api=address(machine.api), extension_start=address(extension))
    assert handled(target, frame) is None and not machine.launches
    assert metadata.traits == COMMAND_BUFFER_COMPATIBLE
    assert (metadata.api_version.major_version, metadata.api_version.minor_version) == (0, 7)


def test_functions_are_lowered_to_launches(machine, monkeypatch):
    """On each platform to its own target: what JAX would run on a GPU has the same shapes and no callback."""
    monkeypatch.setattr("linkwise.jax.signatures.gpus", lambda: [0])
    told = []
    monkeypatch.setattr(jax.ffi, "register_ffi_target", lambda name, _, platform: told.append((name, platform)))
    kernel = lw.compile("forward_dynamics", ARM, target="cuda")
    f = jax.vmap(jax.grad(lambda q, v, tau: lwj.differentiable(kernel)(q, v, tau).sum()), (0, None, 0))
    lowered = jax.jit(f).trace(jnp.zeros((5, 2)), jnp.zeros(2), jnp.zeros((5, 2))).lower(lowering_platforms=("cuda",))
    text = lowered.as_text()
    assert "@linkwise_forward_dynamics_vjp_by_q" in text and "callback" not in text
    assert told and all(platform == "CUDA" and name in text for name, platform in told)
