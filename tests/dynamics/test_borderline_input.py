"""Unusual input with a defined result: not a number, quaternions of other lengths, empty batches, nothing to move."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import linkwise as lw
from tests.dynamics.test_bad_input import ARM, BASE, LOOP, STILL, X, Z, inverse, massless


def quaternion_state(scale: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    q, v = lw.random_state(BASE, np.random.default_rng(5))
    q[:4] *= scale
    return q, v, np.ones(BASE.nv)


NOT_A_NUMBER = {
    "NaN in q": lambda: lw.inverse_dynamics(ARM, [np.nan, 0.0, 0.0], Z, Z),
    "NaN in v": lambda: lw.forward_dynamics(ARM, Z, [np.nan, 0.0, 0.0], Z),
    "NaN in forces": lambda: lw.forward_dynamics(ARM, Z, Z, [np.nan, 0.0, 0.0]),
    "infinite q": lambda: lw.inverse_dynamics(ARM, [np.inf, 0.0, 0.0], Z, Z),
    "infinite v": lambda: lw.forward_dynamics(ARM, X, [np.inf, 0.0, 0.0], Z),
    "a quaternion of zeros": lambda: lw.inverse_dynamics(BASE, np.zeros(8), np.ones(7), np.ones(7)),
    "the attitude reached from a quaternion of zeros": lambda: lw.integrate(BASE, np.zeros(8), np.zeros(7), 1.0)[:4],
    "NaN in q on NumPy": lambda: inverse(target="numpy")([np.nan, 0.0, 0.0], Z, Z),
    "a quaternion of zeros on NumPy": lambda: lw.compile("bias_force", BASE, target="numpy")(np.zeros(8), np.zeros(7)),
}


@pytest.mark.parametrize("case", NOT_A_NUMBER)
def test_not_a_number(case):
    with np.errstate(all="ignore"):
        assert np.isnan(NOT_A_NUMBER[case]()).all()


def test_one_bad_state_does_not_spoil_its_batch():
    q, v = lw.random_state(ARM, np.random.default_rng(0), (11,))
    good = lw.forward_dynamics(ARM, q, v, v)
    q[4] = np.nan
    found = lw.forward_dynamics(ARM, q, v, v)
    assert np.isnan(found[4]).all()
    assert np.array_equal(np.delete(found, 4, axis=0), np.delete(good, 4, axis=0))


def test_ordinary_states_raise_no_floating_point_warnings():
    q, v = lw.random_state(BASE, np.random.default_rng(0), (13,))
    with np.errstate(all="raise"):
        for count in (1, 3, 13):
            lw.forward_dynamics(BASE, q[:count], v[:count], v[:count])
            lw.integrate(BASE, q[:count], v[:count], 1.0)
            lw.integrate(BASE, q[:count], 0.0 * v[:count], 1.0)
            lw.difference(BASE, q[:count], q[:count])
            lw.difference(BASE, q[:count], half_turn(q[:count]))


def half_turn(q: np.ndarray) -> np.ndarray:
    """The base turned by pi about its x axis: the scalar part of the relative quaternion is zero."""
    w, x, y, z = q[:, :4].T
    return np.concatenate([np.stack([-x, w, z, -y], axis=1), q[:, 4:]], axis=1)


@pytest.mark.parametrize("scale", [1e-3, 0.5, 3.0, 1e3])
@pytest.mark.parametrize("name", ["inverse_dynamics", "forward_dynamics"])
def test_quaternions_are_used_as_if_normalised(name, scale):
    function = getattr(lw, name)
    np.testing.assert_allclose(
        function(BASE, *quaternion_state(scale)), function(BASE, *quaternion_state(1.0)), rtol=1e-11, atol=1e-12
    )


@pytest.mark.parametrize("target", ["cpu", "numpy"])
def test_empty_batches(target):
    kernel = inverse(target=target)
    assert kernel(np.zeros((0, 3)), Z, Z).shape == (0, 3)
    assert kernel(np.zeros((2, 0, 3)), np.zeros((2, 1, 3)), Z).shape == (2, 0, 3)
    assert kernel(np.zeros((0, 3)), Z, Z, out=np.zeros((0, 3))).shape == (0, 3)


def test_mechanisms_without_joints():
    """Nothing moves, and nothing is wrong: arrays with no entries."""
    nothing = np.zeros((4, 0))
    assert lw.inverse_dynamics(STILL, [], [], []).shape == (0,)
    assert lw.forward_dynamics(STILL, nothing, nothing, nothing).shape == (4, 0)
    assert lw.neutral(STILL).shape == (0,)
    assert [part.shape for part in lw.random_state(STILL, np.random.default_rng(0), (4,))] == [(4, 0), (4, 0)]
    assert lw.jacobian(STILL, nothing, "pole").shape == (4, 6, 0)
    assert np.array_equal(lw.frame_pose(STILL, [], "pole"), np.eye(4))
    assert lw.kinetic_energy(STILL, [], []) == 0.0


def test_matrices_of_mechanisms_without_joints():
    assert lw.mass_matrix(STILL, []).shape == (0, 0)
    assert lw.link_poses(STILL, np.zeros((2, 0))).shape == (2, 0, 4, 4)


@pytest.mark.parametrize("q", [Z + 1j, np.array(["1", "2", "3"]), Z.astype(object)], ids=["complex", "text", "object"])
def test_numpy_target_refuses_the_types_that_machine_code_refuses(q):
    with warnings.catch_warnings(), pytest.raises(lw.KernelError, match="q has dtype"):
        warnings.simplefilter("ignore")
        inverse(target="numpy")(q, Z, Z)


def test_numpy_target_refuses_to_round_to_integers():
    with pytest.raises(lw.KernelError, match="out has dtype"):
        inverse(target="numpy")(Z, Z, Z, out=np.zeros(3, int))


@pytest.mark.parametrize(
    "call", [lambda: inverse(parameters=(3,)), lambda: lw.jacobian(ARM, Z, ["link1"])], ids=["parameter", "link"]
)
def test_names_that_are_no_text(call):
    with pytest.raises(TypeError, match="named by a string"):
        call()


@pytest.mark.parametrize("dtype", [bool, np.int8, np.uint32, np.float16, np.float32, ">f8"])
def test_other_numbers_are_converted(dtype):
    ones = np.ones(3, dtype)
    found = lw.inverse_dynamics(ARM, ones, Z, Z)
    assert found.dtype == np.float64
    assert np.array_equal(found, lw.inverse_dynamics(ARM, np.ones(3), Z, Z))


def test_output_of_lower_precision_is_rounded():
    out = np.zeros(3, np.float32)
    assert inverse()(X, Z, Z, out=out) is out
    assert np.array_equal(out, lw.inverse_dynamics(ARM, X, Z, Z).astype(np.float32))


def test_loops_do_not_matter_for_kinematics_and_terms_of_the_equations():
    """Poses, mass matrix and bias forces of the spanning tree are those of the mechanism with loops."""
    tree = LOOP.spanning_tree
    assert tree is LOOP.spanning_tree
    assert np.array_equal(lw.link_poses(LOOP, X[:2]), lw.link_poses(tree, X[:2]))
    assert np.array_equal(lw.mass_matrix(LOOP, X[:2]), lw.mass_matrix(tree, X[:2]))
    assert np.array_equal(lw.bias_force(LOOP, X[:2], X[:2]), lw.bias_force(tree, X[:2], X[:2]))
    assert np.isfinite(lw.forward_dynamics(tree, X[:2], X[:2], X[:2])).all()
    with pytest.raises(lw.MechanismError, match="would ignore the loops .*, or mech.spanning_tree"):
        lw.mass_matrix_inverse(LOOP, X[:2])


def test_singular_mechanisms_still_have_inverse_dynamics():
    mech = massless()
    state = [X[:2], X[:2], X[:2]]
    assert np.isfinite(lw.inverse_dynamics(mech, *state)).all()
    assert lw.mass_matrix(mech, X[:2])[1].tolist() == [0.0, 0.0]
