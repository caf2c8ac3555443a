"""Kernels as functions of JAX: numbers against those of the kernels themselves, derivatives against differences."""

import numpy as np
import pytest

import linkwise as lw

jax = pytest.importorskip("jax")
import jax.numpy as jnp  # noqa: E402
from jax.test_util import check_grads  # noqa: E402

import linkwise.jax as lwj  # noqa: E402

from .conftest import precision  # noqa: E402

ARM = lw.mechanisms.planar_arm(2)
TREE = lw.mechanisms.random_tree(3, 5, ["spherical", "prismatic"], floating_base=True)


def arrays(mech, batch=(), seed=0):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, batch)
    return q, v, rng.normal(size=v.shape)


@pytest.mark.parametrize("mech", [ARM, pytest.param(TREE, marks=pytest.mark.slow)], ids=["arm", "tree"])
def test_derivatives_of_dynamics(mech):
    q, v, a = arrays(mech)
    for name in ("forward_dynamics", "inverse_dynamics"):
        check_grads(lambda *x, name=name: getattr(lwj, name)(mech, *x), (q, v, a), 1, rtol=1e-4)


def test_derivatives_of_kinematics():
    q, _, _ = arrays(TREE)
    link = TREE.link_names[-1]
    check_grads(lambda x: (lwj.frame_pose(TREE, x, link), lwj.mass_matrix(TREE, x)), (q,), 1, ["rev"], rtol=1e-4)


@pytest.mark.slow
def test_derivatives_of_steps_on_the_manifold():
    q, v, _ = arrays(TREE)
    check_grads(lambda x, y: lwj.integrate(TREE, x, y, 0.01), (q, v), 1, rtol=1e-4)


def test_derivatives_of_derivatives():
    q, _, _ = arrays(ARM)
    hessian = jax.hessian(lambda x: lwj.potential_energy(ARM, x))(q)
    slope = lw.jacobian_of(lw.jacobian_of(lw.compile("potential_energy", ARM)))
    np.testing.assert_allclose(hessian, slope(q), rtol=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("mech", [ARM, TREE], ids=["arm", "tree"])
def test_derivatives_of_derivatives_of_dynamics(mech):
    q, v, tau = arrays(mech)
    check_grads(lambda *x: lwj.forward_dynamics(mech, *x), (q, v, tau), 2, rtol=1e-3, atol=1e-3)


def test_numbers_are_those_of_the_kernel_and_mapped_axes_its_batch():
    q, v, tau = arrays(ARM, (4, 3))
    expected = lw.forward_dynamics(ARM, q, v[:, :1], tau[0, 0])

    def function(*given):
        return lwj.forward_dynamics(ARM, *given)

    np.testing.assert_array_equal(function(q, v[:, :1], tau[0, 0]), expected)
    inner = jax.vmap(function, (0, None, None))
    np.testing.assert_array_equal(jax.jit(jax.vmap(inner, (0, 0, None)))(q, v[:, 0], tau[0, 0]), expected)
    turned = jax.vmap(jax.vmap(function, (0, None, None), 1), (1, None, None), 2)(q, v[0, 0], tau[0, 0])
    np.testing.assert_array_equal(turned, lw.forward_dynamics(ARM, q, v[0, 0], tau[0, 0]).transpose(2, 0, 1))
    crossed = jax.vmap(jax.vmap(function, (None, 0, None)), (0, None, None))(q[:, 0], v[0], tau[0, 0])
    np.testing.assert_array_equal(crossed, lw.forward_dynamics(ARM, q[:, :1], v[0], tau[0, 0]))
    assert function(q[:0], v[0, 0], tau[0, 0]).shape == (0, 3, 2)


def test_what_states_share_gets_the_sum_of_their_gradients():
    q, v, tau = arrays(ARM, (4,))
    found = jax.grad(lambda x: lwj.forward_dynamics(ARM, q, x, tau).sum())(v[0])
    each = jax.vmap(jax.grad(lambda x, *y: lwj.forward_dynamics(ARM, y[0], x, y[1]).sum()), (None, 0, 0))(v[0], q, tau)
    np.testing.assert_allclose(found, each.sum(0), rtol=1e-12)


def test_gradients_are_compiled_to_calls_of_machine_code():
    q, v, tau = arrays(ARM)
    gradient = jax.jit(jax.grad(lambda x: lwj.forward_dynamics(ARM, x, v, tau).sum()))
    text = gradient.lower(q).as_text()
    assert "@linkwise_forward_dynamics_vjp_by_q" in text and "callback" not in text
    weights = lw.vjp_of(lw.compile("forward_dynamics", ARM))(q, v, tau, np.ones(2))
    np.testing.assert_allclose(gradient(q), weights, rtol=1e-13)


def test_without_compilation():
    q, v, tau = arrays(ARM)
    with jax.disable_jit():
        found = lwj.forward_dynamics(ARM, q, v, tau)
        gradient = jax.grad(lambda x: lwj.forward_dynamics(ARM, x, v, tau).sum())(q)
    np.testing.assert_array_equal(found, lw.forward_dynamics(ARM, q, v, tau))
    np.testing.assert_allclose(gradient, lw.vjp_of(lw.compile("forward_dynamics", ARM))(q, v, tau, np.ones(2)))


def test_large_batches_are_shared_by_threads():
    before = lw.codegen.get_num_threads()
    lw.codegen.set_num_threads(3)
    try:
        q, v, tau = arrays(lw.mechanisms.puma560(), (20_011,))
        function = jax.jit(lambda *x: lwj.forward_dynamics(lw.mechanisms.puma560(), *x))
        expected = lw.forward_dynamics(lw.mechanisms.puma560(), q, v, tau)
        for _ in range(5):
            np.testing.assert_array_equal(function(q, v, tau), expected)
    finally:
        lw.codegen.set_num_threads(before)


def test_loops_over_time_and_memory_that_is_given_away():
    q, v, tau = arrays(ARM, (3,))

    def step(state, _):
        x, y = state
        y = y + 0.01 * lwj.forward_dynamics(ARM, x, y, tau)
        return (lwj.integrate(ARM, x, y, 0.01), y), None

    run = jax.jit(lambda *x: jax.lax.scan(step, x, None, 5)[0], donate_argnums=(0, 1))
    found = run(jnp.asarray(q), jnp.asarray(v))
    for _ in range(5):
        v = v + 0.01 * lw.forward_dynamics(ARM, q, v, tau)
        q = lw.integrate(ARM, q, v, 0.01)
    np.testing.assert_allclose(found[0], q, rtol=1e-13)
    np.testing.assert_allclose(found[1], v, rtol=1e-13)


def test_parameters_wrenches_and_names():
    q, v, tau = arrays(ARM)
    mass, wrenches = np.array([b.mass for b in ARM.bodies]), np.ones((ARM.n_links, 6))

    def function(m, w):
        return lwj.forward_dynamics(ARM, q, v, tau=tau, wrenches=w, parameters={"mass": m})

    np.testing.assert_allclose(function(mass, wrenches), lw.forward_dynamics(ARM, q, v, tau, wrenches), rtol=1e-10)
    check_grads(function, (mass, wrenches), 1, ["rev"], rtol=1e-4)
    link = ARM.link_names[-1]
    named = lwj.jacobian(ARM, q=q, link=link, frame="world")
    np.testing.assert_array_equal(lwj.jacobian(ARM, q, link, "world"), named)


def test_results_are_those_of_the_public_function():
    given = arrays(ARM, (2,))
    found = lwj.forward_dynamics_derivatives(ARM, *given)
    for one, expected in zip(found, lw.forward_dynamics_derivatives(ARM, *given), strict=True):
        np.testing.assert_array_equal(one, expected)


def test_several_results():
    q, v, a = arrays(ARM)
    found = lwj.inverse_dynamics_second_derivatives(ARM, q, v, a)
    for one, expected in zip(found, lw.derivatives.inverse_dynamics_second_derivatives(ARM, q, v, a), strict=True):
        np.testing.assert_array_equal(one, expected)
    check_grads(lambda x: lwj.inverse_dynamics_second_derivatives(ARM, x, v, a)[1:3], (q,), 1)


def test_single_precision():
    q, v, tau = (jnp.asarray(x, jnp.float32) for x in arrays(ARM))
    gradient = jax.grad(lambda x: lwj.forward_dynamics(ARM, x, v, tau).sum())(q)
    assert lwj.forward_dynamics(ARM, q, v, tau).dtype == gradient.dtype == jnp.float32
    assert lwj.forward_dynamics(ARM, q, v, np.asarray(tau, float)).dtype == jnp.float64  # as JAX adds them
    with precision(False):
        assert lwj.mass_matrix(ARM, [0, 1]).dtype == jnp.float32
        with pytest.raises(TypeError, match="which JAX does not have while jax_enable_x64 is off"):
            lwj.differentiable(lw.compile("mass_matrix", ARM))(jnp.zeros(2))
    with pytest.raises(TypeError, match="compiled for float32, but q has dtype float64"):
        lwj.differentiable(lw.compile("mass_matrix", ARM, dtype="float32"))(jnp.zeros(2))


def test_what_is_refused():
    q = jnp.zeros(2)
    with pytest.raises(TypeError, match="forward_dynamics takes 3 arrays"):
        lwj.forward_dynamics(ARM, q)
    with pytest.raises(lw.KernelError, match=r"q has shape \(3,\), expected \(..., 2\)"):
        lwj.mass_matrix(ARM, jnp.zeros(3))
    with pytest.raises(lw.KernelError, match=r"do not broadcast: q \(3,\), v \(2,\)"):
        lwj.bias_force(ARM, jnp.zeros((3, 2)), jnp.zeros((2, 2)))
    with pytest.raises(lw.KernelError, match="q is missing"):
        lwj.mass_matrix(ARM, None)
    with pytest.raises(lw.KernelError, match="no array"):
        lwj.mass_matrix(ARM, [[1.0, 2.0], [3.0]])
    with pytest.raises(TypeError, match="arrays of bfloat16: they must be float32 or float64"):
        lwj.mass_matrix(ARM, q.astype(jnp.bfloat16))
    with pytest.raises(AttributeError, match="such as forward_dynamics"):
        lwj.forward_dynamic(ARM)
    with pytest.raises(TypeError, match="differentiable takes a kernel"):
        lwj.differentiable(lw.mass_matrix)
    with pytest.raises(ValueError, match="kernels with target='cpu' or target='cuda'"):
        lwj.differentiable(lw.compile("mass_matrix", ARM, target="numpy"))
    with pytest.raises(lw.KernelError, match="q is traced by JAX.*call that of linkwise.jax"):
        jax.jit(lambda x: lw.mass_matrix(ARM, x))(q)
