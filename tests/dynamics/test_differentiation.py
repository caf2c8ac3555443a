"""Derivatives of kernels: complex steps through the same program, and laws of mechanics that tie kernels together."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise import operators as op
from tests.algorithms import VARIANTS
from tests.constraints.built_in import assembled, built
from tests.oracle.exact_differences import complex_step, tangent_columns
from tests.physics.test_mimic import tied_and_free
from tests.physics.trees import close, rate

STATES = 3
KINDS = lw.mechanisms.EVERY_KIND
TREES = {kind: lw.mechanisms.random_tree(2, 40 + i, joints=(kind,)) for i, kind in enumerate(KINDS)}
TREES |= {f"mixed {seed}": lw.mechanisms.random_tree(3, seed, floating_base=seed == 6) for seed in (6, 11)}
TREES["mimic"] = tied_and_free(3)[0]
every_tree = pytest.mark.parametrize("name", TREES)


def states(mech: lw.Mechanism, seed: int = 0):
    rng = np.random.default_rng(seed)
    q, v = lw.random_state(mech, rng, (STATES,))
    return q, v, rng.normal(size=v.shape), rng.normal(size=(STATES, mech.n_links, 6))


def traced(algorithm, mech: lw.Mechanism, **options) -> lw.Kernel:
    return lw.compile(VARIANTS.get(algorithm, algorithm), mech, target="numpy", **options)


def expected_columns(kernel: lw.Kernel, arrays, name: str) -> np.ndarray:
    """By complex steps; configurations along tangent directions."""
    array = arrays[kernel.inputs.index(name)]
    if name in kernel.configurations:
        return complex_step(kernel, arrays, name, tangent_columns(kernel.configurations[name], array))
    size = int(np.prod(kernel.input_shapes[name]))
    return complex_step(kernel, arrays, name, np.broadcast_to(np.eye(size), (STATES, size, size)))


ALGORITHMS = {
    "forward_dynamics": "qva",
    "inverse_dynamics_with_wrenches": "qvaw",
    "mass_matrix": "q",
    "mass_matrix_inverse": "q",
    "kinetic_energy": "qv",
    "potential_energy": "q",
    "momentum": "qv",
    "centroidal_momentum_matrix": "q",
    "link_poses": "q",
    "link_accelerations": "qva",
    "coordinate_rates": "qv",
}


@pytest.mark.quick_one_in(2)
@every_tree
def test_every_input_of_named_algorithms(name):
    mech = TREES[name]
    given = dict(zip("qvaw", states(mech), strict=True))
    for algorithm, letters in ALGORITHMS.items():
        kernel, arrays = traced(algorithm, mech), [given[letter] for letter in letters]
        (shape,) = kernel.output_shapes.values()
        for wrt in kernel.inputs:
            expected = expected_columns(kernel, arrays, wrt)
            for mode in ("forward", "reverse") if name in KINDS else ("auto",):
                derivative = lw.jacobian_of(kernel, wrt, mode)
                found = derivative(*arrays)
                assert found.shape == (STATES, *shape, expected.shape[-1])
                close(found, expected, 1e-10, core=len(shape) + 1)
                zeros = np.abs(expected[:, ~derivative.sparsity])
                assert np.all(zeros <= 1e-13 * np.abs(expected).max(initial=1.0))


@every_tree
def test_kernels_that_are_derivatives_of_others(name):
    mech = TREES[name]
    q, v, tau, _ = states(mech, seed=1)

    def slope(algorithm, wrt, *arrays):
        return lw.jacobian_of(traced(algorithm, mech), wrt)(*arrays)

    mass = traced("mass_matrix", mech)(q)
    close(slope("kinetic_energy", "v", q, v), np.einsum("sij,sj->si", mass, v), 1e-11)
    close(slope("potential_energy", "q", q), traced("gravity_force", mech)(q), 1e-11)
    close(slope("inverse_dynamics", "a", q, v, tau), mass, 1e-11, core=2)
    close(slope("mass_matrix", "q", q), traced("mass_matrix_derivatives", mech)(q), 1e-10, core=3)
    inverse = traced("mass_matrix_inverse", mech)(q)
    close(slope("forward_dynamics", "tau", q, v, tau), inverse, 1e-8, core=2)
    # Forward after inverse dynamics is the identity: dFD/dq = -M^-1 dID/dq at the acceleration found.
    a = traced("forward_dynamics", mech)(q, v, tau)
    for wrt in ("q", "v"):
        through = -inverse @ slope("inverse_dynamics", wrt, q, v, a)
        close(slope("forward_dynamics", wrt, q, v, tau), through, 1e-7, core=2)


@every_tree
def test_velocities_are_what_poses_change_by(name):
    mech = TREES[name]
    q, v, *_ = states(mech, seed=2)
    last = mech.link_names[-1]
    pose = traced("frame_pose", mech, link=last)
    changes = lw.jacobian_of(pose)(q)
    jacobian = traced("jacobian", mech, link=last, frame="world_aligned")(q)
    close(changes[:, :3, 3, :], jacobian[:, 3:, :], 1e-11, core=2)
    rotation = pose(q)[:, :3, :3]
    spin = np.einsum("sijk,slj->silk", changes[:, :3, :3, :], rotation)  # dR R*
    found = np.stack([spin[:, 2, 1], spin[:, 0, 2], spin[:, 1, 0]], axis=1)
    close(found, jacobian[:, :3, :], 1e-11, core=2)
    moved = lw.jacobian_of(traced("center_of_mass", mech))(q)
    mass = sum(mech.parameters.masses)
    close(mass * np.einsum("sij,sj->si", moved, v), traced("momentum", mech)(q, v)[:, 3:], 1e-11)


@pytest.mark.slow_cases("stewart_platform")
@pytest.mark.parametrize("name", ["four_bar", "five_bar", "loader", "stewart_platform", "flyball_governor"])
def test_closed_mechanisms(name):
    mech = built(name)
    rng = np.random.default_rng(0)
    q = lw.integrate(mech, assembled(name), 0.1 * rng.normal(size=(STATES, mech.nv)), 1.0)
    v = rng.normal(size=(STATES, mech.nv))
    error, jacobian = traced("position_error", mech), traced("constraint_jacobian", mech)
    g = jacobian(q)
    close(lw.jacobian_of(error)(q), g, 1e-11, core=2)
    close(lw.jacobian_of(traced("constraint_bias", mech), "v")(q, np.zeros_like(v)), np.zeros_like(g), 1e-11, core=2)
    # The bias is the second derivative of the error along the motion with constant v.
    bias = np.einsum("smjk,sj,sk->sm", lw.jacobian_of(jacobian)(q), v, v)
    close(bias, traced("constraint_bias", mech)(q, v), 1e-10)
    twice = np.einsum("smjk,sj,sk->sm", lw.jacobian_of(lw.jacobian_of(error))(q), v, v)
    close(twice, bias, 1e-10)


# -- expressions, parameters, several inputs ----------------------------------------------------------------


def test_operator_expressions():
    mech = lw.mechanisms.random_tree(5, 8, joints=("revolute", "spherical", "universal"))
    q, x, *_ = states(mech)
    x = x[:, : mech.nv]
    expression = (op.I - op.H @ op.psi @ op.K) @ op.joint_vector("q0")
    kernel = traced(expression, mech)
    assert set(kernel.configurations) == {"q"}  # a vector of that name is no configuration
    for wrt in ("q", "q0"):
        close(lw.jacobian_of(kernel, wrt)(q, x), expected_columns(kernel, [q, x], wrt), 1e-10, core=2)
    close(
        lw.jacobian_of(kernel, "q0")(q, x),
        lw.formulations.diagonal.factor_inverse(mech, q, normalized=False),
        1e-10,
        core=2,
    )
    matrix = traced(op.H @ op.phi @ op.M @ op.phi.T @ op.H.T, mech)
    close(lw.jacobian_of(matrix)(q), lw.derivatives.mass_matrix_derivatives(mech, q), 1e-10, core=3)


def test_parameters():
    """Masses and gravity enter linearly, so that their derivatives are the differences between two values of them."""
    mech = lw.mechanisms.random_tree(4, 21, joints=("revolute", "floating", "helical"))
    q, v, a, _ = states(mech)
    masses, gravity = np.array(mech.parameters.masses), np.array(mech.gravity)
    kernel = traced("inverse_dynamics", mech, parameters=("mass", "gravity"))
    slopes = lw.jacobian_of(kernel, ("mass", "gravity"))(q, v, a, masses, gravity)
    assert slopes.shape == (STATES, mech.nv, mech.n_links + 3)
    base = kernel(q, v, a, masses, gravity)
    for k, unit in enumerate(np.eye(mech.n_links)):
        close(slopes[..., k], kernel(q, v, a, masses + unit, gravity) - base, 1e-10)
    for k, unit in enumerate(np.eye(3)):
        close(slopes[..., mech.n_links + k], kernel(q, v, a, masses, gravity + unit) - base, 1e-10)


def test_parameters_that_enter_nonlinearly():
    mech = lw.mechanisms.random_tree(3, 5, joints=("revolute", "spherical"))
    q, v, tau, _ = states(mech)
    link = mech.link_names[1]
    kernel = traced("forward_dynamics", mech, parameters=("com", f"{link}.pose", f"{link}.inertia"))
    body = mech.bodies[1]
    pose = np.eye(4)
    pose[:3, :3], pose[:3, 3] = body.rotation, body.position
    arrays = [q, v, tau, mech.parameters.coms, pose, body.inertia]
    for wrt, size in (("com", 9), (f"{link}.pose", 16), (f"{link}.inertia", 9)):
        derivative = lw.jacobian_of(kernel, wrt)
        assert list(derivative.output_shapes.values()) == [(mech.nv, size)]
        close(derivative(*arrays), expected_columns(kernel, arrays, wrt), 1e-10, core=2)


def test_several_inputs_stand_side_by_side_in_the_order_given():
    mech = TREES["mixed 11"]
    q, v, a, _ = states(mech)
    kernel = traced("inverse_dynamics", mech)
    parts = [lw.jacobian_of(kernel, name)(q, v, a) for name in ("a", "q", "v")]
    together = lw.jacobian_of(kernel, ["a", "q", "v"])
    close(together(q, v, a), np.concatenate(parts, axis=-1), 1e-14, core=2)
    assert together.inputs == ("q", "v", "a")
    assert together.output_shapes == {"tau_by_a_and_q_and_v": (mech.nv, 3 * mech.nv)}


def test_value_and_derivative_in_one_kernel():
    mech = lw.mechanisms.puma560()
    q, v, tau, _ = states(mech)
    kernel = lw.compile("forward_dynamics", mech)
    for target in ("cpu", "numpy"):
        both = lw.jacobian_of(lw.compile("forward_dynamics", mech, target=target), "q", value=True)
        a, slopes = both(q, v, tau)
        close(a, kernel(q, v, tau), 1e-12)
        close(slopes, lw.jacobian_of(kernel, "q")(q, v, tau), 1e-12, core=2)
        out = (np.empty_like(a), np.empty_like(slopes))
        assert both(q, v, tau, out=out)[1] is out[1]
        np.testing.assert_array_equal(out[0], a)
        one, slope = both(q[0], v[0], tau[0])
        np.testing.assert_allclose(slope, slopes[0], rtol=1e-12, atol=1e-9)
        many = [np.tile(x, (400, 1)) for x in (q, v, tau)]
        np.testing.assert_allclose(both(*many)[1][-STATES:], slopes, rtol=1e-12, atol=1e-9)
        # Derivatives of a pair are those of its last part.
        twice = lw.jacobian_of(both, "tau")
        assert list(twice.output_shapes.values()) == [(6, 6, 6)]
    values, slopes = both.sparsity
    assert values.all() and slopes.shape == (6, 6) and not slopes[:, 0].any()


def test_single_precision_and_machine_code():
    mech = TREES["mixed 11"]
    q, v, *_ = states(mech)
    expected = lw.jacobian_of(traced("bias_force", mech))(q, v)
    double = lw.jacobian_of(lw.compile("bias_force", mech))
    assert double.target == "cpu" and double.dtype == np.float64
    close(double(q, v), expected, 1e-12, core=2)
    single = lw.jacobian_of(lw.compile("bias_force", mech, dtype="float32"))
    found = single(q.astype(np.float32), v.astype(np.float32))
    assert found.dtype == np.float32
    close(found, expected, 2e-5, core=2)


# -- tangent directions -------------------------------------------------------------------------------------


@every_tree
def test_plain_partials_and_tangent_directions(name):
    mech = TREES[name]
    q, v, *_ = states(mech)
    kernel = traced("bias_force", mech)
    plain = lw.jacobian_of(kernel, tangent=False)(q, v)
    assert plain.shape == (STATES, mech.nv, mech.nq)
    identity = np.broadcast_to(np.eye(mech.nq), (STATES, mech.nq, mech.nq))
    close(plain, complex_step(kernel, [q, v], "q", identity), 1e-10, core=2)
    close(lw.jacobian_of(kernel)(q, v), plain @ tangent_columns(mech, q), 1e-10, core=2)


def test_second_derivatives_are_derivatives_along_the_last_direction_of_the_first():
    """One ball joint, whose angular velocities are in its own frame: X_j X_k - X_k X_j is the direction e_j x e_k."""
    builder = lw.Builder().link("ball", 2.0, (0.1, -0.2, 0.3), np.diag([1.0, 2.0, 2.5]))
    mech = builder.joint("ball", lw.Spherical(), "ground", "ball").build("ball")
    q, *_ = states(mech)
    first = lw.jacobian_of(traced("potential_energy", mech))
    second = lw.jacobian_of(first)
    found = second(q)
    close(found, complex_step(first, [q], "q", tangent_columns(mech, q)), 1e-12, core=2)
    for j, k in ((0, 1), (1, 2), (2, 0)):
        bracket = np.cross(np.eye(3)[j], np.eye(3)[k])
        np.testing.assert_allclose(found[:, k, j] - found[:, j, k], first(q) @ bracket, atol=1e-12)


@pytest.mark.parametrize("kind", KINDS)
def test_steps_and_differences_have_derivatives_at_rest(kind):
    """At and around no rotation, where closed forms are 0 / 0 and series take over; both ways."""
    mech = TREES[kind]
    q, v, *_ = states(mech)
    step, difference = traced("integrate", mech), traced("difference", mech)
    for mode in ("forward", "reverse"):
        by_v = lw.jacobian_of(step, "v", mode)
        by_q1 = lw.jacobian_of(difference, "q1", mode)
        by_q0 = lw.jacobian_of(difference, "q0", mode)
        identity = np.broadcast_to(np.eye(mech.nv), (STATES, mech.nv, mech.nv))
        np.testing.assert_allclose(by_v(q, 0.0 * v, 1.0), tangent_columns(mech, q), atol=1e-15)
        np.testing.assert_allclose(by_q1(q, q), identity, atol=1e-14)
        np.testing.assert_allclose(by_q0(q, q), -identity, atol=1e-14)
        for size in (1e-9, 1e-3, 0.0199, 0.0201, 1.0):  # on either side of where the series end
            at = q, size * v, 1.0
            expected = complex_step(step, at, "v", identity)
            np.testing.assert_allclose(by_v(*at), expected, atol=1e-13)
            end = step(*at)
            around = np.stack(
                [rate(lambda t, u=u, end=end: difference(q, step(end, u, t)), 1e-2) for u in np.eye(mech.nv)], axis=-1
            )
            np.testing.assert_allclose(by_q1(q, end), around, atol=1e-10)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_second_derivatives_of_steps_at_rest(mode):
    """exp(turn) for small turns is 1 + turn/2 + turn^2/8: the Hessian of its real part is -1/4."""
    mech = TREES["spherical"]
    q = lw.neutral(mech)
    hessian = lw.jacobian_of(lw.jacobian_of(traced("integrate", mech), "v", mode), "v", mode)
    found = hessian(q, np.zeros(mech.nv), 1.0)
    np.testing.assert_allclose(found[0, :3, :3], -0.25 * np.eye(3), atol=1e-15)
    np.testing.assert_allclose(found[1:4], 0.0, atol=1e-15)


@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_machine_code_reports_nothing_of_branches_not_taken(kind):
    mech = TREES[kind]
    q, rest = lw.neutral(mech), np.zeros(mech.nv)
    step, difference = lw.compile("integrate", mech), lw.compile("difference", mech)
    for mode in ("forward", "reverse"):
        by_v, by_q1 = lw.jacobian_of(step, "v", mode), lw.jacobian_of(difference, "q1", mode)
        with np.errstate(all="raise", under="ignore"):
            np.testing.assert_allclose(by_v(q, rest, 1.0), tangent_columns(mech, q), atol=1e-15)
            np.testing.assert_allclose(by_q1(q, q), np.eye(mech.nv), atol=1e-14)


# -- second derivatives of inverse dynamics -----------------------------------------------------------------


@every_tree
def test_second_derivatives_of_inverse_dynamics(name):
    mech = TREES[name]
    q, v, a, _ = states(mech)
    d_qq, d_vv, d_qv, d_aq = lw.compile("inverse_dynamics_second_derivatives", mech, target="numpy")(q, v, a)
    force = traced("inverse_dynamics", mech)
    along_q, along_v = lw.jacobian_of(force, "q"), lw.jacobian_of(force, "v")
    close(d_qq, expected_columns(along_q, [q, v, a], "q"), 1e-10, core=3)
    close(d_vv, expected_columns(along_v, [q, v, a], "v"), 1e-10, core=3)
    close(d_qv, expected_columns(along_q, [q, v, a], "v"), 1e-10, core=3)
    close(d_aq, lw.derivatives.mass_matrix_derivatives(mech, q), 1e-10, core=3)
    # Joint forces are of second order in v and bilinear in a and q: Taylor's series in v ends here.
    still = force(q, 0.0 * v, a)
    slope = lw.jacobian_of(force, "v")(q, 0.0 * v, a)
    quadratic = 0.5 * np.einsum("sijk,sj,sk->si", d_vv, v, v)
    close(still + np.einsum("sij,sj->si", slope, v) + quadratic, force(q, v, a), 1e-11)


def test_second_derivatives_share_work():
    """Far less than two rounds of differentiation of the recursion for joint forces."""
    mech = lw.mechanisms.puma560()
    kernel = lw.compile("inverse_dynamics_second_derivatives", mech, target="numpy")
    twice = lw.jacobian_of(lw.jacobian_of(traced("inverse_dynamics", mech), ("q", "v", "a")), ("q", "v"))
    ours, plain = (sum(k.op_counts.values()) for k in (kernel, twice))
    assert ours < 0.8 * plain
    assert kernel.inputs == ("q", "v", "a") and set(kernel.configurations) == {"q"}
    q, v, a, _ = (x.astype(np.float32) for x in states(mech))
    single = lw.derivatives.inverse_dynamics_second_derivatives(mech, q, v, a)
    for found, expected in zip(single, kernel(*(x.astype(float) for x in (q, v, a))), strict=True):
        assert found.dtype == np.float32
        close(found, expected, 2e-5, core=3)


def test_second_derivatives_compile_like_any_algorithm():
    """By name, by the public function, with numbers of the mechanism as inputs; the plan shows the sweeps."""
    mech = lw.mechanisms.random_tree(4, seed=3)
    q, v, a, _ = states(mech)
    expected = lw.derivatives.inverse_dynamics_second_derivatives(mech, q, v, a)
    kernel = lw.compile(lw.derivatives.inverse_dynamics_second_derivatives, mech, target="numpy")
    for found, other in zip(kernel(q, v, a), expected, strict=True):
        close(found, other, 1e-10, core=3)
    assert list(kernel.output_shapes) == ["d_qq", "d_vv", "d_qv", "d_aq"]
    assert "sweep 2: composite bodies, what they feel of changes, tip to base" in kernel.plan()
    heavier = lw.compile(
        "inverse_dynamics_second_derivatives", mech, target="numpy", parameters=("mass", "inertia", "gravity")
    )
    doubled = heavier(q, v, a, 2.0 * mech.parameters.masses, 2.0 * mech.parameters.inertias, mech.gravity)
    for found, other in zip(doubled, expected, strict=True):
        close(found, 2.0 * other, 1e-10, core=3)


def test_second_derivatives_refuse_loops():
    with pytest.raises(lw.MechanismError, match="would ignore the loops"):
        lw.derivatives.inverse_dynamics_second_derivatives(built("five_bar"), np.zeros(4), np.zeros(4), np.zeros(4))


# -- what is refused ----------------------------------------------------------------------------------------


def test_errors_name_what_is_meant():
    mech = lw.mechanisms.planar_arm(2)
    kernel = lw.compile("inverse_dynamics", mech, target="numpy")
    with pytest.raises(ValueError, match=r"unknown input of inverse_dynamics 'tau': there is q, v, a"):
        lw.jacobian_of(kernel, "tau")
    sweep = lw.compile("gravity_force", mech, target="numpy", parameters=("gravity",))
    with pytest.raises(ValueError, match="did you mean 'gravity'"):
        lw.jacobian_of(sweep, "gravty")
    with pytest.raises(ValueError, match="unknown mode 'backward'"):
        lw.jacobian_of(kernel, "q", mode="backward")
    with pytest.raises(ValueError, match="'q' twice"):
        lw.jacobian_of(kernel, ("q", "v", "q"))
    with pytest.raises(ValueError, match="names no input"):
        lw.jacobian_of(kernel, ())
    with pytest.raises(TypeError, match="the name of an input"):
        lw.jacobian_of(kernel, (0,))
    with pytest.raises(TypeError, match="takes a kernel such as"):
        lw.jacobian_of(lw.mass_matrix, "q")
    with pytest.raises(lw.KernelError, match="inverse_dynamics_by_q: v has shape"):
        lw.jacobian_of(kernel, "q")([0.0, 0.0], [0.0], [0.0, 0.0])


def test_it_can_be_looked_at():
    mech = lw.mechanisms.planar_arm(3)
    kernel = lw.jacobian_of(lw.compile("forward_dynamics", mech), ("q", "v"))
    assert kernel.name == "forward_dynamics_by_q_and_v"
    assert "the program of forward_dynamics, differentiated" in kernel.plan() and kernel.sweeps == ()
    assert "void forward_dynamics_by_q_and_v" in kernel.source("c")
    assert kernel.sparsity.dtype == bool and kernel.sparsity.shape == (3, 6)


def test_nothing_to_move():
    mech = lw.Builder().link("a", 1.0).joint("weld", lw.Fixed(), "ground", "a").build("welded")
    assert lw.jacobian_of(lw.compile("mass_matrix", mech))([]).shape == (0, 0, 0)
    assert [x.shape for x in lw.derivatives.inverse_dynamics_second_derivatives(mech, [], [], [])] == [(0, 0, 0)] * 4
