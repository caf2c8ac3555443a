"""Derivatives of kernels whose results are configurations, and products from the left."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw


@pytest.mark.slow_cases("joints1-rk4_step")
@pytest.mark.parametrize("name", ["integrate", "rk4_step", "semi_implicit_step"])
@pytest.mark.parametrize("joints", [("revolute", "spherical", "planar"), ("helical", "universal", "cylindrical")])
def test_changes_of_configurations_as_steps(name, joints):
    """Against differences of steps on the manifold: nv rows for a configuration, a square matrix for a step in time."""
    mech = lw.mechanisms.random_tree(3, seed=1, joints=joints, floating_base=True)
    rng = np.random.default_rng(0)
    q, v = lw.random_state(mech, rng)
    rest = (0.05,) if name == "integrate" else (rng.normal(size=mech.nv), 0.05)
    kernel = lw.compile(name, mech, target="numpy")
    reached = kernel(q, v, *rest)

    def step(change):
        there = kernel(lw.integrate(mech, q, change[: mech.nv], 1.0), v + change[mech.nv :], *rest)
        moved = lw.difference(mech, reached[: mech.nq], there[: mech.nq])
        return np.concatenate([moved, there[mech.nq :] - reached[mech.nq :]])

    size = 1e-5
    expected = np.stack([(step(size * e) - step(-size * e)) / (2 * size) for e in np.eye(2 * mech.nv)], axis=-1)
    if name != "rk4_step":  # which is long
        derivative = lw.jacobian_of(kernel, ("q", "v"), mode="forward", tangent_result=True)
        np.testing.assert_allclose(derivative(q, v, *rest), expected, atol=1e-8)
    value, same = lw.jacobian_of(kernel, ("q", "v"), mode="forward", value=True, tangent_result=True)(q, v, *rest)
    np.testing.assert_allclose(value, reached, atol=1e-12)
    np.testing.assert_allclose(same, expected, atol=1e-8)


def test_steps_in_time_carry_small_steps_on():
    """Products of the matrices of steps are the derivative of the motion: for a free body without forces, exactly."""
    mech = lw.mechanisms.random_tree(1, seed=0, joints=("floating",)).with_gravity((0, 0, 0))
    q, v = lw.random_state(mech, np.random.default_rng(1))
    kernel = lw.compile("rk4_step", mech, target="numpy")
    by_state = lw.jacobian_of(kernel, ("q", "v"), tangent_result=True)
    tau, dt, product = np.zeros(6), 0.02, np.eye(12)
    start = np.concatenate([q, v])
    ends = []
    for e in (1e-5, -1e-5):
        x = np.concatenate([lw.integrate(mech, q, np.full(6, e), 1.0), v + e])
        for _ in range(5):
            x = kernel(x[:7], x[7:], tau, dt)
        ends.append(x)
    for _ in range(5):
        product = by_state(start[:7], start[7:], tau, dt) @ product
        start = kernel(start[:7], start[7:], tau, dt)
    moved = np.concatenate([lw.difference(mech, ends[1][:7], ends[0][:7]), ends[0][7:] - ends[1][7:]]) / 2e-5
    np.testing.assert_allclose(product @ np.ones(12), moved, atol=1e-7)


@pytest.mark.parametrize("name", ["forward_dynamics", "mass_matrix", "rk4_step", "potential_energy"])
def test_products_from_the_left(name):
    mech = lw.mechanisms.random_tree(3, seed=4, floating_base=True)
    rng = np.random.default_rng(2)
    q, v = lw.random_state(mech, rng, (3,))
    given = {"q": q, "v": v, "tau": rng.normal(size=v.shape), "dt": np.full(3, 0.01)}
    kernel = lw.compile(name, mech, target="numpy")
    arrays = [given[one] for one in kernel.inputs]
    wrt = tuple(one for one in kernel.inputs if one != "dt")
    result = kernel(*arrays)
    weights = rng.normal(size=result.shape)
    product = lw.vjp_of(kernel, wrt)
    assert product.inputs == (*kernel.inputs, "cotangent") and product.configurations == kernel.configurations
    derivative = lw.jacobian_of(kernel, wrt)(*arrays)
    flat = derivative.reshape(3, -1, derivative.shape[-1])
    np.testing.assert_allclose(
        product(*arrays, weights), np.einsum("bi,bij->bj", weights.reshape(3, -1), flat), atol=1e-8
    )
    assert product(*arrays, weights).shape == (3, flat.shape[-1])
    along = lw.jvp_of(kernel, wrt)
    ways = [rng.normal(size=shape) for shape in [*along.input_shapes.values()][len(kernel.inputs) :]]
    direction = np.concatenate(ways)
    np.testing.assert_allclose(along(*arrays, *ways), derivative @ direction, atol=1e-8)


def test_products_of_products():
    """Of a product of a weight with a derivative, and of one along a direction: w f'' d, in both orders."""
    arm = lw.mechanisms.planar_arm(2)
    kernel = lw.compile("gravity_force", arm, target="numpy")
    q, w, d = np.random.default_rng(0).normal(size=(3, 2))
    second = np.einsum("i,ijk,k->j", w, lw.jacobian_of(lw.jacobian_of(kernel))(q), d)
    np.testing.assert_allclose(lw.jvp_of(lw.vjp_of(kernel))(q, w, d), second, atol=1e-12)
    np.testing.assert_allclose(lw.vjp_of(lw.jvp_of(kernel))(q, d, w), second, atol=1e-12)
    twice = lw.vjp_of(lw.vjp_of(kernel))
    assert twice.inputs == ("q", "cotangent", "cotangent2")
    np.testing.assert_allclose(twice(q, w, d), second, atol=1e-12)


def test_products_of_several_results():
    arm = lw.mechanisms.planar_arm(2)
    kernel = lw.jacobian_of(lw.compile("gravity_force", arm, target="numpy"), value=True)
    q, w, d = np.random.default_rng(0).normal(size=(3, 2))
    first = lw.jacobian_of(lw.compile("gravity_force", arm, target="numpy"))
    along = lw.jvp_of(kernel)(q, d)
    np.testing.assert_allclose(along[0], first(q) @ d, atol=1e-12)
    np.testing.assert_allclose(along[1], lw.jacobian_of(first)(q) @ d, atol=1e-12)
    name, other = kernel.output_shapes
    np.testing.assert_allclose(lw.vjp_of(kernel, of=[name])(q, w), w @ first(q), atol=1e-12)
    both = lw.vjp_of(kernel)
    assert both.inputs == ("q", f"{name}_cotangent", f"{other}_cotangent")
    np.testing.assert_allclose(
        both(q, w, np.eye(2)), w @ first(q) + np.einsum("iij->j", lw.jacobian_of(first)(q)), atol=1e-12
    )


def test_products_from_the_left_cost_a_few_times_the_kernel():
    arm = lw.mechanisms.puma560()
    for name, wrt in (("forward_dynamics", ("q", "v", "tau")), ("inverse_dynamics", ("q", "v", "a"))):
        kernel = lw.compile(name, arm, target="numpy")
        own, product = (sum(one.op_counts.values()) for one in (kernel, lw.vjp_of(kernel, wrt)))
        assert product < 3.0 * own < sum(lw.jacobian_of(kernel, wrt).op_counts.values())
    plain = lw.vjp_of(lw.compile("mass_matrix", arm), "q")  # machine code
    q = np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    expected = np.einsum("ijk,ij->k", lw.derivatives.mass_matrix_derivatives(arm, q), np.ones((6, 6)))
    np.testing.assert_allclose(plain(q, np.ones((6, 6))), expected, atol=1e-12)


def test_what_is_asked_of_the_wrong_kernel():
    arm = lw.mechanisms.planar_arm(2)
    kernel = lw.compile("mass_matrix", arm, target="numpy")
    with pytest.raises(ValueError, match="tangent_result is for results that are configurations .q_next, state."):
        lw.jacobian_of(kernel, tangent_result=True)
    with pytest.raises(TypeError, match="vjp_of takes a kernel"):
        lw.vjp_of("mass_matrix")
    with pytest.raises(ValueError, match="unknown input of mass_matrix 'v'"):
        lw.vjp_of(kernel, "v")
    with pytest.raises(ValueError, match="unknown result of mass_matrix 'a'"):
        lw.vjp_of(kernel, of=["a"])
    with pytest.raises(TypeError, match="jvp_of takes a kernel"):
        lw.jvp_of("mass_matrix")
