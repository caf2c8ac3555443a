"""States that are not finite: they spoil no other state of a batch; where no result can hold them they are named."""

from __future__ import annotations

import numpy as np
import pytest

import linkwise as lw
from linkwise.mechanism import MechanismError

from .built_in import STRETCHED, SYMMETRIC, built, random_state

METHODS = ("svd", "lagrange", "partitioning", "tangent", "differentiable")


def batch(name: str, count: int = 5) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    states = [random_state(name, seed) for seed in range(count)]
    tau = np.random.default_rng(7).normal(size=(count, built(name).nv))
    return np.array([q for q, _ in states]), np.array([v for _, v in states]), tau


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("spoilt", ["q", "v", "tau"])
@pytest.mark.parametrize("name", ["five_bar", "delta_robot", "flyball_governor"])
def test_an_unknown_state_leaves_the_others_alone(name, spoilt, method):
    mech = built(name)
    q, v, tau = batch(name)
    expected = lw.forward_dynamics(mech, q, v, tau, method=method)
    {"q": q, "v": v, "tau": tau}[spoilt][2, 1] = np.nan
    found = lw.forward_dynamics(mech, q, v, tau, method=method)
    assert np.isnan(found[2]).all() if spoilt == "q" else np.isnan(found[2]).any()
    others = np.arange(5) != 2
    np.testing.assert_allclose(found[others], expected[others], rtol=1e-9, atol=1e-9)
    alone = lw.forward_dynamics(mech, q[2], v[2], tau[2], method=method)
    assert alone.shape == (mech.nv,) and np.isnan(alone).any()


@pytest.mark.parametrize(
    "function", [lw.constraints.constraint_forces, lw.constraints.multipliers, lw.inverse_dynamics]
)
def test_forces_of_the_other_states_too(function):
    mech = built("five_bar")
    q, v, tau = batch("five_bar")
    if function is lw.inverse_dynamics:
        tau = lw.forward_dynamics(mech, q, v, tau)
    expected = function(mech, q, v, tau)
    q[0] = np.inf
    with np.errstate(invalid="ignore"):
        found = function(mech, q, v, tau)
    assert np.isnan(found[0]).all()
    np.testing.assert_allclose(found[1:], expected[1:], rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("method", ["svd", "partitioning", "tangent", "differentiable"])
def test_null_spaces_of_the_other_states_too(method):
    mech = built("five_bar")
    q = np.array([SYMMETRIC, STRETCHED, np.full(4, np.nan)])  # two and three degrees of freedom, and unknown
    basis = lw.constraints.null_space(mech, q, method=method)
    assert basis.shape == (3, 4, 3) and np.isnan(basis[2]).all()
    for one, state in zip(basis[:2], q[:2], strict=True):
        np.testing.assert_allclose(lw.constraints.constraint_jacobian(mech, state) @ one, 0.0, atol=1e-12)
    assert [np.linalg.matrix_rank(one) for one in basis[:2]] == [2, 3]


def test_what_cannot_be_unknown_names_the_state():
    mech = built("five_bar")
    q = np.array([SYMMETRIC, SYMMETRIC])
    q[1, 3] = np.nan
    for call, message in (
        (lambda: lw.constraints.assemble(mech, q), r"the guess is not finite \(state 1\)"),
        (lambda: lw.constraints.assemble(mech, q[1]), "the guess is not finite$"),
        (lambda: lw.constraints.project(mech, q, 0.0 * q), r"the configuration is not finite \(state 1\)"),
        (lambda: lw.constraints.degrees_of_freedom(mech, q), r"q is not finite \(state 1\)"),
        (lambda: lw.constraints.generic_rank(mech, q[1]), "q is not finite$"),
    ):
        with pytest.raises(MechanismError, match=message):
            call()


def test_assembly_and_projection_give_quaternions_of_unit_length():
    builder = (
        lw.Builder().link("ball", 1.0, (0.0, 0.0, 0.1), (0.1, 0.1, 0.1)).joint("base", lw.Floating(), "ground", "ball")
    )
    builder.loop("pin", lw.Spherical(), "ground", None, "ball", None)
    mech = builder.build()
    closed = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    for q in (lw.constraints.assemble(mech, closed), lw.constraints.project(mech, closed, np.zeros(6), largest=2.0)[0]):
        np.testing.assert_allclose(q, [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0], atol=1e-15)
    with pytest.raises(MechanismError, match="the guess has a quaternion of zeros"):
        lw.constraints.assemble(mech, 0.0 * closed)


@pytest.mark.parametrize("method", METHODS)
def test_states_of_different_rank_in_one_batch(method):
    """Each state of a batch moves as it does alone, though K has more columns where loops are singular."""
    mech = built("five_bar")
    q = np.array([[SYMMETRIC, STRETCHED], [STRETCHED, random_state("five_bar")[0]]])
    v = np.zeros_like(q)
    tau = np.random.default_rng(3).normal(size=q.shape)
    found = lw.forward_dynamics(mech, q, v, tau, method=method)
    for state in np.ndindex(2, 2):
        alone = lw.forward_dynamics(mech, q[state], v[state], tau[state], method=method)
        np.testing.assert_allclose(found[state], alone, rtol=1e-9, atol=1e-9)


def test_a_joint_chosen_twice_is_no_choice():
    mech = built("five_bar")
    with pytest.raises(MechanismError, match=r"do not describe the motion here.*\(2.28 is violated\)"):
        lw.constraints.null_space(mech, SYMMETRIC, independent=mech.joint_names[:1] * 2)
