"""Arrays of other libraries, with ``__array__`` or DLPack, go in wherever NumPy's do; NumPy's come out, in the same
precision."""

from __future__ import annotations

import inspect

import numpy as np
import pytest

import linkwise as lw
from linkwise.compiler.runtime import gpu
from linkwise.compiler.runtime.arrays import plain
from linkwise.compiler.runtime.gpu import NoDeviceError
from tests.compiler.test_compiler import COMPILED, named


class WithArray:
    """As tensors of torch: ``size`` and ``dtype`` are not what NumPy means by them, results would be wrapped."""

    __array_priority__ = 1000

    def __init__(self, values):
        self._values = np.array(values)
        self.dtype, self.shape = f"other.{self._values.dtype}", "of another kind"

    def size(self):
        return "of another kind"

    def __array__(self, dtype=None, copy=None):
        return np.array(self._values, dtype)

    def __array_wrap__(self, *arguments):
        raise AssertionError("results are NumPy arrays")


class WithDLPack:
    """Nothing but the protocol."""

    def __init__(self, values):
        self._values = np.array(values)

    def __dlpack__(self, **options):
        return self._values.__dlpack__(**options)

    def __dlpack_device__(self):
        return self._values.__dlpack_device__()


class OnDevice(WithDLPack):
    device = "cuda:0"

    def __dlpack_device__(self):
        return (2, 0)


class OnDeviceToo:
    """As CuPy's arrays."""

    __cuda_array_interface__ = {"shape": (2,), "typestr": "<f8", "data": (0, False), "version": 3}

    def __array__(self, dtype=None, copy=None):
        raise TypeError("no implicit conversion")


def torch_tensor(values):
    return pytest.importorskip("torch").from_numpy(np.array(values))


ARM, SIX, LOOP = (
    lw.mechanisms.planar_arm(2),
    lw.mechanisms.stanford_arm(),
    lw.mechanisms.four_bar(),
)  # with their kernels
MAKERS = pytest.mark.parametrize("make", [WithArray, WithDLPack, torch_tensor])


def same(found, expected):
    if isinstance(expected, tuple):
        assert len(found) == len(expected)
        for one, other in zip(found, expected, strict=True):
            same(one, other)
        return
    assert type(found) is type(expected) and found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)


def arguments(function, mech, batch, dtype):
    """Random arrays for the parameters of a public function, and what it needs besides."""
    rng = np.random.default_rng(7)
    shapes = {name: (mech.nv,) for name in ("v", "a", "tau", "nu", "eps", "p")}
    shapes |= {"wrenches": (mech.n_links, 6), "dt": (), "direction": (6,)}
    parameters = list(inspect.signature(function).parameters.values())[1:]
    arrays, options = [], {}
    for one in parameters:
        if one.name.startswith("q"):
            arrays.append(lw.random_state(mech, rng, batch)[0].astype(dtype))
        elif (
            one.name in shapes
            and one.kind is not one.KEYWORD_ONLY
            and (one.default is one.empty or one.name in ("v", "a", "tau"))
        ):
            arrays.append(rng.normal(size=(*batch, *shapes[one.name])).astype(dtype))
        elif one.name in ("link", "name"):  # "name" is another word for "link" where it is taken
            options.setdefault("link", mech.link_names[-1])
        else:
            assert one.default is not one.empty or one.kind is one.VAR_KEYWORD, one
    if named(function).endswith("constraints.inverse.inverse_dynamics"):  # of accelerations that loops allow
        arrays[0] = lw.constraints.assemble(mech, mech.initial)
        arrays[1] = 0.0 * arrays[1]
        arrays[2] = lw.forward_dynamics(mech, *arrays)
    return arrays, options


@MAKERS
@pytest.mark.parametrize("function", COMPILED, ids=named)
def test_every_array_function(function, make):
    loops = function.__module__.startswith("linkwise.constraints")
    mech = LOOP if loops else SIX if function in (lw.control.operational_inertia, lw.kinematics.manipulability) else ARM
    cases = [((), "float64")]
    if function.__module__.endswith(".trees"):  # how precisions are chosen is the same for all
        cases.append(((3,), "float32"))
    for batch, dtype in cases:
        arrays, options = arguments(function, mech, batch, dtype)
        expected = function(mech, *arrays, **options)
        same(function(mech, *map(make, arrays), **options), expected)
        same(function(mech, arrays[0], *map(make, arrays[1:]), **options), expected)
        same(function(mech, make(arrays[0]), *arrays[1:], **options), expected)


@MAKERS
def test_large_batches_and_mixed_precision(make):
    mech, rng = ARM, np.random.default_rng(1)
    q, v = lw.random_state(mech, rng, (30_000,))
    same(lw.bias_force(mech, make(q), make(v)), lw.bias_force(mech, q, v))
    mixed = lw.bias_force(mech, make(q.astype("float32")), make(v))
    same(mixed, lw.bias_force(mech, q.astype("float32"), v))
    assert mixed.dtype == np.float64


@MAKERS
@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_kernels(make, target):
    mech = ARM
    q, v = lw.random_state(mech, np.random.default_rng(2))
    kernel = lw.compile("bias_force", mech, target=target)
    same(kernel(make(q), make(v)), kernel(q, v))
    out = np.empty(2)
    assert kernel(make(q), v, out=out) is out
    np.testing.assert_array_equal(out, kernel(q, v))
    with pytest.raises(lw.KernelError, match=r"bias_force: v has shape \(3,\), expected \(..., 2\)"):
        kernel(make(q), make(np.zeros(3)))
    single = lw.compile("bias_force", mech, dtype="float32", target=target)
    assert single(make(q.astype("float32")), make(v.astype("float32"))).dtype == np.float32
    if target == "cpu":  # the interpreter rounds
        with pytest.raises(lw.KernelError, match="is compiled for float32, but q has dtype float64"):
            single(make(q), make(v))


@MAKERS
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_rollout(make, dtype):
    mech, rng = ARM, np.random.default_rng(3)
    q, v, tau = (x.astype(dtype) for x in (*lw.random_state(mech, rng, (5,)), rng.normal(size=(5, 4, 2))))
    mass = np.ones((5, 2), dtype)
    expected = lw.rollout(mech, q, v, tau, 0.01, 4, parameters={"mass": mass})
    assert expected[0].dtype == dtype
    same(lw.rollout(mech, make(q), make(v), make(tau), 0.01, 4, parameters={"mass": make(mass)}), expected)


@MAKERS
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("mechanism", ["planar_arm", "four_bar"])
def test_simulate_and_linearize(make, dtype, mechanism):
    """One motion and its linear model are float64, whatever goes in, as with NumPy arrays."""
    mech = LOOP if mechanism == "four_bar" else ARM
    q = lw.constraints.assemble(mech, lw.neutral(mech)) if mech.loops else np.array([0.4, -0.2])
    q, v = q.astype(dtype), np.zeros(mech.nv, dtype)
    if mech.loops:  # closed to the precision of what is given
        q = lw.constraints.assemble(mech, q)
    push, t = np.full((mech.n_links, 6), 0.1, dtype), np.linspace(0.0, 0.05, 3)
    one, other = (lw.simulate(mech, f(q), f(v), 0.05, wrenches=f(push), t_eval=f(t)) for f in (make, np.asarray))
    same((one.q, one.v), (other.q, other.v))
    one, other = (lw.linearize(mech, f(q), f(v), f(v)) for f in (make, np.asarray))
    same((one.A, one.B), (other.A, other.B))


@MAKERS
def test_closed_mechanisms(make):
    mech = LOOP
    q = lw.constraints.assemble(mech, lw.neutral(mech))
    v, tau = np.zeros(mech.nv), np.ones(mech.nv)
    same(lw.constraints.assemble(mech, make(q)), lw.constraints.assemble(mech, q))
    same(lw.forward_dynamics(mech, make(q), make(v), make(tau)), lw.forward_dynamics(mech, q, v, tau))
    same(lw.constraints.null_space(mech, make(q)), lw.constraints.null_space(mech, q))


@pytest.mark.parametrize("array", [OnDevice([0.1, 0.2]), OnDeviceToo()], ids=["DLPack", "CUDA array interface"])
def test_arrays_on_a_device_are_refused_by_name(array, monkeypatch):
    def no_device():
        raise NoDeviceError("no device, wherever this test runs: rollouts on a GPU take such arrays")

    monkeypatch.setattr(gpu, "cupy_with_device", no_device)
    mech, x = ARM, np.zeros(2)
    where = "lies on .*device.*, but this is computed on the CPU: copy it there first"
    with pytest.raises(lw.KernelError, match=f"bias_force: v {where}"):
        lw.bias_force(mech, x, array)
    with pytest.raises(lw.KernelError, match=f"bias_force: q {where}"):
        lw.bias_force(mech, array, x)
    with pytest.raises(lw.KernelError, match=f"bias_force: v {where}"):
        lw.compile("bias_force", mech, target="numpy")(x, array)
    with pytest.raises(lw.KernelError, match=f"rollout: q {where}"):
        lw.rollout(mech, array, x, None, 0.1, 1)
    for call in (lambda: lw.simulate(mech, array, x, 0.1), lambda: lw.linearize(mech, array, x)):
        with pytest.raises(lw.MechanismError, match=f"q0? {where}"):
            call()


def test_what_is_no_array_of_another_library_stays_as_it_is():
    for x in ([1.0], 1.0, np.float32(1.0), np.zeros(2), None, "text"):
        assert plain(x) is x


def test_tensors_share_their_memory_and_say_that_they_are_differentiated():
    torch = pytest.importorskip("torch")
    tensor = torch.zeros(2)
    assert np.shares_memory(plain(tensor), tensor.numpy())
    with pytest.raises(lw.KernelError, match="q is a tensor with requires_grad.*detach"):
        lw.gravity_force(ARM, torch.zeros(2, requires_grad=True))


UNREADABLE = {
    "requires_grad": (lambda z: z.clone().requires_grad_(), r"is a tensor with requires_grad.*give tensor.detach\(\)"),
    "bfloat16": (lambda z: z.bfloat16(), r"\(Tensor of dtype torch.bfloat16\) cannot be read .* float32 or float64"),
    "meta": (lambda z: z.to("meta"), "lies on the device meta.*: give one with values on the CPU"),
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_tensors_that_cannot_be_read_are_refused_by_name(kind):
    z = pytest.importorskip("torch").zeros(2, dtype=pytest.importorskip("torch").float64)
    change, message = UNREADABLE[kind]
    bad = change(z)
    with pytest.raises(lw.KernelError, match=f"gravity_force: q {message}"):
        lw.gravity_force(ARM, bad)
    with pytest.raises(lw.KernelError, match=f"bias_force: v {message}"):
        lw.bias_force(ARM, z, bad)
    with pytest.raises(lw.KernelError, match=f"rollout: v {message}"):
        lw.rollout(ARM, z, bad, None, 0.1, 1)
    with pytest.raises(lw.MechanismError, match=f"v {message}"):
        lw.control.joint_feedback(ARM, np.ones(2), kp=1.0, kd=1.0)(0.0, z, bad)


@MAKERS
def test_controllers(make):
    q, v, target = np.array([0.3, -0.2]), np.array([0.5, 0.1]), np.ones(2)
    expected = lw.control.joint_feedback(ARM, target, kp=2.0, kd=np.array([1.0, 3.0]))(0.0, q, v)
    control = lw.control.joint_feedback(ARM, make(target), kp=2.0, kd=make(np.array([1.0, 3.0])))
    same(control(0.0, make(q), make(v)), expected)
    same(lw.control.saturated(ARM, control, make(np.full(2, 0.5)))(0.0, make(q), make(v)), np.clip(expected, -0.5, 0.5))
    same(lw.control.saturated(ARM, lambda t, q, v: make(np.array([3.0, -0.1])), 1.0)(0.0, q, v), np.array([1.0, -0.1]))
