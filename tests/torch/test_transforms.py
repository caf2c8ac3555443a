"""Mechanisms with loops, several results, options of rollouts, and torch's own transforms of our functions."""

import numpy as np
import pytest

import linkwise as lw

torch = pytest.importorskip("torch")
import linkwise.torch as lwt  # noqa: E402

ARM, BARS = lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar()


def given(mech, batch=(), seed=0):
    rng = np.random.default_rng(seed)
    return [torch.tensor(rng.normal(size=(*batch, n)), requires_grad=True) for n in (mech.nq, mech.nv, mech.nv)]


def closed_state(angle=0.4):
    """A state of the four-bar linkage with its loop closed."""
    q = lw.constraints.assemble(BARS, {BARS.joint_names[0]: angle})
    v = lw.constraints.null_space(BARS, q) @ [0.7]
    return [torch.tensor(x, requires_grad=True) for x in (q, v, np.array([3.0, -1.0, 0.5]))]


def test_gradients_of_closed_dynamics():
    state = closed_state()
    expected = lw.forward_dynamics(BARS, *(x.detach().numpy() for x in state))
    np.testing.assert_allclose(lwt.closed.forward_dynamics(BARS, *state).detach(), expected, rtol=1e-9)
    assert torch.autograd.gradcheck(lambda *x: lwt.closed.forward_dynamics(BARS, *x), state)
    assert torch.autograd.gradcheck(lambda q: lwt.closed.position_error(BARS, q), state[:1])
    # Along motions that loops allow it is the derivative that linkwise computes for these.
    _, _, by_tau = lw.forward_dynamics_derivatives(BARS, *(x.detach().numpy() for x in state))
    found = torch.autograd.functional.jacobian(lambda tau: lwt.closed.forward_dynamics(BARS, *state[:2], tau), state[2])
    np.testing.assert_allclose(found, by_tau, atol=1e-9)


def test_one_of_several_results():
    q, v, tau = closed_state()
    step = torch.tensor(0.01, dtype=torch.float64, requires_grad=True)

    def function(*x):
        return lwt.closed_rk4_step(BARS, *x, result="state")

    path, speeds = lw.rollout(BARS, q.detach().numpy(), v.detach().numpy(), tau.detach().numpy(), 0.01, 1)
    np.testing.assert_allclose(function(q, v, tau, step).detach(), [*path[-1], *speeds[-1]], atol=1e-9)
    assert torch.autograd.gradcheck(function, (q, v, tau, step))
    with pytest.raises(ValueError, match=r"several results \(state, reliability, steps_to_singular\)"):
        lwt.closed_rk4_step(BARS, q, v, tau, step)


def test_rollouts_of_mechanisms_with_loops():
    q, v, tau = closed_state()
    forces = tau[None] * torch.linspace(0, 1, 4, dtype=tau.dtype)[:, None]
    mass = torch.tensor([[b.mass for b in BARS.bodies]] * 2, dtype=tau.dtype) * torch.tensor([[1.0], [2.0]])
    path, speeds = lwt.rollout(BARS, q, v, forces, 0.01, 4, parameters={"mass": mass})
    numbers = [x.detach().numpy() for x in (q, v, forces)]
    expected = lw.rollout(BARS, *numbers, 0.01, 4, parameters={"mass": mass.numpy()})
    np.testing.assert_allclose(path.detach(), expected[0], atol=1e-10)
    np.testing.assert_allclose(speeds.detach(), expected[1], atol=1e-9)
    last, _ = lwt.rollout(BARS, q, v, forces, 0.01, 4, parameters={"mass": mass}, final_only=True)
    torch.testing.assert_close(last, path[:, -1])
    assert torch.autograd.gradcheck(lambda x: lwt.rollout(BARS, q.detach(), v.detach(), x, 0.01, 2), tau)
    damped = lwt.rollout(BARS, q, v, None, 0.01, 2, feedback={"kd": 1.0})[1]
    expected = lw.rollout(BARS, *numbers[:2], None, 0.01, 2, feedback={"kd": 1.0})[1]
    np.testing.assert_allclose(damped.detach(), expected, atol=1e-9)


def test_derivatives_along_directions():
    tree = lw.mechanisms.random_tree(4, 2, ["spherical", "prismatic"])
    q, v, tau = (x.detach() for x in given(tree))
    along = [torch.ones_like(x) for x in (q, v, tau)]

    def function(*x):
        return lwt.forward_dynamics(tree, *x)

    expected = sum(
        matrix @ way
        for matrix, way in zip(torch.autograd.functional.jacobian(function, (q, v, tau)), along, strict=True)
    )
    torch.testing.assert_close(torch.func.jvp(function, (q, v, tau), tuple(along))[1], expected)
    with torch.autograd.forward_ad.dual_level():
        duals = [torch.autograd.forward_ad.make_dual(*pair) for pair in zip((q, v, tau), along, strict=True)]
        torch.testing.assert_close(torch.autograd.forward_ad.unpack_dual(function(*duals)).tangent, expected)

    def squares(x):
        return function(x, v, tau).square().sum()

    torch.testing.assert_close(torch.func.hessian(squares)(q), torch.autograd.functional.hessian(squares, q))


def test_results_as_those_of_the_functions():
    q, v, tau = given(ARM)
    for one, other in zip(
        lwt.forward_dynamics_derivatives(ARM, q, v, tau),
        lw.forward_dynamics_derivatives(ARM, *(x.detach().numpy() for x in (q, v, tau))),
        strict=True,
    ):
        np.testing.assert_array_equal(one.detach(), other)


def test_states_that_rollouts_keep():
    q, v, tau = given(ARM, (2,))
    wrenches = torch.zeros(ARM.n_links, 6, dtype=torch.float64, requires_grad=True)
    whole, speeds = lwt.rollout(ARM, q, v, tau[0], 0.02, 12, wrenches=wrenches)
    some, _ = lwt.rollout(ARM, q, v, tau[0], 0.02, 12, wrenches=wrenches, every=3)
    last, rates = lwt.rollout(ARM, q, v, tau[0], 0.02, 12, wrenches=wrenches, final_only=True)
    torch.testing.assert_close(some, whole[:, ::3])
    torch.testing.assert_close(last, whole[:, -1])
    torch.testing.assert_close(rates, speeds[:, -1])
    wanted = (q, v, tau, wrenches)
    end = whole[:, -1].square().sum() + speeds[:, -1].sum()
    expected = torch.autograd.grad(end, wanted, retain_graph=True)
    for one, other in zip(torch.autograd.grad(last.square().sum() + rates.sum(), wanted), expected, strict=True):
        torch.testing.assert_close(one, other)
    expected = torch.autograd.grad(whole[:, ::3].square().sum(), wanted)
    for one, other in zip(torch.autograd.grad(some.square().sum(), wanted), expected, strict=True):
        torch.testing.assert_close(one, other)
    assert torch.autograd.gradcheck(lambda w: lwt.rollout(ARM, q[0], None, None, 0.05, 2, wrenches=w), wrenches)


@pytest.mark.parametrize("named", [False, True])
def test_compiled_graphs_have_one_operator(named):
    kernel = lwt.differentiable(lw.compile("forward_dynamics", ARM))

    def function(q, v, tau):
        q = torch.sin(q)
        return (lwt.forward_dynamics(ARM, q, v, tau) if named else kernel(q, v, tau)).square().sum()

    q, v, tau = given(ARM, (3,))
    shared = tau[0].detach().clone().requires_grad_()
    compiled = torch.compile(function, backend="aot_eager", fullgraph=True)
    expected = torch.autograd.grad(function(q, v, shared), (q, v, shared))
    for one, other in zip(torch.autograd.grad(compiled(q, v, shared), (q, v, shared)), expected, strict=True):
        torch.testing.assert_close(one, other)


def test_the_operator_keeps_the_rules_of_operators():
    kernel = lwt.differentiable(lw.compile("inverse_dynamics", ARM))
    found = torch.library.opcheck(torch.ops.linkwise.call.default, (kernel.handle, given(ARM, (3,))))
    assert set(found.values()) == {"SUCCESS"}
    mapped = torch.func.vmap(lambda *x: torch.ops.linkwise.call(kernel.handle, list(x)))
    states = [x.detach() for x in given(ARM, (3, 2))]
    torch.testing.assert_close(mapped(*states), kernel(*states))


def test_gradients_have_gradients_of_all_orders():
    q, v, tau = given(ARM)
    (first,) = torch.autograd.grad(lwt.forward_dynamics(ARM, q, v, tau)[0], q, create_graph=True)
    (second,) = torch.autograd.grad(first[1], v, create_graph=True)
    (third,) = torch.autograd.grad(second[0], v)
    # Accelerations are quadratic in v: their second derivatives by v do not change with v.
    h = 0.5
    kernel = lw.jacobian_of(lw.jacobian_of(lw.compile("forward_dynamics", ARM), "q"), "v")
    at = [kernel(*(x.detach().numpy() for x in (q, v + s * torch.eye(2, dtype=q.dtype)[1], tau))) for s in (h, -h)]
    assert float(third[1]) == pytest.approx((at[0] - at[1])[0, 1, 0] / (2 * h), rel=1e-9)
    assert abs(float(third[1])) > 1e-3
