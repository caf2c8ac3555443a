"""Functions of CasADi: their values and derivatives against our kernels, and against differences."""

import importlib
import sys

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op

casadi = pytest.importorskip("casadi")
import linkwise.casadi as lwc  # noqa: E402

TREE = lw.mechanisms.random_tree(4, 3, ["spherical", "prismatic", "universal"], floating_base=True)
ARM, BARS = lw.mechanisms.planar_arm(2), lw.mechanisms.four_bar()


def states(mech, count=2, seed=0):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (count,))
    return q, v, rng.normal(size=v.shape)


def numbers(x):
    """A result of CasADi as an array."""
    return np.array(casadi.DM(x))


def test_forces_act_on_trees_and_under_constraints():
    damped = [mech.parameters.with_damping(0.4) for mech in (ARM, BARS)]
    for mech in damped:
        q = lw.constraints.assemble(mech, {mech.joint_names[0]: 0.4})
        v = lw.constraints.project(mech, q, np.ones(mech.nv))[1]
        a = lw.forward_dynamics(mech, q, v, forces="all")
        np.testing.assert_allclose(numbers(lwc.forward_dynamics(mech, q, v, None, forces="all"))[:, 0], a, atol=1e-9)
        needed = lw.inverse_dynamics(mech, q, v, a, forces="damping")
        found = lwc.inverse_dynamics(mech, q, v, a, forces="damping")
        np.testing.assert_allclose(numbers(found)[:, 0], needed, atol=1e-9)
    q, v = casadi.SX.sym("q", 2), casadi.SX.sym("v", 2)
    slope = casadi.Function(
        "d", [q, v], [casadi.jacobian(lwc.inverse_dynamics(damped[0], q, v, None, forces="all"), v)]
    )
    at = lw.random_state(damped[0], np.random.default_rng(0))
    _, by_v, _ = lw.inverse_dynamics_derivatives(damped[0], *at, forces="all")
    np.testing.assert_allclose(numbers(slope(*at)), by_v, atol=1e-12)


def test_values_on_a_tree_of_mixed_joints():
    q, v, tau = states(TREE)
    link = TREE.link_names[-1]
    for k in range(len(q)):
        for name in ("forward_dynamics", "inverse_dynamics"):
            expected = getattr(lw, name)(TREE, q[k], v[k], tau[k])
            scale = np.abs(expected).max()
            np.testing.assert_allclose(
                numbers(getattr(lwc, name)(TREE, q[k], v[k], tau[k]))[:, 0] / scale, expected / scale, atol=1e-12
            )
        pairs = (
            (lwc.mass_matrix(TREE, q[k]), lw.mass_matrix(TREE, q[k])),
            (lwc.frame_pose(TREE, q[k], link), lw.frame_pose(TREE, q[k], link)),
            (lwc.jacobian(TREE, q[k], link, "world"), lw.jacobian(TREE, q[k], link, "world")),
            (lwc.link_poses(TREE, q[k]), lw.link_poses(TREE, q[k]).reshape(-1, 4)),
            (lwc.integrate(TREE, q[k], v[k], 0.1), lw.integrate(TREE, q[k], v[k], 0.1)[:, None]),
            (lwc.potential_energy(TREE, q[k]), [[lw.potential_energy(TREE, q[k])]]),
        )
        for found, expected in pairs:
            np.testing.assert_allclose(numbers(found), expected, atol=1e-12)


def test_names_shapes_and_zeros_are_those_of_the_kernel():
    f = lwc.function("inverse_dynamics", TREE, ports="wrenches", parameters=["mass", f"{TREE.link_names[0]}.com"])
    assert f.name() == "inverse_dynamics_with_wrenches"
    assert f.name_in() == ["q", "v", "a", "wrenches", "mass", f"{TREE.link_names[0]}_com"] and f.name_out() == ["tau"]
    assert f.size_in("wrenches") == (TREE.n_links, 6) and f.size_in("mass") == (TREE.n_links, 1)
    kernel = lw.compile("mass_matrix", TREE, target="numpy")
    found = lwc.function(kernel).sparsity_out(0)
    np.testing.assert_array_equal(numbers(casadi.DM(found, 1)) == 1, kernel.sparsity)
    assert not kernel.sparsity.all()


def test_wrenches_and_parameters():
    (q,), (v,), (a,) = states(TREE, 1)
    wrenches = np.random.default_rng(1).normal(size=(TREE.n_links, 6))
    mass = 2.0 * np.array([body.mass for body in TREE.bodies])
    found = lwc.inverse_dynamics(TREE, q, v, a, wrenches=wrenches, parameters={"mass": mass})
    kernel = lw.compile("inverse_dynamics", TREE, ports="wrenches", target="numpy", parameters=["mass"])
    np.testing.assert_allclose(numbers(found)[:, 0], kernel(q, v, a, wrenches, mass), atol=1e-11)


def test_derivatives_of_expressions():
    """CasADi's own, against our recursion for derivatives along tangent directions."""
    (q,), (v,), (tau,) = states(TREE, 1)
    f = lwc.function("forward_dynamics", TREE)
    by_q, by_v, by_tau = (numbers(x) for x in f.jacobian()(q, v, tau, 0))
    rates = lw.jacobian_of(lw.compile("coordinate_rates", TREE, target="numpy"), "v")(q, v)
    for found, expected in zip(
        (by_q @ rates, by_v, by_tau), lw.forward_dynamics_derivatives(TREE, q, v, tau), strict=True
    ):
        np.testing.assert_allclose(found, expected, atol=1e-9 * np.abs(expected).max())


def test_derivatives_where_joints_do_not_turn():
    """Series stand in for quotients near no rotation at all."""
    still = lw.neutral(TREE), np.zeros(TREE.nv)
    step = lwc.function("integrate", TREE)
    by_v = numbers(step.jacobian()(*still, 1.0, 0)[1])
    kernel = lw.jacobian_of(lw.compile("integrate", TREE, target="numpy"), "v")
    np.testing.assert_allclose(by_v, kernel(*still, 1.0), atol=1e-12)
    between = lwc.function("difference", TREE)
    assert np.isfinite(numbers(between.jacobian()(still[0], still[0], 0)[1])).all()


def test_expressions_of_operators_and_code_generation(tmp_path, monkeypatch):
    q = np.array([0.3, -0.7])
    mass = lwc.function(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T, ARM)
    np.testing.assert_allclose(numbers(mass(q)), lw.mass_matrix(ARM, q), atol=1e-12)
    monkeypatch.chdir(tmp_path)
    lwc.function("forward_dynamics", ARM).generate("arm.c")
    assert "forward_dynamics" in (tmp_path / "arm.c").read_text()


def test_machine_code_of_several_states_and_its_derivatives():
    """Against expressions, which share no derivative with it."""
    q, v, tau = (x.T for x in states(ARM, 3))
    kernel = lw.compile("forward_dynamics", ARM)
    f = lwc.function(kernel, machine_code=True, states=3)
    g = lwc.function(kernel).map(3)
    assert f.name_in() == g.name_in() and f.size_out(0) == (2, 3)
    np.testing.assert_allclose(numbers(f(q, v, tau)), numbers(g(q, v, tau)), atol=1e-12)

    symbols = [casadi.MX.sym(name, 2, 3) for name in ("q", "v", "tau")]
    every = casadi.vertcat(*map(casadi.vec, symbols))
    weight = casadi.DM(np.arange(1.0, 7.0).reshape(2, 3))

    def derivatives(function):
        found = function(*symbols)
        first = casadi.jacobian(casadi.vec(found), every)
        second = casadi.hessian(casadi.sum1(casadi.vec(weight * casadi.sin(found))), every)
        return casadi.Function("derivatives", symbols, [first, *second])

    one, other = derivatives(f), derivatives(g)
    for a, b in zip(one(q, v, tau), other(q, v, tau), strict=True):
        np.testing.assert_allclose(numbers(a), numbers(b), atol=1e-10)
    assert one.nnz_out(0) == 36  # of 6 x 18: states have no part in each other's


def test_machine_code_of_matrices():
    """Rows of results and columns of inputs are where CasADi has them."""
    (q,), _, _ = states(TREE, 1)
    kernel = lw.compile("jacobian", ARM, link=ARM.link_names[-1])
    f, g = lwc.function(kernel, machine_code=True), lwc.function(kernel)
    at = np.array([0.3, -0.7])
    np.testing.assert_allclose(numbers(f(at)), kernel(at), atol=1e-14)
    np.testing.assert_allclose(numbers(f.jacobian()(at, 0)), numbers(g.jacobian()(at, 0)), atol=1e-13)
    kernel = lw.compile("inverse_dynamics", ARM, ports="wrenches")
    f, g = lwc.function(kernel, machine_code=True), lwc.function(kernel)
    given = at, at, at, np.random.default_rng(0).normal(size=(ARM.n_links, 6))
    np.testing.assert_allclose(numbers(f(*given)), numbers(g(*given)), atol=1e-12)
    for one, other in zip(f.jacobian()(*given, 0), g.jacobian()(*given, 0), strict=True):
        np.testing.assert_allclose(numbers(one), numbers(other), atol=1e-12)


def test_mechanisms_with_loops():
    q = lw.constraints.assemble(BARS, {BARS.joint_names[0]: 0.4})
    v = lw.constraints.null_space(BARS, q) @ [0.7]
    tau = np.array([3.0, -1.0, 0.5])
    np.testing.assert_allclose(
        numbers(lwc.forward_dynamics(BARS, q, v, tau))[:, 0],
        lw.forward_dynamics(BARS, q, v, tau),
        atol=1e-10,
    )
    with pytest.warns(DeprecationWarning, match="linkwise.casadi itself heed constraints"):
        former = lwc.closed.forward_dynamics(BARS, q, v, tau)
    np.testing.assert_array_equal(numbers(former), numbers(lwc.forward_dynamics(BARS, q, v, tau)))
    step = lwc.function("closed_rk4_step", BARS)
    assert step.name_out() == ["state", "reliability", "steps_to_singular"]
    path, speeds = lw.rollout(BARS, q, v, tau, 0.01, 1)
    found, *_ = step(q, v, tau, 0.01)
    np.testing.assert_allclose(numbers(found)[:, 0], [*path[-1], *speeds[-1]], atol=1e-11)
    by_tau = numbers(lwc.function("closed_rk4_step", BARS, result="state").jacobian()(q, v, tau, 0.01, 0)[2])
    ends = [[x[-1] for x in lw.rollout(BARS, q, v, tau + s * np.eye(3)[0], 0.01, 1)] for s in (0.5, -0.5)]
    np.testing.assert_allclose(by_tau[:, 0], np.concatenate(ends[0]) - np.concatenate(ends[1]), atol=1e-8)


def test_steps_under_what_acts():
    """Damping, and a ball that touches the ground: the step of rollouts, whose derivatives are those of our kernels."""
    build = lw.Builder().link("ball", 1.0, (0, 0, 0), (0.01, 0.01, 0.01))
    ball = build.joint("rail", lw.Prismatic((0, 0, 1)), "ground", "ball", damping=0.5).build("ball")
    ball = ball.with_shape("skin", "ball", "sphere", 0.1).with_ground(0.0)
    kernel = lw.motion.step_kernel(ball, 1e-3, "semi_implicit")
    step = lwc.function(kernel)
    for height in (0.5, 0.1, 0.0995):
        at = [height], [-1.0], [0.0], 1e-3
        q, v = lw.rollout(ball, *at, 1, "semi_implicit")
        np.testing.assert_allclose(numbers(step(*at))[:, 0], [*q[-1], *v[-1]], atol=1e-13)
        found = np.hstack([numbers(x) for x in step.jacobian()(*at, 0)])
        expected = lw.jacobian_of(kernel, kernel.inputs)(*map(np.asarray, at))
        np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("machine_code", [False, True])
def test_wrong_shapes_are_named_with_what_was_expected(machine_code):
    f = lwc.function("forward_dynamics", ARM, machine_code=machine_code)
    q, five, three = np.zeros(2), casadi.MX.sym("x", 5), np.zeros((3, 2))
    for arguments, message in (
        (
            (five, q, q),
            r"q of forward_dynamics must be 2 numbers, got shape \(5, 1\); inputs are q\[2\], v\[2\], tau\[2\]",
        ),
        ((q, [1.0, 2.0, 3.0], q), r"v of forward_dynamics must be 2 numbers, got shape \(3, 1\)"),
        ((three, three, three), r"q of .* got shape \(3, 2\); several states stand side by side.*transpose"),
    ):
        with pytest.raises(ValueError, match=message):
            f(*arguments)
    with pytest.raises(TypeError, match=r"takes 3 inputs, q\[2\], v\[2\], tau\[2\]; got 2"):
        f(q, q)
    with pytest.raises(TypeError, match=r"no input 'torque'.*: q\[2\], v\[2\], tau\[2\]"):
        f(q=q, v=q, torque=q)
    with pytest.raises(TypeError, match="in order or by name, not both"):
        f(q, v=q)
    with pytest.raises(ValueError, match=r"v of forward_dynamics must be 2 numbers"):
        lwc.forward_dynamics(ARM, q, five, q)
    plain = numbers(f(q, q, q))
    np.testing.assert_allclose(numbers(f(q.reshape(1, 2), q, casadi.DM(0.0))), plain, atol=1e-14)
    np.testing.assert_allclose(numbers(f(q=q, v=q, tau=q)["a"]), plain, atol=1e-14)
    assert f(np.zeros((2, 4)), np.zeros((2, 4)), np.zeros((2, 4))).shape == (2, 4)


def test_what_is_refused():
    with pytest.raises(TypeError, match="a kernel already"):
        lwc.function(lw.compile("mass_matrix", ARM, target="numpy"), ARM)
    with pytest.raises(TypeError, match="an algorithm and a mechanism"):
        lwc.function("mass_matrix")
    with pytest.raises(ValueError, match=r"f.map\(states\)"):
        lwc.function("mass_matrix", ARM, states=4)
    with pytest.raises(ValueError, match="several results"):
        lwc.function("closed_rk4_step", BARS, machine_code=True)
    with pytest.raises(ValueError, match="float64 on the CPU"):
        lwc.function(lw.compile("mass_matrix", ARM, target="numpy"), machine_code=True)
    with pytest.raises(AttributeError, match="such as forward_dynamics"):
        lwc.forward_dynamic(ARM)


@pytest.mark.parametrize("library", ["casadi", "jax", "torch"])
def test_libraries_that_are_missing(library, monkeypatch):
    monkeypatch.setitem(sys.modules, library, None)
    for name in [x for x in sys.modules if x.startswith(f"linkwise.{library}")]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(ModuleNotFoundError, match=rf"pip install 'linkwise\[{library}\]'"):
        importlib.import_module(f"linkwise.{library}")


@pytest.mark.parametrize("kind", [casadi.SX, casadi.MX])
def test_array_functions_send_symbols_here(kind):
    arm = lw.mechanisms.planar_arm(2)
    q = kind.sym("q", 2)
    for ask in (
        lambda: lw.forward_dynamics(arm, q, q, q),
        lambda: lw.mass_matrix(arm, q),
        lambda: lw.compile("forward_dynamics", arm)(q, q, q),
        lambda: lw.simulate(arm, q, None, 0.1),
    ):
        with pytest.raises(ValueError, match=r"q0? is a symbol of CasADi.*call that of linkwise\.casadi, such as"):
            ask()
