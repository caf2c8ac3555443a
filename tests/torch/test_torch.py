"""Tensors with gradients: against differences (gradcheck), and in two small trainings."""

import numpy as np
import pytest

import linkwise as lw
from tests.acting_arm import ACTIVATION, CTRL, TAU, Q, V
from tests.acting_arm import ARM as ACTING

torch = pytest.importorskip("torch")
import linkwise.torch as lwt  # noqa: E402

ARM = lw.mechanisms.planar_arm(3)
TREE = lw.mechanisms.random_tree(4, 5, ["revolute", "spherical", "prismatic"], floating_base=True)


def tensors(mech, batch=(), seed=0, dtype=torch.float64):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, batch)
    return [torch.tensor(x, dtype=dtype, requires_grad=True) for x in (q, v, rng.normal(size=v.shape))]


@pytest.mark.parametrize("mech", [ARM, TREE], ids=["arm", "tree"])
@pytest.mark.parametrize("name", ["forward_dynamics", "inverse_dynamics"])
def test_gradients_of_dynamics(mech, name):
    def function(*arrays):
        return getattr(lwt, name)(mech, *arrays)

    given = tensors(mech, (3,))
    np.testing.assert_array_equal(
        function(*given).detach().numpy(), getattr(lw, name)(mech, *(x.detach().numpy() for x in given))
    )
    assert torch.autograd.gradcheck(function, given, rtol=1e-5)


def test_gradients_of_kinematics_energies_and_steps():
    q, v, _ = tensors(TREE, (2,))
    assert torch.autograd.gradcheck(lambda x: lwt.frame_pose(TREE, x, link=TREE.link_names[-1]), (q,))
    assert torch.autograd.gradcheck(lambda x: lwt.mass_matrix(TREE, x), (q,))
    assert torch.autograd.gradcheck(lambda x: lwt.potential_energy(TREE, x), (q,))
    step = torch.tensor(0.01, dtype=torch.float64)
    assert torch.autograd.gradcheck(lambda x, y: lwt.integrate(TREE, x, y, step), (q, v))


def _in_numpy(name, q, v, third, ctrl, activation):
    return getattr(lw, name)(ACTING, q, v, third, ctrl=ctrl, activation=activation, forces="all")


def test_what_acts():
    """Springs, a stop, a servo, a filter and contact: numbers of NumPy's functions, gradients against differences."""
    given = [torch.tensor(x, requires_grad=True) for x in (Q, V, TAU, CTRL, ACTIVATION)]
    plain = [x.detach().numpy() for x in given]
    for name in ("forward_dynamics", "inverse_dynamics"):

        def function(*arrays, name=name):
            return getattr(lwt.acting, name)(ACTING, *arrays)

        np.testing.assert_allclose(function(*given).detach(), _in_numpy(name, *plain), rtol=1e-12, atol=1e-12)
        assert torch.autograd.gradcheck(function, given, rtol=1e-4)
        seen = torch.compile(function, fullgraph=True, backend="eager")
        torch.testing.assert_close(seen(*given), function(*given))
        torch.testing.assert_close(seen(given[0]), function(given[0]))
    state = given[0], given[1], given[3], given[4]
    for name in ("forces", "activation_rates", "actuator_forces"):
        found = getattr(lwt.acting, name)(ACTING, *state)
        q, v, ctrl, activation = (x.detach().numpy() for x in state)
        in_numpy = lw.forces.joint_forces if name == "forces" else getattr(lw, name)
        expected = in_numpy(ACTING, q, v, ctrl=ctrl, activation=activation)
        np.testing.assert_allclose(found.detach(), expected, rtol=1e-12)
    assert lwt.acting.forward_dynamics(ACTING, given[0].float()).dtype == torch.float32


def test_gradients_of_gradients():
    q, v, tau = tensors(lw.mechanisms.planar_arm(2), (2,))
    assert torch.autograd.gradgradcheck(lambda *x: lwt.forward_dynamics(lw.mechanisms.planar_arm(2), *x), (q, v, tau))


def test_batches_that_broadcast():
    """The gradient of what states share is the sum of theirs."""
    q, v, tau = tensors(ARM, (4,))
    shared = v[0].detach().clone().requires_grad_()
    assert torch.autograd.gradcheck(lambda x, y, z: lwt.forward_dynamics(ARM, x, y, z), (q, shared, tau))
    wide = tensors(ARM, (2, 1), seed=1)[0]
    assert torch.autograd.gradcheck(lambda x, y: lwt.inverse_dynamics(ARM, x, y, shared.detach()), (wide, v))


def test_vmap_becomes_the_batch():
    q, v, tau = (x.detach() for x in tensors(ARM, (5, 2)))
    expected = lwt.forward_dynamics(ARM, q, v[0], tau)
    found = torch.func.vmap(lambda x, y: lwt.forward_dynamics(ARM, x, v[0], y))(q, tau)
    torch.testing.assert_close(found, expected, rtol=0, atol=0)
    gradient = torch.func.vmap(torch.func.grad(lambda x: lwt.forward_dynamics(ARM, x, v[0, 0], tau[0, 0]).sum()))(
        q[:, 0]
    )
    whole = q[:, 0].clone().requires_grad_()
    lwt.forward_dynamics(ARM, whole, v[0, 0], tau[0, 0]).sum().backward()
    torch.testing.assert_close(gradient, whole.grad)


def test_precision_is_kept_and_memory_shared():
    given = tensors(ARM, (3,), dtype=torch.float32)
    found = lwt.forward_dynamics(ARM, *given)
    found.sum().backward()
    assert found.dtype == torch.float32 and given[0].grad.dtype == torch.float32
    with pytest.raises(TypeError, match="all must be torch.float64, or all torch.float32"):
        lwt.forward_dynamics(ARM, given[0], given[1].double(), given[2])
    with pytest.raises(TypeError, match="takes 3 tensors"):
        lwt.differentiable(lw.compile("forward_dynamics", ARM))(given[0])
    with pytest.raises(TypeError, match="takes 3 tensors"):
        lwt.forward_dynamics(ARM)
    with pytest.raises(AttributeError, match="such as forward_dynamics"):
        lwt.forward_dynamic(ARM)


def test_parameters_and_wrenches():
    q, v, tau = (x.detach() for x in tensors(TREE, (2,)))
    mass = torch.tensor([b.mass for b in TREE.bodies], dtype=torch.float64, requires_grad=True)
    wrenches = torch.randn(2, TREE.n_links, 6, dtype=torch.float64, requires_grad=True)

    def function(m, w):
        return lwt.forward_dynamics(TREE, q, v, tau, wrenches=w, parameters={"mass": m})

    assert torch.autograd.gradcheck(function, (mass, wrenches))
    torch.testing.assert_close(
        function(mass, wrenches),
        torch.from_numpy(lw.forward_dynamics(TREE, q.numpy(), v.numpy(), tau.numpy(), wrenches.detach().numpy())),
        rtol=1e-10,
        atol=1e-10,
    )


def test_a_number_of_one_link_for_one_state():
    q = tensors(ARM)[0].detach()
    mass = torch.tensor(1.0, dtype=torch.float64, requires_grad=True)
    name = f"{ARM.link_names[-1]}.mass"
    assert torch.autograd.gradcheck(lambda m: lwt.gravity_force(ARM, q, parameters={name: m}), (mass,))


def test_links_are_named_as_in_linkwise():
    q = tensors(ARM)[0]
    link = ARM.link_names[-1]
    torch.testing.assert_close(lwt.jacobian(ARM, q, link, "world"), lwt.jacobian(ARM, q, link=link, frame="world"))
    np.testing.assert_array_equal(lwt.frame_pose(ARM, q, link).detach(), lw.frame_pose(ARM, q.detach().numpy(), link))


def test_rollouts_from_rest_and_what_they_refuse():
    q, v, _ = tensors(ARM)
    np.testing.assert_array_equal(
        lwt.rollout(ARM, q, None, None, 0.01, 2)[0].detach(),
        lw.rollout(ARM, q.detach().numpy(), None, None, 0.01, 2)[0],
    )
    with pytest.raises(TypeError, match="several precisions"):
        lwt.rollout(ARM, q, v.float(), None, 0.01, 2)
    with pytest.raises(TypeError, match="feedback is a dictionary"):
        lwt.rollout(ARM, q, v, None, 0.01, 2, feedback=lw.control.computed_torque(ARM, q.detach().numpy()))


def test_no_gradient_of_a_rollout_is_lost():
    q, v, _ = (x.detach() for x in tensors(ARM))
    joint, number = ARM.joint_names[0], torch.tensor(3.0, dtype=torch.float64, requires_grad=True)
    for name in ("target", "kp", "kd"):
        feedback = {"target": q, "kp": 1.0, name: {joint: number}}
        with pytest.raises(TypeError, match=f"{name} has tensors.*one tensor with the numbers of all joints"):
            lwt.rollout(ARM, q, v, None, 0.01, 2, feedback=feedback)
    for start in (({joint: number}, v), (q, {joint: number}), (q, [number, 0.0, 0.0])):
        with pytest.raises(TypeError, match="0 has tensors.*one tensor with the numbers of all joints"):
            lwt.rollout(ARM, *start, None, 0.01, 2)
    with pytest.raises(TypeError, match=r"gradients by dt are not computed here; linkwise\.jax"):
        lwt.rollout(ARM, q, v, None, 0.01 * number, 2)
    plain = {"target": q, "kp": {joint: number.detach()}}
    assert lwt.rollout(ARM, q, v, None, 0.01, 2, feedback=plain)[0].shape == (3, 3)


def test_policies_are_refused_at_once_and_the_loop_that_is_advised_has_their_gradients():
    mech, dt, steps = lw.mechanisms.planar_arm(1), 0.01, 5
    weight = torch.tensor([[-3.0]], dtype=torch.float64, requires_grad=True)
    policy = lw.motion.held(lambda t, q, v: torch.as_tensor(q) @ weight.detach().T, dt)
    start = torch.tensor([[0.3]], dtype=torch.float64, requires_grad=True)
    for given in ({"tau": policy}, {"tau": None, "ctrl": policy}):
        with pytest.raises(TypeError, match="(tau|ctrl) must be a tensor.*differentiable.linkwise.step_kernel"):
            lwt.rollout(mech, start, None, given.pop("tau"), dt, steps, **given)
    step = lwt.differentiable(lw.motion.step_kernel(mech, dt, "rk4"), "state")

    def end(weight):
        q, v = start, torch.zeros_like(start)
        for _ in range(steps):
            q, v = step(q, v, q @ weight.T, torch.tensor(dt, dtype=torch.float64)).split(1, dim=-1)
        return q

    end(weight).sum().backward()
    expected, _ = lw.rollout(mech, start.detach().numpy(), None, policy, dt, steps, final_only=True)
    np.testing.assert_allclose(end(weight).detach(), expected, atol=1e-14)
    with torch.no_grad():
        slope = (end(weight + 1e-6) - end(weight - 1e-6)) / 2e-6
    np.testing.assert_allclose(weight.grad, slope, rtol=1e-6)


def test_second_derivatives_of_rollouts_are_refused_with_what_has_them():
    q, v, tau = tensors(ARM)

    def end(x):
        return lwt.rollout(ARM, q.detach(), v.detach(), x, 0.01, 2, final_only=True)[1]

    (first,) = torch.autograd.grad(end(tau).sum(), tau, create_graph=True)
    free, pair = tau.detach(), torch.zeros(2, 3, dtype=torch.float64)
    torch.testing.assert_close(torch.func.grad(lambda x: end(x).sum())(free), first.detach())
    for of_rollouts in (
        lambda: torch.autograd.grad(first.sum(), tau),
        lambda: torch.func.vmap(end)(pair),
        lambda: torch.func.jacfwd(end)(free),
        lambda: torch.func.hessian(lambda x: end(x).square().sum())(free),
    ):
        with pytest.raises(RuntimeError, match=r"step_kernel\(mech, dt\).*linkwise\.jax"):
            of_rollouts()


def test_gradients_of_rollouts():
    q, v, tau = tensors(ARM, (2,))
    forces = tau[:, None].detach().clone().requires_grad_()

    def function(*given):
        return lwt.rollout(ARM, *given, 0.01, 4)

    path, speeds = function(q, v, forces)
    expected = lw.rollout(ARM, *(x.detach().numpy() for x in (q, v, forces)), 0.01, 4)
    np.testing.assert_array_equal(path.detach().numpy(), expected[0])
    np.testing.assert_array_equal(speeds.detach().numpy(), expected[1])
    shared = tau[0].detach().clone().requires_grad_()  # the same at all times, for all states
    assert torch.autograd.gradcheck(function, (q, v, shared))


def test_drives_and_forces_are_those_of_rollouts():
    builder = lw.Builder().link("cart", 2.0, inertia=(0.1, 0.1, 0.1)).link("bob", 1.0, (0, 0, -0.5), (0.01, 0.01, 0.01))
    builder.joint("slide", lw.Prismatic((1, 0, 0)), "ground", "cart")
    builder.joint("pin", lw.Revolute((0, 1, 0)), "cart", "bob", damping=0.3)
    mech = builder.drive("shaker", "slide", lambda t: 0.2 * np.sin(3.0 * t)).build("shaken")
    whole = lw.rollout(mech, None, None, None, 0.01, 8)
    middle = tuple(torch.from_numpy(x[4].copy()) for x in whole)
    values = lw.motion.drive_values(mech, 0.01, 4, start=0.04)
    for forces in ("all", "none"):
        expected = lw.rollout(mech, whole[0][4], whole[1][4], None, 0.01, 4, drive=values, forces=forces)
        for drive in (values, torch.from_numpy(values)):
            found = lwt.rollout(mech, *middle, None, 0.01, 4, drive=drive, forces=forces)
            for one, other in zip(found, expected, strict=True):
                np.testing.assert_allclose(one.numpy(), other, rtol=1e-12, atol=1e-12)
    followed = torch.from_numpy(values).requires_grad_()
    lwt.rollout(mech, *middle, None, 0.01, 4, drive=followed)[0][-1, 1].backward()
    path = lw.rollout(mech, whole[0][4], whole[1][4], None, 0.01, 4, drive=values)
    ends = np.array([0.0, 1.0]), np.zeros(2)
    wanted = lw.derivatives.rollout_vjp(mech, *path, None, 0.01, 4, ends, wrt="drive", drive=values)["drive"]
    np.testing.assert_allclose(followed.grad.numpy(), wanted, rtol=1e-8, atol=1e-10)


def test_gradients_of_rollouts_move_within_configurations():
    """Along a quaternion there is none; along tangent directions it is what differences say."""
    q, v, _ = tensors(TREE)

    def height(start):
        path, speeds = lwt.rollout(TREE, start, v.detach(), None, 0.01, 3)
        return lwt.potential_energy(TREE, path[-1]) + (speeds[-1] ** 2).sum()

    (gradient,) = torch.autograd.grad(height(q), q)
    step = torch.tensor(np.random.default_rng(1).normal(size=TREE.nv))
    start, h = q.detach().numpy(), 1e-6
    ends = [height(torch.tensor(lw.integrate(TREE, start, step.numpy(), s))) for s in (h, -h)]
    along = torch.tensor(lw.kinematics.coordinate_rates(TREE, start, step.numpy()))
    assert float(gradient @ along) == pytest.approx(float(ends[0] - ends[1]) / (2 * h), rel=1e-6)


def test_inertias_are_those_of_the_mechanism_and_stay_physical():
    arm = lw.mechanisms.random_tree(4, 2)
    inertias = lwt.Inertias(arm)
    for name, tensor in inertias().items():
        expected = np.array([getattr(body, name) for body in arm.bodies])
        np.testing.assert_allclose(tensor.detach().numpy(), expected, atol=1e-12)
    with torch.no_grad():
        inertias.numbers += torch.randn(inertias.numbers.shape, generator=torch.Generator().manual_seed(0))
    found = inertias()
    moments = np.linalg.eigvalsh(found["inertia"].detach().numpy())
    assert (found["mass"] > 0).all() and (moments[:, 0] + moments[:, 1] >= moments[:, 2]).all()
    with pytest.raises(ValueError, match="no moving link 'hand'"):
        lwt.Inertias(arm, ["hand"])


def test_a_payload_is_identified_by_training():
    arm = lw.mechanisms.puma560()
    link = arm.link_names[-1]
    rng = np.random.default_rng(0)
    q, v = (torch.tensor(x) for x in lw.random_state(arm, rng, (60,)))
    a = torch.tensor(rng.normal(size=v.shape))
    loaded = arm.with_payload(link, 2.0, (0.02, -0.03, 0.1), np.diag([0.02, 0.03, 0.01]))
    measured = torch.tensor(lw.inverse_dynamics(loaded, q.numpy(), v.numpy(), a.numpy()))
    inertias = lwt.Inertias(arm, [link])
    optimizer = torch.optim.Adam(inertias.parameters(), lr=0.05)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 800)
    for _ in range(800):
        optimizer.zero_grad()
        (lwt.inverse_dynamics(arm, q, v, a, parameters=inertias()) - measured).square().mean().backward()
        optimizer.step()
        schedule.step()
    body = loaded.bodies[-1]
    assert inertias()[f"{link}.mass"].item() == pytest.approx(body.mass, rel=1e-3)
    np.testing.assert_allclose(inertias()[f"{link}.com"].detach().numpy(), body.com, atol=1e-3)


def test_a_controller_is_tuned_through_rollouts():
    """Gains that bring a pendulum to rest within 200 steps."""
    arm = lw.mechanisms.planar_arm(2)
    target, start = torch.tensor([0.3, -0.2]).double(), torch.tensor([1.0, 0.5]).double()
    logs = torch.tensor([2.0, 0.0]).double().requires_grad_()
    optimizer, losses = torch.optim.Adam([logs], lr=0.2), []
    for _ in range(25):
        optimizer.zero_grad()
        kp, kd = (torch.exp(x) * torch.ones(2).double() for x in logs)
        feedback = {"target": target, "kp": kp, "kd": kd}
        path, speeds = lwt.rollout(arm, start, torch.zeros(2).double(), None, 0.01, 200, feedback=feedback)
        loss = (path[100:] - target).square().mean() + 0.01 * speeds[100:].square().mean()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.2 * losses[0]
