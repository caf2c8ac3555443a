"""Tensors on a GPU without one: kernels as the host's compiler compiles their text (``cuda_on_host``), called on memory
of torch as on a device; rollouts step by step, as they are there."""

import contextlib

import numpy as np
import pytest

import linkwise as lw
from tests.compiler.targets import cuda_on_host

torch = pytest.importorskip("torch")
import linkwise.torch as lwt  # noqa: E402
from linkwise.torch import gpus, steps  # noqa: E402
from linkwise.torch.signatures import Signature  # noqa: E402

ARM = lw.mechanisms.planar_arm(2)
STREAM = 0x5EA


@pytest.fixture
def host(monkeypatch, tmp_path):
    """Kernels compiled for the GPU take tensors of the host; on which streams they were launched."""
    cupy = cuda_on_host.install(monkeypatch, tmp_path)
    cupy.streams = []

    def stream(address):
        cupy.streams.append(address)
        return contextlib.nullcontext()

    monkeypatch.setattr(cupy.cuda, "ExternalStream", stream)
    monkeypatch.setattr(gpus, "on_device", lambda device: contextlib.nullcontext())
    monkeypatch.setattr(gpus, "stream_of", lambda device: STREAM)
    return cupy


def tensors(mech, batch=(), dtype=torch.float64):
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng, batch)
    return [torch.tensor(x, dtype=dtype, requires_grad=True) for x in (q, v, rng.normal(size=v.shape))]


def test_kernels_and_their_gradients_are_launched_on_memory_of_torch(host):
    """Any strides, what states share, batches without states; on torch's stream, nothing by way of arrays of CuPy."""
    host.empty = host.asarray = host.from_dlpack = None
    kernel = lw.compile("forward_dynamics", ARM, target="cuda")
    own = Signature(kernel)
    q, v, tau = tensors(ARM, (4, 3))
    given = [q.detach().transpose(0, 1), v.detach()[0, 0], tau.detach()[0]]
    given = [given[0], given[1], given[2][:, None]]
    expected = lw.forward_dynamics(ARM, *(x.numpy() for x in given))
    for _ in range(2):
        found = own.of(*given)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
    assert own.of(q.detach()[:0], v.detach()[0, 0], tau.detach()[0, 0]).shape == (0, 3, 2)
    weight = torch.ones(3, 2, dtype=torch.float64)
    one = [x.detach()[0] for x in (q, v, tau)]
    product = own.derived((True, False, True)).of(*one, weight)
    plain = lw.vjp_of(lw.compile("forward_dynamics", ARM), ("q", "tau"), tangent=False)
    np.testing.assert_allclose(product, plain(*(x.numpy() for x in one), weight.numpy()), rtol=1e-10)
    assert set(host.streams) == {STREAM} and len(host.streams) == 3


def test_what_is_refused(host):
    launcher = gpus.Launcher(lw.compile("mass_matrix", ARM, target="cuda"))
    with pytest.raises(lw.KernelError, match=r"mass_matrix: input q must have trailing dimensions \(2,\)"):
        launcher(torch.zeros(3, dtype=torch.float64))
    launcher = gpus.Launcher(lw.compile("bias_force", ARM, target="cuda"))
    with pytest.raises(ValueError, match="all lie on one device: q on cpu, v on meta"):
        launcher(torch.zeros(2, dtype=torch.float64), torch.zeros(2, dtype=torch.float64, device="meta"))


@pytest.mark.parametrize("options", [{}, {"every": 2}, {"final_only": True}], ids=str)
def test_steps_that_torch_sees_are_those_of_rollouts(options):
    """With feedback, forces that change, and parameters; gradients against those of one sweep backwards."""
    q, v, _ = tensors(ARM, (3,))
    forces = torch.randn(3, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(0)).requires_grad_()
    gains = torch.tensor([20.0, 4.0], dtype=torch.float64, requires_grad=True)
    mass = torch.tensor([1.5, 0.7], dtype=torch.float64, requires_grad=True)
    whole = (q, v, forces, gains, mass)

    def loss(motion):
        feedback = {"target": torch.zeros(2, dtype=torch.float64), "kp": gains, "kd": 0.5}
        path, speeds = motion(feedback, {"mass": mass})
        return (path**2).sum() + (speeds**3).sum()

    def seen(feedback, parameters):
        given = {"q0": q, "v0": v, "tau": forces, **feedback, **parameters}
        chosen = {"every": 1, "final_only": False, **options}
        return steps.step_by_step(
            ARM, given, 0.01, 4, "rk4", tuple(feedback), tuple(parameters), chosen["every"], chosen["final_only"], None
        )

    def swept(feedback, parameters):
        return lwt.rollout(ARM, q, v, forces, 0.01, 4, feedback=feedback, parameters=parameters, **options)

    one, other = loss(seen), loss(swept)
    torch.testing.assert_close(one, other, rtol=1e-12, atol=1e-12)
    for mine, theirs in zip(torch.autograd.grad(one, whole), torch.autograd.grad(other, whole), strict=True):
        torch.testing.assert_close(mine, theirs, rtol=1e-9, atol=1e-12)


def test_what_steps_refuse():
    q, v, tau = tensors(ARM)

    def seen(**more):
        feedback = tuple(name for name in more if name in ("target", "kp"))
        return steps.step_by_step(
            ARM, {"q0": q, "v0": v, "tau": tau, **more}, 0.01, 4, "rk4", feedback, (), 1, False, None
        )

    with pytest.raises(lw.KernelError, match=r"tau has shape \(3, 2\), expected .*\(4, 2\)"):
        seen(tau=torch.zeros(3, 2, dtype=torch.float64))
    with pytest.raises(TypeError, match="kp is a dictionary"):
        seen(target=q, kp={"joint1": 2.0})
    with pytest.raises(lw.KernelError, match="nothing takes ctrl: steps take q, v, tau"):
        seen(ctrl=tau)
    with pytest.raises(ValueError, match="must all lie on one device: q0 on cpu, v0 on meta"):
        lwt.rollout(ARM, q, v.detach().to("meta"), None, 0.01, 2)
